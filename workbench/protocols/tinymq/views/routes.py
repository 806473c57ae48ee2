"""The route of a query or an event through the network: hops, rendezvous nodes, notifications, and where it ended.

    list_messages(trace)                   messages of a trace: [("query", sink, number), ("event", node, number)]
    route(run, message, from_s, until_s)   the route of one of these messages: a `Route`
    find_hops_and_marks(columns, messages) the routes of several messages, as tables of hops and marks

Theory of operation
    A hop is a unicast frame of the message that arrived. Frames that are repeated, or sent to two trees over one
    link, are one hop, at the first arrival. A link that lost all its frames is a hop with ``arrived`` False. An event's
    route includes the notifications about it, which carry the event's sequence number.

    A rendezvous node logs "query_stored" for a query and "event_matched" for an event. These rows become marks.

Limits
    A sink sends its query repeatedly. The route of a query has only the first frame over each link since ``from_s``,
    whether a refresh or a repair caused it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.columns import argsort, find_last, find_sorted, first_rows, lexsort, row_keys, unique_index
from workbench.errors import ParameterError
from workbench.protocols.tinymq.views.overlay import protocol_of
from workbench.sim.rows import Columns
from workbench.views.figure import time_us_of
from workbench.views.layers import Table, as_spans, select

MessageId = tuple[str, int, int]
QUERY, EVENT, NOTIFICATION = MESSAGE_NAMES = ("query", "event", "notification")
KINDS = {QUERY: (QUERY,), EVENT: (EVENT, NOTIFICATION)}
_KIND_OF = {message: kind for kind, messages in enumerate(KINDS.values()) for message in messages}
_MESSAGES = {message: index for index, message in enumerate(MESSAGE_NAMES)}
MARKS = ("stored", "matched", "delivered", "dropped")
_MARKED_EVENTS = {event: look for look, event in enumerate(("query_stored", "event_matched", "delivered", "dropped"))}
_QUIET = {"repeated": 0, "duplicate": 0}  # reasons of drops that only show that a node had the message before


class Hop(NamedTuple):
    """A hop of a message from sender to receiver.

    message: the message's type, such as "query"; from_us, arrived_us: the times at which the transmission of the frame
    began and ended; arrived: whether the receiver received the frame.
    """

    sender: int
    receiver: int
    message: str
    from_us: int
    arrived_us: int
    arrived: bool = True


class Mark(NamedTuple):
    """A node's mark on a route: what the node did with the message.

    look (style of the mark): "stored", "matched", "delivered" or "dropped"; at_us: when this happened; text: the reason
    of a drop, else "".
    """

    node: int
    look: str
    at_us: int
    text: str = ""


@dataclass(frozen=True)
class Route:
    """The route of one query or event: its hops and marks in order of time."""

    message: MessageId
    hops: tuple[Hop, ...]
    marks: tuple[Mark, ...]

    def until(self, hops: int) -> Route:
        """Return the route up to the arrival of hop number ``hops``, with the marks until that time.

        Hops are counted from 1, in order of arrival; lost hops are not counted.
        """
        arrived_hops = [hop for hop in self.hops if hop.arrived][:hops]
        last_us = arrived_hops[-1].arrived_us if arrived_hops else self.hops[0].from_us if self.hops else 0
        hops_until = tuple(
            hop for hop in self.hops if hop in arrived_hops or (not hop.arrived and hop.arrived_us <= last_us)
        )
        return Route(self.message, hops_until, tuple(mark for mark in self.marks if mark.at_us <= last_us))

    def nodes(self, look: str) -> list[int]:
        """Return the nodes with marks of the kind ``look`` (one of ``MARKS``), each once, in order of time."""
        return list(dict.fromkeys(mark.node for mark in self.marks if mark.look == look))

    def links(self, message: str) -> list[tuple[int, int]]:
        """Return [(sender, receiver)] of the hops of a message type, such as "query", in order of arrival.

        Lost hops are omitted.
        """
        return [(hop.sender, hop.receiver) for hop in self.hops if hop.message == message and hop.arrived]

    def in_words(self, message: str) -> str:
        """Return the hops of a message type, such as "query", as a text such as "13 → 6, 6 → 7", without lost hops."""
        return ", ".join(f"{sender} → {receiver}" for sender, receiver in self.links(message))

    def path(self, message: str, start: int, end: int) -> list[int]:
        """Return the nodes of the path that the hops of a message type form from ``start`` to ``end``, including both.

        If several hops lead to a node, the first counts. Returns [] if the hops do not connect the two nodes.
        """
        previous_nodes: dict[int, int] = {}
        for sender, receiver in self.links(message):
            previous_nodes.setdefault(receiver, sender)
        path = [end]
        while path[-1] != start and path[-1] in previous_nodes and len(path) <= len(previous_nodes):
            path.append(previous_nodes[path[-1]])
        return path[::-1] if path[-1] == start else []


def list_messages(trace: pa.Table) -> list[MessageId]:
    """Return the ids of the queries and events of a trace in the order in which they were issued.

    An id is ("query", sink, number) or ("event", publisher, number).
    """
    messages = message_table(Columns(trace))
    kinds = [list(KINDS)[kind] for kind in messages["kind"].tolist()]
    return list(zip(kinds, messages["node"].tolist(), messages["sequence"].tolist(), strict=True))


def message_table(columns: Columns) -> Table:
    """Return the queries and events of a trace as a table with the columns kind, node, sequence, from_us.

    ``kind`` is an index of ``KINDS``; ``node`` is the sink or the publisher; ``from_us`` is the time at which the query
    or event was issued.
    """
    issue_rows = columns.where(event=("subscribed", "originated"))
    messages = {column_name: columns[column_name][issue_rows].astype(np.int64) for column_name in ("node", "sequence")}
    messages["kind"] = columns.numbered("event", issue_rows, {"subscribed": 0, "originated": 1})
    return select(messages | {"from_us": columns["time_us"][issue_rows]}, first_rows(row_keys(*messages.values())))


def route(run: Any, message: MessageId | None = None, from_s: float = 0.0, until_s: float | None = None) -> Route:
    """Return the route of a query, ("query", sink, number), or of an event, ("event", publisher, number).

    ``message`` None stands for the first event. Only trace rows in [from_s, until_s] count (``until_s`` None: to the
    end of the run). Raises ParameterError if the run has no such query or event, or if its protocol builds no overlay.
    """
    protocol_of(run)
    known_messages = list_messages(run.trace)
    if message is None:
        message = next((candidate for candidate in known_messages if candidate[0] == EVENT), None)
    message_index = (
        known_messages.index((message[0], message[1], message[2]))
        if message is not None and tuple(message) in known_messages
        else -1
    )
    if message_index < 0:
        examples = ", ".join(map(str, known_messages[:4])) or "no messages"
        raise ParameterError(f"route: message is {message!r}, which is not in this run; the run has {examples}")
    columns, until_us = Columns(run.trace), time_us_of(run, until_s, "route")
    messages = select(message_table(columns), np.array([message_index]))
    time_us = columns["time_us"]
    rows_in_time = np.flatnonzero((time_us >= round(from_s * 1e6)) & (time_us <= until_us))
    hops, marks = find_hops_and_marks(columns.part(rows_in_time), messages)
    hop_spans = as_spans(Hop, hops | {"message": np.array(MESSAGE_NAMES, object)[hops["message"]]})
    named_marks = marks | {"look": np.array(MARKS, object)[marks["look"]]}
    return Route(
        known_messages[message_index],
        tuple(hop_spans),
        tuple(as_spans(Mark, named_marks, [*columns.words["detail"], ""])),
    )


def find_hops_and_marks(columns: Columns, messages: Table) -> tuple[Table, Table]:
    """Return (hops, marks): a table of the hops, and a table of the marks, on the routes of several queries and events.

    A mark shows what a node did with a message, such as "delivered". Hops are sorted by arrival, marks by time. If
    frames of one message type cross a link repeatedly on a route, only the first arrival is a hop. If a node has
    several marks of one kind on a route, only the first is in the table.

    ``messages``: rows of `message_table`, one for each route. The table of hops has the fields of `Hop`, with
    ``message`` as an index of ``MESSAGE_NAMES``. The table of marks has the fields of `Mark`, with ``look`` as an index
    of ``MARKS``, and ``text`` as an index of ``columns.words["detail"]`` (-1: no text). Both tables have the column
    ``route``, an index of ``messages``.
    """
    hop_table, marks = _hops(columns, messages), _marks(columns, messages)
    marks = select(marks, first_rows(row_keys(marks["route"], marks["look"], marks["node"])))
    return select(hop_table, argsort(hop_table["arrived_us"])), select(marks, lexsort((marks["node"], marks["at_us"])))


def _select_rows_about(columns: Columns, rows: np.ndarray, messages: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return (selected rows, indexes): the rows about any of the messages, and the index of each row's message.

    ``rows``: the numbers of the trace rows to filter; ``messages``: a table with rows of `message_table`, to which the
    indexes refer.
    """
    kind = columns.numbered("message", rows, _KIND_OF)
    row_messages = kind, columns["origin"][rows], columns["sequence"][rows]
    message_row = find_last(row_messages, (messages["kind"], messages["node"], messages["sequence"]))
    return rows[message_row >= 0], message_row[message_row >= 0]


def _hops(columns: Columns, messages: Table) -> Table:
    frames = columns.where(event=("sent", "received"), message=MESSAGE_NAMES)
    frame_rows, message_row = _select_rows_about(columns, frames[columns["peer"][frames] >= 0], messages)
    is_sent = columns.says("event", frame_rows, "sent")
    message_index = columns.numbered("message", frame_rows, _MESSAGES)
    node, peer, time_us = columns["node"][frame_rows], columns["peer"][frame_rows], columns["time_us"][frame_rows]
    sender, receiver = np.where(is_sent, node, peer), np.where(is_sent, peer, node)
    row_hop_keys = row_keys(message_row, message_index, sender, receiver)
    sent_rows, received_rows = np.flatnonzero(is_sent), np.flatnonzero(~is_sent)
    hop_keys, first_sent = unique_index(row_hop_keys[sent_rows])
    arrived_keys, first_arrival = unique_index(row_hop_keys[received_rows])
    hop_rows, arrival_index = sent_rows[first_sent], find_sorted(hop_keys, arrived_keys)
    has_arrived, arrival_row = arrival_index >= 0, np.append(received_rows[first_arrival], 0)[arrival_index]
    hop_table = {
        "sender": sender[hop_rows],
        "receiver": receiver[hop_rows],
        "message": message_index[hop_rows],
        "route": message_row[hop_rows],
    }
    hop_table["from_us"] = time_us[hop_rows] - columns["value"][frame_rows[hop_rows]]
    return hop_table | {"arrived_us": time_us[np.where(has_arrived, arrival_row, hop_rows)], "arrived": has_arrived}


def _marks(columns: Columns, messages: Table) -> Table:
    """Return a table with a mark for each time that a node stores, matches, delivers or drops one of ``messages``.

    Drops of messages that the node had before ("repeated", "duplicate") are omitted.

    ``messages``: a table with rows of `message_table`. Columns of the result: node, look (index of ``MARKS``), at_us,
    text (reason of a drop as an index of ``columns.words["detail"]``, else -1), and route (index of ``messages``).
    """
    marked_rows, message_row = _select_rows_about(columns, columns.where(event=_MARKED_EVENTS), messages)
    look_index = columns.numbered("event", marked_rows, _MARKED_EVENTS)
    is_mark = (look_index != _MARKED_EVENTS["query_stored"]) | (columns["value"][marked_rows] > 0)
    is_dropped = look_index == _MARKED_EVENTS["dropped"]
    is_mark &= ~is_dropped | (columns.numbered("detail", marked_rows, _QUIET) < 0)
    text_index = np.where(is_dropped, columns.codes["detail"][marked_rows], -1)
    marks = {
        "node": columns["node"][marked_rows],
        "look": look_index,
        "at_us": columns["time_us"][marked_rows],
        "text": text_index,
        "route": message_row,
    }
    return select(marks, is_mark)


def tables_of(shown_route: Route) -> tuple[Table, Table]:
    """Return (hops, marks) of a route as tables, like `find_hops_and_marks` but without ``from_us`` and ``text``."""
    hop_table = {
        column_name: np.array([getattr(hop, column_name) for hop in shown_route.hops], np.int64)
        for column_name in ("sender", "receiver")
    }
    hop_table["message"] = np.array([MESSAGE_NAMES.index(hop.message) for hop in shown_route.hops], np.int64)
    hop_table["arrived_us"] = np.array([hop.arrived_us for hop in shown_route.hops], np.int64)
    hop_table |= {
        "arrived": np.array([hop.arrived for hop in shown_route.hops], bool),
        "route": np.zeros(len(shown_route.hops), np.int64),
    }
    marks = {
        column_name: np.array([getattr(mark, column_name) for mark in shown_route.marks], np.int64)
        for column_name in ("node", "at_us")
    }
    marks["look"] = np.array([MARKS.index(mark.look) for mark in shown_route.marks], np.int64)
    return hop_table, marks | {"route": np.zeros(len(shown_route.marks), np.int64)}

"""A query's or an event's way through the network: hops, rendezvous nodes, notifications, and where it ended.

    routed(trace)                          what there is to follow: [("query", sink, number), ("event", node, number)]
    route(run, what, from_s, until_s)      the way of one of them: a `Route`
    travelled(columns, rows, wanted)       those of many, as tables of hops and marks

Theory of operation
    A hop is a unicast frame of the message that arrived; a frame that is repeated, or sent to two trees over one
    link, is one hop, at its first arrival. So is each link that only ever lost it, with ``arrived`` False. An event's
    route is that of the event and of the notifications about it, which carry its number.

    A query's rendezvous nodes log that they have stored it, an event's that they match it.

Limits
    A query is sent again and again. Its route is all that was new since ``from_s``, be it a refresh or a repair.
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

What = tuple[str, int, int]
QUERY, EVENT, NOTIFICATION = MESSAGE_NAMES = ("query", "event", "notification")
KINDS = {QUERY: (QUERY,), EVENT: (EVENT, NOTIFICATION)}
_KIND_OF = {message: which for which, messages in enumerate(KINDS.values()) for message in messages}
_MESSAGES = {message: which for which, message in enumerate(MESSAGE_NAMES)}
MARKS = ("stored", "matched", "delivered", "dropped")
_TELLS = {event: which for which, event in enumerate(("query_stored", "event_matched", "delivered", "dropped"))}
_QUIET = {"repeated": 0, "duplicate": 0}  # drops that only say that a node had it already


class Hop(NamedTuple):
    """A message went from sender to receiver; from_us: when the frame began, arrived_us: when it was there."""

    sender: int
    receiver: int
    message: str
    from_us: int
    arrived_us: int
    arrived: bool = True


class Mark(NamedTuple):
    """Something that happened at a node: look is stored, matched, delivered or dropped (text: the reason)."""

    node: int
    look: str
    at_us: int
    text: str = ""


@dataclass(frozen=True)
class Route:
    """The way of one message, hops and marks in order of time."""

    what: What
    hops: tuple[Hop, ...]
    marks: tuple[Mark, ...]

    def until(self, hops: int) -> Route:
        """The route as far as its first so many hops that arrived, with what had happened by then."""
        arrived = [hop for hop in self.hops if hop.arrived][:hops]
        last_us = arrived[-1].arrived_us if arrived else self.hops[0].from_us if self.hops else 0
        kept = tuple(hop for hop in self.hops if hop in arrived or (not hop.arrived and hop.arrived_us <= last_us))
        return Route(self.what, kept, tuple(mark for mark in self.marks if mark.at_us <= last_us))

    def nodes(self, look: str) -> list[int]:
        """The nodes with a kind of mark, in order of time."""
        return list(dict.fromkeys(mark.node for mark in self.marks if mark.look == look))

    def links(self, message: str) -> list[tuple[int, int]]:
        """(sender, receiver) of the hops of a message that arrived, in order of time."""
        return [(hop.sender, hop.receiver) for hop in self.hops if hop.message == message and hop.arrived]

    def in_words(self, message: str) -> str:
        """The hops of a message that arrived, in order of time: "13 → 6, 6 → 7"."""
        return ", ".join(f"{sender} → {receiver}" for sender, receiver in self.links(message))

    def path(self, message: str, start: int, end: int) -> list[int]:
        """The nodes from start to end along the first hops into each of them; [] if these do not lead there."""
        came_from: dict[int, int] = {}
        for sender, receiver in self.links(message):
            came_from.setdefault(receiver, sender)
        path = [end]
        while path[-1] != start and path[-1] in came_from and len(path) <= len(came_from):
            path.append(came_from[path[-1]])
        return path[::-1] if path[-1] == start else []


def routed(trace: pa.Table) -> list[What]:
    """The queries and events of a trace in the order in which they came up."""
    found = to_follow(Columns(trace))
    kinds = [list(KINDS)[kind] for kind in found["kind"].tolist()]
    return list(zip(kinds, found["node"].tolist(), found["sequence"].tolist(), strict=True))


def to_follow(columns: Columns) -> Table:
    """The same as a table: kind, node, sequence, from_us; kind: a place in ``KINDS``."""
    rows = columns.where(event=("subscribed", "originated"))
    found = {name: columns[name][rows].astype(np.int64) for name in ("node", "sequence")}
    found["kind"] = columns.numbered("event", rows, {"subscribed": 0, "originated": 1})
    return select(found | {"from_us": columns["time_us"][rows]}, first_rows(row_keys(*found.values())))


def route(run: Any, what: What | None = None, from_s: float = 0.0, until_s: float | None = None) -> Route:
    """The way of a query, ("query", sink, number), or of an event, ("event", publisher, number).

    None is the first event. Raises ParameterError if the run has no such thing, or no overlay.
    """
    protocol_of(run)
    known = routed(run.trace)
    if what is None:
        what = next((one for one in known if one[0] == EVENT), None)
    at = known.index((what[0], what[1], what[2])) if what is not None and tuple(what) in known else -1
    if at < 0:
        here = ", ".join(map(str, known[:4])) or "none"
        raise ParameterError(f"route: there is no {what!r} in this run; here: {here}")
    columns, until_us = Columns(run.trace), time_us_of(run, until_s, "route")
    wanted = select(to_follow(columns), np.array([at]))
    time_us = columns["time_us"]
    in_time = np.flatnonzero((time_us >= round(from_s * 1e6)) & (time_us <= until_us))
    hops, marks = travelled(columns.part(in_time), wanted)
    went = as_spans(Hop, hops | {"message": np.array(MESSAGE_NAMES, object)[hops["message"]]})
    happened = marks | {"look": np.array(MARKS, object)[marks["look"]]}
    return Route(known[at], tuple(went), tuple(as_spans(Mark, happened, [*columns.words["detail"], ""])))


def travelled(columns: Columns, wanted: Table) -> tuple[Table, Table]:
    """The hops and marks of some messages, in order of time.

    wanted: rows of `to_follow`. Hops: the fields of `Hop` and way, a row of ``wanted``, with messages as places in
    `MESSAGE_NAMES`; marks: those of `Mark` and way, with looks as places in ``MARKS`` and texts as codes of
    ``columns.words["detail"]``, -1 none.
    """
    hops, marks = _hops(columns, wanted), _marks(columns, wanted)
    marks = select(marks, first_rows(row_keys(marks["way"], marks["look"], marks["node"])))
    return select(hops, argsort(hops["arrived_us"])), select(marks, lexsort((marks["node"], marks["at_us"])))


def _wanted(columns: Columns, rows: np.ndarray, wanted: Table) -> tuple[np.ndarray, np.ndarray]:
    """Of some rows those about wanted messages, and which of these each is about."""
    kind = columns.numbered("message", rows, _KIND_OF)
    about = kind, columns["origin"][rows], columns["sequence"][rows]
    way = find_last(about, (wanted["kind"], wanted["node"], wanted["sequence"]))
    return rows[way >= 0], way[way >= 0]


def _hops(columns: Columns, wanted: Table) -> Table:
    frames = columns.where(event=("sent", "received"), message=MESSAGE_NAMES)
    rows, way = _wanted(columns, frames[columns["peer"][frames] >= 0], wanted)
    is_sent = columns.says("event", rows, "sent")
    message = columns.numbered("message", rows, _MESSAGES)
    node, peer, time_us = columns["node"][rows], columns["peer"][rows], columns["time_us"][rows]
    sender, receiver = np.where(is_sent, node, peer), np.where(is_sent, peer, node)
    key = row_keys(way, message, sender, receiver)
    sent, received = np.flatnonzero(is_sent), np.flatnonzero(~is_sent)
    known, first = unique_index(key[sent])
    came, first_came = unique_index(key[received])
    hop, place = sent[first], find_sorted(known, came)
    arrived, arrival = place >= 0, np.append(received[first_came], 0)[place]
    hops = {"sender": sender[hop], "receiver": receiver[hop], "message": message[hop], "way": way[hop]}
    hops["from_us"] = time_us[hop] - columns["value"][rows[hop]]
    return hops | {"arrived_us": time_us[np.where(arrived, arrival, hop)], "arrived": arrived}


def _marks(columns: Columns, wanted: Table) -> Table:
    """What nodes logged of a message."""
    rows, way = _wanted(columns, columns.where(event=_TELLS), wanted)
    look = columns.numbered("event", rows, _TELLS)
    is_told = (look != _TELLS["query_stored"]) | (columns["value"][rows] > 0)
    is_dropped = look == _TELLS["dropped"]
    is_told &= ~is_dropped | (columns.numbered("detail", rows, _QUIET) < 0)
    text = np.where(is_dropped, columns.codes["detail"][rows], -1)
    found = {"node": columns["node"][rows], "look": look, "at_us": columns["time_us"][rows], "text": text, "way": way}
    return select(found, is_told)


def tables_of(way: Route) -> tuple[Table, Table]:
    """A route as tables of hops and marks, as `travelled` has them, without texts."""
    hops = {name: np.array([getattr(hop, name) for hop in way.hops], np.int64) for name in ("sender", "receiver")}
    hops["message"] = np.array([MESSAGE_NAMES.index(hop.message) for hop in way.hops], np.int64)
    hops["arrived_us"] = np.array([hop.arrived_us for hop in way.hops], np.int64)
    hops |= {"arrived": np.array([hop.arrived for hop in way.hops], bool), "way": np.zeros(len(way.hops), np.int64)}
    marks = {name: np.array([getattr(mark, name) for mark in way.marks], np.int64) for name in ("node", "at_us")}
    marks["look"] = np.array([MARKS.index(mark.look) for mark in way.marks], np.int64)
    return hops, marks | {"way": np.zeros(len(way.marks), np.int64)}

"""The paths of publications over the mesh: hops that led to a delivery, useless hops, and acknowledgements.

    publications(trace)             the publications of a trace: a list of `Published`, in order of time
    publication_path(run, which)    the path of one publication: a `Path`
    paths(run)                      the paths of the first `MOST_PATHS` publications of a run

Theory of operation
    A hop is a frame of the publication from one node to another. The first hop that reaches a node brings the
    publication there; later hops to that node are *repeated*, because the mesh had a loop. From each node with a
    delivery, the first hops lead back to the publisher; these hops are *useful*. All other first hops are *in vain*.
    The node at which a useless path ends has a mark with the reason:

    dead_end        neither a subscription at the node nor a filter of another neighbor matches. The publication came
                    because the node has sent a union of these filters, and a union can match although none of its
                    filters does
    no_match        the node's own filter matches, but no topic of a subscription does
    out_of_range    topics match, but attributes do not (TEMP GE 25 becomes the topic TEMP/+)

    A hop in vain is not always a false positive of a Bloom filter. The filter of "a/+" also matches "a/b/c", and that
    of "TEMP GE 25" also TEMP 20, whatever the filter's length. Interests that were received over a link before it was
    muted may also remain in a neighbor's sum (``count_muted``). To measure the false positives of Bloom filters,
    compare with the same run with the longest filter.

Cost
    Array operations over the frames of publications, and one step of Python for each hop of a requested path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.columns import argsort, find_sorted, first_rows, row_keys, unique_index
from workbench.errors import ParameterError
from workbench.keywords import refuse_unknown
from workbench.protocols.dps.views.mesh import protocol_of
from workbench.sim.rows import Columns
from workbench.views.frames import paths_of
from workbench.views.layers import MessagePath, MessagePaths, Table, select, tuples

PUBLICATION, ACKNOWLEDGEMENT = "publication", "acknowledgement"
REASONS = ("dead_end", "no_match", "out_of_range")
HOPS = ("useful", "in vain", "repeated", "lost", "acknowledged")
MARKS = ("delivered", *REASONS)
USEFUL_HOP, IN_VAIN_HOP, REPEATED_HOP, LOST_HOP, ACKNOWLEDGED_HOP = range(len(HOPS))
MOST_PATHS = 200


class Published(NamedTuple):
    """A publication of a run.

    node      publisher
    sequence  number that identifies the publication in the trace: number of its series << 32 | its number in the series
    at_us     time of publishing (µs)
    text      attributes of the publication, or "" if the trace does not contain them
    """

    node: int
    sequence: int
    at_us: int
    text: str

    @property
    def name(self) -> str:
        """Title of the publication in figures: its attributes, its publisher and its time."""
        return f"{self.text or 'a publication'} of node {self.node}, {self.at_us / 1e6:,.2f} s"

    @property
    def frames(self) -> tuple[tuple[int, int, str], ...]:
        """Keys (node, sequence, kind of message) of the frames of the publication and of its acknowledgements."""
        return tuple((self.node, self.sequence, message) for message in (PUBLICATION, ACKNOWLEDGEMENT))


class Hop(NamedTuple):
    """A frame of a publication, or of an acknowledgement of it, from one node to another.

    from_us     time of sending (µs)
    arrived_us  time of arrival or, for a lost frame, of the loss (µs)
    look        kind of hop, one of `HOPS`
    """

    sender: int
    receiver: int
    from_us: int
    arrived_us: int
    look: str


class Mark(NamedTuple):
    """A mark at a node that shows what happened to a publication there: delivered, or dropped with a reason.

    look   kind of result, one of `MARKS`: "delivered", or the reason of the drop
    at_us  time of the result (µs)
    """

    node: int
    look: str
    at_us: int


@dataclass(frozen=True)
class Path:
    """The path of a publication: its hops and its marks (results at nodes), in order of time.

    ``matches``: number of deliveries.
    """

    publication: Published
    hops: tuple[Hop, ...]
    marks: tuple[Mark, ...]
    matches: int

    __getattr__ = refuse_unknown

    def count(self, look: str) -> int:
        """Return the number of hops of one kind; ``look`` is one of `HOPS`."""
        return sum(hop.look == look for hop in self.hops)

    def nodes(self, look: str) -> list[int]:
        """Return the nodes at which the publication had the result ``look`` (one of `MARKS`), in ascending order."""
        return sorted({mark.node for mark in self.marks if mark.look == look})

    def until(self, hops: int) -> Path:
        """Return a Path with the first ``hops`` hops of this path, and the marks up to their last arrival."""
        first_hops = self.hops[:hops]
        last_us = max((hop.arrived_us for hop in first_hops), default=self.publication.at_us)
        marks = tuple(mark for mark in self.marks if mark.at_us <= last_us)
        is_uncut = len(first_hops) == len(self.hops)
        matches = self.matches if is_uncut else sum(mark.look == "delivered" for mark in marks)
        return Path(self.publication, first_hops, marks, matches)

    def in_words(self) -> str:
        """Return a sentence that describes the path: numbers of hops and deliveries, and its duration."""
        last_us = max((hop.arrived_us for hop in self.hops), default=self.publication.at_us)
        return in_words([self.count(look) for look in HOPS], self.matches, last_us - self.publication.at_us)


def in_words(counts: Sequence[int], matches: int, took_us: int) -> str:
    """Return a sentence that describes the path of a publication.

    ``counts``: number of hops of each kind, in the order of `HOPS`; ``matches``: number of deliveries; ``took_us``:
    time from publishing to the last arrival (µs).
    """
    hop_count = sum(counts) - counts[ACKNOWLEDGED_HOP]
    if not hop_count:
        return f"no filter matched: it was sent over no link; delivered {matches} times"
    phrases = [f"{hop_count} hops", f"{counts[USEFUL_HOP]} of them towards a delivery"]
    phrases += [f"{counts[look]} {HOPS[look]}" for look in (IN_VAIN_HOP, REPEATED_HOP, LOST_HOP) if counts[look]]
    text = ", ".join(phrases) + f"; delivered {matches} {'time' if matches == 1 else 'times'}"
    return f"{text}; {took_us / 1000:,.1f} ms"


def publications(trace: pa.Table) -> list[Published]:
    """Return the publications of a trace, in order of time. Raises DataError if the table is not a trace."""
    return published_in(Columns(trace))


def published_in(columns: Columns, most: int | None = None) -> list[Published]:
    """Return the first ``most`` publications of a trace (None: all), in order of time."""
    published_rows = columns.where(event="published")
    texts_of_readings = {
        (node, reading): text for node, reading, text in columns.tuples(published_rows, "node", "sequence", "detail")
    }
    originated_rows = columns.where(event="originated", message=PUBLICATION)[:most]
    return [
        Published(node, sequence, time_us, texts_of_readings.get((node, reading), ""))
        for node, sequence, time_us, reading in columns.tuples(originated_rows, "node", "sequence", "time_us", "value")
    ]


def publication_path(run: Any, which: int = 0) -> Path:
    """Return the path of one publication of a run; ``which`` is its index in `publications` (negative: from the end).

    Raises ParameterError for an index out of range, or for a run of another protocol.
    """
    protocol_of(run)
    published = publications(run.trace)
    if not -len(published) <= which < len(published):
        raise ParameterError(
            f"publication_path: `which` is {which!r}; this run has {len(published)} publications, numbered from 0"
        )
    return _paths(Columns(run.trace), [published[which]])[0]


def paths(run: Any, most: int = MOST_PATHS) -> list[Path]:
    """Return the paths of the first ``most`` publications of a run.

    Raises ParameterError for a run of another protocol.
    """
    protocol_of(run)
    columns = Columns(run.trace)
    return _paths(columns, published_in(columns, most))


def _paths(columns: Columns, wanted: list[Published]) -> list[Path]:
    steps = steps_of(columns, wanted)
    hops: list[list[Hop]] = [[] for _ in wanted]
    marks_of_publications: list[list[Mark]] = [[] for _ in wanted]
    column_names = "way", "node", "peer", "value", "from_us", "look"
    for publication_index, sender, receiver, from_us, arrived_us, look in tuples(steps.hops, *column_names):
        hops[publication_index].append(Hop(sender, receiver, from_us, arrived_us, HOPS[look]))
    for publication_index, node, look, at_us in tuples(steps.marks, "way", "node", "look", "from_us"):
        marks_of_publications[publication_index].append(Mark(node, MARKS[look], at_us))
    path_entries = zip(wanted, hops, marks_of_publications, steps.matches.tolist(), strict=True)
    return [
        Path(
            publication,
            tuple(sorted(path_hops, key=_arrival_key)),
            tuple(sorted(path_marks, key=lambda mark: (mark.at_us, mark.node))),
            delivery_count,
        )
        for publication, path_hops, path_marks, delivery_count in path_entries
    ]


def _arrival_key(hop: Hop) -> tuple[int, int, int]:
    return hop.arrived_us, hop.sender, hop.receiver


class Steps(NamedTuple):
    """The hops and marks (results at nodes) of a list of publications, as two tables: a row for each hop or mark.

    hops     columns node, peer: sender and receiver; value: begin of sending (µs); from_us: time of arrival (µs);
             look: kind of hop, an index in `HOPS`
    marks    columns node: node with the result; from_us: time of the result (µs); look: an index in `MARKS`
    matches  number of deliveries of each publication

    In both tables, the column ``way`` is the index of the publication in the list.
    """

    hops: Table
    marks: Table
    matches: np.ndarray


def steps_of(columns: Columns, wanted: Sequence[Published]) -> Steps:
    """Return the hops and marks (results at nodes) of the publications in ``wanted`` from the columns of a trace."""
    marks, matches = _marks(columns, wanted)
    return Steps(_hops(columns, wanted, marks), marks, matches)


def _publication_indices(columns: Columns, rows: np.ndarray, wanted: Sequence[Published]) -> np.ndarray:
    """Return, for each of the trace rows ``rows``, the index in ``wanted`` of the publication that the row concerns.

    The index is -1 if ``wanted`` lacks the publication. ``rows``: indices of trace rows.
    """
    paths = (MessagePath(publication.name, publication.at_us, publication.frames) for publication in wanted)
    return paths_of(columns, rows, MessagePaths(tuple(paths)))


def _frames(columns: Columns, wanted: Sequence[Published]) -> Table:
    """Return a table of the frames of the publications in ``wanted`` and of their acknowledgements.

    The table has the columns of `Steps.hops`, and a row for each sent frame, in the order of sending.

    look     kind of hop: `REPEATED_HOP` for a publication's frame that arrived (`_hops` corrects the first arrivals),
             `ACKNOWLEDGED_HOP` for an acknowledgement that arrived, `LOST_HOP` for a frame that did not arrive
    from_us  time of arrival or loss (µs)
    """
    frame_rows = columns.where(event=("sent", "received"), message=(PUBLICATION, ACKNOWLEDGEMENT))
    publication_index = _publication_indices(columns, frame_rows, wanted)
    is_wanted = (publication_index >= 0) & (columns["peer"][frame_rows] >= 0)
    frame_rows, publication_index = frame_rows[is_wanted], publication_index[is_wanted]
    is_sent, is_answer = columns.says("event", frame_rows, "sent"), columns.says("message", frame_rows, ACKNOWLEDGEMENT)
    node, peer, time_us = (columns[name][frame_rows] for name in ("node", "peer", "time_us"))
    sender, receiver = np.where(is_sent, node, peer), np.where(is_sent, peer, node)
    # An arrival belongs to the frame of the same kind that was sent last between these nodes.
    frame_key = row_keys(publication_index, is_answer.astype(np.int8), sender, receiver)
    sorted_rows = argsort(frame_key)
    earlier_rows, later_rows = sorted_rows[:-1], sorted_rows[1:]
    is_arrival = (frame_key[earlier_rows] == frame_key[later_rows]) & is_sent[earlier_rows] & ~is_sent[later_rows]
    arrival_us = time_us.copy()
    arrival_us[earlier_rows[is_arrival]] = time_us[later_rows[is_arrival]]
    look = np.full(len(frame_rows), LOST_HOP)
    look[earlier_rows[is_arrival]] = REPEATED_HOP
    look[is_answer & (look == REPEATED_HOP)] = ACKNOWLEDGED_HOP
    frames = {"way": publication_index, "node": node, "peer": peer, "look": look, "from_us": arrival_us}
    frames |= {"value": time_us - columns["value"][frame_rows]}
    return select(frames, is_sent)


def _hops(columns: Columns, wanted: Sequence[Published], marks: Table) -> Table:
    """Return the table `Steps.hops` of the publications in ``wanted``, in order of arrival.

    ``marks``: the table `Steps.marks`. A hop is useful if it is on the path from the publisher to a node with a
    delivery. To find this path, the function follows the first hop to each node back to the publisher.
    """
    hops = _frames(columns, wanted)
    hops = select(hops, argsort(hops["from_us"]))
    publication_index, node, peer, look = (hops[name] for name in ("way", "node", "peer", "look"))
    publisher = np.array([publication.node for publication in wanted] or [-1])
    key_scale = 1 + int(max(publisher.max(), node.max(initial=0), peer.max(initial=0), marks["node"].max(initial=0)))
    arrivals = np.flatnonzero((look == REPEATED_HOP) & (peer != publisher[publication_index]))
    arrival_keys, key_rows = unique_index(publication_index[arrivals].astype(np.int64) * key_scale + peer[arrivals])
    first_hops = arrivals[key_rows]
    look[first_hops] = IN_VAIN_HOP
    is_delivered = marks["look"] == 0
    keys_to_follow = marks["way"][is_delivered].astype(np.int64) * key_scale + marks["node"][is_delivered]
    while len(keys_to_follow) and len(first_hops):
        key_position = find_sorted(keys_to_follow, arrival_keys)
        useful_hops = np.unique(first_hops[key_position[key_position >= 0]])
        useful_hops = useful_hops[look[useful_hops] == IN_VAIN_HOP]
        look[useful_hops] = USEFUL_HOP
        keys_to_follow = publication_index[useful_hops].astype(np.int64) * key_scale + node[useful_hops]
    return hops


def _marks(columns: Columns, wanted: Sequence[Published]) -> tuple[Table, np.ndarray]:
    """Return (table of marks, number of deliveries of each publication) for the publications in ``wanted``.

    A mark is a delivery or a drop of a publication at a node. The table has the columns of `Steps.marks`. If a
    publication has several marks of the same kind at a node, the table has only the first.
    """
    mark_rows = columns.where(event=("delivered", "dropped"), message=PUBLICATION)
    publication_index = _publication_indices(columns, mark_rows, wanted)
    reason_looks = columns.numbered(
        "detail", mark_rows, {reason: look_index for look_index, reason in enumerate(REASONS, 1)}
    )
    look = np.where(columns.says("event", mark_rows, "delivered"), 0, reason_looks)
    is_wanted = (publication_index >= 0) & (look >= 0)
    mark_rows, publication_index, look = mark_rows[is_wanted], publication_index[is_wanted], look[is_wanted]
    delivery_counts = np.bincount(publication_index[look == 0], minlength=len(wanted))
    node, time_us = columns["node"][mark_rows], columns["time_us"][mark_rows]
    first_marks = first_rows(row_keys(publication_index, look, node))
    return {
        "way": publication_index[first_marks],
        "node": node[first_marks],
        "look": look[first_marks],
        "from_us": time_us[first_marks],
    }, delivery_counts

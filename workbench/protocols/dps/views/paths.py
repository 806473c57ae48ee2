"""A publication's way over the mesh: hops that led to a delivery, hops in vain, and acknowledgements.

    publications(trace)                     what was published: [Published], in order of time
    publication_path(run, which)            the way of one of them: a `Path`; paths(run): of all of them

Theory of operation
    A hop is a frame of the publication that one node sent another. The first one that brought it to a node is how the
    node got it; others are *repeated*: the mesh had a loop there. From each node with a delivery the first hops lead
    back to the publisher, and these hops are *useful*; all others that were first somewhere are *in vain*. A node in
    vain has a mark of its reason:

    dead_end        no filter of its own says yes, and it does not pass it on: somebody's said yes without need
    no_match        its own filter said yes, its topics no
    out_of_range    its topics said yes, its attributes no (TEMP GE 25 is the topic TEMP/+)

    ``matches`` says at how many places the publication was wanted at all. What went over a link in vain need not be a
    false positive of Bloom's: "a/+" says yes to "a/b/c", and "TEMP GE 25" to TEMP 20, at any length; and interests
    which came over a link before it was muted may still stand in somebody's sum (``count_muted``). Bloom's share is
    what is above the same run with the longest filter.

Cost
    Array operations over the frames of publications; a step for each hop of a path that is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.columns import argsort, find_sorted, first_rows, row_keys, unique_index
from workbench.errors import ParameterError
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
    """A publication: its publisher, its number in a trace (series << 32 | number), when, and what."""

    node: int
    sequence: int
    at_us: int
    text: str

    @property
    def name(self) -> str:
        """What it is called in figures."""
        return f"{self.text or 'a publication'} of node {self.node}, {self.at_us / 1e6:,.2f} s"

    @property
    def frames(self) -> tuple[tuple[int, int, str], ...]:
        """Its frames and those of its acknowledgements, as `views.layers.Way` has them."""
        return tuple((self.node, self.sequence, message) for message in (PUBLICATION, ACKNOWLEDGEMENT))


class Hop(NamedTuple):
    """A frame from sender to receiver. look: useful, in vain, repeated, lost, acknowledged."""

    sender: int
    receiver: int
    from_us: int
    arrived_us: int
    look: str


class Mark(NamedTuple):
    """What a publication met at a node: look is delivered, or one of `REASONS`."""

    node: int
    look: str
    at_us: int


@dataclass(frozen=True)
class Path:
    """The way of a publication, hops and marks in order of time; matches: how often it was delivered."""

    what: Published
    hops: tuple[Hop, ...]
    marks: tuple[Mark, ...]
    matches: int

    def count(self, look: str) -> int:
        """How many hops look so."""
        return sum(hop.look == look for hop in self.hops)

    def nodes(self, look: str) -> list[int]:
        """The nodes with a kind of mark, ascending."""
        return sorted({mark.node for mark in self.marks if mark.look == look})

    def until(self, hops: int) -> Path:
        """The path as far as its first so many hops, with what had happened by then."""
        kept = self.hops[:hops]
        last_us = max((hop.arrived_us for hop in kept), default=self.what.at_us)
        marks = tuple(mark for mark in self.marks if mark.at_us <= last_us)
        is_whole = len(kept) == len(self.hops)
        matches = self.matches if is_whole else sum(mark.look == "delivered" for mark in marks)
        return Path(self.what, kept, marks, matches)

    def in_words(self) -> str:
        """The path in a sentence."""
        last_us = max((hop.arrived_us for hop in self.hops), default=self.what.at_us)
        return in_words([self.count(look) for look in HOPS], self.matches, last_us - self.what.at_us)


def in_words(counts: Sequence[int], matches: int, took_us: int) -> str:
    """A path in a sentence: how many hops look as each of `HOPS`, how often it was delivered, how long it took."""
    hops = sum(counts) - counts[ACKNOWLEDGED_HOP]
    if not hops:
        return f"no filter said yes: it went over no link; delivered {matches} times"
    said = [f"{hops} hops", f"{counts[USEFUL_HOP]} of them towards a delivery"]
    said += [f"{counts[look]} {HOPS[look]}" for look in (IN_VAIN_HOP, REPEATED_HOP, LOST_HOP) if counts[look]]
    text = ", ".join(said) + f"; delivered {matches} {'time' if matches == 1 else 'times'}"
    return f"{text}; {took_us / 1000:,.1f} ms"


def publications(trace: pa.Table) -> list[Published]:
    """What was published, in order of time. DataError if the table is no trace."""
    return published_in(Columns(trace))


def published_in(columns: Columns, most: int | None = None) -> list[Published]:
    """The first ``most`` publications of a trace (None: all), in order of time."""
    said = columns.where(event="published")
    texts = {(node, reading): text for node, reading, text in columns.tuples(said, "node", "sequence", "detail")}
    rows = columns.where(event="originated", message=PUBLICATION)[:most]
    return [
        Published(node, sequence, time_us, texts.get((node, reading), ""))
        for node, sequence, time_us, reading in columns.tuples(rows, "node", "sequence", "time_us", "value")
    ]


def publication_path(run: Any, which: int = 0) -> Path:
    """The way of a run's publication, by its place in `publications` (negative: from the end).

    Raises ParameterError if there is none, or for a run of another protocol.
    """
    protocol_of(run)
    known = publications(run.trace)
    if not -len(known) <= which < len(known):
        raise ParameterError(f"publication_path: which is {which!r}; this run has {len(known)} publications")
    return _paths(Columns(run.trace), [known[which]])[0]


def paths(run: Any, most: int = MOST_PATHS) -> list[Path]:
    """The ways of the first ``most`` publications of a run."""
    protocol_of(run)
    columns = Columns(run.trace)
    return _paths(columns, published_in(columns, most))


def _paths(columns: Columns, wanted: list[Published]) -> list[Path]:
    found = steps_of(columns, wanted)
    hops: list[list[Hop]] = [[] for _ in wanted]
    marks: list[list[Mark]] = [[] for _ in wanted]
    names = "way", "node", "peer", "value", "from_us", "look"
    for way, sender, receiver, from_us, arrived_us, look in tuples(found.hops, *names):
        hops[way].append(Hop(sender, receiver, from_us, arrived_us, HOPS[look]))
    for way, node, look, at_us in tuples(found.marks, "way", "node", "look", "from_us"):
        marks[way].append(Mark(node, MARKS[look], at_us))
    made = zip(wanted, hops, marks, found.matches.tolist(), strict=True)
    return [
        Path(
            what,
            tuple(sorted(some, key=_by_arrival)),
            tuple(sorted(met, key=lambda mark: (mark.at_us, mark.node))),
            count,
        )
        for what, some, met, count in made
    ]


def _by_arrival(hop: Hop) -> tuple[int, int, int]:
    return hop.arrived_us, hop.sender, hop.receiver


class Steps(NamedTuple):
    """The ways of some publications, by their places in a list (``way``).

    hops: frames from ``node`` to ``peer``, from when they arrived; look: a number of `HOPS`; value: when they began.
    marks: what they met at nodes; look: a number of `MARKS`. matches: how often each was delivered.
    """

    hops: Table
    marks: Table
    matches: np.ndarray


def steps_of(columns: Columns, wanted: Sequence[Published]) -> Steps:
    """The hops and marks of some publications, each in order of time."""
    marks, matches = _marks(columns, wanted)
    return Steps(_hops(columns, wanted, marks), marks, matches)


def _ways(columns: Columns, rows: np.ndarray, wanted: Sequence[Published]) -> np.ndarray:
    """Which of some publications each row of the trace is about; -1 none."""
    return paths_of(columns, rows, MessagePaths(tuple(MessagePath(one.name, one.at_us, one.frames) for one in wanted)))


def _frames(columns: Columns, wanted: Sequence[Published]) -> Table:
    """The frames of some publications in the order in which they were sent.

    look: `REPEATED_HOP`, `LOST_HOP` or `ACKNOWLEDGED_HOP`; from_us: when they arrived, or were lost.
    """
    rows = columns.where(event=("sent", "received"), message=(PUBLICATION, ACKNOWLEDGEMENT))
    way = _ways(columns, rows, wanted)
    kept = (way >= 0) & (columns["peer"][rows] >= 0)
    rows, way = rows[kept], way[kept]
    is_sent, is_answer = columns.says("event", rows, "sent"), columns.says("message", rows, ACKNOWLEDGEMENT)
    node, peer, time_us = (columns[name][rows] for name in ("node", "peer", "time_us"))
    sender, receiver = np.where(is_sent, node, peer), np.where(is_sent, peer, node)
    # A row that tells of a frame's arrival is about the last frame of its kind between these nodes.
    key = row_keys(way, is_answer.astype(np.int8), sender, receiver)
    order = argsort(key)
    before, after = order[:-1], order[1:]
    is_arrival = (key[before] == key[after]) & is_sent[before] & ~is_sent[after]
    arrived = time_us.copy()
    arrived[before[is_arrival]] = time_us[after[is_arrival]]
    look = np.full(len(rows), LOST_HOP)
    look[before[is_arrival]] = REPEATED_HOP
    look[is_answer & (look == REPEATED_HOP)] = ACKNOWLEDGED_HOP
    made = {"way": way, "node": node, "peer": peer, "look": look, "from_us": arrived}
    made |= {"value": time_us - columns["value"][rows]}
    return select(made, is_sent)


def _hops(columns: Columns, wanted: Sequence[Published], marks: Table) -> Table:
    """The frames of some publications, of which those that led to a delivery are found from their ends."""
    hops = _frames(columns, wanted)
    hops = select(hops, argsort(hops["from_us"]))
    way, node, peer, look = (hops[name] for name in ("way", "node", "peer", "look"))
    publisher = np.array([one.node for one in wanted] or [-1])
    scale = 1 + int(max(publisher.max(), node.max(initial=0), peer.max(initial=0), marks["node"].max(initial=0)))
    firsts = np.flatnonzero((look == REPEATED_HOP) & (peer != publisher[way]))
    places, which = unique_index(way[firsts].astype(np.int64) * scale + peer[firsts])
    came = firsts[which]
    look[came] = IN_VAIN_HOP
    delivered = marks["look"] == 0
    reached = marks["way"][delivered].astype(np.int64) * scale + marks["node"][delivered]
    while len(reached) and len(came):
        place = find_sorted(reached, places)
        found = np.unique(came[place[place >= 0]])
        found = found[look[found] == IN_VAIN_HOP]
        look[found] = USEFUL_HOP
        reached = way[found].astype(np.int64) * scale + node[found]
    return hops


def _marks(columns: Columns, wanted: Sequence[Published]) -> tuple[Table, np.ndarray]:
    """What publications met, the first of each kind at each node, and how often each was delivered."""
    rows = columns.where(event=("delivered", "dropped"), message=PUBLICATION)
    way = _ways(columns, rows, wanted)
    reasons = columns.numbered("detail", rows, {word: which + 1 for which, word in enumerate(REASONS)})
    look = np.where(columns.says("event", rows, "delivered"), 0, reasons)
    kept = (way >= 0) & (look >= 0)
    rows, way, look = rows[kept], way[kept], look[kept]
    matches = np.bincount(way[look == 0], minlength=len(wanted))
    node, time_us = columns["node"][rows], columns["time_us"][rows]
    first = first_rows(row_keys(way, look, node))
    return {"way": way[first], "node": node[first], "look": look[first], "from_us": time_us[first]}, matches

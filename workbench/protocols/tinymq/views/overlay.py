"""TinyMQ's overlay, replayed from a trace: who had which key in which tree, who had none, who stored which query.

    overlay_of(run)                                 the overlay of a run of TinyMQ or PUB-2-SUB+
    overlay(trace, roots, duration_us)              the same from a trace

Theory of operation
    ``key_set`` rows give and take keys, ``query_stored`` rows come and go with queries, ``failed`` and ``recovered``
    rows cut both: a node that is down has no place, and finds its own again when it is up, as an outage keeps its
    memory. So one pass over these few rows gives spans of time. A node that is up and in no span of a place is an
    *orphan*; in PUB-2-SUB+, where a node belongs to every tree, one is too that lacks a place in one of them.

    A place is *re-keyed* if its node had another key, or was in another tree, just before the last failure in the
    network. With the next failure the count begins anew: what is drawn is the repair of that failure. `repair_metrics`
    compares the end of a run with the time before the first one. Nodes without a place are orphans, and not re-keyed,
    in either.

Cost
    A step for each of these rows, and one for each failure within a span; frames are never looked at.

Limits
    A trace tells keys as their nodes have them. While a change spreads, parent and child may be of two minds, and two
    nodes may claim the same string. `query_stored` does not name a tree: what a node of PUB-2-SUB+ stores is taken to
    be stored in each of its trees.

Reference
    Events KeySet and QueryStored of `workbench.protocols.contract`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from workbench.errors import ParameterError
from workbench.protocols.tinymq import TinyMQ
from workbench.views.player.columns import Columns
from workbench.views.player.intervals import read


class PlaceSpan(NamedTuple):
    """A node's place in a tree during [from_us, until_us); parent: -1 at a root."""

    node: int
    tree: int
    parent: int
    key: str
    from_us: int
    until_us: int
    is_rekeyed: bool = False

    @property
    def depth(self) -> int:
        """Hops to the root: each of them has put a 1 at the end of the key."""
        return self.key.count("1")


class OrphanSpan(NamedTuple):
    """A node that is up has no place during [from_us, until_us); had_place: it had one before."""

    node: int
    from_us: int
    until_us: int
    had_place: bool


class StoredSpan(NamedTuple):
    """A node stores the query (sink, number) during [from_us, until_us); text: its attributes."""

    node: int
    sink: int
    number: int
    text: str
    from_us: int
    until_us: int


@dataclass(frozen=True)
class Overlay:
    """The overlay of a run in time, each list in order of ``from_us``; roots: the root of each tree."""

    roots: tuple[int, ...]
    places: tuple[PlaceSpan, ...]
    orphans: tuple[OrphanSpan, ...]
    stored: tuple[StoredSpan, ...]
    failed: tuple[tuple[int, int, int], ...]  # (node, from_us, until_us)
    duration_us: int

    def places_at(self, time_us: int) -> list[PlaceSpan]:
        """The places at a time, by node and tree."""
        return sorted(_alive(self.places, self._within(time_us)))

    def orphans_at(self, time_us: int) -> list[OrphanSpan]:
        """Who has no place at a time, though it is up."""
        return sorted(_alive(self.orphans, self._within(time_us)))

    def stored_at(self, time_us: int) -> list[StoredSpan]:
        """The queries that are stored at a time, by node, sink and number."""
        return sorted(_alive(self.stored, self._within(time_us)))

    def down_at(self, time_us: int) -> set[int]:
        """The nodes that are down at a time."""
        time_us = self._within(time_us)
        return {node for node, from_us, until_us in self.failed if from_us <= time_us < until_us}

    def failures_us(self) -> list[int]:
        """The times at which nodes failed, ascending, each once."""
        return sorted({from_us for _, from_us, _ in self.failed})

    def _within(self, time_us: int) -> int:
        return min(time_us, self.duration_us - 1)


def _alive(spans: Iterable[Any], time_us: int) -> list[Any]:
    return [span for span in spans if span.from_us <= time_us < span.until_us]


def protocol_of(run: Any) -> TinyMQ:
    """The protocol of a run, if it has an overlay; ParameterError if it has none."""
    protocol = run.scenario.protocol
    if not isinstance(protocol, TinyMQ):
        name = type(protocol).__name__
        raise ParameterError(f"this is a run of {name}, which builds no overlay; TinyMQ and Pub2Sub do")
    return protocol


def overlay_of(run: Any) -> Overlay:
    """The overlay of a run. ParameterError if its protocol has none, ScenarioError if the run kept no trace."""
    protocol = protocol_of(run)
    nodes = sorted(run.scenario.topology)
    duration_us = round(run.scenario.duration_s * 1e6)
    return overlay(run.trace, protocol.roots, duration_us, nodes, protocol.node.every_tree)


def overlay(
    trace: pa.Table, roots: Sequence[int], duration_us: int, nodes: Iterable[int] = (), every_tree: bool = False
) -> Overlay:
    """The overlay from a trace. ``nodes``: of the network, as one that never joined is in no row; ``every_tree``: each
    node belongs to all trees. DataError if the table is no trace."""
    replay = _Replay(duration_us, every_tree)
    replay.run(read(trace))
    failures_us = sorted({from_us for _, from_us, _ in replay.failed})
    places = _marked(replay.places, failures_us, every_tree)
    everybody = sorted({*nodes, *(place.node for place in places)})
    orphans = _orphans(places, replay.failed, everybody, len(roots) if every_tree else 1, duration_us)
    return Overlay(
        tuple(roots),
        tuple(sorted(places, key=lambda span: (span.from_us, span.node))),
        tuple(sorted(orphans, key=lambda span: (span.from_us, span.node))),
        tuple(sorted(replay.stored, key=lambda span: (span.from_us, span.node))),
        tuple(sorted(replay.failed, key=lambda span: (span[1], span[0]))),
        duration_us,
    )


class _Replay:
    """One pass over the rows: places, stored queries and failures, closed as they end."""

    EVENTS = ("key_set", "query_stored", "failed", "recovered")

    def __init__(self, duration_us: int, every_tree: bool) -> None:
        self.duration_us = duration_us
        self.every_tree = every_tree
        self.places: list[PlaceSpan] = []
        self.stored: list[StoredSpan] = []
        self.failed: list[tuple[int, int, int]] = []
        self._places: dict[tuple[int, int], PlaceSpan] = {}
        self._stored: dict[tuple[int, int, int], StoredSpan] = {}
        self._down: dict[int, int] = {}

    def run(self, columns: Columns) -> None:
        """All rows, and then the end of the run."""
        rows = columns.where(event=self.EVENTS)
        numbers = [columns[name][rows].tolist() for name in ("time_us", "node", "peer", "origin", "sequence", "value")]
        words = [columns.text(name, rows).tolist() for name in ("event", "detail")]
        for time_us, node, peer, origin, sequence, value, event, detail in zip(*numbers, *words, strict=True):
            if event == "key_set":
                key = detail if value >= 0 else None
                self._key_set(PlaceSpan(node, origin, peer, key or "", time_us, self.duration_us), key is not None)
            elif event == "query_stored":
                self._query_stored(StoredSpan(node, origin, sequence, detail, time_us, self.duration_us), bool(value))
            elif event == "failed":
                self._fail(node, time_us)
            else:
                self._recover(node, time_us)
        for place in self._places.values():
            self._close(self.places, place, self.duration_us)
        for query in self._stored.values():
            self._close(self.stored, query, self.duration_us)
        for node in list(self._down):
            self._end_failure(node, self.duration_us)

    def _key_set(self, place: PlaceSpan, has_key: bool) -> None:
        # A node of TinyMQ that takes a key in one tree has left the other, though no row says so.
        left = [at for at in self._places if at[0] == place.node and (at[1] == place.tree or not self.every_tree)]
        for at in left:
            self._close(self.places, self._places.pop(at), place.from_us)
        if has_key:
            self._places[place.node, place.tree] = place

    def _query_stored(self, query: StoredSpan, is_stored: bool) -> None:
        at = query.node, query.sink, query.number
        if is_stored:
            self._stored.setdefault(at, query)
        elif at in self._stored:
            self._close(self.stored, self._stored.pop(at), query.from_us)

    def _fail(self, node: int, time_us: int) -> None:
        if node in self._down:
            return
        for spans, kept in self._kept():
            for at in [at for at in kept if at[0] == node]:
                self._close(spans, kept[at], time_us)
        self._down[node] = time_us

    def _recover(self, node: int, time_us: int) -> None:
        self._end_failure(node, time_us)
        for _, kept in self._kept():
            for at in [at for at in kept if at[0] == node]:
                kept[at] = kept[at]._replace(from_us=time_us)

    def _kept(self) -> tuple[tuple[list[Any], dict[Any, Any]], ...]:
        return (self.places, self._places), (self.stored, self._stored)

    def _end_failure(self, node: int, time_us: int) -> None:
        since_us = self._down.pop(node, time_us)
        if since_us < time_us:
            self.failed.append((node, since_us, time_us))

    def _close(self, spans: list[Any], span: Any, time_us: int) -> None:
        # What a node keeps in mind while it is down was closed when it failed.
        if span.node not in self._down and span.from_us < time_us:
            spans.append(span._replace(until_us=time_us))


def _marked(places: list[PlaceSpan], failures_us: list[int], every_tree: bool) -> list[PlaceSpan]:
    """The places, cut where nodes failed, and told whether they are others than before the failure."""
    histories = defaultdict(list)
    for place in sorted(places, key=lambda span: span.from_us):
        histories[place.node, place.tree if every_tree else -1].append(place)
    marked: list[PlaceSpan] = []
    for history in histories.values():
        for place in history:
            cuts = [time_us for time_us in failures_us if place.from_us < time_us < place.until_us]
            for from_us, until_us in zip([place.from_us, *cuts], [*cuts, place.until_us], strict=True):
                before = _before(history, max((time for time in failures_us if time <= from_us), default=None))
                is_rekeyed = before is not None and (before.tree, before.key) != (place.tree, place.key)
                if from_us > place.from_us and marked[-1].is_rekeyed == is_rekeyed:
                    marked[-1] = marked[-1]._replace(until_us=until_us)
                else:
                    marked.append(place._replace(from_us=from_us, until_us=until_us, is_rekeyed=is_rekeyed))
    return marked


def _before(history: list[PlaceSpan], time_us: int | None) -> PlaceSpan | None:
    """The last of a node's places that began before a time."""
    if time_us is None:
        return None
    earlier = [place for place in history if place.from_us < time_us]
    return earlier[-1] if earlier else None


def _orphans(
    places: list[PlaceSpan], failed: list[tuple[int, int, int]], nodes: list[int], needed: int, duration_us: int
) -> list[OrphanSpan]:
    """The times in which nodes were up and had fewer places than they need."""
    changes: dict[int, list[tuple[int, int, int]]] = {node: [(0, 0, 1)] for node in nodes}
    for place in places:  # (time, places more, up more)
        changes[place.node] += [(place.from_us, 1, 0), (place.until_us, -1, 0)]
    for node, from_us, until_us in failed:
        changes.setdefault(node, [(0, 0, 1)])
        changes[node] += [(from_us, 0, -1), (until_us, 0, 1)]
    spans = []
    for node, steps in changes.items():
        count = up = 0
        had_place = False
        steps.sort()
        for index, (time_us, more, more_up) in enumerate(steps):
            count, up, had_place = count + more, up + more_up, had_place or count + more >= needed
            until_us = steps[index + 1][0] if index + 1 < len(steps) else duration_us
            if up > 0 and count < needed and time_us < until_us:
                spans.append(OrphanSpan(node, time_us, until_us, had_place))
    return _joined(spans)


def _joined(spans: list[OrphanSpan]) -> list[OrphanSpan]:
    """Spans of a node that follow on each other, as one."""
    joined: list[OrphanSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is not None and (last.node, last.until_us, last.had_place) == (span.node, span.from_us, span.had_place):
            joined[-1] = last._replace(until_us=span.until_us)
        else:
            joined.append(span)
    return joined

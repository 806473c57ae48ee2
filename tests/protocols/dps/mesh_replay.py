"""DPS's mesh, replayed from a trace: which links stand or are muted, and how full the filters are that went over them.

    mesh_of(run)                          the mesh of a run of DPS
    mesh(trace, filter_bits, duration_us) the same from a trace

Theory of operation
    ``link_set`` rows tell how a node sees a link, ``interests_set`` rows what a neighbor has told it, and what all that
    is asked for here and behind the links comes to. Each row ends what the one before it began, so one pass over these
    few rows gives spans of time. When a link is gone, so is what was told over it.

    A link is seen from both ends. It is *muted* if one end says so: no publication goes over it, as it closes a loop.
    It is *active* if both say so; else it is on its way to be something.

    What a neighbor told is a filter. Its *fill* is the share of its bits that are set: 0 if nobody asks for anything
    there, and the nearer to 1 the more publications go there in vain.

Cost
    A step for each of these rows; frames are never looked at.

Limits
    A node that is down keeps its memory in a simulation, so its links and filters stand in the table while it is down.
    Rows of a trace tell how many bits a filter has, not which. After a link has gone, a node tells its sum with the
    next change: until then the sum shows what was.

Reference
    Events LinkSet and InterestsSet of `workbench.protocols.dps.events`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.errors import ParameterError
from workbench.protocols.dps import DPS
from workbench.views.player.columns import Columns
from workbench.views.player.intervals import read

ACTIVE, MUTED, PENDING = "active", "muted", "pending"  # how a link is seen from both of its ends together
EVERYTHING = -1  # in place of a neighbor: all that is asked for at a node and behind its links


class LinkSpan(NamedTuple):
    """How a node sees its link to a neighbor during [from_us, until_us): one of `automaton.STATE_NAMES` but "gone"."""

    node: int
    peer: int
    state: str
    from_us: int
    until_us: int


class FilterSpan(NamedTuple):
    """Bits of the filter that a neighbor told a node during [from_us, until_us); peer EVERYTHING: of the sum there."""

    node: int
    peer: int
    bits: int
    needs: int
    from_us: int
    until_us: int


@dataclass(frozen=True)
class Mesh:
    """The mesh of a run in time, spans in order of ``from_us``; failed: (node, from_us, until_us)."""

    filter_bits: int
    links: tuple[LinkSpan, ...]
    filters: tuple[FilterSpan, ...]
    failed: tuple[tuple[int, int, int], ...]
    duration_us: int

    def links_at(self, time_us: int) -> dict[tuple[int, int], str]:
        """(node, neighbor), the lower first -> active, muted or pending."""
        seen: dict[tuple[int, int], list[str]] = {}
        for link in self._alive(self.links, time_us):
            seen.setdefault((min(link.node, link.peer), max(link.node, link.peer)), []).append(link.state)
        return {ends: both_ends(states) for ends, states in sorted(seen.items())}

    def filters_at(self, time_us: int) -> dict[tuple[int, int], FilterSpan]:
        """(node, neighbor) -> what the neighbor has told the node."""
        return {(one.node, one.peer): one for one in self._alive(self.filters, time_us) if one.peer != EVERYTHING}

    def sums_at(self, time_us: int) -> dict[int, FilterSpan]:
        """node -> all that is asked for there and behind its links; nodes that know of nothing are left out."""
        return {one.node: one for one in self._alive(self.filters, time_us) if one.peer == EVERYTHING}

    def down_at(self, time_us: int) -> set[int]:
        """The nodes that are down."""
        time_us = min(time_us, self.duration_us - 1)
        return {node for node, from_us, until_us in self.failed if from_us <= time_us < until_us}

    def fill(self, bits: int) -> float:
        """The share of a filter's bits, 0 to 1."""
        return bits / self.filter_bits

    @property
    def most_bits(self) -> int:
        """Of the fullest filter of the run; 1 at least."""
        return max((one.bits for one in self.filters), default=0) or 1

    def _alive(self, spans: Iterable[Any], time_us: int) -> list[Any]:
        time_us = min(time_us, self.duration_us - 1)
        return [span for span in spans if span.from_us <= time_us < span.until_us]


def both_ends(states: list[str]) -> str:
    """What the states that the ends of a link see come to."""
    if MUTED in states:
        return MUTED
    return ACTIVE if states == [ACTIVE, ACTIVE] else PENDING


def protocol_of(run: Any) -> DPS:
    """The protocol of a run of DPS; ParameterError for one of another protocol."""
    protocol = run.scenario.protocol
    if not isinstance(protocol, DPS):
        name = type(protocol).__name__
        raise ParameterError(f"this is a run of {name}, which has no filters; DPS has")
    return protocol


def mesh_of(run: Any) -> Mesh:
    """The mesh of a run. ParameterError if its protocol is not DPS, ScenarioError if the run kept no trace."""
    protocol = protocol_of(run)
    return mesh(run.trace, protocol.filter_bits, round(run.scenario.duration_s * 1e6), protocol.count_muted)


def mesh(trace: pa.Table, filter_bits: int, duration_us: int, count_muted: bool = True) -> Mesh:
    """The mesh from a trace of DPS with filters of that length; ``count_muted`` as in `DPS`.

    DataError if the table is no trace.
    """
    replay = _Replay(duration_us, count_muted)
    replay.run(read(trace))
    return Mesh(
        filter_bits,
        tuple(sorted(replay.links, key=lambda span: (span.from_us, span.node, span.peer))),
        tuple(sorted(replay.filters, key=lambda span: (span.from_us, span.node, span.peer))),
        tuple(sorted(replay.failed, key=lambda span: (span[1], span[0]))),
        duration_us,
    )


class _Replay:
    """One pass over the rows: spans, closed as they end."""

    EVENTS = ("link_set", "interests_set", "failed", "recovered")

    def __init__(self, duration_us: int, count_muted: bool) -> None:
        self.duration_us = duration_us
        self._forgetful = ("gone", "unmuting") if count_muted else ("gone", "unmuting", MUTED)
        self.links: list[LinkSpan] = []
        self.filters: list[FilterSpan] = []
        self.failed: list[tuple[int, int, int]] = []
        self._links: dict[tuple[int, int], LinkSpan] = {}
        self._filters: dict[tuple[int, int], FilterSpan] = {}
        self._down: dict[int, int] = {}

    def run(self, columns: Columns) -> None:
        """All rows, and then the end of the run."""
        rows = columns.where(event=self.EVENTS)
        numbers = [columns[name][rows].tolist() for name in ("time_us", "node", "peer", "value")]
        words = [columns.text(name, rows).tolist() for name in ("event", "detail")]
        for time_us, node, peer, value, event, detail in zip(*numbers, *words, strict=True):
            if event == "link_set":
                self._link_set(LinkSpan(node, peer, detail, time_us, self.duration_us))
            elif event == "interests_set":
                told = FilterSpan(node, peer, value, int(detail), time_us, self.duration_us)
                self._begin(self.filters, self._filters, told)
            elif event == "failed":
                self._down.setdefault(node, time_us)
            elif node in self._down:
                self._end_failure(node, time_us)
        self.links += [span for span in self._links.values() if span.from_us < self.duration_us]
        self.filters += [span for span in self._filters.values() if span.from_us < self.duration_us]
        for node in list(self._down):
            self._end_failure(node, self.duration_us)

    def _link_set(self, link: LinkSpan) -> None:
        ends = (link.node, link.peer)
        if link.state in self._forgetful:
            self._end(self.filters, self._filters, ends, link.from_us)
        if link.state == "gone":
            self._end(self.links, self._links, ends, link.from_us)
        elif link.state != self._state(link):  # the same state is told again with each revision
            self._begin(self.links, self._links, link)

    def _state(self, link: LinkSpan) -> str:
        known = self._links.get((link.node, link.peer))
        return "" if known is None else known.state

    def _begin(self, spans: list[Any], kept: dict[Any, Any], span: Any) -> None:
        self._end(spans, kept, (span.node, span.peer), span.from_us)
        kept[span.node, span.peer] = span

    def _end(self, spans: list[Any], kept: dict[Any, Any], key: tuple[int, int], time_us: int) -> None:
        span = kept.pop(key, None)
        if span is not None and span.from_us < time_us:
            spans.append(span._replace(until_us=time_us))

    def _end_failure(self, node: int, time_us: int) -> None:
        since_us = self._down.pop(node)
        if since_us < time_us:
            self.failed.append((node, since_us, time_us))


def steps(seen: Mesh, nodes: int) -> dict[str, np.ndarray]:
    """Over time, from 0 on: time_us, mean and most (fill of a network of so many nodes), muted (links).

    Arrays of shape (steps,): each says how it is from its time to the next one.
    """
    sums: dict[int, int] = {}
    states: dict[tuple[int, int], dict[int, str]] = {}
    spans: list[Any] = [*seen.filters, *seen.links]
    changes = [(one.from_us, 1, one) for one in spans]
    changes += [(one.until_us, 0, one) for one in spans if one.until_us < seen.duration_us]
    table = [(0, 0.0, 0.0, 0)]
    muted, total = 0, 0
    for time_us, begins, span in sorted(changes, key=lambda change: change[:2]):
        if isinstance(span, LinkSpan):
            ends = states.setdefault((min(span.node, span.peer), max(span.node, span.peer)), {})
            muted -= MUTED in ends.values()
            ends[span.node] = span.state if begins else "gone"
            muted += MUTED in ends.values()
        elif span.peer == EVERYTHING:
            bits = span.bits if begins else 0
            total += bits - sums.get(span.node, 0)
            sums[span.node] = bits
        else:
            continue
        row = (time_us, seen.fill(total) / max(nodes, 1), seen.fill(max(sums.values(), default=0)), muted)
        if table[-1][0] == time_us:
            table[-1] = row
        else:
            table.append(row)
    columns = list(zip(*table, strict=True))
    return {name: np.array(column) for name, column in zip(("time_us", "mean", "most", "muted"), columns, strict=True)}

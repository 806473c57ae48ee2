"""The mesh of a run of DPS, reconstructed from its trace: states of links, and the filters sent over them.

    mesh_of(run)                          the mesh of a run of DPS
    mesh(trace, filter_bits, duration_us) the same from a trace; mesh_in(columns, ...) from its columns

Theory of operation
    ``link_set`` rows of the trace report the state of a link at one of its nodes. ``interests_set`` rows report the
    filter of a neighbor, or the sum of the node's own interests and all neighbors' filters. ``mesh_id_set`` rows report
    the owner of the lowest mesh id that a neighbor has sent. Each row replaces the value of the row before it. When a
    link ends, the values received over it end too.

    Both ends of a link have a state for it. The link is *muted* if one end reports so: it closes a loop and carries no
    publications. It is *active* if both ends report so, and otherwise *pending*.

    The *fill* of a filter is the share of its bits that are set. It is 0 without interests. The nearer it is to 1, the
    more publications match it by chance.

How it is computed
    The rows about links are sorted by pairs of nodes and then by time. For each row, the states and filters of both
    ends at that time are computed. A view then merges consecutive rows with equal values into one interval.

Cost
    Array operations over these rows, and none over the rows of frames.

Limits
    In a simulation a failed node keeps its memory, so its links and filters remain in the tables while it is down.
    Rows of a trace report the number of set bits of a filter, not their positions. Traces of version 0.1 do not report
    the owner of a mesh id, nor when a node forgets a filter.

Reference
    Events LinkSet, InterestsSet and MeshIdSet of `workbench.protocols.dps.events`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.columns import argsort, find_sorted, last_marked, mark_first, row_keys, take_rows, unique_index
from workbench.errors import ParameterError
from workbench.keywords import refuse_unknown
from workbench.protocols.dps import DPS, automaton
from workbench.protocols.dps.views.looks import shades
from workbench.sim.rows import Columns
from workbench.views.layers import Table, alive, select, tuples
from workbench.views.spans import running

ACTIVE, MUTED, PENDING = "active", "muted", "pending"  # joint state of both ends of a link
LOOKS = (ACTIVE, MUTED, PENDING)
UNKNOWN = -1  # instead of a node: no mesh id was received, or its owner is not in the trace
LINK, INTERESTS, MESH_ID = range(3)  # kinds of rows


class Rows(NamedTuple):
    """The rows of a trace about links, filters and mesh ids, in order of time; each array of shape (rows,).

    peer   neighbor; -1 for the sum of the node's own interests and those of all its links
    kind   LINK, INTERESTS or MESH_ID
    value  LINK: a state of `automaton`; INTERESTS: number of set bits of a filter; MESH_ID: the owner of the id
    needs  INTERESTS: number of set bits of the filter's needs
    """

    time_us: np.ndarray
    node: np.ndarray
    peer: np.ndarray
    kind: np.ndarray
    value: np.ndarray
    needs: np.ndarray


class Filter(NamedTuple):
    """The numbers of set bits of a filter and of its needs."""

    bits: int
    needs: int


class Ends(NamedTuple):
    """The state of links after each change; shape (rows,), or (2, rows) with the lower node of a link first.

    Rows are sorted by pairs of nodes and then by time.

    begins       whether a row is the first of its pair
    node         the two nodes
    state        state of the link at each node
    bits, needs  of the filter that each node has received over the link
    owner        owner of the lowest mesh id that each node has received over the link, or `UNKNOWN`
    """

    time_us: np.ndarray
    begins: np.ndarray
    node: np.ndarray
    state: np.ndarray
    bits: np.ndarray
    needs: np.ndarray
    owner: np.ndarray

    @property
    def look(self) -> np.ndarray:
        """Joint state of both ends, as an index in `LOOKS`; -1 for a link that is gone."""
        low, high = self.state
        is_muted = (low == automaton.MUTED) | (high == automaton.MUTED)
        is_active = (low == automaton.ACTIVE) & (high == automaton.ACTIVE)
        is_gone = (low == automaton.GONE) & (high == automaton.GONE)
        return np.where(is_muted, 1, np.where(is_active, 0, np.where(is_gone, -1, 2)))


@dataclass(frozen=True)
class Mesh:
    """The mesh of a run over time. Its tables are sorted by nodes or pairs of nodes, and then by time.

    ends  states of links
    sums  the sum of each node's interests and those of all its links (value: bits, sequence: needs)
    """

    filter_bits: int
    ends: Ends
    sums: Table
    duration_us: int

    __getattr__ = refuse_unknown

    @cached_property
    def links(self) -> Table:
        """Links in their joint state, the lower node first; look: an index in `LOOKS`."""
        look = self.ends.look
        at, until = spans(self.ends.begins, self.ends.time_us, self.duration_us, look)
        exists = look[at] >= 0
        at, until = at[exists], until[exists]
        node, peer = self.ends.node[:, at]
        return {"node": node, "peer": peer, "from_us": self.ends.time_us[at], "until_us": until, "look": look[at]}

    @cached_property
    def link_ends(self) -> Table:
        """Links as each end sees them.

        look: a state; value, sequence: bits and needs of the received filter; origin: owner of the received mesh id.
        """
        ends = self.ends
        return self._of_ends(lambda side: [values[side] for values in (ends.state, ends.bits, ends.needs, ends.owner)])

    @cached_property
    def shade_of(self) -> np.ndarray:
        """Index in `looks.COLOURS` for each number of set bits of a filter, shape (most_bits + 1,)."""
        return shades(self.fewest_bits, self.most_bits)

    @cached_property
    def halves(self) -> Table:
        """Active links, a row for each end; look: the shade of the filter received at that end."""
        shades_of_ends = np.where(self.ends.look == 0, self.shade_of[self.ends.bits], -1)
        return self._of_ends(lambda side: [shades_of_ends[side]])

    def links_at(self, time_us: int) -> dict[tuple[int, int], str]:
        """Return the joint state of each link at a time, by (node, neighbor) with the lower node first."""
        rows = self._alive(self.links, time_us)
        ends = _pairs(self.links, rows)
        return dict(sorted(zip(ends, [LOOKS[look] for look in self.links["look"][rows].tolist()], strict=True)))

    def filters_at(self, time_us: int) -> dict[tuple[int, int], Filter]:
        """Return the filters that are not empty at a time: (node, neighbor) -> filter received from the neighbor."""
        rows = self._alive(self.link_ends, time_us)
        rows = rows[self.link_ends["value"][rows] > 0]
        return dict(zip(_pairs(self.link_ends, rows), _filters(self.link_ends, rows), strict=True))

    def sums_at(self, time_us: int) -> dict[int, Filter]:
        """Return the sum of each node's interests and those of its links at a time, without empty sums."""
        rows = self._alive(self.sums, time_us)
        rows = rows[self.sums["value"][rows] > 0]
        return dict(zip(self.sums["node"][rows].tolist(), _filters(self.sums, rows), strict=True))

    def fill(self, bits: int) -> float:
        """Return the share of a filter's bits that are set, in [0, 1]."""
        return bits / self.filter_bits

    @cached_property
    def fewest_bits(self) -> int:
        """Number of set bits of the emptiest filter of the run, without filters that have no set bits."""
        least = [bits[bits > 0].min(initial=self.filter_bits) for bits in (self.ends.bits, self.sums["value"])]
        return min(*map(int, least), self.most_bits)

    @cached_property
    def most_bits(self) -> int:
        """Number of set bits of the fullest filter of the run."""
        return max(int(self.ends.bits.max(initial=0)), int(self.sums["value"].max(initial=0)))

    def _alive(self, rows: Table, time_us: int) -> np.ndarray:
        return alive(rows, min(time_us, self.duration_us - 1))

    def _of_ends(self, values_of: Any) -> Table:
        """Return the intervals of constant values at the lower ends of links, followed by those at the higher ends.

        ``values_of(side)`` returns up to four arrays, which become ``look``, ``value``, ``sequence`` and ``origin``.
        The first one decides whether a link exists.
        """
        columns: dict[str, list[np.ndarray]] = {}
        for side in (0, 1):
            values = values_of(side)
            at, until = spans(self.ends.begins, self.ends.time_us, self.duration_us, *values)
            exists = values[0][at] >= 0 if len(values) == 1 else values[0][at] != automaton.GONE
            at, until = at[exists], until[exists]
            rows = {"node": self.ends.node[side][at], "peer": self.ends.node[1 - side][at], "until_us": until}
            rows |= {"from_us": self.ends.time_us[at]}
            rows |= dict(zip(("look", "value", "sequence", "origin"), [value[at] for value in values], strict=False))
            for name, column in rows.items():
                columns.setdefault(name, []).append(column)
        return {name: np.concatenate(pieces) for name, pieces in columns.items()}


def _pairs(links: Table, rows: np.ndarray) -> list[tuple[int, int]]:
    return list(tuples(links, "node", "peer", rows=rows))


def _filters(filters: Table, rows: np.ndarray) -> list[Filter]:
    return [Filter(*row) for row in tuples(filters, "value", "sequence", rows=rows)]


def protocol_of(run: Any) -> DPS:
    """Return the protocol of a run of DPS. Raises ParameterError for a run of another protocol."""
    protocol = run.scenario.protocol
    if not isinstance(protocol, DPS):
        name = type(protocol).__name__
        raise ParameterError(f"the run's protocol is {name}; this view needs a run of DPS")
    return protocol


def mesh_of(run: Any) -> Mesh:
    """Return the mesh of a run. Raises ParameterError for another protocol, ScenarioError for a run without a trace."""
    protocol = protocol_of(run)
    return mesh(run.trace, protocol.filter_bits, round(run.scenario.duration_s * 1e6))


def mesh(trace: pa.Table, filter_bits: int, duration_us: int) -> Mesh:
    """Return the mesh from a trace of DPS with filters of ``filter_bits``. Raises DataError if it is not a trace."""
    return mesh_in(Columns(trace), filter_bits, duration_us)


def mesh_in(columns: Columns, filter_bits: int, duration_us: int) -> Mesh:
    """Return the mesh from the columns of a trace; see `mesh`."""
    rows = columns.where(event=("link_set", "interests_set", "mesh_id_set"))
    rows = rows[columns["time_us"][rows] < duration_us]
    needs = np.array([int(word) if word.isdigit() else 0 for word in columns.words["detail"]] or [0], np.int32)
    is_link, is_filter = (columns.says("event", rows, event) for event in ("link_set", "interests_set"))
    kind = np.where(is_link, LINK, np.where(is_filter, INTERESTS, MESH_ID))
    time_us, node, peer, value = (columns[name][rows] for name in ("time_us", "node", "peer", "value"))
    is_id = kind == MESH_ID
    value[is_id] = _owners(node[is_id], peer[is_id], value[is_id])
    needs = needs[columns.codes["detail"][rows]]
    return mesh_of_rows(Rows(time_us, node, peer, kind, value.astype(np.int32), needs), filter_bits, duration_us)


def _owners(node: np.ndarray, peer: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return the nodes that created the mesh ids with these numbers, or `UNKNOWN`.

    Rows without a peer report the nodes' own ids."""
    is_own = peer < 0
    known, first = unique_index(number[is_own])
    return np.append(node[is_own][first], UNKNOWN)[find_sorted(number, known)]


def mesh_of_rows(reported: Rows, filter_bits: int, duration_us: int) -> Mesh:
    """Return the mesh from rows about links, filters and mesh ids."""
    is_sum = (reported.peer < 0) & (reported.kind == INTERESTS)
    links, sums = (take_rows(reported, rows) for rows in (reported.peer >= 0, is_sum))
    return Mesh(filter_bits, _ends(links), _sums(sums, duration_us), duration_us)


def _ends(reported: Rows) -> Ends:
    """Compute the state of both ends of a link after each row; of rows at the same time, after the last one."""
    low, high = np.minimum(reported.node, reported.peer), np.maximum(reported.node, reported.peer)
    order = argsort(row_keys(low, high))
    time_us, node, peer, kind, value, needs = take_rows(reported, order)
    low, high = np.minimum(node, peer), np.maximum(node, peer)
    begins = mark_first(low, high)
    first = last_marked(begins)
    rows = settled(begins, time_us)
    # Values received over a link end with it.
    is_gone = (kind == LINK) & (value == automaton.GONE)

    def newest(marks: np.ndarray) -> np.ndarray:
        """Return the last marked row of the same pair up to each settled row, or -1."""
        last_row = last_marked(marks)[rows]
        return np.where(last_row >= first[rows], last_row, -1)

    def last(marks: np.ndarray, values: np.ndarray, default: int) -> np.ndarray:
        """Return the value at the last marked row, or ``default`` without one or if the link has ended since."""
        row = newest(marks | (is_gone & (node == end)))
        return np.where((row >= 0) & ~is_gone[row], values[row], default)

    state, bits, end_needs, owner = [], [], [], []
    for end in (low, high):
        marks = [(node == end) & (kind == row_kind) for row_kind in (LINK, INTERESTS, MESH_ID)]
        state.append(last(marks[LINK], value, automaton.GONE))
        bits.append(last(marks[INTERESTS], value, 0))
        end_needs.append(last(marks[INTERESTS], needs, 0))
        owner.append(last(marks[MESH_ID], value, UNKNOWN))
    ends = np.stack([low[rows], high[rows]])
    return Ends(
        time_us[rows], mark_first(first[rows]), ends, *(np.stack(sides) for sides in (state, bits, end_needs, owner))
    )


def _sums(reported: Rows, duration_us: int) -> Table:
    order = argsort(reported.node)
    order = order[settled(mark_first(reported.node[order]), reported.time_us[order])]
    time_us, node, _, _, bits, needs = take_rows(reported, order)
    at, until = spans(mark_first(node), time_us, duration_us, bits, needs)
    return {"node": node[at], "from_us": time_us[at], "until_us": until, "value": bits[at], "sequence": needs[at]}


def settled(begins: np.ndarray, times_us: np.ndarray) -> np.ndarray:
    """Return the index of the last row of each key and time, the state after all changes at that time.

    Rows are sorted by key, then by time; ``begins``: whether a row is the first of its key.
    """
    return np.flatnonzero(np.append(begins[1:] | (times_us[1:] > times_us[:-1]), True)[: len(begins)])


def spans(begins: np.ndarray, times_us: np.ndarray, end_us: int, *values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows at which a value of a key changes, and the time in µs until which the values then stay.

    Rows must be `settled`; ``begins``: whether a row is the first of its key.
    """
    at = np.flatnonzero(begins | mark_first(*values))
    until = np.full(len(at), end_us, np.int64)
    until[:-1] = np.where(begins[at[1:]], end_us, times_us[at[1:]])
    return at, until


def steps(seen: Mesh, nodes: int, most: int | None = None) -> dict[str, np.ndarray]:
    """Return the mesh's totals over time: time_us, mean and most (fills of ``nodes`` nodes' filters), muted (links).

    The arrays have the shape (steps,); an entry holds from its time to the next one. ``most``: the largest number of
    steps, evenly chosen from all changes.
    """
    muted = select(seen.links, seen.links["look"] == LOOKS.index(MUTED))
    changes = [rows[name] for rows in (seen.sums, muted) for name in ("from_us", "until_us")]
    times = np.concatenate([[0], *changes])
    times = times[argsort(times)]
    times = times[mark_first(times) & (times < seen.duration_us)]
    if most is not None and len(times) > most:
        times = times[np.linspace(0, len(times) - 1, most).astype(np.int64)]
    total = running(seen.sums, times, seen.sums["value"])
    return {
        "time_us": times,
        "mean": total / seen.filter_bits / max(nodes, 1),
        "most": _highest(seen.sums, seen.sums["value"], times) / seen.filter_bits,
        "muted": running(muted, times),
    }


def _highest(rows: Table, values: np.ndarray, times_us: np.ndarray) -> np.ndarray:
    """Return the highest value among the rows that are alive at each time, 0 without rows.

    Each row covers its times by two overlapping ranges of 2^k times. Values of ranges are passed on to their halves,
    from the largest k to 0.
    """
    first, last = (np.searchsorted(times_us, rows[name]) for name in ("from_us", "until_us"))
    is_alive = first < last
    first, last, values = first[is_alive], last[is_alive], values[is_alive]
    level = np.frexp((last - first).astype(float))[1] - 1
    highest = np.zeros(len(times_us), np.int64)
    for exponent in range(int(level.max(initial=0)), -1, -1):
        chosen = level == exponent
        for begin in (first[chosen], last[chosen] - (1 << exponent)):
            np.maximum.at(highest, begin, values[chosen])
        if exponent:
            half = 1 << (exponent - 1)
            highest[half:] = np.maximum(highest[half:], highest[:-half])
    return highest

"""DPS's mesh, out of a trace: which links stand or are muted, and how full the filters are that went over them.

    mesh_of(run)                          the mesh of a run of DPS
    mesh(trace, filter_bits, duration_us) the same from a trace; mesh_in(columns, ...) from its columns

Theory of operation
    ``link_set`` rows report how a node sees a link, ``interests_set`` rows what a neighbor asks for, and what all that
    is asked for here and behind the links comes to, ``mesh_id_set`` rows whose mesh id is the lowest behind a link.
    Each row ends what the one before it began. When a link is gone, so is what came over it.

    A link is seen from both ends. It is *muted* if one end says so: no publication goes over it, as it closes a loop.
    It is *active* if both say so; else it is on its way to be something.

    What a neighbor told is a filter. Its *fill* is the share of its bits that are set: 0 if nobody asks for anything
    there, and the nearer to 1 the more publications go there in vain.

How it is computed
    The rows about links are put in order of pairs of nodes and then of time. Of each row it is computed what both ends
    saw and had been told by then; whatever there is to see is a run of rows in which some of that stays the same.

Cost
    Array operations over these rows, and none over those of frames.

Limits
    A node that is down keeps its memory in a simulation, so its links and filters stand in the table while it is down.
    Rows of a trace report how many bits a filter has, not which. In a trace of version 0.1 filters stand until the next
    row about them, though a node may have forgotten them before, and no link has the owner of a mesh id.

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
from workbench.protocols.dps import DPS, automaton
from workbench.protocols.dps.views.looks import shades
from workbench.sim.rows import Columns
from workbench.views.layers import Table, alive, select, tuples
from workbench.views.spans import running

ACTIVE, MUTED, PENDING = "active", "muted", "pending"  # how a link is seen from both of its ends together
LOOKS = (ACTIVE, MUTED, PENDING)
UNKNOWN = -1  # in place of a node: no id has come, or nobody has had it
LINK, INTERESTS, MESH_ID = range(3)  # kinds of rows


class Rows(NamedTuple):
    """The rows of a trace about links, filters and mesh ids, in order of time; each array of shape (rows,).

    peer: -1 for all that is asked for at a node and behind its links. kind: of a LINK value is a state of `automaton`;
    of INTERESTS how many bits of a filter are set, and needs how many of its needs; of a MESH_ID whose id it is.
    """

    time_us: np.ndarray
    node: np.ndarray
    peer: np.ndarray
    kind: np.ndarray
    value: np.ndarray
    needs: np.ndarray


class Filter(NamedTuple):
    """How many bits of a filter are set, and how many of its needs."""

    bits: int
    needs: int


class Ends(NamedTuple):
    """How links stood after each row that changed one; shape (rows,), or (2, rows) for its lower and higher end.

    Rows are in order of pairs and then of time; begins: the first row of a pair. state: how the end sees the link;
    bits, needs: of the filter that came over it; owner: the node that has the lowest mesh id behind it, or `UNKNOWN`.
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
        """How both ends together see the link, as a number of `LOOKS`; -1: it is gone."""
        low, high = self.state
        is_muted = (low == automaton.MUTED) | (high == automaton.MUTED)
        is_active = (low == automaton.ACTIVE) & (high == automaton.ACTIVE)
        is_gone = (low == automaton.GONE) & (high == automaton.GONE)
        return np.where(is_muted, 1, np.where(is_active, 0, np.where(is_gone, -1, 2)))


@dataclass(frozen=True)
class Mesh:
    """The mesh of a run in time. Its tables are in order of nodes or pairs of nodes, and then of time.

    ends: how links stood; sums: of each node what is asked for there and behind its links (value: bits, sequence:
    needs).
    """

    filter_bits: int
    ends: Ends
    sums: Table
    duration_us: int

    @cached_property
    def links(self) -> Table:
        """Links as both of their ends see them, the lower one first; look: a number of `LOOKS`."""
        look = self.ends.look
        at, until = spans(self.ends.begins, self.ends.time_us, self.duration_us, look)
        kept = look[at] >= 0
        at, until = at[kept], until[kept]
        node, peer = self.ends.node[:, at]
        return {"node": node, "peer": peer, "from_us": self.ends.time_us[at], "until_us": until, "look": look[at]}

    @cached_property
    def sights(self) -> Table:
        """Links as each end sees them; look: a state, value and sequence: bits and needs of the filter that came over
        it; origin: the owner of the mesh id."""
        ends = self.ends
        return self._of_ends(lambda side: [values[side] for values in (ends.state, ends.bits, ends.needs, ends.owner)])

    @cached_property
    def shade_of(self) -> np.ndarray:
        """The shade (`looks.COLOURS`) of a filter by its bits, shape (most_bits + 1,)."""
        return shades(self.fewest_bits, self.most_bits)

    @cached_property
    def halves(self) -> Table:
        """Active links, a row for each end; look: the shade of what it was told over the link."""
        found = np.where(self.ends.look == 0, self.shade_of[self.ends.bits], -1)
        return self._of_ends(lambda side: [found[side]])

    def links_at(self, time_us: int) -> dict[tuple[int, int], str]:
        """(node, neighbor), the lower first -> active, muted or pending."""
        rows = self._alive(self.links, time_us)
        ends = _pairs(self.links, rows)
        return dict(sorted(zip(ends, [LOOKS[look] for look in self.links["look"][rows].tolist()], strict=True)))

    def filters_at(self, time_us: int) -> dict[tuple[int, int], Filter]:
        """(node, neighbor) -> what the neighbor asks for, where it asks for anything."""
        rows = self._alive(self.sights, time_us)
        rows = rows[self.sights["value"][rows] > 0]
        return dict(zip(_pairs(self.sights, rows), _filters(self.sights, rows), strict=True))

    def sums_at(self, time_us: int) -> dict[int, Filter]:
        """node -> all that is asked for there and behind its links; nodes that know of nothing are left out."""
        rows = self._alive(self.sums, time_us)
        rows = rows[self.sums["value"][rows] > 0]
        return dict(zip(self.sums["node"][rows].tolist(), _filters(self.sums, rows), strict=True))

    def fill(self, bits: int) -> float:
        """The share of a filter's bits, 0 to 1."""
        return bits / self.filter_bits

    @cached_property
    def fewest_bits(self) -> int:
        """Of the filter of the run with the fewest bits, but for those that are empty."""
        least = [bits[bits > 0].min(initial=self.filter_bits) for bits in (self.ends.bits, self.sums["value"])]
        return min(*map(int, least), self.most_bits)

    @cached_property
    def most_bits(self) -> int:
        """Of the fullest filter of the run."""
        return max(int(self.ends.bits.max(initial=0)), int(self.sums["value"].max(initial=0)))

    def _alive(self, some: Table, time_us: int) -> np.ndarray:
        return alive(some, min(time_us, self.duration_us - 1))

    def _of_ends(self, values_of: Any) -> Table:
        """What one end sees, and then the other: the runs of some values, of which the first tells what there is.

        The values become ``look``, ``value``, ``sequence`` and ``origin``.
        """
        found: dict[str, list[np.ndarray]] = {}
        for side in (0, 1):
            values = values_of(side)
            at, until = spans(self.ends.begins, self.ends.time_us, self.duration_us, *values)
            kept = values[0][at] >= 0 if len(values) == 1 else values[0][at] != automaton.GONE
            at, until = at[kept], until[kept]
            made = {"node": self.ends.node[side][at], "peer": self.ends.node[1 - side][at], "until_us": until}
            made |= {"from_us": self.ends.time_us[at]}
            made |= dict(zip(("look", "value", "sequence", "origin"), [value[at] for value in values], strict=False))
            for name, column in made.items():
                found.setdefault(name, []).append(column)
        return {name: np.concatenate(columns) for name, columns in found.items()}


def _pairs(some: Table, rows: np.ndarray) -> list[tuple[int, int]]:
    return list(tuples(some, "node", "peer", rows=rows))


def _filters(some: Table, rows: np.ndarray) -> list[Filter]:
    return [Filter(*row) for row in tuples(some, "value", "sequence", rows=rows)]


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
    return mesh(run.trace, protocol.filter_bits, round(run.scenario.duration_s * 1e6))


def mesh(trace: pa.Table, filter_bits: int, duration_us: int) -> Mesh:
    """Return the mesh from a trace of DPS with filters of that length; DataError if the table is not a trace."""
    return mesh_in(Columns(trace), filter_bits, duration_us)


def mesh_in(columns: Columns, filter_bits: int, duration_us: int) -> Mesh:
    """The mesh from the columns of a trace; see `mesh`."""
    rows = columns.where(event=("link_set", "interests_set", "mesh_id_set"))
    rows = rows[columns["time_us"][rows] < duration_us]
    needs = np.array([int(word) if word.isdigit() else 0 for word in columns.words["detail"]] or [0], np.int32)
    is_link, is_filter = (columns.says("event", rows, event) for event in ("link_set", "interests_set"))
    kind = np.where(is_link, LINK, np.where(is_filter, INTERESTS, MESH_ID))
    time_us, node, peer, value = (columns[name][rows] for name in ("time_us", "node", "peer", "value"))
    is_id = kind == MESH_ID
    value[is_id] = _owners(node[is_id], peer[is_id], value[is_id])
    needs = needs[columns.codes["detail"][rows]]
    return standing(Rows(time_us, node, peer, kind, value.astype(np.int32), needs), filter_bits, duration_us)


def _owners(node: np.ndarray, peer: np.ndarray, number: np.ndarray) -> np.ndarray:
    """The nodes that have had ids with those numbers, by the rows of their own ids; `UNKNOWN` for others."""
    is_own = peer < 0
    known, first = unique_index(number[is_own])
    return np.append(node[is_own][first], UNKNOWN)[find_sorted(number, known)]


def standing(told: Rows, filter_bits: int, duration_us: int) -> Mesh:
    """The mesh from the rows about it."""
    is_sum = (told.peer < 0) & (told.kind == INTERESTS)
    links, sums = (take_rows(told, rows) for rows in (told.peer >= 0, is_sum))
    return Mesh(filter_bits, _ends(links), _sums(sums, duration_us), duration_us)


def _ends(told: Rows) -> Ends:
    """What both ends of a link see and have been told after each row, of rows at the same time after the last one."""
    low, high = np.minimum(told.node, told.peer), np.maximum(told.node, told.peer)
    order = argsort(row_keys(low, high))
    time_us, node, peer, kind, value, needs = take_rows(told, order)
    low, high = np.minimum(node, peer), np.maximum(node, peer)
    begins = mark_first(low, high)
    first = last_marked(begins)
    rows = settled(begins, time_us)
    # What came over a link ends with it.
    is_gone = (kind == LINK) & (value == automaton.GONE)

    def newest(which: np.ndarray) -> np.ndarray:
        """The last row of some in the pair up to each row that counts; -1 if there is none."""
        found = last_marked(which)[rows]
        return np.where(found >= first[rows], found, -1)

    def last(which: np.ndarray, of: np.ndarray, without: int) -> np.ndarray:
        """The value at the last row of some, or ``without`` if the link has gone since, or none came."""
        row = newest(which | (is_gone & (node == end)))
        return np.where((row >= 0) & ~is_gone[row], of[row], without)

    state, bits, wanted, owner = [], [], [], []
    for end in (low, high):
        mine = [(node == end) & (kind == one) for one in (LINK, INTERESTS, MESH_ID)]
        state.append(last(mine[LINK], value, automaton.GONE))
        bits.append(last(mine[INTERESTS], value, 0))
        wanted.append(last(mine[INTERESTS], needs, 0))
        owner.append(last(mine[MESH_ID], value, UNKNOWN))
    ends = np.stack([low[rows], high[rows]])
    return Ends(time_us[rows], mark_first(first[rows]), ends, *(np.stack(one) for one in (state, bits, wanted, owner)))


def _sums(told: Rows, duration_us: int) -> Table:
    order = argsort(told.node)
    order = order[settled(mark_first(told.node[order]), told.time_us[order])]
    time_us, node, _, _, bits, needs = take_rows(told, order)
    at, until = spans(mark_first(node), time_us, duration_us, bits, needs)
    return {"node": node[at], "from_us": time_us[at], "until_us": until, "value": bits[at], "sequence": needs[at]}


def settled(begins: np.ndarray, times_us: np.ndarray) -> np.ndarray:
    """Of the rows of a key that are at the same time the last one. Rows are in order of keys and then of time."""
    return np.flatnonzero(np.append(begins[1:] | (times_us[1:] > times_us[:-1]), True)[: len(begins)])


def spans(begins: np.ndarray, times_us: np.ndarray, end_us: int, *values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows from which on some values of a key are others than before, and until when they stay so.

    Rows are `settled`; ``begins``: the first row of a key.
    """
    at = np.flatnonzero(begins | mark_first(*values))
    until = np.full(len(at), end_us, np.int64)
    until[:-1] = np.where(begins[at[1:]], end_us, times_us[at[1:]])
    return at, until


def steps(seen: Mesh, nodes: int, most: int | None = None) -> dict[str, np.ndarray]:
    """Over time, from 0 on: time_us, mean and most (fill of a network of so many nodes), muted (links).

    Arrays of shape (steps,): each says how it is from its time to the next one. ``most``: of so many of its times, if
    there are more.
    """
    muted = select(seen.links, seen.links["look"] == LOOKS.index(MUTED))
    changes = [some[name] for some in (seen.sums, muted) for name in ("from_us", "until_us")]
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


def _highest(some: Table, values: np.ndarray, times_us: np.ndarray) -> np.ndarray:
    """The highest value of the rows that are alive at each of some times; 0 where there is none.

    A row covers its times with two ranges of 2^k of them. Ranges are shared out from the largest to the smallest.
    """
    first, last = (np.searchsorted(times_us, some[name]) for name in ("from_us", "until_us"))
    kept = first < last
    first, last, values = first[kept], last[kept], values[kept]
    level = np.frexp((last - first).astype(float))[1] - 1
    highest = np.zeros(len(times_us), np.int64)
    for one in range(int(level.max(initial=0)), -1, -1):
        rows = level == one
        for begin in (first[rows], last[rows] - (1 << one)):
            np.maximum.at(highest, begin, values[rows])
        if one:
            half = 1 << (one - 1)
            highest[half:] = np.maximum(highest[half:], highest[:-half])
    return highest

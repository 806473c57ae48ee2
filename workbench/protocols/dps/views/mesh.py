"""The mesh of a run of DPS, reconstructed from its trace: states of links, and the filters sent over them.

    mesh_of(run)                             the mesh of a run of DPS
    mesh(trace, filter_bits, duration_us)    the mesh of a trace
    mesh_in(columns, ...)                    the mesh of a trace's columns

Theory of operation
    ``link_set`` rows of the trace report the state of a link at one of its nodes. ``interests_set`` rows report the
    filter received from a neighbor, or the sum of the node's own interests and all neighbors' filters. ``mesh_id_set``
    rows report the owner of the lowest mesh id that a neighbor has sent: the node that created this id. Each row
    replaces the value of the row before it. When a link ends, the values received over it end too.

    Each end of a link reports a state of the link. The link is *muted* if at least one end reports that state: it
    closes a loop and carries no publications. It is *active* if both ends report that state, and otherwise *pending*.

    The *fill* of a filter is the share of its bits that are set. It is 0 without interests. The nearer it is to 1, the
    more publications match it by chance.

How it is computed
    The rows about links are sorted by pairs of nodes and then by time. For each row, the states and filters of both
    ends at the row's time are computed. The tables of a mesh then merge consecutive rows with equal values into one
    interval.

Cost
    Array operations over rows about links, filters and mesh ids; the rows of frames are not read.

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
LINK, INTERESTS, MESH_ID = range(3)  # kinds of rows, see `Rows`


class Rows(NamedTuple):
    """The rows of a trace about links, filters and mesh ids, in order of time; each array of shape (rows,).

    node   node that reported the row
    peer   neighbor; -1 for the sum of the node's own interests and the interests of all its links
    kind   LINK, INTERESTS or MESH_ID
    value  LINK: a state of `automaton`; INTERESTS: number of set bits of a filter; MESH_ID: node that created the id
    needs  INTERESTS: number of set bits of the filter's needs, see `Filter`
    """

    time_us: np.ndarray
    node: np.ndarray
    peer: np.ndarray
    kind: np.ndarray
    value: np.ndarray
    needs: np.ndarray


class Filter(NamedTuple):
    """The numbers of set bits of a filter and of its needs.

    Needs are the bits that the fuzzy hashes of all interests in the filter share.
    """

    bits: int
    needs: int


class Ends(NamedTuple):
    """The states of links, as both ends see them, after each change: a row for each change of a link.

    Rows are sorted by pairs of nodes and then by time. Arrays have the shape (rows,), or (2, rows) for values of both
    ends, the end with the lower node first.

    time_us      time of the change, shape (rows,)
    begins       whether a row is the first of its pair of nodes, shape (rows,)
    node         the two nodes, shape (2, rows) like all arrays below
    state        state of the link at each node
    bits, needs  numbers of set bits of the interests (a filter) and needs (a fuzzy hash) that each node received last
    owner        node that created the lowest mesh id that each node has received over the link, or `UNKNOWN`
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
        """State of the link after each change: 0 active, 1 muted, 2 pending (see `LOOKS`), -1 gone at both ends."""
        low_state, high_state = self.state
        is_muted = (low_state == automaton.MUTED) | (high_state == automaton.MUTED)
        is_active = (low_state == automaton.ACTIVE) & (high_state == automaton.ACTIVE)
        is_gone = (low_state == automaton.GONE) & (high_state == automaton.GONE)
        return np.where(is_muted, 1, np.where(is_active, 0, np.where(is_gone, -1, 2)))


@dataclass(frozen=True)
class Mesh:
    """The mesh of a run over time. Its tables are sorted by nodes or pairs of nodes, and then by time.

    ends  states of links
    sums  table of each node's filter: the union of its own interests and those received over its links. A row is an
          interval without changes. Column ``value``: number of set bits of the filter; ``sequence``: number of set bits
          of its needs (the bits that the fuzzy hashes of all its interests share)
    """

    filter_bits: int
    ends: Ends
    sums: Table
    duration_us: int

    __getattr__ = refuse_unknown

    @cached_property
    def links(self) -> Table:
        """Table of the intervals in which a link has one state: active, muted or pending.

        ``node`` is the end with the lower number, ``peer`` the other end; ``look`` is the state's index in `LOOKS`.
        """
        look = self.ends.look
        rows, until_us = spans(self.ends.begins, self.ends.time_us, self.duration_us, look)
        exists = look[rows] >= 0
        rows, until_us = rows[exists], until_us[exists]
        node, peer = self.ends.node[:, rows]
        from_us = self.ends.time_us[rows]
        return {"node": node, "peer": peer, "from_us": from_us, "until_us": until_us, "look": look[rows]}

    @cached_property
    def link_ends(self) -> Table:
        """Table of the intervals in which the values at one end of a link do not change, for both ends of each link.

        node      node at this end
        peer      node at the other end
        look      state of the link, an `automaton.State`
        value     number of set bits of the filter that ``node`` has received
        sequence  number of set bits of this filter's needs
        origin    node that created the mesh id that ``node`` has received, or `UNKNOWN`
        """
        ends = self.ends
        return self._intervals_of_ends(
            lambda side: [values[side] for values in (ends.state, ends.bits, ends.needs, ends.owner)]
        )

    @cached_property
    def shade_of(self) -> np.ndarray:
        """Color of a filter for each number of set bits, as an index in `looks.COLOURS`; shape (most_bits + 1,)."""
        return shades(self.fewest_bits, self.most_bits)

    @cached_property
    def halves(self) -> Table:
        """Table of the intervals in which a link is active, and the filter received at one of its ends has one color.

        ``node`` is the node at this end, ``peer`` the node at the other end. ``look`` is the color of the received
        filter, as an index in `looks.COLOURS`.
        """
        shades_of_ends = np.where(self.ends.look == 0, self.shade_of[self.ends.bits], -1)
        return self._intervals_of_ends(lambda side: [shades_of_ends[side]])

    def links_at(self, time_us: int) -> dict[tuple[int, int], str]:
        """Return {(node, neighbor): state} of the links that exist at a time.

        The state is "active", "muted" or "pending". Each link has one entry, with the lower node first.
        """
        rows = self._rows_at(self.links, time_us)
        ends = _node_pairs(self.links, rows)
        return dict(sorted(zip(ends, [LOOKS[look] for look in self.links["look"][rows].tolist()], strict=True)))

    def filters_at(self, time_us: int) -> dict[tuple[int, int], Filter]:
        """Return {(node, neighbor): filter received from the neighbor} at a time, without empty filters."""
        rows = self._rows_at(self.link_ends, time_us)
        rows = rows[self.link_ends["value"][rows] > 0]
        return dict(zip(_node_pairs(self.link_ends, rows), _filters(self.link_ends, rows), strict=True))

    def sums_at(self, time_us: int) -> dict[int, Filter]:
        """Return {node: filter} at a time: the union of the node's own interests and those received over its links.

        Nodes whose union has no set bits are left out.
        """
        rows = self._rows_at(self.sums, time_us)
        rows = rows[self.sums["value"][rows] > 0]
        return dict(zip(self.sums["node"][rows].tolist(), _filters(self.sums, rows), strict=True))

    def fill(self, bits: int) -> float:
        """Return the fill of a filter with ``bits`` set bits: their share of all bits, in [0, 1]."""
        return bits / self.filter_bits

    @cached_property
    def fewest_bits(self) -> int:
        """Smallest number of set bits in a filter of the run, without empty filters; 0 if all filters are empty."""
        least_bit_counts = [
            bits[bits > 0].min(initial=self.filter_bits) for bits in (self.ends.bits, self.sums["value"])
        ]
        return min(*map(int, least_bit_counts), self.most_bits)

    @cached_property
    def most_bits(self) -> int:
        """Number of set bits of the fullest filter of the run."""
        return max(int(self.ends.bits.max(initial=0)), int(self.sums["value"].max(initial=0)))

    def _rows_at(self, rows: Table, time_us: int) -> np.ndarray:
        return alive(rows, min(time_us, self.duration_us - 1))

    def _intervals_of_ends(self, values_of: Any) -> Table:
        """Return a table of the intervals in which the values at one end of a link do not change, for all ends.

        ``values_of(side)`` returns one to four arrays, each with a value for each row of ``ends``; ``side`` is 0 for
        the ends with the lower node, 1 for those with the higher. The arrays become the columns ``look``, ``value``,
        ``sequence`` and ``origin`` of the table.

        Intervals in which the link does not exist are left out. If ``values_of`` returns several arrays, the first must
        be the states, and the state GONE marks these intervals; if it returns one array, a negative value does.
        """
        columns: dict[str, list[np.ndarray]] = {}
        for end_side in (0, 1):
            end_values = values_of(end_side)
            first_rows, until_us = spans(self.ends.begins, self.ends.time_us, self.duration_us, *end_values)
            exists = (
                end_values[0][first_rows] >= 0 if len(end_values) == 1 else end_values[0][first_rows] != automaton.GONE
            )
            first_rows, until_us = first_rows[exists], until_us[exists]
            end_columns = {
                "node": self.ends.node[end_side][first_rows],
                "peer": self.ends.node[1 - end_side][first_rows],
                "until_us": until_us,
            }
            end_columns |= {"from_us": self.ends.time_us[first_rows]}
            end_columns |= dict(
                zip(("look", "value", "sequence", "origin"), [value[first_rows] for value in end_values], strict=False)
            )
            for name, column in end_columns.items():
                columns.setdefault(name, []).append(column)
        return {name: np.concatenate(both_ends) for name, both_ends in columns.items()}


def _node_pairs(links: Table, rows: np.ndarray) -> list[tuple[int, int]]:
    return list(tuples(links, "node", "peer", rows=rows))


def _filters(filters: Table, rows: np.ndarray) -> list[Filter]:
    return [Filter(*row) for row in tuples(filters, "value", "sequence", rows=rows)]


def protocol_of(run: Any) -> DPS:
    """Return a run's protocol, which must be DPS. Raises ParameterError for a run of another protocol."""
    protocol = run.scenario.protocol
    if not isinstance(protocol, DPS):
        name = type(protocol).__name__
        raise ParameterError(f"the run's protocol is {name}; this view needs a run of DPS")
    return protocol


def mesh_of(run: Any) -> Mesh:
    """Return the mesh of a run of DPS.

    Raises ParameterError for a run of another protocol, ScenarioError for a run without a trace.
    """
    protocol = protocol_of(run)
    return mesh(run.trace, protocol.filter_bits, round(run.scenario.duration_s * 1e6))


def mesh(trace: pa.Table, filter_bits: int, duration_us: int) -> Mesh:
    """Return the mesh of a trace of DPS. Raises DataError if the table is not a trace.

    ``filter_bits``: length of a filter in bits. ``duration_us``: duration of the run (µs).
    """
    return mesh_in(Columns(trace), filter_bits, duration_us)


def mesh_in(columns: Columns, filter_bits: int, duration_us: int) -> Mesh:
    """Return the mesh of a trace of DPS, given the trace's columns.

    ``filter_bits``: length of a filter in bits. ``duration_us``: duration of the run (µs).
    """
    mesh_rows = columns.where(event=("link_set", "interests_set", "mesh_id_set"))
    mesh_rows = mesh_rows[columns["time_us"][mesh_rows] < duration_us]
    needs_of_words = np.array(
        [int(detail_text) if detail_text.isdigit() else 0 for detail_text in columns.words["detail"]] or [0], np.int32
    )
    is_link, is_filter = (columns.says("event", mesh_rows, event_name) for event_name in ("link_set", "interests_set"))
    row_kind = np.where(is_link, LINK, np.where(is_filter, INTERESTS, MESH_ID))
    time_us, node, peer, row_value = (columns[name][mesh_rows] for name in ("time_us", "node", "peer", "value"))
    is_id = row_kind == MESH_ID
    row_value[is_id] = _find_owners(node[is_id], peer[is_id], row_value[is_id])
    needs_of_words = needs_of_words[columns.codes["detail"][mesh_rows]]
    return mesh_of_rows(
        Rows(time_us, node, peer, row_kind, row_value.astype(np.int32), needs_of_words), filter_bits, duration_us
    )


def _find_owners(node: np.ndarray, peer: np.ndarray, id_number: np.ndarray) -> np.ndarray:
    """Return, for each row about a mesh id, the node that created the id, or `UNKNOWN`.

    ``node``, ``peer``, ``id_number``: columns of these rows. In a row with the peer -1, a node reports its own id.
    """
    is_own = peer < 0
    own_ids, own_rows = unique_index(id_number[is_own])
    return np.append(node[is_own][own_rows], UNKNOWN)[find_sorted(id_number, own_ids)]


def mesh_of_rows(reported: Rows, filter_bits: int, duration_us: int) -> Mesh:
    """Return the mesh of a run, given ``reported``: the trace rows about links, filters and mesh ids.

    ``filter_bits``: length of a filter in bits. ``duration_us``: duration of the run (µs).
    """
    is_sum = (reported.peer < 0) & (reported.kind == INTERESTS)
    links, sums = (take_rows(reported, rows) for rows in (reported.peer >= 0, is_sum))
    return Mesh(filter_bits, _compute_ends(links), _compute_sums(sums, duration_us), duration_us)


def _compute_ends(reported: Rows) -> Ends:
    """Return the states of the links, as both ends report them, after each change of a link.

    ``reported``: rows of the trace with a neighbor (``peer``). Several changes of a link at the same time have a single
    row in the result.
    """
    low_node, high_node = np.minimum(reported.node, reported.peer), np.maximum(reported.node, reported.peer)
    sorted_rows = argsort(row_keys(low_node, high_node))
    time_us, node, peer, kind, row_value, needs = take_rows(reported, sorted_rows)
    low_node, high_node = np.minimum(node, peer), np.maximum(node, peer)
    is_first_of_pair = mark_first(low_node, high_node)
    first_rows = last_marked(is_first_of_pair)
    settled_rows = settled(is_first_of_pair, time_us)
    # When a link ends, the values received over it are no longer valid.
    is_gone = (kind == LINK) & (row_value == automaton.GONE)

    def find_last_row(marks: np.ndarray) -> np.ndarray:
        """Return the index of the last marked row at or before each row in ``settled_rows``; -1 if no row is marked.

        Only rows of the same pair of nodes are searched. ``marks``: whether each row is marked. ``settled_rows``: the
        last row of each link at each time.
        """
        last_row = last_marked(marks)[settled_rows]
        return np.where(last_row >= first_rows[settled_rows], last_row, -1)

    def last_value(marks: np.ndarray, values: np.ndarray, default: int) -> np.ndarray:
        """Return, for each row in ``settled_rows``, the value of the last marked row at or before this row.

        Only rows of the same pair of nodes are searched. The result is ``default`` if none of them is marked, or if the
        link has ended since. ``marks``: whether each row is marked. ``values``: value of each row. ``settled_rows``:
        the last row of each link at each time.
        """
        last_end_row = find_last_row(marks | (is_gone & (node == end_node)))
        return np.where((last_end_row >= 0) & ~is_gone[last_end_row], values[last_end_row], default)

    end_states, end_bits, end_needs, owner = [], [], [], []
    for end_node in (low_node, high_node):
        marks = [(node == end_node) & (kind == row_kind) for row_kind in (LINK, INTERESTS, MESH_ID)]
        end_states.append(last_value(marks[LINK], row_value, automaton.GONE))
        end_bits.append(last_value(marks[INTERESTS], row_value, 0))
        end_needs.append(last_value(marks[INTERESTS], needs, 0))
        owner.append(last_value(marks[MESH_ID], row_value, UNKNOWN))
    end_nodes = np.stack([low_node[settled_rows], high_node[settled_rows]])
    return Ends(
        time_us[settled_rows],
        mark_first(first_rows[settled_rows]),
        end_nodes,
        *(np.stack(sides) for sides in (end_states, end_bits, end_needs, owner)),
    )


def _compute_sums(reported: Rows, duration_us: int) -> Table:
    sorted_rows = argsort(reported.node)
    sorted_rows = sorted_rows[settled(mark_first(reported.node[sorted_rows]), reported.time_us[sorted_rows])]
    time_us, node, _, _, bits, needs = take_rows(reported, sorted_rows)
    rows, until_us = spans(mark_first(node), time_us, duration_us, bits, needs)
    sums = {"node": node[rows], "from_us": time_us[rows], "until_us": until_us}
    return sums | {"value": bits[rows], "sequence": needs[rows]}


def settled(begins: np.ndarray, times_us: np.ndarray) -> np.ndarray:
    """Return the indices of the rows that are the last with their key and time (the *settled* rows).

    A key is a node or a pair of nodes. Rows must be sorted by key, then by time. ``begins``: whether a row is the first
    of its key. ``times_us``: time of each row.
    """
    return np.flatnonzero(np.append(begins[1:] | (times_us[1:] > times_us[:-1]), True)[: len(begins)])


def spans(begins: np.ndarray, times_us: np.ndarray, end_us: int, *values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Divide the rows of each key into intervals in which all ``values`` are constant; return (rows, ends).

    rows  index of the first row of each interval
    ends  end of each interval (µs): the next change of a value or, for the last interval of a key, ``end_us``

    A key is a node or a pair of nodes. Rows must be sorted by key and time, with one row for each time (`settled`).
    ``begins``: whether a row is the first of its key. ``times_us``: time of each row.
    """
    rows = np.flatnonzero(begins | mark_first(*values))
    until_us = np.full(len(rows), end_us, np.int64)
    until_us[:-1] = np.where(begins[rows[1:]], end_us, times_us[rows[1:]])
    return rows, until_us


def steps(seen: Mesh, nodes: int, most: int | None = None) -> dict[str, np.ndarray]:
    """Return totals of the mesh ``seen`` over time, as a dict of arrays with one element for each change.

    Keys of the result:

    time_us  time of the change; the totals are valid until the next change
    mean     mean fill of the nodes' filters
    most     largest fill of a node's filter
    muted    number of muted links

    ``nodes``: number of nodes in the network. The argument ``most`` is the largest length of the arrays (None: no
    limit). If there are more changes, ``most`` of them are chosen, evenly spread over the list of changes.
    """
    muted_links = select(seen.links, seen.links["look"] == LOOKS.index(MUTED))
    change_times = [
        interval_table[name] for interval_table in (seen.sums, muted_links) for name in ("from_us", "until_us")
    ]
    total_times_us = np.concatenate([[0], *change_times])
    total_times_us = total_times_us[argsort(total_times_us)]
    total_times_us = total_times_us[mark_first(total_times_us) & (total_times_us < seen.duration_us)]
    if most is not None and len(total_times_us) > most:
        total_times_us = total_times_us[np.linspace(0, len(total_times_us) - 1, most).astype(np.int64)]
    bit_sums = running(seen.sums, total_times_us, seen.sums["value"])
    return {
        "time_us": total_times_us,
        "mean": bit_sums / seen.filter_bits / max(nodes, 1),
        "most": _highest(seen.sums, seen.sums["value"], total_times_us) / seen.filter_bits,
        "muted": running(muted_links, total_times_us),
    }


def _highest(rows: Table, values: np.ndarray, times_us: np.ndarray) -> np.ndarray:
    """Return, for each time, the highest value of the rows whose intervals contain the time; 0 if no interval does.

    ``rows``: a table with the columns from_us and until_us. ``values``: a value for each row. ``times_us``: times,
    ascending.

    An interval contains consecutive elements of ``times_us``. These are covered by two ranges of 2^k elements, which
    may overlap. The value is first stored for the two ranges as a whole. Then, from the largest k down to 1, the
    highest value of each range of 2^k elements is passed to its two halves.
    """
    first_times, end_times = (np.searchsorted(times_us, rows[name]) for name in ("from_us", "until_us"))
    has_times = first_times < end_times
    first_times, end_times, values = first_times[has_times], end_times[has_times], values[has_times]
    range_exponents = np.frexp((end_times - first_times).astype(float))[1] - 1
    highest_values = np.zeros(len(times_us), np.int64)
    for exponent in range(int(range_exponents.max(initial=0)), -1, -1):
        has_exponent = range_exponents == exponent
        for range_begins in (first_times[has_exponent], end_times[has_exponent] - (1 << exponent)):
            np.maximum.at(highest_values, range_begins, values[has_exponent])
        if exponent:
            half_length = 1 << (exponent - 1)
            highest_values[half_length:] = np.maximum(highest_values[half_length:], highest_values[:-half_length])
    return highest_values

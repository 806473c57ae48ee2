"""TinyMQ's overlay in a trace: which nodes had which keys and zones in which trees, and which queries they stored.

    overlay_of(run)                                 the overlay of a run of TinyMQ or PUB-2-SUB+
    overlay(trace, roots, duration_us)              the same from a trace

A node's *place* is its position in a tree: its parent and its key. Its *zone* is the set of strings (of the key space)
that it stores for that tree.

Theory of operation
    Trace rows "key_set" show when a node gets or loses a key, rows "zone_set" a zone, and rows "query_stored" a stored
    query. Between the rows "failed" and "recovered" a node is down, and has no place. When it is up again, it has its
    former place, because an outage keeps its memory. A node that is up and has no place is an *orphan*. In PUB-2-SUB+,
    where a node belongs to every tree, a node is an orphan if it lacks a place in any of them.

    A place is *re-keyed* if its node had another key, or was in another tree, just before the last failure in the
    network. With the next failure the comparison begins anew: views show the repair of one failure. `repair_metrics`
    compares the end of a run with the time before the first failure. Views and `repair_metrics` never count a node
    without a place as re-keyed.

Cost
    The few rows named above are sorted as arrays. Rows of frames are not read.

Limits
    A trace has the keys and zones that the nodes themselves logged. While a change spreads, parent and child may
    disagree, and the zones of two nodes may overlap.

Reference
    Events KeySet, ZoneSet and QueryStored of `workbench.protocols.tinymq.events`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.columns import argsort, last_marked, lexsort, row_keys, unique_inverse
from workbench.errors import ParameterError
from workbench.protocols.tinymq import TinyMQ
from workbench.sim.rows import Columns
from workbench.views.layers import Table, alive, as_spans, select
from workbench.views.spans import FOREVER_US, joined, opened, within, without

NEVER, LOST, PLACED = range(3)  # states of a node that is up: no place yet, place lost, all needed places


class PlaceSpan(NamedTuple):
    """A node's place (parent and key) in a tree during [from_us, until_us).

    parent: the parent's address, -1 at a root; is_rekeyed: whether the node had another key or tree just before the
    last failure in the network.
    """

    node: int
    tree: int
    parent: int
    key: str
    from_us: int
    until_us: int
    is_rekeyed: bool = False


class OrphanSpan(NamedTuple):
    """An interval [from_us, until_us) in which a node was an orphan: up, but without a place (parent and key).

    In PUB-2-SUB+ a node is also an orphan if it lacks a place in only some of the trees. had_place: whether the node
    had its place, or all of its places, before.
    """

    node: int
    from_us: int
    until_us: int
    had_place: bool


class StoredSpan(NamedTuple):
    """An interval [from_us, until_us) in which a node stores a query that a sink sent to a tree.

    sink, number: the query's sink and its number there; text: the query's attributes, as text.
    """

    node: int
    sink: int
    number: int
    text: str
    from_us: int
    until_us: int
    tree: int = 0


@dataclass(frozen=True, eq=False)
class Overlay:
    """The overlay of a run over time: tables sorted by ``from_us``, whose rows are intervals [from_us, until_us).

        roots         a tuple: the root of each tree
        words         the texts of keys and queries; the columns ``key`` and ``text`` of the tables have indices into it
        place_rows    columns: the fields of `PlaceSpan`, and the depth of the node in the tree
        orphan_rows   columns: the fields of `OrphanSpan`
        stored_rows   columns: the fields of `StoredSpan`
        zone_rows     node, tree, low, high (the node stored the strings in [low, high]), from_us, until_us, zone (a
                      number common to all intervals of a zone)
        whole         node, from_us, until_us: when a node was up and had a place (in PUB-2-SUB+: in every tree)
        outages       node, from_us, until_us: when a node was down
        duration_us   duration of the run

    The properties ``places``, ``orphans`` and ``stored`` return the rows of ``place_rows``, ``orphan_rows`` and
    ``stored_rows`` as tuples of `PlaceSpan`, `OrphanSpan` and `StoredSpan`, with texts instead of indices.
    """

    roots: tuple[int, ...]
    words: Sequence[str]
    place_rows: Table
    orphan_rows: Table
    whole: Table
    stored_rows: Table
    zone_rows: Table
    outages: Table
    duration_us: int

    @cached_property
    def places(self) -> tuple[PlaceSpan, ...]:
        """The places (parent and key) of all nodes in all trees, with their intervals."""
        return tuple(as_spans(PlaceSpan, self.place_rows, self.words))

    @cached_property
    def orphans(self) -> tuple[OrphanSpan, ...]:
        """The intervals in which nodes were orphans: up, but without a place (parent and key) in the overlay."""
        return tuple(as_spans(OrphanSpan, self.orphan_rows))

    @cached_property
    def stored(self) -> tuple[StoredSpan, ...]:
        """The queries that nodes stored: a `StoredSpan` for each interval in which a node stored a query."""
        return tuple(as_spans(StoredSpan, self.stored_rows, self.words))

    def places_at(self, time_us: int) -> list[PlaceSpan]:
        """Return the places (parent and key) of nodes in trees at ``time_us``, sorted by node and tree."""
        return sorted(as_spans(PlaceSpan, self.place_rows, self.words, self.alive(self.place_rows, time_us)))

    def orphans_at(self, time_us: int) -> list[OrphanSpan]:
        """Return the `OrphanSpan` of each node that is up without a place at ``time_us``, sorted by node.

        A place is a parent and a key in a tree.
        """
        return sorted(as_spans(OrphanSpan, self.orphan_rows, (), self.alive(self.orphan_rows, time_us)))

    def stored_at(self, time_us: int) -> list[StoredSpan]:
        """Return the queries that nodes store at ``time_us``, sorted by node, sink and the query's number."""
        return sorted(as_spans(StoredSpan, self.stored_rows, self.words, self.alive(self.stored_rows, time_us)))

    def down_at(self, time_us: int) -> set[int]:
        """Return the nodes that are down at ``time_us``."""
        return set(self.outages["node"][self.alive(self.outages, time_us)].tolist())

    def alive(self, spans: Table, time_us: int) -> np.ndarray:
        """Return the indexes of the rows of ``spans`` whose intervals [from_us, until_us) contain ``time_us``.

        If ``time_us`` is the end of the run or later, return the rows whose intervals last until the end.
        """
        return alive(spans, min(time_us, self.duration_us - 1))


def protocol_of(run: Any) -> TinyMQ:
    """Return the protocol of a run of TinyMQ or PUB-2-SUB+.

    Raises ParameterError for other protocols, because they build no overlay.
    """
    protocol = run.scenario.protocol
    if not isinstance(protocol, TinyMQ):
        name = type(protocol).__name__
        raise ParameterError(f"the run's protocol is {name}, which builds no overlay; use a run of TinyMQ or Pub2Sub")
    return protocol


def overlay_of(run: Any) -> Overlay:
    """Return the overlay of a run.

    Raises ParameterError if the run's protocol builds no overlay, ScenarioError if the run has kept no trace.
    """
    protocol_of(run)
    return overlay_in(run, Columns(run.trace))


def overlay_in(run: Any, columns: Columns) -> Overlay:
    """Return the overlay of a run of TinyMQ or PUB-2-SUB+ from the columns of its trace."""
    protocol, nodes = run.scenario.protocol, run.scenario.topology
    duration_us = round(run.scenario.duration_s * 1e6)
    return _read_overlay(columns, protocol.roots, duration_us, nodes, protocol.node.every_tree)


def overlay(
    trace: pa.Table, roots: Sequence[int], duration_us: int, nodes: Iterable[int] = (), every_tree: bool = False
) -> Overlay:
    """Return the overlay (trees, keys, zones, stored queries) in a trace.

    Raises DataError if ``trace`` lacks a column of a trace. ``roots``: the root of each tree; ``duration_us``: the
    length of the run; ``nodes``: all nodes of the network, because nodes that never joined are in no row;
    ``every_tree``: whether each node belongs to all trees.
    """
    return _read_overlay(Columns(trace), roots, duration_us, nodes, every_tree)


def _read_overlay(
    columns: Columns, roots: Sequence[int], duration_us: int, nodes: Iterable[int], every_tree: bool
) -> Overlay:
    outages = _outages(columns, columns.where(event=("failed", "recovered")), duration_us)
    place_rows = without(_places(columns, columns.where(event="key_set"), duration_us), outages)
    needed_places = len(roots) if every_tree else 1
    states = _node_states(place_rows, outages, np.array(list(nodes), np.int64), needed_places, duration_us)
    orphan_rows = select(states, states["state"] != PLACED)
    stored_rows = without(_stored_queries(columns, columns.where(event="query_stored"), duration_us), outages)
    return Overlay(
        tuple(roots),
        columns.words["detail"],
        _sort(_mark_rekeyed(place_rows, np.unique(outages["from_us"]), every_tree), "tree", "node"),
        _sort(orphan_rows | {"had_place": orphan_rows["state"] == LOST}, "node"),
        _sort(select(states, states["state"] == PLACED), "node"),
        _sort(stored_rows, "node"),
        _sort(without(_zones(columns, columns.where(event="zone_set"), duration_us), outages), "node"),
        _sort(outages, "node"),
        duration_us,
    )


def _sort(spans: Table, *names: str) -> Table:
    return select(spans, lexsort((*(spans[name] for name in names), spans["from_us"])))


def _outages(columns: Columns, rows: np.ndarray, duration_us: int) -> Table:
    node, times_us = columns["node"][rows].astype(np.int64), columns["time_us"][rows]
    is_failure = columns.says("event", rows, "failed")
    opening_rows, until_us = opened(node, times_us, is_failure, duration_us, reopens=False)
    return within({"node": node[opening_rows], "from_us": times_us[opening_rows], "until_us": until_us}, duration_us)


def _places(columns: Columns, rows: np.ndarray, duration_us: int) -> Table:
    node, tree = columns["node"][rows].astype(np.int64), columns["origin"][rows].astype(np.int64)
    opening_rows, until_us = opened(
        row_keys(node, tree), columns["time_us"][rows], columns["value"][rows] >= 0, duration_us
    )
    rows = rows[opening_rows]
    places = {"node": node[opening_rows], "tree": tree[opening_rows], "parent": columns["peer"][rows]}
    key_codes, key_index = unique_inverse(columns.codes["detail"][rows])
    depths = _depths([columns.words["detail"][code] for code in key_codes.tolist()])
    places |= {
        "key": key_codes[key_index],
        "depth": depths[key_index],
        "from_us": columns["time_us"][rows],
        "until_us": until_us,
    }
    return within(places, duration_us)


def _depths(keys: list[str]) -> np.ndarray:
    """Return an array with the depth (hops from the root) of each key's node in its tree.

    The depth is the number of 1s in the key, as each hop from the root adds one 1.
    """
    key_lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    key_ends = np.cumsum(key_lengths)
    ones_before = np.append(0, np.cumsum(np.frombuffer("".join(keys).encode(), np.uint8) == ord("1")))
    return ones_before[key_ends] - ones_before[key_ends - key_lengths]


def _zones(columns: Columns, rows: np.ndarray, duration_us: int) -> Table:
    """Return the table ``zone_rows`` of an `Overlay`: intervals of strings, and the times at which nodes had them.

    ``rows``: indices of the trace rows "zone_set". Each row either adds an interval to a node's zone in a tree, or ends
    this zone. A zone that no row ends lasts until ``duration_us``.
    """
    names = {"node": "node", "tree": "origin", "low": "sequence", "high": "value", "from_us": "time_us"}
    zones = {name: columns[column][rows].astype(np.int64) for name, column in names.items()}
    owner_keys = row_keys(zones["node"], zones["tree"])
    row_order = argsort(owner_keys)
    zones, owner_keys = select(zones, row_order), owner_keys[row_order]
    is_end = zones["high"] < 0
    end_rows = np.flatnonzero(is_end)
    end_row = np.append(end_rows, len(owner_keys))[np.searchsorted(end_rows, np.arange(len(owner_keys)))]
    is_ended = np.append(owner_keys, -1)[end_row] == owner_keys
    zones["until_us"] = np.where(is_ended, np.append(zones["from_us"], 0)[end_row], duration_us)
    zones["zone"] = row_keys(owner_keys, np.cumsum(is_end))
    return within(select(zones, ~is_end), duration_us)


def _stored_queries(columns: Columns, rows: np.ndarray, duration_us: int) -> Table:
    names = {"node": "node", "sink": "origin", "number": "sequence"}
    queries = {name: columns[column][rows].astype(np.int64) for name, column in names.items()}
    queries["tree"] = np.abs(columns["value"][rows]) - 1
    times_us, is_stored = columns["time_us"][rows], columns["value"][rows] > 0
    opening_rows, until_us = opened(row_keys(*queries.values()), times_us, is_stored, duration_us, reopens=False)
    queries = select(queries, opening_rows) | {"text": columns.codes["detail"][rows[opening_rows]]}
    return within(queries | {"from_us": times_us[opening_rows], "until_us": until_us}, duration_us)


def _mark_rekeyed(place_rows: Table, failures_us: np.ndarray, every_tree: bool) -> Table:
    """Return the table of places (parents and keys of nodes) with a further column ``is_rekeyed``.

    ``failures_us``: the times of failures. A place is re-keyed if its node had another key or tree just before the last
    failure. A re-keyed place that lasts beyond the next failure is split at that time, because the comparison begins
    anew. ``every_tree``: whether each node belongs to all trees, so that each tree is compared separately.
    """
    owner_keys = row_keys(place_rows["node"], place_rows["tree"]) if every_tree else row_keys(place_rows["node"])
    row_order = lexsort((place_rows["from_us"], owner_keys))
    place_rows, owner_keys = select(place_rows, row_order), owner_keys[row_order]
    start_us, until_us, time_scale = (
        place_rows["from_us"],
        place_rows["until_us"],
        int(place_rows["until_us"].max(initial=0)) + 1,
    )
    last_failure = np.searchsorted(failures_us, start_us, "right") - 1
    failed_us = np.append(failures_us, 0)[last_failure]
    previous_row = np.searchsorted(owner_keys * time_scale + start_us, owner_keys * time_scale + failed_us) - 1
    has_previous = (last_failure >= 0) & (previous_row >= 0) & (owner_keys[previous_row] == owner_keys)
    is_different = (place_rows["tree"][previous_row] != place_rows["tree"]) | (
        place_rows["key"][previous_row] != place_rows["key"]
    )
    is_rekeyed = has_previous & is_different
    next_failure_us = np.append(failures_us, FOREVER_US)[last_failure + 1]
    is_split = is_rekeyed & (next_failure_us < until_us)
    marked_rows = place_rows | {"until_us": np.where(is_split, next_failure_us, until_us), "is_rekeyed": is_rekeyed}
    split_rows = select(place_rows, is_split) | {
        "from_us": next_failure_us[is_split],
        "is_rekeyed": np.zeros(is_split.sum(), bool),
    }
    return {name: np.concatenate([marked_rows[name], split_rows[name]]) for name in marked_rows}


def _node_states(place_rows: Table, outages: Table, nodes: np.ndarray, needed: int, duration_us: int) -> Table:
    """Return a table of the intervals in which nodes were up, with the columns node, state, from_us, until_us.

    A place is a parent and a key in a tree. ``state`` is PLACED while the node has at least ``needed`` places. With
    fewer places, ``state`` is LOST if the node had ``needed`` places earlier, else NEVER. ``nodes``: all nodes of the
    network; ``place_rows``, ``outages``: the tables of an `Overlay`.
    """
    all_nodes = np.unique(np.concatenate([nodes, place_rows["node"], outages["node"]]))
    # Changes: (node, time, change of the number of places, change of the count "is up").
    changes = [
        (all_nodes, np.zeros(len(all_nodes), np.int64), 0, 1),
        *(
            (place_rows["node"], place_rows[name], place_change, 0)
            for name, place_change in (("from_us", 1), ("until_us", -1))
        ),
        *((outages["node"], outages[name], 0, up_change) for name, up_change in (("from_us", -1), ("until_us", 1))),
    ]
    node, time_us = (np.concatenate([node_changes[column] for node_changes in changes]) for column in (0, 1))
    place_change, up_change = (
        np.repeat(
            [node_changes[column] for node_changes in changes], [len(node_changes[0]) for node_changes in changes]
        )
        for column in (2, 3)
    )
    change_order = lexsort((up_change, place_change, time_us, node))
    node, time_us = node[change_order], time_us[change_order]
    first_change = np.searchsorted(node, node)
    until_us = np.append(time_us[1:], duration_us)
    until_us[:-1][node[1:] != node[:-1]] = duration_us
    # Changes of places sum to 0 for each node, so one sum serves all nodes. Being up adds 1 a node: subtract it.
    has_all = np.cumsum(place_change[change_order]) >= needed
    is_up = np.cumsum(up_change[change_order]) - np.searchsorted(all_nodes, node) > 0
    last_placed = last_marked(has_all)
    state_codes = np.where(has_all, PLACED, np.where(last_placed >= first_change, LOST, NEVER))
    states = {"node": node, "state": state_codes, "from_us": time_us, "until_us": until_us}
    return joined(select(states, is_up & (time_us < until_us)), "node", "state")

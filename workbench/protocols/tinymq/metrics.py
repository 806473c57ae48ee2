"""Metrics of overlay trees and rendezvous nodes: what a query, an event and a failure cost TinyMQ and PUB-2-SUB+.

Each function takes a run that has kept its trace and answers {name: number}, so that a sweep can use it as its
``measure``. They look at the rows that only these protocols make (key_set, query_stored), and at the frames that
are called "query", "event" and "notification".

    query_metrics
        zone_share                    share of nodes that have a zone, as their key fits into ``key_bits``
        queries_asked                 subscriptions
        stored_per_query, _tree       nodes that store a query, in all trees and on average in one; means over queries.
                                      A node that stores it in several trees counts in each
        hops_own_tree, hops_all_trees hops from the sink to a node that stores the query: mean over these nodes, in the
                                      trees that the sink has a place in and in all; then mean over queries
    load_metrics
        events_published              readings
        event_hops, notification_hops frames of that name for each reading
        relays_mean, relays_busiest   frames of others' events that a node sends for each reading: mean over all nodes,
                                      and that of the node that sends most
        traffic_busiest               the same with the node's own events and with notifications
    repair_metrics
        failed_nodes, live_nodes      nodes that are off in the end, and the others
        rekeyed_nodes                 live nodes that have a key in the end, and before the first failure another or
                                      none. (Views count from the last failure before the time that they show)
        moved_nodes                   live nodes whose distances to the roots, a distance vector, are others
        affected_nodes                live nodes of which the one or the other is true, or that have no key in the end
        unplaced_nodes                live nodes that have no key in the end
        cut_off_nodes                 live nodes that no root has a path to in the end: they cannot have one
        repair_s                      from the first failure to the last time that a node got a key or lost it

Theory of operation
    A trace does not say which frame came of which. But a node's radio sends unicast frames in the order it was given
    them, so the frames it sends of a query are those that its rows "forwarded" speak of, in their order; and from one
    neighbor frames come in the order they were sent. Followed row by row, that gives the hops of every copy.

    Distances are those of the topology, before with all nodes and after with those that are up: infos make the nodes'
    distances the shortest ones.

Limits
    Hops cannot be followed where the protocol sends frames again or hands stored queries over, and nodes that store a
    query no more are not to be counted with those that do; both is told by a ParameterError. Set ``retries=0`` on links
    that lose nothing, subscribe when the overlay has settled and to the end, and let nothing fail after that.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import ParameterError
from workbench.protocols.contract import NOBODY
from workbench.sim import trace
from workbench.sim.run import Run

NOT_A_NUMBER = float("nan")
Places = dict[int, dict[int, str]]  # node -> tree -> key


def query_metrics(run: Run) -> dict[str, float]:
    """What queries cost: where they are stored, and how far that is. ParameterError if hops cannot be followed."""
    rows = run.trace
    places = _places(_some(rows, ("key_set",)))
    trees = {tree for held in places.values() for tree in held}
    subscribed, failed = _some(rows, ("subscribed",)), _some(rows, ("failed",))
    if len(subscribed) and len(failed) and pc.max(failed["time_us"]).as_py() >= pc.min(subscribed["time_us"]).as_py():
        raise _lost_track()
    asked = list(_rows(subscribed, "node", "sequence"))
    everywhere: dict[tuple[int, int], list[int]] = {query: [] for query in asked}
    near: dict[tuple[int, int], list[int]] = {query: [] for query in asked}
    for node, query, hops in _stores(
        _some(rows, ("sent", "received", "lost", "forwarded", "query_stored"), ("query",))
    ):
        everywhere[query].append(hops)
        if places[node].keys() & places[query[0]].keys():
            near[query].append(hops)
    stored = _mean([len(found) for found in everywhere.values()])
    shortest = [min(map(len, held.values())) for held in places.values() if held]
    with_zone = sum(bits <= run.scenario.protocol.key_bits for bits in shortest)
    return {
        "zone_share": with_zone / len(run.scenario.topology),
        "queries_asked": len(asked),
        "stored_per_query": stored,
        "stored_per_tree": stored / len(trees) if trees else NOT_A_NUMBER,
        "hops_own_tree": _mean([_mean(found) for found in near.values() if found]),
        "hops_all_trees": _mean([_mean(found) for found in everywhere.values() if found]),
    }


def load_metrics(run: Run) -> dict[str, float]:
    """What events cost, in all and at the busiest node."""
    rows = run.trace
    events = len(_some(rows, ("originated",), ("event",)))
    sent = _some(rows, ("sent",), ("event",))
    nodes, origins = (sent.column(name).to_numpy() for name in ("node", "origin"))
    relays = Counter(nodes[nodes != origins].tolist())
    traffic = _some(rows, ("sent",), ("event", "notification")).column("node").to_numpy()
    share = 1 / events if events else NOT_A_NUMBER
    return {
        "events_published": events,
        "event_hops": len(nodes) * share,
        "notification_hops": (len(traffic) - len(nodes)) * share,
        "relays_mean": relays.total() / len(run.scenario.topology) * share,
        "relays_busiest": max(relays.values(), default=0) * share,
        "traffic_busiest": max(Counter(traffic.tolist()).values(), default=0) * share,
    }


def repair_metrics(run: Run) -> dict[str, float]:
    """What failures cost: the nodes whose place or distances have changed. ParameterError if nothing fails."""
    rows = run.trace
    failures = list(_rows(_some(rows, ("failed", "recovered")), "time_us", "node", "event"))
    if not failures:
        raise ParameterError("nothing fails in this run; its workload needs an outage(...) for a repair to be measured")
    last = {node: event for _, node, event in failures}
    down = {node for node, event in last.items() if event == "failed"}
    first_us = failures[0][0]
    key_sets = _some(rows, ("key_set",))
    times_us = key_sets.column("time_us").to_numpy()
    before, after = _places(key_sets.take(np.flatnonzero(times_us < first_us))), _places(key_sets)
    topology = run.scenario.topology
    live = [node for node in topology if node not in down]
    roots = {tree: node for node, held in before.items() for tree, key in held.items() if not key}
    vectors = _distances(topology, roots), _distances(topology.subgraph(live), roots)
    unplaced = {node for node in live if not after.get(node)}
    rekeyed = {node for node in live if node not in unplaced and before.get(node, {}) != after[node]}
    moved = {node for node in live if any(of[0].get(node) != of[1].get(node) for of in zip(*vectors, strict=True))}
    return {
        "failed_nodes": len(down),
        "live_nodes": len(live),
        "rekeyed_nodes": len(rekeyed),
        "moved_nodes": len(moved),
        "affected_nodes": len(rekeyed | moved | unplaced),
        "unplaced_nodes": len(unplaced),
        "cut_off_nodes": sum(all(node not in one for one in vectors[1]) for node in live),
        "repair_s": max(0, int(times_us.max(initial=0)) - first_us) / 1e6,
    }


# Rows


def _are(table: pa.Table, column: str, names: tuple[str, ...]) -> np.ndarray:
    """Where a column of text has one of these names: by its codes, which are far fewer than its rows."""
    codes, texts = trace.codes(table.column(column))
    wanted = np.array([text in names for text in texts], np.bool_)
    return wanted[codes] if len(texts) else np.zeros(len(table), np.bool_)


def _some(table: pa.Table, events: tuple[str, ...], messages: tuple[str, ...] = ()) -> pa.Table:
    """The rows of some events, and of some messages if they are named."""
    found = _are(table, "event", events)
    return table.take(np.flatnonzero(found & _are(table, "message", messages) if messages else found))


def _rows(table: pa.Table, *columns: str) -> Iterator[tuple]:
    """Some columns as tuples."""
    cells = []
    for name in columns:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            codes, texts = trace.codes(column)
            cells.append([texts[code] for code in codes.tolist()])
        else:
            cells.append(column.to_numpy().tolist())
    return zip(*cells, strict=True)


def _places(key_sets: pa.Table) -> Places:
    """Which key each node has in which tree after these rows."""
    places: Places = defaultdict(dict)
    for node, tree, length, key in _rows(key_sets, "node", "origin", "value", "detail"):
        if length == NOBODY:
            places[node].pop(tree, None)
        else:
            places[node][tree] = key
    return places


# Hops


def _stores(rows: pa.Table) -> Iterator[tuple[int, tuple[int, int], int]]:
    """(node, (sink, number of the query), hops from the sink) each time that a node comes to store a query."""
    waiting: defaultdict[tuple, deque[int]] = defaultdict(deque)  # at a node, to be sent
    flying: defaultdict[tuple, deque[int]] = defaultdict(deque)  # from a node to another
    arrived: dict[tuple, int] = {}  # at a node from another, the last one
    for event, node, peer, sink, number, value in _rows(rows, "event", "node", "peer", "origin", "sequence", "value"):
        query = sink, number
        if event == "forwarded":
            waiting[node, query].extend([_hops(arrived, node, peer, query)] * value)
        elif event == "sent":
            flying[node, peer, query].append(_next(waiting[node, query]) + 1)
        elif event == "received":
            arrived[node, peer, query] = _next(flying[peer, node, query])
        elif event == "lost":
            _next(flying[peer, node, query])
        elif value > 0:
            yield node, query, _hops(arrived, node, peer, query)
        else:
            raise _lost_track()
    if any(waiting.values()):
        raise _lost_track()


def _hops(arrived: dict[tuple, int], node: int, peer: int, query: tuple[int, int]) -> int:
    if peer != NOBODY:
        return arrived[node, peer, query]
    # What comes from nobody is the sink's own, or something that a node had and now routes anew.
    if node != query[0]:
        raise _lost_track()
    return 0


def _next(queue: deque[int]) -> int:
    if not queue:
        raise _lost_track()
    return queue.popleft()


def _lost_track() -> ParameterError:
    return ParameterError(
        "the hops of queries cannot be followed in this run: queries were sent again, given up, handed over, or ended; "
        "use retries=0 and links that lose nothing, subscribe when the overlay has settled and to the end of the run, "
        "and let no node fail"
    )


def _distances(topology: nx.DiGraph, roots: dict[int, int]) -> list[dict[int, int]]:
    """Hops from the root of each tree to each node; nothing of what cannot be reached."""
    return [
        nx.single_source_shortest_path_length(topology, root) if root in topology else {}
        for _, root in sorted(roots.items())
    ]


def _mean(values: list) -> float:
    return float(np.mean(values)) if values else NOT_A_NUMBER

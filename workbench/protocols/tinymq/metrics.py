"""Metrics of overlay trees and rendezvous nodes: what a query, an event and a failure cost TinyMQ and PUB-2-SUB+.

Each function takes a run with its trace and returns {name: number}, so that a sweep can use it as its ``measure``. The
functions read the rows that only these protocols write (key_set, query_stored), and the frames named "query", "event"
and "notification".

    query_metrics
        zone_share                    share of nodes that have a zone: their key has at most ``key_bits`` bits
        queries_asked                 number of subscriptions
        stored_per_query              nodes that store a query, in all trees together: mean over queries. A node that
                                      stores the query in several trees counts once for each
        stored_per_tree               stored_per_query, divided by the number of trees
        hops_own_tree, hops_all_trees hops from the sink to a node that stores the query: mean over these nodes, then
                                      over queries. hops_own_tree counts only nodes that are in a tree of the sink
    load_metrics
        events_published              number of readings
        event_hops, notification_hops frames named "event", or "notification", per reading
        relays_mean, relays_busiest   frames with other nodes' events that a node sends per reading: mean over all
                                      nodes, and maximum
        traffic_busiest               all frames with events or notifications that a node sends per reading: maximum
    repair_metrics
        failed_nodes, live_nodes      nodes that are down at the end, and all others
        rekeyed_nodes                 live nodes whose keys at the end differ from those before the first failure.
                                      (Views count from the last failure before the time that they show)
        moved_nodes                   live nodes whose distance to any root has changed
        affected_nodes                live nodes that are re-keyed or moved, or have no key at the end
        unplaced_nodes                live nodes that have no key at the end
        cut_off_nodes                 live nodes to which no root has a path at the end: they cannot have a key
        repair_s                      seconds from the first failure to the last time that a node got or lost a key

Theory of operation
    A trace does not record the query to which a frame belongs. But a node's radio sends unicast frames in the order in
    which it got them, so the frames of a query match the node's rows "forwarded", in order. Frames from one neighbor
    arrive in the order in which they were sent. So rows can be matched, which gives the number of hops of every copy.

    Distances are computed from the topology: with all nodes before the failure, and with the nodes that are up after
    it. The overlay's infos establish the same shortest distances.

Limits
    `query_metrics` raises ParameterError in three cases: the hops of queries cannot be followed, because frames were
    sent again or stored queries handed over; a node has stopped storing a query; or a node has failed after the first
    subscription. So set ``retries=0`` on links that lose nothing, subscribe when the overlay has settled and to the end
    of the run, and let no node fail after that.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence

import networkx as nx
import numpy as np

from workbench.errors import ParameterError
from workbench.protocols.contract import NOBODY
from workbench.sim.rows import Columns
from workbench.sim.run import Run

NOT_A_NUMBER = float("nan")
KeysByNode = dict[int, dict[int, str]]  # node -> tree -> key


def query_metrics(run: Run) -> dict[str, float]:
    """Return the metrics of queries: the number of nodes that store them, and the hops from sinks to these nodes.

    Raises ParameterError if the hops of queries cannot be followed in the trace.
    """
    trace_columns = Columns(run.trace)
    keys_by_node = _keys_of_nodes(trace_columns, trace_columns.where(event="key_set"))
    trees = {tree for keys in keys_by_node.values() for tree in keys}
    subscribed_rows, failed_rows = trace_columns.where(event="subscribed"), trace_columns.where(event="failed")
    if (
        len(subscribed_rows)
        and len(failed_rows)
        and trace_columns["time_us"][failed_rows[-1]] >= trace_columns["time_us"][subscribed_rows[0]]
    ):
        raise _make_untraceable_error()
    queries = list(trace_columns.tuples(subscribed_rows, "node", "sequence"))
    hops_in_all_trees: dict[tuple[int, int], list[int]] = {query: [] for query in queries}
    hops_in_own_trees: dict[tuple[int, int], list[int]] = {query: [] for query in queries}
    for node, query, hops in _find_stored_queries(trace_columns):
        hops_in_all_trees[query].append(hops)
        if keys_by_node[node].keys() & keys_by_node[query[0]].keys():
            hops_in_own_trees[query].append(hops)
    stored_per_query = _mean([len(hops) for hops in hops_in_all_trees.values()])
    shortest_lengths = [min(map(len, keys.values())) for keys in keys_by_node.values() if keys]
    nodes_with_zone = sum(bits <= run.scenario.protocol.key_bits for bits in shortest_lengths)
    return {
        "zone_share": nodes_with_zone / len(run.scenario.topology),
        "queries_asked": len(queries),
        "stored_per_query": stored_per_query,
        "stored_per_tree": stored_per_query / len(trees) if trees else NOT_A_NUMBER,
        "hops_own_tree": _mean([_mean(hops) for hops in hops_in_own_trees.values() if hops]),
        "hops_all_trees": _mean([_mean(hops) for hops in hops_in_all_trees.values() if hops]),
    }


def load_metrics(run: Run) -> dict[str, float]:
    """Return the metrics of load: frames per published event, in the whole network and at the busiest node."""
    trace_columns = Columns(run.trace)
    event_count = len(trace_columns.where(event="originated", message="event"))
    sent_rows = trace_columns.where(event="sent", message="event")
    nodes, origins = trace_columns["node"][sent_rows], trace_columns["origin"][sent_rows]
    relay_counts = Counter(nodes[nodes != origins].tolist())
    traffic_nodes = trace_columns["node"][trace_columns.where(event="sent", message=("event", "notification"))]
    per_event = 1 / event_count if event_count else NOT_A_NUMBER
    return {
        "events_published": event_count,
        "event_hops": len(nodes) * per_event,
        "notification_hops": (len(traffic_nodes) - len(nodes)) * per_event,
        "relays_mean": relay_counts.total() / len(run.scenario.topology) * per_event,
        "relays_busiest": max(relay_counts.values(), default=0) * per_event,
        "traffic_busiest": max(Counter(traffic_nodes.tolist()).values(), default=0) * per_event,
    }


def repair_metrics(run: Run) -> dict[str, float]:
    """Return the metrics of failures: numbers of nodes whose keys or distances have changed, and the repair time.

    Raises ParameterError if no node fails.
    """
    trace_columns = Columns(run.trace)
    failures = trace_columns.of("failed", "recovered")
    if not failures:
        raise ParameterError("the run has no failures, so no repair is measured; add an outage(...) to its workload")
    last_event_of = {failure_row.node: failure_row.event for failure_row in failures}
    down_nodes = {node for node, event in last_event_of.items() if event == "failed"}
    first_failure_us = failures[0].time_us
    key_sets = trace_columns.where(event="key_set")
    times_us = trace_columns["time_us"][key_sets]
    keys_before, keys_after = (
        _keys_of_nodes(trace_columns, key_sets[times_us < first_failure_us]),
        _keys_of_nodes(trace_columns, key_sets),
    )
    topology = run.scenario.topology
    live_nodes = [node for node in topology if node not in down_nodes]
    roots = {tree: node for node, keys in keys_before.items() for tree, key in keys.items() if not key}
    distances = _distances(topology, roots), _distances(topology.subgraph(live_nodes), roots)
    unplaced_nodes = {node for node in live_nodes if not keys_after.get(node)}
    rekeyed_nodes = {
        node for node in live_nodes if node not in unplaced_nodes and keys_before.get(node, {}) != keys_after[node]
    }
    moved_nodes = {
        node
        for node in live_nodes
        if any(old_hops.get(node) != new_hops.get(node) for old_hops, new_hops in zip(*distances, strict=True))
    }
    return {
        "failed_nodes": len(down_nodes),
        "live_nodes": len(live_nodes),
        "rekeyed_nodes": len(rekeyed_nodes),
        "moved_nodes": len(moved_nodes),
        "affected_nodes": len(rekeyed_nodes | moved_nodes | unplaced_nodes),
        "unplaced_nodes": len(unplaced_nodes),
        "cut_off_nodes": sum(all(node not in hops for hops in distances[1]) for node in live_nodes),
        "repair_s": max(0, int(times_us.max(initial=0)) - first_failure_us) / 1e6,
    }


def _keys_of_nodes(columns: Columns, key_sets: np.ndarray) -> KeysByNode:
    """Return {node: {tree: key}}: the keys that nodes have after the trace rows ``key_sets`` (events "key_set")."""
    keys_by_node: KeysByNode = defaultdict(dict)
    for node, tree, length, key in columns.tuples(key_sets, "node", "origin", "value", "detail"):
        if length == NOBODY:
            keys_by_node[node].pop(tree, None)
        else:
            keys_by_node[node][tree] = key
    return keys_by_node


# Hops

_Query = tuple[int, int]  # the sink, and the number of the query there


def _find_stored_queries(columns: Columns) -> Iterator[tuple[int, _Query, int]]:
    """Yield (node, (sink, number of the query), hops from the sink) each time that a node starts to store a query.

    Raises ParameterError if the trace does not show the hops.
    """
    waiting_hops: defaultdict[tuple[int, _Query], deque[int]] = defaultdict(deque)  # (node, query) -> hops of copies
    hops_in_flight: defaultdict[tuple[int, int, _Query], deque[int]] = defaultdict(
        deque
    )  # (sender, receiver, query) -> hops
    arrived_hops: dict[tuple[int, int, _Query], int] = {}  # (receiver, sender, query) -> hops of the last frame
    query_rows = columns.where(event=("sent", "received", "lost", "forwarded", "query_stored"), message="query")
    column_names = "event", "node", "peer", "origin", "sequence", "value"
    for event, node, peer, sink, query_number, hop_count in columns.tuples(query_rows, *column_names):
        query = sink, query_number
        if event == "forwarded":
            waiting_hops[node, query].extend([_find_arrived_hops(arrived_hops, node, peer, query)] * hop_count)
        elif event == "sent":
            hops_in_flight[node, peer, query].append(_pop_hops(waiting_hops[node, query]) + 1)
        elif event == "received":
            arrived_hops[node, peer, query] = _pop_hops(hops_in_flight[peer, node, query])
        elif event == "lost":
            _pop_hops(hops_in_flight[peer, node, query])
        elif hop_count > 0:
            yield node, query, _find_arrived_hops(arrived_hops, node, peer, query)
        else:
            raise _make_untraceable_error()
    if any(waiting_hops.values()):
        raise _make_untraceable_error()


def _find_arrived_hops(arrived: dict[tuple[int, int, _Query], int], node: int, peer: int, query: _Query) -> int:
    """Return the number of hops that ``query`` had taken when ``node`` last received it from ``peer``.

    ``query``: (sink, number of the query); ``arrived``: {(receiver, sender, query): hops of the query at its last
    arrival}. The result is 0 if ``node`` is the sink and ``peer`` is `NOBODY`. Raises ParameterError if the trace does
    not show the hops.
    """
    if peer != NOBODY:
        return arrived[node, peer, query]
    # A message without a previous hop is the sink's own, or a stored one that a node routes anew.
    if node != query[0]:
        raise _make_untraceable_error()
    return 0


def _pop_hops(queue: deque[int]) -> int:
    """Remove and return the first element of ``queue``: the number of hops that a copy of a query has taken.

    Raises ParameterError if the queue is empty, because then the trace does not show the number of hops.
    """
    if not queue:
        raise _make_untraceable_error()
    return queue.popleft()


def _make_untraceable_error() -> ParameterError:
    return ParameterError(
        "the hops of queries cannot be followed in this run: a query was sent again, given up, handed over or ended. "
        "Use retries=0, links without losses and nodes without failures; let subscriptions start after the overlay has "
        "settled, and last to the end of the run"
    )


def _distances(topology: nx.DiGraph, roots: dict[int, int]) -> list[dict[int, int]]:
    """Return a list with {node: hops from the root} for each tree; ``roots``: {tree: root}.

    The dicts omit nodes that the root cannot reach. A root that is not in the topology has an empty dict.
    """
    return [
        nx.single_source_shortest_path_length(topology, root) if root in topology else {}
        for _, root in sorted(roots.items())
    ]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else NOT_A_NUMBER

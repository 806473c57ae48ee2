"""Metrics of overlay trees: compared with the state of the nodes, and counted by hand on small networks."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.protocols.tinymq.checks import graphs_with_roots
from workbench.protocols.tinymq import TinyMQ
from workbench.protocols.tinymq.metrics import load_metrics, query_metrics, repair_metrics
from workbench.protocols.tinymq.pub2sub import Pub2Sub
from workbench.protocols.tinymq.views.overlay import overlay_of
from workbench.sim.engine import play
from workbench.sim.run import Run
from workbench.sim.trace import Recorder

ONCE = {"dimensions": ("TEMP 0 50",), "info_s": 0.0, "refresh_s": 0.0, "retries": 0}
REPAIRED = {"dimensions": ("TEMP 0 50",), "info_s": 1.0, "lost_after": 2.0, "refresh_s": 0.0, "retries": 0}


def played(scenario):
    """Return (nodes, run) of a scenario on the reference engine."""
    recorder = Recorder()
    return {node.address: node for node in play(scenario, recorder)}, Run(scenario, "reference", recorder)


@pytest.mark.parametrize("cls", [TinyMQ, Pub2Sub])
@given(
    graph_and_roots=graphs_with_roots(), key_bits=st.integers(1, 8), shortcuts=st.booleans(), seed=st.integers(0, 99)
)
@settings(max_examples=examples(30))
def test_stored_queries_and_their_hops_equal_those_of_the_nodes(cls, graph_and_roots, key_bits, shortcuts, seed):
    graph, roots = graph_and_roots
    protocol = cls(roots=roots, key_bits=key_bits, shortcuts=shortcuts, **ONCE)
    workload = wb.range_queries(graph, 6, start_s=5, seed=seed)
    nodes, run = played(wb.Scenario(graph, protocol, workload, duration_s=7, seed=seed))
    everywhere, near = defaultdict(list), defaultdict(list)
    for node in nodes.values():
        for (tree, sink, number), stored in node.queries.stored.items():
            everywhere[sink, number].append(stored.message.hops)
            if nodes[sink].overlay.position(tree) is not None:
                near[sink, number].append(stored.message.hops)
    metrics = query_metrics(run)
    with_zone = [
        node for node in nodes.values() if any(p.regions(key_bits)[1] for p in node.overlay.positions.values())
    ]
    assert metrics["zone_share"] == len(with_zone) / len(graph)
    assert metrics["queries_asked"] == len(everywhere) == 6
    stored = sum(map(len, everywhere.values())) / 6
    assert metrics["stored_per_query"] == pytest.approx(stored)
    assert metrics["stored_per_tree"] == pytest.approx(stored / len(roots))
    for name, hops in (("hops_all_trees", everywhere), ("hops_own_tree", near)):
        assert metrics[name] == pytest.approx(
            sum(sum(hop_counts) / len(hop_counts) for hop_counts in hops.values()) / 6
        )


def test_hops_without_a_traceable_path_are_nan():
    graph = wb.topology.disc(30, 60, 40, seed=2)
    lossy = TinyMQ(**{**ONCE, "retries": 5})
    workload = wb.range_queries(graph, 3, start_s=5)
    run = wb.Scenario(graph, lossy, workload, radio=wb.Radio(loss=0.3), duration_s=7).run(engine="reference")
    with pytest.raises(wb.ParameterError, match="hops of queries cannot be followed"):
        query_metrics(run)


def test_queries_that_move_are_not_counted_twice():
    # Node 2 stores the query until its parent, node 1, fails; with its new key it hands the query over to node 0.
    settled = {**ONCE, "info_s": 1.0, "lost_after": 2.0}
    query = [wb.subscribe(0, "TEMP GE 20, TEMP LE 22", start_s=5)]
    base = wb.Scenario(wb.topology.ring(7), TinyMQ(key_bits=3, **settled), query, wb.Radio(loss="none"), duration_s=40)
    before = query_metrics(base.run(engine="reference"))
    assert (before["stored_per_query"], before["hops_all_trees"]) == (1, 2)
    failing = base.replace(workload=[*query, wb.outage(1, start_s=10)]).run(engine="reference")
    stored = [(row["node"], row["value"]) for row in failing.trace.to_pylist() if row["event"] == "query_stored"]
    assert stored == [(2, 1), (2, -1), (0, 1)]
    with pytest.raises(wb.ParameterError, match="handed over"):
        query_metrics(failing)
    ended = base.replace(workload=[wb.subscribe(0, "TEMP GE 20, TEMP LE 22", start_s=5, expires_s=10)])
    with pytest.raises(wb.ParameterError, match="ended"):
        query_metrics(ended.run(engine="reference"))


def test_a_failure_before_the_first_query_has_no_effect():
    protocol = TinyMQ(key_bits=3, **{**ONCE, "info_s": 1.0, "lost_after": 2.0})
    workload = [wb.outage(1, start_s=5), wb.subscribe(0, "TEMP GE 20, TEMP LE 22", start_s=30)]
    run = wb.Scenario(wb.topology.ring(7), protocol, workload, wb.Radio(loss="none"), duration_s=40).run("reference")
    assert query_metrics(run)["stored_per_query"] == 1


def test_nodes_whose_keys_are_longer_than_the_strings_have_no_zone():
    # On a line, the node at d hops from the root has a key of d bits.
    workload = [wb.subscribe(0, "TEMP GE 20", start_s=5)]
    scenario = wb.Scenario(wb.topology.line(8), TinyMQ(key_bits=3, **ONCE), workload, duration_s=7)
    assert query_metrics(scenario.run(engine="reference"))["zone_share"] == 4 / 8


@pytest.mark.parametrize("publish", ["all", "own"])
def test_load_is_counted_frame_by_frame(publish):
    graph = wb.topology.disc(60, 80, 50, seed=2)
    protocol = TinyMQ(roots=(0, 30, 50), publish=publish, **ONCE)
    workload = [*wb.range_queries(graph, 5, start_s=3), *wb.range_events(graph, 20, start_s=5)]
    run = wb.Scenario(graph, protocol, workload, duration_s=7).run(engine="reference")
    relays, traffic = Counter(), Counter()
    for row in run.trace.to_pylist():
        if row["event"] == "sent" and row["message"] in ("event", "notification"):
            traffic[row["node"]] += 1
            relays[row["node"]] += row["message"] == "event" and row["node"] != row["origin"]
    metrics = load_metrics(run)
    assert metrics["events_published"] == 20
    assert metrics["event_hops"] == pytest.approx(run.metrics["sent_event"] / 20)
    assert metrics["notification_hops"] == pytest.approx(run.metrics["sent_notification"] / 20)
    assert metrics["relays_mean"] == pytest.approx(relays.total() / 20 / 60)
    assert metrics["relays_busiest"] == pytest.approx(max(relays.values()) / 20)
    assert metrics["traffic_busiest"] == pytest.approx(max(traffic.values()) / 20)


def test_repair_counts_nodes_with_changed_keys_and_distances():
    # From the root, node 0, the ring is 1, 2, 3 on one side and 6, 5, 4 on the other; 3 and 4 are neighbors.
    scenario = wb.Scenario(wb.topology.ring(7), TinyMQ(**REPAIRED), [wb.outage(1, start_s=10)], duration_s=40)
    nodes, run = played(scenario)
    metrics = repair_metrics(run)
    assert (metrics["failed_nodes"], metrics["live_nodes"], metrics["unplaced_nodes"]) == (1, 6, 0)
    assert (nodes[3].overlay.position(0).parent, nodes[2].overlay.position(0).parent) == (4, 3)
    assert (metrics["rekeyed_nodes"], metrics["moved_nodes"], metrics["affected_nodes"]) == (2, 2, 2)
    assert 0 < metrics["repair_s"] < 20


def test_distances_change_without_keys_and_disconnected_nodes_have_none():
    # Two trees with roots at the ends: node 3's failure cuts the line, and each part keeps its tree.
    graph = wb.topology.line(7)
    scenario = wb.Scenario(graph, TinyMQ(roots=(0, 6), **REPAIRED), [wb.outage(3, start_s=10)], duration_s=40)
    metrics = repair_metrics(scenario.run(engine="reference"))
    assert (metrics["rekeyed_nodes"], metrics["moved_nodes"], metrics["unplaced_nodes"]) == (0, 6, 0)
    assert metrics["cut_off_nodes"] == 0
    alone = scenario.replace(protocol=TinyMQ(**REPAIRED)).run(engine="reference")
    metrics = repair_metrics(alone)
    assert (metrics["rekeyed_nodes"], metrics["moved_nodes"], metrics["unplaced_nodes"]) == (0, 3, 3)
    assert (metrics["affected_nodes"], metrics["cut_off_nodes"]) == (3, 3)
    assert not any(place.is_rekeyed for place in overlay_of(alone).places_at(40_000_000))


@given(graph_and_roots=graphs_with_roots(), share=st.sampled_from((0.1, 0.3)), seed=st.integers(0, 99))
@settings(max_examples=examples(20))
def test_changed_distances_equal_those_of_the_nodes(graph_and_roots, share, seed):
    graph, roots = graph_and_roots
    candidates = [node for node in graph if node not in roots] or [roots[-1]]
    scenario = wb.Scenario(graph, TinyMQ(roots=roots, **REPAIRED), duration_s=25, seed=seed)
    before, _ = played(scenario)
    workload = [wb.random_outage(candidates, share, 25.0, seed=seed)]
    after, run = played(scenario.replace(workload=workload, duration_s=90))
    live = [node for node in after if node not in workload[0].at]

    def vector(node):
        distances = node.overlay.distances
        return {tree: distances[tree].hops for tree in node.overlay.known_trees()}

    def keys(node):
        return {tree: place.key for tree, place in node.overlay.positions.items() if place.key is not None}

    metrics = repair_metrics(run)
    assert metrics["moved_nodes"] == sum(vector(before[node]) != vector(after[node]) for node in live)
    assert metrics["rekeyed_nodes"] == sum(keys(before[node]) != keys(after[node]) != {} for node in live)
    assert metrics["unplaced_nodes"] == sum(keys(after[node]) == {} for node in live)


def test_repair_metrics_without_a_failure_are_an_error():
    run = wb.Scenario(wb.topology.line(3), TinyMQ(**ONCE), duration_s=2).run(engine="reference")
    with pytest.raises(wb.ParameterError, match="the run has no failures, so no repair is measured; add an outage"):
        repair_metrics(run)

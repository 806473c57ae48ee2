"""PUB-2-SUB+ compared with TinyMQ: a position in every tree, and its cost. The other tests cover both protocols."""

import workbench as wb
from workbench.protocols.tinymq import TinyMQ
from workbench.protocols.tinymq.pub2sub import Pub2Sub
from workbench.sim.engine import play
from workbench.sim.trace import Recorder

GRAPH = wb.topology.disc(60, 70, 50, radius_m=15, seed=6)
ROOTS = (0, 29, 59)


def run(protocol, workload=(), duration_s=5):
    scenario = wb.Scenario(GRAPH, protocol, workload, duration_s=duration_s, seed=1)
    return play(scenario, Recorder()), scenario


def test_every_node_has_a_key_in_every_tree():
    nodes, _ = run(Pub2Sub(roots=ROOTS))
    for tree in range(3):
        keys = {node.overlay.position(tree).key for node in nodes}
        assert len(keys) == len(GRAPH)


def test_own_tree_is_that_of_the_nearest_root():
    nodes, _ = run(Pub2Sub(roots=ROOTS))
    for node in nodes:
        hops = [node.overlay.distances[tree].hops for tree in range(3)]
        assert node.overlay.own_tree() == hops.index(min(hops))


def test_building_costs_a_handshake_for_each_tree_instead_of_one():
    grants = {}
    for cls in (TinyMQ, Pub2Sub):
        metrics = wb.Scenario(GRAPH, cls(roots=ROOTS), duration_s=5).run(engine="reference").metrics
        grants[cls] = metrics["sent_grant"]
    assert grants == {TinyMQ: 57, Pub2Sub: 3 * 59}


def test_sink_is_found_by_its_key_of_the_same_tree():
    workload = [wb.subscribe(at=7, what="TEMP GE 20", start_s=3)]
    nodes, _ = run(Pub2Sub(roots=ROOTS), workload)
    by_address = dict(zip(sorted(GRAPH), nodes, strict=True))
    stored = [
        (tree, stored_query.message) for node in nodes for (tree, *_), stored_query in node.queries.stored.items()
    ]
    assert {tree for tree, _ in stored} == {0, 1, 2}
    for tree, message in stored:
        assert (message.sink_tree, message.sink_key) == (tree, by_address[7].overlay.position(tree).key)


def test_scenario_file_names_the_protocol():
    for cls in (TinyMQ, Pub2Sub):
        scenario = wb.Scenario(GRAPH, cls(roots=ROOTS, key_bits=6, publish="own"), duration_s=1)
        assert wb.Scenario.from_json(scenario.to_json()).protocol == scenario.protocol
    assert TinyMQ() != Pub2Sub()

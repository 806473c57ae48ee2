"""Edits of networks, and the tables from which the forms of generators are built."""

import inspect
import json

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import topology
from workbench.errors import ParameterError
from workbench.topology import edits, parameters
from workbench.topology.graphs import LARGEST_NODE, check, digest
from workbench.topology.propagation import Propagation


def contents(graph):
    return dict(graph.nodes(data="pos")), {(a, b): pdr for a, b, pdr in graph.edges(data="pdr")}


def test_a_moved_node_keeps_its_links_and_the_network_loses_its_recipe():
    before = topology.grid(2, 2)
    after = edits.moved(before, {3: (42.00004, -1)})
    assert after.nodes[3]["pos"] == (42.0, -1.0)  # rounded to 0.1 mm like every position
    assert contents(after)[1] == contents(before)[1]
    assert before.nodes[3]["pos"] == (10.0, 10.0)
    assert "recipe" in before.graph and "recipe" not in after.graph
    assert after.graph["digest"] == digest(after) != before.graph["digest"]


def test_a_new_node_has_the_next_number_and_no_links():
    graph = edits.with_node(topology.line(3), (5, 6))
    assert list(graph) == [0, 1, 2, 3]
    assert graph.nodes[3]["pos"] == (5.0, 6.0) and graph.degree(3) == 0


def test_after_the_largest_number_a_new_node_gets_the_smallest_free_one():
    graph = check(nx.DiGraph([(0, 1), (1, LARGEST_NODE)]))
    assert edits.next_node(graph) == 2
    assert list(edits.with_node(graph, (0, 0))) == [0, 1, 2, LARGEST_NODE]


def test_removing_a_node_removes_its_links_and_no_others():
    graph = edits.without(topology.line(4), nodes=[1])
    assert list(graph) == [0, 2, 3]
    assert set(graph.edges) == {(2, 3), (3, 2)}


def test_removing_a_link_removes_both_directions():
    graph = edits.without(topology.line(3), links=[(1, 0), (0, 2)])
    assert set(graph.edges) == {(1, 2), (2, 1)}


def test_a_delivery_ratio_is_for_one_direction_and_zero_removes_its_arc():
    graph = edits.with_links(topology.line(3), {(0, 1): 0.25, (2, 1): 0, (0, 2): 0.5})
    assert contents(graph)[1] == {(0, 1): 0.25, (0, 2): 0.5, (1, 0): 1.0, (1, 2): 1.0}
    assert list(graph.edges) == sorted(graph.edges)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda graph: edits.moved(graph, {9: (0, 0)}), "Node 9 is not in this network"),
        (lambda graph: edits.moved(graph, {0: (0, float("nan"))}), "two finite numbers"),
        (lambda graph: edits.with_node(graph, "ab"), "two finite numbers"),
        (lambda graph: edits.without(graph, nodes=[0, 1, 2]), "at least one must remain"),
        (lambda graph: edits.without(graph, nodes=[7]), "Node 7 is not in this network"),
        (lambda graph: edits.with_links(graph, {(0, 0): 1}), "must join two different nodes"),
        (lambda graph: edits.with_links(graph, {(0, 1): 1.5}), "from 0 to 1"),
        (lambda graph: edits.with_links(graph, {(0, 8): 1}), "Node 8 is not in this network"),
    ],
)
def test_invalid_edits_are_refused_with_a_sentence(edit, message):
    with pytest.raises(ParameterError, match=message):
        edit(topology.line(3))


def test_an_edit_keeps_the_walls_and_the_position_of_a_moved_node_is_not_estimated():
    graph = topology.office(12, rooms=2)
    graph.graph["positions_estimated"] = [2, 5]
    after = edits.moved(graph, {2: (1, 1)})
    assert after.graph["walls"] == graph.graph["walls"]
    assert after.graph["positions_estimated"] == [5]
    assert "positions_estimated" not in edits.without(after, nodes=[5]).graph


@settings(max_examples=40)
@given(st.data())
def test_every_edit_gives_a_network_in_normal_form(data):
    graph = topology.grid(3, 2)
    for _ in range(4):
        nodes = st.sampled_from(sorted(graph))
        kind = data.draw(st.sampled_from(["moved", "with_node", "without", "with_links"]))
        if kind == "moved":
            graph = edits.moved(graph, {data.draw(nodes): data.draw(st.tuples(st.floats(-99, 99), st.floats(-99, 99)))})
        elif kind == "with_node":
            graph = edits.with_node(graph, (1.0, 2.0))
        elif kind == "without" and len(graph) > 1:
            graph = edits.without(graph, nodes=[data.draw(nodes)])
        elif len(graph) > 1:
            a, b = data.draw(st.lists(nodes, min_size=2, max_size=2, unique=True))
            graph = edits.with_links(graph, {(a, b): data.draw(st.floats(0, 1))})
        again = check(graph)
        assert contents(again) == contents(graph) and list(again) == list(graph)
        assert list(again.edges) == list(graph.edges) and again.graph["digest"] == graph.graph["digest"]
        assert topology.from_dict(topology.to_dict(graph)).graph["digest"] == graph.graph["digest"]


@pytest.mark.parametrize("kind", parameters.TABLES)
def test_tables_have_the_names_and_defaults_of_the_generators(kind):
    known = inspect.signature(getattr(topology, kind)).parameters
    shown = {parameter.name: parameter.default for parameter in parameters.TABLES[kind]}
    named = {"propagation"} if kind in parameters.PROPAGATION else {"name"} if kind == "testbed" else set()
    assert {*shown, *named} == set(known)
    for name, default in shown.items():
        if known[name].default is not inspect.Parameter.empty and known[name].default is not None:
            assert default == known[name].default


@pytest.mark.parametrize("kind", [kind for kind in parameters.TABLES if kind != "testbed"])
def test_the_default_values_of_a_form_give_a_network_whose_recipe_has_them(kind):
    values = parameters.values_of(kind)
    graph = parameters.generate(kind, values)
    assert len(graph) > 1
    assert parameters.values_of(kind, graph.graph["recipe"]) == values


def test_propagation_is_part_of_the_form():
    values = parameters.values_of("random_geometric") | {"transmit_power_dBm": -10.0, "seed": 3}
    graph = parameters.generate("random_geometric", values)
    expected = topology.random_geometric(50, 200, 200, propagation=Propagation(transmit_power_dBm=-10), seed=3)
    assert graph.graph["digest"] == expected.graph["digest"]
    assert parameters.values_of("random_geometric", graph.graph["recipe"])["transmit_power_dBm"] == -10


def test_an_unlimited_link_length_is_zero_in_the_form(real_data):
    values = parameters.values_of("testbed", {"name": "iotlab/strasbourg", "max_range_m": None})
    assert values["max_range_m"] == 0
    assert parameters.generate("testbed", values, "iotlab/strasbourg").number_of_edges() == 4032
    assert parameters.generate("testbed", values | {"max_range_m": 4.0}, "iotlab/strasbourg").number_of_edges() < 1000


GENERATED = [
    topology.disc(20, 60, 60, radius_m=25, seed=2),
    topology.random_geometric(20, 200, 200, seed=4),
    topology.office(nodes=20, rooms=4, seed=3),
    topology.from_positions({0: (0, 0), 5: (10, 0), 6: (25, 0)}, radius_m=15),
]


@pytest.mark.parametrize("graph", GENERATED, ids=lambda graph: graph.graph["recipe"]["kind"])
def test_the_link_rule_of_a_generator_reproduces_the_links_of_its_network(graph):
    assert edits.has_link_rule(graph)
    again = edits.linked_again(graph, edits.link_rule(graph))
    assert digest(again) == digest(graph) and again.graph.get("walls") == graph.graph.get("walls")


@pytest.mark.parametrize("graph", GENERATED, ids=lambda graph: graph.graph["recipe"]["kind"])
def test_only_links_of_a_moved_node_change_and_the_result_can_be_stored_as_a_recipe(graph):
    node = max(graph)
    moved = edits.linked_again(edits.moved(graph, {node: (3.0, 4.0)}), edits.link_rule(graph))
    assert contents(moved)[1] != contents(graph)[1]
    assert {arc: pdr for arc, pdr in contents(moved)[1].items() if node not in arc} == {
        arc: pdr for arc, pdr in contents(graph)[1].items() if node not in arc
    }
    form = json.loads(json.dumps(topology.to_dict(moved)))
    assert form["recipe"]["kind"] == "from_positions"
    assert digest(topology.from_dict(form)) == digest(moved)
    assert edits.link_rule(moved) == edits.link_rule(topology.from_dict(form))


def test_a_wall_between_two_nodes_attenuates_their_link():
    ends = {0: (0.0, 0.0), 1: (30.0, 0.0)}
    radio = Propagation(transmit_power_dBm=-10, shadowing_dB=0, asymmetry_dB=0)
    free = topology.from_positions(ends, propagation=radio)
    walled = topology.from_positions(ends, propagation=radio, walls=[((15, -5), (15, 5))], wall_dB=20)
    beside = topology.from_positions(ends, propagation=radio, walls=[((15, 1), (15, 5))], wall_dB=20)
    assert free.has_edge(0, 1) and not walled.has_edge(0, 1) and contents(beside) == contents(free)


def test_grids_and_edited_networks_have_no_link_rule():
    assert edits.link_rule(topology.grid(2, 2)) is None and not edits.has_link_rule(topology.grid(2, 2))
    assert edits.link_rule(edits.moved(GENERATED[0], {0: (1, 1)})) is None

"""Distant sites in a network, and a numbering in which they come first."""

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.protocols.tinymq.checks import connected_graphs


def farthest_hops(graph, sites):
    hops = nx.multi_source_dijkstra_path_length(graph, set(sites))
    return max(hops.values())


def test_sites_on_a_line_are_the_middle_the_ends_and_then_the_points_between():
    assert wb.topology.spread(wb.topology.line(9), 5) == (4, 0, 8, 2, 6)


@given(graph=connected_graphs(most_nodes=9), count=st.integers(1, 4))
@settings(max_examples=examples(60))
def test_sites_are_at_most_twice_as_far_as_optimal_sites(graph, count):
    graph = wb.topology.check(graph)
    count = min(count, len(graph))
    sites = wb.topology.spread(graph, count)
    assert len(set(sites)) == count
    best = min(farthest_hops(graph, chosen) for chosen in itertools.combinations(graph, count))
    assert farthest_hops(graph, sites) <= 2 * best


def test_a_smaller_number_of_sites_is_a_prefix_of_a_larger_one():
    graph = wb.topology.disc(120, 140, 60, seed=4)
    assert wb.topology.spread(graph, 10)[:4] == wb.topology.spread(graph, 4)


def test_an_unreachable_part_gets_a_site_first():
    graph = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (7, 8)])
    nx.set_node_attributes(graph, {node: (10.0 * node, 0.0) for node in graph}, "pos")
    assert wb.topology.spread(graph, 2) == (4, 7)


def test_more_sites_than_nodes_are_refused():
    with pytest.raises(wb.ParameterError, match="count is 4; it must be a whole number from 1 to 3"):
        wb.topology.spread(wb.topology.line(3), 4)


def test_renumbered_network_has_the_chosen_nodes_first_and_is_otherwise_equal():
    graph = wb.topology.disc(40, 80, 40, seed=3)
    first = (17, 3, 30)
    renumbered = wb.topology.renumbered(graph, first)
    order = [*first, *(node for node in graph if node not in first)]
    assert sorted(renumbered) == list(range(40))
    for node in renumbered:
        assert renumbered.nodes[node]["pos"] == graph.nodes[order[node]]["pos"]
        assert {order[neighbor] for neighbor in renumbered[node]} == set(graph[order[node]])
    assert wb.topology.digest(wb.topology.from_dict(wb.topology.to_dict(renumbered))) == wb.topology.digest(renumbered)


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        ((1, 9), "`first` contains 9, which is not a node"),
        ((1, 1), "it must not contain a node twice"),
        (("1",), "`first` contains"),
    ],
)
def test_an_invalid_numbering_is_refused(first, sentence):
    with pytest.raises(wb.ParameterError, match=sentence):
        wb.topology.renumbered(wb.topology.line(5), first)


def test_field_has_its_roots_first_and_the_same_density_at_all_sizes():
    field = wb.topology.field_with_roots(375, 4, seed=3)
    assert wb.topology.spread(field, 4) == (0, 1, 2, 3)
    largest = [max(pos[axis] for _, pos in field.nodes(data="pos")) for axis in (0, 1)]
    assert 230 < largest[0] <= 250 and 90 < largest[1] <= 100
    anywhere = wb.topology.field_with_roots(375, 4, "random", seed=3)
    assert anywhere.number_of_edges() == field.number_of_edges()
    assert wb.topology.spread(anywhere, 4) != (0, 1, 2, 3)


def test_a_smaller_number_of_roots_is_a_prefix_of_a_larger_one():
    few, many = (wb.topology.field_with_roots(120, count, seed=2) for count in (2, 6))
    assert [few.nodes[node]["pos"] for node in (0, 1)] == [many.nodes[node]["pos"] for node in (0, 1)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((10, 2, "corner"), "`roots` is 'corner'; it must be one of spread, random"),
        ((10, 11), "count"),
        ((0, 1), "nodes"),
    ],
)
def test_an_impossible_field_is_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(wb.ParameterError, match=sentence):
        wb.topology.field_with_roots(*arguments)

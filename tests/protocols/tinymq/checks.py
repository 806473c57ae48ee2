"""Checks of TinyMQ's overlay for a set of nodes and their graph, and random graphs for them."""

import itertools

import networkx as nx
from hypothesis import strategies as st

from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq.zones import ROOT_KEY, child_key, parent_key


@st.composite
def connected_graphs(draw, most_nodes=24):
    """Draw a random tree of nodes with random numbers and some additional links; all links go in both directions."""
    count = draw(st.integers(2, most_nodes))
    names = draw(st.permutations(range(count)))
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    for number in range(1, count):
        # A parent is drawn from the last few nodes or from all, which gives long lines, bushes, and shapes between.
        reach = draw(st.sampled_from((1, 3, number)))
        graph.add_edge(names[number], names[draw(st.integers(max(0, number - reach), number - 1))])
    for a, b in draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=2 * count)):
        if a != b:
            graph.add_edge(a, b)
    return graph


@st.composite
def graphs_with_roots(draw, most_nodes=24, most_roots=10):
    """Draw a connected graph and some of its nodes."""
    graph = draw(connected_graphs(most_nodes))
    roots = draw(st.permutations(sorted(graph)))
    return graph, tuple(roots[: draw(st.integers(1, min(most_roots, len(roots))))])


def assert_overlay_is_whole(nodes, graph, roots, key_bits, every_tree=False, is_lossy=False):
    """Check that the overlay is whole; `nodes` maps addresses to the nodes that are up, `graph` has their links.

    On lossy links, shorter paths may be heard of later; then distances may be longer than the shortest ones."""
    for address, node in nodes.items():
        trees = [tree for tree in range(len(roots)) if node.overlay.position(tree) is not None]
        if every_tree:
            assert trees == [
                tree for tree, root in enumerate(roots) if root in graph and nx.has_path(graph, address, root)
            ]
        else:
            assert len(trees) == 1
    for tree, root in enumerate(roots):
        members = {
            a: node.overlay.position(tree) for a, node in nodes.items() if node.overlay.position(tree) is not None
        }
        if root in nodes:
            assert_tree_is_whole(members, graph, root, key_bits)
            assert_distances_are_shortest(nodes, graph, tree, root, is_lossy)
        else:
            assert not members


def assert_tree_is_whole(members, graph, root, key_bits):
    """Check that parents are neighbors, keys follow from theirs and are unique, and zones partition the key space."""
    assert (members[root].key, members[root].parent) == (ROOT_KEY, NOBODY)
    keys = [position.key for position in members.values()]
    assert len(set(keys)) == len(keys)
    children = {address: {} for address in members}
    for address, position in members.items():
        if address != root:
            assert graph.has_edge(address, position.parent)
            assert members[position.parent].key == parent_key(position.key)
            children[position.parent][address] = position.key
    for address, position in members.items():
        assert {child: child_key(position.key, slot) for child, slot in position.children.items()} == children[address]
    zones = sorted(interval for position in members.values() for interval in position.regions(key_bits)[1])
    assert zones[0][0] == 0 and zones[-1][1] == 2**key_bits - 1
    assert all(high + 1 == low for (_, high), (low, _) in itertools.pairwise(zones))


def assert_distances_are_shortest(nodes, graph, tree, root, is_lossy):
    expected = {a: hops for a, hops in nx.single_source_shortest_path_length(graph, root).items() if a in nodes}
    known = {a: node.overlay.distances[tree].hops for a, node in nodes.items() if tree in node.overlay.known_trees()}
    if is_lossy:
        assert all(hops >= expected[address] for address, hops in known.items())
    else:
        assert known == expected

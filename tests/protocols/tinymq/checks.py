"""What must be true of TinyMQ's overlay, told of nodes and the graph they live in; and random graphs to ask it of."""

import itertools

import networkx as nx
from hypothesis import strategies as st

from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq.zones import ROOT_KEY, child_key, parent_key


@st.composite
def connected_graphs(draw, most_nodes=24):
    """A random tree of nodes, numbered as it happens, with some more links; every link goes both ways."""
    count = draw(st.integers(2, most_nodes))
    names = draw(st.permutations(range(count)))
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    for number in range(1, count):
        # Drawn from the last few or from all: long lines, bushes, and what is between.
        reach = draw(st.sampled_from((1, 3, number)))
        graph.add_edge(names[number], names[draw(st.integers(max(0, number - reach), number - 1))])
    for one, other in draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=2 * count)
    ):
        if one != other:
            graph.add_edge(one, other)
    return graph


@st.composite
def graphs_with_roots(draw, most_nodes=24, most_roots=10):
    """(a connected graph, some of its nodes)"""
    graph = draw(connected_graphs(most_nodes))
    roots = draw(st.permutations(sorted(graph)))
    return graph, tuple(roots[: draw(st.integers(1, min(most_roots, len(roots))))])


def assert_overlay_is_whole(nodes, graph, roots, key_bits, every_tree=False, is_lossy=False):
    """``nodes``: address -> node, of those that are up; ``graph``: what links them.

    On lossy links a shorter way may be heard of later: then distances are only no shorter than they can be.
    """
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
    """Parents are neighbors, keys follow from theirs and are unique, zones partition the key space."""
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

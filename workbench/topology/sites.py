"""Sites in a network: nodes far apart from each other, for sinks and roots; and a numbering in which they come first.

    spread              choose nodes far apart
    renumbered          number the nodes of a network anew, given nodes first
    field_with_roots    a field with the density of TinyMQ's evaluation, its roots numbered first

Theory of operation
    The first site is the node nearest to the middle of the area. Each further site is a node with the most hops to the
    nearest site so far. This is farthest-point clustering: the largest number of hops from a node to its nearest site
    is at most twice the optimum for this number of sites. The first m of a list of sites are the result for m sites, so
    networks with more and with fewer sites can be compared.

Reference
    T. Gonzalez: Clustering to minimize the maximum intercluster distance, Theoretical Computer Science 38, 1985.
"""

from collections.abc import Iterable

import networkx as nx
import numpy as np

from workbench.errors import ParameterError
from workbench.keywords import checked
from workbench.topology.generators import disc
from workbench.topology.graphs import MOST_NODES, check, is_whole, whole

# The field of TinyMQ's evaluation; other numbers of nodes have the same density.
FIELD_NODES, FIELD_M, FIELD_RADIUS_M = 1500, (500.0, 200.0), 20.0
PLACES = ("spread", "random")


def spread(graph: nx.Graph, count: int) -> tuple[int, ...]:
    """Return ``count`` nodes far apart, first the node in the middle.

    Each further node has the most hops to the nearest of the earlier ones; ties go to the lowest number. A node without
    a path from the earlier ones counts as farthest. Raises ParameterError if ``count`` exceeds the number of nodes.

    >>> from workbench.topology import line
    >>> spread(line(9), 3)
    (4, 0, 8)
    """
    graph = check(graph)
    count = whole("count", count, 1, len(graph))
    nodes = np.array(sorted(graph))
    index_of_node = {node: i for i, node in enumerate(nodes.tolist())}
    positions_m = np.array([graph.nodes[node]["pos"] for node in nodes.tolist()])
    middle_m = (positions_m.min(axis=0) + positions_m.max(axis=0)) / 2
    sites = [int(nodes[np.argmin(np.hypot(*(positions_m - middle_m).T))])]
    hops = np.full(len(nodes), np.inf)
    while True:
        for node, distance in nx.single_source_shortest_path_length(graph, sites[-1]).items():
            hops[index_of_node[node]] = min(hops[index_of_node[node]], distance)
        if len(sites) == count:
            return tuple(sites)
        sites.append(int(nodes[np.argmax(hops)]))


def renumbered(graph: nx.Graph, first: Iterable[int]) -> nx.DiGraph:
    """Return the network with nodes numbered from 0: the nodes of ``first``, then the others in their order.

    So parameters with node numbers, such as ``roots=(0, 1, 2)``, have the same meaning in different networks. The new
    network does not record a generator, so a scenario stores all its nodes and links. Raises ParameterError for an
    unknown or repeated node.
    """
    graph = check(graph)
    first = list(first)
    for node in first:
        if not is_whole(node) or node not in graph:
            raise ParameterError(f"`first` contains {node!r:.60}, which is not a node of this network; remove it")
    if len(set(first)) < len(first):
        raise ParameterError(f"`first` is {first!r:.60}; it must not contain a node twice")
    first_nodes = set(first)
    nodes_in_order = [*first, *(node for node in sorted(graph) if node not in first_nodes)]
    return check(nx.relabel_nodes(graph, {node: new_number for new_number, node in enumerate(nodes_in_order)}))


@checked
def field_with_roots(nodes: int, count: int, roots: str = "spread", seed: int = 1) -> nx.DiGraph:
    """Return a connected random network of ``nodes`` nodes, with links up to 20 m.

    It is as dense as 1500 nodes in 500 m x 200 m. The first ``count`` nodes are intended as the roots of a protocol's
    trees. With ``roots="spread"`` they are the result of `spread`: node 0 is in the middle, and node 1 is farthest from
    node 0. A smaller ``count`` gives the beginning of this list. With ``roots="random"`` the roots are at random
    positions, as all other nodes are. Raises ParameterError for other values.
    """
    if roots not in PLACES:
        raise ParameterError(f"`roots` is {roots!r:.60}; it must be one of {', '.join(PLACES)}")
    nodes = whole("nodes", nodes, 1, MOST_NODES)
    count = whole("count", count, 1, nodes)
    scale = (nodes / FIELD_NODES) ** 0.5
    graph = disc(nodes, scale * FIELD_M[0], scale * FIELD_M[1], radius_m=FIELD_RADIUS_M, seed=seed)
    return graph if roots == "random" else renumbered(graph, spread(graph, count))

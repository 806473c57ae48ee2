"""Sites in a network: nodes far apart from each other, for sinks and roots; and a numbering in which they come first.

Theory of operation
    The first site is the node nearest to the middle of the area. Each further one is a node that is as many hops away
    from all sites so far as there is any: farthest-point clustering, whose largest distance from a node to its site is
    at most twice the smallest that so many sites can have. The first m of a list of sites are the m sites there would
    be, so networks with more and with fewer of them can be compared.

Reference
    T. Gonzalez: Clustering to minimize the maximum intercluster distance, Theoretical Computer Science 38, 1985.
"""

from collections.abc import Iterable

import networkx as nx
import numpy as np

from workbench.errors import ParameterError
from workbench.topology.graphs import check, is_whole, whole


def spread(graph: nx.Graph, count: int) -> tuple[int, ...]:
    """``count`` nodes far apart, the one in the middle first; of equals the lowest number. It takes a search for each.

    What no site has a path to counts as farthest away. Raises ParameterError for more sites than there are nodes.

    >>> from workbench.topology import line
    >>> spread(line(9), 3)
    (4, 0, 8)
    """
    graph = check(graph)
    count = whole("count", count, 1, len(graph))
    nodes = np.array(sorted(graph))
    place = {node: i for i, node in enumerate(nodes.tolist())}
    positions = np.array([graph.nodes[node]["pos"] for node in nodes.tolist()])
    middle = (positions.min(axis=0) + positions.max(axis=0)) / 2
    sites = [int(nodes[np.argmin(np.hypot(*(positions - middle).T))])]
    hops = np.full(len(nodes), np.inf)
    while True:
        for node, distance in nx.single_source_shortest_path_length(graph, sites[-1]).items():
            hops[place[node]] = min(hops[place[node]], distance)
        if len(sites) == count:
            return tuple(sites)
        sites.append(int(nodes[np.argmax(hops)]))


def renumbered(graph: nx.Graph, first: Iterable[int]) -> nx.DiGraph:
    """The same network with nodes numbered from 0: those named in ``first``, then the others in their order.

    So what a parameter says of nodes, such as ``roots=(0, 1, 2)``, means the like in different networks. The network
    is another one then, and is stored link by link. ParameterError for a node that is not there, or there twice.
    """
    graph = check(graph)
    first = list(first)
    for node in first:
        if not is_whole(node) or node not in graph:
            raise ParameterError(f"first has {node!r:.60}, which is no node of this network")
    if len(set(first)) < len(first):
        raise ParameterError(f"first is {first!r:.60}; it must name each node once")
    chosen = set(first)
    order = [*first, *(node for node in sorted(graph) if node not in chosen)]
    return check(nx.relabel_nodes(graph, {node: number for number, node in enumerate(order)}))

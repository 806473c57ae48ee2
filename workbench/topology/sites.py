"""Sites in a network: nodes far apart from each other, for sinks and roots; and a numbering in which they come first.

    spread              nodes far apart
    renumbered          the same network, some of its nodes numbered first
    field_with_roots    a field of the density of TinyMQ's evaluation, its roots numbered first

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
from workbench.keywords import checked
from workbench.topology.generators import disc
from workbench.topology.graphs import MOST_NODES, check, is_whole, whole

# The field of TinyMQ's evaluation, for other numbers of nodes at the same density.
FIELD_NODES, FIELD_M, FIELD_RADIUS_M = 1500, (500.0, 200.0), 20.0
PLACES = ("spread", "random")


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


@checked
def field_with_roots(nodes: int, count: int, roots: str = "spread", seed: int = 1) -> nx.DiGraph:
    """A connected field: 500 m x 200 m for 1500 nodes that hear each other up to 20 m, of the same density for others.

    The first ``count`` nodes are meant as roots. ``roots="spread"``: they are those of `spread`, so node 0 is in the
    middle, node 1 as far from it as there is any, and fewer roots are the first of more; "random": they are anywhere.
    ParameterError for another word or number.
    """
    if roots not in PLACES:
        raise ParameterError(f"roots is {roots!r:.60}; it must be one of {', '.join(PLACES)}")
    nodes = whole("nodes", nodes, 1, MOST_NODES)
    count = whole("count", count, 1, nodes)
    scale = (nodes / FIELD_NODES) ** 0.5
    graph = disc(nodes, scale * FIELD_M[0], scale * FIELD_M[1], radius_m=FIELD_RADIUS_M, seed=seed)
    return graph if roots == "random" else renumbered(graph, spread(graph, count))

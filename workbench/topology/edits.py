"""Networks changed by hand: nodes moved, added and removed, links with another delivery ratio.

Every function returns a new network in normal form and leaves the old one as it is. What was changed by hand has no
recipe any more and is stored node by node. A node that is moved keeps its links: positions say where a node is drawn,
and only a generator makes links of them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx
import numpy as np

from workbench.errors import ParameterError
from workbench.topology.graphs import LARGEST_NODE, Arrays, build, coordinates, number, to_arrays

Link = tuple[int, int]


def moved(graph: nx.DiGraph, positions_m: Mapping[int, tuple[float, float]]) -> nx.DiGraph:
    """The network with some nodes elsewhere. ParameterError for an unknown node or what is not (x_m, y_m)."""
    arrays = to_arrays(graph)
    places = arrays.positions_m.copy()
    for row, position in zip(_rows(arrays, positions_m), positions_m.values(), strict=True):
        places[row] = _place(position)
    return _built(graph, arrays._replace(positions_m=places), set(positions_m))


def with_node(graph: nx.DiGraph, position_m: tuple[float, float]) -> nx.DiGraph:
    """The network with one more node, without links. It has the number after the largest one (`next_node`)."""
    arrays = to_arrays(graph)
    nodes = np.append(arrays.nodes, next_node(graph))
    places = np.vstack((arrays.positions_m, _place(position_m)))
    return _built(graph, arrays._replace(nodes=nodes, positions_m=places))


def next_node(graph: nx.DiGraph) -> int:
    """The number that a new node gets: the one after the largest; where there is none, the smallest that is free."""
    largest = max(graph)
    return largest + 1 if largest < LARGEST_NODE else next(node for node in range(len(graph) + 1) if node not in graph)


def without(graph: nx.DiGraph, nodes: Iterable[int] = (), links: Iterable[Link] = ()) -> nx.DiGraph:
    """The network without some nodes and their links, and without both directions of some links.

    ParameterError for an unknown node, and if no node would be left. A link that is not there is no error.
    """
    arrays, gone = to_arrays(graph), set(nodes)
    _rows(arrays, gone)
    if len(gone) == len(arrays.nodes):
        raise ParameterError("A network needs at least one node, so the last ones cannot be removed.")
    ends = np.array(sorted(gone), dtype=np.int64)
    stays = ~np.isin(arrays.nodes, ends)
    cut = {pair for a, b in links for pair in ((a, b), (b, a))}
    kept = ~np.isin(arrays.arcs, ends).any(axis=1)
    if cut:
        kept &= np.array([tuple(arc) not in cut for arc in arrays.arcs.tolist()], dtype=bool)
    left = Arrays(arrays.nodes[stays], arrays.positions_m[stays], arrays.arcs[kept], arrays.pdr[kept])
    return _built(graph, left, gone)


def with_links(graph: nx.DiGraph, pdr: Mapping[Link, float]) -> nx.DiGraph:
    """The network with these delivery ratios of (transmitter, receiver), new links among them; 0 removes a direction.

    ParameterError for an unknown node, a link of a node to itself, and a ratio outside of 0 to 1.
    """
    arrays = to_arrays(graph)
    _rows(arrays, {node for link in pdr for node in link})
    for transmitter, receiver in pdr:
        if transmitter == receiver:
            raise ParameterError(f"Node {transmitter} cannot have a link to itself.")
    ratios = [number("pdr", ratio, 0, 1) for ratio in pdr.values()]
    kept = np.array([tuple(arc) not in pdr for arc in arrays.arcs.tolist()], dtype=bool)
    arcs = np.concatenate((arrays.arcs[kept], np.array(list(pdr), dtype=np.int64).reshape(-1, 2)))
    return _built(graph, arrays._replace(arcs=arcs, pdr=np.concatenate((arrays.pdr[kept], ratios))))


def _built(graph: nx.DiGraph, arrays: Arrays, placed: set[int] | frozenset[int] = frozenset()) -> nx.DiGraph:
    """The graph of changed arrays. ``placed``: nodes whose positions are no longer estimated, or that are gone."""
    kept: dict[str, Any] = {key: graph.graph[key] for key in ("walls", "name") if key in graph.graph}
    for key in ("positions_estimated", "positions_moved"):
        still = [node for node in graph.graph.get(key, ()) if node not in placed]
        if still:
            kept[key] = still
    return build(*arrays, **kept)


def _rows(arrays: Arrays, nodes: Iterable[int]) -> list[int]:
    row = {node: index for index, node in enumerate(arrays.nodes.tolist())}
    for node in nodes:
        if node not in row:
            raise ParameterError(f"There is no node {node!r:.60} in this network.")
    return [row[node] for node in nodes]


def _place(position: Any) -> tuple[float, float]:
    place = coordinates(position)
    if place is None:
        raise ParameterError(f"The position {position!r:.60} must be (x_m, y_m), two finite numbers.")
    return place

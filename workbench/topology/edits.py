"""Edited networks: moved, added and removed nodes, and links with other delivery ratios.

Every edit returns a new network in normal form (graphs.py) and leaves its argument unchanged. A scenario file
stores a generated network as its recipe: the name and arguments of the generator. It stores an edited network as lists
of nodes and links. A moved node keeps its links; only its place in drawings changes.

`linked_again` replaces all links of an edited network by those that a generator's rule gives for the new positions:
links within a radius, or by radio propagation.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import networkx as nx
import numpy as np

from workbench.errors import ParameterError
from workbench.topology.generators import from_positions
from workbench.topology.graphs import LARGEST_NODE, Arrays, build, coordinates, number, to_arrays
from workbench.topology.office import attempt_of

Link = tuple[int, int]


def moved(graph: nx.DiGraph, positions_m: Mapping[int, tuple[float, float]]) -> nx.DiGraph:
    """Return the network with some nodes moved; ``positions_m`` is {node: new position (x_m, y_m)}.

    Raises ParameterError for an unknown node or an invalid position.
    """
    arrays = to_arrays(graph)
    new_positions_m = arrays.positions_m.copy()
    for row, position in zip(_find_rows(arrays, positions_m), positions_m.values(), strict=True):
        new_positions_m[row] = _check_position(position)
    return _build_edited(graph, arrays._replace(positions_m=new_positions_m), set(positions_m))


def link_rule(graph: nx.DiGraph) -> dict[str, Any] | None:
    """Return the rule by which a generated network links its nodes, or None if positions do not determine links.

    The rule is a dictionary of arguments of `from_positions`: the radius, or the propagation with its walls and seed.
    """
    recipe = dict(graph.graph.get("recipe") or {})
    kind = recipe.get("kind")
    if kind == "disc":
        return {"radius_m": recipe["radius_m"]}
    if kind == "random_geometric":
        return {name: recipe[name] for name in ("propagation", "min_pdr", "seed")}
    if kind == "office":
        rule = {name: recipe[name] for name in ("propagation", "min_pdr", "seed", "wall_dB")}
        return rule | {"walls": graph.graph["walls"], "attempt": attempt_of(recipe, to_arrays(graph).positions_m)}
    if kind == "from_positions":
        return {name: value for name, value in recipe.items() if name not in ("kind", "positions")}
    return None


def has_link_rule(graph: nx.DiGraph) -> bool:
    """Return whether positions determine the links of a network; then `link_rule` returns the rule."""
    return (graph.graph.get("recipe") or {}).get("kind") in ("disc", "random_geometric", "office", "from_positions")


def linked_again(graph: nx.DiGraph, rule: Mapping[str, Any]) -> nx.DiGraph:
    """Return a network with the nodes and positions of ``graph``, whose links are made anew by ``rule``.

    ``rule``: a result of `link_rule`, the arguments by which the links of some network were made.
    """
    return from_positions(dict(graph.nodes(data="pos")), **rule)


def with_node(graph: nx.DiGraph, position_m: tuple[float, float]) -> nx.DiGraph:
    """Return the network with one more node, without links; the node's number is the result of `next_node`."""
    arrays = to_arrays(graph)
    nodes = np.append(arrays.nodes, next_node(graph))
    new_positions_m = np.vstack((arrays.positions_m, _check_position(position_m)))
    return _build_edited(graph, arrays._replace(nodes=nodes, positions_m=new_positions_m))


def next_node(graph: nx.DiGraph) -> int:
    """Return a number for a new node: the largest number in use plus 1.

    If this exceeds LARGEST_NODE, return the smallest number that is not in use.
    """
    largest_node = max(graph)
    return (
        largest_node + 1
        if largest_node < LARGEST_NODE
        else next(node for node in range(len(graph) + 1) if node not in graph)
    )


def without(graph: nx.DiGraph, nodes: Iterable[int] = (), links: Iterable[Link] = ()) -> nx.DiGraph:
    """Return the network without ``nodes`` and their links, and without both directions of ``links``.

    Raises ParameterError for an unknown node, or if no node would remain. Unknown links are ignored.
    """
    arrays, removed_nodes = to_arrays(graph), set(nodes)
    _find_rows(arrays, removed_nodes)
    if len(removed_nodes) == len(arrays.nodes):
        raise ParameterError("`nodes` lists all nodes of the network; at least one must remain")
    arc_ends = np.array(sorted(removed_nodes), dtype=np.int64)
    is_retained_node = ~np.isin(arrays.nodes, arc_ends)
    removed_arcs = {pair for a, b in links for pair in ((a, b), (b, a))}
    is_retained_arc = ~np.isin(arrays.arcs, arc_ends).any(axis=1)
    if removed_arcs:
        is_retained_arc &= np.array([tuple(arc) not in removed_arcs for arc in arrays.arcs.tolist()], dtype=bool)
    remaining_arrays = Arrays(
        arrays.nodes[is_retained_node],
        arrays.positions_m[is_retained_node],
        arrays.arcs[is_retained_arc],
        arrays.pdr[is_retained_arc],
    )
    return _build_edited(graph, remaining_arrays, removed_nodes)


def with_links(graph: nx.DiGraph, pdr: Mapping[Link, float]) -> nx.DiGraph:
    """Return the network with changed or new links: ``pdr`` is {(transmitter, receiver): delivery ratio}.

    A ratio of 0 removes that direction of a link.
    Raises ParameterError for an unknown node, a link of a node to itself, and a ratio outside [0, 1].
    """
    arrays = to_arrays(graph)
    _find_rows(arrays, {node for link in pdr for node in link})
    for transmitter, receiver in pdr:
        if transmitter == receiver:
            raise ParameterError(f"The link is {transmitter} -> {receiver}; a link must join two different nodes.")
    ratios = [number("pdr", ratio, 0, 1) for ratio in pdr.values()]
    is_retained_arc = np.array([tuple(arc) not in pdr for arc in arrays.arcs.tolist()], dtype=bool)
    arcs = np.concatenate((arrays.arcs[is_retained_arc], np.array(list(pdr), dtype=np.int64).reshape(-1, 2)))
    return _build_edited(graph, arrays._replace(arcs=arcs, pdr=np.concatenate((arrays.pdr[is_retained_arc], ratios))))


def _build_edited(graph: nx.DiGraph, arrays: Arrays, placed: set[int] | frozenset[int] = frozenset()) -> nx.DiGraph:
    """Return the network of changed ``arrays``, with the walls and name of ``graph``, the network before the edit.

    ``placed``: nodes with a new position, which are left out of the lists positions_estimated and positions_moved.
    """
    attributes: dict[str, Any] = {key: graph.graph[key] for key in ("walls", "name") if key in graph.graph}
    for key in ("positions_estimated", "positions_moved"):
        remaining_nodes = [node for node in graph.graph.get(key, ()) if node not in placed]
        if remaining_nodes:
            attributes[key] = remaining_nodes
    return build(*arrays, **attributes)


def _find_rows(arrays: Arrays, nodes: Iterable[int]) -> list[int]:
    """Return the index of each of ``nodes`` in the arrays of a network. Raises ParameterError for an unknown node."""
    row = {node: index for index, node in enumerate(arrays.nodes.tolist())}
    for node in nodes:
        if node not in row:
            raise ParameterError(f"Node {node!r:.60} is not in this network; use a node of the network.")
    return [row[node] for node in nodes]


def _check_position(position: Any) -> tuple[float, float]:
    coordinates_m = coordinates(position)
    if coordinates_m is None:
        raise ParameterError(f"Position is {position!r:.60}; it must be (x_m, y_m), two finite numbers.")
    return coordinates_m

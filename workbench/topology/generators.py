"""Generated networks: regular ones, random positions in a rectangle, and given positions."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import networkx as nx
import numpy as np

from workbench.errors import ParameterError
from workbench.keywords import checked
from workbench.topology.graphs import (
    LARGEST_COORDINATE_M,
    MOST_ARCS,
    MOST_NODES,
    build,
    check_walls,
    number,
    round_positions,
    whole,
)
from workbench.topology.neighborhood import mean_degree, pairs_within
from workbench.topology.propagation import POSITION, Propagation, key_of, links_between, uniforms
from workbench.topology.tables import read_positions

_DISC_TRIES = 100
_HOPELESS = 10  # with more isolated nodes, the next attempt lacks isolated nodes with a chance below 1 in 20,000


@checked
def grid(rows: int, columns: int, spacing_m: float = 10.0) -> nx.DiGraph:
    """Return a grid of ``rows`` x ``columns`` nodes, numbered row by row from 0, each linked to its 4 neighbors.

    >>> sorted(grid(2, 3)[0])
    [1, 3]
    """
    rows, columns = whole("rows", rows, 1, MOST_NODES), whole("columns", columns, 1, MOST_NODES)
    spacing_m = _check_spacing(spacing_m, max(rows, columns))
    if rows * columns > MOST_NODES:
        raise ParameterError(f"A grid has {rows} x {columns} nodes; at most {MOST_NODES:,} are allowed.")
    index = np.arange(rows * columns).reshape(rows, columns)
    positions = np.column_stack((index.ravel() % columns, index.ravel() // columns)) * spacing_m
    pairs = np.concatenate((_make_pairs(index[:, :-1], index[:, 1:]), _make_pairs(index[:-1], index[1:])))
    return _build_lossless(positions, pairs, {"kind": "grid", "rows": rows, "columns": columns, "spacing_m": spacing_m})


@checked
def line(nodes: int, spacing_m: float = 10.0) -> nx.DiGraph:
    """Return a line of ``nodes`` nodes, each linked to the next."""
    nodes = whole("nodes", nodes, 1, MOST_NODES)
    spacing_m = _check_spacing(spacing_m, nodes)
    index = np.arange(nodes)
    positions = np.column_stack((index * spacing_m, np.zeros(nodes)))
    return _build_lossless(
        positions, _make_pairs(index[:-1], index[1:]), {"kind": "line", "nodes": nodes, "spacing_m": spacing_m}
    )


@checked
def ring(nodes: int, spacing_m: float = 10.0) -> nx.DiGraph:
    """Return a ring of ``nodes`` nodes (3 or more), each linked to the next, and the last to the first."""
    nodes = whole("nodes", nodes, 3, MOST_NODES)
    spacing_m = _check_spacing(spacing_m, nodes)
    index = np.arange(nodes)
    angle = 2 * np.pi * index / nodes
    radius_m = spacing_m / (2 * math.sin(math.pi / nodes))
    positions = radius_m * (1 + np.column_stack((np.cos(angle), np.sin(angle))))
    recipe = {"kind": "ring", "nodes": nodes, "spacing_m": spacing_m}
    return _build_lossless(positions, _make_pairs(index, (index + 1) % nodes), recipe)


@checked
def disc(nodes: int, width_m: float, height_m: float, radius_m: float = 20.0, seed: int = 1) -> nx.DiGraph:
    """Return random nodes in a rectangle, linked if at most ``radius_m`` apart; the network is connected.

    Positions are uniform. If a network is not connected, all positions are drawn again, so the result is uniform among
    connected networks. Raises ParameterError after 100 attempts, or if more than 10 nodes have no neighbor; the message
    names a sufficient radius.
    """
    arguments = _check_area(nodes, width_m, height_m, seed)
    radius_m = number("radius_m", radius_m, 0.001, LARGEST_COORDINATE_M, "m")
    recipe = {"kind": "disc", **arguments, "radius_m": radius_m}
    _check_density(arguments, radius_m)
    for attempt in range(_DISC_TRIES):
        positions = _random_positions(arguments, attempt)
        pairs = pairs_within(positions, radius_m)
        isolated_count = np.count_nonzero(np.bincount(pairs.ravel(), minlength=len(positions)) == 0)
        if isolated_count == 0 or len(positions) == 1:
            graph = _build_lossless(positions, pairs, recipe)
            if nx.is_weakly_connected(graph):  # every link goes both ways
                return graph
        elif isolated_count > _HOPELESS:
            break
    raise ParameterError(_describe_disconnected(arguments, radius_m))


@checked
def random_geometric(
    nodes: int,
    width_m: float,
    height_m: float,
    min_pdr: float = 0.1,
    propagation: Propagation | None = None,
    seed: int = 1,
) -> nx.DiGraph:
    """Return random nodes in a rectangle, with delivery ratios from distance, shadowing and the reception curve.

    Positions are uniform. Arcs with a delivery ratio below ``min_pdr`` are omitted; the network may be disconnected,
    and its links asymmetric. ``propagation`` is a Propagation, or None for the defaults, which reach about 75 m.
    """
    arguments = _check_area(nodes, width_m, height_m, seed)
    min_pdr = number("min_pdr", min_pdr, 0.001, 1)
    propagation = as_propagation(propagation, Propagation())
    reach_m = propagation.range_m(min_pdr, propagation.greatest_luck_dB)
    _check_density(arguments, reach_m)
    positions = _random_positions(arguments, 0)
    arcs, pdr = links_between(np.arange(len(positions)), positions, propagation, (arguments["seed"], 0), min_pdr)
    recipe = {"kind": "random_geometric", **arguments, "min_pdr": min_pdr, "propagation": asdict(propagation)}
    return build(np.arange(len(positions)), positions, arcs, pdr, recipe=recipe)


@checked
def from_positions(
    positions: object,
    radius_m: float = 20.0,
    propagation: Propagation | None = None,
    min_pdr: float = 0.1,
    walls: Iterable[Any] = (),
    wall_dB: float = 8.0,
    seed: int = 1,
    attempt: int = 0,
) -> nx.DiGraph:
    """Return nodes at given positions, linked if at most ``radius_m`` apart; the network may be disconnected.

    positions     {node: (x_m, y_m)}, a pandas DataFrame or a CSV file with the columns node, x_m, y_m
    propagation   if it is given, delivery ratios come from distance, shadowing and walls as in `random_geometric` and
                  `office`, and ``radius_m`` is ignored; arcs with a delivery ratio below ``min_pdr`` are omitted
    walls         segments ((x0_m, y0_m), (x1_m, y1_m)), each of which attenuates by ``wall_dB``
    seed          seed of the shadowing
    attempt       number of the attempt at which `office` found the positions; 0 for other positions
    """
    position_of_node = read_positions(positions)
    nodes = np.array(sorted(position_of_node))
    positions_m = round_positions([position_of_node[node] for node in nodes.tolist()])
    position_rows = [[node, x, y] for node, (x, y) in zip(nodes.tolist(), positions_m.tolist(), strict=True)]
    recipe: dict[str, Any] = {"kind": "from_positions", "positions": position_rows}
    if propagation is None:
        radius_m = number("radius_m", radius_m, 0.001, LARGEST_COORDINATE_M, "m")
        arcs, pdr = arcs_by_rule(nodes, positions_m, radius_m=radius_m)
        return build(nodes, positions_m, arcs, pdr, recipe={**recipe, "radius_m": radius_m})
    propagation = as_propagation(propagation, Propagation())
    min_pdr, wall_dB = number("min_pdr", min_pdr, 0.001, 1), number("wall_dB", wall_dB, 0, 100, "dB")
    draw = whole("seed", seed, 0, 2**63 - 1), whole("attempt", attempt, 0, 2**31 - 1)
    segments = check_walls(walls)
    arcs, pdr = arcs_by_rule(nodes, positions_m, 0.0, propagation, min_pdr, segments, wall_dB, *draw)
    recipe |= {"propagation": asdict(propagation), "min_pdr": min_pdr, "seed": draw[0], "attempt": draw[1]}
    if not segments:
        return build(nodes, positions_m, arcs, pdr, recipe=recipe)
    recipe |= {"walls": [[list(end) for end in wall] for wall in segments], "wall_dB": wall_dB}
    return build(nodes, positions_m, arcs, pdr, recipe=recipe, walls=segments)


def arcs_by_rule(
    nodes: np.ndarray,
    positions_m: np.ndarray,
    radius_m: float = 20.0,
    propagation: Propagation | None = None,
    min_pdr: float = 0.1,
    walls: Any = (),
    wall_dB: float = 8.0,
    seed: int = 1,
    attempt: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (arcs (m, 2), delivery ratios (m,)) of ``nodes`` (n,) at ``positions_m`` (n, 2), without checks.

    The other arguments are those of `from_positions`, which checks them.
    """
    if propagation is None:
        return _lossless_arcs(nodes[pairs_within(positions_m, radius_m)])
    return links_between(nodes, positions_m, propagation, (seed, attempt), min_pdr, walls, wall_dB)


def as_propagation(value: object, default: Propagation) -> Propagation:
    """Return a Propagation from ``value``: a Propagation, a mapping of its parameters, or None for ``default``."""
    if value is None:
        return default
    if isinstance(value, Propagation):
        return value
    default_values = asdict(default)
    if not isinstance(value, Mapping) or not set(value) <= set(default_values):
        raise ParameterError(
            f"`propagation` is {value!r:.60}; it must be a Propagation, or a mapping with keys among "
            f"{', '.join(default_values)}."
        )
    return Propagation(**{**default_values, **value})


def _check_spacing(spacing_m: float, nodes: int) -> float:
    return number("spacing_m", spacing_m, 0.001, LARGEST_COORDINATE_M / nodes, "m")


def _check_area(nodes: int, width_m: float, height_m: float, seed: int) -> dict[str, Any]:
    """Check the arguments of a generator that places nodes at random; return them as {name: value}."""
    return {
        "nodes": whole("nodes", nodes, 1, MOST_NODES),
        "width_m": number("width_m", width_m, 0.01, LARGEST_COORDINATE_M, "m"),
        "height_m": number("height_m", height_m, 0.01, LARGEST_COORDINATE_M, "m"),
        "seed": whole("seed", seed, 0, 2**63 - 1),
    }


def _random_positions(arguments: dict[str, Any], attempt: int) -> np.ndarray:
    """Return random positions (n, 2) in m, uniform in the rectangle of the generator's ``arguments``.

    The argument "seed" and ``attempt``, the number of the attempt, determine a sequence of random numbers. Node i's x
    and y are made from the numbers 2i and 2i + 1 of this sequence.
    """
    key = key_of((arguments["seed"], attempt), POSITION)
    shares = uniforms(key, np.arange(2 * arguments["nodes"])).reshape(-1, 2)
    return round_positions(shares * (arguments["width_m"], arguments["height_m"]))


def _check_density(arguments: dict[str, Any], radius_m: float) -> None:
    nodes, width_m, height_m = arguments["nodes"], arguments["width_m"], arguments["height_m"]
    arcs = nodes * mean_degree(nodes, width_m, height_m, radius_m)
    if arcs > MOST_ARCS:
        raise ParameterError(
            f"{nodes} nodes in {width_m:g} m x {height_m:g} m with links of up to {radius_m:g} m would have about "
            f"{arcs:,.0f} links; at most {MOST_ARCS:,} are allowed: use a smaller radius or a larger area."
        )


def _describe_disconnected(arguments: dict[str, Any], radius_m: float) -> str:
    nodes, width_m, height_m = arguments["nodes"], arguments["width_m"], arguments["height_m"]
    degree = mean_degree(nodes, width_m, height_m, radius_m)
    radius = _find_sufficient_radius(arguments, radius_m)
    advice = f"use radius_m={radius:.4g}" if radius else "use a larger radius_m"
    return (
        f"A disc network of {nodes} nodes in {width_m:g} m x {height_m:g} m with radius_m={radius_m:g} has a mean "
        f"degree of about {degree:.1f}, and no attempt was connected (seed {arguments['seed']}); {advice}."
    )


def _find_sufficient_radius(arguments: dict[str, Any], radius_m: float) -> float | None:
    """Return a radius in m, above ``radius_m``, at which the first random placement of the nodes is connected.

    ``arguments``: the generator's arguments. The radius is increased in steps of 10 %. Returns None if the network
    would have more arcs than allowed.
    """
    nodes, width_m, height_m = arguments["nodes"], arguments["width_m"], arguments["height_m"]
    positions = _random_positions(arguments, 0)
    expected_radius_m = math.sqrt(width_m * height_m * math.log(nodes) / (math.pi * nodes))
    radius_m = max(radius_m, expected_radius_m, max(width_m, height_m) / nodes)
    while nodes * mean_degree(nodes, width_m, height_m, radius_m) <= MOST_ARCS:
        radius_m = float(f"{radius_m * 1.1:.4g}")
        graph = nx.Graph(pairs_within(positions, radius_m).tolist())
        if len(graph) == nodes and nx.is_connected(graph):
            return radius_m
    return None


def _make_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.column_stack((np.ravel(first), np.ravel(second)))


def _build_lossless(positions: np.ndarray, pairs: np.ndarray, recipe: dict[str, Any]) -> nx.DiGraph:
    """Return a graph of nodes 0, 1, 2, ... with symmetric links between ``pairs``; every link delivers all frames.

    ``recipe`` records the generator and its arguments.
    """
    return build(np.arange(len(positions)), positions, *_lossless_arcs(pairs), recipe=recipe)


def _lossless_arcs(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (arcs (2 p, 2), delivery ratios) of symmetric links between ``pairs`` (p, 2), without loss."""
    arcs = np.concatenate((pairs, pairs[:, ::-1]))
    return arcs, np.ones(len(arcs))

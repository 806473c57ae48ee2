"""Layout of nodes without known positions: the same result every time, on any machine.

Theory of operation
    ``lay_out`` is multidimensional scaling of hop distances: distances to pivots (all nodes, if they are few) are
    doubly centred, projected on their two main axes by power iteration from a fixed start, and for small graphs
    improved by majorization of the stress. Force layouts were rejected: they are chaotic, so that the last bit
    of a sine decides the picture.

Reference
    U. Brandes, C. Pich: Eigensolver methods for progressive multidimensional scaling of large data, GD 2006;
    E. Gansner, Y. Koren, S. North: Graph drawing by stress majorization, GD 2004.
"""

import math

import networkx as nx
import numpy as np

HOP_M = 10.0
_PIVOTS = 50
_SMALL = 400  # nodes; up to here every node is a pivot and the stress is majorized
_POWER_STEPS = 100
_STRESS_STEPS = 60
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
_BEST_NEIGHBORS = 5
_SHIFT_M = 0.3


def lay_out(graph: nx.Graph) -> dict[int, tuple[float, float]]:
    """Return {node: (x_m, y_m)} for every node; the smallest x and y are 0, and a hop is about 10 m long."""
    nodes = sorted(graph)
    undirected = graph.to_undirected(as_view=True) if graph.is_directed() else graph
    hops = _hops_to_pivots(undirected, nodes)
    coordinates = _principal_axes(hops) + 0.05 * _make_sunflower_points(len(nodes))
    if hops.shape[0] == hops.shape[1]:
        coordinates = _majorize(coordinates, hops)
    coordinates = (coordinates - coordinates.min(axis=0)) * HOP_M
    return {int(node): (x, y) for node, (x, y) in zip(nodes, coordinates.tolist(), strict=True)}


def estimate_positions(graph: nx.Graph, known: dict[int, tuple[float, float]]) -> dict[int, tuple[float, float]]:
    """Return {node: (x_m, y_m)} for the nodes not in ``known``: the mean position of each node's five best neighbors.

    The quality of a neighbor is the sum of the pdr of both directions; further neighbors with the quality of the fifth
    count too. If no neighbor of a node has a position yet, the node is placed after its neighbors. A node without a
    path to a known node is placed in the middle of all known nodes. Each position is shifted by 0.3 m, so that nodes
    with the same neighbors remain distinguishable.
    """
    known_positions = dict(known)
    estimated: dict[int, tuple[float, float]] = {}
    unplaced_nodes = sorted(node for node in graph if node not in known)
    while unplaced_nodes:
        best_neighbors = {node: _best_neighbors(graph, node, known_positions) for node in unplaced_nodes}
        placeable_nodes = [node for node in unplaced_nodes if best_neighbors[node]] or unplaced_nodes
        for node in placeable_nodes:
            neighbors_m = [known_positions[neighbor] for neighbor in best_neighbors[node]] or list(known.values())
            estimated[node] = _shift_position(np.mean(neighbors_m, axis=0), len(estimated))
        known_positions.update(estimated)
        unplaced_nodes = [node for node in unplaced_nodes if node not in known_positions]
    return {int(node): position for node, position in estimated.items()}


def _best_neighbors(graph: nx.Graph, node: int, known_positions: dict[int, tuple[float, float]]) -> list[int]:
    quality: dict[int, float] = {}
    for transmitter, receiver in _arcs_around(graph, node):
        neighbor = receiver if transmitter == node else transmitter
        if neighbor in known_positions:
            quality[neighbor] = quality.get(neighbor, 0.0) + graph.edges[transmitter, receiver].get("pdr", 1.0)
    best_qualities = sorted(quality.values(), reverse=True)[:_BEST_NEIGHBORS]
    return sorted(neighbor for neighbor in quality if quality[neighbor] >= best_qualities[-1])


def _arcs_around(graph: nx.Graph, node: int) -> list[tuple[int, int]]:
    if not graph.is_directed():
        return [(node, neighbor) for neighbor in graph[node]]
    return [*graph.out_edges(node), *graph.in_edges(node)]


def _shift_position(position: np.ndarray, index: int) -> tuple[float, float]:
    angle = index * _GOLDEN_ANGLE
    return (float(position[0] + _SHIFT_M * math.cos(angle)), float(position[1] + _SHIFT_M * math.sin(angle)))


def _hops_to_pivots(graph: nx.Graph, nodes: list[int]) -> np.ndarray:
    """Return the hop distances of all nodes to pivots, as an array (nodes, pivots).

    In small networks every node is a pivot. Otherwise each pivot is the node farthest from the earlier pivots. A node
    without a path to a pivot counts as one hop farther than all others.
    """
    row_of_node = {node: row for row, node in enumerate(nodes)}
    pivots = len(nodes) if len(nodes) <= _SMALL else _PIVOTS
    hops = np.full((len(nodes), pivots), np.nan)
    hops_to_nearest_pivot = np.full(len(nodes), np.inf)
    for column in range(pivots):
        pivot = column if pivots == len(nodes) else (int(np.argmax(hops_to_nearest_pivot)) if column else 0)
        for node, distance in nx.single_source_shortest_path_length(graph, nodes[pivot]).items():
            hops[row_of_node[node], column] = distance
        hops_to_nearest_pivot = np.minimum(
            hops_to_nearest_pivot, np.where(np.isnan(hops[:, column]), np.inf, hops[:, column])
        )
    return np.nan_to_num(hops, nan=np.nanmax(hops) + 1)


def _principal_axes(hops: np.ndarray) -> np.ndarray:
    """Return coordinates (nodes, 2) whose distances approximate ``hops``, by pivot multidimensional scaling.

    ``hops`` (nodes, pivots) is the result of `_hops_to_pivots`.
    """
    squared_hops = hops**2
    centred = -0.5 * (
        squared_hops - squared_hops.mean(axis=0) - squared_hops.mean(axis=1, keepdims=True) + squared_hops.mean()
    )
    matrix = centred.T @ centred
    columns = []
    for axis in range(2):
        vector = np.cos(np.arange(1, len(matrix) + 1) * (axis + 1.0))
        for _ in range(_POWER_STEPS):
            vector = _normalize_vector(matrix @ vector)
        matrix = matrix - np.outer(vector, vector) * (vector @ matrix @ vector)
        coordinates = centred @ vector
        # The length of `coordinates` is an eigenvalue of the doubly centred matrix; a distance is its square root.
        eigenvalue = math.sqrt(float(coordinates @ coordinates) * hops.shape[0] / hops.shape[1])
        columns.append(_normalize_vector(coordinates) * math.sqrt(eigenvalue))
    return np.column_stack(columns)


def _normalize_vector(vector: np.ndarray) -> np.ndarray:
    length = math.sqrt(float(vector @ vector))
    return vector / length if length > 1e-12 else np.zeros_like(vector)


def _majorize(points: np.ndarray, hops: np.ndarray) -> np.ndarray:
    """Move points (n, 2) so that their distances come closer to the hop distances (n, n); return the new points."""
    for _ in range(_STRESS_STEPS):
        distances = np.hypot(*(points[:, None, :] - points[None, :, :]).transpose(2, 0, 1))
        ratio = np.divide(hops, distances, out=np.zeros_like(hops), where=distances > 1e-9)
        points = (ratio.sum(axis=1, keepdims=True) * points - ratio @ points) / len(points)
    return points


def _make_sunflower_points(count: int) -> np.ndarray:
    """Return points (count, 2) spread evenly over the unit disc."""
    index = np.arange(count)
    radius = np.sqrt((index + 0.5) / count)
    return np.column_stack((radius * np.cos(index * _GOLDEN_ANGLE), radius * np.sin(index * _GOLDEN_ANGLE)))

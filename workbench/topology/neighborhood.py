"""Pairs of nodes within a radius of each other, found with cell lists: 100,000 nodes take about a second."""

import math

import numpy as np

from workbench.columns import ranges
from workbench.errors import ParameterError
from workbench.topology.graphs import MOST_ARCS

_HALF_OF_THE_CELLS_AROUND = ((0, 1), (1, -1), (1, 0), (1, 1))  # each pair of cells is visited from one side
_TOUCHING_M = 1e-6  # tolerance for decimal fractions: nodes exactly a radius apart are neighbors


def pairs_within(positions_m: np.ndarray, radius_m: float) -> np.ndarray:
    """Return all pairs of positions at most ``radius_m`` apart, as indices (p, 2) into ``positions_m`` (n, 2).

    Each pair occurs once, with the smaller index first. Raises ParameterError if there are more candidate pairs than a
    topology may have arcs.
    """
    reach = radius_m + _TOUCHING_M
    sorted_nodes, starts, counts, cells = _sort_into_cells(positions_m, reach)
    pairs = [_select_close_pairs(positions_m, _pairs_inside(sorted_nodes, starts, counts), reach)]
    for cell_offset in _HALF_OF_THE_CELLS_AROUND:
        pairs.append(
            _select_close_pairs(positions_m, _pairs_across(sorted_nodes, starts, counts, cells, cell_offset), reach)
        )
    return np.concatenate(pairs)


def _sort_into_cells(positions_m: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sort nodes into square cells whose sides are at least ``reach`` metres long.

    Returns (sorted_nodes, starts, counts, cells): the nodes sorted by cell (n,), and for each occupied cell the
    position of its first node in ``sorted_nodes`` (c,), its number of nodes (c,) and its grid coordinates (c, 2).
    """
    extent_m = float(np.ptp(positions_m, axis=0).max())
    size = max(reach, extent_m / 1e6)  # keeps cell numbers small; a cell may be larger than the reach
    cell_of_node = np.floor((positions_m - positions_m.min(axis=0)) / size).astype(np.int64)
    sorted_nodes = np.lexsort((cell_of_node[:, 1], cell_of_node[:, 0]))
    cells, starts, counts = np.unique(cell_of_node[sorted_nodes], axis=0, return_index=True, return_counts=True)
    return sorted_nodes, starts, counts, cells


def _pairs_inside(sorted_nodes: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    index = np.arange(len(sorted_nodes))
    ends = np.repeat(starts + counts, counts)
    return _pair_with_ranges(sorted_nodes, index, index + 1, ends - index - 1)


def _pairs_across(
    sorted_nodes: np.ndarray, starts: np.ndarray, counts: np.ndarray, cells: np.ndarray, offset: tuple[int, int]
) -> np.ndarray:
    """Return all pairs (p, 2) of nodes whose cells in a square grid are ``offset`` (dx, dy) apart.

    The other parameters are the results of `_sort_into_cells`, which assigns each node to a cell.
    """
    index_of_cell = {cell: index for index, cell in enumerate(map(tuple, cells.tolist()))}
    dx, dy = offset
    other_cells = np.array([index_of_cell.get((x + dx, y + dy), -1) for x, y in cells.tolist()])
    other_cell_of_node = np.repeat(other_cells, counts)
    index = np.flatnonzero(other_cell_of_node >= 0)
    other_cells = other_cell_of_node[index]
    return _pair_with_ranges(sorted_nodes, index, starts[other_cells], counts[other_cells])


def _pair_with_ranges(sorted_nodes: np.ndarray, index: np.ndarray, first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return pairs (p, 2) of nodes: for each i, ``sorted_nodes[index[i]]`` with each node of a range.

    The range is ``sorted_nodes[first[i] : first[i] + count[i]]``. Raises ParameterError if there are too many pairs.
    """
    pair_count = int(count.sum())
    if pair_count > 2 * MOST_ARCS:
        raise ParameterError(
            f"The radius gives about {2 * pair_count:,} links; at most {MOST_ARCS:,} are allowed. Use a smaller radius."
        )
    return np.column_stack((sorted_nodes[np.repeat(index, count)], sorted_nodes[ranges(first, count)]))


def _select_close_pairs(positions_m: np.ndarray, pairs: np.ndarray, reach: float) -> np.ndarray:
    """Return the ``pairs`` (p, 2) of nodes at most ``reach`` metres apart, each with the smaller index first."""
    difference_m = positions_m[pairs[:, 0]] - positions_m[pairs[:, 1]]
    close_pairs = pairs[(difference_m**2).sum(axis=1) <= reach * reach]
    return np.sort(close_pairs, axis=1)


def mean_degree(nodes: int, width_m: float, height_m: float, radius_m: float) -> float:
    """Return the mean number of neighbors within ``radius_m``, if ``nodes`` nodes are spread evenly over a rectangle.

    The result is somewhat too high, as nodes near the border have fewer neighbors; this is ignored.
    """
    reached_area_m2 = min(math.pi * radius_m**2, 2 * radius_m * min(width_m, height_m), width_m * height_m)
    return (nodes - 1) * reached_area_m2 / (width_m * height_m)

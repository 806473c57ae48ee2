"""Shortest paths of a topology in hops, from or to many nodes at once, computed over arrays.

Nodes are referred to by their index in ascending order of addresses.

Cost
    Arcs times the number of start nodes, and a dozen calls of numpy for each hop of the longest path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import networkx as nx
import numpy as np

from workbench.columns import argsort, find_sorted, ranges
from workbench.sim.fast.network import from_graph

NO_PATH = -1
_CELLS = 4_000_000  # hop counts in a batch


class Paths:
    """A network, prepared for searches of shortest paths; ``addresses`` (n,) are its nodes, ascending."""

    def __init__(self, graph: Any) -> None:
        network = from_graph(graph)
        self.addresses = network.addresses
        senders = np.repeat(np.arange(len(network.addresses)), np.diff(network.first))
        by_receiver = argsort(network.receivers)
        first_inbound = np.zeros(len(network.addresses) + 1, np.int64)
        np.cumsum(np.bincount(network.receivers, minlength=len(network.addresses)), out=first_inbound[1:])
        self._forwards = network.first, network.receivers.astype(np.int64)
        self._backwards = first_inbound, senders[by_receiver]

    def indices(self, nodes: np.ndarray) -> np.ndarray:
        """Return the index of each address in ``nodes`` (k,); -1 for a node that the network does not have."""
        return find_sorted(nodes, self.addresses)

    def hops_to(self, sinks: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Divide ``sinks`` (indices of nodes) into batches; yield (first, hops) for each batch.

        Row i of ``hops`` is for the node ``sinks[first + i]``, and has for each node of the network the number of hops
        from the node to this sink, or NO_PATH.
        """
        return self._batches(sinks, *self._backwards)

    def hops_from(self, sources: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Divide ``sources`` (indices of nodes) into batches; yield (first, hops) for each batch.

        Row i of ``hops`` is for the node ``sources[first + i]``, and has for each node of the network the number of
        hops from this source to the node, or NO_PATH.
        """
        return self._batches(sources, *self._forwards)

    def _batches(
        self, starts: np.ndarray, first: np.ndarray, neighbors: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        node_count = len(self.addresses)
        batch_size = max(1, _CELLS // node_count)
        for first_start in range(0, len(starts), batch_size):
            hops = _search_hops(
                np.asarray(starts[first_start : first_start + batch_size], np.int64), first, neighbors, node_count
            )
            yield first_start, hops.reshape(-1, node_count)


def _search_hops(starts: np.ndarray, first: np.ndarray, neighbors: np.ndarray, count: int) -> np.ndarray:
    """Return a flat array (k * n,): the hops from each of ``starts`` (k,) to each of n = ``count`` nodes, or NO_PATH.

    Arcs lead from node i to the nodes ``neighbors[first[i] : first[i + 1]]``.
    """
    hops = np.full(len(starts) * count, NO_PATH, np.int32)
    finder = np.empty(len(hops), np.int64)
    degrees = np.diff(first)
    base, frontier_nodes = np.arange(len(starts)) * count, starts
    hops[base + frontier_nodes] = 0
    distance = 0
    while len(frontier_nodes):
        distance += 1
        degree = degrees[frontier_nodes]
        base, frontier_nodes = np.repeat(base, degree), neighbors[ranges(first[frontier_nodes], degree)]
        frontier_cells = base + frontier_nodes
        new_cells = np.flatnonzero(hops[frontier_cells] < 0)
        frontier_cells = frontier_cells[new_cells]
        hops[frontier_cells] = distance
        # If several paths reach a cell in the same step, the search continues from it once.
        finder[frontier_cells] = new_cells
        new_cells = new_cells[finder[frontier_cells] == new_cells]
        base, frontier_nodes = base[new_cells], frontier_nodes[new_cells]
    return hops


# Topologies are frozen, and the scenarios of a sweep share them, so their paths are cached.
_paths: WeakKeyDictionary[nx.DiGraph, Paths] = WeakKeyDictionary()


def paths_of(graph: Any) -> Paths:
    """Return the `Paths` of a scenario's topology; results are cached by topology."""
    paths = _paths.get(graph)
    if paths is None:
        paths = _paths[graph] = Paths(graph)
    return paths

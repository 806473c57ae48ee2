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
        """Yield (index of the batch's first sink in ``sinks``, hops (m, n)) for each batch of m sinks.

        ``hops`` has a row for each sink of the batch and a column for each node: the hops from the node to the sink, or
        NO_PATH.
        """
        return self._batches(sinks, *self._backwards)

    def hops_from(self, sources: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (index of the batch's first source in ``sources``, hops (m, n)) for each batch of m sources.

        ``hops`` has a row for each source of the batch and a column for each node: 0 for the source, NO_PATH without a
        path.
        """
        return self._batches(sources, *self._forwards)

    def _batches(self, starts: np.ndarray, first: np.ndarray, others: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        node_count = len(self.addresses)
        batch_size = max(1, _CELLS // node_count)
        for first_start in range(0, len(starts), batch_size):
            hops = _search_hops(
                np.asarray(starts[first_start : first_start + batch_size], np.int64), first, others, node_count
            )
            yield first_start, hops.reshape(-1, node_count)


def _search_hops(starts: np.ndarray, first: np.ndarray, neighbors: np.ndarray, count: int) -> np.ndarray:
    """Return the hops from each of ``starts`` (k,) to each of ``count`` nodes, or NO_PATH; a flat array (k * count,).

    Node i is linked to ``neighbors[first[i] : first[i + 1]]``.
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
        fresh = np.flatnonzero(hops[frontier_cells] < 0)
        frontier_cells = frontier_cells[fresh]
        hops[frontier_cells] = distance
        # If several paths reach a cell in the same step, the search continues from it once.
        finder[frontier_cells] = fresh
        fresh = fresh[finder[frontier_cells] == fresh]
        base, frontier_nodes = base[fresh], frontier_nodes[fresh]
    return hops


# Topologies are frozen, and the scenarios of a sweep share them, so their paths are cached.
_paths: WeakKeyDictionary[nx.DiGraph, Paths] = WeakKeyDictionary()


def paths_of(graph: Any) -> Paths:
    """Return the `Paths` of a scenario's topology; results are cached by topology."""
    paths = _paths.get(graph)
    if paths is None:
        paths = _paths[graph] = Paths(graph)
    return paths

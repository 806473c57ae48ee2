"""Shortest paths of a topology in hops, from or to many nodes at once, over arrays.

Nodes are known by their index in ascending order of addresses.

Cost
    Arcs times the nodes that are asked for, and a dozen calls of numpy for each hop of the longest path.
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
_CELLS = 4_000_000  # of hops that are worked out at once


class Paths:
    """The shortest paths of a network: ``addresses`` (n,) ascending."""

    def __init__(self, graph: Any) -> None:
        network = from_graph(graph)
        self.addresses = network.addresses
        senders = np.repeat(np.arange(len(network.addresses)), np.diff(network.first))
        order = argsort(network.receivers)
        first = np.zeros(len(network.addresses) + 1, np.int64)
        np.cumsum(np.bincount(network.receivers, minlength=len(network.addresses)), out=first[1:])
        self._forwards = network.first, network.receivers.astype(np.int64)
        self._backwards = first, senders[order]

    def indices(self, nodes: np.ndarray) -> np.ndarray:
        """The indices (k,) of nodes (k,) by address; -1 for one that the network does not have."""
        return find_sorted(nodes, self.addresses)

    def hops_to(self, sinks: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """As `hops_from`, of the paths from each node of the network to ``sinks`` (k,)."""
        return self._some(sinks, *self._backwards)

    def hops_from(self, sources: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """(place of the first of them, hops (m, n)) for some of ``sources`` (k,) after the other: to each node.

        0 for a node itself, NO_PATH where there is none.
        """
        return self._some(sources, *self._forwards)

    def _some(self, starts: np.ndarray, first: np.ndarray, others: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        count = len(self.addresses)
        step = max(1, _CELLS // count)
        for place in range(0, len(starts), step):
            hops = _hops(np.asarray(starts[place : place + step], np.int64), first, others, count)
            yield place, hops.reshape(-1, count)


def _hops(starts: np.ndarray, first: np.ndarray, others: np.ndarray, count: int) -> np.ndarray:
    """Breadth first from all starts at once; a cell is a start and a node."""
    hops = np.full(len(starts) * count, NO_PATH, np.int32)
    finder = np.empty(len(hops), np.int64)
    degrees = np.diff(first)
    base, nodes = np.arange(len(starts)) * count, starts
    hops[base + nodes] = 0
    distance = 0
    while len(nodes):
        distance += 1
        degree = degrees[nodes]
        base, nodes = np.repeat(base, degree), others[ranges(first[nodes], degree)]
        cells = base + nodes
        found = np.flatnonzero(hops[cells] < 0)
        cells = cells[found]
        hops[cells] = distance
        # A node that several have found goes on once.
        finder[cells] = found
        found = found[finder[cells] == found]
        base, nodes = base[found], nodes[found]
    return hops


# A topology is frozen: a sweep's scenarios share it, and its arcs turned round.
_paths: WeakKeyDictionary[nx.DiGraph, Paths] = WeakKeyDictionary()


def paths_of(graph: Any) -> Paths:
    """The paths of a scenario's topology."""
    found = _paths.get(graph)
    if found is None:
        found = _paths[graph] = Paths(graph)
    return found

"""The networks that everything here is measured on, and the flood that all contenders play on them.

The flood: ``floods`` publications, one a second, from one source. Every node broadcasts each of them once, after a
delay that is uniform in JITTER_S; a frame takes AIRTIME_S; every neighbor hears it. So each contender has to come to
the same number of receptions: floods x arcs. With a real radio (CSMA and collisions) they hear as many as they can.
"""

from functools import cached_property, lru_cache
from typing import Any

import networkx as nx
import numpy as np

from workbench import Radio, topology

FRAME_B = 15  # a flood with one attribute
AIRTIME_S = Radio().airtime_us(FRAME_B) / 1e6
JITTER_S = tuple(ms / 1000 for ms in Radio().jitter_ms)


class Network:
    """A topology whose nodes are 0, 1, 2, ..., its neighbor lists, and the range that links those neighbors."""

    def __init__(self, name: str, graph: Any, range_m: float):
        self.name = name
        self.graph = graph
        self.range_m = range_m
        self.neighbors: list[list[int]] = [sorted(graph.successors(node)) for node in sorted(graph)]

    @property
    def arcs(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def hops(self) -> int:
        """How far the farthest node is from node 0."""
        return max(nx.single_source_shortest_path_length(self.graph, 0).values())

    @cached_property
    def starts(self) -> np.ndarray:
        """CSR: the neighbors of i are ``targets[starts[i]:starts[i + 1]]``."""
        return np.concatenate(([0], np.cumsum([len(neighbors) for neighbors in self.neighbors]))).astype(np.int64)

    @cached_property
    def targets(self) -> np.ndarray:
        return np.array([target for neighbors in self.neighbors for target in neighbors], np.int32)


@lru_cache
def networks() -> tuple[Network, ...]:
    """Few neighbors, many neighbors, many nodes, a great many nodes."""
    return (
        Network("20x20 grid", topology.grid(20, 20), 10.0),
        Network("1500-node disc", topology.disc(1500, 500, 200, radius_m=20), 20.0),
        Network("100x100 grid", topology.grid(100, 100), 10.0),
        Network("316x316 grid", topology.grid(316, 316), 10.0),
    )


@lru_cache
def small_disc() -> Network:
    """250 nodes at the density of the 1500-node disc."""
    return Network("250-node disc", topology.disc(250, 200, 80, radius_m=20), 20.0)

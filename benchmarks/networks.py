"""The networks of the benchmarks, and the parameters of the flood that all contenders play on them.

The flood: one source sends ``floods`` publications, one a second. Every node broadcasts each publication once, after a
delay that is uniform in JITTER_S; a frame takes AIRTIME_S; every neighbor hears it. So each contender must have the
same number of receptions, floods x arcs. With a real radio (CSMA and collisions) receptions of contenders may differ.
"""

from functools import cached_property, lru_cache
from typing import Any

import networkx as nx
import numpy as np

from workbench import Radio, topology
from workbench.topology import Propagation

FRAME_B = 15  # a flood with one attribute
AIRTIME_S = Radio().airtime_us(FRAME_B) / 1e6
LEAST_PDR = 0.1  # of an arc of the dense network
JITTER_S = tuple(ms / 1000 for ms in Radio().jitter_ms)


class Network:
    """A topology whose nodes are 0, 1, 2, ..., with its neighbor lists; ``range_m`` is the radio range in m."""

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
        """The distance in hops from node 0 to the farthest node."""
        return max(nx.single_source_shortest_path_length(self.graph, 0).values())

    @cached_property
    def starts(self) -> np.ndarray:
        """The offsets of a CSR adjacency (compressed sparse rows), one more than there are nodes.

        The neighbors of node i are ``targets[starts[i]:starts[i + 1]]``.
        """
        return np.concatenate(([0], np.cumsum([len(neighbors) for neighbors in self.neighbors]))).astype(np.int64)

    @cached_property
    def targets(self) -> np.ndarray:
        return np.array([target for neighbors in self.neighbors for target in neighbors], np.int32)


@lru_cache
def networks() -> tuple[Network, ...]:
    """Return four networks: with few neighbors, many neighbors, many nodes, and very many nodes."""
    return (
        Network("20x20 grid", topology.grid(20, 20), 10.0),
        Network("1500-node disc", topology.disc(1500, 500, 200, radius_m=20), 20.0),
        Network("100x100 grid", topology.grid(100, 100), 10.0),
        Network("316x316 grid", topology.grid(316, 316), 10.0),
    )


@lru_cache
def small_disc() -> Network:
    """Return a network of 250 nodes with the density of the 1500-node disc."""
    return Network("250-node disc", topology.disc(250, 200, 80, radius_m=20), 20.0)


def dense_testbed(nodes: int = 348, seed: int = 1) -> nx.DiGraph:
    """Return a network like a dense testbed: about 60 neighbors a node, delivery ratios from 0.1 to 1.

    Nodes are uniform in a rectangle of fixed density. Shadowing differs between links and between their directions.
    Each receiver also has its own noise, which loses up to a third of the frames.
    """
    width_m = 500 * (nodes / 348) ** 0.5
    propagation = Propagation(shadowing_dB=6, asymmetry_dB=3)
    graph = topology.random_geometric(nodes, width_m, width_m / 2, propagation=propagation, seed=seed)
    shares = dict(zip(sorted(graph), np.random.default_rng(seed).uniform(0.67, 1, nodes), strict=True))
    for transmitter, receiver, arc in list(graph.edges(data=True)):
        arc["pdr"] = round(arc["pdr"] * shares[receiver], 6)
        if arc["pdr"] < LEAST_PDR:
            graph.remove_edge(transmitter, receiver)
    graph.graph.clear()  # Its recipe describes other links.
    return graph

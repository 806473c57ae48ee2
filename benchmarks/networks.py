"""The networks that everything here is measured on, and the flood that all contenders play on them.

The flood: ``floods`` publications, one a second, from one source. Every node broadcasts each of them once, after a
delay that is uniform in JITTER_S; a frame takes AIRTIME_S; every neighbor hears it. So each contender has to come to
the same number of receptions: floods x arcs.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from workbench import Radio, topology

FRAME_B = 15  # a flood with one attribute
AIRTIME_S = Radio().airtime_us(FRAME_B) / 1e6
JITTER_S = tuple(ms / 1000 for ms in Radio().jitter_ms)


class Network(NamedTuple):
    """A topology, its neighbor lists (nodes are 0, 1, 2, ...) and the range that links those neighbors."""

    name: str
    graph: Any
    neighbors: list[list[int]]
    range_m: float
    floods: int

    @property
    def arcs(self) -> int:
        return sum(len(neighbors) for neighbors in self.neighbors)


def network(name: str, graph: Any, range_m: float, floods: int) -> Network:
    """A Network out of a topology whose nodes are 0, 1, 2, ..."""
    return Network(name, graph, [sorted(graph.successors(node)) for node in sorted(graph)], range_m, floods)


@lru_cache
def networks() -> tuple[Network, ...]:
    """Few neighbors, many neighbors, many nodes; as many floods as make a tenth of a million receptions or more."""
    return (
        network("20x20 grid", topology.grid(20, 20), 10.0, 80),
        network("1500-node disc", topology.disc(1500, 500, 200, radius_m=20), 20.0, 10),
        network("100x100 grid", topology.grid(100, 100), 10.0, 10),
    )

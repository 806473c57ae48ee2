"""The network and the duration of the scenario of a workload, which set defaults and the ranges of sliders."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from workbench.topology import edits


@dataclass(frozen=True)
class ScenarioContext:
    """The network and the duration of the scenario to which a workload belongs.

    nodes       the nodes of the network; () if unknown
    graph       the network; None if unknown
    duration_s  duration of the run in s
    """

    nodes: tuple[int, ...] = ()
    graph: nx.DiGraph | None = None
    duration_s: float = 60.0

    @cached_property
    def positions_m(self) -> dict[int, tuple[float, float]]:
        """The position (x, y) of each node in m; {} if the network or its positions are unknown."""
        return {} if self.graph is None else nx.get_node_attributes(self.graph, "pos")

    @cached_property
    def box_m(self) -> tuple[float, float, float, float]:
        """A rectangle (x0, y0, x1, y1) in m that contains all nodes. Its longer side is at least 10 m."""
        places = list(self.positions_m.values()) or [(0.0, 0.0)]
        xs, ys = zip(*places, strict=True)
        x0, y0, x1, y1 = min(xs), min(ys), max(xs), max(ys)
        margin_m = max(0.0, 10.0 - max(x1 - x0, y1 - y0)) / 2
        return x0 - margin_m, y0 - margin_m, x1 + margin_m, y1 + margin_m

    @property
    def extent_m(self) -> float:
        """The longer side of the rectangle `box_m` in m."""
        x0, y0, x1, y1 = self.box_m
        return max(x1 - x0, y1 - y0)

    @property
    def lacks_link_rule(self) -> bool:
        """True if the network is known and positions do not determine its links."""
        return self.graph is not None and not edits.has_link_rule(self.graph)

    def propose_radius_m(self) -> float:
        """Return a radius in m within which moving nodes can be linked: the median length of the network's links.

        So the links of moving nodes are about as long as the other links. The radius is rounded to two significant
        digits. Without links of known length, return a quarter of `extent_m`.
        """
        positions = self.positions_m
        links = [] if self.graph is None else self.graph.edges
        lengths = sorted(math.dist(positions[a], positions[b]) for a, b in links if {a, b} <= positions.keys())
        length_m = lengths[len(lengths) // 2] if lengths else self.extent_m / 4
        return max(0.1, float(f"{length_m:.2g}"))

    def mean_position_m(self, nodes: Iterable[int]) -> tuple[float, float]:
        """Return the mean position (x, y) of ``nodes`` in m. Nodes without a known position are ignored.

        If no position is known, return the middle of the network.
        """
        positions = self.positions_m
        places = [positions[node] for node in nodes if node in positions]
        if not places:
            x0, y0, x1, y1 = self.box_m
            return (x0 + x1) / 2, (y0 + y1) / 2
        xs, ys = zip(*places, strict=True)
        return sum(xs) / len(places), sum(ys) / len(places)

"""Pollution: one hostile node among those of coded diffusion, and how far from it packets are spoiled.

    PollutedDiffusion(hostile=17, ...)        coded diffusion in which node 17 sends noise
    pollution_chart({name: runs}, hostile)    shares of the nodes at each distance from it

Theory of operation
    The hostile node does all that others do, and sends when they would send; but the information vectors of its packets
    are random. Headers, encoding vectors and checksums of frames are right, so nobody sees it in a packet. A node is
    spoiled if it dropped a generation as corrupt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from workbench.coding.fields import field as field_of
from workbench.coding.rlnc import CodedPacket, draw_coefficients
from workbench.errors import ParameterError
from workbench.protocols.coded_diffusion import PARAMETERS, CodedDiffusion
from workbench.protocols.coded_diffusion.node import CodedDiffusionNode
from workbench.protocols.protocol import Parameter
from workbench.sim.trace_columns import Columns
from workbench.views.carried import carries_record
from workbench.views.chart import Series, line_chart
from workbench.views.drawing import Drawing

HOSTILE = Parameter("hostile", 0, 0, 0xFFFFFFFF, "node", "there is no better one than another")


class HostileNode(CodedDiffusionNode):
    """A node whose packets have random information vectors."""

    def _send(self, event_id: Any, hops: int, header: Any, packet: Any) -> None:
        field: Any = field_of(header[1])
        symbols = 8 * len(packet.information_vector) // field.symbol_bits
        noise = bytes(field.pack(draw_coefficients(field, symbols, self.random)))
        super()._send(event_id, hops, header, CodedPacket(packet.encoding_vector, noise))


class PollutedDiffusion(CodedDiffusion):
    """Coded diffusion with one hostile node, and the settings of `CodedDiffusion`."""

    parameters = (*PARAMETERS, HOSTILE)
    fast = ""
    why_not_fast = "what a hostile node sends takes information vectors, which the fast twin leaves out"
    why_not_on_motes = "a hostile node is for experiments in the simulator"

    def make_node(self, address: int, random: Any) -> CodedDiffusionNode:
        """A node, hostile at the address that the settings say."""
        kind = HostileNode if address == self.hostile else CodedDiffusionNode
        return kind(address, self, random)

    def named_nodes(self) -> dict[str, tuple[int, ...]]:
        """The hostile node: the network has to have it."""
        return {"hostile": (self.hostile,)}


def spoiled_by_distance(run: Any, hostile: int) -> dict[int, float]:
    """{hops from the hostile node: share of the nodes there that dropped a generation as corrupt}, from 1 hop on.

    Shares are means over the events of a run with a trace.
    """
    columns = Columns(run.trace)
    rows = columns.where(event="dropped", detail="corrupt")
    events = len(columns.where(event="originated"))
    spoiled = {*zip(*(columns[name][rows].tolist() for name in ("node", "origin", "sequence")), strict=True)}
    hops = nx.single_source_shortest_path_length(run.scenario.topology, hostile)
    dropped = Counter(hops[node] for node, _, _ in spoiled if node in hops)
    nodes = Counter(hops.values())
    return {distance: dropped[distance] / max(1, events * nodes[distance]) for distance in sorted(nodes) if distance}


@carries_record
def pollution_chart(runs: Mapping[str, Sequence[Any]], hostile: int) -> Drawing:
    """The shares of nodes whose packets were spoiled, by distance from the hostile node, a line for each name.

    Of several runs a line has the means. ParameterError for a name without runs.
    """
    series = []
    for name, some in runs.items():
        if not some:
            raise ParameterError(f"pollution_chart: {name!r} has no runs; each name takes one at least")
        shares = [spoiled_by_distance(run, hostile) for run in some]
        x = sorted({distance for share in shares for distance in share})
        y = [float(np.mean([share.get(distance, 0.0) for share in shares])) for distance in x]
        series.append(Series(name, x, y))
    return line_chart(
        series,
        title="How far pollution spreads",
        x_label="hops from the hostile node",
        y_label="share of nodes that dropped packets",
        y_range=(0.0, 1.0),
    )

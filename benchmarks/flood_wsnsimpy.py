"""The flood in wsnsimpy, with its own Node, send and on_receive, modelled on the flood in its examples.

``send`` starts two SimPy processes for each neighbor: one waits for the propagation delay, one runs ``on_receive``.
That makes about six events per reception. A plain Node has no airtime, so here it is part of the delay. The propagation
delay is distance / 1,000,000 s, 10 to 20 µs.

Its neighbor lists hold every other node of the network, sorted by distance; 10,000 nodes would need a hundred million
entries. `Simulator.update_neighbor_list` is therefore replaced, and the lists get the same neighbors from the topology.
"""

import math
import random

import wsnsimpy.wsnsimpy as wsp
from contender import Contender, without_preparation
from networks import AIRTIME_S, JITTER_S, Network


class FloodNode(wsp.Node):
    """A node that broadcasts each publication when it first receives it."""

    def init(self):
        self.known = set()

    def on_receive(self, sender, publication):
        self.sim.received += 1
        if publication not in self.known:
            self.known.add(publication)
            yield self.timeout(self.sim.draw.uniform(*JITTER_S) + AIRTIME_S)
            self.send(wsp.BROADCAST_ADDR, publication)


class Source(FloodNode):
    """A node that publishes once a second."""

    def run(self):
        for publication in range(self.sim.floods):
            self.known.add(publication)
            self.send(wsp.BROADCAST_ADDR, publication)
            yield self.timeout(1)


class Simulator(wsp.Simulator):
    """A simulator whose neighbor lists are filled in afterwards."""

    def update_neighbor_list(self, id):
        pass


def flood(network: Network, floods: int, source: int = 0) -> int:
    """Play ``floods`` floods from the node ``source``, and return the number of frames received."""
    simulator = Simulator(until=floods + 60, timescale=0)
    simulator.received, simulator.floods, simulator.draw = 0, floods, random.Random(7)
    positions = [network.graph.nodes[node]["pos"] for node in sorted(network.graph)]
    for node, position in enumerate(positions):
        simulator.add_node(Source if node == source else FloodNode, position).tx_range = network.range_m * 1.000001
    for node in simulator.nodes:
        near = [simulator.nodes[neighbor] for neighbor in network.neighbors[node.id]]
        node.neighbor_distance_list = sorted((math.dist(node.pos, other.pos), other) for other in near)
        assert len(node.neighbors) == len(near)
    simulator.run()
    return simulator.received


WSNSIMPY = Contender("wsnsimpy", "6 a reception", "jitter, airtime, distance", without_preparation(flood), 40_000)

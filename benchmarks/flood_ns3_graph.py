"""The flood on ns-3's SimpleNetDevice (flood_ns3_graph.cc), over a channel that delivers only to graph neighbors.

It has one event per reception, as in ns-3's own SimpleChannel, and two per transmission: the jitter and the end. A
frame is a Packet with as many bytes as the workbench's; airtime is the channel's delay. It models neither losses nor
collisions, and stores no record.
"""

from functools import partial

import ns3
from contender import Contender, without_preparation
from native import write_network
from networks import AIRTIME_S, FRAME_B, JITTER_S, Network
from timing import Timed

SOURCE, MODULE = "flood_ns3_graph.cc", "ns3-network"


def flood(network: Network, floods: int) -> Timed:
    """Play ``floods`` floods from node 0 in ns-3; return the number of frames received, and the process time."""
    program = ns3.build_program(SOURCE, MODULE)
    return ns3.run(program, write_network(network), floods, *JITTER_S, AIRTIME_S, FRAME_B)


NS3_GRAPH = Contender(
    "ns-3 SimpleNetDevice", "a reception; 2 a transmission", "jitter, airtime, packets",
    without_preparation(flood), 2_000_000,
    absent=partial(ns3.absent, SOURCE, MODULE),
)  # fmt: skip

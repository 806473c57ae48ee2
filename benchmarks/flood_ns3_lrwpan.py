"""The flood on ns-3's lr-wpan (flood_ns3_lrwpan.cc): 802.15.4's PHY and unslotted CSMA/CA over a spectrum channel.

Positions and range are the same, and so are the neighbors. Frames have the same total length, including the MAC's
header, and the same jitter. It differs from the workbench's radio: overlapping frames are compared by signal to noise,
so one of two equally strong frames is often received where the workbench loses both. So it has more receptions; rates
are per reception. Its channel checks the range of every node, so its time per reception grows with the number of nodes.
"""

from functools import partial

import ns3
from contender import Contender, without_preparation
from native import write_network
from networks import FRAME_B, JITTER_S, Network
from timing import Timed

SOURCE, MODULE = "flood_ns3_lrwpan.cc", "ns3-lr-wpan"


def flood(network: Network, floods: int) -> Timed:
    """Play ``floods`` floods from node 0 in ns-3; return the number of frames received, and the process time.

    Only frames that reach the application count as received.
    """
    program = ns3.build_program(SOURCE, MODULE)
    return ns3.run(program, write_network(network), floods, *JITTER_S, FRAME_B)


NS3_LRWPAN = Contender(
    "ns-3 lr-wpan", "any step of PHY, MAC, channel, jitter", "CSMA/CA, signal to noise, bit errors, frames",
    without_preparation(flood), 40_000, absent=partial(ns3.absent, SOURCE, MODULE),
)  # fmt: skip

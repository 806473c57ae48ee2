"""The flood on ns-3's lr-wpan (flood_ns3_lrwpan.cc): 802.15.4's PHY and unslotted CSMA/CA over a spectrum channel.

The same positions and range, so the same neighbors; frames of as many bytes in all (the MAC's header within them), the
same jitter before them. Differs from the workbench's radio: two frames at once are weighed by signal to noise, so one
of two equally strong ones is often heard where the workbench loses both. So it receives more; a rate is per reception.
Its channel asks for every node whether it is in range, so its time per reception grows with the number of nodes.
"""

from functools import partial

import ns3
from contender import Contender, plain
from native import network_file
from networks import FRAME_B, JITTER_S, Network
from timing import Timed

SOURCE, MODULE = "flood_ns3_lrwpan.cc", "ns3-lr-wpan"


def flood(network: Network, floods: int) -> Timed:
    """Play the flood from node 0; returns how many frames the application received, and the process time."""
    program = ns3.program(SOURCE, MODULE)
    return ns3.run(program, network_file(network), floods, *JITTER_S, FRAME_B)


NS3_LRWPAN = Contender(
    "ns-3 lr-wpan", "any step of PHY, MAC, channel, jitter", "CSMA/CA, signal to noise, bit errors, frames",
    plain(flood), 40_000, absent=partial(ns3.absent, SOURCE, MODULE),
)  # fmt: skip

"""What a node of coded diffusion tells beside the events of the contract.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.protocols.contract import FIELDS

# A coded packet from ``peer`` raised the rank of its decoding matrix. value: the rank; detail: the column of its pivot.
Innovative = namedtuple("Innovative", FIELDS)
# The event ``origin``, ``sequence`` was decoded. value: its generation size.
Decoded = namedtuple("Decoded", FIELDS)

# This node has a matrix without rows for the event ``origin``, ``sequence``, or has emptied it. value: generation size.
GenerationBegun = namedtuple("GenerationBegun", FIELDS)

EVENTS = (Innovative, Decoded, GenerationBegun)

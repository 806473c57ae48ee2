"""What a node of TinyMQ tells beside the events of the contract.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.protocols.contract import FIELDS

# This node has a key in an overlay tree. peer: its parent; origin: the tree; sequence: the root's epoch; value: the
# key's length, or NOBODY: it has lost its place; detail: the key.
KeySet = namedtuple("KeySet", FIELDS)
# A query of sink ``origin`` was stored here (value 1) or removed (value 0). detail: its attributes.
QueryStored = namedtuple("QueryStored", FIELDS)

EVENTS = (KeySet, QueryStored)

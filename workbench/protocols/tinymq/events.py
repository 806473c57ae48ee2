"""What a node of TinyMQ tells beside the events of the contract.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.protocols.contract import FIELDS

# This node has a key in an overlay tree. peer: its parent; origin: the tree; sequence: the root's epoch; value: the
# key's length, or NOBODY: it has lost its place; detail: the key.
KeySet = namedtuple("KeySet", FIELDS)
# A query of sink ``origin`` was stored here or removed. value: its tree + 1, negative if it was removed; detail: its
# attributes.
QueryStored = namedtuple("QueryStored", FIELDS)

# The zone of this node in a tree has changed, by the end of a call. origin: the tree; value NOBODY: it stores no string
# of that tree from here on; otherwise it stores those from ``sequence`` to ``value`` too. A zone is told as its
# intervals, after NOBODY if there was another one before. In key spaces of more than 62 bits zones are not told.
ZoneSet = namedtuple("ZoneSet", FIELDS)
# The event ``origin``, ``sequence`` came to its rendezvous node in a tree. value: the tree.
EventMatched = namedtuple("EventMatched", FIELDS)

EVENTS = (KeySet, QueryStored, ZoneSet, EventMatched)

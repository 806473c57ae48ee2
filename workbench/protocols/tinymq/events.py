"""The trace events that only TinyMQ's nodes report; `protocols.contract` has the events of all protocols.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.protocols.contract import FIELDS

# This node has got or lost a key in an overlay tree. peer: its parent; origin: the tree; sequence: the root's epoch;
# value: the key's length, or `NOBODY` if this node has lost its position in the tree; detail: the key.
KeySet = namedtuple("KeySet", FIELDS)
# A query of sink ``origin`` was stored here or removed. value: the query's tree + 1, with a minus sign if it was
# removed; detail: the query's attributes.
QueryStored = namedtuple("QueryStored", FIELDS)

# The zone of this node in a tree differs from the logged one at the end of a call. origin: the tree. A row with the
# value `NOBODY` clears the zone. Any other row adds the strings in [``sequence``, ``value``]. So a new zone is a
# clearing row, unless the previous zone was empty, and a row for each of its intervals. Key spaces of more than 62 bits
# log no zones.
ZoneSet = namedtuple("ZoneSet", FIELDS)
# The event (``origin``, ``sequence``) reached its rendezvous node in a tree. value: the tree.
EventMatched = namedtuple("EventMatched", FIELDS)

EVENTS = (KeySet, QueryStored, ZoneSet, EventMatched)

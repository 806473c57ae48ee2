"""Events that only DPS nodes log: changes of links, interests and mesh ids, and received acknowledgements.

`protocols.contract` defines the events that nodes of all protocols log.
"""

from collections import namedtuple

from workbench.protocols.contract import FIELDS

# The link to ``peer`` changed its state. sequence: the revision of the last message to it; value, detail: number and
# label of the state, as in automaton.py; "gone" when the link has ended.
LinkSet = namedtuple("LinkSet", FIELDS)
# The interests behind the link to ``peer`` changed (`NOBODY`: those of this node and behind all its links). They are
# empty at first. sequence: their revision at the neighbor; value: bits set in the interests; detail: bits set in the
# needs. The end of a link logs no such event.
InterestsSet = namedtuple("InterestsSet", FIELDS)
# A subscriber acknowledged a publication of this node. peer: the neighbor that delivered the acknowledgement; value:
# bytes of its data.
Acknowledged = namedtuple("Acknowledged", FIELDS)
# The owner of the lowest mesh id behind the link to ``peer`` changed (`NOBODY`: this node's own id). value: a number
# that identifies the owner; -1 before the first id came.
MeshIdSet = namedtuple("MeshIdSet", FIELDS)

EVENTS = (LinkSet, InterestsSet, Acknowledged, MeshIdSet)

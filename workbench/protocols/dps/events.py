"""What a DPS node tells beside the events of the contract: its links, the interests behind them, acknowledgements."""

from collections import namedtuple

from workbench.protocols.contract import FIELDS

# The state of the link to ``peer``. sequence: the revision of what was told it last; value: the state's number; detail:
# its name, as in automaton.py; "gone" when there is no link any more.
LinkSet = namedtuple("LinkSet", FIELDS)
# What is asked for behind the link to ``peer`` (NOBODY: here and behind all links), as a filter, where it differs from
# the last row; nothing at first. sequence: its revision there; value: how many bits of it are set; detail: how many of
# its needs. A link that has gone has no row that says so.
InterestsSet = namedtuple("InterestsSet", FIELDS)
# A subscriber has acknowledged a publication of this node's own. peer: who brought it; value: bytes of its data.
Acknowledged = namedtuple("Acknowledged", FIELDS)
# The owner of the lowest mesh id behind the link to ``peer``, or of this node's own id (NOBODY), where it differs from
# the last row. value: a number that no other id has; -1 if none has come.
MeshIdSet = namedtuple("MeshIdSet", FIELDS)

EVENTS = (LinkSet, InterestsSet, Acknowledged, MeshIdSet)

"""What a DPS node tells beside the events of the contract: its links, the interests behind them, acknowledgements."""

from collections import namedtuple

from workbench.protocols.contract import FIELDS

# The state of the link to ``peer``. sequence: the revision of what was told it last; value: the state's number; detail:
# its name, as in automaton.py; "gone" when there is no link any more.
LinkSet = namedtuple("LinkSet", FIELDS)
# What is asked for behind the link to ``peer`` (NOBODY: here and behind all links), as a filter. sequence: its revision
# there; value: how many bits of it are set; detail: how many of its needs.
InterestsSet = namedtuple("InterestsSet", FIELDS)
# A subscriber has acknowledged a publication of this node's own. peer: who brought it; value: bytes of its data.
Acknowledged = namedtuple("Acknowledged", FIELDS)

EVENTS = (LinkSet, InterestsSet, Acknowledged)

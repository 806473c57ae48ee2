"""What a diffusing node tells beside the events of the contract.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.protocols.contract import FIELDS

# A filter answered REPLACE or DROP. value: the filter's key; detail: "replace" or "drop".
Filtered = namedtuple("Filtered", FIELDS)
# An interest entered the interest cache. value: its round; origin, sequence: sink and number; detail: its attributes.
InterestCached = namedtuple("InterestCached", FIELDS)
# An interest left the interest cache. origin, sequence: of the interest that was cached under it last, as in its
# InterestCached; detail: "expired", "evicted" or "cancelled".
InterestRemoved = namedtuple("InterestRemoved", FIELDS)
# Data for sink ``origin`` may now go to ``peer``. value: when it expires, in µs; detail: "interest", "reinforcement".
GradientSet = namedtuple("GradientSet", FIELDS)
# Data for it no longer goes to ``peer``. sequence: of the interest that set it last, 0 if reinforcements alone did;
# detail: "expired", "evicted", "cancelled", "round", "blacklisted", and "interest" where an interest takes over a
# gradient that reinforcements alone had set.
GradientRemoved = namedtuple("GradientRemoved", FIELDS)
# New data of source ``origin`` came first from ``peer``. sequence: the data message's.
DataGradientSet = namedtuple("DataGradientSet", FIELDS)
# A reinforcement (of sink ``origin``) was sent to ``peer``, towards the source. value: the source that it is meant for.
Reinforced = namedtuple("Reinforced", FIELDS)
# A neighbor was put on the black list (value 1) or taken off it (value 0).
Blacklisted = namedtuple("Blacklisted", FIELDS)
# Of the gradients towards sink ``origin``, the one to ``peer`` is the first from now on. sequence: as GradientRemoved
# has it; value: 1 if a reinforcement has put the gradient there, else 0. A head that is removed without a successor has
# no such event.
HeadSet = namedtuple("HeadSet", FIELDS)

EVENTS = (
    Filtered,
    InterestCached,
    InterestRemoved,
    GradientSet,
    GradientRemoved,
    DataGradientSet,
    Reinforced,
    Blacklisted,
    HeadSet,
)

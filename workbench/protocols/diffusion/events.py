"""The events that a TinyDiffusion node reports, in addition to those of `protocols/contract.py`.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple

from workbench.protocols.contract import FIELDS

# A filter replaced or dropped a message. value: the filter's key; detail: "replace" or "drop".
Filtered = namedtuple("Filtered", FIELDS)
# An interest entered the interest cache. value: its round; origin: its sink; detail: its attributes.
InterestCached = namedtuple("InterestCached", FIELDS)
# An interest left the interest cache. origin, sequence: of the interest that was cached last in its entry, as in
# InterestCached; detail: "expired", "evicted" or "cancelled".
InterestRemoved = namedtuple("InterestRemoved", FIELDS)
# Data for sink ``origin`` may now go to ``peer``. value: when the gradient expires (µs); detail: the message that set
# it.
GradientSet = namedtuple("GradientSet", FIELDS)
# Data for sink ``origin`` no longer goes to ``peer``. sequence: of the interest that set the gradient last, 0 if only
# reinforcements did; detail: "expired", "evicted", "cancelled", "round", "blacklisted", or "interest" if an interest
# takes over a gradient that only reinforcements had set.
GradientRemoved = namedtuple("GradientRemoved", FIELDS)
# New data of source ``origin`` came first from ``peer``. sequence: that of the data message.
DataGradientSet = namedtuple("DataGradientSet", FIELDS)
# A reinforcement (of sink ``origin``) was sent to ``peer``, towards the source. value: the source.
Reinforced = namedtuple("Reinforced", FIELDS)
# A neighbor was put on the black list (value 1) or taken off it (value 0).
Blacklisted = namedtuple("Blacklisted", FIELDS)
# Of the gradients towards sink ``origin``, the one to ``peer`` is now the first. sequence: as in GradientRemoved;
# value: 1 if a reinforcement made it the first, else 0. A removed last gradient has no successor, hence no event.
HeadSet = namedtuple("HeadSet", FIELDS)
# This source does not send reading ``value`` to sink ``peer``, as the INTERVAL of the sink's interests has not passed
# since the last reading that it sent. The reading has no message, so sequence is 0.
Withheld = namedtuple("Withheld", FIELDS)

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
    Withheld,
)

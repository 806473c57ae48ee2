"""The ids that a node remembers: the last so many that differ.

Rings: an array (nodes, ids) has a node's ids, and its record a `RING` that says how many those are and which is the
oldest. An id's place in the ring stays the same until it is forgotten, so what else is known of it (a round, say) may
stand at that place of an array of the same shape.

Ordinals: where each id has a cell of its own anyway (a node and a publication, say), no id has to be removed. An id's
*ordinal* is the number of ids that the node had taken in by then, itself included; 0 if it never did.
"""

import numpy as np

from workbench.sim.fast.layout import NONE
from workbench.sim.fast.reference import hot, inlined

RING = np.dtype([("count", np.int32), ("oldest", np.int32)], align=True)


@hot
def find_newest_first(ids, ring, id):
    """The place of an id among a node's, or NONE."""
    for place in range(ring.oldest - 1, -1, -1):
        if ids[place] == id:
            return place
    for place in range(ring.count - 1, ring.oldest - 1, -1):
        if ids[place] == id:
            return place
    return NONE


@inlined
def note(ids, ring, id):
    """Remember an id that is not there, in place of the oldest if there is no more room; returns its place."""
    if ring.count < len(ids):
        place = np.int64(ring.count)
        ring.count += 1
    else:
        place = np.int64(ring.oldest)
        ring.oldest = (place + 1) % len(ids)
    ids[place] = id
    return place


@inlined
def is_recent(ordinal, taken, most):
    """Whether an id is among the last ``most`` of the ``taken`` ids."""
    return ordinal > 0 and taken - ordinal < most

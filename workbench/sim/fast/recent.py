"""The ids that a node remembers: the last so many that differ.

Rings: an array (nodes, ids) has a node's ids, and its record a `RING` that says how many those are and which is the
oldest. An id's index in the ring stays the same until it is forgotten, so what else is known of it (a round, say) may
stand at that index of an array of the same shape.

Ordinals: where each id has a cell of its own anyway (a node and a publication, say), no id has to be removed. An id's
*ordinal* is the number of ids that the node had taken in by then, itself included; 0 if it never did.
"""

import numpy as np

from workbench.sim.fast.layout import NONE
from workbench.sim.fast.compiled import compiled, hot

RING = np.dtype([("count", np.int32), ("oldest", np.int32)], align=True)


@hot
def find_newest_first(ids, ring, id):
    """The index of an id among a node's, or NONE."""
    for index in range(ring.oldest - 1, -1, -1):
        if ids[index] == id:
            return index
    for index in range(ring.count - 1, ring.oldest - 1, -1):
        if ids[index] == id:
            return index
    return NONE


@compiled
def note(ids, ring, id):
    """Remember an id that is not there, in place of the oldest if there is no more room; returns its index."""
    if ring.count < len(ids):
        index = np.int64(ring.count)
        ring.count += 1
    else:
        index = np.int64(ring.oldest)
        ring.oldest = (index + 1) % len(ids)
    ids[index] = id
    return index


@compiled
def is_recent(ordinal, taken, most):
    """Whether an id is among the last ``most`` of the ``taken`` ids."""
    return ordinal > 0 and taken - ordinal < most

"""The ids that TinyMQ's nodes have seen of late, in hash tables: `recent.RecentIds` for all nodes at once.

An id's *ordinal* (`sim.fast.recent`) tells whether its node remembers it: no id has to be removed, and those that are
past are left out when the table grows. Events are kept for good, as it is also asked whether a node ever held one.

The ways of queries, which every notification asks for, are few: they have a table to themselves, ``paths``, which fits
a processor's cache; a way has more to note than fits the value of an id. What a node hears on a link has consecutive
numbers, so ids that differ in the last bits alone stand together: most of them are found where the one before was.
"""

import numpy as np

from workbench.sim.fast import twin
from workbench.sim.fast.twin import compiled

_HEARD, _EVENTS, _PATHS = 1, 2, 3  # kinds of ids
_KIND, _NODE = 61, 32  # first bits of them in an id
_TOGETHER = 3  # bits


@compiled
def heard_id(link, number):
    """The id of a neighbor's frame."""
    return (_HEARD << _KIND) | (np.int64(link) << 16) | np.int64(number)


@compiled
def event_id(i, publication):
    """The id of an event at node ``i``."""
    return (_EVENTS << _KIND) | (np.int64(i) << _NODE) | np.int64(publication)


@compiled
def path_id(i, query):
    """The id of a query in a tree at node ``i``."""
    return (_PATHS << _KIND) | (np.int64(i) << _NODE) | np.int64(query)


@compiled
def find(recents, id):
    """The row of an id, or the free one where it belongs."""
    mask = np.int64(len(recents) - 1)
    block = np.int64(twin.mix64(np.uint64(id >> _TOGETHER)) >> np.uint64(_TOGETHER + 1)) << _TOGETHER
    row = (block | (id & ((1 << _TOGETHER) - 1))) & mask
    while recents[row].id != 0 and recents[row].id != id:
        row = (row + 1) & mask
    return row


@compiled
def put(state, recents, counter, row, id, ordinal, value):
    """Note an id that is not remembered, and its value, where `find` said; ``counter`` counts the table's rows."""
    it = recents[row]
    if it.id == 0:
        it.id = id
        state.numbers[counter] += 1
    it.ordinal = ordinal
    it.value = value


@compiled
def _still_counts(it, listeners, heard, paths, max_known):
    if it.id == 0:
        return False
    kind = it.id >> _KIND
    if kind == _HEARD:
        return twin.is_recent(it.ordinal, heard[listeners[(it.id >> 16) & 0xFFFFFFFF]], max_known)
    if kind == _PATHS:
        return twin.is_recent(it.ordinal, paths[(it.id >> _NODE) & 0xFFFFFFF], max_known)
    return True


@twin.compiled_loop
def counting(recents, listeners, heard, paths, max_known):
    """How many of the ids still count; ``heard`` and ``paths`` (n,): how many each node has taken in."""
    count = 0
    for row in range(len(recents)):
        count += _still_counts(recents[row], listeners, heard, paths, max_known)
    return count


@twin.compiled_loop
def move(old, new, listeners, heard, paths, max_known):
    """Put what still counts into another table, which is empty."""
    for row in range(len(old)):
        it = old[row]
        if _still_counts(it, listeners, heard, paths, max_known):
            there = new[find(new, it.id)]
            there.id = it.id
            there.ordinal = it.ordinal
            there.value = it.value

"""The ids that TinyMQ's nodes remember, in hash tables that replace the `RecentIds` of all nodes.

The table ``recents`` has the ids of frames that a node heard, and of events that a node holds. The table ``paths`` has
the ids of queries with a reverse path at a node, and the paths as values. A path is looked up for every notification.
Paths are few, so their table fits a processor's cache.

An id's *ordinal* is its number among all ids of the same kind that its node has stored. It shows whether the node still
remembers the id (`twin.is_recent`). So ids are not removed one by one: forgotten ids are omitted when the table
grows. The ids of events stay for the whole run, because the trace marks the first time that a node
holds an event.

The frames heard on a link have consecutive numbers. Ids that differ only in their last bits are therefore stored side
by side, so that most look-ups are near the previous one.
"""

import numpy as np

from workbench.sim.fast import twin
from workbench.sim.fast.twin import compiled

_HEARD, _EVENTS, _PATHS = 1, 2, 3  # kinds of ids
_KIND, _NODE = 61, 32  # lowest bit of the kind and of the node in an id
_BLOCK_BITS = 3  # ids that differ only in this many last bits are stored side by side


@compiled
def heard_id(link, number):
    """Return the id under which the table ``recents`` stores a received frame.

    ``link``: the row of the link on which the frame arrived; ``number``: the frame's sequence number on this link.
    """
    return (_HEARD << _KIND) | (np.int64(link) << 16) | np.int64(number)


@compiled
def event_id(i, publication):
    """Return the id under which the table ``recents`` stores an event that node ``i`` holds.

    ``publication``: the number of the event's publication in the run.
    """
    return (_EVENTS << _KIND) | (np.int64(i) << _NODE) | np.int64(publication)


@compiled
def path_id(i, query):
    """Return the id under which the table ``paths`` stores a query's reverse path at node ``i``.

    ``query``: subscription * number of trees + tree, an integer that identifies a subscription's query in one tree.
    """
    return (_PATHS << _KIND) | (np.int64(i) << _NODE) | np.int64(query)


@compiled
def find(recents, id):
    """Return the row of ``id`` in the hash table ``recents``, or the free row in which to store it if it is missing."""
    row_mask = np.int64(len(recents) - 1)
    block_row = np.int64(twin.mix64(np.uint64(id >> _BLOCK_BITS)) >> np.uint64(_BLOCK_BITS + 1)) << _BLOCK_BITS
    row = (block_row | (id & ((1 << _BLOCK_BITS) - 1))) & row_mask
    while recents[row].id != 0 and recents[row].id != id:
        row = (row + 1) & row_mask
    return row


@compiled
def put(state, recents, counter, id_row, id, ordinal, value):
    """Store an id and a value in row ``id_row`` of the hash table ``recents``, which `find` returned for this id.

    ``ordinal``: the id's number (1, 2, ...) among the ids of the same kind that its node has stored, which shows the
    id's age; ``counter``: index in ``state.numbers`` of the number of ids in the table. The table may already have the
    id, but only if the node has forgotten it.
    """
    recent_record = recents[id_row]
    if recent_record.id == 0:
        recent_record.id = id
        state.numbers[counter] += 1
    recent_record.ordinal = ordinal
    recent_record.value = value


@compiled
def _is_remembered(entry, listeners, heard, paths, max_known):
    if entry.id == 0:
        return False
    kind = entry.id >> _KIND
    if kind == _HEARD:
        return twin.is_recent(entry.ordinal, heard[listeners[(entry.id >> 16) & 0xFFFFFFFF]], max_known)
    if kind == _PATHS:
        return twin.is_recent(entry.ordinal, paths[(entry.id >> _NODE) & 0xFFFFFFF], max_known)
    return True


def is_id_of(ids: np.ndarray, listeners: np.ndarray, i: int) -> np.ndarray:
    """Return a bool array (n,): True for each of ``ids`` (n,) that node ``i`` stored for a frame, an event or a path.

    ``listeners``: the receiver of each link.
    """
    kinds, nodes = ids >> _KIND, (ids >> _NODE) & 0xFFFFFFF
    links = np.minimum((ids >> 16) & 0xFFFFFFFF, len(listeners) - 1)
    return np.where(kinds == _HEARD, listeners[links] == i, (kinds > 0) & (nodes == i))


@twin.compiled_loop
def count_remembered(recents, listeners, heard, paths, max_known):
    """Return the number of ids in the table ``recents`` that must be kept, because their nodes still remember them.

    Ids of events are always kept.

    ``listeners``: the receiver of each link; ``heard`` and ``paths`` (n,): the numbers of frames and of paths that each
    node has stored so far; ``max_known``: how many of the latest frames, and of the latest paths, a node remembers.
    """
    remembered_count = 0
    for id_row in range(len(recents)):
        remembered_count += _is_remembered(recents[id_row], listeners, heard, paths, max_known)
    return remembered_count


@twin.compiled_loop
def copy_remembered(old, new, listeners, heard, paths, max_known):
    """Copy the ids that their nodes still remember, and all ids of events, from the table ``old`` to the empty ``new``.

    ``listeners``: the receiver of each link; ``heard``, ``paths`` (n,): how many frames and paths each node has stored;
    ``max_known``: how many of the latest frames, and of the latest paths, a node remembers.
    """
    for old_row in range(len(old)):
        old_record = old[old_row]
        if _is_remembered(old_record, listeners, heard, paths, max_known):
            new_record = new[find(new, old_record.id)]
            new_record.id = old_record.id
            new_record.ordinal = old_record.ordinal
            new_record.value = old_record.value

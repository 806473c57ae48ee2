"""Rows that come and go: pools of free rows, and lists of rows that a node has, in the order in which they came.

A *pool* is an array of records with a column ``next`` that links those that are free. ``numbers[free]`` is the first of
them, ``numbers[free + 1]`` says how many there are; whoever takes a row has made sure that there is one.

A *list* is a record `LIST`, as a rule a column of a node's record, over an array of records that it links. A list is
linked one way (by ``next``) or both ways (by ``next`` and ``previous``). Whoever goes through one writes::

    row = node.waiting.first
    while row != NONE:
        behind = state.waitings[row].next
        ...
        row = behind

Each function takes the record of a list, and the array of its rows; of a matrix of rows, ``state.pairs[:, i]``.
"""

import numpy as np

from workbench.sim.fast.layout import NONE
from workbench.sim.fast.compiled import compiled

LIST = np.dtype([("first", np.int32), ("last", np.int32), ("count", np.int32)], align=True)
NO_ROWS = (NONE, NONE, 0)  # a list's fill, see `fields.Array`

# Pools


@compiled
def take_free(rows, numbers, free):
    """Take a row from a pool."""
    row = numbers[free]
    numbers[free] = rows[row].next
    numbers[free + 1] -= 1
    return row


@compiled
def give_back(rows, numbers, free, row):
    """A row of a pool is free again, and the next to be taken."""
    rows[row].next = numbers[free]
    numbers[free] = row
    numbers[free + 1] += 1


# Lists that are linked both ways


@compiled
def append(of, rows, row):
    """Add a row at the end of a list."""
    rows[row].next = NONE
    rows[row].previous = of.last
    if of.last == NONE:
        of.first = row
    else:
        rows[of.last].next = row
    of.last = row
    of.count += 1


@compiled
def remove(of, rows, row):
    """Take a row out of a list; it keeps its own links, from which one may go on."""
    it = rows[row]
    if it.previous == NONE:
        of.first = it.next
    else:
        rows[it.previous].next = it.next
    if it.next == NONE:
        of.last = it.previous
    else:
        rows[it.next].previous = it.previous
    of.count -= 1


# Lists that are linked one way


@compiled
def clear(of):
    """Make a list empty, whatever becomes of its rows."""
    of.first = NONE
    of.last = NONE
    of.count = 0


@compiled
def append_behind(of, rows, before, row):
    """Add a row to a list, behind the row ``before`` (NONE: as the first; ``of.last``: as the last)."""
    if before == NONE:
        rows[row].next = of.first
        of.first = row
    else:
        rows[row].next = rows[before].next
        rows[before].next = row
    if of.last == before:
        of.last = row
    of.count += 1


@compiled
def remove_behind(of, rows, before, row):
    """Take a row out of a list, where it stands behind ``before`` (NONE: first); returns the row behind it."""
    behind = rows[row].next
    if before == NONE:
        of.first = behind
    else:
        rows[before].next = behind
    if of.last == row:
        of.last = before
    of.count -= 1
    return behind

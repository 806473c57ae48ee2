"""Intervals out of rows of a trace, with arrays: what layers are computed with.

    groups(*keys)                    one number for each combination of keys
    rank_in(keys)                    how many rows of its key came before each row
    changed(keys, *values)           the rows that differ from the row of their key before them
    until_next(keys, times, end)     each row lasts until the next row of its key
    opened(keys, times, is_opening)  rows open and close what belongs to their key
    overlaps(...)                    intervals of a key, cut where other intervals of that key begin and end
    without(table, outages)          intervals of a node, cut out where the node was down
    within(table, duration_us)       what lasts, cut at the end of the run
    thinned(table, most, what)       every n-th row, and the sentence that says so

Keys, times and values have an entry for each row, in the order of the trace. Keys are integers; of several columns
`groups` makes one. No function here has a Python step for each row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.views.layers import Table, select

FOREVER_US = 1 << 62


def groups(*keys: np.ndarray) -> np.ndarray:
    """For each row the number of its combination of keys, from 0 on in ascending order; int64, shape (rows,)."""
    group = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        values, code = np.unique(key, return_inverse=True)
        group = np.unique(group * max(len(values), 1) + code, return_inverse=True)[1]
    return group


def rank_in(keys: np.ndarray) -> np.ndarray:
    """How many rows of the same key came before each row; int64, shape (rows,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered, "left")
    return rank


def changed(keys: np.ndarray, *values: np.ndarray) -> np.ndarray:
    """Whether each row is the first of its key, or differs in one of the values from the one before; bool, (rows,)."""
    is_new = np.ones(len(keys), bool)
    order = np.argsort(keys, kind="stable")
    for first, second in [(order[:-1], order[1:])] if len(order) else []:
        same = keys[first] == keys[second]
        for value in values:
            same &= value[first] == value[second]
        is_new[second] = ~same
    return is_new


def until_next(keys: np.ndarray, times_us: np.ndarray, end_us: int) -> np.ndarray:
    """When the next row of the same key comes, ``end_us`` for the last one of a key; int64, shape (rows,)."""
    until = np.full(len(keys), end_us, np.int64)
    order = np.argsort(keys, kind="stable")
    is_followed = keys[order[1:]] == keys[order[:-1]]
    until[order[:-1][is_followed]] = times_us[order[1:][is_followed]]
    return until


def opened(
    keys: np.ndarray, times_us: np.ndarray, is_opening: np.ndarray, end_us: int = FOREVER_US, reopens: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Rows open what belongs to their key, or close it: (rows that open, ascending; when each is closed).

    What is never closed lasts until ``end_us``. A row that opens what is open closes it and opens it anew; with
    ``reopens=False`` it does nothing. A row that closes what is not open does nothing.
    """
    if reopens:
        return np.flatnonzero(is_opening), until_next(keys, times_us, end_us)[is_opening]
    kept = np.flatnonzero(changed(keys, is_opening))
    opening = is_opening[kept]
    return kept[opening], until_next(keys[kept], times_us[kept], end_us)[opening]


class Overlaps(NamedTuple):
    """What rows and other intervals of the same key have in common: which row, which other one, from when to when."""

    row: np.ndarray
    other: np.ndarray
    from_us: np.ndarray
    until_us: np.ndarray


def overlaps(
    keys: np.ndarray,
    from_us: np.ndarray,
    until_us: np.ndarray,
    other_keys: np.ndarray,
    other_from_us: np.ndarray,
    other_until_us: np.ndarray,
) -> Overlaps:
    """Every overlap of a row with an interval of its key, by row and then by time.

    Intervals of one key may not overlap each other; rows may.
    """
    order = np.lexsort((other_from_us, other_keys))
    key = np.unique(np.concatenate([other_keys, keys]), return_inverse=True)[1]
    key, mine = key[: len(other_keys)][order], key[len(other_keys) :]
    times = np.unique(np.concatenate([from_us, until_us, other_from_us, other_until_us]))
    scale = len(times) + 1

    def place(keys: np.ndarray, times_us: np.ndarray) -> np.ndarray:
        return keys * scale + np.searchsorted(times, times_us)

    # Those that end after a row begins, up to those that begin before it ends.
    first = np.searchsorted(place(key, other_until_us[order]), place(mine, from_us), "right")
    last = np.searchsorted(place(key, other_from_us[order]), place(mine, until_us), "left")
    count = np.maximum(last - first, 0)
    row = np.repeat(np.arange(len(keys)), count)
    other = order[np.arange(len(row)) - np.repeat(np.cumsum(count) - count - first, count)]
    start, end = np.maximum(from_us[row], other_from_us[other]), np.minimum(until_us[row], other_until_us[other])
    return Overlaps(row, other, start, end)


def without(table: Table, outages: Table) -> Table:
    """The rows of a table, cut out where their node was down, in order of ``from_us``; outages: node, from, until.

    An outage within a row makes two of it.
    """
    order = np.lexsort((outages["from_us"], outages["node"]))
    node = outages["node"][order]
    # A node is up before its first outage, between outages, and after the last one.
    nodes = np.unique(np.concatenate([node, table["node"]]))
    up = np.concatenate([nodes, node])
    up_from = np.concatenate([np.full(len(nodes), -FOREVER_US), outages["until_us"][order]])
    ups = np.lexsort((up_from, up))
    up, up_from = up[ups], up_from[ups]
    down = np.append(node, nodes)
    down_from = np.concatenate([outages["from_us"][order], np.full(len(nodes), FOREVER_US)])
    downs = np.lexsort((down_from, down))
    found = overlaps(table["node"], table["from_us"], table["until_us"], up, up_from, down_from[downs])
    lasting = found.from_us < found.until_us
    made = select(table, found.row[lasting]) | {
        "from_us": found.from_us[lasting],
        "until_us": found.until_us[lasting],
    }
    return select(made, np.argsort(made["from_us"], kind="stable"))


def within(table: Table, duration_us: int) -> Table:
    """The rows of a table that last, cut at the end of the run."""
    until = np.minimum(table["until_us"], duration_us)
    kept = table["from_us"] < until
    return select({**table, "until_us": until}, kept)


def thinned(table: Table, most: int, what: str) -> tuple[Table, tuple[str, ...]]:
    """At most ``most`` rows, every n-th of them, and the sentence that says so."""
    rows = len(table["from_us"])
    if rows <= most:
        return table, ()
    step = -(-rows // most)
    note = f"Of {rows:,} {what} one in {step} is drawn; all of them are counted."
    return select(table, np.arange(0, rows, step)), (note,)

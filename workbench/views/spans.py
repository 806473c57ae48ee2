"""Intervals out of rows of a trace, with arrays: what layers are computed with.

    changed(keys, *values)           the rows that differ from the row of their key before them
    until_next(keys, times, end)     each row lasts until the next row of its key
    opened(keys, times, is_opening)  rows open and close what belongs to their key
    overlaps(...)                    intervals of a key, cut where other intervals of that key begin and end
    without(table, outages)          intervals of a node, cut out where the node was down
    within(table, duration_us)       what lasts, cut at the end of the run
    thinned(table, most, what)       every n-th row, and the sentence that says so
    sampled(is_vital, most)          every n-th row, but more of the vital ones
    running(table, times)            the number of rows that are alive at some times
    joined(table, *names)            intervals that are alike and meet or overlap, as one

Keys, times and values have an entry for each row, in the order of the trace. Keys are integers; of several columns
`row_keys` makes one. No function here has a Python step for each row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.columns import argsort, find_sorted, lexsort, mark_first, ranges, row_keys, unique_inverse
from workbench.views.layers import Table, select

FOREVER_US = 1 << 62


def changed(keys: np.ndarray, *values: np.ndarray) -> np.ndarray:
    """Whether each row is the first of its key, or differs in one of the values from the one before; bool, (rows,)."""
    is_new = np.empty(len(keys), bool)
    order = argsort(keys)
    is_new[order] = mark_first(keys[order], *(value[order] for value in values))
    return is_new


def until_next(keys: np.ndarray, times_us: np.ndarray, end_us: int, order: np.ndarray | None = None) -> np.ndarray:
    """When the next row of the same key comes, ``end_us`` for the last one of a key; int64, shape (rows,).

    order: `argsort` of the keys, where that is known.
    """
    until = np.full(len(keys), end_us, np.int64)
    order = argsort(keys) if order is None else order
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

    Intervals of one key may not overlap each other; rows may. The product of the number of keys and the time from the
    first row to the last, in µs, has to be below 2^62.
    """
    order = lexsort((other_from_us, other_keys))
    keys_of, number = unique_inverse(other_keys[order])
    mine = find_sorted(keys, keys_of)
    rows = np.flatnonzero(mine >= 0)
    low, high = int(from_us[rows].min(initial=FOREVER_US)), int(until_us[rows].max(initial=-FOREVER_US))
    scale = max(high - low, 0) + 3

    def place(numbers: np.ndarray, times_us: np.ndarray) -> np.ndarray:
        return numbers * scale + (np.clip(times_us, low - 1, high + 1) - (low - 1))

    # Those that end after a row begins, up to those that begin before it ends.
    first = np.searchsorted(place(number, other_until_us[order]), place(mine[rows], from_us[rows]), "right")
    last = np.searchsorted(place(number, other_from_us[order]), place(mine[rows], until_us[rows]), "left")
    count = np.maximum(last - first, 0)
    row, other = np.repeat(rows, count), order[ranges(first, count)]
    start, end = np.maximum(from_us[row], other_from_us[other]), np.minimum(until_us[row], other_until_us[other])
    lasting = start < end
    return Overlaps(row[lasting], other[lasting], start[lasting], end[lasting])


def without(table: Table, outages: Table) -> Table:
    """The rows of a table, cut out where their node was down, in order of ``from_us``; outages: node, from, until.

    An outage within a row makes two of it.
    """
    order = lexsort((outages["from_us"], outages["node"]))
    node, down_us, up_us = (outages[name][order] for name in ("node", "from_us", "until_us"))
    # A node is up before its first outage, between its outages, and after the last one.
    is_down = np.isin(table["node"], node)
    is_first = mark_first(node)
    firsts = np.flatnonzero(is_first)
    until = np.full(len(node), FOREVER_US)
    until[:-1] = np.where(is_first[1:], FOREVER_US, down_us[1:])
    keys = np.concatenate([node[firsts], node])
    begins = np.concatenate([np.full(len(firsts), -FOREVER_US), up_us])
    ends = np.concatenate([down_us[firsts], until])
    some = np.flatnonzero(is_down)
    rows = select(table, some)
    found = overlaps(rows["node"], rows["from_us"], rows["until_us"], keys, begins, ends)
    cut = select(table, some[found.row]) | {"from_us": found.from_us, "until_us": found.until_us}
    both = {name: np.concatenate([table[name][~is_down], cut[name]]) for name in table}
    return select(both, argsort(both["from_us"]))


def within(table: Table, duration_us: int) -> Table:
    """The rows of a table that last, cut at the end of the run."""
    until = np.minimum(table["until_us"], duration_us)
    kept = table["from_us"] < until
    return select({**table, "until_us": until}, kept)


def sampled(is_vital: np.ndarray, most: int) -> np.ndarray:
    """At most ``most`` rows, ascending: every n-th, but of those that are vital as many as there is room for."""
    if len(is_vital) <= most:
        return np.arange(len(is_vital))
    room = most
    kept = []
    for some, share in ((np.flatnonzero(is_vital), most - most // 6), (np.flatnonzero(~is_vital), most)):
        kept.append(some[:: max(1, -(-len(some) // max(min(share, room), 1)))])
        room -= len(kept[-1])
    return np.sort(np.concatenate(kept))


def thinned(table: Table, most: int, what: str) -> tuple[Table, tuple[str, ...]]:
    """At most ``most`` rows, every n-th of them, and the sentence that says so."""
    rows = len(table["from_us"])
    if rows <= most:
        return table, ()
    step = -(-rows // most)
    note = f"Of {rows:,} {what} one in {step} is drawn; all of them are counted."
    return select(table, np.arange(0, rows, step)), (note,)


def running(some: Table, times_us: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
    """Return the number of rows that are alive at each of some ascending times, or the sum of their values."""
    change = np.zeros(len(times_us) + 1, np.int64)
    for name, sign in (("from_us", 1), ("until_us", -1)):
        change += sign * np.bincount(np.searchsorted(times_us, some[name]), values, len(change)).astype(np.int64)
    return np.cumsum(change[:-1])


def joined(some: Table, *names: str) -> Table:
    """Return intervals that meet or overlap and are alike in the named columns as one, by these and by time.

    The other columns are those of the first of them.
    """
    key = unique_inverse(row_keys(*(some[name] for name in names)))[1]
    order = lexsort((some["from_us"], key))
    some, key = select(some, order), key[order]
    scale = int(some["until_us"].max(initial=0)) + 1
    reach = np.maximum.accumulate(key * scale + some["until_us"])
    is_first = mark_first(key)
    is_first[1:] = (key * scale + some["from_us"])[1:] > reach[:-1]
    last = np.flatnonzero(np.append(is_first[1:], True))[: len(key)]
    return select(some, is_first) | {"until_us": (reach - key * scale)[last]}

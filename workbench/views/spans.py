"""Intervals out of rows of a trace, with arrays: what layers are computed with.

    until_next(keys, times_us, end_us)      each row lasts until the next row of its key
    groups(*keys)                           one number for each combination of keys
    rank_in(keys)                           how many rows of its key came before a row
    thinned(table, most, what)              every n-th row, and the sentence that says so

Keys and times have a row for each thing that happened, in the order of the trace.
"""

from __future__ import annotations

import numpy as np

from workbench.views.layers import Table, select

FOREVER_US = 1 << 62


def groups(*keys: np.ndarray) -> np.ndarray:
    """For each row the number of its combination of keys, from 0 on; int64, shape (rows,)."""
    group = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        values, code = np.unique(key, return_inverse=True)
        group = group * max(len(values), 1) + code
        if len(keys) > 1:
            group = np.unique(group, return_inverse=True)[1]
    return group


def until_next(keys: np.ndarray, times_us: np.ndarray, end_us: int) -> np.ndarray:
    """When the next row of the same key comes, ``end_us`` for the last one of a key; int64, shape (rows,)."""
    until = np.full(len(keys), end_us, np.int64)
    order = np.argsort(keys, kind="stable")
    is_followed = keys[order[1:]] == keys[order[:-1]]
    until[order[:-1][is_followed]] = times_us[order[1:][is_followed]]
    return until


def rank_in(keys: np.ndarray) -> np.ndarray:
    """How many rows of the same key came before each row; int64, shape (rows,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered, "left")
    return rank


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

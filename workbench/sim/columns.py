"""Columns of numbers, as rows of a trace have them: which rows are equal, and where one row stands among others.

A table here is a tuple of columns (n,) of integers, as long as each other. Each function sorts once or twice, so it
costs n log n, whatever the numbers are.
"""

from __future__ import annotations

import numpy as np

Table = tuple[np.ndarray, ...]
_LARGEST = 1 << 62  # of keys


def row_keys(*tables: Table) -> list[np.ndarray]:
    """A number for each row of each table: as many arrays (n,) as tables, which have equally many columns.

    Equal rows have equal numbers, whichever table they are of. Numbers have the order of the rows.
    """
    lengths = [len(table[0]) for table in tables]
    keys, size = np.zeros(sum(lengths), np.int64), 1
    for columns in zip(*tables, strict=True):
        column = np.concatenate(columns).astype(np.int64, copy=False)
        column, width = _from_zero(column)
        if size * width > _LARGEST:
            column, width = _ranked(column)
        if size * width > _LARGEST:
            keys, size = _ranked(keys)
        keys, size = keys * width + column, size * width
    return np.split(keys, np.cumsum(lengths)[:-1])


def _from_zero(column: np.ndarray) -> tuple[np.ndarray, int]:
    """The same differences from 0 on, and how many numbers there are up to the largest."""
    if not len(column):
        return column, 1
    lowest, highest = int(column.min()), int(column.max())
    return _ranked(column) if highest - lowest >= _LARGEST else (column - lowest, highest - lowest + 1)


def _ranked(column: np.ndarray) -> tuple[np.ndarray, int]:
    different, ranks = np.unique(column, return_inverse=True)
    return ranks.reshape(-1), max(1, len(different))


def distinct(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What ``np.unique(column, return_inverse=True)`` gives for integers (n,), without a sort where they are dense."""
    lowest, highest = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    if highest - lowest > 2 * len(column) + 1024:
        return np.unique(column, return_inverse=True)
    places = column.astype(np.int64) - lowest
    is_there = np.zeros(highest - lowest + 1, bool)
    is_there[places] = True
    values = np.flatnonzero(is_there) if len(column) else np.zeros(0, np.int64)
    return (values + lowest).astype(column.dtype), (np.cumsum(is_there) - 1)[places]


def different_rows(*columns: np.ndarray) -> int:
    """How many rows there are that differ."""
    (keys,) = row_keys(columns)
    keys = np.sort(keys)
    return int(np.count_nonzero(np.diff(keys))) + (len(keys) > 0)


def positions(rows: Table, among: Table) -> np.ndarray:
    """Where each row (n,) stands in another table: the index of its last equal there, -1 if it has none."""
    keys, others = row_keys(rows, among)
    if not len(others):
        return np.full(len(keys), -1)
    order = np.argsort(others, kind="stable")
    others = others[order]
    last = np.searchsorted(others, keys, side="right") - 1
    return np.where((last >= 0) & (others[last] == keys), order[last], -1)


def ranks(*columns: np.ndarray) -> np.ndarray:
    """How many rows before it are equal to each row (n,)."""
    (keys,) = row_keys(columns)
    order = np.argsort(keys, kind="stable")
    places = np.arange(len(keys))
    is_first = np.diff(keys[order], prepend=-1) != 0
    found = np.empty(len(keys), np.int64)
    found[order] = places - np.maximum.accumulate(np.where(is_first, places, 0))
    return found


def ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """``count`` (n,) numbers from ``first`` (n,) on, one range after the other."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + count, count)

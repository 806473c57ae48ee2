"""Operations on columns of numbers: group, count, match and expand rows, without a Python step for each row.

A column is an array (n,), one number for each row; a table is a tuple of columns of one length. `row_keys` makes one
integer of each row of a table, and the other functions take such keys.

    row_keys(*columns)           one key for each row; shared_keys(*tables): keys that are comparable among tables
    argsort(keys)                the stable order of rows by key; lexsort(keys): by several keys, the last one first
    unique_inverse(keys)         the distinct keys, and each row's index among them
    unique_index(keys)           the distinct keys, and the first row of each; first_rows(keys): these rows, ascending
    unique_all(keys)             the distinct keys, the first row of each, and each row's index among the keys
    count_distinct(*columns)     the number of distinct rows
    cumcount(keys)               the number of earlier rows with the same key
    split_rows(codes, count)     the rows of each code
    take_rows(table, rows)       the selected rows of a table
    find_last(rows, table)       the index of each row in another table
    find_sorted(values, known)   the index of each value in an ascending column
    mark_first(*columns)         the first row of each run of equal rows
    last_marked(is_marked)       the last marked row up to each row
    ranges(first, count)         several ranges of integers, concatenated

Cost
    Proportional to the rows if keys are dense in their range, n log n otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Table = tuple[np.ndarray, ...]
_SomeTable = TypeVar("_SomeTable", bound=Table)
_MOST_KEYS = 1 << 62
_DIGIT = 16  # bits; numpy sorts integers of this size without comparisons
_MOST_DIGITS = 3
_FEW = 512  # for fewer rows, numpy's own sort is faster than sorting digit by digit


def row_keys(*columns: np.ndarray) -> np.ndarray:
    """Return a key for each row, int64 (n,): equal rows have equal keys, and keys sort as the rows do."""
    keys, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        codes, width = _shift_to_zero(column)
        if size * width >= _MOST_KEYS:
            (keys, size), (codes, width) = _rank_values(keys), _rank_values(codes)
        keys, size = (keys * width + codes if size > 1 else codes), size * width
    return keys


def shared_keys(*tables: Table) -> list[np.ndarray]:
    """Return the keys (n,) of each table's rows; rows of different tables with equal keys are equal."""
    ends = np.cumsum([len(table[0]) for table in tables])
    return np.split(row_keys(*map(np.concatenate, zip(*tables, strict=True))), ends[:-1])


def _shift_to_zero(column: np.ndarray) -> tuple[np.ndarray, int]:
    """Map a column's numbers to 0, 1, ... in the same order; return them and an exclusive upper limit.

    Integers are reduced by the smallest; they are replaced by their ranks if their range is too wide for a key.
    """
    if column.dtype.kind not in "iu" or column.dtype == np.uint64:
        return _rank_values(column)
    low, span = _span(column)
    return _rank_values(column) if span >= _MOST_KEYS else (np.subtract(column, low, dtype=np.int64), max(span, 1))


def _rank_values(column: np.ndarray) -> tuple[np.ndarray, int]:
    values, inverse = unique_inverse(column)
    return inverse, max(len(values), 1)


def _span(column: np.ndarray) -> tuple[int, int]:
    """Return (lowest number, count of integers from the lowest to the highest number)."""
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, -1)
    return low, high - low + 1


def _is_dense(span: int, rows: int) -> bool:
    """Return whether a look-up array of ``span`` entries is faster than sorting this number of ``rows``."""
    return span <= 2 * rows + 1024


def argsort(keys: np.ndarray) -> np.ndarray:
    """Return ``np.argsort(keys, kind="stable")`` (n,); many integers are sorted faster, 16 bits at a time."""
    if len(keys) < _FEW or keys.dtype.kind not in "iu" or keys.dtype == np.uint64:
        return np.argsort(keys, kind="stable")
    low, span = _span(keys)
    if span > 1 << (_DIGIT * _MOST_DIGITS):
        return np.argsort(keys, kind="stable")
    offsets = np.subtract(keys, low, dtype=np.int64)
    order = np.argsort(offsets.astype(np.uint16), kind="stable")  # the lowest digit: others are cut off
    for shift in range(_DIGIT, (span - 1).bit_length(), _DIGIT):
        digit = (offsets >> shift).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def lexsort(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Return ``np.lexsort(keys)`` (n,): the order of rows by the last key, then by earlier keys."""
    order = argsort(keys[0])
    for key in keys[1:]:
        order = order[argsort(key[order])]
    return order


def unique_inverse(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys (k,), ascending, and for each row the index of its key among them (n,)."""
    if keys.dtype.kind not in "iu" or keys.dtype == np.uint64:
        values, inverse = np.unique(keys, return_inverse=True)
        return values, inverse.reshape(-1)
    low, span = _span(keys)
    if _is_dense(span, len(keys)):
        entries = np.subtract(keys, low, dtype=np.int64)
        is_used = np.zeros(span, bool)
        is_used[entries] = True
        return (np.flatnonzero(is_used) + low).astype(keys.dtype), (np.cumsum(is_used) - 1)[entries]
    order = argsort(keys)
    ordered = keys[order]
    is_first = mark_first(ordered)
    inverse = np.empty(len(keys), np.int64)
    inverse[order] = np.cumsum(is_first) - 1
    return ordered[is_first], inverse


def unique_index(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys (k,), ascending, and the first row of each (k,)."""
    if keys.dtype.kind not in "iu" or keys.dtype == np.uint64:
        return np.unique(keys, return_index=True)
    low, span = _span(keys)
    if _is_dense(span, len(keys)):
        first_row = np.full(span, -1)
        first_row[np.subtract(keys[::-1], low, dtype=np.int64)] = np.arange(len(keys))[
            ::-1
        ]  # the last one written stays
        used_offsets = np.flatnonzero(first_row >= 0)
        return (used_offsets + low).astype(keys.dtype), first_row[used_offsets]
    order = argsort(keys)
    ordered = keys[order]
    is_first = mark_first(ordered)
    return ordered[is_first], order[is_first]


def unique_all(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct keys (k,), ascending, the first row of each (k,), and the index of each row's key (n,)."""
    values, inverse = unique_inverse(keys)
    return values, unique_index(inverse)[1], inverse


def first_rows(keys: np.ndarray) -> np.ndarray:
    """Return the index of the first row of each distinct key (k,), ascending."""
    return np.sort(unique_index(keys)[1])


def count_distinct(*columns: np.ndarray) -> int:
    """Return the number of distinct rows."""
    return int(np.count_nonzero(mark_first(np.sort(row_keys(*columns)))))


def cumcount(keys: np.ndarray) -> np.ndarray:
    """Return for each row the number of earlier rows with the same key (n,), as pandas' ``cumcount`` does."""
    order = argsort(keys)
    count = np.empty(len(keys), np.int64)
    count[order] = np.arange(len(keys)) - last_marked(mark_first(keys[order]))
    return count


def split_rows(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """Return for each code 0, ..., ``count`` - 1 the rows that have this code, ascending: a list of arrays."""
    return np.split(argsort(codes), np.cumsum(np.bincount(codes, minlength=count)))[:count]


def take_rows(table: _SomeTable, rows: np.ndarray) -> _SomeTable:
    """Return the selected rows of a named tuple of columns; ``rows`` are their indices, or a mask (n,)."""
    return type(table)(*(column[rows] for column in table))


def find_last(rows: Table, table: Table) -> np.ndarray:
    """Return for each row (n,) the index of the last equal row in ``table``, or -1."""
    wanted_keys, table_keys = shared_keys(rows, table)
    low, span = _span(table_keys)
    if _is_dense(span, len(wanted_keys) + len(table_keys)):
        index = np.full(span + 1, -1)  # the last entry is for keys out of the range
        index[table_keys - low] = np.arange(len(table_keys))
        return index[np.where((wanted_keys >= low) & (wanted_keys < low + span), wanted_keys - low, span)]
    order = argsort(table_keys)
    table_keys = table_keys[order]
    last = np.searchsorted(table_keys, wanted_keys, side="right") - 1
    return np.where((last >= 0) & (table_keys[last] == wanted_keys), order[last], -1)


def find_sorted(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return for each value (n,) its first index in the ascending column ``known``, or -1."""
    if not len(known):
        return np.full(len(values), -1)
    index = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[index] == values, index, -1)


def mark_first(*columns: np.ndarray) -> np.ndarray:
    """Mark the first row of each run of equal rows; bool (n,). In a sorted table it is the first row of each key."""
    is_first = np.zeros(len(columns[0]), bool)
    is_first[:1] = True
    for column in columns:
        is_first[1:] |= column[1:] != column[:-1]
    return is_first


def last_marked(is_marked: np.ndarray) -> np.ndarray:
    """Return for each row (n,) the index of the last marked row up to this row, itself included, or -1."""
    return np.maximum.accumulate(np.where(is_marked, np.arange(len(is_marked)), -1))


def ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return ``count[i]`` consecutive integers from ``first[i]`` on, for all i in order, concatenated."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + count, count)

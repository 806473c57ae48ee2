"""Operations on columns of numbers: group, count, match and expand rows, without a Python loop over the rows.

A column is an array (n,), one number for each row; a table is a tuple of columns of one length. `row_keys` converts
each row of a table to one integer, the *key* of the row. Most of the other functions take such keys.

    row_keys(*columns)           a key for each row
    shared_keys(*tables)         keys for the rows of several tables; equal rows have equal keys
    argsort(keys)                the stable order of rows by key
    lexsort(keys)                the order of rows by several keys; the last key counts most, as in np.lexsort
    unique_inverse(keys)         the distinct keys, and the index of each row's key among them
    unique_index(keys)           the distinct keys, and the first row of each
    first_rows(keys)             the first row of each distinct key, ascending
    unique_all(keys)             the results of unique_index and unique_inverse together
    count_distinct(*columns)     the number of distinct rows
    cumcount(keys)               the number of earlier rows with the same key
    split_rows(codes, count)     the rows of each code, a whole number below ``count``
    take_rows(table, rows)       the selected rows of a table
    find_last(rows, table)       for each row, the index of the last equal row in another table
    find_sorted(values, known)   the index of each value in an ascending column
    mark_first(*columns)         a mask of the rows that differ from the row before
    last_marked(is_marked)       for each row, the nearest marked row at or before it
    ranges(first, count)         several ranges of integers, concatenated

Cost
    The time is proportional to the number of rows n if the range of the keys is not much larger than n, else to
    n log n.
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
    """Return an integer key for each row of the table with these ``columns``, int64 (n,).

    Equal rows have equal keys. Keys are ordered like the rows, which are compared column by column from the first.
    """
    merged_keys, key_range = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        codes, code_range = _shift_to_zero(column)
        if key_range * code_range >= _MOST_KEYS:
            (merged_keys, key_range), (codes, code_range) = _rank_values(merged_keys), _rank_values(codes)
        merged_keys, key_range = (merged_keys * code_range + codes if key_range > 1 else codes), key_range * code_range
    return merged_keys


def shared_keys(*tables: Table) -> list[np.ndarray]:
    """Return for each table an integer key for each of its rows (n,); equal rows of any tables have equal keys."""
    ends = np.cumsum([len(table[0]) for table in tables])
    return np.split(row_keys(*map(np.concatenate, zip(*tables, strict=True))), ends[:-1])


def _shift_to_zero(column: np.ndarray) -> tuple[np.ndarray, int]:
    """Map a column to integers that are at least 0 and have the same order; return (integers, exclusive upper limit).

    In a column of integers, the smallest is subtracted from all. Other numbers, and integers whose range is too wide
    for a key, are replaced by their ranks among the distinct numbers.
    """
    if column.dtype.kind not in "iu" or column.dtype == np.uint64:
        return _rank_values(column)
    lowest_number, span = _find_span(column)
    return (
        _rank_values(column)
        if span >= _MOST_KEYS
        else (np.subtract(column, lowest_number, dtype=np.int64), max(span, 1))
    )


def _rank_values(column: np.ndarray) -> tuple[np.ndarray, int]:
    values, inverse = unique_inverse(column)
    return inverse, max(len(values), 1)


def _find_span(column: np.ndarray) -> tuple[int, int]:
    """Return the lowest of the integers in ``column``, and highest - lowest + 1; (0, 0) for an empty column."""
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, -1)
    return low, high - low + 1


def _is_dense(span: int, rows: int) -> bool:
    """Return whether a look-up array of ``span`` entries is faster than sorting ``rows`` keys."""
    return span <= 2 * rows + 1024


def argsort(keys: np.ndarray) -> np.ndarray:
    """Return ``np.argsort(keys, kind="stable")`` (n,). Integers of a long array are sorted 16 bits at a time."""
    if len(keys) < _FEW or keys.dtype.kind not in "iu" or keys.dtype == np.uint64:
        return np.argsort(keys, kind="stable")
    lowest_key, span = _find_span(keys)
    if span > 1 << (_DIGIT * _MOST_DIGITS):
        return np.argsort(keys, kind="stable")
    offsets = np.subtract(keys, lowest_key, dtype=np.int64)
    row_order = np.argsort(offsets.astype(np.uint16), kind="stable")  # the lowest digit: others are cut off
    for shift in range(_DIGIT, (span - 1).bit_length(), _DIGIT):
        digit = (offsets >> shift).astype(np.uint16)
        row_order = row_order[np.argsort(digit[row_order], kind="stable")]
    return row_order


def lexsort(keys: Sequence[np.ndarray]) -> np.ndarray:
    """Return ``np.lexsort(keys)`` (n,): the indices that sort the rows by the last key, then by the keys before it."""
    row_order = argsort(keys[0])
    for key in keys[1:]:
        row_order = row_order[argsort(key[row_order])]
    return row_order


def unique_inverse(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys (k,), ascending, and for each row the index of its key among them (n,)."""
    if keys.dtype.kind not in "iu" or keys.dtype == np.uint64:
        distinct_keys, inverse = np.unique(keys, return_inverse=True)
        return distinct_keys, inverse.reshape(-1)
    lowest_key, span = _find_span(keys)
    if _is_dense(span, len(keys)):
        offsets = np.subtract(keys, lowest_key, dtype=np.int64)
        is_used = np.zeros(span, bool)
        is_used[offsets] = True
        return (np.flatnonzero(is_used) + lowest_key).astype(keys.dtype), (np.cumsum(is_used) - 1)[offsets]
    row_order = argsort(keys)
    sorted_keys = keys[row_order]
    is_first = mark_first(sorted_keys)
    inverse = np.empty(len(keys), np.int64)
    inverse[row_order] = np.cumsum(is_first) - 1
    return sorted_keys[is_first], inverse


def unique_index(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of ``keys`` (k,), ascending, and the index of each value's first row (k,)."""
    if keys.dtype.kind not in "iu" or keys.dtype == np.uint64:
        return np.unique(keys, return_index=True)
    lowest_key, span = _find_span(keys)
    if _is_dense(span, len(keys)):
        first_row = np.full(span, -1)
        first_row[np.subtract(keys[::-1], lowest_key, dtype=np.int64)] = np.arange(len(keys))[
            ::-1
        ]  # the last one written stays
        used_offsets = np.flatnonzero(first_row >= 0)
        return (used_offsets + lowest_key).astype(keys.dtype), first_row[used_offsets]
    row_order = argsort(keys)
    sorted_keys = keys[row_order]
    is_first = mark_first(sorted_keys)
    return sorted_keys[is_first], row_order[is_first]


def unique_all(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (distinct ``keys`` (k,), ascending; index of the first row of each (k,); index of each row's key (n,))."""
    distinct_keys, key_index = unique_inverse(keys)
    return distinct_keys, unique_index(key_index)[1], key_index


def first_rows(keys: np.ndarray) -> np.ndarray:
    """Return the index of the first row of each distinct key (k,), ascending."""
    return np.sort(unique_index(keys)[1])


def count_distinct(*columns: np.ndarray) -> int:
    """Return the number of distinct rows of a table with these ``columns``."""
    return int(np.count_nonzero(mark_first(np.sort(row_keys(*columns)))))


def cumcount(keys: np.ndarray) -> np.ndarray:
    """Return for each row the number of earlier rows with the same key (n,), as pandas' ``cumcount`` does."""
    row_order = argsort(keys)
    earlier_rows = np.empty(len(keys), np.int64)
    earlier_rows[row_order] = np.arange(len(keys)) - last_marked(mark_first(keys[row_order]))
    return earlier_rows


def split_rows(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """Return for each code 0, ..., ``count`` - 1 an array of the indices of its rows, ascending.

    ``codes`` (n,) has the code of each row.
    """
    return np.split(argsort(codes), np.cumsum(np.bincount(codes, minlength=count)))[:count]


def take_rows(table: _SomeTable, rows: np.ndarray) -> _SomeTable:
    """Return the table that has only the selected rows; a table is a named tuple of columns.

    ``rows`` has the indices of the rows, or is a mask, bool (n,).
    """
    return type(table)(*(column[rows] for column in table))


def find_last(rows: Table, table: Table) -> np.ndarray:
    """Return for each row (n,) the index of the last equal row in ``table``, or -1 if ``table`` has no equal row."""
    wanted_keys, table_keys = shared_keys(rows, table)
    lowest_key, span = _find_span(table_keys)
    if _is_dense(span, len(wanted_keys) + len(table_keys)):
        last_index_of_key = np.full(span + 1, -1)  # the last entry is for keys out of the range
        last_index_of_key[table_keys - lowest_key] = np.arange(len(table_keys))
        return last_index_of_key[
            np.where((wanted_keys >= lowest_key) & (wanted_keys < lowest_key + span), wanted_keys - lowest_key, span)
        ]
    row_order = argsort(table_keys)
    table_keys = table_keys[row_order]
    last_position = np.searchsorted(table_keys, wanted_keys, side="right") - 1
    return np.where((last_position >= 0) & (table_keys[last_position] == wanted_keys), row_order[last_position], -1)


def find_sorted(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return for each of ``values`` (n,) its first index in the ascending array ``known``, or -1 if it is not there."""
    if not len(known):
        return np.full(len(values), -1)
    index = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[index] == values, index, -1)


def mark_first(*columns: np.ndarray) -> np.ndarray:
    """Mark the first row, and each row that differs from the row before it; return a mask, bool (n,).

    In a sorted table, the marked rows are the distinct rows.
    """
    is_first = np.zeros(len(columns[0]), bool)
    is_first[:1] = True
    for column in columns:
        is_first[1:] |= column[1:] != column[:-1]
    return is_first


def last_marked(is_marked: np.ndarray) -> np.ndarray:
    """Return for each row (n,) the index of the last marked row up to and including this row, or -1 without one."""
    return np.maximum.accumulate(np.where(is_marked, np.arange(len(is_marked)), -1))


def ranges(first: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the integers ``first[i]``, ..., ``first[i] + count[i] - 1`` for each i in order, as one array."""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(first - ends + count, count)

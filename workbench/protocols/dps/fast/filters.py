"""DPS's filters in numba: sums of interests, differences, fuzzy hashes, encoded sizes. The definition is `dps.bloom`.

Theory of operation
    Few filters in a run are different, and most are sent many times. So each different filter is stored once, as a row
    of ``filters`` in 64-bit words. Links and messages contain the number of its row, so equal filters have equal
    numbers, and the number of set bits and the encoded size are computed once. *Needs*, the fuzzy hashes of interests,
    are stored in the same way. Rows are looked up by their hash in a table with open addressing. A new filter is
    computed in the first free row; if an equal row exists, the number of that row is used instead.

Cost
    For a sum, the words of each entry are read once, and its own words once more for the hash. Rows are never freed: a
    run takes the memory of all different filters.
"""

from __future__ import annotations

from enum import auto

import numpy as np

from workbench.protocols.dps.bloom import DENSE_PERCENT, FUZZY_HASH_BITS, SPARSE_PERCENT, WORD, BitVector
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

NEEDS_WORDS = FUZZY_HASH_BITS // WORD
EMPTY = 0  # row of the filter without set bits, and of the needs without set bits


class Number(twin.Codes):
    """Indices in the array ``numbers``, which counts the stored filters, needs and publications."""

    FILTERS = auto()
    NEEDS = auto()
    PUBLISHED = auto()


_START = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NO_BITS, _ONE_BIT = np.uint64(0), np.uint64(1)


# Rows and their numbers


def hashes_of(rows: np.ndarray) -> np.ndarray:
    """Return the hash of each row of an array (n, words), as `_hash_row` computes it."""
    hashes = np.full(len(rows), _START)
    with np.errstate(over="ignore"):
        for column in rows.T:
            hashes = (hashes ^ column) * _FACTOR
            hashes ^= hashes >> _SHIFT
    return hashes


def table_of(hashes: np.ndarray, room: int) -> np.ndarray:
    """Return a hash table: in each slot a row's number, or NONE. It has more than ``2 * room`` slots."""
    size = 1 << (2 * room).bit_length()
    table = np.full(size, NONE, np.int32)
    for row, position in enumerate((hashes & np.uint64(size - 1)).tolist()):
        while table[position] != NONE:
            position = (position + 1) & (size - 1)
        table[position] = row
    return table


@compiled
def _hash_row(rows, row):
    value = _START
    for k in range(rows.shape[1]):
        value = (value ^ rows[row, k]) * _FACTOR
        value ^= value >> _SHIFT
    return value


@compiled
def _are_equal(rows, first, second):
    is_equal = True
    for k in range(rows.shape[1]):
        is_equal = is_equal and rows[first, k] == rows[second, k]
    return is_equal


@compiled
def _find_or_add(rows, hashes, table, row):
    """Return the number of the row that equals row ``row``; if no such row exists, add ``row`` to the table."""
    hash_value = _hash_row(rows, row)
    last = len(table) - 1
    position = np.int64(hash_value & np.uint64(last))
    while table[position] != NONE:
        candidate = np.int64(table[position])
        if hashes[candidate] == hash_value and _are_equal(rows, candidate, row):
            return candidate
        position = (position + 1) & last
    table[position] = row
    hashes[row] = hash_value
    return np.int64(row)


@compiled
def intern_filter(state):
    """Keep the filter computed in the first free row, unless an equal filter exists; return the row of the filter."""
    row = state.numbers[Number.FILTERS]
    number = _find_or_add(state.filters, state.filter_hashes, state.filter_table, row)
    if number == row:
        state.numbers[Number.FILTERS] = row + 1
        state.filter_ones[row] = ones_of(state.filters, row)
        state.filter_B[row] = _encoded_B(state, row)
    return number


@compiled
def intern_needs(state):
    """Keep the needs computed in the first free row, unless equal needs exist; return the row of the needs."""
    row = state.numbers[Number.NEEDS]
    number = _find_or_add(state.needs, state.needs_hashes, state.needs_table, row)
    if number == row:
        state.numbers[Number.NEEDS] = row + 1
        state.needs_ones[row] = ones_of(state.needs, row)
    return number


@compiled
def ones_of(rows, row):
    """Return the number of set bits in a row."""
    count = np.int64(0)
    for k in range(rows.shape[1]):
        count += twin.count_ones(rows[row, k])
    return count


# Sums


@compiled
def clear_sum(state):
    """Start an empty sum in the first free rows of filters and needs."""
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] = _NO_BITS
    row = state.numbers[Number.NEEDS]
    for k in range(NEEDS_WORDS):
        state.needs[row, k] = _ALL


@compiled
def add_to_sum(state, interests, needs):
    """Add an entry to the sum in the first free rows: unite the filters, intersect the needs."""
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] |= state.filters[interests, k]
    row = state.numbers[Number.NEEDS]
    for k in range(NEEDS_WORDS):
        state.needs[row, k] &= state.needs[needs, k]


@compiled
def end_sum(state, entries):
    """Finish the sum after its ``entries`` were added; without entries, clear its needs."""
    if entries == 0:
        row = state.numbers[Number.NEEDS]
        for k in range(NEEDS_WORDS):
            state.needs[row, k] = _NO_BITS


@compiled
def change_between(state, first, second):
    """Return the row of the filter with the bits in which two filters differ."""
    if first == second:
        return EMPTY
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] = state.filters[first, k] ^ state.filters[second, k]
    return intern_filter(state)


# On the wire


@compiled
def _head_B(argument):
    """Return the number of bytes of a CBOR item's head with this argument."""
    return 1 + more_B(argument)


@compiled
def more_B(argument):
    """Return the number of bytes that CBOR uses for an unsigned integer, beyond the first byte."""
    if argument < 24:
        return 0
    if argument < 0x100:
        return 1
    return 2 if argument < 0x10000 else 4


@compiled
def _runs_bits(state, row, complement):
    """Return the number of bits of a filter's run-length code; ``complement``: mask that inverts words, or 0."""
    bits = np.int64(0)
    run_start = np.int64(0)
    for k in range(state.filters.shape[1]):
        word = state.filters[row, k] ^ complement
        while word:
            position = np.int64(k) * WORD + twin.trailing_zeros(word)
            word &= word - _ONE_BIT
            zeros = position - run_start + 1
            run_start = position + 1
            bits += 1
            while zeros > 1:
                zeros >>= 1
                bits += 2
    return bits


@compiled
def _encoded_B(state, row):
    """Return the number of bytes of a filter as `BitVector.encode` encodes it."""
    length = state.filters.shape[1] * WORD
    fill_percent = 100 * state.filter_ones[row] + 1  # times ``length``
    bits = np.int64(length + 1)
    if fill_percent < SPARSE_PERCENT * length:
        bits = _runs_bits(state, row, _NO_BITS)
    elif fill_percent > DENSE_PERCENT * length:
        bits = _runs_bits(state, row, _ALL)
    data_B = length // 8 if bits > length else (bits + 7) // 8
    return 2 + _head_B(length) + _head_B(data_B) + data_B


def longest_B(length: int) -> int:
    """Return the most bytes that an encoded filter of ``length`` bits takes, which is without compression."""
    return len(BitVector(length, int.from_bytes(b"\x55" * (length // 8), "little")).encode())


# Routes


@compiled
def _or_rotated(word, distance):
    return word | (word << np.uint64(distance)) | (word >> np.uint64(WORD - distance))


@compiled
def _lacks_need(state, needs, k, word):
    """Return whether ``word`` lacks a bit of word ``k`` of the needs."""
    return (state.needs[needs, k] & ~word) != _NO_BITS


@compiled
def routes(state, topics, interests, needs):
    """Return whether a publication on ``topics`` (a published set) may match interests, as `bloom.routes`."""
    folded = _NO_BITS
    count = np.int64(0)
    for position in range(state.topic_first[topics], state.topic_first[topics + 1]):
        common = state.topic_words[position] & state.filters[interests, state.topic_positions[position]]
        folded |= common
        count += twin.count_ones(common)
    if count == 0:
        return False
    unary = _ALL if count >= WORD - 1 else (_ONE_BIT << np.uint64(count)) - _ONE_BIT
    if _lacks_need(state, needs, 3, unary) or _lacks_need(state, needs, 0, _or_rotated(_or_rotated(folded, 7), 31)):
        return False
    if _lacks_need(state, needs, 1, _or_rotated(_or_rotated(_or_rotated(folded, 11), 29), 37)):
        return False
    return not _lacks_need(state, needs, 2, _or_rotated(_or_rotated(_or_rotated(_or_rotated(folded, 13), 17), 19), 41))

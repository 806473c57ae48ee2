"""DPS's filters in numba: sums of interests, differences, fuzzy hashes, encoded sizes. The definition is `dps.bloom`.

Theory of operation
    Few filters in a run are different, and most are sent many times. So each different filter is stored once, as a row
    of ``filters`` in 64-bit words. Links and messages contain the number of its row, so equal filters have equal
    numbers, and the number of set bits and the encoded size are computed once. The same holds for *needs*, the fuzzy
    hashes of interests. Rows are looked up by their hash in a table with open addressing. A new filter is computed in
    the first free row; if an equal row exists, its number is used instead.

Cost
    A sum takes a pass over the words of each entry, and one over its own words for the hash. Rows are never freed: a
    run takes the memory of all different filters.
"""

from __future__ import annotations

from enum import auto

import numpy as np

from workbench.protocols.dps.bloom import DENSE_PERCENT, FUZZY_HASH_BITS, SPARSE_PERCENT, WORD, BitVector
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

NEEDS_WORDS = FUZZY_HASH_BITS // WORD
EMPTY = 0  # number of the filter without set bits, and of the needs without set bits


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
    """Return the hash of each row of an array (n, words), as `_hash` computes it."""
    hashes = np.full(len(rows), _START)
    with np.errstate(over="ignore"):
        for column in rows.T:
            hashes = (hashes ^ column) * _FACTOR
            hashes ^= hashes >> _SHIFT
    return hashes


def table_of(hashes: np.ndarray, room: int) -> np.ndarray:
    """Return a hash table of rows with these hashes, with more than twice ``room`` slots."""
    size = 1 << (2 * room).bit_length()
    table = np.full(size, NONE, np.int32)
    for row, home in enumerate((hashes & np.uint64(size - 1)).tolist()):
        while table[home] != NONE:
            home = (home + 1) & (size - 1)
        table[home] = row
    return table


@compiled
def _hash(rows, row):
    value = _START
    for k in range(rows.shape[1]):
        value = (value ^ rows[row, k]) * _FACTOR
        value ^= value >> _SHIFT
    return value


@compiled
def _is_same(rows, first, second):
    same = True
    for k in range(rows.shape[1]):
        same = same and rows[first, k] == rows[second, k]
    return same


@compiled
def _find(rows, hashes, table, row):
    """Return the number of an existing row equal to the free row ``row``, or add ``row`` to the table."""
    hash_value = _hash(rows, row)
    last = len(table) - 1
    position = np.int64(hash_value & np.uint64(last))
    while table[position] != NONE:
        candidate = np.int64(table[position])
        if hashes[candidate] == hash_value and _is_same(rows, candidate, row):
            return candidate
        position = (position + 1) & last
    table[position] = row
    hashes[row] = hash_value
    return np.int64(row)


@compiled
def intern_filter(state):
    """Store the filter in the first free row unless an equal one exists; return its number."""
    row = state.numbers[Number.FILTERS]
    number = _find(state.filters, state.filter_hashes, state.filter_table, row)
    if number == row:
        state.numbers[Number.FILTERS] = row + 1
        state.filter_ones[row] = ones_of(state.filters, row)
        state.filter_B[row] = _encoded_B(state, row)
    return number


@compiled
def intern_needs(state):
    """Store the needs in the first free row unless equal ones exist; return their number."""
    row = state.numbers[Number.NEEDS]
    number = _find(state.needs, state.needs_hashes, state.needs_table, row)
    if number == row:
        state.numbers[Number.NEEDS] = row + 1
        state.needs_ones[row] = ones_of(state.needs, row)
    return number


@compiled
def ones_of(rows, row):
    """Count the set bits of a row."""
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
    """Add an entry to the sum: unite the filters, intersect the needs."""
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] |= state.filters[interests, k]
    row = state.numbers[Number.NEEDS]
    for k in range(NEEDS_WORDS):
        state.needs[row, k] &= state.needs[needs, k]


@compiled
def end_sum(state, entries):
    """Finish the sum after all entries; a sum without entries has no needs."""
    if entries == 0:
        row = state.numbers[Number.NEEDS]
        for k in range(NEEDS_WORDS):
            state.needs[row, k] = _NO_BITS


@compiled
def change_between(state, first, second):
    """Return the number of the filter with the bits in which two filters differ."""
    if first == second:
        return EMPTY
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] = state.filters[first, k] ^ state.filters[second, k]
    return intern_filter(state)


# On the wire


@compiled
def _head_B(argument):
    return 1 + more_B(argument)


@compiled
def more_B(argument):
    """Return the number of bytes after the first that CBOR uses for an unsigned integer."""
    if argument < 24:
        return 0
    if argument < 0x100:
        return 1
    return 2 if argument < 0x10000 else 4


@compiled
def _runs_bits(state, row, complement):
    """Return the number of bits of a filter's run-length encoding, or of its complement's."""
    bits = np.int64(0)
    successor = np.int64(0)  # start of the run
    for k in range(state.filters.shape[1]):
        word = state.filters[row, k] ^ complement
        while word:
            position = np.int64(k) * WORD + twin.trailing_zeros(word)
            word &= word - _ONE_BIT
            zeros = position - successor + 1
            successor = position + 1
            bits += 1
            while zeros > 1:
                zeros >>= 1
                bits += 2
    return bits


@compiled
def _encoded_B(state, row):
    """Return the number of bytes of a filter encoded by `BitVector.encode`."""
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
    """Return the number of bytes of the longest encoded filter of ``length`` bits, one without compression."""
    return len(BitVector(length, int.from_bytes(b"\x55" * (length // 8), "little")).encode())


# Routes


@compiled
def _spread(word, distance):
    return word | (word << np.uint64(distance)) | (word >> np.uint64(WORD - distance))


@compiled
def _lacks(state, needs, k, word):
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
    if _lacks(state, needs, 3, unary) or _lacks(state, needs, 0, _spread(_spread(folded, 7), 31)):
        return False
    if _lacks(state, needs, 1, _spread(_spread(_spread(folded, 11), 29), 37)):
        return False
    return not _lacks(state, needs, 2, _spread(_spread(_spread(_spread(folded, 13), 17), 19), 41))

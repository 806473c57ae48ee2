"""DPS's filters in numba: sums of interests, changes, fuzzy hashes, sizes. The definition is `dps.bloom`.

Theory of operation
    Few of the filters in a run are different from each other, and most are told many times. So each is kept once, as a
    row of ``filters`` in words of 64 bits, and known everywhere by its number: links and messages hold numbers, equal
    filters have equal ones, and how many bits one has and how long it is on the wire is worked out once. The same goes
    for needs. The rows are found again by their hash, in a table of numbers with open addressing. A new filter is made
    in the first row that is free, and stays there if it is not known.

Cost
    A sum is a pass over the words of each entry, and one over its own words for the hash. Rows are never given back: a
    run takes the bytes of all filters that differ.
"""

from __future__ import annotations

from enum import auto

import numpy as np

from workbench.protocols.dps.bloom import DENSE_PERCENT, FUZZY_HASH_BITS, SPARSE_PERCENT, WORD, BitVector
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

NEEDS_WORDS = FUZZY_HASH_BITS // WORD
EMPTY = 0  # the number of the filter without bits, and of the needs without any


class Number(twin.Codes):
    """Places in ``numbers``: how many filters and needs there are; what has been published."""

    FILTERS = auto()
    NEEDS = auto()
    PUBLISHED = auto()


_START = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_NOTHING, _ONE = np.uint64(0), np.uint64(1)


# Rows and their numbers


def hashes_of(rows: np.ndarray) -> np.ndarray:
    """The hash of each row (n, words), as `_hash` has it."""
    hashes = np.full(len(rows), _START)
    with np.errstate(over="ignore"):
        for column in rows.T:
            hashes = (hashes ^ column) * _FACTOR
            hashes ^= hashes >> _SHIFT
    return hashes


def table_of(hashes: np.ndarray, room: int) -> np.ndarray:
    """A table in which rows with those hashes are found, with places for more than twice ``room`` rows."""
    size = 1 << (2 * room).bit_length()
    table = np.full(size, NONE, np.int32)
    for row, home in enumerate((hashes & np.uint64(size - 1)).tolist()):
        while table[home] != NONE:
            home = (home + 1) & (size - 1)
        table[home] = row
    return table


@compiled
def _hash(rows, row):
    found = _START
    for k in range(rows.shape[1]):
        found = (found ^ rows[row, k]) * _FACTOR
        found ^= found >> _SHIFT
    return found


@compiled
def _is_same(rows, one, other):
    same = True
    for k in range(rows.shape[1]):
        same = same and rows[one, k] == rows[other, k]
    return same


@compiled
def _find(rows, hashes, table, row):
    """The number of what is in ``row``, which is free: of the row that has been there before, or its own."""
    wanted = _hash(rows, row)
    last = len(table) - 1
    place = np.int64(wanted & np.uint64(last))
    while table[place] != NONE:
        known = np.int64(table[place])
        if hashes[known] == wanted and _is_same(rows, known, row):
            return known
        place = (place + 1) & last
    table[place] = row
    hashes[row] = wanted
    return np.int64(row)


@compiled
def keep_filter(state):
    """The number of the filter in the first free row."""
    row = state.numbers[Number.FILTERS]
    number = _find(state.filters, state.filter_hashes, state.filter_table, row)
    if number == row:
        state.numbers[Number.FILTERS] = row + 1
        state.filter_ones[row] = ones_of(state.filters, row)
        state.filter_B[row] = _encoded_B(state, row)
    return number


@compiled
def keep_needs(state):
    """The number of the needs in the first free row."""
    row = state.numbers[Number.NEEDS]
    number = _find(state.needs, state.needs_hashes, state.needs_table, row)
    if number == row:
        state.numbers[Number.NEEDS] = row + 1
        state.needs_ones[row] = ones_of(state.needs, row)
    return number


@compiled
def ones_of(rows, row):
    """How many bits of a row are set."""
    count = np.int64(0)
    for k in range(rows.shape[1]):
        count += twin.count_ones(rows[row, k])
    return count


# Sums


@compiled
def clear_sum(state):
    """Begin a sum of no entries, in the first free rows."""
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] = _NOTHING
    row = state.numbers[Number.NEEDS]
    for k in range(NEEDS_WORDS):
        state.needs[row, k] = _ALL


@compiled
def add_to_sum(state, interests, needs):
    """One entry more: filters are united, needs intersected."""
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] |= state.filters[interests, k]
    row = state.numbers[Number.NEEDS]
    for k in range(NEEDS_WORDS):
        state.needs[row, k] &= state.needs[needs, k]


@compiled
def end_sum(state, entries):
    """All entries are in it; where there are none nothing is needed."""
    if entries == 0:
        row = state.numbers[Number.NEEDS]
        for k in range(NEEDS_WORDS):
            state.needs[row, k] = _NOTHING


@compiled
def change_between(state, one, other):
    """The number of the filter of the bits in which two differ."""
    if one == other:
        return EMPTY
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] = state.filters[one, k] ^ state.filters[other, k]
    return keep_filter(state)


# On the wire


@compiled
def _head_B(argument):
    return 1 + more_B(argument)


@compiled
def more_B(argument):
    """Bytes that CBOR takes for an unsigned integer beyond the first."""
    if argument < 24:
        return 0
    if argument < 0x100:
        return 1
    return 2 if argument < 0x10000 else 4


@compiled
def _runs_bits(state, row, complement):
    """Bits of the run lengths of a filter, or of its complement."""
    bits = np.int64(0)
    behind = np.int64(0)  # where the run began
    for k in range(state.filters.shape[1]):
        word = state.filters[row, k] ^ complement
        while word:
            place = np.int64(k) * WORD + twin.trailing_zeros(word)
            word &= word - _ONE
            zeros = place - behind + 1
            behind = place + 1
            bits += 1
            while zeros > 1:
                zeros >>= 1
                bits += 2
    return bits


@compiled
def _encoded_B(state, row):
    """Bytes of `BitVector.encode`."""
    length = state.filters.shape[1] * WORD
    load = 100 * state.filter_ones[row] + 1
    bits = np.int64(length + 1)
    if load < SPARSE_PERCENT * length:
        bits = _runs_bits(state, row, _NOTHING)
    elif load > DENSE_PERCENT * length:
        bits = _runs_bits(state, row, _ALL)
    data_B = length // 8 if bits > length else (bits + 7) // 8
    return 2 + _head_B(length) + _head_B(data_B) + data_B


def longest_B(length: int) -> int:
    """Bytes of the longest filter of that length on the wire: one that is written as it is."""
    return len(BitVector(length, int.from_bytes(b"\x55" * (length // 8), "little")).encode())


# Routes


@compiled
def _smeared(word, by):
    return word | (word << np.uint64(by)) | (word >> np.uint64(WORD - by))


@compiled
def _lacks(state, needs, k, word):
    return (state.needs[needs, k] & ~word) != _NOTHING


@compiled
def routes(state, topics, interests, needs):
    """Whether a publication on ``topics`` (a row of ``topic_first``) may meet interests: `bloom.routes`."""
    folded = _NOTHING
    count = np.int64(0)
    for place in range(state.topic_first[topics], state.topic_first[topics + 1]):
        common = state.topic_words[place] & state.filters[interests, state.topic_places[place]]
        folded |= common
        count += twin.count_ones(common)
    if count == 0:
        return False
    unary = _ALL if count >= WORD - 1 else (_ONE << np.uint64(count)) - _ONE
    if _lacks(state, needs, 3, unary) or _lacks(state, needs, 0, _smeared(_smeared(folded, 7), 31)):
        return False
    if _lacks(state, needs, 1, _smeared(_smeared(_smeared(folded, 11), 29), 37)):
        return False
    return not _lacks(state, needs, 2, _smeared(_smeared(_smeared(_smeared(folded, 13), 17), 19), 41))

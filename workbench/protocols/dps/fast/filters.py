"""DPS's filters in numba: sums of interests, differences, fuzzy hashes, encoded sizes. The definition is `dps.bloom`.

Theory of operation
    A run has few distinct filters, and most are sent many times. So each distinct filter is stored once, as a row of
    ``filters`` in 64-bit words. Links and messages contain the index of this row. So equal filters have equal indices,
    and the number of set bits and the encoded size are computed once for each filter. *Needs*, the fuzzy hashes of
    interests, are stored in the same way. Rows are looked up by their hash in a table with open addressing. A new
    filter is computed in the first free row; if an equal row exists, the index of that row is used instead.

Cost
    To compute a sum, each word of a summed filter is read once, and each word of the sum once more for its hash. Rows
    are never freed: a run takes the memory of all its distinct filters.
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
    """Indices of the counters in ``state.numbers``: stored filters, stored needs (fuzzy hashes), and publications."""

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
    """Return the hash of each row of an array of shape (n, words); the compiled `_hash_row` computes equal hashes."""
    hashes = np.full(len(rows), _START)
    with np.errstate(over="ignore"):
        for column in rows.T:
            hashes = (hashes ^ column) * _FACTOR
            hashes ^= hashes >> _SHIFT
    return hashes


def table_of(hashes: np.ndarray, room: int) -> np.ndarray:
    """Return a hash table of the rows with these hashes: an array of slots, each with a row number or NONE.

    ``room``: number of rows that the table must be able to hold; it has more than twice as many slots.
    """
    slot_count = 1 << (2 * room).bit_length()
    table = np.full(slot_count, NONE, np.int32)
    for row, slot in enumerate((hashes & np.uint64(slot_count - 1)).tolist()):
        while table[slot] != NONE:
            slot = (slot + 1) & (slot_count - 1)
        table[slot] = row
    return table


@compiled
def _hash_row(rows, row):
    hash_value = _START
    for k in range(rows.shape[1]):
        hash_value = (hash_value ^ rows[row, k]) * _FACTOR
        hash_value ^= hash_value >> _SHIFT
    return hash_value


@compiled
def _are_equal(rows, first, second):
    is_equal = True
    for k in range(rows.shape[1]):
        is_equal = is_equal and rows[first, k] == rows[second, k]
    return is_equal


@compiled
def _find_or_add(rows, hashes, table, row):
    """Return the index of the stored row that equals the new row; if no row is equal, store the new row.

    ``rows``: all stored filters, or all stored needs, followed by the new row at index ``row``. ``hashes``: hash of
    each stored row. ``table``: hash table of the stored rows. Storing the new row means to add its hash to ``hashes``
    and its index to ``table``.
    """
    hash_value = _hash_row(rows, row)
    slot_mask = len(table) - 1
    slot = np.int64(hash_value & np.uint64(slot_mask))
    while table[slot] != NONE:
        candidate_row = np.int64(table[slot])
        if hashes[candidate_row] == hash_value and _are_equal(rows, candidate_row, row):
            return candidate_row
        slot = (slot + 1) & slot_mask
    table[slot] = row
    hashes[row] = hash_value
    return np.int64(row)


@compiled
def intern_filter(state):
    """Store the filter computed in the first free row of ``state.filters``; return the index of its row.

    If an earlier row has the same bits, return the index of that row; the new row remains free.
    """
    new_row = state.numbers[Number.FILTERS]
    stored_row = _find_or_add(state.filters, state.filter_hashes, state.filter_table, new_row)
    if stored_row == new_row:
        state.numbers[Number.FILTERS] = new_row + 1
        state.filter_ones[new_row] = ones_of(state.filters, new_row)
        state.filter_B[new_row] = _encoded_B(state, new_row)
    return stored_row


@compiled
def intern_needs(state):
    """Store the needs (a fuzzy hash) computed in the first free row of ``state.needs``; return the index of their row.

    If an earlier row has the same bits, return the index of that row; the new row remains free.
    """
    new_row = state.numbers[Number.NEEDS]
    stored_row = _find_or_add(state.needs, state.needs_hashes, state.needs_table, new_row)
    if stored_row == new_row:
        state.numbers[Number.NEEDS] = new_row + 1
        state.needs_ones[new_row] = ones_of(state.needs, new_row)
    return stored_row


@compiled
def ones_of(rows, row):
    """Return the number of set bits in row ``row`` of ``rows``, an array of 64-bit words."""
    bit_count = np.int64(0)
    for k in range(rows.shape[1]):
        bit_count += twin.count_ones(rows[row, k])
    return bit_count


# Sums


@compiled
def clear_sum(state):
    """Start a sum of interests in the first free row of ``state.filters`` and of ``state.needs``.

    The filter starts without set bits. The needs, which are the intersection of fuzzy hashes, start with all bits set.
    """
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] = _NO_BITS
    row = state.numbers[Number.NEEDS]
    for k in range(NEEDS_WORDS):
        state.needs[row, k] = _ALL


@compiled
def add_to_sum(state, interests, needs):
    """Add the interests of a link or of a subscription to the sum that `clear_sum` has started.

    ``interests``, ``needs``: indices of the filter in ``state.filters`` and of its fuzzy hash in ``state.needs``.
    Filters are united, needs are intersected.
    """
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] |= state.filters[interests, k]
    row = state.numbers[Number.NEEDS]
    for k in range(NEEDS_WORDS):
        state.needs[row, k] &= state.needs[needs, k]


@compiled
def end_sum(state, entries):
    """Finish the sum of interests that `clear_sum` has started.

    ``entries``: number of filters that were added. If it is 0, the needs still have all bits set, and are cleared.
    """
    if entries == 0:
        row = state.numbers[Number.NEEDS]
        for k in range(NEEDS_WORDS):
            state.needs[row, k] = _NO_BITS


@compiled
def change_between(state, first, second):
    """Store the filter of the bits in which two filters differ, and return its index in ``state.filters``.

    ``first``, ``second``: indices of the two filters in ``state.filters``.
    """
    if first == second:
        return EMPTY
    row = state.numbers[Number.FILTERS]
    for k in range(state.filters.shape[1]):
        state.filters[row, k] = state.filters[first, k] ^ state.filters[second, k]
    return intern_filter(state)


# On the wire


@compiled
def _cbor_head_B(argument):
    """Return the size in bytes of the head of a CBOR item; ``argument`` is the number in the head."""
    return 1 + more_B(argument)


@compiled
def more_B(argument):
    """Return the number of bytes after the first byte in the CBOR encoding of an unsigned integer."""
    if argument < 24:
        return 0
    if argument < 0x100:
        return 1
    return 2 if argument < 0x10000 else 4


@compiled
def _run_length_bits(state, row, complement):
    """Return the size in bits of the run-length code of a filter, row ``row`` of ``state.filters``.

    ``complement``: 0 to encode the filter itself, a 64-bit word with all bits set to encode its complement.
    """
    code_bits = np.int64(0)
    run_start = np.int64(0)
    for k in range(state.filters.shape[1]):
        filter_word = state.filters[row, k] ^ complement
        while filter_word:
            bit_position = np.int64(k) * WORD + twin.trailing_zeros(filter_word)
            filter_word &= filter_word - _ONE_BIT
            zeros = bit_position - run_start + 1
            run_start = bit_position + 1
            code_bits += 1
            while zeros > 1:
                zeros >>= 1
                code_bits += 2
    return code_bits


@compiled
def _encoded_B(state, row):
    """Return the size in bytes of a filter, row ``row`` of ``state.filters``, as `BitVector.encode` would encode it."""
    filter_bits = state.filters.shape[1] * WORD
    fill_percent = 100 * state.filter_ones[row] + 1  # times ``filter_bits``
    code_bits = np.int64(filter_bits + 1)
    if fill_percent < SPARSE_PERCENT * filter_bits:
        code_bits = _run_length_bits(state, row, _NO_BITS)
    elif fill_percent > DENSE_PERCENT * filter_bits:
        code_bits = _run_length_bits(state, row, _ALL)
    data_B = filter_bits // 8 if code_bits > filter_bits else (code_bits + 7) // 8
    return 2 + _cbor_head_B(filter_bits) + _cbor_head_B(data_B) + data_B


def longest_B(length: int) -> int:
    """Return the largest size in bytes of an encoded filter of ``length`` bits, which is its size as plain bytes."""
    return len(BitVector(length, int.from_bytes(b"\x55" * (length // 8), "little")).encode())


# Routes


@compiled
def _or_rotated(word, distance):
    return word | (word << np.uint64(distance)) | (word >> np.uint64(WORD - distance))


@compiled
def _lacks_need(state, needs, k, word):
    """Return whether a word of a publication's fuzzy hash lacks a bit that a link's needs have in the same word.

    ``needs``: row of the needs in ``state.needs``. ``k``: index of the word. ``word``: this word of the fuzzy hash.
    """
    return (state.needs[needs, k] & ~word) != _NO_BITS


@compiled
def routes(state, topics, interests, needs):
    """Return whether a publication may match the interests received over a link, by the test of `bloom.routes`.

    ``topics``: index of the publication's set of topics (see `topics.Workload`). ``interests``, ``needs``: indices of
    the received filter in ``state.filters`` and of its fuzzy hash in ``state.needs``.
    """
    folded_words = _NO_BITS
    common_bit_count = np.int64(0)
    for word_index in range(state.topic_first[topics], state.topic_first[topics + 1]):
        common_word = state.topic_words[word_index] & state.filters[interests, state.topic_positions[word_index]]
        folded_words |= common_word
        common_bit_count += twin.count_ones(common_word)
    if common_bit_count == 0:
        return False
    unary_count = _ALL if common_bit_count >= WORD - 1 else (_ONE_BIT << np.uint64(common_bit_count)) - _ONE_BIT
    if _lacks_need(state, needs, 3, unary_count) or _lacks_need(
        state, needs, 0, _or_rotated(_or_rotated(folded_words, 7), 31)
    ):
        return False
    if _lacks_need(state, needs, 1, _or_rotated(_or_rotated(_or_rotated(folded_words, 11), 29), 37)):
        return False
    return not _lacks_need(
        state, needs, 2, _or_rotated(_or_rotated(_or_rotated(_or_rotated(folded_words, 13), 17), 19), 41)
    )

"""Compiled loops (numba) of `arrays.py`: topics to filters, routing and matching over arrays.

Texts are ``data``, one array of bytes, and ``starts``, the position at which each text begins, followed by the end of
the last text. ``is_separator`` has a flag for each of the 256 byte values: whether the byte is a separator.
``longest`` is the largest size of a topic in bytes. Topics must have been checked by `first_invalid`. ``item`` is a
buffer for an item, a string that a topic adds to a filter. ``state`` and ``w`` are scratch memory of SHA-256, of 8 and
64 words.
"""

import numpy as np
from numba import njit

Integer = int | np.integer

_PLUS, _HASH = np.uint8(ord("+")), np.uint8(ord("#"))
_BLOCK_B = 64
_LENGTH_B = 8
_DIGEST_WORDS = 8


def _root_bits(count: int, power: int) -> list[int]:
    """Return constants of SHA-256: the first 32 fractional bits of the roots of the first ``count`` primes.

    ``power`` is 2 for square roots and 3 for cube roots."""
    primes = [n for n in range(2, 312) if all(n % d for d in range(2, int(n**0.5) + 1))][:count]
    roots = []
    for prime in primes:
        scaled_prime, lowest_root, highest_root = prime << 32 * power, 0, 1 << 40
        while lowest_root < highest_root:
            middle_root = (lowest_root + highest_root + 1) // 2
            lowest_root, highest_root = (
                (middle_root, highest_root) if middle_root**power <= scaled_prime else (lowest_root, middle_root - 1)
            )
        roots.append(lowest_root & 0xFFFFFFFF)
    return roots


_INITIAL_STATE = np.array(_root_bits(8, 2), np.uint32)
_ROUND_CONSTANTS = np.array(_root_bits(64, 3), np.uint32)


@njit(cache=True)
def _rotate(x: np.uint32, count: Integer) -> np.uint32:
    return np.uint32(x >> np.uint32(count)) | np.uint32(x << np.uint32(32 - count))


@njit(cache=True)
def _compress(state: np.ndarray, w: np.ndarray, block: np.ndarray, begin: Integer) -> None:
    """Apply SHA-256's compression function to ``state`` and 64 bytes of ``block``, which start at ``begin``.

    ``w``: scratch memory of 64 words.
    """
    for t in range(16):
        byte_index = begin + 4 * t
        w[t] = np.uint32(
            np.uint32(block[byte_index]) << np.uint32(24)
            | np.uint32(block[byte_index + 1]) << np.uint32(16)
            | np.uint32(block[byte_index + 2]) << np.uint32(8)
            | np.uint32(block[byte_index + 3])
        )
    for t in range(16, 64):
        x, y = w[t - 15], w[t - 2]
        sigma0 = _rotate(x, 7) ^ _rotate(x, 18) ^ np.uint32(x >> np.uint32(3))
        sigma1 = _rotate(y, 17) ^ _rotate(y, 19) ^ np.uint32(y >> np.uint32(10))
        w[t] = np.uint32(w[t - 16] + sigma0 + w[t - 7] + sigma1)
    a, b, c, d, e, f, g, h = state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
    for t in range(64):
        s1 = _rotate(e, 6) ^ _rotate(e, 11) ^ _rotate(e, 25)
        temp1 = np.uint32(h + s1 + ((e & f) ^ (~e & g)) + _ROUND_CONSTANTS[t] + w[t])
        s0 = _rotate(a, 2) ^ _rotate(a, 13) ^ _rotate(a, 22)
        temp2 = np.uint32(s0 + ((a & b) ^ (a & c) ^ (b & c)))
        h, g, f, e, d, c, b, a = g, f, e, np.uint32(d + temp1), c, b, a, np.uint32(temp1 + temp2)
    state[0] = np.uint32(state[0] + a)
    state[1] = np.uint32(state[1] + b)
    state[2] = np.uint32(state[2] + c)
    state[3] = np.uint32(state[3] + d)
    state[4] = np.uint32(state[4] + e)
    state[5] = np.uint32(state[5] + f)
    state[6] = np.uint32(state[6] + g)
    state[7] = np.uint32(state[7] + h)


@njit(cache=True)
def _digest(state: np.ndarray, w: np.ndarray, item: np.ndarray, size: Integer) -> None:
    """Store the SHA-256 digest of the first ``size`` bytes of ``item`` in ``state``.

    Later bytes of ``item`` are overwritten with padding. ``w``: scratch memory of 64 words.
    """
    state[:] = _INITIAL_STATE
    padded_size = (size + 1 + _LENGTH_B + _BLOCK_B - 1) // _BLOCK_B * _BLOCK_B
    item[size] = 0x80
    for padding_index in range(size + 1, padded_size):
        item[padding_index] = 0
    size_bits = 8 * size
    for k in range(4):  # topics have fewer than 2 ** 32 bits
        item[padded_size - 1 - k] = size_bits >> 8 * k & 0xFF
    for block_begin in range(0, padded_size, _BLOCK_B):
        _compress(state, w, item, block_begin)


@njit(cache=True)
def _insert_item(
    row: np.ndarray, item: np.ndarray, size: Integer, hashes: Integer, state: np.ndarray, w: np.ndarray
) -> None:
    """Add an item to a filter: set ``hashes`` bits of ``row``, the words of the filter.

    The item is the first ``size`` bytes of the buffer ``item``; later bytes are overwritten. ``state``, ``w``: scratch
    memory of SHA-256. The position of each bit is a 32-bit word of the item's digest, read as little-endian, modulo the
    filter's length.
    """
    _digest(state, w, item, size)
    filter_bits = 64 * row.size
    for k in range(hashes):
        digest_word = state[k]
        swapped_word = (
            (digest_word >> 24)
            | (digest_word >> 8 & 0xFF00)
            | (digest_word << 8 & 0xFF0000)
            | (digest_word << 24 & 0xFF000000)
        )
        bit_position = np.int64(swapped_word) % filter_bits
        row[bit_position >> 6] |= np.uint64(1) << np.uint64(bit_position & 63)


@njit(cache=True)
def _find_separators(data: np.ndarray, begin: Integer, end: Integer, is_separator: np.ndarray, at: np.ndarray) -> int:
    """Find the separators of the topic data[begin:end]; store their positions in ``at``, and return their number.

    ``is_separator``: whether each of the 256 byte values is a separator.
    """
    separator_count = 0
    for position in range(begin, end):
        if is_separator[data[position]]:
            at[separator_count] = position
            separator_count += 1
    return separator_count


@njit(cache=True)
def _copy_segment(
    item: np.ndarray, data: np.ndarray, separators: np.ndarray, count: Integer, index: Integer, end: Integer
) -> int:
    """Write the item of one segment of a topic to the buffer ``item``; return the item's size in bytes.

    The item consists of all earlier separators of the topic, the segment, and the next separator, if any. Example: the
    items of the segments of "a/b/c" are "a/", "/b/" and "//c".

    ``separators``: positions of the topic's ``count`` separators in ``data``; ``index``: number of separators before
    the segment; ``end``: position after the topic.
    """
    item_size = 0
    for k in range(index):
        item[item_size] = data[separators[k]]
        item_size += 1
    copy_begin = separators[index - 1] + 1 if index else 0
    copy_end = separators[index] + 1 if index < count else end
    for data_position in range(copy_begin, copy_end):
        item[item_size] = data[data_position]
        item_size += 1
    return item_size


@njit(cache=True)
def add_publications(
    filters: np.ndarray,
    data: np.ndarray,
    starts: np.ndarray,
    is_separator: np.ndarray,
    hashes: Integer,
    wildcards: bool,
    longest: Integer,
) -> None:
    """Add the topic of publication i to the filter in row i of ``filters`` (uint64), for all publications.

    ``data``: the bytes of all topics. ``starts``: where each topic begins. ``is_separator``: whether each of the 256
    byte values is a separator. ``hashes``: number of bits that each item of a topic sets. ``wildcards``: whether
    subscriptions with wildcards can match; if False, only the topic itself is inserted. ``longest``: largest size of a
    topic in bytes.
    """
    item_buffer = np.empty(longest + 2 * _BLOCK_B, np.uint8)
    separators = np.empty(longest + 1, np.int64)
    digest_state, w = np.empty(_DIGEST_WORDS, np.uint32), np.empty(64, np.uint32)
    for i in range(filters.shape[0]):
        topic_begin, topic_end = starts[i], starts[i + 1]
        filter_row = filters[i]
        item_size = topic_end - topic_begin
        item_buffer[:item_size] = data[topic_begin:topic_end]
        _insert_item(filter_row, item_buffer, item_size, hashes, digest_state, w)
        if not wildcards:
            continue
        separator_count = _find_separators(data, topic_begin, topic_end, is_separator, separators)
        for k in range(separator_count):
            item_size = separators[k] + 1 - topic_begin
            item_buffer[:item_size] = data[topic_begin : topic_begin + item_size]
            _insert_item(filter_row, item_buffer, item_size, hashes, digest_state, w)
        for k in range(1, separator_count + 1):
            item_size = _copy_segment(item_buffer, data, separators, separator_count, k, topic_end)
            _insert_item(filter_row, item_buffer, item_size, hashes, digest_state, w)
        for level_count in range(separator_count + 1):
            for k in range(level_count):
                item_buffer[k] = data[separators[k]]
            item_buffer[level_count] = _HASH
            _insert_item(filter_row, item_buffer, level_count + 1, hashes, digest_state, w)
        for k in range(separator_count):
            item_buffer[k] = data[separators[k]]
        item_buffer[separator_count] = _PLUS
        _insert_item(filter_row, item_buffer, separator_count + 1, hashes, digest_state, w)


@njit(cache=True)
def add_subscriptions(
    filters: np.ndarray,
    data: np.ndarray,
    starts: np.ndarray,
    is_separator: np.ndarray,
    hashes: Integer,
    longest: Integer,
) -> None:
    """Add the topic of subscription i to the filter in row i of ``filters`` (uint64), for all subscriptions.

    ``data``: the bytes of all topics. ``starts``: where each topic begins. ``is_separator``: whether each of the 256
    byte values is a separator. ``hashes``: number of bits that each item of a topic sets. ``longest``: largest size of
    a topic in bytes.
    """
    item_buffer = np.empty(longest + 2 * _BLOCK_B, np.uint8)
    separators = np.empty(longest + 1, np.int64)
    digest_state, w = np.empty(_DIGEST_WORDS, np.uint32), np.empty(64, np.uint32)
    for i in range(filters.shape[0]):
        topic_begin, topic_end = starts[i], starts[i + 1]
        filter_row = filters[i]
        wildcard_position = topic_begin
        while wildcard_position < topic_end and data[wildcard_position] != _PLUS and data[wildcard_position] != _HASH:
            wildcard_position += 1
        item_size = wildcard_position - topic_begin
        if item_size:
            item_buffer[:item_size] = data[topic_begin:wildcard_position]
            _insert_item(filter_row, item_buffer, item_size, hashes, digest_state, w)
        separator_count = _find_separators(data, topic_begin, topic_end, is_separator, separators)
        for k in range(1, separator_count + 1):
            segment_begin = separators[k - 1] + 1
            if segment_begin <= wildcard_position or (
                data[segment_begin] == _PLUS and k < separator_count and separators[k] == segment_begin + 1
            ):
                continue
            item_size = _copy_segment(item_buffer, data, separators, separator_count, k, topic_end)
            _insert_item(filter_row, item_buffer, item_size, hashes, digest_state, w)


@njit(cache=True)
def first_invalid(
    data: np.ndarray, starts: np.ndarray, is_separator: np.ndarray, longest: Integer, wildcards: bool
) -> int:
    """Return the index of the first text that is not a valid topic, or -1 if all are valid.

    ``data``: the bytes of all texts. ``starts``: where each text begins. ``is_separator``: whether each of the 256 byte
    values is a separator. ``longest``: largest allowed size in bytes. ``wildcards``: whether topics may contain
    wildcards.
    """
    for i in range(starts.size - 1):
        topic_begin, topic_end = starts[i], starts[i + 1]
        if (
            not 0 < topic_end - topic_begin <= longest
            or is_separator[data[topic_begin]]
            or is_separator[data[topic_end - 1]]
        ):
            return i
        for byte_position in range(topic_begin, topic_end):
            if data[byte_position] != _PLUS and data[byte_position] != _HASH:
                continue
            is_last_byte = byte_position + 1 == topic_end
            ends_segment = is_last_byte or (data[byte_position] == _PLUS and is_separator[data[byte_position + 1]])
            if (
                not wildcards
                or not ends_segment
                or not (byte_position == topic_begin or is_separator[data[byte_position - 1]])
            ):
                return i
    return -1


@njit(cache=True)
def match(
    matched: np.ndarray,
    data: np.ndarray,
    starts: np.ndarray,
    subscribed: np.ndarray,
    subscribed_starts: np.ndarray,
    is_separator: np.ndarray,
) -> None:
    """Set matched[i, j] to whether the topic of subscription j matches the topic of publication i.

    ``data``, ``starts``: bytes of the publications' topics, and where each topic begins. ``subscribed``,
    ``subscribed_starts``: the same for the subscriptions. ``is_separator``: whether each of the 256 byte values is a
    separator.
    """
    for i in range(matched.shape[0]):
        topic_begin, topic_end = starts[i], starts[i + 1]
        for j in range(matched.shape[1]):
            matched[i, j] = _matches(
                data, topic_begin, topic_end, subscribed, subscribed_starts[j], subscribed_starts[j + 1], is_separator
            )


@njit(cache=True)
def _matches(
    data: np.ndarray,
    at: Integer,
    end: Integer,
    subscribed: np.ndarray,
    position: Integer,
    last: Integer,
    is_separator: np.ndarray,
) -> bool:
    while position < last:
        subscribed_byte = subscribed[position]
        if subscribed_byte == _HASH:
            return bool(at < end and not is_separator[data[at]])
        if subscribed_byte == _PLUS:
            while at < end and not is_separator[data[at]]:
                at += 1
        else:
            if at >= end or data[at] != subscribed_byte:
                return False
            at += 1
        position += 1
    return at == end


@njit(cache=True)
def fuzzy_hash(filters: np.ndarray, hashes: np.ndarray) -> None:
    """Write the fuzzy hash of the filter in row i of ``filters``, four 64-bit words, to row i of ``hashes``."""
    for i in range(filters.shape[0]):
        folded_words, bit_count = np.uint64(0), 0
        for k in range(filters.shape[1]):
            filter_word = filters[i, k]
            folded_words |= filter_word
            while filter_word and bit_count < 63:
                filter_word &= filter_word - np.uint64(1)
                bit_count += 1
        hashes[i, 0], hashes[i, 1], hashes[i, 2] = _fold_rotations(folded_words)
        hashes[i, 3] = _unary_count(bit_count)


@njit(cache=True)
def _or_rotated(x: np.uint64, count: Integer) -> np.uint64:
    return x | (x << np.uint64(count)) | (x >> np.uint64(64 - count))


@njit(cache=True)
def _fold_rotations(folded: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """Return the first three words of a vector's fuzzy hash, which differ in the distances of their rotations.

    ``folded``: the 64-bit words of the vector, or-ed together. A word of the hash starts with this value. For each of
    several distances in turn, the word is then or-ed with itself rotated by the distance.
    """
    first_word = _or_rotated(_or_rotated(folded, 7), 31)
    second_word = _or_rotated(_or_rotated(_or_rotated(folded, 11), 29), 37)
    third_word = _or_rotated(_or_rotated(_or_rotated(_or_rotated(folded, 13), 17), 19), 41)
    return first_word, second_word, third_word


@njit(cache=True)
def _unary_count(bits: Integer) -> np.uint64:
    """Return the last word of a fuzzy hash: the number of set bits in unary. For 63 or more, all 64 bits are set."""
    return ~np.uint64(0) if bits >= 63 else (np.uint64(1) << np.uint64(bits)) - np.uint64(1)


@njit(cache=True)
def route(routed: np.ndarray, filters: np.ndarray, interests: np.ndarray, needs: np.ndarray) -> None:
    """Set routed[i, j] to whether publication i is sent over link j, as `bloom.routes` decides.

    ``filters``: a row for each publication, its filter. ``interests``, ``needs``: a row for each link, the filter and
    the needs (a fuzzy hash) that the neighbor at the other end has sent.
    """
    nonzero_words = np.empty(filters.shape[1], np.int64)
    for i in range(routed.shape[0]):
        # Filters are sparse: only the words that are not empty are compared.
        nonzero_count = 0
        for k in range(filters.shape[1]):
            if filters[i, k]:
                nonzero_words[nonzero_count] = k
                nonzero_count += 1
        for j in range(routed.shape[1]):
            routed[i, j] = _is_routed(filters[i], interests[j], needs[j], nonzero_words[:nonzero_count])


@njit(cache=True)
def _is_routed(publication: np.ndarray, interests: np.ndarray, needs: np.ndarray, words: np.ndarray) -> bool:
    folded_words = np.uint64(0)
    for k in words:
        folded_words |= publication[k] & interests[k]
    if not folded_words:
        return False
    first_word, second_word, third_word = _fold_rotations(folded_words)
    if needs[0] & ~first_word or needs[1] & ~second_word or needs[2] & ~third_word:
        return False
    if not needs[3]:
        return True
    common_bit_count = 0
    for k in words:
        common_word = publication[k] & interests[k]
        while common_word and common_bit_count < 63:
            common_word &= common_word - np.uint64(1)
            common_bit_count += 1
    return not needs[3] & ~_unary_count(common_bit_count)


@njit(cache=True)
def include(included: np.ndarray, filters: np.ndarray, others: np.ndarray) -> None:
    """Set included[i, j] to whether ``filters[i]`` has all bits of ``others[j]``; False if ``filters[i]`` is empty."""
    for i in range(included.shape[0]):
        is_empty = True
        for k in range(filters.shape[1]):
            if filters[i, k]:
                is_empty = False
                break
        for j in range(included.shape[1]):
            included[i, j] = not is_empty and _includes(filters[i], others[j])


@njit(cache=True)
def _includes(vector: np.ndarray, other: np.ndarray) -> bool:
    k = 0
    while k < vector.size and not other[k] & ~vector[k]:
        k += 1
    return k == vector.size

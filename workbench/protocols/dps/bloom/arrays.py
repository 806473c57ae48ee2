"""Filters (`dps.bloom`) and topics (`dps.topics`) for many at once: the same answers, over arrays. Never on a mote.

Theory of operation
    Filters are rows of words of 64 bits, little-endian, so a row's bytes are `BitVector.to_bytes`. Each different item
    of the topics is hashed once, and all bits are set by one operation. Filters are routed and topics matched in loops
    compiled by numba, without an object for each. A routing decision looks at those words alone in which the
    publication's filter has a bit, which are few, and counts no bits where the first three words of the fuzzy hash have
    said no.

Cost
    See benchmarks/dps_codec.py. The first use in a process loads numba; the first use on a machine compiles for some
    seconds, and the result is cached. Tables of n publications and m links or subscriptions take n m bytes.

Limits
    Little-endian machines, which are all that numba supports. One topic a publication or subscription; of several,
    filters are or-ed, and matches taken together with ``any`` and ``all``.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import chain

import numpy as np
from numba import njit

from workbench.errors import ParameterError
from workbench.protocols.dps import topics
from workbench.protocols.dps.bloom import HASHES, LENGTH, MOST_HASHES, WORD, BitVector

_NEEDS_WORDS = 4
Integer = int | np.integer
_PLUS, _HASH = np.uint8(ord("+")), np.uint8(ord("#"))
Topics = Sequence[str | bytes]


def publication_filters(
    published: Topics,
    length: int = LENGTH,
    hashes: int = HASHES,
    separators: str | bytes = topics.SEPARATORS,
    wildcards: bool = True,
) -> np.ndarray:
    """Return the filter of each topic: uint64, (topics, length / 64). AttributeFormatError if one is not valid."""
    return _filters(published, length, hashes, lambda topic: topics.publication_items(topic, separators, wildcards))


def subscription_filters(
    subscribed: Topics,
    length: int = LENGTH,
    hashes: int = HASHES,
    separators: str | bytes = topics.SEPARATORS,
) -> np.ndarray:
    """Return the filter of each topic: uint64, (topics, length / 64). AttributeFormatError if one is not valid."""
    return _filters(subscribed, length, hashes, lambda topic: topics.subscription_items(topic, separators))


def _filters(given: Topics, length: int, hashes: int, items_of: Callable[[bytes], list[bytes]]) -> np.ndarray:
    if not 1 <= hashes <= MOST_HASHES:
        raise ParameterError(f"{hashes!r} hashes for an item of a filter; there may be 1 to {MOST_HASHES}")
    items = [items_of(topics.as_bytes(topic)) for topic in given]
    filters = np.zeros((len(items), BitVector(length).length // WORD), np.uint64)
    inserted = list(chain.from_iterable(items))
    numbers = {item: number for number, item in enumerate(dict.fromkeys(inserted))}
    digests = np.frombuffer(b"".join([sha256(item).digest() for item in numbers]), "<u4").reshape(-1, 8)
    bits = digests[np.fromiter(map(numbers.__getitem__, inserted), np.int64, len(inserted)), :hashes] % length
    rows = np.repeat(np.arange(len(items)), [len(of_topic) for of_topic in items])
    np.bitwise_or.at(filters, (rows[:, None], bits // WORD), np.uint64(1) << (bits % WORD).astype(np.uint64))
    return filters


def fuzzy_hashes(filters: np.ndarray) -> np.ndarray:
    """The fuzzy hash of each filter: uint64, (filters, 4); the bytes of a row are `BitVector.fuzzy_hash`."""
    hashes = np.empty((_rows(filters).shape[0], _NEEDS_WORDS), np.uint64)
    _hash_all(filters, hashes)
    return hashes


def routes(publications: np.ndarray, interests: np.ndarray, needs: np.ndarray) -> np.ndarray:
    """Whether each publication goes over each link, as `bloom.routes`: bool, (publications, links).

    publications: filters; interests: filters, and needs (uint64, (links, 4)), of the links.
    """
    _same_length(publications, interests)
    if needs.shape != (interests.shape[0], _NEEDS_WORDS) or needs.dtype != np.uint64:
        raise ParameterError(f"needs of shape {needs.shape}; they must be uint64, ({interests.shape[0]}, 4)")
    routed = np.empty((publications.shape[0], interests.shape[0]), np.bool_)
    _route_all(routed, publications, interests, needs)
    return routed


def includes(filters: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each filter includes each other one, as `BitVector.includes`: bool, (filters, others)."""
    _same_length(filters, others)
    included = np.empty((filters.shape[0], others.shape[0]), np.bool_)
    _include_all(included, filters, others)
    return included


def matches(published: Topics, subscribed: Topics, separators: str | bytes = topics.SEPARATORS) -> np.ndarray:
    """Whether each topic that is subscribed to matches each that is published: bool, (published, subscribed).

    AttributeFormatError if a subscription is not valid; publications are not checked.
    """
    for topic in subscribed:
        topics.check_subscription_topic(topic, separators)
    is_separator = np.zeros(256, np.bool_)
    is_separator[list(topics.separator_bytes(separators))] = True
    matched = np.empty((len(published), len(subscribed)), np.bool_)
    _match_all(matched, *_laid_out(published), *_laid_out(subscribed), is_separator)
    return matched


def from_vectors(vectors: Sequence[BitVector]) -> np.ndarray:
    """The rows of some bit vectors, which have one length."""
    if not vectors or len({vector.length for vector in vectors}) != 1:
        raise ParameterError("rows are made of one bit vector or more, and all of one length")
    data = b"".join(vector.to_bytes() for vector in vectors)
    return np.frombuffer(data, np.uint64).reshape(len(vectors), -1).copy()


def to_vectors(filters: np.ndarray) -> list[BitVector]:
    """The bit vectors of some rows."""
    return [BitVector.from_bytes(row.tobytes()) for row in _rows(filters)]


def _laid_out(given: Topics) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of some topics, end to end, and where each begins, with the end of the last."""
    pieces = [topics.as_bytes(topic) for topic in given]
    starts = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=starts[1:])
    return np.frombuffer(b"".join(pieces), np.uint8), starts


def _rows(filters: np.ndarray) -> np.ndarray:
    if filters.ndim != 2 or filters.dtype != np.uint64:
        raise ParameterError(f"filters are {filters.dtype} of shape {filters.shape}; they must be rows of uint64")
    return filters


def _same_length(filters: np.ndarray, others: np.ndarray) -> None:
    if _rows(filters).shape[1] != _rows(others).shape[1]:
        lengths = f"{WORD * filters.shape[1]} and {WORD * others.shape[1]}"
        raise ParameterError(f"filters of {lengths} bits; all must have one length")


# Compiled loops. Texts are one array of bytes and where each begins; ``is_separator`` has a flag for each of 256 bytes.


@njit(cache=True)
def _match_all(
    matched: np.ndarray,
    data: np.ndarray,
    starts: np.ndarray,
    subscribed: np.ndarray,
    subscribed_starts: np.ndarray,
    is_separator: np.ndarray,
) -> None:
    """matched[i, j]: whether subscription j matches publication i."""
    for i in range(matched.shape[0]):
        begin, end = starts[i], starts[i + 1]
        for j in range(matched.shape[1]):
            matched[i, j] = _matches(
                data, begin, end, subscribed, subscribed_starts[j], subscribed_starts[j + 1], is_separator
            )


@njit(cache=True)
def _matches(
    data: np.ndarray,
    at: Integer,
    end: Integer,
    subscribed: np.ndarray,
    place: Integer,
    last: Integer,
    is_separator: np.ndarray,
) -> bool:
    while place < last:
        byte = subscribed[place]
        if byte == _HASH:
            return bool(at < end and not is_separator[data[at]])
        if byte == _PLUS:
            while at < end and not is_separator[data[at]]:
                at += 1
        else:
            if at >= end or data[at] != byte:
                return False
            at += 1
        place += 1
    return at == end


@njit(cache=True)
def _hash_all(filters: np.ndarray, hashes: np.ndarray) -> None:
    """The four words of the fuzzy hash of each row."""
    for i in range(filters.shape[0]):
        folded, bits = np.uint64(0), 0
        for k in range(filters.shape[1]):
            word = filters[i, k]
            folded |= word
            while word and bits < 63:
                word &= word - np.uint64(1)
                bits += 1
        hashes[i, 0], hashes[i, 1], hashes[i, 2] = _smear(folded)
        hashes[i, 3] = _unary(bits)


@njit(cache=True)
def _turn(x: np.uint64, by: Integer) -> np.uint64:
    return x | (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@njit(cache=True)
def _smear(folded: np.uint64) -> tuple[np.uint64, np.uint64, np.uint64]:
    """The first three words of a fuzzy hash; each turn is of what the ones before it made."""
    first = _turn(_turn(folded, 7), 31)
    second = _turn(_turn(_turn(folded, 11), 29), 37)
    third = _turn(_turn(_turn(_turn(folded, 13), 17), 19), 41)
    return first, second, third


@njit(cache=True)
def _unary(bits: Integer) -> np.uint64:
    """The last word: one for each bit that is set; 63 and more fill it."""
    return ~np.uint64(0) if bits >= 63 else (np.uint64(1) << np.uint64(bits)) - np.uint64(1)


@njit(cache=True)
def _route_all(routed: np.ndarray, filters: np.ndarray, interests: np.ndarray, needs: np.ndarray) -> None:
    """routed[i, j]: whether publication i goes over link j."""
    words = np.empty(filters.shape[1], np.int64)
    for i in range(routed.shape[0]):
        # Filters are sparse: a link is asked about the words alone that are not empty.
        used = 0
        for k in range(filters.shape[1]):
            if filters[i, k]:
                words[used] = k
                used += 1
        for j in range(routed.shape[1]):
            routed[i, j] = _goes(filters[i], interests[j], needs[j], words[:used])


@njit(cache=True)
def _goes(publication: np.ndarray, interests: np.ndarray, needs: np.ndarray, words: np.ndarray) -> bool:
    folded = np.uint64(0)
    for k in words:
        folded |= publication[k] & interests[k]
    if not folded:
        return False
    first, second, third = _smear(folded)
    if needs[0] & ~first or needs[1] & ~second or needs[2] & ~third:
        return False
    if not needs[3]:
        return True
    bits = 0
    for k in words:
        common = publication[k] & interests[k]
        while common and bits < 63:
            common &= common - np.uint64(1)
            bits += 1
    return not needs[3] & ~_unary(bits)


@njit(cache=True)
def _include_all(included: np.ndarray, filters: np.ndarray, others: np.ndarray) -> None:
    """included[i, j]: whether filter i has all bits of other j; an empty filter has none of an empty one."""
    for i in range(included.shape[0]):
        is_empty = True
        for k in range(filters.shape[1]):
            if filters[i, k]:
                is_empty = False
                break
        for j in range(included.shape[1]):
            included[i, j] = not is_empty and _is_included(filters[i], others[j])


@njit(cache=True)
def _is_included(vector: np.ndarray, other: np.ndarray) -> bool:
    k = 0
    while k < vector.size and not other[k] & ~vector[k]:
        k += 1
    return k == vector.size

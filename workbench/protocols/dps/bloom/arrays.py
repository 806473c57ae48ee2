"""Filters (`dps.bloom`) and topics (`dps.topics`) for many at once: the same answers, over arrays. Never on a mote.

Theory of operation
    Filters are rows of words of 64 bits, little-endian, so a row's bytes are `BitVector.to_bytes`. Topics are laid end
    to end (`Texts`). Topics are taken apart, hashed and put into filters, routed and matched in compiled loops, without
    an object for each.

    SHA-256 is computed here: of items as short as these one call of a library costs more than the hash does. A routing
    decision looks at those words alone in which the publication's filter has a bit, which are few, and counts no bits
    where the first three words of the fuzzy hash have said no.

Cost
    See benchmarks/dps_codec.py. The first use in a process loads numba; the first use on a machine compiles for some
    seconds, and the result is cached. Tables of n publications and m links or subscriptions take n m bytes.

Limits
    Little-endian machines, which are all that numba supports. One topic a publication or subscription; of several,
    filters are or-ed, and matches taken together with ``any`` and ``all``.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.errors import ParameterError
from workbench.protocols.dps import topics
from workbench.protocols.dps.bloom import HASHES, LENGTH, MOST_HASHES, WORD, BitVector
from workbench.protocols.dps.bloom import kernels as bloom_kernels

_NEEDS_WORDS = 4


class Texts(NamedTuple):
    """Many texts: their bytes (uint8), end to end, and where each begins, with the end of the last (int64)."""

    data: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str | bytes]) -> "Texts":
        """Texts as UTF-8, or bytes as they are."""
        pieces = [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text for text in texts]
        starts = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=starts[1:])
        return cls(np.frombuffer(b"".join(pieces), np.uint8), starts)

    def text(self, number: int) -> bytes:
        """One of them."""
        return self.data[self.starts[number] : self.starts[number + 1]].tobytes()

    def __len__(self) -> int:
        return self.starts.size - 1


Topics = Texts | Sequence[str | bytes]


def publication_filters(
    published: Topics,
    length: int = LENGTH,
    hashes: int = HASHES,
    separators: str | bytes = topics.SEPARATORS,
    wildcards: bool = True,
) -> np.ndarray:
    """The filter of each topic: uint64, (topics, length / 64). AttributeFormatError if a topic is not valid."""
    texts, is_separator = _checked(published, separators, subscribed=False)
    filters = _empty_filters(len(texts), length, hashes)
    bloom_kernels.add_publications(filters, *texts, is_separator, hashes, wildcards, topics.LONGEST_B)
    return filters


def subscription_filters(
    subscribed: Topics,
    length: int = LENGTH,
    hashes: int = HASHES,
    separators: str | bytes = topics.SEPARATORS,
) -> np.ndarray:
    """The filter of each topic: uint64, (topics, length / 64). AttributeFormatError if a topic is not valid."""
    texts, is_separator = _checked(subscribed, separators, subscribed=True)
    filters = _empty_filters(len(texts), length, hashes)
    bloom_kernels.add_subscriptions(filters, *texts, is_separator, hashes, topics.LONGEST_B)
    return filters


def fuzzy_hashes(filters: np.ndarray) -> np.ndarray:
    """The fuzzy hash of each filter: uint64, (filters, 4); the bytes of a row are `BitVector.fuzzy_hash`."""
    hashes = np.empty((_rows(filters).shape[0], _NEEDS_WORDS), np.uint64)
    bloom_kernels.fuzzy_hash(filters, hashes)
    return hashes


def routes(publications: np.ndarray, interests: np.ndarray, needs: np.ndarray) -> np.ndarray:
    """Whether each publication goes over each link, as `bloom.routes`: bool, (publications, links).

    publications: filters; interests: filters, and needs (uint64, (links, 4)), of the links.
    """
    _same_length(publications, interests)
    if needs.shape != (interests.shape[0], _NEEDS_WORDS) or needs.dtype != np.uint64:
        raise ParameterError(f"needs of shape {needs.shape}; they must be uint64, ({interests.shape[0]}, 4)")
    routed = np.empty((publications.shape[0], interests.shape[0]), np.bool_)
    bloom_kernels.route(routed, publications, interests, needs)
    return routed


def includes(filters: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each filter includes each other one, as `BitVector.includes`: bool, (filters, others)."""
    _same_length(filters, others)
    included = np.empty((filters.shape[0], others.shape[0]), np.bool_)
    bloom_kernels.include(included, filters, others)
    return included


def matches(published: Topics, subscribed: Topics, separators: str | bytes = topics.SEPARATORS) -> np.ndarray:
    """Whether each topic that is subscribed to matches each that is published: bool, (published, subscribed).

    AttributeFormatError if a subscription is not valid; publications are not checked.
    """
    texts = _texts(published)
    subscriptions, is_separator = _checked(subscribed, separators, subscribed=True)
    matched = np.empty((len(texts), len(subscriptions)), np.bool_)
    bloom_kernels.match(matched, *texts, *subscriptions, is_separator)
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


def _texts(given: Topics) -> Texts:
    return given if isinstance(given, Texts) else Texts.of(given)


def _checked(given: Topics, separators: str | bytes, subscribed: bool) -> tuple[Texts, np.ndarray]:
    """(the texts, which bytes are separators); the error of `topics` for the first topic that is not valid."""
    is_separator = np.zeros(256, np.bool_)
    is_separator[list(topics.separator_bytes(separators))] = True
    texts = _texts(given)
    invalid = bloom_kernels.first_invalid(*texts, is_separator, topics.LONGEST_B, subscribed)
    if invalid >= 0:
        check = topics.check_subscription_topic if subscribed else topics.check_publication_topic
        check(texts.text(invalid), separators)
    return texts, is_separator


def _empty_filters(count: int, length: int, hashes: int) -> np.ndarray:
    if not 1 <= hashes <= MOST_HASHES:
        raise ParameterError(f"{hashes!r} hashes for an item of a filter; there may be 1 to {MOST_HASHES}")
    return np.zeros((count, BitVector(length).length // WORD), np.uint64)


def _rows(filters: np.ndarray) -> np.ndarray:
    if filters.ndim != 2 or filters.dtype != np.uint64:
        raise ParameterError(f"filters are {filters.dtype} of shape {filters.shape}; they must be rows of uint64")
    return filters


def _same_length(filters: np.ndarray, others: np.ndarray) -> None:
    if _rows(filters).shape[1] != _rows(others).shape[1]:
        lengths = f"{WORD * filters.shape[1]} and {WORD * others.shape[1]}"
        raise ParameterError(f"filters of {lengths} bits; all must have one length")

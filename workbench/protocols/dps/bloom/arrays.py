"""Bloom filters and topics in arrays: functions of `dps.bloom` and `dps.topics` for many filters and topics at once.

Theory of operation
    Filters are rows of 64-bit words, little-endian, so a row's bytes are `BitVector.to_bytes`. Topics are concatenated
    (`Texts`); functions also accept a sequence of str or bytes. An *item* is a string that a topic adds to a filter.
    Loops compiled by numba split topics, hash their items into filters, and decide routes and matches. They create no
    Python objects.

    SHA-256 is implemented here, as for such short items a library call costs more than the hash. A routing decision
    uses only those few words in which the publication's filter has a bit. It counts bits only if the first three words
    of the fuzzy hash match.

Cost
    See benchmarks/dps_codec.py. The first use in a process loads numba; the first use on a machine compiles for some
    seconds, and the compiled code is cached. The result for n publications and m links or subscriptions takes n m
    bytes.

Limits
    Only little-endian machines. The functions expect one topic for each publication or subscription. If it has several
    topics, combine their filters with ``|``. For a match, each topic of the subscription (``all``) must match at least
    one topic of the publication (``any``).

    A mote cannot run this module.
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
    """Many texts in two arrays.

    data    the concatenated bytes of all texts (uint8)
    starts  where each text begins in ``data``, followed by the end of the last text (int64)
    """

    data: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, texts: Sequence[str | bytes]) -> "Texts":
        """Return the `Texts` of these texts; a str is encoded as UTF-8."""
        encoded_texts = [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text for text in texts]
        starts = np.zeros(len(encoded_texts) + 1, np.int64)
        np.cumsum([len(encoded_text) for encoded_text in encoded_texts], out=starts[1:])
        return cls(np.frombuffer(b"".join(encoded_texts), np.uint8), starts)

    def text(self, number: int) -> bytes:
        """Return the bytes of the text with the index ``number``."""
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
    """Return the filter of each of the topics ``published``, uint64 of shape (topics, length / 64).

    ``length``: bits of a filter. ``hashes``: number of bits that each item of a topic sets. ``separators``: characters
    that divide topics into segments. ``wildcards``: whether subscriptions with wildcards can match the topics. Raises
    AttributeFormatError for an invalid topic.
    """
    topic_texts, is_separator = _check_topics(published, separators, subscribed=False)
    filters = _empty_filters(len(topic_texts), length, hashes)
    bloom_kernels.add_publications(filters, *topic_texts, is_separator, hashes, wildcards, topics.LONGEST_B)
    return filters


def subscription_filters(
    subscribed: Topics,
    length: int = LENGTH,
    hashes: int = HASHES,
    separators: str | bytes = topics.SEPARATORS,
) -> np.ndarray:
    """Return the filter of each of the topics ``subscribed``, uint64 of shape (topics, length / 64).

    ``length``: bits of a filter. ``hashes``: number of bits that each item of a topic sets. ``separators``: characters
    that divide topics into segments. Raises AttributeFormatError for an invalid topic.
    """
    topic_texts, is_separator = _check_topics(subscribed, separators, subscribed=True)
    filters = _empty_filters(len(topic_texts), length, hashes)
    bloom_kernels.add_subscriptions(filters, *topic_texts, is_separator, hashes, topics.LONGEST_B)
    return filters


def fuzzy_hashes(filters: np.ndarray) -> np.ndarray:
    """Return the fuzzy hash of each filter, uint64 of shape (filters, 4).

    The bytes of a row are the result of `BitVector.fuzzy_hash`.
    """
    hashes = np.empty((_check_filters(filters).shape[0], _NEEDS_WORDS), np.uint64)
    bloom_kernels.fuzzy_hash(filters, hashes)
    return hashes


def routes(publications: np.ndarray, interests: np.ndarray, needs: np.ndarray) -> np.ndarray:
    """Return whether each publication is sent over each link (see `bloom.routes`), bool of shape (publications, links).

    ``publications``: a row for each publication, its filter. ``interests``: a row for each link, the filter received
    over it. ``needs``: a row for each link, the bits that the fuzzy hashes of all subscriptions behind it share, uint64
    of shape (links, 4).
    """
    _check_same_length(publications, interests)
    if needs.shape != (interests.shape[0], _NEEDS_WORDS) or needs.dtype != np.uint64:
        raise ParameterError(
            f"`needs` is an array of {needs.dtype} with shape {needs.shape}; it must be of uint64 with shape "
            f"({interests.shape[0]}, {_NEEDS_WORDS})"
        )
    is_routed = np.empty((publications.shape[0], interests.shape[0]), np.bool_)
    bloom_kernels.route(is_routed, publications, interests, needs)
    return is_routed


def includes(filters: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return whether each of ``filters`` includes each of ``others``: bool of shape (filters, others).

    A filter includes another if it has all bits of the other; an empty filter includes no filter.
    """
    _check_same_length(filters, others)
    is_included = np.empty((filters.shape[0], others.shape[0]), np.bool_)
    bloom_kernels.include(is_included, filters, others)
    return is_included


def matches(published: Topics, subscribed: Topics, separators: str | bytes = topics.SEPARATORS) -> np.ndarray:
    """Return whether each published topic matches each subscribed topic, bool of shape (published, subscribed).

    ``separators``: characters that divide a topic into segments. Raises AttributeFormatError for an invalid subscribed
    topic; published topics are not checked.
    """
    published_texts = _as_texts(published)
    subscribed_texts, is_separator = _check_topics(subscribed, separators, subscribed=True)
    is_match = np.empty((len(published_texts), len(subscribed_texts)), np.bool_)
    bloom_kernels.match(is_match, *published_texts, *subscribed_texts, is_separator)
    return is_match


def from_vectors(vectors: Sequence[BitVector]) -> np.ndarray:
    """Return bit vectors of one length as the rows of an array, uint64 of shape (vectors, length / 64).

    Raises ParameterError if the lengths differ, or if ``vectors`` is empty.
    """
    if not vectors or len({vector.length for vector in vectors}) != 1:
        lengths = sorted({vector.length for vector in vectors})
        raise ParameterError(f"bit vectors have the lengths {lengths}; give one or more vectors of the same length")
    data = b"".join(vector.to_bytes() for vector in vectors)
    return np.frombuffer(data, np.uint64).reshape(len(vectors), -1).copy()


def to_vectors(filters: np.ndarray) -> list[BitVector]:
    """Return the rows of ``filters``, uint64 of shape (filters, length / 64), as a list of bit vectors."""
    return [BitVector.from_bytes(row.tobytes()) for row in _check_filters(filters)]


def _as_texts(texts: Topics) -> Texts:
    return texts if isinstance(texts, Texts) else Texts.of(texts)


def _check_topics(texts: Topics, separators: str | bytes, subscribed: bool) -> tuple[Texts, np.ndarray]:
    """Check topics; return (the topics as `Texts`, is_separator), which the compiled loops need.

    is_separator has a flag for each of the 256 byte values: whether the byte is a separator. ``subscribed``: whether
    the topics may contain wildcards. Raises AttributeFormatError for the first invalid topic.
    """
    is_separator = np.zeros(256, np.bool_)
    is_separator[list(topics.separator_bytes(separators))] = True
    texts = _as_texts(texts)
    invalid_index = bloom_kernels.first_invalid(*texts, is_separator, topics.LONGEST_B, subscribed)
    if invalid_index >= 0:
        check_topic = topics.check_subscription_topic if subscribed else topics.check_publication_topic
        check_topic(texts.text(invalid_index), separators)
    return texts, is_separator


def _empty_filters(count: int, length: int, hashes: int) -> np.ndarray:
    if not 1 <= hashes <= MOST_HASHES:
        raise ParameterError(f"`hashes` is {hashes!r}; it must be a number from 1 to {MOST_HASHES}")
    return np.zeros((count, BitVector(length).length // WORD), np.uint64)


def _check_filters(filters: np.ndarray) -> np.ndarray:
    """Return ``filters``; raise ParameterError unless they are an array of uint64 with two dimensions."""
    if filters.ndim != 2 or filters.dtype != np.uint64:
        raise ParameterError(
            f"`filters` is an array of {filters.dtype} with shape {filters.shape}; it must be of uint64 with two "
            "dimensions"
        )
    return filters


def _check_same_length(filters: np.ndarray, others: np.ndarray) -> None:
    if _check_filters(filters).shape[1] != _check_filters(others).shape[1]:
        lengths = f"{WORD * filters.shape[1]} and {WORD * others.shape[1]}"
        raise ParameterError(f"filters have {lengths} bits; all must have the same length")

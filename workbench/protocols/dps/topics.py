"""DPS's topic strings: their validity, the items that filters hold, and the exact match at the subscriber.

Theory of operation
    A topic is a text of segments between separators: ``a/b/c``. A subscription may have wildcards: ``+`` stands for one
    segment, ``#`` at the end for one or more. A filter (`workbench.protocols.dps.bloom`) can only show whether it
    contains an item, a piece of text. So publishers and subscribers break topics into items. If a publication matches a
    subscription, it has all items of the subscription.

    Publication ``a/b/c``          the topic ``a/b/c``; its prefixes ``a/`` and ``a/b/``; each segment after the first,
                                   with all earlier separators and the next one: ``/b/`` and ``//c``; all separators,
                                   followed by ``+``: ``//+``; the first k separators, followed by ``#``, for each k:
                                   ``//#``, ``/#``, ``#``.
    The same without wildcards     only the topic itself: subscriptions with wildcards will not match it.
    Subscription without wildcard  only the topic itself.
    Subscription with wildcards    the prefix before the first wildcard, and an item as above for each segment after
                                   this wildcard, except for a ``+`` that is not the last segment: ``a/+/c`` gives
                                   ``a/`` and ``//c``.

    So filters give no false negatives, but false positives: a publication ``a/b/c`` has all items of ``a/+``. `matches`
    compares the topics themselves and decides. A subscription to ``+`` or ``#`` alone has no items: it matches
    publications at its own node, and no neighbor forwards anything for it.

Cost
    Linear in the topic's bytes times its segments. `matches` uses a regular expression without backtracking for each
    subscription, which is compiled once.

Limits
    A topic has 1 to 2048 bytes and neither begins nor ends with a separator; a publication has no ``+`` or ``#``. Empty
    segments in the middle are allowed, as in the reference's code; its documentation forbids them. Separators are up to
    12 bytes in UTF-8. Messages do not carry them: all nodes of a mesh must use the same. Topics are compared byte by
    byte.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import AnyStr

from workbench.errors import AttributeFormatError, ParameterError

SEPARATORS = "/"
LONGEST_B = 2048
MOST_SEPARATORS = 12

_ANY_SEGMENT, _ANY_REST = b"+", b"#"
_WILDCARD = re.compile(b"[+#]")


def publication_items(topic: AnyStr, separators: str | bytes = SEPARATORS, wildcards: bool = True) -> list[AnyStr]:
    """Return the strings that a publication's topic puts into its Bloom filter, of the topic's type (str or bytes).

    ``separators``: characters that divide the topic into segments. ``wildcards``: whether subscriptions with wildcards
    can match the publication, which takes more strings. Raises AttributeFormatError for an invalid topic.
    """
    topic_bytes = check_publication_topic(topic, separators)
    if not wildcards:
        return _as_type_of(topic, [topic_bytes])
    segments, topic_separators = _split(topic_bytes, separators)
    joined_separators = b"".join(topic_separators)
    topic_items = [topic_bytes]
    prefix_end = 0
    for segment, separator in zip(segments, topic_separators, strict=False):
        prefix_end += len(segment) + len(separator)
        topic_items.append(topic_bytes[:prefix_end])
    topic_items += [
        _segment_item(segments, joined_separators, segment_index) for segment_index in range(1, len(segments))
    ]
    topic_items += _wildcard_items(joined_separators)
    return _as_type_of(topic, topic_items)


def subscription_items(topic: AnyStr, separators: str | bytes = SEPARATORS) -> list[AnyStr]:
    """Return the strings that a subscription's topic puts into its Bloom filter, of the topic's type (str or bytes).

    The list is empty for a topic that is only a wildcard. Raises AttributeFormatError for an invalid topic.
    """
    topic_bytes = check_subscription_topic(topic, separators)
    wildcard_position = _first_wildcard(topic_bytes)
    if wildcard_position < 0:
        return _as_type_of(topic, [topic_bytes])
    segments, topic_separators = _split(topic_bytes, separators)
    topic_items = [topic_bytes[:wildcard_position]] if wildcard_position else []
    segment_begin = 0
    for segment_index, segment in enumerate(segments):
        is_last_segment = segment_index == len(topic_separators)
        if segment_begin > wildcard_position and (segment != _ANY_SEGMENT or is_last_segment):
            topic_items.append(_segment_item(segments, b"".join(topic_separators), segment_index))
        segment_begin += len(segment) + 1
    return _as_type_of(topic, topic_items)


def matches(
    publications: str | bytes | Iterable[str | bytes],
    subscriptions: str | bytes | Iterable[str | bytes],
    separators: str | bytes = SEPARATORS,
    wildcards: bool = True,
) -> bool:
    """Return whether each topic of a subscription matches at least one topic of a publication.

    ``publications`` are the topics of one publication, and ``subscriptions`` those of one subscription; a single topic
    may be given without a list. ``separators``: characters that divide topics into segments. ``wildcards``: whether the
    publication was made with wildcards enabled, a setting that messages do not contain. If False, a topic matches only
    itself.

    Raises AttributeFormatError for an invalid topic of the subscription. Topics of the publication are not checked, as
    they may have been received.
    """
    published_topics = [as_bytes(topic) for topic in _as_list(publications)]
    if not wildcards:
        return all(check_subscription_topic(topic, separators) in published_topics for topic in _as_list(subscriptions))
    return all(
        any(pattern.fullmatch(topic) for topic in published_topics)
        for pattern in [subscription_pattern(topic, separators) for topic in _as_list(subscriptions)]
    )


@lru_cache(maxsize=4096)
def subscription_pattern(topic: str | bytes, separators: str | bytes = SEPARATORS) -> re.Pattern[bytes]:
    """Return a regular expression whose ``fullmatch`` accepts the published topics that match a subscription.

    ``topic``: topic of the subscription. The expression applies to topics as bytes. Raises AttributeFormatError for an
    invalid topic.
    """
    topic_bytes = check_subscription_topic(topic, separators)
    segments, topic_separators = _split(topic_bytes, separators)
    other_byte_pattern = b"[^" + re.escape(separator_bytes(separators)) + b"]" if separator_bytes(separators) else b"."
    # A segment ends at a separator, so each expression can match in one way only, and never backtracks.
    wildcard_patterns = {_ANY_SEGMENT: other_byte_pattern + b"*", _ANY_REST: other_byte_pattern + b".*"}
    expression = [
        wildcard_patterns.get(segment, re.escape(segment)) + re.escape(separator)
        for segment, separator in zip(segments, [*topic_separators, b""], strict=True)
    ]
    return re.compile(b"".join(expression), re.DOTALL)


def check_publication_topic(topic: str | bytes, separators: str | bytes = SEPARATORS) -> bytes:
    """Return the topic as bytes (UTF-8); raise AttributeFormatError if it is not valid in a publication."""
    topic_bytes = _check(topic, separators)
    wildcard_position = _first_wildcard(topic_bytes)
    if wildcard_position >= 0:
        raise _topic_error(topic, f"position {wildcard_position} is a wildcard; only subscriptions may have one")
    return topic_bytes


def check_subscription_topic(topic: str | bytes, separators: str | bytes = SEPARATORS) -> bytes:
    """Return the topic as bytes (UTF-8); raise AttributeFormatError if it is not valid in a subscription."""
    topic_bytes = _check(topic, separators)
    if _first_wildcard(topic_bytes) < 0:
        return topic_bytes
    segment_begin = 0
    segments, topic_separators = _split(topic_bytes, separators)
    for segment_index, segment in enumerate(segments):
        wildcard_offset = _first_wildcard(segment)
        if wildcard_offset >= 0 and len(segment) > 1:
            raise _topic_error(
                topic,
                f"the wildcard at position {segment_begin + wildcard_offset} must be a whole segment, as in a/+/b",
            )
        if segment == _ANY_REST and segment_index < len(topic_separators):
            raise _topic_error(topic, f"position {segment_begin} is a #, which may only be the last segment")
        segment_begin += len(segment) + 1
    return topic_bytes


def warning_of_wildcards(topics: Iterable[str], separators: str = SEPARATORS) -> str:
    """Return the text of a warning if each of a subscription's topics is ``+`` or ``#`` alone, else an empty text.

    Such a subscription gets nothing over links.
    """
    if any(subscription_items(topic, separators) for topic in topics):
        return ""
    return (
        f"a subscription to {' and '.join(topics)} alone gets only publications of this node: it sets no bit of the "
        "Bloom filter by which neighbors select publications; "
        f"subscribe to +{separators[0]}# for all topics of two or more levels"
    )


@lru_cache(maxsize=256)
def separator_bytes(separators: str | bytes) -> bytes:
    """Return the separators as bytes; raise ParameterError if they have over 12 bytes or contain a wildcard."""
    joined_separators = as_bytes(separators)
    if len(joined_separators) > MOST_SEPARATORS:
        raise ParameterError(
            f"`separators` is {separators!r}, which has {len(joined_separators)} bytes; "
            f"at most {MOST_SEPARATORS} are allowed"
        )
    if _first_wildcard(joined_separators) >= 0:
        raise ParameterError(
            f"`separators` is {separators!r}, which contains the wildcard + or #; choose other characters"
        )
    return joined_separators


def _check(topic: str | bytes, separators: str | bytes) -> bytes:
    topic_bytes = as_bytes(topic)
    if not topic_bytes:
        raise _topic_error(topic, f"it is empty; a topic has 1 to {LONGEST_B} bytes")
    if len(topic_bytes) > LONGEST_B:
        raise AttributeFormatError(
            f"topic {topic[:20]!r}... has {len(topic_bytes)} bytes; a topic has 1 to {LONGEST_B}, so shorten it at "
            f"position {LONGEST_B}"
        )
    separators_as_bytes = separator_bytes(separators)
    for end_position in (0, len(topic_bytes) - 1):
        if topic_bytes[end_position] in separators_as_bytes:
            raise _topic_error(
                topic, f"position {end_position} is a separator; a topic neither begins nor ends with one"
            )
    return topic_bytes


def _topic_error(topic: str | bytes, reason: str) -> AttributeFormatError:
    return AttributeFormatError(f"topic {topic!r}: {reason}")


def _first_wildcard(data: bytes) -> int:
    """Return the position of the first wildcard in a topic, or -1 if it has no wildcard."""
    match = _WILDCARD.search(data)
    return match.start() if match else -1


def _split(data: bytes, separators: str | bytes) -> tuple[list[bytes], list[bytes]]:
    """Return (segments of a topic, separators between the segments); each separator is one byte."""
    pattern = _separator_pattern(separators)
    if pattern is None:
        return [data], []
    segments_and_separators = pattern.split(data)
    return segments_and_separators[::2], segments_and_separators[1::2]


@lru_cache(maxsize=256)
def _separator_pattern(separators: str | bytes) -> re.Pattern[bytes] | None:
    joined_separators = separator_bytes(separators)
    return re.compile(b"([" + re.escape(joined_separators) + b"])") if joined_separators else None


@lru_cache(maxsize=256)
def _wildcard_items(joined_separators: bytes) -> tuple[bytes, ...]:
    """Return the items of a publication's filter that consist only of separators and a wildcard.

    ``joined_separators``: all separators of the topic. For ``a/b/c`` they are ``//``, and the items ``//+``, ``//#``,
    ``/#`` and ``#``.
    """
    return joined_separators + _ANY_SEGMENT, *(
        joined_separators[:count] + _ANY_REST for count in range(len(joined_separators), -1, -1)
    )


def _segment_item(segments: list[bytes], joined_separators: bytes, index: int) -> bytes:
    """Return the item by which a filter contains segment ``index`` of a topic: ``/b/`` for segment 1 of ``a/b/c``.

    The item consists of all separators before the segment, the segment, and the separator after it, if any.
    ``segments``: segments of the topic. ``joined_separators``: all separators of the topic, joined; each is one byte.
    """
    return joined_separators[:index] + segments[index] + joined_separators[index : index + 1]


def as_bytes(topic: str | bytes) -> bytes:
    """Return the bytes of a topic (UTF-8); raise AttributeFormatError if it contains a surrogate code point."""
    # Bytes from the wire that are not UTF-8 are lone surrogates in a text, and become the same bytes again.
    if not isinstance(topic, str):
        return bytes(topic)
    try:
        return topic.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise _topic_error(topic, f"position {error.start} is a lone surrogate, which UTF-8 cannot encode") from None


def _as_type_of(topic: AnyStr, items: list[bytes]) -> list[AnyStr]:
    if isinstance(topic, str):
        return [item.decode("utf-8", "surrogateescape") for item in items]
    return items


def _as_list(topics: str | bytes | Iterable[str | bytes]) -> Iterable[str | bytes]:
    return (topics,) if isinstance(topics, (str, bytes)) else topics

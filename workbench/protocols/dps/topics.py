"""DPS's topic strings: what is valid, the items that go into filters, and the match at the subscriber.

Theory of operation
    A topic is a text of segments between separators: ``a/b/c``. A subscription may have wildcards: ``+`` stands for one
    segment, ``#`` at the end for one or more. A filter (`workbench.protocols.dps.bloom`) knows only whole items, so
    both sides break their topics into items such that a subscription's are among those of every publication it matches.

    Publication ``a/b/c``          the topic ``a/b/c``; each prefix, ``a/`` and ``a/b/``; each later segment with the
                                   separators before it and the one behind it, ``/b/`` and ``//c``; the levels,
                                   ``//+``; and ``//#``, ``/#``, ``#``.
    Without wildcards              the topic alone: it will only be found by subscriptions that spell it out.
    Subscription without wildcard  the topic alone.
    Subscription with wildcards    the prefix before the first wildcard, and each segment behind it as above, but for
                                   ``+`` in the middle: ``a/+/c`` gives ``a/``, ``//c``.

    So a filter's "no" is right and its "yes" is a maybe: ``a/+`` and ``a/#`` have the same items. `matches` compares
    the texts themselves and has the last word. A subscription to ``+`` or ``#`` alone has no items: it matches what is
    here, and asks nobody else for anything.

Cost
    Linear in the topic's bytes times its segments; a match is a regular expression without backtracking, compiled once.

Limits
    A topic has 1 to 2048 bytes and neither begins nor ends with a separator; a publication has no ``+`` or ``#``. Empty
    segments in the middle are allowed: the reference's documentation says they are not, its code that they are.
    Separators are up to 12 characters, by their bytes in UTF-8. They are not on the wire: all nodes of a mesh must have
    the same. Topics are compared byte by byte.

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

_ONE, _REST = b"+", b"#"
_WILDCARD = re.compile(b"[+#]")


def publication_items(topic: AnyStr, separators: str | bytes = SEPARATORS, wildcards: bool = True) -> list[AnyStr]:
    """The items of a publication's topic, text for text and bytes for bytes; AttributeFormatError if it is invalid.

    Without ``wildcards``, subscriptions with wildcards do not find the publication through a filter.
    """
    data = check_publication_topic(topic, separators)
    if not wildcards:
        return _like(topic, [data])
    segments, between = _split(data, separators)
    levels = b"".join(between)
    items = [data]
    end = 0
    for segment, separator in zip(segments, between, strict=False):
        end += len(segment) + len(separator)
        items.append(data[:end])
    items += [_placed(segments, levels, place) for place in range(1, len(segments))]
    items.append(levels + _ONE)
    items += [levels[:count] + _REST for count in range(len(levels), -1, -1)]
    return _like(topic, items)


def subscription_items(topic: AnyStr, separators: str | bytes = SEPARATORS) -> list[AnyStr]:
    """The items of a subscription's topic, text for text and bytes for bytes; AttributeFormatError if it is invalid.

    None for a wildcard alone.
    """
    data = check_subscription_topic(topic, separators)
    wildcard = _first_wildcard(data)
    if wildcard < 0:
        return _like(topic, [data])
    segments, between = _split(data, separators)
    items = [data[:wildcard]] if wildcard else []
    begin = 0
    for place, segment in enumerate(segments):
        is_last = place == len(between)
        if begin > wildcard and (segment != _ONE or is_last):
            items.append(_placed(segments, b"".join(between), place))
        begin += len(segment) + 1
    return _like(topic, items)


def matches(
    publications: str | bytes | Iterable[str | bytes],
    subscriptions: str | bytes | Iterable[str | bytes],
    separators: str | bytes = SEPARATORS,
    wildcards: bool = True,
) -> bool:
    """Whether each topic of a subscription matches one or more topics of a publication.

    Without ``wildcards`` a topic matches only itself: what the filter of a publication without wildcards comes to. No
    message tells that it is one.

    A topic alone will do for a list of one. AttributeFormatError if a subscription's topic is invalid; publications may
    come from the wire, where nobody has checked them, and are compared as they are.
    """
    published = [as_bytes(topic) for topic in _listed(publications)]
    if not wildcards:
        return all(check_subscription_topic(topic, separators) in published for topic in _listed(subscriptions))
    return all(
        any(pattern.fullmatch(topic) for topic in published)
        for pattern in [subscription_pattern(topic, separators) for topic in _listed(subscriptions)]
    )


@lru_cache(maxsize=4096)
def subscription_pattern(topic: str | bytes, separators: str | bytes = SEPARATORS) -> re.Pattern[bytes]:
    """What matches a publication's topic (bytes, with ``fullmatch``); AttributeFormatError if ``topic`` is invalid."""
    data = check_subscription_topic(topic, separators)
    segments, between = _split(data, separators)
    outside = b"[^" + re.escape(separator_bytes(separators)) + b"]" if separator_bytes(separators) else b"."
    # A segment ends where a separator is, so each expression has one way to match and never tries another.
    wild = {_ONE: outside + b"*", _REST: outside + b".*"}
    expression = [
        wild.get(segment, re.escape(segment)) + re.escape(separator)
        for segment, separator in zip(segments, [*between, b""], strict=True)
    ]
    return re.compile(b"".join(expression), re.DOTALL)


def check_publication_topic(topic: str | bytes, separators: str | bytes = SEPARATORS) -> bytes:
    """The topic's bytes; AttributeFormatError if no publication may have it."""
    data = _check(topic, separators)
    wildcard = _first_wildcard(data)
    if wildcard >= 0:
        raise _error(topic, f"position {wildcard} is a wildcard; only subscriptions may have one")
    return data


def check_subscription_topic(topic: str | bytes, separators: str | bytes = SEPARATORS) -> bytes:
    """The topic's bytes; AttributeFormatError if no subscription may have it."""
    data = _check(topic, separators)
    if _first_wildcard(data) < 0:
        return data
    position = 0
    segments, between = _split(data, separators)
    for place, segment in enumerate(segments):
        wildcard = _first_wildcard(segment)
        if wildcard >= 0 and len(segment) > 1:
            raise _error(topic, f"position {position + wildcard} is a wildcard, which must be a segment of its own")
        if segment == _REST and place < len(between):
            raise _error(topic, f"position {position} is a #, which may only be the last segment")
        position += len(segment) + 1
    return data


def asks_nobody(topics: Iterable[str], separators: str = SEPARATORS) -> str:
    """What to say of a subscription to topics that have no items, wildcards alone; empty if some have."""
    if any(subscription_items(topic, separators) for topic in topics):
        return ""
    return (
        f"a subscription to {' and '.join(topics)} alone asks no neighbor for anything, as a wildcard alone sets no "
        f"bit of a filter: it is given what is published at this node, and nothing over links; +{separators[0]}# asks "
        "for all topics of two levels and more"
    )


@lru_cache(maxsize=256)
def separator_bytes(separators: str | bytes) -> bytes:
    """The separators as bytes; ParameterError unless they are up to 12 and none is a wildcard."""
    data = as_bytes(separators)
    if len(data) > MOST_SEPARATORS:
        raise ParameterError(f"{len(data)} bytes of separators {separators!r}; there may be {MOST_SEPARATORS}")
    if _first_wildcard(data) >= 0:
        raise ParameterError(f"the separators {separators!r} contain a wildcard, + or #; choose others")
    return data


def _check(topic: str | bytes, separators: str | bytes) -> bytes:
    data = as_bytes(topic)
    if not data:
        raise _error(topic, f"it is empty; a topic has 1 to {LONGEST_B} bytes")
    if len(data) > LONGEST_B:
        raise AttributeFormatError(
            f"topic {topic[:20]!r}... has {len(data)} bytes, and position {LONGEST_B} is one too many"
        )
    between = separator_bytes(separators)
    for position in (0, len(data) - 1):
        if data[position] in between:
            raise _error(topic, f"position {position} is a separator; a topic neither begins nor ends with one")
    return data


def _error(topic: str | bytes, reason: str) -> AttributeFormatError:
    return AttributeFormatError(f"topic {topic!r}: {reason}")


def _first_wildcard(data: bytes) -> int:
    """The position of the first wildcard, -1 if there is none."""
    match = _WILDCARD.search(data)
    return match.start() if match else -1


def _split(data: bytes, separators: str | bytes) -> tuple[list[bytes], list[bytes]]:
    """(segments, the separators between them)."""
    splitter = _splitter(separators)
    if splitter is None:
        return [data], []
    parts = splitter.split(data)
    return parts[::2], parts[1::2]


@lru_cache(maxsize=256)
def _splitter(separators: str | bytes) -> re.Pattern[bytes] | None:
    data = separator_bytes(separators)
    return re.compile(b"([" + re.escape(data) + b"])") if data else None


def _placed(segments: list[bytes], levels: bytes, place: int) -> bytes:
    """Return a segment with all separators before it and the one behind it; ``levels``: the separators, a byte each."""
    return levels[:place] + segments[place] + levels[place : place + 1]


def as_bytes(topic: str | bytes) -> bytes:
    """Return the bytes of a topic; AttributeFormatError for half of a character."""
    # What is no UTF-8 on the wire is a lone surrogate in a text, and becomes the same bytes again.
    if not isinstance(topic, str):
        return bytes(topic)
    try:
        return topic.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise _error(topic, f"position {error.start} is half of a character, which UTF-8 cannot hold") from None


def _like(topic: AnyStr, items: list[bytes]) -> list[AnyStr]:
    if isinstance(topic, str):
        return [item.decode("utf-8", "surrogateescape") for item in items]
    return items


def _listed(topics: str | bytes | Iterable[str | bytes]) -> Iterable[str | bytes]:
    return (topics,) if isinstance(topics, (str, bytes)) else topics

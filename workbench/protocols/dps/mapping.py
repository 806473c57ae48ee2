"""Attributes of readings and subscriptions as topics, so that one workload runs on DPS and on the other protocols.

Rules
    TEMP IS 26.5          topic "TEMP/2650": the key's name, and the value as the integer that messages contain
    TEMP EQ 26.5          the same topic
    TEMP GE 25, NE, ...   "TEMP/+": topics have no order
    NAME IS <bytes>       "NAME/0x..." with the bytes as hex digits; EQ likewise; NE and EQ_ANY "NAME/+"
    PAYLOAD IS            "PAYLOAD/bytes", without its value; every constraint on PAYLOAD becomes "PAYLOAD/+"
    TOPIC IS "a/b/c"      the topic itself, TOPIC EQ "a/+/c" likewise, with wildcards
    no constraint         "+/+"; allowed only with the argument ``match_all`` of ``subscribe``

    The "/" is the first of the protocol's separators.

    A publication must match all topics of a subscription, as a reading must meet all constraints. The topics of a
    subscription match every reading that its constraints match, and possibly more. So a publication carries its
    attributes as data, and the subscriber's node compares the attributes with the constraints. IS attributes of a
    subscription describe the subscription itself and do not become topics.

Limits
    TOPIC NE and TOPIC EQ_ANY are refused: they match almost any topic, which a filter cannot express. Other protocols
    compare TOPIC byte by byte. match_all ("+/+") misses a reading that has only a TOPIC, unless this topic has two
    levels. As in the reference, a subscription to TOPIC EQ "#" or "+" alone sets no bit of a filter. It gets only
    publications that its own node publishes or forwards, but metrics count all publications as expected. Subscribe to
    "a/#" instead, or with match_all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workbench.attributes.keys import key_of
from workbench.attributes.model import (
    EQ,
    IS,
    PAYLOAD,
    TOPIC,
    is_blob,
    matching_samples,
    one_way_match,
)
from workbench.attributes.wire import decode_readings, encode_readings
from workbench.errors import AttributeFormatError, DecodeError, EncodeError
from workbench.protocols.dps import topics

# Precedes the attributes in a publication's data; no UTF-8 text begins with these bytes.
_MARK = b"\xffA"
_MOST_ATTRIBUTES = 255


def publication_topics(attributes: Sequence[Any], separators: str = topics.SEPARATORS) -> tuple[str, ...]:
    """Return the topics of a reading: a topic for each attribute, in this order, without duplicates.

    ``separators``: the characters that separate the levels of a topic; the result uses the first character.
    """
    return tuple(dict.fromkeys(_publication_topic(attribute, separators[0]) for attribute in attributes))


def subscription_topics(attributes: Iterable[Any], separators: str = topics.SEPARATORS) -> tuple[str, ...]:
    """Return the topics that express a subscription's constraints; ("+/+",) if it has no constraint.

    ``attributes``: the subscription's attributes; those with the operator IS are not constraints. ``separators``: the
    characters that separate the levels of a topic; the result uses the first character. Raises AttributeFormatError for
    a constraint that no topic can express.
    """
    separator = separators[0]
    topic_texts = dict.fromkeys(
        _subscription_topic(attribute, separator) for attribute in attributes if attribute.operator != IS
    )
    return tuple(topic_texts) or ("+" + separator + "+",)


def _publication_topic(attribute: Any, separator: str) -> str:
    attribute_key, _, attribute_value = attribute
    if attribute_key == TOPIC:
        return _topic_text(attribute_value)
    if attribute_key == PAYLOAD:
        return "PAYLOAD" + separator + "bytes"
    return key_of(attribute_key).name + separator + _value_text(attribute_key, attribute_value)


def _subscription_topic(attribute: Any, separator: str) -> str:
    constraint_key, operator, constraint_value = attribute
    if constraint_key == TOPIC:
        if operator != EQ:
            raise AttributeFormatError(
                "a constraint on TOPIC has the operator NE or EQ_ANY, which DPS cannot express; "
                'use EQ with a topic or wildcards: TOPIC EQ "a/#"'
            )
        return _topic_text(constraint_value)
    if operator != EQ or constraint_key == PAYLOAD:
        return key_of(constraint_key).name + separator + "+"
    return key_of(constraint_key).name + separator + _value_text(constraint_key, constraint_value)


def _value_text(key: int, value: Any) -> str:
    return "0x" + bytes(value).hex() if is_blob(key) else str(value)


def _topic_text(value: Any) -> str:
    try:
        return value.decode()
    except ValueError:
        raise AttributeFormatError(f"TOPIC is {value!r}; it must be UTF-8") from None


def encode_data(attributes: Sequence[Any]) -> bytes:
    """Return a reading as the data of a publication: a fixed mark, the number of attributes, and the attributes.

    Raises EncodeError if the reading has too many attributes.
    """
    if len(attributes) > _MOST_ATTRIBUTES:
        raise EncodeError(f"the reading has {len(attributes)} attributes; it may have {_MOST_ATTRIBUTES} at most")
    return _MARK + bytes((len(attributes),)) + encode_readings(attributes)


def decode_data(data: bytes) -> Any:
    """Return the attributes in a publication's data; raise DecodeError if `encode_data` did not produce the data."""
    if data[: len(_MARK)] != _MARK or len(data) <= len(_MARK):
        raise DecodeError(
            f"the publication's data begin with {data[:3]!r}; data of attributes begin with {_MARK!r} and their count"
        )
    return decode_readings(data, len(_MARK) + 1, data[len(_MARK)])


def samples(subscription: Iterable[Any], publication: Any, separators: str) -> list[Any]:
    """Return the readings in a publication that match a subscription, whose constraints on TOPIC may have wildcards.

    If the subscription has a constraint TOPIC EQ, the result is [``publication``] or []. Otherwise it is the result of
    `attributes.matching_samples`.
    """
    subscribed_topics = [
        _topic_text(attribute.value)
        for attribute in subscription
        if attribute.key == TOPIC and attribute.operator == EQ
    ]
    if not subscribed_topics:
        return matching_samples(subscription, publication)
    other_constraints = tuple([attribute for attribute in subscription if attribute.key != TOPIC])
    published_topics = [attribute.value for attribute in publication if attribute.key == TOPIC]
    return (
        [publication]
        if one_way_match(other_constraints, publication)
        and topics.matches(published_topics, subscribed_topics, separators)
        else []
    )

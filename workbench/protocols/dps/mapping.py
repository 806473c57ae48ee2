"""Readings and requests made of attributes, as topics: what lets one workload run on DPS and on the other protocols.

Rules
    TEMP IS 26.5          topic "TEMP/2650": the key's name and the integer of the wire; so floats have one spelling
    TEMP EQ 26.5          the same topic
    TEMP GE 25, NE, ...   "TEMP/+": topics know no order
    a blob NAME IS        "NAME/0x..." in hex digits; EQ likewise, NE and EQ_ANY "NAME/+"
    PAYLOAD IS            "PAYLOAD/bytes": what it holds is no topic, so every constraint on it is "PAYLOAD/+"
    TOPIC IS "a/b/c"      the topic itself, TOPIC EQ "a/+/c" likewise, with wildcards
    no constraint         "+/+" (match_all)

    The "/" is the first of the protocol's separators.

    A request's topics must all be met, so constraints are ANDed as they are in attributes. Topics say at most less than
    the attributes do, never more: the attributes are the publication's data, and the sink compares them exactly. IS
    attributes of a request describe it and are no topics.

Limits
    TOPIC NE and TOPIC EQ_ANY are refused: they match whatever there is, which no filter can say. Other protocols
    compare TOPIC byte by byte. match_all asks for readings; one that has nothing but a TOPIC need not have two
    levels. TOPIC EQ "#" or "+" alone asks no neighbor for anything, as in the reference: it is given what is
    published at its own node or comes by, while metrics expect every publication for it; ask for "a/#", or match_all.
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

# In front of the attributes in a publication's data; no text begins like this.
_MARK = b"\xffA"
_MOST_ATTRIBUTES = 255


def publication_topics(attributes: Sequence[Any], separators: str = topics.SEPARATORS) -> tuple[str, ...]:
    """The topics of a reading, each once, in the order of its attributes."""
    return tuple(dict.fromkeys(_published(attribute, separators[0]) for attribute in attributes))


def subscription_topics(attributes: Iterable[Any], separators: str = topics.SEPARATORS) -> tuple[str, ...]:
    """The topics of a request; AttributeFormatError for what no topic can say."""
    between = separators[0]
    texts = dict.fromkeys(_asked_for(attribute, between) for attribute in attributes if attribute.operator != IS)
    return tuple(texts) or ("+" + between + "+",)


def _published(attribute: Any, between: str) -> str:
    key, _, value = attribute
    if key == TOPIC:
        return _text(value)
    if key == PAYLOAD:
        return "PAYLOAD" + between + "bytes"
    return key_of(key).name + between + _value(key, value)


def _asked_for(attribute: Any, between: str) -> str:
    key, operator, value = attribute
    if key == TOPIC:
        if operator != EQ:
            raise AttributeFormatError(
                'DPS cannot ask for TOPIC with NE or EQ_ANY; name a topic, with wildcards: TOPIC EQ "a/#"'
            )
        return _text(value)
    if operator != EQ or key == PAYLOAD:
        return key_of(key).name + between + "+"
    return key_of(key).name + between + _value(key, value)


def _value(key: int, value: Any) -> str:
    return "0x" + bytes(value).hex() if is_blob(key) else str(value)


def _text(value: Any) -> str:
    try:
        return value.decode()
    except ValueError:
        raise AttributeFormatError(f"TOPIC is {value!r}; it must be UTF-8") from None


def encode_data(attributes: Sequence[Any]) -> bytes:
    """A reading as a publication's data: a mark, the number of attributes, and they themselves."""
    if len(attributes) > _MOST_ATTRIBUTES:
        raise EncodeError(f"a reading of {len(attributes)} attributes; there may be {_MOST_ATTRIBUTES}")
    return _MARK + bytes((len(attributes),)) + encode_readings(attributes)


def decode_data(data: bytes) -> Any:
    """The attributes in a publication's data; DecodeError if it is somebody else's."""
    if data[: len(_MARK)] != _MARK or len(data) <= len(_MARK):
        raise DecodeError("the data of a publication are no attributes")
    return decode_readings(data, len(_MARK) + 1, data[len(_MARK)])


def samples(subscription: Iterable[Any], publication: Any, separators: str) -> list[Any]:
    """As `matching_samples`, but TOPIC is compared as topics are, with wildcards."""
    asked = [
        _text(attribute.value) for attribute in subscription if attribute.key == TOPIC and attribute.operator == EQ
    ]
    if not asked:
        return matching_samples(subscription, publication)
    rest = tuple([attribute for attribute in subscription if attribute.key != TOPIC])
    named = [attribute.value for attribute in publication if attribute.key == TOPIC]
    return [publication] if one_way_match(rest, publication) and topics.matches(named, asked, separators) else []

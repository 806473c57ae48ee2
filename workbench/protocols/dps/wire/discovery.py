"""The payloads of discovery and of the registry: bytes <-> what a node says of itself, and lists of addresses.

Layout
    announcement    a map, its keys ascending: 10 interests, the union of the filters that the node's application asks
                    for; 12 data of the application, if there are any. It is published, and acknowledged with one that
                    has 3, the id of the answering node's own announcements, in front.
    goodbye         no bytes
    registration    a count, and then so many texts, each an address. The C implementation counts link-local addresses
                    too and does not write them, so there may be fewer.

    Keys that are not known are skipped.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workbench.errors import DecodeError, ParameterError
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.wire import cbor, fields

MOST_ADDRESSES = 0xFF


class Announcement(NamedTuple):
    """What a node announces of itself. ``publication_id``: of the node that answers, else None."""

    interests: BitVector
    data: bytes
    publication_id: bytes | None


def encode_announcement(announcement: Announcement) -> bytes:
    """The payload of an Announcement; EncodeError if its id has not 16 bytes."""
    interests, data, publication_id = announcement
    parts = [] if publication_id is None else [fields.byte_string(fields.ID, publication_id, fields.ID_B)]
    parts.append(cbor.unsigned(fields.INTERESTS) + interests.encode())
    if data:
        parts.append(fields.byte_string(fields.DATA, data))
    return cbor.mapping(len(parts)) + b"".join(parts)


def decode_announcement(payload: bytes, filter_bits: int) -> Announcement:
    """The Announcement of a payload; DecodeError if it is none, or has a filter that is not of ``filter_bits``."""
    where = "announcement"
    values = fields.read_map(cbor.Reader(payload), where, (fields.ID, fields.INTERESTS, fields.DATA), filter_bits)
    fields.require(values, (fields.INTERESTS,), where)
    return Announcement(values[fields.INTERESTS], values.get(fields.DATA, b""), values.get(fields.ID))


def encode_addresses(addresses: Sequence[str]) -> bytes:
    """The payload that registers addresses (texts); ParameterError if they are none or too many."""
    if not 1 <= len(addresses) <= MOST_ADDRESSES:
        raise ParameterError(f"{len(addresses)} addresses; 1 to {MOST_ADDRESSES} can be registered at once")
    return cbor.unsigned(len(addresses)) + b"".join([fields.text(one) for one in addresses])


def decode_addresses(payload: bytes) -> list[str]:
    """The texts of a registration; DecodeError if it is none. What is no UTF-8 becomes lone surrogates."""
    reader = cbor.Reader(payload)
    count = reader.unsigned("the number of addresses", MOST_ADDRESSES)
    texts = []
    while len(texts) < count and reader.peek() is not None:
        texts.append(reader.text("an address").decode("utf-8", "surrogateescape"))
    if count and not texts:
        raise DecodeError(f"a registration of {count} addresses without any")
    return texts

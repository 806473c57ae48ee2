"""Payloads of discovery and of the registry: encoding and decoding of announcements and of lists of addresses.

Layout
    announcement    a map with ascending keys: 10 interests, the union of the filters of the node's application; 12
                    optional data of the application. It is published. An acknowledgement of it is an announcement that
                    begins with 3, the id of the answering node's own announcements.
    goodbye         no bytes
    registration    a count, and as many texts, each an address. The C implementation counts link-local addresses, but
                    does not write them, so there may be fewer texts.

    Unknown keys are skipped.

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
    """A node's announcement: the interests and data of its application.

    ``publication_id`` is None, except in an answer. There it is the id of the answering node's own announcements.
    """

    interests: BitVector
    data: bytes
    publication_id: bytes | None


def encode_announcement(announcement: Announcement) -> bytes:
    """Return the payload of an Announcement; raise EncodeError if its id does not have 16 bytes."""
    interests, data, publication_id = announcement
    parts = [] if publication_id is None else [fields.byte_string(fields.ID, publication_id, fields.ID_B)]
    parts.append(cbor.unsigned(fields.INTERESTS) + interests.encode())
    if data:
        parts.append(fields.byte_string(fields.DATA, data))
    return cbor.mapping(len(parts)) + b"".join(parts)


def decode_announcement(payload: bytes, filter_bits: int) -> Announcement:
    """Return the Announcement in a payload; raise DecodeError for other bytes, or a filter of another length."""
    where = "announcement"
    values = fields.read_map(cbor.Reader(payload), where, (fields.ID, fields.INTERESTS, fields.DATA), filter_bits)
    fields.require(values, (fields.INTERESTS,), where)
    return Announcement(values[fields.INTERESTS], values.get(fields.DATA, b""), values.get(fields.ID))


def encode_addresses(addresses: Sequence[str]) -> bytes:
    """Return the payload that registers addresses; raise ParameterError unless there are 1 to 255."""
    if not 1 <= len(addresses) <= MOST_ADDRESSES:
        raise ParameterError(f"the registration has {len(addresses)} addresses; it must have 1 to {MOST_ADDRESSES}")
    return cbor.unsigned(len(addresses)) + b"".join([fields.text(address) for address in addresses])


def decode_addresses(payload: bytes) -> list[str]:
    """Return the addresses of a registration; raise DecodeError for other bytes.

    Bytes that are not UTF-8 become lone surrogates.
    """
    reader = cbor.Reader(payload)
    count = reader.unsigned("the number of addresses", MOST_ADDRESSES)
    texts = []
    while len(texts) < count and reader.peek() is not None:
        texts.append(reader.text("an address").decode("utf-8", "surrogateescape"))
    if count and not texts:
        raise DecodeError(f"the registration has a count of {count} addresses, but contains no address")
    return texts

"""Payloads of discovery and of the registry: encoding and decoding of announcements and of lists of addresses.

Layout
    announcement    a map with ascending keys: 10 interests, the union of the filters of the node's application; 12
                    optional data of the application. It is the payload of a publication. A node that receives it
                    acknowledges it with its own announcement as payload. This answer begins with key 3, the publication
                    id of the answering node's announcements.
    goodbye         no bytes: the payload of a node's last announcement before it closes
    registration    the number of addresses, and each address as a text. The C implementation counts link-local
                    addresses, but does not write them, so there may be fewer texts.

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
    """A node's announcement of itself to discovery: the interests of its application (a filter), and its data.

    ``publication_id``: in an answer to the announcement of another node, the id under which the answering node
    publishes its own announcements. None in an announcement that is not an answer.
    """

    interests: BitVector
    data: bytes
    publication_id: bytes | None


def encode_announcement(announcement: Announcement) -> bytes:
    """Return the payload of an Announcement; raise EncodeError if its id does not have 16 bytes."""
    interests, application_data, publication_id = announcement
    encoded_fields = [] if publication_id is None else [fields.byte_string(fields.ID, publication_id)]
    encoded_fields.append(cbor.unsigned(fields.INTERESTS) + interests.encode())
    if application_data:
        encoded_fields.append(fields.byte_string(fields.DATA, application_data))
    return cbor.mapping(len(encoded_fields)) + b"".join(encoded_fields)


def decode_announcement(payload: bytes, filter_bits: int) -> Announcement:
    """Return the Announcement in a payload; raise DecodeError for other bytes, or a filter of another length."""
    map_name = "announcement"
    map_fields = fields.read_map(
        cbor.Reader(payload), map_name, (fields.ID, fields.INTERESTS, fields.DATA), filter_bits
    )
    fields.require(map_fields, (fields.INTERESTS,), map_name)
    return Announcement(map_fields[fields.INTERESTS], map_fields.get(fields.DATA, b""), map_fields.get(fields.ID))


def encode_addresses(addresses: Sequence[str]) -> bytes:
    """Return the payload of a registration with these addresses; raise ParameterError unless there are 1 to 255."""
    if not 1 <= len(addresses) <= MOST_ADDRESSES:
        raise ParameterError(f"the registration has {len(addresses)} addresses; it must have 1 to {MOST_ADDRESSES}")
    return cbor.unsigned(len(addresses)) + b"".join([fields.text(address) for address in addresses])


def decode_addresses(payload: bytes) -> list[str]:
    """Return the addresses in the payload of a registration; raise DecodeError for other bytes.

    If an address is not UTF-8, its invalid bytes become lone surrogates.
    """
    reader = cbor.Reader(payload)
    address_count = reader.unsigned("the number of addresses", MOST_ADDRESSES)
    addresses = []
    while len(addresses) < address_count and reader.peek() is not None:
        addresses.append(reader.text("an address").decode("utf-8", "surrogateescape"))
    if address_count and not addresses:
        raise DecodeError(f"the registration has a count of {address_count} addresses, but contains no address")
    return addresses

"""Encode and decode coded diffusion's frames: whole events, coded packets, and requests for more packets.

Layout
    The table of fields in ``dissector.py`` describes it; docs/FRAMES.md shows it.

    The number of attributes and the attributes are the event's bytes; a coded packet contains their length. The
    header's field byte is the number of a finite field: 0 GF(2), 1 GF(2^4), 2 GF(2^8), 3 GF(2^16), 4 GF(257). The
    checksum of a frame covers all bytes before it, because a wrong byte in one packet would corrupt every packet that
    is combined from it.

    The coded data are the event's bytes and the event's checksum, u32: the CRC-32 of origin and sequence, as encoded in
    a frame, and the event's bytes. A forged packet may have a correct frame checksum, but an event decoded from it
    has a wrong event checksum.

    The header determines the length of the information vector; a frame with another length is refused. So packets with
    the same id, generation size, field and length fit together. An encoding vector of zeros carries no information and
    is refused too.

This file runs on a mote too (MicroPython's subset of Python).
"""

import struct
from binascii import crc32
from collections import namedtuple

from workbench.attributes.event_bytes import (
    CHECKSUM_B,
    LONGEST_EVENT_B,
    U16,
    check_id,
    event_attributes,
    event_bytes,
    length_before_checksum_B,
    with_checksum,
)
from workbench.coding.fields import field as field_of
from workbench.coding.rlnc import chunk_B
from workbench.errors import DecodeError, EncodeError

EVENT = 0x45
CODED = 0x43
REQUEST = 0x52
FIELD_ORDERS = (2, 16, 256, 65536, 257)  # the order of each finite field, indexed by its number in a header

Event = namedtuple("Event", ("origin", "sequence", "attributes"))
# encoding_vector: a tuple of coefficients; information_vector: a packed row (`fields.Field`).
Coded = namedtuple(
    "Coded",
    ("origin", "sequence", "hops", "generation_size", "field", "length_B", "encoding_vector", "information_vector"),
)
# rank: the rank of the sender's decoding matrix of the event.
Request = namedtuple("Request", ("origin", "sequence", "rank"))

EVENT_LAYOUT = "<BII"
CODED_LAYOUT = "<BIIHBBH"
REQUEST_LAYOUT = "<BIIB"
_HEADERS_B = {EVENT: 9, CODED: 15, REQUEST: 10}
_NAMES = {EVENT: "event", CODED: "coded", REQUEST: "request"}
LARGEST_GENERATION = 255


def coded_bytes(origin, sequence, attributes):
    """Return the bytes that are split into chunks and combined: the event's bytes, then the event's checksum.

    Raises EncodeError if the event is too long.
    """
    data = event_bytes(attributes)
    return data + struct.pack("<I", _event_checksum(origin, sequence, data))


def coded_attributes(origin, sequence, data):
    """Return the attributes of an event from ``data``, the result of `coded_bytes`.

    Raises DecodeError if the event's checksum is wrong.
    """
    event = data[:-CHECKSUM_B]
    if bytes(data[-CHECKSUM_B:]) != struct.pack("<I", _event_checksum(origin, sequence, event)):
        raise DecodeError(
            "the coded packets of event %d of node %d decode to a wrong checksum; one is damaged or of another event"
            % (sequence, origin)
        )
    return event_attributes(event)


def _event_checksum(origin, sequence, data):
    return crc32(data, crc32(struct.pack("<II", origin, sequence)))


def information_B(length_B, generation_size, order):
    """Return the size in bytes of each information vector of an event of ``length_B`` bytes.

    ``order``: the number of elements of the field.
    """
    field = field_of(order)
    return field.row_B(chunk_B(length_B + CHECKSUM_B, generation_size, field))


def encode_event(event):
    """Return the frame of an Event. Raises EncodeError if a field is out of range."""
    check_id(event.origin, event.sequence)
    return with_checksum(struct.pack(EVENT_LAYOUT, EVENT, event.origin, event.sequence) + event_bytes(event.attributes))


def encode_coded(coded):
    """Return the frame of a Coded packet. Raises EncodeError if a field is out of range."""
    origin, sequence, hops, generation_size, field_order, length_B, vector, information = coded
    check_id(origin, sequence)
    if field_order not in FIELD_ORDERS:
        raise EncodeError(
            "the finite field of a coded packet has order %r; it must be one of %r" % (field_order, FIELD_ORDERS)
        )
    if not 1 <= generation_size <= LARGEST_GENERATION or len(vector) != generation_size:
        raise EncodeError(
            "generation_size is %r and the encoding vector has %d coefficients; both must be equal, from 1 to %d"
            % (generation_size, len(vector), LARGEST_GENERATION)
        )
    if not (0 <= hops <= U16 and 1 <= length_B <= LONGEST_EVENT_B):
        raise EncodeError(
            "a coded packet has hops %r and length_B %r; hops must be from 0 to %d, length_B from 1 to %d"
            % (hops, length_B, U16, LONGEST_EVENT_B)
        )
    if not any(vector):
        raise EncodeError("all coefficients of the encoding vector are 0; at least one must not be 0")
    expected_B = information_B(length_B, generation_size, field_order)
    if len(information) != expected_B:
        raise EncodeError("the information vector has %d bytes; it must have %d" % (len(information), expected_B))
    field_number = FIELD_ORDERS.index(field_order)
    header = struct.pack(CODED_LAYOUT, CODED, origin, sequence, hops, generation_size, field_number, length_B)
    return with_checksum(header + bytes(field_of(field_order).pack(vector)) + bytes(information))


def encode_request(request):
    """Return the frame of a Request. Raises EncodeError if a field is out of range."""
    origin, sequence, rank = request
    check_id(origin, sequence)
    if not 0 <= rank < LARGEST_GENERATION:
        raise EncodeError("a request has rank %r; it must be from 0 to %d" % (rank, LARGEST_GENERATION - 1))
    return with_checksum(struct.pack(REQUEST_LAYOUT, REQUEST, origin, sequence, rank))


def decode(frame):
    """Return the Event, Coded or Request in a frame. Raises only DecodeError, for bytes that are not a valid frame."""
    type_byte = frame[0] if len(frame) else 0
    if type_byte not in _HEADERS_B:
        raise DecodeError("the frame begins with %r; its first byte must be E, C or R" % (bytes(frame[:1]),))
    header_B = _HEADERS_B[type_byte]
    data_end = length_before_checksum_B(frame, header_B)
    if type_byte == CODED:
        return _decode_coded(frame, data_end)
    if type_byte == REQUEST:
        return _decode_request(frame, data_end)
    if data_end - header_B > LONGEST_EVENT_B:
        raise DecodeError("an event has %d bytes; it may have at most %d" % (data_end - header_B, LONGEST_EVENT_B))
    _, origin, sequence = struct.unpack_from(EVENT_LAYOUT, frame, 0)
    return Event(origin, sequence, event_attributes(frame[header_B:data_end]))


def _decode_request(frame, end):
    _, origin, sequence, rank = struct.unpack_from(REQUEST_LAYOUT, frame, 0)
    if end != _HEADERS_B[REQUEST] or rank >= LARGEST_GENERATION:
        raise DecodeError(
            "invalid request: %d bytes before the checksum and rank %d; allowed: %d bytes and a rank below %d"
            % (end, rank, _HEADERS_B[REQUEST], LARGEST_GENERATION)
        )
    return Request(origin, sequence, rank)


def _decode_coded(frame, end):
    header_B = _HEADERS_B[CODED]
    _, origin, sequence, hops, generation_size, field_number, length_B = struct.unpack_from(CODED_LAYOUT, frame, 0)
    if generation_size < 1 or field_number >= len(FIELD_ORDERS) or length_B < 1:
        raise DecodeError(
            "invalid coded packet: event of %d bytes, generation size %d, finite field number %d; "
            "allowed: 1 byte or more, size 1 or more, field numbers below %d"
            % (length_B, generation_size, field_number, len(FIELD_ORDERS))
        )
    field = field_of(FIELD_ORDERS[field_number])
    vector_B = field.size_B(generation_size)
    expected_B = header_B + vector_B + information_B(length_B, generation_size, FIELD_ORDERS[field_number])
    if end != expected_B:
        raise DecodeError("a coded packet has %d bytes before its checksum; its header requires %d" % (end, expected_B))
    packed = frame[header_B : header_B + vector_B]
    field.check_row(packed)
    vector = tuple(field.unpack(packed, generation_size))
    if bytes(field.pack(vector)) != packed:
        raise DecodeError("the padding bits after the last coefficient of an encoding vector are not 0; they must be 0")
    if not any(vector):
        raise DecodeError("all coefficients of the encoding vector are 0; at least one must not be 0")
    information = bytes(frame[header_B + vector_B : end])
    field.check_row(information)
    return Coded(origin, sequence, hops, generation_size, FIELD_ORDERS[field_number], length_B, vector, information)


def describe(frame, broadcast=True):
    """Return (message name, origin, sequence) of a frame that this module encoded, for traces."""
    origin, sequence = struct.unpack_from("<II", frame, 1)
    return _NAMES[frame[0]], origin, sequence

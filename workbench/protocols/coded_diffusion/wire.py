"""Coded diffusion's frames: bytes <-> a whole event, a coded packet of an event's generation, a request for more.

Layout (little-endian, packed)
    event    type u8 (0x45, "E"), origin u32, sequence u32, AttNum u8, attributes, CRC-32 u32
    coded    type u8 (0x43, "C"), origin u32, sequence u32, hops u16, generation size u8, field u8, event length in
             bytes u16, encoding vector (a packed row of that many symbols), information vector, CRC-32 u32
    request  type u8 (0x52, "R"), origin u32, sequence u32, rank u8, CRC-32 u32

    Attributes lie as `attributes/wire.py` has them. AttNum and the attributes are the event's bytes, whose length is in
    a coded packet. Fields by their numbers: 0 GF(2), 1 GF(2^4), 2 GF(2^8), 3 GF(2^16), 4 GF(257). The checksum of a
    frame is over all before it: a wrong byte in one packet would spoil every packet that is combined with it.

    What is coded is the event's bytes and a checksum of the event, u32: the CRC-32 of origin and sequence, as they lie
    in a frame, and the event's bytes. A packet that was made up has a right checksum of its own; what is decoded with
    it has not.

    How long the information vector is follows from the header, and a frame where it is not is refused: so all packets
    of one event that say the same of it fit together. An encoding vector of zeros is refused too: it says nothing.

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
    sealed,
    unsealed_B,
)
from workbench.coding.fields import field as field_of
from workbench.coding.rlnc import chunk_B
from workbench.errors import DecodeError, EncodeError

EVENT = 0x45
CODED = 0x43
REQUEST = 0x52
FIELD_ORDERS = (2, 16, 256, 65536, 257)  # orders, by number

Event = namedtuple("Event", ("origin", "sequence", "attributes"))
# vectors: of the encoding, symbols as a tuple; of the information, a packed row (`fields.Field`).
Coded = namedtuple(
    "Coded",
    ("origin", "sequence", "hops", "generation_size", "field", "length_B", "encoding_vector", "information_vector"),
)
# rank: of the matrix of the node that asks.
Request = namedtuple("Request", ("origin", "sequence", "rank"))

EVENT_LAYOUT = "<BII"
CODED_LAYOUT = "<BIIHBBH"
REQUEST_LAYOUT = "<BIIB"
_HEADERS_B = {EVENT: 9, CODED: 15, REQUEST: 10}
_NAMES = {EVENT: "event", CODED: "coded", REQUEST: "request"}
LARGEST_GENERATION = 255


def coded_bytes(origin, sequence, attributes):
    """The bytes of an event that are coded: its own, and its checksum. EncodeError if they are too many."""
    data = event_bytes(attributes)
    return data + struct.pack("<I", _event_checksum(origin, sequence, data))


def coded_attributes(origin, sequence, data):
    """The attributes in the bytes that were decoded; DecodeError if they are not this event's."""
    event = data[:-CHECKSUM_B]
    if bytes(data[-CHECKSUM_B:]) != struct.pack("<I", _event_checksum(origin, sequence, event)):
        raise DecodeError("what was decoded has a wrong checksum: its packets do not belong together")
    return event_attributes(event)


def _event_checksum(origin, sequence, data):
    return crc32(data, crc32(struct.pack("<II", origin, sequence)))


def information_B(length_B, generation_size, order):
    """Bytes of each information vector of an event of so many bytes; the rows are those of `rlnc.split`'s chunks."""
    field = field_of(order)
    return field.row_B(chunk_B(length_B + CHECKSUM_B, generation_size, field))


def encode_event(event):
    """The frame of an Event; EncodeError if a field is out of range."""
    check_id(event.origin, event.sequence)
    return sealed(struct.pack(EVENT_LAYOUT, EVENT, event.origin, event.sequence) + event_bytes(event.attributes))


def encode_coded(coded):
    """The frame of a Coded packet; EncodeError if a field is out of range."""
    origin, sequence, hops, generation_size, order, length_B, vector, information = coded
    check_id(origin, sequence)
    if order not in FIELD_ORDERS:
        raise EncodeError("a coded packet's field is of order %r; it must be one of %r" % (order, FIELD_ORDERS))
    if not 1 <= generation_size <= LARGEST_GENERATION or len(vector) != generation_size:
        raise EncodeError("%d coefficients do not fit a generation of %d" % (len(vector), generation_size))
    if not (0 <= hops <= U16 and 1 <= length_B <= LONGEST_EVENT_B):
        raise EncodeError("a coded packet's hops or length, %r and %r, is out of range" % (hops, length_B))
    if not any(vector):
        raise EncodeError("an encoding vector of zeros says nothing: draw it again")
    expected_B = information_B(length_B, generation_size, order)
    if len(information) != expected_B:
        raise EncodeError("an information vector has %d bytes; it must have %d" % (len(information), expected_B))
    number = FIELD_ORDERS.index(order)
    head = struct.pack(CODED_LAYOUT, CODED, origin, sequence, hops, generation_size, number, length_B)
    return sealed(head + bytes(field_of(order).pack(vector)) + bytes(information))


def encode_request(request):
    """The frame of a Request; EncodeError if a field is out of range."""
    origin, sequence, rank = request
    check_id(origin, sequence)
    if not 0 <= rank < LARGEST_GENERATION:
        raise EncodeError("a request says rank %r; it must be from 0 to %d" % (rank, LARGEST_GENERATION - 1))
    return sealed(struct.pack(REQUEST_LAYOUT, REQUEST, origin, sequence, rank))


def decode(frame):
    """The Event, Coded packet or Request in a frame; DecodeError, and nothing else, for any other bytes."""
    kind = frame[0] if len(frame) else 0
    if kind not in _HEADERS_B:
        raise DecodeError("a frame that begins with %s is no message" % (frame[:1] or b"nothing",))
    header_B = _HEADERS_B[kind]
    end = unsealed_B(frame, header_B)
    if kind == CODED:
        return _decode_coded(frame, end)
    if kind == REQUEST:
        return _decode_request(frame, end)
    if end - header_B > LONGEST_EVENT_B:
        raise DecodeError("an event of %d bytes is too long" % (end - header_B))
    _, origin, sequence = struct.unpack_from(EVENT_LAYOUT, frame, 0)
    return Event(origin, sequence, event_attributes(frame[header_B:end]))


def _decode_request(frame, end):
    _, origin, sequence, rank = struct.unpack_from(REQUEST_LAYOUT, frame, 0)
    if end != _HEADERS_B[REQUEST] or rank >= LARGEST_GENERATION:
        raise DecodeError("a request of %d bytes before its checksum, of rank %d, is none" % (end, rank))
    return Request(origin, sequence, rank)


def _decode_coded(frame, end):
    header_B = _HEADERS_B[CODED]
    _, origin, sequence, hops, generation_size, number, length_B = struct.unpack_from(CODED_LAYOUT, frame, 0)
    if generation_size < 1 or number >= len(FIELD_ORDERS) or length_B < 1:
        raise DecodeError(
            "a coded packet of generation size %d, field %d and event length %d is none"
            % (generation_size, number, length_B)
        )
    field = field_of(FIELD_ORDERS[number])
    vector_B = field.size_B(generation_size)
    expected_B = header_B + vector_B + information_B(length_B, generation_size, FIELD_ORDERS[number])
    if end != expected_B:
        raise DecodeError("a coded packet of %d bytes before its checksum should have %d" % (end, expected_B))
    packed = frame[header_B : header_B + vector_B]
    field.check_row(packed)
    vector = tuple(field.unpack(packed, generation_size))
    if bytes(field.pack(vector)) != packed:
        raise DecodeError("bits behind the last coefficient of a coded packet are not zero")
    if not any(vector):
        raise DecodeError("an encoding vector of zeros says nothing")
    information = bytes(frame[header_B + vector_B : end])
    field.check_row(information)
    return Coded(origin, sequence, hops, generation_size, FIELD_ORDERS[number], length_B, vector, information)


def describe(frame, broadcast=True):
    """(message name, origin, sequence) of a frame this module encoded, for traces."""
    origin, sequence = struct.unpack_from("<II", frame, 1)
    return _NAMES[frame[0]], origin, sequence

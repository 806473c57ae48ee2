"""The frame of a piece of an event: what is gossiped where an event does not go in one frame.

Layout (little-endian, packed)
    type u8 (always 0x50, "P"), origin u32, sequence u32, ttl u16, pieces u8, number u8, event length in bytes u16, the
    piece's bytes, CRC-32 u32: 19 bytes and the piece. What is cut is the event's bytes (attributes/event_bytes.py).

    How long a piece is follows from the header, and a frame where it is not is refused: so all pieces of one event that
    say the same of it fit together. They are of one length, but for the last, which may be shorter. None is empty, so
    `number_of_pieces` may be fewer than asked for.

This file runs on a mote too (MicroPython's subset of Python).
"""

import struct
from collections import namedtuple

from workbench.attributes.event_bytes import CHECKSUM_B, LONGEST_EVENT_B, U16, check_id, sealed, unsealed_B
from workbench.errors import DecodeError, EncodeError

Piece = namedtuple("Piece", ("origin", "sequence", "ttl", "pieces", "number", "length_B", "data"))

TYPE = 0x50
MOST_PIECES = 255
HEADER = "<BIIHBBH"
_HEADER_B = 15
_TTL_AT = 9


def number_of_pieces(length_B, wanted):
    """The largest number of pieces up to ``wanted`` of which none is empty."""
    size_B = -(-length_B // wanted)
    return -(-length_B // size_B)


def piece_bounds(length_B, pieces, number):
    """(begin, end) of a piece in an event of so many bytes."""
    size_B = -(-length_B // pieces)
    return min(number * size_B, length_B), min((number + 1) * size_B, length_B)


def encode(piece):
    """The frame of a Piece; EncodeError if a field is out of range."""
    origin, sequence, ttl, pieces, number, length_B, data = piece
    check_id(origin, sequence)
    if not (0 <= ttl <= U16 and 0 <= number < pieces <= MOST_PIECES and 1 <= length_B <= LONGEST_EVENT_B):
        raise EncodeError("%r has a field out of range" % (piece,))
    begin, end = piece_bounds(length_B, pieces, number)
    if begin == end or len(data) != end - begin:
        raise EncodeError("piece %d of %d has %d bytes, not %d, or none" % (number, pieces, len(data), end - begin))
    return sealed(struct.pack(HEADER, TYPE, origin, sequence, ttl, pieces, number, length_B) + data)


def with_ttl(frame, ttl):
    """The same frame with another ttl: what a node passes on, without taking it apart."""
    return sealed(frame[:_TTL_AT] + struct.pack("<H", ttl) + frame[_TTL_AT + 2 : -CHECKSUM_B])


def decode(frame):
    """The Piece in a frame; DecodeError, and nothing else, for any other bytes."""
    if not len(frame) or frame[0] != TYPE:
        raise DecodeError("a frame that begins with %s is no piece" % (frame[:1] or b"nothing",))
    end = unsealed_B(frame, _HEADER_B)
    _, origin, sequence, ttl, pieces, number, length_B = struct.unpack_from(HEADER, frame, 0)
    first, behind = piece_bounds(length_B, pieces, number) if number < pieces else (0, 0)
    if first >= behind:
        raise DecodeError("piece %d of %d of an event of %d bytes is none" % (number, pieces, length_B))
    if end - _HEADER_B != behind - first:
        raise DecodeError("a piece of %d bytes should have %d" % (end - _HEADER_B, behind - first))
    return Piece(origin, sequence, ttl, pieces, number, length_B, bytes(frame[_HEADER_B:end]))


def describe(frame, broadcast=True):
    """(message name, origin, sequence) of a frame this module encoded, for traces."""
    origin, sequence = struct.unpack_from("<II", frame, 1)
    return "piece", origin, sequence

"""Encode and decode gossip's frame for one piece of an event that is sent in several frames.

Layout
    The table of fields in ``dissector.py`` describes it; docs/FRAMES.md shows it. An event is split into pieces as
    bytes (attributes/event_bytes.py).

    The header determines the length of the piece; a frame with another length is refused. So an event can be
    assembled from pieces with the same id, number of pieces and event length. All pieces have the same length except
    the last, which may be shorter. No piece is empty, so a short event is split into fewer pieces than the setting
    ``pieces`` (`number_of_pieces`).

This file runs on a mote too (MicroPython's subset of Python).
"""

import struct
from collections import namedtuple

from workbench.attributes.event_bytes import (
    CHECKSUM_B,
    LONGEST_EVENT_B,
    U16,
    check_id,
    length_before_checksum_B,
    with_checksum,
)
from workbench.errors import DecodeError, EncodeError

Piece = namedtuple("Piece", ("origin", "sequence", "ttl", "pieces", "number", "length_B", "data"))

TYPE = 0x50
MOST_PIECES = 255
HEADER = "<BIIHBBH"
_HEADER_B = 15
_TTL_AT = 9


def number_of_pieces(length_B, wanted):
    """Return the number of pieces into which an event of ``length_B`` bytes is split: at most ``wanted``.

    It is less if otherwise a piece would be empty.
    """
    size_B = -(-length_B // wanted)
    return -(-length_B // size_B)


def piece_bounds(length_B, pieces, number):
    """Return (begin, end): piece ``number`` (0, 1, ...) of an event consists of the event's bytes [begin, end).

    ``length_B``: the event's length in bytes; ``pieces``: the number of its pieces.
    """
    size_B = -(-length_B // pieces)
    return min(number * size_B, length_B), min((number + 1) * size_B, length_B)


def encode(piece):
    """Return the frame of a Piece. Raises EncodeError if a field is out of range or the data's length is wrong."""
    origin, sequence, ttl, pieces, number, length_B, data = piece
    check_id(origin, sequence)
    if not (0 <= ttl <= U16 and 0 <= number < pieces <= MOST_PIECES and 1 <= length_B <= LONGEST_EVENT_B):
        raise EncodeError(
            "%r has a field out of range; ttl must be from 0 to %d, number from 0 to pieces - 1, pieces at most %d, "
            "length_B from 1 to %d" % (piece, U16, MOST_PIECES, LONGEST_EVENT_B)
        )
    piece_begin, piece_end = piece_bounds(length_B, pieces, number)
    if piece_begin == piece_end or len(data) != piece_end - piece_begin:
        raise EncodeError(
            "piece %d of %d has %d bytes; for an event of %d bytes it must have %d, and more than 0"
            % (number, pieces, len(data), length_B, piece_end - piece_begin)
        )
    return with_checksum(struct.pack(HEADER, TYPE, origin, sequence, ttl, pieces, number, length_B) + data)


def with_ttl(frame, ttl):
    """Return a copy of ``frame`` with another ttl, so that a forwarding node need not encode the frame again."""
    return with_checksum(frame[:_TTL_AT] + struct.pack("<H", ttl) + frame[_TTL_AT + 2 : -CHECKSUM_B])


def decode(frame):
    """Return the Piece in a frame. Raises only DecodeError, for any bytes that are not a valid piece."""
    if not len(frame) or frame[0] != TYPE:
        raise DecodeError("the frame begins with %r; a piece begins with %r" % (bytes(frame[:1]), bytes([TYPE])))
    data_end = length_before_checksum_B(frame, _HEADER_B)
    _, origin, sequence, ttl, piece_count, piece_number, length_B = struct.unpack_from(HEADER, frame, 0)
    piece_begin, piece_end = piece_bounds(length_B, piece_count, piece_number) if piece_number < piece_count else (0, 0)
    if piece_begin >= piece_end:
        raise DecodeError(
            "invalid piece: piece %d of %d in an event of %d bytes; pieces are numbered from 0 and must not be empty"
            % (piece_number, piece_count, length_B)
        )
    if data_end - _HEADER_B != piece_end - piece_begin:
        raise DecodeError(
            "the piece has %d bytes; its header requires %d" % (data_end - _HEADER_B, piece_end - piece_begin)
        )
    return Piece(origin, sequence, ttl, piece_count, piece_number, length_B, bytes(frame[_HEADER_B:data_end]))


def describe(frame, broadcast=True):
    """Return (message name, origin, sequence) of a frame that this module encoded, for traces."""
    origin, sequence = struct.unpack_from("<II", frame, 1)
    return "piece", origin, sequence

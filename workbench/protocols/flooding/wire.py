"""Flooding's frame: bytes <-> one publication.

Layout (little-endian, packed)
    type u8 (always 0x46, "F"), origin u32, sequence u32, ttl u16, AttNum u8: 12 bytes; then the attributes as
    `attributes/wire.py` lays them out. Origin and ttl are wide: a flood may cover millions of nodes, and a grid of
    them has thousands of hops.

This file runs on a mote too (MicroPython's subset of Python).
"""

from collections import namedtuple
from struct import pack, unpack_from

from workbench.attributes.model import APP, IS, LAST_FILTER_KEY, is_blob
from workbench.attributes.wire import ATTRIBUTE_B, BLOB_HEADER_B, decode_readings, encode_readings
from workbench.errors import DecodeError, EncodeError

Flood = namedtuple("Flood", ("origin", "sequence", "ttl", "attributes"))

TYPE = 0x46
HEADER = "<BIIHB"
HEADER_B = 12
LONGEST_TTL = 0xFFFF
TTL_AT = 9


def encode(flood):
    """The frame of a Flood; EncodeError if a field is out of range."""
    origin, sequence, ttl, attributes = flood
    fits = 0 <= origin <= 0xFFFFFFFF and 0 <= sequence <= 0xFFFFFFFF and 0 <= ttl <= LONGEST_TTL
    if not fits or len(attributes) > 255:
        raise EncodeError("%r has a field out of range" % (flood,))
    return pack(HEADER, TYPE, origin, sequence, ttl, len(attributes)) + encode_readings(attributes)


def decode_header(frame):
    """((origin, sequence), ttl) of a frame, without its attributes; DecodeError if it is none of ours."""
    if len(frame) < HEADER_B or frame[0] != TYPE:
        raise DecodeError(
            "%d bytes that begin with %r are no flood; a flood begins with %r and has %d or more"
            % (len(frame), bytes(frame[:1]), bytes([TYPE]), HEADER_B)
        )
    origin, sequence, ttl = unpack_from("<IIH", frame, 1)
    return (origin, sequence), ttl


def with_ttl(frame, ttl):
    """The same frame with another ttl: what a node passes on, without taking it apart."""
    return frame[:TTL_AT] + pack("<H", ttl) + frame[TTL_AT + 2 :]


def decode(frame):
    """The Flood in a frame; DecodeError, and nothing else, for any other bytes."""
    (origin, sequence), ttl = decode_header(frame)
    return Flood(origin, sequence, ttl, decode_body(frame))


def decode_body(frame):
    """The attributes of a frame whose header is known to be right; DecodeError if they are not."""
    return decode_readings(frame, HEADER_B, frame[HEADER_B - 1])


def check_body(frame):
    """DecodeError unless `decode_body` could read the attributes: what a node asks that does not want them itself."""
    end = HEADER_B
    size = len(frame)
    for _ in range(frame[HEADER_B - 1]):
        if end + BLOB_HEADER_B > size:
            break
        key = frame[end]
        if frame[end + 1] != IS or not APP <= key <= LAST_FILTER_KEY:
            break
        end += BLOB_HEADER_B + frame[end + 2] if is_blob(key) else ATTRIBUTE_B
    else:
        if end == size:
            return
    decode_body(frame)  # It says what is wrong.


def describe(frame, broadcast=True):
    """(message name, origin, sequence) of a frame this module encoded, for traces."""
    origin, sequence = unpack_from("<II", frame, 1)
    return "flood", origin, sequence

"""Encode and decode flooding's frame, which carries one publication.

Layout
    The table of fields in ``dissector.py`` describes it; docs/FRAMES.md shows it. Origin and ttl are wide: a flood may
    cover millions of nodes, and a grid of them has thousands of hops.

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
    """Return the frame of a Flood. Raises EncodeError if a field is out of range."""
    origin, sequence, ttl, attributes = flood
    fits_layout = 0 <= origin <= 0xFFFFFFFF and 0 <= sequence <= 0xFFFFFFFF and 0 <= ttl <= LONGEST_TTL
    if not fits_layout or len(attributes) > 255:
        raise EncodeError(
            "%r has a field out of range; origin and sequence must be from 0 to %d, ttl from 0 to %d; "
            "at most 255 attributes are allowed" % (flood, 0xFFFFFFFF, LONGEST_TTL)
        )
    return pack(HEADER, TYPE, origin, sequence, ttl, len(attributes)) + encode_readings(attributes)


def decode_header(frame):
    """Return ((origin, sequence), ttl) of a frame. Raises DecodeError if the frame has no valid header of a flood."""
    if len(frame) < HEADER_B or frame[0] != TYPE:
        raise DecodeError(
            "the frame has %d bytes and begins with %r; a flood begins with %r and has at least %d bytes"
            % (len(frame), bytes(frame[:1]), bytes([TYPE]), HEADER_B)
        )
    origin, sequence, ttl = unpack_from("<IIH", frame, 1)
    return (origin, sequence), ttl


def with_ttl(frame, ttl):
    """Return a copy of ``frame`` with another ttl, so that a forwarding node need not encode the frame again."""
    return frame[:TTL_AT] + pack("<H", ttl) + frame[TTL_AT + 2 :]


def decode(frame):
    """Return the Flood in a frame. Raises only DecodeError, for any bytes that are not a valid flood."""
    (origin, sequence), ttl = decode_header(frame)
    return Flood(origin, sequence, ttl, decode_body(frame))


def decode_body(frame):
    """Return the attributes of a frame whose header is valid. Raises DecodeError if the attributes are malformed."""
    return decode_readings(frame, HEADER_B, frame[HEADER_B - 1])


def check_body(frame):
    """Raise DecodeError if the attributes of a frame are malformed.

    The check is faster than decoding, for nodes that only forward.
    """
    offset = HEADER_B
    size = len(frame)
    for _ in range(frame[HEADER_B - 1]):
        if offset + BLOB_HEADER_B > size:
            break
        key = frame[offset]
        if frame[offset + 1] != IS or not APP <= key <= LAST_FILTER_KEY:
            break
        offset += BLOB_HEADER_B + frame[offset + 2] if is_blob(key) else ATTRIBUTE_B
    else:
        if offset == size:
            return
    decode_body(frame)  # raises the error that describes the fault


def describe(frame, broadcast=True):
    """Return (message name, origin, sequence) of a frame that this module encoded, for traces."""
    origin, sequence = unpack_from("<II", frame, 1)
    return "flood", origin, sequence

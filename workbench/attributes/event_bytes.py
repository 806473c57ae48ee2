"""The bytes, the id and the checksum of events, shared by coded diffusion and fragmented events.

Layout (little-endian, packed)
    an event's bytes           AttNum u8 (number of attributes), then the attributes as in `wire.py`; 1 to 65,535 bytes
    a frame with a checksum   any bytes, then their CRC-32 as u32

This file runs on a mote too (MicroPython's subset of Python).
"""

import struct
from binascii import crc32

from workbench.attributes.wire import decode_readings, encode_readings
from workbench.errors import DecodeError, EncodeError

CHECKSUM_B = 4
U16 = 0xFFFF
U32 = 0xFFFFFFFF
LONGEST_EVENT_B = U16


def event_bytes(attributes):
    """Return the bytes of an event's attributes. Raises EncodeError if they are too many or invalid."""
    if len(attributes) > 255:
        raise EncodeError("an event has %d attributes; at most 255 are allowed" % len(attributes))
    data = bytes((len(attributes),)) + encode_readings(attributes)
    if len(data) > LONGEST_EVENT_B:
        raise EncodeError("an event has %d bytes; at most %d are allowed" % (len(data), LONGEST_EVENT_B))
    return data


def event_attributes(data):
    """Return the attributes in an event's bytes. Raises DecodeError if the bytes are not an event."""
    if not data:
        raise DecodeError("an event has 0 bytes; it needs at least 1")
    return decode_readings(data, 1, data[0])


def check_id(origin, sequence):
    """Raise EncodeError unless the two parts of an event's id, origin and sequence, fit in 32 bits each."""
    if not (0 <= origin <= U32 and 0 <= sequence <= U32):
        raise EncodeError("origin is %r and sequence is %r; both must be from 0 to %d" % (origin, sequence, U32))


def with_checksum(data):
    """Return the data followed by its CRC-32 (4 bytes, little-endian)."""
    return data + struct.pack("<I", crc32(data))


def length_before_checksum_B(frame, header_B):
    """Return the number of bytes before a frame's checksum. Raises DecodeError if the checksum is wrong or cut off.

    ``header_B``: the size of the frame's header in bytes. A frame without room for header and checksum is cut off.
    """
    checksum_begin = len(frame) - CHECKSUM_B
    if checksum_begin < header_B:
        raise DecodeError(
            "a frame has %d bytes; its header and checksum alone have %d" % (len(frame), header_B + CHECKSUM_B)
        )
    if struct.unpack_from("<I", frame, checksum_begin)[0] != crc32(frame[:checksum_begin]):
        raise DecodeError("a frame of %d bytes has a wrong checksum" % len(frame))
    return checksum_begin

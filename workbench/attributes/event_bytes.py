"""What coded diffusion's frames and pieces of events have in common: an event's bytes, its id, the checksum.

Layout (little-endian, packed)
    an event's bytes   AttNum u8, then the attributes as `attributes/wire.py` lays them out; 1 to 65,535 bytes
    a sealed frame     anything, then the CRC-32 of it as u32

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
    """The bytes of an event's attributes: what is coded. EncodeError if they are too many or not valid."""
    if len(attributes) > 255:
        raise EncodeError("an event has %d attributes; it counts to 255" % len(attributes))
    data = bytes((len(attributes),)) + encode_readings(attributes)
    if len(data) > LONGEST_EVENT_B:
        raise EncodeError("an event of %d bytes is too long; it has %d at most" % (len(data), LONGEST_EVENT_B))
    return data


def event_attributes(data):
    """The attributes in an event's bytes; DecodeError if they are none."""
    if not data:
        raise DecodeError("an event has no bytes")
    return decode_readings(data, 1, data[0])


def check_id(origin, sequence):
    """Raise EncodeError unless origin and sequence fit a frame."""
    if not (0 <= origin <= U32 and 0 <= sequence <= U32):
        raise EncodeError("origin %r and sequence %r must be from 0 to %d" % (origin, sequence, U32))


def sealed(data):
    """Data with its checksum behind it."""
    return data + struct.pack("<I", crc32(data))


def unsealed_B(frame, header_B):
    """Bytes of a frame before its checksum; DecodeError if it is wrong or they are fewer than the header's."""
    end = len(frame) - CHECKSUM_B
    if end < header_B:
        raise DecodeError("a frame of %d bytes ends within its header" % len(frame))
    if struct.unpack_from("<I", frame, end)[0] != crc32(frame[:end]):
        raise DecodeError("a frame of %d bytes has a wrong checksum" % len(frame))
    return end

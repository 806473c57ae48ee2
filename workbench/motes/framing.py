"""Frames on a serial line: where a message begins and ends, and whether it arrived whole.

Theory of operation
    A body is followed by its CRC-32 (little-endian), both are stuffed so that no byte is zero (consistent overhead byte
    stuffing: COBS), and a zero stands before and after. Whatever noise is on the line, the next zero ends it; what then
    is no body with a right checksum is counted and forgotten. So a reader may join at any time.

    Overhead: 4 bytes of checksum, 2 zeros, and 1 byte in 254.

Limits
    A body has at most LONGEST_BODY bytes. A reader keeps no more of a frame than that, so noise takes no memory.

Reference
    S. Cheshire, M. Baker: Consistent overhead byte stuffing, IEEE/ACM ToN 7(2), 1999.

This file runs on a mote too (MicroPython's subset of Python).
"""

import struct
from binascii import crc32

from workbench.errors import DecodeError, EncodeError

LONGEST_BODY = 2048
_CHECKSUM_B = 4
_LONGEST_FRAME = LONGEST_BODY + _CHECKSUM_B + (LONGEST_BODY + _CHECKSUM_B) // 254 + 1
_ZERO = b"\0"


def encode(body):
    """The bytes of a frame with this body; EncodeError if it is too long."""
    if len(body) > LONGEST_BODY:
        raise EncodeError("a body of %d bytes is too long for a frame; it holds %d" % (len(body), LONGEST_BODY))
    return _ZERO + _stuff(bytes(body) + struct.pack("<I", crc32(body))) + _ZERO


def _stuff(data):
    parts = []
    for piece in data.split(_ZERO):
        # A block of 254 bytes has no zero behind it, so what follows begins a block even if it is empty.
        while len(piece) >= 254:
            parts.append(b"\xff" + piece[:254])
            piece = piece[254:]
        parts.append(bytes((len(piece) + 1,)) + piece)
    return b"".join(parts)


def _unstuff(data):
    parts = []
    index = 0
    size = len(data)
    while index < size:
        length = data[index]
        end = index + length
        if length == 0 or end > size:
            raise DecodeError("a frame is cut off within a block of %d bytes" % length)
        parts.append(bytes(data[index + 1 : end]))
        index = end
        if length < 255 and index < size:
            parts.append(_ZERO)
    return b"".join(parts)


def decode(frame):
    """The body of what stood between two zeros; DecodeError if it is none."""
    data = _unstuff(frame)
    if len(data) < _CHECKSUM_B:
        raise DecodeError("a frame of %d bytes has no room for its checksum" % len(data))
    body = data[:-_CHECKSUM_B]
    if struct.unpack("<I", data[-_CHECKSUM_B:])[0] != crc32(body):
        raise DecodeError("a frame of %d bytes has a wrong checksum" % len(data))
    return body


class Deframer:
    """Takes the bytes of a line as they come, gives the bodies that arrived whole; ``spoilt`` counts what was none."""

    def __init__(self):
        self.spoilt = 0
        self._begun = b""
        self._too_long = False

    def feed(self, data):
        """The bodies that these bytes complete."""
        pieces = bytes(data).split(_ZERO)
        bodies = []
        for piece in pieces[:-1]:
            self._add(piece)
            body = self._end()
            if body is not None:
                bodies.append(body)
        self._add(pieces[-1])
        return bodies

    def _add(self, data):
        if len(self._begun) + len(data) > _LONGEST_FRAME:
            self._too_long = True
            self._begun = b""
        elif not self._too_long:
            self._begun += data

    def _end(self):
        """End the frame that has begun; return its body, or None."""
        frame, self._begun = self._begun, b""
        too_long, self._too_long = self._too_long, False
        if not frame and not too_long:
            return None
        try:
            if too_long:
                raise DecodeError("a frame is too long")
            return decode(frame)
        except DecodeError:
            self.spoilt += 1
            return None

"""Frames on a serial line: they delimit messages and detect damaged ones.

Theory of operation
    A message (the body) is followed by its CRC-32 (little-endian). Both are encoded without zero bytes (consistent
    overhead byte stuffing: COBS). A zero byte precedes and follows the frame. Whatever noise is on the line, the next
    zero ends it; a frame with a wrong checksum is counted and dropped. So a reader may start at any time.

    Overhead: 4 bytes of checksum, 2 zeros, and 1 byte in 254.

Limits
    A body has at most LONGEST_BODY bytes. A reader stores no more than that, so noise cannot fill its memory.

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
    """Return the frame of a message body, including the zero bytes around it.

    Raises EncodeError if the body is too long.
    """
    if len(body) > LONGEST_BODY:
        raise EncodeError("a body of %d bytes is too long for a frame; the limit is %d" % (len(body), LONGEST_BODY))
    return _ZERO + _stuff(bytes(body) + struct.pack("<I", crc32(body))) + _ZERO


def _stuff(data):
    blocks = []
    for piece in data.split(_ZERO):
        # A block of 254 bytes does not stand for a zero after it, so a further block follows even if it is empty.
        while len(piece) >= 254:
            blocks.append(b"\xff" + piece[:254])
            piece = piece[254:]
        blocks.append(bytes((len(piece) + 1,)) + piece)
    return b"".join(blocks)


def _unstuff(data):
    blocks = []
    index = 0
    size = len(data)
    while index < size:
        block_length = data[index]
        block_end = index + block_length
        if block_length == 0 or block_end > size:
            raise DecodeError("a frame is cut off within a block of %d bytes" % block_length)
        blocks.append(bytes(data[index + 1 : block_end]))
        index = block_end
        if block_length < 255 and index < size:
            blocks.append(_ZERO)
    return b"".join(blocks)


def decode(frame):
    """Return the message body in a frame. Raises DecodeError if the frame is damaged.

    ``frame`` is the bytes between the two zero bytes that enclose the frame on the line.
    """
    data = _unstuff(frame)
    if len(data) < _CHECKSUM_B:
        raise DecodeError("a frame has %d bytes, fewer than the 4 of its checksum" % len(data))
    body = data[:-_CHECKSUM_B]
    if struct.unpack("<I", data[-_CHECKSUM_B:])[0] != crc32(body):
        raise DecodeError("a frame of %d bytes has a wrong checksum" % len(data))
    return body


class Deframer:
    """A decoder of a line's byte stream into message bodies; ``spoilt`` counts the damaged frames."""

    def __init__(self):
        self.spoilt = 0
        self._incomplete_frame = b""
        self._too_long = False

    def feed(self, data):
        """Add received bytes, and return a list of the bodies of the frames that are now complete."""
        pieces = bytes(data).split(_ZERO)
        bodies = []
        for piece in pieces[:-1]:
            self._append(piece)
            body = self._end_frame()
            if body is not None:
                bodies.append(body)
        self._append(pieces[-1])
        return bodies

    def _append(self, data):
        if len(self._incomplete_frame) + len(data) > _LONGEST_FRAME:
            self._too_long = True
            self._incomplete_frame = b""
        elif not self._too_long:
            self._incomplete_frame += data

    def _end_frame(self):
        """End the current frame; return its body, or None for an empty or damaged frame."""
        frame, self._incomplete_frame = self._incomplete_frame, b""
        too_long, self._too_long = self._too_long, False
        if not frame and not too_long:
            return None
        try:
            if too_long:
                raise DecodeError("a frame is too long: its body has more than %d bytes" % LONGEST_BODY)
            return decode(frame)
        except DecodeError:
            self.spoilt += 1
            return None

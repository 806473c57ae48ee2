"""The envelope of DPS's multicast messages: a CoAP message around a frame.

Layout
    0x50 (version 1, non-confirmable, no token), 0x03 (PUT), message id u16 big-endian, options, 0xFF, the frame.
    The options are Uri-Path ``dps/pub`` with a NUL behind it, as one option, and Content-Format 60 (CBOR).

    A receiver looks at the type and finds the payload; like the C implementation, we ignore code, path and format.

Reference
    RFC 7252; https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

from __future__ import annotations

from struct import pack

from workbench.errors import DecodeError

# Uri-Path (11) of 8 bytes and Content-Format (12) 60: CBOR; then the mark of the payload. The NUL is the reference's.
_OPTIONS = b"\xb8dps/pub\x00\x11\x3c\xff"
_HEAD_B = 4
ENVELOPE_B = _HEAD_B + len(_OPTIONS)
_VERSION_AND_TYPE, _NON_CONFIRMABLE = 0xF0, 0x50
_PAYLOAD = 0xFF


def wrap(frame: bytes, message_id: int) -> bytes:
    """A frame in the envelope of a multicast; message_id: counts from 1, 16 bits."""
    return b"\x50\x03" + pack(">H", message_id & 0xFFFF) + _OPTIONS + frame


def unwrap(datagram: bytes) -> bytes:
    """The frame in an envelope; DecodeError unless it is a non-confirmable CoAP message. Its options are ignored."""
    size = len(datagram)
    if size < _HEAD_B or datagram[0] & _VERSION_AND_TYPE != _NON_CONFIRMABLE:
        raise DecodeError(f"{size} bytes that begin with {datagram[:1]!r} are no non-confirmable CoAP message")
    at = _HEAD_B + (datagram[0] & 0x0F)
    if datagram[0] & 0x0F > 8:
        raise DecodeError(f"a CoAP token of {datagram[0] & 0x0F} bytes; it has 8 at most")
    while at < size and datagram[at] != _PAYLOAD:
        first = datagram[at]
        _, at = _extended(datagram, first >> 4, at + 1)
        length, at = _extended(datagram, first & 0x0F, at)
        at += length
    if at >= size - 1:
        raise DecodeError(f"a CoAP message of {size} bytes without a payload")
    return bytes(datagram[at + 1 :])


def _extended(datagram: bytes, nibble: int, at: int) -> tuple[int, int]:
    """(value, the next byte) of a number of an option, which goes on in 1 or 2 bytes if it begins with 13 or 14."""
    if nibble < 13:
        return nibble, at
    more = nibble - 12
    if nibble == 15 or at + more > len(datagram):
        raise DecodeError(f"byte {at}: an option of a CoAP message is cut short or of a reserved length")
    return int.from_bytes(datagram[at : at + more], "big") + (13 if more == 1 else 269), at + more

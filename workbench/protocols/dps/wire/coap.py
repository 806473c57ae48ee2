"""The envelope of DPS's multicast messages: a CoAP message around a frame.

Layout
    0x50 (version 1, non-confirmable, no token), 0x03 (PUT), message id u16 big-endian, options, 0xFF, the frame.
    The options are Uri-Path ``dps/pub`` and a NUL, as one option, and Content-Format 60 (CBOR).

    Like the C implementation, `unwrap` checks only version and type, and ignores code, path and format.

Reference
    RFC 7252; https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

from __future__ import annotations

from struct import pack

from workbench.errors import DecodeError

# Uri-Path (11) of 8 bytes, Content-Format (12) 60 for CBOR, payload marker. The C implementation sends the NUL, too.
_OPTIONS = b"\xb8dps/pub\x00\x11\x3c\xff"
_HEAD_B = 4
ENVELOPE_B = _HEAD_B + len(_OPTIONS)
_VERSION_AND_TYPE, _NON_CONFIRMABLE = 0xF0, 0x50
_PAYLOAD = 0xFF


def wrap(frame: bytes, message_id: int) -> bytes:
    """Return a frame in the CoAP envelope of a multicast; only the low 16 bits of ``message_id`` are sent."""
    return b"\x50\x03" + pack(">H", message_id & 0xFFFF) + _OPTIONS + frame


def unwrap(datagram: bytes) -> bytes:
    """Return the frame in a CoAP envelope, without checking its options; raise DecodeError for other bytes."""
    datagram_B = len(datagram)
    if datagram_B < _HEAD_B or datagram[0] & _VERSION_AND_TYPE != _NON_CONFIRMABLE:
        raise DecodeError(
            f"a datagram of {datagram_B} bytes begins with {datagram[:1]!r}; non-confirmable CoAP messages begin with "
            "0x50 to 0x58"
        )
    at = _HEAD_B + (datagram[0] & 0x0F)
    if datagram[0] & 0x0F > 8:
        raise DecodeError(f"the CoAP token has {datagram[0] & 0x0F} bytes; it may have 8 at most")
    while at < datagram_B and datagram[at] != _PAYLOAD:
        option_byte = datagram[at]
        _, at = _read_extended(datagram, option_byte >> 4, at + 1)
        option_length, at = _read_extended(datagram, option_byte & 0x0F, at)
        at += option_length
    if at >= datagram_B - 1:
        raise DecodeError(f"the CoAP message of {datagram_B} bytes has no payload; a frame must follow the byte 0xFF")
    return bytes(datagram[at + 1 :])


def _read_extended(datagram: bytes, nibble: int, at: int) -> tuple[int, int]:
    """Return (value, next position) of a number of a CoAP option: its delta or its length.

    ``nibble``: the four bits for this number in the option's first byte. 13 or 14 means that the number continues in 1
    or 2 bytes, which begin at position ``at``.
    """
    if nibble < 13:
        return nibble, at
    size_B = nibble - 12
    if nibble == 15 or at + size_B > len(datagram):
        raise DecodeError(f"byte {at}: a CoAP option is cut short, or has a reserved length")
    return int.from_bytes(datagram[at : at + size_B], "big") + (13 if size_B == 1 else 269), at + size_B

"""IEEE 802.15.4 in captures: the TAP header in front of a frame, the frame's MAC header, and its checksum.

Layout (little-endian)
    TAP header (link type 283)   u8 version 0, u8 reserved, u16 length, then TLVs: u16 type, u16 length, a value that is
                                 padded to four bytes. Types used here: 0 FCS type, 1 RSSI (float, dBm), 3 channel (u16)
                                 and page (u8), 10 LQI (u8)
    MAC header of data           u16 frame control, u8 sequence number, u16 PAN id, destination, source. Addresses are
                                 short (2 bytes) or extended (8 bytes)
    FCS                          u16, the CRC of ITU-T with the polynomial x^16 + x^12 + x^5 + 1, reflected, from 0

Reference
    IEEE 802.15.4-2015, 7.2; Exegin: IEEE 802.15.4 TAP link type specification, 2019.
"""

from __future__ import annotations

import struct
from binascii import crc32, crc_hqx
from collections.abc import Iterator
from typing import Any, NamedTuple

from workbench.protocols.protocol import Protocol

WITH_FCS, WITHOUT_FCS, TAP = 195, 230, 283  # link types
FCS_B = 2
LARGEST_SHORT = 0xFFFD  # 0xFFFE: a node without a short address; 0xFFFF: broadcast
BROADCAST = 0xFFFF
_FCS_TYPE, _RSSI, _CHANNEL, _LQI = 0, 1, 3, 10
_FCS_16 = 1
_DATA, _INTRA_PAN = 0x0001, 0x0040
_SHORT, _EXTENDED = 2, 3  # addressing modes
_ADDRESS_B = {0: 0, _SHORT: 2, _EXTENDED: 8}


_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))  # each byte with its bits in reverse order


def fcs(frame: bytes) -> int:
    """Return the FCS of a frame, a checksum of 16 bits; ``frame``: the bytes before the FCS."""
    # `crc_hqx` has the same polynomial, with the bits of bytes and checksum in the other order.
    return int(f"{crc_hqx(frame.translate(_REVERSED), 0):016b}"[::-1], 2)


def pan_id(protocol: Any) -> int:
    """Return the PAN id, 1 to 65,534, of a protocol's frames in captures; ``protocol``: an instance or its class.

    The id is a function of the name of the protocol's class. Instances that allow constraints in data have another id
    than the class, as their frames are decoded differently.
    """
    return 1 + crc32(form_of(protocol).encode()) % 0xFFFE


def form_of(protocol: Any) -> str:
    """Return the name of a protocol's class, followed by " with constraints" if its data may have constraints."""
    cls: Any = protocol if isinstance(protocol, type) else type(protocol)
    is_constrained = isinstance(protocol, Protocol) and protocol.allows_constrained_data
    return f"{cls.public_class().__name__}{' with constraints' if is_constrained else ''}"


# Writing


def tap_header(channel: int, rssi_dBm: float | None, lqi: int | None) -> bytes:
    """Return the TAP header of a frame that ends with an FCS of 16 bits.

    ``channel``: the radio channel. ``lqi``: 0 to 255. If ``rssi_dBm`` or ``lqi`` is None, the header omits this value.
    """
    tlvs = [struct.pack("<HHI", _FCS_TYPE, 1, _FCS_16), struct.pack("<HHHH", _CHANNEL, 3, channel, 0)]
    if rssi_dBm is not None:
        tlvs.append(struct.pack("<HHf", _RSSI, 4, rssi_dBm))
    if lqi is not None:
        tlvs.append(struct.pack("<HHI", _LQI, 1, lqi))
    content = b"".join(tlvs)
    return struct.pack("<BBH", 0, 0, 4 + len(content)) + content


def data_frame(pan: int, sequence: int, destination: int | None, source: int, is_short: bool, payload: bytes) -> bytes:
    """Return a data frame with its checksum.

    ``pan``: the PAN id. ``sequence``: the number of the frame at its sender; the frame has it modulo 256.
    ``destination``: an address, or None for a broadcast. ``is_short``: whether addresses have 2 bytes (up to
    `LARGEST_SHORT`) or 8; the broadcast address always has 2.
    """
    own_mode, own_layout = (_SHORT, "H") if is_short else (_EXTENDED, "Q")
    mode, layout = (_SHORT, "H") if destination is None else (own_mode, own_layout)
    control = _DATA | _INTRA_PAN | mode << 10 | own_mode << 14
    address = BROADCAST if destination is None else destination
    frame = struct.pack(f"<HBH{layout}{own_layout}", control, sequence & 0xFF, pan, address, source) + payload
    return frame + struct.pack("<H", fcs(frame))


# Reading


class Tap(NamedTuple):
    """The contents of a TAP header; values that the header lacks are None.

    ``size_B``: size of the header. ``fcs_B``: size of the checksum at the end of the frame, 0 for a frame without
    checksum.
    """

    size_B: int
    fcs_B: int
    rssi_dBm: float | None
    lqi: int | None
    channel: int | None


class Addresses(NamedTuple):
    """The PAN id, addresses and sequence number in a MAC header; ids and addresses that the header lacks are None.

    ``end``: the offset of the first byte after the header.
    """

    pan: int | None
    source: int | None
    destination: int | None
    sequence: int | None
    end: int


def read_tap(data: bytes) -> Tap | None:
    """Return the contents of the TAP header with which ``data`` begins, or None if ``data`` does not begin with one."""
    if len(data) < 4:
        return None
    version, _, size_B = struct.unpack_from("<BBH", data)
    if version != 0 or not 4 <= size_B <= len(data):
        return None
    fcs_B, rssi_dBm, lqi, channel = 0, None, None, None
    for tlv_type, value in _parse_tlvs(data[4:size_B]):
        if tlv_type == _FCS_TYPE and value:
            fcs_B = {1: 2, 2: 4}.get(value[0], 0)
        elif tlv_type == _RSSI and len(value) == 4:
            (rssi_dBm,) = struct.unpack("<f", value)
        elif tlv_type == _LQI and value:
            lqi = value[0]
        elif tlv_type == _CHANNEL and len(value) >= 2:
            (channel,) = struct.unpack_from("<H", value)
    return Tap(size_B, fcs_B, rssi_dBm, lqi, channel)


def _parse_tlvs(data: bytes) -> Iterator[tuple[int, bytes]]:
    begin = 0
    while begin + 4 <= len(data):
        tlv_type, length_B = struct.unpack_from("<HH", data, begin)
        value = data[begin + 4 : begin + 4 + length_B]
        if len(value) < length_B:
            return
        yield tlv_type, value
        begin += 4 + length_B + -length_B % 4


def read_addresses(frame: bytes) -> Addresses | None:
    """Return the addresses of a MAC frame (without its checksum), or None if the bytes are not such a frame.

    Only frames of the versions 0 (2003) and 1 (2006) and of the types beacon, data, acknowledgement and command are
    read; frames of later versions and other types give None.
    """
    if len(frame) < 3:
        return None
    control, sequence = struct.unpack_from("<HB", frame)
    destination_mode, version, source_mode = control >> 10 & 3, control >> 12 & 3, control >> 14 & 3
    if control & 7 > 3 or version > 1 or 1 in (destination_mode, source_mode):
        return None
    is_intra = bool(control & _INTRA_PAN) and destination_mode and source_mode
    pan, addresses, at = None, list[int | None](), 3
    for mode, has_pan in ((destination_mode, destination_mode), (source_mode, source_mode and not is_intra)):
        size_B = _ADDRESS_B[mode] + (2 if has_pan else 0)
        if at + size_B > len(frame):
            return None
        if has_pan:
            own_pan = int.from_bytes(frame[at : at + 2], "little")
            pan = own_pan if pan is None else pan
        address = frame[at + size_B - _ADDRESS_B[mode] : at + size_B]
        addresses.append(int.from_bytes(address, "little") if mode else None)
        at += size_B
    destination, source = addresses
    return Addresses(pan, source, destination, sequence, at)

"""The containers of captures: blocks of pcapng are written, packets of pcapng and pcap are read.

Layout
    pcapng      blocks: u32 type, u32 total length, body, u32 total length again. A section header states the byte
                order of its section. An interface description states link type and resolution of times; an enhanced
                packet has its interface, time, bytes and options. Bodies and options are padded to four bytes
    pcap        a header with magic number and link type, then packets with a header of 16 bytes each

    Blocks of other types are skipped, as the format demands. The packets of simple packet blocks have no time.

Limits
    A packet or block of more than `LARGEST_B` bytes is an error: real captures of IEEE 802.15.4 have 127 bytes a frame.

Reference
    IETF draft-ietf-opsawg-pcapng and draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from workbench.errors import DataError

SECTION, INTERFACE, SIMPLE_PACKET, PACKET = 0x0A0D0D0A, 1, 3, 6
BYTE_ORDER = 0x1A2B3C4D
# Option codes: of any block, of an interface, of a packet.
END_OF_OPTIONS, COMMENT = 0, 1
NAME, DESCRIPTION, RESOLUTION, OFFSET_S = 2, 3, 9, 14
FLAGS, PACKET_ID = 2, 5
LONGEST_OPTION_B = 0xFFFF
LARGEST_B = 1 << 24
_MICROSECONDS = b"\x06"  # 10^-6 s
# Magic number of a pcap file, as its first bytes -> byte order, ticks of its times in a second.
_PCAP = {
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
}

Option = tuple[int, bytes]


class Packet(NamedTuple):
    """A packet of a capture.

    ``time_us``: time in µs since 1970, or since the start of a simulated run; -1 if the capture has no time for the
    packet. ``link_type``, ``interface``: link type and name of the interface; the name may be "". ``comment``: may be
    "".
    """

    time_us: int
    link_type: int
    interface: str
    data: bytes
    comment: str


# Writing


def section_block(comments: Sequence[bytes]) -> bytes:
    """Return the section header block with which a little-endian pcapng file begins.

    ``comments``: comments on the section, UTF-8, at most 65,535 bytes each.
    """
    body = struct.pack("<IHHq", BYTE_ORDER, 1, 0, -1)
    return _encode_block(SECTION, body, [(COMMENT, comment) for comment in comments])


def interface_block(link_type: int, name: str, description: str) -> bytes:
    """Return an interface description block, which states that the interface's times are in µs.

    ``link_type``: the number of the packets' format; ``name``, ``description``: texts that Wireshark shows.
    """
    options = [(NAME, name.encode()), (DESCRIPTION, description.encode()), (RESOLUTION, _MICROSECONDS)]
    return _encode_block(INTERFACE, struct.pack("<HHI", link_type, 0, 0), options)


def packet_block(interface: int, time_us: int, data: bytes, options: Sequence[Option]) -> bytes:
    """Return an enhanced packet block.

    ``interface``: index of the packet's interface, in the order of the interface description blocks. ``data``: the
    packet's bytes. ``options``: (code, value) pairs, such as a comment.
    """
    head = struct.pack("<IIIII", interface, time_us >> 32, time_us & 0xFFFFFFFF, len(data), len(data))
    return _encode_block(PACKET, head + _pad(data), options)


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _encode_block(block_type: int, body: bytes, options: Sequence[Option]) -> bytes:
    if options:
        pieces = [struct.pack("<HH", code, len(value)) + _pad(value) for code, value in options]
        body += b"".join(pieces) + struct.pack("<HH", END_OF_OPTIONS, 0)
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", block_type) + length + body + length


# Reading


def packets(file: BinaryIO) -> Iterator[Packet]:
    """Yield the packets of a pcapng or pcap file, one at a time.

    Raises DataError for a file of another format. If a block is damaged, the packets before it are yielded, and then
    DataError is raised.
    """
    magic = file.read(4)
    if magic in _PCAP:
        yield from _read_pcap_packets(file, *_PCAP[magic])
    elif magic == struct.pack(">I", SECTION):
        yield from _read_pcapng_packets(file)
    else:
        raise DataError(f"the file begins with {magic.hex(' ') or 'no bytes'}; it must be a capture: pcapng or pcap")


def _read_exactly(file: BinaryIO, size_B: int, part: str) -> bytes:
    if not 0 <= size_B <= LARGEST_B:
        raise DataError(f"{part} has {size_B:,} bytes; a capture has at most {LARGEST_B:,}")
    data = file.read(size_B)
    if len(data) < size_B:
        raise DataError(f"the file ends within {part}: {size_B} bytes are expected, {len(data)} are left")
    return data


def _read_pcap_packets(file: BinaryIO, order: str, ticks_per_s: int) -> Iterator[Packet]:
    link_type = struct.unpack_from(order + "I", _read_exactly(file, 20, "the header"), 16)[0] & 0xFFFF
    number = 0
    while head := file.read(16):
        number += 1
        part = f"packet {number}"
        if len(head) < 16:
            raise DataError(f"the file ends within the header of {part}")
        seconds, ticks, size_B, _ = struct.unpack(order + "IIII", head)
        data = _read_exactly(file, size_B, part)
        yield Packet(seconds * 10**6 + ticks * 10**6 // ticks_per_s, link_type, "", data, "")


class _Interface(NamedTuple):
    link_type: int
    name: str
    ticks_per_s: int
    offset_s: int


def _read_pcapng_packets(file: BinaryIO) -> Iterator[Packet]:
    order, interfaces, number = "<", list[_Interface](), 0
    head: bytes = struct.pack(">I", SECTION)
    while head:
        number += 1
        part = f"block {number}"
        if len(head) < 4:
            raise DataError(f"the file ends within the header of {part}")
        length, begin = _read_exactly(file, 4, part), b""
        if head == struct.pack(">I", SECTION):
            begin = _read_exactly(file, 4, part)
            order, interfaces = _detect_byte_order(begin, part), []
        length_B = struct.unpack(order + "I", length)[0]
        if length_B % 4 or length_B < 12 + len(begin):
            raise DataError(
                f"{part} is damaged: its length is {length_B} bytes; it must be a multiple of 4, "
                f"{12 + len(begin)} or more"
            )
        body = begin + _read_exactly(file, length_B - 12 - len(begin), part)
        if _read_exactly(file, 4, part) != length:
            raise DataError(f"{part} is damaged: its two lengths differ")
        block_type = struct.unpack(order + "I", head)[0]
        if block_type == INTERFACE:
            interfaces.append(_parse_interface(body, order, part))
        elif block_type in (PACKET, SIMPLE_PACKET):
            yield _parse_packet(block_type, body, order, interfaces, part)
        head = file.read(4)


def _detect_byte_order(magic: bytes, part: str) -> str:
    for order in "<>":
        if struct.pack(order + "I", BYTE_ORDER) == magic:
            return order
    raise DataError(f"{part} is damaged: its byte-order magic is {magic.hex(' ')}")


def _parse_interface(body: bytes, order: str, part: str) -> _Interface:
    if len(body) < 8:
        raise DataError(f"{part} is damaged: an interface description of {len(body)} bytes; it needs 8 or more")
    options = dict(reversed(list(_parse_options(body, 8, order))))
    resolution = options.get(RESOLUTION, _MICROSECONDS)[:1] or _MICROSECONDS
    exponent = resolution[0] & 0x7F
    offset = options.get(OFFSET_S, b"")
    return _Interface(
        struct.unpack_from(order + "H", body)[0],
        options.get(NAME, b"").decode("utf-8", "replace"),
        2**exponent if resolution[0] & 0x80 else 10**exponent,
        struct.unpack(order + "q", offset)[0] if len(offset) == 8 else 0,
    )


def _parse_packet(block_type: int, body: bytes, order: str, interfaces: list[_Interface], part: str) -> Packet:
    head_B = 20 if block_type == PACKET else 4
    if len(body) < head_B:
        raise DataError(f"{part} is damaged: a packet block of {len(body)} bytes; it needs {head_B} or more")
    number, time_us, comment = 0, -1, b""
    if block_type == PACKET:
        number, high, low, size_B, _ = struct.unpack_from(order + "IIIII", body)
    else:
        size_B = min(struct.unpack_from(order + "I", body)[0], len(body) - head_B)
    if number >= len(interfaces):
        raise DataError(f"{part} is damaged: it refers to interface {number}, but only {len(interfaces)} are described")
    if size_B > len(body) - head_B:
        raise DataError(f"{part} is damaged: its packet of {size_B:,} bytes is longer than the block")
    interface = interfaces[number]
    if block_type == PACKET:
        ticks = high << 32 | low
        time_us = ticks * 10**6 // interface.ticks_per_s + interface.offset_s * 10**6
        options = _parse_options(body, head_B + size_B + -size_B % 4, order)
        comment = next((value for code, value in options if code == COMMENT), b"")
    data = body[head_B : head_B + size_B]
    return Packet(time_us, interface.link_type, interface.name, data, comment.decode("utf-8", "replace"))


def _parse_options(body: bytes, begin: int, order: str) -> Iterator[Option]:
    """Yield the (code, value) pairs of a block's options, which begin at the offset ``begin`` of the block's body.

    Stop at an option that is longer than the body. ``order``: the byte order, "<" or ">".
    """
    while begin + 4 <= len(body):
        code, length_B = struct.unpack_from(order + "HH", body, begin)
        begin += 4
        if code == END_OF_OPTIONS or begin + length_B > len(body):
            return
        yield code, body[begin : begin + length_B]
        begin += length_B + -length_B % 4

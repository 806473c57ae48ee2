"""Frames to try a node with: those of real runs, and what becomes of them under damage. Nothing here knows a protocol.

Theory of operation
    Frames are *harvested* from small runs of the protocol. Each one that is drawn goes out as it is, *renumbered*, or
    *damaged*. To renumber is to put other numbers into fields, which the protocol's own taking apart finds (`frame` of
    its class); so what comes out is well-formed, but says something that no run says. To damage is to change, cut,
    insert, repeat or splice bytes. Where a frame ends with its checksum (CRC-32), that of the new bytes is put in its
    place every second time, for a node would look no further at a wrong one.
"""

from __future__ import annotations

import random  # noqa: TID251 (what is drawn here is no part of a run)
import struct
from binascii import crc32
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from workbench.attributes.event_bytes import CHECKSUM_B
from workbench.protocols.dissection import dissect

WIDEST_FIELD_B = 8  # that is renumbered
MOST_FIELDS = 3
LONGEST_B = 4096
MOST_KEPT = 4000  # frames of the node's own, which come back to it


class Frame(NamedTuple):
    """A frame as it went through the air: its bytes, who sent it, and whether all neighbors were meant."""

    data: bytes
    sender: int
    broadcast: bool


class Hail:
    """Frames drawn at random, by a seed: ``draw()`` gives the next."""

    def __init__(
        self, protocol: Any, harvest: Sequence[Frame], addresses: Iterable[int], choose: random.Random
    ) -> None:
        self._protocol = protocol
        self._frames = list(harvest)
        self._addresses = tuple(addresses)
        self._choose = choose
        self._numbers: dict[tuple[bytes, bool], list[tuple[int, int]]] = {}

    def add(self, frame: Frame) -> None:
        """Keep a frame of the node's own: neighbors send back what they hear."""
        if len(self._frames) < MOST_KEPT:
            self._frames.append(frame)
        else:
            self._frames[self._choose.randrange(MOST_KEPT)] = frame

    def draw(self) -> Frame:
        """A frame, as it was or changed."""
        choose = self._choose
        frame = choose.choice(self._frames)
        data = frame.data
        kind = choose.random()
        if kind < 0.4:
            data = self._renumbered(frame)
        elif kind < 0.7:
            data = self._damaged(data)
        sender = frame.sender if choose.random() < 0.7 else choose.choice(self._addresses)
        return Frame(data[:LONGEST_B], sender, frame.broadcast if choose.random() < 0.9 else not frame.broadcast)

    def _renumbered(self, frame: Frame) -> bytes:
        places = self._places(frame)
        if not places:
            return frame.data
        data = bytearray(frame.data)
        for _ in range(self._choose.randint(1, MOST_FIELDS)):
            first, last = self._choose.choice(places)
            data[first:last] = self._number(bytes(data[first:last]))
        return self._sealed(frame.data, data, always=True)

    def _places(self, frame: Frame) -> list[tuple[int, int]]:
        """(first byte, byte behind the last) of the frame's fields that may be numbers."""
        key = frame.data, frame.broadcast
        if key not in self._numbers:
            if len(self._numbers) > 2 * MOST_KEPT:
                self._numbers.clear()
            fields = dissect(self._protocol, *key).leaves()
            self._numbers[key] = [
                (field.start, field.end) for field in fields if 0 < field.end - field.start <= WIDEST_FIELD_B
            ]
        return self._numbers[key]

    def _number(self, old: bytes) -> bytes:
        """As many bytes that stand for another number, little-endian as all frames here, or anything."""
        choose, width = self._choose, len(old)
        value, end = int.from_bytes(old, "little"), 1 << (8 * width)
        near = (value + choose.choice((-2, -1, 1, 2, 16, end >> 1))) % end
        special = choose.choice((0, 1, end - 1, end >> 1, choose.choice(self._addresses) % end))
        return choose.choice((near, near, special, choose.randrange(end))).to_bytes(width, "little")

    def _damaged(self, old: bytes) -> bytes:
        data = bytearray(old)
        for _ in range(1 + int(self._choose.expovariate(0.7))):
            self._choose.choice(_DAMAGES)(data, self._choose, self._frames)
        return self._sealed(old, data, always=False)

    def _sealed(self, old: bytes, new: bytearray, always: bool) -> bytes:
        """The new bytes with a checksum that is right, if the old bytes had one."""
        had_one = len(old) > CHECKSUM_B and old[-CHECKSUM_B:] == struct.pack("<I", crc32(old[:-CHECKSUM_B]))
        if had_one and len(new) > CHECKSUM_B and (always or self._choose.random() < 0.5):
            new[-CHECKSUM_B:] = struct.pack("<I", crc32(new[:-CHECKSUM_B]))
        return bytes(new)


# Damages: each changes the bytes in place.


def _flip(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    if data:
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)


def _change(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    if data:
        data[choose.randrange(len(data))] = choose.choice((0, 1, 127, 128, 255, choose.randrange(256)))


def _cut(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    at = choose.randrange(len(data) + 1)
    del data[at : at + 1 + int(choose.expovariate(0.2))]


def _end(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    del data[choose.randrange(len(data) + 1) :]


def _insert(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    at = choose.randrange(len(data) + 1)
    data[at:at] = choose.randbytes(1 + int(choose.expovariate(0.3)))


def _repeat(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    at = choose.randrange(len(data) + 1)
    data[at:at] = data[at : at + 1 + int(choose.expovariate(0.1))] * (1 + int(choose.expovariate(0.2)))


def _splice(data: bytearray, choose: random.Random, frames: Sequence[Frame]) -> None:
    other = choose.choice(frames).data
    data[choose.randrange(len(data) + 1) :] = other[choose.randrange(len(other) + 1) :]


_DAMAGES = (_flip, _flip, _change, _cut, _end, _insert, _repeat, _splice)

"""A corpus of frames with which the nodes of any protocol are tested: frames of real runs, and mutations of them.

Theory of operation
    Frames are *harvested* from small runs of the protocol. A frame is chosen at random, and returned unchanged,
    *renumbered* or *damaged*. A renumbered frame has other numbers in some of its fields, which the protocol's
    dissector locates (`frame` of its class). It is well-formed, but has contents that do not occur in a run. In a
    damaged frame, bytes are changed, removed, inserted, repeated, or replaced by bytes of another frame. If a frame
    ends with its checksum (CRC-32), every second damaged copy gets a correct checksum, because a node drops a frame
    with a wrong one unread.
"""

from __future__ import annotations

import random  # noqa: TID251 (these draws do not affect a run)
import struct
from binascii import crc32
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from workbench.attributes.event_bytes import CHECKSUM_B
from workbench.protocols.dissection import dissect

WIDEST_FIELD_B = 8  # the widest field that is renumbered
MOST_FIELDS = 3  # fields of a frame that are renumbered at once
LONGEST_B = 4096  # a longer mutated frame is cut
MOST_FRAMES = 4000  # limit of the stored frames, including the node's own


class Frame(NamedTuple):
    """A frame as transmitted: its bytes, its sender, and whether it is a broadcast."""

    data: bytes
    sender: int
    broadcast: bool


class MutatedCorpus:
    """A source of random frames: ``draw()`` returns a stored frame, unchanged or mutated."""

    def __init__(
        self, protocol: Any, harvest: Sequence[Frame], addresses: Iterable[int], choose: random.Random
    ) -> None:
        self._protocol = protocol
        self._frames = list(harvest)
        self._addresses = tuple(addresses)
        self._choose = choose
        self._numbers: dict[tuple[bytes, bool], list[tuple[int, int]]] = {}

    def add(self, frame: Frame) -> None:
        """Store a frame that the node sent, so that neighbors can later send it back to the node."""
        if len(self._frames) < MOST_FRAMES:
            self._frames.append(frame)
        else:
            self._frames[self._choose.randrange(MOST_FRAMES)] = frame

    def draw(self) -> Frame:
        """Choose a stored frame at random; return it unchanged, with other numbers in its fields, or damaged."""
        choose = self._choose
        frame = choose.choice(self._frames)
        data = frame.data
        mutation_draw = choose.random()
        if mutation_draw < 0.4:
            data = self._renumber(frame)
        elif mutation_draw < 0.7:
            data = self._damage_frame(data)
        sender = frame.sender if choose.random() < 0.7 else choose.choice(self._addresses)
        return Frame(data[:LONGEST_B], sender, frame.broadcast if choose.random() < 0.9 else not frame.broadcast)

    def _renumber(self, frame: Frame) -> bytes:
        field_ranges = self._find_number_fields(frame)
        if not field_ranges:
            return frame.data
        data = bytearray(frame.data)
        for _ in range(self._choose.randint(1, MOST_FIELDS)):
            first_byte, end_byte = self._choose.choice(field_ranges)
            data[first_byte:end_byte] = self._choose_other_number(bytes(data[first_byte:end_byte]))
        return self._update_checksum(frame.data, data, always=True)

    def _find_number_fields(self, frame: Frame) -> list[tuple[int, int]]:
        """Return the byte range [first, end) of each field of the frame that is short enough to be a number."""
        cache_key = frame.data, frame.broadcast
        if cache_key not in self._numbers:
            if len(self._numbers) > 2 * MOST_FRAMES:
                self._numbers.clear()
            fields = dissect(self._protocol, *cache_key).leaves()
            self._numbers[cache_key] = [
                (field.start, field.end) for field in fields if 0 < field.end - field.start <= WIDEST_FIELD_B
            ]
        return self._numbers[cache_key]

    def _choose_other_number(self, old: bytes) -> bytes:
        """Return a random replacement for ``old``, the bytes of a little-endian number, with the same width."""
        choose, width = self._choose, len(old)
        value, end = int.from_bytes(old, "little"), 1 << (8 * width)
        close_value = (value + choose.choice((-2, -1, 1, 2, 16, end >> 1))) % end
        special_number = choose.choice((0, 1, end - 1, end >> 1, choose.choice(self._addresses) % end))
        return choose.choice((close_value, close_value, special_number, choose.randrange(end))).to_bytes(
            width, "little"
        )

    def _damage_frame(self, old: bytes) -> bytes:
        data = bytearray(old)
        for _ in range(1 + int(self._choose.expovariate(0.7))):
            self._choose.choice(_MUTATIONS)(data, self._choose, self._frames)
        return self._update_checksum(old, data, always=False)

    def _update_checksum(self, old: bytes, new: bytearray, always: bool) -> bytes:
        """Return ``new`` as bytes, with a correct checksum if the frame ``old`` ended with a correct checksum.

        If ``always`` is false, the checksum is corrected with probability 0.5 only.
        """
        had_checksum = len(old) > CHECKSUM_B and old[-CHECKSUM_B:] == struct.pack("<I", crc32(old[:-CHECKSUM_B]))
        if had_checksum and len(new) > CHECKSUM_B and (always or self._choose.random() < 0.5):
            new[-CHECKSUM_B:] = struct.pack("<I", crc32(new[:-CHECKSUM_B]))
        return bytes(new)


# Mutations: each changes the bytes in place.


def _flip_bit(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    if data:
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)


def _change_byte(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    if data:
        data[choose.randrange(len(data))] = choose.choice((0, 1, 127, 128, 255, choose.randrange(256)))


def _cut_bytes(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    position = choose.randrange(len(data) + 1)
    del data[position : position + 1 + int(choose.expovariate(0.2))]


def _truncate(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    del data[choose.randrange(len(data) + 1) :]


def _insert_bytes(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    position = choose.randrange(len(data) + 1)
    data[position:position] = choose.randbytes(1 + int(choose.expovariate(0.3)))


def _repeat_bytes(data: bytearray, choose: random.Random, _: Sequence[Frame]) -> None:
    position = choose.randrange(len(data) + 1)
    data[position:position] = data[position : position + 1 + int(choose.expovariate(0.1))] * (
        1 + int(choose.expovariate(0.2))
    )


def _splice_frames(data: bytearray, choose: random.Random, frames: Sequence[Frame]) -> None:
    other_data = choose.choice(frames).data
    data[choose.randrange(len(data) + 1) :] = other_data[choose.randrange(len(other_data) + 1) :]


_MUTATIONS = (_flip_bit, _flip_bit, _change_byte, _cut_bytes, _truncate, _insert_bytes, _repeat_bytes, _splice_frames)

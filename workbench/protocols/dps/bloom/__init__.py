"""DPS's bit vectors: Bloom filters of topics, their counting sum, the fuzzy hash, and how they look on the wire.

Theory of operation
    A Bloom filter is a bit vector into which items are hashed: an item sets a few bits, and a vector that lacks one of
    them does not hold the item. DPS puts the items of topics (`workbench.protocols.dps.topics`) into filters of one
    length for the whole mesh, so that "could this publication matter there?" is a comparison of vectors, and no node
    need know the topics.

    Positions    SHA-256 of the item; its first words, as little-endian numbers of 32 bits, modulo the length: one bit
                 each.
    Fuzzy hash   256 bits that say roughly which bits are set: if a vector includes another, so do their fuzzy hashes.
                 The first three words are the vector folded to 64 bits and smeared by rotations, the last one counts
                 its bits in unary. The fuzzy hashes that all subscriptions behind a link have in common are its
                 "needs".
    Counting     what is behind a link is a sum of vectors that come and go. The union is where one or more have the
                 bit, the intersection where all have it.
    Wire         CBOR ``[flags, length, bytes]``. Flags: 1 run lengths, 2 complement. Below a load of 30 % the lengths
                 of runs of zeros are written in an Elias-gamma code, above 70 % those of the complement; else the bytes
                 as they are. Where run lengths would be longer than the vector, which happens in short ones, the
                 bytes are written; the reference implementation fails there, but reads what we write.

    A vector is one Python integer (bit b is ``1 << b``; its little-endian bytes are the wire's), so a union, a
    comparison or a count is one operation of the interpreter. A counting vector is a list of such integers, its
    counters' binary digits: adding a vector is a ripple-carry over all counters at once.

Cost
    Of 8192 bits: a union or an inclusion some 0.1 µs, a routing decision 2 µs, an item 1.5 µs, encoding a filter of one
    topic 15 µs, again 1 µs. In arrays: `workbench.protocols.dps.bloom.arrays`.

Limits
    Lengths are multiples of 64 up to 524,288 bits, what a datagram holds. The reference's run lengths break above
    65,535 zeros, so a mesh that it belongs to should stay below 65,536 bits. The load is compared in whole numbers; the
    reference compares 32-bit floats, which is the same up to 131,072 bits.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427: the format is that of its code, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from struct import unpack

from workbench.errors import DecodeError, ParameterError
from workbench.protocols.dps.wire import cbor

LENGTH = 8192
LONGEST = 1 << 19
HASHES = 3
MOST_HASHES = 8
FUZZY_HASH_BITS = 256
FUZZY_HASH_B = FUZZY_HASH_BITS // 8
RUN_LENGTHS, COMPLEMENT = 1, 2

WORD = 64
_WORD_MASK = (1 << WORD) - 1
_ROTATIONS = ((7, 31), (11, 29, 37), (13, 17, 19, 41))
SPARSE_PERCENT, DENSE_PERCENT = 30, 70  # of a vector: up to there, and from there on, run lengths are sent
# A series of publications has one filter, and links tell each other the same ones. Of the longest this is 16 MB.
_KEPT_RUNS = 128


@dataclass(slots=True, unsafe_hash=True, repr=False)
class BitVector:
    """A bit vector of a fixed length: a Bloom filter, or one of the vectors made from filters.

    ``bits`` is the vector as an integer. Two vectors of different lengths do not mix: ParameterError.
    """

    length: int = LENGTH
    bits: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.length, int) and 0 < self.length <= LONGEST and self.length % WORD == 0):
            raise ParameterError(
                f"a bit vector of length {self.length!r}: it must be a multiple of 64 from 64 to {LONGEST}"
            )
        if self.bits >> self.length:
            raise ParameterError(f"bit {self.bits.bit_length() - 1} is outside of a bit vector of length {self.length}")

    @classmethod
    def of(cls, items: Iterable[bytes | str], length: int = LENGTH, hashes: int = HASHES) -> BitVector:
        """The filter of some items."""
        vector = cls(length)
        for item in items:
            vector.add(item, hashes)
        return vector

    @classmethod
    def at(cls, positions: Iterable[int], length: int = LENGTH) -> BitVector:
        """The vector with those bits set; ParameterError if one is outside of it."""
        bits = 0
        for position in positions:
            if not 0 <= position < length:
                raise ParameterError(f"bit {position} is outside of a bit vector of length {length}")
            bits |= 1 << position
        return cls(length, bits)

    @classmethod
    def from_bytes(cls, data: bytes) -> BitVector:
        """The vector of 8 bits a byte, the lowest bit of a byte first."""
        return cls(8 * len(data), int.from_bytes(data, "little"))

    def to_bytes(self) -> bytes:
        """All bits, 8 in a byte, the lowest first."""
        return self.bits.to_bytes(self.length // 8, "little")

    def add(self, item: bytes | str, hashes: int = HASHES) -> None:
        """Put an item (bytes, or a text as UTF-8) into the filter, with 1 to 8 hashes."""
        for position in item_positions(item, self.length, hashes):
            self.bits |= 1 << position

    def positions(self) -> list[int]:
        """The bits that are set, ascending."""
        return positions_of(self.bits)

    @property
    def popcount(self) -> int:
        """How many bits are set."""
        return self.bits.bit_count()

    @property
    def fill(self) -> float:
        """Which share of the bits is set, 0 to 1."""
        return self.bits.bit_count() / self.length

    @property
    def is_empty(self) -> bool:
        """Whether no bit is set."""
        return not self.bits

    def copy(self) -> BitVector:
        """A vector of its own with the same bits."""
        return BitVector(self.length, self.bits)

    def includes(self, other: BitVector) -> bool:
        """Whether every bit of the other is set here; an empty vector includes nothing, not even another one.

        That is how the reference tests a publication against a subscription.
        """
        _check_lengths(self, other)
        return bool(self.bits) and not other.bits & ~self.bits

    def __or__(self, other: BitVector) -> BitVector:
        _check_lengths(self, other)
        return BitVector(self.length, self.bits | other.bits)

    def __and__(self, other: BitVector) -> BitVector:
        _check_lengths(self, other)
        return BitVector(self.length, self.bits & other.bits)

    def __xor__(self, other: BitVector) -> BitVector:
        _check_lengths(self, other)
        return BitVector(self.length, self.bits ^ other.bits)

    def __repr__(self) -> str:
        return f"BitVector({self.length}) with {self.popcount} bits set"

    def fuzzy_hash(self) -> bytes:
        """The fuzzy hash: 32 bytes."""
        return fuzzy_hash_bits(self.bits, self.length).to_bytes(FUZZY_HASH_B, "little")

    def encode(self) -> bytes:
        """The CBOR item ``[flags, length, bytes]``."""
        load, flags, data = 100 * self.popcount + 1, 0, None
        if load < SPARSE_PERCENT * self.length:
            flags, data = RUN_LENGTHS, _encode_runs(self.bits, self.length)
        elif load > DENSE_PERCENT * self.length:
            flags, data = RUN_LENGTHS | COMPLEMENT, _encode_runs(self.bits ^ ((1 << self.length) - 1), self.length)
        if data is None:
            flags, data = 0, self.to_bytes()
        return b"".join((cbor.array(3), cbor.unsigned(flags), cbor.unsigned(self.length), cbor.byte_string(data)))

    @classmethod
    def decode(cls, data: bytes, length: int | None = None) -> BitVector:
        """The vector of a CBOR item and nothing behind it; DecodeError for any other bytes.

        With ``length``, a vector of another one is refused before anything is unpacked.
        """
        reader = cbor.Reader(data)
        vector = cls.read(reader, length)
        reader.end()
        return vector

    @classmethod
    def read(cls, reader: cbor.Reader, length: int | None = None) -> BitVector:
        """The vector at the place where a reader of CBOR is; DecodeError if there is none."""
        start = reader.at
        reader.array("a bit vector", 3)
        flags = reader.unsigned("flags of a bit vector", RUN_LENGTHS | COMPLEMENT)
        given = reader.unsigned("length of a bit vector", LONGEST)
        data = reader.byte_string("bits of a bit vector")
        if not given or given % WORD:
            raise DecodeError(f"byte {start}: a bit vector of {given} bits; the length must be a multiple of 64")
        if length is not None and given != length:
            raise DecodeError(f"byte {start}: a bit vector of {given} bits; those of this mesh have {length}")
        if flags & RUN_LENGTHS:
            # What is longer than the vector has zeros behind it, or is an error: not to be kept.
            decode_runs = _decode_runs if 8 * len(data) <= given else _decode_runs.__wrapped__
            bits = decode_runs(data, given, start)
        elif 8 * len(data) != given:
            raise DecodeError(
                f"byte {start}: {len(data)} bytes for a bit vector of {given} bits, which has {given // 8}"
            )
        else:
            bits = int.from_bytes(data, "little")
        return cls(given, bits ^ ((1 << given) - 1) if flags & COMPLEMENT else bits)


class CountingVector:
    """The sum of the vectors that are behind a link, of which each may be taken away again.

    ``entries`` is how many it holds. Its counters have no limit.
    """

    __slots__ = ("_digits", "entries", "length")

    def __init__(self, length: int = LENGTH) -> None:
        self.length = BitVector(length).length
        self.entries = 0
        self._digits: list[int] = []  # of all counters at once, the lowest digit first

    def add(self, vector: BitVector) -> None:
        """One entry more."""
        _check_lengths(self, vector)
        carry = vector.bits
        digits = self._digits
        for place in range(len(digits)):
            digits[place], carry = digits[place] ^ carry, digits[place] & carry
            if not carry:
                break
        if carry:
            digits.append(carry)
        self.entries += 1

    def remove(self, vector: BitVector) -> None:
        """One entry less; ParameterError, and no change, if no entry can have been this one."""
        _check_lengths(self, vector)
        digits = self._digits[:]
        borrow = vector.bits
        for place in range(len(digits)):
            digits[place], borrow = digits[place] ^ borrow, borrow & ~digits[place]
            if not borrow:
                break
        if borrow or not self.entries:
            raise ParameterError("a vector was removed that is not in the counting vector; remove only what was added")
        while digits and not digits[-1]:
            digits.pop()
        self._digits = digits
        self.entries -= 1

    def without(self, vector: BitVector) -> CountingVector:
        """The sum of all entries but this one; this sum stays as it is."""
        rest = CountingVector(self.length)
        rest._digits = self._digits[:]
        rest.entries = self.entries
        rest.remove(vector)
        return rest

    def union(self) -> BitVector:
        """The bits that one entry or more have."""
        bits = 0
        for digit in self._digits:
            bits |= digit
        return BitVector(self.length, bits)

    def intersection(self) -> BitVector:
        """The bits that all entries have; none if there is no entry."""
        every = (1 << self.length) - 1
        bits = every if self.entries else 0
        for place, digit in enumerate(self._digits):
            bits &= digit if self.entries >> place & 1 else every ^ digit
        return BitVector(self.length, bits if not self.entries >> len(self._digits) else 0)

    def count(self, position: int) -> int:
        """How many entries have that bit."""
        return sum((digit >> position & 1) << place for place, digit in enumerate(self._digits))


def routes(publication: BitVector, interests: BitVector, needs: bytes) -> bool:
    """Whether a publication goes over a link with these interests and needs (32 bytes).

    The fuzzy hash of what filter and interests have in common must include the needs. Interests are a union, so a
    publication for one of many subscriptions does not include them all; needs are what all of them ask for.
    """
    _check_lengths(publication, interests)
    common = publication.bits & interests.bits
    if not common:
        return False
    return not int.from_bytes(needs, "little") & ~fuzzy_hash_bits(common, publication.length)


def _check_lengths(one: BitVector | CountingVector, other: BitVector) -> None:
    if one.length != other.length:
        raise ParameterError(f"bit vectors of {one.length} and {other.length} bits; both must have one length")


def item_positions(item: bytes | str, length: int, hashes: int = HASHES) -> list[int]:
    """The bits of an item in a filter of that length, one for each hash; a bit may come twice."""
    if not (isinstance(hashes, int) and 1 <= hashes <= MOST_HASHES):
        raise ParameterError(f"{hashes!r} hashes for an item of a filter; there may be 1 to {MOST_HASHES}")
    data = item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item
    return [word % length for word in unpack("<8I", sha256(data).digest())[:hashes]]


def positions_of(bits: int) -> list[int]:
    """The places of the ones of a number, ascending."""
    text = bin(bits)
    highest = len(text) - 1
    positions = []
    at = text.rfind("1")
    while at >= 0:
        positions.append(highest - at)
        at = text.rfind("1", 0, at)
    return positions


def fuzzy_hash_bits(bits: int, length: int) -> int:
    """The fuzzy hash of a vector given as a number; a number of 256 bits."""
    if not bits:
        return 0
    folded = bits
    words = length // WORD
    while words > 1:
        words = (words + 1) // 2
        folded = (folded >> words * WORD) | (folded & ((1 << words * WORD) - 1))
    popcount = bits.bit_count()
    result = (1 << popcount) - 1 if popcount < WORD - 1 else _WORD_MASK
    for rotations in reversed(_ROTATIONS):
        word = folded
        for by in rotations:
            # Each rotation is of what the ones before it made, not of the folded vector.
            word |= (word << by | word >> (WORD - by)) & _WORD_MASK
        result = result << WORD | word
    return result


@lru_cache(maxsize=1 << 14)
def _code(zeros: int) -> str:
    """The code of a run of zeros before a one; what is written first stands last, as in a number."""
    width = (zeros + 1).bit_length() - 1
    rest = bin(zeros + 1)[3:]  # what is above 2 ** width - 1, in width digits
    return rest + "1" + "0" * width


@lru_cache(maxsize=_KEPT_RUNS)
def _encode_runs(bits: int, length: int) -> bytes | None:
    """The run lengths of a vector; None if they are longer than the vector is."""
    if not bits:
        return b""
    # The highest one comes first in a number's text, and its run is what follows it.
    runs = bin(bits)[3:].split("1")
    stream = "".join([_code(len(run)) for run in runs])
    if len(stream) > length:
        return None
    return int(stream, 2).to_bytes((len(stream) + 7) // 8, "little")


@lru_cache(maxsize=_KEPT_RUNS)
def _decode_runs(data: bytes, length: int, start: int) -> int:
    """The vector of some run lengths; DecodeError if they lead outside of it or end in the middle of one."""
    stream = format(int.from_bytes(data, "little"), f"0{8 * len(data)}b") if data else ""
    vector = bytearray(length // 8)
    position = 0
    end = len(stream)
    one = stream.rfind("1")
    while one >= 0:
        width = end - 1 - one
        end = one - width
        if end < 0 or width > LONGEST.bit_length():
            raise DecodeError(f"byte {start}: the run lengths of a bit vector end in the middle of one")
        if width:
            position += (1 << width) - 1 + int(stream[end:one], 2)
        if position >= length:
            raise DecodeError(f"byte {start}: the run lengths of a bit vector lead outside of its {length} bits")
        vector[position >> 3] |= 1 << (position & 7)
        position += 1
        one = stream.rfind("1", 0, end)
    return int.from_bytes(vector, "little")

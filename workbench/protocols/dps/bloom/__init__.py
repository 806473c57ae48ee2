"""DPS's bit vectors: Bloom filters of topics, sums that count their bits, the fuzzy hash, and the encoding in messages.

Theory of operation
    A Bloom filter is a bit vector into which items are hashed: an item sets a few bits, and a vector that lacks one of
    them does not hold the item. DPS puts the items of topics (`workbench.protocols.dps.topics`) into filters of one
    length for the whole mesh. So a node decides by comparing vectors whether a publication may match interests, and
    needs no topics for that.

    Positions    the item's SHA-256 digest is read as 32-bit little-endian words. Each of its first words, modulo the
                 length of the vector, is the position of one bit.
    Fuzzy hash   256 bits (four 64-bit words) that summarize which bits are set. If vector a includes vector b, then a's
                 fuzzy hash includes b's. Each of the first three words is the vector, folded to 64 bits and combined
                 with rotations of itself. The last word is the number of set bits, in unary. The bits that the fuzzy
                 hashes of all subscriptions behind a link share are the link's "needs".
    Counting     a counting vector is a sum of vectors: for each bit, it counts how many of the added vectors have it.
                 So a vector can be removed again. A bit is in the union if at least one vector has it, and in the
                 intersection if all vectors have it.
    Wire         CBOR ``[flags, length, bytes]``. Flags: 1 run lengths, 2 complement. If less than 30 % of the bits are
                 set, the bytes are the lengths of the runs of zeros in an Elias-gamma code. Above 70 %, they are the
                 run lengths of the complement. Otherwise they are the plain vector. They are also the plain vector if
                 the run lengths would be longer, as is common in short vectors. The C implementation cannot encode such
                 a vector, but it can decode the plain bytes.

    A vector is one Python integer (bit b is ``1 << b``; the wire has its little-endian bytes), so a union, a
    comparison or a count is one operation of the interpreter. A counting vector is a list of such integers, one for
    each binary digit of the counters: adding a vector is a ripple-carry over all counters at once.

Cost
    With 8192 bits: a union or an inclusion about 0.1 µs, a routing decision 2 µs, adding an item 1.5 µs, encoding a
    filter of one topic 15 µs, or 1 µs if its encoding is still in the cache. For arrays of filters:
    `workbench.protocols.dps.bloom.arrays`.

Limits
    Lengths are multiples of 64 up to 524,288 bits, which a datagram holds. The C implementation fails for runs of more
    than 65,535 zeros, so a mesh with C nodes should use filters of fewer than 65,536 bits. The share of set bits is
    compared in integers; the C implementation compares 32-bit floats, which gives the same result up to 131,072 bits.

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
SPARSE_PERCENT, DENSE_PERCENT = 30, 70  # below and above these loads, run lengths are sent
# All publications of a series have one filter, and the same interests recur on links. With the longest filters these
# cached codes take 16 MB.
_CACHED_CODES = 128


@dataclass(slots=True, unsafe_hash=True, repr=False)
class BitVector:
    """A bit vector of a fixed length: a Bloom filter, or a vector computed from filters.

    ``bits`` is the vector as an integer. Operations on two vectors of different lengths raise ParameterError.
    """

    length: int = LENGTH
    bits: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.length, int) and 0 < self.length <= LONGEST and self.length % WORD == 0):
            raise ParameterError(
                f"the length of a bit vector is {self.length!r}; it must be a multiple of 64 from 64 to {LONGEST}"
            )
        if self.bits >> self.length:
            raise ParameterError(f"bit {self.bits.bit_length() - 1} is outside of a bit vector of length {self.length}")

    @classmethod
    def of(cls, items: Iterable[bytes | str], length: int = LENGTH, hashes: int = HASHES) -> BitVector:
        """Return the Bloom filter that contains these items (bytes, or texts as UTF-8).

        ``length``: length of the filter in bits. ``hashes``: number of bits that each item sets, 1 to 8.
        """
        vector = cls(length)
        for item in items:
            vector.add(item, hashes)
        return vector

    @classmethod
    def at(cls, positions: Iterable[int], length: int = LENGTH) -> BitVector:
        """Return the vector in which exactly the bits at these positions are set.

        ``length``: length of the vector in bits. Raises ParameterError for a position outside [0, length).
        """
        vector_bits = 0
        for position in positions:
            if not 0 <= position < length:
                raise ParameterError(f"bit {position} is outside of a bit vector of length {length}")
            vector_bits |= 1 << position
        return cls(length, vector_bits)

    @classmethod
    def from_bytes(cls, data: bytes) -> BitVector:
        """Return the vector with the bits of ``data``, 8 for each byte; bit 0 is the lowest bit of the first byte."""
        return cls(8 * len(data), int.from_bytes(data, "little"))

    def to_bytes(self) -> bytes:
        """Return the vector as ``length / 8`` bytes; bit 0 is the lowest bit of the first byte."""
        return self.bits.to_bytes(self.length // 8, "little")

    def add(self, item: bytes | str, hashes: int = HASHES) -> None:
        """Add an item (bytes, or a text as UTF-8) to the filter; ``hashes``: number of bits that the item sets, 1 to 8.

        Some of these bits may coincide.
        """
        for position in item_positions(item, self.length, hashes):
            self.bits |= 1 << position

    def positions(self) -> list[int]:
        """Return the positions of the bits that are set, ascending."""
        return positions_of(self.bits)

    @property
    def memory_B(self) -> int:
        """Memory of the vector on a mote in bytes: all of its bits, zeros included, and 4 bytes for its length."""
        return self.length // 8 + 4

    @property
    def popcount(self) -> int:
        """Number of set bits of the vector."""
        return self.bits.bit_count()

    @property
    def fill(self) -> float:
        """Share of the bits that are set, 0 to 1."""
        return self.bits.bit_count() / self.length

    @property
    def is_empty(self) -> bool:
        """True if no bit is set."""
        return not self.bits

    def copy(self) -> BitVector:
        """Return an independent vector with the same bits."""
        return BitVector(self.length, self.bits)

    def includes(self, other: BitVector) -> bool:
        """Return whether this vector has all bits of ``other``; False if this vector has no bits set.

        The C implementation does the same test with a publication's filter (this vector) and a subscription's filter
        (``other``).
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
        """Return the fuzzy hash, 32 bytes that summarize which bits of the vector are set."""
        return fuzzy_hash_bits(self.bits, self.length).to_bytes(FUZZY_HASH_B, "little")

    def encode(self) -> bytes:
        """Return the vector as the CBOR item ``[flags, length, bytes]``."""
        load_percent, flags, data = 100 * self.popcount + 1, 0, None
        if load_percent < SPARSE_PERCENT * self.length:
            flags, data = RUN_LENGTHS, _encode_runs(self.bits, self.length)
        elif load_percent > DENSE_PERCENT * self.length:
            flags, data = RUN_LENGTHS | COMPLEMENT, _encode_runs(self.bits ^ ((1 << self.length) - 1), self.length)
        if data is None:
            flags, data = 0, self.to_bytes()
        return b"".join((cbor.array(3), cbor.unsigned(flags), cbor.unsigned(self.length), cbor.byte_string(data)))

    @classmethod
    def decode(cls, data: bytes, length: int | None = None) -> BitVector:
        """Return the vector that ``data`` encodes as a CBOR item (see `encode`).

        Raises DecodeError if ``data`` is not such an item, or if bytes follow the item. If ``length`` is given, also
        raises DecodeError for a vector of another length (in bits), before the vector is unpacked.
        """
        reader = cbor.Reader(data)
        vector = cls.read(reader, length)
        reader.end()
        return vector

    @classmethod
    def read(cls, reader: cbor.Reader, length: int | None = None) -> BitVector:
        """Read and return the vector at a reader's position; raise DecodeError if the next item is not a vector.

        If ``length`` is given, also raise DecodeError for a vector of another length (in bits), before the vector is
        unpacked.
        """
        item_begin = reader.at
        reader.array("a bit vector", 3)
        flags = reader.unsigned("flags of a bit vector", RUN_LENGTHS | COMPLEMENT)
        received_length = reader.unsigned("length of a bit vector", LONGEST)
        vector_bytes = reader.byte_string("bits of a bit vector")
        if not received_length or received_length % WORD:
            raise DecodeError(
                f"byte {item_begin}: a bit vector has {received_length} bits; the length must be a multiple of 64"
            )
        if length is not None and received_length != length:
            raise DecodeError(f"byte {item_begin}: a bit vector has {received_length} bits; this mesh uses {length}")
        if flags & RUN_LENGTHS:
            # A code longer than the vector is padded with zeros, or is an error: do not cache it.
            decode_runs = _decode_runs if 8 * len(vector_bytes) <= received_length else _decode_runs.__wrapped__
            vector_bits = decode_runs(vector_bytes, received_length, item_begin)
        elif 8 * len(vector_bytes) != received_length:
            raise DecodeError(
                f"byte {item_begin}: a bit vector of {received_length} bits has {len(vector_bytes)} bytes; "
                f"it must have {received_length // 8}"
            )
        else:
            vector_bits = int.from_bytes(vector_bytes, "little")
        return cls(received_length, vector_bits ^ ((1 << received_length) - 1) if flags & COMPLEMENT else vector_bits)


class CountingVector:
    """A sum of bit vectors: for each bit position, the number of added vectors that have this bit (unbounded).

    A vector that was added may be removed again. ``entries`` is the number of vectors in the sum.
    """

    __slots__ = ("_digits", "entries", "length")

    def __init__(self, length: int = LENGTH) -> None:
        self.length = BitVector(length).length
        self.entries = 0
        self._digits: list[int] = []  # binary digits of all counters, the lowest first

    @property
    def memory_B(self) -> int:
        """Memory of the sum on a mote in bytes: one bit vector for each binary digit of the counters, and 8 bytes."""
        return len(self._digits) * self.length // 8 + 8

    def add(self, vector: BitVector) -> None:
        """Add a vector to the sum."""
        _check_lengths(self, vector)
        carry_bits = vector.bits
        digits = self._digits
        for power in range(len(digits)):
            digits[power], carry_bits = digits[power] ^ carry_bits, digits[power] & carry_bits
            if not carry_bits:
                break
        if carry_bits:
            digits.append(carry_bits)
        self.entries += 1

    def remove(self, vector: BitVector) -> None:
        """Subtract a vector that was added to this sum.

        If the vector cannot be in the sum, raise ParameterError and change nothing.
        """
        _check_lengths(self, vector)
        digits = self._digits[:]
        borrow_bits = vector.bits
        for power in range(len(digits)):
            digits[power], borrow_bits = digits[power] ^ borrow_bits, borrow_bits & ~digits[power]
            if not borrow_bits:
                break
        if borrow_bits or not self.entries:
            raise ParameterError("the vector is not in the counting vector; remove only vectors that were added")
        while digits and not digits[-1]:
            digits.pop()
        self._digits = digits
        self.entries -= 1

    def without(self, vector: BitVector) -> CountingVector:
        """Return a copy of the sum from which ``vector`` is removed; this sum does not change.

        Raises ParameterError if the vector cannot be in the sum.
        """
        reduced_sum = CountingVector(self.length)
        reduced_sum._digits = self._digits[:]
        reduced_sum.entries = self.entries
        reduced_sum.remove(vector)
        return reduced_sum

    def union(self) -> BitVector:
        """Return the vector of the bits that at least one vector in the sum has set."""
        union_bits = 0
        for digit in self._digits:
            union_bits |= digit
        return BitVector(self.length, union_bits)

    def intersection(self) -> BitVector:
        """Return the vector of the bits that all vectors in the sum have set; no bits are set if the sum is empty."""
        all_ones = (1 << self.length) - 1
        shared_bits = all_ones if self.entries else 0
        for power, digit in enumerate(self._digits):
            shared_bits &= digit if self.entries >> power & 1 else all_ones ^ digit
        return BitVector(self.length, shared_bits if not self.entries >> len(self._digits) else 0)

    def count(self, position: int) -> int:
        """Return how many vectors in the sum have the bit at a position."""
        return sum((digit >> position & 1) << power for power, digit in enumerate(self._digits))


def routes(publication: BitVector, interests: BitVector, needs: bytes) -> bool:
    """Return whether a publication, given by its filter, is sent over a link with these interests and needs.

    The publication is sent if (the publication's filter AND the interests) has a fuzzy hash that includes the needs (32
    bytes). Interests unite the filters of several subscriptions, so a matching publication need not have all their
    bits. But it has all bits of at least one of these filters, and the fuzzy hash of each filter includes the needs.
    """
    _check_lengths(publication, interests)
    common_bits = publication.bits & interests.bits
    if not common_bits:
        return False
    return not int.from_bytes(needs, "little") & ~fuzzy_hash_bits(common_bits, publication.length)


def _check_lengths(vector: BitVector | CountingVector, other: BitVector) -> None:
    if vector.length != other.length:
        raise ParameterError(f"bit vectors have {vector.length} and {other.length} bits; the lengths must be equal")


def item_positions(item: bytes | str, length: int, hashes: int = HASHES) -> list[int]:
    """Return the positions of an item's bits in a filter of ``length`` bits, one for each hash; some may be equal."""
    if not (isinstance(hashes, int) and 1 <= hashes <= MOST_HASHES):
        raise ParameterError(f"`hashes` is {hashes!r}; it must be a whole number from 1 to {MOST_HASHES}")
    item_bytes = item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item
    return [digest_word % length for digest_word in unpack("<8I", sha256(item_bytes).digest())[:hashes]]


def positions_of(bits: int) -> list[int]:
    """Return the positions of the bits that are set in an integer, ascending."""
    digits = bin(bits)
    highest_position = len(digits) - 1
    positions = []
    digit_index = digits.rfind("1")
    while digit_index >= 0:
        positions.append(highest_position - digit_index)
        digit_index = digits.rfind("1", 0, digit_index)
    return positions


def fuzzy_hash_bits(bits: int, length: int) -> int:
    """Return the fuzzy hash of a vector as an integer of 256 bits; ``bits`` is the vector as an integer."""
    if not bits:
        return 0
    folded_bits = bits
    word_count = length // WORD
    while word_count > 1:
        word_count = (word_count + 1) // 2
        folded_bits = (folded_bits >> word_count * WORD) | (folded_bits & ((1 << word_count * WORD) - 1))
    popcount = bits.bit_count()
    hash_bits = (1 << popcount) - 1 if popcount < WORD - 1 else _WORD_MASK
    for rotations in reversed(_ROTATIONS):
        hash_word = folded_bits
        for distance in rotations:
            # Each rotation applies to the result of the previous rotations, not to the folded vector.
            hash_word |= (hash_word << distance | hash_word >> (WORD - distance)) & _WORD_MASK
        hash_bits = hash_bits << WORD | hash_word
    return hash_bits


@lru_cache(maxsize=1 << 14)
def _gamma_code(zeros: int) -> str:
    """Return the Elias-gamma code of a run of ``zeros`` zeros as a text of digits 0 and 1.

    The digits are in reverse order: the last digit of the text is the first bit of the code.
    """
    prefix_length = (zeros + 1).bit_length() - 1
    low_digits = bin(zeros + 1)[3:]  # zeros + 1 without its highest digit, in ``prefix_length`` digits
    return low_digits + "1" + "0" * prefix_length


@lru_cache(maxsize=_CACHED_CODES)
def _encode_runs(bits: int, length: int) -> bytes | None:
    """Return the run-length code of the vector ``bits``, or None if the code has more bits than the vector itself."""
    if not bits:
        return b""
    # The highest bit that is set comes first in a number's text, and its run of zeros follows it.
    zero_runs = bin(bits)[3:].split("1")
    code_digits = "".join([_gamma_code(len(run)) for run in zero_runs])
    if len(code_digits) > length:
        return None
    return int(code_digits, 2).to_bytes((len(code_digits) + 7) // 8, "little")


@lru_cache(maxsize=_CACHED_CODES)
def _decode_runs(data: bytes, length: int, start: int) -> int:
    """Return the vector whose run-length code is ``data``, as an integer.

    ``length``: number of bits of the vector. ``start``: position of the vector in its message, for the error message.
    Raises DecodeError if the runs exceed ``length`` bits, or if ``data`` ends in the middle of a code.
    """
    code_digits = format(int.from_bytes(data, "little"), f"0{8 * len(data)}b") if data else ""
    vector_bytes = bytearray(length // 8)
    bit_position = 0
    code_end = len(code_digits)
    marker = code_digits.rfind("1")
    while marker >= 0:
        prefix_length = code_end - 1 - marker
        code_end = marker - prefix_length
        if code_end < 0 or prefix_length > LONGEST.bit_length():
            raise DecodeError(f"byte {start}: the run lengths of a bit vector end within a code")
        if prefix_length:
            bit_position += (1 << prefix_length) - 1 + int(code_digits[code_end:marker], 2)
        if bit_position >= length:
            raise DecodeError(f"byte {start}: the run lengths of a bit vector exceed its {length} bits")
        vector_bytes[bit_position >> 3] |= 1 << (bit_position & 7)
        bit_position += 1
        marker = code_digits.rfind("1", 0, code_end)
    return int.from_bytes(vector_bytes, "little")

"""The part of CBOR that DPS's messages are made of: bytes <-> items, read one after the other.

Theory of operation
    DPS walks its maps: keys must ascend, what it does not know is skipped, and lengths must be definite. A library that
    hands out dictionaries has forgotten the order of keys, a key that came twice and how a length was written, so the
    messages are read item by item here. cbor2 is this reader's oracle in the tests.

    ``Reader`` says at each step what must come next; anything else is a DecodeError that names the byte. Lengths and
    counts are compared with what is left before anything is made, and items are skipped without recursion, so the time
    is linear in the bytes and the memory no more than a copy of them.

    The writers give the shortest form of one item each; an array or map is its head and then its items.

Limits
    Definite lengths only; integers up to 64 bits. No floats, but they can be skipped. Any width of an integer is read.

Reference
    RFC 8949.
"""

from __future__ import annotations

from struct import pack, unpack_from

from workbench.errors import DecodeError, EncodeError

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, SIMPLE = range(8)
NAMES = (
    "an unsigned integer",
    "a negative integer",
    "a byte string",
    "a text",
    "an array",
    "a map",
    "a tag",
    "a simple value",
)
FALSE, TRUE, NULL = b"\xf4", b"\xf5", b"\xf6"
_LARGEST = 0xFFFFFFFFFFFFFFFF
_LAYOUTS = (("B", 1), (">H", 2), (">I", 4), (">Q", 8))  # of an argument behind the first byte, and its size


def head(major: int, argument: int) -> bytes:
    """The first bytes of an item: its major type (0 to 7) and its argument (a value, a length or a count)."""
    if not 0 <= argument <= _LARGEST:
        raise EncodeError(f"{argument} cannot be written in CBOR's 64 bits")
    if argument < 24:
        return bytes((major << 5 | argument,))
    which = 0 if argument <= 0xFF else 1 if argument <= 0xFFFF else 2 if argument <= 0xFFFFFFFF else 3
    return bytes((major << 5 | 24 + which,)) + pack(_LAYOUTS[which][0], argument)


def unsigned(value: int) -> bytes:
    """An unsigned integer."""
    return head(UNSIGNED, value)


def integer(value: int) -> bytes:
    """An integer of either sign."""
    return head(NEGATIVE, -1 - value) if value < 0 else head(UNSIGNED, value)


def byte_string(data: bytes) -> bytes:
    """A byte string."""
    return head(BYTES, len(data)) + data


def text(data: bytes) -> bytes:
    """A text, given as its bytes (UTF-8 if it is to be read by others; it is not checked)."""
    return head(TEXT, len(data)) + data


def array(count: int) -> bytes:
    """The head of an array; so many items follow."""
    return head(ARRAY, count)


def sequence(*items: bytes) -> bytes:
    """An array of items that are written already."""
    return array(len(items)) + b"".join(items)


def mapping(count: int) -> bytes:
    """The head of a map; so many pairs of key and value follow."""
    return head(MAP, count)


def tag(number: int) -> bytes:
    """The head of a tagged item, which follows."""
    return head(TAG, number)


def boolean(value: bool) -> bytes:
    """True or false."""
    return TRUE if value else FALSE


class Reader:
    """Reads items from bytes, one after the other; ``at`` is the next byte. It raises DecodeError and nothing else."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def head(self, what: str) -> tuple[int, int]:
        """(major type, argument) of the next item; what: the name of what should be there."""
        data = self.data
        at = self.at
        left = len(data) - at
        if left <= 0:
            raise DecodeError(f"{what} is missing: the {len(data)} bytes end before it")
        first = data[at]
        information = first & 31
        if information < 24:
            self.at = at + 1
            return first >> 5, information
        if information > 27:
            raise DecodeError(f"byte {at}: {what} has an indefinite or reserved length; DPS writes definite ones")
        layout, width_B = _LAYOUTS[information - 24]
        if left <= width_B:
            raise DecodeError(f"byte {at}: {what} is cut short")
        self.at = at + 1 + width_B
        return first >> 5, unpack_from(layout, data, at + 1)[0]

    def _expect(self, major: int, what: str) -> int:
        at = self.at
        given, argument = self.head(what)
        if given != major:
            raise DecodeError(f"byte {at}: {what} is {NAMES[given]}; it must be {NAMES[major]}")
        return argument

    def unsigned(self, what: str, largest: int = _LARGEST) -> int:
        """An unsigned integer up to ``largest``."""
        at = self.at
        value = self._expect(UNSIGNED, what)
        if value > largest:
            raise DecodeError(f"byte {at}: {what} is {value}; it may be {largest} at most")
        return value

    def integer(self, what: str, smallest: int, largest: int) -> int:
        """An integer of either sign in a range."""
        at = self.at
        major, argument = self.head(what)
        if major > NEGATIVE:
            raise DecodeError(f"byte {at}: {what} is {NAMES[major]}; it must be an integer")
        value = -1 - argument if major == NEGATIVE else argument
        if not smallest <= value <= largest:
            raise DecodeError(f"byte {at}: {what} is {value}; it may be {smallest} to {largest}")
        return value

    def byte_string(self, what: str, length: int | None = None) -> bytes:
        """A byte string, of a given length if one is given."""
        at = self.at
        data = self._string(BYTES, what)
        if length is not None and len(data) != length:
            raise DecodeError(f"byte {at}: {what} has {len(data)} bytes; it must have {length}")
        return data

    def text(self, what: str) -> bytes:
        """The bytes of a text."""
        return self._string(TEXT, what)

    def _string(self, major: int, what: str) -> bytes:
        at = self.at
        size = self._expect(major, what)
        begin = self.at
        if size > len(self.data) - begin:
            raise DecodeError(f"byte {at}: {what} says that it has {size} bytes, more than follow")
        self.at = begin + size
        return bytes(self.data[begin : begin + size])

    def array(self, what: str, count: int | None = None) -> int:
        """The number of items of an array; DecodeError if it is not ``count``, or is more than the bytes could hold."""
        at = self.at
        given = self._expect(ARRAY, what)
        if count is not None and given != count:
            raise DecodeError(f"byte {at}: {what} has {given} items; it must have {count}")
        self._check_count(given, at, what)
        return given

    def mapping(self, what: str) -> int:
        """The number of pairs of a map; DecodeError if it is more than the bytes could hold."""
        at = self.at
        given = self._expect(MAP, what)
        self._check_count(2 * given, at, what)
        return given

    def _check_count(self, items: int, at: int, what: str) -> None:
        if items > len(self.data) - self.at:
            raise DecodeError(f"byte {at}: {what} says that it has {items} items, more than the bytes hold")

    def tag(self, what: str) -> int:
        """The number of a tag."""
        return self._expect(TAG, what)

    def boolean(self, what: str) -> bool:
        """True or false."""
        at = self.at
        value = self.data[at : at + 1]
        if value != TRUE and value != FALSE:
            raise DecodeError(f"byte {at}: {what} is neither true nor false")
        self.at = at + 1
        return value == TRUE

    def peek(self) -> int | None:
        """The major type of the next item, or None at the end."""
        return self.data[self.at] >> 5 if self.at < len(self.data) else None

    def skip(self, what: str) -> bytes:
        """Pass over the next item, whatever it is; returns its bytes. An item in an item costs no stack."""
        start = self.at
        items = 1
        while items:
            items -= 1
            at = self.at
            major, argument = self.head(what)
            if major in (BYTES, TEXT):
                if argument > len(self.data) - self.at:
                    raise DecodeError(f"byte {at}: {what} says that it has {argument} bytes, more than follow")
                self.at += argument
            elif major in (ARRAY, MAP):
                more = 2 * argument if major == MAP else argument
                self._check_count(more, at, what)
                items += more
            elif major == TAG:
                items += 1
        return bytes(self.data[start : self.at])

    def skip_mapping(self, what: str) -> None:
        """Pass over a map and all that is in it."""
        at = self.at
        self.mapping(what)
        self.at = at
        self.skip(what)

    def end(self) -> None:
        """DecodeError unless all bytes are read."""
        if self.at != len(self.data):
            raise DecodeError(f"byte {self.at}: {len(self.data) - self.at} bytes too many")

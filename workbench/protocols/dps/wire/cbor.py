"""Reader and writers for the part of CBOR that DPS's messages use, item by item.

Theory of operation
    DPS reads its maps in order: keys must ascend, unknown keys are skipped, and lengths must be definite. A library
    that returns dictionaries hides the order of keys, duplicate keys and the form of lengths, so this module reads
    messages item by item. The tests compare it with cbor2.

    Each call of a ``Reader`` method expects one type of item; any other item raises a DecodeError that names the byte.
    Lengths and counts are compared with the remaining bytes before memory is allocated, and items are skipped without
    recursion. So the time is linear in the bytes, and the memory at most a copy of them.

    Each writer function returns the shortest form of one item; an array or map is its head, followed by its items.

Limits
    Only definite lengths; integers up to 64 bits, read in any width. Floats can only be skipped.

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
_LAYOUTS = (
    ("B", 1),
    (">H", 2),
    (">I", 4),
    (">Q", 8),
)  # (format, size in bytes) of an argument that follows the first byte


def head(major: int, argument: int) -> bytes:
    """Return the first bytes of an item: its major type (0 to 7) and its argument (a value, a length or a count)."""
    if not 0 <= argument <= _LARGEST:
        raise EncodeError(f"{argument} does not fit CBOR's 64 bits; it must be 0 to {_LARGEST}")
    if argument < 24:
        return bytes((major << 5 | argument,))
    layout_index = 0 if argument <= 0xFF else 1 if argument <= 0xFFFF else 2 if argument <= 0xFFFFFFFF else 3
    return bytes((major << 5 | 24 + layout_index,)) + pack(_LAYOUTS[layout_index][0], argument)


def unsigned(value: int) -> bytes:
    """Encode an unsigned integer."""
    return head(UNSIGNED, value)


def integer(value: int) -> bytes:
    """Encode an integer of either sign."""
    return head(NEGATIVE, -1 - value) if value < 0 else head(UNSIGNED, value)


def byte_string(data: bytes) -> bytes:
    """Encode a byte string."""
    return head(BYTES, len(data)) + data


def text(data: bytes) -> bytes:
    """Encode a text, given as its bytes, which should be UTF-8 (not checked)."""
    return head(TEXT, len(data)) + data


def array(count: int) -> bytes:
    """Encode the head of an array; ``count`` items must follow."""
    return head(ARRAY, count)


def sequence(*items: bytes) -> bytes:
    """Encode an array of ``items``, each given as its encoded bytes."""
    return array(len(items)) + b"".join(items)


def mapping(count: int) -> bytes:
    """Encode the head of a map; ``count`` pairs of key and value must follow."""
    return head(MAP, count)


def tag(number: int) -> bytes:
    """Encode the head of a tagged item; the item must follow."""
    return head(TAG, number)


def boolean(value: bool) -> bytes:
    """Encode a boolean."""
    return TRUE if value else FALSE


class Reader:
    """A reader of successive items; ``at`` is the position of the next byte.

    Its methods raise only DecodeError. ``name`` is the name of the expected item, for the error message.
    """

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def head(self, name: str) -> tuple[int, int]:
        """Read the head of the next item; return (major type, argument)."""
        data = self.data
        at = self.at
        left = len(data) - at
        if left <= 0:
            raise DecodeError(f"{name} is missing: the {len(data)} bytes end before it")
        first = data[at]
        information = first & 31
        if information < 24:
            self.at = at + 1
            return first >> 5, information
        if information > 27:
            raise DecodeError(f"byte {at}: {name} has an indefinite or reserved length; it must be definite")
        layout, width_B = _LAYOUTS[information - 24]
        if left <= width_B:
            raise DecodeError(f"byte {at}: {name} is cut short")
        self.at = at + 1 + width_B
        return first >> 5, unpack_from(layout, data, at + 1)[0]

    def _read_argument(self, major: int, name: str) -> int:
        """Read the head of the next item, which must have this major type; return its argument."""
        at = self.at
        actual, argument = self.head(name)
        if actual != major:
            raise DecodeError(f"byte {at}: {name} is {NAMES[actual]}; it must be {NAMES[major]}")
        return argument

    def unsigned(self, name: str, largest: int = _LARGEST) -> int:
        """Read an unsigned integer in [0, largest]."""
        at = self.at
        value = self._read_argument(UNSIGNED, name)
        if value > largest:
            raise DecodeError(f"byte {at}: {name} is {value}; it may be {largest} at most")
        return value

    def integer(self, name: str, smallest: int, largest: int) -> int:
        """Read an integer in [smallest, largest]."""
        at = self.at
        major, argument = self.head(name)
        if major > NEGATIVE:
            raise DecodeError(f"byte {at}: {name} is {NAMES[major]}; it must be an integer")
        value = -1 - argument if major == NEGATIVE else argument
        if not smallest <= value <= largest:
            raise DecodeError(f"byte {at}: {name} is {value}; it may be {smallest} to {largest}")
        return value

    def byte_string(self, name: str, length: int | None = None) -> bytes:
        """Read a byte string; if ``length`` is given, it must have this number of bytes."""
        at = self.at
        data = self._read_string(BYTES, name)
        if length is not None and len(data) != length:
            raise DecodeError(f"byte {at}: {name} has {len(data)} bytes; it must have {length}")
        return data

    def text(self, name: str) -> bytes:
        """Read a text; return its bytes, which may be invalid UTF-8."""
        return self._read_string(TEXT, name)

    def _read_string(self, major: int, name: str) -> bytes:
        at = self.at
        size = self._read_argument(major, name)
        begin = self.at
        if size > len(self.data) - begin:
            raise DecodeError(f"byte {at}: {name} has a length of {size} bytes; only {len(self.data) - begin} follow")
        self.at = begin + size
        return bytes(self.data[begin : begin + size])

    def array(self, name: str, count: int | None = None) -> int:
        """Read the head of an array; return its number of items, which must be ``count`` if that is given."""
        at = self.at
        items = self._read_argument(ARRAY, name)
        if count is not None and items != count:
            raise DecodeError(f"byte {at}: {name} has {items} items; it must have {count}")
        self._check_count(items, at, name)
        return items

    def mapping(self, name: str) -> int:
        """Read the head of a map; return its number of pairs."""
        at = self.at
        pairs = self._read_argument(MAP, name)
        self._check_count(2 * pairs, at, name)
        return pairs

    def _check_count(self, items: int, at: int, name: str) -> None:
        if items > len(self.data) - self.at:
            left = len(self.data) - self.at
            raise DecodeError(f"byte {at}: {name} has a count of {items} items; the message ends {left} bytes later")

    def tag(self, name: str) -> int:
        """Read the head of a tagged item; return the tag's number."""
        return self._read_argument(TAG, name)

    def boolean(self, name: str) -> bool:
        """Read a boolean."""
        at = self.at
        value = self.data[at : at + 1]
        if value != TRUE and value != FALSE:
            raise DecodeError(f"byte {at}: {name} is neither true nor false")
        self.at = at + 1
        return value == TRUE

    def peek(self) -> int | None:
        """Return the major type of the next item without reading it, or None at the end."""
        return self.data[self.at] >> 5 if self.at < len(self.data) else None

    def skip(self, name: str) -> bytes:
        """Skip the next item of any type, without recursion; return its bytes."""
        start = self.at
        items = 1
        while items:
            items -= 1
            at = self.at
            major, argument = self.head(name)
            if major in (BYTES, TEXT):
                if argument > len(self.data) - self.at:
                    left = len(self.data) - self.at
                    raise DecodeError(f"byte {at}: {name} has a length of {argument} bytes; only {left} follow")
                self.at += argument
            elif major in (ARRAY, MAP):
                contained = 2 * argument if major == MAP else argument
                self._check_count(contained, at, name)
                items += contained
            elif major == TAG:
                items += 1
        return bytes(self.data[start : self.at])

    def skip_mapping(self, name: str) -> None:
        """Skip a map with its contents."""
        at = self.at
        self.mapping(name)
        self.at = at
        self.skip(name)

    def end(self) -> None:
        """Raise DecodeError if bytes remain after the last item read."""
        if self.at != len(self.data):
            raise DecodeError(f"byte {self.at}: {len(self.data) - self.at} bytes too many; the data must end there")

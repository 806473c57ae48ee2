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
    """Encode an unsigned integer; raise EncodeError if it is negative or has more than 64 bits."""
    return head(UNSIGNED, value)


def integer(value: int) -> bytes:
    """Encode an integer of either sign; raise EncodeError outside of [-2^64, 2^64 - 1]."""
    return head(NEGATIVE, -1 - value) if value < 0 else head(UNSIGNED, value)


def byte_string(data: bytes) -> bytes:
    """Encode a byte string."""
    return head(BYTES, len(data)) + data


def text(data: bytes) -> bytes:
    """Encode a text, given as its bytes, which should be UTF-8 (not checked)."""
    return head(TEXT, len(data)) + data


def array(count: int) -> bytes:
    """Encode the head of an array; the caller must append its ``count`` encoded items."""
    return head(ARRAY, count)


def sequence(*items: bytes) -> bytes:
    """Encode an array of ``items``, each given as its encoded bytes."""
    return array(len(items)) + b"".join(items)


def mapping(count: int) -> bytes:
    """Encode the head of a map; the caller must append ``count`` pairs of encoded key and value."""
    return head(MAP, count)


def tag(number: int) -> bytes:
    """Encode the head of a CBOR tag with this number; the caller must append the encoded item to which it applies."""
    return head(TAG, number)


def boolean(value: bool) -> bytes:
    """Encode a boolean."""
    return TRUE if value else FALSE


class Reader:
    """A reader of the CBOR items in ``data``, one after the other; ``at`` is the position of the next byte.

    The parameter ``name`` of its methods names the expected item in error messages. If the next item is missing,
    invalid, or not what the method reads, the methods raise DecodeError.
    """

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def head(self, name: str) -> tuple[int, int]:
        """Read the head of the next CBOR item; return (major type, argument).

        The argument is a value, a length or a count, depending on the major type.
        """
        message_bytes = self.data
        at = self.at
        bytes_left = len(message_bytes) - at
        if bytes_left <= 0:
            raise DecodeError(f"{name} is missing: the {len(message_bytes)} bytes end before it")
        first_byte = message_bytes[at]
        additional_info = first_byte & 31
        if additional_info < 24:
            self.at = at + 1
            return first_byte >> 5, additional_info
        if additional_info > 27:
            raise DecodeError(f"byte {at}: {name} has an indefinite or reserved length; it must be definite")
        layout, width_B = _LAYOUTS[additional_info - 24]
        if bytes_left <= width_B:
            raise DecodeError(f"byte {at}: {name} is cut short")
        self.at = at + 1 + width_B
        return first_byte >> 5, unpack_from(layout, message_bytes, at + 1)[0]

    def _read_argument(self, major: int, name: str) -> int:
        """Read the head of the next item, which must have the CBOR major type ``major``; return the head's argument."""
        at = self.at
        actual_major, argument = self.head(name)
        if actual_major != major:
            raise DecodeError(f"byte {at}: {name} is {NAMES[actual_major]}; it must be {NAMES[major]}")
        return argument

    def unsigned(self, name: str, largest: int = _LARGEST) -> int:
        """Read an unsigned integer in [0, largest]; ``name`` describes the item in errors."""
        at = self.at
        value = self._read_argument(UNSIGNED, name)
        if value > largest:
            raise DecodeError(f"byte {at}: {name} is {value}; it may be {largest} at most")
        return value

    def integer(self, name: str, smallest: int, largest: int) -> int:
        """Read an integer in [smallest, largest]; ``name`` describes the item in errors."""
        at = self.at
        major, argument = self.head(name)
        if major > NEGATIVE:
            raise DecodeError(f"byte {at}: {name} is {NAMES[major]}; it must be an integer")
        integer_value = -1 - argument if major == NEGATIVE else argument
        if not smallest <= integer_value <= largest:
            raise DecodeError(f"byte {at}: {name} is {integer_value}; it may be {smallest} to {largest}")
        return integer_value

    def byte_string(self, name: str, length: int | None = None) -> bytes:
        """Read a byte string, which must have ``length`` bytes if that is given.

        ``name`` describes the item in errors.
        """
        at = self.at
        data = self._read_string(BYTES, name)
        if length is not None and len(data) != length:
            raise DecodeError(f"byte {at}: {name} has {len(data)} bytes; it must have {length}")
        return data

    def text(self, name: str) -> bytes:
        """Read a text; return its bytes, which may be invalid UTF-8. ``name`` describes the item in errors."""
        return self._read_string(TEXT, name)

    def _read_string(self, major: int, name: str) -> bytes:
        at = self.at
        string_length = self._read_argument(major, name)
        data_at = self.at
        if string_length > len(self.data) - data_at:
            raise DecodeError(
                f"byte {at}: {name} has a length of {string_length} bytes; only {len(self.data) - data_at} follow"
            )
        self.at = data_at + string_length
        return bytes(self.data[data_at : data_at + string_length])

    def array(self, name: str, count: int | None = None) -> int:
        """Read the head of an array; return its number of items, which must be ``count`` if that is given.

        ``name`` describes the array in errors.
        """
        at = self.at
        item_count = self._read_argument(ARRAY, name)
        if count is not None and item_count != count:
            raise DecodeError(f"byte {at}: {name} has {item_count} items; it must have {count}")
        self._check_count(item_count, at, name)
        return item_count

    def mapping(self, name: str) -> int:
        """Read the head of a map; return its number of pairs. ``name`` describes the map in errors."""
        at = self.at
        pair_count = self._read_argument(MAP, name)
        self._check_count(2 * pair_count, at, name)
        return pair_count

    def _check_count(self, items: int, at: int, name: str) -> None:
        if items > len(self.data) - self.at:
            bytes_left = len(self.data) - self.at
            raise DecodeError(
                f"byte {at}: {name} has a count of {items} items; the message ends {bytes_left} bytes later"
            )

    def tag(self, name: str) -> int:
        """Read a tag and return its number; ``name`` describes the item in errors."""
        return self._read_argument(TAG, name)

    def boolean(self, name: str) -> bool:
        """Read a boolean; ``name`` describes the item in errors."""
        at = self.at
        encoded_value = self.data[at : at + 1]
        if encoded_value != TRUE and encoded_value != FALSE:
            raise DecodeError(f"byte {at}: {name} is neither true nor false")
        self.at = at + 1
        return encoded_value == TRUE

    def peek(self) -> int | None:
        """Return the major type of the next item without reading it, or None at the end."""
        return self.data[self.at] >> 5 if self.at < len(self.data) else None

    def skip(self, name: str) -> bytes:
        """Skip the next item, of any type; return its bytes. ``name`` describes the item in errors."""
        start = self.at
        items_to_skip = 1
        while items_to_skip:
            items_to_skip -= 1
            at = self.at
            major, argument = self.head(name)
            if major in (BYTES, TEXT):
                if argument > len(self.data) - self.at:
                    bytes_left = len(self.data) - self.at
                    raise DecodeError(f"byte {at}: {name} has a length of {argument} bytes; only {bytes_left} follow")
                self.at += argument
            elif major in (ARRAY, MAP):
                contained_items = 2 * argument if major == MAP else argument
                self._check_count(contained_items, at, name)
                items_to_skip += contained_items
            elif major == TAG:
                items_to_skip += 1
        return bytes(self.data[start : self.at])

    def skip_mapping(self, name: str) -> None:
        """Skip the next item, which must be a map, and all items in the map; ``name`` is its name in error messages."""
        map_at = self.at
        self.mapping(name)
        self.at = map_at
        self.skip(name)

    def end(self) -> None:
        """Raise DecodeError if unread bytes remain."""
        if self.at != len(self.data):
            raise DecodeError(f"byte {self.at}: {len(self.data) - self.at} bytes too many; the data must end there")

"""The fields of DPS's messages: tables of the keys in CBOR maps, writers for each key, and a reader for a map.

Times are whole seconds, up to 32,767. In a received text, bytes that are not UTF-8 become lone surrogates; writing the
text restores the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from workbench.errors import DecodeError, EncodeError
from workbench.protocols.dps.bloom import FUZZY_HASH_B, BitVector
from workbench.protocols.dps.wire import cbor

ID_B = 16
LONGEST_TTL_S = 0x7FFF
U8, U16, U32, I31 = 0xFF, 0xFFFF, 0xFFFFFFFF, 0x7FFFFFFF
(
    PORT,
    TTL,
    ID,
    SEQUENCE,
    ACKNOWLEDGE,
    FILTER,
    FLAGS,
    MESH,
    NEEDS,
    INTERESTS,
    TOPICS,
    DATA,
    ACKNOWLEDGED,
    PATH,
    HOPS,
) = range(1, 16)


# Types of fields; `Entry.limit` belongs to the first three.
NUMBER, BYTES, SECONDS, BOOLEAN, VECTOR, TEXT, TEXTS = (
    "unsigned",
    "byte string",
    "signed",
    "boolean",
    "bit vector",
    "text",
    "array of texts",
)


class Entry(NamedTuple):
    """The description of one field of a CBOR map.

    name   name of the field in error messages
    type   type of its value: NUMBER, BYTES, SECONDS, BOOLEAN, VECTOR, TEXT or TEXTS
    limit  largest value of a NUMBER or of SECONDS; required length of BYTES, None for any length
    label  name of the field in a dissection; "": ``name``
    """

    name: str
    type: str
    limit: int | None = None
    label: str = ""


FIELDS = {
    PORT: Entry("port", NUMBER, U16),
    TTL: Entry("ttl", SECONDS, LONGEST_TTL_S),
    ID: Entry("publication id", BYTES, ID_B),
    SEQUENCE: Entry("sequence number", NUMBER, U32),
    ACKNOWLEDGE: Entry("acknowledgement request", BOOLEAN, label="answer wanted"),
    FILTER: Entry("Bloom filter", VECTOR, label="filter"),
    FLAGS: Entry("flags", NUMBER, U8),
    MESH: Entry("mesh id", BYTES, ID_B),
    NEEDS: Entry("needs", BYTES, FUZZY_HASH_B),
    INTERESTS: Entry("interests", VECTOR),
    TOPICS: Entry("topics", TEXTS),
    DATA: Entry("data", BYTES),
    ACKNOWLEDGED: Entry("acknowledged sequence number", NUMBER, U32, "acknowledged number"),
    PATH: Entry("path", TEXT),
    HOPS: Entry("hop count", NUMBER, U16, "hops"),
}


class Maps(NamedTuple):
    """The description of a type of message: its name, and the keys in each of its three maps, ascending.

    ``last`` is the map in the fifth item of the message. A reader skips other keys.
    """

    name: str
    unprotected: tuple[int, ...]
    protected: tuple[int, ...]
    last: tuple[int, ...]


_LINK = (PORT, SEQUENCE, FLAGS, MESH, NEEDS, INTERESTS)
MAPS = {  # type of a message -> its maps
    1: Maps("publication", (PORT, TTL, PATH, HOPS), (TTL, ID, SEQUENCE, ACKNOWLEDGE, FILTER), (TOPICS, DATA)),
    2: Maps("subscription", (*_LINK, PATH), (), ()),
    3: Maps("acknowledgement", (), (ID, ACKNOWLEDGED), (DATA,)),
    4: Maps("subscription ack", (*_LINK, ACKNOWLEDGED, PATH), (), ()),
}
LABELS = {key: entry.label or entry.name for key, entry in FIELDS.items()}
_LIMITS = {key: entry.limit for key, entry in FIELDS.items()}
_ENCODED_KEYS = {key: cbor.unsigned(key) for key in FIELDS}


def number(key: int, value: int | None) -> bytes:
    """Encode a key and an unsigned integer; raise EncodeError if the integer does not fit the field."""
    largest = _LIMITS[key] or 0
    if not (isinstance(value, int) and 0 <= value <= largest):
        raise EncodeError(f"{FIELDS[key].name} is {value!r}; it must be 0 to {largest}")
    return _ENCODED_KEYS[key] + cbor.unsigned(value)


def byte_string(key: int, data: bytes | None) -> bytes:
    """Encode a key and a byte string; raise EncodeError if ``data`` is not bytes or its length is wrong."""
    length = _LIMITS[key]
    if not isinstance(data, (bytes, bytearray)) or (length is not None and len(data) != length):
        raise EncodeError(f"{FIELDS[key].name} is {data!r}; it must be {'' if length is None else f'{length} '}bytes")
    return _ENCODED_KEYS[key] + cbor.byte_string(bytes(data))


def seconds(value: int) -> bytes:
    """Encode the key and the value of the field ttl, in seconds; raise EncodeError outside of [-32768, 32767]."""
    if not isinstance(value, int) or not -1 - LONGEST_TTL_S <= value <= LONGEST_TTL_S:
        raise EncodeError(f"ttl is {value!r} s; it must be {-1 - LONGEST_TTL_S} to {LONGEST_TTL_S}")
    return cbor.unsigned(TTL) + cbor.integer(value)


def text(value: str | bytes) -> bytes:
    """Encode a text, given as str or bytes; raise EncodeError if UTF-8 cannot encode it."""
    if isinstance(value, bytes):
        return cbor.text(value)
    try:
        return cbor.text(value.encode("utf-8", "surrogateescape"))
    except UnicodeError:
        raise EncodeError(f"{value!r} has a lone surrogate, which UTF-8 cannot encode") from None


def read_map(reader: cbor.Reader, where: str, known: tuple[int, ...], filter_bits: int | None = None) -> dict[int, Any]:
    """Read a map with ascending keys; return {key: value} for the keys in ``known``, and skip the others.

    ``where``: name of the map, for errors; ``filter_bits``: required length of filters; None accepts any length.
    """
    field_values = {}
    former_key = None
    for _ in range(reader.mapping(where)):
        key_at = reader.at
        field_key = reader.integer("a key", -1 - I31, I31)
        if former_key is not None and field_key <= former_key:
            raise DecodeError(
                f"byte {key_at}: key {field_key} follows key {former_key} in the {where}; the keys of a map must ascend"
            )
        former_key = field_key
        if field_key in known:
            field_values[field_key] = _READERS[field_key](reader, filter_bits)
        else:
            reader.skip(f"the value of key {field_key}")
    return field_values


def require(values: dict[int, Any], keys: Iterable[int], where: str) -> None:
    """Raise DecodeError if ``values``, a decoded map, lacks one of ``keys``; ``where``: the map's name in the error."""
    for key in keys:
        if key not in values:
            raise DecodeError(f"the {where} lacks the field {FIELDS[key].name}")


def _read_text(reader: cbor.Reader, name: str) -> str:
    return reader.text(name).decode("utf-8", "surrogateescape")


def _reader_of(entry: Entry) -> Callable[[cbor.Reader, int | None], Any]:
    name, kind, limit, _ = entry
    largest = limit or 0
    return {
        NUMBER: lambda reader, _: reader.unsigned(name, largest),
        BYTES: lambda reader, _: reader.byte_string(name, limit),
        SECONDS: lambda reader, _: reader.integer(name, -1 - largest, largest),
        BOOLEAN: lambda reader, _: reader.boolean(name),
        VECTOR: BitVector.read,
        TEXT: lambda reader, _: _read_text(reader, name),
        TEXTS: lambda reader, _: tuple([_read_text(reader, "a topic") for _ in range(reader.array(name))]),
    }[kind]


_READERS = {key: _reader_of(entry) for key, entry in FIELDS.items()}

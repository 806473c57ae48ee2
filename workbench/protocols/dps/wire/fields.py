"""The fields of DPS's messages: their keys in the CBOR maps, writers for each, and a reader for a map of them.

`workbench.protocols.dps.wire` lists the fields of each message. Times are whole seconds, up to 32,767. In a received
text, bytes that are not UTF-8 become lone surrogates; writing the text restores the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

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


def number(key: int, value: int | None, largest: int) -> bytes:
    """Encode a key and an unsigned integer; raise EncodeError if the integer is not in [0, largest]."""
    if not (isinstance(value, int) and 0 <= value <= largest):
        raise EncodeError(f"{NAMES[key]} is {value!r}; it must be 0 to {largest}")
    return cbor.unsigned(key) + cbor.unsigned(value)


def byte_string(key: int, data: bytes | None, length: int | None = None) -> bytes:
    """Encode a key and a byte string; raise EncodeError unless ``data`` is bytes of this ``length`` (None: any)."""
    if not isinstance(data, (bytes, bytearray)) or (length is not None and len(data) != length):
        raise EncodeError(f"{NAMES[key]} is {data!r}; it must be {'' if length is None else f'{length} '}bytes")
    return cbor.unsigned(key) + cbor.byte_string(bytes(data))


def seconds(value: int) -> bytes:
    """Encode the field ttl, in seconds; raise EncodeError if the value does not fit 16 bits (signed)."""
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
            raise DecodeError(f"the {where} lacks the field {NAMES[key]}")


def _read_text(reader: cbor.Reader, name: str) -> str:
    return reader.text(name).decode("utf-8", "surrogateescape")


_FIELDS: dict[int, tuple[str, Callable[[cbor.Reader, int | None], Any]]] = {
    PORT: ("port", lambda reader, _: reader.unsigned("port", U16)),
    TTL: ("ttl", lambda reader, _: reader.integer("ttl", -1 - LONGEST_TTL_S, LONGEST_TTL_S)),
    ID: ("publication id", lambda reader, _: reader.byte_string("publication id", ID_B)),
    SEQUENCE: ("sequence number", lambda reader, _: reader.unsigned("sequence number", U32)),
    ACKNOWLEDGE: (
        "acknowledgement request",
        lambda reader, _: reader.boolean("acknowledgement request"),
    ),
    FILTER: ("Bloom filter", BitVector.read),
    FLAGS: ("flags", lambda reader, _: reader.unsigned("flags", U8)),
    MESH: ("mesh id", lambda reader, _: reader.byte_string("mesh id", ID_B)),
    NEEDS: ("needs", lambda reader, _: reader.byte_string("needs", FUZZY_HASH_B)),
    INTERESTS: ("interests", BitVector.read),
    TOPICS: (
        "topics",
        lambda reader, _: tuple([_read_text(reader, "a topic") for _ in range(reader.array("topics"))]),
    ),
    DATA: ("data", lambda reader, _: reader.byte_string("data")),
    ACKNOWLEDGED: (
        "acknowledged sequence number",
        lambda reader, _: reader.unsigned("acknowledged sequence number", U32),
    ),
    PATH: ("path", lambda reader, _: _read_text(reader, "path")),
    HOPS: ("hop count", lambda reader, _: reader.unsigned("hop count", U16)),
}
NAMES = {key: name for key, (name, _) in _FIELDS.items()}
_READERS = {key: read for key, (_, read) in _FIELDS.items()}

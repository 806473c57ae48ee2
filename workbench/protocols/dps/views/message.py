"""The dissection of a DPS message: the meaning of its bytes, its CBOR as text, and the decoded message or the error.

    inspect_message(data, topics=())     an `Inspection`, which a notebook shows as HTML
    diagnostic(data)                     an item of CBOR in diagnostic notation

Theory of operation
    The bytes are read twice. First `workbench.protocols.dps.wire` decodes them as a node does, to a message or an
    error. Then they are read item by item and divided into parts: the heads of the array and of maps, each entry
    of a map with its key and value, and any bytes after the message. Reading ends at the first malformed item;
    the remaining bytes become one part. So any bytes can be inspected. The parts are contiguous and cover all bytes.

Limits
    The workbench translates this module to Lua for Wireshark, which shows neither the bits of filters nor the reason
    why a node refuses a message. It shows texts that are not ASCII as hexadecimal digits.

    Encrypted items are not decrypted; the filter shows which topics they may contain
    (`workbench.protocols.dps.views.page`).

Reference
    Diagnostic notation: RFC 8949, section 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.attributes.text import to_text
from workbench.errors import DecodeError, ParameterError
from workbench.protocols.dissection import host_only
from workbench.protocols.dps import mapping, wire
from workbench.protocols.dps.bloom import HASHES, BitVector
from workbench.protocols.dps.views.looks import percent
from workbench.protocols.dps.wire import cbor, coap, fields

FRAME, ADDRESS, IDENTITY, FILTER, NEEDS, STATE, CONTENT, SEALED, ENVELOPE, REST = KINDS = (
    "frame",
    "address and time",
    "identity and number",
    "filter",
    "needs",
    "flags",
    "topics and data",
    "encrypted or signed",
    "envelope",
    "not read",
)
KIND_OF = {
    **dict.fromkeys((fields.PORT, fields.TTL, fields.PATH, fields.HOPS), ADDRESS),
    **dict.fromkeys((fields.ID, fields.SEQUENCE, fields.MESH, fields.ACKNOWLEDGED), IDENTITY),
    **dict.fromkeys((fields.FILTER, fields.INTERESTS), FILTER),
    **dict.fromkeys((fields.ACKNOWLEDGE, fields.FLAGS), STATE),
    **dict.fromkeys((fields.TOPICS, fields.DATA), CONTENT),
    fields.NEEDS: NEEDS,
}
_FLAGS = (
    (wire.DELTA, "delta"),
    (wire.SAK_REQUESTED, "answer requested"),
    (wire.UNLINK, "unlink"),
    (wire.MUTE, "mute"),
    (wire.UNMUTE, "unmute"),
    (wire.COUNTS_HOPS, "counts hops"),
)
MAPS = ("unprotected map", "protected map", "last map")
_COSE = {16: "COSE_Encrypt0: encrypted", 18: "COSE_Sign1: signed", 96: "COSE_Encrypt: encrypted for recipients"}


class Part(NamedTuple):
    """A part of the inspected bytes: those in [start, end).

    kind      one of `KINDS`
    name      name of the part, such as "ttl"
    notation  CBOR of the part in diagnostic notation
    meaning   meaning of the part in words, or ""
    """

    start: int
    end: int
    kind: str
    name: str
    notation: str
    meaning: str


@dataclass(frozen=True)
class Inspection:
    """The result of `inspect_message`: inspected bytes, their parts, and the decoded message or the error.

    data        the inspected bytes
    parts       parts of the bytes, in order
    message     the decoded message, or None if the bytes are not a message
    error       reason why the bytes are not a message, or ""
    notation    CBOR in diagnostic notation
    vector      the filter of a publication or the interests of a subscription, or None
    topics      topics to test against the vector
    hashes      number of bits that each part of a topic sets in a filter
    separators  characters that divide topics into segments
    """

    data: bytes
    parts: tuple[Part, ...]
    message: Any
    error: str
    notation: str
    vector: BitVector | None
    topics: tuple[str, ...]
    hashes: int
    separators: str

    @property
    def name(self) -> str:
        """Name of the message according to its type field; without a type field, the number of bytes."""
        for part in self.parts:
            if part.name == "type":
                return part.meaning
        return f"{len(self.data)} bytes"

    @property
    def is_publication(self) -> bool:
        """True if ``vector`` is a publication's filter, not the interests of a subscription."""
        return any(part.name == "filter" for part in self.parts)

    def part_at(self, offset: int) -> Part:
        """Return the part that contains the byte at an offset from the first inspected byte."""
        return next(part for part in self.parts if part.start <= offset < part.end)

    def to_html(self) -> str:
        """Return static HTML of the inspected message, without scripts.

        It shows the bytes with colored parts, a table of the parts, the CBOR as text, the filter's bits and the topics.
        """
        from workbench.protocols.dps.views.page import page

        return page(self)

    def _repr_html_(self) -> str:
        return self.to_html()


def inspect_message(
    data: bytes | str, topics: str | Sequence[str] = (), hashes: int = HASHES, separators: str = "/"
) -> Inspection:
    """Dissect a message, and return its parts and meaning as an Inspection; a text is read as hexadecimal digits.

    ``topics``: topics to test against the message's filter, besides topics in the message. ``hashes``: number of bits
    that each part of a topic sets in a filter. ``separators``: separators of topics. Raises ParameterError for a text
    that is not hexadecimal. Bytes that are not a message do not raise an error; the result describes the problem.
    """
    data = _as_bytes(data)
    vectors: list[BitVector] = []
    frame, message_parts = _read_parts(data, vectors)
    message, error = _decode(frame)
    message_topics = tuple(getattr(message, "topics", None) or ())
    other_topics = (topics,) if isinstance(topics, str) else tuple(topics)
    tested_topics = tuple(dict.fromkeys([topic for topic in (*message_topics, *other_topics) if topic]))
    return Inspection(
        data,
        tuple(message_parts),
        message,
        error,
        diagnostic(frame),
        vectors[0] if vectors else None,
        tested_topics,
        hashes,
        separators,
    )


def parts_of(data: bytes) -> tuple[list[Part], str]:
    """Return (parts of ``data`` in order, error): the error is the reason why ``data`` is not a message, or ""."""
    frame, message_parts = _read_parts(data, [])
    return message_parts, _decode(frame)[1]


def _read_parts(data: bytes, vectors: list[BitVector]) -> tuple[bytes, list[Part]]:
    """Return (frame, parts of ``data``), and append the frame's filters to ``vectors``.

    The frame is ``data`` without the envelope of a multicast, if any.
    """
    frame, message_parts = _unwrap(data)
    return frame, message_parts + _divide_frame(frame, len(data) - len(frame), vectors)


def _decode_nothing(frame: bytes) -> tuple[Any, str]:
    return None, ""


@host_only(_decode_nothing)
def _decode(frame: bytes) -> tuple[Any, str]:
    """Return (message in a frame, ""), or (None, reason why a node refuses the frame)."""
    try:
        return wire.decode(frame), ""
    except DecodeError as problem:
        return None, str(problem)


def _as_bytes(data: bytes | str) -> bytes:
    if not isinstance(data, str):
        return bytes(data)
    try:
        return bytes.fromhex(data.replace("0x", "").replace(":", ""))
    except ValueError:
        raise ParameterError(
            "the message is not hexadecimal; it must be pairs of digits 0-9 and a-f, and may contain spaces"
        ) from None


def _unwrap(data: bytes) -> tuple[bytes, list[Part]]:
    """Remove the envelope of a multicast, a CoAP header, from the inspected bytes; return (frame, parts).

    ``frame``: the bytes after the envelope. ``parts``: the envelope as a part, or [] if the bytes have no envelope.
    """
    try:
        frame = coap.unwrap(data)
    except DecodeError:
        return data, []
    frame_begin = len(data) - len(frame)
    return frame, [Part(0, frame_begin, ENVELOPE, "CoAP envelope", "", "a multicast: non-confirmable PUT to dps/pub")]


def _divide_frame(frame: bytes, offset: int, vectors: list[BitVector]) -> list[Part]:
    """Divide a frame into parts (fields, with their position and meaning), and append its filters to ``vectors``.

    ``offset`` is the position of the frame's first byte in the datagram.
    """
    part_reader = _PartReader(frame, offset, vectors)
    try:
        part_reader.run()
    except DecodeError as error:
        part_reader.add_rest(str(error))
    else:
        part_reader.add_rest("bytes after the message, which nodes ignore")
    return part_reader.parts


class _PartReader:
    """A reader that divides the bytes of a DPS message into parts, up to the first malformed CBOR item."""

    def __init__(self, frame: bytes, offset: int, vectors: list[BitVector]) -> None:
        self.frame, self.offset, self.vectors = frame, offset, vectors
        self.reader = cbor.Reader(frame)
        self.parts: list[Part] = []
        self.part_start = 0

    def run(self) -> None:
        """Divide the message into ``parts``. Raises DecodeError at the first malformed item; earlier parts remain."""
        reader = self.reader
        item_count = reader.array("a message")
        self._add_part(
            FRAME, "array", f"[{item_count} items]", "the message" if item_count == 5 else "a message has 5 items"
        )
        version = reader.unsigned("version")
        self._add_part(FRAME, "version", str(version), "" if version == wire.VERSION else "unknown")
        type_number = reader.unsigned("type")
        self._add_part(FRAME, "type", str(type_number), wire.NAMES.get(type_number, "unknown"))
        for map_name in MAPS[: max(0, item_count - 2)]:
            if map_name == MAPS[-1] and reader.peek() == cbor.TAG:
                self._read_cose()
            else:
                self._read_map(map_name)

    def add_rest(self, reason: str) -> None:
        """Add the remaining bytes, if any, as a single part; its meaning is ``reason``, why they were not read."""
        self.reader.at = len(self.frame)
        if self.part_start < len(self.frame):
            self._add_part(REST, "rest", "", reason)

    def _add_part(self, kind: str, name: str, notation: str, meaning: str) -> None:
        part_end = self.reader.at
        self.parts.append(Part(self.offset + self.part_start, self.offset + part_end, kind, name, notation, meaning))
        self.part_start = part_end

    def _read_cose(self) -> None:
        tag = self.reader.tag("tag")
        self.reader.at = self.part_start
        data = self.reader.skip("the encrypted item")
        self._add_part(SEALED, "body", diagnostic(data), _COSE.get(tag, "a tag that is not COSE's"))

    def _read_map(self, where: str) -> None:
        entry_count = self.reader.mapping(where)
        self._add_part(FRAME, where, f"{{{entry_count} {'entry' if entry_count == 1 else 'entries'}}}", "")
        for _ in range(entry_count):
            field_key = self.reader.unsigned("key")
            value_begin = self.reader.at
            field_value = self.reader.skip("value")
            field_name = fields.LABELS.get(field_key, f"key {field_key}")
            notation = f"{field_key}: {diagnostic(field_value)}"
            meaning = self._describe_value(field_key, field_value, where, value_begin)
            self._add_part(KIND_OF.get(field_key, REST), field_name, notation, meaning)

    def _describe_value(self, key: int, value: bytes, where: str, begin: int) -> str:
        try:
            return self._read_meaning(key, cbor.Reader(value), where)
        except DecodeError as error:
            return f"from byte {begin} on: {error}"

    def _read_meaning(self, key: int, reader: cbor.Reader, where: str) -> str:
        if key == fields.TTL:
            ttl_s = reader.integer("ttl", -(1 << 31), 1 << 31)
            ttl_meaning = "original lifetime" if where == MAPS[1] else "remaining lifetime"
            return (
                "ends a retained publication"
                if ttl_s < 0
                else "not retained"
                if not ttl_s
                else f"{ttl_meaning} in seconds"
            )
        if key in (fields.FILTER, fields.INTERESTS):
            return _describe_vector(reader, self.vectors)
        if key == fields.FLAGS:
            flags = reader.unsigned("flags", 255)
            return ", ".join(flag_name for bit, flag_name in _FLAGS if flags & bit) or "none"
        if key == fields.NEEDS:
            needs = reader.byte_string("needs", 32)
            return f"{int.from_bytes(needs, 'little').bit_count()} of 256 bits set"
        if key == fields.ID:
            address, series = wire.origin_of(reader.byte_string("publication id", fields.ID_B))
            return f"in this workbench's simulator: node {address}, series {series}"
        if key == fields.DATA:
            return _describe_payload(reader.byte_string("data"))
        return ""


def _describe_no_vector(reader: cbor.Reader, vectors: list[BitVector]) -> str:
    return ""


@host_only(_describe_no_vector)
def _describe_vector(reader: cbor.Reader, vectors: list[BitVector]) -> str:
    """Read a filter, append it to ``vectors``, and return a text with the share of its bits that are set."""
    vector = BitVector.read(reader)
    vectors.append(vector)
    return f"{vector.popcount:,} of {vector.length:,} bits set, {percent(vector.fill)}"


def _describe_payload(data: bytes) -> str:
    """Return a description of a payload: its attributes, its printable text, or its length."""
    try:
        return "attributes: " + to_text(mapping.decode_data(data))
    except DecodeError:
        pass
    return _describe_text(data)


def _is_ascii(data: bytes) -> bool:
    return all(32 <= byte < 127 for byte in data)


def _describe_ascii(data: bytes) -> str:
    return f'"{data.decode()}"' if _is_ascii(data) else f"{len(data)} bytes"


@host_only(_describe_ascii)
def _describe_text(data: bytes) -> str:
    """Return ``data`` as a text in quotes if it is printable UTF-8, else the number of bytes, as in "12 bytes"."""
    try:
        payload_text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f"{len(data)} bytes"
    return f'"{payload_text}"' if payload_text.isprintable() else f"{len(data)} bytes"


# Diagnostic notation


def diagnostic(data: bytes) -> str:
    """Return the first CBOR item of ``data`` in diagnostic notation.

    At a malformed part the text ends with the error as a comment between slashes.
    """
    reader = cbor.Reader(data)
    pieces: list[str] = []
    brackets: list[_Bracket] = []
    try:
        while True:
            if brackets:
                pieces.append(brackets[-1].separator())
            _write_item(reader, pieces, brackets)
            while brackets and brackets[-1].remaining == 0:
                pieces.append(brackets.pop().close)
            if not brackets:
                return "".join(pieces)
    except DecodeError as error:
        return "".join(pieces) + f" / {error} /"


class _Bracket:
    """An unfinished array, map or tag of CBOR: the closing bracket, and the number of items that are still to come."""

    def __init__(self, close: str, count: int, is_map: bool = False) -> None:
        self.close, self.count, self.remaining, self.is_map = close, count, count, is_map

    def separator(self) -> str:
        """Return the text to write before the next CBOR item (": ", ", " or ""), and count this item as written."""
        position = self.count - self.remaining
        self.remaining -= 1
        if not position:
            return ""
        return ": " if self.is_map and position % 2 else ", "


def _write_item(reader: cbor.Reader, pieces: list[str], brackets: list[_Bracket]) -> None:
    item_begin = reader.at
    major, argument = reader.head("item")
    if major in (cbor.BYTES, cbor.TEXT):
        reader.at = item_begin
        string_data = reader.byte_string("bytes") if major == cbor.BYTES else reader.text("text")
        pieces.append(f"h'{string_data.hex()}'" if major == cbor.BYTES else _quote(string_data))
    elif major in (cbor.ARRAY, cbor.MAP):
        reader.at = item_begin
        is_map = major == cbor.MAP
        item_count = 2 * reader.mapping("map") if is_map else reader.array("array")
        pieces.append("{" if is_map else "[")
        brackets.append(_Bracket("}" if is_map else "]", item_count, is_map))
    elif major == cbor.TAG:
        pieces.append(f"{argument}(")
        brackets.append(_Bracket(")", 1))
    elif major == cbor.SIMPLE:
        width_B = reader.at - item_begin - 1
        simple_values = {20: "false", 21: "true", 22: "null", 23: "undefined"}
        # The argument contains a float's bits. DPS does not use floats, so it is not unpacked.
        pieces.append(
            simple_values.get(argument, f"simple({argument})") if width_B < 2 else f"float'{argument:0{2 * width_B}x}'"
        )
    else:
        pieces.append(str(-1 - argument if major == cbor.NEGATIVE else argument))


def _quote_ascii(data: bytes) -> str:
    return '"' + data.decode().replace('"', '\\"') + '"' if _is_ascii(data) else f"h'{data.hex()}'"


@host_only(_quote_ascii)
def _quote(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text).replace('"', '\\"') + '"'

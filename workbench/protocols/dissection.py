"""Dissection of frames, as in Wireshark: an ordered tree of fields, each with its bytes and their meaning as text.

    dissect(of, frame, broadcast=True)    a `Dissection`; its text form and its HTML show bytes, fields and meanings

Theory of operation
    Only the protocol can interpret the bytes of its frames. The protocol's class names a dissector module
    (``dissector = "workbench.protocols.flooding.dissector"``). Nodes never load that module. It has either

        MESSAGES                     a table of fields (`workbench.protocols.field_tables`), or
        dissect(frame, broadcast)    a function that returns the fields of a frame, in order

    If the protocol allows constraints in data (``Protocol.allows_constrained_data``), the function is called with
    ``allows_constraints=True``, too.

    Together the fields cover all bytes, without gaps or overlaps, and so do the children of a field. Bytes that cannot
    be interpreted become a field called `NOT_READ` whose text is the reason, so any bytes can be dissected. A frame
    that ends too soon gets a last field without bytes, called `REFUSED`. `cut` and `Cutter` implement these rules.
    For a protocol without such a module the frame is a single field.

    Wireshark gets the module in Lua (`workbench.captures.lua`). A module without a table lists the names of its fields,
    for Wireshark's filters, in FIELD_NAMES.

Cost
    Linear in the bytes of the frame.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from struct import calcsize, unpack_from
from types import ModuleType
from typing import Any, NamedTuple

from workbench.attributes.event_bytes import CHECKSUM_B
from workbench.attributes.keys import in_units, key_of
from workbench.attributes.model import INTERVAL, IS, OPERATOR_NAMES, Attribute, check, is_blob
from workbench.attributes.text import to_text
from workbench.errors import AttributeFormatError, DecodeError, ParameterError
from workbench.extensions import extensible
from workbench.keywords import checked
from workbench.protocols.protocol import Protocol

NOT_READ = "not read"
REFUSED = "refused"
NODE = "node {}"
_REFUSAL = " (refused: "
# The meaning of a number as text: a template for `str.format`, or a function of the number.
Meaning = str | Callable[[int], str]
# Fields that a `Cutter` adds to frames of several protocols -> their kind: "number", "octets" or "text".
COMMON_FIELDS = {
    "attributes": "text",
    "attribute": "text",
    "key": "number",
    "operator": "number",
    "length": "number",
    "value": "text",
    "checksum (CRC-32)": "number",
}
_HEX_B = 8  # largest number of bytes of a field that the text form shows


class Field(NamedTuple):
    """A field of a frame: the bytes in [``start``, ``end``), and their meaning as ``text``.

    ``children`` are fields that together cover all bytes of this field; a field without children is a leaf.
    """

    name: str
    start: int
    end: int
    text: str
    children: tuple[Field, ...] = ()

    def leaves(self) -> Iterator[Field]:
        """Yield the leaves below this field in the order of their bytes; a leaf yields itself."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()

    def tree(self, depth: int = 0) -> Iterator[tuple[int, Field]]:
        """Yield (depth, field) of this field and of all fields below it, each before its children.

        ``depth``: the depth of this field; its children have one more.
        """
        yield depth, self
        for child in self.children:
            yield from child.tree(depth + 1)


@extensible
class Dissection(NamedTuple):
    """A dissected frame: its bytes, and its fields in the order of their bytes."""

    data: bytes
    fields: tuple[Field, ...]

    def leaves(self) -> Iterator[Field]:
        """Yield the fields without children, in order. Together their bytes are the whole frame."""
        for field in self.fields:
            yield from field.leaves()

    def tree(self) -> Iterator[tuple[int, Field]]:
        """Yield (depth, field) of all fields, each before its children; the depth of a field without a parent is 0."""
        for field in self.fields:
            yield from field.tree()

    def field_at(self, offset: int) -> Field:
        """Return the leaf that contains the byte at ``offset``. Raises IndexError outside the frame."""
        for field in self.leaves():
            if field.start <= offset < field.end:
                return field
        raise IndexError(f"offset is {offset}; the frame has {len(self.data)} bytes")

    def __str__(self) -> str:
        named_fields = [("  " * depth + field.name, field) for depth, field in self.tree()]
        width = max((len(name) for name, _ in named_fields), default=0)
        lines = [f"{len(self.data)} bytes"]
        for name, field in named_fields:
            digits = "" if field.children else self.data[field.start : min(field.end, field.start + _HEX_B)].hex(" ")
            ellipsis = " …" if digits and field.end - field.start > _HEX_B else ""
            lines.append(f"{byte_range(field):<8} {digits + ellipsis:<26} {name:<{width}}  {field.text}")
        return "\n".join(lines)


def byte_range(field: Any) -> str:
    """Return the range of a field's bytes as text: "4", "4–7" (7 is the last byte), or "" for no bytes."""
    if field.start == field.end:
        return ""
    return f"{field.start}" if field.end - field.start == 1 else f"{field.start}–{field.end - 1}"


@checked
def dissect(of: Any, frame: bytes, broadcast: bool = True) -> Dissection:
    """Dissect a frame into fields; ``of`` is the protocol that sent it, or a scenario or run of that protocol.

    ``broadcast``: whether the frame was sent to all neighbors, as some messages differ only in this. Any bytes can be
    dissected. Raises ParameterError if ``frame`` is not bytes, or if ``of`` has no protocol.

    >>> print(dissect(run, run.frames(most=1)["frame"][0].as_py()))
    """
    scenario = of if isinstance(of, Protocol) else getattr(of, "scenario", of)
    protocol = scenario if isinstance(scenario, Protocol) else getattr(scenario, "protocol", None)
    if not isinstance(protocol, Protocol):
        raise ParameterError(f"dissect: the argument `of` is {of!r:.60}; it must be a protocol, a scenario or a run")
    if not isinstance(frame, (bytes, bytearray, memoryview)):
        raise ParameterError(f"dissect: the argument `frame` is {frame!r:.60}; it must be bytes, as in run.frames()")
    frame_bytes = bytes(frame)
    if protocol.dissector:
        options = {"allows_constraints": True} if protocol.allows_constrained_data else {}
        fields = function_of(import_module(protocol.dissector))(frame_bytes, broadcast, **options)
        return Dissection(frame_bytes, tuple(fields))
    return Dissection(
        frame_bytes, (Field("frame", 0, len(frame_bytes), f"{len(frame_bytes)} bytes"),) if frame_bytes else ()
    )


def function_of(module: ModuleType) -> Callable[..., tuple[Field, ...]]:
    """Return the function (frame, broadcast) -> fields with which a dissector module dissects frames.

    This is the module's function ``dissect``. If the module has a table MESSAGES instead, it is a function that reads
    frames by the table.
    """
    from workbench.protocols.field_tables import dissect_frame

    return partial(dissect_frame, module.MESSAGES) if hasattr(module, "MESSAGES") else module.dissect


# Helpers for the protocols' dissector modules


def host_only(substitute: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for a function of a dissector that cannot be translated from Python to Lua.

    Dissectors are translated to Lua for Wireshark (`workbench.captures.lua`). In Lua, calls of the function become
    calls of ``substitute``, which has the same parameters and returns a less detailed result.
    """

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        vars(function)["substitute"] = substitute
        return function

    return mark


def refused(text: str, why: str) -> str:
    """Return the text of a field whose value makes nodes refuse the frame: "TEXT (refused: WHY)".

    ``text``: the field's text without the refusal; ``why``: the reason for the refusal.
    """
    return f"{text}{_REFUSAL}{why})"


def cut(frame: bytes, read: Callable[..., None], *arguments: Any) -> tuple[Field, ...]:
    """Return the fields into which ``read(cutter, *arguments)`` cuts a frame; ``cutter``: a `Cutter` of that frame.

    If ``read`` raises DecodeError, all remaining bytes become one field with the error as its text. If no bytes remain,
    that field is empty. If ``read`` returns before the end of the frame, the remaining bytes become one field, too.
    """
    cutter = Cutter(frame)
    try:
        read(cutter, *arguments)
        cutter.leave(len(frame), "nothing should follow here")
    except DecodeError as error:
        if cutter.at == len(frame):
            cutter.fields.append(Field(REFUSED, cutter.at, cutter.at, str(error)))
        cutter.leave(len(frame), str(error))
    return tuple(cutter.fields)


class Group:
    """A field that is being assembled from its children; ``text`` may be set until the ``with`` block ends."""

    def __init__(self) -> None:
        self.text = ""


class Cutter:
    """A reader that cuts a frame into fields from left to right. Its methods raise DecodeError if bytes are missing.

    ``at`` is the offset of the next byte, ``end`` the limit of the bytes that may be read. ``fields`` are the fields of
    the innermost open group. ``refusals`` lists the reasons why nodes refuse the frame: the texts of the fields that
    `refused` has marked, and the reasons why bytes were not read.
    """

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.at = 0
        self.end = len(frame)
        self.fields: list[Field] = []
        self.refusals: list[str] = []

    def type_of(self, names: Mapping[int, str]) -> int:
        """Return the next byte, the frame's type, without consuming it or adding a field.

        Raises DecodeError if the byte is not a key of ``names`` (type -> name of the message).
        """
        type_byte = self.frame[self.at] if self.at < self.end else None
        if type_byte is None or type_byte not in names:
            known_types = ", ".join(f"0x{code:02x} ({name})" for code, name in names.items())
            fault = "no bytes are left" if type_byte is None else f"the first byte is 0x{type_byte:02x}"
            raise DecodeError(f"{fault}; a message begins with one of: {known_types}")
        return type_byte

    def number(self, name: str, layout: str, meaning: Meaning = "{}") -> int:
        """Read the next number of the frame, add it as a field, and return it.

        ``name``: the field's name; ``layout``: the number's format in `struct`; ``meaning``: the field's text, as a
        format string or a function of the number.
        """
        field_start = self._advance(name, calcsize(layout))
        (value,) = unpack_from(layout, self.frame, field_start)
        text = meaning.format(value) if isinstance(meaning, str) else meaning(value)
        self.fields.append(Field(name, field_start, self.at, self.note(text)))
        return value

    def octets(self, name: str, size_B: int, meaning: Callable[[bytes], str] | None = None) -> bytes:
        """Read ``size_B`` bytes, add them as a field, and return them. If ``size_B`` is 0, no field is added.

        The field's text is ``meaning(bytes)``, or the size if ``meaning`` is None.
        """
        field_start = self._advance(name, size_B)
        data = self.frame[field_start : self.at]
        if data:
            text = f"{size_B} bytes" if meaning is None else self.note(meaning(data))
            self.fields.append(Field(name, field_start, self.at, text))
        return data

    def note(self, text: str) -> str:
        """Return ``text``, the text of a field, unchanged. If `refused` has marked it, add it to ``refusals``."""
        if _REFUSAL in text:
            self.refusals.append(text)
        return text

    def _advance(self, name: str, size_B: int) -> int:
        if size_B > self.end - self.at:
            raise DecodeError(f"{name} needs {size_B} B, but only {max(0, self.end - self.at)} B are left")
        self.at += size_B
        return self.at - size_B

    def leave(self, end: int, why: str) -> None:
        """Add the bytes up to the offset ``end`` as one field `NOT_READ` with the text ``why``, the reason.

        If no bytes are left before ``end``, no field is added.
        """
        if self.at < end:
            self.fields.append(Field(NOT_READ, self.at, end, why))
            self.refusals.append(why)
            self.at = end

    @contextmanager
    def group(self, name: str) -> Iterator[Group]:
        """Return a context manager that adds a field; its children are the fields that the ``with`` block adds.

        If the block does not add fields, the context manager adds nothing. ``as`` gives the block a `Group`; its
        ``text`` becomes the text of the added field.
        """
        group, outer_fields, group_start = Group(), self.fields, self.at
        self.fields = []
        try:
            yield group
        except DecodeError:
            group.text = group.text or "cut off"
            raise
        finally:
            children, self.fields = self.fields, outer_fields
            if children:
                outer_fields.append(Field(name, group_start, self.at, group.text, tuple(children)))

    @contextmanager
    def before_checksum(self) -> Iterator[None]:
        """Limit the ``with`` block to the bytes before the frame's checksum; then add the checksum as a field.

        Bytes that the block has not read become a field `NOT_READ`. The checksum's text states whether it is right.
        `attributes/event_bytes.py` defines the checksum.
        """
        self.end = len(self.frame) - CHECKSUM_B
        yield
        self.leave(self.end, "nothing should follow here but the checksum")
        expected_crc = crc32(self.frame[: self.end])
        self.end = len(self.frame)
        fault = f"the checksum of these bytes is 0x{expected_crc:08x}"
        self.number(
            "checksum (CRC-32)",
            "<I",
            lambda checksum: (
                f"0x{checksum:08x}, right" if checksum == expected_crc else refused(f"0x{checksum:08x}", fault)
            ),
        )

    def attributes(
        self, count: int, are_readings: bool = False, allows_constraints: bool = False
    ) -> tuple[Attribute, ...]:
        """Read ``count`` attributes, add them as the field "attributes" with a child for each, and return them.

        `attributes/wire.py` defines their layout. The texts of invalid attributes state the reason why nodes refuse
        them. ``are_readings``: whether the attributes belong to data, not to an interest. Data needs the operator IS in
        all attributes; if ``allows_constraints`` is True, at least in one of them.
        """
        attributes: list[Attribute] = []
        with self.group("attributes") as group:
            try:
                for index in range(count):
                    attributes.append(self._attribute(f"attribute {index + 1}", are_readings, allows_constraints))
            finally:
                group.text = to_text(attributes)
                if (
                    allows_constraints
                    and are_readings
                    and attributes
                    and IS not in [operator for _, operator, _ in attributes]
                ):
                    group.text = self.note(refused(group.text, "data needs at least one IS attribute"))
        return tuple(attributes)

    def _attribute(self, name: str, is_reading: bool, allows_constraints: bool) -> Attribute:
        with self.group(name) as group:
            key = self.number("key", "<B", lambda number: f"{number}: {key_of(number).name}")
            operator = self.number("operator", "<B", _operator_text)
            value: bytes | int
            if is_blob(key):
                value = self.octets("value", self.number("length", "<B", "{} bytes"))
            else:
                value = self.number("value", "<h", lambda steps: _value_text(Attribute(key, operator, steps)))
            attribute = Attribute(key, operator, value)
            group.text = to_text((attribute,))
            refusal_reason = _refusal_reason(attribute, is_reading, allows_constraints)
            if refusal_reason:
                group.text = self.note(refused(group.text, refusal_reason))
        return attribute


def _refusal_reason(attribute: Attribute, is_reading: bool, allows_constraints: bool) -> str:
    try:
        check(attribute)
    except AttributeFormatError as error:
        return str(error)
    if not is_reading or attribute.operator == IS:
        return ""
    if not allows_constraints:
        return "only IS attributes describe data"
    return "data must not constrain INTERVAL" if attribute.key == INTERVAL else ""


def _operator_text(number: int) -> str:
    name = OPERATOR_NAMES[number] if 0 < number < len(OPERATOR_NAMES) else "no operator"
    return f"{number}: {name}"


def _value_text(attribute: Attribute) -> str:
    """Return the text of an attribute's value: the integer in the frame, then the value in the key's unit.

    If the key's unit is not divided into steps, both numbers are equal, and the text is the integer alone.
    """
    key = key_of(attribute.key)
    return f"{attribute.value}" if key.steps == 1 else f"{attribute.value}: {in_units(attribute):g} {key.unit}"

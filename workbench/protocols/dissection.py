"""A frame taken apart: an ordered tree of fields, each with its bytes and with what they say in words.

    dissect(of, frame, broadcast=True)    a `Dissection`: its text form and its HTML show hex, fields and words

Theory of operation
    Only the protocol knows what the bytes of its frames mean. Its class names a module, as it does for metrics
    (``dissector = "workbench.protocols.flooding.dissector"``). It is loaded on demand, never by a node, and has

        dissect(frame, broadcast)    the fields of a frame, one after the other

    The fields are of all bytes, without gaps or overlaps, and so are the children of a field. What cannot be read is a
    field called `NOT_READ` that says why: any bytes at all have fields. A frame that ends too soon has a last field of
    no bytes, `REFUSED`. `cut` and its `Cutter` hold all of this, so a protocol only says in which order what is read. A
    protocol that names no module has a single field, the frame.

Cost
    Linear in the bytes of the frame.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from struct import calcsize, unpack_from
from typing import Any, NamedTuple

from workbench.attributes.event_bytes import CHECKSUM_B
from workbench.attributes.keys import in_units, key_of
from workbench.attributes.model import IS, OPERATOR_NAMES, Attribute, check, is_blob
from workbench.attributes.text import to_text
from workbench.errors import AttributeFormatError, DecodeError, ParameterError
from workbench.extensions import extensible
from workbench.keywords import checked
from workbench.protocols.protocol import Protocol

NOT_READ = "not read"
REFUSED = "refused"
NODE = "node {}"
# What a number says: a template for `str.format`, or a function of it.
Say = str | Callable[[int], str]
_HEX_B = 8  # of a field, in the text form


class Field(NamedTuple):
    """A field of a frame: its bytes are from ``start`` to before ``end``, ``text`` is what they say.

    ``children`` are fields too, and together all of its bytes; a field without any is a leaf.
    """

    name: str
    start: int
    end: int
    text: str
    children: tuple[Field, ...] = ()

    def leaves(self) -> Iterator[Field]:
        """The fields without children in it, in the order of their bytes; itself if it has no children."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()

    def tree(self, depth: int = 0) -> Iterator[tuple[int, Field]]:
        """(depth, field) of itself and of all fields in it, each before its children."""
        yield depth, self
        for child in self.children:
            yield from child.tree(depth + 1)


@extensible
class Dissection(NamedTuple):
    """A frame taken apart: its bytes, and its fields in the order of their bytes."""

    data: bytes
    fields: tuple[Field, ...]

    def leaves(self) -> Iterator[Field]:
        """The fields that have no children. Their bytes follow on each other, and together they are the frame."""
        for field in self.fields:
            yield from field.leaves()

    def tree(self) -> Iterator[tuple[int, Field]]:
        """(depth, field) of all fields, each before its children."""
        for field in self.fields:
            yield from field.tree()

    def field_at(self, offset: int) -> Field:
        """The leaf that a byte belongs to; IndexError if the frame has no such byte."""
        for field in self.leaves():
            if field.start <= offset < field.end:
                return field
        raise IndexError(f"a frame of {len(self.data)} bytes has no byte {offset}")

    def __str__(self) -> str:
        named = [("  " * depth + field.name, field) for depth, field in self.tree()]
        width = max((len(name) for name, _ in named), default=0)
        lines = [f"{len(self.data)} bytes"]
        for name, field in named:
            digits = "" if field.children else self.data[field.start : min(field.end, field.start + _HEX_B)].hex(" ")
            more = " …" if digits and field.end - field.start > _HEX_B else ""
            lines.append(f"{byte_range(field):<8} {digits + more:<26} {name:<{width}}  {field.text}")
        return "\n".join(lines)


def byte_range(field: Any) -> str:
    """The bytes of a field for a reader: "4", "4–7" with the last one, or "" for none."""
    if field.start == field.end:
        return ""
    return f"{field.start}" if field.end - field.start == 1 else f"{field.start}–{field.end - 1}"


@checked
def dissect(of: Any, frame: bytes, broadcast: bool = True) -> Dissection:
    """Take a frame apart; ``of`` is the protocol whose frame it is, or a scenario or a run of it.

    ``broadcast``: whether the frame was sent to all neighbors, which some messages are told apart by. Any bytes have a
    Dissection. ParameterError if they are no bytes, or if ``of`` has no protocol.

    >>> print(dissect(run, run.frames(most=1)["frame"][0].as_py()))
    """
    scenario = of if isinstance(of, Protocol) else getattr(of, "scenario", of)
    protocol = scenario if isinstance(scenario, Protocol) else getattr(scenario, "protocol", None)
    if not isinstance(protocol, Protocol):
        raise ParameterError(f"of is {of!r:.60}; it must be a protocol, a scenario or a run")
    if not isinstance(frame, (bytes, bytearray, memoryview)):
        raise ParameterError(f"the frame is {frame!r:.60}; it must be bytes, as run.frames() has them")
    data = bytes(frame)
    if protocol.dissector:
        return Dissection(data, tuple(import_module(protocol.dissector).dissect(data, broadcast)))
    return Dissection(data, (Field("frame", 0, len(data), f"{len(data)} bytes"),) if data else ())


# For the protocols' modules


def refused(said: str, why: str) -> str:
    """What a field says for which a node refuses the frame, though it can be read."""
    return f"{said} (refused: {why})"


def cut(frame: bytes, read: Callable[..., None], *arguments: Any) -> tuple[Field, ...]:
    """The fields that ``read(cutter, *arguments)`` cuts a frame into.

    Where ``read`` raises DecodeError it has met what it cannot read: all bytes from there on are one field that says
    why; if there are none, it is a field of no bytes. What ``read`` leaves over is one field, too.
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
    """A field that is being put together of others; its ``text`` may be set when they are read."""

    def __init__(self) -> None:
        self.text = ""


class Cutter:
    """Cuts a frame into fields from left to right; DecodeError where bytes are missing.

    ``at`` is the next byte, ``end`` is behind the last one that may be read, ``fields`` are those of the innermost
    group that is open.
    """

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.at = 0
        self.end = len(frame)
        self.fields: list[Field] = []

    def type_of(self, names: Mapping[int, str]) -> int:
        """Return the next byte, a key of ``names``, without cutting it off. Raises DecodeError for any other byte."""
        number = self.frame[self.at] if self.at < self.end else None
        if number is None or number not in names:
            known = ", ".join(f"0x{one:02x} ({name})" for one, name in names.items())
            begins = "no bytes are" if number is None else f"what begins with 0x{number:02x} is"
            raise DecodeError(f"{begins} no message; messages begin with {known}")
        return number

    def number(self, name: str, layout: str, say: Say = "{}") -> int:
        """Cut off a number, laid out as `struct` writes it."""
        start = self._advance(name, calcsize(layout))
        (value,) = unpack_from(layout, self.frame, start)
        self.fields.append(Field(name, start, self.at, say.format(value) if isinstance(say, str) else say(value)))
        return value

    def numbers(self, layout: str, *named: tuple[str, Say]) -> list[int]:
        """Cut off the numbers of a struct, such as "<BH"; for each its name and what it says."""
        order = layout[0]
        return [self.number(name, order + code, say) for code, (name, say) in zip(layout[1:], named, strict=True)]

    def octets(self, name: str, size_B: int, say: Callable[[bytes], str] | None = None) -> bytes:
        """Cut off so many bytes; none are no field. ``say`` says what they mean, else it is how many they are."""
        start = self._advance(name, size_B)
        data = self.frame[start : self.at]
        if data:
            self.fields.append(Field(name, start, self.at, f"{size_B} bytes" if say is None else say(data)))
        return data

    def _advance(self, name: str, size_B: int) -> int:
        if size_B > self.end - self.at:
            raise DecodeError(f"{name} takes {size_B} B, and {max(0, self.end - self.at)} B are left")
        self.at += size_B
        return self.at - size_B

    def leave(self, end: int, why: str) -> None:
        """Make one field of all bytes up to ``end``, if there are any, that says why they are not read."""
        if self.at < end:
            self.fields.append(Field(NOT_READ, self.at, end, why))
            self.at = end

    @contextmanager
    def group(self, name: str) -> Iterator[Group]:
        """What is cut off within is the children of one field; where nothing is, there is no field."""
        group, outer, start = Group(), self.fields, self.at
        self.fields = []
        try:
            yield group
        except DecodeError:
            group.text = group.text or "cut off"
            raise
        finally:
            children, self.fields = self.fields, outer
            if children:
                outer.append(Field(name, start, self.at, group.text, tuple(children)))

    @contextmanager
    def sealed(self) -> Iterator[None]:
        """What is cut off within has a checksum behind it, at the end of the frame (`attributes/event_bytes.py`)."""
        self.end = len(self.frame) - CHECKSUM_B
        yield
        self.leave(self.end, "nothing should follow here but the checksum")
        right = crc32(self.frame[: self.end])
        self.end = len(self.frame)
        wrong = f"that of these bytes is 0x{right:08x}"
        self.number(
            "checksum (CRC-32)",
            "<I",
            lambda said: f"0x{said:08x}, right" if said == right else refused(f"0x{said:08x}", wrong),
        )

    def attributes(self, count: int, are_readings: bool = False) -> None:
        """Cut off attributes, as `attributes/wire.py` lays them out; readings are IS attributes alone."""
        read = []
        with self.group("attributes") as group:
            try:
                for place in range(count):
                    read.append(self._attribute(f"attribute {place + 1}", are_readings))
            finally:
                group.text = to_text(read)

    def _attribute(self, name: str, is_reading: bool) -> Attribute:
        with self.group(name) as group:
            key = self.number("key", "<B", lambda number: f"{number}: {key_of(number).name}")
            operator = self.number("operator", "<B", _operator)
            value: bytes | int
            if is_blob(key):
                value = self.octets("value", self.number("length", "<B", "{} bytes"))
            else:
                value = self.number("value", "<h", lambda steps: _value(Attribute(key, operator, steps)))
            attribute = Attribute(key, operator, value)
            group.text = to_text((attribute,))
            why = _why_refused(attribute, is_reading)
            if why:
                group.text = refused(group.text, why)
        return attribute


def _why_refused(attribute: Attribute, is_reading: bool) -> str:
    try:
        check(attribute)
    except AttributeFormatError as error:
        return str(error)
    return "only IS attributes describe data" if is_reading and attribute.operator != IS else ""


def _operator(number: int) -> str:
    name = OPERATOR_NAMES[number] if 0 < number < len(OPERATOR_NAMES) else "no operator"
    return f"{number}: {name}"


def _value(attribute: Attribute) -> str:
    """An integer on the wire, and what it is in its key's unit."""
    key = key_of(attribute.key)
    return f"{attribute.value}" if key.steps == 1 else f"{attribute.value}: {in_units(attribute):g} {key.unit}"

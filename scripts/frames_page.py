"""Write the page of all frames, docs/FRAMES.md, from the protocols' tables of fields.

python scripts/frames_page.py > docs/FRAMES.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from struct import calcsize
from typing import NamedTuple

from workbench.protocols.dps.wire import fields as dps
from workbench.protocols.field_tables import (
    Attributes,
    Check,
    Group,
    Message,
    Number,
    Octets,
    Part,
    Repeat,
    When,
    label_of,
)

PROTOCOLS = {
    "flooding": "Flooding, and gossip of whole publications",
    "gossip": "Gossip of pieces",
    "coded_diffusion": "Coded diffusion",
    "diffusion": "TinyDiffusion",
    "tinymq": "TinyMQ, PUB-2-SUB+, TinyMQ as published",
}
_TOP = """\
# The bytes of the frames

`python scripts/frames_page.py > docs/FRAMES.md` generates this page from the tables of fields in
`workbench/protocols/*/dissector.py`. The same tables are used by `wb.dissect`, by the player, by Wireshark
([CAPTURES.md](CAPTURES.md)) and, for TinyDiffusion and flooding, by the nodes in C. For one frame of each message,
tests change each bit and compare the table's reading with that of the code that packs frames (`wire.py`).

In all protocols but DPS the first byte of a frame is its type, which counts within the protocol. Numbers are
little-endian and unsigned unless a row states otherwise, without padding; *n* is the value of the field.
An attribute has 4 bytes: its key, its operator, and a signed value of 2 bytes. If its key is that of a blob, it has the
key, the operator, a byte for the size, and the blob. A checksum is the CRC-32 of all bytes before it. MAC headers are
not part of these frames ([MODEL.md](MODEL.md)).
"""
_DPS = """\
## DPS

[`wire/`](../workbench/protocols/dps/wire/__init__.py), [`wire/fields.py`](../workbench/protocols/dps/wire/fields.py)

A message is an array of CBOR: version 1, type, unprotected map, protected map, last map. Definite lengths and shortest
integers; the keys of a map ascend. A message has a port or a path. Needs and interests are present if the flags request
an answer, except in an unlink. In place of the last map, a publication or an acknowledgement may have COSE.
"""


class _Row(NamedTuple):
    """A row of a table: the field's size in bytes as text ("" if it varies), its name, and its content."""

    size: str
    name: str
    content: str


def text() -> str:
    """Return the text of the page."""
    sections, shown = [_TOP], set()
    for name, title in PROTOCOLS.items():
        sections.append(f"## {title}\n\n[`wire.py`](../workbench/protocols/{name}/wire.py)\n")
        forms: dict[tuple[str, tuple[Part, ...]], dict[int, Message]] = {}
        for byte, message in import_module(f"workbench.protocols.{name}.dissector").MESSAGES.items():
            forms.setdefault((message.name.split(",")[0], message.parts), {})[byte] = message
        sections += [_format_section(messages) for form, messages in forms.items() if form not in shown]
        shown |= forms.keys()
    return "\n".join([*sections, _DPS, *_format_dps_tables()])


def _format_dps_tables() -> Iterator[str]:
    """Yield the tables of DPS's messages and of the fields in their maps."""
    yield "| type | message | unprotected map | protected map | last map |\n|---|---|---|---|---|"
    for kind, (name, *maps) in dps.MAPS.items():
        yield f"| {kind} | {name} | {' | '.join(', '.join(dps.LABELS[key] for key in keys) for keys in maps)} |"
    yield "\n| key | field | content |\n|---|---|---|"
    for key, entry in sorted(dps.FIELDS.items()):
        yield f"| {key} | {dps.LABELS[key]} | {entry.type}{_format_limit(entry)} |"
    yield ""


def _format_limit(entry: dps.Entry) -> str:
    if entry.limit is None:
        return ""
    return f" of {entry.limit} bytes" if entry.type == dps.BYTES else f", at most {entry.limit}"


def _format_section(messages: dict[int, Message]) -> str:
    """Return the section of a message, with a table of its fields.

    ``messages`` is {type byte: message}: forms of the message that differ only in the type.
    """
    message = next(iter(messages.values()))
    types = "; ".join(f"0x{byte:02x} {form.name}" for byte, form in messages.items())
    rows = [_Row("1", "type", types), *_make_rows(message.parts, "")]
    rows += [_Row("4", "checksum (CRC-32)", "")] if message.has_checksum else []
    lines = [f"### {message.name}\n", "| at | bytes | field | content |", "|---|---|---|---|"]
    offset: int | None = 0
    for row in rows:
        lines.append(f"| {'' if offset is None else offset} | {row.size} | {row.name} | {row.content} |")
        offset = offset + int(row.size) if offset is not None and row.size.isdigit() else None
    return "\n".join(lines) + "\n"


def _make_rows(parts: Sequence[Part], where: str, only: str = "", each: str = "") -> Iterator[_Row]:
    """Yield the rows of the table for these parts of a message.

    ``where``: text before the parts' names, for parts of a group; ``only``: the condition under which the parts are
    present; ``each``: text after a size, such as " each" for repeated parts.
    """
    for part in parts:
        if isinstance(part, Number):
            size_B = calcsize("<" + part.code)
            size = f"{size_B}{each}{' or 0' if only else ''}"
            yield _Row(size, where + label_of(part), "; ".join(filter(None, (_describe_content(part), only))))
        elif isinstance(part, Octets):
            yield _Row("", where + label_of(part), part.note)
        elif isinstance(part, Group):
            yield from _make_rows(part.parts, f"{where}{label_of(part)}: ", only, each)
        elif isinstance(part, Repeat):
            yield from _make_rows((part.part,), where, only, " each")
        elif isinstance(part, When):
            condition = f"only if `{part.flag}`" if part.flag else "only if the frame goes on"
            yield from _make_rows(part.parts, where, condition)
        elif isinstance(part, Attributes):
            yield _Row("", where + "attributes", "with the operator IS" if part.are_readings else "constraints")
        else:
            assert isinstance(part, Check)


def _describe_content(number: Number) -> str:
    """Return the text in the column "content" for a number: its meaning and its flags.

    If the meaning depends on the value, the text lists it by ranges of values, or for example values.
    """
    if isinstance(number.meaning, str):
        contents = [number.meaning.format("*n*")]
    elif calcsize("<" + number.code) <= 2:
        contents = _describe_ranges(number)
    else:
        largest = (1 << 8 * calcsize("<" + number.code)) - 1
        examples = ", ".join(f"{value} is “{number.meaning(value, {})}”" for value in (0, 1, largest))
        contents = [f"for example, {examples}"]
    return "; ".join(contents + [f"with 0x{flag.bit:02x} (`{flag.name}`){flag.text}" for flag in number.flags])


def _describe_ranges(number: Number) -> list[str]:
    """Return texts "first to last: meaning" for all values of a number.

    Successive values whose meanings differ only in the value itself are in one range.
    """
    ranges: list[tuple[str, int, int]] = []
    for value in range(1 << 8 * calcsize("<" + number.code)):
        content = number.meaning(value, {}).replace(str(value), "*n*", 1).removeprefix("*n*: ")
        if ranges and ranges[-1][0] == content:
            ranges[-1] = content, ranges[-1][1], value
        else:
            ranges.append((content, value, value))
    return [f"{first}{f' to {last}' if last > first else ''}: {content}" for content, first, last in ranges]


if __name__ == "__main__":
    print(text(), end="")

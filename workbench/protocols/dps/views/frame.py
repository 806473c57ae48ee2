"""DPS's frames taken apart, field by field, for any view of any run: the parts of `inspect_message` as a tree.

What is in a map are its children. A message by itself has more to look at: bits, topics and CBOR in
`wb.dps.views.inspect_message`.
"""

from collections.abc import Iterator

from workbench.protocols.dissection import NOT_READ, REFUSED, Field
from workbench.protocols.dps.views.message import ENVELOPE, FRAME, REST, SEALED, Part, inspect_message

_LONGEST_NOTATION = 72


def dissect(frame: bytes, broadcast: bool = True) -> tuple[Field, ...]:
    """The fields of a frame."""
    inspection = inspect_message(frame)
    fields = tuple(_fields(inspection.parts))
    if inspection.error and not any(field.name == NOT_READ for field in fields):
        fields += (Field(REFUSED, len(frame), len(frame), inspection.error),)
    return fields


def _fields(parts: tuple[Part, ...]) -> Iterator[Field]:
    children: list[Field] = []  # of the map that is open: its head first
    for part in parts:
        if children and not _is_entry(part):
            yield _map(children)
            children = []
        if children or _begins_map(part):
            children.append(Field(part.name, part.start, part.end, _text(part)))
        else:
            yield Field(NOT_READ if part.name == "rest" else part.name, part.start, part.end, _text(part))
    if children:
        yield _map(children)


def _map(fields: list[Field]) -> Field:
    head, *entries = fields
    first = head._replace(name="number of entries", text=head.text.strip("{}"))
    said = ", ".join(entry.name for entry in entries) or "empty"
    return Field(head.name, head.start, fields[-1].end, said, (first, *entries))


def _begins_map(part: Part) -> bool:
    return part.kind == FRAME and part.notation.startswith("{")


def _is_entry(part: Part) -> bool:
    """Whether a part that follows on the head of a map, or on an entry, is an entry of it."""
    return part.kind not in (FRAME, SEALED, ENVELOPE) and not (part.kind == REST and part.name == "rest")


def _text(part: Part) -> str:
    notation = part.notation if len(part.notation) <= _LONGEST_NOTATION else f"{part.notation[:_LONGEST_NOTATION]} …"
    return ", ".join(said for said in (notation, part.meaning) if said)

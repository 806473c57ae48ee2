"""The dissector of DPS's frames, in the form that the views of all protocols use: a tree of fields.

`dissect` converts the parts of a frame that `message.parts_of` returns to fields. The field of a CBOR map has the map's
entries as children. For a single message `wb.dps.views.inspect_message` shows more: bits, topics and CBOR.
"""

from workbench.protocols.dissection import NOT_READ, REFUSED, Field
from workbench.protocols.dps.views.message import ENVELOPE, FRAME, MAPS, REST, SEALED, Part, parts_of
from workbench.protocols.dps.wire import fields as map_fields

_LONGEST_NOTATION = 72
# The names of all fields but those of unknown keys.
FIELD_NAMES = (
    *map_fields.LABELS.values(),
    *MAPS,
    *("array", "version", "type", "body", "number of entries", "CoAP envelope"),
)


def dissect(frame: bytes, broadcast: bool = True) -> tuple[Field, ...]:
    """Return the decoded fields of a frame, each with its range of bytes.

    ``broadcast``, whether the frame was broadcast, makes no difference.
    """
    parts, error = parts_of(frame)
    fields = _fields(parts)
    if error and not any(field.name == NOT_READ for field in fields):
        fields.append(Field(REFUSED, len(frame), len(frame), error))
    return tuple(fields)


def _fields(parts: list[Part]) -> list[Field]:
    fields: list[Field] = []
    children: list[Field] = []  # the head and the entries of the current map
    for message_part in parts:
        if children and not _is_entry(message_part):
            fields.append(_make_map_field(children))
            children = []
        if children or _begins_map(message_part):
            children.append(Field(message_part.name, message_part.start, message_part.end, _text(message_part)))
        else:
            name = NOT_READ if message_part.name == "rest" else message_part.name
            fields.append(Field(name, message_part.start, message_part.end, _text(message_part)))
    if children:
        fields.append(_make_map_field(children))
    return fields


def _make_map_field(fields: list[Field]) -> Field:
    head, *entries = fields
    entry_count = head._replace(name="number of entries", text=head.text.strip("{}"))
    names = ", ".join(entry.name for entry in entries) or "empty"
    return Field(head.name, head.start, fields[-1].end, names, (entry_count, *entries))


def _begins_map(part: Part) -> bool:
    return part.kind == FRAME and part.notation.startswith("{")


def _is_entry(part: Part) -> bool:
    """Return whether a part of the frame is an entry of a CBOR map: a key with its value."""
    return part.kind not in (FRAME, SEALED, ENVELOPE) and not (part.kind == REST and part.name == "rest")


def _text(part: Part) -> str:
    notation = part.notation if len(part.notation) <= _LONGEST_NOTATION else f"{part.notation[:_LONGEST_NOTATION]} …"
    return ", ".join(text for text in (notation, part.meaning) if text)

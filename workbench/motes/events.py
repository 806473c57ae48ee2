"""Events on the host link as a host decodes them: the event of each number, and the fields of an EVENT message."""

from __future__ import annotations

from typing import Any

from workbench.errors import DecodeError
from workbench.motes import messages


def event_types(own: tuple[Any, ...]) -> dict[int, Any]:
    """Return {number on the link: event} for the contract's events and ``own``, the EVENTS of a protocol's nodes."""
    return dict(enumerate(messages.EVENTS)) | dict(enumerate(own, messages.FIRST_OF_PROTOCOL))


def event_names(own: tuple[Any, ...]) -> dict[int, str]:
    """Return {number on the link: name in the trace}, including the mote's own events."""
    from workbench.sim.trace import event_name

    names = {number: event_name(cls) for number, cls in event_types(own).items()}
    return names | dict(enumerate(messages.OWN_EVENTS, messages.FIRST_OWN_EVENT))


def decode_row(fields: tuple[Any, ...], rest: bytes) -> tuple[Any, ...]:
    """Return (time, kind, peer, message, origin, sequence, size, value, detail) of an EVENT.

    Raises DecodeError if the bytes are not an event.
    """
    time_us, kind, peer, origin, sequence, value, size_B = fields
    last = messages.FIRST_OWN_EVENT + len(messages.OWN_EVENTS)
    if not (kind < len(messages.EVENTS) or messages.FIRST_OF_PROTOCOL <= kind < last):
        raise DecodeError(f"event kind is {kind}; neither the workbench nor this node's protocol defines it")
    start = 1 + rest[0] if rest else 1
    if len(rest) <= start:
        raise DecodeError("an event ends within its names")
    message, data = _text(rest[1:start]), rest[start + 1 :]
    detail = _text(data) if rest[start] == messages.IS_TEXT else messages.decode_attribute_list(data)
    return time_us, kind, peer, message, origin, sequence, size_B, value, detail


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeError:
        raise DecodeError("a text is not UTF-8") from None

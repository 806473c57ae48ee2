"""Events on the host link, as a host reads them: which event a number stands for, and the fields of an EVENT."""

from __future__ import annotations

from typing import Any

from workbench.errors import DecodeError
from workbench.motes import messages


def event_types(own: tuple[Any, ...]) -> dict[int, Any]:
    """Number on the link -> event, of the contract and of a protocol whose nodes have ``own`` as EVENTS."""
    return dict(enumerate(messages.EVENTS)) | dict(enumerate(own, messages.FIRST_OF_PROTOCOL))


def event_names(own: tuple[Any, ...]) -> dict[int, str]:
    """Number on the link -> name in the trace, the mote's own events included."""
    from workbench.sim.trace import event_name

    names = {number: event_name(cls) for number, cls in event_types(own).items()}
    return names | dict(enumerate(messages.OWN_EVENTS, messages.FIRST_OWN_EVENT))


def decode_row(fields: tuple[Any, ...], rest: bytes) -> tuple[Any, ...]:
    """Return (time, kind, peer, message, origin, sequence, size, value, detail) of an EVENT.

    DecodeError if its bytes are no event.
    """
    time_us, kind, peer, origin, sequence, value, size_B = fields
    last = messages.FIRST_OWN_EVENT + len(messages.OWN_EVENTS)
    if not (kind < len(messages.EVENTS) or messages.FIRST_OF_PROTOCOL <= kind < last):
        raise DecodeError(f"an event of kind {kind} is not known on this link")
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
        raise DecodeError("a text is no UTF-8") from None

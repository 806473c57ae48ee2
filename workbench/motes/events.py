"""Decoding of events on the host link: the event class of each event number, and the fields of EVENT messages."""

from __future__ import annotations

from typing import Any

from workbench.errors import DecodeError
from workbench.motes import messages


def event_types(own: tuple[Any, ...]) -> dict[int, Any]:
    """Return {event number on the host link: event class} for the events that nodes report.

    ``own`` is the tuple ``EVENTS`` of the protocol's node class: the event classes that only this protocol has. Their
    numbers follow those of the events of all protocols. Events of the mote itself are not included.
    """
    return dict(enumerate(messages.EVENTS)) | dict(enumerate(own, messages.FIRST_OF_PROTOCOL))


def event_names(own: tuple[Any, ...]) -> dict[int, str]:
    """Return {event number on the link: name in the trace}, including the mote's own events.

    ``own`` is the tuple ``EVENTS`` of the protocol's node class: the event classes that only this protocol has.
    """
    from workbench.sim.trace import event_name

    names = {number: event_name(cls) for number, cls in event_types(own).items()}
    return names | dict(enumerate(messages.OWN_EVENTS, messages.FIRST_OWN_EVENT))


def decode_row(fields: tuple[Any, ...], rest: bytes) -> tuple[Any, ...]:
    """Return (time in µs, event number, peer, message, origin, sequence, size in bytes, value, detail) of an EVENT.

    ``fields`` and ``rest`` are the fields and the trailing bytes that `messages.decode` returns. Raises DecodeError if
    the event number is unknown or the trailing bytes are not valid.
    """
    time_us, kind, peer, origin, sequence, value, size_B = fields
    own_events_end = messages.FIRST_OWN_EVENT + len(messages.OWN_EVENTS)
    if not (kind < len(messages.EVENTS) or messages.FIRST_OF_PROTOCOL <= kind < own_events_end):
        raise DecodeError(f"event kind is {kind}; neither the workbench nor this node's protocol defines it")
    detail_offset = 1 + rest[0] if rest else 1
    if len(rest) <= detail_offset:
        raise DecodeError(f"an event is cut short: its message name and detail do not fit in {len(rest)} bytes")
    message, data = _decode_text(rest[1:detail_offset]), rest[detail_offset + 1 :]
    detail = _decode_text(data) if rest[detail_offset] == messages.IS_TEXT else messages.decode_attribute_list(data)
    return time_us, kind, peer, message, origin, sequence, size_B, value, detail


def _decode_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeError:
        raise DecodeError("a text of an event is not UTF-8") from None

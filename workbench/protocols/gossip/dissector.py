"""The fields of gossip's frames: floods, and pieces of an event."""

from workbench.protocols.field_tables import (
    EVENT_ID,
    TTL_MEANING,
    Check,
    Message,
    Number,
    Octets,
    Values,
)
from workbench.protocols.flooding import dissector as flooding
from workbench.protocols.gossip import wire


def _bounds(values: Values) -> tuple[int, int]:
    is_known = values["number"] < values["pieces"]
    return wire.piece_bounds(values["length_B"], values["pieces"], values["number"]) if is_known else (0, 0)


def _fault(values: Values) -> str:
    begin, end = _bounds(values)
    if begin < end:
        return ""
    return (
        f"invalid piece: piece {values['number']} of {values['pieces']} in an event of {values['length_B']} bytes; "
        "pieces are numbered from 0 and must not be empty"
    )


def _size_B(values: Values) -> int:
    begin, end = _bounds(values)
    return end - begin


def _position_text(data: bytes, values: Values) -> str:
    begin, end = _bounds(values)
    return f"bytes {begin} to {end - 1} of the event"


_PIECE = (
    *EVENT_ID,
    Number("ttl", "H", TTL_MEANING),
    Number("pieces", "B", "the event is cut into {}"),
    Number("number", "B", "piece {}, counted from 0"),
    Number("length_B", "H", "{} bytes", "event length"),
    Check(_fault),
    Octets("data", _size_B, _position_text, "piece", "as many bytes of the event as the header determines"),
)
MESSAGES = {**flooding.MESSAGES, wire.TYPE: Message("piece", _PIECE, has_checksum=True)}

"""The dissector of gossip's frames: floods, and pieces of an event."""

from workbench.errors import DecodeError
from workbench.protocols.dissection import NODE, Cutter, Field, cut
from workbench.protocols.flooding import dissector as flood
from workbench.protocols.gossip import wire

_MESSAGES = {**flood.MESSAGES, wire.TYPE: "piece"}


def dissect(frame: bytes, broadcast: bool = True) -> tuple[Field, ...]:
    """Return the fields of a frame in order, each with its byte range and its value as text."""
    return cut(frame, _read)


def _read(cutter: Cutter) -> None:
    if cutter.type_of(_MESSAGES) == wire.TYPE:
        _read_piece(cutter)
    else:
        flood.read(cutter)


def _read_piece(cutter: Cutter) -> None:
    with cutter.before_checksum():
        *_, piece_count, number, length_B = cutter.numbers(
            wire.HEADER,
            ("type", "piece"),
            ("origin", NODE),
            ("sequence", "{}"),
            ("ttl", "{} hops to live"),
            ("pieces", "the event is cut into {}"),
            ("number", "piece {}, counted from 0"),
            ("event length", "{} bytes"),
        )
        begin, end = wire.piece_bounds(length_B, piece_count, number) if number < piece_count else (0, 0)
        if begin == end:
            raise DecodeError(
                f"invalid piece: piece {number} of {piece_count} in an event of {length_B} bytes; "
                "pieces count from 0 and must not be empty"
            )
        cutter.octets("piece", end - begin, lambda data: f"bytes {begin} to {end - 1} of the event")

"""The dissector of coded diffusion's frames: events, coded packets with their coefficients, requests."""

from typing import Any

from workbench.coding.fields import field as field_of
from workbench.errors import DecodeError
from workbench.protocols.coded_diffusion import wire
from workbench.protocols.dissection import NODE, Cutter, Field, cut, refused

_MESSAGES = {wire.EVENT: "event", wire.CODED: "coded packet", wire.REQUEST: "request"}
_EVENT_ID = (("origin", NODE), ("sequence", "{}"))


def dissect(frame: bytes, broadcast: bool = True) -> tuple[Field, ...]:
    """Return the fields of a frame in order, each with its byte range and its value as text."""
    return cut(frame, _read)


def _read(cutter: Cutter) -> None:
    kind = cutter.type_of(_MESSAGES)
    with cutter.before_checksum():
        if kind == wire.EVENT:
            cutter.numbers(wire.EVENT_LAYOUT, ("type", "event"), *_EVENT_ID)
            cutter.attributes(cutter.number("number of attributes", "<B"), are_readings=True)
        elif kind == wire.CODED:
            _read_coded(cutter)
        else:
            cutter.numbers(wire.REQUEST_LAYOUT, ("type", "request"), *_EVENT_ID, ("rank", _rank_text))


def _rank_text(rank: int) -> str:
    return (
        f"{rank}"
        if rank < wire.LARGEST_GENERATION
        else refused(f"{rank}", f"a rank is at most {wire.LARGEST_GENERATION - 1}")
    )


def _read_coded(cutter: Cutter) -> None:
    *_, generation_size, field_number, length_B = cutter.numbers(
        wire.CODED_LAYOUT,
        ("type", "coded packet"),
        *_EVENT_ID,
        ("hops", "{}"),
        ("generation size", "{} chunks"),
        ("field", _field_text),
        ("event length", "{} bytes"),
    )
    if not generation_size or field_number >= len(wire.FIELD_ORDERS) or not length_B:
        raise DecodeError(
            f"invalid coded packet: event of {length_B} bytes, {generation_size} chunks, finite field number "
            f"{field_number}; allowed: 1 byte or more, 1 chunk or more, field numbers below {len(wire.FIELD_ORDERS)}"
        )
    field = _field(field_number)
    cutter.octets(
        "encoding vector", field.size_B(generation_size), lambda row: _coefficients_text(field, row, generation_size)
    )
    information_B = wire.information_B(length_B, generation_size, field.order)
    cutter.octets("information vector", information_B, lambda row: _symbols_text(field, row))


def _field_text(number: int) -> str:
    return f"{number}: {_field(number)!r}" if number < len(wire.FIELD_ORDERS) else f"{number}: unknown field"


def _field(number: int) -> Any:
    return field_of(wire.FIELD_ORDERS[number])


def _coefficients_text(field: Any, row: bytes, size: int) -> str:
    """Return the ``size`` coefficients in a packed row as text, such as "3, 0, 7".

    If the row is invalid, the text also gives the reason.
    """
    vector = field.unpack(row, size)
    text = ", ".join(map(str, vector))
    if not any(vector):
        return refused(text, "all coefficients are zero")
    if max(vector) >= field.order:
        return refused(text, f"{max(vector)} is not a symbol of {field!r}")
    if bytes(field.pack(vector)) != row:
        return refused(text, "the bits after the last coefficient are not zero")
    return text


def _symbols_text(field: Any, row: bytes) -> str:
    text = f"{len(row) * 8 // field.symbol_bits} symbols of {field!r}"
    try:
        field.check_row(row)
    except DecodeError as error:
        return refused(text, str(error))
    return text

"""Coded diffusion's frames taken apart, field by field: events, coded packets with their coefficients, requests."""

from typing import Any

from workbench.coding.fields import field as field_of
from workbench.errors import DecodeError
from workbench.protocols.coded_diffusion import wire
from workbench.protocols.dissection import NODE, Cutter, Field, cut, refused

_MESSAGES = {wire.EVENT: "event", wire.CODED: "coded packet", wire.REQUEST: "request"}
_EVENT_ID = (("origin", NODE), ("sequence", "{}"))


def dissect(frame: bytes, broadcast: bool = True) -> tuple[Field, ...]:
    """The fields of a frame."""
    return cut(frame, _read)


def _read(cutter: Cutter) -> None:
    kind = cutter.type_of(_MESSAGES)
    with cutter.sealed():
        if kind == wire.EVENT:
            cutter.numbers(wire.EVENT_LAYOUT, ("type", "event"), *_EVENT_ID)
            cutter.attributes(cutter.number("number of attributes", "<B"), are_readings=True)
        elif kind == wire.CODED:
            _coded(cutter)
        else:
            cutter.numbers(wire.REQUEST_LAYOUT, ("type", "request"), *_EVENT_ID, ("rank", _rank))


def _rank(rank: int) -> str:
    return f"{rank}" if rank < wire.LARGEST_GENERATION else refused(f"{rank}", "no generation is so large")


def _coded(cutter: Cutter) -> None:
    *_, size, number, length_B = cutter.numbers(
        wire.CODED_LAYOUT,
        ("type", "coded packet"),
        *_EVENT_ID,
        ("hops", "{}"),
        ("generation size", "{} chunks"),
        ("field", _field_text),
        ("event length", "{} bytes"),
    )
    if not size or number >= len(wire.FIELD_ORDERS) or not length_B:
        raise DecodeError(f"an event of {length_B} bytes in {size} chunks over field {number} has no vectors")
    field = _field(number)
    cutter.octets("encoding vector", field.size_B(size), lambda row: _coefficients(field, row, size))
    information_B = wire.information_B(length_B, size, field.order)
    cutter.octets("information vector", information_B, lambda row: _symbols(field, row))


def _field_text(number: int) -> str:
    return f"{number}: {_field(number)!r}" if number < len(wire.FIELD_ORDERS) else f"{number}: none"


def _field(number: int) -> Any:
    return field_of(wire.FIELD_ORDERS[number])


def _coefficients(field: Any, row: bytes, size: int) -> str:
    """A packed row of coefficients as numbers, and what is wrong with it."""
    vector = field.unpack(row, size)
    said = ", ".join(map(str, vector))
    if not any(vector):
        return refused(said, "zeros say nothing")
    if max(vector) >= field.order:
        return refused(said, f"{max(vector)} is no symbol of {field!r}")
    if bytes(field.pack(vector)) != row:
        return refused(said, "bits behind the last coefficient are not zero")
    return said


def _symbols(field: Any, row: bytes) -> str:
    said = f"{len(row) * 8 // field.symbol_bits} symbols of {field!r}"
    try:
        field.check_row(row)
    except DecodeError as error:
        return refused(said, str(error))
    return said

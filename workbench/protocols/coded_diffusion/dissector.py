"""The fields of coded diffusion's frames: events, coded packets with their coefficients, requests."""

from typing import Any

from workbench.coding.fields import field as field_of
from workbench.errors import DecodeError
from workbench.protocols.coded_diffusion import wire
from workbench.protocols.dissection import refused
from workbench.protocols.field_tables import EVENT_ID, READINGS, Check, Message, Number, Octets, Values


def _rank_text(rank: int, values: Values) -> str:
    if rank < wire.LARGEST_GENERATION:
        return f"{rank}"
    return refused(f"{rank}", f"a rank is at most {wire.LARGEST_GENERATION - 1}")


def _finite_field_text(number: int, values: Values) -> str:
    known = f"{field_of(wire.FIELD_ORDERS[number])!r}" if number < len(wire.FIELD_ORDERS) else "unknown field"
    return f"{number}: {known}"


def _fault(values: Values) -> str:
    generation_size, field_number, length_B = values["generation_size"], values["field"], values["length_B"]
    if generation_size and field_number < len(wire.FIELD_ORDERS) and length_B:
        return ""
    return (
        f"invalid coded packet: event of {length_B} bytes, {generation_size} chunks, finite field number "
        f"{field_number}; allowed: 1 byte or more, 1 chunk or more, field numbers below {len(wire.FIELD_ORDERS)}"
    )


def _finite_field(values: Values) -> Any:
    return field_of(wire.FIELD_ORDERS[values["field"]])


def _vector_B(values: Values) -> int:
    size_B: int = _finite_field(values).size_B(values["generation_size"])
    return size_B


def _coefficients_text(row: bytes, values: Values) -> str:
    """Return the coefficients in a packed row as text, such as "3, 0, 7".

    If the row is invalid, the text also gives the reason.
    """
    field = _finite_field(values)
    vector = field.unpack(row, values["generation_size"])
    text = ", ".join(map(str, vector))
    if not any(vector):
        return refused(text, "all coefficients are zero")
    if max(vector) >= field.order:
        return refused(text, f"{max(vector)} is not a symbol of {field!r}")
    if bytes(field.pack(vector)) != row:
        return refused(text, "the bits after the last coefficient are not zero")
    return text


def _information_B(values: Values) -> int:
    return wire.information_B(values["length_B"], values["generation_size"], wire.FIELD_ORDERS[values["field"]])


def _symbols_text(row: bytes, values: Values) -> str:
    field = _finite_field(values)
    text = f"{len(row) * 8 // field.symbol_bits} symbols of {field!r}"
    try:
        field.check_row(row)
    except DecodeError as error:
        return refused(text, str(error))
    return text


_CODED = (
    *EVENT_ID,
    Number("hops", "H"),
    Number("generation_size", "B", "{} chunks"),
    Number("field", "B", _finite_field_text),
    Number("length_B", "H", "{} bytes", "event length"),
    Check(_fault),
    Octets("encoding_vector", _vector_B, _coefficients_text, note="a packed row of as many symbols as chunks"),
    Octets("information_vector", _information_B, _symbols_text, note="a packed row; the header determines its size"),
)
MESSAGES = {
    wire.EVENT: Message("event", (*EVENT_ID, *READINGS), has_checksum=True),
    wire.CODED: Message("coded packet", _CODED, has_checksum=True),
    wire.REQUEST: Message("request", (*EVENT_ID, Number("rank", "B", _rank_text)), has_checksum=True),
}

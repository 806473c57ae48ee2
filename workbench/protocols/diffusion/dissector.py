"""The fields of TinyDiffusion's frames: interests, reinforcements and data."""

from workbench.protocols.diffusion import wire
from workbench.protocols.dissection import NODE
from workbench.protocols.field_tables import (
    CONSTRAINTS,
    TTL_MEANING,
    Attributes,
    Check,
    Flag,
    Message,
    Number,
    Repeat,
    Values,
    When,
)


def _interest_text(type_byte: int, values: Values) -> str:
    kind = "interest" if values["broadcast"] else "reinforcement, an interest to one neighbor only"
    return f"{type_byte}: {kind}"


def _expiration_text(seconds: int, values: Values) -> str:
    return f"{seconds} s" if seconds else "0 s: the interest is canceled"


def _list_fault(values: Values) -> str:
    if values["listed_count"]:
        return ""
    return "the list of sinks is empty; without listed sinks the flag LISTED must not be set"


_INTEREST = (
    Number("sequence", "I"),
    Number("sink", "H", NODE),
    Number("round", "B"),
    Number("previous_hop", "H", NODE),
    Number("ttl", "B", TTL_MEANING),
    Number("expiration_s", "H", _expiration_text, "expiration"),
    *CONSTRAINTS,
)
_FLAGS = (
    Flag("is_aggregate", wire.AGGREGATE, ", of an aggregate"),
    Flag("is_listed", wire.LISTED, ", after a list of sinks"),
)
_LIST = (
    Number("listed_count", "B", "{} that other copies serve", "sinks in the list"),
    Repeat("listed_sinks", "listed_count", Number("sink", "H", NODE), is_numbered=False),
    Check(_list_fault),
)
_DATA = (
    Number("sequence", "I"),
    Number("source", "H", NODE),
    Number("previous_hop", "H", NODE),
    Number("ttl", "B", TTL_MEANING),
    Number("attribute_count", "B", label="number of attributes", flags=_FLAGS),
    When("is_listed", _LIST),
    Attributes(are_readings=True),
)
MESSAGES = {
    wire.INTEREST: Message("interest", _INTEREST, type_text=_interest_text),
    wire.DATA: Message("data", _DATA, type_text="{}: data"),
}

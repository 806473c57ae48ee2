"""The dissector of TinyDiffusion's frames: interests, reinforcements and data."""

from workbench.errors import DecodeError
from workbench.protocols.diffusion import wire
from workbench.protocols.dissection import NODE, Cutter, Field, cut

_MESSAGES = {wire.INTEREST: "interest", wire.DATA: "data"}


def dissect(frame: bytes, broadcast: bool = True, allows_constraints: bool = False) -> tuple[Field, ...]:
    """Return the decoded fields of a frame.

    ``broadcast``: whether the frame was broadcast; an interest message in a unicast frame is a reinforcement.
    ``allows_constraints``: whether data may have constraints.
    """
    return cut(frame, _read, broadcast, allows_constraints)


def _read(cutter: Cutter, broadcast: bool, allows_constraints: bool) -> None:
    is_data = cutter.type_of(_MESSAGES) == wire.DATA
    if is_data:
        *_, count = cutter.numbers(
            wire.DATA_LAYOUT,
            ("type", "{}: data"),
            ("sequence", "{}"),
            ("source", NODE),
            ("previous hop", NODE),
            ("ttl", "{} hops to live"),
            ("number of attributes", _format_count),
        )
        if count & wire.LISTED:
            sinks = cutter.number("sinks in the list", "B", "{} that other copies serve")
            for _ in range(sinks):
                cutter.number("sink", "<H", NODE)
            if sinks == 0:
                raise DecodeError("the list of sinks is empty; without listed sinks the flag LISTED must not be set")
        count &= wire.MOST_ATTRIBUTES
    else:
        *_, count = cutter.numbers(
            wire.INTEREST_LAYOUT,
            ("type", "{}: interest" if broadcast else "{}: reinforcement, an interest to one neighbor only"),
            ("sequence", "{}"),
            ("sink", NODE),
            ("round", "{}"),
            ("previous hop", NODE),
            ("ttl", "{} hops to live"),
            ("expiration", lambda seconds: f"{seconds} s" if seconds else "0 s: the interest is canceled"),
            ("number of attributes", "{}"),
        )
    cutter.attributes(count, are_readings=is_data, allows_constraints=allows_constraints)


def _format_count(count: int) -> str:
    attribute_count = count & wire.MOST_ATTRIBUTES
    flags = [(wire.AGGREGATE, ", of an aggregate"), (wire.LISTED, ", after a list of sinks")]
    return f"{attribute_count}" + "".join(text for flag, text in flags if count & flag)

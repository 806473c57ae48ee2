"""The dissector of flooding's frames; `workbench.protocols.dissection` describes how dissectors are used."""

from workbench.protocols.dissection import NODE, Cutter, Field, cut
from workbench.protocols.flooding import wire

MESSAGES = {wire.TYPE: "flood"}


def dissect(frame: bytes, broadcast: bool = True) -> tuple[Field, ...]:
    """Return the fields of a frame in order, each with its byte range and its value as text."""
    return cut(frame, read)


def read(cutter: Cutter) -> None:
    """Cut a flood's frame into its fields; the dissectors of flooding and gossip call this function."""
    cutter.type_of(MESSAGES)
    *_, count = cutter.numbers(
        wire.HEADER,
        ("type", "flood"),
        ("origin", NODE),
        ("sequence", "{}"),
        ("ttl", "{} hops to live"),
        ("number of attributes", "{}"),
    )
    cutter.attributes(count, are_readings=True)

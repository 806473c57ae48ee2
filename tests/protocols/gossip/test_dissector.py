"""Dissected frames of gossip: floods like those of flooding, and pieces with their position in the event."""

import pytest

from workbench.attributes.text import parse
from workbench.protocols.dissection import NOT_READ
from workbench.protocols.field_tables import dissect_frame
from workbench.protocols.flooding import wire as flooding
from workbench.protocols.flooding.dissector import MESSAGES as FLOODS
from workbench.protocols.gossip import wire
from workbench.protocols.gossip.dissector import MESSAGES

PIECE = wire.encode(wire.Piece(7, 300, 9, 3, 1, 8, b"abc"))


def test_fields_of_a_piece_show_its_bytes_of_the_event():
    fields = dissect_frame(MESSAGES, PIECE)
    assert [(field.name, field.text) for field in fields[:-1]] == [
        ("type", "piece"),
        ("origin", "node 7"),
        ("sequence", "300"),
        ("ttl", "9 hops to live"),
        ("pieces", "the event is cut into 3"),
        ("number", "piece 1, counted from 0"),
        ("event length", "8 bytes"),
        ("piece", "bytes 3 to 5 of the event"),
    ]
    assert fields[-1].name == "checksum (CRC-32)" and fields[-1].text.endswith(", right")


def test_flood_is_dissected_as_by_flooding():
    frame = flooding.encode(flooding.Flood(7, 300, 9, parse("TEMP IS 26.5")))
    assert dissect_frame(MESSAGES, frame) == dissect_frame(FLOODS, frame)


def test_wrong_byte_makes_the_checksum_wrong_and_nothing_else():
    wrong = PIECE[:16] + b"x" + PIECE[17:]
    before, after = dissect_frame(MESSAGES, PIECE), dissect_frame(MESSAGES, wrong)
    assert before[:-1] == after[:-1]
    assert after[-1].text.startswith(before[-1].text.split(",")[0] + " (refused: the checksum of these bytes is 0x")


@pytest.mark.parametrize(("more", "name"), [(b"", "piece"), (b"12", NOT_READ)])
def test_bytes_between_piece_and_checksum_are_not_decoded(more, name):
    fields = dissect_frame(MESSAGES, wire.with_checksum(PIECE[:-4] + more))
    assert fields[-2].name == name and fields[-1].text.endswith(", right")

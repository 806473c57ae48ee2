"""Dissected frames of coded diffusion: events, requests, and coded packets with their coefficients."""

import pytest

from tests.protocols.coded_diffusion.test_wire import GOLDEN
from workbench.attributes.text import to_text
from workbench.coding.fields import field as field_of
from workbench.protocols.coded_diffusion import wire
from workbench.protocols.coded_diffusion.dissector import MESSAGES
from workbench.protocols.field_tables import dissect_frame


@pytest.mark.parametrize(("text", "message"), GOLDEN)
def test_fields_show_the_content_of_the_message(text, message):
    texts = {field.name: field.text for field in dissect_frame(MESSAGES, bytes.fromhex(text))}
    assert texts["origin"] == f"node {message.origin}" and texts["sequence"] == f"{message.sequence}"
    assert texts["checksum (CRC-32)"].endswith(", right")
    if isinstance(message, wire.Event):
        assert texts["type"] == "event" and texts.get("attributes", "") == to_text(message.attributes)
        return
    if isinstance(message, wire.Request):
        assert texts["type"] == "request" and texts["rank"] == f"{message.rank}"
        return
    assert texts["type"] == "coded packet" and texts["hops"] == f"{message.hops}"
    assert texts["field"].endswith(repr(field_of(message.field)))
    assert texts["encoding vector"] == ", ".join(map(str, message.encoding_vector))
    assert texts["generation size"] == f"{len(message.encoding_vector)} chunks"
    assert texts["event length"] == f"{message.length_B} bytes"


def test_information_vector_has_its_own_bytes():
    coded = wire.Coded(1, 2, 3, 2, 16, 7, (3, 9), b"abcdef")
    frame = wire.encode_coded(coded)
    (field,) = [field for field in dissect_frame(MESSAGES, frame) if field.name == "information vector"]
    assert frame[field.start : field.end] == coded.information_vector
    assert field.text == "12 symbols of GF(2^4)"

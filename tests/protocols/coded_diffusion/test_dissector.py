"""Coded diffusion's frames taken apart: events, and coded packets with their coefficients."""

import pytest

from tests.protocols.coded_diffusion.test_wire import GOLDEN
from workbench.attributes.text import to_text
from workbench.coding.fields import field as field_of
from workbench.protocols.coded_diffusion import wire
from workbench.protocols.coded_diffusion.dissector import dissect


@pytest.mark.parametrize(("text", "message"), GOLDEN)
def test_fields_say_what_is_in_the_message(text, message):
    said = {field.name: field.text for field in dissect(bytes.fromhex(text))}
    assert said["origin"] == f"node {message.origin}" and said["sequence"] == f"{message.sequence}"
    assert said["checksum (CRC-32)"].endswith(", right")
    if isinstance(message, wire.Event):
        assert said["type"] == "event" and said.get("attributes", "") == to_text(message.attributes)
        return
    if isinstance(message, wire.Request):
        assert said["type"] == "request" and said["rank"] == f"{message.rank}"
        return
    assert said["type"] == "coded packet" and said["hops"] == f"{message.hops}"
    assert said["field"].endswith(repr(field_of(message.field)))
    assert said["encoding vector"] == ", ".join(map(str, message.encoding_vector))
    assert said["generation size"] == f"{len(message.encoding_vector)} chunks"
    assert said["event length"] == f"{message.length_B} bytes"


def test_information_vector_has_its_own_bytes():
    coded = wire.Coded(1, 2, 3, 2, 16, 7, (3, 9), b"abcdef")
    frame = wire.encode_coded(coded)
    (field,) = [field for field in dissect(frame) if field.name == "information vector"]
    assert frame[field.start : field.end] == coded.information_vector
    assert field.text == "12 symbols of GF(2^4)"

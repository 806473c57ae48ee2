"""Flooding's frames taken apart say what the decoder reads."""

import pytest

from tests.protocols.flooding.test_wire import GOLDEN
from workbench.attributes.text import to_text
from workbench.protocols.flooding import dissector


@pytest.mark.parametrize(("text", "flood"), GOLDEN)
def test_fields_say_what_is_in_the_flood(text, flood):
    said = {field.name: field.text for field in dissector.dissect(bytes.fromhex(text))}
    assert said["type"] == "flood"
    assert said["origin"] == f"node {flood.origin}"
    assert said["sequence"] == f"{flood.sequence}"
    assert said["ttl"] == f"{flood.ttl} hops to live"
    assert said["number of attributes"] == f"{len(flood.attributes)}"
    assert said.get("attributes", "") == to_text(flood.attributes)

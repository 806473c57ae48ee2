"""Dissected frames of flooding have the fields that the decoder reads."""

import pytest

from tests.protocols.flooding.test_wire import GOLDEN
from workbench.attributes.text import to_text
from workbench.protocols.field_tables import dissect_frame
from workbench.protocols.flooding.dissector import MESSAGES


@pytest.mark.parametrize(("text", "flood"), GOLDEN)
def test_fields_show_the_content_of_the_flood(text, flood):
    texts = {field.name: field.text for field in dissect_frame(MESSAGES, bytes.fromhex(text))}
    assert texts["type"] == "flood"
    assert texts["origin"] == f"node {flood.origin}"
    assert texts["sequence"] == f"{flood.sequence}"
    assert texts["ttl"] == f"{flood.ttl} hops to live"
    assert texts["number of attributes"] == f"{len(flood.attributes)}"
    assert texts.get("attributes", "") == to_text(flood.attributes)

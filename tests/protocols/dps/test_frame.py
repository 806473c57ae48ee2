"""Dissected frames of DPS: the parts of an inspected message, with the entries of maps as child fields."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from figures.messages import conversation
from workbench.protocols.dissection import NOT_READ, REFUSED
from workbench.protocols.dps.views.frame import dissect
from workbench.protocols.dps.views.message import inspect_message
from workbench.protocols.dps.wire import coap

MESSAGES = conversation(filter_bits=256)
PUBLICATION = MESSAGES["3: publication of the publisher"]


def leaves(frame):
    return [leaf for field in dissect(frame) for leaf in field.leaves()]


def stretches(things):
    return [(thing.start, thing.end) for thing in things]


@pytest.mark.parametrize("name", MESSAGES)
def test_leaves_are_the_parts_of_the_inspected_message(name):
    parts = inspect_message(MESSAGES[name]).parts
    assert stretches(leaves(MESSAGES[name])) == stretches(parts)


def test_entries_of_a_map_are_its_child_fields():
    fields = {field.name: field for field in dissect(PUBLICATION)}
    assert list(fields) == ["array", "version", "type", "unprotected map", "protected map", "last map"]
    assert fields["type"].text == "1, publication"
    assert [child.name for child in fields["last map"].children] == ["number of entries", "topics", "data"]
    assert fields["last map"].children[2].text.endswith('"21.5"')
    assert fields["unprotected map"].text == "port, ttl, hops"


def test_multicast_has_its_envelope():
    envelope, *message = dissect(coap.wrap(PUBLICATION, 7))
    assert envelope.name == "CoAP envelope" and [field.name for field in message][:2] == ["array", "version"]


@settings(max_examples=150)
@given(st.data())
def test_reasons_for_refusal_are_shown(data):
    frame = bytearray(data.draw(st.sampled_from(list(MESSAGES.values()))))
    for _ in range(data.draw(st.integers(0, 2))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    frame = bytes(frame[: data.draw(st.integers(0, len(frame)))]) + data.draw(st.binary(max_size=3))
    fields = dissect(frame)
    if inspect_message(frame).error:
        assert fields[-1].name in (NOT_READ, REFUSED)
    assert stretches(leaf for leaf in leaves(frame) if leaf.name != REFUSED) == stretches(inspect_message(frame).parts)

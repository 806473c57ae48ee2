"""Dissected frames of TinyMQ: positions, keys, regions."""

import pytest

from tests.protocols.tinymq.test_wire import GOLDEN
from workbench.attributes.text import parse
from workbench.protocols.contract import NOBODY
from workbench.protocols.dissection import NOT_READ
from workbench.protocols.field_tables import dissect_frame
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.dissector import MESSAGES


def texts_of(frame):
    return {field.name: field.text for field in dissect_frame(MESSAGES, frame)}


@pytest.mark.parametrize(("text", "number", "message", "label"), GOLDEN)
def test_fields_show_type_number_and_origin(text, number, message, label):
    fields = texts_of(bytes.fromhex(text))
    name, origin, sequence = label
    assert fields["type"] == name
    assert fields.get("number", "None").split()[0] == f"{number}"
    if origin != NOBODY:
        of = "publisher", "sequence"
        origin_field, sequence_field = ("sink", "query") if isinstance(message, wire.Query) else of
        assert (fields[origin_field], fields[sequence_field]) == (f"node {origin}", f"{sequence}")


def test_info_has_each_position_and_distance():
    positions = (wire.InfoPosition(1, 7, 9, "001"), wire.InfoPosition(2, 5, NOBODY, ""))
    fields = texts_of(wire.encode_info(wire.Info(positions, (wire.InfoDistance(3, 8, 12),), (17,))))
    assert fields["position 1"] == "in tree 1, parent: node 9, key: 001"
    assert fields["position 2"] == "in tree 2, parent: none, a root, key: no bits, a root's"
    assert fields["distance 1"] == "12 hops to the root of tree 3"
    assert fields["neighbor 1"] == "node 17"


def test_fields_of_a_query_show_lease_key_and_region():
    query = wire.Query(1, 4, 5, 0, 30, 3, 2, "01", 8, ((0, 15), (32, 255)), parse("TEMP GE 25"))
    fields = texts_of(wire.encode(2, query))
    assert (fields["lease"], fields["sink's key"]) == ("30 s", "01")
    assert (fields["region"], fields["attributes"]) == ("0 to 15, 32 to 255", "TEMP GE 25")
    assert texts_of(wire.encode(2, wire.with_lease(query, 0)))["lease"] == "0 s: the query ends"
    assert texts_of(wire.encode(2, wire.with_lease(query, wire.LEASE_FOREVER_S)))["lease"] == "never ends"


def test_type_shows_the_role_of_the_receiver_for_the_sender():
    event = wire.Event(1, 4, 5, 3, 8, ((0, 15),), parse("TEMP IS 26"))
    assert [texts_of(wire.encode(2, event, direction))["type"] for direction in (wire.OPEN, wire.UP, wire.DOWN)] == [
        "event",
        "event, to a parent",
        "event, to a node of the target's branch",
    ]
    assert list(texts_of(wire.encode(3, wire.Probe()))) == ["type", "number"]


def test_notification_shows_its_direction():
    notification = wire.Notification(1, 4, 5, False, 9, 6, 3, 2, "01", parse("TEMP IS 26"))
    assert texts_of(wire.encode(2, notification))["by key"] == "0: on the reverse path of the query"
    assert texts_of(wire.encode(2, wire.by_key(notification)))["by key"] == "1: to the sink's key"


def test_text_of_a_long_key_is_shortened_but_not_its_bytes():
    frame = wire.encode(1, wire.Grant(0, 1, "01" * 30_000))
    (key,) = [field for field in dissect_frame(MESSAGES, frame) if field.name == "key"]
    assert key.text == "01" * 32 + "… (60000 bits)" and key.end - key.start == 2 + 7500


def test_intervals_out_of_order_are_reported():
    frame = wire.encode(1, wire.Event(0, 1, 2, 3, 8, ((5, 9), (20, 30)), parse("TEMP IS 26")))
    wrong = frame.replace(bytes((5, 9, 20, 30)), bytes((20, 30, 5, 9)))
    assert (
        texts_of(wrong)["region"]
        == "20 to 30, 5 to 9 (refused: the intervals are not disjoint and ascending within 8 bits)"
    )


def test_empty_region_ends_the_dissection():
    frame = wire.encode(1, wire.Event(0, 1, 2, 3, 8, ((5, 9),), parse("TEMP IS 26")))
    last = dissect_frame(MESSAGES, frame.replace(bytes((8, 1, 5, 9)), bytes((0, 1, 5, 9))))[-1]
    assert last.name == NOT_READ and "1 intervals of 0-bit strings" in last.text

"""Messages of the host link: golden bytes in both directions, rows of every event, and refusals of invalid bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.attributes.model import EQ_ANY, GE, IS, PAYLOAD, Attribute
from workbench.attributes.text import parse
from workbench.errors import DecodeError, EncodeError
from workbench.motes import messages as link
from workbench.motes.events import decode_row, event_types
from workbench.protocols import contract
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion.node import DiffusionNode
from workbench.protocols.tinymq.node import TinyMQNode

TEMPERATURE = parse("TEMP IS 26.5")
SECRET = bytes(range(link.SECRET_B))
GOLDEN = [
    ("01 5742 01 07000000 0001020304050607", link.HELLO, (b"WB", 1, 7), SECRET),
    ("02 0001020304050607 0201", link.GOODBYE, (SECRET, 0x0102), b""),
    ("03 0001020304050607 0100 7b7d", link.CONFIGURE, (SECRET, 1), b"{}"),
    ("04 0001020304050607 0100 000000000000f0bf 01 00", link.SUBSCRIBE, (SECRET, 1, -1.0, 1), b"\x00"),
    ("05 0001020304050607 0100 04030201", link.UNSUBSCRIBE, (SECRET, 1, 0x01020304), b""),
    ("06 0001020304050607 0100 01 33015a0a", link.PUBLISH, (SECRET, 1), link.encode_attribute_list(TEMPERATURE)),
    ("07 0001020304050607 0100 09000000 0000803f 0000003f", link.LINK_QUALITY, (SECRET, 1, 9, 1.0, 0.5), b""),
    ("08 0001020304050607 0100 0807060504030201 01", link.SET_TIME, (SECRET, 1, 0x0102030405060708, link.HELD), b""),
    ("09 0001020304050607 0100", link.WAKE, (SECRET, 1), b""),
    ("0a 0001020304050607 0000 05000000 01 4600", link.HEARD, (SECRET, 0, 5, 1), b"F\x00"),
    ("0b 0001020304050607 ffff", link.PING, (SECRET, 65535), b""),
    ("0c 0001020304050607 0100", link.RESET, (SECRET, 1), b""),
    ("0d 0001020304050607 0000 05000000 01 4600", link.OUTCOME, (SECRET, 0, 5, 1), b"F\x00"),
    ("0d 0001020304050607 0000 ffffffff 00 46", link.OUTCOME, (SECRET, 0, NOBODY, 0), b"F"),
    ("21 5742 01 07000000 02000000 00 76", link.READY, (b"WB", 1, 7, 2, 0), b"v"),
    ("22 5742 01 07000000 02", link.REFUSED, (b"WB", 1, 7, link.BUSY), b""),
    (
        "23 0100 01 feffffffffffffff ffffffffffffffff 0300000000000000 6869",
        link.ANSWER,
        (1, 1, -2, -1, 3),
        b"hi",
    ),
    ("25 ffffffff 46", link.SEND, (NOBODY,), b"F"),
]
# time 5, Delivered by 2: data 7 of node 3 for subscription 1
DELIVERED = "24 0500000000000000 03 02000000 03000000 0700000000000000 0100000000000000 0000 04 64617461 01 01 33015a0a"
NOISE = "24 0500000000000000 86 ffffffff 04000000 0000000000000000 0300000000000000 0000 00 00"

i32, i64 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
time_us = st.integers(0, (1 << 64) - 1)
plain = st.builds(Attribute, st.just(51), st.integers(IS, EQ_ANY), st.integers(-32768, 32767))
blob = st.builds(Attribute, st.just(PAYLOAD), st.sampled_from([IS, EQ_ANY]), st.binary(max_size=40))
attributes = st.lists(st.one_of(plain, blob), max_size=5).map(tuple)
text = st.text(max_size=30)


def from_hex(digits):
    return bytes.fromhex(digits.replace(" ", ""))


@pytest.mark.parametrize(("digits", "kind", "fields", "rest"), GOLDEN)
def test_message_is_encoded_into_its_bytes_and_decoded_from_them(digits, kind, fields, rest):
    assert link.encode(kind, *fields, rest=rest) == from_hex(digits)
    assert link.decode(from_hex(digits)) == (kind, fields, rest)


def test_every_kind_of_message_has_its_golden_bytes():
    kinds = {kind for _, kind, _, _ in GOLDEN} | {link.EVENT}
    assert kinds == set(link._LAYOUT)


def test_event_is_encoded_into_its_bytes_and_decoded_from_them():
    event = contract.Delivered(2, "data", 3, 7, 1, TEMPERATURE)
    assert link.encode_event(5, event) == from_hex(DELIVERED)
    kind, fields, rest = link.decode(from_hex(DELIVERED))
    assert kind == link.EVENT
    assert decode_row(fields, rest) == (5, 3, 2, "data", 3, 7, 0, 1, TEMPERATURE)


def test_an_event_of_the_mote_itself_is_encoded_into_its_bytes_and_decoded_from_them():
    body = link.encode_own_event(5, "noise", NOBODY, "", 4, 0, 0, 3, "")
    assert body == from_hex(NOISE)
    row = decode_row(*link.decode(body)[1:])
    assert row == (5, link.FIRST_OWN_EVENT + link.OWN_EVENTS.index("noise"), NOBODY, "", 4, 0, 0, 3, "")


def test_every_event_of_the_contract_has_a_number_on_the_link():
    fields = contract.Held._fields
    types = [value for value in contract.__dict__.values() if isinstance(value, type)]
    assert {event for event in types if getattr(event, "_fields", ()) == fields} == set(link.EVENTS)


OWN = (*DiffusionNode.EVENTS, *TinyMQNode.EVENTS)


@given(time_us, st.sampled_from(link.EVENTS + OWN), i32, text, i32, i64, i64, st.one_of(text, attributes))
def test_any_event_survives_a_round_trip(now, event, peer, message, origin, sequence, value, detail):
    body = link.encode_event(now, event(peer, message, origin, sequence, value, detail), OWN)
    time_us, kind, *rest = decode_row(*link.decode(body)[1:])
    assert event_types(OWN)[kind] is event
    assert (time_us, *rest) == (now, peer, message, origin, sequence, 0, value, detail)


@given(attributes)
def test_any_list_of_attributes_survives_a_round_trip(wanted):
    assert link.decode_attribute_list(link.encode_attribute_list(wanted)) == wanted


@pytest.mark.parametrize("wanted", [parse("TEMP IS 1") * 256, (Attribute(51, IS, 40000),), (Attribute(7, GE, 0),)])
def test_attributes_that_cannot_be_encoded_raise_an_encode_error(wanted):
    with pytest.raises(EncodeError):
        link.encode_attribute_list(wanted)


@pytest.mark.parametrize("digits", [digits for digits, *_ in GOLDEN])
def test_a_truncated_message_raises_a_decode_error_or_has_a_shorter_rest(digits):
    body = from_hex(digits)
    kind, fields, rest = link.decode(body)
    for size in range(len(body)):
        if size >= len(body) - len(rest):
            assert link.decode(body[:size]) == (kind, fields, rest[: size - len(body)])
        else:
            with pytest.raises(DecodeError):
                link.decode(body[:size])


@pytest.mark.parametrize("digits", [DELIVERED, NOISE])
def test_a_truncated_event_raises_a_decode_error(digits):
    body = from_hex(digits)
    for size in range(len(body)):
        with pytest.raises(DecodeError):
            decode_row(*link.decode(body[:size])[1:])


@pytest.mark.parametrize(
    ("digits", "sentence"),
    [
        ("", "type is missing; the host link"),
        ("00", "type is 0; the host link"),
        ("ff 0000", "type is 255; the host link"),
        ("01 5742", "a message of type 1 has 3 bytes; it needs 8"),
    ],
)
def test_an_invalid_message_is_refused_in_one_sentence(digits, sentence):
    with pytest.raises(DecodeError, match=sentence):
        link.decode(from_hex(digits))


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        ("", "an event is cut short"),
        ("00", "an event is cut short"),
        ("05 6461 00", "an event is cut short"),
        ("01 ff 00", "a text of an event is not UTF-8"),
        ("00 00 ff", "a text of an event is not UTF-8"),
        ("00 01", "the list of attributes is empty"),
        ("00 01 02 33015a0a", "attribute 2 of 2 is cut off"),
    ],
)
def test_an_invalid_event_is_refused_in_one_sentence(rest, sentence):
    with pytest.raises(DecodeError, match=sentence):
        decode_row((0, 0, 0, 0, 0, 0, 0), from_hex(rest))


def test_an_event_of_an_unknown_kind_is_refused_in_one_sentence():
    with pytest.raises(DecodeError, match="event kind is 200"):
        decode_row((0, 200, 0, 0, 0, 0, 0), b"\x00\x00")


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(lambda more: bytes((link.EVENT,)) + more)))
def test_any_bytes_are_decoded_or_raise_a_decode_error(body):
    try:
        kind, fields, rest = link.decode(body)
        if kind == link.EVENT:
            decode_row(fields, rest)
        if kind in (link.SUBSCRIBE, link.PUBLISH):
            link.decode_attribute_list(rest)
    except DecodeError:
        pass

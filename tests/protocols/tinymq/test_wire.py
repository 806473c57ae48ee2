"""TinyMQ's frames: golden bytes in both directions, limits, and invalid bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.attributes.text import parse
from workbench.errors import DecodeError, EncodeError
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.wire import (
    NOBODY,
    U16,
    U32,
    Ack,
    Event,
    Grant,
    Info,
    InfoDistance,
    InfoPosition,
    Join,
    Notification,
    Probe,
    Query,
    Refusal,
)

# (bytes, number or None, message, its label in the trace)
GOLDEN = [
    ("49 00 00", None, Info((), (), ()), ("info", NOBODY, 0)),
    ("49 00 00 02 04030201 ffffffff", None, Info((), (), (0x01020304, U32)), ("info", NOBODY, 0)),
    (
        "49 01  00 01000000 ffffffff 0000  01  00 01000000 0000",
        None,
        Info((InfoPosition(0, 1, NOBODY, ""),), (InfoDistance(0, 1, 0),), ()),
        ("info", NOBODY, 0),
    ),
    (
        "49 02  01 04030201 09000000 0300 20  02 05000000 07000000 0900 0880  01  ff ffffffff feff",
        None,
        Info(
            (InfoPosition(1, 0x01020304, 9, "001"), InfoPosition(2, 5, 7, "000010001")),
            (InfoDistance(255, U32, 0xFFFE),),
            (),
        ),
        ("info", NOBODY, 0),
    ),
    ("41 0201", None, Ack(0x0102), ("ack", NOBODY, 0)),
    ("4a 0100 03", 1, Join(3), ("join", NOBODY, 0)),
    ("50 0100", 1, Probe(), ("probe", NOBODY, 0)),
    ("52 0201", None, Refusal(0x0102), ("refusal", NOBODY, 0)),
    ("47 ffff 03 02000000 0800 01", U16, Grant(3, 2, "00000001"), ("grant", NOBODY, 0)),
    (
        "51 0200 01 04030201 05000000 fe ffff 0300 02 0200 40 08 02 00 0f 20 ff  02  33 05 c409 33 07 b80b",
        2,
        Query(
            1,
            0x01020304,
            5,
            254,
            0xFFFF,
            3,
            2,
            "01",
            8,
            ((0, 15), (32, 255)),
            parse("TEMP GE 25, TEMP LE 30"),
        ),
        ("query", 0x01020304, 5),
    ),
    (
        "45 0300 00 07000000 08000000 0400 09 01 01ff 01ff  01  33 01 5a0a",
        3,
        Event(0, 7, 8, 4, 9, ((511, 511),), parse("TEMP IS 26.5")),
        ("event", 7, 8),
    ),
    (
        "4e 0400 01 09000000 02000000 01 07000000 08000000 0500 01 0000  01  45 01 02 6869",
        4,
        Notification(1, 9, 2, True, 7, 8, 5, 1, "", parse('PAYLOAD IS "hi"')),
        ("notification", 7, 8),
    ),
]
FRAMES = [bytes.fromhex(text) for text, *_ in GOLDEN]
NAMES_NOBODY = bytes.fromhex("49 00 00")  # the rest of an info whose named neighbors are truncated


def encode(number, message, direction=wire.OPEN):
    if isinstance(message, Info):
        return wire.encode_info(message)
    if isinstance(message, Refusal):
        return wire.encode_refusal(message.number)
    return wire.encode_ack(message.number) if isinstance(message, Ack) else wire.encode(number, message, direction)


@pytest.mark.parametrize(("text", "number", "message", "label"), GOLDEN)
def test_frames_encode_their_messages_and_decode_to_them(text, number, message, label):
    frame = bytes.fromhex(text)
    assert encode(number, message) == frame
    assert wire.decode(frame) == (number, message)
    assert wire.describe(frame) == label


@pytest.mark.parametrize(("direction", "bit"), [(wire.OPEN, 0), (wire.UP, 0x80), (wire.DOWN, 0x20)])
@pytest.mark.parametrize(
    "frame", [frame for frame in FRAMES if frame[0] in (wire.QUERY, wire.EVENT, wire.NOTIFICATION)]
)
def test_direction_of_a_message_is_a_bit_of_its_type(frame, direction, bit):
    number, message = wire.decode(frame)
    directed = bytes((frame[0] | bit,)) + frame[1:]
    assert wire.encode(number, message, direction) == directed
    assert wire.decode(directed) == (number, message)
    assert wire.direction_of(directed) == direction
    assert wire.describe(directed) == wire.describe(frame)


@pytest.mark.parametrize(
    "first", [wire.JOIN | 0x80, wire.GRANT | 0x20, wire.QUERY | 0xA0, wire.INFO | 0x80, wire.ACK | 0x20]
)
def test_no_other_type_has_a_direction_bit_and_none_has_both(first):
    frames = [frame for frame in FRAMES if frame[0] == first & ~0xA0]
    assert frames
    for frame in frames:
        with pytest.raises(DecodeError):
            wire.decode(bytes((first,)) + frame[1:])


@pytest.mark.parametrize("frame", [frame for frame in FRAMES if wire.number_of(frame) is not None])
def test_frame_without_an_acknowledgement_request_has_another_type_and_the_same_message(frame):
    silent = wire.without_ack(frame)
    assert silent == bytes((frame[0] & 0xBF,)) + frame[1:] != frame
    assert wire.wants_ack(frame) and not wire.wants_ack(silent)
    assert wire.decode(silent) == wire.decode(frame) and wire.direction_of(silent) == wire.direction_of(frame)
    assert wire.number_of(silent) == wire.number_of(frame) == wire.decode(frame)[0]
    assert wire.describe(silent) == wire.describe(frame)


@pytest.mark.parametrize("frame", [b"", b"\x4a", b"\x4a\x01", b"\x41\x01\x02", b"\x52\x01\x02", b"\x49\x00\x00"])
def test_unnumbered_frames_have_no_number(frame):
    assert wire.number_of(frame) is None


def test_info_without_named_neighbors_has_no_count_of_them():
    with pytest.raises(DecodeError):
        wire.decode(bytes.fromhex("49 00 00 00"))


@pytest.mark.parametrize("frame", FRAMES)
def test_every_truncation_and_every_longer_frame_is_a_decode_error(frame):
    for wrong in [frame[:length] for length in range(len(frame))] + [frame + b"\x00", frame + bytes(300)]:
        if wrong == NAMES_NOBODY:
            continue
        with pytest.raises(DecodeError):
            wire.decode(wrong)


@pytest.mark.parametrize("frame", FRAMES)
def test_every_flipped_bit_gives_another_message_or_a_decode_error(frame):
    for bit in range(8 * len(frame)):
        flipped = bytearray(frame)
        flipped[bit // 8] ^= 1 << bit % 8
        assert_decodes_to_itself_or_not_at_all(bytes(flipped))


@given(st.sampled_from([b""] + [frame[:1] for frame in FRAMES]), st.binary(max_size=60))
def test_random_bytes_are_a_message_or_a_decode_error(kind, rest):
    assert_decodes_to_itself_or_not_at_all(kind + rest)


def assert_decodes_to_itself_or_not_at_all(frame):
    try:
        number, message = wire.decode(frame)
    except DecodeError as error:
        assert str(error)
    else:
        direction = wire.direction_of(frame) if number is not None else wire.OPEN
        again = encode(number, message, direction)
        assert (again if number is None or wire.wants_ack(frame) else wire.without_ack(again)) == frame


@given(
    st.lists(st.sampled_from("01"), max_size=70),
    st.integers(1, 127),
    st.lists(st.integers(0, 2**127 - 1), min_size=1, max_size=20),
)
def test_keys_and_regions_of_any_width_are_decoded_as_encoded(key, key_bits, ends):
    ends = sorted({end % 2**key_bits for end in ends})
    ends = ends if len(ends) % 2 == 0 else ends + ends[-1:]
    region = tuple([(ends[position], ends[position + 1]) for position in range(0, len(ends), 2)])
    query = Query(0, 1, 2, 3, 4, 5, 6, "".join(key), key_bits, region, parse("TEMP GE 1"))
    assert wire.decode(wire.encode(9, query)) == (9, query)


QUERY = (0, 0, 0, 0, 0, 0, 0, "", 8, ((0, 0),), ())


@pytest.mark.parametrize(
    "message",
    [
        Join(256),
        Join(-1),
        Grant(0, U32 + 1, ""),
        Grant(0, 0, "1" * (U16 + 1)),
        Info(((256, 0, 0, ""),), (), ()),
        Info((), ((0, 0, U16 + 1),), ()),
        Info((), ((0, 0, 0),) * 256, ()),
        Info((), (), (U32 + 1,)),
        Info((), (), (0,) * 256),
        Event(0, 0, 0, 0, 0, ((0, 0),), ()),
        Event(0, 0, 0, 0, 128, ((0, 0),), ()),
        Event(0, 0, 0, 0, 8, (), ()),
        Event(0, 0, 0, 0, 8, ((0, 256),), ()),
        Event(0, 0, 0, 0, 8, ((2, 1),), ()),
        Event(0, 0, 0, 0, 8, ((0, 5), (5, 6)), ()),
        Event(0, 0, 0, 0, 8, ((0, 0),), parse("TEMP GE 1")),
        Event(0, 0, 0, 0, 8, ((0, 0),), parse("TEMP IS 1") * 256),
        Query(*QUERY[:4], U16 + 1, *QUERY[5:]),
        Notification(0, 0, 0, False, -1, 0, 0, 0, "", ()),
    ],
)
def test_message_that_does_not_fit_is_an_encode_error(message):
    with pytest.raises(EncodeError):
        encode(0, message)


def test_field_of_a_message_is_replaced():
    query, event = Query(*QUERY), Event(0, 1, 2, 3, 8, ((0, 0),), ())
    assert wire.with_lease(query, 7).lease_s == 7
    assert wire.with_tree(event, 4).tree == wire.with_tree(query, 4).tree == 4
    for message in (query, event):
        assert wire.with_hops(message, 9).hops == 9
        assert wire.with_region(message, ((1, 2),)).region == ((1, 2),)
    notification = Notification(0, 0, 0, False, 1, 2, 3, 0, "", ())
    assert wire.by_key(notification) == Notification(0, 0, 0, True, 1, 2, 3, 0, "", ())
    assert wire.with_hops(notification, 9).hops == 9

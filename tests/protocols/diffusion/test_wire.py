"""TinyDiffusion's frames: golden bytes in both directions, sizes, limits, and invalid bytes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.attributes.keys import register_key
from workbench.attributes.model import EQ_ANY, GE, IS, Attribute
from workbench.attributes.text import parse
from workbench.errors import DecodeError, EncodeError
from workbench.protocols.diffusion.wire import (
    DATA_HEADER_B,
    INTEREST_HEADER_B,
    PROFILES,
    Data,
    Interest,
    decode,
    describe,
    encode_data,
    encode_interest,
)

REGION = parse("TARGET EQ_ANY, LATITUDE GE 30, LATITUDE LE 31, LONGITUDE GE 104, LONGITUDE LE 104.5")

# Composed by hand from the layout: type, header, attributes (key, operator, value or length and bytes).
STRICT = [
    (
        "01 04030201 0605 07 0908 32 2c01 01  33 05 c409",
        Interest(0x01020304, 0x0506, 7, 0x0809, 50, 300, parse("TEMP GE 25")),
    ),
    ("01 00000000 0000 00 0000 00 0000 00", Interest(0, 0, 0, 0, 0, 0, ())),
    (
        "01 ffffffff feff ff ffff ff ffff 02  44 08 0000  33 01 0080",
        Interest(0xFFFFFFFF, 0xFFFE, 255, 0xFFFF, 255, 0xFFFF, parse("TARGET EQ_ANY, TEMP IS -327.68")),
    ),
    (
        "01 01000000 0200 00 0300 05 9600 04  32 02 0100  33 04 ff7f  33 06 0080  41 07 ffff",
        Interest(1, 2, 0, 3, 5, 150, parse("APP EQ Temperature, TEMP GT 327.67, TEMP LT -327.68, Z LE -0.1")),
    ),
    ("02 04030201 0605 0908 32 01  33 01 5a0a", Data(0x01020304, 0x0506, 0x0809, 50, False, (), parse("TEMP IS 26.5"))),
    (
        "02 01000000 0200 0300 05 04  42 01 e60b  43 01 aa28  33 01 800c  37 01 0a00",
        Data(1, 2, 3, 5, False, (), parse("LATITUDE IS 30.46, LONGITUDE IS 104.1, TEMP IS 32, Y IS 1")),
    ),
    (
        "02 00000000 0000 0000 01 02  33 01 0100  45 01 00",
        Data(0, 0, 0, 1, False, (), parse('TEMP IS 0.01, PAYLOAD IS ""')),
    ),
    (
        "02 01000000 0200 0300 05 82  33 01 0100  33 01 0200",
        Data(1, 2, 3, 5, True, (), parse("TEMP IS 0.01, TEMP IS 0.02")),
    ),
    (
        "02 01000000 0200 0300 05 41  02 0900 0201  33 01 0100",
        Data(1, 2, 3, 5, False, (9, 0x0102), parse("TEMP IS 0.01")),
    ),
    ("02 00000000 0000 0000 01 01  45 01 03 00ff61", Data(0, 0, 0, 1, False, (), parse("PAYLOAD IS 0x00ff61"))),
]
WIDE = [
    (
        "01 01000000 0200 00 0300 32 2c01 05  44 08 0000  42 05 b80b  42 07 1c0c  43 05 a028  43 07 d228",
        Interest(1, 2, 0, 3, 50, 300, REGION),
    ),
    (
        "01 01000000 0200 00 0300 32 2c01 02  45 03 12 " + "61" * 18 + "  33 05 c409",
        Interest(1, 2, 0, 3, 50, 300, parse('PAYLOAD NE "%s", TEMP GE 25' % ("a" * 18))),
    ),
    (
        "02 01000000 0200 0300 32 01  45 01 2f " + "00" * 47,
        Data(1, 2, 3, 50, False, (), (Attribute(69, IS, bytes(47)),)),
    ),
]
GOLDEN = [(bytes.fromhex(text), message) for text, message in STRICT + WIDE]


def encode(message, profile="wide"):
    return (encode_data if isinstance(message, Data) else encode_interest)(message, profile)


@pytest.mark.parametrize(("frame", "message"), GOLDEN)
def test_frames_encode_their_messages_and_decode_to_them(frame, message):
    assert encode(message).hex(" ") == frame.hex(" ")
    assert decode(frame) == message
    assert decode(bytearray(frame)) == message


@pytest.mark.parametrize(("text", "message"), STRICT)
def test_short_frame_is_the_same_in_the_strict_profile(text, message):
    assert encode(message, "strict") == bytes.fromhex(text)


@pytest.mark.parametrize(("text", "message"), WIDE)
def test_long_message_does_not_fit_the_strict_profile(text, message):
    with pytest.raises(
        EncodeError, match=r"does not fit; with profile='strict' it may have at most 29: use fewer .* or profile='wide'"
    ):
        encode(message, "strict")


# Sizes, without the type byte


@pytest.mark.parametrize(("count", "interest_B", "data_B"), [(0, 13, 10), (1, 17, 14), (4, 29, 26)])
def test_message_has_the_size_of_the_design_note(count, interest_B, data_B):
    readings = parse("TEMP IS 1, X IS 1, Y IS 1, Z IS 1")[:count]
    assert len(encode(Interest(1, 2, 3, 4, 5, 6, readings), "strict")) - 1 == interest_B
    assert len(encode(Data(1, 2, 3, 4, False, (), readings), "strict")) - 1 == data_B
    assert (INTEREST_HEADER_B, DATA_HEADER_B) == (13, 10)


@pytest.mark.parametrize(("profile", "interest_room", "data_room"), [("strict", 4, 4), ("wide", 11, 12)])
def test_profile_allows_as_many_attributes_as_fit_after_the_header(profile, interest_room, data_room):
    for message, room in (
        (Interest(1, 2, 3, 4, 5, 6, ()), interest_room),
        (Data(1, 2, 3, 4, False, (), ()), data_room),
    ):
        full = type(message)(*message[:-1], parse("TEMP IS 1") * room)
        assert len(encode(full, profile)) - 1 <= PROFILES[profile]
        assert decode(encode(full, profile)) == full
        with pytest.raises(EncodeError, match="does not fit"):
            encode(type(message)(*message[:-1], parse("TEMP IS 1") * (room + 1)), profile)


def test_blob_takes_three_bytes_more_than_its_content():
    for length in (0, 1, 16):
        assert (
            len(encode(Data(1, 2, 3, 4, False, (), (Attribute(69, IS, bytes(length)),)), "strict"))
            == 1 + 10 + 3 + length
        )


# Messages that cannot be encoded


@pytest.mark.parametrize(
    "message", [Interest(1, 2, 3, 4, 5, 6, REGION[:1]), Data(1, 2, 3, 4, False, (), parse("TEMP IS 1"))]
)
@pytest.mark.parametrize("wrong", [-1, 1 << 32])
def test_field_out_of_range_is_an_error_and_never_wraps(message, wrong):
    is_data = isinstance(message, Data)
    for i in range(len(message) - 1):
        with pytest.raises(EncodeError, match=f"sink {wrong}" if i == 5 and is_data else f"in field {i} "):
            encode(type(message)(*message[:i], (wrong,) if i == 5 and is_data else wrong, *message[i + 1 :]))


@pytest.mark.parametrize(("i", "bits"), [(0, 32), (1, 16), (2, 8), (3, 16), (4, 8), (5, 16)])
def test_interest_field_has_the_width_of_the_design_note(i, bits):
    message = Interest(1, 2, 3, 4, 5, 6, REGION)
    widest = Interest(*message[:i], (1 << bits) - 1, *message[i + 1 :])
    assert decode(encode(widest)) == widest
    with pytest.raises(EncodeError):
        encode(Interest(*message[:i], 1 << bits, *message[i + 1 :]))


@pytest.mark.parametrize(
    "attribute", [Attribute(51, IS, 40000), Attribute(51, 9, 0), Attribute(255, IS, 0), Attribute(69, GE, b"a")]
)
def test_invalid_attribute_is_not_sent(attribute):
    with pytest.raises(EncodeError):
        encode(Interest(1, 2, 3, 4, 5, 6, (attribute,)))


@pytest.mark.parametrize("attributes", ["TEMP GE 25", "TEMP IS 26, INSTANCE EQ 1"])
def test_data_with_operators_other_than_is_is_neither_sent_nor_read(attributes):
    with pytest.raises(EncodeError, match="only IS attributes"):
        encode(Data(1, 2, 3, 4, False, (), parse(attributes)))
    forged = b"\x02" + bytes(9) + encode(Interest(0, 0, 0, 0, 0, 0, parse(attributes)))[13:]
    with pytest.raises(DecodeError, match="only IS attributes"):
        decode(forged)


@pytest.mark.parametrize("attributes", ["TEMP IS 26, INSTANCE EQ 1", "INSTANCE GE 1, TEMP IS 26"])
def test_data_may_have_constraints_if_nodes_match_two_ways(attributes):
    message = Data(1, 2, 3, 4, False, (), parse(attributes))
    assert decode(encode_data(message, "wide", "two-way"), "two-way") == message


@pytest.mark.parametrize("attributes", ["TEMP GE 25", "TEMP IS 26, INTERVAL LE 5"])
def test_data_needs_a_value_and_no_constraint_on_the_interval(attributes):
    frame = encode_data(Data(1, 2, 3, 4, False, (), parse(attributes)), "wide", "two-way")
    with pytest.raises(DecodeError, match="IS attribute"):
        decode(frame, "two-way")


# Bytes that are not a message


@pytest.mark.parametrize(("frame", "message"), GOLDEN)
def test_every_truncation_and_every_longer_frame_is_a_decode_error(frame, message):
    for length in range(len(frame)):
        with pytest.raises(DecodeError):
            decode(frame[:length])
    for more in (b"\x00", b"\x33\x01\x00\x00", bytes(300)):
        with pytest.raises(DecodeError, match="bytes follow the last attribute"):
            decode(frame + more)


@pytest.mark.parametrize(("frame", "message"), GOLDEN)
def test_every_flipped_bit_gives_another_message_or_a_decode_error(frame, message):
    for bit in range(8 * len(frame)):
        flipped = bytearray(frame)
        flipped[bit // 8] ^= 1 << bit % 8
        assert_decodes_to_itself_or_not_at_all(bytes(flipped))


@given(st.binary(max_size=80) | st.tuples(st.sampled_from([b"\1", b"\2"]), st.binary(max_size=70)).map(b"".join))
@example(b"\x01" + bytes(12) + b"\xff")
def test_random_bytes_are_a_message_or_a_decode_error(frame):
    assert_decodes_to_itself_or_not_at_all(frame)


def assert_decodes_to_itself_or_not_at_all(frame):
    try:
        message = decode(frame)
    except DecodeError as error:
        assert str(error)
    else:
        if len(frame) - 1 <= PROFILES["wide"]:
            assert encode(message) == frame


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        ("", "the first byte of an interest is 1, that of a data message 2"),
        ("03 00", "the first byte of an interest is 1, that of a data message 2"),
        ("01 00", "ends within its header"),
        ("02 00", "ends within its header"),
        ("02 00000000 0000 0000 01 01  ff 01 0000", "key is 255; it must be from 50 to 250"),
        ("02 00000000 0000 0000 01 01  31 01 0000", "key is 49; it must be from 50 to 250"),
        ("02 00000000 0000 0000 01 01  33 00 0000", "must be from 1 to 8"),
        ("02 00000000 0000 0000 01 01  45 05 00", "key 69 has operator 5; a blob key allows only"),
        ("02 00000000 0000 0000 01 41", "ends within its list of sinks"),
        ("02 00000000 0000 0000 01 41  02 0900 02", "ends within its list of sinks"),
        ("02 00000000 0000 0000 01 41  ff 33010000", "ends within its list of sinks"),
        ("02 00000000 0000 0000 01 41  00 33010000", "the data message has an empty list of sinks"),
        ("02 00000000 0000 0000 01 02  45 01 04 33010000", "attribute 2 of 2 is cut off"),
        ("02 00000000 0000 0000 01 01  45 01 ff 33010000", "attribute 1 of 1 is cut off"),
    ],
)
def test_decode_error_names_the_problem(frame, complaint):
    with pytest.raises(DecodeError, match=complaint):
        decode(bytes.fromhex(frame))


# Round trips

u8, u16, u32 = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32))
keys = st.integers(50, 250).filter(lambda key: key not in (69, 70, 140))
integers = st.builds(Attribute, keys, st.integers(1, 8), st.integers(-32768, 32767))
blobs = st.builds(Attribute, st.sampled_from([69, 70, 140]), st.sampled_from([1, 2, 3, 8]), st.binary(max_size=9))
lists = st.lists(integers | blobs, max_size=3).map(tuple)
interests = st.builds(Interest, u32, u16, u8, u16, u8, u16, lists)
other_sinks = st.lists(u16, max_size=5).map(tuple)
readings = lists.map(lambda all_: tuple(Attribute(k, IS, v) for k, _, v in all_))
data = st.builds(Data, u32, u16, u16, u8, st.booleans(), other_sinks, readings)


@given(interests | data)
def test_every_message_is_decoded_unchanged(message):
    register_key(140, "SOUND", type="blob")
    assert decode(encode(message)) == message


def test_value_of_eq_any_is_forwarded_unchanged():
    message = Interest(1, 2, 3, 4, 5, 6, (Attribute(51, EQ_ANY, 77),))
    assert decode(encode(message)) == message


def test_frame_is_described_by_name_origin_and_sequence():
    interest, reading = GOLDEN[0][0], GOLDEN[4][0]
    assert describe(interest, broadcast=True) == ("interest", 0x0506, 0x01020304)
    assert describe(interest, broadcast=False) == ("reinforcement", 0x0506, 0x01020304)
    assert describe(reading, broadcast=False) == ("data", 0x0506, 0x01020304)

"""Flooding's frame: golden bytes in both directions, limits, and the errors for other bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.attributes.model import IS, Attribute
from workbench.attributes.text import parse
from workbench.errors import DecodeError, EncodeError
from workbench.protocols.flooding.wire import (
    HEADER_B,
    Flood,
    check_body,
    decode,
    decode_body,
    decode_header,
    describe,
    encode,
    with_ttl,
)

GOLDEN = [
    ("46 00000000 00000000 0000 00", Flood(0, 0, 0, ())),
    ("46 04030201 08070605 ffff 01  33 01 5a0a", Flood(0x01020304, 0x05060708, 0xFFFF, parse("TEMP IS 26.5"))),
    ("46 ffffffff ffffffff 0100 01  45 01 02 6869", Flood(0xFFFFFFFF, 0xFFFFFFFF, 1, parse('PAYLOAD IS "hi"'))),
    (
        "46 01000000 02000000 3200 03  42 01 e60b  43 01 aa28  33 01 800c",
        Flood(1, 2, 50, parse("LATITUDE IS 30.46, LONGITUDE IS 104.1, TEMP IS 32")),
    ),
]


@pytest.mark.parametrize(("text", "flood"), GOLDEN)
def test_frames_encode_their_floods_and_decode_to_them(text, flood):
    frame = bytes.fromhex(text)
    assert encode(flood) == frame
    assert decode(frame) == flood
    assert decode_header(frame) == ((flood.origin, flood.sequence), flood.ttl)
    assert with_ttl(frame, 700) == encode(Flood(flood.origin, flood.sequence, 700, flood.attributes))
    assert describe(frame) == ("flood", flood.origin, flood.sequence)


@pytest.mark.parametrize(
    "flood",
    [
        Flood(1 << 32, 0, 0, ()),
        Flood(-1, 0, 0, ()),
        Flood(0, 1 << 32, 0, ()),
        Flood(0, 0, 0x10000, ()),
        Flood(0, 0, -1, ()),
        Flood(0, 0, 0, parse("TEMP IS 1") * 256),
        Flood(0, 0, 0, (Attribute(51, IS, 40000),)),
        Flood(0, 0, 0, (Attribute(7, IS, 0),)),
        Flood(0, 0, 0, parse("TEMP GE 25")),
    ],
)
def test_flood_that_does_not_fit_is_an_encode_error(flood):
    with pytest.raises(EncodeError):
        encode(flood)


@pytest.mark.parametrize(("text", "flood"), GOLDEN)
def test_every_truncation_and_every_longer_frame_is_a_decode_error(text, flood):
    frame = bytes.fromhex(text)
    for wrong in [frame[:length] for length in range(len(frame))] + [frame + b"\x00", frame + bytes(300)]:
        with pytest.raises(DecodeError):
            decode(wrong)


@pytest.mark.parametrize(("text", "flood"), GOLDEN)
def test_every_flipped_bit_gives_another_flood_or_a_decode_error(text, flood):
    frame = bytes.fromhex(text)
    for bit in range(8 * len(frame)):
        flipped = bytearray(frame)
        flipped[bit // 8] ^= 1 << bit % 8
        assert_decodes_to_itself_or_not_at_all(bytes(flipped))


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda rest: b"F" + rest))
def test_random_bytes_are_a_flood_or_a_decode_error(frame):
    assert_decodes_to_itself_or_not_at_all(frame)


def assert_decodes_to_itself_or_not_at_all(frame):
    try:
        flood = decode(frame)
    except DecodeError as error:
        assert str(error)
    else:
        assert encode(flood) == frame


def test_constraint_is_not_a_reading():
    with pytest.raises(DecodeError, match="only IS attributes"):
        decode(bytes.fromhex("46 00000000 00000000 0000 01  33 05 c409"))


def test_frame_of_another_protocol_is_a_decode_error():
    with pytest.raises(DecodeError, match=r"begins with b'\\x02'; a flood begins with b'F'"):
        decode(bytes.fromhex("02 00000000 0000 0000 01 01  33 01 0000"))


@given(
    st.binary(max_size=40) | st.binary(max_size=30).map(lambda tail: encode(Flood(1, 2, 3, ())) + tail),
    st.integers(0, 5),
)
def test_body_is_checked_as_strictly_as_it_is_decoded(frame, count):
    frame = frame[: HEADER_B - 1] + bytes([count]) + frame[HEADER_B:]
    frame += bytes(max(0, HEADER_B - len(frame)))

    def answer(read):
        try:
            read(frame)
        except DecodeError as error:
            return str(error)
        return ""

    assert answer(check_body) == answer(decode_body)
    blob = encode(Flood(1, 2, 3, parse('TEMP IS 1, PAYLOAD IS "abcdef", TEMP IS 2')))
    check_body(blob)
    for end in range(HEADER_B, len(blob)):
        with pytest.raises(DecodeError):
            check_body(blob[:end])

"""Frames of the host link: golden bytes, any body in any chunks, and noise, which must not occupy memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DecodeError, EncodeError
from workbench.motes.framing import LONGEST_BODY, Deframer, decode, encode

# The checksum of "123456789" is the check value that catalogues of CRCs give for CRC-32: cbf43926.
GOLDEN = [
    ("00 01 01 01 01 01 00", b""),
    ("00 01 01 05 ff12d941 00", b"\x00\x00"),
    ("00 03 1122 06 337e1cf84d 00", b"\x11\x22\x00\x33"),
    ("00 0e 313233343536373839 2639f4cb 00", b"123456789"),
]
BLOCK = bytes(range(1, 255))  # the longest block of the byte stuffing

bodies = st.one_of(
    st.binary(min_size=1, max_size=LONGEST_BODY),
    st.integers(245, 265).map(lambda size: b"\x07" * size),
    st.integers(500, 520).map(lambda size: b"\x07" * size + b"\x00"),
)
noise = st.binary(max_size=60)


@pytest.mark.parametrize(("text", "body"), GOLDEN)
def test_body_is_encoded_into_its_frame_and_decoded_from_it(text, body):
    frame = bytes.fromhex(text.replace(" ", ""))
    assert encode(body) == frame
    assert decode(frame[1:-1]) == body
    assert Deframer().feed(frame) == [body]


def test_a_block_of_254_bytes_has_no_zero_behind_it():
    frame = encode(BLOCK + b"\x09")
    assert frame[:256] == b"\x00\xff" + BLOCK
    assert frame[256:258] == b"\x06\x09"
    assert decode(frame[1:-1]) == BLOCK + b"\x09"


@given(bodies)
def test_any_body_survives_a_round_trip_within_the_promised_length(body):
    frame = encode(body)
    assert frame[0] == frame[-1] == 0 and 0 not in frame[1:-1]
    assert len(frame) <= len(body) + 4 + 2 + 1 + (len(body) + 4) // 254
    assert decode(frame[1:-1]) == body


@given(st.lists(bodies, max_size=4), st.integers(1, 300))
def test_frames_are_found_in_chunks_of_any_size(sent, size):
    stream = b"".join([encode(body) for body in sent])
    deframer = Deframer()
    arrived = []
    for start in range(0, len(stream), size):
        arrived += deframer.feed(stream[start : start + size])
    assert arrived == sent
    assert deframer.spoilt == 0


@given(st.lists(st.tuples(noise, bodies), min_size=1, max_size=4), noise)
def test_noise_between_frames_neither_removes_nor_adds_a_body(parts, last):
    stream = b"".join([before + encode(body) for before, body in parts]) + last
    # Four bytes of 01 are the checksum 0 of an empty body, which noise easily produces. It does no harm, because
    # messages are never empty.
    assert [body for body in Deframer().feed(stream) if body] == [body for _, body in parts]


@given(bodies, st.data())
def test_a_changed_byte_never_makes_another_body(body, data):
    frame = bytearray(encode(body))
    position = data.draw(st.integers(1, len(frame) - 2))
    frame[position] ^= data.draw(st.integers(1, 255))
    deframer = Deframer()
    # A full block is followed by an empty block. A zero in its position ends the frame early, but validly.
    decoded = deframer.feed(bytes(frame))
    assert decoded in ([], [body])
    assert deframer.spoilt >= 1 - len(decoded)
    assert deframer.feed(encode(body)) == [body]


@given(bodies, bodies, st.data())
def test_after_a_cut_the_next_frame_is_found(body, following, data):
    frame = encode(body)
    cut = data.draw(st.integers(0, len(frame) - 2))
    deframer = Deframer()
    assert deframer.feed(frame[:cut]) == []
    assert deframer.feed(encode(following)) == [following]


@given(bodies)
def test_a_reader_that_joins_in_the_middle_gets_the_next_frame(body):
    frame = encode(b"x" * 40)
    for start in range(1, len(frame)):
        assert Deframer().feed(frame[start:] + encode(body))[-1:] == [body]


@pytest.mark.parametrize("size", [97, 4096, 1 << 20])
def test_a_megabyte_without_a_zero_is_one_spoilt_frame_and_takes_no_memory(size):
    deframer = Deframer()
    chunk = b"\x55" * size
    buffered_B = 0
    for _ in range((1 << 20) // size):
        assert deframer.feed(chunk) == []
        buffered_B = max(buffered_B, len(deframer._incomplete_frame))
    assert buffered_B <= 2 * LONGEST_BODY
    assert deframer.feed(encode(b"after")) == [b"after"]
    assert deframer.spoilt == 1


def test_the_longest_body_arrives_and_one_byte_more_is_refused():
    for fill in (b"\x00", b"\x01", b"\xff"):
        longest = fill * LONGEST_BODY
        assert Deframer().feed(encode(longest)) == [longest]
    with pytest.raises(EncodeError, match="a body of 2049 bytes is too long for a frame; the limit is 2048"):
        encode(b"\x01" * (LONGEST_BODY + 1))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has 0 bytes, fewer than the 4 of its checksum"),
        ("01", "has 0 bytes, fewer than the 4 of its checksum"),
        ("05", "cut off within a block of 5 bytes"),
        ("03 31", "cut off within a block of 3 bytes"),
        ("06 3132333435", "wrong checksum"),
        ("0e 313233343536373839 2639f4cc", "wrong checksum"),
    ],
)
def test_an_invalid_frame_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(DecodeError, match=sentence):
        decode(bytes.fromhex(text.replace(" ", "")))


@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_raise_a_decode_error(data):
    try:
        body = decode(data)
    except DecodeError:
        return
    assert encode(body)[1:-1] == data

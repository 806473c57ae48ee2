"""Frames of coded diffusion: golden bytes in both directions and every field, limits, and invalid bytes."""

import struct
from binascii import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import draws
from workbench.attributes.model import IS, PAYLOAD, Attribute
from workbench.attributes.text import parse
from workbench.attributes.wire import encode_readings
from workbench.coding import rlnc
from workbench.coding.fields import field as field_of
from workbench.errors import DecodeError, EncodeError
from workbench.protocols.coded_diffusion.wire import (
    FIELD_ORDERS,
    LONGEST_EVENT_B,
    Coded,
    Event,
    Request,
    coded_attributes,
    coded_bytes,
    decode,
    describe,
    encode_coded,
    encode_event,
    encode_request,
    event_attributes,
    event_bytes,
    information_B,
)

SOURCE, SEQUENCE = 0x01020304, 0x05060708
CODED_HEADER_B, CHECKSUM_B = 15, 4

# In hex: header, content, checksum. The event of the coded packets has 5 bytes, 01 33 01 280a; these and their
# checksum are coded.
GOLDEN = [
    ("45 00000000 00000000  00  92a4199b", Event(0, 0, ())),
    ("45 04030201 08070605  01 33 01 280a  36d69cf5", Event(SOURCE, SEQUENCE, parse("TEMP IS 26"))),
    (
        "45 ffffffff ffffffff  02 33 01 280a 45 01 02 6869  3f3a612f",
        Event(0xFFFFFFFF, 0xFFFFFFFF, parse('TEMP IS 26, PAYLOAD IS "hi"')),
    ),
    (
        "43 04030201 08070605 0700 03 00 0500  05  ff0180  bc3b04c3",
        Coded(SOURCE, SEQUENCE, 7, 3, 2, 5, (1, 0, 1), b"\xff\x01\x80"),
    ),
    (
        "43 04030201 08070605 0700 03 01 0500  1f 02  ff0180  26219af2",
        Coded(SOURCE, SEQUENCE, 7, 3, 16, 5, (15, 1, 2), b"\xff\x01\x80"),
    ),
    (
        "43 04030201 08070605 0700 03 02 0500  01 02 ff  ff0180  8fdbd670",
        Coded(SOURCE, SEQUENCE, 7, 3, 256, 5, (1, 2, 255), b"\xff\x01\x80"),
    ),
    (
        "43 04030201 08070605 0700 03 03 0500  0100 0002 ffff  ff018002  2f86171c",
        Coded(SOURCE, SEQUENCE, 7, 3, 65536, 5, (1, 512, 65535), b"\xff\x01\x80\x02"),
    ),
    (
        "43 04030201 08070605 0700 03 04 0500  0100 0200 0001  0001 0100 ff00  ddf397d5",
        Coded(SOURCE, SEQUENCE, 7, 3, 257, 5, (1, 2, 256), b"\x00\x01\x01\x00\xff\x00"),
    ),
    ("52 04030201 08070605 00  ef519605", Request(SOURCE, SEQUENCE, 0)),
    ("52 ffffffff 00000000 fe  490a981d", Request(0xFFFFFFFF, 0, 254)),
]
ENCODERS = {Event: encode_event, Coded: encode_coded, Request: encode_request}
NAMES = {Event: "event", Coded: "coded", Request: "request"}


def encode(message):
    return ENCODERS[type(message)](message)


def with_checksum(body):
    """Return a frame of this body with a correct checksum."""
    return bytes(body) + struct.pack("<I", crc32(bytes(body)))


@pytest.mark.parametrize(("text", "message"), GOLDEN)
def test_frames_encode_their_messages_and_decode_to_them(text, message):
    frame = bytes.fromhex(text)
    assert encode(message) == frame
    assert decode(frame) == message and type(decode(frame)) is type(message)
    assert describe(frame) == (NAMES[type(message)], message.origin, message.sequence)


TEMP = Attribute(51, IS, 2600)
RIGHT_CODED = Coded(1, 2, 3, 2, 256, 5, (1, 2), b"abcde")
FIELDS_OF_CODED = [
    "origin",
    "sequence",
    "hops",
    "generation_size",
    "field",
    "length_B",
    "encoding_vector",
    "information_vector",
]


def replace(message, **changes):
    """Return a copy of the message with other fields; MicroPython's named tuples have no `_replace`."""
    assert set(changes) <= set(FIELDS_OF_CODED)
    return Coded(*[changes.get(name, value) for name, value in zip(FIELDS_OF_CODED, message, strict=True)])


@pytest.mark.parametrize(
    "message",
    [
        Event(1 << 32, 0, (TEMP,)),
        Event(-1, 0, (TEMP,)),
        Event(0, 1 << 32, (TEMP,)),
        Event(0, 0, (TEMP,) * 256),
        Event(0, 0, (Attribute(PAYLOAD, IS, bytes(255)),) * 255),
        Event(0, 0, parse("TEMP GE 25")),
        replace(RIGHT_CODED, origin=-1),
        replace(RIGHT_CODED, hops=0x10000),
        replace(RIGHT_CODED, generation_size=0, encoding_vector=()),
        replace(RIGHT_CODED, generation_size=256, encoding_vector=(1,) * 256),
        replace(RIGHT_CODED, generation_size=3),
        replace(RIGHT_CODED, field=7),
        replace(RIGHT_CODED, length_B=0, information_vector=b""),
        replace(RIGHT_CODED, length_B=LONGEST_EVENT_B + 1),
        replace(RIGHT_CODED, encoding_vector=(0, 0)),
        replace(RIGHT_CODED, encoding_vector=(1, 300)),
        replace(RIGHT_CODED, encoding_vector=(1, -1)),
        replace(RIGHT_CODED, information_vector=b"abcd"),
        replace(RIGHT_CODED, information_vector=b"abcdef"),
        Request(-1, 0, 0),
        Request(0, 0, 255),
        Request(0, 0, -1),
    ],
)
def test_message_that_does_not_fit_is_an_encode_error(message):
    assert decode(encode(RIGHT_CODED)) == RIGHT_CODED
    with pytest.raises(EncodeError):
        encode(message)


# Frames with impossible content but a correct checksum.
CODED_HEADER = "43 01000000 02000000 0300"
IMPOSSIBLE = [
    ("an event longer than any", "45 01000000 02000000 ff" + ("4501ff" + "61" * 255) * 255),
    ("an event with an attribute too few", "45 01000000 02000000 02 3301280a"),
    ("an event with bytes behind it", "45 01000000 02000000 01 3301280a 00"),
    ("an event with what describes no data", "45 01000000 02000000 01 3303280a"),
    ("a generation of no chunks", CODED_HEADER + "00 02 0500"),
    ("an unknown field", CODED_HEADER + "01 05 0100 01 01"),
    ("an event of no bytes", CODED_HEADER + "01 02 0000 01"),
    ("an encoding vector cut off", CODED_HEADER + "09 02 0500 010101"),
    ("an information vector too short", CODED_HEADER + "02 02 0500 0102 61626364"),
    ("an information vector too long", CODED_HEADER + "02 02 0500 0102 616263646566"),
    ("an encoding vector of zeros", CODED_HEADER + "02 02 0500 0000 6162636465"),
    ("bits behind the last coefficient", CODED_HEADER + "02 00 0500 05 6162636465"),
    ("a coefficient outside GF(257)", CODED_HEADER + "01 04 0100 0101 00000000000000000000"),
    ("a symbol outside GF(257)", CODED_HEADER + "01 04 0100 0100 01010000000000000000"),
    ("a request without a rank", "52 01000000 02000000"),
    ("a request with a byte behind it", "52 01000000 02000000 01 00"),
    ("a request of a rank that no generation is short of", "52 01000000 02000000 ff"),
]


@pytest.mark.parametrize(("description", "text"), IMPOSSIBLE)
def test_impossible_frame_with_a_correct_checksum_is_a_decode_error(description, text):
    with pytest.raises(DecodeError) as caught:
        decode(with_checksum(bytes.fromhex(text)))
    assert "wrong checksum" not in str(caught.value), description


@pytest.mark.parametrize(("text", "message"), GOLDEN)
def test_every_truncation_and_every_longer_frame_is_a_decode_error(text, message):
    frame = bytes.fromhex(text)
    for wrong in [frame[:length] for length in range(len(frame))] + [frame + b"\x00", frame + bytes(300)]:
        with pytest.raises(DecodeError):
            decode(wrong)


@pytest.mark.parametrize(("text", "message"), GOLDEN)
def test_every_one_and_two_flipped_bits_are_a_decode_error(text, message):
    frame = bytes.fromhex(text)
    last = 8 * len(frame) - 1
    for bit in range(last + 1):
        for second_bit in (bit, last - bit, (bit + 1) % (last + 1)):
            flipped = bytearray(frame)
            for position in {bit, second_bit}:
                flipped[position // 8] ^= 1 << position % 8
            if bytes(flipped) != frame:
                with pytest.raises(DecodeError):
                    decode(bytes(flipped))


@given(st.binary(max_size=60), st.sampled_from([b"", b"E", b"C", b"R"]))
def test_random_bytes_are_a_decode_error(rest, begin):
    with pytest.raises(DecodeError):
        decode(begin + rest)


@given(st.binary(max_size=60), st.sampled_from([b"E", b"C", b"R"]))
def test_random_bytes_with_a_correct_checksum_reencode_or_are_a_decode_error(rest, begin):
    frame = with_checksum(begin + rest)
    try:
        message = decode(frame)
    except DecodeError:
        return
    assert encode(message) == frame


def payload_event(size_B):
    """Return an event of about `size_B` bytes."""
    data = bytes([index * 7 & 255 for index in range(size_B)])
    blobs = [Attribute(PAYLOAD, IS, data[begin : begin + 255]) for begin in range(0, size_B, 255)]
    return (TEMP,) + tuple(blobs)


@pytest.mark.parametrize("order", FIELD_ORDERS)
@pytest.mark.parametrize(("generation_size", "size_B"), [(1, 0), (2, 1024), (5, 3), (64, 130), (255, 300)])
def test_coded_packets_of_an_event_decode_to_it(order, generation_size, size_B):
    attributes = payload_event(size_B)
    data = coded_bytes(1, 2, attributes)
    length_B = len(event_bytes(attributes))
    random = draws.Stream(draws.make_key(order, generation_size))
    encoder = rlnc.Encoder(rlnc.split(data, generation_size, order), order, random, systematic=True)
    decoder = rlnc.Decoder(generation_size, order)
    for _ in range(generation_size):
        vector, information = encoder.encode()
        frame = encode_coded(Coded(1, 2, 3, generation_size, order, length_B, vector, information))
        vector_B = field_of(order).size_B(generation_size)
        assert len(frame) == CODED_HEADER_B + vector_B + len(information) + CHECKSUM_B
        packet = decode(frame)
        decoder.add(packet.encoding_vector, packet.information_vector)
    assert coded_attributes(1, 2, rlnc.join(decoder.decode(), packet.length_B + CHECKSUM_B)) == attributes


@given(st.integers(1, 3000), st.integers(1, 255), st.sampled_from(FIELD_ORDERS))
def test_information_vectors_have_the_length_of_the_rows_of_chunks(length_B, generation_size, order):
    chunk = rlnc.split(bytes(length_B + CHECKSUM_B), generation_size, order)[0]
    assert information_B(length_B, generation_size, order) == len(field_of(order).from_data(chunk))


def test_coded_bytes_are_the_event_and_a_checksum_of_event_and_id():
    data = coded_bytes(SOURCE, SEQUENCE, (TEMP,))
    assert data.hex() == "013301280a" + "ef7049ee"
    assert data[:-CHECKSUM_B] == event_bytes((TEMP,)) == b"\x01" + encode_readings((TEMP,))
    assert coded_attributes(SOURCE, SEQUENCE, data) == (TEMP,)


def test_decoded_bytes_that_are_not_the_events_are_a_decode_error():
    data = coded_bytes(SOURCE, SEQUENCE, (TEMP,))
    wrong = [(SOURCE, SEQUENCE, data[:length]) for length in range(len(data))]
    wrong += [(SOURCE + 1, SEQUENCE, data), (SOURCE, SEQUENCE - 1, data), (SEQUENCE, SOURCE, data)]
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        wrong.append((SOURCE, SEQUENCE, bytes(flipped)))
    for arguments in wrong:
        with pytest.raises(DecodeError):
            coded_attributes(*arguments)


def test_empty_bytes_are_not_an_event():
    with pytest.raises(DecodeError):
        event_attributes(b"")

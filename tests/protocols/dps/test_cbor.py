"""The subset of CBOR that DPS's messages use, compared with cbor2."""

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DecodeError, EncodeError
from workbench.protocols.dps.wire import cbor
from workbench.protocols.dps.wire.cbor import Reader

ANY = st.recursive(
    st.one_of(st.integers(-(2**64), 2**64 - 1), st.binary(max_size=30), st.text(max_size=10), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.integers(0, 40), inner, max_size=5)),
    max_leaves=12,
)


@given(st.integers(-(2**64), 2**64 - 1))
def test_integer_is_encoded_and_decoded_like_cbor2(value):
    data = cbor.integer(value)
    assert data == cbor2.dumps(value)
    assert Reader(data).integer("value", -(2**64), 2**64) == value
    if value >= 0:
        assert cbor.unsigned(value) == data
        assert Reader(data).unsigned("value") == value


@given(st.binary(max_size=300), st.text(max_size=100), st.booleans())
def test_strings_and_booleans_are_encoded_and_decoded_like_cbor2(data, text, flag):
    assert cbor.byte_string(data) == cbor2.dumps(data)
    assert cbor.text(text.encode()) == cbor2.dumps(text)
    assert cbor.boolean(flag) == cbor2.dumps(flag)
    reader = Reader(cbor.byte_string(data) + cbor.text(text.encode()) + cbor.boolean(flag))
    assert (reader.byte_string("a"), reader.text("b"), reader.boolean("c")) == (data, text.encode(), flag)
    reader.end()


@given(ANY, st.binary(max_size=5))
def test_skip_passes_over_one_item_of_any_kind(item, behind):
    data = cbor2.dumps(item)
    reader = Reader(data + behind)
    assert reader.skip("item") == data
    assert reader.at == len(data)


@given(st.floats(allow_nan=False))
def test_floats_and_tags_can_be_skipped(value):
    data = cbor2.dumps(cbor2.CBORTag(4711, [value]))
    assert Reader(data).skip("item") == data


@given(ANY, st.data())
def test_truncated_item_is_a_decode_error(item, data):
    encoded = cbor2.dumps(item)
    with pytest.raises(DecodeError):
        Reader(encoded[: data.draw(st.integers(0, len(encoded) - 1))]).skip("item")


@given(st.binary(max_size=60))
def test_any_bytes_are_skipped_or_refused(data):
    reader = Reader(data)
    try:
        reader.skip("item")
    except DecodeError:
        return
    assert 0 < reader.at <= len(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [("0a", 10), ("180a", 10), ("19000a", 10), ("1a0000000a", 10), ("1b000000000000000a", 10)],
)
def test_integer_of_any_width_is_decoded(data, value):
    assert Reader(bytes.fromhex(data)).unsigned("value") == value


def test_nested_items_need_no_stack():
    depth = 50_000
    assert len(Reader(b"\x81" * depth + b"\x00").skip("item")) == depth + 1
    assert len(Reader(b"\xc1" * depth + b"\x00").skip("item")) == depth + 1


@pytest.mark.parametrize(
    "data", ["9b7fffffffffffffff00", "bb7fffffffffffffff0000", "9affffffff", "5b7fffffffffffffff00"]
)
def test_declared_lengths_are_compared_with_the_available_bytes(data):
    with pytest.raises(DecodeError, match="has a (length|count) of"):
        Reader(bytes.fromhex(data)).skip("item")


@pytest.mark.parametrize("data", ["9f01ff", "bf0101ff", "5f4101ff", "7f6161ff", "1c", "fc", "ff"])
def test_indefinite_and_reserved_lengths_are_refused(data):
    with pytest.raises(DecodeError, match="indefinite or reserved"):
        Reader(bytes.fromhex(data)).skip("item")


@pytest.mark.parametrize(
    ("read", "data", "reason"),
    [
        (lambda reader: reader.unsigned("x", 5), "06", "x is 6; it may be 5 at most"),
        (lambda reader: reader.unsigned("x"), "20", "x is a negative integer; it must be an unsigned integer"),
        (lambda reader: reader.integer("x", -3, 3), "23", "x is -4; it may be -3 to 3"),
        (lambda reader: reader.integer("x", -3, 3), "40", "x is a byte string; it must be an integer"),
        (lambda reader: reader.byte_string("x", 2), "4100", "x has 1 bytes; it must have 2"),
        (lambda reader: reader.text("x"), "40", "x is a byte string; it must be a text"),
        (lambda reader: reader.array("x", 2), "8100", "x has 1 items; it must have 2"),
        (lambda reader: reader.mapping("x"), "80", "x is an array; it must be a map"),
        (lambda reader: reader.tag("x"), "00", "x is an unsigned integer; it must be a tag"),
        (lambda reader: reader.boolean("x"), "f6", "x is neither true nor false"),
        (lambda reader: reader.boolean("x"), "", "x is neither true nor false"),
        (lambda reader: reader.unsigned("x"), "", "x is missing"),
        (lambda reader: reader.unsigned("x"), "19ff", "x is cut short"),
        (lambda reader: reader.skip_mapping("x"), "81a0", "x is an array; it must be a map"),
    ],
)
def test_the_error_names_the_type_found_instead(read, data, reason):
    with pytest.raises(DecodeError, match=reason):
        read(Reader(bytes.fromhex(data)))


def test_number_beyond_64_bits_cannot_be_encoded():
    with pytest.raises(EncodeError, match="64 bits"):
        cbor.unsigned(2**64)
    with pytest.raises(EncodeError, match="64 bits"):
        cbor.integer(-(2**64) - 1)

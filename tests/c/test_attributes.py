"""Attributes and random draws in C agree with Python: bytes, matching, same constraints, containment."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.c_nodes import library, needs_compiler
from tests.families import examples
from workbench import draws
from workbench.attributes.interests import constraints, covers, is_within
from workbench.attributes.model import BLOB_OPERATORS, IS, PAYLOAD, Attribute, one_way_match, split_samples
from workbench.attributes.wire import decode_attributes, encode_attributes
from workbench.errors import DecodeError

pytestmark = needs_compiler

# Few keys and values, so that lists often match, and extreme values, where comparisons and increments may overflow.
NUMBERS = st.builds(
    Attribute,
    st.sampled_from([51, 54, 59, 250]),
    st.integers(1, 8),
    st.sampled_from([-32768, -32767, -1, 0, 1, 2, 3, 32766, 32767]),
)
BLOBS = st.builds(
    Attribute,
    st.sampled_from([69, 70]),
    st.sampled_from(BLOB_OPERATORS),
    st.sampled_from([b"", b"a", b"b", b"ab", bytes(9)]),
)
LISTS = st.lists(NUMBERS | NUMBERS | BLOBS, max_size=6).map(tuple)


@pytest.fixture(scope="module")
def c():
    return library("flooding")


def listed(c, attributes):
    """Return a list in C, and the memory of its bytes, which must stay referenced."""
    ffi, _ = c
    encoded = encode_attributes(attributes)
    memory = ffi.new("uint8_t[]", encoded or b"\0")
    return ffi.new("struct attributes *", (memory, len(encoded), len(attributes)))[0], memory


@settings(max_examples=examples(500))
@given(LISTS, LISTS)
def test_two_lists_compare_as_in_python(c, left, right):
    _, functions = c
    (left_in_c, _left_memory), (right_in_c, _right_memory) = listed(c, left), listed(c, right)
    assert functions.one_way_match(left_in_c, right_in_c) == one_way_match(left, right)
    assert functions.same_constraints(left_in_c, right_in_c) == (constraints(left) == constraints(right))
    assert functions.is_within(left_in_c, right_in_c) == is_within(left, right)
    assert functions.are_equal(left_in_c, right_in_c) == (left == right)
    for strict in (False, True):
        assert functions.covers(left_in_c, right_in_c, strict) == covers(left, right, strict)
        assert functions.covers(left_in_c, left_in_c, strict) == covers(left, left, strict)


@given(LISTS)
def test_list_compares_with_itself_and_with_its_reverse_as_in_python(c, left):
    _, functions = c
    right = left[::-1]
    (left_in_c, _left_memory), (right_in_c, _right_memory) = listed(c, left), listed(c, right)
    assert functions.same_constraints(left_in_c, right_in_c)
    assert functions.is_within(left_in_c, right_in_c) == is_within(left, right)


@given(st.lists(NUMBERS | BLOBS, min_size=1, max_size=6).map(tuple))
def test_aggregate_is_split_where_its_first_key_repeats(c, attributes):
    ffi, functions = c
    left, _memory = listed(c, attributes)
    samples = []
    while left.count:
        rest = ffi.new("struct attributes *")
        sample = functions.first_sample(left, rest)
        samples.append(decode_attributes(bytes(ffi.buffer(sample.bytes, sample.size)), 0, sample.count))
        # The rest begins with the same key, so C may split it as Python splits the whole list.
        left = rest[0]
    assert samples == split_samples(attributes)


@settings(max_examples=examples(400))
@given(LISTS, st.integers(0, 3), st.data())
def test_bytes_are_refused_where_python_refuses_them(c, attributes, damage, data):
    ffi, functions = c
    encoded, count = bytearray(encode_attributes(attributes)), len(attributes)
    if damage == 1 and encoded:
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    elif damage == 2:
        encoded = encoded[: data.draw(st.integers(0, len(encoded)))] + data.draw(st.binary(max_size=3))
    elif damage == 3:
        count = data.draw(st.integers(0, 255))
    memory = ffi.new("uint8_t[]", bytes(encoded) or b"\0")
    is_decoded = functions.attributes_decode(memory, len(encoded), count, ffi.new("struct attributes *"))
    try:
        decode_attributes(bytes(encoded), 0, count)
    except DecodeError:
        assert not is_decoded
    else:
        assert is_decoded


@given(LISTS)
def test_list_that_is_put_together_has_the_bytes_of_python_until_it_is_full(c, attributes):
    ffi, functions = c
    built = ffi.new("struct attribute_list *")
    fitting = ()
    for attribute in attributes:
        key, operator, value = attribute
        add = functions.add_blob if key in (69, 70) else functions.add_number
        arguments = (value, len(value)) if key in (69, 70) else (value,)
        fits = len(encode_attributes((*fitting, attribute))) <= len(built.bytes)
        assert add(built, key, operator, *arguments) == fits
        fitting += (attribute,) * fits
    assert bytes(built.bytes)[: built.size] == encode_attributes(fitting) and built.count == len(fitting)


def test_invalid_attribute_is_not_added(c):
    ffi, functions = c
    built = ffi.new("struct attribute_list *")
    assert not functions.add_number(built, 49, IS, 1) and not functions.add_number(built, 251, IS, 1)
    assert not functions.add_number(built, 51, 9, 1) and not functions.add_number(built, PAYLOAD, IS, 1)
    assert not functions.add_blob(built, 51, IS, b"a", 1) and not functions.add_blob(built, PAYLOAD, 5, b"a", 1)
    assert (built.size, built.count) == (0, 0)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 3), st.integers(1, 2**32 - 1))
def test_draws_are_those_of_python(c, key, counter, bound):
    ffi, functions = c
    stream = draws.Stream(key, counter)
    random = ffi.new("struct random *", (key, counter))
    assert [functions.random_below(random, bound) for _ in range(3)] == [stream.below(bound) for _ in range(3)]

"""Finite fields: arithmetic compared with tables, field laws and galois, and rows of packed symbols."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.families import family_except
from workbench import draws
from workbench.coding.fields import PrimeField, field
from workbench.errors import DecodeError, EncodeError, ParameterError

ORDERS = (2, 3, 5, 16, 17, 251, 256, 257, 65521, 65536)
BINARY = (2, 16, 256, 65536)


def symbols_of(order, count, seed=0):
    """Return `count` symbols, among them the smallest and the largest if `count` allows."""
    random = draws.Stream(draws.make_key(seed, order))
    return ([0, 1, order - 1] + [random.below(order) for _ in range(count)])[:count]


# a, b, a * b, 1 / a: calculated by hand or from published tables of the field
@pytest.mark.parametrize(
    ("order", "a", "b", "product", "inverse"),
    [
        (2, 1, 1, 1, 1),
        (16, 2, 8, 3, 9),  # x * x^3 = x^4 = x + 1
        (16, 7, 7, 6, 6),
        (256, 2, 128, 0x1D, 0x8E),  # x * x^7 = x^8 = x^4 + x^3 + x^2 + 1
        (256, 0x80, 0x80, 0x13, 0x1B),
        (65536, 2, 0x8000, 0x2D, 0x8016),  # x * x^15 = x^16 = x^5 + x^3 + x^2 + 1
        (257, 16, 16, 256, 241),
        (257, 256, 256, 1, 256),
    ],
)
def test_products_and_inverses(order, a, b, product, inverse):
    assert field(order).multiply(a, b) == product
    assert field(order).inverse(a) == inverse


@pytest.mark.parametrize("order", ORDERS)
def test_field_has_the_laws_of_a_field(order):
    gf = field(order)
    for a in symbols_of(order, 12, 1):
        assert gf.add(a, gf.negative(a)) == 0
        assert gf.multiply(a, 1) == a
        if a:
            assert gf.multiply(a, gf.inverse(a)) == 1
            assert gf.power(a, order - 1) == 1
            assert gf.power(a, -3) == gf.inverse(gf.power(a, 3))
        for b in symbols_of(order, 12, 2):
            assert gf.multiply(a, b) == gf.multiply(b, a)
            assert gf.subtract(gf.add(a, b), b) == a
            if b:
                assert gf.multiply(gf.divide(a, b), b) == a
            for c in symbols_of(order, 6, 3):
                assert gf.multiply(a, gf.add(b, c)) == gf.add(gf.multiply(a, b), gf.multiply(a, c))
                assert gf.multiply(a, gf.multiply(b, c)) == gf.multiply(gf.multiply(a, b), c)


@pytest.mark.parametrize("order", ORDERS)
def test_zero_is_neutral_in_sums_annihilates_products_and_has_no_inverse(order):
    gf = field(order)
    with pytest.raises(ZeroDivisionError, match="zero has no inverse in GF"):
        gf.inverse(0)
    with pytest.raises(ZeroDivisionError):
        gf.divide(1, 0)
    assert (gf.power(0, 0), gf.power(0, 5), gf.multiply(0, order - 1), gf.add(0, order - 1)) == (1, 0, 0, order - 1)


@pytest.mark.parametrize("order", family_except(ORDERS, 2, 16, 251, 256))
def test_arithmetic_equals_that_of_galois(order):
    np, galois = pytest.importorskip("numpy"), pytest.importorskip("galois")
    gf = field(order)
    theirs = gf.galois
    assert theirs is galois.GF(order)
    if gf.characteristic == 2 and gf.degree > 1:
        assert gf.polynomial == int(theirs.irreducible_poly)
    several = range(order) if order <= 17 else symbols_of(order, 40, 4)
    a, b = (np.array(operands) for operands in zip(*((x, y) for x in several for y in several), strict=True))
    for ours, expected in (
        (gf.add, theirs(a) + theirs(b)),
        (gf.subtract, theirs(a) - theirs(b)),
        (gf.multiply, theirs(a) * theirs(b)),
    ):
        assert [ours(int(x), int(y)) for x, y in zip(a, b, strict=True)] == expected.tolist()
    some = [x for x in several if x]
    assert [gf.inverse(x) for x in some] == np.reciprocal(theirs(some)).tolist()


def test_each_field_is_a_single_object_and_has_the_usual_name():
    assert field(256) is field(256) is field(field(256))
    assert [repr(field(order)) for order in (2, 16, 256, 65536, 257)] == [
        "GF(2)",
        "GF(2^4)",
        "GF(2^8)",
        "GF(2^16)",
        "GF(257)",
    ]


@pytest.mark.parametrize("order", [0, 1, -7, 4, 255, 65535, 65537, 2.5, "256", None])
def test_other_orders_are_refused(order):
    with pytest.raises(ParameterError, match="field is"):
        field(order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("beyond", [-1, 0])
def test_values_outside_the_field_are_refused(order, beyond):
    gf, row = field(order), bytearray(2)
    wrong = order if beyond == 0 else -1
    for operation in (gf.add, gf.subtract, gf.multiply, gf.divide):
        with pytest.raises(DecodeError, match="symbol is .* GF"):
            operation(wrong, 1)
    for call in (
        lambda: gf.inverse(wrong),
        lambda: gf.pack([0, wrong], DecodeError),
        lambda: gf.axpy(row, wrong, row),
    ):
        with pytest.raises(DecodeError, match="symbol is .* GF"):
            call()
    with pytest.raises(EncodeError, match="symbol is .* GF"):
        gf.pack([0, wrong])


@pytest.mark.parametrize("order", ORDERS)
def test_a_row_has_the_announced_length(order):
    gf = field(order)
    for chunk_B in (0, 2, 6):
        assert gf.row_B(chunk_B) == len(gf.from_data(bytes(chunk_B)))


# Rows


@pytest.mark.parametrize(
    ("order", "symbols", "packed"),
    [
        (2, [1, 0, 0, 0, 0, 0, 1, 1, 1], b"\xc1\x01"),
        (16, [1, 2, 15], b"\x21\x0f"),
        (256, [1, 2, 255], b"\x01\x02\xff"),
        (65536, [1, 0x1234], b"\x01\x00\x34\x12"),
        (251, [1, 250], b"\x01\xfa"),
        (257, [1, 256], b"\x01\x00\x00\x01"),
    ],
)
def test_symbols_are_packed_from_the_least_significant_bit_on(order, symbols, packed):
    gf = field(order)
    assert gf.pack(symbols) == packed
    assert gf.unpack(packed, len(symbols)) == symbols
    assert gf.size_B(len(symbols)) == len(packed)


@pytest.mark.parametrize("order", ORDERS)
def test_an_array_of_symbols_is_packed_by_its_values(order):
    from array import array

    symbols = symbols_of(order, 7)
    assert field(order).pack(array("L", symbols)) == field(order).pack(symbols)


@given(st.sampled_from(ORDERS), st.binary(max_size=40))
@settings(max_examples=300)
def test_any_bytes_go_into_symbols_and_come_out(order, data):
    gf = field(order)
    if order == 65536 and len(data) % 2:
        data += b"\x00"
    row = gf.from_data(data)
    gf.check_row(row)
    assert gf.to_data(row) == data
    assert gf.pack(gf.unpack(row)) == row


@given(st.sampled_from(ORDERS), st.integers(0, 2**32), st.integers(0, 9))
@settings(max_examples=200)
def test_axpy_and_scale_are_the_arithmetic_of_each_symbol(order, seed, count):
    gf = field(order)
    row, addend = symbols_of(order, count, seed), symbols_of(order, count, seed + 1)
    for factor in (0, 1, order - 1, seed % order):
        packed = gf.pack(row)
        gf.axpy(packed, factor, gf.pack(addend))
        assert gf.unpack(packed, count) == [gf.add(a, gf.multiply(factor, b)) for a, b in zip(row, addend, strict=True)]
        packed = gf.pack(row)
        gf.scale(packed, factor)
        assert gf.unpack(packed, count) == [gf.multiply(factor, a) for a in row]


def test_rows_of_two_lengths_cannot_be_added():
    for order in ORDERS:
        with pytest.raises(ParameterError, match="rows have 2 and 4 bytes"):
            field(order).axpy(bytearray(2), 1, bytes(4))


def test_half_a_symbol_is_refused():
    with pytest.raises(EncodeError, match="chunk has 3 bytes, which are not whole symbols of GF.2.16."):
        field(65536).from_data(b"abc")
    for order in (65536, 257):
        with pytest.raises(DecodeError, match="has 3 bytes"):
            field(order).check_row(b"abc")


def test_a_row_with_an_invalid_symbol_of_a_prime_field_is_refused():
    with pytest.raises(DecodeError, match="symbol is 257"):
        field(257).check_row(b"\x00\x01\x01\x01")
    with pytest.raises(DecodeError, match="symbol is 251"):
        field(251).check_row(b"\xfb")


def test_a_row_without_whole_bytes_is_not_converted_to_data():
    with pytest.raises(DecodeError, match="is not made from whole bytes"):
        field(257).to_data(field(257).pack([256]))
    with pytest.raises(DecodeError, match="is not made from whole bytes"):
        field(17).to_data(field(17).pack([1, 2, 3]))


def test_only_prime_fields_need_more_room_than_their_data():
    for order in ORDERS:
        gf = field(order)
        assert (len(gf.from_data(bytes(8))) == 8) == (not isinstance(gf, PrimeField))

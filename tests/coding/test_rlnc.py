"""Random linear network coding: worked examples, and encoding, recoding and progressive decoding in every field."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.families import examples
from workbench import draws
from workbench.coding.fields import field
from workbench.coding.rlnc import Decoder, Encoder, Recoder, draw_coefficients, join, split
from workbench.errors import DecodeError, EncodeError, ParameterError

ORDERS = (2, 3, 16, 17, 251, 256, 257, 65521, 65536)


def stream(*words):
    return draws.Stream(draws.make_key(7, *words))


def text(size_B):
    """Return bytes that differ from chunk to chunk."""
    return bytes([index * 37 + index // 251 & 255 for index in range(size_B)])


def decoded_by(decoder, make, at_most=400):
    """Add packets from `make` until the decoder is complete."""
    for _ in range(at_most):
        if decoder.is_complete:
            return decoder.decode()
        decoder.add(*make())
    raise AssertionError(f"not complete after {at_most} packets")


# The worked example: an event of three bytes of value 1, two packets of a bootstrap node, one of an intermediate node.
#
#   event x = [1, 1, 1]  --B-->  P1 = ([1, 2, 3], y1)  --I: 3 P1 + 2 P2-->  P3
#                                P2 = ([3, 2, 4], y2)


@pytest.mark.parametrize(
    ("order", "first", "second", "vector", "third"),
    [(257, 6, 9, (9, 10, 17), 36), (256, 0, 5, (5, 2, 13), 10)],
)
def test_figures_1_to_3(order, first, second, vector, third):
    gf = field(order)
    encoder = Encoder([[1], [1], [1]], order)
    p1, p2 = encoder.combine([1, 2, 3]), encoder.combine([3, 2, 4])
    assert [gf.unpack(packet.information_vector) for packet in (p1, p2)] == [[first], [second]]

    together = [gf.pack(vector + tuple(gf.unpack(information))) for vector, information in (p1, p2)]
    p3 = bytearray(len(together[0]))
    gf.axpy(p3, 3, together[0])
    gf.axpy(p3, 2, together[1])
    assert gf.unpack(p3) == list(vector) + [third]

    decoder = Decoder(3, order)
    assert decoder.add(*p1) and decoder.add(*p2)
    assert not decoder.add(vector, [third]) and decoder.rank == 2  # P3 lies in the span of P1 and P2
    assert decoder.add([1, 1, 0], [2 if order == 257 else 0]) and decoder.is_complete
    assert decoder.decode() == [b"\x01"] * 3


def test_reduced_rows_of_the_figures_in_gf_257_are_those_worked_by_hand():
    # [1 2 3 | 6], [3 2 4 | 9]: subtract three times the first, divide by -4, subtract twice the second.
    decoder = Decoder(3, 257)
    decoder.add([1, 2, 3], [6])
    assert decoder.rows == [((1, 2, 3), b"\x06\x00")]
    decoder.add([3, 2, 4], [9])
    half, five_quarters = field(257).divide(1, 2), field(257).divide(5, 4)
    assert [vector for vector, _ in decoder.rows] == [(1, 0, half), (0, 1, five_quarters)]


# Splitting


@given(st.binary(max_size=300), st.integers(1, 64), st.sampled_from(ORDERS))
def test_split_data_are_joined_again(data, generation_size, order):
    chunks = split(data, generation_size, order)
    assert len(chunks) == generation_size
    assert len({len(chunk) for chunk in chunks}) == 1
    assert sum([len(chunk) for chunk in chunks]) < len(data) + 2 * generation_size
    assert join(chunks, len(data)) == data


def test_join_refuses_chunks_that_split_cannot_have_made():
    with pytest.raises(DecodeError, match="length_B is 5; it must be from 0 to the 4 bytes of the chunks"):
        join([b"ab", b"cd"], 5)
    with pytest.raises(DecodeError, match="length_B is -1"):
        join([b"ab"], -1)
    with pytest.raises(DecodeError, match="nonzero bytes after their 3 bytes"):
        join([b"ab", b"cd"], 3)
    with pytest.raises(DecodeError, match="nonzero bytes after their 1 bytes"):
        join([b"a\0", b"\0d"], 1)


# Decoding what was encoded


@given(st.sampled_from(ORDERS), st.integers(1, 8), st.integers(0, 60), st.integers(0, 2**32))
@settings(max_examples=examples(200))
def test_decode_undoes_encode_over_hops_loss_duplication_and_reordering(order, generation_size, size_B, seed):
    data = text(size_B)
    encoder = Encoder(split(data, generation_size, order), order, stream(seed))
    chance = stream(seed, 1)
    hops = [Decoder(generation_size, order) for _ in range(3)]
    recoders = [Recoder(hop, stream(seed, 2, index)) for index, hop in enumerate(hops)]
    waiting = []
    for _ in range(3000):
        if hops[-1].is_complete:
            break
        waiting.append((0, encoder.encode()))
        waiting += [(index + 1, recoders[index].recode()) for index in range(2) if hops[index].rank]
        if chance.uniform() < 0.3:
            waiting.append(waiting[chance.below(len(waiting))])  # a duplicate
        hop, packet = waiting.pop(chance.below(len(waiting)))  # in any order
        if chance.uniform() < 0.7:  # or lost
            before = hops[hop].rank
            expected = hops[hop].is_innovative(packet.encoding_vector)
            assert hops[hop].add(*packet) is expected
            assert hops[hop].rank == before + expected
    assert join(hops[-1].decode(), size_B) == data


@pytest.mark.parametrize("order", ORDERS)
def test_systematic_packets_are_the_chunks_in_order_and_coded_ones_follow(order):
    gf = field(order)
    chunks = split(text(24), 4, order)
    encoder, decoder = Encoder(chunks, order, systematic=True), Decoder(4, order)
    for index in range(4):
        vector, information = encoder.encode()
        assert vector == tuple([int(i == index) for i in range(4)])
        assert gf.to_data(information) == chunks[index]
        assert decoder.add(vector, information)
        assert decoder.decoded == tuple(range(index + 1))
        assert decoder.chunk(index) == chunks[index]
    assert decoder.decode() == chunks
    assert not decoder.add(*encoder.encode())


def test_sparse_coefficients_have_the_given_density_and_are_never_all_zero():
    random = stream(1)
    drawn = [draw_coefficients(field(256), 16, random, 0.2) for _ in range(400)]
    assert all(any(coefficients) for coefficients in drawn)
    zeros = sum([coefficients.count(0) for coefficients in drawn]) / (400 * 16)
    assert 0.75 < zeros < 0.83
    assert 0 not in draw_coefficients(field(16), 50, random, 1)


@pytest.mark.parametrize("order", ORDERS)
def test_coefficients_are_symbols_and_never_all_zero(order):
    random = stream(order)
    drawn = [draw_coefficients(field(order), 2, random) for _ in range(300)]
    assert all(any(coefficients) and max(coefficients) < order for coefficients in drawn)
    symbols = {symbol for coefficients in drawn for symbol in coefficients}
    assert len(symbols) > min(order, 200) * 0.8


@pytest.mark.parametrize("order", ORDERS)
def test_sparse_packets_decode(order):
    chunks = split(text(40), 8, order)
    encoder = Encoder(chunks, order, stream(order), density=0.3)
    assert decoded_by(Decoder(8, order), encoder.encode) == chunks


def test_a_stream_makes_the_packets_and_another_makes_others():
    chunks = split(text(40), 8)
    same = [Encoder(chunks, 256, stream(5)).encode() for _ in range(2)]
    assert same[0] == same[1] != Encoder(chunks, 256, stream(6)).encode()


@pytest.mark.parametrize("order", ORDERS)
def test_empty_data_are_a_generation_too(order):
    encoder = Encoder(split(b"", 3, order), order, stream(order))
    assert join(decoded_by(Decoder(3, order), encoder.encode), 0) == b""


def test_a_generation_that_a_host_computes_in_bulk_decodes_on_a_mote_too():
    chunks = split(text(1024), 16)
    assert decoded_by(Decoder(16), Encoder(chunks, random=stream(16)).encode) == chunks


# The matrix


@given(st.sampled_from(ORDERS), st.integers(0, 2**32))
@settings(max_examples=examples(100))
def test_rows_are_in_reduced_row_echelon_form_after_every_packet(order, seed):
    chunks = split(text(30), 5, order)
    encoder, decoder = Encoder(chunks, order, stream(seed), density=0.4), Decoder(5, order)
    while not decoder.is_complete:
        is_innovative = decoder.add(*encoder.encode())
        rows = decoder.rows
        assert len(rows) == len(decoder.arrivals) == decoder.rank
        assert not is_innovative or decoder.arrivals[-1] in decoder.pivots
        for pivot, (vector, information) in zip(decoder.pivots, rows, strict=True):
            assert vector[pivot] == 1 and not any(vector[:pivot])
            assert all(vector[other] == 0 for other in decoder.pivots if other != pivot)
            assert (vector, information) == encoder.combine(vector)
        for index in decoder.decoded:
            assert decoder.chunk(index) == chunks[index]
    assert decoder.decoded == decoder.pivots == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("order", ORDERS)
def test_zero_and_known_vectors_are_not_innovative_and_the_query_adds_nothing(order):
    decoder = Decoder(3, order)
    assert not decoder.is_innovative([0, 0, 0]) and decoder.is_innovative([1, 0, 0])
    size_B = field(order).size_B(8)
    assert not decoder.add([0, 0, 0], bytes(size_B)) and decoder.rank == 0
    assert decoder.add([1, 1, 0], bytes(size_B)) and decoder.add([0, 1, 1], bytes(size_B))
    for vector in ([1, 1, 0], [0, 1, 1], [1, 0, order - 1 if order % 2 else 1]):
        assert not decoder.is_innovative(vector)
        assert not decoder.add(vector, bytes(size_B))
    assert decoder.is_innovative([0, 0, 1]) and decoder.rank == 2


def test_recoding_stays_in_the_span_of_received_packets():
    encoder = Encoder(split(text(64), 8), 256, stream(1))
    decoder = Decoder(8)
    for _ in range(3):
        decoder.add(*encoder.encode())
    recoder, next_hop = Recoder(decoder, stream(2)), Decoder(8)
    for _ in range(20):
        packet = recoder.recode()
        assert not decoder.is_innovative(packet.encoding_vector)
        assert packet == encoder.combine(packet.encoding_vector)
        next_hop.add(*packet)
    assert next_hop.rank == 3 and next_hop.pivots == decoder.pivots and next_hop.rows == decoder.rows


# Errors


def test_recoding_and_decoding_without_packets_is_an_error():
    decoder = Decoder(2)
    with pytest.raises(EncodeError, match="rank 0; it can combine nothing"):
        Recoder(decoder).recode()
    with pytest.raises(DecodeError, match="0 of 2 innovative packets"):
        decoder.decode()
    decoder.add([1, 1], b"ab")
    with pytest.raises(DecodeError, match="1 of 2 innovative packets"):
        decoder.decode()
    with pytest.raises(DecodeError, match="chunk 0 is not decoded yet"):
        decoder.chunk(0)
    with pytest.raises(DecodeError, match="pivot is 1"):
        decoder.row(1)
    with pytest.raises(EncodeError, match="combine has 2 coefficients; it needs one for each of the decoder's 1"):
        decoder.combine([1, 1])


def test_wrong_sizes_and_symbols_leave_the_decoder_as_it_was():
    decoder = Decoder(2, 257)
    decoder.add([1, 0], b"\x01\x00")
    for vector, information, sentence in (
        ([0, 1, 0], b"\x01\x00", "has 3 coefficients; the generation has 2"),
        ([0], b"\x01\x00", "has 1 coefficients; the generation has 2"),
        ([0, 257], b"\x01\x00", "symbol is 257"),
        ([0, -1], b"\x01\x00", "symbol is -1"),
        ([0, 1], b"\x01\x01", "symbol is 257"),
        ([0, 1], b"\x01", "has 1 bytes"),
        ([0, 1], b"\x01\x00\x01\x00", "has 4 bytes; those of this generation have 2"),
        ([0, 1], [1, 2], "has 4 bytes; those of this generation have 2"),
        ([0, 1], [300], "symbol is 300"),
    ):
        with pytest.raises(DecodeError, match=sentence):
            decoder.add(vector, information)
        assert decoder.rows == [((1, 0), b"\x01\x00")]
    with pytest.raises(DecodeError, match="has 3 coefficients; the generation"):
        decoder.is_innovative([1, 0, 0])


@pytest.mark.parametrize("order", [16, 256, 257])
def test_encoding_an_invalid_symbol_is_an_encode_error(order):
    with pytest.raises(EncodeError, match="symbol is 300"):
        Encoder([[300]], order)
    with pytest.raises(EncodeError, match="symbol is 300"):
        Encoder([[1], [2]], order).combine([300, 1])


@pytest.mark.parametrize("order", [16, 256])
def test_a_vector_with_an_invalid_symbol_is_refused(order):
    for wrong in (-1, order):
        with pytest.raises(DecodeError, match="symbol is "):
            Decoder(2, order).add([0, wrong], b"a")


def test_invalid_generations_are_refused():
    with pytest.raises(ParameterError, match="generation size is 0"):
        Encoder([])
    for size in (0, -1, 1.5, None):
        with pytest.raises(ParameterError, match="generation size"):
            Decoder(size)
        with pytest.raises(ParameterError, match="generation size"):
            split(b"abc", size)
    with pytest.raises(EncodeError, match="chunks have 1 and 2 bytes"):
        Encoder([b"ab", b"c"])
    with pytest.raises(EncodeError, match="combine has 1 coefficients; .* 2 chunks"):
        Encoder([b"a", b"c"]).combine([1])
    with pytest.raises(EncodeError, match="chunk has 3 bytes"):
        Encoder([b"abc"], 65536)
    with pytest.raises(ParameterError, match="field is 255"):
        Encoder([b"abc"], 255)


@pytest.mark.parametrize("density", [0, -0.5, 1.5])
def test_a_density_is_a_share(density):
    with pytest.raises(ParameterError, match="density"):
        Encoder([b"a"], density=density)
    with pytest.raises(ParameterError, match="density"):
        Recoder(Decoder(1), density=density)

"""Coding in bulk: the same results as on a mote, ranks and matrices equal to those of galois, and large generations."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench
from tests.repository import REPOSITORY
from workbench import draws
from workbench.coding import bulk as bulk_fields
from workbench.coding import rlnc
from workbench.coding.fields import field
from workbench.coding.rlnc import Decoder, Encoder, Recoder, join, split
from workbench.errors import DecodeError

ORDERS = (2, 3, 16, 17, 251, 256, 257, 65521, 65536)
# galois takes seconds to compile the arithmetic of each field.
GALOIS_ORDERS = (2, 256, 257)


def stream(*words):
    return draws.Stream(draws.make_key(11, *words))


def data_of(size_B, seed=0):
    random = stream(seed)
    return b"".join([random.bits().to_bytes(8, "little") for _ in range(size_B // 8 + 1)])[:size_B]


# Both ways of computing


@pytest.mark.parametrize("order", ORDERS)
@given(st.integers(1, 9), st.integers(0, 200), st.sampled_from([None, 0.3]), st.integers(0, 2**32))
@settings(max_examples=15)
def test_bulk_and_plain_give_the_same_packets_rows_and_chunks(order, generation_size, size_B, density, seed):
    chunks = split(data_of(size_B, seed), generation_size, order)
    results = []
    for bulk in (False, True):
        encoder = Encoder(chunks, order, stream(seed), density=density, bulk=bulk)
        first, second = (Decoder(generation_size, order, bulk=bulk) for _ in range(2))
        recoder = Recoder(first, stream(seed, 1), density)
        steps = []
        for _ in range(2 * generation_size):
            packet = encoder.encode()
            steps += [
                packet,
                first.is_innovative(packet.encoding_vector),
                first.add(*packet),
                first.rows,
                first.decoded,
            ]
            if first.rank:
                packet = recoder.recode()
                steps += [packet, second.is_innovative(packet.encoding_vector), second.add(*packet), second.arrivals[:]]
        results.append((steps, second.rows))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    # galois compiles parts of each field's arithmetic. Prime fields differ in the bytes of a symbol.
    "order",
    [pytest.param(order, marks=() if order in GALOIS_ORDERS else pytest.mark.family) for order in ORDERS],
)
@pytest.mark.parametrize("rows, count, symbols", [(1, 1, 1), (5, 3, 7), (5, 9, 1500), (13, 4, 900), (64, 2, 4100)])
def test_linear_combinations_equal_those_of_galois(order, rows, count, symbols):
    gf = field(order)
    random = stream(order, rows)
    matrix = [[random.below(order) for _ in range(symbols)] for _ in range(rows)]
    coefficients = [[random.below(order) for _ in range(rows)] for _ in range(count)]
    combined = bulk_fields.Rows(gf, [gf.pack(row) for row in matrix]).combine_all(coefficients)
    expected = gf.galois(coefficients) @ gf.galois(matrix)
    assert [gf.unpack(row, symbols) for row in combined] == expected.tolist()


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("order", GALOIS_ORDERS)
@given(st.integers(1, 5), st.integers(0, 2**32))
@settings(max_examples=8)
def test_rank_grows_exactly_for_the_packets_that_are_innovative_by_galois(order, bulk, generation_size, seed):
    gf, random = field(order), stream(seed)
    encoder = Encoder(split(bytes(20), generation_size, order), order, stream(seed, 1), density=0.5)
    decoder = Decoder(generation_size, order, bulk=bulk)
    vectors = []
    for _ in range(generation_size + 3):
        if vectors and random.below(3) == 0:  # a vector that depends on the previous ones
            factors = [random.below(order) for _ in vectors]
            vector = tuple((gf.galois(factors) @ gf.galois(vectors)).tolist())
        else:
            vector = rlnc.draw_coefficients(gf, generation_size, random, 0.5)
        rank_before = np.linalg.matrix_rank(gf.galois(vectors)) if vectors else 0
        vectors.append(vector)
        reduced = gf.galois(vectors).row_reduce()
        grows = int(np.linalg.matrix_rank(gf.galois(vectors))) > rank_before
        assert decoder.is_innovative(vector) == grows
        assert decoder.add(*encoder.combine(vector)) == grows
        assert [list(row) for row, _ in decoder.rows] == [row for row in reduced.tolist() if any(row)]


@pytest.mark.parametrize("order", GALOIS_ORDERS)
def test_ranks_of_a_batch_equal_those_of_galois(order):
    gf, random = field(order), stream(order)
    matrices = [[[random.below(order) * random.below(2) for _ in range(4)] for _ in range(5)] for _ in range(12)]
    expected = [int(np.linalg.matrix_rank(gf.galois(matrix))) for matrix in matrices]
    assert bulk_fields.ranks(gf, matrices).tolist() == expected
    assert len(set(expected)) > 1


@pytest.mark.parametrize("order", GALOIS_ORDERS)
def test_innovative_vectors_of_a_batch_are_the_same_as_one_by_one(order):
    gf, random = field(order), stream(order)
    matrix = bulk_fields.Elimination(gf, 6, 0)
    for _ in range(4):
        matrix.insert(gf.pack([random.below(order) for _ in range(6)]), b"")
    vectors = [[0] * 6] + [[random.below(order) for _ in range(6)] for _ in range(10)]
    vectors += [gf.unpack(matrix.vector(pivot), 6) for pivot in range(6) if any(matrix.vector(pivot))]
    are_innovative = matrix.are_innovative(vectors).tolist()
    assert are_innovative == [matrix.is_innovative(gf.pack(vector)) for vector in vectors]
    assert len(set(are_innovative)) == 2 and not are_innovative[0]


def test_a_batch_with_an_invalid_symbol_is_refused():
    for wrong in (-1, 16):
        with pytest.raises(DecodeError, match="symbol is "):
            bulk_fields.ranks(field(16), [[[0, wrong]]])
        with pytest.raises(DecodeError, match="symbol is "):
            bulk_fields.Elimination(field(16), 2, 0).are_innovative([[0, wrong]])
    assert bulk_fields.ranks(field(16), np.zeros((0, 3, 3))).tolist() == []


# Large generations


@pytest.mark.parametrize("order", ORDERS)
@given(
    st.sampled_from([1, 2, 3, 8, 31, 64]),
    st.sampled_from([0, 1, 63, 1000, 1 << 13, (1 << 16) - 1, 1 << 16]),
    st.integers(0, 2**32),
)
@settings(max_examples=6)
def test_decode_undoes_encode_up_to_64_chunks_and_64_KiB_over_lossy_hops(order, generation_size, size_B, seed):
    if order % 2:
        size_B = min(size_B, 1 << 13)  # prime fields are for teaching: packing their symbols takes time
    data, chance = data_of(size_B, seed), stream(seed, 1)
    encoder = Encoder(split(data, generation_size, order), order, stream(seed), systematic=chance.below(2) == 0)
    hops = [Decoder(generation_size, order) for _ in range(3)]
    recoders = [Recoder(hop, stream(seed, 2, index)) for index, hop in enumerate(hops)]
    for _ in range(8 * generation_size + 100):
        if hops[-1].is_complete:
            break
        packets = [encoder.encode()] + [
            recoder.recode() for recoder, hop in zip(recoders, hops[1:], strict=False) if recoder.decoder.rank
        ]
        for hop, packet in zip(hops, packets, strict=False):
            for _ in range((0, 1, 1, 2)[chance.below(4)]):  # lost, or received once or twice
                expected, before = hop.is_innovative(packet.encoding_vector), hop.rank
                assert hop.add(*packet) is expected
                assert hop.rank == before + expected
    assert all(join(hop.decode(), size_B) == data for hop in hops)


# When it is used


def loaded_after(code):
    program = f"{code}\nimport sys\nprint('numba' in sys.modules, 'numpy' in sys.modules)"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=True
    ).stdout.split()


@pytest.mark.family
def test_numba_is_loaded_only_for_large_generations():
    small = "from workbench.coding.rlnc import *\nDecoder(3).add(*Encoder([b'a', b'b', b'c']).encode())"
    assert loaded_after(small) == ["False", "False"]
    assert loaded_after(f"{small}\nEncoder([bytes(1000)] * 8)") == ["True", "True"]


def test_without_numba_coding_is_plain_unless_bulk_is_requested(monkeypatch):
    monkeypatch.delattr(workbench, "bulk_fields", raising=False)
    monkeypatch.setitem(sys.modules, "workbench.coding.bulk", None)
    chunks = split(data_of(4000), 4)
    encoder, decoder = Encoder(chunks), Decoder(4)
    while not decoder.is_complete:
        decoder.add(*encoder.encode())
    assert decoder.decode() == chunks
    with pytest.raises(ImportError):
        Encoder(chunks, bulk=True)

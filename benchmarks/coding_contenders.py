"""Who codes: the workbench, galois, plain C and ISA-L, each with the same generation to encode and to decode.

All are given the same coefficients, and the same chunks have to come out: `Contender.check` says so before anything is
measured. What a contender cannot do is left out (ISA-L has no rank).
"""

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import galois
import numpy as np
from native import built
from numpy.ctypeslib import ndpointer

from workbench import draws
from workbench.coding.bulk import Elimination, Rows
from workbench.coding.fields import field
from workbench.coding.rlnc import Decoder, Encoder

BYTES = ndpointer("uint8", flags="C_CONTIGUOUS")
NUMBER = ctypes.c_int64


@lru_cache
def _gf() -> type[galois.FieldArray]:
    """Return galois' GF(2^8), whose import alone compiles for seconds."""
    return galois.GF(256)


class Generation(NamedTuple):
    """Chunks, as many encoding vectors of full rank, and the information vectors that belong to them, as arrays."""

    chunks: np.ndarray
    vectors: np.ndarray
    informations: np.ndarray


class Contender(NamedTuple):
    """One that codes. Each function takes what it works on and gives a job without arguments.

    A job of ``encode(generation)`` gives all information vectors, one of ``decode(generation)`` the chunks; one of
    ``innovative(rows, vectors)`` says how many of the vectors depend on none of the rows.
    """

    name: str
    encode: Callable[[Generation], Callable[[], np.ndarray]]
    decode: Callable[[Generation], Callable[[], np.ndarray]]
    innovative: Callable[[np.ndarray, np.ndarray], Callable[[], int]] | None

    def check(self, generation: Generation) -> None:
        """Raise AssertionError unless what comes out is what has to."""
        assert np.array_equal(self.encode(generation)(), generation.informations), f"{self.name} encodes otherwise"
        assert np.array_equal(self.decode(generation)(), generation.chunks), f"{self.name} decodes otherwise"


def generation(chunks: int, size_B: int) -> Generation:
    """A generation of drawn bytes and coefficients, in GF(2^8)."""
    random = draws.Stream(draws.make_key(1, chunks, size_B))

    def drawn(rows: int, columns: int) -> np.ndarray:
        words = np.array([random.bits() for _ in range((rows * columns + 7) // 8)], np.uint64)
        return words.view(np.uint8)[: rows * columns].reshape(rows, columns).copy()

    data, vectors = drawn(chunks, size_B), drawn(chunks, chunks)
    while np.linalg.matrix_rank(_gf()(vectors)) < chunks:
        vectors = drawn(chunks, chunks)
    return Generation(data, vectors, np.array(_gf()(vectors) @ _gf()(data)))


def _array(rows: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


# The workbench: packet by packet as a protocol does it, and all packets at once


def _our_encode(one: Generation) -> Callable[[], np.ndarray]:
    encoder, vectors = Encoder([row.tobytes() for row in one.chunks]), one.vectors.tolist()
    return lambda: _array([encoder.combine(vector).information_vector for vector in vectors])


def _our_decode(one: Generation) -> Callable[[], np.ndarray]:
    packets = list(zip(one.vectors.tolist(), [row.tobytes() for row in one.informations], strict=True))

    def job() -> np.ndarray:
        decoder = Decoder(len(packets))
        for packet in packets:
            decoder.add(*packet)
        return _array(decoder.decode())

    return job


def _our_innovative(rows: np.ndarray, vectors: np.ndarray) -> Callable[[], int]:
    decoder, asked = Decoder(rows.shape[1], bulk=True), vectors.tolist()
    for row in rows.tolist():
        decoder.add(row, b"")
    return lambda: sum(decoder.is_innovative(vector) for vector in asked)


def _our_rows(one: Generation) -> Callable[[], np.ndarray]:
    rows = Rows(field(256), [row.tobytes() for row in one.chunks])
    return lambda: _array(rows.combine_all(one.vectors))


def _our_matrix(one: Generation) -> Callable[[], np.ndarray]:
    vectors, informations = ([row.tobytes() for row in rows] for rows in (one.vectors, one.informations))

    def job() -> np.ndarray:
        matrix = Elimination(field(256), len(vectors), len(informations[0]))
        for vector, information in zip(vectors, informations, strict=True):
            matrix.insert(vector, information)
        return _array(matrix.informations(range(len(vectors))))

    return job


def _our_batch(rows: np.ndarray, vectors: np.ndarray) -> Callable[[], int]:
    matrix = Elimination(field(256), rows.shape[1], 0)
    for row in rows:
        matrix.insert(row.tobytes(), b"")
    return lambda: int(matrix.are_innovative(vectors).sum())


# galois


def _galois_encode(one: Generation) -> Callable[[], np.ndarray]:
    vectors, chunks = _gf()(one.vectors), _gf()(one.chunks)
    return lambda: np.asarray(vectors @ chunks)


def _galois_decode(one: Generation) -> Callable[[], np.ndarray]:
    vectors, informations = _gf()(one.vectors), _gf()(one.informations)
    return lambda: np.asarray(np.linalg.inv(vectors) @ informations)


def _galois_innovative(rows: np.ndarray, vectors: np.ndarray) -> Callable[[], int]:
    known, asked = _gf()(rows), _gf()(vectors)
    return lambda: sum(int(np.linalg.matrix_rank(np.vstack([known, one]))) > len(known) for one in asked)


# C


@lru_cache
def _plain_library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(built("coding_plain.c", flags=("-O3", "-march=native", "-shared", "-fPIC"))))
    library.encode.argtypes = [NUMBER, BYTES, BYTES, BYTES, NUMBER, NUMBER, NUMBER]
    library.decode.argtypes = [NUMBER, BYTES, BYTES, BYTES, NUMBER, NUMBER]
    library.innovative.argtypes = [NUMBER, BYTES, BYTES, BYTES, NUMBER, NUMBER]
    library.encode.restype = None
    library.decode.restype = library.innovative.restype = NUMBER
    library.make_tables()
    return library


def plain_c(name: str, way: int) -> Contender:
    """Plain C, by a table (way 0) or by shifts (way 1); native.Absent without a compiler."""
    library = _plain_library()

    def encode(one: Generation) -> Callable[[], np.ndarray]:
        out = np.empty_like(one.informations)
        m, size_B = one.chunks.shape
        return lambda: library.encode(way, out, one.chunks, one.vectors, m, m, size_B) or out

    def decode(one: Generation) -> Callable[[], np.ndarray]:
        m, size_B = one.chunks.shape
        matrix = np.empty((m, m + size_B), np.uint8)

        def job() -> np.ndarray:
            assert library.decode(way, matrix, one.vectors, one.informations, m, size_B) == m
            return matrix[:, m:]

        return job

    def innovative(rows: np.ndarray, vectors: np.ndarray) -> Callable[[], int]:
        m = rows.shape[1]
        matrix, present = np.zeros((m, m), np.uint8), np.zeros(m, np.uint8)
        for row in np.asarray(_gf()(rows).row_reduce()):
            pivot = int(np.flatnonzero(row)[0])
            matrix[pivot], present[pivot] = row, 1
        return lambda: library.innovative(way, matrix, present, vectors, len(vectors), m)

    return Contender(name, encode, decode, innovative)


@lru_cache
def isa_l() -> Contender:
    """Intel's library; native.Absent where it is not installed."""
    flags = ("-O3", "-march=native", "-shared", "-fPIC")
    library = ctypes.CDLL(str(built("coding_isal.c", flags=flags, libraries=("-lisal",))))
    library.encode.argtypes = [BYTES, BYTES, BYTES, NUMBER, NUMBER, NUMBER]
    library.decode.argtypes = [BYTES, BYTES, BYTES, NUMBER, NUMBER]
    library.encode.restype, library.decode.restype = None, NUMBER

    def encode(one: Generation) -> Callable[[], np.ndarray]:
        out = np.empty_like(one.informations)
        m, size_B = one.chunks.shape
        return lambda: library.encode(out, one.chunks, one.vectors, m, m, size_B) or out

    def decode(one: Generation) -> Callable[[], np.ndarray]:
        out = np.empty_like(one.chunks)
        m, size_B = one.chunks.shape

        def job() -> np.ndarray:
            assert library.decode(out, one.vectors, one.informations, m, size_B) == m
            return out

        return job

    return Contender("ISA-L", encode, decode, None)


OURS = Contender("workbench, packet by packet", _our_encode, _our_decode, _our_innovative)
OURS_AT_ONCE = Contender("workbench, all at once", _our_rows, _our_matrix, _our_batch)
GALOIS = Contender("galois", _galois_encode, _galois_decode, _galois_innovative)
MAKERS: tuple[tuple[str, Callable[[], Contender]], ...] = (
    ("plain C, table", lambda: plain_c("plain C, table", 0)),
    ("plain C, shifts", lambda: plain_c("plain C, shifts", 1)),
    ("ISA-L", isa_l),
)

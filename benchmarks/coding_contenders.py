"""Contenders in network coding: the workbench, galois, plain C and ISA-L, with the same generation.

All contenders get the same coefficients and must return the same chunks; `Contender.check` verifies this before any
measurement. A function that a contender lacks is None (ISA-L computes no rank).
"""

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import galois
import numpy as np
from native import compile_source
from numpy.ctypeslib import ndpointer

from workbench import draws
from workbench.coding.bulk import Elimination, Rows
from workbench.coding.fields import field
from workbench.coding.rlnc import Decoder, Encoder

BYTES = ndpointer("uint8", flags="C_CONTIGUOUS")
NUMBER = ctypes.c_int64


@lru_cache
def _galois_field() -> type[galois.FieldArray]:
    """Return the class of galois for GF(2^8). Its import takes seconds, because galois compiles code."""
    return galois.GF(256)


class Generation(NamedTuple):
    """A generation: chunks, encoding vectors of full rank (one per chunk), and their information vectors, as arrays."""

    chunks: np.ndarray
    vectors: np.ndarray
    informations: np.ndarray


class Contender(NamedTuple):
    """A contender: a name and functions that return jobs, which are functions without arguments.

    A job of ``encode(generation)`` returns all information vectors, a job of ``decode(generation)`` the chunks.
    A job of ``innovative(rows, vectors)`` returns the number of vectors that are linearly independent of the rows.
    """

    name: str
    encode: Callable[[Generation], Callable[[], np.ndarray]]
    decode: Callable[[Generation], Callable[[], np.ndarray]]
    innovative: Callable[[np.ndarray, np.ndarray], Callable[[], int]] | None

    def check(self, generation: Generation) -> None:
        """Raise AssertionError unless this contender encodes and decodes a generation correctly."""
        assert np.array_equal(self.encode(generation)(), generation.informations), f"{self.name} encodes wrongly"
        assert np.array_equal(self.decode(generation)(), generation.chunks), f"{self.name} decodes wrongly"


def generation(chunks: int, size_B: int) -> Generation:
    """Return a generation of ``chunks`` chunks of ``size_B`` random bytes, with random coefficients in GF(2^8)."""
    random = draws.Stream(draws.make_key(1, chunks, size_B))

    def draw_array(rows: int, columns: int) -> np.ndarray:
        words = np.array([random.bits() for _ in range((rows * columns + 7) // 8)], np.uint64)
        return words.view(np.uint8)[: rows * columns].reshape(rows, columns).copy()

    data, vectors = draw_array(chunks, size_B), draw_array(chunks, chunks)
    while np.linalg.matrix_rank(_galois_field()(vectors)) < chunks:
        vectors = draw_array(chunks, chunks)
    return Generation(data, vectors, np.array(_galois_field()(vectors) @ _galois_field()(data)))


def _join_rows(rows: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)


# The workbench: packet by packet, as in a protocol, and all packets at once


def _our_encode(coded: Generation) -> Callable[[], np.ndarray]:
    encoder, vectors = Encoder([row.tobytes() for row in coded.chunks]), coded.vectors.tolist()
    return lambda: _join_rows([encoder.combine(vector).information_vector for vector in vectors])


def _our_decode(coded: Generation) -> Callable[[], np.ndarray]:
    packets = list(zip(coded.vectors.tolist(), [row.tobytes() for row in coded.informations], strict=True))

    def job() -> np.ndarray:
        decoder = Decoder(len(packets))
        for packet in packets:
            decoder.add(*packet)
        return _join_rows(decoder.decode())

    return job


def _our_innovative(rows: np.ndarray, vectors: np.ndarray) -> Callable[[], int]:
    decoder, tested = Decoder(rows.shape[1], bulk=True), vectors.tolist()
    for row in rows.tolist():
        decoder.add(row, b"")
    return lambda: sum(decoder.is_innovative(vector) for vector in tested)


def _our_encode_at_once(coded: Generation) -> Callable[[], np.ndarray]:
    rows = Rows(field(256), [row.tobytes() for row in coded.chunks])
    return lambda: _join_rows(rows.combine_all(coded.vectors))


def _our_decode_at_once(coded: Generation) -> Callable[[], np.ndarray]:
    vectors, informations = ([row.tobytes() for row in rows] for rows in (coded.vectors, coded.informations))

    def job() -> np.ndarray:
        matrix = Elimination(field(256), len(vectors), len(informations[0]))
        for vector, information in zip(vectors, informations, strict=True):
            matrix.insert(vector, information)
        return _join_rows(matrix.informations(range(len(vectors))))

    return job


def _our_innovative_at_once(rows: np.ndarray, vectors: np.ndarray) -> Callable[[], int]:
    matrix = Elimination(field(256), rows.shape[1], 0)
    for row in rows:
        matrix.insert(row.tobytes(), b"")
    return lambda: int(matrix.are_innovative(vectors).sum())


# galois


def _galois_encode(coded: Generation) -> Callable[[], np.ndarray]:
    vectors, chunks = _galois_field()(coded.vectors), _galois_field()(coded.chunks)
    return lambda: np.asarray(vectors @ chunks)


def _galois_decode(coded: Generation) -> Callable[[], np.ndarray]:
    vectors, informations = _galois_field()(coded.vectors), _galois_field()(coded.informations)
    return lambda: np.asarray(np.linalg.inv(vectors) @ informations)


def _galois_innovative(rows: np.ndarray, vectors: np.ndarray) -> Callable[[], int]:
    known, tested = _galois_field()(rows), _galois_field()(vectors)
    return lambda: sum(int(np.linalg.matrix_rank(np.vstack([known, vector]))) > len(known) for vector in tested)


# C


@lru_cache
def _plain_library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(compile_source("coding_plain.c", flags=("-O3", "-march=native", "-shared", "-fPIC"))))
    library.encode.argtypes = [NUMBER, BYTES, BYTES, BYTES, NUMBER, NUMBER, NUMBER]
    library.decode.argtypes = [NUMBER, BYTES, BYTES, BYTES, NUMBER, NUMBER]
    library.innovative.argtypes = [NUMBER, BYTES, BYTES, BYTES, NUMBER, NUMBER]
    library.encode.restype = None
    library.decode.restype = library.innovative.restype = NUMBER
    library.make_tables()
    return library


def plain_c(name: str, method: int) -> Contender:
    """Return plain C as a contender; its code multiplies by a table (``method`` 0) or by shifts (``method`` 1).

    Raises native.Absent without a compiler.
    """
    library = _plain_library()

    def encode(coded: Generation) -> Callable[[], np.ndarray]:
        out = np.empty_like(coded.informations)
        m, size_B = coded.chunks.shape
        return lambda: library.encode(method, out, coded.chunks, coded.vectors, m, m, size_B) or out

    def decode(coded: Generation) -> Callable[[], np.ndarray]:
        m, size_B = coded.chunks.shape
        matrix = np.empty((m, m + size_B), np.uint8)

        def job() -> np.ndarray:
            assert library.decode(method, matrix, coded.vectors, coded.informations, m, size_B) == m
            return matrix[:, m:]

        return job

    def innovative(rows: np.ndarray, vectors: np.ndarray) -> Callable[[], int]:
        m = rows.shape[1]
        matrix, present = np.zeros((m, m), np.uint8), np.zeros(m, np.uint8)
        for row in np.asarray(_galois_field()(rows).row_reduce()):
            pivot = int(np.flatnonzero(row)[0])
            matrix[pivot], present[pivot] = row, 1
        return lambda: library.innovative(method, matrix, present, vectors, len(vectors), m)

    return Contender(name, encode, decode, innovative)


@lru_cache
def isa_l() -> Contender:
    """Return Intel's library ISA-L as a contender. Raises native.Absent if it is not installed."""
    flags = ("-O3", "-march=native", "-shared", "-fPIC")
    library = ctypes.CDLL(str(compile_source("coding_isal.c", flags=flags, libraries=("-lisal",))))
    library.encode.argtypes = [BYTES, BYTES, BYTES, NUMBER, NUMBER, NUMBER]
    library.decode.argtypes = [BYTES, BYTES, BYTES, NUMBER, NUMBER]
    library.encode.restype, library.decode.restype = None, NUMBER

    def encode(coded: Generation) -> Callable[[], np.ndarray]:
        out = np.empty_like(coded.informations)
        m, size_B = coded.chunks.shape
        return lambda: library.encode(out, coded.chunks, coded.vectors, m, m, size_B) or out

    def decode(coded: Generation) -> Callable[[], np.ndarray]:
        out = np.empty_like(coded.chunks)
        m, size_B = coded.chunks.shape

        def job() -> np.ndarray:
            assert library.decode(out, coded.vectors, coded.informations, m, size_B) == m
            return out

        return job

    return Contender("ISA-L", encode, decode, None)


OURS = Contender("workbench, packet by packet", _our_encode, _our_decode, _our_innovative)
OURS_AT_ONCE = Contender("workbench, all at once", _our_encode_at_once, _our_decode_at_once, _our_innovative_at_once)
GALOIS = Contender("galois", _galois_encode, _galois_decode, _galois_innovative)
MAKERS: tuple[tuple[str, Callable[[], Contender]], ...] = (
    ("plain C, table", lambda: plain_c("plain C, table", 0)),
    ("plain C, shifts", lambda: plain_c("plain C, shifts", 1)),
    ("ISA-L", isa_l),
)

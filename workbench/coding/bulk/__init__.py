"""Numpy and numba versions of `coding.fields` and of the matrices of `coding.rlnc`. Never loaded on a mote.

Theory of operation
    `Rows` and `Elimination` have the methods and results of their counterparts in `workbench.coding.rlnc`.

    *Combinations in GF(2^k)* use no tables of products. The sum of coefficient times row is computed one bit of the
    coefficients at a time (Horner's rule). For each bit, highest first, the sum so far is multiplied by x, and the rows
    whose coefficient has that bit are added. So a combination of any number of rows takes k - 1 multiplications by x.
    All other steps are exclusive ors, which compilers turn into vector instructions. Symbols are packed into 64-bit
    words; shifts and masks multiply all symbols of a word by x at once. Rows are processed in blocks that stay in the
    processor's caches while all combinations of them are computed. For several combinations, rows are taken in groups
    of four, and the sixteen possible sums of each group are computed first (the method of four Russians). Then each
    group costs one exclusive or instead of four.

    *Elimination* stores information vectors unchanged, as they arrived. A row of its matrix is an encoding vector,
    followed by the row's *origin*: m coefficients that show which linear combination of the stored packets the row is.
    So an added packet costs row operations on 2 m symbols and one copy of its information vector. The information
    vector of a row is computed from its origin, only on request.

    *Prime fields* add products of integers in 64 bits and reduce the sum once.

Cost
    A combination of m rows of n bytes in GF(2^k) takes m k n / 2 exclusive ors of bytes, 32 or 64 at a time. If
    several combinations are computed together, each takes half as many. See benchmarks/coding.py. The first
    use in a process loads numba; the first use on a machine compiles for some seconds, and the result is cached.

Limits
    Little-endian machines only, like numba.

Reference
    M. Albrecht, G. Bard, W. Hart: Algorithm 898: Efficient multiplication of dense matrices over GF(2), ACM Trans.
    Math. Softw. 37(1), 2010.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.coding.bulk.kernels import (
    are_innovative_binary,
    are_innovative_prime,
    combine_binary,
    combine_prime,
    insert_binary,
    insert_prime,
    pack_binary,
    unpack_binary,
)
from workbench.coding.fields import Field


def galois_class(field: Field) -> Any:
    """Return the array class of the Python library `galois` for a field."""
    import galois

    polynomial = galois.Poly.Int(field.polynomial) if field.polynomial and field.degree > 1 else None
    return galois.GF(field.order, irreducible_poly=polynomial)


def _make_lanes(field: Field) -> np.ndarray:
    """Return ``lanes``, the four 64-bit words that describe a field GF(2^k) to the functions of `kernels`.

    They are: a mask of all bits except the highest bit of each symbol; a mask of the lowest bit of each symbol; the
    field's polynomial without x^k, repeated in each symbol; and k.
    """
    lowest_bits = sum(1 << shift for shift in range(0, 64, field.degree))
    repeated_polynomial = (field.polynomial ^ field.order) * lowest_bits
    all_but_highest_bits = lowest_bits * (field.order - 1) ^ lowest_bits << (field.degree - 1)
    return np.array([all_but_highest_bits, lowest_bits, repeated_polynomial, field.degree], np.uint64)


# Fields as arrays: the operations in which the two kinds of field differ


class _Binary:
    """Array operations of a field GF(2^k). A row is its symbols packed into 64-bit words and padded with zero bits."""

    element = np.dtype("<u8")

    def __init__(self, field: Field) -> None:
        self.field = field
        self.lanes = _make_lanes(field)

    def width(self, symbols: int) -> int:
        return -(-symbols * self.field.degree // 64)

    def load(self, out: np.ndarray, packed: Any) -> None:
        """Copy a row's packed bytes into ``out``, which must contain zeros."""
        out.view(np.uint8)[: len(packed)] = np.frombuffer(packed, np.uint8)

    def unload(self, row: np.ndarray, size_B: int) -> bytes:
        return row.view(np.uint8)[:size_B].tobytes()

    def pack(self, symbols: np.ndarray) -> np.ndarray:
        rows = np.zeros((len(symbols), self.width(symbols.shape[1])), self.element)
        pack_binary(rows, symbols, self.field.degree)
        return rows

    def unpack(self, rows: np.ndarray, count: int) -> np.ndarray:
        symbols = np.empty((len(rows), count), np.uint16)
        unpack_binary(symbols, rows, self.field.degree)
        return symbols

    def combine(self, rows: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        out = np.empty((len(coefficients), rows.shape[1]), self.element)
        combine_binary(out, rows, coefficients, self.lanes)
        return out

    def insert(self, vector: bytes, matrix: np.ndarray, has_row: np.ndarray, rank: int) -> int:
        return int(insert_binary(np.frombuffer(vector, np.uint8), matrix, has_row, rank, self.lanes))

    def are_innovative(self, rows: np.ndarray, matrix: np.ndarray, has_row: np.ndarray) -> np.ndarray:
        out = np.empty(len(rows), np.bool_)
        are_innovative_binary(out, rows, matrix, has_row, self.lanes)
        return out


class _Prime:
    """Array operations of a prime field. A row is an array of symbols."""

    element = np.dtype("<u2")

    def __init__(self, field: Field) -> None:
        self.field = field
        self.packed = np.dtype("u1" if field.symbol_bits == 8 else "<u2")

    def width(self, symbols: int) -> int:
        return symbols

    def load(self, out: np.ndarray, packed: Any) -> None:
        symbols = np.frombuffer(packed, self.packed)
        out[: symbols.size] = symbols

    def unload(self, row: np.ndarray, size_B: int) -> bytes:
        return row.astype(self.packed).tobytes()[:size_B]

    def pack(self, symbols: np.ndarray) -> np.ndarray:
        return symbols.astype(self.element)  # a copy: kernels work in place

    def unpack(self, rows: np.ndarray, count: int) -> np.ndarray:
        return rows[:, :count]

    def combine(self, rows: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        out = np.empty((len(coefficients), rows.shape[1]), self.element)
        combine_prime(out, rows, coefficients, self.field.order)
        return out

    def insert(self, vector: bytes, matrix: np.ndarray, has_row: np.ndarray, rank: int) -> int:
        symbols = np.frombuffer(vector, self.packed).astype(self.element)
        return int(insert_prime(symbols, matrix, has_row, rank, self.field.order))

    def are_innovative(self, rows: np.ndarray, matrix: np.ndarray, has_row: np.ndarray) -> np.ndarray:
        out = np.empty(len(rows), np.bool_)
        are_innovative_prime(out, rows, matrix, has_row, self.field.order)
        return out


_arithmetics: dict[int, _Binary | _Prime] = {}


def _get_arithmetic(field: Field) -> _Binary | _Prime:
    if field.order not in _arithmetics:
        _arithmetics[field.order] = _Binary(field) if field.characteristic == 2 else _Prime(field)
    return _arithmetics[field.order]


class Rows:
    """Rows of equal length, stored for repeated linear combinations: a faster `workbench.coding.rlnc.Rows`."""

    def __init__(self, field: Field, rows: Sequence[bytes]) -> None:
        self.arithmetic = _get_arithmetic(field)
        self.size_B = len(rows[0])
        width = self.arithmetic.width(self.size_B * 8 // field.symbol_bits)
        self.rows = np.zeros((len(rows), width), self.arithmetic.element)
        for array_row, row in zip(self.rows, rows, strict=True):
            self.arithmetic.load(array_row, row)

    def combine(self, coefficients: Sequence[int]) -> bytes:
        """Return the sum of the rows, each multiplied by its coefficient, as bytes."""
        return self.combine_all([coefficients])[0]

    def combine_all(self, coefficients: Any) -> list[bytes]:
        """Return a list of linear combinations of the rows, as bytes.

        ``coefficients``: a matrix with a row for each combination and a column for each of the rows.
        """
        combined_rows = self.arithmetic.combine(self.rows, np.asarray(coefficients, np.uint16))
        return [self.arithmetic.unload(row, self.size_B) for row in combined_rows]


class Elimination:
    """A matrix in reduced row echelon form that grows row by row: a faster `workbench.coding.rlnc.Elimination`.

    If ``has_row[pivot]`` is true, row ``pivot`` of ``matrix`` is an encoding vector whose first nonzero column is
    ``pivot``, followed by the row's origin: the coefficient of each linearly independent packet in this row.
    ``information_vectors`` contains the information vectors of these packets in the order of arrival.
    """

    def __init__(self, field: Field, generation_size: int, information_B: int) -> None:
        self.arithmetic = arithmetic = _get_arithmetic(field)
        self.field = field
        self.generation_size = generation_size
        self.rank = 0
        self._vector_B = field.size_B(generation_size)
        self._information_B = information_B
        self._width = arithmetic.width(generation_size)
        information_width = arithmetic.width(information_B * 8 // field.symbol_bits)
        self.matrix = np.zeros((generation_size, 2 * self._width), arithmetic.element)
        self.has_row = np.zeros(generation_size, np.bool_)
        self.information_vectors = np.zeros((generation_size, information_width), arithmetic.element)

    def insert(self, vector: bytes, information: bytes) -> int | None:
        """Insert a packet as a row if its encoding vector is linearly independent; return the row's pivot, or None.

        ``vector``: the packed encoding vector; ``information``: the packed information vector.
        """
        pivot = self.arithmetic.insert(vector, self.matrix, self.has_row, self.rank)
        if pivot < 0:
            return None
        self.arithmetic.load(self.information_vectors[self.rank], information)
        self.rank += 1
        return pivot

    def is_innovative(self, vector: bytes) -> bool:
        """Return whether an encoding vector is linearly independent of the matrix's rows."""
        packed_row = np.zeros((1, self._width), self.arithmetic.element)
        self.arithmetic.load(packed_row[0], vector)
        return bool(self.arithmetic.are_innovative(packed_row, self.matrix, self.has_row)[0])

    def are_innovative(self, vectors: Any) -> np.ndarray:
        """Return whether each encoding vector is linearly independent of the matrix's rows, as a boolean array.

        ``vectors``: the encoding vectors, the rows of a matrix of symbols.
        """
        packed_rows = self.arithmetic.pack(_to_symbols(self.field, vectors))
        return self.arithmetic.are_innovative(packed_rows, self.matrix, self.has_row)

    def vector(self, pivot: int) -> bytes:
        """Return the packed encoding vector of the matrix row whose first nonzero column is ``pivot``."""
        return self.arithmetic.unload(self.matrix[pivot, : self._width], self._vector_B)

    def informations(self, pivots: Sequence[int]) -> list[bytes]:
        """Return the information vectors (the data) of the matrix rows whose first nonzero columns are ``pivots``."""
        return self._combine_informations(self.matrix[list(pivots)])

    def combine(self, pivots: Sequence[int], coefficients: Sequence[int]) -> tuple[bytes, bytes]:
        """Return (packed encoding vector, information vector) of a linear combination of rows.

        ``pivots``: first nonzero columns of the rows to combine. ``coefficients``: the factor of each of these rows.
        """
        matrix_rows = self.matrix[list(pivots)]
        sum_row = self.arithmetic.combine(matrix_rows, np.array([coefficients], np.uint16))
        return self.arithmetic.unload(sum_row[0, : self._width], self._vector_B), self._combine_informations(sum_row)[0]

    def _combine_informations(self, rows: np.ndarray) -> list[bytes]:
        """Return the information vector of each row in ``rows``, an array of rows like those of ``matrix``.

        The second half of a row has a coefficient for each stored information vector. The result is the sum of these
        vectors, each multiplied by its coefficient.
        """
        origins = self.arithmetic.unpack(rows[:, self._width :], self.rank)
        information_rows = self.arithmetic.combine(self.information_vectors[: self.rank], origins)
        return [self.arithmetic.unload(row, self._information_B) for row in information_rows]


def ranks(field: Field, matrices: Any) -> np.ndarray:
    """Return the rank of each matrix in ``matrices``, an array of symbols with the axes (matrix, row, column)."""
    symbols = _to_symbols(field, matrices)
    matrix_ranks = np.zeros(len(symbols), np.int64)
    for index, rows in enumerate(symbols):
        matrix = Elimination(field, symbols.shape[2], 0)
        for row in rows.tolist():
            matrix.insert(field.pack(row), b"")
        matrix_ranks[index] = matrix.rank
    return matrix_ranks


def _to_symbols(field: Field, values: Any) -> np.ndarray:
    """Return ``values`` as an array of symbols. Raises DecodeError if a value is not a symbol of the field."""
    values = np.asarray(values)
    if values.size:
        field.check(int(values.min()))
        field.check(int(values.max()))
    return values.astype(np.uint16)

"""`coding.fields` and the matrices of `coding.rlnc` for whole payloads, with numpy and numba. Never on a mote.

Theory of operation
    `Rows` and `Elimination` are counterparts of those of `workbench.coding.rlnc`: the same methods, the same results.

    *Combinations in GF(2^k)* look up no products. A sum of coefficient times row is taken bit by bit of the
    coefficients (Horner's rule): beginning with the highest bit, what there is is multiplied by x, and the rows whose
    coefficient has that bit are added. So a combination of any number of rows takes k - 1 multiplications by x in all,
    and else exclusive ors, which compilers turn into vector instructions of any width. Symbols are packed into words of
    64 bits; a word is multiplied by x with shifts and masks, all of its symbols at once. Rows are worked on in blocks
    that stay in a processor's first caches while all combinations of them are made. If there are several, the sixteen
    sums of each four rows are made first (the "four Russians" way), and four rows cost one exclusive or.

    *Elimination* keeps information vectors as they came. Behind each encoding vector of the matrix is its *origin*:
    which combination of the packets that came it is. So an added packet costs row operations on 2 m symbols and one
    copy of its information vector, and payloads are computed once, when they are asked for.

    *Prime fields* take products of integers, summed up in 64 bits and reduced once.

Cost
    A combination of m rows of n bytes in GF(2^k): m k n / 2 exclusive ors of bytes, 32 or 64 at a time, a half of that
    if there are several. See benchmarks/coding.py. The first use in a process loads numba; the first use on a machine
    compiles for some seconds, and the result is cached.

Limits
    Little-endian machines, which are all that numba supports.

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
    """The class of arrays of the library galois for a field."""
    import galois

    polynomial = galois.Poly.Int(field.polynomial) if field.polynomial and field.degree > 1 else None
    return galois.GF(field.order, irreducible_poly=polynomial)


def _lanes(field: Field) -> np.ndarray:
    """What multiplies a word of symbols by x: its symbols but the highest bits, lowest bits, polynomials; k."""
    ones = sum(1 << shift for shift in range(0, 64, field.degree))
    low = (field.polynomial ^ field.order) * ones
    keep = ones * (field.order - 1) ^ ones << (field.degree - 1)
    return np.array([keep, ones, low, field.degree], np.uint64)


# Fields as arrays: what differs between the two kinds


class _Binary:
    """GF(2^k): a row is words of 64 bits, with zeros behind its symbols."""

    element = np.dtype("<u8")

    def __init__(self, field: Field) -> None:
        self.field = field
        self.lanes = _lanes(field)

    def width(self, symbols: int) -> int:
        return -(-symbols * self.field.degree // 64)

    def load(self, out: np.ndarray, packed: Any) -> None:
        """Copy packed symbols into a row that is zero behind them."""
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

    def insert(self, vector: bytes, matrix: np.ndarray, present: np.ndarray, rank: int) -> int:
        return int(insert_binary(np.frombuffer(vector, np.uint8), matrix, present, rank, self.lanes))

    def are_innovative(self, rows: np.ndarray, matrix: np.ndarray, present: np.ndarray) -> np.ndarray:
        out = np.empty(len(rows), np.bool_)
        are_innovative_binary(out, rows, matrix, present, self.lanes)
        return out


class _Prime:
    """A prime field: a row has a symbol in each element."""

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

    def insert(self, vector: bytes, matrix: np.ndarray, present: np.ndarray, rank: int) -> int:
        symbols = np.frombuffer(vector, self.packed).astype(self.element)
        return int(insert_prime(symbols, matrix, present, rank, self.field.order))

    def are_innovative(self, rows: np.ndarray, matrix: np.ndarray, present: np.ndarray) -> np.ndarray:
        out = np.empty(len(rows), np.bool_)
        are_innovative_prime(out, rows, matrix, present, self.field.order)
        return out


_arithmetics: dict[int, _Binary | _Prime] = {}


def _arithmetic(field: Field) -> _Binary | _Prime:
    if field.order not in _arithmetics:
        _arithmetics[field.order] = _Binary(field) if field.characteristic == 2 else _Prime(field)
    return _arithmetics[field.order]


class Rows:
    """Rows of one length that are combined again and again: the counterpart of `workbench.coding.rlnc.Rows`."""

    def __init__(self, field: Field, rows: Sequence[bytes]) -> None:
        self.arithmetic = _arithmetic(field)
        self.size_B = len(rows[0])
        width = self.arithmetic.width(self.size_B * 8 // field.symbol_bits)
        self.rows = np.zeros((len(rows), width), self.arithmetic.element)
        for out, row in zip(self.rows, rows, strict=True):
            self.arithmetic.load(out, row)

    def combine(self, coefficients: Sequence[int]) -> bytes:
        """The sum of coefficient times row, as bytes."""
        return self.combine_all([coefficients])[0]

    def combine_all(self, coefficients: Any) -> list[bytes]:
        """The sums for each row of a matrix of coefficients."""
        combined = self.arithmetic.combine(self.rows, np.asarray(coefficients, np.uint16))
        return [self.arithmetic.unload(row, self.size_B) for row in combined]


class Elimination:
    """A matrix in reduced row echelon form that grows row by row: `workbench.coding.rlnc.Elimination`'s counterpart.

    ``matrix`` has encoding vectors and their origins in rows, each at its pivot, where ``present`` says so; ``came``
    has the information vectors as they came.
    """

    def __init__(self, field: Field, generation_size: int, information_B: int) -> None:
        self.arithmetic = arithmetic = _arithmetic(field)
        self.field = field
        self.generation_size = generation_size
        self.rank = 0
        self._vector_B = field.size_B(generation_size)
        self._information_B = information_B
        self._width = arithmetic.width(generation_size)
        width = arithmetic.width(information_B * 8 // field.symbol_bits)
        self.matrix = np.zeros((generation_size, 2 * self._width), arithmetic.element)
        self.present = np.zeros(generation_size, np.bool_)
        self.came = np.zeros((generation_size, width), arithmetic.element)

    def insert(self, vector: bytes, information: bytes) -> int | None:
        """Take a row unless it depends on those there are; gives its pivot, or None."""
        pivot = self.arithmetic.insert(vector, self.matrix, self.present, self.rank)
        if pivot < 0:
            return None
        self.arithmetic.load(self.came[self.rank], information)
        self.rank += 1
        return pivot

    def is_innovative(self, vector: bytes) -> bool:
        """Whether an encoding vector is no linear combination of the rows'."""
        row = np.zeros((1, self._width), self.arithmetic.element)
        self.arithmetic.load(row[0], vector)
        return bool(self.arithmetic.are_innovative(row, self.matrix, self.present)[0])

    def are_innovative(self, vectors: Any) -> np.ndarray:
        """`is_innovative` of each row of a matrix of symbols, as booleans: for notebooks."""
        rows = self.arithmetic.pack(_symbols(self.field, vectors))
        return self.arithmetic.are_innovative(rows, self.matrix, self.present)

    def vector(self, pivot: int) -> bytes:
        """The packed encoding vector of the row with that pivot."""
        return self.arithmetic.unload(self.matrix[pivot, : self._width], self._vector_B)

    def informations(self, pivots: Sequence[int]) -> list[bytes]:
        """The information vectors of the rows with those pivots."""
        return self._computed(self.matrix[list(pivots)])

    def combine(self, pivots: Sequence[int], coefficients: Sequence[int]) -> tuple[bytes, bytes]:
        """(packed encoding vector, information vector) of the sum of coefficient times row."""
        rows = self.matrix[list(pivots)]
        row = self.arithmetic.combine(rows, np.array([coefficients], np.uint16))
        return self.arithmetic.unload(row[0, : self._width], self._vector_B), self._computed(row)[0]

    def _computed(self, rows: np.ndarray) -> list[bytes]:
        """The information vectors of rows of the matrix, from their origins."""
        origins = self.arithmetic.unpack(rows[:, self._width :], self.rank)
        combined = self.arithmetic.combine(self.came[: self.rank], origins)
        return [self.arithmetic.unload(row, self._information_B) for row in combined]


def ranks(field: Field, matrices: Any) -> np.ndarray:
    """The rank of each matrix of symbols in an array of shape (matrices, rows, columns): for notebooks."""
    symbols = _symbols(field, matrices)
    found = np.zeros(len(symbols), np.int64)
    for index, rows in enumerate(symbols):
        matrix = Elimination(field, symbols.shape[2], 0)
        for row in rows.tolist():
            matrix.insert(field.pack(row), b"")
        found[index] = matrix.rank
    return found


def _symbols(field: Field, values: Any) -> np.ndarray:
    """Symbols as an array; DecodeError if one is none of the field."""
    values = np.asarray(values)
    if values.size:
        field.check(int(values.min()))
        field.check(int(values.max()))
    return values.astype(np.uint16)

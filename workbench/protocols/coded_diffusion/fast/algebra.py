"""Linear algebra of encoding vectors for the fast twin: draw coefficients, insert a row into a matrix, combine rows.

Theory of operation
    The algorithms are those of `workbench.coding.rlnc`, for encoding vectors only. Matrix ``matrices[g]`` of generation
    g is in reduced row echelon form, and a row is stored at the index of its pivot: row p exists if
    ``matrices[g][p][p]`` is 1. The reduced form of
    a row space is unique, so the matrix does not depend on the order of the computations.

    All fields use the same code. A product is a power of a generator of the field, whose exponent is the sum of two
    logarithms. Sums are exclusive ors (``modulus`` 0) or sums of integers modulo a prime.

Cost
    With generation size m, a row operation is m look-ups; a packet takes two row operations for each row of the matrix.
    A field's tables take 8 bytes a symbol.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from workbench.coding.fields import field as field_of
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

SYMBOL = np.uint16


@lru_cache
def tables(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (powers, logarithms): the tables of the field of the given order, for multiplication.

    ``powers`` contains all powers of a generator of the field, twice, shape (2 order - 2,). ``logarithms[symbol]`` is
    the symbol's exponent, shape (order,); the logarithm of 0 is meaningless.
    """
    field: Any = field_of(order)
    # Every finite field has a generator. In this workbench's binary fields it is the polynomial x, which is 2; in
    # GF(2) it is 1.
    candidates = range(2, order) if order > 2 else (1,)
    for generator in candidates:
        powers = [1]
        while (symbol := field.multiply(powers[-1], generator)) != 1:
            powers.append(symbol)
        if len(powers) == order - 1:
            break
    logarithms = np.zeros(order, np.int32)
    logarithms[powers] = np.arange(order - 1)
    return np.array(powers + powers, SYMBOL), logarithms


# Symbols


@compiled
def _negative(state, symbol):
    return state.modulus - symbol if state.modulus else symbol


@compiled
def _sum(state, a, b):
    if state.modulus:
        total = np.int64(a) + np.int64(b)
        return total - state.modulus if total >= state.modulus else total
    return np.int64(a) ^ np.int64(b)


@compiled
def _product(state, logarithm, symbol):
    """Return the product of two symbols, of which the first is given by its ``logarithm``."""
    return np.int64(state.powers[logarithm + state.logarithms[symbol]]) if symbol else np.int64(0)


# Rows


@compiled
def draw_coefficients(core, state, i, count):
    """Draw ``state.coefficients[:count]``, not all zero, from node ``i``'s random stream.

    The result is that of `rlnc.draw_coefficients`.
    """
    coefficients = state.coefficients
    any_is_set = False
    while not any_is_set:
        if state.modulus:
            for k in range(count):
                coefficients[k] = twin.stream_below(core, i, state.modulus)
                any_is_set = any_is_set or coefficients[k] != 0
            continue
        k = 0
        while k < count:
            # A draw has 64 bits, enough for several symbols.
            drawn = twin.bits(core.protocol_keys[i], core.drawn[i])
            core.drawn[i] += 1
            for _ in range(min(64 // state.degree, count - k)):
                coefficients[k] = drawn & np.uint64((1 << state.degree) - 1)
                any_is_set = any_is_set or coefficients[k] != 0
                drawn >>= np.uint64(state.degree)
                k += 1


@compiled
def insert(state, generation, message):
    """Insert a message's encoding vector into the decoding matrix of a generation, if it is linearly independent.

    Returns the pivot column of the new row, or NONE if the vector depends on the rows of the matrix.
    """
    generation_size, row, matrices = state.generation_size, state.row, state.matrices
    for k in range(generation_size):
        row[k] = state.vectors[message, k]
    pivot = NONE
    for p in range(generation_size):
        if row[p] and matrices[generation, p, p]:
            factor = state.logarithms[_negative(state, np.int64(row[p]))]
            for k in range(p, generation_size):
                row[k] = _sum(state, row[k], _product(state, factor, matrices[generation, p, k]))
        elif row[p] and pivot == NONE:
            pivot = p
    if pivot == NONE:
        return pivot
    # Divide by the coefficient at the pivot; exponents are modulo the order minus one.
    inverse = (state.order - 1 - state.logarithms[row[pivot]]) % (state.order - 1)
    for k in range(pivot, generation_size):
        row[k] = _product(state, inverse, row[k])
    for p in range(generation_size):
        coefficient = np.int64(matrices[generation, p, pivot])
        if coefficient and matrices[generation, p, p]:
            factor = state.logarithms[_negative(state, coefficient)]
            for k in range(pivot, generation_size):
                matrices[generation, p, k] = _sum(state, matrices[generation, p, k], _product(state, factor, row[k]))
    for k in range(generation_size):
        matrices[generation, pivot, k] = row[k]
    return pivot


@compiled
def combine(state, generation, message):
    """Set a message's encoding vector to a linear combination of the rows of a generation's matrix.

    The k-th row, in the order of pivots, is multiplied by ``state.coefficients[k]``.
    """
    generation_size, vectors, matrices = state.generation_size, state.vectors, state.matrices
    for k in range(generation_size):
        vectors[message, k] = 0
    row_count = 0
    for p in range(generation_size):
        if matrices[generation, p, p]:
            coefficient = state.coefficients[row_count]
            row_count += 1
            if coefficient:
                factor = state.logarithms[coefficient]
                for k in range(p, generation_size):
                    vectors[message, k] = _sum(
                        state, vectors[message, k], _product(state, factor, matrices[generation, p, k])
                    )


@compiled
def clear(state, generation):
    """Remove all rows of a generation's matrix."""
    for p in range(state.generation_size):
        for k in range(state.generation_size):
            state.matrices[generation, p, k] = 0


@compiled
def fill(state, generation):
    """Set the empty matrix of a generation to the identity, the matrix of a node that holds all chunks."""
    for p in range(state.generation_size):
        state.matrices[generation, p, p] = 1

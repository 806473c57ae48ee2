"""Linear algebra of encoding vectors for the fast engine: draw coefficients, insert a row into a matrix, combine rows.

Theory of operation
    The algorithms are those of `workbench.coding.rlnc`, for encoding vectors only. Matrix ``matrices[g]`` of generation
    g is in reduced row echelon form, and a row is stored at the index of its pivot: row p exists if
    ``matrices[g][p][p]`` is 1. The reduced form of a row space is unique, so the matrix does not depend on the order of
    the computations.

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
    """Return (powers, logarithms), the tables for multiplication in the field of the given order.

    ``powers``: all powers of a generator of the field, shape (2 order - 2,). They are stored twice, so that a sum of
    two logarithms is a valid index. ``logarithms[symbol]``: the symbol's exponent, shape (order,); the logarithm of 0
    is meaningless.
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
def _negate(state, symbol):
    return state.modulus - symbol if state.modulus else symbol


@compiled
def _sum(state, a, b):
    if state.modulus:
        total = np.int64(a) + np.int64(b)
        return total - state.modulus if total >= state.modulus else total
    return np.int64(a) ^ np.int64(b)


@compiled
def _product(state, logarithm, symbol):
    """Return the product of ``symbol`` and the symbol whose logarithm is ``logarithm``, in the state's field."""
    return np.int64(state.powers[logarithm + state.logarithms[symbol]]) if symbol else np.int64(0)


# Rows


@compiled
def draw_coefficients(core, state, i, count):
    """Draw ``count`` coefficients, not all zero, from node ``i``'s random stream into ``state.coefficients``.

    They are equal to those that `rlnc.draw_coefficients` draws.
    """
    coefficients = state.coefficients
    any_is_set = False
    while not any_is_set:
        if state.modulus:
            for column in range(count):
                coefficients[column] = twin.stream_below(core, i, state.modulus)
                any_is_set = any_is_set or coefficients[column] != 0
            continue
        column = 0
        while column < count:
            # A draw has 64 bits, enough for several symbols.
            random_bits = twin.bits(core.protocol_keys[i], core.drawn[i])
            core.drawn[i] += 1
            for _ in range(min(64 // state.degree, count - column)):
                coefficients[column] = random_bits & np.uint64((1 << state.degree) - 1)
                any_is_set = any_is_set or coefficients[column] != 0
                random_bits >>= np.uint64(state.degree)
                column += 1


@compiled
def insert(state, generation, message):
    """Insert a message's encoding vector into a generation's decoding matrix, if it is independent of the rows.

    Returns the pivot column of the new row, or NONE if the vector depends on the rows of the matrix.
    """
    generation_size, new_row, matrices = state.generation_size, state.row, state.matrices
    for column in range(generation_size):
        new_row[column] = state.vectors[message, column]
    pivot = NONE
    for pivot_row in range(generation_size):
        if new_row[pivot_row] and matrices[generation, pivot_row, pivot_row]:
            factor = state.logarithms[_negate(state, np.int64(new_row[pivot_row]))]
            for column in range(pivot_row, generation_size):
                new_row[column] = _sum(
                    state, new_row[column], _product(state, factor, matrices[generation, pivot_row, column])
                )
        elif new_row[pivot_row] and pivot == NONE:
            pivot = pivot_row
    if pivot == NONE:
        return pivot
    # Divide by the coefficient at the pivot; exponents are modulo the order minus one.
    inverse = (state.order - 1 - state.logarithms[new_row[pivot]]) % (state.order - 1)
    for column in range(pivot, generation_size):
        new_row[column] = _product(state, inverse, new_row[column])
    for pivot_row in range(generation_size):
        coefficient = np.int64(matrices[generation, pivot_row, pivot])
        if coefficient and matrices[generation, pivot_row, pivot_row]:
            factor = state.logarithms[_negate(state, coefficient)]
            for column in range(pivot, generation_size):
                matrices[generation, pivot_row, column] = _sum(
                    state, matrices[generation, pivot_row, column], _product(state, factor, new_row[column])
                )
    for column in range(generation_size):
        matrices[generation, pivot, column] = new_row[column]
    return pivot


@compiled
def combine(state, generation, message):
    """Set a message's encoding vector to a linear combination of the rows of a generation's matrix.

    The k-th row, in the order of pivots, is multiplied by ``state.coefficients[k]``.
    """
    generation_size, vectors, matrices = state.generation_size, state.vectors, state.matrices
    for column in range(generation_size):
        vectors[message, column] = 0
    row_count = 0
    for pivot_row in range(generation_size):
        if matrices[generation, pivot_row, pivot_row]:
            coefficient = state.coefficients[row_count]
            row_count += 1
            if coefficient:
                factor = state.logarithms[coefficient]
                for column in range(pivot_row, generation_size):
                    vectors[message, column] = _sum(
                        state,
                        vectors[message, column],
                        _product(state, factor, matrices[generation, pivot_row, column]),
                    )


@compiled
def clear(state, generation):
    """Remove all rows of a generation's matrix."""
    for row in range(state.generation_size):
        for column in range(state.generation_size):
            state.matrices[generation, row, column] = 0


@compiled
def fill(state, generation):
    """Set the empty matrix of a generation to the identity, the matrix of a node that holds all chunks."""
    for row in range(state.generation_size):
        state.matrices[generation, row, row] = 1

"""Linear algebra of encoding vectors in the kernel: drawing coefficients, adding a row to a matrix, combining rows.

Theory of operation
    The same as in `workbench.coding.rlnc`, for encoding vectors alone: rows of ``matrices[g]`` lie at their pivots, and
    the matrix is in reduced row echelon form, so a row is there if its pivot is 1. Whatever way leads to that form, it
    is the same matrix: it is the only one of its kind with these rows' span.

    All fields have one arithmetic here. A product is a power of a generator of the field, whose exponent is the sum of
    two logarithms; sums are exclusive ors (``modulus`` 0) or integers modulo a prime.

Cost
    A row operation is m look-ups; a packet takes two for each row at hand. A field's tables take 8 bytes a symbol.
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
    """(powers of a generator, twice in a row; logarithms of all symbols but 0) of a field.

    Shapes are (2 order - 2,) and (order,). There is a generator among the symbols of any finite field.
    """
    field: Any = field_of(order)
    # x generates each binary field of this workbench, but for GF(2), where 1 does.
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
    """Of a symbol with the one that has that logarithm."""
    return np.int64(state.powers[logarithm + state.logarithms[symbol]]) if symbol else np.int64(0)


# Rows


@compiled
def draw_coefficients(core, state, i, count):
    """Draw ``state.coefficients[:count]`` from node ``i``'s stream, as `rlnc.draw_coefficients` does."""
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
            # A draw has 64 bits, which is several symbols.
            drawn = twin.bits(core.protocol_keys[i], core.drawn[i])
            core.drawn[i] += 1
            for _ in range(min(64 // state.degree, count - k)):
                coefficients[k] = drawn & np.uint64((1 << state.degree) - 1)
                any_is_set = any_is_set or coefficients[k] != 0
                drawn >>= np.uint64(state.degree)
                k += 1


@compiled
def insert(state, generation, message):
    """Add a message's encoding vector to a matrix unless it depends on its rows; its pivot, or NONE."""
    size, row, matrices = state.generation_size, state.row, state.matrices
    for k in range(size):
        row[k] = state.vectors[message, k]
    pivot = NONE
    for p in range(size):
        if row[p] and matrices[generation, p, p]:
            factor = state.logarithms[_negative(state, np.int64(row[p]))]
            for k in range(p, size):
                row[k] = _sum(state, row[k], _product(state, factor, matrices[generation, p, k]))
        elif row[p] and pivot == NONE:
            pivot = p
    if pivot == NONE:
        return pivot
    # Divided by the coefficient at the pivot: all exponents are modulo the order less one.
    inverse = (state.order - 1 - state.logarithms[row[pivot]]) % (state.order - 1)
    for k in range(pivot, size):
        row[k] = _product(state, inverse, row[k])
    for p in range(size):
        coefficient = np.int64(matrices[generation, p, pivot])
        if coefficient and matrices[generation, p, p]:
            factor = state.logarithms[_negative(state, coefficient)]
            for k in range(pivot, size):
                matrices[generation, p, k] = _sum(state, matrices[generation, p, k], _product(state, factor, row[k]))
    for k in range(size):
        matrices[generation, pivot, k] = row[k]
    return pivot


@compiled
def combine(state, generation, message):
    """A message's encoding vector is the rows of a matrix times ``state.coefficients``, in the order of the pivots."""
    size, vectors, matrices = state.generation_size, state.vectors, state.matrices
    for k in range(size):
        vectors[message, k] = 0
    place = 0
    for p in range(size):
        if matrices[generation, p, p]:
            coefficient = state.coefficients[place]
            place += 1
            if coefficient:
                factor = state.logarithms[coefficient]
                for k in range(p, size):
                    vectors[message, k] = _sum(
                        state, vectors[message, k], _product(state, factor, matrices[generation, p, k])
                    )


@compiled
def clear(state, generation):
    """Make a matrix one without rows."""
    for p in range(state.generation_size):
        for k in range(state.generation_size):
            state.matrices[generation, p, k] = 0


@compiled
def fill(state, generation):
    """Make a matrix without rows the identity."""
    for p in range(state.generation_size):
        state.matrices[generation, p, p] = 1

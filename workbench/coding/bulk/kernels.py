"""Sums of rows and elimination over finite fields, compiled by numba: the inner loops of `workbench.coding.bulk`.

The docstring of that module explains the algorithms. ``lanes`` is an array of four 64-bit words that describe a field
GF(2^k): a mask of all bits except the highest bit of each symbol; a mask of the lowest bit of each symbol; the field's
polynomial without x^k, repeated in each symbol; and k. ``has_row[pivot]`` is true if the matrix has a row with that
pivot.
"""

import numpy as np
from numba import njit

Integer = int | np.integer

BLOCK_WORDS = 256  # 2 KiB of a row: 32 such rows, or the sums of their groups of four, fit a second-level cache
GROUP = 4
SUMS = 1 << GROUP
SUMS_FROM = 4  # number of combinations from which the sums of groups of rows pay


# GF(2^k): 64-bit words


@njit(cache=True)
def _multiply_by_x(words: np.ndarray, lanes: np.ndarray) -> None:
    low_bits, lowest_bits, polynomial, degree = lanes[0], lanes[1], lanes[2], lanes[3]
    bit = np.uint64(1)
    for i in range(words.size):
        word = words[i]
        highest_bits = (word >> (degree - bit)) & lowest_bits
        words[i] = ((word & low_bits) << bit) ^ (((highest_bits << degree) - highest_bits) & polynomial)


@njit(cache=True)
def _add_selected(total: np.ndarray, rows: np.ndarray, selected: np.ndarray, count: Integer, start: Integer) -> None:
    """Add (exclusive or) to ``total`` the rows whose indices are ``selected[:count]``.

    Only the words ``row[start : start + len(total)]`` of each row are added. Four rows are added at a time, to save
    loads and stores of ``total``.
    """
    word_count = total.size
    next_index = 0
    while next_index + 4 <= count:
        a = rows[selected[next_index], start : start + word_count]
        b = rows[selected[next_index + 1], start : start + word_count]
        c = rows[selected[next_index + 2], start : start + word_count]
        d = rows[selected[next_index + 3], start : start + word_count]
        for i in range(word_count):
            total[i] ^= (a[i] ^ b[i]) ^ (c[i] ^ d[i])
        next_index += 4
    while next_index < count:
        a = rows[selected[next_index], start : start + word_count]
        for i in range(word_count):
            total[i] ^= a[i]
        next_index += 1


@njit(cache=True)
def _select_rows(selected: np.ndarray, counts: np.ndarray, coefficients: np.ndarray) -> None:
    """Find, for each linear combination k and each ``bit``, the rows whose coefficients have this bit set.

    The indices of these rows are stored in selected[k, bit], and their number in counts[k, bit]. coefficients[k, j] is
    the coefficient of row j in combination k.
    """
    combination_count, degree, row_count = selected.shape
    for k in range(combination_count):
        for bit in range(degree):
            # Coefficients are random, so branches on their bits would be mispredicted; this loop avoids branches.
            selected_count = 0
            for j in range(row_count):
                selected[k, bit, selected_count] = j
                selected_count += coefficients[k, j] >> bit & 1
            counts[k, bit] = selected_count


@njit(cache=True)
def _select_sums(coefficients: np.ndarray, degree: Integer) -> tuple[np.ndarray, np.ndarray]:
    """Find, for each linear combination k and each ``bit``, the sums of rows that must be added.

    Rows are taken in groups of four. From each group, the rows whose coefficients have this bit set are added, as one
    of the sums that `_make_sums` has computed. Returns (selected, counts): selected[k, bit] has the indices of these
    sums, and counts[k, bit] their number. coefficients[k, j] is the coefficient of row j in combination k, with
    ``degree`` bits.
    """
    combination_count, row_count = coefficients.shape
    group_count = (row_count + GROUP - 1) // GROUP
    selected = np.empty((combination_count, degree, group_count), np.uint32)
    selected_counts = np.zeros((combination_count, degree), np.int64)
    for k in range(combination_count):
        for group in range(group_count):
            first_row = group * GROUP
            for bit in range(degree):
                subset = 0
                for j in range(first_row, min(first_row + GROUP, row_count)):
                    subset |= (coefficients[k, j] >> bit & 1) << (j - first_row)
                if subset:
                    selected[k, bit, selected_counts[k, bit]] = group * SUMS + subset
                    selected_counts[k, bit] += 1
    return selected, selected_counts


@njit(cache=True)
def _make_sums(sums: np.ndarray, rows: np.ndarray, start: Integer, size: Integer) -> None:
    """Store in ``sums`` the sums (exclusive or) of all 16 subsets of each group of four consecutive rows.

    Only the ``size`` words from word ``start`` on of each row are added. A subset is a number from 0 to 15: bit i is 1
    if the subset contains row i of the group. Its sum is stored in row ``group * 16 + subset`` of ``sums``. The rows
    for empty subsets must contain zeros already.
    """
    for j in range(rows.shape[0]):
        first_sum, row_bit = j // GROUP * SUMS, 1 << (j % GROUP)
        row = rows[j, start : start + size]
        for subset in range(row_bit):
            sum_without_row, sum_with_row = sums[first_sum + subset], sums[first_sum + subset + row_bit]
            for i in range(size):
                sum_with_row[i] = sum_without_row[i] ^ row[i]


@njit(cache=True)
def combine_binary(out: np.ndarray, rows: np.ndarray, coefficients: np.ndarray, lanes: np.ndarray) -> None:
    """Store in out[k] the sum over j of coefficients[k, j] times rows[j], in a field of 2^degree elements.

    Rows are symbols packed into 64-bit words. ``lanes``: the field's masks, polynomial and degree (see the module).
    """
    word_count, degree = rows.shape[1], np.int64(lanes[3])
    uses_sums = coefficients.shape[0] >= SUMS_FROM
    if uses_sums:
        selected, selected_counts = _select_sums(coefficients, degree)
        group_sums = np.zeros(((rows.shape[0] + GROUP - 1) // GROUP * SUMS, min(word_count, BLOCK_WORDS)), np.uint64)
    else:
        selected = np.empty((coefficients.shape[0], degree, rows.shape[0]), np.uint32)
        selected_counts = np.empty((coefficients.shape[0], degree), np.int64)
        _select_rows(selected, selected_counts, coefficients)
        group_sums = rows
    for block_start in range(0, word_count, BLOCK_WORDS):
        block_words = min(BLOCK_WORDS, word_count - block_start)
        if uses_sums:
            _make_sums(group_sums, rows, block_start, block_words)
        added_rows, added_start = group_sums, 0 if uses_sums else block_start
        for k in range(out.shape[0]):
            out_block = out[k, block_start : block_start + block_words]
            out_block[:] = 0
            for bit in range(degree - 1, -1, -1):
                if bit < degree - 1:
                    _multiply_by_x(out_block, lanes)
                _add_selected(out_block, added_rows, selected[k, bit], selected_counts[k, bit], added_start)


@njit(cache=True)
def _get_symbol(row: np.ndarray, index: Integer, degree: Integer) -> Integer:
    bit_position = index * degree
    return np.int64(row[bit_position >> 6] >> np.uint64(bit_position & 63)) & ((1 << degree) - 1)


@njit(cache=True)
def _reduce_binary(rows: np.ndarray, matrix: np.ndarray, has_row: np.ndarray, lanes: np.ndarray) -> None:
    """Make ``rows`` 0 in all pivot columns of the matrix, by subtracting multiples of the matrix's rows.

    ``rows`` is changed in place. If ``rows`` has fewer columns than ``matrix``, the other columns of ``matrix`` are
    ignored. ``has_row[pivot]``: whether the matrix has a row with that pivot. ``lanes``: the field's masks, polynomial
    and degree.
    """
    degree = np.int64(lanes[3])
    subtracted_row = np.empty(rows.shape[1], np.uint64)
    coefficients = np.empty((1, has_row.size), np.int64)
    selected = np.empty((1, degree, has_row.size), np.uint32)
    selected_counts = np.empty((1, degree), np.int64)
    for k in range(rows.shape[0]):
        for pivot in range(has_row.size):
            coefficients[0, pivot] = _get_symbol(rows[k], pivot, degree) * has_row[pivot]
        _select_rows(selected, selected_counts, coefficients)
        subtracted_row[:] = 0
        for bit in range(degree - 1, -1, -1):
            if bit < degree - 1:
                _multiply_by_x(subtracted_row, lanes)
            _add_selected(subtracted_row, matrix, selected[0, bit], selected_counts[0, bit], 0)
        _add_row(rows[k], subtracted_row)


@njit(cache=True)
def _add_row(total: np.ndarray, row: np.ndarray) -> None:
    for i in range(total.size):
        total[i] ^= row[i]


@njit(cache=True)
def _multiply_binary(a: Integer, b: Integer, degree: Integer, polynomial: Integer) -> Integer:
    product: Integer = 0
    while b:
        if b & 1:
            product ^= a
        a <<= 1
        if a >> degree:
            a ^= polynomial | 1 << degree
        b >>= 1
    return product


@njit(cache=True)
def _invert_binary(a: Integer, degree: Integer, polynomial: Integer) -> Integer:
    inverse: Integer = 1  # a to the power of 2^k - 2, which is 2 + 4 + ... + 2^(k-1)
    for _ in range(degree - 1):
        a = _multiply_binary(a, a, degree, polynomial)
        inverse = _multiply_binary(inverse, a, degree, polynomial)
    return inverse


@njit(cache=True)
def insert_binary(
    vector: np.ndarray,
    matrix: np.ndarray,
    has_row: np.ndarray,
    rank: Integer,
    lanes: np.ndarray,
) -> Integer:
    """Insert an encoding vector into the matrix if it is linearly independent; return its pivot, or else -1.

    ``vector``: the encoding vector as packed bytes. ``rank``: the number of rows that the matrix has so far. A row of
    ``matrix`` is an encoding vector, followed by the row's origin: the coefficients by which the row combines the
    inserted vectors, in the order of insertion. Therefore the origin of ``vector`` itself has a 1 at index ``rank`` and
    zeros elsewhere. ``has_row[pivot]``: whether the matrix has a row with that pivot. ``lanes``: the field's masks,
    polynomial and degree.
    """
    degree, generation_size = np.int64(lanes[3]), has_row.size
    new_rows = np.zeros((1, matrix.shape[1]), np.uint64)
    new_row = new_rows[0]
    for i in range(vector.size):
        new_row[i >> 3] |= np.uint64(vector[i]) << np.uint64((i & 7) * 8)
    origin_bit = rank * degree
    new_row[new_row.size // 2 + (origin_bit >> 6)] = np.uint64(1) << np.uint64(origin_bit & 63)
    _reduce_binary(new_rows, matrix, has_row, lanes)
    pivot = -1
    coefficient: Integer = 0
    for column in range(generation_size):
        coefficient = _get_symbol(new_row, column, degree)
        if coefficient:
            pivot = column
            break
    if pivot < 0:
        return pivot
    inverse = _invert_binary(coefficient, degree, np.int64(lanes[2] & np.uint64((1 << degree) - 1)))
    multiples = np.empty((degree, new_row.size), np.uint64)
    group_sums = np.zeros(((degree + GROUP - 1) // GROUP * SUMS, new_row.size), np.uint64)
    _make_multiples(group_sums, multiples, new_row, lanes)
    new_row[:] = 0
    _add_multiple(new_row, inverse, group_sums)
    _make_multiples(group_sums, multiples, new_row, lanes)
    for other_pivot in range(generation_size):
        if has_row[other_pivot]:
            _add_multiple(matrix[other_pivot], _get_symbol(matrix[other_pivot], pivot, degree), group_sums)
    matrix[pivot] = new_row
    has_row[pivot] = True
    return pivot


@njit(cache=True)
def _make_multiples(sums: np.ndarray, multiples: np.ndarray, row: np.ndarray, lanes: np.ndarray) -> None:
    """Store in ``multiples`` the k products of ``row`` with 1, x, x^2, ..., in a field GF(2^k).

    The sums of all 16 subsets of each group of four products are stored in ``sums``, in the order that `_make_sums`
    defines. ``lanes``: the field's masks, polynomial and degree.
    """
    multiples[0] = row
    for bit in range(1, multiples.shape[0]):
        multiples[bit] = multiples[bit - 1]
        _multiply_by_x(multiples[bit], lanes)
    _make_sums(sums, multiples, 0, row.size)


@njit(cache=True)
def _add_multiple(total: np.ndarray, factor: Integer, sums: np.ndarray) -> None:
    """Add ``factor`` times a row to ``total``; ``sums`` are those that `_make_multiples` has stored for this row."""
    for first_sum in range(0, sums.shape[0], SUMS):
        _add_row(total, sums[first_sum + (factor & (SUMS - 1))])
        factor >>= GROUP


@njit(cache=True)
def are_innovative_binary(
    out: np.ndarray, rows: np.ndarray, matrix: np.ndarray, has_row: np.ndarray, lanes: np.ndarray
) -> None:
    """Store in out[k] whether the encoding vector rows[k] is linearly independent of the matrix's rows.

    ``rows`` are packed into 64-bit words, and are overwritten. has_row[pivot]: whether the matrix has a row with that
    pivot. ``lanes``: the field's masks, polynomial and degree (see the module).
    """
    _reduce_binary(rows, matrix, has_row, lanes)
    for k in range(out.size):
        all_bits = np.uint64(0)
        for i in range(rows.shape[1]):
            all_bits |= rows[k, i]
        out[k] = all_bits != 0


@njit(cache=True)
def pack_binary(rows: np.ndarray, symbols: np.ndarray, degree: Integer) -> None:
    """Pack the symbols in each row of ``symbols`` into the 64-bit words of the same row of ``rows``.

    ``rows`` must contain zeros. ``degree``: the number of bits of a symbol.
    """
    for k in range(symbols.shape[0]):
        for index in range(symbols.shape[1]):
            bit_position = index * degree
            rows[k, bit_position >> 6] |= np.uint64(symbols[k, index]) << np.uint64(bit_position & 63)


@njit(cache=True)
def unpack_binary(symbols: np.ndarray, rows: np.ndarray, degree: Integer) -> None:
    for k in range(symbols.shape[0]):
        for index in range(symbols.shape[1]):
            symbols[k, index] = _get_symbol(rows[k], index, degree)


# Prime fields: one symbol per element


@njit(cache=True)
def combine_prime(out: np.ndarray, rows: np.ndarray, coefficients: np.ndarray, prime: Integer) -> None:
    """Store in out[k] the sum over j of coefficients[k, j] times rows[j], modulo a prime below 2^16."""
    row_total = np.empty(rows.shape[1], np.uint64)
    for k in range(out.shape[0]):
        row_total[:] = 0
        for j in range(rows.shape[0]):
            coefficient, row = np.uint64(coefficients[k, j]), rows[j]
            for i in range(row_total.size):
                row_total[i] += coefficient * row[i]
        for i in range(row_total.size):
            out[k, i] = row_total[i] % np.uint64(prime)


@njit(cache=True)
def _subtract_prime(row: np.ndarray, factor: Integer, other: np.ndarray, prime: Integer) -> None:
    for i in range(row.size):
        row[i] = (np.int64(row[i]) + (prime - factor) * np.int64(other[i])) % prime


@njit(cache=True)
def _reduce_prime(row: np.ndarray, matrix: np.ndarray, has_row: np.ndarray, prime: Integer) -> None:
    for pivot in range(has_row.size):
        if has_row[pivot] and row[pivot]:
            _subtract_prime(row, np.int64(row[pivot]), matrix[pivot], prime)


@njit(cache=True)
def insert_prime(
    vector: np.ndarray,
    matrix: np.ndarray,
    has_row: np.ndarray,
    rank: Integer,
    prime: Integer,
) -> Integer:
    """Insert an encoding vector over a prime field if it is linearly independent; return its pivot, or else -1.

    ``vector``: the encoding vector as an array of symbols. ``rank``: the number of rows that the matrix has so far. A
    row of ``matrix`` is an encoding vector, followed by the coefficients by which the row combines the inserted
    vectors, in the order of insertion. ``has_row[pivot]``: whether the matrix has a row with that pivot.
    """
    new_row = np.zeros(matrix.shape[1], np.uint16)
    new_row[: vector.size] = vector
    new_row[vector.size + rank] = 1
    _reduce_prime(new_row, matrix, has_row, prime)
    pivot = 0
    while pivot < has_row.size and new_row[pivot] == 0:
        pivot += 1
    if pivot == has_row.size:
        return -1
    inverse, power, exponent = np.int64(1), np.int64(new_row[pivot]), prime - 2
    while exponent:
        if exponent & 1:
            inverse = inverse * power % prime
        power = power * power % prime
        exponent >>= 1
    for i in range(new_row.size):
        new_row[i] = np.int64(new_row[i]) * inverse % prime
    for other_pivot in range(has_row.size):
        if has_row[other_pivot] and matrix[other_pivot, pivot]:
            _subtract_prime(matrix[other_pivot], np.int64(matrix[other_pivot, pivot]), new_row, prime)
    matrix[pivot] = new_row
    has_row[pivot] = True
    return pivot


@njit(cache=True)
def are_innovative_prime(
    out: np.ndarray, rows: np.ndarray, matrix: np.ndarray, has_row: np.ndarray, prime: Integer
) -> None:
    """Store in out[k] whether the encoding vector rows[k] is linearly independent of the matrix's rows.

    ``rows`` is overwritten. has_row[pivot]: whether the matrix has a row with that pivot.
    """
    for k in range(out.size):
        _reduce_prime(rows[k], matrix, has_row, prime)
        out[k] = np.any(rows[k] != 0)

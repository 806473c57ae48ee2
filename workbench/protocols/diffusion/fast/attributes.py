"""Lists of attributes in the kernel: the same content is the same number, and `attributes` rules over integers.

A list is rows (key, operator, value) in one array that only grows; a blob's value is its number. Lists that are made
during the run (aggregated messages, what filters replace, canonical constraints) are looked up by their hash first.
"""

import numpy as np

from workbench.attributes.model import EQ, EQ_ANY, GE, GT, HIGHEST, INTERVAL, IS, LE, LOWEST, LT, NE
from workbench.attributes.wire import ATTRIBUTE_B, BLOB_HEADER_B
from workbench.protocols.diffusion.fast.memory import Number
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

_FACTOR = np.uint64(0x100000001B3)  # FNV's


@compiled
def matches(state, one, other):
    """`attributes.one_way_match` of two lists."""
    subscription, publication = state.lists[one], state.lists[other]
    return twin.one_way_match(
        state.attributes, subscription.first, subscription.last, publication.first, publication.last
    )


@compiled
def append(state, key, operator, value):
    """One more attribute for the list that is being made; `interned` ends it."""
    place = state.numbers[Number.ATTRIBUTES]
    state.numbers[Number.ATTRIBUTES] = place + 1
    state.attributes[place, 0] = key
    state.attributes[place, 1] = operator
    state.attributes[place, 2] = value


@compiled
def append_list(state, number):
    """All attributes of a list for the one that is being made."""
    it = state.lists[number]
    for a in range(it.first, it.last):
        append(state, state.attributes[a, 0], state.attributes[a, 1], state.attributes[a, 2])


@compiled
def _bucket(state, first, last):
    hashed = np.uint64(14695981039346656037)
    for a in range(first, last):
        for column in range(3):
            hashed = (hashed ^ np.uint64(state.attributes[a, column])) * _FACTOR
    return np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(len(state.buckets) - 1))


@compiled
def _remember(state, number):
    """Let a list be found by its content."""
    it = state.lists[number]
    bucket = _bucket(state, it.first, it.last)
    it.next = state.buckets[bucket]
    state.buckets[bucket] = number
    state.numbers[Number.REMEMBERED] += 1


@compiled
def _same(state, first, last, other_first, other_last):
    if last - first != other_last - other_first:
        return False
    for a in range(last - first):
        for column in range(3):
            if state.attributes[first + a, column] != state.attributes[other_first + a, column]:
                return False
    return True


@compiled
def is_same(state, one, other):
    """Return whether two lists have the same attributes."""
    a, b = state.lists[one], state.lists[other]
    return one == other or _same(state, a.first, a.last, b.first, b.last)


@compiled
def _size_B(state, first, last):
    size_B = 0
    for a in range(first, last):
        is_blob = state.is_blob[state.attributes[a, 0]]
        size_B += BLOB_HEADER_B + state.blob_sizes_B[state.attributes[a, 2]] if is_blob else ATTRIBUTE_B
    return size_B


@compiled
def interned(state, first):
    """The list of the attributes from row ``first`` to the end: a known one with that content, or a new one."""
    last = state.numbers[Number.ATTRIBUTES]
    while state.numbers[Number.REMEMBERED] < state.numbers[Number.LISTS]:
        _remember(state, state.numbers[Number.REMEMBERED])
    number = state.buckets[_bucket(state, first, last)]
    while number != NONE:
        it = state.lists[number]
        if _same(state, first, last, it.first, it.last):
            state.numbers[Number.ATTRIBUTES] = first
            return number
        number = it.next
    number = state.numbers[Number.LISTS]
    state.numbers[Number.LISTS] = number + 1
    it = state.lists[number]
    it.first = first
    it.last = last
    it.size_B = _size_B(state, first, last)
    it.constraints = NONE
    it.detail = NONE
    _remember(state, number)
    return number


@compiled
def constraints_of(state, number):
    """The list of `attributes.constraints` of a list: the same for interests that share an entry."""
    it = state.lists[number]
    if it.constraints != NONE:
        return it.constraints
    start = state.numbers[Number.ATTRIBUTES]
    for a in range(it.first, it.last):
        key, operator, value = state.attributes[a, 0], state.attributes[a, 1], state.attributes[a, 2]
        if key == INTERVAL and operator == IS:
            continue
        append(state, key, operator, 0 if operator == EQ_ANY else value)
        _sink(state, start)
    constraints = interned(state, start)
    state.lists[number].constraints = constraints
    return constraints


@compiled
def _sink(state, start):
    """Move the last attribute to its place among the sorted ones from ``start``."""
    rows = state.attributes
    a = state.numbers[Number.ATTRIBUTES] - 1
    while a > start and _before(rows, a, a - 1):
        for column in range(3):
            rows[a, column], rows[a - 1, column] = rows[a - 1, column], rows[a, column]
        a -= 1


@compiled
def _before(rows, one, other):
    for column in range(3):
        if rows[one, column] != rows[other, column]:
            return rows[one, column] < rows[other, column]
    return False


# `attributes.is_within`


@compiled
def is_within(state, inner, outer):
    """`attributes.is_within` of two lists."""
    rows = state.attributes
    inside, outside = state.lists[inner], state.lists[outer]
    for a in range(outside.first, outside.last):
        if rows[a, 1] == IS:
            continue
        key = rows[a, 0]
        if not _constrains(rows, key, inside.first, inside.last):
            return False
        if state.is_blob[key]:
            if not _blobs_within(rows, key, inside.first, inside.last, outside.first, outside.last):
                return False
        elif not _integers_within(rows, key, inside.first, inside.last, outside.first, outside.last):
            return False
    return True


@compiled
def _constrains(rows, key, first, last):
    found = False
    for a in range(first, last):
        found = found or (rows[a, 0] == key and rows[a, 1] != IS)
    return found


@compiled
def _has(rows, key, operator, value, first, last):
    found = False
    for a in range(first, last):
        found = found or (rows[a, 0] == key and rows[a, 1] == operator and rows[a, 2] == value)
    return found


@compiled
def _bounds(rows, key, first, last):
    """The lowest and the highest integer that meets all constraints of a key; lowest > highest if none does."""
    low, high = LOWEST, HIGHEST
    for a in range(first, last):
        if rows[a, 0] != key:
            continue
        operator, bound = rows[a, 1], np.int64(rows[a, 2])
        if operator in (EQ, GE):
            low = max(low, bound)
        if operator in (EQ, LE):
            high = min(high, bound)
        if operator == GT:
            low = max(low, bound + 1)
        if operator == LT:
            high = min(high, bound - 1)
    while _has(rows, key, NE, low, first, last):
        low += 1
    while _has(rows, key, NE, high, first, last):
        high -= 1
    return low, high


@compiled
def _integers_within(rows, key, first, last, outer_first, outer_last):
    low, high = _bounds(rows, key, first, last)
    outer_low, outer_high = _bounds(rows, key, outer_first, outer_last)
    if low > high:
        return True
    if low < outer_low or high > outer_high:
        return False
    for a in range(outer_first, outer_last):
        hole = rows[a, 2]
        if (
            rows[a, 0] == key
            and rows[a, 1] == NE
            and low <= hole <= high
            and not _has(rows, key, NE, hole, first, last)
        ):
            return False
    return True


@compiled
def _blobs_within(rows, key, first, last, outer_first, outer_last):
    some_allowed = False
    for a in range(first, last):
        if rows[a, 0] == key and rows[a, 1] == EQ:
            some_allowed = True
            blob = rows[a, 2]
            if _meets(rows, key, blob, first, last) and not _meets(rows, key, blob, outer_first, outer_last):
                return False
    if some_allowed:
        return True
    for a in range(outer_first, outer_last):
        if rows[a, 0] != key or rows[a, 1] == IS or rows[a, 1] == EQ_ANY:
            continue
        if rows[a, 1] != NE or not _has(rows, key, NE, rows[a, 2], first, last):
            return False
    return True


@compiled
def _meets(rows, key, value, first, last):
    """Whether a value meets all constraints of a key."""
    for a in range(first, last):
        if rows[a, 0] == key and rows[a, 1] != IS and not twin.satisfies(value, rows[a, 1], rows[a, 2]):
            return False
    return True


# `attributes.split_samples`


@compiled
def sample_end(state, number, first, is_aggregate):
    """The row behind the sample that begins at row ``first`` of a list: the last row, unless it is an aggregate's."""
    it = state.lists[number]
    if not is_aggregate:
        return np.int64(it.last)
    key = state.attributes[it.first, 0]
    last = np.int64(first + 1)
    while last < it.last and state.attributes[last, 0] != key:
        last += 1
    return last


@compiled
def begins_once(state, number):
    """Whether the first key of a list comes once."""
    it = state.lists[number]
    return sample_end(state, number, it.first, True) == it.last


@compiled
def part_of(state, number, first, last):
    """The list that is the rows first:last of another."""
    it = state.lists[number]
    if first == it.first and last == it.last:
        return number
    start = state.numbers[Number.ATTRIBUTES]
    for a in range(first, last):
        append(state, state.attributes[a, 0], state.attributes[a, 1], state.attributes[a, 2])
    return interned(state, start)

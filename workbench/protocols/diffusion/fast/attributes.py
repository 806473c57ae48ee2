"""Attribute lists of the fast twin, and the functions of `workbench.attributes` that compare them.

All attributes are rows (key, operator, value) of one array that only grows, ``state.attributes``. A list is a range of
rows with an id. Values are integers; for a blob, the value is the blob's index. During the run new lists are built for
aggregates, for filters' results and for the canonical constraints of interests. If a list with the same content is
found in a hash table, its id is used again.

``first``, ``last`` are the indices of a list's first row and of the row after its last one.
"""

import numpy as np

from workbench.attributes.model import EQ, EQ_ANY, GE, GT, HIGHEST, INTERVAL, IS, LE, LOWEST, LT, NE
from workbench.attributes.wire import ATTRIBUTE_B, BLOB_HEADER_B
from workbench.protocols.diffusion.fast.memory import Number
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

_FACTOR = np.uint64(0x100000001B3)  # FNV's


@compiled
def matches(state, subscription_list, publication_list):
    """Return whether a publication matches a subscription, both given by their attribute lists.

    The protocol's parameter ``matching`` selects the rule.
    """
    publication = state.lists[publication_list]
    return matches_rows(state, subscription_list, publication.first, publication.last)


@compiled
def matches_rows(state, subscription_list, first, last):
    """Return whether a sample, rows first:last of ``state.attributes``, matches the attribute list of a subscription.

    The protocol's parameter ``matching`` selects the rule.
    """
    subscription = state.lists[subscription_list]
    if not twin.one_way_match(state.attributes, subscription.first, subscription.last, first, last):
        return False
    if not state.is_strict:
        return True
    for a in range(subscription.first, subscription.last):
        if state.attributes[a, 1] != IS and not _has_strict_value(state, subscription_list, a, first, last):
            return False
    return True


@compiled
def _has_strict_value(state, subscription_list, constraint, first, last):
    """Return whether one value in rows first:last meets all of a subscription's constraints on one key.

    ``constraint``: a row with this key.
    """
    rows = state.attributes
    subscription = state.lists[subscription_list]
    key = rows[constraint, 0]
    has_value = False
    for b in range(first, last):
        if rows[b, 0] == key and rows[b, 1] == IS:
            meets_all = True
            for a in range(subscription.first, subscription.last):
                if rows[a, 0] == key and rows[a, 1] != IS:
                    meets_all = meets_all and twin.satisfies(rows[b, 2], rows[a, 1], rows[a, 2])
            has_value = has_value or meets_all
    return has_value


@compiled
def append(state, key, operator, value):
    """Append an attribute to the list under construction; `intern_list` completes the list."""
    row = state.numbers[Number.ATTRIBUTES]
    state.numbers[Number.ATTRIBUTES] = row + 1
    state.attributes[row, 0] = key
    state.attributes[row, 1] = operator
    state.attributes[row, 2] = value


@compiled
def append_list(state, list_id):
    """Append all attributes of another list to the list under construction."""
    record = state.lists[list_id]
    for a in range(record.first, record.last):
        append(state, state.attributes[a, 0], state.attributes[a, 1], state.attributes[a, 2])


@compiled
def _bucket(state, first, last):
    hash_value = np.uint64(14695981039346656037)
    for a in range(first, last):
        for column in range(3):
            hash_value = (hash_value ^ np.uint64(state.attributes[a, column])) * _FACTOR
    return np.int64((hash_value ^ (hash_value >> np.uint64(32))) & np.uint64(len(state.buckets) - 1))


@compiled
def _remember(state, list_id):
    """Add a list to the hash table in which `intern_list` looks lists up by content."""
    record = state.lists[list_id]
    bucket = _bucket(state, record.first, record.last)
    record.next = state.buckets[bucket]
    state.buckets[bucket] = list_id
    state.numbers[Number.REMEMBERED] += 1


@compiled
def _have_same_rows(state, first, last, other_first, other_last):
    if last - first != other_last - other_first:
        return False
    for a in range(last - first):
        for column in range(3):
            if state.attributes[first + a, column] != state.attributes[other_first + a, column]:
                return False
    return True


@compiled
def is_same(state, a, b):
    """Return whether the lists with the ids ``a`` and ``b`` have the same attributes in the same order."""
    list_a, list_b = state.lists[a], state.lists[b]
    return a == b or _have_same_rows(state, list_a.first, list_a.last, list_b.first, list_b.last)


@compiled
def _size_B(state, first, last):
    size_B = 0
    for a in range(first, last):
        is_blob = state.is_blob[state.attributes[a, 0]]
        size_B += BLOB_HEADER_B + state.blob_sizes_B[state.attributes[a, 2]] if is_blob else ATTRIBUTE_B
    return size_B


@compiled
def intern_list(state, first):
    """Complete the attribute list under construction, which begins at row ``first``, and return its id.

    If a known list has the same content, the rows are removed, and the result is the id of the known list.
    """
    last = state.numbers[Number.ATTRIBUTES]
    while state.numbers[Number.REMEMBERED] < state.numbers[Number.LISTS]:
        _remember(state, state.numbers[Number.REMEMBERED])
    list_id = state.buckets[_bucket(state, first, last)]
    while list_id != NONE:
        record = state.lists[list_id]
        if _have_same_rows(state, first, last, record.first, record.last):
            state.numbers[Number.ATTRIBUTES] = first
            return list_id
        list_id = record.next
    list_id = state.numbers[Number.LISTS]
    state.numbers[Number.LISTS] = list_id + 1
    record = state.lists[list_id]
    record.first = first
    record.last = last
    record.size_B = _size_B(state, first, last)
    record.constraints = NONE
    record.detail = NONE
    _remember(state, list_id)
    return list_id


@compiled
def constraints_of(state, list_id):
    """Return the id of the list of an interest's canonical constraints: equal constraints have the same id."""
    record = state.lists[list_id]
    if record.constraints != NONE:
        return record.constraints
    start = state.numbers[Number.ATTRIBUTES]
    for a in range(record.first, record.last):
        key, operator, value = state.attributes[a, 0], state.attributes[a, 1], state.attributes[a, 2]
        if key == INTERVAL and operator == IS:
            continue
        append(state, key, operator, 0 if operator == EQ_ANY else value)
        _insert_sorted(state, start)
    constraints = intern_list(state, start)
    state.lists[list_id].constraints = constraints
    return constraints


@compiled
def _insert_sorted(state, start):
    """Move the last attribute to its position in the sorted rows that begin at ``start``."""
    rows = state.attributes
    a = state.numbers[Number.ATTRIBUTES] - 1
    while a > start and _sorts_before(rows, a, a - 1):
        for column in range(3):
            rows[a, column], rows[a - 1, column] = rows[a - 1, column], rows[a, column]
        a -= 1


@compiled
def _sorts_before(rows, a, b):
    for column in range(3):
        if rows[a, column] != rows[b, column]:
            return rows[a, column] < rows[b, column]
    return False


# `attributes.is_within`


@compiled
def is_within(state, inner, outer):
    """Return whether the constraints of the list ``inner`` lie within the constraints of the list ``outer``.

    The rule is that of `attributes.is_within`.
    """
    rows = state.attributes
    inner_list, outer_list = state.lists[inner], state.lists[outer]
    for a in range(outer_list.first, outer_list.last):
        if rows[a, 1] == IS:
            continue
        key = rows[a, 0]
        if not _constrains(rows, key, inner_list.first, inner_list.last):
            return False
        if state.is_blob[key]:
            if not _blobs_within(rows, key, inner_list.first, inner_list.last, outer_list.first, outer_list.last):
                return False
        elif not _integers_within(rows, key, inner_list.first, inner_list.last, outer_list.first, outer_list.last):
            return False
    return True


@compiled
def _constrains(rows, key, first, last):
    is_constrained = False
    for a in range(first, last):
        is_constrained = is_constrained or (rows[a, 0] == key and rows[a, 1] != IS)
    return is_constrained


@compiled
def _has_row(rows, key, operator, value, first, last):
    has_row = False
    for a in range(first, last):
        has_row = has_row or (rows[a, 0] == key and rows[a, 1] == operator and rows[a, 2] == value)
    return has_row


@compiled
def _bounds(rows, key, first, last):
    """Return (lowest, highest) of the integers that meet all constraints on ``key`` in rows first:last.

    If no integer meets the constraints, lowest is above highest.
    """
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
    while _has_row(rows, key, NE, low, first, last):
        low += 1
    while _has_row(rows, key, NE, high, first, last):
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
            and not _has_row(rows, key, NE, hole, first, last)
        ):
            return False
    return True


@compiled
def _blobs_within(rows, key, first, last, outer_first, outer_last):
    has_equal = False
    for a in range(first, last):
        if rows[a, 0] == key and rows[a, 1] == EQ:
            has_equal = True
            blob = rows[a, 2]
            if _meets(rows, key, blob, first, last) and not _meets(rows, key, blob, outer_first, outer_last):
                return False
    if has_equal:
        return True
    for a in range(outer_first, outer_last):
        if rows[a, 0] != key or rows[a, 1] == IS or rows[a, 1] == EQ_ANY:
            continue
        if rows[a, 1] != NE or not _has_row(rows, key, NE, rows[a, 2], first, last):
            return False
    return True


@compiled
def _meets(rows, key, value, first, last):
    """Return whether ``value`` meets all constraints on ``key`` in rows first:last."""
    for a in range(first, last):
        if rows[a, 0] == key and rows[a, 1] != IS and not twin.satisfies(value, rows[a, 1], rows[a, 2]):
            return False
    return True


# `attributes.split_samples`


@compiled
def sample_end(state, list_id, first, is_aggregate):
    """Return the index of the row after the last row of the sample that begins at row ``first`` of a list.

    Without aggregation this is the end of the list. In an aggregate, the next sample begins where the first key
    repeats.
    """
    record = state.lists[list_id]
    if not is_aggregate:
        return np.int64(record.last)
    key = state.attributes[record.first, 0]
    last = np.int64(first + 1)
    while last < record.last and state.attributes[last, 0] != key:
        last += 1
    return last


@compiled
def has_key_once(state, list_id):
    """Return whether the key of a list's first attribute occurs only once in the list."""
    record = state.lists[list_id]
    return sample_end(state, list_id, record.first, True) == record.last


@compiled
def slice_list(state, list_id, first, last):
    """Return the id of a list with only the rows first:last of the list ``list_id``; a new list is stored."""
    record = state.lists[list_id]
    if first == record.first and last == record.last:
        return list_id
    start = state.numbers[Number.ATTRIBUTES]
    for a in range(first, last):
        append(state, state.attributes[a, 0], state.attributes[a, 1], state.attributes[a, 2])
    return intern_list(state, start)

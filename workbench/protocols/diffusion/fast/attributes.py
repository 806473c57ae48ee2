"""Attribute lists in the fast engine, and the functions of `workbench.attributes` that compare them.

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
    if state.is_two_way:
        return twin.one_way_match(state.attributes, first, last, subscription.first, subscription.last)
    if not state.is_strict:
        return True
    for constraint_row in range(subscription.first, subscription.last):
        if state.attributes[constraint_row, 1] != IS and not _has_strict_value(
            state, subscription_list, constraint_row, first, last
        ):
            return False
    return True


@compiled
def _has_strict_value(state, subscription_list, constraint, first, last):
    """Return whether a single value in rows first:last meets all of a subscription's constraints on one key.

    ``constraint``: the row of any constraint on this key.
    """
    rows = state.attributes
    subscription = state.lists[subscription_list]
    key = rows[constraint, 0]
    has_value = False
    for value_row in range(first, last):
        if rows[value_row, 0] == key and rows[value_row, 1] == IS:
            meets_all = True
            for constraint_row in range(subscription.first, subscription.last):
                if rows[constraint_row, 0] == key and rows[constraint_row, 1] != IS:
                    meets_all = meets_all and twin.satisfies(
                        rows[value_row, 2], rows[constraint_row, 1], rows[constraint_row, 2]
                    )
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
    attribute_list = state.lists[list_id]
    for row in range(attribute_list.first, attribute_list.last):
        append(state, state.attributes[row, 0], state.attributes[row, 1], state.attributes[row, 2])


@compiled
def _hash_to_bucket(state, first, last):
    hash_value = np.uint64(14695981039346656037)
    for row in range(first, last):
        for column in range(3):
            hash_value = (hash_value ^ np.uint64(state.attributes[row, column])) * _FACTOR
    return np.int64((hash_value ^ (hash_value >> np.uint64(32))) & np.uint64(len(state.buckets) - 1))


@compiled
def _add_to_hash_table(state, list_id):
    """Add a list to the hash table by which `intern_list` finds a list with the same content."""
    attribute_list = state.lists[list_id]
    bucket = _hash_to_bucket(state, attribute_list.first, attribute_list.last)
    attribute_list.next = state.buckets[bucket]
    state.buckets[bucket] = list_id
    state.numbers[Number.REMEMBERED] += 1


@compiled
def _have_same_rows(state, first, last, other_first, other_last):
    if last - first != other_last - other_first:
        return False
    for offset in range(last - first):
        for column in range(3):
            if state.attributes[first + offset, column] != state.attributes[other_first + offset, column]:
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
    for row in range(first, last):
        is_blob = state.is_blob[state.attributes[row, 0]]
        size_B += BLOB_HEADER_B + state.blob_sizes_B[state.attributes[row, 2]] if is_blob else ATTRIBUTE_B
    return size_B


@compiled
def intern_list(state, first):
    """Complete the attribute list under construction, which begins at row ``first``, and return its id.

    If a known list has the same content, the rows are removed, and the result is the id of the known list.
    """
    end_row = state.numbers[Number.ATTRIBUTES]
    while state.numbers[Number.REMEMBERED] < state.numbers[Number.LISTS]:
        _add_to_hash_table(state, state.numbers[Number.REMEMBERED])
    list_id = state.buckets[_hash_to_bucket(state, first, end_row)]
    while list_id != NONE:
        attribute_list = state.lists[list_id]
        if _have_same_rows(state, first, end_row, attribute_list.first, attribute_list.last):
            state.numbers[Number.ATTRIBUTES] = first
            return list_id
        list_id = attribute_list.next
    list_id = state.numbers[Number.LISTS]
    state.numbers[Number.LISTS] = list_id + 1
    attribute_list = state.lists[list_id]
    attribute_list.first = first
    attribute_list.last = end_row
    attribute_list.size_B = _size_B(state, first, end_row)
    attribute_list.constraints = NONE
    attribute_list.detail = NONE
    _add_to_hash_table(state, list_id)
    return list_id


@compiled
def constraints_of(state, list_id):
    """Return the id of the list that holds the constraints of an interest in canonical form.

    The list leaves out INTERVAL and is sorted, so interests with equal constraints get the same id. ``list_id``: the id
    of the interest's own attribute list.
    """
    attribute_list = state.lists[list_id]
    if attribute_list.constraints != NONE:
        return attribute_list.constraints
    first_row = state.numbers[Number.ATTRIBUTES]
    for row in range(attribute_list.first, attribute_list.last):
        key, operator, value = state.attributes[row, 0], state.attributes[row, 1], state.attributes[row, 2]
        if key == INTERVAL and operator == IS:
            continue
        append(state, key, operator, 0 if operator == EQ_ANY else value)
        _insert_sorted(state, first_row)
    constraints = intern_list(state, first_row)
    state.lists[list_id].constraints = constraints
    return constraints


@compiled
def _insert_sorted(state, start):
    """Move the last row of ``state.attributes`` to its position among the sorted rows that begin at ``start``."""
    rows = state.attributes
    row = state.numbers[Number.ATTRIBUTES] - 1
    while row > start and _sorts_before(rows, row, row - 1):
        for column in range(3):
            rows[row, column], rows[row - 1, column] = rows[row - 1, column], rows[row, column]
        row -= 1


@compiled
def _sorts_before(rows, a, b):
    for column in range(3):
        if rows[a, column] != rows[b, column]:
            return rows[a, column] < rows[b, column]
    return False


# `attributes.is_within`


@compiled
def is_within(state, inner, outer):
    """Return whether the constraints of the list ``inner`` are at least as strict as those of the list ``outer``.

    ``inner``, ``outer``: ids of attribute lists. The rule is that of `attributes.is_within`.
    """
    inner_list, outer_list = state.lists[inner], state.lists[outer]
    return _is_within_rows(state, inner_list.first, inner_list.last, outer_list.first, outer_list.last)


@compiled
def _is_within_rows(state, first, last, outer_first, outer_last):
    rows = state.attributes
    for row in range(outer_first, outer_last):
        if rows[row, 1] == IS:
            continue
        key = rows[row, 0]
        if not _is_constrained(rows, key, first, last):
            return False
        if state.is_blob[key]:
            if not _are_blobs_within(rows, key, first, last, outer_first, outer_last):
                return False
        elif not _are_integers_within(rows, key, first, last, outer_first, outer_last):
            return False
    return True


@compiled
def _is_constrained(rows, key, first, last):
    is_constrained = False
    for row in range(first, last):
        is_constrained = is_constrained or (rows[row, 0] == key and rows[row, 1] != IS)
    return is_constrained


@compiled
def _has_row(rows, key, operator, value, first, last):
    has_row = False
    for row in range(first, last):
        has_row = has_row or (rows[row, 0] == key and rows[row, 1] == operator and rows[row, 2] == value)
    return has_row


@compiled
def _integer_bounds(rows, key, first, last):
    """Return (lowest, highest) of the integers that meet all constraints on ``key`` in rows first:last.

    If no integer meets the constraints, lowest is above highest.
    """
    low, high = LOWEST, HIGHEST
    for row in range(first, last):
        if rows[row, 0] != key:
            continue
        operator, bound = rows[row, 1], np.int64(rows[row, 2])
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
def _are_integers_within(rows, key, first, last, outer_first, outer_last):
    low, high = _integer_bounds(rows, key, first, last)
    outer_low, outer_high = _integer_bounds(rows, key, outer_first, outer_last)
    if low > high:
        return True
    if low < outer_low or high > outer_high:
        return False
    for row in range(outer_first, outer_last):
        excluded_value = rows[row, 2]
        if (
            rows[row, 0] == key
            and rows[row, 1] == NE
            and low <= excluded_value <= high
            and not _has_row(rows, key, NE, excluded_value, first, last)
        ):
            return False
    return True


@compiled
def _are_blobs_within(rows, key, first, last, outer_first, outer_last):
    has_equal = False
    for row in range(first, last):
        if rows[row, 0] == key and rows[row, 1] == EQ:
            has_equal = True
            blob = rows[row, 2]
            if _meets_constraints(rows, key, blob, first, last) and not _meets_constraints(
                rows, key, blob, outer_first, outer_last
            ):
                return False
    if has_equal:
        return True
    for row in range(outer_first, outer_last):
        if rows[row, 0] != key or rows[row, 1] == IS or rows[row, 1] == EQ_ANY:
            continue
        if rows[row, 1] != NE or not _has_row(rows, key, NE, rows[row, 2], first, last):
            return False
    return True


@compiled
def _meets_constraints(rows, key, value, first, last):
    """Return whether ``value`` meets all constraints on ``key`` in ``rows[first:last]``, an array of attributes."""
    for row in range(first, last):
        if rows[row, 0] == key and rows[row, 1] != IS and not twin.satisfies(value, rows[row, 1], rows[row, 2]):
            return False
    return True


# `attributes.interval_us` and `attributes.covers`


@compiled
def interval_us(state, list_id):
    """Return the shortest time between readings (µs) that an interest's attribute list requests by INTERVAL, or 0."""
    for row in range(state.lists[list_id].first, state.lists[list_id].last):
        if state.attributes[row, 0] == INTERVAL and state.attributes[row, 1] == IS:
            return max(0, state.attributes[row, 2]) * 100000  # an INTERVAL counts tenths of a second
    return 0


@compiled
def covers(state, outer, inner):
    """Return whether the interest ``outer`` requests all data that the interest ``inner`` requests.

    The rule is that of `attributes.covers`. ``outer``, ``inner``: ids of the interests' attribute lists.
    """
    if interval_us(state, outer):
        return False
    rows = state.attributes
    inner_list, outer_list = state.lists[inner], state.lists[outer]
    for described_list in (inner_list, outer_list):
        for row in range(described_list.first, described_list.last):
            key, operator, value = rows[row, 0], rows[row, 1], rows[row, 2]
            if operator != IS or key == INTERVAL:
                continue
            inner_count = _count_rows(rows, key, operator, value, inner_list.first, inner_list.last)
            if inner_count != _count_rows(rows, key, operator, value, outer_list.first, outer_list.last):
                return False
    if state.is_strict:
        return is_within(state, inner, outer)
    for outer_row in range(outer_list.first, outer_list.last):
        is_implied = rows[outer_row, 1] == IS
        for row in range(inner_list.first, inner_list.last):
            is_implied = is_implied or _is_within_rows(state, row, row + 1, outer_row, outer_row + 1)
        if not is_implied:
            return False
    return True


@compiled
def _count_rows(rows, key, operator, value, first, last):
    count = 0
    for row in range(first, last):
        count += rows[row, 0] == key and rows[row, 1] == operator and rows[row, 2] == value
    return count


# `attributes.split_samples`


@compiled
def sample_end(state, list_id, first, is_aggregate):
    """Return the index of the row after the last row of the sample that begins at row ``first`` of a list.

    If the list is an aggregate of samples (``is_aggregate``), the next sample begins where the first key repeats.
    Otherwise the sample ends with the list.
    """
    attribute_list = state.lists[list_id]
    if not is_aggregate:
        return np.int64(attribute_list.last)
    first_key = state.attributes[attribute_list.first, 0]
    end_row = np.int64(first + 1)
    while end_row < attribute_list.last and state.attributes[end_row, 0] != first_key:
        end_row += 1
    return end_row


@compiled
def may_be_aggregated(state, list_id):
    """Return whether a sample may share a message with other samples: its first key is unique, all operators are IS.

    ``list_id``: the attribute list of the sample.
    """
    attribute_list = state.lists[list_id]
    for row in range(attribute_list.first, attribute_list.last):
        if state.attributes[row, 1] != IS:
            return False
    return sample_end(state, list_id, attribute_list.first, True) == attribute_list.last


@compiled
def slice_list(state, list_id, first, last):
    """Return the id of a list with the rows first:last of ``state.attributes``, which belong to the list ``list_id``.

    If no known list has this content, a new list is added.
    """
    attribute_list = state.lists[list_id]
    if first == attribute_list.first and last == attribute_list.last:
        return list_id
    first_row = state.numbers[Number.ATTRIBUTES]
    for row in range(first, last):
        append(state, state.attributes[row, 0], state.attributes[row, 1], state.attributes[row, 2])
    return intern_list(state, first_row)

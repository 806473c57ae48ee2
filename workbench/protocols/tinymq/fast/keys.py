"""Functions for keys, universes, regions and boxes, compiled: `tinymq.zones`, and boxes of `tinymq.mapping`.

The table ``keys`` stores each key once, as a row. The row of a child's key contains the row number of its parent's key
and the child's slot. So keys may have any length, equal keys have equal row numbers, and the prefixes of a key are the
rows of its ancestors. A *string* is a string of ``key_bits`` bits, stored as an integer. The *universe* of a key is the
set of strings that begin with the key. Regions are computed in rows of ``scratch``.
"""

from __future__ import annotations

from typing import Any

from workbench.protocols.tinymq import rules
from workbench.protocols.tinymq.fast.memory import LONGEST_KEY, MOST_INTERVALS, ROOT_KEY, Number, Problem
from workbench.sim.fast.twin import NONE, compiled


@compiled
def child_key(state, parent, slot):
    """Return the row in ``keys`` of the key of the child in a slot; add the row if it does not exist.

    ``parent``: the row of the parent's key.
    """
    keys = state.keys
    key = keys[parent].first
    while key != NONE:
        if keys[key].slot == slot:
            return key
        key = keys[key].next
    key = state.numbers[Number.KEYS]
    state.numbers[Number.KEYS] += 1
    new_key = keys[key]
    new_key.parent = parent
    new_key.slot = slot
    new_key.length = keys[parent].length + slot + 1
    new_key.first = NONE
    new_key.next = keys[parent].first
    keys[parent].first = key
    new_key.low = child_low(state, keys[parent].low, new_key.length) if has_universe(state, new_key.length) else 0
    if new_key.length > LONGEST_KEY:
        state.numbers[Number.PROBLEM] = Problem.KEY_TOO_LONG
    return key


def key_text(keys: Any, key: int) -> str:
    """Return the key in row ``key`` as a string of 0 and 1."""
    parts = []
    while key != ROOT_KEY:
        parts.append("0" * int(keys["slot"][key]) + "1")
        key = int(keys["parent"][key])
    return "".join(reversed(parts))


@compiled
def has_universe(state, length):
    """Return whether any string of the key space begins with a key of ``length`` bits."""
    return length <= state.key_bits


@compiled
def child_low(state, low, length):
    """Return the lowest of the strings (integers of ``key_bits`` bits) that begin with a child's key.

    ``low``: the lowest string that begins with the parent's key; ``length``: the length of the child's key in bits.
    """
    return low + (1 << (state.key_bits - length))


@compiled
def last_in_universe(state, low, length):
    """Return the highest of the strings (integers of ``key_bits`` bits) that begin with a key.

    ``low``: the lowest of these strings; ``length``: the length of the key in bits.
    """
    return rules.last_string(low, length, state.key_bits)


@compiled
def is_prefix(state, prefix, key):
    """Return whether ``key`` begins with ``prefix``; both are rows of ``keys``."""
    keys = state.keys
    length = keys[prefix].length
    while keys[key].length > length:
        key = keys[key].parent
    return key == prefix


# Regions


@compiled
def load(state, message, row):
    """Copy a message's region into a row of ``scratch``, the array in which regions are computed."""
    count = state.fields[message].intervals
    for k in range(count):
        state.scratch[row, k, 0] = state.regions[message, k, 0]
        state.scratch[row, k, 1] = state.regions[message, k, 1]
    state.scratch_counts[row] = count


@compiled
def save(state, row, message):
    """Set a message's region to the region in a row of ``scratch``."""
    count = state.scratch_counts[row]
    for k in range(count):
        state.regions[message, k, 0] = state.scratch[row, k, 0]
        state.regions[message, k, 1] = state.scratch[row, k, 1]
    state.fields[message].intervals = count


@compiled
def intersect(state, source, row, low, high):
    """Write the strings in [low, high] of the region in scratch row ``source`` into scratch row ``row``.

    ``source`` and ``row`` may be the same.
    """
    scratch = state.scratch
    count = 0
    for k in range(state.scratch_counts[source]):
        first, last = scratch[source, k, 0], scratch[source, k, 1]
        if first <= high and low <= last:
            scratch[row, count, 0] = max(first, low)
            scratch[row, count, 1] = min(last, high)
            count += 1
    state.scratch_counts[row] = count


@compiled
def overlaps(state, row, low, high):
    """Return whether the region in a row of ``scratch`` has strings in [low, high]."""
    for k in range(state.scratch_counts[row]):
        if state.scratch[row, k, 0] <= high and low <= state.scratch[row, k, 1]:
            return True
    return False


@compiled
def is_region_within(state, message, key):
    """Return whether all strings of a message's region begin with a key of at most ``key_bits`` bits.

    ``key``: row of ``keys``.
    """
    low = state.keys[key].low
    last = state.fields[message].intervals - 1
    high = last_in_universe(state, low, state.keys[key].length)
    return low <= state.regions[message, 0, 0] and state.regions[message, last, 1] <= high


@compiled
def subtract(state, row, low, high):
    """Remove the strings in [low, high] from the region in a row of ``scratch``.

    Sets the problem TOO_MANY_INTERVALS if the region would have more than MOST_INTERVALS intervals.
    """
    scratch = state.scratch
    count = state.scratch_counts[row]
    count_left = 0
    for k in range(count):
        first, last = scratch[row, k, 0], scratch[row, k, 1]
        if first < low and high < last:
            # The strings to remove lie within this interval, so the other intervals stay unchanged.
            if count == MOST_INTERVALS:
                state.numbers[Number.PROBLEM] = Problem.TOO_MANY_INTERVALS
                return
            for next_row in range(count, k + 1, -1):
                scratch[row, next_row, 0] = scratch[row, next_row - 1, 0]
                scratch[row, next_row, 1] = scratch[row, next_row - 1, 1]
            scratch[row, k, 1] = low - 1
            scratch[row, k + 1, 0] = high + 1
            scratch[row, k + 1, 1] = last
            state.scratch_counts[row] = count + 1
            return
        if last < low or high < first:
            pass
        elif first < low:
            last = low - 1
        elif high < last:
            first = high + 1
        else:
            continue
        scratch[row, count_left, 0] = first
        scratch[row, count_left, 1] = last
        count_left += 1
    state.scratch_counts[row] = count_left


@compiled
def unite(state, message, row):
    """Add the region in a row of ``scratch`` to a message's region; the content of that row is lost."""
    regions, count = state.regions, state.fields[message].intervals
    for k in range(count):
        subtract(state, row, regions[message, k, 0], regions[message, k, 1])
    if count + state.scratch_counts[row] > MOST_INTERVALS:
        state.numbers[Number.PROBLEM] = Problem.TOO_MANY_INTERVALS
        return
    for k in range(state.scratch_counts[row]):
        low, high = state.scratch[row, k, 0], state.scratch[row, k, 1]
        index = count
        while index > 0 and regions[message, index - 1, 0] > low:
            regions[message, index, 0] = regions[message, index - 1, 0]
            regions[message, index, 1] = regions[message, index - 1, 1]
            index -= 1
        regions[message, index, 0] = low
        regions[message, index, 1] = high
        count += 1
    state.fields[message].intervals = count


# Boxes


@compiled
def _lowest_from(state, box, dimension):
    number = 0
    for index in range(dimension, len(state.dimension_bits)):
        number |= state.boxes[box, index, 0] << state.dimension_shifts[index]
    return number


@compiled
def _cell(state, number, dimension):
    return (number >> state.dimension_shifts[dimension]) & ((1 << state.dimension_bits[dimension]) - 1)


@compiled
def _leading_bits(state, number, dimension):
    shift = state.dimension_shifts[dimension] + state.dimension_bits[dimension]
    return (number >> shift) << shift


@compiled
def first_cell(state, box, at_least):
    """Return the lowest string of a box (row of ``boxes``) that is not below ``at_least``, or NONE.

    Strings are integers. See `Mapping.first_cell`.
    """
    boxes = state.boxes
    for dimension in range(len(state.dimension_bits)):
        cell = _cell(state, at_least, dimension)
        if boxes[box, dimension, 0] <= cell <= boxes[box, dimension, 1]:
            continue
        if cell < boxes[box, dimension, 0]:
            return _leading_bits(state, at_least, dimension) | _lowest_from(state, box, dimension)
        previous = dimension - 1
        while previous >= 0:
            last = _cell(state, at_least, previous)
            if last < boxes[box, previous, 1]:
                next_cell = (last + 1) << state.dimension_shifts[previous]
                return _leading_bits(state, at_least, previous) | next_cell | _lowest_from(state, box, previous + 1)
            previous -= 1
        return NONE
    return at_least


@compiled
def clip(state, box, row):
    """Trim the region in a row of ``scratch``: each of its intervals then begins with a string of a box.

    Intervals that contain no string of the box are removed. ``box``: row of ``boxes``. See `Mapping.clip`.
    """
    scratch = state.scratch
    count = 0
    for k in range(state.scratch_counts[row]):
        first, last = first_cell(state, box, scratch[row, k, 0]), scratch[row, k, 1]
        if first != NONE and first <= last:
            scratch[row, count, 0] = first
            scratch[row, count, 1] = last
            count += 1
    state.scratch_counts[row] = count

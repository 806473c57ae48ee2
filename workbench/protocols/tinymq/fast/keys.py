"""Functions for keys, universes, regions and boxes: compiled versions of `tinymq.zones` and `tinymq.mapping`.

The table ``keys`` stores each key once, as a row. The row of a child's key contains the row number of its parent's key
and the child's slot. So keys may have any length, equal keys have equal row numbers, and the prefixes of a key are the
rows of its ancestors. A *string* is a string of ``key_bits`` bits, stored as an integer. The *universe* of a key is the
set of strings that begin with the key. A *region* is a set of strings, given by intervals (lowest, highest string).
Regions are computed in rows of ``scratch``.
"""

from __future__ import annotations

from typing import Any

from workbench.protocols.tinymq import rules
from workbench.protocols.tinymq.fast.memory import LONGEST_KEY, MOST_INTERVALS, ROOT_KEY, Number, Problem
from workbench.sim.fast.twin import NONE, compiled


@compiled
def child_key(state, parent, slot):
    """Return the row in ``keys`` of a child's key; add the key to ``keys`` if it is missing.

    ``parent``: the row of the parent's key; ``slot``: the child's number at its parent. Stops the run with the problem
    KEY_TOO_LONG if a new key has more than LONGEST_KEY bits.
    """
    keys = state.keys
    key_row = keys[parent].first
    while key_row != NONE:
        if keys[key_row].slot == slot:
            return key_row
        key_row = keys[key_row].next
    key_row = state.numbers[Number.KEYS]
    state.numbers[Number.KEYS] += 1
    new_key = keys[key_row]
    new_key.parent = parent
    new_key.slot = slot
    new_key.length = keys[parent].length + slot + 1
    new_key.first = NONE
    new_key.next = keys[parent].first
    keys[parent].first = key_row
    new_key.low = child_low(state, keys[parent].low, new_key.length) if has_universe(state, new_key.length) else 0
    if new_key.length > LONGEST_KEY:
        state.numbers[Number.PROBLEM] = Problem.KEY_TOO_LONG
    return key_row


def key_text(keys: Any, key: int) -> str:
    """Return the key in row ``key`` as a string of 0 and 1."""
    key_parts = []
    while key != ROOT_KEY:
        key_parts.append("0" * int(keys["slot"][key]) + "1")
        key = int(keys["parent"][key])
    return "".join(reversed(key_parts))


@compiled
def has_universe(state, length):
    """Return whether strings of the key space begin with a key of ``length`` bits: ``length`` <= ``key_bits``."""
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
    """Return whether the key in row ``key`` of ``keys`` begins with the key in row ``prefix``."""
    keys = state.keys
    prefix_length = keys[prefix].length
    while keys[key].length > prefix_length:
        key = keys[key].parent
    return key == prefix


# Regions


@compiled
def load(state, message, row):
    """Copy a message's region into row ``row`` of ``scratch``, the array in which regions are computed."""
    interval_count = state.fields[message].intervals
    for k in range(interval_count):
        state.scratch[row, k, 0] = state.regions[message, k, 0]
        state.scratch[row, k, 1] = state.regions[message, k, 1]
    state.scratch_counts[row] = interval_count


@compiled
def save(state, row, message):
    """Set a message's region to the region in row ``row`` of ``scratch``."""
    interval_count = state.scratch_counts[row]
    for k in range(interval_count):
        state.regions[message, k, 0] = state.scratch[row, k, 0]
        state.regions[message, k, 1] = state.scratch[row, k, 1]
    state.fields[message].intervals = interval_count


@compiled
def intersect(state, source, row, low, high):
    """Set row ``row`` of ``scratch`` to those strings of a region that are in [low, high].

    ``source``: the region's row of ``scratch``, which may be equal to ``row``.
    """
    scratch = state.scratch
    interval_count = 0
    for k in range(state.scratch_counts[source]):
        interval_low, interval_high = scratch[source, k, 0], scratch[source, k, 1]
        if interval_low <= high and low <= interval_high:
            scratch[row, interval_count, 0] = max(interval_low, low)
            scratch[row, interval_count, 1] = min(interval_high, high)
            interval_count += 1
    state.scratch_counts[row] = interval_count


@compiled
def overlaps(state, row, low, high):
    """Return whether the region in row ``row`` of ``scratch`` contains a string in [low, high]."""
    for k in range(state.scratch_counts[row]):
        if state.scratch[row, k, 0] <= high and low <= state.scratch[row, k, 1]:
            return True
    return False


@compiled
def is_region_within(state, message, key):
    """Return whether all strings in a message's region begin with a key.

    ``key``: the key's row of ``keys``. The key must have at most ``key_bits`` bits.
    """
    low = state.keys[key].low
    last_interval = state.fields[message].intervals - 1
    high = last_in_universe(state, low, state.keys[key].length)
    return low <= state.regions[message, 0, 0] and state.regions[message, last_interval, 1] <= high


@compiled
def subtract(state, row, low, high):
    """Remove the strings in [low, high] from the region in row ``row`` of ``scratch``.

    Stops the run with the problem TOO_MANY_INTERVALS if the region would have more than MOST_INTERVALS intervals.
    """
    scratch = state.scratch
    interval_count = state.scratch_counts[row]
    new_count = 0
    for k in range(interval_count):
        interval_low, interval_high = scratch[row, k, 0], scratch[row, k, 1]
        if interval_low < low and high < interval_high:
            # The strings to remove lie within this interval, so the other intervals stay unchanged.
            if interval_count == MOST_INTERVALS:
                state.numbers[Number.PROBLEM] = Problem.TOO_MANY_INTERVALS
                return
            for next_row in range(interval_count, k + 1, -1):
                scratch[row, next_row, 0] = scratch[row, next_row - 1, 0]
                scratch[row, next_row, 1] = scratch[row, next_row - 1, 1]
            scratch[row, k, 1] = low - 1
            scratch[row, k + 1, 0] = high + 1
            scratch[row, k + 1, 1] = interval_high
            state.scratch_counts[row] = interval_count + 1
            return
        if interval_high < low or high < interval_low:
            pass
        elif interval_low < low:
            interval_high = low - 1
        elif high < interval_high:
            interval_low = high + 1
        else:
            continue
        scratch[row, new_count, 0] = interval_low
        scratch[row, new_count, 1] = interval_high
        new_count += 1
    state.scratch_counts[row] = new_count


@compiled
def unite(state, message, row):
    """Add the region in row ``row`` of ``scratch`` to a message's region; the content of that row is lost.

    Stops the run with the problem TOO_MANY_INTERVALS if the sum would have more than MOST_INTERVALS intervals.
    """
    regions, interval_count = state.regions, state.fields[message].intervals
    for k in range(interval_count):
        subtract(state, row, regions[message, k, 0], regions[message, k, 1])
    if interval_count + state.scratch_counts[row] > MOST_INTERVALS:
        state.numbers[Number.PROBLEM] = Problem.TOO_MANY_INTERVALS
        return
    for k in range(state.scratch_counts[row]):
        lowest, highest = state.scratch[row, k, 0], state.scratch[row, k, 1]
        insert_index = interval_count
        while insert_index > 0 and regions[message, insert_index - 1, 0] > lowest:
            regions[message, insert_index, 0] = regions[message, insert_index - 1, 0]
            regions[message, insert_index, 1] = regions[message, insert_index - 1, 1]
            insert_index -= 1
        regions[message, insert_index, 0] = lowest
        regions[message, insert_index, 1] = highest
        interval_count += 1
    state.fields[message].intervals = interval_count


# Boxes


@compiled
def _lowest_suffix(state, box, dimension):
    string = 0
    for later_dimension in range(dimension, len(state.dimension_bits)):
        string |= state.boxes[box, later_dimension, 0] << state.dimension_shifts[later_dimension]
    return string


@compiled
def _cell(state, number, dimension):
    return (number >> state.dimension_shifts[dimension]) & ((1 << state.dimension_bits[dimension]) - 1)


@compiled
def _leading_bits(state, number, dimension):
    shift = state.dimension_shifts[dimension] + state.dimension_bits[dimension]
    return (number >> shift) << shift


@compiled
def first_cell(state, box, at_least):
    """Return the lowest string of a box that is not below ``at_least``; NONE if the box has no such string.

    Strings are integers. ``box``: a row of ``boxes``, with a range of cells in each dimension.
    """
    boxes = state.boxes
    for dimension in range(len(state.dimension_bits)):
        cell = _cell(state, at_least, dimension)
        if boxes[box, dimension, 0] <= cell <= boxes[box, dimension, 1]:
            continue
        if cell < boxes[box, dimension, 0]:
            return _leading_bits(state, at_least, dimension) | _lowest_suffix(state, box, dimension)
        earlier_dimension = dimension - 1
        while earlier_dimension >= 0:
            earlier_cell = _cell(state, at_least, earlier_dimension)
            if earlier_cell < boxes[box, earlier_dimension, 1]:
                next_cell = (earlier_cell + 1) << state.dimension_shifts[earlier_dimension]
                return (
                    _leading_bits(state, at_least, earlier_dimension)
                    | next_cell
                    | _lowest_suffix(state, box, earlier_dimension + 1)
                )
            earlier_dimension -= 1
        return NONE
    return at_least


@compiled
def clip(state, box, row):
    """Shorten the intervals of a region so that each begins with a string of a box.

    The lower end of each interval is raised to the first such string; an interval without a string of the box is
    removed. ``row``: the region's row of ``scratch``; ``box``: row of ``boxes``, with a range of cells in each
    dimension.
    """
    scratch = state.scratch
    interval_count = 0
    for k in range(state.scratch_counts[row]):
        clipped_low, interval_high = first_cell(state, box, scratch[row, k, 0]), scratch[row, k, 1]
        if clipped_low != NONE and clipped_low <= interval_high:
            scratch[row, interval_count, 0] = clipped_low
            scratch[row, interval_count, 1] = interval_high
            interval_count += 1
    state.scratch_counts[row] = interval_count

"""Built-in filters of the fast twin: the filters of `diffusion.filters` that compare or count numbers.

A filter on a node has a row of memory for each origin, found by a hash of filter, node and origin. Filters that call a
user's function (blob_fusion, registered filters) run on the reference engine only.
"""

from __future__ import annotations

from enum import auto
from typing import Any

import numpy as np

from workbench.attributes.model import IS
from workbench.protocols.diffusion.fast.attributes import append, append_list, intern_list, sample_end, slice_list
from workbench.protocols.diffusion.fast.memory import FILTER, Event, Message, Number, Reason
from workbench.protocols.diffusion.filters import BUILT_IN, Filter, complete_settings
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


class _Kind(twin.Codes):
    """Codes of the built-in filters."""

    SUPPRESS_UNCHANGED = auto()
    RUNNING_MEAN = auto()
    RUNNING_MINIMUM = auto()
    RUNNING_MAXIMUM = auto()
    NEIGHBORHOOD_AVERAGE = auto()
    RATE_LIMIT = auto()
    THRESHOLD_ALARM = auto()


_LONGEST_US = 1 << 60
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def check(filters: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the filters. Raises NoFastTwinError if the fast twin does not implement one of them."""
    for filter_ in filters:
        if type(filter_) is not Filter or filter_.name not in _Kind.texts():
            name = getattr(filter_, "name", type(filter_).__name__)
            raise twin.NoFastTwinError(
                f"the filter {name} runs Python code at every node; only the reference engine can run it"
            )
    return filters


def sort_by_key(filters: tuple[Filter, ...]) -> list[Filter]:
    """Return the filters sorted by key, the order in which nodes apply them."""
    return sorted(filters, key=lambda filter_: filter_.key)


def filter_rows(filters: list[Filter], matches: list[int]) -> np.ndarray:
    """Return the filters as rows of FILTER; ``matches`` has the number of each filter's ``match`` list."""
    table = np.zeros(len(filters), FILTER)
    for row, filter_, match in zip(table, filters, matches, strict=True):
        kind: Any = BUILT_IN[filter_.name]
        decider = kind(complete_settings(filter_.name, kind.parameters, filter_.settings))
        row["kind"] = _Kind.texts().index(filter_.name)
        row["key"] = filter_.key
        row["messages"] = Message.DATA if filter_.messages == "data" else Message.INTEREST
        row["match"] = match
        row["of"] = getattr(decider, "key", NONE)
        row["window"] = getattr(decider, "window", 0)
        for name in ("tolerance", "high", "low"):
            row[name] = getattr(decider, name, 0.0)
        for name in ("heartbeat_us", "period_us", "interval_us"):
            if hasattr(decider, name):
                row["period_us"] = min(getattr(decider, name), _LONGEST_US)
    return table


@compiled
def apply_filters(core, state, now, i, message, origin):
    """Return a message's list of attributes after all matching filters of node ``i``, or NONE if they drop it."""
    record = core.messages[message]
    number = record.content
    if not _carries_any(state, i):
        return number
    first, last = state.lists[number].first, state.lists[number].last
    if record.name == Message.INTEREST or first == last:
        number = _apply_to_part(core, state, now, i, message, origin, number)
        return NONE if number == NONE or state.lists[number].first == state.lists[number].last else number
    parts = 0
    is_changed = False
    is_aggregate = state.message_fields[message].is_aggregate
    while first < last:
        # Filters process the readings of an aggregate one at a time.
        end = sample_end(state, number, first, is_aggregate)
        part = slice_list(state, number, first, end)
        result = _apply_to_part(core, state, now, i, message, origin, part)
        is_changed = is_changed or result != part
        if result != NONE:
            state.parts[parts] = result
            parts += 1
        first = end
    if not is_changed:
        return number
    if parts == 0:
        return NONE
    if parts == 1:
        return state.parts[0]
    start = state.numbers[Number.ATTRIBUTES]
    for k in range(parts):
        append_list(state, state.parts[k])
    return intern_list(state, start)


@compiled
def _carries_any(state, i):
    carries = False
    for f in range(len(state.filters)):
        carries = carries or state.carries[f, i]
    return carries


@compiled
def _apply_to_part(core, state, now, i, message, origin, number):
    name = core.messages[message].name
    for f in range(len(state.filters)):
        if state.carries[f, i] and state.filters[f].messages == name and _wants(state, f, name, number):
            result = _decide(state, f, i, origin, number, now)
            if result != number and core.is_recorded[Event.FILTERED]:
                record = core.messages[message]
                detail = Reason.DROP if result == NONE else Reason.REPLACE
                key = state.filters[f].key
                twin.add_row(
                    core, now, i, Event.FILTERED, NONE, record.name, record.origin, record.sequence, 0, key, detail
                )
            if result == NONE:
                return NONE
            number = result
    return number


@compiled
def _wants(state, f, name, number):
    match, attribute_list = state.lists[state.filters[f].match], state.lists[number]
    if name == Message.DATA:
        return twin.one_way_match(state.attributes, match.first, match.last, attribute_list.first, attribute_list.last)
    # An interest contains constraints instead of values, so only its keys are compared.
    for a in range(match.first, match.last):
        has_key = False
        for b in range(attribute_list.first, attribute_list.last):
            has_key = has_key or state.attributes[b, 0] == state.attributes[a, 0]
        if not has_key:
            return False
    return True


@compiled
def _decide(state, f, i, origin, number, now):
    """Return the list that results from a filter, or NONE to drop the message."""
    filter_ = state.filters[f]
    kind = filter_.kind
    if kind == _Kind.RATE_LIMIT:
        memory, is_new = _find_memory(state, f, i, origin)
        memory_row = state.memories[memory]
        if not is_new and now - memory_row.time_us < filter_.period_us:
            return NONE
        memory_row.time_us = now
        return number
    value_row = _row_of_value(state, number, filter_.of)
    if value_row == NONE:
        return number
    value = np.int64(state.attributes[value_row, 2])
    if kind == _Kind.NEIGHBORHOOD_AVERAGE:
        return _average(state, f, i, origin, number, value_row, value, now)
    memory, is_new = _find_memory(state, f, i, origin)
    memory_row = state.memories[memory]
    if kind == _Kind.SUPPRESS_UNCHANGED:
        if (
            not is_new
            and abs(value - memory_row.value) <= filter_.tolerance
            and now - memory_row.time_us < filter_.period_us
        ):
            return NONE
        memory_row.value = value
        memory_row.time_us = now
        return number
    if kind == _Kind.THRESHOLD_ALARM:
        alarmed = memory_row.value
        if not (value < filter_.low if alarmed else value > filter_.high):
            return NONE
        memory_row.value = 0 if alarmed else 1
        return number
    window = state.windows[memory]
    window[memory_row.count % filter_.window] = value
    memory_row.count += 1
    return _with_value(state, number, value_row, _summary(kind, window, min(memory_row.count, filter_.window)))


@compiled
def _row_of_value(state, number, key):
    """Return the row of the first IS value of a key, or NONE."""
    record = state.lists[number]
    for a in range(record.first, record.last):
        if state.attributes[a, 0] == key and state.attributes[a, 1] == IS:
            return a
    return NONE


@compiled
def _with_value(state, number, value_row, value):
    """Return the list with another value in ``value_row``."""
    record = state.lists[number]
    if state.attributes[value_row, 2] == value:
        return number
    start = state.numbers[Number.ATTRIBUTES]
    for a in range(record.first, record.last):
        append(
            state, state.attributes[a, 0], state.attributes[a, 1], value if a == value_row else state.attributes[a, 2]
        )
    return intern_list(state, start)


@compiled
def _mean(total, count):
    """Return the mean of integers, rounded to the nearest (half up)."""
    return (2 * total + count) // (2 * count)


@compiled
def _summary(kind, window, count):
    total, low, high = np.int64(0), window[0], window[0]
    for k in range(count):
        total += window[k]
        low = min(low, window[k])
        high = max(high, window[k])
    if kind == _Kind.RUNNING_MEAN:
        return _mean(total, np.int64(count))
    return np.int64(low if kind == _Kind.RUNNING_MINIMUM else high)


@compiled
def _average(state, f, i, origin, number, value_row, value, now):
    average = state.averages[f, i]
    memory, is_new = _find_memory(state, f, i, origin)
    memory_row = state.memories[memory]
    if average.next_us == NONE:
        average.next_us = now + state.filters[f].period_us
    if is_new or memory_row.time_us != average.period:
        average.count += 1
        average.sum += value
    else:
        average.sum += value - memory_row.value
    memory_row.time_us = average.period
    memory_row.value = value
    if now < average.next_us:
        return NONE
    mean = _mean(average.sum, average.count)
    average.sum = 0
    average.count = 0
    average.period += 1
    average.next_us = now + state.filters[f].period_us
    return _with_value(state, number, value_row, mean)


@compiled
def _find_memory(state, f, i, origin):
    """Return (the row of memory that filter ``f`` on node ``i`` has for an origin, whether it is new)."""
    count = state.carries.shape[1]
    id = (np.int64(f) * count + i) * count + origin
    bucket = np.int64((np.uint64(id) * _FACTOR) >> np.uint64(32)) & (len(state.memory_buckets) - 1)
    memory = state.memory_buckets[bucket]
    while memory != NONE:
        if state.memories[memory].id == id:
            return memory, False
        memory = state.memories[memory].next
    memory = state.numbers[Number.MEMORIES]
    state.numbers[Number.MEMORIES] = memory + 1
    row = state.memories[memory]
    row.id = id
    row.time_us = 0
    row.value = 0
    row.count = 0
    row.next = state.memory_buckets[bucket]
    state.memory_buckets[bucket] = memory
    return memory, True

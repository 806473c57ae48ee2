"""Built-in filters in the fast engine: those that compare and count numbers. The twin of `diffusion.filters`.

A filter on a node remembers each origin in a row of its own, which is found by a hash of filter, node and origin. What
calls a function of the user's (blob_fusion, a registered filter) stays with the reference engine.
"""

from __future__ import annotations

from enum import auto
from typing import Any

import numpy as np

from workbench.attributes.model import IS
from workbench.protocols.diffusion.fast.attributes import append, append_list, interned, part_of, sample_end
from workbench.protocols.diffusion.fast.memory import FILTER, Event, Message, Number, Reason
from workbench.protocols.diffusion.filters import BUILT_IN, Filter, complete_settings
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


class _Kind(twin.Codes):
    """The built-in filters."""

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
    """The filters; NoFastTwinError for one that the kernel does not have."""
    for one in filters:
        if type(one) is not Filter or one.name not in _Kind.texts():
            name = getattr(one, "name", type(one).__name__)
            raise twin.NoFastTwinError(f"the filter {name} runs Python code at every node")
    return filters


def in_order(filters: tuple[Filter, ...]) -> list[Filter]:
    """The filters in the order in which nodes ask them."""
    return sorted(filters, key=lambda one: one.key)


def rows(filters: list[Filter], matches: list[int]) -> np.ndarray:
    """The filters as rows of FILTER; ``matches`` are the lists of what they are for."""
    table = np.zeros(len(filters), FILTER)
    for row, one, match in zip(table, filters, matches, strict=True):
        kind: Any = BUILT_IN[one.name]
        decider = kind(complete_settings(one.name, kind.parameters, one.settings))
        row["kind"] = _Kind.texts().index(one.name)
        row["key"] = one.key
        row["messages"] = Message.DATA if one.messages == "data" else Message.INTEREST
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
def filtered(core, state, now, i, message, origin):
    """The list of a message's attributes after all filters of node ``i`` that want them, or NONE if nothing is left."""
    it = core.messages[message]
    number = it.content
    if not _carries_any(state, i):
        return number
    first, last = state.lists[number].first, state.lists[number].last
    if it.name == Message.INTEREST or first == last:
        number = _filtered_part(core, state, now, i, message, origin, number)
        return NONE if number == NONE or state.lists[number].first == state.lists[number].last else number
    parts = 0
    is_changed = False
    is_aggregate = state.interest_fields[message].is_aggregate
    while first < last:
        # A filter is about readings: of an aggregate it sees one at a time.
        end = sample_end(state, number, first, is_aggregate)
        part = part_of(state, number, first, end)
        left = _filtered_part(core, state, now, i, message, origin, part)
        is_changed = is_changed or left != part
        if left != NONE:
            state.parts[parts] = left
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
    return interned(state, start)


@compiled
def _carries_any(state, i):
    found = False
    for f in range(len(state.filters)):
        found = found or state.carries[f, i]
    return found


@compiled
def _filtered_part(core, state, now, i, message, origin, number):
    name = core.messages[message].name
    for f in range(len(state.filters)):
        if state.carries[f, i] and state.filters[f].messages == name and _wants(state, f, name, number):
            answer = _decide(state, f, i, origin, number, now)
            if answer != number and core.is_recorded[Event.FILTERED]:
                it = core.messages[message]
                detail = Reason.DROP if answer == NONE else Reason.REPLACE
                key = state.filters[f].key
                twin.add_row(core, now, i, Event.FILTERED, NONE, it.name, it.origin, it.sequence, 0, key, detail)
            if answer == NONE:
                return NONE
            number = answer
    return number


@compiled
def _wants(state, f, name, number):
    match, it = state.lists[state.filters[f].match], state.lists[number]
    if name == Message.DATA:
        return twin.one_way_match(state.attributes, match.first, match.last, it.first, it.last)
    # An interest says what it wants and has no values to compare with.
    for a in range(match.first, match.last):
        asked = False
        for b in range(it.first, it.last):
            asked = asked or state.attributes[b, 0] == state.attributes[a, 0]
        if not asked:
            return False
    return True


@compiled
def _decide(state, f, i, origin, number, now):
    """The list that a filter answers, or NONE to drop the message."""
    it = state.filters[f]
    kind = it.kind
    if kind == _Kind.RATE_LIMIT:
        memory, is_new = _memory(state, f, i, origin)
        row = state.memories[memory]
        if not is_new and now - row.time_us < it.period_us:
            return NONE
        row.time_us = now
        return number
    place = _place_of_value(state, number, it.of)
    if place == NONE:
        return number
    value = np.int64(state.attributes[place, 2])
    if kind == _Kind.NEIGHBORHOOD_AVERAGE:
        return _average(state, f, i, origin, number, place, value, now)
    memory, is_new = _memory(state, f, i, origin)
    row = state.memories[memory]
    if kind == _Kind.SUPPRESS_UNCHANGED:
        if not is_new and abs(value - row.value) <= it.tolerance and now - row.time_us < it.period_us:
            return NONE
        row.value = value
        row.time_us = now
        return number
    if kind == _Kind.THRESHOLD_ALARM:
        alarmed = row.value
        if not (value < it.low if alarmed else value > it.high):
            return NONE
        row.value = 0 if alarmed else 1
        return number
    window = state.windows[memory]
    window[row.count % it.window] = value
    row.count += 1
    return _with_value(state, number, place, _summary(kind, window, min(row.count, it.window)))


@compiled
def _place_of_value(state, number, key):
    """The row of the first IS value of a key, or NONE."""
    it = state.lists[number]
    for a in range(it.first, it.last):
        if state.attributes[a, 0] == key and state.attributes[a, 1] == IS:
            return a
    return NONE


@compiled
def _with_value(state, number, place, value):
    """The list with another value in the row ``place``."""
    it = state.lists[number]
    if state.attributes[place, 2] == value:
        return number
    start = state.numbers[Number.ATTRIBUTES]
    for a in range(it.first, it.last):
        append(state, state.attributes[a, 0], state.attributes[a, 1], value if a == place else state.attributes[a, 2])
    return interned(state, start)


@compiled
def _mean(total, count):
    """The mean of integers, rounded to the nearest (half up)."""
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
def _average(state, f, i, origin, number, place, value, now):
    all_ = state.averages[f, i]
    memory, is_new = _memory(state, f, i, origin)
    row = state.memories[memory]
    if all_.next_us == NONE:
        all_.next_us = now + state.filters[f].period_us
    if is_new or row.time_us != all_.period:
        all_.count += 1
        all_.sum += value
    else:
        all_.sum += value - row.value
    row.time_us = all_.period
    row.value = value
    if now < all_.next_us:
        return NONE
    mean = _mean(all_.sum, all_.count)
    all_.sum = 0
    all_.count = 0
    all_.period += 1
    all_.next_us = now + state.filters[f].period_us
    return _with_value(state, number, place, mean)


@compiled
def _memory(state, f, i, origin):
    """(the row in which filter ``f`` on node ``i`` remembers an origin, whether it is new)"""
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

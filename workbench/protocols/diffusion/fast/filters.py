"""The built-in filters in the fast engine: those of `diffusion.filters` that compare or average numbers.

A filter on a node has a row in ``state.memories`` for each origin of messages, found by a hash of filter, node and
origin. Filters that call a user's function (blob_fusion, registered filters) run on the reference engine only.

``f`` is the index of a filter in ``state.filters``, in the order in which nodes apply them.
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
    """Codes of the built-in filters that the fast engine implements."""

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
    """Return the given filters unchanged. Raises NoFastTwinError if the fast engine does not implement one of them."""
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
    """Return the filters as an array of the structured type FILTER, a row for each filter.

    ``matches``: for each filter, the id of the attribute list that selects the filter's messages.
    """
    table = np.zeros(len(filters), FILTER)
    for row, filter_, match in zip(table, filters, matches, strict=True):
        filter_class: Any = BUILT_IN[filter_.name]
        decider = filter_class(complete_settings(filter_.name, filter_class.parameters, filter_.settings))
        row["kind"] = _Kind.texts().index(filter_.name)
        row["key"] = filter_.key
        row["messages"] = Message.DATA if filter_.messages == "data" else Message.INTEREST
        row["match"] = match
        row["of"] = getattr(decider, "key", NONE)
        row["window"] = getattr(decider, "window", 0)
        row["flush"] = getattr(decider, "flush", False)
        for name in ("tolerance", "high", "low"):
            row[name] = getattr(decider, name, 0.0)
        for name in ("heartbeat_us", "period_us", "interval_us"):
            if hasattr(decider, name):
                row["period_us"] = min(getattr(decider, name), _LONGEST_US)
    return table


@compiled
def apply_filters(core, state, now, i, message, origin):
    """Apply node ``i``'s matching filters to a message; return the id of its new attribute list, or NONE if dropped.

    ``origin``: node index of the message's source, or of its sink if the message is an interest.
    """
    if not _has_filters(state, i):
        return core.messages[message].content
    for f in range(len(state.filters)):
        state.averages[f, i].has_dropped = 0
    return _filter_each_reading(core, state, now, i, message, origin)


@compiled
def hold_back(core, state, i, message, sender, ttl):
    """Record a message in each filter of node ``i`` that dropped a reading of this message.

    The record consists of the message's id, previous hop (``sender``) and ttl. Such a filter later sends the mean of
    the readings that it has dropped, in place of this message.
    """
    for f in range(len(state.filters)):
        average = state.averages[f, i]
        if average.has_dropped:
            average.held_origin = state.message_fields[message].origin
            average.held_sequence = core.messages[message].sequence
            average.held_sender = sender
            average.held_ttl = ttl


@compiled
def next_emission_us(state, i):
    """Return the earliest time (µs) at which a filter of node ``i`` emits a reading, or NONE."""
    next_us = NONE
    for f in range(len(state.filters)):
        emits_us = state.averages[f, i].emits_us
        if emits_us != NONE and (next_us == NONE or emits_us < next_us):
            next_us = emits_us
    return next_us


@compiled
def take_mean(state, f, i):
    """Return the id of the attribute list with the mean of filter ``f`` on node ``i``; begin the filter's next period.

    The list is that of the last reading that the filter averaged, with the mean in place of the reading's value.
    """
    average = state.averages[f, i]
    mean = _mean(average.sum, average.count)
    average.sum = 0
    average.count = 0
    average.period += 1
    average.emits_us = NONE
    return _with_value(state, average.last_list, _row_of_value(state, average.last_list, state.filters[f].of), mean)


@compiled
def _filter_each_reading(core, state, now, i, message, origin):
    message_record = core.messages[message]
    list_id = message_record.content
    first_row, end_row = state.lists[list_id].first, state.lists[list_id].last
    if message_record.name == Message.INTEREST or first_row == end_row:
        list_id = apply_to_part(core, state, now, i, message, origin, list_id, 0)
        return NONE if list_id == NONE or state.lists[list_id].first == state.lists[list_id].last else list_id
    part_count = 0
    is_changed = False
    is_aggregate = state.message_fields[message].is_aggregate
    while first_row < end_row:
        # Filters process the readings of an aggregate one at a time.
        part_end_row = sample_end(state, list_id, first_row, is_aggregate)
        part_list = slice_list(state, list_id, first_row, part_end_row)
        filtered_list = apply_to_part(core, state, now, i, message, origin, part_list, 0)
        is_changed = is_changed or filtered_list != part_list
        if filtered_list != NONE:
            state.parts[part_count] = filtered_list
            part_count += 1
        first_row = part_end_row
    if not is_changed:
        return list_id
    if part_count == 0:
        return NONE
    if part_count == 1:
        return state.parts[0]
    start_row = state.numbers[Number.ATTRIBUTES]
    for part_index in range(part_count):
        append_list(state, state.parts[part_index])
    return intern_list(state, start_row)


@compiled
def _has_filters(state, i):
    carries_filter = False
    for f in range(len(state.filters)):
        carries_filter = carries_filter or state.carries[f, i]
    return carries_filter


@compiled
def apply_to_part(core, state, now, i, message, origin, list_id, first):
    """Apply node ``i``'s matching filters, from index ``first`` on, to an attribute list; return the id of the result.

    ``list_id``: the attribute list of an interest, or of one reading in a data message. The result is NONE if a filter
    drops the list.
    """
    message_name = core.messages[message].name
    for f in range(first, len(state.filters)):
        if (
            state.carries[f, i]
            and state.filters[f].messages == message_name
            and _matches_filter(state, f, message_name, list_id)
        ):
            filtered_list = _apply_filter(state, f, i, origin, list_id, now)
            if filtered_list != list_id and core.is_recorded[Event.FILTERED]:
                message_record = core.messages[message]
                detail = Reason.DROP if filtered_list == NONE else Reason.REPLACE
                filter_key = state.filters[f].key
                twin.add_row(
                    core,
                    now,
                    i,
                    Event.FILTERED,
                    NONE,
                    message_record.name,
                    message_record.origin,
                    message_record.sequence,
                    0,
                    filter_key,
                    detail,
                )
            if filtered_list == NONE:
                state.averages[f, i].has_dropped = 1
                return NONE
            list_id = filtered_list
    return list_id


@compiled
def _matches_filter(state, f, name, list_id):
    match, attribute_list = state.lists[state.filters[f].match], state.lists[list_id]
    if name == Message.DATA:
        return twin.one_way_match(state.attributes, match.first, match.last, attribute_list.first, attribute_list.last)
    # An interest contains constraints instead of values, so only its keys are compared.
    for match_row in range(match.first, match.last):
        has_key = False
        for attribute_row in range(attribute_list.first, attribute_list.last):
            has_key = has_key or state.attributes[attribute_row, 0] == state.attributes[match_row, 0]
        if not has_key:
            return False
    return True


@compiled
def _apply_filter(state, f, i, origin, list_id, now):
    """Apply filter ``f`` of node ``i`` to the attribute list ``list_id``.

    Return the id of the resulting list, which is ``list_id`` if the filter changes nothing, or NONE if it drops the
    list.
    """
    filter_ = state.filters[f]
    kind = filter_.kind
    if kind == _Kind.RATE_LIMIT:
        memory_index, is_new = _find_memory(state, f, i, origin)
        memory_row = state.memories[memory_index]
        if not is_new and now - memory_row.time_us < filter_.period_us:
            return NONE
        memory_row.time_us = now
        return list_id
    value_row = _row_of_value(state, list_id, filter_.of)
    if value_row == NONE:
        return list_id
    value = np.int64(state.attributes[value_row, 2])
    if kind == _Kind.NEIGHBORHOOD_AVERAGE:
        return _update_average(state, f, i, origin, list_id, value_row, value, now)
    memory_index, is_new = _find_memory(state, f, i, origin)
    memory_row = state.memories[memory_index]
    if kind == _Kind.SUPPRESS_UNCHANGED:
        if (
            not is_new
            and abs(value - memory_row.value) <= filter_.tolerance
            and now - memory_row.time_us < filter_.period_us
        ):
            return NONE
        memory_row.value = value
        memory_row.time_us = now
        return list_id
    if kind == _Kind.THRESHOLD_ALARM:
        is_alarmed = memory_row.value
        if not (value < filter_.low if is_alarmed else value > filter_.high):
            return NONE
        memory_row.value = 0 if is_alarmed else 1
        return list_id
    window = state.windows[memory_index]
    window[memory_row.count % filter_.window] = value
    memory_row.count += 1
    return _with_value(
        state, list_id, value_row, _summarize_window(kind, window, min(memory_row.count, filter_.window))
    )


@compiled
def _row_of_value(state, list_id, key):
    """Return the row, in ``state.attributes``, of a list's first attribute with this key and operator IS, or NONE."""
    attribute_list = state.lists[list_id]
    for row in range(attribute_list.first, attribute_list.last):
        if state.attributes[row, 0] == key and state.attributes[row, 1] == IS:
            return row
    return NONE


@compiled
def _with_value(state, list_id, value_row, value):
    """Return the id of a list with the attributes of ``list_id``, except that row ``value_row`` has another value."""
    attribute_list = state.lists[list_id]
    if state.attributes[value_row, 2] == value:
        return list_id
    first_row = state.numbers[Number.ATTRIBUTES]
    for row in range(attribute_list.first, attribute_list.last):
        append(
            state,
            state.attributes[row, 0],
            state.attributes[row, 1],
            value if row == value_row else state.attributes[row, 2],
        )
    return intern_list(state, first_row)


@compiled
def _mean(total, count):
    """Return the mean of ``count`` integers with the sum ``total``, rounded to the nearest (half up)."""
    return (2 * total + count) // (2 * count)


@compiled
def _summarize_window(kind, window, count):
    total, low, high = np.int64(0), window[0], window[0]
    for reading_index in range(count):
        total += window[reading_index]
        low = min(low, window[reading_index])
        high = max(high, window[reading_index])
    if kind == _Kind.RUNNING_MEAN:
        return _mean(total, np.int64(count))
    return np.int64(low if kind == _Kind.RUNNING_MINIMUM else high)


@compiled
def _update_average(state, f, i, origin, list_id, value_row, value, now):
    average = state.averages[f, i]
    memory_index, is_new = _find_memory(state, f, i, origin)
    memory_row = state.memories[memory_index]
    is_flushed = state.filters[f].flush
    if is_flushed and average.emits_us == NONE:
        average.emits_us = now + state.filters[f].period_us
    if average.next_us == NONE:
        average.next_us = now + state.filters[f].period_us
    if is_new or memory_row.time_us != average.period:
        average.count += 1
        average.sum += value
    else:
        average.sum += value - memory_row.value
    memory_row.time_us = average.period
    memory_row.value = value
    average.last_list = list_id
    if is_flushed or now < average.next_us:
        return NONE
    mean = _mean(average.sum, average.count)
    average.sum = 0
    average.count = 0
    average.period += 1
    average.next_us = now + state.filters[f].period_us
    return _with_value(state, list_id, value_row, mean)


@compiled
def _find_memory(state, f, i, origin):
    """Find or add the row of ``state.memories`` in which filter ``f`` on node ``i`` remembers messages of ``origin``.

    Return (index of the row, whether the row is new).
    """
    node_count = state.carries.shape[1]
    id = (np.int64(f) * node_count + i) * node_count + origin
    bucket = np.int64((np.uint64(id) * _FACTOR) >> np.uint64(32)) & (len(state.memory_buckets) - 1)
    memory_index = state.memory_buckets[bucket]
    while memory_index != NONE:
        if state.memories[memory_index].id == id:
            return memory_index, False
        memory_index = state.memories[memory_index].next
    memory_index = state.numbers[Number.MEMORIES]
    state.numbers[Number.MEMORIES] = memory_index + 1
    memory_row = state.memories[memory_index]
    memory_row.id = id
    memory_row.time_us = 0
    memory_row.value = 0
    memory_row.count = 0
    memory_row.next = state.memory_buckets[bucket]
    state.memory_buckets[bucket] = memory_index
    return memory_index, True

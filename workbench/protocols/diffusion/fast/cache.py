"""Interest caches in the fast engine, as in `diffusion.interest_cache`: entries, gradients, events that report changes.

``entry`` is the index of an entry in ``state.entries``; its gradients are ``state.gradients[entry]``.
"""

import numpy as np

from workbench.protocols.diffusion.fast.attributes import constraints_of
from workbench.protocols.diffusion.fast.memory import Event, Message, Number, Reason
from workbench.protocols.diffusion.fast.paces import remove_paces
from workbench.protocols.diffusion.fast.paths import clear_data_gradients
from workbench.protocols.diffusion.rules import FOREVER_US, gradient_to_replace, is_older_round, is_path_of_round
from workbench.protocols.subscriptions import SECOND_US
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# The result of `head_of` for a sink without gradients.
NO_HEAD = (NONE, np.int64(0), np.int64(0))
# Values of ``which`` of `remove_gradients`.
BEFORE_ROUND, EXPIRED_BY, SET_UP_TO, TOWARDS = range(4)


@compiled
def find(state, i, constraints):
    """Return node ``i``'s cache entry with these constraints (given as the id of an attribute list), or NONE."""
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        if state.entries[entry].constraints == constraints:
            return entry
    return NONE


@compiled
def new_entry(core, state, now, i, list_id, sink, sequence):
    """Add an entry for an interest with the attribute list ``list_id`` to node ``i``'s cache and return the entry.

    If the cache is full, its oldest entry is evicted.
    """
    state.nodes[i].is_evicting = state.nodes[i].entries >= state.max_interests
    if state.nodes[i].is_evicting:
        oldest_entry = state.order[i, 0]
        remove_entry(state, i, 0)
        for gradient_index in range(state.entries[oldest_entry].gradients):
            report_removed(core, state, now, i, state.gradients[oldest_entry, gradient_index], Reason.EVICTED)
        report_interest_removed(core, state, now, i, oldest_entry, Reason.EVICTED)
    entry = i * state.slots
    while state.entries[entry].is_used:
        entry += 1
    entry_record = state.entries[entry]
    entry_record.is_used = 1
    entry_record.sink = sink
    entry_record.sequence = sequence
    entry_record.list = list_id
    entry_record.constraints = constraints_of(state, list_id)
    entry_record.gradients = 0
    clear_data_gradients(state, entry)
    state.order[i, state.nodes[i].entries] = entry
    state.nodes[i].entries += 1
    return entry


@compiled
def remove_entry(state, i, index):
    """Remove the entry ``state.order[i, index]`` from node ``i``'s interest cache.

    Also remove the INTERVALs that the node has stored for sinks of this entry.
    """
    remove_paces(state, i, state.order[i, index])
    state.entries[state.order[i, index]].is_used = 0
    state.nodes[i].entries -= 1
    for position in range(index, state.nodes[i].entries):
        state.order[i, position] = state.order[i, position + 1]


@compiled
def remove_gradients(core, state, now, i, entry, selection, sink, bound, round_, reason):
    """Remove gradients of a cache entry, report each as an event, and return the number of removed gradients.

    ``reason``: the reason in the events. ``selection`` determines which gradients are removed:

    EXPIRED_BY    those that expire at or before the time ``bound`` (µs)
    TOWARDS       those towards a neighbor, whose index is passed as ``sink``
    SET_UP_TO     those of ``sink`` that were set by an interest with a sequence number up to ``bound``, or only by
                  reinforcements
    BEFORE_ROUND  those of ``sink``, except a gradient that a reinforcement has set in round ``round_`` of the interest
                  with the sequence number ``bound``
    """
    count = state.entries[entry].gradients
    reports_heads = selection in (EXPIRED_BY, TOWARDS)
    remaining_count = 0
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    for gradient_index in range(count):
        gradient = state.gradients[entry, gradient_index]
        if selection == EXPIRED_BY:
            is_removed = gradient.expires_us <= bound
        elif selection == TOWARDS:
            is_removed = gradient.neighbor == sink
        elif selection == BEFORE_ROUND:
            is_removed = gradient.sink == sink and not is_path_of_round(
                gradient.reinforced_by, gradient.round, bound, round_
            )
        else:
            is_removed = gradient.sink == sink and gradient.sequence <= bound
        if reports_heads and state.sink_stamp[gradient.sink] != stamp:
            state.sink_stamp[gradient.sink] = stamp
            state.sink_room[gradient.sink] = is_removed  # whether the first gradient is removed
        if is_removed:
            report_removed(core, state, now, i, gradient, reason)
        else:
            if remaining_count < gradient_index:
                state.gradients[entry, remaining_count] = gradient
            remaining_count += 1
    state.entries[entry].gradients = remaining_count
    if reports_heads and remaining_count < count:
        for gradient_index in range(remaining_count):
            sink = state.gradients[entry, gradient_index].sink
            if state.sink_room[sink]:
                state.sink_room[sink] = 0
                report_head(core, state, now, i, entry, sink, NO_HEAD)
    return count - remaining_count


@compiled
def head_of(state, entry, sink):
    """Return (neighbor, interest's sequence number, 1 if reinforced else 0) of a sink's first gradient, or NO_HEAD."""
    gradient_index = _first_gradient_of(state, entry, sink, state.entries[entry].gradients)
    if gradient_index == state.entries[entry].gradients:
        return NO_HEAD
    gradient = state.gradients[entry, gradient_index]
    return np.int64(gradient.neighbor), np.int64(_interest_sequence(gradient)), np.int64(gradient.reinforced_by != NONE)


@compiled
def _interest_sequence(gradient):
    """Return the sequence number of a gradient's interest, or 0 if only reinforcements have set the gradient."""
    return max(gradient.sequence, 0)


@compiled
def report_head(core, state, now, i, entry, sink, old_head):
    """Report a sink's first gradient in a cache entry as an event, if it differs from ``old_head``.

    ``old_head``: the result of `head_of` before the change. If the sink has no gradient, nothing is reported.
    """
    if not core.is_recorded[Event.HEAD_SET]:
        return
    new_head = head_of(state, entry, sink)
    if new_head[0] != NONE and (new_head[0] != old_head[0] or new_head[1] != old_head[1] or new_head[2] != old_head[2]):
        peer, origin = core.addresses[new_head[0]], core.addresses[sink]
        twin.add_row(
            core, now, i, Event.HEAD_SET, peer, Message.INTEREST, origin, new_head[1], 0, new_head[2], twin.NO_REASON
        )


@compiled
def set_gradient(core, state, now, i, entry, message, neighbor, ttl, reinforced_by):
    """Set or renew a cache entry's gradient towards the neighbor that sent an interest or a reinforcement.

    ``reinforced_by``: the reinforcement's sequence number, or NONE for an interest; ``ttl``: ttl of the received
    message.
    """
    sequence, fields = core.messages[message].sequence, state.message_fields[message]
    sink = fields.origin
    expires_us = now + fields.expiration_s * SECOND_US
    gradient_index = _gradient_index(state, entry, sink, neighbor)
    is_new = gradient_index == NONE
    if is_new:
        gradient_index = _add_gradient(core, state, now, i, entry, sink, neighbor, expires_us, reinforced_by)
        if gradient_index == NONE:
            return
    gradient = state.gradients[entry, gradient_index]
    gradient.round = fields.round
    if reinforced_by == NONE:
        gradient.ttl = ttl
        if not is_new and gradient.sequence == NONE:
            # From now on the events of this gradient have the interest's sequence number.
            report_removed(core, state, now, i, gradient, Reason.INTEREST)
            is_new = True
    if reinforced_by == NONE and gradient.sequence < sequence:
        gradient.sequence = sequence
    if reinforced_by == NONE and not is_new and gradient.expires_us >= expires_us:
        return
    gradient.expires_us = max(gradient.expires_us, expires_us)
    expires_us = gradient.expires_us
    state.nodes[i].first_expiry_us = min(state.nodes[i].first_expiry_us, expires_us)
    if reinforced_by != NONE:
        for other_index in range(state.entries[entry].gradients):
            other_gradient = state.gradients[entry, other_index]
            if other_gradient.sink == sink:
                other_gradient.reinforced_by = NONE
        gradient.reinforced_by = reinforced_by
        _move_to_front(state, entry, gradient_index)
    if core.is_recorded[Event.GRADIENT_SET]:
        message_name, detail = (
            (Message.INTEREST, Reason.INTEREST)
            if reinforced_by == NONE
            else (Message.REINFORCEMENT, Reason.REINFORCEMENT)
        )
        peer, origin = core.addresses[neighbor], core.addresses[sink]
        twin.add_row(core, now, i, Event.GRADIENT_SET, peer, message_name, origin, sequence, 0, expires_us, detail)


@compiled
def _gradient_index(state, entry, sink, neighbor):
    for gradient_index in range(state.entries[entry].gradients):
        gradient = state.gradients[entry, gradient_index]
        if gradient.sink == sink and gradient.neighbor == neighbor:
            return gradient_index
    return NONE


@compiled
def _add_gradient(core, state, now, i, entry, sink, neighbor, expires_us, reinforced_by):
    """Append a gradient to a cache entry and return its index, or NONE if the new gradient is dropped.

    If the entry is full, `rules.gradient_to_replace` decides whether the new gradient or an old one is dropped.
    ``reinforced_by``: the sequence number of the reinforcement that sets the gradient; NONE if an interest sets it.
    """
    if state.entries[entry].gradients >= state.max_gradients:
        gradients, count = state.gradients[entry], state.entries[entry].gradients
        replaced_index = gradient_to_replace(gradients, count, sink, reinforced_by != NONE)
        if replaced_index == NONE:
            return NONE
        report_removed(core, state, now, i, state.gradients[entry, replaced_index], Reason.EVICTED)
        state.entries[entry].gradients -= 1
        for position in range(replaced_index, state.entries[entry].gradients):
            state.gradients[entry, position] = state.gradients[entry, position + 1]
    gradient_index = state.entries[entry].gradients
    state.entries[entry].gradients = gradient_index + 1
    gradient = state.gradients[entry, gradient_index]
    gradient.sink = sink
    gradient.neighbor = neighbor
    gradient.expires_us = expires_us
    gradient.reinforced_by = reinforced_by
    gradient.sequence = NONE
    gradient.ttl = 0
    return gradient_index


@compiled
def _first_gradient_of(state, entry, sink, count):
    """Return the index of a sink's first gradient in a cache entry, or ``count`` if the sink has no gradient.

    ``count``: number of gradients to search, from the start of the entry's list.
    """
    for gradient_index in range(count):
        if state.gradients[entry, gradient_index].sink == sink:
            return gradient_index
    return count


@compiled
def _move_to_front(state, entry, g):
    gradient = state.gradients[entry, g]
    expires_us, sequence, reinforced_by, round_ = (
        gradient.expires_us,
        gradient.sequence,
        gradient.reinforced_by,
        gradient.round,
    )
    neighbor, sink, ttl = gradient.neighbor, gradient.sink, gradient.ttl
    for index in range(g, 0, -1):
        state.gradients[entry, index] = state.gradients[entry, index - 1]
    first_gradient = state.gradients[entry, 0]
    first_gradient.expires_us, first_gradient.sequence, first_gradient.reinforced_by, first_gradient.round = (
        expires_us,
        sequence,
        reinforced_by,
        round_,
    )
    first_gradient.neighbor, first_gradient.sink, first_gradient.ttl = neighbor, sink, ttl


@compiled
def newest_reinforcement(state, entry, sink):
    """Return the sequence number of the newest reinforcement that set a sink's gradient in an entry, or NONE."""
    newest_sequence = NONE
    for gradient_index in range(state.entries[entry].gradients):
        if state.gradients[entry, gradient_index].sink == sink:
            newest_sequence = max(newest_sequence, state.gradients[entry, gradient_index].reinforced_by)
    return newest_sequence


@compiled
def has_newer_round(state, entry, sink, round_):
    """Return whether a cache entry has a gradient set by an interest of ``sink`` in a newer round than ``round_``."""
    is_newer = False
    for gradient_index in range(state.entries[entry].gradients):
        gradient = state.gradients[entry, gradient_index]
        is_newer = is_newer or (
            gradient.sink == sink and gradient.sequence != NONE and is_older_round(round_, gradient.round)
        )
    return is_newer


@compiled
def has_sink(state, entry, sink):
    """Return whether a cache entry has a gradient towards a sink."""
    count = state.entries[entry].gradients
    return _first_gradient_of(state, entry, sink, count) < count


@compiled
def clean(core, state, now, i):
    """Remove expired gradients from node ``i``'s cache, then the entries without gradients."""
    if now >= state.nodes[i].first_expiry_us:
        _remove_expired(core, state, now, i)


@compiled
def _remove_expired(core, state, now, i):
    next_expiry_us = FOREVER_US
    index = 0
    while index < state.nodes[i].entries:
        entry = state.order[i, index]
        remove_gradients(core, state, now, i, entry, EXPIRED_BY, NONE, now, 0, Reason.EXPIRED)
        count = state.entries[entry].gradients
        if count == 0:
            remove_entry(state, i, index)
            report_interest_removed(core, state, now, i, entry, Reason.EXPIRED)
            continue
        for gradient_index in range(count):
            next_expiry_us = min(next_expiry_us, state.gradients[entry, gradient_index].expires_us)
        index += 1
    state.nodes[i].first_expiry_us = next_expiry_us


@compiled
def report_removed(core, state, now, i, gradient, reason):
    """Report as an event that a gradient was removed for ``reason``."""
    if core.is_recorded[Event.GRADIENT_REMOVED]:
        sequence = _interest_sequence(gradient)
        peer, sink = core.addresses[gradient.neighbor], core.addresses[gradient.sink]
        twin.add_row(core, now, i, Event.GRADIENT_REMOVED, peer, Message.INTEREST, sink, sequence, 0, 0, reason)


@compiled
def report_interest_removed(core, state, now, i, entry, reason):
    """Report as an event that a cache entry was removed for ``reason``."""
    if core.is_recorded[Event.INTEREST_REMOVED]:
        entry_record = state.entries[entry]
        twin.add_row(
            core,
            now,
            i,
            Event.INTEREST_REMOVED,
            NONE,
            Message.INTEREST,
            core.addresses[entry_record.sink],
            entry_record.sequence,
            0,
            0,
            reason,
        )

"""The interest caches of the fast twin: entries and gradients, as in `diffusion.interest_cache`, and their events.

``entry`` is the index of an entry in ``state.entries``; its gradients are ``state.gradients[entry]``.
"""

import numpy as np

from workbench.protocols.diffusion.fast.attributes import constraints_of
from workbench.protocols.diffusion.fast.memory import Event, Message, Number, Reason
from workbench.protocols.diffusion.fast.paces import remove_paces
from workbench.protocols.diffusion.fast.paths import clear_data_gradients
from workbench.protocols.diffusion.rules import FOREVER_US, gradient_to_replace, is_path_of_round, is_stale
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
        oldest = state.order[i, 0]
        remove_entry(state, i, 0)
        for g in range(state.entries[oldest].gradients):
            report_removed(core, state, now, i, state.gradients[oldest, g], Reason.EVICTED)
        report_interest_removed(core, state, now, i, oldest, Reason.EVICTED)
    entry = i * state.slots
    while state.entries[entry].is_used:
        entry += 1
    record = state.entries[entry]
    record.is_used = 1
    record.sink = sink
    record.sequence = sequence
    record.list = list_id
    record.constraints = constraints_of(state, list_id)
    record.gradients = 0
    clear_data_gradients(state, entry)
    state.order[i, state.nodes[i].entries] = entry
    state.nodes[i].entries += 1
    return entry


@compiled
def remove_entry(state, i, index):
    """Remove from node ``i``'s cache the entry ``state.order[i, index]``, with its paces."""
    remove_paces(state, i, state.order[i, index])
    state.entries[state.order[i, index]].is_used = 0
    state.nodes[i].entries -= 1
    for later in range(index, state.nodes[i].entries):
        state.order[i, later] = state.order[i, later + 1]


@compiled
def remove_gradients(core, state, now, i, entry, selection, sink, bound, round_, reason):
    """Remove the gradients of a cache entry that ``selection`` selects, report them, and return how many were removed.

    ``reason``: the reason in the reports. Values of ``selection``:

    EXPIRED_BY    gradients that expire at or before the time ``bound`` (µs)
    TOWARDS       gradients towards a neighbor; ``sink`` contains the neighbor's index
    SET_UP_TO     gradients of ``sink`` set by interests with sequence numbers up to ``bound``, or only by
                  reinforcements
    BEFORE_ROUND  gradients of ``sink``, except a gradient that a reinforcement has set in round ``round_`` of the
                  interest with the sequence number ``bound``
    """
    count = state.entries[entry].gradients
    reports_heads = selection in (EXPIRED_BY, TOWARDS)
    remaining = 0
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    for g in range(count):
        gradient = state.gradients[entry, g]
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
            if remaining < g:
                state.gradients[entry, remaining] = gradient
            remaining += 1
    state.entries[entry].gradients = remaining
    if reports_heads and remaining < count:
        for g in range(remaining):
            sink = state.gradients[entry, g].sink
            if state.sink_room[sink]:
                state.sink_room[sink] = 0
                report_head(core, state, now, i, entry, sink, NO_HEAD)
    return count - remaining


@compiled
def head_of(state, entry, sink):
    """Return (neighbor, interest's sequence number, 1 if reinforced else 0) of a sink's first gradient, or NO_HEAD."""
    g = _first_gradient_of(state, entry, sink, state.entries[entry].gradients)
    if g == state.entries[entry].gradients:
        return NO_HEAD
    gradient = state.gradients[entry, g]
    return np.int64(gradient.neighbor), np.int64(_interest_number(gradient)), np.int64(gradient.reinforced_by != NONE)


@compiled
def _interest_number(gradient):
    """Return the sequence number of a gradient's interest, or 0 if only reinforcements have set the gradient."""
    return max(gradient.sequence, 0)


@compiled
def report_head(core, state, now, i, entry, sink, old_head):
    """Report a sink's first gradient in a cache entry, if it differs from ``old_head``, the first gradient before."""
    if not core.is_recorded[Event.HEAD_SET]:
        return
    head = head_of(state, entry, sink)
    if head[0] != NONE and (head[0] != old_head[0] or head[1] != old_head[1] or head[2] != old_head[2]):
        peer, origin = core.addresses[head[0]], core.addresses[sink]
        twin.add_row(core, now, i, Event.HEAD_SET, peer, Message.INTEREST, origin, head[1], 0, head[2], twin.NO_REASON)


@compiled
def set_gradient(core, state, now, i, entry, message, neighbor, ttl, reinforced_by):
    """Set or renew the gradient towards the neighbor that sent an interest or a reinforcement.

    ``reinforced_by``: the reinforcement's sequence number, or NONE for an interest; ``ttl``: ttl of the received
    message.
    """
    sequence, fields = core.messages[message].sequence, state.message_fields[message]
    sink = fields.origin
    expires_us = now + fields.expiration_s * SECOND_US
    g = _gradient_index(state, entry, sink, neighbor)
    is_new = g == NONE
    if is_new:
        g = _add(core, state, now, i, entry, sink, neighbor, expires_us, reinforced_by)
        if g == NONE:
            return
    gradient = state.gradients[entry, g]
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
        for other in range(state.entries[entry].gradients):
            other_gradient = state.gradients[entry, other]
            if other_gradient.sink == sink:
                other_gradient.reinforced_by = NONE
        gradient.reinforced_by = reinforced_by
        _move_to_front(state, entry, g)
    if core.is_recorded[Event.GRADIENT_SET]:
        name, detail = (
            (Message.INTEREST, Reason.INTEREST)
            if reinforced_by == NONE
            else (Message.REINFORCEMENT, Reason.REINFORCEMENT)
        )
        peer, origin = core.addresses[neighbor], core.addresses[sink]
        twin.add_row(core, now, i, Event.GRADIENT_SET, peer, name, origin, sequence, 0, expires_us, detail)


@compiled
def _gradient_index(state, entry, sink, neighbor):
    for g in range(state.entries[entry].gradients):
        gradient = state.gradients[entry, g]
        if gradient.sink == sink and gradient.neighbor == neighbor:
            return g
    return NONE


@compiled
def _add(core, state, now, i, entry, sink, neighbor, expires_us, reinforced_by):
    """Append a gradient to a cache entry and return its index, or NONE if the entry is full and keeps its gradients."""
    if state.entries[entry].gradients >= state.max_gradients:
        gradients, count = state.gradients[entry], state.entries[entry].gradients
        replaced_index = gradient_to_replace(gradients, count, sink, reinforced_by != NONE)
        if replaced_index == NONE:
            return NONE
        report_removed(core, state, now, i, state.gradients[entry, replaced_index], Reason.EVICTED)
        state.entries[entry].gradients -= 1
        for later in range(replaced_index, state.entries[entry].gradients):
            state.gradients[entry, later] = state.gradients[entry, later + 1]
    g = state.entries[entry].gradients
    state.entries[entry].gradients = g + 1
    gradient = state.gradients[entry, g]
    gradient.sink = sink
    gradient.neighbor = neighbor
    gradient.expires_us = expires_us
    gradient.reinforced_by = reinforced_by
    gradient.sequence = NONE
    gradient.ttl = 0
    return g


@compiled
def _first_gradient_of(state, entry, sink, count):
    """Return the index of a sink's first gradient among the first ``count`` gradients of an entry, or ``count``."""
    for g in range(count):
        if state.gradients[entry, g].sink == sink:
            return g
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
    first = state.gradients[entry, 0]
    first.expires_us, first.sequence, first.reinforced_by, first.round = expires_us, sequence, reinforced_by, round_
    first.neighbor, first.sink, first.ttl = neighbor, sink, ttl


@compiled
def newest_reinforcement(state, entry, sink):
    """Return the sequence number of the newest reinforcement that set a sink's gradient in an entry, or NONE."""
    newest = NONE
    for g in range(state.entries[entry].gradients):
        if state.gradients[entry, g].sink == sink:
            newest = max(newest, state.gradients[entry, g].reinforced_by)
    return newest


@compiled
def has_newer_round(state, entry, sink, round_):
    """Return whether a gradient of an entry was set by a sink's interest of a newer round than ``round_``."""
    is_newer = False
    for g in range(state.entries[entry].gradients):
        gradient = state.gradients[entry, g]
        is_newer = is_newer or (
            gradient.sink == sink and gradient.sequence != NONE and is_stale(round_, gradient.round)
        )
    return is_newer


@compiled
def has_sink(state, entry, sink):
    """Return whether an entry has a gradient for a sink."""
    count = state.entries[entry].gradients
    return _first_gradient_of(state, entry, sink, count) < count


@compiled
def clean(core, state, now, i):
    """Remove expired gradients from node ``i``'s cache, then the entries without gradients."""
    if now >= state.nodes[i].first_expiry_us:
        _clean(core, state, now, i)


@compiled
def _clean(core, state, now, i):
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
        for g in range(count):
            next_expiry_us = min(next_expiry_us, state.gradients[entry, g].expires_us)
        index += 1
    state.nodes[i].first_expiry_us = next_expiry_us


@compiled
def report_removed(core, state, now, i, gradient, reason):
    """Report as an event that a gradient was removed, with the reason."""
    if core.is_recorded[Event.GRADIENT_REMOVED]:
        sequence = _interest_number(gradient)
        peer, sink = core.addresses[gradient.neighbor], core.addresses[gradient.sink]
        twin.add_row(core, now, i, Event.GRADIENT_REMOVED, peer, Message.INTEREST, sink, sequence, 0, 0, reason)


@compiled
def report_interest_removed(core, state, now, i, entry, reason):
    """Report as an event that a cache entry was removed, with the reason."""
    if core.is_recorded[Event.INTEREST_REMOVED]:
        record = state.entries[entry]
        twin.add_row(
            core,
            now,
            i,
            Event.INTEREST_REMOVED,
            NONE,
            Message.INTEREST,
            core.addresses[record.sink],
            record.sequence,
            0,
            0,
            reason,
        )

"""The interest cache in the fast engine: the twin of `diffusion.interest_cache`, and how a node uses it."""

import numpy as np

from workbench.protocols.diffusion.fast.attributes import constraints_of
from workbench.protocols.diffusion.fast.memory import Event, Message, Number, Reason
from workbench.protocols.diffusion.fast.paths import clear_data_gradients
from workbench.protocols.diffusion.rules import FOREVER_US, is_path_of_round, is_stale, replaced
from workbench.protocols.subscriptions import SECOND_US
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# A sink has no gradients: neighbor, number, whether it is reinforced.
NO_HEAD = (NONE, np.int64(0), np.int64(0))
# Which gradients `remove_gradients` takes out.
BEFORE_ROUND, EXPIRED_BY, SET_UP_TO = range(3)


@compiled
def find(state, i, constraints):
    """Node ``i``'s entry with these constraints, or NONE."""
    for place in range(state.nodes[i].entries):
        entry = state.order[i, place]
        if state.entries[entry].constraints == constraints:
            return entry
    return NONE


@compiled
def new_entry(core, state, now, i, number, sink, sequence):
    """A new entry for a list, in place of the oldest if the cache is full."""
    state.nodes[i].is_evicting = state.nodes[i].entries >= state.max_interests
    if state.nodes[i].is_evicting:
        oldest = state.order[i, 0]
        take_out(state, i, 0)
        for g in range(state.entries[oldest].gradients):
            tell_removed(core, state, now, i, state.gradients[oldest, g], Reason.EVICTED)
        tell_interest_removed(core, state, now, i, oldest, Reason.EVICTED)
    entry = i * state.slots
    while state.entries[entry].is_used:
        entry += 1
    it = state.entries[entry]
    it.is_used = 1
    it.sink = sink
    it.sequence = sequence
    it.list = number
    it.constraints = constraints_of(state, number)
    it.gradients = 0
    clear_data_gradients(state, entry)
    state.order[i, state.nodes[i].entries] = entry
    state.nodes[i].entries += 1
    return entry


@compiled
def take_out(state, i, place):
    """Take the entry at a place out of node ``i``'s cache."""
    state.entries[state.order[i, place]].is_used = 0
    state.nodes[i].entries -= 1
    for later in range(place, state.nodes[i].entries):
        state.order[i, later] = state.order[i, later + 1]


@compiled
def remove_gradients(core, state, now, i, entry, which, sink, bound, round_, reason):
    """Take gradients out of an entry: EXPIRED_BY the time bound, or a sink's SET_UP_TO interest ``bound``.

    BEFORE_ROUND: all of a sink's but for what a reinforcement of this round of interest ``bound`` has set.

    Those that a reinforcement alone has set have NONE for the interest, which is below any bound.
    """
    count = state.entries[entry].gradients
    kept = 0
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    for g in range(count):
        it = state.gradients[entry, g]
        if which == EXPIRED_BY:
            goes = it.expires_us <= bound
            if state.sink_stamp[it.sink] != stamp:
                state.sink_stamp[it.sink] = stamp
                state.sink_room[it.sink] = goes  # whether the head goes
        elif which == BEFORE_ROUND:
            goes = it.sink == sink and not is_path_of_round(it.wave, it.round, bound, round_)
        else:
            goes = it.sink == sink and it.sequence <= bound
        if goes:
            tell_removed(core, state, now, i, it, reason)
        else:
            if kept < g:
                state.gradients[entry, kept] = it
            kept += 1
    state.entries[entry].gradients = kept
    if which == EXPIRED_BY and kept < count:
        for g in range(kept):
            sink = state.gradients[entry, g].sink
            if state.sink_room[sink]:
                state.sink_room[sink] = 0
                tell_head(core, state, now, i, entry, sink, NO_HEAD)
    return count - kept


@compiled
def head_of(state, entry, sink):
    """Return (neighbor, number, whether it is reinforced) of a sink's first gradient, or NO_HEAD."""
    g = _first_of(state, entry, sink, state.entries[entry].gradients)
    if g == state.entries[entry].gradients:
        return NO_HEAD
    it = state.gradients[entry, g]
    return np.int64(it.neighbor), np.int64(_number(it)), np.int64(it.wave != NONE)


@compiled
def _number(gradient):
    """Return the number of a gradient's interest, or 0 if reinforcements alone have set it."""
    return max(gradient.sequence, 0)


@compiled
def tell_head(core, state, now, i, entry, sink, before):
    """Report a sink's first gradient if it is not what it was ``before``."""
    if not core.is_recorded[Event.HEAD_SET]:
        return
    head = head_of(state, entry, sink)
    if head[0] != NONE and (head[0] != before[0] or head[1] != before[1] or head[2] != before[2]):
        peer, origin = core.addresses[head[0]], core.addresses[sink]
        twin.add_row(core, now, i, Event.HEAD_SET, peer, Message.INTEREST, origin, head[1], 0, head[2], twin.NO_REASON)


@compiled
def set_gradient(core, state, now, i, entry, message, neighbor, ttl, wave):
    """Set or renew the gradient towards the neighbor that sent an interest (wave NONE) or a reinforcement.

    ``ttl``: with which the message came.
    """
    sequence, fields = core.messages[message].sequence, state.interest_fields[message]
    sink = fields.origin
    expires_us = now + fields.expiration_s * SECOND_US
    g = _gradient(state, entry, sink, neighbor)
    is_new = g == NONE
    if is_new:
        g = _add(core, state, now, i, entry, sink, neighbor, expires_us, wave)
        if g == NONE:
            return
    it = state.gradients[entry, g]
    it.round = fields.round
    if wave == NONE:
        it.ttl = ttl
        if not is_new and it.sequence == NONE:
            # Reported under its new number from now on.
            tell_removed(core, state, now, i, it, Reason.INTEREST)
            is_new = True
    if wave == NONE and it.sequence < sequence:
        it.sequence = sequence
    if wave == NONE and not is_new and it.expires_us >= expires_us:
        return
    it.expires_us = max(it.expires_us, expires_us)
    expires_us = it.expires_us
    state.nodes[i].first_expiry_us = min(state.nodes[i].first_expiry_us, expires_us)
    if wave != NONE:
        for other in range(state.entries[entry].gradients):
            gradient = state.gradients[entry, other]
            if gradient.sink == sink:
                gradient.wave = NONE
        it.wave = wave
        _to_front(state, entry, g)
    if core.is_recorded[Event.GRADIENT_SET]:
        name, detail = (
            (Message.INTEREST, Reason.INTEREST) if wave == NONE else (Message.REINFORCEMENT, Reason.REINFORCEMENT)
        )
        peer, origin = core.addresses[neighbor], core.addresses[sink]
        twin.add_row(core, now, i, Event.GRADIENT_SET, peer, name, origin, sequence, 0, expires_us, detail)


@compiled
def _gradient(state, entry, sink, neighbor):
    for g in range(state.entries[entry].gradients):
        it = state.gradients[entry, g]
        if it.sink == sink and it.neighbor == neighbor:
            return g
    return NONE


@compiled
def _add(core, state, now, i, entry, sink, neighbor, expires_us, wave):
    """Append a gradient, in place of another if the list is full; its place, or NONE if it was not taken."""
    if state.entries[entry].gradients >= state.max_gradients:
        gradients, count = state.gradients[entry], state.entries[entry].gradients
        victim = replaced(gradients, count, sink, wave != NONE)
        if victim == NONE:
            return NONE
        tell_removed(core, state, now, i, state.gradients[entry, victim], Reason.EVICTED)
        state.entries[entry].gradients -= 1
        for later in range(victim, state.entries[entry].gradients):
            state.gradients[entry, later] = state.gradients[entry, later + 1]
    g = state.entries[entry].gradients
    state.entries[entry].gradients = g + 1
    it = state.gradients[entry, g]
    it.sink = sink
    it.neighbor = neighbor
    it.expires_us = expires_us
    it.wave = wave
    it.sequence = NONE
    it.ttl = 0
    return g


@compiled
def _first_of(state, entry, sink, count):
    """The first of the first ``count`` gradients that is a sink's, or ``count``."""
    for g in range(count):
        if state.gradients[entry, g].sink == sink:
            return g
    return count


@compiled
def _to_front(state, entry, g):
    it = state.gradients[entry, g]
    expires_us, sequence, wave, round_ = it.expires_us, it.sequence, it.wave, it.round
    neighbor, sink, ttl = it.neighbor, it.sink, it.ttl
    for place in range(g, 0, -1):
        state.gradients[entry, place] = state.gradients[entry, place - 1]
    first = state.gradients[entry, 0]
    first.expires_us, first.sequence, first.wave, first.round = expires_us, sequence, wave, round_
    first.neighbor, first.sink, first.ttl = neighbor, sink, ttl


@compiled
def newest_wave(state, entry, sink):
    """The newest reinforcement of a sink among an entry's gradients, NONE if there is none."""
    newest = NONE
    for g in range(state.entries[entry].gradients):
        if state.gradients[entry, g].sink == sink:
            newest = max(newest, state.gradients[entry, g].wave)
    return newest


@compiled
def is_past(state, entry, sink, round_):
    """Whether a sink's interest has come in a newer round than this one."""
    found = False
    for g in range(state.entries[entry].gradients):
        it = state.gradients[entry, g]
        found = found or (it.sink == sink and it.sequence != NONE and is_stale(round_, it.round))
    return found


@compiled
def has_sink(state, entry, sink):
    """Whether an entry has a gradient towards a sink."""
    count = state.entries[entry].gradients
    return _first_of(state, entry, sink, count) < count


@compiled
def clean(core, state, now, i):
    """Drop what has expired."""
    if now >= state.nodes[i].first_expiry_us:
        _clean(core, state, now, i)


@compiled
def _clean(core, state, now, i):
    first_us = FOREVER_US
    place = 0
    while place < state.nodes[i].entries:
        entry = state.order[i, place]
        remove_gradients(core, state, now, i, entry, EXPIRED_BY, NONE, now, 0, Reason.EXPIRED)
        count = state.entries[entry].gradients
        if count == 0:
            take_out(state, i, place)
            tell_interest_removed(core, state, now, i, entry, Reason.EXPIRED)
            continue
        for g in range(count):
            first_us = min(first_us, state.gradients[entry, g].expires_us)
        place += 1
    state.nodes[i].first_expiry_us = first_us


@compiled
def tell_removed(core, state, now, i, gradient, reason):
    """Report that a gradient is gone."""
    if core.is_recorded[Event.GRADIENT_REMOVED]:
        sequence = _number(gradient)
        peer, sink = core.addresses[gradient.neighbor], core.addresses[gradient.sink]
        twin.add_row(core, now, i, Event.GRADIENT_REMOVED, peer, Message.INTEREST, sink, sequence, 0, 0, reason)


@compiled
def tell_interest_removed(core, state, now, i, entry, reason):
    """An entry is gone."""
    if core.is_recorded[Event.INTEREST_REMOVED]:
        it = state.entries[entry]
        twin.add_row(
            core,
            now,
            i,
            Event.INTEREST_REMOVED,
            NONE,
            Message.INTEREST,
            core.addresses[it.sink],
            it.sequence,
            0,
            0,
            reason,
        )

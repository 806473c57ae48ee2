"""Interests in the kernel: subscriptions, rounds and refreshes, and what a node does with an interest that it hears."""

from workbench.protocols.diffusion.fast.attributes import constraints_of, is_within
from workbench.protocols.diffusion.fast.cache import (
    BEFORE_ROUND,
    SET_UP_TO,
    clean,
    find,
    head_of,
    new_entry,
    remove_gradients,
    set_gradient,
    take_out,
    tell_head,
    tell_interest_removed,
)
from workbench.protocols.diffusion.fast.filters import filtered
from workbench.protocols.diffusion.fast.memory import Event, Message, Reason
from workbench.protocols.diffusion.fast.messages import (
    changed,
    id_of,
    known_round,
    make,
    note_interest,
    take_sequence,
)
from workbench.protocols.diffusion.fast.paths import clear_data_gradients, forget_reinforcements
from workbench.protocols.diffusion.rules import REPEAT_AFTER_US, REPEAT_WITHIN_US, is_stale, next_round
from workbench.protocols.diffusion.rules import expiration_s as lasts_s
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# The application's side


@compiled
def begin_subscription(core, state, i, what, now):
    """Ask the network: by an interest of its own, or by a new round of one with the same constraints."""
    number = state.subscription_lists[what]
    own = _own_interest(state, i, constraints_of(state, number))
    if own == NONE:
        own = _new_own_interest(state, i, number)
    else:
        _begin_round(state, i, own)
    subscriptions = state.own_interests[own].subscriptions
    twin.append_behind(subscriptions, state.behind, subscriptions.last, what)
    _send_interest(core, state, i, own, now)
    plan_tick(core, state, i, now)


@compiled
def _own_interest(state, i, constraints):
    first = state.own_first[i]
    for place in range(first, first + state.nodes[i].own_interests):
        own = state.own_order[place]
        if constraints_of(state, state.own_interests[own].list) == constraints:
            return own
    return NONE


@compiled
def _new_own_interest(state, i, number):
    own = state.own_first[i]
    while state.own_interests[own].is_used:
        own += 1
    it = state.own_interests[own]
    it.is_used = 1
    it.sequence = take_sequence(state, i)
    it.list = number
    it.round = 0
    it.reinforcements = 0
    it.refresh_us = NONE
    it.repeat_us = NONE
    twin.clear(it.subscriptions)
    clear_data_gradients(state, block_of(state, own))
    state.own_order[state.own_first[i] + state.nodes[i].own_interests] = own
    state.nodes[i].own_interests += 1
    return own


@compiled
def block_of(state, own):
    """The block of an own interest's data gradients."""
    return len(state.entries) + own


@compiled
def end_subscription(core, state, i, what, now):
    """End a subscription; with the last one of an interest the interest is cancelled in the whole network."""
    place = state.own_first[i]
    while place < state.own_first[i] + state.nodes[i].own_interests:
        own = state.own_order[place]
        it = state.own_interests[own]
        if _unlink(state, own, what) and it.subscriptions.count == 0:
            _take_out_own(state, i, place)
            it.round = next_round(it.round)
            message = make(core, state, Message.INTEREST, i, it.sequence, it.list, it.round, 0)
            twin.send(core, now, i, twin.BROADCAST, message, state.ttl)
            twin.let_go(core, message)
            continue
        place += 1
    plan_wake_up(core, state, i)


@compiled
def _unlink(state, own, what):
    """Take a subscription out of an own interest; whether it was there."""
    subscriptions = state.own_interests[own].subscriptions
    before, one = NONE, subscriptions.first
    while one != NONE and one != what:
        before, one = one, state.behind[one].next
    if one == NONE:
        return False
    twin.remove_behind(subscriptions, state.behind, before, one)
    return True


@compiled
def _take_out_own(state, i, place):
    state.own_interests[state.own_order[place]].is_used = 0
    state.nodes[i].own_interests -= 1
    for later in range(place, state.own_first[i] + state.nodes[i].own_interests):
        state.own_order[later] = state.own_order[later + 1]


# Time


@compiled
def refresh(core, state, i, now):
    """End subscriptions that have expired, and send the interests that are due again."""
    place = state.own_first[i]
    while place < state.own_first[i] + state.nodes[i].own_interests:
        own = state.own_order[place]
        it = state.own_interests[own]
        what = it.subscriptions.first
        while what != NONE:
            behind = state.behind[what].next
            if 0 <= core.subscriptions[what].expires_us <= now:
                _unlink(state, own, what)
            what = behind
        if it.subscriptions.count == 0:
            _take_out_own(state, i, place)
            continue
        if it.refresh_us != NONE and it.refresh_us <= now:
            _begin_round(state, i, own)
            _send_interest(core, state, i, own, now)
        elif it.repeat_us != NONE and it.repeat_us <= now:
            it.repeats += 1
            twin.let_go(core, _flood(core, state, i, own, now))
        place += 1


@compiled
def plan_wake_up(core, state, i):
    """When the node wants to be woken: for its tick, a sample's end, a refresh, or the end of a subscription."""
    wake = state.nodes[i].tick_us
    for place in range(state.nodes[i].waiting):
        wake = _earlier(wake, state.waiting[i, place].time_us)
    if state.nodes[i].samples:
        wake = _earlier(wake, state.samples[state.samples_first[i]].ends_us)
    first = state.own_first[i]
    for place in range(first, first + state.nodes[i].own_interests):
        it = state.own_interests[state.own_order[place]]
        wake = _earlier(_earlier(wake, it.refresh_us), it.repeat_us)
        what = it.subscriptions.first
        while what != NONE:
            wake = _earlier(wake, core.subscriptions[what].expires_us)
            what = state.behind[what].next
    core.next_wake[i] = wake


@compiled
def _earlier(one, other):
    if one == NONE or other == NONE:
        return max(one, other)
    return min(one, other)


@compiled
def plan_tick(core, state, i, now):
    """The cache has changed: samples that wait are matched again at the next tick."""
    node = state.nodes[i]
    if node.samples and node.tick_us == NONE:
        node.tick_us = now + state.tick_us
        plan_wake_up(core, state, i)


@compiled
def _begin_round(state, i, own):
    it = state.own_interests[own]
    it.round = next_round(it.round)
    it.reinforcements = 0
    forget_reinforcements(state, block_of(state, own), i)


@compiled
def _send_interest(core, state, i, own, now):
    """Flood an interest of the node's own: a new one, a longer one, or the next round."""
    it = state.own_interests[own]
    it.refresh_us = now + state.refresh_us if state.refresh_us else NONE
    it.repeats = 0
    message = _flood(core, state, i, own, now)
    _tell_cached(core, state, now, i, NONE, message)
    twin.let_go(core, message)
    plan_wake_up(core, state, i)


@compiled
def _flood(core, state, i, own, now):
    """Send the present round of an own interest, and listen whether a neighbor passes it on; returns the message."""
    it = state.own_interests[own]
    message = make(
        core, state, Message.INTEREST, i, it.sequence, it.list, it.round, expiration_s(core, state, own, now)
    )
    twin.send(core, now, i, twin.BROADCAST, message, state.ttl)
    it.repeat_us = NONE
    if it.repeats < state.max_repeats:
        it.repeat_us = now + REPEAT_AFTER_US + twin.stream_below(core, i, REPEAT_WITHIN_US)
    return message


@compiled
def _hear_own(core, state, i, sequence, round_):
    """A neighbor passes on an interest of the node's own: the flood has left it."""
    first = state.own_first[i]
    for place in range(first, first + state.nodes[i].own_interests):
        it = state.own_interests[state.own_order[place]]
        if it.sequence == sequence and it.round == round_ and it.repeat_us != NONE:
            it.repeat_us = NONE
            plan_wake_up(core, state, i)


@compiled
def expiration_s(core, state, own, now):
    """What a gradient may live: to the end of the longest subscription, or as long as one that is refreshed should."""
    ends_us = now
    what = state.own_interests[own].subscriptions.first
    while what != NONE:
        expires_us = core.subscriptions[what].expires_us
        if expires_us < 0:
            return state.lifetime_s
        ends_us = max(ends_us, expires_us)
        what = state.behind[what].next
    return lasts_s(now, ends_us, state.lifetime_s)


# Frames


@compiled
def receive_interest(core, state, i, sender, message, ttl, now):
    """Cache a neighbor's interest, or cancel it, and pass it on."""
    clean(core, state, now, i)
    peer = core.addresses[sender]
    sequence = core.messages[message].sequence
    fields = state.interest_fields[message]
    id = id_of(fields.origin, sequence)
    known = NONE if fields.origin == i else known_round(state, i, id, now)
    if fields.origin == i or known == fields.round:
        # A further neighbor brought an interest we know: a spare gradient, should the head fail.
        if fields.origin == i:
            _hear_own(core, state, i, sequence, fields.round)
        elif fields.expiration_s:
            entry = find(state, i, constraints_of(state, core.messages[message].content))
            if entry != NONE:
                before = head_of(state, entry, fields.origin)
                set_gradient(core, state, now, i, entry, message, sender, ttl, NONE)
                tell_head(core, state, now, i, entry, fields.origin, before)
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    if known != NONE and is_stale(fields.round, known):
        twin.drop(core, now, i, peer, message, Reason.STALE)
        return
    number = core.messages[message].content
    if len(state.filters):
        number = filtered(core, state, now, i, message, fields.origin)
    note_interest(state, i, id, fields.round, now)
    if number == NONE:
        twin.drop(core, now, i, peer, message, Reason.FILTER)
        return
    is_changed = number != core.messages[message].content
    if is_changed:
        message = changed(core, state, message, number)
    if fields.expiration_s == 0:
        _cancel(core, state, i, message, now)
    else:
        _cache_interest(core, state, i, sender, message, ttl, now)
    if ttl <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
    else:
        twin.report_forwarded(core, now, i, peer, message, 0)
        twin.send(core, now, i, twin.BROADCAST, message, ttl - 1)
    if is_changed:
        twin.let_go(core, message)


@compiled
def _cache_interest(core, state, i, sender, message, ttl, now):
    """Keep a new interest, or a known one's new round."""
    number = core.messages[message].content
    sequence = core.messages[message].sequence
    fields = state.interest_fields[message]
    sink = fields.origin
    entry = find(state, i, constraints_of(state, number))
    if entry == NONE:
        entry = new_entry(core, state, now, i, number, sink, sequence)
    state.entries[entry].sink = sink
    state.entries[entry].sequence = sequence
    before = head_of(state, entry, sink)
    remove_gradients(core, state, now, i, entry, BEFORE_ROUND, sink, sequence, fields.round, Reason.ROUND)
    for place in range(state.nodes[i].entries):
        other = state.order[i, place]
        if other == entry or is_within(state, state.entries[other].list, number):
            forget_reinforcements(state, other, sink)
    _tell_cached(core, state, now, i, core.addresses[sender], message)
    set_gradient(core, state, now, i, entry, message, sender, ttl, NONE)
    tell_head(core, state, now, i, entry, sink, before)
    plan_tick(core, state, i, now)


@compiled
def _cancel(core, state, i, message, now):
    """A sink has unsubscribed: its gradients go, and those by which it reinforced a part of the interest."""
    number, sequence = core.messages[message].content, core.messages[message].sequence
    sink = state.interest_fields[message].origin
    cancelled = find(state, i, constraints_of(state, number))
    place = 0
    while place < state.nodes[i].entries:
        entry = state.order[i, place]
        place += 1
        if entry != cancelled and not is_within(state, state.entries[entry].list, number):
            continue
        # Not those of a later interest: on another way it may have been faster than this message.
        bound = sequence if entry == cancelled else NONE
        before = head_of(state, entry, sink)
        gone = remove_gradients(core, state, now, i, entry, SET_UP_TO, sink, bound, 0, Reason.CANCELLED)
        tell_head(core, state, now, i, entry, sink, before)
        if gone and state.entries[entry].gradients == 0:
            place -= 1
            take_out(state, i, place)
            tell_interest_removed(core, state, now, i, entry, Reason.CANCELLED)


@compiled
def _tell_cached(core, state, now, i, peer, message):
    it = core.messages[message]
    round_ = state.interest_fields[message].round
    detail = detail_of(state, it.content)
    twin.add_row(core, now, i, Event.INTEREST_CACHED, peer, it.name, it.origin, it.sequence, 0, round_, detail)


@compiled
def detail_of(state, number):
    """The code of a list's text in the trace."""
    detail = state.lists[number].detail
    return state.text_base + number if detail == NONE else detail

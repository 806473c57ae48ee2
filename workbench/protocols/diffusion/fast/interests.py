"""Interests in the fast engine: subscriptions, own interests, and interests from neighbors.

``own`` is the index of an own interest: one that a node, as a sink, floods for its subscriptions.
"""

import numpy as np

from workbench.protocols.diffusion.fast.attributes import constraints_of, covers, interval_us, is_within
from workbench.protocols.diffusion.fast.cache import (
    BEFORE_ROUND,
    SET_UP_TO,
    clean,
    find,
    head_of,
    new_entry,
    remove_entry,
    remove_gradients,
    report_head,
    report_interest_removed,
    set_gradient,
)
from workbench.protocols.diffusion.fast.filters import apply_filters, next_emission_us
from workbench.protocols.diffusion.fast.memory import Event, Message, Reason
from workbench.protocols.diffusion.fast.messages import (
    id_of,
    known_round,
    make_message,
    note_interest,
    take_sequence,
    with_attributes,
)
from workbench.protocols.diffusion.fast.paces import set_pace
from workbench.protocols.diffusion.fast.paths import clear_data_gradients, forget_reinforcements
from workbench.protocols.diffusion.rules import (
    FOREVER_US,
    REPEAT_AFTER_US,
    REPEAT_WITHIN_US,
    is_older_round,
    next_round,
)
from workbench.protocols.diffusion.rules import expiration_s as limited_expiration_s
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Called by the application


@compiled
def begin_subscription(core, state, i, subscription, now):
    """Begin a subscription: flood a new interest, or a new round if the node has one with the same constraints."""
    list_id = state.subscription_lists[subscription]
    own = _find_own_interest(state, i, constraints_of(state, list_id))
    if own == NONE:
        own = _add_own_interest(state, i, list_id)
    elif interval_us(state, list_id) < interval_us(state, state.own_interests[own].list):
        # Subscriptions that share an interest get readings at the highest of their rates.
        state.own_interests[own].list = list_id
    state.own_interests[own].is_flooded = 0
    subscriptions = state.own_interests[own].subscriptions
    twin.append_behind(subscriptions, state.subscription_links, subscriptions.last, subscription)
    _flood_interests(core, state, i, now)
    plan_tick(core, state, i, now)


@compiled
def _find_own_interest(state, i, constraints):
    first_position = state.own_first[i]
    for index in range(first_position, first_position + state.nodes[i].own_interests):
        own = state.own_order[index]
        if constraints_of(state, state.own_interests[own].list) == constraints:
            return own
    return NONE


@compiled
def _add_own_interest(state, i, list_id):
    own = state.own_first[i]
    while state.own_interests[own].is_used:
        own += 1
    interest = state.own_interests[own]
    interest.is_used = 1
    interest.sequence = take_sequence(state, i)
    interest.list = list_id
    interest.round = 0
    interest.reinforcements = 0
    interest.refresh_us = NONE
    interest.repeat_us = NONE
    interest.repeats = NONE
    twin.clear(interest.subscriptions)
    clear_data_gradients(state, block_of(state, own))
    state.own_order[state.own_first[i] + state.nodes[i].own_interests] = own
    state.nodes[i].own_interests += 1
    return own


@compiled
def block_of(state, own):
    """Return the index in ``state.data_gradients`` where the data gradients of the own interest ``own`` are stored."""
    return len(state.entries) + own


@compiled
def end_subscription(core, state, i, subscription, now):
    """End a subscription. If no other subscription shares its interest, cancel the interest in the network.

    Before the cancellation, flood each own interest that was not flooded because the cancelled interest requested all
    its data.
    """
    first_position = state.own_first[i]
    for index in range(first_position, first_position + state.nodes[i].own_interests):
        own = state.own_order[index]
        if not _remove_subscription(state, own, subscription):
            continue
        interest = state.own_interests[own]
        is_last = interest.subscriptions.count == 0
        if is_last:
            _remove_own_interest(state, i, index)
        _flood_interests(core, state, i, now)
        if is_last and interest.repeats != NONE:
            interest.round = next_round(interest.round)
            message = make_message(
                core, state, Message.INTEREST, i, interest.sequence, interest.list, interest.round, 0
            )
            twin.send(core, now, i, twin.BROADCAST, message, state.ttl)
            twin.let_go(core, message)
        break
    plan_wake_up(core, state, i)


@compiled
def _remove_subscription(state, own, subscription):
    """Remove a subscription from the interest ``own``; return False if the subscription does not belong to ``own``."""
    subscriptions = state.own_interests[own].subscriptions
    previous_subscription, current_subscription = NONE, subscriptions.first
    while current_subscription != NONE and current_subscription != subscription:
        previous_subscription, current_subscription = (
            current_subscription,
            state.subscription_links[current_subscription].next,
        )
    if current_subscription == NONE:
        return False
    twin.remove_behind(subscriptions, state.subscription_links, previous_subscription, current_subscription)
    return True


@compiled
def _remove_own_interest(state, i, index):
    state.own_interests[state.own_order[index]].is_used = 0
    state.nodes[i].own_interests -= 1
    for position in range(index, state.own_first[i] + state.nodes[i].own_interests):
        state.own_order[position] = state.own_order[position + 1]


# Time


@compiled
def refresh(core, state, i, now):
    """End expired subscriptions of node ``i``, and send its own interests whose refresh or repetition is due."""
    index = state.own_first[i]
    while index < state.own_first[i] + state.nodes[i].own_interests:
        own = state.own_order[index]
        interest = state.own_interests[own]
        subscription = interest.subscriptions.first
        while subscription != NONE:
            next_subscription = state.subscription_links[subscription].next
            if 0 <= core.subscriptions[subscription].expires_us <= now:
                _remove_subscription(state, own, subscription)
            subscription = next_subscription
        if interest.subscriptions.count == 0:
            _remove_own_interest(state, i, index)
            continue
        if interest.refresh_us != NONE and interest.refresh_us <= now:
            _send_interest(core, state, i, own, now)
        elif interest.repeat_us != NONE and interest.repeat_us <= now:
            interest.repeats += 1
            twin.let_go(core, _flood_round(core, state, i, own, now))
        index += 1


@compiled
def plan_wake_up(core, state, i):
    """Set the node's next wake-up to the earliest time at which a frame, sample, interest or subscription is due."""
    wake_us = state.nodes[i].tick_us
    for index in range(state.nodes[i].waiting):
        wake_us = _earlier_us(wake_us, state.waiting[i, index].time_us)
    wake_us = _earlier_us(wake_us, next_emission_us(state, i))
    if state.nodes[i].samples:
        wake_us = _earlier_us(wake_us, state.samples[state.samples_first[i]].ends_us)
    first_position = state.own_first[i]
    for index in range(first_position, first_position + state.nodes[i].own_interests):
        interest = state.own_interests[state.own_order[index]]
        wake_us = _earlier_us(_earlier_us(wake_us, interest.refresh_us), interest.repeat_us)
        subscription = interest.subscriptions.first
        while subscription != NONE:
            wake_us = _earlier_us(wake_us, core.subscriptions[subscription].expires_us)
            subscription = state.subscription_links[subscription].next
    core.next_wake[i] = wake_us


@compiled
def _earlier_us(time_us, other_us):
    if time_us == NONE or other_us == NONE:
        return max(time_us, other_us)
    return min(time_us, other_us)


@compiled
def plan_tick(core, state, i, now):
    """Set node ``i``'s timer, so that its waiting samples are matched with the interests again after ``tick_s``.

    Call this when the interests have changed. The timer is not set if it is set already, or if no samples wait.
    """
    node = state.nodes[i]
    if node.samples and node.tick_us == NONE:
        node.tick_us = now + state.tick_us
        plan_wake_up(core, state, i)


@compiled
def _flood_interests(core, state, i, now):
    """Flood node ``i``'s own interests that are not flooded yet; do not flood or refresh covered interests.

    With the parameter ``merge_interests``, an interest is covered if another interest of the node requests all its
    data.
    """
    first_position = state.own_first[i]
    for index in range(first_position, first_position + state.nodes[i].own_interests):
        own = state.own_order[index]
        interest = state.own_interests[own]
        if state.merge_interests and _is_covered(core, state, i, own):
            interest.is_flooded = 0
            interest.refresh_us = NONE
            interest.repeat_us = NONE
        elif not interest.is_flooded:
            interest.is_flooded = 1
            _send_interest(core, state, i, own, now)
    plan_wake_up(core, state, i)


@compiled
def _is_covered(core, state, i, own):
    """Return whether another interest of node ``i`` requests all data that ``own`` requests, for at least as long.

    If two interests request the same data and end at the same time, the result is True only for the newer one.
    """
    list_id, ends_us = state.own_interests[own].list, _end_us(core, state, own)
    is_older = True
    first_position = state.own_first[i]
    for index in range(first_position, first_position + state.nodes[i].own_interests):
        other = state.own_order[index]
        if other == own:
            is_older = False
            continue
        other_list, other_ends_us = state.own_interests[other].list, _end_us(core, state, other)
        if other_ends_us < ends_us or not covers(state, other_list, list_id):
            continue
        if is_older or other_ends_us > ends_us or not covers(state, list_id, other_list):
            return True
    return False


@compiled
def _end_us(core, state, own):
    """Return when the last subscription that shares an interest ends (µs); ``own``: the interest's index."""
    ends_us = np.int64(0)
    subscription = state.own_interests[own].subscriptions.first
    while subscription != NONE:
        expires_us = core.subscriptions[subscription].expires_us
        ends_us = max(ends_us, np.int64(FOREVER_US) if expires_us < 0 else expires_us)
        subscription = state.subscription_links[subscription].next
    return ends_us


@compiled
def _send_interest(core, state, i, own, now):
    """Flood node ``i``'s interest ``own`` and plan its next refresh; a refresh begins a new round of the interest."""
    interest = state.own_interests[own]
    if interest.repeats != NONE:
        interest.round = next_round(interest.round)
        interest.reinforcements = 0
        forget_reinforcements(state, block_of(state, own), i)
    interest.refresh_us = now + state.refresh_us if state.refresh_us else NONE
    interest.repeats = 0
    message = _flood_round(core, state, i, own, now)
    _report_cached_interest(core, state, now, i, NONE, message)
    twin.let_go(core, message)


@compiled
def _flood_round(core, state, i, own, now):
    """Send node ``i``'s interest ``own`` in its current round; plan to repeat it in case no neighbor forwards it.

    Return the message, which the caller releases with `let_go`.
    """
    interest = state.own_interests[own]
    message = make_message(
        core,
        state,
        Message.INTEREST,
        i,
        interest.sequence,
        interest.list,
        interest.round,
        expiration_s(core, state, own, now),
    )
    twin.send(core, now, i, twin.BROADCAST, message, state.ttl)
    interest.repeat_us = NONE
    if interest.repeats < state.max_repeats:
        interest.repeat_us = now + REPEAT_AFTER_US + twin.stream_below(core, i, REPEAT_WITHIN_US)
    return message


@compiled
def _stop_repeating(core, state, i, sequence, round_):
    """Cancel the planned repetition of node ``i``'s interest ``sequence``, because a neighbor has forwarded it."""
    first_position = state.own_first[i]
    for index in range(first_position, first_position + state.nodes[i].own_interests):
        interest = state.own_interests[state.own_order[index]]
        if interest.sequence == sequence and interest.round == round_ and interest.repeat_us != NONE:
            interest.repeat_us = NONE
            plan_wake_up(core, state, i)


@compiled
def expiration_s(core, state, own, now):
    """Return the lifetime (s) of the gradients that a node's own interest sets at other nodes.

    Gradients last until the last subscription that shares the interest ends, but at most as long as the settings allow.
    ``own``: the interest's row in ``state.own_interests``.
    """
    ends_us = now
    subscription = state.own_interests[own].subscriptions.first
    while subscription != NONE:
        expires_us = core.subscriptions[subscription].expires_us
        if expires_us < 0:
            return state.lifetime_s
        ends_us = max(ends_us, expires_us)
        subscription = state.subscription_links[subscription].next
    return limited_expiration_s(now, ends_us, state.lifetime_s)


# Frames


@compiled
def receive_interest(core, state, i, sender, message, ttl, now):
    """Process an interest from a neighbor: store or cancel it in the cache and forward it, or drop it."""
    clean(core, state, now, i)
    peer = core.addresses[sender]
    sequence = core.messages[message].sequence
    fields = state.message_fields[message]
    id = id_of(fields.origin, sequence)
    heard_round = NONE if fields.origin == i else known_round(state, i, id, now)
    if fields.origin == i or heard_round == fields.round:
        # Another neighbor brought a known interest: a spare gradient, in case the first one fails.
        if fields.origin == i:
            _stop_repeating(core, state, i, sequence, fields.round)
        elif fields.expiration_s:
            entry = find(state, i, constraints_of(state, core.messages[message].content))
            if entry != NONE:
                old_head = head_of(state, entry, fields.origin)
                set_gradient(core, state, now, i, entry, message, sender, ttl, NONE)
                report_head(core, state, now, i, entry, fields.origin, old_head)
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    if heard_round != NONE and is_older_round(fields.round, heard_round):
        twin.drop(core, now, i, peer, message, Reason.STALE)
        return
    list_id = core.messages[message].content
    if len(state.filters):
        list_id = apply_filters(core, state, now, i, message, fields.origin)
    note_interest(state, i, id, fields.round, now)
    if list_id == NONE:
        twin.drop(core, now, i, peer, message, Reason.FILTER)
        return
    is_changed = list_id != core.messages[message].content
    if is_changed:
        message = with_attributes(core, state, message, list_id)
    if fields.expiration_s == 0:
        _cancel_gradients(core, state, i, message, now)
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
    """Store a new interest, or a new round of a known interest, in the cache, with a gradient towards its sender."""
    list_id = core.messages[message].content
    sequence = core.messages[message].sequence
    fields = state.message_fields[message]
    sink = fields.origin
    entry = find(state, i, constraints_of(state, list_id))
    if entry == NONE:
        entry = new_entry(core, state, now, i, list_id, sink, sequence)
    state.entries[entry].sink = sink
    state.entries[entry].sequence = sequence
    old_head = head_of(state, entry, sink)
    remove_gradients(core, state, now, i, entry, BEFORE_ROUND, sink, sequence, fields.round, Reason.ROUND)
    for index in range(state.nodes[i].entries):
        other_entry = state.order[i, index]
        if other_entry == entry or is_within(state, state.entries[other_entry].list, list_id):
            forget_reinforcements(state, other_entry, sink)
    _report_cached_interest(core, state, now, i, core.addresses[sender], message)
    set_gradient(core, state, now, i, entry, message, sender, ttl, NONE)
    report_head(core, state, now, i, entry, sink, old_head)
    set_pace(state, i, entry, sink, list_id)
    plan_tick(core, state, i, now)


@compiled
def _cancel_gradients(core, state, i, message, now):
    """Remove the gradients of an interest that its sink has cancelled.

    In entries with narrower constraints, also remove the sink's gradients that only reinforcements have set.
    """
    list_id, sequence = core.messages[message].content, core.messages[message].sequence
    sink = state.message_fields[message].origin
    cancelled_entry = find(state, i, constraints_of(state, list_id))
    index = 0
    while index < state.nodes[i].entries:
        entry = state.order[i, index]
        index += 1
        if entry != cancelled_entry and not is_within(state, state.entries[entry].list, list_id):
            continue
        # Keep gradients of a later interest, which may have overtaken this message on another path.
        last_sequence = sequence if entry == cancelled_entry else NONE
        old_head = head_of(state, entry, sink)
        removed_count = remove_gradients(
            core, state, now, i, entry, SET_UP_TO, sink, last_sequence, 0, Reason.CANCELLED
        )
        report_head(core, state, now, i, entry, sink, old_head)
        if removed_count and state.entries[entry].gradients == 0:
            index -= 1
            remove_entry(state, i, index)
            report_interest_removed(core, state, now, i, entry, Reason.CANCELLED)


@compiled
def _report_cached_interest(core, state, now, i, peer, message):
    message_record = core.messages[message]
    round_ = state.message_fields[message].round
    detail = detail_of(state, message_record.content)
    twin.add_row(
        core,
        now,
        i,
        Event.INTEREST_CACHED,
        peer,
        message_record.name,
        message_record.origin,
        message_record.sequence,
        0,
        round_,
        detail,
    )


@compiled
def detail_of(state, list_id):
    """Return the integer by which the trace's column ``detail`` refers to the text of an attribute list."""
    detail = state.lists[list_id].detail
    return state.text_base + list_id if detail == NONE else detail

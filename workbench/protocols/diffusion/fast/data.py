"""Data in the fast twin: waiting samples, aggregation at the source, forwarding, and delivery at sinks."""

from workbench.protocols.diffusion.fast.attributes import (
    append_list,
    has_key_once,
    intern_list,
    is_same,
    matches,
    sample_end,
    slice_list,
)
from workbench.protocols.diffusion.fast.cache import clean
from workbench.protocols.diffusion.fast.copies import forward_data
from workbench.protocols.diffusion.fast.filters import apply_filters
from workbench.protocols.diffusion.fast.interests import block_of, detail_of, plan_wake_up
from workbench.protocols.diffusion.fast.memory import Message, Number, Reason
from workbench.protocols.diffusion.fast.messages import (
    id_of,
    make_message,
    note_data,
    seen_data_index,
    take_sequence,
    with_attributes,
)
from workbench.protocols.diffusion.fast.paths import is_reinforced_for, update_data_gradient
from workbench.protocols.diffusion.fast.reinforcement import reinforce
from workbench.protocols.diffusion.rules import hops_taken, may_reinforce
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Samples


@compiled
def offer_sample(core, state, i, content, number, now):
    """Send a sample as soon as an interest matches; if too many wait, drop the oldest."""
    drop_old_samples(core, state, i, now)
    node = state.nodes[i]
    if node.samples >= state.max_data:
        _drop_samples(core, state, i, 1, Reason.NO_INTEREST, now)
    sample = state.samples[state.samples_first[i] + node.samples]
    sample.number = number
    sample.list = content
    sample.ends_us = now + state.sample_lifetime_us
    node.samples += 1
    send_samples(core, state, i, now)
    if node.samples:
        plan_wake_up(core, state, i)


@compiled
def drop_old_samples(core, state, i, now):
    """Drop the samples that have waited for longer than their lifetime."""
    first = state.samples_first[i]
    count = 0
    while count < state.nodes[i].samples and state.samples[first + count].ends_us <= now:
        count += 1
    if count:
        _drop_samples(core, state, i, count, Reason.EXPIRED, now)


@compiled
def _drop_samples(core, state, i, count, reason, now):
    """Drop the ``count`` oldest samples; they have no message yet, so the drop has no sequence number."""
    for _ in range(count):
        if core.traces:
            twin.add_row(core, now, i, twin.Event.DROPPED, NONE, Message.DATA, core.addresses[i], 0, 0, 0, reason)
        else:
            core.dropped[reason] += 1
    first = state.samples_first[i]
    state.nodes[i].samples -= count
    for index in range(first, first + state.nodes[i].samples):
        state.samples[index] = state.samples[index + count]


@compiled
def send_samples(core, state, i, now):
    """Send the samples that match an interest, as many in a message as fit; the others keep waiting."""
    clean(core, state, now, i)
    drop_old_samples(core, state, i, now)
    wanted = _take_wanted(state, i)
    first = 0
    while first < wanted:
        last, number = _aggregate(state, first, wanted)
        sequence = take_sequence(state, i)
        message = make_message(core, state, Message.DATA, i, sequence, number, 0, 0)
        state.message_fields[message].is_aggregate = last > first + 1
        for k in range(first, last):
            twin.report_originated(core, now, i, message, state.wanted[k].number)
        seen = note_data(state, i, id_of(i, sequence), NONE, state.ttl + 1, now)
        # `forward_data` lowers the ttl by one hop.
        _route(core, state, i, NONE, message, state.ttl + 1, seen, now)
        twin.let_go(core, message)
        first = last


@compiled
def _take_wanted(state, i):
    """Move the samples that match an interest to ``wanted``; return their number."""
    node = state.nodes[i]
    first = state.samples_first[i]
    wanted = remaining = 0
    for index in range(first, first + node.samples):
        if _is_wanted(state, i, state.samples[index].list):
            state.wanted[wanted] = state.samples[index]
            wanted += 1
        else:
            if first + remaining < index:
                state.samples[first + remaining] = state.samples[index]
            remaining += 1
    node.samples = remaining
    return wanted


@compiled
def _is_wanted(state, i, number):
    first = state.own_first[i]
    for index in range(first, first + state.nodes[i].own_interests):
        if matches(state, state.own_interests[state.own_order[index]].list, number):
            return True
    is_wanted = False
    for index in range(state.nodes[i].entries):
        is_wanted = is_wanted or (matches(state, state.entries[state.order[i, index]].list, number))
    return is_wanted


@compiled
def _aggregate(state, first, wanted):
    """Return (last, list): the samples first:last fit in one message with that list of attributes."""
    number = state.wanted[first].list
    room_B = state.max_attributes_B - state.lists[number].size_B
    key = state.attributes[state.lists[number].first, 0]
    last = first + 1
    while last < wanted:
        next_list = state.lists[state.wanted[last].list]
        if next_list.size_B > room_B or state.attributes[next_list.first, 0] != key:
            break
        if not (has_key_once(state, number) and has_key_once(state, state.wanted[last].list)):
            break
        room_B -= next_list.size_B
        last += 1
    if last > first + 1:
        start = state.numbers[Number.ATTRIBUTES]
        for k in range(first, last):
            append_list(state, state.wanted[k].list)
        number = intern_list(state, start)
    return last, number


# Forwarding


@compiled
def receive_data(core, state, i, sender, message, ttl, now):
    """Route new data from a neighbor; forward a later copy to unserved sinks, or drop it."""
    clean(core, state, now, i)
    origin = state.message_fields[message].origin
    id = id_of(origin, core.messages[message].sequence)
    seen = seen_data_index(state, i, id)
    if seen == NONE:
        seen = note_data(state, i, id, sender, ttl, now)
        if origin != i:
            _route(core, state, i, sender, message, ttl, seen, now)
            return
        # The message has returned to its source, which has forgotten it.
    if state.seen_data_more[i, seen].is_settled or not forward_data(core, state, i, sender, message, ttl, seen, now):
        twin.drop(core, now, i, core.addresses[sender], message, twin.Reason.DUPLICATE)


@compiled
def _route(core, state, i, sender, message, ttl, seen, now):
    """Pass new data through filters, own interests and interest cache; own data has the ``sender`` NONE."""
    number = core.messages[message].content
    peer = NONE if sender == NONE else core.addresses[sender]
    is_changed = False
    if len(state.filters):
        number = apply_filters(core, state, now, i, message, state.message_fields[message].origin)
        # A filter processes a message once, so its result is for all sinks, and later copies are dropped.
        is_changed = number == NONE or not is_same(state, number, core.messages[message].content)
        state.seen_data_more[i, seen].is_settled = is_changed
        if number == NONE:
            twin.drop(core, now, i, peer, message, Reason.FILTER)
            return
    if is_changed:
        message = with_attributes(core, state, message, number)
    is_held = False
    first = state.own_first[i]
    for index in range(first, first + state.nodes[i].own_interests):
        own = state.own_order[index]
        if matches(state, state.own_interests[own].list, number):
            if not is_held:
                twin.report_held(core, now, i, peer, message, hops_taken(state.ttl, ttl), False)
            is_held = True
            _deliver(core, state, i, own, sender, message, now)
    is_wanted = False
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        if matches(state, state.entries[entry].list, number):
            is_wanted = True
            if sender != NONE:
                origin = state.message_fields[message].origin
                update_data_gradient(core, state, now, i, entry, message, origin, sender, number)
    if not forward_data(core, state, i, sender, message, ttl, seen, now) and not is_held:
        # No gradient: its neighbors are on the black list, or data and interest came from the same neighbor.
        reason = Reason.NO_GRADIENT
        if not is_wanted:
            # The sender knows an interest that this node does not.
            reason = Reason.EVICTED if state.nodes[i].is_evicting and sender != NONE else Reason.NO_INTEREST
        twin.drop(core, now, i, peer, message, reason)
    if is_changed:
        twin.let_go(core, message)


@compiled
def _deliver(core, state, i, own, sender, message, now):
    """Deliver each sample to matching subscriptions, and reinforce the source's path if it is due."""
    number = core.messages[message].content
    peer = NONE if sender == NONE else core.addresses[sender]
    subscription = state.own_interests[own].subscriptions.first
    while subscription != NONE:
        subscription_record = core.subscriptions[subscription]
        if subscription_record.expires_us < 0 or now < subscription_record.expires_us:
            _deliver_samples(core, state, i, subscription, peer, message, number, now)
        subscription = state.subscription_links[subscription].next
    if sender == NONE:
        return
    block = block_of(state, own)
    origin = state.message_fields[message].origin
    index = update_data_gradient(core, state, now, i, block, message, origin, sender, number)
    messages, started = state.data_gradients[block, index].messages, state.own_interests[own].reinforcements
    if not may_reinforce(messages, state.reinforce_after, started, state.max_reinforcements):
        return
    if not is_reinforced_for(state, block, index, i):
        state.own_interests[own].reinforcements += 1
        reinforce(core, state, i, own, index, now)


@compiled
def _deliver_samples(core, state, i, subscription, peer, message, number, now):
    constraints = state.lists[state.subscription_lists[subscription]]
    is_aggregate = state.message_fields[message].is_aggregate
    first, last = state.lists[number].first, state.lists[number].last
    while first < last:
        end = sample_end(state, number, first, is_aggregate)
        if twin.one_way_match(state.attributes, constraints.first, constraints.last, first, end):
            detail = detail_of(state, slice_list(state, number, first, end))
            twin.report_delivered(core, now, i, peer, message, core.subscriptions[subscription].number, detail)
        first = end

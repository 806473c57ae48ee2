"""Data in the kernel: samples that wait, aggregation at the source, the way through the network, delivery at sinks."""

from workbench.protocols.diffusion.fast.attributes import (
    append_list,
    begins_once,
    interned,
    is_same,
    matches,
    part_of,
    sample_end,
)
from workbench.protocols.diffusion.fast.cache import clean
from workbench.protocols.diffusion.fast.copies import send_on
from workbench.protocols.diffusion.fast.filters import filtered
from workbench.protocols.diffusion.fast.interests import block_of, detail_of, plan_wake_up
from workbench.protocols.diffusion.fast.memory import Message, Number, Reason
from workbench.protocols.diffusion.fast.messages import (
    changed,
    id_of,
    make,
    note_data,
    seen_data_index,
    take_sequence,
)
from workbench.protocols.diffusion.fast.paths import is_reinforced_for, update_data_gradient
from workbench.protocols.diffusion.fast.reinforcement import reinforce
from workbench.protocols.diffusion.rules import hops_taken, may_reinforce
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Samples


@compiled
def offer(core, state, i, content, number, now):
    """A sample to be sent as soon as an interest matches; the oldest goes if too many wait."""
    drop_old_samples(core, state, i, now)
    node = state.nodes[i]
    if node.samples >= state.max_data:
        _drop_samples(core, state, i, 1, Reason.NO_INTEREST, now)
    it = state.samples[state.samples_first[i] + node.samples]
    it.number = number
    it.list = content
    it.ends_us = now + state.sample_lifetime_us
    node.samples += 1
    send_samples(core, state, i, now)
    if node.samples:
        plan_wake_up(core, state, i)


@compiled
def drop_old_samples(core, state, i, now):
    """Samples that have waited for longer than their lifetime are too old for whoever asks now."""
    first = state.samples_first[i]
    count = 0
    while count < state.nodes[i].samples and state.samples[first + count].ends_us <= now:
        count += 1
    if count:
        _drop_samples(core, state, i, count, Reason.EXPIRED, now)


@compiled
def _drop_samples(core, state, i, count, reason, now):
    """The oldest samples go. One that nobody wanted in time has no message yet, hence no number."""
    for _ in range(count):
        if core.traces:
            twin.add_row(core, now, i, twin.Event.DROPPED, NONE, Message.DATA, core.addresses[i], 0, 0, 0, reason)
        else:
            core.dropped[reason] += 1
    first = state.samples_first[i]
    state.nodes[i].samples -= count
    for place in range(first, first + state.nodes[i].samples):
        state.samples[place] = state.samples[place + count]


@compiled
def send_samples(core, state, i, now):
    """Send the samples that some interest wants, as many as fit in one message; the rest keep waiting."""
    clean(core, state, now, i)
    drop_old_samples(core, state, i, now)
    wanted = _take_wanted(state, i)
    first = 0
    while first < wanted:
        last, number = _aggregate(state, first, wanted)
        sequence = take_sequence(state, i)
        message = make(core, state, Message.DATA, i, sequence, number, 0, 0)
        state.interest_fields[message].is_aggregate = last > first + 1
        for k in range(first, last):
            twin.report_originated(core, now, i, message, state.wanted[k].number)
        seen = note_data(state, i, id_of(i, sequence), NONE, state.ttl + 1, now)
        # One hop more than it may go: `send_on` takes it off again.
        _route(core, state, i, NONE, message, state.ttl + 1, seen, now)
        twin.let_go(core, message)
        first = last


@compiled
def _take_wanted(state, i):
    """Move the samples that some interest wants to ``wanted``; returns how many."""
    node = state.nodes[i]
    first = state.samples_first[i]
    wanted = kept = 0
    for place in range(first, first + node.samples):
        if _is_wanted(state, i, state.samples[place].list):
            state.wanted[wanted] = state.samples[place]
            wanted += 1
        else:
            if first + kept < place:
                state.samples[first + kept] = state.samples[place]
            kept += 1
    node.samples = kept
    return wanted


@compiled
def _is_wanted(state, i, number):
    first = state.own_first[i]
    for place in range(first, first + state.nodes[i].own_interests):
        if matches(state, state.own_interests[state.own_order[place]].list, number):
            return True
    found = False
    for place in range(state.nodes[i].entries):
        found = found or (matches(state, state.entries[state.order[i, place]].list, number))
    return found


@compiled
def _aggregate(state, first, wanted):
    """(last, list): the samples first:last fit in one message, and its attributes."""
    number = state.wanted[first].list
    room_B = state.room_B - state.lists[number].size_B
    key = state.attributes[state.lists[number].first, 0]
    last = first + 1
    while last < wanted:
        more = state.lists[state.wanted[last].list]
        if more.size_B > room_B or state.attributes[more.first, 0] != key:
            break
        if not (begins_once(state, number) and begins_once(state, state.wanted[last].list)):
            break
        room_B -= more.size_B
        last += 1
    if last > first + 1:
        start = state.numbers[Number.ATTRIBUTES]
        for k in range(first, last):
            append_list(state, state.wanted[k].list)
        number = interned(state, start)
    return last, number


# On its way


@compiled
def receive_data(core, state, i, sender, message, ttl, now):
    """Data from a neighbor: on it goes, unless what it is for has been served."""
    clean(core, state, now, i)
    origin = state.interest_fields[message].origin
    id = id_of(origin, core.messages[message].sequence)
    seen = seen_data_index(state, i, id)
    if seen == NONE:
        seen = note_data(state, i, id, sender, ttl, now)
        if origin != i:
            _route(core, state, i, sender, message, ttl, seen, now)
            return
        # It has come back to its source, which has forgotten it.
    if state.seen_data_more[i, seen].is_settled or not send_on(core, state, i, sender, message, ttl, seen, now):
        twin.drop(core, now, i, core.addresses[sender], message, twin.Reason.DUPLICATE)


@compiled
def _route(core, state, i, sender, message, ttl, seen, now):
    """Filters, own interests, interest cache: where new data goes; ``sender`` is NONE for the node's own."""
    number = core.messages[message].content
    peer = NONE if sender == NONE else core.addresses[sender]
    is_changed = False
    if len(state.filters):
        number = filtered(core, state, now, i, message, state.interest_fields[message].origin)
        # A filter is asked once for a message, so its answer is for all sinks and for copies that come later.
        is_changed = number == NONE or not is_same(state, number, core.messages[message].content)
        state.seen_data_more[i, seen].is_settled = is_changed
        if number == NONE:
            twin.drop(core, now, i, peer, message, Reason.FILTER)
            return
    if is_changed:
        message = changed(core, state, message, number)
    known = False
    first = state.own_first[i]
    for place in range(first, first + state.nodes[i].own_interests):
        own = state.own_order[place]
        if matches(state, state.own_interests[own].list, number):
            if not known:
                twin.report_held(core, now, i, peer, message, hops_taken(state.ttl, ttl), False)
            known = True
            _deliver(core, state, i, own, sender, message, now)
    is_wanted = False
    for place in range(state.nodes[i].entries):
        entry = state.order[i, place]
        if matches(state, state.entries[entry].list, number):
            is_wanted = True
            if sender != NONE:
                origin = state.interest_fields[message].origin
                update_data_gradient(core, state, now, i, entry, message, origin, sender, number)
    if not send_on(core, state, i, sender, message, ttl, seen, now) and not known:
        # An interest without a gradient: its neighbors are black, or it came from where the data comes from.
        reason = Reason.NO_GRADIENT
        if not is_wanted:
            # Who sent it here knows an interest that this node does not.
            reason = Reason.EVICTED if state.nodes[i].is_evicting and sender != NONE else Reason.NO_INTEREST
        twin.drop(core, now, i, peer, message, reason)
    if is_changed:
        twin.let_go(core, message)


@compiled
def _deliver(core, state, i, own, sender, message, now):
    """Hand each sample to the subscriptions it matches; reinforce the source's path when it is time."""
    number = core.messages[message].content
    peer = NONE if sender == NONE else core.addresses[sender]
    what = state.own_interests[own].subscriptions.first
    while what != NONE:
        it = core.subscriptions[what]
        if it.expires_us < 0 or now < it.expires_us:
            _hand_over(core, state, i, what, peer, message, number, now)
        what = state.behind[what].next
    if sender == NONE:
        return
    block = block_of(state, own)
    origin = state.interest_fields[message].origin
    place = update_data_gradient(core, state, now, i, block, message, origin, sender, number)
    messages, started = state.data_gradients[block, place].messages, state.own_interests[own].reinforcements
    if not may_reinforce(messages, state.reinforce_after, started, state.max_reinforcements):
        return
    if not is_reinforced_for(state, block, place, i):
        state.own_interests[own].reinforcements += 1
        reinforce(core, state, i, own, place, now)


@compiled
def _hand_over(core, state, i, what, peer, message, number, now):
    constraints = state.lists[state.subscription_lists[what]]
    is_aggregate = state.interest_fields[message].is_aggregate
    first, last = state.lists[number].first, state.lists[number].last
    while first < last:
        end = sample_end(state, number, first, is_aggregate)
        if twin.one_way_match(state.attributes, constraints.first, constraints.last, first, end):
            detail = detail_of(state, part_of(state, number, first, end))
            twin.report_delivered(core, now, i, peer, message, core.subscriptions[what].number, detail)
        first = end

"""Data in the fast engine: samples that wait for an interest, aggregation, forwarding, delivery at sinks."""

from workbench.protocols.diffusion.fast.attributes import (
    append_list,
    intern_list,
    is_same,
    matches,
    matches_rows,
    may_be_aggregated,
    sample_end,
    slice_list,
)
from workbench.protocols.diffusion.fast.cache import clean
from workbench.protocols.diffusion.fast.copies import forward_data, matches_own
from workbench.protocols.diffusion.fast.filters import (
    apply_filters,
    apply_to_part,
    hold_back,
    next_emission_us,
    take_mean,
)
from workbench.protocols.diffusion.fast.interests import block_of, detail_of, plan_wake_up
from workbench.protocols.diffusion.fast.memory import Event, Message, Number, Reason
from workbench.protocols.diffusion.fast.messages import (
    id_of,
    make_message,
    note_data,
    seen_data_index,
    take_sequence,
    with_attributes,
)
from workbench.protocols.diffusion.fast.paces import are_early_for_same_sinks, find_early_sinks
from workbench.protocols.diffusion.fast.paths import is_reinforced_for, update_data_gradient
from workbench.protocols.diffusion.fast.reinforcement import reinforce
from workbench.protocols.diffusion.rules import hops_taken, may_reinforce
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Samples


@compiled
def offer_sample(core, state, i, content, number, now):
    """Send a node's new sample, or keep it waiting until an interest matches; if too many wait, drop the oldest.

    ``content``: id of the sample's attribute list; ``number``: its number among the node's samples.
    """
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
    """Drop samples that wait at node ``i`` for a matching interest, if their lifetime has ended."""
    first_sample = state.samples_first[i]
    expired_count = 0
    while expired_count < state.nodes[i].samples and state.samples[first_sample + expired_count].ends_us <= now:
        expired_count += 1
    if expired_count:
        _drop_samples(core, state, i, expired_count, Reason.EXPIRED, now)


@compiled
def _drop_samples(core, state, i, count, reason, now):
    """Drop the ``count`` oldest waiting samples of node ``i``.

    The samples are not in a message yet, so the reported events have the sequence number 0.
    """
    for _ in range(count):
        if core.traces:
            twin.add_row(core, now, i, twin.Event.DROPPED, NONE, Message.DATA, core.addresses[i], 0, 0, 0, reason)
        else:
            core.dropped[reason] += 1
    first_sample = state.samples_first[i]
    state.nodes[i].samples -= count
    for index in range(first_sample, first_sample + state.nodes[i].samples):
        state.samples[index] = state.samples[index + count]


@compiled
def send_samples(core, state, i, now):
    """Send the waiting samples that match an interest, several in a message if they fit; keep the others."""
    clean(core, state, now, i)
    drop_old_samples(core, state, i, now)
    wanted_count = _take_matching_samples(state, i)
    if state.nodes[i].paces:
        wanted_count = _drop_early_samples(core, state, i, wanted_count, now)
    first_sample = 0
    while first_sample < wanted_count:
        end_sample, list_id = _aggregate(state, first_sample, wanted_count)
        sequence = take_sequence(state, i)
        message = make_message(core, state, Message.DATA, i, sequence, list_id, 0, 0)
        state.message_fields[message].is_aggregate = end_sample > first_sample + 1
        early_sink_count = state.wanted[first_sample].early
        state.message_fields[message].listed_sinks = early_sink_count
        for index in range(early_sink_count):
            state.listed_sinks[message, index] = state.early_sinks[first_sample, index]
        for index in range(first_sample, end_sample):
            twin.report_originated(core, now, i, message, state.wanted[index].number)
        seen_index = note_data(state, i, id_of(i, sequence), NONE, state.ttl + 1, now)
        # `forward_data` lowers the ttl by one hop.
        _filter_and_route(core, state, i, NONE, message, state.ttl + 1, seen_index, now)
        twin.let_go(core, message)
        first_sample = end_sample


@compiled
def _take_matching_samples(state, i):
    """Move the waiting samples that match an interest to ``state.wanted``; return their count."""
    node = state.nodes[i]
    first_sample = state.samples_first[i]
    wanted_count = remaining_count = 0
    for index in range(first_sample, first_sample + node.samples):
        if _matches_interest(state, i, state.samples[index].list):
            state.wanted[wanted_count] = state.samples[index]
            state.wanted[wanted_count].early = 0
            wanted_count += 1
        else:
            if first_sample + remaining_count < index:
                state.samples[first_sample + remaining_count] = state.samples[index]
            remaining_count += 1
    node.samples = remaining_count
    return wanted_count


@compiled
def _drop_early_samples(core, state, i, wanted_count, now):
    """Drop the samples in ``state.wanted`` that come too early for all their sinks; return how many remain.

    A sample comes too early for a sink if the sink's INTERVAL has not passed since the previous sample that was sent to
    this sink. A sample that matches an own interest of node ``i`` is not dropped. ``state.early_sinks`` gets a row for
    each remaining sample: the sinks for which the sample comes too early.
    """
    remaining_count = 0
    for index in range(wanted_count):
        if remaining_count < index:
            state.wanted[remaining_count] = state.wanted[index]
        sample = state.wanted[remaining_count]
        is_due = find_early_sinks(core, state, i, remaining_count, sample.ends_us - state.sample_lifetime_us, now)
        if sample.early and not is_due and not matches_own(state, i, sample.list):
            if core.traces:
                origin = core.addresses[i]
                twin.add_row(core, now, i, twin.Event.DROPPED, NONE, Message.DATA, origin, 0, 0, 0, Reason.INTERVAL)
            else:
                core.dropped[Reason.INTERVAL] += 1
        else:
            remaining_count += 1
    return remaining_count


@compiled
def _matches_interest(state, i, list_id):
    if matches_own(state, i, list_id):
        return True
    is_wanted = False
    for index in range(state.nodes[i].entries):
        is_wanted = is_wanted or (matches(state, state.entries[state.order[i, index]].list, list_id))
    return is_wanted


@compiled
def _aggregate(state, first, wanted_count):
    """Combine the sample ``state.wanted[first]`` with the samples after it that may share its message.

    All samples of a message are for the same sinks. Return (last, list_id): the message has the samples
    ``state.wanted[first:last]``, and ``list_id`` is the id of its attribute list. ``wanted_count``: number of samples
    in ``state.wanted``.
    """
    list_id = state.wanted[first].list
    room_B = state.max_attributes_B - state.lists[list_id].size_B
    first_key = state.attributes[state.lists[list_id].first, 0]
    end_sample = first + 1
    while end_sample < wanted_count:
        next_list = state.lists[state.wanted[end_sample].list]
        if next_list.size_B > room_B or state.attributes[next_list.first, 0] != first_key:
            break
        if not are_early_for_same_sinks(state, first, end_sample):
            break
        if not (may_be_aggregated(state, list_id) and may_be_aggregated(state, state.wanted[end_sample].list)):
            break
        room_B -= next_list.size_B
        end_sample += 1
    if end_sample > first + 1:
        first_row = state.numbers[Number.ATTRIBUTES]
        for sample_index in range(first, end_sample):
            append_list(state, state.wanted[sample_index].list)
        list_id = intern_list(state, first_row)
    return end_sample, list_id


# Forwarding


@compiled
def receive_data(core, state, i, sender, message, ttl, now):
    """Process data from a neighbor: a new message, or another copy of a known one.

    A copy of a known message is forwarded only towards sinks to which no copy has been sent yet.
    """
    clean(core, state, now, i)
    origin = state.message_fields[message].origin
    id = id_of(origin, core.messages[message].sequence)
    seen_index = seen_data_index(state, i, id)
    if seen_index == NONE:
        seen_index = note_data(state, i, id, sender, ttl, now)
        if origin != i:
            _filter_and_route(core, state, i, sender, message, ttl, seen_index, now)
            return
        # The message has returned to its source, which has forgotten it.
    if state.seen_data_more[i, seen_index].is_settled or not forward_data(
        core, state, i, sender, message, ttl, seen_index, now
    ):
        twin.drop(core, now, i, core.addresses[sender], message, twin.Reason.DUPLICATE)


@compiled
def _filter_and_route(core, state, i, sender, message, ttl, seen, now):
    """Process new data: filter it, then deliver, forward or drop it.

    ``sender``: the previous hop; NONE if the node itself is the source. ``seen``: index of the message in the node's
    memory of messages.
    """
    list_id = core.messages[message].content
    peer = NONE if sender == NONE else core.addresses[sender]
    is_changed = False
    if len(state.filters):
        list_id = apply_filters(core, state, now, i, message, state.message_fields[message].origin)
        # A filter processes a message once, so its result is for all sinks, and later copies are dropped.
        is_changed = list_id == NONE or not is_same(state, list_id, core.messages[message].content)
        state.seen_data_more[i, seen].is_settled = is_changed
        if list_id == NONE:
            hold_back(core, state, i, message, sender, ttl)
        if next_emission_us(state, i) != NONE:
            plan_wake_up(core, state, i)
        if list_id == NONE:
            twin.drop(core, now, i, peer, message, Reason.FILTER)
            return
    if is_changed:
        message = with_attributes(core, state, message, list_id)
    _deliver_and_forward(core, state, i, sender, message, ttl, seen, now)
    if is_changed:
        twin.let_go(core, message)


@compiled
def emit_held(core, state, i, now):
    """Send the means that node ``i``'s filters have computed from dropped readings, if they are due."""
    for f in range(len(state.filters)):
        average = state.averages[f, i]
        if average.emits_us == NONE or average.emits_us > now:
            continue
        emitted_list = take_mean(state, f, i)
        origin = average.held_origin
        if origin == NONE:
            continue
        id = id_of(origin, average.held_sequence)
        message = make_message(core, state, Message.DATA, origin, average.held_sequence, emitted_list, 0, 0)
        list_id = apply_to_part(core, state, now, i, message, origin, emitted_list, f + 1)
        if core.is_recorded[Event.FILTERED]:
            message_record, filter_key = core.messages[message], state.filters[f].key
            twin.add_row(
                *(core, now, i, Event.FILTERED, NONE),
                *(message_record.name, message_record.origin, message_record.sequence, 0, filter_key, Reason.REPLACE),
            )
        if list_id != NONE:
            clean(core, state, now, i)
            seen_index = seen_data_index(state, i, id)
            if seen_index == NONE:
                seen_index = note_data(state, i, id, average.held_sender, average.held_ttl, now)
            state.seen_data_more[i, seen_index].is_settled = 1
            is_changed = list_id != emitted_list
            if is_changed:
                changed_message = with_attributes(core, state, message, list_id)
                twin.let_go(core, message)
                message = changed_message
            _deliver_and_forward(core, state, i, average.held_sender, message, average.held_ttl, seen_index, now)
        twin.let_go(core, message)


@compiled
def _deliver_and_forward(core, state, i, sender, message, ttl, seen, now):
    """Deliver data to node ``i``'s own subscriptions, and forward or drop it.

    ``seen``: index of the message in the node's memory of messages.
    """
    list_id = core.messages[message].content
    peer = NONE if sender == NONE else core.addresses[sender]
    is_held = False
    first_position = state.own_first[i]
    for index in range(first_position, first_position + state.nodes[i].own_interests):
        own = state.own_order[index]
        if matches(state, state.own_interests[own].list, list_id):
            if not is_held:
                twin.report_held(core, now, i, peer, message, hops_taken(state.ttl, ttl), False)
            is_held = True
            _deliver(core, state, i, own, sender, message, now)
    is_wanted = False
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        if matches(state, state.entries[entry].list, list_id):
            is_wanted = True
            if sender != NONE:
                origin = state.message_fields[message].origin
                update_data_gradient(core, state, now, i, entry, message, origin, sender, list_id)
    if not forward_data(core, state, i, sender, message, ttl, seen, now) and not is_held:
        # No gradient: its neighbors are on the black list, or data and interest came from the same neighbor.
        reason = Reason.NO_GRADIENT
        if not is_wanted:
            # The sender knows an interest that this node does not.
            reason = Reason.EVICTED if state.nodes[i].is_evicting and sender != NONE else Reason.NO_INTEREST
        twin.drop(core, now, i, peer, message, reason)


@compiled
def _deliver(core, state, i, own, sender, message, now):
    """Deliver the samples of a data message to the matching subscriptions that share node ``i``'s interest ``own``.

    Reinforce the path to the source if the source has sent at least ``reinforce_after`` messages.
    """
    list_id = core.messages[message].content
    peer = NONE if sender == NONE else core.addresses[sender]
    subscription = state.own_interests[own].subscriptions.first
    while subscription != NONE:
        subscription_record = core.subscriptions[subscription]
        if subscription_record.expires_us < 0 or now < subscription_record.expires_us:
            _deliver_samples(core, state, i, subscription, peer, message, list_id, now)
        subscription = state.subscription_links[subscription].next
    if sender == NONE:
        return
    block = block_of(state, own)
    origin = state.message_fields[message].origin
    gradient_index = update_data_gradient(core, state, now, i, block, message, origin, sender, list_id)
    message_count, reinforcement_count = (
        state.data_gradients[block, gradient_index].messages,
        state.own_interests[own].reinforcements,
    )
    if not may_reinforce(message_count, state.reinforce_after, reinforcement_count, state.max_reinforcements):
        return
    if state.own_interests[own].is_flooded and not is_reinforced_for(state, block, gradient_index, i):
        state.own_interests[own].reinforcements += 1
        reinforce(core, state, i, own, gradient_index, now)


@compiled
def _deliver_samples(core, state, i, subscription, peer, message, list_id, now):
    is_aggregate = state.message_fields[message].is_aggregate
    first_row, end_row = state.lists[list_id].first, state.lists[list_id].last
    while first_row < end_row:
        sample_end_row = sample_end(state, list_id, first_row, is_aggregate)
        if matches_rows(state, state.subscription_lists[subscription], first_row, sample_end_row):
            detail = detail_of(state, slice_list(state, list_id, first_row, sample_end_row))
            twin.report_delivered(core, now, i, peer, message, core.subscriptions[subscription].number, detail)
        first_row = sample_end_row

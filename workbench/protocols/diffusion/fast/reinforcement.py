"""Reinforcement in the fast engine: the rules of `workbench.protocols.diffusion.reinforcement`.

A sink sends reinforcements with the attributes of its interests, and those of the workload's items `reinforce`.
"""

from workbench.protocols.diffusion.fast.attributes import constraints_of, is_within, matches
from workbench.protocols.diffusion.fast.cache import (
    clean,
    find,
    has_newer_round,
    has_sink,
    head_of,
    new_entry,
    newest_reinforcement,
    report_head,
    set_gradient,
)
from workbench.protocols.diffusion.fast.interests import block_of, expiration_s, plan_tick
from workbench.protocols.diffusion.fast.memory import Event, Message, Reason
from workbench.protocols.diffusion.fast.messages import find_in_black_list, make_message, take_sequence
from workbench.protocols.diffusion.fast.paces import set_pace
from workbench.protocols.diffusion.fast.paths import (
    forget_reinforcements,
    has_room_for_sink,
    is_reinforced_for,
    mark_reinforced,
)
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def reinforce(core, state, i, own, index, now):
    """Send a reinforcement for node ``i``'s interest ``own`` to the neighbor of a data gradient.

    ``index``: position of the data gradient among the data gradients of this interest.
    """
    interest = state.own_interests[own]
    sequence = take_sequence(state, i)
    expires_s = expiration_s(core, state, own, now)
    message = make_message(core, state, Message.REINFORCEMENT, i, sequence, interest.list, interest.round, expires_s)
    block = block_of(state, own)
    gradient = state.data_gradients[block, index]
    if find_in_black_list(state, i, gradient.neighbor) != NONE:
        twin.drop(core, now, i, core.addresses[gradient.neighbor], message, Reason.BLACKLISTED)
        twin.let_go(core, message)
        return
    mark_reinforced(state, block, index, i)
    twin.report(
        core,
        now,
        i,
        Event.REINFORCED,
        core.addresses[gradient.neighbor],
        message,
        core.addresses[gradient.source],
        twin.NO_REASON,
    )
    twin.send(core, now, i, gradient.neighbor, message, state.ttl)
    twin.let_go(core, message)


@compiled
def receive_reinforcement(core, state, i, sender, message, ttl, now):
    """Process a reinforcement: move the gradient towards its sender to the front, and forward it to the sources."""
    clean(core, state, now, i)
    peer = core.addresses[sender]
    list_id, sequence = core.messages[message].content, core.messages[message].sequence
    fields = state.message_fields[message]
    sink = fields.origin
    if sink == i:
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    entry = find(state, i, constraints_of(state, list_id))
    # Choose paths first, as the new entry may evict one of these entries.
    path_count = 0
    if entry == NONE:
        has_containing_entry = False
        for index in range(state.nodes[i].entries):
            other_entry = state.order[i, index]
            if is_within(state, list_id, state.entries[other_entry].list) and has_sink(state, other_entry, sink):
                has_containing_entry = True
                path_count = _append_paths(core, state, i, message, other_entry, sender, False, path_count, now)
        if not has_containing_entry:
            twin.drop(core, now, i, peer, message, Reason.NO_INTEREST)
            return
        entry = new_entry(core, state, now, i, list_id, sink, sequence)
    else:
        newest_sequence = newest_reinforcement(state, entry, sink)
        if newest_sequence == sequence:
            twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
            return
        if newest_sequence > sequence or has_newer_round(state, entry, sink, fields.round):
            twin.drop(core, now, i, peer, message, Reason.STALE)
            return
        path_count = _append_paths(core, state, i, message, entry, sender, True, path_count, now)
    old_head = head_of(state, entry, sink)
    set_gradient(core, state, now, i, entry, message, sender, ttl, sequence)
    set_pace(state, i, entry, state.message_fields[message].origin, core.messages[message].content)
    report_head(core, state, now, i, entry, sink, old_head)
    if path_count and ttl <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
        path_count = 0
    _send_along(core, state, i, message, path_count, ttl - 1, now)
    plan_tick(core, state, i, now)


@compiled
def reinforce_sources(core, state, i, request, now):
    """Send reinforcements from node ``i`` towards the sources that one `reinforce` item of the workload selects.

    The node sends a reinforcement for each own interest that admits all data that the item selects. It leaves out an
    interest that it does not flood, because another own interest with wider constraints is flooded instead.
    ``request``: index of the item's attribute list in ``state.reinforcement_lists``.
    """
    list_id = state.reinforcement_lists[request]
    first_position = state.own_first[i]
    for index in range(first_position, first_position + state.nodes[i].own_interests):
        own = state.own_order[index]
        interest = state.own_interests[own]
        if not interest.is_flooded or not is_within(state, list_id, interest.list):
            continue
        block = block_of(state, own)
        forget_reinforcements(state, block, i)
        sequence = take_sequence(state, i)
        expires_s = expiration_s(core, state, own, now)
        message = make_message(core, state, Message.REINFORCEMENT, i, sequence, list_id, interest.round, expires_s)
        is_equal = constraints_of(state, list_id) == constraints_of(state, interest.list)
        path_count = _append_paths(core, state, i, message, block, NONE, is_equal, 0, now)
        _send_along(core, state, i, message, path_count, state.ttl, now)
        twin.let_go(core, message)


@compiled
def _send_along(core, state, i, message, path_count, ttl, now):
    """Send a reinforcement to the neighbors of the first ``path_count`` paths in ``state.paths``.

    Each transmission is reported as an event.
    """
    for path_index in range(path_count):
        neighbor, source = state.paths[path_index, 0], state.paths[path_index, 1]
        twin.report(
            core, now, i, Event.REINFORCED, core.addresses[neighbor], message, core.addresses[source], twin.NO_REASON
        )
        twin.send(core, now, i, neighbor, message, ttl)


@compiled
def _append_paths(core, state, i, message, block, sender, is_equal, count, now):
    """Append to ``state.paths`` the neighbors to which node ``i`` sends a reinforcement; return the number of paths.

    The neighbors are those of the data gradients in row ``block`` of ``state.data_gradients`` whose data matches the
    reinforcement, each neighbor once. ``count``: number of paths so far; ``sender``: the previous hop, which is left
    out. ``is_equal``: whether interest and reinforcement have the same constraints; if so, data gradients that are
    already reinforced for the sink are left out.
    """
    list_id, sink = core.messages[message].content, state.message_fields[message].origin
    for index in range(state.data_gradient_counts[block]):
        gradient = state.data_gradients[block, index]
        if gradient.neighbor == sender or (is_equal and is_reinforced_for(state, block, index, sink)):
            continue
        if not matches(state, list_id, gradient.list):
            continue
        if find_in_black_list(state, i, gradient.neighbor) != NONE:
            twin.drop(core, now, i, core.addresses[gradient.neighbor], message, Reason.BLACKLISTED)
            continue
        is_new = not _has_path_to(state, count, gradient.neighbor)
        if (is_equal and not has_room_for_sink(state, block, index)) or (is_new and count >= state.max_next_hops):
            twin.drop(core, now, i, core.addresses[gradient.neighbor], message, Reason.FULL)
            continue
        if is_equal:
            mark_reinforced(state, block, index, sink)
        if is_new:
            state.paths[count, 0] = gradient.neighbor
            state.paths[count, 1] = gradient.source
            count += 1
    return count


@compiled
def _has_path_to(state, count, neighbor):
    is_reached = False
    for path_index in range(count):
        is_reached = is_reached or (state.paths[path_index, 0] == neighbor)
    return is_reached

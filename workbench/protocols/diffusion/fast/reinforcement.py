"""Reinforcement in the kernel: the twin of `workbench.protocols.diffusion.reinforcement`.

A sink reinforces with the attributes of its interest, so a reinforcement lies within a cached interest that is equal,
or, where that one had to go, within a wider one of the same sink. Nodes do not listen to those on their black lists
from the start, so no data gradient leads to one.
"""

from workbench.protocols.diffusion.fast.attributes import constraints_of, is_within, matches
from workbench.protocols.diffusion.fast.cache import (
    clean,
    find,
    has_sink,
    head_of,
    is_past,
    new_entry,
    newest_wave,
    set_gradient,
    tell_head,
)
from workbench.protocols.diffusion.fast.interests import block_of, expiration_s, plan_tick
from workbench.protocols.diffusion.fast.memory import Event, Message, Reason
from workbench.protocols.diffusion.fast.messages import make, take_sequence
from workbench.protocols.diffusion.fast.paths import has_room_for_sink, is_reinforced_for, mark_reinforced
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def reinforce(core, state, i, own, place, now):
    """A sink sends a reinforcement of an own interest along one of its data gradients."""
    it = state.own_interests[own]
    sequence = take_sequence(state, i)
    lasts_s = expiration_s(core, state, own, now)
    message = make(core, state, Message.REINFORCEMENT, i, sequence, it.list, it.round, lasts_s)
    block = block_of(state, own)
    it = state.data_gradients[block, place]
    mark_reinforced(state, block, place, i)
    twin.report(
        core, now, i, Event.REINFORCED, core.addresses[it.neighbor], message, core.addresses[it.source], twin.NO_REASON
    )
    twin.send(core, now, i, it.neighbor, message, state.ttl)
    twin.let_go(core, message)


@compiled
def receive_reinforcement(core, state, i, sender, message, ttl, now):
    """Prefer the neighbor that sent a reinforcement for its sink's data, and send it on to the sources."""
    clean(core, state, now, i)
    peer = core.addresses[sender]
    number, sequence = core.messages[message].content, core.messages[message].sequence
    fields = state.interest_fields[message]
    sink = fields.origin
    if sink == i:
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    entry = find(state, i, constraints_of(state, number))
    # The paths before the new entry takes the place of one of these.
    paths = 0
    if entry == NONE:
        is_around = False
        for place in range(state.nodes[i].entries):
            other = state.order[i, place]
            if is_within(state, number, state.entries[other].list) and has_sink(state, other, sink):
                is_around = True
                paths = _add_paths(core, state, i, message, other, sender, False, paths, now)
        if not is_around:
            twin.drop(core, now, i, peer, message, Reason.NO_INTEREST)
            return
        entry = new_entry(core, state, now, i, number, sink, sequence)
    else:
        newest = newest_wave(state, entry, sink)
        if newest == sequence:
            twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
            return
        if newest > sequence or is_past(state, entry, sink, fields.round):
            twin.drop(core, now, i, peer, message, Reason.STALE)
            return
        paths = _add_paths(core, state, i, message, entry, sender, True, paths, now)
    before = head_of(state, entry, sink)
    set_gradient(core, state, now, i, entry, message, sender, ttl, sequence)
    tell_head(core, state, now, i, entry, sink, before)
    if paths and ttl <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
        paths = 0
    for k in range(paths):
        neighbor, source = state.paths[k, 0], state.paths[k, 1]
        twin.report(
            core, now, i, Event.REINFORCED, core.addresses[neighbor], message, core.addresses[source], twin.NO_REASON
        )
        twin.send(core, now, i, neighbor, message, ttl - 1)
    plan_tick(core, state, i, now)


@compiled
def _add_paths(core, state, i, message, block, sender, same, count, now):
    """Add an interest's data gradients that lead to sources a reinforcement means to the first ``count`` paths.

    ``same``: the reinforcement asks for as much as the interest. Then a source whose path is already reinforced is
    left out; one that asks for less of it is another matter. Of several to a neighbor only the first is a path.
    """
    number, sink = core.messages[message].content, state.interest_fields[message].origin
    for place in range(state.data_gradient_counts[block]):
        it = state.data_gradients[block, place]
        if it.neighbor == sender or (same and is_reinforced_for(state, block, place, sink)):
            continue
        if not matches(state, number, it.list):
            continue
        is_new = not _leads_to(state, count, it.neighbor)
        if (same and not has_room_for_sink(state, block, place)) or (is_new and count >= state.max_next_hops):
            twin.drop(core, now, i, core.addresses[it.neighbor], message, Reason.FULL)
            continue
        if same:
            mark_reinforced(state, block, place, sink)
        if is_new:
            state.paths[count, 0] = it.neighbor
            state.paths[count, 1] = it.source
            count += 1
    return count


@compiled
def _leads_to(state, count, neighbor):
    found = False
    for k in range(count):
        found = found or (state.paths[k, 0] == neighbor)
    return found

"""The twin of `workbench.protocols.coded_diffusion.node`: bootstrap nodes, intermediate nodes, timers.

A frame's message is one coded packet with its encoding vector, its word the hops; or a request, its word the rank. Of
the definition this leaves out the information vectors, whose combinations follow from those of the encoding vectors,
and what cannot happen in a run of a scenario: frames that are malformed, and packets that do not belong together.

What nodes remember is laid out in `state`; encoding vectors are computed in `algebra`.
"""

from __future__ import annotations

import numpy as np

from workbench.protocols.coded_diffusion import rules, wire
from workbench.protocols.coded_diffusion.fast import state
from workbench.protocols.coded_diffusion.fast.algebra import clear, combine, draw_coefficients, fill, insert
from workbench.protocols.coded_diffusion.fast.state import NO_GENERATION, Event, Message, Number, Reason
from workbench.protocols.coded_diffusion.rules import is_full, is_quiet
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled, hot

twin.compiled_rules(rules)

PARTS = (state,)
WAKES = True

_MOST_HOPS = wire.U16 - 1


@compiled
def has_room(core, state):
    """Whether each node that hears a frame may begin a generation."""
    return state.numbers[Number.FREE_GENERATIONS] >= state.most_new


# What is known


@compiled
def _know(state, i, event, now):
    """Node ``i`` has heard of an event now, or sent it."""
    pair, node = state.pairs[event, i], state.nodes[i]
    pair.heard_us = now
    if not pair.knows:
        pair.knows = 1
        if node.known == 0 or event < node.first_known:
            node.first_known = event
        node.known += 1


@hot
def _is_over(core, state, i, origin, event, now):
    """Whether nothing more is wanted of an event: it is this node's own, or known and not being decoded."""
    if origin == core.addresses[i]:
        return True
    pair = state.pairs[event, i]
    generation = pair.generation
    if not pair.knows or (generation != NO_GENERATION and state.generations[generation].rank < state.generation_size):
        return False
    if is_quiet(now, pair.heard_us, state.forget_after_us):
        _forget(core, state, i, event)
        pair.knows = 0
        state.nodes[i].known -= 1
        return False
    pair.heard_us = now
    return True


@compiled
def _is_full(state, i, matrices):
    node = state.nodes[i]
    return is_full(node.known, state.max_known, node.generations.count + matrices, state.max_events)


@compiled
def _can_know_another(core, state, i, matrices, now):
    """Whether another event can be known, with so many matrices; what has long been quiet makes room for it."""
    if matrices:
        _make_room(core, state, i)
    if _is_full(state, i, matrices) and now >= state.nodes[i].all_known_until_us:
        _forget_the_quiet(core, state, i, now)
    return not _is_full(state, i, matrices)


@compiled
def _make_room(core, state, i):
    """Where another matrix has no room, forget the oldest event that is kept for neighbors alone."""
    node = state.nodes[i]
    if node.generations.count < state.max_events:
        return
    generation = node.generations.first
    while generation != NONE:
        it = state.generations[generation]
        if it.rank == state.generation_size and it.send_us == NONE:
            _forget(core, state, i, it.event)
            return
        generation = it.next


@compiled
def _forget_the_quiet(core, state, i, now):
    node = state.nodes[i]
    generation = node.generations.first
    while generation != NONE:
        behind = state.generations[generation].next
        event = state.generations[generation].event
        pair = state.pairs[event, i]
        if pair.knows and is_quiet(now, pair.heard_us, state.forget_after_us):
            _forget(core, state, i, event)
            _tell_expired(core, state, i, event, now)
        generation = behind
    left = node.known
    node.known = 0
    oldest_us = now
    event = node.first_known
    while left:
        pair = state.pairs[event, i]
        if pair.knows:
            left -= 1
            if is_quiet(now, pair.heard_us, state.forget_after_us):
                pair.knows = 0
            else:
                if node.known == 0:
                    node.first_known = event
                node.known += 1
                oldest_us = min(oldest_us, pair.heard_us)
        event += 1
    # Before that time there is nothing to find.
    node.all_known_until_us = oldest_us + state.forget_after_us


@compiled
def _tell_expired(core, state, i, event, now):
    if core.traces:
        it = state.events[event]
        twin.add_row(
            core, now, i, twin.Event.DROPPED, NONE, Message.CODED, it.origin, it.sequence, 0, 0, Reason.EXPIRED
        )
    else:
        core.dropped[Reason.EXPIRED] += 1


# Generations


@compiled
def _begin(state, i, event):
    """A generation without packets, the youngest of node ``i``."""
    generation = twin.take_free(state.generations, state.numbers, Number.FREE_GENERATION)
    it = state.generations[generation]
    it.event = event
    it.hops = wire.U16
    it.fresh = 0
    it.rank = 0
    it.send_us = NONE
    it.due_us = NONE
    it.has_sent = 0
    it.requests = 0
    it.peer = NONE
    it.owed = 0
    twin.append(state.nodes[i].generations, state.generations, generation)
    state.pairs[event, i].generation = generation
    clear(state, generation)
    return generation


@compiled
def _forget(core, state, i, event):
    """Give up what node ``i`` has of an event; nothing to do if it has nothing."""
    generation = state.pairs[event, i].generation
    if generation != NO_GENERATION:
        state.pairs[event, i].generation = NO_GENERATION
        twin.remove(state.nodes[i].generations, state.generations, generation)
        twin.give_back(state.generations, state.numbers, Number.FREE_GENERATION, generation)
        _plan_wake(core, state, i)


@compiled
def _plan_wake(core, state, i):
    earliest_us = NONE
    generation = state.nodes[i].generations.first
    while generation != NONE:
        it = state.generations[generation]
        if it.send_us != NONE and (earliest_us == NONE or it.send_us < earliest_us):
            earliest_us = it.send_us
        if it.due_us != NONE and (earliest_us == NONE or it.due_us < earliest_us):
            earliest_us = it.due_us
        generation = it.next
    core.next_wake[i] = earliest_us


@compiled
def _plan_sending(core, state, i, generation, now):
    it = state.generations[generation]
    if it.has_sent and not state.rearm:
        return
    # Drawn even where it is certain: a node draws the same whatever its parameters are.
    if twin.stream_uniform(core, i) < state.forwarding_probability:
        it.send_us = now + state.collecting_us


@compiled
def _plan_answer(state, generation, now):
    it = state.generations[generation]
    if it.send_us == NONE:
        it.send_us = now + state.collecting_us
        it.due_us = max(it.due_us, it.send_us)


@compiled
def _allow_request(core, state, i, generation, now):
    """Allow one more request after the last: a neighbor sends, and its next packet is likely to be innovative."""
    it = state.generations[generation]
    if 0 < it.requests == state.max_requests:
        it.requests -= 1
        if it.due_us == NONE:
            it.due_us = now + state.request_after_us
            _plan_wake(core, state, i)


@compiled
def _plan_forgetting(core, state, i, generation, now):
    """A decoded event is kept for neighbors that ask, or until a timer that runs has fired."""
    it = state.generations[generation]
    if state.keep_us:
        it.due_us = now + state.keep_us
        if it.owed:
            _plan_answer(state, generation, now)
    elif it.send_us == NONE:
        _forget(core, state, i, it.event)


# Packets


@compiled
def _make_packet(core, state, event):
    """A coded packet of an event whose encoding vector is still to be written."""
    it = state.events[event]
    size_B, airtime_us = state.sizes_B[it.content], state.airtimes_us[it.content]
    message = twin.take_message(core, Message.CODED, it.origin, it.sequence, it.content, size_B, airtime_us)
    state.events_of[message] = event
    return message


@compiled
def _tell_forwarded(core, state, i, peer, event, count, now):
    if core.traces:
        it = state.events[event]
        detail = state.first_text + count
        twin.add_row(core, now, i, twin.Event.FORWARDED, peer, Message.CODED, it.origin, it.sequence, 0, 0, detail)


@compiled
def _send_combinations(core, state, i, generation, count, now):
    """Broadcast combinations of what has come of an event."""
    it = state.generations[generation]
    for _ in range(count):
        message = _make_packet(core, state, it.event)
        draw_coefficients(core, state, i, it.rank)
        combine(state, generation, message)
        twin.send(core, now, i, twin.BROADCAST, message, min(it.hops, _MOST_HOPS))
        twin.let_go(core, message)


@compiled
def _receive_event(core, state, i, sender, message, event, now):
    peer = core.addresses[sender]
    if _is_over(core, state, i, core.messages[message].origin, event, now):
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    if state.pairs[event, i].generation == NO_GENERATION and not _can_know_another(core, state, i, 0, now):
        twin.drop(core, now, i, peer, message, Reason.FULL)
        return
    _forget(core, state, i, event)
    _know(state, i, event, now)
    twin.hold_pair(core, state.pairs, i, peer, message, event, 1, now)
    _make_room(core, state, i)
    is_kept = state.keep_us and state.nodes[i].generations.count < state.max_events
    generation = _begin(state, i, event)
    fill(state, generation)
    it = state.generations[generation]
    it.rank = state.generation_size
    it.hops = 1
    _send_combinations(core, state, i, generation, state.bootstrap_factor, now)
    _tell_forwarded(core, state, i, peer, event, state.bootstrap_factor, now)
    if is_kept:
        it.due_us = now + state.keep_us
        _plan_wake(core, state, i)
    else:
        _forget(core, state, i, event)


@hot
def _receive_coded(core, state, i, sender, message, hops, event, now):
    peer = core.addresses[sender]
    if _is_over(core, state, i, core.messages[message].origin, event, now):
        twin.drop(core, now, i, peer, message, Reason.DECODED)
        return
    generation = state.pairs[event, i].generation
    if generation == NO_GENERATION:
        if not _can_know_another(core, state, i, 1, now):
            twin.drop(core, now, i, peer, message, Reason.FULL)
            return
        generation = _begin(state, i, event)
        twin.report(core, now, i, Event.GENERATION_BEGUN, peer, message, state.generation_size, twin.NO_REASON)
    _know(state, i, event, now)
    it = state.generations[generation]
    pivot = insert(state, generation, message) if it.rank < state.generation_size else NONE
    if pivot == NONE:
        twin.drop(core, now, i, peer, message, Reason.NOT_INNOVATIVE)
        _allow_request(core, state, i, generation, now)
        return
    it.rank += 1
    it.hops = min(it.hops, hops + 1)
    it.fresh += 1
    it.requests = 0
    it.peer = sender
    twin.report(core, now, i, Event.INNOVATIVE, peer, message, it.rank, state.first_text + pivot)
    is_complete = it.rank == state.generation_size
    if is_complete:
        twin.report(core, now, i, Event.DECODED, peer, message, state.generation_size, twin.NO_REASON)
        twin.hold_pair(core, state.pairs, i, peer, message, event, it.hops, now)
    elif state.keep_us:
        it.due_us = now + state.request_after_us
    _plan_sending(core, state, i, generation, now)
    if is_complete:
        _plan_forgetting(core, state, i, generation, now)
    _plan_wake(core, state, i)


@compiled
def _receive_request(core, state, i, sender, message, rank, event, now):
    generation = state.pairs[event, i].generation
    if generation == NO_GENERATION:
        twin.drop(core, now, i, core.addresses[sender], message, Reason.NOT_AT_HAND)
        return
    _know(state, i, event, now)
    it = state.generations[generation]
    it.owed = max(it.owed, state.generation_size - rank)
    if it.rank == state.generation_size:
        _plan_answer(state, generation, now)
        _plan_wake(core, state, i)


# What the loop calls


@compiled
def publish(core, state, i, content, number, now):
    """Broadcast an event."""
    event = state.numbers[Number.PUBLISHED]
    state.numbers[Number.PUBLISHED] = event + 1
    it = state.events[event]
    it.origin = core.addresses[i]
    it.sequence = number
    it.content = content
    message = twin.make_message(core, Message.EVENT, core.addresses[i], number, content)
    state.events_of[message] = event
    twin.report_originated(core, now, i, message, number)
    twin.hold_pair(core, state.pairs, i, NONE, message, event, 0, now)
    twin.send(core, now, i, twin.BROADCAST, message, 0)
    twin.let_go(core, message)


@hot
def receive(core, state, i, sender, message, word, broadcast, now):
    """Take a neighbor's event, coded packet or request; its ``word`` is the hops or the rank."""
    event = state.events_of[message]
    name = core.messages[message].name
    if name == Message.EVENT:
        _receive_event(core, state, i, sender, message, event, now)
    elif name == Message.CODED:
        _receive_coded(core, state, i, sender, message, word, event, now)
    else:
        _receive_request(core, state, i, sender, message, word, event, now)


@compiled
def _send_planned(core, state, i, generation, now):
    it = state.generations[generation]
    it.send_us = NONE
    it.has_sent = 1
    _know(state, i, it.event, now)
    count = np.int64(state.sends[it.fresh])
    it.fresh = 0
    if it.rank == state.generation_size:
        count = max(count, np.int64(it.owed))
        it.owed = 0
    _send_combinations(core, state, i, generation, count, now)
    _tell_forwarded(core, state, i, NONE, it.event, count, now)


@compiled
def _request(core, state, i, generation, now):
    """Ask for more packets: the neighbor that sent the last innovative one, and then all of them."""
    it = state.generations[generation]
    if it.requests == state.max_requests:
        it.due_us = NONE
        return
    it.requests += 1
    it.due_us = now + state.request_after_us
    _know(state, i, it.event, now)
    its = state.events[it.event]
    size_B, airtime_us = state.request_size_B, state.request_airtime_us
    message = twin.take_message(core, Message.REQUEST, its.origin, its.sequence, its.content, size_B, airtime_us)
    state.events_of[message] = it.event
    twin.send(core, now, i, twin.BROADCAST if it.peer == NONE else it.peer, message, it.rank)
    twin.let_go(core, message)
    it.peer = NONE


@compiled
def wake(core, state, i, now):
    """Send for the events whose collecting time is over, ask for more of others, forget those that were kept."""
    generation = state.nodes[i].generations.first
    while generation != NONE:
        it = state.generations[generation]
        behind = it.next
        if it.send_us != NONE and it.send_us <= now:
            _send_planned(core, state, i, generation, now)
        is_complete = it.rank == state.generation_size
        # Without requests a decoded event is over when its timer has fired.
        if is_complete and it.send_us == NONE and (it.due_us == NONE or it.due_us <= now):
            _forget(core, state, i, it.event)
        elif not is_complete and it.due_us != NONE and it.due_us <= now:
            _request(core, state, i, generation, now)
        generation = behind
    _plan_wake(core, state, i)

"""The *twin* of coded diffusion's node: the same algorithm as compiled functions, which the fast engine's loop calls.

A message is a whole event, a coded packet with its encoding vector, or a request. Each frame carries one number beside
its message: the hops of a coded packet or the rank of a request. The twin omits information vectors, as the encoding
vectors determine them. It also omits cases that do not occur in a simulated run: malformed frames, and
packets of an event that differ in generation size, field or length.

`state` defines the memory of nodes; `algebra` computes encoding vectors.

Parameters of many functions
    core, state   the engine's arrays (`workbench.sim.fast.layout.Core`), and the arrays of this protocol
    i             index of the node that acts
    now           current time (µs)
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
    """Return whether ``state.generations`` has a free row for each node that may hear the next frame.

    A node that hears the first frame of an event needs a row for the event's generation.
    """
    return state.numbers[Number.FREE_GENERATIONS] >= state.most_new


# Memory of events


@compiled
def _record_heard_time(state, i, event, now):
    """Record ``now`` as the last time at which node ``i`` heard or sent a frame of an event.

    ``event``: the event's number (0, 1, ...) in the order of publishing.
    """
    pair, node = state.pairs[event, i], state.nodes[i]
    pair.heard_us = now
    if not pair.knows:
        pair.knows = 1
        if node.known == 0 or event < node.first_known:
            node.first_known = event
        node.known += 1


@hot
def _is_finished(core, state, i, origin, event, now):
    """Return whether node ``i`` needs no more packets of an event, because it published, received or decoded it.

    If the result is True, ``now`` becomes the time of the event's last frame. If the event's last frame was long ago
    (`rules.is_quiet`), the node forgets the event, so that the event counts as new, and the result is False.
    """
    if origin == core.addresses[i]:
        return True
    pair = state.pairs[event, i]
    generation = pair.generation
    if not pair.knows or (generation != NO_GENERATION and state.generations[generation].rank < state.generation_size):
        return False
    if is_quiet(now, pair.heard_us, state.forget_after_us):
        _remove_generation(core, state, i, event)
        pair.knows = 0
        state.nodes[i].known -= 1
        return False
    pair.heard_us = now
    return True


@compiled
def _is_memory_full(state, i, matrices):
    node = state.nodes[i]
    return is_full(node.known, state.max_known, node.generations.count + matrices, state.max_events)


@compiled
def _make_room_for_event(core, state, i, matrices, now):
    """Make room for an event and for ``matrices`` (0 or 1) decoding matrices; return whether there is room now.

    If no decoding matrix is free, node ``i`` forgets the oldest event that it stores only to answer requests. If that
    is not enough, it also forgets all events of which it has neither received nor sent a frame for a long time.
    """
    if matrices:
        _forget_answering_event(core, state, i)
    if _is_memory_full(state, i, matrices) and now >= state.nodes[i].next_search_us:
        _forget_quiet_events(core, state, i, now)
    return not _is_memory_full(state, i, matrices)


@compiled
def _forget_answering_event(core, state, i):
    """Forget node ``i``'s oldest event that is stored only to answer requests, if no decoding matrix is free."""
    node = state.nodes[i]
    if node.generations.count < state.max_events:
        return
    generation = node.generations.first
    while generation != NONE:
        generation_record = state.generations[generation]
        if generation_record.rank == state.generation_size and generation_record.send_us == NONE:
            _remove_generation(core, state, i, generation_record.event)
            return
        generation = generation_record.next


@compiled
def _forget_quiet_events(core, state, i, now):
    node = state.nodes[i]
    generation = node.generations.first
    while generation != NONE:
        next_generation = state.generations[generation].next
        event = state.generations[generation].event
        pair = state.pairs[event, i]
        if pair.knows and is_quiet(now, pair.heard_us, state.forget_after_us):
            _remove_generation(core, state, i, event)
            _report_expired(core, state, i, event, now)
        generation = next_generation
    remaining_count = node.known
    node.known = 0
    oldest_us = now
    event = node.first_known
    while remaining_count:
        pair = state.pairs[event, i]
        if pair.knows:
            remaining_count -= 1
            if is_quiet(now, pair.heard_us, state.forget_after_us):
                pair.knows = 0
            else:
                if node.known == 0:
                    node.first_known = event
                node.known += 1
                oldest_us = min(oldest_us, pair.heard_us)
        event += 1
    # Before this time no event is quiet long enough.
    node.next_search_us = oldest_us + state.forget_after_us


@compiled
def _report_expired(core, state, i, event, now):
    if core.traces:
        event_record = state.events[event]
        twin.add_row(
            core,
            now,
            i,
            twin.Event.DROPPED,
            NONE,
            Message.CODED,
            event_record.origin,
            event_record.sequence,
            0,
            0,
            Reason.EXPIRED,
        )
    else:
        core.dropped[Reason.EXPIRED] += 1


# Generations


@compiled
def _begin_generation(state, i, event):
    """Add an empty generation for an event to node ``i``; return the generation's index in ``state.generations``."""
    generation = twin.take_free(state.generations, state.numbers, Number.FREE_GENERATION)
    generation_record = state.generations[generation]
    generation_record.event = event
    generation_record.hops = wire.U16
    generation_record.fresh = 0
    generation_record.rank = 0
    generation_record.send_us = NONE
    generation_record.due_us = NONE
    generation_record.has_sent = 0
    generation_record.requests = 0
    generation_record.peer = NONE
    generation_record.requested = 0
    twin.append(state.nodes[i].generations, state.generations, generation)
    state.pairs[event, i].generation = generation
    clear(state, generation)
    return generation


@compiled
def _remove_generation(core, state, i, event):
    """Remove node ``i``'s generation (decoding state) of an event, if it has one, and plan the next wake-up."""
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
        generation_record = state.generations[generation]
        if generation_record.send_us != NONE and (earliest_us == NONE or generation_record.send_us < earliest_us):
            earliest_us = generation_record.send_us
        if generation_record.due_us != NONE and (earliest_us == NONE or generation_record.due_us < earliest_us):
            earliest_us = generation_record.due_us
        generation = generation_record.next
    core.next_wake[i] = earliest_us


@compiled
def _plan_sending(core, state, i, generation, now):
    generation_record = state.generations[generation]
    if generation_record.has_sent and not state.rearm:
        return
    # Draw even if the result is certain: then the sequence of draws does not depend on the parameters.
    if twin.stream_uniform(core, i) < state.forwarding_probability:
        generation_record.send_us = now + state.collecting_us


@compiled
def _plan_answer(state, generation, now):
    generation_record = state.generations[generation]
    if generation_record.send_us == NONE:
        generation_record.send_us = now + state.collecting_us
        generation_record.due_us = max(generation_record.due_us, generation_record.send_us)


@compiled
def _allow_request(core, state, i, generation, now):
    """Allow node ``i`` one more request for an incomplete generation, if it has sent ``max_requests`` already.

    Called after a coded packet that did not raise the rank. The packet shows that a neighbor is sending packets of this
    generation; the next one is likely to raise the rank.
    """
    generation_record = state.generations[generation]
    if 0 < generation_record.requests == state.max_requests:
        generation_record.requests -= 1
        if generation_record.due_us == NONE:
            generation_record.due_us = now + state.request_after_us
            _plan_wake(core, state, i)


@compiled
def _plan_forgetting(core, state, i, generation, now):
    """Set the time at which node ``i`` forgets a decoded event, and plan the answer to earlier requests for it.

    If nodes send requests, the node forgets the event after the time in which neighbors may request packets. Otherwise
    the node forgets the event when its send timer for the event fires, or at once if that timer is not set.
    """
    generation_record = state.generations[generation]
    if state.keep_us:
        generation_record.due_us = now + state.keep_us
        if generation_record.requested:
            _plan_answer(state, generation, now)
    elif generation_record.send_us == NONE:
        _remove_generation(core, state, i, generation_record.event)


# Packets


@compiled
def _make_packet(core, state, event):
    """Create a coded packet of an event, without its encoding vector; return its index in ``core.messages``."""
    event_record = state.events[event]
    size_B, airtime_us = state.sizes_B[event_record.content], state.airtimes_us[event_record.content]
    message = twin.take_message(
        core, Message.CODED, event_record.origin, event_record.sequence, event_record.content, size_B, airtime_us
    )
    state.events_of[message] = event
    return message


@compiled
def _report_forwarded(core, state, i, peer, event, count, now):
    if core.traces:
        event_record = state.events[event]
        detail = state.first_text + count
        twin.add_row(
            core,
            now,
            i,
            twin.Event.FORWARDED,
            peer,
            Message.CODED,
            event_record.origin,
            event_record.sequence,
            0,
            0,
            detail,
        )


@compiled
def _send_combinations(core, state, i, generation, count, now):
    """Broadcast ``count`` coded packets: random combinations of the rows of a generation's decoding matrix."""
    generation_record = state.generations[generation]
    for _ in range(count):
        message = _make_packet(core, state, generation_record.event)
        draw_coefficients(core, state, i, generation_record.rank)
        combine(state, generation, message)
        twin.send(core, now, i, twin.BROADCAST, message, min(generation_record.hops, _MOST_HOPS))
        twin.let_go(core, message)


@compiled
def _receive_event(core, state, i, sender, message, event, now):
    peer = core.addresses[sender]
    if _is_finished(core, state, i, core.messages[message].origin, event, now):
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    if state.pairs[event, i].generation == NO_GENERATION and not _make_room_for_event(core, state, i, 0, now):
        twin.drop(core, now, i, peer, message, Reason.FULL)
        return
    _remove_generation(core, state, i, event)
    _record_heard_time(state, i, event, now)
    twin.hold_pair(core, state.pairs, i, peer, message, event, 1, now)
    _forget_answering_event(core, state, i)
    is_stored = state.keep_us and state.nodes[i].generations.count < state.max_events
    generation = _begin_generation(state, i, event)
    fill(state, generation)
    generation_record = state.generations[generation]
    generation_record.rank = state.generation_size
    generation_record.hops = 1
    _send_combinations(core, state, i, generation, state.bootstrap_factor, now)
    _report_forwarded(core, state, i, peer, event, state.bootstrap_factor, now)
    if is_stored:
        generation_record.due_us = now + state.keep_us
        _plan_wake(core, state, i)
    else:
        _remove_generation(core, state, i, event)


@hot
def _receive_coded(core, state, i, sender, message, hops, event, now):
    peer = core.addresses[sender]
    if _is_finished(core, state, i, core.messages[message].origin, event, now):
        twin.drop(core, now, i, peer, message, Reason.DECODED)
        return
    generation = state.pairs[event, i].generation
    if generation == NO_GENERATION:
        if not _make_room_for_event(core, state, i, 1, now):
            twin.drop(core, now, i, peer, message, Reason.FULL)
            return
        generation = _begin_generation(state, i, event)
        twin.report(core, now, i, Event.GENERATION_BEGUN, peer, message, state.generation_size, twin.NO_REASON)
    _record_heard_time(state, i, event, now)
    generation_record = state.generations[generation]
    pivot = insert(state, generation, message) if generation_record.rank < state.generation_size else NONE
    if pivot == NONE:
        twin.drop(core, now, i, peer, message, Reason.NOT_INNOVATIVE)
        _allow_request(core, state, i, generation, now)
        return
    generation_record.rank += 1
    generation_record.hops = min(generation_record.hops, hops + 1)
    generation_record.fresh += 1
    generation_record.requests = 0
    generation_record.peer = sender
    twin.report(core, now, i, Event.INNOVATIVE, peer, message, generation_record.rank, state.first_text + pivot)
    is_complete = generation_record.rank == state.generation_size
    if is_complete:
        twin.report(core, now, i, Event.DECODED, peer, message, state.generation_size, twin.NO_REASON)
        twin.hold_pair(core, state.pairs, i, peer, message, event, generation_record.hops, now)
    elif state.keep_us:
        generation_record.due_us = now + state.request_after_us
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
    _record_heard_time(state, i, event, now)
    generation_record = state.generations[generation]
    generation_record.requested = max(generation_record.requested, state.generation_size - rank)
    if generation_record.rank == state.generation_size:
        _plan_answer(state, generation, now)
        _plan_wake(core, state, i)


# Called by the engine's loop


@compiled
def publish(core, state, i, content, number, now):
    """Broadcast a new event of node ``i``.

    ``content``: row of the event's content in ``core.contents``; ``number``: its sequence number at the node.
    """
    event = state.numbers[Number.PUBLISHED]
    state.numbers[Number.PUBLISHED] = event + 1
    event_record = state.events[event]
    event_record.origin = core.addresses[i]
    event_record.sequence = number
    event_record.content = content
    message = twin.make_message(core, Message.EVENT, core.addresses[i], number, content)
    state.events_of[message] = event
    twin.report_originated(core, now, i, message, number)
    twin.hold_pair(core, state.pairs, i, NONE, message, event, 0, now)
    twin.send(core, now, i, twin.BROADCAST, message, 0)
    twin.let_go(core, message)


@hot
def receive(core, state, i, sender, message, hops_or_rank, broadcast, now):
    """Process a frame that node ``i`` receives from node ``sender``: an event, a coded packet or a request.

    ``message``: row of the frame's message in ``core.messages``; ``hops_or_rank``: the hops of a coded packet, or the
    rank of the requesting node's matrix in a request. ``broadcast`` has no effect.
    """
    event = state.events_of[message]
    message_name = core.messages[message].name
    if message_name == Message.EVENT:
        _receive_event(core, state, i, sender, message, event, now)
    elif message_name == Message.CODED:
        _receive_coded(core, state, i, sender, message, hops_or_rank, event, now)
    else:
        _receive_request(core, state, i, sender, message, hops_or_rank, event, now)


@compiled
def _send_planned_packets(core, state, i, generation, now):
    generation_record = state.generations[generation]
    generation_record.send_us = NONE
    generation_record.has_sent = 1
    _record_heard_time(state, i, generation_record.event, now)
    count = np.int64(state.sends[generation_record.fresh])
    generation_record.fresh = 0
    if generation_record.rank == state.generation_size:
        count = max(count, np.int64(generation_record.requested))
        generation_record.requested = 0
    _send_combinations(core, state, i, generation, count, now)
    _report_forwarded(core, state, i, NONE, generation_record.event, count, now)


@compiled
def _send_request(core, state, i, generation, now):
    """Request more packets for an incomplete generation, unless ``max_requests`` requests have already been sent.

    The first request after an innovative packet goes to the sender of this packet, later ones go to all neighbors.
    """
    generation_record = state.generations[generation]
    if generation_record.requests == state.max_requests:
        generation_record.due_us = NONE
        return
    generation_record.requests += 1
    generation_record.due_us = now + state.request_after_us
    _record_heard_time(state, i, generation_record.event, now)
    publisher_event = state.events[generation_record.event]
    size_B, airtime_us = state.request_size_B, state.request_airtime_us
    message = twin.take_message(
        core,
        Message.REQUEST,
        publisher_event.origin,
        publisher_event.sequence,
        publisher_event.content,
        size_B,
        airtime_us,
    )
    state.events_of[message] = generation_record.event
    twin.send(
        core,
        now,
        i,
        twin.BROADCAST if generation_record.peer == NONE else generation_record.peer,
        message,
        generation_record.rank,
    )
    twin.let_go(core, message)
    generation_record.peer = NONE


@compiled
def wake(core, state, i, now):
    """Run node ``i``'s timers that are due: send coded packets, send requests, or forget decoded events."""
    generation = state.nodes[i].generations.first
    while generation != NONE:
        generation_record = state.generations[generation]
        next_generation = generation_record.next
        if generation_record.send_us != NONE and generation_record.send_us <= now:
            _send_planned_packets(core, state, i, generation, now)
        is_complete = generation_record.rank == state.generation_size
        # Without requests a decoded event is forgotten once its timer has fired.
        if (
            is_complete
            and generation_record.send_us == NONE
            and (generation_record.due_us == NONE or generation_record.due_us <= now)
        ):
            _remove_generation(core, state, i, generation_record.event)
        elif not is_complete and generation_record.due_us != NONE and generation_record.due_us <= now:
            _send_request(core, state, i, generation, now)
        generation = next_generation
    _plan_wake(core, state, i)

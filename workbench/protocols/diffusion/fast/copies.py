"""Copies of a data message in the fast engine: the neighbors that get one, and the list of sinks in each copy.

The docstring of `workbench.protocols.diffusion` describes the rules under "Several sinks". A node *serves* a sink by
sending a copy towards it. A copy lists the sinks that its receiver need not serve. A *path* is a row of
``state.data_paths``: a sink that gets a copy, and the candidate neighbors for its next hop. A *copy* is identified by
the index of its neighbor in ``state.hops``. Sinks are node indices, which are in the order of addresses.

Two scratch arrays contain sorted sets of sinks. ``served_now``: the sinks that this node serves with the copies that it
is sending. ``served_else``: the sinks that get no copy from this node now: those that other nodes or earlier copies
serve, and this node itself if it is a sink. The arrays do not store how many of their elements are used. So a function
that adds sinks to a set returns the new number of elements.
"""

import numpy as np

from workbench.protocols.diffusion.fast.attributes import matches
from workbench.protocols.diffusion.fast.cache import clean
from workbench.protocols.diffusion.fast.interests import plan_wake_up
from workbench.protocols.diffusion.fast.memory import Message, Number, Reason
from workbench.protocols.diffusion.fast.messages import copy_data, count_gradients_to_use, id_of, seen_data_index
from workbench.protocols.diffusion.rules import MAX_WAITING, RETRY_WITHIN_US, has_circled, is_better_hop, may_retry
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

WORD_BITS = 64


@compiled
def forward_data(core, state, i, sender, message, ttl, seen, now):
    """Send data towards each sink to which no copy has been sent yet; return False if no sink remains.

    ``seen``: index of the message in the node's memory of messages; ``sender``: the previous hop.
    """
    listed_count = _copy_listed_sinks(state, message)
    if matches_own(state, i, core.messages[message].content):
        listed_count = _insert(state.served_else, listed_count, i)
    path_count = _find_paths(core, state, i, sender, message, listed_count, now)
    seen_message = state.seen_data_more[i, seen]
    is_repeated = _has_served_sink(state, i, seen, path_count)
    if is_repeated and has_circled(ttl, seen_message.ttl) and may_retry(seen_message.retries):
        # A reinforcement has moved the path meanwhile, so forward the copy as if it were new.
        seen_message.retries += 1
        seen_message.ttl = ttl
        for word_index in range(state.served.shape[2]):
            state.served[i, seen, word_index] = 0
    else:
        listed_count = _add_served(state, i, seen, listed_count)
        if is_repeated:
            path_count = _remove_served_paths(state, path_count, listed_count)
    if path_count == 0:
        return False
    peer = NONE if sender == NONE else core.addresses[sender]
    if ttl <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
        return True
    copy_count, unserved_count = _assign_paths(state, path_count)
    if unserved_count:
        twin.drop(core, now, i, peer, message, Reason.FULL)
    _send_copies(core, state, i, message, ttl, path_count, copy_count, listed_count, now)
    twin.report_forwarded(core, now, i, peer, message, copy_count)
    for path in range(path_count):
        if state.data_paths[path].copy_number != NONE:
            _record_served_sink(state, i, seen, state.data_paths[path].sink)
    return True


@compiled
def _copy_listed_sinks(state, message):
    """Copy the sinks in a message's list to ``state.served_else``; return their number."""
    count = 0
    for index in range(state.message_fields[message].listed_sinks):
        count = _insert(state.served_else, count, state.listed_sinks[message, index])
    return count


@compiled
def _add_served(state, i, seen, count):
    """Add to ``state.served_else`` the sinks towards which node ``i`` has already sent a message.

    ``seen``: index of the message in the node's memory of messages; ``count``: number of sinks in
    ``state.served_else``. Return the new number.
    """
    for index in range(state.nodes[i].served_sinks):
        if _is_served(state, i, seen, index):
            count = _insert(state.served_else, count, state.served_sinks[i, index])
    return count


@compiled
def _has_served_sink(state, i, seen, path_count):
    """Return whether node ``i`` has already sent a message towards the sink of any of the ``path_count`` planned paths.

    ``seen``: index of the message in the node's memory of messages.
    """
    for index in range(state.nodes[i].served_sinks):
        if _is_served(state, i, seen, index):
            for path in range(path_count):
                if state.data_paths[path].sink == state.served_sinks[i, index]:
                    return True
    return False


@compiled
def _is_served(state, i, seen, index):
    """Return whether node ``i`` has sent a message towards the sink ``state.served_sinks[i, index]``.

    ``seen``: index of the message in the node's memory of messages.
    """
    return (state.served[i, seen, index // WORD_BITS] >> np.uint64(index % WORD_BITS)) & np.uint64(1) != 0


@compiled
def _insert(values, count, value):
    """Insert a value into a sorted set, the first ``count`` elements of ``values``; return the new count."""
    index = count
    while index > 0 and values[index - 1] > value:
        index -= 1
    if index > 0 and values[index - 1] == value:
        return count
    for position in range(count, index, -1):
        values[position] = values[position - 1]
    values[index] = value
    return count + 1


@compiled
def matches_own(state, i, list_id):
    """Return whether an own interest of node ``i`` matches data with the attribute list ``list_id``."""
    first_position = state.own_first[i]
    is_wanted = False
    for index in range(first_position, first_position + state.nodes[i].own_interests):
        is_wanted = is_wanted or matches(state, state.own_interests[state.own_order[index]].list, list_id)
    return is_wanted


@compiled
def _mark_excluded(state, i, message, listed_count):
    """Mark the sinks to which node ``i`` must not send a copy of a message.

    The sinks are the message's source, node ``i`` itself, and the first ``listed_count`` sinks in
    ``state.served_else``, which get the message in another way. The mark in ``state.skip_stamp`` is a new number, so
    that marks of earlier calls no longer count.
    """
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    for index in range(listed_count):
        state.skip_stamp[state.served_else[index]] = stamp
    state.skip_stamp[i] = stamp
    state.skip_stamp[state.message_fields[message].origin] = stamp
    state.numbers[Number.SKIPPED] = stamp


@compiled
def _find_paths(core, state, i, sender, message, listed_count, now):
    """Store a path (sink and candidates for the next hop) for each copy of a message that node ``i`` has to send.

    The paths are rows of ``state.data_paths``; return their number. The first ``listed_count`` sinks in
    ``state.served_else`` get no copy.
    """
    _mark_excluded(state, i, message, listed_count)
    max_copies = count_gradients_to_use(state, i, now)
    path_count = candidate_count = 0
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        if matches(state, state.entries[entry].list, core.messages[message].content):
            path_count, candidate_count = _append_paths(
                state, entry, now, sender, max_copies, path_count, candidate_count
            )
    return path_count


@compiled
def _remove_served_paths(state, path_count, listed_count):
    """Remove the paths to the first ``listed_count`` sinks in ``state.served_else``; return how many paths remain.

    These sinks get the message in another way.
    """
    remaining_count = 0
    for path in range(path_count):
        if not _contains(state.served_else, listed_count, state.data_paths[path].sink):
            state.data_paths[remaining_count] = state.data_paths[path]
            remaining_count += 1
    return remaining_count


@compiled
def _append_paths(state, entry, now, previous_hop, max_copies, path_count, candidate_count):
    """Append a path to ``state.data_paths`` for each copy that a sink gets along the gradients of a cache entry.

    A path is a sink and the neighbors that may be its next hop, which are appended to ``state.candidates``.
    ``max_copies``: number of copies for each sink without a reinforced gradient; ``path_count``, ``candidate_count``:
    number of paths and of candidates so far. Return the new numbers.
    """
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    excluded_stamp = state.numbers[Number.SKIPPED]
    count = state.entries[entry].gradients
    for gradient_index in range(count):
        gradient = state.gradients[entry, gradient_index]
        sink = gradient.sink
        if gradient.expires_us <= now or gradient.neighbor == previous_hop or state.skip_stamp[sink] == excluded_stamp:
            continue
        is_head = state.sink_stamp[sink] != stamp
        if is_head:
            state.sink_stamp[sink] = stamp
            state.sink_room[sink] = 1 if gradient.reinforced_by != NONE else max_copies
        elif state.sink_room[sink] > 1:
            state.sink_room[sink] -= 1
        else:
            continue
        path = state.data_paths[path_count]
        path.sink = sink
        path.first = candidate_count
        path.copy_number = NONE
        path.rank = 0 if is_head else 1
        state.candidates[candidate_count] = gradient.neighbor
        candidate_count += 1
        if is_head and max_copies == 1 and gradient.reinforced_by == NONE:
            for other_index in range(gradient_index + 1, count):
                other_gradient = state.gradients[entry, other_index]
                if (
                    other_gradient.sink == sink
                    and other_gradient.expires_us > now
                    and other_gradient.ttl >= gradient.ttl
                    and other_gradient.neighbor != previous_hop
                ):
                    state.candidates[candidate_count] = other_gradient.neighbor
                    candidate_count += 1
        path.last = candidate_count
        path_count += 1
    return path_count, candidate_count


@compiled
def _add_detours(state, entry, now, previous_hop, failed, path_count):
    """Append a path (sink and next hop) to ``state.data_paths`` for each sink to which data must be sent again.

    Only sinks with a gradient in the cache entry ``entry`` are considered. ``failed``: the neighbor that did not
    acknowledge the data; it is the next hop only for a sink without a gradient to another neighbor. ``path_count``:
    number of paths so far. Return the new number.
    """
    excluded_stamp, first_path = state.numbers[Number.SKIPPED], path_count
    for gradient_index in range(state.entries[entry].gradients):
        gradient = state.gradients[entry, gradient_index]
        if (
            gradient.expires_us <= now
            or gradient.neighbor == previous_hop
            or state.skip_stamp[gradient.sink] == excluded_stamp
        ):
            continue
        path = first_path
        while path < path_count and state.data_paths[path].sink != gradient.sink:
            path += 1
        if path == path_count:
            detour = state.data_paths[path_count]
            detour.sink = gradient.sink
            detour.first = path_count
            detour.last = path_count + 1
            detour.copy_number = NONE
            detour.rank = 0
            state.candidates[path_count] = gradient.neighbor
            path_count += 1
        elif state.candidates[path] == failed:
            state.candidates[path] = gradient.neighbor
    return path_count


@compiled
def _assign_paths(state, path_count):
    """Choose the neighbors that get a copy of data, as few as possible, and assign each path to a copy.

    A path is a sink and the neighbors that may be its next hop. Neighbors are chosen for the paths with rank 0 first
    (each sink's first path), then for those with rank 1. The neighbor of each copy is stored in ``state.hops``. Return
    (number of copies, number of paths without a copy).
    """
    copy_count, unserved_count = 0, path_count
    while unserved_count and copy_count < state.max_next_hops:
        rank = 1
        for path in range(path_count):
            if state.data_paths[path].copy_number == NONE:
                rank = min(rank, state.data_paths[path].rank)
        for path in range(path_count):
            path_record = state.data_paths[path]
            for index in range(path_record.first, path_record.last):
                state.hop_counts[state.candidates[index]].paths = 0
                state.hop_counts[state.candidates[index]].heads = 0
        for path in range(path_count):
            path_record = state.data_paths[path]
            if path_record.copy_number == NONE and path_record.rank == rank:
                state.hop_counts[state.candidates[path_record.first]].heads += 1
                for index in range(path_record.first, path_record.last):
                    state.hop_counts[state.candidates[index]].paths += 1
        best_hop, best_path_count, best_head_count = NONE, np.int64(0), np.int64(0)
        for path in range(path_count):
            path_record = state.data_paths[path]
            if path_record.copy_number == NONE and path_record.rank == rank:
                for index in range(path_record.first, path_record.last):
                    hop = np.int64(state.candidates[index])
                    hop_count = state.hop_counts[hop]
                    if is_better_hop(
                        np.int64(hop_count.paths),
                        np.int64(hop_count.heads),
                        hop,
                        best_path_count,
                        best_head_count,
                        best_hop,
                    ):
                        best_hop, best_path_count, best_head_count = (
                            hop,
                            np.int64(hop_count.paths),
                            np.int64(hop_count.heads),
                        )
        for path in range(path_count):
            path_record = state.data_paths[path]
            if path_record.copy_number == NONE and _is_candidate(state, path_record, best_hop):
                path_record.copy_number = copy_count
                unserved_count -= 1
        state.hops[copy_count] = best_hop
        copy_count += 1
    return copy_count, unserved_count


@compiled
def _is_candidate(state, path, neighbor):
    is_candidate = False
    for index in range(path.first, path.last):
        is_candidate = is_candidate or (state.candidates[index] == neighbor)
    return is_candidate


@compiled
def _send_copies(core, state, i, message, ttl, path_count, copy_count, listed_count, now):
    """Send a copy of a data message to each of the first ``copy_count`` neighbors in ``state.hops``.

    Each copy lists the sinks to which its receiver need not send the data: first the sinks of the node's other copies,
    then the first ``listed_count`` sinks in ``state.served_else``. ``path_count``: number of paths in
    ``state.data_paths``.
    """
    if copy_count == 1 and listed_count == 0:
        twin.send(core, now, i, state.hops[0], message, ttl - 1)
        return
    served_count = 0
    for path in range(path_count):
        if state.data_paths[path].copy_number != NONE:
            served_count = _insert(state.served_now, served_count, state.data_paths[path].sink)
    max_listed = max(0, (state.max_attributes_B - 1 - state.lists[core.messages[message].content].size_B) // 2)
    for copy_index in range(copy_count):
        hop = state.hops[copy_index]
        copy = copy_data(core, state, message)
        sink_count = 0
        for index in range(served_count):
            sink = state.served_now[index]
            if sink != hop and sink_count < max_listed and not _is_served_by(state, path_count, copy_index, sink):
                state.listed_sinks[copy, sink_count] = sink
                sink_count += 1
        for index in range(listed_count):
            sink = state.served_else[index]
            if sink != hop and sink_count < max_listed and not _contains(state.served_now, served_count, sink):
                state.listed_sinks[copy, sink_count] = sink
                sink_count += 1
        if sink_count:
            copy_record = core.messages[copy]
            state.message_fields[copy].listed_sinks = sink_count
            copy_record.size_B += 1 + 2 * sink_count
            copy_record.airtime_us = state.airtimes_us[copy_record.size_B]
        twin.send(core, now, i, hop, copy, ttl - 1)
        twin.let_go(core, copy)


@compiled
def _is_served_by(state, path_count, copy_number, sink):
    is_served = False
    for path in range(path_count):
        is_served = is_served or (
            state.data_paths[path].copy_number == copy_number and state.data_paths[path].sink == sink
        )
    return is_served


@compiled
def _contains(values, count, value):
    is_among = False
    for position in range(count):
        is_among = is_among or (values[position] == value)
    return is_among


@compiled
def _record_served_sink(state, i, seen, sink):
    node = state.nodes[i]
    index = 0
    while index < node.served_sinks and state.served_sinks[i, index] != sink:
        index += 1
    if index == node.served_sinks:
        if index < state.served_sinks.shape[1]:
            node.served_sinks += 1
        else:
            index = 0
            while _has_gradients(state, i, state.served_sinks[i, index]):
                index += 1
            other_bits = ~(np.uint64(1) << np.uint64(index % WORD_BITS))
            for other_message in range(node.seen_data.count):
                state.served[i, other_message, index // WORD_BITS] &= other_bits
        state.served_sinks[i, index] = sink
    state.served[i, seen, index // WORD_BITS] |= np.uint64(1) << np.uint64(index % WORD_BITS)


@compiled
def _has_gradients(state, i, sink):
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        for gradient_index in range(state.entries[entry].gradients):
            if state.gradients[entry, gradient_index].sink == sink:
                return True
    return False


# Data that was not acknowledged


@compiled
def plan_to_send_again(core, state, i, failed, message, ttl, now):
    """Plan another transmission of data that neighbor ``failed`` did not acknowledge; ignore other kinds of message."""
    if core.messages[message].name != Message.DATA:
        return
    origin = state.message_fields[message].origin
    seen_index = seen_data_index(state, i, id_of(origin, core.messages[message].sequence))
    if seen_index == NONE or not may_retry(state.seen_data_more[i, seen_index].retries):
        return
    seen_message = state.seen_data_more[i, seen_index]
    seen_message.retries += 1
    if state.nodes[i].waiting >= MAX_WAITING:
        _resend_data(core, state, i, failed, seen_message.sender, message, ttl, now)
        return
    waiting_frame = state.waiting[i, state.nodes[i].waiting]
    state.nodes[i].waiting += 1
    waiting_frame.time_us = now + 1 + twin.stream_below(core, i, RETRY_WITHIN_US)
    waiting_frame.failed = failed
    waiting_frame.sender = seen_message.sender
    waiting_frame.message = message
    waiting_frame.ttl = ttl
    twin.hold_message(core, message)
    plan_wake_up(core, state, i)


@compiled
def send_waiting(core, state, i, now):
    """Send again those unacknowledged data frames of node ``i`` that are due."""
    index = 0
    while index < state.nodes[i].waiting:
        frame = state.waiting[i, index]
        if frame.time_us > now:
            index += 1
            continue
        message, failed_neighbor, sender, ttl = frame.message, frame.failed, frame.sender, frame.ttl
        state.nodes[i].waiting -= 1
        for position in range(index, state.nodes[i].waiting):
            state.waiting[i, position] = state.waiting[i, position + 1]
        _resend_data(core, state, i, failed_neighbor, sender, message, ttl, now)
        twin.let_go(core, message)


@compiled
def _resend_data(core, state, i, failed, previous_hop, message, ttl, now):
    clean(core, state, now, i)
    listed_count = _copy_listed_sinks(state, message)
    _mark_excluded(state, i, message, listed_count)
    path_count = 0
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        if matches(state, state.entries[entry].list, core.messages[message].content):
            path_count = _add_detours(state, entry, now, previous_hop, failed, path_count)
    copy_count, _ = _assign_paths(state, path_count)
    # `_send_copies` lowers the ttl by one hop, as it did with this frame before.
    _send_copies(core, state, i, message, ttl + 1, path_count, copy_count, listed_count, now)

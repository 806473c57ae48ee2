"""Copies of data in the fast twin: which sinks a node serves, by which neighbors, and the sinks that each copy lists.

The rule is described in `workbench.protocols.diffusion`, "Several sinks". A *path* stands for a copy that a sink gets.
Sinks are node indices, which are in the order of addresses.
"""

import numpy as np

from workbench.protocols.diffusion.fast.attributes import matches
from workbench.protocols.diffusion.fast.cache import clean
from workbench.protocols.diffusion.fast.interests import plan_wake_up
from workbench.protocols.diffusion.fast.memory import Message, Number, Reason
from workbench.protocols.diffusion.fast.messages import copy_data, gradients_to_try, id_of, seen_data_index
from workbench.protocols.diffusion.rules import MAX_WAITING, RETRY_WITHIN_US, has_circled, is_better_hop, may_retry
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

WORD_BITS = 64


@compiled
def forward_data(core, state, i, sender, message, ttl, seen, now):
    """Send data towards the sinks that no copy has served yet; return whether there are such sinks."""
    listed = _copy_listed_sinks(state, message)
    if _wants(state, i, core.messages[message].content):
        listed = _insert(state.served_else, listed, i)
    paths = _find_paths(core, state, i, sender, message, listed, now)
    memory = state.seen_data_more[i, seen]
    is_repeated = _has_served_sink(state, i, seen, paths)
    if is_repeated and has_circled(ttl, memory.ttl) and may_retry(memory.retries):
        # A reinforcement has moved the path meanwhile, so the copy is forwarded as if it were new.
        memory.retries += 1
        memory.ttl = ttl
        for word in range(state.served.shape[2]):
            state.served[i, seen, word] = 0
    else:
        listed = _add_served(state, i, seen, listed)
        if is_repeated:
            paths = _remove_listed(state, paths, listed)
    if paths == 0:
        return False
    peer = NONE if sender == NONE else core.addresses[sender]
    if ttl <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
        return True
    copies, unserved = _share_paths(state, paths)
    if unserved:
        twin.drop(core, now, i, peer, message, Reason.FULL)
    _send_copies(core, state, i, message, ttl, paths, copies, listed, now)
    twin.report_forwarded(core, now, i, peer, message, copies)
    for path in range(paths):
        if state.data_paths[path].copy_number != NONE:
            _note_served(state, i, seen, state.data_paths[path].sink)
    return True


@compiled
def _copy_listed_sinks(state, message):
    """Copy the sinks that a message lists to ``served_else``; return their number."""
    count = 0
    for index in range(state.message_fields[message].listed_sinks):
        count = _insert(state.served_else, count, state.listed_sinks[message, index])
    return count


@compiled
def _add_served(state, i, seen, count):
    """Add the sinks towards which node ``i`` has sent a message to ``served_else``, a sorted set of ``count`` sinks.

    Return the new count.
    """
    for index in range(state.nodes[i].served_sinks):
        if _is_served(state, i, seen, index):
            count = _insert(state.served_else, count, state.served_sinks[i, index])
    return count


@compiled
def _has_served_sink(state, i, seen, paths):
    """Return whether one of the first ``paths`` paths leads to a sink towards which node ``i`` has sent the message."""
    for index in range(state.nodes[i].served_sinks):
        if _is_served(state, i, seen, index):
            for path in range(paths):
                if state.data_paths[path].sink == state.served_sinks[i, index]:
                    return True
    return False


@compiled
def _is_served(state, i, seen, index):
    """Return whether a node has sent a message towards the sink whose bit is ``index``."""
    return (state.served[i, seen, index // WORD_BITS] >> np.uint64(index % WORD_BITS)) & np.uint64(1) != 0


@compiled
def _insert(values, count, value):
    """Insert a value into the first ``count`` values, a sorted set; return the new count."""
    index = count
    while index > 0 and values[index - 1] > value:
        index -= 1
    if index > 0 and values[index - 1] == value:
        return count
    for later in range(count, index, -1):
        values[later] = values[later - 1]
    values[index] = value
    return count + 1


@compiled
def _wants(state, i, number):
    first = state.own_first[i]
    is_wanted = False
    for index in range(first, first + state.nodes[i].own_interests):
        is_wanted = is_wanted or matches(state, state.own_interests[state.own_order[index]].list, number)
    return is_wanted


@compiled
def _mark_excluded(state, i, message, listed):
    """Mark the sinks that get no copy of a message."""
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    for index in range(listed):
        state.skip_stamp[state.served_else[index]] = stamp
    state.skip_stamp[i] = stamp
    state.skip_stamp[state.message_fields[message].origin] = stamp
    state.numbers[Number.SKIPPED] = stamp


@compiled
def _find_paths(core, state, i, sender, message, listed, now):
    """Find the paths of a message, except to the first ``listed`` sinks of ``served_else``; return their number."""
    _mark_excluded(state, i, message, listed)
    most = gradients_to_try(state, i, now)
    paths = candidates = 0
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        if matches(state, state.entries[entry].list, core.messages[message].content):
            paths, candidates = _add_paths(state, entry, now, sender, most, paths, candidates)
    return paths


@compiled
def _remove_listed(state, paths, listed):
    """Remove the paths to the first ``listed`` sinks of ``served_else``; return the number of remaining paths."""
    remaining = 0
    for path in range(paths):
        if not _contains(state.served_else, listed, state.data_paths[path].sink):
            state.data_paths[remaining] = state.data_paths[path]
            remaining += 1
    return remaining


@compiled
def _add_paths(state, entry, now, previous_hop, most, paths, candidates):
    """Append the paths of an entry to the first ``paths``; return the numbers of paths and of candidate neighbors."""
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    skipped = state.numbers[Number.SKIPPED]
    count = state.entries[entry].gradients
    for g in range(count):
        gradient = state.gradients[entry, g]
        sink = gradient.sink
        if gradient.expires_us <= now or gradient.neighbor == previous_hop or state.skip_stamp[sink] == skipped:
            continue
        is_head = state.sink_stamp[sink] != stamp
        if is_head:
            state.sink_stamp[sink] = stamp
            state.sink_room[sink] = 1 if gradient.reinforced_by != NONE else most
        elif state.sink_room[sink] > 1:
            state.sink_room[sink] -= 1
        else:
            continue
        path = state.data_paths[paths]
        path.sink = sink
        path.first = candidates
        path.copy_number = NONE
        path.rank = 0 if is_head else 1
        state.candidates[candidates] = gradient.neighbor
        candidates += 1
        if is_head and most == 1 and gradient.reinforced_by == NONE:
            for other in range(g + 1, count):
                spare = state.gradients[entry, other]
                if (
                    spare.sink == sink
                    and spare.expires_us > now
                    and spare.ttl >= gradient.ttl
                    and spare.neighbor != previous_hop
                ):
                    state.candidates[candidates] = spare.neighbor
                    candidates += 1
        path.last = candidates
        paths += 1
    return paths, candidates


@compiled
def _add_detours(state, entry, now, previous_hop, failed, paths):
    """Append a path for each sink of an entry, avoiding neighbor ``failed`` if possible; return the number of paths."""
    skipped, first = state.numbers[Number.SKIPPED], paths
    for g in range(state.entries[entry].gradients):
        gradient = state.gradients[entry, g]
        if (
            gradient.expires_us <= now
            or gradient.neighbor == previous_hop
            or state.skip_stamp[gradient.sink] == skipped
        ):
            continue
        path = first
        while path < paths and state.data_paths[path].sink != gradient.sink:
            path += 1
        if path == paths:
            detour = state.data_paths[paths]
            detour.sink = gradient.sink
            detour.first = paths
            detour.last = paths + 1
            detour.copy_number = NONE
            detour.rank = 0
            state.candidates[paths] = gradient.neighbor
            paths += 1
        elif state.candidates[path] == failed:
            state.candidates[path] = gradient.neighbor
    return paths


@compiled
def _share_paths(state, paths):
    """Assign each path to a neighbor, paths of rank 0 first, so that few neighbors get a copy.

    Return the number of copies, one for each neighbor, and the number of paths without a copy.
    """
    copies, unserved = 0, paths
    while unserved and copies < state.max_next_hops:
        rank = 1
        for path in range(paths):
            if state.data_paths[path].copy_number == NONE:
                rank = min(rank, state.data_paths[path].rank)
        for path in range(paths):
            path_record = state.data_paths[path]
            for index in range(path_record.first, path_record.last):
                state.hop_counts[state.candidates[index]].paths = 0
                state.hop_counts[state.candidates[index]].heads = 0
        for path in range(paths):
            path_record = state.data_paths[path]
            if path_record.copy_number == NONE and path_record.rank == rank:
                state.hop_counts[state.candidates[path_record.first]].heads += 1
                for index in range(path_record.first, path_record.last):
                    state.hop_counts[state.candidates[index]].paths += 1
        best, most, heads = NONE, np.int64(0), np.int64(0)
        for path in range(paths):
            path_record = state.data_paths[path]
            if path_record.copy_number == NONE and path_record.rank == rank:
                for index in range(path_record.first, path_record.last):
                    hop = np.int64(state.candidates[index])
                    count = state.hop_counts[hop]
                    if is_better_hop(np.int64(count.paths), np.int64(count.heads), hop, most, heads, best):
                        best, most, heads = hop, np.int64(count.paths), np.int64(count.heads)
        for path in range(paths):
            path_record = state.data_paths[path]
            if path_record.copy_number == NONE and _is_candidate(state, path_record, best):
                path_record.copy_number = copies
                unserved -= 1
        state.hops[copies] = best
        copies += 1
    return copies, unserved


@compiled
def _is_candidate(state, path, neighbor):
    is_candidate = False
    for index in range(path.first, path.last):
        is_candidate = is_candidate or (state.candidates[index] == neighbor)
    return is_candidate


@compiled
def _send_copies(core, state, i, message, ttl, paths, copies, listed, now):
    """Send a copy to the neighbor of each path.

    A copy lists the sinks that the other copies serve, and the first ``listed`` entries of ``served_else``.
    """
    if copies == 1 and listed == 0:
        twin.send(core, now, i, state.hops[0], message, ttl - 1)
        return
    served = 0
    for path in range(paths):
        if state.data_paths[path].copy_number != NONE:
            served = _insert(state.served_now, served, state.data_paths[path].sink)
    most = max(0, (state.max_attributes_B - 1 - state.lists[core.messages[message].content].size_B) // 2)
    for number in range(copies):
        hop = state.hops[number]
        copy = copy_data(core, state, message)
        count = 0
        for index in range(served):
            sink = state.served_now[index]
            if sink != hop and count < most and not _is_served_by(state, paths, number, sink):
                state.listed_sinks[copy, count] = sink
                count += 1
        for index in range(listed):
            sink = state.served_else[index]
            if sink != hop and count < most and not _contains(state.served_now, served, sink):
                state.listed_sinks[copy, count] = sink
                count += 1
        if count:
            copy_record = core.messages[copy]
            state.message_fields[copy].listed_sinks = count
            copy_record.size_B += 1 + 2 * count
            copy_record.airtime_us = state.airtimes_us[copy_record.size_B]
        twin.send(core, now, i, hop, copy, ttl - 1)
        twin.let_go(core, copy)


@compiled
def _is_served_by(state, paths, number, sink):
    is_served = False
    for path in range(paths):
        is_served = is_served or (state.data_paths[path].copy_number == number and state.data_paths[path].sink == sink)
    return is_served


@compiled
def _contains(values, count, value):
    is_among = False
    for k in range(count):
        is_among = is_among or (values[k] == value)
    return is_among


@compiled
def _note_served(state, i, seen, sink):
    """Note that data was sent towards a sink."""
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
            clear = ~(np.uint64(1) << np.uint64(index % WORD_BITS))
            for other in range(node.seen_data.count):
                state.served[i, other, index // WORD_BITS] &= clear
        state.served_sinks[i, index] = sink
    state.served[i, seen, index // WORD_BITS] |= np.uint64(1) << np.uint64(index % WORD_BITS)


@compiled
def _has_gradients(state, i, sink):
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        for g in range(state.entries[entry].gradients):
            if state.gradients[entry, g].sink == sink:
                return True
    return False


# Data that was not acknowledged


@compiled
def plan_to_send_again(core, state, i, failed, message, ttl, now):
    """Plan a retransmission of data that a neighbor did not acknowledge."""
    if core.messages[message].name != Message.DATA:
        return
    origin = state.message_fields[message].origin
    seen = seen_data_index(state, i, id_of(origin, core.messages[message].sequence))
    if seen == NONE or not may_retry(state.seen_data_more[i, seen].retries):
        return
    memory = state.seen_data_more[i, seen]
    memory.retries += 1
    if state.nodes[i].waiting >= MAX_WAITING:
        _send_again(core, state, i, failed, memory.sender, message, ttl, now)
        return
    waiting = state.waiting[i, state.nodes[i].waiting]
    state.nodes[i].waiting += 1
    waiting.time_us = now + 1 + twin.stream_below(core, i, RETRY_WITHIN_US)
    waiting.failed = failed
    waiting.sender = memory.sender
    waiting.message = message
    waiting.ttl = ttl
    twin.hold_message(core, message)
    plan_wake_up(core, state, i)


@compiled
def send_waiting(core, state, i, now):
    """Retransmit the waiting frames that are due."""
    index = 0
    while index < state.nodes[i].waiting:
        frame = state.waiting[i, index]
        if frame.time_us > now:
            index += 1
            continue
        message, failed, sender, ttl = frame.message, frame.failed, frame.sender, frame.ttl
        state.nodes[i].waiting -= 1
        for later in range(index, state.nodes[i].waiting):
            state.waiting[i, later] = state.waiting[i, later + 1]
        _send_again(core, state, i, failed, sender, message, ttl, now)
        twin.let_go(core, message)


@compiled
def _send_again(core, state, i, failed, previous_hop, message, ttl, now):
    clean(core, state, now, i)
    listed = _copy_listed_sinks(state, message)
    _mark_excluded(state, i, message, listed)
    paths = 0
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        if matches(state, state.entries[entry].list, core.messages[message].content):
            paths = _add_detours(state, entry, now, previous_hop, failed, paths)
    copies, _ = _share_paths(state, paths)
    # `_send_copies` lowers the ttl by one hop, as it did with this frame before.
    _send_copies(core, state, i, message, ttl + 1, paths, copies, listed, now)

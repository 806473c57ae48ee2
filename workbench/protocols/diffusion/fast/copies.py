"""Copies of data in the kernel: which sinks this node serves, by which neighbors, and what each copy lists.

The node's rule is in `workbench.protocols.diffusion`, "Several sinks". A *path* is a copy that a sink gets. Sinks are
places, which are in the order of addresses.
"""

import numpy as np

from workbench.protocols.diffusion.fast.attributes import matches
from workbench.protocols.diffusion.fast.cache import clean
from workbench.protocols.diffusion.fast.interests import plan_wake_up
from workbench.protocols.diffusion.fast.memory import Message, Number, Reason
from workbench.protocols.diffusion.fast.messages import copied, gradients_to_try, id_of, seen_data_index
from workbench.protocols.diffusion.rules import MAX_WAITING, RETRY_WITHIN_US, has_circled, is_better_hop, may_retry
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

WORD_BITS = 64


@compiled
def send_on(core, state, i, sender, message, ttl, seen, now):
    """Send data towards the sinks that neither other copies nor this node has served; False if there are none."""
    others = _listed(state, message)
    if _wants(state, i, core.messages[message].content):
        others = _insert(state.served_else, others, i)
    paths = _find_paths(core, state, i, sender, message, others, now)
    it = state.seen_data_more[i, seen]
    is_repeated = _goes_to_served(state, i, seen, paths)
    if is_repeated and has_circled(ttl, it.ttl) and may_retry(it.retries):
        # A reinforcement has moved the path meanwhile, so the copy goes on as if it were new.
        it.retries += 1
        it.ttl = ttl
        for word in range(state.served.shape[2]):
            state.served[i, seen, word] = 0
    else:
        others = _add_served(state, i, seen, others)
        if is_repeated:
            paths = _without(state, paths, others)
    if paths == 0:
        return False
    peer = NONE if sender == NONE else core.addresses[sender]
    if ttl <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
        return True
    ways, left = _share(state, paths)
    if left:
        twin.drop(core, now, i, peer, message, Reason.FULL)
    _send_copies(core, state, i, message, ttl, paths, ways, others, now)
    twin.report_forwarded(core, now, i, peer, message, ways)
    for path in range(paths):
        if state.data_paths[path].way != NONE:
            _note_served(state, i, seen, state.data_paths[path].sink)
    return True


@compiled
def _listed(state, message):
    """Put the sinks that a message lists in ``served_else``; return how many."""
    count = 0
    for place in range(state.interest_fields[message].others):
        count = _insert(state.served_else, count, state.others[message, place])
    return count


@compiled
def _add_served(state, i, seen, count):
    """Add the sinks that node ``i`` has sent a message towards to the first ``count`` of ``served_else``."""
    for place in range(state.nodes[i].served_sinks):
        if _is_served(state, i, seen, place):
            count = _insert(state.served_else, count, state.served_sinks[i, place])
    return count


@compiled
def _goes_to_served(state, i, seen, paths):
    """Return whether one of the first ``paths`` is for a sink that node ``i`` has sent a message towards."""
    for place in range(state.nodes[i].served_sinks):
        if _is_served(state, i, seen, place):
            for path in range(paths):
                if state.data_paths[path].sink == state.served_sinks[i, place]:
                    return True
    return False


@compiled
def _is_served(state, i, seen, place):
    """Return whether a node has sent a message towards the sink with this bit."""
    return (state.served[i, seen, place // WORD_BITS] >> np.uint64(place % WORD_BITS)) & np.uint64(1) != 0


@compiled
def _insert(values, count, value):
    """Insert a value in the first ``count``, which are sorted, unless it is there; return how many there are now."""
    place = count
    while place > 0 and values[place - 1] > value:
        place -= 1
    if place > 0 and values[place - 1] == value:
        return count
    for later in range(count, place, -1):
        values[later] = values[later - 1]
    values[place] = value
    return count + 1


@compiled
def _wants(state, i, number):
    first = state.own_first[i]
    found = False
    for place in range(first, first + state.nodes[i].own_interests):
        found = found or matches(state, state.own_interests[state.own_order[place]].list, number)
    return found


@compiled
def _skip(state, i, message, others):
    """Mark the sinks that get no copy."""
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    for place in range(others):
        state.skip_stamp[state.served_else[place]] = stamp
    state.skip_stamp[i] = stamp
    state.skip_stamp[state.interest_fields[message].origin] = stamp
    state.numbers[Number.SKIPPED] = stamp


@compiled
def _find_paths(core, state, i, sender, message, others, now):
    """Find the copies that a message needs, but for the first ``others`` of ``served_else``; return how many."""
    _skip(state, i, message, others)
    most = gradients_to_try(state, i, now)
    paths = near = 0
    for place in range(state.nodes[i].entries):
        entry = state.order[i, place]
        if matches(state, state.entries[entry].list, core.messages[message].content):
            paths, near = _add_paths(state, entry, now, sender, most, paths, near)
    return paths


@compiled
def _without(state, paths, others):
    """Take out of the first ``paths`` those for the first ``others`` of ``served_else``; return how many are left."""
    left = 0
    for path in range(paths):
        if not _is_among(state.served_else, others, state.data_paths[path].sink):
            state.data_paths[left] = state.data_paths[path]
            left += 1
    return left


@compiled
def _add_paths(state, entry, now, not_to, most, paths, near):
    """Add the copies that an entry wants to the first ``paths``; return how many paths and near neighbors there are."""
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    skipped = state.numbers[Number.SKIPPED]
    count = state.entries[entry].gradients
    for g in range(count):
        it = state.gradients[entry, g]
        sink = it.sink
        if it.expires_us <= now or it.neighbor == not_to or state.skip_stamp[sink] == skipped:
            continue
        is_head = state.sink_stamp[sink] != stamp
        if is_head:
            state.sink_stamp[sink] = stamp
            state.sink_room[sink] = 1 if it.wave != NONE else most
        elif state.sink_room[sink] > 1:
            state.sink_room[sink] -= 1
        else:
            continue
        path = state.data_paths[paths]
        path.sink = sink
        path.first = near
        path.way = NONE
        path.rank = 0 if is_head else 1
        state.near[near] = it.neighbor
        near += 1
        if is_head and most == 1 and it.wave == NONE:
            for other in range(g + 1, count):
                spare = state.gradients[entry, other]
                if spare.sink == sink and spare.expires_us > now and spare.ttl >= it.ttl and spare.neighbor != not_to:
                    state.near[near] = spare.neighbor
                    near += 1
        path.last = near
        paths += 1
    return paths, near


@compiled
def _add_detours(state, entry, now, not_to, failed, paths):
    """Add a path for each sink of an entry, to its first gradient but to ``failed``, else that one; return how many."""
    skipped, first = state.numbers[Number.SKIPPED], paths
    for g in range(state.entries[entry].gradients):
        it = state.gradients[entry, g]
        if it.expires_us <= now or it.neighbor == not_to or state.skip_stamp[it.sink] == skipped:
            continue
        path = first
        while path < paths and state.data_paths[path].sink != it.sink:
            path += 1
        if path == paths:
            new = state.data_paths[paths]
            new.sink = it.sink
            new.first = paths
            new.last = paths + 1
            new.way = NONE
            new.rank = 0
            state.near[paths] = it.neighbor
            paths += 1
        elif state.near[path] == failed:
            state.near[path] = it.neighbor
    return paths


@compiled
def _share(state, paths):
    """Give each path to a neighbor, as few of them as are near enough, those of rank 0 first.

    Return how many neighbors there are, and how many paths are left.
    """
    ways, left = 0, paths
    while left and ways < state.max_next_hops:
        rank = 1
        for path in range(paths):
            if state.data_paths[path].way == NONE:
                rank = min(rank, state.data_paths[path].rank)
        for path in range(paths):
            it = state.data_paths[path]
            for place in range(it.first, it.last):
                state.hop_counts[state.near[place]].paths = 0
                state.hop_counts[state.near[place]].heads = 0
        for path in range(paths):
            it = state.data_paths[path]
            if it.way == NONE and it.rank == rank:
                state.hop_counts[state.near[it.first]].heads += 1
                for place in range(it.first, it.last):
                    state.hop_counts[state.near[place]].paths += 1
        best, most, heads = NONE, np.int64(0), np.int64(0)
        for path in range(paths):
            it = state.data_paths[path]
            if it.way == NONE and it.rank == rank:
                for place in range(it.first, it.last):
                    hop = np.int64(state.near[place])
                    count = state.hop_counts[hop]
                    if is_better_hop(np.int64(count.paths), np.int64(count.heads), hop, most, heads, best):
                        best, most, heads = hop, np.int64(count.paths), np.int64(count.heads)
        for path in range(paths):
            it = state.data_paths[path]
            if it.way == NONE and _is_near(state, it, best):
                it.way = ways
                left -= 1
        state.hops[ways] = best
        ways += 1
    return ways, left


@compiled
def _is_near(state, path, neighbor):
    found = False
    for place in range(path.first, path.last):
        found = found or (state.near[place] == neighbor)
    return found


@compiled
def _send_copies(core, state, i, message, ttl, paths, ways, others, now):
    """Send each neighbor a copy, which lists the sinks of all other ways and the first ``others`` of served_else."""
    if ways == 1 and others == 0:
        twin.send(core, now, i, state.hops[0], message, ttl - 1)
        return
    served = 0
    for path in range(paths):
        if state.data_paths[path].way != NONE:
            served = _insert(state.served_now, served, state.data_paths[path].sink)
    room = max(0, (state.room_B - 1 - state.lists[core.messages[message].content].size_B) // 2)
    for way in range(ways):
        hop = state.hops[way]
        copy = copied(core, state, message)
        count = 0
        for place in range(served):
            sink = state.served_now[place]
            if sink != hop and count < room and not _is_on_way(state, paths, way, sink):
                state.others[copy, count] = sink
                count += 1
        for place in range(others):
            sink = state.served_else[place]
            if sink != hop and count < room and not _is_among(state.served_now, served, sink):
                state.others[copy, count] = sink
                count += 1
        if count:
            it = core.messages[copy]
            state.interest_fields[copy].others = count
            it.size_B += 1 + 2 * count
            it.airtime_us = state.airtimes_us[it.size_B]
        twin.send(core, now, i, hop, copy, ttl - 1)
        twin.let_go(core, copy)


@compiled
def _is_on_way(state, paths, way, sink):
    found = False
    for path in range(paths):
        found = found or (state.data_paths[path].way == way and state.data_paths[path].sink == sink)
    return found


@compiled
def _is_among(values, count, value):
    found = False
    for k in range(count):
        found = found or (values[k] == value)
    return found


@compiled
def _note_served(state, i, seen, sink):
    """Note that data was sent towards a sink."""
    node = state.nodes[i]
    place = 0
    while place < node.served_sinks and state.served_sinks[i, place] != sink:
        place += 1
    if place == node.served_sinks:
        if place < state.served_sinks.shape[1]:
            node.served_sinks += 1
        else:
            place = 0
            while _has_gradients(state, i, state.served_sinks[i, place]):
                place += 1
            clear = ~(np.uint64(1) << np.uint64(place % WORD_BITS))
            for other in range(node.seen_data.count):
                state.served[i, other, place // WORD_BITS] &= clear
        state.served_sinks[i, place] = sink
    state.served[i, seen, place // WORD_BITS] |= np.uint64(1) << np.uint64(place % WORD_BITS)


@compiled
def _has_gradients(state, i, sink):
    for place in range(state.nodes[i].entries):
        entry = state.order[i, place]
        for g in range(state.entries[entry].gradients):
            if state.gradients[entry, g].sink == sink:
                return True
    return False


# What the radio has given up


@compiled
def plan_to_send_again(core, state, i, failed, message, ttl, now):
    """Plan to send data again that a neighbor did not acknowledge."""
    if core.messages[message].name != Message.DATA:
        return
    origin = state.interest_fields[message].origin
    seen = seen_data_index(state, i, id_of(origin, core.messages[message].sequence))
    if seen == NONE or not may_retry(state.seen_data_more[i, seen].retries):
        return
    it = state.seen_data_more[i, seen]
    it.retries += 1
    if state.nodes[i].waiting >= MAX_WAITING:
        _send_again(core, state, i, failed, it.sender, message, ttl, now)
        return
    waiting = state.waiting[i, state.nodes[i].waiting]
    state.nodes[i].waiting += 1
    waiting.time_us = now + 1 + twin.stream_below(core, i, RETRY_WITHIN_US)
    waiting.failed = failed
    waiting.sender = it.sender
    waiting.message = message
    waiting.ttl = ttl
    twin.hold_message(core, message)
    plan_wake_up(core, state, i)


@compiled
def send_waiting(core, state, i, now):
    """Send the frames again whose time has come."""
    place = 0
    while place < state.nodes[i].waiting:
        it = state.waiting[i, place]
        if it.time_us > now:
            place += 1
            continue
        message, failed, sender, ttl = it.message, it.failed, it.sender, it.ttl
        state.nodes[i].waiting -= 1
        for later in range(place, state.nodes[i].waiting):
            state.waiting[i, later] = state.waiting[i, later + 1]
        _send_again(core, state, i, failed, sender, message, ttl, now)
        twin.let_go(core, message)


@compiled
def _send_again(core, state, i, failed, not_to, message, ttl, now):
    clean(core, state, now, i)
    others = _listed(state, message)
    _skip(state, i, message, others)
    paths = 0
    for place in range(state.nodes[i].entries):
        entry = state.order[i, place]
        if matches(state, state.entries[entry].list, core.messages[message].content):
            paths = _add_detours(state, entry, now, not_to, failed, paths)
    ways, _ = _share(state, paths)
    # One hop more: it is taken off again, as it was from this frame before.
    _send_copies(core, state, i, message, ttl + 1, paths, ways, others, now)

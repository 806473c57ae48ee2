"""The overlay, compiled: infos, joins, grants, keys, distances, and their repair, as in `tinymq.overlay`.

The positions of node i are the rows i * positions_per_node + offset of ``positions``: see `memory`.
"""

import numpy as np

from workbench.protocols.tinymq import rules
from workbench.protocols.tinymq.fast.keys import child_key, has_universe
from workbench.protocols.tinymq.fast.memory import BROKEN_WAY, NO_KEY, NO_WAY, ROOT_KEY, Event, Message
from workbench.protocols.tinymq.fast.messages import (
    address_of,
    is_short,
    key_B,
    make_grant,
    make_join,
    make_probe,
    set_size,
)
from workbench.protocols.tinymq.fast.node import child_added, key_changed, tree_found
from workbench.protocols.tinymq.fast.places import (
    add_child,
    child_of,
    free_slot,
    has_slot,
    is_attached,
    is_known_tree,
    keyed_place_in,
    link_from,
    place_in,
    remove_all_children,
    remove_child,
    seat_of,
)
from workbench.protocols.tinymq.fast.unicast import is_granting, is_waiting_for, send_to
from workbench.protocols.tinymq.rules import FIRST_REPEAT_US
from workbench.protocols.tinymq.wire import OPEN, U16
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def start(core, state, i, now):
    """Let a root take its position, and plan the first tick at a random time."""
    tree = state.root_tree[i]
    if tree != NONE:
        place = i * state.seats + seat_of(state, tree)
        it, distance = state.places[place], state.distances[i, tree]
        it.is_used = 1
        it.tree = tree
        it.parent = NONE
        it.epoch = 1
        it.epoch_us = now
        it.key = ROOT_KEY
        state.nodes[i].is_changed = 1
        distance.epoch = 1
        distance.hops = 0
        distance.next_hop = NONE
        _tell_key(core, state, i, place, now)
        _tell_change(core, state, i, now)
    if state.info_us:
        state.nodes[i].tick_us = now + state.info_us // 2 + twin.stream_below(core, i, state.info_us)


@compiled
def heard(state, link, now):
    """Note that a known neighbor was heard."""
    if state.neighbors[link].is_known:
        state.neighbors[link].heard_us = now


@compiled
def answered(core, state, i, sender, link, now):
    """Note that a neighbor hears this node, as it has sent a unicast frame to this node."""
    it = state.neighbors[link]
    if it.is_known and not it.hears_us:
        it.hears_us = 1
        _take_distances(core, state, i, sender, state.told_distances[link], now)
        _forget_distances(state, link)


@compiled
def _forget_distances(state, link):
    for tree in range(state.trees):
        state.told_distances[link, tree].is_told = 0


@compiled
def _keep_distances(state, link, message):
    for tree in range(state.trees):
        state.told_distances[link, tree] = state.info_distances[message, tree]


# Infos


@compiled
def take_info(core, state, i, sender, link, message, now):
    """Update neighbors, distances, children and the own key from a neighbor's info."""
    state.neighbors[link].is_known = 1
    state.neighbors[link].heard_us = now
    for seat in range(state.seats):
        _note_place(state, link, seat, message, now)
    is_named = _is_named(state, message, state.info_heard_counts[message], i)
    if is_named:
        it = state.neighbors[link]
        it.owed = rules.namings_owed(it.owed, it.named_us, now, state.lost_after_us)
    if state.info_us == 0 or is_named or _is_parent(state, i, message):
        state.neighbors[link].hears_us = 1
        _forget_distances(state, link)
    is_two_way = state.neighbors[link].hears_us
    if not is_two_way:
        _keep_distances(state, link, message)
    if is_two_way or not is_attached(state, i):
        _take_distances(core, state, i, sender, state.info_distances[message], now)
    for seat in range(state.seats):
        place = i * state.seats + seat
        it = state.places[place]
        if not it.is_used:
            continue
        told_seat = _told_seat(state, message, it.tree)
        _take_claim(core, state, i, place, link, message, told_seat, now)
        if it.parent == sender and it.key != NO_KEY:
            _follow_parent(core, state, i, place, message, told_seat, now)
    look_for_parent(core, state, i, now)


@compiled
def _note_place(state, link, seat, message, now):
    told, known = state.info_places[message, seat], state.told_places[link, seat]
    if told.is_told and not (known.was_told and known.tree == told.tree):
        known.since_us = now
    known.was_told = told.is_told
    known.is_there = told.is_told
    known.tree = told.tree
    known.epoch = told.epoch
    known.parent = told.parent
    known.key = told.key


@compiled
def _is_parent(state, i, message):
    """Return whether an info's sender names node ``i`` as its parent."""
    found = False
    for seat in range(state.seats):
        told = state.info_places[message, seat]
        found |= told.is_told and told.parent == i
    return found


@compiled
def _told_seat(state, message, tree):
    """Return the offset at which an info announces a position in a tree, or NONE."""
    seat = seat_of(state, tree)
    told = state.info_places[message, seat]
    return seat if told.is_told and told.tree == tree else NONE


@compiled
def _take_distances(core, state, i, sender, distances, now):
    for tree in range(state.trees):
        told = distances[tree]
        if not (told.is_told and told.hops < U16):
            continue
        if _is_better(state, i, tree, told.epoch, told.hops + 1, sender, now):
            _set_distance(core, state, i, tree, told.epoch, told.hops + 1, sender, now)
        elif rules.is_late(state.distances[i, tree], told.epoch, told.hops + 1):
            state.distances[i, tree].late_us = now
    for tree in range(state.trees):
        told = distances[tree]
        if not (told.is_told and told.hops < U16) and state.distances[i, tree].next_hop == sender:
            _break(core, state, i, tree, now)


@compiled
def _is_better(state, i, tree, epoch, hops, neighbor, now):
    known = state.distances[i, tree]
    if known.next_hop == NO_WAY:
        return True
    waits = rules.is_awaited(known.late_us, now, state.lost_after_us)
    return rules.is_better_way(known, known.next_hop == BROKEN_WAY, epoch, hops, neighbor, waits)


@compiled
def _set_distance(core, state, i, tree, epoch, hops, neighbor, now):
    known = state.distances[i, tree]
    is_found = known.next_hop == NO_WAY or known.next_hop == BROKEN_WAY
    is_change = is_found or known.hops != hops
    if known.next_hop == NO_WAY or hops > known.hops:
        known.risen_epoch = epoch
    if known.next_hop == NO_WAY or hops != known.hops:
        known.late_us = NONE
    known.epoch = epoch
    known.hops = hops
    known.next_hop = neighbor
    if is_found:
        tree_found(core, state, i, now)
    if is_change:
        _tell_change(core, state, i, now)


@compiled
def _break(core, state, i, tree, now):
    state.distances[i, tree].next_hop = BROKEN_WAY
    _tell_change(core, state, i, now)


@compiled
def _take_claim(core, state, i, place, link, message, told_seat, now):
    """Compare the parent and key in a neighbor's info with this node's list of children."""
    it, seat = state.places[place], place - i * state.seats
    slot = state.children[link, seat].slot
    claims = False
    if told_seat != NONE:
        told = state.info_places[message, told_seat]
        claims = told.parent == i and told.key != ROOT_KEY
    if not claims:
        if slot != NONE and not is_granting(core, state, i, state.senders[link], it.tree):
            remove_child(state, place, i, link)
    elif it.key != NO_KEY:
        claimed = state.keys[state.info_places[message, told_seat].key].slot
        if slot != claimed:
            _adopt(core, state, i, place, link, claimed, now)


@compiled
def _follow_parent(core, state, i, place, message, told_seat, now):
    it = state.places[place]
    if told_seat == NONE:
        _lose_place(core, state, i, place, now)
        return
    told = state.info_places[message, told_seat]
    if told.epoch > it.epoch:
        it.epoch = told.epoch
        it.epoch_us = now
        info_soon(core, state, i, now)
    slot = state.keys[it.key].slot
    if slot > rules.longest_slot(state.keys[told.key].length):
        _lose_place(core, state, i, place, now)
    else:
        _set_key(core, state, i, place, child_key(state, told.key, slot), now)


@compiled
def _tell_change(core, state, i, now):
    state.nodes[i].repeat_after_us = FIRST_REPEAT_US
    info_soon(core, state, i, now)


@compiled
def info_soon(core, state, i, now):
    """Plan an info after a short random time."""
    node = state.nodes[i]
    if node.info_due_us == NONE:
        node.info_due_us = now + state.gather_us // 2 + twin.stream_below(core, i, state.gather_us // 2 + 1)


@compiled
def _send_info(core, state, i, now):
    node = state.nodes[i]
    node.info_due_us = NONE
    node.repeat_us = NONE
    if not is_attached(state, i):
        return
    message = twin.take_message(core, Message.INFO, NONE, 0, NONE, 0, 0)
    size_B = state.base_B[Message.INFO] + _write_info(state, i, message) + _name_neighbors(state, i, message, now)
    _plan_repetition(core, state, i, now)
    node.info_sent_us = now
    set_size(core, state, message, size_B)
    twin.send(core, now, i, twin.BROADCAST, message, 0)
    twin.let_go(core, message)


@compiled
def _plan_repetition(core, state, i, now):
    node = state.nodes[i]
    if rules.is_repeated(node.repeat_after_us, state.info_us):
        half_us = node.repeat_after_us // 2
        node.repeat_us = now + half_us + twin.stream_below(core, i, half_us)
        node.repeat_after_us *= 2
    else:
        node.repeat_after_us = 0


@compiled
def _write_info(state, i, message):
    """Write the node's positions and distances into an info; returns how many bytes they take."""
    size_B = 0
    for seat in range(state.seats):
        it, told = state.places[i * state.seats + seat], state.info_places[message, seat]
        told.is_told = it.is_used and it.key != NO_KEY
        if told.is_told:
            told.tree = it.tree
            told.epoch = it.epoch
            told.parent = it.parent
            told.key = it.key
            size_B += state.place_B + key_B(state, it.key)
    for tree in range(state.trees):
        known, told_distance = state.distances[i, tree], state.info_distances[message, tree]
        told_distance.is_told = is_known_tree(state, i, tree)
        if told_distance.is_told:
            told_distance.epoch = known.epoch
            told_distance.hops = known.hops
            size_B += state.distance_B
    return size_B


@compiled
def _name_neighbors(state, i, message, now):
    """Write the neighbors that may not know that they are heard into an info; returns how many bytes they take.

    They are written in the order in which they are chosen; `Overlay.choose_named` sorts them.
    """
    most, count = rules.most_named(state.nodes[i].repeat_after_us, state.info_us), 0
    while count < most:
        longest = NONE
        for link in range(state.in_first[i], state.in_first[i + 1]):
            it = state.neighbors[link]
            is_unsure = it.is_known and (it.owed > 0 or not it.hears_us)
            is_free = is_unsure and not _is_named(state, message, count, state.senders[link])
            if is_free and (longest == NONE or it.named_us < state.neighbors[longest].named_us):
                longest = link
        if longest == NONE:
            break
        state.info_heard[message, count] = state.senders[longest]
        count += 1
    for link in range(state.in_first[i], state.in_first[i + 1]):
        if _is_named(state, message, count, state.senders[link]):
            it = state.neighbors[link]
            it.named_us = now
            it.owed = max(0, it.owed - 1)
    state.info_heard_counts[message] = count
    return state.named_count_B + count * state.named_B if count else 0


@compiled
def _is_named(state, message, count, neighbor):
    found = False
    for k in range(count):
        found |= state.info_heard[message, k] == neighbor
    return found


# Joining


@compiled
def look_for_parent(core, state, i, now):
    """Plan a join wherever a position is missing and a neighbor can be the parent."""
    if state.every_tree:
        for tree in range(state.trees):
            if not state.joinings[i * state.seats + tree].is_used and keyed_place_in(state, i, tree) == NONE:
                _join_best(core, state, i, tree, now)
    elif not state.joinings[i].is_used and not is_attached(state, i):
        _join_best(core, state, i, np.int64(0), now)


@compiled
def _join_best(core, state, i, seat, now):
    """Plan a join to the best possible parent, if there is one."""
    best = NONE
    for link in range(state.in_first[i], state.in_first[i + 1]):
        told = state.told_places[link, seat]
        it = state.neighbors[link]
        if not (it.is_known and told.is_there and now >= it.join_after_us and _may_join(state, i, told)):
            continue
        if best == NONE or rules.is_better_parent(
            told.since_us, state.senders[link], state.told_places[best, seat].since_us, state.senders[best]
        ):
            best = link
    if best != NONE:
        joining = state.joinings[i * state.seats + seat]
        joining.is_used = 1
        joining.tree = state.told_places[best, seat].tree
        joining.neighbor = state.senders[best]
        joining.send_us = now + max(1, twin.stream_below(core, i, state.gather_us + 1))


@compiled
def _may_join(state, i, told):
    newest = state.left[i, told.tree]
    place = place_in(state, i, told.tree)
    if place != NONE:
        newest = max(newest, state.places[place].epoch)
    return rules.may_be_parent(told.epoch, newest, told.parent == i, state.keys[told.key].length)


@compiled
def take_join(core, state, i, child, tree, now):
    """Take a neighbor in as a child; returns whether it gets a key."""
    place = keyed_place_in(state, i, tree)
    if place == NONE or state.places[place].parent == child:
        return False
    link = link_from(state, i, child)
    slot = state.children[link, place - i * state.seats].slot
    return _adopt(core, state, i, place, link, max(slot, 0), now)


@compiled
def _adopt(core, state, i, place, link, slot, now):
    """Grant a child the key of ``slot``, or of the first free slot if that is taken.

    Returns False if the key would be too long.
    """
    if is_short(core, state, i):
        return False
    it = state.places[place]
    longest = rules.longest_slot(state.keys[it.key].length)
    if slot > longest or has_slot(state, place, i, link, slot):
        slot = free_slot(state, place, i, link)
    if slot > longest:
        return False
    add_child(state, place, i, link, slot)
    key = child_key(state, it.key, slot)
    child = state.senders[link]
    grant = make_grant(core, state, it.tree, it.epoch, key)
    send_to(core, state, i, child, grant, OPEN, now)
    twin.let_go(core, grant)
    child_added(core, state, i, place, child, key, now)
    return True


@compiled
def take_grant(core, state, i, parent, message, now):
    """Take a key from a neighbor; returns False if the node had not asked for it."""
    grant = state.fields[message]
    tree, epoch, key = grant.tree, grant.epoch, grant.key
    seat = seat_of(state, tree)
    own_place = i * state.seats + seat
    place = place_in(state, i, tree)
    it, joining = state.places[own_place], state.joinings[own_place]
    is_joining = joining.is_used and joining.tree == tree
    is_correction = place != NONE and it.key != NO_KEY and it.parent == parent
    if not (is_correction or (is_joining and joining.neighbor == parent)):
        # The sender of the grant then learns whose child this node is.
        _tell_change(core, state, i, now)
        return False
    if is_joining:
        joining.is_used = 0
    state.neighbors[link_from(state, i, parent)].unanswered = 0
    state.neighbors[link_from(state, i, parent)].join_after_us = now
    if is_correction:
        _set_key(core, state, i, own_place, key, now)
        return True
    if place == NONE:
        _move_to(state, i, own_place, tree)
    if not is_attached(state, i):
        _forget_one_way_distances(state, i)
    it.parent = parent
    it.epoch = epoch
    it.epoch_us = now
    link = child_of(state, own_place, i, parent)
    if link != NONE:
        remove_child(state, own_place, i, link)
    _set_key(core, state, i, own_place, key, now)
    return True


@compiled
def _forget_one_way_distances(state, i):
    """Remove distances over links that may work one way only.

    They are useful only before the node has a position: it has no messages to send until then.
    """
    for tree in range(state.trees):
        hop = state.distances[i, tree].next_hop
        if hop >= 0:
            link = state.neighbors[link_from(state, i, hop)]
            if link.is_known and not link.hears_us:
                state.distances[i, tree].next_hop = NO_WAY


@compiled
def _move_to(state, i, place, tree):
    """Move a position to another tree, where it has no key yet."""
    it = state.places[place]
    if it.is_used:
        state.left[i, it.tree] = max(state.left[i, it.tree], it.epoch)
        remove_all_children(state, place, i)
    it.is_used = 1
    it.tree = tree
    it.key = NO_KEY


@compiled
def _set_key(core, state, i, place, key, now):
    if key == state.places[place].key:
        return
    state.places[place].key = key
    state.nodes[i].is_changed = 1
    _tell_key(core, state, i, place, now)
    _tell_change(core, state, i, now)
    key_changed(core, state, i, place, now)


@compiled
def _tell_key(core, state, i, place, now):
    if core.kept[Event.KEY_SET]:
        it = state.places[place]
        length, text = state.keys[it.key].length, state.first_text + it.key
        twin.add_row(
            core, now, i, Event.KEY_SET, address_of(core, it.parent), Message.GRANT, it.tree, it.epoch, 0, length, text
        )


@compiled
def log_zones(core, state, i, now):
    """Log the zones that have changed since the last call."""
    state.nodes[i].is_changed = 0
    if not core.traces or not core.kept[Event.ZONE_SET]:
        return
    for seat in range(state.seats):
        it = state.places[i * state.seats + seat]
        if not it.is_used:
            continue
        has_zone, low, size, taken = 0, 0, 0, 0
        if it.key != NO_KEY and has_universe(state, state.keys[it.key].length):
            low, length = state.keys[it.key].low, state.keys[it.key].length
            has_zone, size = 1, 1 << (state.key_bits - length)
            link = it.children.first
            while link != NONE:
                # The distance from this node's lowest string to a child's universe equals the size of that universe.
                bits = state.key_bits - length - 1 - state.children[link, seat].slot
                taken |= 1 << bits if bits >= 0 else 0
                link = state.children[link, seat].next
        if has_zone == it.has_zone and (not has_zone or (low == it.zone_low and taken == it.zone_taken)):
            continue
        if it.has_zone:
            _log_zone(core, now, i, it.tree, 0, NONE)
        it.has_zone = has_zone
        it.zone_low = low
        it.zone_taken = taken
        if has_zone:
            first, bit = low, 1
            while bit < size:
                if taken & bit:
                    if first < low + bit:
                        _log_zone(core, now, i, it.tree, first, low + bit - 1)
                    first = low + 2 * bit
                bit <<= 1
            if first < low + size:
                _log_zone(core, now, i, it.tree, first, low + size - 1)


@compiled
def _log_zone(core, now, i, tree, low, high):
    twin.add_row(core, now, i, Event.ZONE_SET, NONE, 0, tree, low, 0, high, twin.NO_REASON)


# Repair


@compiled
def lose(core, state, i, neighbor, now):
    """Remove a lost neighbor: as parent, as child and as next hop."""
    link = link_from(state, i, neighbor)
    state.neighbors[link].is_known = 0
    state.neighbors[link].hears_us = 0
    state.neighbors[link].named_us = NONE
    state.neighbors[link].owed = 0
    _forget_distances(state, link)
    is_unanswered = False
    for seat in range(state.seats):
        state.told_places[link, seat].is_there = 0
        state.told_places[link, seat].was_told = 0
        joining = state.joinings[i * state.seats + seat]
        if joining.is_used and joining.neighbor == neighbor:
            is_unanswered |= joining.send_us == NONE
            joining.is_used = 0
    if is_unanswered:
        it = state.neighbors[link]
        it.unanswered += 1
        it.join_after_us = now + rules.join_pause_us(it.unanswered, state.info_us)
    for tree in range(state.trees):
        if state.distances[i, tree].next_hop == neighbor:
            _break(core, state, i, tree, now)
    for seat in range(state.seats):
        place = i * state.seats + seat
        it = state.places[place]
        if not it.is_used:
            continue
        if state.children[link, seat].slot != NONE:
            remove_child(state, place, i, link)
        if it.parent == neighbor and it.key != NO_KEY:
            _lose_place(core, state, i, place, now)
    look_for_parent(core, state, i, now)


@compiled
def _lose_place(core, state, i, place, now):
    it = state.places[place]
    if core.kept[Event.KEY_SET]:
        twin.add_row(
            core, now, i, Event.KEY_SET, address_of(core, it.parent), 0, it.tree, it.epoch, 0, NONE, twin.NO_REASON
        )
    it.key = NO_KEY
    state.nodes[i].is_changed = 1
    look_for_parent(core, state, i, now)


# Time


@compiled
def sooner(time, other):
    """Return the earlier of two times, each of which may be NONE."""
    if other == NONE or (time != NONE and time <= other):
        return time
    return other


@compiled
def next_due_us(state, i):
    """Return the time of the next due task, or NONE."""
    node = state.nodes[i]
    due_us = sooner(sooner(node.info_due_us, node.repeat_us), node.tick_us)
    for place in range(i * state.seats, (i + 1) * state.seats):
        joining = state.joinings[place]
        if joining.is_used:
            due_us = sooner(due_us, joining.give_up_us if joining.send_us == NONE else joining.send_us)
    return due_us


@compiled
def wake(core, state, i, now):
    """Send due joins, check for silent neighbors once every ``info_s``, and send an info if one is due."""
    node = state.nodes[i]
    for seat in range(state.seats):
        joining = state.joinings[i * state.seats + seat]
        if not joining.is_used:
            continue
        if joining.send_us != NONE and joining.send_us <= now:
            joining.send_us = NONE
            joining.give_up_us = now + state.grant_wait_us
            join = make_join(core, state, joining.tree)
            send_to(core, state, i, joining.neighbor, join, OPEN, now)
            twin.let_go(core, join)
        elif joining.send_us == NONE and joining.give_up_us <= now:
            joining.is_used = 0
            link = link_from(state, i, joining.neighbor)
            if state.told_places[link, seat].tree == joining.tree:
                state.told_places[link, seat].is_there = 0
    if node.tick_us != NONE and node.tick_us <= now:
        _tick(core, state, i, now)
    due_us = sooner(node.info_due_us, node.repeat_us)
    if due_us != NONE and due_us <= now:
        _send_info(core, state, i, now)
    look_for_parent(core, state, i, now)


@compiled
def _tick(core, state, i, now):
    node = state.nodes[i]
    node.tick_us = now + state.info_us
    tree = state.root_tree[i]
    if tree != NONE:
        it, distance = state.places[i * state.seats + seat_of(state, tree)], state.distances[i, tree]
        it.epoch += 1
        it.epoch_us = now
        distance.epoch = it.epoch
        info_soon(core, state, i, now)
    for link in range(state.in_first[i], state.in_first[i + 1]):
        neighbor = state.neighbors[link]
        if neighbor.is_known and rules.is_silent(neighbor.heard_us, now, state.lost_after_us):
            lose(core, state, i, state.senders[link], now)
    for seat in range(state.seats):
        place = i * state.seats + seat
        it = state.places[place]
        if not it.is_used or it.key == NO_KEY:
            continue
        link = it.children.first
        while link != NONE:
            behind = state.children[link, seat].next
            if not state.neighbors[link].is_known and not is_waiting_for(state, i, state.senders[link]):
                remove_child(state, place, i, link)
            link = behind
        if it.parent != NONE and rules.is_cut_off(it.epoch_us, now, state.lost_after_us):
            _lose_place(core, state, i, place, now)
    if state.retries:
        _ask_silent(core, state, i, now)
    if rules.is_info_due(node.info_sent_us, now, state.info_us):
        info_soon(core, state, i, now)


@compiled
def _ask_silent(core, state, i, now):
    """Probe parents, children and next hops that have been silent for long."""
    for link in range(state.in_first[i], state.in_first[i + 1]):
        it = state.neighbors[link]
        is_doubted = it.is_known and it.hears_us and rules.is_in_doubt(it.heard_us, now, state.lost_after_us)
        if not (is_doubted and _is_needed(state, i, link)):
            continue
        neighbor = state.senders[link]
        if not is_waiting_for(state, i, neighbor):
            probe = make_probe(core)
            send_to(core, state, i, neighbor, probe, OPEN, now)
            twin.let_go(core, probe)


@compiled
def _is_needed(state, i, link):
    neighbor = state.senders[link]
    for seat in range(state.seats):
        place = state.places[i * state.seats + seat]
        if place.is_used and (place.parent == neighbor or state.children[link, seat].slot != NONE):
            return True
    is_next_hop = False
    for tree in range(state.trees):
        is_next_hop |= state.distances[i, tree].next_hop == neighbor
    return is_next_hop

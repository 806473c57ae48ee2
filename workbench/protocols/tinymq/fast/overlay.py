"""The overlay, compiled: infos, joins, grants, keys, distances, and their repair, as in `tinymq.overlay`.

A *position* is a node's place in an overlay tree: parent, key and children. An *info* is a message that a node
broadcasts. It contains the node's positions, its distances to the roots, and some of the neighbors that it hears.

The positions of node i are the rows i * positions_per_node + offset of ``positions`` (see the module `fast.memory`).
"""

import numpy as np

from workbench.protocols.tinymq import rules
from workbench.protocols.tinymq.fast.keys import child_key, has_universe
from workbench.protocols.tinymq.fast.memory import BROKEN_PATH, NO_KEY, NO_PATH, ROOT_KEY, Event, Message
from workbench.protocols.tinymq.fast.messages import (
    address_of,
    key_B,
    lacks_room,
    make_grant,
    make_join,
    make_probe,
    set_size,
)
from workbench.protocols.tinymq.fast.node import child_added, key_changed, tree_found
from workbench.protocols.tinymq.fast.positions import (
    add_child,
    child_of,
    free_slot,
    has_slot,
    is_attached,
    is_known_tree,
    keyed_position_in,
    link_from,
    offset_of,
    position_in,
    remove_all_children,
    remove_child,
)
from workbench.protocols.tinymq.fast.unicast import is_granting, is_waiting_for, send_to
from workbench.protocols.tinymq.rules import FIRST_REPEAT_US
from workbench.protocols.tinymq.wire import OPEN, U16
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def start(core, state, i, now):
    """Start the overlay of node ``i``: give a root its position, and begin the periodic work at a random time."""
    tree = state.root_tree[i]
    if tree != NONE:
        position = i * state.positions_per_node + offset_of(state, tree)
        position_record, distance = state.positions[position], state.distances[i, tree]
        position_record.is_used = 1
        position_record.tree = tree
        position_record.parent = NONE
        first_epoch = core.readings[i] + 1
        position_record.epoch = first_epoch
        position_record.epoch_us = now
        position_record.key = ROOT_KEY
        state.nodes[i].is_changed = 1
        distance.epoch = first_epoch
        distance.hops = 0
        distance.next_hop = NONE
        _log_key(core, state, i, position, now)
        _announce_change(core, state, i, now)
    if state.info_us:
        state.nodes[i].tick_us = now + state.info_us // 2 + twin.stream_below(core, i, state.info_us)


@compiled
def note_heard(state, link, now):
    """Record that the neighbor at ``link`` was heard at ``now``, if the node remembers an info from this neighbor."""
    if state.neighbors[link].is_known:
        state.neighbors[link].heard_us = now


@compiled
def note_answer(core, state, i, sender, link, now):
    """Record that the neighbor ``sender`` hears node ``i``, as its unicast frame or acknowledgement has proved."""
    neighbor = state.neighbors[link]
    if neighbor.is_known and not neighbor.hears_us:
        neighbor.hears_us = 1
        _update_paths(core, state, i, sender, state.announced_distances[link], now)
        _forget_distances(state, link)


@compiled
def _forget_distances(state, link):
    for tree in range(state.trees):
        state.announced_distances[link, tree].is_announced = 0


@compiled
def _store_distances(state, link, message):
    for tree in range(state.trees):
        state.announced_distances[link, tree] = state.info_distances[message, tree]


# Infos


@compiled
def take_info(core, state, i, sender, link, message, now):
    """Update the neighbors, distances, children and keys of node ``i`` from a neighbor's info (status broadcast).

    ``link``: the link on which node ``i`` hears the neighbor ``sender``.
    """
    state.neighbors[link].is_known = 1
    state.neighbors[link].heard_us = now
    for offset in range(state.positions_per_node):
        _store_announced_position(state, link, offset, message, now)
    is_named = _is_named(state, message, state.info_heard_counts[message], i)
    if is_named:
        neighbor_record = state.neighbors[link]
        neighbor_record.namings_left = rules.remaining_namings(
            neighbor_record.namings_left, neighbor_record.named_us, now, state.lost_after_us
        )
    if state.info_us == 0 or is_named or _is_parent(state, i, message):
        state.neighbors[link].hears_us = 1
        _forget_distances(state, link)
    is_two_way = state.neighbors[link].hears_us
    if not is_two_way:
        _store_distances(state, link, message)
    if is_two_way or not is_attached(state, i):
        _update_paths(core, state, i, sender, state.info_distances[message], now)
    for offset in range(state.positions_per_node):
        position = i * state.positions_per_node + offset
        position_record = state.positions[position]
        if not position_record.is_used:
            continue
        info_offset = _find_announced_position(state, message, position_record.tree)
        _correct_children(core, state, i, position, link, message, info_offset, now)
        if position_record.parent == sender and position_record.key != NO_KEY:
            _follow_parent(core, state, i, position, message, info_offset, now)
    look_for_parent(core, state, i, now)


@compiled
def _store_announced_position(state, link, offset, message, now):
    announced_position, known_position = state.info_positions[message, offset], state.announced_positions[link, offset]
    if announced_position.is_announced and not (
        known_position.was_announced and known_position.tree == announced_position.tree
    ):
        known_position.since_us = now
    known_position.was_announced = announced_position.is_announced
    known_position.is_valid = announced_position.is_announced
    known_position.tree = announced_position.tree
    known_position.epoch = announced_position.epoch
    known_position.parent = announced_position.parent
    known_position.key = announced_position.key


@compiled
def _is_parent(state, i, message):
    """Return whether an info (status broadcast) names node ``i`` as the parent of the info's sender in any tree."""
    is_parent = False
    for offset in range(state.positions_per_node):
        announced_position = state.info_positions[message, offset]
        is_parent |= announced_position.is_announced and announced_position.parent == i
    return is_parent


@compiled
def _find_announced_position(state, message, tree):
    """Return the index in ``info_positions[message]`` of the position that an info announces in a tree, or NONE.

    The result is NONE if the info (status broadcast) announces no position in this tree. ``message``: row of the info.
    """
    offset = offset_of(state, tree)
    announced_position = state.info_positions[message, offset]
    return offset if announced_position.is_announced and announced_position.tree == tree else NONE


@compiled
def _update_paths(core, state, i, sender, distances, now):
    for tree in range(state.trees):
        announced_distance = distances[tree]
        if not (announced_distance.is_announced and announced_distance.hops < U16):
            continue
        if _is_better(state, i, tree, announced_distance.epoch, announced_distance.hops + 1, sender, now):
            _set_distance(core, state, i, tree, announced_distance.epoch, announced_distance.hops + 1, sender, now)
        elif rules.is_late(state.distances[i, tree], announced_distance.epoch, announced_distance.hops + 1):
            state.distances[i, tree].late_us = now
    for tree in range(state.trees):
        announced_distance = distances[tree]
        if (
            not (announced_distance.is_announced and announced_distance.hops < U16)
            and state.distances[i, tree].next_hop == sender
        ):
            _break_path(core, state, i, tree, now)


@compiled
def _is_better(state, i, tree, epoch, hops, neighbor, now):
    known_distance = state.distances[i, tree]
    if known_distance.next_hop == NO_PATH:
        return True
    is_late_path_awaited = rules.is_awaited(known_distance.late_us, now, state.lost_after_us)
    return rules.is_better_path(
        known_distance, known_distance.next_hop == BROKEN_PATH, epoch, hops, neighbor, is_late_path_awaited
    )


@compiled
def _set_distance(core, state, i, tree, epoch, hops, neighbor, now):
    known_distance = state.distances[i, tree]
    had_no_path = known_distance.next_hop == NO_PATH or known_distance.next_hop == BROKEN_PATH
    is_change = had_no_path or known_distance.hops != hops
    if known_distance.next_hop == NO_PATH or hops > known_distance.hops:
        known_distance.risen_epoch = epoch
    if known_distance.next_hop == NO_PATH or hops != known_distance.hops:
        known_distance.late_us = NONE
    known_distance.epoch = epoch
    known_distance.hops = hops
    known_distance.next_hop = neighbor
    if had_no_path:
        tree_found(core, state, i, now)
    if is_change:
        _announce_change(core, state, i, now)


@compiled
def _break_path(core, state, i, tree, now):
    state.distances[i, tree].next_hop = BROKEN_PATH
    _announce_change(core, state, i, now)


@compiled
def _correct_children(core, state, i, position, link, message, info_offset, now):
    """Correct node ``i``'s children by the parent and the key that a neighbor's info (status broadcast) announces.

    A child whose info does not name node ``i`` as its parent is removed, unless a grant of its key is still pending. If
    the info names node ``i`` as the parent, but with a key that the node has not granted to this neighbor, the node
    grants the neighbor a key again.

    ``position``: row of the node's position in a tree; ``info_offset``: index of the neighbor's position in that tree
    among the positions in the info, NONE if the info has no such position.
    """
    position_record, offset = state.positions[position], position - i * state.positions_per_node
    slot = state.children[link, offset].slot
    is_child = False
    if info_offset != NONE:
        announced_position = state.info_positions[message, info_offset]
        is_child = announced_position.parent == i and announced_position.key != ROOT_KEY
    if not is_child:
        if slot != NONE and not is_granting(core, state, i, state.senders[link], position_record.tree):
            remove_child(state, position, i, link)
    elif position_record.key != NO_KEY:
        claimed_slot = state.keys[state.info_positions[message, info_offset].key].slot
        if slot != claimed_slot:
            _grant_key(core, state, i, position, link, claimed_slot, now)


@compiled
def _follow_parent(core, state, i, position, message, info_offset, now):
    position_record = state.positions[position]
    if info_offset == NONE:
        _lose_position(core, state, i, position, now)
        return
    announced_position = state.info_positions[message, info_offset]
    if announced_position.epoch > position_record.epoch:
        position_record.epoch = announced_position.epoch
        position_record.epoch_us = now
        plan_info(core, state, i, now)
    slot = state.keys[position_record.key].slot
    if slot > rules.longest_slot(state.keys[announced_position.key].length):
        _lose_position(core, state, i, position, now)
    else:
        _set_key(core, state, i, position, child_key(state, announced_position.key, slot), now)


@compiled
def _announce_change(core, state, i, now):
    state.nodes[i].repeat_after_us = FIRST_REPEAT_US
    plan_info(core, state, i, now)


@compiled
def plan_info(core, state, i, now):
    """Plan to send an info (status broadcast) after a short random delay, unless one is already planned."""
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
    """Write node ``i``'s positions and distances into an info (status broadcast); return their size in bytes."""
    size_B = 0
    for offset in range(state.positions_per_node):
        position_record, announced_position = (
            state.positions[i * state.positions_per_node + offset],
            state.info_positions[message, offset],
        )
        announced_position.is_announced = position_record.is_used and position_record.key != NO_KEY
        if announced_position.is_announced:
            announced_position.tree = position_record.tree
            announced_position.epoch = position_record.epoch
            announced_position.parent = position_record.parent
            announced_position.key = position_record.key
            size_B += state.position_B + key_B(state, position_record.key)
    for tree in range(state.trees):
        known_distance, announced_distance = state.distances[i, tree], state.info_distances[message, tree]
        announced_distance.is_announced = is_known_tree(state, i, tree)
        if announced_distance.is_announced:
            announced_distance.epoch = known_distance.epoch
            announced_distance.hops = known_distance.hops
            size_B += state.distance_B
    return size_B


@compiled
def _name_neighbors(state, i, message, now):
    """Choose the neighbors that an info (status broadcast) of node ``i`` names, and write them into the info.

    Returns the size in bytes that they take in the frame.

    An info names neighbors that are not known to hear the node, and neighbors that have named the node lately. The
    neighbors that were named longest ago come first. `Overlay.choose_named` chooses the same neighbors, but sorts them
    by address.
    """
    named_limit, named_count = rules.most_named(state.nodes[i].repeat_after_us, state.info_us), 0
    while named_count < named_limit:
        next_link = NONE
        for link in range(state.in_first[i], state.in_first[i + 1]):
            neighbor = state.neighbors[link]
            needs_naming = neighbor.is_known and (neighbor.namings_left > 0 or not neighbor.hears_us)
            is_candidate = needs_naming and not _is_named(state, message, named_count, state.senders[link])
            if is_candidate and (next_link == NONE or neighbor.named_us < state.neighbors[next_link].named_us):
                next_link = link
        if next_link == NONE:
            break
        state.info_heard[message, named_count] = state.senders[next_link]
        named_count += 1
    for link in range(state.in_first[i], state.in_first[i + 1]):
        if _is_named(state, message, named_count, state.senders[link]):
            neighbor = state.neighbors[link]
            neighbor.named_us = now
            neighbor.namings_left = max(0, neighbor.namings_left - 1)
    state.info_heard_counts[message] = named_count
    return state.named_count_B + named_count * state.named_B if named_count else 0


@compiled
def _is_named(state, message, count, neighbor):
    is_named = False
    for k in range(count):
        is_named |= state.info_heard[message, k] == neighbor
    return is_named


# Joining


@compiled
def look_for_parent(core, state, i, now):
    """Plan the joins that node ``i`` needs, if neighbors can be its parents.

    If the node must be in every tree, it needs a join in each tree in which it has no key. Otherwise it needs a single
    join, in any tree, if it has no key at all.
    """
    if state.every_tree:
        for tree in range(state.trees):
            if (
                not state.joinings[i * state.positions_per_node + tree].is_used
                and keyed_position_in(state, i, tree) == NONE
            ):
                _plan_join(core, state, i, tree, now)
    elif not state.joinings[i].is_used and not is_attached(state, i):
        _plan_join(core, state, i, np.int64(0), now)


@compiled
def _plan_join(core, state, i, offset, now):
    """Plan a join of node ``i`` to the best parent among its neighbors, if any of them may be the parent.

    ``offset``: index (0, 1, ...) of the position that needs a parent, among the node's rows of ``positions``.
    """
    best_link = NONE
    for link in range(state.in_first[i], state.in_first[i + 1]):
        announced_position = state.announced_positions[link, offset]
        neighbor_record = state.neighbors[link]
        if not (
            neighbor_record.is_known
            and announced_position.is_valid
            and now >= neighbor_record.join_after_us
            and _may_join(state, i, announced_position)
        ):
            continue
        if best_link == NONE or rules.is_better_parent(
            announced_position.since_us,
            state.senders[link],
            state.announced_positions[best_link, offset].since_us,
            state.senders[best_link],
        ):
            best_link = link
    if best_link != NONE:
        joining = state.joinings[i * state.positions_per_node + offset]
        joining.is_used = 1
        joining.tree = state.announced_positions[best_link, offset].tree
        joining.neighbor = state.senders[best_link]
        joining.send_us = now + max(1, twin.stream_below(core, i, state.gather_us + 1))


@compiled
def _may_join(state, i, announced_position):
    newest_epoch = state.left_epochs[i, announced_position.tree]
    position = position_in(state, i, announced_position.tree)
    if position != NONE:
        newest_epoch = max(newest_epoch, state.positions[position].epoch)
    return rules.may_be_parent(
        announced_position.epoch,
        newest_epoch,
        announced_position.parent == i,
        state.keys[announced_position.key].length,
    )


@compiled
def take_join(core, state, i, child, tree, now):
    """Accept the join of the neighbor ``child``: make it a child of node ``i``, and grant it a key in a tree.

    Returns False if node ``i`` has no key in the tree, if ``child`` is the node's parent, or if every free key is too
    long for a frame; otherwise True. If the run must end (`messages.lacks_room`), the result is False too.
    """
    position = keyed_position_in(state, i, tree)
    if position == NONE or state.positions[position].parent == child:
        return False
    link = link_from(state, i, child)
    slot = state.children[link, position - i * state.positions_per_node].slot
    return _grant_key(core, state, i, position, link, max(slot, 0), now)


@compiled
def _grant_key(core, state, i, position, link, slot, now):
    """Grant a child the key that belongs to ``slot``, a child's number at its parent; return whether it got a key.

    If the slot's key would be too long, or another child has the slot, the first free slot is used instead. The child
    gets no key if the key of that slot would be too long as well, or if the run must end (`messages.lacks_room`).
    ``position``: row of node ``i``'s position in the tree; ``link``: the link from the child.
    """
    if lacks_room(core, state, i):
        return False
    position_record = state.positions[position]
    highest_slot = rules.longest_slot(state.keys[position_record.key].length)
    if slot > highest_slot or has_slot(state, position, i, link, slot):
        slot = free_slot(state, position, i, link)
    if slot > highest_slot:
        return False
    add_child(state, position, i, link, slot)
    granted_key = child_key(state, position_record.key, slot)
    child = state.senders[link]
    grant = make_grant(core, state, position_record.tree, position_record.epoch, granted_key)
    send_to(core, state, i, child, grant, OPEN, now)
    twin.let_go(core, grant)
    child_added(core, state, i, position, child, granted_key, now)
    return True


@compiled
def take_grant(core, state, i, parent, message, now):
    """Take the key that the neighbor ``parent`` grants to node ``i``; return whether the grant was valid.

    A grant is valid if the node waits for the answer to a join that it sent to this neighbor, or if the neighbor is
    already its parent. The node ignores any other grant, but announces its position soon. ``message``: row of the
    grant.
    """
    grant_fields = state.fields[message]
    tree, epoch, granted_key = grant_fields.tree, grant_fields.epoch, grant_fields.key
    offset = offset_of(state, tree)
    own_position = i * state.positions_per_node + offset
    position = position_in(state, i, tree)
    position_record, joining = state.positions[own_position], state.joinings[own_position]
    is_joining = joining.is_used and joining.tree == tree
    is_correction = position != NONE and position_record.key != NO_KEY and position_record.parent == parent
    if not (is_correction or (is_joining and joining.neighbor == parent)):
        # The sender of the grant then learns whose child this node is.
        _announce_change(core, state, i, now)
        return False
    if is_joining:
        joining.is_used = 0
    state.neighbors[link_from(state, i, parent)].unanswered = 0
    state.neighbors[link_from(state, i, parent)].join_after_us = now
    if is_correction:
        _set_key(core, state, i, own_position, granted_key, now)
        return True
    if position == NONE:
        _reset_position(state, i, own_position, tree)
    if not is_attached(state, i):
        _forget_one_way_distances(state, i)
    position_record.parent = parent
    position_record.epoch = epoch
    position_record.epoch_us = now
    link = child_of(state, own_position, i, parent)
    if link != NONE:
        remove_child(state, own_position, i, link)
    _set_key(core, state, i, own_position, granted_key, now)
    return True


@compiled
def _forget_one_way_distances(state, i):
    """Remove node ``i``'s paths to roots over next hops that are not known to hear the node.

    A node that had no key in any tree calls this when it gets a key. Until then such paths do no harm, because a node
    without a key sends no messages over them.
    """
    for tree in range(state.trees):
        next_hop = state.distances[i, tree].next_hop
        if next_hop >= 0:
            neighbor_record = state.neighbors[link_from(state, i, next_hop)]
            if neighbor_record.is_known and not neighbor_record.hears_us:
                state.distances[i, tree].next_hop = NO_PATH


@compiled
def _reset_position(state, i, position, tree):
    """Initialize row ``position`` of the table of positions for node ``i`` in ``tree``: no key and no children."""
    position_record = state.positions[position]
    if position_record.is_used:
        state.left_epochs[i, position_record.tree] = max(
            state.left_epochs[i, position_record.tree], position_record.epoch
        )
        remove_all_children(state, position, i)
    position_record.is_used = 1
    position_record.tree = tree
    position_record.key = NO_KEY


@compiled
def _set_key(core, state, i, position, key, now):
    if key == state.positions[position].key:
        return
    state.positions[position].key = key
    state.nodes[i].is_changed = 1
    _log_key(core, state, i, position, now)
    _announce_change(core, state, i, now)
    key_changed(core, state, i, position, now)


@compiled
def _log_key(core, state, i, position, now):
    if core.is_recorded[Event.KEY_SET]:
        position_record = state.positions[position]
        key_length, text_code = state.keys[position_record.key].length, state.first_text + position_record.key
        twin.add_row(
            core,
            now,
            i,
            Event.KEY_SET,
            address_of(core, position_record.parent),
            Message.GRANT,
            position_record.tree,
            position_record.epoch,
            0,
            key_length,
            text_code,
        )


@compiled
def log_zones(core, state, i, now):
    """Log the zones of node ``i`` that have changed since they were last logged."""
    state.nodes[i].is_changed = 0
    if not core.traces or not core.is_recorded[Event.ZONE_SET]:
        return
    for offset in range(state.positions_per_node):
        position_record = state.positions[i * state.positions_per_node + offset]
        if not position_record.is_used:
            continue
        has_zone, zone_low, universe_size, taken_bits = 0, 0, 0, 0
        if position_record.key != NO_KEY and has_universe(state, state.keys[position_record.key].length):
            zone_low, key_length = state.keys[position_record.key].low, state.keys[position_record.key].length
            has_zone, universe_size = 1, 1 << (state.key_bits - key_length)
            link = position_record.children.first
            while link != NONE:
                # The distance from this node's lowest string to a child's universe equals the size of that universe.
                child_bits = state.key_bits - key_length - 1 - state.children[link, offset].slot
                taken_bits |= 1 << child_bits if child_bits >= 0 else 0
                link = state.children[link, offset].next
        if has_zone == position_record.has_zone and (
            not has_zone or (zone_low == position_record.zone_low and taken_bits == position_record.zone_taken)
        ):
            continue
        if position_record.has_zone:
            _log_zone(core, now, i, position_record.tree, 0, NONE)
        position_record.has_zone = has_zone
        position_record.zone_low = zone_low
        position_record.zone_taken = taken_bits
        if has_zone:
            interval_low, block_size = zone_low, 1
            while block_size < universe_size:
                if taken_bits & block_size:
                    if interval_low < zone_low + block_size:
                        _log_zone(core, now, i, position_record.tree, interval_low, zone_low + block_size - 1)
                    interval_low = zone_low + 2 * block_size
                block_size <<= 1
            if interval_low < zone_low + universe_size:
                _log_zone(core, now, i, position_record.tree, interval_low, zone_low + universe_size - 1)


@compiled
def _log_zone(core, now, i, tree, low, high):
    twin.add_row(core, now, i, Event.ZONE_SET, NONE, 0, tree, low, 0, high, twin.NO_REASON)


# Repair


@compiled
def lose(core, state, i, neighbor, now):
    """Remove a lost neighbor: node ``i`` no longer uses it as parent, child or next hop."""
    link = link_from(state, i, neighbor)
    state.neighbors[link].is_known = 0
    state.neighbors[link].hears_us = 0
    state.neighbors[link].named_us = NONE
    state.neighbors[link].namings_left = 0
    _forget_distances(state, link)
    is_unanswered = False
    for offset in range(state.positions_per_node):
        state.announced_positions[link, offset].is_valid = 0
        state.announced_positions[link, offset].was_announced = 0
        joining = state.joinings[i * state.positions_per_node + offset]
        if joining.is_used and joining.neighbor == neighbor:
            is_unanswered |= joining.send_us == NONE
            joining.is_used = 0
    if is_unanswered:
        neighbor_record = state.neighbors[link]
        neighbor_record.unanswered += 1
        neighbor_record.join_after_us = now + rules.join_pause_us(neighbor_record.unanswered, state.info_us)
    for tree in range(state.trees):
        if state.distances[i, tree].next_hop == neighbor:
            _break_path(core, state, i, tree, now)
    for offset in range(state.positions_per_node):
        position = i * state.positions_per_node + offset
        position_record = state.positions[position]
        if not position_record.is_used:
            continue
        if state.children[link, offset].slot != NONE:
            remove_child(state, position, i, link)
        if position_record.parent == neighbor and position_record.key != NO_KEY:
            _lose_position(core, state, i, position, now)
    look_for_parent(core, state, i, now)


@compiled
def _lose_position(core, state, i, position, now):
    position_record = state.positions[position]
    if core.is_recorded[Event.KEY_SET]:
        twin.add_row(
            core,
            now,
            i,
            Event.KEY_SET,
            address_of(core, position_record.parent),
            0,
            position_record.tree,
            position_record.epoch,
            0,
            NONE,
            twin.NO_REASON,
        )
    position_record.key = NO_KEY
    state.nodes[i].is_changed = 1
    look_for_parent(core, state, i, now)


# Time


@compiled
def earlier_time(time, other):
    """Return the earlier of two times, each of which may be NONE (no time)."""
    if other == NONE or (time != NONE and time <= other):
        return time
    return other


@compiled
def next_due_us(state, i):
    """Return the time (µs) of the next task that node ``i``'s overlay has planned; NONE if no task is planned."""
    node = state.nodes[i]
    due_us = earlier_time(earlier_time(node.info_due_us, node.repeat_us), node.tick_us)
    for position in range(i * state.positions_per_node, (i + 1) * state.positions_per_node):
        joining = state.joinings[position]
        if joining.is_used:
            due_us = earlier_time(due_us, joining.give_up_us if joining.send_us == NONE else joining.send_us)
    return due_us


@compiled
def wake(core, state, i, now):
    """Send node ``i``'s due joins and status broadcast, check for silent neighbors, and look for a parent."""
    node = state.nodes[i]
    for offset in range(state.positions_per_node):
        joining = state.joinings[i * state.positions_per_node + offset]
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
            if state.announced_positions[link, offset].tree == joining.tree:
                state.announced_positions[link, offset].is_valid = 0
    if node.tick_us != NONE and node.tick_us <= now:
        _tick(core, state, i, now)
    due_us = earlier_time(node.info_due_us, node.repeat_us)
    if due_us != NONE and due_us <= now:
        _send_info(core, state, i, now)
    look_for_parent(core, state, i, now)


@compiled
def _tick(core, state, i, now):
    node = state.nodes[i]
    node.tick_us = now + state.info_us
    tree = state.root_tree[i]
    if tree != NONE:
        position_record, distance = (
            state.positions[i * state.positions_per_node + offset_of(state, tree)],
            state.distances[i, tree],
        )
        position_record.epoch += 1
        position_record.epoch_us = now
        distance.epoch = position_record.epoch
        plan_info(core, state, i, now)
    for link in range(state.in_first[i], state.in_first[i + 1]):
        neighbor = state.neighbors[link]
        if neighbor.is_known and rules.is_silent(neighbor.heard_us, now, state.lost_after_us):
            lose(core, state, i, state.senders[link], now)
    for offset in range(state.positions_per_node):
        position = i * state.positions_per_node + offset
        position_record = state.positions[position]
        if not position_record.is_used or position_record.key == NO_KEY:
            continue
        link = position_record.children.first
        while link != NONE:
            next_row = state.children[link, offset].next
            if not state.neighbors[link].is_known and not is_waiting_for(state, i, state.senders[link]):
                remove_child(state, position, i, link)
            link = next_row
        if position_record.parent != NONE and rules.is_cut_off(position_record.epoch_us, now, state.lost_after_us):
            _lose_position(core, state, i, position, now)
    if state.retries:
        _probe_silent(core, state, i, now)
    if rules.is_info_due(node.info_sent_us, now, state.info_us):
        plan_info(core, state, i, now)


@compiled
def _probe_silent(core, state, i, now):
    """Send a probe to each parent, child and next hop of node ``i`` that has been silent for too long.

    A silent neighbor may be alive although its infos (status broadcasts) were lost. `rules.is_in_doubt` defines "too
    long". Only neighbors that are known to hear the node are probed.
    """
    for link in range(state.in_first[i], state.in_first[i + 1]):
        neighbor_record = state.neighbors[link]
        is_doubted = (
            neighbor_record.is_known
            and neighbor_record.hears_us
            and rules.is_in_doubt(neighbor_record.heard_us, now, state.lost_after_us)
        )
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
    for offset in range(state.positions_per_node):
        position = state.positions[i * state.positions_per_node + offset]
        if position.is_used and (position.parent == neighbor or state.children[link, offset].slot != NONE):
            return True
    is_next_hop = False
    for tree in range(state.trees):
        is_next_hop |= state.distances[i, tree].next_hop == neighbor
    return is_next_hop

"""Routing by keys: compiled versions of the functions of `tinymq.routing`, for the fast engine.

A message's *region* is the set of strings (of the key space) that the message has still to reach. A message is split
into parts with smaller regions, one for each next hop. A message's *box* is the set of strings to which its attributes
are mapped: a range of cells in each dimension. Regions are computed in rows of ``scratch``; the rows from FIRST_PART on
hold the regions of the parts.
"""

from workbench.protocols.tinymq.fast.keys import (
    child_key,
    child_low,
    clip,
    has_universe,
    intersect,
    is_prefix,
    last_in_universe,
    load,
    overlaps,
    subtract,
)
from workbench.protocols.tinymq.fast.memory import FIRST_PART, INSIDE, NO_KEY, OUTSIDE
from workbench.protocols.tinymq.fast.messages import is_within, tree_of
from workbench.protocols.tinymq.fast.positions import announced_key, keyed_position_in, link_from, position_in
from workbench.protocols.tinymq.wire import DOWN, UP
from workbench.sim.fast.twin import NONE, compiled

NO_NODE = -2  # result of `next_hop_to_key` if no node has the key


@compiled
def _add_part(state, box, count, neighbor, source, low, high):
    """Add a part of a message for ``neighbor`` (NONE: for this node), unless it has no string of the message's box.

    The part consists of those strings in [low, high] that are in the region in row ``source`` of ``scratch``.
    ``count``: the number of parts before this call. Returns the number of parts after it: ``count`` or ``count`` + 1.
    """
    part_row = FIRST_PART + count
    intersect(state, source, part_row, low, high)
    if state.scratch_counts[part_row]:
        clip(state, box, part_row)
    if state.scratch_counts[part_row] == 0:
        return count
    state.part_hops[count] = neighbor
    return count + 1


@compiled
def split(core, state, i, position, message):
    """Divide the region of a query or event among the next hops from node ``i``; return the number of parts.

    The function writes part k into row FIRST_PART + k of ``scratch``, and its next hop into ``part_hops[k]`` (NONE: the
    part is for node ``i`` itself). ``position``: the row in ``positions`` of the node's position in the message's tree.
    """
    position_record, box = state.positions[position], state.fields[message].box
    key_record = state.keys[position_record.key]
    whole_key_space = (1 << state.key_bits) - 1
    part_count = 0
    load(state, message, OUTSIDE)
    load(state, message, INSIDE)
    if has_universe(state, key_record.length):
        universe_high = last_in_universe(state, key_record.low, key_record.length)
        subtract(state, OUTSIDE, key_record.low, universe_high)
        intersect(state, INSIDE, INSIDE, key_record.low, universe_high)
        position_offset = position - i * state.positions_per_node
        link = position_record.children.first
        while link != NONE and state.scratch_counts[INSIDE]:
            child = state.children[link, position_offset]
            child_key_length = key_record.length + child.slot + 1
            if has_universe(state, child_key_length):
                child_lowest = child_low(state, key_record.low, child_key_length)
                child_highest = last_in_universe(state, child_lowest, child_key_length)
                if overlaps(state, INSIDE, child_lowest, child_highest):
                    part_count = _add_part(
                        state, box, part_count, state.senders[link], INSIDE, child_lowest, child_highest
                    )
                    subtract(state, INSIDE, child_lowest, child_highest)
            link = child.next
        if state.scratch_counts[INSIDE]:
            part_count = _add_part(state, box, part_count, NONE, INSIDE, 0, whole_key_space)
    if state.scratch_counts[OUTSIDE]:
        if state.shortcuts:
            part_count = _add_shortcuts(state, i, position, box, part_count)
        if position_record.parent != NONE and state.scratch_counts[OUTSIDE]:
            part_count = _add_part(state, box, part_count, position_record.parent, OUTSIDE, 0, whole_key_space)
    return part_count


@compiled
def _shortcut_key(state, link, offset, tree):
    """Return the row in ``keys`` of a neighbor's key in a tree, or NONE if the neighbor cannot be a shortcut.

    A neighbor cannot be a shortcut if it has no key in the tree, is a child, or is not known to hear this node.
    ``link``: the link on which the neighbor is heard; ``offset``: the result of `positions.offset_of` for the tree.
    """
    if not state.neighbors[link].hears_us or state.children[link, offset].slot != NONE:
        return NONE
    return announced_key(state, link, offset, tree)


@compiled
def _add_shortcuts(state, i, position, box, count):
    """Add a part of a message for each neighbor that is nearer than the parent to some of the message's strings.

    A neighbor is nearer to a string if its key is a prefix of the string and longer than the parent's key. Longer keys
    come first. Neighbors below node ``i`` are not considered: their keys are not prefixes of the strings in OUTSIDE.

    Before the call, row OUTSIDE of ``scratch`` must contain the strings of the message's region that do not begin with
    node ``i``'s key. The strings of each added part are removed from OUTSIDE.

    ``position``: row of the node's position in the tree; ``count``: the number of parts before this call. Returns the
    number of parts after it.
    """
    position_record, offset = state.positions[position], position - i * state.positions_per_node
    parent_length = state.keys[state.keys[position_record.key].parent].length
    shortcut_count = 0
    for link in range(state.in_first[i], state.in_first[i + 1]):
        shortcut_key = _shortcut_key(state, link, offset, position_record.tree)
        if shortcut_key == NONE:
            continue
        key_length = state.keys[shortcut_key].length
        lowest_string = state.keys[shortcut_key].low
        if key_length <= parent_length or not has_universe(state, key_length):
            continue
        if not overlaps(state, OUTSIDE, lowest_string, last_in_universe(state, lowest_string, key_length)):
            continue
        # Sort by descending key length; of equal keys, the lowest address comes first.
        shortcut_index = shortcut_count
        while shortcut_index > 0 and state.keys[_candidate_key(state, shortcut_index - 1, offset)].length < key_length:
            state.candidates[shortcut_index] = state.candidates[shortcut_index - 1]
            shortcut_index -= 1
        state.candidates[shortcut_index] = link
        shortcut_count += 1
    for shortcut_index in range(shortcut_count):
        link = state.candidates[shortcut_index]
        shortcut_key = _candidate_key(state, shortcut_index, offset)
        lowest_string = state.keys[shortcut_key].low
        highest_string = last_in_universe(state, lowest_string, state.keys[shortcut_key].length)
        new_count = _add_part(state, box, count, state.senders[link], OUTSIDE, lowest_string, highest_string)
        if new_count > count:
            subtract(state, OUTSIDE, lowest_string, highest_string)
            count = new_count
    return count


@compiled
def _candidate_key(state, index, offset):
    return state.announced_positions[state.candidates[index], offset].key


@compiled
def next_hop_to_key(state, i, position, key):
    """Return the next hop from node ``i`` to the node with the key in row ``key`` of ``keys``.

    Returns NONE if node ``i`` itself has that key, NO_NODE if no next hop exists. ``position``: the row of the node's
    position in the tree.
    """
    position_record, keys, offset = state.positions[position], state.keys, position - i * state.positions_per_node
    if key == position_record.key:
        return NONE
    if is_prefix(state, position_record.key, key):
        child_row = key
        while keys[child_row].parent != position_record.key:
            child_row = keys[child_row].parent
        link = position_record.children.first
        while link != NONE:
            if state.children[link, offset].slot == keys[child_row].slot:
                return state.senders[link]
            link = state.children[link, offset].next
        return NO_NODE
    if state.shortcuts:
        longest_length, best_hop = keys[keys[position_record.key].parent].length, NONE
        for link in range(state.in_first[i], state.in_first[i + 1]):
            neighbor_key = _shortcut_key(state, link, offset, position_record.tree)
            if (
                neighbor_key != NONE
                and keys[neighbor_key].length > longest_length
                and is_prefix(state, neighbor_key, key)
            ):
                longest_length, best_hop = keys[neighbor_key].length, state.senders[link]
        if best_hop != NONE:
            return best_hop
    return position_record.parent if position_record.parent != NONE else NO_NODE


@compiled
def direction_to(state, position, neighbor):
    """Return the direction of a message within a tree: UP if ``neighbor`` is the parent, else DOWN.

    ``position``: the row of the sender's position in that tree.
    """
    return UP if neighbor == state.positions[position].parent else DOWN


@compiled
def is_misdirected(core, state, i, message, direction, sender):
    """Return whether node ``i`` is the wrong receiver of a message from ``sender``.

    The node is the wrong receiver in three cases: it has no position in the message's tree; ``direction`` is UP (to the
    sender's parent), but the sender is the node's own parent; ``direction`` is DOWN (to a node whose key is a prefix of
    the message's target), but the node has no such key.
    """
    own_position = position_in(state, i, tree_of(core, state, message))
    if own_position == NONE:
        return True
    position_record = state.positions[own_position]
    if direction == UP:
        return position_record.parent == sender
    return position_record.key == NO_KEY or not is_within(core, state, message, position_record.key)


@compiled
def is_still_next_hop(core, state, i, message, direction, neighbor):
    """Return whether a neighbor is still a valid next hop for a message that node ``i`` has addressed to it.

    The node itself must still have a key in the message's tree. With ``direction`` UP, the neighbor must still be the
    node's parent. With DOWN, the neighbor's key must still be a prefix of the message's target.
    """
    tree = tree_of(core, state, message)
    own_position = keyed_position_in(state, i, tree)
    if own_position == NONE:
        return False
    position_record, offset = state.positions[own_position], own_position - i * state.positions_per_node
    if direction == UP:
        return position_record.parent == neighbor
    link = link_from(state, i, neighbor)
    slot = state.children[link, offset].slot
    neighbor_key = (
        announced_key(state, link, offset, tree) if slot == NONE else child_key(state, position_record.key, slot)
    )
    return neighbor_key != NONE and is_within(core, state, message, neighbor_key)

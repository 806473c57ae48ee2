"""Routing by keys, compiled: `tinymq.routing`. The parts of a message are rows of ``scratch`` from FIRST_PART on."""

from workbench.protocols.tinymq.fast.keys import (
    child_key,
    child_low,
    clip,
    has_universe,
    intersect,
    is_prefix,
    last_of,
    load,
    overlaps,
    subtract,
)
from workbench.protocols.tinymq.fast.memory import FIRST_PART, INSIDE, NO_KEY, OUTSIDE
from workbench.protocols.tinymq.fast.messages import is_within, tree_of
from workbench.protocols.tinymq.fast.places import keyed_place_in, link_from, place_in, told_key
from workbench.protocols.tinymq.wire import DOWN, UP
from workbench.sim.fast.twin import NONE, compiled

NOWHERE = -2  # no node has the key


@compiled
def _add_part(state, box, count, neighbor, source, low, high):
    """Add the part of ``source`` in [low, high] for a neighbor, if a string of the box lies in it.

    Returns the new number of parts.
    """
    row = FIRST_PART + count
    intersect(state, source, row, low, high)
    if state.scratch_counts[row]:
        clip(state, box, row)
    if state.scratch_counts[row] == 0:
        return count
    state.part_hops[count] = neighbor
    return count + 1


@compiled
def split(core, state, i, place, message):
    """Split a message as `routing.fragments` does; returns the number of parts.

    ``part_hops`` has the neighbor of each part, NONE for this node.
    """
    it, box = state.places[place], state.fields[message].box
    key = state.keys[it.key]
    everything = (1 << state.key_bits) - 1
    count = 0
    load(state, message, OUTSIDE)
    load(state, message, INSIDE)
    if has_universe(state, key.length):
        last = last_of(state, key.low, key.length)
        subtract(state, OUTSIDE, key.low, last)
        intersect(state, INSIDE, INSIDE, key.low, last)
        seat = place - i * state.seats
        link = it.children.first
        while link != NONE and state.scratch_counts[INSIDE]:
            child = state.children[link, seat]
            length = key.length + child.slot + 1
            if has_universe(state, length):
                low = child_low(state, key.low, length)
                high = last_of(state, low, length)
                if overlaps(state, INSIDE, low, high):
                    count = _add_part(state, box, count, state.senders[link], INSIDE, low, high)
                    subtract(state, INSIDE, low, high)
            link = child.next
        if state.scratch_counts[INSIDE]:
            count = _add_part(state, box, count, NONE, INSIDE, 0, everything)
    if state.scratch_counts[OUTSIDE]:
        if state.shortcuts:
            count = _add_shortcuts(state, i, place, box, count)
        if it.parent != NONE and state.scratch_counts[OUTSIDE]:
            count = _add_part(state, box, count, it.parent, OUTSIDE, 0, everything)
    return count


@compiled
def _neighbors_key(state, link, seat, tree):
    """Return the key of a neighbor that is in a tree, hears this node and is not a child, or NONE."""
    if not state.neighbors[link].hears_us or state.children[link, seat].slot != NONE:
        return NONE
    return told_key(state, link, seat, tree)


@compiled
def _add_shortcuts(state, i, place, box, count):
    """Add the parts of OUTSIDE for neighbors of the same tree that are nearer to them than the parent.

    Keys that begin with this node's key need no check: their universes have no strings outside of this node's.
    """
    it, seat = state.places[place], place - i * state.seats
    longer_than = state.keys[state.keys[it.key].parent].length
    found = 0
    for link in range(state.in_first[i], state.in_first[i + 1]):
        key = _neighbors_key(state, link, seat, it.tree)
        if key == NONE:
            continue
        length = state.keys[key].length
        low = state.keys[key].low
        if length <= longer_than or not has_universe(state, length):
            continue
        if not overlaps(state, OUTSIDE, low, last_of(state, low, length)):
            continue
        # Sort by descending key length; of equal keys, the lowest address comes first.
        at = found
        while at > 0 and state.keys[_key_at(state, at - 1, seat)].length < length:
            state.candidates[at] = state.candidates[at - 1]
            at -= 1
        state.candidates[at] = link
        found += 1
    for at in range(found):
        link = state.candidates[at]
        key = _key_at(state, at, seat)
        low = state.keys[key].low
        high = last_of(state, low, state.keys[key].length)
        more = _add_part(state, box, count, state.senders[link], OUTSIDE, low, high)
        if more > count:
            subtract(state, OUTSIDE, low, high)
            count = more
    return count


@compiled
def _key_at(state, at, seat):
    return state.told_places[state.candidates[at], seat].key


@compiled
def hop_to_key(state, i, place, key):
    """Return the next hop to the node with a key: NONE for this node, NO_NODE if no node has the key."""
    it, keys, seat = state.places[place], state.keys, place - i * state.seats
    if key == it.key:
        return NONE
    if is_prefix(state, it.key, key):
        child = key
        while keys[child].parent != it.key:
            child = keys[child].parent
        link = it.children.first
        while link != NONE:
            if state.children[link, seat].slot == keys[child].slot:
                return state.senders[link]
            link = state.children[link, seat].next
        return NOWHERE
    if state.shortcuts:
        longest, best = keys[keys[it.key].parent].length, NONE
        for link in range(state.in_first[i], state.in_first[i + 1]):
            theirs = _neighbors_key(state, link, seat, it.tree)
            if theirs != NONE and keys[theirs].length > longest and is_prefix(state, theirs, key):
                longest, best = keys[theirs].length, state.senders[link]
        if best != NONE:
            return best
    return it.parent if it.parent != NONE else NOWHERE


@compiled
def way_to(state, place, neighbor):
    """Return the role in which a message within the tree addresses a neighbor: UP or DOWN."""
    return UP if neighbor == state.places[place].parent else DOWN


@compiled
def is_astray(core, state, i, message, way, sender):
    """Return whether this node does not have the role that a sender assumes: `routing.is_misdirected`."""
    place = place_in(state, i, tree_of(core, state, message))
    if place == NONE:
        return True
    it = state.places[place]
    if way == UP:
        return it.parent == sender
    return it.key == NO_KEY or not is_within(core, state, message, it.key)


@compiled
def leads_to(core, state, i, message, way, neighbor):
    """Return whether a message sent UP or DOWN to a neighbor would still be sent to it in that direction."""
    tree = tree_of(core, state, message)
    place = keyed_place_in(state, i, tree)
    if place == NONE:
        return False
    it, seat = state.places[place], place - i * state.seats
    if way == UP:
        return it.parent == neighbor
    link = link_from(state, i, neighbor)
    slot = state.children[link, seat].slot
    key = told_key(state, link, seat, tree) if slot == NONE else child_key(state, it.key, slot)
    return key != NONE and is_within(core, state, message, key)

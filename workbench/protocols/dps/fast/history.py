"""What a node of DPS's twin has seen, and from whom: `workbench.protocols.dps.history`.

A series has one publication here, as it has in a scenario, and all of a run live equally long. So what a node has seen
is linked in the order in which it was noted last, which is that of its ends: what is over is always at the front.
"""

import numpy as np

from workbench.protocols.dps.fast.filters import ones
from workbench.protocols.dps.history import _FEWEST_TO_CLEAR as FEWEST_TO_CLEAR
from workbench.protocols.dps.history import MOST_STRANGERS
from workbench.protocols.dps.remotes import GONE
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.reference import inlined

_ONE, _NOTHING = np.uint64(1), np.uint64(0)
_ORDER_BITS = 8  # In a row of ``ways``: hops, and below them how many neighbors were there before.
_ORDER = (1 << _ORDER_BITS) - 1


@inlined
def _take_out(state, i, publication):
    node, pair = state.nodes[i], state.pairs[publication, i]
    if pair.previous == 0:
        node.first_seen = pair.next
    else:
        state.pairs[pair.previous - 1, i].next = pair.next
    if pair.next == 0:
        node.last_seen = pair.previous
    else:
        state.pairs[pair.next - 1, i].previous = pair.previous
    node.seen -= 1


@inlined
def _append(state, i, publication, now):
    node, pair = state.nodes[i], state.pairs[publication, i]
    pair.noted_us = now
    pair.next = 0
    pair.previous = node.last_seen
    if node.last_seen == 0:
        node.first_seen = publication + 1
    else:
        state.pairs[node.last_seen - 1, i].next = publication + 1
    node.last_seen = publication + 1
    node.seen += 1


@inlined
def _forget_first(state, i):
    publication = np.int64(state.nodes[i].first_seen) - 1
    _take_out(state, i, publication)
    state.pairs[publication, i].is_seen = 0
    for k in range(state.came_from.shape[2]):
        state.came_from[publication, i, k] = _NOTHING


@inlined
def _make_room(state, i, now):
    node = state.nodes[i]
    node.since_cleared += 1
    if node.seen >= node.clear_at or node.since_cleared > max(FEWEST_TO_CLEAR, state.max_history // 2):
        while node.seen and state.pairs[node.first_seen - 1, i].noted_us + state.history_us <= now:
            _forget_first(state, i)
        node.clear_at = max(FEWEST_TO_CLEAR, 2 * node.seen)
        node.since_cleared = 0
    while node.seen >= state.max_history:
        _forget_first(state, i)


@inlined
def note(state, i, publication, now):
    """A publication was here; whether it is known already."""
    pair = state.pairs[publication, i]
    if pair.is_seen:
        _take_out(state, i, publication)
        _append(state, i, publication, now)
        return True
    _make_room(state, i, now)
    pair.is_seen = 1
    _append(state, i, publication, now)
    return False


@inlined
def note_neighbor(state, i, publication, link, hops):
    """It came from a neighbor, after so many hops."""
    place = link - state.link_first[i]
    if state.links[link].state == GONE and not came_from(state, i, publication, link):
        noted = np.int64(0)
        for k in range(state.came_from.shape[2]):
            noted += ones(state.came_from[publication, i, k])
        if noted >= MOST_STRANGERS:
            return
    if state.acknowledges:
        order = np.int64(0)
        if came_from(state, i, publication, link):
            before = np.int64(state.ways[publication, link])
            hops = min(np.int64(hops), before >> _ORDER_BITS)
            order = before & _ORDER
        else:
            for k in range(state.came_from.shape[2]):
                order += ones(state.came_from[publication, i, k])
        state.ways[publication, link] = (np.int64(hops) << _ORDER_BITS) | order
    state.came_from[publication, i, place >> 6] |= _ONE << np.uint64(place & 63)


@inlined
def came_from(state, i, publication, link):
    """Whether a neighbor has sent this publication."""
    place = link - state.link_first[i]
    return (state.came_from[publication, i, place >> 6] >> np.uint64(place & 63)) & _ONE != _NOTHING


@inlined
def way_back(state, i, publication):
    """The neighbor that it came from with the fewest hops, the first of several; NONE if there is none."""
    best, fewest = np.int64(NONE), np.int64(0)
    for link in range(state.link_first[i], state.link_first[i + 1]):
        if came_from(state, i, publication, link):
            way = np.int64(state.ways[publication, link])
            if best == NONE or way < fewest:
                best, fewest = np.int64(link), way
    return best

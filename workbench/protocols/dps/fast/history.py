"""What a node of DPS's twin has seen, and from whom: `workbench.protocols.dps.history`.

A series has one publication here, as it has in a scenario, and all of a run live equally long. So what a node has seen
is linked in the order in which it was noted last, which is that of its ends: what is over is always at the front.
"""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import GONE
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

_ONE, _NOTHING = np.uint64(1), np.uint64(0)
_ORDER_BITS = 8  # In a row of ``ways``: hops, and below them how many neighbors were there before.
_ORDER = (1 << _ORDER_BITS) - 1


@compiled
def _append(state, i, publication, now):
    state.pairs[publication, i].noted_us = now
    twin.append(state.nodes[i].seen, state.pairs[:, i], publication)


@compiled
def _forget_first(state, i):
    seen = state.nodes[i].seen
    publication = np.int64(seen.first)
    twin.remove(seen, state.pairs[:, i], publication)
    state.pairs[publication, i].is_seen = 0
    for k in range(state.came_from.shape[2]):
        state.came_from[publication, i, k] = _NOTHING


@compiled
def _is_over(state, i, publication, now):
    return rules.forget_us(state.pairs[publication, i].noted_us, state.ttl_s, state.history_us) <= now


@compiled
def _make_room(state, i, now):
    node = state.nodes[i]
    node.since_cleared += 1
    if rules.clears_history(node.seen.count, node.clear_at, node.since_cleared, state.max_history):
        while node.seen.count and _is_over(state, i, np.int64(node.seen.first), now):
            _forget_first(state, i)
        node.clear_at = rules.next_clearing_size(node.seen.count)
        node.since_cleared = 0
    while node.seen.count >= state.max_history:
        _forget_first(state, i)


@compiled
def _noted(state, i, publication):
    """How many neighbors it came from."""
    count = np.int64(0)
    for k in range(state.came_from.shape[2]):
        count += twin.count_ones(state.came_from[publication, i, k])
    return count


@compiled
def note(state, i, publication, now):
    """A publication was here; whether it is known already."""
    pair = state.pairs[publication, i]
    if pair.is_seen:
        twin.remove(state.nodes[i].seen, state.pairs[:, i], publication)
        _append(state, i, publication, now)
        return True
    _make_room(state, i, now)
    pair.is_seen = 1
    _append(state, i, publication, now)
    return False


@compiled
def note_neighbor(state, i, publication, link, hops):
    """It came from a neighbor, after so many hops."""
    place = link - state.link_first[i]
    is_known = came_from(state, i, publication, link)
    if not is_known and not rules.records_sender(state.links[link].state != GONE, _noted(state, i, publication)):
        return
    if state.acknowledges:
        order = _noted(state, i, publication)
        if is_known:
            before = np.int64(state.ways[publication, link])
            hops = min(np.int64(hops), before >> _ORDER_BITS)
            order = before & _ORDER
        state.ways[publication, link] = (np.int64(hops) << _ORDER_BITS) | order
    state.came_from[publication, i, place >> 6] |= _ONE << np.uint64(place & 63)


@compiled
def came_from(state, i, publication, link):
    """Whether a neighbor has sent this publication."""
    place = link - state.link_first[i]
    return (state.came_from[publication, i, place >> 6] >> np.uint64(place & 63)) & _ONE != _NOTHING


@compiled
def way_back(state, i, publication):
    """The neighbor that it came from with the fewest hops, the first of several; NONE if there is none."""
    best, fewest = NONE, np.int64(0)
    for link in range(state.link_first[i], state.link_first[i + 1]):
        if came_from(state, i, publication, link):
            way = np.int64(state.ways[publication, link])
            if best == NONE or way < fewest:
                best, fewest = np.int64(link), way
    return best

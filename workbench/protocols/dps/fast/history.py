"""The history of a node in DPS's fast twin (its compiled version): publications, and the neighbors that sent them.

`workbench.protocols.dps.history` defines the behavior.

In a scenario each series has one publication, and all publications of a run have the same lifetime. So a node's list of
seen publications, in the order of their last reception, is also in the order of expiry.
"""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import GONE
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

_ONE_BIT, _NO_BITS = np.uint64(1), np.uint64(0)
# An entry of ``path_ranks`` is hops << 8 | number of earlier senders, so the smallest is the best path.
_ORDER_BITS = 8
_ORDER = (1 << _ORDER_BITS) - 1


@compiled
def _append_seen(state, i, publication, now):
    state.pairs[publication, i].noted_us = now
    twin.append(state.nodes[i].seen, state.pairs[:, i], publication)


@compiled
def _forget_oldest(state, i):
    seen_publications = state.nodes[i].seen
    publication = np.int64(seen_publications.first)
    twin.remove(seen_publications, state.pairs[:, i], publication)
    state.pairs[publication, i].is_seen = 0
    for k in range(state.was_received_from.shape[2]):
        state.was_received_from[publication, i, k] = _NO_BITS


@compiled
def _is_expired(state, i, publication, now):
    return rules.forget_us(state.pairs[publication, i].noted_us, state.ttl_s, state.history_us) <= now


@compiled
def _make_room(state, i, now):
    """Make room for one more publication in the history of node ``i``.

    If the history is full, remove the oldest publications. Expired publications are removed only now and then, when
    `rules.clears_history` returns True.
    """
    node = state.nodes[i]
    node.since_cleared += 1
    if rules.clears_history(node.seen.count, node.clear_at, node.since_cleared, state.max_history):
        while node.seen.count and _is_expired(state, i, np.int64(node.seen.first), now):
            _forget_oldest(state, i)
        node.clear_at = rules.next_clearing_size(node.seen.count)
        node.since_cleared = 0
    while node.seen.count >= state.max_history:
        _forget_oldest(state, i)


@compiled
def _count_sources(state, i, publication):
    source_count = np.int64(0)
    for k in range(state.was_received_from.shape[2]):
        source_count += twin.count_ones(state.was_received_from[publication, i, k])
    return source_count


@compiled
def note(state, i, publication, now):
    """Add a publication to node ``i``'s history, or move its entry to the end as the newest.

    Return whether the history contained the publication already.
    """
    history_entry = state.pairs[publication, i]
    if history_entry.is_seen:
        twin.remove(state.nodes[i].seen, state.pairs[:, i], publication)
        _append_seen(state, i, publication, now)
        return True
    _make_room(state, i, now)
    history_entry.is_seen = 1
    history_entry.answers = 0
    _append_seen(state, i, publication, now)
    return False


@compiled
def note_neighbor(state, i, publication, link, hops):
    """Record that node ``i`` received a publication over ``link``.

    ``hops``: hops of the publication up to the neighbor that sent it.
    """
    neighbor_position = link - state.link_first[i]
    was_recorded = was_received_from(state, i, publication, link)
    source_count = _count_sources(state, i, publication)
    if not was_recorded and not rules.records_sender(state.links[link].state != GONE, source_count):
        return
    if state.acknowledges:
        earlier_sender_count = _count_sources(state, i, publication)
        if was_recorded:
            former_rank = np.int64(state.path_ranks[publication, link])
            hops = min(np.int64(hops), former_rank >> _ORDER_BITS)
            earlier_sender_count = former_rank & _ORDER
        state.path_ranks[publication, link] = (np.int64(hops) << _ORDER_BITS) | earlier_sender_count
    state.was_received_from[publication, i, neighbor_position >> 6] |= _ONE_BIT << np.uint64(neighbor_position & 63)


@compiled
def was_received_from(state, i, publication, link):
    """Return whether the history of node ``i`` records that a publication came over ``link``."""
    neighbor_position = link - state.link_first[i]
    return (
        state.was_received_from[publication, i, neighbor_position >> 6] >> np.uint64(neighbor_position & 63)
    ) & _ONE_BIT != _NO_BITS


@compiled
def find_reverse_link(state, i, publication):
    """Return the link over which a publication came to node ``i`` with the fewest hops, or NONE.

    Of several links with the same number of hops, return that of the first arrival.
    """
    best_link, best_rank = NONE, np.int64(0)
    for link in range(state.link_first[i], state.link_first[i + 1]):
        if was_received_from(state, i, publication, link):
            path_rank = np.int64(state.path_ranks[publication, link])
            if best_link == NONE or path_rank < best_rank:
                best_link, best_rank = np.int64(link), path_rank
    return best_link

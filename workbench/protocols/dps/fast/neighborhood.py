"""Functions of DPS's fast twin (its compiled version) that rank a node's neighbors and choose the best for links.

`workbench.protocols.dps.neighborhood` defines the behavior.
"""

import math

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import GONE
from workbench.protocols.dps.fast.remotes import cancel_request, plan_request
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def report_quality(core, state, i, link, quality, now):
    """Store the delivery ratio of a radio link; return whether the DPS link with this neighbor must end.

    ``quality``: the ratio (0 to 1) in the worse direction. If it is below ``state.worst_link``, the link must end.
    """
    node, remote = state.nodes[i], state.links[link]
    if quality < state.worst_link:
        if not remote.is_usable and remote.state == GONE:
            return False
        _forget_neighbor(state, i, link)
        return True
    if not remote.is_usable or remote.quality != quality:
        remote.quality = quality
        node.is_ranked = 0
    if not remote.is_usable:
        remote.is_usable = 1
        node.usable += 1
        _update_density(state, i)
        _plan_first_request(core, state, i, link, now)
    return False


@compiled
def _forget_neighbor(state, i, link):
    """Mark a link's neighbor as neither usable nor chosen, and cancel a scheduled link request to it."""
    node, remote = state.nodes[i], state.links[link]
    if remote.is_usable:
        remote.is_usable = 0
        node.usable -= 1
        node.is_ranked = 0
        _update_density(state, i)
    remote.is_chosen = 0
    cancel_request(state, i, link)


@compiled
def _update_density(state, i):
    """Store whether the neighborhood of node ``i`` is dense: whether it has more than ``state.crowd`` usable neighbors.

    Also set the node's message intervals, which depend on this number.
    """
    node = state.nodes[i]
    node.is_crowded = node.usable > state.crowd
    dense_times = state.times[node.usable if node.is_crowded else 0]
    node.tick_us = dense_times.tick_us
    node.silence_us = dense_times.silence_us
    node.recheck_s = dense_times.recheck_s
    node.ids_after_us = dense_times.ids_after_us
    node.learnt_after_us = dense_times.learnt_after_us


@compiled
def _plan_first_request(core, state, i, link, now):
    """Schedule the link request to a new neighbor; do nothing if node ``i`` has already chosen its best neighbors."""
    node, remote = state.nodes[i], state.links[link]
    if node.has_chosen:
        return
    if node.is_crowded and node.choose_us == NONE:
        node.choose_us = now + 1
    delay_us = np.int64(rules.late_request_us(state.relink_s))
    if state.neighbors[link] > i:
        remote.is_chosen = 1
        delay_us = twin.stream_below(core, i, state.update_after_us)
    if remote.state == GONE:
        plan_request(state, i, link, now + 1 + delay_us)


# Ranks: see `rules.rank`


@compiled
def _rank_neighbors(core, state, i):
    """Sort the usable links of node ``i``, the best first, and store them in its part of ``state.ranked``.

    Do nothing if the stored order is still valid.
    """
    node = state.nodes[i]
    if node.is_ranked:
        return
    node.is_ranked = 1
    first_position = np.int64(state.link_first[i])
    end_position = first_position
    for link in range(first_position, state.link_first[i + 1]):
        if not state.links[link].is_usable:
            continue
        _store_rank(core, state, i, link)
        insert_position = end_position
        while insert_position > first_position and _is_better(state, link, np.int64(state.ranked[insert_position - 1])):
            state.ranked[insert_position] = state.ranked[insert_position - 1]
            insert_position -= 1
        state.ranked[insert_position] = link
        end_position += 1


@compiled
def _store_rank(core, state, i, link):
    """Store the fields that rank a link: quality in tenths, whether the neighbor is a hub, and a hash for ties."""
    remote, neighbor_count = state.links[link], np.uint64(state.nodes[i].usable)
    own_address, neighbor_address = np.uint64(core.addresses[i]), np.uint64(core.addresses[state.neighbors[link]])
    remote.tenths = min(int(10 * remote.quality), 9)
    remote.is_hub = _is_hub(neighbor_address, neighbor_count)
    remote.order_hash = twin.mix64(neighbor_address)
    if not _is_hub(own_address, neighbor_count):
        remote.order_hash = twin.mix64(
            min(own_address, neighbor_address) << np.uint64(32) | max(own_address, neighbor_address)
        )


@compiled
def _is_hub(address, neighbors):
    return np.float64(twin.mix64(address) % neighbors) < math.sqrt(np.float64(neighbors))


@compiled
def _is_better(state, link, other_link):
    remote, other_remote = state.links[link], state.links[other_link]
    if remote.tenths != other_remote.tenths:
        return remote.tenths > other_remote.tenths
    if remote.is_hub != other_remote.is_hub:
        return remote.is_hub > other_remote.is_hub
    if remote.order_hash != other_remote.order_hash:
        return remote.order_hash < other_remote.order_hash
    return link < other_link


@compiled
def link_ended(core, state, i, link, now):
    """Schedule the link request that follows the end of a link.

    Outside of a dense neighborhood, the request goes to the same neighbor if its radio link is still usable. In a dense
    neighborhood, it goes to the next neighbor in the ranking. It is scheduled only if node ``i`` had chosen the
    neighbor of the ended link.
    """
    delay_us = np.int64(0) if state.links[link].is_chosen else np.int64(rules.late_request_us(state.relink_s))
    if state.nodes[i].is_crowded:
        if not state.links[link].is_chosen:
            return
        state.links[link].is_chosen = 0
        link = next_neighbor(core, state, i)
        if link == NONE:
            return
        state.links[link].is_chosen = 1
    elif not state.links[link].is_usable:
        return
    delay_us += rules.relink_after_us(state.relink_s, twin.stream_uniform(core, i))
    plan_request(state, i, link, now + delay_us)


@compiled
def next_neighbor(core, state, i):
    """Return the next neighbor in the ranking that has neither a link nor a scheduled request, or NONE.

    The result is an index in ``state.links``. The search starts after the result of the previous call. After the last
    neighbor of the ranking it continues with the best.
    """
    _rank_neighbors(core, state, i)
    node, first_position = state.nodes[i], np.int64(state.link_first[i])
    usable_count = np.int64(node.usable)
    for _ in range(usable_count):
        link = np.int64(state.ranked[first_position + node.next_rank % usable_count])
        node.next_rank += 1
        if state.links[link].state == GONE and not state.link_requests[link].is_planned:
            return link
    return NONE


@compiled
def choose(core, state, i, now):
    """Choose the best-ranked neighbors of node ``i``, schedule link requests to them, and cancel all other requests.

    Also schedule the first scout: a trial link with another neighbor.
    """
    _rank_neighbors(core, state, i)
    node, first_position = state.nodes[i], np.int64(state.link_first[i])
    usable_count = np.int64(node.usable)
    node.choose_us = NONE
    node.has_chosen = 1
    node.next_rank = state.best_links
    for link in range(state.link_first[i], state.link_first[i + 1]):
        state.links[link].is_chosen = 0
        state.link_requests[link].is_planned = 0
    twin.clear(node.planned_requests)
    for rank in range(min(state.best_links, usable_count)):
        link = np.int64(state.ranked[first_position + rank])
        state.links[link].is_chosen = 1
        plan_request(state, i, link, now + _request_delay_us(core, state, i, rank, usable_count))
    if node.recheck_s > 0:
        node.scout_us = now + _request_delay_us(core, state, i, state.best_links, usable_count)


@compiled
def _request_delay_us(core, state, i, rank, count):
    return rules.request_delay_us(rank, count, state.update_after_us, twin.stream_uniform(core, i))

"""The choice of neighbors to link to in DPS's fast twin: `workbench.protocols.dps.neighborhood`.

Neighbors are ranked before the run.
"""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import GONE
from workbench.protocols.dps.fast.remotes import plan_request
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def welcome_all(core, state, i, now):
    """Schedule link requests to all neighbors with usable links."""
    node = state.nodes[i]
    if node.is_crowded:
        node.choose_us = now + 1
    for link in range(state.link_first[i], state.link_first[i + 1]):
        remote = state.links[link]
        if remote.is_usable:
            after_us = np.int64(rules.late_request_us(state.relink_s))
            if state.neighbors[link] > i:
                remote.is_chosen = 1
                after_us = twin.stream_below(core, i, state.update_after_us)
            plan_request(state, i, link, now + 1 + after_us)


@compiled
def link_ended(core, state, i, link, now):
    """Schedule a new request after a link has ended, in a dense neighborhood to the next neighbor."""
    after_us = np.int64(0) if state.links[link].is_chosen else np.int64(rules.late_request_us(state.relink_s))
    if state.nodes[i].is_crowded:
        if not state.links[link].is_chosen:
            return
        state.links[link].is_chosen = 0
        link = next_neighbor(state, i)
        if link == NONE:
            return
        state.links[link].is_chosen = 1
    elif not state.links[link].is_usable:
        return
    after_us += rules.relink_after_us(state.relink_s, twin.stream_uniform(core, i))
    plan_request(state, i, link, now + after_us)


@compiled
def next_neighbor(state, i):
    """Return the next ranked neighbor without a link or request, in cyclic order, or NONE."""
    node, first = state.nodes[i], np.int64(state.rank_first[i])
    count = np.int64(state.rank_first[i + 1]) - first
    for _ in range(count):
        link = np.int64(state.ranked[first + node.next_rank % count])
        node.next_rank += 1
        if state.links[link].state == GONE and not state.link_requests[link].is_planned:
            return link
    return NONE


@compiled
def choose(core, state, i, now):
    """Request links to the best-ranked neighbors only, and schedule the first scout, a link to another neighbor."""
    node, first = state.nodes[i], np.int64(state.rank_first[i])
    count = np.int64(state.rank_first[i + 1]) - first
    node.choose_us = NONE
    node.next_rank = state.best_links
    for link in range(state.link_first[i], state.link_first[i + 1]):
        state.links[link].is_chosen = 0
        state.link_requests[link].is_planned = 0
    twin.clear(node.planned_requests)
    for rank in range(min(state.best_links, count)):
        link = np.int64(state.ranked[first + rank])
        state.links[link].is_chosen = 1
        plan_request(state, i, link, now + _request_delay_us(core, state, i, rank, count))
    if node.recheck_s > 0:
        node.scout_us = now + _request_delay_us(core, state, i, state.best_links, count)


@compiled
def _request_delay_us(core, state, i, rank, count):
    return rules.request_delay_us(rank, count, state.update_after_us, twin.stream_uniform(core, i))

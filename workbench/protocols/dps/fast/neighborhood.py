"""Whom a node of DPS's twin asks for links: `workbench.protocols.dps.neighborhood`. Ranks are sorted before the run."""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import GONE
from workbench.protocols.dps.fast.remotes import ask_at
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def welcome_all(core, state, i, now):
    """Plan to ask the neighbors that links work with."""
    node = state.nodes[i]
    if node.is_crowded:
        node.choose_us = now + 1
    for link in range(state.link_first[i], state.link_first[i + 1]):
        it = state.links[link]
        if it.works:
            after_us = np.int64(rules.late_request_us(state.relink_s))
            if state.neighbors[link] > i:
                it.wanted = 1
                after_us = twin.stream_below(core, i, state.update_after_us)
            ask_at(state, i, link, now + 1 + after_us)


@compiled
def link_ended(core, state, i, link, now):
    """A link has ended: the same neighbor is asked again later, in a crowd the next one."""
    after_us = np.int64(0) if state.links[link].wanted else np.int64(rules.late_request_us(state.relink_s))
    if state.nodes[i].is_crowded:
        if not state.links[link].wanted:
            return
        state.links[link].wanted = 0
        link = next_neighbor(state, i)
        if link == NONE:
            return
        state.links[link].wanted = 1
    elif not state.links[link].works:
        return
    after_us += rules.relink_after_us(state.relink_s, twin.stream_uniform(core, i))
    ask_at(state, i, link, now + after_us)


@compiled
def next_neighbor(state, i):
    """The next neighbor without a link, going round; NONE if there is none."""
    node, first = state.nodes[i], np.int64(state.rank_first[i])
    count = np.int64(state.rank_first[i + 1]) - first
    for _ in range(count):
        link = np.int64(state.ranked[first + node.place % count])
        node.place += 1
        if state.links[link].state == GONE and not state.askings[link].is_asked:
            return link
    return NONE


@compiled
def choose(core, state, i, now):
    """Ask the best neighbors and no others; then comes the scout."""
    node, first = state.nodes[i], np.int64(state.rank_first[i])
    count = np.int64(state.rank_first[i + 1]) - first
    node.choose_us = NONE
    node.place = state.best_links
    for link in range(state.link_first[i], state.link_first[i + 1]):
        state.links[link].wanted = 0
        state.askings[link].is_asked = 0
    twin.clear(node.asked)
    for place in range(min(state.best_links, count)):
        link = np.int64(state.ranked[first + place])
        state.links[link].wanted = 1
        ask_at(state, i, link, now + _turn_us(core, state, i, place, count))
    if node.recheck_s > 0:
        node.scout_us = now + _turn_us(core, state, i, state.best_links, count)


@compiled
def _turn_us(core, state, i, place, count):
    return rules.request_delay_us(place, count, state.update_after_us, twin.stream_uniform(core, i))

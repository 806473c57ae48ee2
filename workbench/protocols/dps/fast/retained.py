"""The publications that a node of DPS's twin keeps as long as they live: `workbench.protocols.dps.retained`.

They are linked in the order in which they came. Their ends are not in that order, as what is left of a life travels in
whole seconds.
"""

import numpy as np

from workbench.protocols.dps import rules
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def is_kept(state, i, publication):
    """Whether a publication is kept."""
    return state.retains and state.kept[publication, i].is_kept


@compiled
def left_s(state, i, publication, now):
    """Seconds that are left of one that is kept, rounded up."""
    return rules.left_s(state.kept[publication, i].expires_us, now)


@compiled
def remove(state, i, publication):
    """Keep it no longer."""
    node = state.nodes[i]
    state.kept[publication, i].is_kept = 0
    twin.remove(node.kept, state.kept[:, i], publication)
    node.next_end_us = NONE
    one = np.int64(node.kept.first)
    while one != NONE:
        expires_us = state.kept[one, i].expires_us
        if node.next_end_us == NONE or expires_us < node.next_end_us:
            node.next_end_us = expires_us
        one = np.int64(state.kept[one, i].next)


@compiled
def next_to_end(state, i):
    """The one that would end first, the oldest of several; there is one."""
    one = np.int64(state.nodes[i].kept.first)
    while state.kept[one, i].expires_us != state.nodes[i].next_end_us:
        one = np.int64(state.kept[one, i].next)
    return one


@compiled
def next_to_go(state, i):
    """Of others' the one that would end first, NONE if all are this node's own."""
    found = NONE
    one = np.int64(state.nodes[i].kept.first)
    while one != NONE:
        it = state.kept[one, i]
        if it.link != NONE and (found == NONE or it.expires_us < state.kept[found, i].expires_us):
            found = one
        one = np.int64(it.next)
    return found


@compiled
def put(state, i, publication, link, hops, expires_us):
    """Keep one that is not kept, and for which there is room; ``link``: where it came from, NONE if from here."""
    node, it = state.nodes[i], state.kept[publication, i]
    it.expires_us = expires_us
    it.link = link
    it.hops = hops
    it.is_kept = 1
    twin.append(node.kept, state.kept[:, i], publication)
    if node.next_end_us == NONE or expires_us < node.next_end_us:
        node.next_end_us = expires_us


@compiled
def remove_ended(state, i, now):
    """Take out those whose time is over."""
    while state.nodes[i].next_end_us != NONE and state.nodes[i].next_end_us <= now:
        remove(state, i, next_to_end(state, i))

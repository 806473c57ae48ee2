"""The publications that a node of DPS's twin keeps as long as they live: `workbench.protocols.dps.retained`.

They are linked in the order in which they came. Their ends are not in that order, as what is left of a life travels in
whole seconds.
"""

import numpy as np

from workbench.protocols.dps.links import SECOND_US
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.reference import inlined, outlined


@inlined
def is_kept(state, i, publication):
    """Whether a publication is kept."""
    return state.retains and state.kept[publication, i].is_kept


@inlined
def left_s(state, i, publication, now):
    """Seconds that are left of one that is kept, rounded up."""
    return -((now - state.kept[publication, i].expires_us) // SECOND_US)


@outlined
def remove(state, i, publication):
    """Keep it no longer."""
    node, it = state.nodes[i], state.kept[publication, i]
    it.is_kept = 0
    if it.previous == 0:
        node.first_kept = it.next
    else:
        state.kept[it.previous - 1, i].next = it.next
    if it.next == 0:
        node.last_kept = it.previous
    else:
        state.kept[it.next - 1, i].previous = it.previous
    node.kept -= 1
    node.next_end_us = NONE
    one = np.int64(node.first_kept) - 1
    while one != NONE:
        expires_us = state.kept[one, i].expires_us
        if node.next_end_us == NONE or expires_us < node.next_end_us:
            node.next_end_us = expires_us
        one = np.int64(state.kept[one, i].next) - 1


@outlined
def next_to_end(state, i):
    """The one that would end first, the oldest of several; there is one."""
    one = np.int64(state.nodes[i].first_kept) - 1
    while state.kept[one, i].expires_us != state.nodes[i].next_end_us:
        one = np.int64(state.kept[one, i].next) - 1
    return one


@outlined
def next_to_go(state, i):
    """Of others' the one that would end first, NONE if all are this node's own."""
    found = np.int64(NONE)
    one = np.int64(state.nodes[i].first_kept) - 1
    while one != NONE:
        it = state.kept[one, i]
        if it.link != NONE and (found == NONE or it.expires_us < state.kept[found, i].expires_us):
            found = one
        one = np.int64(it.next) - 1
    return found


@inlined
def put(state, i, publication, link, hops, expires_us):
    """Keep one that is not kept, and for which there is room; ``link``: where it came from, NONE if from here."""
    node, it = state.nodes[i], state.kept[publication, i]
    it.expires_us = expires_us
    it.link = link
    it.hops = hops
    it.is_kept = 1
    it.next = 0
    it.previous = node.last_kept
    if node.last_kept == 0:
        node.first_kept = publication + 1
    else:
        state.kept[node.last_kept - 1, i].next = publication + 1
    node.last_kept = publication + 1
    node.kept += 1
    if node.next_end_us == NONE or expires_us < node.next_end_us:
        node.next_end_us = expires_us


@inlined
def remove_ended(state, i, now):
    """Take out those whose time is over."""
    while state.nodes[i].next_end_us != NONE and state.nodes[i].next_end_us <= now:
        remove(state, i, next_to_end(state, i))

"""Retained publications of a node in DPS's fast twin (its compiled version).

`workbench.protocols.dps.retained` defines the behavior.

A node's retained publications form a linked list in the order of arrival. They may expire in a different order, because
the remaining lifetime is sent in whole seconds.
"""

import numpy as np

from workbench.protocols.dps import rules
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def is_retained(state, i, publication):
    """Return whether a node retains a publication."""
    return state.retains and state.retained[publication, i].is_retained


@compiled
def left_s(state, i, publication, now):
    """Return the remaining lifetime in seconds, rounded up, of a publication that node ``i`` retains."""
    return rules.left_s(state.retained[publication, i].expires_us, now)


@compiled
def remove(state, i, publication):
    """Remove a publication from the retained publications of node ``i``; the node must retain it."""
    node = state.nodes[i]
    state.retained[publication, i].is_retained = 0
    twin.remove(node.retained, state.retained[:, i], publication)
    node.next_end_us = NONE
    retained_publication = np.int64(node.retained.first)
    while retained_publication != NONE:
        expires_us = state.retained[retained_publication, i].expires_us
        if node.next_end_us == NONE or expires_us < node.next_end_us:
            node.next_end_us = expires_us
        retained_publication = np.int64(state.retained[retained_publication, i].next)


@compiled
def find_first_to_end(state, i):
    """Return the retained publication of node ``i`` that expires first; of several, the one that arrived first.

    The node must retain at least one publication.
    """
    candidate = np.int64(state.nodes[i].retained.first)
    while state.retained[candidate, i].expires_us != state.nodes[i].next_end_us:
        candidate = np.int64(state.retained[candidate, i].next)
    return candidate


@compiled
def find_evictable(state, i):
    """Return the retained publication that node ``i`` may drop first if its memory is full, or NONE.

    It is the publication of another node that expires first. NONE: node ``i`` retains only its own publications.
    """
    evictable = NONE
    candidate = np.int64(state.nodes[i].retained.first)
    while candidate != NONE:
        retained_entry = state.retained[candidate, i]
        if retained_entry.link != NONE and (
            evictable == NONE or retained_entry.expires_us < state.retained[evictable, i].expires_us
        ):
            evictable = candidate
        candidate = np.int64(retained_entry.next)
    return evictable


@compiled
def add(state, i, publication, link, hops, expires_us):
    """Retain a publication that node ``i`` does not retain yet, until ``expires_us``.

    ``link``: the link over which the publication came, or NONE if node ``i`` published it; ``hops``: hops of the
    publication up to its sender.
    """
    node, retained_entry = state.nodes[i], state.retained[publication, i]
    retained_entry.expires_us = expires_us
    retained_entry.link = link
    retained_entry.hops = hops
    retained_entry.is_retained = 1
    twin.append(node.retained, state.retained[:, i], publication)
    if node.next_end_us == NONE or expires_us < node.next_end_us:
        node.next_end_us = expires_us


@compiled
def remove_ended(state, i, now):
    """Remove the expired publications from the retained publications of a node."""
    while state.nodes[i].next_end_us != NONE and state.nodes[i].next_end_us <= now:
        remove(state, i, find_first_to_end(state, i))

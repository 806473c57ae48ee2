"""Retries of publications that the radio failed to deliver, in DPS's fast twin (its compiled version).

The class `Retries` in `workbench.protocols.dps.publications` defines the behavior.
"""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.fast.history import was_received_from
from workbench.protocols.dps.fast.publications import HOPS_BITS, message_of, takes_publications
from workbench.protocols.dps.rules import MOST_HOPS, MOST_REPEATS, MOST_RETRIED
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def retry_publication(core, state, i, link, publication, hops_and_ttl, now):
    """Schedule a retry of a publication that the radio failed to deliver over ``link``.

    ``hops_and_ttl``: header field of the frame; it contains the publication's hops, and its remaining lifetime in
    seconds.
    """
    node, repeats = state.nodes[i], state.repeats[i]
    repeat_index = NONE
    for k in range(node.repeats):
        repeat = repeats[k]
        if repeat.link == link and repeat.publication == publication and repeat.hops_and_ttl == hops_and_ttl:
            repeat_index = k
    if repeat_index == NONE:
        if node.repeats < MOST_RETRIED:
            repeat_index = node.repeats
            node.repeats += 1
        else:
            repeat_index = node.oldest_repeat
            node.oldest_repeat = (node.oldest_repeat + 1) % MOST_RETRIED
        repeat = repeats[repeat_index]
        repeat.link = link
        repeat.publication = publication
        repeat.hops_and_ttl = hops_and_ttl
        repeat.count = 0
        repeat.due_us = NONE
    repeat = repeats[repeat_index]
    if repeat.count < MOST_REPEATS:
        repeat.due_us = now + 1 + twin.stream_below(core, i, rules.repeat_within_us(repeat.count))
        repeat.count += 1
    _plan_next_retry(node, repeats)


@compiled
def _plan_next_retry(node, entries):
    """Store in ``node.repeat_us`` the time of the node's earliest retry, or NONE.

    ``entries``: the node's rows of ``state.repeats``, one for each publication that the radio failed to deliver.
    """
    node.repeat_us = NONE
    for k in range(node.repeats):
        due_us = entries[k].due_us
        if due_us != NONE and (node.repeat_us == NONE or due_us < node.repeat_us):
            node.repeat_us = due_us


@compiled
def wake_repeats(core, state, i, now):
    """Send the publications whose retries are due.

    A retry is dropped if its link carries no publications any more, or if the neighbor has sent the same publication.
    """
    node = state.nodes[i]
    if node.repeat_us == NONE or node.repeat_us > now:
        return
    repeats = state.repeats[i]
    for k in range(node.repeats):
        repeat = repeats[k]
        if repeat.due_us == NONE or repeat.due_us > now:
            continue
        repeat.due_us = NONE
        link, publication = np.int64(repeat.link), np.int64(repeat.publication)
        if takes_publications(state, link) and not was_received_from(state, i, publication, link):
            hops_and_ttl = np.int64(repeat.hops_and_ttl)
            message = message_of(core, state, publication, hops_and_ttl & MOST_HOPS, hops_and_ttl >> HOPS_BITS)
            twin.send(core, now, i, state.neighbors[link], message, hops_and_ttl)
            twin.let_go(core, message)
    _plan_next_retry(node, repeats)

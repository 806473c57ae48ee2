"""Publications that a node of DPS's twin sends again: `workbench.protocols.dps.repeats`."""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.fast.history import came_from
from workbench.protocols.dps.fast.publications import HOPS_BITS, message_of, takes_publications
from workbench.protocols.dps.rules import MOST_HOPS, MOST_REPEATS, MOST_RETRIED
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def give_up(core, state, i, link, publication, word, now):
    """Plan to send a publication again that the radio gave up."""
    node, entries = state.nodes[i], state.repeats[i]
    chosen = NONE
    for k in range(node.repeats):
        it = entries[k]
        if it.link == link and it.publication == publication and it.word == word:
            chosen = k
    if chosen == NONE:
        if node.repeats < MOST_RETRIED:
            chosen = node.repeats
            node.repeats += 1
        else:
            chosen = node.oldest_repeat
            node.oldest_repeat = (node.oldest_repeat + 1) % MOST_RETRIED
        it = entries[chosen]
        it.link = link
        it.publication = publication
        it.word = word
        it.count = 0
        it.due_us = NONE
    it = entries[chosen]
    if it.count < MOST_REPEATS:
        it.due_us = now + 1 + twin.stream_below(core, i, rules.repeat_within_us(it.count))
        it.count += 1
    _plan(node, entries)


@compiled
def _plan(node, entries):
    """Note when the next one is due."""
    node.repeat_us = NONE
    for k in range(node.repeats):
        due_us = entries[k].due_us
        if due_us != NONE and (node.repeat_us == NONE or due_us < node.repeat_us):
            node.repeat_us = due_us


@compiled
def wake_repeats(core, state, i, now):
    """Send what is due."""
    node = state.nodes[i]
    if node.repeat_us == NONE or node.repeat_us > now:
        return
    entries = state.repeats[i]
    for k in range(node.repeats):
        it = entries[k]
        if it.due_us == NONE or it.due_us > now:
            continue
        it.due_us = NONE
        link, publication = np.int64(it.link), np.int64(it.publication)
        if takes_publications(state, link) and not came_from(state, i, publication, link):
            word = np.int64(it.word)
            message = message_of(core, state, publication, word & MOST_HOPS, word >> HOPS_BITS)
            twin.send(core, now, i, state.neighbors[link], message, word)
            twin.let_go(core, message)
    _plan(node, entries)

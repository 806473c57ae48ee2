"""Acknowledgements of publications in DPS's fast twin (its compiled version), without payload.

`workbench.protocols.dps.acknowledgements` defines the behavior.
"""

import numpy as np

from workbench.protocols.dps.fast.history import find_reverse_link
from workbench.protocols.dps.fast.remotes import address_of
from workbench.protocols.dps.fast.state import Event, Message, Reason
from workbench.protocols.dps.rules import MOST_ANSWERS
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def acknowledge(core, state, i, peer, publication, now):
    """Acknowledge a publication that node ``i`` has delivered to its subscriptions.

    ``peer``: address of the neighbor that sent the publication; NONE: node ``i`` published it itself.
    """
    publication_row = state.publications[publication]
    size_B = state.answer_B
    message = twin.take_message(
        core,
        Message.ACKNOWLEDGEMENT,
        publication_row.origin,
        publication_row.sequence,
        publication_row.content,
        size_B,
        state.airtimes_us[size_B],
    )
    state.headers[message].publication = publication
    if peer == NONE:
        _report_answer(core, state, i, NONE, message, publication, now)
    else:
        link = find_reverse_link(state, i, publication)
        if link == NONE:
            twin.drop(core, now, i, NONE, message, Reason.NO_WAY_BACK)
        else:
            twin.send(core, now, i, state.neighbors[link], message, 0)
    twin.let_go(core, message)


@compiled
def receive_answer(core, state, i, link, message, now):
    """Process an acknowledgement from a neighbor.

    If node ``i`` published the acknowledged publication, write a trace event; else forward the acknowledgement.
    """
    publication = np.int64(state.headers[message].publication)
    peer = address_of(core, state, link)
    if _is_expected(core, state, i, publication):
        _report_answer(core, state, i, peer, message, publication, now)
        return
    if not state.pairs[publication, i].is_seen:
        twin.drop(core, now, i, peer, message, Reason.UNASKED)
        return
    if state.publications[publication].origin == core.addresses[i]:
        twin.drop(core, now, i, peer, message, Reason.UNASKED)
        return
    next_link = find_reverse_link(state, i, publication)
    pair = state.pairs[publication, i]
    if next_link in (NONE, link) or pair.answers >= MOST_ANSWERS:
        twin.drop(core, now, i, peer, message, Reason.NO_WAY_BACK)
        return
    pair.answers += 1
    twin.send(core, now, i, state.neighbors[next_link], message, 0)
    twin.report_forwarded(core, now, i, peer, message, 1)


@compiled
def _is_expected(core, state, i, publication):
    """Return whether node ``i`` published a publication and still expects acknowledgements of it."""
    publication_row = state.publications[publication]
    return (
        publication_row.origin == core.addresses[i]
        and (publication_row.sequence >> 32) >= core.readings[i] - state.max_history
    )


@compiled
def _report_answer(core, state, i, peer, message, publication, now):
    """Write a trace event for an acknowledgement if node ``i`` still expects acknowledgements of the publication.

    ``peer``: address of the neighbor that sent the acknowledgement; NONE: node ``i`` acknowledges its own publication.
    """
    if _is_expected(core, state, i, publication):
        twin.report(core, now, i, Event.ACKNOWLEDGED, peer, message, 0, twin.NO_REASON)

"""Acknowledgements of publications in DPS's twin: `workbench.protocols.dps.acknowledgements`. Their data are empty."""

import numpy as np

from workbench.protocols.dps.fast.history import way_back
from workbench.protocols.dps.fast.remotes import address_of
from workbench.protocols.dps.fast.state import Event, Message, Reason
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def acknowledge(core, state, i, peer, publication, now):
    """Answer a publication that was delivered here; without a ``peer`` it was published here."""
    it = state.publications[publication]
    size_B = state.answer_B
    message = twin.take_message(
        core, Message.ACKNOWLEDGEMENT, it.origin, it.sequence, it.content, size_B, state.airtimes_us[size_B]
    )
    state.letters[message].publication = publication
    if peer == NONE:
        _hand_over(core, state, i, NONE, message, publication, now)
    else:
        link = way_back(state, i, publication)
        if link == NONE:
            twin.drop(core, now, i, NONE, message, Reason.NO_WAY_BACK)
        else:
            twin.send(core, now, i, state.neighbors[link], message, 0)
    twin.let_go(core, message)


@compiled
def take_answer(core, state, i, link, message, now):
    """One from a neighbor: for a publication of this node's own, or to be passed on."""
    publication = np.int64(state.letters[message].publication)
    peer = address_of(core, state, link)
    if _is_expected(core, state, i, publication):
        _hand_over(core, state, i, peer, message, publication, now)
        return
    if not state.pairs[publication, i].is_seen:
        twin.drop(core, now, i, peer, message, Reason.UNASKED)
        return
    onward = way_back(state, i, publication)
    if onward in (NONE, link):
        twin.drop(core, now, i, peer, message, Reason.NO_WAY_BACK)
        return
    twin.send(core, now, i, state.neighbors[onward], message, 0)
    twin.report_forwarded(core, now, i, peer, message, 1)


@compiled
def _is_expected(core, state, i, publication):
    """Whether it is one of those that this node published last."""
    it = state.publications[publication]
    return it.origin == core.addresses[i] and (it.sequence >> 32) >= core.readings[i] - state.max_history


@compiled
def _hand_over(core, state, i, peer, message, publication, now):
    if _is_expected(core, state, i, publication):
        twin.report(core, now, i, Event.ACKNOWLEDGED, peer, message, 0, twin.NO_REASON)

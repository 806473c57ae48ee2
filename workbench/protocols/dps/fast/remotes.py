"""A neighbor of DPS's twin: `workbench.protocols.dps.remotes`, and the lists that links are in."""

import numpy as np

from workbench.protocols.dps.fast.filters import EMPTY
from workbench.protocols.dps.fast.mesh_ids import forget_mesh, forget_told
from workbench.protocols.dps.fast.state import Event
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Places of neighbors


@compiled
def link_of(state, i, neighbor):
    """The row of node ``i``'s neighbor at that place, which is one."""
    low, high = np.int64(state.link_first[i]), np.int64(state.link_first[i + 1])
    while low < high:
        middle = (low + high) >> 1
        if state.neighbors[middle] < neighbor:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def address_of(core, state, link):
    """The address of a neighbor."""
    return core.addresses[state.neighbors[link]]


@compiled
def ask_at(state, i, link, time_us):
    """A neighbor is to be asked for a link; one that was to be asked already keeps its place."""
    it, asked = state.askings[link], state.nodes[i].asked
    it.ask_us = time_us
    if not it.is_asked:
        it.is_asked = 1
        twin.append_behind(asked, state.askings, asked.last, link)


# What a remote is


@compiled
def set_state(core, state, i, link, now, to):
    """A link is in another state now."""
    it = state.links[link]
    if it.state == to:
        return
    it.state = to
    if core.is_recorded[Event.LINK_SET]:
        peer, detail = address_of(core, state, link), state.first_state + to
        twin.add_row(core, now, i, Event.LINK_SET, peer, 0, NONE, it.revision, 0, to, detail)


@compiled
def add_link(state, i, link, asked):
    """A link will begin; ``asked``: by this node. Its revision goes on from that which was noted."""
    it = state.links[link]
    twin.append(state.nodes[i].links, state.links, link)
    it.asked = asked
    it.revision = it.noted_revision
    it.noted_revision = 0
    it.interests = NONE
    it.needs = EMPTY
    it.vector = NONE
    it.is_delta = 0
    it.is_behind = 0
    it.owes_all = 0
    it.pending = 0
    it.ticks = 0
    it.tick_us = NONE
    it.keep_alive_us = NONE
    it.resend_us = NONE
    it.again_us = NONE
    it.repeated = 0
    it.owes_answer = 0
    it.inbound = NONE
    it.inbound_revision = 0
    it.unlinks = 0
    it.rises = 0
    it.has_news = 0
    it.counts_hops = 0
    it.announced_bits = 0
    it.announced_needs = 0
    it.announced_owner = NONE
    forget_mesh(it)
    forget_told(it)


@compiled
def forget_outbound(it):
    """From now on what goes out is told against no interests at all."""
    it.interests = EMPTY
    it.needs = EMPTY
    it.vector = NONE
    it.is_delta = 1
    it.is_behind = 0


@compiled
def await_answer(it, pending, tick_us):
    """A message went out that asks for an answer; the first to be answered keeps its clock."""
    if not it.pending:
        it.ticks = 0
        it.tick_us = tick_us
    it.pending = pending
    it.keep_alive_us = NONE


@compiled
def settle(it, keep_alive_us):
    """Nothing is outstanding any more."""
    it.pending = 0
    it.tick_us = NONE
    it.keep_alive_us = keep_alive_us

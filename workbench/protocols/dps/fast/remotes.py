"""The rows of a node's neighbors in DPS's fast twin, its list of links, and its list of scheduled link requests."""

import numpy as np

from workbench.protocols.dps.fast.filters import EMPTY
from workbench.protocols.dps.fast.mesh_ids import forget_mesh, forget_sent_id
from workbench.protocols.dps.fast.state import Event
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Rows of neighbors


@compiled
def link_of(state, i, neighbor):
    """Return the row in ``links`` of the link from node ``i`` to the node with the index ``neighbor``."""
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
    """Return the address of a link's neighbor."""
    return core.addresses[state.neighbors[link]]


@compiled
def plan_request(state, i, link, time_us):
    """Schedule a link request for ``time_us``; a request that is scheduled already keeps its position in the list."""
    request, planned = state.link_requests[link], state.nodes[i].planned_requests
    request.request_us = time_us
    if not request.is_planned:
        request.is_planned = 1
        twin.append_behind(planned, state.link_requests, planned.last, link)


@compiled
def cancel_request(state, i, link):
    """Remove the scheduled request of a link, if there is one."""
    if not state.link_requests[link].is_planned:
        return
    state.link_requests[link].is_planned = 0
    planned, previous_row = state.nodes[i].planned_requests, NONE
    row = np.int64(planned.first)
    while row != link:
        previous_row = row
        row = np.int64(state.link_requests[row].next)
    twin.remove_behind(planned, state.link_requests, previous_row, link)


# The data about a neighbor


@compiled
def set_state(core, state, i, link, now, to):
    """Change the state of a link to ``to``, and write the change as a trace event."""
    remote = state.links[link]
    if remote.state == to:
        return
    remote.state = to
    if core.is_recorded[Event.LINK_SET]:
        peer, detail = address_of(core, state, link), state.first_state + to
        twin.add_row(core, now, i, Event.LINK_SET, peer, 0, NONE, remote.revision, 0, to, detail)


@compiled
def add_link(state, i, link, is_requester):
    """Append a new link to the list of node ``i``'s links, and reset the data in its row.

    Only the revision, the number of the last message, continues from the former link with this neighbor.
    ``is_requester``: whether node ``i`` requested the link.
    """
    remote = state.links[link]
    twin.append(state.nodes[i].links, state.links, link)
    remote.is_requester = is_requester
    remote.revision = remote.noted_revision
    remote.noted_revision = 0
    remote.interests = NONE
    remote.needs = EMPTY
    remote.vector = NONE
    remote.is_delta = 0
    remote.is_behind = 0
    remote.sends_all_next = 0
    remote.pending = 0
    remote.ticks = 0
    remote.tick_us = NONE
    remote.keep_alive_us = NONE
    remote.resend_us = NONE
    remote.retry_us = NONE
    remote.repeated = 0
    remote.acknowledges_next = 0
    remote.inbound = NONE
    remote.inbound_revision = 0
    remote.unlinks = 0
    remote.rises = 0
    remote.has_changes = 0
    remote.counts_hops = 0
    remote.announced_bits = 0
    remote.announced_needs = 0
    remote.announced_owner = NONE
    forget_mesh(remote)
    forget_sent_id(remote)


@compiled
def forget_outbound(remote):
    """Record that empty interests were sent to a neighbor last, so that the next message is a change of these."""
    remote.interests = EMPTY
    remote.needs = EMPTY
    remote.vector = NONE
    remote.is_delta = 1
    remote.is_behind = 0


@compiled
def await_answer(remote, pending, tick_us):
    """Record that a message of the kind ``pending`` awaits an answer.

    ``tick_us``: time (µs) at which the timer of the message ends first; if an earlier message is unanswered, its timer
    continues instead.
    """
    if not remote.pending:
        remote.ticks = 0
        remote.tick_us = tick_us
    remote.pending = pending
    remote.keep_alive_us = NONE


@compiled
def settle(remote, keep_alive_us):
    """Record that no answer is outstanding, and set the time of the next keep-alive (NONE: no keep-alive)."""
    remote.pending = 0
    remote.tick_us = NONE
    remote.keep_alive_us = keep_alive_us

"""A node's links to its neighbors in DPS's fast twin (its compiled version).

The functions find the row of a link, add a link, and schedule a link request.
"""

import numpy as np

from workbench.protocols.dps.fast.filters import EMPTY
from workbench.protocols.dps.fast.mesh_ids import forget_mesh, forget_sent_id
from workbench.protocols.dps.fast.state import Event
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Rows of neighbors


@compiled
def link_of(state, i, neighbor):
    """Return the index in ``state.links`` of the link from node ``i`` to the node with the index ``neighbor``."""
    first_link, end_link = np.int64(state.link_first[i]), np.int64(state.link_first[i + 1])
    while first_link < end_link:
        middle_link = (first_link + end_link) >> 1
        if state.neighbors[middle_link] < neighbor:
            first_link = middle_link + 1
        else:
            end_link = middle_link
    return first_link


@compiled
def address_of(core, state, link):
    """Return the address of a link's neighbor."""
    return core.addresses[state.neighbors[link]]


@compiled
def plan_request(state, i, link, time_us):
    """Schedule a link request for ``time_us``; if one is scheduled already, only change its time."""
    request, planned_requests = state.link_requests[link], state.nodes[i].planned_requests
    request.request_us = time_us
    if not request.is_planned:
        request.is_planned = 1
        twin.append_behind(planned_requests, state.link_requests, planned_requests.last, link)


@compiled
def cancel_request(state, i, link):
    """Remove the scheduled request of a link, if there is one."""
    if not state.link_requests[link].is_planned:
        return
    state.link_requests[link].is_planned = 0
    planned_requests, previous_row = state.nodes[i].planned_requests, NONE
    request_row = np.int64(planned_requests.first)
    while request_row != link:
        previous_row = request_row
        request_row = np.int64(state.link_requests[request_row].next)
    twin.remove_behind(planned_requests, state.link_requests, previous_row, link)


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

    The field ``revision``, the number of the last message, is not reset: it continues from the former link with this
    neighbor. ``is_requester``: whether node ``i`` requested the link.
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
    """Record that the interests sent last to a neighbor were empty.

    So the next message contains the change from empty interests to the current ones, and is marked as a change.
    """
    remote.interests = EMPTY
    remote.needs = EMPTY
    remote.vector = NONE
    remote.is_delta = 1
    remote.is_behind = 0


@compiled
def await_answer(remote, pending, tick_us):
    """Record that a message of the kind ``pending`` awaits an answer, and start the link's timer.

    ``tick_us``: time (µs) of the timer's first tick. If an earlier message is still unanswered, the timer already runs
    and is not changed.
    """
    if not remote.pending:
        remote.ticks = 0
        remote.tick_us = tick_us
    remote.pending = pending
    remote.keep_alive_us = NONE


@compiled
def settle(remote, keep_alive_us):
    """Record that no answer from a neighbor is outstanding, and set the time (µs) of the next keep-alive, or NONE."""
    remote.pending = 0
    remote.tick_us = NONE
    remote.keep_alive_us = keep_alive_us

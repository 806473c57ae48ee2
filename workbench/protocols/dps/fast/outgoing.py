"""Functions of DPS's fast twin (its compiled version) that unite a node's interests and send them to neighbors.

`workbench.protocols.dps.interests` defines the behavior.
"""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.fast.filters import (
    EMPTY,
    Number,
    add_to_sum,
    change_between,
    clear_sum,
    end_sum,
    intern_filter,
    intern_needs,
    more_B,
    ones_of,
)
from workbench.protocols.dps.fast.mesh_ids import low_to_send, lowest_except, owner_number
from workbench.protocols.dps.fast.remotes import address_of, await_answer, forget_outbound
from workbench.protocols.dps.fast.state import Event, Message
from workbench.protocols.dps.remotes import ACKNOWLEDGEMENT, SUBSCRIPTION
from workbench.protocols.dps.wire import SAK_REQUESTED, UNLINK
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Interests


@compiled
def _sum_all_except(state, i, excluded_link):
    """Compute the union of the interests of node ``i`` and of its neighbors, except one neighbor.

    The result is a filter, in the first free row of ``state.filters``, and its needs, in the first free row of
    ``state.needs``. ``excluded_link``: the link with the excluded neighbor; NONE: all neighbors are included.
    """
    node = state.nodes[i]
    entry_count = np.int64(node.own_count)
    clear_sum(state)
    if entry_count:
        add_to_sum(state, node.own_interests, node.own_needs)
    link = np.int64(node.links.first)
    while link != NONE:
        remote = state.links[link]
        if link != excluded_link and remote.inbound != NONE:
            add_to_sum(state, remote.inbound, remote.inbound_needs)
            entry_count += 1
        link = np.int64(remote.next)
    end_sum(state, entry_count)


@compiled
def mark_changed(state, i, link):
    """Mark the data about a neighbor as changed, so that `announce` checks whether to write trace events."""
    state.links[link].has_changes = 1
    state.nodes[i].has_changes = 1


@compiled
def announce(core, state, i, now):
    """Write trace events for the interests and mesh ids of node ``i`` and its neighbors that have changed.

    Interests and ids have changed if they differ from the last event about them. Do nothing if the run has no trace.
    """
    node = state.nodes[i]
    if not core.traces or not node.has_changes:
        return
    node.has_changes = 0
    link = np.int64(node.links.first)
    while link != NONE:
        if state.links[link].has_changes:
            state.links[link].has_changes = 0
            _announce_neighbor(core, state, i, link, now)
        link = np.int64(state.links[link].next)
    _sum_all_except(state, i, NONE)
    filter_ones, needs_ones = (
        ones_of(state.filters, state.numbers[Number.FILTERS]),
        ones_of(state.needs, state.numbers[Number.NEEDS]),
    )
    if filter_ones != node.announced_bits or needs_ones != node.announced_needs:
        node.announced_bits, node.announced_needs = filter_ones, needs_ones
        twin.add_row(core, now, i, Event.INTERESTS_SET, NONE, 0, NONE, 0, 0, filter_ones, state.first_text + needs_ones)
    id_owner = owner_number(node.mesh_high, node.mesh_low)
    if id_owner != node.announced_owner:
        node.announced_owner = id_owner
        twin.add_row(core, now, i, Event.MESH_ID_SET, NONE, 0, NONE, 0, 0, id_owner, twin.NO_REASON)


@compiled
def _announce_neighbor(core, state, i, link, now):
    """Write trace events for the interests and the mesh id of a neighbor, if they changed since the last events."""
    remote, peer = state.links[link], address_of(core, state, link)
    filter_ones, needs_ones = np.int32(0), np.int32(0)
    if remote.inbound != NONE:
        filter_ones, needs_ones = state.filter_ones[remote.inbound], state.needs_ones[remote.inbound_needs]
    if filter_ones != remote.announced_bits or needs_ones != remote.announced_needs:
        remote.announced_bits, remote.announced_needs = filter_ones, needs_ones
        detail_text = state.first_text + needs_ones
        twin.add_row(
            core,
            now,
            i,
            Event.INTERESTS_SET,
            peer,
            Message.SUBSCRIPTION,
            NONE,
            remote.inbound_revision,
            0,
            filter_ones,
            detail_text,
        )
    id_owner = owner_number(remote.mesh_high, remote.mesh_low)
    if id_owner != remote.announced_owner:
        remote.announced_owner = id_owner
        twin.add_row(core, now, i, Event.MESH_ID_SET, peer, 0, NONE, 0, 0, id_owner, twin.NO_REASON)


@compiled
def find_changes(state, i, link):
    """Compute the interests to send to a neighbor; return whether they differ from the interests sent last.

    The result is stored in fields of the link. ``interests`` and ``needs`` are the rows of the computed filter and
    needs. ``vector`` is the row of the filter for the next message: all interests, or only the bits that have changed.
    """
    remote = state.links[link]
    _sum_all_except(state, i, link)
    interests, needs = intern_filter(state), intern_needs(state)
    has_changed = True
    remote.is_delta = remote.interests != NONE
    if remote.is_delta:
        has_changed = interests != remote.interests or needs != remote.needs
        remote.vector = change_between(state, np.int64(remote.interests), interests)
    else:
        remote.vector = interests
    if has_changed:
        remote.revision += 1
    remote.interests = interests
    remote.needs = needs
    remote.is_behind = 0
    return has_changed


# Messages


@compiled
def _send_link_message(core, state, i, link, now, message_kind, flags, with_interests):
    """Send a neighbor a subscription message, or the acknowledgement of one.

    ``message_kind``: `Message.SUBSCRIPTION` or `Message.SUBSCRIPTION_ACK`. ``flags``: the message's flags.
    ``with_interests``: whether the message carries the interests that `find_changes` has computed.
    """
    remote = state.links[link]
    id_high, id_low = lowest_except(state, i, link)
    id_low = low_to_send(remote, id_low)
    remote.sent_high, remote.sent_low = id_high, id_low
    if message_kind == Message.SUBSCRIPTION:
        size_B = state.subscription_B
    else:
        size_B = state.acknowledgement_B + more_B(remote.inbound_revision)
    size_B += more_B(remote.revision)
    if with_interests:
        size_B += state.with_interests_B + state.filter_B[remote.vector]
    message = twin.take_message(core, message_kind, NONE, remote.revision, NONE, size_B, state.airtimes_us[size_B])
    header = state.headers[message]
    header.mesh_high = id_high
    header.mesh_low = id_low
    header.flags = flags
    header.needs = remote.needs
    header.vector = remote.vector
    header.acknowledged = remote.inbound_revision
    twin.send(core, now, i, state.neighbors[link], message, 0)
    twin.let_go(core, message)


@compiled
def send_subscription(core, state, i, link, now):
    """Send a neighbor a subscription message with the interests that `find_changes` has computed for its link."""
    remote = state.links[link]
    flags = rules.subscription_flags(remote.is_delta, remote.state, state.nodes[i].recheck_s)
    _send_link_message(core, state, i, link, now, Message.SUBSCRIPTION, flags, True)
    await_answer(remote, SUBSCRIPTION, now + state.nodes[i].tick_us)


@compiled
def send_unlink(core, state, i, link, now):
    """Send a neighbor a subscription with the flag UNLINK, which ends the link."""
    _send_link_message(core, state, i, link, now, Message.SUBSCRIPTION, SAK_REQUESTED | UNLINK, False)
    await_answer(state.links[link], SUBSCRIPTION, now + state.nodes[i].tick_us)


@compiled
def send_acknowledgement(core, state, i, link, now, with_interests):
    """Acknowledge the last subscription message from a neighbor.

    ``with_interests``: whether the acknowledgement carries the interests that `find_changes` has computed.
    """
    remote = state.links[link]
    remote.acknowledges_next = 0
    flags = rules.acknowledgement_flags(remote.is_delta, remote.state, with_interests)
    _send_link_message(core, state, i, link, now, Message.SUBSCRIPTION_ACK, flags, with_interests)
    if with_interests and not remote.pending:
        await_answer(remote, ACKNOWLEDGEMENT, now + state.nodes[i].tick_us)


@compiled
def send_all_interests(core, state, i, link, now):
    """Send a neighbor all interests, not only the change since the previous message."""
    state.links[link].interests = NONE
    find_changes(state, i, link)
    send_subscription(core, state, i, link, now)


@compiled
def send_no_interests(core, state, i, link, now):
    """Send a neighbor a subscription with an empty filter, as if node ``i`` had no interests.

    The actual interests follow after the answer. Such a message checks whether a muted link still closes a loop, and
    transfers no interests.
    """
    remote = state.links[link]
    forget_outbound(remote)
    remote.vector = EMPTY
    remote.is_delta = 0
    remote.is_behind = 1
    remote.revision += 1
    send_subscription(core, state, i, link, now)


@compiled
def send_again(core, state, i, link, now):
    """Repeat the last message to a neighbor, because the neighbor has not answered it."""
    if state.links[link].pending == ACKNOWLEDGEMENT:
        send_acknowledgement(core, state, i, link, now, True)
    else:
        send_subscription(core, state, i, link, now)

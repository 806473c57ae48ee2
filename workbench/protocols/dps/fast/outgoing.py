"""What a node of DPS's twin tells its neighbors: `workbench.protocols.dps.interests` and `outgoing`."""

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.fast.filters import (
    EMPTY,
    Number,
    add_to_sum,
    change_between,
    clear_sum,
    end_sum,
    keep_filter,
    keep_needs,
    more_B,
    ones_of,
)
from workbench.protocols.dps.fast.mesh_ids import low_there, lowest_but, owner_number
from workbench.protocols.dps.fast.remotes import address_of, await_answer, forget_outbound
from workbench.protocols.dps.fast.state import Event, Message
from workbench.protocols.dps.remotes import ACKNOWLEDGEMENT, SUBSCRIPTION
from workbench.protocols.dps.wire import SAK_REQUESTED, UNLINK
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# What is asked for


@compiled
def _sum_all_but(state, i, but):
    """Sum up what is asked for here and behind all links but one (NONE: all of them), in the first free rows."""
    node = state.nodes[i]
    entries = np.int64(node.entries)
    clear_sum(state)
    if entries:
        add_to_sum(state, node.own, node.own_needs)
    link = np.int64(node.links.first)
    while link != NONE:
        it = state.links[link]
        if link != but and it.inbound != NONE:
            add_to_sum(state, it.inbound, it.inbound_needs)
            entries += 1
        link = np.int64(it.next)
    end_sum(state, entries)


@compiled
def note_news(state, i, link):
    """Events may have to report other interests, or another owner of a mesh id."""
    state.links[link].has_news = 1
    state.nodes[i].has_news = 1


@compiled
def announce(core, state, i, now):
    """Report what has changed since the last report, if a trace is kept."""
    node = state.nodes[i]
    if not core.traces or not node.has_news:
        return
    node.has_news = 0
    link = np.int64(node.links.first)
    while link != NONE:
        if state.links[link].has_news:
            state.links[link].has_news = 0
            _announce_neighbor(core, state, i, link, now)
        link = np.int64(state.links[link].next)
    _sum_all_but(state, i, NONE)
    bits, needs = (
        ones_of(state.filters, state.numbers[Number.FILTERS]),
        ones_of(state.needs, state.numbers[Number.NEEDS]),
    )
    if bits != node.announced_bits or needs != node.announced_needs:
        node.announced_bits, node.announced_needs = bits, needs
        twin.add_row(core, now, i, Event.INTERESTS_SET, NONE, 0, NONE, 0, 0, bits, state.first_text + needs)
    owner = owner_number(node.mesh_high, node.mesh_low)
    if owner != node.announced_owner:
        node.announced_owner = owner
        twin.add_row(core, now, i, Event.MESH_ID_SET, NONE, 0, NONE, 0, 0, owner, twin.NO_REASON)


@compiled
def _announce_neighbor(core, state, i, link, now):
    it, peer = state.links[link], address_of(core, state, link)
    bits, needs = np.int32(0), np.int32(0)
    if it.inbound != NONE:
        bits, needs = state.filter_ones[it.inbound], state.needs_ones[it.inbound_needs]
    if bits != it.announced_bits or needs != it.announced_needs:
        it.announced_bits, it.announced_needs = bits, needs
        detail = state.first_text + needs
        twin.add_row(
            core, now, i, Event.INTERESTS_SET, peer, Message.SUBSCRIPTION, NONE, it.inbound_revision, 0, bits, detail
        )
    owner = owner_number(it.mesh_high, it.mesh_low)
    if owner != it.announced_owner:
        it.announced_owner = owner
        twin.add_row(core, now, i, Event.MESH_ID_SET, peer, 0, NONE, 0, 0, owner, twin.NO_REASON)


@compiled
def find_changes(state, i, link):
    """Work out what to tell a neighbor; whether that is another thing than the last time."""
    it = state.links[link]
    _sum_all_but(state, i, link)
    interests, needs = keep_filter(state), keep_needs(state)
    changed = True
    it.is_delta = it.interests != NONE
    if it.is_delta:
        changed = interests != it.interests or needs != it.needs
        it.vector = change_between(state, np.int64(it.interests), interests)
    else:
        it.vector = interests
    if changed:
        it.revision += 1
    it.interests = interests
    it.needs = needs
    it.is_behind = 0
    return changed


# Messages


@compiled
def _send(core, state, i, link, now, name, flags, with_interests):
    it = state.links[link]
    high, low = lowest_but(state, i, link)
    low = low_there(it, low)
    it.told_high, it.told_low = high, low
    if name == Message.SUBSCRIPTION:
        size_B = state.subscription_B
    else:
        size_B = state.acknowledgement_B + more_B(it.inbound_revision)
    size_B += more_B(it.revision)
    if with_interests:
        size_B += state.with_interests_B + state.filter_B[it.vector]
    message = twin.take_message(core, name, NONE, it.revision, NONE, size_B, state.airtimes_us[size_B])
    letter = state.letters[message]
    letter.mesh_high = high
    letter.mesh_low = low
    letter.flags = flags
    letter.needs = it.needs
    letter.vector = it.vector
    letter.acknowledged = it.inbound_revision
    twin.send(core, now, i, state.neighbors[link], message, 0)
    twin.let_go(core, message)


@compiled
def send_subscription(core, state, i, link, now):
    """Send what `find_changes` found, or send it again."""
    it = state.links[link]
    flags = rules.subscription_flags(it.is_delta, it.state, state.nodes[i].recheck_s)
    _send(core, state, i, link, now, Message.SUBSCRIPTION, flags, True)
    await_answer(it, SUBSCRIPTION, now + state.nodes[i].tick_us)


@compiled
def send_unlink(core, state, i, link, now):
    """Say that the link ends."""
    _send(core, state, i, link, now, Message.SUBSCRIPTION, SAK_REQUESTED | UNLINK, False)
    await_answer(state.links[link], SUBSCRIPTION, now + state.nodes[i].tick_us)


@compiled
def send_acknowledgement(core, state, i, link, now, with_interests):
    """Acknowledge what came, perhaps with what `find_changes` found."""
    it = state.links[link]
    it.owes_answer = 0
    flags = rules.acknowledgement_flags(it.is_delta, it.state, with_interests)
    _send(core, state, i, link, now, Message.SUBSCRIPTION_ACK, flags, with_interests)
    if with_interests and not it.pending:
        await_answer(it, ACKNOWLEDGEMENT, now + state.nodes[i].tick_us)


@compiled
def tell_in_full(core, state, i, link, now):
    """Tell a neighbor all interests, as if it had been told none."""
    state.links[link].interests = NONE
    find_changes(state, i, link)
    send_subscription(core, state, i, link, now)


@compiled
def tell_nothing(core, state, i, link, now):
    """Tell a neighbor that nothing is asked for here, as if it had been told nothing; the rest is for later."""
    it = state.links[link]
    forget_outbound(it)
    it.vector = EMPTY
    it.is_delta = 0
    it.is_behind = 1
    it.revision += 1
    send_subscription(core, state, i, link, now)


@compiled
def send_again(core, state, i, link, now):
    """Repeat what was not answered."""
    if state.links[link].pending == ACKNOWLEDGEMENT:
        send_acknowledgement(core, state, i, link, now, True)
    else:
        send_subscription(core, state, i, link, now)

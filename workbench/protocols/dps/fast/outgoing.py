"""What a node of DPS's twin tells its neighbors: `workbench.protocols.dps.interests` and `outgoing`."""

import numpy as np

from workbench.protocols.dps.fast.filters import (
    EMPTY,
    FILTERS,
    NEEDS,
    add_to_sum,
    change_between,
    clear_sum,
    end_sum,
    keep_filter,
    keep_needs,
    more_B,
    ones_of,
)
from workbench.protocols.dps.fast.mesh_ids import lowest_but
from workbench.protocols.dps.fast.names import INTERESTS_SET
from workbench.protocols.dps.fast.remotes import await_answer, forget_outbound
from workbench.protocols.dps.fast.state import ACKNOWLEDGEMENT_MESSAGE, SUBSCRIPTION_MESSAGE
from workbench.protocols.dps.remotes import ACKNOWLEDGEMENT, SUBSCRIPTION
from workbench.protocols.dps.rules import acknowledgement_flags as _acknowledgement_flags
from workbench.protocols.dps.rules import subscription_flags as _subscription_flags
from workbench.protocols.dps.wire import SAK_REQUESTED, UNLINK
from workbench.sim.fast.air import let_go, send, take_message
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.record import add_row
from workbench.sim.fast.reference import inlined, outlined

acknowledgement_flags, subscription_flags = inlined(_acknowledgement_flags), inlined(_subscription_flags)

# What is asked for


@outlined
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


@outlined
def tell_sum(core, state, i, now):
    """What is asked for here and behind all links together, if a trace is kept."""
    if core.traces:
        _sum_all_but(state, i, NONE)
        value = ones_of(state.filters, state.numbers[FILTERS])
        detail = state.first_text + ones_of(state.needs, state.numbers[NEEDS])
        add_row(core, now, i, INTERESTS_SET, NONE, 0, NONE, 0, 0, value, detail)


@outlined
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


@outlined
def _send(core, state, i, link, now, name, flags, with_interests):
    it = state.links[link]
    high, low = lowest_but(state, i, link)
    it.told_high, it.told_low = high, low
    if name == SUBSCRIPTION_MESSAGE:
        size_B = state.subscription_B
    else:
        size_B = state.acknowledgement_B + more_B(it.inbound_revision)
    size_B += more_B(it.revision)
    if with_interests:
        size_B += state.with_interests_B + state.filter_B[it.vector]
    message = take_message(core, name, NONE, it.revision, NONE, size_B, state.airtimes_us[size_B])
    letter = state.letters[message]
    letter.mesh_high = high
    letter.mesh_low = low
    letter.flags = flags
    letter.needs = it.needs
    letter.vector = it.vector
    letter.acknowledged = it.inbound_revision
    send(core, now, i, state.neighbors[link], message, 0)
    let_go(core, message)


@inlined
def send_subscription(core, state, i, link, now):
    """Send what `find_changes` found, or send it again."""
    it = state.links[link]
    flags = subscription_flags(it.is_delta, it.state, state.nodes[i].recheck_s)
    _send(core, state, i, link, now, SUBSCRIPTION_MESSAGE, flags, True)
    await_answer(it, SUBSCRIPTION, now + state.nodes[i].tick_us)


@inlined
def send_unlink(core, state, i, link, now):
    """Say that the link ends."""
    _send(core, state, i, link, now, SUBSCRIPTION_MESSAGE, SAK_REQUESTED | UNLINK, False)
    await_answer(state.links[link], SUBSCRIPTION, now + state.nodes[i].tick_us)


@inlined
def send_acknowledgement(core, state, i, link, now, with_interests):
    """Acknowledge what came, perhaps with what `find_changes` found."""
    it = state.links[link]
    it.owes_answer = 0
    flags = acknowledgement_flags(it.is_delta, it.state, with_interests)
    _send(core, state, i, link, now, ACKNOWLEDGEMENT_MESSAGE, flags, with_interests)
    if with_interests and not it.pending:
        await_answer(it, ACKNOWLEDGEMENT, now + state.nodes[i].tick_us)


@inlined
def tell_in_full(core, state, i, link, now):
    """Tell a neighbor all interests, as if it had been told none."""
    state.links[link].interests = NONE
    find_changes(state, i, link)
    send_subscription(core, state, i, link, now)


@inlined
def tell_nothing(core, state, i, link, now):
    """Tell a neighbor that nothing is asked for here, as if it had been told nothing; the rest is for later."""
    it = state.links[link]
    forget_outbound(it)
    it.vector = EMPTY
    it.is_delta = 0
    it.is_behind = 1
    it.revision += 1
    send_subscription(core, state, i, link, now)


@inlined
def send_again(core, state, i, link, now):
    """Repeat what was not answered."""
    if state.links[link].pending == ACKNOWLEDGEMENT:
        send_acknowledgement(core, state, i, link, now, True)
    else:
        send_subscription(core, state, i, link, now)

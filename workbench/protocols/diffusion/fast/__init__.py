"""The node of `workbench.protocols.diffusion` as functions that the fast engine's loop calls: its *twin*.

The node's methods are functions in the modules `interests`, `cache`, `data`, `copies`, `paths` (data gradients),
`reinforcement`, `filters`, `attributes` and `messages`. `memory` defines the arrays of the nodes' state, `state` builds
them from a scenario.

Parameters of many functions
    core, state   the engine's arrays (`workbench.sim.fast.layout.Core`), and the arrays of this protocol
    i             index of the node; neighbors, sinks and sources are node indices, too, not addresses
    message       index of a message in flight, in ``core.messages``
    list_id       id of an attribute list, its index in ``state.lists``
    entry         index of an entry of a node's interest cache, in ``state.entries``
    own           index of an own interest of the node, in ``state.own_interests``
    seen          index of a data message in the node's memory of messages already seen, in ``state.seen_data``
    sender        the neighbor that sent a frame; NONE for the node's own data
    now           current time (µs)

The twin leaves out events that cannot occur in a simulated run: malformed frames, frames with a wrong previous hop, and
frames that are too long (built-in filters change only values).
"""

from __future__ import annotations

from workbench.protocols.diffusion import rules
from workbench.protocols.diffusion.fast import memory, state
from workbench.protocols.diffusion.fast.cache import TOWARDS, remove_gradients
from workbench.protocols.diffusion.fast.copies import plan_to_send_again, send_waiting
from workbench.protocols.diffusion.fast.data import (
    drop_old_samples,
    emit_held,
    offer_sample,
    receive_data,
    send_samples,
)
from workbench.protocols.diffusion.fast.interests import (
    begin_subscription,
    end_subscription,
    plan_wake_up,
    receive_interest,
    refresh,
)
from workbench.protocols.diffusion.fast.memory import Event, Message, Number, PoolNeed, Reason
from workbench.protocols.diffusion.fast.messages import find_in_black_list
from workbench.protocols.diffusion.fast.reinforcement import receive_reinforcement, reinforce_sources
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled, hot

twin.compiled_rules(rules)

PARTS = memory, state
WAKES = True
COUNTS_HOLDERS = False


@compiled
def has_room(core, state):
    """Return whether each pool (growing array of ``state``) has room for one more simulation event of any kind."""
    pool_numbers, pool_needs = state.numbers, state.pool_needs
    return (
        pool_numbers[Number.LISTS] + pool_needs[PoolNeed.LISTS] <= len(state.lists)
        and pool_numbers[Number.ATTRIBUTES] + pool_needs[PoolNeed.ATTRIBUTES] <= len(state.attributes)
        and pool_numbers[Number.FREE_MARKS] >= pool_needs[PoolNeed.MARKS]
        and pool_numbers[Number.MEMORIES] + pool_needs[PoolNeed.MEMORIES] <= len(state.memories)
    )


@compiled
def link_quality(core, state, i, neighbor, inbound, outbound, now):
    """Put a neighbor on node ``i``'s black list or take it off, by the delivery ratios of the link.

    ``inbound``, ``outbound``: the ratios for frames from and to the neighbor.
    """
    index = find_in_black_list(state, i, neighbor)
    was_black = index != NONE
    is_black = rules.is_black(was_black, inbound, outbound, state.blacklist_loss, state.blacklist_hysteresis)
    if is_black == was_black:
        return
    if is_black and state.black_counts[i] >= state.max_black:
        _report_full_black_list(core, now, i, neighbor)
        return
    if core.is_recorded[Event.BLACKLISTED]:
        peer = core.addresses[neighbor]
        twin.add_row(core, now, i, Event.BLACKLISTED, peer, 0, NONE, 0, 0, is_black, twin.NO_REASON)
    if was_black:
        state.black_counts[i] -= 1
        state.black[index] = state.black[state.black_first[i] + state.black_counts[i]]
        return
    state.black[state.black_first[i] + state.black_counts[i]] = neighbor
    state.black_counts[i] += 1
    for index in range(state.nodes[i].entries):
        remove_gradients(core, state, now, i, state.order[i, index], TOWARDS, neighbor, 0, 0, Reason.BLACKLISTED)


@compiled
def _report_full_black_list(core, now, i, neighbor):
    """Report that node ``i`` could not put a neighbor on its black list, because the list is full."""
    if core.traces:
        peer = core.addresses[neighbor]
        twin.add_row(core, now, i, twin.Event.DROPPED, peer, 0, NONE, 0, 0, 0, Reason.FULL)
    else:
        core.dropped[Reason.FULL] += 1


@compiled
def publish(core, state, i, content, number, now):
    """Publish sample ``number`` of node ``i``; ``content``: the id of its attribute list."""
    offer_sample(core, state, i, content, number, now)


@compiled
def subscribe(core, state, i, subscription, now):
    """Begin a subscription of node ``i``; ``subscription``: its index in ``core.subscriptions``."""
    begin_subscription(core, state, i, subscription, now)


@compiled
def unsubscribe(core, state, i, subscription, now):
    """End a subscription of node ``i`` before it expires."""
    end_subscription(core, state, i, subscription, now)


@compiled
def reinforce(core, state, i, request, now):
    """Let node ``i``, a sink, reinforce the paths to the sources that a `reinforce` item of the workload selects.

    ``request``: the index of the item's attribute list in ``state.reinforcement_lists``.
    """
    reinforce_sources(core, state, i, request, now)


@hot
def receive(core, state, i, sender, message, ttl, broadcast, now):
    """Process a frame from the neighbor ``sender``: data, an interest (broadcast) or a reinforcement (unicast)."""
    reason = twin.NO_REASON
    if find_in_black_list(state, i, sender) != NONE:
        reason = Reason.BLACKLISTED
    elif ttl < 1:
        reason = twin.Reason.TTL
    if reason:
        twin.drop(core, now, i, core.addresses[sender], message, reason)
    elif core.messages[message].name == Message.DATA:
        receive_data(core, state, i, sender, message, ttl, now)
    elif broadcast:
        receive_interest(core, state, i, sender, message, ttl, now)
    else:
        receive_reinforcement(core, state, i, sender, message, ttl, now)


@compiled
def sent(core, state, i, receiver, message, ttl, ok, now):
    """Plan to send a data message again if neighbor ``receiver`` did not acknowledge it.

    ``ok``: whether the radio received an acknowledgement.
    """
    if not ok:
        plan_to_send_again(core, state, i, receiver, message, ttl, now)


@compiled
def wake(core, state, i, now):
    """Perform the actions of node ``i`` that are due at the time ``now``.

    These are: end subscriptions, refresh or repeat interests, send unacknowledged frames again, match or drop waiting
    samples, and send the readings that filters have made from dropped ones.
    """
    refresh(core, state, i, now)
    send_waiting(core, state, i, now)
    drop_old_samples(core, state, i, now)
    node = state.nodes[i]
    if node.tick_us != NONE and node.tick_us <= now:
        node.tick_us = NONE
        send_samples(core, state, i, now)
    emit_held(core, state, i, now)
    plan_wake_up(core, state, i)

"""The twin of `workbench.protocols.diffusion.node`: its functions, and the way from a scenario to their arrays.

The node's nouns are modules of their own: `interests`, `cache`, `data`, `copies`, `paths` (data gradients),
`reinforcement`, `filters`, `attributes`, `messages`. What a node remembers is laid out in `memory` and made in `state`.
Neighbors, sinks and sources are places, not addresses, and an attribute list is a number.

Of the definition this leaves out what cannot happen in a run of a scenario: frames that are malformed, that lie about
their previous hop or that are too long (built-in filters change values alone), and link qualities that change.
"""

from __future__ import annotations

from workbench.protocols.diffusion import rules
from workbench.protocols.diffusion.fast import memory, state
from workbench.protocols.diffusion.fast.copies import plan_to_send_again, send_waiting
from workbench.protocols.diffusion.fast.data import drop_old_samples, offer, receive_data, send_samples
from workbench.protocols.diffusion.fast.interests import (
    begin_subscription,
    end_subscription,
    plan_wake_up,
    receive_interest,
    refresh,
)
from workbench.protocols.diffusion.fast.memory import Event, Message, Number, Reason, Room
from workbench.protocols.diffusion.fast.messages import is_black
from workbench.protocols.diffusion.fast.reinforcement import receive_reinforcement
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled, hot

twin.compiled_rules(rules)

PARTS = memory, state
WAKES = True
COUNTS_HOLDERS = False


@compiled
def has_room(core, state):
    """Whether the pools have what an event may take."""
    numbers, room = state.numbers, state.room
    return (
        numbers[Number.LISTS] + room[Room.LISTS] <= len(state.lists)
        and numbers[Number.ATTRIBUTES] + room[Room.ATTRIBUTES] <= len(state.attributes)
        and numbers[Number.FREE_MARKS] >= room[Room.MARKS]
        and numbers[Number.MEMORIES] + room[Room.MEMORIES] <= len(state.memories)
    )


@compiled
def start(core, state, i, now):
    """Node ``i`` knows from the start which neighbors it cannot talk with."""
    if core.is_recorded[Event.BLACKLISTED]:
        for place in range(state.black_first[i], state.black_first[i + 1]):
            peer = core.addresses[state.black[place]]
            twin.add_row(core, now, i, Event.BLACKLISTED, peer, 0, NONE, 0, 0, 1, twin.NO_REASON)


@compiled
def publish(core, state, i, content, number, now):
    """Offer a sample."""
    offer(core, state, i, content, number, now)


@compiled
def subscribe(core, state, i, what, now):
    """Ask the network for data that matches."""
    begin_subscription(core, state, i, what, now)


@compiled
def unsubscribe(core, state, i, what, now):
    """End a subscription."""
    end_subscription(core, state, i, what, now)


@hot
def receive(core, state, i, sender, message, word, broadcast, now):
    """Take a neighbor's frame; ``word`` is its ttl."""
    reason = twin.NO_REASON
    if is_black(state, i, sender):
        reason = Reason.BLACKLISTED
    elif word < 1:
        reason = twin.Reason.TTL
    if reason:
        twin.drop(core, now, i, core.addresses[sender], message, reason)
    elif core.messages[message].name == Message.DATA:
        receive_data(core, state, i, sender, message, word, now)
    elif broadcast:
        receive_interest(core, state, i, sender, message, word, now)
    else:
        receive_reinforcement(core, state, i, sender, message, word, now)


@compiled
def sent(core, state, i, receiver, message, word, ok, now):
    """Plan to send data again that the radio has given up; ``word`` is its ttl."""
    if not ok:
        plan_to_send_again(core, state, i, receiver, message, word, now)


@compiled
def wake(core, state, i, now):
    """Do what is due: refresh interests, end subscriptions, send frames again, match or drop samples that wait."""
    refresh(core, state, i, now)
    send_waiting(core, state, i, now)
    drop_old_samples(core, state, i, now)
    node = state.nodes[i]
    if node.tick_us != NONE and node.tick_us <= now:
        node.tick_us = NONE
        send_samples(core, state, i, now)
    plan_wake_up(core, state, i)

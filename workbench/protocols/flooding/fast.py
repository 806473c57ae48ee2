"""The twin of `workbench.protocols.flooding.node`, and of gossip, which is flooding that passes on by chance.

A message is a publication, its word the ttl. What a node remembers is a byte per node and message on its way: nobody
asks for a publication of which no frame is left. A memory that may forget while frames are on their way
(``max_events`` below the number of publications) is kept exactly, without keeping it: a node remembers the
publications that it took in last, so it is enough to number those and compare.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from workbench.attributes.model import Attribute
from workbench.protocols.flooding import wire
from workbench.sim.fast.air import let_go, make_message, send
from workbench.sim.fast.defaults import has_room, start, subscribe, text, unsubscribe, wake, with_more_room
from workbench.sim.fast.draws import stream_uniform
from workbench.sim.fast.layout import BROADCAST, DUPLICATE, FIRST_REASON, NONE, TTL, Needs
from workbench.sim.fast.matching import deliver
from workbench.sim.fast.prepare import Setup
from workbench.sim.fast.record import drop, tell_forwarded, tell_held, tell_originated
from workbench.sim.fast.reference import inlined

__all__ = [
    "REASONS",
    "MESSAGES",
    "has_room",
    "longest_frame_B",
    "make_state",
    "needs",
    "publish",
    "receive",
    "size_B",
    "start",
    "subscribe",
    "text",
    "unsubscribe",
    "wake",
    "with_more_messages",
    "with_more_room",
]

REASONS = ("chance",)
(CHANCE,) = range(FIRST_REASON, FIRST_REASON + len(REASONS))

MESSAGES = ("", "flood")
_FLOOD = 1
WAKES = False
COUNTS_HOLDERS = True

# ``known`` (messages, nodes): 1 if a node ever held it. With a memory that forgets, ``ordinals`` (messages, nodes) has
# how many publications it had taken in by then, and ``taken`` (nodes) how many by now.
State = namedtuple("State", ("ttl", "memory", "forwarding_probability", "forgets", "known", "ordinals", "taken"))


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Bytes of the frame of a publication."""
    return len(wire.encode(wire.Flood(0, 0, 1, attributes)))


def longest_frame_B(setup: Setup) -> int:
    """Bytes of the longest frame that can be sent."""
    return int(setup.work.contents["size_B"].max(initial=1))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """What a reception of a broadcast, one of a unicast, and any other call takes at most."""
    rows = 2 + setup.work.most_subscriptions * setup.work.most_samples
    return Needs(rows, 1, 0), Needs(0, 0, 0), Needs(rows, 1, 1)


def make_state(setup: Setup, messages: int) -> State:
    """The memory of all nodes, for so many messages on their way at once."""
    protocol, count = setup.protocol, len(setup.network.addresses)
    forgets = setup.work.publications > protocol.max_events
    probability = float(protocol.settings.get("forwarding_probability", 1.0))
    remembered = (messages, count) if forgets else (1, 1)
    return State(
        protocol.ttl,
        protocol.max_events,
        probability,
        forgets,
        np.zeros((messages, count), np.uint8),
        np.zeros(remembered, np.int32),
        np.zeros(count if forgets else 1, np.int32),
    )


def with_more_messages(state: State, messages: int) -> State:
    """The same with room for more messages on their way."""
    grown = {}
    for name in ("known", "ordinals") if state.forgets else ("known",):
        old = getattr(state, name)
        grown[name] = np.zeros((messages, old.shape[1]), old.dtype)
        grown[name][: len(old)] = old
    return state._replace(**grown)


@inlined
def _hold(core, state, i, peer, message, hops, now):
    is_first = not state.known[message, i]
    state.known[message, i] = 1
    if state.forgets:
        state.ordinals[message, i] = state.taken[i]
        state.taken[i] += 1
    tell_held(core, now, i, peer, message, hops, is_first)
    if core.nodes[i].first_subscription != NONE:
        deliver(core, now, i, peer, message)


@inlined
def publish(core, state, i, content, number, now):
    """Flood a publication."""
    message = make_message(core, _FLOOD, core.addresses[i], number, content)
    state.known[message, :] = 0
    tell_originated(core, now, i, message, number)
    _hold(core, state, i, NONE, message, 0, now)
    send(core, now, i, BROADCAST, message, state.ttl)
    let_go(core, message)


@inlined
def receive(core, state, i, sender, message, word, broadcast, now):
    """Hold, deliver and pass on a flood heard for the first time."""
    if state.known[message, i] and not (state.forgets and state.taken[i] - state.ordinals[message, i] > state.memory):
        drop(core, now, i, core.addresses[sender], message, DUPLICATE)
        return
    peer = core.addresses[sender]
    _hold(core, state, i, peer, message, state.ttl - word + 1, now)
    if word <= 1:
        drop(core, now, i, peer, message, TTL)
    elif state.forwarding_probability < 1.0 and stream_uniform(core, i) >= state.forwarding_probability:
        drop(core, now, i, peer, message, CHANCE)
    else:
        tell_forwarded(core, now, i, peer, message, 0)
        send(core, now, i, BROADCAST, message, word - 1)

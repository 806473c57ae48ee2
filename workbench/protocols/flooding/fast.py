"""The twin of `workbench.protocols.flooding.node`, and of gossip, which is flooding that passes on by chance.

A message is a publication, its word the ttl. What a node remembers is a byte per node and message on its way: nobody
asks for a publication of which no frame is left. A memory that may forget while frames are on their way
(``max_events`` below the number of publications) is kept exactly, without keeping it: a node remembers the
publications that it took in last, so it is enough to number those and compare.
"""

from __future__ import annotations

from collections import namedtuple
from enum import auto
from typing import Any

import numpy as np

from workbench.attributes.model import Attribute
from workbench.protocols.flooding import rules, wire
from workbench.sim.fast import twin
from workbench.sim.fast.twin import GIVEN, NONE, Array, Fields, Needs, Setup, compiled, hot


class Reason(twin.Reasons):
    """Its own reasons why messages end."""

    CHANCE = auto()


class Message(twin.Messages):
    """What its messages are called."""

    FLOOD = auto()


twin.compiled_rules(rules)

FIELDS: Fields = {
    "ttl": int,
    "max_events": int,  # publications that a node remembers
    "forwarding_probability": GIVEN,
    "forgets": GIVEN,  # whether there are more than those
    "known": Array(np.uint8, ("messages", "nodes")),  # 1 if a node ever held it
    "ordinals": Array(np.int32, ("messages", "nodes"), only_if="forgets"),  # see `recent`
    "taken": Array(np.int32, "nodes", only_if="forgets"),  # publications that a node has taken in so far
}
State: Any = namedtuple("State", FIELDS)


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Bytes of the frame of a publication."""
    return len(wire.encode(wire.Flood(0, 0, 1, attributes)))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """What a reception of a broadcast, one of a unicast, and any other call takes at most."""
    rows = 2 + setup.work.most_subscriptions * setup.work.most_samples
    return Needs(rows, 1, 0), Needs(0, 0, 0), Needs(rows, 1, 1)


def make_state(setup: Setup, messages: int) -> Any:
    """The memory of all nodes, for so many messages on their way at once."""
    forgets = setup.work.publications > setup.protocol.max_events
    probability = float(setup.protocol.settings.get("forwarding_probability", 1.0))
    return twin.make(State, FIELDS, setup, messages, forwarding_probability=probability, forgets=forgets)


@hot
def _hold(core, state, i, peer, message, hops, now):
    is_first = not state.known[message, i]
    state.known[message, i] = 1
    if state.forgets:
        state.taken[i] += 1
        state.ordinals[message, i] = state.taken[i]
    twin.hold(core, now, i, peer, message, hops, is_first)


@hot
def _remembers(state, i, message):
    if state.known[message, i] and state.forgets:
        return twin.is_recent(state.ordinals[message, i], state.taken[i], state.max_events)
    return state.known[message, i] != 0


@compiled
def publish(core, state, i, content, number, now):
    """Flood a publication."""
    message = twin.make_message(core, Message.FLOOD, core.addresses[i], number, content)
    state.known[message, :] = 0
    twin.report_originated(core, now, i, message, number)
    _hold(core, state, i, NONE, message, 0, now)
    twin.send(core, now, i, twin.BROADCAST, message, state.ttl)
    twin.let_go(core, message)


@hot
def receive(core, state, i, sender, message, word, broadcast, now):
    """Hold, deliver and pass on a flood heard for the first time."""
    if _remembers(state, i, message):
        twin.drop(core, now, i, core.addresses[sender], message, twin.Reason.DUPLICATE)
        return
    peer = core.addresses[sender]
    _hold(core, state, i, peer, message, rules.hops_taken(state.ttl, word), now)
    if word <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
    elif state.forwarding_probability < 1.0 and twin.stream_uniform(core, i) >= state.forwarding_probability:
        twin.drop(core, now, i, peer, message, Reason.CHANCE)
    else:
        twin.report_forwarded(core, now, i, peer, message, 0)
        twin.send(core, now, i, twin.BROADCAST, message, word - 1)

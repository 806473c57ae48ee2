"""The fast engine's twin of the flooding node, and of the gossip node, which forwards with a probability.

A message is a publication; each frame of it carries the ttl. A node's memory is one byte per node and message in
flight: once no frame of a publication is left, no node looks it up. If ``max_events`` is below the number of
publications, nodes may forget while frames are in flight. Then each node numbers the publications that it takes in:
it remembers those with the latest ``max_events`` numbers, exactly as the node with its list does.
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
    """Reasons to drop a message that only this protocol has."""

    CHANCE = auto()


class Message(twin.Messages):
    """Names of the protocol's messages."""

    FLOOD = auto()


twin.compiled_rules(rules)

FIELDS: Fields = {
    "ttl": int,
    "max_events": int,  # publications that a node remembers
    "forwarding_probability": GIVEN,
    "forgets": GIVEN,  # whether a run has more publications than that
    "known": Array(np.uint8, ("messages", "nodes")),  # 1 if the node ever held the message
    "ordinals": Array(np.int32, ("messages", "nodes"), only_if="forgets"),  # see `recent`
    "taken": Array(np.int32, "nodes", only_if="forgets"),  # publications that a node has taken in so far
}
State: Any = namedtuple("State", FIELDS)


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Return the size of a publication's frame (bytes)."""
    return len(wire.encode(wire.Flood(0, 0, 1, attributes)))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """Return the most entries of the engine's pools used by one broadcast reception, one unicast, any other call."""
    rows = 2 + setup.work.most_subscriptions * setup.work.most_samples
    return Needs(rows, 1, 0), Needs(0, 0, 0), Needs(rows, 1, 1)


def make_state(setup: Setup, messages: int) -> Any:
    """Return the state of all nodes, with room for ``messages`` messages in flight at once."""
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
def receive(core, state, i, sender, message, ttl, broadcast, now):
    """Hold, deliver and forward a flood heard for the first time; drop duplicates."""
    if _remembers(state, i, message):
        twin.drop(core, now, i, core.addresses[sender], message, twin.Reason.DUPLICATE)
        return
    peer = core.addresses[sender]
    _hold(core, state, i, peer, message, rules.hops_taken(state.ttl, ttl), now)
    if ttl <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
    elif state.forwarding_probability < 1.0 and twin.stream_uniform(core, i) >= state.forwarding_probability:
        twin.drop(core, now, i, peer, message, Reason.CHANCE)
    else:
        twin.report_forwarded(core, now, i, peer, message, 0)
        twin.send(core, now, i, twin.BROADCAST, message, ttl - 1)

"""The fast engine's version of the flooding node, and of the gossip node, which forwards with a probability.

A message is a publication; each of its frames carries its own ttl. For each node and each message in flight, one byte
states whether the node knows the message. The bytes of a message are reused once none of its frames is in flight. If
``max_events`` is below the number of publications, nodes may forget a publication while its frames are in flight. Then
each node numbers the publications that it receives for the first time and remembers the last ``max_events`` of them,
exactly as `FloodingNode` does.

Parameters of the functions: ``core``, the engine's arrays (`workbench.sim.fast.layout.Core`); ``state``, the arrays of
this protocol; ``i``, the index of the node; ``now``, the current time (µs).
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
    """Drop reasons that exist only in this protocol."""

    CHANCE = auto()


class Message(twin.Messages):
    """Names of the protocol's messages."""

    FLOOD = auto()


twin.compiled_rules(rules)

NEW, KNOWN, LOST = range(3)  # a message at a node; LOST: the node knew it before a crash

FIELDS: Fields = {
    "ttl": int,
    "max_events": int,  # publications that a node remembers
    "forwarding_probability": GIVEN,
    "forgets": GIVEN,  # whether a run has more than max_events publications
    "known": Array(np.uint8, ("messages", "nodes"), survives=True),  # NEW, KNOWN or LOST
    "ordinals": Array(np.int32, ("messages", "nodes"), only_if="forgets"),  # see `twin.is_recent`
    "taken": Array(np.int32, "nodes", only_if="forgets"),  # publications that a node has taken in so far
}
State: Any = namedtuple("State", FIELDS)


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Return the size in bytes of the frame of a publication with these attributes."""
    return len(wire.encode(wire.Flood(0, 0, 1, attributes)))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """Return a `Needs` for each of three kinds of calls of a node: upper bounds on what one such call adds.

    The kinds are the reception of a broadcast, the reception of a unicast frame, and any other call. A `Needs` bounds
    the trace rows, the frames and the messages.
    """
    row_count = 2 + setup.work.most_subscriptions * setup.work.most_samples
    return Needs(row_count, 1, 0), Needs(0, 0, 0), Needs(row_count, 1, 1)


def make_state(setup: Setup, messages: int) -> Any:
    """Return the initial state of all nodes, with room for ``messages`` messages in flight at once."""
    forgets = setup.work.publications > setup.protocol.max_events
    probability = float(setup.protocol.settings.get("forwarding_probability", 1.0))
    return twin.make(State, FIELDS, setup, messages, forwarding_probability=probability, forgets=forgets)


def erase(setup: Setup, state: Any, i: int, first_number: int) -> None:
    """Mark the messages that node ``i`` knows as LOST, because a crash has erased the node's memory.

    When a message marked as LOST arrives, the node processes the message like a new one. But this does not count as the
    node's first reception of the message. ``first_number`` has no effect.
    """
    state.known[:, i] = np.where(state.known[:, i] == NEW, NEW, LOST)


@hot
def _record_event(core, state, i, peer, message, hops, now):
    is_first = state.known[message, i] == NEW
    state.known[message, i] = KNOWN
    if state.forgets:
        state.taken[i] += 1
        state.ordinals[message, i] = state.taken[i]
    twin.hold(core, now, i, peer, message, hops, is_first)


@hot
def _is_known(state, i, message):
    if state.known[message, i] and state.forgets:
        return twin.is_recent(state.ordinals[message, i], state.taken[i], state.max_events)
    return state.known[message, i] == KNOWN


@compiled
def publish(core, state, i, content, number, now):
    """Flood a new publication of node ``i``.

    ``content``: row of the publication's content in ``core.contents``; ``number``: its sequence number at the node.
    """
    message = twin.make_message(core, Message.FLOOD, core.addresses[i], number, content)
    state.known[message, :] = 0
    twin.report_originated(core, now, i, message, number)
    _record_event(core, state, i, NONE, message, 0, now)
    twin.send(core, now, i, twin.BROADCAST, message, state.ttl)
    twin.let_go(core, message)


@hot
def receive(core, state, i, sender, message, ttl, broadcast, now):
    """Process a frame with a publication that node ``i`` receives from node ``sender``.

    The node records and delivers a new publication. Then it forwards the publication, or drops it if ``ttl`` is at most
    1, or by chance with gossip. A known publication is dropped as a duplicate. ``message``: row of the publication in
    ``core.messages``; ``broadcast`` has no effect.
    """
    if _is_known(state, i, message):
        twin.drop(core, now, i, core.addresses[sender], message, twin.Reason.DUPLICATE)
        return
    peer = core.addresses[sender]
    _record_event(core, state, i, peer, message, rules.hops_taken(state.ttl, ttl), now)
    if ttl <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
    elif state.forwarding_probability < 1.0 and twin.stream_uniform(core, i) >= state.forwarding_probability:
        twin.drop(core, now, i, peer, message, Reason.CHANCE)
    else:
        twin.report_forwarded(core, now, i, peer, message, 0)
        twin.send(core, now, i, twin.BROADCAST, message, ttl - 1)

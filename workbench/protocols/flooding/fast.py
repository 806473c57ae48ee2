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
from workbench.protocols.flooding.rules import hops_taken
from workbench.sim.fast.air import let_go, make_message, send
from workbench.sim.fast.draws import stream_uniform
from workbench.sim.fast.fields import GIVEN, Array, Fields, make
from workbench.sim.fast.layout import BROADCAST, DUPLICATE, FIRST_REASON, NONE, TTL, Needs
from workbench.sim.fast.matching import deliver
from workbench.sim.fast.prepare import Setup
from workbench.sim.fast.recent import is_recent
from workbench.sim.fast.record import drop, tell_forwarded, tell_held, tell_originated
from workbench.sim.fast.compiled import compiled, hot

REASONS = ("chance",)
(CHANCE,) = range(FIRST_REASON, FIRST_REASON + len(REASONS))

MESSAGES = ("", "flood")
_FLOOD = 1

FIELDS: Fields = {
    "ttl": GIVEN,
    "memory": GIVEN,  # publications that a node remembers
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


def longest_frame_B(setup: Setup) -> int:
    """Bytes of the longest frame that can be sent."""
    return int(setup.work.contents["size_B"].max(initial=1))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """What a reception of a broadcast, one of a unicast, and any other call takes at most."""
    rows = 2 + setup.work.most_subscriptions * setup.work.most_samples
    return Needs(rows, 1, 0), Needs(0, 0, 0), Needs(rows, 1, 1)


def make_state(setup: Setup, messages: int) -> Any:
    """The memory of all nodes, for so many messages on their way at once."""
    protocol = setup.protocol
    return make(
        State,
        FIELDS,
        {"nodes": len(setup.network.addresses), "messages": messages},
        ttl=protocol.ttl,
        memory=protocol.max_events,
        forwarding_probability=float(protocol.settings.get("forwarding_probability", 1.0)),
        forgets=setup.work.publications > protocol.max_events,
    )


compiled(hops_taken)


@hot
def _hold(core, state, i, peer, message, hops, now):
    is_first = not state.known[message, i]
    state.known[message, i] = 1
    if state.forgets:
        state.taken[i] += 1
        state.ordinals[message, i] = state.taken[i]
    tell_held(core, now, i, peer, message, hops, is_first)
    if core.nodes[i].first_subscription != NONE:
        deliver(core, now, i, peer, message)


@hot
def _remembers(state, i, message):
    if state.known[message, i] and state.forgets:
        return is_recent(state.ordinals[message, i], state.taken[i], state.memory)
    return state.known[message, i] != 0


@compiled
def publish(core, state, i, content, number, now):
    """Flood a publication."""
    message = make_message(core, _FLOOD, core.addresses[i], number, content)
    state.known[message, :] = 0
    tell_originated(core, now, i, message, number)
    _hold(core, state, i, NONE, message, 0, now)
    send(core, now, i, BROADCAST, message, state.ttl)
    let_go(core, message)


@hot
def receive(core, state, i, sender, message, word, broadcast, now):
    """Hold, deliver and pass on a flood heard for the first time."""
    if _remembers(state, i, message):
        drop(core, now, i, core.addresses[sender], message, DUPLICATE)
        return
    peer = core.addresses[sender]
    _hold(core, state, i, peer, message, hops_taken(state.ttl, word), now)
    if word <= 1:
        drop(core, now, i, peer, message, TTL)
    elif state.forwarding_probability < 1.0 and stream_uniform(core, i) >= state.forwarding_probability:
        drop(core, now, i, peer, message, CHANCE)
    else:
        tell_forwarded(core, now, i, peer, message, 0)
        send(core, now, i, BROADCAST, message, word - 1)

"""The twin of `workbench.protocols.gossip.pieces`: which pieces of which publication have come to whom.

A message is a piece, its word the ttl. Publications are numbered as they are made, from 0. What a node keeps of one is
a row of ``pairs`` and two sets of bits, 24 bytes or more for each node and publication; what nobody has heard of costs
address space alone. An id is remembered if fewer than ``max_events`` others have been taken in since (see `flooding`).
"""

from __future__ import annotations

from collections import namedtuple
from enum import auto
from typing import Any

import numpy as np

from workbench.attributes.event_bytes import event_bytes
from workbench.attributes.model import Attribute
from workbench.protocols.flooding import rules
from workbench.protocols.gossip import wire
from workbench.sim.fast import twin
from workbench.sim.fast.twin import GIVEN, NONE, Array, Fields, Needs, Setup, compiled, hot


class Reason(twin.Reasons):
    """Its own reasons why messages end."""

    CHANCE = auto()
    EVICTED = auto()


class Message(twin.Messages):
    """What its messages are called."""

    PIECE = auto()


MOST_PAIRS = 1 << 26  # words of bits for the pieces that came; as many for those kept
_PUBLISHED = 0  # the place in ``numbers``

_EVENT = np.dtype([("sequence", np.int64), ("origin", np.int32)], align=True)

# ``ordinal``: see `recent`; ``missing`` pieces while it is being put together, when ``next`` and ``previous`` link it.
_PAIR = np.dtype(
    [
        ("ordinal", np.int32),
        ("next", np.int32),
        ("previous", np.int32),
        ("hops", np.int32),
        ("missing", np.int16),
        ("held", np.int16),
    ],
    align=True,
)

# ``taken``: publications taken in so far; ``partial``: those being put together, oldest first.
_NODE = np.dtype([("taken", np.int32), ("partial", twin.LIST)], align=True)

# Of each content: its pieces, bytes and airtime of a frame with each but the last, and with that.
_CUT = np.dtype(
    [
        ("pieces", np.int32),
        ("size_B", np.int32),
        ("airtime_us", np.int32),
        ("last_size_B", np.int32),
        ("last_airtime_us", np.int32),
    ],
    align=True,
)

# Of messages on their way: which publication they are of, and which piece.
_PART = np.dtype([("event", np.int32), ("number", np.int32)], align=True)

twin.compiled_rules(rules)

FIELDS: Fields = {
    "ttl": int,
    "max_events": int,  # publications that a node remembers
    "forwarding_probability": float,
    "max_partial": int,
    "cuts": GIVEN,  # by content
    "parts": Array(_PART, "messages"),
    "events": Array(_EVENT, "publications"),
    "pairs": Array(_PAIR, ("publications", "nodes")),
    # A bit for each piece that came, and for each that is kept.
    "came": Array(np.uint64, ("publications", "nodes", "words")),
    "kept": Array(np.uint64, ("publications", "nodes", "words")),
    "nodes": Array(_NODE, "nodes", {"partial": twin.NO_ROWS}),
    "numbers": Array(np.int64, 1),
}
State: Any = namedtuple("State", FIELDS)


# From a scenario to arrays


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Bytes of an event: what is cut."""
    return len(event_bytes(attributes))


def _frame_B(length_B: int, pieces: int, number: int) -> int:
    begin, end = wire.piece_bounds(length_B, pieces, number)
    return len(wire.encode(wire.Piece(0, 0, 1, pieces, number, length_B, bytes(end - begin))))


def _cuts(setup: Setup) -> np.ndarray:
    lengths_B, place = np.unique(setup.work.contents["size_B"], return_inverse=True)
    cuts = np.zeros(max(1, len(lengths_B)), _CUT)
    for cut, length_B in zip(cuts, lengths_B.tolist(), strict=False):
        pieces = wire.number_of_pieces(length_B, setup.protocol.settings["pieces"])
        first_B, last_B = (_frame_B(length_B, pieces, number) for number in (0, pieces - 1))
        airtimes_us = setup.radio.airtime_us(first_B), setup.radio.airtime_us(last_B)
        cut["pieces"], cut["size_B"], cut["last_size_B"] = pieces, first_B, last_B
        cut["airtime_us"], cut["last_airtime_us"] = airtimes_us
    return cuts[place] if len(place) else cuts


def longest_frame_B(setup: Setup) -> int:
    """Bytes of the longest frame that can be sent."""
    return int(_cuts(setup)["size_B"].max(initial=1))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """What a reception of a broadcast, one of a unicast, and any other call takes at most."""
    rows = 3 + setup.work.most_subscriptions * setup.work.most_samples
    pieces = int(_cuts(setup)["pieces"].max())
    return Needs(rows, 1, 0), Needs(0, 0, 0), Needs(rows, pieces, pieces)


def make_state(setup: Setup, messages: int) -> Any:
    """The memory of all nodes, for so many messages on their way at once."""
    settings = setup.protocol.settings
    count, publications = len(setup.network.addresses), max(1, setup.work.publications)
    words = -(-settings["pieces"] // 64)
    if count * publications * words > MOST_PAIRS:
        raise twin.NoFastTwinError(
            f"pieces of {publications} publications at {count} nodes are more than {MOST_PAIRS} words of 64 "
            f"for it to keep in mind"
        )
    return twin.make(
        State,
        FIELDS,
        setup,
        messages,
        {"publications": publications, "words": words},
        cuts=_cuts(setup),
    )


# What a node remembers


@compiled
def _has(bits, event, i, number):
    return bits[event, i, number >> 6] >> np.uint64(number & 63) & np.uint64(1) != 0


@compiled
def _add(bits, event, i, number):
    bits[event, i, number >> 6] |= np.uint64(1) << np.uint64(number & 63)


@compiled
def _clear(bits, event, i):
    for word in range(bits.shape[2]):
        bits[event, i, word] = np.uint64(0)


@hot
def _is_known(state, i, event):
    return twin.is_recent(state.pairs[event, i].ordinal, state.nodes[i].taken, state.max_events)


@compiled
def _take_in(state, i, event):
    """Remember a publication, none of whose pieces has come as far as node ``i`` remembers."""
    state.nodes[i].taken += 1
    state.pairs[event, i].ordinal = state.nodes[i].taken
    _clear(state.came, event, i)


@compiled
def _begin(core, state, i, event, pieces, now):
    """Put a publication together, in place of the oldest if there are as many as may be."""
    partial = state.nodes[i].partial
    if partial.count >= state.max_partial:
        oldest = np.int64(partial.first)
        _forget(state, i, oldest)
        if core.traces:
            it = state.events[oldest]
            twin.add_row(
                core, now, i, twin.Event.DROPPED, NONE, Message.PIECE, it.origin, it.sequence, 0, 0, Reason.EVICTED
            )
        else:
            core.dropped[Reason.EVICTED] += 1
    state.pairs[event, i].missing = pieces
    state.pairs[event, i].hops = 0
    twin.append(partial, state.pairs[:, i], event)
    _clear(state.kept, event, i)


@compiled
def _forget(state, i, event):
    state.pairs[event, i].missing = 0
    twin.remove(state.nodes[i].partial, state.pairs[:, i], event)


@hot
def _keep(core, state, i, peer, message, ttl, now):
    event, number = state.parts[message].event, state.parts[message].number
    pair = state.pairs[event, i]
    is_known = _is_known(state, i, event)
    if not is_known and pair.missing == 0:
        _begin(core, state, i, event, state.cuts[core.messages[message].content].pieces, now)
    if not is_known:
        _take_in(state, i, event)
    _add(state.came, event, i, number)
    # Nothing missing: it was given up. There already: it was begun before its id was forgotten.
    if pair.missing == 0 or _has(state.kept, event, i, number):
        return
    _add(state.kept, event, i, number)
    pair.missing -= 1
    pair.hops = max(pair.hops, rules.hops_taken(state.ttl, ttl))
    if pair.missing == 0:
        _forget(state, i, event)
        twin.hold_pair(core, state.pairs, i, peer, message, event, pair.hops, now)


# What the loop calls


@compiled
def publish(core, state, i, content, number, now):
    """Broadcast a publication piece by piece."""
    event = state.numbers[_PUBLISHED]
    state.numbers[_PUBLISHED] = event + 1
    state.events[event].origin = core.addresses[i]
    state.events[event].sequence = number
    _take_in(state, i, event)
    cut = state.cuts[content]
    for piece in range(cut.pieces):
        is_last = piece == cut.pieces - 1
        size_B = cut.last_size_B if is_last else cut.size_B
        airtime_us = cut.last_airtime_us if is_last else cut.airtime_us
        message = twin.take_message(core, Message.PIECE, core.addresses[i], number, content, size_B, airtime_us)
        state.parts[message].event = event
        state.parts[message].number = piece
        _add(state.came, event, i, piece)
        if piece == 0:
            twin.report_originated(core, now, i, message, number)
            twin.hold_pair(core, state.pairs, i, NONE, message, event, 0, now)
        twin.send(core, now, i, twin.BROADCAST, message, state.ttl)
        twin.let_go(core, message)


@hot
def receive(core, state, i, sender, message, word, broadcast, now):
    """Keep a piece heard for the first time, and pass it on if chance has it."""
    peer = core.addresses[sender]
    event = state.parts[message].event
    if _is_known(state, i, event) and _has(state.came, event, i, state.parts[message].number):
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    _keep(core, state, i, peer, message, word, now)
    if word <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
    elif twin.stream_uniform(core, i) >= state.forwarding_probability:
        twin.drop(core, now, i, peer, message, Reason.CHANCE)
    else:
        twin.report_forwarded(core, now, i, peer, message, 0)
        twin.send(core, now, i, twin.BROADCAST, message, word - 1)

"""The fast engine's version of the node that gossips pieces (`workbench.protocols.gossip.pieces`).

A message is a piece; each of its frames carries its own ttl. Publications are numbered from 0 in the order of
publishing. The state of a publication at a node is a row of ``pairs`` and two bit sets, 24 bytes or more. Until the
node hears the publication, these take address space, but no memory. A node forgets a publication after it has received
``max_events`` newer ones, as in `workbench.protocols.flooding.fast`.
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
    """Drop reasons that exist only in this protocol."""

    CHANCE = auto()
    EVICTED = auto()


class Message(twin.Messages):
    """Names of the protocol's messages."""

    PIECE = auto()


MOST_PAIRS = 1 << 26  # most 64-bit words of the bit set of received pieces; the set of stored pieces has as many
_PUBLISHED = 0  # index in ``numbers``

_EVENT = np.dtype([("sequence", np.int64), ("origin", np.int32)], align=True)

# ``ordinal``: see `twin.is_recent`; ``missing``: number of pieces still needed while the publication is reassembled.
# During that time ``next`` and ``previous`` link it into the node's list ``partial``.
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

# ``taken``: publications taken in so far; ``partial``: publications being reassembled, oldest first.
_NODE = np.dtype([("taken", np.int32), ("partial", twin.LIST)], align=True)

# How a publication's content is split: number of pieces; size and airtime of a piece's frame; size and airtime of the
# last piece's frame, which may be shorter.
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

# The publication and the piece of each message in flight.
_MESSAGE_PIECE = np.dtype([("event", np.int32), ("number", np.int32)], align=True)

twin.compiled_rules(rules)

FIELDS: Fields = {
    "ttl": int,
    "max_events": int,  # publications that a node remembers
    "forwarding_probability": float,
    "max_partial": int,
    "cuts": GIVEN,  # one for each content
    "message_pieces": Array(_MESSAGE_PIECE, "messages"),
    "events": Array(_EVENT, "publications"),
    "pairs": Array(_PAIR, ("publications", "nodes")),
    # A bit for each piece that was received, and a bit for each piece that is stored.
    "received": Array(np.uint64, ("publications", "nodes", "words")),
    "stored": Array(np.uint64, ("publications", "nodes", "words")),
    "nodes": Array(_NODE, "nodes", {"partial": twin.NO_ROWS}),
    "numbers": Array(np.int64, 1),
}
State: Any = namedtuple("State", FIELDS)


# From a scenario to arrays


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Return the size in bytes of a publication with these attributes before it is split into pieces."""
    return len(event_bytes(attributes))


def _frame_B(length_B: int, pieces: int, number: int) -> int:
    piece_begin, piece_end = wire.piece_bounds(length_B, pieces, number)
    return len(wire.encode(wire.Piece(0, 0, 1, pieces, number, length_B, bytes(piece_end - piece_begin))))


def _compute_cuts(setup: Setup) -> np.ndarray:
    lengths_B, inverse = np.unique(setup.work.contents["size_B"], return_inverse=True)
    cuts = np.zeros(max(1, len(lengths_B)), _CUT)
    for cut, length_B in zip(cuts, lengths_B.tolist(), strict=False):
        piece_count = wire.number_of_pieces(length_B, setup.protocol.settings["pieces"])
        first_B, last_B = (_frame_B(length_B, piece_count, number) for number in (0, piece_count - 1))
        airtimes_us = setup.radio.airtime_us(first_B), setup.radio.airtime_us(last_B)
        cut["pieces"], cut["size_B"], cut["last_size_B"] = piece_count, first_B, last_B
        cut["airtime_us"], cut["last_airtime_us"] = airtimes_us
    return cuts[inverse] if len(inverse) else cuts


def longest_frame_B(setup: Setup) -> int:
    """Return the size of the longest frame that can be sent (bytes)."""
    return int(_compute_cuts(setup)["size_B"].max(initial=1))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """Return a `Needs` for each of three kinds of calls of a node: upper bounds on what one such call adds.

    The kinds are the reception of a broadcast, the reception of a unicast frame, and any other call. A `Needs` bounds
    the trace rows, the frames and the messages.
    """
    row_count = 3 + setup.work.most_subscriptions * setup.work.most_samples
    piece_count = int(_compute_cuts(setup)["pieces"].max())
    return Needs(row_count, 1, 0), Needs(0, 0, 0), Needs(row_count, piece_count, piece_count)


def make_state(setup: Setup, messages: int) -> Any:
    """Return the initial state of all nodes, with room for ``messages`` messages in flight at once."""
    settings = setup.protocol.settings
    node_count, publications = len(setup.network.addresses), max(1, setup.work.publications)
    word_count = -(-settings["pieces"] // 64)
    if node_count * publications * word_count > MOST_PAIRS:
        raise twin.NoFastTwinError(
            f"gossip: the pieces of {publications} publications at {node_count} nodes take "
            f"{node_count * publications * word_count} words of 64 bits; the fast engine stores at most {MOST_PAIRS}, "
            "so use the reference engine"
        )
    return twin.make(
        State,
        FIELDS,
        setup,
        messages,
        {"publications": publications, "words": word_count},
        cuts=_compute_cuts(setup),
    )


# A node's memory


@compiled
def _has_bit(bits, event, i, number):
    return bits[event, i, number >> 6] >> np.uint64(number & 63) & np.uint64(1) != 0


@compiled
def _set_bit(bits, event, i, number):
    bits[event, i, number >> 6] |= np.uint64(1) << np.uint64(number & 63)


@compiled
def _clear_bits(bits, event, i):
    for word_index in range(bits.shape[2]):
        bits[event, i, word_index] = np.uint64(0)


@hot
def _is_known(state, i, event):
    return twin.is_recent(state.pairs[event, i].ordinal, state.nodes[i].taken, state.max_events)


@compiled
def _add_known_event(state, i, event):
    """Make node ``i`` remember the publication with the number ``event``, with an empty set of received pieces."""
    state.nodes[i].taken += 1
    state.pairs[event, i].ordinal = state.nodes[i].taken
    _clear_bits(state.received, event, i)


@compiled
def _begin_reassembly(core, state, i, event, pieces, now):
    """Make node ``i`` begin to reassemble the publication with the number ``event`` from ``pieces`` pieces.

    If the node reassembles ``max_partial`` publications already, it first gives up the oldest, which is logged as
    dropped with the reason EVICTED.
    """
    partial = state.nodes[i].partial
    if partial.count >= state.max_partial:
        oldest_event = np.int64(partial.first)
        _remove_partial(state, i, oldest_event)
        if core.traces:
            evicted_event = state.events[oldest_event]
            twin.add_row(
                core,
                now,
                i,
                twin.Event.DROPPED,
                NONE,
                Message.PIECE,
                evicted_event.origin,
                evicted_event.sequence,
                0,
                0,
                Reason.EVICTED,
            )
        else:
            core.dropped[Reason.EVICTED] += 1
    state.pairs[event, i].missing = pieces
    state.pairs[event, i].hops = 0
    twin.append(partial, state.pairs[:, i], event)
    _clear_bits(state.stored, event, i)


@compiled
def _remove_partial(state, i, event):
    state.pairs[event, i].missing = 0
    twin.remove(state.nodes[i].partial, state.pairs[:, i], event)


@hot
def _store_piece(core, state, i, peer, message, ttl, now):
    event, piece_number = state.message_pieces[message].event, state.message_pieces[message].number
    pair = state.pairs[event, i]
    is_known = _is_known(state, i, event)
    if not is_known and pair.missing == 0:
        _begin_reassembly(core, state, i, event, state.cuts[core.messages[message].content].pieces, now)
    if not is_known:
        _add_known_event(state, i, event)
    _set_bit(state.received, event, i, piece_number)
    # If no piece is missing, the publication was evicted or is complete. A piece may be stored although the node does
    # not remember receiving it: it forgot the id during the reassembly.
    if pair.missing == 0 or _has_bit(state.stored, event, i, piece_number):
        return
    _set_bit(state.stored, event, i, piece_number)
    pair.missing -= 1
    pair.hops = max(pair.hops, rules.hops_taken(state.ttl, ttl))
    if pair.missing == 0:
        _remove_partial(state, i, event)
        twin.hold_pair(core, state.pairs, i, peer, message, event, pair.hops, now)


# Called by the engine's loop


@compiled
def publish(core, state, i, content, number, now):
    """Broadcast a new publication of node ``i``, piece by piece.

    ``content``: row of the publication's content in ``core.contents``; ``number``: its sequence number at the node.
    """
    event = state.numbers[_PUBLISHED]
    state.numbers[_PUBLISHED] = event + 1
    state.events[event].origin = core.addresses[i]
    state.events[event].sequence = number
    _add_known_event(state, i, event)
    cut = state.cuts[content]
    for piece in range(cut.pieces):
        is_last = piece == cut.pieces - 1
        size_B = cut.last_size_B if is_last else cut.size_B
        airtime_us = cut.last_airtime_us if is_last else cut.airtime_us
        message = twin.take_message(core, Message.PIECE, core.addresses[i], number, content, size_B, airtime_us)
        state.message_pieces[message].event = event
        state.message_pieces[message].number = piece
        _set_bit(state.received, event, i, piece)
        if piece == 0:
            twin.report_originated(core, now, i, message, number)
            twin.hold_pair(core, state.pairs, i, NONE, message, event, 0, now)
        twin.send(core, now, i, twin.BROADCAST, message, state.ttl)
        twin.let_go(core, message)


@hot
def receive(core, state, i, sender, message, ttl, broadcast, now):
    """Process a piece (a part of a publication) that node ``i`` receives from node ``sender``.

    A duplicate is dropped. A new piece is stored. Then it is forwarded with the probability ``forwarding_probability``,
    unless ``ttl`` is at most 1. ``message``: row of the piece in ``core.messages``; ``broadcast`` has no effect.
    """
    peer = core.addresses[sender]
    event = state.message_pieces[message].event
    if _is_known(state, i, event) and _has_bit(state.received, event, i, state.message_pieces[message].number):
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    _store_piece(core, state, i, peer, message, ttl, now)
    if ttl <= 1:
        twin.drop(core, now, i, peer, message, twin.Reason.TTL)
    elif twin.stream_uniform(core, i) >= state.forwarding_probability:
        twin.drop(core, now, i, peer, message, Reason.CHANCE)
    else:
        twin.report_forwarded(core, now, i, peer, message, 0)
        twin.send(core, now, i, twin.BROADCAST, message, ttl - 1)

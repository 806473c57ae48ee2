"""The state of coded diffusion in the fast engine: the memory of all nodes as arrays, built from a scenario.

Events are numbered from 0 in the order of publishing. ``pairs`` has an element (16 bytes) for each event and node: when
the node last heard or sent it, whether the node remembers it and ever held it, and the number of its generation, if
any. Elements of events that no node has heard take address space, but no memory.

A generation is a node's state for an event that it decodes or stores: a row of ``generations`` and an element of
``matrices``. All nodes share one array of generations, numbered from 1.
"""

from __future__ import annotations

from collections import namedtuple
from enum import auto
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.attributes.event_bytes import event_bytes
from workbench.attributes.model import Attribute
from workbench.coding.fields import field as field_of
from workbench.protocols.coded_diffusion import wire
from workbench.protocols.coded_diffusion.fast.algebra import SYMBOL, tables
from workbench.protocols.coded_diffusion.rules import (
    collecting_us,
    forget_after_us,
    keep_us,
    packets_to_send,
    request_after_us,
)
from workbench.sim.fast import twin
from workbench.sim.fast.twin import GIVEN, Array, Fields, Needs, Pool, Setup


class Event(twin.Events):
    """Trace events that exist only in this protocol."""

    INNOVATIVE = auto()
    DECODED = auto()
    GENERATION_BEGUN = auto()


class Reason(twin.Reasons):
    """Drop reasons that exist only in this protocol."""

    EXPIRED = auto()
    FULL = auto()
    NOT_INNOVATIVE = auto()
    DECODED = auto()
    NOT_AT_HAND = auto()


class Message(twin.Messages):
    """Names of the protocol's messages."""

    EVENT = auto()
    CODED = auto()
    REQUEST = auto()


NO_GENERATION = 0
MOST_PAIRS = 1 << 27  # largest number of pairs: 2 GiB
_POOL_B = 1 << 26  # initial size of the pool of matrices (bytes)

EVENT = np.dtype([("sequence", np.int64), ("origin", np.int32), ("content", np.int32)], align=True)

# ``heard_us``: time at which a node last heard or sent a frame of an event, valid if ``knows`` is 1: the node remembers
# the event's id. ``generation``: its number, or NO_GENERATION. ``held``: whether the node ever held the event.
PAIR = np.dtype([("heard_us", np.int64), ("generation", np.int32), ("knows", np.int16), ("held", np.int16)], align=True)

# The fields are those of `node.Generation`. ``send_us`` and ``due_us`` are NONE if no timer runs; ``peer`` is the index
# of a neighbor, or NONE; ``next`` and ``previous`` link the generations of a node.
GENERATION = np.dtype(
    [
        ("send_us", np.int64),
        ("due_us", np.int64),
        ("event", np.int32),
        ("hops", np.int32),
        ("fresh", np.int32),
        ("rank", np.int32),
        ("has_sent", np.int32),
        ("requests", np.int32),
        ("peer", np.int32),
        ("requested", np.int32),
        ("next", np.int32),
        ("previous", np.int32),
    ],
    align=True,
)

# ``generations``: list of the node's generations, oldest first; ``known``: number of events that the node remembers;
# ``first_known``: the node remembers no event with a lower number.
NODE = np.dtype(
    [("next_search_us", np.int64), ("generations", twin.LIST), ("known", np.int32), ("first_known", np.int32)],
    align=True,
)


class Number(twin.Codes):
    """Indices of the counters in the state's field ``numbers``."""

    PUBLISHED = auto()
    FREE_GENERATION = auto()
    FREE_GENERATIONS = auto()


FIELDS: Fields = {
    # Parameters of the protocol.
    "generation_size": int,
    "bootstrap_factor": int,
    "forwarding_probability": float,
    "collecting_us": GIVEN,
    "rearm": bool,
    "max_events": int,
    "max_known": int,
    "forget_after_us": GIVEN,
    "max_requests": int,
    "request_after_us": GIVEN,
    "keep_us": GIVEN,
    "sends": GIVEN,  # numbers of packets to send after 0, 1, ... innovative packets
    # The finite field: see `algebra`.
    "order": GIVEN,
    "modulus": GIVEN,
    "degree": GIVEN,
    "powers": GIVEN,
    "logarithms": GIVEN,
    # Size and airtime of a coded packet's frame, for each content; size and airtime of a request's frame.
    "sizes_B": GIVEN,
    "airtimes_us": GIVEN,
    "request_size_B": GIVEN,
    "request_airtime_us": GIVEN,
    "first_text": GIVEN,  # number of the first text beyond those of the scenario; detail n has number first_text + n
    # The event and the encoding vector of each message in flight.
    "events_of": Array(np.int32, "messages"),
    "vectors": Array(SYMBOL, ("messages", "chunks")),
    # Published events, and the nodes' states of them.
    "events": Array(EVENT, "publications"),
    "pairs": Array(PAIR, ("publications", "nodes")),
    "nodes": Array(NODE, "nodes", {"generations": twin.NO_ROWS}),
    "generations": Pool(GENERATION, "generations", Number.FREE_GENERATION, first=NO_GENERATION + 1),
    "matrices": Array(SYMBOL, ("generations", "chunks", "chunks")),
    "most_new": GIVEN,  # most generations that one frame may begin: one at each neighbor
    # Scratch space.
    "coefficients": Array(SYMBOL, "chunks"),
    "row": Array(SYMBOL, "chunks"),
    "numbers": Array(np.int64, 3),
}
State: Any = namedtuple("State", FIELDS)


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Return the size in bytes of the frame of a whole event with these attributes."""
    return len(wire.encode_event(wire.Event(0, 0, attributes)))


def coded_sizes_B(setup: Setup) -> np.ndarray:
    """Return an array with the size in bytes of a coded packet's frame for each of the workload's ``contents``."""
    overhead_B = size_B(setup.protocol, ()) - len(event_bytes(()))
    lengths_B, inverse = np.unique(setup.work.contents["size_B"] - overhead_B, return_inverse=True)
    generation_size, field_order = setup.protocol.generation_size, setup.protocol.field
    sizes = [_coded_size_B(length_B, generation_size, field_order) for length_B in lengths_B.tolist()]
    return np.array(sizes or [1], np.int32)[inverse]


@lru_cache
def _coded_size_B(length_B: int, size: int, order: int) -> int:
    vector = (1,) + (0,) * (size - 1)
    information = bytes(wire.information_B(length_B, size, order))
    return len(wire.encode_coded(wire.Coded(0, 0, 0, size, order, length_B, vector, information)))


def request_size_B() -> int:
    """Return the size of a request's frame (bytes)."""
    return len(wire.encode_request(wire.Request(0, 0, 0)))


def longest_frame_B(setup: Setup) -> int:
    """Return the size of the longest frame that can be sent (bytes)."""
    longest = max(setup.work.contents["size_B"].max(initial=1), coded_sizes_B(setup).max(initial=1))
    return int(max(longest, request_size_B()))


def sends(protocol: Any) -> np.ndarray:
    """Return an array whose element n is the number of packets that a node sends after n innovative packets.

    n goes from 0 to the generation size.
    """
    packet_counts = range(protocol.generation_size + 1)
    return np.array([packets_to_send(protocol.forwarding_factor, count) for count in packet_counts], np.int32)


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """Return a `Needs` for each of three kinds of calls of a node: upper bounds on what one such call creates.

    The kinds are the reception of a broadcast, the reception of a unicast frame, and any other call. A `Needs` bounds
    the trace rows, the frames and the messages.
    """
    protocol, _, workload, _ = setup
    deliveries = workload.most_subscriptions * workload.most_samples
    generations = min(protocol.max_events, workload.publications)
    # A node may answer a request with a whole generation.
    packets = generations * (protocol.generation_size if protocol.max_requests else int(sends(protocol).max()))
    return (
        Needs(5 + deliveries + generations, protocol.bootstrap_factor, protocol.bootstrap_factor),
        Needs(1, 0, 0),
        Needs(2 + deliveries + generations, 1 + packets, 1 + packets),
    )


def make_state(setup: Setup, messages: int) -> Any:
    """Return the initial state of all nodes, with room for ``messages`` messages in flight at once."""
    protocol, network, workload, radio = setup
    node_count, publications = len(network.addresses), max(1, workload.publications)
    if node_count * publications > MOST_PAIRS:
        raise twin.NoFastTwinError(
            f"coded diffusion: {publications} publications at {node_count} nodes are "
            f"{node_count * publications} pairs of event and node; the fast engine stores at most {MOST_PAIRS}, so use "
            "the reference engine"
        )
    generation_size, field = protocol.generation_size, field_of(protocol.field)
    powers, logarithms = tables(field.order)
    sizes_B = coded_sizes_B(setup)
    collecting_time_us = collecting_us(protocol.collecting_time_ms)
    request_delay_us = request_after_us(collecting_time_us)
    storage_us = keep_us(protocol.max_requests, collecting_time_us, request_delay_us)
    most_new = max(1, int(np.diff(network.first).max(initial=0)))
    generations = 1 + most_new + min(node_count, _POOL_B // (generation_size * generation_size * SYMBOL().itemsize))
    return twin.make(
        State,
        FIELDS,
        setup,
        messages,
        {"publications": publications, "generations": generations, "chunks": generation_size},
        collecting_us=collecting_time_us,
        forget_after_us=forget_after_us(protocol.forget_after_s, generation_size, collecting_time_us, storage_us),
        request_after_us=request_delay_us,
        keep_us=storage_us,
        sends=sends(protocol),
        order=field.order,
        modulus=field.order if field.characteristic > 2 else 0,
        degree=field.degree,
        powers=powers,
        logarithms=logarithms,
        sizes_B=sizes_B,
        airtimes_us=np.array([radio.airtime_us(frame_B) for frame_B in sizes_B.tolist()], np.int32),
        request_size_B=request_size_B(),
        request_airtime_us=radio.airtime_us(request_size_B()),
        first_text=len(workload.texts),
        most_new=most_new,
    )


def with_more_room(state: Any) -> Any:
    """Return a copy of the state with room for twice as many generations."""
    return twin.grown(FIELDS, state, "generations", 2 * len(state.generations))


def text(setup: Setup, state: Any, number: int) -> str:
    """Return ``number`` (a pivot column, or a count of sent packets) as text for a trace's column ``detail``."""
    return str(number)

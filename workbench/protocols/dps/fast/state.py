"""What DPS's nodes remember, as arrays, and how a scenario makes them.

A node's *links* are rows of ``links``, one for each neighbor that hears it or that it hears, in ascending order; those
that stand are linked in the order in which they came to be. What one node knows of one publication is a row of
``pairs``: 24 bytes for each node and publication, of which those that never met cost address space alone. Filters and
needs are numbers (`filters.py`), topics rows of the workload's (`topics.py`).
"""

from __future__ import annotations

from collections import namedtuple
from enum import auto
from typing import Any, NamedTuple

import numpy as np

from workbench.attributes.model import Attribute
from workbench.errors import EncodeError
from workbench.protocols.dps import automaton, mapping, wire
from workbench.protocols.dps.bloom import FUZZY_HASH_B, BitVector
from workbench.protocols.dps.fast.filters import NEEDS_WORDS, WORD, Number, hashes_of, longest_B, table_of
from workbench.protocols.dps.fast.topics import Workload, workload_of
from workbench.protocols.dps.node import SIMULATED_PORT as PORT
from workbench.protocols.dps.rules import FEWEST_TO_CLEAR, MOST_RETRIED, MOST_WAITING, rank, times_of
from workbench.protocols.dps.series import publication_filter
from workbench.sim.fast import twin
from workbench.sim.fast.twin import GIVEN, NONE, Array, Fields, Needs, Setup


class Event(twin.Events):
    """What happens in its runs alone."""

    LINK_SET = auto()
    INTERESTS_SET = auto()
    ACKNOWLEDGED = auto()
    MESH_ID_SET = auto()


class Reason(twin.Reasons):
    """Its own reasons why messages end."""

    STALE = auto()
    FULL = auto()
    UNASKED = auto()
    UNKNOWN = auto()
    NO_BASE = auto()
    NO_MATCH = auto()
    OUT_OF_RANGE = auto()
    DEAD_END = auto()
    HOPS = auto()
    NO_WAY_BACK = auto()


class Message(twin.Messages):
    """What its messages are called."""

    SUBSCRIPTION = auto()
    SUBSCRIPTION_ACK = auto()
    PUBLICATION = auto()
    ACKNOWLEDGEMENT = auto()

    @classmethod
    def texts(cls) -> tuple[str, ...]:
        """Return the names that the definition's frames have in the trace."""
        return tuple(wire.NAMES[kind] for kind in _KINDS)


_KINDS = (wire.SUBSCRIPTION, wire.SUBSCRIPTION_ACKNOWLEDGEMENT, wire.PUBLICATION, wire.ACKNOWLEDGEMENT)

MOST_PAIRS = 1 << 26  # 2 GiB
MOST_FILTERS_B = 1 << 32
_POOL_B = 1 << 20  # of filters, to begin with
_MOST_NEIGHBORS = 256  # `history.py` numbers them in a byte
NO_MESH = 0xFFFFFFFFFFFFFFFF  # both halves of the mesh id of a neighbor that has not told one
# What a message grows by where its numbers are larger: its revision, what it acknowledges, its hops.
_LARGER_B = 4 + 4 + 2

# What is told during the run: how many bits of needs are set (0 to 256), then the names of states.
_STATES = tuple(automaton.State)
_FIRST_STATE = 8 * FUZZY_HASH_B + 1

# A neighbor. Times are NONE if nothing is due; filters and needs are NONE if there are none. ``next`` and ``previous``
# link those with a link. ``asked``: the link that there is was asked for by this node. ``works``: it is good enough
# for a link; ``wanted``: the neighbor is asked again when that ends. ``announced_``: what events have reported last.
LINK = np.dtype(
    [
        ("mesh_high", np.uint64),
        ("mesh_low", np.uint64),
        ("told_high", np.uint64),
        ("told_low", np.uint64),
        ("tick_us", np.int64),
        ("keep_alive_us", np.int64),
        ("resend_us", np.int64),
        ("next_resend_us", np.int64),
        ("again_us", np.int64),
        ("state", np.int32),
        ("revision", np.int32),
        ("noted_revision", np.int32),
        ("interests", np.int32),
        ("needs", np.int32),
        ("vector", np.int32),
        ("pending", np.int32),
        ("ticks", np.int32),
        ("inbound", np.int32),
        ("inbound_needs", np.int32),
        ("inbound_revision", np.int32),
        ("next", np.int32),
        ("previous", np.int32),
        ("is_delta", np.int16),
        ("is_behind", np.int16),
        ("owes_all", np.int16),
        ("asked", np.int16),
        ("works", np.int16),
        ("wanted", np.int16),
        ("unlinks", np.int16),
        ("rises", np.int16),
        ("repeated", np.int16),
        ("owes_answer", np.int16),
        ("has_news", np.int16),
        ("counts_hops", np.int16),
        ("announced_bits", np.int32),
        ("announced_needs", np.int32),
        ("announced_owner", np.int64),
    ],
    align=True,
)
_NO_LINK = dict.fromkeys(
    ("tick_us", "keep_alive_us", "resend_us", "next_resend_us", "again_us", "interests", "vector", "inbound"), NONE
)

# When a neighbor is to be asked for a link; ``next`` links those that are waiting for that.
ASKING = np.dtype([("ask_us", np.int64), ("next", np.int32), ("is_asked", np.int32)], align=True)

# ``own``, ``own_needs``: the sum of ``entries`` subscriptions of its own. ``links``: those that stand; ``asked``: the
# neighbors that will be asked for one. ``seen``: the publications that it remembers, the one noted last at the end;
# ``kept``: those that it retains, of which the next ends at ``next_end_us``; ``waiting``: those that it will forward.
# ``repeats``: entries of ``state.repeats``. ``scout``: a link; ``place``: of the next neighbor among the ranked; what
# follows these depends on its neighbors.
NODE = np.dtype(
    [
        ("mesh_high", np.uint64),
        ("mesh_low", np.uint64),
        ("lowest_high", np.uint64),
        ("lowest_low", np.uint64),
        ("update_us", np.int64),
        ("ids_us", np.int64),
        ("next_end_us", np.int64),
        ("choose_us", np.int64),
        ("scout_us", np.int64),
        ("repeat_us", np.int64),
        ("scout", np.int32),
        ("place", np.int32),
        ("is_crowded", np.int64),
        ("tick_us", np.int64),
        ("silence_us", np.int64),
        ("recheck_s", np.float64),
        ("ids_after_us", np.int64),
        ("learnt_after_us", np.int64),
        ("ids_wait", np.int64),
        ("has_news", np.int64),
        ("announced_owner", np.int64),
        ("announced_bits", np.int32),
        ("announced_needs", np.int32),
        ("links", twin.LIST),
        ("asked", twin.LIST),
        ("seen", twin.LIST),
        ("kept", twin.LIST),
        ("waiting", twin.LIST),
        ("own", np.int32),
        ("own_needs", np.int32),
        ("entries", np.int32),
        ("clear_at", np.int32),
        ("since_cleared", np.int32),
        ("repeats", np.int32),
        ("oldest_repeat", np.int32),
    ],
    align=True,
)
_NEW_NODE = {
    "announced_owner": NONE,
    "lowest_high": NO_MESH,
    "lowest_low": NO_MESH,
    "update_us": NONE,
    "ids_us": NONE,
    "next_end_us": NONE,
    "choose_us": NONE,
    "scout_us": NONE,
    "repeat_us": NONE,
    "scout": NONE,
    "links": twin.NO_ROWS,
    "asked": twin.NO_ROWS,
    "seen": twin.NO_ROWS,
    "kept": twin.NO_ROWS,
    "waiting": twin.NO_ROWS,
    "clear_at": FEWEST_TO_CLEAR,
}

PAIR = np.dtype(
    [
        ("noted_us", np.int64),
        ("next", np.int32),
        ("previous", np.int32),
        ("is_seen", np.int16),
        ("held", np.int16),
    ],
    align=True,
)

PUBLICATION = np.dtype([("sequence", np.int64), ("origin", np.int32), ("content", np.int32)], align=True)

# What a node retains of a publication: until when, which link it came over (NONE: it is its own), after how many hops.
KEPT = np.dtype(
    [
        ("expires_us", np.int64),
        ("next", np.int32),
        ("previous", np.int32),
        ("link", np.int32),
        ("hops", np.int32),
        ("is_kept", np.int32),
    ],
    align=True,
)

# When a node forwards a publication, which link it came over, and what goes on; ``is_told``: it was delivered here.
WAITING = np.dtype(
    [
        ("due_us", np.int64),
        ("next", np.int32),
        ("previous", np.int32),
        ("link", np.int32),
        ("hops", np.int32),
        ("ttl_s", np.int32),
        ("is_told", np.int16),
        ("is_waiting", np.int16),
    ],
    align=True,
)

# A publication that the radio gave up: over which link, with which hops and life (its frame's word), how often it was
# sent again, and when it is next.
REPEAT = np.dtype(
    [
        ("due_us", np.int64),
        ("word", np.int64),
        ("link", np.int32),
        ("publication", np.int32),
        ("count", np.int32),
    ],
    align=True,
)

# What a message says beyond its row in ``messages``: of a link, or which publication it is.
LETTER = np.dtype(
    [
        ("mesh_high", np.uint64),
        ("mesh_low", np.uint64),
        ("flags", np.int32),
        ("needs", np.int32),
        ("vector", np.int32),
        ("acknowledged", np.int32),
        ("publication", np.int32),
    ],
    align=True,
)

FIELDS: Fields = {
    # The parameters.
    "update_after_us": GIVEN,
    "retry_ticks": int,
    "retries": int,
    "count_muted": bool,
    "best_links": int,
    "relink_s": float,
    "history_us": GIVEN,
    "max_history": int,
    "ttl_s": int,
    "retains": GIVEN,
    "max_retained": int,
    "acknowledges": GIVEN,
    # The automaton of a link: see `automaton_arrays`.
    "next_states": GIVEN,
    "first_actions": GIVEN,
    "actions": GIVEN,
    # Bytes: of messages without filters, of what goes with a filter; the airtime by size (bytes + 1,).
    "subscription_B": GIVEN,
    "acknowledgement_B": GIVEN,
    "with_interests_B": GIVEN,
    "answer_B": GIVEN,
    "airtimes_us": GIVEN,
    "first_text": GIVEN,
    "first_state": GIVEN,
    # Neighbors of node i: link_first[i]:link_first[i + 1], and their places.
    "link_first": GIVEN,
    "neighbors": GIVEN,
    # The links of node i that work, the best first, if it is crowded: ranked[rank_first[i]:rank_first[i + 1]].
    "rank_first": GIVEN,
    "ranked": GIVEN,
    "has_crowds": GIVEN,
    "links": Array(LINK, "links", _NO_LINK),
    "askings": Array(ASKING, "links"),
    "nodes": Array(NODE, "nodes", _NEW_NODE),
    # Filters and needs: see `filters.py`.
    "filters": Array(np.uint64, ("filters", "words")),
    "filter_hashes": Array(np.uint64, "filters"),
    "filter_ones": Array(np.int32, "filters"),
    "filter_B": Array(np.int32, "filters"),
    "filter_table": GIVEN,
    "needs": Array(np.uint64, ("needs", NEEDS_WORDS)),
    "needs_hashes": Array(np.uint64, "needs"),
    "needs_ones": Array(np.int32, "needs"),
    "needs_table": GIVEN,
    "most_new": GIVEN,  # filters, and needs, that an event may make
    "numbers": Array(np.int64, 3),
    # The workload: see `topics.py`. ``asked_filter``, ``asked_needs``: of what is asked for, as numbers;
    # ``asks`` (subscriptions): 1 as long as they are in force.
    "topics_of": GIVEN,
    "topic_first": GIVEN,
    "topic_places": GIVEN,
    "topic_words": GIVEN,
    "asked_of": GIVEN,
    "asked_filter": GIVEN,
    "asked_needs": GIVEN,
    "met": GIVEN,
    "texts_of": GIVEN,
    "text_met": GIVEN,
    "asks": Array(np.uint8, "subscriptions"),
    # Messages on their way, and what nodes know of publications: ``came_from`` has a bit for each neighbor; ``ways``
    # tells neighbors apart, if there are acknowledgements.
    "letters": Array(LETTER, "messages"),
    "publications": Array(PUBLICATION, "publications"),
    "pairs": Array(PAIR, ("publications", "nodes")),
    "came_from": Array(np.uint64, ("publications", "nodes", "neighbor_words")),
    "ways": Array(np.int32, ("publications", "links"), only_if="acknowledges"),
    "kept": Array(KEPT, ("publications", "nodes"), only_if="retains"),
    "waitings": Array(WAITING, ("publications", "nodes"), only_if="has_crowds"),
    "reports": GIVEN,  # whether the radio reports outcomes of unicasts
    "repeats": Array(REPEAT, ("nodes", MOST_RETRIED), only_if="reports"),
}
State: Any = namedtuple("State", FIELDS)


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Bytes of the frame of a publication; EncodeError if it does not fit a datagram."""
    topics = mapping.publication_topics(attributes, protocol.separators)
    vector = publication_filter(topics, protocol, protocol.wildcards)
    identity = wire.make_publication_id(0, 0, bytes(8))
    data = mapping.encode_data(attributes)
    ttl_s, acknowledge = protocol.ttl_s, protocol.acknowledge
    publication = wire.Publication(PORT, None, ttl_s, 0, ttl_s, identity, 1, acknowledge, vector, topics, data)
    frame_B = len(wire.encode(publication))
    if frame_B > wire.LARGEST_DATAGRAM_B:
        raise EncodeError(f"a publication takes {frame_B} bytes and a datagram has room for {wire.LARGEST_DATAGRAM_B}")
    return frame_B


def _link_sizes_B() -> tuple[int, int, int]:
    """Bytes of a subscription and of its acknowledgement, without interests; what these take without the filter."""
    start, needs, vector = (PORT, None, 0, wire.COUNTS_HOPS, bytes(16)), bytes(FUZZY_HASH_B), BitVector(WORD)
    bare = len(wire.encode(wire.Subscription(*start, None, None)))
    acknowledging = len(wire.encode(wire.SubscriptionAcknowledgement(*start, None, None, 0)))
    full = len(wire.encode(wire.Subscription(*start, needs, vector)))
    return bare, acknowledging, full - bare - len(vector.encode())


def longest_frame_B(setup: Setup) -> int:
    """Bytes of the longest frame that can be sent."""
    _, acknowledgement_B, with_interests_B = _link_sizes_B()
    link_B = acknowledgement_B + with_interests_B + longest_B(setup.protocol.filter_bits)
    return _LARGER_B + max(int(setup.work.contents["size_B"].max(initial=1)), link_B)


def _neighbors(setup: Setup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``link_first``, ``neighbors``, and the delivery ratios of worse directions; NaN where a node hears nothing."""
    network, count = setup.network, len(setup.network.addresses)
    radio = setup.radio
    senders = np.repeat(np.arange(count), np.diff(network.first))
    receivers = network.receivers.astype(np.int64)
    pdr = np.broadcast_to(network.pdr, len(receivers))
    ratios = pdr if radio.loss == "links" else np.full(len(receivers), radio.delivery_ratio(1.0))
    there, back = senders * count + receivers, receivers * count + senders
    pairs = np.unique(np.concatenate((there, back)))
    # Of each pair (node, neighbor) what the node hears of the neighbor, and the other way round; NaN without an arc.
    inbound, outbound = np.full(len(pairs), np.nan), np.full(len(pairs), np.nan)
    outbound[np.searchsorted(pairs, there)] = ratios
    inbound[np.searchsorted(pairs, back)] = ratios
    nodes, neighbors = np.divmod(pairs, count)
    first = np.searchsorted(nodes, np.arange(count + 1))
    return first, neighbors.astype(np.int32), np.minimum(inbound, np.nan_to_num(outbound))


class _Crowds(NamedTuple):
    """How many neighbors the links of each crowded node work with, 0 for the others; their ranks, see FIELDS."""

    neighbors: np.ndarray
    rank_first: np.ndarray
    ranked: np.ndarray


def _crowds(setup: Setup, link_first: np.ndarray, neighbors: np.ndarray, qualities: np.ndarray) -> _Crowds:
    protocol, addresses = setup.protocol, [int(address) for address in setup.network.addresses]
    counts, ranked = [], []
    for i, address in enumerate(addresses):
        links = range(link_first[i], link_first[i + 1])
        working = [link for link in links if qualities[link] >= protocol.worst_link]  # NaN is not.
        counts.append(len(working) if len(working) > protocol.crowd else 0)
        if counts[-1]:
            ranks = {k: rank(float(qualities[k]), address, addresses[neighbors[k]], counts[-1]) for k in working}
            ranked += sorted(working, key=ranks.__getitem__)
    return _Crowds(np.array(counts), np.concatenate(([0], np.cumsum(counts))), np.array(ranked, np.int32))


def _most_neighbors(setup: Setup) -> int:
    return int(np.diff(_neighbors(setup)[0]).max(initial=1))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """What a reception of a broadcast, one of a unicast, and any other call takes at most."""
    work = setup.work
    degree = _most_neighbors(setup)
    deliveries = work.most_subscriptions * max(1, work.most_samples) + 1
    ended = work.most_subscriptions
    # A link sends at most once to tell something, once to be taken into use again, once to begin, and two again that
    # were given up; a scout two.
    frames = 5 * degree + 5
    retained = min(setup.protocol.max_retained, work.publications) if setup.protocol.ttl_s else 0
    waiting = min(MOST_WAITING, work.publications) if degree > setup.protocol.crowd else 0
    return (
        Needs(0, 0, 0),
        Needs(22 + deliveries + retained, 5 + degree + retained, 5 + degree + retained),
        Needs(
            16 + deliveries * (1 + retained) + ended + degree * (6 + retained) + waiting,
            frames + degree * (retained + waiting) + MOST_RETRIED,
            frames + 2 + degree * retained + waiting + MOST_RETRIED,
        ),
    )


def _check(setup: Setup, degree: int, links: int) -> None:
    """NoFastTwinError for what this twin does not have."""
    protocol, network, work, _ = setup
    most = min(protocol.max_links, _MOST_NEIGHBORS)
    if degree > most:
        raise twin.NoFastTwinError(f"a node has {degree} neighbors; with more than {most} some of them are refused")
    if work.most_subscriptions > protocol.max_subscriptions:
        raise twin.NoFastTwinError("a node may subscribe to more than max_subscriptions, which is an error")
    # What is retained takes as much again, and ways back a part of it for each neighbor.
    pairs = len(network.addresses) * (2 if protocol.ttl_s else 1) + (links // 8 if protocol.acknowledge else 0)
    if pairs * work.publications > MOST_PAIRS:
        raise twin.NoFastTwinError(
            f"{work.publications} publications at {len(network.addresses)} nodes are more than it can keep in mind"
        )


def automaton_arrays(table: Any = automaton.TABLE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`automaton.TABLE` as numbers: of entry ``state * inputs + what comes`` the next state, and its actions.

    Actions of entry e: ``actions[first_actions[e]:first_actions[e + 1]]``. What never comes changes nothing.
    """
    next_states, firsts, actions = [], [0], []
    for state in automaton.State:
        for what in automaton.Input:
            entry = table[state][what]
            next_states.append(state if entry.state is None else entry.state)
            actions += entry.actions
            firsts.append(len(actions))
    return np.array(next_states, np.int32), np.array(firsts, np.int32), np.array(actions, np.int32)


def make_state(setup: Setup, messages: int) -> Any:
    """The memory of all nodes, for so many messages on their way at once; NoFastTwinError for what it has not."""
    protocol, _, work, _ = setup
    link_first, neighbors, qualities = _neighbors(setup)
    crowds = _crowds(setup, link_first, neighbors, qualities)
    degree = int(np.diff(link_first).max(initial=1))
    _check(setup, degree, len(neighbors))
    workload = workload_of(setup)
    sizes = {
        "links": len(neighbors),
        "publications": max(1, work.publications),
        "subscriptions": len(work.subscriptions),
        "neighbor_words": -(-degree // WORD),
        "words": protocol.filter_bits // WORD,
    }
    most_new = int(4 * degree + work.most_subscriptions + 8)
    pools, rooms = _pools(workload, most_new, protocol.filter_bits)
    given = _settings(protocol) | _sizes_B(setup) | pools | {name: getattr(workload, name) for name in _OF_WORKLOAD}
    given |= zip(("next_states", "first_actions", "actions"), automaton_arrays(), strict=True)
    given |= {"link_first": link_first, "neighbors": neighbors, "most_new": most_new}
    given |= {"rank_first": crowds.rank_first, "ranked": crowds.ranked, "has_crowds": bool(crowds.neighbors.any())}
    given["reports"] = bool(setup.radio.retries or setup.radio.csma)
    given |= {"first_text": len(work.texts), "first_state": len(work.texts) + _FIRST_STATE}
    state = twin.make(State, FIELDS, setup, messages, sizes | rooms, **given)
    state.links["works"] = qualities >= protocol.worst_link  # NaN is not.
    state.nodes["is_crowded"] = crowds.neighbors > 0
    times = [times_of(protocol, crowd, True) for crowd in crowds.neighbors.tolist()]
    state.nodes["ids_after_us"] = [one.ids_us for one in times]
    state.nodes["learnt_after_us"] = [one.forward_interests_us for one in times]
    for name in ("tick_us", "silence_us", "recheck_s"):
        state.nodes[name] = [getattr(one, name) for one in times]
    return state


_OF_WORKLOAD = ("topics_of", "topic_first", "topic_places", "topic_words", "asked_of", "met", "texts_of", "text_met")


def _settings(protocol: Any) -> dict[str, Any]:
    times = times_of(protocol)
    return {
        "update_after_us": times.update_us,
        "history_us": times.history_us,
        "retains": protocol.ttl_s > 0,
        "acknowledges": protocol.acknowledge,
    }


def _sizes_B(setup: Setup) -> dict[str, Any]:
    subscription_B, acknowledgement_B, with_interests_B = _link_sizes_B()
    airtimes_us = [setup.radio.airtime_us(size_B) for size_B in range(longest_frame_B(setup) + 1)]
    return {
        "subscription_B": subscription_B,
        "acknowledgement_B": acknowledgement_B,
        "with_interests_B": with_interests_B,
        "answer_B": len(wire.encode(wire.Acknowledgement(bytes(16), 1, b""))),
        "airtimes_us": np.array(airtimes_us, np.int64),
    }


class _Pool(NamedTuple):
    """Rows that differ, the first of them without bits; ``numbers``: the row of each that was asked for."""

    rows: np.ndarray
    hashes: np.ndarray
    ones: np.ndarray
    numbers: np.ndarray


def _pool(rows: np.ndarray) -> _Pool:
    rows = np.concatenate((np.zeros((1, rows.shape[1]), np.uint64), rows))
    known, numbers = np.unique(rows, axis=0, return_inverse=True)
    ones = np.unpackbits(known.view(np.uint8), axis=1).sum(axis=1, dtype=np.int32)
    return _Pool(known, hashes_of(known), ones, numbers.reshape(-1)[1:].astype(np.int32))


def _pools(workload: Workload, most_new: int, filter_bits: int) -> tuple[dict[str, Any], dict[str, int]]:
    """The fields of filters and needs, and for how many rows there is room to begin with."""
    filters, needed = _pool(workload.asked), _pool(workload.asked_needs)
    rooms = {
        "filters": max(_POOL_B // (filter_bits // 8), len(filters.rows) + 2 * most_new),
        "needs": max(_POOL_B // FUZZY_HASH_B, len(needed.rows) + 2 * most_new),
    }
    numbers = np.zeros(3, np.int64)
    numbers[[Number.FILTERS, Number.NEEDS]] = len(filters.rows), len(needed.rows)
    fields = {
        "filters": filters.rows,
        "filter_hashes": filters.hashes,
        "filter_ones": filters.ones,
        "filter_B": [len(BitVector.from_bytes(row.tobytes()).encode()) for row in filters.rows],
        "filter_table": table_of(filters.hashes, rooms["filters"]),
        "needs": needed.rows,
        "needs_hashes": needed.hashes,
        "needs_ones": needed.ones,
        "needs_table": table_of(needed.hashes, rooms["needs"]),
        "numbers": numbers,
        "asked_filter": filters.numbers,
        "asked_needs": needed.numbers,
    }
    return fields, rooms


def with_more_room(state: Any) -> Any:
    """The same with room for twice as many filters and needs; NoFastTwinError if there are too many."""
    filters, needed = 2 * len(state.filters), 2 * len(state.needs)
    if filters * state.filters.shape[1] * 8 > MOST_FILTERS_B:
        raise twin.NoFastTwinError(f"the run has more than {len(state.filters)} filters that differ")
    state = twin.grown(FIELDS, twin.grown(FIELDS, state, "filters", filters), "needs", needed)
    return state._replace(
        filter_table=table_of(state.filter_hashes[: state.numbers[Number.FILTERS]], filters),
        needs_table=table_of(state.needs_hashes[: state.numbers[Number.NEEDS]], needed),
    )


def text(setup: Setup, state: Any, number: int) -> str:
    """The details of this protocol: how many bits are set, and the name of a link's state."""
    return str(number) if number < _FIRST_STATE else _STATES[number - _FIRST_STATE].label

"""What DPS's nodes remember, as arrays, and how a scenario makes them.

A node's *links* are rows of ``links``, one for each neighbor that hears it or that it hears, in ascending order; those
that stand are linked in the order in which they came to be. What one node knows of one publication is a row of
``pairs``: 32 bytes for each node and publication, of which those that never met cost address space alone. Filters and
needs are numbers (`dps_filters`), topics rows of the workload's (`dps_topics`).
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np

from workbench.attributes.model import Attribute
from workbench.errors import EncodeError
from workbench.protocols.dps import mapping, wire
from workbench.protocols.dps.bloom import FUZZY_HASH_B, BitVector
from workbench.protocols.dps.fast.filters import FILTERS, NEEDS, WORD, hashes_of, longest_B, table_of
from workbench.protocols.dps.fast.topics import workload_of
from workbench.protocols.dps.history import _FEWEST_TO_CLEAR as FEWEST_TO_CLEAR
from workbench.protocols.dps.links import SECOND_US
from workbench.protocols.dps.node import _ANY_PORT as PORT
from workbench.protocols.dps.remotes import STATE_NAMES
from workbench.protocols.dps.series import publication_filter
from workbench.sim.fast import NoFastTwinError
from workbench.sim.fast.layout import NONE, Needs
from workbench.sim.fast.prepare import Setup

MESSAGES = ("", "subscription", "subscription ack", "publication", "acknowledgement")
SUBSCRIPTION_MESSAGE, ACKNOWLEDGEMENT_MESSAGE, PUBLICATION_MESSAGE, ANSWER_MESSAGE = range(1, 5)

MOST_PAIRS = 1 << 26  # 2 GiB
MOST_FILTERS_B = 1 << 32
_POOL_B = 1 << 20  # of filters, to begin with
_MOST_NEIGHBORS = 256  # `dps_history` numbers them in a byte
NO_MESH = 0xFFFFFFFFFFFFFFFF  # both halves of the mesh id of a neighbor that has not told one
# What a message grows by where its numbers are larger: its revision, what it acknowledges, its hops.
_LARGER_B = 4 + 4 + 2

# What is told during the run: how many bits of needs are set (0 to 256), then the names of states.
_FIRST_STATE = 8 * FUZZY_HASH_B + 1

# A neighbor. Times are NONE if nothing is due; filters and needs are NONE if there are none. ``next`` and ``previous``
# link those with a link; ``next_asked`` those that will be asked for one, if it ``is_asked``. ``asked``: the link that
# there is was asked for by this node. ``wanted``: it is one of the topology's.
LINK = np.dtype(
    [
        ("mesh_high", np.uint64),
        ("mesh_low", np.uint64),
        ("tick_us", np.int64),
        ("keep_alive_us", np.int64),
        ("ask_us", np.int64),
        ("resend_us", np.int64),
        ("next_resend_us", np.int64),
        ("state", np.int32),
        ("revision", np.int32),
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
        ("next_asked", np.int32),
        ("is_delta", np.int16),
        ("is_behind", np.int16),
        ("is_asked", np.int16),
        ("asked", np.int16),
        ("wanted", np.int16),
    ],
    align=True,
)

# ``own``, ``own_needs``: the sum of ``entries`` subscriptions of its own. ``seen``: how many publications it remembers,
# linked from ``first_seen``, the one noted last at the end; NONE is 0 there, a publication its number and 1. So are the
# ``kept`` that it retains, of which the next ends at ``next_end_us``.
NODE = np.dtype(
    [
        ("mesh_high", np.uint64),
        ("mesh_low", np.uint64),
        ("lowest_high", np.uint64),
        ("lowest_low", np.uint64),
        ("update_us", np.int64),
        ("first_link", np.int32),
        ("last_link", np.int32),
        ("first_asked", np.int32),
        ("last_asked", np.int32),
        ("own", np.int32),
        ("own_needs", np.int32),
        ("entries", np.int32),
        ("seen", np.int32),
        ("clear_at", np.int32),
        ("since_cleared", np.int32),
        ("first_seen", np.int32),
        ("last_seen", np.int32),
        ("next_end_us", np.int64),
        ("kept", np.int32),
        ("first_kept", np.int32),
        ("last_kept", np.int32),
    ],
    align=True,
)

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

State = namedtuple(
    "State",
    (
        # The parameters.
        "update_after_us",
        "keep_alive_after_us",
        "retry_ticks",
        "retries",
        "count_muted",
        "recheck_s",
        "relink_s",
        "history_us",
        "max_history",
        "ttl_s",
        "retains",
        "max_retained",
        "acknowledges",
        # Bytes: of messages without filters, of what goes with a filter; the airtime by size (bytes + 1,).
        "subscription_B",
        "acknowledgement_B",
        "with_interests_B",
        "answer_B",
        "airtimes_us",
        "first_text",
        "first_state",
        # Neighbors of node i: link_first[i]:link_first[i + 1], and their places.
        "link_first",
        "neighbors",
        "links",
        "nodes",
        # Filters and needs: see `dps_filters`.
        "filters",
        "filter_hashes",
        "filter_ones",
        "filter_B",
        "filter_table",
        "needs",
        "needs_hashes",
        "needs_ones",
        "needs_table",
        "most_new",
        "numbers",
        # The workload: see `dps_topics`. ``asked_filter``, ``asked_needs``: of what is asked for, as numbers;
        # ``asks`` (subscriptions): 1 as long as they are in force.
        "topics_of",
        "topic_first",
        "topic_places",
        "topic_words",
        "asked_of",
        "asked_filter",
        "asked_needs",
        "met",
        "texts_of",
        "text_met",
        "asks",
        # Messages on their way, and what nodes know of publications: ``came_from`` (publications, nodes, words) has a
        # bit for each neighbor; ``ways`` (publications, links) tells neighbors apart, if there are acknowledgements.
        "letters",
        "publications",
        "pairs",
        "came_from",
        "ways",
        "kept",
    ),
)


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
    mesh, needs, vector = bytes(16), bytes(FUZZY_HASH_B), BitVector(WORD)
    bare = len(wire.encode(wire.Subscription(PORT, None, 0, 0, mesh, None, None)))
    acknowledging = len(wire.encode(wire.SubscriptionAcknowledgement(PORT, None, 0, 0, mesh, None, None, 0)))
    full = len(wire.encode(wire.Subscription(PORT, None, 0, 0, mesh, needs, vector)))
    return bare, acknowledging, full - bare - len(vector.encode())


def longest_frame_B(setup: Setup) -> int:
    """Bytes of the longest frame that can be sent."""
    _, acknowledgement_B, with_interests_B = _link_sizes_B()
    link_B = acknowledgement_B + with_interests_B + longest_B(setup.protocol.filter_bits)
    return _LARGER_B + max(int(setup.work.contents["size_B"].max(initial=1)), link_B)


def _neighbors(setup: Setup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``link_first``, ``neighbors``, and which of them are to be asked for a link."""
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
    works = np.minimum(inbound, np.nan_to_num(outbound)) >= setup.protocol.worst_link  # NaN does not.
    first = np.searchsorted(nodes, np.arange(count + 1))
    return first, neighbors.astype(np.int32), works & (nodes < neighbors)


def _most_neighbors(setup: Setup) -> int:
    return int(np.diff(_neighbors(setup)[0]).max(initial=1))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """What a reception of a broadcast, one of a unicast, and any other call takes at most."""
    work = setup.work
    degree = _most_neighbors(setup)
    deliveries = work.most_subscriptions * max(1, work.most_samples) + 1
    ended = work.most_subscriptions
    # A link sends at most once to tell something, once to be taken into use again, and once to begin.
    frames = 3 * degree + 3
    retained = min(setup.protocol.max_retained, work.publications) if setup.protocol.ttl_s else 0
    return (
        Needs(0, 0, 0),
        Needs(14 + deliveries + retained, 4 + degree + retained, 4 + degree + retained),
        Needs(
            10 + deliveries * (1 + retained) + ended + degree * (4 + retained),
            frames + degree * retained,
            frames + 2 + degree * retained,
        ),
    )


def _check(setup: Setup, degree: int, links: int) -> None:
    """NoFastTwinError for what this twin does not have."""
    protocol, network, work, _ = setup
    most = min(protocol.max_links, _MOST_NEIGHBORS)
    if degree > most:
        raise NoFastTwinError(f"a node has {degree} neighbors; with more than {most} some of them are refused")
    if work.most_subscriptions > protocol.max_subscriptions:
        raise NoFastTwinError("a node may subscribe to more than max_subscriptions, which is an error")
    # What is retained takes as much again, and ways back a part of it for each neighbor.
    pairs = len(network.addresses) * (2 if protocol.ttl_s else 1) + (links // 8 if protocol.acknowledge else 0)
    if pairs * work.publications > MOST_PAIRS:
        raise NoFastTwinError(
            f"{work.publications} publications at {len(network.addresses)} nodes are more than it can keep in mind"
        )


def make_state(setup: Setup, messages: int) -> State:
    """The memory of all nodes, for so many messages on their way at once; NoFastTwinError for what it has not."""
    protocol, network, work, radio = setup
    link_first, neighbors, wanted = _neighbors(setup)
    degree = int(np.diff(link_first).max(initial=1))
    _check(setup, degree, len(neighbors))
    count, publications = len(network.addresses), max(1, work.publications)
    most_new = 4 * degree + work.most_subscriptions + 8
    workload = workload_of(setup)
    filters, asked_filter = _pool(workload.asked, most_new, _POOL_B // (protocol.filter_bits // 8))
    needed, asked_needs = _pool(workload.asked_needs, most_new, _POOL_B // FUZZY_HASH_B)
    numbers = np.zeros(3, np.int64)
    numbers[[FILTERS, NEEDS]] = len(filters.known), len(needed.known)
    encoded_B = [len(BitVector.from_bytes(row.tobytes()).encode()) for row in filters.known]
    sizes_B = _link_sizes_B()
    airtimes_us = [radio.airtime_us(one) for one in range(longest_frame_B(setup) + 1)]
    return State(
        update_after_us=int(protocol.update_s * SECOND_US),
        keep_alive_after_us=int((protocol.link_loss_s + protocol.update_s) * SECOND_US),
        retry_ticks=protocol.retry_ticks,
        retries=protocol.retries,
        count_muted=protocol.count_muted,
        recheck_s=float(protocol.recheck_s),
        relink_s=float(protocol.relink_s),
        history_us=protocol.ttl_s * SECOND_US + int(protocol.history_s * SECOND_US),
        max_history=protocol.max_history,
        ttl_s=protocol.ttl_s,
        retains=protocol.ttl_s > 0,
        max_retained=protocol.max_retained,
        acknowledges=protocol.acknowledge,
        subscription_B=sizes_B[0],
        acknowledgement_B=sizes_B[1],
        with_interests_B=sizes_B[2],
        answer_B=len(wire.encode(wire.Acknowledgement(bytes(16), 1, b""))),
        airtimes_us=np.array(airtimes_us, np.int64),
        first_text=len(work.texts),
        first_state=len(work.texts) + _FIRST_STATE,
        link_first=link_first,
        neighbors=neighbors,
        links=_links(wanted),
        nodes=_nodes(count),
        filters=filters.rows,
        filter_hashes=filters.hashes,
        filter_ones=filters.ones,
        filter_B=longer(np.array(encoded_B, np.int32), len(filters.rows)),
        filter_table=filters.table,
        needs=needed.rows,
        needs_hashes=needed.hashes,
        needs_ones=needed.ones,
        needs_table=needed.table,
        most_new=most_new,
        numbers=numbers,
        topics_of=workload.topics_of,
        topic_first=workload.topic_first,
        topic_places=workload.topic_places,
        topic_words=workload.topic_words,
        asked_of=workload.asked_of,
        asked_filter=asked_filter,
        asked_needs=asked_needs,
        met=workload.met,
        texts_of=workload.texts_of,
        text_met=workload.text_met,
        asks=np.zeros(len(work.subscriptions), np.uint8),
        letters=np.zeros(messages, LETTER),
        publications=np.zeros(publications, PUBLICATION),
        pairs=np.zeros((publications, count), PAIR),
        came_from=np.zeros((publications, count, -(-degree // WORD)), np.uint64),
        ways=np.zeros((publications, len(neighbors)) if protocol.acknowledge else (1, 1), np.int32),
        kept=np.zeros((publications, count) if protocol.ttl_s else (1, 1), KEPT),
    )


class _Pool(NamedTuple):
    known: np.ndarray
    rows: np.ndarray
    hashes: np.ndarray
    ones: np.ndarray
    table: np.ndarray


def _pool(rows: np.ndarray, most_new: int, room: int) -> tuple[_Pool, np.ndarray]:
    """The rows that differ, after one without bits, with room for more; and the number of each row."""
    rows = np.concatenate((np.zeros((1, rows.shape[1]), np.uint64), rows))
    known, numbers = np.unique(rows, axis=0, return_inverse=True)
    room = int(max(room, len(known) + 2 * most_new))
    hashes = hashes_of(known)
    ones = np.unpackbits(known.view(np.uint8), axis=1).sum(axis=1, dtype=np.int32)
    pool = _Pool(known, longer(known, room), longer(hashes, room), longer(ones, room), table_of(hashes, room))
    return pool, numbers.reshape(-1)[1:].astype(np.int32)


def _links(wanted: np.ndarray) -> np.ndarray:
    links = np.zeros(len(wanted), LINK)
    for name in (
        "tick_us",
        "keep_alive_us",
        "ask_us",
        "resend_us",
        "next_resend_us",
        "interests",
        "vector",
        "inbound",
        "next",
        "previous",
        "next_asked",
    ):
        links[name] = NONE
    links["wanted"] = wanted
    return links


def _nodes(count: int) -> np.ndarray:
    nodes = np.zeros(count, NODE)
    for name in ("update_us", "first_link", "last_link", "first_asked", "last_asked", "next_end_us"):
        nodes[name] = NONE
    nodes["lowest_high"] = nodes["lowest_low"] = np.uint64(NO_MESH)
    nodes["clear_at"] = FEWEST_TO_CLEAR
    return nodes


def longer(rows: np.ndarray, count: int) -> np.ndarray:
    """The same rows, and as many behind them as make ``count``."""
    more = np.zeros((count, *rows.shape[1:]), rows.dtype)
    more[: len(rows)] = rows
    return more


def with_more_messages(state: State, messages: int) -> State:
    """The same with room for more messages on their way."""
    return state._replace(letters=longer(state.letters, messages))


def with_more_room(state: State) -> State:
    """The same with room for twice as many filters and needs; NoFastTwinError if there are too many."""
    filters, needed = 2 * len(state.filters), 2 * len(state.needs)
    if filters * state.filters.shape[1] * 8 > MOST_FILTERS_B:
        raise NoFastTwinError(f"the run has more than {len(state.filters)} filters that differ")
    return state._replace(
        filters=longer(state.filters, filters),
        filter_hashes=longer(state.filter_hashes, filters),
        filter_ones=longer(state.filter_ones, filters),
        filter_B=longer(state.filter_B, filters),
        filter_table=table_of(state.filter_hashes[: state.numbers[FILTERS]], filters),
        needs=longer(state.needs, needed),
        needs_hashes=longer(state.needs_hashes, needed),
        needs_ones=longer(state.needs_ones, needed),
        needs_table=table_of(state.needs_hashes[: state.numbers[NEEDS]], needed),
    )


def text(setup: Setup, state: State, number: int) -> str:
    """The details of this protocol: how many bits are set, and the name of a link's state."""
    return str(number) if number < _FIRST_STATE else STATE_NAMES[number - _FIRST_STATE]

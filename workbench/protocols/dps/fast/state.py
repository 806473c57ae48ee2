"""The memory of nodes in DPS's fast twin (its compiled version), as arrays, and its creation from a scenario.

Each node has a row of ``links`` for each neighbor, in ascending order. Two nodes are neighbors if at least one of them
can receive frames of the other. The rows of existing links form a linked list in the order of the links' creation. A
row of ``pairs`` (24 bytes) is the history entry of one publication at one node; rows that are never used take address
space, but no memory. Filters and needs are represented by the indices of their rows (`filters.py`), topics by rows of
the workload's arrays (`topics.py`).
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
from workbench.protocols.dps.rules import FEWEST_TO_CLEAR, MOST_RETRIED, MOST_WAITING, times_of
from workbench.protocols.dps.series import publication_filter
from workbench.sim.fast import twin
from workbench.sim.fast.twin import GIVEN, NONE, Array, Fields, Needs, Setup


class Event(twin.Events):
    """Kinds of trace events that exist only in DPS."""

    LINK_SET = auto()
    INTERESTS_SET = auto()
    ACKNOWLEDGED = auto()
    MESH_ID_SET = auto()


class Reason(twin.Reasons):
    """Reasons to drop a message that exist only in DPS."""

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
    """Kinds of DPS messages."""

    SUBSCRIPTION = auto()
    SUBSCRIPTION_ACK = auto()
    PUBLICATION = auto()
    ACKNOWLEDGEMENT = auto()

    @classmethod
    def texts(cls) -> tuple[str, ...]:
        """Return the names of the kinds of messages, as they are written in traces."""
        return tuple(wire.NAMES[kind] for kind in _KINDS)


_KINDS = (wire.SUBSCRIPTION, wire.SUBSCRIPTION_ACKNOWLEDGEMENT, wire.PUBLICATION, wire.ACKNOWLEDGEMENT)

MOST_PAIRS = 1 << 26  # 2 GiB
MOST_FILTERS_B = 1 << 32
_POOL_B = 1 << 20  # initial memory for filters
_MOST_NEIGHBORS = 256  # `history.py` uses a byte for their order
NO_MESH = 0xFFFFFFFFFFFFFFFF  # both halves of the mesh id of a neighbor that has not sent one
# Most additional bytes of a message with large numbers: its revision, the acknowledged revision, its hops.
_LARGER_B = 4 + 4 + 2

# Texts of this protocol in the trace: the numbers of set bits of needs (0 to 256), then the names of link states.
_STATES = tuple(automaton.State)
_FIRST_STATE = 8 * FUZZY_HASH_B + 1

# A neighbor. NONE stands for a time at which nothing is due, and for an unset filter. ``next`` and ``previous`` form
# the list of existing links. ``is_requester``: this node requested it. ``is_usable``: the radio link is good enough.
# ``quality``: delivery ratio of the worse direction; ``tenths``, ``is_hub``, ``order_hash``: the neighbor's rank
# (`rules.rank`). ``is_chosen``: a link to this neighbor is requested again after it ends. ``sent_``: mesh id sent last.
# ``announced_``: values of the last events. ``sends_all_next``, ``acknowledges_next``: content of the next
# acknowledgement, or whether one must be sent again.
LINK = np.dtype(
    [
        ("mesh_high", np.uint64),
        ("mesh_low", np.uint64),
        ("sent_high", np.uint64),
        ("sent_low", np.uint64),
        ("order_hash", np.uint64),
        ("quality", np.float64),
        ("tick_us", np.int64),
        ("keep_alive_us", np.int64),
        ("resend_us", np.int64),
        ("next_resend_us", np.int64),
        ("retry_us", np.int64),
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
        ("sends_all_next", np.int16),
        ("is_requester", np.int16),
        ("is_usable", np.int16),
        ("is_chosen", np.int16),
        ("is_hub", np.int16),
        ("tenths", np.int16),
        ("unlinks", np.int16),
        ("rises", np.int16),
        ("repeated", np.int16),
        ("acknowledges_next", np.int16),
        ("has_changes", np.int16),
        ("counts_hops", np.int16),
        ("announced_bits", np.int32),
        ("announced_needs", np.int32),
        ("announced_owner", np.int64),
    ],
    align=True,
)
_NO_LINK = dict.fromkeys(
    ("tick_us", "keep_alive_us", "resend_us", "next_resend_us", "retry_us", "interests", "vector", "inbound"), NONE
)

# The time of a scheduled link request; ``next`` forms the list of a node's requests.
LINK_REQUEST = np.dtype([("request_us", np.int64), ("next", np.int32), ("is_planned", np.int32)], align=True)

# ``own_interests``, ``own_needs``: the sum of the node's ``own_count`` subscriptions. Lists: ``links``, existing links;
# ``planned_requests``, scheduled link requests; ``seen``, publications of the history, the most recent last;
# ``retained``, retained publications, of which the first expires at ``next_end_us``; ``waiting``, publications to be
# forwarded later. ``repeats``: number of used rows of ``state.repeats``. ``scout``: the link to a neighbor that is
# probed for another part of the network; ``next_rank``: rank of the next scout. ``usable``: number of usable links;
# ``is_ranked``: they are sorted; ``has_chosen``: the best neighbors were chosen. The intervals from ``is_crowded`` to
# ``learnt_after_us`` depend on the number of neighbors.
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
        ("next_rank", np.int32),
        ("usable", np.int32),
        ("is_ranked", np.int16),
        ("has_chosen", np.int16),
        ("is_crowded", np.int64),
        ("tick_us", np.int64),
        ("silence_us", np.int64),
        ("recheck_s", np.float64),
        ("ids_after_us", np.int64),
        ("learnt_after_us", np.int64),
        ("ids_wait", np.int64),
        ("has_changes", np.int64),
        ("announced_owner", np.int64),
        ("announced_bits", np.int32),
        ("announced_needs", np.int32),
        ("links", twin.LIST),
        ("planned_requests", twin.LIST),
        ("seen", twin.LIST),
        ("retained", twin.LIST),
        ("waiting", twin.LIST),
        ("own_interests", np.int32),
        ("own_needs", np.int32),
        ("own_count", np.int32),
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
    "planned_requests": twin.NO_ROWS,
    "seen": twin.NO_ROWS,
    "retained": twin.NO_ROWS,
    "waiting": twin.NO_ROWS,
    "clear_at": FEWEST_TO_CLEAR,
}

PAIR = np.dtype(
    [
        ("noted_us", np.int64),
        ("next", np.int32),
        ("previous", np.int32),
        ("answers", np.int32),
        ("is_seen", np.int16),
        ("is_held", np.int16),
    ],
    align=True,
)

PUBLICATION = np.dtype([("sequence", np.int64), ("origin", np.int32), ("content", np.int32)], align=True)

# A retained publication: when it expires, the link it came over (NONE: the node's own), and its hops until there.
RETAINED = np.dtype(
    [
        ("expires_us", np.int64),
        ("next", np.int32),
        ("previous", np.int32),
        ("link", np.int32),
        ("hops", np.int32),
        ("is_retained", np.int32),
    ],
    align=True,
)

# A publication to be forwarded: when, the link it came over, its hops and lifetime. ``is_reported``: an event has
# reported its delivery, or that no subscription matched.
WAITING = np.dtype(
    [
        ("due_us", np.int64),
        ("next", np.int32),
        ("previous", np.int32),
        ("link", np.int32),
        ("hops", np.int32),
        ("ttl_s", np.int32),
        ("is_reported", np.int16),
        ("is_waiting", np.int16),
    ],
    align=True,
)

# A publication that the radio did not deliver: its link, its frame's header field, the number of retries so far, and
# the time of the next one.
REPEAT = np.dtype(
    [
        ("due_us", np.int64),
        ("hops_and_ttl", np.int64),
        ("link", np.int32),
        ("publication", np.int32),
        ("count", np.int32),
    ],
    align=True,
)

# Fields of a message beyond its row in the engine's ``messages``: those of a link's message, or the publication.
HEADER = np.dtype(
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

# Times that depend on the number of neighbors, see `rules.Times`.
TIMES = np.dtype(
    [
        ("tick_us", np.int64),
        ("silence_us", np.int64),
        ("recheck_s", np.float64),
        ("ids_after_us", np.int64),
        ("learnt_after_us", np.int64),
    ],
    align=True,
)

FIELDS: Fields = {
    # Parameters of the protocol.
    "update_after_us": GIVEN,
    "retry_ticks": int,
    "retries": int,
    "count_muted": bool,
    "best_links": int,
    "worst_link": float,
    "crowd": int,
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
    # Sizes of messages without filters and of the fields beside a filter; airtime by size in bytes (longest size + 1,).
    "subscription_B": GIVEN,
    "acknowledgement_B": GIVEN,
    "with_interests_B": GIVEN,
    "answer_B": GIVEN,
    "airtimes_us": GIVEN,
    "first_text": GIVEN,
    "first_state": GIVEN,
    # Links of node i: rows link_first[i]:link_first[i + 1]; ``neighbors``: the neighbor's index of each.
    "link_first": GIVEN,
    "neighbors": GIVEN,
    # Usable links of node i, the best first; they begin at ranked[link_first[i]].
    "ranked": Array(np.int32, "links"),
    "has_dense_nodes": GIVEN,  # whether a node may have more than ``crowd`` neighbors
    "times": GIVEN,  # by the number of usable links of a crowded node; 0: of any other node
    "links": Array(LINK, "links", _NO_LINK),
    "link_requests": Array(LINK_REQUEST, "links"),
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
    "most_new": GIVEN,  # filters, and needs, that an event may create at most
    "numbers": Array(np.int64, 3),
    # The workload: see `topics.Workload`. ``subscribed_filter``, ``subscribed_needs``: numbers of the filter and needs
    # of each subscribed set. ``in_force`` (subscriptions): 1 from the start of a subscription to its end.
    "published_set": GIVEN,
    "topic_first": GIVEN,
    "topic_positions": GIVEN,
    "topic_words": GIVEN,
    "subscribed_set": GIVEN,
    "subscribed_filter": GIVEN,
    "subscribed_needs": GIVEN,
    "set_matches": GIVEN,
    "text_set": GIVEN,
    "text_matches": GIVEN,
    "in_force": Array(np.uint8, "subscriptions"),
    # Messages in frames, and the nodes' data about publications. ``was_received_from`` has a bit for each neighbor;
    # ``path_ranks`` orders these neighbors as next hops of acknowledgements (see `history.py`).
    "headers": Array(HEADER, "messages"),
    "publications": Array(PUBLICATION, "publications"),
    "pairs": Array(PAIR, ("publications", "nodes")),
    "was_received_from": Array(np.uint64, ("publications", "nodes", "neighbor_words")),
    "path_ranks": Array(np.int32, ("publications", "links"), only_if="acknowledges"),
    "retained": Array(RETAINED, ("publications", "nodes"), only_if="retains"),
    "waitings": Array(WAITING, ("publications", "nodes"), only_if="has_dense_nodes"),
    "reports": GIVEN,  # whether the radio reports outcomes of unicasts
    "repeats": Array(REPEAT, ("nodes", MOST_RETRIED), only_if="reports"),
}
State: Any = namedtuple("State", FIELDS)


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Return the size in bytes of the frame of a publication with these attributes.

    Raises EncodeError if the frame does not fit a datagram.
    """
    topics = mapping.publication_topics(attributes, protocol.separators)
    vector = publication_filter(topics, protocol, protocol.wildcards)
    publication_id = wire.make_publication_id(0, 0, bytes(8))
    payload = mapping.encode_data(attributes)
    ttl_s, acknowledge = protocol.ttl_s, protocol.acknowledge
    publication = wire.Publication(PORT, None, ttl_s, 0, ttl_s, publication_id, 1, acknowledge, vector, topics, payload)
    frame_B = len(wire.encode(publication))
    if frame_B > wire.LARGEST_DATAGRAM_B:
        raise EncodeError(f"the publication takes {frame_B} bytes; a datagram holds at most {wire.LARGEST_DATAGRAM_B}")
    return frame_B


def _link_sizes_B() -> tuple[int, int, int]:
    """Return (subscription_B, acknowledgement_B, with_interests_B), sizes of parts of link messages in bytes.

    subscription_B and acknowledgement_B are sizes of messages without interests. with_interests_B is the size that
    interests add to a message, without the encoded filter itself.
    """
    leading_fields, needs, vector = (PORT, None, 0, wire.COUNTS_HOPS, bytes(16)), bytes(FUZZY_HASH_B), BitVector(WORD)
    subscription_B = len(wire.encode(wire.Subscription(*leading_fields, None, None)))
    acknowledgement_B = len(wire.encode(wire.SubscriptionAcknowledgement(*leading_fields, None, None, 0)))
    complete_B = len(wire.encode(wire.Subscription(*leading_fields, needs, vector)))
    return subscription_B, acknowledgement_B, complete_B - subscription_B - len(vector.encode())


def longest_frame_B(setup: Setup) -> int:
    """Return the size in bytes of the longest frame that a run of the scenario can send."""
    _, acknowledgement_B, with_interests_B = _link_sizes_B()
    link_B = acknowledgement_B + with_interests_B + longest_B(setup.protocol.filter_bits)
    return _LARGER_B + max(int(setup.work.contents["size_B"].max(initial=1)), link_B)


def _find_neighbors(setup: Setup) -> tuple[np.ndarray, np.ndarray]:
    """Return (link_first, neighbors): node i has links with neighbors[link_first[i]:link_first[i + 1]].

    Nodes are indices. Two nodes are neighbors if at least one of them can receive frames of the other.
    """
    network, node_count = setup.network, len(setup.network.addresses)
    senders = np.repeat(np.arange(node_count), np.diff(network.first))
    receivers = network.receivers.astype(np.int64)
    pair_codes = np.unique(np.concatenate((senders * node_count + receivers, receivers * node_count + senders)))
    nodes, neighbors = np.divmod(pair_codes, node_count)
    link_first = np.searchsorted(nodes, np.arange(node_count + 1))
    return link_first, neighbors.astype(np.int32)


def _most_neighbors(setup: Setup) -> int:
    """Return the largest number of neighbors that a node has; 1 if no node has a neighbor."""
    return int(np.diff(_find_neighbors(setup)[0]).max(initial=1))


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """Return how many trace rows, frames and messages one call of a function of this twin can create at most.

    The result has three values of the class `Needs`: for the call that receives a broadcast, for the call that receives
    a unicast, and for any other call.
    """
    workload = setup.work
    degree = _most_neighbors(setup)
    most_deliveries = workload.most_subscriptions * max(1, workload.most_samples) + 1
    ended_subscriptions = workload.most_subscriptions
    # A link sends at most one message for changes, one to unmute, one to begin, and two retries; a scout sends two.
    link_frames = 5 * degree + 5
    most_retained = min(setup.protocol.max_retained, workload.publications) if setup.protocol.ttl_s else 0
    most_waiting = min(MOST_WAITING, workload.publications) if degree > setup.protocol.crowd else 0
    # A beacon may end a link, which sends changes to all neighbors.
    learns_quality = setup.radio.link_quality == "learned"
    beacon_needs = Needs(16 + 6 * degree, 5 + 2 * degree, 5 + 2 * degree) if learns_quality else Needs(0, 0, 0)
    return (
        beacon_needs,
        Needs(22 + most_deliveries + most_retained, 5 + degree + most_retained, 5 + degree + most_retained),
        Needs(
            16
            + most_deliveries * (1 + most_retained)
            + ended_subscriptions
            + degree * (6 + most_retained)
            + most_waiting,
            link_frames + degree * (most_retained + most_waiting) + MOST_RETRIED,
            link_frames + 2 + degree * most_retained + most_waiting + MOST_RETRIED,
        ),
    )


def _check_support(setup: Setup, degree: int, links: int) -> None:
    """Raise NoFastTwinError for a scenario that this twin does not support.

    ``degree``: largest number of neighbors of a node. ``links``: number of pairs of a node and a neighbor.
    """
    protocol, network, workload, _ = setup
    most_neighbors = min(protocol.max_links, _MOST_NEIGHBORS)
    if degree > most_neighbors:
        raise twin.NoFastTwinError(
            f"a node has {degree} neighbors; the fast engine supports at most {most_neighbors}, the smaller of "
            "max_links and 256; use the reference engine"
        )
    if workload.most_subscriptions > protocol.max_subscriptions:
        raise twin.NoFastTwinError(
            "a node could exceed max_subscriptions, which the fast engine does not check; "
            "raise max_subscriptions, or use the reference engine"
        )
    # Retained publications take the same memory again, and path ranks an eighth of it for each link.
    pair_count = len(network.addresses) * (2 if protocol.ttl_s else 1) + (links // 8 if protocol.acknowledge else 0)
    if pair_count * workload.publications > MOST_PAIRS:
        raise twin.NoFastTwinError(
            f"{workload.publications} publications at {len(network.addresses)} nodes exceed the memory limit of "
            "the fast engine; publish less, or use fewer nodes"
        )


def automaton_arrays(table: Any = automaton.TABLE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the transition table `automaton.TABLE` as arrays: (next_states, first_actions, actions).

    The entry of a state and an input has the index ``state * number of inputs + input``. The actions of entry e are
    ``actions[first_actions[e]:first_actions[e + 1]]``.
    """
    next_states, first_actions, actions = [], [0], []
    for link_state in automaton.State:
        for link_input in automaton.Input:
            table_entry = table[link_state][link_input]
            next_states.append(link_state if table_entry.state is None else table_entry.state)
            actions += table_entry.actions
            first_actions.append(len(actions))
    return np.array(next_states, np.int32), np.array(first_actions, np.int32), np.array(actions, np.int32)


def make_state(setup: Setup, messages: int) -> Any:
    """Return the initial `State` of all nodes, with room for ``messages`` simultaneous messages.

    Raises NoFastTwinError for a scenario that this twin does not support.
    """
    protocol, _, workload, _ = setup
    link_first, neighbors = _find_neighbors(setup)
    degree = int(np.diff(link_first).max(initial=1))
    _check_support(setup, degree, len(neighbors))
    topic_arrays = workload_of(setup)
    sizes = {
        "links": len(neighbors),
        "publications": max(1, workload.publications),
        "subscriptions": len(workload.subscriptions),
        "neighbor_words": -(-degree // WORD),
        "words": protocol.filter_bits // WORD,
    }
    most_new = int(4 * degree + workload.most_subscriptions + 8)
    pool_fields, capacities = _make_pools(topic_arrays, most_new, protocol.filter_bits)
    field_values = (
        _settings(protocol)
        | _sizes_B(setup)
        | pool_fields
        | {field_name: getattr(topic_arrays, field_name) for field_name in _WORKLOAD_FIELDS}
    )
    field_values |= zip(("next_states", "first_actions", "actions"), automaton_arrays(), strict=True)
    field_values |= {"link_first": link_first, "neighbors": neighbors, "most_new": most_new}
    field_values["has_dense_nodes"] = degree > protocol.crowd
    field_values["times"] = np.array(
        [_times_fields(times_of(protocol, neighbor_count, True)) for neighbor_count in range(degree + 1)], TIMES
    )
    field_values["reports"] = setup.radio.acknowledges or setup.radio.senses_carrier
    field_values |= {"first_text": len(workload.texts), "first_state": len(workload.texts) + _FIRST_STATE}
    initial_state = twin.make(State, FIELDS, setup, messages, sizes | capacities, **field_values)
    _set_times(protocol, initial_state.nodes)  # of nodes without a known neighbor
    return initial_state


def rows_of_node(state: Any, i: int) -> dict[str, Any]:
    """Return {axis: slice}: the rows of node ``i`` in the arrays with the axis "links", one for each neighbor."""
    return {"links": slice(int(state.link_first[i]), int(state.link_first[i + 1]))}


def erase(setup: Setup, state: Any, i: int, first_number: int) -> None:
    """Reset the message intervals of node ``i``, which has lost its memory, to those of a node without neighbors.

    The intervals are tick, silence, recheck, and the delays of mesh ids and interests. ``first_number`` is not used.
    """
    _set_times(setup.protocol, state.nodes[i : i + 1])


def _set_times(protocol: Any, nodes: np.ndarray) -> None:
    for time_name, time_value in zip(TIMES.names or (), _times_fields(times_of(protocol)), strict=True):
        nodes[time_name] = time_value


def _times_fields(times: Any) -> tuple[Any, ...]:
    """Return the fields of ``times`` (a `rules.Times`), in the order of the fields of the array type `TIMES`."""
    return times.tick_us, times.silence_us, times.recheck_s, times.ids_us, times.forward_interests_us


_WORKLOAD_FIELDS = (
    "published_set",
    "topic_first",
    "topic_positions",
    "topic_words",
    "subscribed_set",
    "set_matches",
    "text_set",
    "text_matches",
)


def _settings(protocol: Any) -> dict[str, Any]:
    """Return {field: value} for the fields of `State` that are computed from the protocol's parameters."""
    times = times_of(protocol)
    return {
        "update_after_us": times.update_us,
        "history_us": times.history_us,
        "retains": protocol.ttl_s > 0,
        "acknowledges": protocol.acknowledge,
    }


def _sizes_B(setup: Setup) -> dict[str, Any]:
    """Return {field: value} for the fields of `State` with message sizes in bytes, and with airtimes (µs) by size."""
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
    """A list of filters (or of needs) without duplicates.

    rows        the distinct filters or needs, in 64-bit words; row 0 has no set bits
    hashes      hash of each row
    bit_counts  number of set bits of each row
    numbers     for each element of the original list, the index of the equal row in ``rows``
    """

    rows: np.ndarray
    hashes: np.ndarray
    bit_counts: np.ndarray
    numbers: np.ndarray


def _make_pool(rows: np.ndarray) -> _Pool:
    """Return a `_Pool` of ``rows``, an array of filters or needs in 64-bit words, of shape (rows, words)."""
    rows = np.concatenate((np.zeros((1, rows.shape[1]), np.uint64), rows))
    unique_rows, row_numbers = np.unique(rows, axis=0, return_inverse=True)
    bit_counts = np.unpackbits(unique_rows.view(np.uint8), axis=1).sum(axis=1, dtype=np.int32)
    return _Pool(unique_rows, hashes_of(unique_rows), bit_counts, row_numbers.reshape(-1)[1:].astype(np.int32))


def _make_pools(workload: Workload, most_new: int, filter_bits: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Return (fields, capacities): the initial arrays of filters and of needs (fuzzy hashes), and their capacities.

    fields      {field of `State`: value}: the filters and needs of the workload's subscriptions, and arrays computed
                from them, such as hash tables
    capacities  {"filters": rows, "needs": rows}: numbers of rows to allocate, including free rows for the run

    ``most_new``: largest number of filters that one event may create. ``filter_bits``: length of a filter.
    """
    filter_pool, needs_pool = _make_pool(workload.subscribed), _make_pool(workload.subscribed_needs)
    capacities = {
        "filters": max(_POOL_B // (filter_bits // 8), len(filter_pool.rows) + 2 * most_new),
        "needs": max(_POOL_B // FUZZY_HASH_B, len(needs_pool.rows) + 2 * most_new),
    }
    row_counts = np.zeros(3, np.int64)
    row_counts[[Number.FILTERS, Number.NEEDS]] = len(filter_pool.rows), len(needs_pool.rows)
    state_fields = {
        "filters": filter_pool.rows,
        "filter_hashes": filter_pool.hashes,
        "filter_ones": filter_pool.bit_counts,
        "filter_B": [len(BitVector.from_bytes(filter_words.tobytes()).encode()) for filter_words in filter_pool.rows],
        "filter_table": table_of(filter_pool.hashes, capacities["filters"]),
        "needs": needs_pool.rows,
        "needs_hashes": needs_pool.hashes,
        "needs_ones": needs_pool.bit_counts,
        "needs_table": table_of(needs_pool.hashes, capacities["needs"]),
        "numbers": row_counts,
        "subscribed_filter": filter_pool.numbers,
        "subscribed_needs": needs_pool.numbers,
    }
    return state_fields, capacities


def with_more_room(state: Any) -> Any:
    """Return the state with arrays for twice as many filters and needs.

    Raises NoFastTwinError if an array would exceed its limit.
    """
    filter_rows, needs_rows = 2 * len(state.filters), 2 * len(state.needs)
    if filter_rows * state.filters.shape[1] * 8 > MOST_FILTERS_B:
        raise twin.NoFastTwinError(
            f"the run has more than {len(state.filters)} different filters, the limit of the fast engine; "
            "use the reference engine"
        )
    state = twin.grown(FIELDS, twin.grown(FIELDS, state, "filters", filter_rows), "needs", needs_rows)
    return state._replace(
        filter_table=table_of(state.filter_hashes[: state.numbers[Number.FILTERS]], filter_rows),
        needs_table=table_of(state.needs_hashes[: state.numbers[Number.NEEDS]], needs_rows),
    )


def text(setup: Setup, state: Any, number: int) -> str:
    """Return the text with the index ``number`` among the texts that only DPS writes to the trace's column ``detail``.

    The texts 0 to 256 are these numbers in digits (set bits of a fuzzy hash). The names of a link's states follow.
    """
    return str(number) if number < _FIRST_STATE else _STATES[number - _FIRST_STATE].label

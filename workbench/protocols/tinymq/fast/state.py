"""Functions that make and enlarge the arrays of TinyMQ's nodes on the fast engine, and compute frame sizes."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from workbench.attributes.model import Attribute
from workbench.attributes.wire import attributes_size
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.fast.keys import key_text
from workbench.protocols.tinymq.fast.memory import (
    FIELDS,
    FIRST_PART,
    LONGEST_KEY,
    MOST_INTERVALS,
    PROBLEM_TEXTS,
    WIDEST_KEY_SPACE,
    Message,
    Number,
    State,
)
from workbench.protocols.tinymq.fast.recent import copy_remembered, count_remembered, is_id_of
from workbench.protocols.tinymq.rules import MOST_NAMED
from workbench.protocols.tinymq.unicast import MOST_NEIGHBORS
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, Needs, Setup

_ROWS = 64  # initial length of a pool
_RECENTS, _MOST_RECENTS = 1 << 10, 1 << 21  # shortest and longest initial table of recent ids
_HOPS_PER_EVENT = 16  # rough number of hops of an event and its notifications in one tree


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Return the size in bytes of an event's frame with these attributes, for one interval of strings."""
    key_bits = protocol.key_bits
    return len(wire.encode(0, wire.Event(0, 0, 0, 0, key_bits, ((0, 0),), attributes)))


def base_sizes_B(protocol: Any) -> np.ndarray:
    """Return an array indexed by `Message`: frame sizes in bytes, without keys, intervals and attributes."""
    key_bits, region = protocol.key_bits, ((0, 0),)
    sizes_B = np.zeros(1 + len(Message), np.int64)
    sizes_B[Message.INFO] = _info_B()
    sizes_B[Message.PROBE] = len(wire.encode(0, wire.Probe()))
    sizes_B[Message.ACK] = len(wire.encode_ack(0))
    sizes_B[Message.REFUSAL] = len(wire.encode_refusal(0))
    sizes_B[Message.JOIN] = len(wire.encode(0, wire.Join(0)))
    sizes_B[Message.GRANT] = len(wire.encode(0, wire.Grant(0, 0, "")))
    query = wire.Query(0, 0, 0, 0, 0, 0, 0, "", key_bits, region, ())
    sizes_B[Message.QUERY] = len(wire.encode(0, query)) - interval_B(protocol)
    sizes_B[Message.EVENT] = size_B(protocol, ()) - interval_B(protocol)
    sizes_B[Message.NOTIFICATION] = len(wire.encode(0, wire.Notification(0, 0, 0, False, 0, 0, 0, 0, "", ())))
    return sizes_B


def interval_B(protocol: Any) -> int:
    """Return the size in bytes of an interval of a message's region in a frame."""
    return 2 * ((protocol.key_bits + 7) // 8)


def position_B() -> int:
    """Return the size in bytes of a position in an info (a node's status broadcast), without its key."""
    return _info_B(positions=(wire.InfoPosition(0, 0, 0, ""),)) - _info_B()


def distance_B() -> int:
    """Return the size in bytes of a distance to a root in an info (a node's status broadcast)."""
    return _info_B(distances=(wire.InfoDistance(0, 0, 0),)) - _info_B()


def named_B() -> tuple[int, int]:
    """Return (size of the count of named neighbors, size of one named neighbor) in an info, in bytes.

    An info is a node's status broadcast; it names some neighbors by their addresses.
    """
    one_neighbor_B, two_neighbors_B = (_info_B(heard=(0,) * count) for count in (1, 2))
    return one_neighbor_B - _info_B() - (two_neighbors_B - one_neighbor_B), two_neighbors_B - one_neighbor_B


def _info_B(positions: tuple = (), distances: tuple = (), heard: tuple = ()) -> int:
    return len(wire.encode_info(wire.Info(positions, distances, heard)))


def _longest_key(setup: Setup) -> int:
    """Return an upper bound for the length of a key in this network, in bits.

    On each hop from the root, a key grows by 1 bit, and by as many bits as the child's slot (its number at its parent).
    A slot is at most the number of neighbors.
    """
    return min(LONGEST_KEY, len(setup.network.addresses) * (1 + _most_neighbors(setup)))


def _most_neighbors(setup: Setup) -> int:
    """Return the largest number of arcs that begin, or that end, at the same node of the network; at least 1."""
    network = setup.network
    heard_counts = np.bincount(network.receivers, minlength=1)
    return max(1, int(heard_counts.max(initial=0)), int(np.diff(network.first).max(initial=0)))


def _positions_per_node(protocol: Any) -> int:
    return len(protocol.roots) if protocol.node.every_tree else 1


def longest_frame_B(setup: Setup) -> int:
    """Return an upper bound for the size in bytes of a frame in this run."""
    protocol, _, workload, _ = setup
    sizes_B, key_B = base_sizes_B(protocol), (_longest_key(setup) + 7) // 8
    info_B = (
        sizes_B[Message.INFO]
        + _positions_per_node(protocol) * (position_B() + key_B)
        + len(protocol.roots) * distance_B()
    )
    info_B += named_B()[0] + MOST_NAMED * named_B()[1]
    regions_B = MOST_INTERVALS * interval_B(protocol)
    query_B = sizes_B[Message.QUERY] + key_B + regions_B + int(_query_attributes_B(setup).max(initial=0))
    event_B = sizes_B[Message.NOTIFICATION] + regions_B + key_B + int(workload.contents["size_B"].max(initial=0))
    return int(max(info_B, query_B, event_B, sizes_B[Message.GRANT] + key_B))


def _attributes(setup: Setup, first_row: int, last_row: int) -> tuple[Attribute, ...]:
    """Return the rows [first_row, last_row) of the attribute table as `Attribute` objects.

    The table stores a blob as its index in the workload's ``blobs``; the attribute contains the blob itself.
    """
    from workbench.attributes.model import is_blob

    return tuple(
        Attribute(key, operator, setup.work.blobs[value] if is_blob(key) else value)
        for key, operator, value in setup.work.attributes[first_row:last_row].tolist()
    )


def _query_attributes_B(setup: Setup) -> np.ndarray:
    """Return an array with the size in bytes that each subscription's attributes take in a frame."""
    rows = setup.work.subscriptions[["first", "last"]].tolist()
    return np.array([attributes_size(_attributes(setup, *row)) for row in rows] or [0], np.int32)


def _boxes(setup: Setup) -> np.ndarray:
    """Return the boxes (ranges of cells) of all subscriptions, then of all events: an array (n, dimensions, 2).

    The two values of the last axis are the lowest and the highest cell of the dimension.
    """
    mapping, workload = setup.protocol.mapping, setup.work
    boxes = [
        mapping.query_box(_attributes(setup, *subscription_range))
        for subscription_range in workload.subscriptions[["first", "last"]].tolist()
    ]
    first_attributes, last_attributes = workload.samples["first"].tolist(), workload.samples["last"].tolist()
    for first_sample, last_sample in workload.contents[["first_sample", "last_sample"]].tolist():
        # A key with several values occurs in several samples; the box extends from the smallest value to the largest.
        attributes = [
            _attributes(setup, first_attributes[sample_row], last_attributes[sample_row])
            for sample_row in range(first_sample, last_sample)
        ]
        boxes.append(mapping.event_box(tuple(chain.from_iterable(attributes))))
    return np.array(boxes, np.int64).reshape(len(boxes), len(mapping.dimensions), 2)


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """Return a `Needs` for each of three kinds of calls of a node: upper bounds on what one such call adds.

    The kinds are the reception of a broadcast, the reception of a unicast frame, and any other call. A `Needs` bounds
    the trace rows, the frames and the messages. The bounds hold for a node without pending frames, waiting messages and
    stored queries; `messages.reserve_room` adds rows for these.
    """
    protocol, _, workload, _ = setup
    positions_per_node, trees, most_parts = (
        _positions_per_node(protocol),
        len(protocol.roots),
        _most_neighbors(setup) + 3,
    )
    most_deliveries = workload.most_subscriptions * workload.most_samples
    zone_rows = positions_per_node * (protocol.key_bits // 2 + 3)
    rows_per_tree = 2 * most_parts + 20 + 4 * positions_per_node + zone_rows
    return (
        Needs(4 + 6 * positions_per_node + zone_rows, 4 + 4 * positions_per_node, 4 + 4 * positions_per_node),
        Needs(rows_per_tree + most_deliveries, rows_per_tree, 2 * rows_per_tree),
        Needs(
            trees * rows_per_tree + most_deliveries + 4 * positions_per_node + zone_rows,
            trees * rows_per_tree + 4 * positions_per_node,
            2 * trees * rows_per_tree + 4 * positions_per_node,
        ),
    )


def _check_supported(setup: Setup) -> None:
    """Raise NoFastTwinError for a scenario that the fast twin (TinyMQ for the fast engine) does not support."""
    protocol, _, workload, _ = setup
    if protocol.key_bits > WIDEST_KEY_SPACE:
        raise twin.NoFastTwinError(
            f"key_bits is {protocol.key_bits}; on the fast engine it must be at most {WIDEST_KEY_SPACE}; "
            "use the reference engine"
        )
    if workload.most_subscriptions > protocol.max_queries:
        raise twin.NoFastTwinError(
            f"a node has {workload.most_subscriptions} subscriptions, but max_queries is {protocol.max_queries}; "
            "raise max_queries or use the reference engine"
        )
    if _most_neighbors(setup) > MOST_NEIGHBORS:
        raise twin.NoFastTwinError(
            f"a node has {_most_neighbors(setup)} neighbors; on the fast engine it may have at most {MOST_NEIGHBORS}; "
            "use the reference engine"
        )
    attribute_counts = workload.subscriptions["last"] - workload.subscriptions["first"]
    if attribute_counts.max(initial=0) > wire.U8:
        raise twin.NoFastTwinError(
            f"a subscription has {attribute_counts.max()} attributes; it must have at most {wire.U8}, "
            "as many as a frame holds"
        )


def make_state(setup: Setup, messages: int) -> Any:
    """Return the initial state of all nodes; ``messages``: the largest number of messages that exist at a time."""
    _check_supported(setup)
    protocol: Any = setup.protocol
    counters = np.zeros(len(Number), np.int64)
    counters[[Number.KEYS, Number.ACKNOWLEDGEMENT]] = 1, NONE
    return twin.make(
        State,
        FIELDS,
        setup,
        messages,
        _sizes(setup),
        **protocol.times._asdict(),
        uses_reports=bool(protocol.retries) and protocol.acks == "radio",
        every_tree=protocol.node.every_tree,
        trees=len(protocol.roots),
        positions_per_node=_positions_per_node(protocol),
        publishes_to_all=protocol.publish == "all",
        root_tree=_root_trees(protocol, setup.network),
        **_links(setup.network),
        **_key_space(setup),
        **_frames(setup),
        **_bounds(setup),
        numbers=counters,
    )


def _sizes(setup: Setup) -> dict[str, int]:
    protocol, network = setup.protocol, setup.network
    node_count, positions_per_node = len(network.addresses), _positions_per_node(protocol)
    return {
        "positions": node_count * positions_per_node,
        "links": len(network.receivers),
        "trees": len(protocol.roots),
        "positions_per_node": positions_per_node,
        "keys": _ROWS,
        "scratch": FIRST_PART + _most_neighbors(setup) + 3,
        "pendings": _ROWS,
        "waitings": _ROWS,
        "storeds": _ROWS,
        "subscriptions": max(1, len(setup.work.subscriptions)),
        "recents": _double_until(_RECENTS, _estimate_id_count(setup)),
        "paths": _RECENTS,
    }


def _links(network: Any) -> dict[str, np.ndarray]:
    """Return the arrays that define the links: the network's arcs, sorted by receiver.

    Keys: in_first (each node's first link), senders and listeners (of each link).
    """
    node_count = len(network.addresses)
    arc_senders = np.repeat(np.arange(node_count), np.diff(network.first))
    link_order = np.argsort(network.receivers, kind="stable")
    in_first = np.zeros(node_count + 1, np.int64)
    np.cumsum(np.bincount(network.receivers, minlength=node_count), out=in_first[1:])
    listeners = network.receivers[link_order].astype(np.int64)
    return {"in_first": in_first, "senders": arc_senders[link_order], "listeners": listeners}


def _key_space(setup: Setup) -> dict[str, np.ndarray]:
    mapping = setup.protocol.mapping
    bits_per_dimension = np.array([dimension.bits for dimension in mapping.dimensions], np.int64)
    shift_per_dimension = mapping.key_bits - np.cumsum(bits_per_dimension)
    return {"dimension_bits": bits_per_dimension, "dimension_shifts": shift_per_dimension, "boxes": _boxes(setup)}


def _frames(setup: Setup) -> dict[str, Any]:
    """Return {name: value}: the fields of the state for frame sizes, and ``first_content_box`` and ``first_text``.

    Sizes are in bytes; ``airtimes_us[n]`` is the airtime in µs of a frame of n bytes. ``first_content_box``: the first
    row of ``boxes`` that belongs to the content of an event; the rows before it belong to subscriptions.
    ``first_text``: in the trace's column "detail", the number ``first_text`` + k stands for the key in row k of
    ``keys``; lower numbers stand for texts of the workload.
    """
    protocol, _, workload, radio = setup
    return {
        "base_B": base_sizes_B(protocol),
        "position_B": position_B(),
        "distance_B": distance_B(),
        "named_count_B": named_B()[0],
        "named_B": named_B()[1],
        "interval_B": interval_B(protocol),
        "query_attributes_B": _query_attributes_B(setup),
        "event_attributes_B": (workload.contents["size_B"] - size_B(protocol, ())).astype(np.int32),
        "airtimes_us": np.array([radio.airtime_us(bytes_) for bytes_ in range(longest_frame_B(setup) + 1)], np.int32),
        "first_content_box": len(workload.subscriptions),
        "first_text": len(workload.texts),
    }


def _bounds(setup: Setup) -> dict[str, int]:
    """Return the fields of the state that are upper bounds for one event of the simulation, as {name: bound}.

    most_parts: parts into which a message is split; most_neighbors: neighbors of a node; most_deliveries: deliveries of
    a publication at a node; least_room: rows that the event takes in any array of pending frames, waiting messages,
    stored queries, keys or ids.
    """
    most_neighbors, workload = _most_neighbors(setup), setup.work
    broadcast_needs, unicast_needs, other_needs = needs(setup)
    return {
        "most_parts": most_neighbors + 2,
        "most_neighbors": most_neighbors,
        "most_deliveries": workload.most_subscriptions * workload.most_samples,
        "least_room": max(most_neighbors * broadcast_needs.messages, unicast_needs.messages, other_needs.messages),
    }


def _root_trees(protocol: Any, network: Any) -> np.ndarray:
    """Return an array (n,) with the index of the tree whose root each of the n nodes is, NONE for other nodes.

    A root that is not a node of the network is skipped.
    """
    tree_of_node = np.full(len(network.addresses), NONE, np.int64)
    for tree, root in enumerate(protocol.roots):
        node_index = int(np.searchsorted(network.addresses, root))
        if node_index < len(tree_of_node) and network.addresses[node_index] == root:
            tree_of_node[node_index] = tree
    return tree_of_node


def rows_of_node(state: Any, i: int) -> dict[str, Any]:
    """Return {"positions": slice, "links": slice}: the rows of positions and of links that belong to node ``i``."""
    per_node = int(state.positions_per_node)
    return {
        "positions": slice(i * per_node, (i + 1) * per_node),
        "links": slice(int(state.in_first[i]), int(state.in_first[i + 1])),
    }


def erase(setup: Setup, state: Any, i: int, first_number: int) -> None:
    """Mark all ids of node ``i`` (of frames, events and paths) in the hash tables as forgotten, as after a crash.

    ``first_number`` has no effect.
    """
    for table in (state.recents, state.paths):
        table["ordinal"][is_id_of(table["id"], state.listeners, i)] = 0


def with_more_room(state: Any) -> Any:
    """Return a copy of the state whose arrays of frames, messages, queries, keys and ids have more rows.

    Raises NoFastTwinError if a `Problem` has stopped the run, because more rows would not solve it.
    """
    if state.numbers[Number.PROBLEM]:
        raise twin.NoFastTwinError(PROBLEM_TEXTS[state.numbers[Number.PROBLEM]])
    needed_rows = int(state.numbers[Number.NEEDED])
    state = twin.grown(
        FIELDS, state, "keys", _double_until(len(state.keys), int(state.numbers[Number.KEYS]) + needed_rows)
    )
    for pool, free_counter in (
        ("pendings", Number.FREE_PENDINGS),
        ("waitings", Number.FREE_WAITINGS),
        ("storeds", Number.FREE_STOREDS),
    ):
        pool_length = len(getattr(state, pool))
        if state.numbers[free_counter] < needed_rows:
            state = twin.grown(
                FIELDS,
                state,
                pool,
                _double_until(pool_length, pool_length - int(state.numbers[free_counter]) + needed_rows),
            )
    return state._replace(
        recents=_ensure_free_rows(state, state.recents, Number.RECENTS, needed_rows),
        paths=_ensure_free_rows(state, state.paths, Number.PATHS, needed_rows),
    )


def _estimate_id_count(setup: Setup) -> int:
    """Estimate how many ids of frames and events a run stores; a table of this size must rarely be enlarged."""
    protocol, network, workload, _ = setup
    trees_per_event = len(protocol.roots) if protocol.publish == "all" else 1
    return min(
        _MOST_RECENTS,
        2 * len(network.addresses) * protocol.max_known,
        2 * _HOPS_PER_EVENT * trees_per_event * workload.publications,
    )


def _double_until(length: int, needed: int) -> int:
    while length < needed:
        length *= 2
    return length


def _ensure_free_rows(state: Any, rows: np.ndarray, counter: int, needed: int) -> np.ndarray:
    """Return a hash table of ids with the content of ``rows`` and room for ``needed`` more ids.

    The result is ``rows`` itself, or a larger copy without the ids that nodes have forgotten. ``counter``: index in
    ``state.numbers`` of the number of ids in the table.
    """
    if 2 * (state.numbers[counter] + needed) <= len(rows):
        return rows
    heard_counts, path_counts = (np.ascontiguousarray(state.nodes[name]) for name in ("heard", "paths"))
    memory_arguments = state.listeners, heard_counts, path_counts, state.max_known
    state.numbers[counter] = count_remembered(rows, *memory_arguments)
    # At most a quarter full, so that the table does not grow again soon.
    longer_rows = np.zeros(_double_until(len(rows), 4 * int(state.numbers[counter] + needed)), rows.dtype)
    copy_remembered(rows, longer_rows, *memory_arguments)
    return longer_rows


def text(setup: Setup, state: Any, number: int) -> str:
    """Return the text that the trace's column "detail" shows for row ``number`` of ``keys``: the key as 0s and 1s."""
    return key_text(state.keys, number)

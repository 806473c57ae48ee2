"""Functions that create and enlarge the arrays of a fast TinyMQ network, and compute the sizes of frames."""

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
from workbench.protocols.tinymq.fast.recent import copy_remembered, count_remembered
from workbench.protocols.tinymq.rules import MOST_NAMED
from workbench.protocols.tinymq.unicast import MOST_NEIGHBORS
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, Needs, Setup

_ROWS = 64  # initial length of a pool
_RECENTS, _MOST_RECENTS = 1 << 10, 1 << 21  # shortest and longest initial table of recent ids
_HOPS_PER_EVENT = 16  # rough number of hops of an event and its notifications in one tree


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Return the size in bytes of an event's frame with these attributes and a region of one interval."""
    bits = protocol.key_bits
    return len(wire.encode(0, wire.Event(0, 0, 0, 0, bits, ((0, 0),), attributes)))


def base_sizes_B(protocol: Any) -> np.ndarray:
    """Return an array indexed by `Message`: frame sizes in bytes, without keys, intervals and attributes."""
    bits, region = protocol.key_bits, ((0, 0),)
    sizes_B = np.zeros(1 + len(Message), np.int64)
    sizes_B[Message.INFO] = _info_B()
    sizes_B[Message.PROBE] = len(wire.encode(0, wire.Probe()))
    sizes_B[Message.ACK] = len(wire.encode_ack(0))
    sizes_B[Message.REFUSAL] = len(wire.encode_refusal(0))
    sizes_B[Message.JOIN] = len(wire.encode(0, wire.Join(0)))
    sizes_B[Message.GRANT] = len(wire.encode(0, wire.Grant(0, 0, "")))
    query = wire.Query(0, 0, 0, 0, 0, 0, 0, "", bits, region, ())
    sizes_B[Message.QUERY] = len(wire.encode(0, query)) - interval_B(protocol)
    sizes_B[Message.EVENT] = size_B(protocol, ()) - interval_B(protocol)
    sizes_B[Message.NOTIFICATION] = len(wire.encode(0, wire.Notification(0, 0, 0, False, 0, 0, 0, 0, "", ())))
    return sizes_B


def interval_B(protocol: Any) -> int:
    """Return the size in bytes of an interval of a region."""
    return 2 * ((protocol.key_bits + 7) // 8)


def position_B() -> int:
    """Return the size in bytes of a position in an info, without its key."""
    return _info_B(positions=(wire.InfoPosition(0, 0, 0, ""),)) - _info_B()


def distance_B() -> int:
    """Return the size in bytes of a distance in an info."""
    return _info_B(distances=(wire.InfoDistance(0, 0, 0),)) - _info_B()


def named_B() -> tuple[int, int]:
    """Return the sizes in bytes of two fields of an info: the count of named neighbors, and one named neighbor."""
    first_B, second_B = (_info_B(heard=(0,) * count) for count in (1, 2))
    return first_B - _info_B() - (second_B - first_B), second_B - first_B


def _info_B(positions: tuple = (), distances: tuple = (), heard: tuple = ()) -> int:
    return len(wire.encode_info(wire.Info(positions, distances, heard)))


def _longest_key(setup: Setup) -> int:
    """Return an upper bound for the length of a key in this network, in bits.

    Each node on the path from the root adds its slot and 1 bit, and slots are at most the number of neighbors.
    """
    return min(LONGEST_KEY, len(setup.network.addresses) * (1 + _most_neighbors(setup)))


def _most_neighbors(setup: Setup) -> int:
    """Return the largest number of neighbors that a node hears or that hear a node."""
    network = setup.network
    heard = np.bincount(network.receivers, minlength=1)
    return max(1, int(heard.max(initial=0)), int(np.diff(network.first).max(initial=0)))


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
    """Return the size in bytes of each subscription's attributes in a frame."""
    rows = setup.work.subscriptions[["first", "last"]].tolist()
    return np.array([attributes_size(_attributes(setup, *row)) for row in rows] or [0], np.int32)


def _boxes(setup: Setup) -> np.ndarray:
    """Return the boxes of all subscriptions, then those of all contents: an array (n, dimensions, 2).

    The last axis is the lowest and the highest cell.
    """
    mapping, workload = setup.protocol.mapping, setup.work
    boxes = [mapping.query_box(_attributes(setup, *row)) for row in workload.subscriptions[["first", "last"]].tolist()]
    first_attributes, last_attributes = workload.samples["first"].tolist(), workload.samples["last"].tolist()
    for first, last in workload.contents[["first_sample", "last_sample"]].tolist():
        # A key with several values occurs in several samples; the box extends from the smallest value to the largest.
        attributes = [_attributes(setup, first_attributes[k], last_attributes[k]) for k in range(first, last)]
        boxes.append(mapping.event_box(tuple(chain.from_iterable(attributes))))
    return np.array(boxes, np.int64).reshape(len(boxes), len(mapping.dimensions), 2)


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """Return upper bounds (`Needs`) for the pool entries that one call of a node takes.

    The bounds hold for a node without pending messages and stored queries. The three results apply to the reception of
    a broadcast, the reception of a unicast frame, and any other call.
    """
    protocol, _, workload, _ = setup
    positions_per_node, trees, parts = _positions_per_node(protocol), len(protocol.roots), _most_neighbors(setup) + 3
    deliveries = workload.most_subscriptions * workload.most_samples
    zones = positions_per_node * (protocol.key_bits // 2 + 3)
    per_tree = 2 * parts + 20 + 4 * positions_per_node + zones
    return (
        Needs(4 + 6 * positions_per_node + zones, 4 + 4 * positions_per_node, 4 + 4 * positions_per_node),
        Needs(per_tree + deliveries, per_tree, 2 * per_tree),
        Needs(
            trees * per_tree + deliveries + 4 * positions_per_node + zones,
            trees * per_tree + 4 * positions_per_node,
            2 * trees * per_tree + 4 * positions_per_node,
        ),
    )


def _check_supported(setup: Setup) -> None:
    """Raise NoFastTwinError for a scenario that the twin does not support."""
    protocol, _, workload, _ = setup
    if protocol.key_bits > WIDEST_KEY_SPACE:
        raise twin.NoFastTwinError(f"key_bits is {protocol.key_bits}; the fast twin allows at most {WIDEST_KEY_SPACE}")
    if workload.most_subscriptions > protocol.max_queries:
        raise twin.NoFastTwinError(
            f"a node has {workload.most_subscriptions} subscriptions, but max_queries is {protocol.max_queries}; "
            "raise max_queries or use the reference engine"
        )
    if _most_neighbors(setup) > MOST_NEIGHBORS:
        raise twin.NoFastTwinError(
            f"a node has {_most_neighbors(setup)} neighbors; the fast twin allows at most {MOST_NEIGHBORS}"
        )
    counts = workload.subscriptions["last"] - workload.subscriptions["first"]
    if counts.max(initial=0) > wire.U8:
        raise twin.NoFastTwinError(f"a subscription has {counts.max()} attributes; a frame holds at most {wire.U8}")


def make_state(setup: Setup, messages: int) -> Any:
    """Return the initial state of all nodes; ``messages``: the most messages at the same time."""
    _check_supported(setup)
    protocol: Any = setup.protocol
    numbers = np.zeros(len(Number), np.int64)
    numbers[[Number.KEYS, Number.ACKNOWLEDGEMENT]] = 1, NONE
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
        numbers=numbers,
    )


def _sizes(setup: Setup) -> dict[str, int]:
    protocol, network = setup.protocol, setup.network
    count, positions_per_node = len(network.addresses), _positions_per_node(protocol)
    return {
        "positions": count * positions_per_node,
        "links": len(network.receivers),
        "trees": len(protocol.roots),
        "positions_per_node": positions_per_node,
        "keys": _ROWS,
        "scratch": FIRST_PART + _most_neighbors(setup) + 3,
        "pendings": _ROWS,
        "waitings": _ROWS,
        "storeds": _ROWS,
        "subscriptions": max(1, len(setup.work.subscriptions)),
        "recents": _double_until(_RECENTS, _expected_recents(setup)),
        "paths": _RECENTS,
    }


def _links(network: Any) -> dict[str, np.ndarray]:
    """Return the arrays that define links, which are arcs sorted by receiver.

    Keys: in_first (each node's first link), senders and listeners (of each link).
    """
    count = len(network.addresses)
    arc_senders = np.repeat(np.arange(count), np.diff(network.first))
    order = np.argsort(network.receivers, kind="stable")
    in_first = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(network.receivers, minlength=count), out=in_first[1:])
    listeners = network.receivers[order].astype(np.int64)
    return {"in_first": in_first, "senders": arc_senders[order], "listeners": listeners}


def _key_space(setup: Setup) -> dict[str, np.ndarray]:
    mapping = setup.protocol.mapping
    bits = np.array([dimension.bits for dimension in mapping.dimensions], np.int64)
    shifts = mapping.key_bits - np.cumsum(bits)
    return {"dimension_bits": bits, "dimension_shifts": shifts, "boxes": _boxes(setup)}


def _frames(setup: Setup) -> dict[str, Any]:
    """Return {field of the state: value} for the fields about frames.

    They are sizes in bytes and airtimes in µs by size. ``first_content_box`` is the first row of ``boxes`` that belongs
    to a content, ``first_text`` the number of the first text that is a key.
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
    """Return {field of the state: upper bound} for what one event of the run may need.

    Keys: most_parts (of a message), most_neighbors (of a node), most_deliveries (at a node), and least_room (free rows
    in each pool).
    """
    neighbors, workload = _most_neighbors(setup), setup.work
    broadcast, unicast, other = needs(setup)
    return {
        "most_parts": neighbors + 2,
        "most_neighbors": neighbors,
        "most_deliveries": workload.most_subscriptions * workload.most_samples,
        "least_room": max(neighbors * broadcast.messages, unicast.messages, other.messages),
    }


def _root_trees(protocol: Any, network: Any) -> np.ndarray:
    """Return an array (n,): the tree of which each node is the root, or NONE.

    A root that is not a node of the network has no tree.
    """
    trees = np.full(len(network.addresses), NONE, np.int64)
    for tree, root in enumerate(protocol.roots):
        index = int(np.searchsorted(network.addresses, root))
        if index < len(trees) and network.addresses[index] == root:
            trees[index] = tree
    return trees


def with_more_room(state: Any) -> Any:
    """Return the state with larger pools.

    Raises NoFastTwinError if the run was stopped by a `Problem`, which larger pools do not solve.
    """
    if state.numbers[Number.PROBLEM]:
        raise twin.NoFastTwinError(PROBLEM_TEXTS[state.numbers[Number.PROBLEM]])
    needed = int(state.numbers[Number.NEEDED])
    state = twin.grown(FIELDS, state, "keys", _double_until(len(state.keys), int(state.numbers[Number.KEYS]) + needed))
    for pool, free in (
        ("pendings", Number.FREE_PENDINGS),
        ("waitings", Number.FREE_WAITINGS),
        ("storeds", Number.FREE_STOREDS),
    ):
        rows = len(getattr(state, pool))
        if state.numbers[free] < needed:
            state = twin.grown(FIELDS, state, pool, _double_until(rows, rows - int(state.numbers[free]) + needed))
    return state._replace(
        recents=_with_free_rows(state, state.recents, Number.RECENTS, needed),
        paths=_with_free_rows(state, state.paths, Number.PATHS, needed),
    )


def _expected_recents(setup: Setup) -> int:
    """Estimate how many recent ids a run stores; a table of this size is then rarely copied to a larger table."""
    protocol, network, workload, _ = setup
    trees = len(protocol.roots) if protocol.publish == "all" else 1
    return min(
        _MOST_RECENTS,
        2 * len(network.addresses) * protocol.max_known,
        2 * _HOPS_PER_EVENT * trees * workload.publications,
    )


def _double_until(length: int, needed: int) -> int:
    while length < needed:
        length *= 2
    return length


def _with_free_rows(state: Any, rows: np.ndarray, counter: int, needed: int) -> np.ndarray:
    """Return a table of recent ids that has room for ``needed`` more ids.

    The table is ``rows`` itself, or a larger copy without forgotten ids. ``counter``: index in ``state.numbers`` of the
    number of ids in the table.
    """
    if 2 * (state.numbers[counter] + needed) <= len(rows):
        return rows
    heard, paths = (np.ascontiguousarray(state.nodes[name]) for name in ("heard", "paths"))
    memories = state.listeners, heard, paths, state.max_known
    state.numbers[counter] = count_remembered(rows, *memories)
    # At most a quarter full, so that the table does not grow again soon.
    longer_rows = np.zeros(_double_until(len(rows), 4 * int(state.numbers[counter] + needed)), rows.dtype)
    copy_remembered(rows, longer_rows, *memories)
    return longer_rows


def text(setup: Setup, state: Any, number: int) -> str:
    """Return the text of a trace detail with this ``number``.

    In TinyMQ the text is the key in row ``number`` of ``keys``, as a string of 0 and 1.
    """
    return key_text(state.keys, number)

"""The initial arrays of all nodes' state in the fast engine, and the upper bounds of their sizes in a scenario."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench import attributes as attributes_module
from workbench.attributes.interests import interval_us
from workbench.attributes.model import Attribute
from workbench.attributes.text import parse, to_text
from workbench.attributes.wire import ATTRIBUTE_B, BLOB_HEADER_B
from workbench.protocols.diffusion import wire
from workbench.protocols.diffusion.fast import filters as diffusion_filters
from workbench.protocols.diffusion.fast.memory import ATTRIBUTE_LIST, FIELDS, MOST_ATTRIBUTES, Number, PoolNeed, State
from workbench.protocols.diffusion.rules import MAX_WAITING, known_for_us, lifetime_s
from workbench.protocols.subscriptions import SECOND_US
from workbench.sim import actions
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, Needs, Setup

_MOST_BUCKETS = 1 << 20


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Return the size (bytes) of a data frame with a publication's attributes and without a list of sinks."""
    _check_attribute_count(protocol, attributes)
    return len(wire.encode_data(wire.Data(0, 0, 0, 1, False, (), attributes), protocol.profile, protocol.matching))


def _check_attribute_count(protocol: Any, attributes: tuple[Attribute, ...]) -> None:
    if len(attributes) > protocol.max_attributes:
        raise twin.NoFastTwinError(
            f"{to_text(attributes)!r} has {len(attributes)} attributes; "
            f"use at most {protocol.max_attributes} (the parameter max_attributes)"
        )


def longest_frame_B(setup: Setup) -> int:
    """Return the size (bytes) of the longest frame that the parameter ``profile`` allows."""
    return 1 + wire.PROFILES[setup.protocol.profile]


class Bounds(NamedTuple):
    """Upper bounds of the sizes in a run, such as the number of gradients in an entry; derived from its scenario."""

    nodes: int
    degree: int  # the most neighbors that a node hears
    filters: int
    publishers: int
    sinks: int
    interests: int  # own interests of a node
    entries: int
    gradients: int
    data_gradients: int
    samples: int  # waiting at a node
    deliveries: int


def bounds(setup: Setup) -> Bounds:
    """Return the Bounds of a run. Raises NoFastTwinError if the fast engine does not implement one of its filters."""
    protocol, network, workload_arrays, _ = setup
    node_count = len(network.addresses)
    degree = int(np.bincount(network.receivers, minlength=1).max(initial=1))
    subscribers, publishers = (_nodes_of_actions(setup, kind) for kind in (actions.SUBSCRIBE, actions.PUBLISH))
    filters = diffusion_filters.sort_by_key(diffusion_filters.check(protocol.filters))
    distinct_interests = len({tuple(row) for row in workload_arrays.subscriptions[["first", "last"]].tolist()}) + len(
        workload_arrays.reinforcements
    )
    if any(filter_.messages == "interest" for filter_ in filters):
        distinct_interests = protocol.max_interests
    return Bounds(
        nodes=node_count,
        degree=degree,
        filters=len(filters),
        publishers=len(np.unique(publishers)),
        sinks=len(np.unique(subscribers)),
        interests=int(np.bincount(subscribers, minlength=1).max()),
        entries=max(1, min(protocol.max_interests, distinct_interests)),
        gradients=max(1, min(protocol.max_gradients, degree * len(np.unique(subscribers)))),
        data_gradients=max(1, min(protocol.max_reinforcements, len(np.unique(publishers)))),
        samples=max(1, min(protocol.max_data, int(np.bincount(publishers, minlength=1).max()))),
        deliveries=workload_arrays.most_subscriptions * MOST_ATTRIBUTES,
    )


def _nodes_of_actions(setup: Setup, kind: int) -> np.ndarray:
    """Return the node indices of the workload's actions of one kind, `actions.SUBSCRIBE` or `actions.PUBLISH`."""
    actions = setup.work.actions
    return actions["index"][actions["kind"] == kind]


# Upper limits of the pool entries that one event uses


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """Return upper limits of the trace rows, frames and messages that one call of a node's functions may create.

    The three results are for the reception of a broadcast, the reception of a unicast, and any other call.
    """
    run_bounds = bounds(setup)
    filter_rows = MOST_ATTRIBUTES * run_bounds.filters
    hops = min(run_bounds.degree + 1, run_bounds.entries * run_bounds.gradients)
    cleaning_rows = run_bounds.entries * (2 * run_bounds.gradients + 1)
    data_rows = 5 + filter_rows + run_bounds.deliveries + run_bounds.entries + 3 * run_bounds.interests
    reinforcement_rows = 6 + 2 * run_bounds.gradients + 2 * run_bounds.entries * run_bounds.data_gradients
    interest_needs = Needs(
        2 * cleaning_rows + 3 * run_bounds.gradients + run_bounds.filters + 10, 1, 1 if run_bounds.filters else 0
    )
    # This includes the outcome: the frame may be sent again to other neighbors.
    unicast_needs = Needs(
        2 * cleaning_rows + max(data_rows, reinforcement_rows),
        max(hops + run_bounds.interests, run_bounds.degree) + hops,
        1 + run_bounds.interests + 2 * hops,
    )
    # A dropped sample has a row, and a sample for each sink that does not get it yet.
    own_data_rows = run_bounds.sinks + MOST_ATTRIBUTES + data_rows + 1
    return (
        interest_needs,
        unicast_needs,
        Needs(
            cleaning_rows
            + run_bounds.degree
            + 4
            + run_bounds.interests * (1 + 2 * run_bounds.data_gradients)
            + run_bounds.samples * own_data_rows
            + run_bounds.filters * (cleaning_rows + run_bounds.filters + data_rows),
            1
            + run_bounds.interests * (1 + run_bounds.data_gradients)
            + (run_bounds.samples + MAX_WAITING + run_bounds.filters) * hops,
            1
            + run_bounds.interests
            + 2 * (run_bounds.samples + run_bounds.filters)
            + (run_bounds.samples + MAX_WAITING + run_bounds.filters) * hops,
        ),
    )


def _bound_pool_growth(run_bounds: Bounds) -> np.ndarray:
    """Return how many entries of each pool (growing array) one event of the simulation may use, indexed by PoolNeed."""
    pool_needs = np.zeros(4, np.int64)
    # A data message: each part after each filter, all parts together, each delivered sample.
    data_lists = MOST_ATTRIBUTES * (run_bounds.filters + 2) + 2
    interest_lists = run_bounds.degree * (run_bounds.filters + 2) + run_bounds.interests + 2
    emitted_lists = run_bounds.filters * (run_bounds.filters + 2 + run_bounds.deliveries)
    pool_needs[PoolNeed.LISTS] = max(run_bounds.samples * data_lists, interest_lists) + emitted_lists
    pool_needs[PoolNeed.ATTRIBUTES] = MOST_ATTRIBUTES * (
        max(run_bounds.samples * (run_bounds.filters + 5), interest_lists) + emitted_lists
    )
    pool_needs[PoolNeed.MARKS] = run_bounds.data_gradients * (run_bounds.interests + 1) + run_bounds.interests + 1
    pool_needs[PoolNeed.MEMORIES] = run_bounds.filters * (run_bounds.degree + 1)
    return pool_needs


# Arrays


def make_state(setup: Setup, messages: int) -> Any:
    """Return the initial State of all nodes, with room for ``messages`` messages in flight at once."""
    protocol, _, workload_arrays, radio = setup
    run_bounds = bounds(setup)
    lists = _Lists(setup)
    pool_needs = _bound_pool_growth(run_bounds)
    subscription_counts, publication_counts = (
        np.bincount(_nodes_of_actions(setup, kind), minlength=run_bounds.nodes)
        for kind in (actions.SUBSCRIBE, actions.PUBLISH)
    )
    most_waiting = np.minimum(publication_counts, protocol.max_data)
    black_first = _first_rows(np.bincount(setup.network.receivers, minlength=run_bounds.nodes))
    sizes = _sizes(setup, run_bounds, lists, pool_needs) | {
        "blocks": run_bounds.nodes * run_bounds.entries + int(subscription_counts.sum()),
        "own interests": int(subscription_counts.sum()) + 1,
        "samples": int(most_waiting.sum()) + 1,
        "black": int(black_first[-1]) + 1,
    }
    state = twin.make(
        State,
        FIELDS,
        setup,
        messages,
        sizes,
        refresh_us=int(protocol.refresh_s * SECOND_US),
        lifetime_s=lifetime_s(protocol.refresh_s, protocol.gradient_lifetime_s),
        tick_us=int(protocol.tick_s * SECOND_US),
        sample_lifetime_us=int(protocol.sample_lifetime_s * SECOND_US),
        known_for_us=known_for_us(protocol.refresh_s, protocol.gradient_lifetime_s),
        max_attributes_B=wire.PROFILES[protocol.profile] - wire.DATA_HEADER_B,
        is_strict=protocol.matching == "strict",
        is_two_way=protocol.matching == "two-way",
        black_first=black_first,
        slots=run_bounds.entries,
        own_first=_first_rows(subscription_counts),
        subscription_lists=lists.of_subscriptions,
        reinforcement_lists=lists.of_reinforcements,
        samples_first=_first_rows(most_waiting),
        airtimes_us=np.array([radio.airtime_us(size_B) for size_B in range(longest_frame_B(setup) + 1)]),
        lists=lists.rows,
        attributes=lists.attributes,
        buckets=_buckets(2 * len(lists.rows)),
        is_blob=np.array([attributes_module.is_blob(key) for key in range(256)]),
        blob_sizes_B=np.array([len(blob) for blob in lists.blobs] or [0], np.int32),
        text_base=len(workload_arrays.texts),
        filters=lists.filters,
        carries=_carriers(setup, diffusion_filters.sort_by_key(protocol.filters)),
        memory_buckets=_buckets(run_bounds.filters * run_bounds.nodes * run_bounds.publishers),
        pool_needs=pool_needs,
    )
    state.numbers[[Number.LISTS, Number.ATTRIBUTES]] = len(lists.rows), len(lists.attributes)
    return state


def rows_of_node(state: Any, i: int) -> dict[str, Any]:
    """Return {name of an axis of the state's arrays: the indices of node ``i`` along this axis}.

    The axes are "entries", "own interests", "blocks" (of data gradients), "samples" and "black" (black lists), as in
    `memory.FIELDS`. The indices are an array or a slice.
    """
    entries = np.arange(i * state.slots, (i + 1) * state.slots)
    own_interests = np.arange(state.own_first[i], state.own_first[i + 1])
    return {
        "entries": entries,
        "own interests": own_interests,
        "blocks": np.concatenate((entries, len(state.entries) + own_interests)),
        "samples": slice(int(state.samples_first[i]), int(state.samples_first[i + 1])),
        "black": slice(int(state.black_first[i]), int(state.black_first[i + 1])),
    }


def erase(setup: Setup, state: Any, i: int, first_number: int) -> None:
    """Erase the memories of the filters on node ``i``, and number its next message ``first_number``."""
    node_count = state.carries.shape[1]
    state.memories["id"][state.memories["id"] // node_count % node_count == i] = NONE
    state.nodes["messages"][i] = first_number


def _sizes(setup: Setup, b: Bounds, lists: _Lists, pool_needs: np.ndarray) -> dict[str, int]:
    """Return {dimension: number of elements}, for the array dimensions named in `memory.FIELDS`, such as "gradients".

    ``b``: the bounds of the run; ``lists``: the attribute lists that are known before the run.
    """
    protocol = setup.protocol
    row_ranges = [*setup.work.subscriptions[["first", "last"]].tolist(), *setup.work.reinforcements[:, :2].tolist()]
    is_paced = any(filter_.messages == "interest" for filter_ in protocol.filters) or any(
        interval_us(lists.list(first, last)) for first, last in row_ranges
    )
    max_listed = max(1, b.sinks if is_paced else min(wire.max_listed_sinks(0, protocol.profile), b.sinks))
    max_served = max(1, min(protocol.max_interests * protocol.max_gradients, b.sinks))
    return {
        "seen data": max(1, min(setup.protocol.max_data, setup.work.publications)),
        "seen interests": setup.protocol.max_seen_interests,
        "slots": b.entries,
        "entries": b.nodes * b.entries,
        "gradients": b.gradients,
        "data gradients": b.data_gradients,
        "marks": 64 + 2 * int(pool_needs[PoolNeed.MARKS]),
        "lists": len(lists.rows) + 2 * int(pool_needs[PoolNeed.LISTS]),
        "attributes": len(lists.attributes) + 2 * int(pool_needs[PoolNeed.ATTRIBUTES]),
        "filters": max(1, b.filters),
        "memories": 64 + 2 * int(pool_needs[PoolNeed.MEMORIES]) if b.filters else 1,
        "window": max(1, int(lists.filters["window"].max(initial=1))),
        "hops": b.degree + 1,
        "data paths": b.entries * b.gradients,
        "listed": max_listed,
        "served sinks": max_served,
        "served words": (max_served + 63) // 64,
        "served else": max_listed + max_served + 1,
        "wanted": b.samples,
        "paces": protocol.max_interests if is_paced else 1,
        "early sinks": b.sinks if is_paced else 1,
    }


def _first_rows(counts: np.ndarray) -> np.ndarray:
    """Return the index of each node's first row in an array that all nodes share, then the total number of rows.

    ``counts``: the number of rows of each node.
    """
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _buckets(min_size: int) -> np.ndarray:
    size = 1 << 10
    while size < min(min_size, _MOST_BUCKETS):
        size *= 2
    return np.full(size, NONE, np.int32)


def _carriers(setup: Setup, filters: list) -> np.ndarray:
    """Return a bool array of shape (filters, nodes): whether the node carries the filter."""
    carries = np.ones((max(1, len(filters)), len(setup.network.addresses)), np.bool_)
    for node_flags, filter_ in zip(carries, filters, strict=False):
        if filter_.at is not None:
            node_flags[:] = np.isin(setup.network.addresses, filter_.at)
    return carries


class _Lists:
    """The attribute lists that are known before the run.

    The lists of the workload's publications come first; their ids are their indices in the array ``contents`` of the
    workload. The lists of subscriptions, of reinforcements and of filters' ``match`` follow.
    """

    def __init__(self, setup: Setup) -> None:
        protocol, _, workload_arrays, _ = setup
        self.blobs = list(workload_arrays.blobs)
        self._attributes = workload_arrays.attributes.tolist()
        contents, samples = workload_arrays.contents, workload_arrays.samples
        content_lists = np.zeros(len(contents), ATTRIBUTE_LIST)
        if len(contents):
            content_lists["first"] = samples["first"][contents["first_sample"]]
            content_lists["last"] = samples["last"][contents["last_sample"] - 1]
            content_lists["detail"] = contents["detail"]
            content_lists["size_B"] = contents["size_B"] - 1 - wire.DATA_HEADER_B
        self._added_lists: list[tuple[int, int, int]] = []
        self._contents = len(contents)
        self.of_subscriptions = np.array([*self._add_subscriptions(setup), 0], np.int32)
        self.of_reinforcements = np.array([*self._add_reinforcements(setup), 0], np.int32)
        filters = diffusion_filters.sort_by_key(protocol.filters)
        self.filters = diffusion_filters.filter_rows(
            filters, [self._add_list(parse(filter_.match)) for filter_ in filters]
        )
        added_lists = np.zeros(len(self._added_lists), ATTRIBUTE_LIST)
        for name, column in zip(("first", "last", "detail"), zip(*self._added_lists, strict=True), strict=False):
            added_lists[name] = column
        self.attributes = np.array(self._attributes, np.int32).reshape(-1, 3)
        added_lists["size_B"] = [self._size_B(first, last) for first, last, _ in self._added_lists]
        self.rows = np.concatenate((content_lists, added_lists))
        self.rows["constraints"] = NONE

    def _add_subscriptions(self, setup: Setup) -> list[int]:
        """Return the id of each subscription's attribute list, in the order of the workload.

        Raises NoFastTwinError if a node could refuse a subscription.
        """
        id_by_rows: dict[tuple[int, int, int], int] = {}
        lists_by_node: dict[int, list] = {}
        list_ids = []
        nodes = _nodes_of_actions(setup, actions.SUBSCRIBE)
        for node, row in zip(nodes.tolist(), setup.work.subscriptions, strict=True):
            key = int(row["first"]), int(row["last"]), int(row["detail"])
            list_id = id_by_rows.get(key)
            if list_id is None:
                list_id = id_by_rows[key] = self._contents + len(self._added_lists)
                self._added_lists.append(key)
                _check_interest(setup.protocol, self.list(key[0], key[1]))
            list_ids.append(list_id)
            lists_by_node.setdefault(node, []).append(list_id)
        for node, lists in lists_by_node.items():
            for size, limit_name in ((len(set(lists)), "max_interests"), (len(lists), "max_subscriptions")):
                if size > getattr(setup.protocol, limit_name):
                    address = setup.network.addresses[node]
                    raise twin.NoFastTwinError(
                        f"node {address} has {size} subscriptions that count towards {limit_name}, which allows "
                        f"{getattr(setup.protocol, limit_name)}; raise this limit, or use the reference engine, which "
                        "can refuse a subscription"
                    )
        return list_ids

    def _add_reinforcements(self, setup: Setup) -> list[int]:
        """Add the attribute list of each reinforcement in the workload, and return the ids of these lists."""
        list_ids = []
        for first, last, detail in setup.work.reinforcements.tolist():
            _check_interest(setup.protocol, self.list(first, last))
            list_ids.append(self._contents + len(self._added_lists))
            self._added_lists.append((first, last, detail))
        return list_ids

    def _add_list(self, attributes: tuple[Attribute, ...]) -> int:
        first_row = len(self._attributes)
        for key, operator, value in attributes:
            if not isinstance(value, int):
                if value not in self.blobs:
                    self.blobs.append(value)
                value = self.blobs.index(value)
            self._attributes.append([key, operator, value])
        self._added_lists.append((first_row, len(self._attributes), NONE))
        return self._contents + len(self._added_lists) - 1

    def list(self, first: int, last: int) -> tuple[Attribute, ...]:
        """Return rows first:last of the table of attributes as Attribute objects."""
        return as_attributes(self._attributes[first:last], self.blobs)

    def _size_B(self, first: int, last: int) -> int:
        size_B = 0
        for key, _, value in self._attributes[first:last]:
            size_B += BLOB_HEADER_B + len(self.blobs[value]) if attributes_module.is_blob(key) else ATTRIBUTE_B
        return size_B


def as_attributes(rows: list[list[int]], blobs: list[bytes]) -> tuple[Attribute, ...]:
    """Convert rows (key, operator, value) to Attribute objects; the value of a blob's row is its index in ``blobs``."""
    return tuple(
        Attribute(key, operator, blobs[value] if attributes_module.is_blob(key) else value)
        for key, operator, value in rows
    )


def _check_interest(protocol: Any, attributes: tuple[Attribute, ...]) -> None:
    """Raise NoFastTwinError or EncodeError if nodes would refuse a subscription with these attributes."""
    _check_attribute_count(protocol, attributes)
    wire.encode_interest(wire.Interest(0, 0, 0, 0, 1, 0, attributes), protocol.profile)


# During the run, and after it


def with_more_room(state: Any) -> Any:
    """Return a copy of the state, with twice the size for each growing array that has no room for another event."""
    pool_numbers, pool_needs = state.numbers, state.pool_needs
    if pool_numbers[Number.LISTS] + pool_needs[PoolNeed.LISTS] > len(state.lists):
        # The hash table grows too, so all lists are added to it again.
        pool_numbers[Number.REMEMBERED] = 0
        state = _double_pool(state, "lists")._replace(buckets=_buckets(2 * len(state.lists)))
    if pool_numbers[Number.ATTRIBUTES] + pool_needs[PoolNeed.ATTRIBUTES] > len(state.attributes):
        state = _double_pool(state, "attributes")
    if pool_numbers[Number.FREE_MARKS] < pool_needs[PoolNeed.MARKS]:
        state = _double_pool(state, "marks")
    if pool_numbers[Number.MEMORIES] + pool_needs[PoolNeed.MEMORIES] > len(state.memories):
        state = _double_pool(state, "memories")
    return state


def _double_pool(state: Any, pool: str) -> Any:
    return twin.grown(FIELDS, state, pool, 2 * len(getattr(state, pool)))


def text(setup: Setup, state: Any, list_id: int) -> str:
    """Return the text of the attribute list ``list_id``, which was built during the run."""
    attribute_list = state.lists[list_id]
    return to_text(
        as_attributes(state.attributes[attribute_list["first"] : attribute_list["last"]].tolist(), setup.work.blobs)
    )

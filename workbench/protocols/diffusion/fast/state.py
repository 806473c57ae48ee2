"""Build the arrays of `memory` from a scenario: upper bounds of their sizes, and the values known before a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench import attributes as attributes_module
from workbench.attributes.model import Attribute
from workbench.attributes.text import parse, to_text
from workbench.attributes.wire import ATTRIBUTE_B, BLOB_HEADER_B
from workbench.protocols.diffusion import wire
from workbench.protocols.diffusion.fast import filters as diffusion_filters
from workbench.protocols.diffusion.fast.memory import ATTRIBUTE_LIST, FIELDS, MOST_ATTRIBUTES, Number, PoolNeed, State
from workbench.protocols.diffusion.rules import MAX_WAITING, known_for_us, lifetime_s
from workbench.protocols.subscriptions import SECOND_US
from workbench.sim import workload
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, Needs, Setup

_MOST_BUCKETS = 1 << 20


def size_B(protocol: Any, attributes: tuple[Attribute, ...]) -> int:
    """Return the size of a publication's frame (bytes)."""
    _check_count(protocol, attributes)
    return len(wire.encode_data(wire.Data(0, 0, 0, 1, False, (), attributes), protocol.profile))


def _check_count(protocol: Any, attributes: tuple[Attribute, ...]) -> None:
    if len(attributes) > protocol.max_attributes:
        raise twin.NoFastTwinError(
            f"{to_text(attributes)!r} has {len(attributes)} attributes; max_attributes is {protocol.max_attributes}"
        )


def longest_frame_B(setup: Setup) -> int:
    """Return the size of the longest frame that can be sent (bytes)."""
    return 1 + wire.PROFILES[setup.protocol.profile]


class Bounds(NamedTuple):
    """Upper bounds of the counts in a run, from the parameters or, if lower, from the workload."""

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
    """Return the bounds of a run. Raises NoFastTwinError if a filter is not available in the fast twin."""
    protocol, network, work, _ = setup
    count = len(network.addresses)
    degree = int(np.bincount(network.receivers, minlength=1).max(initial=1))
    subscribers, publishers = (_nodes_acting(setup, kind) for kind in (workload.SUBSCRIBE, workload.PUBLISH))
    filters = diffusion_filters.sort_by_key(diffusion_filters.check(protocol.filters))
    distinct = len({tuple(row) for row in work.subscriptions[["first", "last"]].tolist()})
    if any(filter_.messages == "interest" for filter_ in filters):
        distinct = protocol.max_interests
    return Bounds(
        nodes=count,
        degree=degree,
        filters=len(filters),
        publishers=len(np.unique(publishers)),
        sinks=len(np.unique(subscribers)),
        interests=int(np.bincount(subscribers, minlength=1).max()),
        entries=max(1, min(protocol.max_interests, distinct)),
        gradients=max(1, min(protocol.max_gradients, degree * len(np.unique(subscribers)))),
        data_gradients=max(1, min(protocol.max_reinforcements, len(np.unique(publishers)))),
        samples=max(1, min(protocol.max_data, int(np.bincount(publishers, minlength=1).max()))),
        deliveries=work.most_subscriptions * MOST_ATTRIBUTES,
    )


def _nodes_acting(setup: Setup, kind: int) -> np.ndarray:
    """Return the node index of each action of a kind (subscribe or publish), in the order of the workload."""
    actions = setup.work.actions
    return actions["index"][actions["kind"] == kind]


# Upper limits of the pool entries that one event uses


def needs(setup: Setup) -> tuple[Needs, Needs, Needs]:
    """Return the most entries of the engine's pools used by one broadcast reception, one unicast, any other call."""
    b = bounds(setup)
    parts = MOST_ATTRIBUTES * b.filters
    hops = min(b.degree + 1, b.entries * b.gradients)
    cleaning = b.entries * (2 * b.gradients + 1)
    data = 5 + parts + b.deliveries + b.entries + 3 * b.interests
    reinforcement = 6 + 2 * b.gradients + 2 * b.entries * b.data_gradients
    interest = Needs(2 * cleaning + 3 * b.gradients + b.filters + 10, 1, 1 if b.filters else 0)
    # This includes the outcome: the frame may be sent again to other neighbors.
    unicast = Needs(
        2 * cleaning + max(data, reinforcement), max(hops + b.interests, b.degree) + hops, 1 + b.interests + 2 * hops
    )
    own_data = MOST_ATTRIBUTES + data + 1  # dropping an old sample adds one row
    return (
        interest,
        unicast,
        Needs(
            cleaning + b.degree + 4 + b.interests + b.samples * own_data,
            1 + b.interests + (b.samples + MAX_WAITING) * hops,
            1 + b.interests + 2 * b.samples + (b.samples + MAX_WAITING) * hops,
        ),
    )


def _pool_needs(b: Bounds) -> np.ndarray:
    """Return the most entries of each pool that an event may use."""
    pool_needs = np.zeros(4, np.int64)
    # A data message: each part after each filter, all parts together, each delivered sample.
    data = MOST_ATTRIBUTES * (b.filters + 2) + 2
    interests = b.degree * (b.filters + 2) + b.interests + 2
    pool_needs[PoolNeed.LISTS] = max(b.samples * data, interests)
    pool_needs[PoolNeed.ATTRIBUTES] = MOST_ATTRIBUTES * max(b.samples * (b.filters + 5), interests)
    pool_needs[PoolNeed.MARKS] = b.data_gradients + b.interests + 1
    pool_needs[PoolNeed.MEMORIES] = b.filters * (b.degree + 1)
    return pool_needs


# Arrays


def make_state(setup: Setup, messages: int) -> Any:
    """Return the state of all nodes, with room for ``messages`` messages in flight at once."""
    protocol, _, work, radio = setup
    b = bounds(setup)
    lists = _Lists(setup)
    pool_needs = _pool_needs(b)
    subscribed, published = (
        np.bincount(_nodes_acting(setup, kind), minlength=b.nodes) for kind in (workload.SUBSCRIBE, workload.PUBLISH)
    )
    most_waiting = np.minimum(published, protocol.max_data)
    black_first = _first_rows(np.bincount(setup.network.receivers, minlength=b.nodes))
    sizes = _sizes(setup, b, lists, pool_needs) | {
        "blocks": b.nodes * b.entries + int(subscribed.sum()),
        "own interests": int(subscribed.sum()) + 1,
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
        black_first=black_first,
        slots=b.entries,
        own_first=_first_rows(subscribed),
        subscription_lists=lists.of_subscriptions,
        samples_first=_first_rows(most_waiting),
        airtimes_us=np.array([radio.airtime_us(size_B) for size_B in range(longest_frame_B(setup) + 1)]),
        lists=lists.rows,
        attributes=lists.attributes,
        buckets=_buckets(2 * len(lists.rows)),
        is_blob=np.array([attributes_module.is_blob(key) for key in range(256)]),
        blob_sizes_B=np.array([len(blob) for blob in lists.blobs] or [0], np.int32),
        text_base=len(work.texts),
        filters=lists.filters,
        carries=_carriers(setup, diffusion_filters.sort_by_key(protocol.filters)),
        memory_buckets=_buckets(b.filters * b.nodes * b.publishers),
        pool_needs=pool_needs,
    )
    state.numbers[[Number.LISTS, Number.ATTRIBUTES]] = len(lists.rows), len(lists.attributes)
    return state


def _sizes(setup: Setup, b: Bounds, lists: _Lists, pool_needs: np.ndarray) -> dict[str, int]:
    """Return the sizes of `memory.FIELDS` that follow from the bounds and the lists."""
    protocol = setup.protocol
    listed = max(1, min(wire.max_listed_sinks(0, protocol.profile), b.sinks))
    served = max(1, min(protocol.max_interests * protocol.max_gradients, b.sinks))
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
        "listed": listed,
        "served sinks": served,
        "served words": (served + 63) // 64,
        "served else": listed + served + 1,
        "wanted": b.samples,
    }


def _first_rows(counts: np.ndarray) -> np.ndarray:
    """Return the index of each node's first row, then the total number of rows; ``counts`` are the rows per node."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _buckets(wanted: int) -> np.ndarray:
    size = 1 << 10
    while size < min(wanted, _MOST_BUCKETS):
        size *= 2
    return np.full(size, NONE, np.int32)


def _carriers(setup: Setup, filters: list) -> np.ndarray:
    """Return whether each node carries each filter, shape (filters, nodes)."""
    carries = np.ones((max(1, len(filters)), len(setup.network.addresses)), np.bool_)
    for row, filter_ in zip(carries, filters, strict=False):
        if filter_.at is not None:
            row[:] = np.isin(setup.network.addresses, filter_.at)
    return carries


class _Lists:
    """Attribute lists known before the run: those of publications by number, then of subscriptions and filters."""

    def __init__(self, setup: Setup) -> None:
        protocol, _, work, _ = setup
        self.blobs = list(work.blobs)
        self._attributes = work.attributes.tolist()
        contents, samples = work.contents, work.samples
        rows = np.zeros(len(contents), ATTRIBUTE_LIST)
        if len(contents):
            rows["first"] = samples["first"][contents["first_sample"]]
            rows["last"] = samples["last"][contents["last_sample"] - 1]
            rows["detail"] = contents["detail"]
            rows["size_B"] = contents["size_B"] - 1 - wire.DATA_HEADER_B
        self._added_lists: list[tuple[int, int, int]] = []
        self._contents = len(contents)
        self.of_subscriptions = np.array([*self._subscriptions(setup), 0], np.int32)
        filters = diffusion_filters.sort_by_key(protocol.filters)
        self.filters = diffusion_filters.filter_rows(filters, [self._add(parse(filter_.match)) for filter_ in filters])
        added_lists = np.zeros(len(self._added_lists), ATTRIBUTE_LIST)
        for name, column in zip(("first", "last", "detail"), zip(*self._added_lists, strict=True), strict=False):
            added_lists[name] = column
        self.attributes = np.array(self._attributes, np.int32).reshape(-1, 3)
        added_lists["size_B"] = [self._size_B(first, last) for first, last, _ in self._added_lists]
        self.rows = np.concatenate((rows, added_lists))
        self.rows["constraints"] = NONE

    def _subscriptions(self, setup: Setup) -> list[int]:
        """Return the attribute list of each subscription. Raises NoFastTwinError if a node could refuse one."""
        numbers_of_lists: dict[tuple[int, int, int], int] = {}
        lists_of_nodes: dict[int, list] = {}
        numbers = []
        nodes = _nodes_acting(setup, workload.SUBSCRIBE)
        for node, row in zip(nodes.tolist(), setup.work.subscriptions, strict=True):
            key = int(row["first"]), int(row["last"]), int(row["detail"])
            number = numbers_of_lists.get(key)
            if number is None:
                number = numbers_of_lists[key] = self._contents + len(self._added_lists)
                self._added_lists.append(key)
                _check_interest(setup.protocol, self.list(key[0], key[1]))
            numbers.append(number)
            lists_of_nodes.setdefault(node, []).append(number)
        for node, lists in lists_of_nodes.items():
            for size, most in ((len(set(lists)), "max_interests"), (len(lists), "max_subscriptions")):
                if size > getattr(setup.protocol, most):
                    address = setup.network.addresses[node]
                    raise twin.NoFastTwinError(
                        f"node {address} may subscribe to more than {most} allows, which is an error"
                    )
        return numbers

    def _add(self, attributes: tuple[Attribute, ...]) -> int:
        first = len(self._attributes)
        for key, operator, value in attributes:
            if not isinstance(value, int):
                if value not in self.blobs:
                    self.blobs.append(value)
                value = self.blobs.index(value)
            self._attributes.append([key, operator, value])
        self._added_lists.append((first, len(self._attributes), NONE))
        return self._contents + len(self._added_lists) - 1

    def list(self, first: int, last: int) -> tuple[Attribute, ...]:
        """Return the attributes in rows first:last."""
        return as_attributes(self._attributes[first:last], self.blobs)

    def _size_B(self, first: int, last: int) -> int:
        size_B = 0
        for key, _, value in self._attributes[first:last]:
            size_B += BLOB_HEADER_B + len(self.blobs[value]) if attributes_module.is_blob(key) else ATTRIBUTE_B
        return size_B


def as_attributes(rows: list[list[int]], blobs: list[bytes]) -> tuple[Attribute, ...]:
    """Return rows (key, operator, value or number of a blob) as attributes."""
    return tuple(
        Attribute(key, operator, blobs[value] if attributes_module.is_blob(key) else value)
        for key, operator, value in rows
    )


def _check_interest(protocol: Any, attributes: tuple[Attribute, ...]) -> None:
    """Raise WorkbenchError if nodes refuse subscriptions with these attributes."""
    _check_count(protocol, attributes)
    wire.encode_interest(wire.Interest(0, 0, 0, 0, 1, 0, attributes), protocol.profile)


# During the run, and after it


def with_more_room(state: Any) -> Any:
    """Return the state with twice as many entries in each pool that the next event might exhaust."""
    numbers, pool_needs = state.numbers, state.pool_needs
    if numbers[Number.LISTS] + pool_needs[PoolNeed.LISTS] > len(state.lists):
        # The hash table grows too, so all lists are added to it again.
        numbers[Number.REMEMBERED] = 0
        state = _doubled(state, "lists")._replace(buckets=_buckets(2 * len(state.lists)))
    if numbers[Number.ATTRIBUTES] + pool_needs[PoolNeed.ATTRIBUTES] > len(state.attributes):
        state = _doubled(state, "attributes")
    if numbers[Number.FREE_MARKS] < pool_needs[PoolNeed.MARKS]:
        state = _doubled(state, "marks")
    if numbers[Number.MEMORIES] + pool_needs[PoolNeed.MEMORIES] > len(state.memories):
        state = _doubled(state, "memories")
    return state


def _doubled(state: Any, pool: str) -> Any:
    return twin.grown(FIELDS, state, pool, 2 * len(getattr(state, pool)))


def text(setup: Setup, state: Any, number: int) -> str:
    """Return the text of an attribute list that was built during the run."""
    row = state.lists[number]
    return to_text(as_attributes(state.attributes[row["first"] : row["last"]].tolist(), setup.work.blobs))

"""Functions that convert a workload to arrays: texts become codes, and addresses become indices of nodes.

Cost
    Each distinct text is parsed once, however often it is published. A sensor field's readings are mostly distinct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.attributes.model import (
    Attribute,
    check_publication,
    check_subscription,
    with_payload,
)
from workbench.attributes.text import parse, to_text
from workbench.protocols.protocol import Protocol
from workbench.sim import actions, workload
from workbench.sim.fast.layout import ACTION, CONTENT, NONE, SAMPLE, SUBSCRIPTION
from workbench.sim.fast.network import Network
from workbench.sim.radio import Radio


class Work(NamedTuple):
    """The workload of a run as arrays, which `workbench.sim.fast.layout` describes.

    ``texts``: the texts of the trace's column "detail" that exist before the run, in the order of their codes.
    ``publications``: the number of publications. ``most_subscriptions``: the largest number of subscriptions of a node.
    ``most_samples``: the largest number of samples of a publication.
    """

    actions: np.ndarray
    contents: np.ndarray
    samples: np.ndarray
    attributes: np.ndarray
    subscriptions: np.ndarray
    first_subscription: np.ndarray
    # (r, 3), a row for each different text: its first and last row in ``attributes``, and its index in ``texts``.
    reinforcements: np.ndarray
    texts: list[str]
    blobs: list[bytes]
    publications: int
    most_subscriptions: int
    most_samples: int


class Setup(NamedTuple):
    """The input of a run on the fast engine, from which a protocol creates the state of its nodes."""

    protocol: Protocol
    network: Network
    work: Work
    radio: Radio


class Numbering:
    """A mapping from texts and blobs to numbers; looking up a new text or blob gives it the next number, from 0."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.numbers: dict[Any, int] = {text: number for number, text in enumerate(texts)}

    def __getitem__(self, text: Any) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


class Preparation:
    """A builder of the arrays of a workload, for the nodes ``addresses`` (n,) at ``positions_m`` (n, 2).

    ``size_B``: a function that returns the size of a publication's frame, given its attributes. ``reasons``: the texts
    of reasons of losses and drops, which have the codes 0, 1, ... in the column "detail". ``position``: a function
    (address, time in µs) that returns a node's position (x, y), or None if no node moves.
    """

    def __init__(
        self,
        addresses: np.ndarray,
        positions_m: np.ndarray,
        radio: Radio,
        size_B: Callable[[tuple], int],
        reasons: Sequence[str],
        position: Callable[[int, int], tuple[float, float]] | None = None,
    ) -> None:
        self._position = position
        self._addresses = addresses
        self._positions_m = positions_m
        self._extent_m: tuple[float, float] | None = None
        self._radio = radio
        self._size_B = size_B
        self._texts = Numbering(reasons)
        self._blobs = Numbering()
        self._attributes: list[tuple[int, int, int]] = []
        self._samples: list[tuple[int, int, int]] = []
        self._contents: list[tuple[int, int, int, int, int]] = []
        self._content_of: dict[tuple[str, bytes], int] = {}
        self._constraints: dict[tuple[str, bool], tuple[int, int, int]] = {}
        self._subscriptions: list[tuple] = []
        self._subscription_of: dict[tuple[int, int], int] = {}
        self._reinforcements: dict[str, tuple[int, int, int]] = {}  # in order of their indices

    def work(self, items: Sequence[workload.Item], duration_us: int, seed: int) -> Work:
        """Convert workload items to arrays. Raises WorkbenchError if the protocol cannot encode an item."""
        names_all_nodes = any(isinstance(item.at, str) for item in items)
        nodes = tuple(self._addresses.tolist()) if names_all_nodes else ()
        all_actions = workload.expand(items, nodes, duration_us, seed)
        rows = np.zeros(len(all_actions), ACTION)
        rows["time_us"] = [action.time_us for action in all_actions]
        rows["kind"] = [action.kind for action in all_actions]
        node_indices = np.searchsorted(self._addresses, np.array([action.node for action in all_actions], np.int64))
        rows["index"] = node_indices
        rows["subject"] = [
            self._add_subject(action, node_index)
            for action, node_index in zip(all_actions, node_indices.tolist(), strict=True)
        ]
        subscriptions, first_subscription = self._link_subscriptions(node_indices, all_actions)
        sample_counts = np.array([sample_end - first_sample for first_sample, sample_end, *_ in self._contents] or [0])
        return Work(
            rows,
            np.array(self._contents, CONTENT),
            np.array(self._samples, SAMPLE),
            np.array(self._attributes, np.int32).reshape(-1, 3),
            subscriptions,
            first_subscription,
            np.array(list(self._reinforcements.values()), np.int32).reshape(-1, 3),
            list(self._texts.numbers),
            list(self._blobs.numbers),
            int(np.count_nonzero(rows["kind"] == actions.PUBLISH)),
            max(np.bincount(node_indices[rows["kind"] == actions.SUBSCRIBE]), default=0) if len(node_indices) else 0,
            int(sample_counts.max()),
        )

    def _add_subject(self, action: actions.Action, index: int) -> int:
        """Return the index of an action's publication, subscription or reinforcement in its array of `Work`.

        Returns NONE for other actions. ``index``: the index of the action's node. A publication, subscription or
        reinforcement that is not yet in the array is added.
        """
        item = action.item
        if action.kind == actions.PUBLISH:
            published_data = item.what
            if not isinstance(published_data, str):
                x_m, y_m = self._positions_m[index].tolist()
                if self._position is not None:
                    x_m, y_m = self._position(action.node, action.time_us)
                published_data = published_data.attributes(action.node, x_m, y_m, action.time_us / 1e6, self.extent_m)
            content = self._content_of.get((published_data, item.payload))
            return self._add_content(published_data, item.payload) if content is None else content
        if action.kind == actions.SUBSCRIBE:
            constraints_key = item.what, item.match_all
            constraints = self._constraints.get(constraints_key)
            if constraints is None:
                attributes = check_subscription(parse(item.what), item.match_all)
                constraints = self._constraints[constraints_key] = (
                    *self._add_attributes(attributes),
                    self._texts[to_text(attributes)],
                )
            lasts_us = NONE if item.expires_s is None else int(item.expires_s * 1_000_000)
            self._subscription_of[index, action.index] = len(self._subscriptions)
            self._subscriptions.append((lasts_us, NONE, *constraints, 0, NONE, 0))
            return len(self._subscriptions) - 1
        if action.kind == actions.REINFORCE:
            if item.what not in self._reinforcements:
                attributes = parse(item.what)
                self._reinforcements[item.what] = (*self._add_attributes(attributes), self._texts[to_text(attributes)])
            return list(self._reinforcements).index(item.what)
        if action.kind == actions.UNSUBSCRIBE:
            return self._subscription_of.get((index, action.index), NONE)
        return NONE

    @property
    def extent_m(self) -> tuple[float, float]:
        """The largest x and the largest y coordinate of the nodes, in metres."""
        if self._extent_m is None:
            width_m, height_m = self._positions_m.max(axis=0).tolist()
            self._extent_m = width_m, height_m
        return self._extent_m

    def _add_content(self, text: str, payload: bytes) -> int:
        attributes = with_payload(parse(text), payload)
        # The scenario has refused constraints that its protocol does not allow.
        check_publication(attributes, constraints=True)
        first_sample = len(self._samples)
        detail_code = self._texts[to_text(attributes)]
        self._samples.append((*self._add_attributes(attributes), detail_code))
        size_B = self._size_B(attributes)
        self._contents.append((first_sample, len(self._samples), detail_code, size_B, self._radio.airtime_us(size_B)))
        self._content_of[text, payload] = len(self._contents) - 1
        return len(self._contents) - 1

    def _add_attributes(self, attributes: Sequence[Attribute]) -> tuple[int, int]:
        first_row = len(self._attributes)
        for key, operator, value in attributes:
            number = value if isinstance(value, int) else self._blobs[bytes(value)]
            self._attributes.append((key, operator, number))
        return first_row, len(self._attributes)

    def _link_subscriptions(self, indices: np.ndarray, all_actions: list) -> tuple[np.ndarray, np.ndarray]:
        """Return (records of all subscriptions, index of each node's first record): a linked list for each node.

        The column ``next`` of a record has the index of the node's next subscription, or NONE at the end of the list.
        The first index is NONE for a node without subscriptions. ``indices``: for each of ``all_actions``, the index of
        its node.
        """
        subscriptions = np.array(self._subscriptions, SUBSCRIPTION)
        first_of_node = np.full(len(self._addresses), NONE, np.int32)
        last_of_node: dict[int, int] = {}
        subscriber_indices = (
            node_index
            for node_index, action in zip(indices.tolist(), all_actions, strict=True)
            if action.kind == actions.SUBSCRIBE
        )
        for subscription_row, node_index in enumerate(subscriber_indices):
            if node_index in last_of_node:
                subscriptions["next"][last_of_node[node_index]] = subscription_row
            else:
                first_of_node[node_index] = subscription_row
            last_of_node[node_index] = subscription_row
        return subscriptions, first_of_node

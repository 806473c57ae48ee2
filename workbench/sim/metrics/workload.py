"""A run's subscriptions and publications as columns, and the intervals in which subscriptions are active."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from workbench.columns import find_last, shared_keys, take_rows, unique_inverse
from workbench.sim.actions import CRASHED
from workbench.sim.rows import Columns

_NEVER_US = int(np.iinfo(np.int64).max)


class Subscriptions(NamedTuple):
    """Subscriptions, one array (s,) per field; a subscription exists in [first_us, last_us).

    ``texts``: the distinct constraints of all subscriptions, as text. ``text``: each subscription's index in ``texts``.
    """

    node: np.ndarray
    number: np.ndarray
    text: np.ndarray
    first_us: np.ndarray
    last_us: np.ndarray
    texts: list[str]


class Publications(NamedTuple):
    """Publications in order of time, one array (p,) per field.

    ``texts``: the distinct attributes of all publications, as text. ``text``: each publication's index in ``texts``.
    """

    node: np.ndarray
    number: np.ndarray
    time_us: np.ndarray
    text: np.ndarray
    texts: list[str]


class ActiveIntervals(NamedTuple):
    """Intervals [first_us, last_us) in which a subscription exists and its node is up.

    Each field is an array (k,); ``subscription`` is an index. The intervals of a subscription are disjoint. All
    intervals are in order of (subscription, first_us).
    """

    subscription: np.ndarray
    first_us: np.ndarray
    last_us: np.ndarray

    def has(self, subscription: np.ndarray, time_us: np.ndarray) -> np.ndarray:
        """Return whether ``time_us[i]`` is in an active interval of ``subscription[i]``, an index; bool (n,)."""
        if not len(self.subscription):
            return np.zeros(len(subscription), np.bool_)
        interval_starts, queries = shared_keys((self.subscription, self.first_us), (subscription, time_us))
        last_interval = np.searchsorted(interval_starts, queries, side="right") - 1
        return (
            (last_interval >= 0)
            & (self.subscription[last_interval] == subscription)
            & (time_us < self.last_us[last_interval])
        )


def read_subscriptions(rows: Columns) -> Subscriptions:
    """Return all subscriptions in ``rows``, the columns of a run's trace."""
    rows_by_key: dict[tuple[int, int], list[int]] = {}
    texts: dict[str, int] = {}
    open_keys: dict[int, list[tuple[int, int]]] = {}  # of each node
    for row in rows.of("subscribed", "unsubscribed", "failed"):
        subscription_key = row.node, row.sequence
        if row.event == "failed":
            # A node that loses its memory loses its subscriptions.
            for open_key in open_keys.pop(row.node, ()) if row.detail == CRASHED else ():
                rows_by_key[open_key][4] = min(rows_by_key[open_key][4], row.time_us)
        elif row.event == "subscribed":
            text_index = texts.setdefault(row.detail, len(texts))
            rows_by_key[subscription_key] = [
                *subscription_key,
                text_index,
                row.time_us,
                _NEVER_US if row.value < 0 else row.value,
            ]
            open_keys.setdefault(row.node, []).append(subscription_key)
        elif subscription_key in rows_by_key:
            rows_by_key[subscription_key][4] = min(rows_by_key[subscription_key][4], row.time_us)
    node, subscription_number, text, first_us, last_us = np.array(list(rows_by_key.values()), np.int64).reshape(-1, 5).T
    return Subscriptions(node, subscription_number, text, first_us, last_us, list(texts))


def read_publications(rows: Columns) -> Publications:
    """Return all publications in ``rows``, the columns of a run's trace.

    If a node published several times under the same number, only the last publication counts.
    """
    publication_columns = rows.columns("published", "node", "sequence", "time_us", "detail")
    is_newest_of_number = find_last(tuple(publication_columns[:2]), tuple(publication_columns[:2])) == np.arange(
        len(publication_columns[0])
    )
    node, reading_number, time_us, detail = (column[is_newest_of_number] for column in publication_columns)
    by_time = np.argsort(time_us, kind="stable")
    codes, text = unique_inverse(detail[by_time])
    detail_texts = rows.words["detail"]
    return Publications(
        node[by_time], reading_number[by_time], time_us[by_time], text, [detail_texts[code] for code in codes.tolist()]
    )


def active_intervals(subscriptions: Subscriptions, rows: Columns) -> ActiveIntervals:
    """Return the intervals in which each subscription exists and its node is up; ``rows``: the columns of the trace."""
    outages_by_node = down_times(rows)
    subscription_intervals = ActiveIntervals(
        np.arange(len(subscriptions.node)), subscriptions.first_us, subscriptions.last_us
    )
    if outages_by_node:
        columns = (column.tolist() for column in (subscriptions.node, *subscription_intervals))
        intervals = [
            interval
            for node, *unbroken_interval in zip(*columns, strict=True)
            for interval in _subtract_outages(unbroken_interval, outages_by_node.get(node, []))
        ]
        subscription_intervals = ActiveIntervals(*np.array(intervals, np.int64).reshape(-1, 3).T)
    is_nonempty = subscription_intervals.first_us < subscription_intervals.last_us
    return take_rows(subscription_intervals, is_nonempty)


def _subtract_outages(active: list[int], down: list[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of an ``active`` interval [subscription, first_us, last_us] without the outages in ``down``.

    ``down``: (failed_us, recovered_us) of each outage, in order of time. A part may be empty: its end is not after its
    start.
    """
    subscription, first_us, last_us = active
    for failed_us, recovered_us in down:
        yield subscription, first_us, min(last_us, failed_us)
        first_us = max(first_us, recovered_us)
    yield subscription, first_us, last_us


def down_times(rows: Columns) -> dict[int, list[tuple[int, int]]]:
    """Return the outages of each node, {node: [(failed_us, recovered_us), ...]}, in order of time.

    ``recovered_us`` is _NEVER_US if the node does not recover.
    """
    outage_times: dict[int, list[tuple[int, int]]] = {}
    for row in rows.of("failed", "recovered"):
        node_outages = outage_times.setdefault(row.node, [])
        if row.event == "failed":
            if not node_outages or node_outages[-1][1] != _NEVER_US:  # A crash may happen during an outage.
                node_outages.append((row.time_us, _NEVER_US))
        elif node_outages:
            node_outages[-1] = (node_outages[-1][0], row.time_us)
    return {node: sorted(node_outages) for node, node_outages in outage_times.items()}

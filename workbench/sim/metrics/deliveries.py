"""Metrics of delivery: the samples that subscriptions expected, those that arrived, latency and stretch.

Theory of operation
    For each text of a subscription, the number of matching samples of each publication is computed once. A subscription
    expects the samples of publications in its *active intervals* (it exists and its node is up). Sinks that are
    reachable from the same nodes share the numbers.

Cost
    Arcs times sinks for the paths; publications times different texts of subscriptions; a sort of the deliveries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.columns import find_last, row_keys, split_rows, unique_inverse
from workbench.sim.metrics.arrivals import arrivals
from workbench.sim.metrics.matching import Matching, matching_of
from workbench.sim.metrics.paths import Paths, paths_of
from workbench.sim.metrics.progress import Progress, change_times_us, percentile, timeliness
from workbench.sim.metrics.withheld import Withheld, withheld
from workbench.sim.metrics.workload import (
    ActiveIntervals,
    Publications,
    Subscriptions,
    active_intervals,
    read_publications,
    read_subscriptions,
)
from workbench.sim.rows import Columns

NOT_A_NUMBER = float("nan")
_NO_TIMES = np.zeros(0, np.int64)


class _Expectations(NamedTuple):
    """The input for counting expected samples; ``publisher`` (p,): the index of each publication's node."""

    subscriptions: Subscriptions
    publications: Publications
    active: ActiveIntervals
    publisher: np.ndarray
    samples: list[np.ndarray]  # for each subscription's text: number of matching samples of each publication's text


class _DeliveredMessages(NamedTuple):
    """Messages delivered at a sink, one array (h,) per field: node indices, and the hops that the message travelled."""

    sink: np.ndarray
    origin: np.ndarray
    hops: np.ndarray


def deliveries(scenario: Any, rows: Columns) -> dict[str, float]:
    """Return the metrics of delivery, {name: value}; ``rows`` are the columns of the run's trace."""
    subscriptions = read_subscriptions(rows)
    if not len(subscriptions.node):
        # Readings are most of the stored rows, and are read only if there are subscriptions.
        wrong = len(rows.columns("delivered", "node")[0])
        return _make_metrics(wrong, 0, 0, _NO_TIMES, NOT_A_NUMBER, Progress(_NO_TIMES, _NO_TIMES, _NO_TIMES, _NO_TIMES))
    publications, matching, paths = read_publications(rows), matching_of(scenario.protocol), paths_of(scenario.topology)
    arrived = arrivals(rows, subscriptions, publications, matching, scenario.protocol.changes)
    samples = samples_of(subscriptions, publications, matching)
    active = active_intervals(subscriptions, rows)
    expectations = _Expectations(subscriptions, publications, active, paths.indices(publications.node), samples)
    unsent = withheld(rows, scenario.protocol.withholds, subscriptions, publications, active)
    unsent_samples = _count_samples(unsent, subscriptions, publications, samples)
    sink = paths.indices(subscriptions.node)
    delivered_messages = _read_delivered_messages(rows, paths, subscriptions.node)
    is_expected = active.has(arrived.subscription, publications.time_us[arrived.publication])
    is_expected &= ~unsent.has(arrived.subscription, arrived.publication)
    shortest, sinks = np.zeros(len(delivered_messages.hops), np.int64), np.unique(sink)
    expected = np.zeros(len(publications.time_us), np.int64)
    for position, hops in paths.hops_to(sinks):
        row_of = np.full(len(paths.addresses), -1)
        row_of[sinks[position : position + len(hops)]] = np.arange(len(hops))
        expected += _count_expected(expectations, hops >= 0, row_of[sink])
        selected, pair_hops = _select_hops(
            hops, row_of[sink[arrived.subscription]], expectations.publisher[arrived.publication]
        )
        is_expected[selected] &= pair_hops >= 0
        selected, pair_hops = _select_hops(
            hops, row_of[sink[unsent.subscription]], expectations.publisher[unsent.publication]
        )
        selected = selected[pair_hops >= 0]
        np.subtract.at(expected, unsent.publication[selected], unsent_samples[selected])
        selected, pair_hops = _select_hops(hops, row_of[delivered_messages.sink], delivered_messages.origin)
        shortest[selected] = pair_hops
    latencies_us = np.sort((arrived.time_us - publications.time_us[arrived.publication])[is_expected])
    unexpected = len(is_expected) - len(latencies_us)
    delivered = np.bincount(arrived.publication[is_expected], minlength=len(expected))
    progress = Progress(publications.time_us, expected, delivered, np.sort(arrived.time_us[is_expected]))
    return _make_metrics(
        arrived.wrong,
        arrived.duplicates,
        unexpected,
        latencies_us,
        _compute_stretch(delivered_messages.hops, shortest),
        progress,
        change_times_us(rows),
    )


def _make_metrics(
    wrong: int,
    duplicates: int,
    unexpected: int,
    latencies_us: np.ndarray,
    stretch: float,
    progress: Progress,
    changes_us: np.ndarray = _NO_TIMES,
) -> dict[str, float]:
    expected = int(progress.expected.sum())
    return {
        "delivery_ratio": len(latencies_us) / expected if expected else NOT_A_NUMBER,
        "expected": expected,
        "delivered": len(latencies_us),
        "wrong_deliveries": wrong,
        "duplicate_deliveries": duplicates,
        "unexpected_deliveries": unexpected,
        "latency_ms_p50": percentile(latencies_us, 0.50) / 1000,
        "latency_ms_p95": percentile(latencies_us, 0.95) / 1000,
        "stretch": stretch,
        **timeliness(latencies_us, expected),
        **progress.times(changes_us),
    }


# Expected samples


def samples_of(subscriptions: Subscriptions, publications: Publications, matching: Matching) -> list[np.ndarray]:
    """Return for each subscription text an array with the number of matching samples in each publication text."""
    counts = []
    for text, indices in zip(
        subscriptions.texts, matching.candidates(subscriptions.texts, publications.texts), strict=True
    ):
        numbers = np.zeros(len(publications.texts), np.int64)
        numbers[indices] = [len(matching.samples(text, publications.texts[index])) for index in indices.tolist()]
        counts.append(numbers)
    return counts


def _count_samples(
    pairs: Withheld, subscriptions: Subscriptions, publications: Publications, samples: list[np.ndarray]
) -> np.ndarray:
    """Return the number of matching samples of each pair of a subscription and a publication in ``pairs``."""
    texts = zip(
        subscriptions.text[pairs.subscription].tolist(), publications.text[pairs.publication].tolist(), strict=True
    )
    return np.array([samples[subscription][publication] for subscription, publication in texts], np.int64)


def _count_expected(expectations: _Expectations, has_path: np.ndarray, row_of: np.ndarray) -> np.ndarray:
    """Count for each publication (p,) the samples that the subscriptions at k sinks expect.

    ``has_path`` (k, n): whether a path leads to each of k sinks from each node. ``row_of`` (s,): the row of each
    subscription's sink in ``has_path``, -1 if the sink has no row.
    """
    subscriptions, publications, active, publisher, samples = expectations
    _, example_rows, kinds = np.unique(np.packbits(has_path, axis=1), axis=0, return_index=True, return_inverse=True)
    kind = np.where(row_of >= 0, kinds.reshape(-1)[row_of], -1)[active.subscription]
    text = subscriptions.text[active.subscription]
    with_row = np.flatnonzero(kind >= 0)
    values, group = unique_inverse(row_keys(kind[with_row], text[with_row]))
    begins = np.searchsorted(publications.time_us, active.first_us)
    ends = np.searchsorted(publications.time_us, active.last_us)
    count = len(publications.time_us)
    expected = np.zeros(count, np.int64)
    for same_group in (with_row[rows] for rows in split_rows(group, len(values))):
        reaches = has_path[example_rows[kind[same_group[0]]]]
        sample_counts = np.where(
            (publisher >= 0) & reaches[publisher], samples[text[same_group[0]]][publications.text], 0
        )
        # The number of active intervals that contain each publication: +1 where one begins, -1 where it ends.
        change = np.bincount(begins[same_group], minlength=count + 1) - np.bincount(
            ends[same_group], minlength=count + 1
        )
        expected += sample_counts * np.cumsum(change)[:count]
    return expected


def _select_hops(hops: np.ndarray, row: np.ndarray, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Look up hops for pairs of a row and a column of the matrix ``hops`` (k, n).

    ``row``: each pair's row, or -1 for pairs to skip. ``node``: each pair's column, -1 if unknown. Returns the indices
    of the pairs with a row, and their hops, which are -1 without a path or column.
    """
    selected = np.flatnonzero(row >= 0)
    return selected, np.where(node[selected] >= 0, hops[row[selected], node[selected]], -1)


# Paths


def _read_delivered_messages(rows: Columns, paths: Paths, sinks: np.ndarray) -> _DeliveredMessages:
    node, origin, sequence, hops = rows.columns("held", "node", "origin", "sequence", "value")
    at_sinks = np.flatnonzero(np.isin(node, sinks))
    node, origin, sequence, hops = (column[at_sinks] for column in (node, origin, sequence, hops))
    delivered = tuple(rows.columns("delivered", "node", "origin", "sequence"))
    is_delivered = find_last((node, origin, sequence), delivered) >= 0
    return _DeliveredMessages(*(column[is_delivered] for column in (paths.indices(node), paths.indices(origin), hops)))


def _compute_stretch(hops: np.ndarray, shortest: np.ndarray) -> float:
    is_far = shortest > 0
    ratios = (hops[is_far] / shortest[is_far]).tolist()
    return sum(ratios) / len(ratios) if ratios else NOT_A_NUMBER

"""Metrics of delivery: the samples that subscriptions expected, those that arrived, latency and stretch.

Theory of operation
    Subscriptions with the same attributes share a *text*, and so do publications. For each pair of texts, the number of
    samples in the publication that match is computed once. A subscription expects the samples of publications in its
    *active intervals* (it exists and its node is up), except samples that were withheld or filtered out. Sinks
    that can be reached from the same nodes share one computation of the number of expected samples.

Cost
    Arcs times sinks for the paths; publications times different texts of subscriptions; a sort of the deliveries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.columns import find_last, row_keys, split_rows, unique_inverse
from workbench.sim.changes.arcs import graph_of_all_arcs
from workbench.sim.metrics.arrivals import arrivals
from workbench.sim.metrics.filtered import filtered_out
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
    """The data of a run from which `_count_expected` counts the expected samples.

    ``active``: the intervals in which a subscription exists and its node is up. ``publisher`` (p,): the index of each
    publication's node.
    """

    subscriptions: Subscriptions
    publications: Publications
    active: ActiveIntervals
    publisher: np.ndarray
    samples: list[np.ndarray]  # for each subscription's text: number of matching samples of each publication's text


class _DeliveredMessages(NamedTuple):
    """Messages delivered at sinks, one array (h,) per field.

    ``sink``, ``origin``: indices of nodes. ``hops``: the number of hops that the message travelled.
    """

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
    publications, protocol_matching, paths = (
        read_publications(rows),
        matching_of(scenario.protocol),
        paths_of(graph_of_all_arcs(scenario)),
    )
    arrived_deliveries = arrivals(rows, subscriptions, publications, protocol_matching, scenario.protocol.changes)
    samples = samples_of(subscriptions, publications, protocol_matching)
    subscription_intervals = active_intervals(subscriptions, rows)
    expectations = _Expectations(
        subscriptions, publications, subscription_intervals, paths.indices(publications.node), samples
    )
    unsent = withheld(rows, scenario.protocol.withholds, subscriptions, publications, subscription_intervals)
    workload = subscriptions, publications, samples, subscription_intervals
    unsent = unsent.union(filtered_out(scenario.protocol, rows, *workload, arrived_deliveries[:2]))
    unsent_samples = _count_samples(unsent, subscriptions, publications, samples)
    sink = paths.indices(subscriptions.node)
    delivered_messages = _read_delivered_messages(rows, paths, subscriptions.node)
    is_expected = subscription_intervals.has(
        arrived_deliveries.subscription, publications.time_us[arrived_deliveries.publication]
    )
    is_expected &= ~unsent.has(arrived_deliveries.subscription, arrived_deliveries.publication)
    shortest, sinks = np.zeros(len(delivered_messages.hops), np.int64), np.unique(sink)
    expected_counts = np.zeros(len(publications.time_us), np.int64)
    for first_sink, hops in paths.hops_to(sinks):
        row_of = np.full(len(paths.addresses), -1)
        row_of[sinks[first_sink : first_sink + len(hops)]] = np.arange(len(hops))
        expected_counts += _count_expected(expectations, hops >= 0, row_of[sink])
        selected_pairs, pair_hops = _select_hops(
            hops, row_of[sink[arrived_deliveries.subscription]], expectations.publisher[arrived_deliveries.publication]
        )
        is_expected[selected_pairs] &= pair_hops >= 0
        selected_pairs, pair_hops = _select_hops(
            hops, row_of[sink[unsent.subscription]], expectations.publisher[unsent.publication]
        )
        selected_pairs = selected_pairs[pair_hops >= 0]
        np.subtract.at(expected_counts, unsent.publication[selected_pairs], unsent_samples[selected_pairs])
        selected_pairs, pair_hops = _select_hops(hops, row_of[delivered_messages.sink], delivered_messages.origin)
        shortest[selected_pairs] = pair_hops
    latencies_us = np.sort(
        (arrived_deliveries.time_us - publications.time_us[arrived_deliveries.publication])[is_expected]
    )
    unexpected = len(is_expected) - len(latencies_us)
    delivered = np.bincount(arrived_deliveries.publication[is_expected], minlength=len(expected_counts))
    progress = Progress(
        publications.time_us, expected_counts, delivered, np.sort(arrived_deliveries.time_us[is_expected])
    )
    return _make_metrics(
        arrived_deliveries.wrong,
        arrived_deliveries.duplicates,
        unexpected,
        latencies_us,
        _compute_stretch(delivered_messages.hops, shortest),
        progress,
        change_times_us(rows, scenario.workload),
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
    expected_count = int(progress.expected.sum())
    return {
        "delivery_ratio": len(latencies_us) / expected_count if expected_count else NOT_A_NUMBER,
        "expected": expected_count,
        "delivered": len(latencies_us),
        "wrong_deliveries": wrong,
        "duplicate_deliveries": duplicates,
        "unexpected_deliveries": unexpected,
        "latency_ms_p50": percentile(latencies_us, 0.50) / 1000,
        "latency_ms_p95": percentile(latencies_us, 0.95) / 1000,
        "stretch": stretch,
        **timeliness(latencies_us, expected_count),
        **progress.times(changes_us),
    }


# Expected samples


def samples_of(subscriptions: Subscriptions, publications: Publications, matching: Matching) -> list[np.ndarray]:
    """Return a list of arrays: element j of array i is how many samples in publication j match subscription i.

    i is an index into ``subscriptions.texts``, j an index into ``publications.texts``. Publications with the same
    attributes share a text, and so do subscriptions.
    """
    sample_counts = []
    for subscription_text, indices in zip(
        subscriptions.texts, matching.candidates(subscriptions.texts, publications.texts), strict=True
    ):
        counts_of_texts = np.zeros(len(publications.texts), np.int64)
        counts_of_texts[indices] = [
            len(matching.samples(subscription_text, publications.texts[index])) for index in indices.tolist()
        ]
        sample_counts.append(counts_of_texts)
    return sample_counts


def _count_samples(
    pairs: Withheld, subscriptions: Subscriptions, publications: Publications, samples: list[np.ndarray]
) -> np.ndarray:
    """Return for each pair in ``pairs`` the number of samples of the publication that match the subscription.

    ``samples[i][j]``: the number of samples in publication text j that match subscription text i.
    """
    text_pairs = zip(
        subscriptions.text[pairs.subscription].tolist(), publications.text[pairs.publication].tolist(), strict=True
    )
    return np.array([samples[subscription][publication] for subscription, publication in text_pairs], np.int64)


def _count_expected(expectations: _Expectations, has_path: np.ndarray, row_of: np.ndarray) -> np.ndarray:
    """Return for each publication (p,) the number of its samples that subscriptions at a batch of sinks expect.

    ``has_path[i, j]``: whether a path leads from node j to sink i of the batch. ``row_of`` (s,): for each subscription,
    the row of its sink in ``has_path``; -1 if its sink is not in the batch. A sample counts once per subscription.
    """
    subscriptions, publications, active, publisher, samples = expectations
    _, example_rows, row_kinds = np.unique(
        np.packbits(has_path, axis=1), axis=0, return_index=True, return_inverse=True
    )
    path_kind = np.where(row_of >= 0, row_kinds.reshape(-1)[row_of], -1)[active.subscription]
    text_index = subscriptions.text[active.subscription]
    with_row = np.flatnonzero(path_kind >= 0)
    group_keys, group_index = unique_inverse(row_keys(path_kind[with_row], text_index[with_row]))
    first_publications = np.searchsorted(publications.time_us, active.first_us)
    end_publications = np.searchsorted(publications.time_us, active.last_us)
    publication_count = len(publications.time_us)
    expected_counts = np.zeros(publication_count, np.int64)
    for same_group in (with_row[rows] for rows in split_rows(group_index, len(group_keys))):
        reaches_sink = has_path[example_rows[path_kind[same_group[0]]]]
        sample_counts = np.where(
            (publisher >= 0) & reaches_sink[publisher], samples[text_index[same_group[0]]][publications.text], 0
        )
        # The number of active intervals that contain each publication: +1 where one begins, -1 where it ends.
        active_changes = np.bincount(first_publications[same_group], minlength=publication_count + 1) - np.bincount(
            end_publications[same_group], minlength=publication_count + 1
        )
        expected_counts += sample_counts * np.cumsum(active_changes)[:publication_count]
    return expected_counts


def _select_hops(hops: np.ndarray, row: np.ndarray, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Look up distances in the matrix ``hops`` (k, n): one for each pair of a row in ``row`` and a column in ``node``.

    Return (indices, distances): the indices i where ``row[i]`` is not -1, and ``hops[row[i], node[i]]`` for each of
    them. A distance is -1 if no path leads to the node, or if the node is unknown (``node[i]`` is -1).
    """
    selected_pairs = np.flatnonzero(row >= 0)
    return selected_pairs, np.where(node[selected_pairs] >= 0, hops[row[selected_pairs], node[selected_pairs]], -1)


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

"""Expected readings: each publication that a subscription should have received, and when it was delivered.

A publication is expected by the rule of the delivery ratio (`workbench.sim.metrics`). The metric counts expected
publications, and this module lists them. It also lists publications that a filter dropped, which the metric does not
expect: their accounts name the filter.

Cost
    The cost of the metrics, and memory for each pair of a subscription and an expected publication.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.columns import find_last, ranges, split_rows, take_rows, unique_inverse
from workbench.sim.changes.arcs import graph_of_all_arcs
from workbench.sim.metrics.arrivals import arrivals
from workbench.sim.metrics.deliveries import samples_of
from workbench.sim.metrics.matching import Matching, matching_of
from workbench.sim.metrics.paths import paths_of
from workbench.sim.metrics.withheld import withheld
from workbench.sim.metrics.workload import (
    Publications,
    Subscriptions,
    active_intervals,
    read_publications,
    read_subscriptions,
)
from workbench.sim.rows import Columns

NEVER = -1


class Pairs(NamedTuple):
    """Pairs of a subscription and a matching publication that was made while the subscription was active.

    Publications that their source withheld from the subscriber because of its INTERVAL are left out. Each field is an
    array with one element for each pair. ``subscription``, ``publication``: indices in the run's `Subscriptions` and
    `Publications`. ``subscriber``, ``publisher``: addresses. ``hops``, ``hops_back``: lengths of the shortest paths
    from publisher to subscriber and back, -1 without a path. A publication with ``hops`` -1 is not expected.
    ``delivery``: the index of the first delivery, counted among the trace rows "delivered", or NEVER (-1).
    """

    subscription: np.ndarray
    publication: np.ndarray
    subscriber: np.ndarray
    publisher: np.ndarray
    hops: np.ndarray
    hops_back: np.ndarray
    delivery: np.ndarray


class Expected(NamedTuple):
    """The subscriptions and publications of a run, and the pairs of them that match.

    ``matching``: the protocol's rule for matches. ``samples[i][j]``: the number of samples in
    ``publications.texts[j]`` that match ``subscriptions.texts[i]``.
    """

    subscriptions: Subscriptions
    publications: Publications
    matching: Matching
    samples: list[np.ndarray]
    pairs: Pairs

    @property
    def missing(self) -> Pairs:
        """The pairs whose publication is expected but was not delivered."""
        return take_rows(self.pairs, (self.pairs.hops >= 0) & (self.pairs.delivery == NEVER))


def expected(scenario: Any, rows: Columns) -> Expected:
    """Return the subscriptions and publications in a run's trace rows, and the pairs of them that match."""
    subscriptions, publications, matching = (
        read_subscriptions(rows),
        read_publications(rows),
        matching_of(scenario.protocol),
    )
    samples = samples_of(subscriptions, publications, matching)
    subscription, publication = _find_pairs(scenario, rows, subscriptions, publications, samples)
    sinks_and_publishers = subscriptions.node[subscription], publications.node[publication]
    hops = _measure_hops(scenario, *sinks_and_publishers)
    arrived_deliveries = arrivals(rows, subscriptions, publications, matching, scenario.protocol.changes)
    # The first delivery of each pair: `find_last` on the reversed rows.
    reversed_pairs = arrived_deliveries.subscription[::-1], arrived_deliveries.publication[::-1]
    delivery_index = find_last((subscription, publication), reversed_pairs)
    delivery = np.append(arrived_deliveries.row[::-1], NEVER)[delivery_index]
    return Expected(
        subscriptions,
        publications,
        matching,
        samples,
        Pairs(subscription, publication, *sinks_and_publishers, *hops, delivery),
    )


def _find_pairs(
    scenario: Any, rows: Columns, subscriptions: Subscriptions, publications: Publications, samples: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    subscription_intervals = active_intervals(subscriptions, rows)
    subscription, publication = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for sample_counts, interval_rows in zip(
        samples, split_rows(subscriptions.text[subscription_intervals.subscription], len(samples)), strict=True
    ):
        matching_publications = np.flatnonzero(sample_counts[publications.text] > 0)
        first_publications = np.searchsorted(
            publications.time_us[matching_publications], subscription_intervals.first_us[interval_rows]
        )
        publication_counts = (
            np.searchsorted(publications.time_us[matching_publications], subscription_intervals.last_us[interval_rows])
            - first_publications
        )
        subscription.append(np.repeat(subscription_intervals.subscription[interval_rows], publication_counts))
        publication.append(matching_publications[ranges(first_publications, publication_counts)])
    index_pairs = np.concatenate(subscription), np.concatenate(publication)
    is_sent = ~withheld(rows, scenario.protocol.withholds, subscriptions, publications, subscription_intervals).has(
        *index_pairs
    )
    return index_pairs[0][is_sent], index_pairs[1][is_sent]


def _measure_hops(scenario: Any, sink: np.ndarray, publisher: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (hops, hops back): the path lengths from ``publisher[i]`` to ``sink[i]`` and back; -1 without a path.

    ``sink``, ``publisher``: addresses of nodes.
    """
    paths = paths_of(graph_of_all_arcs(scenario))
    sinks, sink_row = unique_inverse(paths.indices(sink))
    publisher_column = paths.indices(publisher)
    lengths = np.full((2, len(sink)), -1)
    for direction, batches in enumerate((paths.hops_to(sinks), paths.hops_from(sinks))):
        for first_row, hops in batches:
            in_batch = np.flatnonzero((first_row <= sink_row) & (sink_row < first_row + len(hops)))
            lengths[direction, in_batch] = hops[sink_row[in_batch] - first_row, publisher_column[in_batch]]
    return lengths[0], lengths[1]

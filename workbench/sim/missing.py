"""What each subscription was owed, publication by publication, and what of it did not arrive.

The rule is that of the delivery ratio (`workbench.sim.metrics`), which counts where this keeps lists.

Cost
    That of the metrics, and an entry for each publication that each subscription was owed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.sim.columns import positions, ranges
from workbench.sim.metrics.arrivals import arrivals
from workbench.sim.metrics.deliveries import samples_of
from workbench.sim.metrics.matching import Matching, matching_of
from workbench.sim.metrics.paths import paths_of
from workbench.sim.metrics.rows import Rows
from workbench.sim.metrics.workload import Asked, Published, publications, spells, subscriptions


class Missing(NamedTuple):
    """Publications owed to subscriptions that did not arrive, in columns (m,), in order of time for each subscription.

    ``sink``, ``publisher``: addresses; ``number`` of the reading at its publisher; ``hops`` of the shortest path from
    publisher to sink, and ``hops_back``, -1 if there is none.
    """

    sink: np.ndarray
    publisher: np.ndarray
    number: np.ndarray
    subscribed_us: np.ndarray
    published_us: np.ndarray
    hops: np.ndarray
    hops_back: np.ndarray

    def those(self, chosen: np.ndarray) -> Missing:
        """Some of them, by a mask (m,)."""
        return Missing(*(column[chosen] for column in self))


class Owed(NamedTuple):
    """Publications made while a subscription that they match lasted and its node was up: columns (o,), by index."""

    subscription: np.ndarray
    publication: np.ndarray
    hops: np.ndarray
    hops_back: np.ndarray


class Accounts(NamedTuple):
    """What was asked for and published, how they match, what was owed, and what of it is missing.

    ``samples``: for each text that is asked for, how many samples of each text that is published match.
    """

    asked: Asked
    published: Published
    matching: Matching
    samples: list[np.ndarray]
    owed: Owed
    missing: Missing


def accounts(scenario: Any, rows: Rows) -> Accounts:
    """What the rows of a run say of each publication that each subscription was owed."""
    asked, published, matching = subscriptions(rows), publications(rows), matching_of(scenario.protocol)
    samples = samples_of(asked, published, matching)
    owed = _owed(scenario, rows, asked, published, samples)
    missing = _missing(scenario, rows, asked, published, matching, owed)
    return Accounts(asked, published, matching, samples, owed, missing)


def _owed(scenario: Any, rows: Rows, asked: Asked, published: Published, samples: list[np.ndarray]) -> Owed:
    lasting = spells(asked, rows)
    subscription, publication = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for numbers, mine in zip(samples, by_text(asked.what[lasting.subscription], asked), strict=True):
        matching = np.flatnonzero(numbers[published.what] > 0)
        begins = np.searchsorted(published.time_us[matching], lasting.first_us[mine])
        counts = np.searchsorted(published.time_us[matching], lasting.last_us[mine]) - begins
        subscription.append(np.repeat(lasting.subscription[mine], counts))
        publication.append(matching[ranges(begins, counts)])
    pairs = np.concatenate(subscription), np.concatenate(publication)
    return Owed(*pairs, *_hops(scenario, asked.node[pairs[0]], published.node[pairs[1]]))


def _hops(scenario: Any, sink: np.ndarray, publisher: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hops (o,) from publishers to sinks, and back."""
    paths = paths_of(scenario.topology)
    sinks, row = np.unique(paths.indices(sink), return_inverse=True)
    column = paths.indices(publisher)
    found = np.full((2, len(sink)), -1)
    for way, some in enumerate((paths.hops_to(sinks), paths.hops_from(sinks))):
        for first, hops in some:
            here = np.flatnonzero((first <= row) & (row < first + len(hops)))
            found[way, here] = hops[row[here] - first, column[here]]
    return found[0], found[1]


def _missing(scenario: Any, rows: Rows, asked: Asked, published: Published, matching: Matching, owed: Owed) -> Missing:
    arrived = arrivals(rows, asked, published, matching, scenario.protocol.changes)
    pairs = owed.subscription, owed.publication
    is_missing = (owed.hops >= 0) & (positions(pairs, (arrived.subscription, arrived.publication)) < 0)
    subscription, publication, hops, hops_back = (column[is_missing] for column in owed)
    return Missing(
        asked.node[subscription],
        published.node[publication],
        published.number[publication],
        asked.first_us[subscription],
        published.time_us[publication],
        hops,
        hops_back,
    )


def by_text(what: np.ndarray, asked: Asked) -> list[np.ndarray]:
    """For each text that is asked for the indices of the rows (n,) with it, ascending."""
    order = np.argsort(what, kind="stable")
    return np.split(order, np.searchsorted(what[order], np.arange(1, len(asked.texts))))[: len(asked.texts)]

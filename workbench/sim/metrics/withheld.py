"""Samples that a source did not send to a sink, because the sink requested fewer: they are not expected.

A protocol reports each such sample as the event that its class attribute ``withholds`` names. In these rows of the
trace, node is the source, peer the sink, and value the number of the publication. Only subscriptions that state an
INTERVAL request fewer samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.attributes.interests import interval_us
from workbench.attributes.text import parse
from workbench.columns import find_last, ranges
from workbench.sim.metrics.workload import ActiveIntervals, Publications, Subscriptions
from workbench.sim.rows import Columns


class Withheld(NamedTuple):
    """Pairs of a subscription and a publication that the publication's source did not send to the subscriber.

    Both fields are arrays (w,) of indices.
    """

    subscription: np.ndarray
    publication: np.ndarray

    def has(self, subscription: np.ndarray, publication: np.ndarray) -> np.ndarray:
        """Return for each pair (subscription[i], publication[i]) whether the source withheld it; bool (n,)."""
        return find_last((subscription, publication), tuple(self)) >= 0

    def union(self, other: Withheld) -> Withheld:
        """Return the pairs (subscription, publication) that are in this set or in ``other``, each once."""
        is_new = ~self.has(*other)
        return Withheld(
            *(np.append(column, other_column[is_new]) for column, other_column in zip(self, other, strict=True))
        )


def withheld(
    rows: Columns, event: str, subscriptions: Subscriptions, publications: Publications, active: ActiveIntervals
) -> Withheld:
    """Return the pairs of a subscription and a publication that the source withheld, as a run's trace reports them.

    ``event``: the name of the event by which the protocol's nodes report a withheld sample, or "" if the protocol
    withholds no samples. ``active``: the intervals in which subscriptions are active.
    """
    is_paced = np.array([interval_us(parse(text)) > 0 for text in subscriptions.texts], np.bool_)[subscriptions.text]
    source, sink, reading_number = rows.columns(event if is_paced.any() else "", "node", "peer", "value")
    publication = find_last((source, reading_number), (publications.node, publications.number))
    paced_subscriptions = np.flatnonzero(is_paced)
    paced_subscriptions = paced_subscriptions[np.argsort(subscriptions.node[paced_subscriptions], kind="stable")]
    first_of_sink = np.searchsorted(subscriptions.node[paced_subscriptions], sink)
    subscription_counts = np.searchsorted(subscriptions.node[paced_subscriptions], sink, side="right") - first_of_sink
    publication, subscription = (
        np.repeat(publication, subscription_counts),
        paced_subscriptions[ranges(first_of_sink, subscription_counts)],
    )
    is_active = (publication >= 0) & active.has(subscription, publications.time_us[publication])
    return Withheld(subscription[is_active], publication[is_active])

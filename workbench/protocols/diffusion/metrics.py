"""Metrics that exist only for runs of TinyDiffusion. `workbench.sim.metrics` finds this module by the protocol's class.

interest_coverage    share of nodes that cached an interest, of those that its sink can reach; mean over interests
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.columns import first_rows, row_keys, unique_all, unique_inverse
from workbench.sim.metrics import NOT_A_NUMBER
from workbench.sim.metrics.paths import paths_of
from workbench.sim.metrics.shown import Shown
from workbench.sim.rows import Columns

LOOKS_AT = ("interest_cached",)
SHOWN = {
    "interest_coverage": Shown("interests known", "%", True, "share of nodes that hold the interests, mean"),
}


def measure(scenario: Any, rows: Columns) -> dict[str, float]:
    """Return {"interest_coverage": share of the nodes that cached an interest, as a mean over all interests}.

    For each interest the share (0 to 1) counts only nodes that its sink can reach. The mean is NaN if no interest was
    cached. ``rows``: the rows of a trace.
    """
    origins, sequences, nodes = rows.columns("interest_cached", "origin", "sequence", "node")
    if not len(nodes):
        return {"interest_coverage": NOT_A_NUMBER}
    # Number the interests in order of the trace, as the order in which shares are summed determines the rounding.
    _, first_rows_of_interests, interest = unique_all(row_keys(origins, sequences))
    order = np.argsort(first_rows_of_interests)
    interest_number = np.empty(len(order), np.int64)
    interest_number[order] = np.arange(len(order))
    sink_of = origins[first_rows_of_interests[order]]
    caching_rows = first_rows(row_keys(interest, nodes))
    interest, nodes = interest_number[interest[caching_rows]], nodes[caching_rows]
    paths = paths_of(scenario.topology)
    sinks, row_of_sink = unique_inverse(sink_of)
    holders, reachable = np.zeros(len(sink_of), np.int64), np.zeros(len(sink_of), np.int64)
    for first_index, hops in paths.hops_from(paths.indices(sinks)):
        row = row_of_sink - first_index
        is_in_block = (row >= 0) & (row < len(hops))
        # The sink itself is one of the nodes, and caches its own interest.
        reachable[is_in_block] = np.count_nonzero(hops >= 0, axis=1)[row[is_in_block]]
        is_interest_in_block = is_in_block[interest]
        is_reached = hops[row[interest[is_interest_in_block]], paths.indices(nodes[is_interest_in_block])] >= 0
        holders += np.bincount(interest[is_interest_in_block][is_reached], minlength=len(holders))
    shares = (holders / reachable).tolist()
    return {"interest_coverage": sum(shares) / len(shares)}

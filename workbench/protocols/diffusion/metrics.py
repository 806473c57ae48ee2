"""The metrics that only runs of TinyDiffusion have; `workbench.sim.metrics` finds them through the protocol's class.

interest_coverage    share of the nodes a sink can reach that cached its interest, mean over interests
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from workbench.sim.metrics import NOT_A_NUMBER, Rows

LOOKS_AT = ("interest_cached",)


def measure(scenario: Any, rows: Rows) -> dict[str, float]:
    """Interest coverage; NaN if no interest was cached."""
    origins, sequences, nodes = rows.columns("interest_cached", "origin", "sequence", "node")
    if not len(nodes):
        return {"interest_coverage": NOT_A_NUMBER}
    # In numbers and not in sets: with many sinks these are most of the rows.
    order = np.lexsort((nodes, sequences, origins))
    is_same = (np.diff(origins[order]) == 0) & (np.diff(sequences[order]) == 0)
    interests = np.split(order, np.flatnonzero(~is_same) + 1)
    interests.sort(key=lambda places: places.min())  # as they came: sums of shares are rounded in that order
    reachable: dict[int, np.ndarray] = {}
    shares = []
    for places in interests:
        sink = int(origins[places[0]])
        if sink not in reachable:
            reachable[sink] = np.array([sink, *nx.descendants(scenario.topology, sink)])
        # The sink itself is one of the nodes, and caches its own interest.
        holders = np.isin(np.unique(nodes[places]), reachable[sink])
        shares.append(int(np.count_nonzero(holders)) / len(reachable[sink]))
    return {"interest_coverage": sum(shares) / len(shares)}

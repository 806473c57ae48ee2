"""The spread of pollution: the share of nodes that get corrupt packets, by their distance from one hostile node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from workbench.errors import ParameterError
from workbench.sim.rows import Columns
from workbench.views.carried import carries_record
from workbench.views.charts.description import Series
from workbench.views.charts.static import line_chart
from workbench.views.drawing import Drawing


def spoiled_by_distance(run: Any, hostile: int) -> dict[int, float]:
    """Return {hops from the hostile node: share of nodes that dropped a generation as corrupt}.

    The distances begin at 1 hop. Each share is a mean over the events of the run, which needs a trace.
    """
    columns = Columns(run.trace)
    rows = columns.where(event="dropped", detail="corrupt")
    events = len(columns.where(event="originated"))
    spoiled = set(columns.tuples(rows, "node", "origin", "sequence"))
    hops = nx.single_source_shortest_path_length(run.scenario.topology, hostile)
    dropped = Counter(hops[node] for node, _, _ in spoiled if node in hops)
    nodes = Counter(hops.values())
    return {distance: dropped[distance] / max(1, events * nodes[distance]) for distance in sorted(nodes) if distance}


@carries_record
def pollution_chart(runs: Mapping[str, Sequence[Any]], hostile: int) -> Drawing:
    """Chart the share of nodes that dropped corrupt packets against the distance from the hostile node.

    ``runs`` is {name of a line: runs}; a line shows the mean over its runs. Raises ParameterError for a name without
    runs.
    """
    series = []
    for name, runs_of_name in runs.items():
        if not runs_of_name:
            raise ParameterError(f"pollution_chart: {name!r} has no runs; each name needs at least one run")
        shares = [spoiled_by_distance(run, hostile) for run in runs_of_name]
        x = sorted({distance for share in shares for distance in share})
        y = [float(np.mean([share.get(distance, 0.0) for share in shares])) for distance in x]
        series.append(Series(name, x, y))
    return line_chart(
        series,
        title="How far pollution spreads",
        x_label="hops from the hostile node",
        y_label="share of nodes that dropped packets",
        y_range=(0.0, 1.0),
    )

"""The chart of a run's deliveries: the distribution of their latency, with one dot for each delivery.

In a notebook with a kernel, dots that the user selects show their paths on the map of a player of the same run. A node
that the user selects on the map selects its deliveries here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.errors import ParameterError, ScenarioError
from workbench.sim.metrics.arrivals import arrivals
from workbench.sim.metrics.matching import matching_of
from workbench.sim.metrics.workload import read_publications, read_subscriptions
from workbench.sim.rows import Columns
from workbench.views import caption
from workbench.views.carried import carries_record
from workbench.views.charts.description import DOTS, Series
from workbench.views.charts.static import Chart, line_chart, resizable
from workbench.views.seeing import see

AXES = {"percent": "deliveries (%)", "time_s": "time of publication (s)"}
WIDTH, HEIGHT = 640, 340
MOST_SINKS = 8  # with more sinks, all deliveries have one colour


@resizable
@carries_record
def plot(run: Any, x: str = "percent", width: int = WIDTH, height: int = HEIGHT) -> Chart:
    """Draw the latency (ms) of each delivery of a run, with a colour for each sink.

    x: what the x axis shows. "percent": the percentage of deliveries with at most this latency (the cumulative
        distribution). "time_s": the time of publication.
    width, height: in px.
    Readings that were not delivered are not drawn. Raises ScenarioError if the run has no trace, ParameterError for
    another ``x``.
    """
    if x not in AXES:
        raise ParameterError(f"the argument `x` is {x!r:.60}; it must be one of {', '.join(AXES)}")
    if not run.has_trace:
        raise ScenarioError("this run has no trace, so its deliveries are unknown; run the scenario again")
    rows, protocol = Columns(run.trace), run.scenario.protocol
    subscriptions, publications = read_subscriptions(rows), read_publications(rows)
    arrived = arrivals(rows, subscriptions, publications, matching_of(protocol), protocol.changes)
    published_us = publications.time_us[arrived.publication]
    by_latency = np.argsort(arrived.time_us - published_us, kind="stable")
    latency_ms = (arrived.time_us - published_us)[by_latency] / 1e3
    percent = 100 * (np.arange(len(by_latency)) + 1) / max(len(by_latency), 1)
    xs = percent if x == "percent" else published_us[by_latency] / 1e6
    sinks = subscriptions.node[arrived.subscription][by_latency]
    sources = publications.node[arrived.publication][by_latency]
    paths = _find_paths(run, rows, arrived.row[by_latency])
    names = np.unique(sinks).tolist()
    groups = (
        [(f"sink {name}", np.flatnonzero(sinks == name)) for name in names]
        if 1 < len(names) <= MOST_SINKS
        else [("", np.arange(len(sinks)))]
    )
    series = [
        Series(
            name,
            xs[points].tolist(),
            latency_ms[points].tolist(),
            tooltips=[
                f"from node {source} to node {sink}: {latency:,.4g} ms; published at {time_s:,.6g} s"
                for source, sink, latency, time_s in zip(
                    sources[points].tolist(),
                    sinks[points].tolist(),
                    latency_ms[points].tolist(),
                    (published_us[by_latency][points] / 1e6).tolist(),
                    strict=True,
                )
            ],
            shape=DOTS,
            ids={
                "paths": [paths[point] for point in points.tolist()],
                "nodes": [[sources[point], sinks[point]] for point in points.tolist()],
            },
        )
        for name, points in groups
    ]
    missing = int(run.metrics["expected"]) - int(run.metrics["delivered"])
    note = f"{len(latency_ms):,} deliveries" + (
        f"; {missing:,} expected readings were not delivered" if missing else ""
    )
    chart = line_chart(series, x_label=AXES[x], y_label="latency (ms)", note=note, width=width, height=height)
    chart.title, chart.subject = "Latency of each delivery", caption.subject(run)
    return chart


def _find_paths(run: Any, rows: Columns, delivered: np.ndarray) -> list[list[int]]:
    """Return for each delivery a list with the index of its message in ``see(run).paths.paths``.

    The list is empty if a player cannot draw the path of the message.

    rows: the trace of the run.
    delivered: for each delivery the index n of its row, which is the n-th (from 0) of the trace's rows "delivered".
    """
    path_of = {frame: index for index, path in enumerate(see(run).paths.paths) for frame in path.frames}
    names, origins, sequences = rows.columns("delivered", "message", "origin", "sequence")
    words = rows.words["message"]
    keys = [
        (origin, sequence, words[name])
        for name, origin, sequence in zip(
            names[delivered].tolist(), origins[delivered].tolist(), sequences[delivered].tolist(), strict=True
        )
    ]
    return [[path_of[key]] if key in path_of else [] for key in keys]

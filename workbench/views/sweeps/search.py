"""The chart of a search: the metric of each trial, and the best value so far."""

from __future__ import annotations

import numpy as np

from workbench.sweeps.plans.search import SearchResult
from workbench.views import palette
from workbench.views.carried import carries_sweep
from workbench.views.charts.description import DOTS, Series
from workbench.views.charts.static import Chart, line_chart, resizable

WIDTH, HEIGHT = 640, 380


@resizable
def plot(result: SearchResult, width: int = WIDTH, height: int = HEIGHT) -> Chart:
    """Draw the mean of the metric of each trial in the order of the trials, and the best feasible value so far.

    Trials that violate a constraint have another colour. Hover over a dot to see the values of its parameters.
    ``width``, ``height``: in px.
    """
    trials, paths = result.trials, list(result.best)
    values, is_feasible = trials[result.metric].to_numpy(float), trials["is_feasible"].to_numpy(bool)
    title = result.table.name_of(result.metric)
    rows = result.table.averaged_rows(trials, paths)
    texts = [
        f"trial {number}: {title} {value:.4g} with "
        + ", ".join(f"{result.table.name_of(path)} {trial[path]}" for path in paths)
        for number, (value, trial) in enumerate(zip(values, trials.to_dict("records"), strict=True), 1)
    ]
    numbers = np.arange(1, len(values) + 1)
    series = []
    for name, chosen, colour in (
        ("all constraints hold", is_feasible, palette.SINK),
        ("a constraint is violated", ~is_feasible, palette.FAINT_TEXT),
    ):
        points = np.flatnonzero(chosen)
        if len(points):
            series.append(
                Series(
                    name,
                    numbers[points].tolist(),
                    values[points].tolist(),
                    tooltips=[texts[point] for point in points.tolist()],
                    colour=colour,
                    shape=DOTS,
                    ids={"runs": [rows[point] for point in points.tolist()]},
                )
            )
    limit = np.inf if result.is_least else -np.inf
    best = (np.fmin if result.is_least else np.fmax).accumulate(np.where(is_feasible, values, limit))
    best = np.where(np.isfinite(best), best, np.nan)
    series.append(Series("best so far", numbers.tolist(), best.tolist(), colour=palette.LOST, marks=False))
    chart = line_chart(series, x_label="trial", y_label=title, width=width, height=height)
    return carries_sweep(result.table, chart, result.metric)

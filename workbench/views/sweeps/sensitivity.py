"""The chart of a sensitivity analysis: two measures of each parameter's influence on a metric, with 95 % intervals."""

from __future__ import annotations

import math

import pandas as pd

from workbench.sweeps.plans.sensitivity import SensitivityResult
from workbench.views.charts.description import Series
from workbench.views.charts.static import category_chart
from workbench.views.drawing import Drawing

WIDTH, HEIGHT = 640, 380
# Method -> (column, column with half of its interval or "", label) of each series.
_SERIES = {
    "morris": (("mu_star", "mu_star_half", "mean size of the effect"), ("sigma", "", "its standard deviation")),
    "sobol": (("S1", "S1_half", "by itself (S1)"), ("ST", "ST_half", "with its interactions (ST)")),
}
_SAMPLES = {"morris": "trajectories", "sobol": "base points"}


def plot(result: SensitivityResult) -> Drawing:
    """Draw how much each parameter influences a metric, the most important parameter first.

    The chart shows the indices of Morris's or Sobol's method with their 95 % intervals. Morris's effects have the unit
    of the metric; Sobol's indices are shares of its variance. Hover over a mark to see its values.
    """
    indices, method, metric = result.indices, result.method, result.table.name_of(result.metric)
    parameters = [result.table.name_of(path) for path in indices["parameter"]]
    effect_label, variance_label = f"effect on {metric}", f"share of the variance of {metric}"
    return category_chart(
        parameters,
        [_make_series(indices, parameters, *series_fields) for series_fields in _SERIES[method]],
        y_label=effect_label if method == "morris" else variance_label,
        note=f"{method.capitalize()}: {result.samples} {_SAMPLES[method]}, 95 % intervals by resampling",
        width=WIDTH,
        height=HEIGHT,
    )


def _make_series(indices: pd.DataFrame, parameters: list[str], column: str, half: str, name: str) -> Series:
    index_values = indices[column].tolist()
    halves = indices[half].tolist() if half else [math.nan] * len(index_values)
    lows, highs = (
        [value + sign * width for value, width in zip(index_values, halves, strict=True)] for sign in (-1, 1)
    )
    if column == "mu_star":  # The mean of absolute values cannot be negative.
        lows = [max(low, 0.0) for low in lows]
    tooltips = [
        f"{parameter}: {name} {value:.4g}" + ("" if math.isnan(width) else f", 95 % from {low:.4g} to {high:.4g}")
        for parameter, value, width, low, high in zip(parameters, index_values, halves, lows, highs, strict=True)
    ]
    indices_of_values = [float(index) for index in range(len(index_values))]
    return Series(name, indices_of_values, index_values, lows if half else None, highs if half else None, tooltips)

"""The HTML cells of a comparison's table."""

from __future__ import annotations

import math

from workbench.sim.metrics.shown import Shown


def cell_html(shown: Shown, mean: float, half: float, median: float) -> str:
    """Return an HTML cell with "mean ± half", where ``half`` is half of the mean's 95 % interval.

    ``shown`` is the metric's name, unit and format. If the mean is NaN, the cell has a dash; if the mean is infinite,
    the cell has the median.
    """
    if math.isnan(mean):
        return "<td>–</td>"
    if math.isinf(mean):
        return f"<td>median {_format_value(shown, median)}</td>"
    digits = 1000 if shown.unit == "%" else 1 if abs(mean) >= 100 or mean == int(mean) else 1000 / abs(mean)
    if math.isnan(half) or half * digits < 0.5:  # less than half of the last digit that is shown
        return f"<td>{_format_value(shown, mean)}</td>"
    return f"<td>{_format_value(shown, mean)} ± {_format_value(shown, half)}</td>"


def _format_value(shown: Shown, value: float) -> str:
    if math.isinf(value):
        return "∞"
    if shown.unit == "%":
        return f"{100 * value:.1f} %"
    text = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
    return f"{text} {shown.unit}".strip()

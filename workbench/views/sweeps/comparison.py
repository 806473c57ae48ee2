"""Charts of a comparison of protocols; under each are the conditions of all protocols."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.errors import ParameterError
from workbench.sim.metrics.shown import shown_as
from workbench.sweeps.comparison import Comparison
from workbench.views import palette
from workbench.views.carried import carries_sweep
from workbench.views.chart import Series, category_chart, line_chart
from workbench.views.drawing import Drawing, text_width

WIDTH, HEIGHT = 680, 380
_NOTE_SIZE, _NOTE_LINE, _MARGIN = 10.5, 15, 14


def plot(comparison: Comparison, metric: str = "delivery_ratio", x: str | None = None) -> Drawing:
    """Draw a metric of each protocol along an axis, with 95 % intervals, and below it the conditions.

    ``x``: an axis of the comparison, by default its first; without axes, the protocols are the categories. Where not
    all runs have a finite value (undelivered readings are infinitely late), medians and their intervals are drawn
    instead of means. Raises ParameterError for an unknown metric or axis.
    """
    x = x or (comparison.axes[0] if comparison.axes else None)
    summary = comparison.summary(metric, x)
    is_finite = bool((summary["finite"] == 1).all())
    middle, low, high = ("mean", "low", "high") if is_finite else ("median", "median_low", "median_high")
    shown = shown_as(metric)
    scale = 100.0 if shown.unit == "%" else 1.0
    unit = f" ({shown.unit})" if shown.unit else ""
    note = f"{middle} and its 95 % interval over seeds"
    if summary[low].isna().all():
        note = f"{middle} over seeds; there are too few runs for its interval"
    options: dict[str, Any] = {"y_label": f"{shown.title}{unit}", "note": note, "width": WIDTH, "height": HEIGHT}
    if x is None:
        series = [_series("", rows, range(len(rows)), (middle, low, high), scale) for rows in [summary]]
        drawing = category_chart(list(comparison.protocols), series, x_label="", **options)
    else:
        if not np.issubdtype(summary[x].dtype, np.number):
            raise ParameterError(f"x is {x!r}, whose values are not numbers; plot() without x compares the protocols")
        groups = list(summary.groupby("protocol", sort=False))
        series = [_series(name, rows, rows[x].tolist(), (middle, low, high), scale) for name, rows in groups]
        drawing = line_chart(series, x_label=comparison.table.name_of(x), **options)
    infinite = [name for name, rows in summary.groupby("protocol", sort=False) if np.isinf(rows[middle]).any()]
    missing = [f"Not drawn where it is infinite: {', '.join(infinite)}."] if infinite else []
    return carries_sweep(comparison.table, add_notes(drawing, [*missing, *comparison.notes]), metric)


def _series(name: str, rows: Any, xs: Any, columns: tuple[str, str, str], scale: float) -> Series:
    middles, lows, highs = ((scale * rows[column]).tolist() for column in columns)
    tooltips = [
        f"{protocol}: {value:.4g}, 95 % from {low:.4g} to {high:.4g}, {runs} runs"
        for protocol, value, low, high, runs in zip(rows["protocol"], middles, lows, highs, rows["runs"], strict=True)
    ]
    return Series(name, [float(value) for value in xs], middles, lows, highs, tooltips)


def add_notes(drawing: Drawing, notes: list[str]) -> Drawing:
    """Add lines of text below a drawing, wrapped to its width, and return the drawing."""
    lines = ["Conditions", *(line for note in notes for line in _wrap(note, drawing.width - 2 * _MARGIN))]
    y = drawing.height + 8
    for index, line in enumerate(lines):
        drawing.text(
            _MARGIN,
            y,
            line,
            size=_NOTE_SIZE,
            bold=index == 0,
            colour=palette.TEXT if index == 0 else palette.FAINT_TEXT,
        )
        y += _NOTE_LINE
    drawing.height = y
    return drawing


def _wrap(text: str, width: float) -> list[str]:
    """Return a text in lines of at most this width; continued lines are indented."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if text_width(longer, _NOTE_SIZE) > width and lines[-1].strip():
            lines.append(f"   {word}")
        else:
            lines[-1] = longer
    return lines

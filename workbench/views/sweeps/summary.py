"""The chart of a sweep: the mean of a metric against a parameter, with confidence intervals.

The texts of the chart come from `workbench.sweeps.table`, its numbers from `workbench.sweeps.means`.
"""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd

from workbench.sweeps.table import SweepTable, Texts, chart_texts
from workbench.views.carried import carries_sweep
from workbench.views.charts.description import Series
from workbench.views.charts.static import Chart, category_chart, line_chart

WIDTH, HEIGHT = 640, 380


def plot(table: SweepTable, x: str, y: str = "delivery_ratio", by: str | None = None) -> Chart:
    """Draw the means of a sweep's metric ``y`` against a parameter ``x``, with a confidence band.

    If ``x`` is not numeric, a confidence interval is drawn at each of its values instead. ``by``: a parameter, each
    value of which gets its own line; None: a single line. A notebook shows the `Drawing`; its method ``save(path)``
    writes an SVG, PDF or PNG file. Hover over a mark to see its values.
    """
    x, by = table.path_of(x), None if by is None else table.path_of(by)
    summary, axis_texts = table.summary(x, y, by), chart_texts(table.plan, table.varied, x, y, by)
    summary = summary.assign(rows=table.averaged_rows(summary, [by, x] if by else [x]))
    return carries_sweep(table, _draw_chart(summary, x, by, axis_texts), y)


def drawing(table: SweepTable, x: str, y: str = "delivery_ratio", by: str | None = None) -> Chart:
    """Return the chart that `plot` returns. Deprecated: this is the former name of `plot`."""
    warnings.warn("SweepTable: drawing is now called plot", DeprecationWarning, stacklevel=3)
    return plot(table, x, y, by)


def _draw_chart(summary: pd.DataFrame, x: str, by: str | None, texts: Texts) -> Chart:
    labelled_rows = list(summary.groupby(by, sort=False)) if by else [("", summary)]
    chart_options: dict[str, Any] = {
        "x_label": texts.x,
        "y_label": texts.y,
        "note": texts.note,
        "width": WIDTH,
        "height": HEIGHT,
    }
    groups = [(f"{texts.by}: {label}" if by else "", rows) for label, rows in labelled_rows]
    if pd.api.types.is_numeric_dtype(summary[x]) and not pd.api.types.is_bool_dtype(summary[x]):
        return line_chart(
            [_make_series(label, rows, rows[x].tolist(), x, texts) for label, rows in groups], **chart_options
        )
    category_names = list(dict.fromkeys(map(str, summary[x])))
    x_positions = [[float(category_names.index(str(value))) for value in rows[x]] for _, rows in groups]
    series = [_make_series(label, rows, xs, x, texts) for (label, rows), xs in zip(groups, x_positions, strict=True)]
    return category_chart(category_names, series, **chart_options)


def _make_series(name: str, rows: pd.DataFrame, xs: list[float], x: str, texts: Texts) -> Series:
    columns = (rows[column].tolist() for column in (x, "mean", "low", "high", "runs"))
    tooltips = [
        f"{texts.x} {value}: {texts.y} {mean:.4g}, 95 % from {low:.4g} to {high:.4g}, {runs} runs"
        for value, mean, low, high, runs in zip(*columns, strict=True)
    ]
    means, lows, highs = (rows[column].tolist() for column in ("mean", "low", "high"))
    ids = {"runs": rows["rows"].tolist()}
    return Series(name, xs, means, lows, highs, [f"{name}; {text}" if name else text for text in tooltips], ids=ids)

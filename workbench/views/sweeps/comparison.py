"""Charts that compare protocols. Below each chart are the conditions of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import public_names
from workbench.errors import ParameterError
from workbench.sim.metrics.shown import SHOWN, shown_as
from workbench.sweeps.comparison import CERTAIN, Comparison
from workbench.views import palette
from workbench.views.carried import AnyDrawing, carries_sweep
from workbench.views.charts.description import Series
from workbench.views.charts.static import Chart, category_chart, line_chart, resizable
from workbench.views.drawing import Drawing, text_width

if TYPE_CHECKING:
    import pandas as pd

WIDTH, HEIGHT = 680, 380
_GRID_WIDTH, _GRID_HEIGHT, _LEAST_WIDTH = 960, 250, 300  # of a chart with several frames, and of one frame
_NOTE_SIZE, _NOTE_LINE, _MARGIN = 10.5, 15, 14
_COLOURS = dict(zip(sorted(public_names.PROTOCOLS), palette.SERIES, strict=False))
_CELL, _TOP = (112, 46), 66  # of a map: width and height of a cell, and its upper edge


@resizable
def plot(comparison: Comparison, metric: str | None = None, x: str | None = None, width: int | None = None) -> Chart:
    """Draw a metric of each protocol with 95 % intervals. The conditions of the runs are written below.

    metric: the metric to draw. None draws all metrics that differ between protocols or between values of ``x``, each in
        its own plot area, or the delivery ratio if none differs. A metric differs if its medians are more than a
        thousandth of the largest median apart, or if only some of them are finite.
    x: the parameter on the x axis; None: the first parameter that the comparison varies. If the comparison varies no
        parameter, the protocols are on the x axis.
    width: in px.
    Means are drawn. If the metric is infinite in some runs (undelivered readings are infinitely late), medians are
    drawn instead. Raises ParameterError for an unknown metric, or for an ``x`` that is unknown or not numeric.
    """
    x = x or (comparison.axes[0] if comparison.axes else None)
    if metric is not None:
        summary = comparison.summary(metric, x)
        chart, infinite = _draw_metric(comparison, metric, summary, x, width or WIDTH, HEIGHT)
        return carries_sweep(comparison.table, add_notes(chart, [*infinite, *comparison.notes]), metric)
    summaries = _differing_metrics(comparison, x)
    page_width = width or _GRID_WIDTH
    columns = max(page_width // _LEAST_WIDTH, 1)
    page = Chart(page_width, 0, title="All metrics that differ between protocols or values of x")
    infinite_notes: list[str] = []
    for index, (name, summary) in enumerate(summaries.items()):
        chart, infinite = _draw_metric(comparison, name, summary, x, page_width // columns, _GRID_HEIGHT)
        infinite_notes += [f"{shown_as(name).title.capitalize()}: {note}" for note in infinite]
        page.add(chart, index % columns * (page_width // columns), index // columns * _GRID_HEIGHT)
    page.height = -(-len(summaries) // columns) * _GRID_HEIGHT
    return carries_sweep(comparison.table, add_notes(page, [*infinite_notes, *comparison.notes]), *summaries)


def _differing_metrics(comparison: Comparison, x: str | None) -> dict[str, pd.DataFrame]:
    """Return {metric: its summary} for the metrics that differ between protocols or values of ``x``.

    A metric differs if its finite medians are more than a thousandth of the largest median apart, or if only some of
    its medians are finite. If no metric differs, return the delivery ratio.
    """
    differing = {}
    for name in [name for name in SHOWN if name in comparison.table.metrics]:
        summary = comparison.summary(name, x)
        present = summary["median"].dropna().to_numpy(float)
        finite = [median for median in present if np.isfinite(median)]
        is_mixed = 0 < len(finite) < len(present)
        if is_mixed or (finite and max(finite) - min(finite) > 1e-3 * max(map(abs, finite))):
            differing[name] = summary
    return differing or {"delivery_ratio": comparison.summary("delivery_ratio", x)}


def _draw_metric(
    comparison: Comparison, metric: str, summary: pd.DataFrame, x: str | None, width: int, height: int
) -> tuple[Chart, list[str]]:
    """Return (the chart of one metric, notes to add below it).

    If the metric is infinite for some protocols, a note names these protocols, because infinite values are not drawn.

    summary: means, medians and their intervals, from ``comparison.summary(metric, x)``.
    x: the parameter on the x axis; None: the protocols are on the x axis.
    width, height: in px.
    """
    summary = summary.assign(rows=comparison.table.averaged_rows(summary, ["protocol", *([x] if x else [])]))
    is_finite = bool((summary["finite"] == 1).all())
    average, low_column, high_column = ("mean", "low", "high") if is_finite else ("median", "median_low", "median_high")
    shown_metric = shown_as(metric)
    scale = 100.0 if shown_metric.unit == "%" else 1.0
    unit = f" ({shown_metric.unit})" if shown_metric.unit else ""
    interval_note = f"{average} and its 95 % interval over seeds"
    if summary[low_column].isna().all():
        interval_note = f"{average} over seeds; there are too few runs for its interval"
    chart_options: dict[str, Any] = {
        "y_label": f"{shown_metric.title}{unit}",
        "note": interval_note,
        "width": width,
        "height": height,
    }
    if x is None:
        series = [
            _make_series("", rows, range(len(rows)), (average, low_column, high_column), scale) for rows in [summary]
        ]
        chart = category_chart(list(comparison.protocols), series, x_label="", **chart_options)
    else:
        if not np.issubdtype(summary[x].dtype, np.number):
            raise ParameterError(
                f"plot: the x axis is {x!r}, whose values are not numbers; "
                "give as `x` a numeric parameter that the comparison varies"
            )
        groups = list(summary.groupby("protocol", sort=False))
        colours = protocol_colours(comparison)
        series = [
            _make_series(name, rows, rows[x].tolist(), (average, low_column, high_column), scale, colours[name])
            for name, rows in groups
        ]
        chart = line_chart(series, x_label=comparison.table.name_of(x), **chart_options)
    infinite = [name for name, rows in summary.groupby("protocol", sort=False) if np.isinf(rows[average]).any()]
    note = f"infinite values are not drawn; protocols with such values: {', '.join(infinite)}."
    return chart, [note] if infinite else []


def winner_map(comparison: Comparison, metric: str, x: str, y: str, delivering: float = 0.95) -> Drawing:
    """Draw which protocol is best for each pair of values of two parameters, with the conditions of the runs below.

    ``x``, ``y``: the parameters. A cell shows the name, the colour and the mean of the best protocol. The cell is pale
    if the 95 % interval of the paired difference from the second-best protocol contains 0. Only protocols with a mean
    delivery ratio of at least ``delivering`` take part.
    """
    winners = comparison.winners(metric, x, y, delivering=delivering)
    x_values, y_values = ([*dict.fromkeys(winners[axis])] for axis in (x, y))
    shown_metric = shown_as(metric)
    unit = f" {shown_metric.unit}" if shown_metric.unit else ""
    title = f"{shown_metric.title}: the best protocol that delivers at least {100 * delivering:g} %"
    map_width = max(_CELL[0] * len(x_values) + 130, 520)
    drawing = Drawing(map_width, _TOP + _CELL[1] * len(y_values) + 58, title=title)
    drawing.text(_MARGIN, 22, title, size=13, bold=True)
    drawing.text(_MARGIN, 40, "pale: not certain, the interval of the difference contains 0", size=_NOTE_SIZE)
    colours = protocol_colours(comparison)
    for column, value in enumerate(x_values):
        label_position = 118 + _CELL[0] * (column + 0.5), _TOP + _CELL[1] * len(y_values) + 18
        drawing.text(*label_position, f"{value:g}", size=_NOTE_SIZE, anchor="middle")
    for row, value in enumerate(y_values):
        drawing.text(110, _TOP + _CELL[1] * (row + 0.5) + 4, f"{value:g}", size=_NOTE_SIZE, anchor="end")
    for winner in winners.to_dict("records"):
        left, top = 118 + _CELL[0] * x_values.index(winner[x]), _TOP + _CELL[1] * y_values.index(winner[y])
        is_certain = winner["verdict"] == CERTAIN
        colour = palette.blend(
            palette.BACKGROUND, colours.get(winner["best"], palette.GRID), 0.55 if is_certain else 0.2
        )
        drawing.rectangle(left + 1, top + 1, _CELL[0] - 2, _CELL[1] - 2, fill=colour)
        center_x = left + _CELL[0] / 2
        drawing.text(center_x, top + 19, winner["best"] or "none", size=_NOTE_SIZE, anchor="middle", bold=is_certain)
        if winner["best"]:
            drawing.text(center_x, top + 34, f"{_format_number(winner['mean'])}{unit}", size=9, anchor="middle")
    axis_label_y = _TOP + _CELL[1] * len(y_values) + 38
    drawing.text(
        118 + _CELL[0] * len(x_values) / 2, axis_label_y, comparison.table.name_of(x), size=_NOTE_SIZE, anchor="middle"
    )
    drawing.text(_MARGIN, _TOP - 6, comparison.table.name_of(y), size=_NOTE_SIZE)
    return carries_sweep(comparison.table, add_notes(drawing, comparison.notes), metric)


def _format_number(value: float) -> str:
    """Format a number with three significant digits and separators, without an exponent: 16399.3 -> "16,400"."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def protocol_colours(comparison: Comparison) -> dict[str, str]:
    """Return {name of a protocol in the comparison: colour}.

    A protocol usually has the same colour in all comparisons. If an earlier protocol of this comparison already has
    this colour, the protocol gets another one.
    """
    free_colours, colours = [*palette.SERIES], {}
    for name, class_name in comparison.classes.items():
        usual_colour = _COLOURS.get(class_name, "")
        colour = usual_colour if usual_colour in free_colours else (free_colours or [*palette.SERIES])[0]
        colours[name] = colour
        free_colours = [free_colour for free_colour in free_colours if free_colour != colour]
    return colours


def _make_series(
    name: str, rows: Any, xs: Any, columns: tuple[str, str, str], scale: float, colour: str = ""
) -> Series:
    middles, lows, highs = ((scale * rows[column]).tolist() for column in columns)
    tooltips = [
        f"{protocol}: {value:.4g}, 95 % from {low:.4g} to {high:.4g}, {runs} runs"
        for protocol, value, low, high, runs in zip(rows["protocol"], middles, lows, highs, rows["runs"], strict=True)
    ]
    ids = {"runs": rows["rows"].tolist()}
    return Series(name, [float(value) for value in xs], middles, lows, highs, tooltips, colour, ids=ids)


def add_notes(drawing: AnyDrawing, notes: list[str]) -> AnyDrawing:
    """Add sentences below a drawing, under the heading "Conditions" and wrapped to its width; return the drawing."""
    note_lines = ["Conditions", *(line for note in notes for line in _wrap_text(note, drawing.width - 2 * _MARGIN))]
    y = drawing.height + 8
    for index, line in enumerate(note_lines):
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


def _wrap_text(text: str, width: float) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if text_width(longer, _NOTE_SIZE) > width and lines[-1].strip():
            lines.append(f"   {word}")
        else:
            lines[-1] = longer
    return lines

"""Static charts for papers and notebooks, returned as a `Drawing`.

line_chart(series, ...)            lines with confidence bands
category_chart(names, series)      means with confidence intervals, side by side for each category
steps_chart(lines, ...)            step lines over the time of a run, with a cursor
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.errors import ParameterError
from workbench.views import palette
from workbench.views.drawing import Drawing, text_width

SIZE = 11.0
TICKS = 6
MOST_MARKS = 40
SPREAD = 0.3  # share of a category's width over which the points of its series are distributed
TURN = 30.0  # angle in degrees of category names that are too long to be horizontal


@dataclass(frozen=True)
class Series:
    """One line of a chart: points in order of x, and optionally a confidence interval for each point.

    low, high: the ends of the confidence intervals; None: the series has no intervals.
    tooltips: a text for each point, shown while the mouse is over it.
    colour: "" means the next colour of `palette.SERIES`.
    marks: whether points have markers. A line with more than `MOST_MARKS` points has no markers.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    tooltips: Sequence[str] = ()
    colour: str = ""
    marks: bool = True

    def colour_at(self, index: int) -> str:
        """Return the colour of this series; ``index``: its position among the series of its chart."""
        return self.colour or palette.SERIES[index % len(palette.SERIES)]


def line_chart(
    series: Sequence[Series | dict[str, Any]],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    note: str = "",
    y_range: tuple[float, float] | None = None,
    width: int = 520,
    height: int = 340,
) -> Drawing:
    """Return a chart of several series, which differ in colour and marker.

    A series is a `Series` or a dict with its fields (name, x, y, and optionally low and high). Points that are
    not finite are left out and interrupt the line. Values outside ``y_range`` are drawn at the edge of the chart.
    ``note``: a line of small text in the chart.
    Raises ParameterError if the lists of a series differ in length.
    """
    lines = [_check_series(item) for item in series]
    plot_area = _Frame(lines, y_range, width, height, bool(title), bool(note), _count_legend_rows(lines, width))
    return _draw_chart(lines, plot_area, title, x_label, y_label, note, width, height)


def category_chart(
    names: Sequence[str],
    series: Sequence[Series | dict[str, Any]],
    *,
    x_label: str = "",
    y_label: str = "",
    note: str = "",
    width: int = 520,
    height: int = 340,
) -> Drawing:
    """Return a chart with named categories on the x axis. The ``x`` values of the series are indices of ``names``.

    The points of all series for one name are drawn side by side, without lines between points.
    """
    lines = [_check_series(item) for item in series]
    offsets = [0.0 if len(lines) == 1 else SPREAD * (index / (len(lines) - 1) - 0.5) for index in range(len(lines))]
    shifted = [_shift_apart(line, offset) for line, offset in zip(lines, offsets, strict=True)]
    available_px = (width - 90) / max(len(names), 1) - 8
    widest_name_px = max((text_width(name, SIZE) for name in names), default=0)
    angle = 0.0 if widest_name_px <= available_px else TURN
    plot_area = _Frame(shifted, None, width, height, False, bool(note), _count_legend_rows(lines, width))
    plot_area.name_categories(names, angle, widest_name_px)
    return _draw_chart(shifted, plot_area, "", x_label, y_label, note, width, height)


def _shift_apart(line: Series, offset: float) -> Series:
    """Return the series shifted by ``offset`` along x, with a gap after each point so that no line joins the points."""
    gap = [math.nan] * len(line.x)
    columns = {name: getattr(line, name) for name in ("y", "low", "high")}
    spread: dict[str, Any] = {
        name: None if values is None else _interleave(values, gap) for name, values in columns.items()
    }
    tooltips = _interleave(line.tooltips, [""] * len(line.tooltips)) if line.tooltips else ()
    return replace(line, x=_interleave([x + offset for x in line.x], gap), tooltips=tooltips, **spread)


def _interleave(values: Sequence[Any], gaps: Sequence[Any]) -> list[Any]:
    return [item for pair in zip(values, gaps, strict=True) for item in pair]


def steps_chart(
    lines: Sequence[tuple[str, str, Any, Any]],
    end_s: float,
    time_s: float,
    y_label: str,
    width: int,
    height: int,
) -> Drawing:
    """Return a chart of step lines over a run of ``end_s`` seconds, with a cursor at ``time_s``.

    Each line is (name, colour, times in s, values). A value holds from its time to the next time.
    """
    series = []
    for name, colour, times_s, values in lines:
        if len(times_s):
            visible = _visible_steps(np.asarray(times_s, float) * width / end_s, np.asarray(values, float))
            xs, ys = (np.repeat(np.asarray(column, float)[visible], 2).tolist() for column in (times_s, values))
            series.append(Series(name, [*xs[1:], end_s], ys, colour=colour, marks=False))
    plot_area = _Frame(series, None, width, height, False, False, _count_legend_rows(series, width))
    if all(value == int(value) for line in series for value in line.y):  # counts are whole numbers
        plot_area.y_ticks = [tick for tick in plot_area.y_ticks if tick == int(tick)]
    drawing = _draw_chart(series, plot_area, "", "time (s)", y_label, "", width, height)
    cursor = plot_area.x(min(max(time_s, plot_area.x0), plot_area.x1))
    drawing.segment(cursor, plot_area.top, cursor, plot_area.bottom, colour=palette.TEXT, width=1.2)
    return drawing


def _visible_steps(columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the indices of the steps of a step line that are drawn, ascending.

    In each column of pixels, the step with the largest value and the last step are drawn. ``columns``: the x position
    of each step in whole px. ``values``: the value of each step.
    """
    pixel = np.floor(columns).astype(np.int64)
    by_value = np.lexsort((values, pixel))
    is_last = np.append(pixel[1:] != pixel[:-1], True)
    return np.union1d(np.flatnonzero(is_last), by_value[np.append(np.diff(pixel[by_value]) > 0, True)])


def _draw_chart(
    lines: list[Series],
    frame: _Frame,
    title: str,
    x_label: str,
    y_label: str,
    note: str,
    width: int,
    height: int,
) -> Drawing:
    drawing = Drawing(width, height, title=title or y_label)
    if title:
        drawing.text(14, 22, title, size=14, bold=True)
    _draw_axes(drawing, frame, x_label, y_label)
    for index, line in enumerate(lines):
        _draw_band(drawing, frame, line, line.colour_at(index))
    for index, line in enumerate(lines):
        _draw_line(drawing, frame, line, index)
    _draw_legend(drawing, frame, lines)
    if note:
        drawing.text(14, height - 9, note, size=SIZE - 1, colour=palette.FAINT_TEXT)
    return drawing


def _check_series(series: Series | dict[str, Any]) -> Series:
    line = series if isinstance(series, Series) else Series(**series)
    numbers_by_name = {"x": line.x, "y": line.y, "low": line.low, "high": line.high}
    columns: dict[str, Any] = {
        name: None if column is None else [float(v) for v in column] for name, column in numbers_by_name.items()
    }
    for name, column in columns.items():
        if column is not None and len(column) != len(line.x):
            raise ParameterError(
                f"line_chart: series {line.name!r} has {len(line.x)} values of x but {len(column)} of {name}; "
                "give one value for each x"
            )
    return replace(line, name=str(line.name), **columns)


class _Frame:
    """The area of a chart in which its points are drawn, in px, with the ranges and ticks of both axes."""

    def __init__(
        self,
        lines: list[Series],
        y_range: tuple[float, float] | None,
        width: int,
        height: int,
        has_title: bool,
        has_note: bool,
        legend_rows: int,
    ) -> None:
        xs = [x for line in lines for x in line.x if math.isfinite(x)]
        ys = [y for line in lines for column in (line.y, line.low, line.high) for y in column or () if math.isfinite(y)]
        self.has_note = has_note
        self.y_ticks = ticks(*(y_range or _pad_range(ys, from_zero=True)), TICKS)
        self.y0, self.y1 = y_range or (self.y_ticks[0], self.y_ticks[-1])
        self.y_ticks = [tick for tick in self.y_ticks if self.y0 - 1e-12 <= tick <= self.y1 + 1e-12]
        self.x0, self.x1 = _pad_range(xs)
        distinct_xs = sorted(set(xs))
        round_ticks = ticks(self.x0, self.x1, TICKS + 1)
        self.x_ticks = distinct_xs if 1 <= len(distinct_xs) <= 8 and _is_even(distinct_xs) else round_ticks
        self.x_ticks = [tick for tick in self.x_ticks if self.x0 <= tick <= self.x1]
        margin = 0.04 * (self.x1 - self.x0)
        self.x0, self.x1 = self.x0 - margin, self.x1 + margin
        widest_label_px = max((text_width(label, SIZE) for label in labels(self.y_ticks)), default=0)
        self.left = 14 + SIZE + 8 + widest_label_px + 6
        self.legend_y = 14.0 + (24 if has_title else 6)
        self.top = self.legend_y + 17 * legend_rows + 2
        self.right = width - 18.0
        self.bottom = height - 46.0 - (16 if has_note else 0)
        self.x_labels: list[str] = labels(self.x_ticks)
        self.label_angle = 0.0

    def name_categories(self, names: Sequence[str], angle: float, widest: float) -> None:
        """Label the x axis with names instead of numbers, rotated by ``angle`` degrees.

        ``widest``: the width of the widest name in px.
        """
        self.x_ticks, self.x_labels, self.label_angle = list(map(float, range(len(names)))), list(names), angle
        self.x0, self.x1 = -0.5, len(names) - 0.5
        self.bottom -= math.sin(math.radians(angle)) * widest
        if angle:  # the first name begins to the left of its tick
            reach = math.cos(math.radians(angle)) * text_width(names[0], SIZE)
            self.left = max(self.left, reach - 0.5 * (self.right - self.left) / len(names) + 8 + 1.5 * SIZE)

    def x(self, value: float) -> float:
        return self.left + (value - self.x0) / (self.x1 - self.x0) * (self.right - self.left)

    def y(self, value: float) -> float:
        share = min(max((value - self.y0) / (self.y1 - self.y0), 0.0), 1.0)
        return self.bottom - share * (self.bottom - self.top)


def _pad_range(values: list[float], from_zero: bool = False) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    lowest_value, highest_value = min(values), max(values)
    if from_zero and 0 < lowest_value < 0.6 * highest_value:
        lowest_value = 0.0
    if lowest_value == highest_value:
        margin = abs(lowest_value) * 0.1 or 1.0
        return lowest_value - margin, highest_value + margin
    return lowest_value, highest_value


def _is_even(values: list[float]) -> bool:
    """Return whether values are about evenly spaced, so that every value can have its own tick."""
    steps = [b - a for a, b in pairwise(values)]
    return not steps or max(steps) < 1.6 * min(steps)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most ``most`` round numbers for the ticks of an axis, evenly spaced, that enclose [low, high]."""
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / max(most - 1, 1)))
    for step in (power * factor for factor in (1, 2, 2.5, 5, 10, 20, 50)):
        first_step, last_step = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last_step - first_step + 1 <= most:
            return [round(i * step, 12) for i in range(first_step, last_step + 1)]
    return [low, high]


def labels(values: Sequence[float]) -> list[str]:
    """Return numbers as axis labels. All labels have as many decimals as the number that needs the most."""
    label_texts = [f"{value:.6g}" for value in values]
    if any("e" in text for text in label_texts):
        return label_texts
    decimals = max((len(text.partition(".")[2]) for text in label_texts), default=0)
    return [f"{value:,.{decimals}f}" for value in values]


def _draw_axes(drawing: Drawing, frame: _Frame, x_label: str, y_label: str) -> None:
    for value, label in zip(frame.y_ticks, labels(frame.y_ticks), strict=True):
        y = frame.y(value)
        drawing.segment(frame.left, y, frame.right, y, colour=palette.GRID, width=1)
        drawing.text(frame.left - 6, y + 0.36 * SIZE, label, size=SIZE, anchor="end")
    drawing.segment(frame.left, frame.bottom, frame.right, frame.bottom, colour=palette.OUTLINE, width=1)
    next_free = -math.inf  # a tick label that would touch the previous label is left out
    for value, label in zip(frame.x_ticks, frame.x_labels, strict=True):
        x, label_width = frame.x(value), text_width(label, SIZE)
        drawing.segment(x, frame.bottom, x, frame.bottom + 4, colour=palette.OUTLINE, width=1)
        if frame.label_angle:
            drawing.text(x + 4, frame.bottom + 6 + SIZE, label, size=SIZE, anchor="end", turn=frame.label_angle)
        elif x - label_width / 2 > next_free:
            drawing.text(x, frame.bottom + 6 + SIZE, label, size=SIZE, anchor="middle")
            next_free = x + label_width / 2 + 6
    axis_center = (frame.left + frame.right) / 2
    label_y = drawing.height - (34 if frame.has_note else 18)
    drawing.text(axis_center, label_y + 5, x_label, size=SIZE + 1, anchor="middle")
    axis_center = (frame.top + frame.bottom) / 2
    drawing.text(8 + SIZE, axis_center, y_label, size=SIZE + 1, anchor="middle", turn=90)


def _finite_runs(line: Series, columns: Sequence[Sequence[float]]) -> list[list[tuple[float, ...]]]:
    """Split the points of a series into lists of successive points, wherever a value is not finite.

    A point is the tuple of its x and of its value in each of ``columns``, such as (y,) or (low, high) of the series.
    """
    runs: list[list[tuple[float, ...]]] = [[]]
    for point in zip(line.x, *columns, strict=True):
        if all(math.isfinite(value) for value in point):
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _draw_band(drawing: Drawing, frame: _Frame, line: Series, colour: str) -> None:
    if line.low is None or line.high is None:
        return
    for run in _finite_runs(line, (line.low, line.high)):
        if len(run) == 1:
            x, low, high = run[0]
            drawing.segment(frame.x(x), frame.y(low), frame.x(x), frame.y(high), colour=colour, width=1.2)
            continue
        upper = [(frame.x(x), frame.y(high)) for x, _, high in run]
        lower = [(frame.x(x), frame.y(low)) for x, low, _ in run]
        drawing.polygon([*upper, *reversed(lower)], fill=colour, opacity=0.18)


def _draw_line(drawing: Drawing, frame: _Frame, line: Series, index: int) -> None:
    colour = line.colour_at(index)
    marker = palette.SERIES_MARKERS[index % len(palette.SERIES_MARKERS)]
    tooltips = {x: text for x, text in zip(line.x, line.tooltips, strict=False) if text}
    for run in _finite_runs(line, (line.y,)):
        points_px = [(frame.x(x), frame.y(y)) for x, y in run]
        if len(points_px) > 1:
            drawing.polyline(points_px, colour=colour, width=1.8)
        if line.marks and len(points_px) <= MOST_MARKS:
            for (x, y), (tooltip_x, _) in zip(points_px, run, strict=True):
                drawing.marker(marker, x, y, 3.4, colour, palette.BACKGROUND, 0.8, tooltips.get(tooltip_x, ""))


def _entry_width(line: Series) -> float:
    return 26 + text_width(line.name, SIZE) * 1.06 + 16


def _count_legend_rows(lines: list[Series], width: int) -> int:
    if len(lines) < 2 and not (lines and lines[0].name):
        return 0
    rows, x = 1, 14.0
    for line in lines:
        if x > 14 and x + _entry_width(line) > width - 10:
            rows, x = rows + 1, 14.0
        x += _entry_width(line)
    return rows


def _draw_legend(drawing: Drawing, frame: _Frame, lines: list[Series]) -> None:
    if not _count_legend_rows(lines, round(drawing.width)):
        return
    x, y = 14.0, frame.legend_y
    for index, line in enumerate(lines):
        if x > 14 and x + _entry_width(line) > drawing.width - 10:
            x, y = 14.0, y + 17
        colour = line.colour_at(index)
        marker = palette.SERIES_MARKERS[index % len(palette.SERIES_MARKERS)]
        drawing.segment(x, y - 4, x + 20, y - 4, colour=colour, width=1.8)
        if line.marks:
            drawing.marker(marker, x + 10, y - 4, 3.4, colour, palette.BACKGROUND, 0.8)
        drawing.text(x + 25, y, line.name, size=SIZE)
        x += _entry_width(line)

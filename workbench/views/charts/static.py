"""Functions that return a chart as a picture for papers and notebooks: a `Chart`, which is a `Drawing`.

line_chart(series, ...)            lines with confidence bands, scatter plots
category_chart(names, series)      means with confidence intervals, or bars, for each category
steps_chart(lines, ...)            step lines over the time of a run, with a cursor
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, Self

import numpy as np

from workbench.views import palette
from workbench.views.charts.description import (
    AREAS,
    BAR,
    BARS,
    DOTS,
    LINE,
    SIZE,
    PlotArea,
    Series,
    band_segments,
    check_series,
    count_legend_rows,
    distinct_dots,
    labels,
    place_legend,
    split_at_gaps,
)
from workbench.views.drawing import Drawing, text_width

SPREAD = 0.3  # share of a category's width over which the points of its series are distributed
TURN = 30.0  # angle in degrees of category names that are too long to be horizontal
PER_PX = 4  # lines with more points for each px of width are thinned
P = ParamSpec("P")


class Panel(NamedTuple):
    """A plot area with its series and axes.

    ``x``, ``y``: the upper left corner of the panel in the whole chart; ``width``, ``height``: its size; in px.
    """

    lines: tuple[Series, ...]
    area: PlotArea
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0


@dataclass(repr=False)
class Chart(Drawing):
    """A drawing of series in one or more panels. A notebook with a kernel draws their plot areas with Bokeh.

    panels: the plot areas with their series.
    drawn: indices of the items that Bokeh draws in an interactive chart: those in plot areas, and tick labels.
    subject: what the chart shows, such as a sweep or a run. Charts and players with the same subject share what the
        user selects; "" means that they do not.
    open_run: a function that returns (caption, run), given the id of a run in a series; None: a click opens no run.
    resized: a function that returns the same chart with another width in px; None: the width is fixed.
    """

    panels: list[Panel] = field(default_factory=list, compare=False)
    drawn: set[int] = field(default_factory=set, compare=False)
    subject: str = field(default="", compare=False)
    open_run: Callable[[int], tuple[str, Any]] | None = field(default=None, compare=False)
    resized: Callable[[int], Chart] | None = field(default=None, compare=False)

    def add(self, other: Drawing, x: float, y: float) -> None:
        """Add all items of another drawing, moved by (x, y) px. If ``other`` is a chart, add its panels too."""
        if isinstance(other, Chart):
            self.drawn |= {index + len(self.items) for index in other.drawn}
            self.panels += [panel._replace(x=panel.x + x, y=panel.y + y) for panel in other.panels]
        super().add(other, x, y)

    @contextmanager
    def drawn_by_bokeh(self) -> Iterator[None]:
        """Mark all items that are added inside the ``with`` block: in an interactive chart, Bokeh draws these items."""
        first = len(self.items)
        yield
        self.drawn |= set(range(first, len(self.items)))

    def in_dark(self) -> Self:
        """Return the same chart for a dark background."""
        if self.is_dark:
            return self
        dark = super().in_dark()
        dark.panels, dark.drawn = [*self.panels], {*self.drawn}
        dark.resized = None if self.resized is None else _resize_in_dark(self.resized)
        return dark

    def surroundings(self) -> Drawing:
        """Return only the items that Bokeh does not draw: titles, legends, axis labels and notes."""
        items = [item for index, item in enumerate(self.items) if index not in self.drawn]
        return Drawing(self.width, self.height, self.title, items, self.is_dark)

    def to_bokeh(self) -> Any:
        """Return the chart as a Bokeh model: a figure, or a column of figures if the chart has several panels.

        The model does not contain titles, legends, axis labels and notes.
        """
        from bokeh.layouts import column

        from workbench.views.charts.figure import figure_of

        figures = [figure_of(panel) for panel in self.panels]
        return figures[0] if len(figures) == 1 else column(figures)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from workbench.views.charts.living import displayed_html

        return {"text/plain": repr(self), "text/html": displayed_html(self)}


def _resize_in_dark(resized: Callable[[int], Chart]) -> Callable[[int], Chart]:
    return lambda width: resized(width).in_dark()


def resizable(view: Callable[P, Chart]) -> Callable[P, Chart]:
    """Wrap a function that draws a chart, so that the chart can be drawn again with another width.

    The function must have a parameter ``width``. The field ``resized`` of its charts is set, see `Chart`.
    """

    signature = inspect.signature(view)

    @wraps(view)
    def with_resized(*args: P.args, **kwargs: P.kwargs) -> Chart:
        def resized(width: int) -> Chart:
            bound_arguments = signature.bind(*args, **kwargs)
            bound_arguments.arguments["width"] = width
            return with_resized(*bound_arguments.args, **bound_arguments.kwargs)

        chart = view(*args, **kwargs)
        chart.resized = resized
        return chart

    return with_resized


@resizable
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
) -> Chart:
    """Return a chart of several series, which differ in colour and marker.

    A series is a `Series` or a dict with its fields (name, x, y, and optionally low and high). Points that are
    not finite are left out and interrupt the line. Values outside ``y_range`` are drawn at the edge of the chart.
    ``note``: a line of small text in the chart.
    Raises ParameterError if the lists of a series differ in length.
    """
    lines = [check_series(item) for item in series]
    area = PlotArea(lines, y_range, width, height, bool(title), bool(note), count_legend_rows(lines, width))
    return _draw_chart(lines, area, title, x_label, y_label, note, width, height)


@resizable
def category_chart(
    names: Sequence[str],
    series: Sequence[Series | dict[str, Any]],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    note: str = "",
    width: int = 520,
    height: int = 340,
) -> Chart:
    """Return a chart with named categories on the x axis. The ``x`` values of the series are indices of ``names``.

    The points of all series for one name are drawn side by side, without lines between points. Bars of one name are
    stacked; their ``base`` is the lower end of each bar.
    """
    lines = [check_series(item) for item in series]
    if not any(line.shape == BARS for line in lines):
        offsets = [0.0 if len(lines) == 1 else SPREAD * (index / (len(lines) - 1) - 0.5) for index in range(len(lines))]
        lines = [_shift_series(line, offset) for line, offset in zip(lines, offsets, strict=True)]
    available_px = (width - 90) / max(len(names), 1) - 8
    widest_name_px = max((text_width(name, SIZE) for name in names), default=0)
    is_numbered = all(name.isdigit() for name in names)  # labels without room are left out
    angle = 0.0 if is_numbered or widest_name_px <= available_px else TURN
    area = PlotArea(lines, None, width, height, bool(title), bool(note), count_legend_rows(lines, width))
    area.name_categories(names, angle, widest_name_px)
    return _draw_chart(lines, area, title, x_label, y_label, note, width, height)


def _shift_series(line: Series, offset: float) -> Series:
    """Return the series shifted by ``offset`` along x. A NaN follows each point, so that no line joins two points."""
    gap = [math.nan] * len(line.x)
    columns = {name: getattr(line, name) for name in ("y", "low", "high")}
    spread_columns: dict[str, Any] = {
        name: None if values is None else _interleave(values, gap) for name, values in columns.items()
    }
    tooltips = _interleave(line.tooltips, [""] * len(line.tooltips)) if line.tooltips else ()
    ids = {kind: _interleave(numbers, [()] * len(numbers)) for kind, numbers in line.ids.items()}
    xs = _interleave([x + offset for x in line.x], gap)
    return replace(line, x=xs, tooltips=tooltips, ids=ids, **spread_columns)


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
    """Return a chart of step lines over the time of a run, 0 to ``end_s``, with a vertical cursor at ``time_s``.

    lines: (name, colour, times in s, values) of each line. A value holds from its time until the next time.
    width, height: size of the chart in px.
    """
    series = []
    for name, colour, times_s, values in lines:
        if len(times_s):
            visible = _find_visible_steps(np.asarray(times_s, float) * width / end_s, np.asarray(values, float))
            xs, ys = (np.repeat(np.asarray(column, float)[visible], 2).tolist() for column in (times_s, values))
            series.append(Series(name, [*xs[1:], end_s], ys, colour=colour, marks=False))
    area = PlotArea(series, None, width, height, False, False, count_legend_rows(series, width))
    if all(value == int(value) for line in series for value in line.y):  # counts are whole numbers
        area.y_ticks = [tick for tick in area.y_ticks if tick == int(tick)]
    drawing = _draw_chart(series, area, "", "time (s)", y_label, "", width, height)
    cursor = area.x(min(max(time_s, area.x0), area.x1))
    drawing.segment(cursor, area.top, cursor, area.bottom, colour=palette.TEXT, width=1.2)
    return drawing


def _find_visible_steps(columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the indices of the steps to draw in a step line, ascending.

    In each column of pixels, only the last step and the step with the largest value are drawn. ``columns``: the x
    position of each step in px. ``values``: the value of each step.
    """
    pixel = np.floor(columns).astype(np.int64)
    by_value = np.lexsort((values, pixel))
    is_last = np.append(pixel[1:] != pixel[:-1], True)
    return np.union1d(np.flatnonzero(is_last), by_value[np.append(np.diff(pixel[by_value]) > 0, True)])


def _draw_chart(
    lines: list[Series],
    area: PlotArea,
    title: str,
    x_label: str,
    y_label: str,
    note: str,
    width: int,
    height: int,
) -> Chart:
    chart = Chart(width, height, title=title or y_label)
    chart.panels.append(Panel(tuple(lines), area, width, height))
    if title:
        chart.text(14, 22, title, size=14, bold=True)
    with chart.drawn_by_bokeh():
        _draw_axes(chart, area)
    label_y = height - (34 if area.has_note else 18)
    chart.text((area.left + area.right) / 2, label_y + 5, x_label, size=SIZE + 1, anchor="middle")
    chart.text(8 + SIZE, (area.top + area.bottom) / 2, y_label, size=SIZE + 1, anchor="middle", turn=90)
    with chart.drawn_by_bokeh():
        for index, line in enumerate(lines):
            _draw_band(chart, area, line, line.colour_at(index))
        for index, line in enumerate(lines):
            _SHAPES[line.shape](chart, area, line, index)
    _draw_legend(chart, area, lines)
    if note:
        chart.text(14, height - 9, note, size=SIZE - 1, colour=palette.FAINT_TEXT)
    return chart


def _draw_axes(drawing: Drawing, area: PlotArea) -> None:
    for value, label in zip(area.y_ticks, labels(area.y_ticks), strict=True):
        y = area.y(value)
        drawing.segment(area.left, y, area.right, y, colour=palette.GRID, width=1)
        drawing.text(area.left - 6, y + 0.36 * SIZE, label, size=SIZE, anchor="end")
    drawing.segment(area.left, area.bottom, area.right, area.bottom, colour=palette.OUTLINE, width=1)
    shown_labels = dict(area.shown_labels())
    for value in area.x_ticks:
        x, y, label = area.x(value), area.bottom + 6 + SIZE, shown_labels.get(value, "")
        drawing.segment(x, area.bottom, x, area.bottom + 4, colour=palette.OUTLINE, width=1)
        if area.label_angle:
            drawing.text(x + 4, y, label, size=SIZE, anchor="end", turn=area.label_angle)
        else:
            drawing.text(x, y, label, size=SIZE, anchor="middle")


def _draw_band(drawing: Drawing, area: PlotArea, line: Series, colour: str) -> None:
    for run in band_segments(line):
        x, low, high = area.x(run[:, 0]), area.y(run[:, 1]), area.y(run[:, 2])
        if len(run) == 1:
            drawing.segment(float(x[0]), float(low[0]), float(x[0]), float(high[0]), colour=colour, width=1.2)
            continue
        upper, lower = (
            _thin_line(np.column_stack([x, high]), drawing.width),
            _thin_line(np.column_stack([x, low]), drawing.width),
        )
        drawing.polygon([*map(tuple, upper.tolist()), *map(tuple, lower[::-1].tolist())], fill=colour, opacity=0.18)


def _thin_line(points: np.ndarray, width: float) -> np.ndarray:
    """Reduce a line to the first, last, lowest and highest point in each column of pixels. The picture is the same.

    ``points``: positions in px, shape (points, 2), in order of x. ``width``: of the chart in px. A line with at most
    `PER_PX` points for each px of width is returned unchanged.
    """
    if len(points) <= PER_PX * width:
        return points
    pixel = np.floor(points[:, 0]).astype(np.int64)
    by_y = np.lexsort((points[:, 1], pixel))
    is_new = np.concatenate([[True], np.diff(pixel) != 0])
    ends = np.concatenate([np.flatnonzero(is_new), np.flatnonzero(np.append(is_new[1:], True))])
    lowest_and_highest = by_y[ends]  # the pixels are sorted in both orders, so borders are at the same positions
    return points[np.unique(np.concatenate([ends, lowest_and_highest]))]


def _draw_line(drawing: Drawing, area: PlotArea, line: Series, index: int) -> None:
    colour = line.colour_at(index)
    marker = palette.SERIES_MARKERS[index % len(palette.SERIES_MARKERS)]
    tooltips = {x: text for x, text in zip(line.x, line.tooltips, strict=False) if text}
    has_marks = line.has_marks
    for run in split_at_gaps(line, (line.y,)):
        points_px = np.column_stack([area.x(run[:, 0]), area.y(run[:, 1])])
        if len(run) > 1:
            thinned = _thin_line(points_px, drawing.width).tolist()
            drawing.polyline([(x, y) for x, y in thinned], colour=colour, width=1.8)
        if has_marks:
            for (x, y), tooltip_x in zip(points_px.tolist(), run[:, 0].tolist(), strict=True):
                drawing.marker(marker, x, y, 3.4, colour, palette.BACKGROUND, 0.8, tooltips.get(tooltip_x, ""))


def _draw_dots(drawing: Drawing, area: PlotArea, line: Series, index: int) -> None:
    drawn, _ = distinct_dots(area, line)
    xs, ys = (np.asarray(column, float)[drawn] for column in (line.x, line.y))
    drawing.circles(np.column_stack([area.x(xs), area.y(ys)]), 2.6, fill=line.colour_at(index), opacity=0.75)


def _draw_bars(drawing: Drawing, area: PlotArea, line: Series, index: int) -> None:
    half_px = 0.5 * BAR * (area.x(1.0) - area.x(0.0))
    bases = line.base or [0.0] * len(line.x)
    tooltips = line.tooltips or [""] * len(line.x)
    for x, base, top, tooltip in zip(line.x, bases, line.y, tooltips, strict=True):
        if not (math.isfinite(x) and math.isfinite(base) and math.isfinite(top)):
            continue
        left, right = area.x(x) - half_px, area.x(x) + half_px
        corners = [(left, area.y(base)), (right, area.y(base)), (right, area.y(top)), (left, area.y(top))]
        drawing.polygon(corners, fill=line.colour_at(index), tooltip=tooltip)


_SHAPES: dict[str, Callable[[Drawing, PlotArea, Series, int], None]] = {
    LINE: _draw_line,
    DOTS: _draw_dots,
    BARS: _draw_bars,
    AREAS: lambda drawing, area, line, index: None,
}


def _draw_legend(drawing: Drawing, area: PlotArea, lines: Sequence[Series]) -> None:
    for index, (line, (x, y, _)) in enumerate(
        zip(lines, place_legend(lines, drawing.width, area.legend_y), strict=False)
    ):
        colour = line.colour_at(index)
        marker = palette.SERIES_MARKERS[index % len(palette.SERIES_MARKERS)]
        if line.shape == BARS:
            drawing.rectangle(x + 4, y - 9, 12, 10, fill=colour)
        else:
            if line.shape == LINE:
                drawing.segment(x, y - 4, x + 20, y - 4, colour=colour, width=1.8)
            if line.marks or line.shape == DOTS:
                drawing.marker(
                    "circle" if line.shape == DOTS else marker, x + 10, y - 4, 3.4, colour, palette.BACKGROUND, 0.8
                )
        drawing.text(x + 25, y, line.name, size=SIZE)

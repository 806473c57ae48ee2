"""The description of a chart as a value: series of points, and the area with its ranges and ticks.

The static picture (`static`) and the Bokeh figure (`figure`) are drawn from the same description.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.errors import ParameterError
from workbench.views import palette
from workbench.views.drawing import text_width

SIZE = 11.0  # px of the letters
TICKS = 6  # the most ticks of the y axis
MOST_MARKS = 40
LEGEND_LINE = 17
RIM = 4  # px above the plot area that belong to a figure
BAR = 0.8  # width of a bar, as a share of the distance to the next bar
MOST_DOTS = 10_000  # drawn dots of a series
LINE, DOTS, BARS, AREAS = "line", "dots", "bars", "areas"


@dataclass(frozen=True)
class Series:
    """Points of a chart with the same style, optionally with a confidence interval for each point.

    shape: "line": lines from point to point; "dots": a scatter plot; "bars": a bar for each point, from ``base`` to y;
        "areas": invisible discs over marks that the drawing already contains, such as nodes on a map; an interactive
        chart gives these marks tooltips and lets the user select them.
    low, high: the ends of the confidence intervals; None: the series has no intervals.
    tooltips: a text for each point, shown while the mouse is over it.
    colour: "" means the next colour of `palette.SERIES`.
    marks: whether points of a line have markers. A line with a segment of more than `MOST_MARKS` points is drawn
        without markers; segments end where x or y is not finite.
    base: the lower ends of bars; None: zero.
    sizes: diameters of the discs of "areas" in px.
    ids: {kind: for each point, the ids of the things that it represents}. Kinds are "runs" (row numbers of the sweep's
        table), "paths" (indices of a run's messages) and "nodes" (node ids). If the user selects a point, all views of
        the same subject also select the points and paths that share an id with it.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    tooltips: Sequence[str] = ()
    colour: str = ""
    marks: bool = True
    shape: str = LINE
    base: Sequence[float] | None = None
    sizes: Sequence[float] = ()
    ids: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)

    @property
    def has_marks(self) -> bool:
        """True if every point has a marker."""
        if self.shape != LINE or not self.marks:
            return self.shape == DOTS
        return max(map(len, split_at_gaps(self, (self.y,))), default=0) <= MOST_MARKS

    def colour_at(self, index: int) -> str:
        """Return the colour of this series; ``index``: its position among the series of its chart."""
        return self.colour or palette.SERIES[index % len(palette.SERIES)]


def check_series(series: Series | dict[str, Any]) -> Series:
    """Return the series with the numbers in its columns (x, y, low, high, base) converted to floats.

    Raises ParameterError if the columns differ in length, or if the colour is not written as #RRGGBB.
    """
    line = series if isinstance(series, Series) else Series(**series)
    columns: dict[str, Any] = {name: getattr(line, name) for name in ("x", "y", "low", "high", "base")}
    columns = {
        name: None if column is None else np.asarray([*column], float).tolist() for name, column in columns.items()
    }
    if line.colour and not re.fullmatch("#[0-9A-Fa-f]{6}", line.colour):
        raise ParameterError(
            f"series {line.name!r} has the colour {line.colour!r:.40}; a colour is written as #RRGGBB, such as #0072B2"
        )
    texts = {"tooltips": line.tooltips or None, "sizes": line.sizes or None, **line.ids}
    for name, column in (columns | texts).items():
        if column is not None and len(column) != len(line.x):
            raise ParameterError(
                f"series {line.name!r} has {len(line.x)} values of x but {len(column)} of {name}; "
                "give one value for each x"
            )
    return replace(line, name=str(line.name), **columns)


def split_at_gaps(line: Series, columns: Sequence[Sequence[float]]) -> list[np.ndarray]:
    """Split a series into segments without gaps. A gap is a point at which x or a value of ``columns`` is not finite.

    ``columns``: for example (line.y,) or (line.low, line.high). Each segment is an array with a row for each of its
    points: x, followed by the point's value in each column.
    """
    points = np.column_stack([np.asarray(column, float) for column in (line.x, *columns)])
    is_finite = np.isfinite(points).all(axis=1)
    borders = np.flatnonzero(np.diff(np.concatenate([[False], is_finite, [False]]).astype(np.int8)))
    return [points[start:end] for start, end in borders.reshape(-1, 2)]


def band_segments(line: Series) -> list[np.ndarray]:
    """Return the segments of a series' confidence band between gaps, each an array of rows (x, low, high).

    Return [] if the series has no confidence intervals.
    """
    return [] if line.low is None or line.high is None else split_at_gaps(line, (line.low, line.high))


def is_band_whole(line: Series) -> bool:
    """Return whether the confidence band of a series is a single area without gaps, with at least two points."""
    segments = band_segments(line)
    return len(segments) == 1 and len(segments[0]) > 1


class PlotArea:
    """The rectangle of a chart inside its axes, in px, with the ranges and ticks of both axes."""

    def __init__(
        self,
        lines: Sequence[Series],
        y_range: tuple[float, float] | None,
        width: int,
        height: int,
        has_title: bool,
        has_note: bool,
        legend_rows: int,
    ) -> None:
        xs = _finite_values([line.x for line in lines])
        ys = _finite_values([column for line in lines for column in (line.y, line.low, line.high) if column])
        if not y_range and not ys.any() and any(line.shape == BARS for line in lines):
            y_range = 0.0, 1.0  # bars of height 0
        has_bars = any(line.shape == BARS for line in lines)
        self.has_note = has_note
        self.y_ticks = ticks(*(y_range or _pad_range(np.append(ys, 0.0) if has_bars else ys, True)), TICKS)
        self.y0, self.y1 = y_range or (self.y_ticks[0], self.y_ticks[-1])
        self.y_ticks = [tick for tick in self.y_ticks if self.y0 - 1e-12 <= tick <= self.y1 + 1e-12]
        self.x0, self.x1 = _pad_range(xs)
        distinct_xs = np.unique(xs)[:9].tolist()
        round_ticks = ticks(self.x0, self.x1, TICKS + 1)
        self.x_ticks = distinct_xs if 1 <= len(distinct_xs) <= 8 and _is_even(distinct_xs) else round_ticks
        self.x_ticks = [tick for tick in self.x_ticks if self.x0 <= tick <= self.x1]
        margin = 0.04 * (self.x1 - self.x0)
        self.x0, self.x1 = self.x0 - margin, self.x1 + margin
        widest_label_px = max((text_width(label, SIZE) for label in labels(self.y_ticks)), default=0)
        self.left = 14 + SIZE + 8 + widest_label_px + 6
        self.legend_y = 14.0 + (24 if has_title else 6)
        self.top = self.legend_y + LEGEND_LINE * legend_rows + 2
        self.right = width - 18.0
        self.bottom = height - 46.0 - (16 if has_note else 0)
        self.x_labels: list[str] = labels(self.x_ticks)
        self.label_angle = 0.0

    @classmethod
    def of_map(cls, width: float, height: float) -> PlotArea:
        """Return the plot area of a map of this width and height in px, without axes.

        The coordinates of points are px from the lower left corner of the map.
        """
        area = cls([], (0.0, height), round(width), round(height), False, False, 0)
        area.left, area.top, area.right, area.bottom = 0.0, 0.0, width, height
        area.x0, area.x1, area.y_ticks, area.x_ticks, area.x_labels = 0.0, width, [], [], []
        return area

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

    @property
    def rim(self) -> int:
        """The height in px that the Bokeh figure adds above the plot area, so that marks at its edge can be clicked."""
        return min(RIM, int(self.top))

    @property
    def y_end(self) -> float:
        """The y value at the upper edge of the Bokeh figure, which is `rim` px above the plot area."""
        return self.y1 + self.rim * (self.y1 - self.y0) / (self.bottom - self.top)

    def x(self, value: Any) -> Any:
        """Convert an x value, or an array of x values, to px from the left edge of the chart."""
        return self.left + (value - self.x0) / (self.x1 - self.x0) * (self.right - self.left)

    def y(self, value: Any) -> Any:
        """Convert a y value, or an array of y values, to px from the upper edge of the chart.

        A value outside the y range gets the position of the nearer end of the range.
        """
        share = (value - self.y0) / (self.y1 - self.y0)
        share = np.clip(share, 0.0, 1.0) if isinstance(share, np.ndarray) else min(max(share, 0.0), 1.0)
        return self.bottom - share * (self.bottom - self.top)

    def shown_labels(self) -> list[tuple[float, str]]:
        """Return (tick, label) pairs of the x axis, without the labels that would touch the previous label."""
        shown: list[tuple[float, str]] = []
        next_free = -math.inf
        for tick, label in zip(self.x_ticks, self.x_labels, strict=True):
            half_width = text_width(label, SIZE) / 2
            if self.label_angle or self.x(tick) - half_width > next_free:
                shown.append((tick, label))
                next_free = self.x(tick) + half_width + 6
        return shown


def _finite_values(columns: Sequence[Sequence[float]]) -> np.ndarray:
    values = np.concatenate([np.asarray(column, float) for column in columns] or [np.empty(0)])
    return values[np.isfinite(values)]


def _pad_range(values: np.ndarray, from_zero: bool = False) -> tuple[float, float]:
    if not len(values):
        return 0.0, 1.0
    lowest_value, highest_value = float(values.min()), float(values.max())
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
    """Return at most ``most`` ticks for an axis: evenly spaced round numbers that enclose [low, high].

    If no such numbers are found, return [low, high].
    """
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / max(most - 1, 1)))
    for step in (power * factor for factor in (1, 2, 2.5, 5, 10, 20, 50)):
        first_step, last_step = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last_step - first_step + 1 <= most:
            return [round(i * step, 12) for i in range(first_step, last_step + 1)]
    return [low, high]


def labels(values: Sequence[float]) -> list[str]:
    """Format numbers as axis labels with the same number of decimals: 0.5, 1 -> "0.5", "1.0"."""
    label_texts = [f"{value:.6g}" for value in values]
    if any("e" in text for text in label_texts):
        return label_texts
    decimals = max((len(text.partition(".")[2]) for text in label_texts), default=0)
    return [f"{value:,.{decimals}f}" for value in values]


def place_legend(lines: Sequence[Series], width: float, top: float) -> list[tuple[float, float, float]]:
    """Return (left, baseline, width) in px for the legend's entry of each series; [] if the chart has no legend.

    A chart with a single series that has no name has no legend. ``width``: the width of the chart in px. ``top``: the
    baseline of the first row of entries in px.
    """
    if not lines or (len(lines) < 2 and not lines[0].name):
        return []
    entries, x, y = [], 14.0, top
    for line in lines:
        entry_width = 26 + text_width(line.name, SIZE) * 1.06 + 16
        if x > 14 and x + entry_width > width - 10:
            x, y = 14.0, y + LEGEND_LINE
        entries.append((x, y, entry_width))
        x += entry_width
    return entries


def count_legend_rows(lines: Sequence[Series], width: float) -> int:
    """Return the number of rows of a chart's legend; 0 without a legend. ``width``: the width of the chart in px."""
    return len({y for _, y, _ in place_legend(lines, width, 0.0)})


def distinct_dots(area: PlotArea, line: Series) -> tuple[np.ndarray, np.ndarray]:
    """Select the points of a scatter plot ``line`` to draw; of points that nearly coincide, the last is drawn.

    Points nearly coincide if they are in the same cell of a grid. Cells are a quarter of a px wide, or wider if more
    than `MOST_DOTS` cells would have a point.

    Return two arrays. The first contains the indices of the drawn points, ascending, at most `MOST_DOTS`. The second
    has an entry for each point of the series: the position in the first array of the point drawn instead of it, or -1
    for a point that is not finite.
    """
    xs, ys = np.asarray(line.x, float), np.asarray(line.y, float)
    finite_points = np.flatnonzero(np.isfinite(xs) & np.isfinite(ys))
    columns, rows = area.x(xs[finite_points]), area.y(ys[finite_points])
    cell_px = 0.25
    while True:
        cells = np.floor(columns / cell_px).astype(np.int64) * 1_000_003 + np.floor(rows / cell_px).astype(np.int64)
        _, last_points, cell_of = np.unique(cells[::-1], return_index=True, return_inverse=True)
        if len(last_points) <= MOST_DOTS:
            drawn = finite_points[len(cells) - 1 - last_points]
            by_index = np.argsort(drawn)
            place_of = np.full(len(xs), -1)
            place_of[finite_points] = np.argsort(by_index)[cell_of.reshape(-1)[::-1]]
            return drawn[by_index], place_of
        cell_px *= 1.5

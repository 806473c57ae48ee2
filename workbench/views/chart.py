"""Static charts on the same display list as the networks.

line_chart(series, ...)            lines with confidence bands, for sweeps
category_chart(names, series)      means with confidence intervals, side by side for each of some names
steps_chart(lines, ...)            counts over the time of a run, with a cursor
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from workbench.errors import ParameterError
from workbench.views import palette
from workbench.views.drawing import Drawing, text_width

SIZE = 11.0
TICKS = 6
MOST_MARKS = 40
SPREAD = 0.3  # of the room that a name has, for the series beside each other
TURN = 30.0  # degrees, of names that are too long to stand beside each other


@dataclass(frozen=True)
class Series:
    """One line: its points in order of x, and for each the ends of its confidence interval (or none at all).

    said: for each point what a reader sees who points at it. colour: "" gives the next of `palette.SERIES`; marks:
    whether few points have markers.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    said: Sequence[str] = ()
    colour: str = ""
    marks: bool = True

    def colour_at(self, place: int) -> str:
        """Its colour as one of several."""
        return self.colour or palette.SERIES[place % len(palette.SERIES)]


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
    """A chart of several series, told apart by colour and marker: a `Drawing`.

    A series is a `Series` or a dict with its fields (name, x, y, low, high; the last two may be missing). Points that
    are not finite are left out, and break the line; what lies outside of ``y_range`` is drawn at its edge. Raises
    ParameterError for lists of different lengths.
    """
    lines = [_checked(one) for one in series]
    frame = _Frame(lines, y_range, width, height, bool(title), bool(note), _legend_rows(lines, width))
    return _drawn(lines, frame, title, x_label, y_label, note, width, height)


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
    """A chart of which ``x`` counts names: for each of them the points of the series side by side, not joined."""
    lines = [_checked(one) for one in series]
    apart = [0.0 if len(lines) == 1 else SPREAD * (place / (len(lines) - 1) - 0.5) for place in range(len(lines))]
    moved = [_apart(line, aside) for line, aside in zip(lines, apart, strict=True)]
    room = (width - 90) / max(len(names), 1) - 8
    widest = max((text_width(name, SIZE) for name in names), default=0)
    turned = 0.0 if widest <= room else TURN
    frame = _Frame(moved, None, width, height, False, bool(note), _legend_rows(lines, width))
    frame.name_categories(names, turned, widest)
    return _drawn(moved, frame, "", x_label, y_label, note, width, height)


def _apart(line: Series, aside: float) -> Series:
    """Its points beside each other's names; gaps keep them from being joined."""
    gap = [math.nan] * len(line.x)
    columns = {name: getattr(line, name) for name in ("y", "low", "high")}
    spread = {name: None if one is None else _between(one, gap) for name, one in columns.items()}
    said = _between(line.said, [""] * len(line.said)) if line.said else ()
    return replace(line, x=_between([x + aside for x in line.x], gap), said=said, **spread)


def _between(values: Sequence[Any], gaps: Sequence[Any]) -> list[Any]:
    return [one for pair in zip(values, gaps, strict=True) for one in pair]


def steps_chart(
    lines: Sequence[tuple[str, str, Sequence[float], Sequence[float]]],
    end_s: float,
    time_s: float,
    y_label: str,
    width: int,
    height: int,
) -> Drawing:
    """Lines in steps over a run of ``end_s``: (name, colour, times in s, value from each of them on)."""
    series = []
    for name, colour, times_s, values in lines:
        if len(times_s):
            xs = [*_between(times_s, times_s), end_s][1:]
            series.append(Series(name, xs, _between(values, values), colour=colour, marks=False))
    frame = _Frame(series, None, width, height, False, False, _legend_rows(series, width))
    drawing = _drawn(series, frame, "", "time (s)", y_label, "", width, height)
    cursor = frame.x(min(max(time_s, frame.x0), frame.x1))
    drawing.segment(cursor, frame.top, cursor, frame.bottom, colour=palette.TEXT, width=1.2)
    return drawing


def _drawn(
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
    for which, one in enumerate(lines):
        _draw_band(drawing, frame, one, one.colour_at(which))
    for which, one in enumerate(lines):
        _draw_line(drawing, frame, one, which)
    _draw_legend(drawing, frame, lines)
    if note:
        drawing.text(14, height - 9, note, size=SIZE - 1, colour=palette.FAINT_TEXT)
    return drawing


def _checked(one: Series | dict[str, Any]) -> Series:
    line = one if isinstance(one, Series) else Series(**one)
    values = {"x": line.x, "y": line.y, "low": line.low, "high": line.high}
    made = {name: None if column is None else [float(v) for v in column] for name, column in values.items()}
    for name, column in made.items():
        if column is not None and len(column) != len(line.x):
            raise ParameterError(
                f"line_chart: series {line.name!r} has {len(line.x)} values of x but {len(column)} of {name}; "
                "they must be as many"
            )
    return replace(line, name=str(line.name), **made)


class _Frame:
    """The plotting area in px, and the ranges it shows."""

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
        self.y_ticks = ticks(*(y_range or _padded(ys, from_zero=True)), TICKS)
        self.y0, self.y1 = y_range or (self.y_ticks[0], self.y_ticks[-1])
        self.y_ticks = [tick for tick in self.y_ticks if self.y0 - 1e-12 <= tick <= self.y1 + 1e-12]
        self.x0, self.x1 = _padded(xs)
        distinct = sorted(set(xs))
        inside = ticks(self.x0, self.x1, TICKS + 1)
        self.x_ticks = distinct if 1 <= len(distinct) <= 8 and _is_even(distinct) else inside
        self.x_ticks = [tick for tick in self.x_ticks if self.x0 <= tick <= self.x1]
        margin = 0.04 * (self.x1 - self.x0)
        self.x0, self.x1 = self.x0 - margin, self.x1 + margin
        widest = max((text_width(label, SIZE) for label in labels(self.y_ticks)), default=0)
        self.left = 14 + SIZE + 8 + widest + 6
        self.legend_y = 14.0 + (24 if has_title else 6)
        self.top = self.legend_y + 17 * legend_rows + 2
        self.right = width - 18.0
        self.bottom = height - 46.0 - (16 if has_note else 0)
        self.x_labels: list[str] = labels(self.x_ticks)
        self.turned = 0.0

    def name_categories(self, names: Sequence[str], turned: float, widest: float) -> None:
        """Write names along x instead of numbers, ``turned`` by some degrees if they need to be."""
        self.x_ticks, self.x_labels, self.turned = list(map(float, range(len(names)))), list(names), turned
        self.x0, self.x1 = -0.5, len(names) - 0.5
        self.bottom -= math.sin(math.radians(turned)) * widest
        if turned:  # the first one begins on the left of its tick
            reach = math.cos(math.radians(turned)) * text_width(names[0], SIZE)
            self.left = max(self.left, reach - 0.5 * (self.right - self.left) / len(names) + 8 + 1.5 * SIZE)

    def x(self, value: float) -> float:
        return self.left + (value - self.x0) / (self.x1 - self.x0) * (self.right - self.left)

    def y(self, value: float) -> float:
        share = min(max((value - self.y0) / (self.y1 - self.y0), 0.0), 1.0)
        return self.bottom - share * (self.bottom - self.top)


def _padded(values: list[float], from_zero: bool = False) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if from_zero and 0 < low < 0.6 * high:
        low = 0.0
    if low == high:
        grown = abs(low) * 0.1 or 1.0
        return low - grown, high + grown
    return low, high


def _is_even(values: list[float]) -> bool:
    """Whether values are about evenly spaced, so that each can have its own tick."""
    steps = [b - a for a, b in pairwise(values)]
    return not steps or max(steps) < 1.6 * min(steps)


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most ``most`` round numbers, evenly spaced, that enclose [low, high]."""
    span = high - low
    power = 10.0 ** math.floor(math.log10(span / max(most - 1, 1)))
    for step in (power * factor for factor in (1, 2, 2.5, 5, 10, 20, 50)):
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first + 1 <= most:
            return [round(i * step, 12) for i in range(first, last + 1)]
    return [low, high]


def labels(values: Sequence[float]) -> list[str]:
    """Numbers for an axis, all with as many decimals as the one that needs most."""
    texts = [f"{value:.6g}" for value in values]
    if any("e" in text for text in texts):
        return texts
    decimals = max((len(text.partition(".")[2]) for text in texts), default=0)
    return [f"{value:,.{decimals}f}" for value in values]


def _draw_axes(drawing: Drawing, frame: _Frame, x_label: str, y_label: str) -> None:
    for value, label in zip(frame.y_ticks, labels(frame.y_ticks), strict=True):
        y = frame.y(value)
        drawing.segment(frame.left, y, frame.right, y, colour=palette.GRID, width=1)
        drawing.text(frame.left - 6, y + 0.36 * SIZE, label, size=SIZE, anchor="end")
    drawing.segment(frame.left, frame.bottom, frame.right, frame.bottom, colour=palette.OUTLINE, width=1)
    free = -math.inf  # tick labels that would touch the last one are left out
    for value, label in zip(frame.x_ticks, frame.x_labels, strict=True):
        x, wide = frame.x(value), text_width(label, SIZE)
        drawing.segment(x, frame.bottom, x, frame.bottom + 4, colour=palette.OUTLINE, width=1)
        if frame.turned:
            drawing.text(x + 4, frame.bottom + 6 + SIZE, label, size=SIZE, anchor="end", turn=frame.turned)
        elif x - wide / 2 > free:
            drawing.text(x, frame.bottom + 6 + SIZE, label, size=SIZE, anchor="middle")
            free = x + wide / 2 + 6
    middle = (frame.left + frame.right) / 2
    below = drawing.height - (34 if frame.has_note else 18)
    drawing.text(middle, below + 5, x_label, size=SIZE + 1, anchor="middle")
    middle = (frame.top + frame.bottom) / 2
    drawing.text(8 + SIZE, middle, y_label, size=SIZE + 1, anchor="middle", turn=90)


def _runs(line: Series, columns: Sequence[Sequence[float]]) -> list[list[tuple[float, ...]]]:
    """Stretches of points in which x and all columns are finite."""
    stretches: list[list[tuple[float, ...]]] = [[]]
    for point in zip(line.x, *columns, strict=True):
        if all(math.isfinite(value) for value in point):
            stretches[-1].append(point)
        elif stretches[-1]:
            stretches.append([])
    return [stretch for stretch in stretches if stretch]


def _draw_band(drawing: Drawing, frame: _Frame, line: Series, colour: str) -> None:
    if line.low is None or line.high is None:
        return
    for stretch in _runs(line, (line.low, line.high)):
        if len(stretch) == 1:
            x, low, high = stretch[0]
            drawing.segment(frame.x(x), frame.y(low), frame.x(x), frame.y(high), colour=colour, width=1.2)
            continue
        upper = [(frame.x(x), frame.y(high)) for x, _, high in stretch]
        lower = [(frame.x(x), frame.y(low)) for x, low, _ in stretch]
        drawing.polygon([*upper, *reversed(lower)], fill=colour, opacity=0.18)


def _draw_line(drawing: Drawing, frame: _Frame, line: Series, which: int) -> None:
    colour = line.colour_at(which)
    marker = palette.SERIES_MARKERS[which % len(palette.SERIES_MARKERS)]
    said = {x: text for x, text in zip(line.x, line.said, strict=False) if text}
    for stretch in _runs(line, (line.y,)):
        points = [(frame.x(x), frame.y(y)) for x, y in stretch]
        if len(points) > 1:
            drawing.polyline(points, colour=colour, width=1.8)
        if line.marks and len(points) <= MOST_MARKS:
            for (x, y), (at, _) in zip(points, stretch, strict=True):
                drawing.marker(marker, x, y, 3.4, colour, palette.BACKGROUND, 0.8, said.get(at, ""))


def _entry_width(line: Series) -> float:
    return 26 + text_width(line.name, SIZE) * 1.06 + 16


def _legend_rows(lines: list[Series], width: int) -> int:
    if len(lines) < 2 and not (lines and lines[0].name):
        return 0
    rows, x = 1, 14.0
    for line in lines:
        if x > 14 and x + _entry_width(line) > width - 10:
            rows, x = rows + 1, 14.0
        x += _entry_width(line)
    return rows


def _draw_legend(drawing: Drawing, frame: _Frame, lines: list[Series]) -> None:
    if not _legend_rows(lines, round(drawing.width)):
        return
    x, y = 14.0, frame.legend_y
    for which, line in enumerate(lines):
        if x > 14 and x + _entry_width(line) > drawing.width - 10:
            x, y = 14.0, y + 17
        colour = line.colour_at(which)
        marker = palette.SERIES_MARKERS[which % len(palette.SERIES_MARKERS)]
        drawing.segment(x, y - 4, x + 20, y - 4, colour=colour, width=1.8)
        if line.marks:
            drawing.marker(marker, x + 10, y - 4, 3.4, colour, palette.BACKGROUND, 0.8)
        drawing.text(x + 25, y, line.name, size=SIZE)
        x += _entry_width(line)

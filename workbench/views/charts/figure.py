"""The plot areas of a chart as Bokeh figures.

Every figure has the size, the plot area, the ranges, the ticks and the fonts of the picture, so that nothing moves when
a figure replaces the picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.models import (
    BoxSelectTool,
    BoxZoomTool,
    ColumnDataSource,
    FixedTicker,
    Grid,
    HoverTool,
    LinearAxis,
    Patches,
    Plot,
    Quad,
    Range1d,
    ResetTool,
    Scatter,
    Segment,
    TapTool,
    VArea,
)
from bokeh.models import Line as LineGlyph

from workbench.views import palette
from workbench.views.charts.description import (
    AREAS,
    BAR,
    BARS,
    DOTS,
    LINE,
    SIZE,
    Series,
    band_segments,
    distinct_dots,
    is_band_whole,
    labels,
)
from workbench.views.charts.static import Panel
from workbench.views.drawing import FONT_FAMILY

KINDS = MARKS, LINES, BAND, ENDS = "marks", "line", "band", "ends"  # names of the sources of a series
# The tooltip of Bokeh has a white rim of 5 px, which is covered on a dark page.
_TOOLTIP = (
    "<div style='max-width:26em;white-space:normal;margin:-5px;padding:5px;"
    f"background:light-dark({palette.BACKGROUND},{palette.in_dark(palette.NODE)});"
    f"color:light-dark({palette.TEXT},{palette.in_dark(palette.TEXT)})'>@text</div>"
)
_MOST_HOVERED = 1_000  # points of a line with a tooltip
_SIZES = {"circle": 7.0, "square": 6.05, "triangle": 7.1, "diamond": 8.2}  # px, as in the picture


def figure_of(panel: Panel, columns: Mapping[str, Mapping[str, Any]] | None = None) -> Plot:
    """Return a panel of a chart as a Bokeh figure, in colours for a light background.

    columns: {name of a data source: its columns}, as from `columns_of`; None: call `columns_of`.
    The data sources of the figure are named after the index i of their series: "marks i" (points), "line i", "band i"
    (confidence band), and "ends i" (confidence intervals of isolated points).
    """
    area = panel.area
    figure = Plot(
        width=round(panel.width),
        height=round(panel.height),
        x_range=Range1d(area.x0, area.x1, reset_start=area.x0, reset_end=area.x1),
        y_range=Range1d(area.y0, area.y_end, reset_start=area.y0, reset_end=area.y_end),
        min_border_left=round(area.left),
        min_border_right=round(panel.width - area.right),
        min_border_top=round(area.top) - area.rim,
        min_border_bottom=round(panel.height - area.bottom),
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        toolbar_location=None,  # the page has buttons of its own
        title=None,
    )
    if area.y_ticks:
        _add_axes(figure, panel)
    sources = {
        name: ColumnDataSource(dict(source), name=name) for name, source in (columns or columns_of(panel)).items()
    }
    hovered = [_add_series(figure, line, index, sources) for index, line in enumerate(panel.lines)]
    box_select, box_zoom = BoxSelectTool(renderers=hovered, name="select"), BoxZoomTool(name="zoom")
    can_select = any(line.ids for line in panel.lines)
    tools = [HoverTool(renderers=hovered, tooltips=_TOOLTIP), TapTool(renderers=hovered), ResetTool()]
    zooms = [box_zoom] if area.y_ticks else []  # the map behind the figure is a picture
    figure.add_tools(*tools, *([box_select] if can_select else []), *zooms)
    figure.toolbar.active_drag = box_select if can_select else box_zoom
    return figure


def columns_of(panel: Panel) -> dict[str, dict[str, Any]]:
    """Return {name of a data source, such as "marks 0": its columns} for all series of a panel."""
    return {
        f"{kind} {index}": columns
        for index, line in enumerate(panel.lines)
        for kind, columns in _series_columns(panel, line).items()
    }


def _add_axes(figure: Plot, panel: Panel) -> None:
    area = panel.area
    font = {"major_label_text_font": FONT_FAMILY, "major_label_text_font_size": f"{SIZE:g}px"}
    look: dict[str, Any] = {
        **font,
        "major_label_text_color": palette.TEXT,
        "axis_line_color": palette.OUTLINE,
        "major_tick_line_color": palette.OUTLINE,
        "major_tick_in": 0,
        "minor_tick_line_color": None,
    }
    x_axis = LinearAxis(
        ticker=FixedTicker(ticks=[tick for tick, _ in area.shown_labels()]),
        major_label_overrides=_make_label_overrides(area.shown_labels()),
        major_label_orientation=math.radians(area.label_angle) if area.label_angle else "horizontal",
        major_tick_out=4,
        major_label_standoff=4,
        name="x axis",
        **look,
    )
    y_axis = LinearAxis(
        ticker=FixedTicker(ticks=area.y_ticks),
        major_label_overrides=_make_label_overrides(zip(area.y_ticks, labels(area.y_ticks), strict=True)),
        major_tick_out=0,
        major_label_standoff=6,
        name="y axis",
        **{**look, "axis_line_color": None, "major_tick_line_color": None},
    )
    figure.add_layout(x_axis, "below")
    figure.add_layout(y_axis, "left")
    figure.add_layout(Grid(dimension=1, axis=y_axis, grid_line_color=palette.GRID))


def _make_label_overrides(ticks: Any) -> dict[float | str, str]:
    return {float(tick): label for tick, label in ticks}


def _add_series(figure: Plot, line: Series, index: int, all_sources: Mapping[str, ColumnDataSource]) -> Any:
    """Add the glyphs of a series to a figure; return the renderer with which the user can hover and select."""
    colour = line.colour_at(index)
    sources = {kind: all_sources[f"{kind} {index}"] for kind in KINDS if f"{kind} {index}" in all_sources}
    look = {"name": f"series {index}"}
    if line.shape == BARS:
        bar = Quad(left="left", right="right", bottom="base", top="y", fill_color=colour, line_color=None)
        return _add_selectable(figure, sources[MARKS], bar, index)
    if line.shape == AREAS:
        disc = Scatter(x="x", y="y", size="size", fill_color=colour, fill_alpha=0.0, line_color=None)
        return _add_selectable(figure, sources[MARKS], disc, index)
    if ENDS in sources:
        whisker = Segment(x0="x", y0="low", x1="x", y1="high", line_color=colour, line_width=1.2)
        fill = {"fill_color": colour, "fill_alpha": 0.18}
        is_whole = "low" in sources[BAND].data
        band = VArea(x="x", y1="low", y2="high", **fill) if is_whole else Patches(**fill, line_color=None)
        figure.add_glyph(sources[BAND], band, **look)
        figure.add_glyph(sources[ENDS], whisker, **look)
    if LINES in sources:
        figure.add_glyph(
            sources[LINES],
            LineGlyph(x="x", y="y", line_color=colour, line_width=1.8, line_join="bevel"),
            **look,
        )
    is_dot = line.shape == DOTS
    marker = "circle" if is_dot else palette.SERIES_MARKERS[index % len(palette.SERIES_MARKERS)]
    marks = Scatter(
        x="x",
        y="y",
        marker=marker,
        size=5.2 if is_dot else _SIZES[marker],
        fill_color=colour,
        fill_alpha=0.75 if is_dot else 1.0 if line.has_marks else 0.0,
        line_color=palette.BACKGROUND if line.has_marks and not is_dot else None,
        line_width=0.8,
    )
    return _add_selectable(figure, sources[MARKS], marks, index)


def _add_selectable(figure: Plot, source: ColumnDataSource, glyph: Any, index: int) -> Any:
    """Add a glyph whose points the user can select; return its renderer. Other points are pale during a selection.

    ``index``: the position of the series in the panel. The glyphs for selected and other points are set explicitly:
    glyphs that Bokeh derives would keep their colours when the theme changes.
    """
    selected, others = glyph.clone(), glyph.clone()
    others.fill_alpha, others.line_alpha = 0.25 * float(glyph.fill_alpha), 0.0
    if isinstance(glyph, Scatter) and float(glyph.fill_alpha) == 0.0:  # a line without markers
        selected.fill_alpha = 1.0
    return figure.add_glyph(
        source,
        glyph,
        selection_glyph=selected,
        nonselection_glyph=others,
        muted_glyph=others.clone(),  # while only points of other series are selected
        name=f"series {index}",
        level="annotation",  # marks at the edge are not cut
    )


def _series_columns(panel: Panel, line: Series) -> dict[str, dict[str, Any]]:
    """Return {kind of a data source ("marks", "line", "band" or "ends"): its columns} for a series."""
    xs, ys = np.asarray(line.x, float), np.asarray(line.y, float)
    low, high = panel.area.y0, panel.area.y1
    shown_ys = np.clip(ys, low, high)  # values outside the range are drawn at the edge
    points = np.flatnonzero(np.isfinite(xs) & np.isfinite(ys))
    place_of = None
    if line.shape == DOTS:
        points, place_of = distinct_dots(panel.area, line)
    elif line.shape == LINE and len(points) > _MOST_HOVERED:  # the line is drawn whole
        points = points[np.linspace(0, len(points) - 1, _MOST_HOVERED).astype(np.int64)]
    marks: dict[str, Any] = {"x": xs[points], "y": shown_ys[points], "text": _make_tooltips(line, points.tolist())}
    marks |= {kind: _collect_ids(ids, points, place_of) for kind, ids in line.ids.items()}
    if line.shape == AREAS:
        return {MARKS: marks | {"size": np.asarray(line.sizes, float)[points]}}
    if line.shape == BARS:
        base = np.zeros(len(xs)) if line.base is None else np.asarray(line.base, float)
        return {MARKS: marks | {"left": marks["x"] - BAR / 2, "right": marks["x"] + BAR / 2, "base": base[points]}}
    columns = {MARKS: marks}
    if line.shape == LINE:
        columns[LINES] = {"x": xs, "y": shown_ys}
    if line.low is not None and line.high is not None:
        segments = [np.clip(segment, [-np.inf, low, low], [np.inf, high, high]) for segment in band_segments(line)]
        x, lows, highs = np.array([segment[0] for segment in segments if len(segment) == 1]).reshape(-1, 3).T
        columns[ENDS] = {"x": x, "low": lows, "high": highs}
        if is_band_whole(line):  # quicker to draw, but without gaps
            columns[BAND] = dict(zip(("x", "low", "high"), segments[0].T, strict=True))
            return columns
        outlines = [
            np.concatenate([segment[:, [0, 1]], segment[::-1, [0, 2]]]) for segment in segments if len(segment) > 1
        ]
        columns[BAND] = {"xs": [outline[:, 0] for outline in outlines], "ys": [outline[:, 1] for outline in outlines]}
    return columns


def _collect_ids(ids: Sequence[Sequence[int]], points: np.ndarray, place_of: np.ndarray | None) -> list[list[int]]:
    """Return for each drawn point a list of ids: its own, and those of the points that it replaces.

    ids: for each point of the series, a list of ids.
    points: indices of the drawn points.
    place_of: for each point of the series, the position in ``points`` of the point drawn instead of it, or -1. None
        means that no point is replaced.
    """
    if place_of is None:
        return [[*map(int, ids[point])] for point in points.tolist()]
    drawn_ids: list[set[int]] = [set() for _ in points]
    for point_ids, place in zip(ids, place_of.tolist(), strict=True):
        if place >= 0:
            drawn_ids[place].update(map(int, point_ids))
    return [*map(sorted, drawn_ids)]


def _make_tooltips(line: Series, points: Sequence[int]) -> list[str]:
    if line.tooltips:
        return [line.tooltips[point] for point in points]
    name = f"{line.name}: " if line.name else ""
    return [f"{name}{line.x[point]:.6g}, {line.y[point]:.6g}" for point in points]

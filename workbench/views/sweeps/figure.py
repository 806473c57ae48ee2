"""The Bokeh figure of a sweep's summary: lines of means in confidence bands, or intervals side by side."""

from __future__ import annotations

from typing import Any

import pandas as pd
from bokeh.models import ColumnDataSource, FactorRange, HoverTool, Legend, LegendItem, Whisker
from bokeh.plotting import figure
from bokeh.transform import dodge

from workbench.sweeps.chart import Texts
from workbench.views import palette

WIDTH, HEIGHT = 720, 420
_BAND_ALPHA = 0.18
_SPREAD = 0.3  # of the room that a category has, for the series in it


def draw(summary: pd.DataFrame, texts: Texts) -> Any:
    """A figure of what `chart.summary` returns: series by its first column if ``texts.by`` says that there is one."""
    by, x = (summary.columns[0], summary.columns[1]) if texts.by else (None, summary.columns[0])
    is_number = pd.api.types.is_numeric_dtype(summary[x]) and not pd.api.types.is_bool_dtype(summary[x])
    plot = _empty(texts, None if is_number else FactorRange(*dict.fromkeys(map(str, summary[x]))))
    series = list(summary.groupby(by, sort=False)) if by else [("", summary)]
    items = []
    for place, (label, rows) in enumerate(series):
        source = _source(rows, x, is_number)
        at: Any = "x" if is_number else dodge("x", _offset(place, len(series)), range=plot.x_range)
        drawn = (_band if is_number else _bars)(plot, source, at, palette.SERIES[place % len(palette.SERIES)])
        marks = _marks(plot, source, at, place)
        items.append(LegendItem(label=str(label), renderers=[*drawn, marks]))
        plot.add_tools(_hover(marks, str(label), texts))
    if by:
        _add_legend(plot, items, texts)
    return plot


def _empty(texts: Texts, categories: FactorRange | None) -> Any:
    more = {} if categories is None else {"x_range": categories}
    plot = figure(width=WIDTH, height=HEIGHT, title=texts.note, tools="pan,wheel_zoom,box_zoom,reset,save", **more)
    plot.toolbar.logo = None
    plot.outline_line_color = None
    plot.title.text_font_style = "normal"
    plot.title.text_color = palette.FAINT_TEXT
    for axis, text in ((plot.xaxis, texts.x), (plot.yaxis, texts.y)):
        axis.axis_label = text
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color = axis.major_label_text_color = palette.TEXT
        axis.axis_line_color = axis.major_tick_line_color = palette.OUTLINE
        axis.minor_tick_line_color = None
    plot.grid.grid_line_color = palette.GRID
    plot.xgrid.visible = categories is None
    return plot


def _source(rows: pd.DataFrame, x: str, is_number: bool) -> ColumnDataSource:
    return ColumnDataSource(
        {
            "x": rows[x].tolist() if is_number else [str(value) for value in rows[x]],
            **{name: rows[name].to_numpy(dtype=float) for name in ("mean", "low", "high")},
            "runs": rows["runs"].tolist(),
        }
    )


def _offset(place: int, series: int) -> float:
    return 0.0 if series == 1 else _SPREAD * (place / (series - 1) - 0.5)


def _band(plot: Any, source: ColumnDataSource, at: Any, colour: str) -> list[Any]:
    band = plot.varea(x=at, y1="low", y2="high", source=source, fill_color=colour, fill_alpha=_BAND_ALPHA)
    line = plot.line(x=at, y="mean", source=source, line_color=colour, line_width=2)
    return [band, line]


def _bars(plot: Any, source: ColumnDataSource, at: Any, colour: str) -> list[Any]:
    bar = Whisker(base=at, lower="low", upper="high", source=source, line_color=colour, line_width=2)
    for head in (bar.upper_head, bar.lower_head):
        head.size, head.line_color = 8, colour
    plot.add_layout(bar)
    return []


def _marks(plot: Any, source: ColumnDataSource, at: Any, place: int) -> Any:
    turn = place % len(palette.SERIES)
    return plot.scatter(
        x=at,
        y="mean",
        source=source,
        size=8,
        marker=palette.SERIES_MARKERS[turn],
        fill_color=palette.SERIES[turn],
        line_color=palette.BACKGROUND,
    )


def _hover(marks: Any, label: str, texts: Texts) -> HoverTool:
    tips = [(texts.x, "@x"), (texts.y, "@mean{0.000}"), ("95 %", "@low{0.000} to @high{0.000}"), ("runs", "@runs")]
    return HoverTool(renderers=[marks], tooltips=[*([(texts.by, label)] if texts.by else []), *tips])


def _add_legend(plot: Any, items: list[LegendItem], texts: Texts) -> None:
    legend = Legend(items=items, title=texts.by, title_text_font_style="normal", border_line_color=None)
    legend.click_policy = "hide"
    legend.label_text_color = legend.title_text_color = palette.TEXT
    plot.add_layout(legend, "right")

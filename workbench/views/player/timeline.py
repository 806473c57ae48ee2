"""The player's timeline: a mark per message at its time and node, nodes in order of their distance to the sink."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Legend, LegendItem, Range1d
from bokeh.plotting import figure

from workbench.views import palette
from workbench.views.ground import Plan, hops_to
from workbench.views.player import packing
from workbench.views.player.columns import Columns
from workbench.views.player.intervals import Intervals
from workbench.views.player.sizes import Sizes


def draw_timeline(
    columns: Columns, plan: Plan, graph: Any, seen: Intervals, sizes: Sizes, colours: Mapping[str, str]
) -> tuple[Any, ColumnDataSource, list[str]]:
    """The figure, the source of its cursor, and sentences about what was left out; ``colours``: those of messages."""
    sinks = seen["subscription"]["node"]
    sink = int(sinks[0]) if len(sinks) else None
    rows_of, ticks = packing.timeline_rows(plan, {} if sink is None else hops_to(graph, sink))
    marks, notes = packing.marks(columns, rows_of)
    duration_s = seen.duration_us / 1e6
    plot = figure(
        name="timeline",
        width=sizes.timeline_width,
        height=sizes.timeline_height,
        x_range=Range1d(-0.01 * duration_s, 1.01 * duration_s),
        y_range=Range1d(-0.04 * len(plan.ids) - 0.5, 1.04 * len(plan.ids)),
        tools="xpan,xwheel_zoom,xbox_zoom,reset",
        active_scroll="xwheel_zoom",
        toolbar_location="right",
        x_axis_label="time (s)",
        y_axis_label="node" if sink is None else f"hops to sink {sink}",
        outline_line_color=None,
    )
    if sink is not None:
        plot.yaxis.ticker = FixedTicker(ticks=[where for where, _ in ticks])
        plot.yaxis.major_label_overrides = dict(ticks)
    _style(plot)
    _draw_marks(plot, marks, float(np.clip(240 / max(len(plan.ids), 1), 2.5, 6)), colours)
    cursor = ColumnDataSource({"x": [0.0, 0.0], "y": [plot.y_range.start, plot.y_range.end]})
    plot.line("x", "y", source=cursor, name="cursor", line_color=palette.TEXT, line_width=1.4, level="overlay")
    return plot, cursor, notes


def _style(plot: Any) -> None:
    plot.toolbar.logo = None
    plot.xgrid.grid_line_color = palette.GRID
    plot.ygrid.grid_line_color = None
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_label_text_font_size = "12px"
    plot.axis.axis_line_color = palette.GRID
    plot.axis.major_tick_line_color = palette.GRID
    plot.axis.minor_tick_line_color = None


def _draw_marks(plot: Any, marks: dict[str, Any], size: float, colours: Mapping[str, str]) -> None:
    items, renderers = [], []
    looks = {"lost": ("x", 0.35, 0.9), "delivered": ("square", 1.0, 1.3)}
    for name in sorted(marks, key=lambda name: {"lost": 0, "delivered": 9, "data": 5}.get(name, 2)):
        marker, alpha, grown = looks.get(name, ("circle", 0.85, 1.0))
        colour = packing.mark_colour(name, colours)
        drawn = plot.scatter(
            "x",
            "y",
            source=ColumnDataSource(marks[name]),
            name=packing.mark_name(name),
            size=size * grown,
            marker=marker,
            fill_color=colour,
            line_color=colour if marker == "x" else None,
            alpha=alpha,
        )
        renderers.append(drawn)
        items.append(LegendItem(label=packing.mark_name(name), renderers=[drawn]))
    plot.add_tools(HoverTool(renderers=renderers, tooltips="@x{0.000} s, node @node: $name"))
    look = {"border_line_color": None, "label_text_font_size": "11px", "padding": 0, "margin": 0}
    legend = Legend(items=items, orientation="horizontal", location="left", click_policy="hide", **look)
    legend.spacing, legend.glyph_width = 10, 12
    plot.add_layout(legend, "above")

"""What a protocol draws on top of the player of a run, at the player's time: the pieces that all such skins share.

toggle_layers(...)      buttons that show and hide what is drawn on the map
steps_figure(...)       counts over the whole run, with a cursor that the skin moves
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, CustomJS, Legend, LegendItem, Range1d
from bokeh.plotting import figure

from workbench.views import palette
from workbench.views.player.sizes import WIDTH

# A line over time: its name, what the legend says, its colour, and a value for each time.
Line = tuple[str, str, str, Sequence[float]]


def toggle_layers(buttons: Any, map_: Any, layers: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Let each of the buttons show and hide the renderers of its layer: (what the button says, their names)."""
    renderers = [[one for one in map_.renderers if one.name in names] for _, names in layers]
    code = "renderers.forEach((some, i) => some.forEach((one) => (one.visible = layers.active.includes(i))))"
    buttons.js_on_change("active", CustomJS(args={"renderers": renderers, "layers": buttons}, code=code))


def steps_figure(
    names: Mapping[str, str],
    y_label: str,
    times_s: Sequence[float],
    lines: Iterable[Line],
    y_range: tuple[float, float],
) -> tuple[Any, ColumnDataSource]:
    """Lines in steps over ``times_s``, of which the last is the run's end, and the source of the cursor in them.

    ``names`` are those of the "figure" and of its "cursor".
    """
    plot = figure(
        name=names["figure"],
        width=WIDTH,
        height=170,
        x_range=Range1d(-0.01 * times_s[-1], 1.01 * times_s[-1]),
        y_range=Range1d(*y_range),
        tools="xpan,xwheel_zoom,xbox_zoom,reset",
        toolbar_location="right",
        x_axis_label="time (s)",
        y_axis_label=y_label,
        outline_line_color=None,
    )
    plot.toolbar.logo = None
    plot.xgrid.grid_line_color = None
    plot.ygrid.grid_line_color = palette.GRID
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_line_color = palette.GRID
    plot.axis.minor_tick_line_color = None
    items = []
    for name, said, colour, values in lines:
        line = plot.step(times_s, values, mode="after", line_color=colour, line_width=2, name=name)
        items.append(LegendItem(label=said, renderers=[line]))
    look = {"border_line_color": None, "label_text_font_size": "11px", "padding": 0, "margin": 0}
    plot.add_layout(Legend(items=items, orientation="horizontal", location="left", **look), "above")
    cursor = ColumnDataSource({"x": [0.0, 0.0], "y": [plot.y_range.start, plot.y_range.end]})
    plot.line("x", "y", source=cursor, name=names["cursor"], line_color=palette.TEXT, line_width=1.4, level="overlay")
    return plot, cursor

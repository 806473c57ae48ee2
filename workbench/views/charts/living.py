"""Interactive charts: in a notebook with a kernel, Bokeh figures replace the plot areas of a chart's picture.

    chart                         shown as the last line of a cell: a picture, which becomes interactive
    view = ChartView(chart)       for a layout of ipywidgets (``view.wire``), or to show other numbers later
    view.feed(other_chart)        the same view shows another chart

Theory of operation
    The output of a cell is the picture. An invisible widget, the wire, finds the picture in the page and requests
    BokehJS (once for a page) and the figures from the kernel. The notebook's file contains only the picture. If a cell
    is executed again, the wires of its earlier outputs are closed.

    A click on a point of a sweep executes this run again and shows it in a player below the chart.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import traitlets

from workbench.errors import WorkbenchError
from workbench.views import palette
from workbench.views.charts.description import LINE, Series, labels, place_legend, split_at_gaps
from workbench.views.charts.static import Chart, Panel
from workbench.views.notebook import dissect_if_small, in_notebook
from workbench.views.player.embed import module_name, new_id, packed_module
from workbench.views.player.once import LoadedOnce

LONG = 4_000  # lines with more points are sent as binary columns, and thinned in the page (chart.js)
NARROWEST = 240  # px, the least width to which charts are fitted

_wires_by_cell: dict[str, tuple[str, list[Wire]]] = {}  # cell -> (its execution, the wires of its charts)


@cache
def script(name: str) -> str:
    """Return the text of a script in this folder; ``name``: its file name."""
    return (files(__package__) / name).read_text(encoding="utf-8")


@cache
def bokeh_script() -> bytes:
    """Return BokehJS, compressed with gzip."""
    from bokeh.util.paths import bokehjs_path

    text = (bokehjs_path() / "js" / "bokeh.min.js").read_bytes()
    return gzip.compress(text, 9, mtime=0)


class Wire(LoadedOnce):
    """The widget that connects a chart in a page with the kernel.

    holder: id of the HTML element that contains the picture; "" in a layout of widgets.
    picture: in a layout of widgets, the picture as HTML.
    version: of BokehJS. player: the name under which a page stores the script of players.
    """

    script = traitlets.Unicode().tag(sync=True)
    holder = traitlets.Unicode().tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)
    version = traitlets.Unicode().tag(sync=True)
    player = traitlets.Unicode().tag(sync=True)

    def close(self) -> None:
        """Close this widget and its ``layout``, which is a widget of its own that would stay open."""
        self.layout.close()
        super().close()


class ChartView:
    """One display of a chart, which `feed` can replace by another chart.

    The attribute ``wire`` is the widget to use in a layout of ipywidgets; ``chart`` is the chart that is shown now.
    """

    def __init__(self, chart: Chart, holder: str = "") -> None:
        from importlib.metadata import version

        self.chart = chart
        self.wire = Wire(
            script=script("chart.js") + script("wire.js"),
            holder=holder,
            picture="" if holder else chart.to_html(),
            version=version("bokeh"),
            player=module_name(),
        )
        self.wire.on_msg(self._answer)

    def to_html(self) -> str:
        """Return the picture as HTML for the output of a cell, in which the wire finds it."""
        return f'<div data-chart="{self.wire.holder}">{self.chart.to_image_html()}</div>'

    def feed(self, chart: Chart) -> None:
        """Replace the displayed chart. If its plot areas and series are alike, only the data of the figures change."""
        is_other = _figure_key(chart) != _figure_key(self.chart)
        self.chart = chart
        if not self.wire.holder:
            self.wire.picture = chart.to_html()
        if is_other:
            self.wire.send({"kind": "feed", "is_other": True})
            return
        buffers: list[bytes] = []
        data = [_panel_data(panel, buffers) for panel in chart.panels]
        self.wire.send({"kind": "feed", "data": data, **chart_entry(chart)}, buffers)

    def _send_figure(self, chart: Chart) -> None:
        # Long lines follow as columns of numbers, because the page draws only some of their points.
        buffers: list[bytes] = []
        is_long = _has_long_lines(chart)
        data = [_panel_data(panel, buffers) for panel in chart.panels] if is_long else []
        message = {"kind": "figure", **chart_entry(chart), "natural": self.chart.width, "data": data}
        self.wire.send(message, [packed_items(chart, includes_long_lines=not is_long), *buffers])

    def close(self) -> None:
        """Close the connection to the browser. The picture remains in the page."""
        self.wire.close()

    def _answer(self, _: Any, request: Mapping[str, Any], __: Any) -> None:
        wanted = request.get("want")
        if wanted == "bokeh":
            self.wire.send({"kind": "bokeh"}, [bokeh_script()])
        elif wanted == "figure":
            self._send_figure(fit(self.chart, int(request.get("width") or 0)))
        elif wanted == "player":
            self.wire.send({"kind": "player"}, [base64.b64decode(packed_module())])
        elif wanted == "run" and self.chart.open_run is not None:
            self.wire.send(*_run_message(self.chart, int(request["number"])))


def _has_long_lines(chart: Chart) -> bool:
    return any(line.shape == LINE and len(line.x) > LONG for panel in chart.panels for line in panel.lines)


def displayed_html(chart: Chart) -> str:
    """Return the picture of a chart as HTML for the output of a cell; in a notebook, it becomes interactive."""
    picture = chart.to_image_html()
    if not in_notebook() or not chart.panels:
        return picture
    view = ChartView(chart, new_id())
    _remember(view.wire)
    return view.to_html()


def _remember(wire: Wire) -> None:
    """Keep the wire of the running cell, and close those of its earlier execution."""
    from IPython import get_ipython

    parent = get_ipython().get_parent()
    cell = str(parent.get("metadata", {}).get("cellId", ""))
    execution = str(parent.get("header", {}).get("msg_id", ""))
    earlier_execution, wires = _wires_by_cell.get(cell, (execution, []))
    if earlier_execution != execution:
        for earlier_wire in wires:
            earlier_wire.close()
        wires = []
    _wires_by_cell[cell] = execution, [*wires, wire]


def fit(chart: Chart, width: int) -> Chart:
    """Return the chart, or if the page is narrower, the same chart with the page's ``width`` in px."""
    if not width or width >= chart.width or chart.resized is None:
        return chart
    fitted = chart.resized(max(width, NARROWEST))
    fitted.subject, fitted.open_run = chart.subject, chart.open_run
    return fitted


def packed_items(chart: Chart, includes_long_lines: bool = True) -> bytes:
    """Return the figures of a chart's panels as JSON documents for BokehJS: a list, compressed with gzip.

    ``includes_long_lines``: False: lines with more than `LONG` points are empty.
    """
    from bokeh.embed import json_item

    from workbench.views.charts.figure import figure_of

    items = []
    for panel in chart.panels:
        figure = figure_of(panel)
        for source in [] if includes_long_lines else [renderer.data_source for renderer in figure.renderers]:
            if len(source.data.get("x", ())) > LONG:
                source.data = {name: [] for name in source.data}
        items.append(json_item(figure))
    return gzip.compress(json.dumps(items, separators=(",", ":")).encode(), 1, mtime=0)


def chart_entry(chart: Chart) -> dict[str, Any]:
    """Return what an interactive chart shows outside of its plot areas, and their positions, as JSON values."""
    colours = {line.colour_at(index) for panel in chart.panels for index, line in enumerate(panel.lines)}
    colours |= {palette.TEXT, palette.OUTLINE, palette.GRID, palette.BACKGROUND}
    return {
        "width": chart.width,
        "surroundings": chart.surroundings().to_html(),
        "panels": [_panel_entry(panel) for panel in chart.panels],
        "dark": {colour: palette.in_dark(colour) for colour in sorted(colours)},
        "subject": chart.subject,
        "can_open": chart.open_run is not None,
    }


def _panel_entry(panel: Panel) -> dict[str, Any]:
    places = place_legend(panel.lines, panel.width, panel.area.legend_y)
    legend = [
        [x + panel.x, y + panel.y, width, line.name] for (x, y, width), line in zip(places, panel.lines, strict=False)
    ]
    tools = [panel.x + panel.area.right, panel.y + panel.area.top - 21]
    return {"x": panel.x, "y": panel.y, "legend": legend, "tools": tools}


def _figure_key(chart: Chart) -> list[Any]:
    """Return a key of a chart's figures: if keys are equal, only the data of the figures have to be replaced."""
    key = []
    for panel in chart.panels:
        area = panel.area
        sides = [round(value) for value in (area.left, area.top, area.right, area.bottom)]
        key.append([sides, [(line.name, line.shape, line.colour, _band_form(line)) for line in panel.lines]])
    return key


def _band_form(line: Series) -> str:
    """Return how the band of a series is drawn: "none", "whole" or "with gaps"."""
    if line.low is None or line.high is None:
        return "none"
    return "whole" if len(split_at_gaps(line, (line.low, line.high))) == 1 else "with gaps"


def _panel_data(panel: Panel, buffers: list[bytes]) -> dict[str, Any]:
    """Return the ranges, ticks and columns of a panel; columns of numbers are appended to ``buffers``."""
    from workbench.views.charts.figure import columns_of

    area = panel.area
    sources = {
        name: {column: _column_entry(values, buffers) for column, values in columns.items()}
        for name, columns in columns_of(panel).items()
    }
    ticks = {"x axis": area.shown_labels(), "y axis": [*zip(area.y_ticks, labels(area.y_ticks), strict=True)]}
    return {"frame": {"x": [area.x0, area.x1], "y": [area.y0, area.y1], "ticks": ticks}, "sources": sources}


def _column_entry(values: Any, buffers: list[bytes]) -> Any:
    if isinstance(values, np.ndarray):
        buffers.append(np.ascontiguousarray(values, np.float64).tobytes())
        return {"buffer": len(buffers) - 1}
    return [_column_entry(value, buffers) if isinstance(value, np.ndarray) else value for value in values]


def _run_message(chart: Chart, number: int) -> tuple[dict[str, Any], list[bytes]]:
    """Return the message to the page with a run that the user opens; ``number``: the run's id in the series."""
    from workbench.views.player.payload import pack
    from workbench.views.seeing import see

    assert chart.open_run is not None
    try:
        caption, run = chart.open_run(number)
        return {"kind": "run", "caption": caption}, [pack(see(run), dissect_if_small(run))]
    except WorkbenchError as error:
        return {"kind": "run", "caption": f"this run failed: {error}", "error": True}, []

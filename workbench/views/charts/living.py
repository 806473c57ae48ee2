"""Charts that come alive: in a notebook with a kernel, Bokeh figures replace the frames of a chart's picture.

    chart                         shown as the last line of a cell: a picture, which comes alive
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
from workbench.views.charts.description import LINE, Series, finite_runs, labels, place_legend
from workbench.views.charts.static import Chart, Panel
from workbench.views.notebook import dissect_if_small, in_notebook
from workbench.views.player.embed import module_name, new_id, packed_module
from workbench.views.player.once import LoadedOnce

LONG = 4_000  # points of a line, as in chart.js
NARROWEST = 320  # px, the least width to which charts are fitted

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
        """Close the connection, and that of the layout which every widget has."""
        self.layout.close()
        super().close()


class ChartView:
    """A chart that is shown once; `feed` then shows other numbers in it.

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
        """Show another chart. If it has the same series, the figures remain and only get other numbers."""
        is_other = _outline(chart) != _outline(self.chart)
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
        self.wire.send(message, [packed_items(chart, has_long_lines=not is_long), *buffers])

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
            self.wire.send(*_opened(self.chart, int(request["number"])))


def _has_long_lines(chart: Chart) -> bool:
    return any(line.shape == LINE and len(line.x) > LONG for panel in chart.panels for line in panel.lines)


def displayed_html(chart: Chart) -> str:
    """Return the picture of a chart as HTML for the output of a cell; in a notebook, it also comes alive."""
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


def packed_items(chart: Chart, has_long_lines: bool = True) -> bytes:
    """Return the figures of a chart's frames as JSON documents for BokehJS: a list, compressed with gzip.

    ``has_long_lines``: False leaves lines with many points empty.
    """
    from bokeh.embed import json_item

    from workbench.views.charts.figure import figure_of

    items = []
    for panel in chart.panels:
        figure = figure_of(panel)
        for source in [] if has_long_lines else [renderer.data_source for renderer in figure.renderers]:
            if len(source.data.get("x", ())) > LONG:
                source.data = {name: [] for name in source.data}
        items.append(json_item(figure))
    return gzip.compress(json.dumps(items, separators=(",", ":")).encode(), 1, mtime=0)


def chart_entry(chart: Chart) -> dict[str, Any]:
    """Return what a living chart shows outside of its frames, and the positions of the frames, as JSON values."""
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
    places = place_legend(panel.lines, panel.width, panel.frame.legend_y)
    legend = [
        [x + panel.x, y + panel.y, width, line.name] for (x, y, width), line in zip(places, panel.lines, strict=False)
    ]
    tools = [panel.x + panel.frame.right, panel.y + panel.frame.top - 21]
    return {"x": panel.x, "y": panel.y, "legend": legend, "tools": tools}


def _outline(chart: Chart) -> list[Any]:
    """Return what must be equal for two charts to have the same figures with other numbers."""
    outline = []
    for panel in chart.panels:
        frame = panel.frame
        area = [round(value) for value in (frame.left, frame.top, frame.right, frame.bottom)]
        outline.append([area, [(line.name, line.shape, line.colour, _count_gaps(line)) for line in panel.lines]])
    return outline


def _count_gaps(line: Series) -> int:
    """Return a number for the form of a band: -1 without a band, 0 if it has no gap, else 1."""
    if line.low is None or line.high is None:
        return -1
    return int(len(finite_runs(line, (line.low, line.high))) != 1)


def _panel_data(panel: Panel, buffers: list[bytes]) -> dict[str, Any]:
    """Return the ranges, ticks and columns of a frame; columns of numbers are appended to ``buffers``."""
    from workbench.views.charts.figure import columns_of

    frame = panel.frame
    sources = {
        name: {column: _column_entry(values, buffers) for column, values in columns.items()}
        for name, columns in columns_of(panel).items()
    }
    ticks = {"x axis": frame.shown_labels(), "y axis": [*zip(frame.y_ticks, labels(frame.y_ticks), strict=True)]}
    return {"frame": {"x": [frame.x0, frame.x1], "y": [frame.y0, frame.y1], "ticks": ticks}, "sources": sources}


def _column_entry(values: Any, buffers: list[bytes]) -> Any:
    if isinstance(values, np.ndarray):
        buffers.append(np.ascontiguousarray(values, np.float64).tobytes())
        return {"buffer": len(buffers) - 1}
    return [_column_entry(value, buffers) if isinstance(value, np.ndarray) else value for value in values]


def _opened(chart: Chart, number: int) -> tuple[dict[str, Any], list[bytes]]:
    """Return the message to the page with a run that the user opens; ``number``: in the links of the series."""
    from workbench.views.player.payload import pack
    from workbench.views.seeing import see

    assert chart.open_run is not None
    try:
        caption, run = chart.open_run(number)
        return {"kind": "run", "caption": caption}, [pack(see(run), dissect_if_small(run))]
    except WorkbenchError as error:
        return {"kind": "run", "caption": f"this run failed: {error}", "error": True}, []

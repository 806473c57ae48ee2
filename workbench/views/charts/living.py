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
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import traitlets

from workbench.views import palette
from workbench.views.charts.description import is_band_whole, labels, place_legend
from workbench.views.charts.static import Chart, Panel
from workbench.views.notebook import dissect_if_small, in_notebook
from workbench.views.player.embed import browser_file, module_name, new_id, packed_module
from workbench.views.player.once import LoadedOnce

LONG = 4_000  # lines with more points are sent as binary columns, and thinned in the page (chart.js)
NARROWEST = 240  # px, the least width to which charts are fitted

_wires_by_cell: dict[str, list[Wire]] = {}  # cell -> the wires of its charts
_lock = threading.Lock()


@cache
def script(name: str) -> str:
    """Return the text of a script in this folder; ``name``: its file name."""
    return (files(__package__) / name).read_text(encoding="utf-8")


@cache
def _wire_script() -> str:
    shared = [browser_file(name) for name in ("elements.js", "theme.js")]
    return "\n".join([*shared, script("chart.js"), script("wire.js")])


@cache
def bokeh_script() -> bytes:
    """Return BokehJS, compressed with gzip."""
    from bokeh.util.paths import bokehjs_path

    text = (bokehjs_path() / "js" / "bokeh.min.js").read_bytes()
    return gzip.compress(text, 9, mtime=0)


class Wire(LoadedOnce):
    """The widget that connects a chart in a page with the kernel.

    holder: id of the HTML element that contains the picture; "" in a layout of widgets.
    picture: in a layout of widgets, the picture as HTML; "" elsewhere.
    version: the version of BokehJS.
    player: the name under which a page stores the script of players.
    """

    script = traitlets.Unicode().tag(sync=True)
    holder = traitlets.Unicode().tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)
    version = traitlets.Unicode().tag(sync=True)
    player = traitlets.Unicode().tag(sync=True)

    def close(self) -> None:
        """Close this widget and its ``layout``, a widget that ipywidgets would leave open."""
        self.layout.close()
        super().close()


class ChartView:
    """One display of a chart, which `feed` can replace by another chart.

    The attribute ``wire`` is the widget to use in a layout of ipywidgets; ``chart`` is the chart that is shown now.
    """

    def __init__(self, chart: Chart, holder: str = "") -> None:
        from importlib.metadata import version

        self.chart = self._fitted_chart = chart
        self._width = 0  # of the page in px; 0 means that the page has not requested the figure
        self._version = 0  # counts the charts, so that the page recognizes the newest
        self._lock = threading.Lock()  # another thread may feed while the page requests a figure
        self.wire = Wire(
            script=_wire_script(),
            holder=holder,
            picture="" if holder else chart.to_html(),
            version=version("bokeh"),
            player=module_name(),
        )
        self.wire.on_msg(self._answer_request)

    def to_html(self) -> str:
        """Return the chart's picture as HTML for the output of a cell.

        The invisible widget of the class `Wire` finds the picture in the page by the attribute ``data-chart``.
        """
        return f'<div data-chart="{self.wire.holder}">{self.chart.to_image_html()}</div>'

    def feed(self, chart: Chart) -> None:
        """Replace the displayed chart.

        If the new chart has the same layout and kinds of series, the browser keeps the figures and replaces only their
        data.
        """
        with self._lock:
            before, self.chart, self._fitted_chart = self._fitted_chart, chart, fit(chart, self._width)
            self._version += 1
            if not self.wire.holder:
                self.wire.picture = chart.to_html()
            if _figure_key(self._fitted_chart) != _figure_key(before):
                self.wire.send({"kind": "feed", "is_other": True, "state": self._version})
                return
            from workbench.views.charts.figure import columns_of

            data, buffers = _chart_data(self._fitted_chart, [columns_of(panel) for panel in self._fitted_chart.panels])
            message = {"kind": "feed", "data": data, "state": self._version, **chart_entry(self._fitted_chart)}
            self.wire.send(message, buffers)

    def close(self) -> None:
        """Close the connection to the browser. The picture remains in the page."""
        self.wire.close()

    def _answer_request(self, _: Any, request: Mapping[str, Any], __: Any) -> None:
        try:
            message, buffers = self._make_answer(request)
        except Exception as error:  # of a user's protocol or filter, for example; the page must not wait forever
            message, buffers = {"error": f"{type(error).__name__}: {error}"}, []
        self.wire.send({**message, "kind": "answer", "id": request.get("id")}, buffers)

    def _make_answer(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        requested_kind = request.get("want")
        if requested_kind == "bokeh":
            return {}, [bokeh_script()]
        if requested_kind == "player":
            return {}, [base64.b64decode(packed_module())]
        if requested_kind == "figure":
            with self._lock:
                self._width = int(request.get("width") or 0)
                return self._figure_message()
        if requested_kind == "run" and self.chart.open_run is not None:
            return _run_message(self.chart.open_run, int(request["number"]))
        return {"error": "the request is unknown"}, []

    def _figure_message(self) -> tuple[dict[str, Any], list[bytes]]:
        from workbench.views.charts.figure import columns_of

        chart = self._fitted_chart = fit(self.chart, self._width)
        columns = [columns_of(panel) for panel in chart.panels]
        # Long lines follow as columns of numbers, because the page draws only some of their points.
        short = [
            {
                name: dict.fromkeys(source, ()) if _is_long_series(name, source) else source
                for name, source in sources.items()
            }
            for sources in columns
        ]
        has_long_lines = any(_is_long_series(*item) for sources in columns for item in sources.items())
        data, buffers = _chart_data(chart, columns) if has_long_lines else ([], [])
        message = {**chart_entry(chart), "natural": self.chart.width, "data": data, "state": self._version}
        return message, [packed_items(chart, short), *buffers]


def _is_long_series(name: str, source: Mapping[str, Any]) -> bool:
    """Return whether a data source is a line or a band with more than `LONG` points.

    ``name``: the source's name, such as "marks 0" (never long) or "line 0". ``source``: {name of a column: values}.
    """
    return not name.startswith("marks") and len(source.get("x", ())) > LONG


def displayed_html(chart: Chart) -> str:
    """Return the picture of a chart as HTML for the output of a cell; in a notebook, it becomes interactive."""
    if not in_notebook() or not chart.panels:
        return chart.to_image_html()
    return open_view(chart, running_cell()).to_html()


def open_view(chart: Chart, cell: str) -> ChartView:
    """Return a view of a chart. Its connection to the browser is closed when ``cell`` is executed again.

    ``cell``: id of the notebook's cell that displays the chart, from `running_cell`. With "", the connection is
    never closed. This is harmless: programs without ids of cells, such as nbclient or Voilà, execute a cell only once.
    """
    from IPython import get_ipython

    view = ChartView(chart, new_id())
    with _lock:
        if not _wires_by_cell:
            get_ipython().events.register("pre_run_cell", lambda _: _close_wires(running_cell()))
        _wires_by_cell.setdefault(cell, [])
        if cell:
            _wires_by_cell[cell].append(view.wire)
    return view


def running_cell() -> str:
    """Return the id of the cell that is being executed, or "" if the front end has not stated it."""
    from IPython import get_ipython

    return str(get_ipython().get_parent().get("metadata", {}).get("cellId", ""))


def _close_wires(cell: str) -> None:
    with _lock:
        wires = _wires_by_cell.get(cell, [])
        closed, wires[:] = [*wires], []
    for wire in closed:
        wire.close()


def fit(chart: Chart, width: int) -> Chart:
    """Return the chart, or a narrower copy if the page is narrower than the chart.

    ``width``: the width of the page in px; 0 if unknown. A chart that cannot be resized is returned unchanged.
    """
    if not width or width >= chart.width or chart.resized is None:
        return chart
    fitted = chart.resized(max(width, NARROWEST))
    fitted.subject, fitted.open_run = chart.subject, chart.open_run
    return fitted


def packed_items(chart: Chart, columns: Sequence[Mapping[str, Any]] | None = None) -> bytes:
    """Return a gzip-compressed JSON list with a BokehJS document for each panel of a chart.

    ``columns``: for each panel {name of a data source: its columns}; None: call `figure.columns_of` for each panel.
    """
    from bokeh.embed import json_item

    from workbench.views.charts.figure import columns_of, figure_of

    columns = columns or [columns_of(panel) for panel in chart.panels]
    items = [json_item(figure_of(panel, sources)) for panel, sources in zip(chart.panels, columns, strict=True)]
    return gzip.compress(json.dumps(items, separators=(",", ":")).encode(), 1, mtime=0)


def chart_entry(chart: Chart) -> dict[str, Any]:
    """Return the parts of an interactive chart that Bokeh does not draw, as JSON values.

    These parts include the size, the titles and labels as SVG, the position of each panel, and the colours in a dark
    theme.
    """
    colours = {line.colour_at(index) for panel in chart.panels for index, line in enumerate(panel.lines)}
    colours |= {palette.TEXT, palette.OUTLINE, palette.GRID, palette.BACKGROUND}
    return {
        "width": chart.width,
        # A chart that was made for a dark background does not follow the theme of the page.
        "surroundings": chart.surroundings().to_svg() if chart.is_dark else chart.surroundings().to_html(),
        "is_dark": chart.is_dark,
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
    """Return a key of a chart: for each panel, its layout and the kinds of its series.

    If two charts have equal keys, the page can show the second chart in the figures of the first: only data differ.
    """
    key = []
    for panel in chart.panels:
        area = panel.area
        sides = [round(value) for value in (area.left, area.top, area.right, area.bottom)]
        forms = [
            (line.name, line.shape, line.colour, line.has_marks, line.low is None, is_band_whole(line))
            for line in panel.lines
        ]
        key.append([sides, forms])
    return key


def _chart_data(chart: Chart, columns: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Return the data of a chart's panels for the browser as (a dictionary for each panel, a list of buffers).

    A dictionary contains the ranges and ticks of the axes, and the columns of the data sources. A column of numbers is
    stored as a buffer, and the dictionary contains the index of this buffer. ``columns``: for each panel, from
    `figure.columns_of`.
    """
    buffers: list[bytes] = []
    data = []
    for panel, sources in zip(chart.panels, columns, strict=True):
        area = panel.area
        ticks = {"x axis": area.shown_labels(), "y axis": [*zip(area.y_ticks, labels(area.y_ticks), strict=True)]}
        frame = {"x": [area.x0, area.x1], "y": [area.y0, area.y_end], "ticks": ticks}
        entries = {
            name: {column: _column_entry(values, buffers) for column, values in source.items()}
            for name, source in sources.items()
        }
        data.append({"frame": frame, "sources": entries})
    return data, buffers


def _column_entry(values: Any, buffers: list[bytes]) -> Any:
    if isinstance(values, np.ndarray):
        buffers.append(np.ascontiguousarray(values, np.float64).tobytes())
        return {"buffer": len(buffers) - 1}
    return [_column_entry(value, buffers) if isinstance(value, np.ndarray) else value for value in values]


def _run_message(open_run: Callable[[int], tuple[str, Any]], number: int) -> tuple[dict[str, Any], list[bytes]]:
    """Return the message that shows a run in a player below the chart, as ({"caption": text}, [the run's payload]).

    ``open_run``: a function that returns (caption, run), see `Chart.open_run`. ``number``: the run's id in the series.
    """
    from workbench.views.player.payload import pack
    from workbench.views.seeing import see

    caption, run = open_run(number)
    return {"caption": caption}, [pack(see(run), dissect_if_small(run))]

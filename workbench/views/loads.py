"""Views of many runs at once, drawn from the tables that functions of `workbench.pipelines` compute from traces.

    load_map(loads, topology, metric="sent")  the load of each node on a map: a disc for the mean over runs
    latency_chart(distributions)              percentiles of the latency of deliveries

Both functions also draw a band from the 5th to the 95th percentile of the runs, which contains nine of ten runs. They
accept pandas and Spark frames: frames with rows for each run (column ``scenario``), or frames that are already averaged
over runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from workbench.errors import ParameterError
from workbench.pipelines.queries import is_spark
from workbench.pipelines.trace.statistics import band
from workbench.suggestion import meant
from workbench.views import caption, palette
from workbench.views.charts.description import AREAS, PlotArea, Series
from workbench.views.charts.static import Chart, Panel, line_chart, resizable
from workbench.views.drawing import Drawing
from workbench.views.layers import Scale
from workbench.views.layout import Layout, lay_out
from workbench.views.legend import LINE, MARGIN, SMALL, scales_drawing
from workbench.views.still import Scene

LOADS = {
    "sent": "frames sent",
    "sent_B": "bytes sent",
    "received": "frames received",
    "received_B": "bytes received",
    "lost": "frames lost",
    "lost_B": "bytes lost",
}
WIDTH = 700
COLOURS = tuple(palette.blend(palette.HEARD, palette.SINK, share / 11) for share in range(12))
_LEAST, _MOST = 4.0, 20.0  # px, limits of the radius at which the largest load is drawn
_BAND = "from the 5th to the 95th percentile of the runs"


@resizable
def load_map(
    loads: Any,
    topology: nx.Graph,
    metric: str = "sent",
    width: int = WIDTH,
    dark: bool = False,
    subject: str = "",
) -> Chart:
    """Draw the load of each node on a map: a disc for the mean over runs, and rings for a low and a high load.

    The low and the high load are the ends of a band that contains nine of ten runs. The areas of discs and rings are
    proportional to the loads.

    loads: the table from `pipelines.load_per_node`, or any data frame with the columns "node" and ``metric``. It must
        also have a column "scenario", or the ends of the band in two columns, such as "sent_low" and "sent_high".
    metric: name of the column with the loads.
    dark: draw for a dark background.
    subject: key of the run or sweep that the loads describe (`Chart.subject`). Charts and players with the same key
        share the user's selection; "" means that this map shares its selection with no other chart.
    Raises ParameterError for a missing column, or for nodes that the topology lacks.
    """
    load_table = _average_over_runs(loads, "node", metric, "load_map")
    plan = lay_out(topology)
    node_indices = plan.indices(load_table["node"].to_numpy())
    if (node_indices < 0).any():
        unknown_nodes = load_table["node"][node_indices < 0].tolist()
        raise ParameterError(
            f"load_map: the loads include node {unknown_nodes[0]}, which is not in the topology; "
            "give the topology of the runs"
        )
    band_and_mean = np.zeros((3, len(plan.ids)))
    band_and_mean[:, node_indices] = load_table[[f"{metric}_low", metric, f"{metric}_high"]].to_numpy(float).T
    runs = _count_runs(load_table)
    scene = _LoadScene(plan, width, band_and_mean, runs)
    heading = _draw_heading(plan, band_and_mean, runs, LOADS.get(metric, metric), topology, width)
    drawings = [heading, scene.draw(), _draw_legend(scene, width)]
    page = Chart(width, 0, title=f"Load of each node: {LOADS.get(metric, metric)}", subject=subject)
    for partial_drawing in drawings:
        page.add(partial_drawing, 0, page.height)
        page.height += partial_drawing.height
    area = PlotArea.of_map(width, scene.height)
    page.panels.append(Panel((scene.series(),), area, width, scene.height, y=heading.height))
    return page.in_dark() if dark else page


def latency_chart(
    distributions: Any,
    title: str = "",
    most_ms: float | None = None,
    width: int = 640,
    height: int = 380,
    dark: bool = False,
) -> Drawing:
    """Draw the distribution of latency: x is a percentage p, y the latency that p % of the deliveries do not exceed.

    A line is the mean over runs; the band around the line contains nine of ten runs.

    distributions: the table from `pipelines.latency_distribution`, or a mapping of names to such tables, each drawn as
        one line.
    most_ms: end of the latency axis; longer latencies are drawn at the edge.
    Raises ParameterError for a table without the columns ``percent`` and ``latency_ms``.
    """
    by_name = distributions if isinstance(distributions, Mapping) else {"": distributions}
    frames = {
        str(name): _average_over_runs(percentile_table, "percent", "latency_ms", "latency_chart")
        for name, percentile_table in by_name.items()
    }
    series = [
        Series(
            name,
            *(
                percentile_table[column].tolist()
                for column in ("percent", "latency_ms", "latency_ms_low", "latency_ms_high")
            ),
        )
        for name, percentile_table in frames.items()
    ]
    runs = sorted({_count_runs(percentile_table) for percentile_table in frames.values()})
    run_count = f"{runs[0]:,}" if runs[0] == runs[-1] else f"{runs[0]:,} to {runs[-1]:,}"
    drawing = line_chart(
        series,
        title=title,
        x_label="deliveries (%)",
        y_label="latency (ms)",
        note=f"mean of {run_count} {'run' if runs[-1] == 1 else 'runs'}; band: {_BAND}",
        y_range=None if most_ms is None else (0.0, most_ms),
        width=width,
        height=height,
    )
    return drawing.in_dark() if dark else drawing


def _average_over_runs(loads: Any, key: str, metric: str, view: str) -> pd.DataFrame:
    """Return a pandas table with the mean of a metric over runs and its 5th and 95th percentiles, sorted by ``key``.

    If ``key`` is "node" and ``metric`` is "sent", the columns are "node", "sent", "sent_low" and "sent_high".
    ``view``: name of the calling function, for error messages. Raises ParameterError for a missing column.
    """
    if {"scenario", key, metric} <= set(loads.columns):
        loads = band(loads, loads, (key,), (metric,), "0" if key == "node" else "NULL")
    for column in (key, metric, f"{metric}_low", f"{metric}_high"):
        if column not in loads.columns:
            hint = meant(column, loads.columns)
            raise ParameterError(
                f"{view}: the table has no column {column!r}{hint}; its columns are {', '.join(loads.columns)}"
            )
    load_table = loads.toPandas() if is_spark(loads) else loads
    return load_table.sort_values(key, ignore_index=True)


def _count_runs(frame: pd.DataFrame) -> int:
    return int(frame["runs"].max()) if "runs" in frame.columns and len(frame) else 1


class _LoadScene(Scene):
    """A picture of a network in which the area of each node's disc is proportional to the node's load.

    ``numbers``: for each node the low end of the band, the mean load and the high end of the band, shape (3, nodes).
    The band contains nine of ten runs. If there is only one run, the band is not drawn.
    """

    def __init__(self, plan: Layout, width: int, numbers: np.ndarray, runs: int) -> None:
        super().__init__(plan, width)
        self.most = float(numbers.max(initial=0.0)) or 1.0
        self.mean = numbers[1]
        self.largest = float(np.clip(0.46 * plan.spacing_m * self.scale, _LEAST, _MOST))
        self.radius = self.largest * np.sqrt(np.clip(numbers, 0, None) / self.most)
        self.numbers = numbers
        self.has_band = runs > 1

    def draw(self) -> Drawing:
        """Draw links, then nodes from the largest load to the smallest, so that small discs stay visible."""
        self._draw_links()
        for node_index in np.argsort(-self.mean, kind="stable").tolist():
            self._draw_node(node_index)
        self._name_busiest()
        self._draw_scale_bar()
        return self.drawing

    def _draw_node(self, node_index: int) -> None:
        x, y = float(self.x[node_index]), float(self.y[node_index])
        low, mean, high = self.radius[:, node_index].tolist()
        tooltip, colour = self._describe_node(node_index), self.colour(self.mean[node_index])
        self.drawing.circle(x, y, max(mean, 1.2), fill=colour, tooltip=tooltip)
        if not self.has_band:
            return
        self.drawing.circle(x, y, max(high, 1.2), stroke=palette.OUTLINE, width=0.8)
        if low > 2.0:
            self.drawing.circle(x, y, low, stroke=palette.BACKGROUND, width=0.8)

    def _describe_node(self, node_index: int) -> str:
        low, mean, high = self.numbers[:, node_index].tolist()
        band = f", from {low:.4g} to {high:.4g} in nine of ten runs" if self.has_band else ""
        return f"node {self.plan.ids[node_index]}: {mean:.4g}{band}"

    def series(self) -> Series:
        """Return the discs of the nodes as a series of an interactive chart, in px from the lower left corner."""
        node_indices = range(len(self.plan.ids))
        return Series(
            "",
            self.x.tolist(),
            (self.height - self.y).tolist(),
            tooltips=[self._describe_node(node_index) for node_index in node_indices],
            colour=palette.REINFORCED,
            shape=AREAS,
            sizes=np.maximum(2 * self.radius[1], 8.0).tolist(),
            ids={"nodes": [[int(node)] for node in self.plan.ids]},
        )

    def colour(self, load: float) -> str:
        """Return the colour of a node with this load, from `COLOURS`; the largest mean load has the last colour."""
        return COLOURS[round((len(COLOURS) - 1) * load / (self.mean.max() or 1.0))]

    def _name_busiest(self) -> None:
        node_index = int(self.mean.argmax())
        if self.mean[node_index] > 0:
            self.node = float(self.radius[2, node_index]) / 1.6  # The name must be outside the rings.
            self.write(node_index, str(self.plan.ids[node_index]), [], bold=True)


def _draw_heading(plan: Layout, numbers: np.ndarray, runs: int, label: str, topology: nx.Graph, width: int) -> Drawing:
    low, mean, high = numbers
    busiest = int(mean.argmax())
    band = f" ({low[busiest]:,.4g} to {high[busiest]:,.4g})" if runs > 1 else ""
    heading_lines = [
        f"{label} at each of {caption.nodes(topology)}, {'mean of ' if runs > 1 else ''}{runs:,} run{'s' * (runs > 1)}",
        f"busiest: node {plan.ids[busiest]} with {mean[busiest]:,.4g}{band}; mean of all nodes {mean.mean():,.4g}",
    ]
    drawing = Drawing(width, 30 + LINE)
    drawing.text(MARGIN, 24, heading_lines[0][0].upper() + heading_lines[0][1:], size=15, bold=True)
    drawing.text(MARGIN, 24 + LINE, heading_lines[1], size=SMALL, colour=palette.FAINT_TEXT)
    return drawing


def _draw_legend(scene: _LoadScene, width: int) -> Drawing:
    page = Drawing(width, 30)
    x, y = MARGIN + 10.0, 16.0
    page.circle(x, y, 7, fill=COLOURS[-4])
    legend_text = "area of the disc: the node's load"
    if scene.has_band:
        page.circle(x, y, 10, stroke=palette.OUTLINE, width=0.8)
        page.circle(x, y, 4.5, stroke=palette.BACKGROUND, width=0.8)
        legend_text = "area of the disc: mean over runs; nine of ten runs lie between the inner and the outer ring"
    page.text(x + 18, y + 4, legend_text, size=SMALL)
    name = "mean" if scene.has_band else "load"
    scale = scales_drawing([Scale(name, COLOURS, "0", f"{scene.mean.max():,.4g}")], width)
    page.add(scale, 0, page.height)
    page.height += scale.height
    return page

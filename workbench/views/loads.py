"""Views of many runs at once, out of the answers of `workbench.pipelines` to questions about their traces.

    load_map(loads, topology, what="sent")    the load of each node on the map: mean over runs, and band
    latency_chart(distributions)              latency at each percent of the deliveries: mean over runs, and band

Both take frames of pandas and of Spark, with a row for each run (column ``scenario``) or already over runs.
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
from workbench.views.chart import Series, line_chart
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
_LEAST, _MOST = 4.0, 20.0  # px, of the radius that stands for the largest load
_BAND = "from the 5th to the 95th percentile of the runs"


def load_map(loads: Any, topology: nx.Graph, what: str = "sent", width: int = WIDTH, dark: bool = False) -> Drawing:
    """The load of each node of a network: a disc by its mean over runs, and rings by its band.

    loads: what `pipelines.load_per_node` answers, or any frame with a column ``node`` and one named ``what``, and with
    ``scenario`` or with the ends of the band in ``_low`` and ``_high``. Areas are loads. dark: for a dark ground.
    Raises ParameterError for a column that is not there, and for nodes that the topology does not have.
    """
    frame = _over_runs(loads, "node", what, "load_map")
    plan = lay_out(topology)
    places = plan.place(frame["node"].to_numpy())
    if (places < 0).any():
        strange = frame["node"][places < 0].tolist()
        raise ParameterError(f"load_map: there is a load of node {strange[0]}, which the topology does not have")
    numbers = np.zeros((3, len(plan.ids)))
    numbers[:, places] = frame[[f"{what}_low", what, f"{what}_high"]].to_numpy(float).T
    runs = _runs(frame)
    scene = _LoadScene(plan, width, numbers)
    parts = [_heading(plan, numbers, runs, LOADS.get(what, what), topology, width), scene.draw(), _legend(scene, width)]
    page = Drawing(width, 0, title=f"Load of each node: {LOADS.get(what, what)}")
    for part in parts:
        page.add(part, 0, page.height)
        page.height += part.height
    return page.in_dark() if dark else page


def latency_chart(
    distributions: Any,
    title: str = "",
    most_ms: float | None = None,
    width: int = 640,
    height: int = 380,
    dark: bool = False,
) -> Drawing:
    """The latency that so many percent of the deliveries do not exceed: a line of means over runs in its band.

    distributions: what `pipelines.latency_distribution` answers, or several such frames by name. most_ms: where the
    chart ends; what took longer is drawn at its edge. Raises ParameterError for a frame without the columns ``percent``
    and ``latency_ms``.
    """
    several = distributions if isinstance(distributions, Mapping) else {"": distributions}
    frames = {str(name): _over_runs(one, "percent", "latency_ms", "latency_chart") for name, one in several.items()}
    series = [
        Series(
            name, *(one[column].tolist() for column in ("percent", "latency_ms", "latency_ms_low", "latency_ms_high"))
        )
        for name, one in frames.items()
    ]
    runs = sorted({_runs(one) for one in frames.values()})
    told = f"{runs[0]:,}" if runs[0] == runs[-1] else f"{runs[0]:,} to {runs[-1]:,}"
    drawing = line_chart(
        series,
        title=title,
        x_label="deliveries (%)",
        y_label="latency (ms)",
        note=f"mean of {told} {'run' if runs[-1] == 1 else 'runs'}; band: {_BAND}",
        y_range=None if most_ms is None else (0.0, most_ms),
        width=width,
        height=height,
    )
    return drawing.in_dark() if dark else drawing


def _over_runs(answer: Any, key: str, what: str, view: str) -> pd.DataFrame:
    """An answer over runs as a frame of pandas, in order of its key."""
    if {"scenario", key, what} <= set(answer.columns):
        answer = band(answer, answer, (key,), (what,), "0" if key == "node" else "NULL")
    for column in (key, what, f"{what}_low", f"{what}_high"):
        if column not in answer.columns:
            hint = meant(column, answer.columns)
            raise ParameterError(
                f"{view}: the frame has no column {column!r}{hint}; it has {', '.join(answer.columns)}"
            )
    frame = answer.toPandas() if is_spark(answer) else answer
    return frame.sort_values(key, ignore_index=True)


def _runs(frame: pd.DataFrame) -> int:
    return int(frame["runs"].max()) if "runs" in frame.columns and len(frame) else 1


class _LoadScene(Scene):
    """A network whose nodes are discs by their loads; ``numbers``: low, mean and high, shape (3, nodes)."""

    def __init__(self, plan: Layout, width: int, numbers: np.ndarray) -> None:
        super().__init__(plan, width)
        self.most = float(numbers.max(initial=0.0)) or 1.0
        self.mean = numbers[1]
        self.largest = float(np.clip(0.46 * plan.spacing_m * self.scale, _LEAST, _MOST))
        self.radius = self.largest * np.sqrt(np.clip(numbers, 0, None) / self.most)
        self.numbers = numbers

    def draw(self) -> Drawing:
        """Links, then nodes, the most loaded first: what is small lies on top."""
        self._links()
        for place in np.argsort(-self.mean, kind="stable").tolist():
            self._node(place)
        self._name_busiest()
        self._scale_bar()
        return self.drawing

    def _node(self, place: int) -> None:
        x, y = float(self.x[place]), float(self.y[place])
        low, mean, high = self.radius[:, place].tolist()
        told = self.numbers[:, place].tolist()
        said = f"node {self.plan.ids[place]}: {told[1]:.4g}, from {told[0]:.4g} to {told[2]:.4g} in nine of ten runs"
        self.drawing.circle(x, y, max(mean, 1.2), fill=self.colour(self.mean[place]), said=said)
        self.drawing.circle(x, y, max(high, 1.2), stroke=palette.OUTLINE, width=0.8)
        if low > 2.0:
            self.drawing.circle(x, y, low, stroke=palette.BACKGROUND, width=0.8)

    def colour(self, load: float) -> str:
        """The colour of a load."""
        return COLOURS[round((len(COLOURS) - 1) * load / (self.mean.max() or 1.0))]

    def _name_busiest(self) -> None:
        place = int(self.mean.argmax())
        if self.mean[place] > 0:
            self.node = float(self.radius[2, place]) / 1.6  # The name stands beside all of the rings.
            self.write(place, str(self.plan.ids[place]), [], bold=True)


def _heading(plan: Layout, numbers: np.ndarray, runs: int, what: str, topology: nx.Graph, width: int) -> Drawing:
    low, mean, high = numbers
    busiest = int(mean.argmax())
    lines = [
        f"{what} at each of {caption.nodes(topology)}, {'mean of ' if runs > 1 else ''}{runs:,} run{'s' * (runs > 1)}",
        f"busiest: node {plan.ids[busiest]} with {mean[busiest]:,.4g} ({low[busiest]:,.4g} to {high[busiest]:,.4g}); "
        f"mean of all nodes {mean.mean():,.4g}",
    ]
    drawing = Drawing(width, 30 + LINE)
    drawing.text(MARGIN, 24, lines[0][0].upper() + lines[0][1:], size=15, bold=True)
    drawing.text(MARGIN, 24 + LINE, lines[1], size=SMALL, colour=palette.FAINT_TEXT)
    return drawing


def _legend(scene: _LoadScene, width: int) -> Drawing:
    page = Drawing(width, 30)
    x, y = MARGIN + 10.0, 16.0
    page.circle(x, y, 7, fill=COLOURS[-4])
    page.circle(x, y, 10, stroke=palette.OUTLINE, width=0.8)
    page.circle(x, y, 4.5, stroke=palette.BACKGROUND, width=0.8)
    said = "area of the disc: mean over runs; nine of ten runs lie between the inner and the outer ring"
    page.text(x + 18, y + 4, said, size=SMALL)
    scale = scales_drawing([Scale("mean", COLOURS, "0", f"{scene.mean.max():,.4g}")], width)
    page.add(scale, 0, page.height)
    page.height += scale.height
    return page

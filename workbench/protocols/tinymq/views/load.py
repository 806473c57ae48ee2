"""Who carries the load: frames, relayed events or stored queries of each node, as heat maps with one scale.

    node_load(run, what)                 node -> load; what: "relays", "frames" or "queries"
    load_maps({"all": run, ...}, what)   a map for each run side by side, the busiest node named

Theory of operation
    relays     frames of events that a node sent for others, by published event (repeated frames count)
    frames     all frames that a node sent, by second of the run
    queries    queries that a node stored, mean over the run; one that it stored in several trees counts in each

    All maps of a figure share one scale, from 0 to the largest load in any of them, so that they can be compared.

Reference
    The same count of relays as in `workbench.protocols.tinymq.metrics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.errors import ParameterError
from workbench.protocols.tinymq.views.looks import load_colour
from workbench.protocols.tinymq.views.overlay import overlay_of, protocol_of
from workbench.sim.trace_columns import Columns
from workbench.views import palette
from workbench.views.carried import carries_record
from workbench.views.drawing import Drawing, text_width
from workbench.views.figure import Scene
from workbench.views.ground import lay_out

WIDTH = 900
MARGIN = 14.0
SMALL = 11.0
SHADES = 40
LOADS = {
    "relays": "events relayed, per published event",
    "frames": "frames sent per second",
    "queries": "queries stored, on average",
}


def node_load(run: Any, what: str = "relays") -> dict[int, float]:
    """The load of every node. ParameterError for another word than those of ``LOADS``, or a run without an overlay."""
    if what not in LOADS:
        raise ParameterError(f"node_load: what is {what!r}; it must be one of {', '.join(LOADS)}")
    protocol_of(run)
    nodes = sorted(run.scenario.topology)
    if what == "queries":
        return _stored(run, nodes)
    columns = Columns(run.trace)
    if what == "frames":
        return _counted(columns, columns.where(event="sent"), nodes, run.scenario.duration_s)
    rows = columns.where(event="sent", message="event")
    rows = rows[columns["node"][rows] != columns["origin"][rows]]
    return _counted(columns, rows, nodes, max(len(columns.where(event="published")), 1))


def _counted(columns: Columns, rows: np.ndarray, nodes: list[int], by: float) -> dict[int, float]:
    found, counts = np.unique(columns["node"][rows], return_counts=True)
    told = dict(zip(found.tolist(), counts.tolist(), strict=True))
    return {node: told.get(node, 0) / by for node in nodes}


def _stored(run: Any, nodes: list[int]) -> dict[int, float]:
    seen = overlay_of(run)
    load = dict.fromkeys(nodes, 0.0)
    for span in seen.stored:
        load[span.node] += (span.until_us - span.from_us) / seen.duration_us
    return load


def busiest(load: Mapping[int, float]) -> tuple[int, float]:
    """(node, load) of the busiest node, of equals the lowest."""
    return min(load.items(), key=lambda one: (-one[1], one[0]))


@carries_record
def load_maps(runs: Mapping[str, Any], what: str = "relays", columns: int = 2, width: int = WIDTH) -> Drawing:
    """A heat map for each run. ParameterError as `node_load`, or if there are no runs."""
    if not runs:
        raise ParameterError("load_maps: there are no runs; a name and a run are one")
    loads = {name: node_load(run, what) for name, run in runs.items()}
    most = max(busiest(load)[1] for load in loads.values())
    columns = min(columns, len(runs))
    wide = int((width - (columns + 1) * MARGIN) / columns)
    pictures = [_map(name, run, loads[name], most, wide) for name, run in runs.items()]
    title = f"Load of each node: {LOADS[what]}"
    drawing = Drawing(width, 40, title=title)
    drawing.text(MARGIN, 26, title, size=15, bold=True)
    for first in range(0, len(pictures), columns):
        row = pictures[first : first + columns]
        for index, picture in enumerate(row):
            drawing.add(picture, MARGIN + index * (wide + MARGIN), drawing.height)
        drawing.height += max(picture.height for picture in row) + 8
    _scale(drawing, most, drawing.height)
    drawing.height += 38
    return drawing


def _map(name: str, run: Any, load: Mapping[int, float], most: float, width: int) -> Drawing:
    node, value = busiest(load)
    scene = HeatScene(run, load, most, width)
    picture = scene.draw()
    drawing = Drawing(width, 38 + picture.height)
    drawing.text(2, 16, name, size=SMALL + 1, bold=True)
    mean = sum(load.values()) / max(len(load), 1)
    drawing.text(2, 32, f"busiest: node {node}, {value:.3g}; mean {mean:.2g}", size=SMALL, colour=palette.FAINT_TEXT)
    drawing.add(picture, 0, 38)
    return drawing


class HeatScene(Scene):
    """The network with its nodes colored by their load; roots are squares, the busiest node is ringed."""

    def __init__(self, run: Any, load: Mapping[int, float], most: float, width: int) -> None:
        super().__init__(lay_out(run.scenario.topology), width)
        self.roots, self.load, self.most = protocol_of(run).roots, load, most or 1.0
        self.node = min(1.5 * self.node, 7.5)

    def draw(self) -> Drawing:
        """Links, and then nodes, the most loaded last."""
        self._links()
        top = busiest(self.load)[0]
        for node, value in sorted(self.load.items(), key=lambda one: one[1]):
            place = int(self.plan.place(np.array([node]))[0])
            x, y = float(self.x[place]), float(self.y[place])
            marker, size = ("square", 1.3) if node in self.roots else ("circle", 1.0)
            fill = load_colour(value / self.most)
            self.drawing.marker(marker, x, y, size * self.node, fill, palette.OUTLINE, 0.6)
            if node == top and value > 0:
                self.drawing.circle(x, y, 2 * self.node, stroke=palette.TEXT, width=1.6)
                self._name(place, str(node))
        self._scale_bar()
        return self.drawing

    def _name(self, place: int, text: str) -> None:
        box = min(self._boxes(place, text_width(text, SMALL)), key=lambda found: self._hidden(found[0], []))
        self.drawing.text(box[1], box[2], text, size=SMALL, halo=palette.BACKGROUND, bold=True)


def _scale(drawing: Drawing, most: float, y: float) -> None:
    """The colors from 0 to the largest load, and what marks mean."""
    x, step = MARGIN, 4.0
    for shade in range(SHADES):
        drawing.rectangle(x + 16 + step * shade, y, step + 0.5, 11, fill=load_colour(shade / (SHADES - 1)))
    drawing.text(x + 10, y + 10, "0", size=SMALL, anchor="end")
    end = x + 22 + step * SHADES
    drawing.text(end, y + 10, f"{most:.3g}", size=SMALL)
    x = end + text_width(f"{most:.3g}", SMALL) + 30
    drawing.marker("square", x, y + 5, 6, palette.NODE, palette.OUTLINE, 0.8)
    drawing.text(x + 13, y + 10, "root", size=SMALL)
    drawing.circle(x + 62, y + 5, 7, stroke=palette.TEXT, width=1.6)
    drawing.text(x + 76, y + 10, "busiest node", size=SMALL)

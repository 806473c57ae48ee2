"""Subscriptions as they spread: how full the filters of each node and link are at a time, as static figures.

    filters_drawing(run, time_s=None)   the mesh: nodes and the ends of links colored by the fill of their filters
    filters_slides(run, times_s)        the same at several times, with a slider
    fill_chart(run)                     the fill of all nodes, and the muted links, over the run

A node has the color of all that is asked for there and behind its links; beside it stands the fill. Of a link, the half
at a node has the color of what the neighbor has told that node: publications leave the node by that half if they may
meet it. A muted link is dashed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.errors import ParameterError
from workbench.protocols.dps.views.looks import COLOURS, PENDING, percent, scale, shades
from workbench.protocols.dps.views.looks import MUTED as MUTED_COLOUR
from workbench.protocols.dps.views.mesh import ACTIVE, MUTED, Filter, Mesh, mesh_of, steps
from workbench.views import caption, palette
from workbench.views.chart import Series, line_chart
from workbench.views.drawing import Drawing, text_width
from workbench.views.figure import MARGIN, SMALL, time_us_of
from workbench.views.ground import Plan, lay_out
from workbench.views.legend import Entry, legend_drawing
from workbench.views.nodes import subscribed
from workbench.views.player.intervals import read
from workbench.views.stepper import Stepper
from workbench.views.still import StillScene

WIDTH = 760
MOST_NAMES = 60  # nodes beside which something is written
BAR = 110


def filters_drawing(run: Any, time_s: float | None = None, width: int = WIDTH, names: bool | None = None) -> Drawing:
    """The mesh at a time (None: at the run's end).

    ``names``: whether nodes have their number and fill beside them (None: in networks of up to 60). Raises
    ParameterError for a time outside of the run, or a run of another protocol.
    """
    time_us = time_us_of(run, time_s, "filters_drawing")
    seen, plan = mesh_of(run), lay_out(run.scenario.topology)
    scene = MeshScene(plan, seen, time_us, width, subscribers(run, time_us))
    if names if names is not None else len(plan.ids) <= MOST_NAMES:
        scene.names = scene.fills()
    return scene.page(f"{caption.title(run)}: what is asked for", mesh_entries(scene), scene.facts())


def subscribers(run: Any, time_us: int) -> set[int]:
    """The nodes with a subscription of their own at a time."""
    duration_us = round(run.scenario.duration_s * 1e6)
    found = subscribed(read(run.trace), duration_us)
    time_us = min(time_us, duration_us - 1)
    return set(found["node"][(found["from_us"] <= time_us) & (time_us < found["until_us"])].tolist())


class MeshScene(StillScene):
    """The mesh at a time on a page."""

    def __init__(self, plan: Plan, seen: Mesh, time_us: int, width: int, asking: set[int], is_faint: bool = False):
        super().__init__(plan, time_us, width)
        self.mesh, self.is_faint, self.asking = seen, is_faint, asking
        self.states, self.told, self.sums = seen.links_at(time_us), seen.filters_at(time_us), seen.sums_at(time_us)
        self.down = seen.down_at(time_us)
        self._shades = shades(seen.fewest_bits, seen.most_bits)
        self.node = min(self.node * 1.5, 9.0)

    def fills(self) -> dict[int, str]:
        """What to write beside each node: its number and the fill of its filter."""
        fills = {node: self.mesh.fill(one.bits) for node, one in self.sums.items() if one.bits}
        return {node: f"{node}: {percent(fills[node])}" if node in fills else str(node) for node in self.place_of}

    def facts(self) -> str:
        """The figure in a sentence."""
        fills = [self.mesh.fill(one.bits) for one in self.sums.values()]
        mean = sum(fills) / max(len(self.place_of), 1)
        muted = sum(state == MUTED for state in self.states.values())
        return (
            f"filters of {self.mesh.filter_bits:,} bits; mean of the nodes {percent(mean)}, fullest "
            f"{percent(max(fills, default=0.0))}; {len(self.states)} links, {muted} of them muted"
        )

    def page(self, title: str, entries: Sequence[Entry], note: str = "") -> Drawing:
        """Title and time, the scene, what it means."""
        parts = [self.draw(), legend_drawing(entries, self.width), self._colour_bar()]
        drawing = self.stack(title, parts, 20)
        drawing.text(MARGIN, drawing.height - 8, note, size=SMALL, colour=palette.FAINT_TEXT)
        return drawing

    def draw(self) -> Drawing:
        """Everything, lowest first."""
        self._mesh_links()
        self.over()
        self._discs()
        self._names()
        self._scale_bar()
        return self.drawing

    def over(self) -> None:
        """What a figure draws between links and nodes."""

    def _mesh_links(self) -> None:
        is_dense = len(self.states) > 3 * MOST_NAMES
        for (a, b), state in sorted(self.states.items(), key=lambda link: link[1] != MUTED):  # these lie below
            if a not in self.place_of or b not in self.place_of:
                continue
            ends = (*self.at(a), *self.at(b))
            self.band += self.along(a, b)
            opacity = 0.35 if self.is_faint else 0.6 if is_dense else 1.0
            if state == MUTED:
                self.drawing.segment(
                    *ends, colour=MUTED_COLOUR, width=0.8 if is_dense else 1.4, dash=(4, 4), opacity=opacity
                )
            elif state == ACTIVE and not self.is_faint:
                self._halves(a, b)
            else:
                self.drawing.segment(*ends, colour=PENDING, width=1.4, opacity=1.0)

    def _halves(self, a: int, b: int) -> None:
        """An active link on a gray ground, so that a half that nobody has asked for is seen too."""
        (x0, y0), (x1, y1) = self.at(a), self.at(b)
        width = max(0.6 * self.node, 2.6)
        self.drawing.segment(x0, y0, x1, y1, colour=PENDING, width=width + 1.6)
        middle = (x0 + x1) / 2, (y0 + y1) / 2
        for node, peer, (x, y) in ((a, b, (x0, y0)), (b, a, (x1, y1))):
            self.drawing.segment(x, y, *middle, colour=self._colour(self.told.get((node, peer))), width=width)

    def _colour(self, told: Filter | None) -> str:
        return COLOURS[0 if told is None else self._shades[max(told.bits, 0)]]

    def _discs(self) -> None:
        for node in self.place_of:
            x, y = self.at(node)
            if node in self.down:
                self.drawing.cross(x, y, self.node, colour=palette.FAILED, width=0.4 * self.node)
                continue
            marker = "square" if node in self.asking else "circle"
            radius = 1.25 * self.node if node in self.asking else self.node
            self.drawing.marker(marker, x, y, radius, self._colour(self.sums.get(node)), palette.OUTLINE, 1.1)

    def _names(self) -> None:
        self.write_names(sorted(self.names), self.asking)

    def _colour_bar(self) -> Drawing:
        """From an empty filter to the fullest of the run."""
        drawing = Drawing(self.width, 22)
        if self.is_faint:
            drawing.height = 0
            return drawing
        told = scale("a filter", self.mesh.fewest_bits, self.mesh.most_bits, self.mesh.filter_bits)
        begin = f"{told.said}:  {told.low}"
        drawing.text(MARGIN, 12, begin, size=SMALL)
        left, wide = MARGIN + text_width(begin, SMALL) * 1.06 + 6, BAR / len(COLOURS)
        for part, colour in enumerate(COLOURS):
            drawing.rectangle(left + part * wide, 3, wide + 0.4, 11, fill=colour)
        drawing.polygon([(left, 3), (left + BAR, 3), (left + BAR, 14), (left, 14)], stroke=palette.OUTLINE, width=0.6)
        drawing.text(left + BAR + 7, 12, told.high, size=SMALL)
        return drawing


def mesh_entries(scene: MeshScene) -> list[Entry]:
    """What a picture of the mesh has to explain."""
    entries: list[Entry] = []
    if scene.asking:
        entries.append(("square", COLOURS[4], "subscriber"))
    states = set(scene.states.values())
    if ACTIVE in states:
        colour = PENDING if scene.is_faint else COLOURS[4]
        entries.append(("line" if scene.is_faint else "tree", colour, "active link"))
    if MUTED in states:
        entries.append(("dash", MUTED_COLOUR, "muted link: it closes a loop"))
    if states - {ACTIVE, MUTED}:
        entries.append(("line", PENDING, "link on its way to be active"))
    if scene.down:
        entries.append(("down", palette.FAILED, "failed node"))
    return entries


def filters_slides(run: Any, times_s: Sequence[float], width: int = WIDTH) -> Stepper:
    """The mesh at some times. ParameterError for no times, or as `filters_drawing`."""
    if not times_s:
        raise ParameterError("filters_slides: times_s is empty; some times of the run are wanted, in seconds")
    return Stepper([filters_drawing(run, time_s, width) for time_s in times_s], [f"{t:g} s" for t in times_s], "time")


def fill_chart(run: Any, width: int = WIDTH) -> Drawing:
    """Mean and largest fill of the nodes' filters over the run, and below it how many links are muted."""
    seen, nodes = mesh_of(run), run.scenario.topology.number_of_nodes()
    table = steps(seen, nodes)
    end_s = seen.duration_us / 1e6
    times_s = table["time_us"] / 1e6
    most = max(float(table["most"].max()), 1e-9)
    fills = [
        level(name, times_s, 100 * table[column], end_s)
        for name, column in (("fullest node", "most"), ("mean of all nodes", "mean"))
    ]
    title = f"{caption.title(run)}: filters of {seen.filter_bits:,} bits"
    upper = line_chart(
        fills,
        title=title,
        x_label="time (s)",
        y_label="bits set (%)",
        y_range=(0, 1.08 * 100 * most),
        width=width,
        height=260,
    )
    muted = level("muted links", times_s, table["muted"], end_s)
    lower = line_chart(
        [muted],
        x_label="time (s)",
        y_label="links",
        y_range=(0, math.ceil(1.08 * max(int(table["muted"].max()), 1))),
        width=width,
        height=190,
    )
    drawing = Drawing(width, upper.height + lower.height, title=title)
    drawing.add(upper, 0, 0)
    drawing.add(lower, 0, upper.height)
    return drawing


def level(name: str, times_s: np.ndarray, values: np.ndarray, end_s: float) -> Series:
    """A line that goes level and then up or down, not aslant."""
    changed = np.flatnonzero(np.diff(values)) + 1
    xs, ys = [float(times_s[0])], [float(values[0])]
    for index in changed.tolist():
        xs += [float(times_s[index])] * 2
        ys += [ys[-1], float(values[index])]
    return Series(name, [*xs, end_s], [*ys, ys[-1]])

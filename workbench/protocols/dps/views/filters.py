"""Static figures that show how far subscriptions have spread in the mesh.

Subscriptions spread as Bloom filters. The *fill* of a filter is the share of its bits that are set.

    filters_drawing(run, time_s=None)   the mesh: nodes and the ends of links colored by the fill of their filters
    filters_slides(run, times_s)        such drawings of the mesh at several times, with a slider
    fill_chart(run)                     the fill of all nodes' filters, and the number of muted links, over the run

The drawings show the layers of the player (`layers`), with each node's number and the fill of its filter beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.errors import ParameterError
from workbench.protocols.dps.views.layers import FILL, MOST_LABELS, curves
from workbench.protocols.dps.views.looks import percent
from workbench.protocols.dps.views.mesh import MUTED, Mesh, mesh_of
from workbench.views import caption
from workbench.views.carried import carries_record
from workbench.views.drawing import Drawing
from workbench.views.figure import draw, time_us_of
from workbench.views.layers import Layer, RunView, table
from workbench.views.legend import MARGIN, SMALL
from workbench.views.panels import curves_drawing
from workbench.views.seeing import see
from workbench.views.stepper import Stepper

WIDTH = 760
NAMES = "names"
MESH = ("nodes", "links of the mesh", "muted links", "links on their way")


@carries_record
def filters_drawing(run: Any, time_s: float | None = None, width: int = WIDTH, names: bool | None = None) -> Drawing:
    """Draw the links and filters of the mesh at a time (None: at the run's end).

    ``width``: width of the drawing in px. ``names``: whether to write each node's number and the fill of its filter
    beside it (None: in networks of up to 60 nodes). Raises ParameterError for a time outside of the run, or for a run
    of another protocol.
    """
    return filters_slides(run, [run.scenario.duration_s if time_s is None else time_s], width, names).drawings[0]


@carries_record
def filters_slides(run: Any, times_s: Sequence[float], width: int = WIDTH, names: bool | None = None) -> Stepper:
    """Draw the links and filters of the mesh at several times, with a slider.

    ``width``: width of a drawing in px. ``names``: whether to write each node's number and the fill of its filter
    beside it (None: in networks of up to 60 nodes). Raises ParameterError if ``times_s`` is empty, for a time outside
    of the run, or for a run of another protocol.
    """
    if not times_s:
        raise ParameterError("filters_slides: `times_s` is empty; give one or more times of the run, in seconds")
    mesh, times_us = mesh_of(run), [time_us_of(run, time_s, "filters_drawing") for time_s in times_s]
    view = see(run)
    return Stepper(
        [_draw_mesh(view, mesh, time_us, width, names) for time_us in times_us], [f"{t:g} s" for t in times_s], "time"
    )


def _draw_mesh(view: RunView, mesh: Mesh, time_us: int, width: int, names: bool | None) -> Drawing:
    fills = {node: mesh.fill(interests.bits) for node, interests in mesh.sums_at(time_us).items() if interests.bits}
    ids = view.plan.ids.tolist()
    labels = {node: f"{node}: {percent(fills[node])}" if node in fills else str(node) for node in ids}
    is_named = names if names is not None else len(ids) <= MOST_LABELS
    drawing = draw(add_names(view, labels if is_named else {}), time_us, width, [*MESH, "filters", NAMES])
    states = list(mesh.links_at(time_us).values())
    mean_text, fullest_text = (
        percent(fill) for fill in (sum(fills.values()) / max(len(ids), 1), max(fills.values(), default=0.0))
    )
    links_text = f"{len(states)} links, {states.count(MUTED)} of them muted"
    return add_note(
        drawing,
        f"filters of {mesh.filter_bits:,} bits; mean of the nodes {mean_text}, fullest {fullest_text}; {links_text}",
    )


def add_names(seen: RunView, words: Mapping[int, str]) -> RunView:
    """Return a copy of ``seen``, the view of a run, with one more layer: a text beside each node.

    ``words``: {node: text}.
    """
    ends_us = [seen.duration_us] * len(words)
    name_rows = table(node=list(words), until_us=ends_us, from_us=[0] * len(words), text=range(len(words)))
    return replace(seen, layers=(*seen.layers, Layer(NAMES, name_rows, (FILL,), "label", words=list(words.values()))))


def add_note(drawing: Drawing, note: str) -> Drawing:
    """Add a line of text below a drawing, and return the drawing."""
    drawing.height += 20
    drawing.text(MARGIN, drawing.height - 8, note, size=SMALL)
    return drawing


@carries_record
def fill_chart(run: Any, width: int = WIDTH) -> Drawing:
    """Draw curves of the mean and largest fill of the nodes' filters over the run; below, of the number of muted links.

    ``width``: width of the drawing in px. Raises ParameterError for a run of another protocol.
    """
    mesh = mesh_of(run)
    title = f"{caption.title(run)}: filters of {mesh.filter_bits:,} bits"
    curves_chart = curves_drawing(curves(mesh, len(run.scenario.topology)), mesh.duration_us, mesh.duration_us, width)
    drawing = Drawing(width, 34 + curves_chart.height, title=title)
    drawing.text(MARGIN, 24, title, size=14, bold=True)
    drawing.add(curves_chart, 0, 34)
    return drawing

"""Static figures of the overlay, drawn from the layers of the player: trees, a route over them, and both as slides.

    overlay_drawing(run, time_s=None)      trees in colors, roots, keys, nodes without a position or with a new key
    route_drawing(run, message=None)       the hops of a message as arrows over faint trees, numbered in their order
    overlay_slides(run, times_s)           the trees at several times, with a slider
    route_slides(run, message)             a route, hop by hop

Slides also work in an exported page, without a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.errors import ParameterError
from workbench.protocols.tinymq.views.layers import ring_layers, route_layers, rows_of, tree_layers
from workbench.protocols.tinymq.views.overlay import Overlay, overlay_of, protocol_of
from workbench.protocols.tinymq.views.routes import NOTIFICATION, QUERY, MessageId, Route, route, tables_of
from workbench.views import caption, palette
from workbench.views.carried import carries_record
from workbench.views.changing_layout import lay_out_scenario
from workbench.views.drawing import Drawing
from workbench.views.figure import time_us_of
from workbench.views.layers import NO_PATHS, Layer, Look, MessagePath, MessagePaths, RunView, select
from workbench.views.legend import MARGIN, SMALL, Entry, legend_drawing
from workbench.views.marks import Group, LayerScene
from workbench.views.nodes import FAILED
from workbench.views.player.playback import make_clock
from workbench.views.spans import FOREVER_US
from workbench.views.stepper import Stepper

WIDTH = 760
HEADING = 40
MOST_KEYS = 60  # largest number of nodes with written keys, and of numbered hops
MOST_SLIDES = 60


@carries_record
def overlay_drawing(
    run: Any, time_s: float | None = None, width: int = WIDTH, keys: bool | None = None, tree: int | None = None
) -> Drawing:
    """Draw the trees at a time (None: at the run's end), or only the tree of the root ``roots[tree]``.

    ``width``: in pixels; ``keys``: whether the nodes' keys are written (None: in networks of up to 60 nodes). In
    PUB-2-SUB+ a node has a key in every tree; keys are written only if a single tree is drawn. Raises ParameterError
    for a time outside of the run, for a tree that the run does not have, or if the run's protocol builds no overlay.
    """
    time_us, overlay = time_us_of(run, time_s, "overlay_drawing"), overlay_of(run)
    if tree is not None and not 0 <= tree < len(overlay.roots):
        raise ParameterError(f"overlay_drawing: tree is {tree!r}; this run has the trees 0 to {len(overlay.roots) - 1}")
    scene = LayerScene(_make_view(run, _trees(run, overlay, time_us, keys, tree)), time_us, width)
    scene.is_chosen = bool(keys)  # draw a few more labels, as the caller requested keys
    return _draw_page(scene, f"{caption.title(run)}: the overlay", scene.draw(), scene.entries())


@carries_record
def route_drawing(
    run: Any,
    message: MessageId | None = None,
    from_s: float = 0.0,
    until_s: float | None = None,
    width: int = WIDTH,
    keys: bool | None = None,
) -> Drawing:
    """Draw the route of a message as arrows over the trees at the time when the route begins.

    Numbers give the order of the hops. ``width``: in pixels; ``keys``: whether the nodes' keys are written (None: in
    networks of up to 60 nodes). The other arguments and errors are those of `route`.
    """
    return _draw_routes(run, route(run, message, from_s, until_s), [None], width, keys)[0]


@carries_record
def overlay_slides(run: Any, times_s: Sequence[float], width: int = WIDTH) -> Stepper:
    """Return slides of the trees, one for each of the times ``times_s``, with a slider; ``width``: in pixels.

    Raises ParameterError if ``times_s`` is empty, and for the same reasons as `overlay_drawing`.
    """
    if not times_s:
        raise ParameterError("overlay_slides: times_s is empty; it must have at least one time of the run, in s")
    return Stepper([overlay_drawing(run, time_s, width) for time_s in times_s], [f"{t:g} s" for t in times_s], "time")


@carries_record
def route_slides(
    run: Any, message: MessageId | None = None, from_s: float = 0.0, until_s: float | None = None, width: int = WIDTH
) -> Stepper:
    """Return slides of a route with a slider: the first shows no hop, and each further slide adds the next hop.

    If the route has more than ``MOST_SLIDES`` hops, a slide may add several hops. ``width``: in pixels; the other
    arguments and errors are those of `route`.
    """
    whole_route = route(run, message, from_s, until_s)
    arrived_count = sum(hop.arrived for hop in whole_route.hops)
    last_step = min(arrived_count, MOST_SLIDES)
    hop_numbers = [round(slide_index * arrived_count / max(last_step, 1)) for slide_index in range(last_step + 1)]
    return Stepper(
        _draw_routes(run, whole_route, hop_numbers, width), [str(hop_number) for hop_number in hop_numbers], "hops"
    )


def _trees(run: Any, overlay: Overlay, time_us: int, keys: bool | None, tree: int | None = None) -> list[Layer]:
    """Return the layers of the trees at a time, and of labels with the numbers of nodes and their keys.

    ``keys``: whether the result has the labels (None: in networks of up to 60 nodes). ``tree``: index in ``roots`` of
    the only tree to draw; None: all trees.
    """
    is_shared = tree is None and protocol_of(run).node.every_tree and len(overlay.roots) > 1
    if tree is not None:
        overlay = replace(overlay, place_rows=select(overlay.place_rows, overlay.place_rows["tree"] == tree))
    layers = [
        Layer("nodes", rows_of(overlay.outages), (FAILED,), "node"),
        *tree_layers(overlay, is_shared),
        *ring_layers(overlay),
    ]
    shown_layers = [layer for layer in layers if layer.mark not in ("label", "")]
    nodes = np.array(sorted(run.scenario.topology))
    if keys is False or (keys is None and len(nodes) > MOST_KEYS):
        return shown_layers
    labels = [replace(layer, is_detail=False) for layer in layers if layer.mark == "label" and not is_shared]
    labelled_nodes = [label.column("node")[label.alive(min(time_us, overlay.duration_us - 1))] for label in labels]
    other_nodes = nodes[~np.isin(nodes, np.concatenate([np.zeros(0, np.int64), *labelled_nodes]))]
    whole_run = {
        "node": other_nodes,
        "from_us": np.zeros(len(other_nodes)),
        "until_us": np.full(len(other_nodes), overlay.duration_us),
    }
    number_labels = rows_of(whole_run, text=np.arange(len(other_nodes)))
    return [
        *shown_layers,
        *labels,
        Layer("numbers", number_labels, (Look(),), "label", words=list(map(str, other_nodes.tolist()))),
    ]


class RouteScene(LayerScene):
    """A scene that draws a route of ``count`` hops. If ``count`` is at most ``MOST_KEYS``, the hops are numbered."""

    count = 0

    def _draw_arrows(self, group: Group) -> None:
        super()._draw_arrows(group)
        line_ends, rows = self._line_ends(group)
        # Numbers of notifications are farther along the arrow, where they do not hide the event's numbers.
        arrow_share = 0.36 + 0.28 * (group.look.label == NOTIFICATION)
        for hop_number, (x0, y0, x1, y1) in zip(
            group.column("value")[rows].tolist(), self._shift_lines(line_ends, group.look.lane).tolist(), strict=True
        ):
            arrow_length = math.hypot(x1 - x0, y1 - y0)
            if self.count <= MOST_KEYS and arrow_length > 5 * self.node:
                x = x0 + arrow_share * (x1 - x0) - 11 * (y1 - y0) / arrow_length
                y = y0 + arrow_share * (y1 - y0) + 11 * (x1 - x0) / arrow_length
                text_style: dict[str, Any] = {
                    "colour": group.look.colour,
                    "halo": palette.BACKGROUND,
                    "anchor": "middle",
                }
                self.drawing.text(x, y + 4, str(hop_number), size=SMALL - 1, **text_style)
                self.band.append((x, y))


def _draw_routes(
    run: Any, whole_route: Route, steps: Sequence[int | None], width: int, keys: bool | None = None
) -> list[Drawing]:
    """Return a list of drawings of a route, one for each of ``steps``: the number of hops to draw, or None for all.

    Each drawing has the legend of the whole route. ``keys``: whether the nodes' keys are written (None: in networks of
    up to 60 nodes).
    """
    start_us = (
        whole_route.hops[0].from_us if whole_route.hops else whole_route.marks[0].at_us if whole_route.marks else 0
    )
    trees = _trees(run, overlay_of(run), start_us, keys)
    faint_trees = [
        replace(layer, looks=tuple(look._replace(alpha=0.3) for look in layer.looks)) if layer.mark == "line" else layer
        for layer in trees
    ]
    legend_entries: list[Entry] = [
        ("diamond", palette.LINK_GOOD, "sink" if whole_route.message[0] == QUERY else "publisher")
    ]
    scene = _make_scene(run, faint_trees, whole_route, start_us, width)
    scene.draw()
    reasons = sorted({mark.text for mark in whole_route.marks if mark.look == "dropped"})
    if reasons:
        legend_entries.append(("lost", palette.LOST, "ended here: " + ", ".join(reasons)))
    legend_entries += scene.entries()
    title = f"{caption.title(run)}: {whole_route.message[0]} {whole_route.message[2]} of node {whole_route.message[1]}"
    drawings = []
    for hop_number in steps:
        route_part = whole_route if hop_number is None else whole_route.until(hop_number)
        scene = _make_scene(run, faint_trees, route_part, start_us, width)
        scene.count = sum(hop.arrived for hop in route_part.hops)
        last_us = max(
            [hop.arrived_us for hop in route_part.hops] + [mark.at_us for mark in route_part.marks], default=start_us
        )
        hop_count_text = "1 hop" if scene.count == 1 else f"{scene.count} hops"
        note = f"{hop_count_text} within {(last_us - start_us) / 1000:,.1f} ms; the numbers give their order"
        drawings.append(_draw_page(scene, title, scene.draw(), legend_entries, note))
    return drawings


def _make_scene(run: Any, faint_trees: Sequence[Layer], shown_route: Route, start_us: int, width: int) -> RouteScene:
    hops, marks = tables_of(shown_route)
    begin_us = np.zeros(1, np.int64)
    origin_row = rows_of(
        {"node": np.array([shown_route.message[1]]), "from_us": begin_us, "until_us": begin_us + FOREVER_US}
    )
    origin = Layer("origin", origin_row, (Look("", palette.LINK_GOOD, 2.9, 14, marker="diamond"),), "disc")
    # The trees are drawn as they were at the start of the route, so all hops must be alive at that time.
    layers = []
    for layer in route_layers(FOREVER_US, hops, marks):
        layer_columns = {"from_us": np.zeros(len(layer), np.int64), "value": np.arange(len(layer)) + 1}
        layers.append(replace(layer, table=layer.table | layer_columns))
    return RouteScene(
        _make_view(run, [*faint_trees, origin, *layers], MessagePaths((MessagePath("", 0, ()),))), start_us, width
    )


def _make_view(run: Any, layers: Sequence[Layer], routes: MessagePaths = NO_PATHS) -> RunView:
    duration_us = round(run.scenario.duration_s * 1e6)
    clock = make_clock(np.zeros(0), np.zeros(0), duration_us)
    return RunView(run, lay_out_scenario(run.scenario), clock, duration_us, tuple(filter(len, layers)), (), routes)


def _draw_page(scene: LayerScene, title: str, map_: Drawing, entries: Sequence[Entry], note: str = "") -> Drawing:
    """Return a drawing with the title and the scene's time, the map, a legend of ``entries``, and the note."""
    legend = legend_drawing(entries, scene.width)
    drawing = Drawing(scene.width, HEADING + map_.height + legend.height + (16 if note else 0), title=title)
    drawing.text(MARGIN, 26, title, size=15, bold=True)
    drawing.text(scene.width - MARGIN, 26, f"t = {scene.time_us / 1e6:,.3f} s", size=14, anchor="end")
    drawing.add(map_, 0, HEADING)
    drawing.add(legend, 0, HEADING + map_.height)
    drawing.text(MARGIN, drawing.height - 6, note, size=SMALL, colour=palette.FAINT_TEXT)
    return drawing

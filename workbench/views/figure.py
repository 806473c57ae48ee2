"""The network at a time as a static figure for papers, drawn from the same layers as the player."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from workbench.errors import ParameterError
from workbench.views import caption, palette
from workbench.views.carried import carries_record
from workbench.views.drawing import Drawing, text_width
from workbench.views.layers import Seen
from workbench.views.legend import LINE, MARGIN, SMALL, legend_drawing, scales_drawing
from workbench.views.marks import LayerScene, way_at
from workbench.views.panels import curves_drawing, strips_drawing
from workbench.views.seeing import see
from workbench.views.still import Scene

__all__ = ["LINE", "MARGIN", "SMALL", "WIDTH", "Scene", "draw", "figure", "network_drawing", "time_us_of"]

WIDTH = 700


@carries_record
def network_drawing(
    run: Any,
    time_s: float | None = None,
    width: int = WIDTH,
    event: tuple[int, int] | None = None,
    layers: Collection[str] | None = None,
    dark: bool = False,
    way: int | None = None,
) -> Drawing:
    """The state of a run at a time (None: at its end): a `Drawing` with ``to_svg()``, ``to_png()`` and ``save(path)``.

    width: in px, 96 to the inch; 700 suits the width of a page. event: (origin, sequence), leaves out what is about
    other events. layers: the names of those to draw, as the player's chips have them; None: those that are on at first.
    dark: for a dark ground. way: which message is followed, by its place in ``see(run).ways``; None: as the player
    does at first. Raises ParameterError for a time outside of the run, or for an event, a layer or a message that is
    not in it.
    """
    time_us = time_us_of(run, time_s, "network_drawing")
    if width < 300:
        raise ParameterError(f"network_drawing: width is {width!r}; a network needs 300 px or more")
    return draw(see(run, event), time_us, width, layers, dark, way)


def figure(run: Any, time_s: float | None = None, dark: bool = False, layers: Collection[str] | None = None) -> Drawing:
    """The network at a time (None: the end) as a static drawing with ``to_svg()`` and ``to_png()``.

    dark: for a dark ground. layers: the names of those to draw, as the player has them; None: those on at first.
    """
    return network_drawing(run, time_s, dark=dark, layers=None if layers is None else tuple(layers))


def draw(
    seen: Seen,
    time_us: int,
    width: int = WIDTH,
    layers: Collection[str] | None = None,
    dark: bool = False,
    way: int | None = None,
) -> Drawing:
    """The same of what is `Seen` of a run; for several times it need not be computed anew."""
    scene = LayerScene(seen, time_us, width, layers, way)
    map_ = scene.draw()
    strips = strips_drawing(scene, width)
    parts = [
        _heading(seen.run, time_us, width, _followed(seen, time_us, way, scene)),
        map_,
        strips,
        legend_drawing(scene.entries(), width),
        scales_drawing(scene.scales, width),
        curves_drawing(seen.curves if layers is None else (), seen.duration_us, time_us, width),
    ]
    page = Drawing(width, 0, title=caption.title(seen.run))
    for part in parts:
        page.add(part, 0, page.height)
        page.height += part.height
    return page.in_dark() if dark else page


def time_us_of(run: Any, time_s: float | None, what: str) -> int:
    """A time of the run in µs (None: its end); ParameterError, which names the view ``what``, for one outside of it."""
    duration_s = run.scenario.duration_s
    if time_s is not None and not 0 <= time_s <= duration_s:
        raise ParameterError(f"{what}: time_s is {time_s!r}; this run lasts from 0 to {duration_s:g} s")
    return round((duration_s if time_s is None else time_s) * 1e6)


def _followed(seen: Seen, time_us: int, way: int | None, scene: LayerScene) -> str:
    """The way that is drawn, in a sentence."""
    if not any(group.layer.of_way for group in scene.groups):
        return ""
    followed = seen.ways.ways[way_at(seen, time_us, way)]
    return f"followed: {followed.said}" + (f": {followed.told}" if followed.told else "")


def _heading(run: Any, time_us: int, width: int, followed: str) -> Drawing:
    """Title and time, then what ran and what came of it."""
    whole = " · ".join(f"{name} {number}" for name, number in caption.key_numbers(run))
    lines = [caption.workload(run), caption.conditions(run) + (f" · {whole}" if whole else "")]
    if time_us < run.scenario.duration_s * 1e6:
        lines.append(_so_far(run.trace, time_us))
    lines.append(followed)
    drawing = Drawing(width, 0)
    clock = f"t = {time_us / 1e6:,.3f} s"
    drawing.text(width - MARGIN, 26, clock, size=14, anchor="end")
    room = width - 3 * MARGIN - text_width(clock, 14)
    y = 26.0
    for line in _wrapped(caption.title(run), 15, room):
        drawing.text(MARGIN, y, line, size=15, bold=True)
        y += 18
    for line in lines:
        for piece in _wrapped(line, SMALL, width - 2 * MARGIN):
            drawing.text(MARGIN, y, piece, size=SMALL, colour=palette.FAINT_TEXT)
            y += 15
    drawing.height = y - 6
    return drawing


def _so_far(trace: Any, time_us: int) -> str:
    """What was counted up to a time; a trace is in order of time."""
    until = int(np.searchsorted(trace.column("time_us").to_numpy(), time_us, "right"))
    counts = {one["values"]: one["counts"] for one in trace.column("event").slice(0, until).value_counts().to_pylist()}
    if not until:
        return ""
    return f"so far: deliveries {counts.get('delivered', 0):,} · transmissions {counts.get('sent', 0):,}"


def _wrapped(text: str, size: float, room: float) -> list[str]:
    """A text in lines that fit; a word that does not fit by itself gets a line of its own."""
    lines: list[str] = []
    for word in text.split():
        # Fonts that show an SVG may be a little wider than Pillow's.
        if lines and text_width(f"{lines[-1]} {word}", size) * 1.06 <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines

"""The network at one time as a static figure for papers, drawn from the same layers as the player."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from workbench.errors import ParameterError
from workbench.views import caption, palette
from workbench.views.carried import carries_record
from workbench.views.drawing import Drawing, text_width
from workbench.views.layers import RunView
from workbench.views.legend import LINE, MARGIN, SMALL, legend_drawing, scales_drawing
from workbench.views.marks import LayerScene, path_at
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
    message: int | None = None,
) -> Drawing:
    """Return the state of a run at a time as a `Drawing`. ``time_s=None`` means the end of the run.

    width: in px, 96 to the inch; 700 suits the width of a page.
    event: show only this event, given as (origin, sequence).
    layers: names of the layers to draw, as on the player's buttons; None: the layers that the player shows at first.
    dark: draw for a dark background.
    message: index in ``see(run).paths`` of the message whose path is drawn; None: the path that the player shows at
        first.
    Raises ParameterError for a time outside the run, or an unknown event, layer or message.
    """
    time_us = time_us_of(run, time_s, "network_drawing")
    if width < 300:
        raise ParameterError(f"network_drawing: width is {width!r}; a network needs 300 px or more")
    return draw(see(run, event), time_us, width, layers, dark, message)


def figure(run: Any, time_s: float | None = None, dark: bool = False, layers: Collection[str] | None = None) -> Drawing:
    """Return the network at a time (None: the end of the run) as a static drawing of the default size.

    This is `network_drawing` with fewer parameters. dark: draw for a dark background. layers: names of the layers to
    draw, as on the player's buttons; None: the layers that the player shows at first.
    """
    return network_drawing(run, time_s, dark=dark, layers=None if layers is None else tuple(layers))


def preview(run: Any, width: int) -> Drawing:
    """Return the map of a run at the time that a player shows at first, without a heading or legend.

    width: in px, at least 300.
    """
    from workbench.views.player.payload import poster_us

    view = see(run)
    return LayerScene(view, poster_us(view), width).draw()


def draw(
    view: RunView,
    time_us: int,
    width: int = WIDTH,
    layers: Collection[str] | None = None,
    dark: bool = False,
    message: int | None = None,
) -> Drawing:
    """Return the state of a run at a time as a `Drawing`.

    view: the layers of the run, from `views.seeing.see`. They can be reused to draw the run at other times.
    layers: names of the layers to draw, as on the player's buttons; None: the layers that the player shows at first.
    message: index in ``view.paths`` of the message whose path is drawn; None: the path that the player shows at first.
    """
    scene = LayerScene(view, time_us, width, layers, message)
    map_drawing = scene.draw()
    strips = strips_drawing(scene, width)
    drawings = [
        _draw_heading(view.run, time_us, width, _describe_path(view, time_us, message, scene)),
        map_drawing,
        strips,
        legend_drawing(scene.entries(), width),
        scales_drawing(scene.scales, width),
        curves_drawing(view.curves if layers is None else (), view.duration_us, time_us, width),
    ]
    page = Drawing(width, 0, title=caption.title(view.run))
    for drawing_part in drawings:
        page.add(drawing_part, 0, page.height)
        page.height += drawing_part.height
    return page.in_dark() if dark else page


def time_us_of(run: Any, time_s: float | None, caller: str) -> int:
    """Convert a time of a run from s to µs; None becomes the end of the run.

    Raises ParameterError for a time outside the run. Its message begins with ``caller``, the name of the calling
    function.
    """
    duration_s = run.scenario.duration_s
    if time_s is not None and not 0 <= time_s <= duration_s:
        raise ParameterError(f"{caller}: time_s is {time_s!r}; this run lasts from 0 to {duration_s:g} s")
    return round((duration_s if time_s is None else time_s) * 1e6)


def _describe_path(view: RunView, time_us: int, message: int | None, scene: LayerScene) -> str:
    """Return a sentence about the message whose path is drawn in ``scene``, or "" if the scene has no path.

    ``message``: index of the message whose path is drawn; None: the path that the player shows at first.
    """
    if not any(group.layer.of_path for group in scene.groups):
        return ""
    path = view.paths.paths[path_at(view, time_us, message)]
    return f"followed: {path.label}" + (f": {path.description}" if path.description else "")


def _draw_heading(run: Any, time_us: int, width: int, path_sentence: str) -> Drawing:
    """Draw the heading of a figure: title, time, workload, conditions and key numbers.

    ``path_sentence``: text of the last line, about the message whose path is drawn; "" means no such line.
    """
    number_texts = " · ".join(f"{name} {number}" for name, number in caption.key_numbers(run))
    heading_lines = [caption.workload(run), caption.conditions(run) + (f" · {number_texts}" if number_texts else "")]
    if time_us < run.scenario.duration_s * 1e6:
        heading_lines.append(_describe_counts(run.trace, time_us))
    heading_lines.append(path_sentence)
    drawing = Drawing(width, 0)
    clock = f"t = {time_us / 1e6:,.3f} s"
    drawing.text(width - MARGIN, 26, clock, size=14, anchor="end")
    title_width = width - 3 * MARGIN - text_width(clock, 14)
    y = 26.0
    for line in _wrap_text(caption.title(run), 15, title_width):
        drawing.text(MARGIN, y, line, size=15, bold=True)
        y += 18
    for line in heading_lines:
        for text_line in _wrap_text(line, SMALL, width - 2 * MARGIN):
            drawing.text(MARGIN, y, text_line, size=SMALL, colour=palette.FAINT_TEXT)
            y += 15
    drawing.height = y - 6
    return drawing


def _describe_counts(trace: Any, time_us: int) -> str:
    """Return a text with the number of deliveries and transmissions up to ``time_us``.

    Return "" if the trace has no row up to this time.
    """
    row_count = int(np.searchsorted(trace.column("time_us").to_numpy(), time_us, "right"))
    event_counts = {
        value_count["values"]: value_count["counts"]
        for value_count in trace.column("event").slice(0, row_count).value_counts().to_pylist()
    }
    if not row_count:
        return ""
    return f"so far: deliveries {event_counts.get('delivered', 0):,} · transmissions {event_counts.get('sent', 0):,}"


def _wrap_text(text: str, size: float, width: float) -> list[str]:
    """Return the lines of a text, each at most ``width`` px wide unless it is a single word."""
    lines: list[str] = []
    for word in text.split():
        # Fonts that show an SVG may be a little wider than Pillow's.
        if lines and text_width(f"{lines[-1]} {word}", size) * 1.06 <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines

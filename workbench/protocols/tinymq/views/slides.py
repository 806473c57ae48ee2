"""Static figures of the overlay trees in a row, with a slider: for pages without the player, and for a class.

    overlay_slides(run, times_s)      the trees at several times
    route_slides(run, what, ...)      a route, hop by hop

Without a kernel, in an exported page, the last of them is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.errors import ParameterError
from workbench.protocols.tinymq.views.routes import What, draw_route, route
from workbench.protocols.tinymq.views.trees import WIDTH, overlay_drawing
from workbench.views.stepper import Stepper

MOST_SLIDES = 60


def overlay_slides(run: Any, times_s: Sequence[float], width: int = WIDTH) -> Stepper:
    """The trees at some times. ParameterError for no times, or as `overlay_drawing`."""
    if not times_s:
        raise ParameterError("overlay_slides: times_s is empty; some times of the run are wanted, in seconds")
    return Stepper([overlay_drawing(run, time_s, width) for time_s in times_s], [f"{t:g} s" for t in times_s], "time")


def route_slides(
    run: Any, what: What | None = None, from_s: float = 0.0, until_s: float | None = None, width: int = WIDTH
) -> Stepper:
    """A route up to its first, second, ... hop, ``MOST_SLIDES`` at most. The arguments and errors of `route`."""
    way = route(run, what, from_s, until_s)
    count = sum(hop.arrived for hop in way.hops)
    steps = (
        range(count + 1) if count < MOST_SLIDES else [round(i * count / MOST_SLIDES) for i in range(MOST_SLIDES + 1)]
    )
    drawings = [draw_route(run, way, step, width) for step in steps]
    return Stepper(drawings, [str(step) for step in steps], "hops")

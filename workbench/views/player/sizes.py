"""The player's arithmetic: what goes where, in pixels, and how metres become pixels."""

from dataclasses import dataclass

import numpy as np

from workbench.views.ground import Plan

WIDTH = 940  # what a notebook beside an open side bar has on a 1400 px screen
PANEL = 270
GAP = 10
TOOLBAR = 31
LOWEST, TALLEST = 250, 620
WIDE = 1.8


@dataclass(frozen=True)
class Sizes:
    """Pixels. A wide network gets the full width, and the inspector moves from beside the map to beside the timeline.

    x_m, y_m: the section of the ground that fills the map, at one scale in both directions.
    node: a node's diameter.
    """

    is_wide: bool
    map_width: int
    map_height: int
    timeline_width: int
    timeline_height: int
    panel_height: int
    x_m: tuple[float, float]
    y_m: tuple[float, float]
    node: float

    @property
    def is_dense(self) -> bool:
        """Whether nodes are so small that what lies between them has to step back."""
        return self.node < 7


def fit(plan: Plan) -> Sizes:
    """The sizes for a plan."""
    x0, y0, x1, y1 = plan.box_m
    margin = 0.045 * max(x1 - x0, y1 - y0)
    width_m, height_m = x1 - x0 + 2 * margin, y1 - y0 + 2 * margin
    is_wide = width_m / height_m > WIDE
    map_width = WIDTH if is_wide else WIDTH - PANEL - GAP
    inner = map_width - TOOLBAR
    height = int(np.clip(inner * height_m / width_m, LOWEST, TALLEST))
    metres_per_px = max(width_m / inner, height_m / height)
    reach_x, reach_y = metres_per_px * inner / 2, metres_per_px * height / 2
    middle_x, middle_y = (x0 + x1) / 2, (y0 + y1) / 2
    return Sizes(
        is_wide=is_wide,
        map_width=map_width,
        map_height=height,
        timeline_width=WIDTH - PANEL - GAP if is_wide else WIDTH,
        timeline_height=300 if is_wide else 220,
        panel_height=300 if is_wide else height + 70,
        x_m=(middle_x - reach_x, middle_x + reach_x),
        y_m=(middle_y - reach_y, middle_y + reach_y),
        node=float(np.clip(0.34 * plan.spacing_m / metres_per_px, 4.5, 14)),
    )

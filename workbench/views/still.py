"""A network at a time, over which a protocol draws what it alone has: trees, filters, the way of a message."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from workbench.views import palette
from workbench.views.drawing import Drawing, text_width
from workbench.views.figure import MARGIN, SMALL, Scene
from workbench.views.ground import Plan
from workbench.views.player.film import Film
from workbench.views.player.intervals import Intervals

HEADING = 40
_NOTHING = Intervals({}, Film(np.array([0.0, 1.0]), np.array([0.0, 1.0])), 1)


class StillScene(Scene):
    """A network without what moves in it. ``names``: node -> what is written beside it."""

    def __init__(self, plan: Plan, time_us: int, width: int) -> None:
        super().__init__(plan, _NOTHING, time_us, width)
        self.names: dict[int, str] = {}
        self.place_of = {node: index for index, node in enumerate(plan.ids.tolist())}

    def at(self, node: int) -> tuple[float, float]:
        """Where a node is on the page."""
        index = self.place_of[node]
        return float(self.x[index]), float(self.y[index])

    def along(self, a: int, b: int) -> list[tuple[float, float]]:
        """Points on the line between two nodes: what names should not hide goes to ``band``."""
        return [self._between(self.place_of[a], self.place_of[b], share / 20) for share in range(1, 20)]

    def clock(self) -> str:
        """What stands on the upper right."""
        return f"t = {self.time_us / 1e6:,.3f} s"

    def stack(self, title: str, parts: Sequence[Drawing], foot: float) -> Drawing:
        """Title and time, drawings below each other, and ``foot`` px for what is written below them."""
        drawing = Drawing(self.width, HEADING + sum(part.height for part in parts) + foot, title=title)
        drawing.text(MARGIN, 26, title, size=15, bold=True)
        drawing.text(self.width - MARGIN, 26, self.clock(), size=14, anchor="end")
        top: float = HEADING
        for part in parts:
            drawing.add(part, 0, top)
            top += part.height
        return drawing

    def write_names(self, nodes: Iterable[int], bold: set[int]) -> None:
        """Write ``names`` where they hide as little as possible, in the order of ``nodes``."""
        taken: list[tuple[float, float, float, float]] = []
        for node in nodes:
            text = self.names[node]
            boxes = self._boxes(self.place_of[node], text_width(text, SMALL))
            box, x, y = min(boxes, key=lambda found: self._hidden(found[0], taken))
            taken.append(box)
            self.drawing.text(x, y, text, size=SMALL, halo=palette.BACKGROUND, bold=node in bold)

    def hop(
        self,
        ends: tuple[int, int],
        colour: str,
        width: float,
        lane_px: float,
        clear_px: float,
        head_at: float,
        number: str,
        number_at: tuple[float, float],
    ) -> None:
        """An arrow between two nodes on the right of its way, so that the way back has its own.

        ``lane_px``: how far on the right; ``clear_px``: how far from either node; ``number_at``: at which share of its
        way its number stands, and how many px beside it.
        """
        (x0, y0), (x1, y1) = self.at(ends[0]), self.at(ends[1])
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        clear = min(clear_px, 0.3 * length)
        start_x, start_y = x0 + clear * ux - lane_px * uy, y0 + clear * uy + lane_px * ux
        end_x, end_y = x1 - clear * ux - lane_px * uy, y1 - clear * uy + lane_px * ux
        head = max(1.2 * self.node, 6)
        self.drawing.arrow(start_x, start_y, end_x, end_y, head=head, at=head_at, colour=colour, width=width)
        self.band += [
            (start_x + share / 12 * (end_x - start_x), start_y + share / 12 * (end_y - start_y)) for share in range(13)
        ]
        if number and length > 5 * self.node:
            at, away = number_at
            x, y = start_x + at * (end_x - start_x) - away * uy, start_y + at * (end_y - start_y) + away * ux
            self.drawing.text(x, y + 4, number, size=SMALL - 1, anchor="middle", halo=palette.BACKGROUND, colour=colour)
            self.band.append((x, y))

    def _hidden(self, box: tuple[float, float, float, float], taken: list[tuple]) -> float:
        # Names are long and many here: a line below one counts more than in a picture of a few names.
        left, top, right, bottom = box
        crossed = sum(left - 2 < x < right + 2 and top - 2 < y < bottom + 2 for x, y in self.band)
        return super()._hidden(box, taken) + 1.5 * crossed

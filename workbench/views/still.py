"""The ground of static pictures of a network: where everything is on the page, its links and walls, and its words.

Scene(plan, width)                 what every such picture has
StillScene(plan, time_us, width)   a network at a time, over which a protocol draws what it alone has
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from workbench.views import caption, palette
from workbench.views.drawing import Drawing, text_width
from workbench.views.ground import Plan
from workbench.views.legend import MARGIN, SMALL

HEADING = 40
TALLEST = 580
LINK_SHADES = 12
Box = tuple[float, float, float, float]


class Scene:
    """A network on a page.

    x, y: where nodes are, float64, shape (nodes,), and ``node``, their radius; ``walls``: shape (walls, 4). All in px.
    ``band``: points that names should not hide.
    """

    def __init__(self, plan: Plan, width: int) -> None:
        self.plan, self.width = plan, width
        x0, y0, x1, y1 = plan.box_m
        self.scale = min((width - 4 * MARGIN) / (x1 - x0), TALLEST / (y1 - y0))
        left, top = (width - self.scale * (x1 - x0)) / 2, 1.4 * MARGIN
        self.height = self.scale * (y1 - y0) + 2 * top + 14
        self.x = left + self.scale * (plan.x_m - x0)
        self.y = top + self.scale * (y1 - plan.y_m)
        corner, flip = np.array([left - self.scale * x0, top + self.scale * y1] * 2), np.array([1, -1, 1, -1])
        self.walls = corner + self.scale * flip * plan.walls
        self.node = float(np.clip(0.15 * plan.spacing_m * self.scale, 1.8, 6.0))
        self.band: list[tuple[float, float]] = []
        self._band = np.zeros((0, 2))  # the same as an array, when it was last looked at
        self.drawing = Drawing(width, self.height)

    def _between(self, a: int, b: int, share: float) -> tuple[float, float]:
        return self.x[a] + share * (self.x[b] - self.x[a]), self.y[a] + share * (self.y[b] - self.y[a])

    def _links(self) -> None:
        """Links, the better the darker and the thicker, and walls."""
        links = self.plan.links
        shade = np.rint(LINK_SHADES * np.maximum(links["pdr_ab"], links["pdr_ba"]))
        a, b = links["a"], links["b"]
        ends = np.stack([self.x[a], self.y[a], self.x[b], self.y[b]], axis=1)
        thin = 0.6 if self.node < 3 else 1.0
        for one in np.unique(shade).tolist():
            pdr = one / LINK_SHADES
            look = {"colour": palette.link_colour(pdr), "width": thin * (0.4 + 0.5 * pdr)}
            self.drawing.segments(ends[shade == one], **look)
        self.drawing.segments(self.walls, colour=palette.WALL, width=2)

    def _scale_bar(self) -> None:
        length_m = caption.round_length((self.width - 4 * MARGIN) / self.scale / 7)
        right, y = self.width - MARGIN, self.height - 5
        left = right - length_m * self.scale
        self.drawing.segment(left, y, right, y, colour=palette.FAINT_TEXT, width=1.6)
        look = {"size": SMALL, "anchor": "end", "colour": palette.FAINT_TEXT}
        self.drawing.text(left - 5, y + 3.5, f"{length_m:g} m", **look)

    # Words

    def _boxes(self, place: int, wide: float) -> list[tuple[Box, float, float]]:
        """Boxes around a node that could hold its name: (box, x and baseline of the text)."""
        x, y, gap = self.x[place], self.y[place], 1.6 * self.node + 3
        corners = [
            (x - wide / 2, y - gap - SMALL),
            (x - wide / 2, y + gap),
            (x + gap, y - SMALL / 2),
            (x - gap - wide, y - SMALL / 2),
            (x + 0.7 * gap, y - 0.7 * gap - SMALL),
            (x - 0.7 * gap - wide, y - 0.7 * gap - SMALL),
            (x + 0.7 * gap, y + 0.7 * gap),
            (x - 0.7 * gap - wide, y + 0.7 * gap),
        ]
        return [((left, top, left + wide, top + SMALL), left, top + 0.82 * SMALL) for left, top in corners]

    def _hidden(self, box: Box, taken: Sequence[Box]) -> float:
        """How bad it is to write there: off the page, over another name, over nodes or walls."""
        left, top, right, bottom = box
        reach = self.node + 1
        bad = 100.0 * (left < 2 or right > self.width - 2 or top < 0 or bottom > self.height)
        bad += 50.0 * sum(left < r and right > l and top < b and bottom > t for l, t, r, b in taken)  # noqa: E741
        over = (self.x > left - reach) & (self.x < right + reach) & (self.y > top - reach) & (self.y < bottom + reach)
        bad += 4.0 * float(over.sum())
        bad += 0.5 * self._in_band(box)
        x0, y0, x1, y1 = self.walls.T
        crossed = np.maximum(np.minimum(x0, x1), left) <= np.minimum(np.maximum(x0, x1), right)
        crossed &= np.maximum(np.minimum(y0, y1), top) <= np.minimum(np.maximum(y0, y1), bottom)
        return bad + 4.0 * float(crossed.sum())

    def _in_band(self, box: Box) -> int:
        """How many of the points in ``band`` a box would hide."""
        if len(self._band) != len(self.band):
            self._band = np.array(self.band)
        left, top, right, bottom = box
        x, y = self._band.T
        return int(((x > left) & (x < right) & (y > top) & (y < bottom)).sum())

    def write(self, place: int, text: str, taken: list[Box], bold: bool = False) -> None:
        """Write beside a node, where that hides as little as possible; ``taken``: where names are by now."""
        boxes = self._boxes(place, text_width(text, SMALL))
        box, x, y = min(boxes, key=lambda found: self._hidden(found[0], taken))
        taken.append(box)
        self.drawing.text(x, y, text, size=SMALL, halo=palette.BACKGROUND, bold=bold)


class StillScene(Scene):
    """A network at a time. ``names``: node -> what is written beside it."""

    def __init__(self, plan: Plan, time_us: int, width: int) -> None:
        super().__init__(plan, width)
        self.time_us = time_us
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
        taken: list[Box] = []
        for node in nodes:
            self.write(self.place_of[node], self.names[node], taken, node in bold)

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

    def _hidden(self, box: Box, taken: Sequence[Box]) -> float:
        # Names are long and many here: a line below one counts more than in a picture of a few names.
        left, top, right, bottom = box
        return super()._hidden(box, taken) + 1.5 * self._in_band((left - 2, top - 2, right + 2, bottom + 2))

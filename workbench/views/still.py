"""The base class of static pictures of a network, which computes positions on the page and draws links and labels.

Scene(plan, width)    the base class; `marks.LayerScene` draws a run's layers on such a scene
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.views import caption, palette
from workbench.views.changing_layout import TrackVertices
from workbench.views.drawing import Drawing, text_width
from workbench.views.layers import Look
from workbench.views.layout import Layout
from workbench.views.legend import MARGIN, SMALL

TALLEST = 580
LINK_SHADES = 12
AREA_CORNERS = 120
LEAST_GAP = 10.0  # px between two dots on a track
OVER_A_NAME = 50.0  # penalty for writing over another name
Box = tuple[float, float, float, float]


class Scene:
    """A network drawn on a page: links, walls and names of nodes. Subclasses draw the nodes.

    x, y: positions of the nodes in px, float64, shape (nodes,).
    node: radius of a node in px.
    walls: ends of the walls in px, shape (walls, 4), as x0, y0, x1, y1.
    band: points (x, y) in px that the names of nodes should not cover, for example points on links.
    """

    def __init__(self, plan: Layout, width: int, tallest: float = TALLEST) -> None:
        self.plan, self.width = plan, width
        x0, y0, x1, y1 = plan.box_m
        self.scale = min((width - 4 * MARGIN) / (x1 - x0), tallest / (y1 - y0))
        left, top = (width - self.scale * (x1 - x0)) / 2, 1.4 * MARGIN
        self.height = self.scale * (y1 - y0) + 2 * top + 14
        self._corner = left - self.scale * x0, top + self.scale * y1
        self.x = left + self.scale * (plan.x_m - x0)
        self.y = top + self.scale * (y1 - plan.y_m)
        corner, flip = np.array([left - self.scale * x0, top + self.scale * y1] * 2), np.array([1, -1, 1, -1])
        self.walls = corner + self.scale * flip * plan.walls
        self.node = float(np.clip(0.15 * plan.spacing_m * self.scale, 1.8, 6.0))
        self.band: list[tuple[float, float]] = []
        self._band = np.zeros((0, 2))  # copy of ``band`` as an array
        self.drawing = Drawing(width, self.height)

    def to_px(self, x_m: np.ndarray, y_m: np.ndarray) -> np.ndarray:
        """Return the positions in px, shape (points, 2), of points given in m, each of shape (points,)."""
        return np.stack([self._corner[0] + self.scale * x_m, self._corner[1] - self.scale * y_m], axis=1)

    def _point_between(self, a: int, b: int, share: float) -> tuple[float, float]:
        return self.x[a] + share * (self.x[b] - self.x[a]), self.y[a] + share * (self.y[b] - self.y[a])

    def _draw_links(self) -> None:
        """Draw links and walls. Better links are darker and thicker."""
        links = self.plan.links
        shade = np.rint(LINK_SHADES * np.maximum(links["pdr_ab"], links["pdr_ba"]))
        is_silent = (links["pdr_ab"] <= 0) & (links["pdr_ba"] <= 0)
        a, b = links["a"], links["b"]
        ends = np.stack([self.x[a], self.y[a], self.x[b], self.y[b]], axis=1)
        width_factor = 0.6 if self.node < 3 else 1.0
        for level in np.unique(shade).tolist():
            pdr = level / LINK_SHADES
            line_style = {"colour": palette.link_colour(pdr), "width": width_factor * (0.4 + 0.5 * pdr)}
            self.drawing.segments(ends[(shade == level) & ~is_silent], **line_style)
        # In a network that changes, a link may lose all frames for a time.
        self.drawing.segments(ends[is_silent], colour=palette.LINK_GOOD, width=0.5 * width_factor, dash=(2.0, 3.0))
        self.drawing.segments(self.walls, colour=palette.WALL, width=2)

    def _draw_scale_bar(self) -> None:
        length_m = caption.round_length((self.width - 4 * MARGIN) / self.scale / 7)
        right, y = self.width - MARGIN, self.height - 5
        left = right - length_m * self.scale
        self.drawing.segment(left, y, right, y, colour=palette.FAINT_TEXT, width=1.6)
        text_style = {"size": SMALL, "anchor": "end", "colour": palette.FAINT_TEXT}
        self.drawing.text(left - 5, y + 3.5, f"{length_m:g} m", **text_style)

    # Labels

    def _candidate_boxes(self, node_index: int, width: float) -> list[tuple[Box, float, float]]:
        """Return eight possible positions of a node's name, as (box, x of the text, baseline of the text) in px.

        A box is (left, top, right, bottom). ``width``: the width of the name in px.
        """
        x, y, gap = self.x[node_index], self.y[node_index], 1.6 * self.node + 3
        upper_left_corners = [
            (x - width / 2, y - gap - SMALL),
            (x - width / 2, y + gap),
            (x + gap, y - SMALL / 2),
            (x - gap - width, y - SMALL / 2),
            (x + 0.7 * gap, y - 0.7 * gap - SMALL),
            (x - 0.7 * gap - width, y - 0.7 * gap - SMALL),
            (x + 0.7 * gap, y + 0.7 * gap),
            (x - 0.7 * gap - width, y + 0.7 * gap),
        ]
        return [((left, top, left + width, top + SMALL), left, top + 0.82 * SMALL) for left, top in upper_left_corners]

    def _compute_penalty(self, box: Box, taken_boxes: Sequence[Box]) -> float:
        """Return a penalty for writing a node's name in ``box``.

        A name is penalized if it leaves the page or covers other names, nodes, lines or walls. ``taken_boxes``: the
        boxes of the names written so far.
        """
        left, top, right, bottom = box
        margin = self.node + 1
        penalty = 100.0 * (left < 2 or right > self.width - 2 or top < 0 or bottom > self.height)
        penalty += OVER_A_NAME * sum(left < r and right > l and top < b and bottom > t for l, t, r, b in taken_boxes)  # noqa: E741
        is_overlapped = (
            (self.x > left - margin) & (self.x < right + margin) & (self.y > top - margin) & (self.y < bottom + margin)
        )
        penalty += 4.0 * float(is_overlapped.sum())
        penalty += 0.5 * self._count_covered(box)
        x0, y0, x1, y1 = self.walls.T
        is_crossed = np.maximum(np.minimum(x0, x1), left) <= np.minimum(np.maximum(x0, x1), right)
        is_crossed &= np.maximum(np.minimum(y0, y1), top) <= np.minimum(np.maximum(y0, y1), bottom)
        return penalty + 4.0 * float(is_crossed.sum())

    def _count_covered(self, box: Box) -> int:
        """Return the number of points of ``self.band`` in the box (left, top, right, bottom), which is in px."""
        if len(self._band) != len(self.band):
            self._band = np.array(self.band)
        left, top, right, bottom = box
        x, y = self._band.T
        return int(((x > left) & (x < right) & (y > top) & (y < bottom)).sum())

    def write(self, place: int, text: str, taken: list[Box], bold: bool = False, is_required: bool = True) -> None:
        """Write a text beside a node, at the position where the text covers as little as possible.

        place: index of the node in the layout.
        taken: list of the boxes (left, top, right, bottom) of earlier texts in px; the box of this text is added.
        is_required: if False, the text is omitted where every position would cover an earlier text.
        """
        boxes = self._candidate_boxes(place, text_width(text, SMALL))
        penalties = [self._compute_penalty(box, taken) for box, _, _ in boxes]
        best_index = int(np.argmin(penalties))
        if is_required or penalties[best_index] < OVER_A_NAME:
            box, x, y = boxes[best_index]
            taken.append(box)
            self.drawing.text(x, y, text, size=SMALL, halo=palette.BACKGROUND, bold=bold)


def draw_tracks(
    scene: Scene, tracks: TrackVertices, numbers: np.ndarray, time_us: int, duration_us: int, look: Look
) -> None:
    """Draw tracks on the map of a scene: the part before ``time_us`` solid, the part after it dashed.

    numbers: which tracks to draw, as indices into ``tracks.nodes``.
    duration_us: length of the run in µs.
    look: the style of the tracks.
    If the tracks have many vertices, only the parts near ``time_us`` are drawn, see `TrackVertices.window_us`.
    """
    window_us = tracks.window_us if tracks.window_us is not None else duration_us
    low_us, high_us = max(time_us - window_us, 0), min(time_us + window_us, duration_us)
    style: dict[str, Any] = {"colour": look.colour, "width": 0.8 * look.least, "opacity": look.alpha}
    dots = []
    for number in numbers.tolist():
        for part, dash in (((low_us, time_us), ()), ((time_us, high_us), (3.0, 3.0))):
            _, x_m, y_m = tracks.piece(number, *part)
            points = scene.to_px(x_m, y_m)
            scene.drawing.segments(np.concatenate([points[:-1], points[1:]], axis=1), dash=dash, **style)
            dots.append(_thin_points(points[1:-1]))
    if dots:
        scene.drawing.markers("circle", np.concatenate(dots), 1.6, look.colour, None, 0, look.alpha)


def _thin_points(points: np.ndarray) -> np.ndarray:
    """Return points at least `LEAST_GAP` px apart: each point nearer to the previous returned point is left out."""
    indices: list[int] = []
    for index, point in enumerate(points.tolist()):
        if not indices or float(np.hypot(*(points[indices[-1]] - point))) >= LEAST_GAP:
            indices.append(index)
    return points[indices]


def draw_area(scene: Scene, center_m: tuple[float, float], radius_m: float, look: Look) -> None:
    """Draw an area, such as the reach of a jammer: a pale disc with a diamond in its center."""
    center = scene.to_px(*(np.array([axis]) for axis in center_m))
    angles = np.linspace(0, 2 * np.pi, AREA_CORNERS, endpoint=False)
    corners = center + scene.scale * radius_m * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    corners = np.clip(corners, 0, [scene.width, scene.height])
    scene.drawing.polygons(corners[None], fill=look.colour, opacity=look.alpha)
    rim = np.concatenate([corners, np.roll(corners, -1, axis=0)], axis=1)[::2]
    scene.drawing.segments(rim, colour=look.colour, width=0.8, opacity=0.5)
    scene.drawing.markers("diamond", center, 0.5 * look.least, look.colour, palette.BACKGROUND, 1.0)

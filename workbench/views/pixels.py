"""The writer of PNG files: it draws the items of a `Drawing` with Pillow.

Pictures are drawn at twice their size and scaled down, for smooth edges. Opaque items are drawn directly. Translucent
items are blended with the picture below them, which takes longer.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from workbench.views.drawing import (
    Circle,
    Circles,
    Drawing,
    Polygon,
    Polygons,
    Polyline,
    Segment,
    Segments,
    Text,
    font,
    spell,
)
from workbench.views.palette import rgb

OVERSAMPLING = 2


class Pens(NamedTuple):
    """The Pillow objects that draw on a picture.

    opaque: draws opaque items. blending: draws translucent items, whose colours are mixed with those below them. zoom:
    pixels of the picture for each px of the drawing.
    """

    image: Any
    opaque: Any
    blending: Any
    zoom: float

    def of(self, opacity: float) -> Any:
        """Return the Pillow object that draws items with this opacity: ``opaque`` for 1, ``blending`` for less."""
        return self.opaque if opacity >= 1 else self.blending


def png(drawing: Drawing, scale: float) -> bytes:
    """Return the drawing as a PNG file with ``scale`` pixels per px. The file also states its resolution."""
    size_px = max(1, round(drawing.width * scale)), max(1, round(drawing.height * scale))
    image = Image.new("RGB", (size_px[0] * OVERSAMPLING, size_px[1] * OVERSAMPLING), drawing.background)
    pens = Pens(image, ImageDraw.Draw(image), ImageDraw.Draw(image, "RGBA"), scale * OVERSAMPLING)
    for item in drawing.items:
        _DRAW[type(item)](item, pens)
    file = io.BytesIO()
    image.reduce(OVERSAMPLING).save(file, "PNG", dpi=(96 * scale, 96 * scale), compress_level=6)
    return file.getvalue()


def _make_ink(colour: str, opacity: float) -> tuple[int, ...]:
    return rgb(colour) if opacity >= 1 else (*rgb(colour), round(255 * opacity))


def _draw_segment(item: Segment, pens: Pens) -> None:
    _draw_lines(np.array([[item.x0, item.y0, item.x1, item.y1]]), item, pens)


def _draw_segments(item: Segments, pens: Pens) -> None:
    _draw_lines(item.ends, item, pens)


def _draw_lines(ends: np.ndarray, item: Segment | Segments | Polyline, pens: Pens) -> None:
    """Draw lines with round ends. Each line is one shape, so a translucent line has the same colour everywhere."""
    dash = getattr(item, "dash", ())
    if dash:
        ends = np.array([dash_ends for row in ends.tolist() for dash_ends in _split_dashes(row, dash)]).reshape(-1, 4)
    _draw_outlines(
        ends * pens.zoom, item.width * pens.zoom, _make_ink(item.colour, item.opacity), pens.of(item.opacity)
    )


def _draw_outlines(ends: np.ndarray, width: float, ink: tuple[int, ...], pen: Any) -> None:
    half_width = max(width, 1.0) / 2
    corners = 2 if half_width < 2 else 8
    angle = np.arctan2(ends[:, 3] - ends[:, 1], ends[:, 2] - ends[:, 0])[:, None]
    turn = np.linspace(-math.pi / 2, math.pi / 2, corners + 1)
    angles = np.concatenate([angle + turn, angle + math.pi + turn], axis=1)
    positions = np.repeat(ends[:, [2, 3, 0, 1]].reshape(-1, 2, 2), corners + 1, axis=1)
    outlines = positions + half_width * np.stack([np.cos(angles), np.sin(angles)], axis=2)
    for outline in outlines.reshape(len(ends), 4 * (corners + 1)).tolist():
        pen.polygon(outline, fill=ink)


def _split_dashes(row: list[float], dash: tuple[float, ...]) -> list[tuple[float, float, float, float]]:
    x0, y0, x1, y1 = row
    line_length = math.hypot(x1 - x0, y1 - y0)
    if not line_length:
        return [(x0, y0, x1, y1)]
    dashes, start_px, dash_index = [], 0.0, 0
    while start_px < line_length:
        end_px = min(start_px + dash[dash_index % len(dash)], line_length)
        if dash_index % 2 == 0:
            a, b = start_px / line_length, end_px / line_length
            dashes.append((x0 + a * (x1 - x0), y0 + a * (y1 - y0), x0 + b * (x1 - x0), y0 + b * (y1 - y0)))
        start_px, dash_index = end_px, dash_index + 1
    return dashes


def _draw_circle(item: Circle, pens: Pens) -> None:
    _draw_discs([(item.x, item.y)], item, pens)


def _draw_circles(item: Circles, pens: Pens) -> None:
    _draw_discs(item.centers.tolist(), item, pens)


def _draw_discs(centers: Any, item: Circle | Circles, pens: Pens) -> None:
    zoom = pens.zoom
    # SVG draws half of a stroke's width outside of the shape, Pillow all of it inside.
    outer_radius = (item.radius + (item.width / 2 if item.stroke else 0)) * zoom
    fill = _make_ink(item.fill, item.opacity) if item.fill else None
    outline = _make_ink(item.stroke, item.opacity) if item.stroke else None
    ring_width, pen = max(1, round(item.width * zoom)) if item.stroke else 0, pens.of(item.opacity)
    for x, y in centers:
        bounding_box = (
            x * zoom - outer_radius,
            y * zoom - outer_radius,
            x * zoom + outer_radius,
            y * zoom + outer_radius,
        )
        if item.dash:
            _draw_dashed_ring(pen, bounding_box, item, outline, ring_width)
        else:
            pen.ellipse(bounding_box, fill=fill, outline=outline, width=ring_width)


def _draw_dashed_ring(pen: Any, box: tuple[float, ...], item: Circle | Circles, ink: Any, width: int) -> None:
    """Draw a dashed ring. ``box``: its bounding box in pixels; ``ink``: its colour; ``width``: line width in pixels."""
    circumference = 2 * math.pi * item.radius
    dashes = max(round(circumference / sum(item.dash)), 2)
    step = 360 / dashes
    for index in range(dashes):
        pen.arc(box, index * step, (index + item.dash[0] / sum(item.dash)) * step, fill=ink, width=width)


def _draw_polyline(item: Polyline, pens: Pens) -> None:
    if len(item.points) > 1 and item.opacity < 1:
        points = [(x * pens.zoom, y * pens.zoom) for x, y in item.points]
        width = max(1, round(item.width * pens.zoom))
        pens.blending.line(points, fill=_make_ink(item.colour, item.opacity), width=width, joint="curve")
        return
    _draw_lines(np.array([(*start, *end) for start, end in pairwise(item.points)]).reshape(-1, 4), item, pens)


def _draw_polygon(item: Polygon, pens: Pens) -> None:
    _draw_areas(np.array(item.points, dtype=float).reshape(1, -1, 2), item, pens)


def _draw_polygons(item: Polygons, pens: Pens) -> None:
    _draw_areas(item.corners, item, pens)


def _draw_areas(corners: np.ndarray, item: Polygon | Polygons, pens: Pens) -> None:
    corners = corners * pens.zoom
    pen = pens.of(item.opacity)
    if item.fill:
        ink = _make_ink(item.fill, item.opacity)
        for points in corners.reshape(len(corners), -1).tolist():
            pen.polygon(points, fill=ink)
    if item.stroke:
        edges = np.concatenate([corners, np.roll(corners, -1, axis=1)], axis=2).reshape(-1, 4)
        _draw_outlines(edges, item.width * pens.zoom, _make_ink(item.stroke, item.opacity), pen)


def _draw_text(item: Text, pens: Pens) -> None:
    zoom = pens.zoom
    text_font = font(item.size * zoom)
    if item.turn:
        _draw_rotated_text(item, pens.image, text_font, zoom)
        return
    text_position, spelled_text = (item.x * zoom, item.y * zoom), spell(item.text)
    # The font has one weight; a rim in the text's colour makes it bold.
    bold = max(1, round(0.022 * item.size * zoom)) if item.bold else 0
    style = {"font": text_font, "anchor": _ANCHORS[item.anchor]}
    if item.halo:
        pens.opaque.text(text_position, spelled_text, fill=item.halo, stroke_width=round(2 * zoom), **style)
    pens.opaque.text(text_position, spelled_text, fill=item.colour, stroke_width=bold, **style)


_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def _draw_rotated_text(item: Text, image: Any, text_font: Any, zoom: float) -> None:
    text = spell(item.text)
    reach = round(text_font.getlength(text) + 2 * item.size * zoom)
    mask = Image.new("L", (2 * reach, 2 * reach))
    ImageDraw.Draw(mask).text((reach, reach), text, font=text_font, anchor=_ANCHORS[item.anchor], fill=255)
    mask = mask.rotate(item.turn, resample=Image.Resampling.BICUBIC)
    corner = round(item.x * zoom) - reach, round(item.y * zoom) - reach
    image.paste(Image.new("RGB", mask.size, item.colour), corner, mask)


_DRAW: dict[type, Callable[[Any, Pens], None]] = {
    Segment: _draw_segment,
    Circle: _draw_circle,
    Polyline: _draw_polyline,
    Polygon: _draw_polygon,
    Text: _draw_text,
    Segments: _draw_segments,
    Circles: _draw_circles,
    Polygons: _draw_polygons,
}

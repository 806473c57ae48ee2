"""A small display list that writes itself as SVG or PNG: figures for papers, without a browser.

    drawing = Drawing(320, 200)
    drawing.segment(10, 10, 300, 150, colour="#0072B2", width=2)
    drawing.text(160, 190, "a line", anchor="middle")
    drawing.to_svg(), drawing.to_png(scale=2), drawing.save("line.png")

Lengths are in px (96 to the inch), x to the right and y down, from the upper left corner. What is drawn later lies on
top. PNGs are drawn by Pillow at twice their size and scaled down, for smooth edges; Pillow brings its own font, so a
picture is the same on every machine.
"""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax import saxutils

from workbench.errors import ParameterError
from workbench.views.palette import BACKGROUND, TEXT, rgb

FONT_FAMILY = "Aileron, Helvetica, Arial, 'DejaVu Sans', sans-serif"
OVERSAMPLING = 2
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Segment:
    """A straight line; ``dash``: lengths drawn and left out in turn."""

    x0: float
    y0: float
    x1: float
    y1: float
    colour: str = TEXT
    width: float = 1.0
    opacity: float = 1.0
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Circle:
    """A disc, a ring, or both."""

    x: float
    y: float
    radius: float
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Polyline:
    """Straight lines from point to point."""

    points: Points
    colour: str = TEXT
    width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Polygon:
    """A filled area; with ``stroke`` also its outline."""

    points: Points
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Text:
    """A line of text; ``y`` is its baseline. ``turn``: degrees counter-clockwise; ``halo``: a rim of that colour."""

    x: float
    y: float
    text: str
    size: float = 12.0
    colour: str = TEXT
    anchor: str = "start"
    bold: bool = False
    halo: str | None = None
    turn: float = 0.0


Item = Segment | Circle | Polyline | Polygon | Text


@dataclass
class Drawing:
    """Items in the order in which they are drawn, on a white page of ``width`` x ``height`` px."""

    width: float
    height: float
    title: str = ""
    items: list[Item] = field(default_factory=list)

    def segment(self, x0: float, y0: float, x1: float, y1: float, **look: Any) -> None:
        """Add a `Segment`."""
        self.items.append(Segment(x0, y0, x1, y1, **look))

    def arrow(
        self, x0: float, y0: float, x1: float, y1: float, head: float = 6.0, at: float = 1.0, **look: Any
    ) -> None:
        """Add a segment with a triangular head, ``head`` px long, at a share of its length."""
        line = Segment(x0, y0, x1, y1, **look)
        self.items.append(line)
        length = math.hypot(x1 - x0, y1 - y0)
        if length:
            ux, uy = (x1 - x0) / length, (y1 - y0) / length
            tip_x, tip_y = x0 + at * (x1 - x0) + ux * head / 2, y0 + at * (y1 - y0) + uy * head / 2
            back_x, back_y = tip_x - ux * head, tip_y - uy * head
            side = 0.42 * head
            points = [
                (tip_x, tip_y),
                (back_x - uy * side, back_y + ux * side),
                (back_x + uy * side, back_y - ux * side),
            ]
            self.items.append(Polygon(points, fill=line.colour, opacity=line.opacity))

    def circle(self, x: float, y: float, radius: float, **look: Any) -> None:
        """Add a `Circle`."""
        self.items.append(Circle(x, y, radius, **look))

    def rectangle(self, x: float, y: float, width: float, height: float, **look: Any) -> None:
        """Add a rectangle by its upper left corner, as a `Polygon`."""
        self.polygon([(x, y), (x + width, y), (x + width, y + height), (x, y + height)], **look)

    def polyline(self, points: Points, **look: Any) -> None:
        """Add a `Polyline`."""
        self.items.append(Polyline(tuple(points), **look))

    def polygon(self, points: Points, **look: Any) -> None:
        """Add a `Polygon`."""
        self.items.append(Polygon(tuple(points), **look))

    def frame(self, x: float, y: float, wide: float, high: float, **look: Any) -> None:
        """Add a rectangle whose outline may have a ``width``, as a `Polygon`."""
        self.polygon([(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)], **look)

    def cross(self, x: float, y: float, radius: float, **look: Any) -> None:
        """Add a diagonal cross, two segments."""
        self.segment(x - radius, y - radius, x + radius, y + radius, **look)
        self.segment(x - radius, y + radius, x + radius, y - radius, **look)

    def marker(self, kind: str, x: float, y: float, radius: float, fill: str, stroke: str, width: float = 1.0) -> None:
        """Add a marker by Bokeh's name: circle, square, triangle, diamond or x."""
        if kind == "circle":
            self.circle(x, y, radius, fill=fill, stroke=stroke, width=width)
        elif kind == "x":
            self.cross(x, y, 0.8 * radius, colour=fill, width=0.45 * radius)
        else:
            points = [(x + radius * dx, y + radius * dy) for dx, dy in _MARKERS[kind]]
            self.polygon(points, fill=fill, stroke=stroke, width=width)

    def text(self, x: float, y: float, text: str, **look: Any) -> None:
        """Add a `Text`, unless it is empty."""
        if text:
            self.items.append(Text(x, y, text, **look))

    def add(self, other: Drawing, x: float, y: float) -> None:
        """Add all items of another drawing, moved by (x, y)."""
        self.items += [_moved(item, x, y) for item in other.items]

    def to_svg(self) -> str:
        """The drawing as an SVG document."""
        body = "\n".join(_SVG[type(item)](item) for item in self.items)
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        title = f"<title>{escape(self.title)}</title>\n" if self.title else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONT_FAMILY}">\n{title}'
            f'<rect width="100%" height="100%" fill="{BACKGROUND}"/>\n{body}\n</svg>\n'
        )

    def to_png(self, scale: float = 2, colours: int | None = None) -> bytes:
        """The drawing as a PNG file of ``scale`` pixels per px, with its resolution noted in it.

        ``colours``, 2 to 256, makes a file of a quarter of the size that is a little off in its colours.
        """
        from PIL import Image, ImageDraw

        if not 0 < scale <= 16:
            raise ParameterError(f"to_png: scale is {scale!r}; it must be a number above 0 and at most 16")
        zoom = scale * OVERSAMPLING
        size = max(1, round(self.width * scale)), max(1, round(self.height * scale))
        image = Image.new("RGB", (size[0] * OVERSAMPLING, size[1] * OVERSAMPLING), BACKGROUND)
        pen = ImageDraw.Draw(image, "RGBA")
        for item in self.items:
            _PNG[type(item)](item, image, pen, zoom)
        image = image.resize(size, Image.Resampling.LANCZOS)
        if colours is not None:
            image = image.quantize(colours, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        file = io.BytesIO()
        image.save(file, "PNG", dpi=(96 * scale, 96 * scale), optimize=True)
        return file.getvalue()

    def save(self, path: str | Path, scale: float = 2) -> Path:
        """Write an .svg or .png file, by the path's ending; returns the path."""
        path = Path(path)
        if path.suffix.lower() == ".svg":
            path.write_text(self.to_svg(), encoding="utf-8")
        elif path.suffix.lower() == ".png":
            path.write_bytes(self.to_png(scale))
        else:
            raise ParameterError(f"a drawing cannot be written as {path.name!r}; the name must end in .svg or .png")
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        # Of two pixels per px, and shown in its own size: a notebook would stretch it to the width of the page.
        size = {"width": round(self.width), "height": round(self.height)}
        return {"text/plain": repr(self), "image/png": self.to_png()}, {"image/png": size}

    def __repr__(self) -> str:
        return f"Drawing({self.title!r}, {self.width:g} x {self.height:g} px, {len(self.items)} items)"


_MARKERS = {
    "square": ((-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)),
    "triangle": ((0, -1.1), (1.05, 0.75), (-1.05, 0.75)),
    "diamond": ((0, -1.2), (1.0, 0), (0, 1.2), (-1.0, 0)),
}


# Pillow's font knows ASCII and these; what else may come is spelled for it (in SVGs it is not).
_KNOWN = frozenset("©«°±´·»‘’“”…‹›⁄™")
_SPELLED = {
    "µ": "u",
    "μ": "u",
    "×": "x",
    "–": "-",
    "—": "-",
    "−": "-",
    "→": "->",
    "←": "<-",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
}


def spell(text: str) -> str:
    """The text in characters that Pillow's font has: "µs" -> "us", "½" -> "1/2", and "?" for what has no spelling."""
    return "".join(map(_spell, text))


def _spell(character: str) -> str:
    if character.isascii() or character in _KNOWN:
        return character
    apart = unicodedata.normalize("NFKD", character).replace("\N{FRACTION SLASH}", "/")
    plain = "".join(c for c in apart if c.isascii())
    return _SPELLED.get(character) or plain or "?"


def text_width(text: str, size: float = 12.0) -> float:
    """About how wide a line of text is, in px."""
    return _font(40.0).getlength(spell(text)) * size / 40.0


@lru_cache(maxsize=64)
def _font(size: float) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _moved(item: Item, dx: float, dy: float) -> Item:
    values = {one.name: getattr(item, one.name) for one in fields(item)}
    for name in values:
        if name in ("x", "x0", "x1"):
            values[name] += dx
        elif name in ("y", "y0", "y1"):
            values[name] += dy
        elif name == "points":
            values[name] = tuple((x + dx, y + dy) for x, y in values[name])
    return type(item)(**values)


# SVG


def escape(text: str) -> str:
    """Text for XML, without the control characters that XML forbids even escaped."""
    return saxutils.escape("".join(character for character in text if character.isprintable()))


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _line_look(colour: str, width: float, opacity: float) -> str:
    faded = f' stroke-opacity="{_number(opacity)}"' if opacity < 1 else ""
    return f'stroke="{colour}" stroke-width="{_number(width)}" stroke-linecap="round"{faded}'


def _area_look(item: Circle | Polygon) -> str:
    stroke = f' stroke="{item.stroke}" stroke-width="{_number(item.width)}"' if item.stroke else ""
    faded = f' opacity="{_number(item.opacity)}"' if item.opacity < 1 else ""
    return f'fill="{item.fill or "none"}"{stroke}{faded}'


def _svg_points(points: Points) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _svg_segment(item: Segment) -> str:
    ends = " ".join(f'{name}="{_number(getattr(item, name[0] + str(int(name[1]) - 1)))}"' for name in _SVG_ENDS)
    dash = f' stroke-dasharray="{" ".join(map(_number, item.dash))}"' if item.dash else ""
    return f"<line {ends} {_line_look(item.colour, item.width, item.opacity)}{dash}/>"


_SVG_ENDS = ("x1", "y1", "x2", "y2")


def _svg_circle(item: Circle) -> str:
    return f'<circle cx="{_number(item.x)}" cy="{_number(item.y)}" r="{_number(item.radius)}" {_area_look(item)}/>'


def _svg_polyline(item: Polyline) -> str:
    look = _line_look(item.colour, item.width, item.opacity)
    return f'<polyline points="{_svg_points(item.points)}" fill="none" stroke-linejoin="round" {look}/>'


def _svg_polygon(item: Polygon) -> str:
    return f'<polygon points="{_svg_points(item.points)}" stroke-linejoin="round" {_area_look(item)}/>'


def _svg_text(item: Text) -> str:
    x, y = _number(item.x), _number(item.y)
    turn = f' transform="rotate({_number(-item.turn)} {x} {y})"' if item.turn else ""
    weight = ' font-weight="600"' if item.bold else ""
    halo = f' stroke="{item.halo}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"' if item.halo else ""
    look = f'font-size="{_number(item.size)}" fill="{item.colour}" text-anchor="{item.anchor}"{weight}{halo}{turn}'
    return f'<text x="{x}" y="{y}" {look}>{escape(item.text)}</text>'


_SVG: dict[type, Callable[[Any], str]] = {
    Segment: _svg_segment,
    Circle: _svg_circle,
    Polyline: _svg_polyline,
    Polygon: _svg_polygon,
    Text: _svg_text,
}


# PNG


def _ink(colour: str, opacity: float) -> tuple[int, int, int, int]:
    return (*rgb(colour), round(255 * opacity))


def _png_segment(item: Segment, _: Any, pen: Any, zoom: float) -> None:
    ink = _ink(item.colour, item.opacity)
    for x0, y0, x1, y1 in _dashes(item):
        _stroke(pen, (x0 * zoom, y0 * zoom), (x1 * zoom, y1 * zoom), item.width * zoom, ink)


def _dashes(item: Segment) -> list[tuple[float, float, float, float]]:
    length = math.hypot(item.x1 - item.x0, item.y1 - item.y0)
    if not item.dash or not length:
        return [(item.x0, item.y0, item.x1, item.y1)]
    pieces, start, which = [], 0.0, 0
    while start < length:
        end = min(start + item.dash[which % len(item.dash)], length)
        if which % 2 == 0:
            a, b = start / length, end / length
            dx, dy = item.x1 - item.x0, item.y1 - item.y0
            pieces.append((item.x0 + a * dx, item.y0 + a * dy, item.x0 + b * dx, item.y0 + b * dy))
        start, which = end, which + 1
    return pieces


def _stroke(pen: Any, start: tuple[float, float], end: tuple[float, float], width: float, ink: tuple) -> None:
    """A line with round ends, in one piece, so that a translucent one is evenly so."""
    (x0, y0), (x1, y1) = start, end
    angle = math.atan2(y1 - y0, x1 - x0)
    half = max(width, 1.0) / 2
    corners = 2 if half < 2 else 8
    outline = []
    for x, y, facing in ((x1, y1, angle - math.pi / 2), (x0, y0, angle + math.pi / 2)):
        for i in range(corners + 1):
            turn = facing + math.pi * i / corners
            outline.append((x + half * math.cos(turn), y + half * math.sin(turn)))
    pen.polygon(outline, fill=ink)


def _png_circle(item: Circle, _: Any, pen: Any, zoom: float) -> None:
    x, y, radius = item.x * zoom, item.y * zoom, item.radius * zoom
    # SVG draws half of a stroke's width outside of the shape, Pillow all of it inside.
    outer = radius + item.width * zoom / 2 if item.stroke else radius
    pen.ellipse(
        (x - outer, y - outer, x + outer, y + outer),
        fill=_ink(item.fill, item.opacity) if item.fill else None,
        outline=_ink(item.stroke, item.opacity) if item.stroke else None,
        width=max(1, round(item.width * zoom)) if item.stroke else 0,
    )


def _png_polyline(item: Polyline, _: Any, pen: Any, zoom: float) -> None:
    ink = _ink(item.colour, item.opacity)
    points = [(x * zoom, y * zoom) for x, y in item.points]
    if len(points) > 1 and item.opacity < 1:
        pen.line(points, fill=ink, width=max(1, round(item.width * zoom)), joint="curve")
        return
    for start, end in pairwise(points):
        _stroke(pen, start, end, item.width * zoom, ink)


def _png_polygon(item: Polygon, _: Any, pen: Any, zoom: float) -> None:
    points = [(x * zoom, y * zoom) for x, y in item.points]
    if item.fill:
        pen.polygon(points, fill=_ink(item.fill, item.opacity))
    if item.stroke:
        for start, end in zip(points, [*points[1:], points[0]], strict=True):
            _stroke(pen, start, end, item.width * zoom, _ink(item.stroke, item.opacity))


def _png_text(item: Text, image: Any, pen: Any, zoom: float) -> None:
    font = _font(item.size * zoom)
    anchor = {"start": "ls", "middle": "ms", "end": "rs"}[item.anchor]
    if item.turn:
        _png_turned(item, image, font, zoom)
        return
    where, text = (item.x * zoom, item.y * zoom), spell(item.text)
    if item.halo:
        pen.text(where, text, font=font, anchor=anchor, fill=item.halo, stroke_width=round(2 * zoom))
    # The font has one weight; a rim of its own colour makes it bold.
    bold = max(1, round(0.022 * item.size * zoom)) if item.bold else 0
    pen.text(where, text, font=font, anchor=anchor, fill=item.colour, stroke_width=bold)


def _png_turned(item: Text, image: Any, font: Any, zoom: float) -> None:
    from PIL import Image, ImageDraw

    text = spell(item.text)
    reach = round(font.getlength(text) + 2 * item.size * zoom)
    mask = Image.new("L", (2 * reach, 2 * reach))
    anchor = {"start": "ls", "middle": "ms", "end": "rs"}[item.anchor]
    ImageDraw.Draw(mask).text((reach, reach), text, font=font, anchor=anchor, fill=255)
    mask = mask.rotate(item.turn, resample=Image.Resampling.BICUBIC)
    corner = round(item.x * zoom) - reach, round(item.y * zoom) - reach
    image.paste(Image.new("RGB", mask.size, item.colour), corner, mask)


_PNG: dict[type, Callable[[Any, Any, Any, float], None]] = {
    Segment: _png_segment,
    Circle: _png_circle,
    Polyline: _png_polyline,
    Polygon: _png_polygon,
    Text: _png_text,
}

"""A small display list that is written as SVG, PDF or PNG: figures for papers, without a browser.

    drawing = Drawing(320, 200)
    drawing.segment(10, 10, 300, 150, colour="#0072B2", width=2)
    drawing.text(160, 190, "a line", anchor="middle")
    drawing.to_svg(), drawing.to_png(scale=2), drawing.save("line.pdf")

Lengths are in px (96 to the inch), x to the right and y down, from the upper left corner. Later items are drawn over
earlier ones. Many segments, circles or polygons of one style are one item, made of arrays: `Segments`, `Circles`,
`Polygons`. Pillow draws the PNGs (`pixels`) with its own font, so a picture is the same on every machine. matplotlib
writes the PDFs (`pdf`) with the same font; it is imported when the first PDF is written.

Items have the colours for a light background. ``in_dark()`` returns the same drawing for a dark background
(`palette.in_dark`). The SVG element from ``to_html()`` has the colours for both, and follows the theme of JupyterLab or
else the system's setting. A notebook displays a drawing as an image of this element (`image`), because Jupyter shows
images, but not SVG elements, in a notebook that is not trusted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self
from xml.sax import saxutils

import numpy as np

from workbench.errors import ParameterError, WorkbenchError
from workbench.records import carriers
from workbench.records.record import to_text
from workbench.views.image import image_html
from workbench.views.palette import BACKGROUND, TEXT, in_dark

FONT_FAMILY = "Aileron, Helvetica, Arial, 'DejaVu Sans', sans-serif"
SHAPES_PER_PATH = 32  # browsers draw longer paths slowly
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Segment:
    """A straight line. ``dash``: lengths of dashes and gaps in px; () means a solid line."""

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
    """A disc (``fill``), a ring (``stroke``), or both.

    ``dash``: lengths of dashes and gaps in px; ``tooltip``: text shown on hovering.
    """

    x: float
    y: float
    radius: float
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    opacity: float = 1.0
    tooltip: str = ""
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Polyline:
    """Straight lines from point to point."""

    points: Points
    colour: str = TEXT
    width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Polygon:
    """A filled area, or with ``stroke`` also its outline. ``tooltip``: text shown on hovering."""

    points: Points
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    opacity: float = 1.0
    tooltip: str = ""


@dataclass(frozen=True, eq=False)
class Segments:
    """Straight lines of one style. ``ends``: float64, shape (lines, 4), as x0, y0, x1, y1."""

    ends: np.ndarray
    colour: str = TEXT
    width: float = 1.0
    opacity: float = 1.0
    dash: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Circles:
    """Circles of one style. ``centers``: float64, shape (circles, 2)."""

    centers: np.ndarray
    radius: float
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    opacity: float = 1.0
    dash: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Polygons:
    """Polygons of one style. ``corners``: float64, shape (polygons, corners of each, 2)."""

    corners: np.ndarray
    fill: str | None = None
    stroke: str | None = None
    width: float = 1.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Text:
    """A line of text.

    x: its start, middle or end, as given by ``anchor``.
    y: its baseline.
    turn: angle in degrees, counter-clockwise.
    halo: colour of a rim around the letters.
    """

    x: float
    y: float
    text: str
    size: float = 12.0
    colour: str = TEXT
    anchor: str = "start"
    bold: bool = False
    halo: str | None = None
    turn: float = 0.0


Item = Segment | Circle | Polyline | Polygon | Text | Segments | Circles | Polygons
_COLOUR_FIELDS = ("colour", "fill", "stroke", "halo")


@dataclass
class Drawing:
    """A list of items in drawing order, on a page of ``width`` x ``height`` px.

    is_dark: whether the colours are for a dark page. record: a function that returns a record (`workbench.records`) of
    how to reproduce the drawing, which is stored in its files; None: files have no record.

    In the methods that add items, ``look`` contains further fields of the item, such as ``colour`` and ``width``.
    """

    width: float
    height: float
    title: str = ""
    items: list[Item] = field(default_factory=list)
    is_dark: bool = False
    record: Callable[[], Mapping[str, Any]] | None = field(default=None, compare=False)

    @property
    def background(self) -> str:
        """The colour of the page."""
        return in_dark(BACKGROUND) if self.is_dark else BACKGROUND

    def segment(self, x0: float, y0: float, x1: float, y1: float, **look: Any) -> None:
        """Add a `Segment` from (x0, y0) to (x1, y1); ``look``: its other fields, such as ``colour``."""
        self.items.append(Segment(x0, y0, x1, y1, **look))

    def arrow(
        self, x0: float, y0: float, x1: float, y1: float, head: float = 6.0, at: float = 1.0, **look: Any
    ) -> None:
        """Add a line with a triangular head ``head`` px long. ``at``: position of the head along the line, 0 to 1.

        ``look``: other fields of the `Segment`, such as ``colour``, which the head has too.
        """
        line = Segment(x0, y0, x1, y1, **look)
        self.items.append(line)
        if (x0, y0) != (x1, y1):
            (corners,) = _head_triangles(np.array([[x0, y0, x1, y1]]), head, at).tolist()
            self.items.append(Polygon([(x, y) for x, y in corners], fill=line.colour, opacity=line.opacity))

    def circle(self, x: float, y: float, radius: float, **look: Any) -> None:
        """Add a `Circle` around (x, y); ``look``: its other fields, such as ``fill``."""
        self.items.append(Circle(x, y, radius, **look))

    def rectangle(self, x: float, y: float, width: float, height: float, **look: Any) -> None:
        """Add a rectangle as a `Polygon`, given its upper left corner and its size; ``look``: its style."""
        self.polygon([(x, y), (x + width, y), (x + width, y + height), (x, y + height)], **look)

    def polyline(self, points: Points, **look: Any) -> None:
        """Add a `Polyline` through the points; ``look``: its other fields, such as ``colour``."""
        self.items.append(Polyline(tuple(points), **look))

    def polygon(self, points: Points, **look: Any) -> None:
        """Add a `Polygon` with these corners; ``look``: its other fields, such as ``fill``."""
        self.items.append(Polygon(tuple(points), **look))

    def frame(self, x: float, y: float, frame_width: float, frame_height: float, **look: Any) -> None:
        """Add a rectangle, given its upper left corner and its size.

        Unlike `rectangle`, this method accepts the ``width`` of the outline in ``look``, as `polygon` does.
        """
        self.polygon([(x, y), (x + frame_width, y), (x + frame_width, y + frame_height), (x, y + frame_height)], **look)

    def cross(self, x: float, y: float, radius: float, **look: Any) -> None:
        """Add a diagonal cross: two lines that meet at (x, y); ``look``: their style, such as ``colour``."""
        self.segment(x - radius, y - radius, x + radius, y + radius, **look)
        self.segment(x - radius, y + radius, x + radius, y - radius, **look)

    def marker(
        self,
        kind: str,
        x: float,
        y: float,
        radius: float,
        fill: str,
        stroke: str,
        width: float = 1.0,
        tooltip: str = "",
    ) -> None:
        """Add a marker centered at (x, y).

        kind: "circle", "square", "triangle", "diamond" or "x".
        radius: about half of the marker's size, in px.
        stroke, width: colour and width in px of its outline; an "x" has no outline.
        tooltip: text shown on hovering; an "x" has no tooltip.
        """
        if kind == "circle":
            self.circle(x, y, radius, fill=fill, stroke=stroke, width=width, tooltip=tooltip)
        elif kind == "x":
            self.cross(x, y, 0.8 * radius, colour=fill, width=0.45 * radius)
        else:
            points = [(x + radius * dx, y + radius * dy) for dx, dy in _MARKERS[kind]]
            self.polygon(points, fill=fill, stroke=stroke, width=width, tooltip=tooltip)

    def text(self, x: float, y: float, text: str, **look: Any) -> None:
        """Add a `Text` at (x, y), unless the text is empty; ``look``: its other fields, such as ``anchor``."""
        if text:
            self.items.append(Text(x, y, text, **look))

    def add(self, other: Drawing, x: float, y: float) -> None:
        """Add all items of the drawing ``other``, moved by (x, y) px."""
        self.items += [_move_item(item, x, y) for item in other.items]

    # Many items of one style; empty arrays add nothing

    def segments(self, ends: np.ndarray, **look: Any) -> None:
        """Add a line for each row (x0, y0, x1, y1) of ``ends``, as `Segments`; ``look``: style, such as ``colour``."""
        if len(ends):
            self.items.append(Segments(ends, **look))

    def circles(self, centers: np.ndarray, radius: float, **look: Any) -> None:
        """Add a circle at each position in ``centers``, as `Circles`; ``look``: their style, such as ``fill``."""
        if len(centers):
            self.items.append(Circles(centers, radius, **look))

    def polygons(self, corners: np.ndarray, **look: Any) -> None:
        """Add polygons with equally many corners; ``corners``: shape (polygons, corners, 2); ``look``: their style."""
        if len(corners):
            self.items.append(Polygons(corners, **look))

    def arrows(self, ends: np.ndarray, head: float | np.ndarray, at: float, **look: Any) -> None:
        """Add an `arrow` for each row (x0, y0, x1, y1) of ``ends``.

        ``head``: length of the heads in px, one number for all arrows or one for each. ``at``: position of each head
        along its line, 0 to 1. ``look``: style of the lines, such as ``colour``.
        """
        self.segments(ends, **look)
        has_length = (ends[:, :2] != ends[:, 2:]).any(axis=1)
        fill = {"fill": look.get("colour", TEXT), "opacity": look.get("opacity", 1.0)}
        self.polygons(_head_triangles(ends[has_length], np.broadcast_to(head, len(ends))[has_length], at), **fill)

    def crosses(self, centers: np.ndarray, radius: float, **look: Any) -> None:
        """Add a `cross` at each position in ``centers``, shape (crosses, 2)."""
        doubled_centers = np.tile(centers, 2)
        falling, rising = np.array([-1, -1, 1, 1]) * radius, np.array([-1, 1, 1, -1]) * radius
        self.segments(np.stack([doubled_centers + falling, doubled_centers + rising], axis=1).reshape(-1, 4), **look)

    def markers(
        self,
        kind: str,
        centers: np.ndarray,
        radius: float,
        fill: str,
        stroke: str | None = None,
        width: float = 1.0,
        opacity: float = 1.0,
    ) -> None:
        """Add a `marker` at each position in ``centers``, shape (markers, 2); the markers have no tooltips."""
        style: dict[str, Any] = {"fill": fill, "stroke": stroke, "width": width, "opacity": opacity}
        if kind == "circle":
            self.circles(centers, radius, **style)
        elif kind == "x":
            self.crosses(centers, 0.8 * radius, colour=fill, width=0.45 * radius, opacity=opacity)
        else:
            self.polygons(centers[:, None, :] + radius * np.array(_MARKERS[kind]), **style)

    # Writing

    def in_dark(self) -> Self:
        """Return the same drawing for a dark background."""
        if self.is_dark:
            return self
        return replace(self, items=[_darken_item(item) for item in self.items], is_dark=True)

    def elements(self) -> list[str]:
        """Return the items as SVG elements in drawing order."""
        return [element for item in self.items for element in _SVG[type(item)](item)]

    def to_svg(self, dark: bool = False) -> str:
        """Return the drawing as an SVG document; ``dark``: for a dark background."""
        if dark:
            return self.in_dark().to_svg()
        svg = self.frame_svg("\n".join(self.elements()))
        return carriers.add_to_svg(svg, to_text(self.record())) if self.record else svg

    def to_html(self) -> str:
        """Return the drawing as an SVG element for a page. It follows the light or dark theme of the page."""
        elements_svg = "\n".join(self.elements())
        return self.frame_svg(elements_svg, themed(elements_svg, self.background))

    def to_image_html(self) -> str:
        """Return the drawing as HTML for the output of a notebook's cell: an image of the SVG element of `to_html`.

        In contrast to an SVG element, the image is also displayed in a notebook that is not trusted.
        """
        return image_html(self.to_html(), self.title or "a drawing", self.width, self.height)

    def frame_svg(self, body: str, style: str = "") -> str:
        """Return an SVG document of this drawing, or an SVG element for an HTML page.

        body: the SVG elements of the drawing's items.
        style: "" for a document; for a page, the style sheet that `themed` returns.
        """
        size_text = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        title = f"<title>{escape(self.title)}</title>\n" if self.title else ""
        page = f' class="{THEMED}" style="max-width:100%;height:auto"' if style else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size_text} font-family="{FONT_FAMILY}"{page}>\n{title}{style}'
            f'<rect width="100%" height="100%" fill="{self.background}"/>\n{body}\n</svg>\n'
        )

    def to_png(self, scale: float = 2, dark: bool = False) -> bytes:
        """Return the drawing as a PNG file, which also states its resolution.

        ``scale``: number of the image's pixels for each px, the drawing's unit of length (1/96 inch).
        """
        from workbench.views.pixels import png

        if not 0 < scale <= 16:
            raise ParameterError(f"to_png: scale is {scale!r}; it must be a number above 0 and at most 16")
        png_bytes = png(self.in_dark() if dark else self, scale)
        return carriers.add_to_png(png_bytes, to_text(self.record())) if self.record else png_bytes

    def to_pdf(self, dark: bool = False) -> bytes:
        """Return the drawing as a PDF file with vector graphics. Raises WorkbenchError if matplotlib is missing."""
        try:
            from workbench.views.pdf import pdf
        except ModuleNotFoundError as error:
            raise WorkbenchError(f"a PDF needs matplotlib ({error}): pip install 'matplotlib>=3.9,<4'") from None
        pdf_bytes = pdf(self.in_dark() if dark else self)
        return carriers.add_to_pdf(pdf_bytes, to_text(self.record())) if self.record else pdf_bytes

    def save(self, path: str | Path, scale: float = 2, dark: bool = False) -> Path:
        """Write the drawing to an .svg, .pdf or .png file, as the suffix of the path requires, and return the path.

        ``scale``: pixels per px of a PNG. Raises ParameterError for any other suffix.
        """
        path = Path(path)
        if path.suffix.lower() == ".svg":
            path.write_text(self.to_svg(dark), encoding="utf-8")
        elif path.suffix.lower() == ".pdf":
            path.write_bytes(self.to_pdf(dark))
        elif path.suffix.lower() == ".png":
            path.write_bytes(self.to_png(scale, dark))
        else:
            raise ParameterError(
                f"the file name is {path.name!r}; a drawing is written as SVG, PDF or PNG, so it must end in .svg, "
                ".pdf or .png"
            )
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self.to_image_html()}

    def __repr__(self) -> str:
        return f"Drawing({self.title!r}, {self.width:g} x {self.height:g} px, {len(self.items)} items)"


_MARKERS = {
    "square": ((-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)),
    "triangle": ((0, -1.1), (1.05, 0.75), (-1.05, 0.75)),
    "diamond": ((0, -1.2), (1.0, 0), (0, 1.2), (-1.0, 0)),
}


# Pillow's font has ASCII and these characters; others are replaced in PNGs, not in SVGs.
_IN_FONT = frozenset("©«°±´·»‘’“”…‹›⁄™")
_SPELLINGS = {
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
    """Return the text with only characters of Pillow's font: "µs" -> "us", "½" -> "1/2", unknown characters -> "?"."""
    return "".join(map(_spell_character, text))


def is_in_font(character: str) -> bool:
    """Return whether Pillow's font has this character."""
    return character.isascii() or character in _IN_FONT


def _spell_character(character: str) -> str:
    if is_in_font(character):
        return character
    decomposed = unicodedata.normalize("NFKD", character).replace("\N{FRACTION SLASH}", "/")
    ascii_text = "".join(c for c in decomposed if c.isascii())
    return _SPELLINGS.get(character) or ascii_text or "?"


def text_width(text: str, size: float = 12.0) -> float:
    """Return the approximate width of a line of text in px. ``size``: size of the font in px."""
    return font(40.0).getlength(spell(text)) * size / 40.0


@lru_cache(maxsize=64)
def font(size: float) -> Any:
    """Return Pillow's built-in font; ``size``: in px."""
    from PIL import ImageFont

    return ImageFont.load_default(size)


def _head_triangles(ends: np.ndarray, head: float | np.ndarray, at: float) -> np.ndarray:
    """Return the corners of triangular arrow heads, shape (arrows, 3, 2). No arrow may have length 0.

    ``ends``: a row (x0, y0, x1, y1) for each arrow. ``head``: length of the heads in px. ``at``: position of each head
    along its line, 0 to 1.
    """
    start_points, direction = ends[:, :2], ends[:, 2:] - ends[:, :2]
    head_vectors = direction / np.hypot(direction[:, :1], direction[:, 1:]) * np.reshape(head, (-1, 1))
    side_vectors = 0.42 * np.stack([-head_vectors[:, 1], head_vectors[:, 0]], axis=1)
    head_centers = start_points + at * direction
    return np.stack(
        [
            head_centers + head_vectors / 2,
            head_centers - head_vectors / 2 + side_vectors,
            head_centers - head_vectors / 2 - side_vectors,
        ],
        axis=1,
    )


def _darken_item(item: Item) -> Item:
    colours = {name: getattr(item, name, None) for name in _COLOUR_FIELDS}
    dark_colours: dict[str, Any] = {name: in_dark(colour) for name, colour in colours.items() if colour}
    return replace(item, **dark_colours)


def _move_item(item: Item, dx: float, dy: float) -> Item:
    moved_values: dict[str, Any] = {}
    for item_field in fields(item):
        name = item_field.name
        if name in ("x", "x0", "x1"):
            moved_values[name] = getattr(item, name) + dx
        elif name in ("y", "y0", "y1"):
            moved_values[name] = getattr(item, name) + dy
        elif name == "points":
            moved_values[name] = tuple((x + dx, y + dy) for x, y in getattr(item, name))
        elif name in ("ends", "centers", "corners"):
            array = getattr(item, name)
            moved_values[name] = array + np.resize([dx, dy], array.shape[-1])
    return replace(item, **moved_values)


# Light and dark

THEMED = "wb-themed"
_COLOUR_USED = re.compile(r'\b(fill|stroke)="(#[0-9A-Fa-f]{6})"')
# Rules that a page needs so that ``light-dark()`` follows its theme inside elements of ``class="wb-themed"``.
THEMES = (
    'body[data-jp-theme-light="true"]{--wb-scheme:light}body[data-jp-theme-light="false"]{--wb-scheme:dark}'
    f".{THEMED}{{color-scheme:var(--wb-scheme,light dark)}}"
)


def themed(body: str, background: str) -> str:
    """Return a style sheet that replaces the colours of the SVG elements in ``body`` on a dark page.

    ``background``: the colour of the drawing's own page, which is replaced too. A page with a theme of its own sets
    the CSS variable ``--wb-scheme`` to light or dark. In a browser without ``light-dark()`` (before 2024) the drawing
    stays light.
    """
    used_colours = dict.fromkeys([("fill", background), *_COLOUR_USED.findall(body)])
    rules = (
        f'.{THEMED} [{attribute}="{colour}"]{{{attribute}:light-dark({colour},{in_dark(colour)})}}'
        for attribute, colour in used_colours
    )
    return f"<style>{THEMES}{''.join(rules)}</style>\n"


# SVG


def escape(text: str) -> str:
    """Escape text for XML, and remove control characters, which XML forbids."""
    return saxutils.escape("".join(character for character in text if character.isprintable()))


def _format_number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _line_style(colour: str, width: float, opacity: float) -> str:
    faded = f' stroke-opacity="{_format_number(opacity)}"' if opacity < 1 else ""
    return f'stroke="{colour}" stroke-width="{_format_number(width)}" stroke-linecap="round"{faded}'


def _area_style(item: Circle | Polygon | Circles | Polygons) -> str:
    stroke = f' stroke="{item.stroke}" stroke-width="{_format_number(item.width)}"' if item.stroke else ""
    faded = f' opacity="{_format_number(item.opacity)}"' if item.opacity < 1 else ""
    return f'fill="{item.fill or "none"}"{stroke}{faded}'


def _svg_points(points: Points) -> str:
    return " ".join(f"{_format_number(x)},{_format_number(y)}" for x, y in points)


def _dash_attribute(item: Segment | Segments | Circle | Circles) -> str:
    return f' stroke-dasharray="{" ".join(map(_format_number, item.dash))}"' if item.dash else ""


def _close_element(element: str, tooltip: str) -> str:
    """Return a complete SVG element. ``element``: its start tag without the closing ">"; ``tooltip``: its <title>."""
    kind = element[1:].partition(" ")[0]
    return f"{element}><title>{escape(tooltip)}</title></{kind}>" if tooltip else f"{element}/>"


def _svg_segment(item: Segment) -> list[str]:
    x0, y0, x1, y1 = map(_format_number, (item.x0, item.y0, item.x1, item.y1))
    line_style = _line_style(item.colour, item.width, item.opacity)
    return [f'<line x1="{x0}" y1="{y0}" x2="{x1}" y2="{y1}" {line_style}{_dash_attribute(item)}/>']


def _svg_circle(item: Circle) -> list[str]:
    geometry = f'cx="{_format_number(item.x)}" cy="{_format_number(item.y)}" r="{_format_number(item.radius)}"'
    return [_close_element(f"<circle {geometry} {_area_style(item)}{_dash_attribute(item)}", item.tooltip)]


def _svg_polyline(item: Polyline) -> list[str]:
    line_style = _line_style(item.colour, item.width, item.opacity)
    return [f'<polyline points="{_svg_points(item.points)}" fill="none" stroke-linejoin="round" {line_style}/>']


def _svg_polygon(item: Polygon) -> list[str]:
    return [
        _close_element(
            f'<polygon points="{_svg_points(item.points)}" stroke-linejoin="round" {_area_style(item)}', item.tooltip
        )
    ]


def _path_data(numbers: np.ndarray, shape: str) -> list[str]:
    """Return the ``d`` attributes of SVG paths that draw the same shape many times.

    ``shape``: the path of one shape, in which % stands for each number. ``numbers``: the numbers of each shape, a row
    for each shape. Each SVG path draws at most `SHAPES_PER_PATH` shapes.
    """
    shape_numbers = np.round(numbers, 1) + 0.0  # + 0.0 turns -0 into 0
    template = shape.replace("%", "%g")
    chunks = (shape_numbers[start : start + SHAPES_PER_PATH] for start in range(0, len(shape_numbers), SHAPES_PER_PATH))
    return [template * len(chunk) % tuple(chunk.ravel().tolist()) for chunk in chunks]


def _svg_segments(item: Segments) -> list[str]:
    line_style = f'fill="none" {_line_style(item.colour, item.width, item.opacity)}{_dash_attribute(item)}'
    return [f'<path d="{d}" {line_style}/>' for d in _path_data(item.ends, "M% %L% %")]


def _svg_circles(item: Circles) -> list[str]:
    radius, diameter = _format_number(item.radius), _format_number(2 * item.radius)
    shape = f"M% %a{radius} {radius} 0 1 0 {diameter} 0a{radius} {radius} 0 1 0-{diameter} 0"
    area_style = _area_style(item) + _dash_attribute(item)
    return [f'<path d="{d}" {area_style}/>' for d in _path_data(item.centers - (item.radius, 0), shape)]


def _svg_polygons(item: Polygons) -> list[str]:
    count, corners, _ = item.corners.shape
    shape = "M% %" + "L% %" * (corners - 1) + "Z"
    area_style = f'stroke-linejoin="round" {_area_style(item)}'
    return [f'<path d="{d}" {area_style}/>' for d in _path_data(item.corners.reshape(count, 2 * corners), shape)]


def _svg_text(item: Text) -> list[str]:
    x, y = _format_number(item.x), _format_number(item.y)
    turn = f' transform="rotate({_format_number(-item.turn)} {x} {y})"' if item.turn else ""
    weight = ' font-weight="600"' if item.bold else ""
    halo = f' stroke="{item.halo}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"' if item.halo else ""
    text_style = (
        f'font-size="{_format_number(item.size)}" fill="{item.colour}" text-anchor="{item.anchor}"{weight}{halo}{turn}'
    )
    return [f'<text x="{x}" y="{y}" {text_style}>{escape(item.text)}</text>']


_SVG: dict[type, Callable[[Any], list[str]]] = {
    Segment: _svg_segment,
    Circle: _svg_circle,
    Polyline: _svg_polyline,
    Polygon: _svg_polygon,
    Text: _svg_text,
    Segments: _svg_segments,
    Circles: _svg_circles,
    Polygons: _svg_polygons,
}

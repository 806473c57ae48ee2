"""The writer of PDF files: it draws the items of a `Drawing` with matplotlib's PDF backend, as vector graphics.

The page has the size of the drawing. Texts stay texts, which can be selected and searched. Their font is Pillow's,
whose widths determine the layout of drawings; characters that this font does not have are set in DejaVu Sans. The file
contains both fonts, reduced to the characters used. The file has no date and does not depend on the user's settings of
matplotlib, so equal drawings give equal bytes.

Limits
    The tooltips of an SVG are not in the file.
"""

from __future__ import annotations

import io
import math
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import groupby
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D

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
    is_in_font,
)

POINTS = 72 / 96  # per px
HALO_PX = 4.0
BOLD = 0.044  # width of the rim that makes letters bold, as a share of their size
TRUETYPE = 42


class Pens(NamedTuple):
    """A page of a PDF file, on which matplotlib draws.

    renderer: matplotlib's renderer. to_page: the transform from px of the drawing to points of the page.
    """

    renderer: Any
    to_page: Affine2D

    def pen(self, colour: str | None, width: float, opacity: float = 1.0, dash: tuple[float, ...] = ()) -> Any:
        """Return a matplotlib graphics context for lines with round ends; ``colour=None``: lines are not drawn.

        ``width``, and the lengths of dashes and gaps in ``dash``, are in px.
        """
        context = self.renderer.new_gc()
        context.set_foreground(colour or "none")
        context.set_linewidth(width * POINTS if colour else 0)
        context.set_alpha(opacity)
        context.set_joinstyle("round")
        context.set_capstyle("round")
        if dash:
            context.set_dashes(0, [length * POINTS for length in dash])
        return context

    def draw(self, points: Any, pen: Any, fill: str | None = None, codes: Any = None) -> None:
        """Draw a path through points, given in px.

        pen: the matplotlib graphics context of the outline.
        fill: the colour inside the path; None: no filling.
        codes: for each point the path code of matplotlib, such as ``Path.MOVETO``; None: straight lines between the
            points.
        """
        path = Path(points, codes)
        path.should_simplify = False
        self.renderer.draw_path(pen, path, self.to_page, matplotlib.colors.to_rgb(fill) if fill else None)


class Page(Artist):
    """All items of a drawing, as a part of a matplotlib figure."""

    def __init__(self, drawing: Drawing) -> None:
        super().__init__()
        self._drawing = drawing

    def draw(self, renderer: Any) -> None:
        """Draw the items; matplotlib calls this method."""
        to_page = Affine2D().scale(POINTS, -POINTS).translate(0, self._drawing.height * POINTS)
        pens = Pens(renderer, to_page)
        for item in self._drawing.items:
            _DRAW[type(item)](item, pens)


def pdf(drawing: Drawing) -> bytes:
    """Return the drawing as a PDF file of one page."""
    file = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["pdf.fonttype"] = TRUETYPE
        size_inches = drawing.width / 96, max(drawing.height, 1) / 96
        figure = Figure(figsize=size_inches, facecolor=drawing.background)
        figure.add_artist(Page(drawing))
        FigureCanvasPdf(figure).print_pdf(file, metadata={"Title": drawing.title or None, "CreationDate": None})
    return file.getvalue()


def _draw_segment(item: Segment, pens: Pens) -> None:
    pen = pens.pen(item.colour, item.width, item.opacity, item.dash)
    pens.draw([(item.x0, item.y0), (item.x1, item.y1)], pen)


def _draw_segments(item: Segments, pens: Pens) -> None:
    pen = pens.pen(item.colour, item.width, item.opacity, item.dash)
    if item.opacity >= 1:
        pens.draw(item.ends.reshape(-1, 2), pen, codes=np.tile([Path.MOVETO, Path.LINETO], len(item.ends)))
        return
    # Separate paths, so that translucent lines are darker where they cross.
    for ends in item.ends.reshape(-1, 2, 2):
        pens.draw(ends, pen)


def _draw_polyline(item: Polyline, pens: Pens) -> None:
    if len(item.points) > 1:
        pens.draw(item.points, pens.pen(item.colour, item.width, item.opacity))


def _draw_polygon(item: Polygon, pens: Pens) -> None:
    _draw_areas(np.array(item.points, dtype=float).reshape(1, -1, 2), item, pens)


def _draw_polygons(item: Polygons, pens: Pens) -> None:
    _draw_areas(item.corners, item, pens)


def _draw_areas(corners: np.ndarray, item: Polygon | Polygons, pens: Pens) -> None:
    pen = pens.pen(item.stroke, item.width, item.opacity)
    codes = [Path.MOVETO, *[Path.LINETO] * (corners.shape[1] - 1), Path.CLOSEPOLY]
    for points in np.concatenate([corners, corners[:, :1]], axis=1):
        pens.draw(points, pen, item.fill, codes)


def _draw_circle(item: Circle, pens: Pens) -> None:
    _draw_discs(np.array([(item.x, item.y)]), item, pens)


def _draw_circles(item: Circles, pens: Pens) -> None:
    _draw_discs(item.centers, item, pens)


def _draw_discs(centers: np.ndarray, item: Circle | Circles, pens: Pens) -> None:
    pen = pens.pen(item.stroke, item.width, item.opacity, item.dash)
    pen.set_capstyle("butt")  # as in SVGs
    fill = matplotlib.colors.to_rgb(item.fill) if item.fill else None
    to_size = Affine2D().scale(item.radius * POINTS)
    pens.renderer.draw_markers(pen, Path.unit_circle(), to_size, Path(centers), pens.to_page, fill)


# Texts


@cache
def _font_files() -> tuple[Any, str, str]:
    """Return (a temporary folder, path of Pillow's font in it, path of DejaVu Sans in it).

    The folder is deleted with its Python object. matplotlib orders the fonts of a PDF by their paths. Both fonts are in
    the same folder, so the order is always the same.
    """
    folder = tempfile.TemporaryDirectory(prefix="workbench-fonts-")
    own_font, wide_font = (FilePath(folder.name, name) for name in ("Aileron.ttf", "DejaVuSans.ttf"))
    own_font.write_bytes(font(40.0).path.getvalue())
    shutil.copyfile(FilePath(matplotlib.get_data_path(), "fonts", "ttf", wide_font.name), wide_font)
    return folder, str(own_font), str(wide_font)


def _draw_text(item: Text, pens: Pens) -> None:
    """Draw a line of text that can be selected in the PDF.

    Characters that the drawing's font does not have are set in DejaVu Sans. Outlines below the letters make a text
    bold or give it a rim.
    """
    _, own_font, wide_font = _font_files()
    printable_text = "".join(character for character in item.text if character.isprintable())
    runs = []
    for is_own, characters in groupby(printable_text, is_in_font):
        text_font = FontProperties(fname=own_font if is_own else wide_font, size=item.size * POINTS)
        text_run = "".join(characters)
        runs.append((text_run, text_font, pens.renderer.get_text_width_height_descent(text_run, text_font, False)[0]))
    along = -_ANCHORS[item.anchor] * sum(width for _, _, width in runs)
    x, y = pens.to_page.transform((item.x, item.y))
    rims = [(item.halo, HALO_PX)] if item.halo else []
    rims += [(item.colour, BOLD * item.size)] if item.bold else []
    angle = math.radians(item.turn)
    placed_runs = []
    for text_run, text_font, width in runs:
        placed_runs.append((text_run, text_font, x + along * math.cos(angle), y + along * math.sin(angle)))
        along += width
    for colour, width in rims:
        for text_run, text_font, run_x, run_y in placed_runs:
            corners, path_codes = text_to_path.get_text_path(text_font, text_run)
            scale = item.size * POINTS / text_to_path.FONT_SCALE
            to_page = Affine2D().scale(scale).rotate(angle).translate(run_x, run_y)
            pens.renderer.draw_path(pens.pen(colour, width), Path(corners, path_codes), to_page)
    for text_run, text_font, run_x, run_y in placed_runs:
        pens.renderer.draw_text(pens.pen(item.colour, 1), run_x, run_y, text_run, text_font, item.turn)


_ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}


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

"""Legends: entries side by side, each a sample and its label, and colour bars for scales.

    Sample(mark, look)                   an entry for rows of a layer: their shape (mark) and their style (`Look`)
    (kind, colour, label)                an entry for anything else; ``kind``, a key of `SYMBOLS`, is the shape of the
                                         sample
    legend_drawing(entries, width)       the legend of a figure
    scales_drawing(scales, width)        colour bars, with texts at both ends

`MARGIN` is the free space at the sides of figures, `SMALL` the size of small text, and `LINE` the height
of a line of small text, all in px.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from workbench.views import palette
from workbench.views.drawing import Drawing, text_width
from workbench.views.layers import Look, Scale

MARGIN = 16
SMALL = 11.0
LINE = 17.0
BAR = 110.0
_WIDER = 1.06  # fonts that display an SVG may be slightly wider than Pillow's


class Sample(NamedTuple):
    """An entry of the legend, for rows of a layer that are drawn in the same style.

    mark: the shape in which the rows are drawn, such as "disc".
    look: the style of the rows, with the label of the entry.
    shades: the colours of the layer's colour scale; () without a scale.
    """

    mark: str
    look: Look
    shades: tuple[str, ...] = ()


Entry = Sample | tuple[str, str, str]


def legend_drawing(entries: Iterable[Entry], width: float) -> Drawing:
    """Return a drawing, ``width`` px wide, with the entries of a legend side by side, in as many lines as needed."""
    drawing = Drawing(width, 0)
    x, y = float(MARGIN), 18.0
    for entry in entries:
        label = entry.look.label if isinstance(entry, Sample) else entry[2]
        entry_width = 27 + _WIDER * text_width(label, SMALL)
        if x + entry_width > width - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + LINE
        swatch(drawing, entry, x + 10, y - 4)
        drawing.text(x + 25, y, label, size=SMALL)
        x += entry_width + 14
    drawing.height = y + 10
    return drawing


def scales_drawing(scales: Sequence[Scale], width: float) -> Drawing:
    """Return a drawing, ``width`` px wide, with a colour bar for each scale, one below the other.

    Each bar has the label of its scale, and the scale's texts ``low`` and ``high`` at its ends.
    """
    drawing = Drawing(width, 0)
    for scale in scales:
        y = drawing.height + 12
        label_and_low = f"{scale.label}:  {scale.low}"
        drawing.text(MARGIN, y, label_and_low, size=SMALL)
        left = MARGIN + _WIDER * text_width(label_and_low, SMALL) + 6
        bar_width = BAR / len(scale.colours)
        for index, colour in enumerate(scale.colours):
            drawing.rectangle(
                left + index * bar_width, y - 9, bar_width + (0.4 if scale.colours[index + 1 :] else 0), 11, fill=colour
            )
        drawing.frame(left, y - 9, BAR, 11, stroke=palette.OUTLINE, width=0.6)
        drawing.text(left + BAR + 7, y, scale.high, size=SMALL)
        drawing.height += LINE
    drawing.height += 5 if scales else 0
    return drawing


def swatch(drawing: Drawing, entry: Entry, x: float, y: float) -> None:
    """Draw the sample of a legend entry, 20 px wide, centered at (x, y)."""
    if not isinstance(entry, Sample):
        kind, colour, _ = entry
        SYMBOLS.get(kind, _draw_plain_line)(drawing, Look(colour=colour), x, y)
    elif entry.shades and entry.mark in ("node", "disc"):
        for bar_x, shade in zip(
            (-6, 0, 6), (entry.shades[0], entry.shades[len(entry.shades) // 2], entry.shades[-1]), strict=True
        ):
            drawing.circle(x + bar_x, y, 4.4, fill=shade, stroke=palette.OUTLINE, width=0.8)
    else:
        colour = entry.shades[len(entry.shades) // 2] if entry.shades else entry.look.colour
        # Only the disc of an area is pale, see `_draw_area`.
        opacity = 1.0 if entry.mark == "area" else max(entry.look.alpha, 0.35)
        faded_colour = palette.blend(palette.BACKGROUND, colour, opacity)
        _MARKS.get(entry.mark, _draw_line)(drawing, entry.look._replace(colour=faded_colour), x, y)


# Marks of layers

Draw = Callable[[Drawing, Look, float, float], None]


def _draw_node(drawing: Drawing, look: Look, x: float, y: float) -> None:
    if look.is_dashed:
        drawing.circle(x, y, 5, stroke=look.colour, width=1, dash=(1.5, 1.5))
    else:
        drawing.marker(look.marker, x, y, 5, look.colour, palette.OUTLINE, 0.8)


def _draw_ring(drawing: Drawing, look: Look, x: float, y: float) -> None:
    dash = (3, 2) if look.is_dashed else ()
    drawing.circle(x, y, 5.6, stroke=look.colour, width=min(max(look.width, 1.4), 2.4), dash=dash)


def _draw_cross(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.cross(x, y, 4, colour=look.colour, width=1.8)


def _draw_line(drawing: Drawing, look: Look, x: float, y: float) -> None:
    width = min(max(10 * look.size if look.size < 1 else 1.4, 0.8 * look.least), 6.0)
    half_length = 10 - width / 2
    dash = (4.0, 3.0) if look.is_dashed else ()
    drawing.segment(x - half_length, y, x + half_length, y, colour=look.colour, width=width, dash=dash)


def _draw_half_link(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.segment(x - 9, y, x, y, colour=look.colour, width=4)
    drawing.segment(x, y, x + 9, y, colour=palette.LINK_GOOD, width=1)


def _draw_arrow(drawing: Drawing, look: Look, x: float, y: float) -> None:
    width = min(max(look.least, 1.2), 2.6)
    drawing.arrow(x - 10, y, x + 10, y, head=6 + width, at=0.6, colour=look.colour, width=width)


def _draw_widening_ring(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.circle(x, y, 5, stroke=look.colour, width=1.6)


def _draw_packet(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.segment(x - 8, y, x + 2, y, colour=look.colour, width=2.2)
    drawing.circle(x + 3, y, 4.2, fill=look.colour, stroke=palette.BACKGROUND, width=1)


def _draw_label(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.text(x, y + 4, "ab", size=SMALL, colour=look.colour, anchor="middle")


def _draw_strip(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.frame(x - 9, y - 5, 18, 10, fill=look.colour, stroke=palette.OUTLINE, width=0.6)


def _draw_track(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.segment(x - 10, y, x, y, colour=look.colour, width=1.4)
    drawing.segment(x, y, x + 10, y, colour=look.colour, width=1.4, dash=(3, 3))
    drawing.circle(x, y, 1.8, fill=look.colour)


def _draw_area(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.circle(x, y, 7, fill=palette.blend(palette.BACKGROUND, look.colour, 0.3))
    drawing.marker("diamond", x, y, 4, look.colour, palette.BACKGROUND, 1)


_MARKS: dict[str, Draw] = {
    "track": _draw_track,
    "area": _draw_area,
    "node": _draw_node,
    "disc": _draw_node,
    "ring": _draw_ring,
    "cross": _draw_cross,
    "half": _draw_half_link,
    "arrow": _draw_arrow,
    "wave": _draw_widening_ring,
    "packet": _draw_packet,
    "loss": _draw_cross,
    "label": _draw_label,
    "strip": _draw_strip,
}


# Symbols of pictures without layers


def _draw_tree(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.segment(x - 10, y, x + 10, y, colour=look.colour, width=2.5)
    drawing.circle(x, y, 5, fill=look.colour, stroke=palette.BACKGROUND, width=0.7)


def _draw_plain_line(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.segment(x - 10, y, x + 10, y, colour=look.colour, width=1.4)


def _draw_rekeyed_node(drawing: Drawing, look: Look, x: float, y: float) -> None:
    drawing.circle(x, y, 4, fill=palette.LINK_GOOD)
    drawing.circle(x, y, 7, stroke=look.colour, width=1.4)


def _make_marker_painter(kind: str, radius: float, stroke: str, width: float) -> Draw:
    return lambda drawing, look, x, y: drawing.marker(kind, x, y, radius, look.colour, stroke, width)


SYMBOLS: dict[str, Draw] = {
    "tree": _draw_tree,
    "square": _make_marker_painter("square", 5.5, palette.OUTLINE, 1),
    "triangle": _make_marker_painter("triangle", 5.5, palette.OUTLINE, 1),
    "root": _make_marker_painter("square", 7, palette.TEXT, 1.4),
    "diamond": _make_marker_painter("diamond", 6.5, palette.TEXT, 1.4),
    "rekeyed": _draw_rekeyed_node,
    "orphan": lambda drawing, look, x, y: drawing.circle(x, y, 5, fill=palette.BACKGROUND, stroke=look.colour, width=2),
    "down": lambda drawing, look, x, y: drawing.cross(x, y, 5, colour=look.colour, width=2.4),
    "lost": _draw_cross,
    "ring": lambda drawing, look, x, y: drawing.circle(x, y, 6.5, stroke=look.colour, width=2.4),
    "box": _draw_strip,
    "frame": lambda drawing, look, x, y: drawing.frame(x - 9, y - 5, 18, 10, stroke=look.colour, width=2),
    "arrow": lambda drawing, look, x, y: drawing.arrow(
        x - 10, y, x + 10, y, head=8, at=0.7, colour=look.colour, width=2.6
    ),
    "dot": lambda drawing, look, x, y: drawing.circle(x, y, 4.5, fill=look.colour, stroke=palette.TEXT, width=1),
    "dash": lambda drawing, look, x, y: drawing.segment(
        x - 10, y, x + 10, y, colour=look.colour, width=1.4, dash=(4, 3)
    ),
}

"""The legend below a static figure: entries side by side, each a sample of what is drawn and a text.

The player, and the network as it draws it, explain roles (`player.legend`).
"""

from __future__ import annotations

from collections.abc import Iterable

from workbench.views import palette
from workbench.views.drawing import Drawing, text_width
from workbench.views.figure import LINE, MARGIN, SMALL

Entry = tuple[str, str, str]  # how it is drawn (`swatch`), its color, what it says


def legend_drawing(entries: Iterable[Entry], width: float) -> Drawing:
    """Entries side by side, in as many lines as they need."""
    drawing = Drawing(width, 0)
    x, y = float(MARGIN), 18.0
    for how, colour, said in entries:
        wide = 27 + 1.06 * text_width(said, SMALL)
        if x + wide > width - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + LINE
        swatch(drawing, how, colour, x + 10, y - 4)
        drawing.text(x + 25, y, said, size=SMALL)
        x += wide + 14
    drawing.height = y + 10
    return drawing


def swatch(drawing: Drawing, how: str, colour: str, x: float, y: float) -> None:
    """A sample, 20 px wide, around a point."""
    if how == "tree":
        drawing.segment(x - 10, y, x + 10, y, colour=colour, width=2.5)
        drawing.circle(x, y, 5, fill=colour, stroke=palette.BACKGROUND, width=0.7)
    elif how in ("square", "triangle"):
        drawing.marker(how, x, y, 5.5, colour, palette.OUTLINE, 1)
    elif how == "root":
        drawing.marker("square", x, y, 7, colour, palette.TEXT, 1.4)
    elif how == "rekeyed":
        drawing.circle(x, y, 4, fill=palette.LINK_GOOD)
        drawing.circle(x, y, 7, stroke=colour, width=1.4)
    elif how == "orphan":
        drawing.circle(x, y, 5, fill=palette.BACKGROUND, stroke=colour, width=2)
    elif how == "down":
        drawing.cross(x, y, 5, colour=colour, width=2.4)
    elif how == "lost":
        drawing.cross(x, y, 4, colour=colour, width=1.8)
    elif how == "ring":
        drawing.circle(x, y, 6.5, stroke=colour, width=2.4)
    elif how == "box":
        drawing.frame(x - 9, y - 5, 18, 10, fill=colour, stroke=palette.OUTLINE, width=0.6)
    elif how == "frame":
        drawing.frame(x - 9, y - 5, 18, 10, stroke=colour, width=2)
    elif how == "arrow":
        drawing.arrow(x - 10, y, x + 10, y, head=8, at=0.7, colour=colour, width=2.6)
    elif how == "diamond":
        drawing.marker("diamond", x, y, 6.5, colour, palette.TEXT, 1.4)
    elif how == "dot":
        drawing.circle(x, y, 4.5, fill=colour, stroke=palette.TEXT, width=1)
    elif how == "dash":
        drawing.segment(x - 10, y, x + 10, y, colour=colour, width=1.4, dash=(4, 3))
    else:
        drawing.segment(x - 10, y, x + 10, y, colour=colour, width=1.4)

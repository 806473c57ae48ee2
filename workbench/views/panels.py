"""Panels below the map of a static figure: bars in lanes at one time, and curves over the whole run.

strips_drawing(scene, width)                          the diagrams with bars (rows with the mark "strip")
curves_drawing(curves, duration_us, time_us, width)   counts as step lines, with a cursor at ``time_us``
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.views import palette
from workbench.views.charts.static import steps_chart
from workbench.views.drawing import Drawing, text_width
from workbench.views.layers import Curves, Panel
from workbench.views.legend import MARGIN, SMALL
from workbench.views.marks import Group, LayerScene, shades

PITCH, BAR, THIN = 40.0, 22.0, 6.0
TITLE = 24.0
CURVES = 150


def strips_drawing(scene: LayerScene, width: int) -> Drawing:
    """Return a drawing, ``width`` px wide, of the diagrams below the map; its height is 0 if ``scene`` has no diagrams.

    A diagram has horizontal lanes. Each row whose mark is "strip" is drawn as a bar in a lane.
    """
    drawing = Drawing(width, 0)
    strip_groups = [group for group in scene.groups if group.mark == "strip"]
    for panel in dict.fromkeys(group.layer.panel for group in strip_groups):
        if panel is not None:
            _draw_panel(drawing, panel, [group for group in strip_groups if group.layer.panel == panel], width)
    for group in strip_groups:
        scene.explain(group)
    return drawing


def _draw_panel(drawing: Drawing, panel: Panel, groups: Sequence[Group], width: int) -> None:
    top = drawing.height + TITLE
    drawing.text(MARGIN, top - 8, panel.title, size=SMALL + 1, bold=True)
    left = MARGIN + max(text_width(lane, SMALL) for lane in panel.lanes or ("",)) + 10
    for lane_index, lane in enumerate(panel.lanes):
        drawing.text(left - 8, top + PITCH * lane_index + 16, lane, size=SMALL, anchor="end")
        drawing.rectangle(left, top + PITCH * lane_index, width - MARGIN - left, BAR, fill=palette.GRID)
    for group in groups:
        _draw_strips(drawing, panel, group, left, top, (width - MARGIN - left) / (panel.high - panel.low))
    drawing.height = top + PITCH * len(panel.lanes) + 2


def _draw_strips(drawing: Drawing, panel: Panel, group: Group, left: float, top: float, scale: float) -> None:
    """Draw rows of a layer as bars in the lanes of a diagram.

    A row whose lane is n + 0.5 is a thin bar in the lower half of lane n.

    panel: the diagram. group: the rows. left, top: the upper left corner of the lanes in px. scale: px for each unit of
    the x axis.
    """
    bar_starts, bar_ends, lane = (group.column(name) for name in ("low", "high", "lane"))
    x0 = left + scale * (bar_starts - panel.low)
    x1 = np.maximum(left + scale * (bar_ends - panel.low), x0 + 1)
    y0 = top + PITCH * lane
    is_bar = lane == np.floor(lane)
    y1 = y0 + np.where(is_bar, BAR, THIN)
    corners = np.stack([x0, y0, x1, y0, x1, y1, x0, y1], axis=1).reshape(-1, 4, 2)
    for colour, shade_rows in shades(group.layer, group.look, group.column("weight")):
        rim = palette.BACKGROUND if is_bar[shade_rows].any() else None
        drawing.polygons(corners[shade_rows], fill=colour, stroke=rim, width=0.8, opacity=group.look.alpha)
        for row in shade_rows[is_bar[shade_rows]].tolist():
            node = int(group.column("node")[row])
            node_text, bar_width = str(node), x1[row] - x0[row]
            if node >= 0 and text_width(node_text, SMALL) * 1.06 + 4 < bar_width:
                ink = palette.ink_on(colour)
                drawing.text((x0[row] + x1[row]) / 2, y0[row] + 15, node_text, size=SMALL, anchor="middle", colour=ink)


def curves_drawing(curves: Sequence[Curves], duration_us: int, time_us: int, width: int) -> Drawing:
    """Return a drawing with a chart of step lines for each entry of ``curves``, one below the other.

    Each chart has a cursor at ``time_us``. Without curves, the height of the drawing is 0. ``duration_us``: length of
    the run in µs. ``width``: in px.
    """
    drawing = Drawing(width, 0)
    for group in curves:
        lines = [(line.label, line.colour, line.times_us / 1e6, line.values) for line in group.lines]
        chart = steps_chart(lines, duration_us / 1e6, time_us / 1e6, group.y_label, width, CURVES)
        drawing.add(chart, 0, drawing.height)
        drawing.height += chart.height
    return drawing

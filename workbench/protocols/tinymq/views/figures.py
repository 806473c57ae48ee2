"""The Bokeh figures of the overlay's player, empty: layers over its map, the key space, the counts of repair.

``player.js`` fills the sources. Trees lie on the layer of the links, below the player's nodes; marks, routes
and keys lie on the layer of what moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Range1d
from bokeh.plotting import figure

from workbench.protocols.tinymq.mapping import Mapping
from workbench.protocols.tinymq.views.looks import NOBODY, ORPHAN, REKEYED
from workbench.protocols.tinymq.views.overlay import Overlay
from workbench.protocols.tinymq.views.plane import MOST_BITS, MOST_TICKS, first_bits
from workbench.protocols.tinymq.views.repair import COUNTS, repair_steps
from workbench.views import palette
from workbench.views.player.sizes import WIDTH, Sizes
from workbench.views.player.skin import steps_figure

_ENDS = ("x0", "y0", "x1", "y1")
REPAIR_COLOURS = {"down": palette.FAILED, "orphans": ORPHAN, "rekeyed": palette.SINK}


def draw_trees(plot: Any, sizes: Sizes) -> dict[str, ColumnDataSource]:
    """Layers over the player's map, and the sources that fill them."""
    columns = {
        "links": (*_ENDS, "color"),
        "discs": ("x", "y", "color", "marker", "size"),
        "rekeyed": ("x", "y"),
        "orphans": ("x", "y"),
        "keys": ("x", "y", "text"),
        "trail": (*_ENDS, "angle", "color"),
        "marks": ("x", "y", "color", "size"),
    }
    drawn = {what: ColumnDataSource({name: [] for name in names}) for what, names in columns.items()}
    node = sizes.node
    plot.segment(*_ENDS, source=drawn["links"], name="tree links", line_color="color", line_width=max(0.28 * node, 2.2))
    disc = {"marker": "marker", "size": "size", "fill_color": "color", "line_color": palette.BACKGROUND}
    plot.scatter("x", "y", source=drawn["discs"], name="discs", **disc)
    ring = {"fill_color": None, "level": "overlay"}
    for name, colour, px, dash in (("rekeyed", REKEYED, 2.5, "solid"), ("orphans", ORPHAN, 2.2, "4 2")):
        look = {"line_color": colour, "line_width": 2, "line_dash": dash, "size": max(px * node, 13), **ring}
        plot.scatter("x", "y", source=drawn[name], name=name, **look)
    width = max(0.3 * node, 2.5)
    trail = {"source": drawn["trail"], "level": "overlay"}
    plot.segment(*_ENDS, name="trail", line_color="color", line_width=width, line_cap="round", **trail)
    head = {"marker": "triangle", "size": max(0.75 * node, 7), "line_color": None}
    plot.scatter("x1", "y1", name="trail heads", angle="angle", fill_color="color", **head, **trail)
    marks = {"size": "size", "line_color": "color", "line_width": 3, **ring}
    plot.scatter("x", "y", source=drawn["marks"], name="trail marks", **marks)
    text = {"text_font_size": "11px", "text_align": "center", "text_baseline": "bottom", "text_color": palette.TEXT}
    behind = {"background_fill_color": palette.BACKGROUND, "background_fill_alpha": 0.72, "padding": 1}
    above = {"y_offset": -(1.1 * node + 3), "level": "overlay"}
    plot.text("x", "y", "text", source=drawn["keys"], name="keys", **text, **behind, **above)
    return drawn


def draw_zones(mapping: Mapping, roots: Sequence[int]) -> tuple[Any, ColumnDataSource, ColumnDataSource]:
    """The key space, a row for each tree from above, with sources for zones and for queries."""
    # As a float: the whole numbers of a browser end before key spaces do.
    strings, trees = float(1 << mapping.key_bits), len(roots)
    plot = figure(
        name="zones",
        width=WIDTH,
        height=56 + min(52 * trees, 420),
        x_range=Range1d(0, strings, bounds=(0, strings)),
        y_range=Range1d(trees, 0),
        tools="xpan,xwheel_zoom,xbox_zoom,reset",
        toolbar_location="right",
        x_axis_label="key space: whose zone a string is (lighter: deeper in the tree); lines above: stored queries",
        outline_line_color=None,
    )
    plot.toolbar.logo = None
    plot.grid.visible = False
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_label_text_font_size = "12px"
    plot.axis.axis_line_color = palette.GRID
    plot.axis.minor_tick_line_color = None
    plot.yaxis.ticker = FixedTicker(ticks=[tree + 0.58 for tree in range(trees)])
    plot.yaxis.major_label_overrides = {tree + 0.58: f"root {root}" for tree, root in enumerate(roots)}
    _string_ticks(plot, mapping.key_bits)
    rows = {"left": [0] * trees, "right": [strings] * trees}
    rows |= {"top": [tree + 0.3 for tree in range(trees)], "bottom": [tree + 0.86 for tree in range(trees)]}
    plot.quad(source=ColumnDataSource(rows), fill_color=NOBODY, line_color=None, **{name: name for name in rows})
    sides = ("left", "right", "top", "bottom")
    names = (*sides, "middle", "color", "ink", "node", "key", "strings", "text")
    zones = ColumnDataSource({name: [] for name in names})
    where = {name: name for name in sides}
    drawn = plot.quad(source=zones, name="zone", fill_color="color", line_color=palette.BACKGROUND, **where)
    text = {"text_font_size": "11px", "text_align": "center", "text_baseline": "middle", "text_color": "ink"}
    plot.text("middle", "top", "text", source=zones, y_offset=13, **text)
    boxes = ColumnDataSource({name: [] for name in (*sides, "color", "text")})
    asked = plot.quad(source=boxes, name="stored query", fill_color="color", line_color=None, **where)
    tip = "node <b>@node</b>, key @key<br>@strings"
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=tip, description="zones"))
    plot.add_tools(HoverTool(renderers=[asked], tooltips="@text", description="queries"))
    return plot, zones, boxes


def _string_ticks(plot: Any, key_bits: int) -> None:
    """A tick at the first string of each sixteenth, eighth, ... as bits, as there is room."""
    written = min(key_bits, MOST_BITS)
    room = (WIDTH - 120) // (7 * written + 12)
    count = min(MOST_TICKS, 1 << key_bits)
    while count > max(room, 1):
        count //= 2
    step = (1 << key_bits) // count
    middle = 0.5 if step == 1 else 0
    ticks = [float(string) + middle for string in range(0, 1 << key_bits, step)]
    plot.xaxis.ticker = FixedTicker(ticks=ticks)
    labels = {tick: first_bits(int(tick), key_bits) for tick in ticks}
    plot.xaxis.major_label_overrides = labels


def draw_repair(seen: Overlay) -> tuple[Any, ColumnDataSource | None]:
    """Counts of nodes over the whole run with a cursor, or (None, None) for a run in which nothing failed."""
    if not seen.failed:
        return None, None
    steps = repair_steps(seen)
    times = [*(steps["time_us"] / 1e6).tolist(), seen.duration_us / 1e6]
    most = max(int(steps[name].max()) for name in COUNTS)
    lines = [
        (name, said, REPAIR_COLOURS[name], [*steps[name].tolist(), int(steps[name][-1])])
        for name, said in COUNTS.items()
    ]
    names = {"figure": "repair", "cursor": "repair cursor"}
    return steps_figure(names, "nodes", times, lines, (-0.04 * most, 1.08 * most + 0.5))

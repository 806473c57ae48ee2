"""The player's map: links, walls and nodes, and empty sources for what moves.

What moves lies on Bokeh's overlay layer: links and walls below it are not painted again for every picture.
"""

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Range1d
from bokeh.plotting import figure

from workbench.views import caption, palette
from workbench.views.ground import Plan
from workbench.views.player.sizes import Sizes

_ENDS = ("x0", "y0", "x1", "y1")
_ARROW = (*_ENDS, "hx", "hy", "angle", "width", "size")


def draw_map(plan: Plan, sizes: Sizes) -> tuple[Any, dict[str, ColumnDataSource]]:
    """The figure, and the sources that the player fills."""
    plot = figure(
        name="map",
        width=sizes.map_width,
        height=sizes.map_height,
        x_range=Range1d(*sizes.x_m),
        y_range=Range1d(*sizes.y_m),
        match_aspect=True,
        tools="pan,wheel_zoom,box_zoom,reset,save",
        toolbar_location="right",
        min_border=0,
        outline_line_color=None,
    )
    plot.axis.visible = False
    plot.grid.visible = False
    plot.toolbar.logo = None
    _draw_links(plot, plan, sizes)
    drawn = _sources(plan, sizes)
    _draw_gradients(plot, drawn, sizes)
    _draw_nodes(plot, drawn, sizes)
    _draw_packets(plot, drawn, sizes)
    _draw_scale_bar(plot, plan, sizes)
    return plot, drawn


def _draw_links(plot: Any, plan: Plan, sizes: Sizes) -> None:
    a, b = plan.links["a"], plan.links["b"]
    better = np.maximum(plan.links["pdr_ab"], plan.links["pdr_ba"])
    source = ColumnDataSource(
        {
            "x0": plan.x_m[a],
            "y0": plan.y_m[a],
            "x1": plan.x_m[b],
            "y1": plan.y_m[b],
            "width": ((0.5 + 0.8 * better) * (0.6 if sizes.is_dense else 1)).astype(np.float32),
            "color": [palette.link_colour(pdr) for pdr in better.tolist()],
            "a": plan.ids[a].astype(np.int32),
            "b": plan.ids[b].astype(np.int32),
            "ab": (100 * plan.links["pdr_ab"]).astype(np.float32),
            "ba": (100 * plan.links["pdr_ba"]).astype(np.float32),
        }
    )
    links = plot.segment(*_ENDS, source=source, name="links", line_color="color", line_width="width")
    if len(plan.walls):
        walls = dict(zip(_ENDS, plan.walls.T, strict=True))
        plot.segment(**walls, line_color=palette.WALL, line_width=2.5, line_cap="round", line_alpha=0.75)
    tip = "@a → @b: @ab{0} % arrive<br>@b → @a: @ba{0} % arrive"
    plot.add_tools(HoverTool(renderers=[links], tooltips=tip, line_policy="interp", description="links"))


def _sources(plan: Plan, sizes: Sizes) -> dict[str, ColumnDataSource]:
    empty = {
        "band": _ENDS,
        "reserve": _ARROW,
        "gradients": _ARROW,
        "waves": ("x", "y", "size", "alpha", "color"),
        "losses": ("x", "y", "size", "alpha"),
        "packets": ("x", "y", "x0", "y0", "color"),
        "picked": ("x", "y"),
    }
    drawn = {what: ColumnDataSource({name: [] for name in names}) for what, names in empty.items()}
    # The nodes as they are before the player has looked at the time.
    count = len(plan.ids)
    fill, marker = palette.NODE_LOOKS["node"]
    drawn["nodes"] = ColumnDataSource(
        {
            "x": plan.x_m,
            "y": plan.y_m,
            "id": plan.ids.astype(np.int32),
            "fill": [fill] * count,
            "line": [palette.OUTLINE] * count,
            "marker": [marker] * count,
            "size": np.full(count, sizes.node, dtype=np.float32),
            "width": np.full(count, 1.0, dtype=np.float32),
            "role": [palette.ROLE_NAMES["node"]] * count,
        }
    )
    return drawn


def _draw_gradients(plot: Any, drawn: dict[str, ColumnDataSource], sizes: Sizes) -> None:
    plot.segment(
        *_ENDS,
        source=drawn["band"],
        name="band",
        line_color=palette.REINFORCED,
        line_width=max(0.7 * sizes.node, 5),
        line_alpha=0.5,
        line_cap="round",
        level="overlay",
    )
    for name, alpha in (("reserve", 0.16), ("gradients", 0.95)):
        look = {"source": drawn[name], "name": name, "level": "overlay"}
        plot.segment(*_ENDS, line_color=palette.GRADIENT, line_width="width", line_alpha=alpha, **look)
        head = {"marker": "triangle", "fill_color": palette.GRADIENT, "fill_alpha": alpha, "line_color": None}
        plot.scatter("hx", "hy", size="size", angle="angle", **head, **look)


def _draw_nodes(plot: Any, drawn: dict[str, ColumnDataSource], sizes: Sizes) -> None:
    nodes = plot.scatter(
        "x",
        "y",
        size="size",
        marker="marker",
        source=drawn["nodes"],
        name="nodes",
        fill_color="fill",
        line_color="line",
        line_width="width",
        level="overlay",
    )
    plot.add_tools(HoverTool(renderers=[nodes], tooltips="node <b>@id</b><br>@role", description="nodes"))
    ring = {"fill_color": None, "level": "overlay"}
    plot.scatter(
        "x",
        "y",
        size=max(2.2 * sizes.node, 17),
        source=drawn["picked"],
        name="picked",
        line_color=palette.TEXT,
        line_width=1.6,
        line_dash="4 3",
        **ring,
    )
    plot.scatter(
        "x",
        "y",
        size="size",
        source=drawn["waves"],
        name="waves",
        line_color="color",
        line_alpha="alpha",
        line_width=2.2,
        **ring,
    )


def _draw_packets(plot: Any, drawn: dict[str, ColumnDataSource], sizes: Sizes) -> None:
    plot.scatter(
        "x",
        "y",
        size="size",
        marker="x",
        source=drawn["losses"],
        name="losses",
        line_color=palette.LOST,
        line_alpha="alpha",
        line_width=2.4,
        level="overlay",
    )
    plot.segment(
        "x0",
        "y0",
        "x",
        "y",
        source=drawn["packets"],
        name="tails",
        line_color="color",
        line_width=max(0.3 * sizes.node, 2.5),
        line_alpha=0.7,
        line_cap="round",
        level="overlay",
    )
    plot.scatter(
        "x",
        "y",
        size=max(0.85 * sizes.node, 8),
        source=drawn["packets"],
        name="packets",
        fill_color="color",
        line_color="#FFFFFF",
        line_width=1.3,
        level="overlay",
    )


def _draw_scale_bar(plot: Any, plan: Plan, sizes: Sizes) -> None:
    """Lower right, below the network; on the layer that does not move."""
    (left, right), (bottom, top) = sizes.x_m, sizes.y_m
    length_m = caption.round_length((right - left) / 7)
    x, y = right - 0.02 * (right - left) - length_m, bottom + 6 * (top - bottom) / sizes.map_height
    plot.segment([x], [y], [x + length_m], [y], line_color=palette.FAINT_TEXT, line_width=2)
    look = {"text_align": "right", "text_baseline": "middle", "text_font_size": "11px"}
    plot.text([x], [y], [f"{length_m:g} m"], x_offset=-6, text_color=palette.FAINT_TEXT, **look)

"""The player of a run with its overlay: trees, keys, routes, zones and repair at one time, as a Bokeh layout.

    overlay_figure(run)       the layout
    show_overlay(run)         below a notebook's cell, or as a page where there is no notebook
    overlay_sections(run)     (title, text, figure) for ``run.save_html(path, extra=...)``

The player of `views.player.network` stays as it is. Whenever it draws it moves the cursor of its timeline;
``player.js`` here follows the cursor, so that what is drawn here has the same play button, the same slider and the same
time. All columns are sent once, so an exported page needs no kernel.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import CheckboxButtonGroup, ColumnDataSource, CustomJS, Div, Select

from workbench.protocols.tinymq.views.figures import draw_repair, draw_trees, draw_zones
from workbench.protocols.tinymq.views.legend import legend_html
from workbench.protocols.tinymq.views.load import load_maps
from workbench.protocols.tinymq.views.looks import (
    MARK_COLOURS,
    MESSAGES,
    QUERIES,
    TREES,
    depth_colour,
    ink_on,
    load_colour,
)
from workbench.protocols.tinymq.views.overlay import Overlay, overlay_of, protocol_of
from workbench.protocols.tinymq.views.packing import DEPTHS, MARKS, Packed, pack
from workbench.protocols.tinymq.views.repair import repair_chart
from workbench.protocols.tinymq.views.trees import MOST_KEYS, overlay_drawing
from workbench.views import caption, notebook, palette
from workbench.views.ground import Plan, lay_out
from workbench.views.player.network import BUTTON_STYLE, STYLE, network_figure
from workbench.views.player.sizes import WIDTH, Sizes, fit
from workbench.views.player.skin import toggle_layers

SHADES = 48
MOST_IN_LINE = 6
LAYERS = (
    ("trees", ("tree links", "discs", "rekeyed", "orphans")),
    ("keys", ("keys",)),
    ("route", ("trail", "trail heads", "trail marks")),
)


def overlay_figure(run: Any) -> Any:
    """The player, with the overlay drawn over its network and the key space below it, all at the player's time.

    Raises ParameterError for a run without an overlay, ScenarioError if the run kept no trace.
    """
    protocol = protocol_of(run)
    mapping = protocol.mapping
    seen, plan = overlay_of(run), lay_out(run.scenario.topology)
    sizes, packed = fit(plan), pack(run, seen, plan)
    layout = network_figure(run)
    map_ = layout.select_one({"name": "map"})
    cursor = layout.select_one({"name": "cursor"}).data_source
    drawn = draw_trees(map_, sizes)
    zones, drawn["zones"], drawn["boxes"] = draw_zones(mapping, seen.roots)
    repair, repair_cursor = draw_repair(seen)
    if repair_cursor is not None:
        drawn["repair_cursor"] = repair_cursor
    widgets = _widgets(packed, seen.roots)
    args = {
        "cursor": cursor,
        "plan": ColumnDataSource({"x": plan.x_m, "y": plan.y_m}),
        "tables": {what: ColumnDataSource(table) for what, table in packed.tables.items()},
        "drawn": drawn,
        "widgets": widgets,
        "map": map_,
        "zones": zones,
        "facts": _facts(seen, packed, plan, sizes, mapping.key_bits, protocol.node.every_tree),
    }
    if repair is not None:
        args["facts"]["repair_y"] = [repair.y_range.start, repair.y_range.end]
    code = files(__package__).joinpath("player.js").read_text(encoding="utf-8")
    _attach(CustomJS(args=args, code=code), cursor, map_, zones, widgets)
    _make_room(layout.select_one({"name": "timeline"}))
    heading, *rest = layout.children
    legend = Div(text=legend_html(seen, packed), width=WIDTH, stylesheets=[STYLE])
    controls = row(widgets["layers"], widgets["tree"], widgets["colour"], widgets["route"], spacing=10)
    notes = [Div(text=f'<p class="hint">{note}</p>', width=WIDTH, stylesheets=[STYLE]) for note in packed.notes]
    below = [zones] if repair is None else [zones, repair]
    return column(heading, controls, legend, *rest, *below, *notes, width=WIDTH)


def _make_room(timeline: Any) -> None:
    """The marks of so many messages are explained in two lines: in one they would run out of the figure."""
    for legend in timeline.legend:
        legend.nrows = 2 if len(legend.items) > MOST_IN_LINE else 1


def _widgets(packed: Packed, roots: tuple[int, ...]) -> dict[str, Any]:
    options = [
        ("none", "no route"),
        ("newest", f"route of the newest {'of some events' if packed.is_thinned else 'event'}"),
    ]
    options += [(str(index), f"route of {name}") for index, name in enumerate(packed.names)]
    names = [name for name, _ in LAYERS]
    return {
        "layers": CheckboxButtonGroup(
            labels=names, active=list(range(len(names))), name="overlay layers", stylesheets=[BUTTON_STYLE]
        ),
        "colour": Select(
            options=[("tree", "colored by tree"), ("load", "colored by frames sent so far")],
            value="tree",
            name="colour",
            width=220,
        ),
        "tree": Select(
            options=[("all", "all trees"), *((str(tree), f"tree of root {root}") for tree, root in enumerate(roots))],
            value="all",
            name="tree",
            width=150,
        ),
        "route": Select(options=options, value="newest", name="route", width=300),
    }


def _facts(seen: Overlay, packed: Packed, plan: Plan, sizes: Sizes, key_bits: int, every_tree: bool) -> dict[str, Any]:
    """Plain values for the browser: colors, sizes, words."""
    px_m = (sizes.x_m[1] - sizes.x_m[0]) / sizes.map_width
    depths = [[depth_colour(tree, depth) for depth in range(DEPTHS)] for tree in range(len(TREES))]
    return {
        "duration_s": seen.duration_us / 1e6,
        "trees": list(TREES),
        "shared": palette.LINK_GOOD,
        "every_tree": every_tree,
        "root_count": len(seen.roots),
        "depths": depths,
        "inks": [[ink_on(colour) for colour in tree] for tree in depths],
        "queries": list(QUERIES),
        "asked": packed.asked,
        "lane_y": packed.lane_y,
        "messages": [MESSAGES[message] for message in ("query", "event", "notification")],
        "mark_colours": [MARK_COLOURS[look] for look in MARKS],
        "shades": [load_colour(shade / (SHADES - 1)) for shade in range(SHADES)],
        "most_frames": packed.most_frames,
        "most_keys": MOST_KEYS,
        "key_bits": key_bits,
        "disc_px": 1.9 * sizes.node,
        "root_px": max(2.5 * sizes.node, 13),
        "mark_px": max(2.6 * sizes.node, 16),
        "clear_m": 1.1 * sizes.node * px_m,
        "lane_m": 0.45 * sizes.node * px_m,
    }


def _attach(skin: CustomJS, cursor: Any, map_: Any, zones: Any, widgets: dict[str, Any]) -> None:
    cursor.js_on_change("data", skin)
    # The first picture, once the browser knows how large it is; and again when another part of it is in sight.
    for figure in (map_, zones):
        figure.js_on_change("inner_width", skin)
        for end in ("start", "end"):
            figure.x_range.js_on_change(end, skin)
    for name in ("tree", "colour", "route"):
        widgets[name].js_on_change("value", skin)
    toggle_layers(widgets["layers"], map_, LAYERS)


def overlay_sections(run: Any) -> list[tuple[str, str, Any]]:
    """What a page can have below the player: ``run.save_html(path, extra=overlay_sections(run))``."""
    sections: list[tuple[str, str, Any]] = [
        ("The overlay", "The same run with its trees, keys, routes and zones.", overlay_figure(run)),
        ("Load", "Which nodes relay events for others.", load_maps({"": run}, columns=1)),
    ]
    if overlay_of(run).failed:
        sections.append(("Repair", "Nodes without a key or with another one, and what arrives.", repair_chart(run)))
    return sections


def show_overlay(run: Any) -> None:
    """Display `overlay_figure` in a notebook; elsewhere write a page with it and say where."""
    if notebook.in_notebook():
        notebook.display(overlay_figure(run), overlay_drawing(run).to_png(), caption.title(run))
        return
    notebook.write_page(run, "overlay", extra=overlay_sections(run))

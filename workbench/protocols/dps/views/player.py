"""The player of a run with its mesh: filters, muted links and the ways of publications at one time, as a Bokeh layout.

    dps_figure(run)       the layout
    show_dps(run)         below a notebook's cell, or as a page where there is no notebook
    dps_sections(run)     (title, text, figure) for ``run.save_html(path, extra=...)``

The player of `views.player.network` stays as it is. Whenever it draws it moves the cursor of its timeline;
``player.js`` here follows the cursor, so that what is drawn here has the same play button, the same slider and the same
time. All columns are sent once, so an exported page needs no kernel.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import CheckboxButtonGroup, ColumnDataSource, CustomJS, Div, Select

from workbench.protocols.dps.views.filters import fill_chart, filters_drawing
from workbench.protocols.dps.views.legend import legend_html
from workbench.protocols.dps.views.looks import (
    ACKNOWLEDGED,
    IN_VAIN,
    MUTED,
    PENDING,
    REPEATED,
    SHADES,
    USEFUL,
    fill_colour,
    percent,
)
from workbench.protocols.dps.views.mesh import Mesh, mesh_of, steps
from workbench.protocols.dps.views.packing import HOPS, MARKS, STATES, Packed, pack
from workbench.views import caption, notebook, palette
from workbench.views.ground import Plan, lay_out
from workbench.views.legend import Entry
from workbench.views.player.network import BUTTON_STYLE, STYLE, network_figure
from workbench.views.player.sizes import WIDTH, Sizes, fit
from workbench.views.player.skin import steps_figure, toggle_layers

MOST_NAMES = 60
MOST_IN_LINE = 6
LAYERS = (
    ("filters", ("mesh ground", "mesh halves", "mesh discs")),
    ("muted links", ("muted links",)),
    ("fill in %", ("fills",)),
    ("publication", ("trail", "trail heads", "deliveries", "dead ends")),
)
_ENDS = ("x0", "y0", "x1", "y1")
_HOP_COLOURS = {
    "useful": USEFUL,
    "in vain": IN_VAIN,
    "repeated": REPEATED,
    "lost": IN_VAIN,
    "acknowledged": ACKNOWLEDGED,
}


def dps_figure(run: Any) -> Any:
    """The player, with the mesh drawn over its network and the fill of filters below it, all at the player's time.

    Raises ParameterError for a run of another protocol, ScenarioError if the run kept no trace.
    """
    seen, plan = mesh_of(run), lay_out(run.scenario.topology)
    sizes, packed = fit(plan), pack(run, seen, plan)
    layout = network_figure(run)
    map_ = layout.select_one({"name": "map"})
    cursor = layout.select_one({"name": "cursor"}).data_source
    drawn = draw_mesh(map_, sizes)
    fills, drawn["fill_cursor"] = draw_fills(seen, len(plan.ids))
    widgets = _widgets(packed)
    args = {
        "cursor": cursor,
        "plan": ColumnDataSource({"x": plan.x_m, "y": plan.y_m}),
        "tables": {what: ColumnDataSource(table) for what, table in packed.tables.items()},
        "drawn": drawn,
        "widgets": widgets,
        "facts": _facts(seen, packed, plan, sizes) | {"fill_y": [fills.y_range.start, fills.y_range.end]},
    }
    code = files(__package__).joinpath("player.js").read_text(encoding="utf-8")
    _attach(CustomJS(args=args, code=code), cursor, map_, widgets)
    for legend in layout.select_one({"name": "timeline"}).legend:
        legend.nrows = 2 if len(legend.items) > MOST_IN_LINE else 1
    heading, *rest = layout.children
    controls = row(widgets["layers"], widgets["path"], spacing=10)
    legend = Div(text=_legend(seen, packed), width=WIDTH, stylesheets=[STYLE])
    notes = [Div(text=f'<p class="hint">{note}</p>', width=WIDTH, stylesheets=[STYLE]) for note in packed.notes]
    return column(heading, controls, widgets["said"], legend, *rest, fills, *notes, width=WIDTH)


def draw_mesh(plot: Any, sizes: Sizes) -> dict[str, ColumnDataSource]:
    """Layers over the player's map, and the sources that ``player.js`` beside this file fills."""
    columns = {
        "ground": (*_ENDS, "width"),
        "halves": (*_ENDS, "color"),
        "muted": _ENDS,
        "discs": ("x", "y", "color"),
        "fills": ("x", "y", "text", "offset"),
        "trail": (*_ENDS, "angle", "color", "width"),
        "delivered": ("x", "y"),
        "dead": ("x", "y"),
    }
    drawn = {what: ColumnDataSource({name: [] for name in names}) for what, names in columns.items()}
    node = sizes.node
    plot.segment(*_ENDS, source=drawn["ground"], name="mesh ground", line_color=PENDING, line_width="width")
    half = max(0.34 * node, 2.4)
    plot.segment(*_ENDS, source=drawn["halves"], name="mesh halves", line_color="color", line_width=half)
    dashed = {"line_color": MUTED, "line_width": 1.8, "line_dash": "5 4"}
    plot.segment(*_ENDS, source=drawn["muted"], name="muted links", **dashed)
    disc = {"size": 2.1 * node, "fill_color": "color", "line_color": palette.OUTLINE, "line_width": 0.8}
    plot.scatter("x", "y", source=drawn["discs"], name="mesh discs", **disc)
    trail = {"source": drawn["trail"], "level": "overlay"}
    plot.segment(*_ENDS, name="trail", line_color="color", line_width="width", line_cap="round", **trail)
    head = {"marker": "triangle", "size": max(0.75 * node, 7), "line_color": None}
    plot.scatter("x1", "y1", name="trail heads", angle="angle", fill_color="color", **head, **trail)
    ring = {"fill_color": None, "line_color": USEFUL, "line_width": 3, "size": max(2.9 * node, 17), "level": "overlay"}
    plot.scatter("x", "y", source=drawn["delivered"], name="deliveries", **ring)
    cross = {"marker": "x", "line_color": IN_VAIN, "line_width": 3, "size": max(1.6 * node, 10), "level": "overlay"}
    plot.scatter("x", "y", source=drawn["dead"], name="dead ends", **cross)
    text = {"text_font_size": "11px", "text_align": "center", "text_baseline": "middle", "text_color": palette.TEXT}
    behind = {"background_fill_color": palette.BACKGROUND, "background_fill_alpha": 0.72, "padding": 1}
    place = {"y_offset": "offset", "level": "overlay"}
    plot.text("x", "y", "text", source=drawn["fills"], name="fills", **text, **behind, **place)
    return drawn


def draw_fills(seen: Mesh, nodes: int) -> tuple[Any, ColumnDataSource]:
    """The fill of the nodes' filters over the whole run, with a cursor."""
    table = steps(seen, nodes)
    times = [*(table["time_us"] / 1e6).tolist(), seen.duration_us / 1e6]
    most = 100 * max(float(table["most"].max()), 1e-6)
    looks = (("most", "fullest node", palette.SINK), ("mean", "mean of all nodes", palette.LOST))
    lines = [(*look, [*(100 * table[look[0]]).tolist(), 100 * float(table[look[0]][-1])]) for look in looks]
    names = {"figure": "fill chart", "cursor": "fill cursor"}
    return steps_figure(names, "bits set (%)", times, lines, (-0.04 * most, 1.12 * most))


def _widgets(packed: Packed) -> dict[str, Any]:
    options = [("none", "no publication"), ("newest", "the newest publication")]
    options += [(str(index), name) for index, name in enumerate(packed.names)]
    names = [name for name, _ in LAYERS]
    return {
        "layers": CheckboxButtonGroup(
            labels=names, active=list(range(len(names))), name="mesh layers", stylesheets=[BUTTON_STYLE]
        ),
        "path": Select(options=options, value="newest", name="path", width=420),
        "said": Div(text="&nbsp;", name="path said", width=WIDTH, stylesheets=[STYLE]),
    }


def _legend(seen: Mesh, packed: Packed) -> str:
    entries: list[Entry] = [("halves", fill_colour(0.6), "link: what its ends were told")]
    states = {STATES[state] for state in packed.tables["links"]["state"].tolist()}
    if "muted" in states:
        entries.append(("dash", MUTED, "muted link: it closes a loop"))
    looks = {HOPS[look] for look in packed.tables["hops"]["look"].tolist()}
    words = {"useful": "led to a delivery", "in vain": "in vain", "repeated": "repeated", "acknowledged": "answer"}
    entries += [("arrow", _HOP_COLOURS[look], said) for look, said in words.items() if look in looks]
    marks = {MARKS[look] for look in packed.tables["marks"]["look"].tolist()}
    if "delivered" in marks:
        entries.append(("ring", USEFUL, "delivered"))
    if marks - {"delivered"}:
        entries.append(("down", IN_VAIN, "got it in vain"))
    shades = [fill_colour(shade / (SHADES - 1)) for shade in range(SHADES)]
    return legend_html(entries, shades, f"{percent(seen.fill(seen.most_bits))} ({seen.most_bits:,} bits)")


def _facts(seen: Mesh, packed: Packed, plan: Plan, sizes: Sizes) -> dict[str, Any]:
    """Plain values for the browser: colors, sizes, words."""
    px_m = (sizes.x_m[1] - sizes.x_m[0]) / sizes.map_width
    return {
        "duration_s": seen.duration_us / 1e6,
        "active": STATES.index("active"),
        "muted": STATES.index("muted"),
        "shades": [fill_colour(shade / (SHADES - 1)) for shade in range(SHADES)],
        "most_bits": seen.most_bits,
        "ground_px": [1.2, max(0.34 * sizes.node, 2.4) + 2.4],
        "hop_colours": [_HOP_COLOURS[look] for look in HOPS],
        "hop_px": [max(0.3 * sizes.node, 2.5) * (0.6 if look in ("repeated", "acknowledged") else 1) for look in HOPS],
        "texts": packed.texts,
        "has_names": len(plan.ids) <= MOST_NAMES,
        "name_px": 1.2 * sizes.node + 8,
        "highest_m": sizes.y_m[1] - (2 * sizes.node + 14) * px_m,  # above it there is no room for a name
        "clear_m": 1.2 * sizes.node * px_m,
        "lane_m": 0.45 * sizes.node * px_m,
    }


def _attach(skin: CustomJS, cursor: Any, map_: Any, widgets: dict[str, Any]) -> None:
    cursor.js_on_change("data", skin)
    # The first picture, once the browser knows how large it is.
    map_.js_on_change("inner_width", skin)
    widgets["path"].js_on_change("value", skin)
    toggle_layers(widgets["layers"], map_, LAYERS)


def dps_sections(run: Any) -> list[tuple[str, str, Any]]:
    """What a page can have below the player: ``run.save_html(path, extra=dps_sections(run))``."""
    return [
        ("The mesh", "The same run with its filters, muted links and the ways of publications.", dps_figure(run)),
        ("Filters", "How full the filters were, and how many links were muted.", fill_chart(run)),
    ]


def show_dps(run: Any) -> None:
    """Display `dps_figure` in a notebook; elsewhere write a page with it and say where."""
    if notebook.in_notebook():
        notebook.display(dps_figure(run), filters_drawing(run).to_png(), caption.title(run))
        return
    notebook.write_page(run, "dps", extra=dps_sections(run))

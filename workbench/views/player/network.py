"""The player: a network in which a run happens again, as a Bokeh layout that needs no kernel.

    network_figure(run)      map, controls, clock, node inspector and message timeline

All that happens while it plays is picked in the browser by ``player.js`` from columns that are sent once, so a
notebook and an exported page behave the same.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from bokeh.layouts import column, row
from bokeh.models import Button, CheckboxButtonGroup, ColumnDataSource, CustomJS, Div, Select, Slider

from workbench.views import caption, palette
from workbench.views.ground import Plan, lay_out
from workbench.views.player import inspector, packing
from workbench.views.player.columns import Columns
from workbench.views.player.counters import counted, running
from workbench.views.player.decoding import of_event
from workbench.views.player.intervals import LOST_AT, WEIGHT_BASE, Intervals, intervals, read
from workbench.views.player.legend import keys_of, legend_html
from workbench.views.player.map import draw_map
from workbench.views.player.sizes import GAP, PANEL, WIDTH, Sizes, fit
from workbench.views.player.timeline import draw_timeline
from workbench.views.protocols import message_colours

# What can be shown and hidden: a name, the renderers of the map that it stands for, and the intervals they show.
LAYERS = (
    ("links", ("links",), ()),
    ("gradients", ("gradients",), ("gradient",)),
    ("in reserve", ("reserve",), ("gradient",)),
    ("reinforced path", ("band",), ("reinforced",)),
    ("broadcasts", ("waves",), ("interest_wave",)),
    ("packets", ("packets", "tails"), ("data_packet", "reinforcement_packet")),
    ("losses", ("losses",), ("lost",)),
)
RANK_SHADES = 64
SPEEDS = (("0.125", "⅛ ×"), ("0.25", "¼ ×"), ("0.5", "½ ×"), ("1", "1 ×"), ("2", "2 ×"), ("4", "4 ×"), ("8", "8 ×"))
PACES = (("paced", "paced by traffic"), ("even", "even time"))
HINT = '<p class="hint">Click a node to see what it knows and has counted at this time.</p>'

STYLE = f"""
:host {{ font-family: system-ui, 'DejaVu Sans', sans-serif; color: {palette.TEXT}; }}
h2 {{ font-size: 19px; font-weight: 600; margin: 0; }}
h3 {{ font-size: 15px; margin: 0; }}
h4 {{ font-size: 12px; margin: 9px 0 2px; }}
p {{ font-size: 12px; }}
h2 + p, p.role, p.hint {{ color: {palette.FAINT_TEXT}; }}
.heading p {{ font-size: 12.5px; margin-top: 3px; }}
.clock {{ font-size: 28px; font-weight: 600; font-variant-numeric: tabular-nums; line-height: 1; }}
.clock span {{ font-size: 13px; font-weight: 400; color: {palette.FAINT_TEXT}; }}
.totals {{ display: flex; gap: 18px; margin-top: 8px; }}
.total b {{ display: block; font-size: 16px; font-variant-numeric: tabular-nums; }}
.total span {{ font-size: 11px; color: {palette.FAINT_TEXT}; }}
.legend {{ display: grid; grid-template-rows: repeat(3, auto); grid-auto-flow: column;
  justify-content: space-between; gap: 1px 12px; font-size: 11.5px; }}
.entry {{ display: flex; align-items: center; gap: 4px; white-space: nowrap; }}
table {{ border-collapse: collapse; font-size: 11.5px; font-variant-numeric: tabular-nums; }}
th {{ text-align: left; font-weight: 400; color: {palette.FAINT_TEXT}; padding: 1px 9px 1px 0; }}
table.matrix td {{ width: 15px; height: 15px; padding: 0; text-align: center; border: 1px solid {palette.GRID}; }}
table.matrix td.pivot {{ background: {palette.RANK_HIGH}; color: {palette.BACKGROUND}; }}
table.matrix td.other {{ background: {palette.RANK_LOW}; }}
table.matrix td.zero {{ color: {palette.FAINT_TEXT}; }}
td {{ padding: 1px 9px 1px 0; border-top: 1px solid {palette.GRID}; vertical-align: top; }}
"""
BUTTON_STYLE = ".bk-btn { font-size: 12px; padding: 4px 8px; }"


def network_figure(run: Any, event: tuple[int, int] | None = None) -> Any:
    """A Bokeh layout, ``sizes.WIDTH`` px wide, that plays a run.

    ``event``, (origin, sequence), leaves out what is about other events. Raises ScenarioError if the run kept no trace,
    DataError if what it has is none, ParameterError if it has no such event.
    """
    trace = of_event(run.trace, event)
    columns = read(trace)
    duration_us = round(run.scenario.duration_s * 1e6)
    seen, plan = intervals(trace, duration_us), lay_out(run.scenario.topology)
    colours = message_colours(run.scenario.protocol)
    sizes, words, counts = fit(plan), packing.Words(), counted(columns)
    tables, notes = packing.pack(seen, plan, words)
    map_, drawn = draw_map(plan, sizes)
    timeline, drawn["cursor"], left_out = draw_timeline(columns, plan, run.scenario.topology, seen, sizes, colours)
    widgets = _widgets(seen, sizes)
    sent_once = {
        "plan": ColumnDataSource(packing.pack_plan(plan, counts)),
        "film": ColumnDataSource({"time": seen.film.knots_us / 1e6, "moment": seen.film.knots_s}),
        "running": ColumnDataSource(_running(columns, run)),
        "counts": ColumnDataSource(packing.pack_counted(counts, plan)),
        "tables": {what: ColumnDataSource(table) for what, table in tables.items()},
    }
    facts = _facts(seen, words, sizes, colours) | {
        "poster_s": packing.poster_us(seen, columns) / 1e6,
        "picked": _first_picked(seen, plan, packing.poster_us(seen, columns)),
        "counters": counts.words,
        "count_step": counts.step,
        "timeline_y": [timeline.y_range.start, timeline.y_range.end],
    }
    code = files(__package__).joinpath("player.js").read_text(encoding="utf-8")
    player = CustomJS(args={**sent_once, "drawn": drawn, "widgets": widgets, "facts": facts}, code=code)
    _attach(player, map_, timeline, widgets)
    if counts.step > 1:
        notes.append(f"Counters of single nodes are rounded down to multiples of {counts.step}.")
    legend = legend_html(keys_of(seen, plan), colours)
    return _arrange(run, sizes, map_, timeline, widgets, legend, [*plan.notes, *seen.notes, *notes, *left_out])


def _running(columns: Columns, run: Any) -> dict[str, np.ndarray]:
    totals = running(columns, getattr(run.scenario, "radio", None))
    return {
        "time": totals["time_us"] / 1e6,
        "transmissions": totals["transmissions"].astype(np.int32),
        "deliveries": totals["deliveries"].astype(np.int32),
        "energy": totals["energy_mJ"],
    }


def _first_picked(seen: Intervals, plan: Plan, time_us: int) -> int:
    """The place of the node with which the inspector opens: the first that subscribed, else the one that got the last
    innovative packet by that time; -1 if there is neither."""
    nodes = seen["subscription"]["node"][:1]
    if not len(nodes):
        decoding = seen["decoding"]
        nodes = decoding["node"][decoding["from_us"] <= time_us][-1:]
    return int(plan.place(nodes)[0]) if len(nodes) else -1


def _facts(seen: Intervals, words: packing.Words, sizes: Sizes, colours: Mapping[str, str]) -> dict[str, Any]:
    """Plain values for the player: how things look, what they are called."""
    looks = [palette.NODE_LOOKS[role] for role in inspector.ROLES]
    node = sizes.node
    # What a reader looks for first is seen in a dense network too.
    diameters = {"failed": max(1.15 * node, 8), "sink": max(1.35 * node, 11), "source": max(1.45 * node, 12)}
    px_m = (sizes.x_m[1] - sizes.x_m[0]) / sizes.map_width
    head = int(words.codes(np.array(["head"]))[0])
    return {
        "head": head,
        "decoding": inspector.ROLES.index("decoding"),
        "ranks": [palette.rank_colour(step / RANK_SHADES) for step in range(RANK_SHADES + 1)],
        "words": words.list,
        "colours": [palette.message_colour(word, colours) for word in words.list],
        "fills": [fill for fill, _ in looks],
        "markers": [marker for _, marker in looks],
        "lines": [palette.FAILED if role == "failed" else palette.OUTLINE for role in inspector.ROLES],
        "sizes": [diameters.get(role, node) for role in inspector.ROLES],
        "line_widths": [2.8 if role == "failed" else 0.6 if sizes.is_dense else 1.1 for role in inspector.ROLES],
        "role_names": [palette.ROLE_NAMES[role] for role in inspector.ROLES],
        "frames": packing.FRAMES,
        "inspector": inspector.TABLES,
        "largest_matrix": inspector.LARGEST_MATRIX,
        "hint": HINT,
        "lost_at": LOST_AT,
        "weight_base": WEIGHT_BASE,
        "node_px": node,
        "wave_px": max(3.2 * node, 22),
        "cross_px": max(0.95 * node, 8),
        "arrow_px": max(0.6 * node, 4),
        "clear_m": 0.62 * node * px_m,
        "tail_m": max(2.5 * node, 14) * px_m,
        "gradient_px": 0.7 if sizes.is_dense else 1.0,
        "duration_s": seen.duration_us / 1e6,
        "duration_text": f"{seen.duration_us / 1e6:,g} s",
    }


def _widgets(seen: Intervals, sizes: Sizes) -> dict[str, Any]:
    length_s = seen.film.length_s
    small = {"height": 31, "stylesheets": [BUTTON_STYLE]}
    others = 40 + 68 + 88 + 68 + 75 + 140 + 7 * 12
    scrolled = {"overflow-y": "auto", "border-left": f"1px solid {palette.GRID}", "padding-left": "10px"}
    layers = [label for label, _, shown in LAYERS if not shown or any(len(seen[what]["node"]) for what in shown)]
    slider = Slider(start=0, end=length_s, value=0, step=length_s / 2000, show_value=False, tooltips=False)
    slider.name, slider.width, slider.margin = "slider", WIDTH - others, (11, 8, 5, 10)
    return {
        "start": Button(label="❙◀", name="start", width=40, **small),
        "back": Button(label="◀ Step", name="back", width=68, **small),
        "play": Button(label="▶  Play", name="play", button_type="primary", width=88, **small),
        "forward": Button(label="Step ▶", name="forward", width=68, **small),
        "slider": slider,
        "speed": Select(options=list(SPEEDS), value="1", name="speed", width=75),
        "pace": Select(options=list(PACES), value="paced", name="pace", width=140),
        "layers": CheckboxButtonGroup(
            labels=layers, active=list(range(len(layers))), name="layers", stylesheets=[BUTTON_STYLE]
        ),
        "clock": Div(text="", name="clock", width=PANEL, height=76, stylesheets=[STYLE]),
        "panel": Div(
            text=HINT,
            name="panel",
            width=PANEL,
            height=sizes.panel_height,
            stylesheets=[STYLE],
            styles=scrolled,
        ),
    }


def _attach(player: CustomJS, map_: Any, timeline: Any, widgets: dict[str, Any]) -> None:
    for name in ("start", "back", "play", "forward"):
        widgets[name].js_on_event("button_click", player)
    for name in ("slider", "speed", "pace"):
        widgets[name].js_on_change("value", player)
    map_.js_on_event("tap", player)
    timeline.js_on_event("tap", player)
    # The browser sets a plot's inner size when it lays it out: the moment to draw for the first time.
    map_.js_on_change("inner_width", player)
    named = {label: names for label, names, _ in LAYERS}
    renderers = [[r for r in map_.renderers if r.name in named[label]] for label in widgets["layers"].labels]
    code = "renderers.forEach((some, i) => some.forEach((one) => (one.visible = layers.active.includes(i))))"
    args = {"renderers": renderers, "layers": widgets["layers"]}
    widgets["layers"].js_on_change("active", CustomJS(args=args, code=code))


def _arrange(
    run: Any, sizes: Sizes, map_: Any, timeline: Any, widgets: dict[str, Any], legend: str, notes: list[str]
) -> Any:
    heading = Div(text=caption.heading_html(run), width=WIDTH - PANEL - GAP, stylesheets=[STYLE])
    stage = column(widgets["layers"], map_, Div(text=legend, width=sizes.map_width - 40, stylesheets=[STYLE]))
    controls = row(*[widgets[name] for name in ("start", "back", "play", "forward", "slider", "speed", "pace")])
    parts = [row(heading, widgets["clock"], spacing=GAP)]
    if sizes.is_wide:
        parts += [stage, controls, row(timeline, widgets["panel"], spacing=GAP)]
    else:
        parts += [row(stage, widgets["panel"], spacing=GAP), controls, timeline]
    if notes:
        said = f'<p class="hint">{" ".join(notes)}</p>'
        parts.append(Div(text=said, width=WIDTH, stylesheets=[STYLE]))
    return column(*parts, width=WIDTH)

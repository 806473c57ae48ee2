"""The payload: the data of a run for the browser, as one buffer of bytes. ``browser/payload.js`` reads it.

Theory of operation
    A payload begins with 4 bytes of magic and the length of the header (4 bytes). The header is JSON. The columns
    follow, each at a multiple of 8 bytes. In the header a column is {"column": type, "at": offset, "rows": number}; if
    all rows are equal, "all": value replaces the offset. Nodes become indices of the layout, times become whole ticks,
    and integers get the smallest type that holds all of them. Rows about nodes outside the layout are left out, as are
    columns in which all values are the default.

    For a large run, a payload of a tenth of the size suffices for a picture of one moment (`preview`). It has the rows
    that are drawn at that time and the marks of the timeline. The player shows them until the whole run arrives.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from workbench.columns import unique_inverse
from workbench.sim.rows import Columns
from workbench.views import caption, palette
from workbench.views.changes import Span, moments_of_changes, timeline_spans
from workbench.views.changing_layout import ChangingLayout
from workbench.views.frames import LOST_AT
from workbench.views.layers import COLUMNS, LEVELS, Curves, Layer, Look, Panel, RunView, Scale, Table, select
from workbench.views.layout import Layout, graph_of_links, hops_to
from workbench.views.nodes import HOLDS, LOOKS, SUBSCRIPTIONS
from workbench.views.player.counters import MOST_COUNTED, MOST_STEPS, counted, running
from workbench.views.player.moments import moments_of
from workbench.views.seeing import NODE_LOOK

MAGIC = b"wbp1"
FEW = 64  # rows; a column with at most this many is always sent in full
TICKS = (1 << 32) - 2
COMPACT_TICKS, COMPACT_STEPS = (1 << 16) - 2, 500  # in a compact payload: the last tick, the most steps of a curve
LINK_SHADES = 6
MOVING = frozenset(("packet", "wave", "loss"))
PAINTED = (
    "node",
    "peer",
    "from",
    "until",
    "look",
    "weight",
    "path",
    "text",
    "low",
    "high",
    "lane",
    "x_m",
    "y_m",
    "radius_m",
)
FRAMES, NODES = "frames", "nodes"
ON_TIMELINE = (FRAMES, "losses", "deliveries")
_TOTALS = ("transmissions", "deliveries", "energy")
_COLOURS = {
    "ground": palette.BACKGROUND,
    "text": palette.TEXT,
    "faint": palette.FAINT_TEXT,
    "grid": palette.GRID,
    "outline": palette.OUTLINE,
    "wall": palette.WALL,
}


class Buffer:
    """The bytes of a payload's columns. ``parts``: pieces of bytes, in order; ``size``: number of bytes so far."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def column(self, values: np.ndarray) -> dict[str, Any]:
        """Add the values of a column and return the column's entry in the payload's header.

        If a column has more than `FEW` values and all are equal, the entry contains this value, and no bytes are added.
        """
        shrunk = _shrink_type(np.asarray(values))
        if len(shrunk) > FEW and shrunk[0] == shrunk[-1] and (shrunk == shrunk[0]).all():
            return {"column": shrunk.dtype.str[1:], "all": shrunk[0].item(), "rows": len(shrunk)}
        column_bytes = np.ascontiguousarray(shrunk).tobytes()
        header_entry = {"column": shrunk.dtype.str[1:], "at": self.size, "rows": len(shrunk)}
        self.parts += [column_bytes, bytes(-len(column_bytes) % 8)]
        self.size += len(column_bytes) + -len(column_bytes) % 8
        return header_entry


def _shrink_type(values: np.ndarray) -> np.ndarray:
    """Convert an array of integers to the smallest type that holds all of them, or to float64 beyond 32 bits.

    An array of floating-point numbers is returned unchanged.
    """
    if values.dtype.kind == "f":
        return values
    smallest_value, largest_value = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    for integer_type in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32):
        if np.iinfo(integer_type).min <= smallest_value and largest_value <= np.iinfo(integer_type).max:
            return values.astype(integer_type)
    return values.astype(np.float64)


def pack(
    view: RunView,
    frames_bytes: Mapping[str, Any] | None = None,
    now_s: float | None = None,
    notes: Iterable[str] = (),
    is_compact: bool = False,
) -> bytes:
    """Return the payload of a run, with which a browser plays the run.

    view: the layers of the run.
    frames_bytes: dissected frames, as from `dissections.dissect_first`; None: the player shows no bytes.
    now_s: the current time of a run in progress; None for a completed run.
    notes: sentences to show before the notes of ``view``.
    is_compact: for a page with many runs: times are rounded to 1/65,000 of the duration, and counters and totals
        over time have fewer steps.
    """
    buffer, columns = Buffer(), view.trace or Columns(view.run.trace)
    panels = _list_panels(view)
    if is_compact:
        view = replace(view, layers=tuple(map(_compact_layer, view.layers)), is_compact=True)
    clock = view.clock.thinned(COMPACT_STEPS) if is_compact else view.clock
    header = {
        **_common_entries(view, buffer),
        "numbers": caption.key_numbers(view.run),
        "moments": moments_of(columns, moments_of_changes(view.run.scenario)),
        "poster_s": poster_us(view) / 1e6,
        "picked": _first_selected_node(view),
        "clock": {"time": buffer.column(clock.knots_us / 1e6), "moment": buffer.column(clock.knots_s)},
        "running": _totals_entry(columns, view, buffer),
        "counts": (counts := _counts_entry(columns, view, buffer)),
        "layers": [_whole_layer_entry(layer, view, panels, buffer) for layer in view.layers],
        "bytes": frames_bytes,
        "now_s": now_s,
        "notes": [*notes, *view.notes, *_rounding_notes(counts["step"])],
    }
    return written(header, buffer)


def preview(view: RunView, time_s: float) -> bytes:
    """Return a smaller payload that shows a run only at ``time_s``: its map, diagrams, curves and timeline.

    Texts are included only if they are drawn at this time.
    """
    buffer, panels, clock = Buffer(), _list_panels(view), view.clock
    duration_s = view.duration_us / 1e6
    time_s = min(time_s, duration_s)
    is_changing, view = isinstance(view.plan, ChangingLayout), replace(view, plan=view.plan.at(round(time_s * 1e6)))
    times_us = np.array([0.0, time_s * 1e6, view.duration_us])
    layers = [_layer_entry_at(layer, view, panels, time_s, buffer) for layer in view.layers]
    empty = np.zeros(0)
    header = {
        **_common_entries(view, buffer),
        "is_preview": True,
        "numbers": [],
        "moments": [],
        "poster_s": time_s,
        "picked": -1,
        "clock": {"time": buffer.column(times_us / 1e6), "moment": buffer.column(clock.at(times_us))},
        "running": dict.fromkeys(("time", *_TOTALS), buffer.column(empty)),
        "counts": {**dict.fromkeys(("first", "time", "kind"), buffer.column(empty)), "words": [], "step": 1},
        "layers": [layer for layer in layers if layer["is_drawn"] or layer["panel"] is not None]
        + [_timeline_marks(layer, view, buffer) for layer in view.layers if layer.name in ON_TIMELINE],
        "bytes": None,
        "now_s": None,
        "notes": [],
    }
    if is_changing:
        header["plan"]["is_changing"] = True
    return written(header, buffer)


def _common_entries(view: RunView, buffer: Buffer) -> dict[str, Any]:
    """Return the entries of a payload's header that a whole run (`pack`) and its preview have in common."""
    return {
        **_caption_entries(view),
        "duration_s": view.duration_us / 1e6,
        "tick_s": _tick_us(view) / 1e6,
        **map_header(view.plan, view.run.scenario.topology, buffer, _tick_us(view)),
        "timeline": _timeline_entry(view, buffer),
        "panels": [_panel_entry(panel) for panel in _list_panels(view)],
        "chips": _list_buttons(view),
        "curves": [_curves_entry(curves, buffer) for curves in view.curves],
        "paths": [
            {"label": path.label, "from_s": path.from_us / 1e6, "description": path.description}
            for path in view.paths.paths
        ],
        "is_newest": view.paths.is_newest,
    }


def _tick_us(view: RunView) -> int:
    return max(1, -(-view.duration_us // (COMPACT_TICKS if view.is_compact else TICKS)))


def _compact_layer(layer: Layer) -> Layer:
    """Return a layer without the column ``row`` (rows of the trace), which only a player with a kernel uses.

    The layer of frames also loses the column ``value``, the exact time at which each transmission ends.
    """
    omitted = {"row", "value"} if layer.name == FRAMES else {"row"}
    return replace(layer, table={name: column for name, column in layer.table.items() if name not in omitted})


def split_payload(payload: bytes) -> tuple[str, bytes]:
    """Split a payload into (header as JSON text, bytes of the columns).

    A page with many runs stores their headers together, because similar headers compress well.
    """
    length = struct.unpack_from("<I", payload, len(MAGIC))[0]
    end = len(MAGIC) + 4 + length
    return payload[len(MAGIC) + 4 : end].decode(), payload[end + -length % 8 :]


def written(header: Mapping[str, Any], buffer: Buffer) -> bytes:
    """Return a payload as bytes for the browser: magic, length of the header, header as JSON, columns in ``buffer``."""
    header_bytes = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return b"".join(
        (MAGIC, struct.pack("<I", len(header_bytes)), header_bytes, bytes(-len(header_bytes) % 8), *buffer.parts)
    )


def _caption_entries(view: RunView) -> dict[str, Any]:
    details = " · ".join(
        caption_text for caption_text in (caption.workload(view.run), caption.conditions(view.run)) if caption_text
    )
    return {"title": caption.title(view.run), "workload": details, "subject": caption.subject(view.run)}


def _rounding_notes(step: int) -> list[str]:
    return [f"Counters of single nodes are rounded down to multiples of {step}."] if step > 1 else []


def _light_and_dark(colour: str) -> list[str]:
    return [colour, palette.in_dark(colour)]


def _link_shades() -> list[list[str]]:
    shades = [palette.link_colour(step / (LINK_SHADES - 1)) for step in range(LINK_SHADES)]
    return [shades, [palette.in_dark(shade) for shade in shades]]


def look_header(look: Look) -> dict[str, Any]:
    """Return the fields of a look (`layers.Look`: a style) as JSON values for the browser.

    The field ``colour`` becomes [colour on a light background, colour on a dark background].
    """
    return {**look._asdict(), "colour": _light_and_dark(look.colour)}


def _scale_entry(scale: Scale | None) -> dict[str, Any] | None:
    if scale is None:
        return None
    return {**scale._asdict(), "colours": [list(scale.colours), [palette.in_dark(colour) for colour in scale.colours]]}


# The network


def map_header(plan: Layout, graph: nx.Graph, buffer: Buffer, tick_us: int = 1) -> dict[str, Any]:
    """Return the entries of a payload's header that describe the map: the network, and the style of nodes and links.

    plan: the layout of the network ``graph``.
    buffer: the buffer to which the columns of the layout are added.
    tick_us: the length of a tick in µs; times of changes become whole ticks.
    The entry "network" is a digest, by which the browser recognizes an equal network.
    """
    return {
        "network": graph.graph.get("digest", ""),
        "colours": {name: _light_and_dark(colour) for name, colour in _COLOURS.items()},
        "link_shades": _link_shades(),
        "plain_node": look_header(NODE_LOOK),
        "node_level": LEVELS["node"],
        "lost_at": LOST_AT,
        "plan": _plan_entry(plan, buffer) | _changes_entries(plan, buffer, tick_us),
    }


def _plan_entry(plan: Layout, buffer: Buffer) -> dict[str, Any]:
    forward, backward = plan.links["pdr_ab"], plan.links["pdr_ba"]
    columns = {
        "x": plan.x_m,
        "y": plan.y_m,
        "id": plan.ids,
        "a": plan.links["a"],
        "b": plan.links["b"],
        "ab": np.rint(100 * forward).astype(np.int64),
        "ba": np.rint(100 * backward).astype(np.int64),
        "shade": np.rint((LINK_SHADES - 1) * np.maximum(forward, backward)).astype(np.int64),
        "walls": plan.walls.reshape(-1),
    }
    plan_entries = {name: buffer.column(column) for name, column in columns.items()}
    return {**plan_entries, "box": list(plan.box_m), "spacing": plan.spacing_m}


def _changes_entries(plan: Layout, buffer: Buffer, tick_us: int) -> dict[str, Any]:
    """Return the header entries of a layout that changes (`ChangingLayout`), or {} for any other layout.

    is_changing: True.
    tracks: columns nodes (indices of the moving nodes), first (for each of them the index of its first vertex), and
        time (in ticks), x and y (in m) of all vertices; also window, `TrackVertices.window_us` in ticks, or None.
    links: columns with an entry for each interval: a and b (indices of nodes), ab and ba (delivery ratios in percent),
        from and until (indices in the column times, which lists the times of changes in ticks).
    """
    if not isinstance(plan, ChangingLayout):
        return {}
    entries: dict[str, Any] = {"is_changing": True}
    if plan.tracks is not None:
        tracks, window_us = plan.tracks, plan.tracks.window_us
        columns = {"nodes": tracks.nodes, "first": tracks.first, "time": tracks.time_us // tick_us}
        columns |= {"x": tracks.x_m.astype(np.float32), "y": tracks.y_m.astype(np.float32)}
        entries["tracks"] = {name: buffer.column(column) for name, column in columns.items()}
        entries["tracks"]["window"] = None if window_us is None else window_us // tick_us
    if plan.link_intervals is not None:
        links = plan.link_intervals
        ticks = {name: links[f"{name}_us"] // tick_us for name in ("from", "until")}
        times = np.unique(np.concatenate(list(ticks.values())))
        columns = {"times": times, "a": links["a"], "b": links["b"]}
        columns |= {name: np.searchsorted(times, ticks[name]) for name in ("from", "until")}
        columns |= {name: np.rint(100 * links[f"pdr_{name}"]).astype(np.int64) for name in ("ab", "ba")}
        entries["links"] = {name: buffer.column(column) for name, column in columns.items()}
    return entries


def _timeline_entry(view: RunView, buffer: Buffer) -> dict[str, Any]:
    """Return the entry of a payload's header for the timeline, a diagram with an axis of nodes and an axis of time.

    row: column with the position of each node on the axis of nodes. Nodes with fewer hops to the first sink come first.
    ticks: a list of (position on the axis, number of hops as text).
    spans: if the network changes, the intervals in which nodes are down, the network is separated or jammers send.
    label: the label of the axis.
    """
    sinks = [layer.table["node"] for layer in view.layers if layer.section is SUBSCRIPTIONS]
    sink = int(sinks[0][0]) if sinks and len(sinks[0]) else None
    plan = view.plan
    is_moving = isinstance(plan, ChangingLayout) and plan.tracks is not None
    # If nodes move, the links of the topology may never exist.
    graph = graph_of_links(plan) if is_moving else view.run.scenario.topology
    hops = {} if sink is None else hops_to(graph, sink)
    unreachable = len(view.plan.ids) + 1
    distance = np.array([hops.get(node, unreachable) for node in view.plan.ids.tolist()], np.int64)
    by_distance = np.lexsort((view.plan.ids, distance))
    axis_positions = np.empty(len(by_distance), np.int64)
    axis_positions[by_distance] = np.arange(len(by_distance))
    ticks: list[tuple[float, str]] = []
    for hop in np.unique(distance).tolist() if hops else ():
        middle_row = float(axis_positions[distance == hop].mean())
        if not ticks or middle_row - ticks[-1][0] > 0.13 * len(by_distance):  # room for its label
            ticks.append((middle_row, "–" if hop == unreachable else str(hop)))
    label = "node" if sink is None else f"hops to {sink}"
    entry = {"row": buffer.column(axis_positions), "ticks": ticks, "label": label}
    spans = timeline_spans(view)
    return entry | {"spans": [_span_entry(span, view) for span in spans]} if spans else entry


def _span_entry(span: Span, view: RunView) -> dict[str, Any]:
    """Return an interval of the timeline as JSON values; its node becomes an index of the layout, or -1."""
    node = int(view.plan.indices(np.array([span.node]))[0])
    from_s, until_s = span.from_us / 1e6, span.until_us / 1e6
    return {"label": span.label, "from": from_s, "until": until_s, "node": node, "colour": _light_and_dark(span.colour)}


# Layers


def _whole_layer_entry(layer: Layer, view: RunView, panels: list[Panel], buffer: Buffer) -> dict[str, Any]:
    table, rows = _table_columns(layer, view)
    return _layer_entry(layer, panels, rows) | {
        "section": layer.section and layer.section._asdict(),
        "words": list(layer.words),
        "table": {name: buffer.column(column) for name, column in table.items()},
    }


def _layer_entry_at(layer: Layer, view: RunView, panels: list[Panel], time_s: float, buffer: Buffer) -> dict[str, Any]:
    """Return a layer's entry in the payload's header, with only the rows that are drawn at ``time_s``.

    ``panels``: all diagrams below the map of ``view``. ``buffer``: the buffer to which the layer's columns are added.
    """
    tick_us = _tick_us(view)
    tick = min(time_s, view.duration_us / 1e6 - 1e-6) / (tick_us / 1e6)  # as in the player
    began_ticks, end_ticks = (layer.table[name] // tick_us for name in ("from_us", "until_us"))
    alive_rows = np.flatnonzero((began_ticks <= tick) & (end_ticks > tick))
    alive_layer = replace(layer, table=select(layer.table, alive_rows))
    table, rows = _table_columns(alive_layer, view)
    texts: Sequence[str] = ()
    is_written = layer.panel is not None or "label" in (layer.mark, *(look.mark for look in layer.looks))
    if not is_written:
        table.pop("text", None)
    elif "text" in table:
        used_codes, table["text"] = unique_inverse(table["text"])
        texts = [layer.words[text_code] if text_code >= 0 else "" for text_code in used_codes.tolist()]
    return _layer_entry(alive_layer, panels, rows) | {
        "on_timeline": False,
        "section": None,
        "words": texts,
        "table": {name: buffer.column(table[name]) for name in PAINTED if name in table},
    }


def _timeline_marks(layer: Layer, view: RunView, buffer: Buffer) -> dict[str, Any]:
    """Return a layer's entry in the header of a preview, with only the columns that the timeline draws.

    These are the begin, the node and the look. The entry has all rows of the layer, not only those at the time of the
    preview.
    """
    mark_columns: Table = {name: layer.table[name] for name in ("from_us", "node", "look") if name in layer.table}
    table, rows = _table_columns(replace(layer, table=mark_columns | {"until_us": mark_columns["from_us"]}), view)
    del table["until"]
    hidden_entries = {
        "panel": None,
        "is_drawn": False,
        "is_moving": False,
        "is_frames": False,
        "section": None,
        "words": [],
    }
    return (
        _layer_entry(layer, [], rows) | hidden_entries | {"table": {name: buffer.column(table[name]) for name in table}}
    )


def _layer_entry(layer: Layer, panels: list[Panel], rows: np.ndarray) -> dict[str, Any]:
    """Return a layer's entry in the payload's header, without its table and texts.

    panels: all diagrams below the map, to which the entry refers by index.
    rows: indices of the rows of the layer that are sent.
    """
    marks = {look.mark or layer.mark for look in layer.looks}
    level = min((LEVELS[mark] for mark in marks if mark), default=0) if layer.level is None else layer.level
    look_indices = layer.column("look")[rows] if len(layer.looks) > 1 else np.zeros(min(len(rows), 1), np.int16)
    return {
        "name": layer.name,
        "mark": layer.mark,
        "looks": [look_header(look) for look in layer.looks],
        "used": np.unique(look_indices).tolist() if layer.looks else [],
        "scale": _scale_entry(layer.scale),
        "panel": None if layer.panel is None else panels.index(layer.panel),
        "is_detail": layer.is_detail,
        "of_path": layer.of_path,
        "level": level,
        "has_nodes": "node" in marks,
        "is_drawn": bool(marks - {"", "strip"}),
        "is_moving": bool(marks & MOVING),
        "is_frames": layer.name == FRAMES,
        "on_timeline": layer.name in ON_TIMELINE,
    }


def _table_columns(layer: Layer, view: RunView) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return ({name: column} of a layer's table for the browser, indices of the rows that these columns contain).

    The columns "from_us" and "until_us" become "from" and "until", in ticks. Nodes become indices of the layout. Rows
    are left out if their node is not in the layout. Columns are left out if all of their values are the default in
    `COLUMNS`.
    """
    node_indices = {name: view.plan.indices(layer.column(name)) for name in ("node", "peer")}
    node = layer.column("node")
    rows = np.flatnonzero((node_indices["node"] >= 0) | (node < 0))
    columns, tick_us = {}, _tick_us(view)
    for name in layer.table:
        default_value = COLUMNS[name][1]
        column = node_indices[name][rows] if name in node_indices else layer.column(name)[rows]
        if name in ("from_us", "until_us"):
            columns[name.removesuffix("_us")] = np.clip(column // tick_us, 0, TICKS + 1)
        elif (column != default_value).any():
            columns[name] = column
    if view.is_compact:  # no row may vanish between two ticks
        columns["until"] = np.maximum(columns["until"], columns["from"] + 1)
    return columns, rows


def _list_buttons(view: RunView) -> list[dict[str, Any]]:
    """Return {"name": ..., "is_on": ...} for each button that shows and hides layers, in the order of the buttons."""
    chips = {"links": True}
    for layer in view.layers:
        names = [look.chip or layer.name for look in layer.looks if look.mark or layer.mark]
        for name in dict.fromkeys(names):
            if len(layer) and name != NODES:
                chips[name] = chips.get(name, False) or layer.is_on
    return [{"name": name, "is_on": is_on} for name, is_on in chips.items()]


def _list_panels(view: RunView) -> list[Panel]:
    return list(dict.fromkeys(layer.panel for layer in view.layers if layer.panel is not None))


def _panel_entry(panel: Panel) -> dict[str, Any]:
    return panel._asdict()


def _curves_entry(curves: Curves, buffer: Buffer) -> dict[str, Any]:
    line_entries = [
        {
            "label": line.label,
            "colour": _light_and_dark(line.colour),
            "time": buffer.column(np.asarray(line.times_us) / 1e6),
            "value": buffer.column(np.asarray(line.values, np.float64)),
        }
        for line in curves.lines
    ]
    return {"name": curves.name, "y_label": curves.y_label, "lines": line_entries}


# Numbers


def _totals_entry(columns: Columns, view: RunView, buffer: Buffer) -> dict[str, Any]:
    totals = running(
        columns, getattr(view.run.scenario, "radio", None), COMPACT_STEPS if view.is_compact else MOST_STEPS
    )
    totals["energy"] = totals.pop("energy_mJ").astype(np.float32)
    return {"time": buffer.column(totals["time_us"] / 1e6), **{name: buffer.column(totals[name]) for name in _TOTALS}}


def _counts_entry(columns: Columns, view: RunView, buffer: Buffer) -> dict[str, Any]:
    """Return the entry of a payload's header from which the player computes each node's counters at any time.

    time: column with the time in ticks of each counted row of the trace. Rows are sorted by node, then by time.
    kind: column with the counter to which each of these rows adds, as an index into ``words``.
    first: column with an entry for each node: the index in ``time`` and ``kind`` at which its rows begin.
    words: names of the counters.
    step: each entry of ``time`` represents this number of rows of the trace.
    """
    counts = counted(columns, 4 * COMPACT_STEPS if view.is_compact else MOST_COUNTED)
    indices = view.plan.indices(counts.node)
    is_in_layout = indices >= 0
    return {
        "first": buffer.column(np.searchsorted(indices[is_in_layout], np.arange(len(view.plan.ids)))),
        "time": buffer.column(np.clip(counts.time_us[is_in_layout] // _tick_us(view), 0, TICKS)),
        "kind": buffer.column(counts.kind[is_in_layout]),
        "words": counts.words,
        "step": counts.step,
    }


# The initial state of a player


def poster_us(view: RunView) -> int:
    """Return the time in µs that a player shows at first: the middle of the last hop of one delivery.

    Of n deliveries, delivery number n // 3 is selected; if its last hop is unknown, the time is that of the delivery.
    Without deliveries, the time is the median of the times at which nodes began to hold an event. If at most one node
    held an event, the time is the middle of the run.
    """
    deliveries = view.layer("deliveries").table
    if not len(deliveries["from_us"]):
        node_layer = view.layer(NODES, "node")
        held_from_us = node_layer.table["from_us"][node_layer.column("look") == LOOKS.index(HOLDS)]
        return int(np.median(held_from_us)) if len(held_from_us) > 1 else view.duration_us // 2
    delivery_row = len(deliveries["from_us"]) // 3
    time_us, sink = int(deliveries["from_us"][delivery_row]), int(deliveries["node"][delivery_row])
    frames = view.layer(FRAMES)
    frame_ends_us = frames.column("value")
    last_hops = np.flatnonzero(
        (frames.column("peer") == sink) & (frame_ends_us <= time_us) & (frame_ends_us > time_us - 1_000_000)
    )
    if not len(last_hops):
        return time_us
    start_us = int(frames.table["from_us"][last_hops[-1]])
    return (start_us + int(frames.table["until_us"][last_hops[-1]])) // 2


def _first_selected_node(view: RunView) -> int:
    """Return the index in the layout of the node that is selected at first, or -1 for no node.

    It is the node of the first suitable row in the tables of the inspector. In the table of subscriptions all rows are
    suitable, in other tables only rows whose interval contains the time `poster_us`.
    """
    time_us = poster_us(view)
    for layer in view.layers:
        if layer.section is None or "node" not in layer.table:
            continue
        candidate_nodes = (
            layer.table["node"][layer.alive(time_us)] if layer.section is not SUBSCRIPTIONS else layer.table["node"]
        )
        if len(candidate_nodes):
            return int(view.plan.indices(candidate_nodes[:1])[0])
    return -1

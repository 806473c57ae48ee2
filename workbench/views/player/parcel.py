"""A parcel: what the browser gets of a run, as one buffer of bytes. ``browser/parcel.js`` reads it.

Theory of operation
    8 bytes of magic and the length of a header, the header as JSON, then columns, each on a multiple of 8 bytes. In the
    header a column is {"column": type, "at": offset, "rows": number}, or with "all": a value in place of the offset, if
    that is what stands in every row. Nodes become indices of the plan, times become whole ticks, and of integers the
    shortest type is taken that holds them all. Rows about nodes that are not in the plan are left out, and so are
    columns that only repeat their neutral value.

    Of a large run a tenth of that is enough for a picture of one moment (`glimpse`): what is alive then, and the marks
    of the timeline. The player shows it while the rest is on its way.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.columns import unique_inverse
from workbench.sim.rows import Columns
from workbench.views import caption, palette
from workbench.views.frames import LOST_AT
from workbench.views.layers import COLUMNS, LEVELS, Curves, Layer, Look, Panel, Scale, Seen, Table, select
from workbench.views.layout import Layout, hops_to
from workbench.views.nodes import HOLDS, LOOKS, SUBSCRIPTIONS
from workbench.views.player.counters import counted, running
from workbench.views.seeing import NODE_LOOK

MAGIC = b"wbp1"
FEW = 64  # rows of a column that is sent as it is
TICKS = (1 << 32) - 2
LINK_SHADES = 6
MOVING = frozenset(("packet", "wave", "loss"))
PAINTED = ("node", "peer", "from", "until", "look", "weight", "way", "text", "low", "high", "lane")
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
    """Columns, one after the other."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def column(self, values: np.ndarray) -> dict[str, Any]:
        """Add a column; returns what the header says of it. Of one that says the same everywhere the header has it."""
        shortest = _shortest(np.asarray(values))
        if len(shortest) > FEW and shortest[0] == shortest[-1] and (shortest == shortest[0]).all():
            return {"column": shortest.dtype.str[1:], "all": shortest[0].item(), "rows": len(shortest)}
        data = np.ascontiguousarray(shortest).tobytes()
        said = {"column": shortest.dtype.str[1:], "at": self.size, "rows": len(shortest)}
        self.parts += [data, bytes(-len(data) % 8)]
        self.size += len(data) + -len(data) % 8
        return said


def _shortest(values: np.ndarray) -> np.ndarray:
    """Integers in the shortest type that holds them, floats as they are; what fits none as float64."""
    if values.dtype.kind == "f":
        return values
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return values.astype(np.float64)


def pack(
    seen: Seen,
    frames_bytes: Mapping[str, Any] | None = None,
    now_s: float | None = None,
    notes: Iterable[str] = (),
) -> bytes:
    """The parcel of what is seen of a run.

    frames_bytes: frames taken apart, as `dissections.told` makes them; now_s: how far a run has come that goes on;
    notes: sentences besides those of what is seen.
    """
    buffer, columns = Buffer(), seen.trace or Columns(seen.run.trace)
    panels = _panels(seen)
    header = {
        **_frame(seen, buffer),
        "numbers": caption.key_numbers(seen.run),
        "poster_s": poster_us(seen) / 1e6,
        "picked": _first_picked(seen),
        "film": {"time": buffer.column(seen.film.knots_us / 1e6), "moment": buffer.column(seen.film.knots_s)},
        "running": _running(columns, seen, buffer),
        "counts": (counts := _counts(columns, seen, buffer)),
        "layers": [_layer(layer, seen, panels, buffer) for layer in seen.layers],
        "bytes": frames_bytes,
        "now_s": now_s,
        "notes": [*notes, *seen.notes, *_rounded(counts["step"])],
    }
    return written(header, buffer)


def glimpse(seen: Seen, time_s: float) -> bytes:
    """A parcel of what is seen at a time: it has what map and timeline show then, and nothing that is told in words."""
    buffer, panels, film = Buffer(), _panels(seen), seen.film
    duration_s = seen.duration_us / 1e6
    time_s = min(time_s, duration_s)
    times_us = np.array([0.0, time_s * 1e6, seen.duration_us])
    layers = [_alive(layer, seen, panels, time_s, buffer) for layer in seen.layers]
    nothing = np.zeros(0)
    header = {
        **_frame(seen, buffer),
        "is_glimpse": True,
        "numbers": [],
        "poster_s": time_s,
        "picked": -1,
        "film": {"time": buffer.column(times_us / 1e6), "moment": buffer.column(film.at(times_us))},
        "running": dict.fromkeys(("time", *_TOTALS), buffer.column(nothing)),
        "counts": {**dict.fromkeys(("first", "time", "kind"), buffer.column(nothing)), "words": [], "step": 1},
        "layers": [one for one in layers if one["is_drawn"] or one["panel"] is not None]
        + [_marks(layer, seen, buffer) for layer in seen.layers if layer.name in ON_TIMELINE],
        "bytes": None,
        "now_s": None,
        "notes": [],
    }
    return written(header, buffer)


def _frame(seen: Seen, buffer: Buffer) -> dict[str, Any]:
    """What every parcel of a run has."""
    return {
        **_caption(seen),
        "duration_s": seen.duration_us / 1e6,
        "tick_s": _tick_us(seen) / 1e6,
        **ground_of(seen.plan, buffer),
        "timeline": _timeline(seen, buffer),
        "panels": [_panel(panel) for panel in _panels(seen)],
        "chips": _chips(seen),
        "curves": [_curves(one, buffer) for one in seen.curves],
        "ways": [{"said": way.said, "from_s": way.from_us / 1e6, "told": way.told} for way in seen.ways.ways],
        "is_newest": seen.ways.is_newest,
    }


def _tick_us(seen: Seen) -> int:
    return max(1, -(-seen.duration_us // TICKS))


def written(header: Mapping[str, Any], buffer: Buffer) -> bytes:
    """The parcel of a header and the columns that it speaks of."""
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return b"".join((MAGIC, struct.pack("<I", len(text)), text, bytes(-len(text) % 8), *buffer.parts))


def _caption(seen: Seen) -> dict[str, Any]:
    said = " · ".join(part for part in (caption.workload(seen.run), caption.conditions(seen.run)) if part)
    return {"title": caption.title(seen.run), "workload": said}


def _rounded(step: int) -> list[str]:
    return [f"Counters of single nodes are rounded down to multiples of {step}."] if step > 1 else []


def _pair(colour: str) -> list[str]:
    """A colour on a light and on a dark ground."""
    return [colour, palette.in_dark(colour)]


def _link_shades() -> list[list[str]]:
    shades = [palette.link_colour(step / (LINK_SHADES - 1)) for step in range(LINK_SHADES)]
    return [shades, [palette.in_dark(shade) for shade in shades]]


def look_of(look: Look) -> dict[str, Any]:
    """A look as the browser's part takes it."""
    return {**look._asdict(), "colour": _pair(look.colour)}


def _scale(scale: Scale | None) -> dict[str, Any] | None:
    if scale is None:
        return None
    return {**scale._asdict(), "colours": [list(scale.colours), [palette.in_dark(one) for one in scale.colours]]}


# The network


def ground_of(plan: Layout, buffer: Buffer) -> dict[str, Any]:
    """What a map needs of a header before there is anything to see on it: the network, and how it is painted."""
    return {
        "colours": {name: _pair(colour) for name, colour in _COLOURS.items()},
        "link_shades": _link_shades(),
        "plain_node": look_of(NODE_LOOK),
        "node_level": LEVELS["node"],
        "lost_at": LOST_AT,
        "plan": _plan(plan, buffer),
    }


def _plan(plan: Layout, buffer: Buffer) -> dict[str, Any]:
    forth, back = plan.links["pdr_ab"], plan.links["pdr_ba"]
    columns = {
        "x": plan.x_m,
        "y": plan.y_m,
        "id": plan.ids,
        "a": plan.links["a"],
        "b": plan.links["b"],
        "ab": np.rint(100 * forth).astype(np.int64),
        "ba": np.rint(100 * back).astype(np.int64),
        "shade": np.rint((LINK_SHADES - 1) * np.maximum(forth, back)).astype(np.int64),
        "walls": plan.walls.reshape(-1),
    }
    said = {name: buffer.column(column) for name, column in columns.items()}
    return {**said, "box": list(plan.box_m), "spacing": plan.spacing_m}


def _timeline(seen: Seen, buffer: Buffer) -> dict[str, Any]:
    """Each node's row on the timeline, nearest to the first sink first, and ticks (where, hops) for the axis."""
    sinks = [layer.table["node"] for layer in seen.layers if layer.section is SUBSCRIPTIONS]
    sink = int(sinks[0][0]) if sinks and len(sinks[0]) else None
    hops = {} if sink is None else hops_to(seen.run.scenario.topology, sink)
    far = len(seen.plan.ids) + 1
    distance = np.array([hops.get(node, far) for node in seen.plan.ids.tolist()], np.int64)
    order = np.lexsort((seen.plan.ids, distance))
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    ticks: list[tuple[float, str]] = []
    for hop in np.unique(distance).tolist() if hops else ():
        middle = float(row[distance == hop].mean())
        if not ticks or middle - ticks[-1][0] > 0.13 * len(order):  # room for its label
            ticks.append((middle, "–" if hop == far else str(hop)))
    label = "node" if sink is None else f"hops to {sink}"
    return {"row": buffer.column(row), "ticks": ticks, "label": label}


# Layers


def _layer(layer: Layer, seen: Seen, panels: list[Panel], buffer: Buffer) -> dict[str, Any]:
    table, rows = _table(layer, seen)
    return _described(layer, panels, rows) | {
        "section": layer.section and layer.section._asdict(),
        "words": list(layer.words),
        "table": {name: buffer.column(column) for name, column in table.items()},
    }


def _alive(layer: Layer, seen: Seen, panels: list[Panel], time_s: float, buffer: Buffer) -> dict[str, Any]:
    """What of a layer is to be painted at a time."""
    tick_us = _tick_us(seen)
    tick = min(time_s, seen.duration_us / 1e6 - 1e-6) / (tick_us / 1e6)  # as the player reckons
    began, ends = (layer.table[name] // tick_us for name in ("from_us", "until_us"))
    alive = np.flatnonzero((began <= tick) & (ends > tick))
    some = replace(layer, table=select(layer.table, alive))
    table, rows = _table(some, seen)
    words: Sequence[str] = ()
    is_written = layer.panel is not None or "label" in (layer.mark, *(look.mark for look in layer.looks))
    if not is_written:
        table.pop("text", None)
    elif "text" in table:
        used, table["text"] = unique_inverse(table["text"])
        words = [layer.words[one] if one >= 0 else "" for one in used.tolist()]
    return _described(some, panels, rows) | {
        "on_timeline": False,
        "section": None,
        "words": words,
        "table": {name: buffer.column(table[name]) for name in PAINTED if name in table},
    }


def _marks(layer: Layer, seen: Seen, buffer: Buffer) -> dict[str, Any]:
    """What the timeline has of a layer: a mark for each row."""
    marks: Table = {name: layer.table[name] for name in ("from_us", "node", "look") if name in layer.table}
    table, rows = _table(replace(layer, table=marks | {"until_us": marks["from_us"]}), seen)
    del table["until"]
    hidden = {"panel": None, "is_drawn": False, "is_moving": False, "is_frames": False, "section": None, "words": []}
    return _described(layer, [], rows) | hidden | {"table": {name: buffer.column(table[name]) for name in table}}


def _described(layer: Layer, panels: list[Panel], rows: np.ndarray) -> dict[str, Any]:
    """What the player is told of a layer, but for its table and words; ``rows``: those that it gets."""
    marks = {look.mark or layer.mark for look in layer.looks}
    level = min((LEVELS[mark] for mark in marks if mark), default=0) if layer.level is None else layer.level
    looks = layer.column("look")[rows] if len(layer.looks) > 1 else np.zeros(min(len(rows), 1), np.int16)
    return {
        "name": layer.name,
        "mark": layer.mark,
        "looks": [look_of(look) for look in layer.looks],
        "used": np.unique(looks).tolist() if layer.looks else [],
        "scale": _scale(layer.scale),
        "panel": None if layer.panel is None else panels.index(layer.panel),
        "is_detail": layer.is_detail,
        "of_way": layer.of_way,
        "level": level,
        "has_nodes": "node" in marks,
        "is_drawn": bool(marks - {"", "strip"}),
        "is_moving": bool(marks & MOVING),
        "is_frames": layer.name == FRAMES,
        "on_timeline": layer.name in ON_TIMELINE,
    }


def _table(layer: Layer, seen: Seen) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The columns that say something, of the rows whose nodes are in the plan; and the numbers of these rows."""
    places = {name: seen.plan.place(layer.column(name)) for name in ("node", "peer")}
    node = layer.column("node")
    rows = np.flatnonzero((places["node"] >= 0) | (node < 0))
    made, tick_us = {}, _tick_us(seen)
    for name in layer.table:
        neutral = COLUMNS[name][1]
        column = places[name][rows] if name in places else layer.column(name)[rows]
        if name in ("from_us", "until_us"):
            made[name.removesuffix("_us")] = np.clip(column // tick_us, 0, TICKS + 1)
        elif (column != neutral).any():
            made[name] = column
    return made, rows


def _chips(seen: Seen) -> list[dict[str, Any]]:
    """What can be shown and hidden, in order."""
    chips = {"links": True}
    for layer in seen.layers:
        names = [look.chip or layer.name for look in layer.looks if look.mark or layer.mark]
        for name in dict.fromkeys(names):
            if len(layer) and name != NODES:
                chips[name] = chips.get(name, False) or layer.is_on
    return [{"name": name, "is_on": is_on} for name, is_on in chips.items()]


def _panels(seen: Seen) -> list[Panel]:
    return list(dict.fromkeys(layer.panel for layer in seen.layers if layer.panel is not None))


def _panel(panel: Panel) -> dict[str, Any]:
    return panel._asdict()


def _curves(curves: Curves, buffer: Buffer) -> dict[str, Any]:
    lines = [
        {
            "said": line.said,
            "colour": _pair(line.colour),
            "time": buffer.column(np.asarray(line.times_us) / 1e6),
            "value": buffer.column(np.asarray(line.values, np.float64)),
        }
        for line in curves.lines
    ]
    return {"name": curves.name, "y_label": curves.y_label, "lines": lines}


# Numbers


def _running(columns: Columns, seen: Seen, buffer: Buffer) -> dict[str, Any]:
    totals = running(columns, getattr(seen.run.scenario, "radio", None))
    totals["energy"] = totals.pop("energy_mJ").astype(np.float32)
    return {"time": buffer.column(totals["time_us"] / 1e6), **{name: buffer.column(totals[name]) for name in _TOTALS}}


def _counts(columns: Columns, seen: Seen, buffer: Buffer) -> dict[str, Any]:
    """What each node had counted: times in order of node and time, and the first of each node's."""
    counts = counted(columns)
    place = seen.plan.place(counts.node)
    known = place >= 0
    return {
        "first": buffer.column(np.searchsorted(place[known], np.arange(len(seen.plan.ids)))),
        "time": buffer.column(np.clip(counts.time_us[known] // _tick_us(seen), 0, TICKS)),
        "kind": buffer.column(counts.kind[known]),
        "words": counts.words,
        "step": counts.step,
    }


# What a player opens with


def poster_us(seen: Seen) -> int:
    """A telling moment: a message on its last hop to a sink, after a third of the deliveries.

    Without deliveries it is when half of those that came to hold an event did, else the run's middle.
    """
    deliveries = seen.layer("deliveries").table
    if not len(deliveries["from_us"]):
        held = seen.layer(NODES, "node")
        start = held.table["from_us"][held.column("look") == LOOKS.index(HOLDS)]
        return int(np.median(start)) if len(start) > 1 else seen.duration_us // 2
    row = len(deliveries["from_us"]) // 3
    time_us, sink = int(deliveries["from_us"][row]), int(deliveries["node"][row])
    frames = seen.layer(FRAMES)
    ends = frames.column("value")
    last = np.flatnonzero((frames.column("peer") == sink) & (ends <= time_us) & (ends > time_us - 1_000_000))
    if not len(last):
        return time_us
    start_us = int(frames.table["from_us"][last[-1]])
    return (start_us + int(frames.table["until_us"][last[-1]])) // 2


def _first_picked(seen: Seen) -> int:
    """The index of the node with which the inspector opens: the first that subscribed, else any that decodes or holds;
    -1 if there is none."""
    time_us = poster_us(seen)
    for layer in seen.layers:
        if layer.section is None or "node" not in layer.table:
            continue
        nodes = layer.table["node"][layer.alive(time_us)] if layer.section is not SUBSCRIPTIONS else layer.table["node"]
        if len(nodes):
            return int(seen.plan.place(nodes[:1])[0])
    return -1

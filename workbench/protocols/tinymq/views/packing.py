"""What the browser is sent of an overlay, once: places, zones, queries, routes and frames as plain columns.

Nodes become places in the plan, times become seconds, and tables are in order of their beginning. Rows about nodes that
are not in the plan are left out. Of very many zones, queries in zones or hops the first ones are sent, of many
queries and events some, spread over the run; a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.protocols.tinymq.views.overlay import Overlay, protocol_of
from workbench.protocols.tinymq.views.routes import KINDS, Route, routed, routes
from workbench.protocols.tinymq.views.trees import key_label
from workbench.protocols.tinymq.views.zones import BoxSpan, stored_boxes, zone_spans
from workbench.views.ground import Plan
from workbench.views.player.columns import Columns
from workbench.views.player.intervals import read

DEPTHS = 8  # shades of a tree's color
MARKS = ("stored", "matched", "delivered", "dropped")
MESSAGES = tuple(message for messages in KINDS.values() for message in messages)
MOST_ZONES = 60_000
MOST_HOPS = 60_000

Table = dict[str, Any]


@dataclass
class Packed:
    """tables: columns by kind; names: of the routes; asked: the queries' texts, by the order in which they were stored;
    lane_y: how high a query's lane is; most_frames: the most that a node sends; notes: what was left out; is_thinned:
    whether there are events that cannot be followed."""

    tables: dict[str, Table]
    names: list[str]
    asked: list[str]
    lane_y: float
    most_frames: int
    notes: list[str] = field(default_factory=list)
    is_thinned: bool = False


def pack(run: Any, seen: Overlay, plan: Plan) -> Packed:
    """Everything that the browser needs of a run's overlay."""
    mapping = protocol_of(run).mapping
    zones = zone_spans(seen, mapping.key_bits)
    boxes = stored_boxes(seen, zones, mapping)
    ways = routes(run)
    packed = Packed({}, [f"{way.what[0]} {way.what[2]} of node {way.what[1]}" for way in ways], [], 0.2, 1)
    for kind, named in (("query", "queries"), ("event", "events")):
        count = sum(what[0] == kind for what in routed(run.trace))
        sent = sum(way.what[0] == kind for way in ways)
        if sent < count:
            packed.notes.append(f"Of {count:,} {named} {sent:,} can be followed, spread over the run.")
            packed.is_thinned |= kind == "event"
    packed.tables["places"] = _places(seen, plan)
    packed.tables["orphans"] = _orphans(seen, plan)
    packed.tables["zones"] = _zones(zones, packed, mapping.key_bits)
    packed.tables["boxes"] = _boxes(seen, boxes, packed)
    packed.tables |= _routes(ways, plan, packed)
    packed.tables |= _frames(read(run.trace), plan, packed)
    return packed


def _times(spans: Any) -> Table:
    return {
        "from": np.array([span.from_us / 1e6 for span in spans]),
        "until": np.array([span.until_us / 1e6 for span in spans]),
    }


def _whole(values: Any) -> np.ndarray:
    return np.array(list(values), dtype=np.int32)


def _places(seen: Overlay, plan: Plan) -> Table:
    nodes = plan.place(np.array([place.node for place in seen.places], dtype=np.int64))
    known = [place for place, index in zip(seen.places, nodes.tolist(), strict=True) if index >= 0]
    return {
        "node": plan.place(np.array([place.node for place in known], dtype=np.int64)).astype(np.int32),
        "parent": plan.place(np.array([place.parent for place in known], dtype=np.int64)).astype(np.int32),
        "tree": _whole(place.tree for place in known),
        "rekeyed": _whole(place.is_rekeyed for place in known),
        "label": [key_label(place) for place in known],
        **_times(known),
    }


def _orphans(seen: Overlay, plan: Plan) -> Table:
    places = plan.place(np.array([orphan.node for orphan in seen.orphans], dtype=np.int64)).tolist()
    known = [(orphan, place) for orphan, place in zip(seen.orphans, places, strict=True) if place >= 0]
    return {
        "node": _whole(place for _, place in known),
        "had_place": _whole(orphan.had_place for orphan, _ in known),
        **_times([orphan for orphan, _ in known]),
    }


def _zones(zones: list[Any], packed: Packed, key_bits: int) -> Table:
    if len(zones) > MOST_ZONES:
        packed.notes.append(f"Of {len(zones):,} changes of zones the first {MOST_ZONES:,} are shown.")
        zones = zones[:MOST_ZONES]
    return {
        "tree": _whole(span.tree for span in zones),
        "node": _whole(span.node for span in zones),
        "depth": _whole(min(span.depth, DEPTHS - 1) for span in zones),
        "key": [span.key or "root" for span in zones],
        **_strings(zones),
        **_times(zones),
    }


def _strings(spans: Any) -> Table:
    return {name: np.array([float(getattr(span, name)) for span in spans]) for name in ("low", "high")}


def _boxes(seen: Overlay, boxes: list[BoxSpan], packed: Packed) -> Table:
    texts = {(span.sink, span.number): span.text for span in seen.stored}
    order = {query: index for index, query in enumerate(texts)}
    packed.asked = [f"query {number} of node {sink}: {text}" for (sink, number), text in texts.items()]
    lanes = min(len(texts), 6)
    packed.lane_y = 0.2 / max(lanes, 1)
    if len(boxes) > MOST_ZONES:
        packed.notes.append(f"Of {len(boxes):,} parts of queries in zones the first {MOST_ZONES:,} are shown.")
        boxes = boxes[:MOST_ZONES]
    queries = [order[box.sink, box.number] for box in boxes]
    return {
        "tree": _whole(box.tree for box in boxes),
        "query": _whole(queries),
        "lane": _whole(query % max(lanes, 1) for query in queries),
        **_strings(boxes),
        **_times(boxes),
    }


def _routes(ways: list[Route], plan: Plan, packed: Packed) -> dict[str, Table]:
    hops = [(which, hop) for which, way in enumerate(ways) for hop in way.hops if hop.arrived]
    if len(hops) > MOST_HOPS:
        packed.notes.append(f"Of {len(hops):,} hops the first {MOST_HOPS:,} are shown.")
        hops = hops[:MOST_HOPS]
    hops.sort(key=lambda one: one[1].arrived_us)
    marks = sorted(
        ((which, mark) for which, way in enumerate(ways) for mark in way.marks), key=lambda one: one[1].at_us
    )
    begins = [way.hops[0].from_us if way.hops else way.marks[0].at_us if way.marks else 0 for way in ways]
    kinds = list(KINDS)
    return {
        "routes": {
            "at": np.array(begins) / 1e6,
            "kind": _whole(kinds.index(way.what[0]) for way in ways),
        },
        "hops": {
            "route": _whole(which for which, _ in hops),
            "a": plan.place(np.array([hop.sender for _, hop in hops], dtype=np.int64)).astype(np.int32),
            "b": plan.place(np.array([hop.receiver for _, hop in hops], dtype=np.int64)).astype(np.int32),
            "kind": _whole(MESSAGES.index(hop.message) for _, hop in hops),
            "at": np.array([hop.arrived_us / 1e6 for _, hop in hops]),
        },
        "marks": {
            "route": _whole(which for which, _ in marks),
            "node": plan.place(np.array([mark.node for _, mark in marks], dtype=np.int64)).astype(np.int32),
            "look": _whole(MARKS.index(mark.look) for _, mark in marks),
            "at": np.array([mark.at_us / 1e6 for _, mark in marks]),
        },
    }


def _frames(columns: Columns, plan: Plan, packed: Packed) -> dict[str, Table]:
    """When each node sent, in order of nodes and times, and where each node's frames begin."""
    rows = columns.where(event="sent")
    places = plan.place(columns["node"][rows])
    rows, places = rows[places >= 0], places[places >= 0]
    order = np.lexsort((columns["time_us"][rows], places))
    first = np.searchsorted(places[order], np.arange(len(plan.ids)))
    counts = np.diff(np.append(first, len(order)))
    packed.most_frames = max(int(counts.max(initial=0)), 1)
    return {
        "frames": {"at": (columns["time_us"][rows][order] / 1e6).astype(np.float32)},
        "senders": {"first": first.astype(np.int32)},
    }

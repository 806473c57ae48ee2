"""What the player shows of TinyMQ and PUB-2-SUB+: trees, keys, zones, queries, load, repair, the ways of messages.

    layers(recorded)    the layers, curves and ways of a run (`workbench.views.layers`)

Each tree has a color and, up to ten trees, a chip. In PUB-2-SUB+ a node is in every tree: its disc is grey, and each
tree's keys have a chip of their own. Zones are strips in a lane for each tree, with the stored queries on them below.
Of very many zones and parts of queries those are drawn that last longest; of many messages some can be followed, spread
over the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workbench.columns import argsort, row_keys, unique_all, unique_inverse
from workbench.protocols.tinymq.mapping import Mapping
from workbench.protocols.tinymq.views.looks import (
    MESSAGES,
    NOBODY,
    ORPHAN,
    QUERIES,
    REKEYED,
    TREES,
    depth_colour,
    load_colour,
    tree_colour,
)
from workbench.protocols.tinymq.views.overlay import Overlay, overlay_in
from workbench.protocols.tinymq.views.routes import KINDS, MARKS, MESSAGE_NAMES, NOTIFICATION, to_follow, travelled
from workbench.protocols.tinymq.views.zones import stored_boxes, zone_table
from workbench.views import palette
from workbench.views.layers import (
    Curves,
    Layer,
    Line,
    Look,
    MessagePath,
    MessagePaths,
    Panel,
    Part,
    Recorded,
    Scale,
    Section,
    Table,
    select,
    table,
    tuples,
)
from workbench.views.layout import Layout
from workbench.views.spans import joined, running, until_next, within

# What happens to messages at nodes: rings, each larger than the one before, as a node may have several.
MARK_LOOKS = {
    "stored": Look("query stored", MESSAGES["query"], 2.6, 16, 3),
    "matched": Look("event matched", MESSAGES["event"], 3.0, 20, 3),
    "delivered": Look("delivered", MESSAGES["notification"], 3.4, 24, 3),
    "dropped": Look("message ended here", palette.LOST, 3.8, 28, 3),
}
REKEYED_LOOK = Look("other key than before the failure", REKEYED, 2.5, 13, 2)
ORPHAN_LOOKS = (
    Look("has no place yet", palette.FAINT_TEXT, 2.2, 13, 1, is_dashed=True),
    Look("has lost its place", ORPHAN, 2.2, 13, 2, is_dashed=True),
)
SHADES = 24  # classes of load
DEPTHS = 8  # shades of a tree's color
MOST_STRIPS = 60_000
MOST_WAYS, MOST_HOPS = 300, 60_000
LANES = 6  # of queries below a tree's zones

PLACE = Section(
    "Place in the overlay",
    (
        ("tree", "look", "word"),
        ("parent", "peer", "node"),
        ("key", "text", "word"),
        ("depth", "value", "number"),
        ("since", "from_us", "time"),
    ),
)
CHILDREN = Section("Children", (("tree", "look", "word"), ("child", "peer", "node"), ("key", "text", "word")))
ZONE = Section("Zone", (("tree", "look", "word"), ("strings", "text", "word"), ("since", "from_us", "time")))
STORED = Section(
    "Stored queries",
    (("sink", "origin", "node"), ("no.", "sequence", "number"), ("asks for", "text", "word")),
)
COUNTS = {"down": "down", "orphans": "without a key", "rekeyed": "with another key"}
REPAIR_COLOURS = {"down": palette.FAILED, "orphans": ORPHAN, "rekeyed": palette.SINK}


def layers(recorded: Recorded) -> list[Part]:
    """All that there is to see of an overlay."""
    run, columns = recorded.run, recorded.columns
    protocol, seen = run.scenario.protocol, overlay_in(run, columns)
    mapping = protocol.mapping
    zones = zone_table(seen)
    parts: list[Part] = [
        *tree_layers(seen, protocol.node.every_tree and len(seen.roots) > 1),
        *ring_layers(seen),
        *_load_layers(recorded, columns.where(event="sent"), seen.roots),
        *way_layers(recorded),
        *zone_layers(seen, zones, mapping),
        *_repair_curves(seen),
    ]
    return [part for part in parts if not isinstance(part, Layer) or len(part)]


def rows_of(some: Table, **more: Any) -> Table:
    """Where and when, and more columns."""
    return table(node=some["node"], from_us=some["from_us"], until_us=some["until_us"], **more)


# Trees


def _words(codes: np.ndarray, words: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Codes into the words that are used; a root's key is empty, and is called root."""
    used, text = unique_inverse(codes)
    return text, [words[code] or "root" for code in used.tolist()]


def _tree_looks(roots: Sequence[int], **look: Any) -> tuple[Look, ...]:
    """A look for each tree."""
    has_chips = 1 < len(roots) <= len(TREES)
    return tuple(
        Look(f"tree of root {root}", tree_colour(tree), chip=f"tree of {root}" if has_chips else "", **look)
        for tree, root in enumerate(roots)
    )


def tree_layers(seen: Overlay, is_shared: bool) -> list[Layer]:
    """Links to the parent, discs, keys, children; is_shared: a node has a place in every tree."""
    placed = seen.placed
    text, words = _words(placed["key"], seen.words)
    places = rows_of(placed, peer=placed["parent"], look=placed["tree"], text=text, value=placed["depth"])
    links = _tree_looks(seen.roots, size=0.28, least=2.2)
    has_parent = places["peer"] >= 0
    children = select(places, has_parent)
    children |= {"node": children["peer"], "peer": children["node"]}
    discs = _tree_looks(seen.roots, size=1.9)
    squares = _tree_looks(seen.roots, size=2.5, least=13, marker="square")
    # The legend has a line for each tree, and a square for all roots.
    looks = [one._replace(label="") for one in (*discs, *squares)]
    looks[len(discs)] = looks[len(discs)]._replace(label="root")
    shown = rows_of(places, look=places["look"] + np.where(has_parent, 0, len(discs)))
    found = [Layer("trees", places, links, "line", section=PLACE, words=words)]
    if is_shared:
        look = Look("in every tree", palette.LINK_GOOD, 1.9)
        found.append(Layer("in every tree", rows_of(seen.whole), (look,), "disc"))
        shown = select(shown, ~has_parent)
    found.append(Layer("trees", shown, tuple(looks), "disc"))
    found += _key_layers(places, words, seen.roots, is_shared)
    found.append(Layer("trees", children, links, section=CHILDREN, words=words))
    return found


def _key_layers(places: Table, words: Sequence[str], roots: Sequence[int], is_shared: bool) -> list[Layer]:
    """Labels, "12: 0101"."""
    keys = map(words.__getitem__, places["text"].tolist())
    said = [f"{node}: {key}" for node, key in zip(places["node"].tolist(), keys, strict=True)]
    labels = rows_of(places, text=np.arange(len(said)))
    if not is_shared:
        return [Layer("keys", labels, (Look("", palette.TEXT, 1.1, 3),), "label", words=said, is_detail=True)]
    found = []
    for tree, root in enumerate(roots[: len(TREES)]):
        look = (Look("", tree_colour(tree), 1.1, 3),)
        mine = select(labels, places["look"] == tree)
        found.append(Layer(f"keys of {root}", mine, look, "label", is_on=tree == 0, words=said, is_detail=True))
    return found


def ring_layers(seen: Overlay) -> list[Layer]:
    """Who has another key than before the failure, and who has no place, though it is up."""
    rekeyed = rows_of(select(seen.placed, seen.placed["is_rekeyed"]))
    return [
        Layer("re-keyed", rekeyed, (REKEYED_LOOK,), "ring"),
        Layer("without a place", rows_of(seen.homeless, look=seen.homeless["had_place"]), ORPHAN_LOOKS, "ring"),
    ]


# Load


def _load_layers(recorded: Recorded, sent: np.ndarray, roots: Sequence[int]) -> list[Layer]:
    """Discs by how many frames a node has sent so far."""
    ids, columns = recorded.plan.ids, recorded.columns
    sent, place = _placed(recorded.plan, columns["node"], sent)
    order = argsort(place)
    counts = np.bincount(place, minlength=len(ids))
    most = max(int(counts.max(initial=0)), 1)
    # The number of frames with which each class begins.
    least = np.ceil((np.arange(SHADES) - 0.5) * most / (SHADES - 1)).astype(np.int64)
    least[0] = 0
    which, shade = np.nonzero((least <= counts[:, None]) & (np.diff(least, prepend=-1) > 0))
    frame = np.append(order, 0)[np.cumsum(counts)[which] - counts[which] + least[shade] - 1]
    start = np.where(least[shade] > 0, np.append(columns["time_us"][sent], 0)[frame], 0)
    until = until_next(which, start, recorded.duration_us)
    found = {"node": ids[which], "from_us": start, "until_us": until}
    discs = rows_of(found, look=np.isin(ids[which], roots), weight=shade / (SHADES - 1))
    scale = Scale(
        "frames sent so far", tuple(load_colour(one / (SHADES - 1)) for one in range(SHADES)), "0", f"{most:,}"
    )
    looks = (Look(size=1.9), Look(size=2.5, least=13, marker="square"))
    return [Layer("load", within(discs, recorded.duration_us), looks, "disc", is_on=False, scale=scale)]


def _placed(plan: Layout, nodes: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows whose nodes are in the plan, and their places; numbers without large gaps are looked up in a table."""
    node = nodes[rows]
    most = int(node.max(initial=0)) + 1
    place = plan.indices(np.arange(most))[node] if most <= 4 * len(plan.ids) + 1000 else plan.indices(node)
    return (rows, place) if (place >= 0).all() else (rows[place >= 0], place[place >= 0])


# Messages


def way_layers(recorded: Recorded) -> list[Layer | MessagePaths]:
    """The ways of queries and events, ``MOST_WAYS`` in all, of queries half of that at most."""
    known = to_follow(recorded.columns)
    queries = _spread(np.flatnonzero(known["kind"] == 0), MOST_WAYS // 2)
    events = _spread(np.flatnonzero(known["kind"] == 1), MOST_WAYS - len(queries))
    wanted = select(known, np.concatenate([queries, events]))
    hops, marks = travelled(recorded.columns, wanted)
    step = -(-len(hops["way"]) // MOST_HOPS)
    if step > 1:
        wanted = select(wanted, np.arange(0, len(wanted["kind"]), step))
        hops, marks = (
            select(some, some["way"] % step == 0) | {"way": some["way"][some["way"] % step == 0] // step}
            for some in (hops, marks)
        )
    return [_ways(known, wanted, hops, marks), *route_layers(recorded.duration_us, hops, marks)]


def _spread(known: np.ndarray, most: int) -> np.ndarray:
    count = min(most, len(known))
    return known[np.arange(count) * len(known) // max(count, 1)]


def _ways(known: Table, wanted: Table, hops: Table, marks: Table) -> MessagePaths:
    ways = []
    arrived = select(hops, hops["arrived"])
    count = np.bincount(arrived["way"], minlength=len(wanted["kind"])).tolist()
    last_us = wanted["from_us"].copy()
    np.maximum.at(last_us, arrived["way"], arrived["arrived_us"])
    at = np.bincount(marks["way"] * len(MARKS) + marks["look"], minlength=len(count) * len(MARKS))
    told = at.reshape(-1, len(MARKS)).tolist()
    spans_ms = ((last_us - wanted["from_us"]) / 1000).tolist()
    for which, (kind, node, sequence, from_us) in enumerate(tuples(wanted, "kind", "node", "sequence", "from_us")):
        name, messages = list(KINDS.items())[kind]
        frames = tuple((node, sequence, message) for message in messages)
        said = [f"{count[which]} hop{'s' * (count[which] != 1)} within {spans_ms[which]:,.1f} ms"]
        said += [f"{MARK_LOOKS[mark].label} at {of}" for mark, of in zip(MARKS, told[which], strict=True) if of]
        ways.append(MessagePath(f"{name} {sequence} of node {node}", from_us, frames, "; ".join(said)))
    notes = []
    for kind, named in enumerate(("queries", "events")):
        all_of, of = int((known["kind"] == kind).sum()), int((wanted["kind"] == kind).sum())
        if of < all_of:
            notes.append(f"Of {all_of:,} {named} {of:,} can be followed, spread over the run.")
    return MessagePaths(tuple(ways), notes=tuple(notes))


def route_layers(duration_us: int, hops: Table, marks: Table) -> list[Layer]:
    """Hops as arrows on the right of their way, what happened where as rings, and links that only lost it."""
    looks = tuple(
        Look(message, MESSAGES[message], 0.3, 2.5, lane=0.95 if message == NOTIFICATION else 0.45, head=0.92)
        for message in MESSAGE_NAMES
    )
    arrived, lost = select(hops, hops["arrived"]), select(hops, ~hops["arrived"])
    tables = [
        _to_the_end(duration_us, arrived, "sender", "arrived_us", peer=arrived["receiver"], look=arrived["message"]),
        _to_the_end(duration_us, marks, "node", "at_us", look=marks["look"]),
        _to_the_end(duration_us, lost, "receiver", "arrived_us", peer=lost["sender"], weight=np.ones(len(lost["way"]))),
    ]
    lost_looks = (Look("lost on this link", palette.LOST, 0.75, 6, 2),)
    kinds = zip(tables, (looks, tuple(MARK_LOOKS.values()), lost_looks), ("arrow", "ring", "loss"), strict=True)
    return [Layer("route", some, of, mark, of_path=True) for some, of, mark in kinds]


def _to_the_end(duration_us: int, some: Table, node: str, begin: str, **more: Any) -> Table:
    until = np.full(len(some["way"]), duration_us)
    return table(node=some[node], from_us=some[begin], until_us=until, path=some["way"], **more)


# Zones


def zone_layers(seen: Overlay, zones: Table, mapping: Mapping) -> list[Layer]:
    """Zones as strips in a lane for each tree, the queries that are stored in them below, and both in words."""
    key_bits, trees = mapping.key_bits, len(seen.roots)
    end = float(1 << key_bits)
    panel = Panel(
        "Key space: whose zone a string is (lighter: deeper in the tree), and below it the queries stored there",
        0.0,
        end,
        tuple(f"root {root}" for root in seen.roots),
        key_bits,
    )
    ground = table(
        lane=np.arange(trees), low=np.zeros(trees), high=np.full(trees, end), until_us=np.full(trees, seen.duration_us)
    ) | {"from_us": np.zeros(trees, np.int64)}
    strips, notes = _longest(zones, "zones")
    text, words = _words(strips["key"], seen.words)
    look = strips["tree"] % len(TREES) * DEPTHS + np.minimum(strips["depth"], DEPTHS - 1)
    shown = _strips(strips, lane=strips["tree"], look=look, text=text)
    looks = tuple(Look("", depth_colour(*divmod(one, DEPTHS))) for one in range(min(trees, len(TREES)) * DEPTHS))
    return [
        Layer("zones", ground, (Look("nobody's", NOBODY),), "strip", panel=panel),
        Layer("zones", shown, looks, "strip", words=words, panel=panel, notes=notes),
        _zone_section(seen, strips, key_bits),
        *_query_layers(seen, zones, mapping, panel),
    ]


def _strips(some: Table, **more: Any) -> Table:
    """What strips need; high is the string after the last one."""
    low, high = some["low"].astype(np.float64), some["high"].astype(np.float64)
    return rows_of(some, low=low, high=high + 1, **more)


def _longest(some: Table, what: str) -> tuple[Table, tuple[str, ...]]:
    """At most ``MOST_STRIPS`` rows, those that last longest, and the sentence that says so."""
    rows = len(some["from_us"])
    if rows <= MOST_STRIPS:
        return some, ()
    kept = np.sort(np.argsort(some["from_us"] - some["until_us"], kind="stable")[:MOST_STRIPS])
    return select(some, kept), (f"Of {rows:,} {what} the {MOST_STRIPS:,} are shown that last longest.",)


def _zone_section(seen: Overlay, zones: Table, key_bits: int) -> Layer:
    """The zones of nodes in words, "0101 – 0111"."""
    _, first, text = unique_all(row_keys(zones["low"], zones["high"]))
    ends = zip(zones["low"][first].tolist(), zones["high"][first].tolist(), strict=True)
    words = [f"{low:0{key_bits}b} – {high:0{key_bits}b}" for low, high in ends]
    told = rows_of(zones, look=zones["tree"], text=text)
    return Layer("zones", told, _tree_looks(seen.roots), section=ZONE, words=words)


def _query_layers(seen: Overlay, zones: Table, mapping: Mapping, panel: Panel) -> list[Layer]:
    """Which parts of zones belong to stored queries, and which queries a node stores."""
    boxes, notes = _longest(stored_boxes(seen, zones, mapping), "parts of queries in zones")
    storing = seen.storing
    _, first, query = unique_all(row_keys(storing["sink"], storing["number"]))
    asked = tuples(storing, "sink", "number", "text", rows=first)
    texts = [f"query {number} of node {sink}: {seen.words[text]}" for sink, number, text in asked]
    lanes = max(min(len(texts), LANES), 1)
    query = query[boxes["row"]]
    lane = query % lanes
    shown = _strips(boxes, lane=boxes["tree"] + 0.58 + 0.36 / lanes * lane, look=lane, text=query)
    looks = [Look("" if len(texts) > LANES else texts[lane], QUERIES[lane]) for lane in range(min(LANES, len(texts)))]
    text, words = _words(storing["text"], seen.words)
    told = rows_of(storing, origin=storing["sink"], sequence=storing["number"], text=text)
    return [
        Layer("queries", shown, tuple(looks), "strip", words=texts, panel=panel, notes=notes),
        Layer("queries", told, section=STORED, words=words),
    ]


# Repair


def repair_steps(seen: Overlay) -> dict[str, np.ndarray]:
    """Counts after each change: time_us, down, orphans (that had a place before), rekeyed, each shape (steps,)."""
    # Places of one node that overlap in time, in several trees, count once.
    rekeyed = joined(select(seen.placed, seen.placed["is_rekeyed"]), "node")
    spans = [seen.outages, select(seen.homeless, seen.homeless["had_place"]), rekeyed]
    ends = [np.concatenate([some["from_us"], some["until_us"]]) for some in spans]
    times_us = np.unique(np.concatenate([np.zeros(1, np.int64), *ends]))
    times_us = times_us[times_us < seen.duration_us]
    return {"time_us": times_us} | {name: running(some, times_us) for name, some in zip(COUNTS, spans, strict=True)}


def _repair_curves(seen: Overlay) -> Iterable[Curves]:
    """Counts of nodes over the run, of one in which something failed."""
    if not len(seen.outages["node"]):
        return ()
    steps = repair_steps(seen)
    lines = [Line(said, REPAIR_COLOURS[name], steps["time_us"], steps[name]) for name, said in COUNTS.items()]
    return (Curves("repair", "nodes", tuple(lines)),)

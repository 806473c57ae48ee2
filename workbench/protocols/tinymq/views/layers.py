"""Layers of TinyMQ and PUB-2-SUB+ for the animated view: trees, keys, zones, queries, load, repair, and routes.

    layers(recorded)    the layers, curves and routes of a run (`workbench.views.layers`)

Each tree has a color. If there are at most ten trees, each has a button that shows or hides it. In PUB-2-SUB+ a node is
in every tree: its disc is grey, and the keys of each of the first ten trees have a button of their own. Zones are bars
in a lane for each tree, with the stored queries below them. At most ``MOST_STRIPS`` intervals of zones are drawn, and
at most ``MOST_STRIPS`` intervals of stored queries: those that last longest. At most ``MOST_ROUTES`` messages, spread
evenly over the run, can be followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workbench.columns import argsort, row_keys, unique_all, unique_inverse
from workbench.protocols.tinymq.mapping import Mapping
from workbench.protocols.tinymq.views.looks import (
    MESSAGES,
    ORPHAN,
    QUERIES,
    REKEYED,
    TREES,
    UNSTORED,
    depth_colour,
    load_colour,
    tree_colour,
)
from workbench.protocols.tinymq.views.overlay import Overlay, overlay_in
from workbench.protocols.tinymq.views.routes import (
    KINDS,
    MARKS,
    MESSAGE_NAMES,
    NOTIFICATION,
    find_hops_and_marks,
    message_table,
)
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

# Marks of messages at nodes: rings of different sizes, as a node may have several.
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
SHADES = 24  # number of colors in the scale of load
DEPTHS = 8  # number of shades of a tree's color
MOST_STRIPS = 60_000
MOST_ROUTES, MOST_HOPS = 300, 60_000
LANES = 6  # largest number of lanes of queries below a tree's zones

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
    """Return the layers, curves and routes that the animated view can draw for a run of TinyMQ or PUB-2-SUB+."""
    run, columns = recorded.run, recorded.columns
    protocol, overlay = run.scenario.protocol, overlay_in(run, columns)
    mapping = protocol.mapping
    zones = zone_table(overlay)
    player_parts: list[Part] = [
        *tree_layers(overlay, protocol.node.every_tree and len(overlay.roots) > 1),
        *ring_layers(overlay),
        *_load_layers(recorded, columns.where(event="sent"), overlay.roots),
        *message_routes(recorded),
        *zone_layers(overlay, zones, mapping),
        *_repair_curves(overlay),
    ]
    return [part for part in player_parts if not isinstance(part, Layer) or len(part)]


def rows_of(rows: Table, **more: Any) -> Table:
    """Return a layer's table: the columns node, from_us and until_us of ``rows``, and further columns from ``more``."""
    return table(node=rows["node"], from_us=rows["from_us"], until_us=rows["until_us"], **more)


# Trees


def _used_words(codes: np.ndarray, words: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return (new codes, used words): the words that occur in ``codes``, and ``codes`` as indices into these words.

    ``codes`` (n,) are indices into ``words``; the new codes (n,) stand for the same words. The used words have each
    word once. The empty word, which is the key of a root, becomes "root".
    """
    used_codes, word_indexes = unique_inverse(codes)
    return word_indexes, [words[code] or "root" for code in used_codes.tolist()]


def _tree_looks(roots: Sequence[int], **look: Any) -> tuple[Look, ...]:
    """Return a `Look` (style) for each tree, with the tree's color and name; ``look``: further fields of all looks."""
    has_chips = 1 < len(roots) <= len(TREES)
    return tuple(
        Look(f"tree of root {root}", tree_colour(tree), chip=f"tree of {root}" if has_chips else "", **look)
        for tree, root in enumerate(roots)
    )


def tree_layers(overlay: Overlay, is_shared: bool) -> list[Layer]:
    """Return the layers of the trees: links to parents, discs of nodes, labels with keys, and lists of children.

    ``is_shared``: whether a node is in every tree, as in PUB-2-SUB+.
    """
    place_rows = overlay.place_rows
    text_index, used_keys = _used_words(place_rows["key"], overlay.words)
    node_rows = rows_of(
        place_rows, peer=place_rows["parent"], look=place_rows["tree"], text=text_index, value=place_rows["depth"]
    )
    link_looks = _tree_looks(overlay.roots, size=0.28, least=2.2)
    has_parent = node_rows["peer"] >= 0
    child_rows = select(node_rows, has_parent)
    child_rows |= {"node": child_rows["peer"], "peer": child_rows["node"]}
    disc_looks = _tree_looks(overlay.roots, size=1.9)
    square_looks = _tree_looks(overlay.roots, size=2.5, least=13, marker="square")
    # The legend has a line for each tree, and a square for all roots.
    looks = [look._replace(label="") for look in (*disc_looks, *square_looks)]
    looks[len(disc_looks)] = looks[len(disc_looks)]._replace(label="root")
    disc_rows = rows_of(node_rows, look=node_rows["look"] + np.where(has_parent, 0, len(disc_looks)))
    tree_parts = [Layer("trees", node_rows, link_looks, "line", section=PLACE, words=used_keys)]
    if is_shared:
        look = Look("in every tree", palette.LINK_GOOD, 1.9)
        tree_parts.append(Layer("in every tree", rows_of(overlay.whole), (look,), "disc"))
        disc_rows = select(disc_rows, ~has_parent)
    tree_parts.append(Layer("trees", disc_rows, tuple(looks), "disc"))
    tree_parts += _key_layers(node_rows, used_keys, overlay.roots, is_shared)
    tree_parts.append(Layer("trees", child_rows, link_looks, section=CHILDREN, words=used_keys))
    return tree_parts


def _key_layers(places: Table, words: Sequence[str], roots: Sequence[int], is_shared: bool) -> list[Layer]:
    """Return the layers of labels that show a node and its key, such as "12: 0101".

    ``is_shared``: whether each node is in all trees; then each of the first ten trees has a layer of its own. Otherwise
    there is one layer. ``words``: the keys; ``places``: a row for each place (parent and key of a node) and its
    interval, with an index of ``words`` in the column "text"; ``roots``: the root of each tree.
    """
    node_keys = map(words.__getitem__, places["text"].tolist())
    node_labels = [f"{node}: {key}" for node, key in zip(places["node"].tolist(), node_keys, strict=True)]
    labels = rows_of(places, text=np.arange(len(node_labels)))
    if not is_shared:
        return [Layer("keys", labels, (Look("", palette.TEXT, 1.1, 3),), "label", words=node_labels, is_detail=True)]
    key_layers = []
    for tree, root in enumerate(roots[: len(TREES)]):
        look = (Look("", tree_colour(tree), 1.1, 3),)
        tree_labels = select(labels, places["look"] == tree)
        key_layers.append(
            Layer(f"keys of {root}", tree_labels, look, "label", is_on=tree == 0, words=node_labels, is_detail=True)
        )
    return key_layers


def ring_layers(overlay: Overlay) -> list[Layer]:
    """Return the layers of rings around re-keyed nodes and around orphans.

    A node is re-keyed if it has another key or tree than before the last failure. An orphan is up, but has no place
    (parent and key) in the overlay.
    """
    rekeyed_rows = rows_of(select(overlay.place_rows, overlay.place_rows["is_rekeyed"]))
    orphan_rows = rows_of(overlay.orphan_rows, look=overlay.orphan_rows["had_place"])
    return [
        Layer("re-keyed", rekeyed_rows, (REKEYED_LOOK,), "ring"),
        Layer("without a place", orphan_rows, ORPHAN_LOOKS, "ring"),
    ]


# Load


def _load_layers(recorded: Recorded, sent: np.ndarray, roots: Sequence[int]) -> list[Layer]:
    """Return a list with the layer of load: a disc for each node, colored by the number of frames sent so far.

    ``sent``: the rows "sent" of the trace; ``roots``: the nodes that are drawn as squares.
    """
    ids, columns = recorded.plan.ids, recorded.columns
    sent, node_index = _rows_of_drawn_nodes(recorded.plan, columns["node"], sent)
    frame_order = argsort(node_index)
    counts = np.bincount(node_index, minlength=len(ids))
    largest = max(int(counts.max(initial=0)), 1)
    # The smallest number of frames of each color.
    lower_ends = np.ceil((np.arange(SHADES) - 0.5) * largest / (SHADES - 1)).astype(np.int64)
    lower_ends[0] = 0
    node_of_disc, shade_index = np.nonzero((lower_ends <= counts[:, None]) & (np.diff(lower_ends, prepend=-1) > 0))
    frame_index = np.append(frame_order, 0)[
        np.cumsum(counts)[node_of_disc] - counts[node_of_disc] + lower_ends[shade_index] - 1
    ]
    start_us = np.where(lower_ends[shade_index] > 0, np.append(columns["time_us"][sent], 0)[frame_index], 0)
    end_us = until_next(node_of_disc, start_us, recorded.duration_us)
    disc_spans = {"node": ids[node_of_disc], "from_us": start_us, "until_us": end_us}
    discs = rows_of(disc_spans, look=np.isin(ids[node_of_disc], roots), weight=shade_index / (SHADES - 1))
    scale = Scale(
        "frames sent so far",
        tuple(load_colour(shade_index / (SHADES - 1)) for shade_index in range(SHADES)),
        "0",
        f"{largest:,}",
    )
    looks = (Look(size=1.9), Look(size=2.5, least=13, marker="square"))
    return [Layer("load", within(discs, recorded.duration_us), looks, "disc", is_on=False, scale=scale)]


def _rows_of_drawn_nodes(plan: Layout, nodes: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (selected rows, indexes): the trace rows whose nodes are drawn, and each such node's index in ``plan``.

    ``plan``: the positions of the nodes that are drawn; ``rows``: the numbers of the trace rows to filter; ``nodes``:
    the node of each row of the trace.
    """
    row_nodes = nodes[rows]
    node_limit = int(row_nodes.max(initial=0)) + 1
    layout_index = (
        plan.indices(np.arange(node_limit))[row_nodes]
        if node_limit <= 4 * len(plan.ids) + 1000
        else plan.indices(row_nodes)
    )
    return (
        (rows, layout_index)
        if (layout_index >= 0).all()
        else (rows[layout_index >= 0], layout_index[layout_index >= 0])
    )


# Messages


def message_routes(recorded: Recorded) -> list[Layer | MessagePaths]:
    """Return the queries and events that a user can follow (a `MessagePaths`), then the layers of their routes.

    The list has at most ``MOST_ROUTES`` messages, spread over the run. At most half of them are queries.
    """
    all_messages = message_table(recorded.columns)
    queries = _choose_evenly(np.flatnonzero(all_messages["kind"] == 0), MOST_ROUTES // 2)
    events = _choose_evenly(np.flatnonzero(all_messages["kind"] == 1), MOST_ROUTES - len(queries))
    chosen_messages = select(all_messages, np.concatenate([queries, events]))
    hops, marks = find_hops_and_marks(recorded.columns, chosen_messages)
    message_step = -(-len(hops["route"]) // MOST_HOPS)
    if message_step > 1:
        chosen_messages = select(chosen_messages, np.arange(0, len(chosen_messages["kind"]), message_step))
        hops, marks = (
            select(route_table, route_table["route"] % message_step == 0)
            | {"route": route_table["route"][route_table["route"] % message_step == 0] // message_step}
            for route_table in (hops, marks)
        )
    return [
        _make_message_paths(all_messages, chosen_messages, hops, marks),
        *route_layers(recorded.duration_us, hops, marks),
    ]


def _choose_evenly(rows: np.ndarray, limit: int) -> np.ndarray:
    count = min(limit, len(rows))
    return rows[np.arange(count) * len(rows) // max(count, 1)]


def _make_message_paths(all_messages: Table, chosen_messages: Table, hops: Table, marks: Table) -> MessagePaths:
    routes = []
    arrived_hops = select(hops, hops["arrived"])
    hop_counts = np.bincount(arrived_hops["route"], minlength=len(chosen_messages["kind"])).tolist()
    last_us = chosen_messages["from_us"].copy()
    np.maximum.at(last_us, arrived_hops["route"], arrived_hops["arrived_us"])
    flat_counts = np.bincount(marks["route"] * len(MARKS) + marks["look"], minlength=len(hop_counts) * len(MARKS))
    mark_counts = flat_counts.reshape(-1, len(MARKS)).tolist()
    spans_ms = ((last_us - chosen_messages["from_us"]) / 1000).tolist()
    for route_index, (kind_index, node, sequence, from_us) in enumerate(
        tuples(chosen_messages, "kind", "node", "sequence", "from_us")
    ):
        message_name, messages = list(KINDS.items())[kind_index]
        frames = tuple((node, sequence, message) for message in messages)
        summary = [
            f"{hop_counts[route_index]} hop{'s' * (hop_counts[route_index] != 1)} "
            f"within {spans_ms[route_index]:,.1f} ms"
        ]
        summary += [
            f"{MARK_LOOKS[mark].label} at {mark_count}"
            for mark, mark_count in zip(MARKS, mark_counts[route_index], strict=True)
            if mark_count
        ]
        routes.append(MessagePath(f"{message_name} {sequence} of node {node}", from_us, frames, "; ".join(summary)))
    notes = []
    for kind_index, kind_name in enumerate(("queries", "events")):
        kind_count, count_chosen = (
            int((message_rows["kind"] == kind_index).sum()) for message_rows in (all_messages, chosen_messages)
        )
        if count_chosen < kind_count:
            notes.append(f"Of {kind_count:,} {kind_name} {count_chosen:,} can be followed, spread over the run.")
    return MessagePaths(tuple(routes), notes=tuple(notes))


def route_layers(duration_us: int, hops: Table, marks: Table) -> list[Layer]:
    """Return the layers of routes: hops as arrows, marks at nodes as rings, and links that lost all their frames.

    ``hops``, ``marks``: the tables that `find_hops_and_marks` returns.
    """
    looks = tuple(
        Look(message, MESSAGES[message], 0.3, 2.5, lane=0.95 if message == NOTIFICATION else 0.45, head=0.92)
        for message in MESSAGE_NAMES
    )
    arrived_hops, lost_hops = select(hops, hops["arrived"]), select(hops, ~hops["arrived"])
    tables = [
        _extend_to_end(
            duration_us,
            arrived_hops,
            "sender",
            "arrived_us",
            peer=arrived_hops["receiver"],
            look=arrived_hops["message"],
        ),
        _extend_to_end(duration_us, marks, "node", "at_us", look=marks["look"]),
        _extend_to_end(
            duration_us,
            lost_hops,
            "receiver",
            "arrived_us",
            peer=lost_hops["sender"],
            weight=np.ones(len(lost_hops["route"])),
        ),
    ]
    lost_looks = (Look("lost on this link", palette.LOST, 0.75, 6, 2),)
    kinds = zip(tables, (looks, tuple(MARK_LOOKS.values()), lost_looks), ("arrow", "ring", "loss"), strict=True)
    return [Layer("route", layer_rows, styles, mark, of_path=True) for layer_rows, styles, mark in kinds]


def _extend_to_end(duration_us: int, rows: Table, node_column: str, begin_column: str, **more: Any) -> Table:
    end_us = np.full(len(rows["route"]), duration_us)
    return table(node=rows[node_column], from_us=rows[begin_column], until_us=end_us, path=rows["route"], **more)


# Zones


def zone_layers(overlay: Overlay, zones: Table, mapping: Mapping) -> list[Layer]:
    """Return the layers of the key space: zones as bars in a lane for each tree, and stored queries below them.

    The layers that list the zones and stored queries of a selected node are included.
    """
    key_bits, trees = mapping.key_bits, len(overlay.roots)
    space_end = float(1 << key_bits)
    panel = Panel(
        "Key space: whose zone a string is (lighter: deeper in the tree), and below it the queries stored there",
        0.0,
        space_end,
        tuple(f"root {root}" for root in overlay.roots),
        key_bits,
    )
    background = table(
        lane=np.arange(trees),
        low=np.zeros(trees),
        high=np.full(trees, space_end),
        until_us=np.full(trees, overlay.duration_us),
    ) | {"from_us": np.zeros(trees, np.int64)}
    strips, notes = _keep_longest(zones, "zones")
    text_index, used_keys = _used_words(strips["key"], overlay.words)
    look_index = strips["tree"] % len(TREES) * DEPTHS + np.minimum(strips["depth"], DEPTHS - 1)
    strip_rows = _bar_table(strips, lane=strips["tree"], look=look_index, text=text_index)
    looks = tuple(Look("", depth_colour(*divmod(index, DEPTHS))) for index in range(min(trees, len(TREES)) * DEPTHS))
    return [
        Layer("zones", background, (Look("stored by no node", UNSTORED),), "strip", panel=panel),
        Layer("zones", strip_rows, looks, "strip", words=used_keys, panel=panel, notes=notes),
        _zone_list_layer(overlay, strips, key_bits),
        *_query_layers(overlay, zones, mapping, panel),
    ]


def _bar_table(rows: Table, **more: Any) -> Table:
    """Return a table of bars: node, from_us, until_us, low, high of ``rows``, and further columns from ``more``.

    In ``rows``, ``high`` is the last string of an interval. In the result it is one more, because there the bar ends.
    """
    low, high = rows["low"].astype(np.float64), rows["high"].astype(np.float64)
    return rows_of(rows, low=low, high=high + 1, **more)


def _keep_longest(spans: Table, name: str) -> tuple[Table, tuple[str, ...]]:
    """Return (rows, notes): those ``MOST_STRIPS`` rows of ``spans`` that last longest, and a note about the omission.

    If ``spans`` has no more rows than that, the result is (``spans``, ()). ``name``: the name of the rows in the note,
    such as "zones".
    """
    row_count = len(spans["from_us"])
    if row_count <= MOST_STRIPS:
        return spans, ()
    longest_rows = np.sort(np.argsort(spans["from_us"] - spans["until_us"], kind="stable")[:MOST_STRIPS])
    return select(spans, longest_rows), (f"Of {row_count:,} {name} the {MOST_STRIPS:,} are shown that last longest.",)


def _zone_list_layer(overlay: Overlay, zones: Table, key_bits: int) -> Layer:
    """Return the layer that lists the zones of a selected node, as texts such as "0101 – 0111"."""
    _, first_row, text_index = unique_all(row_keys(zones["low"], zones["high"]))
    interval_ends = zip(zones["low"][first_row].tolist(), zones["high"][first_row].tolist(), strict=True)
    words = [f"{low:0{key_bits}b} – {high:0{key_bits}b}" for low, high in interval_ends]
    zone_rows = rows_of(zones, look=zones["tree"], text=text_index)
    return Layer("zones", zone_rows, _tree_looks(overlay.roots), section=ZONE, words=words)


def _query_layers(overlay: Overlay, zones: Table, mapping: Mapping, panel: Panel) -> list[Layer]:
    """Return a layer of bars for the parts of zones that stored queries cover, and a layer that lists these queries.

    ``zones``: the table of `zone_table`; ``panel``: the panel of the key space, in which the bars are drawn.
    """
    boxes, notes = _keep_longest(stored_boxes(overlay, zones, mapping), "parts of queries in zones")
    stored_rows = overlay.stored_rows
    _, first_row, query_index = unique_all(row_keys(stored_rows["sink"], stored_rows["number"]))
    query_tuples = tuples(stored_rows, "sink", "number", "text", rows=first_row)
    query_labels = [
        f"query {number} of node {sink}: {overlay.words[text_index]}" for sink, number, text_index in query_tuples
    ]
    lanes = max(min(len(query_labels), LANES), 1)
    query_index = query_index[boxes["row"]]
    lane = query_index % lanes
    strip_rows = _bar_table(boxes, lane=boxes["tree"] + 0.58 + 0.36 / lanes * lane, look=lane, text=query_index)
    looks = [
        Look("" if len(query_labels) > LANES else query_labels[lane], QUERIES[lane])
        for lane in range(min(LANES, len(query_labels)))
    ]
    text_index, used_texts = _used_words(stored_rows["text"], overlay.words)
    stored_table = rows_of(stored_rows, origin=stored_rows["sink"], sequence=stored_rows["number"], text=text_index)
    return [
        Layer("queries", strip_rows, tuple(looks), "strip", words=query_labels, panel=panel, notes=notes),
        Layer("queries", stored_table, section=STORED, words=used_texts),
    ]


# Repair


def repair_steps(overlay: Overlay) -> dict[str, np.ndarray]:
    """Return the numbers of nodes that are down, orphans or re-keyed over time, as a dict of arrays of equal length.

    "time_us": 0, and the times in µs at which one of the numbers changes; "down", "orphans", "rekeyed": the numbers
    from each of these times to the next. An orphan is up, but has lost its place (parent and key) in the overlay. Nodes
    that never had a place are not counted. A re-keyed node has another key or tree than before the last failure.
    """
    # Count a node that is re-keyed in several trees at the same time once.
    rekeyed_spans = joined(select(overlay.place_rows, overlay.place_rows["is_rekeyed"]), "node")
    span_tables = [overlay.outages, select(overlay.orphan_rows, overlay.orphan_rows["had_place"]), rekeyed_spans]
    end_times_us = [np.concatenate([span_table["from_us"], span_table["until_us"]]) for span_table in span_tables]
    times_us = np.unique(np.concatenate([np.zeros(1, np.int64), *end_times_us]))
    times_us = times_us[times_us < overlay.duration_us]
    return {"time_us": times_us} | {
        count_name: running(span_table, times_us) for count_name, span_table in zip(COUNTS, span_tables, strict=True)
    }


def _repair_curves(overlay: Overlay) -> Iterable[Curves]:
    """Return the curves over time of the numbers of nodes that are down, have lost their key, or have a new key.

    Returns () for a run without failures.
    """
    if not len(overlay.outages["node"]):
        return ()
    counts_in_time = repair_steps(overlay)
    count_lines = [
        Line(label, REPAIR_COLOURS[count_name], counts_in_time["time_us"], counts_in_time[count_name])
        for count_name, label in COUNTS.items()
    ]
    return (Curves("repair", "nodes", tuple(count_lines)),)

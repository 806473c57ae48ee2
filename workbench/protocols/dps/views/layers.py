"""The layers of a run of DPS in the player and in figures: links, filters, and the paths of publications.

    layers(recorded)    a list of layers, curves and message paths

Meaning of shades
    *Half of a link*, at a node: the filter that the neighbor at the other end has sent. The node sends publications
    that match this filter over the link.

    *A node*: the emptiest of the filters that the node has sent to its neighbors. A node sends each neighbor the union
    of its own interests and those from all other neighbors, so the filter for a neighbor lacks what only this neighbor
    has requested. Therefore the emptiest filter is usually that for the neighbor that requests most. Its shade shows
    the place of a node in the mesh: a node at the edge with one topic, a node that forwards three topics and a node in
    the middle have different shades. The layer "all it knows of" shows the union of all interests at a node instead.
    This union is soon the same at all nodes, because the mesh spreads every interest to all of them.

Reference
    `workbench.views.layers` defines layers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.columns import last_marked, lexsort, mark_first, unique_inverse
from workbench.protocols.dps import automaton
from workbench.protocols.dps.views import looks
from workbench.protocols.dps.views.mesh import LOOKS, Mesh, mesh_in, settled, spans, steps
from workbench.protocols.dps.views.paths import (
    HOPS,
    LOST_HOP,
    MOST_PATHS,
    PUBLICATION,
    Published,
    Steps,
    in_words,
    published_in,
    steps_of,
)
from workbench.views import palette
from workbench.views.layers import (
    Curves,
    Layer,
    Line,
    Look,
    MessagePath,
    MessagePaths,
    Part,
    Recorded,
    Scale,
    Section,
    Table,
    select,
    table,
)

MOST_ROWS = 100_000
MOST_TIMES = 2_000
FEW_MUTED = 2  # muted links per node; with more, muted links are drawn faintly, since they hide other links
MOST_LABELS = 60

PUBLICATIONS = "publication"
ACTIVE_LINK = Look("active link", "#8A94A0", 0.12, 1.6)
HALF = Look("", looks.PENDING, 0.4, 3.4)
MUTED = Look("muted link: it closes a loop", looks.MUTED, 0.0, 1.4, alpha=0.8, is_dashed=True)
CROWDED = MUTED._replace(least=0.7, alpha=0.45)
PENDING = Look("link on its way to be active, or to end", "#8A94A0", 0.0, 1.2, is_dashed=True)
DISC = Look("", looks.PENDING, 2.0, 9.0, 0.8)
FILL = Look("", palette.TEXT, 0.7)
STATES = tuple(Look(state.label) for state in automaton.State)

DELIVERED = Look("delivered", looks.USEFUL, 2.6, 15.0, 2.6, mark="ring")
_HOP = Look("", looks.USEFUL, 0.25, 1.9, lane=0.45, head=0.95)
_CROSS = Look("", looks.IN_VAIN, 1.1, 7.0, 1.8, mark="cross")
# In the order of `HOPS`, and then of `MARKS`.
PATH_LOOKS = (
    _HOP._replace(label="led to a delivery"),
    _HOP._replace(label="in vain: a filter said yes", colour=looks.IN_VAIN),
    _HOP._replace(label="repeated: the node had it already", colour=looks.REPEATED, size=0.15, least=1.2),
    Look("lost on this link", looks.IN_VAIN, 0.95, 8, 2.4, mark="loss"),
    _HOP._replace(
        label="acknowledgement on the reverse path", colour=looks.ACKNOWLEDGED, size=0.15, least=1.2, lane=0.9
    ),
    DELIVERED,
    _CROSS._replace(label="in vain: dead end"),
    _CROSS._replace(label="in vain: topics do not match", mark="ring", size=1.9, least=12),
    _CROSS._replace(label="in vain: out of range", mark="ring", size=1.9, least=12, is_dashed=True),
)

LINKS = Section(
    "Links",
    (
        ("to", "peer", "node"),
        ("state", "look", "word"),
        ("received over it", "text", "word"),
        ("lowest mesh id of", "origin", "node"),
    ),
)
FILTER = Section("Filter", (("bits", "value", "number"), ("fill", "text", "word"), ("needs", "sequence", "number")))


def layers(recorded: Recorded) -> list[Part]:
    """Return what the player shows of a recorded run of DPS: layers, curves, and the paths of publications."""
    protocol, columns = recorded.run.scenario.protocol, recorded.columns
    mesh = mesh_in(columns, protocol.filter_bits, recorded.duration_us)
    published = published_in(columns, MOST_PATHS)
    path_steps = steps_of(columns, published)
    return [
        *link_layers(mesh, len(recorded.plan.ids)),
        *filter_layers(mesh),
        link_ends_layer(mesh),
        path_layer(path_steps, recorded.duration_us),
        followed_publications(columns.where(event="originated", message=PUBLICATION), published, path_steps),
        *curves(mesh, len(recorded.plan.ids)),
    ]


def link_layers(mesh: Mesh, nodes: int) -> list[Layer]:
    """Return the layers of links (active, muted, pending), and of the filters received at both ends of active links.

    ``nodes``: number of nodes of the network.
    """
    active_links, muted_links, pending_links = (
        select(mesh.links, mesh.links["look"] == look) for look in range(len(LOOKS))
    )
    for links in (active_links, muted_links, pending_links):
        del links["look"]
    halves = select(mesh.halves, mesh.halves["look"] > 0)
    halves["weight"] = halves.pop("look") / looks.DARKEST
    scale = _scale(mesh, "half of a link: interests received there")
    is_crowded = len(muted_links["node"]) > FEW_MUTED * nodes
    return [
        _layer("links of the mesh", active_links, (ACTIVE_LINK,), "line"),
        _layer("links of the mesh", halves, (HALF,), "half", scale=scale),
        _layer("muted links", muted_links, (CROWDED if is_crowded else MUTED,), "line", is_on=not is_crowded, level=8),
        _layer("links on their way", pending_links, (PENDING,), "line", level=9),
    ]


def filter_layers(mesh: Mesh) -> list[Layer]:
    """Return the layers of nodes' filters: two layers of discs whose shades show the fill, and a layer of texts.

    The discs show the emptiest filter that a node has sent, and the union of all interests at the node. The texts are
    the fill of this union in percent.
    """
    nonempty_sums = select(mesh.sums, mesh.sums["value"] > 0)
    all_interests = {name: nonempty_sums[name] for name in ("node", "from_us", "until_us")}
    all_interests["weight"] = mesh.shade_of[nonempty_sums["value"]] / looks.DARKEST
    sent_scale = _scale(mesh, "node: interests of it and of its links except one")
    total_scale = _scale(mesh, "node: interests of it and of all its links")
    bit_counts, text_indices = unique_inverse(nonempty_sums["value"])
    fill_texts = [looks.percent(mesh.fill(bit_count)) for bit_count in bit_counts.tolist()]
    fill_rows = nonempty_sums | {"text": text_indices}
    return [
        _layer("filters", least_sent(mesh), (DISC,), "disc", scale=sent_scale),
        _layer("all it knows of", all_interests, (DISC,), "disc", scale=total_scale, is_on=False),
        _layer(
            "fill in %",
            fill_rows,
            (FILL,),
            "label",
            section=FILTER,
            words=fill_texts,
            is_detail=True,
            is_on=False,  # the shades show the fill, and the inspector shows its number
        ),
    ]


def _scale(mesh: Mesh, title: str) -> Scale:
    return looks.scale(title, mesh.fewest_bits, mesh.most_bits, mesh.filter_bits)


def link_ends_layer(mesh: Mesh) -> Layer:
    """Return the layer of the links at each node: state and received filter, which the player lists for a node."""
    end_columns = dict(mesh.link_ends)
    bit_counts, needs_counts = end_columns.pop("value"), end_columns.pop("sequence")
    needs_scale = int(needs_counts.max(initial=0)) + 1
    filter_codes, text_indices = unique_inverse(bit_counts * needs_scale + needs_counts)
    filter_texts = [
        f"{filter_code // needs_scale} bits, {filter_code % needs_scale} needs" if filter_code else "nothing"
        for filter_code in filter_codes.tolist()
    ]
    return _layer("links of nodes", {**end_columns, "text": text_indices}, STATES, section=LINKS, words=filter_texts)


def least_sent(mesh: Mesh) -> Table:
    """Return a table of each node's shade over time: the shade of the emptiest filter that the node has sent.

    A row is an interval in which the shade of a node does not change. Column ``weight`` is the shade, in (0, 1]. A node
    without links has the shade of the filter of its own interests. The filters that a node has sent are those received
    at the other ends of its links (`Mesh.halves`).
    """
    halves, filter_sums = mesh.halves, mesh.sums
    half_count = len(halves["node"])
    node = np.concatenate([halves["peer"], halves["peer"], filter_sums["node"]])
    time_us = np.concatenate([halves["from_us"], halves["until_us"], filter_sums["from_us"]])
    shade = np.concatenate([halves["look"], halves["look"], mesh.shade_of[filter_sums["value"]]])
    count_change = np.concatenate(
        [np.ones(half_count), -np.ones(half_count), np.zeros(len(filter_sums["node"]))]
    ).astype(np.int8)
    sorted_rows = lexsort((time_us, node))
    node, time_us, shade, count_change = (column[sorted_rows] for column in (node, time_us, shade, count_change))
    begins = mark_first(node)
    last_sum_rows = last_marked(begins | (count_change == 0))
    least_shade = np.where(count_change[last_sum_rows] == 0, shade[last_sum_rows], 0)
    for shade_level in range(looks.DARKEST, -1, -1):
        # Each half both begins and ends, so the running count is 0 when the rows of the next node begin.
        least_shade[np.cumsum(np.where(shade == shade_level, count_change, 0), dtype=np.int32) > 0] = shade_level
    shown_rows = settled(begins, time_us)
    node, time_us, least_shade = node[shown_rows], time_us[shown_rows], least_shade[shown_rows]
    shown_rows, until_us = spans(mark_first(node), time_us, mesh.duration_us, least_shade)
    is_shown = (time_us[shown_rows] < until_us) & (least_shade[shown_rows] > 0)
    shown_rows, until_us = shown_rows[is_shown], until_us[is_shown]
    return {
        "node": node[shown_rows],
        "from_us": time_us[shown_rows],
        "until_us": until_us,
        "weight": least_shade[shown_rows] / looks.DARKEST,
    }


# The paths of publications


def path_layer(followed: Steps, duration_us: int) -> Layer:
    """Return the layer of publications' paths: hops as arrows, and marks that show the results at nodes."""
    hops, result_marks = followed.hops, followed.marks
    is_lost = hops["look"] == LOST_HOP
    path_columns = {
        # The mark of a loss is drawn near its receiver, which is its node here.
        "node": [np.where(is_lost, hops["peer"], hops["node"]), result_marks["node"]],
        "peer": [np.where(is_lost, hops["node"], hops["peer"]), np.full(len(result_marks["node"]), -1)],
        "look": [hops["look"], result_marks["look"] + len(HOPS)],
        "path": [hops["way"], result_marks["way"]],
        "from_us": [hops["from_us"], result_marks["from_us"]],
        "weight": [is_lost, np.zeros(len(result_marks["node"]))],
    }
    path_table = {name: np.concatenate(columns) for name, columns in path_columns.items()}
    path_table["until_us"] = np.full(len(path_table["node"]), duration_us)
    is_within_run = path_table["from_us"] < duration_us
    return _layer(PUBLICATIONS, select(path_table, is_within_run), PATH_LOOKS, "arrow", of_path=True)


def followed_publications(every: np.ndarray, published: list[Published], followed: Steps) -> MessagePaths:
    """Return the publications whose paths the player can show, with a sentence about each path.

    ``every``: trace rows of all publications of the run. ``published``: the publications to be shown.
    ``followed``: hops and marks of these publications.
    """
    hops, followed_count = followed.hops, len(published)
    hop_counts_of_paths = np.bincount(hops["way"] * len(HOPS) + hops["look"], minlength=followed_count * len(HOPS))
    hop_counts_of_paths = hop_counts_of_paths.reshape(followed_count, len(HOPS))
    last_us = np.array([publication.at_us for publication in published])
    np.maximum.at(last_us, hops["way"], hops["from_us"])
    paths = []
    path_numbers = (hop_counts_of_paths.tolist(), followed.matches.tolist(), last_us.tolist())
    for item, hop_counts, deliveries, end_us in zip(published, *path_numbers, strict=True):
        paths.append(
            MessagePath(item.name, item.at_us, item.frames, in_words(hop_counts, deliveries, end_us - item.at_us))
        )
    are_omitted = len(every) > followed_count
    notes = (f"Of {len(every):,} publications the first {followed_count:,} can be followed.",) if are_omitted else ()
    return MessagePaths(tuple(paths), is_newest=True, notes=notes)


# Over the run


def curves(mesh: Mesh, nodes: int) -> list[Curves]:
    """Return the curves of the fill of nodes' filters and, if links were muted, of the number of muted links.

    ``nodes``: number of nodes of the network.
    """
    totals = steps(mesh, nodes, MOST_TIMES)
    change_times_us = totals["time_us"]
    fills = (
        Line("fullest filter", palette.SINK, change_times_us, 100 * totals["most"]),
        Line("mean of all nodes", palette.LOST, change_times_us, 100 * totals["mean"]),
    )
    charts = [Curves("fill of filters", "bits set (%)", fills)]
    if totals["muted"].any():
        charts.append(
            Curves("muted links", "links", (Line("muted links", looks.MUTED, change_times_us, totals["muted"]),))
        )
    return charts


def _layer(name: str, rows: Table, looks_: tuple[Look, ...], mark: str = "", **layer_fields: Any) -> Layer:
    """Return a layer of the player with a mark for each row.

    ``looks_``: styles of the rows; ``mark``: how a row is drawn, such as "line" or "disc"; ``layer_fields``: further
    fields of `Layer`. If there are more than MOST_ROWS rows, only the MOST_ROWS rows with the longest intervals are
    used; a note in the layer reports this.
    """
    row_count = len(rows["from_us"])
    if row_count > MOST_ROWS:
        durations = rows["until_us"] - rows["from_us"]
        rows = select(rows, np.argpartition(durations, row_count - MOST_ROWS)[row_count - MOST_ROWS :])
        layer_fields["notes"] = (f"{name}: of {row_count:,} changes, the {MOST_ROWS:,} that lasted longest are shown.",)
    return Layer(name, table(**rows), looks_, mark, **layer_fields)

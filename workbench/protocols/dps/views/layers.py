"""What there is to see of a run of DPS: links, filters, and the ways of publications.

    layers(recorded)    -> [Layer, Curves, MessagePaths]

What is shaded
    *Half of a link*, at a node: what the neighbor at the other end has asked for. Publications that may meet that leave
    the node there.

    *A node*: what it asks the neighbor for that it asks for least, which is what is wanted here and behind all of its
    links but the one with the fullest filter. A node at the edge that wants one topic, one that passes on three and one
    in the middle differ in this. All that a node knows of (the layer "all it knows of") is soon the same everywhere, as
    a mesh tells every interest to everybody.

Reference
    `workbench.views.layers` says what layers are.
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
FEW_MUTED = 2  # for each node: with more of them the others are hard to see
MOST_LABELS = 60

PUBLICATIONS = "publication"
GROUND = Look("active link", "#8A94A0", 0.12, 1.6)
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
WAY = (
    _HOP._replace(label="led to a delivery"),
    _HOP._replace(label="in vain: a filter said yes", colour=looks.IN_VAIN),
    _HOP._replace(label="repeated: the node had it already", colour=looks.REPEATED, size=0.15, least=1.2),
    Look("lost on this link", looks.IN_VAIN, 0.95, 8, 2.4, mark="loss"),
    _HOP._replace(label="acknowledgement on its way back", colour=looks.ACKNOWLEDGED, size=0.15, least=1.2, lane=0.9),
    DELIVERED,
    _CROSS._replace(label="in vain: dead end"),
    _CROSS._replace(label="in vain: topics do not match"),
    _CROSS._replace(label="in vain: out of range"),
)

LINKS = Section(
    "Links",
    (
        ("to", "peer", "node"),
        ("state", "look", "word"),
        ("was told over it", "text", "word"),
        ("lowest mesh id of", "origin", "node"),
    ),
)
FILTER = Section("Filter", (("bits", "value", "number"), ("fill", "text", "word"), ("needs", "sequence", "number")))


def layers(recorded: Recorded) -> list[Part]:
    """What a run of DPS has to show."""
    protocol, columns = recorded.run.scenario.protocol, recorded.columns
    seen = mesh_in(columns, protocol.filter_bits, recorded.duration_us)
    published = published_in(columns, MOST_PATHS)
    found = steps_of(columns, published)
    return [
        *link_layers(seen, len(recorded.plan.ids)),
        *filter_layers(seen, len(recorded.plan.ids)),
        sights_layer(seen),
        way_layer(found, recorded.duration_us),
        ways_of(columns.where(event="originated", message=PUBLICATION), published, found),
        *curves(seen, len(recorded.plan.ids)),
    ]


def link_layers(seen: Mesh, nodes: int) -> list[Layer]:
    """Links as both ends see them, and what each end was told."""
    active, muted, pending = (select(seen.links, seen.links["look"] == look) for look in range(len(LOOKS)))
    for one in (active, muted, pending):
        del one["look"]
    halves = select(seen.halves, seen.halves["look"] > 0)
    halves["weight"] = halves.pop("look") / looks.DARKEST
    scale = _scale(seen, "half of a link, what is asked for there")
    is_crowded = len(muted["node"]) > FEW_MUTED * nodes
    return [
        _layer("links of the mesh", active, (GROUND,), "line"),
        _layer("links of the mesh", halves, (HALF,), "half", scale=scale),
        _layer("muted links", muted, (CROWDED if is_crowded else MUTED,), "line", is_on=not is_crowded, level=8),
        _layer("links on their way", pending, (PENDING,), "line", level=9),
    ]


def filter_layers(seen: Mesh, nodes: int) -> list[Layer]:
    """The filters of nodes, as discs and in words."""
    some = select(seen.sums, seen.sums["value"] > 0)
    known = {name: some[name] for name in ("node", "from_us", "until_us")}
    known["weight"] = seen.shade_of[some["value"]] / looks.DARKEST
    asked = _scale(seen, "node, what is asked for here and behind its links but one")
    whole = _scale(seen, "node, all it knows of")
    bits, which = unique_inverse(some["value"])
    words = [looks.percent(seen.fill(one)) for one in bits.tolist()]
    fills = some | {"text": which}
    return [
        _layer("filters", asks(seen), (DISC,), "disc", scale=asked),
        _layer("all it knows of", known, (DISC,), "disc", scale=whole, is_on=False),
        _layer(
            "fill in %",
            fills,
            (FILL,),
            "label",
            section=FILTER,
            words=words,
            is_detail=True,
            is_on=nodes <= MOST_LABELS,
        ),
    ]


def _scale(seen: Mesh, said: str) -> Scale:
    return looks.scale(said, seen.fewest_bits, seen.most_bits, seen.filter_bits)


def sights_layer(seen: Mesh) -> Layer:
    """For the inspector: links as each end sees them, with what it was told in words."""
    sights = dict(seen.sights)
    bits, needs = sights.pop("value"), sights.pop("sequence")
    scale = int(needs.max(initial=0)) + 1
    told, text = unique_inverse(bits * scale + needs)
    words = [f"{one // scale} bits, {one % scale} needs" if one else "nothing" for one in told.tolist()]
    return _layer("links of nodes", {**sights, "text": text}, STATES, section=LINKS, words=words)


def asks(seen: Mesh) -> Table:
    """What nodes ask the neighbor for that they ask for least, as weights; what they know of while they have no link.

    Each half of a link adds its shade to those of the node at the other end, and takes it away when it ends.
    """
    halves, sums = seen.halves, seen.sums
    count = len(halves["node"])
    node = np.concatenate([halves["peer"], halves["peer"], sums["node"]])
    time_us = np.concatenate([halves["from_us"], halves["until_us"], sums["from_us"]])
    shade = np.concatenate([halves["look"], halves["look"], seen.shade_of[sums["value"]]])
    change = np.concatenate([np.ones(count), -np.ones(count), np.zeros(len(sums["node"]))]).astype(np.int8)
    order = lexsort((time_us, node))
    node, time_us, shade, change = (column[order] for column in (node, time_us, shade, change))
    begins = mark_first(node)
    known = last_marked(begins | (change == 0))
    least = np.where(change[known] == 0, shade[known], 0)
    for one in range(looks.DARKEST, -1, -1):
        # All that begins ends, so the count of a node is 0 when that of the next one begins.
        least[np.cumsum(np.where(shade == one, change, 0), dtype=np.int32) > 0] = one
    rows = settled(begins, time_us)
    node, time_us, least = node[rows], time_us[rows], least[rows]
    at, until = spans(mark_first(node), time_us, seen.duration_us, least)
    kept = (time_us[at] < until) & (least[at] > 0)
    at, until = at[kept], until[kept]
    return {"node": node[at], "from_us": time_us[at], "until_us": until, "weight": least[at] / looks.DARKEST}


# The ways of publications


def way_layer(found: Steps, duration_us: int) -> Layer:
    """What became of publications: their hops, and what they met at nodes."""
    hops, marks = found.hops, found.marks
    is_lost = hops["look"] == LOST_HOP
    told = {
        # A loss lies on the way from its peer.
        "node": [np.where(is_lost, hops["peer"], hops["node"]), marks["node"]],
        "peer": [np.where(is_lost, hops["node"], hops["peer"]), np.full(len(marks["node"]), -1)],
        "look": [hops["look"], marks["look"] + len(HOPS)],
        "path": [hops["way"], marks["way"]],
        "from_us": [hops["from_us"], marks["from_us"]],
        "weight": [is_lost, np.zeros(len(marks["node"]))],
    }
    made = {name: np.concatenate(columns) for name, columns in told.items()}
    made["until_us"] = np.full(len(made["node"]), duration_us)
    lasting = made["from_us"] < duration_us
    return _layer(PUBLICATIONS, select(made, lasting), WAY, "arrow", of_path=True)


def ways_of(every: np.ndarray, published: list[Published], found: Steps) -> MessagePaths:
    """The publications that can be followed; ``every``: all that there were."""
    hops, ways = found.hops, len(published)
    counts = np.bincount(hops["way"] * len(HOPS) + hops["look"], minlength=ways * len(HOPS)).reshape(ways, len(HOPS))
    last_us = np.array([one.at_us for one in published])
    np.maximum.at(last_us, hops["way"], hops["from_us"])
    made = []
    numbers = (counts.tolist(), found.matches.tolist(), last_us.tolist())
    for one, count, matches, last in zip(published, *numbers, strict=True):
        made.append(MessagePath(one.name, one.at_us, one.frames, in_words(count, matches, last - one.at_us)))
    is_part = len(every) > ways
    notes = (f"Of {len(every):,} publications the first {ways:,} can be followed.",) if is_part else ()
    return MessagePaths(tuple(made), is_newest=True, notes=notes)


# Over the run


def curves(seen: Mesh, nodes: int) -> list[Curves]:
    """How full the filters of nodes are, and how many links are muted."""
    over = steps(seen, nodes, MOST_TIMES)
    times = over["time_us"]
    fills = (
        Line("fullest filter", palette.SINK, times, 100 * over["most"]),
        Line("mean of all nodes", palette.LOST, times, 100 * over["mean"]),
    )
    found = [Curves("fill of filters", "bits set (%)", fills)]
    if over["muted"].any():
        found.append(Curves("muted links", "links", (Line("muted links", looks.MUTED, times, over["muted"]),)))
    return found


def _layer(name: str, some: Table, looks_: tuple[Look, ...], mark: str = "", **more: Any) -> Layer:
    """A layer of some rows, of the longest ones if there are very many."""
    rows = len(some["from_us"])
    if rows > MOST_ROWS:
        lasts = some["until_us"] - some["from_us"]
        some = select(some, np.argpartition(lasts, rows - MOST_ROWS)[rows - MOST_ROWS :])
        more["notes"] = (f"{name}: of {rows:,} changes those {MOST_ROWS:,} that lasted longest are shown.",)
    return Layer(name, table(**some), looks_, mark, **more)

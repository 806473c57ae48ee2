"""The key space of TinyMQ at one time, as static figures.

    zones_drawing(run, time_s=None)      for each tree a bar of all strings, divided into zones; queries above it
    plane_drawing(run, time_s=None)      for each tree a plane of two dimensions: zones as rectangles, queries as frames

Both are drawn from `zone_table` (`workbench.protocols.tinymq.views.zones`). A zone has the color of its tree; it is
lighter if its node is deeper in the tree. Up to ``MOST_QUERIES`` queries are drawn as lines above the bar, each over
its strings. If there are more queries, shading shows how many of them cover each string. In a plane, only the first
``MOST_QUERIES`` are drawn, and the legend has the number of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from workbench.attributes.keys import key_of
from workbench.attributes.text import parse
from workbench.errors import ParameterError
from workbench.protocols.tinymq.mapping import Dimension, Mapping
from workbench.protocols.tinymq.views.looks import QUERIES, UNSTORED, depth_colour, ink_on, load_colour, tree_colour
from workbench.protocols.tinymq.views.overlay import Overlay, overlay_of, protocol_of
from workbench.protocols.tinymq.views.zones import BoxSpan, ZoneSpan, blocks, stored_boxes, zone_table, zones_at
from workbench.views import caption, palette
from workbench.views.carried import carries_record
from workbench.views.drawing import Drawing, text_width
from workbench.views.figure import time_us_of
from workbench.views.layers import as_spans
from workbench.views.legend import Entry, legend_drawing

WIDTH = 900
MARGIN = 16.0
SMALL = 11.0
BAR, LANE, GAP = 34.0, 7.0, 26.0
MOST_QUERIES = 6
MOST_TICKS = 16
MOST_BITS = 12  # of a string that is written out
MOST_PLANES = 3  # side by side

Query = tuple[int, int]  # sink, number


class _Moment:
    """The key space of a run at one time; ``caller`` is the function's name for error messages."""

    def __init__(self, run: Any, time_s: float | None, caller: str) -> None:
        self.time_us = time_us_of(run, time_s, caller)
        self.mapping: Mapping = protocol_of(run).mapping
        self.seen: Overlay = overlay_of(run)
        zones = zone_table(self.seen)
        boxes = stored_boxes(self.seen, zones, self.mapping)
        self.zones: list[ZoneSpan] = zones_at(self.seen, zones, self.time_us)
        self.boxes: list[BoxSpan] = as_spans(BoxSpan, boxes, (), self.seen.alive(boxes, self.time_us))
        self.texts = {(span.sink, span.number): span.text for span in self.seen.stored_at(self.time_us)}
        self.queries: list[Query] = sorted({(box.sink, box.number) for box in self.boxes})

    def colour_of(self, query: Query) -> str:
        return QUERIES[self.queries.index(query) % len(QUERIES)]

    def entries(self) -> list[Entry]:
        """Return the legend's entries for zones and queries."""
        entries: list[Entry] = [
            ("box", tree_colour(tree), f"tree of root {root}") for tree, root in enumerate(self.seen.roots)
        ]
        entries.append(("box", depth_colour(0, 4), "lighter: deeper in the tree"))
        if self._has_gaps():
            entries.append(("box", UNSTORED, "in no zone at this time"))
        return entries

    def _has_gaps(self) -> bool:
        held = sum(span.high - span.low + 1 for span in self.zones)
        return held < len(self.seen.roots) << self.mapping.key_bits


@carries_record
def zones_drawing(run: Any, time_s: float | None = None, width: int = WIDTH) -> Drawing:
    """Draw the key space of each tree as a bar, divided into zones, with the stored queries above it.

    Raises ParameterError for a time outside of the run, or a run without an overlay.
    """
    now = _Moment(run, time_s, "zones_drawing")
    lanes = min(len(now.queries), MOST_QUERIES) if len(now.queries) <= MOST_QUERIES else 2
    label = max(text_width(f"root {root}", SMALL + 1) for root in now.seen.roots) + 14
    left, right = MARGIN + label, width - MARGIN
    high = 12 + lanes * LANE + BAR + GAP
    drawing = Drawing(width, 46, title=f"{caption.title(run)}: zones of the key space")
    _heading(drawing, now, drawing.title)
    for tree, root in enumerate(now.seen.roots):
        top = drawing.height + 12 + lanes * LANE
        drawing.text(MARGIN, top + BAR / 2 + 4, f"root {root}", size=SMALL + 1, bold=True)
        _bar(drawing, now, tree, left, right, top)
        drawing.height += high
    entries = now.entries()
    if len(now.queries) <= MOST_QUERIES:
        entries += [
            ("line", now.colour_of(query), f"query {query[1]} of node {query[0]}: {now.texts[query]}")
            for query in now.queries
        ]
    else:
        entries.append(("box", load_colour(1.0), f"queries on a string (of {len(now.queries)}; darker: more)"))
    legend = legend_drawing(entries, width)
    drawing.add(legend, 0, drawing.height)
    drawing.height += legend.height
    return drawing


def _heading(drawing: Drawing, now: _Moment, title: str) -> None:
    drawing.text(MARGIN, 26, title, size=15, bold=True)
    clock = f"t = {now.time_us / 1e6:,.3f} s"
    drawing.text(drawing.width - MARGIN, 26, clock, size=14, anchor="end")


def _bar(drawing: Drawing, now: _Moment, tree: int, left: float, right: float, top: float) -> None:
    scale = (right - left) / (1 << now.mapping.key_bits)
    drawing.frame(left, top, right - left, BAR, fill=UNSTORED)
    for span in now.zones:
        if span.tree == tree:
            x, wide = left + scale * span.low, scale * (span.high - span.low + 1)
            fill = depth_colour(tree, span.depth)
            drawing.frame(x, top, wide, BAR, fill=fill, stroke=palette.BACKGROUND, width=0.8)
            _zone_label(drawing, span, x + wide / 2, top, wide, ink_on(fill))
    _lanes(drawing, now, tree, left, scale, top)
    _ticks(drawing, now.mapping.key_bits, left, scale, top + BAR)


def _zone_label(drawing: Drawing, span: ZoneSpan, x: float, top: float, wide: float, ink: str) -> None:
    name, key = str(span.node), span.key or "root"
    if text_width(name, SMALL) * 1.06 + 4 > wide:
        return
    has_key = text_width(key, SMALL - 2) * 1.06 + 4 <= wide
    drawing.text(x, top + (15 if has_key else 21), name, size=SMALL, anchor="middle", colour=ink, bold=True)
    if has_key:
        drawing.text(x, top + 28, key, size=SMALL - 2, anchor="middle", colour=ink)


def _lanes(drawing: Drawing, now: _Moment, tree: int, left: float, scale: float, top: float) -> None:
    boxes = [box for box in now.boxes if box.tree == tree]
    if len(now.queries) <= MOST_QUERIES:
        for box in boxes:
            lane = now.queries.index((box.sink, box.number))
            y = top - 5 - LANE * lane
            x0, x1 = left + scale * box.low, left + scale * (box.high + 1)
            colour = now.colour_of((box.sink, box.number))
            drawing.segment(x0 + 1.5, y, max(x1 - 1.5, x0 + 2), y, colour=colour, width=3)
        return
    _shade(drawing, queries_on_strings(boxes, now.mapping.key_bits), left, scale, top - 4 - 2 * LANE, 2 * LANE)


def queries_on_strings(boxes: Sequence[BoxSpan], key_bits: int) -> list[tuple[int, int, int]]:
    """Return intervals of strings [first, end) that cover the key space, each as (first, end, number of queries)."""
    changes = Counter({0: 0, 1 << key_bits: 0})
    for box in boxes:
        changes[box.low] += 1
        changes[box.high + 1] -= 1
    ends = sorted(changes)
    counts = accumulate(changes[end] for end in ends)
    return [(low, high, count) for (low, high), count in zip(pairwise(ends), counts, strict=False)]


def _shade(
    drawing: Drawing, runs: Sequence[tuple[int, int, int]], left: float, scale: float, top: float, high: float
) -> None:
    """Draw intervals of strings, (first, end, number of queries), as rectangles; darker means more queries."""
    most = max(1, *(count for _, _, count in runs))
    for start, end, count in runs:
        fill = load_colour(count / most) if count else palette.BACKGROUND
        drawing.frame(left + scale * start, top, scale * (end - start), high, fill=fill)


def _ticks(drawing: Drawing, key_bits: int, left: float, scale: float, y: float) -> None:
    """Label the first string of each sixteenth of the key space; of each eighth, quarter or half if space is short."""
    size = SMALL - 1
    room = 1.06 * text_width(first_bits(0, key_bits), size) + 8
    count = MOST_TICKS
    while count > 1 and (count > 1 << key_bits or scale * (1 << key_bits) / count < room):
        count //= 2
    step = (1 << key_bits) // count
    for string in range(0, 1 << key_bits, step):
        x = left + scale * (string + 0.5 if step == 1 else string)
        drawing.segment(x, y, x, y + 4, colour=palette.OUTLINE, width=1)
        anchor = "middle" if step == 1 else "start"
        drawing.text(x, y + 15, first_bits(string, key_bits), size=size, anchor=anchor, colour=palette.FAINT_TEXT)


def first_bits(string: int, key_bits: int) -> str:
    """Return a string of the key space in full, or its first four bits if it is long."""
    text = format(string, f"0{key_bits}b")
    return text if key_bits <= MOST_BITS else text[:4] + "…"


# Two dimensions


@carries_record
def plane_drawing(run: Any, time_s: float | None = None, width: int = WIDTH) -> Drawing:
    """Draw the plane of two dimensions for each tree, divided into zones, with the stored queries as frames.

    Raises ParameterError unless the protocol has two ``dimensions``, and in the cases that `zones_drawing` names.
    """
    now = _Moment(run, time_s, "plane_drawing")
    dimensions = now.mapping.dimensions
    if len(dimensions) != 2:
        raise ParameterError(f"plane_drawing: this run has {len(dimensions)} dimensions; a plane has two")
    trees = len(now.seen.roots)
    columns = min(trees, MOST_PLANES)
    axis = 62.0
    side = min((width - 2 * MARGIN) / columns - axis - 10, 340.0)
    title = f"{caption.title(run)}: zones over two dimensions"
    drawing = Drawing(width, 46, title=title)
    _heading(drawing, now, title)
    high = side + 74
    for tree in range(trees):
        x = MARGIN + axis + (tree % columns) * (side + axis + 10)
        y = 74 + (tree // columns) * high
        drawing.text(x, y - 10, f"tree of root {now.seen.roots[tree]}", size=SMALL + 1, bold=True)
        _plane(drawing, now, tree, x, y, side)
        _axes(drawing, dimensions, x, y, side)
    drawing.height += -(-trees // columns) * high
    entries = now.entries()
    entries += [
        ("frame", now.colour_of(query), f"query {query[1]} of node {query[0]}: {now.texts[query]}")
        for query in now.queries[:MOST_QUERIES]
    ]
    if len(now.queries) > MOST_QUERIES:
        entries.append(("frame", palette.FAINT_TEXT, f"… and {len(now.queries) - MOST_QUERIES} more, not drawn"))
    legend = legend_drawing(entries, width)
    drawing.add(legend, 0, drawing.height)
    drawing.height += legend.height
    return drawing


def _plane(drawing: Drawing, now: _Moment, tree: int, left: float, top: float, side: float) -> None:
    first, second = now.mapping.dimensions
    rows, columns = 1 << first.bits, 1 << second.bits
    wide, high = side / columns, side / rows
    drawing.frame(left, top, side, side, fill=UNSTORED)
    names: list[tuple[float, float, str, str]] = []
    for span in now.zones:
        if span.tree != tree:
            continue
        fill = depth_colour(tree, span.depth)
        rectangles = blocks(span.low, span.high, (first.bits, second.bits))
        for row, column, tall, across in rectangles:
            # Rows count from below, as an axis does.
            x, y = left + wide * column, top + side - high * (row + tall)
            drawing.frame(x, y, wide * across, high * tall, fill=fill, stroke=palette.BACKGROUND, width=1)
        # In a corner, where no query's frame runs through it.
        row, column, tall, across = max(rectangles, key=lambda block: block[2] * block[3])
        x, y = left + wide * column, top + side - high * (row + tall)
        if text_width(str(span.node), SMALL) + 12 < wide * across and high * tall > SMALL + 8:
            names.append((x + 7, y + 7 + 0.8 * SMALL, str(span.node), fill))
    for query in now.queries[:MOST_QUERIES]:
        if any((box.tree, box.sink, box.number) == (tree, *query) for box in now.boxes):
            (low, high_cell), (start, end) = now.mapping.query_box(parse(now.texts[query]))
            x, y = left + wide * start, top + side - high * (high_cell + 1)
            size = wide * (end - start + 1), high * (high_cell - low + 1)
            drawing.frame(x + 1, y + 1, size[0] - 2, size[1] - 2, stroke=now.colour_of(query), width=3)
    for x, y, name, fill in names:
        drawing.text(x, y, name, size=SMALL, colour=ink_on(fill), bold=True, halo=fill)


def _axes(drawing: Drawing, dimensions: Sequence[Dimension], left: float, top: float, side: float) -> None:
    first, second = dimensions
    look = {"size": SMALL - 1, "colour": palette.FAINT_TEXT}
    for cell, text in _cell_bounds(second):
        x = left + side * cell
        drawing.text(x, top + side + 15, text, anchor="middle", **look)
    for cell, text in _cell_bounds(first):
        drawing.text(left - 6, top + side * (1 - cell) + 4, text, anchor="end", **look)
    name, other = (_name(dimension) for dimension in (second, first))
    drawing.text(left + side / 2, top + side + 31, name, size=SMALL, anchor="middle")
    drawing.text(left - 44, top + side / 2, other, size=SMALL, anchor="middle", turn=90)


def _cell_bounds(dimension: Dimension) -> list[tuple[float, str]]:
    """Return up to five axis ticks as (share of the range, formatted value)."""
    key = key_of(dimension.key)
    count = min(4, 1 << dimension.bits)
    shares = [index / count for index in range(count + 1)]
    values = [dimension.low + share * (dimension.high - dimension.low) for share in shares]
    return [(share, f"{value / key.steps:.4g}") for share, value in zip(shares, values, strict=True)]


def _name(dimension: Dimension) -> str:
    key = key_of(dimension.key)
    return f"{key.name} ({key.unit})" if key.unit else key.name

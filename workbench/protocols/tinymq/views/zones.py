"""Tables of zones in time: which nodes of each tree store which strings, and which of these belong to stored queries.

    zone_table(overlay)                      which node stored which strings of a tree, from when to when
    stored_boxes(overlay, zones, mapping)    the strings of each zone that belong to queries which its node stored
    in_zones(zones, rows, regions)           the part of each row's region that is in the zone of the row's node
    blocks(low, high, bits)                  an interval of strings of two dimensions, as rectangles

Theory of operation
    Nodes log their zones. The key and depth of a zone are those of its node at the same time.
    A query covers the part of a zone that its box and the zone have in common.

    With two dimensions of l1 and l2 bits, a string is a cell of a grid of 2^l1 rows and 2^l2 columns. An interval of
    strings is cut into blocks of 2^n strings that begin at a multiple of 2^n; each of them is a rectangle of the grid.

Limits
    In key spaces of more than 62 bits nodes log no zones, so these views are empty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from workbench.attributes.text import parse
from workbench.columns import argsort, lexsort, ranges, row_keys, split_rows, unique_all, unique_inverse
from workbench.protocols.tinymq.mapping import Mapping
from workbench.protocols.tinymq.views.overlay import Overlay
from workbench.views.layers import Table, as_spans, select
from workbench.views.spans import joined, overlaps

MOST_CELLS = 1 << 12  # number of strings up to which a box is converted exactly
WIDEST = 62  # bits of a string that an int64 holds, with one to spare

Region = tuple[tuple[int, int], ...]


class ZoneSpan(NamedTuple):
    """An interval [low, high] of a tree's strings that a node stores during [from_us, until_us).

    key: the node's key in that tree; depth: its number of hops to the root.
    """

    tree: int
    node: int
    key: str
    low: int
    high: int
    from_us: int
    until_us: int
    depth: int


class BoxSpan(NamedTuple):
    """An interval [low, high] of a tree's strings for which a node stores a query during [from_us, until_us).

    sink, number: the query's sink and its number there.
    """

    tree: int
    node: int
    sink: int
    number: int
    low: int
    high: int
    from_us: int
    until_us: int


def zone_table(overlay: Overlay) -> Table:
    """Return a table of the zones of all trees in time, with a row for each interval of strings.

    Columns: the fields of `ZoneSpan`, with keys as indexes of ``overlay.words``, and ``zone``, a number common to all
    intervals of a zone. The table is sorted by ``from_us``, tree and strings. If no row of a tree contains a string at
    some time, no node of the tree stores it then.
    """
    zone_rows = overlay.zone_rows
    key_spans = joined(
        {name: overlay.place_rows[name] for name in ("node", "tree", "key", "depth", *_TIMES)}, "node", "tree", "key"
    )
    trees = len(overlay.roots)
    zone_owner, place_owner = (spans["node"] * trees + spans["tree"] for spans in (zone_rows, key_spans))
    common_spans = overlaps(
        zone_owner,
        zone_rows["from_us"],
        zone_rows["until_us"],
        place_owner,
        key_spans["from_us"],
        key_spans["until_us"],
    )
    zones = select(zone_rows, common_spans.row) | {
        name: key_spans[name][common_spans.other] for name in ("key", "depth")
    }
    zones |= {"from_us": common_spans.from_us, "until_us": common_spans.until_us}
    zones["zone"] = row_keys(zones["zone"], common_spans.from_us)
    return select(zones, lexsort((zones["low"], zones["tree"], zones["from_us"])))


_TIMES = ("from_us", "until_us")


def _string_dtype(key_bits: int) -> Any:
    """Return the dtype of an array of strings as integers: int64, or object for more than ``WIDEST`` bits."""
    return np.int64 if key_bits <= WIDEST else object


def zones_at(overlay: Overlay, zones: Table, time_us: int) -> list[ZoneSpan]:
    """Return the zones at ``time_us``, sorted by tree, depth and strings; ``zones``: the result of `zone_table`.

    If the zones of two nodes overlap, the deeper node comes later, so it is drawn on top.
    """
    spans = as_spans(ZoneSpan, zones, overlay.words, overlay.alive(zones, time_us))
    return sorted(spans, key=lambda span: (span.tree, span.depth, span.low, span.node))


def strings_of(mapping: Mapping, box: tuple[tuple[int, int], ...]) -> Region:
    """Return the strings of a box as a tuple of intervals (lowest, highest).

    ``box``: the (lowest, highest) cell of each dimension; a string consists of the bits of one cell of each. If the box
    has more than ``MOST_CELLS`` strings, the result is one interval that contains them all.
    """
    if len(box) == 1:
        return tuple(box)
    string_count = 1
    for lowest_cell, highest_cell in box:
        string_count *= highest_cell - lowest_cell + 1
    if string_count > MOST_CELLS:
        return mapping.hull(box)
    dtype = _string_dtype(mapping.key_bits)
    strings = np.zeros(1, dtype)
    for (lowest_cell, highest_cell), dimension in zip(box, mapping.dimensions, strict=True):
        strings = ((strings << dimension.bits)[:, None] + np.array(range(lowest_cell, highest_cell + 1), dtype)).ravel()
    interval_ends = np.flatnonzero(strings[1:] - strings[:-1] != 1)
    lows, highs = strings[[0, *(interval_ends + 1)]], strings[[*interval_ends, len(strings) - 1]]
    return tuple(zip(lows.tolist(), highs.tolist(), strict=True))


def stored_boxes(overlay: Overlay, zones: Table, mapping: Mapping) -> Table:
    """Return a table of the parts of zones that stored queries cover, sorted by ``from_us``, tree and strings.

    Columns: the fields of `BoxSpan`, and ``row``, the query's row in ``overlay.stored_rows``. ``zones``: the result of
    `zone_table`.
    """
    boxes = in_zones(
        zones, overlay.stored_rows, regions(overlay.words, overlay.stored_rows["text"], mapping.query_box, mapping)
    )
    boxes |= {name: overlay.stored_rows[name][boxes["row"]] for name in ("node", "sink", "number")}
    return select(boxes, lexsort((row_keys(boxes["low"]), boxes["tree"], boxes["from_us"])))


def regions(words: Any, texts: np.ndarray, box_of: Any, mapping: Mapping) -> dict[int, Region]:
    """Return {index in ``words``: region}: the set of strings to which each query (or event) is mapped.

    ``words``: texts, among them the attributes of the queries (or events); ``texts``: the indexes of these attributes
    in ``words``; ``box_of``: a function that returns the box of parsed attributes, such as `Mapping.query_box`.
    """
    return {text: strings_of(mapping, box_of(parse(words[text]))) for text in np.unique(texts).tolist()}


def in_zones(zones: Table, rows: Table, regions: dict[int, Region]) -> Table:
    """Intersect the regions of nodes with the zones of the same nodes; return the intersections as a table.

    ``rows``: a table with the columns node, tree, text, from_us, until_us. A row states that the node has the region
    ``regions[text]`` in the tree during [from_us, until_us). Intervals of rows may overlap. ``zones``: the table of
    `zone_table`.

    A row of the result states that the strings in [low, high] are in the node's region and in its zone during [from_us,
    until_us). Columns: row (an index of ``rows``), tree, low, high, from_us, until_us.
    """
    zone_numbers, first_row, zone_index = unique_all(zones["zone"])
    trees = max(int(spans["tree"].max(initial=0)) for spans in (zones, rows)) + 1
    whole_zones = select(zones, first_row)
    row_owner, zone_owner = (spans["node"] * trees + spans["tree"] for spans in (rows, whole_zones))
    common_spans = overlaps(
        row_owner, rows["from_us"], rows["until_us"], zone_owner, *(whole_zones[name] for name in _TIMES)
    )
    interval_counts = np.bincount(zone_index, minlength=len(zone_numbers))
    first_intervals = np.cumsum(interval_counts) - interval_counts
    common_row = np.repeat(np.arange(len(common_spans.row)), interval_counts[common_spans.other])
    row_index, interval = (
        common_spans.row[common_row],
        argsort(zone_index)[ranges(first_intervals[common_spans.other], interval_counts[common_spans.other])],
    )
    text_codes = rows["text"][row_index]
    intersections = [(np.zeros(0, np.int64), *(np.zeros(0, zones["low"].dtype),) * 2)]
    texts, text_index = unique_inverse(text_codes)
    for code, positions in zip(texts.tolist(), split_rows(text_index, len(texts)), strict=True):
        lows, highs = np.array(regions[code], zones["low"].dtype).T
        first_intervals = np.searchsorted(highs, zones["low"][interval[positions]])
        end = np.searchsorted(lows, zones["high"][interval[positions]], "right")
        interval_counts = np.maximum(end - first_intervals, 0)
        repeated_positions, region_row = (
            np.repeat(np.arange(len(positions)), interval_counts),
            ranges(first_intervals, interval_counts),
        )
        zone_rows = interval[positions[repeated_positions]]
        low = np.maximum(zones["low"][zone_rows], lows[region_row])
        high = np.minimum(zones["high"][zone_rows], highs[region_row])
        intersections.append((positions[repeated_positions], low, high))
    interval_index, low, high = (np.concatenate(arrays) for arrays in zip(*intersections, strict=True))
    times = {
        "from_us": common_spans.from_us[common_row[interval_index]],
        "until_us": common_spans.until_us[common_row[interval_index]],
    }
    return {
        "row": row_index[interval_index],
        "tree": zones["tree"][interval[interval_index]],
        "low": low,
        "high": high,
        **times,
    }


def blocks(low: int, high: int, bits: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Return bit strings as rectangles of a grid: [(first row, first column, row count, column count)].

    ``low``, ``high``: the first and the last of the strings, as integers. ``bits``: (number of bits of a row, of a
    column). The first bits of a string are its row, the others its column.
    """
    columns = 1 << bits[1]
    rectangles = []
    while low <= high:
        block_size = low & -low if low else 1 << sum(bits)
        while block_size > high - low + 1:
            block_size >>= 1
        block_rows = max(1, block_size // columns)
        rectangles.append((low // columns, low % columns, block_rows, min(block_size, columns)))
        low += block_size
    return rectangles

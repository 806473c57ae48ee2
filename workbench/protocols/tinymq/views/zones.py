"""Zones in time: how the nodes of each tree share out the key space, and which part of it stored queries cover.

    zone_table(seen)                         who stored which strings of a tree, from when to when
    stored_boxes(seen, zones, mapping)       which of these strings belong to a query that is stored there
    in_zones(zones, rows, regions)           the same for whatever a node has at a time
    blocks(low, high, bits)                  the rectangles of two dimensions that an interval of strings is

Theory of operation
    Nodes log their zones; key and depth are those that a node had meanwhile.
    A query covers of a zone what its box and the zone have in common.

    With two dimensions of l1 and l2 bits, a string is a cell of a grid of 2^l1 rows and 2^l2 columns. An interval of
    strings is cut into blocks of 2^n strings that begin at a multiple of 2^n; each of them is a rectangle of the grid.

Limits
    In key spaces of more than 62 bits nodes log no zones, and nothing is shown of them.
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

MOST_CELLS = 1 << 12
WIDEST = 62  # bits of a string that an int64 holds, with one to spare

Region = tuple[tuple[int, int], ...]


class ZoneSpan(NamedTuple):
    """A node stores the strings low ... high of a tree during [from_us, until_us); depth: hops to the root."""

    tree: int
    node: int
    key: str
    low: int
    high: int
    from_us: int
    until_us: int
    depth: int


class BoxSpan(NamedTuple):
    """The strings low ... high of a tree are of a query that a node stores during [from_us, until_us)."""

    tree: int
    node: int
    sink: int
    number: int
    low: int
    high: int
    from_us: int
    until_us: int


def zone_table(seen: Overlay) -> Table:
    """The zones of all trees in time, in order of ``from_us``, tree and strings; a zone of two intervals is two rows.

    Columns: those of `ZoneSpan`, with keys as places in ``seen.words``, and zone, a number for each zone. Strings of
    a tree that are in no row at a time are nobody's then.
    """
    zoned = seen.zoned
    claims = joined(
        {name: seen.placed[name] for name in ("node", "tree", "key", "depth", *_TIMES)}, "node", "tree", "key"
    )
    trees = len(seen.roots)
    line, claimed = (some["node"] * trees + some["tree"] for some in (zoned, claims))
    found = overlaps(line, zoned["from_us"], zoned["until_us"], claimed, claims["from_us"], claims["until_us"])
    zones = select(zoned, found.row) | {name: claims[name][found.other] for name in ("key", "depth")}
    zones |= {"from_us": found.from_us, "until_us": found.until_us}
    zones["zone"] = row_keys(zones["zone"], found.from_us)
    return select(zones, lexsort((zones["low"], zones["tree"], zones["from_us"])))


_TIMES = ("from_us", "until_us")


def _whole(key_bits: int) -> Any:
    """What holds strings as numbers: longer ones are Python's."""
    return np.int64 if key_bits <= WIDEST else object


def zones_at(seen: Overlay, zones: Table, time_us: int) -> list[ZoneSpan]:
    """The zones at a time by tree, depth and strings: where two nodes claim a string, the deeper one lies on top."""
    found = as_spans(ZoneSpan, zones, seen.words, seen.alive(zones, time_us))
    return sorted(found, key=lambda span: (span.tree, span.depth, span.low, span.node))


def strings_of(mapping: Mapping, box: tuple[tuple[int, int], ...]) -> Region:
    """A box as a region; of one with more than ``MOST_CELLS`` strings its hull."""
    if len(box) == 1:
        return tuple(box)
    count = 1
    for low, high in box:
        count *= high - low + 1
    if count > MOST_CELLS:
        return mapping.hull(box)
    whole = _whole(mapping.key_bits)
    cells = np.zeros(1, whole)
    for (low, high), dimension in zip(box, mapping.dimensions, strict=True):
        cells = ((cells << dimension.bits)[:, None] + np.array(range(low, high + 1), whole)).ravel()
    ends = np.flatnonzero(cells[1:] - cells[:-1] != 1)
    lows, highs = cells[[0, *(ends + 1)]], cells[[*ends, len(cells) - 1]]
    return tuple(zip(lows.tolist(), highs.tolist(), strict=True))


def stored_boxes(seen: Overlay, zones: Table, mapping: Mapping) -> Table:
    """Where stored queries lie in the key space: the columns of `BoxSpan`, in order of ``from_us``, tree, strings."""
    boxes = in_zones(zones, seen.storing, regions(seen.words, seen.storing["text"], mapping.query_box, mapping))
    boxes |= {name: seen.storing[name][boxes["row"]] for name in ("node", "sink", "number")}
    return select(boxes, lexsort((row_keys(boxes["low"]), boxes["tree"], boxes["from_us"])))


def regions(words: Any, texts: np.ndarray, box_of: Any, mapping: Mapping) -> dict[int, Region]:
    """The region of each text, by its place in ``words``."""
    return {text: strings_of(mapping, box_of(parse(words[text]))) for text in np.unique(texts).tolist()}


def in_zones(zones: Table, rows: Table, regions: dict[int, Region]) -> Table:
    """What the regions of ``text`` and a node's zones have in common while both last: row, tree, low, high, from_us,
    until_us. rows: node, tree, text, from_us, until_us; they may overlap."""
    which, first, zone = unique_all(zones["zone"])
    trees = max(int(some["tree"].max(initial=0)) for some in (zones, rows)) + 1
    held = select(zones, first)
    key, line = (some["node"] * trees + some["tree"] for some in (rows, held))
    found = overlaps(key, rows["from_us"], rows["until_us"], line, *(held[name] for name in _TIMES))
    count = np.bincount(zone, minlength=len(which))
    begin = np.cumsum(count) - count
    pair = np.repeat(np.arange(len(found.row)), count[found.other])
    row, part = found.row[pair], argsort(zone)[ranges(begin[found.other], count[found.other])]
    text = rows["text"][row]
    made = [(np.zeros(0, np.int64), *(np.zeros(0, zones["low"].dtype),) * 2)]
    texts, of = unique_inverse(text)
    for one, some in zip(texts.tolist(), split_rows(of, len(texts)), strict=True):
        lows, highs = np.array(regions[one], zones["low"].dtype).T
        begin = np.searchsorted(highs, zones["low"][part[some]])
        end = np.searchsorted(lows, zones["high"][part[some]], "right")
        count = np.maximum(end - begin, 0)
        mine, other = np.repeat(np.arange(len(some)), count), ranges(begin, count)
        here = part[some[mine]]
        low, high = np.maximum(zones["low"][here], lows[other]), np.minimum(zones["high"][here], highs[other])
        made.append((some[mine], low, high))
    at, low, high = (np.concatenate(parts) for parts in zip(*made, strict=True))
    times = {"from_us": found.from_us[pair[at]], "until_us": found.until_us[pair[at]]}
    return {"row": row[at], "tree": zones["tree"][part[at]], "low": low, "high": high, **times}


def blocks(low: int, high: int, bits: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """The strings low ... high of two dimensions as rectangles (first row, first column, rows, columns)."""
    columns = 1 << bits[1]
    found = []
    while low <= high:
        size = low & -low if low else 1 << sum(bits)
        while size > high - low + 1:
            size >>= 1
        rows = max(1, size // columns)
        found.append((low // columns, low % columns, rows, min(size, columns)))
        low += size
    return found

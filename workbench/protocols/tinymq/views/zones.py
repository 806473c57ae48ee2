"""Zones in time: how the nodes of each tree share out the key space, and which part of it stored queries cover.

    zone_spans(seen, key_bits)               who stored which strings of a tree, from when to when
    stored_boxes(seen, zones, mapping)       which of these strings belong to a query that is stored there
    blocks(low, high, bits)                  the rectangles of two dimensions that an interval of strings is

Theory of operation
    A node's zone is its universe without its children's, so it changes with its own key and with those of its children
    alone. The places' beginnings and ends are taken in order of time, and of each tree only the zones that a change can
    have touched are computed again. A query covers of a zone what its box and the zone have in common.

    With two dimensions of l1 and l2 bits, a string is a cell of a grid of 2^l1 rows and 2^l2 columns. An interval of
    strings is cut into blocks of 2^n strings that begin at a multiple of 2^n; each of them is a rectangle of the grid.

Limits
    Zones follow the keys of the nodes that are up. That a parent takes a while to notice that a child is gone, and has
    the child's strings only then, a trace does not tell.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from workbench.attributes.text import parse
from workbench.protocols.tinymq.mapping import Mapping
from workbench.protocols.tinymq.views.overlay import Overlay, PlaceSpan
from workbench.protocols.tinymq.zones import ROOT_KEY, intersect, parent_key, zone

MOST_CELLS = 1 << 12

Region = tuple[tuple[int, int], ...]


class ZoneSpan(NamedTuple):
    """A node stores the strings low ... high of a tree during [from_us, until_us)."""

    tree: int
    node: int
    key: str
    low: int
    high: int
    from_us: int
    until_us: int

    @property
    def depth(self) -> int:
        """Hops to the root."""
        return self.key.count("1")


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


def zone_spans(seen: Overlay, key_bits: int) -> list[ZoneSpan]:
    """The zones of all trees in time, in order of ``from_us``, tree and strings; a zone of two intervals is two spans.

    Strings of a tree that are in no span at a time are nobody's then.
    """
    return sorted(
        (span for tree in range(len(seen.roots)) for span in _of_tree(seen, tree, key_bits)),
        key=lambda span: (span.from_us, span.tree, span.low),
    )


def _of_tree(seen: Overlay, tree: int, key_bits: int) -> list[ZoneSpan]:
    changes: dict[int, list[tuple[bool, PlaceSpan]]] = defaultdict(list)
    for place in seen.places:
        if place.tree == tree:
            changes[place.from_us].append((True, place))
            changes[place.until_us].append((False, place))
    here: dict[int, PlaceSpan] = {}
    children: dict[str, dict[int, str]] = defaultdict(dict)
    holders: dict[str, set[int]] = defaultdict(set)  # key -> the nodes that claim it
    held: dict[int, tuple[Region, str, int]] = {}  # node -> (zone, key, since when)
    spans: list[ZoneSpan] = []
    for time_us in sorted(changes):
        touched = set()
        for begins, place in sorted(changes[time_us], key=lambda change: change[0]):
            above = parent_key(place.key) if place.key != ROOT_KEY else None
            touched |= {place.node} | (holders[above] if above is not None else set())
            if begins:
                here[place.node] = place
                holders[place.key].add(place.node)
                if above is not None:
                    children[above][place.node] = place.key
            else:
                here.pop(place.node, None)
                holders[place.key].discard(place.node)
                if above is not None:
                    children[above].pop(place.node, None)
        for node in sorted(touched):
            now = here.get(node)
            region = zone(now.key, sorted(set(children[now.key].values())), key_bits) if now else ()
            before = held.get(node)
            if before is not None and now is not None and before[:2] == (region, now.key):
                continue
            if before is not None:
                spans += [ZoneSpan(tree, node, before[1], low, high, before[2], time_us) for low, high in before[0]]
            held[node] = (region, now.key if now else "", time_us)
    for node, (region, key, since_us) in held.items():
        spans += [ZoneSpan(tree, node, key, low, high, since_us, seen.duration_us) for low, high in region]
    return [span for span in spans if span.from_us < span.until_us]


def alive_zones(zones: list[ZoneSpan], time_us: int, duration_us: int) -> list[ZoneSpan]:
    """The zones at a time by tree, depth and strings: where two nodes claim a string, the deeper one lies on top."""
    time_us = min(time_us, duration_us - 1)
    found = [span for span in zones if span.from_us <= time_us < span.until_us]
    return sorted(found, key=lambda span: (span.tree, span.depth, span.low, span.node))


def strings_of(mapping: Mapping, box: tuple[tuple[int, int], ...]) -> Region:
    """A box as a region; of one with more than ``MOST_CELLS`` strings its hull."""
    count = 1
    for low, high in box:
        count *= high - low + 1
    if len(box) > 1 and count > MOST_CELLS:
        return mapping.hull(box)
    if len(box) == 1:
        return tuple(box)
    region: list[tuple[int, int]] = []
    for cell in mapping.cells(box):
        if region and region[-1][1] == cell - 1:
            region[-1] = region[-1][0], cell
        else:
            region.append((cell, cell))
    return tuple(region)


def stored_boxes(seen: Overlay, zones: list[ZoneSpan], mapping: Mapping) -> list[BoxSpan]:
    """Where stored queries lie in the key space, in order of ``from_us``."""
    of_node = defaultdict(list)
    for span in zones:
        of_node[span.node].append(span)
    regions: dict[str, Region] = {}
    found = []
    for query in seen.stored:
        if query.text not in regions:
            regions[query.text] = strings_of(mapping, mapping.query_box(parse(query.text)))
        for span in of_node[query.node]:
            from_us, until_us = max(span.from_us, query.from_us), min(span.until_us, query.until_us)
            if from_us < until_us:
                for low, high in intersect(regions[query.text], ((span.low, span.high),)):
                    box = BoxSpan(span.tree, query.node, query.sink, query.number, low, high, from_us, until_us)
                    found.append(box)
    return sorted(found, key=lambda box: (box.from_us, box.tree, box.low))


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

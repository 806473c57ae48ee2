"""Regions: which part of the network's ground a node is in."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from workbench.errors import ParameterError

MOST_COLUMNS = len(ascii_uppercase)


def regions(topology: Any, columns: int = 2, rows: int = 2) -> dict[int, str]:
    """Node -> the cell that it is in, of as many as cover the nodes: "A1" is lower left, "B1" to its right.

    ``topology``: a graph with ``pos`` (metres) at its nodes. ParameterError for more than 26 columns, or none.
    """
    for name, number, most in (("columns", columns, MOST_COLUMNS), ("rows", rows, 1000)):
        if not isinstance(number, int) or not 1 <= number <= most:
            raise ParameterError(f"regions: {name} is {number!r:.60}; it must be a whole number from 1 to {most}")
    places = {node: data["pos"] for node, data in topology.nodes(data=True)}
    found = dict.fromkeys(places, "")
    for axis, number in enumerate((columns, rows)):
        low, high = min(place[axis] for place in places.values()), max(place[axis] for place in places.values())
        width = (high - low) / number or 1.0
        for node, place in places.items():
            cell = min(int((place[axis] - low) / width), number - 1)
            found[node] += ascii_uppercase[cell] if axis == 0 else str(cell + 1)
    return found


def regions_of(topology: Any, asked: Any) -> Mapping[int, str]:
    """What a user gave for regions: None (a grid of 2 x 2), (columns, rows), or a mapping from nodes to names."""
    if asked is None:
        return regions(topology)
    if isinstance(asked, Mapping):
        return asked
    if isinstance(asked, tuple) and len(asked) == 2:
        return regions(topology, *asked)
    raise ParameterError(f"regions is {asked!r:.60}; it must be (columns, rows) or a mapping from nodes to names")

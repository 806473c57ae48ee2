"""Shapes on the map of the network for the items of a workload that have positions: paths of nodes, and jammers.

A shape is a dictionary, ready for JSON. Its ``item`` is the index of the workload item.

    {"kind": "path", "item", "nodes": [...], "x": [...], "y": [...], "labels": [...]}     waypoints in m, with times
    {"kind": "disc", "item", "x", "y", "radius", "label"}                                  a jammer, in m
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from workbench.mobility import Waypoints
from workbench.sim.changes.items import Jam, Move
from workbench.sim.workload import Item
from workbench.widgets.controls import replaced, without
from workbench.widgets.workload.texts import interval_text

MOST_SHAPES, MOST_POINTS = 200, 500


def overlay_of(items: Iterable[Item]) -> list[dict[str, Any]]:
    """Return the shapes of a workload; at most `MOST_SHAPES`, with at most `MOST_POINTS` waypoints each."""
    shapes: list[dict[str, Any]] = []
    for index, item in enumerate(items):
        if isinstance(item, Move) and isinstance(item.along, Waypoints):
            points = item.along.points[:MOST_POINTS]
            shapes.append(
                {
                    "kind": "path",
                    "item": index,
                    "nodes": [] if isinstance(item.at, str) else list(item.at),
                    "x": [point[1] for point in points],
                    "y": [point[2] for point in points],
                    "labels": [f"{point[0]:.6g} s" for point in points],
                }
            )
        elif isinstance(item, Jam):
            label = f"jammer, {interval_text(item.start_s, item.stop_s)}"
            shape = {"kind": "disc", "item": index, "x": item.x_m, "y": item.y_m}
            shapes.append({**shape, "radius": item.radius_m, "label": label})
    return shapes[:MOST_SHAPES]


def with_point_moved(items: tuple[Item, ...], index: int, point: int, place_m: tuple[float, float]) -> tuple[Item, ...]:
    """Return the items with a waypoint of a movement, or a jammer, moved to ``place_m``.

    index: the index of the movement or the jammer in ``items``.
    point: the number of the waypoint, from 0; it is ignored for a jammer.
    place_m: the new position (x, y) in m.
    If the waypoint or the jammer does not exist, the items are returned unchanged.
    """
    item = items[index] if 0 <= index < len(items) else None
    x_m, y_m = (round(metres, 2) for metres in place_m)
    if isinstance(item, Jam):
        return replaced(items, index, replace(item, x_m=x_m, y_m=y_m))
    if isinstance(item, Move) and isinstance(item.along, Waypoints) and 0 <= point < len(item.along.points):
        points = replaced(item.along.points, point, (item.along.points[point][0], x_m, y_m))
        return replaced(items, index, replace(item, along=Waypoints(points)))
    return items


def without_point(items: tuple[Item, ...], index: int, point: int) -> tuple[Item, ...]:
    """Return the items without a waypoint of the movement at ``index``, or without the jammer at ``index``.

    A movement that has no waypoint left is removed. ``point``: the number of the waypoint, from 0.
    """
    item = items[index] if 0 <= index < len(items) else None
    if isinstance(item, Jam):
        return without(items, index)
    if isinstance(item, Move) and isinstance(item.along, Waypoints) and 0 <= point < len(item.along.points):
        points = without(item.along.points, point)
        return replaced(items, index, replace(item, along=Waypoints(points))) if points else without(items, index)
    return items

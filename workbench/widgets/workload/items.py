"""Workload items of any kind as values: their kinds, and copies at other nodes or other times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

import networkx as nx

from workbench.sim.actions import ALL
from workbench.sim.changes.items import Crash, Join, Leave, LinkTrace, Move, Outage, Partition
from workbench.sim.changes.measured import LinkQualities
from workbench.sim.workload import KINDS, Item
from workbench.topology import edits
from workbench.widgets.workload.scenario_context import ScenarioContext

# The groups in which the lab offers the kinds of items.
GROUPS: dict[str, tuple[str, ...]] = {
    "Data": ("subscribe", "publish", "reinforce"),
    "Nodes": ("outage", "crash", "join", "leave"),
    "Links": ("move", "partition", "burst_loss", "jam", "link_trace"),
}
TITLES = {
    "subscribe": "Subscription",
    "publish": "Publication",
    "reinforce": "Reinforcement",
    "outage": "Outage",
    "crash": "Crash",
    "join": "Join",
    "leave": "Leave",
    "move": "Move",
    "partition": "Partition",
    "burst_loss": "Burst loss",
    "jam": "Jammer",
    "link_trace": "Link trace",
}
MODEL_LABELS = {
    "waypoints": "waypoints",
    "random_waypoint": "random waypoints",
    "gauss_markov": "gradual turns (Gauss-Markov)",
}


def title_of(kind: str) -> str:
    """Return the name of a kind of items for the user, such as "Burst loss" for "burst_loss"."""
    return TITLES.get(kind, kind.replace("_", " ").capitalize())


def kind_of(item: Item) -> str:
    """Return the kind of a workload item: a key of `workbench.sim.workload.KINDS`, such as "subscribe"."""
    return next(kind for kind, cls in KINDS.items() if type(item) is cls)


def has_field(item: Item, name: str) -> bool:
    """Return whether a workload item has a field called ``name`` that the user can change."""
    return any(field.name == name for field in fields(item))


def with_fields(item: Item, **values: Any) -> Item:
    """Return a copy of an item of any kind with other values in some of its fields."""
    changed: Item = replace(item, **values)
    return changed


def named_nodes(items: Iterable[Item]) -> set[int]:
    """Return all nodes that items of a workload name by number. An item at "all" nodes adds none."""
    return {node for item in items if not isinstance(item.at, str) for node in item.at}


def without_nodes(items: Iterable[Item], nodes: set[int]) -> tuple[Item, ...]:
    """Return the items of a workload with ``nodes`` removed. Items that have no node left are left out."""
    copies = (_remove_item_nodes(item, nodes) for item in items)
    return tuple(item for item in copies if item is not None)


def _remove_item_nodes(item: Item, nodes: set[int]) -> Item | None:
    """Return an item without ``nodes``, or None if it has no node left.

    A link trace loses the links of these nodes. An item at "all" nodes, or at other nodes, is returned unchanged.
    """
    if isinstance(item.at, str) or nodes.isdisjoint(item.at):
        return item
    if isinstance(item, LinkTrace):
        return _remove_links(item, nodes)
    if not has_field(item, "at"):
        return item
    remaining_nodes = tuple(node for node in item.at if node not in nodes)
    return with_fields(item, at=remaining_nodes) if remaining_nodes else None


def _remove_links(item: LinkTrace, nodes: set[int]) -> LinkTrace | None:
    trace = item.trace
    rows = [
        row
        for row in zip(trace.times_s, trace.transmitters, trace.receivers, trace.pdr, strict=True)
        if row[1] not in nodes and row[2] not in nodes
    ]
    return LinkTrace(LinkQualities(*zip(*rows, strict=True))) if rows else None


def with_radius(items: tuple[Item, ...], graph: nx.Graph, previous: nx.Graph) -> tuple[Item, ...]:
    """Return the items of a workload, in which movements have a radius if the network ``graph`` requires one.

    A moving node is linked with all nodes within the radius. ``graph`` requires a radius if positions do not determine
    its links. If a movement then lacks a radius, all movements get the same one: the radius of the first movement that
    has one. If no movement has a radius, it is the radius within which nodes of the ``previous`` network are linked. If
    that is unknown too, it is the median length of the links of ``graph``.
    """
    moves = [item for item in items if isinstance(item, Move)]
    if all(item.radius_m is not None for item in moves) or edits.has_link_rule(graph):
        return items
    radii_m = [item.radius_m for item in moves if item.radius_m is not None]
    radius_m = radii_m[0] if radii_m else (edits.link_rule(previous) or {}).get("radius_m")
    radius_m = radius_m or ScenarioContext(graph=graph).propose_radius_m()
    return tuple(with_fields(item, radius_m=radius_m) if isinstance(item, Move) else item for item in items)


def is_relevant_at(item: Item, time_s: float | None) -> bool:
    """Return False for an outage, crash or partition that is not in progress at ``time_s``, otherwise True.

    If ``time_s`` is None, return True for all items.
    """
    if time_s is None or not isinstance(item, Outage | Crash | Partition):
        return True
    return item.start_s <= time_s and (item.stop_s is None or time_s < item.stop_s)


def copy_with_start(item: Item, time_s: float, duration_s: float) -> Item:
    """Return a copy of a workload item that begins at ``time_s``.

        crash, partition     keep their duration, or lose their end if it would not be within the run
        outage               loses its end
        other items          lose their end if it is not after ``time_s``

    An item without a begin is returned unchanged. So is a crash, partition, join or leave if ``time_s`` is not within
    the run. ``duration_s``: the duration of the run.
    """
    if not has_field(item, "start_s"):
        return item
    is_within = 0 < time_s < duration_s
    if not isinstance(item, Crash | Partition):
        if not is_within and (isinstance(item, Join | Leave)):
            return item
        if not has_field(item, "stop_s"):
            return with_fields(item, start_s=float(time_s))
        stop_s = None if isinstance(item, Outage) else getattr(item, "stop_s", None)
        return with_fields(item, start_s=float(time_s), stop_s=stop_s if stop_s and stop_s > time_s else None)
    if not is_within:
        return item
    stop_s = None if item.stop_s is None else time_s + item.stop_s - item.start_s
    return with_fields(
        item, start_s=float(time_s), stop_s=stop_s if stop_s is not None and stop_s < duration_s else None
    )


def remove_nodes(
    items: tuple[Item, ...], indices: list[int], nodes: tuple[int, ...], network_nodes: tuple[int, ...]
) -> tuple[Item, ...]:
    """Remove ``nodes`` from the items at ``indices``; return all remaining items.

    Items that have no node left are removed. ``network_nodes``: all nodes of the network. An item at "all" nodes is
    changed to an item at all other nodes of the network.
    """
    remaining_items: list[Item] = []
    for index, item in enumerate(items):
        if index not in indices:
            remaining_items.append(item)
            continue
        if item.at == ALL and not set(nodes).isdisjoint(network_nodes):
            item = with_fields(item, at=network_nodes)
        remaining_items += without_nodes((item,), set(nodes))
    return tuple(remaining_items)

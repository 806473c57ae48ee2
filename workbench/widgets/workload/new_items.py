"""New items of a workload, with defaults that have a visible effect in the present scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench import mobility
from workbench.sim import workload
from workbench.sim.actions import ALL
from workbench.sim.changes import items as changes
from workbench.sim.changes.items import Move
from workbench.sim.changes.measured import LinkQualities
from workbench.sim.workload import KINDS, Item, Subscribe
from workbench.widgets.workload.items import with_fields
from workbench.widgets.workload.scenario_context import ScenarioContext

_MOST_TRACED = 40  # links of the example of a link trace


def new_item(kind: str, picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    """Return a new item of a kind at the nodes ``picked``, or at nodes that suit the kind if ``picked`` is empty.

    A subscription or publication has the content and times of the last item of its kind in ``items``, the workload so
    far. Most changes of the network, such as a crash, last from a third to half of the run. ``context``: the scenario's
    network and duration.
    """
    if kind in _CHANGES:
        return _CHANGES[kind](picked, items, context)
    nodes = picked or _default_nodes(kind, items, context.nodes)
    if kind == "reinforce":
        return _new_reinforcement(nodes, items)
    for item in reversed(items):
        if type(item) is KINDS[kind]:
            return with_fields(item, at=nodes)
    if kind == "subscribe":
        return workload.subscribe(nodes, "TEMP GE 20")
    return workload.publish(nodes, "TEMP IS 25", every_s=5.0)


def _default_nodes(kind: str, items: tuple[Item, ...], nodes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the nodes of a new item if no nodes are selected on the map.

    A subscription is at the first node, a reinforcement at the nodes of the last subscription, and any other item at
    the last node. So messages from publishers to subscribers must cross the network.
    """
    sinks = [item.at for item in items if isinstance(item, Subscribe) and not isinstance(item.at, str)]
    if kind == "reinforce" and sinks:
        return sinks[-1]
    if not nodes:
        return (0,)
    return (min(nodes),) if kind == "subscribe" else (max(nodes),)


def _new_reinforcement(nodes: tuple[int, ...], items: tuple[Item, ...]) -> Item:
    """Return a reinforcement with the constraints of the last subscription that shares a node with ``nodes``.

    If no subscription shares a node, the constraints are those of the last subscription; without subscriptions, they
    are "TEMP GE 20".
    """
    subscriptions = [item for item in items if isinstance(item, Subscribe)]
    node_subscriptions = [
        item for item in subscriptions if isinstance(item.at, str) or set(nodes) & set(item.at)
    ] or subscriptions
    constraints = node_subscriptions[-1].what if node_subscriptions else "TEMP GE 20"
    return workload.reinforce(nodes, constraints or "TEMP GE 20", start_s=10.0)


# Changes of the network: (selected nodes, items, context) -> item


def _propose_interval_s(context: ScenarioContext) -> tuple[float, float]:
    """Return (a third, half) of the duration in s, rounded to 1 s if at least 5 s, else to two significant digits."""
    return _round_s(context.duration_s / 3), _round_s(context.duration_s / 2)


def _round_s(time_s: float) -> float:
    return float(round(time_s)) if time_s >= 5 else float(f"{time_s:.2g}")


def _new_outage(picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    return changes.outage(picked or _default_nodes("outage", items, context.nodes), *_propose_interval_s(context))


def _new_crash(picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    return changes.crash(picked or _default_nodes("crash", items, context.nodes), *_propose_interval_s(context))


def _new_join(picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    return changes.join(picked or _default_nodes("join", items, context.nodes), _propose_interval_s(context)[0])


def _new_leave(picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    return changes.leave(picked or _default_nodes("leave", items, context.nodes), _propose_interval_s(context)[1])


def _new_partition(picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    """Return a partition of the selected nodes, or of the left half of the network, from the others."""
    positions = context.positions_m
    ordered_nodes = sorted(context.nodes or (0,), key=lambda node: (*positions.get(node, (0.0, 0.0)), node))
    left_half = tuple(sorted(ordered_nodes[: max(1, len(ordered_nodes) // 2)]))
    return changes.partition(picked or left_half, *_propose_interval_s(context))


def _new_jammer(picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    """Return a jammer in the middle of the selected nodes, or of the network if no nodes are selected.

    Its disc is a third as wide as the network.
    """
    x_m, y_m = context.mean_position_m(picked)
    return changes.jam(_round_m(x_m), _round_m(y_m), _round_m(context.extent_m / 6), *_propose_interval_s(context))


def _new_burst_loss(picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    """Return losses in bursts, for the whole run, on the links between the selected nodes.

    If fewer than two nodes are selected, the losses are on all links.
    """
    at = picked if len(picked) > 1 else ALL
    return changes.burst_loss(_round_s(context.duration_s / 10), _round_s(context.duration_s / 30), at=at)


def _new_link_trace(picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    """Return a link trace in which some links have a delivery ratio of 0.1 from a third to half of the run.

    The links are those of the selected nodes or, if no nodes are selected, those of the last node. At most
    `_MOST_TRACED` links are in the trace.
    """
    nodes = set(picked or _default_nodes("link_trace", items, context.nodes))
    edges = [] if context.graph is None else context.graph.edges(data="pdr")
    links = [(a, b, 1.0 if pdr is None else pdr) for a, b, pdr in edges if a in nodes or b in nodes]
    if not links:
        first_node, *other_nodes = context.nodes or (0, 1)
        links = [(first_node, (other_nodes or [first_node + 1])[0], 1.0)]
    links = links[:_MOST_TRACED]
    transmitters, receivers, ratios = zip(*links, strict=True)
    start_s, stop_s = _propose_interval_s(context)
    count = len(links)
    bad_qualities = LinkQualities(
        [start_s] * count + [stop_s] * count, transmitters * 2, receivers * 2, (*(0.1,) * count, *ratios)
    )
    return changes.link_trace(bad_qualities)


def _new_move(picked: tuple[int, ...], items: tuple[Item, ...], context: ScenarioContext) -> Item:
    """Return a movement: a single node visits the other side of the network, several nodes move at random.

    Without selected nodes, all nodes that do not move yet move at random.
    """
    moves = [item for item in items if isinstance(item, Move)]
    radius_m = moves[0].radius_m if moves else context.propose_radius_m() if context.lacks_link_rule else None
    nodes: tuple[int, ...] | str = picked or ALL
    if moves and not picked:
        moving_nodes = {node for item in moves for node in (context.nodes if isinstance(item.at, str) else item.at)}
        nodes = tuple(node for node in context.nodes if node not in moving_nodes) or context.nodes[-1:] or (0,)
    along = default_movement("waypoints" if len(picked) == 1 else "random_waypoint", nodes, context)
    return changes.move(nodes, along, radius_m=radius_m)


def default_movement(kind: str, nodes: tuple[int, ...] | str, context: ScenarioContext) -> mobility.MobilityModel:
    """Return a mobility model with values that suit the network and the duration of the run.

    ``kind``: the kind of the model, a key of `mobility.MODELS`. ``nodes``: the nodes that move.
    """
    if kind == "waypoints":
        first_node = context.nodes[-1:] if isinstance(nodes, str) else nodes[:1]
        x_m, y_m = context.mean_position_m(first_node)
        x0, y0, x1, y1 = context.box_m
        opposite_m = (_round_m(x0 + x1 - x_m), _round_m(y0 + y1 - y_m))
        start_s, end_s = _round_s(context.duration_s / 3), _round_s(2 * context.duration_s / 3)
        return mobility.Waypoints(((start_s, *opposite_m), (end_s, _round_m(x_m), _round_m(y_m))))
    model: Any = mobility.MODELS[kind]
    positions = context.positions_m.values()
    sides_m = [max(side) - min(side) for side in zip(*positions, strict=True)]
    # The area of a random model is the extent of the network, unless all nodes are at one position.
    return model() if any(side_m > 1 for side_m in sides_m) or not positions else model(width_m=10.0, height_m=10.0)


def _round_m(metres: float) -> float:
    return round(metres, 1)


_CHANGES: dict[str, Callable[[tuple[int, ...], tuple[Item, ...], ScenarioContext], Item]] = {
    "outage": _new_outage,
    "crash": _new_crash,
    "join": _new_join,
    "leave": _new_leave,
    "partition": _new_partition,
    "move": _new_move,
    "burst_loss": _new_burst_loss,
    "link_trace": _new_link_trace,
    "jam": _new_jammer,
}

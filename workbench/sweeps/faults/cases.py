"""The faults of a fault matrix: functions that return workload items, which change the network or the load of a run.

Most faults begin at ``begin_s`` and end at ``end_s``. The functions of the faults "relays ..." and "deaf relay" affect
*victims*: relays without which all sinks, sources and nodes with special roles (such as roots) are still connected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from workbench import mobility
from workbench.sim.changes.items import burst_loss, crash, jam, join, leave, link_trace, move, outage, partition
from workbench.sim.changes.measured import LinkQualities
from workbench.sim.workload import publish
from workbench.topology.edits import has_link_rule

_SHARE = 0.2  # of the nodes, the largest number of victims


class Place(NamedTuple):
    """The network of a fault matrix, and the nodes and times of its faults.

    ``victims``: the relays that fail, the most central one first. ``begin_s``, ``end_s``: when most faults begin and
    end. ``duration_s``: the duration of a run.
    """

    graph: nx.DiGraph
    sinks: tuple[int, ...]
    sources: tuple[int, ...]
    victims: tuple[int, ...]
    begin_s: float
    end_s: float
    duration_s: float

    @property
    def extent_m(self) -> tuple[float, float]:
        """The largest x and the largest y coordinate of the nodes, in metres."""
        positions_m = [position for _, position in self.graph.nodes(data="pos")]
        return max(x for x, _ in positions_m), max(y for _, y in positions_m)


def find_victims(graph: nx.DiGraph, reserved: Iterable[int]) -> tuple[int, ...]:
    """Return the most central nodes that may fail together: without them, the ``reserved`` nodes stay connected.

    At most a fifth of the nodes are returned, in descending order of their betweenness centrality.
    """
    lasting_nodes, victims = set(reserved), []
    remaining_graph = nx.DiGraph(graph)
    centrality = nx.betweenness_centrality(graph)
    for node in sorted(set(graph) - lasting_nodes, key=lambda node: (-centrality[node], node)):
        if len(victims) >= _SHARE * len(graph):
            break
        smaller_graph = remaining_graph.subgraph(set(remaining_graph) - {node})
        start = next(iter(lasting_nodes))
        connected_nodes = nx.descendants(smaller_graph, start) & nx.ancestors(smaller_graph, start)
        if lasting_nodes - {start} <= connected_nodes:
            remaining_graph = nx.DiGraph(smaller_graph)
            victims.append(node)
    return tuple(victims)


def _no_fault(place: Place) -> list[Any]:
    """Return an empty list of workload items: the run without a fault, with which other runs are compared."""
    return []


def _relays_down(place: Place) -> list[Any]:
    """Return the workload items of a fault during which the victims are off; they keep their memory."""
    return [outage(place.victims, place.begin_s, place.end_s)]


def _relays_crash(place: Place) -> list[Any]:
    """Return the workload items of a fault in which the victims crash, and start again without memory when it ends."""
    return [crash(place.victims, place.begin_s, place.end_s)]


def _relays_leave(place: Place) -> list[Any]:
    """Return the workload items of a fault in which the victims leave the network and never come back."""
    return [leave(place.victims, place.begin_s)]


def _relays_never_up(place: Place) -> list[Any]:
    """Return the workload items of a fault that keeps the victims down during the whole run."""
    return [outage(place.victims, 0.0)]


def _relays_join(place: Place) -> list[Any]:
    """Return the workload items with which the victims join the network late, at ``place.begin_s``."""
    return [join(place.victims, place.begin_s)]


def _sink_crashes(place: Place) -> list[Any]:
    """Return the workload items of a fault in which the last sink crashes; it starts again when the fault ends."""
    return [crash(place.sinks[-1], place.begin_s, place.end_s)]


def _all_crash(place: Place) -> list[Any]:
    """Return the workload items of a power cut: all nodes crash at once, and start together when the fault ends."""
    return [crash("all", place.begin_s, place.end_s)]


def _partition(place: Place) -> list[Any]:
    """Return the workload items of a partition between the left half of the nodes and the right half."""
    nodes = sorted(place.graph, key=lambda node: (place.graph.nodes[node]["pos"][0], node))
    return [partition(sorted(nodes[: len(nodes) // 2]), place.begin_s, place.end_s)]


def _deaf_relay(place: Place) -> list[Any]:
    """Return the workload items of a fault in which the most central victim can send, but receives nothing."""
    node = place.victims[0]
    senders = sorted(place.graph.predecessors(node))
    ratios = [place.graph.edges[sender, node]["pdr"] for sender in senders]
    times_s = [place.begin_s] * len(senders) + [place.end_s] * len(senders)
    deaf_links = LinkQualities(times_s, senders * 2, [node] * 2 * len(senders), [0.0] * len(senders) + ratios)
    return [link_trace(deaf_links)]


def _burst_loss(place: Place) -> list[Any]:
    """Return the workload items of a fault in which each link loses all frames for 1 s in every 5 s, on average."""
    return [burst_loss(4.0, 1.0, start_s=place.begin_s, stop_s=place.end_s)]


def _jammer(place: Place) -> list[Any]:
    """Return the workload items of a jammer in the middle of the network.

    The jammer's radius is a sixth of the network's longer side.
    """
    width_m, height_m = place.extent_m
    return [jam(width_m / 2, height_m / 2, max(width_m, height_m) / 6, place.begin_s, place.end_s)]


def _burst_of_readings(place: Place) -> list[Any]:
    """Return the workload items of a burst: each source publishes 20 readings within 20 ms."""
    return [publish(place.sources, "TEMP IS 27", start_s=place.begin_s + number * 0.001) for number in range(20)]


def _saturated_channel(place: Place) -> list[Any]:
    """Return the workload items of a saturated channel: each source publishes ten readings a second."""
    return [publish(place.sources, "TEMP IS 26", every_s=0.1, start_s=place.begin_s, stop_s=place.end_s, stagger=True)]


def _radius_m(place: Place) -> float | None:
    """Return the radio range in metres of nodes that move: the length of the network's longest link.

    Returns None for a network that has a rule of its own by which positions determine links.
    """
    if has_link_rule(place.graph):
        return None
    ends_m = [(place.graph.nodes[a]["pos"], place.graph.nodes[b]["pos"]) for a, b in place.graph.edges]
    return max(((x0 - x1) ** 2 + (y0 - y1) ** 2) ** 0.5 for (x0, y0), (x1, y1) in ends_m)


def _sink_moves(place: Place) -> list[Any]:
    """Return the workload items of a fault in which the last sink moves to the opposite side of the network."""
    x_m, y_m = place.graph.nodes[place.sinks[-1]]["pos"]
    width_m, height_m = place.extent_m
    waypoints = [(place.begin_s, x_m, y_m), (place.end_s, width_m - x_m, height_m - y_m)]
    return [move(place.sinks[-1], waypoints, radius_m=_radius_m(place))]


def _all_move(place: Place) -> list[Any]:
    """Return the workload items of a fault in which all nodes move to random places until its end, then rest."""
    nodes = sorted(place.graph)
    places_m = [place.graph.nodes[node]["pos"] for node in nodes]
    duration_s = place.end_s - place.begin_s
    tracks = mobility.RandomWaypoint().tracks(nodes, places_m, place.extent_m, duration_s, seed=1)
    radius_m = _radius_m(place)
    return [
        move(node, [(place.begin_s, *place_m), *_delay_waypoints(track, place)], radius_m=radius_m)
        for node, place_m, track in zip(nodes, places_m, tracks, strict=True)
    ]


def _delay_waypoints(track: mobility.Track, place: Place) -> list[tuple[float, float, float]]:
    """Return the waypoints (time in s, x, y) of ``track`` for the time of the fault, delayed to its beginning.

    ``track`` begins at time 0; its waypoint at this time is left out. The last returned waypoint is the position at the
    end of the fault.
    """
    duration_us = round((place.end_s - place.begin_s) * 1e6)
    is_during = (track.times_us > 0) & (track.times_us < duration_us)
    times_us = np.append(track.times_us[is_during], duration_us)
    positions_m = np.append(track.positions_m[is_during], mobility.positions(track, np.array([duration_us])), axis=0)
    return [
        (place.begin_s + time_us / 1e6, x_m, y_m)
        for time_us, (x_m, y_m) in zip(times_us.tolist(), positions_m.tolist(), strict=True)
    ]


def _never_at_rest(place: Place) -> list[Any]:
    """Return the workload items with which all nodes move by the random waypoint model during the whole run."""
    return [move("all", mobility.RandomWaypoint(), radius_m=_radius_m(place))]


# "all move": for a time, then all nodes rest; "never at rest": during the whole run, also before the fault begins.
FAULTS: dict[str, Callable[[Place], list[Any]]] = {
    "none": _no_fault,
    "relays down": _relays_down,
    "relays crash": _relays_crash,
    "relays leave": _relays_leave,
    "relays never up": _relays_never_up,
    "relays join": _relays_join,
    "sink crashes": _sink_crashes,
    "power cut": _all_crash,
    "partition": _partition,
    "deaf relay": _deaf_relay,
    "burst loss": _burst_loss,
    "jammer": _jammer,
    "burst of readings": _burst_of_readings,
    "saturated channel": _saturated_channel,
    "sink moves": _sink_moves,
    "all move": _all_move,
    "never at rest": _never_at_rest,
}
# Faults that last to the end of the run, or have no end: recovery is counted from their beginning.
PERMANENT = frozenset(("none", "relays leave", "relays never up", "relays join", "burst of readings", "never at rest"))

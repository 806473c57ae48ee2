"""The faults of a fault matrix: functions that add a change of the network, or of the load, to a scenario.

A fault begins at ``begin_s`` and ends at ``end_s``. Faults of relays affect *victims*. A victim is a
relay whose loss leaves all sinks, sources and named nodes (such as roots) connected. Other faults name their nodes.
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

    ``victims``: the most central nodes that may fail. ``reserved``: named nodes of the protocols, such as roots.
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

    At most a fifth of the nodes are victims, in descending order of their betweenness.
    """
    lasting_nodes, victims = set(reserved), []
    rest = nx.DiGraph(graph)
    centrality = nx.betweenness_centrality(graph)
    for node in sorted(set(graph) - lasting_nodes, key=lambda node: (-centrality[node], node)):
        if len(victims) >= _SHARE * len(graph):
            break
        without = rest.subgraph(set(rest) - {node})
        start = next(iter(lasting_nodes))
        reached = nx.descendants(without, start) & nx.ancestors(without, start)
        if lasting_nodes - {start} <= reached:
            rest = nx.DiGraph(without)
            victims.append(node)
    return tuple(victims)


def _no_fault(place: Place) -> list[Any]:
    """Change nothing: the control."""
    return []


def _relays_down(place: Place) -> list[Any]:
    """Switch the victims off for a time; they keep their memory."""
    return [outage(place.victims, place.begin_s, place.end_s)]


def _relays_crash(place: Place) -> list[Any]:
    """Let the victims crash; they start again without memory."""
    return [crash(place.victims, place.begin_s, place.end_s)]


def _relays_leave(place: Place) -> list[Any]:
    """Remove the victims for good."""
    return [leave(place.victims, place.begin_s)]


def _relays_never_up(place: Place) -> list[Any]:
    """Keep the victims down during the whole run."""
    return [outage(place.victims, 0.0)]


def _relays_join(place: Place) -> list[Any]:
    """Let the victims join the network late."""
    return [join(place.victims, place.begin_s)]


def _sink_crashes(place: Place) -> list[Any]:
    """Let the last sink crash; it subscribes again after its restart."""
    return [crash(place.sinks[-1], place.begin_s, place.end_s)]


def _all_crash(place: Place) -> list[Any]:
    """Let all nodes crash at once; they start again together at the end."""
    return [crash("all", place.begin_s, place.end_s)]


def _partition(place: Place) -> list[Any]:
    """Separate the left half of the nodes from the right half."""
    nodes = sorted(place.graph, key=lambda node: (place.graph.nodes[node]["pos"][0], node))
    return [partition(sorted(nodes[: len(nodes) // 2]), place.begin_s, place.end_s)]


def _deaf_relay(place: Place) -> list[Any]:
    """Let the most central victim hear nothing; its own frames are heard."""
    node = place.victims[0]
    senders = sorted(place.graph.predecessors(node))
    ratios = [place.graph.edges[sender, node]["pdr"] for sender in senders]
    times_s = [place.begin_s] * len(senders) + [place.end_s] * len(senders)
    deaf_links = LinkQualities(times_s, senders * 2, [node] * 2 * len(senders), [0.0] * len(senders) + ratios)
    return [link_trace(deaf_links)]


def _burst_loss(place: Place) -> list[Any]:
    """Let each link lose all frames for 1 s in every 5 s, on average."""
    return [burst_loss(4.0, 1.0, start_s=place.begin_s, stop_s=place.end_s)]


def _jam(place: Place) -> list[Any]:
    """Place a jammer in the middle of the network; its disc is a third of the longer side wide."""
    width_m, height_m = place.extent_m
    return [jam(width_m / 2, height_m / 2, max(width_m, height_m) / 6, place.begin_s, place.end_s)]


def _burst_of_readings(place: Place) -> list[Any]:
    """Publish 20 readings of each source within 20 ms."""
    return [publish(place.sources, "TEMP IS 27", start_s=place.begin_s + number * 0.001) for number in range(20)]


def _saturated(place: Place) -> list[Any]:
    """Publish ten readings a second at each source."""
    return [publish(place.sources, "TEMP IS 26", every_s=0.1, start_s=place.begin_s, stop_s=place.end_s, stagger=True)]


def _radius_m(place: Place) -> float | None:
    """Return a radius for networks whose links do not depend on positions: that of the longest link."""
    if has_link_rule(place.graph):
        return None
    ends_m = [(place.graph.nodes[a]["pos"], place.graph.nodes[b]["pos"]) for a, b in place.graph.edges]
    return max(((x0 - x1) ** 2 + (y0 - y1) ** 2) ** 0.5 for (x0, y0), (x1, y1) in ends_m)


def _sink_moves(place: Place) -> list[Any]:
    """Move the last sink to the opposite side of the network."""
    x_m, y_m = place.graph.nodes[place.sinks[-1]]["pos"]
    width_m, height_m = place.extent_m
    waypoints = [(place.begin_s, x_m, y_m), (place.end_s, width_m - x_m, height_m - y_m)]
    return [move(place.sinks[-1], waypoints, radius_m=_radius_m(place))]


def _all_move(place: Place) -> list[Any]:
    """Move all nodes to random places, from their places in the topology, until the end of the fault."""
    nodes = sorted(place.graph)
    places_m = [place.graph.nodes[node]["pos"] for node in nodes]
    duration_s = place.end_s - place.begin_s
    tracks = mobility.RandomWaypoint().tracks(nodes, places_m, place.extent_m, duration_s, seed=1)
    radius_m = _radius_m(place)
    return [
        move(node, [(place.begin_s, *place_m), *_later(track, place)], radius_m=radius_m)
        for node, place_m, track in zip(nodes, places_m, tracks, strict=True)
    ]


def _later(track: mobility.Track, place: Place) -> list[tuple[float, float, float]]:
    """Return the waypoints of a track after its first, delayed to the fault, and its position at the fault's end."""
    duration_us = round((place.end_s - place.begin_s) * 1e6)
    is_during = (track.times_us > 0) & (track.times_us < duration_us)
    times_us = np.append(track.times_us[is_during], duration_us)
    positions_m = np.append(track.positions_m[is_during], mobility.positions(track, np.array([duration_us])), axis=0)
    return [
        (place.begin_s + time_us / 1e6, x_m, y_m)
        for time_us, (x_m, y_m) in zip(times_us.tolist(), positions_m.tolist(), strict=True)
    ]


def _never_at_rest(place: Place) -> list[Any]:
    """Move all nodes by the random waypoint model during the whole run."""
    return [move("all", mobility.RandomWaypoint(), radius_m=_radius_m(place))]


# "all move": for a time, then all nodes rest; "never at rest": during the whole run, also before the fault's begin.
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
    "jammer": _jam,
    "burst of readings": _burst_of_readings,
    "saturated channel": _saturated,
    "sink moves": _sink_moves,
    "all move": _all_move,
    "never at rest": _never_at_rest,
}
# Faults that last to the end of the run, or have no end: recovery is counted from their begin.
PERMANENT = frozenset(("none", "relays leave", "relays never up", "relays join", "burst of readings", "never at rest"))

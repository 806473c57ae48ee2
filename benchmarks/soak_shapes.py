"""Cases of the soak on whole networks: shapes with loops, hubs and long paths, where links lose nothing.

Here only a change of the network shortly before excuses a missed delivery. Changes are nodes that start late, fail for
a time, reboot without their memory, or die. After them follows a burst: many readings at the same instant. A case is a
function of its seed, as in `soak_cases.py`.
"""

import random
from collections.abc import Callable, Iterable
from typing import Any

import networkx as nx
from soak_cases import Case, make_protocol

import workbench as wb

CHANGES = ("none", "late", "outage", "reboot", "death")
BURSTS = (1, 18, 72, 200, 500)  # readings at the same instant
MOST_SINKS = 8
DURATION_S, BURST_S, LAST_S = 640.0, 420.0, 500.0
# The memory of coded diffusion bounds its bursts: 50 events (`max_events`).
MOST_AT_ONCE = {"CodedDiffusion": 18}


def small_world(choose: random.Random) -> nx.Graph:
    return nx.connected_watts_strogatz_graph(choose.randint(18, 50), 4, 0.2, seed=choose.randrange(1 << 30))


def torus(choose: random.Random) -> nx.Graph:
    return nx.grid_2d_graph(choose.randint(3, 7), choose.randint(3, 7), periodic=True)


def caves(choose: random.Random) -> nx.Graph:
    return nx.connected_caveman_graph(choose.randint(3, 8), choose.randint(3, 6))


def scale_free(choose: random.Random) -> nx.Graph:
    return nx.barabasi_albert_graph(choose.randint(18, 50), choose.randint(1, 3), seed=choose.randrange(1 << 30))


def wheel(choose: random.Random) -> nx.Graph:
    return nx.wheel_graph(choose.randint(6, 40))


def regular(choose: random.Random) -> nx.Graph:
    while True:
        graph = nx.random_regular_graph(choose.choice((3, 4)), 2 * choose.randint(5, 25), choose.randrange(1 << 30))
        if nx.is_connected(graph):
            return graph


def line(choose: random.Random) -> nx.Graph:
    return nx.path_graph(60)


def ring(choose: random.Random) -> nx.Graph:
    return nx.cycle_graph(choose.randint(5, 60))


def tree(choose: random.Random) -> nx.Graph:
    return nx.random_labeled_tree(choose.randint(3, 40), seed=choose.randrange(1 << 30))


SHAPES: dict[str, Callable[[random.Random], nx.Graph]] = {
    shape.__name__: shape for shape in (small_world, torus, caves, scale_free, wheel, regular, line, ring, tree)
}


def draw_shape(seed: int, protocols: Iterable[str], shapes: Iterable[str], changes: Iterable[str]) -> Case:
    """Return the case of a seed, with a protocol, a shape of the network and a change that are drawn at random.

    They are drawn from ``protocols`` (names), ``shapes`` (names in SHAPES) and ``changes`` (names in CHANGES).
    """
    choose = random.Random(seed)
    name, shape, change = (choose.choice(tuple(options)) for options in (protocols, shapes, changes))
    graph = _shuffle_nodes(choose, SHAPES[shape](choose))
    nodes = sorted(graph)
    roots = tuple(choose.sample(nodes, choose.randint(1, min(3, len(nodes) - 2))))
    sinks = choose.sample(nodes, choose.randint(1, min(MOST_SINKS, len(nodes) - 1)))
    others = [node for node in nodes if node not in sinks]
    failing = choose.sample(others, choose.randint(1, max(1, len(others) // 5))) if change != "none" else []
    items: list[Any] = [
        wb.subscribe(sink, f"TEMP GE {choose.randint(0, 20)}", start_s=choose.uniform(0.5, 5.0)) for sink in sinks
    ]
    items += [_make_change(choose, node, change) for node in failing]
    items += [
        wb.publish(
            node,
            f"TEMP IS {choose.randint(20, 45)}",
            start_s=choose.uniform(10.0, 40.0),
            stop_s=LAST_S,
            every_s=choose.uniform(16.0, 24.0),
        )
        for node in choose.sample(others, min(len(others), choose.randint(1, 6)))
    ]
    count = min(choose.choice(BURSTS), MOST_AT_ONCE.get(name, max(BURSTS)))
    items += [
        wb.publish(choose.choice(others), f"TEMP IS {20 + number % 250 / 10}", start_s=BURST_S)
        for number in range(count)
    ]
    protocol = make_protocol(choose, name, roots)
    if name == "Diffusion":
        protocol = wb.Diffusion(ttl=len(nodes) + 50)  # a line of 60 has more hops than the definition file's ttl
    scenario = wb.Scenario(graph, protocol, items, wb.Radio(loss="none"), duration_s=DURATION_S, seed=seed)
    return Case(seed, name, "ideal", shape, change, scenario)


def _shuffle_nodes(choose: random.Random, graph: nx.Graph) -> nx.DiGraph:
    """Return a graph as a network with random node numbers, so that ids and addresses do not follow any path."""
    numbers = choose.sample(range(len(graph)), len(graph))
    names = dict(zip(sorted(graph), numbers, strict=True))
    arcs = nx.DiGraph()
    arcs.add_nodes_from(range(len(graph)))
    for a, b in sorted(graph.edges):
        arcs.add_edge(names[a], names[b], pdr=1.0)
        arcs.add_edge(names[b], names[a], pdr=1.0)
    return arcs


def _make_change(choose: random.Random, node: int, change: str) -> Any:
    begin_s = 0.0 if change == "late" else round(choose.uniform(40.0, 100.0), 3)
    if change == "death":
        return wb.outage(node, start_s=begin_s)
    end_s = begin_s + round(choose.uniform(10.0, 150.0), 3)
    if change == "late":
        return wb.join(node, start_s=end_s)
    return (wb.crash if change == "reboot" else wb.outage)(node, start_s=begin_s, stop_s=end_s)

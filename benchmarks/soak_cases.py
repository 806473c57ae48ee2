"""Cases of the soak: random scenarios of all protocols, with losses, asymmetric links and failures.

A case is a function of its seed and the selected options, so a line of the soak's report reproduces it.
"""

import random
from collections.abc import Iterable
from typing import Any, NamedTuple

import networkx as nx

import workbench as wb
from workbench.errors import DataError

LINKS = ("ideal", "lossy", "asymmetric", "one-way", "measured")
OUTAGES = ("none", "leaf", "relay", "sink", "root", "partition")
TESTBEDS = ("strasbourg", "lille", "intel-lab")
# Minutes, and hours with an outage longer than every counter: rounds of TinyDiffusion wrap around after 128 minutes.
LENGTHS = {"minutes": (600.0, (30.0, 120.0)), "hours": (4 * 3600.0, (2.2 * 3600, 2.4 * 3600))}
QUIET_S = 240.0  # after the last publication
EVERY_S = {"minutes": 5.0, "hours": 20.0}
PROTOCOLS = ("Flooding", "Gossip", "Diffusion", "CodedDiffusion", "TinyMQ", "Pub2Sub", "DPS")
USABLE = 0.5  # delivery ratio of each direction in measured networks; DPS rejects worse links
SMALLEST, LARGEST = 5, 20  # nodes


class Case(NamedTuple):
    """A case: a random scenario, its seed, and the properties that were drawn for it."""

    seed: int
    protocol: str
    links: str
    length: str
    outage: str
    scenario: wb.Scenario

    @property
    def is_ideal(self) -> bool:
        """True if frames are lost only to nodes that are down."""
        return self.links in ("ideal", "one-way")

    def __str__(self) -> str:
        traits = f"{self.protocol}, {self.links} links, {self.length}, outage: {self.outage}"
        return f"--seed {self.seed}: {traits}, {len(self.scenario.topology)} nodes"


def draw(
    seed: int, protocols: Iterable[str], links: Iterable[str], lengths: Iterable[str], most_nodes: int = LARGEST
) -> Case:
    """Return the case of a seed: its properties are drawn from the given protocols, links and lengths.

    Its network has at most ``most_nodes`` nodes. Raises DataError if its links are those of a measured testbed and no
    testbed's data are on this machine.
    """
    choose = random.Random(seed)
    protocol, kind, length = (choose.choice(tuple(options)) for options in (protocols, links, lengths))
    outage = choose.choice(OUTAGES)
    graph = _graph(choose, kind, most_nodes)
    nodes = sorted(graph)
    roots = tuple(choose.sample(nodes, choose.randint(1, min(3, len(nodes) - 2))))
    others = [node for node in nodes if node not in roots]
    sinks = choose.sample(others, choose.randint(1, min(3, len(others) - 1)))
    sources = choose.sample(
        [node for node in nodes if node not in sinks], choose.randint(1, min(4, len(nodes) - len(sinks)))
    )
    duration_s, outage_s = LENGTHS[length]
    busy_s = duration_s - QUIET_S
    workload = [
        wb.subscribe(sink, f"TEMP GE {choose.randint(0, 20)}", start_s=choose.uniform(0.5, 5.0)) for sink in sinks
    ]
    workload += [
        wb.publish(
            source,
            f"TEMP IS {choose.randint(20, 45)}",
            start_s=choose.uniform(5.0, 15.0),
            stop_s=busy_s,
            every_s=EVERY_S[length] * choose.uniform(0.8, 1.2),
        )
        for source in sources
    ]
    start_s = choose.uniform(0.2, 0.25) * busy_s
    stop_s = start_s + choose.uniform(*outage_s)
    workload += [
        wb.outage(node, start_s=start_s, stop_s=stop_s)
        for node in _choose_failing(choose, outage, graph, roots, sinks, sources)
    ]
    scenario = wb.Scenario(
        graph, make_protocol(choose, protocol, roots), workload, _radio(choose, kind), duration_s=duration_s, seed=seed
    )
    return Case(seed, protocol, kind, length, outage, scenario)


def make_protocol(choose: random.Random, name: str, roots: tuple[int, ...]) -> Any:
    """Return a protocol object by its name; ``roots`` are its roots, if it has overlay trees."""
    if name == "TinyMQ":
        return wb.TinyMQ(roots=roots, publish=choose.choice(("all", "own")))
    if name == "Pub2Sub":
        return wb.Pub2Sub(roots=roots)
    if name == "Gossip":
        return wb.Gossip(forwarding_probability=1.0)
    return getattr(wb, name)()


def _radio(choose: random.Random, kind: str) -> wb.Radio:
    if kind in ("ideal", "one-way"):
        return wb.Radio(loss="none")
    crowded = choose.random() < 0.5
    return wb.Radio(loss="links", retries=3, collisions=crowded, csma=crowded)


# Networks


def _graph(choose: random.Random, kind: str, most_nodes: int) -> nx.DiGraph:
    if kind == "measured":
        return _draw_testbed(choose, most_nodes)
    graph = _draw_tree(choose, choose.randint(SMALLEST, most_nodes)).to_directed()
    for arc in graph.edges:
        graph.edges[arc]["pdr"] = 1.0 if kind in ("ideal", "one-way") else choose.uniform(0.55, 1.0)
    if kind == "asymmetric":
        for a, b in graph.edges:
            if a < b:
                poor = (a, b) if choose.random() < 0.5 else (b, a)
                graph.edges[poor]["pdr"] = choose.uniform(0.55, 0.65)
                graph.edges[poor[::-1]]["pdr"] = choose.uniform(0.9, 1.0)
    if kind == "one-way":
        for _ in range(choose.randint(1, len(graph))):
            a, b = choose.sample(sorted(graph), 2)
            if not graph.has_edge(a, b) and not graph.has_edge(b, a):
                graph.add_edge(a, b, pdr=1.0)
    return graph


def _draw_tree(choose: random.Random, count: int) -> nx.Graph:
    """Return a random tree of ``count`` nodes with some additional links; its form is between a line and a bush."""
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    names = choose.sample(range(count), count)
    reach = choose.choice((1, 3, count))
    for number in range(1, count):
        graph.add_edge(names[number], names[choose.randint(max(0, number - reach), number - 1)])
    for _ in range(choose.randint(0, count)):
        graph.add_edge(*choose.sample(range(count), 2))
    return graph


def _draw_testbed(choose: random.Random, most_nodes: int) -> nx.DiGraph:
    """Return some nodes of a measured testbed, connected, with all measured links between them."""
    available = [name for name in TESTBEDS if _is_available(name)]
    if not available:
        raise DataError(
            f"the links of {', '.join(TESTBEDS)} are not on this machine; wb.topology.testbed(name) names their source"
        )
    whole = wb.topology.testbed(choose.choice(available))
    wanted = choose.randint(SMALLEST, most_nodes)
    for _ in range(100):
        part = whole.subgraph(choose.sample(sorted(whole), min(wanted, len(whole))))
        if nx.is_connected(two_way_links(part, USABLE)):
            return nx.DiGraph(part)
    return nx.DiGraph(whole)


def _is_available(name: str) -> bool:
    try:
        wb.topology.testbed(name)
    except DataError:
        return False
    return True


def two_way_links(graph: nx.DiGraph, least: float = 0.0) -> nx.Graph:
    """Return the undirected graph of links whose two arcs each have a delivery ratio of at least ``least``."""
    links = nx.Graph()
    links.add_nodes_from(graph)
    links.add_edges_from(
        (a, b)
        for a, b, pdr in graph.edges(data="pdr")
        if pdr >= least and graph.has_edge(b, a) and graph.edges[b, a]["pdr"] >= least
    )
    return links


# Outages


def _choose_failing(
    choose: random.Random, outage: str, graph: nx.DiGraph, roots: tuple[int, ...], sinks: list[int], sources: list[int]
) -> list[int]:
    """Return the nodes that fail together in an outage of this kind: "sink", "root", "leaf", "relay" or "partition"."""
    links = two_way_links(graph)
    if outage == "sink":
        return [choose.choice(sinks)]
    if outage == "root":
        return [choose.choice(roots)]
    idle = [node for node in sorted(graph) if node not in (*roots, *sinks, *sources)]
    cutting = set(nx.articulation_points(links))
    if outage == "leaf":
        return _choose_one(choose, [node for node in idle if node not in cutting])
    if outage == "relay":
        return _choose_one(choose, [node for node in idle if node in cutting] or idle)
    if outage == "partition":
        hops = nx.single_source_shortest_path_length(links, sinks[0])
        ring = max(1, max(hops.values()) // 2)
        return [node for node in idle if hops[node] == ring]
    return []


def _choose_one(choose: random.Random, nodes: list[int]) -> list[int]:
    return [choose.choice(nodes)] if nodes else []

"""DPS on whole networks: how many stay partitioned, how long the others take to be whole, and their frames.

    benchmarks/dps_whole.py [--set loops --set late ...] [--networks N] [--first SEED] [--engine reference]

A network is *whole* from the time at which active links permanently join all live nodes that its arcs join. The time
counts from the last change: the start, or the last start or death of a node. Links are ideal except in one set. The
program prints a line for each set. Each network that stays apart, is slower than two ``link_loss_s``, or misses
readings has its own line with the seed that reproduces it. Readings are not counted if the arcs do not join all live
nodes.

    loops    connected Watts-Strogatz graphs of 20 to 39 nodes
    late     trees of 3 to 12 nodes, of which up to a third start late
    shapes   small worlds, tori, cavemen, scale-free graphs, wheels, regular graphs, lines and rings; nodes are shuffled
    joiners  the same shapes, of which up to a third of the nodes start late
    off      the same shapes, of which up to a third of the nodes are off for a time
    deaths   the same shapes, of which a fifth of the nodes die for good
    lossy    the same shapes, static, whose links lose up to a third of the frames; the radio tries four times
    clean    grids, discs, stars and trees, only for the number of frames

To compare with another checkout, run this file with its ``PYTHONPATH``: it uses only public names.
"""

import argparse
import random
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import networkx as nx
from tables import table

import workbench as wb

SLOW_S = 2 * wb.DPS().link_loss_s
SECOND = 1_000_000
LARGEST = 60


def to_digraph(graph: nx.Graph) -> nx.DiGraph:
    """Return a digraph with nodes 0, 1, 2, ... and two arcs for each edge of the graph."""
    arcs = nx.DiGraph()
    arcs.add_nodes_from(range(len(graph)))
    for a, b in graph.edges:
        arcs.add_edge(a, b, pdr=1.0)
        arcs.add_edge(b, a, pdr=1.0)
    return arcs


def _small_world(draw: random.Random, seed: int) -> nx.Graph:
    return nx.connected_watts_strogatz_graph(draw.randint(18, LARGEST), 4, 0.2, seed=seed)


def _torus(draw: random.Random, seed: int) -> nx.Graph:
    graph = nx.grid_2d_graph(draw.randint(4, 7), draw.randint(5, 8), periodic=True)
    return nx.convert_node_labels_to_integers(graph)


def _cavemen(draw: random.Random, seed: int) -> nx.Graph:
    return nx.connected_caveman_graph(draw.randint(4, 10), draw.randint(5, 6))


def _scale_free(draw: random.Random, seed: int) -> nx.Graph:
    return nx.barabasi_albert_graph(draw.randint(18, LARGEST), 2, seed=seed)


def _wheel(draw: random.Random, seed: int) -> nx.Graph:
    return nx.wheel_graph(draw.randint(18, LARGEST))


def _regular(draw: random.Random, seed: int) -> nx.Graph:
    while True:
        graph = nx.random_regular_graph(3, 2 * draw.randint(9, LARGEST // 2), seed=draw.randrange(1 << 30))
        if nx.is_connected(graph):
            return graph


def _line_or_ring(draw: random.Random, seed: int) -> nx.Graph:
    return draw.choice((nx.path_graph, nx.cycle_graph))(LARGEST)


SHAPES = (_small_world, _torus, _cavemen, _scale_free, _wheel, _regular, _line_or_ring)


def shape(draw: random.Random, seed: int) -> nx.DiGraph:
    """Return the network of a seed, with shuffled node numbers; successive seeds have different kinds of shapes."""
    graph = SHAPES[seed % len(SHAPES)](draw, seed)
    order = list(range(len(graph)))
    draw.shuffle(order)
    return to_digraph(nx.relabel_nodes(graph, dict(enumerate(order))))


def watched_scenario(arcs: nx.DiGraph, changes: list[Any], last_s: float, sink: int, seed: int) -> wb.Scenario:
    """Return a scenario with these changes, in which each node publishes twice, long after the last change.

    ``last_s`` is the time of the last change; the node ``sink`` subscribes.
    """
    begin_s = last_s + 260
    readings = wb.publish("all", "TEMP IS 9", start_s=begin_s, every_s=60, stop_s=begin_s + 120, stagger=True)
    workload = [wb.subscribe(at=sink, what="TEMP GE 1", start_s=1), readings, *changes]
    return wb.Scenario(arcs, wb.DPS(), workload, wb.Radio(loss="none"), begin_s + 180, seed)


def loops(seed: int) -> wb.Scenario:
    """Return a scenario on a static network with loops."""
    graph = nx.connected_watts_strogatz_graph(20 + seed % 20, 4, 0.2, seed=seed)
    workload = [
        wb.subscribe(at=0, what="TEMP GE 1", start_s=1),
        wb.publish(at="all", what="TEMP IS 9", start_s=400, every_s=60, stagger=True),
    ]
    return wb.Scenario(to_digraph(graph), wb.DPS(), workload, wb.Radio(loss="none"), 700, seed)


def late(seed: int) -> wb.Scenario:
    """Return a scenario on a small tree, some of whose nodes start late."""
    draw = random.Random(seed)
    nodes = 3 + seed % 10
    arcs = to_digraph(nx.random_labeled_tree(nodes, seed=seed))
    return _start_late(arcs, draw, draw.randint(1, max(1, nodes // 3)), seed)


def _start_late(arcs: nx.DiGraph, draw: random.Random, count: int, seed: int) -> wb.Scenario:
    nodes = draw.sample(sorted(arcs), count)
    up_s = [round(draw.uniform(10, 200), 3) for _ in nodes]
    sink = draw.choice([node for node in sorted(arcs) if node not in nodes])
    outages = [wb.outage(at=node, start_s=0, stop_s=at_s) for node, at_s in zip(nodes, up_s, strict=True)]
    return watched_scenario(arcs, outages, max(up_s), sink, seed)


def shapes(seed: int) -> wb.Scenario:
    """Return a scenario on a static network of any shape."""
    return watched_scenario(shape(random.Random(seed), seed), [], 0.0, 0, seed)


def joiners(seed: int) -> wb.Scenario:
    """Return a scenario on a network of any shape, some of whose nodes start late."""
    draw = random.Random(seed)
    arcs = shape(draw, seed)
    return _start_late(arcs, draw, draw.randint(1, len(arcs) // 3), seed)


def off(seed: int) -> wb.Scenario:
    """Return a scenario on a network of any shape, some of whose nodes are off for a time."""
    draw = random.Random(seed)
    arcs = shape(draw, seed)
    nodes = draw.sample(range(1, len(arcs)), draw.randint(1, len(arcs) // 3))
    outages, last_s = [], 0.0
    for node in nodes:
        start_s = draw.uniform(50, 150)
        stop_s = start_s + draw.uniform(5, 150)
        outages.append(wb.outage(at=node, start_s=start_s, stop_s=stop_s))
        last_s = max(last_s, stop_s)
    return watched_scenario(arcs, outages, last_s, 0, seed)


def deaths(seed: int) -> wb.Scenario:
    """Return a scenario on a network of any shape, a fifth of whose nodes die for good within two minutes."""
    draw = random.Random(seed)
    arcs = shape(draw, seed)
    nodes = draw.sample(range(1, len(arcs)), len(arcs) // 5)
    at_s = [draw.uniform(100, 220) for _ in nodes]
    outages = [wb.outage(at=node, start_s=start_s) for node, start_s in zip(nodes, at_s, strict=True)]
    return watched_scenario(arcs, outages, max(at_s), 0, seed)


def lossy(seed: int) -> wb.Scenario:
    """Return a scenario on a static network of any shape, whose arcs each lose up to a third of the frames."""
    draw = random.Random(seed)
    base = shapes(seed)
    arcs = base.topology.copy()
    for _, _, arc in arcs.edges(data=True):
        arc["pdr"] = draw.uniform(0.7, 1.0)
    return base.replace(topology=arcs, radio=wb.Radio(retries=3))


def clean(seed: int) -> wb.Scenario:
    """Return a scenario on a grid, disc, star or tree without failures."""
    size = 4 + seed % 5
    topology = (
        lambda: wb.topology.grid(size, size),
        lambda: wb.topology.disc(8 * size, 60, 40, radius_m=20, seed=seed),
        lambda: to_digraph(nx.star_graph(3 * size)),
        lambda: to_digraph(nx.random_labeled_tree(8 * size, seed=seed)),
    )[seed % 4]()
    return watched_scenario(topology, [], 0.0, 0, seed)


class Set(NamedTuple):
    """A set of networks: the function that returns the scenario of a seed, and the default number of networks."""

    scenario: Callable[[int], wb.Scenario]
    networks: int


SETS = {
    "loops": Set(loops, 300),
    "late": Set(late, 200),
    "shapes": Set(shapes, 400),
    "joiners": Set(joiners, 200),
    "off": Set(off, 100),
    "deaths": Set(deaths, 400),
    "lossy": Set(lossy, 60),
    "clean": Set(clean, 20),
}


class Outcome(NamedTuple):
    """The outcome of a network.

    ``whole_s`` is the time in s from the last change until it is whole, None if it never is.
    """

    seed: int
    nodes: int
    whole_s: float | None
    missed: int
    frames: int


def play(scenario: wb.Scenario, engine: str = "fast") -> Outcome:
    """Run a scenario, and return its outcome: when its mesh is whole, the numbers of missed readings and of frames."""
    run = scenario.run(engine=engine)
    trace = run.trace.select(["time_us", "node", "event", "peer", "detail"]).to_pandas()
    frames = int((trace.event == "sent").sum())
    outages = trace[trace.event.isin(("failed", "recovered"))]
    up = dict.fromkeys(scenario.topology, True)
    up.update(zip(outages.node.tolist(), (outages.event == "recovered").tolist(), strict=True))
    live = nx.Graph(scenario.topology.to_undirected().subgraph([node for node in up if up[node]]))
    missed = int(run.metrics["expected"] - run.metrics["delivered"]) if nx.is_connected(live) else 0
    changed_us = int(outages.time_us.max()) if len(outages) else 0
    return Outcome(scenario.seed, len(up), whole_s(live, changed_us, trace), missed, frames)


def whole_s(live: nx.Graph, changed_us: int, trace: Any) -> float | None:
    """Return the seconds from the last change until all live nodes are joined for good, or None if they never are.

    ``live`` has the nodes that are up in the end, and the edges between them.
    """
    parts = nx.number_connected_components(live)
    links = trace[trace.event == "link_set"]
    columns = (links.time_us, links.node, links.peer, links.detail == "active")
    states: list[tuple[int, int, int, bool, bool]] = []
    active: set[tuple[int, int]] = set()
    for time_us, node, peer, is_active in zip(*(column.tolist() for column in columns), strict=True):
        states.append((time_us, node, peer, (node, peer) in active, is_active))
        (active.add if is_active else active.discard)((node, peer))

    def is_whole() -> bool:
        joined = nx.Graph()
        joined.add_nodes_from(live)
        joined.add_edges_from((a, b) for a, b in active if a < b and (b, a) in active and a in live and b in live)
        return nx.number_connected_components(joined) == parts

    if not is_whole():
        return None
    for time_us, node, peer, was_active, is_active in reversed(states):
        if time_us < changed_us:
            break
        (active.add if was_active else active.discard)((node, peer))
        if is_active and not was_active and not is_whole():
            return (time_us - changed_us) / SECOND
    return 0.0


def report(name: str, outcomes: list[Outcome]) -> list[str]:
    """Return the table row of the set of networks called ``name``."""
    times = sorted(outcome.whole_s for outcome in outcomes if outcome.whole_s is not None)
    apart = len(outcomes) - len(times)
    return [
        name,
        f"{len(outcomes)}",
        f"{apart}",
        f"{sum(outcome.missed for outcome in outcomes)}",
        f"{statistics.median(times):.1f}" if times else "-",
        f"{times[int(0.95 * (len(times) - 1))]:.1f}" if times else "-",
        f"{times[-1]:.1f}" if times else "-",
        f"{sum(time_s > SLOW_S for time_s in times)}",
        f"{statistics.mean(outcome.frames for outcome in outcomes):,.1f}",
    ]


HEADER = ["set", "networks", "apart", "readings missed", "median s", "95 % s", "slowest s", "slow", "frames a network"]


def outcomes_of(name: str, first: int, networks: int | None, engine: str) -> Iterator[Outcome]:
    """Play the networks of the set called ``name``, and yield their outcomes.

    ``first`` is the first seed; ``networks`` is their number, None: the set's default.
    """
    count = SETS[name].networks if networks is None else networks
    for seed in range(first, first + count):
        yield play(SETS[name].scenario(seed), engine)


def main() -> None:
    """Print each network with a problem, and the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--set", dest="sets", action="append", choices=tuple(SETS))
    parser.add_argument("--networks", type=int, default=None, help="of each set")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--engine", choices=("fast", "reference"), default="fast")
    options = parser.parse_args()
    rows = []
    for name in options.sets or SETS:
        outcomes = []
        for outcome in outcomes_of(name, options.first, options.networks, options.engine):
            outcomes.append(outcome)
            if outcome.whole_s is None or outcome.whole_s > SLOW_S or outcome.missed:
                whole = "apart" if outcome.whole_s is None else f"whole after {outcome.whole_s:.1f} s"
                print(
                    f"{name}, seed {outcome.seed}: {outcome.nodes} nodes, {whole}, {outcome.missed} readings missed",
                    flush=True,
                )
        rows.append(report(name, outcomes))
    print(table(HEADER, rows))


if __name__ == "__main__":
    main()

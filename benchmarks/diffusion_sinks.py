"""TinyDiffusion with several sinks: ``benchmarks/diffusion_sinks.py [sinks] [bursts] [lossy] [dies] [--seeds 4]``.

    sinks    number of data frames per reading, divided by the number of arcs on the shortest paths to all sinks; on a
             grid of 100 nodes and a disc of 300 nodes, with 1 to 8 sinks
    bursts   number of frames and of repeated deliveries if 36 nodes publish 18 to 500 readings at once; 3 sinks
    lossy    number of missed readings and of data frames, in 30 random networks with lossy links; 3 sinks
    dies     number of missed readings if the busiest relay of a grid dies, and the time from its death to the last
             missed reading; 3 sinks

Without names all parts are measured. Run the script on two checkouts to compare them.
"""

import argparse
import random
from collections import Counter
from itertools import pairwise
from typing import Any

import networkx as nx
from tables import table

import workbench as wb

IDEAL = wb.Radio(loss="none")
CONGESTED = {"collisions": True, "csma": True}


def make_subscriptions(sinks: list[int]) -> list[Any]:
    """Return a workload in which each sink has a different subscription; all of them match the readings."""
    return [wb.subscribe(at=node, what=f"TEMP GE {1 + index}", start_s=1 + index) for index, node in enumerate(sinks)]


def metrics_of(graph: Any, workload: list[Any], radio: wb.Radio, duration_s: float, seed: int) -> Any:
    scenario = wb.Scenario(graph, wb.Diffusion(), workload, radio, duration_s, seed)
    return scenario.run(record="metrics", engine="fast", progress=None).metrics


def sinks_table(seeds: int) -> str:
    rows = []
    graphs = {"grid of 100": wb.topology.grid(10, 10), "disc of 300": wb.topology.disc(300, 150, 100, 22, seed=3)}
    for name, graph in graphs.items():
        for count in (1, 2, 5, 8):
            ratios, missed, repeated = [], 0, 0
            for seed in range(3, 3 + seeds):
                picked = random.Random(seed).sample(sorted(graph), count + 10)
                sinks, sources = picked[:count], picked[count:]
                workload = make_subscriptions(sinks)
                workload += [wb.publish(sources, "TEMP IS 30", every_s=10, start_s=20, stop_s=290, stagger=True)]
                metrics = metrics_of(graph, workload, IDEAL, 300, seed)
                least = 0
                for source in sources:
                    shortest = [nx.shortest_path(graph, source, sink) for sink in sinks]
                    least += len({arc for path in shortest for arc in pairwise(path)})
                readings = metrics["expected"] / count
                ratios.append(metrics["sent_data"] / readings / (least / len(sources)))
                missed += int(metrics["expected"] - metrics["delivered"])
                repeated += int(metrics["duplicate_deliveries"])
            rows.append([name, str(count), " ".join(f"{ratio:.2f}" for ratio in ratios), str(missed), str(repeated)])
    return table(["network", "sinks", "x shortest paths, by seed", "missed", "repeated"], rows)


def bursts_table(seeds: int) -> str:
    rows = []
    radios = {"ideal": IDEAL, "congested": wb.Radio(loss="none", retries=3, **CONGESTED)}
    for name, radio in radios.items():
        for readings in (18, 36, 72, 144, 500):
            sums = Counter[str]()
            for seed in range(1, 1 + seeds):
                choose = random.Random(seed)
                workload = make_subscriptions([0, 5, 30])
                # All nodes of a round publish at 60 s; in the last round only some of them.
                for turn in range(-(-readings // 36)):
                    at = list(range(36)) if readings >= 36 * (turn + 1) else choose.sample(range(36), readings % 36)
                    workload.append(wb.publish(at, f"TEMP IS {9 + turn}", start_s=60))
                metrics = metrics_of(wb.topology.grid(6, 6), workload, radio, 120, seed)
                sums.update({key: int(metrics[key]) for key in ("sent_data", "duplicate_deliveries", "expected")})
                sums["delivered"] += int(metrics["delivered"])
            rows.append(
                [
                    name,
                    str(readings),
                    f"{sums['sent_data'] / seeds / readings:.1f}",
                    f"{sums['delivered'] / sums['expected']:.4f}",
                    f"{sums['duplicate_deliveries'] / seeds:.1f}",
                ]
            )
    return table(["channel", "readings", "frames a reading", "delivery", "repeated"], rows)


def lossy_table(seeds: int) -> str:
    rows = []
    for retries in (3, 0):
        for name, shared in (("own channel each", {}), ("collisions, csma", CONGESTED)):
            sums = Counter[str]()
            for seed in range(30):
                graph, choose = lossy_network(seed)
                picked = choose.sample(sorted(graph), 12)
                workload = make_subscriptions(picked[:3])
                workload += [wb.publish(picked[3:], "TEMP IS 30", every_s=10, start_s=20, stop_s=319, stagger=True)]
                metrics = metrics_of(graph, workload, wb.Radio(loss="links", retries=retries, **shared), 330, seed)
                sums.update({key: int(metrics[key]) for key in ("expected", "delivered", "sent_data")})
            missed = sums["expected"] - sums["delivered"]
            ratio = f"{sums['delivered'] / sums['expected']:.4f}"
            rows.append([str(retries), name, f"{missed:,}", f"{sums['expected']:,}", ratio, f"{sums['sent_data']:,}"])
    return table(["retries", "channel", "missed", "of", "delivery", "data frames"], rows)


def lossy_network(seed: int) -> tuple[nx.DiGraph, random.Random]:
    """Return a connected random network of 20 to 40 nodes, and the random generator that drew it, for further draws.

    The arcs deliver 60 to 100 % of the frames.
    """
    choose = random.Random(seed)
    count = choose.randint(20, 40)
    while True:
        graph = nx.random_geometric_graph(count, 1.6 / count**0.5, seed=choose.randrange(1 << 30))
        if nx.is_connected(graph):
            break
    arcs = nx.DiGraph(graph)
    for arc in arcs.edges:
        arcs.edges[arc]["pdr"] = choose.uniform(0.6, 1.0)
    return arcs, choose


def death_table(seeds: int) -> str:
    rows = []
    grid = wb.topology.grid(10, 10)
    for retries in (0, 3):
        missed = expected = last_us = 0
        for seed in range(seeds):
            picked = random.Random(seed).sample(sorted(grid), 13)
            workload = make_subscriptions(picked[:3])
            workload += [wb.publish(picked[3:], "TEMP IS 30", every_s=2, start_s=10, stop_s=96, stagger=True)]
            radio = wb.Radio(loss="none", retries=retries)
            sent = wb.Scenario(grid, wb.Diffusion(), workload, radio, 40, seed).run(engine="fast", progress=None)
            relays = Counter(row["node"] for row in sent.trace.to_pylist() if row["event"] == "forwarded")
            busiest = max((node for node in relays if node not in picked), key=lambda node: (relays[node], -node))
            workload.append(wb.outage(busiest, start_s=40))
            run = wb.Scenario(grid, wb.Diffusion(), workload, radio, 100, seed).run(engine="fast", progress=None)
            missed += int(run.metrics["expected"] - run.metrics["delivered"])
            expected += int(run.metrics["expected"])
            last_us = max(last_us, last_missed_us(run, picked[:3]))
        last = f"{max(0.0, last_us / 1e6 - 40):.0f}"
        rows.append([str(retries), str(missed), f"{expected:,}", last])
    return table(["retries", "missed", "of", "last miss after s"], rows)


def last_missed_us(run: Any, sinks: list[int]) -> int:
    """Return the time in µs at which the last reading was published that any sink missed, or 0 if none was missed."""
    rows = run.trace.to_pylist()
    got = {(row["node"], row["origin"], row["sequence"]) for row in rows if row["event"] == "delivered"}
    sent = [(row["time_us"], row["node"], row["sequence"]) for row in rows if row["event"] == "originated"]
    return max((time_us for time_us, *id in sent for sink in sinks if (sink, *id) not in got), default=0)


PARTS = {"sinks": sinks_table, "bursts": bursts_table, "lossy": lossy_table, "dies": death_table}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="what to measure; all of it by default")
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    for part in options.parts or PARTS:
        print(PARTS[part](options.seeds), flush=True)

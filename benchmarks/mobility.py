"""The cost of movement in the fast engine: ``benchmarks/mobility.py [--rounds 3] [--nodes 1500]``.

Networks of 1,500 nodes with about 12 neighbors are played for 120 s, once without movement and once with all nodes on
random waypoints and links computed anew each second. Ten nodes publish a reading each second. The program prints a
table for RESULTS.md.

    preparation   process time of `workbench.sim.changes.arcs.link_changes`, before the run
    run           process time of the run itself, with the links given
    ratio         preparation and run, divided by the run without movement; and the same for each reception, because
                  nodes on random waypoints meet in the middle of the area and have more neighbors

Runs with and without movement alternate. Times are medians of the rounds, without loading and compiling.
"""

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from machine import machine
from tables import table

import workbench as wb
from workbench.sim.changes import arcs
from workbench.sim.run import Run

DURATION_S = 120.0
HEADER = ["network", "protocol", "neighbors", "changes", "still s", "preparation s", "run s", "ratio", "per reception"]


def networks(nodes: int) -> dict[str, Any]:
    """Return the networks by name; their areas grow with the number of nodes."""
    scale = (nodes / 1500) ** 0.5
    return {
        "disc": wb.topology.disc(nodes, 620 * scale, 240 * scale, radius_m=20, seed=1),
        "random_geometric": wb.topology.random_geometric(nodes, 2400 * scale, 1080 * scale, seed=1),
    }


def protocols(nodes: int) -> dict[str, tuple[Any, list[Any]]]:
    """Return {name: (protocol, workload)}."""
    sources = list(range(0, nodes, nodes // 10))
    readings = [wb.publish(sources, "TEMP IS 26", every_s=1, stagger=True)]
    sinks = [wb.subscribe([0, nodes // 2], "TEMP GE 20")]
    return {"flooding": (wb.Flooding(), readings), "diffusion": (wb.Diffusion(), [*sinks, *readings])}


def measure(scenario: wb.Scenario, rounds: int) -> list[str]:
    """Measure a scenario without movement, and with all nodes moving; return the cells of its table row.

    The cells with the names of network and protocol are not included.
    """
    moving = scenario.replace(workload=[*scenario.workload, wb.move("all", wb.mobility.RandomWaypoint())])
    columns: dict[str, list[float]] = {"still": [], "preparation": [], "run": []}
    for number in range(rounds + 1):  # The first round loads the machine code, and is not counted.
        still_s, still = _time_job(lambda: scenario.run("fast", "metrics", progress=None))
        arcs._link_changes.cache_clear()
        arcs._tracks.cache_clear()
        preparation_s, changes = _time_job(lambda: arcs.link_changes(moving))
        run_s, moved = _time_job(lambda: moving.run("fast", "metrics", progress=None))
        if number:
            for name, seconds in zip(columns, (still_s, preparation_s, run_s), strict=True):
                columns[name].append(seconds)
    still_s, preparation_s, run_s = (median(seconds) for seconds in columns.values())
    neighbors = len(scenario.topology.edges) / len(scenario.topology)
    ratio = (preparation_s + run_s) / still_s
    cells = [f"{value:.2f}" for value in (still_s, preparation_s, run_s, ratio)]
    more = _count_receptions(moved) / _count_receptions(still)
    return [f"{neighbors:.1f}", f"{len(changes.rows):,}", *cells, f"{ratio / more:.2f}"]


def _time_job(job: Callable[[], Any]) -> tuple[float, Any]:
    start_s = time.process_time()
    result = job()
    return time.process_time() - start_s, result


def _count_receptions(run: Run) -> int:
    counts, _ = run._recorder.tally()
    return sum(count for (event, _, _), count in counts.items() if event == "received")


def main() -> None:
    """Measure each protocol in each network, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=1500)
    options = parser.parse_args()
    rows = []
    for network, graph in networks(options.nodes).items():
        for name, (protocol, workload) in protocols(options.nodes).items():
            scenario = wb.Scenario(graph, protocol, workload, wb.Radio(), DURATION_S)
            rows.append([network, name, *measure(scenario, options.rounds)])
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    print(machine(), table(HEADER, rows), sep="\n\n")


if __name__ == "__main__":
    main()

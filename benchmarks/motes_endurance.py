"""Do virtual motes run for long without growing? Their start-up time, then memory on both sides, minute by minute.

    python benchmarks/motes_endurance.py [--motes 50] [--minutes 10] [--every 30]

A live run of TinyDiffusion on a grid: two sinks, a reading every two seconds at each of a fifth of the nodes. Every
30 s it prints what this process and the motes' process hold, and the motes' heaps (after their garbage was collected).
In the end a line is fitted through the second half of each column: what would be gained in ten minutes, and whether
that is flat, i.e. below 5 % of where the half begins. This process keeps the run's trace, so that it grows with the
rows; its growth is told per row too.
"""

import argparse
import math
import os
import subprocess
import time
from typing import NamedTuple

import numpy as np

import workbench as wb
from workbench import motes
from workbench.motes.live.run import LiveRun

FLAT = 0.05  # growth in ten minutes, as a share


class Look(NamedTuple):
    """What was seen at a time; sizes in bytes."""

    time_s: float
    rows: int
    host_B: int
    node_B: int
    heap_min_B: int
    heap_mean_B: float
    heap_max_B: int


def main() -> None:
    arguments = read_arguments()
    scenario = make_scenario(arguments.motes, arguments.minutes * 60)
    with motes.virtual() as on:
        began_s = time.perf_counter()
        on.start(scenario)
        print(f"{arguments.motes} motes started in {time.perf_counter() - began_s:.1f} s", flush=True)
        run = scenario.run(on=on)
        print(f"the run goes on after {time.perf_counter() - began_s:.1f} s", flush=True)
        looks = watch(run, on, arguments.every)
        run.wait()
    for note in run.notes:
        print("note:", note)
    metrics = run.metrics
    print(f"\ndelivery ratio {metrics['delivery_ratio']:.3f}, {metrics['transmissions']:.0f} transmissions")
    conclude(looks)


def read_arguments() -> argparse.Namespace:
    """The command line's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--motes", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--every", type=float, default=30, metavar="S", help="seconds between two looks")
    return parser.parse_args()


def make_scenario(count: int, duration_s: float) -> wb.Scenario:
    """The first ``count`` nodes of a grid, with traffic."""
    columns = math.ceil(math.sqrt(count))
    grid = wb.topology.grid(math.ceil(count / columns), columns)
    sources = list(range(2, count, 5)) or [count - 1]
    workload = [
        wb.subscribe([0, count // 2], "TEMP GE 25"),
        wb.publish(sources, "TEMP IS 26", start_s=2, every_s=2),
    ]
    graph = grid.subgraph(range(count)).copy()
    return wb.Scenario(graph, wb.Diffusion(), workload, duration_s=duration_s)


def watch(run: LiveRun, on: motes.VirtualMotes, every_s: float) -> list[Look]:
    """Look at the run until it ends, printing a line each time."""
    print("\n time/s     rows  host/MB  motes/MB  heap min/B    mean     max", flush=True)
    looks = []
    next_s = 0.0
    while run.is_running:
        if run.now_s >= next_s:
            looks.append(look(run, on))
            show(looks[-1])
            next_s += every_s
        run.wait(0.5)
    return looks


def look(run: LiveRun, on: motes.VirtualMotes) -> Look:
    """What is held now."""
    memory = on.memory()
    heaps = [size_B for size_B in memory.allocated_B.values() if size_B is not None]
    rows = len(run.so_far().trace)
    return Look(run.now_s, rows, rss_B(), memory.rss_B, min(heaps), sum(heaps) / len(heaps), max(heaps))


def rss_B() -> int:
    """This process's resident size."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
    return int(told.stdout) * 1024


def show(seen: Look) -> None:
    """One line of the table."""
    print(
        f"{seen.time_s:7.0f} {seen.rows:8d} {seen.host_B / 2**20:8.1f} {seen.node_B / 2**20:9.1f} "
        f"{seen.heap_min_B:11d} {seen.heap_mean_B:7.0f} {seen.heap_max_B:7d}",
        flush=True,
    )


def conclude(looks: list[Look]) -> None:
    """Whether it was flat over the second half."""
    half = looks[len(looks) // 2 :]
    if len(half) < 3:
        print("too few looks to tell whether memory is flat: give it more minutes, or look more often")
        return
    times = [seen.time_s for seen in half]
    for name, column in (
        ("this process", "host_B"),
        ("the motes' process", "node_B"),
        ("a mote's heap", "heap_mean_B"),
    ):
        values = [getattr(seen, column) for seen in half]
        gain_B = float(np.polyfit(times, values, 1)[0]) * 600
        share = gain_B / values[0]
        verdict = "flat" if share < FLAT else "grows"
        print(f"{name}: {gain_B / 1024:+.0f} KiB in ten minutes ({share:+.1%}): {verdict}")
    rows = half[-1].rows - half[0].rows
    if rows:
        print(f"this process, per row of the trace: {(half[-1].host_B - half[0].host_B) / rows:.0f} B")


if __name__ == "__main__":
    main()

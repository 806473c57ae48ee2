"""A long run of virtual motes: the time of their start, and the memory of host and motes over time.

    python benchmarks/motes_endurance.py [--motes 50] [--minutes 10] [--every 30]

It is a live run of TinyDiffusion on a grid: two sinks, and a reading every two seconds at each of a fifth of the nodes.
Every 30 s it prints the memory of this process and of the motes' process, and the motes' heaps after a garbage
collection. In the end a line is fitted to the second half of each column. Its slope is printed as growth in ten
minutes. Memory is flat if this growth is below 5 % of the first value of that half. This process stores the run's
trace, so it grows with the rows; its growth per row is also printed.
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


class Sizes(NamedTuple):
    """The memory sizes in bytes at one time of the run."""

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
    with motes.virtual() as virtual:
        began_s = time.perf_counter()
        virtual.start(scenario)
        print(f"{arguments.motes} motes started in {time.perf_counter() - began_s:.1f} s", flush=True)
        run = scenario.run(on=virtual)
        print(f"the run goes on after {time.perf_counter() - began_s:.1f} s", flush=True)
        samples = watch_sizes(run, virtual, arguments.every)
        run.wait()
    for note in run.notes:
        print("note:", note)
    metrics = run.metrics
    print(f"\ndelivery ratio {metrics['delivery_ratio']:.3f}, {metrics['transmissions']:.0f} transmissions")
    print_growth(samples)


def read_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--motes", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--every", type=float, default=30, metavar="S", help="seconds between two looks")
    return parser.parse_args()


def make_scenario(count: int, duration_s: float) -> wb.Scenario:
    """Return a scenario with traffic on the first ``count`` nodes of a grid."""
    columns = math.ceil(math.sqrt(count))
    grid = wb.topology.grid(math.ceil(count / columns), columns)
    sources = list(range(2, count, 5)) or [count - 1]
    workload = [
        wb.subscribe([0, count // 2], "TEMP GE 25"),
        wb.publish(sources, "TEMP IS 26", start_s=2, every_s=2),
    ]
    graph = grid.subgraph(range(count)).copy()
    return wb.Scenario(graph, wb.Diffusion(), workload, duration_s=duration_s)


def watch_sizes(run: LiveRun, virtual: motes.VirtualMotes, every_s: float) -> list[Sizes]:
    """Measure the sizes regularly until the run ends, and print a line each time."""
    print("\n time/s     rows  host/MB  motes/MB  heap min/B    mean     max", flush=True)
    samples = []
    next_s = 0.0
    while run.is_running:
        if run.now_s >= next_s:
            samples.append(measure(run, virtual))
            print_sizes(samples[-1])
            next_s += every_s
        run.wait(0.5)
    return samples


def measure(run: LiveRun, virtual: motes.VirtualMotes) -> Sizes:
    """Measure the current sizes."""
    memory = virtual.memory()
    heaps = [size_B for size_B in memory.allocated_B.values() if size_B is not None]
    rows = len(run.so_far().trace)
    return Sizes(run.now_s, rows, rss_B(), memory.rss_B, min(heaps), sum(heaps) / len(heaps), max(heaps))


def rss_B() -> int:
    """Return this process's resident size in bytes."""
    listing = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
    return int(listing.stdout) * 1024


def print_sizes(sizes: Sizes) -> None:
    """Print one line of the table."""
    print(
        f"{sizes.time_s:7.0f} {sizes.rows:8d} {sizes.host_B / 2**20:8.1f} {sizes.node_B / 2**20:9.1f} "
        f"{sizes.heap_min_B:11d} {sizes.heap_mean_B:7.0f} {sizes.heap_max_B:7d}",
        flush=True,
    )


def print_growth(samples: list[Sizes]) -> None:
    """Print for each size whether it grew during the second half of the samples."""
    half = samples[len(samples) // 2 :]
    if len(half) < 3:
        print("too few looks to tell whether memory is flat: give it more minutes, or look more often")
        return
    times = [sizes.time_s for sizes in half]
    for name, column in (
        ("this process", "host_B"),
        ("the motes' process", "node_B"),
        ("a mote's heap", "heap_mean_B"),
    ):
        values = [getattr(sizes, column) for sizes in half]
        gain_B = float(np.polyfit(times, values, 1)[0]) * 600
        share = gain_B / values[0]
        verdict = "flat" if share < FLAT else "grows"
        print(f"{name}: {gain_B / 1024:+.0f} KiB in ten minutes ({share:+.1%}): {verdict}")
    rows = half[-1].rows - half[0].rows
    if rows:
        print(f"this process, per row of the trace: {(half[-1].host_B - half[0].host_B) / rows:.0f} B")


if __name__ == "__main__":
    main()

"""How fast the reference engine is: ``make bench``, or ``python benchmarks/run.py [--quick] [--write]``.

Receptions per second of process time for a flood, beside SimPy and wsnsimpy, and for diffusion; then where the time of
the flood goes. All contenders play the same topologies and have to come to the same number of receptions. Their times
are medians of interleaved repetitions, each from its topology to its last reception, nodes and events of its own
included. ``--write`` also writes benchmarks/RESULTS.md.
"""

import argparse
import datetime
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import diffusion_workbench
import flood_workbench
from networks import Network, networks
from profiles import by_function
from timing import interleaved

import workbench

try:
    import flood_simpy
    import flood_simpy_callbacks
    import flood_wsnsimpy
except ImportError as error:
    raise SystemExit(f"{error.name} is missing; pip install -e '.[bench]' installs it") from None

RESULTS = Path(__file__).with_name("RESULTS.md")
SIMPY = "SimPy, processes"
CALLBACKS = "SimPy, callbacks, bare"
WSNSIMPY = "wsnsimpy"
METRICS, TRACE = "workbench, metrics", "workbench, trace"


def flood_jobs(network: Network, floods: int) -> dict[str, tuple[int, Callable[[], int]]]:
    """name -> (floods, job). wsnsimpy is slow, so it plays fewer."""
    scenario = flood_workbench.scenario(network, floods)
    fewer = max(1, floods // 5)
    return {
        METRICS: (floods, lambda: flood_workbench.flood(scenario, "metrics")),
        TRACE: (floods, lambda: flood_workbench.flood(scenario, "trace")),
        SIMPY: (floods, lambda: flood_simpy.flood(network, floods)),
        CALLBACKS: (floods, lambda: flood_simpy_callbacks.flood(network, floods)),
        WSNSIMPY: (fewer, lambda: flood_wsnsimpy.flood(network, fewer)),
    }


def measure_flood(network: Network, floods: int, repetitions: int) -> list[list[str]]:
    """A row for each contender: receptions per second, and how many times SimPy's with processes that is."""
    jobs = flood_jobs(network, floods)
    times = interleaved({name: job for name, (_, job) in jobs.items()}, repetitions)
    rates = {}
    for name, (receptions, seconds) in times.items():
        assert receptions == network.arcs * jobs[name][0], f"{name}: {receptions} receptions"
        rates[name] = receptions / seconds
    return [
        [network.name, name, f"{jobs[name][0]}", f"{times[name][0]:,}", f"{rate:,.0f}", f"{rate / rates[SIMPY]:.2f}"]
        for name, rate in rates.items()
    ]


def measure_diffusion(network: Network, repetitions: int) -> list[list[str]]:
    """A row for each way to record: receptions per second, and how many times faster than the network's own time."""
    scenario = diffusion_workbench.scenario(network)
    runs = {record: (lambda record=record: flood_workbench.flood(scenario, record)) for record in ("metrics", "trace")}
    duration_s = diffusion_workbench.DURATION_S
    return [
        [network.name, f"workbench, {record}", f"{receptions:,}", f"{receptions / s:,.0f}", f"{duration_s / s:,.0f}"]
        for record, (receptions, s) in interleaved(runs, repetitions).items()
    ]


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table whose columns line up in a terminal too; numbers are on the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    names = sum(not row.replace(",", "").replace(".", "").isdigit() for row in rows[0])

    def line(cells: list[str]) -> str:
        padded = [
            cell.ljust(width) if i < names else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join("-" * (width + 2) if i < names else "-" * (width + 1) + ":" for i, width in enumerate(widths))
    return "\n".join([line(header), f"|{rule}|", *map(line, rows)])


def shares(title: str, entries: list[tuple[str, float]]) -> str:
    """A profile as a table."""
    return table([title, "% of the time"], [[name, f"{100 * share:.1f}"] for name, share in entries])


def machine() -> str:
    """What it ran on."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("simpy", "wsnsimpy", "numpy", "pyarrow"))
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()}; {platform.python_implementation()} "
        f"{platform.python_version()}; workbench {workbench.__version__}, {libraries}; {datetime.date.today()}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def report(quick: bool) -> str:
    """Measure everything; prints each part when it is there and returns all of it."""
    repetitions = 3 if quick else 5
    parts = []

    def tell(text: str) -> None:
        parts.append(text)
        print(text, flush=True)

    tell(f"# Benchmarks\n\n{machine()}.\nMedians of {repetitions} interleaved repetitions, process time.\n")
    tell("## Flood\n")
    header = ["network", "engine", "floods", "receptions", "receptions/s", "x SimPy"]
    rows = [r for n in networks() for r in measure_flood(n, max(1, n.floods // (5 if quick else 1)), repetitions)]
    tell(table(header, rows) + "\n\n" + NOTES)
    tell("## Diffusion: 1 sink, 10 sources, 100 s\n")
    rows = [row for network in networks() for row in measure_diffusion(network, 1 if quick else 3)]
    tell(table(["network", "engine", "receptions", "receptions/s", "x real time"], rows) + "\n")
    for network in networks()[:2]:
        scenario = flood_workbench.scenario(network, network.floods)
        modules, functions = by_function(lambda scenario=scenario: flood_workbench.flood(scenario, "metrics"))
        tell(f"## Where the time of the flood goes: {network.name}, metrics alone\n")
        tell("cProfile's own time, which makes calls look dearer than they are.\n")
        tell(shares("module", modules) + "\n\n" + shares("function", functions) + "\n")
    return "\n".join(parts)


NOTES = f"""\
"{SIMPY}" is the yardstick: a process and a Store per node, some three events per reception. {WSNSIMPY} starts two
SimPy processes per reception. "{CALLBACKS}" has the workbench's granularity, an event per transmission, and
nothing else: no frames, radio, protocol node or record; it says what those cost. The workbench encodes and checks every
frame and counts bytes, energy and drops; with a trace it also keeps a row for everything that happened, and computes
the metrics from it.
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure the reference engine beside SimPy and wsnsimpy.")
    parser.add_argument("--quick", action="store_true", help="fewer floods and repetitions: half a minute")
    parser.add_argument("--write", action="store_true", help=f"also write {RESULTS.name}")
    options = parser.parse_args()
    text = report(options.quick)
    if options.write:
        RESULTS.write_text(text.rstrip() + "\n")
        print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()

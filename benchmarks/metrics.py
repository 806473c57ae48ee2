"""The costs of evaluating a finished run: ``benchmarks/metrics.py [--quick] [protocol ...]``.

The program measures `run.metrics` of runs with and without a trace, for each protocol and size of a network. It also
measures the rate at which a run converts its rows into an Arrow table. Numbers are medians of process times, each of a
new run, so that nothing is cached; an untimed first run loads the machine code. The table of a run is made before its
metrics are timed. Then a run on 400 nodes is explained: an account of each expected reading states why it was or was
not delivered (`why_not_oracle.py` checks the accounts). The program prints the time that all accounts take, and its
ratio to the time of the run itself.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from statistics import median

from machine import machine
from tables import table

import workbench as wb
from workbench.analysis.accounts import accounts

SIZES, QUICK_SIZES = (64, 400, 1_500, 10_000), (64, 400)
RUNS = 3
ACCOUNTS_HEADER = ["protocol", "expected", "undelivered", "run, s", "accounts, s", "ratio"]
HEADER = ["protocol", "nodes", "rows", "million rows/s", "metrics, ms", "rows kept without a trace", "metrics, ms"]


def _workload(graph, every_s: float, begins_s: float = 0.0, stop_s: float | None = None) -> list:
    """Return a workload with three sinks and a dozen sources, each of which publishes every ``every_s`` seconds."""
    nodes = sorted(graph)
    sinks = [nodes[0], nodes[len(nodes) // 2], nodes[-2]]
    sources = nodes[5 :: max(1, len(nodes) // 12)][:12]
    return [
        wb.subscribe(sinks, "TEMP GE 20", start_s=begins_s),
        wb.publish(sources, "TEMP IS 26", every_s=every_s, stagger=True, stop_s=stop_s),
    ]


def _tinymq(graph) -> wb.Scenario:
    nodes = sorted(graph)
    protocol = wb.TinyMQ(roots=(nodes[0], nodes[-2]))
    return wb.Scenario(graph, protocol, _workload(graph, 1, begins_s=20), duration_s=60)


SCENARIOS: dict[str, Callable] = {
    "flooding": lambda graph: wb.Scenario(graph, wb.Flooding(), _workload(graph, 5), duration_s=10),
    "gossip": lambda graph: wb.Scenario(graph, wb.Gossip(), _workload(graph, 5), duration_s=10),
    "diffusion": lambda graph: wb.Scenario(graph, wb.Diffusion(), _workload(graph, 1), duration_s=60),
    "coded diffusion": lambda graph: wb.Scenario(
        graph, wb.CodedDiffusion(generation_size=4, bootstrap_factor=4), _workload(graph, 2, stop_s=5), duration_s=10
    ),
    "TinyMQ": _tinymq,
    "DPS": lambda graph: wb.Scenario(graph, wb.DPS(), _workload(graph, 5), duration_s=30),
}


def make_network(nodes: int):
    """Return a random disc graph of ``nodes`` nodes with the density of 1,500 nodes on 500 m x 200 m."""
    scale = (nodes / 1_500) ** 0.5
    return wb.topology.disc(nodes, 500 * scale, 200 * scale, radius_m=20, seed=1)


def measure_metrics(scenario: wb.Scenario, record: str) -> tuple[int, float, float]:
    """Return (rows of the trace, rows per second converted to a table, seconds of `run.metrics`) for a scenario.

    ``record`` is what the run records: "trace" or "metrics".
    """
    scenario.run("fast", record)
    tables, metrics = [], []
    for _ in range(RUNS):
        run = scenario.run("fast", record)
        began_s = time.process_time()
        rows = len(run._rows)
        tabled_s = time.process_time()
        assert len(run.metrics)
        tables.append(tabled_s - began_s)
        metrics.append(time.process_time() - tabled_s)
    return rows, rows / max(median(tables), 1e-9), median(metrics)


def report(quick: bool, protocols: tuple[str, ...] = tuple(SCENARIOS)) -> Iterator[str]:
    """Yield the report on metrics in pieces of Markdown, each as soon as it is measured; ``quick``: fewer networks."""
    yield NOTES
    graphs = [make_network(nodes) for nodes in (QUICK_SIZES if quick else SIZES)]
    rows = []
    for name in protocols:
        for graph in graphs:
            scenario = SCENARIOS[name](graph)
            number, rate, seconds = measure_metrics(scenario, "trace")
            stored, _, seconds_without = measure_metrics(scenario, "metrics")
            cells = (
                f"{number:,}",
                f"{rate / 1e6:.1f}",
                f"{1e3 * seconds:.1f}",
                f"{stored:,}",
                f"{1e3 * seconds_without:.1f}",
            )
            rows.append([name, f"{len(graph):,}", *cells])
    yield table(HEADER, rows) + "\n"
    yield "The accounts of all expected readings, 400 nodes in a grid whose links lose a fifth of the frames.\n"
    yield table(ACCOUNTS_HEADER, [measure_accounts(name) for name in protocols]) + "\n"


def measure_accounts(name: str) -> list[str]:
    """Return the table row of a protocol: the time to explain each reading's fate, compared with the run itself."""
    graph = wb.topology.grid(20, 20)
    ideal = SCENARIOS[name](graph)
    radio = wb.Radio(loss=0.2)
    scenario = wb.Scenario(graph, ideal.protocol, ideal.workload, radio, duration_s=ideal.duration_s)
    began_s = time.process_time()
    run = scenario.run("reference")
    played_s = time.process_time() - began_s
    seconds = []
    for _ in range(RUNS):
        began_s = time.process_time()
        explained = accounts(run)
        seconds.append(time.process_time() - began_s)
    missing = sum(account.delivered_us is None for account in explained)
    shown = f"{played_s:.2f}", f"{median(seconds):.2f}", f"{median(seconds) / played_s:.2f}"
    return [name, f"{len(explained):,}", f"{missing:,}", *shown]


NOTES = "Three sinks ask for what a dozen sources publish; a disc graph with about 18 neighbors a node.\n"


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Measure what metrics and Arrow tables of runs cost.")
    parser.add_argument("--quick", action="store_true", help="small networks only")
    parser.add_argument("protocols", nargs="*", metavar="protocol", help=", ".join(SCENARIOS))
    arguments = parser.parse_args()
    for name in arguments.protocols:
        if name not in SCENARIOS:
            parser.error(f"unknown protocol {name!r}; the protocols are {', '.join(SCENARIOS)}")
    print(f"## Metrics and Arrow tables of runs\n\n{machine()}\n")
    for piece in report(arguments.quick, tuple(arguments.protocols) or tuple(SCENARIOS)):
        print(piece, flush=True)


if __name__ == "__main__":
    main()

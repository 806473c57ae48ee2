"""Measurements of directed diffusion: by engine, and compared with ns-2's one-phase pull."""

from functools import partial

import diffusion_ns2
import diffusion_workbench
from flood_workbench import receptions, refusal
from networks import Network
from tables import ratio, table
from timing import interleaved

from workbench import Scenario

ENGINES = ("fast", "reference")
HEADER = ["network", "sinks", "sources", "engine", "runs", "receptions", "receptions/s", "x real time", "ours / it"]
NS2_HEADER = ["contender", "runs", "receptions", "delivered", "ms", "ours / it"]


def _find_engines(scenario: Scenario) -> tuple[tuple[str, ...], list[str]]:
    """Return (engines that play a scenario, a line with the reason for each engine that does not).

    This also loads the fast engine's compiled code.
    """
    reason = refusal(scenario)
    return (ENGINES[1:], [f"workbench, fast is skipped: {reason}"]) if reason else (ENGINES, [])


def measure_engines(network: Network, sinks: int, sources: int, repetitions: int) -> tuple[list[list[str]], list[str]]:
    """Measure diffusion on each engine; return (table rows of the engines, a line for each engine that is skipped)."""
    scenario = diffusion_workbench.scenario(network, sinks, sources)
    engines, skipped = _find_engines(scenario)
    jobs = {engine: partial(receptions, scenario, engine=engine) for engine in engines}
    results = interleaved(jobs, repetitions)
    ours_s = next(iter(results.values())).seconds
    rows = []
    for engine, result in results.items():
        speeds = [result.receptions / result.seconds, diffusion_workbench.DURATION_S / result.seconds]
        figures = [f"{number:,.0f}" for number in (result.runs, result.receptions, *speeds)]
        rows.append([network.name, f"{sinks}", f"{sources}", engine, *figures, ratio(result.seconds / ours_s)])
    return rows, skipped


def measure_ns2(network: Network, repetitions: int) -> tuple[list[list[str]], list[str]]:
    """Measure diffusion on each engine and in ns-2; return (table rows, a line for each engine that is skipped).

    ns-2 has two rows, with and without the time for making its nodes. The first node is the sink, the last node the
    source. The radios have carrier sense and collisions.
    """
    pair = 0, len(network.neighbors) - 1
    scenario = diffusion_workbench.one_pair(network, *pair)
    engines, skipped = _find_engines(scenario)
    jobs = {f"workbench, {engine}": partial(receptions, scenario, engine=engine) for engine in engines}
    delivered = int(scenario.run(engine="reference", record="metrics").metrics["delivered"])
    deliveries = dict.fromkeys(jobs, delivered)
    if reason := diffusion_ns2.absent():
        skipped.append(f"ns-2 is skipped: {reason}")
    else:
        for name, with_nodes in (("ns-2, events alone", False), ("ns-2, with making the nodes", True)):
            jobs[name] = partial(diffusion_ns2.diffuse, network, *pair, with_nodes)
            deliveries[name] = diffusion_ns2.count_events(network, *pair).delivered
    results = interleaved(jobs, repetitions)
    ours_s = next(iter(results.values())).seconds
    rows = []
    for name, result in results.items():
        figures = [f"{result.runs}", f"{result.receptions:,}", f"{deliveries[name]}", f"{1000 * result.seconds:,.1f}"]
        rows.append([name, *figures, ratio(result.seconds / ours_s)])
    return rows, skipped


def engines_table(rows: list[list[str]]) -> str:
    """Format the rows of `measure_engines` as a table."""
    return table(HEADER, rows)


def ns2_table(rows: list[list[str]]) -> str:
    """Format the rows of `measure_ns2` as a table."""
    return table(NS2_HEADER, rows)

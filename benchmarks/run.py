"""The speed of the workbench and of others: ``make bench``, or ``benchmarks/run.py [--quick] [--write] [part ...]``.

Parts
    flood      a flood on an ideal channel, compared with plain C, ns-3, SimPy and wsnsimpy
    million    a flood of a million nodes
    csma       the flood with CSMA/CA and collisions, compared with ns-3's lr-wpan
    diffusion  TinyDiffusion, by engine
    ns2        TinyDiffusion compared with ns-2's one-phase pull
    coding     network coding compared with galois, plain C and ISA-L
    dps        DPS's topics, filters and messages, and the wall time of its round trip over loopback
    metrics    the costs of metrics and Arrow tables of runs, by protocol and size of the network
    profile    the distribution of the time of the reference engine's flood

All floods play the same topologies. Times are process times, medians of interleaved runs. Each includes everything
from the topology to the last reception, also the creation of nodes and events. A peer that is not installed is skipped
with a line. ``--write`` also writes benchmarks/RESULTS.md; it cannot be combined with names of parts.
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

import coding
import dps_codec
import dps_udp
import flood_million
import flood_workbench
import metrics
from machine import machine
from measure_diffusion import engines_table, measure_engines, measure_ns2, ns2_table
from measure_flood import HEADER, csma_contenders, granularity_table, ideal_contenders, measure
from networks import Network, networks, small_disc
from profiles import profile_job
from tables import table

RESULTS = Path(__file__).with_name("RESULTS.md")
PARTS = ("flood", "million", "csma", "diffusion", "ns2", "coding", "dps", "metrics", "profile")
RUNS, QUICK_RUNS = 5, 3


def report(parts: Iterable[str], quick: bool) -> Iterator[str]:
    """Measure these parts; yield the report in pieces of Markdown, each as soon as it is measured.

    ``quick``: make fewer and smaller measurements.
    """
    runs = QUICK_RUNS if quick else RUNS
    yield f"# Benchmarks\n\n{machine()}\n\n{NOTES.format(runs=runs)}"
    if "flood" in parts:
        yield "## Flood, ideal channel\n"
        yield from _report_floods(networks(), *ideal_contenders(), runs, quick, all_hear=True)
        yield FLOOD_NOTES
    if "million" in parts:
        yield "## Flood of 1,000,000 nodes, ideal channel, compiled, metrics alone\n"
        yield from flood_million.report()
    if "csma" in parts:
        yield "## Flood, CSMA/CA and collisions\n"
        yield from _report_floods(networks()[:3], *csma_contenders(), runs, quick, all_hear=False)
        yield CSMA_NOTES
    if "diffusion" in parts:
        yield "## TinyDiffusion, 100 s, ideal channel, a reading every 5 s\n"
        yield from _report_diffusions(runs, quick)
    if "ns2" in parts:
        yield "## Directed diffusion beside ns-2: 250 nodes, 1 sink, 1 source, 100 s, a reading every 5 s\n"
        rows, skipped = measure_ns2(small_disc(), runs)
        yield _join_skipped(skipped) + ns2_table(rows) + "\n"
        yield NS2_NOTES
    if "coding" in parts:
        yield "## Network coding in GF(2^8)\n"
        yield from coding.report(quick)
    if "dps" in parts:
        yield "## DPS's topics, filters and messages\n"
        yield from dps_codec.report(quick)
        yield "## DPS over loopback, two processes\n"
        yield from dps_udp.report(quick)
    if "metrics" in parts:
        yield "## Metrics and Arrow tables of runs\n"
        yield from metrics.report(quick)
    if "profile" in parts:
        for network in networks()[:2]:
            yield _report_profile(network)


def _report_floods(
    measured: Iterable[Network], contenders, skipped, runs: int, quick: bool, all_hear: bool
) -> Iterator[str]:
    yield granularity_table(contenders) + "\n"
    if skipped:
        yield _join_skipped(skipped).removesuffix("\n")
    for network in measured:
        degree = network.arcs / len(network.neighbors)
        yield f"### {network.name}: {len(network.neighbors):,} nodes with {degree:.1f} neighbors, {network.hops} hops\n"
        yield table(HEADER, measure(network, contenders, runs, quick, all_hear)) + "\n"


def _report_diffusions(runs: int, quick: bool) -> Iterator[str]:
    grid, disc, large, _ = networks()
    scenarios = [(grid, 1, 10), (disc, 1, 10), (large, 1, 10)] + ([] if quick else [(disc, 10, 100)])
    rows, lines = [], []
    for network, sinks, sources in scenarios:
        engine_rows, skipped = measure_engines(network, sinks, sources, runs)
        rows += engine_rows
        lines += [line for line in skipped if line not in lines]
    yield _join_skipped(lines) + engines_table(rows) + "\n"


def _join_skipped(skipped: list[str]) -> str:
    return "".join(f"{line}.\n" for line in skipped) + ("\n" if skipped else "")


def _report_profile(network: Network) -> str:
    scenario = flood_workbench.scenario(network, flood_workbench.REFERENCE.floods(network))
    modules, functions = profile_job(lambda: flood_workbench.receptions(scenario))
    return (
        f"## Where the time of the reference engine's flood goes: {network.name}, metrics alone\n\n"
        "cProfile's own time, which makes calls look dearer than they are.\n\n"
        f"{_table_of_shares('module', modules)}\n\n{_table_of_shares('function', functions)}\n"
    )


def _table_of_shares(title: str, entries: list[tuple[str, float]]) -> str:
    return table([title, "% of the time"], [[name, f"{100 * share:.1f}"] for name, share in entries])


NOTES = """\
Medians of {runs} interleaved runs, process time; fewer runs of what has taken 20 s. "ours / it" is how many times as
fast as that contender the first row is, which is ours. A rate is per reception, so a slow contender plays fewer floods.
The workbench's times are those of `Scenario.run`: the scenario is made beforehand, and what is compiled is loaded.
"""

FLOOD_NOTES = """\
"heard" is receptions / (floods x arcs); all must come to 100%. The workbench encodes and checks every frame and counts
bytes, energy and drops; with a trace it also keeps a row for everything that happened. No other contender has frames
that mean something, energy or metrics.
"""

CSMA_NOTES = """\
The same positions, range, frame size, jitter, back-off and number of channel checks. ns-3 weighs two frames at once by
signal to noise, and often hears one of them where the workbench loses both, so its floods have more receptions.
"""

NS2_NOTES = """\
The same positions and neighbors; interests every 30 s. The workbench: TinyDiffusion over 802.15.4 with CSMA/CA,
collisions and 3 retries. ns-2: diffusion3's one-phase pull over 802.11 with RTS/CTS and ARP. ns-2 spends most of its
time in Tcl, making nodes; the workbench's time has both in it.
"""


def main() -> None:
    """Print the report, and also write it with ``--write``."""
    parser = argparse.ArgumentParser(description="Measure the workbench's engines beside other simulators.")
    parser.add_argument("parts", nargs="*", metavar="part", help=f"which of {', '.join(PARTS)}; all without any")
    parser.add_argument("--quick", action="store_true", help="a fifth of the floods and fewer runs")
    parser.add_argument("--write", action="store_true", help=f"also write {RESULTS.name}")
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    if options.write and options.parts:
        parser.error(f"--write takes no parts: {RESULTS.name} needs all parts of one run")
    pieces = []
    for piece in report(options.parts or PARTS, options.quick):
        print(piece, flush=True)
        pieces.append(piece)
    if options.write:
        RESULTS.write_text("\n".join(pieces).rstrip() + "\n")
        print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()

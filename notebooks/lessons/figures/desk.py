"""Runs on the boards of a desk: on those of a bench file, else on virtual motes, else in the simulator.

motes_on_the_desk(path, nodes, speed)    the motes for a scenario's nodes, and a sentence on what they are
play(scenario, motes)                    run a scenario to its end
play_without(scenario, motes, node, ...) the same; in the meantime the node loses its power
side_by_side(runs)                       the metrics of several runs, and the readings that each node relayed
story(run)                               what happened to the motes, by the events of the trace
longest_gap_s(run, source)               the longest time between two readings of a source at the sink
signal_strengths(run)                    the RSSI in dBm that boards measured, by link
HEAPS_B, ESP32_B                         heaps that programs need, and that a board has
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import workbench as wb
from workbench.errors import LinkError
from workbench.motes import SIMULATED, Boards, Motes, VirtualMotes
from workbench.motes.live.run import LiveRun
from workbench.sim import runner
from workbench.sim.rows import Columns
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

# Bytes of MicroPython's heap: docs/boards/memory.md, driver esp32-espnow.
HEAPS_B = {
    "Flooding": 67_424,
    "Gossip": 68_256,
    "Diffusion": 95_968,
    "CodedDiffusion": 97_824,
    "TinyMQ": 119_392,
}
ESP32_B = 111_936

_SHOWN_METRICS = ("delivery_ratio", "latency_ms_p50", "transmissions")
_OF_MOTES = ("link_lost", "failed", "link_found", "recovered", "radio_fault")


def motes_on_the_desk(path: str | Path, nodes: Collection[int], speed: float = 1.0) -> tuple[Motes | None, str]:
    """Return (motes, a sentence): the boards of the bench file at ``path``, or virtual motes, or None for neither.

    Nodes without a board in the bench file are simulated. ``speed`` is the factor by which virtual motes are faster
    than real time. Raises LinkError if a board is not connected, or if the file lacks all of the nodes.
    """
    from workbench.motes.bench.bench_file import read_bench
    from workbench.motes.bench.ports import find_ports

    if Path(path).is_file():
        named = [entry["node"] for entry in read_bench(path).boards if entry["node"] in nodes]
        if not named:
            raise LinkError(
                f"{path} has no board for any of the nodes {', '.join(map(str, nodes))}; name boards as these nodes by "
                "`workbench motes name`"
            )
        if len(named) == len(nodes):
            return wb.motes.boards(path), f"{len(named)} boards of {path}, in real time"
        urls = dict.fromkeys(sorted(nodes), SIMULATED) | find_ports(Path(path), named)
        return wb.motes.boards(urls), f"{len(named)} boards of {path}; the other nodes are simulated"
    if reason := wb.motes.missing("micropython"):
        return None, f"no {path}, and no virtual motes ({reason}): everything is simulated"
    return wb.motes.virtual(speed), f"no {path}: virtual motes, {speed:g} times as fast as real time"


def play(scenario: Scenario, motes: Motes | None) -> Run:
    """Run a scenario on motes to its end; None simulates it."""
    if motes is None:
        return runner.play(scenario)
    run: LiveRun = motes.play(scenario)
    run.wait()
    return run


def play_without(scenario: Scenario, motes: Motes | None, node: int, off_s: float, on_s: float) -> Run:
    """Run a scenario on motes; from ``off_s`` to ``on_s`` (in s) a node has no power, and then begins with no memory.

    For a board, print when to pull its plug and when to connect it. A simulated node crashes.
    """
    if motes is None or _is_simulated(motes, node):
        crash = wb.crash(node, off_s, on_s)
        return play(scenario.replace(workload=[*scenario.workload, crash]), motes)
    run: LiveRun = motes.play(scenario)
    for time_s, is_off in ((off_s, True), (on_s, False)):
        run.wait(max(0.0, (time_s - run.now_s) / motes.speed))
        if isinstance(motes, VirtualMotes):
            (motes.kill if is_off else motes.restart)(node)
        else:
            print(f"{run.now_s:.0f} s: {'pull the plug of' if is_off else 'connect'} board {node} now", flush=True)
    run.wait()
    return run


def _is_simulated(motes: Motes, node: int) -> bool:
    urls = motes.urls if isinstance(motes, Boards) else {}
    return isinstance(urls, dict) and urls.get(node) == SIMULATED


def side_by_side(runs: Mapping[str, Run]) -> pd.DataFrame:
    """Return a table with a column for each run: metrics, and the number of readings that each node relayed."""
    import pandas as pd

    table = {}
    for name, run in runs.items():
        events = run.trace.to_pandas()
        relaying = events[(events["event"] == "forwarded") & (events["message"] != "interest")]["node"]
        relayed = {f"relayed by {node}": int((relaying == node).sum()) for node in run.scenario.topology}
        table[name] = {metric: round(float(run.metrics[metric]), 2) for metric in _SHOWN_METRICS} | relayed
    return pd.DataFrame(table)


def story(run: Run) -> pd.DataFrame:
    """Return a row for each event of the motes: times in s, nodes, events and details."""
    events = run.trace.to_pandas()
    events = events[events["event"].isin(_OF_MOTES)]
    return events.assign(time_s=(events["time_us"] / 1e6).round(1))[["time_s", "node", "event", "detail"]]


def longest_gap_s(run: Run, source: int) -> float:
    """Return the longest time in s between two successive deliveries of readings of ``source``, NaN below two."""
    columns = Columns(run.trace)
    times_us = columns["time_us"][columns.where(event="delivered")]
    origins = columns["origin"][columns.where(event="delivered")]
    delivered_us = np.sort(times_us[origins == source])
    return float(np.diff(delivered_us).max()) / 1e6 if len(delivered_us) > 1 else float("nan")


def signal_strengths(run: Run) -> pd.DataFrame | str:
    """Return the mean RSSI in dBm by receiving node (row) and transmitting node, or a sentence without measurements."""
    events = run.trace.to_pandas()
    measured = events[(events["event"] == "received") & (events["value"] < 0)]
    if measured.empty:
        return "These motes measured no signal strength: only ESP-NOW does, on ESP32 boards."
    return measured.pivot_table(index="node", columns="peer", values="value", aggfunc="mean").round(0)

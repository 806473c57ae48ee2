"""A run on motes beside the simulator's runs of the same scenario: metrics, links and their differences.

A run on motes is a single draw of chance, and so is a run of the simulator. So the simulator plays the scenario with
several seeds, and a metric of the motes is compared with the range of these runs.
"""

from __future__ import annotations

import math
from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Any

from workbench.errors import ParameterError
from workbench.keywords import checked
from workbench.motes.measuring import share_bounds
from workbench.protocols.contract import NOBODY
from workbench.sim.metrics.shown import shown_as
from workbench.sim.runner import play
from workbench.topology import from_links
from workbench.topology.graphs import whole

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

METRICS = (
    *("delivery_ratio", "expected", "delivered", "duplicate_deliveries", "wrong_deliveries"),
    *("latency_ms_p50", "latency_ms_p95", "latency_all_ms_p95"),
    *("transmissions", "receptions", "bytes_sent"),
)
LINK_COLUMNS = (
    *("transmitter", "receiver", "pdr", "motes_sent", "motes_received", "motes", "motes_low", "motes_high"),
    *("simulator", "difference", "differs"),
)
_MOST_SEEDS = 1000
_METRICS_TITLE = "Metrics: the run on motes beside {runs} runs of the simulator"
_LINKS_TITLE = "Links: the share of frames that arrived, on motes and in the simulator"


class BesideSimulator:
    """A comparison of a run on motes with simulated runs of the same scenario, made by `compare_with_simulator`.

    It has two tables: ``metrics``, a row for each metric, and ``links``, a row for each link.
    """

    def __init__(self, metrics: pd.DataFrame, links: pd.DataFrame, runs: int) -> None:
        self.metrics, self.links, self.runs = metrics, links, runs

    def __repr__(self) -> str:
        title = _METRICS_TITLE.format(runs=self.runs)
        return f"{title}\n{self.metrics.to_string()}\n\n{_LINKS_TITLE}\n{self.links.to_string(index=False)}"

    def _repr_html_(self) -> str:
        title = escape(_METRICS_TITLE.format(runs=self.runs))
        tables = self.metrics.to_html(), self.links.to_html(index=False)
        return f"<p>{title}</p>{tables[0]}<p>{escape(_LINKS_TITLE)}</p>{tables[1]}"


@checked
def compare_with_simulator(run: Any, links: object = None, seeds: int = 10) -> BesideSimulator:
    """Compare a run on motes with the simulator's runs of the same scenario; return two tables, metrics and links.

    run      a run on motes (``scenario.run(on=...)``). The function waits for its end. A run that was stopped early is
             compared with runs of the same duration
    links    the measured links on which the simulator runs, as `wb.topology.from_links` accepts them: the table of
             `Motes.measure`, or a CSV file. None: the topology of the scenario
    seeds    number of runs of the simulator, 1 to 1000

    ``metrics`` has a row for each metric: motes, simulator (mean of its runs), simulator_min, simulator_max, difference
    (motes minus simulator), in_range (whether the motes' value is within the simulator's range), unit.

    ``links`` has a row for each link of the network, with the columns

    transmitter, receiver       nodes
    pdr                         delivery ratio of the network's link
    motes_sent, motes_received  numbers of frames in the run on motes: broadcasts, and frames to this receiver
    motes                       motes_received / motes_sent
    motes_low, motes_high       its 95 % interval, as in `Motes.measure`
    simulator                   the same quotient over all runs of the simulator
    difference                  motes minus simulator
    differs                     whether the simulator's quotient is outside of the interval

    By chance alone about one link in 20 differs, and more after a short measurement, as the measured ratio has an error
    of its own. The simulator counts each repetition of a frame that was not acknowledged. A board does not report
    repetitions by its radio's hardware.

    Raises ParameterError if the run was not on motes, or the table of links lacks a node of the scenario.
    """
    import pandas as pd

    seeds = whole("seeds", seeds, 1, _MOST_SEEDS)
    if not getattr(run, "engine", "").startswith("motes"):
        raise ParameterError(f"`run` is {run!r:.80}; it must be a run on motes: scenario.run(on=wb.motes.boards(...))")
    scenario = run.scenario
    motes_metrics = run.metrics  # waits for the end
    if links is not None:
        scenario = scenario.replace(topology=_build_measured_network(scenario, links))
    ended_s = getattr(run, "now_s", scenario.duration_s)
    scenario = scenario.replace(duration_s=min(scenario.duration_s, max(ended_s, 1e-3)))
    metric_rows, simulated_frames = [], _Frames()
    for number in range(seeds):
        simulated_run = play(scenario.replace(seed=scenario.seed + number))
        metric_rows.append(simulated_run.metrics)
        simulated_frames.count(simulated_run.trace)
    simulated = pd.DataFrame(metric_rows)
    rows = [
        _compare_metric(motes_metrics[name], simulated[name], shown_as(name, scenario.protocol).unit)
        for name in METRICS
    ]
    columns = ["motes", "simulator", "simulator_min", "simulator_max", "difference", "in_range", "unit"]
    metrics = pd.DataFrame(rows, columns=columns, index=pd.Index(METRICS, name="metric"))
    frames = _Frames()
    frames.count(run.trace)
    links_table = pd.DataFrame(_compare_links(scenario.topology, frames, simulated_frames), columns=LINK_COLUMNS)
    return BesideSimulator(metrics, links_table, seeds)


def _build_measured_network(scenario: Any, links: object) -> Any:
    network = from_links(links)
    missing_nodes = sorted(set(scenario.topology) - set(network))
    if missing_nodes:
        raise ParameterError(
            f"the table of links lacks node {missing_nodes[0]} of the scenario; measure the links of all its nodes"
        )
    return network.subgraph(sorted(scenario.topology)).copy()


def _compare_metric(value: float, simulated: pd.Series, unit: str) -> tuple[Any, ...]:
    mean, low, high = simulated.mean(), simulated.min(), simulated.max()
    difference = 0.0 if value == mean else value - mean  # both latencies may be infinite
    is_absent = math.isnan(value) and math.isnan(mean)  # a latency, if nothing was delivered
    # Shares are displayed in percent elsewhere; here all columns have the metric's own number.
    return value, mean, low, high, difference, is_absent or low <= value <= high, "share" if unit == "%" else unit


class _Frames:
    """The numbers of frames on each link: ``sent`` and ``received`` are {(transmitter, receiver): number}.

    In ``sent``, broadcasts have the receiver -1.
    """

    def __init__(self) -> None:
        self.sent: Counter[tuple[int, int]] = Counter()
        self.received: Counter[tuple[int, int]] = Counter()

    def count(self, trace: pa.Table) -> None:
        """Add the frames of a trace."""
        counts = trace.select(["event", "node", "peer"]).to_pandas().value_counts(["event", "node", "peer"])
        for (event, node, peer), count in counts.items():
            if event == "sent":
                self.sent[node, peer] += count
            elif event == "received":
                self.received[peer, node] += count

    def on_link(self, transmitter: int, receiver: int) -> tuple[int, int]:
        """Return (number of frames sent on a link, number of frames that arrived on it).

        A broadcast counts as sent on each link of its sender.
        """
        link = transmitter, receiver
        return self.sent[link] + self.sent[transmitter, NOBODY], self.received[link]


def _compare_links(topology: Any, frames: _Frames, simulated_frames: _Frames) -> list[tuple[Any, ...]]:
    """Return the rows of the table of links, one for each arc of ``topology``.

    ``frames`` are those of the run on motes, ``simulated_frames`` those of all runs of the simulator.
    """
    rows = []
    for transmitter, receiver, pdr in topology.edges(data="pdr"):
        sent, received = frames.on_link(transmitter, receiver)
        low, high = share_bounds(min(received, sent), sent) if sent else (math.nan, math.nan)
        ratio = _divide(received, sent)
        simulated_sent, simulated_received = simulated_frames.on_link(transmitter, receiver)
        simulated_ratio = _divide(simulated_received, simulated_sent)
        differs = simulated_ratio < low or simulated_ratio > high
        measured = transmitter, receiver, pdr, sent, received, ratio, low, high
        rows.append((*measured, simulated_ratio, ratio - simulated_ratio, differs))
    return rows


def _divide(part: int, total: int) -> float:
    return part / total if total else math.nan

"""Links measured by motes: each mote sends probes, and a table lists the share that arrived on each link.

Theory of operation
    The measurement is a live run without a workload, whose nodes send probes (probes.py). A link's sample is a probe
    that was sent while both of its motes worked. A mote is known to work from the first probe that it received,
    or that a neighbor received from it, until its last own probe. Earlier, its radio may still connect to an access
    point; later, its line may be broken. The first probe is not a sample, because it was selected for its arrival. Each
    start of a mote has its own interval, so the time without power or host between two starts is left out.

    Every probe has a number, and reports of received probes contain a history, so the loss of a few reports between a
    mote and its host changes nothing. A probe that the transmitter's radio has given up, as the channel was busy or its
    memory was full, counts as lost.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from workbench.errors import LinkError, ParameterError
from workbench.motes.probes import HEADER_B, HISTORY, MOST_NEIGHBORS, ProbeNode
from workbench.protocols.contract import NUMBERS_PER_BOOT
from workbench.protocols.protocol import Parameter, Protocol
from workbench.topology.graphs import number

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from workbench.motes import Motes
    from workbench.motes.live.run import LiveRun
    from workbench.sim.radio import Radio

COLUMNS = (
    *("transmitter", "receiver", "pdr", "pdr_low", "pdr_high", "heard", "sent"),
    *("rssi_dBm", "rssi_dBm_min", "rssi_dBm_max"),
)
INTERVAL_S = 0.5
# A serial line of 115,200 baud carries the reports of so many probes in each second, with a reserve.
_PROBES_PER_S = 60
_LEVEL = 0.95
_MARGIN_US = 100_000  # exceeds the error of the conversion of motes' clocks, and a radio's delay of a frame
_NO_NUMBERS = np.array([], np.int64)
_SHORTEST_S, _LONGEST_S = 1.0, 86400.0
_SHORTEST_INTERVAL_S = 0.01

Sent = tuple[np.ndarray, np.ndarray]  # the numbers of a node's probes of one start, and their times in µs
Window = tuple[float, float]  # begin and end, in µs


class LinkProbes(Protocol):
    """The settings of nodes that measure links. It is not a protocol for publications: its nodes ignore workloads."""

    node = ProbeNode
    parameters: Any = (
        Parameter(
            "shortest_interval_s", 0.1, _SHORTEST_INTERVAL_S, _LONGEST_S, "s", "new neighbors get samples at once"
        ),
        Parameter(
            "longest_interval_s", INTERVAL_S, _SHORTEST_INTERVAL_S, _LONGEST_S, "s", "120 probes of each node a minute"
        ),
        Parameter("until_s", 60.0, 0.0, None, "s", "time after which nodes send no more probes"),
        Parameter("size_B", 32, HEADER_B, 200, "B", "size of a probe; longer frames are lost more often"),
    )
    natures = {"probe": "upkeep"}
    why_not_fast = "measurements are short, and meant for motes"


def measure(
    motes: Motes,
    network: Any,
    duration_s: float,
    interval_s: float | None,
    size_B: int,
    radio: Radio | None,
    seed: int,
    progress: Callable[[float], None] | None,
) -> pd.DataFrame:
    """Measure the links of a network on motes; `Motes.measure` describes the parameters and the result.

    ``network`` is a topology, or a list of nodes between which all links are measured.
    """
    from workbench.motes.live.run import LiveRun
    from workbench.sim.radio import Radio
    from workbench.sim.scenario import Scenario

    duration_s = number("duration_s", duration_s, _SHORTEST_S, _LONGEST_S, "s")
    topology = network if isinstance(network, nx.Graph) else _complete_graph(network)
    if not 2 <= len(topology) <= MOST_NEIGHBORS + 1:
        raise ParameterError(
            f"the network has {len(topology)} nodes; a measurement needs 2 to {MOST_NEIGHBORS + 1}, so measure a "
            "larger network in parts"
        )
    if interval_s is None:
        interval_s = max(INTERVAL_S, len(topology) / _PROBES_PER_S)
    interval_s = number("interval_s", interval_s, _SHORTEST_INTERVAL_S, _LONGEST_S, "s")
    protocol = LinkProbes(
        shortest_interval_s=min(LinkProbes().shortest_interval_s, interval_s),
        longest_interval_s=interval_s,
        until_s=duration_s,
        size_B=size_B,
    )
    scenario = Scenario(topology, protocol, radio=radio or Radio(), duration_s=duration_s, seed=seed)
    try:
        run = motes.play(scenario, progress)
    except LinkError as error:
        raise LinkError(f"{error}{_describe_remedy(str(error))}") from None
    is_stopped, notes = False, []
    if isinstance(run, LiveRun):
        is_stopped = _wait_for_end(run, topology is not network)
        notes = run.notes
    if is_stopped:
        notes.append(f"the measurement was stopped after {run.now_s:.1f} of {duration_s:g} s")
    table, unmeasured_links = link_table(run.trace, run.scenario.topology.edges)
    if unmeasured_links:
        transmitter, receiver = unmeasured_links[0]
        notes.append(
            f"the table lacks {len(unmeasured_links)} links, the first from {transmitter} to {receiver}: at no time "
            "were both motes connected to the host and within reach of any mote"
        )
    table.attrs |= {"is_stopped": is_stopped, "notes": notes}
    for note in notes:
        warnings.warn(note, RuntimeWarning, stacklevel=3)  # past `Motes.measure`, to its caller
    return table


def _describe_remedy(refusal: str) -> str:
    """Return what to do if a mote refused a measurement because its program has no probes; "" if it had another reason.

    ``refusal`` is the text of the error. The result is a clause to be appended to it.
    """
    if "cannot load" in refusal:
        return "; the program is of an older release: copy the present one by `workbench motes provision`"
    if "was compiled with" in refusal:
        return "; a mote in C cannot measure links, as its program sends no probes"
    return ""


def _wait_for_end(run: LiveRun, needs_radios: bool) -> bool:
    """Wait for the end of a measurement; return whether an interrupt (Ctrl-C) stopped it early.

    Raises LinkError if ``needs_radios`` is true and the motes have no radio of their own.
    """
    if needs_radios and not run.has_radios:
        run.stop()
        raise LinkError(
            "the boards have no radio of their own, so the host would simulate all links; measure on boards with a "
            "radio, or pass the simulated network as `topology`"
        )
    try:
        run.wait()
    except KeyboardInterrupt:
        run.stop()  # The signal may have arrived before run.wait() began.
        return True
    return False


def _complete_graph(nodes: Iterable[int]) -> nx.DiGraph:
    """Return the network in which each node has a link to each other node."""
    graph: nx.DiGraph = nx.complete_graph(sorted(nodes), nx.DiGraph)
    return graph


def link_table(trace: pa.Table, links: Iterable[tuple[int, int]]) -> tuple[pd.DataFrame, list[tuple[int, int]]]:
    """Return the table of links from the trace of a measurement, and the links without any sample.

    ``links`` are the links to measure, each (transmitter, receiver). `Motes.measure` describes the columns.
    """
    import pandas as pd

    rows = trace.to_pandas()
    rows = rows[rows["message"] == "probe"]
    reports = rows[rows["event"] == "probe_heard"]
    sent_by_node = _find_sent_probes(rows[rows["event"] == "sent"])
    heard_by_link = _find_received_probes(reports)
    windows_by_node = _find_uptime_windows(sent_by_node, heard_by_link, reports)
    levels = rows[(rows["event"] == "received") & (rows["value"] != 0)]  # 0: the radio does not measure it
    rssi = levels.groupby(["peer", "node"])["value"].agg(["mean", "min", "max"]).to_dict("index")
    table_rows: list[tuple[Any, ...]] = []
    unmeasured_links = []
    for transmitter, receiver in links:
        windows = windows_by_node.get(transmitter, []), windows_by_node.get(receiver, [])
        numbers = _select_samples(sent_by_node.get(transmitter, []), *windows)
        if not len(numbers):
            unmeasured_links.append((transmitter, receiver))
            continue
        heard_numbers = heard_by_link.get((transmitter, receiver), _NO_NUMBERS)
        heard = int(np.isin(numbers, heard_numbers).sum())
        low, high = share_bounds(heard, len(numbers))
        level = rssi.get((transmitter, receiver), {})
        pdr = heard / len(numbers)
        counts = transmitter, receiver, pdr, low, high, heard, len(numbers)
        table_rows.append((*counts, *(level.get(name, float("nan")) for name in ("mean", "min", "max"))))
    table = pd.DataFrame(table_rows, columns=list(COLUMNS))
    return table.astype({name: float for name in COLUMNS if name.startswith("rssi")}), unmeasured_links


def _find_sent_probes(rows: pd.DataFrame) -> dict[int, list[Sent]]:
    """Return {node: [(numbers of sent probes, their times in µs), ...]}, with a list item for each start of the node.

    The mote's report of a probe may be lost. So all numbers between the first and the last reported one are included,
    with interpolated times.
    """
    sent: dict[int, list[Sent]] = {}
    for (node, _), probes in rows.groupby(["node", rows["sequence"] // NUMBERS_PER_BOOT]):
        probes = probes.drop_duplicates("sequence").sort_values("sequence")
        reported_numbers = probes["sequence"].to_numpy()
        numbers = np.arange(reported_numbers[0], reported_numbers[-1] + 1)
        times_us = np.interp(numbers, reported_numbers, probes["time_us"].to_numpy())
        sent.setdefault(int(node), []).append((numbers, times_us))
    return sent


def _find_received_probes(rows: pd.DataFrame) -> dict[tuple[int, int], np.ndarray]:
    """Return {(transmitter, receiver): sorted numbers of the probes that arrived}, from the reports of received probes.

    Each report has a history of earlier probes, which is evaluated too.
    """
    heard: dict[tuple[int, int], np.ndarray] = {}
    for link, reports in rows.groupby(["peer", "node"]):
        newest, histories = reports["sequence"].to_numpy(), reports["value"].to_numpy()
        numbers = [newest[histories >> age & 1 == 1] - age for age in range(HISTORY)]
        heard[link] = np.unique(np.concatenate(numbers))
    return heard


def _find_uptime_windows(
    sent_by_node: dict[int, list[Sent]], heard_by_link: dict[tuple[int, int], np.ndarray], reports: pd.DataFrame
) -> dict[int, list[Window]]:
    """Return {node: [(begin, end), ...]} in µs: for each start of a node, the interval in which it is known to work.

    ``sent_by_node`` is the result of `_find_sent_probes`, ``heard_by_link`` of `_find_received_probes`. ``reports`` are
    the trace rows on received probes.
    """
    arrival_times = {int(node): times.to_numpy() for node, times in reports.groupby("node")["time_us"]}
    arrived: dict[int, list[np.ndarray]] = {}
    for (transmitter, _), numbers in heard_by_link.items():
        arrived.setdefault(transmitter, []).append(numbers)
    windows: dict[int, list[Window]] = {}
    for node, starts in sent_by_node.items():
        arrived_numbers = np.concatenate([_NO_NUMBERS, *arrived.get(node, ())])
        for numbers, times_us in starts:
            first_us, last_us = times_us.min(), times_us.max()
            at_node = arrival_times.get(node, _NO_NUMBERS)
            at_node = at_node[(first_us <= at_node) & (at_node <= last_us)]
            evidence_us = np.concatenate([at_node, times_us[np.isin(numbers, arrived_numbers)]])
            if len(evidence_us):
                windows.setdefault(node, []).append((evidence_us.min() + _MARGIN_US, last_us - _MARGIN_US))
    return windows


def _select_samples(sent: list[Sent], *windows_of_ends: list[Window]) -> np.ndarray:
    """Return the numbers of those probes in ``sent`` that were sent while both motes of a link are known to work.

    ``windows_of_ends`` has, for each of the two motes, the intervals in which it is known to work
    (`_find_uptime_windows`).
    """
    samples = [_NO_NUMBERS]
    for numbers, times_us in sent:
        is_sample = np.ones(len(numbers), bool)
        for windows in windows_of_ends:
            inside = [(begin_us <= times_us) & (times_us <= end_us) for begin_us, end_us in windows]
            is_sample &= np.any(inside, axis=0) if inside else False
        samples.append(numbers[is_sample])
    return np.concatenate(samples)


@lru_cache(maxsize=4096)
def share_bounds(successes: int, trials: int) -> tuple[float, float]:
    """Return the 95 % confidence interval (low, high) of a share: Wilson's interval of independent trials.

    Source: E. B. Wilson, *Probable inference, the law of succession, and statistical inference*, JASA 22 (1927).
    """
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(_LEVEL, method="wilson")
    return float(interval.low), float(interval.high)

"""Which protocol heals after which fault: `matrix` runs all protocols under all faults.

    matrix = wb.faults.matrix([wb.Diffusion(), wb.TinyMQ(), wb.DPS()])
    matrix                   a heat map: delivery before, during and after each fault, and the recovery time
    matrix.table             a row for each fault and protocol
    matrix.why("partition", "DPS")      why readings after the fault were lost, from the traces
    matrix.runs              the `SweepTable`, a row for each run

Theory of operation
    All runs have the same subscriptions and publications. The first 20 % of a run's duration are for setting up. Three
    periods follow: before the fault (20 to 40 %), during the fault (to 60 %) and after the fault (to the end). A
    reading belongs to the period in which it is published. A period's delivery ratio is the share of its expected
    readings that arrive at all, however late. A reading is expected if a path leads to the sink over links that
    exist at some time of the run, even if not all at the same time. So readings that no protocol can deliver during a
    partition are expected, and count as lost.

    The *remaining ratio* of a publication is the delivery ratio of all readings from this publication to the end of the
    run. Delivery is *steady* from a publication on if the remaining ratios of this publication and of all later ones
    are at least 90 %. The last nine publications are not checked, because a single loss would be a large share of so
    few readings.

    ``recovery_s`` is the time from the end of the fault to the first publication from which on delivery is steady, or
    infinite if delivery never becomes steady. If the fault is permanent, the time counts from its beginning. If all
    readings of a few seconds are lost, the remaining ratios may still be above 90 %. Then ``recovery_s`` does not show
    the loss, but the delivery ratio of the period does.

    A protocol *recovers* if ``recovery_s`` is finite. It also recovers if its delivery ratio after the fault is at
    least r - 0.02. Here r is its delivery ratio in the same period without a fault (row "none"), or 1 if the matrix has
    no row "none".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.analysis.accounts import missing
from workbench.analysis.expected import NEVER, expected
from workbench.analysis.explain import sentence
from workbench.errors import ParameterError
from workbench.extensions import extensible
from workbench.keywords import answer_for, checked
from workbench.protocols.protocol import Protocol
from workbench.sim.metrics.progress import first_steady
from workbench.sim.radio import Radio
from workbench.sim.radios import cc2420
from workbench.sim.rows import Columns
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.sim.workload import publish, subscribe
from workbench.suggestion import meant
from workbench.sweeps.faults.cases import FAULTS, PERMANENT, Place, find_victims
from workbench.sweeps.runners import Runner
from workbench.sweeps.sweep import Sweep
from workbench.sweeps.table import SweepTable
from workbench.topology.generators import disc

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FAULTS", "FaultMatrix", "matrix"]
PERIODS = ("before", "during", "after")
NO_FAULT = "none"
_TOLERANCE = 0.02  # of delivery ratios that count as equal
_SHARES = (0.2, 0.4, 0.6, 1.0)  # the bounds of the periods, as shares of the duration


@checked
def matrix(
    protocols: Iterable[Protocol] | Mapping[str, Protocol],
    faults: Iterable[str] | Mapping[str, Iterable[Any]] | None = None,
    topology: Any = None,
    radio: Radio | None = None,
    seeds: Iterable[int] = range(1, 4),
    duration_s: float = 300.0,
    runner: Runner | None = None,
    out: Any = None,
    progress: bool | None = None,
) -> FaultMatrix:
    """Run each protocol under each fault, and return delivery, recovery time and wrong deliveries as a `FaultMatrix`.

    protocols   the protocols, or {name: protocol}
    faults      names among `FAULTS`, or {name: workload items} of your own; None for all of `FAULTS`
    topology    the network of all runs; by default 40 nodes in 100 m x 60 m, with links up to 22 m long
    radio       the radio of all nodes; by default a CC2420
    seeds       seeds of the runs; each fault runs with each protocol and each seed
    duration_s  duration of each run in seconds; most faults last from 40 % to 60 % of the duration
    runner, out, progress      as for `Sweep.run`

    The nodes with the smallest and the largest x coordinate subscribe, and four nodes between them publish every two
    seconds. Playing a run of 300 s takes about 0.3 s if the machine code is compiled already. Raises ParameterError for
    an unknown fault, for a network of fewer than eight nodes, and for a network in which every node is needed to
    connect sinks and sources.
    """
    named_protocols = _name_protocols(protocols)
    names = list(FAULTS) if faults is None else [faults] if isinstance(faults, str) else list(faults)
    own_items = faults if isinstance(faults, Mapping) else {}
    for name in names:
        if name not in FAULTS and name not in own_items:
            raise ParameterError(f"the fault {name!r:.60} is unknown{meant(name, FAULTS)}; choose: {', '.join(FAULTS)}")
    graph = disc(40, 100, 60, radius_m=22, seed=3) if topology is None else topology
    place, items = _make_workload(graph, named_protocols.values(), duration_s)
    base = Scenario(
        graph, next(iter(named_protocols.values())), tuple(items), cc2420() if radio is None else radio, duration_s
    )
    workloads = {name: [*items, *(own_items[name] if name in own_items else FAULTS[name](place))] for name in names}
    over = {"workload": workloads, "protocol": named_protocols, "seed": list(seeds)}
    sweep = Sweep(base, over, measure=measure)
    return FaultMatrix(sweep.run(out, runner, progress), names, list(named_protocols))


def _name_protocols(protocols: Any) -> dict[str, Protocol]:
    if isinstance(protocols, Mapping):
        return dict(protocols)
    listed = [protocols] if isinstance(protocols, Protocol) else list(protocols)
    for protocol in listed:
        if not isinstance(protocol, Protocol):
            raise ParameterError(f"the argument `protocols` has {protocol!r:.60}; it must be a list of protocols")
    names = [type(protocol).public_class().__name__ for protocol in listed]
    if not names:
        raise ParameterError("the argument `protocols` is empty; it must have at least one protocol")
    return {
        name if names.count(name) == 1 else f"{name} {number + 1}": protocol
        for number, (name, protocol) in enumerate(zip(names, listed, strict=True))
    }


def _make_workload(graph: Any, protocols: Iterable[Protocol], duration_s: float) -> tuple[Place, list[Any]]:
    """Return (nodes and times of the faults, workload items of all runs: subscriptions and publications).

    Nodes that a protocol's settings name, such as roots, are not among the relays that fail.
    """
    named_nodes = {node for protocol in protocols for nodes in protocol.named_nodes().values() for node in nodes}
    nodes = sorted(graph)
    if len(nodes) < 8:
        raise ParameterError(f"the network has {len(nodes)} nodes; a fault matrix needs at least 8")
    by_place = sorted(nodes, key=lambda node: (*graph.nodes[node]["pos"], node))
    sinks = by_place[0], by_place[-1]
    sources = tuple(by_place[len(by_place) * share // 5] for share in (1, 2, 3, 4))
    victims = find_victims(graph, {*sinks, *sources, *(node for node in named_nodes if node in graph)})
    if not victims:
        raise ParameterError(
            "no node of this network can fail without separating sinks from sources; add nodes or links"
        )
    begin_s, end_s = _SHARES[1] * duration_s, _SHARES[2] * duration_s
    place = Place(graph, sinks, sources, victims, begin_s, end_s, duration_s)
    period_s = 2.0
    start_s = _SHARES[0] * duration_s / 2
    items = [
        subscribe(sinks, "TEMP GE 20", start_s=1.0),
        publish(sources, "TEMP IS 25", every_s=period_s, start_s=start_s, stagger=True),
    ]
    return place, items


def measure(run: Run) -> dict[str, float]:
    """Return the delivery ratio of each period, the recovery times, and the numbers of wrong and repeated deliveries.

    ``run``: a run of a fault matrix, with its trace. There are two recovery times: "steady_from_end_s" counts from the
    end of the fault, "steady_from_begin_s" from its beginning.
    """
    duration_s = run.scenario.duration_s
    expectations = expected(run.scenario, Columns(run.trace))
    pairs = expectations.pairs
    is_expected = pairs.hops >= 0
    published_s = expectations.publications.time_us[pairs.publication[is_expected]] / 1e6
    arrived = pairs.delivery[is_expected] != NEVER
    numbers: dict[str, float] = {}
    for period, first, last in zip(PERIODS, _SHARES, _SHARES[1:], strict=False):
        is_in_period = (published_s >= first * duration_s) & (published_s < last * duration_s)
        numbers[period] = float(arrived[is_in_period].mean()) if is_in_period.any() else math.nan
    for name, share in (("steady_from_begin_s", _SHARES[1]), ("steady_from_end_s", _SHARES[2])):
        numbers[name] = _find_recovery_s(published_s, arrived, share * duration_s)
    metrics = run.metrics
    numbers["wrong"], numbers["repeated"] = metrics["wrong_deliveries"], metrics["duplicate_deliveries"]
    return numbers


def _find_recovery_s(published_s: np.ndarray, arrived: np.ndarray, begin_s: float) -> float:
    """Return the recovery time: seconds from ``begin_s`` to the publication from which on delivery is steady.

    The module docstring defines "steady". The result is infinite if delivery never becomes steady, and NaN if no
    reading is published at ``begin_s`` or later. ``published_s``, ``arrived`` (n,): when each expected reading was
    published, and whether it arrived.
    """
    is_later = published_s >= begin_s
    if not is_later.any():
        return math.nan
    times_s, row = np.unique(published_s[is_later], return_inverse=True)
    expected_counts = np.bincount(row)
    steady_index = first_steady(expected_counts, np.bincount(row, weights=arrived[is_later]))
    return math.inf if steady_index is None else float(times_s[steady_index] - begin_s)


@extensible
class FaultMatrix:
    """The result of `matrix`: delivery and recovery of each protocol (column of the heat map) under each fault (row).

    ``faults`` and ``protocols`` have the names of the rows and columns, in this order. ``runs`` is the table of runs.
    """

    def __init__(self, runs: SweepTable, faults: list[str], protocols: list[str]) -> None:
        self.runs = runs
        self.faults = faults
        self.protocols = protocols

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return self.runs.to_pandas()

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each fault and protocol.

        fault, protocol           their names
        before, during, after     delivery ratios of the three periods: means of all seeds
        recovery_s                the recovery time in s: the longest of all seeds
        wrong                     number of deliveries of readings that do not match the subscription, were altered or
                                  were never published: sum of all seeds
        repeated                  number of duplicate deliveries: sum of all seeds
        verdict                   "recovers", or "does not recover"
        """
        import pandas as pd

        frame = self._frame
        rows = []
        for fault in self.faults:
            for protocol in self.protocols:
                cell_runs = frame[(frame["workload"] == fault) & (frame["protocol"] == protocol)]
                recovery_s = cell_runs["steady_from_begin_s" if fault in PERMANENT else "steady_from_end_s"]
                row: dict[str, Any] = {"fault": fault, "protocol": protocol}
                row |= {period: float(cell_runs[period].mean()) for period in PERIODS}
                row |= {"recovery_s": float(recovery_s.max()), "wrong": int(cell_runs["wrong"].sum())}
                rows.append(row | {"repeated": int(cell_runs["repeated"].sum())})
        table = pd.DataFrame(rows)
        faultless_ratios = table[table["fault"] == NO_FAULT].set_index("protocol")["after"]
        usual_ratios = table["protocol"].map(faultless_ratios).fillna(1.0) if len(faultless_ratios) else 1.0
        recovers = np.isfinite(table["recovery_s"]) | (table["after"] >= usual_ratios - _TOLERANCE)
        table["verdict"] = np.where(recovers, "recovers", "does not recover")
        return table

    def cell(self, fault: str, protocol: str) -> pd.Series:
        """Return the row of the table for a fault and a protocol. Raises ParameterError for unknown names."""
        for name, value, known in (("fault", fault, self.faults), ("protocol", protocol, self.protocols)):
            if value not in known:
                raise ParameterError(f"the {name} {value!r:.60} is not in this matrix{meant(value, known)}")
        table = self.table
        return table[(table["fault"] == fault) & (table["protocol"] == protocol)].iloc[0]

    def run(self, fault: str, protocol: str) -> Run:
        """Repeat the worst run of ``fault`` and ``protocol``, and return it with its trace.

        Each seed has one run. The worst run has the lowest delivery ratio after the fault. Raises ParameterError for
        unknown names.
        """
        self.cell(fault, protocol)
        frame = self._frame
        cell_runs = frame[(frame["workload"] == fault) & (frame["protocol"] == protocol)]
        return self.runs.run(int(cell_runs["after"].to_numpy().argmin() + cell_runs.index[0]))

    def why(self, fault: str, protocol: str, most: int = 3) -> list[str]:
        """Return at most ``most`` sentences with the most frequent causes of readings lost after the fault.

        Only one run is examined: the run that `run` returns, which delivered least after the fault. The list is empty
        if this run lost no reading after the fault.
        """
        run = self.run(fault, protocol)
        begin_us = round(_SHARES[2] * run.scenario.duration_s * 1e6)
        causes: dict[str, list[Any]] = {}
        for account in missing(run):
            if account.published_us >= begin_us:
                causes.setdefault(account.cause, []).append(account)
        largest_groups = sorted(causes.values(), key=len, reverse=True)[:most]
        return [
            f"{len(accounts)} readings, such as: {sentence(run.scenario, accounts[0])}" for accounts in largest_groups
        ]

    def __repr__(self) -> str:
        counts = self.table["verdict"].value_counts()
        return (
            f"FaultMatrix({len(self.faults)} faults, {len(self.protocols)} protocols: "
            f"{counts.get('recovers', 0)} of {len(self.table)} recover)"
        )


answer_for(__name__)

"""Comparison of protocols on one workload: paired runs, the conditions of each protocol, statistics and charts.

    wb.compare(scenario, [wb.Diffusion(), wb.DPS()], over={"sinks": (1, 5)})    -> comparison

In a notebook, a comparison is shown as a table of the main metrics with intervals, above the conditions.

    comparison.plot("charge_mC")                       the metric of each protocol along the axis
    comparison.summary("latency_ms_p95")               means, medians and their intervals
    comparison.paired("transmissions")                 differences from the first protocol, seed by seed
    comparison.winners("charge_mC")                    the best protocol, and whether the difference is certain
    comparison.map("charge_mC", "sinks", "every_s")    the same over two axes, as a picture
    comparison.table                                   the `SweepTable`: a row for each run
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import ParameterError, ScenarioError
from workbench.extensions import extensible
from workbench.keywords import checked
from workbench.protocols.protocol import Protocol
from workbench.sim.conditions import Conditions, conditions, shared, warnings
from workbench.sim.metrics.shown import shown_as
from workbench.sim.radios import describe_radio
from workbench.sim.scenario import Scenario
from workbench.suggestion import meant
from workbench.sweeps.comparison.design import RULE_TEXTS, Compared, check_rule
from workbench.sweeps.design import Axis, Grid, axis
from workbench.sweeps.means import interval, is_share
from workbench.sweeps.percentiles import percentile_bounds
from workbench.sweeps.plans.paired import paired_differences
from workbench.sweeps.runners import Runner
from workbench.sweeps.sweep import Sweep
from workbench.sweeps.table import SweepTable

if TYPE_CHECKING:
    import pandas as pd

MAIN = (
    "delivery_ratio",
    "wrong_deliveries",
    "latency_all_ms_p50",
    "latency_all_ms_p95",
    "transmissions",
    "frames_set_up",
    "frames_upkeep",
    "frames_use",
    "energy_mJ",
    "charge_mC",
    "charge_mC_max",
)
CERTAIN, OPEN = "certain", "open"


@checked
def compare(
    scenario: Scenario,
    protocols: Sequence[Protocol] | Mapping[str, Protocol],
    over: Mapping[str, Any] | None = None,
    seeds: int | Iterable[int] = 30,
    roles: str = "degree",
    out: str | Path | None = None,
    runner: Runner | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Run several protocols on the same networks and workloads, and return the comparison.

    scenario    network, workload, radio and duration; its own protocol is not used. A random network is drawn again for
                each seed
    protocols   a list, or {name in charts: protocol}
    over        {axis: values}: "nodes" (at the same density), "sinks", "sources", "every_s", or a path of
                `Scenario.replace` such as "radio.loss". All combinations are run
    seeds       their number, or the seeds themselves
    roles       the rule that chooses nodes for special roles in a protocol, such as roots: "degree" (most neighbors),
                "center" (middle of the network) or "random"
    out, runner, progress    as for `Sweep.run`: with ``out`` a stopped comparison continues; Ctrl-C stops it

    Raises ScenarioError for an invalid axis, value or protocol.
    """
    protocol_by_name = _by_name(protocols)
    seed_values = range(1, seeds + 1) if isinstance(seeds, int) else list(seeds)
    over = dict(over or {})
    for path in over:
        if path in ("protocol", "seed", "topology", "workload") or path.startswith("protocol."):
            raise ScenarioError(
                f"over has the axis {path!r}; protocols and seeds have arguments of their own, and a comparison pairs "
                'networks and workloads: use axes such as "sinks", "every_s", "topology.nodes" or "radio.loss"'
            )
    axes = (
        Axis("protocol", tuple(protocol_by_name.values()), tuple(protocol_by_name)),
        *(axis(path, values) for path, values in over.items()),
        axis("seed", seed_values),
    )
    plan = Compared(scenario, Grid(axes), check_rule(roles))
    sweep = Sweep(scenario.replace(protocol=next(iter(protocol_by_name.values())), seed=1), plan)
    return Comparison(sweep.run(out=out, runner=runner, progress=progress))


def _by_name(protocols: Sequence[Protocol] | Mapping[str, Protocol]) -> dict[str, Protocol]:
    """Return {name: protocol}; protocols of one class are numbered. Raises ScenarioError for anything else."""
    if isinstance(protocols, Mapping):
        protocol_by_name = {str(name): protocol for name, protocol in protocols.items()}
    else:
        if isinstance(protocols, Protocol) or not isinstance(protocols, Iterable):
            raise ScenarioError(
                f"protocols is {protocols!r:.80}; it must be a list of protocols, or {{name: protocol}}"
            )
        protocol_by_name = {}
        for protocol in protocols:
            name = type(protocol).public_class().__name__ if isinstance(protocol, Protocol) else repr(protocol)
            same_class = sum(other.partition(" ")[0] == name for other in protocol_by_name)
            protocol_by_name[f"{name} {same_class + 1}" if same_class else name] = protocol
    for protocol in protocol_by_name.values():
        if not isinstance(protocol, Protocol):
            raise ScenarioError(f"protocols has {protocol!r:.60}; each must be an instance of a protocol's class")
    if not protocol_by_name:
        raise ScenarioError("protocols is empty; a comparison needs at least one")
    return protocol_by_name


@extensible
class Comparison:
    """The result of `compare`: the runs of several protocols on the same networks and workloads, in ``table``."""

    def __init__(self, table: SweepTable) -> None:
        self.table = table
        self._design: Compared = table.plan.design  # type: ignore[assignment]

    @property
    def protocols(self) -> tuple[str, ...]:
        """The names of the protocols."""
        return tuple(self._design.labels_of("protocol"))

    @property
    def classes(self) -> dict[str, str]:
        """The classes of the protocols: {name of the protocol: name of its class}."""
        values = self._design.grid.axes[0].values
        return {name: type(value).public_class().__name__ for name, value in zip(self.protocols, values, strict=True)}

    @property
    def axes(self) -> tuple[str, ...]:
        """The paths of the user's axes: all axes except "protocol" and "seed"."""
        return self.table.axes[1:-1]

    @cached_property
    def _scenarios(self) -> dict[str, Scenario]:
        """The scenarios of the protocols' first points: {name of the protocol: scenario}."""
        per_protocol = len(self.table) // len(self.protocols)
        return {name: self.table.plan.scenario_of(index * per_protocol) for index, name in enumerate(self.protocols)}

    @cached_property
    def conditions(self) -> list[Conditions]:
        """The conditions of each protocol: oracle knowledge, own retries, roles, frames, filters, settings."""
        rule = RULE_TEXTS[self._design.rule]
        return [conditions(scenario, name, rule) for name, scenario in self._scenarios.items()]

    @cached_property
    def notes(self) -> list[str]:
        """The conditions as sentences: those common to all protocols, warnings, then one sentence for each protocol."""
        common = shared(self._scenarios)
        return [
            f"For all: {self._describe_common()}.",
            *([common] if common else []),
            *warnings(self.conditions),
            *map(str, self.conditions),
        ]

    def _describe_common(self) -> str:
        """Return a sentence with the network, the radio, the duration and the seeds, which all protocols share."""
        scenario = next(iter(self._scenarios.values()))
        recipe = scenario.topology.graph.get("recipe") or {}
        is_drawn = "seed" in recipe and recipe["kind"] != "from_positions"
        network = f"{recipe.get('kind', 'given')} network{', drawn for each seed' if is_drawn else ''}"
        size = (
            ""
            if any(path.startswith("topology.") or path == "nodes" for path in self.axes)
            else f"{len(scenario.topology)} nodes, "
        )
        radio = describe_radio(scenario.radio)
        seeds = self._design.labels_of("seed")
        return f"{size}{network}; {radio}; {scenario.duration_s:g} s; seeds {seeds[0]} to {seeds[-1]}"

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas frame with a row for each run and the columns of `SweepTable.to_pandas`."""
        return self.table.to_pandas()

    def summary(self, metric: str = "delivery_ratio", x: str | None = None) -> pd.DataFrame:
        """Return the statistics of a metric for each protocol, and for each value of ``x`` if it is given.

        Columns:

        protocol, x                        the group; x only if it is given
        mean, low, high                    the mean and its 95 % interval, by Student's t
        median, median_low, median_high    the median and its 95 % interval, without an assumed distribution
        p90_low, p90_high                  the 95 % interval of the 90th percentile, without an assumed distribution
        finite                             share of the runs in which the metric is finite
        runs                               number of runs that have the metric

        An interval that needs more runs is NaN. The mean is infinite if the value of one run is infinite.
        """
        import pandas as pd

        frame = self._frame(metric, x)
        keys = ["protocol", *([x] if x else [])]
        rows = []
        for names, values in frame.groupby(keys, sort=False)[metric]:
            present_values = [float(value) for value in values.dropna()]
            rows.append((*names, *_statistics(present_values, is_share(metric, values)), len(present_values)))
        statistics = ["mean", "low", "high", "median", "median_low", "median_high", "p90_low", "p90_high", "finite"]
        return pd.DataFrame(rows, columns=[*keys, *statistics, "runs"])

    def paired(self, metric: str = "delivery_ratio", baseline: str | None = None, x: str | None = None) -> pd.DataFrame:
        """Return the mean difference of each protocol from the protocol ``baseline``, over pairs of runs with one seed.

        ``baseline`` is a name, by default of the first protocol. The columns are those of
        `wb.plans.paired_differences`.
        """
        return paired_differences(self.table, metric, baseline=baseline, x=x)

    def winners(self, metric: str, *axes: str, delivering: float = 0.95) -> pd.DataFrame:
        """Return the best protocol at each combination of values of ``axes``, and how certain that is.

        Only protocols with a mean delivery ratio of at least ``delivering`` take part, because it is easy to be cheap
        without delivering. A row without such a protocol has "" as ``best``.

        Columns: the axes, best, mean, second, difference (mean of best - second, by pairs), low, high, verdict:
        "certain" if the 95 % interval of the difference excludes 0, else "open". Raises ParameterError for a metric
        whose values have no better direction.
        """
        import pandas as pd

        shown = shown_as(metric, self._design.grid.axes[0].values[0])
        if shown.is_more_better is None:
            raise ParameterError(f"metric is {metric!r}; neither more nor less of it is better, so it has no winner")
        frame = self._frame(metric, *axes)
        groups = frame.groupby(list(axes), sort=False) if axes else [((), frame)]
        rows = [
            (*axis_values, *self._find_winner(group, metric, axes, delivering, not shown.is_more_better))
            for axis_values, group in groups
        ]
        columns = ["best", "mean", "second", "difference", "low", "high", "verdict"]
        return pd.DataFrame(rows, columns=[*axes, *columns])

    def _find_winner(
        self, frame: pd.DataFrame, metric: str, axes: Sequence[str], delivering: float, is_less_better: bool
    ) -> tuple[Any, ...]:
        """Return (best, mean, second, difference, low, high, verdict), a row of `winners`, for the runs in a frame."""
        nan = float("nan")
        by_protocol = frame.groupby("protocol", sort=False)
        means = by_protocol[metric].mean()[by_protocol["delivery_ratio"].mean() >= delivering].dropna()
        ranking = means.sort_values(ascending=is_less_better, kind="stable").index.tolist()
        if not ranking:
            return "", nan, "", nan, nan, nan, OPEN
        best, second = ranking[0], ranking[1] if len(ranking) > 1 else ""
        if not second:
            return best, float(means[best]), "", nan, nan, nan, OPEN
        paired_by = [name for name in self.table.axes if name != "protocol" and name not in axes]
        pairs = frame.pivot_table(index=paired_by, columns="protocol", values=metric)[[best, second]].dropna()
        mean, half, _ = interval((pairs[best] - pairs[second]).tolist())
        verdict = CERTAIN if abs(mean) > half else OPEN
        return best, float(means[best]), second, mean, mean - half, mean + half, verdict

    def _frame(self, metric: str, *axes: str | None) -> pd.DataFrame:
        if metric not in self.table.metrics:
            known = ", ".join(self.table.metrics)
            raise ParameterError(f"metric is {metric!r}{meant(metric, self.table.metrics)}; it must be one of {known}")
        for x in axes:
            if x is not None and x not in self.axes:
                known = ", ".join(self.axes) or "none besides protocol and seed"
                raise ParameterError(f"x is {x!r}{meant(x, self.axes)}; it must be an axis of this comparison: {known}")
        return self.table.to_pandas()

    def __repr__(self) -> str:
        axes = ", ".join(("protocol", *self.axes, "seed"))
        return f"Comparison of {', '.join(self.protocols)} over {axes} ({len(self.table)} runs): summary, paired, plot"

    def _repr_html_(self) -> str:
        names = [name for name in MAIN if name in self.table.metrics]
        head = "".join(f"<th>{escape(shown_as(name).title)}</th>" for name in names)
        body = "".join(
            f"<tr><th>{escape(protocol)}</th>{''.join(cells)}</tr>"
            for protocol, cells in zip(
                self.protocols, zip(*(self._cells(name) for name in names), strict=True), strict=True
            )
        )
        runs = len(self.table) // len(self.protocols)
        over = f" over all values of {' and '.join(self.axes)}" if self.axes else ""
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        names_text = escape(", ".join(self.protocols))
        return (
            f"<p>{names_text}: means of {runs:,} runs each{over}, ± half of their 95 % intervals</p>"
            f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table><p>Conditions</p><ul>{notes}</ul>"
        )

    def _cells(self, metric: str) -> list[str]:
        from workbench.sweeps.comparison.cells import cell_html

        shown = shown_as(metric)
        return [
            cell_html(shown, row.mean, row.high - row.mean, row.median) for row in self.summary(metric).itertuples()
        ]


def _statistics(values: list[float], is_a_share: bool) -> tuple[float, ...]:
    """Return (mean, low, high, median, median_low, median_high, p90_low, p90_high, finite) of `Comparison.summary`."""
    import numpy as np

    if not values:
        return (float("nan"),) * 9
    finite = [value for value in values if np.isfinite(value)]
    mean, half, _ = interval(values) if len(finite) == len(values) else (float("inf"), float("nan"), 0)
    largest = 1.0 if is_a_share else float("inf")
    bounds = (max(0.0, mean - half), min(largest, mean + half)) if half == half else (half, half)
    middle = sorted(values)[(len(values) - 1) // 2]
    return (
        mean,
        *bounds,
        middle,
        *percentile_bounds(values, 50),
        *percentile_bounds(values, 90),
        len(finite) / len(values),
    )

"""Comparison of protocols on one workload: paired runs, the conditions of each protocol, statistics and charts.

    wb.compare(scenario, [wb.Diffusion(), wb.DPS()], over={"sinks": (1, 5)})    -> comparison

In a notebook, a comparison is shown as a table of the main metrics with intervals, above the conditions.

    comparison.plot("charge_mC")                       the metric of each protocol along the axis
    comparison.summary("latency_ms_p95")               means, medians and their intervals
    comparison.paired("transmissions")                 differences from the first protocol, seed by seed
    comparison.winners("charge_mC")                    the best protocol, and whether the difference is certain
    comparison.map("charge_mC", "sinks", "every_s")    the best protocols over two axes, as a picture
    comparison.memory()                                the peak memory of the protocols' nodes
    comparison.table                                   the `SweepTable`: a row for each run
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.analysis.node_memory import memory
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
from workbench.sweeps.means import clipped_interval, interval, is_share
from workbench.sweeps.percentiles import percentile_bounds
from workbench.sweeps.plans.paired import paired_differences
from workbench.sweeps.progress import display_for
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
    "sink_error_mean",
    "age_s_mean",
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
    seeds       the number of seeds, or a list of seeds
    roles       the rule that chooses nodes for special roles in a protocol, such as roots: "degree" (most neighbors),
                "center" (middle of the network) or "random"
    out, runner, progress    as for `Sweep.run`; a comparison that was stopped with Ctrl-C continues if it is started
                again with the same folder ``out``

    Raises ScenarioError for an invalid axis, value or protocol.
    """
    protocol_by_name = _name_protocols(protocols)
    seed_values = range(1, seeds + 1) if isinstance(seeds, int) else list(seeds)
    over = dict(over or {})
    for path in over:
        if path in ("protocol", "seed", "topology", "workload") or path.startswith("protocol."):
            raise ScenarioError(
                f"the argument `over` has the axis {path!r}, which a comparison sets itself; give the protocols and "
                'the seeds as arguments, and use axes such as "sinks", "every_s", "topology.nodes" or "radio.loss"'
            )
    axes = (
        Axis("protocol", tuple(protocol_by_name.values()), tuple(protocol_by_name)),
        *(axis(path, values) for path, values in over.items()),
        axis("seed", seed_values),
    )
    plan = Compared(scenario, Grid(axes), check_rule(roles))
    sweep = Sweep(scenario.replace(protocol=next(iter(protocol_by_name.values())), seed=1), plan)
    return Comparison(sweep.run(out=out, runner=runner, progress=progress))


def _name_protocols(protocols: Sequence[Protocol] | Mapping[str, Protocol]) -> dict[str, Protocol]:
    """Return {name in charts: protocol}. In a list, the second protocol of a class gets the name "CLASS 2".

    Raises ScenarioError if ``protocols`` is empty or contains anything but protocols.
    """
    if isinstance(protocols, Mapping):
        protocol_by_name = {str(protocol_name): protocol for protocol_name, protocol in protocols.items()}
    else:
        if isinstance(protocols, Protocol) or not isinstance(protocols, Iterable):
            raise ScenarioError(
                f"the argument `protocols` is {protocols!r:.80}; it must be a list of protocols, or {{name: protocol}}"
            )
        protocol_by_name = {}
        for protocol in protocols:
            protocol_name = type(protocol).public_class().__name__ if isinstance(protocol, Protocol) else repr(protocol)
            same_class = sum(earlier_name.partition(" ")[0] == protocol_name for earlier_name in protocol_by_name)
            protocol_by_name[f"{protocol_name} {same_class + 1}" if same_class else protocol_name] = protocol
    for protocol in protocol_by_name.values():
        if not isinstance(protocol, Protocol):
            raise ScenarioError(
                f"the argument `protocols` contains {protocol!r:.60}; "
                "each entry must be an instance of a protocol's class"
            )
    if not protocol_by_name:
        raise ScenarioError("the argument `protocols` is empty; a comparison needs at least one protocol")
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
        """The parameters that the comparison varies (such as "radio.loss"), without "protocol" and "seed"."""
        return self.table.axes[1:-1]

    @cached_property
    def _scenarios(self) -> dict[str, Scenario]:
        """The scenario of the first run of each protocol: {name of the protocol in charts: scenario}."""
        per_protocol = len(self.table) // len(self.protocols)
        return {name: self.table.plan.scenario_of(index * per_protocol) for index, name in enumerate(self.protocols)}

    @cached_property
    def conditions(self) -> list[Conditions]:
        """The conditions under which each protocol ran, such as its settings, retries, and known link qualities."""
        rule = RULE_TEXTS[self._design.rule]
        return [conditions(scenario, name, rule) for name, scenario in self._scenarios.items()]

    @cached_property
    def notes(self) -> list[str]:
        """The conditions of the runs as sentences: common conditions, warnings, then one sentence for each protocol."""
        common_condition = shared(self._scenarios)
        return [
            f"For all: {self._describe_common()}.",
            *([common_condition] if common_condition else []),
            *warnings(self.conditions),
            *map(str, self.conditions),
        ]

    def _describe_common(self) -> str:
        """Return a sentence with the network, the radio, the duration and the seeds, which all protocols share."""
        scenario = next(iter(self._scenarios.values()))
        recipe = scenario.topology.graph.get("recipe") or {}
        is_drawn = "seed" in recipe and recipe["kind"] != "from_positions"
        network = f"{recipe.get('kind', 'given')} network{', drawn for each seed' if is_drawn else ''}"
        network_size = (
            ""
            if any(path.startswith("topology.") or path == "nodes" for path in self.axes)
            else f"{len(scenario.topology)} nodes, "
        )
        radio = describe_radio(scenario.radio)
        seeds = self._design.labels_of("seed")
        return f"{network_size}{network}; {radio}; {scenario.duration_s:g} s; seeds {seeds[0]} to {seeds[-1]}"

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame with a row for each run and the columns of `SweepTable.to_pandas`."""
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

        An interval is NaN if there are too few runs for it. The mean is infinite if the value of one run is infinite.
        """
        import pandas as pd

        runs = self._make_frame(metric, x)
        group_columns = ["protocol", *([x] if x else [])]
        summary_rows = []
        for group_labels, metric_values in runs.groupby(group_columns, sort=False)[metric]:
            present_values = [float(value) for value in metric_values.dropna()]
            summary_rows.append(
                (
                    *group_labels,
                    *_compute_statistics(present_values, is_share(metric, metric_values)),
                    len(present_values),
                )
            )
        statistics = ["mean", "low", "high", "median", "median_low", "median_high", "p90_low", "p90_high", "finite"]
        return pd.DataFrame(summary_rows, columns=[*group_columns, *statistics, "runs"])

    def paired(self, metric: str = "delivery_ratio", baseline: str | None = None, x: str | None = None) -> pd.DataFrame:
        """Return the mean difference of a metric between each protocol and the protocol ``baseline``.

        The mean is over pairs of runs that have the same seed and differ only in the protocol. ``baseline`` is the name
        of a protocol, by default the first. With ``x`` there is a row for each value of the axis ``x``. The columns are
        those of `wb.plans.paired_differences`.
        """
        return paired_differences(self.table, metric, baseline=baseline, x=x)

    def winners(self, metric: str, *axes: str, delivering: float = 0.95) -> pd.DataFrame:
        """Return the best protocol at each combination of values of ``axes``, and whether its lead is certain.

        The best protocol has the best mean of ``metric`` among the protocols with a mean delivery ratio of at least
        ``delivering``; a protocol that delivers little is cheap, but no winner. If no protocol delivers enough,
        ``best`` is "".

        Columns: the axes, best (name of the protocol), mean (its mean of the metric), second (name of the next best
        protocol), difference, low, high, verdict. ``difference`` is the mean of the metric's differences between best
        and second, over pairs of runs that differ only in the protocol. low and high bound its 95 % interval.
        ``verdict`` is "certain" if this interval excludes 0, else "open". Raises ParameterError for a metric for which
        neither high nor low values count as better.
        """
        import pandas as pd

        metric_format = shown_as(metric, self._design.grid.axes[0].values[0])
        if metric_format.is_more_better is None:
            raise ParameterError(
                f"the argument `metric` is {metric!r}; neither more nor less of it is better, "
                "so it has no winner; choose another metric"
            )
        runs = self._make_frame(metric, *axes)
        groups = runs.groupby(list(axes), sort=False) if axes else [((), runs)]
        winner_rows = [
            (*axis_values, *self._find_winner(group, metric, axes, delivering, not metric_format.is_more_better))
            for axis_values, group in groups
        ]
        columns = ["best", "mean", "second", "difference", "low", "high", "verdict"]
        return pd.DataFrame(winner_rows, columns=[*axes, *columns])

    def memory(self, every_s: float = 0.0, max_nodes: int = 400, progress: bool | None = None) -> pd.DataFrame:
        """Return the peak memory of the nodes of each protocol, with the first seed and the first value of each axis.

        Columns: protocol, median_B and max_B (of the nodes' peaks), node (with the largest peak) and peak_s (time of
        this peak). The runs of the comparison do not measure memory, so the scenarios are played again, on the
        reference engine. `wb.memory` states what is counted, and what ``every_s`` does. ``progress`` is that of
        `compare`. Raises ParameterError for a network of more than ``max_nodes`` nodes, because a run may take minutes.
        """
        import pandas as pd

        largest = max(len(scenario.topology) for scenario in self._scenarios.values())
        if largest > max_nodes:
            raise ParameterError(
                f"the argument `max_nodes` is {max_nodes!r:.60}, and the network has {largest} nodes; "
                f"pass max_nodes={largest} to "
                "measure them nevertheless, which may take minutes"
            )
        display = display_for(progress)
        memory_rows = []
        for number, (name, scenario) in enumerate(self._scenarios.items()):

            def show(share: float, number: int = number, name: str = name) -> None:
                display.show((number + share) / len(self.protocols), f"memory of {name}: {share:.0%}")

            peaks = memory(scenario, every_s, show)
            node = int(peaks["peak_B"].idxmax())
            peak_B, peak_s = peaks.loc[node]
            memory_rows.append((name, float(peaks["peak_B"].median()), int(peak_B), node, float(peak_s)))
        display.close(f"memory of {len(memory_rows)} protocols measured")
        return pd.DataFrame(memory_rows, columns=["protocol", "median_B", "max_B", "node", "peak_s"])

    def _find_winner(
        self, frame: pd.DataFrame, metric: str, axes: Sequence[str], delivering: float, is_less_better: bool
    ) -> tuple[Any, ...]:
        """Return the row (best, mean, second, difference, low, high, verdict) of `winners` for the runs in ``frame``.

        ``frame`` has the runs of one combination of values of ``axes``. The winner has the least mean of ``metric`` if
        ``is_less_better``, else the greatest. Protocols with a mean delivery ratio below ``delivering`` do not take
        part.
        """
        nan = float("nan")
        by_protocol = frame.groupby("protocol", sort=False)
        means = by_protocol[metric].mean()[by_protocol["delivery_ratio"].mean() >= delivering].dropna()
        ranking = means.sort_values(ascending=is_less_better, kind="stable").index.tolist()
        if not ranking:
            return "", nan, "", nan, nan, nan, OPEN
        best_name, second_name = ranking[0], ranking[1] if len(ranking) > 1 else ""
        if not second_name:
            return best_name, float(means[best_name]), "", nan, nan, nan, OPEN
        paired_by = [name for name in self.table.axes if name != "protocol" and name not in axes]
        pairs = frame.pivot_table(index=paired_by, columns="protocol", values=metric)[[best_name, second_name]].dropna()
        mean_difference, half_width, _ = interval((pairs[best_name] - pairs[second_name]).tolist())
        verdict = CERTAIN if abs(mean_difference) > half_width else OPEN
        return (
            best_name,
            float(means[best_name]),
            second_name,
            mean_difference,
            mean_difference - half_width,
            mean_difference + half_width,
            verdict,
        )

    def _make_frame(self, metric: str, *axes: str | None) -> pd.DataFrame:
        if metric not in self.table.metrics:
            names_text = ", ".join(self.table.metrics)
            raise ParameterError(
                f"the argument `metric` is {metric!r}{meant(metric, self.table.metrics)}; "
                f"it must be one of {names_text}"
            )
        for x in axes:
            if x is not None and x not in self.axes:
                names_text = ", ".join(self.axes) or "none besides protocol and seed"
                raise ParameterError(
                    f"the argument `x` is {x!r}{meant(x, self.axes)}; "
                    f"it must be an axis of this comparison: {names_text}"
                )
        return self.table.to_pandas()

    def __repr__(self) -> str:
        axes = ", ".join(("protocol", *self.axes, "seed"))
        return f"Comparison of {', '.join(self.protocols)} over {axes} ({len(self.table)} runs): summary, paired, plot"

    def _repr_html_(self) -> str:
        run_table = self.to_pandas()
        metric_names = [name for name in MAIN if name in self.table.metrics and run_table[name].notna().any()]
        header_cells = "".join(f"<th>{escape(shown_as(name).title)}</th>" for name in metric_names)
        body_rows = "".join(
            f"<tr><th>{escape(protocol)}</th>{''.join(cells)}</tr>"
            for protocol, cells in zip(
                self.protocols, zip(*(self._format_cells(name) for name in metric_names), strict=True), strict=True
            )
        )
        runs = len(self.table) // len(self.protocols)
        axes_text = f" over all values of {' and '.join(self.axes)}" if self.axes else ""
        note_items = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        names_text = escape(", ".join(self.protocols))
        return (
            f"<p>{names_text}: means of {runs:,} runs each{axes_text}, ± half of their 95 % intervals</p>"
            f"<table><thead><tr><th></th>{header_cells}</tr></thead><tbody>{body_rows}</tbody></table>"
            f"<p>Conditions</p><ul>{note_items}</ul>"
        )

    def _format_cells(self, metric: str) -> list[str]:
        from workbench.sweeps.comparison.cells import cell_html

        metric_format = shown_as(metric)
        return [
            cell_html(metric_format, row.mean, row.high - row.mean, row.median)
            for row in self.summary(metric).itertuples()
        ]


def _compute_statistics(values: list[float], is_a_share: bool) -> tuple[float, ...]:
    """Return (mean, low, high, median, median_low, median_high, p90_low, p90_high, finite) of `Comparison.summary`.

    ``finite`` is the fraction of ``values`` that are finite. With ``is_a_share`` the values are shares (0 to 1), so
    that ``high`` is at most 1.
    """
    import numpy as np

    if not values:
        return (float("nan"),) * 9
    finite_values = [value for value in values if np.isfinite(value)]
    is_finite = len(finite_values) == len(values)
    mean_and_bounds = clipped_interval(values, is_a_share) if is_finite else (float("inf"), float("nan"), float("nan"))
    median = sorted(values)[(len(values) - 1) // 2]
    return (
        *mean_and_bounds,
        median,
        *percentile_bounds(values, 50),
        *percentile_bounds(values, 90),
        len(finite_values) / len(values),
    )

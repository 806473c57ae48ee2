"""How much protocols save relative to a baseline, computed from the results of a sweep.

    equal_parameter_savings(table, baseline)      saved share of the cost at each value of the parameter
    equal_coverage_savings(table, baseline)       saved share where each protocol reaches a given coverage
    sweep_chart(table, y)                         a metric against the parameter
    cost_chart(table)                             the cost against the coverage

Theory of operation
    Coverage is the share of nodes that a message reaches; costs are bytes sent. Both are means over seeds. The saving
    is 1 - cost / cost of the baseline.

    At equal coverage, each protocol is compared at its cheapest point with at least the given coverage. The candidates
    are the values of the sweep's parameter at which the coverage is high enough, and a point between the first of them
    and the value before it. At this point, linear interpolation gives exactly the coverage; it also gives the cost.

    The 95 % interval of a saving is computed with the jackknife: the saving is computed again with each seed left out.

Limits
    A protocol that never reaches the coverage has no saving there (NaN). The jackknife assumes independent seeds, and
    is rough where a curve jumps.

Reference
    B. Efron, C. Stein: The jackknife estimate of variance, Annals of Statistics 9(3), 1981.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import ParameterError
from workbench.sweeps import means
from workbench.sweeps.table import chart_lines
from workbench.views.carried import carries_sweep
from workbench.views.charts.static import line_chart
from workbench.views.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

BY, X = "protocol", "protocol.forwarding_probability"
KB = 1000.0
_SENT = "sent (KB)"


class _Grid:
    """Coverage (share of nodes that a message reaches) and cost of each protocol in a sweep, at each parameter value.

    names: the protocols.
    x: the values of the parameter, ascending.
    coverage, cost: {name of the protocol: array of shape (values of the parameter, seeds)}; the cost is in KB.
    """

    def __init__(self, frame: pd.DataFrame, by: str, x: str, baseline: str) -> None:
        self.names = list(dict.fromkeys(frame[by]))
        if baseline not in self.names:
            raise ParameterError(
                f"baseline is {baseline!r}; it must be one of the values of {by}: {', '.join(map(str, self.names))}"
            )
        self.x = np.array(sorted(set(frame[x])), dtype=float)
        self.coverage, self.cost = {}, {}
        for name, rows in frame.groupby(by, sort=False):
            self.coverage[name] = rows.pivot(index=x, columns="seed", values="coverage").sort_index().to_numpy()
            self.cost[name] = rows.pivot(index=x, columns="seed", values="bytes_sent").sort_index().to_numpy() / KB

    def means_without_seed(self, values: np.ndarray) -> list[np.ndarray]:
        """Return the means of ``values`` over all seeds, followed by the means with each seed left out.

        ``values``: an array of ``coverage`` or ``cost``. Each entry of the list is an array with a mean for each value
        of the parameter. With a single seed, the list has only the first entry.
        """
        seeds = values.shape[1]
        samples = [np.delete(values, seed, axis=1) for seed in range(seeds)] if seeds > 1 else []
        return [np.nanmean(sample, axis=1) for sample in (values, *samples)]


def equal_parameter_savings(table: Any, baseline: str, by: str = BY, x: str = X) -> pd.DataFrame:
    """Return coverage, cost and saving of each protocol, except the baseline, at each value of the parameter ``x``.

    ``baseline``: the protocol to compare with, a value in the column ``by`` of the table. The result has a row for each
    protocol and value, with these columns: the protocol, the value, coverage, baseline coverage, KB, baseline KB,
    saving, low, high. Coverage is the share of nodes that a message reaches. KB is the cost: the bytes that all nodes
    send in a run, as a mean. The saving is 1 - KB / baseline KB; low and high are the ends of its 95 % interval. Raises
    ParameterError for a baseline that is not in the sweep.
    """
    import pandas as pd

    grid = _Grid(table.to_pandas(), by, x, baseline)
    saving_rows = []
    for name in grid.names:
        if name == baseline:
            continue
        costs, baseline_costs = grid.means_without_seed(grid.cost[name]), grid.means_without_seed(grid.cost[baseline])
        savings = np.array(
            [1 - cost / baseline_cost for cost, baseline_cost in zip(costs, baseline_costs, strict=True)]
        )
        coverage, baseline_coverage = (np.nanmean(grid.coverage[key], axis=1) for key in (name, baseline))
        for index, value in enumerate(grid.x):
            measured_values = coverage[index], baseline_coverage[index], costs[0][index], baseline_costs[0][index]
            saving_rows.append((name, value, *measured_values, *_jackknife(savings[:, index])))
    columns = [by, x, "coverage", "baseline coverage", "KB", "baseline KB", "saving", "low", "high"]
    return pd.DataFrame(saving_rows, columns=columns)


def equal_coverage_savings(table: Any, baseline: str, coverage: float = 0.99, by: str = BY, x: str = X) -> pd.DataFrame:
    """Return the saving of each protocol when all protocols reach the same mean ``coverage``.

    Coverage is the share of nodes that a message reaches (0 to 1). Each protocol takes the cheapest value of the
    parameter ``x`` that reaches this coverage; between simulated values, coverage and cost are interpolated. The cost
    is the bytes that all nodes send in a run, as a mean. The saving is 1 - cost / cost of the baseline.

    ``baseline``: the protocol to compare with, a value in the column ``by`` of the table. The result has a row for each
    protocol, the baseline first, with these columns: the protocol, the value of ``x``, KB (the cost), saving, low,
    high. low and high are the ends of the 95 % interval of the saving. The numbers of a protocol that does not reach
    the coverage are NaN. Raises ParameterError for a baseline that is not in the sweep.
    """
    import pandas as pd

    grid = _Grid(table.to_pandas(), by, x, baseline)
    cheapest_points = {name: _find_cheapest_points(grid, name, coverage) for name in grid.names}
    saving_rows = []
    for name in sorted(grid.names, key=lambda name: name != baseline):
        savings = [
            1 - cost / baseline_cost
            for (_, cost), (_, baseline_cost) in zip(cheapest_points[name], cheapest_points[baseline], strict=True)
        ]
        interval = _jackknife(np.array(savings)) if name != baseline else (0.0, math.nan, math.nan)
        saving_rows.append((name, *cheapest_points[name][0], *interval))
    return pd.DataFrame(saving_rows, columns=[by, x, "KB", "saving", "low", "high"])


def _find_cheapest_points(grid: _Grid, name: str, coverage: float) -> list[tuple[float, float]]:
    """Return (parameter value, cost in KB) where the protocol ``name`` reaches ``coverage`` at the lowest cost.

    The result is a list: the first pair is computed from all seeds, each further pair with one seed left out. A pair is
    (NaN, NaN) if the protocol does not reach the coverage.
    """
    coverages, costs = grid.means_without_seed(grid.coverage[name]), grid.means_without_seed(grid.cost[name])
    return [
        _find_cheapest_on_curves(grid.x, reached, cost, coverage)
        for reached, cost in zip(coverages, costs, strict=True)
    ]


def _find_cheapest_on_curves(
    x: np.ndarray, coverages: np.ndarray, costs: np.ndarray, coverage: float
) -> tuple[float, float]:
    reached = np.flatnonzero(coverages >= coverage).tolist()
    if not reached:
        return math.nan, math.nan
    candidates = [(float(costs[index]), float(x[index])) for index in reached]
    index = reached[0]
    if index > 0:
        coverage_before, coverage_after = coverages[index - 1], coverages[index]
        crossing_share = (coverage - coverage_before) / (coverage_after - coverage_before)
        cost, parameter = (
            float(curve[index - 1] + crossing_share * (curve[index] - curve[index - 1])) for curve in (costs, x)
        )
        candidates.append((cost, parameter))
    cost, parameter = min(candidates)
    return parameter, cost


def _jackknife(values: np.ndarray) -> tuple[float, float, float]:
    """Return (the estimate from all seeds, low end, high end of its 95 % interval), computed with the jackknife.

    ``values``: the estimate from all seeds, followed by an estimate for each seed, computed without this seed. The
    ends are NaN if fewer than two seeds exist or a value is not finite.
    """
    estimate, estimates_without_seed = float(values[0]), values[1:]
    if len(estimates_without_seed) < 2 or not np.isfinite(values).all():
        return estimate, math.nan, math.nan
    seed_count = len(estimates_without_seed)
    half_width = means.student_t(seed_count - 1) * math.sqrt(
        (seed_count - 1) / seed_count * float(((estimates_without_seed - estimates_without_seed.mean()) ** 2).sum())
    )
    return estimate, estimate - half_width, estimate + half_width


# Charts


def sweep_chart(table: Any, y: str, x: str = X, by: str = BY, **options: Any) -> Drawing:
    """Draw a metric of a sweep against a parameter: a line of means for each value of ``by``, with 95 % intervals.

    Unlike the chart of `SweepTable.drawing`, it shows bytes in KB and shares on an axis from 0 to 1. Its legend has
    only the values of ``by``, without the name of that parameter. ``options``: keywords of `line_chart`, such as titles
    and labels. Raises ParameterError if ``x`` is not numeric.
    """
    summary = _convert_to_KB(table.summary(x, y, by), y)
    defaults = {
        "x_label": table.name_of(x),
        "y_label": _SENT if y == "bytes_sent" else table.name_of(y),
        "y_range": (0.0, 1.0) if means.is_share(y, summary["mean"]) else None,
        "note": f"mean and 95 % confidence interval over {int(summary['runs'].max())} seeds{table.radio_note}",
    }
    lines = chart_lines(summary, x, by, table.averaged_rows(summary, (by, x)))
    return carries_sweep(table, line_chart(lines, **{**defaults, **options}), y)


def cost_chart(table: Any, x: str = X, by: str = BY, **options: Any) -> Drawing:
    """Draw the cost in KB against the coverage (share of nodes that a message reaches), a line for each protocol.

    A line has a point for each value of the parameter ``x``.
    """
    cost = _convert_to_KB(table.summary(x, "bytes_sent", by), "bytes_sent")
    cost_table = cost.assign(coverage=table.summary(x, "coverage", by)["mean"])
    defaults = {"x_label": table.name_of("coverage"), "y_label": _SENT}
    lines = chart_lines(cost_table, "coverage", by, table.averaged_rows(cost, (by, x)))
    drawing = line_chart(lines, **{**defaults, **options})
    return carries_sweep(table, drawing, "bytes_sent", "coverage")


def _convert_to_KB(summary: pd.DataFrame, y: str) -> pd.DataFrame:
    if y != "bytes_sent":
        return summary
    return summary.assign(**{column: summary[column] / KB for column in ("mean", "low", "high")})

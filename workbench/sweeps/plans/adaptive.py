"""Sweeps with adaptive numbers of seeds: each combination of parameters runs until a metric's 95 % band is narrow.

The band is the 95 % confidence interval of the metric's mean over the runs (Student's).

Theory of operation
    All combinations begin with ``at_least`` seeds. If the band of a combination with n seeds is wider than
    ``narrower_than``, n is raised to n (width / narrower_than)^2, at most to 2 n and at most to ``at_most``. This is
    repeated until the band is narrow enough. All combinations use the same seeds in the same order.

Limits
    A combination stops as soon as its band is narrow, which favors bands that are narrow by chance. So a band contains
    the true mean in slightly less than 95 of 100 cases. At least ten seeds keep this effect small. If a metric is equal
    for the first ten seeds, its band has the width 0, and the combination is not run again.

Reference
    Y. Chow, H. Robbins: On the asymptotic theory of fixed-width sequential confidence intervals for the mean, Annals
    of Mathematical Statistics 36(2), 1965.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import ScenarioError
from workbench.sim.scenario import Scenario
from workbench.sweeps.design import PROBES, Design, evenly
from workbench.sweeps.means import interval
from workbench.sweeps.plan import Measure
from workbench.sweeps.plans.combined import Composed, Crossed, design_of
from workbench.sweeps.plans.rounds import Rounds, checked_number, repeats_of, values_of
from workbench.sweeps.table import SweepTable
from workbench.topology.graphs import is_number

if TYPE_CHECKING:
    import pandas as pd

MOST_RUNS = 1_000_000  # of one combination


class Repeated(Composed):
    """A plan that runs each point of the plan ``design`` with several seeds.

    The points of the plan ``repeats`` are the seeds. Point i of ``design`` runs with the first ``counts[i]`` of them.
    """

    def __init__(self, design: Design, repeats: Design, counts: Sequence[int]) -> None:
        self._crossed = Crossed(design, repeats)
        self._ends = np.cumsum(counts)
        self._counts = tuple(counts)
        self.paths = self._crossed.paths

    def __len__(self) -> int:
        return int(self._ends[-1])

    def parts(self, number: int) -> Iterable[tuple[Design, int]]:
        """Return the two points that point ``number`` combines: a combination of parameters, and a seed.

        Each is a pair (design, number of the point in this design).
        """
        index = int(np.searchsorted(self._ends, number, side="right"))
        repeat = number - (int(self._ends[index - 1]) if index else 0)
        return zip(self._crossed.factors, (index, repeat), strict=True)

    def labels_of(self, path: str) -> Sequence[Any]:
        """Return the labels (texts in tables) of all values of the varied parameter ``path``, such as "seed"."""
        return self._crossed.labels_of(path)

    def probes(self) -> Sequence[int]:
        """Return the numbers of the points to check before a sweep runs.

        For each combination in the `probes` of ``design``, the point with the first seed is checked. In addition,
        points that are evenly spaced over the whole plan are checked.
        """
        first_points = [0, *self._ends[:-1].tolist()]
        probes = [first_points[index] for index in self._crossed.factors[0].probes()]
        return sorted({*probes, *evenly(len(self), PROBES)})

    def describe(self) -> dict[str, Any]:
        """Return the description of the design as JSON values.

        The key "of" has the descriptions of the two designs: combinations and seeds. The key "runs" has the number of
        runs of each combination.
        """
        descriptions = [factor.describe() for factor in self._crossed.factors]
        return {"design": "Repeated", "points": len(self), "of": descriptions, "runs": list(self._counts)}

    def text(self) -> str:
        """Return a short description of the design, such as "protocol.ttl (3), each with 10 to 80 of seed (1000)"."""
        design, repeats = self._crossed.factors
        return f"{design.text()}, each with {min(self._counts)} to {max(self._counts)} of {repeats.text()}"


class Adaptive:
    """A sweep with an adaptive number of seeds for each combination, made by `adaptive`; ``run(out)`` runs it."""

    def __init__(
        self, rounds: Rounds, design: Design, repeats: Design, metric: str, narrower_than: float, at_least: int
    ) -> None:
        self._rounds, self._design, self._repeats = rounds, design, repeats
        self._metric, self._wanted, self._at_least = metric, narrower_than, at_least
        self.bands: pd.DataFrame | None = None

    def __repr__(self) -> str:
        return (
            f"Adaptive({self._design.text()}, until the band of {self._metric} is narrower than {self._wanted:g}, "
            f"{self._at_least} to {len(self._repeats)} runs each)"
        )

    def run(self, out: str | Path | None = None, runner: Any = None, progress: bool | None = None) -> SweepTable:
        """Run until the band of each combination is narrow enough, and return the table of all runs.

        The arguments are those of `Sweep.run`. Results in ``out`` are not computed again. Afterwards the attribute
        ``bands`` of this object is a DataFrame with a row for each combination: the labels of its values, runs, mean,
        low, high and is_narrow. is_narrow is False if the band is too wide after ``at_most`` seeds, or fewer than two
        runs have the metric.
        """
        counts = [self._at_least] * len(self._design)
        while True:
            design = Repeated(self._design, self._repeats, counts)
            table = self._rounds.run(design, out, runner, progress)
            groups = np.split(values_of(table, self._metric), np.cumsum(counts)[:-1])
            bands = [interval(metric_values[np.isfinite(metric_values)].tolist()) for metric_values in groups]
            next_counts = [self._choose_next_count(count, *band) for count, band in zip(counts, bands, strict=True)]
            if next_counts == counts:
                self.bands = self._make_bands_frame(bands)
                return table
            counts = next_counts

    def _choose_next_count(self, count: int, mean: float, half: float, runs: int) -> int:
        """Return the total number of runs to which a combination of parameter values is extended next.

        The combination has ``count`` runs so far; ``runs`` of them have the metric. Their confidence band is ``mean`` ±
        ``half``. The result is ``count`` if the band is narrow enough or ``runs`` is below 2.
        """
        if 2 * half <= self._wanted or runs < 2:
            return count
        needed_runs = math.ceil(count * (2 * half / self._wanted) ** 2)
        return min(max(needed_runs, count + 1), 2 * count, len(self._repeats))

    def _make_bands_frame(self, bands: list[tuple[float, float, int]]) -> pd.DataFrame:
        import pandas as pd

        band_rows = [
            {
                **self._design.labels(number),
                "runs": runs,
                "mean": mean,
                "low": mean - half_width,
                "high": mean + half_width,
                "is_narrow": 2 * half_width <= self._wanted,
            }
            for number, (mean, half_width, runs) in enumerate(bands)
        ]
        return pd.DataFrame(band_rows)


def adaptive(
    scenario: Scenario,
    over: Mapping[str, Any] | Design,
    metric: str = "delivery_ratio",
    *,
    narrower_than: float,
    at_least: int = 10,
    at_most: int = 1000,
    seeds: Design | None = None,
    engine: str = "auto",
    measure: Measure | None = None,
) -> Adaptive:
    """Return a sweep that runs each combination of ``over`` until a metric's band is narrower than ``narrower_than``.

    The band is the 95 % confidence interval of the mean; its width is in the metric's unit. Each combination runs with
    ``at_least`` to ``at_most`` seeds. ``seeds`` is a plan such as `paired_seeds`, whose points are used in order; by
    default it has the seeds 1 to ``at_most``. ``engine`` and ``measure`` are those of `Sweep`. Raises ScenarioError for
    an invalid scenario or parameter.

    >>> import workbench as wb
    >>> workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=2, what="TEMP IS 30", every_s=1)]
    >>> scenario = wb.Scenario(wb.topology.line(3), wb.Flooding(), workload, duration_s=10)
    >>> narrow = wb.plans.adaptive(scenario, {"radio.loss": [0.0, 0.2]}, narrower_than=0.1)
    >>> table = narrow.run(runner=wb.LocalRunner())
    >>> narrow.bands["is_narrow"].tolist()
    [True, True]
    """
    design = design_of(over)
    if not is_number(narrower_than) or narrower_than <= 0:
        raise ScenarioError(f"the argument `narrower_than` is {narrower_than!r:.60}; it must be a number above 0")
    at_most = checked_number("at_most", at_most, 2, MOST_RUNS)
    repeats = repeats_of(at_most if seeds is None else seeds)
    at_least = checked_number("at_least", at_least, 2, len(repeats))
    rounds = Rounds(scenario, engine, measure)
    plan = Adaptive(rounds, design, repeats, metric, float(narrower_than), at_least)
    rounds.sweep(Repeated(design, repeats, [at_least] * len(design)))  # Raises now for an invalid point.
    return plan

"""Rounds: consecutive sweeps of one scenario into the same folder or memory, for plans that depend on results.

Each round is a sweep of the points of all earlier rounds and of new points. The results of earlier rounds are stored,
so only the new points run. If a plan was stopped and is started again, it reads the stored results, makes the same
decisions as before, and continues with the points that are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import ParameterError, ScenarioError
from workbench.sim.scenario import Scenario
from workbench.suggestion import meant
from workbench.sweeps.design import Design
from workbench.sweeps.plan import Measure
from workbench.sweeps.plans.combined import design_of
from workbench.sweeps.plans.paired import seeds
from workbench.sweeps.sweep import Sweep
from workbench.sweeps.table import SweepTable
from workbench.topology.graphs import is_whole


class Rounds:
    """A series of sweeps of one scenario, each of which reuses the results of the sweeps before."""

    def __init__(self, scenario: Scenario, engine: str, measure: Measure | None) -> None:
        self._scenario, self._engine, self._measure = scenario, engine, measure
        self._last: Sweep | None = None

    def sweep(self, design: Design) -> Sweep:
        """Return a new sweep of a design, which reuses the results of the previous sweep from memory."""
        sweep = Sweep(self._scenario, design, self._engine, self._measure)
        if self._last is not None:
            sweep.remember(self._last)
        self._last = sweep
        return sweep

    def run(self, design: Design, out: str | Path | None, runner: Any, progress: bool | None) -> SweepTable:
        """Run the points of a design that have no stored result, and return the table of all points of the design."""
        return self.sweep(design).run(out=out, runner=runner, progress=progress)


def values_of(table: SweepTable, metric: str) -> np.ndarray:
    """Return the values of a metric at all points of a table, in the order of its rows (float64; NaN if missing).

    Raises ParameterError for an unknown metric.
    """
    metric_names = ("wall_s", *table.metrics)
    if metric not in metric_names:
        raise ParameterError(
            f"{metric!r} is not a metric of this sweep{meant(metric, metric_names)}; "
            f"its metrics are {', '.join(metric_names)}"
        )
    return table.to_pandas()[metric].to_numpy(float)


def repeats_of(choice: int | Design | Mapping[str, Any]) -> Design:
    """Return the plan of the seeds with which each point of another plan runs.

    ``choice`` is a whole number n (the seeds 1 to n), a plan such as `paired_seeds` (returned unchanged), or a mapping
    {path: values} (the grid of all combinations). Raises ScenarioError if the plan does not vary the seed.
    """
    if is_whole(choice):
        return seeds(int(choice))  # type: ignore[arg-type]
    design = design_of(choice)
    if "seed" not in design.paths:
        raise ScenarioError(
            f"the argument `seeds` is a plan of {design.text()}; "
            "it must vary the seed, as wb.plans.paired_seeds(30) does"
        )
    return design


def checked_number(name: str, value: Any, low: int, high: int) -> int:
    """Return ``value`` as int. Raises ScenarioError unless it is a whole number from ``low`` to ``high``.

    ``name`` is the name of the argument in the message.
    """
    if not is_whole(value) or not low <= value <= high:
        raise ScenarioError(f"the argument `{name}` is {value!r:.60}; it must be a whole number from {low} to {high}")
    return int(value)

"""What plans that go by results share: sweep after sweep of one scenario, into the same folder or the same memory.

Each round is a sweep of all points so far. The store has those that were run already, in this round or before a stop,
so a driver decides the same again when it is started again, and runs only what is new.
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
    """Sweeps of one scenario that share what they have found."""

    def __init__(self, scenario: Scenario, engine: str, measure: Measure | None) -> None:
        self._scenario, self._engine, self._measure = scenario, engine, measure
        self._last: Sweep | None = None

    def sweep(self, design: Design) -> Sweep:
        """The sweep of a design; in memory it has the results of the last one."""
        sweep = Sweep(self._scenario, design, self._engine, self._measure)
        if self._last is not None:
            sweep.remember(self._last)
        self._last = sweep
        return sweep

    def run(self, design: Design, out: str | Path | None, runner: Any, progress: bool | None) -> SweepTable:
        """The table of a design, of whose points only the new ones are run."""
        return self.sweep(design).run(out=out, runner=runner, progress=progress)


def values_of(table: SweepTable, metric: str) -> np.ndarray:
    """A metric of all points in order, float64, NaN where there is none; ParameterError if the runs do not have it."""
    known = ("wall_s", *table.metrics)
    if metric not in known:
        raise ParameterError(f"{metric!r} is no metric of this sweep{meant(metric, known)}; it has {', '.join(known)}")
    return table.to_pandas()[metric].to_numpy(float)


def repeats_of(given: int | Design | Mapping[str, Any]) -> Design:
    """With what each point is run again: so many seeds, or a plan of seeds as it is."""
    if is_whole(given):
        return seeds(int(given))  # type: ignore[arg-type]
    design = design_of(given)
    if "seed" not in design.paths:
        raise ScenarioError(f"seeds are {design.text()}; they must vary the seed, as wb.plans.paired_seeds(30) does")
    return design


def checked_number(name: str, value: Any, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``; ScenarioError for another."""
    if not is_whole(value) or not low <= value <= high:
        raise ScenarioError(f"{name} is {value!r:.60}; it must be a whole number from {low} to {high}")
    return int(value)

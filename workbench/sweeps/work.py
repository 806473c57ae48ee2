"""The work of a sweep: one point run, and the row it gives. Workers import this and little else."""

from __future__ import annotations

import time
import traceback
from typing import Any, NamedTuple

from workbench.errors import ScenarioError, WorkbenchError
from workbench.sweeps.plan import Measure, Plan


class Row(NamedTuple):
    """What came of a point: which engine ran, how long (s), its metrics; or why it failed, in one sentence."""

    number: int
    engine: str
    wall_s: float
    error: str | None
    metrics: dict[str, float]


def run_point(plan: Plan, number: int) -> Row:
    """Run one point. Whatever goes wrong in it (a user's filter, say) is told in its row and ends no other's run."""
    begin = time.perf_counter()
    try:
        scenario = plan.scenario_of(number)
        begin = time.perf_counter()
        run = scenario.run(engine=plan.engine, record="metrics" if plan.measure is None else "trace")
        metrics = {str(name): float(value) for name, value in run.metrics.items()}
        if plan.measure is not None:
            metrics.update(_measured(plan.measure, run, metrics))
        return Row(number, run.engine, time.perf_counter() - begin, None, metrics)
    except Exception as error:
        return Row(number, plan.engine, time.perf_counter() - begin, _sentence(error), {})


def _measured(measure: Measure, run: Any, metrics: dict[str, float]) -> dict[str, float]:
    found = measure(run)
    try:
        numbers = {str(name): float(value) for name, value in found.items()}
    except (AttributeError, TypeError, ValueError):
        raise ScenarioError(f"the measure answered {found!r:.80}; it must answer {{name: number}}") from None
    for name in numbers:
        if name in metrics:
            raise ScenarioError(f"the measure has a metric {name}, which every run has already; give it another name")
    return numbers


def _sentence(error: Exception) -> str:
    """What happened; with the place if it was in code that is not ours: the user's, or a filter's that is named."""
    if isinstance(error, WorkbenchError) and error.__cause__ is None:
        return str(error)
    told = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
    last = traceback.extract_tb((error.__cause__ or error).__traceback__)[-1]
    return f"{told} (in {last.name}, {last.filename} line {last.lineno})"

"""Who runs the points of a sweep: anything with a ``run`` like this. `spark.SparkRunner` is the other one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from workbench.sweeps.plan import Plan
from workbench.sweeps.work import Row, run_point


class Runner(Protocol):
    """Runs points of a plan and hands out their rows, in any order, as they are finished."""

    def run(self, plan: Plan, numbers: Sequence[int], moving: Callable[[float], None]) -> Iterator[list[Row]]:
        """Rows of the points ``numbers``, some at a time: what was handed out is kept even if the rest never comes.

        ``moving`` may be told about how many points are finished beyond those handed out.
        """
        ...


class LocalRunner:
    """One point after the other in this process: for small sweeps, tests and debugging."""

    def run(self, plan: Plan, numbers: Sequence[int], moving: Callable[[float], None]) -> Iterator[list[Row]]:
        """Rows of the points ``numbers``, one by one."""
        for number in numbers:
            yield [run_point(plan, number)]

    def __repr__(self) -> str:
        return "LocalRunner()"

"""Who runs the points of a sweep: anything with a ``run`` like this.

LocalRunner (here) runs them in this process, `processes.ProcessRunner` on all cores of this machine, and
`spark.SparkRunner` on a cluster. All of them give the same rows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from workbench.sweeps.plan import Plan
from workbench.sweeps.work import Row, run_point


class Runner(Protocol):
    """Runs points of a plan and hands out their rows, in any order, as they are finished."""

    def run(self, plan: Plan, numbers: Sequence[int], moving: Callable[[float], None]) -> Iterator[list[Row]]:
        """Rows of the points ``numbers``, some at a time: what was handed out is kept even if the rest never comes.

        ``moving`` may be told about how many points are finished beyond those handed out. A runner may also have
        ``doing()``, which says what each of its workers does: a list of a few words each.
        """
        ...


class LocalRunner:
    """One point after the other in this process: for tests and debugging. A point that does not end is waited for."""

    def run(self, plan: Plan, numbers: Sequence[int], moving: Callable[[float], None]) -> Iterator[list[Row]]:
        """Rows of the points ``numbers``, one by one."""
        for number in numbers:
            yield [run_point(plan, number)]

    def __repr__(self) -> str:
        return "LocalRunner()"


def fitting(plan: Plan, count: int) -> Runner:
    """The runner for ``count`` points of a plan where nobody chose one.

    Spark if a session of it is there: somebody means to use that. Else the processes of this machine, which need no
    Java and are quicker than Spark on the same cores. A single point runs here, and so does all where there is no fork.
    """
    if _has_spark():
        from workbench.sweeps.spark import SparkRunner

        return SparkRunner()
    if count > 1 and hasattr(os, "fork"):
        from workbench.sweeps.processes import ProcessRunner

        return ProcessRunner()
    return LocalRunner()


def _has_spark() -> bool:
    """Whether this process has a session of Spark. It is not imported to find out."""
    classic: Any = sys.modules.get("pyspark.core.context")
    remote: Any = sys.modules.get("pyspark.sql.connect.session")
    if classic is not None and classic.SparkContext._active_spark_context is not None:
        return True
    return remote is not None and remote.SparkSession.getActiveSession() is not None

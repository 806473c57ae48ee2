"""The interface of runners, which run the points of a sweep, and the choice of a runner.

`LocalRunner` runs points in this process, `processes.ProcessRunner` on all cores of this machine, and
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
    """The interface of a runner, which runs points of a plan and yields their rows as the points finish."""

    def run(self, plan: Plan, numbers: Sequence[int], report_progress: Callable[[float], None]) -> Iterator[list[Row]]:
        """Run the points ``numbers`` of ``plan`` and yield lists of result rows as the points finish.

        The caller stores each list before it continues the iterator, so yielded rows survive an interruption.
        The runner may call ``report_progress`` with the estimated number of finished points whose rows it has not
        yielded yet. A runner may also have ``doing()``, which returns a short text on the work of each worker.
        """
        ...


class LocalRunner:
    """A runner that runs points one after the other in this process, without a time limit: for tests and debugging."""

    def run(self, plan: Plan, numbers: Sequence[int], report_progress: Callable[[float], None]) -> Iterator[list[Row]]:
        """Run the points ``numbers`` of ``plan`` and yield each result row in a list of its own.

        ``report_progress`` is not called: the display is updated after each row.
        """
        for number in numbers:
            yield [run_point(plan, number)]

    def __repr__(self) -> str:
        return "LocalRunner()"


def default_runner(plan: Plan, count: int) -> Runner:
    """Return the default runner for ``count`` points of a plan.

    If a Spark session is active, the points run on Spark. Otherwise points run in processes of this machine, which are
    faster than Spark on the same cores. A single point runs in this process, as do all points on a system without fork.
    """
    if _has_spark():
        from workbench.sweeps.spark import SparkRunner

        return SparkRunner()
    if count > 1 and hasattr(os, "fork"):
        from workbench.sweeps.processes import ProcessRunner

        return ProcessRunner()
    return LocalRunner()


def _has_spark() -> bool:
    """Return whether this process has an active Spark session, without importing Spark."""
    classic_module: Any = sys.modules.get("pyspark.core.context")
    connect_module: Any = sys.modules.get("pyspark.sql.connect.session")
    if classic_module is not None and classic_module.SparkContext._active_spark_context is not None:
        return True
    return connect_module is not None and connect_module.SparkSession.getActiveSession() is not None

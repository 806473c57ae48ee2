"""A session of Spark for pipelines: it knows the workbench's data sources, and is quick on one machine."""

from __future__ import annotations

from typing import Any

from workbench.sweeps.processes import cores
from workbench.sweeps.spark.session import opened

_TASKS_A_CORE = 2
_SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.cteRecursionRowLimit": "-1",  # paths of many runs are more than a million hops
}


def spark(master: str = "local[*]", **settings: Any) -> Any:
    """The session that is there, or a new one; the formats "workbench.trace" and "workbench.readings" work in it.

    ``settings`` are Spark's, without "spark." and with underscores for dots: ``driver_memory="2g"``. They count if the
    session is new. WorkbenchError if Spark cannot be started, with what to do about it.
    """
    here = {"spark.sql.shuffle.partitions": str(_TASKS_A_CORE * cores())} if master.startswith("local") else {}
    asked = {f"spark.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
    session = opened(master, {**_SETTINGS, **here, **asked}).spark
    register(session)
    return session


def register(session: Any) -> None:
    """Make the workbench's data sources known to a session."""
    from workbench.pipelines.live.spark import ReadingsSource
    from workbench.pipelines.trace.source import TraceSource

    session.dataSource.register(TraceSource)
    session.dataSource.register(ReadingsSource)

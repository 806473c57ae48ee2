"""A Spark session for pipelines: with the workbench's data sources, and settings that suit one machine."""

from __future__ import annotations

from typing import Any

from workbench.sweeps.processes import cores
from workbench.sweeps.spark.session import open_session

_TASKS_A_CORE = 2
_SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.cteRecursionRowLimit": "-1",  # the default is a million hops, too few for many runs
}


def spark(master: str = "local[*]", **settings: Any) -> Any:
    """Return the active Spark session or a new one, with the formats "workbench.trace" and "workbench.readings".

    ``settings`` are settings of Spark, written without "spark." and with underscores for dots: ``driver_memory="2g"``.
    They apply only to a new session. Raises WorkbenchError, which names a remedy, if Spark cannot be started.
    """
    local_settings = (
        {"spark.sql.shuffle.partitions": str(_TASKS_A_CORE * cores())} if master.startswith("local") else {}
    )
    requested = {f"spark.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
    session = open_session(master, {**_SETTINGS, **local_settings, **requested}).spark
    register(session)
    return session


def register(session: Any) -> None:
    """Register the data sources "workbench.trace" and "workbench.readings" in a Spark session."""
    from workbench.pipelines.live.spark import ReadingsSource
    from workbench.pipelines.trace.source import TraceSource

    session.dataSource.register(TraceSource)
    session.dataSource.register(ReadingsSource)

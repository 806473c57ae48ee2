"""A Spark session for pipelines: with the workbench's data sources, and settings for queries.

Theory of operation
    A session that a `SparkRunner` starts has settings for sweeps, in which Java only distributes tasks. So Java starts
    quickly and optimizes little, and a failed task is not repeated, because the sweep itself repeats its points. In a
    query, Java computes, and Spark must repeat a task whose worker is lost. So `spark` starts Java with both
    just-in-time compilers and the parallel garbage collector, and allows four tries of each task. On this machine the
    number of tries is part of the master's URL: Spark ignores the setting ``spark.task.maxFailures`` there.

    Workers on other machines get the package from this process (`shipping`).
"""

from __future__ import annotations

import re
from typing import Any

from workbench.pipelines.shipping import ship
from workbench.sweeps.processes import cores
from workbench.sweeps.spark.session import LOG_ERRORS_ONLY, REMOTE, open_session

TRIES = 4  # of a task
_TASKS_A_CORE = 2
_QUERY_SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.cteRecursionRowLimit": "-1",  # the default is a million hops, too few for many runs
}
_JAVA_SETTINGS = {
    "spark.app.name": "workbench pipelines",
    "spark.driver.extraJavaOptions": f"-XX:+UseParallelGC {LOG_ERRORS_ONLY}",
    "spark.task.maxFailures": str(TRIES),
}
_LOCAL_MASTER = re.compile(r"local(?:\[(\d+|\*)\])?")


def spark(master: str = "local[*]", **settings: Any) -> Any:
    """Return the active Spark session or a new one, with the workbench's formats.

    The formats are "workbench.log", "workbench.trace" and "workbench.readings".

    ``master`` is "local[*]" (this machine, a task for each core), "local[2]", the URL of a cluster
    ("spark://host:7077") or of Spark Connect ("sc://host:15002"). ``settings`` are settings of Spark, written without
    "spark." and with underscores for dots: ``driver_memory="2g"``.

    ``master`` and ``settings`` apply only to a new session. An active session keeps its own settings: if a
    `SparkRunner` has started it, these are the settings for sweeps. Raises WorkbenchError, which names a remedy, if
    Spark cannot be started.
    """
    local_settings = (
        {"spark.sql.shuffle.partitions": str(_TASKS_A_CORE * cores())} if master.startswith("local") else {}
    )
    java_settings = {} if master.startswith(REMOTE) else _JAVA_SETTINGS
    requested = {f"spark.{name.replace('_', '.')}": str(value) for name, value in settings.items()}
    session_settings = {**_QUERY_SETTINGS, **java_settings, **local_settings, **requested}
    session = open_session(_add_tries(master), session_settings).spark
    register(session)
    return session


def _add_tries(master: str) -> str:
    """Add the number of tries of a task to the URL of a master on this machine: "local[2]" -> "local[2,4]".

    Other URLs are returned unchanged.
    """
    local_master = _LOCAL_MASTER.fullmatch(master)
    return f"local[{local_master[1] or 1},{TRIES}]" if local_master else master


def register(session: Any) -> None:
    """Register the data sources "workbench.log", "workbench.trace" and "workbench.readings" in a Spark session."""
    from workbench.pipelines.live.spark import ReadingsSource
    from workbench.pipelines.logs.source import LogSource
    from workbench.pipelines.trace.source import TraceSource

    ship(session)  # A data source is sent by its name.
    session.dataSource.register(LogSource)
    session.dataSource.register(TraceSource)
    session.dataSource.register(ReadingsSource)

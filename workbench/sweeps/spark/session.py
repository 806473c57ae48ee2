"""The Spark session of a sweep: the active one or a new one, on this machine, on a cluster or by Spark Connect.

A classic session runs Java beside this process; a session of Spark Connect runs on a server. `open_session` returns a
`Session`, the common interface of both.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from workbench import java
from workbench.errors import WorkbenchError

REMOTE = "sc://"
CONNECT_REMEDY = "pip install 'sensor-pubsub-workbench[connect]', or pip install 'pyspark[connect]'"
# This halves the time to start; Java only distributes tasks, so it needs no full optimization.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LOG_ERRORS_ONLY = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').resolve().as_uri()}"
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_HARMLESS_WARNING = "WARNING: Using incubator modules: jdk.incubator.vector"
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_MANY = 100_000
_OUR_ERROR = f"{WorkbenchError.__module__}.{WorkbenchError.__qualname__}: "


class Session:
    """The interface of a Spark session for sweeps: running and cancelling tasks, sending files to workers.

    ``spark`` is the session of pyspark. ``is_here`` is True if its workers are on this machine and can read its files.
    """

    def __init__(self, spark: Any, is_here: bool) -> None:
        self.spark = spark
        self.is_here = is_here

    def run_task(self, group: str, mapper: Callable[..., Any], schema: pa.Schema) -> pa.Table:
        """Call ``mapper`` on a worker, by ``mapInArrow`` on a table of one row, and return its results as a table.

        ``mapper`` is a function from an iterator of Arrow batches to an iterator of Arrow batches with the schema
        ``schema``. ``group`` is the name of the job group, by which the task can be cancelled.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        self.set_group(group)
        return self.spark.range(0, 1, 1, 1).mapInArrow(mapper, from_arrow_schema(schema)).toArrow()

    def set_group(self, group: str) -> None:
        """Assign the jobs that this thread starts from now on to the job group ``group``."""
        raise NotImplementedError

    def cancel(self, group: str) -> None:
        """Cancel all jobs of the job group ``group``."""
        raise NotImplementedError

    def send_file(self, path: str) -> None:
        """Send a file to each worker, under its own name, for all later tasks."""
        raise NotImplementedError

    @property
    def cores(self) -> int:
        """The number of tasks that the workers known to Spark can run at once."""
        raise NotImplementedError


class ClassicSession(Session):
    """A classic session, with Java beside this process."""

    def set_group(self, group: str) -> None:
        """Assign the jobs that this thread starts from now on to the job group ``group``."""
        self.spark.sparkContext.setJobGroup(group, "sweep", interruptOnCancel=True)

    def cancel(self, group: str) -> None:
        """Cancel all jobs of the job group ``group``."""
        self.spark.sparkContext.cancelJobGroup(group)

    def send_file(self, path: str) -> None:
        """Send a file to each worker, under its own name, for all later tasks."""
        self.spark.sparkContext.addFile(path)

    @property
    def cores(self) -> int:
        """The number of tasks that the workers known to Spark can run at once."""
        return max(1, self.spark.sparkContext.defaultParallelism)


class ConnectSession(Session):
    """A session of Spark Connect, on a server."""

    def set_group(self, group: str) -> None:
        """Assign the jobs that this thread starts from now on to the job group ``group``."""
        self.spark.addTag(group)

    def cancel(self, group: str) -> None:
        """Cancel all jobs of the job group ``group``."""
        self.spark.interruptTag(group)

    def send_file(self, path: str) -> None:
        """Send a file to each worker, under its own name, for all later tasks."""
        self.spark.addArtifacts(path, file=True)

    @cached_property
    def cores(self) -> int:
        """The number of tasks that can run at once: the number of partitions into which Spark divides a large range."""
        return self.spark.range(_MANY).selectExpr("spark_partition_id()").distinct().count()


def open_session(master: str, config: Mapping[str, str]) -> Session:
    """Return the active Spark session as a `Session`; without one, start it with the URL ``master``.

    ``config`` has the settings of a new session. Raises WorkbenchError, which names a remedy, if the start fails.
    """
    from pyspark import SparkContext

    connect_module: Any = sys.modules.get("pyspark.sql.connect.session")
    active_session = connect_module.SparkSession.getActiveSession() if connect_module else None
    if active_session is not None:
        return ConnectSession(active_session, is_here=False)
    if master.startswith(REMOTE) and SparkContext._active_spark_context is None:
        return ConnectSession(_connect(master, config), is_here=False)
    spark = session(master, config)
    return ClassicSession(spark, is_here=re.match(r"local($|\[)", spark.sparkContext.master) is not None)


def _connect(master: str, config: Mapping[str, str]) -> Any:
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError:
        raise WorkbenchError(f"Spark Connect needs packages that are missing: {CONNECT_REMEDY}") from None
    builder = SparkSession.builder.remote(master)
    for setting_name, setting_value in config.items():
        builder = builder.config(setting_name, setting_value)
    try:
        spark = builder.create()
        spark.range(1).count()  # `create` sends nothing to the server
    except Exception as error:
        raise WorkbenchError(f"Spark Connect cannot reach {master!r}: {reason(error)}") from None
    return spark


def reason(error: Exception) -> str:
    """Return the line of a Spark error that explains it: the first that names an exception, or else the first line."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    exception_lines = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return (exception_lines or lines or [type(error).__name__])[0].removeprefix(_OUR_ERROR)


def session(master: str, config: Mapping[str, str]) -> Any:
    """Return this process's active Spark session, or start one with the URL ``master`` and the settings ``config``.

    Raises WorkbenchError if Java is missing or the start fails.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    _check_java()
    # Workers must use this Python, not the first one on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.extraJavaOptions": f"{QUICK_START} {LOG_ERRORS_ONLY}",
        # A sweep itself repeats lost tasks and finds the point that causes the loss.
        "spark.task.maxFailures": "1",
        # A cancelled worker has nothing to clean up, so the default grace period of 2 s is not needed.
        "spark.python.task.killTimeout": "100ms",
        **_QUIET,
        **(_LOOPBACK if master.startswith("local") else {}),
        **config,
    }
    with _keep_interrupt_handler(), tempfile.TemporaryFile() as output:
        try:
            _start_spark(master, settings, output)
            return SparkSession.builder.getOrCreate()
        except Exception as error:
            cause = _read_java_output(output) if "JAVA_GATEWAY_EXITED" in str(error) else reason(error)
            raise WorkbenchError(f"Spark did not start with master {master!r}: {cause}") from None


def _start_spark(master: str, settings: Mapping[str, str], output: IO[bytes]) -> None:
    """Start Spark with the URL ``master`` and the ``settings``.

    The file ``output`` receives Java's output, for the caller's message if the start fails.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf().setMaster(master).setAppName("workbench sweep").setAll(list(settings.items()))
    # Java outlives a stopped session and can be used again.
    gateway = SparkContext._gateway or launch_gateway(conf, {"stdout": output, "stderr": output})
    SparkContext(conf=conf, gateway=gateway)


def _read_java_output(output: IO[bytes]) -> str:
    """Return the lines that Java has printed into ``output`` as one text, without stack traces."""
    output.seek(0)
    lines = output.read().decode(errors="replace").splitlines()
    return "; ".join(line for line in lines if line.strip() and not line[0].isspace() and line != _HARMLESS_WARNING)


@contextmanager
def _keep_interrupt_handler() -> Iterator[None]:
    """Restore the Ctrl-C handler when the context ends.

    When Spark starts, it installs a handler that cancels all jobs; a sweep cancels only its own jobs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def _check_java() -> None:
    version, is_ok = java.find_java()
    if not is_ok:
        raise WorkbenchError(
            f"Spark needs Java {java.OLDEST} or newer; found: {version or 'none'}; {java.REMEDY}; "
            "without it, run the sweep with runner=ProcessRunner() or runner=LocalRunner()"
        )

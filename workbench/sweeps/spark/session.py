"""The session of Spark that a sweep uses: one that is there, or a new one, on this machine, on a cluster or by Connect.

`opened` gives a `Session`, which has what a sweep asks of either kind: a classic session lives in this process beside a
Java of its own, one of Spark Connect is at the other end of a line.
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
# Half the time to start: the Java side only deals out tasks, so it need not compile itself to the last.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_ERRORS_ALONE = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').resolve().as_uri()}"
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_JAVA_ALWAYS_SAYS = "WARNING: Using incubator modules: jdk.incubator.vector"
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
_MANY = 100_000
_OUR_ERROR = f"{WorkbenchError.__module__}.{WorkbenchError.__qualname__}: "


class Session:
    """A session of Spark as a sweep needs it: tasks, files for workers, and an end to what was begun.

    ``is_here``: its workers are on this machine, and find its files.
    """

    def __init__(self, spark: Any, is_here: bool) -> None:
        self.spark = spark
        self.is_here = is_here

    def run_task(self, group: str, mapper: Callable[..., Any], schema: pa.Schema) -> pa.Table:
        """Run one task, as a job of its own in a group: what ``mapInArrow`` makes of one row."""
        from pyspark.sql.pandas.types import from_arrow_schema

        self.put_into(group)
        return self.spark.range(0, 1, 1, 1).mapInArrow(mapper, from_arrow_schema(schema)).toArrow()

    def put_into(self, group: str) -> None:
        """Put the jobs that this thread begins into a group."""
        raise NotImplementedError

    def cancel(self, group: str) -> None:
        """End the jobs of a group."""
        raise NotImplementedError

    def send_file(self, path: str) -> None:
        """Have a file on each worker from the next task on, under its name."""
        raise NotImplementedError

    @property
    def cores(self) -> int:
        """How many tasks can run at once, as far as Spark knows its workers by now."""
        raise NotImplementedError


class ClassicSession(Session):
    """A session with Java beside this process."""

    def put_into(self, group: str) -> None:
        """Put the jobs that this thread begins into a group."""
        self.spark.sparkContext.setJobGroup(group, "sweep", interruptOnCancel=True)

    def cancel(self, group: str) -> None:
        """End the jobs of a group."""
        self.spark.sparkContext.cancelJobGroup(group)

    def send_file(self, path: str) -> None:
        """Have a file on each worker from the next task on, under its name."""
        self.spark.sparkContext.addFile(path)

    @property
    def cores(self) -> int:
        """How many tasks can run at once, as far as Spark knows its workers by now."""
        return max(1, self.spark.sparkContext.defaultParallelism)


class ConnectSession(Session):
    """A session at the other end of a line."""

    def put_into(self, group: str) -> None:
        """Put the jobs that this thread begins into a group."""
        self.spark.addTag(group)

    def cancel(self, group: str) -> None:
        """End the jobs of a group."""
        self.spark.interruptTag(group)

    def send_file(self, path: str) -> None:
        """Have a file on each worker from the next task on, under its name."""
        self.spark.addArtifacts(path, file=True)

    @cached_property
    def cores(self) -> int:
        """How many tasks can run at once: Spark cuts a range into as many parts."""
        return self.spark.range(_MANY).selectExpr("spark_partition_id()").distinct().count()


def opened(master: str, config: Mapping[str, str]) -> Session:
    """The session that is there, or a new one; WorkbenchError if it cannot be had, with what to do about it."""
    from pyspark import SparkContext

    remote: Any = sys.modules.get("pyspark.sql.connect.session")
    active = remote.SparkSession.getActiveSession() if remote else None
    if active is not None:
        return ConnectSession(active, is_here=False)
    if master.startswith(REMOTE) and SparkContext._active_spark_context is None:
        return ConnectSession(_connected(master, config), is_here=False)
    spark = session(master, config)
    return ClassicSession(spark, is_here=re.match(r"local($|\[)", spark.sparkContext.master) is not None)


def _connected(master: str, config: Mapping[str, str]) -> Any:
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError:
        raise WorkbenchError(f"Spark Connect needs packages that are missing: {CONNECT_REMEDY}") from None
    builder = SparkSession.builder.remote(master)
    for name, value in config.items():
        builder = builder.config(name, value)
    try:
        spark = builder.create()
        spark.range(1).count()  # `create` asks the server nothing
    except Exception as error:
        raise WorkbenchError(f"Spark Connect has no answer from {master!r}: {reason(error)}") from None
    return spark


def reason(error: Exception) -> str:
    """The line of a Spark error that says what happened: the first that names an exception, or just the first."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return (raised or lines or [type(error).__name__])[0].removeprefix(_OUR_ERROR)


def session(master: str, config: Mapping[str, str]) -> Any:
    """The classic session that is there, or a new one; WorkbenchError if there is no Java for it, or no start."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    _check_java()
    # Workers have to be of this Python, not of the first one on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.extraJavaOptions": f"{_QUICK_START} {_ERRORS_ALONE}",
        # A sweep runs again what was lost, and finds the point that is to blame.
        "spark.task.maxFailures": "1",
        # A cancelled worker is in the middle of a run and has nothing to tidy up: no 2 s of grace.
        "spark.python.task.killTimeout": "100ms",
        **_QUIET,
        **(_LOOPBACK if master.startswith("local") else {}),
        **config,
    }
    with _interrupts_left_alone(), tempfile.TemporaryFile() as said:
        try:
            _start(master, settings, said)
            return SparkSession.builder.getOrCreate()
        except Exception as error:
            why = _last_words(said) if "JAVA_GATEWAY_EXITED" in str(error) else reason(error)
            raise WorkbenchError(f"Spark did not start with master {master!r}: {why}") from None


def _start(master: str, settings: Mapping[str, str], said: IO[bytes]) -> None:
    """Start Java with its output in a file: it goes into the message if that fails, and else nobody wants it."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf().setMaster(master).setAppName("workbench sweep").setAll(list(settings.items()))
    # Java outlives a session that was stopped and is used again.
    gateway = SparkContext._gateway or launch_gateway(conf, {"stdout": said, "stderr": said})
    SparkContext(conf=conf, gateway=gateway)


def _last_words(said: IO[bytes]) -> str:
    """What Java said in the end, without its stack."""
    said.seek(0)
    lines = said.read().decode(errors="replace").splitlines()
    return "; ".join(line for line in lines if line.strip() and not line[0].isspace() and line != _JAVA_ALWAYS_SAYS)


@contextmanager
def _interrupts_left_alone() -> Iterator[None]:
    """Spark takes Ctrl-C over for the whole process, to cancel all of its jobs; a sweep cancels its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check_java() -> None:
    found, is_ok = java.find_java()
    if not is_ok:
        raise WorkbenchError(
            f"Spark needs Java {java.OLDEST} or newer and finds {found or 'none'}: {java.REMEDY}; "
            "without it, run the sweep with runner=ProcessRunner() or runner=LocalRunner()"
        )

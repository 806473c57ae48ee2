"""SparkRunner: the points of a sweep as tasks of Spark, on this machine or on a cluster.

Theory of operation
    A task is a share of points, never a single one unless it is long: Spark's own cost is about 40 ms a task. Tasks are
    sent in chunks of a few seconds. The first chunk is a probe, a few points from all over the plan; what they took
    says how many points make a task of the next chunk, and each chunk corrects that. A chunk that is finished is
    handed out and kept; an interrupted one is lost, and run again when the sweep is resumed.

    Task i of a chunk is row i of ``range(0, tasks)``, in a partition of its own and mapped to rows of results in Arrow:
    one stage, no shuffle. Metrics travel as a map, since the points of a sweep may have different ones.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

import workbench
from workbench import java
from workbench.errors import WorkbenchError
from workbench.sweeps import user_code
from workbench.sweeps.plan import Plan
from workbench.sweeps.work import Row, from_table, run_point, to_batch

TASK_S = 2.0
TASKS_PER_CORE = 3
POLL_S = 0.25

_SCHEMA = (
    "number long, scenario string, document string, seed string, code string, engine string, wall_s double, "
    "compile_s double, error string, metrics map<string,double>, versions string, task_s double"
)
# Half the time to start: the Java side only deals out tasks, so it need not compile itself to the last.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_ERRORS_ALONE = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').resolve().as_uri()}"
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_JAVA_ALWAYS_SAYS = "WARNING: Using incubator modules: jdk.incubator.vector"
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}

_chunks_sent = itertools.count(1)


class SparkRunner:
    """Runs points on Spark. An active session is used as it is; else one is started, and stays for the next sweep.

    ``master`` is "local[2]" (two processes on this machine), "local[*]" (as many as it has cores) or a cluster's URL;
    ``config`` adds settings of Spark. WorkbenchError if Spark cannot be started.
    """

    def __init__(self, master: str = "local[2]", config: Mapping[str, str] | None = None) -> None:
        self.master = master
        self.config = dict(config or {})

    def __repr__(self) -> str:
        return f"SparkRunner({self.master!r})"

    def run(self, plan: Plan, numbers: Sequence[int], moving: Callable[[float], None]) -> Iterator[list[Row]]:
        """Rows of the points ``numbers``, a chunk at a time."""
        if not numbers:
            return
        job = _Job(session(self.master, self.config), _packed(plan))
        chunks = Chunks(numbers, job.cores)
        try:
            while shares := chunks.take():
                rows, task_s = job.run(shares, moving)
                chunks.took(task_s / len(rows))
                yield rows
        finally:
            job.end()


class Chunks:
    """Cuts points into chunks, and a chunk into the shares of its tasks, by what the points so far have taken."""

    def __init__(self, numbers: Sequence[int], cores: int) -> None:
        self._left = list(numbers)
        self._cores = cores
        self._point_s: float | None = None

    def take(self) -> list[list[int]]:
        """The next chunk: for each task the points it runs. Empty at the end."""
        if self._point_s is None:
            tasks = points = min(len(self._left), 2 * self._cores)
        else:
            most = TASKS_PER_CORE * self._cores
            points = min(len(self._left), most * max(1, round(TASK_S / self._point_s)))
            tasks = min(points, most, max(1, round(points * self._point_s / (TASK_S / 2))))
        # Evenly from all over the plan: neighbors in it cost about the same, and a chunk should be like the whole.
        chosen = [self._left[i * len(self._left) // points] for i in range(points)]
        taken = set(chosen)
        self._left = [number for number in self._left if number not in taken]
        return [chosen[i::tasks] for i in range(tasks)]

    def took(self, point_s: float) -> None:
        """A point of the last chunk took about that long."""
        self._point_s = max(point_s, 1e-4)


def _packed(plan: Plan) -> bytes:
    try:
        return user_code.pack(plan, plan.protocols, plan.measure)
    except Exception as error:
        names = {name for protocol in plan.protocols for name in user_code.of(protocol)}
        what = ", ".join(sorted(names | ({"the measure"} if plan.measure else set()))) or "it"
        raise WorkbenchError(
            f"the sweep cannot be sent to Spark's workers: {what} cannot be pickled ({error}); let code that is sent "
            "open files and the like when it is called, or use runner=LocalRunner()"
        ) from None


class _Job:
    """Chunks of one sweep in a session. Spark is only called from threads of ours: then Ctrl-C in the main thread
    never falls into the middle of a call to Java."""

    def __init__(self, session: Any, packed: bytes) -> None:
        self._session = session
        self._context = session.sparkContext
        self._packed = packed
        self._threads = ThreadPoolExecutor(2, "sweep")
        self.cores = max(1, self._context.defaultParallelism)

    def run(self, shares: list[list[int]], moving: Callable[[float], None]) -> tuple[list[Row], float]:
        """The rows of all shares, and the seconds that workers spent on them. Interrupted, it cancels the chunk."""
        group = f"workbench-sweep-{os.getpid()}-{next(_chunks_sent)}"
        points = sum(map(len, shares))
        action = self._threads.submit(self._collect, group, shares)
        try:
            while not wait([action], timeout=POLL_S).done:
                moving(points * self._threads.submit(self._share_done, group, len(shares)).result())
        except BaseException:
            # Again and again: an interrupt may come before Spark knows of the chunk.
            while not wait([action], timeout=POLL_S).done:
                wait([self._threads.submit(self._context.cancelJobGroup, group)])
            raise
        return _rows_of(action)

    def _collect(self, group: str, shares: list[list[int]]) -> pa.Table:
        self._context.setJobGroup(group, "sweep", interruptOnCancel=True)
        tasks = self._session.range(0, len(shares), 1, len(shares))
        return tasks.mapInArrow(_mapper(self._packed, shares), _SCHEMA).toArrow()

    def _share_done(self, group: str, tasks: int) -> float:
        done = 0
        # If Java is gone, the action says so; progress is no reason to fail.
        with suppress(Exception):
            tracker = self._context.statusTracker()
            for job in tracker.getJobIdsForGroup(group):
                for stage in getattr(tracker.getJobInfo(job), "stageIds", ()):
                    info = tracker.getStageInfo(stage)
                    done = max(done, info.numCompletedTasks if info else 0)
        return done / tasks

    def end(self) -> None:
        """Let go of the threads. The session stays."""
        self._threads.shutdown()


def _rows_of(action: Future) -> tuple[list[Row], float]:
    try:
        table = action.result()
    except Exception as error:
        raise WorkbenchError(f"Spark could not run the sweep: {_reason(error)}") from None
    return from_table(table), sum(table.column("task_s").to_pylist())


def _reason(error: Exception) -> str:
    """The line of a Spark error that says what happened: the first that names an exception, or just the first."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return (raised or lines or [type(error).__name__])[0]


# On a worker


def _mapper(packed: bytes, shares: list[list[int]]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What ``mapInArrow`` calls: batches with numbers of tasks in, batches with rows of results out."""

    def run_tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield run_share(packed, shares[task])

    return run_tasks


def run_share(packed: bytes, numbers: list[int]) -> pa.RecordBatch:
    """Run the points of one task."""
    plan = _unpacked(packed)
    rows, times = [], []
    for number in numbers:
        begin = time.perf_counter()
        rows.append(run_point(plan, number))
        times.append(time.perf_counter() - begin)
    return to_batch(rows).append_column("task_s", pa.array(times, pa.float64()))


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Plan:
    """A worker lives through many tasks of a sweep and unpacks its plan once."""
    return user_code.unpack(packed)


# The session


def session(master: str, config: Mapping[str, str]) -> Any:
    """The session that is there, or a new one; WorkbenchError if there is no Java for it, or if it does not start."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    _check_java()
    # Workers have to be of this Python, not of the first one on the PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.extraJavaOptions": f"{_QUICK_START} {_ERRORS_ALONE}",
        "spark.executorEnv.PYTHONPATH": str(Path(workbench.__file__).parents[1]),
        # A cancelled worker is in the middle of a run and has nothing to tidy up: no 2 s of grace.
        "spark.python.task.killTimeout": "100ms",
        **_QUIET,
        **(_LOOPBACK if master.startswith("local") else {}),
        **config,
    }
    with _interrupts_left_alone(), tempfile.TemporaryFile() as said:
        try:
            _start(master, settings, said)
        except Exception as error:
            why = _last_words(said) if "JAVA_GATEWAY_EXITED" in str(error) else _reason(error)
            raise WorkbenchError(f"Spark did not start with master {master!r}: {why}") from None
    return SparkSession.builder.getOrCreate()


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
            "without it, run the sweep in this process with runner=LocalRunner()"
        )

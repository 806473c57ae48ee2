"""SparkRunner: the points of a sweep as tasks of Spark, on this machine or on a cluster.

Theory of operation
    A task is a share of the points that takes some seconds, since Spark needs about 50 ms to start a task. Spark
    returns the rows of a job only at the job's end. Therefore each task is a job of its own: its rows are returned when
    it ends, and a lost worker costs only its tasks. Somewhat more tasks than cores run at once.

    On the worker a point runs in a process beside the task (`worker`). A point that ends its process or takes too long
    becomes a row with an error, and the task continues. When the worker itself is lost, its points run again as two
    shares. A lost share is halved again, until the point that kills its worker is found; this point becomes a row with
    an error.

    session     the active session, or a new one
    shipping    the package and the plan, sent once to each worker
    worker      the work of a task on a worker
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import pyarrow as pa

from workbench.errors import ScenarioError, WorkbenchError
from workbench.keywords import checked
from workbench.locations import is_url
from workbench.sweeps.plan import Plan
from workbench.sweeps.processes import check_limit, pack
from workbench.sweeps.shares import Shares
from workbench.sweeps.spark import shipping
from workbench.sweeps.spark.session import Session, open_session, reason
from workbench.sweeps.spark.worker import NO_ENGINE, SCHEMA
from workbench.sweeps.work import Row, failed_row, rows_from_table

TASK_S = 2.0
FEW_CORES = 4  # A driver can write the traces of fast runs of about as many cores.
POLL_S = 0.25
_TASKS_A_SECOND = 10  # tasks that the driver can start without becoming the bottleneck
_GROWTH = 32  # A short task costs as much as many points.
_TRIES = 3
_LOST_IN_A_ROW = 20  # lost tasks in a row that end the sweep, or
_ROUNDS_LOST = 3  # this multiple of all running tasks, since a lost machine loses the tasks of all its cores
_MOST_TASKS = 512  # running at once; each has a thread in the driver
# Messages of Spark for a lost worker, in contrast to an error in a task.
_LOST = re.compile(
    "ExecutorLost|exited unexpectedly|Executor heartbeat|EOFException|SocketException|Connection reset|Broken pipe"
    "|MetadataFetchFailed|Remote RPC client disassociated|worker lost|ExecutorDeadException",
    re.IGNORECASE,
)

_sweeps = itertools.count(1)


@checked
class SparkRunner:
    """A runner that runs points on Spark: in the active session, or in a new one that stays open for later sweeps.

    ``master`` is "local[2]" (two processes on this machine), "local[*]" (one for each core), the URL of a cluster
    ("spark://host:7077") or of Spark Connect ("sc://host:15002"). ``config`` adds settings of Spark. ``timeout_s`` is
    the time limit for each point in seconds, without compilation.

    ``writes`` names the process that writes the traces of a sweep with ``keep="trace"``: "driver" or "workers". Workers
    that write must reach the results under the same path or URL as the driver. None: the workers write if the results
    go to a URL, or if the runner uses more than `FEW_CORES` cores of this machine; otherwise the driver writes.

    Raises WorkbenchError if Spark cannot be started or reached, and ScenarioError for an invalid argument.
    """

    def __init__(
        self,
        master: str = "local[2]",
        config: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        writes: str | None = None,
    ) -> None:
        self.master = master
        self.config = dict(config or {})
        self.timeout_s = timeout_s
        self.writes = writes
        if writes not in (None, "driver", "workers"):
            raise ScenarioError(f'the argument `writes` is {writes!r:.40}; it must be "driver", "workers" or None')
        check_limit("timeout_s", timeout_s, "seconds")
        self._jobs: _Jobs | None = None

    def __repr__(self) -> str:
        return f"SparkRunner({self.master!r})"

    def run(self, plan: Plan, numbers: Sequence[int], report_progress: Callable[[float], None]) -> Iterator[list[Row]]:
        """Run the points ``numbers`` of ``plan`` and yield their result rows, one list per task.

        ``report_progress(0.0)`` is called several times a second, to update the display.
        """
        if not len(numbers):
            return
        packed = pack(plan)
        jobs = self._jobs = _Jobs(open_session(self.master, self.config), plan, self.timeout_s, self.writes)
        try:
            jobs.send(packed)
            shares = Shares(numbers, jobs.task_s, jobs.task_s / 4, _GROWTH)
            while jobs.feed(shares):
                yield from jobs.gather(shares)
                report_progress(0.0)
        except BaseException:
            jobs.cancel()
            raise
        finally:
            jobs.end()
            self._jobs = None

    def doing(self) -> list[str]:
        """Return a list with a short text on each running task. The list is empty while no sweep runs."""
        return self._jobs.doing() if self._jobs else []


class _Jobs:
    """The Spark jobs of one sweep; each job runs one share (list of points).

    Spark is called from other threads, so that Ctrl-C in the main thread never interrupts a call to Java.
    """

    def __init__(self, session: Session, plan: Plan, timeout_s: float | None, writes: str | None = None) -> None:
        self._session, self._plan, self._timeout_s = session, plan, timeout_s
        self._writes, self._trace_folder = writes, ""
        self._group = f"workbench-sweep-{os.getpid()}-{next(_sweeps)}"
        self._threads = ThreadPoolExecutor(_MOST_TASKS + 1, "sweep")
        self._sent: dict[Future[pa.Table], tuple[list[int], float]] = {}
        self._tries: Counter[int] = Counter()
        self._lost_in_a_row = 0
        self._cores = 1
        self._names: tuple[str | None, str, str]

    def send(self, packed: bytes) -> None:
        """Send the plan to the workers, and the package to workers on other machines.

        ``packed`` is the plan as bytes (`pack`). Raises WorkbenchError if Spark cannot send it.
        """
        try:
            self._names = self._threads.submit(self._send_plan, packed).result()
        except Exception as error:
            raise WorkbenchError(f"the sweep's code could not be sent to Spark: {reason(error)}") from None

    def _send_plan(self, packed: bytes) -> tuple[str | None, str, str]:
        plan = shipping.plan_file(packed)
        package = None if self._session.is_here else shipping.package_file()
        for path in (plan, *([package] if package else [])):
            self._session.send_file(str(path))
        self._cores = self._session.cores
        do_workers_write = (
            self._writes == "workers"
            if self._writes
            else is_url(self._plan.trace_folder) or (self._session.is_here and self._cores > FEW_CORES)
        )
        self._trace_folder = self._plan.trace_folder if do_workers_write else ""
        return package.name if package else None, str(shipping.HOME.parent), plan.name

    @property
    def task_s(self) -> float:
        """The intended duration of a task in seconds.

        With many workers tasks are longer, because this process alone starts all tasks.
        """
        return max(TASK_S, self._cores / _TASKS_A_SECOND)

    @property
    def _most_running_tasks(self) -> int:
        return min(self._cores + max(1, self._cores // 4), _MOST_TASKS)

    def feed(self, shares: Shares) -> bool:
        """Start tasks for shares (lists of points) of the queue ``shares``, while fewer than `_most_running_tasks` run.

        Return whether a task is running; False means that all points are done.
        """
        while len(self._sent) < self._most_running_tasks and (share := shares.take(self._cores)):
            self._sent[self._threads.submit(self._run_share, share)] = share, time.monotonic()
        return bool(self._sent)

    def _run_share(self, share: list[int]) -> pa.Table:
        mapper = shipping.task(*self._names, share, self._timeout_s, self._trace_folder)
        table = self._session.run_task(self._group, mapper, SCHEMA)
        self._cores = self._session.cores  # Workers come and go.
        return table

    def gather(self, shares: Shares) -> Iterator[list[Row]]:
        """Wait for a task to finish, at most `POLL_S` seconds, and yield the rows of each finished task.

        Points of a lost task are put back into the queue ``shares``.
        """
        for future in wait(self._sent, POLL_S, FIRST_COMPLETED).done:
            share, _ = self._sent.pop(future)
            try:
                table = future.result()
            except Exception as error:
                task_rows = self._handle_lost(share, error, shares)
            else:
                self._lost_in_a_row = 0
                shares.record_time(len(table), sum(table.column("task_s").to_pylist()))
                task_rows = [self._add_scenario(row) for row in rows_from_table(table)]
            if task_rows:
                yield task_rows

    def _add_scenario(self, row: Row) -> Row:
        return failed_row(self._plan, row.number, row.error or "") if row.engine == NO_ENGINE else row

    def _handle_lost(self, share: list[int], error: Exception, shares: Shares) -> list[Row]:
        """Put the points ``share`` of a lost task back into the queue ``shares``.

        Several points are put back as two halves. Return [] or, if a single point was lost too often, [its failed row].
        Raises WorkbenchError for an ``error`` other than a lost worker, and after too many losses in a row.
        """
        cause = reason(error)
        self._lost_in_a_row += 1
        is_hopeless = self._lost_in_a_row > max(_LOST_IN_A_ROW, _ROUNDS_LOST * self._most_running_tasks)
        if is_hopeless or not _LOST.search(str(error)):
            raise WorkbenchError(f"Spark could not run the sweep: {cause}")
        if len(share) > 1:
            shares.halve(share)
            return []
        (number,) = share
        self._tries[number] += 1
        if self._tries[number] < _TRIES:
            shares.put_back(share)
            return []
        return [failed_row(self._plan, number, f"the point's worker was lost {_TRIES} times ({cause})")]

    def doing(self) -> list[str]:
        """Return a short text for each task that Spark is running."""
        now_s = time.monotonic()
        return [f"{len(share)} points for {now_s - begin_s:.0f} s" for share, begin_s in list(self._sent.values())]

    def cancel(self) -> None:
        """Cancel the sweep's tasks repeatedly until all have ended, because Spark may start some tasks later."""
        while wait(self._sent, POLL_S).not_done:
            wait([self._threads.submit(self._session.cancel, self._group)])

    def end(self) -> None:
        """End the threads that call Spark; the Spark session stays open."""
        self._threads.shutdown()

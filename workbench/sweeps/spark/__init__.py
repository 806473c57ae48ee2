"""SparkRunner: the points of a sweep as tasks of Spark, on this machine or on a cluster.

Theory of operation
    A task is a share of points worth some seconds: Spark's own cost is about 50 ms a task. Each task is a job of its
    own, and somewhat more of them are under way than there are cores. So rows are handed out when their task ends, and
    a worker that is lost costs no more than its tasks. (Within one job rows come at its end: Spark tells nobody of
    single tasks, least of all by Connect.)

    On the worker a point runs in a process beside the task (`worker`): a point that ends its process or takes too long
    becomes a row, and the task goes on. When the worker itself is lost, its points run again as two shares, those of
    each again as two, until a single point that loses its worker again and again is found, and becomes a row too.

    session     the session that is there, or a new one
    shipping    the package and the plan, sent once to each worker
    worker      what a task does there
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

from workbench.errors import WorkbenchError
from workbench.keywords import checked
from workbench.sweeps.plan import Plan
from workbench.sweeps.processes import check_limit, pack
from workbench.sweeps.shares import Shares
from workbench.sweeps.spark import shipping
from workbench.sweeps.spark.session import Session, opened, reason
from workbench.sweeps.spark.worker import NO_ENGINE, SCHEMA
from workbench.sweeps.work import Row, failed_row, from_table

TASK_S = 2.0
POLL_S = 0.25
_TASKS_A_SECOND = 10  # that the driver deals out without being what all wait for
_GROWTH = 32  # A short task costs as much as many points.
_TRIES = 3
_LOST_IN_A_ROW = 20  # tasks, or
_ROUNDS_LOST = 3  # so many times all that are under way: a machine that is lost takes those of all its cores with it
_MOST_TASKS = 512  # under way: each has a thread here
# What Spark says when a worker is gone, and not when a task has raised an error.
_LOST = re.compile(
    "ExecutorLost|exited unexpectedly|Executor heartbeat|EOFException|SocketException|Connection reset|Broken pipe"
    "|MetadataFetchFailed|Remote RPC client disassociated|worker lost|ExecutorDeadException",
    re.IGNORECASE,
)

_sweeps = itertools.count(1)


@checked
class SparkRunner:
    """Runs points on Spark. An active session is used as it is; else one is started, and stays for the next sweep.

    ``master`` is "local[2]" (two processes on this machine), "local[*]" (as many as it has cores), a cluster's URL
    ("spark://host:7077") or that of Spark Connect ("sc://host:15002"); ``config`` adds settings of Spark;
    ``timeout_s`` is how long a point may take in seconds, without what is compiled for it. WorkbenchError if Spark
    cannot be started or reached.
    """

    def __init__(
        self, master: str = "local[2]", config: Mapping[str, str] | None = None, timeout_s: float | None = None
    ) -> None:
        self.master = master
        self.config = dict(config or {})
        self.timeout_s = timeout_s
        check_limit("timeout_s", timeout_s, "seconds")
        self._jobs: _Jobs | None = None

    def __repr__(self) -> str:
        return f"SparkRunner({self.master!r})"

    def run(self, plan: Plan, numbers: Sequence[int], moving: Callable[[float], None]) -> Iterator[list[Row]]:
        """Rows of the points ``numbers``, a task at a time."""
        if not len(numbers):
            return
        packed = pack(plan)
        jobs = self._jobs = _Jobs(opened(self.master, self.config), plan, self.timeout_s)
        try:
            jobs.send(packed)
            shares = Shares(numbers, jobs.task_s, jobs.task_s / 4, _GROWTH)
            while jobs.feed(shares):
                yield from jobs.gather(shares)
                moving(0.0)
        except BaseException:
            jobs.cancel()
            raise
        finally:
            jobs.end()
            self._jobs = None

    def doing(self) -> list[str]:
        """What each task under way has, in a few words; empty if there is no sweep."""
        return self._jobs.doing() if self._jobs else []


class _Jobs:
    """The jobs of one sweep. Spark is only called from threads of ours: then Ctrl-C in the main thread never falls
    into the middle of a call to Java."""

    def __init__(self, session: Session, plan: Plan, timeout_s: float | None) -> None:
        self._session, self._plan, self._timeout_s = session, plan, timeout_s
        self._group = f"workbench-sweep-{os.getpid()}-{next(_sweeps)}"
        self._threads = ThreadPoolExecutor(_MOST_TASKS + 1, "sweep")
        self._sent: dict[Future[pa.Table], tuple[list[int], float]] = {}
        self._tries: Counter[int] = Counter()
        self._lost_in_a_row = 0
        self._cores = 1
        self._names: tuple[str | None, str, str]

    def send(self, packed: bytes) -> None:
        """Bring the plan to the workers, and the package to those that are not on this machine."""
        try:
            self._names = self._threads.submit(self._send, packed).result()
        except Exception as error:
            raise WorkbenchError(f"Spark could not take the sweep's code: {reason(error)}") from None

    def _send(self, packed: bytes) -> tuple[str | None, str, str]:
        plan = shipping.plan_file(packed)
        package = None if self._session.is_here else shipping.package_file()
        for path in (plan, *([package] if package else [])):
            self._session.send_file(str(path))
        self._cores = self._session.cores
        return package.name if package else None, str(shipping.HOME.parent), plan.name

    @property
    def task_s(self) -> float:
        """How long a task should take: many workers get longer ones, for one driver deals out all of them."""
        return max(TASK_S, self._cores / _TASKS_A_SECOND)

    @property
    def _most(self) -> int:
        """How many tasks are good to have under way."""
        return min(self._cores + max(1, self._cores // 4), _MOST_TASKS)

    def feed(self, shares: Shares) -> bool:
        """Begin as many tasks as are good to have. False if there is none: the work is done."""
        while len(self._sent) < self._most and (share := shares.take(self._cores)):
            self._sent[self._threads.submit(self._run, share)] = share, time.monotonic()
        return bool(self._sent)

    def _run(self, share: list[int]) -> pa.Table:
        mapper = shipping.task(*self._names, share, self._timeout_s)
        table = self._session.run_task(self._group, mapper, SCHEMA)
        self._cores = self._session.cores  # Workers come and go.
        return table

    def gather(self, shares: Shares) -> Iterator[list[Row]]:
        """The rows of tasks that have ended; it waits `POLL_S` at most."""
        for action in wait(self._sent, POLL_S, FIRST_COMPLETED).done:
            share, _ = self._sent.pop(action)
            try:
                table = action.result()
            except Exception as error:
                rows = self._lost(share, error, shares)
            else:
                self._lost_in_a_row = 0
                shares.took(len(table), sum(table.column("task_s").to_pylist()))
                rows = [self._told(row) for row in from_table(table)]
            if rows:
                yield rows

    def _told(self, row: Row) -> Row:
        return failed_row(self._plan, row.number, row.error or "") if row.engine == NO_ENGINE else row

    def _lost(self, share: list[int], error: Exception, shares: Shares) -> list[Row]:
        """The worker of a share is gone: its points run again. The row of a point that has lost too many of them."""
        why = reason(error)
        self._lost_in_a_row += 1
        is_hopeless = self._lost_in_a_row > max(_LOST_IN_A_ROW, _ROUNDS_LOST * self._most)
        if is_hopeless or not _LOST.search(str(error)):
            raise WorkbenchError(f"Spark could not run the sweep: {why}")
        if len(share) > 1:
            shares.halve(share)
            return []
        (number,) = share
        self._tries[number] += 1
        if self._tries[number] < _TRIES:
            shares.again(share)
            return []
        return [failed_row(self._plan, number, f"the point's worker was lost {_TRIES} times ({why})")]

    def doing(self) -> list[str]:
        """What each task has, in a few words."""
        now = time.monotonic()
        return [f"{len(share)} points for {now - begin:.0f} s" for share, begin in list(self._sent.values())]

    def cancel(self) -> None:
        """End all tasks. Again and again: an interrupt may come before Spark knows of one."""
        while wait(self._sent, POLL_S).not_done:
            wait([self._threads.submit(self._session.cancel, self._group)])

    def end(self) -> None:
        """Let go of the threads. The session stays."""
        self._threads.shutdown()

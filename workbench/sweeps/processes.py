"""ProcessRunner: runs the points of a sweep on all cores of this machine, in processes that may be killed.

Theory of operation
    A group of point processes (`forking`) receives shares, which are lists of points (`shares`). Each process has a
    second share besides the running one, so that it never waits. Rows are returned a few times a second. When a process
    ends, the server that forked it reports the point that was running. A point that exceeded the time limit becomes a
    row with an error. A point that ended its process is run again; if it ends a process a second time, it becomes a row
    with an error. The other unfinished points of the ended process are run in another process.

    Processes stay alive for some minutes after their sweep, ready for the next one; the server stays longer.
"""

from __future__ import annotations

import atexit
import io
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, NamedTuple

import pyarrow as pa

from workbench.errors import ScenarioError, WorkbenchError
from workbench.keywords import checked
from workbench.sweeps import user_code
from workbench.sweeps.forking import PointProcess, Server
from workbench.sweeps.plan import Plan
from workbench.sweeps.shares import Shares
from workbench.sweeps.work import Row, failed_row, rows_from_table

SHARE_S = 0.5  # intended duration of a share
POLL_S = 0.25  # longest wait for rows
IDLE_S = 300.0  # time without a sweep after which idle processes end
MOST_MEMORY_MB = 1e9
_TRIES = 2  # runs of a point that ends its process
_ENDS_IN_A_ROW = 20  # for each process of a group; after more ends without a row between them, a sweep gives up
_SHARES_SENT = 2  # shares that a process has at a time


@checked
class ProcessRunner:
    """A runner that runs the points of a sweep in processes of this machine, without Java.

    ``processes`` is the number of processes, by default the number of cores. ``timeout_s`` is the longest time of a
    point in seconds, without compilation. ``memory_MB`` is the largest memory of a point beyond that of an idle
    process; None stands for three quarters of the machine's memory. A point that exceeds a limit, or ends its process
    twice, becomes a row with an error. Raises ScenarioError if a value is not a number above 0.
    """

    def __init__(
        self, processes: int | None = None, timeout_s: float | None = None, memory_MB: float | None = None
    ) -> None:
        self.processes = cores() if processes is None else processes
        self.timeout_s, self.memory_MB = timeout_s, memory_MB
        check_limit("timeout_s", timeout_s, "seconds")
        check_limit("memory_MB", memory_MB, "megabytes", MOST_MEMORY_MB)
        self._group: ProcessGroup | None = None
        if not isinstance(self.processes, int) or self.processes < 1:
            raise ScenarioError(f"the argument `processes` is {processes!r:.80}; it must be a whole number, at least 1")

    def __repr__(self) -> str:
        return f"ProcessRunner({self.processes})"

    def run(self, plan: Plan, numbers: Sequence[int], report_progress: Callable[[float], None]) -> Iterator[list[Row]]:
        """Run the points ``numbers`` of ``plan``, and yield lists of their result rows a few times a second.

        ``report_progress(0.0)`` is also called a few times a second, to update the display.
        """
        group = self._group = ProcessGroup(
            min(self.processes, len(numbers)), pack(plan), self.timeout_s, self.memory_MB
        )
        shares = Shares(numbers, SHARE_S)
        try:
            while group.feed(shares):
                arrived_rows = []
                for batch_or_failure in group.gather(shares):
                    arrived_rows += _rows_of_result(plan, batch_or_failure)
                if arrived_rows:
                    yield arrived_rows
                report_progress(0.0)
        except BaseException:
            group.kill()
            raise
        finally:
            group.release()
            self._group = None

    def doing(self) -> list[str]:
        """Return a list with a short text on the work of each process. The list is empty while no sweep runs."""
        return self._group.doing() if self._group else []


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_limit(name: str, value: float | None, unit: str, below: float = float("inf")) -> None:
    """Raise ScenarioError unless the limit ``value`` is None or a number above 0 and below ``below``.

    The message contains ``name`` and ``unit``.
    """
    if value is not None and not (isinstance(value, (int, float)) and 0 < value < below):
        limit_text = f" and below {below:g}" if below < float("inf") else ""
        raise ScenarioError(
            f"the argument `{name}` is {value!r:.80}; it must be a number of {unit} above 0{limit_text}, or None"
        )


def pack(plan: Plan) -> bytes:
    """Return a plan as bytes for other processes. Raises WorkbenchError if the user's code cannot be pickled."""
    try:
        return user_code.pack(plan, plan.protocols, plan.measure)
    except WorkbenchError:
        raise
    except Exception as error:
        code_names = {name for protocol in plan.protocols for name in user_code.of(protocol)}
        unpicklable_text = (
            ", ".join(sorted(code_names | ({"the measure function"} if plan.measure else set()))) or "its code"
        )
        raise WorkbenchError(
            f"the sweep cannot be sent to other processes: {unpicklable_text} cannot be pickled ({error}); create "
            "files, locks and similar objects inside the functions that use them, or use runner=LocalRunner()"
        ) from None


class Failure(NamedTuple):
    """A failure of a point that ended its process or exceeded its time: the point's number and the reason."""

    number: int
    sentence: str


def read_batch(stream: bytes) -> pa.RecordBatch:
    """Return the batch of rows in ``stream``, an Arrow stream that a point process has sent."""
    return pa.ipc.open_stream(io.BytesIO(stream)).read_next_batch()


def _rows_of_result(plan: Plan, result: pa.RecordBatch | Failure) -> list[Row]:
    if isinstance(result, Failure):
        return [failed_row(plan, *result)]
    return rows_from_table(result)


class _Member:
    """A member of a group of processes that run points (scenarios of a sweep).

    ``process`` is the handle of the process, and ``shares`` are the lists of points that it has not finished.
    ``is_new`` means that the process has not run points of an earlier sweep.
    """

    def __init__(self, process: PointProcess, is_new: bool) -> None:
        self.process, self.is_new = process, is_new
        self.shares: deque[deque[int]] = deque()
        self.progress_s = time.monotonic()

    def send(self, share: list[int]) -> None:
        if not self.shares:
            self.progress_s = time.monotonic()
        self.shares.append(deque(share))
        self.process.send_share(share)

    def remove_finished(self, points: int) -> None:
        """Remove the first ``points`` points from the share (list of points) that runs now: their rows have arrived."""
        self.progress_s = time.monotonic()
        for _ in range(points):
            self.shares[0].popleft()
        if not self.shares[0]:
            self.shares.popleft()


class ProcessGroup:
    """A group of worker processes, each of which runs part of a plan's points; a process that ends is replaced.

    ``size`` is the number of processes, ``packed`` the plan as bytes (`pack`). ``timeout_s`` and ``memory_MB``
    limit each point, as for `ProcessRunner`.
    """

    def __init__(self, size: int, packed: bytes, timeout_s: float | None, memory_MB: float | None = None) -> None:
        self._packed, self._timeout_s, self._memory_MB = packed, timeout_s, memory_MB
        self._size = size
        self._tries: Counter[int] = Counter()
        self._ends_in_a_row = 0
        self._members: list[_Member] = []

    def feed(self, shares: Shares) -> bool:
        """Send shares (lists of points to run) from the queue ``shares`` to each process that has fewer than two.

        Return whether any process has a share; False means that all points are done.
        """
        while len(self._members) < self._size:
            self._members.append(self._start_member())
        for _ in range(_SHARES_SENT):
            for member in self._members:
                if len(member.shares) < _SHARES_SENT and (share := shares.take(self._size)):
                    member.send(share)
        return any(member.shares for member in self._members)

    def _start_member(self) -> _Member:
        process, is_new = _pool.process()
        process.send_plan(self._packed, self._timeout_s, self._memory_MB)
        return _Member(process, is_new)

    def gather(self, shares: Shares) -> Iterator[pa.RecordBatch | Failure]:
        """Wait at most `POLL_S` seconds, then yield the batches of result rows and the failures that have arrived.

        Points of a process that has ended are put back into the queue ``shares``.
        """
        by_connection: dict[Any, _Member] = {member.process.connection: member for member in self._members}
        for connection in wait(list(by_connection), POLL_S):
            member = by_connection[connection]
            try:
                stream, seconds = member.process.receive()
            except EOFError:
                yield from self._handle_end(member, shares)
                continue
            except WorkbenchError:
                if member.is_new:
                    raise
                # An earlier sweep may have left this process in a state that breaks unpacking.
                yield from self._handle_end(member, shares)
                continue
            batch = read_batch(stream)
            self._ends_in_a_row = 0
            member.remove_finished(len(batch))
            shares.record_time(len(batch), seconds)
            yield batch

    def _handle_end(self, member: _Member, shares: Shares) -> Iterator[Failure]:
        """Put the unfinished points of the ended process ``member`` back into the queue ``shares``.

        Yield a failure for a point that exceeded the time limit, or during which a process ended for the second time.
        """
        self._members.remove(member)
        cause, is_late, number = member.process.end()
        self._ends_in_a_row += 1
        if self._ends_in_a_row > _ENDS_IN_A_ROW * self._size:
            raise WorkbenchError(
                f"the processes that run the sweep's points keep ending (last cause: {cause}); run the sweep with "
                "runner=LocalRunner() to see the reason"
            )
        running_share, *waiting_shares = [list(share) for share in member.shares] or [[]]
        for share in waiting_shares:
            shares.put_back(share)
        if number is None or number not in running_share:  # No point was running, or its row was received.
            shares.put_back(running_share)
            return
        running_share.remove(number)
        shares.put_back(running_share)
        shares.record_time(1, time.monotonic() - member.progress_s)
        self._tries[number] += 1
        if is_late:
            yield Failure(number, f"the point did not end within {self._timeout_s:g} s and was stopped")
        elif self._tries[number] >= _TRIES:
            yield Failure(number, f"the process that ran this point ended twice ({cause})")
        else:
            shares.put_back([number])

    def doing(self) -> list[str]:
        """Return a short text on the work of each process, such as "point 12 for 3 s" or "idle"."""
        now_s = time.monotonic()
        return [
            f"point {member.shares[0][0]} for {now_s - member.progress_s:.0f} s" if member.shares else "idle"
            for member in self._members
        ]

    def kill(self) -> None:
        """End the processes that still have points to run."""
        for member in [member for member in self._members if member.shares]:
            self._members.remove(member)
            with suppress(WorkbenchError):
                member.process.end()

    def release(self) -> None:
        """Give the group's processes, which are idle now, back to the pool, so that the next sweep can use them."""
        for member in self._members:
            _pool.take_back(member.process)
        self._members = []


class _Pool:
    """A pool of idle point processes, and the server that forks them. Idle processes end after `IDLE_S` seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._idle: list[PointProcess] = []
        self._timer: threading.Timer | None = None

    def process(self) -> tuple[PointProcess, bool]:
        """Return (process for running points, whether the process is new); take an idle process if possible."""
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if not process.connection.poll():  # readable: the process has ended
                    return process, False
                process.end()
            if self._server is not None and self._server.is_alive:
                with suppress(WorkbenchError):  # It may be about to end.
                    return self._server.fork(), True
            self._server = Server()
            return self._server.fork(), True

    def take_back(self, process: PointProcess) -> None:
        """Add a process that has become idle to the pool."""
        with self._lock:
            self._idle.append(process)
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(IDLE_S, self.end_idle)
            self._timer.daemon = True
            self._timer.start()

    def end_idle(self) -> None:
        """End the idle processes. The fork server stays until this process ends."""
        with self._lock, suppress(WorkbenchError):
            while self._idle:
                self._idle.pop().end()

    def close(self) -> None:
        """End the fork server and all of its point processes (processes that run points of a sweep)."""
        if self._server is not None:
            self._server.close()


_pool = _Pool()


def _replace_pool() -> None:
    """Give a forked child its own pool of worker processes; it must not use its parent's fork server."""
    global _pool
    _pool = _Pool()


atexit.register(lambda: _pool.close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_pool)

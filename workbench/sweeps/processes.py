"""ProcessRunner: the points of a sweep on all cores of this machine, each in a process that may end without harm.

Theory of operation
    A crew of point processes (`forking`) is sent shares of points (`shares`), and always one more than runs, so that
    nobody waits. Rows come back a few times a second. When a process ends, the server tells which point was under way:
    a point that took too long becomes a row that says so; one that ended its process is run again first, and becomes a
    row when it does so twice. The other points of the process are run again.

    Processes outlive their sweep by some minutes, so that the next one finds them warm; the server stays.
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
from workbench.sweeps.work import Row, failed_row, from_table

SHARE_S = 0.5
POLL_S = 0.25
IDLE_S = 300.0  # after which processes end that nobody wants
MOST_MEMORY_MB = 1e9
_TRIES = 2
_ENDS_IN_A_ROW = 20
_SHARES_SENT = 2


@checked
class ProcessRunner:
    """Runs points in processes of this machine, as many as it has cores; it needs no Java.

    ``processes`` is how many, ``timeout_s`` how long a point may take in seconds, without what is compiled for it.
    ``memory_MB`` is how much memory a point may have beyond that of an idle process; None for three quarters of the
    machine's. A point that takes longer or needs more, or ends its process twice, becomes a row with a sentence.
    ScenarioError if a value is not a number above 0.
    """

    def __init__(
        self, processes: int | None = None, timeout_s: float | None = None, memory_MB: float | None = None
    ) -> None:
        self.processes = cores() if processes is None else processes
        self.timeout_s, self.memory_MB = timeout_s, memory_MB
        check_limit("timeout_s", timeout_s, "seconds")
        check_limit("memory_MB", memory_MB, "megabytes", MOST_MEMORY_MB)
        self._crew: Crew | None = None
        if not isinstance(self.processes, int) or self.processes < 1:
            raise ScenarioError(f"processes is {processes!r:.80}; it must be a whole number from 1 on")

    def __repr__(self) -> str:
        return f"ProcessRunner({self.processes})"

    def run(self, plan: Plan, numbers: Sequence[int], moving: Callable[[float], None]) -> Iterator[list[Row]]:
        """Rows of the points ``numbers``, a few times a second."""
        crew = self._crew = Crew(min(self.processes, len(numbers)), pack(plan), self.timeout_s, self.memory_MB)
        shares = Shares(numbers, SHARE_S)
        try:
            while crew.feed(shares):
                rows = []
                for result in crew.gather(shares):
                    rows += _rows(plan, result)
                if rows:
                    yield rows
                moving(0.0)
        except BaseException:
            crew.kill()
            raise
        finally:
            crew.dismiss()
            self._crew = None

    def doing(self) -> list[str]:
        """What each process does, in a few words; empty if there is no sweep."""
        return self._crew.doing() if self._crew else []


def cores() -> int:
    """The processor's cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_limit(name: str, value: float | None, unit: str, below: float = float("inf")) -> None:
    """Raise ScenarioError for a limit that is neither None nor a number above 0."""
    if value is not None and not (isinstance(value, (int, float)) and 0 < value < below):
        raise ScenarioError(f"{name} is {value!r:.80}; it must be a number of {unit} above 0, or None")


def pack(plan: Plan) -> bytes:
    """A plan as bytes for other processes; WorkbenchError in one sentence if the user's code cannot be sent."""
    try:
        return user_code.pack(plan, plan.protocols, plan.measure)
    except WorkbenchError:
        raise
    except Exception as error:
        names = {name for protocol in plan.protocols for name in user_code.of(protocol)}
        what = ", ".join(sorted(names | ({"the measure"} if plan.measure else set()))) or "it"
        raise WorkbenchError(
            f"the sweep cannot be sent to other processes: {what} cannot be pickled ({error}); let code that is sent "
            "open files and the like when it is called, or use runner=LocalRunner()"
        ) from None


class Failure(NamedTuple):
    """A point that ended its process or did not end: why there is no result, in one sentence."""

    number: int
    sentence: str


def batch_of(stream: bytes) -> pa.RecordBatch:
    """The batch of rows that a point process has sent."""
    return pa.ipc.open_stream(io.BytesIO(stream)).read_next_batch()


def _rows(plan: Plan, result: pa.RecordBatch | Failure) -> list[Row]:
    if isinstance(result, Failure):
        return [failed_row(plan, *result)]
    return from_table(result)


class _Member:
    """A point process of a crew, and the shares that it was sent and has not finished."""

    def __init__(self, process: PointProcess, is_new: bool) -> None:
        self.process, self.is_new = process, is_new
        self.shares: deque[deque[int]] = deque()
        self.since = time.monotonic()

    def send(self, share: list[int]) -> None:
        """Have it run a share."""
        if not self.shares:
            self.since = time.monotonic()
        self.shares.append(deque(share))
        self.process.send_share(share)

    def finished(self, points: int) -> None:
        """So many points of its first share are finished."""
        self.since = time.monotonic()
        for _ in range(points):
            self.shares[0].popleft()
        if not self.shares[0]:
            self.shares.popleft()


class Crew:
    """Point processes that run the shares of one plan; some are replaced on the way."""

    def __init__(self, size: int, packed: bytes, timeout_s: float | None, memory_MB: float | None = None) -> None:
        self._packed, self._timeout_s, self._memory_MB = packed, timeout_s, memory_MB
        self._size = size
        self._tries: Counter[int] = Counter()
        self._ends_in_a_row = 0
        self._members: list[_Member] = []

    def feed(self, shares: Shares) -> bool:
        """Send shares to whoever has few left. False if nobody has any: the work is done."""
        while len(self._members) < self._size:
            self._members.append(self._hired())
        for _ in range(_SHARES_SENT):
            for member in self._members:
                if len(member.shares) < _SHARES_SENT and (share := shares.take(self._size)):
                    member.send(share)
        return any(member.shares for member in self._members)

    def _hired(self) -> _Member:
        process, is_new = _pool.process()
        process.send_plan(self._packed, self._timeout_s, self._memory_MB)
        return _Member(process, is_new)

    def gather(self, shares: Shares) -> Iterator[pa.RecordBatch | Failure]:
        """What has come of points since it was last asked; it waits `POLL_S` at most."""
        by_connection: dict[Any, _Member] = {member.process.connection: member for member in self._members}
        for connection in wait(list(by_connection), POLL_S):
            member = by_connection[connection]
            try:
                stream, seconds = member.process.receive()
            except EOFError:
                yield from self._ended(member, shares)
                continue
            except WorkbenchError:
                if member.is_new:
                    raise
                # A sweep before may have left something behind that is in this one's way.
                yield from self._ended(member, shares)
                continue
            batch = batch_of(stream)
            self._ends_in_a_row = 0
            member.finished(len(batch))
            shares.took(len(batch), seconds)
            yield batch

    def _ended(self, member: _Member, shares: Shares) -> Iterator[Failure]:
        """A process has ended: its points are run again, but for the one that is to blame."""
        self._members.remove(member)
        how, is_late, number = member.process.end()
        self._ends_in_a_row += 1
        if self._ends_in_a_row > _ENDS_IN_A_ROW * self._size:
            raise WorkbenchError(f"the sweep's processes end one after the other; the last one: {how}")
        first, *later = [list(share) for share in member.shares] or [[]]
        for share in later:
            shares.again(share)
        if number is None or number not in first:  # Nothing ran, or its row has come.
            shares.again(first)
            return
        first.remove(number)
        shares.again(first)
        shares.took(1, time.monotonic() - member.since)
        self._tries[number] += 1
        if is_late:
            yield Failure(number, f"the point did not end within {self._timeout_s:g} s and was stopped")
        elif self._tries[number] >= _TRIES:
            yield Failure(number, f"the point ended its process twice ({how})")
        else:
            shares.again([number])

    def doing(self) -> list[str]:
        """What each process does, in a few words."""
        now = time.monotonic()
        return [
            f"point {member.shares[0][0]} for {now - member.since:.0f} s" if member.shares else "idle"
            for member in self._members
        ]

    def kill(self) -> None:
        """End the processes that have work."""
        for member in [member for member in self._members if member.shares]:
            self._members.remove(member)
            with suppress(WorkbenchError):
                member.process.end()

    def dismiss(self) -> None:
        """Keep the processes, which have no work, for the next sweep."""
        for member in self._members:
            _pool.keep(member.process)
        self._members = []


class _Pool:
    """The server, and point processes that are idle, which end if nobody wants them for some minutes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._idle: list[PointProcess] = []
        self._timer: threading.Timer | None = None

    def process(self) -> tuple[PointProcess, bool]:
        """An idle process or a new one, and whether it is new."""
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if not process.connection.poll():  # else it has ended meanwhile
                    return process, False
                process.end()
            if self._server is not None and self._server.is_alive:
                with suppress(WorkbenchError):  # It may be about to end.
                    return self._server.fork(), True
            self._server = Server()
            return self._server.fork(), True

    def keep(self, process: PointProcess) -> None:
        """Take a process back that has no work."""
        with self._lock:
            self._idle.append(process)
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(IDLE_S, self.end_idle)
            self._timer.daemon = True
            self._timer.start()

    def end_idle(self) -> None:
        """End the processes that have no work. The server stays, and ends with this process."""
        with self._lock, suppress(WorkbenchError):
            while self._idle:
                self._idle.pop().end()

    def close(self) -> None:
        """End the server too, with whatever it has."""
        if self._server is not None:
            self._server.close()


_pool = _Pool()


def _forget() -> None:
    """A fork of this process is no owner of the server: it may start one of its own."""
    global _pool
    _pool = _Pool()


atexit.register(lambda: _pool.close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

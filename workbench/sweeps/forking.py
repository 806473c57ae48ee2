"""Processes that run points, and the server that forks them.

Theory of operation
    A point may end its process, or never end itself. So it runs in a process of its own kind, the *point process*,
    which nobody has to be sorry for. Point processes are forked from a *server*: a fresh Python that has imported what
    a run needs (a second), has no threads, and does nothing else. A fork is there within milliseconds.

    The server ends with the process that started it, by the end of their socket, and takes its point processes along.
    Before a point begins, its number is written to memory that the server shares: when a process has ended, the server
    tells how, and which point was under way. A time limit is a timer of the kernel's that ends the process, so it holds
    for machine code too. The timer rests while machine code is loaded or compiled: a point is not to blame for that. A
    point that uses up its memory gets a MemoryError; its process runs no further point (`limits`).

    This file is imported on both sides, and on workers of clusters. It loads little until it is asked to.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn

from workbench.errors import WorkbenchError
from workbench.sweeps import limits

FLUSH_S = 0.1  # rows wait so long at most while further points run
_REQUEST = struct.Struct("!cq")  # what, and which process
_ANSWER = struct.Struct("!qqq?")  # which process, how it ended, its point, and whether that was late
_PLACE = struct.Struct("!q")  # the number of a point; `limits.DEADLINE` is behind it
_BATCH = struct.Struct("!cd")  # what, and seconds
_FORK, _END = b"f", b"e"
_ROWS, _ERROR = b"r", b"e"
_NO_POINT = -1


class End(NamedTuple):
    """How a point process ended: in words, whether by the time limit, and its point (None if it had none)."""

    how: str
    is_late: bool
    number: int | None


class PointProcess:
    """A process that runs the shares of points that it is sent, one after the other."""

    def __init__(self, server: Server, pid: int, connection: Connection) -> None:
        self._server = server
        self.pid = pid
        self.connection = connection

    def send_plan(self, packed: bytes, timeout_s: float | None, memory_MB: float | None = None) -> None:
        """Have the points of this plan run from now on (`user_code.pack`), within these limits (`limits`)."""
        self._send(packed, timeout_s, memory_MB)

    def send_share(self, numbers: list[int]) -> None:
        """Have these points run after those that were sent before."""
        self._send(numbers)

    def _send(self, *content: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # It has ended, then, which `receive` says.
            self.connection.send_bytes(pickle.dumps(content))

    def receive(self) -> tuple[bytes, float]:
        """The next rows, as a stream of one Arrow batch, and what their points took in seconds without compiling.

        EOFError if the process has ended; WorkbenchError if it could not unpack the plan.
        """
        try:
            message = self.connection.recv_bytes()
        except OSError:  # It ended in the middle of a message, or before one.
            raise EOFError from None
        what, seconds = _BATCH.unpack_from(message)
        content = message[_BATCH.size :]
        if what == _ERROR:
            raise WorkbenchError(content.decode())
        return content, seconds

    def end(self) -> End:
        """End the process, unless it has ended already, and say how it did."""
        self.connection.close()
        try:
            status, number, is_late = self._server.end(self.pid)
        except WorkbenchError:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            return End("so did the server that had forked it", False, None)
        if os.WIFSIGNALED(status):
            is_late = os.WTERMSIG(status) == signal.SIGALRM or (is_late and os.WTERMSIG(status) == signal.SIGKILL)
        return End(_in_words(status), is_late, None if number == _NO_POINT else number)


class Server:
    """A process that forks point processes. It ends with this one, or with `close`."""

    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise WorkbenchError("this system has no fork, which a ProcessRunner needs; use runner=LocalRunner()")
        self._control, theirs = socket.socketpair()
        self._lock = threading.Lock()
        path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve({theirs.fileno()})"],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C is for us, and we tell it what to end.
            )

    def fork(self) -> PointProcess:
        """A new point process."""
        ours, theirs = socket.socketpair()
        with theirs:
            pid, *_ = self._ask(_FORK, 0, [theirs.fileno()])
        return PointProcess(self, pid, Connection(ours.detach()))

    def end(self, pid: int) -> tuple[int, int, bool]:
        """End a point process. Returns its status as `os.waitpid` has it, its point, and whether that was late."""
        _, status, number, is_late = self._ask(_END, pid, [])
        return status, number, is_late

    def _ask(self, what: bytes, pid: int, handles: list[int]) -> tuple[int, int, int, bool]:
        try:
            with self._lock:
                socket.send_fds(self._control, [_REQUEST.pack(what, pid)], handles)
                answer = self._control.recv(_ANSWER.size, socket.MSG_WAITALL)
        except OSError as error:
            raise WorkbenchError(f"the server of the sweep's processes is gone: {error}") from None
        except BaseException:
            self.close()  # Interrupted in the middle of an answer: nobody could tell the next one from it.
            raise
        if len(answer) < _ANSWER.size:
            raise WorkbenchError(f"the server of the sweep's processes has ended with {self._process.wait()}")
        return _ANSWER.unpack(answer)

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._control.fileno() >= 0 and self._process.poll() is None

    def close(self) -> None:
        """End the server and all of its point processes."""
        self._control.close()
        self._process.wait()


def _in_words(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"signal {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit status {os.WEXITSTATUS(status)}"


# In the server


def serve(handle: int) -> None:
    """What the server does until the other end of its socket is closed."""
    import pandas  # noqa: F401 (what every run needs: forks find it loaded)

    import workbench.sim.engine
    import workbench.sim.metrics
    import workbench.sweeps.work  # noqa: F401

    places: dict[int, mmap.mmap] = {}
    with socket.socket(fileno=handle) as control:
        try:
            while request := socket.recv_fds(control, _REQUEST.size, 1):
                content, handles, *_ = request
                if len(content) < _REQUEST.size:
                    return
                what, pid = _REQUEST.unpack(content)
                answer = _fork(control, handles[0], places) if what == _FORK else _end(pid, places)
                control.sendall(_ANSWER.pack(*answer))
        except ConnectionError:
            pass
        finally:
            for pid in places:
                os.kill(pid, signal.SIGKILL)


def _fork(control: socket.socket, handle: int, places: dict[int, mmap.mmap]) -> tuple[int, int, int, bool]:
    place = mmap.mmap(-1, _PLACE.size + limits.DEADLINE.size)
    _PLACE.pack_into(place, 0, _NO_POINT)
    limits.DEADLINE.pack_into(place, _PLACE.size, limits.NEVER)
    pid = os.fork()
    if pid == 0:
        os.setsid()  # A point that ends its whole group ends itself alone.
        control.close()
        _run(Connection(handle), place)
    os.close(handle)
    places[pid] = place
    return pid, 0, 0, False


def _end(pid: int, places: dict[int, mmap.mmap]) -> tuple[int, int, int, bool]:
    os.kill(pid, signal.SIGKILL)  # In vain if it has ended: nobody has waited for it yet, so the number is its own.
    _, status = os.waitpid(pid, 0)
    place = places.pop(pid)
    (number,), (deadline,) = _PLACE.unpack_from(place), limits.DEADLINE.unpack_from(place, _PLACE.size)
    return pid, status, number, time.monotonic() >= deadline


# In a point process


def _run(connection: Connection, place: mmap.mmap) -> NoReturn:
    """What a point process does. It never returns: the server's stack is above it."""
    status = 1
    try:
        _run_shares(connection, place)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _run_shares(connection: Connection, place: mmap.mmap) -> None:
    from workbench.sim.fast import code_cache
    from workbench.sweeps import user_code

    plan, timer, backstop = None, limits.Timer(None), limits.backstop()
    while True:
        try:
            first, *rest = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        if not rest:
            if not _run_share(plan, first, timer, connection, place):
                return
            continue
        timeout_s, memory_MB = rest
        limits.limit_memory(memory_MB)
        timer = limits.Timer(timeout_s, backstop, place, _PLACE.size)
        code_cache.around_loading = timer.resting
        try:
            plan = user_code.unpack(first)
        except Exception as error:
            sentence = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
            connection.send_bytes(_BATCH.pack(_ERROR, 0.0) + sentence.encode(errors="backslashreplace"))
            return


def _run_share(plan: Any, numbers: list[int], timer: limits.Timer, connection: Connection, place: mmap.mmap) -> bool:
    """Run points and send their rows. Returns False if this process should run no more."""
    from workbench.sweeps.work import OUT_OF_MEMORY, run_point

    rows: list[Any] = []
    flushed = time.perf_counter()
    for number in numbers:
        _PLACE.pack_into(place, 0, number)
        timer.start()
        rows.append(run_point(plan, number))
        timer.stop()
        _PLACE.pack_into(place, 0, _NO_POINT)  # What ends the process while rows are sent is no fault of the point.
        now = time.perf_counter()
        is_full = (rows[-1].error or "").startswith(OUT_OF_MEMORY)
        if is_full or now - flushed >= FLUSH_S:
            _send_rows(connection, rows, now - flushed)
            rows, flushed = [], now
        if is_full:
            return False  # What a point has left in memory would be in the way of the next ones.
    if rows:
        _send_rows(connection, rows, time.perf_counter() - flushed)
    return True


def _send_rows(connection: Connection, rows: list[Any], seconds: float) -> None:
    import pyarrow as pa

    from workbench.sweeps.work import to_batch_of_all

    batch = to_batch_of_all(rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    warm_s = max(0.0, seconds - sum(row.compile_s for row in rows))
    connection.send_bytes(_BATCH.pack(_ROWS, warm_s) + sink.getvalue().to_pybytes())

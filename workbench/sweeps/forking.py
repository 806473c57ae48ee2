"""Processes that run points, and the server that forks them.

Theory of operation
    A point may end its process, or never end. So points run in *point processes*, which can be killed without harm.
    Point processes are forked from a *server*: a fresh Python process without threads that does nothing else. The
    server imports the modules of a run once, which takes a second. A fork then takes milliseconds.

    The server ends its point processes and then itself when its socket is closed. The system closes the socket when
    the process of the sweep ends, so no server is left over. Before a point begins, the point process writes the
    point's number to memory shared with the server. When a point process has ended, the server reports the cause and
    the point that was running. The time limit is a timer of the operating system that kills the process, so the limit
    also holds while machine code runs. The timer is paused while machine code is loaded or compiled. A point that
    exceeds its memory gets a MemoryError, and its process runs no further point (`limits`).

    The process of the sweep, the server and the workers of clusters import this file. To start quickly, this file
    imports only a few modules at its top.
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

FLUSH_S = 0.1  # longest time that rows wait while further points run
_REQUEST = struct.Struct("!cq")  # kind of request, process
_ANSWER = struct.Struct("!qqq?")  # process, exit status, its running point, and whether the point was late
_NUMBER = struct.Struct("!q")  # the number of the running point, in shared memory; `limits.DEADLINE` follows
_BATCH = struct.Struct("!cd")  # kind of message, seconds
_FORK, _END = b"f", b"e"
_ROWS, _ERROR = b"r", b"e"
_NO_POINT = -1


class End(NamedTuple):
    """The cause of the end of a point process (a process that runs points of a sweep).

    how      the cause in words
    is_late  whether the cause was the time limit
    number   the number of the point that was running, or None
    """

    how: str
    is_late: bool
    number: int | None


class PointProcess:
    """A handle of a child process that runs points (scenarios) of a sweep.

    The process that runs the sweep holds this handle. The child receives lists of points (shares) and runs them in the
    order in which they were sent.
    """

    def __init__(self, server: Server, pid: int, connection: Connection) -> None:
        self._server = server
        self.pid = pid
        self.connection = connection

    def send_plan(self, packed: bytes, timeout_s: float | None, memory_MB: float | None = None) -> None:
        """Send the process the plan that contains all points it will run, and the limits of each point.

        ``packed`` is the plan as `user_code.pack` returned it. Each point may take ``timeout_s`` seconds and
        ``memory_MB`` megabytes; None: no limit. Call this before `send_share`.
        """
        self._send(packed, timeout_s, memory_MB)

    def send_share(self, numbers: list[int]) -> None:
        """Send the point process the numbers of further points; it runs them after the points sent earlier."""
        self._send(numbers)

    def _send(self, *content: Any) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # The process has ended; `receive` reports it.
            self.connection.send_bytes(pickle.dumps(content))

    def receive(self) -> tuple[bytes, float]:
        """Wait for result rows; return (bytes of an Arrow stream with one batch, seconds that its points took).

        The seconds do not include loading and compiling code.

        Raises EOFError if the process has ended, and WorkbenchError if it could not unpack the plan.
        """
        try:
            message = self.connection.recv_bytes()
        except OSError:  # The process ended in the middle of a message, or before one.
            raise EOFError from None
        message_kind, seconds = _BATCH.unpack_from(message)
        content_bytes = message[_BATCH.size :]
        if message_kind == _ERROR:
            raise WorkbenchError(content_bytes.decode())
        return content_bytes, seconds

    def end(self) -> End:
        """End the process, if it is still running, and return the cause of its end."""
        self.connection.close()
        try:
            status, number, is_late = self._server.end(self.pid)
        except WorkbenchError:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            return End("the end of the server that had started it", False, None)
        if os.WIFSIGNALED(status):
            is_late = os.WTERMSIG(status) == signal.SIGALRM or (is_late and os.WTERMSIG(status) == signal.SIGKILL)
        return End(_describe_status(status), is_late, None if number == _NO_POINT else number)


class Server:
    """A separate process that forks point processes, which run points (scenarios) of a sweep.

    The server ends at `close`, or when the process that created this object ends.
    """

    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise WorkbenchError(
                "ProcessRunner needs os.fork, which this system does not have; use runner=LocalRunner()"
            )
        self._control, server_end = socket.socketpair()
        self._lock = threading.Lock()
        python_path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        with server_end:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve({server_end.fileno()})"],
                stdin=subprocess.DEVNULL,
                pass_fds=[server_end.fileno()],
                env=os.environ | {"PYTHONPATH": python_path, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C then reaches this process only, which ends its point processes.
            )

    def fork(self) -> PointProcess:
        """Fork a process that runs points (scenarios of a sweep), and return its handle."""
        own_end, point_end = socket.socketpair()
        with point_end:
            pid, *_ = self._send_request(_FORK, 0, [point_end.fileno()])
        return PointProcess(self, pid, Connection(own_end.detach()))

    def end(self, pid: int) -> tuple[int, int, bool]:
        """End a point process, and return (its exit status, number of its running point, whether the point was late).

        The status is that of `os.waitpid`. The number is `_NO_POINT` if no point was running. A point is late if it
        exceeded its time limit.
        """
        _, status, number, is_late = self._send_request(_END, pid, [])
        return status, number, is_late

    def _send_request(self, kind: bytes, pid: int, handles: list[int]) -> tuple[int, int, int, bool]:
        try:
            with self._lock:
                socket.send_fds(self._control, [_REQUEST.pack(kind, pid)], handles)
                answer_bytes = self._control.recv(_ANSWER.size, socket.MSG_WAITALL)
        except OSError as error:
            raise WorkbenchError(
                f"the server of the sweep's processes has ended ({error}); run the sweep again"
            ) from None
        except BaseException:
            self.close()  # After an interrupt within an answer, the next answer could not be separated from its rest.
            raise
        if len(answer_bytes) < _ANSWER.size:
            raise WorkbenchError(
                f"the server of the sweep's processes has ended with status {self._process.wait()}; run the sweep again"
            )
        return _ANSWER.unpack(answer_bytes)

    @property
    def is_alive(self) -> bool:
        """True if the fork server, the process that forks the point processes, is running."""
        return self._control.fileno() >= 0 and self._process.poll() is None

    def close(self) -> None:
        """End the server and all of its point processes."""
        self._control.close()
        self._process.wait()


def _describe_status(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"signal {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exit status {os.WEXITSTATUS(status)}"


# In the server


def serve(handle: int) -> None:
    """Run the server: start and kill point processes on request, until the other end of its socket is closed.

    This is the main function of the server process. Point processes, which it forks, run points of the sweep.
    ``handle`` is the socket's file descriptor.
    """
    import pandas  # noqa: F401 (every run needs it; forks find it loaded)

    import workbench.sim.engine
    import workbench.sim.metrics
    import workbench.sweeps.work  # noqa: F401

    shared_memory: dict[int, mmap.mmap] = {}
    with socket.socket(fileno=handle) as control:
        try:
            while request := socket.recv_fds(control, _REQUEST.size, 1):
                request_bytes, handles, *_ = request
                if len(request_bytes) < _REQUEST.size:
                    return
                request_kind, pid = _REQUEST.unpack(request_bytes)
                answer = (
                    _fork_point_process(control, handles[0], shared_memory)
                    if request_kind == _FORK
                    else _end_process(pid, shared_memory)
                )
                control.sendall(_ANSWER.pack(*answer))
        except ConnectionError:
            pass
        finally:
            for pid in shared_memory:
                os.kill(pid, signal.SIGKILL)


def _fork_point_process(
    control: socket.socket, handle: int, shared_memory: dict[int, mmap.mmap]
) -> tuple[int, int, int, bool]:
    """Fork a point process, a process that runs points of the sweep and communicates over the socket ``handle``.

    Return (its process number, 0, 0, False): as many fields as `_end_process` returns, because the server sends both
    results in one format. ``control`` is the socket of the server's requests, which the new process closes.
    ``shared_memory`` is {process number: memory shared with the process}, to which the new process is added.
    """
    point_memory = mmap.mmap(-1, _NUMBER.size + limits.DEADLINE.size)
    _NUMBER.pack_into(point_memory, 0, _NO_POINT)
    limits.DEADLINE.pack_into(point_memory, _NUMBER.size, limits.NEVER)
    pid = os.fork()
    if pid == 0:
        os.setsid()  # A point that kills its process group then kills only its own process.
        control.close()
        _run_point_process(Connection(handle), point_memory)
    os.close(handle)
    shared_memory[pid] = point_memory
    return pid, 0, 0, False


def _end_process(pid: int, shared_memory: dict[int, mmap.mmap]) -> tuple[int, int, int, bool]:
    """Kill a point process and wait for its end.

    Return (process number, exit status, number of the point that it was running or `_NO_POINT`, whether this point
    exceeded its time limit). ``shared_memory`` is {process number: memory shared with the process}.
    """
    os.kill(pid, signal.SIGKILL)  # No effect if the process has ended; its number is not reused before the waitpid.
    _, status = os.waitpid(pid, 0)
    point_memory = shared_memory.pop(pid)
    (number,), (deadline_s,) = (
        _NUMBER.unpack_from(point_memory),
        limits.DEADLINE.unpack_from(point_memory, _NUMBER.size),
    )
    return pid, status, number, time.monotonic() >= deadline_s


# In a point process


def _run_point_process(connection: Connection, shared: mmap.mmap) -> NoReturn:
    """Run the points that arrive over ``connection``, then exit the process.

    This is the main function of a point process. ``shared`` is memory that the server also reads. The function never
    returns, because after a return the forked process would continue with the server's code.
    """
    status = 1
    try:
        _run_shares(connection, shared)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _run_shares(connection: Connection, shared: mmap.mmap) -> None:
    from workbench.sim.fast import code_cache
    from workbench.sweeps import user_code

    plan, timer, backstop = None, limits.Timer(None), limits.backstop()
    while True:
        try:
            packed_plan, *limit_values = pickle.loads(connection.recv_bytes())
        except EOFError:
            return
        if not limit_values:
            if not _run_share(plan, packed_plan, timer, connection, shared):
                return
            continue
        timeout_s, memory_MB = limit_values
        limits.limit_memory(memory_MB)
        timer = limits.Timer(timeout_s, backstop, shared, _NUMBER.size)
        code_cache.around_loading = timer.paused
        try:
            plan = user_code.unpack(packed_plan)
        except Exception as error:
            sentence = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
            connection.send_bytes(_BATCH.pack(_ERROR, 0.0) + sentence.encode(errors="backslashreplace"))
            return


def _run_share(plan: Any, numbers: list[int], timer: limits.Timer, connection: Connection, shared: mmap.mmap) -> bool:
    """Run the points ``numbers`` of ``plan`` and send their rows over ``connection``.

    Return False if a point ran out of memory: the process must then end. ``timer`` limits the time of each point. The
    number of the running point is written to ``shared``, memory that the fork server reads.
    """
    from workbench.sweeps.work import OUT_OF_MEMORY, run_point

    unsent_rows: list[Any] = []
    flushed_s = time.perf_counter()
    for number in numbers:
        _NUMBER.pack_into(shared, 0, number)
        timer.start()
        unsent_rows.append(run_point(plan, number))
        timer.stop()
        _NUMBER.pack_into(shared, 0, _NO_POINT)  # The point is not to blame if the process ends while rows are sent.
        now_s = time.perf_counter()
        is_out_of_memory = (unsent_rows[-1].error or "").startswith(OUT_OF_MEMORY)
        if is_out_of_memory or now_s - flushed_s >= FLUSH_S:
            _send_rows(connection, unsent_rows, now_s - flushed_s)
            unsent_rows, flushed_s = [], now_s
        if is_out_of_memory:
            return False  # The next points would lack the memory that this one leaves in use.
    if unsent_rows:
        _send_rows(connection, unsent_rows, time.perf_counter() - flushed_s)
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

"""Motes in C that are processes of this machine: each of its own, or an emulated Cortex-M3.

Theory of operation
    A process is started behind a shell that ends it when its stdin ends, so that none is left behind by a host that was
    killed. It listens on a TCP port of loopback, and keeps that over restarts. A thread waits for its end: a process
    that ends with 0 was reset, and is started again; any other end is a crash.

    An emulated Cortex-M3 has two UARTs, each on a port. UART 0 is the host link. Over UART 1 come and go the frames of
    its radio, while its clock runs; a clock that is held is a simulator's, which wants frames and answers in their
    order, so then they go over UART 0. QEMU serves one host at a time; a second one is refused (second_host.py).

Cost
    A process takes a megabyte and some milliseconds to start, an emulated Cortex-M3 41 MB and 0.2 s. Either sleeps
    while it has nothing to do.
"""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from workbench.errors import LinkError
from workbench.motes.in_c import EMULATOR
from workbench.motes.second_host import refuse_second_hosts

_PORT_S = 2.0  # how long to try for a port that somebody else has
_END_S = 5.0
_FIRST_DESCRIPTOR = 20
_UARTS = ("uart0", "uart1")
_SPEED_PPM = 1_000_000
# Where hardware/c/boards/mps2_an385 looks for how often it began before, and for its clock's speed.
_BOOTS_AT, _SPEED_AT = 0x003FFFF0, 0x003FFFF4
_ENDS_WITH_STDIN = """
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ read -r _ <&3; kill -9 $child; } 2>/dev/null &
watcher=$!
exec 3<&-
wait $child
code=$?
kill $watcher 2>/dev/null
exit $code
"""


class Process:
    """A mote that is a process. ``on_crash(text)`` is called, from a thread of its own, with what it said last.

    LinkError if it does not start.
    """

    def __init__(self, program: Path, speed: float = 1.0, on_crash: Callable[[str], None] | None = None) -> None:
        self.boot = -1
        self._program, self._speed_ppm = program, round(speed * _SPEED_PPM)
        self._on_crash = on_crash
        self._changing, self._restarting = threading.RLock(), threading.Lock()
        self._running: subprocess.Popen[str] | None = None
        self._start()

    @property
    def url(self) -> str:
        """Where its line is."""
        raise NotImplementedError

    def line_url(self, is_held: bool) -> str:
        """The same for a run whose clock is held (a simulator's), or goes on."""
        return self.url

    @property
    def is_running(self) -> bool:
        """Whether it is up: neither killed, nor ended by itself."""
        return self._running is not None

    def kill(self) -> None:
        """Take its power away: its line is cut, what it knew is lost. A dead mote stays dead."""
        with self._changing:
            running, self._running = self._running, None
        if running is not None:
            assert running.stdin is not None
            running.stdin.close()
            try:
                running.wait(_END_S)
            except subprocess.TimeoutExpired:
                running.kill()

    def restart(self) -> None:
        """Give it its power back, taking it first if it runs: it begins anew on the same line, as boot + 1."""
        with self._restarting:
            self.kill()
            with self._changing:
                self._start()

    def _start(self) -> None:
        self.boot += 1
        running = self._launched()
        self._running = running
        threading.Thread(target=self._wait, args=(running,), name=f"mote {self.url}", daemon=True).start()

    def _launched(self) -> subprocess.Popen[str]:
        """A process that is up."""
        raise NotImplementedError

    def _wait(self, running: subprocess.Popen[str]) -> None:
        """Until the process has ended, and then see to it."""
        assert running.stdout is not None
        with running.stdout as stdout:
            words = stdout.read()
        code = running.wait()
        with self._changing:
            if running is not self._running:
                return  # It was killed.
            self._running = None
            if code == 0:
                with suppress(LinkError):
                    self._start()
                    return
        if self._on_crash is not None:
            self._on_crash(_last_line(words) or f"the process ended with {code}")


class CProcess(Process):
    """The mote of hardware/c as a process of this machine."""

    _port = 0

    @property
    def url(self) -> str:
        """Where its line is."""
        return f"socket://127.0.0.1:{self._port}"

    def _launched(self) -> subprocess.Popen[str]:
        until_s = time.monotonic() + _PORT_S
        while True:
            command = [str(self._program), str(self._port), str(self.boot), str(self._speed_ppm)]
            running = _shelled(command)
            assert running.stdout is not None
            line = running.stdout.readline()
            if line.strip().isdigit():
                self._port = int(line)
                return running
            if time.monotonic() > until_s:
                raise LinkError(f"a mote in C does not start: {_last_line(line + running.stdout.read())}")
            running.wait()
            time.sleep(0.05)


class CortexM3(Process):
    """The mote of hardware/c on a Cortex-M3 that QEMU emulates."""

    _ports = (0, 0)

    @property
    def url(self) -> str:
        """Where its host link is: UART 0."""
        return f"socket://127.0.0.1:{self._ports[0]}"

    def line_url(self, is_held: bool) -> str:
        """Where its host link is and, unless its clock is held, its radio: UART 1."""
        return self.url if is_held else f"{self.url}?radio={self._ports[1]}"

    def _launched(self) -> subprocess.Popen[str]:
        listeners = [_listener(port) for port in self._ports]
        self._ports = tuple(one.getsockname()[1] for one in listeners)
        control, controlled = socket.socketpair()
        controlled = _moved(controlled)
        command = [EMULATOR, "-M", "mps2-an385", "-display", "none", "-monitor", "none", "-kernel", str(self._program)]
        for name, one in zip(_UARTS, listeners, strict=True):
            command += ["-chardev", f"socket,id={name},fd={one.fileno()},server=on,wait=off,nodelay=on"]
            command += ["-serial", f"chardev:{name}"]
        command += ["-chardev", f"socket,id=control,fd={controlled.fileno()}", "-mon", "chardev=control,mode=control"]
        for address, value in ((_BOOTS_AT, self.boot), (_SPEED_AT, self._speed_ppm)):
            command += ["-device", f"loader,addr={address:#x},data={value},data-len=4"]
        try:
            running = _shelled(command, tuple(one.fileno() for one in (*listeners, controlled)))
            refuse_second_hosts(listeners[0].dup(), control, _UARTS[0])
            return running
        finally:
            for one in (*listeners, controlled):
                one.close()


def _listener(port: int) -> socket.socket:
    """A socket that listens on a port; 0: on any. LinkError if somebody else keeps it."""
    until_s = time.monotonic() + _PORT_S
    while True:
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
            one.listen(1)
            return _moved(one)
        except OSError as error:
            one.close()
            if time.monotonic() > until_s:
                raise LinkError(f"port {port} of a mote that was off is in somebody else's use: {error}") from None
            time.sleep(0.05)


def _moved(one: socket.socket) -> socket.socket:
    """Give a socket a number of its own for a child: the shell before the process uses the single digits itself."""
    import fcntl  # Systems that have no such module have no shell like this either.

    above = fcntl.fcntl(one.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    one.close()
    return socket.socket(fileno=above)


def _shelled(command: list[str], descriptors: tuple[int, ...] = ()) -> subprocess.Popen[str]:
    # A session of its own, so that Ctrl-C on the host does not end the mote too.
    return subprocess.Popen(
        ["sh", "-c", _ENDS_WITH_STDIN, "mote", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=descriptors,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""

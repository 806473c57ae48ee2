"""Motes in C as processes of this machine: native programs, or programs on an emulated Cortex-M3.

Theory of operation
    A shell starts each process, and kills it when the shell's stdin ends. So no process outlives a host that was
    killed. The process listens on a TCP port of loopback and keeps that port over restarts. A thread waits until the
    process ends. Exit code 0 is a reset, after which the process is started again; any other code is a crash.

    An emulated Cortex-M3 has two UARTs, each on a TCP port. UART 0 is the host link. UART 1 carries the radio's frames
    while the mote's clock runs. In lockstep with a simulator, which holds the clock, frames and answers must keep their
    order, so both use UART 0. QEMU serves one host at a time; a second host is refused (second_host.py).

Cost
    A native process takes 1 MB of memory and a few milliseconds to start, an emulated Cortex-M3 41 MB and 0.2 s. Both
    sleep while idle.
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

_PORT_S = 2.0  # for another program to free the port
_END_S = 5.0
_FIRST_DESCRIPTOR = 20
_UARTS = ("uart0", "uart1")
_SPEED_PPM = 1_000_000
# Addresses where hardware/c/boards/mps2_an385 reads its number of earlier starts and its clock's speed.
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
    """A mote that is a process of this machine.

    If the process crashes, a background thread calls ``on_crash(text)`` with the last line of its output. ``speed`` is
    the factor by which the mote's clock is faster than real time. Raises LinkError if the process does not start.
    """

    def __init__(self, program: Path, speed: float = 1.0, on_crash: Callable[[str], None] | None = None) -> None:
        self.boot = -1
        self._program, self._speed_ppm = program, round(speed * _SPEED_PPM)
        self._on_crash = on_crash
        self._process_lock, self._restart_lock = threading.RLock(), threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._start_process()

    @property
    def url(self) -> str:
        """The URL of the mote's serial line, for `port.open_port`."""
        raise NotImplementedError

    def line_url(self, is_held: bool) -> str:
        """Return the URL by which a run opens the mote's line: `url`, unless a subclass returns another one.

        ``is_held`` is whether the simulator sets the mote's clock (lockstep). Only `CortexM3` uses this argument.
        """
        return self.url

    @property
    def is_running(self) -> bool:
        """True if the process is running: it was neither killed nor has it ended by itself."""
        return self._process is not None

    def kill(self) -> None:
        """Cut the mote's power: its line is closed and its memory is lost. The mote stays off until `restart`."""
        with self._process_lock:
            process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def restart(self) -> None:
        """Kill the mote if it runs, then start it with empty memory. Its `url` does not change; `boot` rises by 1."""
        with self._restart_lock:
            self.kill()
            with self._process_lock:
                self._start_process()

    def _start_process(self) -> None:
        self.boot += 1
        process = self._launch()
        self._process = process
        threading.Thread(target=self._wait_for_exit, args=(process,), name=f"mote {self.url}", daemon=True).start()

    def _launch(self) -> subprocess.Popen[str]:
        """Start the process, wait until its port is open, and return the process."""
        raise NotImplementedError

    def _wait_for_exit(self, process: subprocess.Popen[str]) -> None:
        """Wait until the process ends; then start it again after a reset, or report its crash."""
        assert process.stdout is not None
        with process.stdout as stdout:
            process_output = stdout.read()
        exit_code = process.wait()
        with self._process_lock:
            if process is not self._process:
                return  # `kill` ended it.
            self._process = None
            if exit_code == 0:
                with suppress(LinkError):
                    self._start_process()
                    return
        if self._on_crash is not None:
            self._on_crash(_last_line(process_output) or f"the process ended with {exit_code}")


class CProcess(Process):
    """A mote that runs the C program of hardware/c as a process of this machine."""

    _port = 0

    @property
    def url(self) -> str:
        """The URL of the mote's serial line, for `port.open_port`."""
        return f"socket://127.0.0.1:{self._port}"

    def _launch(self) -> subprocess.Popen[str]:
        until_s = time.monotonic() + _PORT_S
        while True:
            command = [str(self._program), str(self._port), str(self.boot), str(self._speed_ppm)]
            process = _start_in_shell(command)
            assert process.stdout is not None
            line = process.stdout.readline()
            if line.strip().isdigit():
                self._port = int(line)
                return process
            if time.monotonic() > until_s:
                raise LinkError(f"{self._program} does not start: {_last_line(line + process.stdout.read())}")
            process.wait()
            time.sleep(0.05)


class CortexM3(Process):
    """A mote on a Cortex-M3 board that QEMU emulates; it runs the C program of the folder hardware/c."""

    _ports = (0, 0)

    @property
    def url(self) -> str:
        """The URL of the mote's host link, UART 0."""
        return f"socket://127.0.0.1:{self._ports[0]}"

    def line_url(self, is_held: bool) -> str:
        """Return the URL of the host link, with the port of the radio (UART 1) unless ``is_held`` is true.

        ``is_held``: whether the simulator sets the mote's clock (lockstep); the host link then carries the frames.
        """
        return self.url if is_held else f"{self.url}?radio={self._ports[1]}"

    def _launch(self) -> subprocess.Popen[str]:
        listeners = [_open_listener(port) for port in self._ports]
        self._ports = tuple(listener.getsockname()[1] for listener in listeners)
        control, qemu_control = socket.socketpair()
        qemu_control = _renumber_descriptor(qemu_control)
        command = [EMULATOR, "-M", "mps2-an385", "-display", "none", "-monitor", "none", "-kernel", str(self._program)]
        for name, listener in zip(_UARTS, listeners, strict=True):
            command += ["-chardev", f"socket,id={name},fd={listener.fileno()},server=on,wait=off,nodelay=on"]
            command += ["-serial", f"chardev:{name}"]
        command += ["-chardev", f"socket,id=control,fd={qemu_control.fileno()}", "-mon", "chardev=control,mode=control"]
        for address, value in ((_BOOTS_AT, self.boot), (_SPEED_AT, self._speed_ppm)):
            command += ["-device", f"loader,addr={address:#x},data={value},data-len=4"]
        try:
            process = _start_in_shell(command, tuple(endpoint.fileno() for endpoint in (*listeners, qemu_control)))
            refuse_second_hosts(listeners[0].dup(), control, _UARTS[0])
            return process
        finally:
            for endpoint in (*listeners, qemu_control):
                endpoint.close()


def _open_listener(port: int) -> socket.socket:
    """Return a socket that listens on a port of loopback (0: a free port). Raises LinkError if the port is in use."""
    until_s = time.monotonic() + _PORT_S
    while True:
        listening_socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening_socket.bind(("127.0.0.1", port))
            listening_socket.listen(1)
            return _renumber_descriptor(listening_socket)
        except OSError as error:
            listening_socket.close()
            if time.monotonic() > until_s:
                raise LinkError(
                    f"port {port} of a virtual mote cannot be opened ({error}); start the motes anew"
                ) from None
            time.sleep(0.05)


def _renumber_descriptor(original: socket.socket) -> socket.socket:
    """Return a copy of a socket with a higher file descriptor; close the original.

    The shell that starts the mote's process uses the low descriptors itself.
    """
    import fcntl  # Imported here, because Windows lacks it.

    descriptor = fcntl.fcntl(original.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    original.close()
    return socket.socket(fileno=descriptor)


def _start_in_shell(command: list[str], descriptors: tuple[int, ...] = ()) -> subprocess.Popen[str]:
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

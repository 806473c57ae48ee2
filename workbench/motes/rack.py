"""Virtual motes: MicroPython interpreters on this machine, each behind a line like a board's cable.

    with Rack(16, program_files("virtual")) as rack:
        rack.urls                       ["socket://127.0.0.1:40001", ...], for `port.open_port`
        rack.kill(3), rack.restart(3)   mote 3 loses power, then restarts with the same URL

Theory of operation
    One Node.js process (hardware/virtual/rack.mjs) runs all motes, one thread each. It receives commands as lines of
    JSON and answers in the same form; a thread of this module reads the answers. The motes' own lines do not pass
    through the host's Python process. The Node.js process ends with its stdin, so it never outlives a killed host.

Cost
    The rack takes about 60 MB and starts in 0.1 s. Each mote takes 12 MB, 9 MB of it for its Node.js thread, and starts
    in less than 0.1 s on two cores.

Limits
    The interpreter's heap grows when it is full, so a program may run here and still not fit on a board. `Rack.memory`
    returns the heap in use. Timers fire one or two milliseconds late in real time, on the mote's clock `speed` times as
    late. A host that does not read its line loses messages of the mote. While a mote is off, another program may take
    its port. A host that connects to a port without a listener may connect to itself; `port.open_port` detects that.
"""

from __future__ import annotations

import atexit
import base64
import json
import logging
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import LinkError
from workbench.motes.program import HARDWARE

NODE_MAJOR = 18
PACKAGE = "@micropython/micropython-webassembly-pyscript"
FOLDER = HARDWARE / "virtual"

_ANSWER_S = 10.0
_START_S = 20.0
_START_EACH_S = 2.0
_END_S = 3.0

_log = logging.getLogger(__name__)


class Memory(NamedTuple):
    """The memory of virtual motes, in bytes.

    ``rss_B`` is the resident size of the process that runs the motes. ``allocated_B`` is {mote: memory in use}; the
    value is None for a mote that did not answer.
    """

    rss_B: int
    allocated_B: dict[int, int | None]


def missing() -> str | None:
    """Return a sentence on what this machine lacks for virtual motes and how to install it.

    Returns None if nothing is missing.
    """
    if shutil.which("node") is None:
        return (
            f"virtual motes need Node.js {NODE_MAJOR} or later, but `node` is not on the PATH: "
            "apt-get install nodejs, or brew install node"
        )
    # Node.js searches for a package beside the importing file, then in each folder above.
    if not any((folder / "node_modules" / PACKAGE).is_dir() for folder in (FOLDER, *FOLDER.parents)):
        return (
            f"virtual motes need their interpreter, the npm package {PACKAGE}: npm ci --prefix {_relative_path(FOLDER)}"
        )
    return None


def _relative_path(folder: Path) -> str:
    with suppress(ValueError):
        return str(folder.relative_to(Path.cwd()))
    return str(folder)


def _log_print(mote: int, text: str) -> None:
    _log.info("mote %d: %s", mote, text)


def log_crash(mote: int, text: str) -> None:
    """Log the crash of a virtual mote as an error; ``text`` is its traceback. This is `Rack`'s default ``on_crash``."""
    _log.error("mote %d crashed: %s", mote, text)


def _parse_object(line: str) -> dict[str, Any] | None:
    """Return the JSON object in a line, or None if the line is not a JSON object."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _find_error_message(lines: Sequence[str]) -> str:
    """Return the error message in a traceback's lines: the last line that is neither blank nor a JavaScript call."""
    messages = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("at ")]
    return messages[-1] if messages else "no reason given"


class Rack:
    """A rack of ``count`` virtual motes, numbered from 0, that run a program until `close`.

    files       (path on the mote, bytes) of each file of the program; a mote starts `main.py` or `main.mpy`
    speed       factor by which the motes' clocks are faster than real time
    on_print    function called in the rack's thread with (mote, text) when a mote prints a text; default: log the text
    on_crash    function called in the rack's thread with (mote, traceback) when a mote's program ends; default: log it

    Raises LinkError if Node.js or the npm package of MicroPython is missing, or if a mote's program does not start.
    """

    def __init__(
        self,
        count: int,
        files: Sequence[tuple[str, bytes]],
        speed: float = 1.0,
        on_print: Callable[[int, str], None] | None = None,
        on_crash: Callable[[int, str], None] | None = None,
    ) -> None:
        if count < 1:
            raise LinkError(f"count is {count}; a rack needs at least one mote")
        if not 0 < speed < float("inf"):
            raise LinkError(f"`speed` is {speed}; it must be a finite number above 0")
        if not any(path in ("main.py", "main.mpy") for path, _ in files):
            raise LinkError("`files` has no main.py or main.mpy; a mote starts with one of them")
        if (reason := missing()) is not None:
            raise LinkError(reason)
        self.count = count
        self._on_print = _log_print if on_print is None else on_print
        self._on_crash = log_crash if on_crash is None else on_crash
        self._changed = threading.Condition()
        self._command_lock = threading.Lock()
        self._ports: dict[int, int] = {}
        self._boots: dict[int, int] = {}
        self._running_motes: set[int] = set()
        self._killed_motes: set[int] = set()
        self._crashes: dict[int, str] = {}
        self._memory: Memory | None = None
        self._version: str | None = None
        self._last_output: deque[str] = deque(maxlen=20)
        self._has_ended = False
        self._is_closed = False
        # A session of its own, so that Ctrl-C on the host does not end the motes too.
        self._process = subprocess.Popen(
            ["node", str(FOLDER / "rack.mjs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read_messages, name="rack of virtual motes", daemon=True)
        self._reader.start()
        atexit.register(self.close)
        try:
            self._load_program(files, speed)
        except BaseException:
            self.close()
            raise

    def _load_program(self, files: Sequence[tuple[str, bytes]], speed: float) -> None:
        self._wait_until(lambda: self._version is not None, _START_S, "did not start")
        assert self._version is not None
        if int(self._version.split(".")[0]) < NODE_MAJOR:
            raise LinkError(f"virtual motes need Node.js {NODE_MAJOR} or later, and `node` is {self._version}")
        program = [(path, base64.b64encode(data).decode("ascii")) for path, data in files]
        self._send_command(do="load", files=program, speed=speed)
        self._start_motes(range(self.count))

    def __enter__(self) -> Rack:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def urls(self) -> list[str]:
        """The URL of each mote's serial line, in the order of the motes. A mote that restarts keeps its URL."""
        return [f"socket://127.0.0.1:{self._ports[mote]}" for mote in range(self.count)]

    @property
    def boots(self) -> list[int]:
        """The number of earlier starts of each mote, in the order of the motes; 0 for a mote that never restarted."""
        return [self._boots[mote] for mote in range(self.count)]

    @property
    def crashes(self) -> dict[int, str]:
        """{mote: traceback} of the motes whose program has ended."""
        with self._changed:
            return dict(self._crashes)

    @property
    def is_alive(self) -> bool:
        """True if the process that runs the virtual motes is running."""
        return not self._is_closed and not self._has_ended

    def is_running(self, mote: int) -> bool:
        """Return whether a mote runs: it was not killed, and its program has not ended."""
        self._check_mote(mote)
        return mote in self._running_motes

    def kill(self, mote: int) -> None:
        """Cut a mote's power: its line is closed and its memory is lost. The mote stays off until `restart`."""
        self._check_mote(mote)
        with self._command_lock:
            self._kill_mote(mote)

    def restart(self, mote: int) -> None:
        """Kill a mote if it runs, and start it with empty memory.

        The mote's URL in `urls` stays the same, and its number of starts in `boots` increases by 1.
        """
        self._check_mote(mote)
        with self._command_lock:
            self._kill_mote(mote)
            self._start_motes([mote])

    def memory(self) -> Memory:
        """Return the memory of the process that runs all virtual motes, and of each running mote.

        The motes collect garbage first, so that only memory in use counts.
        """
        with self._command_lock:
            self._memory = None
            self._send_command(do="memory")
            self._wait_until(lambda: self._memory is not None, _ANSWER_S, "did not report the memory in use")
            assert self._memory is not None
            return self._memory

    def close(self) -> None:
        """End all motes and their process; repeated calls have no effect."""
        self._is_closed = True
        atexit.unregister(self.close)
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if threading.current_thread() is not self._reader:  # True if a caller's on_crash calls `close`
            self._reader.join()
            if self._process.stdout is not None:
                self._process.stdout.close()

    # Commands to the rack's process, and its answers

    def _check_mote(self, mote: int) -> None:
        if not 0 <= mote < self.count:
            raise LinkError(f"`mote` is {mote}; the virtual motes are numbered from 0 to {self.count - 1}")

    def _kill_mote(self, mote: int) -> None:
        with self._changed:
            self._killed_motes.discard(mote)
        self._send_command(do="kill", mote=mote)
        self._wait_until(lambda: mote in self._killed_motes, _ANSWER_S, f"did not end mote {mote}")

    def _start_motes(self, motes: Sequence[int]) -> None:
        with self._changed:
            for mote in motes:
                self._crashes.pop(mote, None)
        for mote in motes:
            self._send_command(do="start", mote=mote)
        within_s = _START_S + _START_EACH_S * len(motes)
        outcomes = self._running_motes, self._crashes
        self._wait_until(
            lambda: all(any(mote in outcome for outcome in outcomes) for mote in motes),
            within_s,
            "did not start all motes",
        )
        with self._changed:
            crashed_motes = [mote for mote in motes if mote in self._crashes]
        if crashed_motes:
            reason = _find_error_message(self._crashes[crashed_motes[0]].splitlines())
            raise LinkError(f"the program of virtual mote {crashed_motes[0]} ended during its start: {reason}")

    def _send_command(self, **command: Any) -> None:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError):  # ValueError: the pipe is closed.
            raise LinkError(self._describe_end()) from None

    def _wait_until(self, condition: Callable[[], bool], within_s: float, fault: str) -> None:
        """Wait until ``condition()`` is true. Raises LinkError after ``within_s`` or if the rack's process ends.

        ``fault`` completes the message "the process of the virtual motes ...", for example by "did not start".
        """
        until_s = time.monotonic() + within_s
        with self._changed:
            while not condition():
                if self._has_ended:
                    raise LinkError(self._describe_end())
                if not self._changed.wait(until_s - time.monotonic()) and not condition():
                    raise LinkError(
                        f"the process of the virtual motes {fault} within {within_s:.0f} s; start the motes anew"
                    )

    def _describe_end(self) -> str:
        if self._is_closed:
            return "the rack of virtual motes is closed"
        lines = [line for line in self._last_output if "Error" in line] or list(self._last_output)
        return f"the rack of virtual motes has ended: {_find_error_message(lines)}"

    def _read_messages(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = _parse_object(line)
            if message is None:  # Output of Node.js itself, on stderr.
                self._last_output.append(line)
                continue
            with self._changed:
                self._record_message(message)
                self._changed.notify_all()
            self._call_listener(message)
        with self._changed:
            self._has_ended = True
            self._running_motes.clear()
            self._changed.notify_all()

    def _record_message(self, message: dict[str, Any]) -> None:
        if "node" in message:
            self._version = message["node"]
        elif "rss_B" in message:
            self._memory = Memory(
                message["rss_B"], {int(mote): allocated_size_B for mote, allocated_size_B in message["motes"].items()}
            )
        elif "port" in message:
            self._ports[message["mote"]], self._boots[message["mote"]] = message["port"], message["boot"]
            self._running_motes.add(message["mote"])
        elif "crashed" in message:
            self._crashes[message["mote"]] = message["crashed"]
            self._running_motes.discard(message["mote"])
        elif "killed" in message:
            self._killed_motes.add(message["mote"])
            self._running_motes.discard(message["mote"])
        elif "resets" in message:
            self._running_motes.discard(message["mote"])

    def _call_listener(self, message: dict[str, Any]) -> None:
        try:
            if "print" in message:
                self._on_print(message["mote"], message["print"])
            elif "crashed" in message:
                self._on_crash(message["mote"], message["crashed"])
            elif "lost_B" in message:
                _log.warning(
                    "mote %d: a host did not read its line, so %d B are lost", message["mote"], message["lost_B"]
                )
        except Exception:  # An error of a caller's function must not stop this thread.
            _log.exception("a message of a virtual mote could not be passed on")

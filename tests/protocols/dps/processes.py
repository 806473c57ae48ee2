"""Processes that run `workbench dps --json`, for tests that wait for their output with a time limit."""

import json
import os
import signal
import subprocess
import sys
import time
from queue import Empty, SimpleQueue
from threading import Thread

from tests.repository import REPOSITORY
from tests.until import PATIENCE_S

WITHIN_S = PATIENCE_S


class Command:
    """A process; `lines` holds the printed lines that the test has read, as dictionaries."""

    def __init__(self, *arguments):
        self.lines = []
        self._new = SimpleQueue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workbench.cli", "dps", *arguments, "--json"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._new.put(json.loads(line))
        self._new.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()

    def next(self, within_s):
        """Return the next line; raise queue.Empty if no line comes in that time."""
        line = self._new.get(timeout=max(0.0, within_s))
        if line is not None:
            self.lines.append(line)
        return line

    def all_lines(self):
        """Wait for the end of the process, and return all lines that it has printed."""
        if not self.process.stdin.closed:
            self.interrupt()
        while self.next(WITHIN_S) is not None:
            pass
        return self.lines

    def expect(self, event, within_s=WITHIN_S, **fields):
        """Return the next line of this event with these fields; skip the lines before it."""
        end_s = time.monotonic() + within_s
        while True:
            try:
                line = self.next(end_s - time.monotonic())
            except Empty:
                line = None
            assert line is not None, f"no {event} {fields} from {self.process.args}; there came {self.lines[-5:]}"
            if line["event"] == event and all(line[name] == value for name, value in fields.items()):
                return line

    @property
    def address(self):
        """The address at which the process listens."""
        for line in self.lines:
            if line["event"] == "listening":
                return line["address"]
        return self.expect("listening")["address"]

    def write(self, line):
        """Write a line to the standard input of the process."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end_input(self):
        """Close the standard input of the process."""
        self.process.stdin.close()

    def interrupt(self):
        """Interrupt the process (Ctrl-C); return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(WITHIN_S)

    def kill(self):
        """Kill the process with SIGKILL."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(WITHIN_S)

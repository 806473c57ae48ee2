"""The process of one node of a mesh, seen from the process that has started it.

`node.py` is what runs in there. Orders go to its standard input, each gets a reply, in order;
what it tells besides is kept as it comes, by a thread of its own.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import Any

from workbench.errors import LinkError
from workbench.protocols.dps.udp.readings import now_s

_START_S = 60.0
_ANSWER_S = 30.0
_JOIN_S = 3.0


class MeshProcess:
    """The process of one node, and the lines that it says."""

    def __init__(self, listen: str, settings: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "workbench.protocols.dps.processes.node", listen, json.dumps(settings)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = ""
        self.publications: list[dict[str, Any]] = []
        self.read = 0  # of the publications, by who follows the mesh
        self.answers: dict[int, list[tuple[float, str]]] = {}  # to which order: (when, of whom)
        self._replies: Queue[dict[str, Any]] = Queue()
        self._ids = itertools.count(1)
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def _read(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            line = json.loads(text)
            event = line.get("event")
            if event == "publication":
                self.publications.append({**line, "at_s": now_s()})
            elif event == "answer":
                self.answers.setdefault(line["to"], []).append((time.perf_counter(), line["sender"]))
            else:
                self._replies.put(line)
        self._replies.put({"event": "ended"})

    def await_start(self) -> None:
        """Wait until it listens; LinkError if it does not."""
        line = self._reply(_START_S)
        if line.get("event") != "listening":
            raise LinkError(f"a node of the mesh has not started: {line.get('error', 'its process has ended')}")
        self.address = line["address"]

    def give(self, do: str, **order: Any) -> int:
        """Give an order, without waiting for its reply; returns its number."""
        number = next(self._ids)
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"id": number, "do": do, **order}) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise LinkError(f"the node at {self.address} has ended, and cannot be told to {do}") from None
        return number

    def take(self) -> dict[str, Any]:
        """The reply to the oldest order that has had none; LinkError if it says that it could not."""
        line = self._reply(_ANSWER_S)
        if "error" in line:
            raise LinkError(f"the node at {self.address}: {line['error']}")
        if line.get("event") == "ended":
            raise LinkError(f"the node at {self.address} has ended")
        return line

    def _reply(self, within_s: float) -> dict[str, Any]:
        try:
            return self._replies.get(timeout=within_s)
        except Empty:
            where = self.address or "a new address"
            raise LinkError(f"the node at {where} has not answered in {within_s:g} s; is the machine busy?") from None

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self._close()

    def end(self, within_s: float) -> None:
        """Close its input and let it end; kill it if it does not."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with suppress(OSError):  # what is not written yet has nowhere to go
                self.process.stdin.close()
        try:
            self.process.wait(max(within_s, 0.0))
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._close()

    def _close(self) -> None:
        self.process.wait()
        self._reader.join(_JOIN_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

"""The most memory that processes hold: what Linux calls resident. Pages that several of them share count for each."""

import contextlib
import os
import threading
from pathlib import Path

SAMPLE_S = 0.1
_PAGE_B = os.sysconf("SC_PAGE_SIZE")


def peak_MB() -> float:
    """The most memory that this process has held. Not getrusage's, which knows of the process that started it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return float("nan")


class Peak:
    """The most memory that a process and those below it have had at once, as sampled from now on until ``stop``."""

    def __init__(self, pid: int) -> None:
        self._pid, self._most_B, self._is_over = pid, 0, threading.Event()
        self._sample()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        self._most_B = max(self._most_B, sum(_resident_B(pid) for pid in _family(self._pid)))

    def stop_MB(self) -> float:
        """End it; the most so far."""
        self._is_over.set()
        self._thread.join()
        self._sample()
        return self._most_B / 1e6


def _family(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _resident_B(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_B
    except (OSError, IndexError):
        return 0

"""Measurement of the peak of resident memory of processes on Linux; shared pages count for each process."""

import contextlib
import os
import threading
from pathlib import Path

SAMPLE_S = 0.1
_PAGE_B = os.sysconf("SC_PAGE_SIZE")


def peak_MB() -> float:
    """Return the peak of this process's resident memory in MB.

    Unlike getrusage, this excludes the process that started it.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    return float("nan")


class Peak:
    """A sampler of the greatest total memory of a process and its descendants, until ``stop_MB`` is called."""

    def __init__(self, pid: int) -> None:
        self._pid, self._most_B, self._is_over = pid, 0, threading.Event()
        self._sample()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over.wait(SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        self._most_B = max(self._most_B, sum(_resident_B(pid) for pid in family_of(self._pid)))

    def stop_MB(self) -> float:
        """Stop sampling, and return the peak in MB."""
        self._is_over.set()
        self._thread.join()
        self._sample()
        return self._most_B / 1e6


def family_of(pid: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    family = [pid]
    for member in family:
        family += [child for child, parent in parents.items() if parent == member]
    return family


def _resident_B(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_B
    except (OSError, IndexError):
        return 0

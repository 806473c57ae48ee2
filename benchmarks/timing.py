"""Reliable timing on a shared machine: process time, interleaved repetitions, medians."""

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple


class Timed(NamedTuple):
    """The result of a job that ran in a separate process: receptions, and the process time in seconds."""

    receptions: int
    seconds: float


Result = int | Timed
Job = Callable[[], Result]


class Measured(NamedTuple):
    """The measurement of a job: its receptions, the median of its process times in seconds, and the number of runs."""

    receptions: int
    seconds: float
    runs: int


def interleaved(jobs: Mapping[str, Job], repetitions: int, patience_s: float = 20.0) -> dict[str, Measured]:
    """Run each job up to ``repetitions`` times; return {name: median time and number of runs}.

    Each round runs every job once, in order. A job that has taken ``patience_s`` seconds in total skips the remaining
    rounds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    receptions: dict[str, int] = {}
    for _ in range(repetitions):
        for name, job in jobs.items():
            if sum(seconds[name]) >= patience_s:
                continue
            result = timed(job)
            seconds[name].append(result.seconds)
            heard = receptions.setdefault(name, result.receptions)
            assert heard == result.receptions, f"{name} came to another number of receptions"
    return {name: Measured(receptions[name], median(taken), len(taken)) for name, taken in seconds.items()}


def timed(job: Job) -> Timed:
    """Run a job, and return its receptions and its process time in seconds."""
    gc.collect()
    start = time.process_time()
    result = job()
    end = time.process_time()
    return result if isinstance(result, Timed) else Timed(result, end - start)

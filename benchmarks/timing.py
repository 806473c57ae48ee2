"""Timing that can be trusted on a shared machine: process time, interleaved repetitions, medians."""

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median


def interleaved(jobs: Mapping[str, Callable[[], int]], repetitions: int) -> dict[str, tuple[int, float]]:
    """(receptions, median seconds of process time) of each job; each round runs every job once, in order."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    receptions: dict[str, int] = {}
    for _ in range(repetitions):
        for name, job in jobs.items():
            gc.collect()
            start = time.process_time()
            heard = job()
            seconds[name].append(time.process_time() - start)
            assert receptions.setdefault(name, heard) == heard, f"{name} came to another number of receptions"
    return {name: (receptions[name], median(seconds[name])) for name in jobs}

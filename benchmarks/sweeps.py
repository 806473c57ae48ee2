"""What a sweep costs beside its points: ``benchmarks/sweeps.py [--quick] [part ...]``.

"points": points that keep a core busy for 1 ms, 10 ms and 1 s, run by each of our runners, by joblib and by a pool of
`multiprocessing`, with the same function (`run_point`) on two processes. Times are wall times: the first run, which
starts what has to be started, and the median of warm ones, in rounds in which each contender has a turn. "plan": a
plan of 10^6 points, its seconds and memory until the first rows are on disk. Needs joblib (the extra "bench"), and Java
for Spark. `benchmarks/sweeps_cluster.py` has a cluster that loses a worker and its driver.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from types import SimpleNamespace

from machine import machine
from tables import table

import workbench as wb
from workbench import java
from workbench.sweeps.work import Row, run_point

PARTS = ("points", "plan")
PROCESSES = 2
SIZES = ((0.001, 5_000), (0.01, 1_000), (1.0, 20))
QUICK_SIZES = ((0.001, 2_000), (0.01, 200), (1.0, 6))
ROUNDS = 3
ROOT = Path(__file__).parents[1]
MILLION = """
import resource, sys, tempfile, time
begin = time.perf_counter()
import workbench as wb
line = wb.Scenario(topology=wb.topology.line(5), protocol=wb.Flooding(), duration_s=1)
sweep = wb.Sweep(line, {"radio.loss": [i / 1000 for i in range(1000)], "seed": range(1000)})
planned = time.perf_counter()
class Stop(Exception):
    pass
class First:
    def run(self, plan, numbers, report_progress):
        for rows in wb.ProcessRunner(2).run(plan, numbers, report_progress):
            yield rows
            raise Stop
try:
    with tempfile.TemporaryDirectory() as folder:
        sweep.run(out=folder, runner=First(), progress=False)
except Stop:
    pass
mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(len(sweep), planned - begin, time.perf_counter() - planned, mebibytes)
"""


class BusyPlan:
    """A plan as runners and workers use it, whose points keep a core busy for some seconds and do nothing else."""

    engine, protocols, measure, keeps_traces = "none", (), None, False

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.codes = SimpleNamespace(of=_no_code)

    def scenario_of(self, number: int) -> "BusyScenario":
        """The scenario of a point."""
        return BusyScenario(number, self.seconds)


def _no_code(protocol: object) -> str:
    return ""


class BusyScenario:
    """What `run_point` asks of a scenario."""

    hash, protocol = "0" * 16, None

    def __init__(self, seed: int, seconds: float) -> None:
        self.seed, self.seconds = seed, seconds

    def to_json(self, indent: int | None = None) -> str:
        """Nothing, at no cost."""
        return "{}"

    def run(self, engine: str, record: str) -> SimpleNamespace:
        """Keep a core busy."""
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            pass
        return SimpleNamespace(engine="none", metrics={"seconds": self.seconds})


Contender = Callable[[BusyPlan, range], int]


def by_runner(runner: wb.LocalRunner) -> Contender:
    """One of our runners."""
    return lambda plan, numbers: sum(_without_error(rows) for rows in runner.run(plan, numbers, lambda points: None))


def _without_error(rows: list[Row]) -> int:
    """How many rows these are; a point that failed has cost nothing and would flatter its runner."""
    for row in rows:
        if row.error:
            raise SystemExit(f"point {row.number}: {row.error}")
    return len(rows)


def by_joblib(plan: BusyPlan, numbers: range) -> int:
    """As one would write it with joblib."""
    from joblib import Parallel, delayed

    return len(Parallel(n_jobs=PROCESSES)(delayed(run_point)(plan, number) for number in numbers))


class ByPool:
    """As one would write it with `multiprocessing`: the pool is made once."""

    def __init__(self) -> None:
        self._pool = None

    def __call__(self, plan: BusyPlan, numbers: range) -> int:
        self._pool = self._pool or multiprocessing.get_context("spawn").Pool(PROCESSES)
        return len(self._pool.map(partial(run_point, plan), numbers))


def contenders() -> Iterator[tuple[str, Contender]]:
    """Name and contender; who is not installed is left out, with a line."""
    yield "LocalRunner", by_runner(wb.LocalRunner())
    yield "ProcessRunner", by_runner(wb.ProcessRunner(PROCESSES))
    try:
        import joblib

        yield f"joblib {joblib.__version__}", by_joblib
    except ImportError:
        print("joblib is not installed: pip install joblib", file=sys.stderr)
    yield "multiprocessing", ByPool()
    if java.find_java().is_ok:
        yield "SparkRunner", by_runner(wb.SparkRunner(f"local[{PROCESSES}]"))
    else:
        print(f"there is no Java: {java.REMEDY}", file=sys.stderr)


def wall_s(contender: Contender, plan: BusyPlan, numbers: range) -> float:
    """Seconds that a contender takes for these points."""
    begin = time.perf_counter()
    done = contender(plan, numbers)
    assert done == len(numbers), f"{done} of {len(numbers)} points"
    return time.perf_counter() - begin


def points(sizes: tuple[tuple[float, int], ...]) -> Iterator[str]:
    """What contenders take for points of these lengths."""
    found = list(contenders())
    for turn, (seconds, count) in enumerate(sizes):
        plan, numbers = BusyPlan(seconds), range(count)
        # The very first run of a contender starts it.
        cold = {name: wall_s(contender, plan, numbers) for name, contender in found} if turn == 0 else {}
        warm: dict[str, list[float]] = {name: [] for name, _ in found}
        for _ in range(ROUNDS):
            for name, contender in found:
                warm[name].append(wall_s(contender, plan, numbers))
        yield f"### {count:,} points of {seconds * 1000:g} ms, {PROCESSES} processes\n"
        yield _table({name: median(taken) for name, taken in warm.items()}, cold, seconds, count)


def _table(warm: dict[str, float], cold: dict[str, float], seconds: float, count: int) -> str:
    rival = next((taken for name, taken in warm.items() if name.startswith("joblib")), None)
    rows = []
    for name, taken in warm.items():
        processes = 1 if name == "LocalRunner" else PROCESSES
        overhead_ms = (taken * processes / count - seconds) * 1000
        beside = f"{taken / rival:.2f}" if rival and processes > 1 else ""
        first = f"{cold[name]:.2f}" if name in cold else ""
        rows.append((name, f"{taken:.2f}", f"{overhead_ms:.2f}", beside, first))
    header = ("", "warm (s)", "more per point and process (ms)", "× joblib", "first run (s)")
    return table(header, rows) + "\n"


def plan() -> Iterator[str]:
    """A plan of a million points, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", MILLION]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    size, planned_s, first_s, mebibytes = map(float, done.stdout.split())
    yield (
        f"{size:,.0f} points: planned in {planned_s:.1f} s with all imports, the first rows kept {first_s:.1f} s "
        f"later, {mebibytes:.0f} MB at most in the driver.\n"
    )


def main() -> None:
    """Print the parts that were asked for, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="fewer points")
    asked = parser.parse_args()
    unknown = [part for part in asked.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}")
    print(f"# What a sweep costs beside its points\n\n{machine()}\n")
    for part in asked.parts or PARTS:
        pieces = points(QUICK_SIZES if asked.quick else SIZES) if part == "points" else globals()[part]()
        for piece in pieces:
            print(piece, flush=True)


if __name__ == "__main__":
    main()

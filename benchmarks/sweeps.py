"""The overhead of a sweep beyond its points: ``benchmarks/sweeps.py [--quick] [part ...]``.

"points": points keep a core busy for 1 ms, 10 ms and 1 s. Each of our runners, joblib and a pool of `multiprocessing`
run them with the same function (`run_point`) on two processes. Times are wall times: of the first run, which starts
processes, and the median of warm runs, in rounds in which each contender runs once. "plan": the time and memory of a
plan of 10^6 points until the first rows are on disk. "resume": the time and memory of a sweep of 10^6 points, all of
which are stored, and the time to build all of its rows in the same process. "traces": the processor time of the driver
for the traces of 40 large runs on Spark, written by the driver and by the workers. It needs joblib (the extra "bench"),
and Java for Spark.
`benchmarks/sweeps_cluster.py` measures a cluster that loses a worker and its driver.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pyarrow.parquet as pq
from machine import machine
from tables import table

import workbench as wb
from workbench import java
from workbench.sweeps.work import Row, run_point

PARTS = ("points", "plan", "resume", "traces")
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


RESUMED = """
import resource, sys, tempfile, time
import workbench as wb
from workbench.sweeps.work import run_point
size = int(sys.argv[1])
line = wb.Scenario(topology=wb.topology.line(5), protocol=wb.Flooding(), duration_s=1)
sweep = wb.Sweep(line, {"radio.loss": [i / 1000 for i in range(size // 1000)], "seed": range(1000)}, engine="reference")
class Stored:
    def run(self, plan, numbers, report_progress):
        row = run_point(plan, 0)
        for begin in range(0, len(numbers), 20_000):
            yield [row._replace(number=n, scenario=f"{n:016x}", seed=n % 1000) for n in numbers[begin : begin + 20_000]]
class Nothing:
    def run(self, plan, numbers, report_progress):
        raise SystemExit("a stored point was run again")
if len(sys.argv) > 3:
    sweep.run(out=sys.argv[2], runner=Stored(), progress=False)
    raise SystemExit
begin = time.perf_counter()
sweep.plan.fresh().point_keys()
keyed = time.perf_counter()
table = sweep.run(out=sys.argv[2], runner=Nothing(), progress=False)
resumed = time.perf_counter()
mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
frame = table.to_pandas()
framed = time.perf_counter()
rows = list(table.rows)
built = time.perf_counter()
assert len(rows) == len(frame) == size
print(resumed - keyed, keyed - begin, framed - resumed, built - framed, mebibytes)
"""


class BusyPlan:
    """A stand-in for a sweep's plan, whose points only keep a core busy for some seconds."""

    engine, protocols, measure, keeps_traces = "none", (), None, False

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.codes = SimpleNamespace(of=_no_code)

    def scenario_of(self, number: int) -> "BusyScenario":
        """Return the scenario of the point ``number``."""
        return BusyScenario(number, self.seconds)


def _no_code(protocol: object) -> str:
    return ""


class BusyScenario:
    """A stand-in for a scenario, with the methods that `run_point` calls; its run only keeps a core busy."""

    hash, protocol = "0" * 16, None

    def __init__(self, seed: int, seconds: float) -> None:
        self.seed, self.seconds = seed, seconds

    def to_json(self, indent: int | None = None) -> str:
        """Return an empty JSON object: the scenario is not stored."""
        return "{}"

    def run(self, engine: str, record: str) -> SimpleNamespace:
        """Keep a core busy for the seconds of the scenario."""
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            pass
        return SimpleNamespace(engine="none", metrics={"seconds": self.seconds})


Contender = Callable[[BusyPlan, range], int]


def make_runner_contender(runner: wb.LocalRunner) -> Contender:
    """Return a contender that uses one of our runners."""
    return lambda plan, numbers: sum(_count_successful(rows) for rows in runner.run(plan, numbers, lambda points: None))


def _count_successful(rows: list[Row]) -> int:
    """Return the number of rows; end the program if a point has failed, since failed points take too little time."""
    for row in rows:
        if row.error:
            raise SystemExit(f"point {row.number}: {row.error}")
    return len(rows)


def run_with_joblib(plan: BusyPlan, numbers: range) -> int:
    """Run the points ``numbers`` of a plan with joblib, in the usual way, and return how many were run."""
    from joblib import Parallel, delayed

    return len(Parallel(n_jobs=PROCESSES)(delayed(run_point)(plan, number) for number in numbers))


class ByPool:
    """A contender that runs points with `multiprocessing`, in the usual way: the pool is created once."""

    def __init__(self) -> None:
        self._pool = None

    def __call__(self, plan: BusyPlan, numbers: range) -> int:
        self._pool = self._pool or multiprocessing.get_context("spawn").Pool(PROCESSES)
        return len(self._pool.map(partial(run_point, plan), numbers))


def contenders() -> Iterator[tuple[str, Contender]]:
    """Yield (name, contender); a contender that is not installed is skipped with a line."""
    yield "LocalRunner", make_runner_contender(wb.LocalRunner())
    yield "ProcessRunner", make_runner_contender(wb.ProcessRunner(PROCESSES))
    try:
        import joblib

        yield f"joblib {joblib.__version__}", run_with_joblib
    except ImportError:
        print("joblib is not installed: pip install joblib", file=sys.stderr)
    yield "multiprocessing", ByPool()
    if java.find_java().is_ok:
        yield "SparkRunner", make_runner_contender(wb.SparkRunner(f"local[{PROCESSES}]"))
    else:
        print(f"Java is missing: {java.REMEDY}", file=sys.stderr)


def wall_s(contender: Contender, plan: BusyPlan, numbers: range) -> float:
    """Return the wall-clock time in s in which a contender runs the points ``numbers`` of a plan."""
    begin = time.perf_counter()
    done = contender(plan, numbers)
    assert done == len(numbers), f"{done} of {len(numbers)} points"
    return time.perf_counter() - begin


def points(sizes: tuple[tuple[float, int], ...]) -> Iterator[str]:
    """Yield a table of the contenders' times for each (seconds of a point, number of points) in ``sizes``."""
    available = list(contenders())
    for turn, (seconds, count) in enumerate(sizes):
        plan, numbers = BusyPlan(seconds), range(count)
        # The first run of a contender starts its processes.
        cold = {name: wall_s(contender, plan, numbers) for name, contender in available} if turn == 0 else {}
        warm: dict[str, list[float]] = {name: [] for name, _ in available}
        for _ in range(ROUNDS):
            for name, contender in available:
                warm[name].append(wall_s(contender, plan, numbers))
        yield f"### {count:,} points of {seconds * 1000:g} ms, {PROCESSES} processes\n"
        yield _table({name: median(taken) for name, taken in warm.items()}, cold, seconds, count)


def _table(warm: dict[str, float], cold: dict[str, float], seconds: float, count: int) -> str:
    rival = next((taken for name, taken in warm.items() if name.startswith("joblib")), None)
    rows = []
    for name, taken in warm.items():
        processes = 1 if name == "LocalRunner" else PROCESSES
        overhead_ms = (taken * processes / count - seconds) * 1000
        to_joblib = f"{taken / rival:.2f}" if rival and processes > 1 else ""
        first = f"{cold[name]:.2f}" if name in cold else ""
        rows.append((name, f"{taken:.2f}", f"{overhead_ms:.2f}", to_joblib, first))
    header = ("", "warm (s)", "more per point and process (ms)", "× joblib", "first run (s)")
    return table(header, rows) + "\n"


def plan() -> Iterator[str]:
    """Measure the planning of a million points in a separate process, and yield a sentence on time and memory."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", MILLION]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    size, planned_s, first_s, mebibytes = map(float, done.stdout.split())
    yield (
        f"{size:,.0f} points: planned in {planned_s:.1f} s with all imports, the first rows kept {first_s:.1f} s "
        f"later, {mebibytes:.0f} MB at most in the driver.\n"
    )


def resume(size: int) -> Iterator[str]:
    """Measure how a sweep of ``size`` points, all stored, is resumed in a separate process; yield a sentence."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", RESUMED, str(size), folder]
        subprocess.run([*command, "store"], env=environment, check=True)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    resumed_s, keys_s, frame_s, rows_s, mebibytes = map(float, done.stdout.split())
    yield (
        f"{size:,} stored points: resumed in {resumed_s:.1f} s, of which their keys take {keys_s:.1f} s, with "
        f"{mebibytes:.0f} MB. The table takes {frame_s:.1f} s more when it is read. Building a Row for each point, "
        f"which a resumption does not need, takes {rows_s:.1f} s ({rows_s / resumed_s:.1f} times).\n"
    )


def traces(count: int) -> Iterator[str]:
    """Yield a table of the driver's processor time for storing the traces of ``count`` runs on Spark.

    Its rows are the two writers of the traces: the driver and the workers.
    """
    scenario = wb.Scenario(
        wb.topology.grid(20, 20),
        wb.Flooding(),
        [wb.publish(at=0, what="TEMP IS 26.5", every_s=0.2)],
        wb.Radio(loss=0.1),
        duration_s=30,
    )
    sweep = wb.Sweep(scenario, {"seed": range(count)}, engine="fast", keep="trace")
    rows = []
    for turn in range(2):  # The first turn starts Spark and compiles.
        for writer in ("driver", "workers"):
            with tempfile.TemporaryDirectory() as folder:
                begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
                sweep.run(out=folder, runner=wb.SparkRunner(f"local[{PROCESSES}]", writes=writer), progress=False)
                taken_s, cpu_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
                files = list(Path(folder, "_traces").glob("*.parquet"))
                trace_rows = sum(pq.read_metadata(path).num_rows for path in files)
                size_B = sum(path.stat().st_size for path in files)
            if turn:
                rows.append((writer, f"{trace_rows:,}", f"{cpu_s:.2f}", f"{taken_s:.1f}", f"{size_B / trace_rows:.1f}"))
    yield table(("traces written by", "rows", "the driver's cpu (s)", "wall (s)", "B a row"), rows) + "\n"


def main() -> None:
    """Measure the named parts, or all parts, and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all if none is given")
    parser.add_argument("--quick", action="store_true", help="fewer points")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]}; the parts are {', '.join(PARTS)}")
    print(f"# What a sweep costs beside its points\n\n{machine()}\n")
    for part in options.parts or PARTS:
        pieces = {
            "points": lambda: points(QUICK_SIZES if options.quick else SIZES),
            "plan": plan,
            "traces": lambda: traces(10 if options.quick else 40),
            "resume": lambda: resume(100_000 if options.quick else 1_000_000),
        }
        for piece in pieces[part]():
            print(piece, flush=True)


if __name__ == "__main__":
    main()

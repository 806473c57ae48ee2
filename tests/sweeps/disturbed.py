"""A sweep on a cluster that loses a worker and its driver; one point ends its process, and one never ends.

`python -c PROGRAM FOLDER MASTER POINTS` is the driver that is killed. A test and benchmarks/sweeps_cluster.py call
`play` to run the sweep, and `check` to verify its results.
"""

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from typing import NamedTuple

import pandas as pd
import pyarrow.parquet as pq

import workbench as wb
from tests.repository import REPOSITORY
from tests.until import wait_until
from workbench.sweeps import LocalRunner, ProcessRunner, SweepTable
from workbench.sweeps.store import journal

# Not `python -m`: that would pickle the measure as a function of the module __main__.
PROGRAM = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
TIMEOUT_S = 3.0
PACE_S = 0.05  # minimum duration of a point, so that points are left on a fast machine too when workers and drivers die
ERRORS = {
    "poisoned": "the process that ran this point ended twice (exit status 3)",
    "endless": f"the point did not end within {TIMEOUT_S:g} s and was stopped",
}


def scenario():
    """Return a scenario that runs for some milliseconds."""
    return wb.Scenario(
        topology=wb.topology.grid(3, 3),
        protocol=wb.Diffusion(),
        workload=[wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=8, what="TEMP IS 26.5", every_s=2)],
        radio=wb.Radio(loss=0.1),
        duration_s=5,
    )


def disturbing_seeds(points):
    """Return the seeds of the point that ends its process and of the point that never ends."""
    return points // 3, points // 2


def sweep(points):
    """Return the sweep, with as many seeds as points."""
    poisoned, endless = disturbing_seeds(points)

    def rows_of(run):
        if run.scenario.seed == poisoned:
            os._exit(3)
        while run.scenario.seed == endless:
            pass
        time.sleep(PACE_S)
        return {"trace_rows": run.trace.num_rows}

    return wb.Sweep(scenario(), {"seed": range(points)}, engine="reference", measure=rows_of)


def main(folder, master, points):
    """Run the sweep into a folder on a cluster."""
    from tests.sweeps.cluster import CONFIG

    runner = wb.SparkRunner(master, CONFIG, timeout_s=TIMEOUT_S)
    sweep(int(points)).run(out=folder, runner=runner, progress=False)


class Step(NamedTuple):
    """An event of the story, the seconds since the previous event, and the number of points in the folder by then."""

    event: str
    seconds: float
    points: int


class Story(NamedTuple):
    """The final table of the sweep, the events that it survived, and the error message of a second driver."""

    table: SweepTable
    steps: tuple[Step, ...]
    refused: str


def count_points(out):
    """Return the number of points that a folder has at this moment, in files or in a journal."""
    try:
        lines = [line for path in out.glob(journal.NAMES) for line in journal.lines(path)]
        columns = [pq.read_table(path, columns=["key"]).column("key") for path in out.glob("*.parquet")]
    except OSError:  # a file was deleted after it was listed
        return 0
    return len(
        {key for column in columns for key in column.to_pylist()} | {row["key"] for kind, row in lines if kind == "row"}
    )


def play(folder, points):
    """Run the sweep on a cluster in a folder; kill a worker, then the driver; continue with local processes.

    A second driver tries the folder while the first one lives."""
    from tests.sweeps.cluster import PYTHON, cluster, environment

    out, steps, begin = folder / "results", [], time.monotonic()

    def log_event(event):
        steps.append(Step(event, time.monotonic() - begin - sum(step.seconds for step in steps), count_points(out)))

    with cluster(folder) as workers:
        log_event("a master is there, and two workers are about to be")
        command = [sys.executable, "-c", PROGRAM, str(out), workers.url, str(points)]
        driver = subprocess.Popen(command, cwd=REPOSITORY, env=environment(PYSPARK_PYTHON=PYTHON))
        try:
            wait_until_both_ran(folder, driver)
            wait_for_more(out, points // 20, driver)
            log_event("both workers have run points, and the driver has kept them")
            refused = second_driver(out, points)
            log_event("a second driver was refused")
            workers.kill_worker()
            wait_for_more(out, count_points(out) + points // 40, driver)
            log_event("a worker was killed, and the other one went on")
        finally:
            driver.send_signal(signal.SIGKILL)
            driver.wait()
    log_event("the driver was killed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = sweep(points).run(out=out, runner=ProcessRunner(timeout_s=TIMEOUT_S), progress=False)
    log_event("the processes of this machine have run the rest")
    return Story(table, tuple(steps), refused)


def wait_until_both_ran(folder, driver):
    """Wait until each worker has unpacked the package."""
    packages = [folder / worker / "cache" / "workbench" / "code" for worker in ("with", "without")]
    wait_until(lambda: all(path.exists() for path in packages) or driver.poll() is not None, 120, every_s=0.1)


def wait_for_more(out, before, driver):
    """Wait until a folder has more rows than before; the driver must not end meanwhile."""
    wait_until(lambda: count_points(out) > before or driver.poll() is not None, 120, every_s=0.1)
    assert driver.poll() is None, "the driver has ended by itself"


class _Forbidden:
    """A runner that fails when a sweep runs points."""

    def run(self, plan, numbers, report_progress):
        raise AssertionError("two drivers run into one folder")


def second_driver(out, points):
    """Return the error message that a second driver gets."""
    try:
        sweep(points).run(out=out, runner=_Forbidden(), progress=False)
    except wb.DataError as error:
        return str(error)
    raise AssertionError("a second driver found nothing to run")


def check(out, story, points):
    """Check that each point is stored once, that two have the right errors, and that the others equal a local run."""
    poisoned, endless = disturbing_seeds(points)
    stored = pd.read_parquet(out)
    assert sorted(stored["seed"]) == list(range(points))
    errors = stored.set_index("seed")["error"].dropna().to_dict()
    assert errors == {poisoned: ERRORS["poisoned"], endless: ERRORS["endless"]}
    numbers = [number for number in range(points) if number not in errors]
    frame = story.table.to_pandas()
    frame = frame[frame["seed"].isin(numbers)].reset_index(drop=True)
    times = [name for name in frame if name in ("wall_s", "compile_s")]
    expected = undisturbed(points, numbers).to_pandas()
    pd.testing.assert_frame_equal(frame.drop(columns=times), expected.drop(columns=times))


def undisturbed(points, numbers):
    """Return the table of some points, run one after the other in this process."""
    plan = sweep(points).plan
    with _hurried():
        return SweepTable(plan, [row for some in LocalRunner().run(plan, numbers, None) for row in some])


@contextmanager
def _hurried():
    """Remove the minimum duration of a point. The plan exists already, so its code keeps the same digest."""
    global PACE_S
    pace_s, PACE_S = PACE_S, 0.0
    try:
        yield
    finally:
        PACE_S = pace_s

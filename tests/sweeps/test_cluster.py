"""A sweep on a real cluster of Spark, on the loopback, that loses a worker and then its driver."""

import os
import signal
import subprocess
import sys
import warnings

import pandas as pd
import pytest

import workbench as wb
from tests.repository import REPOSITORY
from tests.sweeps import disturbed
from tests.sweeps.cluster import PYTHON, cluster, environment, python_with_libraries_alone
from tests.until import wait_until
from workbench.cli import doctor
from workbench.sweeps import LocalRunner, ProcessRunner, SweepTable
from workbench.sweeps.store import FolderStore

JAVA = doctor.java()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not JAVA.is_ok, reason=f"Spark needs Java: {JAVA.remedy}"),
]
POINTS = int(os.environ.get("WORKBENCH_CLUSTER_POINTS", "200"))  # more of them in benchmarks/sweeps.py


def kept(folder, sweep):
    """How many points of a sweep a folder has; it may be written at this moment."""
    try:
        return len(FolderStore(folder).open(sweep.plan))
    except (wb.DataError, FileNotFoundError):  # a file went while it was looked for
        return 0


class Forbidden:
    """For who must not get to run anything."""

    def run(self, plan, numbers, moving):
        raise AssertionError("two drivers run into one folder")


def test_a_sweep_loses_its_workers_and_its_driver_and_no_point(tmp_path):
    out = tmp_path / "results"
    sweep = disturbed.sweep(POINTS)
    with cluster(tmp_path) as workers:
        command = [sys.executable, "-c", disturbed.PROGRAM, str(out), workers.url, str(POINTS)]
        driver = subprocess.Popen(command, cwd=REPOSITORY, env=environment(PYSPARK_PYTHON=PYTHON))
        try:
            wait_until(lambda: kept(out, sweep) > 10 or driver.poll() is not None, 90)
            assert driver.poll() is None, "the driver has ended by itself"
            with pytest.raises(wb.DataError, match="another|writ"):
                sweep.run(out=out, runner=Forbidden(), progress=False)
            workers.kill_worker()
            before = kept(out, sweep)
            wait_until(lambda: kept(out, sweep) > before or driver.poll() is not None, 60)
            assert driver.poll() is None, "the driver has ended by itself"
        finally:
            driver.send_signal(signal.SIGKILL)
            driver.wait()
    found = kept(out, sweep)
    assert before < found < POINTS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = sweep.run(out=out, runner=ProcessRunner(timeout_s=disturbed.TIMEOUT_S), progress=False)
    assert_as_undisturbed(out, table)


def assert_as_undisturbed(out, table):
    """Each point is in the folder once; two say what happened, and the others are what a local run gives."""
    poisoned, endless = disturbed.places(POINTS)
    stored = pd.read_parquet(out)
    assert sorted(stored["seed"]) == list(range(POINTS))
    errors = stored.set_index("seed")["error"].dropna().to_dict()
    assert errors == {poisoned: disturbed.SAID["poisoned"], endless: disturbed.SAID["endless"]}
    numbers = [number for number in range(POINTS) if number not in errors]
    plan = disturbed.sweep(POINTS).plan
    rows = [row for some in LocalRunner().run(plan, numbers, None) for row in some]
    frame = table.to_pandas()
    frame = frame[frame["seed"].isin(numbers)].reset_index(drop=True)
    times = [name for name in frame if name in ("wall_s", "compile_s")]
    expected = SweepTable(plan, rows).to_pandas()
    pd.testing.assert_frame_equal(frame.drop(columns=times), expected.drop(columns=times))


def test_the_python_of_the_second_worker_has_no_package(tmp_path):
    python = python_with_libraries_alone(tmp_path)
    code = "import pyspark, networkx\ntry:\n import workbench.sim\nexcept ImportError:\n print('without')"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.stdout.split() == ["without"], done.stderr

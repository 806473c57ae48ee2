"""A sweep on a real cluster of Spark, on the loopback, that loses a worker and later its driver."""

import subprocess
import sys

import pytest

from tests.repository import REPOSITORY
from tests.sweeps import disturbed
from tests.sweeps.cluster import CONFIG, PYTHON, cluster, environment, python_with_libraries_alone
from workbench.cli import doctor
from workbench.locations import location

JAVA = doctor.java()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.family,
    pytest.mark.skipif(not JAVA.is_ok, reason=f"Spark needs Java: {JAVA.remedy}"),
]
POINTS = 200  # benchmarks/sweeps_cluster.py has 2,000


def test_a_sweep_loses_its_workers_and_its_driver_and_no_point(tmp_path):
    story = disturbed.play(tmp_path, POINTS)
    assert "is in use: process" in story.refused
    points = [step.points for step in story.steps]
    assert points == sorted(points)
    at_refusal, after_worker_loss, after_driver_loss = points[2:5]
    assert 10 < at_refusal < after_worker_loss <= after_driver_loss < POINTS
    disturbed.check(tmp_path / "results", story, POINTS)


def test_the_python_of_the_second_worker_has_no_package(tmp_path):
    python = python_with_libraries_alone(tmp_path)
    code = "import pyspark, networkx\ntry:\n import workbench.sim\nexcept ImportError:\n print('without')"
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.stdout.split() == ["without"], done.stderr


def examine(url, *options, **variables):
    """Run the doctor in a process of its own; return its exit status and its output with single spaces."""
    settings = [word for name, value in CONFIG.items() for word in ("--conf", f"{name}={value}")]
    command = [sys.executable, "-m", "workbench", "doctor", "--spark", url, *settings, *options]
    env = environment(PYTHONPATH=str(REPOSITORY), **variables)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    return done.returncode, " ".join(done.stdout.split()) or done.stderr


def test_the_doctor_examines_each_worker(tmp_path, s3_url):
    with cluster(tmp_path) as begun:
        status, printed = examine(begun.url, "--out", s3_url, PYSPARK_PYTHON=PYTHON)
        assert status == 0, printed
        assert printed.startswith(f"Ready: 2 workers with 2 cores can run sweeps and write to {s3_url} session ok")
        assert "obstore" in printed and "2 workers answered" in printed
        assert list((tmp_path / "without" / "cache" / "workbench" / "code").glob("workbench-*"))
        assert list(location(s3_url).iterdir()) == []
        status, printed = examine(begun.url, "--out", str(tmp_path / "results"), PYSPARK_PYTHON="/no/python")
    assert status == 1 and printed.startswith("Not ready: 1 problem"), printed
    assert "Python PROBLEM the program /no/python does not exist on 127.0.0.1 remedy: install Python" in printed
    assert not (tmp_path / "results").exists()

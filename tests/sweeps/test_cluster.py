"""A sweep on a real cluster of Spark, on the loopback, that loses a worker and later its driver."""

import subprocess

import pytest

from tests.sweeps import disturbed
from tests.sweeps.cluster import environment, python_with_libraries_alone
from workbench.cli import doctor

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

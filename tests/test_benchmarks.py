"""The benchmarks compare like with like: every contender plays the same flood to the same number of receptions."""

import sys

import pytest
from conftest import REPOSITORY

from workbench import topology

pytest.importorskip("simpy", reason="SimPy is not installed: pip install -e '.[bench]'")
pytest.importorskip("wsnsimpy", reason="wsnsimpy is not installed: pip install -e '.[bench]'")
sys.path.append(str(REPOSITORY / "benchmarks"))
import run
from networks import network


@pytest.mark.parametrize("graph", [topology.grid(4, 5), topology.disc(30, 60, 40, radius_m=20)])
def test_every_contender_comes_to_the_same_number_of_receptions(graph):
    small = network("small", graph, 20.0 if len(graph) == 30 else 10.0, floods=5)
    for name, (floods, job) in run.flood_jobs(small, 5).items():
        assert job() == floods * small.arcs, name


def test_measuring_gives_a_row_for_each_contender_and_recording():
    small = network("small", topology.grid(4, 5), 10.0, floods=2)
    rows = run.measure_flood(small, floods=2, repetitions=1)
    assert [row[1] for row in rows] == [run.METRICS, run.TRACE, run.SIMPY, run.CALLBACKS, run.WSNSIMPY]
    assert rows[2][-1] == "1.00"
    assert len(run.measure_diffusion(small, repetitions=1)) == 2


def test_table_lines_up():
    text = run.table(["network", "x"], [["grid", "1.5"], ["a longer name", "10"]])
    assert text.splitlines() == [
        "| network       |   x |",
        "|---------------|----:|",
        "| grid          | 1.5 |",
        "| a longer name |  10 |",
    ]

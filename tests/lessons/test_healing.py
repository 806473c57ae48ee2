"""Lesson 12: the healing times of made-up runs, and each claim of the lesson's text about its own results."""

import json
import math

import numpy as np
import pytest

import workbench as wb
from lessons.figures import healing
from tests.repository import REPOSITORY

NOTEBOOK = REPOSITORY / "notebooks" / "12-which-heals-fastest.ipynb"
IDEAL = wb.Radio(loss="none")


def line_run(*changes):
    """Return a run on a line of three nodes, in which node 2 publishes once a second from 0.5 s to 59.5 s."""
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(2, "TEMP IS 25", every_s=1, start_s=0.5), *changes]
    return wb.Scenario(wb.topology.line(3), wb.Flooding(), workload, IDEAL, duration_s=60).run()


def test_a_healing_time_ends_with_the_first_reading_after_the_last_gap():
    run = line_run(wb.outage(1, 20, 27))
    assert healing.healing_s(run, 20) == 7.5
    assert healing.healing_s(run, 27) == 0
    assert healing.healing_s(run, 20, 26) == math.inf


def test_two_lost_readings_are_no_gap():
    run = line_run(wb.outage(1, 20, 22), wb.outage(1, 30, 32))
    assert np.count_nonzero(~healing.readings(run)[1]) == 4
    assert healing.healing_s(run, 20) == 0


def test_a_gap_at_the_end_never_heals():
    assert healing.healing_s(line_run(wb.outage(1, 20)), 20) == math.inf


def test_arrival_rows_have_a_mark_for_each_reading():
    run = line_run(wb.outage(1, 20, 27))
    drawing = healing.arrival_rows({"Flooding": run}, {"outage": (20, 27)})
    svg = drawing.to_svg()
    assert svg.count(f'stroke="{wb.views.palette.LOST}"') + svg.count(f'stroke="{wb.views.palette.DELIVERED}"') >= 60
    assert drawing.record is not None and ">outage<" in svg


def test_reasons_without_a_lost_reading_say_so():
    matrix = wb.faults.matrix(
        [wb.Flooding()], ["none"], radio=IDEAL, seeds=[1], runner=wb.LocalRunner(), progress=False
    )
    assert healing.reasons(matrix, [("none", "Flooding")]).endswith("no reading was lost after the fault")


# The lesson's text


@pytest.fixture(scope="module")
def names():
    """Return the names that the notebook's cells define, without exercises."""
    defined = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and "exercise" not in cell["metadata"].get("tags", ()):
            exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), defined)
    return defined


def lost_times(run, from_s, until_s):
    published_s, has_arrived = healing.readings(run)
    return published_s[~has_arrived & (published_s >= from_s) & (published_s < until_s)].tolist()


@pytest.mark.family
def test_diffusion_delivers_at_the_merge_and_after_the_next_refresh(names):
    run = names["second"]["Diffusion"]
    rows = run.trace.to_pandas()
    interests = rows[(rows["event"] == "sent") & (rows["message"] == "interest") & (rows["node"] == 18)]["time_us"]
    assert (interests / 1e6).round().tolist() == [1, 31, 61, 91, 121, 151, 181, 211, 241]
    assert lost_times(run, 20, 160) == list(range(60, 98))  # 98 and 99 arrive late
    assert lost_times(run, 160, 260) == list(range(160, 180))
    frames = rows[
        (rows["event"] == "sent") & (rows["origin"] == 1) & (rows["message"] == "data") & (rows["node"] == 10)
    ]
    lost = frames[(frames["sequence"] >= 140) & (frames["sequence"] < 155)]  # published from 160 s to 175 s
    assert (lost["peer"] == 21).all() and (lost.groupby("sequence").size() == 16).all()


@pytest.mark.family
def test_the_other_protocols_of_the_second_run_heal_as_described(names):
    assert lost_times(names["second"]["TinyMQ"], 160, 220) == list(range(160, 220))
    assert healing.healing_s(names["second"]["DPS"], 160, 220) == 12
    shares = {
        (from_s, until_s): np.mean(
            [len(lost_times(run, from_s, until_s)) / (until_s - from_s) for run in names["runs"]["Flooding"]]
        )
        for from_s, until_s in [(20, 60), (110, 160), (160, 220)]
    }
    assert shares[160, 220] > 1.5 * max(shares[20, 60], shares[110, 160]) > 0


@pytest.mark.family
def test_healing_times_of_the_five_runs_are_those_of_the_text(names):
    times_s = {name: sorted(healing.healing_s(run, 160, 220) for run in runs) for name, runs in names["runs"].items()}
    assert times_s["Diffusion"][0] == 0 and 15 < times_s["Diffusion"][-1] <= 21
    assert 25 < times_s["DPS"][-1] < 35
    assert times_s["TinyMQ"][0] == 26 and times_s["TinyMQ"].count(math.inf) == 2
    assert times_s["Flooding"] == [0, 0, 0, 0, 48]


@pytest.mark.family
def test_the_matrix_shows_what_the_text_says(names):
    matrix = names["matrix"]
    recovery_s = {name: matrix.cell("relays leave", name).recovery_s for name in matrix.protocols}
    assert recovery_s["Flooding"] < 2 and recovery_s["Diffusion"] <= 25 and recovery_s["TinyMQ"] > 60
    (leave,) = matrix.run("relays leave", "DPS").scenario.workload[2:]
    assert len(leave.at) == 8 and leave.start_s == 96
    assert all(matrix.cell("sink crashes", name).after > 0.975 for name in matrix.protocols)
    during = {name: matrix.cell("sink moves", name).during for name in matrix.protocols}
    assert during.pop("Flooding") > 0.97 and all(share < 0.9 for share in during.values())
    (move,) = matrix.run("sink moves", "DPS").scenario.workload[2:]
    (begin_s, *begin_m), (end_s, *end_m) = move.along.points
    assert math.dist(begin_m, end_m) / (end_s - begin_s) == pytest.approx(2, abs=0.1)
    assert round(matrix.cell("partition", "Flooding").recovery_s) == 91
    assert "collided" in matrix.why("partition", "Flooding")[0]
    assert "no query" in matrix.why("relays leave", "TinyMQ")[0] and "muted" in matrix.why("sink moves", "DPS")[0]
    assert len(wb.faults.FAULTS) == 17


@pytest.mark.family
def test_costs_are_those_of_the_text(names):
    frames, charge = healing.frames_per_reading(names["matrix"]), healing.charge_per_reading(names["matrix"])
    assert frames.loc["Flooding", "none"] > 3 * frames.loc[["Diffusion", "TinyMQ"], "none"].max()
    assert frames.loc["Flooding"].between(17, 23).all()
    faults = frames.drop(index="Flooding").drop(columns="none")
    assert faults.T.gt(frames["none"].drop("Flooding")).all(axis=None)
    assert charge["none"].max() < 1.03 * charge["none"].min()
    charge_mC = names["matrix"].run("none", "Flooding").energy().summary
    assert charge_mC["charge_mC_idle"] > 0.95 * charge_mC["charge_mC"]


@pytest.mark.family
def test_timers_trade_frames_for_readings(names):
    matrix = names["timer_matrix"]
    frames = healing.frames_per_reading(matrix)["none"]
    lost = {name: 1 - matrix.cell("relays leave", name).during for name in matrix.protocols}
    assert lost["Diffusion 5 s"] < 0.01 and 0.5 < frames["Diffusion 5 s"] / frames["Flooding"] < 0.65
    assert frames["Diffusion 2 s"] > frames["Flooding"]
    assert lost["TinyMQ 1 s"] == pytest.approx(0.1, abs=0.02)


@pytest.mark.family
def test_nodes_that_never_rest_defeat_paths(names):
    matrix = names["walking_matrix"]
    frames = healing.frames_per_reading(matrix)["never at rest"]
    runs = matrix.runs.to_pandas()
    walking = runs[runs["workload"] == "never at rest"].groupby("protocol")[["delivered", "expected"]].sum()
    share = walking["delivered"] / walking["expected"]
    assert share[["Diffusion", "TinyMQ", "DPS"]].max() < 0.5
    assert (frames[["TinyMQ", "DPS"]] > 200).all()
    assert share["Flooding"] > 0.99 and share["Diffusion, 2 s"] > 0.98
    assert frames["Diffusion, 2 s"] > frames["Flooding"] > frames["Diffusion, 5 s"] > 0.8 * frames["Flooding"]
    assert share["Diffusion, 5 s"] == pytest.approx(0.95, abs=0.02)
    of_flooding = runs[(runs["workload"] == "never at rest") & (runs["protocol"] == "Flooding")]
    assert of_flooding["latency_ms_p95"].max() < 100
    move = matrix.run("never at rest", "Diffusion").scenario.workload[-1].along
    assert (move.slowest_m_s, move.fastest_m_s) == (0.5, 1.5)

"""Sweeps with results at a URL: the same rows and traces as in a folder, also after killed drivers and lost workers."""

import os
import pickle
import random
import signal
import subprocess
import sys

import pandas as pd
import pytest

import workbench as wb
from tests.object_stores import wait_for_answers
from tests.repository import REPOSITORY
from tests.sweeps import cluster
from tests.sweeps.made import Counting
from tests.until import wait_until
from workbench import pipelines
from workbench.cli import doctor
from workbench.locations import ObjectPath, location, locks, objects
from workbench.sim import trace
from workbench.sweeps import LocalRunner, ProcessRunner, store
from workbench.sweeps.processes import pack
from workbench.sweeps.spark import worker
from workbench.sweeps.store import journal, traces
from workbench.sweeps.store.folder import LOCK
from workbench.sweeps.work import rows_from_table

SILENT = {"progress": False}
# Not `python -m`: that would pickle the scenario's functions as those of the module __main__.
PROGRAM = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
POINTS = 60


def scenario():
    """Return a scenario that loses frames, with a sink at one end of a line of five nodes and a source at the other."""
    workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=4, what="TEMP IS 26.5", every_s=2)]
    return wb.Scenario(wb.topology.line(5), wb.Flooding(), workload, wb.Radio(loss=0.2), duration_s=5)


def sweep(points, **options):
    return wb.Sweep(scenario(), {"seed": range(points)}, engine="reference", keep="trace", **options)


def main(url, runner, points=POINTS):
    """Run a sweep into a URL, with a runner given as Python."""
    sweep(int(points)).run(out=url, runner=eval(runner), **SILENT)


def frame_of(table):
    return table.to_pandas().drop(columns=["wall_s", "engine"])


def stored_points(url):
    """Return the number of rows at a URL at this moment, in files or journals."""
    try:
        rows = sum(file.table().num_rows for file in store.files.files(location(url)))
        lines = [line for path in location(url).glob(journal.NAMES) for line in journal.lines(path)]
    except (wb.DataError, OSError):  # an object was removed after it was listed
        return 0
    return rows + sum(kind == "row" for kind, _ in lines)


def assert_each_point_is_stored_once(url, points):
    stored = store.read(url)
    assert sorted(stored.column("seed").to_pylist()) == list(range(points))
    assert len(set(stored.column("key").to_pylist())) == points
    assert {path.name.partition("-")[0] for path in location(url).iterdir()} == {"rows", "_sweep"}
    runs = [(run.scenario, path) for path in traces.files(location(url)) for run in traces.File(path).runs]
    assert len(runs) == len({scenario for scenario, _ in runs}) == points
    assert {path.name.partition("-")[0] for path in (location(url) / traces.FOLDER).iterdir()} == {"traces"}


def assert_traces_are_those_of(url, seeds):
    table = pipelines.traces(url)
    for seed in seeds:
        run = scenario().replace(seed=seed).run("reference")
        rows = table.filter([text == run.scenario.hash for text in table["scenario"].to_pylist()])
        assert trace.digest(rows.select(trace.SCHEMA.names)) == run.trace_hash


def test_a_sweep_into_a_url_stores_and_resumes_as_one_into_a_folder(memory_url, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        sweep(8).run(out=memory_url, runner=Counting(5), **SILENT)
    rest = Counting()
    at_url = sweep(8).run(out=memory_url, runner=rest, **SILENT)
    assert rest.ran == [5, 6, 7]
    in_folder = sweep(8).run(out=tmp_path, runner=LocalRunner(), **SILENT)
    pd.testing.assert_frame_equal(frame_of(at_url), frame_of(in_folder))
    assert_each_point_is_stored_once(memory_url, 8)
    assert_traces_are_those_of(memory_url, [0, 7])
    loads = [pipelines.load_per_node(pipelines.traces(place)) for place in (memory_url, tmp_path)]
    pd.testing.assert_frame_equal(*loads)
    only = pipelines.traces(memory_url, only=[scenario().replace(seed=3).hash])
    assert set(only["scenario"].to_pylist()) == {scenario().replace(seed=3).hash}


def test_a_url_without_results_is_an_error_with_a_sentence(memory_url):
    with pytest.raises(wb.DataError, match=f"{memory_url} contains no results of a sweep"):
        store.read(memory_url)
    with pytest.raises(wb.DataError, match=f"{memory_url} does not exist"):
        pipelines.traces(memory_url)


def test_a_store_that_refuses_to_write_stops_the_sweep_and_loses_no_stored_point(memory_url, monkeypatch):
    send, budget = ObjectPath.send, [12]

    def refuse(path, content):
        budget[0] -= 1
        if budget[0] < 0:
            raise OSError(5, "the quota of the bucket is exceeded")
        send(path, content)

    with monkeypatch.context() as full:
        full.setattr(ObjectPath, "send", refuse)
        with pytest.raises(wb.DataError, match="cannot be written: the quota of the bucket is exceeded") as error:
            sweep(20).run(out=memory_url, runner=LocalRunner(), **SILENT)
    assert "run it again to continue" in error.value.__notes__[0]
    rest = Counting()
    sweep(20).run(out=memory_url, runner=rest, **SILENT)
    assert 0 < len(rest.ran) < 20
    assert_each_point_is_stored_once(memory_url, 20)


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.family)])
def test_a_driver_killed_at_any_write_loses_and_repeats_no_point(memory_url, monkeypatch, stride):
    """The driver is killed before and after each write, renaming and removal in turn."""

    class Killed(BaseException):
        pass

    reference = frame_of(sweep(5).run(out=memory_url + "-reference", runner=LocalRunner(), **SILENT))
    for step in range(1, 200, stride):
        url, steps = f"{memory_url}-{step}", iter(range(10_000))
        sweep(1).run(out=url, runner=LocalRunner(), **SILENT)

        def dying(method, steps=steps, step=step):
            def call(path, *arguments, **options):
                if path.name == LOCK:
                    return method(path, *arguments, **options)
                if next(steps) == step:
                    raise Killed
                result = method(path, *arguments, **options)
                if next(steps) == step:
                    raise Killed
                return result

            return call

        with monkeypatch.context() as patch:
            for name in ("send", "replace", "unlink"):
                patch.setattr(ObjectPath, name, dying(getattr(ObjectPath, name)))
            try:
                sweep(4).run(out=url, runner=LocalRunner(), **SILENT)
                is_whole = True
            except Killed:
                is_whole = False
        again = sweep(5).run(out=url, runner=LocalRunner(), **SILENT)
        pd.testing.assert_frame_equal(frame_of(again), reference)
        assert_each_point_is_stored_once(url, 5)
        if is_whole:
            assert step > 20
            return
    pytest.fail("there are more steps than expected")


def run_share(plan, numbers, folder):
    """Run points as a task of Spark does, with traces written by the task; return the rows."""
    path = folder / "plan"
    path.write_bytes(pack(plan))
    batches = list(worker.run_share(str(path), numbers, None, plan.trace_folder))
    return [row for batch in batches for row in rows_from_table(batch)]


class Workers:
    """A runner whose points run as in tasks of Spark, the share 0 to 5 twice: its first worker was lost afterwards."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, plan, numbers, report_progress):
        assert pickle.loads(pickle.dumps(plan.trace_folder)) == plan.trace_folder != ""
        run_share(plan, list(numbers[:6]), self.folder)
        for share in (numbers[:3], numbers[3:]):
            rows = run_share(plan, list(share), self.folder)
            assert all(row.trace == b"" and row.error is None for row in rows)
            yield rows


@pytest.mark.parametrize("fixture", ["tmp_path", "s3_url"])
def test_workers_write_traces_and_a_repeated_share_counts_once(request, fixture, tmp_path):
    place = request.getfixturevalue(fixture)
    out = place / "results" if fixture == "tmp_path" else place
    plan = sweep(10).plan.fresh()
    plan = plan.__class__(**{**plan.__dict__, "trace_folder": store.FolderStore(out).trace_folder})
    run_share(plan, list(range(6)), tmp_path)
    run_share(plan, list(range(3)), tmp_path)
    run_share(plan, list(range(6)), tmp_path)  # the same file as the first time
    assert len(list(traces.files(location(out)))) == 2
    table = pipelines.traces(out)  # while the sweep runs
    assert pipelines.load_per_node(table)["sent"].sum() == sum(
        scenario().replace(seed=seed).run("reference").metrics["transmissions"] for seed in range(6)
    )
    sweep(10).run(out=out, runner=Workers(tmp_path), **SILENT)
    if fixture == "s3_url":
        assert_each_point_is_stored_once(out, 10)
        assert_traces_are_those_of(out, [0, 5, 9])
    assert len(list(traces.files(location(out)))) == 1
    rest = Counting()
    sweep(10).run(out=out, runner=rest, **SILENT)
    assert rest.ran == []


def test_an_unknown_writer_of_traces_is_refused():
    with pytest.raises(wb.ScenarioError, match='`writes` is \'both\'; it must be "driver", "workers" or None'):
        wb.SparkRunner(writes="both")


def kill(driver, url):
    """Kill a driver and its children, and remove its lock, which would expire after half a minute."""
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    lock = location(url) / LOCK
    wait_for_answers(lock)  # A request of the driver may arrive after its death, but not after half a minute.
    lock.unlink(missing_ok=True)


def play_with_killed_drivers(url, environment, runner, kills, seed):
    """Kill drivers at random moments, then finish the sweep in this process; return the table."""
    draw = random.Random(seed)
    for _ in range(kills):
        # The drivers leave the last point to the last sweep: a sweep that finds all points stored tidies nothing.
        command = [sys.executable, "-c", PROGRAM, url, runner, str(POINTS - 1)]
        driver = subprocess.Popen(command, cwd=REPOSITORY, env={**os.environ, **environment}, start_new_session=True)
        before = stored_points(url)
        goal = min(POINTS - 1, before + draw.randint(1, max(1, POINTS // (kills + 1))))
        wait_until(lambda goal=goal, driver=driver: stored_points(url) >= goal or driver.poll() is not None, 120, 0.05)
        kill(driver, url)
    return sweep(POINTS).run(out=url, runner=ProcessRunner(), **SILENT)


@pytest.mark.parametrize(
    ("kills", "runner"),
    [
        pytest.param(6, "wb.ProcessRunner()", marks=pytest.mark.family),
        pytest.param(2, "wb.SparkRunner('local[2]')", marks=[pytest.mark.family, pytest.mark.spark]),
    ],
)
def test_killed_drivers_lose_and_repeat_no_point_on_s3(s3_url, s3_environment, tmp_path, kills, runner, family_seed):
    table = play_with_killed_drivers(s3_url, s3_environment, runner, kills, family_seed)
    pd.testing.assert_frame_equal(
        frame_of(table), frame_of(sweep(POINTS).run(out=tmp_path, runner=ProcessRunner(), **SILENT))
    )
    assert_each_point_is_stored_once(s3_url, POINTS)
    assert_traces_are_those_of(s3_url, [0, POINTS // 2, POINTS - 1])


def test_a_second_driver_is_refused_and_a_dead_ones_lock_expires(s3_url, s3_environment, monkeypatch):
    program = f"from workbench.locations import locks; locks.BEAT_S = 0.3; {PROGRAM}"
    slow = "type('Slow', (), {'run': lambda self, *a: iter(lambda: __import__('time').sleep(600), 1)})()"
    driver = subprocess.Popen(
        [sys.executable, "-c", program, s3_url, slow], cwd=REPOSITORY, env={**os.environ, **s3_environment}
    )
    for name, seconds in (("BEAT_S", 0.3), ("EXPIRES_S", 3.0), ("_POLL_S", 0.1)):
        monkeypatch.setattr(locks, name, seconds)
    try:
        wait_until(lambda: (location(s3_url) / LOCK).exists(), 60)
        with pytest.raises(wb.DataError, match=rf"is in use: process {driver.pid} on .* runs a sweep into it"):
            sweep(3).run(out=s3_url, runner=LocalRunner(), **SILENT)
    finally:
        driver.kill()
        driver.wait()
    assert objects._open_store.cache_info().currsize == 1
    assert len(sweep(3).run(out=s3_url, runner=LocalRunner(), **SILENT)) == 3
    assert_each_point_is_stored_once(s3_url, 3)


@pytest.mark.family
@pytest.mark.spark
def test_executors_and_drivers_killed_while_workers_write_traces_lose_and_repeat_no_run(
    s3_url, s3_environment, tmp_path
):
    java = doctor.java()
    if not java.is_ok:
        pytest.skip(f"Spark needs Java: {java.remedy}")
    kills = 0
    with cluster.cluster(tmp_path) as started:
        for _ in range(2):
            runner = f"wb.SparkRunner({started.url!r}, {cluster.CONFIG!r})"
            driver = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, s3_url, runner, "120"],
                cwd=REPOSITORY,
                env=cluster.environment(PYSPARK_PYTHON=cluster.PYTHON),
                start_new_session=True,
            )
            goal = stored_points(s3_url)
            for _ in range(2):
                goal += 12
                wait_until(
                    lambda goal=goal, driver=driver: stored_points(s3_url) >= goal or driver.poll() is not None,
                    180,
                    0.1,
                )
                assert driver.poll() is None, "the driver has ended by itself"
                kills += started.kill_executors()
            kill(driver, s3_url)
    assert kills >= 4
    table = sweep(120).run(out=s3_url, runner=ProcessRunner(), **SILENT)
    expected = sweep(120).run(out=tmp_path / "here", runner=ProcessRunner(), **SILENT)
    pd.testing.assert_frame_equal(frame_of(table), frame_of(expected))
    assert_each_point_is_stored_once(s3_url, 120)
    assert_traces_are_those_of(s3_url, [0, 60, 119])

"""Sweeps on Spark in one session: the same results as in this process, user code, interruption and resumption."""

import importlib
import sys
import threading
from contextlib import nullcontext

import pandas as pd
import pyarrow as pa
import pytest

import workbench as wb
from tests.sweeps.made import scenario
from tests.until import wait_until
from workbench import cli
from workbench.cli import doctor, spark_doctor
from workbench.protocols.tinymq.metrics import load_metrics
from workbench.sim import trace
from workbench.sweeps import LocalRunner, SparkRunner
from workbench.sweeps.spark.session import session
from workbench.sweeps.store import traces

JAVA = doctor.java()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not JAVA.is_ok, reason=f"Spark needs Java: {JAVA.remedy}"),
]


@pytest.fixture(scope="module", autouse=True)
def spark():
    """Return the session that the first sweep would start, shared by all tests."""
    started = session("local[2]", {})
    yield started
    started.stop()


def assert_same_here_and_on_spark(scenario, over, warning=None, measure=None):
    """Run a sweep on Spark and in this process, check that the rows are equal, and return them as a frame.

    The wall time and the engine may differ."""
    frames = []
    for runner in (SparkRunner(), LocalRunner()):
        with pytest.warns(UserWarning, match=warning) if warning else nullcontext():
            table = wb.Sweep(scenario, over, measure=measure).run(runner=runner)
            frames.append(table.to_pandas().drop(columns=["wall_s", "engine"]))
    pd.testing.assert_frame_equal(*frames)
    return frames[0]


def test_spark_gives_the_same_rows_as_this_process(spark):
    over = {
        "topology": [wb.topology.line(5), wb.topology.random_geometric(12, 40, 40, seed=3)],
        "protocol": [wb.Flooding(), wb.Diffusion(ttl=9)],
        "radio.loss": ["links", 0.2],
        "seed": range(2),
    }
    frame = assert_same_here_and_on_spark(scenario(), over)
    assert len(frame) == 16
    assert set(frame["error"]) == {None}
    # The session existed before the sweep, which uses it and leaves it open.
    assert spark.range(3).count() == 3


def test_a_comparison_on_spark_equals_the_one_in_this_process(spark):
    protocols = [wb.Flooding(), wb.TinyMQ()]
    on_spark, here = (
        wb.compare(scenario(), protocols, over={"sinks": (1, 2)}, seeds=2, runner=runner)
        for runner in (SparkRunner(), LocalRunner())
    )
    pd.testing.assert_frame_equal(*(each.summary("transmissions", x="sinks") for each in (on_spark, here)))
    assert on_spark.notes == here.notes
    assert set(on_spark.to_pandas()["error"]) == {None}


USERS_MODULE = """
import workbench as wb
from workbench.protocols.flooding.node import FloodingNode

MARGIN = 300

def warmer(attributes):
    gas = wb.attributes.key_of("GAS").number
    return [a._replace(value=a.value + MARGIN) if a.key == gas else a for a in attributes]

class QuietNode(FloodingNode):
    def publish(self, attributes, now, payload=b""):
        return FloodingNode.publish(self, attributes, now, payload) if now else 0

class Quiet(wb.Flooding):
    node = QuietNode

def with_margin(run):
    return {"rows_and_margin": run.trace.num_rows + MARGIN}
"""


@pytest.fixture
def users_module(tmp_path, monkeypatch):
    """Return a module of the user that workers cannot import, because its file is deleted."""
    path = tmp_path / "users_module.py"
    path.write_text(USERS_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("users_module")
    path.unlink()
    yield module
    del sys.modules["users_module"]


def test_filters_protocols_keys_and_measures_of_the_user_are_sent_along(users_module):
    wb.register_key(172, "GAS", unit="ppm")
    wb.register_filter("warmer", users_module.warmer)
    workload = [wb.subscribe(at=0, what="GAS GE 400"), wb.publish(at=4, what="GAS IS 200", every_s=2)]
    protocols = {"plain": wb.Diffusion(), "filtered": wb.Diffusion(filters=(wb.Filter("warmer", at=[2]),))}
    frame = assert_same_here_and_on_spark(scenario(workload=workload), {"protocol": protocols, "seed": [1, 2]})
    assert frame.groupby("protocol")["wrong_deliveries"].sum().to_dict() == {"plain": 0, "filtered": 0}
    frame = assert_same_here_and_on_spark(scenario(), {"protocol": [users_module.Quiet(), wb.Flooding()]})
    assert frame["sent_flood"].tolist() == [10, 15]
    frame = assert_same_here_and_on_spark(scenario(), {"seed": [1, 2]}, measure=users_module.with_margin)
    assert frame["rows_and_margin"].min() > users_module.MARGIN


def test_a_measure_of_the_package_is_imported_by_the_worker():
    workload = [wb.publish(at=4, what="TEMP IS 26", start_s=4)]
    tiny = scenario(protocol=wb.TinyMQ(roots=[0]), workload=workload)
    frame = assert_same_here_and_on_spark(tiny, {"seed": [1, 2]}, measure=load_metrics)
    assert frame["events_published"].tolist() == [1, 1]


def explode(attributes):
    return 1 / 0


def test_a_failure_on_a_worker_is_reported_as_in_this_process():
    wb.register_filter("explode", explode)
    over = {"protocol.filters": {"none": (), "bad": (wb.Filter("explode"),)}, "seed": [1, 2]}
    warning = (
        "2 of 4 points failed; the first failure is protocol.filters=bad, seed=1: filter explode failed with "
        "ZeroDivisionError"
    )
    assert_same_here_and_on_spark(scenario(), over, warning)


class InterruptedAfter:
    """A SparkRunner that is interrupted as by Ctrl-C after some tasks."""

    def __init__(self, tasks):
        self.tasks = tasks

    def run(self, plan, numbers, report_progress):
        for count, rows in enumerate(SparkRunner().run(plan, numbers, report_progress), start=1):
            yield rows
            if count == self.tasks:
                raise KeyboardInterrupt


def test_a_stopped_sweep_continues_and_ends_with_each_point_once(tmp_path):
    sweep = wb.Sweep(scenario(), {"radio.loss": [0.0, 0.2], "seed": range(8)})
    with pytest.raises(KeyboardInterrupt, match="1 of 16 points are stored in"):
        sweep.run(out=tmp_path, runner=InterruptedAfter(tasks=1))
    assert len(pd.read_parquet(tmp_path)) == 1
    assert len(sweep.run(out=tmp_path)) == 16
    stored = pd.read_parquet(tmp_path)
    assert sorted(stored["point"]) == sorted(point.point_key for point in sweep.points)


def test_an_interrupt_cancels_running_tasks_and_leaves_the_session_open(spark):
    # Minutes of work, with an interrupt when the runner first reports progress.
    busy = scenario(topology=wb.topology.grid(20, 20), protocol=wb.Flooding(), duration_s=5_000)
    sweep = wb.Sweep(busy.replace(**{"workload.1.every_s": 0.1}), {"seed": range(4)})

    def interrupt(points):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(SparkRunner().run(sweep.plan, range(4), interrupt))
    assert list(spark.sparkContext.statusTracker().getActiveJobsIds()) == []
    assert spark.range(3).count() == 3


class UnpicklingFails:
    """An object that can be pickled, but not unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def filter_that_holds(thing):
    return lambda attributes: attributes if thing else None


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (threading.Lock(), "filter holder cannot be pickled .*LocalRunner"),
        (UnpicklingFails(), "Spark could not run the sweep: ValueError: invalid literal for int.*'no number'"),
    ],
)
def test_an_object_that_cannot_be_sent_to_workers_is_an_error_with_one_sentence(thing, sentence):
    wb.register_filter("holder", filter_that_holds(thing))
    sweep = wb.Sweep(scenario(protocol=wb.Diffusion(filters=(wb.Filter("holder"),))), {"seed": [1]})
    with pytest.raises(wb.WorkbenchError, match=sentence) as error:
        sweep.run()
    assert "\n" not in str(error.value)


def test_spark_reads_a_folder_of_results_without_a_schema(spark, tmp_path):
    over = {"radio.loss": ["links", 0.5], "protocol": [wb.Flooding(), wb.Diffusion()], "seed": [1, 2]}
    table = wb.Sweep(scenario(), over).run(out=tmp_path, runner=LocalRunner())
    second_table = wb.Sweep(scenario(), {"radio.loss": [0.1]}).run(out=tmp_path, runner=LocalRunner())
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("results")
    query = (
        "SELECT protocol_name, count(document), sum(transmissions) FILTER (WHERE radio_loss > 0) "
        "FROM results GROUP BY 1 ORDER BY 1"
    )
    rows = [tuple(row) for row in spark.sql(query).collect()]
    frame = pd.concat([table.to_pandas(), second_table.to_pandas().assign(protocol="Diffusion")])
    sums = frame[frame["radio.loss"] != "links"].groupby("protocol")["transmissions"].sum()
    assert rows == [("Diffusion", 5, sums["Diffusion"]), ("Flooding", 4, sums["Flooding"])]


def test_workers_return_traces_too(tmp_path):
    line = scenario(protocol=wb.Flooding(), radio=wb.Radio(loss=0.2))
    sweep = wb.Sweep(line, {"seed": range(5)}, engine="reference", keep="trace")
    sweep.run(out=tmp_path, runner=SparkRunner(), progress=False)
    (path,) = traces.files(tmp_path)
    file = traces.File(path).checked()
    tables = {run.scenario: pa.Table.from_batches(file.batches(run)).select(trace.SCHEMA.names) for run in file.runs}
    runs = [line.replace(seed=seed).run("reference") for seed in range(5)]
    assert {hash_: trace.digest(table.unify_dictionaries()) for hash_, table in tables.items()} == {
        run.scenario.hash: run.trace_hash for run in runs
    }


def test_the_doctor_finds_this_machine_ready_and_leaves_the_session_open(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["doctor", "--spark", "local[2]"]) == 0
    printed = capsys.readouterr().out
    verdict = f"Ready: 1 worker with 2 cores can run sweeps and write to {tmp_path / 'results'}"
    assert printed.splitlines()[0] == verdict
    assert "PROBLEM" not in printed and "1 worker answered" in printed
    assert list(tmp_path.iterdir()) == []
    assert spark.range(3).count() == 3


def test_the_doctor_explains_another_minor_version_of_python(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "pythonVer", "3.7")
    report = spark_doctor.examine("local[2]", str(tmp_path / "results"))
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    (problem,) = [check for check in report.checks if check.state == spark_doctor.PROBLEM]
    assert problem.subject == "Python" and "PYSPARK_PYTHON" in problem.remedy
    assert f"Python is {here} on " in problem.sentence and "and 3.7 here" in problem.sentence
    assert not report.is_ready and list(tmp_path.iterdir()) == []


def test_the_doctor_does_not_wait_for_workers_that_do_not_answer(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(spark_doctor, "WAIT_S", 60.0)
    monkeypatch.setattr(spark_doctor, "JOB_S", 1.0)
    report = spark_doctor.examine("local[2]", str(tmp_path))
    assert "no worker has run a task within 1 s" in str(report) and not report.is_ready
    assert list(tmp_path.iterdir()) == []
    wait_until(lambda: not spark.sparkContext.statusTracker().getActiveJobsIds())

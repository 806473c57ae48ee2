"""The time that each twin of the fast engine takes to compile, without cached code.

    .venv/bin/python benchmarks/compile.py [PROTOCOL ...]

Theory of operation
    A separate process compiles each twin, with an empty folder for machine code. The processor seconds run from before
    the import of the twin to the first event; they exclude the import of the workbench and numba. ``size`` is that of
    the code on disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tables import table

import workbench as wb
from workbench.public_names import PROTOCOLS
from workbench.sim import fast

COMPILE = """
import sys, time
import workbench as wb
from workbench.sim import fast
from workbench.sim.fast import engine, warming
protocol = getattr(wb, sys.argv[1])
began_s = time.process_time()
warming.compile_here(fast.twin_of(protocol()), protocol)
print(time.process_time() - began_s)
"""


def measure(name: str) -> list[str]:
    """Compile the twin of the protocol called ``name`` in a separate process, and return its row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", COMPILE, name]
        process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        size_B = sum(path.stat().st_size for path in Path(folder).rglob("*.nbc"))
    return [name, f"{float(process.stdout):.1f}", f"{size_B / 1e6:.1f}"]


def twins() -> dict[str, str]:
    """Return {twin: the first protocol that uses it}."""
    protocols: dict[str, str] = {}
    for name in PROTOCOLS:
        try:
            protocols.setdefault(fast.twin_of(getattr(wb, name)()), name)
        except fast.NoFastTwinError:
            continue
    return protocols


def main() -> None:
    """Measure the named protocols, or all twins, and print the table."""
    print(table(["protocol", "processor s", "size, MB"], [measure(name) for name in sys.argv[1:] or twins().values()]))


if __name__ == "__main__":
    main()

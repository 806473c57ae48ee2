"""How long each twin of the fast engine takes to compile, from nothing.

    .venv/bin/python benchmarks/compile.py [PROTOCOL ...]

Theory of operation
    Each twin is compiled by a process of its own, in an empty folder for machine code. Its processor seconds are those
    from before the twin is imported to the first event; importing the workbench and numba is not in it. ``size`` is
    what stays on disk.
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
    """The row of one protocol."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", COMPILE, name]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        size_B = sum(path.stat().st_size for path in Path(folder).rglob("*.nbc"))
    return [name, f"{float(ran.stdout):.1f}", f"{size_B / 1e6:.1f}"]


def twins() -> dict[str, str]:
    """Twin -> the first protocol that has it."""
    found: dict[str, str] = {}
    for name in PROTOCOLS:
        try:
            found.setdefault(fast.twin_of(getattr(wb, name)()), name)
        except fast.NoFastTwinError:
            continue
    return found


def main() -> None:
    """Print the table."""
    print(table(["protocol", "processor s", "size, MB"], [measure(name) for name in sys.argv[1:] or twins().values()]))


if __name__ == "__main__":
    main()

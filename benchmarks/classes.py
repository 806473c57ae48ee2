"""Memory of Jupyter kernels in which a lesson has run: python benchmarks/classes.py 01 05 --kernels 4

Each kernel executes all cells of the lesson's notebook, one kernel after the other, and stays open, as the kernels of
students do. The memory of a kernel includes its child processes, such as Java for Spark. "Open" is the proportional set
size (PSS): memory that kernels share is divided among them. "Peak" is the greatest resident memory (RSS) of the last
kernel during the execution; by then the fast engine has been compiled. "imported" is a kernel that has executed only
``import workbench as wb``. Linux only.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbclient import NotebookClient
from peak_memory import Peak, family_of
from tables import table

from workbench.classes.lessons import find_lessons

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


class Kernels(NamedTuple):
    """Kernels in which the same notebook has run: seconds and peak of the last one, open memory of all, in MB."""

    duration_s: float
    peak_MB: float
    open_MB: list[float]


def measure(notebook: nbformat.NotebookNode, kernels: int) -> Kernels:
    """Execute a notebook in several kernels, one after the other, and measure their memory while all are open."""
    pids: list[int] = []
    duration_s = peak_MB = float("nan")
    with ExitStack() as open_kernels:
        for _ in range(kernels):
            client = NotebookClient(notebook, timeout=3600, startup_timeout=300)
            client.resources = {"metadata": {"path": str(NOTEBOOKS)}}
            open_kernels.enter_context(client.setup_kernel())
            pids.append(client.km.provisioner.pid)
            begin_s, peak = time.perf_counter(), Peak(pids[-1])
            for index, cell in enumerate(notebook.cells):
                client.execute_cell(cell, index)
            peak_MB, duration_s = peak.stop_MB(), time.perf_counter() - begin_s
        return Kernels(duration_s, peak_MB, [open_MB(pid) for pid in pids])


def open_MB(pid: int) -> float:
    """Return the proportional set size of a process and its descendants in MB."""
    total_kB = 0
    for member in family_of(pid):
        for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total_kB += int(line.split()[1])
    return total_kB * 1024 / 1e6


def main() -> None:
    """Measure the lessons that the command line names, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lessons", nargs="*", metavar="NN", help="lessons such as 05 (default: 01 04 05)")
    parser.add_argument(
        "--kernels", type=int, default=4, metavar="N", help="kernels that are open together (default: 4)"
    )
    options = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(NOTEBOOKS.parent))
    notebooks = {"imported": nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import workbench as wb")])}
    for lesson in find_lessons(NOTEBOOKS, options.lessons or ["01", "04", "05"]):
        notebooks[lesson.name] = nbformat.read(lesson.path, 4)
    rows = []
    for name, notebook in notebooks.items():
        kernels = measure(notebook, options.kernels)
        mean_MB = sum(kernels.open_MB) / len(kernels.open_MB)
        rows.append([name, f"{kernels.duration_s:.0f}", f"{kernels.peak_MB:,.0f}", f"{mean_MB:,.0f}"])
        print(f"{name}: {rows[-1]}", flush=True)
    head = ["lesson", "s, last kernel", "peak of a kernel, MB", f"each of {options.kernels} open kernels, MB"]
    print(table(head, rows))


if __name__ == "__main__":
    main()

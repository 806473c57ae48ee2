"""The execution of a paper's notebook in a kernel of its own, with progress, time and peak memory."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from workbench.errors import WorkbenchError
from workbench.publishing.collecting import REPORT
from workbench.publishing.paper import Paper

SAMPLE_S = 0.25  # time between two samples of the memory
LONG_S = 2.0  # duration of a cell that is reported
Report = Callable[[str], Any]


class NotebookError(WorkbenchError):
    """An error for a notebook whose execution failed in a cell."""


@dataclass(frozen=True)
class Execution:
    """The result of an execution.

    notebook   the notebook with outputs
    report     what `collecting.finish` wrote: claims, figures, problems and distributions
    measured   minutes, peak_memory_MB, cores, python and platform, which depend on the machine and its load
    """

    notebook: Any
    report: Mapping[str, Any]
    measured: Mapping[str, Any]


def execute(paper: Paper, folder: Path, collected: Path, parameters: Mapping[str, Any], report: Report) -> Execution:
    """Execute the notebook of a paper in ``folder``, and return the result.

    ``collected``: the folder for figures. ``parameters``: {name: value} that replace parameters of the notebook; if
    there are any, the notebook must have a cell with the tag "parameters". ``report`` is called with a line of text for
    each cell. Raises NotebookError if a cell fails, with the cell's number.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    notebook = nbformat.from_dict(json.loads(json.dumps(paper.notebook)))
    collected.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="workbench-kernel-") as sockets:
        # Kernels that start at the same time could take free ports from each other; sockets in files do not.
        manager = AsyncKernelManager(
            transport="ipc" if os.name == "posix" else "tcp",
            kernel_spec_manager=_make_kernel_spec_manager(),
            connection_file=str(Path(sockets, "kernel.json")),
        )
        client = NotebookClient(
            notebook, km=manager, resources={"metadata": {"path": str(folder)}}, timeout=None, startup_timeout=120
        )
        client.store_widget_state = False
        began_s = time.perf_counter()
        try:
            with client.setup_kernel(env=_make_environment(), cleanup_kc=True), PeakMemory(manager) as memory:
                _call_collecting(client, f"start({str(collected)!r})")
                _execute_cells(paper, client, parameters, report)
                wall_s = time.perf_counter() - began_s
                _call_collecting(client, "finish()")
        except DeadKernelError:
            raise NotebookError(
                f"{paper.path}: the kernel ended while it executed the notebook; it may have run out of memory"
            ) from None
        except RuntimeError as error:  # The kernel does not answer.
            raise NotebookError(f"{paper.path}: {error}") from None
        except CellExecutionError as error:
            reason = f"{error.ename}: {error.evalue}"
            raise NotebookError(
                f"{paper.path}: collecting the notebook's figures and claims failed ({reason})"
            ) from None
    contents = json.loads((collected / REPORT).read_text(encoding="utf-8"))
    return Execution(notebook, contents, _describe_measurement(wall_s, memory.peak_B))


def _execute_cells(paper: Paper, client: Any, parameters: Mapping[str, Any], report: Report) -> None:
    from nbclient.exceptions import CellExecutionError

    code_indices = [
        index for index, cell in enumerate(paper.notebook.cells) if cell.cell_type == "code" and cell.source.strip()
    ]
    for number, index in enumerate(code_indices, 1):
        cell = client.nb.cells[index]
        report(f"cell {number} of {len(code_indices)}: {first_line(cell.source)}")
        began_s = time.perf_counter()
        try:
            client.execute_cell(cell, index)
            if parameters and index == paper.parameters_index:
                _execute_silently(client, "\n".join(f"{name} = {value!r}" for name, value in parameters.items()), index)
        except CellExecutionError as error:
            raise NotebookError(_describe_failure(paper, cell, number, len(code_indices), error)) from None
        took_s = time.perf_counter() - began_s
        if took_s >= LONG_S:
            report(f"    {took_s:.0f} s")


def first_line(source: str) -> str:
    """Return the first line of a cell's source that is neither blank nor a comment, shortened to 60 characters.

    If all lines are comments, return the first comment.
    """
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    code_lines = [line for line in lines if not line.startswith("#")]
    line = (code_lines or lines or [""])[0]
    return line if len(line) <= 60 else f"{line[:57]}..."


def _describe_failure(paper: Paper, cell: Any, number: int, count: int, error: Any) -> str:
    reason = " ".join(f"{error.ename}: {error.evalue}".split())
    hint = ""
    if error.ename in ("FileNotFoundError", "ModuleNotFoundError"):
        hint = (
            "; the notebook is executed in a copy of its folder, which has only the modules that it imports and the "
            "files in metadata.paper.files"
        )
    return f"{paper.path}: cell {number} of {count} failed ({first_line(cell.source)}): {reason}{hint}"


def _call_collecting(client: Any, call: str) -> None:
    """Call a function of the module `collecting` in the kernel; the notebook's namespace gets no new name.

    ``call`` is the source of the call, such as "finish()".
    """
    _execute_silently(client, f'__import__("workbench.publishing.collecting", fromlist=["start"]).{call}')


def _execute_silently(client: Any, code: str, index: int = 0) -> None:
    """Execute additional code, which is not in the notebook, in the kernel of the notebook.

    The execution counts of the notebook's cells do not change. ``index`` is a cell's position: the client stores the
    code there, and this function puts the notebook's cell back.
    """
    cell = client.nb.cells[index]
    client.execute_cell(nbformat.v4.new_code_cell(code), index, store_history=False)
    client.nb.cells[index] = cell  # The client has put the executed cell there.


def _make_kernel_spec_manager() -> Any:
    """Return a manager of kernels whose kernels run in this Python, whatever kernels are installed."""
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

    class ThisPython(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> Any:
            return KernelSpec(**get_kernel_dict())

    return ThisPython()


def _make_environment() -> dict[str, str]:
    """Return the environment of the kernel, in which this package can be imported and hash seeds are fixed."""
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    own = {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    return os.environ | own


def _describe_measurement(wall_s: float, peak_B: int) -> dict[str, Any]:
    return {
        "minutes": round(wall_s / 60, 2),
        "peak_memory_MB": round(peak_B / 1e6),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


class PeakMemory:
    """A context manager that samples the resident memory of a kernel and its child processes, in a thread.

    ``peak_B``: the largest sum in bytes. Memory that processes share counts for each of them.
    """

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        self.peak_B = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample_memory, name="peak memory", daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._is_over.set()
        self._thread.join()

    def _sample_memory(self) -> None:
        import psutil

        while not self._is_over.wait(SAMPLE_S):
            try:
                kernel = psutil.Process(self.manager.provisioner.pid)
                processes = [kernel, *kernel.children(recursive=True)]
            except (psutil.Error, AttributeError, TypeError):
                continue
            self.peak_B = max(self.peak_B, sum(map(_resident_B, processes)))


def _resident_B(process: Any) -> int:
    import psutil

    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # The process has ended.
        return 0


def to_stderr(line: str) -> None:
    """Print a line of progress to standard error."""
    print(line, file=sys.stderr, flush=True)


# Outputs

_IDS = re.compile(r'data-(?:workbench|chart|wire)="(w[0-9a-f]+x[0-9a-f]+x[0-9a-f]{6})"')
_DURATION = re.compile(r"^(sweep: .* run) in [^,;\n]+", re.MULTILINE)  # in the line that a sweep prints at its end
_LEFT_OUT = ("application/vnd.jupyter.widget-view+json",)


def clean_outputs(notebook: Any) -> None:
    """Make the outputs of a notebook independent of the execution, as far as this is possible.

    Messages on standard error and views of widgets, which need a kernel, are removed, and so are the durations of
    sweeps. Random ids of elements are replaced by numbers.
    """
    numbers: dict[str, str] = {}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.outputs:
            if output.get("name") == "stdout":
                output.text = _DURATION.sub(r"\1", output.text)
            data = output.get("data", {})
            for mime_type in _LEFT_OUT:
                data.pop(mime_type, None)
            html = data.get("text/html")
            if not isinstance(html, str):
                continue
            for element_id in _IDS.findall(html):
                number = numbers.setdefault(element_id, f"w0x{len(numbers):x}x000000")
                html = html.replace(element_id, number)
            data["text/html"] = html
        cell.outputs = [output for output in cell.outputs if output.get("data", True)]

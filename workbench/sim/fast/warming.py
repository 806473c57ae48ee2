"""Compilation of a protocol's fast twin (its numba version) ahead of a run, in this process or in the background."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any

from workbench.protocols.protocol import Protocol
from workbench.sim.fast import code_cache

_NICENESS = 5
_started: dict[str, Warming] = {}  # twin -> this process's background compilation of it


class Warming:
    """A handle on the compilation of a protocol for the fast engine, in a process that ends with this process.

    If the machine code was on disk already, no process is started, and `is_done` is True at once.
    """

    def __init__(self, process: Any = None, errors: Any = None) -> None:
        self._process, self._errors = process, errors
        self.is_stopped = False

    @property
    def is_done(self) -> bool:
        """True unless the compiling process still runs: the machine code is on disk, or there is an `error`."""
        return self._process is None or self._process.poll() is not None

    @property
    def error(self) -> str:
        """The reason why the compilation failed; "" if it succeeded or still runs."""
        if self._process is None or not self._process.poll():
            return ""
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else f"the compiling process ended with status {self._process.returncode}"

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait up to ``timeout_s`` seconds for the compiling process to end; return whether it has ended.

        ``timeout_s=None``: wait without a limit.
        """
        if self._process is not None:
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                return False
        return True

    def stop(self) -> None:
        """Stop the compiling process. Its work so far is lost."""
        if self._process is not None:
            self.is_stopped = True
            self._process.terminate()
            self._process.wait()


def start(twin: str, protocol: type[Protocol]) -> Warming:
    """Compile a protocol's fast twin in a background process, unless its machine code is on disk; return a handle.

    If an earlier call started the compilation, and it still runs or has failed, return the handle of that call.
    ``twin``: the name of the module with the protocol's version for the fast engine.
    """
    if code_cache.is_cached(twin):
        return Warming()
    running = _started.get(twin)
    if running is not None and (not running.is_done or (running.error and not running.is_stopped)):
        return running  # A failed compilation would fail again.
    errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (kept by the handle)
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"from {__name__} import main; main()",
            twin,
            protocol.__module__,
            protocol.__qualname__,
        ],
        stdin=subprocess.PIPE,  # closes when this process ends, which ends the background process
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
    )
    _started[twin] = Warming(process, errors)
    return _started[twin]


def compile_here(twin: str, protocol: type[Protocol]) -> None:
    """Load the machine code of a protocol's event loop in this process; compile and store it if it is not on disk.

    Compilation takes up to a minute. ``twin``: the name of the protocol's module for the fast engine.
    """
    from workbench import topology
    from workbench.sim.fast import engine, network
    from workbench.sim.radio import Radio

    # Machine code is the same for any topology, workload and parameters.
    graph = network.from_graph(topology.grid(2, 1))
    engine.play(importlib.import_module(twin), graph, protocol(), [], Radio(), 0.001, 1, "metrics")


def _end_with_parent() -> None:
    os.read(0, 1)  # not `sys.stdin`: the interpreter needs its lock at exit
    os._exit(1)


def main() -> None:
    """Compile a protocol for the fast engine: the main function of the background process.

    The arguments of the process are the module to compile, and the module and the name of the protocol's class.
    """
    twin, module, class_name = sys.argv[1:]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    protocol: Any = importlib.import_module(module)
    for attribute_name in class_name.split("."):
        protocol = getattr(protocol, attribute_name)
    compile_here(twin, protocol)

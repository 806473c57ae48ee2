"""The machine code of protocols' fast twins on disk: a check that needs no numba, and a lock for compilation.

A process that has loaded a twin's machine code writes an index file beside this code (`record_loaded`). The index lists
the source files of all modules that are loaded at this moment, each with its size and modification time. The index is
valid as long as no listed file has changed. Otherwise numba decides whether the machine code is still valid.

Limits
    If a listed file changes without effect on the machine code, the next process that loads the code takes two seconds
    to detect that the code is still valid. If the folder is copied to a machine with another processor, the index is
    accepted although the machine code is not valid there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows: there, two processes may compile the same twin
    fcntl = None  # type: ignore[assignment]

_loaded: set[str] = set()  # the twins whose machine code this process has loaded
# Seconds, in a list: a changing number in a module would change the names of the loops (`loop.name_of`).
_loading_s = [0.0]
# A context that is active during loading: a caller that limits the time of runs stops its clock meanwhile.
around_loading: Callable[[], AbstractContextManager] = nullcontext


@contextmanager
def loading() -> Iterator[None]:
    """Count the duration of a ``with`` block as time spent on loading machine code, which `loading_s` returns."""
    begin_s = time.perf_counter()
    try:
        with around_loading():
            yield
    finally:
        _loading_s[0] += time.perf_counter() - begin_s


def loading_s() -> float:
    """Return the seconds that this process has spent importing the fast engine and loading or compiling its code."""
    return _loading_s[0]


def is_cached(twin: str) -> bool:
    """Return whether the machine code of a protocol is loaded or on disk, for its current source code.

    ``twin``: the name of the protocol's module for the fast engine.
    """
    if twin in _loaded:
        return True
    try:
        files = json.loads(_path(twin, "json").read_text(encoding="utf-8"))
        return bool(files) and all(_file_state(file) == recorded_state for file, recorded_state in files.items())
    except (OSError, ValueError, AttributeError):
        return False


def files(folder: str | None, name: str) -> list[Path]:
    """Return the files in ``folder`` in which numba stores machine code under ``name``."""
    return sorted(Path(folder).glob(f"*.{name}-*.nbi")) if folder else []


def record_loaded(twin: str, folder: str | None, name: str) -> None:
    """Record that this process has loaded a protocol's machine code; write the index file of the code's sources.

    ``twin``: the name of the protocol's module for the fast engine. numba stores the machine code in ``folder`` under
    ``name``. The docstring of this module describes the index file.
    """
    _loaded.add(twin)
    machine_code = files(folder, name)
    if not machine_code:
        return
    packages = __name__.partition(".")[0], twin.partition(".")[0]
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in packages]
    sources = {file for module in modules if (file := getattr(module, "__file__", None))}
    with suppress(OSError):  # on a full or read-only disk, no index is written
        file_states = {file: _file_state(file) for file in sorted({*sources, *_numba_source(), str(machine_code[0])})}
        path = _path(twin, "json")
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary_path = path.with_suffix(f".{os.getpid()}")
        temporary_path.write_text(json.dumps(file_states), encoding="utf-8")
        os.replace(temporary_path, path)


@contextmanager
def lock(twin: str, on_wait: Callable[[], Any] | None = None) -> Iterator[None]:
    """Hold the lock for compiling ``twin`` during a ``with`` block, unless its machine code is loaded or on disk.

    ``twin``: the name of a protocol's module for the fast engine. ``on_wait``: called if another process holds the
    lock, before waiting for it. If a process ends while it holds the lock, the operating system releases the lock.
    """
    if is_cached(twin):
        yield
        return
    try:
        path = _path(twin, "lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError:
        yield
        return
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # another process holds the lock, or the file system has no locks
                if on_wait is not None:
                    on_wait()
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _path(twin: str, suffix: str) -> Path:
    """Return the path of a file with the extension ``suffix`` beside the machine code of a protocol's module ``twin``.

    The file is in numba's cache folder, or in the user's cache if that folder is read-only.
    """
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / "__pycache__")
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        folder = Path.home() / ".cache" / "workbench"
    return folder / f"loop.{twin}.{sys.implementation.cache_tag}.{suffix}"


def _file_state(file: str) -> list[int]:
    """Return [size, modification time] of a source file; if they differ later, the file has changed.

    For numba's own index of machine code, only its existence counts: the result is [0, 0].
    """
    status = os.stat(file)
    return [0, 0] if file.endswith(".nbi") else [status.st_size, status.st_mtime_ns]


def _numba_source() -> list[str]:
    spec = find_spec("numba")
    return [spec.origin] if spec is not None and spec.origin else []

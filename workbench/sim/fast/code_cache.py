"""What there is of a twin's machine code on disk, known without numba; and a lock, so that it is compiled once.

Whoever has loaded a twin's machine code leaves a note (`note`) beside it: the files of the modules that were loaded by
then, each with its size and time. The note holds as long as none of these has changed. numba is asked only then.

Limits
    A note that was made stale by a file that has nothing to do with machine code costs the next process that compiles
    two seconds, to find what there is. A folder that is copied to a machine with another processor is believed warm.
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
except ImportError:  # Windows: two processes may compile the same twin there
    fcntl = None  # type: ignore[assignment]

_loaded: set[str] = set()  # the twins whose machine code this process has
# Seconds, in a list: a number of a module that changes would change the names of the loops (`loop.name_of`).
_loading_s = [0.0]
# What else holds while something is loaded. Whoever limits the time of runs has the clock rest.
around_loading: Callable[[], AbstractContextManager] = nullcontext


@contextmanager
def loading() -> Iterator[None]:
    """What is done within counts as loading, not as playing."""
    begin = time.perf_counter()
    try:
        with around_loading():
            yield
    finally:
        _loading_s[0] += time.perf_counter() - begin


def loading_s() -> float:
    """Seconds that this process has spent on importing the engine and its twins, and on their machine code."""
    return _loading_s[0]


def is_kept(twin: str) -> bool:
    """Whether the machine code of a twin (a module's name) is in this process or on disk."""
    if twin in _loaded:
        return True
    try:
        files = json.loads(_path(twin, "json").read_text(encoding="utf-8"))
        return bool(files) and all(_state(file) == state for file, state in files.items())
    except (OSError, ValueError, AttributeError):
        return False


def files(folder: str | None, name: str) -> list[Path]:
    """Return numba's files of the machine code of this name."""
    return sorted(Path(folder).glob(f"*.{name}-*.nbi")) if folder else []


def note(twin: str, folder: str | None, name: str) -> None:
    """Note that this process has a twin's machine code, which numba keeps in a folder under a name (if it can)."""
    _loaded.add(twin)
    machine_code = files(folder, name)
    if not machine_code:
        return
    packages = __name__.partition(".")[0], twin.partition(".")[0]
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in packages]
    sources = {file for module in modules if (file := getattr(module, "__file__", None))}
    with suppress(OSError):  # on a disk that is full or cannot be written, nothing is kept
        states = {file: _state(file) for file in sorted({*sources, *_numba(), str(machine_code[0])})}
        path = _path(twin, "json")
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(states), encoding="utf-8")
        os.replace(new, path)


@contextmanager
def alone(twin: str, on_wait: Callable[[], Any] | None = None) -> Iterator[None]:
    """Wait until no other process compiles this twin; ``on_wait`` is called before that takes time.

    The lock ends with its process, however that ends.
    """
    if is_kept(twin):
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
            except OSError:  # another process has it, or the file system cannot say so
                if on_wait is not None:
                    on_wait()
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _path(twin: str, suffix: str) -> Path:
    """Where what is noted of a twin lies: numba's folder, or the user's if that cannot be written."""
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent / "__pycache__")
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        folder = Path.home() / ".cache" / "workbench"
    return folder / f"loop.{twin}.{sys.implementation.cache_tag}.{suffix}"


def _state(file: str) -> list[int]:
    """Size and time of a source; of machine code it counts that it is there."""
    found = os.stat(file)
    return [0, 0] if file.endswith(".nbi") else [found.st_size, found.st_mtime_ns]


def _numba() -> list[str]:
    spec = find_spec("numba")
    return [spec.origin] if spec is not None and spec.origin else []

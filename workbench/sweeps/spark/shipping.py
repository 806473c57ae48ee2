"""What a worker of a cluster needs: the package and the plan, each sent once, under names that say their content.

Theory of operation
    A worker has Python and the libraries. The package travels as a zip file, unless the worker is on this machine, and
    the plan with the user's code as another file; Spark brings a file once to each executor. The function that a task
    begins with (`task`) is pickled by value and imports nothing of the package before it has it. It unpacks the zip
    into the user's cache, in a folder named by its digest: the next session finds it there, and the machine code that
    was compiled for it as well. (numba keeps nothing for modules within a zip.) Folders that nobody has used for a
    month go.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import workbench

HOME = Path(workbench.__file__).parent
_LEFT_OUT = ("__pycache__", "node_modules")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where shipped files lie until this process ends."""
    return tempfile.TemporaryDirectory(prefix="workbench-shipped-")


@cache
def package_file() -> Path:
    """Write the package as it is on disk into a zip file whose name has its digest; return the path."""
    paths = [path for path in sorted(HOME.rglob("*")) if path.is_file() and not {*path.parts} & {*_LEFT_OUT}]
    contents = {path.relative_to(HOME.parent).as_posix(): path.read_bytes() for path in paths}
    sha = hashlib.sha256()
    for name, content in contents.items():
        sha.update(f"{name} {len(content)} ".encode() + content)
    path = Path(_folder().name, f"workbench-{sha.hexdigest()[:16]}.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), content, zipfile.ZIP_DEFLATED)
    return path


def plan_file(packed: bytes) -> Path:
    """Write a packed plan into a file whose name has its digest; return the path."""
    path = Path(_folder().name, f"workbench-plan-{hashlib.sha256(packed).hexdigest()[:16]}")
    if not path.exists():
        path.write_bytes(packed)
    return path


def task(
    archive: str | None, home: str, plan_name: str, numbers: list[int], timeout_s: float | None
) -> Callable[..., Any]:
    """What ``mapInArrow`` calls on a worker: any batches in, batches of rows out.

    ``archive`` is the name of the package's zip, or None where the worker imports it from the folder ``home``.
    """

    unpacked = _unpacking()

    def run_task(batches: Any) -> Iterator[Any]:
        # Pickled by value: names of this module, and of the package, do not exist there yet.
        import sys
        from pathlib import Path

        from pyspark import SparkFiles

        for _ in batches:
            pass
        folder = home if archive is None else unpacked(archive)
        loaded = getattr(sys.modules.get("workbench"), "__file__", None)
        if loaded is None or Path(loaded) != Path(folder, "workbench", "__init__.py"):
            for name in [name for name in sys.modules if name.partition(".")[0] == "workbench"]:
                del sys.modules[name]
            sys.path.insert(0, folder)
        from workbench.sweeps.spark.worker import run_share

        yield from run_share(SparkFiles.get(plan_name), numbers, timeout_s)

    return run_task


def _unpacking() -> Callable[[str], str]:
    """What unpacks the package on a worker: the name of the zip file -> the folder that the package is in."""

    def unpacked(archive: str) -> str:
        # Pickled by value, too.
        import os
        import shutil
        import zipfile
        from contextlib import suppress
        from pathlib import Path

        from pyspark import SparkFiles

        name = archive.removesuffix(".zip")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "workbench", "code")
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError:
            cache = Path(SparkFiles.getRootDirectory())
        if not os.access(cache, os.W_OK):
            cache = Path(SparkFiles.getRootDirectory())
        folder = cache / name
        with suppress(OSError):
            os.utime(folder)  # Who tidies up leaves it alone from now on.
            return str(folder)
        draft = cache / f".{name}.{os.getpid()}"
        with zipfile.ZipFile(SparkFiles.get(archive)) as content:
            content.extractall(draft)
        try:
            draft.rename(folder)
        except OSError:  # Another worker of this machine was first.
            shutil.rmtree(draft, ignore_errors=True)
        now_s = folder.stat().st_mtime
        for other in cache.iterdir():
            with suppress(OSError):  # Another worker removes it, too.
                if other.stat().st_mtime < now_s - 30 * 86400:
                    shutil.rmtree(other, ignore_errors=True)
        return str(folder)

    return unpacked

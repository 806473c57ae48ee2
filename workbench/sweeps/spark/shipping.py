"""Shipping of the package and the plan to the workers of a cluster, each once, in files named after their digests.

Theory of operation
    A worker needs Python and the libraries, but not this package. The package is sent as a zip file, unless the worker
    is on this machine, and the plan with the user's code as another file. Spark sends a file once to each executor. The
    function of a task (`task`) is pickled by value, so a worker can call it without the package. This function first
    unpacks the zip file into the user's cache, in a folder named after the file's digest. There the next session finds
    the package with its compiled code. (numba does not cache code of modules within a zip file.) Folders that were not
    used for a month are removed.

Other tasks than those of a sweep use `package_importer`, which only makes the package importable.
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
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


@cache
def _get_folder() -> tempfile.TemporaryDirectory[str]:
    """Return the temporary folder of shipped files, which is removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="workbench-shipped-")


@cache
def package_file() -> Path:
    """Write the package's files into a zip file, named after the digest of the files; return the zip file's path."""
    paths = [path for path in sorted(HOME.rglob("*")) if path.is_file() and not {*path.parts} & {*_LEFT_OUT}]
    contents = {path.relative_to(HOME.parent).as_posix(): path.read_bytes() for path in paths}
    sha = hashlib.sha256()
    for file_name, file_content in contents.items():
        sha.update(f"{file_name} {len(file_content)} ".encode() + file_content)
    path = Path(_get_folder().name, f"workbench-{sha.hexdigest()[:16]}.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file_name, file_content in contents.items():
            archive.writestr(zipfile.ZipInfo(file_name, _ZIP_DATE), file_content, zipfile.ZIP_DEFLATED)
    return path


def plan_file(packed: bytes) -> Path:
    """Write a packed plan into a file named after its digest; return the path."""
    path = Path(_get_folder().name, f"workbench-plan-{hashlib.sha256(packed).hexdigest()[:16]}")
    if not path.exists():
        path.write_bytes(packed)
    return path


def task(
    archive: str | None, home: str, plan_name: str, numbers: list[int], timeout_s: float | None, trace_folder: str
) -> Callable[..., Any]:
    """Return the function that ``mapInArrow`` calls on a worker: it runs the points and yields batches of their rows.

    The function ignores its input. ``plan_name`` is the name of the plan's file (`plan_file`), ``numbers`` are the
    points, ``timeout_s`` the longest time of a point (None: no limit). ``trace_folder`` is the folder or URL into which
    the task writes traces; "" if its rows contain them. ``archive`` is the name of the package's zip, or None if the
    worker imports the package from the folder ``home``.
    """

    import_package = package_importer(archive, home)

    def run_task(batches: Any) -> Iterator[Any]:
        # Pickled by value: names of this module and of the package do not exist on the worker yet.
        from pyspark import SparkFiles

        for _ in batches:
            pass
        import_package()
        from workbench.sweeps.spark.worker import run_share

        yield from run_share(SparkFiles.get(plan_name), numbers, timeout_s, trace_folder)

    return run_task


def package_importer(archive: str | None, home: str) -> Callable[[], str]:
    """Return a function that makes the package importable on the worker that calls it.

    Spark pickles the function by value, so the worker need not have the package. The function returns the folder that
    contains the package: the unpacked zip file ``archive``, or ``home`` if ``archive`` is None.
    """
    unpack = _make_unpack()

    def import_package() -> str:
        import sys
        from pathlib import Path

        folder = home if archive is None else unpack(archive)
        loaded_path = getattr(sys.modules.get("workbench"), "__file__", None)
        if loaded_path is None or Path(loaded_path) != Path(folder, "workbench", "__init__.py"):
            for module_name in [
                module_name for module_name in sys.modules if module_name.partition(".")[0] == "workbench"
            ]:
                del sys.modules[module_name]
            sys.path.insert(0, folder)
        return folder

    return import_package


def _make_unpack() -> Callable[[str], str]:
    """Return a function that unpacks a zip file, named by its argument, on a worker, and returns the folder."""

    def unpack(archive: str) -> str:
        # This function is pickled by value, too.
        import os
        import shutil
        import zipfile
        from contextlib import suppress
        from pathlib import Path

        from pyspark import SparkFiles

        folder_name = archive.removesuffix(".zip")
        try:
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "workbench", "code")
            cache.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):  # A user without a home folder is a RuntimeError.
            cache = Path(SparkFiles.getRootDirectory())
        if not os.access(cache, os.W_OK):
            cache = Path(SparkFiles.getRootDirectory())
        folder = cache / folder_name
        with suppress(OSError):
            os.utime(folder)  # Another worker that removes old folders now keeps it.
            return str(folder)
        draft = cache / f".{folder_name}.{os.getpid()}"
        with zipfile.ZipFile(SparkFiles.get(archive)) as archive_file:
            archive_file.extractall(draft)
        try:
            draft.rename(folder)
        except OSError:  # Another worker of this machine has unpacked it first.
            shutil.rmtree(draft, ignore_errors=True)
        now_s = folder.stat().st_mtime
        for cached_folder in cache.iterdir():
            with suppress(OSError):  # Another worker may remove it at the same time.
                if cached_folder.stat().st_mtime < now_s - 30 * 86400:
                    shutil.rmtree(cached_folder, ignore_errors=True)
        return str(folder)

    return unpack

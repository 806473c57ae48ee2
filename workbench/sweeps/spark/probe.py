"""Checks of a Spark worker: its Python, libraries, memory, cache folder, and access to a location of results.

The driver sends this module's functions by value (`send_by_value`), because a worker need not have the package. So the
functions use only the standard library, and import the package after it has been sent.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

LOCATION_S = 20.0  # the longest time for access to a location: a store without credentials is tried for minutes


def send_by_value() -> None:
    """Make Spark send the functions of this module to workers by value instead of by name."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def describe_worker(
    libraries: Sequence[str],
    variables: Sequence[str],
    import_package: Callable[[], str],
    probe: Mapping[str, str] | None,
    wait_s: float,
) -> dict[str, Any]:
    """Return a description of the worker that runs this function, with values that JSON can represent.

    The description has the worker's host, Python, libraries, memory, cache folder and missing environment variables,
    and whether it can import the package and use the location of the results. ``libraries`` are names of distributions,
    ``variables`` those of environment variables. ``import_package`` makes the package importable. ``probe`` has the
    arguments of `try_location`; None: the location is not tried. The call takes at least ``wait_s`` seconds, so that
    Spark gives other tasks to other workers.
    """
    began_s = time.monotonic()
    description: dict[str, Any] = {
        "host": socket.gethostname(),
        # Python's workers are children of the executor, or of the only daemon that the executor has started.
        "process": os.getppid(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "libraries": {name: library_version(name) for name in libraries},
        "memory": read_memory(),
        "cache": check_cache(),
        "missing_variables": [name for name in variables if name not in os.environ],
        "clock_s": datetime.now(UTC).timestamp(),
    }
    try:
        description["package"] = {"folder": import_package(), "error": ""}
    except Exception as error:  # A damaged zip file, a full disk or a missing home folder raise different errors.
        description["package"] = {"folder": "", "error": describe_error(error)}
    if probe is not None:
        # Without the address of the driver's store this worker would send its requests to another store.
        endpoints = [name for name in description["missing_variables"] if "ENDPOINT" in name]
        description["location"] = (
            {"is_read": False, "is_written": False, "error": f"{endpoints[0]} is not set"}
            if endpoints
            else within(LOCATION_S, lambda: try_location(**probe))
        )
    time.sleep(max(0.0, began_s + wait_s - time.monotonic()))
    return {**description, "began_s": began_s, "ended_s": time.monotonic()}


def describe_error(error: BaseException) -> str:
    """Return an error as one line: the system's text for an OSError that has one, else its type and message."""
    if isinstance(error, OSError) and error.strerror:
        return " ".join(error.strerror.split())[:300]
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def library_version(name: str) -> str | None:
    """Return the version of an installed library, "unknown" if it has no version, or None if it is missing."""
    # Spark puts its own pyspark on the path, without metadata. An installed one may have another version.
    loaded_version = getattr(sys.modules.get(name), "__version__", None)
    if loaded_version is not None:
        return str(loaded_version)
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None if importlib.util.find_spec(name) is None else "unknown"


def read_memory(root: str = "/") -> dict[str, float | None]:
    """Return the available memory of this machine and the memory limit of its container in bytes, None if unknown.

    ``root`` is the folder that contains proc and sys. The available memory is at most the unused part of the limit.
    """
    available_B: float | None = None
    limit_B: float | None = None
    for line in _read_text(Path(root, "proc", "meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            available_B = float(line.split()[1]) * 1024
    for folder in _control_groups(Path(root)):
        for limit_name, usage_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, usage = _read_text(folder / limit_name).strip(), _read_text(folder / usage_name).strip()
            if limit.isdigit() and usage.isdigit() and int(limit) < 1 << 60:  # a larger number means no limit
                limit_B = min(float(limit), limit_B or float("inf"))
                unused_B = max(0.0, float(limit) - float(usage) + _reclaimable_B(folder))
                available_B = unused_B if available_B is None else min(available_B, unused_B)
    return {"available_B": available_B, "limit_B": limit_B}


def _reclaimable_B(folder: Path) -> float:
    """Return how many bytes of a control group's memory hold cached files, which the kernel frees when necessary."""
    for line in _read_text(folder / "memory.stat").splitlines():
        if line.startswith("inactive_file "):
            return float(line.split()[1])
    return 0.0


def _control_groups(root: Path) -> list[Path]:
    """Return the folders of the control groups that may limit this process: its own group and all groups above."""
    mount = root / "sys" / "fs" / "cgroup"
    folders = [mount, mount / "memory"]
    for line in _read_text(root / "proc" / "self" / "cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers in ("", "memory"):
            folder = mount / controllers / group.strip("/")
            while folder != mount and mount in folder.parents:
                folders.append(folder)
                folder = folder.parent
    return list(dict.fromkeys(folders))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def check_cache() -> dict[str, Any]:
    """Return {"folder": folder into which the package is unpacked, "is_writable": whether it can be written}.

    A missing folder is writable if it can be created; it is not created.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "workbench", "code")
    except RuntimeError:  # The user has no home folder.
        return {"folder": "~/.cache/workbench/code", "is_writable": False}
    nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    return {"folder": str(folder), "is_writable": nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)}


def try_location(folder: str, name: str, content: str) -> dict[str, Any]:
    """Read the probe file ``name`` in ``folder``, a path or URL; then write and delete another file there.

    ``content`` is the expected text of the probe file. Return {"is_read": whether it was read with this text,
    "is_written": whether the other file was written, "error": the text of an error or ""}.
    """
    outcome: dict[str, Any] = {"is_read": False, "is_written": False, "error": ""}
    try:
        from workbench.locations import location

        place = location(folder)
        outcome["is_read"] = (place / name).read_bytes() == content.encode()
        if outcome["is_read"]:
            own_file = place / f"{name}-{socket.gethostname()}-{os.getpid()}"
            own_file.write_bytes(content.encode())
            own_file.unlink()
            outcome["is_written"] = True
    except Exception as error:  # A missing package, missing credentials or a network's failure.
        outcome["error"] = describe_error(error)
    return outcome


def within(limit_s: float, access: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call ``access`` and return its result; if it takes longer than ``limit_s`` seconds, return a failed result.

    ``access`` returns a result like that of `try_location`. In a failed result, "is_read" and "is_written" are False,
    and "error" has a text.
    """
    outcomes: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: outcomes.append(access()), daemon=True)
    thread.start()
    thread.join(limit_s)
    late_outcome = {"is_read": False, "is_written": False, "error": f"no answer within {limit_s:g} s"}
    return outcomes[0] if outcomes else late_outcome

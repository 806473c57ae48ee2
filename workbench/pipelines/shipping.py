"""Shipping of the package to Spark's workers, so that pipelines run on workers without the package.

Theory of operation
    Functions and classes of this package read the rows of a log, a trace or a capture on workers. Spark sends only the
    names of these functions and classes, so workers must be able to import `workbench`. `ship` sends a zip file that
    Spark puts on the search path of all tasks of the session, before installed packages. In this zip file, the package
    `workbench` consists of the file `shipped_package`, which unpacks the real package from the same zip file at the
    first import. Each version of the package is unpacked once, into the same cache as for sweeps.

    Workers on this machine import the package of this process; nothing is sent to them.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

from workbench.errors import WorkbenchError
from workbench.pipelines.queries import is_connect
from workbench.sweeps.spark.session import reason
from workbench.sweeps.spark.shipping import package_file

LIBRARIES = "pyspark, pyarrow, pandas, numpy, networkx and duckdb"
_PACKAGE = Path(__file__).with_name("shipped_package.py")
_prepared: WeakSet[Any] = WeakSet()  # sessions of Spark Connect, and contexts of classic sessions


def ship(session: Any) -> None:
    """Send the package to the workers of a session, unless it was sent, or the workers are on this machine.

    Raises WorkbenchError if the workers of a server of Spark Connect cannot import the package or its libraries.
    """
    # A classic session may have several objects in this process, but only one context.
    owner = session if is_connect(session) else session.sparkContext
    if owner in _prepared:
        return
    if is_connect(session):
        session.addArtifacts(str(shipped_file()), pyfile=True)
        _check_workers(session)
    elif not owner.master.startswith("local"):
        path = shipped_file()
        owner.addPyFile(str(path))
        # Spark has added its copy to the search path of this process, too.
        sys.path[:] = [folder for folder in sys.path if not folder.endswith(path.name)]
    _prepared.add(owner)


@cache
def shipped_file() -> Path:
    """Write the zip file that is sent to workers; return its path."""
    package = package_file()
    path = package.with_name(f"shipped-{package.name}")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("workbench/__init__.py"), _PACKAGE.read_bytes())
        archive.writestr(zipfile.ZipInfo(package.name), package.read_bytes())
    return path


def _check_workers(session: Any) -> None:
    """Run a task that imports the package and its libraries on a worker. Raises WorkbenchError if it fails."""

    def import_package(batches: Iterator[Any]) -> Iterator[Any]:
        # This function is pickled by value.
        import workbench.datasets.chunks  # noqa: F401

        yield from batches

    try:
        session.range(1).mapInArrow(import_package, "id long").collect()
    except Exception as error:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise WorkbenchError(
            f"the workers of this Spark Connect server cannot run pipelines ({reason(error)}); start the server with "
            f"PYSPARK_PYTHON set to the path of a Python {version} that has {LIBRARIES}"
        ) from None

"""The file workbench/__init__.py on workers of Spark: it unpacks the real package and loads it in its own place.

Workers receive a zip file with two entries: this file, and an inner zip file with the real package, whose name contains
the digest of its content (`shipping`). The package is unpacked into a folder, because numba caches no compiled code of
modules within a zip file. This file uses only the standard library: on a worker it runs before the package exists.
"""

import os
import shutil
import sys
import zipfile
from contextlib import suppress
from importlib.util import spec_from_file_location
from pathlib import Path


def unpacked_folder(shipped_path: Path) -> Path:
    """Unpack the package in the zip file ``shipped_path`` into the user's cache; return the folder with the package.

    If the cache cannot be written, the package is unpacked beside the zip file. A package that is already in the cache
    is not unpacked again.
    """
    package_name = shipped_path.name.removeprefix("shipped-")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "workbench", "code")
    with suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
    if not os.access(cache, os.W_OK):
        cache = shipped_path.parent
    folder = cache / package_name.removesuffix(".zip")
    with suppress(OSError):
        os.utime(folder)  # A worker that removes old folders keeps it.
        return folder
    draft = cache / f".{folder.name}.{os.getpid()}"
    with zipfile.ZipFile(shipped_path) as shipped, shipped.open(package_name) as package:
        zipfile.ZipFile(package).extractall(draft)
    try:
        draft.rename(folder)
    except OSError:  # Another worker of this machine has unpacked it first.
        shutil.rmtree(draft, ignore_errors=True)
    return folder


if __name__ == "workbench":
    _package = unpacked_folder(Path(__file__).parent.parent) / "workbench"
    _spec = spec_from_file_location("workbench", _package / "__init__.py", submodule_search_locations=[str(_package)])
    assert _spec is not None and _spec.loader is not None
    # Modules and resources are found by these attributes, so later imports find those of the real package.
    __spec__, __loader__ = _spec, _spec.loader
    __file__, __path__ = str(_spec.origin), [str(_package)]
    _spec.loader.exec_module(sys.modules["workbench"])

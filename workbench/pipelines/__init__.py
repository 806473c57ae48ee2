"""Data on its way: logs to links and readings, traces of many runs to answers, live readings to windows.

What fits in this machine's memory is worked on here, without Java; what does not, or lies elsewhere, on Spark. Both by
the same call, and with the same result.
"""

from importlib import import_module
from typing import Any

# Public name -> the module that has it, within this package. A name loads its module the first time it is used.
_HOME = {
    "Log": "logs.reading",
    "LogFormat": "logs.formats",
    "clean": "logs.cleaning",
    "links": "logs.links",
    "links_from_neighbors": "logs.links",
    "read_log": "logs.reading",
    "replay": "logs.replaying",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_HOME)
    if name not in _HOME:
        raise AttributeError(f"module 'workbench.pipelines' has no attribute {name!r}")
    return getattr(import_module(f"workbench.pipelines.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

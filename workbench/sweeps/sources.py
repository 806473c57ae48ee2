"""Sources of the user's modules, for workers that import these texts instead of files on their disks.

Code is sent by value where possible. Some objects (such as a cached function) are pickled by name only, and some
modules are imported when a function is called. Then a worker needs the module, and imports it from the source text that
the sweep's process sends. If the file of a module was edited after that process loaded it, a worker that imports the
module raises an error.

Installed packages and this one are not sent, because a worker already has them.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import re
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from workbench.sweeps.references import codes_in, is_of_user


class Source(NamedTuple):
    """A module's source text, the path of its file on the machine of the sweep, and whether it is a package."""

    text: str
    path: str
    is_package: bool


_EDITED = """\
from workbench.errors import WorkbenchError
raise WorkbenchError({!r})
"""
_sent: dict[str, tuple[ModuleSpec, Source]] = {}  # by name, with the spec of the module: a reload makes another spec


def of_modules(names: Iterable[str]) -> dict[str, Source]:
    """Return {name: source} of the user's loaded modules ``names`` and of the user's modules that they import.

    A module whose file was edited after this process had loaded it gets a source that raises a WorkbenchError.
    """
    is_users: dict[str, bool] = {}
    sources: dict[str, Source] = {}
    waiting_names, visited_names = list(names), {"__main__"}
    while waiting_names:
        module_name = waiting_names.pop()
        top_package, module = module_name.partition(".")[0], sys.modules.get(module_name)
        if module_name in visited_names or not isinstance(module, ModuleType):
            continue
        visited_names.add(module_name)
        if top_package not in is_users:
            is_users[top_package] = is_of_user(top_package)
        if not is_users[top_package]:
            continue
        waiting_names += {module_name.rpartition(".")[0], *map(_find_module_name, list(vars(module).values()))}
        source = _find_source(module)
        if source is not None:
            sources[module_name] = source
    return sources


def _find_module_name(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    name = getattr(value if isinstance(value, (FunctionType, type)) else type(value), "__module__", None)
    return name if isinstance(name, str) else ""


def _find_source(module: ModuleType) -> Source | None:
    """Return the source from which a module was loaded, or None if its text is not available.

    If the file was edited after the module was loaded, return a source that raises WorkbenchError when it is imported.
    """
    module_name, spec = module.__name__, module.__spec__
    if module_name in _sent and _sent[module_name][0] is spec:
        return _sent[module_name][1]
    source = _read_source(module)
    if source is not None and (was_edited(module) or not _is_current(module, source)):
        sentence = (
            f"{source.path} was edited after the process of the sweep had loaded it; "
            f"reload {module_name} (importlib.reload), "
            "or restart that process (in a notebook: the kernel)"
        )
        return source._replace(text=_EDITED.format(sentence))
    if source is not None and spec is not None:
        _sent[module_name] = spec, source
    return source


def _read_source(module: ModuleType) -> Source | None:
    path = getattr(module, "__file__", None) or ""
    is_package = hasattr(module, "__path__")
    source_text = None
    with suppress(Exception):
        source_text = module.__loader__.get_source(module.__name__)  # type: ignore[union-attr]
    if source_text is None and path.endswith(".py"):
        with suppress(OSError, UnicodeError):
            source_text = Path(path).read_text(encoding="utf-8")
    if source_text is None and is_package and not path:
        source_text = ""  # A namespace package has no file.
    return None if source_text is None else Source(source_text, path, is_package)


def was_edited(module: Any) -> bool:
    """Return whether a module's file was edited after this process had loaded it; False if that is unknown.

    The module's compiled file records when the source was last changed. Without this file the answer is unknown.
    """
    with suppress(OSError, AttributeError, TypeError, struct.error):
        edited_s = Path(module.__file__).stat().st_mtime
        if sys.dont_write_bytecode or edited_s <= _find_process_start_s():
            return False
        with open(module.__cached__, "rb") as file:
            flags, compiled_edit_s = struct.unpack("<II", file.read(12)[4:])
        return flags == 0 and compiled_edit_s != int(edited_s) & 0xFFFFFFFF
    return False


def _find_process_start_s() -> float:
    """Return the start of this process in seconds of Unix time. Raises OSError on systems other than Linux."""
    (boot_s,) = re.findall(r"^btime (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    return int(boot_s) + int(ticks) / os.sysconf("SC_CLK_TCK")


def _is_current(module: ModuleType, source: Source) -> bool:
    """Return whether all loaded functions of a module equal functions compiled from ``source``."""
    try:
        file_codes = set(codes_in(compile(source.text, source.path, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return False
    return all(code in file_codes for code in _loaded_codes(module, source.path))


def _loaded_codes(module: ModuleType, path: str) -> Iterator[CodeType]:
    """Yield the code objects of the functions and methods that a module defines in its file ``path``."""
    for value in list(vars(module).values()):
        members = list(vars(value).values()) if isinstance(value, type) else [value]
        for member in members:
            is_own = isinstance(member, FunctionType) and member.__module__ == module.__name__
            if is_own and member.__code__.co_filename == path:
                yield member.__code__


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An importer that loads modules from ``sources``, texts received from the process that runs the sweep."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._sources = sources

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the import spec of the module ``fullname`` if its source was received, else None."""
        source = self._sources.get(fullname)
        if source is None:
            return None
        spec = ModuleSpec(fullname, self, origin=source.path, is_package=source.is_package)
        spec.has_location = bool(source.path)
        if source.is_package and source.path:
            spec.submodule_search_locations = [str(Path(source.path).parent)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Run the source of a module."""
        source = self._sources[module.__name__]
        exec(compile(source.text, source.path or module.__name__, "exec", dont_inherit=True), vars(module))

    def get_source(self, fullname: str) -> str:
        """Return the source of a module, for tracebacks."""
        return self._sources[fullname].text


def install(sources: Mapping[str, Source]) -> None:
    """Import modules from ``sources`` from now on, and unload modules that were imported from earlier sources."""
    for finder in [finder for finder in sys.meta_path if isinstance(finder, Finder)]:
        sys.meta_path.remove(finder)
        for module_name, module in list(sys.modules.items()):
            if getattr(module, "__loader__", None) is finder:
                del sys.modules[module_name]
    if sources:
        sys.meta_path.insert(0, Finder(sources))

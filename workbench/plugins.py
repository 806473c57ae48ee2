"""Plug-ins: protocols, topologies, filters, metrics, radios and views that other installed packages provide.

A package (distribution) lists its plug-ins in its metadata, in one group of entry points for each kind::

    [project.entry-points."workbench.protocols"]
    CoinFlooding = "coin_flooding:CoinFlooding"

`KINDS` lists the kinds and the attributes that a plug-in of each kind must have. A plug-in loads when its name is
first used. A plug-in with an error is ignored with one warning. The workbench's own names take precedence.
"""

import warnings
from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError

# Kind -> the attributes that a plug-in must have; its entry-point group is "workbench." + kind.
KINDS = {
    "protocols": ("__name__", "node", "parameters"),  # a subclass of `Protocol`, under its own name
    "topologies": ("__call__",),  # a function that returns a graph; its signature becomes a form
    "filters": ("__call__",),  # a function as for `register_filter`
    "metrics": ("measure", "LOOKS_AT"),  # a module like `Protocol.metrics`, for the runs of every protocol
    "radios": ("airtime_us", "delivery_ratio"),  # a `Radio`
    "views": ("__call__",),  # a function, available in `workbench.views`
}
# Kind -> plug-ins that replace the installed ones: a worker uses those of the process that sent the work.
_provided: dict[str, Mapping[str, Any]] = {}
# (kind, name) -> a loaded plug-in, or the reason why it is ignored.
_loaded: dict[tuple[str, str], Any] = {}
_errors: dict[tuple[str, str], str] = {}


class Plugin(NamedTuple):
    """A plug-in of an installed distribution; ``error`` is the reason why it is ignored, or ""."""

    kind: str
    name: str
    distribution: str
    error: str


def names(kind: str, taken: Collection[str] = ()) -> list[str]:
    """Return the names of the plug-ins of ``kind`` (a key of `KINDS`) except those in ``taken``.

    No plug-in is loaded.
    """
    return [name for name in (_provided[kind] if kind in _provided else _find_entry_points(kind)) if name not in taken]


def load(kind: str, name: str) -> Any:
    """Return the plug-in ``name`` of ``kind`` (a key of `KINDS`), or None if it is unknown or cannot be used."""
    if (kind, name) in _errors:
        return None
    if kind in _provided:
        return _provided[kind].get(name)
    if (kind, name) not in _loaded and name in _find_entry_points(kind):
        try:
            _loaded[kind, name] = _load_plugin(kind, _find_entry_points(kind)[name])
        except (Exception, SystemExit) as error:
            leave_out(kind, name, error)
    return _loaded.get((kind, name))


def load_all(kind: str, taken: Collection[str] = ()) -> dict[str, Any]:
    """Return {name: plug-in} of all usable plug-ins of ``kind`` (a key of `KINDS`), except names in ``taken``."""
    plugin_by_name = {name: load(kind, name) for name in names(kind, taken)}
    return {name: plugin for name, plugin in plugin_by_name.items() if plugin is not None}


def leave_out(kind: str, name: str, error: BaseException) -> None:
    """Ignore the plug-in ``name`` of ``kind`` (a key of `KINDS`) from now on because of ``error``, and warn."""
    sentence = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
    _errors[kind, name] = sentence
    distribution = _find_distribution(kind, name)
    warnings.warn(f"{distribution}: its plug-in {name} (workbench.{kind}) is ignored: {sentence}", stacklevel=4)


def provide(kind: str, plugins: Mapping[str, Any]) -> None:
    """Use ``plugins``, {name: plug-in}, in place of all installed plug-ins of ``kind`` (a key of `KINDS`).

    A worker process of a sweep calls this function with the plug-ins of the process that started the sweep.
    """
    _provided[kind] = plugins
    for name in plugins:
        _errors.pop((kind, name), None)


def installed() -> list[Plugin]:
    """Load and return all installed plug-ins; a plug-in that cannot be used has the reason in ``error``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            load_all(kind)
    entries = [(kind, name) for kind in KINDS for name in _find_entry_points(kind)]
    return [Plugin(kind, name, _find_distribution(kind, name), _errors.get((kind, name), "")) for kind, name in entries]


class PluginError(WorkbenchError):
    """A plug-in that lacks an attribute which its kind needs, or whose entry point has a wrong name."""


@cache
def _find_entry_points(kind: str) -> dict[str, EntryPoint]:
    """Return {name of a plug-in: entry point} for ``kind``, a key of `KINDS`.

    If two distributions have a plug-in of the same name, the first in Python's search path is used.
    """
    return {entry.name: entry for entry in reversed(tuple(entry_points(group=f"workbench.{kind}")))}


def _load_plugin(kind: str, entry: EntryPoint) -> Any:
    plugin = entry.load()
    for attribute in KINDS[kind]:
        if not hasattr(plugin, attribute):
            raise PluginError(f"{entry.value} has no attribute {attribute!r}, which a plug-in of the kind {kind} needs")
    if kind == "protocols" and plugin.__name__ != entry.name:
        raise PluginError(
            f"the entry point is named {entry.name}; it must have the name of the class, {plugin.__name__}"
        )
    return plugin


def _find_distribution(kind: str, name: str) -> str:
    """Return the name and version of the installed distribution that contains the plug-in ``name``.

    ``kind`` is a key of `KINDS`. If the plug-in is not installed here, it was sent by another process (`provide`);
    the result is then "another process".
    """
    entry = _find_entry_points(kind).get(name)
    return "another process" if entry is None or entry.dist is None else f"{entry.dist.name} {entry.dist.version}"

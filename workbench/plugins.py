"""Plug-ins: protocols, topologies, filters, metrics, radios and views of other installed distributions.

A distribution names its plug-ins in its metadata, in a group of entry points for each kind::

    [project.entry-points."workbench.protocols"]
    CoinFlooding = "coin_flooding:CoinFlooding"

`KINDS` lists the kinds, and the attributes that a plug-in of each must have. A plug-in is loaded when its name is
needed. A plug-in that cannot be used is left out with one warning. A name of the workbench's own always wins.
"""

import warnings
from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError

# Kind -> the attributes that a plug-in must have; its group is "workbench." and the kind.
KINDS = {
    "protocols": ("__name__", "node", "parameters"),  # a subclass of `Protocol`, under its own name
    "topologies": ("__call__",),  # a function that returns a graph; a form is made of its signature
    "filters": ("__call__",),  # as for `register_filter`
    "metrics": ("measure", "LOOKS_AT"),  # a module as `Protocol.metrics` names it, for the runs of every protocol
    "radios": ("airtime_us", "delivery_ratio"),  # a `Radio`
    "views": ("__call__",),  # a function, handed out by `workbench.views`
}
# Kind -> its plug-ins in place of those that are installed: a worker has those of the process that sent the work.
_provided: dict[str, Mapping[str, Any]] = {}
# (kind, name) -> a plug-in that was loaded, or why it is left out.
_loaded: dict[tuple[str, str], Any] = {}
_errors: dict[tuple[str, str], str] = {}


class Plugin(NamedTuple):
    """An installed plug-in: the distribution that has it, and the reason why it cannot be used, or ""."""

    kind: str
    name: str
    distribution: str
    error: str


def names(kind: str, taken: Collection[str] = ()) -> list[str]:
    """Return the names of the plug-ins of a kind, without those that are ``taken``. Loads nothing."""
    return [name for name in (_provided[kind] if kind in _provided else _entries(kind)) if name not in taken]


def load(kind: str, name: str) -> Any:
    """Return a plug-in; None if there is none of that name, or if it cannot be used."""
    if (kind, name) in _errors:
        return None
    if kind in _provided:
        return _provided[kind].get(name)
    if (kind, name) not in _loaded and name in _entries(kind):
        try:
            _loaded[kind, name] = _load(kind, _entries(kind)[name])
        except (Exception, SystemExit) as error:
            leave_out(kind, name, error)
    return _loaded.get((kind, name))


def load_all(kind: str, taken: Collection[str] = ()) -> dict[str, Any]:
    """Return {name: plug-in} of all plug-ins of a kind that can be used, without the names that are ``taken``."""
    loaded = {name: load(kind, name) for name in names(kind, taken)}
    return {name: plugin for name, plugin in loaded.items() if plugin is not None}


def leave_out(kind: str, name: str, error: BaseException) -> None:
    """Use a plug-in no longer, and warn of the reason."""
    sentence = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
    _errors[kind, name] = sentence
    owner = _owner(kind, name)
    warnings.warn(f"{owner}: its plug-in {name} (workbench.{kind}) is left out: {sentence}", stacklevel=4)


def provide(kind: str, plugins: Mapping[str, Any]) -> None:
    """From now on have these plug-ins of a kind, whatever is installed in this process."""
    _provided[kind] = plugins


def installed() -> list[Plugin]:
    """Load every installed plug-in, and return them with the errors of those that cannot be used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            load_all(kind)
    every = [(kind, name) for kind in KINDS for name in _entries(kind)]
    return [Plugin(kind, name, _owner(kind, name), _errors.get((kind, name), "")) for kind, name in every]


class PluginError(WorkbenchError):
    """A plug-in that is not what its group asks for."""


@cache
def _entries(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of a kind by name. Of several with the same name, the first in the search path counts."""
    return {entry.name: entry for entry in reversed(tuple(entry_points(group=f"workbench.{kind}")))}


def _load(kind: str, entry: EntryPoint) -> Any:
    plugin = entry.load()
    for needed in KINDS[kind]:
        if not hasattr(plugin, needed):
            raise PluginError(f"{entry.value} has no {needed}")
    if kind == "protocols" and plugin.__name__ != entry.name:
        raise PluginError(f"it is named {entry.name}; it must have the name of its class, {plugin.__name__}")
    return plugin


def _owner(kind: str, name: str) -> str:
    """Return name and version of the distribution that has a plug-in."""
    entry = _entries(kind).get(name)
    return "another process" if entry is None or entry.dist is None else f"{entry.dist.name} {entry.dist.version}"

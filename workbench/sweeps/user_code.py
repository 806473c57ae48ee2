"""The user's own code in a sweep: what a protocol's settings call by name, its class, its metrics, a measure.

A scenario only names them. So a sweep tells results apart by a digest of the code (an edited filter must not be
answered with yesterday's rows), and ships the code by value to workers that cannot import it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from workbench import attributes, plugins
from workbench.protocols.protocol import Protocol
from workbench.sweeps import sources
from workbench.sweeps.references import PACKAGE, Walk, package_of

_added_path: list[str] = []  # folders of the driver's search path that the last plan has brought here
_PROTOCOL = re.compile(r"workbench\.protocols\.(\w+)")


def of(protocol: Protocol) -> dict[str, Any]:
    """name -> the user's code that takes part: what the settings call, and what comes with a class that is theirs."""
    found = {}
    for part in protocol.parts():
        found.update({f"{part.kind} {name}": code for name, code in part.user_code().items()})
    cls = type(protocol)
    if package_of(cls) != PACKAGE:
        found[f"protocol {cls.__module__}:{cls.__qualname__}"] = cls
    if protocol.metrics and protocol.metrics.partition(".")[0] != PACKAGE:
        module = importlib.import_module(protocol.metrics)
        found[f"metrics {protocol.metrics} of {' '.join(module.LOOKS_AT)}"] = module.measure
    for name, module in plugins.load_all("metrics").items():
        found[f"plug-in metrics {name} of {' '.join(module.LOOKS_AT)}"] = module.measure
    twin = protocol.fast if "fast" in vars(cls) else ""
    if twin and twin.partition(".")[0] != PACKAGE:
        found[f"fast twin {twin}"] = _sources(twin)
    return found


@cache
def _sources(module: str) -> str:
    """The text of a module or, if it is a package, of all its files: a twin is not loaded just to be told apart."""
    with suppress(ImportError):
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin is not None:
            path = Path(spec.origin)
            files = sorted(path.parent.rglob("*.py")) if spec.submodule_search_locations else [path]
            return "".join(file.read_text(encoding="utf-8") for file in files)
    return ""


# Telling code apart


class Piece(NamedTuple):
    """A piece of the user's code: its digest, the package's protocols that it refers to, what could not be tracked."""

    digest: str
    protocols: tuple[str, ...]
    untracked: tuple[str, ...] = ()


def piece(name: str, thing: Any) -> Piece:
    """What tells a piece of code apart, by a name: a function, a class, or the text of its source."""
    walk = Walk([package_of(thing)])
    is_ours = package_of(thing) == PACKAGE  # A measure of this package: no walk goes there.
    texts = [*walk.texts(thing), *([_sources(thing.__module__)] if is_ours else [])]
    found = {protocol for text in texts for protocol in _PROTOCOL.findall(text)}
    return Piece(_digest([name, *texts]), tuple(sorted(found)), tuple(walk.untracked))


def name_of(measure: Callable[..., Any] | None) -> str:
    """A measure by its module and name; "" without one."""
    return "" if measure is None else f"{measure.__module__}:{measure.__qualname__}"


def digest(named: dict[str, Any]) -> str:
    """Return the digest of functions and classes by name, with all code of the user that they refer to."""
    walk = Walk(map(package_of, named.values()))
    return _digest(text for name in sorted(named) for text in (name, *walk.texts(named[name])))


def _digest(texts: Iterable[str]) -> str:
    sha = hashlib.sha256()
    for text in texts:
        sha.update(text.encode() + b"\0")
    return sha.hexdigest()[:16]


# Shipping it


def pack(work: Any, protocols: Iterable[Protocol], measure: Callable[..., Any] | None = None) -> bytes:
    """``work`` and the user's code as bytes for a worker: classes and functions by value, user keys, search path.

    By value and not as JSON: a worker then needs neither the user's modules nor the data set of a testbed.
    """
    from pyspark import cloudpickle

    protocols = tuple(protocols)
    code = {name: thing for protocol in protocols for name, thing in of(protocol).items()}
    registered = [
        (part.register, name, thing)
        for protocol in protocols
        for part in protocol.parts()
        for name, thing in part.user_code().items()
    ]
    metrics = {protocol.metrics for protocol in protocols if protocol.metrics}
    modules = [(name, *_of_metrics(name)) for name in sorted(metrics) if name.partition(".")[0] != PACKAGE]
    plugged_in = [(name, one.measure, one.LOOKS_AT) for name, one in plugins.load_all("metrics").items()]
    things = [*code.values(), *([] if measure is None else [measure])]
    walk = _walked(things)
    content = (work, registered, modules, plugged_in, _user_keys())
    try:
        with _by_value(cloudpickle, walk.packages):
            packed = cloudpickle.dumps(content)
    except Exception:
        own = set(map(package_of, things))
        if walk.packages <= own:
            raise
        with _by_value(cloudpickle, own):  # A helper module may have a lock, say. Then a worker imports its source.
            packed = cloudpickle.dumps(content)
    shipped = sources.of_modules(walk.modules)
    return pickle.dumps(([os.path.abspath(folder) for folder in sys.path], shipped, packed))


def pickled(things: Mapping[str, Callable[..., Any]]) -> bytes:
    """Functions of the user as bytes that `pickle.loads` reads where their modules are not."""
    from pyspark import cloudpickle

    with _by_value(cloudpickle, _walked(things.values()).packages):
        return cloudpickle.dumps(dict(things))


def _walked(things: Iterable[Any]) -> Walk:
    """Return the walk through all that these functions and classes refer to."""
    things = list(things)
    walk = Walk(map(package_of, things))
    for thing in things:
        for _ in walk.texts(thing):
            pass
    return walk


def _of_metrics(name: str) -> tuple[Any, Any]:
    module = importlib.import_module(name)
    return module.measure, module.LOOKS_AT


def unpack(packed: bytes) -> Any:
    """Register the user's code and keys in this process, and return the ``work`` that was packed.

    Modules that an earlier plan has brought are forgotten.
    """
    path, shipped, content = pickle.loads(packed)
    # Modules of the plan before may have the same names.
    sys.path[:] = [folder for folder in sys.path if folder not in _added_path]
    _added_path[:] = [folder for folder in path if folder not in sys.path]
    sys.path += _added_path
    sources.install(shipped)
    work, registered, modules, plugged_in, keys = pickle.loads(content)
    for number, name, type_, unit, steps, minimum, maximum in keys:
        attributes.register_key(number, name, unit, steps, type_, minimum, maximum)
    for register, name, make in registered:
        register(name, make)
    for name, measure, looks_at in modules:
        _provide_metrics(name, measure, looks_at)
    # Those of the driver alone, so that all rows have the same metrics.
    plugins.provide(
        "metrics", {name: SimpleNamespace(measure=one, LOOKS_AT=events) for name, one, events in plugged_in}
    )
    return work


def _provide_metrics(name: str, measure: Callable[..., Any], looks_at: tuple[str, ...]) -> None:
    """Have the module of a protocol's metrics here, as it was where the sweep began."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        module = sys.modules[name] = ModuleType(name)
    vars(module).update(measure=measure, LOOKS_AT=looks_at)


def _user_keys() -> list[tuple[Any, ...]]:
    numbers = range(attributes.FIRST_USER_KEY, attributes.LAST_USER_KEY + 1)
    # A key that nobody registered goes by its number.
    return [tuple(key) for key in map(attributes.key_of, numbers) if key.name != str(key.number)]


@contextmanager
def _by_value(cloudpickle: ModuleType, packages: Iterable[str]) -> Iterator[None]:
    """While this lasts, whatever comes from these packages is pickled by value."""
    packages = set(packages) - {"__main__", PACKAGE}
    already = cloudpickle.list_registry_pickle_by_value()
    modules = [sys.modules[name] for name in packages - already if name in sys.modules]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)

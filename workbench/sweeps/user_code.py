"""The user's own code in a sweep: a protocol's class, metrics and functions in its settings, and a measure function.

A scenario contains only the names of this code. So a sweep stores a digest of the code with each result: after a filter
was edited, results that were computed with its old code are not used. Workers that cannot import the code receive it by
value.
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

_added_path: list[str] = []  # folders that the last plan has added to the search path
_PROTOCOL = re.compile(r"workbench\.protocols\.(\w+)")


def of(protocol: Protocol) -> dict[str, Any]:
    """Return {name: user code} for all code of the user that is executed in runs of a protocol.

    The code is the user's functions in the protocol's settings, its class, its metrics and its fast twin (the fast
    engine's version of the protocol), and the metrics of all installed plug-ins.
    """
    code_objects = {}
    for component in protocol.parts():
        code_objects.update({f"{component.kind} {name}": code for name, code in component.user_code().items()})
    cls = type(protocol)
    if package_of(cls) != PACKAGE:
        code_objects[f"protocol {cls.__module__}:{cls.__qualname__}"] = cls
    if protocol.metrics and protocol.metrics.partition(".")[0] != PACKAGE:
        module = importlib.import_module(protocol.metrics)
        code_objects[f"metrics {protocol.metrics} of {' '.join(module.LOOKS_AT)}"] = module.measure
    for name, module in plugins.load_all("metrics").items():
        code_objects[f"plug-in metrics {name} of {' '.join(module.LOOKS_AT)}"] = module.measure
    twin = protocol.fast if "fast" in vars(cls) else ""
    if twin and twin.partition(".")[0] != PACKAGE:
        code_objects[f"fast twin {twin}"] = _read_sources(twin)
    return code_objects


@cache
def _read_sources(module: str) -> str:
    """Return the source text of a module, or of all modules of a package, without importing it; "" if not found."""
    with suppress(ImportError):
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin is not None:
            path = Path(spec.origin)
            files = sorted(path.parent.rglob("*.py")) if spec.submodule_search_locations else [path]
            return "".join(file.read_text(encoding="utf-8") for file in files)
    return ""


# Digests


class Piece(NamedTuple):
    """A description of one function or class of the user.

    digest       16 hex digits that change with the code
    protocols    names of the workbench's protocols to which the function or class refers
    untracked    actions of the code that use data outside of the digest, such as reading a file; a short text for each
    """

    digest: str
    protocols: tuple[str, ...]
    untracked: tuple[str, ...] = ()


def piece(name: str, code_object: Any) -> Piece:
    """Return the description of a piece of user code: a function, a class, or a source text.

    The description's digest covers ``name`` and the code.
    """
    walk = Walk([package_of(code_object)])
    is_of_package = package_of(code_object) == PACKAGE  # A measure of this package, which a walk does not enter.
    code_texts = [*walk.texts(code_object), *([_read_sources(code_object.__module__)] if is_of_package else [])]
    protocols = {protocol for text in code_texts for protocol in _PROTOCOL.findall(text)}
    return Piece(_digest([name, *code_texts]), tuple(sorted(protocols)), tuple(walk.untracked))


def name_of(measure: Callable[..., Any] | None) -> str:
    """Return "module:name" of a sweep's measure function; "" for None."""
    return "" if measure is None else f"{measure.__module__}:{measure.__qualname__}"


def digest(named: dict[str, Any]) -> str:
    """Return the digest of ``named``, {name: function or class}, including all user code on which these depend."""
    walk = Walk(map(package_of, named.values()))
    return _digest(text for name in sorted(named) for text in (name, *walk.texts(named[name])))


def _digest(texts: Iterable[str]) -> str:
    sha = hashlib.sha256()
    for text in texts:
        sha.update(text.encode() + b"\0")
    return sha.hexdigest()[:16]


# Shipping


def pack(work: Any, protocols: Iterable[Protocol], measure: Callable[..., Any] | None = None) -> bytes:
    """Return ``work``, such as a plan, and the user's code as bytes, which a worker reads with `unpack`.

    The user's code is collected from ``protocols`` and ``measure``, the protocols and the measure function of a sweep.
    The bytes contain classes and functions by value, the user's attribute keys, and Python's search path. Networks are
    also stored by value. So a worker needs neither the user's modules nor the files of a testbed's data.
    """
    from pyspark import cloudpickle

    protocols = tuple(protocols)
    code_by_name = {name: code_object for protocol in protocols for name, code_object in of(protocol).items()}
    registrations = [
        (component.register, name, code_object)
        for protocol in protocols
        for component in protocol.parts()
        for name, code_object in component.user_code().items()
    ]
    metrics = {protocol.metrics for protocol in protocols if protocol.metrics}
    modules = [(name, *_metrics_of_module(name)) for name in sorted(metrics) if name.partition(".")[0] != PACKAGE]
    plugin_metrics = [(name, module.measure, module.LOOKS_AT) for name, module in plugins.load_all("metrics").items()]
    code_objects = [*code_by_name.values(), *([] if measure is None else [measure])]
    walk = _walk_code(code_objects)
    packed_objects = (work, registrations, modules, plugin_metrics, _list_user_keys())
    try:
        with _pickle_by_value(cloudpickle, walk.packages):
            packed = cloudpickle.dumps(packed_objects)
    except Exception:
        # A helper module may contain a lock, for example. Then a worker imports its source.
        direct_packages = set(map(package_of, code_objects))
        if walk.packages <= direct_packages:
            raise
        with _pickle_by_value(cloudpickle, direct_packages):
            packed = cloudpickle.dumps(packed_objects)
    module_sources = sources.of_modules(walk.modules)
    return pickle.dumps(([os.path.abspath(folder) for folder in sys.path], module_sources, packed))


def pickle_functions(code_objects: Mapping[str, Callable[..., Any]]) -> bytes:
    """Return ``code_objects``, {name: user's function}, pickled. Loading does not need the functions' modules."""
    from pyspark import cloudpickle

    with _pickle_by_value(cloudpickle, _walk_code(code_objects.values()).packages):
        return cloudpickle.dumps(dict(code_objects))


def _walk_code(code_objects: Iterable[Any]) -> Walk:
    """Search all code to which the functions and classes ``code_objects`` refer; return the finished `Walk`."""
    code_objects = list(code_objects)
    walk = Walk(map(package_of, code_objects))
    for code_object in code_objects:
        for _ in walk.texts(code_object):
            pass
    return walk


def _metrics_of_module(name: str) -> tuple[Any, Any]:
    module = importlib.import_module(name)
    return module.measure, module.LOOKS_AT


def unpack(packed: bytes) -> Any:
    """Register the packed user code and attribute keys in this process, and return the packed object (see `pack`).

    Modules that were received with an earlier plan are unloaded.
    """
    path, module_sources, pickled_objects = pickle.loads(packed)
    # Modules of the previous plan may have the same names.
    sys.path[:] = [folder for folder in sys.path if folder not in _added_path]
    _added_path[:] = [folder for folder in path if folder not in sys.path]
    sys.path += _added_path
    sources.install(module_sources)
    work, registrations, modules, plugin_metrics, user_keys = pickle.loads(pickled_objects)
    for number, name, type_, unit, steps, minimum, maximum in user_keys:
        attributes.register_key(number, name, unit, steps, type_, minimum, maximum)
    for register, name, make in registrations:
        register(name, make)
    for name, measure, looks_at in modules:
        _install_metrics_module(name, measure, looks_at)
    # Only the driver's plug-ins are used, so that all rows have the same metrics.
    plugins.provide(
        "metrics", {name: SimpleNamespace(measure=measure, LOOKS_AT=events) for name, measure, events in plugin_metrics}
    )
    return work


def _install_metrics_module(name: str, measure: Callable[..., Any], looks_at: tuple[str, ...]) -> None:
    """Make the metrics of the sweep's process available as the module ``name`` in this process.

    ``measure`` is the function that computes the metrics, and ``looks_at`` names the events that it reads. They become
    the module's attributes ``measure`` and ``LOOKS_AT``. If this process cannot import the module, an empty one is
    created first.
    """
    try:
        module = importlib.import_module(name)
    except ImportError:
        module = sys.modules[name] = ModuleType(name)
    vars(module).update(measure=measure, LOOKS_AT=looks_at)


def _list_user_keys() -> list[tuple[Any, ...]]:
    """Return the attribute keys that the user has registered, each as a plain tuple of its fields."""
    key_numbers = range(attributes.FIRST_USER_KEY, attributes.LAST_USER_KEY + 1)
    # A key that is not registered has its number as name.
    return [tuple(key) for key in map(attributes.key_of, key_numbers) if key.name != str(key.number)]


@contextmanager
def _pickle_by_value(cloudpickle: ModuleType, packages: Iterable[str]) -> Iterator[None]:
    """Make cloudpickle store objects of ``packages`` by value, not by name, inside the context."""
    packages = set(packages) - {"__main__", PACKAGE}
    registered_names = cloudpickle.list_registry_pickle_by_value()
    modules = [sys.modules[name] for name in packages - registered_names if name in sys.modules]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)

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
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from workbench import attributes
from workbench.protocols.protocol import Protocol

PACKAGE = "workbench"
_PROTOCOL = re.compile(r"workbench\.protocols\.(\w+)")


def of(protocol: Protocol) -> dict[str, Any]:
    """name -> the user's code that takes part: what the settings call, and what comes with a class that is theirs."""
    found = {}
    for part in protocol.parts():
        found.update({f"{part.kind} {name}": code for name, code in part.user_code().items()})
    cls = type(protocol)
    if _package(cls) != PACKAGE:
        found[f"protocol {cls.__module__}:{cls.__qualname__}"] = cls
    if protocol.metrics and protocol.metrics.partition(".")[0] != PACKAGE:
        module = importlib.import_module(protocol.metrics)
        found[f"metrics {protocol.metrics} of {' '.join(module.LOOKS_AT)}"] = module.measure
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


def _package(thing: Any) -> str:
    return (getattr(thing, "__module__", None) or "").partition(".")[0]


# Telling code apart


class Piece(NamedTuple):
    """A piece of the user's code: its digest, and the package's protocols that it refers to."""

    digest: str
    protocols: tuple[str, ...]


def piece(name: str, thing: Any) -> Piece:
    """What tells a piece of code apart, by a name: a function, a class, or the text of its source."""
    texts = list(_pieces(thing, _package(thing), set()))
    found = {protocol for text in texts for protocol in _PROTOCOL.findall(text)}
    return Piece(_digest([name, *texts]), tuple(sorted(found)))


def name_of(measure: Callable | None) -> str:
    """A measure by its module and name; "" without one."""
    return "" if measure is None else f"{measure.__module__}:{measure.__qualname__}"


def digest(named: dict[str, Any]) -> str:
    """The digest of functions and classes by name, with all of their own module that they refer to."""
    seen: set[int] = set()
    texts = []
    for name in sorted(named):
        texts += [name, *_pieces(named[name], _package(named[name]), seen)]
    return _digest(texts)


def _digest(texts: Iterable[str]) -> str:
    sha = hashlib.sha256()
    for text in texts:
        sha.update(text.encode() + b"\0")
    return sha.hexdigest()[:16]


def _pieces(thing: Any, package: str, seen: set[int]) -> Iterator[str]:
    """Texts that differ if the code does. No addresses, file names or line numbers: a moved function is the same."""
    if isinstance(thing, (staticmethod, classmethod)):
        thing = thing.__func__
    if isinstance(thing, (FunctionType, type)):
        if id(thing) in seen or _package(thing) != package:
            yield f"{thing.__module__}.{thing.__qualname__}"
            return
        seen.add(id(thing))
        yield thing.__qualname__
        yield from _of_class(thing, package, seen) if isinstance(thing, type) else _of_function(thing, package, seen)
    elif isinstance(thing, CodeType):
        yield from (thing.co_code.hex(), repr(thing.co_names))
        for constant in thing.co_consts:
            yield from _pieces(constant, package, seen)
    elif isinstance(thing, (tuple, list, set, frozenset, dict)):
        yield from _of_collection(thing, package, seen)
    elif thing is None or isinstance(thing, (bool, int, float, complex, str, bytes)):
        yield repr(thing)
    else:
        yield from _of_object(thing, package, seen)


def _of_collection(thing: Any, package: str, seen: set[int]) -> Iterator[str]:
    yield type(thing).__name__
    if isinstance(thing, (list, set, dict)):
        if id(thing) in seen:  # It may hold itself.
            return
        seen.add(id(thing))
    texts = ["".join(_pieces(part, package, seen)) for part in (thing.items() if isinstance(thing, dict) else thing)]
    yield from sorted(texts) if isinstance(thing, (set, frozenset)) else texts


def _of_object(thing: Any, package: str, seen: set[int]) -> Iterator[str]:
    """A property by its functions, an object of the user's classes by class and fields, others by what they hold."""
    if isinstance(thing, ModuleType):
        yield thing.__name__
    elif isinstance(thing, property):
        for function in (thing.fget, thing.fset):
            yield from _pieces(function, package, seen)
    elif _package(type(thing)) == package:
        yield from _pieces(type(thing), package, seen)
        yield from _pieces(getattr(thing, "__dict__", None), package, seen)
    else:
        yield type(thing).__qualname__
        # An array, a partial, a date. What cannot be pickled (a lock, a logger) is no part of what code computes.
        with suppress(Exception):
            yield pickle.dumps(thing, protocol=4).hex()


def _of_class(cls: type, package: str, seen: set[int]) -> Iterator[str]:
    for base in cls.__bases__:
        yield from _pieces(base, package, seen)
    for name, member in sorted(vars(cls).items()):
        # Python keeps notes of its own in a class (__slotnames__ when an object is pickled, __firstlineno__, ...).
        if isinstance(member, FunctionType) or not name.startswith("__"):
            yield name
            yield from _pieces(member, package, seen)


def _of_function(function: FunctionType, package: str, seen: set[int]) -> Iterator[str]:
    yield from _pieces(function.__code__, package, seen)
    yield from _pieces((function.__defaults__, function.__kwdefaults__), package, seen)
    for cell in function.__closure__ or ():
        yield from _pieces(cell.cell_contents, package, seen)
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield from _pieces(function.__globals__[name], package, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


# Shipping it


def pack(work: Any, protocols: Iterable[Protocol], measure: Callable | None = None) -> bytes:
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
    with _by_value(cloudpickle, [*code.values(), *([] if measure is None else [measure])]):
        content = cloudpickle.dumps((work, registered, modules, _user_keys()))
    return pickle.dumps(([os.path.abspath(folder) for folder in sys.path], content))


def pickled(things: Mapping[str, Callable]) -> bytes:
    """Functions of the user as bytes that `pickle.loads` reads where their modules are not."""
    from pyspark import cloudpickle

    with _by_value(cloudpickle, things.values()):
        return cloudpickle.dumps(dict(things))


def _of_metrics(name: str) -> tuple[Any, Any]:
    module = importlib.import_module(name)
    return module.measure, module.LOOKS_AT


def unpack(packed: bytes) -> Any:
    """The ``work`` that was packed, after the user's code and keys were registered here."""
    path, content = pickle.loads(packed)
    sys.path += [folder for folder in path if folder not in sys.path]
    work, registered, modules, keys = pickle.loads(content)
    for number, name, type_, unit, steps, minimum, maximum in keys:
        attributes.register_key(number, name, unit, steps, type_, minimum, maximum)
    for register, name, make in registered:
        register(name, make)
    for name, measure, looks_at in modules:
        _provide_metrics(name, measure, looks_at)
    return work


def _provide_metrics(name: str, measure: Callable, looks_at: tuple[str, ...]) -> None:
    """Have the module of a protocol's metrics here, as it was where the sweep began."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        module = sys.modules[name] = ModuleType(name)
    vars(module).update(measure=measure, LOOKS_AT=looks_at)


def _user_keys() -> list[tuple]:
    numbers = range(attributes.FIRST_USER_KEY, attributes.LAST_USER_KEY + 1)
    # A key that nobody registered goes by its number.
    return [tuple(key) for key in map(attributes.key_of, numbers) if key.name != str(key.number)]


@contextmanager
def _by_value(cloudpickle: ModuleType, code: Iterable[Callable]) -> Iterator[None]:
    """While this lasts, whatever comes from the packages of that code is pickled by value."""
    packages = {_package(thing) for thing in code} - {"__main__", PACKAGE}
    already = cloudpickle.list_registry_pickle_by_value()
    modules = [sys.modules[name] for name in packages - already if name in sys.modules]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)

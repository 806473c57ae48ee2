"""A search for the user's code to which a function or a class refers.

The search yields texts that change whenever this code changes, and the names of its modules.

Theory of operation
    A `Walk` begins with a function or a class and follows every reference to more code of the user: names, attributes
    of modules, bases, closures, and imports within functions. A walk reads the code in memory, which is the code that
    runs, and not files. If code refers to a module of the user, as after ``import module``, all functions, classes and
    constants of the module are included. Python's own modules and installed packages are left out, as their versions
    identify them. This package is left out too, as `code` digests its sources.

    A walk cannot follow everything. `Walk.untracked` lists the actions of functions whose effects it misses:
    reading files or the environment, looking up names by text, assigning globals.
"""

from __future__ import annotations

import dis
import functools
import importlib
import importlib.util
import pickle
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

PACKAGE = "workbench"
_INSTALLED = ("site-packages", "dist-packages")
_LIBRARY = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
_LOOKUPS = {"globals", "vars", "exec", "eval", "__import__"}
_IMPORTS = {"import_module"}
_ENVIRONMENT = {"environ", "getenv"}
_READERS = {
    *("open", "read_text", "read_bytes", "read_csv", "read_parquet", "read_json", "read_excel", "read_pickle"),
    *("read_table", "read_feather", "fromfile", "loadtxt", "genfromtxt", "memmap", "scan_csv", "scan_parquet"),
}
_PLAIN = (bool, int, float, complex, str, bytes)


def package_of(thing: Any) -> str:
    """Return the name of the top-level package that defines an object, or "" if the object does not name one."""
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
    return (name if isinstance(name, str) else "").partition(".")[0]


def is_of_user(package: str) -> bool:
    """Return whether a package is the user's: not this one, not Python's own, and not installed."""
    if not package or package == PACKAGE or package in sys.stdlib_module_names:
        return False
    if package == "__main__":
        return True
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return False
    locations = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    paths = [Path(location).resolve() for location in locations if location not in (None, "built-in", "frozen")]
    return bool(paths) and not any(_is_library(path) for path in paths)


def _is_library(path: Path) -> bool:
    return any(folder_name in _INSTALLED for folder_name in path.parts) or any(
        folder in path.parents for folder in _LIBRARY
    )


class Walk:
    """A walk through the user's code, which visits each function, class and module once.

    ``own`` has packages that count as the user's although they are installed. A walk has these attributes:

    packages     names of the packages of the user's code that the walk has visited
    modules      names of the modules of this code, including modules that functions import when they are called
    untracked    actions of the code that the walk cannot follow, such as "mine.measure reads files (open)"
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        self.packages = set(own) - {PACKAGE}
        self.modules: set[str] = set()
        self.untracked: dict[str, None] = {}
        self._seen: set[int] = set()
        self._known = dict.fromkeys(self.packages, True)

    def texts(self, thing: Any) -> Iterator[str]:
        """Yield strings that change whenever the code of ``thing`` changes.

        The strings do not contain addresses, file names or line numbers.
        """
        if isinstance(thing, (staticmethod, classmethod)):
            thing = thing.__func__
        if isinstance(thing, (FunctionType, type)):
            if id(thing) in self._seen or not self._is_user_code(thing):
                yield f"{thing.__module__}.{thing.__qualname__}"
                return
            self._seen.add(id(thing))
            self.modules.add(thing.__module__)
            yield thing.__qualname__
            yield from self._describe_class(thing) if isinstance(thing, type) else self._describe_function(thing)
        elif isinstance(thing, CodeType):
            yield from (thing.co_code.hex(), repr(thing.co_names))
            for constant in thing.co_consts:
                yield from self.texts(constant)
        elif isinstance(thing, (tuple, list, set, frozenset, dict)):
            yield from self._describe_collection(thing)
        elif thing is None or isinstance(thing, _PLAIN):
            yield repr(thing)
        else:
            yield from self._describe_object(thing)

    def _is_user_code(self, thing: Any) -> bool:
        package = package_of(thing)
        if package not in self._known:
            self._known[package] = is_of_user(package)
            if self._known[package]:
                self.packages.add(package)
        return self._known[package]

    def _describe_collection(self, thing: Any) -> Iterator[str]:
        yield type(thing).__name__
        if isinstance(thing, (list, set, dict)):
            if id(thing) in self._seen:  # It may contain itself.
                return
            self._seen.add(id(thing))
        entries = thing.items() if isinstance(thing, dict) else thing
        entry_texts = ["".join(self.texts(entry)) for entry in entries]
        yield from sorted(entry_texts) if isinstance(thing, (set, frozenset)) else entry_texts

    def _describe_object(self, value: Any) -> Iterator[str]:
        """Yield strings that change whenever the code or content of the object ``value`` changes.

        ``value`` is a module, a wrapper of a function, or another object, whose class and fields count.
        """
        if isinstance(value, ModuleType):
            yield from self._describe_module(value)
        elif isinstance(value, property):
            for function in (value.fget, value.fset):
                yield from self.texts(function)
        elif isinstance(value, functools.partial):
            yield from self.texts((value.func, value.args, value.keywords))
        elif isinstance(value, MethodType):
            yield from self.texts((value.__func__, value.__self__))
        elif isinstance(wrapped := _unwrap(value), FunctionType) and self._is_user_code(wrapped):
            yield type(value).__qualname__
            yield from self.texts(wrapped)
        elif self._is_user_code(type(value)):
            yield from self.texts(type(value))
            yield from self.texts(getattr(value, "__dict__", None))
        else:
            yield type(value).__qualname__
            # An array or a date. Objects that cannot be pickled (a lock, a logger) do not affect what code computes.
            with suppress(Exception):
                yield pickle.dumps(value, protocol=4).hex()

    def _describe_module(self, module: ModuleType) -> Iterator[str]:
        """Yield strings that change with the code of a whole module: its functions, classes and constants.

        Mutable variables are left out here; they count only if a function refers to them by name.
        """
        yield module.__name__
        if id(module) in self._seen or not self._is_user_code(module):
            return
        self._seen.add(id(module))
        self.modules.add(module.__name__)
        for variable_name, variable_value in sorted(vars(module).items()):
            is_code = isinstance(variable_value, (FunctionType, type)) or isinstance(
                _unwrap(variable_value), FunctionType
            )
            if not variable_name.startswith("__") and (
                is_code or isinstance(variable_value, (*_PLAIN, tuple, frozenset))
            ):
                yield variable_name
                yield from self.texts(variable_value)

    def _describe_class(self, cls: type) -> Iterator[str]:
        for base in cls.__bases__:
            yield from self.texts(base)
        for name, member in sorted(vars(cls).items()):
            # Python keeps notes of its own in a class (__slotnames__ when an object is pickled, __firstlineno__, ...).
            if isinstance(member, FunctionType) or not name.startswith("__"):
                yield name
                yield from self.texts(member)

    def _describe_function(self, function: FunctionType) -> Iterator[str]:
        yield from self.texts(function.__code__)
        yield from self.texts((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            with suppress(ValueError):  # The cell is empty: the function around it has not assigned the name yet.
                yield from self.texts(cell.cell_contents)
        names = list(_names_in(function.__code__))
        used_objects = [function.__globals__[name] for name in names if name in function.__globals__]
        for used_object in used_objects:
            yield from self.texts(used_object)
        modules = [used_object for used_object in used_objects if isinstance(used_object, ModuleType)]
        for module in self._import_used_modules(function):
            modules.append(module)
            yield from self.texts(module)
        yield from self._describe_attributes(modules, names)
        self._note_untracked(function)

    def _describe_attributes(self, modules: list[ModuleType], names: list[str]) -> Iterator[str]:
        """Yield strings that change with the code of the attributes of ``modules`` whose names are in ``names``.

        If such an attribute is itself a module, its attributes with these names are included.
        """
        visited = set()
        while modules:
            module = modules.pop()
            if module.__name__ in visited or not self._is_user_code(module):
                continue
            visited.add(module.__name__)
            for attribute_name in dict.fromkeys(names):
                attribute_value = vars(module).get(attribute_name)
                if attribute_value is not None:
                    yield from self.texts(attribute_value)
                    modules += [attribute_value] if isinstance(attribute_value, ModuleType) else []

    def _import_used_modules(self, function: FunctionType) -> Iterator[ModuleType]:
        """Import and yield the user's modules that a function would import when it is called."""
        package = function.__globals__.get("__package__") or ""
        for code in codes_in(function.__code__):
            earlier_arguments: list[Any] = []
            for instruction in dis.get_instructions(code):
                if instruction.opname == "IMPORT_NAME":
                    level, names = earlier_arguments[-2:]
                    for name in (instruction.argval, *(f"{instruction.argval}.{name}" for name in names or ())):
                        module = self._import_module("." * level + name, package)
                        if module is not None:
                            yield module
                if instruction.opname != "EXTENDED_ARG":
                    earlier_arguments.append(instruction.argval)

    def _import_module(self, name: str, package: str) -> ModuleType | None:
        """Import and return the module ``name``, or return None if it is not the user's or does not exist.

        ``package`` is the package of the module that contains the import; a relative ``name`` is relative to it.
        """
        # If an import fails, the walk ignores it: a point that executes the import fails with a message of its own.
        with suppress(Exception):
            name = importlib.util.resolve_name(name, package)
            top_package = name.partition(".")[0]
            if self._known.get(top_package) or is_of_user(top_package):
                if name not in sys.modules and importlib.util.find_spec(name) is None:
                    return None
                return importlib.import_module(name)
        return None

    def _note_untracked(self, function: FunctionType) -> None:
        function_name = f"{function.__module__}.{function.__qualname__}"
        for code in codes_in(function.__code__):
            for step in dis.get_instructions(code):
                action = _describe_untracked(step, function.__globals__)
                if action:
                    self.untracked[f"{function_name} {action}"] = None


def _describe_untracked(step: dis.Instruction, names: dict[str, Any]) -> str:
    """Return a text such as "reads files (open)" if an instruction uses data that no digest covers; otherwise "".

    ``step`` is an instruction of a function, ``names`` are the function's globals.
    """
    name = step.argval
    if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
        return f"assigns the global {name}"
    is_global = step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    if not isinstance(name, str) or not (is_global or step.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")):
        return ""
    if name in _IMPORTS or (is_global and name in _LOOKUPS and name not in names):
        return f"calls {name}()"
    if name in _ENVIRONMENT:
        return f"reads the environment ({name})"
    return f"reads files ({name})" if name in _READERS and not (is_global and name in names) else ""


def _unwrap(thing: Any) -> Any:
    """Return the function that ``thing`` wraps, or None if ``thing`` is not a wrapper.

    A wrapper is made by `functools.wraps`, a cache or numba.
    """
    if isinstance(thing, (FunctionType, type, ModuleType)):
        return None
    with suppress(Exception):
        return getattr(thing, "__wrapped__", None) or getattr(thing, "py_func", None)
    return None


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def _names_in(code: CodeType) -> Iterator[str]:
    for nested_code in codes_in(code):
        yield from nested_code.co_names

"""Signatures, documentation and errors of the public interface: functions, classes and modules that users call.

    checked(target)                    makes a function or class suggest a known name if it is used with an unknown
                                       keyword or attribute
    answer_for(module)                 makes a module suggest a known name for an unknown attribute
    hand_out(package, homes)           makes a package load its public names at their first use
    former(owner, name)                returns an object that has moved to another module, with a warning
    defaults_of(function)              returns the defaults of a function's arguments, and the required arguments
    signature_of(parameters)           returns the signature of a call whose keywords are the parameters of a table
    documentation(text, parameters)    returns a docstring with the parameters of a table as a section
    signature_with, sections           return the signature and the docstring of a call that accepts, besides its own
                                       parameters, those of one of several tables

A table is a sequence of `protocols.parameter.Parameter`. Notebooks and editors complete keywords from signatures.
"""

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any, Literal, TypeVar

from workbench.errors import ParameterError, WorkbenchError
from workbench.public_names import FORMER, RENAMED
from workbench.suggestion import meant

Target = TypeVar("Target", bound=Callable[..., Any])


class UnknownName(WorkbenchError, AttributeError):
    """An error for an unknown attribute, which suggests a similar known one. It is also an AttributeError."""

    def __init__(self, owner: str, name: str, known: Iterable[str]) -> None:
        public_names = [name for name in known if not name.startswith("_")]
        super().__init__(f"{owner} has no attribute {name!r}{meant(name, public_names)}")
        self.name = name  # `obj` is not set: Python would add a suggestion of its own, which not all notebooks show
        self._arguments = (owner, name, public_names)

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickling calls the class with the exception's message by default, but it needs these arguments.
        return UnknownName, self._arguments


class WrongCall(ParameterError, TypeError):
    """An error for a call with missing or too many arguments. It is also a TypeError, like Python's own error."""


def checked(target: Target) -> Target:
    """Make calls of ``target`` raise ParameterError for unknown keywords and missing arguments; return ``target``.

    ``target``: a function, or a class. In a class, calls of the constructor and of public methods are checked, and
    instances raise `UnknownName` for an unknown attribute.
    """
    if not isinstance(target, type):
        return _wrap_checked(target, target.__name__)
    constructor = target.__init__  # type: ignore[misc]
    if constructor is not object.__init__:  # A named tuple is built by __new__, and object.__init__ takes no arguments.
        target.__init__ = _wrap_checked(constructor, target.__name__)  # type: ignore[misc]
    for method_name, function in list(vars(target).items()):
        if isinstance(function, FunctionType) and not method_name.startswith("_"):
            setattr(target, method_name, _wrap_checked(function, f"{target.__name__}.{method_name}"))
    if not hasattr(target, "__getattr__"):
        target.__getattr__ = refuse_unknown  # type: ignore[attr-defined]
    return target


def refuse_unknown(self: Any, name: str) -> Any:
    """Serve as a class's ``__getattr__``: return an attribute by its former name, or raise `UnknownName`."""
    # Python calls this when ordinary look-up fails. If a property of this name raised, its error is raised again.
    if name.startswith("_") or hasattr(type(self), name):
        return object.__getattribute__(self, name)
    owner = type(self).__name__
    if name in RENAMED.get(owner, ()):
        return getattr(self, new_name(owner, name, stacklevel=2))
    raise UnknownName(owner, name, dir(self))


def answer_for(module: str) -> None:
    """Make a module raise `UnknownName`, which suggests a known name, for an unknown attribute.

    The module's own ``__getattr__`` is called first. If the module has ``__all__`` and no ``__dir__``, ``dir`` then
    lists the names in ``__all__``.
    """
    owner = sys.modules[module]
    own_getattr = vars(owner).get("__getattr__")
    if "__all__" in vars(owner):
        vars(owner).setdefault("__dir__", lambda: sorted(owner.__all__))

    def get_attribute(name: str) -> Any:
        if own_getattr is not None:
            try:
                return own_getattr(name)
            except AttributeError:
                if name in dir(owner):  # The name exists, and could not be loaded.
                    raise
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name in RENAMED.get(module, ()):
            return getattr(owner, new_name(module, name, stacklevel=2))
        raise UnknownName(f"module {module!r}", name, dir(owner))

    # The module keeps Python's module class, the only one that cloudpickle, which sends functions to workers, supports.
    vars(owner)["__getattr__"] = get_attribute


def imported_names(package: str) -> list[str]:
    """Return the public names, sorted, that a package's ``__init__`` imports from its modules."""
    value_by_name = {name: value for name, value in vars(sys.modules[package]).items() if not name.startswith("_")}
    return sorted(
        name
        for name, value in value_by_name.items()
        if not isinstance(value, ModuleType) and getattr(value, "__module__", "") != __name__
    )


def checked_method(method: Any, name: str) -> Any:
    """Return a wrapper of ``method`` that raises ParameterError if it is called with wrong arguments.

    `extensions` adds such wrappers to classes. ``name`` is the method's name in error messages. The messages list the
    parameters of the method without the first one, the instance.
    """
    return _wrap_checked(method, name, next(iter(inspect.signature(method).parameters)))


def hand_out(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Make a package load each public name at its first use; return the new ``__getattr__`` of the package.

    ``homes`` is {public name: module of the package that defines it}. The name of a public module is mapped to itself.
    ``dir`` then lists the names in ``homes`` and ``__all__``. Other modules of the package also load at their first
    use, but ``dir`` does not list them. Public functions are wrapped by `checked`.
    """
    owner = sys.modules[package]
    own_getattr = vars(owner).get("__getattr__")
    listed_names = sorted({*homes, *vars(owner).get("__all__", ())})
    vars(owner)["__all__"] = listed_names

    def load(name: str) -> Any:
        home = homes.get(name, name)
        if name not in homes and (name.startswith("_") or find_spec(f"{package}.{name}") is None):
            if own_getattr is not None:
                return own_getattr(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home}")
        public_object = module if home == name else getattr(module, name)
        vars(owner)[name] = public_object = (
            checked(public_object) if isinstance(public_object, FunctionType) else public_object
        )
        return public_object

    vars(owner)["__getattr__"] = load
    answer_for(package)
    return vars(owner)["__getattr__"]


def new_name(owner: str, name: str, stacklevel: int) -> str:
    """Return the present name of an attribute or parameter whose former name is ``name``; warn of its deprecation.

    ``owner`` is the module, class or function to which the name belongs; `RENAMED` lists the names that have changed.
    The DeprecationWarning concerns the source line that is ``stacklevel`` calls above this function.
    """
    present_name = RENAMED[owner][name]
    warnings.warn(f"{owner}: {name} is now called {present_name}", DeprecationWarning, stacklevel=stacklevel + 1)
    return present_name


def former(owner: str, name: str, stacklevel: int) -> Any:
    """Return an object that was called ``name`` in the module ``owner`` and has moved; warn of its deprecation.

    `FORMER` lists the objects that have moved. Raises AttributeError if ``name`` is not listed, or if the new module is
    not found. The DeprecationWarning concerns the source line that is ``stacklevel`` calls above this function.
    """
    home = next((home for home, names in FORMER[owner].items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {owner!r} has no attribute {name!r}")
    home = home if home.startswith("notebooks") else f"workbench.{home}"
    present_name = f"{home.replace('.protocols.', '.')}.{name}"
    warnings.warn(f"{owner}.{name} is now {present_name}", DeprecationWarning, stacklevel=stacklevel + 1)
    try:
        module = import_module(home)
        return getattr(module, name, None) or import_module(f"{module.__name__}.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(
            f"{owner}.{name} has moved to {home.replace('.', '/')} of the source tree, which Python does not find; "
            "start Python in the root folder of the source tree"
        ) from error


def _wrap_checked(function: Any, name: str, hidden: str = "self") -> Any:
    """Return a wrapper of ``function`` that raises ParameterError for unknown, missing or surplus arguments.

    ``name`` is the function's name in error messages, ``hidden`` a parameter that the messages omit.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    parameter_names = tuple(parameter for parameter in parameters if parameter != hidden)
    has_all_names = frozenset(parameter_names).issuperset
    present_names = RENAMED.get(name, {})

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for former_name in present_names.keys() & keywords.keys():
            keywords[new_name(name, former_name, stacklevel=2)] = keywords.pop(former_name)
        if not takes_any and not has_all_names(keywords):
            unknown_keyword = next(keyword for keyword in keywords if keyword not in parameter_names)
            names_text = ", ".join(parameter_names) or "none"
            raise ParameterError(
                f"{name} has no parameter {unknown_keyword!r}{meant(unknown_keyword, parameter_names)}; "
                f"it has: {names_text}"
            )
        try:
            return function(*arguments, **keywords)
        except TypeError:
            # Arguments are bound only after a TypeError: binding costs as much as many of these functions do.
            _check_call(signature, name, arguments, keywords, hidden)
            raise

    return call


def _check_call(
    signature: inspect.Signature, name: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any], hidden: str
) -> None:
    """Raise WrongCall, which shows the signature, if arguments are missing or too many.

    ``name`` is the function's name in the message, ``hidden`` a parameter that the message omits.
    """
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        given_arguments = signature.bind_partial(**keywords).arguments
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        positional_names = [parameter.name for parameter in signature.parameters.values() if parameter.kind in kinds]
        given_arguments |= dict(zip(positional_names, arguments, strict=False))
        required_names = [
            parameter.name for parameter in signature.parameters.values() if parameter.default is parameter.empty
        ]
        missing_names = [
            name for name in required_names if name not in given_arguments and signature.parameters[name].kind in kinds
        ]
        plural = "s" if len(missing_names) > 1 else ""
        fault = (
            f"lacks the argument{plural} {' and '.join(missing_names)}"
            if missing_names
            else f"was called with wrong arguments ({error})"
        )
        parameters_text = ", ".join(
            _format_without_type(parameter) for parameter in signature.parameters.values() if parameter.name != hidden
        )
        raise WrongCall(f"{name} {fault}; it is called as {name}({parameters_text})") from None


def _format_without_type(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(annotation=inspect.Parameter.empty))


def signature_of(parameters: Iterable[Any]) -> inspect.Signature:
    """Return the signature of a function with a keyword-only argument for each of these `Parameter` objects."""
    return inspect.Signature([_make_keyword(parameter) for parameter in parameters])


def signature_with(function: Callable[..., Any], tables: Iterable[Iterable[Any]]) -> inspect.Signature:
    """Return the signature of the method ``function``, extended by a keyword for each parameter in ``tables``.

    A table is a sequence of `Parameter`. The method accepts such keywords through its ``**`` argument; a call may use
    those of a single table. The result omits ``self``. A default that differs between tables is shown as ``...``.
    """
    _, *own_parameters = inspect.signature(function).parameters.values()
    from_tables: dict[str, inspect.Parameter] = {}
    for parameter in (_make_keyword(entry) for table in tables for entry in table):
        if parameter.default != from_tables.setdefault(parameter.name, parameter).default:
            from_tables[parameter.name] = parameter.replace(default=...)
    var_keywords = [parameter for parameter in own_parameters if parameter.kind is inspect.Parameter.VAR_KEYWORD]
    return inspect.Signature(
        [
            *(parameter for parameter in own_parameters if parameter not in var_keywords),
            *from_tables.values(),
            *var_keywords,
        ]
    )


def _make_keyword(parameter: Any) -> inspect.Parameter:
    choices = parameter.minimum
    kind = Literal[choices] if isinstance(choices, tuple) else type(parameter.default)
    name, default = parameter.name, parameter.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def defaults_of(function: Callable[..., Any]) -> tuple[dict[str, Any], list[str]]:
    """Return ({argument: default}, names of the required arguments) of a function.

    Arguments with defaults of other types than number, text or boolean are left out.
    """
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # for example a function written in C
        return {}, []
    named_parameters = [
        argument for argument in arguments if argument.kind in (argument.POSITIONAL_OR_KEYWORD, argument.KEYWORD_ONLY)
    ]
    defaults = {
        argument.name: argument.default
        for argument in named_parameters
        if isinstance(argument.default, (bool, int, float, str))
    }
    return defaults, [argument.name for argument in named_parameters if argument.default is argument.empty]


def documentation(
    text: str, parameters: Iterable[Any], title: str = "Parameters", types: Mapping[str, str] | None = None
) -> str:
    """Return the docstring ``text`` with an additional section on ``parameters``, under the heading ``title``.

    The section lists the type, default, range, unit and meaning of each parameter. ``types`` is {name: type} for
    parameters whose type differs from that of the default.
    """
    types = types or {}
    lines = [
        line
        for parameter in parameters
        for line in _describe_parameter(parameter, types.get(parameter.name, type(parameter.default).__name__))
    ]
    section_lines = [title, "-" * len(title), *lines] if lines else []
    return "\n".join([*([inspect.cleandoc(text), ""] if text else []), *section_lines]).rstrip()


def sections(text: str, tables: Mapping[str, Iterable[Any]]) -> str:
    """Return the docstring ``text`` with an additional section for each of ``tables``, {heading: parameters}."""
    return "\n\n".join([inspect.cleandoc(text), *(documentation("", table, name) for name, table in tables.items())])


def _describe_parameter(parameter: Any, kind: str) -> tuple[str, str]:
    name, default, minimum, maximum, unit, reason = parameter
    if isinstance(minimum, tuple):
        range_text = f"one of {', '.join(map(repr, minimum))}"
    elif minimum is None:
        range_text = "" if maximum is None else f"up to {maximum}"
    else:
        range_text = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"
    description = "; ".join(part for part in (f"{range_text} {unit}".strip(), reason) if part)
    return f"{name} : {kind}, default {default!r}", f"    {description}"

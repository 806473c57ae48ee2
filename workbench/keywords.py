"""What a call of something public looks like: its signature, its documentation, and the answer to a wrong name.

    checked(made)                      a function or class that answers an unknown name with the one that was meant
    answer_for(module)                 the same for the names of a module
    hand_out(module, homes)            have a package load its public names when they are used; former(owner, name)
                                       finds those that have moved
    defaults_of(function)              its arguments: defaults by name, and the names of required ones
    signature_of(parameters)           of a table of parameters, as ``inspect.signature`` shows it
    documentation(text, parameters)    a docstring with the table as its section "Parameters"
    signature_with, sections           the same of a call that takes one of several tables besides its own keywords

Notebooks and editors complete keywords from signatures. A table is a sequence of `protocols.parameter.Parameter`.
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

Made = TypeVar("Made", bound=Callable[..., Any])


class UnknownName(WorkbenchError, AttributeError):
    """A name that something does not have; the AttributeError that look-ups raise."""

    def __init__(self, owner: str, name: str, known: Iterable[str]) -> None:
        public = [one for one in known if not one.startswith("_")]
        super().__init__(f"{owner} has no attribute {name!r}{meant(name, public)}")
        self.name = name  # and no obj: else Python adds a suggestion of its own, which not all notebooks show
        self._made_of = (owner, name, public)

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker's errors are pickled, and made again from what an exception was given: its message, by default.
        return UnknownName, self._made_of


class WrongCall(ParameterError, TypeError):
    """A call with missing arguments, or with too many; the TypeError that calls raise."""


def checked(made: Made) -> Made:
    """The same function that raises ParameterError for a keyword that it does not have, and for missing arguments.

    Of a class: the constructor and all public methods do; and what its objects do not have is an `UnknownName`.
    """
    if not isinstance(made, type):
        return _checked(made, made.__name__)
    constructor = made.__init__  # type: ignore[misc]
    if constructor is not object.__init__:  # A named tuple is made by __new__, and object's refuses its arguments.
        made.__init__ = _checked(constructor, made.__name__)  # type: ignore[misc]
    for name, function in list(vars(made).items()):
        if isinstance(function, FunctionType) and not name.startswith("_"):
            setattr(made, name, _checked(function, f"{made.__name__}.{name}"))
    if not hasattr(made, "__getattr__"):
        made.__getattr__ = refuse_unknown  # type: ignore[attr-defined]
    return made


def refuse_unknown(self: Any, name: str) -> Any:
    """Raise `UnknownName`: the ``__getattr__`` of a class."""
    # Only called when ordinary look-up fails, which a property of this name may have caused: then it fails once more.
    if name.startswith("_") or hasattr(type(self), name):
        return object.__getattribute__(self, name)
    owner = type(self).__name__
    if name in RENAMED.get(owner, ()):
        return getattr(self, new_name(owner, name, stacklevel=2))
    raise UnknownName(owner, name, dir(self))


def answer_for(module: str) -> None:
    """Have a module answer an unknown name with the one that was meant. Its own ``__getattr__`` comes first.

    ``dir`` of a module with ``__all__`` lists that, unless the module has a ``__dir__`` of its own.
    """
    owner = sys.modules[module]
    load = vars(owner).get("__getattr__")
    if "__all__" in vars(owner):
        vars(owner).setdefault("__dir__", lambda: sorted(owner.__all__))

    def answer(name: str) -> Any:
        if load is not None:
            try:
                return load(name)
            except AttributeError:
                if name in dir(owner):  # what it has, and could not load
                    raise
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if name in RENAMED.get(module, ()):
            return getattr(owner, new_name(module, name, stacklevel=2))
        raise UnknownName(f"module {module!r}", name, dir(owner))

    # Not a class of modules of our own: cloudpickle, which sends functions to workers, knows Python's alone.
    vars(owner)["__getattr__"] = answer


def imported_names(package: str) -> list[str]:
    """Return the public names of a package that imports each of them from one of its modules, in order."""
    names = {name: value for name, value in vars(sys.modules[package]).items() if not name.startswith("_")}
    return sorted(
        name
        for name, value in names.items()
        if not isinstance(value, ModuleType) and getattr(value, "__module__", "") != __name__
    )


def checked_method(method: Any, name: str) -> Any:
    """The same for a function that is a method by this name of a class in another module.

    Its first parameter is the object, and is hidden as ``self`` is.
    """
    return _checked(method, name, next(iter(inspect.signature(method).parameters)))


def hand_out(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Have a package load its public names when they are used; ``dir`` lists them and those of ``__all__`` alone.

    ``homes``: public name -> the module of the package that has it; a module's name -> itself. Other modules of the
    package are loaded by their names too, but not listed. Functions are `checked`. Returns the ``__getattr__``.
    """
    owner = sys.modules[package]
    further = vars(owner).get("__getattr__")
    public = sorted({*homes, *vars(owner).get("__all__", ())})
    vars(owner)["__all__"] = public

    def load(name: str) -> Any:
        home = homes.get(name, name)
        if name not in homes and (name.startswith("_") or find_spec(f"{package}.{name}") is None):
            if further is not None:
                return further(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home}")
        value = module if home == name else getattr(module, name)
        vars(owner)[name] = value = checked(value) if isinstance(value, FunctionType) else value
        return value

    vars(owner)["__getattr__"] = load
    answer_for(package)
    return vars(owner)["__getattr__"]


def new_name(owner: str, name: str, stacklevel: int) -> str:
    """Return the present name of a renamed attribute or parameter (`RENAMED`), with a DeprecationWarning.

    ``stacklevel`` is the number of calls between the caller's source line and this function, as for `warnings.warn`.
    """
    new = RENAMED[owner][name]
    warnings.warn(f"{owner}: {name} is now {new}", DeprecationWarning, stacklevel=stacklevel + 1)
    return new


def former(owner: str, name: str, stacklevel: int) -> Any:
    """Return what a former name of a module means, with a warning; raise AttributeError for a name that it never had.

    ``stacklevel``: how many calls above this one the name is written, as for `warnings.warn`.
    """
    home = next((home for home, names in FORMER[owner].items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {owner!r} has no attribute {name!r}")
    home = home if home.startswith("notebooks") else f"workbench.{home}"
    shown = f"{home.replace('.protocols.', '.')}.{name}"
    warnings.warn(f"{owner}.{name} is now {shown}", DeprecationWarning, stacklevel=stacklevel + 1)
    try:
        module = import_module(home)
        return getattr(module, name, None) or import_module(f"{module.__name__}.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(f"{owner}.{name} has moved to {home.replace('.', '/')} of the source tree") from error


def _checked(function: Any, name: str, hidden: str = "self") -> Any:
    signature = inspect.signature(function)
    parameters = signature.parameters
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    known = tuple(one for one in parameters if one != hidden)
    among = frozenset(known).issuperset
    renamed = RENAMED.get(name, {})

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if renamed and not renamed.keys().isdisjoint(keywords):
            keywords = {new_name(name, key, 2) if key in renamed else key: keywords[key] for key in keywords}
        if not takes_any and not among(keywords):
            wrong = next(one for one in keywords if one not in known)
            listed = ", ".join(known) or "none"
            raise ParameterError(f"{name} has no parameter {wrong!r}{meant(wrong, known)}; it has: {listed}")
        try:
            return function(*arguments, **keywords)
        except TypeError:
            # Only where the call itself is wrong: binding costs as much as many of these functions do.
            _check_call(signature, name, arguments, keywords, hidden)
            raise

    return call


def _check_call(
    signature: inspect.Signature, name: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any], hidden: str
) -> None:
    """Raise WrongCall, with what the call looks like, if arguments are missing, or if there are too many."""
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        given = signature.bind_partial(**keywords).arguments
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        places = [one.name for one in signature.parameters.values() if one.kind in kinds]
        given |= dict(zip(places, arguments, strict=False))
        required = [one.name for one in signature.parameters.values() if one.default is one.empty]
        missing = [one for one in required if one not in given and signature.parameters[one].kind in kinds]
        fault = f"lacks {' and '.join(missing)}" if missing else f"cannot be called so ({error})"
        shown = ", ".join(_shown(one) for one in signature.parameters.values() if one.name != hidden)
        raise WrongCall(f"{name} {fault}; it is called as {name}({shown})") from None


def _shown(parameter: inspect.Parameter) -> str:
    """A parameter as in a call, without its type."""
    return str(parameter.replace(annotation=inspect.Parameter.empty))


def signature_of(parameters: Iterable[Any]) -> inspect.Signature:
    """The signature of a call that has a table's parameters as keywords."""
    return inspect.Signature([_keyword(parameter) for parameter in parameters])


def signature_with(function: Callable[..., Any], tables: Iterable[Iterable[Any]]) -> inspect.Signature:
    """The signature of a method whose further keywords are those of one of several tables; without ``self``.

    A default in which the tables differ is shown as ``...``.
    """
    _, *own = inspect.signature(function).parameters.values()
    further: dict[str, inspect.Parameter] = {}
    for one in (_keyword(parameter) for table in tables for parameter in table):
        if one.default != further.setdefault(one.name, one).default:
            further[one.name] = one.replace(default=...)
    rest = [one for one in own if one.kind is inspect.Parameter.VAR_KEYWORD]
    return inspect.Signature([*(one for one in own if one not in rest), *further.values(), *rest])


def _keyword(parameter: Any) -> inspect.Parameter:
    choices = parameter.minimum
    kind = Literal[choices] if isinstance(choices, tuple) else type(parameter.default)
    name, default = parameter.name, parameter.default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def defaults_of(function: Callable[..., Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the plain defaults of a function's arguments by name, and the names of arguments that it requires."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C, say
        return {}, []
    named = [one for one in arguments if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    defaults = {one.name: one.default for one in named if isinstance(one.default, (bool, int, float, str))}
    return defaults, [one.name for one in named if one.default is one.empty]


def documentation(
    text: str, parameters: Iterable[Any], title: str = "Parameters", types: Mapping[str, str] | None = None
) -> str:
    """A docstring and, below it, a section on a table: type, default, range, unit and reason of each parameter.

    ``types``: what a parameter may be, where the type of its default does not show that.
    """
    types = types or {}
    lines = [line for one in parameters for line in _told(one, types.get(one.name, type(one.default).__name__))]
    section = [title, "-" * len(title), *lines] if lines else []
    return "\n".join([*([inspect.cleandoc(text), ""] if text else []), *section]).rstrip()


def sections(text: str, tables: Mapping[str, Iterable[Any]]) -> str:
    """A docstring and, below it, a section for each of several tables: what a call by that name takes besides."""
    return "\n\n".join([inspect.cleandoc(text), *(documentation("", table, name) for name, table in tables.items())])


def _told(parameter: Any, kind: str) -> tuple[str, str]:
    name, default, minimum, maximum, unit, reason = parameter
    if isinstance(minimum, tuple):
        limits = f"one of {', '.join(map(repr, minimum))}"
    elif minimum is None:
        limits = "" if maximum is None else f"up to {maximum}"
    else:
        limits = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"
    told = "; ".join(part for part in (f"{limits} {unit}".strip(), reason) if part)
    return f"{name} : {kind}, default {default!r}", f"    {told}"

"""What a call of something public looks like: its signature, its documentation, and the answer to a wrong keyword.

    checked(made)                      a function or class that answers an unknown keyword with the name that was meant
    signature_of(parameters)           of a table of parameters, as ``inspect.signature`` shows it
    documentation(text, parameters)    a docstring with the table as its section "Parameters"
    signature_with, sections           the same of a call that takes one of several tables besides its own keywords

Notebooks and editors complete keywords from signatures. A table is a sequence of `protocols.parameter.Parameter`.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, Literal, TypeVar

from workbench.errors import ParameterError
from workbench.suggestion import meant

Made = TypeVar("Made", bound=Callable[..., Any])


def checked(made: Made) -> Made:
    """The same function, or class, that raises ParameterError for a keyword that it does not have."""
    if isinstance(made, type):
        made.__init__ = _checked(made.__init__, made.__name__)  # type: ignore[misc]
        return made
    return _checked(made, made.__name__)


def _checked(function: Any, name: str) -> Any:
    known = tuple(one for one in inspect.signature(function).parameters if one != "self")
    among = frozenset(known).issuperset

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if not among(keywords):
            wrong = next(one for one in keywords if one not in known)
            listed = ", ".join(known)
            raise ParameterError(f"{name} has no parameter {wrong!r}{meant(wrong, known)}; it has: {listed}")
        return function(*arguments, **keywords)

    return call


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


def documentation(text: str, parameters: Iterable[Any], title: str = "Parameters") -> str:
    """A docstring and, below it, a section on a table: type, default, range, unit and reason of each parameter."""
    lines = [line for parameter in parameters for line in _told(parameter)]
    section = [title, "-" * len(title), *lines] if lines else []
    return "\n".join([*([inspect.cleandoc(text), ""] if text else []), *section]).rstrip()


def sections(text: str, tables: Mapping[str, Iterable[Any]]) -> str:
    """A docstring and, below it, a section for each of several tables: what a call by that name takes besides."""
    return "\n\n".join([inspect.cleandoc(text), *(documentation("", table, name) for name, table in tables.items())])


def _told(parameter: Any) -> tuple[str, str]:
    name, default, minimum, maximum, unit, reason = parameter
    if isinstance(minimum, tuple):
        limits = f"one of {', '.join(map(repr, minimum))}"
    elif minimum is None:
        limits = "" if maximum is None else f"up to {maximum}"
    else:
        limits = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"
    told = "; ".join(part for part in (f"{limits} {unit}".strip(), reason) if part)
    return f"{name} : {type(default).__name__}, default {default!r}", f"    {told}"

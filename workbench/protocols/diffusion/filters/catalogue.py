"""A catalogue of all filters for forms, and a hook that observes the decisions of a node's filters.

A mote never loads this file.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from workbench.keywords import defaults_of
from workbench.protocols.diffusion.filters.built_in import BUILT_IN, registered
from workbench.protocols.diffusion.filters.value import Filter, register_plugins
from workbench.protocols.parameter import Parameter


class Kind(NamedTuple):
    """A filter that a user can choose in a form.

    summary            one sentence about what it does
    initial_settings   required settings, with initial values
    missing_settings   required settings without an initial value
    """

    name: str
    parameters: tuple[Parameter, ...]
    summary: str
    initial_settings: dict[str, Any]
    missing_settings: tuple[str, ...]


def kinds() -> tuple[Kind, ...]:
    """Return the built-in filters, then those of plug-ins and those that the user has registered."""
    register_plugins()
    built_in = (_built_in_kind(name, cls) for name, cls in BUILT_IN.items())
    return (*built_in, *(_own_kind(name, code) for name, code in registered.items()))


def _built_in_kind(name: str, cls: Any) -> Kind:
    """Return a built-in filter's Kind; a parameter that names a user's function is a choice among these functions."""
    function_parameters = [parameter.name for parameter in cls.parameters if parameter.unit == "name"]
    functions = tuple(registered)
    if not function_parameters or not functions:
        return Kind(name, cls.parameters, _summary(cls), {}, tuple(function_parameters))
    choice = {"minimum": functions, "default": functions[0]}
    table = tuple(
        parameter._replace(**choice) if parameter.name in function_parameters else parameter
        for parameter in cls.parameters
    )
    return Kind(name, table, _summary(cls), dict.fromkeys(function_parameters, functions[0]), ())


def _own_kind(name: str, code: Any) -> Kind:
    summary = _summary(code) or "registered by you"
    if not hasattr(code, "decide"):
        return Kind(name, (), summary, {}, ())
    defaults, missing = defaults_of(code)
    table = tuple(Parameter(*default, None, None, "", "your default") for default in defaults.items())
    return Kind(name, table, summary, {}, tuple(missing))


def _summary(code: Any) -> str:
    """Return the first line of the docstring; "" without a docstring."""
    docstring = inspect.cleandoc(code.__doc__) if isinstance(code.__doc__, str) else ""
    return docstring.partition("\n")[0].replace("``", "")


def make(values: dict[str, Any]) -> Filter:
    """Return the filter of plain values, as `Filter.to_dict` returns them.

    Raises ParameterError or AttributeFormatError for invalid values.
    """
    return Filter.from_dict(values)


def watch(node: Any, observe: Callable[..., Any]) -> None:
    """Call ``observe`` for each further decision of the node's filters, including those to pass a message.

    Its arguments are (now, node, messages, origin, sequence, filter's key, decision, attributes before and after).
    """
    filters = node.filters
    if filters is None:
        return
    report = filters.report

    def report_and_observe(filter_, decision, origin, sequence, now, before, after):
        report(filter_, decision, origin, sequence, now, before, after)
        observe(now, node.address, filter_.messages, origin, sequence, filter_.key, decision, before, after)

    filters.report = report_and_observe

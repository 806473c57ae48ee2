"""A catalogue of all filters, from which input forms are built, and a hook to observe a node's filter decisions.

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
    """A kind of filter that a user can choose in a form, and the parameters that the form shows.

    summary            one sentence about the filter
    initial_settings   {name: initial value} of the required settings that have an initial value
    missing_settings   names of the required settings without an initial value
    """

    name: str
    parameters: tuple[Parameter, ...]
    summary: str
    initial_settings: dict[str, Any]
    missing_settings: tuple[str, ...]


def kinds() -> tuple[Kind, ...]:
    """Return the Kind of each built-in filter, then of all filters of plug-ins and filters registered by the user."""
    register_plugins()
    built_in = (_built_in_kind(name, cls) for name, cls in BUILT_IN.items())
    return (*built_in, *(_registered_kind(name, code) for name, code in registered.items()))


def _built_in_kind(name: str, cls: Any) -> Kind:
    """Return the Kind of a built-in filter.

    The allowed values of a parameter that names a user's function are the names of all registered functions.
    """
    function_parameters = [parameter.name for parameter in cls.parameters if parameter.unit == "name"]
    functions = tuple(registered)
    if not function_parameters or not functions:
        return Kind(name, cls.parameters, _summary(cls), {}, tuple(function_parameters))
    choice = {"minimum": functions, "default": functions[0]}
    parameters = tuple(
        parameter._replace(**choice) if parameter.name in function_parameters else parameter
        for parameter in cls.parameters
    )
    return Kind(name, parameters, _summary(cls), dict.fromkeys(function_parameters, functions[0]), ())


def _registered_kind(name: str, code: Any) -> Kind:
    summary = _summary(code) or "registered by you"
    if not hasattr(code, "decide"):
        return Kind(name, (), summary, {}, ())
    defaults, missing_settings = defaults_of(code)
    parameters = tuple(Parameter(*default, None, None, "", "your default") for default in defaults.items())
    return Kind(name, parameters, summary, {}, tuple(missing_settings))


def _summary(code: Any) -> str:
    """Return the first line of the docstring of ``code``, a function or class; "" without a docstring."""
    docstring = inspect.cleandoc(code.__doc__) if isinstance(code.__doc__, str) else ""
    return docstring.partition("\n")[0].replace("``", "")


def make(values: dict[str, Any]) -> Filter:
    """Return the Filter that ``values`` describes, {name: plain value} in the format of `Filter.to_dict`.

    Raises ParameterError or AttributeFormatError for invalid values.
    """
    return Filter.from_dict(values)


def watch(node: Any, observe: Callable[..., Any]) -> None:
    """Call ``observe`` for each decision of the node's filters from now on, including decisions to pass a message.

    The arguments of ``observe`` are: now (µs), the node's address, "data" or "interest", origin and sequence number of
    the message, key of the filter, decision ("pass", "replace" or "drop"), attributes before and after the decision.
    """
    filters = node.filters
    if filters is None:
        return
    report = filters.report

    def report_and_observe(filter_, decision, origin, sequence, now, before, after):
        report(filter_, decision, origin, sequence, now, before, after)
        observe(now, node.address, filter_.messages, origin, sequence, filter_.key, decision, before, after)

    filters.report = report_and_observe

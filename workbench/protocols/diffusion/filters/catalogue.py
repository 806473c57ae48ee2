"""Which filters there are, as a form needs to know them, and what they do while somebody watches.

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
    """A filter that can be picked.

    says    a sentence on what it does
    begins  settings that it always has to be given, and their values to begin with
    lacks   settings that it has to be given, and for which there is nothing to begin with
    """

    name: str
    parameters: tuple[Parameter, ...]
    says: str
    begins: dict[str, Any]
    lacks: tuple[str, ...]


def kinds() -> tuple[Kind, ...]:
    """The built-in filters, then those of plug-ins and those that the user has registered."""
    register_plugins()
    built_in = (_built_in_kind(name, cls) for name, cls in BUILT_IN.items())
    return (*built_in, *(_own_kind(name, code) for name, code in registered.items()))


def _built_in_kind(name: str, cls: Any) -> Kind:
    """A parameter that names one of the user's functions is a choice among them."""
    named = [one.name for one in cls.parameters if one.unit == "name"]
    functions = tuple(registered)
    if not named or not functions:
        return Kind(name, cls.parameters, _says(cls), {}, tuple(named))
    choice = {"minimum": functions, "default": functions[0]}
    table = tuple(one._replace(**choice) if one.name in named else one for one in cls.parameters)
    return Kind(name, table, _says(cls), dict.fromkeys(named, functions[0]), ())


def _own_kind(name: str, code: Any) -> Kind:
    says = _says(code) or "registered by you"
    if not hasattr(code, "decide"):
        return Kind(name, (), says, {}, ())
    defaults, lacks = defaults_of(code)
    table = tuple(Parameter(*one, None, None, "", "your default") for one in defaults.items())
    return Kind(name, table, says, {}, tuple(lacks))


def _says(code: Any) -> str:
    """The first line of what it says of itself; "" for a function without a docstring."""
    said = inspect.cleandoc(code.__doc__) if isinstance(code.__doc__, str) else ""
    return said.partition("\n")[0].replace("``", "")


def make(values: dict[str, Any]) -> Filter:
    """The filter of plain values, as its `to_dict` has them; ParameterError or AttributeFormatError for wrong ones."""
    return Filter.from_dict(values)


def watch(node: Any, tell: Callable[..., Any]) -> None:
    """From now on hand each decision of the node's filters, those to pass a message too, to ``tell``.

    It is called with (now, node, messages, origin, sequence, filter's key, answer, attributes before and after).
    """
    filters = node.filters
    if filters is None:
        return
    report = filters.tell

    def watched(one, answer, origin, sequence, now, before, after):
        report(one, answer, origin, sequence, now, before, after)
        tell(now, node.address, one.messages, origin, sequence, one.key, answer, before, after)

    filters.tell = watched

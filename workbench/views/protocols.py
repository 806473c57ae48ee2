"""The additions of a protocol to the views: its own layers, the colours of its messages, and its quiet messages.

The views of a protocol whose class is in the package ``NAME`` are in the package ``NAME.views``:

    MESSAGE_COLOURS   name of a message in the trace -> colour: a colour of `palette`, or another one
    QUIET_MESSAGES    names of messages that are drawn faintly and have their own button, such as acknowledgements
    NODE_DRAWING      (module, function) of the package: ``function(run, node, time_s)`` draws the state of one node
    layers.py         a function ``layers(recorded)`` that returns the protocol's own layers (see `layers`)

A class outside of such a package has attributes instead: ``message_colours = {"probe": palette.INTEREST}``,
``quiet_messages = ("ack",)`` and a static method ``layers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.views.layers import Part, Recorded


def message_colours(protocol: Any) -> dict[str, str]:
    """Return {name of a message: colour} for a protocol. Entries of a subclass override those of its base classes."""
    colours: dict[str, str] = {}
    for cls in reversed(type(protocol).__mro__):
        colours.update(getattr(_import_views(cls.__module__), "MESSAGE_COLOURS", {}))
        colours.update(vars(cls).get("message_colours", {}))
    return colours


def quiet_messages(protocol: Any) -> frozenset[str]:
    """Return the names of the messages that are drawn faintly."""
    quiet: set[str] = set()
    for cls in type(protocol).__mro__:
        quiet.update(getattr(_import_views(cls.__module__), "QUIET_MESSAGES", ()))
        quiet.update(vars(cls).get("quiet_messages", ()))
    return frozenset(quiet)


def layers_of(protocol: Any) -> Callable[[Recorded], Iterable[Part]]:
    """Return the function ``layers`` of a protocol, which computes the layers that only this protocol has.

    The function is that of the protocol's class, or else of the nearest base class with such a function. If no class
    has one, the result is a function that returns ().
    """
    for cls in type(protocol).__mro__:
        if "layers" in vars(cls):
            return cls.layers  # type: ignore[attr-defined]
        views = _import_views(cls.__module__)
        if views is not None and find_spec(f"{views.__name__}.layers") is not None:
            return import_module(f"{views.__name__}.layers").layers
    return lambda recorded: ()


def node_drawing_of(protocol: Any) -> Callable[[Any, int, float | None], Any] | None:
    """Return the protocol's function that draws a node's state, or None if the protocol lacks such a function.

    The function is called as ``function(run, node, time_s)``.
    """
    for cls in type(protocol).__mro__:
        views = _import_views(cls.__module__)
        if views is not None and hasattr(views, "NODE_DRAWING"):
            module, function = views.NODE_DRAWING
            return getattr(import_module(f"{views.__name__}.{module}"), function)
    return None


def _import_views(home: str) -> ModuleType | None:
    """Return the package ``views`` inside the package whose name is ``home``, or None if it does not exist."""
    try:
        spec = find_spec(f"{home}.views")
    except ModuleNotFoundError:
        return None
    return import_module(spec.name) if spec is not None else None

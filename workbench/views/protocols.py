"""What protocols bring to the views, found by name: their layers, and how their messages look.

A protocol whose class is in the package ``NAME`` has its views in the package ``NAME.views``, with

    MESSAGE_COLOURS   name of a message in the trace -> colour: that of a role in `palette`, or one of its own
    QUIET_MESSAGES    names of messages that are drawn faintly, and have a chip of their own: acknowledgements
    layers.py         ``layers(recorded)``: what the player shows of it, besides what it shows of every run (`layers`)

A class that is not in a package of its own says these itself: ``message_colours = {"probe": palette.INTEREST}``,
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
    """Name of a message -> colour, as the protocol says it, and before it the protocols that it derives from."""
    colours: dict[str, str] = {}
    for cls in reversed(type(protocol).__mro__):
        colours.update(getattr(_views_of(cls.__module__), "MESSAGE_COLOURS", {}))
        colours.update(vars(cls).get("message_colours", {}))
    return colours


def quiet_messages(protocol: Any) -> frozenset[str]:
    """The names of the messages that are drawn faintly."""
    quiet: set[str] = set()
    for cls in type(protocol).__mro__:
        quiet.update(getattr(_views_of(cls.__module__), "QUIET_MESSAGES", ()))
        quiet.update(vars(cls).get("quiet_messages", ()))
    return frozenset(quiet)


def layers_of(protocol: Any) -> Callable[[Recorded], Iterable[Part]]:
    """What a protocol shows of a run, or else the nearest protocol that it derives from."""
    for cls in type(protocol).__mro__:
        if "layers" in vars(cls):
            return cls.layers  # type: ignore[attr-defined]
        views = _views_of(cls.__module__)
        if views is not None and find_spec(f"{views.__name__}.layers") is not None:
            return import_module(f"{views.__name__}.layers").layers
    return lambda recorded: ()


def _views_of(home: str) -> ModuleType | None:
    """The views of a package; None for a module that is no package, and for a package without views."""
    try:
        spec = find_spec(f"{home}.views")
    except ModuleNotFoundError:
        return None
    return import_module(spec.name) if spec is not None else None

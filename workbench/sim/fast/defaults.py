"""What a twin without timers, pools and texts of its own takes from here: what it has to have and does not need.

A twin imports them under their names; which functions there are, and what each is for, says the package's page.
"""

from __future__ import annotations

from typing import Any

from workbench.sim.fast.reference import inlined


@inlined
def has_room(core, state):
    """What nodes remember is made beforehand: an event cannot run out of it."""
    return True


def with_more_room(state: Any) -> Any:
    """Never asked for where there is room always."""
    return state


def text(setup: Any, state: Any, number: int) -> str:
    """All texts are those of the workload."""
    raise IndexError(number)


@inlined
def start(core, state, i, now):
    """Nothing to begin with."""


@inlined
def subscribe(core, state, i, what, now):
    """Subscriptions are never sent."""


@inlined
def unsubscribe(core, state, i, what, now):
    """Nobody else knows of it."""


@inlined
def wake(core, state, i, now):
    """No timers."""

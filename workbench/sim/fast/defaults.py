"""What a twin has that says nothing else: no timers, no pools that run out, no texts, no word of subscriptions.

Which functions there are, and what each is for, says the package's page; `of` finds a twin's.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from workbench.sim.fast.compiled import compiled

WAKES = False
COUNTS_HOLDERS = True
sent = None  # outcomes of unicasts are ignored, at no cost


def of(twin: ModuleType, name: str) -> Any:
    """What a twin has under a name, or else what stands here under it."""
    return getattr(twin, name) if hasattr(twin, name) else globals()[name]


@compiled
def has_room(core, state):
    """What nodes remember is made beforehand: an event cannot run out of it."""
    return True


def with_more_room(state: Any) -> Any:
    """Never asked for where there is room always."""
    return state


def text(setup: Any, state: Any, number: int) -> str:
    """All texts are those of the workload."""
    raise IndexError(number)


@compiled
def start(core, state, i, now):
    """Nothing to begin with."""


@compiled
def subscribe(core, state, i, what, now):
    """Subscriptions are never sent."""


@compiled
def unsubscribe(core, state, i, what, now):
    """Nobody else knows of it."""


@compiled
def wake(core, state, i, now):
    """No timers."""

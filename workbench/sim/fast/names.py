"""What the codes in a run's rows stand for: the engine's names, and after them those that the protocol's twin brings."""

from __future__ import annotations

from typing import Any, NamedTuple

from workbench.sim.fast.layout import EVENTS, REASONS


class Names(NamedTuple):
    """Names by code: of events, of messages (0 is ""), of reasons, which are the first details."""

    events: tuple[str, ...]
    messages: tuple[str, ...]
    reasons: tuple[str, ...]


def names_of(twin: Any) -> Names:
    """The names of the runs of a twin (a module); one without EVENTS or REASONS has none of its own."""
    return Names(EVENTS + getattr(twin, "EVENTS", ()), twin.MESSAGES, REASONS + getattr(twin, "REASONS", ()))

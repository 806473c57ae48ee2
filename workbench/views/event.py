"""One event of a run: which events there are, and the part of a trace that is about one of them.

An event is told by its origin and its number there.
"""

from __future__ import annotations

import numpy as np

from workbench.errors import ParameterError
from workbench.sim.rows import Columns

Event = tuple[int, int]


def events_of(columns: Columns) -> list[Event]:
    """The events of a trace, (origin, sequence), in the order in which they were made."""
    rows = columns.where(event="originated")
    return list(dict.fromkeys(columns.tuples(rows, "origin", "sequence")))


def chosen_event(columns: Columns, event: Event | None) -> Event:
    """The event, if the trace has it; the first one for None. ParameterError if there is no such event."""
    known = events_of(columns)
    if event is None and known:
        return known[0]
    if event is None or tuple(event) not in known:
        here = ", ".join(map(str, known[:5])) or "none"
        raise ParameterError(f"there is no event {event!r} in this run; an event is (origin, sequence), here: {here}")
    return int(event[0]), int(event[1])


def of_event(columns: Columns, event: Event | None) -> Columns:
    """The rows about one event, and those about none (failures, subscriptions); all rows for None."""
    if event is None:
        return columns
    origin, sequence = chosen_event(columns, event)
    is_about = (columns["origin"] == origin) & (columns["sequence"] == sequence)
    is_about[columns.where(message="")] = True
    # A reading has no event's number yet when it is published: only its node tells that it may be this one.
    published = columns.where(event="published")
    is_about[published] = columns["node"][published] == origin
    return columns.part(np.flatnonzero(is_about))

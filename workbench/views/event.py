"""Functions that list the events of a run, and select the rows of a trace that concern one event.

An event is identified by its origin (a node) and its sequence number there.
"""

from __future__ import annotations

import numpy as np

from workbench.errors import ParameterError
from workbench.sim.rows import Columns

Event = tuple[int, int]


def events_of(columns: Columns) -> list[Event]:
    """Return the events of a trace as (origin, sequence), in the order of their creation."""
    originated_rows = columns.where(event="originated")
    return list(dict.fromkeys(columns.tuples(originated_rows, "origin", "sequence")))


def chosen_event(columns: Columns, event: Event | None) -> Event:
    """Return the event as (origin, sequence), or the first event of the trace if ``event`` is None.

    Raises ParameterError if the trace does not have the event.
    """
    run_events = events_of(columns)
    if event is None and run_events:
        return run_events[0]
    if event is None or tuple(event) not in run_events:
        examples = ", ".join(map(str, run_events[:5])) or "none"
        raise ParameterError(
            f"the argument `event` is {event!r}, which this run does not have; "
            f"give one of its events as (origin, sequence): {examples}"
        )
    return int(event[0]), int(event[1])


def of_event(columns: Columns, event: Event | None) -> Columns:
    """Return only the rows of a trace that concern one event, or all rows if ``event`` is None.

    Rows that do not concern any event, such as failures and subscriptions, remain too. Of the rows "published", which
    have no sequence number, those of the event's origin remain.
    """
    if event is None:
        return columns
    origin, sequence = chosen_event(columns, event)
    is_of_event = (columns["origin"] == origin) & (columns["sequence"] == sequence)
    is_of_event[columns.where(message="")] = True
    # A published reading has no event number yet; only its node shows that it may belong to this event.
    published_rows = columns.where(event="published")
    is_of_event[published_rows] = columns["node"][published_rows] == origin
    return columns.part(np.flatnonzero(is_of_event))

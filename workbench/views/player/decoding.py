"""Decoding, replayed from a trace: which rank each node has of an event, and where its rows have their pivots.

    decoding_spans(columns, duration_us)    intervals of constant rank, of all events: what player and figures draw
    generation_sizes(columns)               event -> m
    of_event(trace, event)                  the part of a trace that is about one event
    progress(trace, event)                  how one event spread: ranks at a time, coverage at ages
    matrix_cells(m, pivots)                 what pivots tell of a decoding matrix

Theory of operation
    An ``innovative`` row says that a node's rank of an event is ``value`` and that the new row has its pivot in the
    column ``detail``. It closes the interval of the last rank and opens the next. ``held`` ends the decoding: the node
    has the event. So does the row that says when it was given up (``dropped``, "expired"), and then the node has
    nothing of it; a rank of 1 always begins anew.

Cost
    A step in Python for each innovative packet; rows of frames are never looked at.

Limits
    A trace tells pivots, not coefficients. A row in reduced echelon form is 1 at its pivot, 0 before it and 0 at all
    other pivots; what else is in it is not known. The generation size is told when somebody decodes; of an event that
    nobody decoded it is that of the others, and at least what its own pivots need.

Reference
    Rows and pivots are those of `workbench.coding.rlnc.Decoder`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from workbench.errors import ParameterError
from workbench.views.player.columns import Columns
from workbench.views.player.replay import Span

Event = tuple[int, int]


def generation_sizes(columns: Columns) -> dict[Event, int]:
    """m of each event of which an innovative packet came, by (origin, sequence)."""
    decoded, innovative = columns.where(event="decoded"), columns.where(event="innovative")
    told = dict(zip(_events(columns, decoded), columns["value"][decoded].tolist(), strict=True))
    usual = max(told.values(), default=1)
    least: dict[Event, int] = {}
    for event, pivot in zip(_events(columns, innovative), columns.text("detail", innovative).tolist(), strict=True):
        least[event] = max(least.get(event, usual), int(pivot) + 1)
    return {**least, **told}


def decoding_spans(columns: Columns, duration_us: int) -> list[Span]:
    """Intervals in which a node had the same rank of an event that it did not hold yet, each in order of its end.

    value: the rank; text: the columns of the pivots in ascending order, "0 3 4"; peer: who sent the last innovative
    packet; look: "decoding".
    """
    opened: dict[tuple[int, Event], Span] = {}
    closed: list[Span] = []

    def close(key: tuple[int, Event], time_us: int) -> Span | None:
        span = opened.pop(key, None)
        if span is not None and span.from_us < time_us:
            closed.append(span._replace(until_us=min(time_us, duration_us)))
        return span

    given_up = columns.where(event="dropped", detail="expired")
    rows = np.sort(np.concatenate([columns.where(event=("innovative", "held")), given_up]))
    numbers = [columns[name][rows].tolist() for name in ("time_us", "node", "peer", "value")]
    words = [columns.text(name, rows).tolist() for name in ("event", "detail")]
    for time_us, node, peer, rank, what, detail, event in zip(*numbers, *words, _events(columns, rows), strict=True):
        before = close((node, event), time_us)
        if what == "innovative" and time_us < duration_us:
            pivots = before.text.split() if before is not None and rank > 1 else []
            text = " ".join(sorted([*pivots, detail], key=int))
            opened[node, event] = Span(node, peer, event[0], event[1], time_us, duration_us, "decoding", rank, text)
    for key in list(opened):
        close(key, duration_us)
    return closed


def _events(columns: Columns, rows: np.ndarray) -> list[Event]:
    return list(zip(columns["origin"][rows].tolist(), columns["sequence"][rows].tolist(), strict=True))


# One event


def events_of(trace: pa.Table) -> list[Event]:
    """The events of a trace, (origin, sequence), in the order in which they were made."""
    columns = Columns(trace)
    return list(dict.fromkeys(_events(columns, columns.where(event="originated"))))


def chosen_event(trace: pa.Table, event: Event | None) -> Event:
    """The event, if the trace has it; the first one for None. ParameterError if there is no such event."""
    known = events_of(trace)
    if event is None and known:
        return known[0]
    if event is None or tuple(event) not in known:
        here = ", ".join(map(str, known[:5])) or "none"
        raise ParameterError(f"there is no event {event!r} in this run; an event is (origin, sequence), here: {here}")
    return int(event[0]), int(event[1])


def of_event(trace: pa.Table, event: Event | None) -> pa.Table:
    """The rows about one event, and those about none (failures, subscriptions); all rows for None."""
    if event is None:
        return trace
    origin, sequence = chosen_event(trace, event)
    columns = Columns(trace)
    chosen = (columns["origin"] == origin) & (columns["sequence"] == sequence)
    chosen[columns.where(message="")] = True
    # A reading has no event's number yet when it is published: only its node tells that it may be this one.
    published = columns.where(event="published")
    chosen[published] = columns["node"][published] == origin
    return trace.filter(pa.array(chosen))


@dataclass(frozen=True)
class Progress:
    """How one event spread.

    event: (origin, sequence); generation_size: m, 0 if no innovative packet ever came; made_us: when it was made;
    held_us: node -> when it first held the event; spans: its decoding intervals.
    """

    event: Event
    generation_size: int
    made_us: int
    held_us: dict[int, int]
    spans: tuple[Span, ...]

    def at(self, time_us: int) -> dict[int, Span]:
        """node -> its decoding interval at a time, for the nodes that had packets but not the event."""
        return {span.node: span for span in self.spans if span.from_us <= time_us < span.until_us}

    def holders(self, time_us: int) -> set[int]:
        """The nodes that held the event at a time."""
        return {node for node, since_us in self.held_us.items() if since_us <= time_us}

    def coverage(self, nodes: int, ages_s: Sequence[float]) -> np.ndarray:
        """The share of ``nodes`` nodes that hold the event at times after it was made, of shape (len(ages_s),)."""
        times_us = self.made_us + np.asarray(ages_s, dtype=float) * 1e6
        ordered = np.sort(np.array(list(self.held_us.values()), dtype=np.int64))
        return np.searchsorted(ordered, times_us, "right") / nodes


def progress(trace: pa.Table, event: Event | None = None) -> Progress:
    """How an event (None: the first one) spread. ParameterError if the trace has no such event."""
    event = chosen_event(trace, event)
    columns = Columns(of_event(trace, event))
    last_us = int(columns["time_us"].max()) + 1
    made = columns.where(event="originated")
    held_us = _first(columns, columns.where(event="held"))
    size = generation_sizes(Columns(trace)).get(event, 0)
    spans = tuple(span for span in decoding_spans(columns, last_us) if (span.origin, span.sequence) == event)
    # Who never decoded stays as it was, however long one waits.
    spans = tuple(span._replace(until_us=1 << 62) if span.until_us == last_us else span for span in spans)
    return Progress(event, size, int(columns["time_us"][made[0]]), held_us, spans)


def _first(columns: Columns, rows: np.ndarray) -> dict[int, int]:
    nodes, first = np.unique(columns["node"][rows], return_index=True)
    return dict(zip(nodes.tolist(), columns["time_us"][rows[first]].tolist(), strict=True))


def matrix_cells(generation_size: int, pivots: Sequence[int]) -> list[list[str]]:
    """What pivots tell of a matrix in reduced row echelon form: for each row its cells, "1", "0" or "" (unknown)."""
    others = set(pivots)
    return [
        [
            "1" if column == pivot else "0" if column < pivot or column in others else ""
            for column in range(generation_size)
        ]
        for pivot in sorted(pivots)
    ]

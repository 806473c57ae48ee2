"""What a trace tells, row after row: slow, plain, and what the layers' arrays are compared with.

    replay(columns, duration_us)    -> kind -> list of Span

Theory of operation
    The rows that change a node's state are few, and each opens or closes an interval, so one pass over them in order
    is enough.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from workbench.sim.rows import Columns

Event = tuple[int, int]
FOREVER_US = 1 << 62


class Span(NamedTuple):
    """Something that held at a node during [from_us, until_us): a row of an intervals table."""

    node: int
    peer: int
    origin: int
    sequence: int
    from_us: int
    until_us: int
    look: str
    value: int
    text: str


class Row(NamedTuple):
    """What a replay reads of a row of the trace."""

    time_us: int
    node: int
    event: str
    peer: int
    origin: int
    sequence: int
    value: int
    detail: str


class Replay:
    """Opens and closes intervals; ``spans[what]`` holds the closed ones."""

    def __init__(self, duration_us: int) -> None:
        self.duration_us = duration_us
        self.spans: dict[str, list[Span]] = {what: [] for what in KINDS}
        self._open: dict[tuple, Span] = {}

    def run(self, columns: Columns) -> dict[str, list[Span]]:
        """Replay a whole trace; returns the spans by kind, each in order of its end."""
        for row in state_rows(columns):
            self._handlers[row.event](self, row)
        for key in list(self._open):
            self._end(key, self.duration_us)
        return self.spans

    def _begin(self, key: tuple, row: Row, look: str = "", text: str = "", until_us: int = FOREVER_US) -> None:
        """Open an interval of kind ``key[0]``, known to end at ``until_us`` at the latest."""
        self._end(key, row.time_us)
        self._open[key] = Span(
            row.node, row.peer, row.origin, row.sequence, row.time_us, until_us, look, row.value, text
        )

    def _end(self, key: tuple, time_us: int) -> None:
        span = self._open.pop(key, None)
        if span is None:
            return
        if span.until_us > time_us:
            span = span._replace(until_us=time_us)
        if span.until_us > span.from_us:
            self.spans[key[0]].append(span)

    # Roles

    def _subscribed(self, row: Row) -> None:
        until_us = row.value if row.value > row.time_us else FOREVER_US
        self._begin(("subscription", row.node, row.sequence), row, text=row.detail, until_us=until_us)
        self._begin(("node_state", row.node, "sink", row.sequence), row, "sink", until_us=until_us)

    def _unsubscribed(self, row: Row) -> None:
        self._end(("subscription", row.node, row.sequence), row.time_us)
        self._end(("node_state", row.node, "sink", row.sequence), row.time_us)

    def _failed(self, row: Row) -> None:
        self._begin(("failed", row.node), row, "failed", row.detail)

    def _recovered(self, row: Row) -> None:
        self._end(("failed", row.node), row.time_us)

    # Links

    def _data_gradient_set(self, row: Row) -> None:
        self._begin(("data_gradient", row.node, row.origin), row)

    def _blacklisted(self, row: Row) -> None:
        key = ("blacklisted", row.node, row.peer)
        if row.value:
            self._begin(key, row)
        else:
            self._end(key, row.time_us)

    _handlers: dict[str, Callable[["Replay", Row], None]] = {
        "subscribed": _subscribed,
        "unsubscribed": _unsubscribed,
        "failed": _failed,
        "recovered": _recovered,
        "data_gradient_set": _data_gradient_set,
        "blacklisted": _blacklisted,
    }


KINDS = (
    "node_state",
    "failed",
    "subscription",
    "data_gradient",
    "blacklisted",
)


def state_rows(columns: Columns) -> Iterator[Row]:
    """The rows of a trace that change what a node knows, in order."""
    rows = columns.where(event=tuple(Replay._handlers))
    numbers = [columns[name][rows].tolist() for name in ("time_us", "node")]
    others = [columns[name][rows].tolist() for name in ("peer", "origin", "sequence", "value")]
    events, details = columns.text("event", rows), columns.text("detail", rows)
    for fields in zip(*numbers, events, *others, details, strict=True):
        yield Row(*fields)


# Ranks


def generation_sizes(columns: Columns) -> dict[Event, int]:
    """m of each event of which an innovative packet came, by (origin, sequence)."""
    begun = columns.where(event="generation_begun")
    return dict(zip(_events(columns, begun), columns["value"][begun].tolist(), strict=True))


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

    given_up = columns.where(event="dropped", detail=("expired", "corrupt"))
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


# Use, holders, sources


def weighed(spans: list[Span], columns: Columns) -> list[tuple[Span, int]]:
    """Gradients, cut where the 1st, 4th, 16th, ... data frame went over their link, with the class of their use."""
    rows = columns.where(event="sent", message="data")
    used: dict[tuple[int, int], list[int]] = {}
    for time_us, *link in zip(*[columns[name][rows].tolist() for name in ("time_us", "node", "peer")], strict=True):
        used.setdefault(tuple(link), []).append(time_us)
    found = []
    for span in spans:
        times = used.get((span.node, span.peer), []) if span.peer >= 0 else []
        times = [times[4**which - 1] for which in range(6) if 4**which <= len(times)]
        edges = [-FOREVER_US, *times, FOREVER_US]
        for which in range(len(times) + 1):
            start, end = max(edges[which], span.from_us), min(edges[which + 1], span.until_us)
            if start < end:
                found.append((span._replace(from_us=start, until_us=end), which))
    return found


def holders(columns: Columns, duration_us: int) -> list[tuple[int, int, int, int]]:
    """(node, origin, from, until): nodes but sinks hold an event until its origin makes the next one."""
    rows = columns.where(event=("held", "originated"))
    told = [columns[name][rows].tolist() for name in ("time_us", "node", "origin")]
    told = list(zip(*told, columns.text("event", rows).tolist(), strict=True))
    sinks = set(columns["node"][columns.where(event="subscribed")].tolist())
    found = []
    for place, (time_us, node, origin, event) in enumerate(told):
        if event == "held" and node not in sinks:
            later = [t for t, _, o, e in told[place + 1 :] if e == "originated" and o == origin]
            until_us = later[0] if later else duration_us
            if time_us < min(until_us, duration_us):
                found.append((node, origin, time_us, min(until_us, duration_us)))
    return found

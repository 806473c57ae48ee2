"""A slow reference replay of a trace, row by row, for comparison with the arrays of layers.

    replay(columns, duration_us)    -> kind -> list of Span

Theory of operation
    Few rows change a node's state, and each of them opens or closes an interval, so one pass over them in order is
    enough.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from workbench.sim.rows import Columns

Event = tuple[int, int]
FOREVER_US = 1 << 62


class Span(NamedTuple):
    """A state that a node had during [from_us, until_us): a row of an intervals table."""

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
    """The columns of a trace row that a replay reads."""

    time_us: int
    node: int
    event: str
    peer: int
    origin: int
    sequence: int
    value: int
    detail: str


class Replay:
    """A replay that opens and closes intervals; `spans[kind]` holds the closed ones."""

    def __init__(self, duration_us: int) -> None:
        self.duration_us = duration_us
        self.spans: dict[str, list[Span]] = {kind: [] for kind in KINDS}
        self._open: dict[tuple, Span] = {}

    def run(self, columns: Columns) -> dict[str, list[Span]]:
        """Replay a whole trace; return the spans by kind, each in order of its end."""
        for row in state_rows(columns):
            self._handlers[row.event](self, row)
        for key in list(self._open):
            self._end(key, self.duration_us)
        return self.spans

    def _begin(self, key: tuple, row: Row, look: str = "", text: str = "", until_us: int = FOREVER_US) -> None:
        """Open an interval of kind `key[0]`, which ends at `until_us` at the latest."""
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
    """Yield the rows of a trace that change the state of a node, in order."""
    rows = columns.where(event=tuple(Replay._handlers))
    numbers = [columns[name][rows].tolist() for name in ("time_us", "node")]
    ids = [columns[name][rows].tolist() for name in ("peer", "origin", "sequence", "value")]
    events, details = columns.text("event", rows), columns.text("detail", rows)
    for fields in zip(*numbers, events, *ids, details, strict=True):
        yield Row(*fields)


# Ranks


def generation_sizes(columns: Columns) -> dict[Event, int]:
    """Return {(origin, sequence): generation size m} of the events of which an innovative packet was received."""
    begun = columns.where(event="generation_begun")
    return dict(zip(_events(columns, begun), columns["value"][begun].tolist(), strict=True))


def decoding_spans(columns: Columns, duration_us: int) -> list[Span]:
    """Return the intervals in which a node had the same rank of an event before it held it, in the order of ends.

    value: the rank; text: the columns of the pivots in ascending order, "0 3 4"; peer: the sender of the last
    innovative packet; look: "decoding"."""
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
    for time_us, node, peer, rank, kind, detail, event in zip(*numbers, *words, _events(columns, rows), strict=True):
        before = close((node, event), time_us)
        if kind == "innovative" and time_us < duration_us:
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
    """Return (span, use class) of gradients, split at the 1st, 4th, 16th, ... data frame on their link."""
    rows = columns.where(event="sent", message="data")
    used: dict[tuple[int, int], list[int]] = {}
    for time_us, *link in zip(*[columns[name][rows].tolist() for name in ("time_us", "node", "peer")], strict=True):
        used.setdefault(tuple(link), []).append(time_us)
    parts = []
    for span in spans:
        times = used.get((span.node, span.peer), []) if span.peer >= 0 else []
        times = [times[4**which - 1] for which in range(6) if 4**which <= len(times)]
        edges = [-FOREVER_US, *times, FOREVER_US]
        for which in range(len(times) + 1):
            start, end = max(edges[which], span.from_us), min(edges[which + 1], span.until_us)
            if start < end:
                parts.append((span._replace(from_us=start, until_us=end), which))
    return parts


def holders(columns: Columns, duration_us: int) -> list[tuple[int, int, int, int]]:
    """Return (node, origin, from, until): a node, unless it is a sink, holds an event until its origin's next event."""
    rows = columns.where(event=("held", "originated"))
    holdings = [columns[name][rows].tolist() for name in ("time_us", "node", "origin")]
    holdings = list(zip(*holdings, columns.text("event", rows).tolist(), strict=True))
    sinks = set(columns["node"][columns.where(event="subscribed")].tolist())
    intervals = []
    for index, (time_us, node, origin, event) in enumerate(holdings):
        if event == "held" and node not in sinks:
            later = [t for t, _, o, e in holdings[index + 1 :] if e == "originated" and o == origin]
            until_us = later[0] if later else duration_us
            if time_us < min(until_us, duration_us):
                intervals.append((node, origin, time_us, min(until_us, duration_us)))
    return intervals

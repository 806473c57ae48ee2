"""Why publications did not arrive, as only TinyMQ can say; `workbench.sim.explain` finds it through the class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.sim.explain import more, seconds, unheard
from workbench.sim.metrics import Rows
from workbench.sim.missing import Missing


def explain(scenario: Any, trace: Rows | None, missing: Missing) -> Iterator[str]:
    """An event is matched with the queries that are stored where it comes, and both take a place in a tree to send."""
    yield from unheard(missing, "a query")
    if trace is None:
        return
    node, bits = trace.columns("key_set", "node", "value")
    placed = node[bits >= 0]
    for kind, nodes in (("publisher", missing.publisher), ("sink", missing.sink)):
        homeless = np.unique(nodes[~np.isin(nodes, placed)])
        if len(homeless):
            yield f"Node {homeless[0]}, a {kind}, never got a place in a tree{more(len(homeless))}."
    moved = missing.those(np.isin(missing.publisher, placed))
    unmatched = moved.those(_is_unmatched(trace, moved))
    if len(unmatched.sink):
        yield (
            f"Node {unmatched.publisher[0]} published at {seconds(unmatched.published_us[0])}, and where the event "
            f"came no query of node {unmatched.sink[0]} was stored by then: an event is matched only with what is "
            f"stored when it comes{more(len(unmatched.sink))}."
        )


def _is_unmatched(trace: Rows, missing: Missing) -> np.ndarray:
    """Whether no node that had the event stored a query of the sink by the last time it had it (m,).

    False for an event of which a frame was lost or dropped: it might have come further.
    """
    stored: dict[tuple[int, int], int] = {}  # (sink, node) -> when a query was stored first
    for row in trace.of("query_stored"):
        if row["value"] > 0:
            stored.setdefault((row["origin"], row["node"]), row["time_us"])
    had: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)  # event -> node -> when it had it last
    for name in ("held", "received", "forwarded"):
        for origin, sequence, node, time_us in _of_events(trace, name, missing):
            nodes = had[origin, sequence]
            nodes[node] = max(nodes.get(node, 0), time_us)
    cut_short = {
        (origin, sequence)
        for name in ("dropped", "lost", "given_up")
        for origin, sequence, _, _ in _of_events(trace, name, missing)
    }
    events = zip(missing.publisher.tolist(), missing.number.tolist(), strict=True)
    found = [
        bool(had.get(event))
        and event not in cut_short
        and all(stored.get((sink, node), time_us + 1) > time_us for node, time_us in had[event].items())
        for event, sink in zip(events, missing.sink.tolist(), strict=True)
    ]
    return np.array(found, np.bool_)


def _of_events(trace: Rows, name: str, missing: Missing) -> Iterator[tuple[int, ...]]:
    """(origin, sequence, node, time in µs) of rows about events of these publishers, without drops of duplicates."""
    message, detail, *columns = trace.columns(name, "message", "detail", "origin", "sequence", "node", "time_us")
    messages = [code for code, text in enumerate(trace.texts("message")) if text in ("event", "notification")]
    others = [code for code, text in enumerate(trace.texts("detail")) if text == "duplicate"]
    is_one = np.isin(message, messages) & ~np.isin(detail, others) & np.isin(columns[0], missing.publisher)
    yield from zip(*(column[is_one].tolist() for column in columns), strict=True)

"""Why publications did not arrive, as only TinyDiffusion can say; `workbench.sim.explain` finds this by the class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.sim.explain import beyond, seconds, unheard
from workbench.sim.metrics import Rows
from workbench.sim.missing import Missing


def explain(scenario: Any, trace: Rows | None, missing: Missing) -> Iterator[str]:
    """Interests and data go as many hops as the ttl says, and data goes only where an interest has been."""
    ttl = scenario.protocol.ttl
    yield from beyond(missing, ttl, f"The ttl of {ttl} hops of interests and data")
    yield from unheard(missing, "an interest")
    if trace is not None:
        yield from _evicted(scenario.protocol, trace, missing)


def _evicted(protocol: Any, trace: Rows, missing: Missing) -> Iterator[str]:
    """Interests of sinks that miss something, which nodes evicted to make room for others."""
    node, sink, detail, time_us = trace.columns("interest_removed", "node", "origin", "detail", "time_us")
    is_evicted = np.array([text == "evicted" for text in trace.texts("detail")], bool)[detail]
    chosen = np.flatnonzero(is_evicted & np.isin(sink, missing.sink))
    if not len(chosen):
        return
    first = chosen[0]
    nodes = len(np.unique(node[chosen]))
    sources = missing.publisher[np.isin(missing.publisher, node[chosen])]
    yield (
        f"Each node has room for {protocol.max_interests} interests (max_interests), and the network has more: {nodes} "
        f"nodes evicted interests of sinks that miss readings, {len(chosen):,} times. Node {node[first]} was the "
        f"first, with one of node {sink[first]} at {seconds(time_us[first])}."
    )
    if len(sources):
        yield f"Node {sources[0]}, a publisher, was among them: it sends nothing to a sink whose interest is not there."
    ended = _dropped_as_evicted(trace)
    if ended:
        yield f"{ended:,} data messages ended at nodes that had evicted the interest."


def _dropped_as_evicted(trace: Rows) -> int:
    """Return how many data messages ended at a node without their interest that had evicted some."""
    message, detail = trace.columns("dropped", "message", "detail")
    texts = trace.texts("message"), trace.texts("detail")
    is_data, is_evicted = (
        np.array([text == wanted for text in those], bool)[codes]
        for wanted, those, codes in zip(("data", "evicted"), texts, (message, detail), strict=True)
    )
    return int(np.count_nonzero(is_data & is_evicted))

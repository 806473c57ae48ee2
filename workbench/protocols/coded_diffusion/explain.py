"""Why publications did not arrive, as only coded diffusion can say; `workbench.sim.explain` finds it by the class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.sim.columns import positions
from workbench.sim.explain import Missing, more, seconds
from workbench.sim.metrics import Rows

Table = tuple[np.ndarray, ...]


def explain(scenario: Any, trace: Rows | None, missing: Missing) -> Iterator[str]:
    """A node needs as many independent combinations as there are chunks, and asks neighbors for those that it lacks."""
    if not scenario.protocol.max_requests:
        yield from _few_to_begin_with(scenario, missing)
    if trace is not None:
        yield from _short(scenario, trace, missing)


def _few_to_begin_with(scenario: Any, missing: Missing) -> Iterator[str]:
    """Publishers whose neighbors send no more combinations than an event has chunks, or fewer."""
    protocol = scenario.protocol
    told = []
    for publisher in dict.fromkeys(missing.publisher[missing.hops > 1].tolist()):
        neighbors = scenario.topology.out_degree(publisher)
        sent, size = protocol.bootstrap_factor * neighbors, protocol.generation_size
        if sent <= size:
            begin = f"Events of node {publisher} begin with {_counted(sent, 'combination')}"
            begin += f" ({_counted(neighbors, 'neighbor')}, bootstrap_factor {protocol.bootstrap_factor})"
            few = f"{begin}, and have {_counted(size, 'chunk')}"
            lost = "none may be lost or depend on others"
            told.append(f"{few}: {lost if sent == size else 'nobody who hears them alone decodes one'}")
    if told:
        yield f"{told[0]}{more(len(told))}."


def _short(scenario: Any, trace: Rows, missing: Missing) -> Iterator[str]:
    """Sinks that had some combinations of what they miss, or some that do not belong together."""
    origin, sequence, *reading = trace.columns("originated", "origin", "sequence", "node", "value")
    place = positions((missing.publisher, missing.number), tuple(reading))
    missing, place = missing.those(place >= 0), place[place >= 0]
    wanted = (missing.sink, origin[place], sequence[place])
    is_corrupt = _is_among(wanted, _corrupt(trace))
    yield from _sentence(missing.those(is_corrupt), "collected combinations of", "that do not belong together", "")
    *heard, rank = trace.columns("innovative", "node", "origin", "sequence", "value")
    last = positions(wanted, tuple(heard))
    is_short = (last >= 0) & ~is_corrupt
    short, ranks = missing.those(is_short), rank[last[is_short]]
    if len(short.sink):
        sink = int(short.sink[0])
        had = f"had {ranks[0]} of {scenario.protocol.generation_size} combinations of"
        yield from _sentence(short, had, "and got no more", f": {_why_no_more(scenario, sink)}")


def _sentence(missing: Missing, had: str, what: str, why: str) -> Iterator[str]:
    if len(missing.sink):
        made = f"what node {missing.publisher[0]} published at {seconds(missing.published_us[0])}"
        yield f"Node {missing.sink[0]} {had} {made} {what}{more(len(missing.sink))}{why}."


def _why_no_more(scenario: Any, sink: int) -> str:
    graph = scenario.topology
    hears = set(graph.predecessors(sink))
    neighbors = f"it hears {_counted(len(hears), 'neighbor')}"
    if not scenario.protocol.max_requests:
        return f"{neighbors}, and with max_requests=0 it asks none of them"
    if not hears & set(graph.successors(sink)):
        return f"{neighbors}, and none that it hears hears it, so it cannot ask"
    return f"{neighbors}, and no answer to its requests came"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _is_among(rows: Table, others: Table) -> np.ndarray:
    return positions(rows, others) >= 0


def _corrupt(trace: Rows) -> Table:
    """(node, origin, sequence) of generations that were dropped as corrupt."""
    texts = trace.texts("detail")
    reason, *columns = trace.columns("dropped", "detail", "node", "origin", "sequence")
    is_corrupt = reason == (texts.index("corrupt") if "corrupt" in texts else -1)
    node, origin, sequence = (column[is_corrupt] for column in columns)
    return node, origin, sequence

"""Why publications did not arrive, as only DPS can say; `workbench.sim.explain` finds it through the class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.protocols.dps.publications import NAME
from workbench.protocols.dps.rules import takes_publications
from workbench.sim.columns import positions
from workbench.sim.explain import more, seconds, unheard
from workbench.sim.metrics import Rows
from workbench.sim.missing import Missing


def explain(scenario: Any, trace: Rows | None, missing: Missing) -> Iterator[str]:
    """A publication goes over the links that stand, to those neighbors whose interests it may meet, and only once."""
    yield from unheard(missing, "an interest")
    if trace is None:
        return
    unsent = missing.those(_is_unsent(trace, missing))
    links = _links(trace, {*unsent.publisher.tolist()})
    standing = np.zeros(len(unsent.publisher), np.int64)
    for node, (times, counts) in links.items():
        mine = np.flatnonzero(unsent.publisher == node)
        standing[mine] = counts[np.searchsorted(times, unsent.published_us[mine], side="right")]
    without = unsent.those(standing == 0)
    if len(without.publisher):
        node, time_us = int(without.publisher[0]), int(without.published_us[0])
        yield (
            f"Node {node} had no link when it published at {seconds(time_us)}{_first_link(links, node, time_us)}, so "
            f"it sent the publication to nobody{more(_publications(without))}."
        )
    unasked = unsent.those(standing > 0)
    if len(unasked.publisher):
        yield (
            f"Node {unasked.publisher[0]} published at {seconds(unasked.published_us[0])} and sent it to nobody: no "
            f"subscription of node {unasked.sink[0]} had come to it over its links{more(_publications(unasked))}."
        )


def _publications(missing: Missing) -> int:
    return len({*zip(missing.publisher.tolist(), missing.number.tolist(), strict=True)})


def _is_unsent(trace: Rows, missing: Missing) -> np.ndarray:
    """Whether the publisher itself never tried to send it (m,)."""
    origin, sequence, node, number = trace.columns("originated", "origin", "sequence", "node", "value")
    found = positions((missing.publisher, missing.number), (node, number))
    message = np.append(origin, -1)[found], np.append(sequence, -1)[found]
    is_unsent = found >= 0
    for event in ("sent", "given_up"):
        code, *tried = trace.columns(event, "message", "node", "origin", "sequence")
        is_publication = code == _code(trace, NAME)
        tried = [column[is_publication] for column in tried]
        is_unsent &= positions((missing.publisher, *message), tuple(tried)) < 0
    return is_unsent


def _code(trace: Rows, name: str) -> int:
    texts = trace.texts("message")
    return texts.index(name) if name in texts else -1


def _links(trace: Rows, nodes: set[int]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """node -> (times (t,) of changes, number of active links (t + 1,) before the first of them and after each)."""
    active: dict[int, set[int]] = defaultdict(set)
    changes: dict[int, list[tuple[int, int]]] = {node: [] for node in nodes}
    for row in trace.of("link_set"):
        if row["node"] in nodes:
            of_node = active[row["node"]]
            (of_node.add if takes_publications(row["value"]) else of_node.discard)(row["peer"])
            changes[row["node"]].append((row["time_us"], len(of_node)))
    return {
        node: (np.array([time for time, _ in found], np.int64), np.array([0, *(count for _, count in found)], np.int64))
        for node, found in changes.items()
    }


def _first_link(links: dict[int, tuple[np.ndarray, np.ndarray]], node: int, time_us: int) -> str:
    times, counts = links[node]
    later = times[(times > time_us) & (counts[1:] > 0)]
    return f" (the next one stood at {seconds(int(later[0]))})" if len(later) else ""

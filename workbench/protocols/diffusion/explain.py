"""Why readings were not delivered, as far as only TinyDiffusion can show: data follows gradients of interests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.sim.evidence import Evidence, Pair, Row, Step, Trail
from workbench.sim.expected import Pairs
from workbench.sim.metrics.matching import matching_of
from workbench.sim.sentences import beyond, seconds, unheard
from workbench.sim.steps import last_outcome

CARRIERS = ("data",)
# Reasons to drop data that follow from what its samples are.
_UNWANTED = frozenset(("no_interest", "no_gradient", "evicted"))


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield what the network alone proves: interests and data go as many hops as the ttl says, over two-way links."""
    ttl = scenario.protocol.ttl
    yield from beyond(missing, np.maximum(missing.hops, missing.hops_back), ttl, f"The ttl of {ttl} hops")
    yield from unheard(missing, "an interest")


def last_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the last step along the gradients towards the subscriber."""
    gradients = _Gradients(evidence, pair)
    reached = _towards(gradients, trail, pair.publisher)
    step = last_outcome(evidence, trail, reached)
    if pair.subscriber in reached and (step is None or step.node != pair.subscriber):
        return _changed(trail, pair.subscriber)
    if step is not None and step.cause != "not_forwarded":
        return _why_unwanted(step, gradients, trail)
    for node in sorted(reached, key=lambda node: trail.holders[node].index if node in trail.holders else -1)[::-1]:
        step = gradients.lack(node, trail.holders.get(node, pair.published))
        if step is not None:
            return step
    return None


def _towards(gradients: _Gradients, trail: Trail, publisher: int) -> dict[int, set[int]]:
    """Return the nodes that got the reading along gradients of the subscriber, with the neighbors of these gradients."""
    reached: dict[int, set[int]] = {}
    waiting = [publisher]
    while waiting:
        node = waiting.pop()
        if node in reached:
            continue
        reached[node] = gradients.neighbors(node)
        waiting += [neighbor for neighbor in reached[node] if (node, neighbor) in trail.arrivals]
    return reached


class _Gradients:
    """The gradients of the subscriber's interests that want the reading, by node."""

    def __init__(self, evidence: Evidence, pair: Pair) -> None:
        self._evidence = evidence
        self._sink = pair.subscriber
        is_match = matching_of(evidence.scenario.protocol).samples
        own = evidence.at("interest_cached", pair.subscriber, origin=pair.subscriber)
        wanted = {row.sequence for row in own if is_match(row.detail, pair.published.detail)}
        others = {row.sequence for row in own} - wanted
        self._others = others

    def _rows(self, event: str, node: int) -> list[Row]:
        rows = self._evidence.at(event, node, origin=self._sink)
        return [row for row in rows if row.sequence not in self._others]

    def neighbors(self, node: int) -> set[int]:
        """Return the neighbors to which a node ever had a gradient."""
        return {row.peer for row in self._rows("gradient_set", node)}

    def lack(self, node: int, when: Row) -> Step | None:
        """Return why a node had no gradient at a row of the trace, or None if it had one."""
        gone: dict[int, Row | None] = {row.peer: None for row in self._before("gradient_set", node, when)}
        if not gone:
            return Step("not_asked", node, None, when.time_us, "", (when,))
        last_set = {row.peer: row for row in self._before("gradient_set", node, when)}
        for row in self._before("gradient_removed", node, when):
            gone[row.peer] = row
        for peer, row in last_set.items():
            removed = gone[peer]
            if removed is not None and removed.index < row.index:
                gone[peer] = None
            if gone[peer] is None and row.value > when.time_us:
                return None
        last = max((row for row in gone.values() if row is not None), key=lambda row: row.index, default=None)
        if last is None:
            last = max(last_set.values(), key=lambda row: row.index)
        cause = "evicted" if last.detail == "evicted" else "expired"
        detail = last.detail if last.event == "gradient_removed" else "expired"
        return Step(cause, node, None, when.time_us, detail, (last, when))

    def _before(self, event: str, node: int, when: Row) -> list[Row]:
        return [row for row in self._rows(event, node) if row.index < when.index]


def _why_unwanted(step: Step, gradients: _Gradients, trail: Trail) -> Step:
    """Return why a node dropped a reading that it had no use for."""
    if step.detail not in _UNWANTED or step.cause == "filtered":
        return step
    changed = [row for row in trail.of("filtered") if row.index < step.rows[-1].index]
    if changed:
        return step._replace(cause="filtered", rows=(*changed, *step.rows))
    lack = gradients.lack(step.node, step.rows[-1])
    if lack is None:
        return step._replace(cause="dropped")
    return lack._replace(rows=(*lack.rows, *step.rows))


def _changed(trail: Trail, subscriber: int) -> Step | None:
    """Return the step of a reading that a filter changed, so that it no longer was what the subscription wants."""
    changed = trail.of("filtered")
    arrived = trail.at("received", subscriber)
    if changed and arrived:
        return Step("filtered", subscriber, None, arrived[0].time_us, "replace", (*changed, arrived[0]))
    return None


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause on a node that had no gradient for the subscriber, or no longer."""
    node, subscriber, settings = account.node, account.subscriber, scenario.protocol
    if account.cause == "evicted":
        return (
            f"node {node} has room for {settings.max_interests} interests (max_interests) with "
            f"{settings.max_gradients} gradients each (max_gradients), and had evicted that of node {subscriber} by "
            f"{seconds(account.time_us)}"
        )
    if account.cause == "not_asked":
        return f"by {seconds(account.time_us)} no interest of node {subscriber} that wants it had come to node {node}"
    return None

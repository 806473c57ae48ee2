"""Explain why readings were not delivered in a run of TinyDiffusion, where data follows the gradients of interests.

A *pair* is a reading and a subscription that did not get it; a *step* is an event on the way of the reading (see
`workbench.analysis.evidence`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.analysis.evidence import Evidence, Pair, Step, Trail
from workbench.analysis.expected import Pairs
from workbench.analysis.sentences import beyond, seconds, unheard
from workbench.analysis.steps import is_last, unsent
from workbench.protocols.contract import NOBODY
from workbench.sim.metrics.matching import matching_of
from workbench.sim.rows import Row

CARRIERS = ("data",)
# Samples that wait at their publisher have no message yet, so their drops have no sequence number.
HARMLESS = ("duplicate", "expired")
# Reasons for a drop that follow from the attributes of the samples.
_UNWANTED = frozenset(("no_interest", "no_gradient", "evicted"))


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield sentences about readings that could not reach a subscriber because of the topology.

    There are two causes: the path between publisher and subscriber is longer than the ttl, or no path leads from the
    subscriber to the publisher. ``missing``: pairs of a subscription and a reading that was not delivered.
    """
    ttl = scenario.protocol.ttl
    yield from beyond(missing, np.maximum(missing.hops, missing.hops_back), ttl, f"The ttl of {ttl} hops")
    yield from unheard(missing, "an interest")


def last_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the step (a trace event) at which a reading's path along the gradients to the subscriber ended.

    The result is None if the trace does not prove such a step. ``trail``: the trace rows of the reading.
    """
    gradients = _Gradients(evidence, pair)
    if pair.publisher not in trail.holders:
        return gradients.missing_gradient(pair.publisher, pair.published)
    first_message = trail.of("originated")[0]
    trail.drops = [row for row in trail.drops if not _concerns_waiting_sample(row, first_message)]
    neighbors_by_node = _find_reached_nodes(gradients, trail, pair.publisher)
    if pair.subscriber in neighbors_by_node:
        return trail.outcome(pair.subscriber, ()) or _find_filter_step(trail, pair.subscriber)
    end_steps = [
        _find_end(evidence, gradients, trail, node, neighbors) for node, neighbors in neighbors_by_node.items()
    ]
    steps = sorted((step for step in end_steps if step), key=lambda step: step.rows[-1].position)
    # Of several copies, one that the subscriber itself lost came nearest.
    nearest_steps = [step for step in steps if step.neighbor == pair.subscriber]
    step = next(reversed(nearest_steps or steps), None)
    if step is None or not _has_other_subscribers(evidence, pair):
        return step
    # A frame lists the subscribers that other copies serve, but the trace does not contain frames.
    end_position = step.rows[-1].position
    if evidence.scenario.protocol.exploratory_gradients == 1:
        is_proven = True
    elif len(steps) == 1:
        is_proven = not any(row.position > end_position for row in trail.at("lost", pair.subscriber))
    else:
        is_proven = bool(nearest_steps) and is_last(trail, end_position)
    return step if is_proven and not _has_changed_list(trail, step) else None


def _has_changed_list(trail: Trail, step: Step) -> bool:
    """Return whether the lost frames from ``step.node`` to ``step.neighbor`` had different lists of subscribers.

    Each of these frames contains the reading, and the list of subscribers that other copies of the reading serve. Only
    this list varies in size, so the lists were different if the frames had different sizes. In that case the copy for
    the subscriber of ``trail`` may have taken another path.
    """
    endpoints = step.node, step.neighbor
    sizes = [row.size_B for row in trail.of("lost") if (row.peer, row.node) == endpoints]
    return len(set(sizes)) > 1


def _has_other_subscribers(evidence: Evidence, pair: Pair) -> bool:
    return any(row.node != pair.subscriber for row in evidence.of("subscribed"))


def _find_end(evidence: Evidence, gradients: _Gradients, trail: Trail, node: int, neighbors: set[int]) -> Step | None:
    """Return the step (a trace event) that ended the reading's path at a node.

    The result is None if a neighbor received the reading from the node, or if no event explains the end. ``neighbors``:
    the neighbors to which the node had gradients for the reading.
    """
    step = trail.outcome(node, neighbors or None) or unsent(evidence, trail, node)
    if step is not None and step.cause != "not_forwarded":
        return _refine_cause(step, gradients, trail)
    if any(sender == node and (not neighbors or receiver in neighbors) for sender, receiver in trail.arrivals):
        return None
    arrival = trail.holders[node]
    return gradients.missing_gradient(node, arrival) or gradients.leads_back(node, arrival)


def _concerns_waiting_sample(drop: Row, sent: Row) -> bool:
    """Return whether the trace row ``drop`` is about a sample that waited for an interest, not about a sent message.

    ``sent``: the trace row "originated" of the reading's message. The sequence number does not distinguish the cases:
    it is 0 for a waiting sample, and may be 0 for a message. A waiting sample is dropped at the publisher, without a
    peer, and not at the time of the row ``sent``.
    """
    return drop.node == sent.node and drop.peer == NOBODY and drop.time_us != sent.time_us


def _find_reached_nodes(gradients: _Gradients, trail: Trail, publisher: int) -> dict[int, set[int]]:
    """Return {node: neighbors to which it had gradients for the reading}, for each node that a copy reached.

    The search begins at the publisher, and at each node whose filter changed the reading, because the node sends the
    changed reading by gradients of its own. From a node the search continues at the neighbors that got a copy from
    it. If the node had gradients for the reading, only neighbors with such a gradient are considered.
    """
    neighbors_by_node: dict[int, set[int]] = {}
    nodes_to_visit = [publisher, *(row.node for row in trail.of("filtered"))]
    while nodes_to_visit:
        node = nodes_to_visit.pop()
        if node in neighbors_by_node or node not in trail.holders:
            continue
        arrival = trail.holders[node]
        sent_rows = [*trail.at("sent", node), *trail.at("given_up", node)]
        end_position = max((row.position for row in sent_rows), default=arrival.position)
        neighbors_by_node[node] = gradients.neighbors(node, arrival, end_position) - {arrival.peer}
        nodes_to_visit += [
            receiver
            for sender, receiver in trail.arrivals
            if sender == node and (not neighbors_by_node[node] or receiver in neighbors_by_node[node])
        ]
    return neighbors_by_node


class _Gradients:
    """The gradients of all nodes, as the trace records them, for a subscriber's interests that match a reading."""

    def __init__(self, evidence: Evidence, pair: Pair) -> None:
        self._evidence = evidence
        self._sink = pair.subscriber
        samples = matching_of(evidence.scenario.protocol).samples
        own_rows = evidence.at("interest_cached", pair.subscriber, origin=pair.subscriber)
        self._matching_interests = {row.sequence for row in own_rows if samples(row.detail, pair.published.detail)}
        # A reinforcement has a sequence number of its own, so exclude the other interests instead.
        self._other_interests = {row.sequence for row in own_rows} - self._matching_interests
        key = "gradients", self._sink, *sorted(self._other_interests)
        self._changes_of_node: dict[int, list[Row]] = evidence.once(key, dict)

    def _rows(self, event: str, node: int) -> list[Row]:
        rows = self._evidence.at(event, node, origin=self._sink)
        return [row for row in rows if row.sequence not in self._other_interests]

    def _changes(self, node: int) -> list[Row]:
        """Return the trace rows in which a node set or removed a gradient, in the order of the trace."""
        if node not in self._changes_of_node:
            rows = self._rows("gradient_set", node) + self._rows("gradient_removed", node)
            self._changes_of_node[node] = sorted(rows, key=lambda row: row.position)
        return self._changes_of_node[node]

    def _last_rows(self, node: int, at_row: Row) -> dict[tuple[int, int], Row]:
        """Return each gradient of a node with the last row before ``at_row`` that set, renewed or removed the gradient.

        The result is {(neighbor, sequence number of the interest): trace row}. A reinforcement renews all gradients to
        the neighbor that sent the reinforcement. Without such gradients it sets one, with (neighbor, ``NOBODY``) as
        key.
        """
        last_rows: dict[tuple[int, int], Row] = {}
        for row in self._changes(node):
            if row.position >= at_row.position:
                break
            key = row.peer, row.sequence
            if row.detail == "reinforcement" and row.event == "gradient_set":
                renewed_keys = [
                    gradient
                    for gradient in last_rows
                    if gradient[0] == row.peer and _is_gradient_set(last_rows[gradient], row)
                ]
                last_rows.update(dict.fromkeys(renewed_keys or [(row.peer, NOBODY)], row))
            elif row.event == "gradient_removed" and key not in last_rows and (row.peer, NOBODY) in last_rows:
                last_rows[row.peer, NOBODY] = row
            else:
                last_rows[key] = row
        return last_rows

    def neighbors(self, node: int, at_row: Row, end_position: int) -> set[int]:
        """Return the neighbors to which a node had a gradient at ``at_row``, or set one later, until ``end_position``.

        ``end_position``: the position in the trace of the last row to search.
        """
        active_neighbors = {row.peer for row in self._last_rows(node, at_row).values() if _is_gradient_set(row, at_row)}
        return active_neighbors | {
            row.peer for row in self._rows("gradient_set", node) if at_row.position < row.position <= end_position
        }

    def missing_gradient(self, node: int, at_row: Row) -> Step | None:
        """Return the step (event) that explains why a node had no gradient at row ``at_row``, or None if it had one."""
        last_rows = self._last_rows(node, at_row)
        if any(_is_gradient_set(row, at_row) for row in last_rows.values()):
            return None
        if last_rows:
            newest_row = max(last_rows.values(), key=lambda row: row.position)
            detail = newest_row.detail if newest_row.event == "gradient_removed" else "expired"
            return Step(
                "evicted" if detail == "evicted" else "expired",
                node,
                None,
                at_row.time_us,
                detail,
                (newest_row, at_row),
            )
        cached_rows = [
            row
            for row in self._evidence.at("interest_cached", node, origin=self._sink)
            if row.sequence in self._matching_interests and row.position < at_row.position
        ]
        if cached_rows:
            return Step("no_room", node, None, at_row.time_us, "", (cached_rows[-1], at_row))
        return Step("not_asked", node, None, at_row.time_us, "", (at_row,))

    def leads_back(self, node: int, at_row: Row) -> Step | None:
        """Return the step "no_way_on" if all gradients of a node led back to the neighbor that sent it the reading.

        Otherwise return None. ``at_row``: the trace row in which the node received the reading.
        """
        active_rows = [row for row in self._last_rows(node, at_row).values() if _is_gradient_set(row, at_row)]
        if active_rows and {row.peer for row in active_rows} == {at_row.peer}:
            return Step("no_way_on", node, at_row.peer, at_row.time_us, "", (active_rows[-1], at_row))
        return None


def _is_gradient_set(row: Row, at_row: Row) -> bool:
    """Return whether a gradient exists at the time of the trace row ``at_row``.

    ``row``: the last row before ``at_row`` that set, renewed or removed this gradient.
    """
    return row.event == "gradient_set" and row.value > at_row.time_us


def _refine_cause(step: Step, gradients: _Gradients, trail: Trail) -> Step:
    """Return ``step``, with a more precise cause if the node dropped the reading for lack of an interest or gradient.

    The more precise cause is a filter that had changed the reading, or the reason why the node had no gradient.
    """
    if step.detail not in _UNWANTED or step.cause == "filtered":
        return step
    filter_rows = [row for row in trail.of("filtered") if row.position < step.rows[-1].position]
    if filter_rows:
        return step._replace(cause="filtered", rows=(*filter_rows, *step.rows))
    missing_step = gradients.missing_gradient(step.node, step.rows[-1])
    if missing_step is None:
        return step._replace(cause="dropped")
    return missing_step._replace(rows=(*missing_step.rows, *step.rows))


def _find_filter_step(trail: Trail, subscriber: int) -> Step | None:
    """Return a step if the reading arrived at the subscriber after a filter had changed it, else None.

    The step has the cause "filtered": the changed reading no longer matched the subscription.
    """
    filter_rows = trail.of("filtered")
    arrival_rows = trail.at("received", subscriber)
    if filter_rows and arrival_rows:
        return Step("filtered", subscriber, None, arrival_rows[0].time_us, "replace", (*filter_rows, arrival_rows[0]))
    return None


def clause(scenario: Any, account: Any) -> str | None:
    """Return a clause about the interest that a node had evicted or never received; None for other causes of a loss.

    ``account``: the account of the lost reading, with the cause "evicted" (the interest was evicted), "not_asked" (it
    was never received) or another one.
    """
    node, subscriber, settings = account.node, account.subscriber, scenario.protocol
    if account.cause == "evicted":
        return (
            f"node {node} had evicted the interest of node {subscriber} by {seconds(account.time_us)}; a node has room "
            f"for {settings.max_interests} interests (max_interests) with {settings.max_gradients} gradients each "
            "(max_gradients)"
        )
    if account.cause == "not_asked":
        return f"by {seconds(account.time_us)} no interest of node {subscriber} that matches it had reached node {node}"
    return None

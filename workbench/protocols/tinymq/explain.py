"""Why readings were not delivered, as far as only TinyMQ can show: events meet queries at rendezvous nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from workbench.sim.evidence import Evidence, Pair, Row, Step, Trail
from workbench.sim.expected import Pairs
from workbench.sim.metrics.matching import matching_of
from workbench.sim.sentences import seconds, unheard
from workbench.sim.steps import last_outcome, outcomes

CARRIERS = ("event", "notification")
HARMLESS = ("duplicate", "repeated")


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield what the network alone proves: queries need a path back."""
    yield from unheard(missing, "a query")


def last_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the last step of the event on its way to rendezvous nodes, or of the notification from there."""
    events = trail.only("event")
    matched = trail.of("event_matched")
    notifiers = [row for row in matched if pair.subscriber in _sinks(evidence, pair, row)]
    if notifiers:
        return _of_notification(evidence, pair, trail.only("notification"), matched)
    step = last_outcome(evidence, events, dict.fromkeys(events.holders))
    every_tree = {row.value for row in matched} >= set(range(len(evidence.scenario.protocol.roots)))
    if matched and (every_tree or step is None or step.cause == "not_forwarded"):
        last = matched[-1]
        later = _first_stored(evidence, pair, last)
        return Step("not_matched", last.node, None, last.time_us, "", (*matched, *later))
    homeless = None if step is None else _without_place(evidence, step)
    return homeless or step


def _of_notification(evidence: Evidence, pair: Pair, trail: Trail, matched: list[Row]) -> Step | None:
    """Return the last step of a notification on its way from the rendezvous nodes that sent it.

    Notifications for several subscribers have the same origin and number. Then a step counts only if its frames can be
    for no other subscriber, by the neighbors that their queries came from.
    """
    starts: dict[int, list[Row]] = {}
    for row in matched:
        for sink in _sinks(evidence, pair, row):
            starts.setdefault(sink, []).append(row)
    own = starts.pop(pair.subscriber)
    # A copy that was delivered ended nowhere else.
    for sink in {row.node for row in trail.of("delivered")}.intersection(starts):
        if len(starts[sink]) == 1:
            del starts[sink]
    along = _reached(evidence, pair.subscriber, trail, own)
    steps = outcomes(evidence, trail, along, any_onward=True)
    if starts:
        others = [_reached(evidence, sink, trail, rows) for sink, rows in starts.items()]
        copies = sum(len(rows) for rows in starts.values()) + len(own)
        return next((step for step in steps if _is_own(step, along, own, others) or _is_all(step, trail, copies)), None)
    step = steps[0] if steps else None
    if step is None or step.cause == "not_forwarded":
        step = last_outcome(evidence, trail, dict.fromkeys((*trail.holders, *along))) or step
    return None if step is None else _without_place(evidence, step) or step


def _is_own(step: Step, along: dict[int, set[int]], own: list[Row], others: list[dict[int, set[int]]]) -> bool:
    """Return whether a step is of a frame for the subscriber, or of each frame to its neighbor."""
    if step.cause not in ("lost", "down") or step.neighbor is None:
        return not any(step.node in reached for reached in others)
    if step.node in {row.node for row in own} and along[step.node] == {step.neighbor}:
        return True  # None of its frames came to the only neighbor that asks for the subscriber.
    return not any(step.neighbor in reached.get(step.node, ()) for reached in others)


def _is_all(step: Step, trail: Trail, copies: int) -> bool:
    """Return whether all copies that were not delivered were dropped at the same node for the same reason."""
    return sum((row.node, row.detail) == (step.node, step.detail) for row in trail.drops) >= copies


def _reached(evidence: Evidence, sink: int, trail: Trail, starts: Collection[Row]) -> dict[int, set[int]]:
    """Return the nodes that may have had the notification for a sink, and the neighbors that had sent its query."""
    reached: dict[int, set[int]] = {}
    waiting = [row.node for row in starts]
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached[node] = {row.peer for row in _queries(evidence, node, sink)}
            waiting += [to for by, to in trail.arrivals if by == node and to in reached[node]]
    return reached


def _queries(evidence: Evidence, node: int, subscriber: int) -> list[Row]:
    rows = evidence.at("received", node, origin=subscriber)
    return [row for row in rows if row.message == "query"]


def _sinks(evidence: Evidence, pair: Pair, matched: Row) -> set[int]:
    """Return the sinks whose queries a rendezvous node stored, and the event met, when the event came to it."""
    samples = matching_of(evidence.scenario.protocol).samples
    last: dict[tuple[int, int], Row] = {}
    for row in evidence.at("query_stored", matched.node):
        if row.position < matched.position and row.value in (matched.value + 1, -1 - matched.value):
            last[row.origin, row.sequence] = row
    return {sink for (sink, _), row in last.items() if row.value > 0 and samples(row.detail, pair.published.detail)}


def _first_stored(evidence: Evidence, pair: Pair, matched: Row) -> list[Row]:
    """Return the first row by which a rendezvous node stored a query of the subscriber after an event came to it."""
    rows = _stored(evidence, pair, matched.node)
    return [row for row in rows if row.position > matched.position and row.value > 0][:1]


def _stored(evidence: Evidence, pair: Pair, node: int) -> list[Row]:
    samples = matching_of(evidence.scenario.protocol).samples
    rows = evidence.at("query_stored", node, origin=pair.subscriber)
    return [row for row in rows if samples(row.detail, pair.published.detail)]


def _without_place(evidence: Evidence, step: Step) -> Step | None:
    """Return that a node kept a message because it had no key, if its rows "key_set" show that."""
    if step.cause not in ("not_forwarded", "run_ended") and step.detail not in ("waited", "full"):
        return None
    last: dict[int, Row] = {}
    for row in evidence.at("key_set", step.node):
        if row.position < step.rows[-1].position:
            last[row.origin] = row
    if any(row.value >= 0 for row in last.values()):
        return None
    return Step("no_place", step.node, None, step.time_us, step.detail, (*last.values(), *step.rows))


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause on a rendezvous node without the query, and on a node without a key."""
    node, when = account.node, seconds(account.time_us)
    if account.cause == "not_matched":
        return (
            f"where the event came, at node {node} at {when}, no query of node {account.subscriber} was stored by "
            "then: an event is matched only with queries that are stored when it comes"
        )
    if account.cause == "no_place":
        return f"node {node}, which had it at {when}, had no place in a tree"
    return None

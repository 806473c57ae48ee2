"""Why readings were not delivered, as far as only TinyMQ can show: events meet queries at rendezvous nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from workbench.sim.evidence import Evidence, Pair, Row, Step, Trail
from workbench.sim.expected import Pairs
from workbench.sim.metrics.matching import matching_of
from workbench.sim.sentences import seconds, unheard
from workbench.sim.steps import last_outcome

CARRIERS = ("event", "notification")
HARMLESS = ("duplicate", "repeated")


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield what the network alone proves: queries need a path back."""
    yield from unheard(missing, "a query")


def last_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the last step of the event on its way to rendezvous nodes, or of the notification from there."""
    events = trail.only("event")
    matched = trail.of("event_matched")
    notifiers = [row for row in matched if _is_stored(evidence, pair, row)]
    if notifiers:
        return _of_notification(evidence, pair, trail.only("notification"), notifiers)
    step = last_outcome(evidence, events, dict.fromkeys(events.holders))
    every_tree = {row.value for row in matched} >= set(range(len(evidence.scenario.protocol.roots)))
    if matched and (every_tree or step is None or step.cause == "not_forwarded"):
        last = matched[-1]
        later = _first_stored(evidence, pair, last)
        return Step("not_matched", last.node, None, last.time_us, "", (*matched, *later))
    homeless = None if step is None else _without_place(evidence, step)
    return homeless or step


def _of_notification(evidence: Evidence, pair: Pair, trail: Trail, notifiers: list[Row]) -> Step | None:
    """Return the last step of a notification on its way from the rendezvous nodes that sent it."""
    starts = [row.node for row in notifiers]
    along = _reached(evidence, pair, trail, starts, True)
    step = last_outcome(evidence, trail, along)
    if step is None or step.cause == "not_forwarded":
        everywhere = _reached(evidence, pair, trail, starts, False)
        step = last_outcome(evidence, trail, everywhere) or step
    if step is None and not trail.of("sent"):
        last = notifiers[-1]
        step = Step("not_forwarded", last.node, None, last.time_us, "", (last,))
    return None if step is None else _without_place(evidence, step) or step


def _reached(
    evidence: Evidence, pair: Pair, trail: Trail, starts: Collection[int], on_path: bool
) -> dict[int, set[int] | None]:
    """Return the nodes that had the notification; ``on_path``: by neighbors that had sent the subscriber's query."""
    reached: dict[int, set[int] | None] = {}
    waiting = list(starts)
    after: dict[int, list[int]] = {}
    for sender, receiver in trail.arrivals:
        after.setdefault(sender, []).append(receiver)
    while waiting:
        node = waiting.pop()
        if node in reached:
            continue
        senders = {row.peer for row in _queries(evidence, node, pair.subscriber)} if on_path else None
        reached[node] = senders
        waiting += [one for one in after.get(node, ()) if senders is None or one in senders]
    return reached


def _queries(evidence: Evidence, node: int, subscriber: int) -> list[Row]:
    rows = evidence.at("received", node, origin=subscriber)
    return [row for row in rows if row.message == "query"]


def _is_stored(evidence: Evidence, pair: Pair, matched: Row) -> bool:
    """Return whether a rendezvous node stored a query of the subscriber when an event came to it."""
    last: dict[int, Row] = {}
    for row in _stored(evidence, pair, matched.node):
        if row.index < matched.index and abs(row.value) == matched.value + 1:
            last[row.sequence] = row
    return any(row.value > 0 for row in last.values())


def _first_stored(evidence: Evidence, pair: Pair, matched: Row) -> list[Row]:
    """Return the first row by which a rendezvous node stored a query of the subscriber after an event came to it."""
    rows = _stored(evidence, pair, matched.node)
    return [row for row in rows if row.index > matched.index and row.value > 0][:1]


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
        if row.index < step.rows[-1].index:
            last[row.origin] = row
    if any(row.value >= 0 for row in last.values()):
        return None
    return Step("no_place", step.node, None, step.time_us, step.detail, (*last.values(), *step.rows))


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause on a rendezvous node without the query, and on a node without a key."""
    node, when = account.node, seconds(account.time_us)
    if account.cause == "not_matched":
        return (
            f"where the event came, at node {node} at {when}, no query of node {account.subscriber} was stored by then: "
            "an event is matched only with queries that are stored when it comes"
        )
    if account.cause == "no_place":
        return f"node {node}, which had it at {when}, had no place in a tree"
    return None

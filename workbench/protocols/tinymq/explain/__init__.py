"""Explanations of undelivered readings that only TinyMQ needs, because its events meet queries at rendezvous nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from workbench.analysis.evidence import Evidence, Pair, Step, Trail
from workbench.analysis.expected import Pairs
from workbench.analysis.sentences import seconds, unheard
from workbench.analysis.steps import is_last, outcomes
from workbench.protocols.tinymq.explain.copies import Copies, Copy, CopyRows
from workbench.sim.metrics.matching import matching_of
from workbench.sim.rows import Row

CARRIERS = ("event", "notification")
HARMLESS = ("duplicate", "repeated")


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield a sentence about undelivered readings whose publishers no query reaches, as no path leads there.

    ``missing``: the undelivered readings; the path that is missing leads from the subscriber to the publisher.
    """
    yield from unheard(missing, "a query")


def last_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the last step of an event on its path to rendezvous nodes, or of its notification on the path to the sink.

    Returns None if the trace proves no last step.
    """
    matched = trail.of("event_matched")
    sinks = {row.position: matching_sinks(evidence, row, pair.published.detail) for row in matched}
    copies = evidence.once(
        ("copies", pair.publisher, pair.number),
        lambda: CopyRows(evidence, trail.rows, lambda row: sorted(sinks[row.position])).copies_by_row,
    )
    if any(pair.subscriber in row_sinks for row_sinks in sinks.values()):
        return _find_last_step(evidence, trail.only("notification"), copies, {("notification", pair.subscriber)})
    events = trail.only("event")
    all_copies = frozenset[Copy]().union(*(copies[row.position] for row in events.rows))
    step = _find_last_step(evidence, events, copies, all_copies)
    is_matched_everywhere = {row.value for row in matched} >= set(range(len(evidence.scenario.protocol.roots)))
    if matched and (is_matched_everywhere or step is None or step.cause == "not_forwarded"):
        last_match = matched[-1]
        later_stored = _first_stored(evidence, pair, last_match)
        return Step("not_matched", last_match.node, None, last_match.time_us, "", (*matched, *later_stored))
    return step


def _find_last_step(
    evidence: Evidence, trail: Trail, copies: Mapping[int, Copies], own_copies: Collection[Copy]
) -> Step | None:
    """Return the last step of an event or notification that the trace proves.

    ``own_copies``: the copies of that message; ``copies``: position of a trace row -> copies to which the row may
    belong. Returns None if a row after the step may belong to one of the own copies.
    """
    steps: list[Step] = []
    for copy in own_copies:
        rows = trail.select({row.position for row in trail.rows if copy in copies[row.position]})
        steps += outcomes(evidence, rows, {row.node for row in rows.rows})
    later = trail.select({row.position for row in trail.rows if not copies[row.position].isdisjoint(own_copies)})
    for step in steps:
        end = max(row.position for row in step.rows if row.position in copies and row.time_us == step.time_us)
        if copies[end] <= set(own_copies) and is_last(later, end, lambda row: copies[row.position]):
            return _no_place_step(evidence, step) or step
    return None


def matching_sinks(evidence: Evidence, matched: Row, event: str) -> set[int]:
    """Return the sinks of those queries that a rendezvous node stored when an event arrived and that match the event.

    ``matched``: the trace row "event_matched"; ``event``: the event's attributes as text.
    """
    samples = matching_of(evidence.scenario.protocol).samples
    last_rows: dict[tuple[int, int], Row] = {}
    for row in evidence.at("query_stored", matched.node):
        if row.position < matched.position and row.value in (matched.value + 1, -1 - matched.value):
            last_rows[row.origin, row.sequence] = row
    return {sink for (sink, _), row in last_rows.items() if row.value > 0 and samples(row.detail, event)}


def _first_stored(evidence: Evidence, pair: Pair, matched: Row) -> list[Row]:
    """Return [row] with the first row after ``matched`` in which the node stored a query of the subscriber, or [].

    ``matched``: the trace row in which that node matched the event.
    """
    rows = _query_rows(evidence, pair, matched.node)
    return [row for row in rows if row.position > matched.position and row.value > 0][:1]


def _query_rows(evidence: Evidence, pair: Pair, node: int) -> list[Row]:
    samples = matching_of(evidence.scenario.protocol).samples
    rows = evidence.at("query_stored", node, origin=pair.subscriber)
    return [row for row in rows if samples(row.detail, pair.published.detail)]


def _no_place_step(evidence: Evidence, step: Step) -> Step | None:
    """Return a copy of ``step`` with the cause "no_place", or None if that is not the cause.

    It is the cause if the step's node kept the message because the node had no key in any tree.
    """
    if step.cause not in ("not_forwarded", "run_ended") and step.detail not in ("waited", "full"):
        return None
    last_rows: dict[int, Row] = {}
    for row in evidence.at("key_set", step.node):
        if row.position < step.rows[-1].position:
            last_rows[row.origin] = row
    if any(row.value >= 0 for row in last_rows.values()):
        return None
    return Step("no_place", step.node, None, step.time_us, step.detail, (*last_rows.values(), *step.rows))


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause, part of an explanation's sentence, for the causes "not_matched" and "no_place".

    ``account``: the cause of a missing reading. Returns None for other causes.
    """
    node, arrival_time = account.node, seconds(account.time_us)
    if account.cause == "not_matched":
        return (
            f"when the event reached node {node} at {arrival_time}, no query of node {account.subscriber} was stored "
            "there: an event is matched only with queries that are stored when it comes"
        )
    if account.cause == "no_place":
        return f"node {node}, which had it at {arrival_time}, had no place in a tree"
    return None

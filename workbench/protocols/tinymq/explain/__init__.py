"""TinyMQ's part of the explanations of undelivered readings: where an event or its notification ended, and why.

TinyMQ needs functions of its own, because its events are matched with queries at rendezvous nodes.
"""

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
    """Yield one sentence if arcs lead from the publisher of an undelivered reading to its subscriber, but not back.

    Then no query of the subscriber can reach the publisher.

    ``missing``: all undelivered readings, each with its publisher and its subscriber.
    """
    yield from unheard(missing, "a query")


def last_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the last step of an event on its path to rendezvous nodes, or of its notification on the path to the sink.

    If rendezvous nodes had no matching query of the subscriber, the step has the cause "not_matched". Returns None if
    the trace does not prove which step was the last. ``pair``: an undelivered reading, with its publisher and its
    subscriber; ``trail``: the trace rows about this reading.
    """
    matched_rows = trail.of("event_matched")
    sinks_by_position = {row.position: matching_sinks(evidence, row, pair.published.detail) for row in matched_rows}
    copies_by_position = evidence.once(
        ("copies", pair.publisher, pair.number),
        lambda: CopyRows(evidence, trail.rows, lambda row: sorted(sinks_by_position[row.position])).copies_by_row,
    )
    if any(pair.subscriber in row_sinks for row_sinks in sinks_by_position.values()):
        return _find_last_step(
            evidence, trail.only("notification"), copies_by_position, {("notification", pair.subscriber)}
        )
    event_trail = trail.only("event")
    all_copies = frozenset[Copy]().union(*(copies_by_position[row.position] for row in event_trail.rows))
    step = _find_last_step(evidence, event_trail, copies_by_position, all_copies)
    is_matched_everywhere = {row.value for row in matched_rows} >= set(range(len(evidence.scenario.protocol.roots)))
    if matched_rows and (is_matched_everywhere or step is None or step.cause == "not_forwarded"):
        last_match = matched_rows[-1]
        later_stored_rows = _find_late_query(evidence, pair, last_match)
        return Step("not_matched", last_match.node, None, last_match.time_us, "", (*matched_rows, *later_stored_rows))
    return step


def _find_last_step(
    evidence: Evidence, trail: Trail, copies: Mapping[int, Copies], own_copies: Collection[Copy]
) -> Step | None:
    """Return the last step of the copies ``own_copies`` of an event, or None if the trace does not prove which it was.

    A copy is the event in one tree, or its notification to one sink. A step is proven to be the last if no later trace
    row may belong to one of ``own_copies``.

    ``trail``: the trace rows about the event, or about its notifications; ``copies``: {position of a trace row: copies
    to which the row may belong}.
    """
    steps: list[Step] = []
    for event_copy in own_copies:
        copy_trail = trail.select({row.position for row in trail.rows if event_copy in copies[row.position]})
        steps += outcomes(evidence, copy_trail, {row.node for row in copy_trail.rows})
    possible_trail = trail.select(
        {row.position for row in trail.rows if not copies[row.position].isdisjoint(own_copies)}
    )
    for step in steps:
        last_position = max(row.position for row in step.rows if row.position in copies and row.time_us == step.time_us)
        if copies[last_position] <= set(own_copies) and is_last(
            possible_trail, last_position, lambda row: copies[row.position]
        ):
            return _explain_missing_key(evidence, step) or step
    return None


def matching_sinks(evidence: Evidence, matched: Row, event: str) -> set[int]:
    """Return the sinks whose queries, stored at a rendezvous node, matched an event. Each must get a notification.

    ``matched``: the trace row "event_matched" of this node; ``event``: the event's attributes as text.
    """
    matches_event = matching_of(evidence.scenario.protocol).samples
    last_rows: dict[tuple[int, int], Row] = {}
    for stored_row in evidence.at("query_stored", matched.node):
        if stored_row.position < matched.position and stored_row.value in (matched.value + 1, -1 - matched.value):
            last_rows[stored_row.origin, stored_row.sequence] = stored_row
    return {
        sink
        for (sink, _), stored_row in last_rows.items()
        if stored_row.value > 0 and matches_event(stored_row.detail, event)
    }


def _find_late_query(evidence: Evidence, pair: Pair, matched: Row) -> list[Row]:
    """Return [trace row of the first query that a rendezvous node stored too late for an event], or [].

    Only matching queries from the subscriber of ``pair`` count. A query is too late if the node stored it after
    matching the event with its stored queries. ``matched``: the trace row "event_matched" of the node.
    """
    rows = _query_rows(evidence, pair, matched.node)
    return [row for row in rows if row.position > matched.position and row.value > 0][:1]


def _query_rows(evidence: Evidence, pair: Pair, node: int) -> list[Row]:
    matches_event = matching_of(evidence.scenario.protocol).samples
    rows = evidence.at("query_stored", node, origin=pair.subscriber)
    return [row for row in rows if matches_event(row.detail, pair.published.detail)]


def _explain_missing_key(evidence: Evidence, step: Step) -> Step | None:
    """Return a copy of ``step`` with the cause "no_place" if its node kept a message for lack of a key, else None.

    A node without a key in any tree keeps its messages instead of sending them. ``step``: the last step of a message.
    """
    if step.cause not in ("not_forwarded", "run_ended") and step.detail not in ("waited", "full"):
        return None
    last_rows: dict[int, Row] = {}
    for key_row in evidence.at("key_set", step.node):
        if key_row.position < step.rows[-1].position:
            last_rows[key_row.origin] = key_row
    if any(key_row.value >= 0 for key_row in last_rows.values()):
        return None
    return Step("no_place", step.node, None, step.time_us, step.detail, (*last_rows.values(), *step.rows))


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause that explains the cause "not_matched" or "no_place" of a missing reading, else None.

    "not_matched": the rendezvous node had no matching query when the event came; "no_place": a node kept the message,
    because the node had no key (position) in any tree. The clause is part of a sentence of `run.explain`. ``account``:
    a record of the missing reading's cause, node and time.
    """
    node, arrival_time = account.node, seconds(account.time_us)
    if account.cause == "not_matched":
        return (
            f"when the event reached node {node} at {arrival_time}, no query of node {account.subscriber} was stored "
            "there: an event is matched only with queries that are stored when it comes"
        )
    if account.cause == "no_place":
        return f"node {node}, which had it at {arrival_time}, had no position in a tree"
    return None

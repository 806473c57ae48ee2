"""Accounts of expected readings: each states that a reading was delivered, or where and why it was lost.

    for account in accounts(run):
        print(account.cause, account.node, account.rows)

Theory of operation
    The search follows a reading through the frames that carry it (`analysis/evidence.py`), to the last event that the
    trace proves, a `Step`. If every node forwards readings to all neighbors, the search looks at the shortest paths to
    the subscriber from the nodes that had the reading; the step is the event that stopped the reading on the first hop
    of a path. If the protocol selects paths, the module named by its class attribute ``explain`` follows the messages.
    If no step is found, the cause is "not_proven". The protocol's module may define

    CARRIERS                             names of messages that carry readings; default: those that nodes originate
    HARMLESS                             reasons of drops that end only a redundant copy; default: ("duplicate",)
    last_step(evidence, pair, trail)     the `Step`, or None if no step is proven

Limits
    If a reading is lost in several places, its account names only one: for a broadcast the loss nearest to the
    subscriber, otherwise the last loss. The cause is "not_proven" if the trace does not distinguish the copies for
    several subscribers, or if a later row may show the reading in transit.

Cost
    The cost of `workbench.analysis.expected`, a pass over the trace, and for each missing reading a scan of its rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.analysis.evidence import Evidence, Pair, Step, Trail
from workbench.analysis.expected import NEVER, Expected, expected
from workbench.analysis.steps import broadcast_step, routed_step
from workbench.columns import argsort, take_rows
from workbench.sim.rows import Columns, Row

# Each cause, and the rows that prove it. X is the account's node, Y its neighbor, s the subscriber. X "had the reading"
# if X is the publisher and sent its first message (originated), or received a message that carries it.
CAUSES: Mapping[str, str] = {
    "delivered": "the row delivered at s",
    "lost": "a row lost at Y with peer X, who had the reading; detail: link, collision, half_duplex or jammed",
    "down": "a row lost at Y with peer X, detail down; without Y a row given_up at X, detail down",
    "out_of_range": "a row sent at X, at a time at which the scenario has no arc from X to Y",
    "saturated": "a row given_up at X, detail channel_busy; or X was to send the reading, sent other frames, and ended",
    "run_ended": "X was to send the reading, and no frame of X with it went out or was given up before the run ended",
    "chance": "a row dropped at X, detail chance",
    "ttl": "a row dropped at X, detail ttl or hops",
    "filtered": "a row dropped at X, detail filter; or rows filtered before, and the row of what X did with the rest",
    "evicted": "a row by which X evicted the interest or query of s, or a part of the reading",
    "expired": "a row by which X's entry for s expired or was removed, before X had the reading",
    "dropped": "a row dropped at X; detail: its reason",
    "incomplete": "the last row innovative or received at X, who never held the whole reading",
    "too_late": "the row received at s, and the row by which the subscription had ended or from which it follows",
    "disconnected": "rows failed at the cut from X to Y: no path in time led from the publisher to s from time_us on "
    "(the row published), or from s to the node of the other rows before time_us; detail: which of the two",
    "not_asked": "the row published or received at X, which had received no subscription of s by then",
    "no_room": "the row interest_cached at X for s, before the row published or received, and no gradient set for s",
    "no_base": "a row dropped at X, detail no_base: interests from Y that X could not apply, and none since",
    "no_link": "no active links led from holders to s, and that of X to Y was not active, by its last row link_set "
    "before (detail: its state; never: without a row)",
    "no_place": "X had the reading and had no key, by its last row key_set, if there is one",
    "not_matched": "the rows event_matched at X, where no query of s was stored by then",
    "not_forwarded": "the first row received at X, which sent nothing of the reading afterwards",
    "no_way_on": "the row received at X from Y, and the row gradient_set: the gradients of X for s led back to Y alone",
    "not_proven": "no rows",
}
# Causes for which the evidence is a missing event. If an outage made the event impossible, the outage is the better
# cause.
_ABSENCES = frozenset(("not_asked", "no_link", "no_place", "not_matched", "not_forwarded", "expired", "no_room"))
_READINGS_PER_CALL = 16


class Reading(NamedTuple):
    """The identity of a reading: the address of its publisher, and its number among the publisher's publications."""

    publisher: int
    number: int


class Account(NamedTuple):
    """The outcome of a reading that a subscription expected.

    reading, published_us           the reading, and the time at which it was published
    subscriber, subscription        address of the node that subscribed, and the subscription's id at this node
    delivered_us                    the time of the first delivery, or None if the reading was not delivered
    cause                           a key of CAUSES, such as "lost"
    node                            address of the node of the last event that the trace proves
    neighbor                        address of the other node in this event, such as a lost frame's receiver, or None
    time_us                         the time of this event
    detail                          the reason of the loss in the trace row of this event, or ""
    rows                            positions of the trace rows that prove the cause, ascending
    """

    reading: Reading
    published_us: int
    subscriber: int
    subscription: int
    delivered_us: int | None
    cause: str
    node: int
    neighbor: int | None
    time_us: int
    detail: str
    rows: tuple[int, ...]


def accounts(run: Any) -> list[Account]:
    """Return an `Account` for each reading that a subscription expected: its delivery, or the cause of its loss.

    The accounts are sorted by subscriber, subscription and time of publication. A reading that a filter dropped has an
    account too, although the metrics do not count it as expected.
    Raises ScenarioError if the run has no trace.
    """
    trace_columns = Columns(run.trace)
    expectations = expected(run.scenario, trace_columns)
    expected_pairs = take_rows(expectations.pairs, expectations.pairs.hops >= 0)
    all_accounts = _account_for_delivered(
        trace_columns, expectations, take_rows(expected_pairs, expected_pairs.delivery != NEVER)
    )
    all_accounts += missing(run, expectations)
    return sorted(all_accounts, key=lambda account: (account.subscriber, account.subscription, account.published_us))


def missing(
    run: Any, expectations: Expected | None = None, most: int | None = None, on_progress: Callable[[], Any] = bool
) -> list[Account]:
    """Return an `Account`, with the cause of the loss, for each expected reading that was not delivered.

    The accounts are in the order of publication.

    ``expectations``: the result of `expected` for this run; None to compute it. ``most``: return only the accounts of
    the ``most`` readings published last; None for all. ``on_progress`` is called regularly; an error that it raises
    ends the search.
    """
    expectations = expectations or expected(run.scenario, Columns(run.trace))
    missing_pairs = expectations.missing
    by_time = argsort(expectations.publications.time_us[missing_pairs.publication])
    missing_pairs = take_rows(missing_pairs, by_time[max(0, len(by_time) - (len(by_time) if most is None else most)) :])
    if not len(missing_pairs.publication):
        return []
    evidence, last_step = _collect_evidence(run.scenario, run.trace)
    undelivered = _make_pairs(evidence, expectations, missing_pairs)
    evidence.follow({(pair.publisher, pair.number) for pair in undelivered})
    found_accounts = []
    for pair_index, pair in enumerate(undelivered):
        if pair_index % _READINGS_PER_CALL == 0:
            on_progress()
        found_accounts.append(_account_for_missing(evidence, pair, last_step))
    return found_accounts


# Delivered


def _account_for_delivered(trace: Columns, expectations: Expected, pairs: Any) -> list[Account]:
    delivery_rows = trace.where(event="delivered")[pairs.delivery]
    subscriptions, publications = expectations.subscriptions, expectations.publications
    field_columns = (
        publications.node[pairs.publication],
        publications.number[pairs.publication],
        publications.time_us[pairs.publication],
        subscriptions.node[pairs.subscription],
        subscriptions.number[pairs.subscription],
        trace["time_us"][delivery_rows],
        delivery_rows,
    )
    return [
        Account(
            Reading(publisher, reading_number),
            time,
            node,
            subscription_number,
            delivered_us,
            "delivered",
            node,
            None,
            delivered_us,
            "",
            (delivery_index,),
        )
        for publisher, reading_number, time, node, subscription_number, delivered_us, delivery_index in zip(
            *(column.tolist() for column in field_columns), strict=True
        )
    ]


# Missing


def module_of(scenario: Any) -> Any:
    """Return the protocol's module for explaining losses, or None; its class attribute ``explain`` names the module."""
    module_name = scenario.protocol.explain
    return importlib.import_module(module_name) if module_name else None


LastStep = Callable[[Evidence, Pair, Trail], Step | None]


def _collect_evidence(scenario: Any, table: pa.Table) -> tuple[Evidence, LastStep]:
    module = module_of(scenario)
    harmless = getattr(module, "HARMLESS", ("duplicate",))
    evidence = Evidence(scenario, table, getattr(module, "CARRIERS", ()), harmless)
    default_last_step = broadcast_step if scenario.protocol.disseminates else routed_step
    return evidence, getattr(module, "last_step", default_last_step)


def _make_pairs(evidence: Evidence, expectations: Expected, pairs: Any) -> list[Pair]:
    subscriptions, publications = expectations.subscriptions, expectations.publications
    # If a number was used again, its last publication counts, as in the metrics.
    publish_rows = {(row.node, row.sequence): row for row in evidence.of("published")}
    subscribe_rows = {(row.node, row.sequence): row for row in evidence.of("subscribed")}
    unsubscribe_rows = {(row.node, row.sequence): row for row in reversed(evidence.of("unsubscribed"))}
    field_columns = (
        publications.node[pairs.publication],
        publications.number[pairs.publication],
        subscriptions.node[pairs.subscription],
        subscriptions.number[pairs.subscription],
        np.minimum(subscriptions.last_us[pairs.subscription], evidence.end_us),
    )
    return [
        Pair(
            publisher,
            reading_number,
            node,
            publish_rows[publisher, reading_number],
            subscribe_rows[node, subscription_number],
            ended_us,
            unsubscribe_rows.get((node, subscription_number)),
        )
        for publisher, reading_number, node, subscription_number, ended_us in zip(
            *(column.tolist() for column in field_columns), strict=True
        )
    ]


def _account_for_missing(evidence: Evidence, pair: Pair, last_step: LastStep) -> Account:
    trail = evidence.trail(pair.publisher, pair.number)
    loss_step = _find_late_arrival(evidence, pair, trail) or last_step(evidence, pair, trail)
    if loss_step is None or loss_step.cause in _ABSENCES:
        loss_step = _find_disconnection(evidence, pair, loss_step) or loss_step
    if loss_step is None:
        loss_step = Step("not_proven", pair.publisher, None, pair.published.time_us, "", ())
    proof = loss_step.rows
    if loss_step.cause in _ABSENCES and loss_step.node == pair.publisher:
        proof = (pair.published, *proof)
    proof_positions = tuple(sorted({row.position for row in proof}))
    reading = Reading(pair.publisher, pair.number)
    leading_fields = reading, pair.published.time_us, pair.subscriber, pair.subscribed.sequence, None
    return Account(
        *leading_fields,
        loss_step.cause,
        loss_step.node,
        loss_step.neighbor,
        loss_step.time_us,
        loss_step.detail,
        proof_positions,
    )


def _find_late_arrival(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the `Step` "too_late" if the subscriber got the whole reading after its subscription ended, else None.

    ``trail``: the trace rows of the reading.
    """
    held_rows = trail.at("held", pair.subscriber)
    if held_rows and pair.subscriber != pair.publisher:
        first_held = held_rows[0]
        if first_held.time_us >= pair.ended_us:
            proof = pair.ended or pair.subscribed
            return Step("too_late", pair.subscriber, None, first_held.time_us, "", (proof, first_held))
    return None


def _find_disconnection(evidence: Evidence, pair: Pair, step: Step | None) -> Step | None:
    """Return the `Step` "disconnected" if failed nodes or missing arcs separated publisher and subscriber, else None.

    They were separated in two cases. The reading could not travel from the publisher to the subscriber in time. Or the
    subscription could not travel from the subscriber to the node of ``step`` before the time of ``step``.

    ``step``: the last event of the reading that the trace proves, or None.
    """
    end_us = min(pair.ended_us, evidence.end_us)
    reached_from_publisher = evidence.reached(pair.publisher, pair.published.time_us, end_us)
    if pair.subscriber not in reached_from_publisher:
        times_us = pair.published.time_us, end_us
        return _make_cut_step(
            evidence, reached_from_publisher, pair.subscriber, pair, times_us, "to the subscriber", (pair.published,)
        )
    if step is None or evidence.scenario.protocol.disseminates:
        return None
    reached_from_subscriber = evidence.reached(pair.subscriber, pair.subscribed.time_us, step.time_us)
    if step.node not in reached_from_subscriber:
        times_us = step.time_us, step.time_us
        earlier_rows = tuple(row for row in step.rows if row.time_us <= step.time_us)
        return _make_cut_step(
            evidence, reached_from_subscriber, step.node, pair, times_us, "from the subscriber", earlier_rows
        )
    return None


def _make_cut_step(
    evidence: Evidence,
    reached: Mapping[int, int],
    goal: int,
    pair: Pair,
    times_us: tuple[int, int],
    detail: str,
    proof: tuple[Row, ...],
) -> Step:
    """Return the `Step` with the cause "disconnected": no message could reach the node ``goal``.

    ``reached``: {node that a message could reach: earliest time of its arrival in µs}. ``times_us``: (time of the step,
    end of the period whose outages are part of the proof). ``detail``: "to the subscriber" or "from the subscriber".
    ``proof``: rows that prove the step in addition to the outages.
    """
    cut_arcs = list(evidence.crossings(reached, goal))
    outages = {
        row.position: row
        for node, from_us in reached.items()
        for neighbor in evidence.graph.successors(node)
        if neighbor not in reached
        for row in evidence.outages_between(node, neighbor, from_us, times_us[1])
    }
    start_node = pair.publisher if detail == "to the subscriber" else pair.subscriber
    node, neighbor = (cut_arcs[0][0], cut_arcs[0][1]) if cut_arcs else (start_node, None)
    return Step("disconnected", node, neighbor, times_us[0], detail, (*proof, *outages.values()))

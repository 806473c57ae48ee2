"""Functions that explain why a reading was not delivered over DPS; `analysis.explain` calls them.

Publications travel only over active links with matching interests, so a missing link or interest stops them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from workbench.analysis.evidence import Evidence, Pair, Step, Trail
from workbench.analysis.expected import Pairs
from workbench.analysis.sentences import seconds, unheard
from workbench.protocols.dps.publications import NAME
from workbench.protocols.dps.rules import takes_publications
from workbench.sim.rows import Row

CARRIERS = (NAME,)
HARMLESS = ("duplicate", "stale", "full")
# Drop reasons of a node without an interested neighbor: the explanation names the missing link or interest.
_NO_INTEREST_REASONS = frozenset(("dead_end", "no_match", "out_of_range"))


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield a sentence if arcs lead from a publisher to a subscriber but not back, so that no interests arrive.

    An arc is a directed radio link. ``missing``: pairs of a publication and a subscription that did not get it.
    ``scenario`` is not used.
    """
    yield from unheard(missing, "an interest")


def last_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the step (trace event) at which a reading stopped on its path to a subscriber, or None.

    ``evidence``: the trace of the run. ``pair``: the publication of the reading, and the subscription that did not get
    it. ``trail``: the trace rows of the reading at each node.

    The path is the shortest one over active links from a node that received the reading. If active links do not lead
    to the subscriber, the rest of the path is over arcs (directed radio links). If arcs do not lead there either, the
    result is None. If the reading arrived at the subscriber's node, but not at the subscription, the result is its drop
    or loss at this node, or None if the trace shows neither.
    """
    holders = trail.holders
    if pair.subscriber in holders:
        return trail.outcome(pair.subscriber, ())
    reading_links = _Links(evidence, holders, pair.published)
    first_hops = reading_links.first_hops(pair.subscriber)
    first_hop = first_hops.get(pair.subscriber)
    if first_hop is None:
        # The path over active links ends where the shortest path over arcs to the subscriber begins.
        first_arcs = list(evidence.crossings(first_hops, pair.subscriber))
        if not first_arcs:
            return None
        last_holder, neighbor, _ = max(first_arcs, key=lambda crossing: reading_links.receipt(crossing[0]).position)
        first_hop = first_hops[last_holder]
        if first_hop is None:
            return reading_links.missing_link(last_holder, neighbor)
    last_holder, neighbor = first_hop
    receipt = reading_links.receipt(last_holder)
    outcome_step = trail.outcome(last_holder, (neighbor,))
    if outcome_step is not None and outcome_step.detail not in _NO_INTEREST_REASONS:
        return outcome_step
    if (
        not trail.at("forwarded", last_holder)
        and not trail.at("sent", last_holder)
        and last_holder != pair.publisher
        and outcome_step is None
    ):
        return Step("run_ended", last_holder, None, receipt.time_us, "", (receipt,))
    return _explain_missing_interest(evidence, last_holder, neighbor, receipt)


class _Links:
    """The links that each node had at the time when one particular reading arrived at that node.

    ``holders`` is {node: trace row of the reading's arrival}, for the nodes that received the reading. ``published`` is
    the trace row in which the reading was published.
    """

    def __init__(self, evidence: Evidence, holders: dict[int, Row], published: Row) -> None:
        self._evidence = evidence
        self._holders = holders
        self._last_position = max((row.position for row in holders.values()), default=published.position)
        self._published = published

    def receipt(self, node: int) -> Row:
        """Return the trace row of the reading's arrival at a node, or of its publication if it did not arrive there."""
        return self._holders.get(node, self._published)

    def last_link_rows(self, node: int) -> dict[int, Row]:
        """Return {neighbor: trace row of the last state change of their link} for the links of a node.

        Changes after the reading's arrival at the node are ignored. If the reading did not arrive there, changes after
        the last arrival of the reading at any node are ignored.
        """
        row_count = self._count_rows(node)
        return self._evidence.once(
            ("link_set", node, row_count),
            lambda: {row.peer: row for row in self._evidence.at("link_set", node)[:row_count]},
        )

    def _count_rows(self, node: int) -> int:
        """Return how many "link_set" trace rows (changes of links) of a node precede the arrival of the reading there.

        If the reading never arrived at the node, the rows before the last arrival of the reading at any node are
        counted.
        """
        end_position = self._holders[node].position if node in self._holders else self._last_position
        positions = self._evidence.once(
            ("link_positions", node), lambda: [row.position for row in self._evidence.at("link_set", node)]
        )
        return bisect_left(positions, end_position)

    def _active_neighbors(self, node: int) -> list[int]:
        """Return the neighbors that had an active link to a node when the reading arrived at the node (cached)."""
        return self._evidence.once(
            ("active", node, self._count_rows(node)),
            lambda: [neighbor for neighbor, row in self.last_link_rows(node).items() if takes_publications(row.value)],
        )

    def first_hops(self, subscriber: int) -> dict[int, tuple[int, int] | None]:
        """Return {node: (holder, neighbor)}: the first hop of a shortest path over active links to each node.

        A holder is a node that received the reading. The path begins at the nearest holder and continues with
        ``neighbor``. The value of a holder itself is None. Nodes that no path reaches are missing from the result. The
        search ends when it reaches ``subscriber``, so nodes that are farther away may be missing, too.
        """
        first_hops: dict[int, tuple[int, int] | None] = dict.fromkeys(self._holders or (self._published.node,))
        reached_nodes = list(first_hops)
        for node in reached_nodes:  # The list grows meanwhile: breadth-first search.
            for neighbor in self._active_neighbors(node):
                if neighbor not in first_hops:
                    first_hops[neighbor] = first_hops[node] or (node, neighbor)
                    reached_nodes.append(neighbor)
            if subscriber in first_hops:
                break
        return first_hops

    def missing_link(self, node: int, neighbor: int) -> Step:
        """Return the step (trace event) at which a reading stopped: ``node`` had no active link to ``neighbor``."""
        receipt, link_row = self.receipt(node), self.last_link_rows(node).get(neighbor)
        state_text = "never" if link_row is None else link_row.detail
        return Step(
            "no_link",
            node,
            neighbor,
            receipt.time_us,
            state_text,
            (receipt, *(() if link_row is None else (link_row,))),
        )


def _explain_missing_interest(evidence: Evidence, node: int, neighbor: int, receipt: Row) -> Step:
    """Return the step for a reading that stopped at ``node``, which had no matching interests from ``neighbor``.

    A step explains with a trace event why the reading stopped. Its cause is "no_base" if ``node`` dropped a change
    of the interests because it lacked the interests before the change; otherwise "not_asked". ``receipt``: the
    trace row of the reading's arrival at ``node``. ``evidence``: the trace of the run.
    """
    last_interests_rows = [
        interests_row
        for interests_row in evidence.at("interests_set", node, peer=neighbor)
        if interests_row.position < receipt.position
    ][-1:]
    interests_position = last_interests_rows[0].position if last_interests_rows else -1
    no_base_drops = [
        interests_row
        for interests_row in evidence.at("dropped", node, peer=neighbor)
        if interests_row.detail == "no_base" and interests_position < interests_row.position < receipt.position
    ]
    if no_base_drops:
        return Step("no_base", node, neighbor, receipt.time_us, "no_base", (no_base_drops[-1], receipt))
    return Step("not_asked", node, neighbor, receipt.time_us, "", (*last_interests_rows, receipt))


def clause(scenario: Any, account: Any) -> str | None:
    """Return a clause, for use in a sentence, that explains why a reading was lost.

    ``account`` has the cause of the loss, the node, neighbor and time at which it happened, a detail, and the
    subscriber. DPS explains the causes "not_asked" and "no_base" (missing interests) and "no_link" (a missing link).
    For any other cause the result is None.
    """
    node, neighbor, subscriber = account.node, account.neighbor, account.subscriber
    time_text = seconds(account.time_us)
    if account.cause == "not_asked":
        return (
            f"node {node} did not send it to node {neighbor} at {time_text}, on the path to node {subscriber}: "
            f"node {node} had received no matching interest from node {neighbor}"
        )
    if account.cause == "no_link":
        link_state = "no link existed" if account.detail == "never" else f"the link was {account.detail}"
        return f"node {node} had it last, at {time_text}; the path continues to node {neighbor}, to which {link_state}"
    if account.cause == "no_base":
        return (
            f"node {node} did not send it to node {neighbor} at {time_text}: node {neighbor} had sent a change of its "
            f"interests, and node {node} lacked the interests before the change (no_base)"
        )
    return None

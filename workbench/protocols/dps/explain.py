"""Why readings were not delivered, as far as only DPS can show: publications go over active links that ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.protocols.dps.publications import NAME
from workbench.protocols.dps.rules import takes_publications
from workbench.sim.evidence import Evidence, Pair, Row, Step, Trail
from workbench.sim.expected import Pairs
from workbench.sim.sentences import seconds, unheard

CARRIERS = (NAME,)
HARMLESS = ("duplicate", "stale", "full")
# A node drops a publication for these where no neighbor asks for it: that is what is to be explained.
_UNASKED = frozenset(("dead_end", "no_match", "out_of_range"))


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield what the network alone proves: interests need a path back."""
    yield from unheard(missing, "an interest")


def last_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the last step on the way over active links to the subscriber."""
    holders = trail.holders
    if pair.subscriber in holders:
        return trail.outcome(pair.subscriber, ())
    links = _Links(evidence, holders, pair.published)
    path = links.path(pair.subscriber)
    if path is None:
        return _without_link(evidence, pair, links)
    node, neighbor = path
    step = trail.outcome(node, (neighbor,))
    if step is not None and step.detail not in _UNASKED:
        return step
    if not trail.at("forwarded", node) and not trail.at("sent", node) and node != pair.publisher and step is None:
        row = holders[node]
        return Step("run_ended", node, None, row.time_us, "", (row,))
    return _unasked(evidence, node, neighbor, links.when(node))


class _Links:
    """The active links of nodes at the time of one reading."""

    def __init__(self, evidence: Evidence, holders: dict[int, Row], published: Row) -> None:
        self._evidence = evidence
        self.holders = holders
        self._last = max((row.index for row in holders.values()), default=published.index)
        self._published = published
        self.reached: set[int] = set()

    def when(self, node: int) -> Row:
        """Return the row with which a node came to hold the reading."""
        return self.holders.get(node, self._published)

    def state(self, node: int) -> dict[int, Row]:
        """Return neighbor -> the last row "link_set" of a node before it held the reading, or the last node did."""
        index = self.holders[node].index if node in self.holders else self._last
        return {row.peer: row for row in self._evidence.at("link_set", node) if row.index < index}

    def path(self, subscriber: int) -> tuple[int, int] | None:
        """Return (holder, neighbor) where the way over active links to the subscriber begins, or None without one."""
        begin: dict[int, tuple[int, int] | None] = dict.fromkeys(self.holders)
        waiting = list(self.holders)
        for node in waiting:  # Grows meanwhile: breadth first.
            for neighbor, row in self.state(node).items():
                if takes_publications(row.value) and neighbor not in begin:
                    begin[neighbor] = begin[node] or (node, neighbor)
                    waiting.append(neighbor)
            if subscriber in begin:
                break
        self.reached = set(begin)
        return begin.get(subscriber)


def _without_link(evidence: Evidence, pair: Pair, links: _Links) -> Step | None:
    """Return the holder from which the way to the subscriber begins, where no active links lead there."""
    for node, neighbor, _ in evidence.crossings(links.reached or {pair.publisher}, pair.subscriber):
        if node in links.holders:
            when, last = links.when(node), links.state(node).get(neighbor)
            detail = "never" if last is None else last.detail
            return Step("no_link", node, neighbor, when.time_us, detail, (when, *(() if last is None else (last,))))
    cut = next(evidence.crossings(links.holders or {pair.publisher}, pair.subscriber), None)
    if cut is None:
        return None
    node, when = cut[0], links.when(cut[0])
    states = links.state(node).values()
    detail = "parts" if any(takes_publications(row.value) for row in states) else "none"
    return Step("no_link", node, None, when.time_us, detail, (when, *states))


def _unasked(evidence: Evidence, node: int, neighbor: int, when: Row) -> Step:
    """Return why a node did not send a publication over an active link: no interests had come from there that ask."""
    interests = [row for row in evidence.at("interests_set", node, peer=neighbor) if row.index < when.index][-1:]
    since = interests[0].index if interests else -1
    refused = [
        row
        for row in evidence.at("dropped", node, peer=neighbor)
        if row.detail == "no_base" and since < row.index < when.index
    ]
    if refused:
        return Step("no_base", node, neighbor, when.time_us, "no_base", (refused[-1], when))
    return Step("not_asked", node, neighbor, when.time_us, "", (*interests, when))


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause on links and the interests behind them."""
    node, neighbor, subscriber = account.node, account.neighbor, account.subscriber
    when = seconds(account.time_us)
    if account.cause == "not_asked":
        return (
            f"node {node} did not send it to node {neighbor} at {when}: no interest in it had come from there, where the "
            f"active links lead to node {subscriber}"
        )
    if account.cause == "no_link" and neighbor is not None:
        state = "there was no link" if account.detail == "never" else f"the link was {account.detail}"
        return f"node {node} had it last, at {when}; from there the way leads to node {neighbor}, and {state}"
    if account.cause == "no_link" and account.detail == "none":
        return f"node {node} had it last, at {when}, and no active link"
    if account.cause == "no_link":
        return (
            f"node {node} had it last, at {when}, and no chain of active links led from the nodes that had it to node "
            f"{subscriber}"
        )
    if account.cause == "no_base":
        return (
            f"node {node} did not send it to node {neighbor} at {when}: it could not apply the change of interests "
            f"that came from there, as it lacked the interests before (no_base)"
        )
    return None

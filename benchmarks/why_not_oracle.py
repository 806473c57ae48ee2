"""An oracle for the accounts of undelivered readings: ``benchmarks/why_not_oracle.py [--networks 300] [--seed N]``.

Random networks are drawn (`why_not_networks.py`), and each account of an expected reading is compared with a plain
evaluation of the trace's rows (`why_not_facts.py`). An account is false if a row contradicts it, or if the reading went
further than the account claims. The program prints the false accounts with the arguments that play them again, and a
table by protocol. The exit code is 1 if an account is false, or if more than 2 % of the undelivered readings are
"not_proven".

Checks
    every account     its reading is expected; its cause is "delivered" if and only if the reading was delivered; its
                      rows exist and agree with it
    the last step     node X had the reading, and no later frame carried this copy on from X
        floods        (flooding, gossip, coded diffusion, DPS) the step leads to a node that never had the reading, and
                      arcs lead from there to the subscriber over nodes that never had it
        unicast       (diffusion, TinyMQ) no later row shows the reading on its path to this subscriber
    the cause         a method of `Check` for each cause
"""

import argparse
import math
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import networkx as nx
from tables import table
from why_not_facts import CARRIERS, Copy, Expected, Facts, Hop, Life, Row
from why_not_networks import PROTOCOLS, draw

from workbench.attributes.text import parse
from workbench.protocols.dps.automaton import ACTIVE

UNICAST = ("Diffusion", "TinyMQ", "Pub2Sub")
MOST_NOT_PROVEN = 0.02
# Reasons of drops that end no copy, or a copy that the node has already.
HARMLESS = {
    "Flooding": {"duplicate"},
    "Gossip": {"duplicate"},
    "Diffusion": {"duplicate"},
    "CodedDiffusion": {"duplicate", "decoded", "not_innovative"},
    "TinyMQ": {"duplicate", "repeated"},
    "Pub2Sub": {"duplicate", "repeated"},
    "DPS": {"duplicate", "stale"},
}
REASONS = {"chance": "chance", "ttl": "ttl", "filtered": "filter", "evicted": "evicted"}  # of rows "dropped"


class Falsehood(NamedTuple):
    """A contradiction between an account and the rows; ``group`` is its kind, ``sentence`` describes it."""

    group: str
    sentence: str


class Check:
    """A comparison of one account of an undelivered reading with the rows of the run.

    In the methods, X is the node of the account: the last node that had the reading, according to the account. A
    *fault* is a contradiction that a method records.
    """

    def __init__(self, facts: Facts, reading: Expected, account: Any) -> None:
        self.facts, self.reading, self.account = facts, reading, account
        self.life = Life(facts, reading)
        self.sink, self.node, self.neighbor = reading.sink, account.node, account.neighbor
        self.time_us = account.time_us
        self.proofs = [facts.rows[index] for index in account.rows]
        self.is_unicast = facts.name in UNICAST
        self.faults: list[Falsehood] = []

    def __call__(self) -> list[Falsehood]:
        """Check the account, and return the contradictions; an empty list for a right account."""
        cause = self.account.cause
        if cause == "not_proven":
            self._expect(not self.account.rows, "rows", "not_proven has rows")
            return self.faults
        indices = list(self.account.rows)
        if not self._expect(bool(indices), "rows", f"{cause} has no rows"):
            return self.faults
        self._expect(indices == sorted(set(indices)), "rows", f"rows {indices} do not ascend")
        published_us = self.reading.published.time_us
        self._expect(published_us <= self.time_us <= self.facts.end_us, "time", f"{self.time_us} µs is not in its life")
        for row in self.proofs:
            if row.event == "published":
                self._expect(row == self.reading.published, "row", f"row {row.index} is of another reading")
            elif cause == "saturated" and row.node == self.node and row.event in ("sent", "given_up"):
                pass  # other frames that kept X busy
            elif row.message in CARRIERS[self.facts.name] and not self._is_sample(row):
                is_own = (row.origin, row.sequence) in self.reading.messages
                self._expect(is_own, "row", f"row {row.index} is of another reading")
        times = {published_us, *(row.time_us for row in self.proofs)}
        is_row = self.time_us in times or cause == "disconnected"
        self._expect(is_row, "time", f"none of its rows is of {self.time_us} µs: {sorted(times)}")
        check = getattr(self, f"_check_{cause}", None)
        if check is None:
            self._add_fault("cause", f"the oracle has no check for the cause {cause}")
        else:
            check()
        return self.faults

    def _add_fault(self, group: str, sentence: str) -> None:
        self.faults.append(Falsehood(f"{self.account.cause}: {group}", sentence))

    def _expect(self, is_true: bool, group: str, sentence: str) -> bool:
        if not is_true:
            self._add_fault(group, sentence)
        return is_true

    # Facts that several causes share

    def _find_proof(self, event: str, **fields: Any) -> Row | None:
        """Return the last of the account's rows that has this event and these fields.

        Without such a row, record a fault and return None.
        """
        for row in reversed(self.proofs):
            if row.event == event and all(getattr(row, name) == value for name, value in fields.items()):
                return row
        shown = [f"{row.event} at {row.node}, peer {row.peer}, {row.time_us} µs {row.detail}" for row in self.proofs]
        self._add_fault("row", f"none of its rows is {event} with {fields}; they are {shown}")
        return None

    def _is_carrier(self, row: Row) -> bool:
        return row in self.life.rows

    def _expect_held(self, index: int, copy: Copy | None = None) -> bool:
        """Return whether X had the reading at row ``index``; if not, record a fault.

        If ``copy`` is a piece, X must have had this piece.
        """
        holders = self.life.holders(copy.key if copy is not None and copy.name == "piece" else -1)
        return self._expect(
            holders.get(self.node, index + 1) <= index, "holder", f"node {self.node} did not have the reading by then"
        )

    def _has_path_to_sink(self, node: int, holders: Iterable[int]) -> bool:
        """Return whether arcs lead from ``node`` to the sink over nodes that never had the reading.

        ``holders`` are the nodes that had it.
        """
        others = set(holders) - {node}
        graph = self.facts.scenario.topology.subgraph(n for n in self.facts.scenario.topology if n not in others)
        return node in graph and self.sink in graph and nx.has_path(graph, node, self.sink)

    def _check_stops_at(self, row: Row, copy: Copy | None) -> None:
        """Check that the reading did not get beyond X after this row: no frame carried this copy on to another node.

        For unicast protocols also check that no later row shows the reading on its path.
        """
        if self.facts.name == "Diffusion" and self.node == self.sink:
            return  # The subscriber refuses every later copy of a reading that it dropped.
        if self.is_unicast:
            for hop in self._later_hops(row.index, copy):
                heard = [heard for heard in hop.received if not self._is_duplicate(heard)]
                if hop.sent.node == self.node and heard:
                    at = f"{hop.sent.time_us} µs"
                    self._add_fault("went on", f"node {self.node} sent it on to {heard[0].node} at {at}")
                    return
            self._check_nothing_later(row.index, copy)
            return
        key = -1 if copy is None else copy.key
        holders = self.life.holders(key)
        if self.sink == self.node:
            if self.facts.name == "CodedDiffusion" and row.detail == "expired":
                self._check_needed_later(row)
            return
        onward = [node for node in self.facts.scenario.topology.successors(self.node) if node not in holders]
        self._expect(
            any(self._has_path_to_sink(node, holders) for node in onward),
            "elsewhere",
            f"no neighbor of node {self.node} without the reading leads to node {self.sink}; {sorted(holders)} had it",
        )
        sent = [hop for hop in self.life.hops if hop.sent.node == self.node and key in (-1, hop.copy.key)]
        # A node that gave up one frame may have sent others.
        if sent and self.node != self.reading.publisher and row.event != "given_up":
            self._add_fault("went on", f"node {self.node} did send it, at {sent[0].sent.time_us} µs")

    def _later_hops(self, index: int, copy: Copy | None) -> Iterator[Hop]:
        for hop in self.life.serving():
            is_same = copy is None or copy.key is None or hop.copy.key == copy.key
            if hop.sent.index > index and is_same and not self._is_below(hop.copy, copy):
                yield hop

    def _check_nothing_later(self, index: int, copy: Copy | None) -> None:
        """Check that no row after ``index`` shows the reading on its path to this sink, or dropped at another node."""
        is_notification = any(hop.copy.name == "notification" for hop in self.life.serving())
        if is_notification and copy is not None and copy.name in ("event", "matched"):
            self._add_fault("went on", f"a notification of it for node {self.sink} was sent")
            return
        passed: set[Any] = set()
        for hop in self.life.serving():
            for row in hop.received:
                passage = self._make_passage_key(hop, row)
                is_known = self._is_harmless_at(row) or (passage in passed and self.facts.name != "Diffusion")
                passed.add(passage)
                if row.index > index and not is_known and not self._is_below(hop.copy, copy):
                    self._add_fault("later", f"node {row.node} received it at {row.time_us} µs from {row.peer}")
                    return
            for row in hop.lost:
                passage = self._make_passage_key(hop, row)
                if row.index > index and passage not in passed and not self._is_below(hop.copy, copy):
                    self._add_fault(
                        "later", f"a frame {row.peer}-{row.node} was lost at {row.time_us} µs ({row.detail})"
                    )
                    return
        for row in self.life.rows:
            if row.index <= index or row.event not in ("dropped", "given_up") or self._is_sample(row):
                continue
            if row.detail in HARMLESS[self.facts.name] or not self._is_of_sink(row):
                continue
            if not self._is_below(self.life.copy_at.get(row.index, Copy(row.message)), copy):
                self._add_fault("later", f"row {row.index}: {row.event} at {row.node}, {row.time_us} µs: {row.detail}")
                return

    def _make_passage_key(self, hop: Hop, row: Row) -> Any:
        """Return a key of a reception; a later reception with the same key does not bring the reading further."""
        return row.node if self.facts.name == "Diffusion" else (hop.sent.node, row.node, hop.copy.key)

    def _is_duplicate(self, received: Row) -> bool:
        """Return whether the receiver dropped the frame as a duplicate (diffusion only)."""
        return self.facts.name == "Diffusion" and self._is_harmless_at(received)

    def _is_of_sink(self, row: Row) -> bool:
        """Return whether a row is certainly about a copy that serves the sink.

        If no frame shows the row's copy, this is certain for an event, or if there is only one sink.
        """
        if row.index in self.life.copy_at:
            return self.life.copy_at[row.index].serves(self.sink)
        sinks = {subscribed.node for subscribed in self.facts.of["subscribed"]}
        return row.message == "event" or len(sinks) == 1

    @staticmethod
    def _is_below(other: Copy, copy: Copy | None) -> bool:
        """Return whether ``other`` is an event, while the claimed ``copy`` was already matched with a query.

        An event shows less of the path than the account, so it does not contradict the account.
        """
        return copy is not None and copy.name in ("matched", "notification") and other.name == "event"

    def _is_harmless_at(self, received: Row) -> bool:
        """Return whether the receiver dropped a received frame for a harmless reason, such as a duplicate."""
        for row in self.facts.rows[received.index + 1 :]:
            if row.time_us != received.time_us or row.event in ("sent", "received", "lost"):
                return False
            if row.node == received.node and row.event == "dropped":
                return row.detail in HARMLESS[self.facts.name]
        return False

    # Causes

    def _check_disconnected(self) -> None:
        reading, facts = self.reading, self.facts
        for row in self.proofs:
            is_right = row.event in ("failed", "published", "subscribed", "link_set")
            is_right = is_right or (row.origin, row.sequence) in reading.messages
            self._expect(is_right, "row", f"row {row.index} is {row.event}")
        if self.account.detail == "to the subscriber":
            arrival = facts.arrival_us(reading.publisher, reading.published.time_us)
            if arrival.get(self.sink, math.inf) <= self.time_us:
                self._add_fault("path", f"nodes that were up led to node {self.sink} at {arrival[self.sink]} µs")
        elif self._expect(self.account.detail == "from the subscriber", "detail", self.account.detail):
            subscribed = next(
                row
                for row in facts.of["subscribed"]
                if (row.node, row.sequence) == (self.sink, self.account.subscription)
            )
            arrival = facts.arrival_us(self.sink, subscribed.time_us)
            holders = self.life.holders()
            self._expect(
                any(arrival.get(node, math.inf) > self.time_us for node in holders),
                "path",
                f"nodes that were up led from node {self.sink} to all nodes that had the reading: {sorted(holders)}",
            )
        self._expect(arrival.get(self.node, math.inf) <= self.time_us, "cut", f"{self.node} was not reached")
        if self.neighbor is not None:
            reached = arrival.get(self.neighbor, math.inf) <= self.time_us
            self._expect(not reached, "cut", f"node {self.neighbor} was reached")
            is_arc = facts.scenario.topology.has_edge(self.node, self.neighbor)
            self._expect(is_arc, "cut", f"no arc leads from {self.node} to {self.neighbor}")

    def _check_lost(self) -> None:
        row = self._find_proof(
            "lost", node=self.neighbor, peer=self.node, time_us=self.time_us, detail=self.account.detail
        )
        self._expect(self.account.detail in ("link", "collision", "half_duplex"), "detail", self.account.detail)
        if row is not None:
            self._check_lost_row(row)

    def _check_down(self) -> None:
        if self.neighbor is None:
            self._check_given_up("down")
            return
        row = self._find_proof("lost", node=self.neighbor, peer=self.node, time_us=self.time_us, detail="down")
        if row is not None:
            self._check_lost_row(row)
            self._expect(self.facts.is_down(self.neighbor, self.time_us), "up", f"node {self.neighbor} was up")

    def _check_lost_row(self, row: Row) -> None:
        if not self._expect(self._is_carrier(row), "carrier", f"row {row.index} is of another message"):
            return
        copy = self.life.copy_at[row.index]
        self._expect(copy.serves(self.sink), "copy", f"the frame was not for node {self.sink}: {copy}")
        self._expect_held(row.index, copy)
        holders = self.life.holders(copy.key)
        if not self.is_unicast:
            if row.node in holders:
                at = self.facts.rows[holders[row.node]].time_us
                self._add_fault("went on", f"node {row.node} received it at {at} µs")
            else:
                self._expect(
                    self._has_path_to_sink(row.node, holders),
                    "elsewhere",
                    f"no arcs lead from {row.node} on to {self.sink}",
                )
                if self.facts.name == "DPS":
                    self._check_not_astray(row)
            return
        if self.facts.name == "Diffusion" and holders.get(row.node, row.index) < row.index:
            self._add_fault(
                "had it", f"node {row.node} had it at {self.facts.rows[holders[row.node]].time_us} µs already"
            )
        for hop in self.life.serving():
            if hop.sent.node == self.node and hop.copy.key == copy.key:
                for heard in hop.received:
                    if (heard.node == row.node or heard.index > row.index) and not self._is_duplicate(heard):
                        self._add_fault("went on", f"node {heard.node} received it from there at {heard.time_us} µs")
                        return
        self._check_nothing_later(row.index, copy)

    def _check_not_astray(self, row: Row) -> None:
        """Record a fault if the frame of ``row`` was on no path to the sink, but another frame with it was (DPS)."""
        others = [hop for hop in self.life.hops if (hop.sent.node, hop.sent.peer) != (self.node, row.node)]
        on_path = [hop for hop in others if self._is_meshed(hop.sent.peer, hop.sent.node, hop.sent.time_us)]
        if on_path and not self._is_meshed(row.node, self.node, row.time_us):
            frame = on_path[0].sent
            self._add_fault(
                "astray", f"no links led from {row.node} to the subscriber; {frame.node}-{frame.peer} was on a path"
            )

    def _check_given_up(self, detail: str) -> None:
        row = self._find_proof("given_up", node=self.node, time_us=self.time_us, detail=detail)
        if row is not None and self._expect(self._is_carrier(row), "carrier", f"row {row.index} is of another message"):
            self._expect_held(row.index)
            self._check_stops_at(row, Copy(row.message) if self.is_unicast else None)

    def _check_saturated(self) -> None:
        if any(row.event == "given_up" for row in self.proofs):
            self._check_given_up("channel_busy")
            return
        row = self._check_never_sent()
        if row is not None:
            own = [other for other in self.facts.rows[row.index :] if other.node == self.node]
            is_busy = any(other.event in ("sent", "given_up") for other in own)
            self._expect(is_busy, "idle", f"node {self.node} sent nothing else, and gave nothing up, until the end")

    def _check_run_ended(self) -> None:
        self._check_never_sent()

    def _check_never_sent(self) -> Row | None:
        """Check that X had the reading, and that X sent no frame with it until the end of the run.

        Return the row that shows the reading at X, or None.
        """
        names = ("originated", "forwarded", "received", "held", "published")
        rows = [row for row in self.proofs if row.event in names and row.node == self.node]
        if not self._expect(bool(rows), "row", f"no row of {names} at node {self.node}"):
            return None
        row = rows[-1]
        self._expect_held(row.index)
        later = [other for other in self._own_frames() if other.index > row.index]
        if later:
            self._add_fault("went on", f"node {self.node}: {later[0].event} at {later[0].time_us} µs")
        elif self.is_unicast:
            self._check_nothing_later(row.index, self.life.copy_at.get(row.index))
        self._expect(not self.facts.is_down(self.node, self.facts.end_us), "down", f"node {self.node} was off")
        return row

    def _own_frames(self) -> list[Row]:
        """Return the rows "sent" and "given_up" at X about copies that certainly serve the sink."""
        rows = [row for row in self.life.rows if row.node == self.node and row.event in ("sent", "given_up")]
        return [row for row in rows if self._is_of_sink(row)]

    def _check_chance(self) -> None:
        self._check_dropped_row("chance")

    def _check_ttl(self) -> None:
        self._check_dropped_row("ttl")

    def _check_filtered(self) -> None:
        if any(row.event == "dropped" and row.detail == "filter" for row in self.proofs):
            self._check_dropped_row("filter")
            return
        changed = [row for row in self.proofs if row.event == "filtered"]
        holders = self.life.holders()
        self._expect(bool(changed), "row", "no row is filtered, nor dropped by a filter")
        for row in changed:
            is_own = (row.origin, row.sequence) in self.reading.messages
            self._expect(is_own and holders.get(row.node, row.index + 1) <= row.index, "holder", f"row {row.index}")
        last = self.proofs[-1]
        self._expect(last.node == self.node and last.time_us == self.time_us, "row", f"row {last.index} is not of X")
        if self.node != self.sink:
            self._check_stops_at(last, self.life.copy_at.get(last.index))

    def _check_dropped(self) -> None:
        detail = self.account.detail
        self._expect(detail not in HARMLESS[self.facts.name], "harmless", f"a drop as {detail} ends nothing")
        self._check_dropped_row(detail)

    def _check_dropped_row(self, detail: str) -> None:
        row = self._find_proof("dropped", node=self.node, time_us=self.time_us, detail=detail)
        if row is None:
            return
        if self._is_sample(row):
            self._check_sample_dropped(row)
            return
        if not self._expect(self._is_carrier(row), "carrier", f"row {row.index} is of another message"):
            return
        copy = self.life.copy_at.get(row.index)
        self._expect_held(row.index, copy)
        if copy is not None:
            self._expect(copy.serves(self.sink), "copy", f"the frame was not for node {self.sink}: {copy}")
        self._check_stops_at(row, copy if copy is not None else (Copy(row.message) if self.is_unicast else None))

    def _is_sample(self, row: Row) -> bool:
        """Return whether a row is about a sample that its publisher dropped before a message carried it."""
        is_unnumbered = row.sequence == 0 and row.peer == -1 and row.detail in _OF_SAMPLES
        return self.facts.name == "Diffusion" and row.event == "dropped" and is_unnumbered

    def _check_sample_dropped(self, row: Row) -> None:
        """Check that a sample was never sent, and that its publisher dropped it at a right time.

        The time is after its lifetime if the row states "expired", else within its lifetime.
        """
        publisher, published_us = self.reading.publisher, self.reading.published.time_us
        self._expect(row.node == publisher == row.origin, "holder", f"node {row.node} is not the publisher")
        self._expect(not self.reading.messages, "went on", "the reading was sent")
        lifetime_us = int(self.facts.protocol.sample_lifetime_s * 1e6)
        if row.detail == "expired":
            self._expect(row.time_us >= published_us + lifetime_us, "time", "it may have waited longer")
        else:
            self._expect(published_us <= row.time_us <= published_us + lifetime_us, "time", "it did not wait then")

    def _check_evicted(self) -> None:
        removed = [row for row in self.proofs if row.event in ("interest_removed", "gradient_removed")]
        dropped = [row for row in self.proofs if row.event == "dropped"]
        if not self._expect(bool(removed or dropped), "row", "no row interest_removed, gradient_removed or dropped"):
            return
        if self.facts.name != "Diffusion":
            self._check_dropped_row("evicted")
            self._check_subscriber_eviction(dropped[-1])
            return
        for row in removed:
            self._expect(row.detail == "evicted" and row.node == self.node, "row", f"row {row.index} is {row}")
        last = max(row.index for row in [*removed, *dropped])
        moment = max([last, *(row.index for row in self.facts.of["originated"] if self._is_own(row))])
        moment = max(moment, self.reading.published.index)
        self._expect(
            self._had_interest(moment), "never there", f"node {self.node} never had the interest of node {self.sink}"
        )
        if self._find_gradients(self.node, dropped[-1].index if dropped else moment):
            self._add_fault("asked", f"node {self.node} had a gradient for node {self.sink}")
        if dropped:
            row = dropped[-1]
            self._expect(self._is_carrier(row), "carrier", f"row {row.index} is of another message")
            self._expect_held(row.index)
            self._check_stops_at(row, self.life.copy_at.get(row.index))

    def _check_subscriber_eviction(self, evicted: Row) -> None:
        """Check that X is the subscriber, and that it evicted parts of the reading before other parts arrived."""
        if self._expect(self.node == self.sink, "node", "a relay has already forwarded the parts that it evicts"):
            self._check_needed_later(evicted)

    def _check_needed_later(self, evicted: Row) -> None:
        """Check that the eviction was the reason: further parts arrived at the subscriber after it.

        Without later parts, the publication would have been incomplete even if no part had been evicted.
        """
        heard = [(hop.copy.key, row.index) for hop in self.life.hops for row in hop.received if row.node == self.sink]
        before = {key for key, index in heard if index < evicted.index}
        later = {key for key, index in heard if index > evicted.index}
        later -= before - {None}  # Coded packets all differ.
        self._expect(bool(later), "too few came", f"node {self.sink} received no further part after the eviction")

    def _is_own(self, row: Row) -> bool:
        """Return whether a row is at X and about a message that carries the reading."""
        return row.node == self.node and (row.origin, row.sequence) in self.reading.messages

    def _check_incomplete(self) -> None:
        self._expect(self.node == self.sink, "node", f"node {self.node} is not the subscriber")
        heard = [row for hop in self.life.hops for row in hop.received if row.node == self.sink]
        self._expect(bool(heard), "nothing came", f"node {self.sink} received no part of it")
        holders = [row for row in self.life.rows if row.event in ("held", "decoded") and row.node == self.sink]
        self._expect(not holders, "complete", f"node {self.sink} had all of it")
        for row in self.proofs:
            is_right = row.node == self.sink and row.event in ("innovative", "received", "dropped")
            self._expect(is_right and self._is_carrier(row), "row", f"row {row.index} is {row.event} at {row.node}")

    def _check_not_asked(self) -> None:
        is_shown = any(
            row == self.reading.published
            or (row.event == "originated" and self._is_own(row))
            or (row.event in ("received", "dropped") and row.node == self.node and self._is_carrier(row))
            for row in self.proofs
        )
        self._expect(is_shown, "row", f"no row shows that the reading was at node {self.node}")
        if self.facts.name == "Diffusion":
            self._check_not_asked_in_diffusion()
        elif self.facts.name == "DPS":
            self._check_not_asked_in_dps()
        else:
            self._add_fault("protocol", f"{self.facts.name} sends readings without being asked")

    def _check_no_room(self) -> None:
        row = self._find_proof("interest_cached", node=self.node)
        if row is not None:
            self._expect(row.origin == self.sink, "row", f"row {row.index} is an interest of node {row.origin}")
            self._check_not_asked_in_diffusion()

    def _check_no_way_on(self) -> None:
        came = [
            row
            for hop in self.life.serving()
            for row in hop.received
            if (row.node, row.peer) == (self.node, self.neighbor) and row.time_us <= self.time_us
        ]
        if self._expect(bool(came), "holder", f"node {self.node} did not have it from {self.neighbor}"):
            row = came[-1]
            gradients = self._find_gradients(self.node, row.index)
            self._expect(gradients == {self.neighbor}, "gradients", f"gradients of {self.node} lead to {gradients}")
            self._check_stops_at(row, self.life.copy_at[row.index])

    def _check_not_asked_in_diffusion(self) -> None:
        if not self.reading.messages:
            self._expect(
                self.node == self.reading.publisher, "holder", "the publisher sent nothing, so no other had it"
            )
            return
        sent = [row for row in self.facts.of["originated"] if self._is_own(row)]
        came = self.life.holders().get(self.node)
        if not self._expect(came is not None, "holder", f"node {self.node} never had the reading"):
            return
        moment = sent[0].index if sent else came
        gradients = self._find_gradients(self.node, moment)
        self._expect(not gradients, "asked", f"node {self.node} had gradients for node {self.sink} to {gradients}")
        for hop in self.life.serving():
            for row in hop.received:
                onward = self._find_gradients(row.node, row.index) - {row.peer}
                if row.node not in (self.node, self.sink) and onward and row.index > moment:
                    self._add_fault("went on", f"node {row.node}, which had it, had a gradient to {sorted(onward)}")
                    return

    def _check_not_asked_in_dps(self) -> None:
        holders = self.life.holders()
        had = self.node in holders and self.facts.rows[holders[self.node]].time_us <= self.time_us
        self._expect(had, "holder", f"node {self.node} did not have the reading by then")
        for hop in self.life.hops:
            # A node sends over links that it holds for active itself, whatever the state at the other end.
            is_own = hop.sent.node == self.node
            if is_own and self.sink in self._find_linked(hop.sent.peer, hop.sent.time_us, self.node):
                self._add_fault("asked", f"node {self.node} sent it to {hop.sent.peer}, whose links led to {self.sink}")
                return
        onward = [node for node in self.facts.scenario.topology.successors(self.node) if node not in holders]
        self._expect(
            any(self._has_path_to_sink(node, holders) for node in onward),
            "elsewhere",
            f"no neighbor of node {self.node} that lacks the reading leads to node {self.sink}",
        )

    def _check_no_link(self) -> None:
        first_us = {node: self.facts.rows[index].time_us for node, index in self.life.holders().items()}
        holders = [node for node, time_us in first_us.items() if time_us <= self.time_us]
        linked = set().union(*(self._find_linked(node, self.time_us) for node in holders))
        self._expect(self.node in holders, "holder", f"node {self.node} did not have the reading")
        if self.sink in linked:
            self._add_fault("meshed", f"links led from nodes that had it to the subscriber: {sorted(linked)}")
        links = self._find_links(self.node, self.time_us)
        if self.account.detail == "none":
            self._expect(not links, "linked", f"node {self.node} had links with {sorted(links)}")
        if self.neighbor is not None:
            self._expect(self.neighbor not in links, "linked", f"node {self.node} had a link with {self.neighbor}")
            self._expect(
                self._has_path_to_sink(self.neighbor, linked),
                "elsewhere",
                f"no arcs lead on from {self.neighbor} to {self.sink} past {sorted(linked)}",
            )
        for hop in self.life.hops:
            for row in hop.received:
                if row.time_us > self.time_us and self.sink in self._find_linked(row.node, row.time_us):
                    at = f"{row.time_us} µs"
                    self._add_fault(
                        "went on", f"node {row.node} received it at {at}, whose links led to the subscriber"
                    )
                    return

    def _check_no_base(self) -> None:
        rows = [row for row in self.proofs if row.event == "dropped" and row.detail == "no_base"]
        if not self._expect(bool(rows), "row", "no row dropped as no_base"):
            return
        row = rows[-1]
        self._expect((row.node, row.peer) == (self.node, self.neighbor), "row", f"row {row.index} is {row}")
        holders = self.life.holders()
        self._expect(self.node in holders, "holder", f"node {self.node} never had the reading")
        self._expect(self.neighbor not in holders, "went on", f"node {self.neighbor} had it")
        for other in self.facts.of["interests_set"]:
            is_later = row.index < other.index and other.time_us <= self.reading.published.time_us
            if is_later and (other.node, other.peer) == (row.node, row.peer):
                self._add_fault("applied", f"interests from there were applied at {other.time_us} µs")
                return

    def _check_no_place(self) -> None:
        trees: dict[int, bool] = {}
        for row in self.facts.of["key_set"]:
            if row.node == self.node and row.time_us <= self.time_us:
                trees[row.origin] = row.value >= 0
        named = [row.origin for row in self.proofs if row.event == "key_set" and row.value < 0]
        trees = {tree: trees.get(tree, False) for tree in named} if named else trees
        self._expect(not any(trees.values()), "placed", f"node {self.node} had a place: {trees}")
        holders = self.life.holders()
        self._expect(self.node in holders, "holder", f"node {self.node} never had the reading")
        self._check_stops_by_time()

    def _check_stops_by_time(self) -> None:
        """Check that nothing happened to the reading after the time of the account."""
        before = [row.index for row in self.life.rows if row.time_us <= self.time_us]
        self._check_nothing_later(max([self.reading.published.index, *before]), None)

    def _check_too_late(self) -> None:
        ends = [
            row.time_us
            for row in self.facts.of["unsubscribed"]
            if (row.node, row.sequence) == (self.sink, self.account.subscription)
        ]
        ends += [
            row.value
            for row in self.facts.of["subscribed"]
            if (row.node, row.sequence) == (self.sink, self.account.subscription) and row.value >= 0
        ]
        if not self._expect(bool(ends), "subscription", "the subscription never ended"):
            return
        self._expect(self.node == self.sink, "node", f"node {self.node} is not the subscriber")
        heard = [row for hop in self.life.serving() for row in hop.received if row.node == self.sink]
        self._expect(bool(heard), "nothing came", f"node {self.sink} never received it")
        # For a reading in parts, the last part counts.
        holders = [row.time_us for row in self.life.rows if row.event == "held" and row.node == self.sink]
        first_us = min(holders or [row.time_us for row in heard] or [0])
        self._expect(first_us >= min(ends), "in time", f"it came at {first_us} µs, before the end at {min(ends)} µs")

    def _check_expired(self) -> None:
        if self.facts.name == "Diffusion":
            came = self.life.holders().get(self.node)
            sent = [row.index for row in self.facts.of["originated"] if self._is_own(row)]
            moment = sent[0] if sent else came
            if moment is None:
                self._add_fault("holder", f"node {self.node} never had the reading")
                return
            gradients = self._find_gradients(self.node, moment)
            self._expect(not gradients, "asked", f"node {self.node} had gradients for {self.sink} to {gradients}")
            self._expect(self._had_interest(moment), "never there", f"node {self.node} never had the interest")
            for row in self.proofs:
                if row.event in ("gradient_removed", "interest_removed"):
                    self._expect(row.node == self.node and row.index < moment, "row", f"row {row.index} is {row}")
            return
        matched = [row for row in self.facts.of["event_matched"] if self._is_own(row)]
        removed = [row for row in self.proofs if row.event == "query_stored" and row.value < 0]
        if self._expect(bool(matched and removed), "row", "no event was matched there, or no query was removed"):
            self._expect(all((row.node, row.origin) == (self.node, self.sink) for row in removed), "row", f"{removed}")
            self._expect(not self._find_stored_queries(matched[-1]), "stored", f"node {self.node} stored its query")
            self._check_nothing_later(matched[-1].index, Copy("matched"))

    def _check_not_matched(self) -> None:
        matched = self._find_proof("event_matched", node=self.node)
        if matched is None:
            return
        self._expect(matched.time_us == self.time_us, "time", f"the event came at {matched.time_us} µs")
        self._expect((matched.origin, matched.sequence) in self.reading.messages, "carrier", "another event")
        stored = self._find_stored_queries(matched)
        self._expect(not stored, "stored", f"node {self.node} stored queries {stored} of node {self.sink}")
        if self.sink != self.node:
            self._check_nothing_later(matched.index, Copy("matched"))

    def _check_not_forwarded(self) -> None:
        rows = [row for row in self.proofs if row.event in ("received", "originated") and row.node == self.node]
        if not self._expect(bool(rows), "row", f"no row received or originated at node {self.node}"):
            return
        row = rows[-1]
        is_own = (row.origin, row.sequence) in self.reading.messages
        self._expect(is_own, "carrier", f"row {row.index} is of another message")
        copy = self.life.copy_at.get(row.index)
        if copy is not None:
            self._expect(copy.serves(self.sink), "copy", f"the frame was not for node {self.sink}: {copy}")
        later = [other for other in self._own_frames() if other.index > row.index]
        later = [other for other in later if not self._is_below(Copy(other.message), copy)]
        if later:
            self._add_fault("went on", f"node {self.node}: {later[0].event} at {later[0].time_us} µs")
        elif self.is_unicast:
            self._check_nothing_later(row.index, copy)
        else:
            self._check_stops_at(row, copy)

    # State that rows of protocols show

    def _find_interests(self) -> set[int]:
        """Return the numbers of the sink's interests that match the reading (diffusion)."""
        numbers = set()
        for row in self.facts.of["interest_cached"]:
            if row.origin == self.sink and row.detail:
                publication = parse(self.reading.published.detail)
                if self.facts.protocol.matching_samples(parse(row.detail), publication):
                    numbers.add(row.sequence)
        return numbers

    def _had_interest(self, index: int) -> bool:
        interests = self._find_interests()
        return any(
            row.node == self.node and row.origin == self.sink and row.sequence in interests and row.index < index
            for row in self.facts.of["interest_cached"]
        )

    def _find_gradients(self, node: int, index: int) -> set[int]:
        """Return the neighbors to which ``node`` may send data for the sink (diffusion).

        Gradients count that are valid at the time of row ``index`` of the trace.
        """
        interests = self._find_interests()
        time_us = self.facts.rows[index].time_us
        until: dict[tuple[int, int], int] = {}
        for row in self.facts.rows[:index]:
            if row.node == node and row.origin == self.sink:
                if row.event == "gradient_set" and row.sequence in interests:
                    until[row.peer, row.sequence] = row.value
                elif row.event == "gradient_removed":
                    until.pop((row.peer, row.sequence), None)
        return {peer for (peer, _), end_us in until.items() if end_us > time_us}

    def _find_links(self, node: int, time_us: int) -> set[int]:
        """Return the neighbors with which ``node`` has an active link at ``time_us`` (DPS)."""
        active: set[int] = set()
        for row in self.facts.rows:
            if row.time_us > time_us:
                break
            if row.node == node and row.event == "link_set":
                (active.add if row.value == ACTIVE else active.discard)(row.peer)
            elif row.node == node and row.event == "recovered" and node in self.facts.network.reboots:
                active.clear()
        return active

    def _find_linked(self, node: int, time_us: int, without: int | None = None) -> set[int]:
        """Return the nodes that ``node`` reaches over active links at ``time_us``, itself included (DPS).

        A link leads from each end that considers it active to the other end. Links of node ``without`` do not count.
        """
        mesh = nx.DiGraph()
        mesh.add_nodes_from(self.facts.scenario.topology)
        for other in self.facts.scenario.topology:
            mesh.add_edges_from(
                (other, peer) for peer in self._find_links(other, time_us) if without not in (other, peer)
            )
        return nx.descendants(mesh, node) | {node}

    def _is_meshed(self, node: int, without: int, time_us: int) -> bool:
        """Return whether active links connect ``node`` with the sink at ``time_us`` if ``without`` is removed (DPS)."""
        mesh = nx.Graph()
        mesh.add_nodes_from(self.facts.scenario.topology)
        for other in self.facts.scenario.topology:
            mesh.add_edges_from((other, peer) for peer in self._find_links(other, time_us))
        mesh.remove_node(without)
        return node in mesh and self.sink in mesh and nx.has_path(mesh, node, self.sink)

    def _find_stored_queries(self, matched: Row) -> list[int]:
        """Return the numbers of the sink's queries that X stores and that the reading matches (TinyMQ).

        ``matched`` is the row of the event's match; only queries that were stored before this row count.
        """
        stored: dict[int, str] = {}
        for row in self.facts.rows[: matched.index]:
            if row.event == "query_stored" and row.node == self.node and row.origin == self.sink:
                if row.value == matched.value + 1:
                    stored[row.sequence] = row.detail
                elif row.value == -1 - matched.value:
                    stored.pop(row.sequence, None)
        publication = parse(self.reading.published.detail)
        samples = self.facts.protocol.matching_samples
        return [number for number, detail in stored.items() if samples(parse(detail), publication)]


_OF_SAMPLES = ("expired", "no_interest")


# Whole runs


def judge(facts: Facts, accounts: list[Any]) -> tuple[list[tuple[Any, list[Falsehood]]], Counter]:
    """Compare the accounts of a run with its rows; return (false accounts, {cause: number of accounts}).

    Each false account is (account, its contradictions). An expected reading without an account is one of them, with
    its key in place of the account.
    """
    expected = {
        (reading.publisher, reading.number, reading.published.time_us, reading.sink, reading.subscription): reading
        for reading in facts.find_expected()
    }
    false: list[tuple[Any, list[Falsehood]]] = []
    causes: Counter = Counter()
    missing = set(expected)
    for account in accounts:
        key = (*account.reading, account.published_us, account.subscriber, account.subscription)
        causes[account.cause] += 1
        reading = expected.get(key)
        missing.discard(key)
        faults = _faults(facts, reading, account)
        if faults:
            false.append((account, faults))
    for key in sorted(missing):
        false.append((key, [Falsehood("expected: no account", f"no account of the expected reading {key}")]))
    return false, causes


def _faults(facts: Facts, reading: Expected | None, account: Any) -> list[Falsehood]:
    if reading is None:
        return [Falsehood("expected: too many", "no subscription expects this reading")]
    if (account.cause == "delivered") != (account.delivered_us is not None):
        return [Falsehood("delivered: fields", "cause and delivered_us differ")]
    if account.delivered_us != reading.delivered_us:
        was = f"it was delivered at {reading.delivered_us}, the account has {account.delivered_us}"
        return [Falsehood("delivered: time", was)]
    if account.cause == "delivered":
        return []
    return Check(facts, reading, account)()


HEADER = ["protocol", "networks", "expected", "undelivered", "not proven", "share", "false", "causes"]


def main() -> None:
    """Play the networks, compare the accounts, and print the false accounts and the table."""
    from workbench.analysis.accounts import accounts

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--networks", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, default=None, help="only this seed")
    parser.add_argument("--protocol", choices=PROTOCOLS, default=None)
    parser.add_argument("--engine", choices=("fast", "auto", "reference"), default="fast")
    parser.add_argument("--most", type=int, default=3, help="most false accounts printed for each group and network")
    options = parser.parse_args()
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.networks)
    sums: dict[str, Counter] = defaultdict(Counter)
    all_causes: dict[str, Counter] = defaultdict(Counter)
    groups: dict[str, list[str]] = defaultdict(list)
    for seed in seeds:
        network = draw(seed, options.protocol)
        facts = Facts(network, options.engine)
        command = f"benchmarks/why_not_oracle.py --seed {seed} --protocol {network.protocol}"
        try:
            false, causes = judge(facts, accounts(facts.run))
        except Exception:  # an error while making or reading an account is a fault of its network
            groups[f"{network.protocol}: error"].append(f"{command}\n{traceback.format_exc()}")
            continue
        count = sums[network.protocol]
        count.update(networks=1, expected=causes.total(), undelivered=causes.total() - causes["delivered"])
        count.update(not_proven=causes["not_proven"], false=len(false))
        all_causes[network.protocol].update(causes)
        shown: Counter = Counter()
        for account, faults in false:
            for group, sentence in faults:
                shown[group] += 1
                groups[f"{network.protocol}: {group}"].append(f"{command}\n        {account}\n        {sentence}")
                if shown[group] <= options.most:
                    print(f"{network}\n    {command}\n    {account}\n    {group}: {sentence}", flush=True)
    _report(sums, all_causes, groups)
    undelivered, not_proven = (sum(count[name] for count in sums.values()) for name in ("undelivered", "not_proven"))
    sys.exit(bool(groups) or not_proven > MOST_NOT_PROVEN * undelivered)


def _report(sums: dict[str, Counter], causes: dict[str, Counter], groups: dict[str, list[str]]) -> None:
    """Print the groups of false accounts, each with its smallest seed, and the table by protocol."""
    for group, command in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"{len(command):6,} {group}: {command[0]}")
    rows = []
    for protocol, count in sorted(sums.items()):
        share = count["not_proven"] / count["undelivered"] if count["undelivered"] else 0.0
        names = ("networks", "expected", "undelivered", "not_proven")
        shown = " ".join(f"{cause} {n}" for cause, n in causes[protocol].most_common() if cause != "delivered")
        rows.append([protocol, *(f"{count[name]:,}" for name in names), f"{share:.1%}", f"{count['false']:,}", shown])
    print(table(HEADER, rows))


if __name__ == "__main__":
    main()

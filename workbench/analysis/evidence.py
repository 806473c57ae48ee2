"""Lookups of trace rows by event, node and reading, to prove where a reading was lost.

    evidence = Evidence(scenario, table, carriers, harmless)    look-ups in the trace `table` of a run
    evidence.follow({(publisher, number)})                      collect the rows of these readings, all at once
    evidence.trail(publisher, number)                           the rows of one of these readings
    Step                                                        the last event about a reading that the rows prove

The module `explain` of a protocol follows readings with these look-ups. Rows are identified by their position in the
trace.

Cost
    One pass over the trace and a sort of the rows that carry readings; each trail is a slice of the sorted rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.columns import argsort, first_rows, shared_keys
from workbench.sim.changes.arcs import graph_of_all_arcs, presence_of_arcs
from workbench.sim.rows import Columns, Row

_MESSAGE_EVENTS = [
    "originated",
    "sent",
    "received",
    "lost",
    "given_up",
    "dropped",
    "forwarded",
    "held",
    "delivered",
    "filtered",
    "innovative",
    "event_matched",
]


class Step(NamedTuple):
    """The last event that the trace proves about a reading that was not delivered, for example a lost frame.

    ``cause``: a key of `accounts.CAUSES`, such as "lost". ``node``: address of the node of the event. ``neighbor``:
    address of the other node in the event, such as the receiver of a lost frame, or None. ``time_us``: time of the
    event. ``detail``: the reason that the trace gives, or "". ``rows``: the trace rows that prove the event.
    """

    cause: str
    node: int
    neighbor: int | None
    time_us: int
    detail: str
    rows: tuple[Row, ...]


class Pair(NamedTuple):
    """A reading that a subscription expected and did not get.

    ``publisher``, ``subscriber``: addresses. ``number``: the number of the reading among the publisher's publications.
    ``published``, ``subscribed``: the trace rows of the reading's publication and of the subscription. ``ended_us``:
    when the subscription or the run ended. ``ended``: the trace row "unsubscribed" of the subscription, or None.
    """

    publisher: int
    number: int
    subscriber: int
    published: Row
    subscribed: Row
    ended_us: int  # when the subscription ended, or the end of the run
    ended: Row | None  # the row "unsubscribed", if there is one


class Trail:
    """The trace rows about the messages that carry one reading, in order of time.

    A *holder* is a node that has the reading: the publisher, or a node that received a message with the reading.
    """

    def __init__(self, columns: Columns, indices: np.ndarray, harmless: Collection[str]) -> None:
        self._columns = columns
        self._find_indices = indices
        self._events = columns.codes["event"][indices]
        self._harmless = frozenset(harmless)
        self._rows_by_event: dict[str, list[Row]] = {}
        self._losses: dict[int, dict[int, Row]] = {}

    def of(self, event: str) -> list[Row]:
        """Return the trace rows of this trail whose event has the name ``event``, such as "received"."""
        if event not in self._rows_by_event:
            self._rows_by_event[event] = self._columns.listed(self._select_event(event))
        return self._rows_by_event[event]

    def _select_event(self, event: str) -> np.ndarray:
        return self._find_indices[self._events == self._columns.code("event", event)]

    def at(self, event: str, node: int) -> list[Row]:
        """Return the trace rows of this trail whose event has the name ``event`` and occurred at ``node``."""
        return [row for row in self.of(event) if row.node == node]

    def only(self, message: str) -> Trail:
        """Return a trail with only those rows of this trail whose message has the name ``message``."""
        return Trail(self._columns, self._columns.where(self._find_indices, message=message), self._harmless)

    @cached_property
    def rows(self) -> list[Row]:
        """All trace rows of this trail, in order of time."""
        return self._columns.listed(self._find_indices)

    def select(self, positions: Collection[int]) -> Trail:
        """Return a trail with only those rows of this trail whose positions in the trace are in ``positions``."""
        return Trail(self._columns, self._find_indices[np.isin(self._find_indices, list(positions))], self._harmless)

    @cached_property
    def drops(self) -> list[Row]:
        """The trace rows "dropped" of this trail, except those whose reason is harmless: they lose no reading."""
        return [row for row in self.of("dropped") if row.detail not in self._harmless]

    @cached_property
    def holders(self) -> dict[int, Row]:
        """{node: the first trace row that proves that the node had the reading}, for each node with such a row."""
        received_rows = self._select_event("received")
        firsts = received_rows[first_rows(self._columns["node"][received_rows])]
        holders = {row.node: row for row in reversed(self._columns.listed(firsts))}
        holders.update((row.node, row) for row in reversed(self.of("originated")))
        return holders

    @cached_property
    def arrivals(self) -> dict[tuple[int, int], Row]:
        """{(sender, receiver): trace row "received" of the last frame from sender to receiver}.

        Frames that the receiver dropped as copies are left out.
        """
        return {
            (row.peer, row.node): row
            for row in self.of("received")
            if (row.node, row.peer, row.time_us) not in self.repeated
        }

    @cached_property
    def repeated(self) -> set[tuple[int, int, int]]:
        """The set of (receiver, sender, time in µs) of the frames that the receiver dropped as copies."""
        return {(row.node, row.peer, row.time_us) for row in self.of("dropped") if row.detail in self._harmless}

    def losses(self, sender: int) -> dict[int, Row]:
        """Return {neighbor: its last trace row "lost"} of the neighbors that received no frame of ``sender``.

        Only frames with this trail's reading count.
        """
        if sender not in self._losses:
            received_rows, lost_rows = (self._select_event(event) for event in ("received", "lost"))
            peer, node = self._columns["peer"], self._columns["node"]
            receivers = set(node[received_rows[peer[received_rows] == sender]].tolist())
            sender_losses = self._columns.listed(lost_rows[peer[lost_rows] == sender])
            self._losses[sender] = {row.node: row for row in sender_losses if row.node not in receivers}
        return self._losses[sender]

    def outcome(self, node: int, neighbors: Collection[int] | None = None) -> Step | None:
        """Return the last `Step` at ``node`` that may have lost the reading, or None.

        The step is a lost frame, a drop, or a frame given up. The result is None if a neighbor received the reading
        from ``node`` after this step. ``neighbors``: the neighbors whose losses and receptions count; None for all.
        """
        arrival_positions = [
            row.position
            for (sender, receiver), row in self.arrivals.items()
            if sender == node and (neighbors is None or receiver in neighbors)
        ]
        loss_steps = [
            Step("down" if row.detail == "down" else "lost", node, row.node, row.time_us, row.detail, (row,))
            for receiver, row in self.losses(node).items()
            if neighbors is None or receiver in neighbors
        ]
        loss_steps += [dropped(row) for row in self.drops if row.node == node]
        if not arrival_positions:  # After an arrival it may be a retry of the frame that arrived.
            loss_steps += [given_up(row) for row in self.at("given_up", node)[-1:]]
        last_step = max(loss_steps, key=lambda step: step.rows[-1].position, default=None)
        return (
            None if last_step is None or last_step.rows[-1].position < max(arrival_positions, default=-1) else last_step
        )


CAUSE_OF_DROP = {"filter": "filtered", "chance": "chance", "ttl": "ttl", "hops": "ttl", "evicted": "evicted"}


def dropped(row: Row) -> Step:
    """Return the `Step` for a trace row "dropped"; the row's reason determines the step's cause."""
    return Step(CAUSE_OF_DROP.get(row.detail, "dropped"), row.node, None, row.time_us, row.detail, (row,))


def given_up(row: Row) -> Step:
    """Return the `Step` for a trace row "given_up"; the step's cause is "down" or "saturated"."""
    cause = "down" if row.detail == "down" else "saturated"
    return Step(cause, row.node, None, row.time_us, row.detail, (row,))


class Evidence:
    """The trace of a run, with lookups of rows by event, node and reading.

    ``carriers``: names of the messages that carry readings; () stands for all messages that nodes originate.
    ``harmless``: reasons of drops that lose no reading, because the node has the reading already or needs no further
    part of it.
    """

    def __init__(self, scenario: Any, table: pa.Table, carriers: Collection[str], harmless: Collection[str]) -> None:
        self.scenario = scenario
        self.graph = graph_of_all_arcs(scenario)
        self.columns = Columns(table)
        self._rows_by_event: dict[str, list[Row]] = {}
        self._by_node: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._rows_at_node: dict[tuple[Any, ...], list[Row]] = {}
        self._stored_results: dict[tuple[Any, ...], Any] = {}
        self._carriers, self._harmless = carriers, frozenset(harmless)
        self._trails: dict[tuple[int, int], Trail] = {}
        self._reached: dict[tuple[int, int, int], dict[int, int]] = {}
        self.end_us = round(scenario.duration_s * 1e6)

    # Rows

    def of(self, event: str) -> list[Row]:
        """Return all trace rows of the run whose event has the name ``event``."""
        if event not in self._rows_by_event:
            self._rows_by_event[event] = self.columns.of(event)
        return self._rows_by_event[event]

    def by(self, event: str, key: Callable[[Row], Any]) -> dict[Any, list[Row]]:
        """Group the trace rows whose event has the name ``event``: return {key: rows}.

        ``key``: a function that returns the key of a row.
        """
        rows_by_key: dict[Any, list[Row]] = {}
        for row in self.of(event):
            rows_by_key.setdefault(key(row), []).append(row)
        return rows_by_key

    def at(self, event: str, node: int, **equal: int) -> list[Row]:
        """Return the trace rows of an event at a node; ``equal`` filters by more columns: ``at("sent", 3, peer=5)``."""
        cache_key = event, node, *equal.values()
        if cache_key not in self._rows_at_node:
            self._rows_at_node[cache_key] = self._select_rows(event, node, equal)
        return self._rows_at_node[cache_key]

    def _select_rows(self, event: str, node: int, equal: Mapping[str, int]) -> list[Row]:
        selected_rows = self._find_indices(event, node)
        for name, number in equal.items():
            selected_rows = selected_rows[self.columns[name][selected_rows] == number]
        return self.columns.listed(selected_rows)

    def _find_indices(self, event: str, node: int) -> np.ndarray:
        """Return the positions, ascending, of the trace rows at ``node`` whose event has the name ``event``."""
        if event not in self._by_node:
            positions = self.columns.where(event=event)
            nodes = self.columns["node"][positions]
            by_node = argsort(nodes)
            self._by_node[event] = positions[by_node], nodes[by_node]
        positions, nodes = self._by_node[event]
        return positions[slice(*np.searchsorted(nodes, (node, node + 1)).tolist())]

    def once(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return the result of ``make()``, stored under ``key``: later calls with this key return the stored object."""
        if key not in self._stored_results:
            self._stored_results[key] = make()
        return self._stored_results[key]

    def sent_after(self, node: int, index: int) -> list[Row]:
        """Return [last trace row "sent" of ``node``] if its position in the trace is above ``index``, else []."""
        last_positions = self._find_indices("sent", node)[-1:]
        return self.columns.listed(last_positions[last_positions > index])

    # Readings

    def follow(self, readings: Collection[tuple[int, int]]) -> None:
        """Collect the trace rows of readings, so that `trail` can return them.

        ``readings``: pairs (publisher, number of the reading at the publisher).
        """
        columns = self.columns
        originated = columns.where(event="originated")
        wanted_readings = set(readings)
        originated_readings = list(columns.tuples(originated, "node", "value"))
        originated = originated[np.array([reading in wanted_readings for reading in originated_readings], bool)]
        originated_readings = [reading for reading in originated_readings if reading in wanted_readings]
        followed_rows = columns.where(
            event=_MESSAGE_EVENTS, message=self._carriers or columns.coded("message", originated)[1]
        )
        message_keys, messages = shared_keys(
            (columns["origin"][followed_rows], columns["sequence"][followed_rows]),
            (columns["origin"][originated], columns["sequence"][originated]),
        )
        is_wanted = np.isin(message_keys, messages)
        followed_rows, message_keys = followed_rows[is_wanted], message_keys[is_wanted]
        by_key = argsort(message_keys)
        followed_rows, message_keys = followed_rows[by_key], message_keys[by_key]
        first_rows, end_rows = (
            np.searchsorted(message_keys, messages),
            np.searchsorted(message_keys, messages, side="right"),
        )
        slices: dict[tuple[int, int], list[np.ndarray]] = {}
        for reading, first_row, end_row in zip(
            originated_readings, first_rows.tolist(), end_rows.tolist(), strict=True
        ):
            slices.setdefault(reading, []).append(followed_rows[first_row:end_row])
        for reading in wanted_readings:
            row_slices = slices.get(reading, [np.zeros(0, np.int64)])
            carrier_rows = row_slices[0] if len(row_slices) == 1 else np.unique(np.concatenate(row_slices))
            self._trails[reading] = Trail(columns, carrier_rows, self._harmless)

    def trail(self, publisher: int, number: int) -> Trail:
        """Return the `Trail` of a reading: all trace rows about the reading, in order of time.

        Raises KeyError if the reading was not passed to `follow`.
        """
        return self._trails[publisher, number]

    # Outages

    @cached_property
    def outages(self) -> dict[int, list[tuple[int, int, Row]]]:
        """{node: [(failed_us, recovered_us, row "failed"), ...]} in order of time.

        An outage without a recovery ends just after the run.
        """
        outages: dict[int, list[tuple[int, int, Row]]] = {}
        recovery_rows = self.by("recovered", lambda row: row.node)
        for row in self.of("failed"):
            recovered_us = next(
                (recovery.time_us for recovery in recovery_rows.get(row.node, ()) if recovery.position > row.position),
                self.end_us + 1,
            )
            outages.setdefault(row.node, []).append((row.time_us, recovered_us, row))
        return outages

    def outage(self, node: int, time_us: int) -> Row | None:
        """Return the trace row "failed" that began a node's outage at ``time_us``; None if the node was up then."""
        for failed_us, recovered_us, row in self.outages.get(node, ()):
            if failed_us <= time_us < recovered_us:
                return row
        return None

    def outages_between(self, node: int, neighbor: int, from_us: int, until_us: int) -> list[Row]:
        """Return the trace rows "failed" of both nodes' outages that overlap the interval [from_us, until_us]."""
        return [
            row
            for endpoint in (node, neighbor)
            for failed_us, recovered_us, row in self.outages.get(endpoint, ())
            if failed_us <= until_us and recovered_us > from_us
        ]

    def up_from(self, node: int, time_us: int) -> int:
        """Return the first time in µs, at or after ``time_us``, at which a node is up.

        If the node stays down, the result is a time after the end of the run.
        """
        for failed_us, recovered_us, _ in self.outages.get(node, ()):
            if failed_us <= time_us < recovered_us:
                time_us = recovered_us
        return time_us

    @cached_property
    def _outage_times(self) -> np.ndarray:
        outage_ends = {time for outages in self.outages.values() for outage in outages for time in outage[:2]}
        return np.array(sorted(outage_ends), np.int64)

    def reached(self, start: int, from_us: int, until_us: int) -> dict[int, int]:
        """Return {node: the earliest time in µs at which a message from ``start``, sent at ``from_us``, can arrive}.

        The model is optimistic: a frame takes no time, a node keeps messages while it is down, and an arc that exists
        at some time exists always. A node that is not in the result cannot be reached by ``until_us``. The result of
        an earlier call with the same ``start`` may be returned, if no outage begins or ends between the two values of
        ``from_us`` or of ``until_us``. Its times are those of the earlier call.
        """
        # The result changes only where an outage begins or ends.
        first_change, last_change = np.searchsorted(self._outage_times, (from_us, until_us), side="right").tolist()
        cache_key = start, first_change, last_change
        if cache_key not in self._reached:
            self._reached[cache_key] = self._compute_reached(start, from_us, until_us)
        return self._reached[cache_key]

    def _compute_reached(self, start: int, from_us: int, until_us: int) -> dict[int, int]:
        earliest: dict[int, int] = {}
        arrivals_heap = [(from_us, start)]
        while arrivals_heap:
            time_us, node = heapq.heappop(arrivals_heap)
            if node in earliest:
                continue
            earliest[node] = time_us
            for neighbor in self.graph.successors(node):
                if neighbor not in earliest:
                    meeting_us = self._find_time_both_up(node, neighbor, time_us)
                    if meeting_us <= until_us:
                        heapq.heappush(arrivals_heap, (meeting_us, neighbor))
        return earliest

    def _find_time_both_up(self, node: int, neighbor: int, time_us: int) -> int:
        """Return the first time in µs, at or after ``time_us``, at which ``node`` and ``neighbor`` are up.

        If they are never up together again, the result is a time after the end of the run.
        """
        while True:
            later_us = self.up_from(neighbor, self.up_from(node, time_us))
            if later_us == time_us or later_us > self.end_us:
                return later_us
            time_us = later_us

    # Links that change

    @cached_property
    def _arc_changes(self) -> dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]:
        """{(sender, receiver): (times in µs, whether the arc exists from each time on)} of the arcs that change."""
        return presence_of_arcs(self.scenario)

    def is_in_range(self, sender: int, receiver: int, time_us: int) -> bool:
        """Return whether the arc from ``sender`` to ``receiver`` exists at ``time_us``.

        Call this only for an arc that exists at some time: for nodes between which no arc changes, the result is True.
        """
        times_us, exists = self._arc_changes.get((sender, receiver), (None, None))
        if times_us is None or exists is None:
            return True
        return bool(exists[np.searchsorted(times_us, time_us, side="right") - 1])

    # Paths

    def crossings(self, holders: Collection[int], goal: int) -> Iterator[tuple[int, int, int]]:
        """Yield the first arc of each shortest path from ``holders`` to ``goal``, as (holder, next node, hops).

        ``holders``: nodes that have the reading. ``hops``: number of hops from the next node to ``goal``. Only the
        holders that are nearest to ``goal`` have such an arc.
        """
        frontier, visited_nodes, hops = [goal], {goal}, 0
        crossings: list[tuple[int, int, int]] = []
        while frontier and not crossings:
            next_frontier = []
            for node in frontier:
                for sender in sorted(self.graph.predecessors(node)):
                    if sender in holders:
                        crossings.append((sender, node, hops))
                    elif sender not in visited_nodes:
                        visited_nodes.add(sender)
                        next_frontier.append(sender)
            frontier, hops = next_frontier, hops + 1
        yield from crossings

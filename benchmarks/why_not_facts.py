"""A plain evaluation of a run's rows: the readings that subscriptions expect, and the frames that carried them.

The code is slow and shares nothing with the modules that explain a run, because their answers are compared with it. A
*copy* of a reading is the form in which a frame carries the reading: as a piece of a publication, as an event in a
tree, or as a notification for a sink. A `Hop` is one transmission of a copy: the frame on the channel, and the nodes
that received it or lost it.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Any, NamedTuple

import networkx as nx
from why_not_networks import Network

import workbench as wb
from workbench.attributes.text import parse, to_text
from workbench.errors import ScenarioError
from workbench.protocols.diffusion import wire as diffusion_wire
from workbench.protocols.gossip import wire as gossip_wire
from workbench.protocols.tinymq import wire as tinymq_wire
from workbench.sim.workload import Outage

CARRIERS = {
    "Flooding": {"flood"},
    "Gossip": {"flood", "piece"},
    "Diffusion": {"data"},
    "CodedDiffusion": {"event", "coded"},
    "TinyMQ": {"event", "notification"},
    "Pub2Sub": {"event", "notification"},
    "DPS": {"publication"},
}
RADIO = ("sent", "received", "lost", "given_up")
ALL = -1


class Row(NamedTuple):
    """A row of the trace; ``index`` is its position there."""

    index: int
    time_us: int
    node: int
    event: str
    peer: int
    message: str
    origin: int
    sequence: int
    size_B: int
    value: int
    detail: str


class Copy(NamedTuple):
    """A copy of a reading in a frame.

    ``name`` is the frame's message type, and ``key`` distinguishes pieces or trees. The copy is for the sink
    ``only_for`` (None: for any sink), and not for the sinks ``not_for``.
    """

    name: str
    key: Hashable = None
    only_for: int | None = None
    not_for: tuple[int, ...] = ()

    def serves(self, sink: int) -> bool:
        """Return whether this copy may bring the reading nearer to a sink."""
        return self.only_for in (None, sink) and sink not in self.not_for


class Hop(NamedTuple):
    """A frame on the channel: its row "sent", its copy of the reading, and the rows of receptions and of losses."""

    sent: Row
    copy: Copy
    received: list[Row]
    lost: list[Row]


class Expected(NamedTuple):
    """A reading that a subscription expects; ``messages``: (origin, sequence) of the messages that carry it."""

    publisher: int
    number: int
    published: Row
    sink: int
    subscription: int
    messages: tuple[tuple[int, int], ...]
    delivered_us: int | None


class Facts:
    """The run of a random network, with its trace as `Row` objects and with the frames' bytes."""

    def __init__(self, network: Network, engine: str = "auto") -> None:
        self.network = network
        self.scenario = _with_crashes(network.scenario, network.reboots)
        self.protocol = network.scenario.protocol
        self.name = network.protocol
        self.run = _play(self.scenario, engine)
        columns = self.run.trace.to_pydict().values()
        self.rows = [Row(index, *cells) for index, cells in enumerate(zip(*columns, strict=True))]
        self.of: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            self.of[row.event].append(row)
        self.end_us = max([round(network.scenario.duration_s * 1e6), *(row.time_us for row in self.rows[-1:])])
        self.down = self._find_down_intervals()

    @cached_property
    def frames(self) -> dict[int, bytes]:
        """The frames' bytes: {index of the row "sent": bytes}."""
        frames = self.run.frames()["frame"].to_pylist()
        return {row.index: frame for row, frame in zip(self.of["sent"], frames, strict=True)}

    # Nodes that are off, and paths

    def _find_down_intervals(self) -> dict[int, list[tuple[int, int]]]:
        down: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row in self.rows:
            if row.event == "failed":
                down[row.node].append((row.time_us, self.end_us + 1))
            elif row.event == "recovered":
                down[row.node][-1] = (down[row.node][-1][0], row.time_us)
        return down

    def is_down(self, node: int, time_us: int) -> bool:
        """Return whether a node is off at a time."""
        return any(first <= time_us < last for first, last in self.down.get(node, ()))

    def arrival_us(self, source: int, begin_us: int) -> dict[int, int]:
        """Return {node: earliest time in µs at which it could have a message of ``source``}, without losses and delays.

        ``begin_us`` is the time of the message. It may wait in a node that is off, but passes an arc only while both
        nodes are up.
        """
        times = sorted({begin_us, *(time for spells in self.down.values() for spell in spells for time in spell)})
        times = [time for time in times if begin_us <= time <= self.end_us]
        have = {source: begin_us}
        for time_us in times:
            up = self.scenario.topology.subgraph(
                node for node in self.scenario.topology if not self.is_down(node, time_us)
            )
            for node in [node for node in have if node in up]:
                for other in nx.descendants(up, node):
                    have.setdefault(other, time_us)
        return have

    # Expected readings, and their deliveries

    def find_expected(self) -> list[Expected]:
        """Return each reading that each subscription expects, as the metric "expected" defines it."""
        ends: dict[tuple[int, int], int] = {}
        for row in self.of["unsubscribed"]:
            ends.setdefault((row.node, row.sequence), row.time_us)
        carried: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for row in self.of["originated"]:
            carried[row.node, row.value].append((row.origin, row.sequence))
        expected = []
        for subscribed in self.of["subscribed"]:
            end_us = ends.get((subscribed.node, subscribed.sequence), self.end_us + 1)
            end_us = end_us if subscribed.value < 0 else min(end_us, subscribed.value)
            for published in self.of["published"]:
                if (
                    subscribed.time_us <= published.time_us < end_us
                    and not self.is_down(subscribed.node, published.time_us)
                    and self.find_matching_samples(subscribed, published)
                    and nx.has_path(self.scenario.topology, published.node, subscribed.node)
                ):
                    reading = published.node, published.sequence
                    subscription = subscribed.node, subscribed.sequence
                    expected.append(Expected(*reading, published, *subscription, tuple(carried[reading]), None))
        return self._add_deliveries(expected)

    def find_matching_samples(self, subscribed: Row, published: Row) -> list[str]:
        """Return the samples, as texts, of a publication that match a subscription; both are given by their rows."""
        matching = self.protocol.matching_samples(parse(subscribed.detail), parse(published.detail))
        return [to_text(sample) for sample in matching]

    def _add_deliveries(self, expected: list[Expected]) -> list[Expected]:
        """Return these readings with the times of their first deliveries.

        Messages are matched with readings by the delivered text. If a message carries several readings with the same
        text, the k-th delivery is that of the k-th of these readings. If a filter has changed the text, the delivery is
        that of the message's first reading without a delivery.
        """
        changed = {(row.origin, row.sequence) for row in self.of["filtered"] if row.detail == "replace"}
        waiting: dict[tuple, list[tuple[int, str]]] = defaultdict(list)
        subscribed = {(row.node, row.sequence): row for row in self.of["subscribed"]}
        for index, reading in enumerate(expected):
            for message in reading.messages:
                texts = self.find_matching_samples(subscribed[reading.sink, reading.subscription], reading.published)
                waiting[reading.sink, reading.subscription, message] += [(index, text) for text in texts[:1]]
        delivered: dict[int, int] = {}
        for row in self.of["delivered"]:
            message = row.origin, row.sequence
            left = waiting[row.node, row.value, message]
            match = next((item for item in left if item[1] == row.detail), None)
            if match is None and message in changed and left:
                match = left[0]
            if match is not None:
                left.remove(match)
                delivered.setdefault(match[0], row.time_us)
        return [reading._replace(delivered_us=delivered.get(index)) for index, reading in enumerate(expected)]

    # Copies

    @cached_property
    def _rows_by_message(self) -> dict[tuple[int, int], list[Row]]:
        by_message: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for row in self.rows:
            if row.message in CARRIERS[self.name] and row.event != "originated":
                by_message[row.origin, row.sequence].append(row)
        return by_message

    def rows_about(self, messages: Iterable[tuple[int, int]]) -> list[Row]:
        """Return the rows about these messages, each (origin, sequence), in the order of the trace."""
        return sorted(row for message in set(messages) for row in self._rows_by_message[message])

    def copy_of(self, sent: Row) -> Copy:
        """Return the copy that a frame carries; ``sent`` is the frame's row.

        The frame's bytes are decoded if necessary.
        """
        if sent.message == "piece":
            return Copy("piece", gossip_wire.decode(self.frames[sent.index]).number)
        if sent.message == "data":
            data = diffusion_wire.decode(self.frames[sent.index], self.protocol.matching)
            return Copy("data", not_for=data.listed_sinks)
        if self.name in ("TinyMQ", "Pub2Sub"):
            _, message = tinymq_wire.decode(self.frames[sent.index])
            if sent.message == "event":
                return Copy("event", ("event", message.tree))
            return Copy("notification", ("notification", message.sink), only_for=message.sink)
        return Copy("")


def _play(scenario: Any, engine: str) -> Any:
    """Return the run of a scenario. If the fast engine refuses the scenario, the reference engine plays it."""
    if engine == "fast":
        try:
            return scenario.run(engine="fast", progress=None)
        except ScenarioError:
            engine = "reference"
    return scenario.run(engine=engine, progress=None)


def _with_crashes(scenario: Any, nodes: Iterable[int]) -> Any:
    """Return a scenario in which the outages of ``nodes`` are crashes, after which they start without memory."""
    items = [
        wb.crash(item.at, item.start_s, item.stop_s)
        if isinstance(item, Outage) and set(item.at) <= set(nodes)
        else item
        for item in scenario.workload
    ]
    return scenario.replace(workload=items)


class Life:
    """The hops of a reading, some of which bring it towards a sink, and all trace rows about the reading."""

    def __init__(self, facts: Facts, reading: Expected) -> None:
        self.facts, self.reading = facts, reading
        self.rows = facts.rows_about(reading.messages)
        self.hops: list[Hop] = []
        self.copy_at: dict[int, Copy] = {}  # index of a row -> its copy, if a frame shows it
        hop, heard = None, None
        for row in self.rows:
            if row.event == "sent":
                hop, heard = Hop(row, facts.copy_of(row), [], []), None
                self.hops.append(hop)
                self.copy_at[row.index] = hop.copy
            elif row.event in ("received", "lost") and hop is not None:
                (hop.received if row.event == "received" else hop.lost).append(row)
                self.copy_at[row.index] = hop.copy
                heard = row if row.event == "received" else heard
            elif heard is not None and hop is not None and (row.time_us, row.node) == (heard.time_us, heard.node):
                # A notification made from a received event is another copy.
                is_same = row.message in ("", hop.sent.message)
                self.copy_at[row.index] = hop.copy if is_same else Copy(row.message)

    def serving(self) -> list[Hop]:
        """Return the hops of copies that may bring the reading nearer to the sink."""
        return [hop for hop in self.hops if hop.copy.serves(self.reading.sink)]

    def holders(self, key: Hashable = ALL) -> dict[int, int]:
        """Return {node: index of the row} of the nodes that had a copy of the reading that serves the sink.

        The row is that of the copy's first arrival. ``key``: count only copies with this key. The publisher is always
        included, with the row of its publication.
        """
        first_rows = {self.reading.publisher: self.reading.published.index}
        for hop in self.serving():
            if key in (ALL, hop.copy.key):
                for row in hop.received:
                    first_rows.setdefault(row.node, row.index)
        return first_rows

"""The reference engine: a heap of (time, counter, ...) that drives the protocols' own nodes, an event per transmission.

Theory of operation
    A node's frames go on the air when its radio is free. At the end of a frame's airtime its receivers hear it, in
    neighbor order: loss is drawn, collisions are looked up, the node's ``receive`` is called, and what comes out of
    the node is recorded and put on the air in turn. So a transmission costs one heap entry however many hear it
    (two with csma, which looks at the channel first).

    Every random draw is a hash of (seed, purpose, node or link, counter): see `workbench/draws.py`. Together with the
    heap's counter, which orders what happens at the same microsecond, that makes a run a function of its scenario.

    When the duration is over nobody publishes and no timer fires any more, but the frames that are on their way are
    played to their end: what was published in the last moment is not counted as lost.

Cost
    One heap operation per transmission and one ``receive`` per reception; with collisions, also one entry per
    audible neighbor and a scan of the few transmissions that a receiver has heard lately.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from workbench import draws, purposes
from workbench.attributes.model import Attribute, with_payload
from workbench.attributes.text import parse, to_text
from workbench.errors import ScenarioError, WorkbenchError
from workbench.protocols.contract import NOBODY, Node
from workbench.sim import workload
from workbench.sim.delays import Delays, node_keys
from workbench.sim.trace import MetricsRecorder, Recorder, kept_events

# What a heap entry is: (time_us, counter, kind, argument).
ACTION, WAKE, _CHANNEL_CHECK, _FRAME_END, _FRAME_READY = range(5)

# IEEE 802.15.4-2006, 7.4.2 and 7.5.1.4, at 2.4 GHz: 16 µs per symbol.
UNIT_BACKOFF_US = 320
TURNAROUND_US = 192
MIN_BACKOFF_EXPONENT = 3
MAX_BACKOFF_EXPONENT = 5
MAX_BACKOFFS = 4
ACKNOWLEDGEMENT_B = 5


class Transmission:
    """One frame on its way from a node's radio to its receivers; ``attempt`` counts unicast retries."""

    __slots__ = ("attempt", "backoffs", "destination", "end", "frame", "label", "outage", "sender", "start")

    def __init__(self, sender: int, destination: int | None, frame: bytes, label: tuple, outage: int) -> None:
        self.sender = sender
        self.destination = destination
        self.frame = frame
        self.label = label  # (message, origin, sequence)
        self.outage = outage  # how often the sender had failed when the frame was made
        self.start = 0
        self.end = 0
        self.backoffs = 0
        self.attempt = 0


class Channel:
    """Who hears whom, and how well: the topology as flat lists, indexed by a node's place in ascending order.

    An arc is (receiver's place, delivery ratio, key of its draws or None if it loses nothing).
    """

    def __init__(self, topology: Any, radio: Any, seed: int) -> None:
        self.addresses = tuple(sorted(topology.nodes))
        self.place = {address: i for i, address in enumerate(self.addresses)}
        self.receivers: list[list[tuple]] = []
        for sender, arcs in sorted(topology.adjacency()):
            self.receivers.append(
                [
                    (self.place[receiver], ratio, draws.make_key(seed, purposes.LINK_LOSS, sender, receiver))
                    if (ratio := radio.delivery_ratio(data["pdr"])) < 1.0
                    else (self.place[receiver], ratio, None)
                    for receiver, data in sorted(arcs.items())
                ]
            )
        self._by_receiver: list[dict[int, tuple]] = [{} for _ in self.addresses]

    def arc(self, sender: int, receiver: int) -> tuple | None:
        """The arc between two places, or None."""
        arcs = self._by_receiver[sender]
        if not arcs:
            arcs.update((arc[0], arc) for arc in self.receivers[sender])
        return arcs.get(receiver)


class Kernel:
    """One run of one scenario. Use `run(scenario, record)`.

    A driver of nodes that live elsewhere overrides `make_node`, and the methods that do what the workload asks: `act`,
    `subscribe`, `unsubscribe`, `publish`, `fail`, `recover`, `refuse`. One with a clock of its own calls `start` and
    `play_until` in place of `run`, and gives what nodes send to `send`.
    """

    def __init__(self, scenario: Any, recorder: Recorder) -> None:
        self.scenario = scenario
        self.recorder = recorder
        self.record = recorder.append
        # Rows that come by the million are not even made where they would only be counted.
        self.count_frame = recorder.count_frame if isinstance(recorder, MetricsRecorder) else None
        self.radio = scenario.radio
        self.collisions, self.csma = self.radio.collisions, self.radio.csma
        self.shares_air = self.collisions or self.csma
        self.airtimes_us: dict[int, int] = {}  # by the frame's size
        self.channel = Channel(scenario.topology, scenario.radio, scenario.seed)
        self.heap: list[tuple] = []
        self.counter = 0
        self.addresses = addresses = self.channel.addresses
        count = len(addresses)
        self.nodes: list[Node] = [
            self.make_node(address, draws.Stream(key))
            for address, key in zip(addresses, self._keys(draws.PROTOCOL), strict=True)
        ]
        self.wake_at: list[int | None] = [None] * count
        self.free_at = [0] * count  # when a node's radio has sent all it was given so far
        self.sent = [0] * count  # frames begun: the counter of a node's radio draws
        self.outages = [0] * count  # how often a node has failed so far
        self.down = [0] * count  # how many of the workload's outages keep a node off now
        self.queues: list[list[Transmission]] = [[] for _ in range(count)]  # csma: frames that wait their turn
        self.on_air: list[list[Transmission]] = [[] for _ in range(count)]  # what each node hears, with collisions
        self.subscriptions: dict[tuple[int, int], Any] = {}
        self.backoff_keys = self._keys(purposes.BACKOFF) if self.radio.csma else []
        shortest_us, longest_us = (round(1000 * ms) for ms in scenario.radio.jitter_ms)
        self.jitter = Delays(self._keys(purposes.JITTER), shortest_us, longest_us) if longest_us else None
        self.describe = scenario.protocol.kind_of_node().describe
        # By the kind of a heap entry.
        self.handlers: tuple[Callable[[int, Any], None], ...] = (
            self.act,
            self._wake,
            self._check_channel,
            self._end_frame,
            self._contend,
        )

    def make_node(self, address: int, random: draws.Stream) -> Node:
        """The node at an address: the protocol's own, here; one that lives elsewhere, where motes are driven."""
        return self.scenario.protocol.make_node(address, random)

    def _keys(self, purpose: int) -> list[int]:
        """The key of each node's draws for a purpose."""
        key = draws.make_key(self.scenario.seed, purpose)
        return node_keys(key, self.addresses)

    # The main loop

    def run(self, duration_us: int, progress: Callable[[float], None] | None) -> None:
        """Play the scenario to its end."""
        self.start(duration_us)
        heap, handlers = self.heap, self.handlers
        while heap:
            for _ in range(10_000):
                now, _, kind, argument = heappop(heap)
                if now < duration_us or kind not in (ACTION, WAKE):
                    handlers[kind](now, argument)
                if not heap:
                    break
            self.recorder.flush_if_large()
            if progress is not None:
                progress(min(1.0, now / duration_us))
        if isinstance(self.recorder, MetricsRecorder):
            for node in self.nodes:
                self.recorder.count_drops(node.drops)

    def play_until(self, time_us: int) -> None:
        """Play what is due up to a time, that time included."""
        while self.heap and self.heap[0][0] <= time_us:
            now, _, kind, argument = heappop(self.heap)
            self.handlers[kind](now, argument)

    def forget_actions(self) -> None:
        """From now on nobody publishes and no timer fires: only frames that are on their way are played."""
        self.heap[:] = [entry for entry in self.heap if entry[2] not in (ACTION, WAKE)]
        heapify(self.heap)

    def start(self, duration_us: int) -> None:
        """Begin: the workload is planned, the nodes are started and told of their links."""
        scenario = self.scenario
        for action in workload.expand(scenario.workload, self.addresses, duration_us, scenario.seed):
            self._push(action.time_us, ACTION, action)
        for node in self.nodes:
            node.tells_all = not self.recorder.metrics_only
            node.start(0)
        if type(self.nodes[0]).link_quality is not Node.link_quality:
            for i in range(len(self.nodes)):
                self.tell_links(i, 0)
        for i in range(len(self.nodes)):
            self._collect(i, 0)

    def tell_links(self, i: int, now: int) -> None:
        """Tell a node what a link layer would have learnt of those it hears: the true delivery ratios, both ways."""
        channel, address = self.channel, self.addresses[i]
        for neighbor in sorted(self.scenario.topology.predecessors(address)):
            place = channel.place[neighbor]
            there, back = channel.arc(place, i), channel.arc(i, place)
            inbound, outbound = (0.0 if arc is None else arc[1] for arc in (there, back))
            self.nodes[i].link_quality(neighbor, inbound, outbound, now)

    def _push(self, time: int, kind: int, argument: Any) -> None:
        self.counter += 1
        heappush(self.heap, (time, self.counter, kind, argument))

    # The application

    def act(self, now: int, action: workload.Action) -> None:
        """Do what the workload asks for; a node that is down is asked for nothing."""
        i = self.channel.place[action.node]
        if action.kind == workload.FAIL:
            self.fail(i, now)
        elif action.kind == workload.RECOVER:
            self.recover(i, now)
        elif not self.down[i]:
            try:
                self._apply(i, now, action)
            except WorkbenchError as error:
                self.refuse(now, action, error)
            self._collect(i, now)

    def refuse(self, now: int, action: workload.Action, error: WorkbenchError) -> None:
        """What the workload asks for cannot be done: a run that is a function of its scenario ends here."""
        raise ScenarioError(f"workload item {action.index} at node {action.node}: {error}") from error

    def _apply(self, i: int, now: int, action: workload.Action) -> None:
        if action.kind == workload.PUBLISH:
            self.publish(i, now, action)
        elif action.kind == workload.SUBSCRIBE:
            self.subscribe(i, now, action)
        else:
            self.unsubscribe(i, now, action)

    def subscribe(self, i: int, now: int, action: workload.Action) -> None:
        """The node at place ``i`` subscribes."""
        item = action.item
        attributes = parse(item.what)
        subscription = self.nodes[i].subscribe(attributes, now, item.expires_s, item.match_all)
        self.subscriptions[i, action.index] = subscription
        expires_us = NOBODY if subscription.expires_us is None else subscription.expires_us
        self._record_action(now, action.node, "subscribed", subscription.number, expires_us, to_text(attributes))

    def unsubscribe(self, i: int, now: int, action: workload.Action) -> None:
        """A subscription of its ends; one that there is not is no error."""
        subscription = self.subscriptions.pop((i, action.index), None)
        if subscription is not None:
            self._record_action(now, action.node, "unsubscribed", subscription.number, 0, "")
            self.nodes[i].unsubscribe(subscription, now)

    def reading(self, action: workload.Action, now: int) -> tuple[Attribute, ...]:
        """What a publication says: its text, or what the sensor field is at the node's place and this time."""
        text = action.item.what
        if not isinstance(text, str):
            x_m, y_m = self.scenario.topology.nodes[action.node]["pos"]
            text = text.attributes(action.node, x_m, y_m, now / 1e6, self.scenario.extent_m)
        return parse(text)

    def publish(self, i: int, now: int, action: workload.Action) -> None:
        """The node at place ``i`` publishes."""
        item = action.item
        attributes = self.reading(action, now)
        number = self.nodes[i].publish(attributes, now, item.payload)
        text = to_text(with_payload(attributes, item.payload))
        self._record_action(now, action.node, "published", number, 0, text)

    def _record_action(self, now: int, node: int, event: str, sequence: int, value: int, detail: str) -> None:
        self.record((now, node, event, NOBODY, "", node, sequence, 0, value, detail))

    def fail(self, i: int, now: int) -> None:
        """The node at place ``i`` is off from now on, until it has recovered as often as it has failed."""
        self.down[i] += 1
        if self.down[i] > 1:
            return
        self._record_action(now, self.addresses[i], "failed", 0, 0, "")
        self.outages[i] += 1
        # The first in the queue, and what has not joined it yet, is given up when its time comes.
        for transmission in self.queues[i][1:]:
            self._give_up(transmission, now, "down")
        self.queues[i] = []
        self._fall_silent(i, now)

    def _fall_silent(self, i: int, now: int) -> None:
        """Node ``i`` has failed: from now on nothing of its transmissions disturbs anybody."""
        for hearer in (i, *(arc[0] for arc in self.channel.receivers[i])):
            self.on_air[hearer] = [t for t in self.on_air[hearer] if t.sender != i or t.start < now]
        for transmission in self.on_air[i]:
            if transmission.sender == i:
                transmission.end = min(transmission.end, now)

    def recover(self, i: int, now: int) -> None:
        """One of the reasons why the node at place ``i`` is off has ended."""
        self.down[i] -= 1
        if self.down[i] == 0:
            self.free_at[i] = now
            self._record_action(now, self.addresses[i], "recovered", 0, 0, "")
            self.wake_at[i] = None
            self._collect(i, now)

    # Nodes

    def _wake(self, now: int, i: int) -> None:
        if self.wake_at[i] == now and not self.down[i]:
            self.wake_at[i] = None
            node = self.nodes[i]
            if node.next_wake is not None and node.next_wake <= now:
                node.wake(now)
                if node.next_wake is not None and node.next_wake <= now:
                    raise ScenarioError(
                        f"node {self.addresses[i]} was woken at {now} µs and asks to be woken at {node.next_wake} µs; "
                        f"{type(node).__name__}.wake() has to move next_wake on, or clear it"
                    )
            self._collect(i, now)

    def _collect(self, i: int, now: int) -> None:
        """Record what happened at a node, put its frames on the air, note when it wants to be woken."""
        node = self.nodes[i]
        if node.events:
            self.recorder.protocol_events(now, self.addresses[i], node.take_events())
        if node.outbox:
            for destination, frame in node.take_frames():
                self.send(i, destination, frame, now)
        wake = node.next_wake
        if wake != self.wake_at[i]:
            self.wake_at[i] = wake
            if wake is not None:
                # A wake-up that lies in the past is due now.
                self.wake_at[i] = max(wake, now)
                self._push(max(wake, now), WAKE, i)

    # Radio

    def send(self, i: int, destination: int | None, frame: bytes, now: int) -> None:
        """Give a node's radio a frame to send."""
        ready = now
        receiver = None
        if destination is not None:
            receiver = self.channel.place.get(destination, -1)
        elif self.jitter is not None:
            self.sent[i] = number = self.sent[i] + 1
            ready += self.jitter.draw(i, number)
        label = self.describe(frame, destination is None)
        transmission = Transmission(i, receiver, frame, label, self.outages[i])
        if self.csma:
            # Frames wait their turn in the queue from the moment they are ready.
            self._push(ready, _FRAME_READY, transmission)
        else:
            free = self.free_at[i]
            self._begin(transmission, ready if ready > free else free, now)

    def _begin(self, transmission: Transmission, start: int, now: int) -> None:
        """A frame goes on the air at ``start``, now or later."""
        size = len(transmission.frame)
        airtime = self.airtimes_us.get(size)
        if airtime is None:
            airtime = self.airtimes_us[size] = self.radio.airtime_us(size)
        transmission.start = start
        transmission.end = self.free_at[transmission.sender] = start + airtime
        if self.shares_air:
            for receiver, _, _ in self.channel.receivers[transmission.sender]:
                self._hear(receiver, transmission, now)
            self._hear(transmission.sender, transmission, now)
        self.counter += 1
        heappush(self.heap, (start + airtime, self.counter, _FRAME_END, transmission))

    def _hear(self, i: int, transmission: Transmission, now: int) -> None:
        """Note a transmission that node ``i`` can hear, and forget those that can no longer disturb anything."""
        audible = self.on_air[i]
        if len(audible) >= 16:
            # Whatever ends from now on began at most the longest airtime ago.
            horizon = now - max(self.airtimes_us[len(t.frame)] for t in audible)
            audible = self.on_air[i] = [t for t in audible if t.end > horizon]
        audible.append(transmission)

    def _end_frame(self, now: int, transmission: Transmission) -> None:
        """The airtime is over: the receivers hear the frame, or do not."""
        i = transmission.sender
        sender = self.addresses[i]
        message, origin, sequence = transmission.label
        size = len(transmission.frame)
        if transmission.outage != self.outages[i]:
            self.record((now, sender, "given_up", NOBODY, message, origin, sequence, size, 0, "down"))
            return
        destination = transmission.destination
        peer = NOBODY if destination is None else self._address(destination)
        if self.count_frame is None:
            airtime = transmission.end - transmission.start
            self.record((now, sender, "sent", peer, message, origin, sequence, size, airtime, ""))
        if destination is None:
            heard = self._arrive(self.channel.receivers[i], transmission, now)
        else:
            arc = self.channel.arc(i, destination)
            heard = 0 if arc is None else self._arrive((arc,), transmission, now)
            if arc is None and peer != NOBODY:
                self.record((now, peer, "lost", sender, message, origin, sequence, size, 0, "link"))
            if self.radio.retries:
                self._acknowledge(heard == 1, transmission, now)
        if self.count_frame is not None:
            self.count_frame(message, size, heard)
        if self.csma:
            self._next_in_queue(i, now)

    def _address(self, place: int) -> int:
        return self.addresses[place] if place >= 0 else NOBODY

    def _arrive(self, arcs: Sequence[tuple], transmission: Transmission, now: int) -> int:
        """The receivers at the end of these arcs hear the frame or lose it; returns how many heard it."""
        sender = self.addresses[transmission.sender]
        message, origin, sequence = transmission.label
        frame = transmission.frame
        size = len(frame)
        broadcast = transmission.destination is None
        collisions = self.collisions
        addresses, nodes, down, wake_at = self.addresses, self.nodes, self.down, self.wake_at
        record = None if self.count_frame is not None else self.record
        heard = len(arcs)
        for receiver, ratio, key in arcs:
            if key is not None or collisions or down[receiver]:
                reason = self._why_lost(receiver, ratio, key, transmission)
                if reason:
                    heard -= 1
                    row = now, addresses[receiver], "lost", sender, message, origin, sequence, size, 0, reason
                    self.record(row)
                    continue
            if record is not None:
                record((now, addresses[receiver], "received", sender, message, origin, sequence, size, 0, ""))
            node = nodes[receiver]
            node.receive(frame, sender, now, broadcast)
            if node.events or node.outbox or node.next_wake != wake_at[receiver]:
                self._collect(receiver, now)
        return heard

    def _why_lost(self, receiver: int, ratio: float, key: int | None, transmission: Transmission) -> str:
        """Why a frame is lost on the way to a receiver, or an empty text."""
        if self.down[receiver]:
            return "down"
        # The start time tells a sender's frames apart: its radio sends one at a time.
        if key is not None and draws.uniform(key, transmission.start) >= ratio:
            return "link"
        return self._disturbance(receiver, transmission) if self.radio.collisions else ""

    def _disturbance(self, receiver: int, transmission: Transmission) -> str:
        """Why a receiver cannot make out a frame, or an empty text."""
        start, end = transmission.start, transmission.end
        reason = ""
        for other in self.on_air[receiver]:
            if other is transmission or other.start >= end or other.end <= start:
                continue
            if other.sender == receiver:
                return "half_duplex"
            reason = "collision"
        return reason

    # CSMA/CA and acknowledgements (IEEE 802.15.4)

    def _contend(self, now: int, transmission: Transmission) -> None:
        """A frame is ready: it joins its node's queue, and at its head begins to contend for the channel."""
        i = transmission.sender
        if transmission.outage != self.outages[i]:
            self._give_up(transmission, now, "down")
            return
        self.queues[i].append(transmission)
        if len(self.queues[i]) == 1:
            self._back_off(transmission, now)

    def _back_off(self, transmission: Transmission, now: int) -> None:
        i = transmission.sender
        exponent = min(MIN_BACKOFF_EXPONENT + transmission.backoffs, MAX_BACKOFF_EXPONENT)
        self.sent[i] += 1
        slots = draws.below(self.backoff_keys[i], self.sent[i], 1 << exponent)
        self._push(max(now, self.free_at[i]) + slots * UNIT_BACKOFF_US, _CHANNEL_CHECK, transmission)

    def _check_channel(self, now: int, transmission: Transmission) -> None:
        i = transmission.sender
        if transmission.outage != self.outages[i]:
            self._give_up(transmission, now, "down")
            return
        if not any(other.start <= now < other.end for other in self.on_air[i]):
            self._begin(transmission, now + TURNAROUND_US, now)
        elif transmission.backoffs < MAX_BACKOFFS:
            transmission.backoffs += 1
            self._back_off(transmission, now)
        else:
            self._give_up(transmission, now, "channel_busy")
            self._next_in_queue(i, now)

    def _give_up(self, transmission: Transmission, now: int, reason: str) -> None:
        message, origin, sequence = transmission.label
        sender = self.addresses[transmission.sender]
        self.record((now, sender, "given_up", NOBODY, message, origin, sequence, len(transmission.frame), 0, reason))

    def _next_in_queue(self, i: int, now: int) -> None:
        queue = self.queues[i]
        if queue:
            queue.pop(0)
        if queue:
            self._back_off(queue[0], now)

    def _acknowledge(self, arrived: bool, transmission: Transmission, now: int) -> None:
        """Without an acknowledgement a unicast frame is sent again, up to ``retries`` times."""
        i = transmission.sender
        wait = TURNAROUND_US + self.radio.airtime_us(ACKNOWLEDGEMENT_B)
        self.free_at[i] = max(self.free_at[i], now + wait)
        if arrived and not self._acknowledgement_lost(transmission):
            return
        if transmission.attempt >= self.radio.retries:
            return
        again = Transmission(i, transmission.destination, transmission.frame, transmission.label, transmission.outage)
        again.attempt = transmission.attempt + 1
        if self.radio.csma:
            self.queues[i].insert(1, again)
        else:
            self._begin(again, self.free_at[i], now)

    def _acknowledgement_lost(self, transmission: Transmission) -> bool:
        receiver = transmission.destination
        if receiver is None:
            return False
        arc = self.channel.arc(receiver, transmission.sender)
        if arc is None:
            return True
        _, ratio, _ = arc
        if ratio >= 1.0:
            return False
        addresses = self.addresses
        key = draws.make_key(
            self.scenario.seed, purposes.ACKNOWLEDGEMENT_LOSS, addresses[receiver], addresses[transmission.sender]
        )
        return draws.uniform(key, transmission.start) >= ratio


def run(scenario: Any, record: str, progress: Callable[[float], None] | None = None) -> Recorder:
    """Run a scenario on the reference engine; ``record`` is "trace" or "metrics". Returns what was recorded."""
    sinks = frozenset(
        node
        for item in scenario.workload
        if isinstance(item, workload.Subscribe)
        for node in (scenario.topology.nodes if isinstance(item.at, str) else item.at)
    )
    recorder = MetricsRecorder(sinks, kept_events(scenario.protocol)) if record == "metrics" else Recorder()
    # Nothing here makes reference cycles, and the collector would walk millions of rows again and again.
    collects = gc.isenabled()
    gc.disable()
    try:
        Kernel(scenario, recorder).run(round(scenario.duration_s * 1_000_000), progress)
    finally:
        if collects:
            gc.enable()
    return recorder

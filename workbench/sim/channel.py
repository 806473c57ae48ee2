"""The air of the reference engine: frames from a node's radio to the end of their airtime.

Theory of operation
    A node's frame goes on the air when its radio is free. At the end of the frame's airtime its receivers hear it, in
    neighbor order: loss is drawn, collisions are looked up, and the node's ``receive`` is called. So a transmission
    costs one heap entry however many nodes hear it. With csma there are about three: the frame is ready, the node looks
    at the channel, the frame ends.

    Every draw is a hash of (seed, purpose, node or link, counter): see `workbench/draws.py`.

Contract
    The kernel calls ``send`` for each frame that a node sends, ``report_links`` when a node starts, and the handlers of
    CHANNEL_CHECK, FRAME_END and FRAME_READY with the `Transmission` they were pushed with. An application calls
    ``fall_silent`` when a node fails and ``be_free`` when it has recovered. The air reads ``kernel.down``, calls the
    kernel's nodes (``receive``, and ``sent`` where the protocol has it) and, after each call that left something to do,
    ``kernel.collect``.

Cost
    One heap operation per transmission and one ``receive`` per reception; with collisions, also one entry per
    audible neighbor and a scan of the few transmissions that a receiver has heard lately.

The same for the fast engine is in `workbench.sim.fast.channel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappush
from typing import Any

from workbench import draws, purposes
from workbench.protocols.contract import NOBODY, Node
from workbench.sim.delays import Delays, node_keys
from workbench.sim.kernel import CHANNEL_CHECK, FRAME_END, FRAME_READY, Kernel
from workbench.sim.trace import MetricsRecorder

# IEEE 802.15.4-2006, 7.4.2 and 7.5.1.4, at 2.4 GHz: 16 µs per symbol.
UNIT_BACKOFF_US = 320
TURNAROUND_US = 192
MIN_BACKOFF_EXPONENT = 3
MAX_BACKOFF_EXPONENT = 5
MAX_BACKOFFS = 4
ACKNOWLEDGEMENT_B = 5


# Receiver's index, delivery ratio, key of its draws or None if it loses nothing.
_Arc = tuple[int, float, Any]


class Transmission:
    """One frame on its way from a node's radio to its receivers; ``attempt`` counts unicast retries."""

    __slots__ = ("attempt", "backoffs", "destination", "end", "frame", "label", "outage", "sender", "start")

    def __init__(
        self, sender: int, destination: int | None, frame: bytes, label: tuple[str, int, int], outage: int
    ) -> None:
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
    """Who hears whom, and how well: the topology as flat lists, indexed by a node's index."""

    def __init__(self, topology: Any, radio: Any, seed: int, index: dict[int, int]) -> None:
        self.receivers: list[list[_Arc]] = []
        for sender, arcs in sorted(topology.adjacency()):
            self.receivers.append(
                [
                    (index[receiver], ratio, draws.make_key(seed, purposes.LINK_LOSS, sender, receiver))
                    if (ratio := radio.delivery_ratio(data["pdr"])) < 1.0
                    else (index[receiver], ratio, None)
                    for receiver, data in sorted(arcs.items())
                ]
            )
        self._by_receiver: list[dict[int, _Arc]] = [{} for _ in index]

    def arc(self, sender: int, receiver: int) -> _Arc | None:
        """The arc between two nodes, by their indices, or None."""
        arcs = self._by_receiver[sender]
        if not arcs:
            arcs.update((arc[0], arc) for arc in self.receivers[sender])
        return arcs.get(receiver)


class Air:
    """The channel and the radios of all nodes of one run. A node goes by its index, as in `Kernel`."""

    def __init__(self, scenario: Any, kernel: Kernel) -> None:
        self.scenario = scenario
        recorder = kernel.recorder
        self.record = recorder.append
        # Rows that come by the million are not even made where they would only be counted.
        self.count_frame = recorder.count_frame if isinstance(recorder, MetricsRecorder) else None
        self.radio = scenario.radio
        self.collisions, self.csma = self.radio.collisions, self.radio.csma
        self.shares_air = self.collisions or self.csma
        self.airtimes_us: dict[int, int] = {}  # by the frame's size
        self.channel = Channel(scenario.topology, scenario.radio, scenario.seed, kernel.index)
        self.addresses = kernel.addresses
        count = len(self.addresses)
        self.free_at = [0] * count  # when a node's radio has sent all it was given so far
        self.sent = [0] * count  # frames begun: the counter of a node's radio draws
        self.outages = [0] * count  # how often a node has failed so far
        self.queues: list[list[Transmission]] = [[] for _ in range(count)]  # csma: frames that wait their turn
        self.on_air: list[list[Transmission]] = [[] for _ in range(count)]  # what each node hears, with collisions
        self.backoff_keys = self._keys(purposes.BACKOFF) if self.radio.csma else []
        shortest_us, longest_us = (round(1000 * ms) for ms in scenario.radio.jitter_ms)
        self.jitter = Delays(self._keys(purposes.JITTER), shortest_us, longest_us) if longest_us else None
        kind_of_node = scenario.protocol.kind_of_node()
        self.describe = kind_of_node.describe
        self.reports = kind_of_node.sent is not Node.sent  # whether nodes want the outcomes of their unicasts
        self._join(kernel)

    def _join(self, kernel: Kernel) -> None:
        """Enter what the kernel calls the air for, and keep at hand what is used for each frame."""
        self.kernel, self.heap = kernel, kernel.heap
        self.nodes, self.wake_at, self.down = kernel.nodes, kernel.wake_at, kernel.down
        kernel.air = self
        kernel.handlers[CHANNEL_CHECK] = self._check_channel
        kernel.handlers[FRAME_END] = self._end_frame
        kernel.handlers[FRAME_READY] = self._contend

    def _keys(self, purpose: int) -> list[int]:
        """The key of each node's draws for a purpose."""
        return node_keys(draws.make_key(self.scenario.seed, purpose), self.addresses)

    def report_links(self, i: int, now: int) -> None:
        """Report to a node what a link layer would have learnt of its links: the true delivery ratios, both ways."""
        channel, address = self.channel, self.addresses[i]
        for neighbor in sorted(self.scenario.topology.predecessors(address)):
            index = self.kernel.index[neighbor]
            there, back = channel.arc(index, i), channel.arc(i, index)
            inbound, outbound = (0.0 if arc is None else arc[1] for arc in (there, back))
            self.nodes[i].link_quality(neighbor, inbound, outbound, now)

    # Sending

    def send(self, i: int, destination: int | None, frame: bytes, now: int) -> None:
        """Give a node's radio a frame to send."""
        ready = now
        receiver = None
        if destination is not None:
            receiver = self.kernel.index.get(destination, -1)
        elif self.jitter is not None:
            self.sent[i] = number = self.sent[i] + 1
            ready += self.jitter.draw(i, number)
        label = self.describe(frame, destination is None)
        transmission = Transmission(i, receiver, frame, label, self.outages[i])
        if self.csma:
            # Frames wait their turn in the queue from the moment they are ready.
            self.kernel.push(ready, FRAME_READY, transmission)
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
        kernel = self.kernel
        kernel.counter += 1
        heappush(self.heap, (start + airtime, kernel.counter, FRAME_END, transmission))

    def _hear(self, i: int, transmission: Transmission, now: int) -> None:
        """Note a transmission that node ``i`` can hear, and forget those that can no longer disturb anything."""
        audible = self.on_air[i]
        if len(audible) >= 16:
            # Whatever ends from now on began at most the longest airtime ago.
            horizon = now - max(self.airtimes_us[len(t.frame)] for t in audible)
            audible = self.on_air[i] = [t for t in audible if t.end > horizon]
        audible.append(transmission)

    # Receiving

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
        outcome = None
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
                outcome = self._acknowledge(heard == 1, transmission, now)
        if self.count_frame is not None:
            self.count_frame(message, size, heard)
        if self.csma:
            self._next_in_queue(i, now)
        if outcome is not None and self.reports:
            self._report(transmission, outcome, now)

    def _address(self, index: int) -> int:
        return self.addresses[index] if index >= 0 else NOBODY

    def _arrive(self, arcs: Sequence[_Arc], transmission: Transmission, now: int) -> int:
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
                self.kernel.collect(receiver, now)
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
        self.kernel.push(max(now, self.free_at[i]) + slots * UNIT_BACKOFF_US, CHANNEL_CHECK, transmission)

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
            if transmission.destination is not None and self.reports:
                self._report(transmission, False, now)

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

    def _report(self, transmission: Transmission, ok: bool, now: int) -> None:
        """Report the outcome of a unicast frame to the node that sent it."""
        i, destination = transmission.sender, transmission.destination
        assert destination is not None
        self.nodes[i].sent(self._address(destination), transmission.frame, ok, now)
        self.kernel.collect(i, now)

    def _acknowledge(self, arrived: bool, transmission: Transmission, now: int) -> bool | None:
        """Send a unicast frame again, up to ``retries`` times, unless it was acknowledged.

        Return whether it was acknowledged; None if it is sent again.
        """
        i = transmission.sender
        wait = TURNAROUND_US + self.radio.airtime_us(ACKNOWLEDGEMENT_B)
        self.free_at[i] = max(self.free_at[i], now + wait)
        if arrived and not self._acknowledgement_lost(transmission):
            return True
        if transmission.attempt >= self.radio.retries:
            return False
        again = Transmission(i, transmission.destination, transmission.frame, transmission.label, transmission.outage)
        again.attempt = transmission.attempt + 1
        if self.radio.csma:
            self.queues[i].insert(1, again)
        else:
            self._begin(again, self.free_at[i], now)
        return None

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

    # Outages

    def fall_silent(self, i: int, now: int) -> None:
        """Node ``i`` has failed: its queue is given up, and its transmissions disturb nobody from now on."""
        self.outages[i] += 1
        # The first in the queue, and what has not joined it yet, is given up when its time comes.
        for transmission in self.queues[i][1:]:
            self._give_up(transmission, now, "down")
        self.queues[i] = []
        for hearer in (i, *(arc[0] for arc in self.channel.receivers[i])):
            self.on_air[hearer] = [t for t in self.on_air[hearer] if t.sender != i or t.start < now]
        for transmission in self.on_air[i]:
            if transmission.sender == i:
                transmission.end = min(transmission.end, now)

    def be_free(self, i: int, now: int) -> None:
        """Node ``i`` has recovered: its radio has nothing left to send."""
        self.free_at[i] = now

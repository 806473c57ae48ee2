"""The channel of the reference engine: frames from a node's radio to the end of their airtime.

Theory of operation
    A node's frame goes on the air when its radio is free. At the end of the frame's airtime the channel visits its
    receivers in neighbor order: it draws the loss, looks for collisions, and calls the node's ``receive``. So a
    transmission costs one heap entry however many nodes hear it. With csma there are about three: the frame is ready,
    the node checks the channel, the frame ends.

    Every draw is a hash of (seed, purpose, node or link, counter): see `workbench/draws.py`.

Contract
    The kernel calls ``send`` for each frame that a node sends, ``report_links`` when a node starts, and the handlers of
    CHANNEL_CHECK, FRAME_END, FRAME_READY and STROBE_END with the entry's `Transmission`. An application calls
    ``stop_radio`` when a node fails and ``restart_radio`` when it has recovered. The channel reads ``kernel.down`` and
    calls the kernel's nodes: ``receive``, and also ``sent`` and ``link_quality`` if the protocol's node defines them.
    If such a call has produced events, frames or a new wake-up, the channel then calls ``kernel.collect``; after
    ``report_links`` the kernel does so itself.

Cost
    One heap operation per transmission and one ``receive`` per reception; with collisions, also one entry per
    audible neighbor and a scan of the few transmissions that a receiver has heard recently.

The fast engine's channel is `workbench.sim.fast.channel`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from heapq import heappush
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np

from workbench import draws, purposes
from workbench.errors import ScenarioError
from workbench.protocols.contract import NOBODY, Node
from workbench.protocols.link_estimator import NUMBERS, LinkEstimator, half_interval_us
from workbench.sim.capture import strengths_ddB, threshold_ddB
from workbench.sim.changes.arcs import JAM, JAM_END, RATIO, LinkChanges, link_changes, noise_intervals
from workbench.sim.delays import Delays, node_keys
from workbench.sim.kernel import BEACON, CHANNEL_CHECK, FRAME_END, FRAME_READY, LINKS, STROBE_END, Kernel
from workbench.sim.low_power import TURNAROUND_US, UNIT_BACKOFF_US, check_time, copy_end, next_wake, strobe_end
from workbench.sim.radio import count_fragments, describe_long_frame, share_of_whole_frames, uses_quality
from workbench.sim.state_times import (
    ACKNOWLEDGEMENT,
    BROADCAST,
    CHECK,
    CHECK_US,
    FAILURE,
    FRAME,
    RECOVERY,
    STROBE,
    UNREACHABLE,
    WAIT,
    RadioLedger,
)
from workbench.sim.trace import MetricsRecorder

# IEEE 802.15.4-2006, 7.4.2 and 7.5.1.4, at 2.4 GHz.
MIN_BACKOFF_EXPONENT = 3
MAX_BACKOFF_EXPONENT = 5
MAX_BACKOFFS = 4
ACKNOWLEDGEMENT_B = 5

BEACON_NAME = "beacon"  # of radios with learned link qualities, in the trace

# Outcomes of a unicast transmission. UNDECIDED: the frame is sent again, or the radio does not use acknowledgements.
# STROBING: the acknowledgement is missing, and the sender continues to send copies of the frame.
UNACKNOWLEDGED, ACKNOWLEDGED, UNDECIDED, STROBING = range(4)


# Receiver's index, delivery ratio, and the key of the arc's loss draws, None if the arc loses no frame.
_Arc = tuple[int, float, Any]


class Transmission:
    """A frame in transit from a node's radio to its receivers; ``attempt``: how often a unicast was sent before."""

    __slots__ = ("attempt", "backoffs", "destination", "end", "frame", "label", "outage", "sender", "start")

    def __init__(
        self, sender: int, destination: int | None, frame: bytes, label: tuple[str, int, int], outage: int
    ) -> None:
        self.sender = sender
        self.destination = destination
        self.frame = frame
        self.label = label  # (message, origin, sequence)
        self.outage = outage  # number of the sender's failures when the frame was created
        self.start = 0
        self.end = 0
        self.backoffs = 0
        self.attempt = 0


class Arcs:
    """The arcs of the network: ``receivers[i]`` is the list of arcs from the node with index ``i``, in receiver order.

    An arc is (index of the receiver, delivery ratio, key of the random draws of its losses). The key is None if the
    ratio is 1. ``changes``: the changes of the arcs during the run, or None. ``ever[i]``: the receivers, as indices, of
    all arcs from node ``i`` that exist at any time of the run.
    """

    def __init__(
        self, topology: Any, radio: Any, seed: int, index: dict[int, int], changes: LinkChanges | None = None
    ) -> None:
        self._seed, self._addresses = seed, tuple(index)
        if changes is None:
            self.receivers = [
                [
                    self._make_arc(index[sender], index[receiver], radio.delivery_ratio(arc_data["pdr"]))
                    for receiver, arc_data in sorted(arcs.items())
                ]
                for sender, arcs in sorted(topology.adjacency())
            ]
        else:
            self.receivers = [[] for _ in index]
            for sender, receiver, ratio in zip(*(column.tolist() for column in changes[:3]), strict=True):
                if ratio >= 0:
                    self.receivers[sender].append(self._make_arc(sender, receiver, ratio))
        self.ever = [[arc[0] for arc in arcs] for arcs in self.receivers]
        if changes is not None:
            self.ever = [[] for _ in index]
            for sender, receiver in zip(changes.senders.tolist(), changes.receivers.tolist(), strict=True):
                self.ever[sender].append(receiver)
        self._by_receiver: list[dict[int, _Arc]] = [{} for _ in index]

    def _make_arc(self, sender: int, receiver: int, ratio: float) -> _Arc:
        if ratio >= 1.0:
            return receiver, ratio, None
        ends = self._addresses[sender], self._addresses[receiver]
        return receiver, ratio, draws.make_key(self._seed, purposes.LINK_LOSS, *ends)

    def find(self, sender: int, receiver: int) -> _Arc | None:
        """Return the arc from ``sender`` to ``receiver``, given by their indices; None if the network lacks it."""
        arcs = self._by_receiver[sender]
        if not arcs:
            arcs.update((arc[0], arc) for arc in self.receivers[sender])
        return arcs.get(receiver)

    def change(self, sender: int, receiver: int, ratio: float) -> None:
        """Give an arc another delivery ratio; a ratio below 0 removes the arc. The nodes are given by their indices."""
        arcs = self.receivers[sender]
        row = bisect_left(arcs, receiver, key=itemgetter(0))
        is_present = row < len(arcs) and arcs[row][0] == receiver
        arcs[row : row + is_present] = [self._make_arc(sender, receiver, ratio)] if ratio >= 0 else []
        self._by_receiver[sender].clear()


class Channel:
    """The medium and the radios of all nodes of one run. A node is referred to by its index, as in `Kernel`."""

    def __init__(self, scenario: Any, kernel: Kernel, motes_have_radios: bool = False) -> None:
        self.scenario = scenario
        recorder = kernel.recorder
        self.record = recorder.append
        # In runs that record metrics only, frames are counted without a row for each: there may be millions.
        self.count_frame = recorder.count_frame if isinstance(recorder, MetricsRecorder) else None
        self.radio = scenario.radio
        self.collisions, self.csma = self.radio.collisions, self.radio.senses_carrier
        self.shares_medium = self.collisions or self.csma
        self.airtimes_us: dict[int, int] = {}  # by the frame's size
        self.changes = link_changes(scenario)
        self.arcs = Arcs(scenario.topology, scenario.radio, scenario.seed, kernel.index, self.changes)
        self.addresses = kernel.addresses
        node_count = len(self.addresses)
        self.free_at = [0] * node_count  # when a node's radio will have sent all frames passed to it
        self.draw_counts = [0] * node_count  # counter of the draws of a node's radio
        self.outages = [0] * node_count  # number of failures of each node
        self.queues: list[list[Transmission]] = [[] for _ in range(node_count)]  # with csma: waiting frames
        self.audible: list[list[Transmission]] = [[] for _ in range(node_count)]  # transmissions that each node hears
        self.backoff_keys = self._make_keys(purposes.BACKOFF) if self.csma else []
        shortest_us, longest_us = (round(1000 * ms) for ms in scenario.radio.jitter_ms)
        self.jitter = Delays(self._make_keys(purposes.JITTER), shortest_us, longest_us) if longest_us else None
        kind_of_node = scenario.protocol.kind_of_node()
        self.describe = kind_of_node.describe
        self.reports = kind_of_node.sent is not Node.sent  # whether nodes use the outcomes of their unicasts
        self.wake_interval_us = self.radio.wake_interval_us
        self.phases_us = self._draw_phases() if self.wake_interval_us else []
        # (sender, receiver) -> number of the sender's failures when it learned when the receiver wakes up
        self.known_phases: dict[tuple[int, int | None], int] = {}
        self.acknowledges = self.radio.acknowledges
        self.longest_frame_B = self.radio.longest_frame_B(scenario.protocol.max_fragments)
        self.max_frame_B = self.radio.max_frame_B
        self.capture_ddB = threshold_ddB(self.radio.capture_dB)
        self.strengths_ddB = self._compute_strengths() if self.capture_ddB else {}
        self.learns = uses_quality(scenario.protocol) and self.radio.link_quality == "learned"
        self.motes_learn = self.learns and motes_have_radios  # each mote has its own estimator
        self.estimators = [LinkEstimator(address) for address in self.addresses] if self.learns else []
        self.beaconing = [-1] * node_count  # the start of each node for which beacons are planned, see `Kernel.boots`
        self.beacons_waiting = [False] * node_count  # whether a node's radio has a beacon that it has not sent yet
        self.jammers = [0] * node_count  # number of jammers that disturb a node now
        self.noise = None if self.changes is None else self._list_noise(self.changes)
        self.ledger = self._make_ledger() if self.radio.tx_mA else None
        self._register_handlers(kernel)

    def _register_handlers(self, kernel: Kernel) -> None:
        """Register the channel's handlers in the kernel, and store references to the kernel's heap and nodes."""
        self.kernel, self.heap = kernel, kernel.heap
        self.nodes, self.wake_at, self.down = kernel.nodes, kernel.wake_at, kernel.down
        kernel.channel = self
        kernel.handlers[CHANNEL_CHECK] = self._check_channel
        kernel.handlers[FRAME_END] = self._end_frame
        kernel.handlers[FRAME_READY] = self._contend
        kernel.handlers[STROBE_END] = self._end_strobe
        kernel.handlers[BEACON] = self._send_beacon
        kernel.handlers[LINKS] = self._change_links

    def _make_ledger(self) -> RadioLedger:
        hearers = self.arcs.ever
        first_hearers = [0, *accumulate(len(indices) for indices in hearers)]
        all_hearers = [i for indices in hearers for i in indices]
        return RadioLedger(first_hearers, all_hearers, self.radio, self.phases_us, self.changes)

    def _compute_strengths(self) -> dict[tuple[int, int], int]:
        """Return {(sender, receiver): strength of the sender's frames at the receiver}, in tenths of a dB."""
        if self.changes is not None:
            ends = zip(self.changes.senders.tolist(), self.changes.receivers.tolist(), strict=True)
            return dict(zip(ends, self.changes.strengths_ddB.tolist(), strict=True))
        positions_m = np.array([self.scenario.topology.nodes[address]["pos"] for address in self.addresses], float)
        pairs = [(i, arc[0]) for i, arcs in enumerate(self.arcs.receivers) for arc in arcs]
        senders, receivers = np.array(pairs, np.int64).reshape(-1, 2).T
        return dict(zip(pairs, strengths_ddB(positions_m, senders, receivers).tolist(), strict=True))

    def _list_noise(self, changes: LinkChanges) -> tuple[list[int], list[int], list[int]]:
        """Return the intervals in which jammers disturb each node, as three lists (first, begins_us, ends_us).

        The intervals of node i have the indices ``first[i]`` to ``first[i + 1] - 1`` in ``begins_us`` and ``ends_us``.
        """
        first, intervals_us = noise_intervals(changes, len(self.addresses))
        return first.tolist(), intervals_us[:, 0].tolist(), intervals_us[:, 1].tolist()

    def _draw_phases(self) -> list[int]:
        return [draws.below(key, 0, self.wake_interval_us) for key in self._make_keys(purposes.WAKE_PHASE)]

    def radio_states_us(self, end_us: int) -> np.ndarray | None:
        """Return how long each node's radio was in each state, in µs, int64 (nodes, states).

        ``end_us``: the end of the run. `workbench.sim.state_times` describes the states. Returns None if the radio does
        not state its currents.
        """
        return None if self.ledger is None else self.ledger.finish(end_us)

    def _make_keys(self, purpose: int) -> list[int]:
        """Return for each node the key of its random draws for ``purpose``, a constant of `workbench.purposes`."""
        return node_keys(draws.make_key(self.scenario.seed, purpose), self.addresses)

    def report_links(self, i: int, now: int) -> None:
        """Report to node ``i`` the delivery ratios of its links in both directions.

        If nodes learn the ratios from beacons, the node's estimates so far are reported, and after a start without
        memory the node's first beacon is scheduled. Otherwise the true ratios are reported. Do nothing if nodes are
        motes that learn the ratios by their own radios.
        """
        if self.motes_learn:
            return
        if self.learns:
            if self.beaconing[i] != self.kernel.boots[i]:
                self.beaconing[i] = self.kernel.boots[i]
                self._plan_beacon(i, 0, now)
            for neighbor, (inbound, outbound) in self.estimators[i].known_ratios():
                self.nodes[i].link_quality(neighbor, inbound, outbound, now)
            return
        for neighbor in self._list_senders(i):
            if self.arcs.find(neighbor, i) is not None:
                self._report_link(i, neighbor, now)

    def report_changed_links(self, i: int, now: int) -> None:
        """Report to node ``i`` the delivery ratios of its links, which may have changed while the node was down.

        Do nothing if no links change during the run, if the protocol does not use the ratios, or if nodes learn them
        from beacons.
        """
        if self.changes is None or self.learns or self.motes_learn or not uses_quality(self.scenario.protocol):
            return
        for neighbor in self._list_senders(i):
            self._report_link(i, neighbor, now)

    def _list_senders(self, i: int) -> list[int]:
        """Return the nodes, as indices in ascending order, from which an arc to node ``i`` leads at some time."""
        if self.changes is not None:
            return self.changes.senders[self.changes.receivers == i].tolist()
        return sorted(self.kernel.index[node] for node in self.scenario.topology.predecessors(self.addresses[i]))

    def _report_link(self, i: int, neighbor: int, now: int) -> None:
        """Report to node ``i`` the delivery ratios of its link to the node with the index ``neighbor``."""
        inbound_arc, outbound_arc = self.arcs.find(neighbor, i), self.arcs.find(i, neighbor)
        inbound, outbound = (0.0 if arc is None else arc[1] for arc in (inbound_arc, outbound_arc))
        self.nodes[i].link_quality(self.addresses[neighbor], inbound, outbound, now)

    # Changes of links

    def plan_changes(self) -> None:
        """Put the changes of links on the kernel's heap: one entry for all changes at the same time."""
        if self.changes is None or not len(self.changes.rows):
            return
        times_us = self.changes.rows["time_us"]
        first = np.flatnonzero(np.diff(times_us, prepend=-1))
        for begin, end in zip(first.tolist(), [*first[1:].tolist(), len(times_us)], strict=True):
            self.kernel.push(int(times_us[begin]), LINKS, (begin, end))

    def _change_links(self, now: int, row_range: tuple[int, int]) -> None:
        assert self.changes is not None
        for row in self.changes.rows[slice(*row_range)].tolist():
            _, ratio, subject, kind, strength_ddB = row
            if kind == JAM:
                self.jammers[subject] += 1
            elif kind == JAM_END:
                self.jammers[subject] -= 1
            else:
                sender, receiver = int(self.changes.senders[subject]), int(self.changes.receivers[subject])
                if kind == RATIO:
                    self.arcs.change(sender, receiver, ratio)
                    if self.capture_ddB:
                        self.strengths_ddB[sender, receiver] = strength_ddB
                elif not self.down[receiver] and not self.motes_learn:
                    self._report_link(receiver, sender, now)
                    self.kernel.collect(receiver, now)

    # Sending

    def send(self, i: int, destination: int | None, frame: bytes, now: int) -> None:
        """Pass a frame of node ``i`` to the node's radio; ``destination``: an address, or None for a broadcast."""
        ready_us = now
        receiver = None
        if destination is not None:
            receiver = self.kernel.index.get(destination, -1)
        elif self.jitter is not None:
            self.draw_counts[i] = draw_number = self.draw_counts[i] + 1
            ready_us += self.jitter.draw(i, draw_number)
        self._send(i, receiver, frame, self.describe(frame, destination is None), ready_us, now)

    def _send(
        self, i: int, receiver: int | None, frame: bytes, label: tuple[str, int, int], ready: int, now: int
    ) -> None:
        if len(frame) > self.longest_frame_B:
            protocol, address = self.scenario.protocol, self.addresses[i]
            raise ScenarioError(describe_long_frame(self.radio, protocol, address, label[0], len(frame)))
        transmission = Transmission(i, receiver, frame, label, self.outages[i])
        if self.csma:
            # A frame enters the queue when it is ready.
            self.kernel.push(ready, FRAME_READY, transmission)
        else:
            free_us = self.free_at[i]
            self._schedule_start(transmission, ready if ready > free_us else free_us, now)

    def _schedule_start(self, transmission: Transmission, start: int, now: int) -> None:
        """Put a frame on the air at ``start``, which is ``now`` or later, and schedule the end of its airtime."""
        size_B = len(transmission.frame)
        airtime = self.airtimes_us.get(size_B)
        if airtime is None:
            airtime = self.airtimes_us[size_B] = self.radio.airtime_us(size_B)
        transmission.start = start
        end_us = self._find_earliest_strobe_end(transmission, airtime) if self.wake_interval_us else start + airtime
        transmission.end = self.free_at[transmission.sender] = end_us
        if self.shares_medium:
            self._add_to_hearers(transmission, now)
        if self.ledger is not None:
            self._add_to_ledger(transmission, start, end_us, now)
        kernel = self.kernel
        kernel.counter += 1
        heappush(self.heap, (end_us, kernel.counter, FRAME_END, transmission))

    def _add_to_ledger(self, transmission: Transmission, start: int, end: int, now: int) -> None:
        assert self.ledger is not None
        destination, sender = transmission.destination, transmission.sender
        receiver = BROADCAST if destination is None else UNREACHABLE if destination < 0 else destination
        entry_kind = STROBE if self.wake_interval_us else FRAME
        self.ledger.add(start, end, sender, receiver, entry_kind, now, self.airtimes_us[len(transmission.frame)])

    def _add_to_hearers(self, transmission: Transmission, now: int) -> None:
        for receiver, _, _ in self.arcs.receivers[transmission.sender]:
            self._add_audible(receiver, transmission, now)
        self._add_audible(transmission.sender, transmission, now)

    def _add_audible(self, i: int, transmission: Transmission, now: int) -> None:
        """Add a transmission to the list of transmissions that node ``i`` hears.

        If the list is long, remove old transmissions, which can no longer disturb a frame.
        """
        transmissions = self.audible[i]
        if len(transmissions) >= 16:
            # A frame that ends from now on began at most the longest airtime ago.
            longest = max(self.airtimes_us[len(t.frame)] for t in transmissions)
            if self.wake_interval_us:
                longest = strobe_end(0, longest, self.wake_interval_us)
            oldest_end_us = now - longest
            transmissions = self.audible[i] = [t for t in transmissions if t.end > oldest_end_us]
        transmissions.append(transmission)

    # Receiving

    def _end_frame(self, now: int, transmission: Transmission) -> None:
        """End the airtime of a frame: deliver or lose it at its receivers."""
        i = transmission.sender
        sender = self.addresses[i]
        message, origin, sequence = transmission.label
        size_B = len(transmission.frame)
        if transmission.outage != self.outages[i]:
            self._give_up(transmission, now, "down")
            return
        destination = transmission.destination
        outcome = UNDECIDED
        peer = NOBODY if destination is None else self._address(destination)
        if self.count_frame is None:
            airtime = transmission.end - transmission.start
            self.record((now, sender, "sent", peer, message, origin, sequence, size_B, airtime, ""))
        if destination is None:
            heard_count = self._deliver(self.arcs.receivers[i], transmission, now)
        else:
            arc = self.arcs.find(i, destination)
            heard_count = 0 if arc is None else self._deliver((arc,), transmission, now)
            if arc is None and peer != NOBODY:
                self.record((now, peer, "lost", sender, message, origin, sequence, size_B, 0, "link"))
            if self.acknowledges:
                outcome = self._simulate_acknowledgement(heard_count == 1, transmission, now)
        if self.count_frame is not None:
            self.count_frame(message, size_B, heard_count)
        if outcome != STROBING:
            self._finish(transmission, outcome, now)

    def _finish(self, transmission: Transmission, outcome: int, now: int) -> None:
        """End a transmission: start the sender's next frame, and report the ``outcome`` of a unicast to the sender.

        ``outcome``: ACKNOWLEDGED, UNACKNOWLEDGED or UNDECIDED. UNDECIDED is not reported: either the frame is sent
        again, or it needs no acknowledgement.
        """
        if self.learns and transmission.label[0] == BEACON_NAME:
            self.beacons_waiting[transmission.sender] = False
        if self.csma:
            self._advance_queue(transmission.sender, now)
        if outcome != UNDECIDED and self.reports:
            self._report_outcome(transmission, outcome == ACKNOWLEDGED, now)

    def _address(self, index: int) -> int:
        return self.addresses[index] if index >= 0 else NOBODY

    def _deliver(self, arcs: Sequence[_Arc], transmission: Transmission, now: int) -> int:
        """Deliver a frame over each of ``arcs`` or record the loss; return the number of nodes that received it."""
        sender = self.addresses[transmission.sender]
        message, origin, sequence = transmission.label
        frame = transmission.frame
        size_B = len(frame)
        broadcast = transmission.destination is None
        collisions = self.collisions
        addresses, nodes, down, wake_at = self.addresses, self.nodes, self.down, self.wake_at
        append_row = None if self.count_frame is not None else self.record
        is_beacon = self.learns and message == BEACON_NAME
        jams = self.changes is not None
        heard_count = len(arcs)
        for receiver, ratio, loss_key in arcs:
            if loss_key is not None or collisions or down[receiver] or jams:
                reason = self._find_loss_reason(receiver, ratio, loss_key, transmission)
                if reason:
                    heard_count -= 1
                    lost_row = now, addresses[receiver], "lost", sender, message, origin, sequence, size_B, 0, reason
                    self.record(lost_row)
                    continue
            if append_row is not None:
                append_row((now, addresses[receiver], "received", sender, message, origin, sequence, size_B, 0, ""))
            node = nodes[receiver]
            if is_beacon:
                self._receive_beacon(receiver, sender, frame, now)
                continue
            node.receive(frame, sender, now, broadcast)
            if node.events or node.outbox or node.next_wake != wake_at[receiver]:
                self.kernel.collect(receiver, now)
        return heard_count

    def _find_loss_reason(self, receiver: int, ratio: float, key: int | None, transmission: Transmission) -> str:
        """Return the reason why a receiver loses a frame, or "" if it receives the frame.

        ``ratio``: the delivery ratio of the arc. ``key``: the key of the arc's draws; None if the arc loses no frame.
        """
        if self.down[receiver]:
            return "down"
        if self._is_jammed(receiver, transmission):
            return "jammed"
        # The start time identifies a sender's frame: its radio sends one at a time.
        if key is not None:
            if self.max_frame_B:
                ratio = share_of_whole_frames(ratio, count_fragments(len(transmission.frame), self.max_frame_B))
            if draws.uniform(key, transmission.start) >= ratio:
                return "link"
        return self._find_interference(receiver, transmission) if self.collisions else ""

    def _is_jammed(self, receiver: int, transmission: Transmission) -> bool:
        """Return whether a jammer disturbed the receiver while the frame was in the air.

        With low-power listening, only the copy of the frame that the receiver gets counts.
        """
        if self.noise is None:
            return False
        first, begins_us, ends_us = self.noise
        start_us, end_us = transmission.start, transmission.end
        if self.wake_interval_us:
            start_us, end_us = self._find_copy(receiver, transmission)
        latest = bisect_left(begins_us, end_us, first[receiver], first[receiver + 1]) - 1
        return latest >= first[receiver] and ends_us[latest] > start_us

    def _find_interference(self, receiver: int, transmission: Transmission) -> str:
        """Return "collision" or "half_duplex" if another transmission makes the receiver miss a frame, else ""."""
        start_us, end_us = transmission.start, transmission.end
        if self.wake_interval_us:
            start_us, end_us = self._find_copy(receiver, transmission)
        reason = ""
        for interferer in self.audible[receiver]:
            if interferer is transmission or interferer.start >= end_us or interferer.end <= start_us:
                continue
            if interferer.sender == receiver:
                return "half_duplex"
            if not self.capture_ddB or not self._is_captured(receiver, transmission.sender, interferer.sender):
                reason = "collision"
        return reason

    def _is_captured(self, receiver: int, sender: int, other_sender: int) -> bool:
        """Return whether a sender's frame is strong enough at a receiver to survive a frame of ``other_sender``."""
        strengths = self.strengths_ddB
        return strengths[sender, receiver] - strengths[other_sender, receiver] >= self.capture_ddB

    # CSMA/CA and acknowledgements (IEEE 802.15.4)

    def _contend(self, now: int, transmission: Transmission) -> None:
        """Append a ready frame to the sender's queue; if the queue was empty, begin the frame's back-off.

        A frame whose sender has failed since the frame was created is given up instead.
        """
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
        self.draw_counts[i] += 1
        slots = draws.below(self.backoff_keys[i], self.draw_counts[i], 1 << exponent)
        start_us = max(now, self.free_at[i])
        if self.wake_interval_us:
            receiver = transmission.destination
            phase = self.phases_us[receiver] if receiver is not None and self._is_phase_known(transmission) else -1
            time = check_time(start_us, slots, transmission.backoffs, self.wake_interval_us, phase)
        else:
            time = start_us + slots * UNIT_BACKOFF_US
        self.kernel.push(time, CHANNEL_CHECK, transmission)

    def _check_channel(self, now: int, transmission: Transmission) -> None:
        i = transmission.sender
        if transmission.outage != self.outages[i]:
            self._give_up(transmission, now, "down")
            return
        if self.ledger is not None:
            self.ledger.add(now, now + CHECK_US, i, UNREACHABLE, CHECK, now)
        if not self.jammers[i] and not any(t.start <= now < t.end for t in self.audible[i]):
            self._schedule_start(transmission, now + TURNAROUND_US, now)
        elif transmission.backoffs < MAX_BACKOFFS:
            transmission.backoffs += 1
            self._back_off(transmission, now)
        else:
            self._give_up(transmission, now, "channel_busy")
            self._advance_queue(i, now)
            if transmission.destination is not None and self.reports:
                self._report_outcome(transmission, False, now)

    def _give_up(self, transmission: Transmission, now: int, reason: str) -> None:
        message, origin, sequence = transmission.label
        if self.learns and message == BEACON_NAME:
            self.estimators[transmission.sender].cancel_beacon()
            self.beacons_waiting[transmission.sender] = False
        sender = self.addresses[transmission.sender]
        self.record((now, sender, "given_up", NOBODY, message, origin, sequence, len(transmission.frame), 0, reason))

    def _advance_queue(self, i: int, now: int) -> None:
        queue = self.queues[i]
        if queue:
            queue.pop(0)
        if queue:
            self._back_off(queue[0], now)

    def _report_outcome(self, transmission: Transmission, ok: bool, now: int) -> None:
        i, destination = transmission.sender, transmission.destination
        assert destination is not None
        self.nodes[i].sent(self._address(destination), transmission.frame, ok, now)
        self.kernel.collect(i, now)

    def _simulate_acknowledgement(self, arrived: bool, transmission: Transmission, now: int) -> int:
        """Simulate the acknowledgement of a unicast frame; send the frame again if the acknowledgement is missing.

        ``arrived``: whether the receiver got the frame. Returns ACKNOWLEDGED, UNACKNOWLEDGED (no retry is left),
        UNDECIDED (the frame is sent again) or STROBING (copies of the frame are still being sent).
        """
        i, receiver = transmission.sender, transmission.destination
        assert receiver is not None
        wait = TURNAROUND_US + self.radio.airtime_us(ACKNOWLEDGEMENT_B)
        if arrived and self.ledger is not None:
            self.ledger.add(now + TURNAROUND_US, now + wait, receiver, UNREACHABLE, ACKNOWLEDGEMENT, now)
        is_acknowledged = arrived and not self._is_acknowledgement_lost(transmission)
        if self.wake_interval_us and not is_acknowledged and self._continue_strobe(transmission, now):
            return STROBING
        self.free_at[i] = max(self.free_at[i], now + wait)
        if self.ledger is not None:
            self.ledger.add(now, now + wait, i, UNREACHABLE, WAIT, now)
        if is_acknowledged:
            if self.wake_interval_us:
                self.known_phases[i, receiver] = self.outages[i]
            return ACKNOWLEDGED
        return self._retransmit(transmission, now)

    def _retransmit(self, transmission: Transmission, now: int) -> int:
        """Send a unicast frame again and return UNDECIDED, or return UNACKNOWLEDGED if no retry is left."""
        i = transmission.sender
        if transmission.attempt >= self.radio.retries:
            self.known_phases.pop((i, transmission.destination), None)
            return UNACKNOWLEDGED
        retry = Transmission(i, transmission.destination, transmission.frame, transmission.label, transmission.outage)
        retry.attempt = transmission.attempt + 1
        if self.csma:
            self.queues[i].insert(1, retry)
        else:
            self._schedule_start(retry, self.free_at[i], now)
        return UNDECIDED

    def _is_acknowledgement_lost(self, transmission: Transmission) -> bool:
        receiver = transmission.destination
        if receiver is None:
            return False
        arc = self.arcs.find(receiver, transmission.sender)
        if arc is None or self.jammers[transmission.sender]:
            return True
        _, ratio, _ = arc
        if ratio >= 1.0:
            return False
        addresses = self.addresses
        loss_key = draws.make_key(
            self.scenario.seed, purposes.ACKNOWLEDGEMENT_LOSS, addresses[receiver], addresses[transmission.sender]
        )
        return draws.uniform(loss_key, transmission.start) >= ratio

    # Learned link qualities

    def _receive_beacon(self, i: int, neighbor: int, frame: bytes, now: int) -> None:
        """Update the link estimates of node ``i`` from a neighbor's beacon; report changed ratios to the node."""
        ratios = self.estimators[i].receive(neighbor, frame)
        if ratios is not None:
            inbound, outbound = ratios
            self.nodes[i].link_quality(neighbor, inbound, outbound, now)
            self.kernel.collect(i, now)

    def _plan_beacon(self, i: int, earlier: int, now: int) -> None:
        """Schedule the next beacon of node ``i``; ``earlier`` is the number of its beacons so far."""
        half_us = half_interval_us(earlier, self.radio.longest_beacon_interval_us)
        boot = self.kernel.boots[i]
        key = draws.make_key(self.scenario.seed, purposes.BEACON, self.addresses[i])
        random_us = draws.below(key, boot * NUMBERS + earlier, half_us)
        self.kernel.push(now + half_us + random_us, BEACON, (i, earlier, boot))

    def _send_beacon(self, now: int, beacon: tuple[int, int, int]) -> None:
        """Send a beacon, unless the node is down or its previous beacon is still unsent; plan the next beacon.

        ``beacon``: (node's index, number of its earlier beacons, number of its earlier starts). A beacon that was
        planned before the node's last start is discarded.
        """
        i, beacon_count, boot = beacon
        if boot != self.kernel.boots[i]:
            return
        if not self.down[i] and not self.beacons_waiting[i]:
            self.beacons_waiting[i] = True
            beacon_frame = self.estimators[i].make_beacon()
            self._send(i, None, beacon_frame, (BEACON_NAME, self.addresses[i], beacon_count), now, now)
        self._plan_beacon(i, beacon_count + 1, now)

    # Low-power listening: see `workbench.sim.low_power`

    def _find_copy(self, i: int, transmission: Transmission) -> tuple[int, int]:
        """Return (start, end) in µs of the copy of a frame that node ``i`` receives if the frame is sent as a strobe.

        A strobe is a sequence of copies of a frame; a node receives the first copy after its next wake-up.
        """
        start_us, airtime = transmission.start, self.airtimes_us[len(transmission.frame)]
        end_us = copy_end(start_us, next_wake(self.phases_us[i], self.wake_interval_us, start_us), airtime)
        return end_us - airtime, end_us

    def _find_earliest_strobe_end(self, transmission: Transmission, airtime: int) -> int:
        """Return the earliest time in µs at which a strobe (a frame sent in repeated copies) can end.

        A unicast to a neighbor can end with the first copy after the receiver's wake-up. Any other strobe lasts a
        whole wake-up interval. ``airtime``: the airtime of one copy, in µs.
        """
        receiver = transmission.destination
        if receiver is None or receiver < 0 or self.arcs.find(transmission.sender, receiver) is None:
            return strobe_end(transmission.start, airtime, self.wake_interval_us)
        return self._find_copy(receiver, transmission)[1]

    def _is_phase_known(self, transmission: Transmission) -> bool:
        """Return whether the frame's sender knows, from an earlier acknowledgement, when the receiver wakes up."""
        i = transmission.sender
        return self.known_phases.get((i, transmission.destination)) == self.outages[i]

    def _continue_strobe(self, transmission: Transmission, now: int) -> bool:
        """Continue a strobe (repeated copies of a frame) after an unacknowledged copy; return False if it ends now.

        The strobe ends now if it has lasted a whole wake-up interval, or if the sender knew when the receiver would
        wake up.
        """
        i = transmission.sender
        airtime = self.airtimes_us[len(transmission.frame)]
        end_us = strobe_end(transmission.start, airtime, self.wake_interval_us)
        if end_us <= now or self._is_phase_known(transmission):
            return False
        self.free_at[i] = end_us
        if self.shares_medium:
            # The further copies are audible where the sender is heard now; its neighbors may have changed.
            frame, label = transmission.frame, transmission.label
            copies = Transmission(i, transmission.destination, frame, label, transmission.outage)
            copies.start, copies.end = now, end_us
            self._add_to_hearers(copies, now)
        if self.ledger is not None:
            self._add_to_ledger(transmission, now, end_us, now)
        self.kernel.push(end_us, STROBE_END, transmission)
        return True

    def _end_strobe(self, now: int, transmission: Transmission) -> None:
        """End a strobe (repeated copies of a frame) without an acknowledgement."""
        if transmission.outage == self.outages[transmission.sender]:
            self._finish(transmission, self._retransmit(transmission, now), now)

    # Outages

    def stop_radio(self, i: int, now: int) -> None:
        """Stop the radio of node ``i``, which has failed: give up its queue and end its transmissions."""
        self.outages[i] += 1
        if self.ledger is not None:
            self.ledger.add(now, now, i, UNREACHABLE, FAILURE, now)
        # The head of the queue, and frames that are not yet in it, are given up when their time comes.
        for transmission in self.queues[i][1:]:
            self._give_up(transmission, now, "down")
        self.queues[i] = []
        for hearer in (i, *self.arcs.ever[i]):
            self.audible[hearer] = [t for t in self.audible[hearer] if t.sender != i or t.start < now]
        for transmission in self.audible[i]:
            if transmission.sender == i:
                transmission.end = min(transmission.end, now)

    def restart_radio(self, i: int, now: int) -> None:
        """Restart the radio of node ``i``, which has recovered, with an empty queue."""
        self.free_at[i] = now
        if self.kernel.lost_memory[i] and self.learns:
            self.estimators[i] = LinkEstimator(self.addresses[i])
            self.beacons_waiting[i] = False
        if self.ledger is not None:
            self.ledger.add(now, now, i, UNREACHABLE, RECOVERY, now)

"""The kernel of the reference engine: its loop, its heap, its clock, and the nodes that it wakes.

Theory of operation
    Each future event is an entry of one heap, (time_us, counter, kind, argument). The counter orders entries with the
    same time. Because of that order, and because no draw depends on another (`workbench/draws.py`), a run depends
    only on its scenario.

    At the end of the duration, publications and timers stop, but frames in transit are played to their end. So a
    reading published in the last moment is not counted as lost.

Layers of a run
    kernel        loop, heap, nodes and their wake-ups: this file
    channel       `workbench.sim.channel`: radios, receptions, losses, carrier sense, acknowledgements
    application   `workbench.sim.application`: the workload's actions, failures and recoveries

    The kernel is created first, then a channel for it, then an application for both. Each registers the methods that
    the kernel calls, see `Kernel`. `workbench.sim.engine` combines the three for a simulation. A run on motes combines
    the same kernel and channel with its own application and clock.

Cost
    One heap operation per transmission, action and wake-up; with csma about three per transmission.

The fast engine's loop and heap are `workbench.sim.fast.loop` and `workbench.sim.fast.agenda`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Any

from workbench.errors import ScenarioError
from workbench.protocols.contract import Node
from workbench.sim.trace import MetricsRecorder, Recorder

# The kinds of heap entries. The argument of ACTION is an action of the workload, of WAKE a node's index, of BEACON a
# node's index and the number of its earlier beacons, of LINKS changes of links, of the others a transmission.
ACTION, WAKE, CHANNEL_CHECK, FRAME_END, FRAME_READY, STROBE_END, BEACON, LINKS = range(8)
_ENDING = ACTION, WAKE, BEACON, LINKS  # kinds that happen only until the end of the duration


class Kernel:
    """The loop of a run: it plays heap entries in order of (time, counter), and collects events and frames of nodes.

    ``nodes`` are in ascending order of their addresses. All layers refer to a node by its index ``i`` in that order.

    The other layers register the functions that the kernel calls:

        handlers[kind](now, argument)              an entry of that kind is due. The application handles ACTION, the
                                                   kernel WAKE, the channel all other kinds
        channel.send(i, destination, frame, now)   node ``i`` sends a frame; the destination is a neighbor, or None for
                                                   a broadcast
        channel.report_links(i, now)               call ``link_quality`` of node ``i`` for each of its links

    The other layers call `push` to schedule an entry, and `collect` after each call of a node.
    """

    channel: Any

    def __init__(self, nodes: Sequence[Node], recorder: Recorder) -> None:
        self.nodes = list(nodes)
        self._uses_quality = type(self.nodes[0]).link_quality is not Node.link_quality
        self.recorder = recorder
        self.addresses = tuple(node.address for node in nodes)
        self.index = {address: i for i, address in enumerate(self.addresses)}
        self.heap: list[tuple[int, int, int, Any]] = []
        self.counter = 0
        self.wake_at: list[int | None] = [None] * len(nodes)
        self.down = [0] * len(nodes)  # outages in progress at each node; the application counts them
        self.lost_memory = [False] * len(nodes)  # whether a node that is down will start anew
        self.boots = [0] * len(nodes)  # number of earlier starts of each node; -1 before its first
        # Returns the node (i, number of its earlier starts) without memory; for runs in which nodes crash.
        self.make_node: Callable[[int, int], Node] | None = None
        self.handlers: dict[int, Callable[[int, Any], None]] = {WAKE: self._wake}

    # Loop, heap and time

    def push(self, time: int, kind: int, argument: Any) -> None:
        """Schedule the call ``handlers[kind](time, argument)`` at ``time`` (µs).

        Calls at the same time are made in the order in which they were scheduled.
        """
        self.counter += 1
        heappush(self.heap, (time, self.counter, kind, argument))

    def play(self, duration_us: int, progress: Callable[[float], Any] | None) -> None:
        """Play the entries up to the end of the run; ``progress`` is called regularly with the fraction done, 0 to 1.

        If ``progress`` returns True, the run ends now: publications and timers stop, frames in transit are still
        played, and the recorder's ``ended_us`` is the time of the end.
        """
        heap, handlers = self.heap, self.handlers
        while heap:
            for _ in range(10_000):
                now, _, entry_kind, argument = heappop(heap)
                if now < duration_us or entry_kind not in _ENDING:
                    handlers[entry_kind](now, argument)
                if not heap:
                    break
            self.recorder.flush_if_large()
            if progress is not None and progress(min(1.0, now / duration_us)) is True and now < duration_us:
                self.recorder.ended_us = duration_us = now + 1

    def play_until(self, time_us: int) -> None:
        """Process the heap's entries up to ``time_us``, inclusive."""
        while self.heap and self.heap[0][0] <= time_us:
            now, _, entry_kind, argument = heappop(self.heap)
            self.handlers[entry_kind](now, argument)

    def forget_actions(self) -> None:
        """Remove all actions, wake-ups and beacons from the heap; frames in transit remain."""
        self.heap[:] = [entry for entry in self.heap if entry[2] not in _ENDING]
        heapify(self.heap)

    # Nodes

    def start(self, absent: Mapping[int, Callable[[], None]] = MappingProxyType({})) -> None:
        """Start the nodes at time 0, and report to each node the delivery ratios of its links.

        Nodes whose class does not override `Node.link_quality` get no reports. ``absent``: {index of a node: function}
        for nodes that join the network later; such a node is not started, and its function is called instead.
        """
        for i, node in enumerate(self.nodes):
            node.tells_all = not self.recorder.metrics_only
            if i not in absent:
                node.start(0)
        for i in range(len(self.nodes)):
            if i in absent:
                absent[i]()
                continue
            if self._uses_quality:
                self.channel.report_links(i, 0)
            self.collect(i, 0)

    def restart(self, i: int, now: int) -> None:
        """Start node ``i`` without memory, and report to the node the delivery ratios of its links."""
        self.boots[i] += 1
        self.lost_memory[i] = False
        boot = self.boots[i]
        if boot:
            assert self.make_node is not None
            if isinstance(self.recorder, MetricsRecorder):
                self.recorder.count_drops(self.nodes[i].drops)
            self.nodes[i] = self.make_node(i, boot)
            self.nodes[i].tells_all = not self.recorder.metrics_only
        self.nodes[i].start(now, boot)
        if self._uses_quality:
            self.channel.report_links(i, now)
        self.collect(i, now)

    def _wake(self, now: int, i: int) -> None:
        if self.wake_at[i] == now and not self.down[i]:
            self.wake_at[i] = None
            node = self.nodes[i]
            if node.next_wake is not None and node.next_wake <= now:
                node.wake(now)
                if node.next_wake is not None and node.next_wake <= now:
                    raise ScenarioError(
                        f"node {self.addresses[i]} was woken at {now} µs but its next_wake is {node.next_wake} µs; "
                        f"{type(node).__name__}.wake() must set a later next_wake, or None"
                    )
            self.collect(i, now)

    def collect(self, i: int, now: int) -> None:
        """Record a node's events, send its frames and schedule its next wake-up."""
        node = self.nodes[i]
        if node.events:
            self.recorder.protocol_events(now, self.addresses[i], node.take_events())
        if node.outbox:
            for destination, frame in node.take_frames():
                self.channel.send(i, destination, frame, now)
        wake_us = node.next_wake
        if wake_us != self.wake_at[i]:
            self.wake_at[i] = wake_us
            if wake_us is not None:
                # A wake-up in the past is due now.
                self.wake_at[i] = max(wake_us, now)
                self.push(max(wake_us, now), WAKE, i)

"""The kernel of the reference engine: its loop, its heap, its time, and the nodes that it wakes.

Theory of operation
    Whatever happens later is an entry of one heap, (time_us, counter, kind, argument). The counter orders what happens
    at the same microsecond. Because of that order, and because no draw depends on another (`workbench/draws.py`), a run
    is a function of its scenario.

    When the duration is over nobody publishes and no timer fires any more, but the frames that are on their way are
    played to their end: what was published in the last moment is not counted as lost.

Parts of a run
    kernel        loop, heap, nodes and their wake-ups: this file
    air           `workbench.sim.channel`: who hears whom, radios, carrier sense, acknowledgements, losses
    application   `workbench.sim.application`: what the workload asks for, failures and recoveries

    A kernel is made first, then an air for it, then an application for both. Each enters in the kernel what the kernel
    is to call it for, see `Kernel`. `workbench.sim.engine` puts the three together for a simulation; a run on motes
    puts the same kernel and air together with an application and a clock of its own.

Cost
    One heap operation per transmission, action and wake-up; with csma about three per transmission.

The fast engine's loop and heap are `workbench.sim.fast.loop` and `workbench.sim.fast.agenda`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from workbench.errors import ScenarioError
from workbench.protocols.contract import Node
from workbench.sim.trace import Recorder

# The kinds of heap entries. Their arguments: an action of the workload, a node's index, and three times a transmission.
ACTION, WAKE, CHANNEL_CHECK, FRAME_END, FRAME_READY = range(5)


class Kernel:
    """Plays entries in order of (time, counter), and collects what nodes have done.

    ``nodes`` are in ascending order of their addresses. A node's index in that order, ``i``, stands for it everywhere.

    The other parts enter here what they are called for:

        handlers[kind](now, argument)          an entry of that kind is due. ACTION is the application's, WAKE the
                                               kernel's own, the others are the air's
        air.send(i, destination, frame, now)   node ``i`` sends a frame, to one neighbor or (None) to all
        air.report_links(i, now)               call ``link_quality`` of node ``i`` for each of its links

    They call `push` for what is to happen later, and `collect` after any call of a node.
    """

    air: Any

    def __init__(self, nodes: Sequence[Node], recorder: Recorder) -> None:
        self.nodes = nodes
        self.recorder = recorder
        self.addresses = tuple(node.address for node in nodes)
        self.index = {address: i for i, address in enumerate(self.addresses)}
        self.heap: list[tuple[int, int, int, Any]] = []
        self.counter = 0
        self.wake_at: list[int | None] = [None] * len(nodes)
        self.down = [0] * len(nodes)  # how many outages keep a node off now: counted by the application
        self.handlers: dict[int, Callable[[int, Any], None]] = {WAKE: self._wake}

    # Loop, heap and time

    def push(self, time: int, kind: int, argument: Any) -> None:
        """Have ``handlers[kind](time, argument)`` called at a time, after what is due then already."""
        self.counter += 1
        heappush(self.heap, (time, self.counter, kind, argument))

    def play(self, duration_us: int, progress: Callable[[float], Any] | None) -> None:
        """Play to the end; ``progress`` is called now and then with the share done, 0 to 1.

        If it returns True, the end is now, and the recorder's ``ended_us`` says so: nobody publishes and no timer fires
        any more, and frames that are on their way are played.
        """
        heap, handlers = self.heap, self.handlers
        while heap:
            for _ in range(10_000):
                now, _, kind, argument = heappop(heap)
                if now < duration_us or kind not in (ACTION, WAKE):
                    handlers[kind](now, argument)
                if not heap:
                    break
            self.recorder.flush_if_large()
            if progress is not None and progress(min(1.0, now / duration_us)) is True and now < duration_us:
                self.recorder.ended_us = duration_us = now + 1

    def play_until(self, time_us: int) -> None:
        """Play what is due up to a time, that time included."""
        while self.heap and self.heap[0][0] <= time_us:
            now, _, kind, argument = heappop(self.heap)
            self.handlers[kind](now, argument)

    def forget_actions(self) -> None:
        """From now on nobody publishes and no timer fires: only frames that are on their way are played."""
        self.heap[:] = [entry for entry in self.heap if entry[2] not in (ACTION, WAKE)]
        heapify(self.heap)

    # Nodes

    def start(self) -> None:
        """Start the nodes at time 0, and report their links to those that want to know."""
        for node in self.nodes:
            node.tells_all = not self.recorder.metrics_only
            node.start(0)
        if type(self.nodes[0]).link_quality is not Node.link_quality:
            for i in range(len(self.nodes)):
                self.air.report_links(i, 0)
        for i in range(len(self.nodes)):
            self.collect(i, 0)

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
            self.collect(i, now)

    def collect(self, i: int, now: int) -> None:
        """Record what happened at a node, put its frames on the air, note when it wants to be woken."""
        node = self.nodes[i]
        if node.events:
            self.recorder.protocol_events(now, self.addresses[i], node.take_events())
        if node.outbox:
            for destination, frame in node.take_frames():
                self.air.send(i, destination, frame, now)
        wake = node.next_wake
        if wake != self.wake_at[i]:
            self.wake_at[i] = wake
            if wake is not None:
                # A wake-up that lies in the past is due now.
                self.wake_at[i] = max(wake, now)
                self.push(max(wake, now), WAKE, i)

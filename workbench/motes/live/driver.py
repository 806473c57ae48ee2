"""The driver of a live run: a loop that advances the kernel by the wall clock and processes the motes' messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from workbench.errors import LinkError
from workbench.motes import messages
from workbench.motes.events import event_names
from workbench.motes.live.application import Commands, MoteApplication, MoteOutages, Subscriptions
from workbench.motes.live.recorder import Notes, RunClock
from workbench.motes.mote import Mote
from workbench.motes.session import MoteSession
from workbench.protocols.contract import NOBODY, Node
from workbench.sim import engine
from workbench.sim.application import Application, Outages, plan
from workbench.sim.channel import Channel
from workbench.sim.kernel import Kernel
from workbench.sim.trace import Recorder

SYNC_S = 1.0  # interval of readings of the motes' clocks
QUIET_S = 0.3  # time without a message, after which no message is in transit
LONGEST_END_S = 3.0
_NOTED_EVENTS = ("contested", "told", "foreign", "radio_fault")
Post = Callable[..., None]  # (node, kind, *fields, rest, then)


class LiveNode(Node):
    """A stand-in, in the simulation kernel on the host, for a node that runs on a mote.

    It has the methods that the simulated channel and the kernel (the loop that executes events in order) call.

    Received frames, link qualities and outcomes of unicast frames are sent to the mote as commands, without waiting.
    The mote sends its frames and events to the live driver as messages, so the ``outbox`` and the ``events`` of this
    object stay empty. The mote fires its timers by itself.
    """

    def __init__(self, address: int, protocol: Any, post: Post) -> None:
        super().__init__(address, protocol, None)
        self._post = post

    def start(self, now: int, boot: int = 0) -> None:
        """Do nothing: the live driver configures the mote, which starts the node."""

    def receive(self, frame: bytes, previous_hop: int, now: int, broadcast: bool = True) -> None:
        """Pass a received frame to the mote; ``previous_hop`` is the neighbor that transmitted the frame.

        ``broadcast`` is whether the frame was a broadcast. ``now`` is ignored, because the mote has its own clock.
        """
        self._post(self.address, messages.HEARD, previous_hop, broadcast, rest=frame)

    def link_quality(self, neighbor: int, inbound: float, outbound: float, now: int) -> None:
        """Send the mote the delivery ratios of two arcs: from a neighbor (``inbound``) and to it (``outbound``)."""
        self._post(self.address, messages.LINK_QUALITY, neighbor, inbound, outbound)

    def sent(self, destination: int, frame: bytes, ok: bool, now: int) -> None:
        """Report to the mote whether its unicast ``frame`` to ``destination`` was acknowledged (``ok``)."""
        self._post(self.address, messages.OUTCOME, destination, ok, rest=frame)


class LiveDriver:
    """The loop of a live run, in which kernel and channel run by the wall clock.

    The nodes with a mote in ``session`` are on motes; all other nodes are simulated.

    ``inbox`` receives the motes' reports and answers as (node, kind of message, its content). A sentence for each
    problem is appended to ``notes``. To end the run early, set the event ``stopped``.
    """

    def __init__(
        self,
        scenario: Any,
        recorder: Recorder,
        session: MoteSession,
        clock: RunClock,
        inbox: SimpleQueue[tuple[int, str, Any]],
        notes: list[str],
    ) -> None:
        self.scenario, self.recorder = scenario, recorder
        self.session, self.clock, self.inbox = session, clock, inbox
        self.stopped = threading.Event()
        self.notes = Notes(recorder, clock, notes)
        self.commands = Commands(session, self.notes, inbox)
        self.subscriptions = Subscriptions(self.commands.post, self.commands.put_answer)
        self.kernel = Kernel([self._make_kernel_node(node) for node in engine.make_nodes(scenario)], recorder)
        self.channel = Channel(self._make_simulated_scenario(), self.kernel, motes_have_radios=session.has_radios)
        self.kernel.make_node = self._make_restarted_node
        outages = Outages(self.kernel, self.channel)
        self.outages = MoteOutages(outages, self.commands, self.subscriptions)
        simulated_application = Application(scenario, self.kernel, outages)
        MoteApplication(scenario, self.kernel, self.outages, self.commands, self.subscriptions, simulated_application)
        self._next_sync_s = 0.0
        self._event_names = event_names(scenario.protocol.kind_of_node().EVENTS)

    def _make_simulated_scenario(self) -> Any:
        """Return the scenario with a topology of only the links that the host simulates.

        If the motes have radios of their own, links between two motes are removed.
        """
        topology, motes = self.scenario.topology, self.session.motes
        if not self.session.has_radios or len(motes) == len(topology):
            return self.scenario
        links = topology.copy()
        links.remove_edges_from([link for link in topology.edges if link[0] in motes and link[1] in motes])
        return self.scenario.replace(topology=links)

    def _make_kernel_node(self, node: Node) -> Node:
        """Return the object that represents a node in the simulation kernel.

        The object is a `LiveNode` if the node is on a mote, else ``node`` itself.
        """
        is_on_mote = node.address in self.session.motes
        return LiveNode(node.address, self.scenario.protocol, self.commands.post) if is_on_mote else node

    def _make_restarted_node(self, i: int, boot: int) -> Node:
        """Return a new object for node ``i``, which starts after a crash; ``boot`` is the number of earlier starts."""
        return self._make_kernel_node(engine.make_node(self.scenario, i, boot))

    def prepare(self) -> None:
        """Configure each mote to run its node, then start the clocks. Raises LinkError if a mote refuses.

        All clocks are held at 0 until the last mote is configured, so that no node's first timer is late.
        """
        self.session.each(self._configure)
        self.clock.begin()
        self.session.each(self._start_clock)

    def _configure(self, node: int, mote: Mote) -> None:
        mote.set_time(0, held=True)
        mote.configure(**self.session.configuration(node, self.session.first_boots[node]))

    def _start_clock(self, node: int, mote: Mote) -> None:
        mote.set_time(self.clock.now_us())
        mote.read_clock()

    def run(self, duration_us: int, progress: Callable[[float], None] | None) -> None:
        """Run for ``duration_us``, or until ``stopped`` is set; then wait for messages in transit.

        ``progress`` is called with the elapsed share of the duration, 0 to 1.
        """
        kernel = self.kernel
        plan(self.scenario, kernel, duration_us)
        kernel.start(self.outages.absences(self.scenario))
        while not self.stopped.is_set():
            now_us = self.clock.now_us()
            kernel.play_until(min(now_us, duration_us))
            if now_us >= duration_us:
                break
            self._request_clocks()
            self.recorder.flush_if_large()
            if progress is not None:
                progress(now_us / duration_us)
            due_us = min(kernel.heap[0][0] if kernel.heap else duration_us, duration_us)
            self._process_inbox(max(0.0, min(0.1, (due_us - self.clock.now_us()) / 1e6 / self.clock.speed)))
        self._end_run()
        if progress is not None:
            progress(1.0)

    def hold(self) -> None:
        """Stop all motes' clocks, so that no further timers fire on them."""
        for node in self.session.motes:
            self.commands.hold(node, self.clock.now_us())

    def _process_inbox(self, wait_s: float) -> bool:
        """Process the messages in the inbox.

        Wait up to ``wait_s`` for the first message; return whether any arrived.
        """
        try:
            node, kind, value = self.inbox.get(timeout=wait_s) if wait_s > 0 else self.inbox.get_nowait()
        except Empty:
            return False
        for _ in range(1000):
            self._process_message(node, kind, value)
            try:
                node, kind, value = self.inbox.get_nowait()
            except Empty:
                break
        return True

    def _end_run(self) -> None:
        """Stop the motes' clocks and process the messages in transit, for at most LONGEST_END_S."""
        self.hold()
        self.kernel.forget_actions()
        end_s = time.perf_counter() + LONGEST_END_S
        quiet_until_s = time.perf_counter() + QUIET_S
        while time.perf_counter() < min(end_s, quiet_until_s) and not self.stopped.is_set():
            self.kernel.play_until(self.clock.now_us())
            if self._process_inbox(0.01) or self.kernel.heap:
                quiet_until_s = time.perf_counter() + QUIET_S
        self.hold()  # Again, for motes that reconnected meanwhile.

    def _request_clocks(self) -> None:
        if time.perf_counter() < self._next_sync_s:
            return
        self._next_sync_s = time.perf_counter() + SYNC_S
        for node, mote in self.session.motes.items():
            with suppress(LinkError):  # A lost mote is reported by its reading thread.
                if self.kernel.down[self.kernel.index[node]]:
                    mote.ping()
                else:
                    mote.request_clock()

    # The motes' messages

    def _process_message(self, node: int, kind: str, value: Any) -> None:
        if kind == "event":
            self._record_event(node, value, self.clock.now_us())
        elif kind == "send":
            self._transmit_frame(node, value[0], value[1], self.clock.now_us())
        elif kind == "lost":
            self.outages.lose(node, value, self.clock.now_us())
        elif kind == "ready":
            self.outages.reconnect(node, self.clock.now_us())
        elif kind == "refused":
            self.notes.add(node, "refused", value)
        elif kind == "noise":
            noise_row = self.clock.now_us(), node, "noise", NOBODY, "", node, 0, 0, value, "on the way to the host"
            self.recorder.append(noise_row)
        elif kind == "numbered":
            self.subscriptions.store_number(*value)

    def _record_event(self, node: int, value: tuple[Any, ...], now: int) -> None:
        time_us, event_number, peer, message, origin, sequence, size_B, number, detail = value
        text = detail if isinstance(detail, str) else self.recorder.text(detail)
        # A reported event is in the past, so a later time would be an error of the mote's clock.
        time_us = max(0, min(now, self.session.motes[node].clock.to_host_us(time_us)))
        event = self._event_names.get(event_number)
        if event is None:
            self.notes.add(node, "noise", f"the mote reported an event of kind {event_number}, unknown to its protocol")
            return
        note_text = f"node {node}: {text}"
        if event in _NOTED_EVENTS and note_text not in self.notes.texts:  # The trace has a row for each repetition.
            self.notes.texts.append(note_text)
        self.recorder.append((time_us, node, event, peer, message, origin, sequence, size_B, number, text))

    def _transmit_frame(self, node: int, destination: int | None, frame: bytes, now: int) -> None:
        index = self.kernel.index[node]
        if self.kernel.down[index]:
            return  # An outage disconnects its radio.
        try:
            self.channel.send(index, destination, frame, now)
        except Exception as error:  # Describing invalid bytes may raise any error.
            self.notes.add(node, "refused", f"the mote sent an invalid frame of this protocol: {error!r}", now)

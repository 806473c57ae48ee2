"""The driver of a live run: the thread's loop between the clock, the kernel and the motes' messages."""

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
_NOTED = ("contested", "told", "foreign")
Post = Callable[..., None]  # (node, kind, *fields, rest, then)


class LiveNode(Node):
    """A node on a mote that runs by itself, as the channel and the kernel see it.

    Frames, link qualities and outcomes go to the mote as commands, without waiting. The mote's frames and events come
    to the live driver as messages, so this node has no frames, events or wake-ups for the kernel to collect.
    """

    def __init__(self, address: int, protocol: Any, post: Post) -> None:
        super().__init__(address, protocol, None)
        self._post = post

    def receive(self, frame: bytes, previous_hop: int, now: int, broadcast: bool = True) -> None:
        """Send the mote a frame that it receives."""
        self._post(self.address, messages.HEARD, previous_hop, broadcast, rest=frame)

    def link_quality(self, neighbor: int, inbound: float, outbound: float, now: int) -> None:
        """Send the mote the quality of a link, as a link layer would estimate it."""
        self._post(self.address, messages.LINK_QUALITY, neighbor, inbound, outbound)

    def sent(self, destination: int, frame: bytes, ok: bool, now: int) -> None:
        """Send the mote the outcome of a unicast frame."""
        self._post(self.address, messages.OUTCOME, destination, ok, rest=frame)


class LiveDriver:
    """The loop that runs kernel and channel by the wall clock, with motes as nodes; other nodes are simulated.

    ``inbox`` receives the motes' reports and answers as (node, kind, value). ``notes`` receives a sentence for each
    problem. Set ``stopped`` to end the run early.
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
        self.subscriptions = Subscriptions(self.commands.post, self.commands.answered)
        self.kernel = Kernel([self._live(node) for node in engine.make_nodes(scenario)], recorder)
        self.channel = Channel(scenario, self.kernel, motes_have_radios=session.has_radios)
        outages = Outages(self.kernel, self.channel)
        self.outages = MoteOutages(outages, self.commands, self.subscriptions)
        simulated = Application(scenario, self.kernel, outages)
        MoteApplication(scenario, self.kernel, self.outages, self.commands, self.subscriptions, simulated)
        self._next_sync_s = 0.0
        self._event_names = event_names(scenario.protocol.kind_of_node().EVENTS)

    def _live(self, node: Node) -> Node:
        """Return a `LiveNode` for a node on a mote, and a simulated node unchanged."""
        on_a_mote = node.address in self.session.motes
        return LiveNode(node.address, self.scenario.protocol, self.commands.post) if on_a_mote else node

    def prepare(self) -> None:
        """Configure all motes as their nodes. Raises LinkError if one refuses.

        All clocks are held at 0 until the last mote is configured, so that no node's first timers are late.
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
        """Run until the duration is over and all messages in transit have arrived."""
        kernel = self.kernel
        plan(self.scenario, kernel, duration_us)
        kernel.start()
        while not self.stopped.is_set():
            now = self.clock.now_us()
            kernel.play_until(min(now, duration_us))
            if now >= duration_us:
                break
            self._sync()
            self.recorder.flush_if_large()
            if progress is not None:
                progress(now / duration_us)
            due_us = min(kernel.heap[0][0] if kernel.heap else duration_us, duration_us)
            self._listen(max(0.0, min(0.1, (due_us - self.clock.now_us()) / 1e6 / self.clock.speed)))
        self._end()
        if progress is not None:
            progress(1.0)

    def hold(self) -> None:
        """Stop all motes' clocks, so that nothing new begins on them."""
        for node in self.session.motes:
            self.commands.hold(node, self.clock.now_us())

    def _listen(self, wait_s: float) -> bool:
        """Process the motes' messages, waiting a moment for the first; return whether there was any."""
        try:
            node, kind, value = self.inbox.get(timeout=wait_s) if wait_s > 0 else self.inbox.get_nowait()
        except Empty:
            return False
        for _ in range(1000):
            self._take(node, kind, value)
            try:
                node, kind, value = self.inbox.get_nowait()
            except Empty:
                break
        return True

    def _end(self) -> None:
        """Stop the motes' clocks and wait for the messages in transit."""
        self.hold()
        self.kernel.forget_actions()
        end_s = time.perf_counter() + LONGEST_END_S
        quiet_s = time.perf_counter() + QUIET_S
        while time.perf_counter() < min(end_s, quiet_s) and not self.stopped.is_set():
            self.kernel.play_until(self.clock.now_us())
            if self._listen(0.01) or self.kernel.heap:
                quiet_s = time.perf_counter() + QUIET_S
        self.hold()  # Again, for motes that reconnected meanwhile.

    def _sync(self) -> None:
        if time.perf_counter() < self._next_sync_s:
            return
        self._next_sync_s = time.perf_counter() + SYNC_S
        for node, mote in self.session.motes.items():
            with suppress(LinkError):  # A lost mote is reported by its reading thread.
                if self.kernel.down[self.kernel.index[node]]:
                    mote.ask()
                else:
                    mote.ask_clock()

    # The motes' messages

    def _take(self, node: int, kind: str, value: Any) -> None:
        if kind == "event":
            self._take_event(node, value, self.clock.now_us())
        elif kind == "send":
            self._take_frame(node, value[0], value[1], self.clock.now_us())
        elif kind == "lost":
            self.outages.lose(node, value, self.clock.now_us())
        elif kind == "ready":
            self.outages.find(node, self.clock.now_us())
        elif kind == "refused":
            self.notes.add(node, "refused", value)
        elif kind == "noise":
            row = self.clock.now_us(), node, "noise", NOBODY, "", node, 0, 0, value, "on the way to the host"
            self.recorder.append(row)
        elif kind == "numbered":
            self.subscriptions.numbered(*value)

    def _take_event(self, node: int, value: tuple[Any, ...], now: int) -> None:
        time_us, kind, peer, message, origin, sequence, size_B, number, detail = value
        text = detail if isinstance(detail, str) else self.recorder.text(detail)
        # A reported event is in the past, so a later time would be an error of the mote's clock.
        time_us = max(0, min(now, self.session.motes[node].clock.to_host_us(time_us)))
        event = self._event_names.get(kind)
        if event is None:
            self.notes.add(node, "noise", f"the mote reported an event of kind {kind}, unknown to its protocol")
            return
        note = f"node {node}: {text}"
        if event in _NOTED and note not in self.notes.texts:  # The trace has a row for each repetition.
            self.notes.texts.append(note)
        self.recorder.append((time_us, node, event, peer, message, origin, sequence, size_B, number, text))

    def _take_frame(self, node: int, destination: int | None, frame: bytes, now: int) -> None:
        index = self.kernel.index[node]
        if self.kernel.down[index]:
            return  # An outage disconnects its radio.
        try:
            self.channel.send(index, destination, frame, now)
        except Exception as error:  # Describing invalid bytes may raise any error.
            self.notes.add(node, "refused", f"the mote sent an invalid frame of this protocol: {error!r}", now)

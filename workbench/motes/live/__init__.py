"""A run on motes as it happens: time is the wall clock's, and the motes' own clocks say when something was.

Theory of operation
    A thread conducts: at its time it does what the workload asks (subscribe, publish, outage), as commands to motes.
    Motes without a radio of their own send and hear through the host: then the reference engine's radio is the ether
    between them, with the topology's links, losses, collisions and delays, only that its heap waits for the clock.
    Motes with a radio tell what they sent and heard.

    A mote that is lost (unplugged, killed, reset, silent) counts as failed from then on; when it answers again it is
    made its node again, whether it has kept its memory or not, its subscriptions are made again, and it counts as
    recovered. An outage of the workload takes a node's radio away and holds its clock; a mote that answers again within
    one is made its node when the outage ends.

    What a mote refuses, or what does not fit into a frame of the host link, is noted, and the run goes on.

Order
    Rows are sorted by time. A mote's times are right to half a round trip, so a row may stand before its cause.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from workbench import draws
from workbench.attributes.model import with_payload
from workbench.errors import EncodeError, LinkError, WorkbenchError
from workbench.motes import messages
from workbench.motes.crew import Crew
from workbench.motes.events import event_names
from workbench.motes.line import Answer
from workbench.motes.live.recorder import RunClock
from workbench.motes.live.subscriptions import Subscriptions
from workbench.motes.mote import Mote, configuration
from workbench.protocols.contract import NOBODY, Node
from workbench.sim import workload
from workbench.sim.kernel import Kernel
from workbench.sim.trace import Recorder

SYNC_S = 1.0  # between two looks at the motes' clocks
QUIET_S = 0.3  # without a message, after the end: then nothing is on its way any more
LONGEST_END_S = 3.0
_NOTED = ("contested", "told")
Post = Callable[..., None]  # (node, kind, *fields, rest, then)


class LiveNode(Node):
    """A node on a mote that runs by itself: what it is told is posted, what it does comes when it comes."""

    def __init__(self, address: int, protocol: Any, post: Post) -> None:
        super().__init__(address, protocol, None)
        self._post = post

    def receive(self, frame: bytes, previous_hop: int, now: int, broadcast: bool = True) -> None:
        """Let the mote hear a frame."""
        self._post(self.address, messages.HEARD, previous_hop, broadcast, rest=frame)

    def link_quality(self, neighbor: int, inbound: float, outbound: float, now: int) -> None:
        """Tell the mote of a link."""
        self._post(self.address, messages.LINK_QUALITY, neighbor, inbound, outbound)


class Conductor(Kernel):
    """The reference engine's radio and workload by the wall clock, with a crew's motes for nodes.

    ``inbox`` has what the motes tell, (node, kind, value); ``notes`` gets a sentence for whatever goes wrong.
    """

    def __init__(
        self, scenario: Any, recorder: Recorder, crew: Crew, clock: RunClock, inbox: SimpleQueue, notes: list[str]
    ) -> None:
        self.crew, self.clock, self.inbox, self.notes = crew, clock, inbox, notes
        self.stopped = threading.Event()
        self.lost: set[int] = set()
        self.found: Counter[int] = Counter()  # how often a node's mote was lost and has answered again
        self._unmade: set[int] = set()  # nodes whose motes have answered again, but are not made their nodes yet
        self._asked = Subscriptions(self.post, self._answered)
        self._next_sync_s = 0.0
        self._event_names = event_names(scenario.protocol.kind_of_node().EVENTS)
        super().__init__(scenario, recorder)

    def make_node(self, address: int, random: draws.Stream) -> Node:
        """The node at an address, on its mote."""
        return LiveNode(address, self.scenario.protocol, self.post)

    def prepare(self) -> None:
        """Make all motes their nodes; LinkError if one cannot be.

        Their clocks stand at 0 until all are: what a node plans when it is started is late for nobody.
        """
        self.crew.each(self._make_first)
        self.clock.begin()
        self.crew.each(self._let_go)

    def _make_first(self, node: int, mote: Mote) -> None:
        mote.set_time(0, held=True)
        mote.configure(**self.crew.configuration(node, self.crew.first_boots[node]))

    def _let_go(self, node: int, mote: Mote) -> None:
        mote.set_time(self.clock.now_us())
        mote.read_clock()

    def run(self, duration_us: int, progress: Callable[[float], None] | None) -> None:
        """Conduct until the duration is over, and until what is then on its way has arrived."""
        self.start(duration_us)
        while not self.stopped.is_set():
            now = self.clock.now_us()
            self.play_until(min(now, duration_us))
            if now >= duration_us:
                break
            self._sync()
            self.recorder.flush_if_large()
            if progress is not None:
                progress(now / duration_us)
            due_us = min(self.heap[0][0] if self.heap else duration_us, duration_us)
            self._listen(max(0.0, min(0.1, (due_us - self.clock.now_us()) / 1e6 / self.clock.speed)))
        self._end()
        if progress is not None:
            progress(1.0)

    def hold(self) -> None:
        """Hold all motes' clocks, so that nothing new begins on them."""
        for node in self.crew.motes:
            self.post(node, messages.SET_TIME, self.clock.now_us(), messages.HELD)

    def post(self, node: int, kind: int, *fields: Any, **more: Any) -> None:
        """Send a command to a node's mote; what no frame can carry is noted as refused."""
        with suppress(LinkError):  # It is lost: its reading thread tells that.
            try:
                self.crew.motes[node].post(kind, *fields, **more)
            except EncodeError as error:
                self._note(node, "refused", f"the host link cannot carry it: {error}")

    def _listen(self, wait_s: float) -> bool:
        """Take what the motes have told, waiting for it a moment; returns whether there was anything."""
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
        """Let what is on its way arrive, while nothing new begins."""
        self.hold()
        self.forget_actions()
        end_s = time.perf_counter() + LONGEST_END_S
        quiet_s = time.perf_counter() + QUIET_S
        while time.perf_counter() < min(end_s, quiet_s) and not self.stopped.is_set():
            self.play_until(self.clock.now_us())
            if self._listen(0.01) or self.heap:
                quiet_s = time.perf_counter() + QUIET_S
        self.hold()  # Once more, for motes that were found meanwhile.

    def _sync(self) -> None:
        if time.perf_counter() < self._next_sync_s:
            return
        self._next_sync_s = time.perf_counter() + SYNC_S
        for node, mote in self.crew.motes.items():
            with suppress(LinkError):  # As in `post`.
                if self.down[self.channel.place[node]]:
                    mote.ask()
                else:
                    mote.ask_clock()

    # What the motes tell

    def _take(self, node: int, kind: str, value: Any) -> None:
        if kind == "event":
            self._take_event(node, value, self.clock.now_us())
        elif kind == "send":
            self._take_frame(node, value[0], value[1], self.clock.now_us())
        elif kind == "lost":
            self._lose(node, value, self.clock.now_us())
        elif kind == "ready":
            self._find(node, self.clock.now_us())
        elif kind == "refused":
            self._note(node, "refused", value)
        elif kind == "noise":
            row = self.clock.now_us(), node, "noise", NOBODY, "", node, 0, 0, value, "on the way to the host"
            self.record(row)
        elif kind == "numbered":
            self._asked.numbered(*value)

    def _take_event(self, node: int, value: tuple, now: int) -> None:
        time_us, kind, peer, message, origin, sequence, size_B, number, detail = value
        text = detail if isinstance(detail, str) else self.recorder.text(detail)
        # What a mote has told has happened: its clock may be off, but not ahead of ours.
        time_us = max(0, min(now, self.crew.motes[node].clock.to_host_us(time_us)))
        event = self._event_names.get(kind)
        if event is None:
            self._note(node, "noise", f"the mote told of an event of kind {kind}, which its protocol does not have")
            return
        if event in _NOTED:
            self.notes.append(f"node {node}: {text}")
        self.record((time_us, node, event, peer, message, origin, sequence, size_B, number, text))

    def _take_frame(self, node: int, destination: int | None, frame: bytes, now: int) -> None:
        place = self.channel.place[node]
        if self.down[place]:
            return  # Its radio is away.
        try:
            self.send(place, destination, frame, now)
        except Exception as error:  # What is no frame cannot be described: whatever a mote makes of it.
            self._note(node, "refused", f"the mote sent what is no frame of this protocol: {error!r}", now)

    def _note(self, node: int, event: str, text: str, now: int | None = None) -> None:
        self.notes.append(f"node {node}: {text}")
        self.record((self.clock.now_us() if now is None else now, node, event, NOBODY, "", node, 0, 0, 0, text))

    # Motes that are lost, and found

    def _lose(self, node: int, reason: str, now: int) -> None:
        if node in self.lost:
            return
        self.lost.add(node)
        self._unmade.discard(node)
        self._asked.forget_numbers(node)
        self._note(node, "link_lost", reason, now)
        self.fail(self.channel.place[node], now)

    def _find(self, node: int, now: int) -> None:
        """A lost mote answers again: it is to become its node again, now or when an outage of the workload ends."""
        if node not in self.lost:
            return
        mote, place = self.crew.motes[node], self.channel.place[node]
        boot = mote.greeting.boot if mote.greeting is not None else 0
        self.record((now, node, "link_found", NOBODY, "", node, boot, 0, 0, f"{mote.url} answers again"))
        self.lost.discard(node)
        self.found[node] += 1
        self._unmade.add(node)
        if self.down[place] > 1:
            self.post(node, messages.SET_TIME, now, messages.HELD)
        self.recover(place, now)

    def fail(self, i: int, now: int) -> None:
        """A node is off: its mote's clock is held."""
        super().fail(i, now)
        self.post(self.addresses[i], messages.SET_TIME, now, messages.HELD)

    def recover(self, i: int, now: int) -> None:
        """A node's mote goes on, unless another reason keeps it off."""
        super().recover(i, now)
        if self.down[i]:
            return
        node = self.addresses[i]
        self.crew.motes[node].clock.forget()
        self.post(node, messages.SET_TIME, now, messages.RUNNING)
        with suppress(LinkError):  # As in `post`.
            self.crew.motes[node].ask_clock()
        if node in self._unmade:
            self._unmade.discard(node)
            self._make_again(i, now)

    def _make_again(self, i: int, now: int) -> None:
        node = self.addresses[i]
        # Of its own restarts and those that the host saw, the host's are counted: a mote whose line was cut has not
        # begun again, but it loses its memory here.
        boot = self.crew.first_boots[node] + self.found[node]
        rest = configuration(**self.crew.configuration(node, boot))
        self.post(node, messages.CONFIGURE, rest=rest, then=self._refusals(node))
        self.tell_links(i, now)
        self._asked.begin_again(node, now)

    # What the workload asks for

    def act(self, now: int, action: workload.Action) -> None:
        """Do what the workload asks for. What ends while a mote is lost is not begun again."""
        if action.kind == workload.UNSUBSCRIBE and action.node in self.lost:
            self._asked.end(action)
        super().act(now, action)

    def refuse(self, now: int, action: workload.Action, error: WorkbenchError) -> None:
        """What cannot be done is noted, and the run goes on."""
        self._note(action.node, "refused", str(error), now)

    def subscribe(self, i: int, now: int, action: workload.Action) -> None:
        """Have a mote subscribe."""
        self._asked.begin(action, now)

    def unsubscribe(self, i: int, now: int, action: workload.Action) -> None:
        """Have a mote end a subscription."""
        self._asked.end(action)

    def publish(self, i: int, now: int, action: workload.Action) -> None:
        """Have a mote publish."""
        rest = messages.encode_attribute_list(with_payload(self.reading(action, now), action.item.payload))
        self.post(action.node, messages.PUBLISH, rest=rest, then=self._refusals(action.node))

    def _answered(self, node: int, kind: str, value: Any) -> None:
        self.inbox.put((node, kind, value))

    def _refusals(self, node: int) -> Callable[[Answer | LinkError], None]:
        def note(answer: Answer | LinkError) -> None:
            if isinstance(answer, LinkError):
                self._answered(node, "refused", str(answer))

        return note

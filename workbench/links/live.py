"""A run on motes as it happens: time is the wall clock's, and the motes' own clocks say when something was.

Theory of operation
    A thread conducts: at its time it does what the workload asks (subscribe, publish, outage), as commands to motes.
    Motes without a radio of their own send and hear through the host: then the reference engine's radio is the ether
    between them, with the topology's links, losses, collisions and delays, only that its heap waits for the clock.
    Motes with a radio tell what they sent and heard.

    A mote that is lost (unplugged, killed, reset) counts as failed from then on; when it answers again it is made its
    node again, its subscriptions are made again, and it counts as recovered. An outage of the workload takes a node's
    radio away and holds its clock.

Order
    Rows are sorted by time. A mote's times are right to half a round trip, so a row may stand before its cause.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from heapq import heapify, heappop
from queue import Empty, SimpleQueue
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workbench import draws
from workbench.attributes import parse, with_payload
from workbench.errors import LinkError
from workbench.links import messages
from workbench.links.crew import Crew
from workbench.links.mote import configuration
from workbench.links.mote_line import Answer
from workbench.protocols.contract import NOBODY, Node
from workbench.sim import workload
from workbench.sim.kernel import ACTION, WAKE, Kernel
from workbench.sim.trace import EVENT_NAMES, SCHEMA, Recorder, to_batch

_ROWS_PER_BATCH = 5000
SYNC_S = 1.0  # between two looks at the motes' clocks
QUIET_S = 0.3  # without a message, after the end: then nothing is on its way any more
LONGEST_END_S = 3.0
_NOTED = ("contested", "told")
# By an event's number in a message.
EVENT_NAMES_ON_LINK = {number: EVENT_NAMES[cls] for number, cls in enumerate(messages.EVENTS)} | {
    messages.FIRST_OWN_EVENT + number: name for number, name in enumerate(messages.OWN_EVENTS)
}


class RunClock:
    """The run's time in µs: the wall clock's since it began, times ``speed``."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._began_s = time.perf_counter()

    def begin(self) -> None:
        """Now is 0."""
        self._began_s = time.perf_counter()

    def now_us(self) -> int:
        """The run's time."""
        return int((time.perf_counter() - self._began_s) * 1e6 * self.speed)


class LiveRecorder(Recorder):
    """A recorder that can be looked at while rows come."""

    def __init__(self) -> None:
        super().__init__()
        self._flushing = threading.Lock()

    def table(self) -> pa.Table:
        """All rows so far, by time."""
        with self._flushing:
            # The conductor goes on adding rows: a slice of a list is taken at one moment.
            batches = [*self._batches, to_batch(self._cells[:])]
        table = pa.Table.from_batches(batches, schema=SCHEMA).unify_dictionaries()
        return table.take(pc.sort_indices(table, [("time_us", "ascending")]))

    def so_far(self) -> LiveRecorder:
        """What is recorded until now, to be kept while the run goes on."""
        copy = LiveRecorder()
        with self._flushing:
            copy._batches, cells = self._batches[:], self._cells[:]
        copy._cells.extend(cells)
        return copy

    def flush_if_large(self) -> None:
        """Turn rows into columns when there are some thousands: a run may go on for hours."""
        if len(self._cells) >= _ROWS_PER_BATCH * len(SCHEMA):
            with self._flushing:
                self._flush()


class LiveNode(Node):
    """A node on a mote that runs by itself: what it is told is posted, what it does comes when it comes."""

    def __init__(self, address: int, protocol: Any, crew: Crew) -> None:
        super().__init__(address, protocol, None)
        self._mote = crew.motes[address]

    def receive(self, frame: bytes, previous_hop: int, now: int, broadcast: bool = True) -> None:
        """Let the mote hear a frame."""
        post(self._mote, messages.HEARD, previous_hop, broadcast, rest=frame)

    def link_quality(self, neighbor: int, inbound: float, outbound: float, now: int) -> None:
        """Tell the mote of a link."""
        post(self._mote, messages.LINK_QUALITY, neighbor, inbound, outbound)


class Conductor(Kernel):
    """The reference engine's radio and workload by the wall clock, with a crew's motes for nodes."""

    def __init__(self, scenario: Any, recorder: Recorder, crew: Crew, clock: RunClock, inbox: SimpleQueue) -> None:
        self.crew, self.clock, self.inbox = crew, clock, inbox
        self.numbers: dict[tuple[int, int], int] = {}  # (place, workload item) -> the subscription's number there
        self.notes: list[str] = []
        self.lost: set[int] = set()
        self.found: Counter[int] = Counter()  # how often a node's mote was lost and has answered again
        self.stopped = threading.Event()
        super().__init__(scenario, recorder)
        self.open_subscriptions: dict[tuple[int, int], workload.Action] = {}
        self._next_sync_s = 0.0

    def make_node(self, address: int, random: draws.Stream) -> Node:
        """The node at an address, on its mote."""
        return LiveNode(address, self.scenario.protocol, self.crew)

    def prepare(self) -> None:
        """Make all motes their nodes; LinkError if one cannot be."""
        self.clock.begin()
        for address, mote in self.crew.motes.items():
            mote.set_time(self.clock.now_us())
            mote.configure(**self.crew.configuration(address))
        for mote in self.crew.motes.values():
            mote.read_clock()
        self.clock.begin()
        for mote in self.crew.motes.values():
            mote.set_time(self.clock.now_us())
            mote.read_clock()

    def run(self, duration_us: int, progress: Callable[[float], None] | None) -> None:
        """Conduct until the duration is over, and until what is then on its way has arrived."""
        self._start(duration_us)
        while not self.stopped.is_set():
            now = self.clock.now_us()
            self._play_until(min(now, duration_us))
            if now >= duration_us:
                break
            self._sync()
            self.recorder.flush_if_large()
            if progress is not None:
                progress(now / duration_us)
            due_us = min(self.heap[0][0] if self.heap else duration_us, duration_us)
            self._listen(max(0.0, min(0.1, (due_us - self.clock.now_us()) / 1e6 / self.clock.speed)))
        self._end(duration_us)
        if progress is not None:
            progress(1.0)

    def _play_until(self, now: int) -> None:
        handlers: tuple[Callable[[int, Any], None], ...] = (
            self._act,
            self._wake,
            self._check_channel,
            self._end_frame,
            self._contend,
        )
        while self.heap and self.heap[0][0] <= now:
            time_us, _, kind, argument = heappop(self.heap)
            handlers[kind](time_us, argument)

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

    def _end(self, duration_us: int) -> None:
        """Hold the motes' clocks, so that nothing new begins, and let what is on its way arrive."""
        for mote in self.crew.motes.values():
            post(mote, messages.SET_TIME, duration_us, messages.HELD)
        self.heap[:] = [entry for entry in self.heap if entry[2] not in (ACTION, WAKE)]
        heapify(self.heap)
        end_s = time.perf_counter() + LONGEST_END_S
        quiet_s = time.perf_counter() + QUIET_S
        while time.perf_counter() < min(end_s, quiet_s) and not self.stopped.is_set():
            self._play_until(self.clock.now_us())
            if self._listen(0.01) or self.heap:
                quiet_s = time.perf_counter() + QUIET_S

    def _sync(self) -> None:
        if time.perf_counter() < self._next_sync_s:
            return
        self._next_sync_s = time.perf_counter() + SYNC_S
        for address, mote in self.crew.motes.items():
            # A clock that is held says nothing of how it goes.
            if address not in self.lost and not self.down[self.channel.place[address]]:
                with suppress(LinkError):  # Its reading thread tells that it is lost.
                    mote.ask_clock()

    # What the motes tell

    def _take(self, node: int, kind: str, value: Any) -> None:
        now = self.clock.now_us()
        if kind == "event":
            self._take_event(node, value, now)
        elif kind == "send":
            self._take_frame(node, value[0], value[1], now)
        elif kind == "lost":
            self._lose(node, value, now)
        elif kind == "ready":
            self._find(node, now)
        elif kind == "refused":
            self._note(node, "refused", value, now)
        elif kind == "noise":
            self.record((now, node, "noise", NOBODY, "", node, 0, 0, value, "on the way to the host"))
        elif kind == "subscribed":
            self.numbers[value[0]] = value[1]

    def _take_event(self, node: int, value: tuple, now: int) -> None:
        time_us, kind, peer, message, origin, sequence, size_B, number, detail = value
        text = detail if isinstance(detail, str) else self.recorder.text(detail)
        # What a mote has told has happened: its clock may be off, but not ahead of ours.
        time_us = max(0, min(now, self.crew.motes[node].clock.to_host_us(time_us)))
        event = EVENT_NAMES_ON_LINK[kind]
        if event in _NOTED:
            self.notes.append(f"node {node}: {text}")
        self.record((time_us, node, event, peer, message, origin, sequence, size_B, number, text))

    def _take_frame(self, node: int, destination: int | None, frame: bytes, now: int) -> None:
        place = self.channel.place[node]
        if self.down[place]:
            return  # Its radio is away.
        try:
            self._send(place, destination, frame, now)
        except Exception as error:  # What is no frame cannot be described: whatever a mote makes of it.
            self._note(node, "refused", f"the mote sent what is no frame of this protocol: {error!r}", now)

    def _note(self, node: int, event: str, text: str, now: int) -> None:
        self.notes.append(f"node {node}: {text}")
        self.record((now, node, event, NOBODY, "", node, 0, 0, 0, text))

    def _lose(self, node: int, reason: str, now: int) -> None:
        if node in self.lost:
            return
        self.lost.add(node)
        self.notes.append(f"node {node}: {reason}")
        self.record((now, node, "link_lost", NOBODY, "", node, 0, 0, 0, reason))
        self._fail(self.channel.place[node], now)

    def _find(self, node: int, now: int) -> None:
        """A lost mote answers again: it becomes its node again."""
        mote = self.crew.motes[node]
        boot = mote.greeting.boot if mote.greeting is not None else 0
        place = self.channel.place[node]
        self.record((now, node, "link_found", NOBODY, "", node, boot, 0, 0, f"{mote.url} answers again"))
        self.found[node] += 1
        rest = configuration(**self.crew.configuration(node, self.found[node]))
        self._let_go(node, now)
        post(mote, messages.CONFIGURE, rest=rest, then=self._refusals(node))
        self.lost.discard(node)
        if self.down[place]:
            self._recover(place, now)
        self._tell_links_of(place)
        for (at, _), action in list(self.open_subscriptions.items()):
            if at == place:
                self._post_subscription(place, action, now)

    def _tell_links_of(self, place: int) -> None:
        for neighbor, ratio, _ in self.channel.receivers[place]:
            arc = self.channel.arc(neighbor, place)
            self.nodes[place].link_quality(self.addresses[neighbor], arc[1] if arc else 0.0, ratio, 0)

    # What the workload asks for

    def _subscribe(self, i: int, now: int, action: workload.Action) -> None:
        self.open_subscriptions[i, action.index] = action
        self._post_subscription(i, action, now)

    def _post_subscription(self, i: int, action: workload.Action, now: int) -> None:
        item = action.item
        seconds = -1.0
        if item.expires_s is not None:
            seconds = item.expires_s - (now - action.time_us) / 1e6
            if seconds <= 0:
                return
        key = (i, action.index)

        def note(answer: Answer | LinkError) -> None:
            if isinstance(answer, Answer):
                self.inbox.put((action.node, "subscribed", (key, answer.number)))
            else:
                self.inbox.put((action.node, "refused", str(answer)))

        rest = messages.encode_attribute_list(parse(item.what))
        post(self.crew.motes[action.node], messages.SUBSCRIBE, seconds, item.match_all, rest=rest, then=note)

    def _unsubscribe(self, i: int, now: int, action: workload.Action) -> None:
        self.open_subscriptions.pop((i, action.index), None)
        number = self.numbers.pop((i, action.index), None)
        if number is not None:
            mote = self.crew.motes[action.node]
            post(mote, messages.UNSUBSCRIBE, number, then=self._refusals(action.node))

    def _publish(self, i: int, now: int, action: workload.Action) -> None:
        rest = messages.encode_attribute_list(with_payload(self.reading(action, now), action.item.payload))
        post(self.crew.motes[action.node], messages.PUBLISH, rest=rest, then=self._refusals(action.node))

    def _refusals(self, node: int) -> Callable[[Answer | LinkError], None]:
        def note(answer: Answer | LinkError) -> None:
            if isinstance(answer, LinkError):
                self.inbox.put((node, "refused", str(answer)))

        return note

    def _fail(self, i: int, now: int) -> None:
        super()._fail(i, now)
        post(self.crew.motes[self.addresses[i]], messages.SET_TIME, now, messages.HELD)

    def _recover(self, i: int, now: int) -> None:
        super()._recover(i, now)
        if not self.down[i]:
            self._let_go(self.addresses[i], now)

    def _let_go(self, node: int, now: int) -> None:
        """Let a mote's clock go on from now."""
        mote = self.crew.motes[node]
        mote.clock.forget()
        with suppress(LinkError):  # As in `post`.
            mote.post(messages.SET_TIME, now, messages.RUNNING)
            mote.ask_clock()


def post(mote: Any, kind: int, *fields: Any, **more: Any) -> None:
    """`Mote.post` to a mote that may be lost: that is told by its reading thread, so nothing is lost silently."""
    with suppress(LinkError):
        mote.post(kind, *fields, **more)

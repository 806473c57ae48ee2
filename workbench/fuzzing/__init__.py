"""A test of a protocol's node with frames that no run would send to it: ``wb.fuzz(protocol, frames=20_000)``.

Theory of operation
    One node is in the middle of a small grid, and the fuzzer plays all other nodes. It passes frames of all kinds
    (`fuzzing/corpus.py`) to the node at random times, wakes it when its timers are due or later, and lets its
    application subscribe, unsubscribe and publish. Most steps of the clock are short, some are hours, and a few go
    back. Frames that the node sends are also passed back to it, as neighbors would.

    The test fails if the node raises an error, or if a wake-up does not set the next wake-up to a later time. The
    node's memory, and the frames that it sends in one call, should be bounded: `Fuzzed` has the measurements of both,
    and the caller decides on the limits.

Cost
    The time of the node's own code, and some 30 µs a frame. Memory is measured `PARTS` times, by adding up the sizes of
    all objects in the node's state.
"""

from __future__ import annotations

import random  # noqa: TID251 (these draws do not affect a run)
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from workbench import draws, topology
from workbench.analysis.frames import frames
from workbench.attributes.text import parse
from workbench.errors import FuzzError, ParameterError, WorkbenchError
from workbench.fuzzing.corpus import Frame, MutatedCorpus
from workbench.keywords import checked
from workbench.protocols.contract import Node
from workbench.protocols.protocol import Protocol
from workbench.sim import runner
from workbench.sim.changes.items import outage
from workbench.sim.scenario import Scenario
from workbench.sim.workload import Item, publish, subscribe
from workbench.topology.graphs import whole

PARTS = 20  # number of measurements of the node's memory
SECOND = 1_000_000
_LAST_US = 1 << 50  # some 35 years; then the clock restarts at 0
_MIDDLE = 4  # the address in the middle of a grid of nine
_STRANGER = 60_000  # an address that the grid does not have
_HARVESTS = 4  # runs from which frames are collected
_SUBSCRIPTION_TEXTS = ("TEMP GE 20", "TEMP GE 20, TEMP LE 30", "HUMIDITY GT 40", "TEMP LE -5", 'TOPIC EQ "a/b"')
_PUBLICATION_TEXTS = (
    "TEMP IS 25",
    "TEMP IS 21, HUMIDITY IS 55",
    "TEMP IS -9.5",
    'TOPIC IS "a/b"',
    "TEMP IS 22, TEMP IS 23",
)
_MOST_SUBSCRIPTIONS = 5
_MAY_REFUSE = frozenset(("subscribe", "publish"))  # calls that a node may refuse with an error


class Fuzzed(NamedTuple):
    """The results of a test of a node with `fuzz`.

    protocol       name of the protocol
    seed           seed of the test
    frames         number of frames passed to the node
    calls          number of calls of the node's methods
    drops          {reason: number of messages that the node dropped for this reason}
    most_frames    largest number of frames that the node sent in one call
    most_sent_B    largest number of bytes that the node sent in one call
    memory_B       sizes of the node's own state in bytes, measured `PARTS` times, after equal numbers of frames
    """

    protocol: str
    seed: int
    frames: int
    calls: int
    drops: dict[str, int]
    most_frames: int
    most_sent_B: int
    memory_B: tuple[int, ...]

    @property
    def growth(self) -> float:
        """The largest size of the node's state in the last quarter of the test, divided by that in the second quarter.

        A ratio of about 1 means that the size of the state is bounded.
        """
        quarter = len(self.memory_B) // 4
        return max(self.memory_B[-quarter:]) / max(self.memory_B[quarter : 2 * quarter])


@checked
def fuzz(
    protocol: Protocol, frames: int = 20_000, seed: int = 1, progress: Callable[[float], None] | None = None
) -> Fuzzed:
    """Test a node of ``protocol`` with ``frames`` random frames at random times; an equal ``seed`` repeats the test.

    ``progress`` is called regularly with the share of frames done, 0 to 1. Raises FuzzError if the node raises an
    error, which becomes the cause of the FuzzError, or if a wake-up does not set the node's next wake-up to a later
    time. Raises ParameterError for invalid arguments.
    """
    if not isinstance(protocol, Protocol):
        raise ParameterError(f"`protocol` is {protocol!r:.60}; it must be an instance of a protocol class")
    frames = whole("frames", frames, PARTS, 1 << 40)
    trial = _Trial(protocol, whole("seed", seed, 0, (1 << 63) - 1))
    memory_B = []
    for part_index in range(PARTS):
        trial.play(frames * (part_index + 1) // PARTS)
        memory_B.append(state_B(trial.node))
        if progress is not None:
            progress((part_index + 1) / PARTS)
    node = trial.node
    name = type(protocol).public_class().__name__
    return Fuzzed(
        name, seed, frames, trial.calls, dict(node.drops), trial.most_frames, trial.most_sent_B, tuple(memory_B)
    )


class _Trial:
    """A test in progress: the node, its clock, and a simulation of its neighbors and its application."""

    def __init__(self, protocol: Protocol, seed: int) -> None:
        self.seed = seed
        self.choose = random.Random(seed)
        self.name = type(protocol).public_class().__name__
        addresses = (*range(9), _STRANGER)
        self.corpus = MutatedCorpus(protocol, harvest(protocol, seed), addresses, self.choose)
        self.node: Node = protocol.make_node(_MIDDLE, draws.Stream(draws.make_key(seed, _MIDDLE)))
        # Drops are only counted. Other events are still created, as that may raise errors too.
        self.subscriptions: list[Any] = []
        self.now = self.frames = self.calls = self.most_frames = self.most_sent_B = 0
        self.last_frame: Frame | None = None
        self.unicasts: deque[tuple[int, bytes]] = deque(maxlen=8)  # whose outcome is not reported yet
        self._call_node("start", self.node.start, 0)
        for neighbor in (1, 3, 5, 7):
            self._call_node("link_quality", self.node.link_quality, neighbor, 1.0, 1.0, 0)

    def play(self, frames: int) -> None:
        """Continue the test until ``frames`` frames have been passed to the node."""
        while self.frames < frames:
            self._advance_clock()
            action_draw = self.choose.random()
            if action_draw < 0.9:
                self.last_frame = frame = self.corpus.draw()
                self.frames += 1
                self._call_node("receive", self.node.receive, frame.data, frame.sender, self.now, frame.broadcast)
            else:
                self._perform_random_action(action_draw)
            if self.unicasts and self.choose.random() < 0.3:
                self._report_outcome()

    def _report_outcome(self) -> None:
        """Report to the node whether its oldest unicast frame was acknowledged.

        One report in twenty contains a random frame, not the node's own, because the link between a host and its radio
        can damage a report.
        """
        destination, data = self.unicasts.popleft()
        if self.choose.random() < 0.05:
            data = self.corpus.draw().data
        self._call_node("sent", self.node.sent, destination, data, self.choose.random() < 0.5, self.now)

    def _advance_clock(self) -> None:
        """Set the clock forward, or seldom back. If the node's wake-up is then due, wake the node with probability 0.9.

        Raises FuzzError if the node, once woken, does not set its next wake-up to a later time.
        """
        choose = self.choose
        step_draw = choose.random()
        if step_draw < 0.97:
            self.now += int(choose.expovariate(1 / choose.choice((100, 20_000, SECOND))))
        elif step_draw < 0.995:
            self.now += choose.randrange(choose.choice((60, 3600, 30 * 86400)) * SECOND)
        else:
            self.now = max(0, self.now - choose.randrange(10 * SECOND))
        if self.now > _LAST_US:
            self.now = 0
        due_us = self.node.next_wake
        if due_us is not None and due_us <= self.now and choose.random() < 0.9:
            self._call_node("wake", self.node.wake, self.now)
            next_us = self.node.next_wake
            if next_us is not None and next_us <= self.now:
                failure_text = self._describe_failure("wake")
                raise FuzzError(
                    f"{failure_text}: next_wake is {next_us} µs; it must be after the present, {self.now} µs"
                )

    def _perform_random_action(self, action_draw: float) -> None:
        """Let the application subscribe, unsubscribe or publish, or report a link quality to the node.

        ``action_draw`` is a random number in [0.9, 1) that selects the action.
        """
        choose, node = self.choose, self.node
        if action_draw < 0.94:
            self._call_node("publish", node.publish, parse(choose.choice(_PUBLICATION_TEXTS)), self.now)
        elif action_draw < 0.96 or not self.subscriptions:
            expires_s = choose.choice((None, 1.0, 600.0))
            if len(self.subscriptions) == _MOST_SUBSCRIPTIONS:
                self._call_node("unsubscribe", node.unsubscribe, self.subscriptions.pop(0), self.now)
            constraints = parse(choose.choice(_SUBSCRIPTION_TEXTS))
            subscription = self._call_node("subscribe", node.subscribe, constraints, self.now, expires_s)
            self.subscriptions += [] if subscription is None else [subscription]
        elif action_draw < 0.98:
            subscription = self.subscriptions.pop(choose.randrange(len(self.subscriptions)))
            self._call_node("unsubscribe", node.unsubscribe, subscription, self.now)
        else:
            neighbor = choose.choice((1, 3, 5, 7, _STRANGER))
            self._call_node("link_quality", node.link_quality, neighbor, choose.random(), choose.random(), self.now)

    def _call_node(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method of the node and return its result; measure and store the frames that the node sends.

        ``name`` is the method's name in error messages. Returns None if the node refuses a call that it may refuse,
        such as `subscribe`. Raises FuzzError if the method raises any other error.
        """
        self.calls += 1
        try:
            result = method(*arguments)
        except Exception as error:
            if isinstance(error, WorkbenchError) and name in _MAY_REFUSE:
                return None
            message = f"{self._describe_failure(name)}: it raised {type(error).__name__}: {error}"
            raise FuzzError(message) from error
        sent_frames = self.node.take_frames()
        if sent_frames:
            self.most_frames = max(self.most_frames, len(sent_frames))
            self.most_sent_B = max(self.most_sent_B, sum(len(frame_bytes) for _, frame_bytes in sent_frames))
            if type(self.node).sent is not Node.sent:
                self.unicasts.extend(
                    (destination, frame_bytes) for destination, frame_bytes in sent_frames if destination is not None
                )
            for destination, frame_bytes in sent_frames[:2]:
                self.corpus.add(Frame(frame_bytes, self.choose.randrange(9), destination is None))
        self.node.take_events()
        for subscription in self.subscriptions:
            subscription.take()
        return result

    def _describe_failure(self, name: str) -> str:
        frame = self.last_frame
        frame_text = f"; the last frame came from node {frame.sender}: {frame.data.hex()}" if frame else ""
        repetition = f"fuzz(..., seed={self.seed}) repeats this{frame_text}"
        return f"a node of {self.name} failed in {name}() after {self.frames:,} frames ({repetition})"


def harvest(protocol: Protocol, seed: int) -> list[Frame]:
    """Run the protocol several times in a small network, and return all sent frames. During each run a node fails once.

    Raises ParameterError if no frame is sent.
    """
    corpus_frames = []
    for run_index in range(_HARVESTS):
        sinks, source_nodes = ((0, 5), (8, 3)) if run_index % 2 else ((_MIDDLE, 0), (2, 7))
        workload: tuple[Item, ...] = (
            subscribe(sinks, _SUBSCRIPTION_TEXTS[run_index % 2], start_s=0.5, stop_s=12),
            subscribe(sinks[0], 'TOPIC EQ "a/b"', start_s=1),
            publish(source_nodes, "TEMP IS 25, HUMIDITY IS 50", start_s=4, every_s=2),
            publish(source_nodes[0], 'TOPIC IS "a/b"', start_s=5, every_s=3),
            outage(1, start_s=7, stop_s=10),
        )
        scenario = Scenario(topology.grid(3, 3), protocol, workload, duration_s=15, seed=seed + run_index)
        sent_frames = frames(runner.play(scenario, engine="reference"))
        columns = (sent_frames[name].to_pylist() for name in ("frame", "node", "peer"))
        corpus_frames += [Frame(frame_bytes, node, peer < 0) for frame_bytes, node, peer in zip(*columns, strict=True)]
    if not corpus_frames:
        raise ParameterError(f"{protocol!r} sends no frames in a small run; choose settings with which nodes send")
    return corpus_frames


def state_B(node: Node) -> int:
    """Return the size in bytes of a node and all objects to which it refers, except its settings, classes and code."""
    seen_ids = {id(node.settings), id(node.settings.settings) if isinstance(node.settings, Protocol) else 0}
    pending_objects: deque[Any] = deque([node])
    total_B = 0
    while pending_objects:
        state_object = pending_objects.pop()
        if id(state_object) in seen_ids or isinstance(state_object, type) or callable(state_object):
            continue
        seen_ids.add(id(state_object))
        total_B += sys.getsizeof(state_object)
        if isinstance(state_object, dict):
            pending_objects.extend(state_object.keys())
            pending_objects.extend(state_object.values())
        elif isinstance(state_object, (list, tuple, set, frozenset, deque)):
            pending_objects.extend(state_object)
        else:
            pending_objects.append(getattr(state_object, "__dict__", None))
            for cls in type(state_object).__mro__:
                slots = getattr(cls, "__slots__", ())
                pending_objects.extend(
                    getattr(state_object, slot, None) for slot in ((slots,) if isinstance(slots, str) else slots)
                )
    return total_B

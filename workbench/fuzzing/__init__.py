"""A node of any protocol among frames that no run would send it: ``wb.fuzz(protocol, frames=20_000)``.

Theory of operation
    One node stands in the middle of a small grid, alone: the fuzzer is everybody else. It gives the node frames of all
    kinds (`fuzzing/hail.py`) at random times, wakes it when it wants to be woken or later, and has its application
    subscribe, unsubscribe and publish. Most steps of the clock are short, some are hours, and a few lead back. What the
    node sends comes back to it, too, as neighbors would send it.

    Asked of the node is little: that it raises nothing, that a wake-up leads on, and that its memory and its answers
    have bounds. `Fuzzed` has what was measured of the last two; whoever calls decides what is too much.

Cost
    That of the node, and some 30 µs a frame. Memory is measured `PARTS` times, by a walk through all that the node has.
"""

from __future__ import annotations

import random  # noqa: TID251 (what is drawn here is no part of a run)
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from workbench import draws, topology
from workbench.analysis.frames import frames
from workbench.attributes.text import parse
from workbench.errors import FuzzError, ParameterError, WorkbenchError
from workbench.fuzzing.hail import Frame, Hail
from workbench.keywords import checked
from workbench.protocols.contract import Node
from workbench.protocols.protocol import Protocol
from workbench.sim import runner
from workbench.sim.scenario import Scenario
from workbench.sim.workload import Item, outage, publish, subscribe
from workbench.topology.graphs import whole

PARTS = 20  # how often the node's memory is measured
SECOND = 1_000_000
_LAST_US = 1 << 50  # some 35 years: the clock begins anew
_MIDDLE = 4  # of a grid of nine
_STRANGER = 60_000
_HARVESTS = 4
_WANTED = ("TEMP GE 20", "TEMP GE 20, TEMP LE 30", "HUMIDITY GT 40", "TEMP LE -5", 'TOPIC EQ "a/b"')
_PUBLISHED = ("TEMP IS 25", "TEMP IS 21, HUMIDITY IS 55", "TEMP IS -9.5", 'TOPIC IS "a/b"', "TEMP IS 22, TEMP IS 23")
_MOST_SUBSCRIPTIONS = 5
_MAY_REFUSE = frozenset(("subscribe", "publish"))  # what its application asks of a node, in a sentence


class Fuzzed(NamedTuple):
    """What a node went through.

    ``frames`` were given to it, in ``calls`` calls of all kinds. ``drops``: reason -> number. ``most_frames``,
    ``most_sent_B``: of one call of the node. ``memory_B`` (parts,): what the node's own state took after each part.
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
        """The most memory of the last quarter over that of the second quarter: about 1 if memory is bounded."""
        quarter = len(self.memory_B) // 4
        return max(self.memory_B[-quarter:]) / max(self.memory_B[quarter : 2 * quarter])


@checked
def fuzz(
    protocol: Protocol, frames: int = 20_000, seed: int = 1, progress: Callable[[float], None] | None = None
) -> Fuzzed:
    """Try a node of ``protocol`` with so many frames, in random order at random times; the same for the same seed.

    ``progress`` is called now and then with the share done, 0 to 1. FuzzError, with the node's own exception as its
    cause, if the node raises anything, or asks again and again to be woken at once. ParameterError for wrong arguments.
    """
    if not isinstance(protocol, Protocol):
        raise ParameterError(f"protocol is {protocol!r:.60}; it must be a protocol with its settings")
    frames = whole("frames", frames, PARTS, 1 << 40)
    trial = _Trial(protocol, whole("seed", seed, 0, (1 << 63) - 1))
    memory_B = []
    for part in range(PARTS):
        trial.play(frames * (part + 1) // PARTS)
        memory_B.append(state_B(trial.node))
        if progress is not None:
            progress((part + 1) / PARTS)
    node = trial.node
    name = type(protocol).public_class().__name__
    return Fuzzed(
        name, seed, frames, trial.calls, dict(node.drops), trial.most_frames, trial.most_sent_B, tuple(memory_B)
    )


class _Trial:
    """A node, its clock, and everybody else."""

    def __init__(self, protocol: Protocol, seed: int) -> None:
        self.seed = seed
        self.choose = random.Random(seed)
        self.name = type(protocol).public_class().__name__
        addresses = (*range(9), _STRANGER)
        self.hail = Hail(protocol, harvest(protocol, seed), addresses, self.choose)
        self.node: Node = protocol.make_node(_MIDDLE, draws.Stream(draws.make_key(seed, _MIDDLE)))
        # Drops are counted; events are made all the same, as their making may raise, too.
        self.open: list[Any] = []
        self.now = self.frames = self.calls = self.most_frames = self.most_sent_B = 0
        self.last: Frame | None = None
        self.unicasts: deque[tuple[int, bytes]] = deque(maxlen=8)  # of the node, whose outcome is not reported yet
        self._call("start", self.node.start, 0)
        for neighbor in (1, 3, 5, 7):
            self._call("link_quality", self.node.link_quality, neighbor, 1.0, 1.0, 0)

    def play(self, frames: int) -> None:
        """Go on until so many frames have been given to the node."""
        while self.frames < frames:
            self._tick()
            kind = self.choose.random()
            if kind < 0.9:
                self.last = frame = self.hail.draw()
                self.frames += 1
                self._call("receive", self.node.receive, frame.data, frame.sender, self.now, frame.broadcast)
            else:
                self._application(kind)
            if self.unicasts and self.choose.random() < 0.3:
                self._report()

    def _report(self) -> None:
        """Report the outcome of a unicast, perhaps of a frame that is not the node's or was damaged on a host link."""
        destination, data = self.unicasts.popleft()
        if self.choose.random() < 0.05:
            data = self.hail.draw().data
        self._call("sent", self.node.sent, destination, data, self.choose.random() < 0.5, self.now)

    def _tick(self) -> None:
        """Move the clock, and wake the node if it is due; as drivers do, not again at the same time."""
        choose = self.choose
        kind = choose.random()
        if kind < 0.97:
            self.now += int(choose.expovariate(1 / choose.choice((100, 20_000, SECOND))))
        elif kind < 0.995:
            self.now += choose.randrange(choose.choice((60, 3600, 30 * 86400)) * SECOND)
        else:
            self.now = max(0, self.now - choose.randrange(10 * SECOND))
        if self.now > _LAST_US:
            self.now = 0
        due = self.node.next_wake
        if due is not None and due <= self.now and choose.random() < 0.9:
            self._call("wake", self.node.wake, self.now)
            again = self.node.next_wake
            if again is not None and again <= self.now:
                raise FuzzError(f"{self._where('wake')}: it asks to be woken at {again} µs, and it is {self.now} µs")

    def _application(self, kind: float) -> None:
        """What the node's own application does, and its link layer."""
        choose, node = self.choose, self.node
        if kind < 0.94:
            self._call("publish", node.publish, parse(choose.choice(_PUBLISHED)), self.now)
        elif kind < 0.96 or not self.open:
            expires_s = choose.choice((None, 1.0, 600.0))
            if len(self.open) == _MOST_SUBSCRIPTIONS:
                self._call("unsubscribe", node.unsubscribe, self.open.pop(0), self.now)
            wanted = parse(choose.choice(_WANTED))
            made = self._call("subscribe", node.subscribe, wanted, self.now, expires_s)
            self.open += [] if made is None else [made]
        elif kind < 0.98:
            one = self.open.pop(choose.randrange(len(self.open)))
            self._call("unsubscribe", node.unsubscribe, one, self.now)
        else:
            neighbor = choose.choice((1, 3, 5, 7, _STRANGER))
            self._call("link_quality", node.link_quality, neighbor, choose.random(), choose.random(), self.now)

    def _call(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call the node, and take what it sends and tells."""
        self.calls += 1
        try:
            result = method(*arguments)
        except Exception as error:
            if isinstance(error, WorkbenchError) and name in _MAY_REFUSE:
                return None
            said = f"{self._where(name)}: it raised {type(error).__name__}: {error}"
            raise FuzzError(said) from error
        sent = self.node.take_frames()
        if sent:
            self.most_frames = max(self.most_frames, len(sent))
            self.most_sent_B = max(self.most_sent_B, sum(len(data) for _, data in sent))
            if type(self.node).sent is not Node.sent:
                self.unicasts.extend((destination, data) for destination, data in sent if destination is not None)
            for destination, data in sent[:2]:
                self.hail.add(Frame(data, self.choose.randrange(9), destination is None))
        self.node.take_events()
        for one in self.open:
            one.take()
        return result

    def _where(self, name: str) -> str:
        frame = f"; the last frame came from {self.last.sender}: {self.last.data.hex()}" if self.last else ""
        again = f"fuzz(..., seed={self.seed}) does so again{frame}"
        return f"a node of {self.name} failed in {name}() after {self.frames:,} frames ({again})"


def harvest(protocol: Protocol, seed: int) -> list[Frame]:
    """Frames of small runs of the protocol, in their order: with subscriptions, publications and an outage."""
    found = []
    for turn in range(_HARVESTS):
        sinks, sources = ((0, 5), (8, 3)) if turn % 2 else ((_MIDDLE, 0), (2, 7))
        workload: tuple[Item, ...] = (
            subscribe(sinks, _WANTED[turn % 2], start_s=0.5, stop_s=12),
            subscribe(sinks[0], 'TOPIC EQ "a/b"', start_s=1),
            publish(sources, "TEMP IS 25, HUMIDITY IS 50", start_s=4, every_s=2),
            publish(sources[0], 'TOPIC IS "a/b"', start_s=5, every_s=3),
            outage(1, start_s=7, stop_s=10),
        )
        scenario = Scenario(topology.grid(3, 3), protocol, workload, duration_s=15, seed=seed + turn)
        sent = frames(runner.play(scenario, engine="reference"))
        columns = (sent[name].to_pylist() for name in ("frame", "node", "peer"))
        found += [Frame(data, node, peer < 0) for data, node, peer in zip(*columns, strict=True)]
    if not found:
        raise ParameterError(f"{protocol!r} sends no frames in a small run, so there is nothing to try its nodes with")
    return found


def state_B(node: Node) -> int:
    """The bytes that a node's own state takes: all that it refers to, but for its settings, classes and code."""
    seen = {id(node.settings), id(node.settings.settings) if isinstance(node.settings, Protocol) else 0}
    waiting: deque[Any] = deque([node])
    total = 0
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type) or callable(thing):
            continue
        seen.add(id(thing))
        total += sys.getsizeof(thing)
        if isinstance(thing, dict):
            waiting.extend(thing.keys())
            waiting.extend(thing.values())
        elif isinstance(thing, (list, tuple, set, frozenset, deque)):
            waiting.extend(thing)
        else:
            waiting.append(getattr(thing, "__dict__", None))
            for cls in type(thing).__mro__:
                slots = getattr(cls, "__slots__", ())
                waiting.extend(getattr(thing, slot, None) for slot in ((slots,) if isinstance(slots, str) else slots))
    return total

"""Motes to run a scenario on: virtual ones on this machine, or boards on their lines.

    scenario.run(on=wb.motes.virtual())                     one virtual mote for each node, in real time
    scenario.run(on=wb.motes.virtual(speed=10))             their clocks, and the run's, ten times as fast
    scenario.run(on=wb.motes.virtual(lockstep=True))        in the simulator's time: the trace is the simulator's
    scenario.run(on=wb.motes.virtual(kind="c"))             motes in C, each a process of this machine
    scenario.run(on=wb.motes.virtual(kind={3: "c", 5: "cortex-m3"}))    these two, in a network that is simulated
    scenario.run(on=wb.motes.boards(["/dev/ttyUSB0", ...])) boards, for the topology's nodes in ascending order

A virtual mote is the MicroPython interpreter running the program of hardware/mote behind a loopback socket, or the
program of hardware/c as a process or on an emulated Cortex-M3; the host talks to it as it would to a board. Boards
without a radio of their own, virtual motes among them, hear each other and simulated nodes through the host, which
applies the topology's links. Used in a ``with``, virtual motes stay up from run to run; those that were killed, or
whose program has ended, are started again for the next one.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from workbench.errors import LinkError, ParameterError
from workbench.keywords import answer_for, checked
from workbench.motes import in_c, port, rack
from workbench.motes.crew import protocol_on_a_mote
from workbench.motes.in_c import footprint as footprint
from workbench.motes.mote import Mote
from workbench.motes.processes import CortexM3, CProcess, Process
from workbench.motes.program import program_files
from workbench.motes.rack import Memory, Rack, log_crash
from workbench.suggestion import meant

__all__ = ["KINDS", "Boards", "Motes", "VirtualMotes", "boards", "footprint", "listing", "missing", "virtual"]

MICROPYTHON, C, CORTEX_M3, SIMULATED = "micropython", in_c.C, in_c.CORTEX_M3, "simulated"
KINDS = (MICROPYTHON, C, CORTEX_M3, SIMULATED)
_OTHERWISE_B = 100  # of a configuration, for address, key and so on
Kinds = str | Mapping[int, str] | Sequence[str]


class Motes:
    """Where motes come from. ``speed``: of the run's clock; ``lockstep``: the simulator's time drives them.

    ``radio``: settings for radios of the motes' own. A run takes motes and gives them back: one at a time. ``kinds``:
    what each node runs on, as far as that is known before its mote is greeted.
    """

    kinds: Mapping[int, str] = {}
    speed = 1.0
    lockstep = False
    radio: Mapping[str, Any] = {}
    _holder: Any = None
    _taking = threading.Lock()

    def take(self, scenario: Any, run: Any) -> dict[int, str]:
        """Start them for a run; returns their URLs by node. LinkError if another run has them."""
        with self._taking:
            if self._holder is not None:
                raise LinkError("these motes are in a run that goes on; wait() for its end, or stop() it")
            self._holder = run
        try:
            return self.start(scenario)
        except BaseException:
            self._holder = None
            raise

    def give_back(self, run: Any) -> None:
        """A run has ended; one that does not have them changes nothing."""
        if self._holder is run:
            try:
                self.end()
            finally:
                self._holder = None

    def start(self, scenario: Any) -> dict[int, str]:
        """Have a mote for each node of a scenario; returns their URLs."""
        raise NotImplementedError

    def end(self) -> None:
        """The run that had them has ended."""

    def play(self, scenario: Any, progress: Callable[[float], None] | None = None) -> Any:
        """Run a scenario on these motes, as `Scenario.run(on=...)` does. ScenarioError if its protocol cannot."""
        protocol_on_a_mote(scenario.protocol)  # before any mote is started
        if not self.lockstep:
            from workbench.motes.live.run import LiveRun

            return LiveRun(scenario, self, progress)
        from workbench.motes import lockstep
        from workbench.sim.run import Run

        taken_by = object()
        urls = self.take(scenario, taken_by)
        try:
            run = Run(scenario, "motes in lockstep", lockstep.play(scenario, urls, progress))
            run.kinds = dict(self.kinds)
            return run
        finally:
            self.give_back(taken_by)


class VirtualMotes(Motes):
    """Motes that live on this machine, as many as the scenario has nodes; see `virtual`."""

    def __init__(self, speed: float, lockstep: bool, kind: Kinds = MICROPYTHON) -> None:
        self.speed, self.lockstep, self.kind = speed, lockstep, kind
        self.rack: Rack | None = None  # of those that run MicroPython
        self._racked: tuple[int, ...] = ()  # their nodes
        self._program: tuple[Any, ...] = ()  # what runs on them
        self._processes: dict[int, Process] = {}
        self._compiled: dict[int, Path] = {}
        self._is_kept = False

    def __repr__(self) -> str:
        return f"VirtualMotes(speed={self.speed:g}, lockstep={self.lockstep}, kind={self.kind!r})"

    def start(self, scenario: Any) -> dict[int, str]:
        """Start them, or those that are not up, if the same program runs on as many already."""
        self.kinds = kinds_of(self.kind, sorted(scenario.topology.nodes))
        try:
            urls = self._start_rack(scenario, self._nodes_of(MICROPYTHON))
            urls |= self._start_processes(scenario)
        except BaseException:
            self.close()
            raise
        return dict(sorted(urls.items()))

    def _nodes_of(self, *kinds: str) -> tuple[int, ...]:
        return tuple(node for node, kind in self.kinds.items() if kind in kinds)

    def _start_rack(self, scenario: Any, nodes: tuple[int, ...]) -> dict[int, str]:
        files = program_files("virtual", protocols=(type(scenario.protocol),)) if nodes else ()
        # A key has one meaning for as long as a mote is up.
        program = (len(nodes), files, tuple(map(tuple, scenario.user_keys())))
        if self.rack is not None and (program != self._program or not self.rack.is_alive):
            self.rack.close()
            self.rack = None
        self._racked, self._program = nodes, program
        if not nodes:
            return {}
        if self.rack is None:
            self.rack = Rack(len(nodes), list(files), self.speed, on_crash=self._crashed_in_rack)
        for index in range(len(nodes)):
            if not self.rack.is_running(index):
                self.rack.restart(index)
        return dict(zip(nodes, self.rack.urls, strict=True))

    def _start_processes(self, scenario: Any) -> dict[int, str]:
        longest_body = _longest_body(scenario)
        nodes = self._nodes_of(C, CORTEX_M3)
        room = {"nodes": len(self.kinds), "subscriptions": _most_subscriptions(scenario)}
        compiled = {node: in_c.program(self.kinds[node], scenario.protocol, longest_body, **room) for node in nodes}
        for node in [node for node in self._processes if self._compiled[node] != compiled.get(node)]:
            self._processes.pop(node).kill()
        self._compiled = compiled
        for node, program in compiled.items():
            if node not in self._processes:
                make = CortexM3 if self.kinds[node] == CORTEX_M3 else CProcess
                self._processes[node] = make(program, self.speed, partial(self._crashed, node))
            elif not self._processes[node].is_running:
                self._processes[node].restart()
        return {node: one.line_url(self.lockstep) for node, one in self._processes.items()}

    def program_of(self, node: int) -> Path:
        """What was compiled for the node of a mote in C; LinkError for another one."""
        if node not in self._compiled:
            raise LinkError(f"node {node} has no mote in C")
        return self._compiled[node]

    def end(self) -> None:
        """Stop them, unless they are kept by a ``with``."""
        if not self._is_kept:
            self.close()

    def close(self) -> None:
        """Stop them."""
        if self.rack is not None:
            self.rack.close()
            self.rack = None
        while self._processes:
            self._processes.popitem()[1].kill()

    def kill(self, node: int) -> None:
        """Take the power from the mote of a node."""
        if self._is_process(node):
            self._processes[node].kill()
        else:
            self._up().kill(self._index(node))

    def restart(self, node: int) -> None:
        """Give it power again; it begins with empty memory."""
        if self._is_process(node):
            self._processes[node].restart()
        else:
            self._up().restart(self._index(node))

    def memory(self) -> Memory:
        """What motes hold, in bytes by node, and the resident size of the process that those of MicroPython live in.

        Of MicroPython it is the heap, of a process in C its variables, of a Cortex-M3 these and its stack as deep as it
        ever was. The last two are asked over their lines, so for None while a run has them.
        """
        rss_B, heaps = self._up().memory() if self._racked or not self._processes else (0, {})
        used: dict[int, int | None] = {self._racked[index]: used_B for index, used_B in heaps.items()}
        for node, one in self._processes.items():
            used[node] = _ask_memory(one.url) if self._holder is None and one.is_running else None
        return Memory(rss_B, dict(sorted(used.items())))

    def _crashed_in_rack(self, index: int, traceback: str) -> None:
        self._crashed(self._racked[index], traceback)

    def _crashed(self, node: int, text: str) -> None:
        log_crash(node, text)
        if hasattr(self._holder, "note"):
            self._holder.note(f"node {node}: the mote's program ended: {text.strip()}")

    def _is_process(self, node: int) -> bool:
        if self.kinds.get(node) == SIMULATED:
            raise LinkError(f"node {node} is simulated: it has no mote whose power could be taken; use wb.outage")
        return node in self._processes

    def _index(self, node: int) -> int:
        if node not in self._racked:
            raise LinkError(f"there is no mote for node {node}")
        return self._racked.index(node)

    def _up(self) -> Rack:
        if self.rack is None:
            raise LinkError("the virtual motes are not up; they are while a run goes on, and within a with")
        return self.rack

    def __enter__(self) -> VirtualMotes:
        self._is_kept = True
        return self

    def __exit__(self, *_: object) -> None:
        self._is_kept = False
        if hasattr(self._holder, "stop"):
            self._holder.stop()
        self.close()


def _longest_body(scenario: Any) -> int:
    """What a mote needs room for: what a small one has, unless keys of the user's own, payloads or filters are long."""
    told = [(getattr(item, "payload", b""), str(getattr(item, "what", ""))) for item in scenario.workload]
    is_long = any(len(payload) + len(text) > in_c.SHORT_BODY // 2 for payload, text in told)
    is_long |= len(json.dumps(protocol_on_a_mote(scenario.protocol))) > in_c.SHORT_BODY - _OTHERWISE_B
    return in_c.LONG_BODY if is_long or scenario.user_keys() else in_c.SHORT_BODY


def _most_subscriptions(scenario: Any) -> int:
    """Return the most subscriptions that the workload makes at a node."""
    from workbench.sim.workload import SUBSCRIBE, Subscribe, expand  # loads numpy, which a mote lacks

    items = [item for item in scenario.workload if isinstance(item, Subscribe)]
    actions = expand(items, tuple(scenario.topology.nodes), round(scenario.duration_s * 1e6), scenario.seed)
    counts = Counter(action.node for action in actions if action.kind == SUBSCRIBE)
    return max(counts.values(), default=0)


def _ask_memory(url: str) -> int | None:
    """Bytes that a mote which is in no run has allocated; None if it does not answer."""
    with suppress(LinkError), Mote(url) as one:
        return one.allocated_B()
    return None


class Boards(Motes):
    """Motes on lines; see `boards`."""

    def __init__(self, urls: Iterable[str] | Mapping[int, str], radio: Mapping[str, Any] | None = None) -> None:
        self.urls = dict(urls) if isinstance(urls, Mapping) else list(urls)
        self.radio = dict(radio or {})

    def __repr__(self) -> str:
        return f"Boards({self.urls!r})"

    def start(self, scenario: Any) -> dict[int, str]:
        """The URLs by node; LinkError unless there is one for each."""
        nodes = sorted(scenario.topology.nodes)
        if isinstance(self.urls, dict):
            missing = [node for node in nodes if node not in self.urls]
            if missing:
                raise LinkError(f"node {missing[0]} has no mote; give a URL for each of {len(nodes)} nodes")
            return {node: self.urls[node] for node in nodes}
        if len(self.urls) != len(nodes):
            raise LinkError(f"there are {len(self.urls)} motes for {len(nodes)} nodes; give one for each")
        return dict(zip(nodes, self.urls, strict=True))


@checked
def virtual(speed: float = 1.0, lockstep: bool = False, kind: Kinds = MICROPYTHON) -> VirtualMotes:
    """Virtual motes, one for each node of the scenario that runs on them.

    ``kind``: "micropython", which needs Node.js 18 or newer; "c", a process that is compiled with gcc; "cortex-m3", a
    board that QEMU emulates; or "simulated", no mote at all. One for all nodes; a list, for the nodes in ascending
    order; or by node, and then nodes that are not named are simulated.

    ``speed``: their clocks and the run's go that much faster than real time; what a mote needs to compute then takes
    longer in the run's time. ``lockstep``: their clocks are held and set by the simulator, whose trace comes out.
    """
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0.01 <= speed <= 1000:
        raise ParameterError(f"speed is {speed!r}; it must be a number from 0.01 to 1000")
    for one in [kind] if isinstance(kind, str) else kind.values() if isinstance(kind, Mapping) else kind:
        if one not in KINDS:
            known = ", ".join(KINDS)
            raise ParameterError(f"there is no kind of mote {one!r}{meant(str(one), list(KINDS))}; there are: {known}")
    return VirtualMotes(float(speed), bool(lockstep), kind)


def kinds_of(kind: Kinds, nodes: Sequence[int]) -> dict[int, str]:
    """The kind of each node, as `virtual` is told; LinkError for nodes that are not there, or too few kinds."""
    if isinstance(kind, str):
        return dict.fromkeys(nodes, kind)
    if isinstance(kind, Mapping):
        strange = sorted(set(kind) - set(nodes))
        if strange:
            raise LinkError(f"kind names node {strange[0]}, which this network does not have")
        return {node: kind.get(node, SIMULATED) for node in nodes}
    if len(kind) != len(nodes):
        raise LinkError(f"there are {len(kind)} kinds for {len(nodes)} nodes; give one for each, or name them by node")
    return dict(zip(nodes, kind, strict=True))


def missing(kind: str) -> str | None:
    """What motes of a kind lack on this machine, with its remedy, as a sentence; None if they can run."""
    if kind == SIMULATED:
        return None
    return rack.missing() if kind == MICROPYTHON else in_c.missing(kind)


@checked
def boards(urls: Iterable[str] | Mapping[int, str], radio: Mapping[str, Any] | None = None) -> Boards:
    """Boards on lines: URLs for the nodes in ascending order, or by node. See `workbench.motes.port` for URLs.

    ``radio``: settings for radios of their own; see the radio's driver in hardware/mote. They keep to the topology.
    """
    return Boards(urls, radio)


def listing() -> list[tuple[str, str]]:
    """(URL, what it is) of the serial ports of this machine, where boards may be."""
    return port.serial_ports()


answer_for(__name__)

"""Motes on which scenarios run: virtual motes on this machine, or boards connected by serial lines.

    scenario.run(on=wb.motes.virtual())                     one virtual mote for each node, in real time
    scenario.run(on=wb.motes.virtual(speed=10))             their clocks, and the run's, ten times as fast
    scenario.run(on=wb.motes.virtual(lockstep=True))        in the simulator's time: the trace is the simulator's
    scenario.run(on=wb.motes.virtual(kind="c"))             motes in C, each a process of this machine
    scenario.run(on=wb.motes.virtual(kind={3: "c", 5: "cortex-m3"}))    these two nodes; all others are simulated
    scenario.run(on=wb.motes.boards(["/dev/ttyUSB0", ...])) boards, for the topology's nodes in ascending order

A virtual mote is the MicroPython interpreter with the program of hardware/mote behind a loopback socket, or the
program of hardware/c as a process or on an emulated Cortex-M3; the host treats it like a board. The host transmits
frames between simulated nodes and motes without a radio of their own, such as virtual ones, over the topology's links.
Within a ``with`` block, virtual motes keep running from run to run; motes that were killed, or whose program has
ended, are restarted for the next run.
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
from workbench.motes.in_c import footprint as footprint
from workbench.motes.mote import Mote
from workbench.motes.processes import CortexM3, CProcess, Process
from workbench.motes.program import program_files
from workbench.motes.rack import Memory, Rack, log_crash
from workbench.motes.session import protocol_on_a_mote
from workbench.suggestion import meant

__all__ = ["KINDS", "Boards", "Motes", "VirtualMotes", "boards", "footprint", "listing", "missing", "virtual"]

MICROPYTHON, C, CORTEX_M3, SIMULATED = "micropython", in_c.C, in_c.CORTEX_M3, "simulated"
KINDS = (MICROPYTHON, C, CORTEX_M3, SIMULATED)
_OTHERWISE_B = 100  # bytes of a configuration for address, key and so on
Kinds = str | Mapping[int, str] | Sequence[str]


class Motes:
    """A source of motes. ``speed``: that of the run's clock; ``lockstep``: the simulator's time drives the motes.

    ``radio``: settings for the motes' own radios. One run at a time may take the motes, and gives them back. ``kinds``:
    the kind of each node's mote, as far as it is known before the mote is greeted.
    """

    kinds: Mapping[int, str] = {}
    speed = 1.0
    lockstep = False
    radio: Mapping[str, Any] = {}
    _holder: Any = None
    _taking = threading.Lock()

    def take(self, scenario: Any, run: Any) -> dict[int, str]:
        """Start the motes for a run; return their URLs by node. Raises LinkError if another run has them."""
        with self._taking:
            if self._holder is not None:
                raise LinkError("another run still uses these motes; call its wait() or stop() first")
            self._holder = run
        try:
            return self.start(scenario)
        except BaseException:
            self._holder = None
            raise

    def give_back(self, run: Any) -> None:
        """Give the motes back at the end of a run; ignored for a run that does not have them."""
        if self._holder is run:
            try:
                self.end()
            finally:
                self._holder = None

    def start(self, scenario: Any) -> dict[int, str]:
        """Start a mote for each node of a scenario; return their URLs by node."""
        raise NotImplementedError

    def end(self) -> None:
        """Release the motes after a run."""

    def play(self, scenario: Any, progress: Callable[[float], None] | None = None) -> Any:
        """Run a scenario on these motes, as `Scenario.run(on=...)` does. Raises ScenarioError if it cannot run."""
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
    """Virtual motes on this machine, one for each node of the scenario; see `virtual`."""

    def __init__(self, speed: float, lockstep: bool, kind: Kinds = MICROPYTHON) -> None:
        self.speed, self.lockstep, self.kind = speed, lockstep, kind
        self.rack: Rack | None = None  # of the motes that run MicroPython
        self._racked: tuple[int, ...] = ()  # the rack's nodes
        self._program: tuple[Any, ...] = ()  # the program on the rack's motes
        self._processes: dict[int, Process] = {}
        self._compiled: dict[int, Path] = {}
        self._is_kept = False

    def __repr__(self) -> str:
        return f"VirtualMotes(speed={self.speed:g}, lockstep={self.lockstep}, kind={self.kind!r})"

    def start(self, scenario: Any) -> dict[int, str]:
        """Start the motes, or reuse running ones if their number and program are what the scenario needs."""
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
        # While a mote is up, the meaning of a user's key must not change.
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
        return {node: process.line_url(self.lockstep) for node, process in self._processes.items()}

    def program_of(self, node: int) -> Path:
        """Return the program compiled for the node of a mote in C. Raises LinkError for any other node."""
        if node not in self._compiled:
            raise LinkError(f"node {node} has no mote in C; choose one with kind")
        return self._compiled[node]

    def end(self) -> None:
        """Stop the motes, unless a ``with`` block keeps them."""
        if not self._is_kept:
            self.close()

    def close(self) -> None:
        """Stop the motes."""
        if self.rack is not None:
            self.rack.close()
            self.rack = None
        while self._processes:
            self._processes.popitem()[1].kill()

    def kill(self, node: int) -> None:
        """Cut the power of a node's mote."""
        if self._is_process(node):
            self._processes[node].kill()
        else:
            self._up().kill(self._index(node))

    def restart(self, node: int) -> None:
        """Restore a mote's power; it begins with empty memory."""
        if self._is_process(node):
            self._processes[node].restart()
        else:
            self._up().restart(self._index(node))

    def memory(self) -> Memory:
        """Return the memory in use, in bytes by node, and the resident size of the rack's process (MicroPython motes).

        It is the heap for MicroPython, the variables for a process in C, and the variables and the deepest stack so far
        for a Cortex-M3. Motes in C are queried over their lines, so their value is None while a run uses them.
        """
        rss_B, heaps = self._up().memory() if self._racked or not self._processes else (0, {})
        used: dict[int, int | None] = {self._racked[index]: used_B for index, used_B in heaps.items()}
        for node, process in self._processes.items():
            used[node] = _ask_memory(process.url) if self._holder is None and process.is_running else None
        return Memory(rss_B, dict(sorted(used.items())))

    def _crashed_in_rack(self, index: int, traceback: str) -> None:
        self._crashed(self._racked[index], traceback)

    def _crashed(self, node: int, text: str) -> None:
        log_crash(node, text)
        if hasattr(self._holder, "note"):
            self._holder.note(f"node {node}: the mote's program ended: {text.strip()}")

    def _is_process(self, node: int) -> bool:
        if self.kinds.get(node) == SIMULATED:
            raise LinkError(f"node {node} is simulated, so it has no mote to kill or restart; use wb.outage")
        return node in self._processes

    def _index(self, node: int) -> int:
        if node not in self._racked:
            raise LinkError(f"node {node} has no virtual mote; nodes with one are {list(self._racked)}")
        return self._racked.index(node)

    def _up(self) -> Rack:
        if self.rack is None:
            raise LinkError("the virtual motes are not running; start a run, or use them in a with block")
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
    """Return the size in bytes of the longest message from the host: larger for user keys, long items or settings."""
    items = [(getattr(item, "payload", b""), str(getattr(item, "what", ""))) for item in scenario.workload]
    is_long = any(len(payload) + len(text) > in_c.SHORT_BODY // 2 for payload, text in items)
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
    """Return the bytes of memory that a mote without a run uses, or None if it does not answer."""
    with suppress(LinkError), Mote(url) as mote:
        return mote.allocated_B()
    return None


class Boards(Motes):
    """Motes on serial lines or sockets; see `boards`."""

    def __init__(self, urls: Iterable[str] | Mapping[int, str], radio: Mapping[str, Any] | None = None) -> None:
        self.urls = dict(urls) if isinstance(urls, Mapping) else list(urls)
        self.radio = dict(radio or {})

    def __repr__(self) -> str:
        return f"Boards({self.urls!r})"

    def start(self, scenario: Any) -> dict[int, str]:
        """Return the URLs by node. Raises LinkError unless there is one for each node of the scenario."""
        nodes = sorted(scenario.topology.nodes)
        if isinstance(self.urls, dict):
            missing = [node for node in nodes if node not in self.urls]
            if missing:
                raise LinkError(f"node {missing[0]} has no mote; give a URL for each of {len(nodes)} nodes")
            return {node: self.urls[node] for node in nodes}
        if len(self.urls) != len(nodes):
            raise LinkError(f"urls has {len(self.urls)} motes for {len(nodes)} nodes; give one for each")
        return dict(zip(nodes, self.urls, strict=True))


@checked
def virtual(speed: float = 1.0, lockstep: bool = False, kind: Kinds = MICROPYTHON) -> VirtualMotes:
    """Return virtual motes, one for each node of the scenario that runs on them.

    ``kind``: "micropython", which needs Node.js 18 or newer; "c", a process that is compiled with gcc; "cortex-m3", a
    board that QEMU emulates; or "simulated", no mote. Give one kind for all nodes, a list for the nodes in ascending
    order, or a mapping by node; nodes missing in a mapping are simulated.

    ``speed``: factor by which their clocks and the run's are faster than real time; a mote's computing then takes
    longer in the run's time. ``lockstep``: the simulator sets their clocks, and the trace equals the simulator's.
    """
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0.01 <= speed <= 1000:
        raise ParameterError(f"speed is {speed!r}; it must be a number from 0.01 to 1000")
    for name in [kind] if isinstance(kind, str) else kind.values() if isinstance(kind, Mapping) else kind:
        if name not in KINDS:
            known = ", ".join(KINDS)
            raise ParameterError(f"kind is {name!r}{meant(str(name), list(KINDS))}; it must be one of {known}")
    return VirtualMotes(float(speed), bool(lockstep), kind)


def kinds_of(kind: Kinds, nodes: Sequence[int]) -> dict[int, str]:
    """Return the kind of each node, for `virtual`'s ``kind``. Raises LinkError for unknown nodes or a wrong number."""
    if isinstance(kind, str):
        return dict.fromkeys(nodes, kind)
    if isinstance(kind, Mapping):
        unknown = sorted(set(kind) - set(nodes))
        if unknown:
            raise LinkError(f"kind names node {unknown[0]}; this network does not have it")
        return {node: kind.get(node, SIMULATED) for node in nodes}
    if len(kind) != len(nodes):
        raise LinkError(f"kind has {len(kind)} entries for {len(nodes)} nodes; give one for each, or a mapping by node")
    return dict(zip(nodes, kind, strict=True))


def missing(kind: str) -> str | None:
    """Return what a kind of motes lacks on this machine and how to install it, as a sentence, or None."""
    if kind == SIMULATED:
        return None
    return rack.missing() if kind == MICROPYTHON else in_c.missing(kind)


@checked
def boards(urls: Iterable[str] | Mapping[int, str], radio: Mapping[str, Any] | None = None) -> Boards:
    """Return boards at URLs, given for the nodes in ascending order or by node. `workbench.motes.port` lists URLs.

    ``radio``: settings for the boards' own radios, as their driver in hardware/mote defines them. Frames between boards
    are limited to the topology's links.
    """
    return Boards(urls, radio)


def listing() -> list[tuple[str, str]]:
    """Return (URL, description) of the serial ports of this machine, where boards may be connected."""
    return port.serial_ports()


answer_for(__name__)

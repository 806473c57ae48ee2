"""Motes to run a scenario on: virtual ones on this machine, or boards on their lines.

    scenario.run(on=wb.motes.virtual())                     one virtual mote for each node, in real time
    scenario.run(on=wb.motes.virtual(speed=10))             their clocks, and the run's, ten times as fast
    scenario.run(on=wb.motes.virtual(lockstep=True))        in the simulator's time: the trace is the simulator's
    scenario.run(on=wb.motes.boards(["/dev/ttyUSB0", ...])) boards, for the topology's nodes in ascending order

A virtual mote is the MicroPython interpreter running the program of hardware/mote behind a loopback socket; the host
talks to it as it would to a board. Boards without a radio of their own, virtual motes among them, hear each other
through the host, which applies the topology's links. Used in a ``with``, virtual motes stay up from run to run; those
that were killed, or whose program has ended, are started again for the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from workbench.errors import LinkError, ParameterError
from workbench.motes import port
from workbench.motes.crew import protocol_on_a_mote
from workbench.motes.program import program_files
from workbench.motes.rack import Memory, Rack, log_crash


class Motes:
    """Where motes come from. ``speed``: of the run's clock; ``lockstep``: the simulator's time drives them.

    ``radio``: settings for radios of the motes' own. A run takes motes and gives them back: one at a time.
    """

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


class VirtualMotes(Motes):
    """Motes that live on this machine, as many as the scenario has nodes; see `virtual`."""

    def __init__(self, speed: float, lockstep: bool) -> None:
        self.speed, self.lockstep = speed, lockstep
        self.rack: Rack | None = None
        self._nodes: tuple[int, ...] = ()
        self._files: tuple = ()
        self._keys: tuple = ()
        self._is_kept = False

    def start(self, scenario: Any) -> dict[int, str]:
        """Start them, or those that are not up, if the same program runs on as many already."""
        nodes = tuple(sorted(scenario.topology.nodes))
        files = program_files("virtual", protocols=(type(scenario.protocol),))
        # A key has one meaning for as long as a mote is up.
        keys = tuple(map(tuple, scenario.user_keys()))
        is_other = (len(nodes), files, keys) != (len(self._nodes), self._files, self._keys)
        if self.rack is not None and (is_other or not self.rack.is_alive):
            self.close()
        self._nodes, self._files, self._keys = nodes, files, keys
        if self.rack is None:
            self.rack = Rack(len(nodes), list(files), self.speed, on_crash=self._crashed)
        for index in range(len(nodes)):
            if not self.rack.is_running(index):
                self.rack.restart(index)
        return dict(zip(nodes, self.rack.urls, strict=True))

    def end(self) -> None:
        """Stop them, unless they are kept by a ``with``."""
        if not self._is_kept:
            self.close()

    def close(self) -> None:
        """Stop them."""
        if self.rack is not None:
            self.rack.close()
            self.rack = None

    def kill(self, node: int) -> None:
        """Take the power from the mote of a node."""
        self._up().kill(self._index(node))

    def restart(self, node: int) -> None:
        """Give it power again; it begins with empty memory."""
        self._up().restart(self._index(node))

    def memory(self) -> Memory:
        """Resident size of the process they live in, and what each mote's heap holds, by node."""
        rss_B, allocated_B = self._up().memory()
        return Memory(rss_B, {self._nodes[index]: used_B for index, used_B in allocated_B.items()})

    def _crashed(self, index: int, traceback: str) -> None:
        log_crash(index, traceback)
        if hasattr(self._holder, "note"):
            self._holder.note(f"node {self._nodes[index]}: the mote's program ended: {traceback.strip()}")

    def _index(self, node: int) -> int:
        if node not in self._nodes:
            raise LinkError(f"there is no mote for node {node}")
        return self._nodes.index(node)

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


class Boards(Motes):
    """Motes on lines; see `boards`."""

    def __init__(self, urls: Iterable[str] | Mapping[int, str], radio: Mapping[str, Any] | None = None) -> None:
        self.urls = dict(urls) if isinstance(urls, Mapping) else list(urls)
        self.radio = dict(radio or {})

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


def virtual(speed: float = 1.0, lockstep: bool = False) -> VirtualMotes:
    """Virtual motes, one for each node of the scenario that runs on them. They need node.js 18 or newer.

    ``speed``: their clocks and the run's go that much faster than real time; what a mote needs to compute then takes
    longer in the run's time. ``lockstep``: their clocks are held and set by the simulator, whose trace comes out.
    """
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0.01 <= speed <= 1000:
        raise ParameterError(f"speed is {speed!r}; it must be a number from 0.01 to 1000")
    return VirtualMotes(float(speed), bool(lockstep))


def boards(urls: Iterable[str] | Mapping[int, str], radio: Mapping[str, Any] | None = None) -> Boards:
    """Boards on lines: URLs for the nodes in ascending order, or by node. See `workbench.motes.port` for URLs.

    ``radio``: settings for radios of their own; see the radio's driver in hardware/mote. They keep to the topology.
    """
    return Boards(urls, radio)


def listing() -> list[tuple[str, str]]:
    """(URL, what it is) of the serial ports of this machine, where boards may be."""
    return port.serial_ports()


def run(scenario: Any, on: Motes, progress: Callable[[float], None] | None = None) -> Any:
    """Run a scenario on motes: what `Scenario.run(on=...)` does. ScenarioError if its protocol cannot run there."""
    if not isinstance(on, Motes):
        raise ParameterError(f"on is {on!r:.60}; it must be motes, such as wb.motes.virtual()")
    protocol_on_a_mote(scenario.protocol)  # before any mote is started
    if not on.lockstep:
        from workbench.motes.live.run import LiveRun

        return LiveRun(scenario, on, progress)
    from workbench.motes import lockstep
    from workbench.sim.run import Run

    taken_by = object()
    urls = on.take(scenario, taken_by)
    try:
        return Run(scenario, "motes in lockstep", lockstep.play(scenario, urls, progress))
    finally:
        on.give_back(taken_by)

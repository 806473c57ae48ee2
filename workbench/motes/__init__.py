"""Motes on which scenarios run: virtual motes on this machine, or boards connected by serial lines.

    scenario.run(on=wb.motes.virtual())                     one virtual mote for each node, in real time
    scenario.run(on=wb.motes.virtual(speed=10))             the same, ten times as fast as real time
    scenario.run(on=wb.motes.virtual(lockstep=True))        in simulated time: the trace equals the simulator's
    scenario.run(on=wb.motes.virtual(kind="c"))             motes in C, each a process on this machine
    scenario.run(on=wb.motes.virtual(kind={3: "c", 5: "cortex-m3"}))    motes for nodes 3 and 5; others are simulated
    scenario.run(on=wb.motes.boards(["/dev/ttyUSB0", ...])) boards, assigned to the nodes in ascending order
    scenario.run(on=wb.motes.boards("bench.json"))          boards of a bench file, recognized at any port
    links = wb.motes.boards("bench.json").measure()         the links between these boards, for wb.topology.from_links

A virtual mote runs a mote's program on this machine: the program of hardware/mote on the MicroPython interpreter, or
the program of hardware/c as a process or on an emulated Cortex-M3. The host commands it over a loopback socket, with
the messages that it sends to a board. Virtual motes have no radio of their own. The host transmits the frames of motes
without a radio, and those of simulated nodes, over the topology's links.

`compare_with_simulator` puts a run on motes beside the simulator's runs of the same scenario, as tables.

Within a ``with`` block, virtual motes keep running between runs. Motes that were killed, or whose program has ended,
are restarted for the next run.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import LinkError, ParameterError, ScenarioError
from workbench.keywords import checked, hand_out
from workbench.motes import in_c, port, rack
from workbench.motes.in_c import footprint as footprint
from workbench.motes.mote import Mote
from workbench.motes.processes import CortexM3, CProcess, Process
from workbench.motes.program import program_files
from workbench.motes.rack import Memory, Rack, log_crash
from workbench.motes.session import protocol_on_a_mote
from workbench.suggestion import meant

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from workbench.sim.radio import Radio

__all__ = ["KINDS", "Boards", "Motes", "VirtualMotes", "boards", "footprint", "listing", "missing", "virtual"]

MICROPYTHON, C, CORTEX_M3, SIMULATED = "micropython", in_c.C, in_c.CORTEX_M3, "simulated"
KINDS = (MICROPYTHON, C, CORTEX_M3, SIMULATED)
_OTHER_FIELDS_B = 100  # bytes of a configuration for address, key and so on
Kinds = str | Mapping[int, str] | Sequence[str]


class Motes:
    """The base class of motes on which scenarios run, one run at a time: `VirtualMotes` or `Boards`.

    ``speed`` is the factor by which the run's clock is faster than real time. With ``lockstep`` the simulator sets the
    motes' clocks. ``radio`` has settings for the motes' own radios. ``kinds`` is {node: kind of its mote}. It
    lacks nodes on boards, because the host learns the kind of a board when it connects to it.
    """

    kinds: Mapping[int, str] = {}
    speed = 1.0
    lockstep = False
    radio: Mapping[str, Any] = {}
    _current_run: Any = None
    _take_lock = threading.Lock()

    def take(self, scenario: Any, run: Any) -> dict[int, str]:
        """Reserve the motes for ``run``, and start those that ``scenario`` needs.

        Return {node: URL of its mote's serial line}. Raises LinkError if another run has reserved the motes.
        """
        with self._take_lock:
            if self._current_run is not None:
                raise LinkError("another run still uses these motes; call its wait() or stop() first")
            self._current_run = run
        try:
            return self.start(scenario)
        except BaseException:
            self._current_run = None
            raise

    def give_back(self, run: Any) -> None:
        """Release the motes at the end of a run. Has no effect if the run has not reserved them."""
        if self._current_run is run:
            try:
                self.end()
            finally:
                self._current_run = None

    def start(self, scenario: Any) -> dict[int, str]:
        """Start the motes that a scenario needs; return {node: URL of its mote's serial line}."""
        raise NotImplementedError

    def end(self) -> None:
        """Clean up after a run. This base class leaves the motes running; a subclass may stop them."""

    def play(self, scenario: Any, progress: Callable[[float], None] | None = None) -> Any:
        """Run a scenario on these motes; return a `LiveRun`, which is still in progress.

        With ``lockstep``, return the finished `Run` instead. ``progress`` is called with the elapsed share of the run's
        duration, 0 to 1. Raises ScenarioError if the scenario's protocol cannot run on motes.
        """
        protocol_on_a_mote(scenario.protocol)  # before any mote is started
        _refuse_reinforcements(scenario)
        if not self.lockstep:
            from workbench.motes.live.run import LiveRun

            return LiveRun(scenario, self, progress)
        from workbench.motes import lockstep
        from workbench.sim.run import Run

        lockstep_run = object()
        urls = self.take(scenario, lockstep_run)
        try:
            run = Run(scenario, "motes in lockstep", lockstep.play(scenario, urls, progress))
            run.kinds = dict(self.kinds)
            return run
        finally:
            self.give_back(lockstep_run)

    def measure(
        self,
        topology: nx.DiGraph | None = None,
        duration_s: float = 60.0,
        interval_s: float | None = None,
        size_B: int = 32,
        radio: Radio | None = None,
        seed: int = 1,
        progress: Callable[[float], None] | None = None,
    ) -> pd.DataFrame:
        """Measure the links between these motes by probes; return a table with a row for each direction of each link.

        ``wb.topology.from_links`` makes a network from the table. Each mote broadcasts probes, paced by Trickle (RFC
        6206), and counts the probes that it receives from its neighbors.

        topology    the network whose links are measured. Virtual motes require it; the host simulates its links. None:
                    all links between the boards, which must have radios
        duration_s  1 to 86400. An interrupt (Ctrl-C, or Stop in a notebook) ends the measurement early, and the table
                    has the probes until then
        interval_s  Trickle's longest interval: the time between two probes of a mote. None: 0.5 s, or longer if there
                    are more than 30 motes, so that a serial line of 115,200 baud carries all reports
        size_B      size of a probe, 9 to 200 bytes. Long frames are lost more often, so choose the size of your frames
        radio       the simulated channel of motes without a radio; None: `Radio` with its defaults
        seed        seed of the probes' random times, and of the simulated channel
        progress    a function that is called with the elapsed share of the duration, 0 to 1

        Columns of the table

        transmitter, receiver           nodes
        pdr                             packet delivery ratio of the link: heard / sent
        pdr_low, pdr_high               95 % interval of pdr (Wilson). Losses in bursts make it too narrow
        heard, sent                     numbers of received and of sent probes, counted only while both motes are known
                                        to work, see `measuring`
        rssi_dBm, _min, _max            mean, smallest and largest RSSI of the probes heard; NaN if it is not measured

        ``table.attrs["notes"]`` lists problems; each is a warning, too. ``table.attrs["is_stopped"]`` is True after an
        interrupt.

        Raises LinkError if a mote is missing or cannot measure links, ParameterError for invalid arguments.
        """
        from workbench.motes.measuring import measure

        if topology is not None and not hasattr(topology, "edges"):
            raise ParameterError(f"`topology` is {topology!r:.60}; it must be a network, such as wb.topology.line(3)")
        network = self._network_to_measure(topology)
        return measure(self, network, duration_s, interval_s, size_B, radio, seed, progress)

    def _network_to_measure(self, topology: nx.DiGraph | None) -> nx.DiGraph | list[int]:
        """Return the network whose links are measured, or a list of nodes to measure the links between all of them.

        This base class returns ``topology``, and raises ParameterError if it is None.
        """
        if topology is None:
            raise ParameterError("`topology` is missing; pass the network whose simulated links these motes measure")
        return topology


class VirtualMotes(Motes):
    """Virtual motes on this machine, one for each node of the scenario; see `virtual`."""

    def __init__(self, speed: float, lockstep: bool, kind: Kinds = MICROPYTHON) -> None:
        self.speed, self.lockstep, self.kind = speed, lockstep, kind
        self.rack: Rack | None = None  # of the motes that run MicroPython
        self._rack_nodes: tuple[int, ...] = ()  # the rack's nodes
        self._program: tuple[Any, ...] = ()  # the program on the rack's motes
        self._processes: dict[int, Process] = {}
        self._compiled: dict[int, Path] = {}
        self._is_in_with_block = False

    def __repr__(self) -> str:
        return f"VirtualMotes(speed={self.speed:g}, lockstep={self.lockstep}, kind={self.kind!r})"

    def start(self, scenario: Any) -> dict[int, str]:
        """Start the scenario's motes; return {node: URL of its mote's serial line}.

        Motes that still run after an earlier run are reused if they have the same program.
        """
        self.kinds = kinds_of(self.kind, sorted(scenario.topology.nodes))
        try:
            urls = self._start_rack(scenario, self._nodes_of_kinds(MICROPYTHON))
            urls |= self._start_processes(scenario)
        except BaseException:
            self.close()
            raise
        return dict(sorted(urls.items()))

    def _network_to_measure(self, topology: nx.DiGraph | None) -> nx.DiGraph | list[int]:
        network = super()._network_to_measure(topology)
        for node, kind in kinds_of(self.kind, sorted(network)).items():
            if kind in (C, CORTEX_M3):
                raise LinkError(
                    f"node {node}: a mote of the kind {kind!r} cannot measure links, as the program in C sends no "
                    'probes; use the kind "micropython" or "simulated"'
                )
        return network

    def _nodes_of_kinds(self, *kinds: str) -> tuple[int, ...]:
        return tuple(node for node, kind in self.kinds.items() if kind in kinds)

    def _start_rack(self, scenario: Any, nodes: tuple[int, ...]) -> dict[int, str]:
        files = program_files("virtual", protocols=(type(scenario.protocol),)) if nodes else ()
        # While a mote is up, the meaning of a user's key must not change.
        program = (len(nodes), files, tuple(map(tuple, scenario.user_keys())))
        if self.rack is not None and (program != self._program or not self.rack.is_alive):
            self.rack.close()
            self.rack = None
        self._rack_nodes, self._program = nodes, program
        if not nodes:
            return {}
        if self.rack is None:
            self.rack = Rack(len(nodes), list(files), self.speed, on_crash=self._report_rack_crash)
        for index in range(len(nodes)):
            if not self.rack.is_running(index):
                self.rack.restart(index)
        return dict(zip(nodes, self.rack.urls, strict=True))

    def _start_processes(self, scenario: Any) -> dict[int, str]:
        longest_body = _find_longest_body(scenario)
        nodes = self._nodes_of_kinds(C, CORTEX_M3)
        limits = {"nodes": len(self.kinds), "subscriptions": _count_most_subscriptions(scenario)}
        program_paths = {
            node: in_c.program(self.kinds[node], scenario.protocol, longest_body, **limits) for node in nodes
        }
        for node in [node for node in self._processes if self._compiled[node] != program_paths.get(node)]:
            self._processes.pop(node).kill()
        self._compiled = program_paths
        for node, program in program_paths.items():
            if node not in self._processes:
                process_class = CortexM3 if self.kinds[node] == CORTEX_M3 else CProcess
                self._processes[node] = process_class(program, self.speed, partial(self._report_crash, node))
            elif not self._processes[node].is_running:
                self._processes[node].restart()
        return {node: process.line_url(self.lockstep) for node, process in self._processes.items()}

    def program_of(self, node: int) -> Path:
        """Return the path of the compiled C program that a node's mote runs.

        Raises LinkError if the mote is not in C.
        """
        if node not in self._compiled:
            raise LinkError(f"node {node} has no mote in C; give it the kind 'c' or 'cortex-m3'")
        return self._compiled[node]

    def end(self) -> None:
        """Stop the motes after a run, except within a ``with`` block."""
        if not self._is_in_with_block:
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
            self._require_rack().kill(self._rack_index(node))

    def restart(self, node: int) -> None:
        """Restore the power of a node's mote; it starts with empty memory."""
        if self._is_process(node):
            self._processes[node].restart()
        else:
            self._require_rack().restart(self._rack_index(node))

    def memory(self) -> Memory:
        """Return the bytes of memory that each mote uses, and the resident size of the MicroPython motes' process.

        The memory in use is the heap of a MicroPython mote, the variables of a C process, and the variables and deepest
        stack so far of a Cortex-M3. For motes in C it is None during a run, because the run occupies the line on which
        the host would request it.
        """
        rss_B, heaps = self._require_rack().memory() if self._rack_nodes or not self._processes else (0, {})
        allocated_B: dict[int, int | None] = {self._rack_nodes[index]: used_B for index, used_B in heaps.items()}
        for node, process in self._processes.items():
            allocated_B[node] = (
                _request_memory(process.url) if self._current_run is None and process.is_running else None
            )
        return Memory(rss_B, dict(sorted(allocated_B.items())))

    def _report_rack_crash(self, index: int, traceback: str) -> None:
        self._report_crash(self._rack_nodes[index], traceback)

    def _report_crash(self, node: int, text: str) -> None:
        log_crash(node, text)
        if hasattr(self._current_run, "note"):
            self._current_run.note(f"node {node}: the mote's program ended: {text.strip()}")

    def _is_process(self, node: int) -> bool:
        if self.kinds.get(node) == SIMULATED:
            raise LinkError(f"node {node} is simulated, so it has no mote to kill or restart; use wb.outage")
        return node in self._processes

    def _rack_index(self, node: int) -> int:
        if node not in self._rack_nodes:
            raise LinkError(f"node {node} has no virtual mote; nodes with one are {list(self._rack_nodes)}")
        return self._rack_nodes.index(node)

    def _require_rack(self) -> Rack:
        if self.rack is None:
            raise LinkError("the virtual motes are not running; start a run, or use them in a with block")
        return self.rack

    def __enter__(self) -> VirtualMotes:
        self._is_in_with_block = True
        return self

    def __exit__(self, *_: object) -> None:
        self._is_in_with_block = False
        if hasattr(self._current_run, "stop"):
            self._current_run.stop()
        self.close()


def _find_longest_body(scenario: Any) -> int:
    """Return the largest size, in bytes, of a message from the host to a mote that runs the C program.

    The result is 2048 (LONG_BODY) if ``scenario`` has attribute keys that the user registered, long workload items or
    long protocol settings, otherwise 1024 (SHORT_BODY).
    """
    items = [(getattr(item, "payload", b""), str(getattr(item, "what", ""))) for item in scenario.workload]
    is_long = any(len(payload) + len(text) > in_c.SHORT_BODY // 2 for payload, text in items)
    is_long |= len(json.dumps(protocol_on_a_mote(scenario.protocol))) > in_c.SHORT_BODY - _OTHER_FIELDS_B
    return in_c.LONG_BODY if is_long or scenario.user_keys() else in_c.SHORT_BODY


def _refuse_reinforcements(scenario: Any) -> None:
    from workbench.sim.workload import Reinforce  # loads numpy, which a mote lacks

    for index, item in enumerate(scenario.workload):
        if isinstance(item, Reinforce):
            raise ScenarioError(
                f"workload item {index} is a reinforcement, for which motes have no command; remove it, or run the "
                "scenario in simulation"
            )


def _count_most_subscriptions(scenario: Any) -> int:
    """Return the largest number of subscriptions that the workload makes at one node."""
    from workbench.sim.actions import SUBSCRIBE  # loads numpy, which a mote lacks
    from workbench.sim.workload import Subscribe, expand

    items = [item for item in scenario.workload if isinstance(item, Subscribe)]
    actions = expand(items, tuple(scenario.topology.nodes), round(scenario.duration_s * 1e6), scenario.seed)
    counts = Counter(action.node for action in actions if action.kind == SUBSCRIBE)
    return max(counts.values(), default=0)


def _request_memory(url: str) -> int | None:
    """Return the bytes of memory that a mote uses, or None if it does not answer. No run may be using the mote."""
    with suppress(LinkError), Mote(url) as mote:
        return mote.allocated_B()
    return None


class Boards(Motes):
    """Boards, each connected by a serial line or a socket; see `boards`."""

    def __init__(
        self, urls: str | Path | Iterable[str] | Mapping[int, str], radio: Mapping[str, Any] | None = None
    ) -> None:
        self.bench = Path(urls) if isinstance(urls, (str, Path)) else None
        self.urls: dict[int, str] | list[str] = []
        if not isinstance(urls, (str, Path)):
            self.urls = dict(urls) if isinstance(urls, Mapping) else list(urls)
        self.radio = dict(radio or {})
        self.kinds = {}

    def __repr__(self) -> str:
        return f"Boards({self.urls!r})" if self.bench is None else f"Boards({str(self.bench)!r})"

    def start(self, scenario: Any) -> dict[int, str]:
        """Return {node: URL of its board}. Raises LinkError if the URLs do not cover the scenario's nodes.

        If the URLs were given as a list, the list must have as many URLs as the scenario has nodes. A mapping
        {node: URL} must contain each node. Nodes whose URL is "simulated" are left out of the result. The boards of a
        bench file must be connected.
        """
        nodes = sorted(scenario.topology.nodes)
        if self.bench is not None:
            from workbench.motes.bench.ports import find_ports

            return find_ports(self.bench, nodes)
        if isinstance(self.urls, dict):
            nodes_without_url = [node for node in nodes if node not in self.urls]
            if nodes_without_url:
                raise LinkError(
                    f"`urls` has no entry for node {nodes_without_url[0]}; give each of the {len(nodes)} nodes a "
                    'URL, or "simulated"'
                )
            self.kinds = {node: SIMULATED for node in nodes if self.urls[node] == SIMULATED}
            return {node: self.urls[node] for node in nodes if node not in self.kinds}
        if len(self.urls) != len(nodes):
            raise LinkError(f"`urls` has {len(self.urls)} entries for {len(nodes)} nodes; give one URL for each node")
        return dict(zip(nodes, self.urls, strict=True))

    def _network_to_measure(self, topology: nx.DiGraph | None) -> nx.DiGraph | list[int]:
        if topology is not None:
            return topology
        if self.bench is not None:
            from workbench.motes.bench.bench_file import read_bench

            return [entry["node"] for entry in read_bench(self.bench).boards]
        if not isinstance(self.urls, dict):
            return list(range(len(self.urls)))
        for node, url in self.urls.items():
            if url == SIMULATED:
                raise LinkError(
                    f"node {node} is simulated, so its links cannot be measured; leave it out, or pass `topology`"
                )
        return list(self.urls)


@checked
def virtual(speed: float = 1.0, lockstep: bool = False, kind: Kinds = MICROPYTHON) -> VirtualMotes:
    """Return virtual motes, one for each node of the scenario that runs on them.

    ``kind`` is "micropython" (needs Node.js 18 or newer), "c" (a process, compiled with gcc), "cortex-m3" (a board that
    QEMU emulates) or "simulated" (no mote). Give one kind for all nodes, a list of kinds for the nodes in ascending
    order, or a mapping {node: kind}. Nodes missing in the mapping are simulated.

    ``speed`` is the factor by which the clocks of the motes and of the run are faster than real time. A mote does not
    compute faster, so a computation takes more of the run's time. With ``lockstep`` the simulator sets the motes'
    clocks, and the trace equals the simulator's.
    """
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0.01 <= speed <= 1000:
        raise ParameterError(f"`speed` is {speed!r}; it must be a number from 0.01 to 1000")
    for name in [kind] if isinstance(kind, str) else kind.values() if isinstance(kind, Mapping) else kind:
        if name not in KINDS:
            known_kinds = ", ".join(KINDS)
            raise ParameterError(f"`kind` is {name!r}{meant(str(name), list(KINDS))}; it must be one of {known_kinds}")
    return VirtualMotes(float(speed), bool(lockstep), kind)


def kinds_of(kind: Kinds, nodes: Sequence[int]) -> dict[int, str]:
    """Return {node: kind} for the ``kind`` given to `virtual`.

    Raises LinkError if a mapping names an unknown node, or a list does not have one kind for each node.
    """
    if isinstance(kind, str):
        return dict.fromkeys(nodes, kind)
    if isinstance(kind, Mapping):
        unknown_nodes = sorted(set(kind) - set(nodes))
        if unknown_nodes:
            raise LinkError(
                f"`kind` has an entry for node {unknown_nodes[0]}, which is not in this network; remove the entry"
            )
        return {node: kind.get(node, SIMULATED) for node in nodes}
    if len(kind) != len(nodes):
        raise LinkError(f"`kind` has {len(kind)} entries for {len(nodes)} nodes; give one for each, or {{node: kind}}")
    return dict(zip(nodes, kind, strict=True))


def missing(kind: str) -> str | None:
    """Return a sentence on what this machine lacks for motes of ``kind`` and how to install it, or None."""
    if kind == SIMULATED:
        return None
    return rack.missing() if kind == MICROPYTHON else in_c.missing(kind)


@checked
def boards(urls: str | Path | Iterable[str] | Mapping[int, str], radio: Mapping[str, Any] | None = None) -> Boards:
    """Return boards on which a scenario can run.

    ``urls`` is the path of a bench file, which `workbench motes name` writes; or a list of URLs for the nodes in
    ascending order, or a mapping {node: URL}. `workbench.motes.port` lists the forms of URLs. In a mapping, "simulated"
    in place of a URL lets the host simulate the node, and its links to the boards. At the start of each run, the boards
    of a bench file are searched at all serial ports.

    ``radio`` has settings for the boards' own radios, as their driver in hardware/mote defines them. A board accepts
    frames only over the topology's links.
    """
    return Boards(urls, radio)


def listing() -> list[tuple[str, str]]:
    """Return (URL, description) of each serial port of this machine, to which a board may be connected."""
    return port.serial_ports()


# Loaded at its first use, with pandas and the simulator.
__getattr__ = hand_out(__name__, {"compare_with_simulator": "beside"})

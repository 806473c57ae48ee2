"""One run on the reference engine: kernel, air and application, put together."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from workbench import draws
from workbench.protocols.contract import Node
from workbench.sim import workload
from workbench.sim.application import Application, Outages, plan
from workbench.sim.channel import Air
from workbench.sim.delays import node_keys
from workbench.sim.kernel import Kernel
from workbench.sim.trace import MetricsRecorder, Recorder, kept_events


def play(
    scenario: Any,
    recorder: Recorder,
    progress: Callable[[float], Any] | None = None,
    nodes: Sequence[Node] | None = None,
) -> Sequence[Node]:
    """Play a scenario to its end; returns the nodes as they are then, in ascending order of their addresses.

    ``nodes``, in that order, play in place of the protocol's own: those that live elsewhere.
    """
    kernel = begin(scenario, recorder, nodes)
    kernel.play(duration_us(scenario), progress)
    return kernel.nodes


def begin(scenario: Any, recorder: Recorder, nodes: Sequence[Node] | None = None) -> Kernel:
    """The kernel of a run at time 0: with its air and its application, the workload planned and the nodes started."""
    kernel = Kernel(make_nodes(scenario) if nodes is None else nodes, recorder)
    Application(scenario, kernel, Outages(kernel, Air(scenario, kernel)))
    plan(scenario, kernel, duration_us(scenario))
    kernel.start()
    return kernel


def duration_us(scenario: Any) -> int:
    """How long a scenario is played, in the kernel's time."""
    return round(scenario.duration_s * 1_000_000)


def make_nodes(scenario: Any) -> list[Node]:
    """The protocol's own nodes, in ascending order of their addresses, each with a random stream of its own."""
    addresses = tuple(sorted(scenario.topology.nodes))
    keys = node_keys(draws.make_key(scenario.seed, draws.PROTOCOL), addresses)
    return [
        scenario.protocol.make_node(address, draws.Stream(key)) for address, key in zip(addresses, keys, strict=True)
    ]


def run(scenario: Any, record: str, progress: Callable[[float], Any] | None = None) -> Recorder:
    """Run a scenario on the reference engine; ``record`` is "trace" or "metrics". Returns what was recorded."""
    recorder = MetricsRecorder(_sinks(scenario), kept_events(scenario.protocol)) if record == "metrics" else Recorder()
    with without_collector():
        nodes = play(scenario, recorder, progress)
    if isinstance(recorder, MetricsRecorder):
        for node in nodes:
            recorder.count_drops(node.drops)
    return recorder


@contextmanager
def without_collector() -> Iterator[None]:
    """Play a run without Python's collector of cycles.

    Nothing here makes reference cycles by the row, and the collector would walk millions of rows again and again.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _sinks(scenario: Any) -> frozenset[int]:
    """The nodes that subscribe."""
    return frozenset(
        node
        for item in scenario.workload
        if isinstance(item, workload.Subscribe)
        for node in (scenario.topology.nodes if isinstance(item.at, str) else item.at)
    )

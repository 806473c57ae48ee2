"""Functions that play a scenario on the reference engine, which combines kernel, channel and application."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from workbench import draws
from workbench.protocols.contract import Node
from workbench.sim import workload
from workbench.sim.application import Application, Outages, plan
from workbench.sim.channel import Channel
from workbench.sim.delays import node_keys
from workbench.sim.kernel import Kernel
from workbench.sim.trace import MetricsRecorder, Recorder, metric_events


def play(
    scenario: Any,
    recorder: Recorder,
    progress: Callable[[float], Any] | None = None,
    nodes: Sequence[Node] | None = None,
    make_again: Callable[[int, int], Node] | None = None,
) -> Sequence[Node]:
    """Play a scenario to its end; return the nodes in their final state, in ascending order of their addresses.

    ``nodes``: replacements for the protocol's own nodes, in the same order, such as proxies for nodes that run
    elsewhere. ``make_again(index, boot)``: returns a new node without memory for a node that crashed; ``boot`` is the
    number of the node's earlier starts. ``progress`` is called regularly with the fraction of the run that is done, 0
    to 1.
    """
    kernel = begin(scenario, recorder, nodes, make_again)
    kernel.play(duration_us(scenario), progress)
    ended_us = duration_us(scenario) if recorder.ended_us is None else recorder.ended_us
    recorder.radio_states_us = kernel.channel.radio_states_us(ended_us)
    return kernel.nodes


def begin(
    scenario: Any,
    recorder: Recorder,
    nodes: Sequence[Node] | None = None,
    make_again: Callable[[int, int], Node] | None = None,
) -> Kernel:
    """Return the kernel of a run at time 0, with its channel and application.

    The workload is scheduled and the nodes are started. ``nodes`` and ``make_again``: see `play`.
    """
    kernel = Kernel(make_nodes(scenario) if nodes is None else nodes, recorder)
    kernel.make_node = partial(make_node, scenario) if make_again is None else make_again
    outages = Outages(kernel, Channel(scenario, kernel))
    Application(scenario, kernel, outages)
    plan(scenario, kernel, duration_us(scenario))
    kernel.start(outages.absences(scenario))
    return kernel


def duration_us(scenario: Any) -> int:
    """Return the duration of a scenario in µs."""
    return round(scenario.duration_s * 1_000_000)


def make_nodes(scenario: Any) -> list[Node]:
    """Return the protocol's own nodes, in ascending order of their addresses, each with its own random stream."""
    addresses = tuple(sorted(scenario.topology.nodes))
    keys = node_keys(draws.make_key(scenario.seed, draws.PROTOCOL), addresses)
    return [
        scenario.protocol.make_node(address, draws.Stream(key)) for address, key in zip(addresses, keys, strict=True)
    ]


def make_node(scenario: Any, i: int, boot: int) -> Node:
    """Create a node of the protocol, with the index ``i``, for its start number ``boot`` (0 for the first start).

    The node's random stream is different after each start.
    """
    address = sorted(scenario.topology.nodes)[i]
    return scenario.protocol.make_node(address, draws.Stream(boot_key(scenario.seed, address, boot)))


def boot_key(seed: int, address: int, boot: int) -> int:
    """Return the key that determines a node's random draws after ``boot`` earlier starts in the run."""
    key = draws.make_key(seed, draws.PROTOCOL, address)
    return draws.make_key(key, boot) if boot else key


def run(scenario: Any, record: str, progress: Callable[[float], Any] | None = None) -> Recorder:
    """Run a scenario on the reference engine; return the recorder, which stores the run's rows.

    ``record``: "trace" to store all rows, or "metrics" to store only rows that metrics read and to count events.
    ``progress`` is called regularly with the fraction of the run that is done, 0 to 1.
    """
    recorder = (
        MetricsRecorder(_sinks(scenario), metric_events(scenario.protocol)) if record == "metrics" else Recorder()
    )
    with without_collector():
        nodes = play(scenario, recorder, progress)
    if isinstance(recorder, MetricsRecorder):
        for node in nodes:
            recorder.count_drops(node.drops)
    return recorder


@contextmanager
def without_collector() -> Iterator[None]:
    """Disable Python's collector of reference cycles during a ``with`` block.

    A run creates no reference cycles for its rows, and the collector would traverse millions of rows repeatedly.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _sinks(scenario: Any) -> frozenset[int]:
    """Return the addresses of the nodes at which the workload subscribes."""
    return frozenset(
        node
        for item in scenario.workload
        if isinstance(item, workload.Subscribe)
        for node in (scenario.topology.nodes if isinstance(item.at, str) else item.at)
    )

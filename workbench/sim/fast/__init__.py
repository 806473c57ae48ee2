"""The fast engine: the reference engine's runs, row by row, at the speed of machine code.

A protocol with a twin is implemented twice on purpose. Its node in `workbench/protocols` is the definition, written to
be read and to run on a mote. Its *twin* is the same state machine over flat arrays, compiled with numba. Both engines
produce the same trace: tests compare them over random scenarios.

Theory of operation
    ``twin.py``       the interface for twins
    ``engine.py``     one run: creates the arrays, calls the loop, and enlarges arrays when the loop requests it
    ``prepare.py``    the workload, parsed once: actions, contents, subscriptions as arrays; texts as numbers
    ``network.py``    the topology as arrays, from a graph or without one
    ``layout.py``     `Core`: the arrays that all protocols share, the fields of their records, and the codes
    ``loop.py``       the main loop: actions, frames, wake-ups in the order of (time, counter)
    ``agenda.py``     the future events: a ring of microseconds, and a heap for distant ones
    ``channel.py``    the radio: sending, losses, collisions, csma, acknowledgements, outages
    ``beacons.py``    link qualities that nodes learn from beacons
    ``record.py``     rows of the trace, or counters;  ``outcome.py`` converts them to Arrow columns and tallies
    ``draws.py``      random draws
    ``compiled.py``   functions of the loop;  ``private_numba.py`` a faster compiler for them
    ``code_cache.py`` the machine code on disk;  ``warming.py`` compiles a twin in a background process
    The engine imports numba. This module does not, so importing it is fast.

How a twin is written
    A protocol's class names the module of its twin (``fast = "coin_flooding.fast"``) and estimates the cost of a run
    (``receptions_on_an_arc``). The module may belong to any package. Flooding's twin, of 100 lines, is the template. A
    twin imports ``twin`` from this package, and no other module of it. It has functions that numba compiles into the
    loop (``@twin.compiled``, or ``@twin.hot`` for a short function that runs at each reception). Functions marked *
    have a default in `twin.py`. ``core`` is the run's `Core` (``layout.py``), ``state`` the memory of the protocol's
    nodes, ``i`` the index of a node, and ``now`` the time in µs::

        start(core, state, i, now) *                                     start the node of index i
        publish(core, state, i, content, number, now)                    content: a row of core.contents
        subscribe(core, state, i, index, now) *, unsubscribe(...) *      index: of a row of core.subscriptions
        reinforce(core, state, i, index, now) *                          index: of a reinforcement
        receive(core, state, i, sender, message, header, broadcast, now)   a frame from the node of index sender;
                                                                         core.messages[message].name: its kind
        wake(core, state, i, now) *                                      core.next_wake[i] is due
        sent(core, state, i, receiver, message, header, ok, now) *       the outcome of node i's unicast (`Node.sent`);
                                                                         receiver: an index, or UNREACHABLE
        link_quality(core, state, i, neighbor, inbound, outbound, now) * delivery ratios of a link, `Node.link_quality`;
                                                                         needed if the node has it
        has_room(core, state) *                                          return whether the pools have room for an event

    and, in Python,

        Message               names of its messages: `twin.Messages`
        Event *, Reason *     its own events and reasons: `twin.Events`, `twin.Reasons`
        PARTS *               further modules of the twin, in which the engine looks up these names too
        WAKES *               whether the protocol has timers
        COUNTS_HOLDERS *      True (the default) if the argument ``is_first`` of its calls of `report_held` is valid, so
                              that the loop can count holders; False if only sinks hold publications
        FIELDS, State         its state, as a table of fields and as a named tuple (see `twin.py`)
        make_state(setup, messages) *     the state: ``twin.make(State, FIELDS, setup, messages, sizes, ttl=...)``
        with_more_room(state) *           a state with larger pools, after has_room returned false. The loop calls
                              has_room before each event and at the end, so a twin can raise an error there if it
                              cannot continue
        rows_of_node(state, i) *          the rows of a node in arrays without the axis "nodes"; the engine sets them to
                              their initial values when the node loses its memory
        erase(setup, state, i, first_number) *   erase what a node stores elsewhere, such as in a hash table
        size_B(protocol, attributes)      bytes of a publication's frame; WorkbenchError if it cannot be encoded
        longest_frame_B(setup) *          bytes of its longest frame; the default is for publications
        needs(setup)          three `Needs`, each the largest numbers of trace rows, frames and messages that a call
                              adds: (1) reception of a broadcast, or link_quality; (2) reception of a unicast together
                              with ``sent``; (3) any other call
        text(setup, state, number) *      a text that nodes created during the run, numbered 0, 1, ...; its code in the
                              column "detail" is ``len(setup.work.texts) + number``

    If an event can exceed these limits because of data that nodes store, the twin adds the excess to
    core.numbers[MORE].

    Nodes are referred to by their index in ascending order of addresses; traces contain ``core.addresses[i]``.
    Functions allocate nothing. Before each event the loop ensures that the arrays have room for the declared ``needs``,
    and returns to Python if they do not. The order of ``report_...`` calls is the order of the node's events, and
    the order of ``send`` calls is the order of its frames. They are independent: a function may send between two
    events. The loop writes the rows of the radio and of the application (published, subscribed, ...) and numbers
    readings and subscriptions. A wake() that leaves next_wake unchanged, or in the past, is a bug of the twin:
    RuntimeError.

Code shared with the node
    Constants are imported from the node's modules. A rule on plain numbers (``rules.py``) is written once: after
    ``twin.compiled_rules(rules)``, functions of the loop can call the functions of that module.

Functions for twins
    channel    make_message(core, name, origin, sequence, content): a message of a publication's size;
               take_message(..., size_B, airtime_us): of any other size, such as an acknowledgement; its airtime is
               ``setup.radio.airtime_us(size_B)``, computed in make_state;
               hold_message, let_go, send(core, now, i, receiver, message, header);
               receiver is an index, BROADCAST or UNREACHABLE
    record     report, report_originated, report_held, report_forwarded, report_delivered, drop; a row without a message
               in transit is added with add_row, ``if core.is_recorded[event]``, so that metrics can read it
    delivery   deliver, hold, one_way_match
    draws      stream_uniform, stream_below: the node's own stream
    A message travels unchanged; a frame adds its sender and one ``header`` number (such as a TTL). Frames in transit
    hold their message; a protocol that stores one must hold it too. The row of a message without holders is reused.

The cache on disk
    Machine code takes 5 to 20 seconds to compile, so numba stores it for later processes. The key is a digest of all
    sources of a loop: the engine's modules, the twin's, each imported module with a function for numba,
    all imported modules of the twin's own package if that is not the workbench, and the numbers that these import from
    elsewhere. `is_warm` checks for the code, `warm` compiles it in a background process, and `workbench warm` does so
    for all protocols. If several processes need a twin, one compiles it and the others wait.

Limits
    Scenarios without a twin (the protocol's class names none, or a filter is the user's own) run on the reference
    engine; `Run.engine_reason` has the reason.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from workbench.errors import WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sim import workload
from workbench.sim.changes import arcs as changed_arcs
from workbench.sim.changes.items import LINK_ITEMS
from workbench.sim.fast import code_cache, warming
from workbench.sim.radio import Radio

# Loading numba and the machine code takes about a second; the reference engine plays as many receptions of a flood in
# that time.
WORTH_LOADING = 500_000
_played: Counter[str] = Counter()  # twin -> receptions that the reference engine has played in this process


class NoFastTwinError(WorkbenchError):
    """An error for a run that the fast engine cannot play; the message gives the reason."""


def twin_of(protocol: Protocol) -> str:
    """Return the name of the module with a protocol's twin, its compiled version.

    Raises NoFastTwinError if the protocol has no twin.
    """
    cls = type(protocol)
    # A subclass may have other nodes, so it must name its twin itself: an inherited twin plays the parent's nodes.
    twin = protocol.fast if "fast" in vars(cls) else ""
    if not twin:
        reason = f": {protocol.why_not_fast}" if protocol.why_not_fast else ""
        raise NoFastTwinError(f"{cls.__name__} has no version for the fast engine{reason}")
    return twin


def load(protocol: Protocol) -> None:
    """Import a protocol's twin (its compiled version), so that later runs with ``engine="auto"`` use the twin.

    Raises NoFastTwinError if the protocol has no twin.
    """
    _import_twin(twin_of(protocol))


def is_warm(protocol: Protocol) -> bool:
    """Return whether the machine code of a protocol's twin (its compiled version) is loaded or on disk.

    The check takes a millisecond and does not import numba. Raises NoFastTwinError if the protocol has no twin.
    """
    return code_cache.is_cached(twin_of(protocol))


def warm(protocol: Protocol) -> warming.Warming:
    """Compile a protocol's twin in a background process, unless its machine code is on disk; return a handle at once.

    A twin is the protocol's version for the fast engine. The handle has `is_done` and `error`. The background process
    has a low priority, and ends when this process ends. Raises NoFastTwinError if the protocol has no twin.
    """
    return warming.start(twin_of(protocol), type(protocol))


def is_worth_it(scenario: Any) -> bool:
    """Return whether a run should use the fast engine: the protocol's machine code is loaded, or loading it saves time.

    Loading saves time if this run and the protocol's earlier runs in this process have enough receptions in total. So a
    long sweep of short runs changes to the fast engine after some runs.
    """
    twin = twin_of(scenario.protocol)
    if twin in sys.modules:
        return True
    readings, subscriptions = 0.0, 0
    for item in scenario.workload:
        if isinstance(item, workload.Publish):
            readings += item.most_readings(len(scenario.topology), round(scenario.duration_s * 1e6))
        elif isinstance(item, workload.Subscribe):
            subscriptions += _count_nodes(item, scenario)
    receptions_per_arc = scenario.protocol.receptions_on_an_arc(readings, subscriptions, scenario.duration_s)
    _played[twin] += int(receptions_per_arc * scenario.topology.number_of_edges())
    return _played[twin] >= WORTH_LOADING


def _count_nodes(item: Any, scenario: Any) -> int:
    return len(scenario.topology) if isinstance(item.at, str) else len(item.at)


def run(scenario: Any, record: str, progress: Callable[[float], Any] | None = None) -> Any:
    """Run a scenario on the fast engine; ``record`` is "trace" (all events) or "metrics" (only the metrics).

    ``progress`` is called regularly with the fraction of the run that is done, 0 to 1. Raises NoFastTwinError if the
    engine cannot play the scenario.
    """
    module = twin_of(scenario.protocol)
    with code_cache.loading():
        from workbench.sim.fast import network

    changes = changed_arcs.link_changes(scenario)
    arcs = network.from_graph(scenario.topology) if changes is None else network.of_changes(scenario.topology, changes)
    settings = scenario.radio, scenario.duration_s, scenario.seed, record, progress
    position = partial(changed_arcs.position_at, scenario) if changed_arcs.tracks(scenario) else None
    return _play(module, arcs, scenario.protocol, scenario.workload, *settings, changes, position)


def play(
    network: Any,
    protocol: Protocol,
    items: Sequence[workload.Item],
    radio: Radio | None = None,
    duration_s: float = 60.0,
    seed: int = 1,
    record: str = "metrics",
    progress: Callable[[float], Any] | None = None,
) -> Any:
    """Play a workload on the fast engine, in a network too large for a Scenario's graph; return an `Outcome`.

    ``network``: a `network.Network`. ``items``: the workload. ``record``: "metrics", or "trace" for all rows.
    ``progress`` is called regularly with the fraction of the run that is done. Raises NoFastTwinError if the protocol
    has no fast twin, or if an item changes links, which is possible only in a Scenario.
    """
    for item in items:
        if isinstance(item, LINK_ITEMS):
            raise NoFastTwinError(
                f"the workload has a {type(item).__name__}, which changes links; remove this item, "
                "or run the workload in a Scenario"
            )
    return _play(twin_of(protocol), network, protocol, items, radio or Radio(), duration_s, seed, record, progress)


def _play(module: str, *scenario: Any) -> Any:
    with code_cache.loading():
        from workbench.sim.fast import engine

        twin = _import_twin(module)
    return engine.play(twin, *scenario)


def _import_twin(module: str) -> ModuleType:
    """Import a protocol's ``module`` for the fast engine. Raises NoFastTwinError if the module is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise NoFastTwinError(
                f"the protocol's version for the fast engine, module {module}, is not installed; install its package"
            ) from error
        raise

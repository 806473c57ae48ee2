"""The fast engine: the reference engine's runs, row by row, at the speed of machine code.

A protocol with a twin exists twice on purpose: its node in `workbench/protocols` is the definition, to be read and to
run on a mote; its *twin* is the same state machine over flat arrays, compiled with numba. Which engine ran cannot be
told from a trace: tests hold both identical over random scenarios.

Theory of operation
    ``twin.py``       the interface for twins
    ``engine.py``     one run: makes the arrays, calls the loop, makes larger arrays when the loop asks for them
    ``prepare.py``    the workload, parsed once: actions, contents, subscriptions as arrays; texts as numbers
    ``network.py``    the topology as arrays, from a graph or without one
    ``layout.py``     `Core`: all arrays that protocols share, what their rows hold, and the codes
    ``loop.py``       the main loop: actions, frames, wake-ups in the order of (time, counter)
    ``agenda.py``     what is next: a ring of microseconds, and a heap for what is far
    ``channel.py``    the radio: sending, losses, collisions, csma, acknowledgements, outages
    ``record.py``     rows of the trace, or counters;  ``outcome.py`` makes Arrow columns and tallies of them
    ``draws.py``      the draws
    ``compiled.py``   how functions become parts of the loop;  ``private_numba.py`` how numba compiles it faster
    ``code_cache.py`` which machine code is on disk;  ``warming.py`` compiles a twin in a process of its own
    The engine imports numba; this module does not, so that asking it costs nothing.

How a twin is written
    A protocol's class names the module of its twin (``fast = "coin_flooding.fast"``) and says what a run costs
    (``receptions_on_an_arc``). The module may belong to any package. Flooding's twin, of 100 lines, is the template. A
    twin imports ``twin`` from this package, and nothing else of it. It has functions that numba compiles into the loop
    (``@twin.compiled``, or ``@twin.hot`` for what is short and happens at each reception). Those marked * have a
    default in `twin.py`::

        start(core, state, i, now) *                                     the node of index i begins
        publish(core, state, i, content, number, now)                    content: a row of core.contents
        subscribe(core, state, i, what, now) *, unsubscribe(...) *       what: a row of core.subscriptions
        receive(core, state, i, sender, message, word, broadcast, now)   a frame from the node of index sender;
                                                                         core.messages[message].name: its kind
        wake(core, state, i, now) *                                      core.next_wake[i] has come
        sent(core, state, i, receiver, message, word, ok, now) *         the outcome of node i's unicast (`Node.sent`);
                                                                         receiver: an index, or UNREACHABLE
        has_room(core, state) *                                          whether an event cannot run out of its pools

    and, in Python,

        Message               names of its messages: `twin.Messages`
        Event *, Reason *     its own events and reasons: `twin.Events`, `twin.Reasons`
        PARTS *               modules of the twin in which the engine looks for these names as well
        WAKES *               whether it has timers at all
        COUNTS_HOLDERS *      whether its `tell_held` says who holds what for the first time; otherwise sinks alone hold
        FIELDS, State         its state, as a table and as a named tuple; arrays of messages grow with these
        make_state(setup, messages) *     the state: ``twin.make(State, FIELDS, setup, messages, sizes, ttl=...)``
        with_more_room(state) *           a state with larger pools, where has_room has said no. It is asked before each
                              event and at the end, so a twin can refuse there what it cannot go on with
        size_B(protocol, attributes)      bytes of a publication's frame; WorkbenchError if it has none
        longest_frame_B(setup) *
        needs(setup)          (Needs of a broadcast's reception, of a unicast's with its outcome, of any other call):
                              the most it takes
        text(setup, state, number) *      what the detail ``len(setup.work.texts) + number`` means, made during the run

    What an event may take beyond its needs because of what nodes keep by then, a twin notes in core.numbers[MORE].

    Nodes are known by their index in ascending order of addresses; traces want ``core.addresses[i]``. Functions
    allocate nothing. The loop makes sure before each event that there is room for what they declared in ``needs``, and
    returns to Python where there is not. The order of ``tell_...`` calls is the order of the node's events, the order
    of ``send`` calls that of its frames; both are independent, so a function may send between two events. The loop
    writes the rows of the radio and of the application (published, subscribed, ...) and numbers readings and
    subscriptions. A wake() that leaves next_wake where it is, or in the past, is a mistake of the twin's: RuntimeError.

What a twin shares with its definition
    Constants are imported from the node's modules. A rule on plain numbers (``rules.py``) is written once: after
    ``twin.compiled_rules(rules)``, parts of the loop call the functions of that module as they are.

What the core gives it
    air        make_message(core, name, origin, sequence, content): a message of a publication's size;
               take_message(..., size_B, airtime_us): of any other size, such as an acknowledgement; its airtime is
               ``setup.radio.airtime_us(size_B)``, computed in make_state;
               hold_message, let_go, send(core, now, i, receiver, message, word);
               receiver is an index, BROADCAST or UNREACHABLE
    record     tell, tell_originated, tell_held, tell_forwarded, tell_delivered, drop; a row that is of no message on
               its way is written with add_row, ``if core.kept[event]``, so that metrics can ask for it
    delivery   deliver, hold, one_way_match
    draws      stream_uniform, stream_below: the node's own stream
    A message is what travels unchanged; a frame adds its sender and one ``word`` (a ttl, say). Frames on their way
    hold their message; a protocol that keeps one holds it too. The row of a message that nobody holds is used again.

What is kept on disk
    Machine code takes 5 to 20 seconds to compile, so numba keeps it for the next process. It is found by the digest
    of all that a loop is made of: the engine's modules, the twin's, each module of their imports that has a function
    for numba (a rule's, say), all imported modules of the twin's own package if that is not the workbench, and the
    numbers that these import from elsewhere. `is_warm` says whether it is there, `warm` has it compiled in a process of
    its own, and `workbench warm` does so for all protocols. Of several processes that need a twin one compiles it, and
    the others wait.

Limits
    What has no twin (a protocol whose class names none, a filter of the user's own) runs on the reference engine;
    `Run.engine_reason` says why.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from workbench.errors import WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sim import workload
from workbench.sim.fast import code_cache, warming
from workbench.sim.radio import Radio

# Loading numba and the machine code takes about a second; Python plays as many receptions of a flood in that time.
WORTH_LOADING = 500_000
_played: Counter[str] = Counter()  # twin -> what this process has played without it


class NoFastTwinError(WorkbenchError):
    """The fast engine cannot play this run; the message says why."""


def twin_of(protocol: Protocol) -> str:
    """The module of a protocol's twin; NoFastTwinError if it has none."""
    cls = type(protocol)
    # A subclass may have other nodes: a twin that it does not name itself plays those of its parent.
    twin = protocol.fast if "fast" in vars(cls) else ""
    if not twin:
        reason = f": {protocol.why_not_fast}" if protocol.why_not_fast else ""
        raise NoFastTwinError(f"{cls.__name__} has no fast twin{reason}")
    return twin


def load(protocol: Protocol) -> None:
    """Import a protocol's twin, so that ``engine="auto"`` takes it from now on. NoFastTwinError if there is none."""
    _loaded(twin_of(protocol))


def is_warm(protocol: Protocol) -> bool:
    """Whether the machine code of a protocol's twin is loaded or on disk, so that a run need not wait for a compiler.

    Asking takes a millisecond and does not import numba. NoFastTwinError if the protocol has no twin.
    """
    return code_cache.is_kept(twin_of(protocol))


def warm(protocol: Protocol) -> warming.Warming:
    """Compile a protocol's twin in a process of its own, unless it is warm; returns at once.

    The handle says whether it is done (`is_done`) and what went wrong (`error`). There is one process per twin, of low
    priority, which ends with this one. NoFastTwinError if the protocol has no twin.
    """
    return warming.start(twin_of(protocol), type(protocol))


def is_worth_it(scenario: Any) -> bool:
    """Whether a run, with those before it, gains more than loading the engine costs, where it is not loaded yet.

    So a long sweep of short runs changes over to the fast engine; nobody knows beforehand how long it will be.
    """
    twin = twin_of(scenario.protocol)
    if twin in sys.modules:
        return True
    readings, subscriptions = 0.0, 0
    for item in scenario.workload:
        if isinstance(item, workload.Publish):
            readings += item.most_readings(len(scenario.topology), round(scenario.duration_s * 1e6))
        elif isinstance(item, workload.Subscribe):
            subscriptions += _nodes_at(item, scenario)
    on_an_arc = scenario.protocol.receptions_on_an_arc(readings, subscriptions, scenario.duration_s)
    _played[twin] += int(on_an_arc * scenario.topology.number_of_edges())
    return _played[twin] >= WORTH_LOADING


def _nodes_at(item: Any, scenario: Any) -> int:
    return len(scenario.topology) if isinstance(item.at, str) else len(item.at)


def run(scenario: Any, record: str, progress: Callable[[float], Any] | None = None) -> Any:
    """Run a scenario on the fast engine; ``record`` is "trace" or "metrics". NoFastTwinError if it cannot."""
    module = twin_of(scenario.protocol)
    with code_cache.loading():
        from workbench.sim.fast import network

    settings = scenario.radio, scenario.duration_s, scenario.seed, record, progress
    return _play(module, network.from_graph(scenario.topology), scenario.protocol, scenario.workload, *settings)


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
    """Play a workload on a `network.Network`: for what is too large for a Scenario's graph. Returns an `Outcome`."""
    return _play(twin_of(protocol), network, protocol, items, radio or Radio(), duration_s, seed, record, progress)


def _play(module: str, *scenario: Any) -> Any:
    with code_cache.loading():
        from workbench.sim.fast import engine

        twin = _loaded(module)
    return engine.play(twin, *scenario)


def _loaded(module: str) -> ModuleType:
    """A twin; NoFastTwinError if this process has no such module: it is the user's, and on another machine."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            raise NoFastTwinError(f"its fast twin {module} is not found here") from error
        raise

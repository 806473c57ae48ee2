"""The peak memory of each node in a run: ``wb.memory(scenario)``.

Definition
    The memory of a node is the number of bytes that its state would take on a 32-bit mote with packed records. The
    state is what the node object of the reference engine holds, counted by its structure in Python:

    integer              4 B, or the next multiple of 4 B that holds it: 8 B for a time (µs) of more than 71 minutes
    float, bool, None    8 B, 1 B, 4 B; a member of an enumeration 1 B
    bytes, str           their length, of a str in UTF-8
    tuple, frozenset     the sum of the sizes of their entries
    any other object     4 B for each reference to it, and its entries and fields once

    A class whose objects have another form in Python than on a mote states the bytes of their content in the property
    ``memory_B``. A value (integer to frozenset above) counts at each place where it is stored, even if Python stores
    equal ones as a single object.

Not counted
    * settings, constants, code and the random stream
    * the outbox, the events and the counts of drops, which the driver takes; samples that wait for the application
    * local variables during a call
    * the link layer with its queues and its estimates of link qualities, the operating system, free lists

Theory of operation
    The reference engine plays the scenario. The state of a node changes only while the node is called, so the node is
    measured after each call, and the peaks are exact. Measuring changes no draw: the trace is that of `Scenario.run`.

Cost
    After each call of a node, a walk through its state: a microsecond for each two or three entries. A run takes two to
    eight times as long, and more if nodes store thousands of entries. ``every_s`` makes it faster.

Limits
    The fast engine stores the state of all nodes in arrays and has no node objects. The memory of a C node is static,
    see hardware/c/README.md. The structure in Python is not that of C: a dictionary of ids beside a list of the same
    ids counts twice, and a list counts the entries that it has, not those for which C reserves room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import chain
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from workbench.draws import Stream
from workbench.errors import ParameterError, ScenarioError
from workbench.keywords import checked
from workbench.protocols.contract import Node, Settings
from workbench.protocols.protocol import Protocol
from workbench.protocols.subscriptions import Subscription
from workbench.sim import engine
from workbench.sim.kernel import ACTION, WAKE, Kernel
from workbench.sim.scenario import Scenario
from workbench.sim.trace import Recorder
from workbench.topology.graphs import is_number

if TYPE_CHECKING:
    import pandas as pd

REFERENCE_B = 4
_FIXED_B = {bool: 1, float: 8, type(None): 4}
_STATELESS_TYPES = (Stream, Protocol, Settings, type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
_NOT_COUNTED = {Node: ("outbox", "events", "drops", "tells_all"), Subscription: ("_samples",)}
_CALLS = {"receive": 2, "sent": 3, "link_quality": 3}  # methods that the channel calls -> position of their ``now``


@checked
def memory(scenario: Scenario, every_s: float = 0.0, progress: Callable[[float], Any] | None = None) -> pd.DataFrame:
    """Play a scenario on the reference engine, and return the peak memory of each node.

    The index has the addresses. The columns are ``peak_B``, the largest number of bytes that the node's state had, and
    ``peak_s``, the first time at which it had them. `help("workbench.analysis.node_memory")` states which bytes count.

    ``every_s``: 0 measures each node after each of its calls. A longer interval measures a node at most once in that
    time. It makes runs of large states faster, and misses short peaks. ``progress`` is called regularly with the
    fraction of the run that is done, 0 to 1; an error that it raises ends the run.
    """
    import pandas as pd

    if not (is_number(every_s) and 0 <= every_s < 1e9):
        raise ParameterError(f"memory: every_s is {every_s!r:.60}; it must be a number of seconds from 0 to 1e9")
    meter = measure(scenario, _Discarding(), every_s, progress)
    address_index = pd.Index(meter.kernel.addresses, name="node")
    return pd.DataFrame(
        {"peak_B": meter.peaks_B, "peak_s": [time_us / 1e6 for time_us in meter.peaks_us]}, address_index
    )


def measure(
    scenario: Any, recorder: Recorder, every_s: float = 0.0, progress: Callable[[float], Any] | None = None
) -> Meter:
    """Play a scenario with a recorder that receives the trace, and return the meter with the peaks of all nodes.

    ``every_s`` and ``progress`` are the parameters of `memory`.
    """
    duration_us = engine.duration_us(scenario)
    with engine.without_collector():
        meter = Meter(engine.begin(scenario, recorder), round(every_s * 1e6))
        meter.kernel.play(duration_us, progress)
        meter.measure_all(duration_us)
    return meter


class _Discarding(Recorder):
    """A recorder that discards the trace."""

    def __init__(self) -> None:
        super().__init__()
        self.append = self._discard

    def _discard(self, row: tuple[Any, ...]) -> None:
        """Discard a row of the trace; only memory is measured here."""

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Discard the events that nodes report; only memory is measured here."""


class Meter:
    """A meter of the peak memory of each node in a simulation.

    ``peaks_B[i]``: largest size of node i's state. ``peaks_us[i]``: when node i first reached that size. The meter
    wraps the handlers of the kernel (the simulation's event loop), and the methods of its nodes that the channel calls.
    A node is measured at most once every ``every_us``.
    """

    def __init__(self, kernel: Kernel, every_us: int = 0) -> None:
        self.kernel, self.every_us = kernel, every_us
        self.peaks_B = [0] * len(kernel.nodes)
        self.peaks_us = [0] * len(kernel.nodes)
        self._ruler = Ruler()
        self.measure_all(0)
        self._wrap_handler(WAKE, lambda i: i)
        self._wrap_handler(ACTION, lambda action: kernel.index[action.node])
        for i, node in enumerate(kernel.nodes):
            for name, position in _CALLS.items():
                setattr(node, name, self._wrap_call(getattr(node, name), i, position))

    def _wrap_handler(self, kind: int, index_of: Callable[[Any], int]) -> None:
        handle = self.kernel.handlers[kind]

        def handle_and_measure(now: int, argument: Any) -> None:
            handle(now, argument)
            self._measure_node(index_of(argument), now)

        self.kernel.handlers[kind] = handle_and_measure

    def _wrap_call(self, call: Callable[..., Any], i: int, position: int) -> Callable[..., None]:
        def call_and_measure(*arguments: Any) -> None:
            call(*arguments)
            self._measure_node(i, arguments[position])

        return call_and_measure

    def measure_all(self, now: int) -> None:
        """Measure all nodes at the time ``now``, even those that were measured only a short time before."""
        self._due_us = [now] * len(self.kernel.nodes)
        for i in range(len(self.kernel.nodes)):
            self._measure_node(i, now)

    def _measure_node(self, i: int, now: int) -> None:
        if now >= self._due_us[i]:
            self._due_us[i] = now + self.every_us
            state_B = self._ruler.measure(self.kernel.nodes[i])
            if state_B > self.peaks_B[i]:
                self.peaks_B[i], self.peaks_us[i] = state_B, now


class Ruler:
    """A counter of the bytes of a node's state; the docstring of the module defines which bytes count."""

    def __init__(self) -> None:
        self._fields: dict[type, tuple[list[str], list[str]]] = {}  # class -> (names of slots, names not counted)
        self._visited: set[int] = set()

    def measure(self, node: Any) -> int:
        """Return the number of bytes that a node's state takes."""
        self._visited = {id(node)}
        return self._sum_sizes(self._list_entries(node))

    def _sum_sizes(self, values: Iterable[Any]) -> int:
        total_B = 0
        for value in values:
            value_type = type(value)
            if value_type is int:
                total_B += 4 if -0x80000000 <= value <= 0xFFFFFFFF else _integer_B(value)
            elif value_type in _FIXED_B:
                total_B += _FIXED_B[value_type]
            elif value_type is tuple:
                total_B += self._sum_sizes(value)
            elif value_type is bytes:
                total_B += len(value)
            elif value_type is str:
                total_B += len(value.encode())
            else:
                total_B += self._object_B(value)
        return total_B

    def _object_B(self, value: Any) -> int:
        if isinstance(value, (tuple, frozenset)):
            return self._sum_sizes(value)
        if id(value) in self._visited:
            return REFERENCE_B
        if type(value) not in self._fields:
            if isinstance(value, Enum):
                return 1
            if isinstance(value, _STATELESS_TYPES):
                return 0
        self._visited.add(id(value))
        if isinstance(value, bytearray):
            return REFERENCE_B + len(value)
        if hasattr(value, "memory_B"):
            return REFERENCE_B + int(value.memory_B)
        return REFERENCE_B + self._sum_sizes(self._list_entries(value))

    def _list_entries(self, value: Any) -> Iterable[Any]:
        """Return the entries and fields of an object. Raises ScenarioError if they cannot be accessed."""
        value_type = type(value)
        if value_type is list:
            return value
        if value_type is dict:
            return chain(value, value.values())
        if value_type not in self._fields:
            self._fields[value_type] = _list_slots(value_type), _list_skipped_fields(value_type)
        slots, skipped = self._fields[value_type]
        instance_fields = getattr(value, "__dict__", None)
        entries = [getattr(value, name) for name in slots if name not in skipped and hasattr(value, name)]
        if instance_fields:
            entries += (
                [field for name, field in instance_fields.items() if name not in skipped]
                if skipped
                else instance_fields.values()
            )
        if isinstance(value, dict):
            entries += chain(value, value.values())
        elif isinstance(value, (list, set, deque)):
            entries += value
        elif instance_fields is None and not slots:
            raise ScenarioError(
                f"memory: a node holds an object of type {value_type.__module__}.{value_type.__qualname__}, whose size "
                "is unknown; store it in an object whose class has a property `memory_B`: the bytes of its content"
            )
        return entries


def _integer_B(value: int) -> int:
    """Return the size (bytes, a multiple of 4) of an integer beyond 32 bits; a negative integer includes a sign bit."""
    return 4 * -(-(value if value >= 0 else 2 * ~value + 1).bit_length() // 32)


def _list_slots(kind: type) -> list[str]:
    return [name for owner in kind.__mro__ for name, slot in vars(owner).items() if type(slot) is MemberDescriptorType]


def _list_skipped_fields(kind: type) -> list[str]:
    return [name for owner, names in _NOT_COUNTED.items() if issubclass(kind, owner) for name in names]

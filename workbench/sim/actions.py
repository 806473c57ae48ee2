"""Actions of a workload, and the checks that items of a workload share. Times of items are in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import ScenarioError
from workbench.sim.readings import LONGEST_S
from workbench.topology.graphs import is_number, is_whole

SHORTEST_S = 1e-6  # a microsecond, the resolution of time: a shorter period would never advance it

ALL = "all"
At = tuple[int, ...] | str

# At the same instant the earlier kind happens first: a subscription made at t matches a reading published at t. CRASH
# is a failure with loss of memory.
RECOVER, FAIL, CRASH, SUBSCRIBE, UNSUBSCRIBE, PUBLISH, REINFORCE = range(7)

# Details of the trace's rows "failed" and "recovered"; an outage has "".
ABSENT, CRASHED, JOINED, RESTARTED = "absent", "crashed", "joined", "restarted"


@dataclass(frozen=True, slots=True)
class Action:
    """An action at one node.

    ``kind``: a constant such as PUBLISH. ``item``: the workload item that causes the action. ``index``: the item's
    position in the workload.
    """

    time_us: int
    kind: int
    node: int
    item: Any
    index: int


# Items are checked at construction, so that errors do not come in the middle of a run.


def check_at(at: Any) -> At:
    """Return ``at`` as a tuple of node numbers, or ALL.

    ``at``: a node number, an iterable of different node numbers, or "all". Raises ScenarioError for other values.
    """
    if isinstance(at, str) and at == ALL:
        return ALL
    if is_whole(at):
        return (int(at),)
    node_numbers = tuple(at) if isinstance(at, Iterable) and not isinstance(at, (str, bytes, Mapping)) else ()
    if not node_numbers or not all(is_whole(node) for node in node_numbers):
        raise ScenarioError(
            f'the argument `at` is {at!r:.60}; it must be a node number, a list of node numbers, or "all"'
        )
    if len(set(node_numbers)) < len(node_numbers):
        raise ScenarioError(f"the argument `at` is {at!r:.60}; it must name each node once")
    return tuple(int(node) for node in node_numbers)


def check_interval(start_s: Any, stop_s: Any) -> tuple[float, float | None]:
    """Check the interval [start_s, stop_s) and return both times as floats; ``stop_s`` may be None.

    Raises ScenarioError for a value that is not a time in seconds, or if ``stop_s`` is before ``start_s``.
    """
    checked_start_s = check_seconds("start_s", start_s, 0.0)
    stop = None if stop_s is None else check_seconds("stop_s", stop_s, 0.0)
    if stop is not None and stop < checked_start_s:
        raise ScenarioError(f"stop_s is {stop}, before start_s {checked_start_s}; it must be start_s or later")
    return checked_start_s, stop


def check_period(name: str, value: Any) -> float | None:
    """Return ``value``, a positive duration in seconds or None, as a float or None.

    Raises ScenarioError for other values; ``name`` is the name of the argument in the message.
    """
    return None if value is None else check_seconds(name, value, SHORTEST_S)


def check_seconds(name: str, value: Any, shortest: float) -> float:
    """Return ``value``, a number of seconds of at least ``shortest``, as a float.

    Raises ScenarioError for other values; ``name`` is the name of the argument in the message.
    """
    if not is_number(value) or not shortest <= value <= LONGEST_S:
        raise ScenarioError(f"{name} is {value!r:.60}; it must be a number of seconds, {shortest:g} to {LONGEST_S:g}")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False. Raises ScenarioError for other values.

    ``name``: the name of the argument in the message.
    """
    if not isinstance(value, bool):
        raise ScenarioError(f"{name} is {value!r:.60}; it must be True or False")
    return value


def to_us(seconds: float) -> int:
    """Convert seconds to microseconds, rounded to a whole number."""
    return round(seconds * 1_000_000)


def select_nodes(at: At, nodes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the nodes that ``at`` names, as a tuple: ``at`` itself, or ``nodes`` if ``at`` is ALL.

    ``nodes``: all nodes of the network.
    """
    return nodes if isinstance(at, str) else at


def count_nodes(at: At, nodes: int) -> int:
    """Return the number of nodes that ``at`` names in a network of ``nodes`` nodes."""
    return nodes if isinstance(at, str) else len(at)

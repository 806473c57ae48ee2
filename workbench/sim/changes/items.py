"""Items of a workload that change the network: nodes that fail, join, leave or move, and links that vary.

    outage, crash, join, leave       nodes go down or come up; each such change is an action of the workload
    partition, move, burst_loss,     links appear, vanish or lose more frames, see `workbench.sim.changes.arcs`
    link_trace, jam

Each item is a frozen value with a plain form for JSON. Times are in seconds from the start of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from workbench import mobility
from workbench.errors import ScenarioError
from workbench.keywords import checked
from workbench.sim.actions import (
    ALL,
    CRASH,
    FAIL,
    RECOVER,
    SHORTEST_S,
    Action,
    At,
    check_at,
    check_interval,
    check_period,
    check_seconds,
    count_nodes,
    select_nodes,
    to_us,
)
from workbench.sim.changes.measured import LinkQualities
from workbench.topology.graphs import LARGEST_COORDINATE_M, is_number

_MOST_PULSES = 100_000


class _NodeItem:
    """Base class of items that take nodes down and up. ``KIND``: the kind of the actions that take nodes down."""

    KIND: ClassVar[int] = FAIL

    def actions(self: Any, index: int, nodes: tuple[int, ...], duration_us: int, seed: int) -> Iterable[Action]:
        """Yield the failure and, if ``stop_s`` is given, the recovery of each node.

        ``index``: this item's position in the workload. ``nodes``: all nodes of the network.
        """
        start_us = to_us(self.start_s)
        stop_us = None if self.stop_s is None else to_us(self.stop_s)
        if start_us == stop_us:
            return  # At one instant, recoveries come before failures: the node would stay down.
        for node in select_nodes(self.at, nodes):
            yield Action(start_us, self.KIND, node, self, index)
            if stop_us is not None:
                yield Action(stop_us, RECOVER, node, self, index)

    def most_actions(self: Any, nodes: int, duration_us: int) -> int:
        """Return an upper limit of the number of actions that the item causes in a network of ``nodes`` nodes."""
        return count_nodes(self.at, nodes) * (1 if self.stop_s is None else 2)


@dataclass(frozen=True)
class Outage(_NodeItem):
    """A workload item: node(s) ``at`` are down in [``start_s``, ``stop_s``), or to the end if ``stop_s`` is None.

    A node that is down sends and receives nothing, its timers do not fire, and actions of its application in this time
    (subscribe, unsubscribe, publish) do not happen. It keeps its memory and continues with it.
    """

    at: At
    start_s: float
    stop_s: float | None = None


@dataclass(frozen=True)
class Crash(_NodeItem):
    """A workload item: node(s) ``at`` crash at ``start_s`` and start again, without memory, at ``stop_s``.

    Until ``stop_s`` (None: to the end) a node is down as in an `Outage`. Then its protocol starts anew, with the number
    of its earlier starts as ``boot``, and its application repeats the subscriptions of the workload that began
    before and have not ended.
    """

    KIND: ClassVar[int] = CRASH

    at: At
    start_s: float
    stop_s: float | None = None


@dataclass(frozen=True)
class Join:
    """A workload item: node(s) ``at`` join the network at ``start_s``. Until then they are down, and have no state.

    A node that joins makes the subscriptions of the workload that began before and have not ended. A node joins once:
    for a node that comes back, use `Crash`, or `Outage` if it keeps its memory.
    """

    at: At
    start_s: float

    def actions(self, index: int, nodes: tuple[int, ...], duration_us: int, seed: int) -> Iterable[Action]:
        """Yield for each joining node the action that starts the node; none for nodes that are up from the beginning.

        ``index``: this item's position in the workload. ``nodes``: all nodes of the network.
        """
        if self.start_s > 0:
            for node in select_nodes(self.at, nodes):
                yield Action(to_us(self.start_s), RECOVER, node, self, index)

    def most_actions(self, nodes: int, duration_us: int) -> int:
        """Return an upper limit of the number of actions that the item causes in a network of ``nodes`` nodes."""
        return count_nodes(self.at, nodes)


@dataclass(frozen=True)
class Leave(_NodeItem):
    """A workload item: node(s) ``at`` leave the network at ``start_s``, without notice and for good."""

    at: At
    start_s: float

    stop_s: ClassVar[None] = None


class _LinkItem:
    """Base class of workload items that change links; they cause no actions at nodes."""

    def actions(self, index: int, nodes: tuple[int, ...], duration_us: int, seed: int) -> Iterable[Action]:
        """Return an empty tuple: the item causes no actions at nodes."""
        return ()

    def most_actions(self, nodes: int, duration_us: int) -> int:
        """Return 0: the item causes no actions at nodes."""
        return 0


@dataclass(frozen=True)
class Partition(_LinkItem):
    """A workload item: no links lead between the nodes ``at`` and all others in [``start_s``, ``stop_s``).

    At ``stop_s`` (None: never) the two parts merge again.
    """

    at: At
    start_s: float
    stop_s: float | None = None


@dataclass(frozen=True)
class Move(_LinkItem):
    """A workload item: node(s) ``at`` move ``along`` waypoints, or by a model of `workbench.mobility`.

    Links of moving nodes are computed every ``step_s`` seconds, from the positions at that time, and stay the same
    until the next step. They follow the topology's rule: its radius, or its propagation with walls. With ``radius_m``,
    a moving node is linked instead with all nodes within this distance, without loss. ``radius_m`` is required if the
    topology's links do not depend on positions, as in a testbed. Links between two nodes that do not move stay as they
    are.
    """

    at: At
    along: Any
    step_s: float = 1.0
    radius_m: float | None = None
    start_s: ClassVar[float] = 0.0


@dataclass(frozen=True)
class BurstLoss(_LinkItem):
    """A workload item: the links between the nodes ``at`` lose frames in bursts (Gilbert-Elliott).

    Each link, with both directions, alternates between a good state and a bad state. The time in each state is
    exponential, with the means ``good_s`` and ``bad_s``, and the state at ``start_s`` has the stationary distribution:
    a link is bad for a share bad_s / (good_s + bad_s) of the time. In the bad state, delivery ratios are multiplied by
    ``bad_pdr``.

    Reference
        E. N. Gilbert: Capacity of a burst-noise channel, Bell System Technical Journal 39(5), 1960;
        E. O. Elliott: Estimates of error rates for codes on burst-noise channels, BSTJ 42(5), 1963.
    """

    good_s: float
    bad_s: float
    bad_pdr: float = 0.0
    at: At = ALL
    start_s: float = 0.0
    stop_s: float | None = None


@dataclass(frozen=True)
class LinkTrace(_LinkItem):
    """A workload item: links have the delivery ratios of a measurement over time, see `LinkQualities`."""

    trace: LinkQualities
    start_s: ClassVar[float] = 0.0

    @property
    def at(self) -> tuple[int, ...]:
        """The nodes whose links the trace describes."""
        return self.trace.nodes


@dataclass(frozen=True)
class Jam(_LinkItem):
    """A workload item: a jammer at (``x_m``, ``y_m``) sends noise in [``start_s``, ``stop_s``).

    With ``every_s`` and ``for_s``, the jammer sends for the first ``for_s`` seconds of every period of ``every_s``. A
    node within ``radius_m`` of the jammer loses each frame that overlaps with the noise (reason "jammed"), misses
    acknowledgements, and with carrier sense finds the channel busy. The noise costs nodes no energy.
    """

    x_m: float
    y_m: float
    radius_m: float
    start_s: float = 0.0
    stop_s: float | None = None
    every_s: float | None = None
    for_s: float | None = None
    at: ClassVar[tuple[int, ...]] = ()

    def pulses_us(self, duration_us: int) -> Iterator[tuple[int, int]]:
        """Yield (begin, end) in µs of each interval in which the jammer sends, up to ``duration_us``."""
        start_us = to_us(self.start_s)
        stop_us = duration_us if self.stop_s is None else min(duration_us, to_us(self.stop_s))
        if self.every_s is None or self.for_s is None:
            if start_us < stop_us:
                yield start_us, stop_us
            return
        for begin_us in range(start_us, stop_us, to_us(self.every_s)):
            yield begin_us, min(stop_us, begin_us + to_us(self.for_s))


NetworkItem = Outage | Crash | Join | Leave | Partition | Move | BurstLoss | LinkTrace | Jam
LINK_ITEMS = (Partition, Move, BurstLoss, LinkTrace, Jam)


@checked
def outage(at: int | Iterable[int] | str, start_s: float, stop_s: float | None = None) -> Outage:
    """Return an item: node ``at`` is down from ``start_s`` to ``stop_s``, or to the end of the run."""
    return Outage(check_at(at), *check_interval(start_s, stop_s))


def _check_nonempty_interval(start_s: Any, stop_s: Any) -> tuple[float, float | None]:
    """Check the interval of an item and return (start_s, stop_s) as floats; ``stop_s`` may be None.

    Raises ScenarioError for invalid times, and if both are the same.
    """
    interval_s = check_interval(start_s, stop_s)
    if interval_s[0] == interval_s[1]:
        raise ScenarioError(f"start_s and stop_s are both {interval_s[0]:g}; stop_s must be later")
    return interval_s


@checked
def crash(at: int | Iterable[int] | str, start_s: float, stop_s: float | None = None) -> Crash:
    """Return an item: node ``at`` crashes at ``start_s``, and starts again without its memory at ``stop_s``.

    Without ``stop_s``, the node stays down to the end of the run. ``at`` may also name several nodes, or be "all".
    """
    return Crash(check_at(at), *_check_nonempty_interval(start_s, stop_s))


@checked
def join(at: int | Iterable[int] | str, start_s: float) -> Join:
    """Return an item: node ``at`` joins the network at ``start_s``; before, it has never been up.

    ``at`` may also name several nodes, or be "all".
    """
    return Join(check_at(at), check_seconds("start_s", start_s, 0.0))


@checked
def leave(at: int | Iterable[int] | str, start_s: float) -> Leave:
    """Return an item: node ``at`` leaves the network at ``start_s``, without notice and for good."""
    return Leave(check_at(at), check_seconds("start_s", start_s, 0.0))


@checked
def partition(at: int | Iterable[int], start_s: float, stop_s: float | None = None) -> Partition:
    """Return an item: from ``start_s`` to ``stop_s`` no link leads between the nodes ``at`` and all others."""
    checked_at = check_at(at)
    if checked_at == ALL:
        raise ScenarioError('the argument `at` is "all"; it must name the nodes on one side of the partition')
    return Partition(checked_at, *_check_nonempty_interval(start_s, stop_s))


@checked
def move(
    at: int | Iterable[int] | str,
    along: Any,
    step_s: float = 1.0,
    radius_m: float | None = None,
) -> Move:
    """Return an item: node ``at`` moves as ``along`` describes.

    ``along``: waypoints [(time_s, x_m, y_m), ...], a track, or a model of `workbench.mobility`. From time 0 on, a node
    moves from its position in the topology to its first waypoint. Random models ignore the position in the topology and
    choose a random position at time 0. Files of other programs give the waypoints of many nodes::

        [wb.move(at=node, along=waypoints) for node, waypoints in wb.mobility.read_ns2("moves.tcl").items()]

    ``at`` may also name several nodes, or be "all". The other parameters are fields of `Move`.
    """
    if isinstance(along, mobility.Track):
        along = [
            (time_us / 1e6, *position_m)
            for time_us, position_m in zip(along.times_us.tolist(), along.positions_m.tolist(), strict=True)
        ]
    model = along if isinstance(along, tuple(mobility.MODELS.values())) else mobility.Waypoints(along)
    radius = None if radius_m is None else _check_number("radius_m", radius_m, 0.001, LARGEST_COORDINATE_M, "m")
    return Move(check_at(at), model, check_seconds("step_s", step_s, 0.001), radius)


@checked
def burst_loss(
    good_s: float,
    bad_s: float,
    bad_pdr: float = 0.0,
    at: int | Iterable[int] | str = ALL,
    start_s: float = 0.0,
    stop_s: float | None = None,
) -> BurstLoss:
    """Return an item: links lose frames in bursts of ``bad_s`` seconds, ``good_s`` seconds apart (both are means).

    The parameters are fields of `BurstLoss`.
    """
    means_s = check_seconds("good_s", good_s, 0.001), check_seconds("bad_s", bad_s, 0.001)
    ratio = _check_number("bad_pdr", bad_pdr, 0, 1)
    checked_at = check_at(at)
    if len(checked_at) < 2:
        raise ScenarioError(f'the argument `at` is {at!r:.60}; burst_loss needs at least two nodes, or "all"')
    return BurstLoss(*means_s, ratio, checked_at, *check_interval(start_s, stop_s))


@checked
def link_trace(trace: Any) -> LinkTrace:
    """Return an item: links have the measured delivery ratios of ``trace`` over time, also links of moving nodes.

    ``trace``: `LinkQualities`, or a table (a pandas DataFrame or the path of a CSV file) with the columns time_s,
    transmitter, receiver and pdr. A link has the ratio of a row until the link's next row; 0 means that the link does
    not exist. Before a link's first row, the trace does not change the link.
    """
    return LinkTrace(trace if isinstance(trace, LinkQualities) else LinkQualities.read(trace))


@checked
def jam(
    x_m: float,
    y_m: float,
    radius_m: float,
    start_s: float = 0.0,
    stop_s: float | None = None,
    every_s: float | None = None,
    for_s: float | None = None,
) -> Jam:
    """Return an item: a jammer at (``x_m``, ``y_m``) disturbs all nodes within ``radius_m``.

    The other parameters are fields of `Jam`.
    """
    place_m = _check_number("x_m", x_m, -1e6, 1e6, "m"), _check_number("y_m", y_m, -1e6, 1e6, "m")
    radius = _check_number("radius_m", radius_m, 0, LARGEST_COORDINATE_M, "m")
    interval_s = check_interval(start_s, stop_s)
    period_s, pulse_s = check_period("every_s", every_s), check_period("for_s", for_s)
    if (period_s is None) != (pulse_s is None) or (period_s and pulse_s and not pulse_s < period_s):
        raise ScenarioError(
            f"every_s is {every_s} and for_s is {for_s}; give both, with for_s below every_s, or leave both out"
        )
    if period_s is not None and period_s < max(SHORTEST_S, 0.001):
        raise ScenarioError(f"every_s is {every_s}; it must be at least 0.001 s")
    return Jam(*place_m, radius, *interval_s, period_s, pulse_s)


def _check_number(name: str, value: Any, lowest: float, highest: float, unit: str = "") -> float:
    if not is_number(value) or not lowest <= value <= highest:
        limits = f"{lowest:g} to {highest:g}{' ' + unit if unit else ''}"
        raise ScenarioError(f"{name} is {value!r:.60}; it must be a number from {limits}")
    return float(value)


def count_absent(items: Iterable[Any], nodes: tuple[int, ...]) -> dict[int, int]:
    """Return {node: number of its `Join` items} for the nodes that are not in the network at the start of the run.

    Items with ``start_s`` 0 do not count. A node with several items comes up at the latest of their times.
    """
    absent: dict[int, int] = {}
    for item in items:
        if isinstance(item, Join) and item.start_s > 0:
            for node in select_nodes(item.at, nodes):
                absent[node] = absent.get(node, 0) + 1
    return absent


def list_change_times(items: Iterable[Any]) -> list[int]:
    """Return the times in µs at which partitions and jamming begin and end, in the order of ``items``, the workload."""
    times_s = []
    for item in items:
        if isinstance(item, Partition | Jam):
            times_s += [item.start_s] if item.stop_s is None else [item.start_s, item.stop_s]
    return [to_us(time_s) for time_s in times_s]

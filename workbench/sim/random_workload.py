"""Workloads drawn at random: queries over ranges, events, failures. They consist of ordinary workload items.

    range_queries     subscriptions at random nodes, to intervals of random position and Zipf-distributed length
    range_events      publications at random nodes, uniform in the space of the dimensions
    random_outage     a random share of nodes that fail

Theory of operation
    A dimension is a key and its range, such as "TEMP 0 50" (`workbench.attributes.dimensions`). The length of an
    interval, as a share of its dimension's range, is ``longest`` * L / ``cells``. L is drawn from 1 to ``cells``; its
    probability is proportional to L ** -exponent (Zipf's law), so many intervals are short and few are long.
    ``exponent=0`` makes all lengths equally likely; with ``cells=1`` all intervals have the length ``longest``. With
    several dimensions, a length is drawn for each. The position of an interval within its dimension is uniform.

    Each item has its own stream of random numbers (`workbench.draws`), which depends on its kind and number. So a
    longer list of queries begins with the same queries, and events do not depend on queries.

Cost
    Some 20 µs an item.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from workbench import draws, purposes
from workbench.attributes.dimensions import read_dimensions
from workbench.attributes.keys import key_of
from workbench.errors import ScenarioError
from workbench.keywords import checked
from workbench.sim.changes.items import Outage, outage
from workbench.sim.workload import Publish, Subscribe, publish, subscribe
from workbench.topology.graphs import is_number, is_whole

_QUERIES, _EVENTS, _OUTAGES = range(3)
_MOST_CELLS = 1 << 20


@checked
def range_queries(
    nodes: Iterable[int],
    count: int,
    dimensions: Sequence[str] = ("TEMP 0 50",),
    *,
    exponent: float = 1.0,
    cells: int = 256,
    longest: float = 1.0,
    start_s: float = 0.0,
    every_s: float = 0.0,
    seed: int = 1,
) -> list[Subscribe]:
    """Return ``count`` subscriptions, each at a random node of ``nodes`` and for a random interval of each dimension.

    The first starts at ``start_s``, each further one ``every_s`` later. ``longest``: the length of the longest
    interval, as a share of its dimension, in (0, 1]. The module's docstring explains ``dimensions``, ``exponent`` and
    ``cells``. Raises ScenarioError or ParameterError for arguments out of range.
    """
    if not is_whole(cells) or not 1 <= cells <= _MOST_CELLS:
        raise ScenarioError(f"cells is {cells!r:.60}; it must be a whole number from 1 to {_MOST_CELLS:,}")
    if not is_number(exponent) or not 0 <= exponent <= 100:
        raise ScenarioError(f"exponent is {exponent!r:.60}; it must be a number from 0 to 100")
    _check_share("longest", longest)
    weights = list(accumulate(length**-exponent for length in range(1, cells + 1)))
    spaces = _read_dimensions(dimensions)
    subscriptions = []
    for item_number, node, stream in _draw_items(nodes, count, seed, _QUERIES):
        constraints = []
        for name, steps_per_unit, lowest_value, highest_value in spaces:
            length = 1 + min(cells - 1, bisect(weights, stream.uniform() * weights[-1]))
            width = max(1, round((highest_value - lowest_value) * longest * length / cells))
            lowest = lowest_value + stream.below(highest_value - lowest_value - width + 1)
            constraints += [
                f"{name} GE {lowest / steps_per_unit:.10g}",
                f"{name} LE {(lowest + width) / steps_per_unit:.10g}",
            ]
        subscriptions.append(subscribe(node, ", ".join(constraints), start_s=start_s + item_number * every_s))
    return subscriptions


@checked
def range_events(
    nodes: Iterable[int],
    count: int,
    dimensions: Sequence[str] = ("TEMP 0 50",),
    *,
    start_s: float = 0.0,
    every_s: float = 0.01,
    seed: int = 1,
) -> list[Publish]:
    """Return ``count`` publications, each at a random node of ``nodes`` with a random value of each dimension.

    The first is published at ``start_s``, each further one ``every_s`` later. ``dimensions``: "key minimum maximum" for
    each dimension. Raises ScenarioError or ParameterError for arguments out of range.
    """
    spaces = _read_dimensions(dimensions)
    publications = []
    for item_number, node, stream in _draw_items(nodes, count, seed, _EVENTS):
        value_texts = [
            f"{name} IS {(lowest_value + stream.below(highest_value - lowest_value + 1)) / steps_per_unit:.10g}"
            for name, steps_per_unit, lowest_value, highest_value in spaces
        ]
        publications.append(publish(node, ", ".join(value_texts), start_s=start_s + item_number * every_s))
    return publications


@checked
def random_outage(
    nodes: Iterable[int], share: float, start_s: float, stop_s: float | None = None, *, seed: int = 1
) -> Outage:
    """Return an outage of nodes chosen at random from ``nodes``, from ``start_s`` to ``stop_s``.

    ``stop_s=None``: the outage lasts to the end of the run. ``share``: the share of ``nodes`` that fail, in (0, 1]; the
    number of failing nodes is rounded, and at least 1.
    """
    _check_share("share", share)
    nodes = _check_nodes(nodes)
    key = draws.make_key(seed, purposes.WORKLOAD, _OUTAGES)
    outage_nodes = sorted(nodes, key=lambda node: draws.bits(key, node))[: max(1, round(share * len(nodes)))]
    return outage(sorted(outage_nodes), start_s, stop_s)


def _draw_items(nodes: Iterable[int], count: int, seed: int, kind: int) -> Iterator[tuple[int, int, draws.Stream]]:
    """Yield (number, node, random stream) for each of ``count`` random workload items.

    The node is drawn from ``nodes``. Each item has its own stream of random numbers; ``kind``, an integer, separates
    the streams of different kinds of items.
    """
    nodes = _check_nodes(nodes)
    if not is_whole(count) or count < 0:
        raise ScenarioError(f"count is {count!r:.60}; it must be a whole number, 0 or more")
    for number in range(count):
        stream = draws.Stream(draws.make_key(seed, purposes.WORKLOAD, kind, number))
        yield number, nodes[stream.below(len(nodes))], stream


def _check_nodes(nodes: Iterable[int]) -> list[int]:
    sorted_nodes = sorted(nodes)
    if not sorted_nodes:
        raise ScenarioError("the argument `nodes` is empty; it must name nodes, such as range(100) or a topology")
    return sorted_nodes


def _read_dimensions(dimensions: Sequence[str]) -> list[tuple[str, int, int, int]]:
    """Return (name of the key, steps per unit, lowest value, highest value) of each dimension.

    A step is the resolution of the key. Both values are integers in steps: with 10 steps per °C, 205 is 20.5 °C.
    """
    spaces = []
    for number, low, high in read_dimensions("random workload", dimensions):
        key = key_of(number)
        spaces.append((key.name, key.steps, low, high))
    return spaces


def _check_share(name: str, value: Any) -> None:
    if not is_number(value) or not 0 < value <= 1:
        raise ScenarioError(f"{name} is {value!r:.60}; it must be above 0 and at most 1")

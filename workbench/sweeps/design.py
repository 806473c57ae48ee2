"""Designs: which points a sweep has. `Grid` has all combinations of its axes; `wb.plans` makes the others.

A design maps the number of a point to what is different about it: path -> value, with paths as `Scenario.replace` takes
them. It knows nothing else of scenarios, is small, and is pickled to workers; nothing per point is kept in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from workbench.errors import ScenarioError
from workbench.sweeps import values

PROBES = 100  # points of a design that are looked at before it runs
_AXIS_PROBES = 1000
_VALUES_TOLD = 1000


class Design:
    """The points of a sweep by their numbers, 0 to ``len(design) - 1``. Its subclasses are immutable values."""

    # What is varied.
    paths: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many points there are."""
        raise NotImplementedError

    def overrides(self, number: int) -> dict[str, Any]:
        """path -> value of a point, for all paths, in any order."""
        raise NotImplementedError

    def labels(self, number: int) -> dict[str, Any]:
        """path -> how a table shows the value: itself if it is a number, a text or a boolean, else a short text."""
        return {path: values.label(value) for path, value in self.overrides(number).items()}

    def labels_of(self, path: str) -> Sequence[Any]:
        """All labels that a path may have, where that is known; empty where it is not."""
        return ()

    def probes(self) -> Sequence[int]:
        """Points that are looked at before a sweep runs, for values that cannot be. Ascending, 0 to a thousand or so.

        Together they should have each object (protocol, filter, ...) of the design once: user code is found by them.
        """
        return evenly(len(self), PROBES)

    def text(self) -> str:
        """What is varied, in a few words: "protocol.ttl (5) × seed (30)"."""
        return ", ".join(self.paths)

    def describe(self) -> dict[str, Any]:
        """What the design is, as JSON has it: for the folder of results and for readers."""
        return {"design": type(self).__name__, "paths": list(self.paths), "points": len(self)}

    # Designs of designs: a mapping on the other side is its grid.

    def __mul__(self, other: Any) -> Design:
        """Each point of this design with each of another, which turns faster."""
        from workbench.sweeps.plans import combined

        return combined.crossed(self, other)

    def __rmul__(self, other: Any) -> Design:
        from workbench.sweeps.plans import combined

        return combined.crossed(other, self)

    def __or__(self, other: Any) -> Design:
        """The points of this design, then those of another that are not among them."""
        from workbench.sweeps.plans import combined

        return combined.union(self, other)

    def __sub__(self, other: Any) -> Design:
        """The points of this design without those that another has, on the paths that it varies."""
        from workbench.sweeps.plans import combined

        return combined.without(self, other)

    def __repr__(self) -> str:
        return f"<{len(self)} points: {self.text()}>"


def evenly(count: int, most: int) -> Sequence[int]:
    """At most so many of the numbers 0 to ``count - 1``, spread evenly, with the first and the last."""
    if count <= most:
        return range(count)
    return sorted({i * (count - 1) // (most - 1) for i in range(most)})


@dataclass(frozen=True)
class Axis:
    """What is varied (a path as `Scenario.replace` takes it), its values, and how a table shows each of them.

    A label is the value itself for numbers, texts and booleans, else a text; labels are unique.
    """

    path: str
    values: Sequence[Any]
    labels: Sequence[Any]


@dataclass(frozen=True, repr=False)
class Grid(Design):
    """All combinations of the values of axes, in the order of nested loops: the last axis turns fastest."""

    axes: tuple[Axis, ...]

    @property
    def paths(self) -> tuple[str, ...]:  # type: ignore[override]
        """The paths of the axes."""
        return tuple(axis.path for axis in self.axes)

    def __len__(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    def places(self, number: int) -> list[int]:
        """The place on each axis of a point."""
        places = []
        for axis in reversed(self.axes):
            number, place = divmod(number, len(axis.values))
            places.append(place)
        return places[::-1]

    def number(self, places: Iterable[int]) -> int:
        """The point at a place on each axis: the way back."""
        number = 0
        for axis, place in zip(self.axes, places, strict=True):
            number = number * len(axis.values) + place
        return number

    def overrides(self, number: int) -> dict[str, Any]:
        """path -> value of a point."""
        return {axis.path: axis.values[i] for axis, i in zip(self.axes, self.places(number), strict=True)}

    def labels(self, number: int) -> dict[str, Any]:
        """path -> label of a point."""
        return {axis.path: axis.labels[i] for axis, i in zip(self.axes, self.places(number), strict=True)}

    def labels_of(self, path: str) -> Sequence[Any]:
        """The labels of an axis."""
        return next(axis.labels for axis in self.axes if axis.path == path)

    def probes(self) -> Sequence[int]:
        """Every value of each axis once (of long axes a thousand), and some points from all over the grid."""
        longest = max(len(axis.values) for axis in self.axes)
        steps = evenly(longest, _AXIS_PROBES)
        diagonal = {self.number(step % len(axis.values) for axis in self.axes) for step in steps}
        return sorted(diagonal | set(evenly(len(self), PROBES)))

    def text(self) -> str:
        """The axes, and how many values each has."""
        return " × ".join(f"{axis.path} ({len(axis.values)})" for axis in self.axes)

    def describe(self) -> dict[str, Any]:
        """The axes and their labels; of long axes the first ones, and how many there are."""
        told: dict[str, Any] = {axis.path: list(axis.labels[:_VALUES_TOLD]) for axis in self.axes}
        long = {axis.path: len(axis.labels) for axis in self.axes if len(axis.labels) > _VALUES_TOLD}
        return {"design": "Grid", "points": len(self), "over": told, **({"values": long} if long else {})}


def grid(over: Mapping[str, Any]) -> Grid:
    """The grid of ``over``: path -> list of values, or -> {name: value}. ScenarioError for what is no such thing."""
    if not isinstance(over, Mapping) or not over:
        raise ScenarioError(f'over is {over!r:.80}; it must say what to vary: over={{"seed": range(30)}}')
    return Grid(tuple(axis(path, given) for path, given in over.items()))


def axis(path: Any, given: Any) -> Axis:
    """The axis of a path and its values, with labels. ScenarioError if it has none, or one twice."""
    if not isinstance(path, str):
        raise ScenarioError(f'a sweep varies paths such as "protocol.ttl" or "seed", not {path!r:.80}')
    if isinstance(given, (str, bytes, nx.Graph)) or not isinstance(given, Iterable):
        raise ScenarioError(f"the values of {path} are {given!r:.80}; they must be a list of values")
    if isinstance(given, range) and given:
        return Axis(path, given, given)  # It may be long, and is all there is to it.
    if isinstance(given, Mapping):
        labels, found = [str(name) for name in given], list(given.values())
    else:
        found = [values.native(value) for value in given]
        labels = [values.label(value) for value in found]
    if not found:
        raise ScenarioError(f"{path} has no values; a sweep needs at least one")
    if path == "topology":
        found = [values.frozen(value) for value in found]
    labels = values.unique(labels)
    _check_distinct(path, found, labels)
    return Axis(path, tuple(found), tuple(labels))


def _check_distinct(path: str, found: Sequence[Any], labels: Sequence[Any]) -> None:
    first: dict[str, int] = {}
    for place, value in enumerate(found):
        twin = first.setdefault(values.words(value), place)
        if twin != place:
            raise ScenarioError(
                f"the sweep has the same scenario twice, for {path}={labels[twin]} and for {path}={labels[place]}; "
                "each value of an axis must be there once"
            )

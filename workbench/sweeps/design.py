"""Designs: the points of a sweep. `Grid` has all combinations of its axes; `wb.plans` makes the other designs.

A design maps the number of a point to the values of the varied parameters: path -> value, with paths as for
`Scenario.replace`. It does not depend on a scenario. Workers receive it pickled. A grid stores only its axes, so its
pickle is small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from workbench.errors import ScenarioError
from workbench.sweeps import values

PROBES = 100  # points of a design that are checked before it runs
_AXIS_PROBES = 1000  # values of an axis that are checked before it runs
_MOST_VALUES = 1000  # labels of an axis that a description lists


class Design:
    """The base class of designs: the points of a sweep, numbered 0 to ``len(design) - 1``. Instances are immutable."""

    # The varied parameters, as paths of `Scenario.replace`.
    paths: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of points."""
        raise NotImplementedError

    def overrides(self, number: int) -> dict[str, Any]:
        """Return {path: value} of all varied parameters at point ``number``, in any order."""
        raise NotImplementedError

    def labels(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: label of its value in tables} for point ``number``.

        Tables show labels. The label of a number, text or boolean is the value itself, of any other value a short text.
        """
        return {path: values.label(value) for path, value in self.overrides(number).items()}

    def label_columns(self, numbers: Sequence[int] | None = None) -> dict[str, list[Any]]:
        """Return {path of a varied parameter: list of its labels at the points ``numbers``}.

        ``numbers`` are numbers of points; None stands for all points.
        """
        rows = [self.labels(number) for number in (range(len(self)) if numbers is None else numbers)]
        return {path: [row[path] for row in rows] for path in self.paths}

    def labels_of(self, path: str) -> Sequence[Any]:
        """Return the labels of all values of the parameter ``path``; empty if they are not known in advance."""
        return ()

    def probes(self) -> Sequence[int]:
        """Return the numbers of the points to check before a sweep runs: ascending, about a thousand at most.

        Each object (protocol, filter, ...) of the design should occur in one of these points, so that the
        object's user code is found and sent to workers.
        """
        return evenly(len(self), PROBES)

    def text(self) -> str:
        """Return a short description of the design: "protocol.ttl (5) × seed (30)"."""
        return ", ".join(self.paths)

    def describe(self) -> dict[str, Any]:
        """Return a description of the design as JSON values, for a file in the folder of results.

        The keys are "design" (name of the class), "paths" and "points" (number of points). Subclasses add other keys.
        """
        return {"design": type(self).__name__, "paths": list(self.paths), "points": len(self)}

    # Operators on designs; a mapping as the other operand means its grid.

    def __mul__(self, other: Any) -> Design:
        """Return the design of all pairs of a point of this design and a point of ``other``.

        The points of ``other`` vary fastest.
        """
        from workbench.sweeps.plans import combined

        return combined.crossed(self, other)

    def __rmul__(self, other: Any) -> Design:
        from workbench.sweeps.plans import combined

        return combined.crossed(other, self)

    def __or__(self, other: Any) -> Design:
        """Return the union: this design's points, then the points of ``other`` that this design does not contain."""
        from workbench.sweeps.plans import combined

        return combined.union(self, other)

    def __sub__(self, other: Any) -> Design:
        """Return this design without the points that ``other`` contains.

        Points are equal if they agree in all parameters that ``other`` varies.
        """
        from workbench.sweeps.plans import combined

        return combined.without(self, other)

    def __repr__(self) -> str:
        return f"<{len(self)} points: {self.text()}>"


def evenly(count: int, most: int) -> Sequence[int]:
    """Return at most ``most`` of the numbers 0 to ``count - 1``, evenly spaced, including the first and the last."""
    if count <= most:
        return range(count)
    return sorted({i * (count - 1) // (most - 1) for i in range(most)})


@dataclass(frozen=True)
class Axis:
    """A varied parameter: its path as for `Scenario.replace`, its values, and their labels in tables.

    The label of a number, text or boolean is the value itself; the label of any other value is a text. Labels are
    unique.
    """

    path: str
    values: Sequence[Any]
    labels: Sequence[Any]


@dataclass(frozen=True, repr=False)
class Grid(Design):
    """All combinations of the values of axes, in the order of nested loops: the last axis varies fastest."""

    axes: tuple[Axis, ...]

    @property
    def paths(self) -> tuple[str, ...]:  # type: ignore[override]
        """The path of each axis: the name of its varied parameter, such as "protocol.ttl"."""
        return tuple(axis.path for axis in self.axes)

    def __len__(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    def indices(self, number: int) -> list[int]:
        """Return for each axis the index of its value at point ``number``."""
        indices = []
        for axis in reversed(self.axes):
            number, index = divmod(number, len(axis.values))
            indices.append(index)
        return indices[::-1]

    def number(self, indices: Iterable[int]) -> int:
        """Return the number of a point; the inverse of `indices`.

        ``indices`` has for each axis the index of the point's value.
        """
        number = 0
        for axis, index in zip(self.axes, indices, strict=True):
            number = number * len(axis.values) + index
        return number

    def overrides(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: its value} for point ``number``."""
        return {axis.path: axis.values[i] for axis, i in zip(self.axes, self.indices(number), strict=True)}

    def labels(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: label of its value in tables} for point ``number``."""
        return {axis.path: axis.labels[i] for axis, i in zip(self.axes, self.indices(number), strict=True)}

    def label_columns(self, numbers: Sequence[int] | None = None) -> dict[str, list[Any]]:
        """Return {path of a varied parameter: list of its labels at the points ``numbers``}.

        ``numbers`` are numbers of points; None stands for all points.
        """
        if numbers is not None:
            return super().label_columns(numbers)
        columns, following = {}, len(self)
        for axis in self.axes:
            repetitions, following = len(self) // following, following // len(axis.labels)
            columns[axis.path] = [label for label in axis.labels for _ in range(following)] * repetitions
        return columns

    def labels_of(self, path: str) -> Sequence[Any]:
        """Return the labels (texts in tables) of all values of the varied parameter ``path``, such as "seed"."""
        return next(axis.labels for axis in self.axes if axis.path == path)

    def probes(self) -> Sequence[int]:
        """Return the numbers of the points to check before a sweep runs.

        The points contain every value of each axis, or about a thousand of its values if the axis has more.
        """
        most_values = max(len(axis.values) for axis in self.axes)
        steps = evenly(most_values, _AXIS_PROBES)
        covering_numbers = {self.number(step % len(axis.values) for axis in self.axes) for step in steps}
        return sorted(covering_numbers | set(evenly(len(self), PROBES)))

    def text(self) -> str:
        """Return a text with each axis and its number of values: "protocol.ttl (5) × seed (30)"."""
        return " × ".join(f"{axis.path} ({len(axis.values)})" for axis in self.axes)

    def describe(self) -> dict[str, Any]:
        """Return a description as JSON values: "design" ("Grid"), "points" (their number), "over" ({path: labels}).

        Of an axis with more than a thousand labels, only the first thousand are listed; the further key "values" then
        has {path of such an axis: number of its labels}.
        """
        listed_labels: dict[str, Any] = {axis.path: list(axis.labels[:_MOST_VALUES]) for axis in self.axes}
        lengths = {axis.path: len(axis.labels) for axis in self.axes if len(axis.labels) > _MOST_VALUES}
        return {
            "design": "Grid",
            "points": len(self),
            "over": listed_labels,
            **({"values": lengths} if lengths else {}),
        }


def grid(over: Mapping[str, Any]) -> Grid:
    """Return the grid of all combinations in ``over``: {path: list of values, or {name: value}}.

    Raises ScenarioError if ``over`` has another form.
    """
    if not isinstance(over, Mapping) or not over:
        raise ScenarioError(
            f'the argument `over` is {over!r:.80}; it must be a mapping of paths to values: over={{"seed": range(30)}}'
        )
    return Grid(tuple(axis(path, choices) for path, choices in over.items()))


def axis(path: Any, choices: Any) -> Axis:
    """Return the axis of the parameter ``path`` with these ``choices``: a list of values, or {name: value}.

    Raises ScenarioError for an empty list, and for a repeated value.
    """
    if not isinstance(path, str):
        raise ScenarioError(
            f'the path of a varied parameter is {path!r:.80}; it must be a text such as "protocol.ttl" or "seed"'
        )
    if isinstance(choices, (str, bytes, nx.Graph)) or not isinstance(choices, Iterable):
        raise ScenarioError(f"the values of {path} are {choices!r:.80}; they must be a list of values")
    if isinstance(choices, range) and choices:
        return Axis(path, choices, choices)  # A long range is not expanded.
    if isinstance(choices, Mapping):
        labels, axis_values = [str(name) for name in choices], list(choices.values())
    else:
        axis_values = [values.to_native(value) for value in choices]
        labels = [values.label(value) for value in axis_values]
    if not axis_values:
        raise ScenarioError(f"the list of values of {path} is empty; a sweep needs at least one")
    if path == "topology":
        axis_values = [values.normalize_topology(value) for value in axis_values]
    labels = values.make_unique(labels)
    _check_distinct(path, axis_values, labels)
    return Axis(path, tuple(axis_values), tuple(labels))


def _check_distinct(path: str, axis_values: Sequence[Any], labels: Sequence[Any]) -> None:
    first_index: dict[str, int] = {}
    for value_index, axis_value in enumerate(axis_values):
        earlier_index = first_index.setdefault(values.identity_text(axis_value), value_index)
        if earlier_index != value_index:
            raise ScenarioError(
                f"{path}={labels[earlier_index]} and {path}={labels[value_index]} are the same scenario; "
                "each value of an axis may occur only once"
            )

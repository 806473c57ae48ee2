"""Plans from lists: a list of points, and parallel lists of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from workbench.errors import ScenarioError
from workbench.sweeps import values
from workbench.sweeps.design import PROBES, Axis, Design, axis, evenly
from workbench.sweeps.plans.combined import Finder

_MOST_OBJECTS = 1000  # objects that are checked before a sweep runs
_OWN_LABELS = (bool, int, float, str)
_PLAIN = (*_OWN_LABELS, type(None))


class Points(Design):
    """A plan of parallel axes of equal length: point i has the i-th value of each axis."""

    def __init__(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes
        self.paths = tuple(own_axis.path for own_axis in axes)

    def __len__(self) -> int:
        return len(self.axes[0].values)

    def overrides(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: its value} for point ``number``."""
        return {own_axis.path: own_axis.values[number] for own_axis in self.axes}

    def labels(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: label of its value in tables} for point ``number``."""
        return {own_axis.path: own_axis.labels[number] for own_axis in self.axes}

    def probes(self) -> Sequence[int]:
        """Return the numbers of the points to check before a sweep runs: at least one for each object.

        Objects are protocols, networks and other values that may contain user code. At most a thousand objects of an
        axis are checked.
        """
        probe_numbers = set(evenly(len(self), PROBES))
        for own_axis in self.axes:
            objects = {id(value): i for i, value in enumerate(own_axis.values) if not isinstance(value, _PLAIN)}
            probe_numbers |= set(islice(objects.values(), _MOST_OBJECTS))
        return sorted(probe_numbers)

    def labels_of(self, path: str) -> Sequence[Any]:
        """Return the labels (texts in tables) of the values of the parameter ``path``, one for each point."""
        return next((own_axis.labels for own_axis in self.axes if own_axis.path == path), ())

    def text(self) -> str:
        """Return a short description of the design, such as "4 points of protocol.ttl, radio.loss"."""
        return f"{len(self)} points of {', '.join(self.paths)}"


def points(given: Iterable[Mapping[str, Any]]) -> Points:
    """Return the plan of the ``given`` points: a list of {path: value}, or a DataFrame with paths as columns.

    All points must have the same paths. Raises ScenarioError for different paths, an empty list or a repeated point.

    >>> len(points([{"protocol.ttl": 3, "radio.loss": 0.0}, {"protocol.ttl": 9, "radio.loss": 0.2}]))
    2
    """
    to_dict: Any = getattr(given, "to_dict", None)
    point_mappings: Any = to_dict("records") if to_dict is not None and not isinstance(given, Mapping) else given
    if isinstance(point_mappings, (str, bytes, Mapping)) or not isinstance(point_mappings, Iterable):
        raise ScenarioError(f'points are {given!r:.80}; they must be a list such as [{{"protocol.ttl": 3}}]')
    point_mappings = list(point_mappings)
    if not point_mappings:
        raise ScenarioError("the list of points is empty; a sweep needs at least one")
    for point_number, point_mapping in enumerate(point_mappings):
        if not isinstance(point_mapping, Mapping) or not point_mapping:
            raise ScenarioError(
                f'point {point_number} is {point_mapping!r:.80}; it must be a mapping such as {{"protocol.ttl": 3}}'
            )
        if point_mapping.keys() != point_mappings[0].keys():
            paths, first_paths = (", ".join(map(str, point)) for point in (point_mapping, point_mappings[0]))
            raise ScenarioError(
                f"point {point_number} has the paths {paths}, point 0 has {first_paths}; they must be the same"
            )
    return _make_parallel_points(
        {path: [point_mapping[path] for point_mapping in point_mappings] for path in point_mappings[0]}
    )


def zipped(over: Mapping[str, Any]) -> Points:
    """Return a plan that steps through parallel lists: point i has the i-th value of each list.

    ``over`` is {path of a parameter: list of values}. Raises ScenarioError for lists of different lengths, and for a
    repeated point.

    >>> zipped({"protocol.ttl": [3, 6, 9], "duration_s": [60, 120, 240]}).overrides(1)
    {'protocol.ttl': 6, 'duration_s': 120}
    """
    if not isinstance(over, Mapping) or not over:
        raise ScenarioError(
            f"the argument `over` is {over!r:.80}; it must be a mapping, and its values must be lists of the same "
            f'length: {{"seed": [1, 2, 3]}}'
        )
    for path, choices in over.items():
        if isinstance(choices, (str, bytes)) or not isinstance(choices, Iterable):
            axis(path, choices)  # Raises for an invalid list.
    lists = {path: list(choices.items() if isinstance(choices, Mapping) else choices) for path, choices in over.items()}
    lengths = {path: len(items) for path, items in lists.items()}
    if len(set(lengths.values())) > 1:
        lengths_text = " and ".join(f"{path} has {length} values" for path, length in lengths.items())
        raise ScenarioError(
            f"the lists in the argument `over` have different lengths: {lengths_text}; use lists of the same length"
        )
    return _make_parallel_points(
        {path: choices if isinstance(choices, Mapping) else lists[path] for path, choices in over.items()}
    )


def _make_parallel_points(over: Mapping[str, Any]) -> Points:
    design = Points(tuple(_make_axis(path, choices) for path, choices in over.items()))
    duplicates = Finder(design, design.paths).duplicates()
    if duplicates is not None:
        labels = ", ".join(f"{path}={label}" for path, label in design.labels(duplicates[0]).items())
        raise ScenarioError(
            f"the points {duplicates[0]} and {duplicates[1]} are both {labels}; each point may occur only once"
        )
    return design


def _make_axis(path: Any, choices: Any) -> Axis:
    """Return the axis of the parameter ``path``, whose values may repeat, unlike those of a grid.

    ``choices`` is a list of values, or {name: value}. Equal values in a list have the same label.
    """
    axis_values = (
        list(choices.values()) if isinstance(choices, Mapping) else [values.to_native(value) for value in choices]
    )
    if (
        axis_values
        and not isinstance(choices, Mapping)
        and all(isinstance(value, _OWN_LABELS) for value in axis_values)
    ):
        axis(path, axis_values[:1])  # Raises for an invalid path.
        return Axis(path, tuple(axis_values), tuple(axis_values))
    value_by_identity = dict(zip(map(_make_identity_key, axis_values), axis_values, strict=True))
    names = [str(name) for name in choices] if isinstance(choices, Mapping) else None
    distinct_axis = axis(path, list(value_by_identity.values()))
    value_and_label = dict(
        zip(value_by_identity, zip(distinct_axis.values, distinct_axis.labels, strict=True), strict=True)
    )
    value_label_pairs = [value_and_label[_make_identity_key(value)] for value in axis_values]
    return Axis(
        path, tuple(value for value, _ in value_label_pairs), tuple(names or (label for _, label in value_label_pairs))
    )


def _make_identity_key(value: Any) -> Any:
    return (type(value), value) if isinstance(value, _PLAIN) else values.identity_text(value)

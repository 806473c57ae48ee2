"""Plans that are written down: a list of points, and axes in step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from workbench.errors import ScenarioError
from workbench.sweeps import values
from workbench.sweeps.design import PROBES, Axis, Design, axis, evenly
from workbench.sweeps.plans.combined import Finder

_OBJECTS = 1000  # that are looked at before a sweep runs
_TOLD_AS_THEY_ARE = (bool, int, float, str)
_PLAIN = (*_TOLD_AS_THEY_ARE, type(None))


class Points(Design):
    """Axes in step: point ``number`` has the value of that number on each axis."""

    def __init__(self, axes: tuple[Axis, ...]) -> None:
        self.axes = axes
        self.paths = tuple(one.path for one in axes)

    def __len__(self) -> int:
        return len(self.axes[0].values)

    def overrides(self, number: int) -> dict[str, Any]:
        """path -> value of a point."""
        return {one.path: one.values[number] for one in self.axes}

    def labels(self, number: int) -> dict[str, Any]:
        """path -> label of a point."""
        return {one.path: one.labels[number] for one in self.axes}

    def probes(self) -> Sequence[int]:
        """Each object once, up to a thousand of an axis, and some points from all over the list."""
        found = set(evenly(len(self), PROBES))
        for one in self.axes:
            objects = {id(value): i for i, value in enumerate(one.values) if not isinstance(value, _PLAIN)}
            found |= set(islice(objects.values(), _OBJECTS))
        return sorted(found)

    def labels_of(self, path: str) -> Sequence[Any]:
        """The labels of a path, one per point."""
        return next((one.labels for one in self.axes if one.path == path), ())

    def text(self) -> str:
        """What is varied: "4 points of protocol.ttl, radio.loss"."""
        return f"{len(self)} points of {', '.join(self.paths)}"


def points(given: Iterable[Mapping[str, Any]]) -> Points:
    """Points as they are listed: mappings of the same paths to values, or a pandas frame with paths as columns.

    Raises ScenarioError for an empty list, for points with other paths than the first, and for one that is there twice.

    >>> len(points([{"protocol.ttl": 3, "radio.loss": 0.0}, {"protocol.ttl": 9, "radio.loss": 0.2}]))
    2
    """
    to_dict: Any = getattr(given, "to_dict", None)
    rows: Any = to_dict("records") if to_dict is not None and not isinstance(given, Mapping) else given
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise ScenarioError(f'points are {given!r:.80}; they must be a list such as [{{"protocol.ttl": 3}}]')
    rows = list(rows)
    if not rows:
        raise ScenarioError("there are no points; a sweep needs at least one")
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping) or not row:
            raise ScenarioError(f'point {number} is {row!r:.80}; it must be a mapping such as {{"protocol.ttl": 3}}')
        if row.keys() != rows[0].keys():
            told = [", ".join(map(str, one)) for one in (row, rows[0])]
            raise ScenarioError(f"point {number} is of {told[0]}, and point 0 of {told[1]}; they need the same paths")
    return _in_step({path: [row[path] for row in rows] for path in rows[0]})


def zipped(over: Mapping[str, Any]) -> Points:
    """Values in step: the first of each list, then the second of each. The lists have the same length.

    Raises ScenarioError if they have not, and for a point that is there twice.

    >>> zipped({"protocol.ttl": [3, 6, 9], "duration_s": [60, 120, 240]}).overrides(1)
    {'protocol.ttl': 6, 'duration_s': 120}
    """
    if not isinstance(over, Mapping) or not over:
        raise ScenarioError(f'over is {over!r:.80}; it must be lists of the same length: {{"seed": [1, 2, 3]}}')
    for path, given in over.items():
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            axis(path, given)  # It says what is wrong with it.
    lists = {path: list(given.items() if isinstance(given, Mapping) else given) for path, given in over.items()}
    lengths = {path: len(one) for path, one in lists.items()}
    if len(set(lengths.values())) > 1:
        told = " and ".join(f"{path} has {length}" for path, length in lengths.items())
        raise ScenarioError(f"values in step come from lists of the same length; {told}")
    return _in_step({path: given if isinstance(given, Mapping) else lists[path] for path, given in over.items()})


def _in_step(over: Mapping[str, Any]) -> Points:
    design = Points(tuple(_axis(path, given) for path, given in over.items()))
    twice = Finder(design, design.paths).twice()
    if twice is not None:
        told = ", ".join(f"{path}={label}" for path, label in design.labels(twice[0]).items())
        raise ScenarioError(f"the points {twice[0]} and {twice[1]} are both {told}; each must be there once")
    return design


def _axis(path: Any, given: Any) -> Axis:
    """An axis in which values may come again, as those of a list of points do; equal ones have one label."""
    found = list(given.values()) if isinstance(given, Mapping) else [values.native(value) for value in given]
    if found and not isinstance(given, Mapping) and all(isinstance(value, _TOLD_AS_THEY_ARE) for value in found):
        axis(path, found[:1])  # It says what is wrong with the path.
        return Axis(path, tuple(found), tuple(found))
    first = dict(zip(map(_identity, found), found, strict=True))
    names = [str(name) for name in given] if isinstance(given, Mapping) else None
    distinct = axis(path, list(first.values()))
    known = dict(zip(first, zip(distinct.values, distinct.labels, strict=True), strict=True))
    told = [known[_identity(value)] for value in found]
    return Axis(path, tuple(value for value, _ in told), tuple(names or (label for _, label in told)))


def _identity(value: Any) -> Any:
    return (type(value), value) if isinstance(value, _PLAIN) else values.words(value)

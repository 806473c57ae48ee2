"""Plans composed of plans: products (`a * b`), unions (`a | b`) and differences (`a - b`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.errors import ScenarioError
from workbench.sweeps import values
from workbench.sweeps.design import PROBES, Design, Grid, evenly, grid


class Composed(Design):
    """A design that composes each of its points from points of other designs."""

    def parts(self, number: int) -> Iterable[tuple[Design, int]]:
        """Return the points that point ``number`` combines, each as (design, number of the point in that design)."""
        raise NotImplementedError

    def overrides(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: its value} for point ``number``."""
        return {
            path: value
            for design, number_in_design in self.parts(number)
            for path, value in design.overrides(number_in_design).items()
        }

    def labels(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: label of its value in tables} for point ``number``."""
        return {
            path: label
            for design, number_in_design in self.parts(number)
            for path, label in design.labels(number_in_design).items()
        }


class Crossed(Composed):
    """The product of two designs, its *factors*: each point of ``outer`` is combined with all points of ``inner``."""

    def __init__(self, outer: Design, inner: Design) -> None:
        common_paths = [path for path in outer.paths if path in inner.paths]
        if common_paths:
            raise ScenarioError(f"both plans vary {common_paths[0]}; only one factor of a product may vary it")
        self.factors = (outer, inner)
        self.paths = (*outer.paths, *inner.paths)

    def __len__(self) -> int:
        outer, inner = self.factors
        return len(outer) * len(inner)

    def parts(self, number: int) -> Iterable[tuple[Design, int]]:
        """Return the two points that point ``number`` combines: a point of ``outer``, and a point of ``inner``.

        Each is a pair (design, number of the point in this design).
        """
        return zip(self.factors, divmod(number, len(self.factors[1])), strict=True)

    def probes(self) -> Sequence[int]:
        """Return the numbers of the points to check before a sweep runs.

        Each point that one of the two factors checks (its own `probes`) is part of at least one of these points.
        Points that are evenly spaced over the whole product are added.
        """
        outer_probes, inner_probes = (factor.probes() for factor in self.factors)
        inner_size = len(self.factors[1])
        most_probes = max(len(outer_probes), len(inner_probes))
        paired_numbers = {
            outer_probes[i % len(outer_probes)] * inner_size + inner_probes[i % len(inner_probes)]
            for i in range(most_probes)
        }
        return sorted(paired_numbers | set(evenly(len(self), PROBES)))

    def describe(self) -> dict[str, Any]:
        """Return the description of this product as JSON values. The key "of" has the descriptions of both factors."""
        return {"design": "Crossed", "points": len(self), "of": [factor.describe() for factor in self.factors]}

    def labels_of(self, path: str) -> Sequence[Any]:
        """Return the labels (texts in tables) of the values of ``path``, from the factor (design) that varies it."""
        return next((factor.labels_of(path) for factor in self.factors if path in factor.paths), ())

    def text(self) -> str:
        """Return a short description of the design, such as "protocol.ttl (3) × seed (30)"."""
        return " × ".join(factor.text() for factor in self.factors)


class Without(Composed):
    """A design without some of its points.

    ``taken`` are the numbers of the removed points in the original ``design`` (int64, ascending).
    """

    def __init__(self, design: Design, taken: np.ndarray) -> None:
        self.paths = design.paths
        self._design = design
        self._taken = taken
        # For each removed point the number of remaining points before it: maps a number in this design to the full one.
        self._before = taken - np.arange(len(taken))

    def __len__(self) -> int:
        return len(self._design) - len(self._taken)

    def parts(self, number: int) -> Iterable[tuple[Design, int]]:
        """Return [(original design, number in the original design)] of the point that has ``number`` in this design."""
        return [(self._design, number + int(np.searchsorted(self._before, number, side="right")))]

    def probes(self) -> Sequence[int]:
        """Return the numbers of the points to check before a sweep runs.

        They are the points in the `probes` of the original design that were not removed. Points that are evenly
        spaced over this design are added.
        """
        remaining_probes = np.setdiff1d(np.asarray(self._design.probes()), self._taken)
        probe_numbers = remaining_probes - np.searchsorted(self._taken, remaining_probes)
        return sorted({*probe_numbers.tolist(), *evenly(len(self), PROBES)})

    def describe(self) -> dict[str, Any]:
        """Return the description of this difference of two designs as JSON values.

        The key "of" has the description of the original design, the key "taken" the number of removed points.
        """
        return {"design": "Without", "points": len(self), "of": self._design.describe(), "taken": len(self._taken)}

    def labels_of(self, path: str) -> Sequence[Any]:
        """Return the labels (texts in tables) of all values of the parameter ``path``.

        The labels include values that only removed points have.
        """
        return self._design.labels_of(path)

    def text(self) -> str:
        """Return a short description of the design, such as "protocol.ttl (3) × seed (30) but 6 points"."""
        return f"{self._design.text()} but {len(self._taken)} points"


class Union(Composed):
    """The points of one design, then the points of another design; the two have no point in common."""

    def __init__(self, first: Design, second: Design) -> None:
        self.paths = first.paths
        self._first, self._second = first, second

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def parts(self, number: int) -> Iterable[tuple[Design, int]]:
        """Return [(design that contains point ``number`` of the union, number of the point in that design)]."""
        first_size = len(self._first)
        return [(self._first, number) if number < first_size else (self._second, number - first_size)]

    def probes(self) -> Sequence[int]:
        """Return the numbers of the points to check before a sweep runs: the `probes` of both designs."""
        return [*self._first.probes(), *(len(self._first) + number for number in self._second.probes())]

    def describe(self) -> dict[str, Any]:
        """Return the description of the union as JSON values. The key "of" has the descriptions of both designs."""
        descriptions = [self._first.describe(), self._second.describe()]
        return {"design": "Union", "points": len(self), "of": descriptions}

    def labels_of(self, path: str) -> Sequence[Any]:
        """Return the labels (texts in tables) of the values of ``path`` in both designs.

        The result is empty if a design cannot list its labels in advance.
        """
        first_labels, second_labels = self._first.labels_of(path), self._second.labels_of(path)
        return (*first_labels, *second_labels) if len(first_labels) and len(second_labels) else ()

    def text(self) -> str:
        """Return a short description of the design, such as "protocol.ttl (3) | 4 points of protocol.ttl"."""
        return f"{self._first.text()} | {self._second.text()}"


def crossed(outer: Any, inner: Any) -> Design:
    """Return ``outer * inner``: each point of ``outer`` combined with each point of ``inner``.

    Raises ScenarioError if both plans vary the same path.
    """
    return Crossed(design_of(outer), design_of(inner))


def union(first: Any, second: Any) -> Design:
    """Return ``first | second``: all points of both plans; a point in both occurs once.

    Raises ScenarioError if one plan varies a parameter (a path such as "protocol.ttl") that the other does not vary.
    """
    first, second = design_of(first), design_of(second)
    for design, other_design in ((first, second), (second, first)):
        missing_paths = [path for path in design.paths if path not in other_design.paths]
        if missing_paths:
            raise ScenarioError(
                f"one plan varies {missing_paths[0]} and the other does not; both must vary the same paths; "
                f'to add this path, use plan * {{"{missing_paths[0]}": [...]}}'
            )
    new_points = without(second, first, may_be_empty=True)
    return Union(first, new_points) if len(new_points) else first


def without(design: Any, other: Any, may_be_empty: bool = False) -> Design:
    """Return ``design - other``: the design without the points that equal a point of ``other``.

    Only the parameters that ``other`` varies are compared: ``grid - points([{"protocol.ttl": 9}])`` has no point with
    this ttl. Raises ScenarioError if ``other`` varies a parameter that ``design`` does not vary. Also raises it if all
    points are removed, unless ``may_be_empty``.
    """
    design, other = design_of(design), design_of(other)
    missing_paths = [path for path in other.paths if path not in design.paths]
    if missing_paths:
        raise ScenarioError(
            f"in the difference a - b, plan b varies {missing_paths[0]}, but plan a varies only "
            f"{', '.join(design.paths)}; b may vary only what a varies"
        )
    removed_numbers = numbers_in(design, other)
    if len(removed_numbers) == len(design) and not may_be_empty:
        raise ScenarioError("the difference a - b of two plans is empty: every point of a is also a point of b")
    return Without(design, removed_numbers) if len(removed_numbers) else design


def design_of(plan: Any) -> Design:
    """Return ``plan`` if it is a `Design`, or make the grid of all combinations from a mapping {path: values}.

    Raises ScenarioError for any other ``plan``.
    """
    if isinstance(plan, Design):
        return plan
    if isinstance(plan, Mapping):
        return grid(plan)
    raise ScenarioError(
        f'a plan is {plan!r:.80}; it must be a plan of wb.plans, or a mapping such as {{"seed": range(30)}}'
    )


_PLAIN = (int, float, str, type(None))
_POINTS_PER_SEARCH = 20  # points that can be compared in the time of a search


class Finder:
    """An index that finds the points of a design by the values of ``paths``, some of the parameters that it varies.

    The index is a sorted array with a hash of eight bytes for each point. Finding ten points among a million takes ten
    binary searches.
    """

    def __init__(self, design: Design, paths: Sequence[str]) -> None:
        self._design = design
        self._paths = paths
        hashes = hashes_of(design, paths)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def _make_key(self, number: int) -> tuple[Any, ...]:
        return key(self._design.overrides(number), self._paths)

    def numbers(self, overrides: dict[str, Any]) -> np.ndarray:
        """Return the numbers (int64, ascending) of the points with the values in ``overrides``, {path: value}.

        Only the indexed parameters ``paths`` are compared; ``overrides`` may have others.
        """
        wanted_key = key(overrides, self._paths)
        first_index, end_index = (np.searchsorted(self._hashes, hash(wanted_key), side) for side in ("left", "right"))
        return np.array(
            [number for number in self._order[first_index:end_index].tolist() if self._make_key(number) == wanted_key],
            np.int64,
        )

    def duplicates(self) -> tuple[int, int] | None:
        """Return the numbers of two points with equal values of all indexed parameters; None if all points differ."""
        for index in np.flatnonzero(self._hashes[1:] == self._hashes[:-1]).tolist():
            first_number, second_number = self._order[index : index + 2].tolist()
            if self._make_key(first_number) == self._make_key(second_number):
                return first_number, second_number
        return None


def hashes_of(design: Design, paths: Sequence[str]) -> np.ndarray:
    """Return an array (int64) with a hash for each point of ``design``, computed from its values of ``paths``.

    ``paths`` are paths of varied parameters. Hashes are valid in this process only.
    """
    count = len(design)
    return np.fromiter((hash(key(design.overrides(number), paths)) for number in range(count)), np.int64, count)


def key(overrides: dict[str, Any], paths: Iterable[str]) -> tuple[Any, ...]:
    """Return a point's values of the parameters ``paths`` as a hashable tuple; equal values give equal tuples.

    ``overrides`` has the values of all varied parameters of the point, {path: value}.
    """
    point_values = (overrides[path] for path in paths)
    return tuple(value if isinstance(value, _PLAIN) else values.identity_text(value) for value in point_values)


def numbers_in(design: Design, other: Design) -> np.ndarray:
    """Return the numbers (int64, ascending) of the points of ``design`` that equal a point of ``other``.

    Points are equal if they agree in all parameters that ``other`` varies. ``design`` must vary these parameters too.
    If ``other`` has few points, each of them is looked up in an index of ``design``; otherwise all points of both
    designs are compared.
    """
    paths = other.paths
    if len(other) * _POINTS_PER_SEARCH <= len(design):
        find = _make_find_function(design, paths)
        return np.unique(np.concatenate([find(other.overrides(number)) for number in range(len(other))]))
    hashes, other_hashes = hashes_of(design, paths), hashes_of(other, paths)
    candidate_numbers = np.flatnonzero(np.isin(hashes, other_hashes)).tolist()
    wanted_keys = {
        key(other.overrides(number), paths) for number in np.flatnonzero(np.isin(other_hashes, hashes)).tolist()
    }
    return np.array(
        [number for number in candidate_numbers if key(design.overrides(number), paths) in wanted_keys], np.int64
    )


def _make_find_function(design: Design, paths: Sequence[str]) -> Any:
    """Return a function from {path of a parameter: value} to the numbers of the points with these values.

    ``paths`` are the parameters by which to search. In a product each of the two designs is searched by itself, and in
    a grid each axis. So the combinations, which may be millions, are not enumerated.
    """
    factors = getattr(design, "factors", None)
    if isinstance(design, Grid):
        factors = [Grid((axis,)) for axis in design.axes] if len(design.axes) > 1 else None
    if not factors:
        own_paths = [path for path in paths if path in design.paths]
        all_numbers = np.arange(len(design))
        return Finder(design, own_paths).numbers if own_paths else lambda overrides: all_numbers
    find_and_size = [(_make_find_function(factor, paths), len(factor)) for factor in factors]

    def find(overrides: dict[str, Any]) -> np.ndarray:
        numbers = np.zeros(1, np.int64)
        for find_in_factor, factor_size in find_and_size:
            numbers = (numbers[:, None] * factor_size + find_in_factor(overrides)).ravel()
        return numbers

    return find

"""Plans made of plans: each point of one with each of another, the points of both, those of one without another's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.errors import ScenarioError
from workbench.sweeps import values
from workbench.sweeps.design import PROBES, Design, Grid, evenly, grid


class Composed(Design):
    """A design whose points are made of points of other designs."""

    def parts(self, number: int) -> Iterable[tuple[Design, int]]:
        """Return the designs that a point takes its values from, and the number of its part in each."""
        raise NotImplementedError

    def overrides(self, number: int) -> dict[str, Any]:
        """path -> value of a point."""
        return {path: value for design, its in self.parts(number) for path, value in design.overrides(its).items()}

    def labels(self, number: int) -> dict[str, Any]:
        """path -> label of a point."""
        return {path: label for design, its in self.parts(number) for path, label in design.labels(its).items()}


class Crossed(Composed):
    """Each point of ``outer`` with each of ``inner``, which turns faster."""

    def __init__(self, outer: Design, inner: Design) -> None:
        both = [path for path in outer.paths if path in inner.paths]
        if both:
            raise ScenarioError(f"both plans vary {both[0]}; of two that are crossed only one can say what it is")
        self.factors = (outer, inner)
        self.paths = (*outer.paths, *inner.paths)

    def __len__(self) -> int:
        outer, inner = self.factors
        return len(outer) * len(inner)

    def parts(self, number: int) -> Iterable[tuple[Design, int]]:
        """Return both factors with the numbers of a point in them."""
        return zip(self.factors, divmod(number, len(self.factors[1])), strict=True)

    def probes(self) -> Sequence[int]:
        """The probes of both side by side, each once, and some points from all over the plan."""
        outer, inner = (factor.probes() for factor in self.factors)
        size = len(self.factors[1])
        longest = max(len(outer), len(inner))
        paired = {outer[i % len(outer)] * size + inner[i % len(inner)] for i in range(longest)}
        return sorted(paired | set(evenly(len(self), PROBES)))

    def describe(self) -> dict[str, Any]:
        """Its factors."""
        return {"design": "Crossed", "points": len(self), "of": [factor.describe() for factor in self.factors]}

    def labels_of(self, path: str) -> Sequence[Any]:
        """The labels of a path in the factor that varies it."""
        return next((factor.labels_of(path) for factor in self.factors if path in factor.paths), ())

    def text(self) -> str:
        """Its factors: "protocol.ttl (3) × seed (30)"."""
        return " × ".join(factor.text() for factor in self.factors)


class Without(Composed):
    """The points of a design but some: ``taken`` are the numbers of these in it, int64, ascending."""

    def __init__(self, design: Design, taken: np.ndarray) -> None:
        self.paths = design.paths
        self._design = design
        self._taken = taken
        # How many points stay before each that is taken: the way from a number to the one in the design.
        self._before = taken - np.arange(len(taken))

    def __len__(self) -> int:
        return len(self._design) - len(self._taken)

    def parts(self, number: int) -> Iterable[tuple[Design, int]]:
        """Return the design with the number of a point in it."""
        return [(self._design, number + int(np.searchsorted(self._before, number, side="right")))]

    def probes(self) -> Sequence[int]:
        """The probes of the design that stay, and some points from all over the plan."""
        stay = np.setdiff1d(np.asarray(self._design.probes()), self._taken)
        here = stay - np.searchsorted(self._taken, stay)
        return sorted({*here.tolist(), *evenly(len(self), PROBES)})

    def describe(self) -> dict[str, Any]:
        """The design, and how many of its points are not there."""
        return {"design": "Without", "points": len(self), "of": self._design.describe(), "taken": len(self._taken)}

    def labels_of(self, path: str) -> Sequence[Any]:
        """The labels of a path, also those that no point has any more."""
        return self._design.labels_of(path)

    def text(self) -> str:
        """What is varied, and how many points of it are not there: "protocol.ttl (3) × seed (30) but 6 points"."""
        return f"{self._design.text()} but {len(self._taken)} points"


class Union(Composed):
    """The points of one design, then those of another, which has none of them."""

    def __init__(self, first: Design, second: Design) -> None:
        self.paths = first.paths
        self._first, self._second = first, second

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def parts(self, number: int) -> Iterable[tuple[Design, int]]:
        """Return the one of both designs that has a point, with the number of the point in it."""
        first = len(self._first)
        return [(self._first, number) if number < first else (self._second, number - first)]

    def probes(self) -> Sequence[int]:
        """The probes of both."""
        return [*self._first.probes(), *(len(self._first) + number for number in self._second.probes())]

    def describe(self) -> dict[str, Any]:
        """Its parts."""
        parts = [self._first.describe(), self._second.describe()]
        return {"design": "Union", "points": len(self), "of": parts}

    def labels_of(self, path: str) -> Sequence[Any]:
        """The labels of a path in both; empty unless both know theirs."""
        first, second = self._first.labels_of(path), self._second.labels_of(path)
        return (*first, *second) if len(first) and len(second) else ()

    def text(self) -> str:
        """Its parts: "protocol.ttl (3) | 4 points of protocol.ttl"."""
        return f"{self._first.text()} | {self._second.text()}"


def crossed(outer: Any, inner: Any) -> Design:
    """``outer * inner``; ScenarioError if both vary a path."""
    return Crossed(design_of(outer), design_of(inner))


def union(first: Any, second: Any) -> Design:
    """``first | second``: points that both have are there once. ScenarioError if they vary different paths."""
    first, second = design_of(first), design_of(second)
    for one, other in ((first, second), (second, first)):
        missing = [path for path in one.paths if path not in other.paths]
        if missing:
            raise ScenarioError(
                f"one plan varies {missing[0]} and the other does not; say what it is there: "
                f'plan * {{"{missing[0]}": [...]}}'
            )
    left = without(second, first, may_be_empty=True)
    return Union(first, left) if len(left) else first


def without(design: Any, other: Any, may_be_empty: bool = False) -> Design:
    """``design - other``: the points that have the values of no point of ``other``, on the paths that this one varies.

    So ``grid - points([{"protocol.ttl": 9}])`` is the grid without all points of that ttl. Raises ScenarioError if
    ``other`` varies what ``design`` does not, and if nothing is left.
    """
    design, other = design_of(design), design_of(other)
    missing = [path for path in other.paths if path not in design.paths]
    if missing:
        raise ScenarioError(
            f"the plan does not vary {missing[0]}, so that no point goes by it; it varies {', '.join(design.paths)}"
        )
    taken = numbers_in(design, other)
    if len(taken) == len(design) and not may_be_empty:
        raise ScenarioError("nothing is left: the plan that is taken away has all points of the other one")
    return Without(design, taken) if len(taken) else design


def design_of(plan: Any) -> Design:
    """A design as it is, a mapping as its grid; ScenarioError for anything else."""
    if isinstance(plan, Design):
        return plan
    if isinstance(plan, Mapping):
        return grid(plan)
    raise ScenarioError(f'a plan is {plan!r:.80}; it must be one of wb.plans, or a mapping as {{"seed": range(30)}}')


_PLAIN = (int, float, str, type(None))
_LOOKS_A_SEARCH = 20  # at a point, that take as long as a search


class Finder:
    """The points of a design by their values on some of its paths.

    It keeps eight bytes a point, a hash, in order. So a union of a million points and ten takes ten searches.
    """

    def __init__(self, design: Design, paths: Sequence[str]) -> None:
        self._design = design
        self._paths = paths
        hashes = hashes_of(design, paths)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def _key(self, number: int) -> tuple[Any, ...]:
        return key(self._design.overrides(number), self._paths)

    def numbers(self, overrides: dict[str, Any]) -> np.ndarray:
        """The points that have these values on the finder's paths, whatever else they have; int64, ascending."""
        wanted = key(overrides, self._paths)
        low, high = (np.searchsorted(self._hashes, hash(wanted), side) for side in ("left", "right"))
        return np.array([one for one in self._order[low:high].tolist() if self._key(one) == wanted], np.int64)

    def twice(self) -> tuple[int, int] | None:
        """Two points that are the same, or None."""
        for place in np.flatnonzero(self._hashes[1:] == self._hashes[:-1]).tolist():
            first, second = self._order[place : place + 2].tolist()
            if self._key(first) == self._key(second):
                return first, second
        return None


def hashes_of(design: Design, paths: Sequence[str]) -> np.ndarray:
    """A hash of each point's values on some paths, int64; equal for equal values in this process alone."""
    count = len(design)
    return np.fromiter((hash(key(design.overrides(number), paths)) for number in range(count)), np.int64, count)


def key(overrides: dict[str, Any], paths: Iterable[str]) -> tuple[Any, ...]:
    """What tells points apart: values on some paths; hashable, and equal for equal values in this process alone."""
    found = (overrides[path] for path in paths)
    return tuple(value if isinstance(value, _PLAIN) else values.words(value) for value in found)


def numbers_in(design: Design, other: Design) -> np.ndarray:
    """The points of ``design`` that have the values of a point of ``other``, of whose paths it has all.

    int64, ascending, each once. It takes a search for each point of ``other`` if these are few, else a look at each
    point of both.
    """
    paths = other.paths
    if len(other) * _LOOKS_A_SEARCH <= len(design):
        find = _finds(design, paths)
        return np.unique(np.concatenate([find(other.overrides(number)) for number in range(len(other))]))
    hashes, others = hashes_of(design, paths), hashes_of(other, paths)
    candidates = np.flatnonzero(np.isin(hashes, others)).tolist()
    wanted = {key(other.overrides(number), paths) for number in np.flatnonzero(np.isin(others, hashes)).tolist()}
    return np.array([one for one in candidates if key(design.overrides(one), paths) in wanted], np.int64)


def _finds(design: Design, paths: Sequence[str]) -> Any:
    """A function from overrides to the numbers of the points that have them. A grid is not gone through for it."""
    factors = getattr(design, "factors", None)
    if isinstance(design, Grid):
        factors = [Grid((axis,)) for axis in design.axes] if len(design.axes) > 1 else None
    if not factors:
        own = [path for path in paths if path in design.paths]
        every = np.arange(len(design))
        return Finder(design, own).numbers if own else lambda overrides: every
    finds = [(_finds(factor, paths), len(factor)) for factor in factors]

    def find(overrides: dict[str, Any]) -> np.ndarray:
        numbers = np.zeros(1, np.int64)
        for one, size in finds:
            numbers = (numbers[:, None] * size + one(overrides)).ravel()
        return numbers

    return find

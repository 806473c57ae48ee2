"""Finding points by their values: which of a plan's points are in another one, and which are there twice.

A `Finder` keeps eight bytes a point, a hash, in order. So a union of a million points and ten takes ten searches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workbench.sweeps import values
from workbench.sweeps.design import Design, Grid

_PLAIN = (int, float, str, type(None))
_LOOKS_A_SEARCH = 20  # at a point, that take as long as a search


class Finder:
    """The points of a design by their values on some of its paths."""

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

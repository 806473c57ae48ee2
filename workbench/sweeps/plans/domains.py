"""What a parameter is drawn from: a range of numbers, whole numbers, or a list of values.

Each is a map from the unit interval, so that one sample of the unit cube serves all kinds. A number of a range is
rounded to nine digits: logarithms then come out alike whatever the mathematics library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.errors import ScenarioError
from workbench.sweeps.design import Axis, axis
from workbench.topology.graphs import is_number, is_whole


@dataclass(frozen=True)
class Between:
    """Numbers from ``low`` to ``high``; with ``log`` each order of magnitude has the same share of them."""

    low: float
    high: float
    log: bool = False

    def of(self, shares: np.ndarray) -> np.ndarray:
        """The values at ``shares`` (0 to 1) of the range, float64."""
        if not self.log:
            return self.low + shares * (self.high - self.low)
        return np.exp(math.log(self.low) + shares * (math.log(self.high) - math.log(self.low)))

    def value(self, found: Any) -> float:
        """What a scenario is given for a value of `of`: never beyond the ends."""
        return min(max(float(f"{found:.9g}"), self.low), self.high)

    def label(self, found: Any) -> Any:
        """What a table shows for it."""
        return self.value(found)

    def describe(self) -> dict[str, Any]:
        """The range, as JSON has it."""
        return {"between": [self.low, self.high], "log": self.log}


@dataclass(frozen=True)
class Whole:
    """The whole numbers from ``low`` to ``high``, both of them included."""

    low: int
    high: int

    def of(self, shares: np.ndarray) -> np.ndarray:
        """The values at ``shares`` (0 to 1), float64: each number has the same share."""
        return self.low + np.minimum(np.floor(shares * (self.high - self.low + 1)), self.high - self.low)

    def value(self, found: Any) -> int:
        """What a scenario is given for a value of `of`."""
        return int(found)

    def label(self, found: Any) -> Any:
        """What a table shows for it."""
        return int(found)

    def describe(self) -> dict[str, Any]:
        """The range, as JSON has it."""
        return {"whole": [self.low, self.high]}


@dataclass(frozen=True)
class Listed:
    """The values of an axis, one as likely as the other."""

    axis: Axis

    def of(self, shares: np.ndarray) -> np.ndarray:
        """The places in the list at ``shares`` (0 to 1), float64."""
        count = len(self.axis.values)
        return np.minimum(np.floor(shares * count), count - 1)

    def value(self, found: Any) -> Any:
        """What a scenario is given for a place."""
        return self.axis.values[int(found)]

    def label(self, found: Any) -> Any:
        """What a table shows for it."""
        return self.axis.labels[int(found)]

    def describe(self) -> dict[str, Any]:
        """The labels of the values, as JSON has it."""
        return {"values": list(self.axis.labels)}


Domain = Between | Whole | Listed


def between(low: float, high: float, log: bool = False) -> Between:
    """Numbers from ``low`` to ``high``, for a plan to draw from; ScenarioError unless low is below high.

    With ``log`` a number between 1 and 10 is as likely as one between 10 and 100.

    >>> between(0.0, 0.3)
    Between(low=0.0, high=0.3, log=False)
    """
    for name, number in (("low", low), ("high", high)):
        if not is_number(number) or not math.isfinite(number):
            raise ScenarioError(f"between: {name} is {number!r:.60}; it must be a finite number")
    if not low < high:
        raise ScenarioError(f"between({low}, {high}) has nothing in it; low must be below high")
    if log and low <= 0:
        raise ScenarioError(f"between({low}, {high}, log=True): a logarithm needs numbers above 0")
    return Between(float(low), float(high), bool(log))


def whole(low: int, high: int) -> Whole:
    """The whole numbers from ``low`` to ``high``, both included, for a plan to draw from.

    Raises ScenarioError unless low is below high.

    >>> whole(3, 12)
    Whole(low=3, high=12)
    """
    for name, number in (("low", low), ("high", high)):
        if not is_whole(number):
            raise ScenarioError(f"whole: {name} is {number!r:.60}; it must be a whole number")
    if not low < high:
        raise ScenarioError(f"whole({low}, {high}) has nothing to choose from; low must be below high")
    return Whole(int(low), int(high))


def domains_of(over: Any) -> dict[str, Domain]:
    """path -> domain of a mapping as `latin_hypercube` takes it; ScenarioError says what is wrong with it."""
    if not isinstance(over, Mapping) or not over:
        raise ScenarioError(
            f'over is {over!r:.80}; it must say what to draw: over={{"radio.loss": wb.plans.between(0.0, 0.3)}}'
        )
    return {path: _domain(path, given) for path, given in over.items()}


def _domain(path: Any, given: Any) -> Domain:
    if isinstance(given, (Between, Whole)):
        axis(path, [given.low])  # A path that is none is told as for any axis.
        return given
    if isinstance(given, tuple) and len(given) == 2 and all(map(is_number, given)):
        low, high = given
        raise ScenarioError(
            f"{path} is drawn from {given}: write between({low}, {high}) for the numbers between the two, or "
            f"[{low}, {high}] for these two alone"
        )
    return Listed(axis(path, given))

"""Domains from which parameters are drawn: a range of numbers, whole numbers, or a list of values.

A domain maps the unit interval [0, 1] to its values. So a method of sampling only has to choose points of the unit
cube. Numbers of a range are rounded to nine digits, so that logarithms give the same values with all mathematics
libraries.
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
    """A range of numbers from ``low`` to ``high``; if ``log`` is True, each order of magnitude is equally likely."""

    low: float
    high: float
    log: bool = False

    def at(self, shares: np.ndarray) -> np.ndarray:
        """Map ``shares``, numbers in [0, 1], to values (float64) from ``low`` (share 0) to ``high`` (share 1)."""
        if not self.log:
            return self.low + shares * (self.high - self.low)
        return np.exp(math.log(self.low) + shares * (math.log(self.high) - math.log(self.low)))

    def value(self, drawn: Any) -> float:
        """Convert ``drawn``, a number that `at` returned, to the parameter's value.

        The value is rounded to nine digits, and then limited to the range.
        """
        return min(max(float(f"{drawn:.9g}"), self.low), self.high)

    def label(self, drawn: Any) -> Any:
        """Return the label that tables show for ``drawn``, a number that `at` returned."""
        return self.value(drawn)

    def describe(self) -> dict[str, Any]:
        """Return {"between": [low, high], "log": log}, which represents this range in a plan's JSON description."""
        return {"between": [self.low, self.high], "log": self.log}


@dataclass(frozen=True)
class Whole:
    """A range of whole numbers from ``low`` to ``high``, both included."""

    low: int
    high: int

    def at(self, shares: np.ndarray) -> np.ndarray:
        """Map ``shares``, numbers in [0, 1], to whole numbers of the range (as float64), all equally probable."""
        return self.low + np.minimum(np.floor(shares * (self.high - self.low + 1)), self.high - self.low)

    def value(self, drawn: Any) -> int:
        """Convert ``drawn``, a float that `at` returned, to the parameter's value, an int."""
        return int(drawn)

    def label(self, drawn: Any) -> Any:
        """Return the label that tables show for ``drawn``, a whole number that `at` returned."""
        return int(drawn)

    def describe(self) -> dict[str, Any]:
        """Return {"whole": [low, high]}, which represents this range in the JSON description of a plan."""
        return {"whole": [self.low, self.high]}


@dataclass(frozen=True)
class Listed:
    """The list of the values of ``axis``; all values are equally probable in a plan."""

    axis: Axis

    def at(self, shares: np.ndarray) -> np.ndarray:
        """Map ``shares``, positions in [0, 1], to indices of the axis's list of values.

        Each index has an equal part of [0, 1]. The indices are whole numbers in an array of float64.
        """
        count = len(self.axis.values)
        return np.minimum(np.floor(shares * count), count - 1)

    def value(self, drawn: Any) -> Any:
        """Return the value of the list at the index ``drawn``, which `at` returned."""
        return self.axis.values[int(drawn)]

    def label(self, drawn: Any) -> Any:
        """Return the label that tables show for ``drawn``, an index into the list; `at` returned the index."""
        return self.axis.labels[int(drawn)]

    def describe(self) -> dict[str, Any]:
        """Return {"values": labels of the listed values}, which represents this list in a plan's JSON description."""
        return {"values": list(self.axis.labels)}


Domain = Between | Whole | Listed


def between(low: float, high: float, log: bool = False) -> Between:
    """Return the range of numbers from ``low`` to ``high``, from which a plan draws.

    With ``log`` a number from 1 to 10 is as likely as a number from 10 to 100. Raises ScenarioError unless ``low`` is
    below ``high``.

    >>> between(0.0, 0.3)
    Between(low=0.0, high=0.3, log=False)
    """
    for name, number in (("low", low), ("high", high)):
        if not is_number(number) or not math.isfinite(number):
            raise ScenarioError(f"between: {name} is {number!r:.60}; it must be a finite number")
    if not low < high:
        raise ScenarioError(f"between({low}, {high}) is empty; low must be below high")
    if log and low <= 0:
        raise ScenarioError(f"between({low}, {high}, log=True): with log, low and high must be above 0")
    return Between(float(low), float(high), bool(log))


def whole(low: int, high: int) -> Whole:
    """Return the range of whole numbers from ``low`` to ``high``, both included, from which a plan draws.

    Raises ScenarioError unless ``low`` is below ``high``.

    >>> whole(3, 12)
    Whole(low=3, high=12)
    """
    for name, number in (("low", low), ("high", high)):
        if not is_whole(number):
            raise ScenarioError(f"whole: {name} is {number!r:.60}; it must be a whole number")
    if not low < high:
        raise ScenarioError(f"whole({low}, {high}) is empty; low must be below high")
    return Whole(int(low), int(high))


def domains_of(over: Any) -> dict[str, Domain]:
    """Return {path: domain} for ``over``, which maps paths to ranges (`between`, `whole`) or lists of values.

    Raises ScenarioError for an invalid mapping.
    """
    if not isinstance(over, Mapping) or not over:
        raise ScenarioError(
            f"the argument `over` is {over!r:.80}; it must map paths to ranges or lists: "
            f'over={{"radio.loss": wb.plans.between(0.0, 0.3)}}'
        )
    return {path: _make_domain(path, choice) for path, choice in over.items()}


def _make_domain(path: Any, choice: Any) -> Domain:
    if isinstance(choice, (Between, Whole)):
        axis(path, [choice.low])  # Raises for an invalid path.
        return choice
    if isinstance(choice, tuple) and len(choice) == 2 and all(map(is_number, choice)):
        low, high = choice
        raise ScenarioError(
            f"the argument `over` has the tuple {choice} for {path}; use between({low}, {high}) for all numbers in "
            f"between, or [{low}, {high}] for these two values"
        )
    return Listed(axis(path, choice))

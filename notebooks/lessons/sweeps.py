"""Exercises of lesson 6: a plan, the number of runs for a confidence interval, the runs that pairing saves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import stdev
from typing import Any

from workbench import plans
from workbench.sweeps.design import Design

from .exercise import Exercise, Verdict, is_number

QUANTILE = 1.96  # of the normal distribution, for an interval of 95 %
TOLERANCE = 0.15  # of a number of runs


def plan(answer: Design, protocols: Mapping[str, Any], losses: Sequence[float], left_out: tuple[str, float]) -> Verdict:
    """Judge a plan: every protocol at every loss with the seeds 1 to 10, except the combination ``left_out``."""
    every = plans.grid({"protocol": dict(protocols), "radio.loss": list(losses)}) * plans.seeds(10)
    expected = {point for point in _points(every) if point[1] != (protocols[left_out[0]], left_out[1])}
    given = _points(answer)
    numbers = f"The plan has {len(given):,} points; {len(expected):,} are wanted"
    if len(given) != len(answer):
        return Verdict(False, "The plan contains some points twice.")
    if given - expected:
        return Verdict(False, f"{numbers}. It contains a point that is not wanted.")
    if expected - given:
        return Verdict(False, f"{numbers}. A wanted point is missing.")
    return Verdict(True, f"The plan has the {len(given):,} points that are wanted.")


def runs_for_half_width(answer: float, values: Sequence[float], half_width: float) -> Verdict:
    """Judge how many runs give a 95 % interval of the mean with this half-width; ``values`` are those of some runs."""
    deviation = stdev(float(value) for value in values)
    return _compare(answer, (QUANTILE * deviation / half_width) ** 2, f"The standard deviation is {deviation:.3f}.")


def unpaired_runs(answer: float, row: Mapping[str, float]) -> Verdict:
    """Judge the number of unpaired runs that give an interval as narrow as the interval of the paired runs.

    ``row`` is a row of `workbench.plans.paired_differences`.
    """
    ratio = (row["unpaired_high"] - row["unpaired_low"]) / (row["high"] - row["low"])
    return _compare(answer, row["pairs"] * ratio**2, f"Without pairs the interval is {ratio:.1f} times as wide.")


def _points(design: Design) -> set[tuple[Any, ...]]:
    """Return the points of a plan as a set of (seed, (protocol, loss)); at most the first 100,000 points."""
    points = (design.overrides(number) for number in range(min(len(design), 100_000)))
    return {(point.get("seed"), (point.get("protocol"), point.get("radio.loss"))) for point in points}


def _compare(answer: float, expected: float, reason: str) -> Verdict:
    if not math.isfinite(float(answer)) or abs(float(answer) - expected) > TOLERANCE * expected:
        return Verdict(
            False, f"{float(answer):,.0f} runs are too {'few' if float(answer) < expected else 'many'}. {reason}"
        )
    return Verdict(True, f"About {expected:,.0f} runs. {reason}")


EXERCISES = {
    "06.1": Exercise("a plan, made with wb.plans", lambda answer: isinstance(answer, Design), plan),
    "06.2": Exercise("a number of runs", is_number, runs_for_half_width),
    "06.3": Exercise("a number of runs", is_number, unpaired_runs),
}

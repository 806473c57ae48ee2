"""Runs of small scenarios, from which checks compute the right answer, and a check of the cheapest scenario."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from workbench.sim import runner
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario

from .exercise import Verdict

SEEDS = 2  # consecutive, from the scenario's own seed; the result of a single run can be chance


# With the reference engine: compiling a fast one would take longer than the run.
@lru_cache(maxsize=64)
def run_of(scenario: Scenario) -> Run:
    """Return the scenario's run, with its trace."""
    return runner.play(scenario, engine="reference")


@lru_cache(maxsize=256)
def mean(scenario: Scenario, metric: str, seeds: int = SEEDS) -> float:
    """Return the mean of a metric over ``seeds`` consecutive seeds; the first is the scenario's own seed."""
    values = [_metrics(scenario.replace(seed=scenario.seed + offset))[metric] for offset in range(seeds)]
    return float(sum(values)) / seeds


@lru_cache(maxsize=256)
def _metrics(scenario: Scenario) -> Mapping[str, float]:
    return runner.play(scenario, engine="reference", record="metrics").metrics.to_dict()


def cheapest(answer: Any, scenarios: Mapping[Any, Scenario], metric: str, counted: str) -> Verdict:
    """Judge whether ``answer`` is the key in ``scenarios`` of the scenario with the smallest mean of a metric.

    ``counted`` is the plural noun for the metric in the verdict, such as "frames".
    """
    if not any(answer == name for name in scenarios):
        return Verdict(False, f"{answer!r:.40} is not one of {', '.join(map(repr, scenarios))}.")
    means = {name: mean(scenario, metric) for name, scenario in scenarios.items()}
    best = min(means, key=lambda name: means[name])
    summary = ", ".join(f"{value:,.0f} with {name!r}" for name, value in means.items())
    if means[answer] == means[best]:
        return Verdict(True, f"These are the fewest {counted}: {summary}.")
    return Verdict(False, f"With {answer!r} there are {means[answer]:,.0f} {counted}; another choice has fewer.")

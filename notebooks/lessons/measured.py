"""Small scenarios that are run to know the truth, and which of several is the cheapest."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from workbench.sim import runner
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario

from .exercise import Verdict

SEEDS = 2  # from the scenario's own on: one run alone may be luck


# The reference engine: a check is not worth a compilation.
@lru_cache(maxsize=64)
def run_of(scenario: Scenario) -> Run:
    """The scenario's run, with its trace."""
    return runner.play(scenario, engine="reference")


@lru_cache(maxsize=256)
def mean(scenario: Scenario, metric: str, seeds: int = SEEDS) -> float:
    """A metric of a scenario, as the mean over its seed and those that follow it."""
    values = [_metrics(scenario.replace(seed=scenario.seed + more))[metric] for more in range(seeds)]
    return float(sum(values)) / seeds


@lru_cache(maxsize=256)
def _metrics(scenario: Scenario) -> Mapping[str, float]:
    return runner.play(scenario, engine="reference", record="metrics").metrics.to_dict()


def cheapest(answer: Any, scenarios: Mapping[Any, Scenario], metric: str, counted: str) -> Verdict:
    """Whether ``answer`` names the scenario with the smallest mean of a metric, of which ``counted`` is the noun."""
    if not any(answer == name for name in scenarios):
        return Verdict(False, f"{answer!r:.40} is not one of {', '.join(map(repr, scenarios))}.")
    means = {name: mean(one, metric) for name, one in scenarios.items()}
    best = min(means, key=lambda name: means[name])
    said = ", ".join(f"{value:,.0f} with {name!r}" for name, value in means.items())
    if means[answer] == means[best]:
        return Verdict(True, f"These are the fewest {counted}: {said}.")
    return Verdict(False, f"With {answer!r} there are {means[answer]:,.0f} {counted}; another choice has fewer.")

"""Exercises of lesson 9: the cost of a method, the parameter with the largest effect, a value under a constraint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import Scenario
from workbench.sweeps.plans.sensitivity import SensitivityResult

from .exercise import Exercise, Verdict, is_number, is_text
from .measured import mean

SEEDS = 4
SHARE_OF_BYTES = 0.9


def morris_runs(answer: Any, over: Mapping[str, Any], samples: int, seeds: int) -> Verdict:
    """Judge the number of runs that Morris's method needs for ``samples`` walks with ``seeds`` runs at each point."""
    true = samples * (len(over) + 1) * seeds
    if float(answer) != true:
        return Verdict(False, f"It is not {float(answer):,.0f}. Count the points of a walk: a start, and its steps.")
    return Verdict(True, f"{samples} walks of {len(over) + 1} points, with {seeds} runs each, are {true:,} runs.")


def largest_effect(answer: str, result: SensitivityResult) -> Verdict:
    """Judge the name of a parameter: its mean effect on the metric must be the largest in ``result``."""
    effects = dict(zip(result.indices["parameter"], result.indices["mu_star"], strict=True))
    if answer not in effects:
        return Verdict(False, f"{answer!r:.40} is not one of {', '.join(map(repr, effects))}.")
    if effects[answer] < max(effects.values()):
        return Verdict(
            False, f"A step of {answer} changes {result.metric} by {effects[answer]:.2f}; another changes it more."
        )
    return Verdict(True, f"A step of {answer} changes {result.metric} by {effects[answer]:.2f}.")


def cheap_gossip(answer: Protocol, flooding: Scenario, least_delivery: float) -> Verdict:
    """Judge a protocol: it must deliver at least ``least_delivery``, with at most 90 % of flooding's bytes."""
    changed = flooding.replace(protocol=answer)
    ratio, sent = mean(changed, "delivery_ratio", SEEDS), mean(changed, "bytes_sent", SEEDS)
    most = SHARE_OF_BYTES * mean(flooding, "bytes_sent", SEEDS)
    outcome = f"{ratio:.1%} of the readings arrive for {sent:,.0f} B"
    if ratio < least_delivery:
        return Verdict(False, f"{outcome}; at least {least_delivery:.0%} must arrive.")
    if sent > most:
        return Verdict(False, f"{outcome}; at most {most:,.0f} B are allowed.")
    return Verdict(True, f"{outcome}.")


EXERCISES = {
    "09.1": Exercise("a number of runs", is_number, morris_runs),
    "09.2": Exercise('the path of a parameter, such as "radio.loss"', is_text, largest_effect),
    "09.3": Exercise("a protocol", lambda answer: isinstance(answer, Protocol), cheap_gossip),
}

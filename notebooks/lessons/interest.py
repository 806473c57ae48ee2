"""Exercises of lesson 1: subscriptions, the position of the sink, exploration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.analysis.explain import mismatch
from workbench.attributes.model import check_subscription, one_way_match
from workbench.attributes.text import parse
from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import Scenario

from .exercise import Exercise, Verdict, is_number, is_text
from .matching import judge_matches
from .measured import cheapest, mean

SHARE_OF_FRAMES = 0.75
SHARE_OF_READINGS = 0.99


def subscription(answer: str, wanted: Iterable[str], unwanted: Iterable[str]) -> Verdict:
    """Judge a subscription: it must match all wanted publications and none of the unwanted ones."""
    constraints = check_subscription(parse(answer))
    return judge_matches(
        wanted,
        unwanted,
        lambda text: one_way_match(constraints, parse(text)),
        lambda text: mismatch(Protocol(), answer, [text]),
    )


def sink_position(answer: Any, scenarios: Mapping[Any, Scenario]) -> Verdict:
    """Judge the number of a node: with the sink at this node, the network must send the fewest frames."""
    return cheapest(answer, scenarios, "transmissions", "frames")


def frugal_parameters(answer: Protocol, scenario: Scenario) -> Verdict:
    """Judge parameters: they must save a quarter of the frames and lose at most one reading in a hundred."""
    if type(answer) is not type(scenario.protocol):
        return Verdict(False, "That is another protocol; change only the parameters of the scenario's own.")
    changed = scenario.replace(protocol=answer)
    arrived, arrives = mean(scenario, "delivered"), mean(changed, "delivered")
    frames, fewer = mean(scenario, "transmissions"), mean(changed, "transmissions")
    saving = f"{fewer:,.0f} frames in place of {frames:,.0f}, and {arrives:g} readings arrive in place of {arrived:g}"
    if arrives < SHARE_OF_READINGS * arrived:
        return Verdict(False, f"It loses readings: {saving}.")
    if fewer > SHARE_OF_FRAMES * frames:
        return Verdict(
            False, f"It sends too much: {saving}; at most {SHARE_OF_FRAMES * frames:,.0f} frames are allowed."
        )
    return Verdict(True, f"{saving[0].upper()}{saving[1:]}.")


EXERCISES = {
    "01.1": Exercise('the text of a subscription, such as "TEMP GE 30"', is_text, subscription),
    "01.2": Exercise("the number of a node", is_number, sink_position),
    "01.3": Exercise(
        "the scenario's protocol with other parameters", lambda answer: isinstance(answer, Protocol), frugal_parameters
    ),
}

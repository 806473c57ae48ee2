"""Exercises of lesson 1: subscriptions, the place of the sink, exploring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.analysis.explain import mismatch
from workbench.attributes.model import check_subscription, one_way_match
from workbench.attributes.text import parse
from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import Scenario

from .exercise import Exercise, Verdict, is_number, is_text
from .measured import cheapest, mean
from .telling_apart import tells_apart

SHARE_OF_FRAMES = 0.75
SHARE_OF_READINGS = 0.99


def subscription(answer: str, wanted: Iterable[str], unwanted: Iterable[str]) -> Verdict:
    """A subscription that matches all wanted publications and no other."""
    asked = check_subscription(parse(answer))
    return tells_apart(
        wanted,
        unwanted,
        lambda text: one_way_match(asked, parse(text)),
        lambda text: mismatch(Protocol(), answer, [text]),
    )


def place(answer: Any, scenarios: Mapping[Any, Scenario]) -> Verdict:
    """The place of the sink at which the fewest frames are sent."""
    return cheapest(answer, scenarios, "transmissions", "frames")


def thrift(answer: Protocol, scenario: Scenario) -> Verdict:
    """Parameters with which at most three quarters of the frames are sent and (nearly) no reading is lost."""
    if type(answer) is not type(scenario.protocol):
        return Verdict(False, "That is another protocol; change only the parameters of the scenario's own.")
    changed = scenario.replace(protocol=answer)
    arrived, arrives = mean(scenario, "delivered"), mean(changed, "delivered")
    frames, fewer = mean(scenario, "transmissions"), mean(changed, "transmissions")
    said = f"{fewer:,.0f} frames in place of {frames:,.0f}, and {arrives:g} readings arrive in place of {arrived:g}"
    if arrives < SHARE_OF_READINGS * arrived:
        return Verdict(False, f"It loses readings: {said}.")
    if fewer > SHARE_OF_FRAMES * frames:
        return Verdict(False, f"It sends too much: {said}; at most {SHARE_OF_FRAMES * frames:,.0f} frames are allowed.")
    return Verdict(True, f"{said[0].upper()}{said[1:]}.")


EXERCISES = {
    "01.1": Exercise('the text of a subscription, such as "TEMP GE 30"', is_text, subscription),
    "01.2": Exercise("the number of a node", is_number, place),
    "01.3": Exercise("the scenario's protocol with other parameters", lambda one: isinstance(one, Protocol), thrift),
}

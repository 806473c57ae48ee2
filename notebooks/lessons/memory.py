"""Exercises of lesson 8: settings with which an image fits a mote, what a list costs, how long it has to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.motes import footprint
from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import Scenario

from .exercise import Exercise, Verdict, is_number, is_text
from .measured import run_of

SHARE_OF_DELIVERIES = 0.99


def fits(answer: Protocol, scenario: Scenario, most_B: int) -> Verdict:
    """Settings whose image takes ``most_B`` of RAM at most, and which deliver as much as the scenario's own."""
    if type(answer) is not type(scenario.protocol):
        return Verdict(False, "That is another protocol; change only the settings of the scenario's own.")
    own = run_of(scenario).metrics["delivery_ratio"]
    ratio = run_of(scenario.replace(protocol=answer)).metrics["delivery_ratio"]
    ram_B = footprint(answer).ram_B
    said = f"The image takes {ram_B:,} B of RAM, and {ratio:.1%} of what is asked for arrives"
    if ram_B > most_B:
        return Verdict(False, f"{said}; a mote with {most_B:,} B has no room for it.")
    if not ratio >= SHARE_OF_DELIVERIES * own:
        return Verdict(False, f"{said}; with the scenario's own settings it is {own:.1%}: a list is too short.")
    return Verdict(True, f"{said}.")


def dearest(answer: Any, protocols: Mapping[Any, Protocol]) -> Verdict:
    """The one of several settings whose image takes the least RAM."""
    if not any(answer == name for name in protocols):
        return Verdict(False, f"{answer!r:.40} is not one of {', '.join(map(repr, protocols))}.")
    taken = {name: footprint(one).ram_B for name, one in protocols.items()}
    if taken[answer] > min(taken.values()):
        return Verdict(False, f"With {answer!r} the image takes {taken[answer]:,} B; another choice takes less.")
    said = ", ".join(f"{size_B:,} B with {name!r}" for name, size_B in taken.items())
    return Verdict(True, f"That saves the most: {said}.")


def least(answer: Any, scenarios: Mapping[int, Scenario]) -> Verdict:
    """The smallest of several numbers with which as much arrives as with any."""
    if not any(answer == number for number in scenarios):
        return Verdict(False, f"{answer!r:.40} is not one of {', '.join(map(str, scenarios))}.")
    ratios = {number: run_of(one).metrics["delivery_ratio"] for number, one in scenarios.items()}
    said = f"With {answer} entries {ratios[answer]:.1%} of what is asked for arrives"
    if ratios[answer] < max(ratios.values()):
        return Verdict(False, f"{said}; with more entries it is more.")
    if any(number < answer for number in ratios if ratios[number] == ratios[answer]):
        return Verdict(False, f"{said}, and so it does with fewer.")
    return Verdict(True, f"{said}; with one less it is {ratios.get(answer - 1, 0.0):.1%}.")


EXERCISES = {
    "08.1": Exercise("the scenario's protocol", lambda one: isinstance(one, Protocol), fits),
    "08.2": Exercise("the name of a setting", is_text, dearest),
    "08.3": Exercise("a number of entries", is_number, least),
}

"""Exercises of lesson 8: settings whose image fits a mote, the memory of a list, the length that a list needs."""

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
    """Judge settings: the mote's program must fit in ``most_B`` bytes of RAM and deliver 99 % of the previous share."""
    if type(answer) is not type(scenario.protocol):
        return Verdict(False, "That is another protocol; change only the settings of the scenario's own.")
    own = run_of(scenario).metrics["delivery_ratio"]
    ratio = run_of(scenario.replace(protocol=answer)).metrics["delivery_ratio"]
    ram_B = footprint(answer).ram_B
    result = f"The image takes {ram_B:,} B of RAM, and {ratio:.1%} of the expected samples arrive"
    if ram_B > most_B:
        return Verdict(False, f"{result}; a mote with {most_B:,} B has no room for it.")
    if not ratio >= SHARE_OF_DELIVERIES * own:
        return Verdict(False, f"{result}; with the scenario's own settings it is {own:.1%}: a list is too short.")
    return Verdict(True, f"{result}.")


def largest_saving(answer: Any, protocols: Mapping[Any, Protocol]) -> Verdict:
    """Judge the key of a protocol in ``protocols``: its program for a mote must need the least RAM."""
    if not any(answer == name for name in protocols):
        return Verdict(False, f"{answer!r:.40} is not one of {', '.join(map(repr, protocols))}.")
    taken = {name: footprint(protocol).ram_B for name, protocol in protocols.items()}
    if taken[answer] > min(taken.values()):
        return Verdict(False, f"With {answer!r} the image takes {taken[answer]:,} B; another choice takes less.")
    sizes = ", ".join(f"{size_B:,} B with {name!r}" for name, size_B in taken.items())
    return Verdict(True, f"This setting saves the most: {sizes}.")


def shortest_list(answer: Any, scenarios: Mapping[int, Scenario]) -> Verdict:
    """Judge a number of entries: it must be the smallest of those with the highest delivery ratio."""
    if not any(answer == number for number in scenarios):
        return Verdict(False, f"{answer!r:.40} is not one of {', '.join(map(str, scenarios))}.")
    ratios = {number: run_of(scenario).metrics["delivery_ratio"] for number, scenario in scenarios.items()}
    result = f"With {answer} entries {ratios[answer]:.1%} of the expected samples arrive"
    if ratios[answer] < max(ratios.values()):
        return Verdict(False, f"{result}; with more entries it is more.")
    if any(number < answer for number in ratios if ratios[number] == ratios[answer]):
        return Verdict(False, f"{result}, and so it does with fewer.")
    return Verdict(True, f"{result}; with one entry less it is {ratios.get(answer - 1, 0.0):.1%}.")


EXERCISES = {
    "08.1": Exercise("the scenario's protocol", lambda answer: isinstance(answer, Protocol), fits),
    "08.2": Exercise("the name of a setting", is_text, largest_saving),
    "08.3": Exercise("a number of entries", is_number, shortest_list),
}

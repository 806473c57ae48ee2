"""Exercises of lesson 13: the board that no other replaces, a refresh that bridges its loss, a protocol that fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import workbench as wb
from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import Scenario

from .exercise import Exercise, Verdict, is_number, is_text
from .figures.desk import longest_gap_s
from .measured import run_of

_LEAST_DELIVERY = 0.95
_TOLERANCE_S = 0.01
_OUTAGE_S = (10, 20)
_PLUGGED_OUT_S = (10, 11, 12, 13, 14)
_PLUGGED_IN_S = 35


def irreplaceable(answer: Any, scenario: Scenario, source: int) -> Verdict:
    """Judge a relay: without it, the longest gap in the readings of ``source`` must be longest."""
    sink = scenario.workload[0].at[0]
    relays = [node for node in scenario.topology if node not in (sink, source)]
    if not any(answer == node for node in relays):
        return Verdict(False, f"The boards between sink and source are {', '.join(map(str, relays))}.")
    gaps_s = {node: _gap_s(scenario, node, *_OUTAGE_S, source) for node in relays}
    node = int(answer)
    begin_s, end_s = _OUTAGE_S
    outcome = f"With board {node} off from {begin_s} to {end_s} s, the longest gap is {gaps_s[node]:.0f} s"
    if gaps_s[node] < max(gaps_s.values()):
        return Verdict(False, f"{outcome}: readings find another way. Without one of the boards the gap is longer.")
    return Verdict(True, f"{outcome}, as long as the board is off. No other board reaches the source.")


def bridges(answer: Protocol, scenario: Scenario, node: int, source: int, most_s: float, most_frames: int) -> Verdict:
    """Judge a protocol: whenever ``node`` is lost, a gap of at most ``most_s``, with at most ``most_frames`` frames."""
    crashes = [_without(scenario.replace(protocol=answer), node, begin_s) for begin_s in _PLUGGED_OUT_S]
    worst_s = max(longest_gap_s(run_of(crash), source) for crash in crashes)
    frames = max(int(run_of(crash).metrics["transmissions"]) for crash in crashes)
    outcome = f"The longest gap is {worst_s:.0f} s, and {frames} frames are sent"
    if not worst_s <= most_s + _TOLERANCE_S:
        return Verdict(False, f"{outcome}; a gap may last {most_s:g} s. When is the other way found?")
    if frames > most_frames:
        return Verdict(False, f"{outcome}; at most {most_frames} are allowed. Interests are frames, too.")
    return Verdict(True, f"{outcome}. A gap lasts one refresh and one reading, at worst.")


def cheapest_that_fits(
    answer: Any, scenario: Scenario, protocols: Mapping[str, Protocol], heaps_B: Mapping[str, int], heap_B: int
) -> Verdict:
    """Judge a protocol's name: it must fit ``heap_B``, deliver 95 % of the readings and send the fewest frames."""
    name = str(answer)
    if name not in protocols:
        return Verdict(False, f"The protocols are {', '.join(protocols)}.")
    if heaps_B[name] > heap_B:
        return Verdict(False, f"{name} needs a heap of {heaps_B[name]:,} B; the board has {heap_B:,} B.")
    fitting = {key: protocol for key, protocol in protocols.items() if heaps_B[key] <= heap_B}
    metrics = {key: run_of(scenario.replace(protocol=protocol)).metrics for key, protocol in fitting.items()}
    ratio = float(metrics[name]["delivery_ratio"])
    if ratio < _LEAST_DELIVERY:
        return Verdict(
            False, f"{name} delivers {ratio:.0%} of the readings; at least {_LEAST_DELIVERY:.0%} must arrive."
        )
    frames = {
        key: int(row["transmissions"]) for key, row in metrics.items() if row["delivery_ratio"] >= _LEAST_DELIVERY
    }
    if frames[name] > min(frames.values()):
        return Verdict(False, f"{name} fits and delivers, with {frames[name]} frames; another needs fewer.")
    return Verdict(True, f"{name} fits and delivers {ratio:.0%}, with {frames[name]} frames.")


def _without(scenario: Scenario, node: int, begin_s: float, end_s: float = _PLUGGED_IN_S) -> Scenario:
    return scenario.replace(workload=[*scenario.workload, wb.crash(node, begin_s, end_s)])


def _gap_s(scenario: Scenario, node: int, begin_s: float, end_s: float, source: int) -> float:
    return longest_gap_s(run_of(_without(scenario, node, begin_s, end_s)), source)


EXERCISES = {
    "13.1": Exercise("the number of a board", is_number, irreplaceable),
    "13.2": Exercise("a protocol", lambda answer: isinstance(answer, Protocol), bridges),
    "13.3": Exercise("the name of a protocol", is_text, cheapest_that_fits),
}

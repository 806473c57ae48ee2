"""Exercises of lesson 11: a break-even between two protocols, a winner, and a deployment of the reader's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.sim.scenario import Scenario

from .exercise import Exercise, Verdict, is_number, is_text

_TOLERANCE = 0.25
_SEEDS = 3
_FEWEST_S, _MOST_SINKS = 2.0, 50  # more readings or sinks would take too long to check
_YARDSTICK = "Flooding"
_AXES = ("sinks", "every_s")


def break_even_s(frame: Any, sources: int, period_s: float) -> float:
    """Return the interval in s between readings of a source at which Diffusion sends as many frames as Flooding.

    ``frame``: the runs of a comparison with one sink, at any one interval. ``sources`` nodes publish readings for
    ``period_s`` seconds. Frames *of use* carry readings. Diffusion also sends frames of upkeep, and their number does
    not depend on the interval.
    """
    means = frame.groupby("protocol")[["frames_upkeep", "frames_use", "expected"]].mean()
    frames_per_reading = means["frames_use"] / means["expected"]
    saved_frames = frames_per_reading["Flooding"] - frames_per_reading["Diffusion"]
    return sources * period_s * saved_frames / means.loc["Diffusion", "frames_upkeep"]


def break_even(answer: Any, frame: Any, sources: int, period_s: float) -> Verdict:
    """Judge the interval in s between readings at which Diffusion and Flooding send equally many frames."""
    expected_s = break_even_s(frame, sources, period_s)
    if abs(float(answer) - expected_s) <= _TOLERANCE * expected_s:
        return Verdict(True, f"The measured costs are equal at {expected_s:.0f} s.")
    direction = "shorter" if float(answer) > expected_s else "longer"
    return Verdict(
        False,
        f"At {float(answer):g} s one of them is still cheaper; the interval is {direction}. Divide the frames of use "
        "by the readings, and add the upkeep.",
    )


def winner(answer: Any, comparison: Any, sinks: int, every_s: float, metric: str) -> Verdict:
    """Judge the name of a protocol: it must be the best by ``metric`` with this number of sinks and this interval."""
    winners = comparison.winners(metric, "sinks", "every_s")
    row = winners[(winners["sinks"] == sinks) & (winners["every_s"] == every_s)].iloc[0]
    if str(answer) not in comparison.protocols:
        return Verdict(False, f"The protocols are {', '.join(comparison.protocols)}.")
    if str(answer) != row["best"]:
        return Verdict(False, f"{answer} is not the best there. Look at that cell of the map.")
    return Verdict(
        True, f"{answer} has a mean of {row['mean']:,.0f}; the difference from {row['second']} is {row['verdict']}."
    )


def own_deployment(answer: Any, scenario: Callable[..., Scenario], protocols: Mapping[str, Any]) -> Verdict:
    """Judge a reader's own deployment, (protocol, {"sinks": ..., "every_s": ...}): does the protocol win there?"""
    name, changes = answer
    if name not in protocols:
        return Verdict(False, f"The protocols are {', '.join(protocols)}.")
    if name == _YARDSTICK:
        return Verdict(False, f"{name} wins wherever readings are rare; find a place where another protocol does.")
    unknown = [axis for axis in changes if axis not in _AXES]
    if unknown:
        return Verdict(False, f"{unknown[0]!r:.40} is not an axis here; change {' and '.join(_AXES)}.")
    numbers = [value for value in changes.values() if is_number(value)]
    if (
        len(numbers) < len(changes)
        or changes.get("every_s", _FEWEST_S) < _FEWEST_S
        or changes.get("sinks", 1) > _MOST_SINKS
    ):
        return Verdict(False, f"every_s must be at least {_FEWEST_S:g} s, and sinks at most {_MOST_SINKS}.")
    over = {axis: [value] for axis, value in changes.items()}
    try:
        compared = wb.compare(scenario(), protocols, over, seeds=_SEEDS, runner=wb.LocalRunner(), progress=False)
    except WorkbenchError as error:
        return Verdict(False, str(error))
    best = compared.winners("transmissions").iloc[0]
    if best["best"] != name:
        means = compared.summary("transmissions").set_index("protocol")["mean"]
        return Verdict(
            False,
            f"There {best['best'] or 'no protocol'} wins, with {best['mean']:,.0f} frames; {name} sends "
            f"{means[name]:,.0f}.",
        )
    return Verdict(
        True, f"{name} sends {best['mean']:,.0f} frames; the difference from {best['second']} is {best['verdict']}."
    )


def is_deployment(answer: Any) -> bool:
    """Return whether an answer is (name of a protocol, {axis: value})."""
    return isinstance(answer, tuple) and len(answer) == 2 and is_text(answer[0]) and isinstance(answer[1], dict)


EXERCISES = {
    "11.1": Exercise("a number of seconds", is_number, break_even),
    "11.2": Exercise("the name of a protocol", is_text, winner),
    "11.3": Exercise('a tuple, such as ("Diffusion", {"sinks": 2, "every_s": 10})', is_deployment, own_deployment),
}

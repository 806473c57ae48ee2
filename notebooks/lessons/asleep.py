"""Exercises of lesson 10: the charge of an idle radio, the best wake-up interval, and when flooding is cheap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.sim.radio import Radio
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario

from .exercise import Exercise, Verdict, is_number
from .measured import cheapest, mean

_TOLERANCE = 0.02
_LONGEST_S = 600.0


def idle_charge(answer: Any, idle: Run) -> Verdict:
    """Judge the charge in mC that a node takes in an hour without frames; ``idle`` is such a run, of any duration."""
    per_hour_mC = idle.metrics["charge_mC"] * 3600 / idle.scenario.duration_s
    if abs(float(answer) - per_hour_mC) <= _TOLERANCE * per_hour_mC:
        return Verdict(True, f"The simulated node takes {per_hour_mC:.0f} mC in an hour.")
    always_on_mC = idle.scenario.radio.rx_mA * 3600
    if abs(float(answer) - always_on_mC) <= _TOLERANCE * always_on_mC:
        return Verdict(False, f"{float(answer):,.0f} mC are the charge of a radio that is always on.")
    return Verdict(False, f"It is not {float(answer):,.4g} mC. Multiply the current of listening by the time awake.")


def best_interval(answer: Any, scenarios: Mapping[float, Scenario]) -> Verdict:
    """Judge the wake-up interval in ms: it must be the one of ``scenarios`` that takes the least charge."""
    return cheapest(answer, scenarios, "charge_mC", "mC")


def cheap_flooding(answer: Any, scenario: Callable[..., Scenario], asleep: Radio) -> Verdict:
    """Judge the interval in s between publications: flooding must take less charge with it than diffusion."""
    import workbench as wb

    if not 1 <= float(answer) <= _LONGEST_S:
        return Verdict(False, f"{float(answer):,.4g} s is not between 1 and {_LONGEST_S:g} s, the duration of the run.")
    flooding, diffusion = (
        mean(scenario(protocol, asleep, every_s=float(answer)), "charge_mC")
        for protocol in (wb.Flooding(), wb.Diffusion())
    )
    outcome = (
        f"With a reading every {float(answer):g} s, flooding takes {flooding:.0f} mC, diffusion {diffusion:.0f} mC"
    )
    if flooding >= diffusion:
        return Verdict(False, f"{outcome}. Flooding sends a flood for each reading; diffusion repeats its interests.")
    return Verdict(True, f"{outcome}.")


EXERCISES = {
    "10.1": Exercise("a number of mC", is_number, idle_charge),
    "10.2": Exercise("an interval in ms", is_number, best_interval),
    "10.3": Exercise("a number of seconds", is_number, cheap_flooding),
}

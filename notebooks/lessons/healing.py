"""Exercises of lesson 12: the next interest after a crash, the cheapest protocol that recovers, a sink that moves."""

from __future__ import annotations

from typing import Any

import workbench as wb
from workbench.protocols.protocol import Protocol
from workbench.sim.rows import Columns
from workbench.sim.scenario import Scenario
from workbench.sweeps.faults import FaultMatrix

from .exercise import Exercise, Verdict, is_number, is_text
from .figures.healing import frames_per_reading
from .measured import run_of

_TOLERANCE_S = 1.0
_LEAST_DELIVERY = 0.9
_YARDSTICK = "Flooding"


def next_interest(answer: Any, scenario: Scenario, crash_s: float) -> Verdict:
    """Judge the time in s of the first interest that the sink sends after a crash."""
    sink = scenario.workload[0].at[0]
    columns = Columns(run_of(scenario).trace)
    rows = columns.where(event="sent", message="interest")
    times_us = columns["time_us"][rows][columns["node"][rows] == sink]
    expected_s = float(times_us[times_us > crash_s * 1e6][0]) / 1e6
    if abs(float(answer) - expected_s) <= _TOLERANCE_S:
        return Verdict(True, f"In the simulated run the sink sends it at {expected_s:.0f} s.")
    direction = "later" if float(answer) < expected_s else "earlier"
    return Verdict(
        False,
        f"The sink sends it {direction} than {float(answer):,.5g} s. Its refreshes count from its first interest, and "
        "no crash shifts them.",
    )


def cheapest_in_time(answer: Any, matrix: FaultMatrix, fault: str, most_s: float) -> Verdict:
    """Judge a protocol's name: of those that recover within ``most_s``, it must need the fewest frames per reading."""
    name = str(answer)
    if name not in matrix.protocols:
        return Verdict(False, f"The protocols are {', '.join(matrix.protocols)}.")
    recovery_s = {protocol: float(matrix.cell(fault, protocol)["recovery_s"]) for protocol in matrix.protocols}
    if not recovery_s[name] <= most_s:
        return Verdict(False, f"{name} takes {recovery_s[name]:.0f} s to recover; at most {most_s:g} s are allowed.")
    frames = frames_per_reading(matrix)[fault]
    cheaper = [
        protocol for protocol in matrix.protocols if recovery_s[protocol] <= most_s and frames[protocol] < frames[name]
    ]
    if cheaper:
        return Verdict(False, f"{name} recovers in time with {frames[name]:.1f} frames; another needs fewer.")
    return Verdict(True, f"{name} recovers in {recovery_s[name]:.0f} s, with {frames[name]:.1f} frames for a reading.")


def heals_cheaply(answer: Protocol, matrix: FaultMatrix, fault: str, duration_s: float) -> Verdict:
    """Judge a protocol: 90 % of the readings must arrive during a fault, with fewer frames for each than flooding."""
    seeds = sorted(set(matrix.runs.to_pandas()["seed"].tolist()))
    compared = wb.faults.matrix(
        {"answer": answer, _YARDSTICK: wb.Flooding()},
        [fault],
        seeds=seeds,
        duration_s=duration_s,
        runner=wb.LocalRunner(),
        progress=False,
    )
    ratio = float(compared.cell(fault, "answer")["during"])
    frames = frames_per_reading(compared)[fault]
    outcome = f"{ratio:.1%} of the readings arrive during the fault, with {frames['answer']:.1f} frames for each"
    if not ratio >= _LEAST_DELIVERY:
        return Verdict(False, f"{outcome}; at least {_LEAST_DELIVERY:.0%} must arrive.")
    if not frames["answer"] < frames[_YARDSTICK]:
        return Verdict(False, f"{outcome}; flooding sends {frames[_YARDSTICK]:.1f}.")
    return Verdict(True, f"{outcome}; flooding sends {frames[_YARDSTICK]:.1f}.")


EXERCISES = {
    "12.1": Exercise("a time in s", is_number, next_interest),
    "12.2": Exercise("the name of a protocol", is_text, cheapest_in_time),
    "12.3": Exercise("a protocol", lambda answer: isinstance(answer, Protocol), heals_cheaply),
}

"""Exercises of lesson 5: fewer frames within a tolerance, a filter in Python, the best place for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from workbench.attributes.keys import key_of
from workbench.attributes.model import IS
from workbench.attributes.text import parse, to_text
from workbench.protocols.protocol import Protocol
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario

from .exercise import Exercise, Verdict, is_number
from .measured import cheapest, run_of

SHARE_OF_FRAMES = 0.6


def within(answer: Protocol, scenario: Scenario, key: str, tolerance: float) -> Verdict:
    """Filters that save four tenths of the data frames, and leave what the sink knows within a tolerance."""
    if type(answer) is not type(scenario.protocol):
        return Verdict(False, "That is another protocol; change only the filters of the scenario's own.")
    plain, filtered = run_of(scenario), run_of(scenario.replace(protocol=answer))
    frames, fewer = plain.metrics["sent_data"], filtered.metrics["sent_data"]
    worst, node, unheard = _worst(filtered, key)
    said = f"{fewer:,.0f} data frames in place of {frames:,.0f}"
    if unheard is not None:
        return Verdict(False, f"{said}, but of node {unheard} the sink hears nothing at all.")
    if worst > tolerance:
        return Verdict(False, f"{said}, but what the sink knows of node {node} is off by up to {worst:.2f}.")
    if fewer > SHARE_OF_FRAMES * frames:
        return Verdict(False, f"{said}; at most {SHARE_OF_FRAMES * frames:,.0f} frames are allowed.")
    return Verdict(True, f"{said}, and what the sink knows is off by {worst:.2f} at most.")


def _worst(run: Run, key: str) -> tuple[float, int, int | None]:
    """How far the sink's newest reading of a node ever is from the node's own, of which node, and one unheard of."""
    known: dict[tuple[int, int], float] = {}
    published: list[tuple[int, int, float]] = []
    for row in run.trace.to_pylist():
        if row["event"] == "delivered":
            for value in _values(row["detail"], key):
                known[row["origin"], row["sequence"]] = value
        elif row["event"] == "published":
            published += [(row["node"], row["sequence"], value) for value in _values(row["detail"], key)]
    worst, where = 0.0, -1
    newest: dict[int, float] = {}
    for node, sequence, value in published:
        if (node, sequence) in known:
            newest[node] = known[node, sequence]
        if node not in newest:
            return worst, where, node
        if abs(newest[node] - value) > worst:
            worst, where = abs(newest[node] - value), node
    return worst, where, None


def _values(text: str, key: str) -> Iterator[float]:
    wanted = key_of(key)
    return (one.value / wanted.steps for one in parse(text) if one.key == wanted.number and one.operator == IS)


def plausible(answer: Callable[..., Any], key: str, highest: float) -> Verdict:
    """A filter that drops readings above ``highest`` and passes everything else as it is."""
    limit = key_of(key)
    step = 1 / limit.steps
    values = (highest - 1, highest, highest + step, highest + 25, 0.0, -1.0, step)
    readings = [parse(f"{key} IS {value:g}") for value in values] + [parse("HUMIDITY IS 40"), ()]
    for reading in readings:
        is_broken = any(one.value > highest * limit.steps for one in reading if one.key == limit.number)
        wrong = _decides(answer, reading, is_broken)
        if wrong:
            counts = f" A value of {key} is a whole number of {step:g} {limit.unit}." if limit.steps > 1 else ""
            return Verdict(False, wrong + counts)
    return Verdict(True, f"It drops what is above {highest:g} {limit.unit}, and passes all else as it is.")


def _decides(answer: Callable[..., Any], reading: tuple[Any, ...], is_broken: bool) -> str:
    """What is wrong with what a filter makes of a reading; "" if nothing is."""
    said = repr(to_text(reading)) if reading else "a message without attributes"
    try:
        made = answer(reading)
    except Exception as error:  # a student's function may raise anything
        return f"{said}: the function raises {type(error).__name__}: {error}."
    if is_broken:
        return "" if made is None else f"{said} is not dropped; a filter drops by returning None."
    if made is None:
        return f"{said} is dropped; it has to go on."
    return "" if made == reading else f"{said} goes on as {made!r:.60}; it has to stay as it is."


def place(answer: Any, scenarios: Mapping[Any, Scenario]) -> Verdict:
    """The node at which a filter saves the most data frames."""
    return cheapest(answer, scenarios, "sent_data", "data frames")


EXERCISES = {
    "05.1": Exercise("the scenario's protocol with filters", lambda one: isinstance(one, Protocol), within),
    "05.2": Exercise("a function of attributes", callable, plausible),
    "05.3": Exercise("the number of a node", is_number, place),
}

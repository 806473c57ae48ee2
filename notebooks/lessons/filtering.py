"""Exercises of lesson 5: fewer frames within a tolerance, a filter in Python, the best node for a filter."""

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
    """Judge a protocol's filters: they must save 40 % of the data frames and keep the sink's values in a tolerance."""
    if type(answer) is not type(scenario.protocol):
        return Verdict(False, "That is another protocol; change only the filters of the scenario's own.")
    plain, filtered = run_of(scenario), run_of(scenario.replace(protocol=answer))
    frames, fewer = plain.metrics["sent_data"], filtered.metrics["sent_data"]
    error, node, silent_node = _largest_error(filtered, key)
    saving = f"{fewer:,.0f} data frames in place of {frames:,.0f}"
    if silent_node is not None:
        return Verdict(False, f"{saving}, but the sink gets no reading of node {silent_node}.")
    if error > tolerance:
        return Verdict(
            False,
            f"{saving}, but the sink's value of node {node} is off by up to {error:.2f}; {tolerance:g} is allowed.",
        )
    if fewer > SHARE_OF_FRAMES * frames:
        return Verdict(False, f"{saving}; at most {SHARE_OF_FRAMES * frames:,.0f} frames are allowed.")
    return Verdict(True, f"{saving}, and the sink's values are off by at most {error:.2f}.")


def _largest_error(run: Run, key: str) -> tuple[float, int, int | None]:
    """Return (largest error of the sink's values, node with this error, None).

    If a reading of some node is missing and the sink has no earlier value of that node, the node replaces None.
    """
    known: dict[tuple[int, int], float] = {}
    published: list[tuple[int, int, float]] = []
    for row in run.trace.to_pylist():
        if row["event"] == "delivered":
            for value in _values(row["detail"], key):
                known[row["origin"], row["sequence"]] = value
        elif row["event"] == "published":
            published += [(row["node"], row["sequence"], value) for value in _values(row["detail"], key)]
    largest, worst_node = 0.0, -1
    newest: dict[int, float] = {}
    for node, sequence, value in published:
        if (node, sequence) in known:
            newest[node] = known[node, sequence]
        if node not in newest:
            return largest, worst_node, node
        if abs(newest[node] - value) > largest:
            largest, worst_node = abs(newest[node] - value), node
    return largest, worst_node, None


def _values(text: str, key: str) -> Iterator[float]:
    quantity = key_of(key)
    return (
        attribute.value / quantity.steps
        for attribute in parse(text)
        if attribute.key == quantity.number and attribute.operator == IS
    )


def plausible(answer: Callable[..., Any], key: str, highest: float) -> Verdict:
    """Judge a filter: it must drop readings above ``highest`` and pass all others unchanged."""
    quantity = key_of(key)
    step = 1 / quantity.steps
    values = (highest - 1, highest, highest + step, highest + 25, 0.0, -1.0, step)
    readings = [parse(f"{key} IS {value:g}") for value in values] + [parse("HUMIDITY IS 40"), ()]
    for reading in readings:
        is_above = any(
            attribute.value > highest * quantity.steps for attribute in reading if attribute.key == quantity.number
        )
        mistake = _find_mistake(answer, reading, is_above)
        if mistake:
            hint = f" A value of {key} is a multiple of {step:g} {quantity.unit}." if quantity.steps > 1 else ""
            return Verdict(False, mistake + hint)
    return Verdict(True, f"It drops readings above {highest:g} {quantity.unit} and passes all others unchanged.")


def _find_mistake(answer: Callable[..., Any], reading: tuple[Any, ...], is_above: bool) -> str:
    """Return a sentence about a filter's mistake with one reading, or "" if the filter decides correctly.

    ``answer`` is the filter, ``is_above`` whether it must drop the reading.
    """
    message = repr(to_text(reading)) if reading else "a message without attributes"
    try:
        result = answer(reading)
    except Exception as error:  # a student's function may raise anything
        return f"{message}: the function raises {type(error).__name__}: {error}."
    if is_above:
        return "" if result is None else f"{message} is not dropped; a filter drops by returning None."
    if result is None:
        return f"{message} is dropped; it must be passed on."
    return "" if result == reading else f"{message} is passed on as {result!r:.60}; it must not be changed."


def filter_node(answer: Any, scenarios: Mapping[Any, Scenario]) -> Verdict:
    """Judge the number of a node: a filter at this node must save the most data frames."""
    return cheapest(answer, scenarios, "sent_data", "data frames")


EXERCISES = {
    "05.1": Exercise("the scenario's protocol with filters", lambda answer: isinstance(answer, Protocol), within),
    "05.2": Exercise("a function of attributes", callable, plausible),
    "05.3": Exercise("the number of a node", is_number, filter_node),
}

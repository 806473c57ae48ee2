"""Measured readings: values with the times at which a node publishes them.

`workbench.replay` makes `Readings` from a table; ``publish(at=5, what=Readings(...))`` publishes them.

Cost
    Some 100 B a reading, and 300 B more during a run: 54 motes that measure every 31 s for a week have a million
    readings. In a scenario's file a reading takes some 20 B.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench import attributes
from workbench.errors import ScenarioError, WorkbenchError
from workbench.keywords import checked
from workbench.topology.graphs import is_number

LONGEST_S = 1e9  # the largest time in a workload: thirty years; a trace stores microseconds in 64 bits

Column = tuple[float | None, ...]


@checked
@dataclass(frozen=True)
class Readings:
    """Values of attribute keys, and the times at which they are published, in seconds from the start of the run.

    Times ascend. ``values`` is {key: one value for each time}, in the key's unit. None (or NaN) marks a missing value;
    each time needs at least one value. Values are rounded to the key's resolution before they are published. Raises
    ScenarioError for values out of a key's range, and for times that do not ascend.

    >>> Readings((0.0, 31.0), {"TEMP": (21.504, 21.6), "HUMIDITY": (None, 40)}).attributes(3, 0.0, 0.0, 31.0)
    'TEMP IS 21.6, HUMIDITY IS 40.0'
    """

    times_s: tuple[float, ...]
    values: tuple[tuple[str, Column], ...]

    def __init__(self, times_s: Iterable[float], values: Mapping[str, Iterable[float | None]]) -> None:
        times_us = _to_us(tuple(times_s))
        if not isinstance(values, Mapping) or not values:
            raise ScenarioError(f"values is {values!r:.60}; it must be {{key: values}}, such as {{'TEMP': [21.5, 22]}}")
        columns_of_key = {
            str(key): _check_column(str(key), tuple(column), len(times_us)) for key, column in values.items()
        }
        is_missing = np.all([np.isnan(column) for column in columns_of_key.values()], axis=0)
        if is_missing.any():
            raise ScenarioError(
                f"the reading at {times_us[is_missing.argmax()] / 1e6} s has no value; give one, or leave out its time"
            )
        object.__setattr__(self, "times_s", tuple((times_us / 1e6).tolist()))
        object.__setattr__(self, "values", tuple((key, _replace_nan(column)) for key, column in columns_of_key.items()))

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the keys that the readings have."""
        return tuple(key for key, _ in self.values)

    @cached_property
    def times_us(self) -> tuple[int, ...]:
        """The times ``times_s`` in microseconds."""
        return tuple(round(time * 1e6) for time in self.times_s)

    def attributes(
        self, node: int, x_m: float, y_m: float, time_s: float, extent: tuple[float, float] = (0.0, 0.0)
    ) -> str:
        """Return the latest reading at or before ``time_s`` as text of attributes, such as "TEMP IS 21.5".

        Before the first reading, return the first. ``node``, ``x_m``, ``y_m`` and ``extent`` are ignored. They exist
        because `SensorField.attributes`, which is called in the same way, uses them.
        """
        time_index = max(0, bisect_right(self.times_us, round(time_s * 1e6)) - 1)
        return ", ".join(
            f"{key} IS {column[time_index]}" for key, column in self.values if column[time_index] is not None
        )

    def count(self, start_us: int, stop_us: int) -> int:
        """Return the number of readings in [start_us, stop_us)."""
        return max(0, bisect_right(self.times_us, stop_us - 1) - bisect_right(self.times_us, start_us - 1))

    def to_dict(self) -> dict[str, Any]:
        """Return the readings as plain values, ready for JSON."""
        return {"times_s": list(self.times_s), "values": {key: list(column) for key, column in self.values}}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Readings:
        """Return the readings that `to_dict` converted to plain values. Raises ScenarioError for other values."""
        if set(form) != {"times_s", "values"} or not isinstance(form["times_s"], list):
            raise ScenarioError(
                f"readings have the fields {', '.join(map(str, form))}; they must be times_s (a list) and values"
            )
        values_of_key = form["values"]
        if not isinstance(values_of_key, Mapping) or not all(
            isinstance(column, list) for column in values_of_key.values()
        ):
            raise ScenarioError(f"`values` is {values_of_key!r:.60}; it must be an object with a list for each key")
        return cls(form["times_s"], values_of_key)

    def __repr__(self) -> str:
        period_text = f"{self.times_s[0]:g} to {self.times_s[-1]:g} s"
        return f"Readings({len(self.times_s):,} of {', '.join(self.keys)}, {period_text})"


def _to_us(times_s: tuple[Any, ...]) -> np.ndarray:
    """Convert ``times_s`` to microseconds.

    Raises ScenarioError for times out of range, and for times that do not ascend by a microsecond at least.
    """
    wrong_time = next((time for time in _select_values_to_check(times_s) if not is_number(time)), None)
    if wrong_time is None:
        wrong_time = next((time for time in times_s if not 0 <= time <= LONGEST_S), None)
    if wrong_time is not None or not times_s:
        wrong_text = "no times" if wrong_time is None else repr(wrong_time)
        raise ScenarioError(f"times_s has {wrong_text:.40}; it must have numbers of seconds, 0 to {LONGEST_S:g}")
    times_us = np.rint(np.array(times_s, float) * 1e6)
    wrong_positions = np.flatnonzero(np.diff(times_us) < 1)
    if len(wrong_positions):
        earlier_s, later_s = times_s[wrong_positions[0] : wrong_positions[0] + 2]
        raise ScenarioError(f"times_s has {later_s} after {earlier_s}; times must ascend, by a microsecond at least")
    return times_us


def _select_values_to_check(column: tuple[Any, ...]) -> Iterable[Any]:
    """Return the values that must be checked one by one: all of ``column``, or () if all are floats and integers."""
    return () if set(map(type, column)) <= {float, int} else column


def _check_column(name: str, column: tuple[Any, ...], count: int) -> np.ndarray:
    """Check ``column``, the values of the key ``name``, and return them rounded to the key's resolution.

    A missing value (None or NaN) becomes NaN. ``count``: the number of values that ``column`` must have.
    """
    try:
        key = attributes.key_of(name)
    except WorkbenchError as error:
        raise ScenarioError(f"values: {error}") from None
    if key.type == attributes.BLOB:
        raise ScenarioError(f"values has the key {key.name}, a blob; readings must have keys with numbers")
    if len(column) != count:
        raise ScenarioError(
            f"{name} has {len(column)} values for {count} times; give one for each time, None if it is missing"
        )
    for value in _select_values_to_check(column):
        if value is not None and not is_number(value) and value == value:
            raise ScenarioError(f"{key.name} has {value!r:.40}; its values are numbers, or None where one is missing")
    # Few of many values are distinct. Each distinct value becomes an attribute once, which checks and rounds it.
    unrounded_values = np.array([math.nan if value is None else value for value in column], float)
    distinct_values, value_index = np.unique(unrounded_values, return_inverse=True)
    return np.array([_round_to_step(key, value) for value in distinct_values.tolist()], float)[value_index]


def _round_to_step(key: Any, value: float) -> float:
    if value != value:
        return math.nan
    try:
        return attributes.make(key.number, "IS", value).value / key.steps
    except WorkbenchError as error:
        raise ScenarioError(str(error)) from None


def _replace_nan(column: np.ndarray) -> Column:
    is_nan = np.isnan(column)
    values = column.tolist()
    return tuple(None if is_missing else value for is_missing, value in zip(is_nan.tolist(), values, strict=True))

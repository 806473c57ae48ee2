"""Measured delivery ratios of links over time, for the workload item `link_trace`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.errors import DataError, ScenarioError
from workbench.keywords import checked
from workbench.sim.readings import LONGEST_S
from workbench.topology.graphs import LARGEST_NODE
from workbench.topology.tables import column_names, node_in, read_rows

_COLUMNS = ("time_s", "transmitter", "receiver", "pdr")
_MOST_ROWS = 1_000_000


@checked
@dataclass(frozen=True)
class LinkQualities:
    """Delivery ratios of arcs over time, as four columns of the same length, with at least one row.

    From ``times_s[i]`` on, the arc ``transmitters[i]`` -> ``receivers[i]`` has the ratio ``pdr[i]``, until the next row
    of the same arc. A ratio of 0 means that the arc does not exist.
    Raises ScenarioError for values out of range and for an arc with two ratios at one time.

    >>> LinkQualities([0, 60], [1, 1], [2, 2], [0.9, 0.2]).nodes
    (1, 2)
    """

    times_s: tuple[float, ...]
    transmitters: tuple[int, ...]
    receivers: tuple[int, ...]
    pdr: tuple[float, ...]

    def __init__(
        self, times_s: Iterable[float], transmitters: Iterable[int], receivers: Iterable[int], pdr: Iterable[float]
    ) -> None:
        columns = dict(zip(_COLUMNS, (times_s, transmitters, receivers, pdr), strict=True))
        limits = {"time_s": LONGEST_S, "transmitter": LARGEST_NODE, "receiver": LARGEST_NODE, "pdr": 1.0}
        arrays = {name: _check_column(name, column, limits[name]) for name, column in columns.items()}
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1 or not 0 < lengths["pdr"] <= _MOST_ROWS:
            raise ScenarioError(
                f"the link trace has columns of different or invalid lengths "
                f"({', '.join(f'{name} {count}' for name, count in lengths.items())}); "
                f"all columns must have the same number of values, from 1 to {_MOST_ROWS:,}"
            )
        transmitters_, receivers_ = arrays["transmitter"].astype(np.int64), arrays["receiver"].astype(np.int64)
        if (transmitters_ != arrays["transmitter"]).any() or (receivers_ != arrays["receiver"]).any():
            numbers = np.concatenate([arrays["transmitter"], arrays["receiver"]])
            broken = numbers[np.argmax(numbers % 1 != 0)]
            raise ScenarioError(f"the link trace has the node number {broken}; node numbers must be whole")
        if (transmitters_ == receivers_).any():
            loop = int(transmitters_[np.argmax(transmitters_ == receivers_)])
            raise ScenarioError(f"the link trace has a link from node {loop} to itself; a link joins two nodes")
        times_us = np.rint(arrays["time_s"] * 1e6).astype(np.int64)
        order = np.lexsort((receivers_, transmitters_, times_us))
        times_us, transmitters_, receivers_ = times_us[order], transmitters_[order], receivers_[order]
        is_repeated = (np.diff(times_us) == 0) & (np.diff(transmitters_) == 0) & (np.diff(receivers_) == 0)
        if is_repeated.any():
            row = int(np.argmax(is_repeated))
            raise ScenarioError(
                f"the link trace has two delivery ratios of the link {transmitters_[row]} -> {receivers_[row]} at "
                f"{times_us[row] / 1e6:g} s; leave one out"
            )
        object.__setattr__(self, "times_s", tuple((times_us / 1e6).tolist()))
        object.__setattr__(self, "transmitters", tuple(transmitters_.tolist()))
        object.__setattr__(self, "receivers", tuple(receivers_.tolist()))
        object.__setattr__(self, "pdr", tuple(arrays["pdr"][order].tolist()))

    @cached_property
    def times_us(self) -> tuple[int, ...]:
        """The times ``times_s`` in microseconds."""
        return tuple(round(time_s * 1e6) for time_s in self.times_s)

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """The nodes of the arcs, in ascending order."""
        return tuple(sorted({*self.transmitters, *self.receivers}))

    @staticmethod
    def read(source: Any) -> LinkQualities:
        """Return the delivery ratios in a table with the columns time_s, transmitter, receiver and pdr.

        ``source``: a pandas DataFrame, or the path of a CSV file. Instead of time_s, the table may have the column
        from_s: times in seconds of any clock, of which the earliest becomes time 0. `workbench.pipelines` writes such
        tables. Raises DataError, which names the row and column, if a column is missing or a value is wrong.
        """
        rows = []
        names = column_names(source)
        has_clock = "time_s" not in names and "from_s" in names
        for row in read_rows(source, ("from_s", *_COLUMNS[1:]) if has_clock else _COLUMNS, "link trace"):
            nodes = (node_in(row, name, cell) for name, cell in zip(_COLUMNS[1:3], row.values[1:3], strict=True))
            numbers = []
            for name, cell in (("time_s", row.values[0]), ("pdr", row.values[3])):
                try:
                    numbers.append(float(cell))
                except (TypeError, ValueError):
                    raise DataError(f"{row.location}, column {name}: {cell!r:.60}; it must be a number.") from None
            rows.append((numbers[0], *nodes, numbers[1]))
        start_s = min((time_s for time_s, *_ in rows), default=0.0) if has_clock else 0.0
        rows = [(time_s - start_s, *others) for time_s, *others in rows]
        return LinkQualities(*(zip(*rows, strict=True) if rows else ((), (), (), ())))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return {field: list of its values}, ready for JSON."""
        return {
            "times_s": list(self.times_s),
            "transmitters": list(self.transmitters),
            "receivers": list(self.receivers),
            "pdr": list(self.pdr),
        }

    @staticmethod
    def from_dict(values: Any) -> LinkQualities:
        """Return the delivery ratios from a result of `to_dict`. Raises ScenarioError for other values."""
        names = ("times_s", "transmitters", "receivers", "pdr")
        if not isinstance(values, Mapping) or set(values) != set(names):
            raise ScenarioError(f"trace is {values!r:.60}; it must be an object with {', '.join(names)}")
        return LinkQualities(*(values[name] for name in names))


def _check_column(name: str, values: Any, highest: float) -> np.ndarray:
    try:
        array = np.array(list(values), float)
    except (TypeError, ValueError):
        raise ScenarioError(
            f"the column {name} of the link trace is {values!r:.60}; it must be a list of numbers"
        ) from None
    is_wrong = ~((array >= 0) & (array <= highest)) if array.ndim == 1 else np.ones(1, np.bool_)
    if is_wrong.any():
        example = array.ravel()[int(np.argmax(is_wrong))] if array.size else values
        raise ScenarioError(f"the link trace has a {name} of {example}; it must be a number from 0 to {highest:g}")
    return array

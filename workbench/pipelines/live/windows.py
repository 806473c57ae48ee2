"""Windows of readings: count, mean, least and greatest for each stretch of time, region and key.

A window is [start_s, end_s) of event time, and its start is a multiple of its length. Times are compared as whole
microseconds. Each column has one definition here, in SQL that DuckDB and Spark read alike, for whole tables and for
streams of Spark; `Fold` has the same for lines one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from workbench.errors import DataError, ParameterError
from workbench.keywords import checked
from workbench.pipelines.ask import ask, is_spark
from workbench.pipelines.live.background import Background
from workbench.pipelines.live.capture import ABOUT, captured
from workbench.pipelines.live.readings import SCHEMA

BY = ("node", "sink", "region", "key")


class Asked(NamedTuple):
    """Which windows somebody asked for; made by `asked`."""

    every_us: int
    late_us: int
    by: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the windows."""
        numbers = [("mean", pa.float64()), ("min", pa.float64()), ("max", pa.float64()), ("late", pa.int64())]
        named = [SCHEMA.field(name) for name in self.by]
        return pa.schema([("start_s", pa.float64()), ("end_s", pa.float64()), *named, ("count", pa.int64()), *numbers])

    @property
    def name(self) -> str:
        """Of a folder with these windows: "windows-60s-late-30s-region-key"."""
        return "-".join((f"windows-{self.every_us / 1e6:g}s-late-{self.late_us / 1e6:g}s", *self.by))

    @property
    def is_late(self) -> str:
        """Whether a reading came too late for its window, in SQL over time_us and newest_us."""
        return f"{self.start_of('time_us')} + {self.every_us} <= newest_us - {self.late_us}"

    @property
    def counted_us(self) -> str:
        """The time at which a reading counts, in SQL: its own, or the newest if it is late."""
        return f"CASE WHEN {self.is_late} THEN newest_us ELSE time_us END"

    def start_of(self, time_us: str) -> str:
        """When the window begins that a time is in, in SQL."""
        return f"({time_us} - {time_us} % {self.every_us})"


# In microseconds, out of seconds.
MICROSECONDS = {"time_us": "CAST(round(time_s * 1e6) AS BIGINT)", "newest_us": "CAST(round(newest_s * 1e6) AS BIGINT)"}
# What a window says of its readings, in SQL over value and is_late.
TOLD = {
    "count": "count(CASE WHEN NOT is_late THEN 1 END)",
    "mean": "avg(CASE WHEN NOT is_late THEN value END)",
    "min": "min(CASE WHEN NOT is_late THEN value END)",
    "max": "max(CASE WHEN NOT is_late THEN value END)",
    "late": "count(CASE WHEN is_late THEN 1 END)",
}


def asked(every_s: float, by: Sequence[str], late_s: float) -> Asked:
    """What was asked for, in microseconds; ParameterError for what no windows can be made of."""
    for name, value, least in (("every_s", every_s, 1e-6), ("late_s", late_s, 0.0)):
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not least <= value <= 1e9:
            raise ParameterError(f"{name} is {value!r:.60}; it must be a number of seconds from {least:g} to 1e9")
    columns = (by,) if isinstance(by, str) else tuple(by)
    for name in columns:
        if name not in BY or columns.count(name) > 1:
            raise ParameterError(f"by has {name!r:.60}; windows are by some of {', '.join(BY)}, each once")
    return Asked(round(every_s * 1e6), round(late_s * 1e6), columns)


@checked
def windows(
    readings: Any,
    every_s: float = 60.0,
    by: Sequence[str] = ("region", "key"),
    late_s: float = 30.0,
    value: str = "value",
) -> Any:
    """Windows of readings: a row for each window and each of ``by`` that has readings, in ascending order.

    ``readings``: a `Stream` or the folder of a capture; a pandas frame, an Arrow table or a path to Parquet with at
    least time_s, what is in ``by`` and the column ``value``; or such a DataFrame of Spark, for which a DataFrame is
    returned. A value that is missing is in no window.

    The columns are start_s, end_s, those of ``by``, count, mean, min, max and late. A reading is late, and counted in
    ``late`` of the newest window alone, if its window ended ``late_s`` or more before the newest reading so far. What
    is newest so far is told by the column newest_s, as captures have it, or else by arrived_s; without both no reading
    is late. ParameterError for windows that cannot be, DataError for readings without a column that is needed.
    """
    wanted = asked(every_s, by, late_s)
    table = _table_of(readings)
    return ask(_query(wanted, value, _columns_of(table)), readings=table)


def _table_of(readings: Any) -> Any:
    folder = readings.folder if isinstance(readings, Background) else readings
    if isinstance(folder, (str, Path)) and (Path(folder) / ABOUT).exists():
        return captured(folder)
    return folder


def _columns_of(table: Any) -> set[str]:
    if isinstance(table, pa.Table):
        return set(table.column_names)
    if is_spark(table) or hasattr(table, "columns"):
        return set(table.columns)
    return set(ask("SELECT * FROM {readings} LIMIT 0", readings=table).columns)


def _query(wanted: Asked, value: str, columns: set[str]) -> str:
    for name in ("time_s", value, *wanted.by):
        if name not in columns:
            raise DataError(f"the readings have no column {name}; windows by {', '.join(wanted.by)} need it")
    if "newest_s" in columns:
        newest_s = "newest_s"
    elif "arrived_s" in columns:
        newest_s = "max(time_s) OVER (ORDER BY arrived_s)"
    else:
        newest_s = "time_s"
    kept = ", ".join(("time_s", f"{value} AS value", *wanted.by, f"{newest_s} AS newest_s"))
    timed = ", ".join(f"{text} AS {name}" for name, text in MICROSECONDS.items())
    groups = ", ".join(("start_us", *wanted.by))
    told = ", ".join(f"{text} AS {name}" for name, text in TOLD.items())
    start_us = wanted.start_of("counted_us")
    return f"""
        WITH ordered AS (SELECT {kept} FROM {{readings}} WHERE {value} IS NOT NULL AND NOT isnan({value})),
        timed AS (SELECT *, {timed} FROM ordered),
        judged AS (SELECT *, {wanted.is_late} AS is_late, {wanted.counted_us} AS counted_us FROM timed),
        placed AS (SELECT *, {start_us} AS start_us FROM judged)
        SELECT start_us / 1e6 AS start_s, (start_us + {wanted.every_us}) / 1e6 AS end_s,
            {"".join(name + ", " for name in wanted.by)}{told}
        FROM placed GROUP BY {groups} ORDER BY {groups}
    """


_PLACES = {field.name: place for place, field in enumerate(SCHEMA)}
_COUNT, _SUM, _MIN, _MAX, _LATE = range(5)


class Fold:
    """The open windows of readings that come one by one. What can no longer change is handed on.

    Lines are folded in their order into sums, so the windows do not depend on how the lines were cut into batches. They
    are the same to the last bit, however often the process was killed and went on from its stored state.
    """

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.newest_us = 0
        # (start in µs, what is in `by`) -> count, sum, min, max, late
        self._open: dict[tuple[Any, ...], list[Any]] = {}
        self._by = tuple(_PLACES[name] for name in asked.by)

    def add(self, rows: Iterable[list[Any]]) -> None:
        """Fold rows of a capture in, in their order."""
        every_us, late_us, by = self.asked.every_us, self.asked.late_us, self._by
        for row in rows:
            time_us, value, newest_us = round(row[0] * 1e6), row[6], round(row[8] * 1e6)
            start_us = time_us - time_us % every_us
            is_late = start_us + every_us <= newest_us - late_us
            if is_late:
                start_us = newest_us - newest_us % every_us
            name = (start_us, *[row[place] for place in by])
            window = self._open.get(name)
            if window is None:
                window = self._open[name] = [0, 0.0, math.inf, -math.inf, 0]
            self.newest_us = newest_us
            if is_late:
                window[_LATE] += 1
                continue
            window[_COUNT] += 1
            window[_SUM] += value
            window[_MIN] = min(window[_MIN], value)
            window[_MAX] = max(window[_MAX], value)

    def close(self, is_over: bool = False) -> list[tuple[Any, ...]]:
        """Take the windows that no reading can be counted in any more, ascending; all if nothing more will come.

        Rows of `Asked.schema`.
        """
        before_us = math.inf if is_over else self.newest_us - self.asked.late_us
        closed = sorted(name for name in self._open if name[0] + self.asked.every_us <= before_us)
        return [self._row(name, self._open.pop(name)) for name in closed]

    def _row(self, name: tuple[Any, ...], window: list[Any]) -> tuple[Any, ...]:
        start_us, *by = name
        count, total, least, greatest, late = window
        told = (total / count, least, greatest) if count else (None, None, None)
        return start_us / 1e6, (start_us + self.asked.every_us) / 1e6, *by, count, *told, late

    # As plain values, to be kept

    def state(self) -> dict[str, Any]:
        """All that it knows, as JSON has it."""
        return {"newest_us": self.newest_us, "open": [[*name, *_finite(one)] for name, one in self._open.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        """Know what `state` told."""
        self.newest_us = state["newest_us"]
        width = 1 + len(self._by)
        self._open = {tuple(one[:width]): list(_infinite(one[width:])) for one in state["open"]}


def _finite(window: list[Any]) -> list[Any]:
    """A window without readings has no least and no greatest, and JSON has no infinity."""
    return window if window[_COUNT] else [0, 0.0, None, None, window[_LATE]]


def _infinite(window: list[Any]) -> Iterator[Any]:
    return iter(window if window[_COUNT] else [0, 0.0, math.inf, -math.inf, window[_LATE]])

"""Windows of readings: count, mean, minimum and maximum for each interval, region and key.

A window is [start_s, end_s) of event time, and its start is a multiple of its length. Times are compared as whole
microseconds. Each column is defined once, in SQL that both DuckDB and Spark execute, for whole tables and for Spark's
streams. `Fold` computes the same windows from lines that arrive one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from workbench.errors import DataError, ParameterError
from workbench.keywords import checked
from workbench.pipelines.live.background import Background
from workbench.pipelines.live.capture import DESCRIPTION, captured
from workbench.pipelines.live.readings import SCHEMA
from workbench.pipelines.queries import is_spark, run_query

BY = ("node", "sink", "region", "key")


class WindowSettings(NamedTuple):
    """The settings of windows, made by `window_settings`.

    ``every_us`` is the length of a window and ``late_us`` the allowed lateness, both in µs. ``by`` has the names of the
    grouping columns.
    """

    every_us: int
    late_us: int
    by: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of a table of windows."""
        number_fields = [("mean", pa.float64()), ("min", pa.float64()), ("max", pa.float64()), ("late", pa.int64())]
        group_fields = [SCHEMA.field(name) for name in self.by]
        return pa.schema(
            [("start_s", pa.float64()), ("end_s", pa.float64()), *group_fields, ("count", pa.int64()), *number_fields]
        )

    @property
    def name(self) -> str:
        """The default name of the windows' folder, for example "windows-60s-late-30s-region-key"."""
        return "-".join((f"windows-{self.every_us / 1e6:g}s-late-{self.late_us / 1e6:g}s", *self.by))

    @property
    def is_late(self) -> str:
        """The SQL condition that a reading arrived too late for its window.

        The condition uses two columns: time_us, the reading's time, and newest_us, the latest time of all readings that
        arrived up to this reading.
        """
        return f"{self.start_of('time_us')} + {self.every_us} <= newest_us - {self.late_us}"

    @property
    def counted_us(self) -> str:
        """The SQL expression of the time (µs) that determines in which window a reading counts.

        The value is the column time_us, the reading's time. For a late reading it is the column newest_us, the latest
        time of all readings that arrived up to this reading.
        """
        return f"CASE WHEN {self.is_late} THEN newest_us ELSE time_us END"

    def start_of(self, time_us: str) -> str:
        """Return the SQL expression of the start (µs) of the window that contains a time.

        ``time_us`` is the SQL expression of this time, in µs.
        """
        return f"({time_us} - {time_us} % {self.every_us})"


# SQL that converts seconds to microseconds.
MICROSECONDS = {"time_us": "CAST(round(time_s * 1e6) AS BIGINT)", "newest_us": "CAST(round(newest_s * 1e6) AS BIGINT)"}
# The aggregates of a window, in SQL over value and is_late.
AGGREGATES = {
    "count": "count(CASE WHEN NOT is_late THEN 1 END)",
    "mean": "avg(CASE WHEN NOT is_late THEN value END)",
    "min": "min(CASE WHEN NOT is_late THEN value END)",
    "max": "max(CASE WHEN NOT is_late THEN value END)",
    "late": "count(CASE WHEN is_late THEN 1 END)",
}


def window_settings(every_s: float, by: Sequence[str], late_s: float) -> WindowSettings:
    """Check ``every_s``, ``by`` and ``late_s``, parameters of the function `windows`, and return them as settings.

    Raises ParameterError for invalid values.
    """
    for name, value, minimum in (("every_s", every_s, 1e-6), ("late_s", late_s, 0.0)):
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not minimum <= value <= 1e9:
            raise ParameterError(f"{name} is {value!r:.60}; it must be a number of seconds from {minimum:g} to 1e9")
    columns = (by,) if isinstance(by, str) else tuple(by)
    for name in columns:
        if name not in BY or columns.count(name) > 1:
            raise ParameterError(f"`by` contains {name!r:.60}; it may contain {', '.join(BY)}, each at most once")
    return WindowSettings(round(every_s * 1e6), round(late_s * 1e6), columns)


@checked
def windows(
    readings: Any,
    every_s: float = 60.0,
    by: Sequence[str] = ("region", "key"),
    late_s: float = 30.0,
    value: str = "value",
) -> Any:
    """Return the count, mean, minimum and maximum of readings in windows, intervals of ``every_s`` seconds.

    The result has a row for each window and combination of values in the columns ``by``, if there are such readings.

    ``readings`` is a `Stream`, the folder of a capture, or a table: a pandas frame, an Arrow table, a path to Parquet
    or a DataFrame of Spark. A table needs the columns time_s, those in ``by``, and the column named by ``value``. The
    result is a DataFrame of Spark if ``readings`` is one, otherwise a pandas frame. Missing values are skipped.

    The columns are start_s, end_s, those of ``by``, count, mean, min, max and late. The rows are sorted by start_s,
    then by the columns of ``by``.

    A reading is late if its window ended ``late_s`` or more before the reading's *newest time*, the latest time that
    was known when it arrived. Statistics leave late readings out. The column ``late`` of the window that contains the
    newest time counts them. The newest time of a reading is

    - the value in the column newest_s, which a capture has
    - without this column, the latest time_s of all readings whose arrived_s is not later than that of the reading
    - without both columns, the reading's own time_s, so that no reading is late

    Raises ParameterError for invalid settings, DataError for a missing column.
    """
    settings = window_settings(every_s, by, late_s)
    table = _resolve_table(readings)
    return run_query(_make_query(settings, value, _list_columns(table)), readings=table)


def _resolve_table(readings: Any) -> Any:
    folder = readings.folder if isinstance(readings, Background) else readings
    if isinstance(folder, (str, Path)) and (Path(folder) / DESCRIPTION).exists():
        return captured(folder)
    return folder


def _list_columns(table: Any) -> set[str]:
    if isinstance(table, pa.Table):
        return set(table.column_names)
    if is_spark(table) or hasattr(table, "columns"):
        return set(table.columns)
    return set(run_query("SELECT * FROM {readings} LIMIT 0", readings=table).columns)


def _make_query(settings: WindowSettings, value: str, columns: set[str]) -> str:
    for name in ("time_s", value, *settings.by):
        if name not in columns:
            raise DataError(
                f"the readings have no column {name!r}; windows grouped by {', '.join(settings.by)} need it"
            )
    if "newest_s" in columns:
        newest_s = "newest_s"
    elif "arrived_s" in columns:
        newest_s = "max(time_s) OVER (ORDER BY arrived_s)"
    else:
        newest_s = "time_s"
    selected_columns = ", ".join(("time_s", f"{value} AS value", *settings.by, f"{newest_s} AS newest_s"))
    time_columns = ", ".join(f"{expression} AS {name}" for name, expression in MICROSECONDS.items())
    group_columns = ", ".join(("start_us", *settings.by))
    aggregates = ", ".join(f"{expression} AS {name}" for name, expression in AGGREGATES.items())
    start_us = settings.start_of("counted_us")
    return f"""
        WITH ordered AS (SELECT {selected_columns} FROM {{readings}} WHERE {value} IS NOT NULL AND NOT isnan({value})),
        timed AS (SELECT *, {time_columns} FROM ordered),
        judged AS (SELECT *, {settings.is_late} AS is_late, {settings.counted_us} AS counted_us FROM timed),
        placed AS (SELECT *, {start_us} AS start_us FROM judged)
        SELECT start_us / 1e6 AS start_s, (start_us + {settings.every_us}) / 1e6 AS end_s,
            {"".join(name + ", " for name in settings.by)}{aggregates}
        FROM placed GROUP BY {group_columns} ORDER BY {group_columns}
    """


_INDICES = {field.name: index for index, field in enumerate(SCHEMA)}
_COUNT, _SUM, _MIN, _MAX, _LATE = range(5)


class Fold:
    """A computation of windows from readings that arrive one by one.

    A window has the count, mean, minimum and maximum of the readings in an interval. `close` returns the windows that
    no later reading can change. Readings must be added in the order in which the capture (the folder of recorded
    readings, `capture`) stores them. Then the windows are equal to the last bit, however the readings are divided into
    batches, and however often the process is killed and continued from its stored state.
    """

    def __init__(self, settings: WindowSettings) -> None:
        self.settings = settings
        self.newest_us = 0
        # (start in µs, values of the columns `by`) -> count, sum, min, max, late
        self._open_windows: dict[tuple[Any, ...], list[Any]] = {}
        self._by_indices = tuple(_INDICES[key] for key in settings.by)

    def add(self, rows: Iterable[list[Any]]) -> None:
        """Count each reading in its window; ``rows`` are consecutive rows of a capture (`readings.SCHEMA`)."""
        every_us, late_us, group_indices = self.settings.every_us, self.settings.late_us, self._by_indices
        for reading_row in rows:
            time_us, value, newest_us = round(reading_row[0] * 1e6), reading_row[6], round(reading_row[8] * 1e6)
            start_us = time_us - time_us % every_us
            is_late = start_us + every_us <= newest_us - late_us
            if is_late:
                start_us = newest_us - newest_us % every_us
            window_key = (start_us, *[reading_row[index] for index in group_indices])
            window = self._open_windows.get(window_key)
            if window is None:
                window = self._open_windows[window_key] = [0, 0.0, math.inf, -math.inf, 0]
            self.newest_us = newest_us
            if is_late:
                window[_LATE] += 1
                continue
            window[_COUNT] += 1
            window[_SUM] += value
            window[_MIN] = min(window[_MIN], value)
            window[_MAX] = max(window[_MAX], value)

    def close(self, is_over: bool = False) -> list[tuple[Any, ...]]:
        """Remove and return the windows that cannot change any more.

        With ``is_over`` the capture has ended, so all windows are closed. Each window is a tuple of its values in the
        columns of `WindowSettings.schema`. Windows are sorted by start time, then by the columns ``by``.
        """
        closed_until_us = math.inf if is_over else self.newest_us - self.settings.late_us
        closed_keys = sorted(key for key in self._open_windows if key[0] + self.settings.every_us <= closed_until_us)
        return [self._make_row(key, self._open_windows.pop(key)) for key in closed_keys]

    def _make_row(self, key: tuple[Any, ...], window: list[Any]) -> tuple[Any, ...]:
        start_us, *group = key
        count, value_sum, smallest, largest, late_count = window
        aggregates = (value_sum / count, smallest, largest) if count else (None, None, None)
        return start_us / 1e6, (start_us + self.settings.every_us) / 1e6, *group, count, *aggregates, late_count

    # State that can be stored

    def state(self) -> dict[str, Any]:
        """Return the open windows and the time of the newest reading as JSON values."""
        return {
            "newest_us": self.newest_us,
            "open": [[*key, *_to_json_values(window)] for key, window in self._open_windows.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the open windows and the newest reading's time from ``state``, a result of the method `state`."""
        self.newest_us = state["newest_us"]
        width = 1 + len(self._by_indices)
        self._open_windows = {
            tuple(window[:width]): list(_from_json_values(window[width:])) for window in state["open"]
        }

    def merge(self, state: dict[str, Any]) -> None:
        """Add the windows of another `Fold`, which has counted later readings of the capture and returned ``state``.

        Values are then summed in another order than by `add`, so means may differ in their last digits.
        """
        other = Fold(self.settings)
        other.restore(state)
        self.newest_us = max(self.newest_us, other.newest_us)
        for window_key, (count, value_sum, smallest, largest, late_count) in other._open_windows.items():
            window = self._open_windows.setdefault(window_key, [0, 0.0, math.inf, -math.inf, 0])
            window[_COUNT] += count
            window[_SUM] += value_sum
            window[_MIN] = min(window[_MIN], smallest)
            window[_MAX] = max(window[_MAX], largest)
            window[_LATE] += late_count


def _to_json_values(window: list[Any]) -> list[Any]:
    """Return a window as JSON values.

    A window with only late readings has infinities as minimum and maximum, which JSON lacks; they become None.
    """
    return window if window[_COUNT] else [0, 0.0, None, None, window[_LATE]]


def _from_json_values(window: list[Any]) -> Iterator[Any]:
    return iter(window if window[_COUNT] else [0, 0.0, math.inf, -math.inf, window[_LATE]])

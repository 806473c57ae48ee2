"""Measured readings as a workload: each node publishes what it measured, when it measured it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench import attributes
from workbench.errors import DataError, WorkbenchError
from workbench.keywords import checked
from workbench.pipelines.ask import ask, is_spark
from workbench.pipelines.logs.cleaning import KEYS, Cleaned
from workbench.pipelines.logs.links import column_types
from workbench.pipelines.logs.reading import Log
from workbench.sim import workload
from workbench.sim.readings import Readings
from workbench.suggestion import meant
from workbench.topology.graphs import is_number


@checked
def replay(
    readings: Any,
    key: str | Mapping[str, str] | None = None,
    speed: float = 1.0,
    start_s: float = 0.0,
    from_s: float | None = None,
    until_s: float | None = None,
) -> tuple[workload.Publish, ...]:
    """A workload of readings: for each node an item that publishes its values at their times.

    readings        a table with the columns time_s (Unix time), node, and measured values: what a loader of
                    `workbench.datasets`, `read_log` or `clean` returns
    key             {column: key} of what is published; "TEMP" alone for temperature_C, "HUMIDITY" for humidity_pct;
                    None: both, as far as they are there
    speed           10: what took ten seconds takes one
    start_s         the run's time at which the first reading is published
    from_s, until_s only readings from this Unix time to before that one

    Values are rounded to the resolution of their key. One that is missing is not published, and neither is a reading
    without any. DataError for a value outside of its key's range, and for two readings of a node at the same time:
    ``wb.pipelines.clean`` leaves them out.
    """
    readings = readings.rows if isinstance(readings, Log | Cleaned) else readings
    keys = _keys(readings, key)
    for name, value in (("speed", speed), ("start_s", start_s)):
        if not is_number(value) or value < 0 or (name == "speed" and value == 0):
            raise DataError(f"{name} is {value!r:.40}; it must be a number above 0, or 0 for start_s")
    frame = _measured(readings, keys, from_s, until_s)
    if frame.empty:
        raise DataError("there are no readings to replay: none of the rows has a value in the time asked for")
    frame["time_s"] = np.round(start_s + (frame["time_s"] - frame["time_s"].min()) / speed, 6)
    items = []
    for node, rows in frame.groupby("node", sort=True):
        values = {name: rows[column].astype(object).where(rows[column].notna(), None) for column, name in keys.items()}
        values = {name: column.tolist() for name, column in values.items() if any(one is not None for one in column)}
        try:
            items.append(workload.publish(int(node), Readings(rows["time_s"].tolist(), values)))
        except WorkbenchError as error:
            raise DataError(
                f"the readings of node {node}: {error}; clean(readings) leaves out what cannot be"
            ) from None
    return tuple(items)


def _keys(readings: Any, key: str | Mapping[str, str] | None) -> dict[str, str]:
    """{column: key} of what is published."""
    columns = list(column_types(readings))
    for name in ("time_s", "node"):
        if name not in columns:
            raise DataError(f"the readings have no column {name!r}; they have {', '.join(columns)}")
    if isinstance(key, Mapping):
        wanted = dict(key)
    else:
        wanted = {column: name for column, name in KEYS.items() if column in columns and key in (None, name)}
    if not wanted:
        raise DataError(
            f"name the columns to publish, as in key={{'voltage_V': 'VOLTAGE'}}; there are {', '.join(columns)}"
        )
    for column, name in wanted.items():
        if column not in columns:
            raise DataError(
                f"the readings have no column {column!r}{meant(column, columns)}; they have {', '.join(columns)}"
            )
        attributes.key_of(name)
    return wanted


def _measured(readings: Any, keys: Mapping[str, str], from_s: float | None, until_s: float | None) -> Any:
    """The rows in question with a value, each node's in the order of their times, as a pandas frame."""
    names = [f"CAST({column} AS DOUBLE) AS {column}" for column in keys]
    some = " OR ".join(f"({column} IS NOT NULL AND NOT isnan({column}))" for column in keys)
    limits = [f"time_s {sign} {float(at)!r}" for sign, at in ((">=", from_s), ("<", until_s)) if at is not None]
    query = (
        f"SELECT time_s, node, {', '.join(keys)} FROM (SELECT time_s, node, {', '.join(names)} FROM {{readings}}) AS r "
        f"WHERE {' AND '.join([f'({some})', *limits])} ORDER BY node, time_s"
    )
    found = ask(query, readings=readings)
    return found.toPandas() if is_spark(found) else found

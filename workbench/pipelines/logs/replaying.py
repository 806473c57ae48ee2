"""Replay of measured readings as a workload: each node publishes its readings at their times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench import attributes
from workbench.errors import DataError, WorkbenchError
from workbench.keywords import checked
from workbench.pipelines.logs.cleaning import KEYS, Cleaned
from workbench.pipelines.logs.links import column_types
from workbench.pipelines.logs.reading import Log
from workbench.pipelines.queries import is_spark, run_query
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
    """Return a workload with one item per node, which publishes the node's readings at their times.

    readings        a table with the columns time_s (Unix time), node, and measured values: the result of a
                    loader in `workbench.datasets`, of `read_log` or of `clean`
    key             {column: key}: the columns to publish, and the key of each. "TEMP" stands for
                    {"temperature_C": "TEMP"}, "HUMIDITY" for {"humidity_pct": "HUMIDITY"}; None: both of these, if the
                    columns exist
    speed           factor by which the replay is faster: 10 publishes ten seconds of readings in one second
    start_s         time in the run at which the first reading is published
    from_s, until_s only readings in [from_s, until_s), in Unix time

    Values are rounded to the resolution of their key. Missing values, and readings without any value, are not
    published. Raises DataError for a value outside of its key's range, and for two readings of a node at the same time;
    ``wb.pipelines.clean`` removes such readings.
    """
    readings = readings.rows if isinstance(readings, Log | Cleaned) else readings
    keys = _choose_keys(readings, key)
    for name, value in (("speed", speed), ("start_s", start_s)):
        if not is_number(value) or value < 0 or (name == "speed" and value == 0):
            allowed_range = "above 0" if name == "speed" else "of at least 0"
            raise DataError(f"{name} is {value!r:.40}; it must be a number {allowed_range}")
    selected_readings = _select_rows(readings, keys, from_s, until_s)
    if selected_readings.empty:
        raise DataError("no reading to replay: no row between from_s and until_s has a value in the chosen columns")
    selected_readings["time_s"] = np.round(
        start_s + (selected_readings["time_s"] - selected_readings["time_s"].min()) / speed, 6
    )
    workload_items = []
    for node, node_readings in selected_readings.groupby("node", sort=True):
        values_by_key = {
            name: node_readings[column].astype(object).where(node_readings[column].notna(), None)
            for column, name in keys.items()
        }
        values_by_key = {
            name: column.tolist()
            for name, column in values_by_key.items()
            if any(value is not None for value in column)
        }
        try:
            workload_items.append(
                workload.publish(int(node), Readings(node_readings["time_s"].tolist(), values_by_key))
            )
        except WorkbenchError as error:
            raise DataError(f"the readings of node {node}: {error}; wb.pipelines.clean removes such readings") from None
    return tuple(workload_items)


def _choose_keys(readings: Any, key: str | Mapping[str, str] | None) -> dict[str, str]:
    """Return {column: key} of the values to publish.

    ``key`` is {column: key}, or "TEMP" or "HUMIDITY" for the usual column of this key, or None for both of them.

    Raises DataError for a missing column or key.
    """
    columns = list(column_types(readings))
    for name in ("time_s", "node"):
        if name not in columns:
            raise DataError(f"the readings have no column {name!r}; their columns are {', '.join(columns)}")
    if isinstance(key, Mapping):
        keys_by_column = dict(key)
    else:
        keys_by_column = {column: name for column, name in KEYS.items() if column in columns and key in (None, name)}
    if not keys_by_column:
        raise DataError(
            f"`key` is {key!r:.40}, which selects no column of the readings; name a column and its key, as in "
            f"key={{'voltage_V': 'VOLTAGE'}}; the columns are {', '.join(columns)}"
        )
    for column, name in keys_by_column.items():
        if column not in columns:
            raise DataError(
                f"the readings have no column {column!r}{meant(column, columns)}; "
                f"their columns are {', '.join(columns)}"
            )
        attributes.key_of(name)
    return keys_by_column


def _select_rows(readings: Any, keys: Mapping[str, str], from_s: float | None, until_s: float | None) -> Any:
    """Return the readings in [from_s, until_s) with a value in a column of ``keys``, sorted by node and time."""
    casts = [f"CAST({column} AS DOUBLE) AS {column}" for column in keys]
    has_value = " OR ".join(f"({column} IS NOT NULL AND NOT isnan({column}))" for column in keys)
    time_conditions = [
        f"time_s {sign} {float(time_s)!r}" for sign, time_s in ((">=", from_s), ("<", until_s)) if time_s is not None
    ]
    query = (
        f"SELECT time_s, node, {', '.join(keys)} FROM (SELECT time_s, node, {', '.join(casts)} FROM {{readings}}) AS r "
        f"WHERE {' AND '.join([f'({has_value})', *time_conditions])} ORDER BY node, time_s"
    )
    rows = run_query(query, readings=readings)
    return rows.toPandas() if is_spark(rows) else rows

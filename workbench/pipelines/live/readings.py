"""The readings of captures: their fields, their Arrow schema, and the check of their validity."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pyarrow as pa

NO_SINK = -1
LONGEST_TEXT = 1000


class Reading(NamedTuple):
    """A measured number that a sink received.

    time_s     time of the measurement: seconds of the run, or Unix time; 0 or more
    node       the node that measured it
    key        the key of the quantity: TEMP, HUMIDITY, ...
    value      the value in the key's unit
    region     the region of the node; "" if unknown
    sink       the node that received it; -1 if unknown
    sequence   sequence number of the reading at its node
    arrived_s  time at which the sink received it, by the same clock; None: equal to time_s
    """

    time_s: float
    node: int
    key: str
    value: float
    region: str = ""
    sink: int = NO_SINK
    sequence: int = 0
    arrived_s: float | None = None


# The columns of a captured reading. newest_s: the newest time_s in the capture up to this reading.
SCHEMA = pa.schema(
    [
        ("time_s", pa.float64()),
        ("arrived_s", pa.float64()),
        ("node", pa.int64()),
        ("sink", pa.int64()),
        ("region", pa.string()),
        ("key", pa.string()),
        ("value", pa.float64()),
        ("sequence", pa.int64()),
        ("newest_s", pa.float64()),
    ]
)


def refusal_reason(reading: Reading) -> str:
    """Return a short reason why a reading is not valid and cannot be captured; "" for a valid reading."""
    arrived_s = reading.time_s if reading.arrived_s is None else reading.arrived_s
    if not (_is_time(reading.time_s) and _is_time(arrived_s)):
        return "invalid time"
    if not _is_number(reading.value):
        return "value is not a finite number"
    if not all(_is_integer(number) for number in (reading.node, reading.sink, reading.sequence)):
        return "node, sink or sequence is not an integer"
    texts = reading.region, reading.key
    if not all(_is_text(text) for text in texts) or not reading.key:
        return "key or region is not a valid text"
    return ""


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer too large for a double
        return False


def _is_time(value: Any) -> bool:
    return _is_number(value) and 0 <= value < 1e11  # beyond that, a double cannot hold microseconds


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _is_text(value: Any) -> bool:
    """Return whether a value is a string of at most LONGEST_TEXT characters that can be encoded as UTF-8."""
    try:
        return isinstance(value, str) and len(value) <= LONGEST_TEXT and value.encode() is not None
    except UnicodeEncodeError:
        return False


def to_table(rows: list[list[Any]]) -> pa.Table:
    """Return rows, each a list of values in the order of `SCHEMA`, as an Arrow table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)

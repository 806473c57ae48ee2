"""A reading as it is captured: when, where, what."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pyarrow as pa

NOBODY = -1
LONGEST_TEXT = 1000


class Reading(NamedTuple):
    """One number that was measured, as a sink received it.

    time_s     when it was measured: seconds of the run, or Unix time; 0 or more
    node       where it was measured
    key        what: TEMP, HUMIDITY, ...
    value      in the key's unit
    region     where that node is; "" if nobody said so
    sink       the node that received it, -1 if there is none
    sequence   its number at its node
    arrived_s  when the sink received it, by the same clock; None: at time_s
    """

    time_s: float
    node: int
    key: str
    value: float
    region: str = ""
    sink: int = NOBODY
    sequence: int = 0
    arrived_s: float | None = None


# The columns of a captured reading. newest_s: the newest time_s of the capture so far, its own included.
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


def fault(reading: Reading) -> str:
    """Why a reading cannot be captured, in a word or two; "" if it can."""
    arrived_s = reading.time_s if reading.arrived_s is None else reading.arrived_s
    if not (_is_time(reading.time_s) and _is_time(arrived_s)):
        return "no time"
    if not _is_number(reading.value):
        return "no number"
    if not all(_is_whole(one) for one in (reading.node, reading.sink, reading.sequence)):
        return "no whole number"
    texts = reading.region, reading.key
    if not all(_is_text(text) for text in texts) or not reading.key:
        return "no text"
    return ""


def _is_number(value: Any) -> bool:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all doubles
        return False


def _is_time(value: Any) -> bool:
    return _is_number(value) and 0 <= value < 1e11  # beyond, a double has no microseconds


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63


def _is_text(value: Any) -> bool:
    """Whether a text can be written as UTF-8: one out of somebody's bytes may have half a character."""
    try:
        return isinstance(value, str) and len(value) <= LONGEST_TEXT and value.encode() is not None
    except UnicodeEncodeError:
        return False


def to_table(rows: list[list[Any]]) -> pa.Table:
    """Captured rows as a table of SCHEMA."""
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)

"""Comparison of a recorded run with its repetition: surroundings (versions, code, platform), metrics and trace."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.keywords import checked
from workbench.sim.metrics import COMMON, COUNTS
from workbench.sim.trace import SCHEMA


@checked
class Difference(NamedTuple):
    """A difference between a recorded run and its repetition.

    subject    what differs, such as "the platform" or the name of a metric
    recorded   the recorded value as text
    current    the value of the repetition as text
    """

    subject: str
    recorded: str
    current: str

    @property
    def sentence(self) -> str:
        """The difference as a sentence."""
        return f"{self.subject} was {self.recorded}, here {self.current}"


def compare_surroundings(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> list[Difference]:
    """Return the differences in versions, package code, user code and platform.

    Both arguments have the fields that `record.surroundings` returns: versions, code, user_code and platform.
    """
    differences = [
        Difference(name, str(version), str(current["versions"].get(name, "unknown")))
        for name, version in _mapping_in(recorded, "versions").items()
        if version != current["versions"].get(name)
    ]
    for folder, digest in _mapping_in(recorded, "code").items():
        if digest != current["code"].get(folder):
            differences.append(Difference(f"the code of {folder}", str(digest), current["code"].get(folder, "missing")))
    for name, recorded_origin in _mapping_in(recorded, "user_code").items():
        current_origin = current.get("user_code", {}).get(name)
        if (
            current_origin
            and isinstance(recorded_origin, Mapping)
            and recorded_origin.get("digest") != current_origin["digest"]
        ):
            differences.append(
                Difference(f"the user's {name}", str(recorded_origin.get("digest")), current_origin["digest"])
            )
    if recorded.get("platform") != current["platform"]:
        differences.append(Difference("the platform", str(recorded.get("platform")), current["platform"]))
    return differences


def compare_versions(recorded: str, current: Mapping[str, str]) -> list[Difference]:
    """Return the differences between recorded and current versions; missing recorded versions are ignored.

    ``recorded`` is a text such as "workbench 0.1.0, Python 3.11.7, ..."; ``current`` is {name: version}.
    """
    name_and_version = [piece.split() for piece in recorded.split(", ")]
    versions = {name.lower(): version for name, version in (pair for pair in name_and_version if len(pair) == 2)}
    return [
        Difference(name, versions[name], version)
        for name, version in current.items()
        if versions.get(name, version) != version
    ]


def compare_code(recorded: str | None, current: str) -> list[Difference]:
    """Compare two digests of code; return a list with their difference, or [] if they are equal.

    If ``recorded`` is missing (None or ""), the list is empty, too.
    """
    return [Difference("the code", recorded, current)] if recorded and recorded != current else []


def _mapping_in(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the field ``name`` of a record, or {} if the field is missing or not a mapping."""
    content = record.get(name)
    return content if isinstance(content, Mapping) else {}


def compare_metrics(
    recorded: Mapping[str, Any], current: Mapping[str, float], names: Iterable[str]
) -> list[Difference]:
    """Return the differences between the recorded and the current values of the metrics ``names``.

    A missing metric counts as 0 if it is a number of events, otherwise as NaN. Two NaN are equal here.
    """
    differences = []
    for name in names:
        recorded_number, current_number = number(name, recorded.get(name)), number(name, current.get(name))
        if recorded_number != current_number and not (math.isnan(recorded_number) and math.isnan(current_number)):
            differences.append(Difference(name, *format_differently(recorded_number, current_number)))
    return differences


def number(name: str, value: Any) -> float:
    """Return ``value``, the stored value of metric ``name``, as a float.

    For None, a missing value, the result is 0.0 if the metric is a number of events, else NaN. For an invalid value it
    is NaN.
    """
    if value is None:
        return 0.0 if name.startswith(COUNTS) else math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def names_to_compare(recorded: Iterable[str], current: Iterable[str]) -> Iterator[str]:
    """Yield the names of metrics to compare: all recorded ones, then the event counts that only the new run has.

    Other metrics that only the new run has are left out, because a newer version of the workbench has added them.
    """
    names = dict.fromkeys(recorded)
    yield from names
    yield from (name for name in current if name.startswith(COUNTS) and name not in names)


def names_of_measure(recorded: Iterable[str], current: Mapping[str, float]) -> list[str]:
    """Return the names of the recorded metrics that come from a sweep's measure function, not from the run itself.

    ``recorded`` has the names of all recorded metrics, ``current`` the metrics of the repeated run without a measure.
    """
    return [name for name in recorded if name not in current and name not in COMMON and not name.startswith(COUNTS)]


def format_differently(old: float, new: float) -> tuple[str, str]:
    """Return two different numbers as texts with just enough digits to differ."""
    short_texts = f"{old:.6g}", f"{new:.6g}"
    return short_texts if short_texts[0] != short_texts[1] else (repr(old), repr(new))


def compare_traces(recorded: pa.Table, current: pa.Table) -> Difference | None:
    """Return the first difference of two traces, or None if they are equal.

    If one trace is the beginning of the other, the difference is that of their numbers of rows.
    """
    common_rows = min(len(recorded), len(current))
    first_difference, column = common_rows, ""
    for field in SCHEMA:
        is_different = pc.not_equal(
            _plain_column(recorded, field, common_rows), _plain_column(current, field, common_rows)
        )
        different_row = pc.index(is_different, True).as_py()
        if 0 <= different_row < first_difference:
            first_difference, column = different_row, field.name
    if column:
        recorded_value, current_value = (
            table.column(column)[first_difference].as_py() for table in (recorded, current)
        )
        return Difference(
            f"{column} in row {first_difference:,} of the trace ({_describe_row(recorded, first_difference)})",
            repr(recorded_value),
            repr(current_value),
        )
    if len(recorded) != len(current):
        return Difference("the number of rows of the trace", f"{len(recorded):,}", f"{len(current):,}")
    return None


def _plain_column(table: pa.Table, field: pa.Field, rows: int) -> pa.ChunkedArray:
    column = table.column(field.name).slice(0, rows)
    return column.cast(pa.string()) if pa.types.is_dictionary(field.type) else column


def _describe_row(trace: pa.Table, row: int) -> str:
    time_us, node, event = (trace.column(name)[row].as_py() for name in ("time_us", "node", "event"))
    return f"t = {time_us / 1e6:.6f} s, node {node}, {event}"

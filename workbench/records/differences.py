"""What differs between what a file says and what came out when it was run again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.sim.metrics import COMMON, COUNTS
from workbench.sim.trace import SCHEMA


class Difference(NamedTuple):
    """What differs (a version, a metric, a row of the trace), what it was, and what it is here."""

    what: str
    was: str
    here: str

    @property
    def sentence(self) -> str:
        """The difference in words."""
        return f"{self.what} was {self.was}, here {self.here}"


def of_surroundings(was: Mapping[str, Any], here: Mapping[str, Any]) -> list[Difference]:
    """What the runs were made with and what there is here: versions, code of rooms, code of the user's, platform."""
    found = [
        Difference(name, str(version), str(here["versions"].get(name, "unknown")))
        for name, version in _table(was, "versions").items()
        if version != here["versions"].get(name)
    ]
    for room, digest in _table(was, "code").items():
        if digest != here["code"].get(room):
            found.append(Difference(f"the code of {room}", str(digest), here["code"].get(room, "not there")))
    for name, told in _table(was, "user_code").items():
        theirs = here.get("user_code", {}).get(name)
        if theirs and isinstance(told, Mapping) and told.get("digest") != theirs["digest"]:
            found.append(Difference(f"the user's {name}", str(told.get("digest")), theirs["digest"]))
    if was.get("platform") != here["platform"]:
        found.append(Difference("the platform", str(was.get("platform")), here["platform"]))
    return found


def of_versions(was: str, here: Mapping[str, str]) -> list[Difference]:
    """The versions that a row of a sweep names ("workbench 0.1.0, Python 3.11.7, ...") and that are others here."""
    words = [piece.split() for piece in was.split(", ")]
    told = {name.lower(): version for name, version in (pair for pair in words if len(pair) == 2)}
    return [
        Difference(name, told[name], version) for name, version in here.items() if told.get(name, version) != version
    ]


def of_code(was: str | None, here: str) -> list[Difference]:
    """Whether a row of a sweep was computed by the code that is here; nothing if it does not say."""
    return [Difference("the code", was, here)] if was and was != here else []


def _table(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = record.get(name)
    return table if isinstance(table, Mapping) else {}


def of_metrics(was: Mapping[str, Any], here: Mapping[str, float], names: Iterable[str]) -> list[Difference]:
    """The metrics of these names that differ. What is not a number, and what is not there, are the same; a count that
    is not there is 0."""
    found = []
    for name in names:
        old, new = number(name, was.get(name)), number(name, here.get(name))
        if old != new and not (math.isnan(old) and math.isnan(new)):
            found.append(Difference(name, *told_apart(old, new)))
    return found


def number(name: str, value: Any) -> float:
    """The value of a metric that a file has as a number; NaN if it has none."""
    if value is None:
        return 0.0 if name.startswith(COUNTS) else math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def compared(was: Iterable[str], here: Iterable[str]) -> Iterator[str]:
    """The names of metrics to be compared: all that there were, and the counts that there are only here.

    Another metric that is only here is new in this workbench: it says nothing of the run that was.
    """
    names = dict.fromkeys(was)
    yield from names
    yield from (name for name in here if name.startswith(COUNTS) and name not in names)


def measured(was: Iterable[str], here: Mapping[str, float]) -> list[str]:
    """The metrics that are only in a file and that no run has by itself: a sweep's measure gave them."""
    return [name for name in was if name not in here and name not in COMMON and not name.startswith(COUNTS)]


def told_apart(old: float, new: float) -> tuple[str, str]:
    """Two numbers in as few digits as tell them apart."""
    short = f"{old:.6g}", f"{new:.6g}"
    return short if short[0] != short[1] else (repr(old), repr(new))


def of_traces(was: pa.Table, here: pa.Table) -> Difference | None:
    """The first row in which two traces differ; None if they are the same."""
    rows = min(len(was), len(here))
    first, column = rows, ""
    for field in SCHEMA:
        differs = pc.not_equal(_plain(was, field, rows), _plain(here, field, rows))
        place = pc.index(differs, True).as_py()
        if 0 <= place < first:
            first, column = place, field.name
    if column:
        old, new = (table.column(column)[first].as_py() for table in (was, here))
        return Difference(f"{column} in row {first:,} of the trace ({_where(was, first)})", repr(old), repr(new))
    if len(was) != len(here):
        return Difference("the number of rows of the trace", f"{len(was):,}", f"{len(here):,}")
    return None


def _plain(table: pa.Table, field: pa.Field, rows: int) -> pa.ChunkedArray:
    column = table.column(field.name).slice(0, rows)
    return column.cast(pa.string()) if pa.types.is_dictionary(field.type) else column


def _where(trace: pa.Table, row: int) -> str:
    time_us, node, event = (trace.column(name)[row].as_py() for name in ("time_us", "node", "event"))
    return f"t = {time_us / 1e6:.6f} s, node {node}, {event}"

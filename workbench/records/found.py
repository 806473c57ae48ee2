"""What there is in a file that is to be made again: records, the trace of a run, or rows of a sweep."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import DataError
from workbench.records import carriers
from workbench.records.record import from_text
from workbench.sim.file_format import FORMAT as SCENARIO
from workbench.sim.trace import SCHEMA
from workbench.sweeps.store import files
from workbench.sweeps.store.columns import COLUMNS, METRIC

ROWS_AT_ONCE = 500
LARGEST_B = 1 << 30  # of a picture, a page or a record, which are read as a whole
_NONE = "it has no record of the workbench"


class SweepRow(NamedTuple):
    """A row of a sweep's results.

    where      which row of which file it is
    columns    its columns by name; "document" is its scenario as JSON, "scenario" the hash of that
    metrics    its metrics by name; None if the file does not say which columns are metrics
    """

    where: str
    columns: Mapping[str, Any]
    metrics: Mapping[str, Any] | None

    def text(self, column: str) -> str:
        """A column that has texts; "" if there is none, or nothing in it."""
        return str(self.columns.get(column) or "")


class Found(NamedTuple):
    """What a file is, the records in it, the trace if it has one, and its Parquet files if it is a sweep's results."""

    what: str
    records: tuple[dict[str, Any], ...] = ()
    trace: pa.Table | None = None
    results: tuple[Path, ...] = ()


def find(path: Path) -> Found:
    """What there is in a file or a folder; DataError, which does not name it, says in a sentence what is wrong."""
    try:
        return _of_folder(path) if path.is_dir() else _of_file(path)
    except OSError as error:
        raise DataError(error.strerror or str(error)) from None


def _of_folder(path: Path) -> Found:
    if (path / "record.json").is_file():
        trace = path / "trace.parquet"
        found = _of_file(path / "record.json")
        return Found("folder of a run", found.records, _of_file(trace).trace if trace.is_file() else None)
    results = tuple(one for one in sorted(path.rglob("*.parquet")) if not _is_hidden(one.relative_to(path)))
    if not results:
        raise DataError("there is neither a record.json nor a Parquet file of a sweep in this folder")
    for one in results:
        if not _is_of_sweep(_schema(one)):
            raise DataError(f"{one.name} has no rows of a sweep with their scenarios; name one file of the folder")
        _check(one)
    return Found("folder of a sweep", results=results)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def _of_file(path: Path) -> Found:
    size_B = _size_B(path)
    with path.open("rb") as file:
        begin = file.read(1024)
    if begin.startswith(b"PAR1"):
        return _of_parquet(path)
    if size_B > LARGEST_B:
        raise DataError(f"it has {size_B:,} bytes; a picture or a page with a record has {LARGEST_B:,} at most")
    if begin.startswith(carriers.PNG_BEGIN):
        return Found("PNG", _records(carriers.of_png(path.read_bytes())))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"this is no PNG, SVG, page or Parquet file; {_NONE}") from None
    if text.lstrip().startswith("{"):
        return Found("record", (_of_json(text),))
    what = "SVG" if "<svg" in text[:1024] else "page"
    if "<" not in text[:1024]:
        raise DataError(f"this is no PNG, SVG, page or Parquet file; {_NONE}")
    return Found(what, _records(carriers.of_markup(text)))


def _size_B(path: Path) -> int:
    """Return the size of a regular file. Raises DataError for a pipe or a device, whose end may never come."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise DataError("it is not a regular file but a pipe, a socket or a device; save its content as a file first")
    return status.st_size


def _records(texts: list[str]) -> tuple[dict[str, Any], ...]:
    if not texts:
        raise DataError(f"{_NONE}: it was made without one, or a program that saved it again has left it out")
    return tuple(from_text(text) for text in texts)


def _of_json(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError("this is no JSON: it is damaged or cut short") from None
    if isinstance(values, dict) and values.get("format") == SCENARIO:
        raise DataError("this is a scenario, without what came of it; workbench run plays it")
    return from_text(text)


# Parquet


def _of_parquet(path: Path) -> Found:
    schema = _schema(path)
    if _is_of_sweep(schema):
        _check(path)
        return Found("Parquet file of a sweep", results=(path,))
    records = _records(carriers.of_schema(schema))
    if not set(SCHEMA.names) <= set(schema.names):
        raise DataError("it has a record, but not the columns of a trace")
    trace = _read(path).select(SCHEMA.names)
    try:
        return Found("Parquet file of a run", records, trace.cast(SCHEMA))
    except pa.ArrowException:
        raise DataError("the columns of its trace have other types than they were written with") from None


def _check(path: Path) -> None:
    """DataError if a file that is named by its checksum, as sweeps write them, is damaged."""
    if path.name.startswith("rows-"):
        files.File(path)


def _is_of_sweep(schema: pa.Schema) -> bool:
    return {"document", "scenario"} <= set(schema.names)


def _schema(path: Path) -> pa.Schema:
    _size_B(path)
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError):
        raise DataError("it cannot be read as Parquet: it is damaged, cut short or something else") from None


def _read(path: Path) -> pa.Table:
    try:
        return pq.read_table(path, partitioning=None, page_checksum_verification=True)
    except (pa.ArrowException, OSError):
        raise DataError("it cannot be read as Parquet: it is damaged or cut short") from None


def number_of_rows(found: Found) -> int:
    """How many rows the Parquet files of a sweep have."""
    return sum(pq.read_metadata(path).num_rows for path in found.results)


def rows_of(found: Found) -> Iterator[SweepRow]:
    """The rows in the Parquet files of a sweep; DataError names one that is damaged."""
    for path in found.results:
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                names, first = _metrics(file.schema_arrow), 0
                for batch in file.iter_batches(ROWS_AT_ONCE):
                    for place, one in enumerate(batch.to_pylist(), first):
                        metrics = None if names is None else {name: one[column] for column, name in names.items()}
                        yield SweepRow(f"row {place:,} of {path.name}", one, metrics)
                    first += len(batch)
        except (pa.ArrowException, OSError):
            raise DataError(f"{path.name} cannot be read as Parquet: it is damaged or cut short") from None


def _metrics(schema: pa.Schema) -> dict[str, str] | None:
    """{column: metric}, as a file of a sweep says it."""
    try:
        told = json.loads((schema.metadata or {})[COLUMNS])
        return {column: str(of[1]) for column, of in told.items() if of[0] == METRIC and column in schema.names}
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        return None

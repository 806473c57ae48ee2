"""Functions that read a file or folder to reproduce its runs: records, a run's trace, or rows of a sweep."""

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
LARGEST_B = 1 << 30  # largest picture, page or record, since these are read into memory
_NO_RECORD = "the file contains no record of the workbench"


class SweepRow(NamedTuple):
    """A row of a sweep's results.

    where      a text for messages: the number of the row and the name of its file
    columns    {column: value}; "document" is the scenario as JSON, "scenario" its hash
    metrics    {metric: value}; None if the file's metadata do not mark which columns are metrics
    """

    where: str
    columns: Mapping[str, Any]
    metrics: Mapping[str, Any] | None

    def text(self, column: str) -> str:
        """Return a column's value as text; "" if the column is missing or empty."""
        return str(self.columns.get(column) or "")


class Contents(NamedTuple):
    """The contents of a file or folder.

    kind       the kind of file as text, such as "PNG"
    records    the records of runs (scenarios and results) in the file
    trace      the trace of a run, or None if the file does not have one
    results    the paths of the Parquet files of a sweep
    scenario   the JSON object of a file that is a scenario without a run's results; None for any other file
    """

    kind: str
    records: tuple[dict[str, Any], ...] = ()
    trace: pa.Table | None = None
    results: tuple[Path, ...] = ()
    scenario: Mapping[str, Any] | None = None


def read_contents(path: Path) -> Contents:
    """Read a file or folder and return its contents.

    Raises DataError if the file is damaged, or contains neither a record of runs nor a scenario. The message does not
    name the file.
    """
    try:
        return _read_folder(path) if path.is_dir() else _read_file(path)
    except OSError as error:
        raise DataError(error.strerror or str(error)) from None


def _read_folder(path: Path) -> Contents:
    if (path / "record.json").is_file():
        trace = path / "trace.parquet"
        record = _read_file(path / "record.json")
        rows = _read_file(trace).trace if trace.is_file() else None
        return Contents("folder of a run", record.records, rows, scenario=record.scenario)
    result_paths = tuple(
        result for result in sorted(path.rglob("*.parquet")) if not _is_hidden(result.relative_to(path))
    )
    if not result_paths:
        raise DataError("the folder contains neither a record.json nor a Parquet file of a sweep")
    for result in result_paths:
        if not _is_sweep_schema(_read_schema(result)):
            raise DataError(
                f"the rows of {result.name} lack the column document or scenario, which all rows of a sweep have; "
                "remove this file from the folder, or give one file of a sweep instead of the folder"
            )
        _check_file(result)
    return Contents("folder of a sweep", results=result_paths)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def _read_file(path: Path) -> Contents:
    size_B = _size_B(path)
    with path.open("rb") as file:
        first_bytes = file.read(1024)
    if first_bytes.startswith(b"PAR1"):
        return _read_parquet(path)
    if size_B > LARGEST_B:
        raise DataError(f"the file has {size_B:,} bytes; a picture or page with a record has at most {LARGEST_B:,}")
    if first_bytes.startswith(carriers.PNG_BEGIN):
        return Contents("PNG", _parse_records(carriers.texts_of_png(path.read_bytes())))
    if first_bytes.startswith(carriers.PDF_BEGIN):
        return Contents("PDF", _parse_records(carriers.texts_of_pdf(path.read_bytes())))
    try:
        file_text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"the file is not a PNG, SVG, PDF, HTML or Parquet file; {_NO_RECORD}") from None
    if file_text.lstrip().startswith("{"):
        return _read_json(file_text)
    kind = "SVG" if "<svg" in file_text[:1024] else "page"
    if "<" not in file_text[:1024]:
        raise DataError(f"the file is not a PNG, SVG, PDF, HTML or Parquet file; {_NO_RECORD}")
    return Contents(kind, _parse_records(carriers.texts_of_markup(file_text)))


def _size_B(path: Path) -> int:
    """Return the size of a file in bytes. Raises DataError for a pipe or a device, since reading it may never end."""
    file_status = path.stat()
    if not stat.S_ISREG(file_status.st_mode):
        raise DataError("the path is a pipe, a socket or a device; save its content as a regular file first")
    return file_status.st_size


def _parse_records(texts: list[str]) -> tuple[dict[str, Any], ...]:
    if not texts:
        raise DataError(f"{_NO_RECORD}: it was saved without one, or another program removed the record")
    return tuple(from_text(text) for text in texts)


def _read_json(text: str) -> Contents:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError("the file is not valid JSON: it is damaged or cut short") from None
    if isinstance(document, dict) and document.get("format") == SCENARIO:
        return Contents("scenario", scenario=document)
    return Contents("record", (from_text(text),))


# Parquet


def _read_parquet(path: Path) -> Contents:
    schema = _read_schema(path)
    if _is_sweep_schema(schema):
        _check_file(path)
        return Contents("Parquet file of a sweep", results=(path,))
    records = _parse_records(carriers.texts_of_schema(schema))
    if not set(SCHEMA.names) <= set(schema.names):
        raise DataError("the file has a record, but its columns are not the columns of a trace")
    trace = _read_trace(path).select(SCHEMA.names)
    try:
        return Contents("Parquet file of a run", records, trace.cast(SCHEMA))
    except pa.ArrowException:
        wrong_columns = [field.name for field in trace.schema if field.type != SCHEMA.field(field.name).type]
        raise DataError(
            f"the columns {', '.join(wrong_columns)} cannot be converted to the types of a trace; "
            "give a file that the workbench has written"
        ) from None


def _check_file(path: Path) -> None:
    """Raise DataError if the name of a sweep's file contains a checksum that its content does not match."""
    if path.name.startswith("rows-"):
        files.File(path)


def _is_sweep_schema(schema: pa.Schema) -> bool:
    return {"document", "scenario"} <= set(schema.names)


def _read_schema(path: Path) -> pa.Schema:
    _size_B(path)
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError):
        raise DataError(
            "the file cannot be read as Parquet: it is damaged, cut short, or another kind of file"
        ) from None


def _read_trace(path: Path) -> pa.Table:
    try:
        return pq.read_table(path, partitioning=None, page_checksum_verification=True)
    except (pa.ArrowException, OSError):
        raise DataError("the file cannot be read as Parquet: it is damaged or cut short") from None


def number_of_rows(contents: Contents) -> int:
    """Return the number of rows in a sweep's Parquet files."""
    return sum(pq.read_metadata(path).num_rows for path in contents.results)


def rows_of(contents: Contents) -> Iterator[SweepRow]:
    """Yield the rows of a sweep's Parquet files. Raises DataError, which names the file, if a file is damaged."""
    for path in contents.results:
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                names, first_row = _read_metric_names(file.schema_arrow), 0
                for batch in file.iter_batches(ROWS_AT_ONCE):
                    for number, row in enumerate(batch.to_pylist(), first_row):
                        metrics = None if names is None else {name: row[column] for column, name in names.items()}
                        yield SweepRow(f"row {number:,} of {path.name}", row, metrics)
                    first_row += len(batch)
        except (pa.ArrowException, OSError):
            raise DataError(f"{path.name} cannot be read as Parquet: it is damaged or cut short") from None


def _read_metric_names(schema: pa.Schema) -> dict[str, str] | None:
    """Return {column: name of its metric} from the metadata of a sweep's file; None if missing or invalid."""
    try:
        columns = json.loads((schema.metadata or {})[COLUMNS])
        return {
            column: str(role[1]) for column, role in columns.items() if role[0] == METRIC and column in schema.names
        }
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        return None

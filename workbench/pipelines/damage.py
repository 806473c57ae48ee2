"""Damage checks of Parquet files, made before DuckDB reads a file, because DuckDB ignores checksums.

The name of a result file of a sweep contains a checksum of the content, so every changed bit is detected. Other Parquet
files may have a checksum for each page, which does not cover the file's metadata. The file of a single run also stores
a digest of the trace's rows in its record.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import DataError
from workbench.records import carriers, record
from workbench.sim import trace
from workbench.sweeps.store.files import checksum_of

_CHECKSUM_NAME = re.compile(r"(?:rows|traces)-([0-9a-f]{16})\.parquet")
_passed: dict[Path, tuple[int, int, int]] = {}


def check(path: Path) -> None:
    """Raise DataError if a Parquet file is missing, or if its checksums show that it is damaged.

    A file that passed the check is read again only if its inode, size or modification time has changed.
    """
    try:
        file_status = path.stat()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    file_state = file_status.st_ino, file_status.st_size, file_status.st_mtime_ns
    if _passed.get(path) == file_state:
        return
    name = _CHECKSUM_NAME.fullmatch(path.name)
    if name is not None:
        if name[1] != checksum_of(path):
            raise DataError(
                f"{path} is damaged: its content does not match the checksum in its name; remove it and run the sweep "
                f"again"
            )
    else:
        _check_pages(path)
    _passed[path] = file_state


def trace_in(path: Path) -> pa.Table | None:
    """Return the trace in the Parquet file of a single run, or None if the file does not contain a run's record.

    Raises DataError if the file cannot be read, or if the rows do not match the digest in the record.

    The caller passes the returned table to DuckDB instead of the file, because DuckDB trusts the statistics in the
    file's footer, which no checksum covers.
    """
    if _CHECKSUM_NAME.fullmatch(path.name):
        return None
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            record_texts = carriers.texts_of_schema(file.schema_arrow)
            if not record_texts:
                return None
            if not set(trace.SCHEMA.names) <= set(file.schema_arrow.names):
                raise DataError("the file has a run's record, but its columns are not those of a trace")
            trace_table = file.read()
        recorded_hash = record.from_text(record_texts[0]).get("trace_hash")
        if trace.digest(trace_table.select(trace.SCHEMA.names).cast(trace.SCHEMA)) != recorded_hash:
            raise DataError("its rows do not match the trace hash in its record, so they were changed later")
        return trace_table
    except DataError as error:
        raise DataError(f"{path} is damaged: {error}") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable_error(path, error) from None


def _check_pages(path: Path) -> None:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable_error(path, error) from None


def check_with_duckdb(path: Path) -> None:
    """Raise DataError if DuckDB cannot read a file from beginning to end."""
    import duckdb

    try:
        duckdb.connect(":memory:").read_parquet(str(path)).aggregate("bit_xor(hash(COLUMNS(*)))").fetchall()
    except duckdb.Error as error:
        raise _unreadable_error(path, error) from None


def _unreadable_error(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200]
    return DataError(f"{path} cannot be read as Parquet: it is damaged, cut short, or another kind of file ({reason})")

"""Checks of Parquet files for damage before a library that ignores checksums, such as DuckDB, reads them.

A file of a sweep has the checksum of its content in its name, so every changed bit is found. Other files have checksums
of their pages at best; the trace of a run has a digest of its rows in its record, too.
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

_NAMED = re.compile(r"(?:rows|traces)-([0-9a-f]{16})\.parquet")
_passed: dict[Path, tuple[int, int, int]] = {}


def check(path: Path) -> None:
    """Raise DataError in one sentence if a Parquet file is damaged, as far as its checksums show.

    A file that has passed is read again when it is replaced, or its size or time of change differs.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    state = status.st_ino, status.st_size, status.st_mtime_ns
    if _passed.get(path) == state:
        return
    named = _NAMED.fullmatch(path.name)
    if named is not None:
        if named[1] != checksum_of(path):
            raise DataError(
                f"{path} is damaged: its content is not what was written; remove it, and run the sweep again"
            )
    else:
        _check_pages(path)
    _passed[path] = state


def trace_in(path: Path) -> pa.Table | None:
    """Return all columns of a file with a run's trace, compared with the digest in its record; None for other files.

    DuckDB trusts the statistics in a file's footer, which no checksum covers: it must not read such a file itself.
    """
    if _NAMED.fullmatch(path.name):
        return None
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            texts = carriers.of_schema(file.schema_arrow)
            if not texts:
                return None
            if not set(trace.SCHEMA.names) <= set(file.schema_arrow.names):
                raise DataError("it has a run's record, but not the columns of a trace")
            table = file.read()
        wanted = record.from_text(texts[0]).get("trace_hash")
        if trace.digest(table.select(trace.SCHEMA.names).cast(trace.SCHEMA)) != wanted:
            raise DataError("its rows are not those that were written")
        return table
    except DataError as error:
        raise DataError(f"{path} is damaged: {error}") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _check_pages(path: Path) -> None:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def check_with_duckdb(path: Path) -> None:
    """Raise DataError in one sentence if DuckDB cannot read a file from beginning to end."""
    import duckdb

    try:
        duckdb.connect(":memory:").read_parquet(str(path)).aggregate("bit_xor(hash(COLUMNS(*)))").fetchall()
    except duckdb.Error as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200]
    return DataError(f"{path} cannot be read as Parquet: it is damaged, cut short or something else ({reason})")

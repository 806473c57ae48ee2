"""Parquet files of results, named after the checksum of their content, so that changes are detected.

A file is first written as a draft, which readers of Parquet ignore, and then renamed, so that readers never see an
incomplete file. If a file replaces others, these are removed before the draft is renamed, so no reader finds a row
twice. If the sweep is killed in between, the next sweep finds the complete draft.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import DataError
from workbench.locations import Location, ObjectPath, location
from workbench.sweeps.store.columns import COLUMNS, LAYOUT, METRIC, VERSION, Columns

DRAFTS = "_new-*.draft"
_OLD = b"workbench.metrics"
_DIGITS = 16
_DRAFT = ".draft"
_PROC = Path("/proc")


class File:
    """A file of results whose checksum has been verified."""

    def __init__(self, path: Location) -> None:
        self.path = path
        file_content = _read(path)
        if path.name != _file_name(file_content):
            raise _wrong_file_error(path, file_content)
        self._parquet = pq.ParquetFile(pa.BufferReader(file_content))
        self.schema: pa.Schema = self._parquet.schema_arrow
        self._columns: dict[str, pa.ChunkedArray] = {}
        if self.schema.metadata.get(LAYOUT) != VERSION:
            raise DataError(
                f"{path} has results in layout {self.schema.metadata.get(LAYOUT, b'?').decode()}; this version uses "
                f"layout {VERSION.decode()}; use another folder for the sweep"
            )

    @property
    def origins(self) -> dict[str, Any]:
        """The origin of each column with a parameter or metric: {column: [role, subject, kind of value]}.

        The role is METRIC or PARAMETER; the subject is the metric's name or the parameter's path.
        """
        return json.loads(self.schema.metadata[COLUMNS])

    @cached_property
    def metrics(self) -> dict[str, str]:
        """The columns that have metrics: {column: name of the metric}."""
        return {name: subject for name, (role, subject, _) in self.origins.items() if role == METRIC}

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of the file, and keep it in memory for the next call."""
        if name not in self._columns:
            self._columns[name] = self._parquet.read([name]).column(0)
        return self._columns[name]

    @property
    def size_B(self) -> int:
        """The size of the file's rows in memory, in bytes."""
        metadata = self._parquet.metadata
        return sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))

    def table(self) -> pa.Table:
        """Return all rows and columns of the file."""
        return self._parquet.read()


def files(folder: Location) -> Iterator[File]:
    """Yield the files of results in a folder, in a fixed order.

    Raises DataError for a damaged file, and for a Parquet file that no sweep has written.
    """
    for path in sorted(folder.glob("*.parquet")):
        yield File(path)


def read(folder: str | Location) -> pa.Table:
    """Return all rows of a folder of results as one table, after verifying each file's checksum.

    Raises DataError for a damaged file, a Parquet file that no sweep has written, and a folder without results.
    """
    result_files = list(files(location(folder)))
    if not result_files:
        raise DataError(f"{folder} contains no results of a sweep; give the folder of run(out=...)")
    columns = Columns()
    for file in result_files:
        columns.merge(file.origins, str(file.path))
    return pa.concat_tables([columns.widen(file.table()) for file in result_files])


def write(folder: Location, table: pa.Table, replaced: Iterable[Location] = ()) -> Location | None:
    """Write the rows of ``table`` as a new file in ``folder``, remove the files ``replaced``, and return the new path.

    If the table is empty, only remove the replaced files, and return None. Raises DataError if the folder cannot be
    written.
    """
    draft, file_content = None, b""
    try:
        if len(table):
            file_content = _to_parquet(table)
            draft = folder / f"_new-{checksum(file_content)}.draft"
            _write_to_disk(draft, file_content)
        for path in replaced:
            if path.name != _file_name(file_content):
                path.unlink(missing_ok=True)
        return None if draft is None else draft.replace(folder / _file_name(file_content))
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror}") from None


def drafts(folder: Location) -> Iterator[tuple[Location, pa.Table | None]]:
    """Yield (path, rows) for each draft (temporary file) of a results file that a killed sweep has left in ``folder``.

    The rows are None if the draft is incomplete; then the files that the draft should replace still exist.
    """
    for path in sorted(folder.glob(DRAFTS)):
        draft_content = _read(path)
        is_whole = path.name == f"_new-{checksum(draft_content)}.draft"
        yield path, pq.read_table(pa.BufferReader(draft_content)) if is_whole else None


def write_whole(folder: Location, name: str, content: bytes) -> None:
    """Write ``content`` into the file ``name`` of a folder atomically.

    Raises DataError if it cannot be written.
    """
    draft = folder / f".{name}.{socket.gethostname()}.{os.getpid()}{_DRAFT}"
    try:
        if isinstance(folder, ObjectPath):
            (folder / name).write_bytes(content)
            return
        _write_to_disk(draft, content)
        draft.replace(folder / name)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise DataError(f"{folder / name} cannot be written: {error.strerror}") from None


def remove_drafts(folder: Location) -> None:
    """Remove drafts (temporary files of `write_whole`) left by processes of this host that have ended.

    Only the process that has locked the folder may call this.
    """
    if not (_PROC / "self").exists():
        return  # Without /proc it is unknown which processes have ended.
    for path in folder.glob(f".*{_DRAFT}"):
        prefix, _, pid = path.name.removesuffix(_DRAFT).rpartition(".")
        if prefix.endswith(f".{socket.gethostname()}") and pid.isdecimal() and not (_PROC / pid).exists():
            path.unlink(missing_ok=True)


def _write_to_disk(path: Location, content: bytes) -> None:
    if isinstance(path, ObjectPath):
        path.write_bytes(content)
        return
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _to_parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def checksum(*parts: bytes) -> str:
    """Return the checksum of the concatenation of ``parts``, as 16 hex digits."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return digits(sha)


def checksum_of(path: Location) -> str:
    """Return the checksum of a file's content, as 16 hex digits. Raises DataError if the file cannot be read."""
    try:
        with path.open("rb") as file:
            return digits(hashlib.file_digest(file, "sha256"))
    except OSError as error:
        raise _unreadable_error(path, error) from None


def digits(sha: Any) -> str:
    """Return the first 16 hex digits of ``sha``, a SHA-256 object of hashlib; the store uses them as checksum."""
    return sha.hexdigest()[:_DIGITS]


def _file_name(content: bytes) -> str:
    return f"rows-{checksum(content)}.parquet"


def _read(path: Location) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable_error(path, error) from None


def _unreadable_error(path: Location, error: OSError) -> DataError:
    return DataError(f"{path} cannot be read: {error.strerror}")


def _wrong_file_error(path: Location, content: bytes) -> DataError:
    if path.name.startswith("rows-"):
        return DataError(
            f"{path} is damaged: its content does not match its checksum; remove the file and run the sweep again"
        )
    try:
        is_old = _OLD in (pq.read_schema(pa.BufferReader(content)).metadata or {})
    except (pa.ArrowException, OSError):
        is_old = False
    if is_old:
        return DataError(
            f"{path} has results in an older layout, which does not record the code that computed them; use another "
            "folder for the sweep (pandas.read_parquet still reads this file)"
        )
    return DataError(f"{path} is not a file of a sweep's results; move or remove it")

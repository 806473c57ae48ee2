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
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import DataError
from workbench.sweeps.store.columns import COLUMNS, LAYOUT, VERSION, Columns

DRAFTS = "_new-*.draft"
_OLD = b"workbench.metrics"
_DIGITS = 16
_DRAFT = ".draft"
_PROC = Path("/proc")


class File:
    """A file of results whose checksum has been verified."""

    def __init__(self, path: Path) -> None:
        self.path = path
        file_content = _read(path)
        if path.name != _file_name(file_content):
            raise _wrong_file_error(path, file_content)
        self._parquet = pq.ParquetFile(pa.BufferReader(file_content))
        self.schema: pa.Schema = self._parquet.schema_arrow
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

    @property
    def size_B(self) -> int:
        """The size of the file's rows in memory, in bytes."""
        metadata = self._parquet.metadata
        return sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))

    def columns(self, names: Iterable[str]) -> pa.Table:
        """Return a table of those columns in ``names`` that the file has."""
        return self._parquet.read([name for name in names if name in self.schema.names])

    def table(self) -> pa.Table:
        """Return all rows and columns of the file."""
        return self._parquet.read()


def files(folder: Path) -> Iterator[File]:
    """Yield the files of results in a folder, in a fixed order.

    Raises DataError for a damaged file, and for a Parquet file that no sweep has written.
    """
    for path in sorted(folder.glob("*.parquet")):
        yield File(path)


def read(folder: str | Path) -> pa.Table:
    """Return all rows of a folder of results as one table, after verifying each file's checksum.

    Raises DataError for a damaged file, a Parquet file that no sweep has written, and a folder without results.
    """
    result_files = list(files(Path(folder)))
    if not result_files:
        raise DataError(f"{folder} contains no results of a sweep; give the folder of run(out=...)")
    columns = Columns()
    for file in result_files:
        columns.merge(file.origins, str(file.path))
    return pa.concat_tables([columns.widen(file.table()) for file in result_files])


def write(folder: Path, table: pa.Table, replaced: Iterable[Path] = ()) -> Path | None:
    """Write the rows of ``table`` as a new file, remove the ``replaced`` files, and return the path of the new file.

    If the table is empty, only remove the replaced files, and return None.
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


def drafts(folder: Path) -> Iterator[tuple[Path, pa.Table | None]]:
    """Yield (path, rows) for each draft (temporary file) of a results file that a killed sweep has left.

    The rows are None if the draft is incomplete; then the files that the draft should replace still exist.
    """
    for path in sorted(folder.glob(DRAFTS)):
        draft_content = _read(path)
        is_whole = path.name == f"_new-{checksum(draft_content)}.draft"
        yield path, pq.read_table(pa.BufferReader(draft_content)) if is_whole else None


def write_whole(folder: Path, name: str, content: bytes) -> None:
    """Write ``content`` into the file ``name`` of a folder atomically.

    Raises DataError if it cannot be written.
    """
    draft = folder / f".{name}.{socket.gethostname()}.{os.getpid()}{_DRAFT}"
    try:
        _write_to_disk(draft, content)
        draft.replace(folder / name)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise DataError(f"{folder / name} cannot be written: {error.strerror}") from None


def remove_drafts(folder: Path) -> None:
    """Remove drafts (temporary files of `write_whole`) left by processes of this host that have ended.

    Only the process that owns the folder's lease may call this.
    """
    if not (_PROC / "self").exists():
        return  # Without /proc it is unknown which processes have ended.
    for path in folder.glob(f".*{_DRAFT}"):
        prefix, _, pid = path.name.removesuffix(_DRAFT).rpartition(".")
        if prefix.endswith(f".{socket.gethostname()}") and pid.isdecimal() and not (_PROC / pid).exists():
            path.unlink(missing_ok=True)


def _write_to_disk(path: Path, content: bytes) -> None:
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


def checksum_of(path: Path) -> str:
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


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable_error(path, error) from None


def _unreadable_error(path: Path, error: OSError) -> DataError:
    return DataError(f"{path} cannot be read: {error.strerror}")


def _wrong_file_error(path: Path, content: bytes) -> DataError:
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
            f"{path} has results of an older layout, which does not identify the code; use another folder for the "
            "sweep (pandas.read_parquet still reads the old one)"
        )
    return DataError(f"{path} is not a file of a sweep's results; move or remove it")

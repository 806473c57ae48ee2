"""Parquet files of results, named by the checksum of their content: one that has changed is found before it is read.

A file only ever appears whole: it is written as a draft, which readers of Parquet pass over, and then gets its name.
One that takes the place of others waits until they are gone. So no reader ever finds a row twice; and if the driver is
killed in between, the next one finds the draft.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
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


class File:
    """A file of results whose content is what was written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        content = _read(path)
        if path.name != _name(content):
            raise _not_ours(path, content)
        self._parquet = pq.ParquetFile(pa.BufferReader(content))
        self.schema: pa.Schema = self._parquet.schema_arrow
        if self.schema.metadata.get(LAYOUT) != VERSION:
            raise DataError(
                f"{path} has layout {self.schema.metadata.get(LAYOUT, b'?').decode()} and this workbench writes "
                f"{VERSION.decode()}; give the sweep a folder of its own"
            )

    @property
    def origins(self) -> dict[str, Any]:
        """column -> what it has, of the columns of parameters and metrics."""
        return json.loads(self.schema.metadata[COLUMNS])

    @property
    def size_B(self) -> int:
        """Of its rows, in memory."""
        metadata = self._parquet.metadata
        return sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))

    def columns(self, names: Iterable[str]) -> pa.Table:
        """Some of its columns, those that it has."""
        return self._parquet.read([name for name in names if name in self.schema.names])

    def table(self) -> pa.Table:
        """All of it."""
        return self._parquet.read()


def files(folder: Path) -> Iterator[File]:
    """The files of a folder, in a fixed order; DataError for one that is damaged, or something else."""
    for path in sorted(folder.glob("*.parquet")):
        yield File(path)


def read(folder: str | Path) -> pa.Table:
    """All rows of a folder of results as one table, after a look at each file's checksum.

    DataError, in a sentence, for a file that is damaged or something else, and for a folder without any.
    """
    found = list(files(Path(folder)))
    if not found:
        raise DataError(f"{folder} has no results of a sweep")
    columns = Columns()
    for file in found:
        columns.merge(file.origins, str(file.path))
    return pa.concat_tables([columns.widened(file.table()) for file in found])


def write(folder: Path, table: pa.Table, instead_of: Iterable[Path] = ()) -> Path | None:
    """Have a file with these rows in a folder, in place of others; without rows those just go, and there is None."""
    draft, content = None, b""
    try:
        if len(table):
            content = _content(table)
            draft = folder / f"_new-{checksum(content)}.draft"
            _write_through(draft, content)
        for path in instead_of:
            if path.name != _name(content):
                path.unlink(missing_ok=True)
        return None if draft is None else draft.replace(folder / _name(content))
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror}") from None


def drafts(folder: Path) -> Iterator[tuple[Path, pa.Table | None]]:
    """Drafts that a killed driver has left, each with its rows; None if it is not whole: then nothing was removed."""
    for path in sorted(folder.glob(DRAFTS)):
        content = _read(path)
        is_whole = path.name == f"_new-{checksum(content)}.draft"
        yield path, pq.read_table(pa.BufferReader(content)) if is_whole else None


def write_whole(folder: Path, name: str, content: bytes) -> None:
    """Write a small file that is there with all of its content, or not at all. DataError if it cannot be written."""
    draft = folder / f".{name}.{os.getpid()}"
    try:
        _write_through(draft, content)
        draft.replace(folder / name)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise DataError(f"{folder / name} cannot be written: {error.strerror}") from None


def _write_through(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _content(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def checksum(*parts: bytes) -> str:
    """The checksum of these bytes one behind the other."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return digits(sha)


def checksum_of(path: Path) -> str:
    """The checksum of a file's content; DataError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return digits(hashlib.file_digest(file, "sha256"))
    except OSError as error:
        raise _unreadable(path, error) from None


def digits(sha: Any) -> str:
    """A SHA-256 as the store writes it: the first 16 hexadecimal digits."""
    return sha.hexdigest()[:_DIGITS]


def _name(content: bytes) -> str:
    return f"rows-{checksum(content)}.parquet"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path} cannot be read: {error.strerror}")


def _not_ours(path: Path, content: bytes) -> DataError:
    if path.name.startswith("rows-"):
        return DataError(
            f"{path} is damaged: its content is not what was written; remove it, and its points are run again"
        )
    try:
        is_old = _OLD in (pq.read_schema(pa.BufferReader(content)).metadata or {})
    except (pa.ArrowException, OSError):
        is_old = False
    if is_old:
        return DataError(
            f"{path} has results of an older layout, which do not say which code they are of; give the sweep a folder "
            "of its own (pandas.read_parquet still reads the old one)"
        )
    return DataError(f"{path} is no file of a sweep's results; keep other files elsewhere, or remove it")

"""The traces of a sweep's runs, in a folder beside its results: `FOLDER` has a few large Parquet files, not one a run.

Theory of operation
    A trace is appended to a *spool* file as the worker sent it, with its checksum. The operating system has it from
    then on, so it is not lost if this process is killed. When the spool has `CHUNK_B`, and at the end, its traces are
    written into one Parquet file, sorted by scenario, and the spool is removed. So this process has a few batches of
    one trace in memory and never a whole spool, and a driver that is killed leaves the spool to the next one.

    A file is a draft until it is whole and flushed to the disk, then it gets its name: the beginning of its content's
    SHA-256. It says in its metadata (`RUNS`) which runs it has, and where. Small files are joined when a sweep ends:
    the new one gets its name after the old ones are removed, so no reader finds a run twice.

Layout
    The rows of a run stand together and in order, with the columns of a trace behind those of `BEFORE`: the scenario's
    hash, the digest of the code that ran, and the row's number in its run. A run of up to `ROWS_IN_GROUP` rows lies in
    one row group. Row groups have the smallest and the largest scenario in their statistics, and files are sorted by
    it: whoever asks for one run reads one row group.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import DataError
from workbench.sim import trace
from workbench.sweeps.store.files import checksum, checksum_of, digits
from workbench.sweeps.work import Row, batches

FOLDER = "_traces"  # readers of Parquet who are given the folder of the results pass over it
CHUNK_B = 256 << 20  # of a spool; the file that comes of it is somewhat smaller
ROWS_IN_GROUP = 1 << 18
RUNS = b"workbench.runs"
LAYOUT, VERSION = b"workbench.traces", b"1"
_TEXT = pa.dictionary(pa.int32(), pa.string())
BEFORE = {"scenario": _TEXT, "code": _TEXT, "row": pa.int64()}
SCHEMA = pa.schema([*BEFORE.items(), *trace.SCHEMA])

JOIN_S = 10.0  # how long a reader waits for files to be joined

_SMALL_B = 64 << 20
_POLL_S = 0.05
_SPOOLS, _DRAFTS, _WHOLE_DRAFTS, _FILES = "_spool-*", "_new-*", "_new-traces-*", "traces-*.parquet"
# Numbers that go up by little, or by one: their differences take a tenth of a dictionary.
_ASCENDING = ("row", "time_us", "sequence")

Key = tuple[str, str]  # a scenario's hash, and the digest of the code that ran it


class Kept(NamedTuple):
    """A run in a file: its key, and its rows from ``first`` on."""

    scenario: str
    code: str
    first: int
    rows: int


class _Piece(NamedTuple):
    """A trace that is to be written: its key, and where its rows come from."""

    key: Key
    batches: Callable[[], Iterator[pa.RecordBatch]]


class File:
    """A Parquet file of traces, by what its metadata says; its content is not checked (`checked`)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._parquet = pq.ParquetFile(path, page_checksum_verification=True)
            told = self._parquet.metadata.metadata or {}
            self.runs = [Kept(*one) for one in json.loads(told[RUNS])]
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
            raise DataError(
                f"{path} has no traces of a sweep, or is damaged; remove it, and run the sweep again"
            ) from None
        if told.get(LAYOUT) != VERSION:
            raise DataError(f"{path} has traces of another layout; give the sweep a folder of its own")

    @property
    def keys(self) -> set[Key]:
        """The runs that it has."""
        return {(run.scenario, run.code) for run in self.runs}

    def batches(self, run: Kept, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of one of its runs, in order; DataError where the file is damaged."""
        metadata, begin, groups = self._parquet.metadata, 0, []
        skipped = 0
        for group in range(metadata.num_row_groups):
            end = begin + metadata.row_group(group).num_rows
            if begin < run.first + run.rows and end > run.first:
                skipped = skipped if groups else run.first - begin
                groups.append(group)
            begin = end
        left = run.rows
        try:
            for batch in self._parquet.iter_batches(ROWS_IN_GROUP, groups, columns) if left else ():
                some = batch.slice(min(skipped, len(batch)), left)
                skipped, left = max(0, skipped - len(batch)), left - len(some)
                if len(some):
                    yield some
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.path} is damaged: {error}; remove it, and run the sweep again") from None

    def checked(self) -> File:
        """The same file; DataError if its content is not what was written."""
        if self.path.name != f"traces-{checksum_of(self.path)}.parquet":
            raise DataError(
                f"{self.path} is damaged: its content is not what was written; remove it, and its points are run again"
            )
        return self

    def close(self) -> None:
        """Let go of the file."""
        self._parquet.close()


def files(folder: str | Path) -> list[Path]:
    """The Parquet files of traces in a folder of results, or in a folder of traces, in a fixed order."""
    return sorted(_inner(folder).glob(_FILES))


def _inner(folder: str | Path) -> Path:
    inner = Path(folder) / FOLDER
    return inner if inner.is_dir() else Path(folder)


def runs_of(folder: str | Path) -> dict[Path, list[Kept]]:
    """file -> its runs, for all `files` of a folder at one moment.

    A join removes the old files before it names the new one. For a moment some runs are in no file: then this function
    waits until the join is over.
    DataError for a file that is damaged, and if files are still not joined after `JOIN_S`.
    """
    end = time.perf_counter() + JOIN_S
    while (found := _runs_now(folder)) is None:
        if time.perf_counter() >= end:
            raise DataError(
                f"{folder} has traces that are being joined into one file; wait for the end of the sweep, or run it "
                "again if it was killed"
            )
        time.sleep(_POLL_S)
    return found


def _runs_now(folder: str | Path) -> dict[Path, list[Kept]] | None:
    """As `runs_of`, None if files are being joined."""
    found = {}
    for path in files(folder):
        try:
            found[path] = File(path).runs
        except DataError:
            if path.exists():
                raise
            return None
    keys = {(run.scenario, run.code) for runs in found.values() for run in runs}
    if any(_has_more(draft, keys) for draft in _inner(folder).glob(_WHOLE_DRAFTS)) or files(folder) != list(found):
        return None
    return found


def _has_more(draft: Path, keys: set[Key]) -> bool:
    """Whether a draft has runs besides these. One that is damaged takes the place of no file, so it has none."""
    try:
        return not File(draft).keys <= keys
    except DataError:
        return False


class TraceStore:
    """Keeps traces beside the results of a sweep. ``check`` is called before a file is written: it raises if another
    driver has the folder."""

    def __init__(self, folder: Path, check: Callable[[], None]) -> None:
        self._folder, self._check = folder / FOLDER, check
        self.keys: set[Key] = set()
        self._spool: _Spool

    def open(self) -> None:
        """Look what is there; DataError for a file that is damaged."""
        self.keys = set()
        for path in files(self._folder):
            file = File(path).checked()
            self.keys |= file.keys
            file.close()

    def begin(self, owner: str) -> bool:
        """Make ready for traces and bring what a killed driver has left into order; whether there was anything."""
        with _told(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        drafts, spools = sorted(self._folder.glob(_DRAFTS)), sorted(self._folder.glob(_SPOOLS))
        for path in drafts:
            self._finish(path)
        if drafts or spools:
            self.open()
        for path in spools:
            pieces = [piece for piece in _pieces(path) if piece.key not in self.keys]
            self._write_file(pieces, [])
            self.keys.update(piece.key for piece in pieces)
            path.unlink(missing_ok=True)
        self._spool = _Spool(self._folder / f"_spool-{owner}")
        return bool(drafts or spools)

    def add(self, rows: Iterable[Row]) -> None:
        """Keep the traces of rows that have one; one that is here already is dropped."""
        spool = self._spool
        with _told(self._folder):
            for row in rows:
                key = row.scenario, row.code
                if row.trace and key not in self.keys:
                    spool.add(key, row.trace)
                    self.keys.add(key)
            spool.flush()
        if spool.size_B >= CHUNK_B:
            self._write_spool([])

    def close(self) -> None:
        """Write what is left, and join small files."""
        small = [path for path in files(self._folder) if path.stat().st_size < _SMALL_B]
        if self._spool.size_B or len(small) > 1:
            self._write_spool(small)

    def _write_spool(self, instead_of: list[Path]) -> None:
        self._write_file(list(_pieces(self._spool.path)) if self._spool.size_B else [], instead_of)
        self._spool.end()

    def _write_file(self, pieces: list[_Piece], instead_of: list[Path]) -> None:
        """One file of these traces, and of those of other files, which go."""
        opened = [File(path) for path in instead_of]
        pieces = [*pieces, *(piece for file in opened for piece in _pieces_of(file))]
        if not pieces:
            return
        self._check()
        with _told(self._folder):
            draft = _written(self._folder / f"_new-{os.getpid()}", pieces)
            for file in opened:
                file.close()
            self._finish(draft)

    def _finish(self, draft: Path) -> None:
        """Give a draft that is whole its name, in place of the files that have no other runs; else remove it."""
        name = draft.name.removeprefix("_new-") + ".parquet"
        if name != f"traces-{checksum_of(draft)}.parquet":
            draft.unlink()
            return
        has = File(draft).keys
        for path in files(self._folder):
            if path.name != name and File(path).keys <= has:
                path.unlink(missing_ok=True)
        draft.replace(self._folder / name)


class _Spool:
    """Traces as they came, one behind the other, each behind a line with its checksum, its key and its length."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size_B = 0
        self._file: IO[bytes] | None = None

    def add(self, key: Key, packed: bytes) -> None:
        """Append a trace."""
        if self._file is None:
            self._file = self.path.open("wb")
        head = json.dumps([*key, len(packed)]).encode()
        self._file.write(checksum(head, packed).encode() + b" " + head + b"\n")
        self._file.write(packed)
        self.size_B += len(packed)

    def flush(self) -> None:
        """Hand what was added to the operating system, so that it is not lost if this process is killed."""
        if self._file is not None:
            self._file.flush()

    def end(self) -> None:
        """Remove it: what it has stands elsewhere."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self.path.unlink(missing_ok=True)
        self.size_B = 0


def _pieces(spool: Path) -> Iterator[_Piece]:
    """The traces of a spool that are whole, up to the first that is not."""
    with spool.open("rb") as file:
        while line := file.readline():
            try:
                told, _, head = line.rstrip(b"\n").partition(b" ")
                scenario, code, length = json.loads(head)
                begin = file.tell()
                if told != checksum(head, file.read(length)).encode():
                    return
            except (ValueError, TypeError, RecursionError):
                return
            yield _Piece((scenario, code), partial(_from_spool, spool, begin))


def _from_spool(spool: Path, begin: int) -> Iterator[pa.RecordBatch]:
    with spool.open("rb") as file:
        file.seek(begin)
        yield from batches(file)


def _pieces_of(file: File) -> Iterator[_Piece]:
    for run in file.runs:
        key = run.scenario, run.code
        yield _Piece(key, partial(file.batches, run, trace.SCHEMA.names))


# Writing


def _written(draft: Path, pieces: list[_Piece]) -> Path:
    """A draft with these traces, named by its checksum and flushed to the disk."""
    with draft.open("wb") as plain:
        sink = _Hashing(plain)
        write(sink, ((*piece.key, piece.batches()) for piece in sorted(pieces, key=lambda piece: piece.key)))
        plain.flush()
        os.fsync(plain.fileno())
    return draft.replace(draft.with_name(f"_new-traces-{sink.digest}"))


def write(sink: Any, runs: Iterable[tuple[str, str, Iterable[pa.RecordBatch]]]) -> None:
    """Write runs into a Parquet file (a path, or a file that is open): (scenario, code, batches of a trace) each.

    They should come sorted by scenario, with the rows of each in order. No more than two row groups are in memory.
    """
    has_dictionary = [name for name in SCHEMA.names if name not in _ASCENDING]
    options: dict[str, Any] = {
        "compression": "zstd",
        "write_page_checksum": True,
        "use_dictionary": has_dictionary,
        "column_encoding": dict.fromkeys(_ASCENDING, "DELTA_BINARY_PACKED"),
    }
    kept: list[Kept] = []
    waiting: list[pa.RecordBatch] = []
    place = 0
    with pq.ParquetWriter(sink, SCHEMA, **options) as writer:
        for scenario, code, some in runs:
            rows = 0
            for batch in some:
                if sum(map(len, waiting)) + len(batch) > ROWS_IN_GROUP:
                    _write_group(writer, waiting)
                waiting.append(with_key(batch, scenario, code, rows))
                rows += len(batch)
            kept.append(Kept(scenario, code, place, rows))
            place += rows
        _write_group(writer, waiting)
        writer.add_key_value_metadata({RUNS: json.dumps(kept).encode(), LAYOUT: VERSION})


def _write_group(writer: pq.ParquetWriter, waiting: list[pa.RecordBatch]) -> None:
    if waiting:
        # One dictionary a group: where they differ within one, Parquet would write the texts out.
        writer.write_table(pa.Table.from_batches(waiting).unify_dictionaries().combine_chunks(), ROWS_IN_GROUP)
        waiting.clear()


def with_key(batch: pa.RecordBatch, scenario: str, code: str, first: int) -> pa.RecordBatch:
    """A batch of a trace with the columns of `BEFORE`."""
    same = np.zeros(len(batch), np.int32)
    keys = [pa.DictionaryArray.from_arrays(same, pa.array([one])) for one in (scenario, code)]
    numbers = pa.array(np.arange(first, first + len(batch)))
    return pa.RecordBatch.from_arrays([*keys, numbers, *batch.columns], schema=SCHEMA)


class _Hashing:
    """A file to write to, which knows the checksum of what was written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._sha = file, hashlib.sha256()

    @property
    def digest(self) -> str:
        return digits(self._sha)

    def write(self, content: Any) -> int:
        self._sha.update(content)
        return self._file.write(content)

    @property
    def closed(self) -> bool:
        return self._file.closed

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """The file stays open: it is to be flushed to the disk."""

    def tell(self) -> int:
        return self._file.tell()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """An error of the system as a sentence."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror}") from None

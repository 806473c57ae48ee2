"""The traces of a sweep's runs, in the folder `FOLDER` beside its results: a few large Parquet files.

Theory of operation
    A trace is first appended, packed and with a checksum, to a *spool* file, which is flushed to the operating system.
    So the trace survives if this process is killed. When the spool has `CHUNK_B` bytes, and at the end of the sweep,
    its traces are written into one Parquet file, sorted by scenario, and the spool is removed. So this process needs
    memory for a few batches only. If the sweep is killed, the next sweep reads the spool.

    A file is a draft until it is complete and flushed to disk. Then it gets its final name, which contains the first 16
    hex digits of its SHA-256. Its metadata (`RUNS`) list its runs and their rows. Small files are joined when a sweep
    ends. The old files are removed before the new file gets its final name, so no reader finds a run twice.

Layout
    The rows of a run are contiguous and in the order of recording. The columns `KEY_COLUMNS` (the scenario's hash, the
    digest of the code, the row's number in its run) precede the columns of a trace. A run of up to `ROWS_IN_GROUP` rows
    is in one row group. Files are sorted by scenario. The statistics of a row group have the range of its scenarios, so
    reading a run reads one row group.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import DataError
from workbench.locations import Location, ObjectPath, location, opened
from workbench.sim import trace
from workbench.sweeps.store.files import checksum, checksum_of, digits
from workbench.sweeps.work import Row, unpack_batches

FOLDER = "_traces"  # readers of Parquet ignore this folder when they read the folder of results
CHUNK_B = 256 << 20  # size of a spool at which it becomes a Parquet file, which is somewhat smaller
ROWS_IN_GROUP = 1 << 18
RUNS = b"workbench.runs"
LAYOUT, VERSION = b"workbench.traces", b"1"
_TEXT = pa.dictionary(pa.int32(), pa.string())
KEY_COLUMNS = {"scenario": _TEXT, "code": _TEXT, "row": pa.int64()}
SCHEMA = pa.schema([*KEY_COLUMNS.items(), *trace.SCHEMA])

JOIN_S = 10.0  # longest wait of a reader for files that are being joined

_SMALL_B = 8 << 20
_POLL_S = 0.05
_SPOOLS, _DRAFTS, _WHOLE_DRAFTS, _FILES = "_spool-*", "_new-*", "_new-traces-*", "traces-*.parquet"
# Slowly rising numbers: their differences take a tenth of the space of a dictionary.
_ASCENDING = ("row", "time_us", "sequence")

Key = tuple[str, str]  # a scenario's hash, and the digest of the code that ran it


class StoredRun(NamedTuple):
    """A reference to a run in a file of traces.

    scenario    hash of the run's scenario
    code        digest of the code that ran the scenario
    first       index of the first row of the run's trace in the file
    rows        number of rows of the trace
    """

    scenario: str
    code: str
    first: int
    rows: int


class _TraceSource(NamedTuple):
    """A trace to be written, and the ``key`` of its run: (hash of the scenario, digest of the code that ran it).

    ``batches`` is a function that yields the rows of the trace.
    """

    key: Key
    batches: Callable[[], Iterator[pa.RecordBatch]]


class File:
    """A Parquet file of traces. The constructor reads only its metadata; `checked` verifies the content."""

    def __init__(self, path: Location) -> None:
        self.path = path
        try:
            self._parquet = pq.ParquetFile(opened(path), page_checksum_verification=True)
            metadata = self._parquet.metadata.metadata or {}
            self.runs = [StoredRun(*run) for run in json.loads(metadata[RUNS])]
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
            raise DataError(f"{path} is damaged, or not a file of traces; remove it and run the sweep again") from None
        if metadata.get(LAYOUT) != VERSION:
            raise DataError(f"{path} has traces in the layout of another version; use another folder for the sweep")

    @property
    def keys(self) -> set[Key]:
        """The keys of the runs in the file, each (scenario's hash, digest of the code)."""
        return {(run.scenario, run.code) for run in self.runs}

    def batches(self, run: StoredRun, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the trace of ``run``, a run of this file, in batches; rows have the order in which they were recorded.

        ``columns`` are the names of the columns to read, None for all. Raises DataError if the file is damaged.
        """
        metadata, first_row, groups = self._parquet.metadata, 0, []
        skipped_rows = 0
        for group in range(metadata.num_row_groups):
            end_row = first_row + metadata.row_group(group).num_rows
            if first_row < run.first + run.rows and end_row > run.first:
                skipped_rows = skipped_rows if groups else run.first - first_row
                groups.append(group)
            first_row = end_row
        rows_left = run.rows
        try:
            for batch in self._parquet.iter_batches(ROWS_IN_GROUP, groups, columns) if rows_left else ():
                selected_rows = batch.slice(min(skipped_rows, len(batch)), rows_left)
                skipped_rows, rows_left = max(0, skipped_rows - len(batch)), rows_left - len(selected_rows)
                if len(selected_rows):
                    yield selected_rows
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.path} is damaged: {error}; remove it and run the sweep again") from None

    def checked(self) -> File:
        """Verify the checksum and return this object. Raises DataError if the file is damaged."""
        if self.path.name != f"traces-{checksum_of(self.path)}.parquet":
            raise DataError(
                f"{self.path} is damaged: its content does not match its checksum; "
                "remove the file and run the sweep again"
            )
        return self

    def close(self) -> None:
        """Close the file."""
        self._parquet.close()


def files(folder: str | Location) -> list[Location]:
    """Return the Parquet files of traces in a folder of results or of traces, in a fixed order."""
    return sorted(_trace_folder(folder).glob(_FILES))


def _trace_folder(folder: str | Location) -> Location:
    trace_folder = location(folder) / FOLDER
    return trace_folder if trace_folder.is_dir() else location(folder)


def list_runs(folder: str | Location) -> dict[Location, list[StoredRun]]:
    """Return {file: its runs} for all `files` of a folder, in a consistent state. A run may be in two files.

    A sweep that joins files removes the old files before the new file gets its name, so runs are missing for a moment.
    This function then waits until the join is complete. Raises DataError for a damaged file, and if a join takes longer
    than `JOIN_S`.
    """
    end_s = time.perf_counter() + JOIN_S
    while (runs_by_file := _list_runs_once(folder)) is None:
        if time.perf_counter() >= end_s:
            raise DataError(
                f"{folder}: a sweep is replacing files of traces; wait for the end of the sweep, or run it again if it "
                "was killed"
            )
        time.sleep(_POLL_S)
    return runs_by_file


def _list_runs_once(folder: str | Location) -> dict[Location, list[StoredRun]] | None:
    """Return {file: its runs} for all `files` of a folder, or None if a sweep is replacing files at this moment."""
    runs_by_file = {}
    for path in files(folder):
        try:
            runs_by_file[path] = File(path).runs
        except DataError:
            if path.exists():
                raise
            return None
    run_keys = {(run.scenario, run.code) for runs in runs_by_file.values() for run in runs}
    if any(_has_other_runs(draft, run_keys) for draft in _trace_folder(folder).glob(_WHOLE_DRAFTS)) or files(
        folder
    ) != list(runs_by_file):
        return None
    return runs_by_file


def without_repetitions(runs_by_file: dict[Location, list[StoredRun]]) -> dict[Location, list[StoredRun]]:
    """Return {file: its runs} without runs that an earlier file has; a file without other runs is left out.

    A run is in two files if a worker was lost after it had written the run's trace.
    """
    keys: set[Key] = set()
    result: dict[Location, list[StoredRun]] = {}
    for path, runs in runs_by_file.items():
        new_runs = [run for run in runs if (run.scenario, run.code) not in keys]
        keys.update((run.scenario, run.code) for run in new_runs)
        if new_runs:
            result[path] = new_runs
    return result


def _has_other_runs(draft: Location, keys: set[Key]) -> bool:
    """Return whether the file ``draft`` has a run that is not in ``keys``, {(scenario hash, code digest)}.

    Returns False for a damaged draft, which never becomes a file of traces.
    """
    try:
        return not File(draft).keys <= keys
    except DataError:
        return False


class TraceStore:
    """A store of traces beside the results of a sweep.

    The function ``check`` is called before a file is written. It must raise DataError if the lock of the folder has
    expired.
    """

    def __init__(self, folder: Location, check: Callable[[], None]) -> None:
        self._folder, self._check = folder / FOLDER, check
        self.keys: set[Key] = set()
        self._spool: _Spool

    def open(self) -> None:
        """Read the keys of the stored traces.

        Raises DataError for a damaged file. In an object store, only the metadata of the files are checked.
        """
        self.keys = set()
        for path in files(self._folder):
            file = File(path)
            if not isinstance(path, ObjectPath):  # Verifying an object would transfer all of it.
                file.checked()
            self.keys |= file.keys
            file.close()

    def begin(self, owner: str) -> bool:
        """Prepare to write traces as ``owner``, the random id of the sweep, which names its temporary files.

        First store the traces from drafts and spools, the temporary files that a killed sweep has left. Return
        whether such files existed.
        """
        with _name_folder_in_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        drafts, spools = sorted(self._folder.glob(_DRAFTS)), sorted(self._folder.glob(_SPOOLS))
        for path in drafts:
            self._finish_draft(path)
        if drafts or spools:
            self.open()
        for path in spools:
            sources = [source for source in _find_spool_sources(path) if source.key not in self.keys]
            self._write_file(sources, [])
            self.keys.update(source.key for source in sources)
            path.unlink(missing_ok=True)
        self._spool = _Spool(self._folder / f"_spool-{owner}")
        return bool(drafts or spools)

    def add(self, rows: Iterable[Row]) -> None:
        """Store the traces of result rows, except traces that are stored already."""
        spool = self._spool
        with _name_folder_in_errors(self._folder):
            for row in rows:
                run_key = row.scenario, row.code
                if row.trace and run_key not in self.keys:
                    spool.add(run_key, row.trace)
                    self.keys.add(run_key)
            spool.flush()
        if spool.size_B >= CHUNK_B:
            self._write_spool([])

    def close(self) -> None:
        """Write the remaining traces into a Parquet file, join small files, and remove repeated runs."""
        runs_by_file = {path: File(path).runs for path in files(self._folder)}
        unique_runs = without_repetitions(runs_by_file)
        has_repetitions = {path for path, runs in runs_by_file.items() if unique_runs.get(path) != runs}
        joined_files = [path for path in runs_by_file if path in has_repetitions or path.stat().st_size < _SMALL_B]
        if self._spool.size_B or has_repetitions or len(joined_files) > 1:
            self._write_spool(joined_files)

    def _write_spool(self, replaced: list[Location]) -> None:
        self._write_file(self._spool.sources(), replaced)
        self._spool.end()

    def _write_file(self, sources: list[_TraceSource], replaced: list[Location]) -> None:
        """Write the traces of ``sources`` and of the files ``replaced`` into one new file, and remove ``replaced``."""
        replaced_files = [File(path) for path in replaced]
        sources = [*sources, *(source for file in replaced_files for source in _find_file_sources(file))]
        if not sources:
            return
        sources = list({source.key: source for source in sources}.values())
        self._check()
        with _name_folder_in_errors(self._folder):
            draft = _write_draft(self._folder / f"_new-{os.getpid()}", sources)
            for file in replaced_files:
                file.close()
            self._finish_draft(draft)

    def _finish_draft(self, draft: Location) -> None:
        """Give the file ``draft`` its final name, or remove it if it is incomplete.

        Before the draft is renamed, older files whose runs are all in the draft are removed.
        """
        file_name = _final_name(draft)
        # An object is written as a whole, so it needs no check.
        if not isinstance(draft, ObjectPath) and file_name != f"traces-{checksum_of(draft)}.parquet":
            draft.unlink()
            return
        draft_keys = File(draft).keys
        for path in files(self._folder):
            if path.name != file_name and File(path).keys <= draft_keys:
                path.unlink(missing_ok=True)
        draft.replace(self._folder / file_name)


def write_traces(folder: str, rows: Iterable[Row]) -> None:
    """Write the traces of result rows into one file of the folder or URL ``folder``, as a worker of a sweep.

    The file is named after its content, so a task that runs twice writes the same file. Raises DataError if the file
    cannot be written.
    """
    trace_folder = location(folder)
    sources = [_TraceSource((row.scenario, row.code), partial(unpack_batches, row.trace)) for row in rows if row.trace]
    if not sources:
        return
    with _name_folder_in_errors(trace_folder):
        trace_folder.mkdir(parents=True, exist_ok=True)
        draft = _write_draft(trace_folder / f"_new-{uuid.uuid4().hex}", sources)
        draft.replace(trace_folder / _final_name(draft))


def _final_name(draft: Location) -> str:
    """Return the name that the complete temporary file ``draft`` gets: traces-CHECKSUM.parquet."""
    return draft.name.removeprefix("_new-") + ".parquet"


class _Spool:
    """Temporary files to which traces are appended as they arrive: one file in a folder, many in an object store.

    ``path`` is the path of the first file. A line with the trace's checksum, key (scenario hash, code digest) and
    length precedes each trace. Objects cannot be appended to, so in an object store each `flush` writes an object.
    """

    def __init__(self, path: Location) -> None:
        self.path = path
        self._paths: list[Location] = []
        self._file: IO[bytes] | None = None
        self.size_B = 0

    def add(self, key: Key, packed: bytes) -> None:
        """Append ``packed``, a packed trace (`work.pack`); ``key`` is (hash of its scenario, digest of its code)."""
        if self._file is None and isinstance(self.path, ObjectPath):
            self._file = io.BytesIO()
        elif self._file is None:
            self._file = self.path.open("wb")
            self._paths.append(self.path)
        assert self._file is not None
        header = json.dumps([*key, len(packed)]).encode()
        self._file.write(checksum(header, packed).encode() + b" " + header + b"\n")
        self._file.write(packed)
        self.size_B += len(packed)

    def flush(self) -> None:
        """Write added traces to the operating system or object store. They then survive this process."""
        if isinstance(self._file, io.BytesIO):
            path = self.path.with_name(f"{self.path.name}-{len(self._paths):04}")
            path.write_bytes(self._file.getvalue())
            self._paths.append(path)
            self._file = None
        elif self._file is not None:
            self._file.flush()

    def sources(self) -> list[_TraceSource]:
        """Return the traces in the temporary files, without reading their rows into memory."""
        return [source for path in self._paths for source in _find_spool_sources(path)]

    def end(self) -> None:
        """Remove the temporary files, after their traces were written into a Parquet file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        for path in self._paths:
            path.unlink(missing_ok=True)
        self._paths, self.size_B = [], 0


def _find_spool_sources(spool: Location) -> Iterator[_TraceSource]:
    """Yield the traces in a spool (a temporary file of traces), up to the first incomplete or damaged trace."""
    with spool.open("rb") as file:
        while header_line := file.readline():
            try:
                stored_checksum, _, header = header_line.rstrip(b"\n").partition(b" ")
                scenario, code, length = json.loads(header)
                begin_B = file.tell()
                if stored_checksum != checksum(header, file.read(length)).encode():
                    return
            except (ValueError, TypeError, RecursionError):
                return
            yield _TraceSource((scenario, code), partial(_read_spool, spool, begin_B))


def _read_spool(spool: Location, begin: int) -> Iterator[pa.RecordBatch]:
    with spool.open("rb") as file:
        file.seek(begin)
        yield from unpack_batches(file)


def _find_file_sources(file: File) -> Iterator[_TraceSource]:
    for run in file.runs:
        key = run.scenario, run.code
        yield _TraceSource(key, partial(file.batches, run, trace.SCHEMA.names))


# Writing


def _write_draft(draft: Location, sources: list[_TraceSource]) -> Location:
    """Write the traces of ``sources`` into a draft (temporary file), flush it to disk, and name it after its checksum.

    ``draft`` is the path while writing. Returns the new path.
    """
    is_object = isinstance(draft, ObjectPath)
    with tempfile.TemporaryFile() if is_object else draft.open("wb") as draft_file:
        sink = _HashingFile(draft_file)
        write(sink, ((*source.key, source.batches()) for source in sorted(sources, key=lambda source: source.key)))
        whole_draft = draft.with_name(f"_new-traces-{sink.digest}")
        draft_file.flush()
        if isinstance(whole_draft, ObjectPath):
            draft_file.seek(0)
            whole_draft.send(draft_file)
            return whole_draft
        os.fsync(draft_file.fileno())
    return draft.replace(whole_draft)


def write(sink: Any, runs: Iterable[tuple[str, str, Iterable[pa.RecordBatch]]]) -> None:
    """Write the traces of ``runs`` into the Parquet file ``sink``, a path or an open file.

    A run is (hash of its scenario, digest of the code that ran it, batches of its trace). Runs should be sorted by
    hash, and the rows of a run by their index in the trace. At most two row groups are in memory.
    """
    dictionary_columns = [name for name in SCHEMA.names if name not in _ASCENDING]
    options: dict[str, Any] = {
        "compression": "zstd",
        "write_page_checksum": True,
        "use_dictionary": dictionary_columns,
        "column_encoding": dict.fromkeys(_ASCENDING, "DELTA_BINARY_PACKED"),
    }
    stored_runs: list[StoredRun] = []
    batches: list[pa.RecordBatch] = []
    first_row = 0
    with pq.ParquetWriter(sink, SCHEMA, **options) as writer:
        for scenario, code, trace_batches in runs:
            written_rows = 0
            for batch in trace_batches:
                if sum(map(len, batches)) + len(batch) > ROWS_IN_GROUP:
                    _write_group(writer, batches)
                batches.append(with_key(batch, scenario, code, written_rows))
                written_rows += len(batch)
            stored_runs.append(StoredRun(scenario, code, first_row, written_rows))
            first_row += written_rows
        _write_group(writer, batches)
        writer.add_key_value_metadata({RUNS: json.dumps(stored_runs).encode(), LAYOUT: VERSION})


def _write_group(writer: pq.ParquetWriter, batches: list[pa.RecordBatch]) -> None:
    """Write ``batches`` as one row group, and empty the list."""
    if batches:
        # One dictionary for the group; with several, Parquet would write the texts themselves.
        writer.write_table(pa.Table.from_batches(batches).unify_dictionaries().combine_chunks(), ROWS_IN_GROUP)
        batches.clear()


def with_key(batch: pa.RecordBatch, scenario: str, code: str, first: int) -> pa.RecordBatch:
    """Return a batch of a trace with the columns `KEY_COLUMNS` in front.

    ``scenario`` is the hash of the run's scenario, ``code`` the digest of the code that ran it, and ``first`` the index
    of the batch's first row in the trace.
    """
    zeros = np.zeros(len(batch), np.int32)
    key_columns = [pa.DictionaryArray.from_arrays(zeros, pa.array([text])) for text in (scenario, code)]
    row_numbers = pa.array(np.arange(first, first + len(batch)))
    return pa.RecordBatch.from_arrays([*key_columns, row_numbers, *batch.columns], schema=SCHEMA)


class _HashingFile:
    """A wrapper of a file for writing that computes the checksum of the written content."""

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
        """Do nothing when Parquet's writer closes this file; the wrapped file stays open to be flushed to disk."""

    def tell(self) -> int:
        return self._file.tell()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


@contextmanager
def _name_folder_in_errors(folder: Location) -> Iterator[None]:
    """Convert an OSError that is raised inside the context into a DataError that names the folder."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror}") from None

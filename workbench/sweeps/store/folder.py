"""Stores of results: FolderStore in a folder, in which each result is stored once, and MemoryStore.

``open`` reads the folder. ``begin`` locks the folder, so that no other process writes into it. It also stores rows from
the temporary files (drafts and journals) of a killed sweep, and removes duplicate rows. ``add`` writes rows to the
journal at once and to a Parquet file within `FLUSH_S`. ``close`` extends all files to the same columns, because readers
of Parquet use the columns of the first file for the whole folder. It also joins small files, and releases the lock.

The folder may be the URL of an object store. There a draft is written as a whole, the journal is a series of objects,
and the lock is an object (`workbench.locations`).
"""

from __future__ import annotations

import json
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import workbench
from workbench.errors import DataError
from workbench.locations import FolderLock, Location, ObjectLock, location, lock
from workbench.sweeps import user_code
from workbench.sweeps.plan import Plan
from workbench.sweeps.store import files, journal, traces
from workbench.sweeps.store.columns import Columns, stored_seed
from workbench.sweeps.store.stored_rows import StoredRows
from workbench.sweeps.store.traces import TraceStore
from workbench.sweeps.values import WRONG
from workbench.sweeps.work import Row

LOCK = "_lock.json"
FLUSH_S = 5.0
_FLUSH_B = 64 << 20
_SMALL_B, _LARGE_B = 16 << 20, 64 << 20  # files below the first size are joined, up to the second
# The name of the file has its checksum: another wording would add a second file to folders of earlier versions.
_FOLDER_PURPOSE = (
    "Results of parameter sweeps of the workbench: *.parquet has one row per point, with its whole scenario in the "
    "column 'document'; running the same sweep with out= this folder goes on where it stopped."
)


class _FileInfo(NamedTuple):
    """A result file of the folder: the number of its columns for parameters and metrics, and its size in bytes."""

    columns: int
    size_B: int


class FolderStore:
    """A store of a sweep's result rows in a folder, and of the runs' traces if the plan keeps them."""

    def __init__(self, folder: str | Location) -> None:
        self.place = str(folder)
        self._folder = location(folder)
        self._columns = Columns()
        self._files: dict[Location, _FileInfo] = {}
        self._stored_files: list[files.File] = []
        self._rows_to_drop: dict[Location, set[int]] = {}  # file -> indices of duplicates and retried rows
        self._unwritten: list[dict[str, Any]] = []
        self._unwritten_B = self._journaled_columns = 0
        self._flushed_s = time.perf_counter()
        self._lock: FolderLock | ObjectLock | None = None
        self._traces: TraceStore | None = None  # None unless the plan keeps traces

    @property
    def trace_folder(self) -> str:
        """The absolute path or the URL of the folder of the runs' traces."""
        return str(self._folder.absolute() / traces.FOLDER)

    def open(self, plan: Plan, retry: bool = False) -> StoredRows:
        """Open the folder for a plan and return {number of a point (scenario of the sweep): its stored row}.

        If ``retry`` is True, the rows of failed points are left out. Raises DataError for a damaged file, and for a
        Parquet file that no sweep has written.
        """
        self._plan, self._retry = plan, retry
        try:
            if plan.keeps_traces:
                self._traces = TraceStore(self._folder, self._check_lock)
                self._traces.open()
            return self._read_rows()
        except OSError as error:  # of an object store
            raise DataError(f"{self.place} cannot be read: {error.strerror or error}") from None

    def begin(self, rows: StoredRows) -> StoredRows:
        """Lock the folder for writing, and return {number of a point: its stored row}.

        ``rows`` are the rows that `open` returned. The result also has the rows that were stored since then.
        Raises DataError if another process uses the folder, or if the folder cannot be written.
        """
        self._lock = lock(self._folder, LOCK, "runs a sweep into it")
        try:
            owner = uuid.uuid4().hex
            files.remove_drafts(self._folder)
            self._journal = journal.Journal(self._folder, owner)
            had_traces = self._traces is not None and self._traces.begin(owner)
            is_unchanged = not self._repair_folder() and set(self._folder.glob("*.parquet")) == set(self._files)
            stored_rows = rows if is_unchanged and not had_traces else self._read_rows()
            self._write_description()
        except BaseException:
            self._release_lock()
            raise
        return stored_rows

    def add(self, rows: Iterable[Row]) -> None:
        """Store ``rows``; a row whose result is stored already is left out.

        Raises DataError if the lock of an object store has expired.
        """
        self._check_lock()
        rows = list(rows)
        if self._traces is not None:
            self._traces.add(rows)  # Traces before rows, because a point with a row counts as done.
        journal_lines: list[Any] = []
        for point_row in rows:
            point_key = self._plan.point_key(point_row.number)
            result_key = self._plan.key(point_row.scenario, point_row.code) if point_row.scenario else point_key
            if result_key not in self._stored_keys:
                self._stored_keys.add(result_key)
                journal_lines.append(["row", self._columns.cells(self._plan, point_row, point_key, result_key)])
                self._unwritten.append(journal_lines[-1][1])
                self._unwritten_B += len(point_row.document)
        if len(self._columns) > self._journaled_columns:
            journal_lines.insert(0, ["columns", self._columns.origins()])
            self._journaled_columns = len(self._columns)
        self._journal.add(journal_lines)
        if time.perf_counter() - self._flushed_s >= FLUSH_S or self._unwritten_B >= _FLUSH_B:
            self._flush_rows()

    def close(self) -> None:
        """Write the remaining rows into Parquet files, join small files, and unlock the folder.

        Afterwards all result files have the same columns.
        """
        if self._lock is None:
            return
        try:
            self._flush_rows()
            self._unify_columns()
            if self._traces is not None:
                self._traces.close()
        finally:
            self._release_lock()

    # Reading

    def _read_rows(self) -> StoredRows:
        self._columns, self._files, self._rows_to_drop = Columns(), {}, defaultdict(set)
        self._stored_files = list(files.files(self._folder))
        self.__dict__.pop("_stored_keys", None)
        for file in self._stored_files:
            self._columns.merge(file.origins, str(file.path))
            self._files[file.path] = _FileInfo(len(file.origins), file.size_B)
        self._mark_duplicates()
        rows = StoredRows(self._plan)
        if self._stored_files:
            points = pa.array(self._plan.point_keys())
            numbers = self._numbers_of_rows(points)
            results = self._results_of_other_plans(points, numbers)
            for file, numbers_of_file in zip(self._stored_files, numbers, strict=True):
                rows.add_file(file, *self._match_rows(file, numbers_of_file, results))
            rows.copy_repeated(pc.index_in(points, points).to_numpy())
        return rows

    @cached_property
    def _stored_keys(self) -> set[str]:
        """The keys of all results in the folder. They are collected when the first row is added."""
        return {key for file in self._stored_files for key in file.column("key").to_pylist()}

    def _mark_duplicates(self) -> None:
        columns = [file.column("key") for file in self._stored_files]
        if sum(map(len, columns)) == (len(pc.unique(pa.chunked_array(columns, pa.string()))) if columns else 0):
            return
        keys: set[str] = set()
        for file, column in zip(self._stored_files, columns, strict=True):
            for index, key in enumerate(column.to_pylist()):
                if key in keys:
                    self._rows_to_drop[file.path].add(index)
                keys.add(key)

    def _numbers_of_rows(self, points: pa.Array) -> list[np.ndarray]:
        """Return, for each file, the number of each row's point, or -1 for a row of another plan.

        ``points`` are the keys of the plan's points. They are made into a hash table once for all files, because with a
        million points this takes a quarter of a second.
        """
        columns = [file.column("point") for file in self._stored_files]
        stored_points = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
        numbers = pc.fill_null(pc.index_in(stored_points, points), -1).to_numpy()
        return np.split(numbers, np.cumsum([len(column) for column in columns])[:-1])

    def _match_rows(
        self, file: files.File, numbers: np.ndarray, results: dict[str, list[int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (numbers of points, indices of their rows in ``file``) for the plan's points that have a row there.

        ``numbers`` has the number of each row's point (`_numbers_of_rows`). ``results`` is {key of a result: numbers of
        the plan's points with this result}, for results that another plan has stored. A failed point that will run
        again counts as a point without a row, and so does a successful point whose trace is missing.
        """
        indices = np.flatnonzero(numbers >= 0)
        numbers = numbers[indices].astype(np.int64)
        if results:
            positions = [
                (number, index)
                for index, key in enumerate(file.column("key").to_pylist())
                for number in results.get(key, ())
            ]
            numbers = np.append(numbers, np.array([number for number, _ in positions], np.int64))
            indices = np.append(indices, np.array([index for _, index in positions], np.int64))
        has_error = pc.is_valid(file.column("error")).to_numpy()[indices]
        is_wanted = np.ones(len(indices), bool)
        if self._retry:
            self._rows_to_drop[file.path].update(indices[has_error].tolist())
            is_wanted = ~has_error
        if self._traces is not None:
            runs = list(zip(*(file.column(name).to_pylist() for name in ("scenario", "code")), strict=True))
            has_trace = np.array([runs[index] in self._traces.keys for index in indices.tolist()], bool)
            is_wanted &= has_error | has_trace
        return numbers[is_wanted], indices[is_wanted]

    def _results_of_other_plans(self, points: pa.Array, numbers: list[np.ndarray]) -> dict[str, list[int]]:
        """Return {key of a result: numbers of this plan's points with this result} for results of other plans.

        Another plan may have stored these results. ``points`` are the keys of this plan's points (`Plan.point_key`);
        points that are stored under this key are left out. ``numbers`` is the result of `_numbers_of_rows`. The key of
        a result (`Plan.key`) is the same in all plans, but needs the point's scenario, so `_find_candidates` first
        selects the points for which a scenario is built.
        """
        candidates: set[tuple[str, int | None]] = set()
        for file, numbers_of_file in zip(self._stored_files, numbers, strict=True):
            candidates |= self._find_candidates(file, numbers_of_file < 0)
        if not candidates:
            return {}
        has_row = np.zeros(len(points), bool)
        for file in self._stored_files:
            has_row |= pc.is_in(points, file.column("point")).to_numpy(zero_copy_only=False)
        numbers_by_key: dict[str, list[int]] = {}
        for number in np.flatnonzero(~has_row).tolist():
            if (self._plan.code_of(number), stored_seed(self._plan.seed_of(number))) in candidates:
                with suppress(*WRONG):
                    scenario = self._plan.scenario_of(number)
                    result_key = self._plan.key(scenario.hash, self._plan.codes.digest(scenario.protocol))
                    numbers_by_key.setdefault(result_key, []).append(number)
        return numbers_by_key

    def _find_candidates(self, file: files.File, is_other: np.ndarray) -> set[tuple[str, int | None]]:
        """Return {(digest of the code, seed)} of other plans' rows that may be results of this plan's points.

        ``is_other``: for each row of the file, whether its point is of another plan. Such a row qualifies if its engine
        and measure are those of this plan. Building a scenario takes a tenth of a millisecond, so the caller builds
        only the scenarios of points with one of these pairs.
        """
        if not is_other.any():
            return set()
        measure = user_code.name_of(self._plan.measure) or None
        columns = (file.column(name).filter(pa.array(is_other)).to_pylist() for name in _CANDIDATE_COLUMNS)
        return {
            (code, seed)
            for engine, row_measure, code, seed in zip(*columns, strict=True)
            if (engine, row_measure) == (self._plan.engine, measure)
        }

    # Tidying

    def _repair_folder(self) -> bool:
        """Store the rows from the drafts and journals (temporary files) that a killed sweep has left.

        Also remove duplicate rows. If the sweep is about to run failed points again, remove their rows too. Return
        True if the folder was changed or read again.
        """
        journals, drafts = sorted(self._folder.glob(journal.NAMES)), sorted(self._folder.glob(files.DRAFTS))
        is_new = set(self._folder.glob("*.parquet")) != set(self._files)
        is_read_again = is_new and bool(journals or drafts or self._retry)
        if is_read_again:
            self._read_rows()
        for path, table in files.drafts(self._folder):
            if table is not None:
                is_lost = [key not in self._stored_keys for key in table.column("key").to_pylist()]
                files.write(self._folder, table.filter(pa.array(is_lost, pa.bool_())))
            path.unlink(missing_ok=True)
        if drafts:
            self._read_rows()
        for path in journals:
            self._unwritten += self._read_journal(path)
        self._flush_rows()
        for path in journals:
            path.unlink(missing_ok=True)
        if journals:
            self._read_rows()  # Failed points of a journal are retried, too.
        rows_to_drop = {path: indices for path, indices in self._rows_to_drop.items() if indices}
        for path, indices in rows_to_drop.items():
            table = files.File(path).table()
            files.write(self._folder, table.filter(pa.array([i not in indices for i in range(len(table))])), [path])
        return is_read_again or bool(journals or drafts or rows_to_drop)

    def _read_journal(self, path: Location) -> Iterator[dict[str, Any]]:
        """Yield the rows of the journal file ``path`` that are not in a Parquet file yet, each as {column: value}."""
        for kind, content in journal.lines(path):
            if kind == "columns":
                self._columns.merge(content, str(path))
            elif content["key"] not in self._stored_keys and content.keys() <= set(self._columns.schema().names):
                self._stored_keys.add(content["key"])
                yield content

    def _write_description(self) -> None:
        """Write a JSON file that describes the sweep into the folder, unless the folder has one already."""
        plan = self._plan
        description = {
            "what": _FOLDER_PURPOSE,
            "version": workbench.__version__,
            "engine": plan.engine,
            **({} if plan.measure is None else {"measure": user_code.name_of(plan.measure)}),
            **({"keep": "trace"} if plan.keeps_traces else {}),
            **plan.design.describe(),
            "scenario": json.loads(plan.scenario.to_json()),
        }
        description_json = (json.dumps(description, indent=2, ensure_ascii=False) + "\n").encode()
        file_name = f"_sweep-{files.checksum(description_json)}.json"
        if not (self._folder / file_name).exists():
            files.write_whole(self._folder, file_name, description_json)

    # Writing

    def _flush_rows(self) -> None:
        """Write the rows that were added since the last write into a new Parquet file, and remove the journal."""
        if self._unwritten:
            self._write_table(self._columns.table(self._unwritten), [])
            self._unwritten, self._unwritten_B, self._journaled_columns = [], 0, 0
        self._journal.end()
        self._flushed_s = time.perf_counter()

    def _write_table(self, table: pa.Table, replaced: list[Location]) -> None:
        self._check_lock()
        path = files.write(self._folder, table, replaced)
        for replaced_path in replaced:
            del self._files[replaced_path]
        if path is not None:
            self._files[path] = _FileInfo(len(self._columns), table.nbytes)

    def _unify_columns(self) -> None:
        """Rewrite result files that lack columns which other files of the folder have; join small files."""
        joined_paths: list[Location] = []
        size_B = 0
        for path, info in sorted(self._files.items()):
            if info.columns < len(self._columns) or info.size_B < _SMALL_B:
                if joined_paths and size_B + info.size_B > _LARGE_B:
                    self._join_files(joined_paths)
                    joined_paths, size_B = [], 0
                joined_paths.append(path)
                size_B += info.size_B
        self._join_files(joined_paths)

    def _join_files(self, paths: list[Location]) -> None:
        if len(paths) > 1 or any(self._files[path].columns < len(self._columns) for path in paths):
            tables = [self._columns.widen(files.File(path).table()) for path in paths]
            self._write_table(pa.concat_tables(tables).combine_chunks(), paths)

    def _check_lock(self) -> None:
        if self._lock is not None:
            self._lock.check()

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


_CANDIDATE_COLUMNS = ("engine_asked", "measure", "code", "seed")


class MemoryStore:
    """A store of result rows in memory: {key of a point: its row}."""

    place = "memory"

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def open(self, plan: Plan, retry: bool = False) -> StoredRows:
        """Open the store for a plan and return {number of a point (scenario of the sweep): its stored row}.

        If ``retry`` is True, the rows of failed points are left out.
        """
        self._plan, rows = plan, StoredRows(plan)
        if self._rows:
            known_rows = ((number, self._rows.get(key)) for number, key in enumerate(plan.point_keys()))
            rows.add(
                [
                    row._replace(number=number)
                    for number, row in known_rows
                    if row is not None and not (retry and row.error is not None)
                ]
            )
        return rows

    def begin(self, rows: StoredRows) -> StoredRows:
        """Begin to add rows, and return ``rows``, which `open` returned.

        The rows are complete, because no other sweep can have added rows to this store meanwhile.
        """
        return rows

    def add(self, rows: Iterable[Row]) -> None:
        """Store ``rows`` without their scenarios, to save memory."""
        self._rows.update((self._plan.point_key(row.number), row._replace(document="")) for row in rows)

    def close(self) -> None:
        """Do nothing: this store has no files to close."""

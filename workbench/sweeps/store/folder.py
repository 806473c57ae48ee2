"""Stores of results: FolderStore in a folder, in which each result is stored once, and MemoryStore.

``open`` reads the folder. ``begin`` takes the folder's lease, so that no other process writes into the folder. It also
stores rows from the temporary files (drafts and journals) of a killed sweep, and removes duplicate rows. ``add`` writes
rows to the journal at once and to a Parquet file within `FLUSH_S`. ``close`` extends all files to the same columns,
because readers of Parquet use the columns of the first file for the whole folder. It also joins small files, and
releases the lease.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import workbench
from workbench.errors import DataError
from workbench.sim.metrics import COUNTS
from workbench.sweeps import user_code
from workbench.sweeps.plan import Plan
from workbench.sweeps.store import files, journal
from workbench.sweeps.store.columns import FIRST, METRIC, Columns, stored_seed
from workbench.sweeps.store.lease import Lease
from workbench.sweeps.store.traces import TraceStore
from workbench.sweeps.values import WRONG
from workbench.sweeps.work import Row

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

    def __init__(self, folder: str | Path) -> None:
        self.place = str(folder)
        self._folder = Path(folder)
        self._columns = Columns()
        self._files: dict[Path, _FileInfo] = {}
        self._keys: set[str] = set()
        self._rows_to_drop: dict[Path, set[int]] = {}  # file -> indices of duplicates and retried rows
        self._unwritten: list[dict[str, Any]] = []
        self._unwritten_B = self._journaled_columns = 0
        self._flushed_s = time.perf_counter()
        self._lease: Lease | None = None
        self._traces: TraceStore | None = None  # None unless the plan keeps traces

    def open(self, plan: Plan, retry: bool = False) -> dict[int, Row]:
        """Open the folder for a plan and return {number of a point (scenario of the sweep): its stored row}.

        If ``retry`` is True, the rows of failed points are left out. Raises DataError for a damaged file, and for a
        Parquet file that no sweep has written.
        """
        self._plan, self._retry = plan, retry
        if plan.keeps_traces:
            self._traces = TraceStore(self._folder, self._check_lease)
            self._traces.open()
        return self._read_rows()

    def begin(self, rows: dict[int, Row]) -> dict[int, Row]:
        """Reserve the folder for writing (`Lease`), and return {number of a point: its stored row}.

        ``rows`` are the rows that `open` returned. The result also has the rows that were stored since then.
        Raises DataError if another process uses the folder, or if the folder cannot be written.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.place} cannot be used as a folder for results: {error.strerror}") from None
        self._lease = Lease(self._folder)
        try:
            self._lease.take()
            files.remove_drafts(self._folder)
            self._journal = journal.Journal(self._folder, self._lease.owner)
            had_traces = self._traces is not None and self._traces.begin(self._lease.owner)
            is_unchanged = not self._tidy() and set(self._folder.glob("*.parquet")) == set(self._files)
            stored_rows = rows if is_unchanged and not had_traces else self._read_rows()
            self._write_description()
        except BaseException:
            self._release()
            raise
        return stored_rows

    def add(self, rows: Iterable[Row]) -> None:
        """Store ``rows``, except stored results. Raises DataError if another sweep has taken over the folder."""
        self._check_lease()
        rows = list(rows)
        if self._traces is not None:
            self._traces.add(rows)  # Traces before rows, because a point with a row counts as done.
        journal_lines: list[Any] = []
        for point_row in rows:
            point_key = self._plan.point_key(point_row.number)
            result_key = self._plan.key(point_row.scenario, point_row.code) if point_row.scenario else point_key
            if result_key not in self._keys:
                self._keys.add(result_key)
                journal_lines.append(["row", self._columns.cells(self._plan, point_row, point_key, result_key)])
                self._unwritten.append(journal_lines[-1][1])
                self._unwritten_B += len(point_row.document)
        if len(self._columns) > self._journaled_columns:
            journal_lines.insert(0, ["columns", self._columns.origins()])
            self._journaled_columns = len(self._columns)
        self._journal.add(journal_lines)
        if time.perf_counter() - self._flushed_s >= FLUSH_S or self._unwritten_B >= _FLUSH_B:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows, join small files, and release the folder."""
        if self._lease is None:
            return
        try:
            self._flush()
            self._unify()
            if self._traces is not None:
                self._traces.close()
        finally:
            self._release()

    # Reading

    def _read_rows(self) -> dict[int, Row]:
        self._columns, self._files, self._keys, self._rows_to_drop = Columns(), {}, set(), defaultdict(set)
        path_and_table = []
        for file in files.files(self._folder):
            self._columns.merge(file.origins, str(file.path))
            self._files[file.path] = _FileInfo(len(file.origins), file.size_B)
            table = file.columns([*FIRST, *_metrics_of(file.origins)])
            self._note_duplicates(file.path, table.column("key").to_pylist())
            path_and_table.append((file.path, table))
        numbers_by_key = self._numbers([table for _, table in path_and_table])
        row_by_number: dict[int, Row] = {}
        for path, table in path_and_table:
            row_by_number.update(self._rows_of_table(path, table, numbers_by_key))
        return row_by_number

    def _note_duplicates(self, path: Path, keys: list[str]) -> None:
        for index, key in enumerate(keys):
            if key in self._keys:
                self._rows_to_drop[path].add(index)
            self._keys.add(key)

    def _numbers(self, tables: list[pa.Table]) -> dict[str, list[int]]:
        """Return {key of a stored row: numbers of the plan's points that have this row as their result}.

        ``tables`` are the tables of the folder's files. Each point has its own key (`Plan.point_key`). A point whose
        result another plan may have stored also has the key of this result (`Plan.key`).
        """
        if not tables:
            return {}
        numbers_by_key: dict[str, list[int]] = {}
        for number in range(len(self._plan)):
            numbers_by_key.setdefault(self._plan.point_key(number), []).append(number)
        stored_points = {point for table in tables for point in table.column("point").to_pylist()}
        candidates = {code_and_seed for table in tables for code_and_seed in self._candidates(table, numbers_by_key)}
        if candidates:
            for number in [
                number
                for point, point_numbers in numbers_by_key.items()
                if point not in stored_points
                for number in point_numbers
            ]:
                if (self._plan.code_of(number), stored_seed(self._plan.seed_of(number))) in candidates:
                    with suppress(*WRONG):
                        scenario = self._plan.scenario_of(number)
                        result_key = self._plan.key(scenario.hash, self._plan.codes.digest(scenario.protocol))
                        numbers_by_key.setdefault(result_key, []).append(number)
        return numbers_by_key

    def _candidates(self, table: pa.Table, numbers: dict[str, list[int]]) -> set[tuple[str, int | None]]:
        """Return {(digest of the code, seed)} of other plans' rows that may be results of this plan's points.

        ``table`` has stored rows, ``numbers`` is {key of a row: numbers of this plan's points}. A row qualifies if its
        point is not in ``numbers`` and its engine and measure are those of this plan. Building a scenario takes a tenth
        of a millisecond, so the caller builds only the scenarios of points with one of these pairs.
        """
        measure = user_code.name_of(self._plan.measure) or None
        candidate_rows = zip(*(table.column(name).to_pylist() for name in _CANDIDATE_COLUMNS), strict=True)
        return {
            (code, seed)
            for point, engine, row_measure, code, seed in candidate_rows
            if (engine, row_measure) == (self._plan.engine, measure) and point not in numbers
        }

    def _rows_of_table(self, path: Path, table: pa.Table, numbers: dict[str, list[int]]) -> Iterator[tuple[int, Row]]:
        """Yield (number of a point, its row) for the plan's points in the table of the file ``path``.

        ``numbers`` is {key of a stored row: numbers of the plan's points that have this row as their result}.
        """
        stored_cells = zip(*(table.column(name).to_pylist() for name in ("point", "key", "error")), strict=True)
        index_and_number = []
        for row_index, (point_key, result_key, error) in enumerate(stored_cells):
            matching_numbers = numbers.get(point_key) or numbers.get(result_key) or ()
            if matching_numbers and error is not None and self._retry:
                self._rows_to_drop[path].add(row_index)
            else:
                index_and_number += [(row_index, number) for number in matching_numbers]
        if not index_and_number:
            return
        table = table.take([row_index for row_index, _ in index_and_number])
        metrics = [
            (metric, table.column(name).to_pylist(), metric.startswith(COUNTS))
            for name, metric in self._columns.metrics().items()
            if name in table.column_names
        ]
        stored_cells = zip(*(_values(table.column(name)) for name in _ROW_COLUMNS), strict=True)
        for row_index, ((_, number), (seed, *cells)) in enumerate(zip(index_and_number, stored_cells, strict=True)):
            # Runs omit counts of 0; nulls are metrics that this run does not have.
            row_metrics = {
                metric: values[row_index]
                for metric, values, is_count in metrics
                if values[row_index] is not None and (values[row_index] or not is_count)
            }
            scenario, code, engine, versions, wall_s, compile_s, error = cells
            if self._traces is not None and error is None and (scenario, code) not in self._traces.keys:
                continue  # It was run without storing its trace.
            seed = self._plan.seed_of(number) if seed is None else seed
            yield number, Row(number, scenario, "", seed, code, engine, wall_s, compile_s, error, row_metrics, versions)

    # Tidying

    def _tidy(self) -> bool:
        """Store the rows from the drafts and journals (temporary files) that a killed sweep has left.

        Also remove duplicate rows, and rows of failed points that run again. Return whether the folder has changed.
        """
        journals, drafts = sorted(self._folder.glob(journal.NAMES)), sorted(self._folder.glob(files.DRAFTS))
        is_new = set(self._folder.glob("*.parquet")) != set(self._files)
        if is_new and (journals or drafts or self._retry):
            self._read_rows()
        for path, table in files.drafts(self._folder):
            if table is not None:
                is_lost = [key not in self._keys for key in table.column("key").to_pylist()]
                files.write(self._folder, table.filter(pa.array(is_lost, pa.bool_())))
            path.unlink(missing_ok=True)
        if drafts:
            self._read_rows()
        for path in journals:
            self._unwritten += self._recover(path)
        self._flush()
        for path in journals:
            path.unlink(missing_ok=True)
        if journals:
            self._read_rows()  # Failed points of a journal are retried, too.
        rows_to_drop = {path: indices for path, indices in self._rows_to_drop.items() if indices}
        for path, indices in rows_to_drop.items():
            table = files.File(path).table()
            files.write(self._folder, table.filter(pa.array([i not in indices for i in range(len(table))])), [path])
        return bool(journals or drafts or rows_to_drop)

    def _recover(self, path: Path) -> Iterator[dict[str, Any]]:
        """Yield the rows of the journal file ``path`` that are not in a Parquet file yet, each as {column: value}."""
        for kind, content in journal.lines(path):
            if kind == "columns":
                self._columns.merge(content, str(path))
            elif content["key"] not in self._keys and content.keys() <= set(self._columns.schema().names):
                self._keys.add(content["key"])
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

    def _flush(self) -> None:
        """Write the rows that were added since the last write into a new Parquet file, and remove the journal."""
        if self._unwritten:
            self._write(self._columns.table(self._unwritten), [])
            self._unwritten, self._unwritten_B, self._journaled_columns = [], 0, 0
        self._journal.end()
        self._flushed_s = time.perf_counter()

    def _write(self, table: pa.Table, replaced: list[Path]) -> None:
        self._check_lease()
        path = files.write(self._folder, table, replaced)
        for replaced_path in replaced:
            del self._files[replaced_path]
        if path is not None:
            self._files[path] = _FileInfo(len(self._columns), table.nbytes)

    def _unify(self) -> None:
        """Rewrite result files that lack columns which other files of the folder have; join small files."""
        joined_paths: list[Path] = []
        size_B = 0
        for path, info in sorted(self._files.items()):
            if info.columns < len(self._columns) or info.size_B < _SMALL_B:
                if joined_paths and size_B + info.size_B > _LARGE_B:
                    self._join(joined_paths)
                    joined_paths, size_B = [], 0
                joined_paths.append(path)
                size_B += info.size_B
        self._join(joined_paths)

    def _join(self, paths: list[Path]) -> None:
        if len(paths) > 1 or any(self._files[path].columns < len(self._columns) for path in paths):
            tables = [self._columns.widen(files.File(path).table()) for path in paths]
            self._write(pa.concat_tables(tables).combine_chunks(), paths)

    def _check_lease(self) -> None:
        if self._lease is not None:
            self._lease.check()

    def _release(self) -> None:
        if self._lease is not None:
            self._lease.release()
            self._lease = None


_CANDIDATE_COLUMNS = ("point", "engine_asked", "measure", "code", "seed")
_ROW_COLUMNS = ("seed", "scenario", "code", "engine", "versions", "wall_s", "compile_s", "error")


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values as a list, in which equal texts are the same object, to save memory."""
    if not pa.types.is_string(column.type):
        return column.to_pylist()
    encoded_column = column.combine_chunks().dictionary_encode()
    texts = [*encoded_column.dictionary.to_pylist(), None]
    return [texts[index] for index in encoded_column.indices.fill_null(len(texts) - 1).to_pylist()]


def _metrics_of(origins: dict[str, Any]) -> list[str]:
    return [name for name, (role, *_) in origins.items() if role == METRIC]


class MemoryStore:
    """A store of result rows in memory: {key of a point: its row}."""

    place = "memory"

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def open(self, plan: Plan, retry: bool = False) -> dict[int, Row]:
        """Open the store for a plan and return {number of a point (scenario of the sweep): its stored row}.

        If ``retry`` is True, the rows of failed points are left out.
        """
        self._plan = plan
        if not self._rows:
            return {}
        rows = ((number, self._rows.get(plan.point_key(number))) for number in range(len(plan)))
        return {
            number: row._replace(number=number)
            for number, row in rows
            if row is not None and not (retry and row.error is not None)
        }

    def begin(self, rows: dict[int, Row]) -> dict[int, Row]:
        """Begin to add rows, and return ``rows``, which `open` returned.

        The rows are complete, because no other sweep can have added rows to this store meanwhile.
        """
        return rows

    def add(self, rows: Iterable[Row]) -> None:
        """Store ``rows`` without their scenarios."""
        self._rows.update((self._plan.point_key(row.number), row._replace(document="")) for row in rows)

    def close(self) -> None:
        """Do nothing: this store has no files to close."""

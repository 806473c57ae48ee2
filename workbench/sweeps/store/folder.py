"""A folder of results: what is there is found, what comes is kept, and each result is there once.

``open`` reads. ``begin`` takes the lease, so that no other driver writes here, and tidies what one that was killed has
left: its drafts, its journal, rows that are there twice. ``add`` has rows in the journal at once and in a Parquet file
within `FLUSH_S`. ``close`` gives all files the same columns, as readers of Parquet take those of a folder from its
first file, joins small files, and lets go of the lease.
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
_SMALL_B, _LARGE_B = 16 << 20, 64 << 20  # files to be joined, and what comes of that
WHAT = (
    "Results of parameter sweeps of the workbench: *.parquet has one row per point, with its whole scenario in the "
    "column 'document'; running the same sweep with out= this folder goes on where it stopped."
)


class _Known(NamedTuple):
    """A file of the folder: how many columns it has of its own, and its size."""

    columns: int
    size_B: int


class FolderStore:
    """Keeps rows in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.place = str(folder)
        self._folder = Path(folder)
        self._columns = Columns()
        self._files: dict[Path, _Known] = {}
        self._keys: set[str] = set()
        self._dropped: dict[Path, set[int]] = {}  # rows that are to go, by their places in their files
        self._waiting: list[dict[str, Any]] = []
        self._waiting_B = self._told_columns = 0
        self._written = time.perf_counter()
        self._lease: Lease | None = None
        self._traces: TraceStore | None = None  # of a plan that keeps them

    def open(self, plan: Plan, retry: bool = False) -> dict[int, Row]:
        """number -> row of those points that are here; DataError for a folder or file that is something else.

        With ``retry`` points that failed count as not here.
        """
        self._plan, self._retry = plan, retry
        if plan.keeps_traces:
            self._traces = TraceStore(self._folder, self._check_lease)
            self._traces.open()
        return self._found()

    def begin(self, rows: dict[int, Row]) -> dict[int, Row]:
        """Make ready for more rows than those that `open` has found; returns what is here now.

        DataError if another driver writes here, or if the folder cannot be written.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.place} cannot be a folder for results: {error.strerror}") from None
        self._lease = Lease(self._folder)
        try:
            self._lease.take()
            files.remove_drafts(self._folder)
            self._journal = journal.Journal(self._folder, self._lease.owner)
            had_traces = self._traces is not None and self._traces.begin(self._lease.owner)
            is_as_it_was = not self._tidied() and set(self._folder.glob("*.parquet")) == set(self._files)
            found = rows if is_as_it_was and not had_traces else self._found()
            self._describe()
        except BaseException:
            self._release()
            raise
        return found

    def add(self, rows: Iterable[Row]) -> None:
        """Keep rows; one whose key is here already is dropped. DataError if another driver has the folder by now."""
        self._check_lease()
        rows = list(rows)
        if self._traces is not None:
            self._traces.add(rows)  # First: a point whose row is there counts as done.
        lines: list[Any] = []
        for row in rows:
            point = self._plan.point_key(row.number)
            key = self._plan.key(row.scenario, row.code) if row.scenario else point
            if key not in self._keys:
                self._keys.add(key)
                lines.append(["row", self._columns.cells(self._plan, row, point, key)])
                self._waiting.append(lines[-1][1])
                self._waiting_B += len(row.document)
        if len(self._columns) > self._told_columns:
            lines.insert(0, ["columns", self._columns.origins()])
            self._told_columns = len(self._columns)
        self._journal.add(lines)
        if time.perf_counter() - self._written >= FLUSH_S or self._waiting_B >= _FLUSH_B:
            self._flush()

    def close(self) -> None:
        """Write what is left, tidy the files and let go of the folder."""
        if self._lease is None:
            return
        try:
            self._flush()
            self._unify()
            if self._traces is not None:
                self._traces.close()
        finally:
            self._release()

    # What is there

    def _found(self) -> dict[int, Row]:
        self._columns, self._files, self._keys, self._dropped = Columns(), {}, set(), defaultdict(set)
        tables = []
        for file in files.files(self._folder):
            self._columns.merge(file.origins, str(file.path))
            self._files[file.path] = _Known(len(file.origins), file.size_B)
            table = file.columns([*FIRST, *_metrics_of(file.origins)])
            self._note_doubles(file.path, table.column("key").to_pylist())
            tables.append((file.path, table))
        numbers = self._numbers([table for _, table in tables])
        found: dict[int, Row] = {}
        for path, table in tables:
            found.update(self._rows(path, table, numbers))
        return found

    def _note_doubles(self, path: Path, keys: list[str]) -> None:
        for place, key in enumerate(keys):
            if key in self._keys:
                self._dropped[path].add(place)
            self._keys.add(key)

    def _numbers(self, tables: list[pa.Table]) -> dict[str, list[int]]:
        """Keys of the plan's points, and of their results where these go by other points -> numbers."""
        if not tables:
            return {}
        numbers: dict[str, list[int]] = {}
        for number in range(len(self._plan)):
            numbers.setdefault(self._plan.point_key(number), []).append(number)
        here = {point for table in tables for point in table.column("point").to_pylist()}
        others = {told for table in tables for told in self._others(table, numbers)}
        if others:
            for number in [number for point, some in numbers.items() if point not in here for number in some]:
                if (self._plan.code_of(number), stored_seed(self._plan.seed_of(number))) in others:
                    with suppress(*WRONG):
                        scenario = self._plan.scenario_of(number)
                        key = self._plan.key(scenario.hash, self._plan.codes.of(scenario.protocol))
                        numbers.setdefault(key, []).append(number)
        return numbers

    def _others(self, table: pa.Table, numbers: dict[str, list[int]]) -> set[tuple[str, int | None]]:
        """(code, seed) of rows that are of other points, and may be results of this plan's all the same.

        A scenario takes a tenth of a millisecond to build, so it is built for those alone that it may be.
        """
        measure = user_code.name_of(self._plan.measure) or None
        told = zip(*(table.column(name).to_pylist() for name in _OF_OTHERS), strict=True)
        return {
            (code, seed)
            for point, engine, measured, code, seed in told
            if (engine, measured) == (self._plan.engine, measure) and point not in numbers
        }

    def _rows(self, path: Path, table: pa.Table, numbers: dict[str, list[int]]) -> Iterator[tuple[int, Row]]:
        """(number, row) of the plan's points in a file's table."""
        rows = zip(*(table.column(name).to_pylist() for name in ("point", "key", "error")), strict=True)
        wanted = []
        for place, (point, key, error) in enumerate(rows):
            some = numbers.get(point) or numbers.get(key) or ()
            if some and error is not None and self._retry:
                self._dropped[path].add(place)
            else:
                wanted += [(place, number) for number in some]
        if not wanted:
            return
        table = table.take([place for place, _ in wanted])
        metrics = [
            (what, table.column(name).to_pylist(), what.startswith(COUNTS))
            for name, what in self._columns.metrics().items()
            if name in table.column_names
        ]
        rows = zip(*(_values(table.column(name)) for name in _SAME), strict=True)
        for place, ((_, number), (seed, *same)) in enumerate(zip(wanted, rows, strict=True)):
            # Runs leave out counts of 0, and nulls are metrics of others.
            own = {
                what: values[place]
                for what, values, is_count in metrics
                if values[place] is not None and (values[place] or not is_count)
            }
            scenario, code, engine, versions, wall_s, compile_s, error = same
            if self._traces is not None and error is None and (scenario, code) not in self._traces.keys:
                continue  # It was run without keeping its trace.
            seed = self._plan.seed_of(number) if seed is None else seed
            yield number, Row(number, scenario, "", seed, code, engine, wall_s, compile_s, error, own, versions)

    # Tidying

    def _tidied(self) -> bool:
        """Bring what a killed driver has left into order; whether there was anything."""
        journals, drafts = sorted(self._folder.glob(journal.NAMES)), sorted(self._folder.glob(files.DRAFTS))
        is_new = set(self._folder.glob("*.parquet")) != set(self._files)
        if is_new and (journals or drafts or self._retry):
            self._found()
        for path, table in files.drafts(self._folder):
            if table is not None:
                lost = [key not in self._keys for key in table.column("key").to_pylist()]
                files.write(self._folder, table.filter(pa.array(lost, pa.bool_())))
            path.unlink(missing_ok=True)
        if drafts:
            self._found()
        for path in journals:
            self._waiting += self._recovered(path)
        self._flush()
        for path in journals:
            path.unlink(missing_ok=True)
        if journals:
            self._found()  # What a journal has of a point that failed is to be run again, too.
        dropped = {path: places for path, places in self._dropped.items() if places}
        for path, places in dropped.items():
            table = files.File(path).table()
            files.write(self._folder, table.filter(pa.array([i not in places for i in range(len(table))])), [path])
        return bool(journals or drafts or dropped)

    def _recovered(self, path: Path) -> Iterator[dict[str, Any]]:
        """The rows of a journal that are in no file."""
        for what, content in journal.lines(path):
            if what == "columns":
                self._columns.merge(content, str(path))
            elif content["key"] not in self._keys and content.keys() <= set(self._columns.schema().names):
                self._keys.add(content["key"])
                yield content

    def _describe(self) -> None:
        plan = self._plan
        told = {
            "what": WHAT,
            "version": workbench.__version__,
            "engine": plan.engine,
            **({} if plan.measure is None else {"measure": user_code.name_of(plan.measure)}),
            **({"keep": "trace"} if plan.keeps_traces else {}),
            **plan.design.describe(),
            "scenario": json.loads(plan.scenario.to_json()),
        }
        content = (json.dumps(told, indent=2, ensure_ascii=False) + "\n").encode()
        name = f"_sweep-{files.checksum(content)}.json"
        if not (self._folder / name).exists():
            files.write_whole(self._folder, name, content)

    # Writing

    def _flush(self) -> None:
        """Write what was added since the last file."""
        if self._waiting:
            self._write(self._columns.table(self._waiting), [])
            self._waiting, self._waiting_B, self._told_columns = [], 0, 0
        self._journal.end()
        self._written = time.perf_counter()

    def _write(self, table: pa.Table, instead_of: list[Path]) -> None:
        self._check_lease()
        path = files.write(self._folder, table, instead_of)
        for old in instead_of:
            del self._files[old]
        if path is not None:
            self._files[path] = _Known(len(self._columns), table.nbytes)

    def _unify(self) -> None:
        """Give all files all columns, and join small ones."""
        group: list[Path] = []
        size_B = 0
        for path, known in sorted(self._files.items()):
            if known.columns < len(self._columns) or known.size_B < _SMALL_B:
                if group and size_B + known.size_B > _LARGE_B:
                    self._join(group)
                    group, size_B = [], 0
                group.append(path)
                size_B += known.size_B
        self._join(group)

    def _join(self, paths: list[Path]) -> None:
        if len(paths) > 1 or any(self._files[path].columns < len(self._columns) for path in paths):
            tables = [self._columns.widened(files.File(path).table()) for path in paths]
            self._write(pa.concat_tables(tables).combine_chunks(), paths)

    def _check_lease(self) -> None:
        if self._lease is not None:
            self._lease.check()

    def _release(self) -> None:
        if self._lease is not None:
            self._lease.release()
            self._lease = None


_OF_OTHERS = ("point", "engine_asked", "measure", "code", "seed")
_SAME = ("seed", "scenario", "code", "engine", "versions", "wall_s", "compile_s", "error")


def _values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values; a text that is there again and again is one object."""
    if not pa.types.is_string(column.type):
        return column.to_pylist()
    encoded = column.combine_chunks().dictionary_encode()
    words = [*encoded.dictionary.to_pylist(), None]
    return [words[place] for place in encoded.indices.fill_null(len(words) - 1).to_pylist()]


def _metrics_of(origins: dict[str, Any]) -> list[str]:
    return [name for name, (of, *_) in origins.items() if of == METRIC]


class MemoryStore:
    """Keeps rows by the keys of their points."""

    place = "memory"

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def open(self, plan: Plan, retry: bool = False) -> dict[int, Row]:
        """number -> row of those points that are here; with ``retry`` without those that failed."""
        self._plan = plan
        if not self._rows:
            return {}
        found = ((number, self._rows.get(plan.point_key(number))) for number in range(len(plan)))
        return {
            number: row._replace(number=number)
            for number, row in found
            if row is not None and not (retry and row.error is not None)
        }

    def begin(self, rows: dict[int, Row]) -> dict[int, Row]:
        """What is here when the sweep begins: nobody else has added any."""
        return rows

    def add(self, rows: Iterable[Row]) -> None:
        """Keep rows."""
        self._rows.update((self._plan.point_key(row.number), row._replace(document="")) for row in rows)

    def close(self) -> None:
        """Nothing is left to do."""

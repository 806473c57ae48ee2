"""The folder of a follower's windows: few Parquet files, in which each window is stored once, whatever is killed.

Theory of operation
    Windows are closed in ascending order of start and group, so the folder is a sorted table that only grows. It is
    divided into parts, part-N.parquet with rising N. New windows are added to the last part: the part is written anew,
    with its old and its new windows, and replaces the old file atomically. A part with `PART_ROWS` windows is full, and
    the next windows begin another one. So small files are merged from the start, and no file is ever removed. A program
    that reads the folder at any moment sees the windows closed up to some time, without gaps or duplicates.

    (A sweep joins its small files in another way: it removes them before the joined file gets its name, and readers
    wait meanwhile. Here readers would have to wait at each write.)

    Each part stores the totals of all windows up to its end in its metadata (`TOTALS`), so that a follower opens the
    folder by reading the last part alone.

    A follower without Spark then writes _state.json, also atomically. This file contains the offset up to which the
    capture is read, the open windows, and the number of closed windows. If a follower is killed between the two writes,
    the state does not include the last windows of the folder. The follower that continues from this state closes the
    same windows in the same order, and skips those that the folder has.

    Spark numbers its batches itself, stores open windows in its checkpoint, and repeats an unfinished batch with the
    same readings. The totals of a part include the number of its last batch, so a repeated batch is not added again.

    Folders of earlier versions have a part for each batch, without totals. They are read and continued; their parts
    are not merged.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.errors import DataError
from workbench.locations import Location, opened
from workbench.pipelines.live.windows import WindowSettings
from workbench.sweeps.store.files import remove_drafts, write_whole

# Readers of a folder of Parquet files skip names that begin with "_".
STATE, DESCRIPTION, LOCK, CHECKPOINT = "_state.json", "_windows.json", "_lock", "_checkpoint"
TOTALS = b"workbench.windows"  # key of the metadata of a part
PART_ROWS = 1 << 15
_PARTS = "part-*.parquet"


class Totals(NamedTuple):
    """The totals of the closed windows in a folder: numbers of windows, readings and late readings.

    ``readings`` includes the late readings. ``batch`` is the number of the last batch of Spark, or -1.
    """

    windows: int = 0
    readings: int = 0
    late: int = 0
    batch: int = -1

    def plus(self, table: pa.Table, batch: int) -> Totals:
        """Return the totals after the windows in ``table`` are added; ``batch`` is the number of their batch, or -1."""
        late = _sum_column(table, "late")
        return Totals(
            self.windows + len(table), self.readings + _sum_column(table, "count") + late, self.late + late, batch
        )


def _sum_column(table: pa.Table, column: str) -> int:
    return int(pc.sum(table.column(column), min_count=0).as_py())


class Output:
    """A folder of Parquet files with windows, the statistics of a capture's readings per time interval.

    One follower of the capture writes to the folder.

    ``settings`` are the settings of the windows. ``description`` has the capture's id and the engine's name. The
    attribute ``totals`` has the `Totals` of the folder. The function ``check``, which is called before a file is
    written, raises DataError if the lock of an object store has expired.

    Raises DataError if the folder has windows of another capture, of another engine or with other settings, or if its
    last part is damaged.
    """

    def __init__(
        self,
        folder: Location,
        settings: WindowSettings,
        description: dict[str, Any],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.folder, self.schema, self._check = folder, settings.schema, check
        remove_drafts(folder)
        self._sort_keys = [(name, "ascending") for name in self.schema.names if name != "end_s"]
        stored_settings = {**description, **settings._asdict(), "by": list(settings.by)}
        try:
            if json.loads((folder / DESCRIPTION).read_bytes()) != stored_settings:
                raise DataError(
                    f"{folder} has windows of another capture, with other settings, or of another engine (with or "
                    "without Spark); use another folder"
                )
        except FileNotFoundError:
            write_whole(folder, DESCRIPTION, json.dumps(stored_settings, indent=2).encode())
        self._open_last_part()

    def _open_last_part(self) -> None:
        self._part_number, self._last_part, self.totals = 0, self.schema.empty_table(), Totals()
        paths = self._list_parts()
        if not paths:
            return
        self._part_number, self._last_part = _part_number(paths[-1]), self._read_sorted_part(paths[-1])
        stored_totals = _read_totals(self._last_part)
        if stored_totals is not None:
            self.totals = stored_totals
            return
        for path in paths:
            self.totals = self.totals.plus(_read_part(path, ["count", "late"]), _part_number(path))

    def _read_sorted_part(self, path: Location) -> pa.Table:
        """Return the windows in a part (file), sorted by start time, then by the grouping columns."""
        table = _read_part(path)
        # Earlier versions on Spark did not sort the windows of a batch.
        return table.sort_by(self._sort_keys) if _read_totals(table) is None else table

    def append(self, windows: pa.Table, batch: int = -1) -> None:
        """Add ``windows``, a table of closed windows that are later than all windows in the folder.

        ``batch`` is the number of a batch of Spark, or -1. If the folder has the windows of this batch already, none
        are added.
        """
        if not len(windows) or 0 <= batch <= self.totals.batch:
            return
        windows = windows.cast(self.schema).sort_by(self._sort_keys)
        if len(self._last_part) < PART_ROWS:
            number, part = self._part_number, pa.concat_tables([self._last_part.cast(self.schema), windows])
        else:
            number, part = self._part_number + 1, windows
        totals = self.totals.plus(windows, batch)
        part = part.combine_chunks().replace_schema_metadata({TOTALS: json.dumps(totals._asdict()).encode()})
        sink = io.BytesIO()
        pq.write_table(part, sink, compression="zstd", write_page_checksum=True)
        self._check()
        write_whole(self.folder, _part_name(number), sink.getvalue())
        self._part_number, self._last_part, self.totals = number, part, totals

    def append_rows(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add closed windows as `append` does; ``rows`` has a tuple of column values for each window."""
        if rows:
            columns = zip(*rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
            self.append(pa.Table.from_arrays(arrays, schema=self.schema))

    def clear(self) -> None:
        """Remove all windows from the folder."""
        for path in self._list_parts():
            path.unlink()
        self._open_last_part()

    def windows(self, last_s: float | None = None) -> pa.Table:
        """Return the closed windows in the folder, sorted by start time, then by the grouping columns.

        With ``last_s`` only the windows in the last ``last_s`` seconds before the end of the newest window are read.
        """
        tables: list[pa.Table] = []
        for path in reversed(self._list_parts()):
            table = self._read_sorted_part(path)
            if last_s is None:
                tables.append(table)
                continue
            if not tables:
                # Times are whole microseconds.
                since_s = table.column("end_s")[-1].as_py() - last_s - 5e-7
            tables.append(table.filter(pc.greater_equal(table.column("start_s"), since_s)))
            if len(tables[-1]) < len(table):
                break
        return pa.concat_tables([self.schema.empty_table(), *(table.cast(self.schema) for table in reversed(tables))])

    def _list_parts(self) -> list[Location]:
        return sorted(self.folder.glob(_PARTS))

    @property
    def parts(self) -> int:
        """The number of files with windows in the folder."""
        return len(self._list_parts())

    def windows_before(self, number: int) -> int:
        """Return the number of windows in all parts (files part-N.parquet) with N less than ``number``."""
        return sum(
            pq.read_metadata(opened(path)).num_rows for path in self._list_parts() if _part_number(path) < number
        )

    def state(self) -> dict[str, Any] | None:
        """Return the state that an earlier follower has stored in the folder, or None."""
        try:
            return json.loads((self.folder / STATE).read_bytes())
        except FileNotFoundError:
            return None

    def save_state(self, state: dict[str, Any]) -> None:
        """Store the state from which a later follower can continue, in place of the previous state."""
        self._check()
        write_whole(self.folder, STATE, json.dumps(state).encode())


def _part_name(number: int) -> str:
    return f"part-{number:09d}.parquet"


def _part_number(path: Location) -> int:
    return int(path.name.removesuffix(".parquet").partition("-")[2])


def _read_part(path: Location, columns: list[str] | None = None) -> pa.Table:
    """Return the windows in a part (file), with only the columns ``columns`` (None: all).

    Raises DataError if the part is damaged.
    """
    try:
        with pq.ParquetFile(opened(path), page_checksum_verification=True) as file:
            return file.read(columns)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} has windows of an earlier start and cannot be read: {error}; use another folder"
        ) from None


def _read_totals(part: pa.Table) -> Totals | None:
    """Return the totals in the metadata of a part, or None if an earlier version has written the part."""
    metadata = part.schema.metadata or {}
    return Totals(**json.loads(metadata[TOTALS])) if TOTALS in metadata else None

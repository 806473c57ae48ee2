"""The folder of a follower's windows: each window is written once, even if the follower is killed and continued.

Theory of operation
    Closed windows are written as part-N.parquet with rising N; each file is written atomically. A follower
    without Spark then writes _state.json, also atomically. This file contains the offset up to which the capture is
    read, the open windows, and the next N. If a follower is killed between the two writes, the state
    does not include the last part. The follower that continues from this state writes the part again, with the same
    windows.

    Spark numbers its batches itself, stores open windows in its checkpoint, and repeats an unfinished batch with the
    same readings: part-N is written by batch N.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import DataError
from workbench.pipelines.live.windows import WindowSettings
from workbench.sweeps.store.files import remove_drafts, write_whole

# Readers of a folder of Parquet files skip names that begin with "_".
STATE, DESCRIPTION, LOCK, CHECKPOINT = "_state.json", "_windows.json", "_lock", "_checkpoint"
_PARTS = "part-*.parquet"


class Output:
    """A folder of Parquet files with windows, the statistics of a capture's readings per time interval.

    One follower of the capture writes to the folder.

    ``settings`` are the settings of the windows. ``description`` has the capture's id and the engine's name.
    Raises DataError if the folder has windows of another capture, of another engine or with other settings.
    """

    def __init__(self, folder: Path, settings: WindowSettings, description: dict[str, Any]) -> None:
        self.folder, self.schema = folder, settings.schema
        remove_drafts(folder)
        self._read_lock = threading.Lock()
        self._read_parts: set[str] = set()
        self._windows = self.schema.empty_table()
        stored_settings = {**description, **settings._asdict(), "by": list(settings.by)}
        try:
            if json.loads((folder / DESCRIPTION).read_bytes()) != stored_settings:
                raise DataError(
                    f"{folder} has windows with other settings, of another capture or of another engine; "
                    "use another folder"
                )
        except FileNotFoundError:
            write_whole(folder, DESCRIPTION, json.dumps(stored_settings, indent=2).encode())

    def write_part(self, number: int, rows: pa.Table) -> None:
        """Write the windows ``rows`` to the file part-``number``.parquet; an existing file is replaced."""
        sink = io.BytesIO()
        pq.write_table(rows.cast(self.schema), sink, compression="zstd")
        write_whole(self.folder, _part_name(number), sink.getvalue())

    def write_rows(self, number: int, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write windows to the file part-``number``.parquet; ``rows`` has a tuple of column values for each window."""
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        self.write_part(number, pa.Table.from_arrays(arrays, schema=self.schema))

    def remove_parts(self, number: int) -> None:
        """Remove the files part-N.parquet of windows whose N is ``number`` or higher."""
        for path in self.folder.glob(_PARTS):
            if path.name >= _part_name(number):
                path.unlink()

    def windows(self) -> pa.Table:
        """Return all closed windows in the folder, sorted by start and group. Files are read once and then cached."""
        with self._read_lock:
            new_paths = [path for path in sorted(self.folder.glob(_PARTS)) if path.name not in self._read_parts]
            if new_paths:
                tables = [self._windows, *(pq.read_table(path, schema=self.schema) for path in new_paths)]
                sort_keys = [(name, "ascending") for name in self.schema.names if name != "end_s"]
                self._windows = pa.concat_tables(tables).sort_by(sort_keys).combine_chunks()
                self._read_parts.update(path.name for path in new_paths)
            return self._windows

    @property
    def parts(self) -> int:
        """The number of files with windows in the folder."""
        return sum(1 for _ in self.folder.glob(_PARTS))

    def state(self) -> dict[str, Any] | None:
        """Return the state that an earlier follower has stored in the folder, or None."""
        try:
            return json.loads((self.folder / STATE).read_bytes())
        except FileNotFoundError:
            return None

    def save_state(self, state: dict[str, Any]) -> None:
        """Store the state from which a later follower can continue, in place of the previous state."""
        write_whole(self.folder, STATE, json.dumps(state).encode())


def _part_name(number: int) -> str:
    return f"part-{number:09d}.parquet"

"""The folder that windows are written into: each once, whenever the one who writes is killed.

Theory of operation
    Windows that are closed are written as part-N.parquet, N rising, each file whole or not there. The engine without
    Java then writes _state.json, in one step too: the offset up to which the capture is read, the windows that are open
    then, and the next N. It is these two that belong together: a part that the state does not count yet was written by
    one that was killed in between. It has nothing but windows that were closed for good, and is written anew by the
    one that goes on from the state.

    Spark numbers its batches itself, keeps what is open in its checkpoint, and repeats a batch that it has not noted
    as done with the same readings: part-N is of batch N.
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
from workbench.pipelines.live.windows import Asked
from workbench.sweeps.store.files import remove_drafts, write_whole

# Who reads a folder of Parquet passes over such names.
STATE, ABOUT, LOCK, CHECKPOINT = "_state.json", "_windows.json", "_lock", "_checkpoint"
_PARTS = "part-*.parquet"


class Output:
    """A folder of windows that its maker has locked, ``about`` says of what. DataError if it has other windows."""

    def __init__(self, folder: Path, asked: Asked, about: dict[str, Any]) -> None:
        self.folder, self.schema = folder, asked.schema
        remove_drafts(folder)
        self._reading = threading.Lock()
        self._seen: set[str] = set()
        self._windows = self.schema.empty_table()
        content = {**about, **asked._asdict(), "by": list(asked.by)}
        try:
            if json.loads((folder / ABOUT).read_bytes()) != content:
                raise DataError(f"{folder} has other windows, or those of another capture; take another folder")
        except FileNotFoundError:
            write_whole(folder, ABOUT, json.dumps(content, indent=2).encode())

    def write_part(self, number: int, rows: pa.Table) -> None:
        """Have a part with these windows, in place of one of that number."""
        sink = io.BytesIO()
        pq.write_table(rows.cast(self.schema), sink, compression="zstd")
        write_whole(self.folder, _part_name(number), sink.getvalue())

    def write_rows(self, number: int, rows: Iterable[tuple[Any, ...]]) -> None:
        """As `write_part`, of rows as tuples."""
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        self.write_part(number, pa.Table.from_arrays(arrays, schema=self.schema))

    def forget_parts(self, number: int) -> None:
        """Remove the parts from a number on."""
        for path in self.folder.glob(_PARTS):
            if path.name >= _part_name(number):
                path.unlink()

    def windows(self) -> pa.Table:
        """All windows that are closed, ascending. A part is read once: a window that is closed does not change."""
        with self._reading:
            new = [path for path in sorted(self.folder.glob(_PARTS)) if path.name not in self._seen]
            if new:
                tables = [self._windows, *(pq.read_table(path, schema=self.schema) for path in new)]
                order = [(name, "ascending") for name in self.schema.names if name != "end_s"]
                self._windows = pa.concat_tables(tables).sort_by(order).combine_chunks()
                self._seen.update(path.name for path in new)
            return self._windows

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return sum(1 for _ in self.folder.glob(_PARTS))

    def state(self) -> dict[str, Any] | None:
        """What was kept, None if nothing was."""
        try:
            return json.loads((self.folder / STATE).read_bytes())
        except FileNotFoundError:
            return None

    def keep(self, state: dict[str, Any]) -> None:
        """Keep this from now on."""
        write_whole(self.folder, STATE, json.dumps(state).encode())


def _part_name(number: int) -> str:
    return f"part-{number:09d}.parquet"

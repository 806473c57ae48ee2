"""The journal: rows that a runner has handed out and that are in no Parquet file yet, a line each, with its checksum.

A driver that is killed leaves its journal, and the next one has the rows from there. A line that is damaged or cut off
is passed over: its point is run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workbench.errors import DataError
from workbench.sweeps.store.files import checksum

NAMES = "_journal-*.jsonl"


class Journal:
    """The journal of one owner."""

    def __init__(self, folder: Path, owner: str) -> None:
        self._path = folder / f"_journal-{owner}.jsonl"
        self._file: Any = None

    def add(self, lines: Iterable[Any]) -> None:
        """Write values, as JSON has them. They are with the system then, whatever becomes of this process.

        DataError if they cannot be written.
        """
        try:
            if self._file is None:
                self._file = self._path.open("wb")
            for line in lines:
                text = json.dumps(line).encode()
                self._file.write(checksum(text).encode() + b" " + text + b"\n")
            self._file.flush()
        except OSError as error:
            raise DataError(f"{self._path} cannot be written: {error.strerror}") from None

    def end(self) -> None:
        """Remove it: what it has stands elsewhere. With the next line it begins anew."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)


def lines(path: Path) -> Iterator[Any]:
    """The values of a journal that are whole."""
    for line in path.read_bytes().split(b"\n"):
        told, _, text = line.partition(b" ")
        if told == checksum(text).encode():
            yield json.loads(text)

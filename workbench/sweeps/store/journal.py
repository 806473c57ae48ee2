"""The journal: rows that are not in a Parquet file yet, one line each, with a checksum.

If a sweep is killed, the next sweep in the folder reads the rows from the journal. A damaged or incomplete line
is ignored, and its point is run again.
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
    """A file in a results folder with the result rows that a sweep has not written to Parquet yet.

    ``owner`` is the random id of the process that runs the sweep; the file's name contains it.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self._path = folder / f"_journal-{owner}.jsonl"
        self._file: Any = None

    def add(self, lines: Iterable[Any]) -> None:
        """Write JSON values, one a line, and flush them to the operating system, so that they survive this process.

        Raises DataError if they cannot be written.
        """
        try:
            if self._file is None:
                self._file = self._path.open("wb")
            for line in lines:
                line_json = json.dumps(line).encode()
                self._file.write(checksum(line_json).encode() + b" " + line_json + b"\n")
            self._file.flush()
        except OSError as error:
            raise DataError(f"{self._path} cannot be written: {error.strerror}") from None

    def end(self) -> None:
        """Remove the journal file after its rows were written to Parquet. The next `add` begins a new file."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)


def lines(path: Path) -> Iterator[Any]:
    """Yield the JSON value of each line of the journal file ``path``, except lines whose checksum is wrong."""
    for line in path.read_bytes().split(b"\n"):
        stored_checksum, _, text = line.partition(b" ")
        if stored_checksum == checksum(text).encode():
            yield json.loads(text)

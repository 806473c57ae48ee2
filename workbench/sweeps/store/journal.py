"""The journal: rows that are not in a Parquet file yet, one line each, with a checksum.

In a folder the journal is a file to which lines are appended. Objects cannot be appended to, so in an object store each
call of `Journal.add` writes an object.

If a sweep is killed, the next sweep in the folder reads the rows from the journal. A damaged or incomplete line
is ignored, and its point is run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.errors import DataError
from workbench.locations import Location, ObjectPath
from workbench.sweeps.store.files import checksum

NAMES = "_journal-*.jsonl"


class Journal:
    """The files in a results folder with the result rows that a sweep has not written to Parquet yet.

    ``owner`` is the random id of the sweep; the files' names contain it.
    """

    def __init__(self, folder: Location, owner: str) -> None:
        self._path = folder / f"_journal-{owner}.jsonl"
        self._file: Any = None
        self._objects: list[ObjectPath] = []

    def add(self, lines: Iterable[Any]) -> None:
        """Write JSON values, one a line, to the operating system or object store. They then survive this process.

        Raises DataError if they cannot be written.
        """
        line_jsons = [json.dumps(line).encode() for line in lines]
        content = b"".join(checksum(line).encode() + b" " + line + b"\n" for line in line_jsons)
        try:
            if isinstance(self._path, ObjectPath):
                self._objects.append(self._path.with_name(f"{self._path.name[:-6]}-{len(self._objects):04}.jsonl"))
                self._objects[-1].write_bytes(content)
                return
            if self._file is None:
                self._file = self._path.open("wb")
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            raise DataError(f"{self._path} cannot be written: {error.strerror}") from None

    def end(self) -> None:
        """Remove the journal after its rows were written to Parquet. The next `add` begins a new one."""
        for path in self._objects:
            path.unlink(missing_ok=True)
        self._objects = []
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)


def lines(path: Location) -> Iterator[Any]:
    """Yield the JSON value of each line of the journal file ``path``, except lines whose checksum is wrong."""
    for line in path.read_bytes().split(b"\n"):
        stored_checksum, _, text = line.partition(b" ")
        if stored_checksum == checksum(text).encode():
            yield json.loads(text)

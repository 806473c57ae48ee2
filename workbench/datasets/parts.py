"""Parallel reading of a log file on several cores: the rows in the file's order, and counts of lines."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from workbench.datasets.chunks import CHUNK_B, Chunk, check_header, chunks, read_chunk
from workbench.datasets.formats import LineFormat
from workbench.errors import DataError

THREADS = min(4, os.cpu_count() or 1)  # threads help because the fast path releases Python's global lock


@dataclass
class Tally:
    """Counts of a file's lines.

    ``lines`` is the number of lines, ``skipped`` the number of rejected lines, and ``first_skipped`` a text on the
    first rejected line ("line 17: ...").
    """

    lines: int = 0
    skipped: int = 0
    first_skipped: str = ""

    def add(self, part: Chunk) -> None:
        """Add the counts of a chunk of the file. Chunks must be added in the file's order."""
        if not self.skipped and len(part.rejected):
            first_rejected = part.rejected.slice(0, 1).to_pylist()[0]
            self.first_skipped = f"line {first_rejected['line']}: {first_rejected['reason']}"
        self.lines += part.lines
        self.skipped += len(part.rejected)

    def check(self, path: str | os.PathLike[str], form: LineFormat) -> None:
        """Raise DataError if fewer than one line in twenty is valid, because the file is then in another format.

        ``path`` and ``form``, the expected format, are for the message.
        """
        if (self.lines - self.skipped) * 20 < max(self.lines, 1):
            example = f" ({self.first_skipped:.120})" if self.first_skipped else " (it is empty)"
            raise DataError(
                f"{Path(path).name} is not in the expected format{example}; its lines should have {form.form}."
            )


def parts_of(path: str | os.PathLike[str], form: LineFormat, tally: Tally) -> Iterator[tuple[int, Chunk]]:
    """Yield (bytes read from the file, `Chunk`) for each chunk of a log file, in order; count the lines in ``tally``.

    ``form`` is the format of the file. Raises DataError if the file cannot be read, or if it lacks the header that the
    format needs. If fewer than one line in twenty has this format, DataError is raised after the last chunk.
    """
    for size_B, chunk in _read_chunks(path, form):
        tally.add(chunk)
        yield size_B, chunk
    tally.check(path, form)


def _read_chunks(path: str | os.PathLike[str], form: LineFormat) -> Iterator[tuple[int, Chunk]]:
    parse, pending_chunks = form.parser(), deque()
    with ThreadPoolExecutor(1 if form.is_whole else THREADS) as thread_pool:
        for piece in chunks(path, CHUNK_B):
            if piece.start == 0:
                check_header(path, piece.data, form)
            pending_chunks.append(
                (piece.read_B, thread_pool.submit(read_chunk, piece.data, form, parse, piece.first_line))
            )
            if len(pending_chunks) > THREADS:
                size_B, part = pending_chunks.popleft()
                yield size_B, part.result()
        for size_B, part in pending_chunks:
            yield size_B, part.result()

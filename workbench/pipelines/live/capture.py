"""The capture: an append-only folder of readings that a bridge writes and any number of readers follow.

Theory of operation
    A line is a JSON array: the row of `readings.SCHEMA`, then the CRC-32 of the preceding bytes. Lines are stored in
    segments, whose names contain the offset of their first byte in the whole capture. So one number, the offset in
    bytes, identifies a position in the capture. A last line without its line break is incomplete: readers skip it, and
    the next writer removes it.

    capture.json   a description of the capture: its id and its source
    ended          written when the capture has ended: its size, and whether the source was exhausted
    writing.lock   locked by the writer; the system unlocks it when the writing process ends

Cost
    65 to 110 bytes a reading; 6 to 8 µs of processor time to write one, 3 µs to read it.
"""

from __future__ import annotations

import json
import math
import os
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from workbench.errors import DataError
from workbench.locations import FolderLock, local_path
from workbench.pipelines.live.readings import SCHEMA, Reading, refusal_reason, to_table

FORMAT, VERSION = "workbench-capture", 1
DESCRIPTION, ENDED, LOCK = "capture.json", "ended", "writing.lock"
ACTIVITY = "captures readings in it"
SEGMENT_B = 64 << 20
READ_B = 1 << 20
BATCH_B, PIECE_B = 64 << 20, 4 << 20  # largest sizes of a batch of Spark, and of the piece of a batch that a task reads
_TAIL_B = 1 << 16  # more than the longest line
_SEGMENTS = "readings-*.jsonl"
_WIDTH = len(SCHEMA)
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Capture:
    """A writer of readings into a folder; it continues an existing capture.

    source       a description of the source of the readings; a folder has one source
    replays      whether the source delivers the same readings from its beginning each time; readings that are already
                 captured are then skipped
    most_B       the largest size of the capture in bytes; None: without a limit
    segment_B    the size in bytes at which a segment (file) is full

    The attribute ``is_over`` is True if the source replays and all of its readings are captured already; the caller
    must then not append any.

    Raises DataError if the folder cannot be written, if it has a capture of another source, or if its capture has
    ended, unless ``is_over`` is True.
    """

    def __init__(
        self,
        folder: str | Path,
        source: Mapping[str, Any] | None = None,
        replays: bool = False,
        most_B: float | None = None,
        segment_B: int = SEGMENT_B,
    ) -> None:
        self.folder = local_path(folder, "out")
        self.refused: Counter[str] = Counter()  # reason -> number of readings that cannot be captured
        self._most_B, self._segment_B = most_B, segment_B
        self._lock = FolderLock(self.folder, LOCK, ACTIVITY)
        try:
            self._open_folder(dict(source or {}))
        except BaseException:
            self._lock.release()
            raise
        self._rows_to_skip = self.rows if replays else 0
        if self.is_over and not (replays and _read_end_mark(self.folder)["whole"]):
            self.close()
            raise DataError(f"{self.folder} has a capture that has ended; use another folder")

    def _open_folder(self, source: dict[str, Any]) -> None:
        from workbench.sweeps.store import files  # Readers, such as Spark's workers, do not load this.

        files.remove_drafts(self.folder)
        path = self.folder / DESCRIPTION
        if not path.exists():
            description = {"format": FORMAT, "version": VERSION, "id": uuid.uuid4().hex, "source": source}
            files.write_whole(self.folder, DESCRIPTION, json.dumps(description, indent=2).encode())
        elif read_description(self.folder)["source"] != source:
            raise DataError(f"{self.folder} has a capture of another source; use another folder")
        self.is_over = (self.folder / ENDED).exists()
        self._last_segment = self._repair_last_segment()
        self.rows = sum(_count_lines(segment.path) for segment in segments(self.folder))
        self.newest_s = self._read_newest_s()
        self._file = self._last_segment.path.open("ab", buffering=0)

    def _repair_last_segment(self) -> Segment:
        """Return the capture's last segment (file), after removing an incomplete last line from it.

        If the folder is empty, return a new segment, which begins at offset 0.
        """
        old_segments = segments(self.folder)
        if not old_segments:
            return Segment(0, self.folder / _segment_name(0))
        path = old_segments[-1].path
        size_B = path.stat().st_size
        os.truncate(path, size_B - len(_read_tail(path).rpartition(b"\n")[2]))
        return old_segments[-1]

    def _read_newest_s(self) -> float:
        for segment in reversed(segments(self.folder)):
            rows, _ = parse_lines(_read_tail(segment.path).partition(b"\n")[2])
            if rows:
                return float(rows[-1][-1])
        return 0.0

    @property
    def is_repeating(self) -> bool:
        """True if the next readings of a source that replays are captured already, so that `append` skips them."""
        return self._rows_to_skip > 0

    @property
    def size_B(self) -> int:
        """The size of the capture in bytes, which is the offset of its end."""
        return self._last_segment.start + self._file.tell()

    def append(self, readings: Iterable[Reading]) -> int:
        """Write readings, and return the number of readings written.

        Invalid readings are counted in ``refused``. Readings that a replaying source repeats are skipped. Raises
        DataError if the file cannot be written, or if the capture would become larger than ``most_B`` bytes.
        """
        new_lines = []
        for reading in readings:
            reason = refusal_reason(reading)
            if reason:
                self.refused[reason] += 1
            elif self._rows_to_skip:
                self._rows_to_skip -= 1
            else:
                new_lines.append(self._encode_line(reading))
        if new_lines:
            self._write_content(b"".join(new_lines))
            self.rows += len(new_lines)
        return len(new_lines)

    def _encode_line(self, reading: Reading) -> bytes:
        time_s = round(float(reading.time_s), 6)
        arrived_s = time_s if reading.arrived_s is None else round(float(reading.arrived_s), 6)
        self.newest_s = max(self.newest_s, time_s)
        row = [time_s, arrived_s, reading.node, reading.sink, reading.region, reading.key, float(reading.value)]
        body = _encode([*row, reading.sequence, self.newest_s])[:-1].encode()
        return b"%b,%d]\n" % (body, zlib.crc32(body))

    def _write_content(self, content: bytes) -> None:
        if self._most_B is not None and self.size_B + len(content) > self._most_B:
            raise DataError(
                f"{self.folder} has reached its limit of {self._most_B / 1e6:g} MB; raise most_MB or use another folder"
            )
        try:
            if self._file.tell() >= self._segment_B:
                self._begin_segment()
            unwritten = memoryview(content)
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
        except OSError as error:
            raise DataError(f"{self.folder} cannot be written: {error.strerror}") from None

    def _begin_segment(self) -> None:
        start = self.size_B
        os.fsync(self._file.fileno())
        self._file.close()
        self._last_segment = Segment(start, self.folder / _segment_name(start))
        self._file = self._last_segment.path.open("ab", buffering=0)

    def end(self, is_whole: bool = True) -> None:
        """Mark the capture as ended, so that followers close their windows.

        ``is_whole`` is whether the source has delivered all of its readings. It is stored in the capture.
        """
        from workbench.sweeps.store import files

        os.fsync(self._file.fileno())
        end_record = {"offset": self.size_B, "rows": self.rows, "newest_s": self.newest_s, "whole": is_whole}
        files.write_whole(self.folder, ENDED, json.dumps(end_record).encode())

    def close(self) -> None:
        """Close the files and release the lock. Another process may then continue the capture."""
        self._file.close()
        self._lock.release()


# Reading


class Segment(NamedTuple):
    """A file of a capture: its path, and the offset of its first byte in the whole capture."""

    start: int
    path: Path


def _segment_name(start: int) -> str:
    return f"readings-{start:016d}.jsonl"


def segments(folder: Path) -> list[Segment]:
    """Return the segments (files) of a capture, by ascending offset."""
    return [Segment(int(path.stem.partition("-")[2]), path) for path in sorted(folder.glob(_SEGMENTS))]


def _find_segment(folder: Path, offset: int) -> Segment | None:
    """Return the segment that contains the byte at ``offset``, or will contain it; None if no segment is stored yet."""
    return next((segment for segment in reversed(segments(folder)) if segment.start <= offset), None)


def read_description(folder: str | Path) -> dict[str, Any]:
    """Return the content of capture.json. Raises DataError if this file is missing, damaged or of another version."""
    try:
        description = json.loads((Path(folder) / DESCRIPTION).read_bytes())
    except OSError:
        raise DataError(f"{folder} has no capture; wb.pipelines.stream(source, out=folder) writes one") from None
    except ValueError:
        raise DataError(f"{Path(folder) / DESCRIPTION} is damaged: it is not valid JSON") from None
    if not isinstance(description, dict) or (description.get("format"), description.get("version")) != (
        FORMAT,
        VERSION,
    ):
        raise DataError(
            f"{Path(folder) / DESCRIPTION} does not describe a capture of version {VERSION}, "
            "the only one that this workbench reads"
        )
    return description


def end_offset(folder: Path) -> int | None:
    """Return the offset in bytes at which a capture has ended, or None if it has not ended."""
    try:
        return int(_read_end_mark(folder)["offset"])
    except FileNotFoundError:
        return None


def _read_end_mark(folder: Path) -> dict[str, Any]:
    return json.loads((folder / ENDED).read_bytes())


def _read_tail(path: Path) -> bytes:
    """Return the last `_TAIL_B` bytes of a segment (file of a capture); they may begin within a line.

    For a smaller segment, the result is a line break and the whole content, so that each line follows a line break.
    """
    with path.open("rb") as file:
        tail_start = max(0, path.stat().st_size - _TAIL_B)
        file.seek(tail_start)
        return (b"" if tail_start else b"\n") + file.read()


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(READ_B), b""))


def size_B(folder: Path) -> int:
    """Return the size of a capture in bytes, which is the offset of its end."""
    stored_segments = segments(folder)
    return stored_segments[-1].start + stored_segments[-1].path.stat().st_size if stored_segments else 0


class Chunk(NamedTuple):
    """A chunk of a capture: its rows (`readings.SCHEMA`), the offset of its end, and the number of damaged lines."""

    rows: list[list[Any]]
    offset: int
    damaged: int


def read(folder: Path, offset: int, most_B: int = READ_B) -> Chunk:
    """Read the whole lines of a capture from ``offset`` (bytes) on, and return them as a chunk.

    At most ``most_B`` bytes are read, and not beyond the end of the segment (file). The chunk is empty if the capture
    does not have a whole line at the offset yet.
    """
    segment = _find_segment(folder, offset)
    if segment is None:
        return Chunk([], offset, 0)
    with segment.path.open("rb") as file:
        file.seek(offset - segment.start)
        content = file.read(most_B)
    whole_B = content.rfind(b"\n") + 1
    rows, damaged_count = parse_lines(content[:whole_B])
    return Chunk(rows, offset + whole_B, damaged_count)


def read_piece(folder: Path, offset: int, end: int) -> Iterator[Chunk]:
    """Yield the chunks from ``offset`` to ``end``, which are ends of lines, as a worker of Spark reads them.

    Raises DataError if the folder has no line at an offset: then the worker sees another folder than the process that
    has divided the capture into pieces, and its readings would be lost.
    """
    while offset < end:
        chunk = read(folder, offset, min(READ_B, end - offset))
        if chunk.offset == offset:
            raise DataError(
                f"a worker finds no readings at byte {offset} of the capture {folder}; put the folder on storage that "
                "the workers share with this process"
            )
        yield chunk
        offset = chunk.offset


def split_into_pieces(folder: Path, offset: int, most_B: int | None, piece_B: int) -> list[tuple[int, int]]:
    """Return the ranges [(begin, end), ...] of consecutive pieces of whole lines, as offsets in bytes.

    The first piece begins at ``offset``. A piece has at most ``piece_B`` bytes. All pieces together have at most
    ``most_B`` bytes (None: without a limit). If the last piece ends exactly at ``offset + most_B``, later calls with
    the same arguments return the same pieces, even if the capture has grown.
    """
    pieces = []
    end_limit = math.inf if most_B is None else offset + most_B
    while (
        offset < end_limit and (piece_end := _find_line_end(folder, offset, min(end_limit, offset + piece_B))) > offset
    ):
        pieces.append((offset, piece_end))
        offset = piece_end
    return pieces


def _find_line_end(folder: Path, offset: int, before: float) -> int:
    """Return the offset after the last line break in the bytes [``offset``, ``before``) of the capture.

    Only the segment that contains ``offset`` is searched. If it has no line break in these bytes, the result is
    ``offset``.
    """
    segment = _find_segment(folder, offset)
    if segment is None:  # The writer has described the capture, and not begun it yet.
        return offset
    limit = min(before, segment.start + segment.path.stat().st_size)
    if limit <= offset:
        return offset
    read_start = max(offset, int(limit) - _TAIL_B)
    with segment.path.open("rb") as file:
        file.seek(read_start - segment.start)
        return read_start + file.read(int(limit) - read_start).rfind(b"\n") + 1


def parse_lines(content: bytes) -> tuple[list[list[Any]], int]:
    """Return (rows of the valid lines, number of damaged lines) of ``content``, which consists of whole lines."""
    bodies = []
    lines = content.split(b"\n")[:-1]
    for line in lines:
        body, _, crc = line.rpartition(b",")
        if crc == b"%d]" % zlib.crc32(body):
            bodies.append(body)
    try:
        parsed_rows = json.loads(b"[" + b",".join([body + b"]" for body in bodies]) + b"]")
    except ValueError:  # A foreign line can have a valid checksum.
        parsed_rows = [row for body in bodies for row in _parse_line(body)]
    parsed_rows = [row for row in parsed_rows if isinstance(row, list) and len(row) == _WIDTH]
    return parsed_rows, len(lines) - len(parsed_rows)


def _parse_line(body: bytes) -> list[Any]:
    try:
        return [json.loads(body + b"]")]
    except ValueError:
        return []


def captured(folder: str | Path) -> pa.Table:
    """Return all readings captured so far, in order, as an Arrow table of `readings.SCHEMA`.

    Raises DataError if the folder has no capture.
    """
    folder = Path(folder)
    read_description(folder)
    tables, offset = [to_table([])], 0
    while (chunk := read(folder, offset)).offset > offset:
        tables.append(to_table(chunk.rows))
        offset = chunk.offset
    return pa.concat_tables(tables)

"""The capture: an append-only folder of readings that a bridge writes and any number of readers follow.

Theory of operation
    A line is a JSON array: the row of `readings.SCHEMA`, then the CRC-32 of the bytes before. Lines are stored in
    segments, whose names contain the offset of their first byte in the whole capture. So an offset is one number, and a
    reader seeks to it. A last line without its line break is incomplete: readers skip it, the next writer removes it.

    capture.json   a description of the capture: its id and its source
    ended          written when the capture is complete
    writing.lock   locked by the writer; the system unlocks it when the writing process ends

Cost
    65 to 110 bytes a reading; 6 to 8 µs of processor time to write one, 3 µs to read it.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import uuid
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from workbench.errors import DataError
from workbench.pipelines.live.readings import SCHEMA, Reading, refusal_reason, to_table

FORMAT, VERSION = "workbench-capture", 1
DESCRIPTION, ENDED, LOCK = "capture.json", "ended", "writing.lock"
SEGMENT_B = 64 << 20
READ_B = 1 << 20
_TAIL_B = 1 << 16  # more than the longest line
_SEGMENTS = "readings-*.jsonl"
_WIDTH = len(SCHEMA)
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Lock:
    """A lock on a folder that only one process may write. Raises DataError if another process holds it."""

    def __init__(self, folder: Path, name: str = LOCK) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / name).open("w")
        except OSError as error:
            raise DataError(f"{folder} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise DataError(f"{folder} is being written by another process; stop it, or use another folder") from None

    def release(self) -> None:
        """Release the lock explicitly: forked processes may still have the file open."""
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()


class Capture:
    """A writer of readings into a folder; it continues an existing capture.

    ``source`` describes the source of the readings; a folder has one source. ``replays``: the source delivers the same
    readings from its beginning each time, so those already captured are skipped. A complete capture of such a source
    stays unchanged: ``is_over``. ``most_B``: the largest size in bytes.
    Raises DataError for another source, for a capture that has ended, and for a folder that cannot be written.
    """

    def __init__(
        self,
        folder: str | Path,
        source: Mapping[str, Any] | None = None,
        replays: bool = False,
        most_B: float | None = None,
        segment_B: int = SEGMENT_B,
    ) -> None:
        self.folder = Path(folder)
        self.refused: Counter[str] = Counter()  # reason -> number of readings that cannot be captured
        self._most_B, self._segment_B = most_B, segment_B
        self._lock = Lock(self.folder)
        try:
            self._begin(dict(source or {}))
        except BaseException:
            self._lock.release()
            raise
        self._to_skip = self.rows if replays else 0
        if self.is_over and not (replays and _read_end(self.folder)["whole"]):
            self.close()
            raise DataError(f"{self.folder} has a capture that has ended; use another folder")

    def _begin(self, source: dict[str, Any]) -> None:
        from workbench.sweeps.store import files  # Readers, such as Spark's workers, do not load this.

        files.remove_drafts(self.folder)
        path = self.folder / DESCRIPTION
        if not path.exists():
            about = {"format": FORMAT, "version": VERSION, "id": uuid.uuid4().hex, "source": source}
            files.write_whole(self.folder, DESCRIPTION, json.dumps(about, indent=2).encode())
        elif read_description(self.folder)["source"] != source:
            raise DataError(f"{self.folder} has a capture of another source; use another folder")
        self.is_over = (self.folder / ENDED).exists()
        self._last = self._repair_last_segment()
        self.rows = sum(_line_count(segment.path) for segment in segments(self.folder))
        self.newest_s = self._read_newest_s()
        self._file = self._last.path.open("ab", buffering=0)

    def _repair_last_segment(self) -> Segment:
        """Remove an incomplete last line and return the last segment, or for an empty capture a new first segment."""
        existing = segments(self.folder)
        if not existing:
            return Segment(0, self.folder / _segment_name(0))
        path = existing[-1].path
        size_B = path.stat().st_size
        os.truncate(path, size_B - len(_tail(path).rpartition(b"\n")[2]))
        return existing[-1]

    def _read_newest_s(self) -> float:
        for segment in reversed(segments(self.folder)):
            rows, _ = parse_lines(_tail(segment.path).partition(b"\n")[2])
            if rows:
                return float(rows[-1][-1])
        return 0.0

    @property
    def size_B(self) -> int:
        """The size of the capture in bytes, which is the offset of its end."""
        return self._last.start + self._file.tell()

    def append(self, readings: Iterable[Reading]) -> int:
        """Write readings and return the number written. Invalid readings are counted in ``refused``."""
        lines = []
        for reading in readings:
            reason = refusal_reason(reading)
            if reason:
                self.refused[reason] += 1
            elif self._to_skip:
                self._to_skip -= 1
            else:
                lines.append(self._line(reading))
        if lines:
            self._write(b"".join(lines))
            self.rows += len(lines)
        return len(lines)

    def _line(self, reading: Reading) -> bytes:
        time_s = round(float(reading.time_s), 6)
        arrived_s = time_s if reading.arrived_s is None else round(float(reading.arrived_s), 6)
        self.newest_s = max(self.newest_s, time_s)
        row = [time_s, arrived_s, reading.node, reading.sink, reading.region, reading.key, float(reading.value)]
        body = _encode([*row, reading.sequence, self.newest_s])[:-1].encode()
        return b"%b,%d]\n" % (body, zlib.crc32(body))

    def _write(self, content: bytes) -> None:
        if self._most_B is not None and self.size_B + len(content) > self._most_B:
            raise DataError(
                f"{self.folder} has reached its limit of {self._most_B / 1e6:g} MB; raise most_MB or use another folder"
            )
        try:
            if self._file.tell() >= self._segment_B:
                self._begin_segment()
            view = memoryview(content)
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise DataError(f"{self.folder} cannot be written: {error.strerror}") from None

    def _begin_segment(self) -> None:
        start = self.size_B
        os.fsync(self._file.fileno())
        self._file.close()
        self._last = Segment(start, self.folder / _segment_name(start))
        self._file = self._last.path.open("ab", buffering=0)

    def end(self, is_whole: bool = True) -> None:
        """Mark the capture as ended, so that followers close their windows. ``is_whole``: the source is exhausted."""
        from workbench.sweeps.store import files

        os.fsync(self._file.fileno())
        ended = {"offset": self.size_B, "rows": self.rows, "newest_s": self.newest_s, "whole": is_whole}
        files.write_whole(self.folder, ENDED, json.dumps(ended).encode())

    def close(self) -> None:
        """Stop writing; another process may continue the capture."""
        self._file.close()
        self._lock.release()


# Reading


class Segment(NamedTuple):
    """A file of the capture, and the offset of its first byte."""

    start: int
    path: Path


def _segment_name(start: int) -> str:
    return f"readings-{start:016d}.jsonl"


def segments(folder: Path) -> list[Segment]:
    """Return the segments of a capture, in order."""
    return [Segment(int(path.stem.partition("-")[2]), path) for path in sorted(folder.glob(_SEGMENTS))]


def read_description(folder: str | Path) -> dict[str, Any]:
    """Return the content of capture.json. Raises DataError if it is missing, damaged or of another version."""
    try:
        about = json.loads((Path(folder) / DESCRIPTION).read_bytes())
    except OSError:
        raise DataError(f"{folder} has no capture; wb.pipelines.stream(source, out=folder) writes one") from None
    except ValueError:
        raise DataError(f"{Path(folder) / DESCRIPTION} is damaged") from None
    if not isinstance(about, dict) or (about.get("format"), about.get("version")) != (FORMAT, VERSION):
        raise DataError(
            f"{Path(folder) / DESCRIPTION} is not of a capture with version {VERSION}, which this workbench reads"
        )
    return about


def end_offset(folder: Path) -> int | None:
    """Return the offset of the end of a capture, or None while it is being written."""
    try:
        return int(_read_end(folder)["offset"])
    except FileNotFoundError:
        return None


def _read_end(folder: Path) -> dict[str, Any]:
    return json.loads((folder / ENDED).read_bytes())


def _tail(path: Path) -> bytes:
    """Return the end of a segment: its last lines, the first of which may be cut. A small segment is returned whole."""
    with path.open("rb") as file:
        begin = max(0, path.stat().st_size - _TAIL_B)
        file.seek(begin)
        return (b"" if begin else b"\n") + file.read()


def _line_count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(READ_B), b""))


class Chunk(NamedTuple):
    """A piece of a capture: rows of `readings.SCHEMA`, the offset after them, and the number of damaged lines."""

    rows: list[list[Any]]
    offset: int
    damaged: int


def read(folder: Path, offset: int, most_B: int = READ_B) -> Chunk:
    """Read whole lines of one segment from an offset, at most ``most_B`` bytes.

    The chunk is empty if no line follows yet.
    """
    candidates = [segment for segment in segments(folder) if segment.start <= offset]
    if not candidates:
        return Chunk([], offset, 0)
    start, path = candidates[-1]
    with path.open("rb") as file:
        file.seek(offset - start)
        content = file.read(most_B)
    whole = content.rfind(b"\n") + 1
    rows, damaged = parse_lines(content[:whole])
    return Chunk(rows, offset + whole, damaged)


def split_into_pieces(folder: Path, offset: int, most_B: int | None, piece_B: int) -> list[tuple[int, int]]:
    """Return (offset, end) of consecutive pieces of whole lines.

    A piece has at most ``piece_B`` bytes, all together at most ``most_B``. A later call returns the same pieces if its
    ``most_B`` ends where one of them ended, however much the capture has grown since.
    """
    ranges = []
    stop = math.inf if most_B is None else offset + most_B
    while offset < stop and (end := _line_end(folder, offset, min(stop, offset + piece_B))) > offset:
        ranges.append((offset, end))
        offset = end
    return ranges


def _line_end(folder: Path, offset: int, before: float) -> int:
    """Return the end of the last whole line before the offset ``before``, in the segment that contains ``offset``."""
    start, path = [segment for segment in segments(folder) if segment.start <= offset][-1]
    reach = min(before, start + path.stat().st_size)
    begin = max(offset, int(reach) - _TAIL_B)
    with path.open("rb") as file:
        file.seek(begin - start)
        return begin + file.read(int(reach) - begin).rfind(b"\n") + 1


def parse_lines(content: bytes) -> tuple[list[list[Any]], int]:
    """Return the rows of whole lines, and the number of damaged lines."""
    bodies = []
    lines = content.split(b"\n")[:-1]
    for line in lines:
        body, _, crc = line.rpartition(b",")
        if crc == b"%d]" % zlib.crc32(body):
            bodies.append(body)
    try:
        rows = json.loads(b"[" + b",".join([body + b"]" for body in bodies]) + b"]")
    except ValueError:  # A foreign line can have a valid checksum.
        rows = [row for body in bodies for row in _parse_line(body)]
    rows = [row for row in rows if isinstance(row, list) and len(row) == _WIDTH]
    return rows, len(lines) - len(rows)


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

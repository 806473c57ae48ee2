"""The capture: an append-only folder of readings that a bridge writes and any number of readers follow.

Theory of operation
    A line is a JSON array, the row of `readings.SCHEMA` and behind it the CRC-32 of the bytes before. Lines stand in
    segments, whose names say at which byte of the whole capture they begin. So an offset is one number, and a reader
    seeks to it. A last line without its line break is torn, and is not read; the next writer cuts it off.

    capture.json   what the capture is: its id, and of which source
    ended          there once nothing more will come
    writing.lock   locked by the one who writes; the system unlocks it when that process ends, however it ends

Cost
    75 to 100 bytes a reading; 10 µs of processor time to write one, 3 µs to read it.
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
from workbench.pipelines.live.readings import SCHEMA, Reading, fault, to_table

FORMAT, VERSION = "workbench-capture", 1
ABOUT, ENDED, LOCK = "capture.json", "ended", "writing.lock"
SEGMENT_B = 64 << 20
READ_B = 1 << 20
_TAIL_B = 1 << 16  # some lines, of the longest
_SEGMENTS = "readings-*.jsonl"
_WIDTH = len(SCHEMA)
_encode = json.JSONEncoder(separators=(",", ":")).encode


def _write_file(folder: Path, name: str, content: bytes) -> None:
    """A small file that is there with all of its content, or not at all."""
    from workbench.sweeps.store.files import write_whole  # Who reads, as Spark's workers do, needs no sweeps.

    write_whole(folder, name, content)


class Lock:
    """A folder that one process at a time writes into; DataError if another one does."""

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
            raise DataError(f"{folder} is being written by another one; stop that, or take another folder") from None

    def release(self) -> None:
        """Let others write, whatever process that was forked meanwhile has the file open, too."""
        if not self._file.closed:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()


class Capture:
    """Writes readings into a folder; a capture that is there is continued.

    ``source`` names what is captured; a folder has one source. ``replays``: the source delivers the same readings from
    its beginning each time, so as many as are there are passed over, and a whole capture is left as it is: ``is_over``.
    ``most_B``: how large the capture may become.
    DataError for another source, for a capture that has ended, and for a folder that cannot be written.
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
        self.refused: Counter[str] = Counter()  # why -> readings that cannot be captured
        self._most_B, self._segment_B = most_B, segment_B
        self._lock = Lock(self.folder)
        try:
            self._begin(dict(source or {}))
        except BaseException:
            self._lock.release()
            raise
        self._known = self.rows if replays else 0
        if self.is_over and not (replays and _ended(self.folder)["whole"]):
            self.close()
            raise DataError(f"{self.folder} has a capture that has ended; take another folder")

    def _begin(self, source: dict[str, Any]) -> None:
        path = self.folder / ABOUT
        if not path.exists():
            about = {"format": FORMAT, "version": VERSION, "id": uuid.uuid4().hex, "source": source}
            _write_file(self.folder, ABOUT, json.dumps(about, indent=2).encode())
        elif about_of(self.folder)["source"] != source:
            raise DataError(f"{self.folder} has a capture of something else; take another folder")
        self.is_over = (self.folder / ENDED).exists()
        self._last = self._mended()
        self.rows = sum(_line_count(segment.path) for segment in segments(self.folder))
        self.newest_s = self._newest_s()
        self._file = self._last.path.open("ab", buffering=0)

    def _mended(self) -> Segment:
        """The last segment, without a torn line at its end; the first one if there is none."""
        found = segments(self.folder)
        if not found:
            return Segment(0, self.folder / _segment_name(0))
        path = found[-1].path
        size_B = path.stat().st_size
        os.truncate(path, size_B - len(_tail(path).rpartition(b"\n")[2]))
        return found[-1]

    def _newest_s(self) -> float:
        for segment in reversed(segments(self.folder)):
            rows, _ = rows_of(_tail(segment.path).partition(b"\n")[2])
            if rows:
                return float(rows[-1][-1])
        return 0.0

    @property
    def size_B(self) -> int:
        """How large the capture is: the offset of its end."""
        return self._last.start + self._file.tell()

    def append(self, readings: Iterable[Reading]) -> int:
        """Write readings; returns how many were written. Those that cannot be are counted in ``refused``."""
        lines = []
        for reading in readings:
            why = fault(reading)
            if why:
                self.refused[why] += 1
            elif self._known:
                self._known -= 1
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
            raise DataError(f"{self.folder} may have {self._most_B / 1e6:g} MB, and they are full")
        try:
            if self._file.tell() >= self._segment_B:
                self._roll()
            view = memoryview(content)
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise DataError(f"{self.folder} cannot be written: {error.strerror}") from None

    def _roll(self) -> None:
        start = self.size_B
        os.fsync(self._file.fileno())
        self._file.close()
        self._last = Segment(start, self.folder / _segment_name(start))
        self._file = self._last.path.open("ab", buffering=0)

    def end(self, is_whole: bool = True) -> None:
        """Nothing more will come: followers close their windows. ``is_whole``: all of the source is there."""
        os.fsync(self._file.fileno())
        ended = {"offset": self.size_B, "rows": self.rows, "newest_s": self.newest_s, "whole": is_whole}
        _write_file(self.folder, ENDED, json.dumps(ended).encode())

    def close(self) -> None:
        """Stop writing; another one may continue."""
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
    """The segments of a capture, in order."""
    return [Segment(int(path.stem.partition("-")[2]), path) for path in sorted(folder.glob(_SEGMENTS))]


def about_of(folder: str | Path) -> dict[str, Any]:
    """What capture.json says; DataError if the folder has no capture, or one that this workbench cannot read."""
    try:
        about = json.loads((Path(folder) / ABOUT).read_bytes())
    except OSError:
        raise DataError(f"{folder} has no capture; wb.pipelines.stream(source, out=folder) writes one") from None
    except ValueError:
        raise DataError(f"{Path(folder) / ABOUT} is damaged") from None
    if not isinstance(about, dict) or (about.get("format"), about.get("version")) != (FORMAT, VERSION):
        raise DataError(f"{Path(folder) / ABOUT} is of no capture that this workbench reads")
    return about


def end_of(folder: Path) -> int | None:
    """The offset of the end of a capture that has ended, None while more may come."""
    try:
        return int(_ended(folder)["offset"])
    except FileNotFoundError:
        return None


def _ended(folder: Path) -> dict[str, Any]:
    return json.loads((folder / ENDED).read_bytes())


def _tail(path: Path) -> bytes:
    """The end of a segment: some lines, of which the first may begin before it. A small one is there from its start."""
    with path.open("rb") as file:
        begin = max(0, path.stat().st_size - _TAIL_B)
        file.seek(begin)
        return (b"" if begin else b"\n") + file.read()


def _line_count(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(READ_B), b""))


class Chunk(NamedTuple):
    """What was read: rows of `readings.SCHEMA`, the offset behind them, how many lines were damaged."""

    rows: list[list[Any]]
    offset: int
    damaged: int


def read(folder: Path, offset: int, most_B: int = READ_B) -> Chunk:
    """Read whole lines from an offset on, at most so many bytes and of one segment; without rows if there are none."""
    found = [segment for segment in segments(folder) if segment.start <= offset]
    if not found:
        return Chunk([], offset, 0)
    start, path = found[-1]
    with path.open("rb") as file:
        file.seek(offset - start)
        content = file.read(most_B)
    whole = content.rfind(b"\n") + 1
    rows, damaged = rows_of(content[:whole])
    return Chunk(rows, offset + whole, damaged)


def pieces(folder: Path, offset: int, most_B: int | None, piece_B: int) -> list[tuple[int, int]]:
    """(offset, end) of pieces of whole lines, one behind the other, with at most so many bytes each and in all.

    They are the same whenever they are asked for, as long as ``most_B`` ends at one that there was.
    """
    found = []
    stop = math.inf if most_B is None else offset + most_B
    while offset < stop and (end := _line_end(folder, offset, min(stop, offset + piece_B))) > offset:
        found.append((offset, end))
        offset = end
    return found


def _line_end(folder: Path, offset: int, before: float) -> int:
    """The end of the last whole line before an offset, in the segment that another one is in."""
    start, path = [segment for segment in segments(folder) if segment.start <= offset][-1]
    reach = min(before, start + path.stat().st_size)
    begin = max(offset, int(reach) - _TAIL_B)
    with path.open("rb") as file:
        file.seek(begin - start)
        return begin + file.read(int(reach) - begin).rfind(b"\n") + 1


def rows_of(content: bytes) -> tuple[list[list[Any]], int]:
    """The rows of whole lines, and how many lines were not what was written."""
    bodies = []
    lines = content.split(b"\n")[:-1]
    for line in lines:
        body, _, crc = line.rpartition(b",")
        if crc == b"%d]" % zlib.crc32(body):
            bodies.append(body)
    try:
        rows = json.loads(b"[" + b",".join([body + b"]" for body in bodies]) + b"]")
    except ValueError:  # Bytes of another origin may have a checksum that fits.
        rows = [row for body in bodies for row in _row_of(body)]
    rows = [row for row in rows if isinstance(row, list) and len(row) == _WIDTH]
    return rows, len(lines) - len(rows)


def _row_of(body: bytes) -> list[Any]:
    try:
        return [json.loads(body + b"]")]
    except ValueError:
        return []


def captured(folder: str | Path) -> pa.Table:
    """All readings of a capture so far, in their order, as an Arrow table of `readings.SCHEMA`.

    DataError if the folder has no capture.
    """
    folder = Path(folder)
    about_of(folder)
    tables, offset = [to_table([])], 0
    while (chunk := read(folder, offset)).offset > offset:
        tables.append(to_table(chunk.rows))
        offset = chunk.offset
    return pa.concat_tables(tables)

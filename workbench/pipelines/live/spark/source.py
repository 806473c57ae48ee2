"""Captures as a data source of Spark: ``spark.read`` and ``spark.readStream`` with the format "workbench.readings".

    spark.dataSource.register(ReadingsSource)
    spark.readStream.format("workbench.readings").load(folder)

Theory of operation
    An offset of the stream is one of the capture. A batch has some megabytes at most, so a long capture is worked off
    piece by piece, and is read by tasks of `PIECE_B` each. Nothing is read where the offsets are planned but the ends
    of pieces.

Options
    beyond_s   behind the last reading of a capture that has ended comes one row of nulls, so many seconds later: it
               has the watermark pass all windows. Without the option there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from workbench.pipelines.live import capture
from workbench.pipelines.live.readings import SCHEMA, to_table

FORMAT = "workbench.readings"
BATCH_B, PIECE_B = 64 << 20, 4 << 20
_TYPES = {pa.float64(): "DOUBLE", pa.int64(): "BIGINT", pa.string(): "STRING"}


class ReadingsSource(DataSource):
    """The data source "workbench.readings": a capture's readings, with the columns of `readings.SCHEMA`."""

    @classmethod
    def name(cls) -> str:
        """What it is called in ``format``."""
        return FORMAT

    def schema(self) -> str:
        """The columns, as Spark writes them."""
        return ", ".join(f"`{field.name}` {_TYPES[field.type]}" for field in SCHEMA)

    def reader(self, schema: Any) -> _Reader:
        """For ``spark.read``: all readings so far."""
        return _Reader(self._folder())

    def streamReader(self, schema: Any) -> _StreamReader:
        """For ``spark.readStream``."""
        beyond_s = self.options.get("beyond_s")
        return _StreamReader(self._folder(), None if beyond_s is None else float(beyond_s))

    def _folder(self) -> Path:
        folder = Path(self.options.get("path", "")).absolute()
        capture.about_of(folder)
        return folder


class _Lines(InputPartition):
    """The lines from an offset to another."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class _End(InputPartition):
    """The row of nulls behind a capture that has ended."""

    def __init__(self) -> None:
        pass


def _read(folder: Path, lines: _Lines) -> Iterator[pa.RecordBatch]:
    offset = lines.start
    while offset < lines.end:
        chunk = capture.read(folder, offset, min(capture.READ_B, lines.end - offset))
        if chunk.offset == offset:
            return
        offset = chunk.offset
        yield from to_table(chunk.rows).to_batches()


class _Reader(DataSourceReader):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def partitions(self) -> Sequence[InputPartition]:
        return [_Lines(start, end) for start, end in capture.pieces(self._folder, 0, None, PIECE_B)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Lines)
        return _read(self._folder, partition)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, folder: Path, beyond_s: float | None) -> None:
        self._folder, self._beyond_s = folder, beyond_s

    def initialOffset(self) -> dict[str, Any]:
        return {"offset": 0, "ended": False}

    # Before Spark 4.2 it is called without arguments, and reads all that there is.
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[Any, Any]:
        begin = 0 if start is None else start["offset"]
        # Asked for before reading: what was written before the end is read then.
        end = capture.end_of(self._folder)
        found = capture.pieces(self._folder, begin, getattr(limit, "max_bytes", None), PIECE_B)
        offset = found[-1][1] if found else begin
        return {"offset": offset, "ended": end is not None and offset >= end}

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadMaxBytes

        return ReadMaxBytes(BATCH_B)

    def partitions(self, start: dict[str, Any], end: dict[Any, Any]) -> Sequence[InputPartition]:
        found = capture.pieces(self._folder, start["offset"], end["offset"] - start["offset"], PIECE_B)
        lines: list[InputPartition] = [_Lines(*piece) for piece in found]
        is_end = self._beyond_s is not None and end["ended"] and not start["ended"]
        return [*lines, _End()] if is_end else lines

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, _Lines):
            return _read(self._folder, partition)
        assert self._beyond_s is not None
        newest_s = json.loads((self._folder / capture.ENDED).read_bytes())["newest_s"] + self._beyond_s
        times = {"time_s": newest_s, "arrived_s": newest_s, "newest_s": newest_s}
        return iter(to_table([[times.get(name) for name in SCHEMA.names]]).to_batches())

"""Captures on Spark: a data source for ``spark.read`` and ``spark.readStream``, and windows by Structured Streaming.

    spark.dataSource.register(ReadingsSource)
    spark.readStream.format("workbench.readings").load(folder)

Theory of operation
    An offset of the stream is an offset of the capture. A batch has at most `BATCH_B` bytes, so a long capture takes
    several batches. Tasks of at most `PIECE_B` each read a batch in parallel. To plan the tasks, only the end of each
    piece is read.

    Spark 4.2 and later passes the start of the next batch and the limit of its size to the reader. Earlier versions
    pass neither, so the reader remembers the end of the last batch that Spark has planned.

    A line of the capture has all data that determine whether its reading is late (`windows`). A late reading counts in
    the window of the newest time so far. Spark's own watermark (the time up to which windows are closed) is never later
    than this time, so Spark drops no reading. A window is written when the watermark has passed the window's end. The
    windows of a repeated batch are not written again.

    Spark moves the watermark after each batch, so windows are written a batch later than without Spark. After the end
    of a capture, one row without values is added, whose time is later than all windows. This row moves the watermark
    past the windows; the row's own window is never written.

Options
    nulls_after_s   seconds from the newest reading of a finished capture to the time of the added row. Without the
               option no row is added.
    batch_B    largest size of a batch in bytes, at least 65,536. The default is 64 MB with Spark 4.2 and later. The
               default before 4.2 is the whole capture, because a query with the trigger ``availableNow`` or ``once``
               takes only one batch there. `follow` sets this option.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from workbench.errors import DataError
from workbench.pipelines.live import capture
from workbench.pipelines.live.capture import BATCH_B, PIECE_B, end_offset
from workbench.pipelines.live.following import POLL_S, Following
from workbench.pipelines.live.output import CHECKPOINT
from workbench.pipelines.live.readings import SCHEMA, to_table
from workbench.pipelines.live.windows import AGGREGATES, MICROSECONDS
from workbench.pipelines.shipping import ship

FORMAT = "workbench.readings"
TRIGGER = "500 milliseconds"
LEAST_BATCH_B = 1 << 16  # more than the longest line
_TYPES = {pa.float64(): "DOUBLE", pa.int64(): "BIGINT", pa.string(): "STRING"}


class ReadingsSource(DataSource):
    """The data source "workbench.readings": a capture's readings, with the columns of `readings.SCHEMA`."""

    @classmethod
    def name(cls) -> str:
        """Return the name by which Spark selects this data source."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns and their types as Spark DDL."""
        return ", ".join(f"`{field.name}` {_TYPES[field.type]}" for field in SCHEMA)

    def reader(self, schema: Any) -> _Reader:
        """Return the reader for ``spark.read``, which reads all readings captured so far."""
        return _Reader(self._get_folder())

    def streamReader(self, schema: Any) -> _StreamReader:
        """Return the reader for ``spark.readStream``; it reads the captured readings, then new ones as they arrive.

        Spark requires the method's name. ``schema`` is ignored, as the columns are always those of `schema`.
        """
        nulls_after_s, batch_B = self.options.get("nulls_after_s"), self.options.get("batch_B")
        if batch_B is not None and not (batch_B.isdecimal() and int(batch_B) >= LEAST_BATCH_B):
            raise DataError(f"the option 'batch_B' is {batch_B!r:.60}; it must be a number of bytes, at least 65536")
        return _StreamReader(
            self._get_folder(),
            None if nulls_after_s is None else float(nulls_after_s),
            None if batch_B is None else int(batch_B),
        )

    def _get_folder(self) -> Path:
        folder = Path(self.options.get("path", "")).absolute()
        capture.read_description(folder)
        return folder


# A partition is (offset, end) of whole lines, or None for the row of nulls after the end of a capture.


def _read_batches(folder: Path, offset: int, end: int) -> Iterator[pa.RecordBatch]:
    for chunk in capture.read_piece(folder, offset, end):
        yield from to_table(chunk.rows).to_batches()


class _Reader(DataSourceReader):
    def __init__(self, folder: Path) -> None:
        self._get_folder = folder

    def partitions(self) -> Sequence[InputPartition]:
        return list(map(InputPartition, capture.split_into_pieces(self._get_folder, 0, None, PIECE_B)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read_batches(self._get_folder, *partition.value)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, folder: Path, nulls_after_s: float | None, batch_B: int | None) -> None:
        self._get_folder, self._nulls_after_s, self._batch_B = folder, nulls_after_s, batch_B
        self._next_offset = 0  # the end of the last planned batch

    def initialOffset(self) -> dict[str, Any]:
        return {"offset": 0, "ended": False}

    # Before version 4.2 Spark passes no arguments. A query that continues first plans the batch from its last offset to
    # the same offset (AcceptsLatestSeenOffset), so `_next_offset` is known before this call.
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        start_offset = self._next_offset if start is None else start["offset"]
        most_B = self._batch_B if start is None else getattr(limit, "max_bytes", None)
        # The end is read first, so that no line before it can be missed.
        capture_end = capture.end_offset(self._get_folder)
        pieces = capture.split_into_pieces(self._get_folder, start_offset, most_B, PIECE_B)
        offset = pieces[-1][1] if pieces else start_offset
        return {"offset": offset, "ended": capture_end is not None and offset >= capture_end}

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadMaxBytes

        return ReadMaxBytes(self._batch_B or BATCH_B)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._next_offset = max(self._next_offset, end["offset"])
        pieces = capture.split_into_pieces(self._get_folder, start["offset"], end["offset"] - start["offset"], PIECE_B)
        is_end = self._nulls_after_s is not None and end["ended"] and not start["ended"]
        return list(map(InputPartition, [*pieces, None] if is_end else pieces))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is not None:
            return _read_batches(self._get_folder, *partition.value)
        assert self._nulls_after_s is not None
        newest_s = json.loads((self._get_folder / capture.ENDED).read_bytes())["newest_s"] + self._nulls_after_s
        marker_times = {"time_s": newest_s, "arrived_s": newest_s, "newest_s": newest_s}
        return iter(to_table([[marker_times.get(name) for name in SCHEMA.names]]).to_batches())


class SparkFollowing(Following):
    """The result of `follow` on Spark: the streaming query ``query`` writes statistics of a capture per time window."""

    engine = "on Spark"

    def __init__(self, *settings: Any, spark: Any) -> None:
        self._given_session = spark
        self._spark = spark.newSession()  # a session of its own, so that its settings affect no other query
        super().__init__(*settings)

    def _prepare(self) -> None:
        checkpoint = self.folder / CHECKPOINT
        if not checkpoint.exists():
            self._output.clear()
        # The default shuffle of 200 partitions takes longer than a batch.
        self._spark.conf.set("spark.sql.shuffle.partitions", str(self._spark.sparkContext.defaultParallelism))
        writer = self._stream_windows().writeStream.foreachBatch(self._write_batch).trigger(processingTime=TRIGGER)
        self.query = writer.option("checkpointLocation", str(checkpoint.absolute())).start()

    def _stream_windows(self) -> Any:
        """Return the streaming DataFrame of closed windows."""
        from pyspark.sql import functions as F

        settings = self.settings
        ship(self._spark)
        # Spark looks for the name in the active session of this thread, and refuses the source if that session has it.
        sessions = self._spark.sparkContext._jvm.org.apache.spark.sql.classic.SparkSession
        sessions.setActiveSession(self._spark._jsparkSession)
        try:
            self._spark.dataSource.register(ReadingsSource)
        finally:
            sessions.setActiveSession(self._given_session._jsparkSession)
        nulls_after_s = 2 * (settings.every_us + settings.late_us) / 1e6 + 1
        capture_lines = (
            self._spark.readStream.format(FORMAT)
            .option("nulls_after_s", nulls_after_s)
            .option("batch_B", BATCH_B)
            .load(str(self._source.absolute()))
        )
        lines_in_us = capture_lines.selectExpr(
            "*", *(f"{expression} AS {name}" for name, expression in MICROSECONDS.items())
        )
        lines_with_lateness = lines_in_us.selectExpr(
            "*", f"{settings.is_late} AS is_late", f"timestamp_micros({settings.counted_us}) AS at"
        )
        # Spark's watermark has whole milliseconds.
        watermarked = lines_with_lateness.withWatermark("at", f"{-(-settings.late_us // 1000)} milliseconds")
        window_groups = watermarked.groupBy(
            F.window("at", f"{settings.every_us} microseconds").alias("span"), *settings.by
        )
        aggregates = window_groups.agg(*(F.expr(expression).alias(name) for name, expression in AGGREGATES.items()))
        span_ends = [f"unix_micros(span.{end}) / 1e6 AS {end}_s" for end in ("start", "end")]
        return aggregates.selectExpr(*span_ends, *settings.by, *AGGREGATES)

    def _write_batch(self, frame: Any, number: int) -> None:
        self._output.append(frame.toArrow(), number)

    def _work(self) -> None:
        try:
            while end_offset(self._source) is None and self.query.isActive and not self._is_stopping.is_set():
                self._is_stopping.wait(POLL_S)
            if not self._is_stopping.is_set():
                self.query.processAllAvailable()
        except Exception:
            if not self._is_stopping.is_set():
                raise
        finally:
            self.query.stop()

    def stop(self) -> None:
        """Stop the query. Following the same capture into the same folder continues where it stopped."""
        self._is_stopping.set()
        self.query.stop()
        self._thread.join()

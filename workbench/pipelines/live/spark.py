"""Captures on Spark: a data source for ``spark.read`` and ``spark.readStream``, and windows by Structured Streaming.

    spark.dataSource.register(ReadingsSource)
    spark.readStream.format("workbench.readings").load(folder)

Theory of operation
    An offset of the stream is an offset of the capture. A batch has at most `BATCH_B` bytes, so a long capture takes
    several batches. Tasks of at most `PIECE_B` each read a batch in parallel. To plan the tasks, only the end of each
    piece is read.

    Each line determines by itself whether its reading is late (`windows`). A late reading counts at the newest time, so
    Spark's own watermark, which is never ahead of the newest reading, drops no reading. A window is written when the
    watermark has passed the window's end. The windows of batch N are written as part N; a repeated batch overwrites it.

    Spark moves the watermark after each batch, so windows are written a batch later than without Spark. After the end
    of a capture, a row of nulls follows whose time is later than all windows. This row makes the watermark pass the
    windows; the row's own window is never written.

Options
    nulls_after_s   distance in seconds from the newest reading of a finished capture to that row of nulls. Without the
               option the row is not added.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from workbench.pipelines.live import capture
from workbench.pipelines.live.capture import end_offset
from workbench.pipelines.live.following import POLL_S, Following
from workbench.pipelines.live.output import CHECKPOINT
from workbench.pipelines.live.readings import SCHEMA, to_table
from workbench.pipelines.live.windows import AGGREGATES, MICROSECONDS
from workbench.pipelines.shipping import ship

FORMAT = "workbench.readings"
TRIGGER = "500 milliseconds"
BATCH_B, PIECE_B = 64 << 20, 4 << 20
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
        return _Reader(self._folder())

    def streamReader(self, schema: Any) -> _StreamReader:
        """Return the reader for ``spark.readStream``; it reads the captured readings, then new ones as they arrive.

        Spark requires the method's name. ``schema`` is ignored, as the columns are always those of `schema`.
        """
        nulls_after_s = self.options.get("nulls_after_s")
        return _StreamReader(self._folder(), None if nulls_after_s is None else float(nulls_after_s))

    def _folder(self) -> Path:
        folder = Path(self.options.get("path", "")).absolute()
        capture.read_description(folder)
        return folder


# A partition is (offset, end) of whole lines, or None for the row of nulls after the end of a capture.


def _read(folder: Path, offset: int, end: int) -> Iterator[pa.RecordBatch]:
    while offset < end:
        chunk = capture.read(folder, offset, min(capture.READ_B, end - offset))
        if chunk.offset == offset:
            return
        offset = chunk.offset
        yield from to_table(chunk.rows).to_batches()


class _Reader(DataSourceReader):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def partitions(self) -> Sequence[InputPartition]:
        return list(map(InputPartition, capture.split_into_pieces(self._folder, 0, None, PIECE_B)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._folder, *partition.value)


class _StreamReader(DataSourceStreamReader):
    def __init__(self, folder: Path, nulls_after_s: float | None) -> None:
        self._folder, self._nulls_after_s = folder, nulls_after_s

    def initialOffset(self) -> dict[str, Any]:
        return {"offset": 0, "ended": False}

    # Before Spark 4.2 it is called without arguments; then the batch is the whole capture.
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        start_offset = 0 if start is None else start["offset"]
        # The end is read first, so that no line before it can be missed.
        capture_end = capture.end_offset(self._folder)
        pieces = capture.split_into_pieces(self._folder, start_offset, getattr(limit, "max_bytes", None), PIECE_B)
        offset = pieces[-1][1] if pieces else start_offset
        return {"offset": offset, "ended": capture_end is not None and offset >= capture_end}

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadMaxBytes

        return ReadMaxBytes(BATCH_B)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        pieces = capture.split_into_pieces(self._folder, start["offset"], end["offset"] - start["offset"], PIECE_B)
        is_end = self._nulls_after_s is not None and end["ended"] and not start["ended"]
        return list(map(InputPartition, [*pieces, None] if is_end else pieces))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is not None:
            return _read(self._folder, *partition.value)
        assert self._nulls_after_s is not None
        newest_s = json.loads((self._folder / capture.ENDED).read_bytes())["newest_s"] + self._nulls_after_s
        marker_times = {"time_s": newest_s, "arrived_s": newest_s, "newest_s": newest_s}
        return iter(to_table([[marker_times.get(name) for name in SCHEMA.names]]).to_batches())


class SparkFollowing(Following):
    """The result of `follow` on Spark: the streaming query ``query`` writes statistics of a capture per time window."""

    engine = "on Spark"

    def __init__(self, *settings: Any, spark: Any) -> None:
        self._spark = spark.newSession()  # a session of its own, so that its settings affect no other query
        super().__init__(*settings)

    def _prepare(self) -> None:
        checkpoint = self.folder / CHECKPOINT
        if not checkpoint.exists():
            self._output.remove_parts(0)
        # The default shuffle of 200 partitions takes longer than a batch.
        self._spark.conf.set("spark.sql.shuffle.partitions", str(self._spark.sparkContext.defaultParallelism))
        writer = self._windows().writeStream.foreachBatch(self._write).trigger(processingTime=TRIGGER)
        self.query = writer.option("checkpointLocation", str(checkpoint.absolute())).start()

    def _windows(self) -> Any:
        """Return the streaming DataFrame of closed windows."""
        from pyspark.sql import functions as F

        settings = self.settings
        ship(self._spark)
        self._spark.dataSource.register(ReadingsSource)
        nulls_after_s = 2 * (settings.every_us + settings.late_us) / 1e6 + 1
        capture_lines = (
            self._spark.readStream.format(FORMAT)
            .option("nulls_after_s", nulls_after_s)
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

    def _write(self, frame: Any, number: int) -> None:
        table = frame.toArrow()
        if len(table):
            self._output.write_part(number, table)

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

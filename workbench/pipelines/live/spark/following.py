"""Windows of a capture by Structured Streaming.

Theory of operation
    Which readings are late is a matter of each line alone (`windows`). A late reading counts at the newest time, so
    Spark's own watermark, which is never ahead of the newest reading, drops nothing. A window is handed over once the
    watermark has passed its end, in the batch whose number its part has; a batch that is repeated writes it anew.

    The watermark follows the batches and moves after them, so windows come a batch later than without Spark. Behind
    the end of the capture comes a row of nulls that lies beyond all windows and is in none that is handed over.
"""

from __future__ import annotations

from typing import Any

from workbench.pipelines.live.capture import end_of
from workbench.pipelines.live.following import POLL_S, Following
from workbench.pipelines.live.output import CHECKPOINT
from workbench.pipelines.live.windows import MICROSECONDS, TOLD

TRIGGER = "500 milliseconds"


class SparkFollowing(Following):
    """The engine of Spark: a streaming query. ``query`` is Spark's own handle."""

    engine = "on Spark"

    def __init__(self, *settings: Any, spark: Any) -> None:
        self._spark = spark.newSession()  # its settings are its own
        super().__init__(*settings)

    def _begin(self) -> None:
        checkpoint = self.folder / CHECKPOINT
        if not checkpoint.exists():
            self._output.forget_parts(0)
        # A shuffle of 200 parts, which is the default, takes longer than a batch.
        self._spark.conf.set("spark.sql.shuffle.partitions", str(self._spark.sparkContext.defaultParallelism))
        writer = self._windows().writeStream.foreachBatch(self._write).trigger(processingTime=TRIGGER)
        self.query = writer.option("checkpointLocation", str(checkpoint.absolute())).start()

    def _windows(self) -> Any:
        """The streaming DataFrame of closed windows."""
        from pyspark.sql import functions as F

        from workbench.pipelines.live.spark.source import FORMAT, ReadingsSource

        wanted = self.asked
        self._spark.dataSource.register(ReadingsSource)
        beyond_s = 2 * (wanted.every_us + wanted.late_us) / 1e6 + 1
        lines = self._spark.readStream.format(FORMAT).option("beyond_s", beyond_s).load(str(self._source.absolute()))
        timed = lines.selectExpr("*", *(f"{text} AS {name}" for name, text in MICROSECONDS.items()))
        judged = timed.selectExpr("*", f"{wanted.is_late} AS is_late", f"timestamp_micros({wanted.counted_us}) AS at")
        # Spark's watermark has whole milliseconds.
        marked = judged.withWatermark("at", f"{-(-wanted.late_us // 1000)} milliseconds")
        spans = marked.groupBy(F.window("at", f"{wanted.every_us} microseconds").alias("span"), *wanted.by)
        told = spans.agg(*(F.expr(text).alias(name) for name, text in TOLD.items()))
        ends = [f"unix_micros(span.{end}) / 1e6 AS {end}_s" for end in ("start", "end")]
        return told.selectExpr(*ends, *wanted.by, *TOLD)

    def _write(self, frame: Any, number: int) -> None:
        table = frame.toArrow()
        if len(table):
            self._output.write_part(number, table)

    def _work(self) -> None:
        try:
            while end_of(self._source) is None and self.query.isActive and not self._is_stopping.is_set():
                self._is_stopping.wait(POLL_S)
            if not self._is_stopping.is_set():
                self.query.processAllAvailable()
        except Exception:
            if not self._is_stopping.is_set():
                raise
        finally:
            self.query.stop()

    def stop(self) -> None:
        """Stop the query; following the same capture into the same folder goes on from here."""
        self._is_stopping.set()
        self.query.stop()
        self._thread.join()

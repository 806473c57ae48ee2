"""Windows by Structured Streaming equal those of a query over the whole capture, even after a kill and a restart."""

import signal
import subprocess
import sys

import pandas as pd
import pytest

from tests.repository import REPOSITORY
from workbench import pipelines
from workbench.cli import doctor
from workbench.errors import DataError
from workbench.pipelines import Reading, captured, follow, windows
from workbench.pipelines.live.capture import Capture

JAVA = doctor.java()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not JAVA.is_ok, reason=f"Spark needs Java: {JAVA.remedy}"),
]
WITHIN_S = 400  # on a busy machine; on an idle one it takes about ten seconds
WINDOWS = {"every_s": 3, "late_s": 1}
# Dies after a batch's windows are written and before Spark records the batch as done.
KILLED = """
import os, signal, sys
from workbench.pipelines import follow
from workbench.pipelines.live.output import Output
from workbench.sweeps.spark.session import session

append = Output.append
def die(output, windows, batch):
    append(output, windows, batch)
    if len(windows):
        os.kill(os.getpid(), signal.SIGKILL)

Output.append = die
follow(sys.argv[1], out=sys.argv[2], every_s=3, late_s=1, spark=session("local[2]", {})).wait()
"""


def readings(begin, end):
    """Yield readings that overtake each other by up to 4 s."""
    for i in range(begin, end):
        time_s = 10 + i / 10 - (i * 7 % 41) / 10 * (i % 3 == 0)
        yield Reading(time_s, i % 5, "TEMP" if i % 4 else "HUMIDITY", i / 7, "AB"[i % 2], 0, i, 10 + i / 10)


@pytest.mark.family
def test_a_query_that_is_killed_and_restarted_leaves_neither_gaps_nor_duplicates(tmp_path):
    capture, out = tmp_path / "capture", tmp_path / "out"
    writer = Capture(capture)
    writer.append(readings(0, 150))
    command = [sys.executable, "-c", KILLED, str(capture), str(out)]
    killed = subprocess.Popen(command, cwd=REPOSITORY)
    spark = pipelines.spark("local[2]")  # starts while the other process runs
    try:
        assert killed.wait(WITHIN_S) == -signal.SIGKILL
        assert len(list(out.glob("part-*.parquet"))) == 1
        writer.append(readings(150, 300))
        writer.end()
        again = follow(capture, out=out, spark=spark, **WINDOWS)
        assert again.wait(WITHIN_S)
        whole = windows(capture, **WINDOWS)
        assert whole["late"].sum() > 10
        pd.testing.assert_frame_equal(again.windows(), whole, rtol=1e-12)
        assert again.readings == 300
        check_a_query_over_spark(spark, capture, whole)
    finally:
        spark.stop()


def test_batches_are_bounded_before_the_version_of_spark_that_passes_limits(tmp_path):
    from workbench.pipelines.live.spark import ReadingsSource

    writer = Capture(tmp_path)
    writer.append(readings(0, 5000))
    source = ReadingsSource({"path": str(tmp_path), "batch_B": "65536"})
    reader = source.streamReader(None)
    assert reader.getDefaultReadLimit().max_bytes == 65536
    start, batches = reader.initialOffset(), 0
    while (end := reader.latestOffset()) != start:
        assert start["offset"] < end["offset"] <= start["offset"] + 65536
        assert [piece.value for piece in reader.partitions(start, end)] == [(start["offset"], end["offset"])]
        start, batches = end, batches + 1
    assert end["offset"] == writer.size_B and batches > 4
    writer.append(readings(5000, 10000))
    size_B = writer.size_B
    writer.close()
    # A query that continues: Spark plans an empty batch at its last offset, and then requests the latest offset.
    reader = source.streamReader(None)
    assert reader.partitions(end, end) == []
    assert end["offset"] < reader.latestOffset()["offset"] <= end["offset"] + 65536
    # Triggers that take a single batch need the whole capture.
    assert ReadingsSource({"path": str(tmp_path)}).streamReader(None).latestOffset()["offset"] == size_B


def test_a_worker_that_does_not_see_the_capture_loses_no_readings_silently(tmp_path):
    from pyspark.sql.datasource import InputPartition

    from workbench.pipelines.live.spark import ReadingsSource

    Capture(tmp_path).close()
    for reader in (
        ReadingsSource({"path": str(tmp_path)}).reader(None),
        ReadingsSource({"path": str(tmp_path)}).streamReader(None),
    ):
        with pytest.raises(
            DataError, match=f"no readings at byte 0 of the capture {tmp_path}; put the folder on storage"
        ):
            list(reader.read(InputPartition((0, 100))))


def test_an_impossible_size_of_batches_is_refused_in_a_sentence(tmp_path):
    from workbench.pipelines.live.spark import ReadingsSource

    Capture(tmp_path).close()
    for size in ("100", "1e9", "all"):
        with pytest.raises(DataError, match=f"'batch_B' is '{size}'; it must be a number of bytes, at least 65536"):
            ReadingsSource({"path": str(tmp_path), "batch_B": size}).streamReader(None)


def check_a_query_over_spark(spark, capture, whole):
    """Check that Spark reads the capture as a table, and computes the same windows from it."""
    from workbench.pipelines.live.spark import ReadingsSource

    spark.dataSource.register(ReadingsSource)
    table = spark.read.format("workbench.readings").load(str(capture))
    pd.testing.assert_frame_equal(windows(table, **WINDOWS).toPandas(), whole, rtol=1e-12)
    rows = table.toPandas().sort_values("sequence", ignore_index=True)
    pd.testing.assert_frame_equal(rows, captured(capture).to_pandas())

"""Windows by Structured Streaming equal those of a query over the whole capture, even after a kill and a restart."""

import signal
import subprocess
import sys

import pandas as pd
import pytest

from tests.repository import REPOSITORY
from workbench.cli import doctor
from workbench.pipelines import Reading, captured, follow, windows
from workbench.pipelines.live.capture import Capture
from workbench.sweeps.spark.session import session

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

write = Output.write_part
def die(*arguments):
    write(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

Output.write_part = die
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
    spark = session("local[2]", {})  # starts while the other process runs
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


def check_a_query_over_spark(spark, capture, whole):
    """Check that Spark reads the capture as a table, and computes the same windows from it."""
    from workbench.pipelines.live.spark import ReadingsSource

    spark.dataSource.register(ReadingsSource)
    table = spark.read.format("workbench.readings").load(str(capture))
    pd.testing.assert_frame_equal(windows(table, **WINDOWS).toPandas(), whole, rtol=1e-12)
    rows = table.toPandas().sort_values("sequence", ignore_index=True)
    pd.testing.assert_frame_equal(rows, captured(capture).to_pandas())

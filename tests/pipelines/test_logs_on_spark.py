"""Logs, links and readings on Spark: the same as here. One session for all."""

import pandas as pd
import pytest

import workbench as wb
from tests.pipelines.small_spark import small_spark
from tests.pipelines.test_logs import HEADER, OWN, PACKETS, packet
from tests.pipelines.test_readings import RULES, TABLE
from workbench import pipelines
from workbench.cli import doctor
from workbench.pipelines.logs import reading

JAVA = doctor.java()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not JAVA.is_ok, reason=f"Spark needs Java: {JAVA.remedy}"),
]


@pytest.fixture(scope="module")
def spark():
    started = small_spark()
    yield started
    started.stop()


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """Two logs of Mercator's, the first of which is cut into several tasks."""
    first, second = tmp_path / "raw.csv", tmp_path / "other.csv"
    first.write_text("\n".join([HEADER, *PACKETS]))
    second.write_text("\n".join([HEADER, packet(5, 1, 2, 1, 0), "cut"]))
    monkeypatch.setattr(reading, "SPARK_PIECE_B", 1200)
    return [first, second]


def in_order(frame, *columns):
    return frame.sort_values(list(columns)).reset_index(drop=True)


def test_rows_and_reasons_are_those_read_here(spark, paths):
    here, there = pipelines.read_log(paths, "mercator"), pipelines.read_log(paths, "mercator", spark=spark)
    order = ["file", "time_s", "receiver", "packet"]
    assert there.rows.rdd.getNumPartitions() > 2
    pd.testing.assert_frame_equal(in_order(there.rows.toPandas(), *order), in_order(here.rows, *order))
    rejected = in_order(there.rejected.toPandas(), "file", "line")
    pd.testing.assert_frame_equal(rejected, in_order(here.rejected, "file", "line"))
    pd.testing.assert_frame_equal(there.reasons().toPandas(), here.reasons())


def test_links_are_those_measured_here(spark, paths):
    here, there = (
        pipelines.links(pipelines.read_log(paths, "mercator", spark=one), by=("channel",), every_s=60)
        for one in (None, spark)
    )
    pd.testing.assert_frame_equal(there.toPandas(), here)
    assert wb.topology.digest(wb.topology.from_links(there)) == wb.topology.digest(wb.topology.from_links(here))


def test_a_format_of_the_users_own_goes_to_spark(spark, tmp_path):
    path = tmp_path / "own.log"
    path.write_text("h\n" + "2026-11-22T10:00:00;1;attic;x;5;2\n" * 3 + "x\n")
    log = pipelines.read_log(path, OWN, spark=spark)
    assert log.rows.count() == 3
    assert log.rejected.toPandas()["line"].tolist() == [5]


def test_readings_are_cleaned_as_here(spark):
    here, there = pipelines.clean(TABLE, RULES), pipelines.clean(spark.createDataFrame(TABLE).coalesce(1), RULES)
    pd.testing.assert_frame_equal(there.rows.toPandas().astype(here.rows.dtypes), here.rows)
    pd.testing.assert_frame_equal(there.left_out.toPandas().astype(here.left_out.dtypes), here.left_out)
    pd.testing.assert_frame_equal(there.counts.toPandas(), here.counts)
    assert wb.replay(there) == wb.replay(here)

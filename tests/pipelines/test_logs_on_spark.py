"""Logs, links and readings on Spark equal those of this process; all tests share a session."""

import pandas as pd
import pytest

import workbench as wb
from tests.pipelines.small_spark import small_spark
from tests.pipelines.test_archives import COMPRESSORS
from tests.pipelines.test_logs import HEADER, OWN, PACKETS, READINGS, packet
from tests.pipelines.test_readings import RULES, TABLE
from workbench import pipelines
from workbench.cli import doctor
from workbench.pipelines import session
from workbench.pipelines.logs import ranges

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
    """Write two Mercator logs, of which Spark reads the first in several tasks; return their paths."""
    first, second = tmp_path / "raw.csv", tmp_path / "other.csv"
    first.write_text("\n".join([HEADER, *PACKETS]))
    second.write_text("\n".join([HEADER, packet(5, 1, 2, 1, 0), "cut"]))
    monkeypatch.setattr(ranges, "RANGE_B", 1200)
    return [first, second]


def in_order(frame, *columns):
    return frame.sort_values(list(columns)).reset_index(drop=True)


def test_rows_and_reasons_equal_those_of_this_process(spark, paths):
    local, on_spark = pipelines.read_log(paths, "mercator"), pipelines.read_log(paths, "mercator", spark=spark)
    order = ["file", "time_s", "receiver", "packet"]
    assert on_spark.rows.rdd.getNumPartitions() > 2
    pd.testing.assert_frame_equal(in_order(on_spark.rows.toPandas(), *order), in_order(local.rows, *order))
    rejected = in_order(on_spark.rejected.toPandas(), "file", "line")
    pd.testing.assert_frame_equal(rejected, in_order(local.rejected, "file", "line"))
    pd.testing.assert_frame_equal(on_spark.reasons().toPandas(), local.reasons())


@pytest.mark.parametrize("table", ["rows", "rejected"])
def test_the_data_source_gives_the_tables_of_read_log(spark, paths, table):
    local = getattr(pipelines.read_log(paths, "mercator"), table)
    reader = spark.read.format("workbench.log").option("format", "mercator").option("table", table)
    frame = reader.option("range_MB", 0.001).load(list(map(str, paths)))
    assert frame.rdd.getNumPartitions() > 2
    order = [name for name in ("file", "line", "time_s", "receiver", "packet") if name in local]
    pd.testing.assert_frame_equal(in_order(frame.toPandas()[list(local)], *order), in_order(local, *order))
    files = reader.load(str(paths[0].parent / "*.csv")).select("file").distinct().toPandas()["file"]
    assert sorted(files) == sorted(map(str, paths))


def test_the_data_source_raises_the_error_of_read_log(spark, paths):
    reader = spark.read.format("workbench.log").option("format", "intel-readings")
    with pytest.raises(Exception, match=r"raw.csv is not in the expected format \(line 1: "):
        reader.load(str(paths[0])).count()


@pytest.mark.family
def test_an_archive_that_is_damaged_after_its_beginning_makes_the_query_fail(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(ranges, "CHECKED_B", 1000)
    for suffix, compress in COMPRESSORS.items():
        path = tmp_path / f"data.txt.{suffix}"
        path.write_bytes(compress(READINGS.encode() * 40)[:-9])
        log = pipelines.read_log(path, "intel-readings", spark=spark)
        with pytest.raises(Exception, match="is cut short; at least its first [0-9,]+ lines are complete"):
            log.rows.count()


@pytest.mark.family
def test_archives_give_the_rows_and_line_numbers_of_plain_logs(spark, tmp_path):
    for name, lines in (("a", [HEADER, *PACKETS]), ("b", PACKETS)):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
        for suffix, compress in COMPRESSORS.items():
            (tmp_path / f"{name}.csv.{suffix}").write_bytes(compress("\n".join(lines).encode()))
    local = pipelines.read_log(f"{tmp_path}/*.csv*", "mercator")
    on_spark = pipelines.read_log(f"{tmp_path}/*.csv*", "mercator", spark=spark)
    assert local.rows["file"].nunique() == 6
    assert local.rejected["line"].tolist() == [13, 14, 15, 19] * 3 + [12, 13, 14, 18] * 3
    order = ["file", "time_s", "receiver", "packet"]
    pd.testing.assert_frame_equal(in_order(on_spark.rows.toPandas(), *order), in_order(local.rows, *order))
    pd.testing.assert_frame_equal(
        in_order(on_spark.rejected.toPandas(), "file", "line"), in_order(local.rejected, "file", "line")
    )


def test_a_task_whose_worker_dies_is_repeated(spark, tmp_path):
    marker = str(tmp_path / "died")

    def die_once(batches):
        import os

        if not os.path.exists(marker):
            open(marker, "w").close()
            os._exit(1)
        yield from batches

    assert spark.range(3).mapInArrow(die_once, "id long").count() == 3
    assert (tmp_path / "died").exists()


def test_masters_on_this_machine_have_the_number_of_tries():
    masters = {name: session._add_tries(name) for name in ("local", "local[3]", "local[*]", "local[2,1]", "sc://a:1")}
    assert list(masters.values()) == ["local[1,4]", "local[3,4]", "local[*,4]", "local[2,1]", "sc://a:1"]


def test_links_equal_those_of_this_process(spark, paths):
    local, on_spark = (
        pipelines.links(pipelines.read_log(paths, "mercator", spark=session), by=("channel",), every_s=60)
        for session in (None, spark)
    )
    pd.testing.assert_frame_equal(on_spark.toPandas(), local)
    assert on_spark._jdf.queryExecution().executedPlan().toString().count("MapInArrow") == 1  # reads the log once
    assert wb.topology.digest(wb.topology.from_links(on_spark)) == wb.topology.digest(wb.topology.from_links(local))


def test_a_format_of_the_user_is_read_by_spark(spark, tmp_path):
    path = tmp_path / "own.log"
    path.write_text("h\n" + "2026-11-22T10:00:00;1;attic;x;5;2\n" * 3 + "x\n")
    log = pipelines.read_log(path, OWN, spark=spark)
    assert log.rows.count() == 3
    reader = spark.read.format("workbench.log").options(format=OWN.to_json(), table="rejected")
    for rejected in (log.rejected, reader.load(str(path))):
        assert rejected.toPandas()["line"].tolist() == [5]


def test_cleaned_readings_equal_those_of_this_process(spark):
    local, on_spark = pipelines.clean(TABLE, RULES), pipelines.clean(spark.createDataFrame(TABLE).coalesce(1), RULES)
    pd.testing.assert_frame_equal(on_spark.rows.toPandas().astype(local.rows.dtypes), local.rows)
    pd.testing.assert_frame_equal(on_spark.left_out.toPandas().astype(local.left_out.dtypes), local.left_out)
    pd.testing.assert_frame_equal(on_spark.counts.toPandas(), local.counts)
    assert wb.replay(on_spark) == wb.replay(local)

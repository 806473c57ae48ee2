"""Links from neighbor reports: the table of Spark equals that of pandas."""

import pandas as pd
import pytest

from tests.pipelines.small_spark import small_spark
from workbench import pipelines
from workbench.cli import doctor
from workbench.errors import DataError

JAVA = doctor.java()
needs_java = pytest.mark.skipif(not JAVA.is_ok, reason=f"Spark needs Java: {JAVA.remedy}")


def neighbor_reports():
    """Return reports of four nodes in 30 rounds; some frames and packets of reports are missing."""
    rows = [
        (60.0 * turn + node, turn, packet, node, source, 100 + turn % 7 + source, 200 + packet, -60 - node)
        for turn in range(30)
        for node in range(4)
        for packet, source in enumerate(other for other in range(4) if (other * 3 + node + turn) % 5 and other != node)
        if (turn + 2 * node + packet) % 11
    ]
    columns = ["time_s", "round", "packet", "node", "source", "lqi", "rssi", "power_dBm"]
    return pd.DataFrame(rows, columns=columns)


def check_links(links, every_s=None, reports=None):
    """Check that a table of links equals that of pandas."""
    expected = pipelines.links_from_neighbors(neighbor_reports() if reports is None else reports, every_s)
    order = [name for name in ("from_s", "transmitter", "receiver") if name in expected]
    assert len(expected) >= 12 and 0 < expected["pdr"].mean() < 1
    pd.testing.assert_frame_equal(
        links.sort_values(order, ignore_index=True), expected.sort_values(order, ignore_index=True)
    )


@pytest.fixture(scope="module")
def spark():
    started = small_spark()
    yield started
    started.stop()


@needs_java
@pytest.mark.spark
def test_links_of_spark_equal_those_of_pandas(spark):
    reports = neighbor_reports()
    for every_s in (None, 450, 1e6):
        check_links(pipelines.links_from_neighbors(spark.createDataFrame(reports), every_s).toPandas(), every_s)
    for without in (["packet"], ["lqi", "power_dBm"]):
        rest = reports.drop(columns=without)
        check_links(pipelines.links_from_neighbors(spark.createDataFrame(rest)).toPandas(), reports=rest)
    with pytest.raises(DataError, match="have no column 'round'.*columns are time_s, packet"):
        pipelines.links_from_neighbors(spark.createDataFrame(reports.drop(columns="round")))
    with pytest.raises(DataError, match="every_s is 0"):
        pipelines.links_from_neighbors(spark.createDataFrame(reports), 0)


def test_a_log_and_parquet_files_are_accepted(tmp_path):
    reports = neighbor_reports()
    reports.to_parquet(tmp_path / "rows.parquet")
    check_links(pipelines.links_from_neighbors(tmp_path / "rows.parquet"))
    check_links(pipelines.links_from_neighbors(pipelines.Log(reports, None)))

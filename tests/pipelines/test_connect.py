"""Pipelines by Spark Connect: the commands of docs/PIPELINES.md, on a server whose workers do not have the package."""

import gzip
import os
import re
import shutil
import signal
import subprocess
import sysconfig
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import workbench as wb
from tests.pipelines.test_live_spark import WINDOWS, readings
from tests.pipelines.test_logs import HEADER, PACKETS
from tests.pipelines.test_neighbors import check_links, neighbor_reports
from tests.pipelines.test_readings import RULES, TABLE
from tests.repository import REPOSITORY
from tests.sweeps.cluster import bin_of_bare_python, environment, free_port, is_listening
from tests.until import wait_until
from workbench import pipelines
from workbench.cli import doctor
from workbench.pipelines import shipping
from workbench.pipelines.live import connect
from workbench.pipelines.live.capture import Capture
from workbench.pipelines.live.windows import window_settings
from workbench.pipelines.logs import ranges
from workbench.pipelines.queries import is_connect
from workbench.sweeps.spark import session

JAVA = doctor.java()
SECTION = (REPOSITORY / "docs" / "PIPELINES.md").read_text(encoding="utf-8").partition("### Spark Connect\n")[2]
COMMANDS = re.search(r"```\n(pip install .*?\n)(.*?)```", SECTION, re.DOTALL)[2]
CODE = re.search(r"```python\n(.*?)```", SECTION, re.DOTALL)[1]
PORT = "15002"


@pytest.fixture
def port(tmp_path):
    """Yield the port of a server that the page's command has started; its workers do not have the package."""
    pytest.importorskip("grpc", reason=session.CONNECT_REMEDY)
    pytest.importorskip("grpc_status", reason=session.CONNECT_REMEDY)
    binaries = bin_of_bare_python(tmp_path, "python")
    path = os.pathsep.join([str(binaries), sysconfig.get_path("scripts"), os.environ["PATH"]])
    env = environment(PATH=path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    port = free_port()
    assert PORT in COMMANDS
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(
            ["sh", "-c", COMMANDS.replace(PORT, str(port))],
            cwd=binaries,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until(lambda: is_listening(port) or server.poll() is not None, 90)
        yield port
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)


def in_order(frame, *columns):
    return frame.sort_values(list(columns)).reset_index(drop=True)


def small_scenario():
    work = [wb.subscribe(0, "TEMP GE 1"), wb.publish(8, "TEMP IS 3", every_s=2)]
    return wb.Scenario(wb.topology.grid(3, 3), wb.Flooding(), work, duration_s=10)


@pytest.mark.spark
@pytest.mark.family
@pytest.mark.skipif(not JAVA.is_ok, reason=f"Spark needs Java: {JAVA.remedy}")
def test_the_commands_of_the_page_give_the_tables_of_this_process(port, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "raw.csv.gz").write_bytes(gzip.compress("\n".join([HEADER, *PACKETS]).encode()))
    names = {"wb": wb}
    exec(CODE.replace(PORT, str(port)), names)
    spark = names["spark"]
    try:
        check_logs(names)
        check_ranges(spark, tmp_path / "raw.csv", monkeypatch)
        check_links(pipelines.links_from_neighbors(spark.createDataFrame(neighbor_reports())).toPandas())
        cleaned, local_cleaned = pipelines.clean(spark.createDataFrame(TABLE), RULES), pipelines.clean(TABLE, RULES)
        pd.testing.assert_frame_equal(cleaned.counts.toPandas(), local_cleaned.counts)
        check_traces(spark)
        check_captures(spark, tmp_path, monkeypatch)
    finally:
        spark.stop()


def check_logs(names):
    """Check the tables that the page's code has computed."""
    local = pipelines.read_log("logs/*.csv.gz", "mercator")
    order = ["time_s", "receiver", "packet"]
    pd.testing.assert_frame_equal(in_order(names["log"].rows.toPandas(), *order), in_order(local.rows, *order))
    pd.testing.assert_frame_equal(in_order(names["log"].rejected.toPandas(), "line"), local.rejected)
    pd.testing.assert_frame_equal(names["links"].toPandas(), pipelines.links(local))
    pd.testing.assert_frame_equal(names["counts"].toPandas(), local.reasons())


def check_ranges(spark, path, monkeypatch):
    """Check the line numbers of a log that is read in several tasks, also by the data source."""
    path.write_text("\n".join([HEADER, *PACKETS]))
    local = pipelines.read_log(path, "mercator")
    monkeypatch.setattr(ranges, "RANGE_B", 300)
    on_spark = pipelines.read_log(path, "mercator", spark=spark)
    pd.testing.assert_frame_equal(in_order(on_spark.rejected.toPandas(), "line"), local.rejected)
    pd.testing.assert_frame_equal(pipelines.links(on_spark).toPandas(), pipelines.links(local))
    reader = spark.read.format("workbench.log").options(format="mercator", table="rejected", range_MB="0.0003")
    rejected = in_order(reader.load(str(path)).toPandas(), "line")
    pd.testing.assert_frame_equal(rejected[list(local.rejected)], local.rejected)


def check_traces(spark):
    """Check that the workers simulate runs, and that the statistics of their traces equal those of this process."""
    on_spark, local = pipelines.traces([small_scenario()], spark=spark), pipelines.traces([small_scenario()])
    for statistic, keys in ((pipelines.load_per_node, ["node"]), (pipelines.paths, ["sender", "receiver"])):
        expected = statistic(local)
        computed = in_order(statistic(on_spark).toPandas(), *keys).astype(expected.dtypes)
        pd.testing.assert_frame_equal(computed, in_order(expected, *keys))


def check_captures(spark, folder, monkeypatch):
    """Check that a capture can be read and followed, and that a follower continues where an earlier one was stopped."""
    pipelines.stream(small_scenario(), out=folder / "capture").wait()
    table = spark.read.format("workbench.readings").load(str(folder / "capture"))
    expected = pipelines.windows(folder / "capture", every_s=5)
    pd.testing.assert_frame_equal(pipelines.windows(table, every_s=5).toPandas(), expected)
    monkeypatch.setattr(connect, "PIECE_B", 1000)  # several tasks for each batch
    with closing(Capture(folder / "growing")) as writer:
        writer.append(readings(0, 150))
        live = pipelines.follow(folder / "growing", spark=spark, **WINDOWS)
        wait_until(lambda: live.readings > 0, 60)
        live.stop()
        writer.append(readings(150, 300))
        writer.end()
    again = pipelines.follow(folder / "growing", spark=spark, **WINDOWS)
    assert again.wait(60)
    pd.testing.assert_frame_equal(again.windows(), pipelines.windows(folder / "growing", **WINDOWS), rtol=1e-12)
    assert again.readings == 300


def test_a_worker_without_the_capture_s_lines_reports_the_folder(tmp_path):
    with pytest.raises(wb.DataError, match=rf"no readings at byte 0 of the capture {tmp_path}; put the folder on"):
        connect._fold_piece(tmp_path, window_settings(3, ("key",), 1), 0, 100)


class UnsuitableSession:
    """A session of Spark Connect whose server has a Python without libraries."""

    __module__ = "pyspark.sql.connect.session"

    def addArtifacts(self, *paths, pyfile):
        assert pyfile and all(Path(path).is_file() for path in paths)

    def range(self, count):
        raise RuntimeError("Traceback:\n  ModuleNotFoundError: No module named 'pyarrow'\n  at org.apache.spark")


def test_a_server_with_an_unsuitable_python_is_reported_with_the_remedy():
    assert is_connect(UnsuitableSession())
    with pytest.raises(
        wb.WorkbenchError, match=r"cannot run pipelines \(.*No module named 'pyarrow'\); .*PYSPARK_PYTHON"
    ):
        shipping.ship(UnsuitableSession())

"""Sweeps by Spark Connect, with a separate server; this process is only its client."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import workbench as wb
from tests.sweeps.cluster import PYTHON, SMALL, bin_of_bare_python, environment, free_port, is_listening
from tests.sweeps.made import harmless, poisoned, scenario
from tests.until import wait_until
from workbench.cli import doctor, spark_doctor
from workbench.locations import location
from workbench.sweeps import LocalRunner, SparkRunner
from workbench.sweeps.spark import session

JAVA = doctor.java()
needs_java = pytest.mark.skipif(not JAVA.is_ok, reason=f"Spark needs Java: {JAVA.remedy}")


@pytest.fixture
def server(tmp_path):
    """Yield the URL of a server of Spark Connect whose workers do not have the package."""
    pytest.importorskip("grpc", reason=session.CONNECT_REMEDY)
    pytest.importorskip("grpc_status", reason=session.CONNECT_REMEDY)
    import pyspark

    path = os.pathsep.join([str(bin_of_bare_python(tmp_path, PYTHON)), os.environ["PATH"]])
    port = free_port()
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.extraJavaOptions": SMALL,
        "spark.ui.enabled": "false",
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]", *options]
    env = environment(PATH=path, PYSPARK_PYTHON=PYTHON, XDG_CACHE_HOME=str(tmp_path / "cache"))
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [submit, *command, "spark-internal"],
            cwd=tmp_path,
            env=env,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until(lambda: is_listening(port) or process.poll() is not None, 90)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)


@needs_java
@pytest.mark.spark
@pytest.mark.family
def test_a_sweep_by_connect_gives_the_same_rows_as_this_process(server):
    for function in (harmless, poisoned):
        wb.register_filter(function.__name__, function)
    over = {name: (wb.Filter(name),) for name in ("harmless", "poisoned")}
    plan = wb.Sweep(scenario(), {"protocol.filters": over, "seed": range(8)}).plan
    runner = SparkRunner(server)
    rows = {row.number: row for some in runner.run(plan, [*range(8), 10], lambda _: None) for row in some}
    local_rows = [row for rows in LocalRunner().run(plan, range(8), lambda _: None) for row in rows]
    assert rows.pop(10).error == "the process that ran this point ended twice (exit status 3)"
    assert {number: repr(row.metrics) for number, row in rows.items()} == {
        row.number: repr(row.metrics) for row in local_rows
    }
    assert {row.code for row in rows.values()} == {row.code for row in local_rows}

    class Stop(Exception):
        pass

    def stop(points):
        raise Stop

    busy = scenario(**{"duration_s": 50_000, "workload.1.every_s": 0.1})
    with pytest.raises(Stop):
        list(runner.run(wb.Sweep(busy, {"seed": range(4)}, "reference").plan, range(4), stop))
    remote = sys.modules["pyspark.sql.connect.session"].SparkSession
    remote.getActiveSession().stop()


@needs_java
@pytest.mark.spark
@pytest.mark.family
def test_the_doctor_finds_a_server_of_connect_ready(server, s3_url, tmp_path):
    report = spark_doctor.examine(server, str(tmp_path / "results"))
    assert report.is_ready, report
    assert str(report).startswith("Ready: 1 worker with 2 cores can run sweeps and write to ")
    assert f"sent, and unpacked in {tmp_path / 'cache' / 'workbench' / 'code'}" in " ".join(str(report).split())
    assert not (tmp_path / "results").exists()
    # The server was started without the variables of the store.
    problems = [check for check in spark_doctor.examine(server, s3_url).checks if check.state == spark_doctor.PROBLEM]
    assert [check.subject for check in problems] == ["results"]
    assert "AWS_ACCESS_KEY_ID" in problems[0].remedy and "in the environment of the workers" in problems[0].remedy
    assert list(location(s3_url).iterdir()) == []


def test_features_missing_in_connect_raise_errors_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql.connect.session", None)
    with pytest.raises(
        wb.WorkbenchError, match=r"Spark Connect needs packages that are missing: pip install .*connect"
    ):
        session.open_session("sc://127.0.0.1:1", {})

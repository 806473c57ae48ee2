"""Pipelines on a cluster of Spark whose second worker does not have the package, and the file that is sent to it."""

import gzip
import os
import subprocess
import sys

import pytest

from tests.pipelines.test_logs import HEADER, PACKETS
from tests.repository import REPOSITORY
from tests.sweeps.cluster import CONFIG, PYTHON, cluster, environment
from workbench.cli import doctor
from workbench.pipelines import shipping

JAVA = doctor.java()
ON_CLUSTER = """
import sys, time
import workbench as wb

url, folder, config = sys.argv[1], sys.argv[2], eval(sys.argv[3])
spark = wb.pipelines.spark(url, **config)
assert not any("shipped-" in path for path in sys.path)
while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # with the driver
    time.sleep(0.2)
log = wb.pipelines.read_log(folder + "/*.gz", "mercator", spark=spark)
scenario = wb.Scenario(
    wb.topology.grid(2, 2), wb.Flooding(), [wb.subscribe(0, "TEMP GE 1"), wb.publish(3, "TEMP IS 3")], duration_s=5
)
traces = wb.pipelines.traces([scenario.replace(seed=seed) for seed in range(4)], spark=spark)
print(log.rows.count(), log.rejected.count(), wb.pipelines.load_per_node(traces).count())
"""
IMPORT = "import workbench, workbench.sweeps.code as c; print(workbench.__file__, len(c.sources('draws')))"


def test_the_sent_file_becomes_the_package(tmp_path):
    """The unpacked package is imported, with its files, although the zip file is on the path."""
    env = environment(PYTHONPATH=str(shipping.shipped_file()), XDG_CACHE_HOME=str(tmp_path / "cache"))
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", IMPORT], cwd=tmp_path, env=env, capture_output=True, text=True)
        path, size_B = done.stdout.split()
        assert path.startswith(str(tmp_path / "cache" / "workbench" / "code")) and path.endswith("__init__.py")
        assert int(size_B) > 1000
    assert len(list((tmp_path / "cache" / "workbench" / "code").iterdir())) == 1


def test_the_package_is_unpacked_beside_the_file_if_the_cache_cannot_be_written(tmp_path):
    (tmp_path / "cache").write_text("not a folder")
    copy = tmp_path / shipping.shipped_file().name
    copy.write_bytes(shipping.shipped_file().read_bytes())
    env = environment(PYTHONPATH=str(copy), XDG_CACHE_HOME=str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, "-c", IMPORT], cwd="/", env=env, capture_output=True, text=True)
    assert done.stdout.startswith(str(tmp_path / "workbench-"))


@pytest.mark.spark
@pytest.mark.family
@pytest.mark.skipif(not JAVA.is_ok, reason=f"Spark needs Java: {JAVA.remedy}")
def test_a_cluster_whose_worker_has_no_package_reads_logs_and_simulates(tmp_path):
    lines = "\n".join([HEADER, *PACKETS]).encode()
    for name in "abcd":
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(lines))
    settings = {name.removeprefix("spark.").replace(".", "_"): value for name, value in CONFIG.items()}
    with cluster(tmp_path) as begun:
        # Spark plans the reading of a data source on the driver's machine, with the workers' Python.
        path = os.pathsep.join([str(tmp_path / "without" / "bin"), os.environ["PATH"]])
        env = environment(PYSPARK_PYTHON=PYTHON, PYTHONPATH=str(REPOSITORY), PATH=path)
        command = [sys.executable, "-c", ON_CLUSTER, begun.url, str(tmp_path), repr(settings)]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["56", "16", "16"], done.stderr
    assert list((tmp_path / "without" / "cache" / "workbench" / "code").glob("workbench-*"))

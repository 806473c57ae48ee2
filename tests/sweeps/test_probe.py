"""The checks that run on a worker of Spark, as plain functions in made-up environments."""

import json
import os
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from workbench.sweeps.spark import probe

GB = 10**9


def test_versions_of_libraries_are_found_and_missing_libraries_are_none(monkeypatch):
    assert probe.library_version("numpy") == metadata.version("numpy")
    assert probe.library_version("no-such-library") is None


def test_a_library_without_metadata_has_the_version_of_its_module(monkeypatch):
    """Spark puts its pyspark on the path of the worker, where another one may be installed."""
    module = type(sys)("pyspark")
    module.__version__ = "4.0.9"
    monkeypatch.setitem(sys.modules, "pyspark", module)
    assert probe.library_version("pyspark") == "4.0.9"


@pytest.fixture
def system(tmp_path):
    """Return a function that writes the files of a system, {path: content}, and returns its root."""

    def write(files):
        for path, content in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content)
        return str(tmp_path)

    return write


MEMINFO = "MemTotal:       16000000 kB\nMemAvailable:    8000000 kB\n"


def test_memory_without_a_container_is_the_available_memory(system):
    files = {"proc/meminfo": MEMINFO, "sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "1000\n"}
    assert probe.read_memory(system(files)) == {"available_B": 8_000_000 * 1024, "limit_B": None}


@pytest.mark.parametrize("group", ["sys/fs/cgroup", "sys/fs/cgroup/pod"])
def test_memory_in_a_container_is_the_unused_part_of_its_limit(system, group):
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/pod/task\n",
        f"{group}/memory.max": f"{2 * GB}\n",
        f"{group}/memory.current": f"{GB}\n",
        f"{group}/memory.stat": f"anon 5\ninactive_file {GB // 2}\n",
    }
    assert probe.read_memory(system(files)) == {"available_B": 1.5 * GB, "limit_B": 2 * GB}


def test_memory_of_a_container_with_the_first_version_of_control_groups(system):
    files = {
        "proc/meminfo": MEMINFO,
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{3 * GB}\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GB}\n",
    }
    assert probe.read_memory(system(files)) == {"available_B": 2 * GB, "limit_B": 3 * GB}


def test_memory_of_another_system_is_unknown(tmp_path):
    assert probe.read_memory(str(tmp_path)) == {"available_B": None, "limit_B": None}


def test_cache_folder_is_not_created_by_its_check(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert probe.check_cache() == {"folder": str(tmp_path / "cache" / "workbench" / "code"), "is_writable": True}
    assert list(tmp_path.iterdir()) == []


def test_cache_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file, since the root user may write every folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert not probe.check_cache()["is_writable"]


def test_cache_folder_of_a_user_without_home(monkeypatch):
    def raise_error():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", raise_error)
    assert not probe.check_cache()["is_writable"]


def test_location_that_is_seen_is_read_and_written_and_left_as_it_was(tmp_path):
    (tmp_path / "probe").write_text("content")
    outcome = probe.try_location(str(tmp_path), "probe", "content")
    assert outcome == {"is_read": True, "is_written": True, "error": ""}
    assert [path.name for path in tmp_path.iterdir()] == ["probe"]


def test_location_that_is_not_seen(tmp_path):
    outcome = probe.try_location(str(tmp_path / "missing"), "probe", "content")
    assert outcome == {"is_read": False, "is_written": False, "error": "No such file or directory"}


def test_folder_of_the_same_name_on_another_machine_is_not_the_drivers(tmp_path):
    (tmp_path / "probe").write_text("other content")
    assert not probe.try_location(str(tmp_path), "probe", "content")["is_read"]
    assert [path.name for path in tmp_path.iterdir()] == ["probe"]


def test_location_that_can_only_be_read(tmp_path, monkeypatch):
    def raise_error(path, content):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "probe").write_text("content")
    monkeypatch.setattr(Path, "write_bytes", raise_error)
    outcome = probe.try_location(str(tmp_path), "probe", "content")
    assert outcome == {"is_read": True, "is_written": False, "error": "Permission denied"}


def test_location_in_an_object_store(memory_url):
    from workbench.locations import location

    place = location(memory_url)
    (place / "probe").write_bytes(b"content")
    assert probe.try_location(memory_url, "probe", "content")["is_written"]
    assert [path.name for path in place.iterdir()] == ["probe"]


def test_location_that_does_not_answer_is_given_up():
    outcome = probe.within(0.05, lambda: time.sleep(1) or {})
    assert outcome == {"is_read": False, "is_written": False, "error": "no answer within 0.05 s"}


def describe(import_package=lambda: "folder", **more):
    values = {"libraries": ["numpy"], "variables": [], "import_package": import_package, "probe": None, "wait_s": 0.0}
    return probe.describe_worker(**values | more)


def test_description_of_a_worker_is_json_and_takes_the_time_of_a_task():
    description = describe(wait_s=0.1)
    assert json.loads(json.dumps(description)) == description
    assert description["ended_s"] - description["began_s"] >= 0.1
    assert description["process"] == os.getppid()
    assert description["package"] == {"folder": "folder", "error": ""} and "location" not in description


def test_package_that_cannot_be_imported_does_not_end_the_task():
    def raise_error():
        raise OSError(28, "No space left on device")

    assert describe(raise_error)["package"] == {"folder": "", "error": "No space left on device"}


def test_a_worker_without_the_endpoint_of_a_store_sends_no_request(monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(probe, "try_location", lambda **_: pytest.fail("a request was sent"))
    description = describe(variables=["AWS_ENDPOINT_URL"], probe={})
    assert description["missing_variables"] == ["AWS_ENDPOINT_URL"]
    assert description["location"] == {"is_read": False, "is_written": False, "error": "AWS_ENDPOINT_URL is not set"}

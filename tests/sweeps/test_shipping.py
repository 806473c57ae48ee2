"""A worker's handling of the package that it receives, without Spark."""

import os
import time
import zipfile
from pathlib import Path

import pytest

from workbench.sweeps.spark import shipping

pyspark = pytest.importorskip("pyspark")
MONTH_S = 31 * 86400


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return the folder where a worker of this user unpacks packages; one package has been sent."""
    with zipfile.ZipFile(tmp_path / "workbench-new.zip", "w") as archive:
        archive.writestr("workbench/__init__.py", "")
    monkeypatch.setattr(pyspark.SparkFiles, "get", lambda name: str(tmp_path / name))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "workbench" / "code"
    folder.mkdir(parents=True)
    return folder


def make_old(folder, name):
    """Create a package that has not been used for a month."""
    (folder / name).mkdir()
    os.utime(folder / name, (time.time() - MONTH_S,) * 2)


def unpack():
    return Path(shipping._make_unpack()("workbench-new.zip"))


def test_a_package_is_unpacked_once_and_found_again(cache):
    folder = unpack()
    assert folder.parent == cache and [path.name for path in folder.rglob("*.py")] == ["__init__.py"]
    (folder / "compiled").touch()
    os.utime(folder, (time.time() - MONTH_S,) * 2)
    assert unpack() == folder and (folder / "compiled").exists()
    assert time.time() - folder.stat().st_mtime < MONTH_S / 2  # each use updates the time of the folder


def test_a_package_unused_for_a_month_is_removed(cache):
    make_old(cache, "workbench-old")
    unpack()
    assert [path.name for path in cache.iterdir()] == ["workbench-new"]


def test_a_package_removed_concurrently_by_another_worker_is_not_an_error(cache, monkeypatch):
    for name in ("workbench-older", "workbench-old"):
        make_old(cache, name)
    look = Path.stat

    def vanishing(path, **options):
        if path.name == "workbench-older":
            raise FileNotFoundError(path)
        return look(path, **options)

    monkeypatch.setattr(Path, "stat", vanishing)
    assert unpack().is_dir()
    monkeypatch.undo()
    assert not (cache / "workbench-old").exists()  # the other packages are checked nevertheless

"""Objects of a store have the methods of paths, conditional writes that are atomic, and errors with a sentence."""

import hashlib
import io
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.locations import ObjectPath, is_url, location, matching, objects, opened, size_B


def test_only_urls_are_objects():
    assert location("results/a") == Path("results/a")
    assert location(Path("a")) == Path("a")
    for place in ("a", "C:\\a", "c://a", Path("a")):
        assert not is_url(place)
    assert is_url("s3://bucket") and is_url(ObjectPath("s3://bucket/a"))


def test_names_of_objects_are_those_of_paths():
    path = location("s3://bucket/results//a/rows.parquet")
    assert str(path) == "s3://bucket/results/a/rows.parquet"
    assert (path.name, str(path.parent), str(path.parent.parent.parent)) == (
        "rows.parquet",
        "s3://bucket/results/a",
        "s3://bucket",
    )
    assert path.with_name("b") == path.parent / "b"
    assert sorted([path, path.parent])[0] == path.parent
    assert len({path, location(str(path))}) == 1


@pytest.mark.parametrize("url", ["s3://", "s3:///a", "gopher://hole/a"])
def test_a_url_that_names_no_store_is_refused_with_a_sentence(url):
    pytest.importorskip("obstore")
    with pytest.raises(wb.DataError, match=r"names no bucket|cannot be used as an object store"):
        (location(url) / "a").exists()


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    with pytest.raises(wb.DataError, match=r"needs obstore: pip install 'sensor-pubsub-workbench\[objects\]'"):
        objects._open_store.__wrapped__("s3://bucket")


@pytest.mark.parametrize("fixture", ["memory_url", "s3_url"])
def test_objects_are_written_listed_read_renamed_and_removed(request, fixture):
    folder = location(request.getfixturevalue(fixture))
    folder.mkdir()
    assert not folder.exists() and list(folder.glob("*")) == []
    (folder / "b.txt").write_bytes(b"old")
    (folder / "b.txt").write_bytes(b"b")
    (folder / "a.json").write_bytes(b"a")
    (folder / "below" / "c.txt").write_bytes(b"c")
    assert [path.name for path in sorted(folder.iterdir())] == ["a.json", "b.txt"]
    assert list(folder.glob("*.txt")) == [folder / "b.txt"]
    assert folder.is_dir() and not folder.is_file() and (folder / "below").exists()
    assert (folder / "b.txt").stat().st_size == 1
    assert (folder / "b.txt").replace(folder / "d.txt").read_bytes() == b"b"
    assert not (folder / "b.txt").exists()
    with pytest.raises(FileNotFoundError):
        (folder / "b.txt").read_bytes()
    with pytest.raises(FileNotFoundError):
        (folder / "b.txt").unlink()
    (folder / "b.txt").unlink(missing_ok=True)
    (folder / "e.bin").send(io.BytesIO(b"1" * 100_000))
    assert size_B(folder / "e.bin") == 100_000 and size_B(folder / "missing") == 0


@pytest.mark.parametrize("fixture", ["memory_url", "s3_url"])
def test_an_open_object_is_read_in_parts(request, fixture):
    folder = location(request.getfixturevalue(fixture))
    content = bytes(range(256)) * 20_000
    (folder / "a").write_bytes(content)
    with (folder / "a").open() as file:
        assert file.read(10) == content[:10]
        assert file.seek(-100, io.SEEK_END) == len(content) - 100
        assert file.read() == content[-100:]
        assert file.read() == b""
        file.seek(0)
        assert hashlib.file_digest(file, "sha256").digest() == hashlib.sha256(content).digest()
    table = pa.table({"number": list(range(1000))})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    (folder / "t.parquet").write_bytes(sink.getvalue())
    assert pq.read_table(opened(folder / "t.parquet")).equals(table)
    with pytest.raises(ValueError, match="only be opened for reading"):
        (folder / "a").open("wb")


@pytest.mark.parametrize("fixture", ["memory_url", "s3_url"])
def test_of_many_threads_that_create_an_object_one_succeeds(request, fixture):
    folder = location(request.getfixturevalue(fixture))
    folder.exists()  # all threads use one connection
    created = []

    def create(thread):
        created.extend(number for number in range(10) if (folder / str(number)).create(b"%d" % thread))

    threads = [threading.Thread(target=create, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(created) == list(range(10))


@pytest.mark.parametrize("fixture", ["memory_url", "s3_url"])
def test_an_object_is_replaced_only_if_it_has_not_changed(request, fixture):
    path = location(request.getfixturevalue(fixture)) / "a"
    first = path.create(b"1")
    second = path.replace_version(b"2", first)
    assert second and path.replace_version(b"3", first) is None
    assert path.read_version() == (b"2", second)
    path.unlink()
    assert path.replace_version(b"3", second) is None


def test_an_unreachable_store_is_an_error_of_one_line(s3_url, monkeypatch):
    objects._open_store.cache_clear()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(objects, "_RETRIES", {"max_retries": 0})
    with pytest.raises(OSError) as error:
        (location(s3_url) / "a").read_bytes()
    assert error.value.strerror and "\n" not in error.value.strerror


def test_a_pattern_has_the_names_that_match_its_last_part(memory_url):
    folder = location(memory_url)
    for name in ("b.gz", "a.gz", "c.txt"):
        (folder / name).write_bytes(b"")
    assert matching(f"{memory_url}/*.gz") == [f"{memory_url}/a.gz", f"{memory_url}/b.gz"]
    assert matching(f"{memory_url}/c.txt") == [f"{memory_url}/c.txt"]
    with pytest.raises(wb.DataError, match="no file matches"):
        matching(f"{memory_url}/*.zst")
    with pytest.raises(wb.DataError, match="has a wildcard before its last '/'"):
        matching("memory://bucket/*/a.gz")


@pytest.mark.parametrize(
    "call",
    [
        lambda url: wb.pipelines.stream(wb.pipelines.Inbox(), out=url),
        lambda url: wb.pipelines.follow(url),
        lambda url: wb.Scenario(wb.topology.line(2), wb.Flooding(), duration_s=1).run().save(url),
        lambda url: wb.reproduce(url),
        lambda url: wb.open_scenario(url),
        lambda url: wb.pipelines.load_per_node(url),
    ],
)
def test_a_url_is_refused_with_a_sentence_where_only_a_folder_is_possible(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(wb.DataError, match="s3://bucket/a', a URL; (it must be a path on this machine|read it first)"):
        call("s3://bucket/a")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_bucket_is_named_with_a_remedy(s3_url):
    sweep = wb.Sweep(wb.Scenario(wb.topology.line(2), wb.Flooding(), duration_s=1), {"seed": [1]})
    with pytest.raises(wb.DataError, match="s3://missing-bucket/a cannot be (read|written): the bucket does not exist"):
        sweep.run(out="s3://missing-bucket/a", progress=False)

"""The folder of windows: few files, bounded memory, and nothing lost or repeated if a follower is killed."""

import contextlib
import json
import os
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.families import examples
from tests.until import wait_until
from workbench.errors import DataError, ParameterError
from workbench.pipelines import Reading, follow, windows
from workbench.pipelines.live import following, output
from workbench.pipelines.live.capture import Capture
from workbench.pipelines.live.output import STATE, TOTALS, Output, Totals
from workbench.pipelines.live.windows import window_settings
from workbench.sweeps.store import files

WINDOWS = {"every_s": 1, "late_s": 2}
SETTINGS = window_settings(1, ("region", "key"), 2)


class KilledError(BaseException):
    """Stands for a kill: the program executes nothing of its own after it, except the release of the lock."""


def readings(seconds, begin=0):
    """Yield five readings a second of two regions; every seventh one is late."""
    for i in range(begin * 5, seconds * 5):
        time_s = i / 5 - 4 * (i % 7 == 3) * (i > 40)
        yield Reading(time_s, i % 3, "TEMP", i / 7, "AB"[i % 2], 0, i)


def write_capture(folder, seconds, is_over=True):
    """Write a capture, with or without an end."""
    writer = Capture(folder)
    writer.append(readings(seconds))
    if is_over:
        writer.end()
    writer.close()
    return folder


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Return the folder of a capture of 20 s that has ended."""
    return write_capture(tmp_path_factory.mktemp("live") / "capture", 20)


@pytest.fixture
def small(monkeypatch):
    """Make followers write after each batch of some lines, into parts of at least five windows."""
    monkeypatch.setattr(following, "READ_B", 500)
    monkeypatch.setattr(following, "WRITE_PAUSE", 0)
    monkeypatch.setattr(output, "PART_ROWS", 5)


def make_windows(begin, end):
    """Return a table of windows, one for each second in [begin, end)."""
    if begin == end:
        return SETTINGS.schema.empty_table()
    rows = [(float(i), i + 1.0, "A", "TEMP", 2, i / 7, 0.0, 1.0, i % 2) for i in range(begin, end)]
    return pa.Table.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=SETTINGS.schema)


def read_folder(folder):
    """Return the windows of a folder as other programs read it: all Parquet files, in the order of their names."""
    paths = sorted(folder.glob("part-*.parquet"))
    return pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True) if paths else pd.DataFrame()


def assert_begins(table, whole):
    """Check that a table consists of the first rows of the whole table."""
    if len(table):
        pd.testing.assert_frame_equal(table, whole.iloc[: len(table)], rtol=1e-12)


# Parts


@settings(max_examples=examples(20))
@given(st.lists(st.integers(0, 12), max_size=12), st.integers(1, 20))
def test_windows_added_in_any_portions_are_each_stored_once_in_few_files(tmp_path_factory, portions, part_rows):
    folder = tmp_path_factory.mktemp("windows")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "PART_ROWS", part_rows)
        end = 0
        for portion in portions:
            end += portion
            # Each portion is added by a new follower.
            folder_output = Output(folder, SETTINGS, {})
            folder_output.append_rows([tuple(row.values()) for row in make_windows(end - portion, end).to_pylist()])
        folder_output = Output(folder, SETTINGS, {})
    assert folder_output.windows().equals(make_windows(0, end))
    assert folder_output.parts <= end // part_rows + 1
    late = sum(i % 2 for i in range(end))
    assert folder_output.totals[:3] == (end, 2 * end + late, late)


def test_windows_that_are_closed_one_by_one_are_in_a_few_files(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "PART_ROWS", 100)
    monkeypatch.setattr(os, "fsync", lambda file: None)
    folder_output = Output(tmp_path, SETTINGS, {})
    for i in range(364):
        folder_output.append(make_windows(i, i + 1))
    assert [len(pd.read_parquet(path)) for path in sorted(tmp_path.glob("*.parquet"))] == [100, 100, 100, 64]


def test_a_repeated_batch_of_spark_is_not_added_again(tmp_path):
    Output(tmp_path, SETTINGS, {}).append(make_windows(0, 3), batch=0)
    again = Output(tmp_path, SETTINGS, {})
    again.append(make_windows(0, 3), batch=0)
    again.append(make_windows(3, 5), batch=4)
    again.append(make_windows(3, 5), batch=4)
    assert Output(tmp_path, SETTINGS, {}).windows().equals(make_windows(0, 5))
    assert again.totals == Totals(5, 12, 2, 4)
    again.clear()
    assert again.totals == Totals() and again.parts == 0


def test_only_the_parts_of_the_newest_windows_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "PART_ROWS", 10)
    folder_output = Output(tmp_path, SETTINGS, {})
    for begin in range(0, 100, 10):
        folder_output.append(make_windows(begin, begin + 10))
    for path in sorted(tmp_path.glob("part-*.parquet"))[:8]:
        path.unlink()
    assert folder_output.windows(last_s=15).equals(make_windows(85, 100))
    assert folder_output.windows(last_s=10).equals(make_windows(90, 100))
    assert Output(tmp_path, SETTINGS, {}).totals.windows == 100  # Old parts may be moved elsewhere.


def test_impossible_settings_of_the_newest_windows_are_refused_in_a_sentence(ended, tmp_path):
    live = follow(ended, out=tmp_path, **WINDOWS)
    live.wait()
    assert live.windows(last_s=1)["start_s"].unique().tolist() == [19.0]
    with pytest.raises(ParameterError, match="last_s is 0; it must be a number of seconds above 0"):
        live.windows(last_s=0)


def test_a_damaged_last_part_and_a_missing_one_are_reported_in_a_sentence(ended, tmp_path):
    follow(ended, out=tmp_path, **WINDOWS).wait()
    (part,) = tmp_path.glob("part-*.parquet")
    content = part.read_bytes()
    part.write_bytes(content[: len(content) // 2])
    with pytest.raises(
        DataError,
        match=r"part-000000000\.parquet has windows of an earlier start and cannot be read: .*; use another folder",
    ):
        follow(ended, out=tmp_path, **WINDOWS)
    part.unlink()
    with pytest.raises(DataError, match=r"lacks 40 windows that its file _state\.json counts; use another folder"):
        follow(ended, out=tmp_path, **WINDOWS)


# Kills


def fail_at(patch, number, calls):
    """Raise KilledError at the file operation ``number``, counted from 0; append the name of each operation to calls.

    The operations are: open a draft, write half of it, flush it, rename it, return from the renaming.
    """

    def step(name):
        calls.append(name)
        if len(calls) == number + 1:
            raise KilledError(name)

    def write_to_disk(path, content):
        step("open")
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
            step("write")
            file.write(content[len(content) // 2 :])
        step("flush")

    replace = Path.replace

    def rename(self, target):
        step("rename")
        path = replace(self, target)
        step("return")
        return path

    patch.setattr(files, "_write_to_disk", write_to_disk)
    patch.setattr(Path, "replace", rename)


def test_a_follower_that_is_killed_at_any_file_operation_loses_and_repeats_no_window(tmp_path, small):
    ended = write_capture(tmp_path / "capture", 10)
    whole, number, calls = windows(ended, **WINDOWS), 0, []
    while number <= len(calls):
        folder, calls = tmp_path / str(number), []
        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, number, calls)
            try:
                killed = follow(ended, out=folder, **WINDOWS)
                killed.wait()
            except KilledError:
                pass
        assert_begins(read_folder(folder), whole)
        again = follow(ended, out=folder, **WINDOWS)
        again.wait()
        pd.testing.assert_frame_equal(again.windows(), whole, rtol=1e-12)
        assert (again.readings, again.late) == (50, whole["late"].sum())
        number += 1
    assert number > 50 and again.parts > 2


@pytest.mark.family
@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(200, 3000)), max_size=6))
def test_windows_only_grow_in_number_however_often_a_follower_is_killed(ended, tmp_path_factory, kills):
    folder, whole, count = tmp_path_factory.mktemp("windows"), windows(ended, **WINDOWS), 0
    with pytest.MonkeyPatch.context() as outer:
        outer.setattr(following, "WRITE_PAUSE", 0)
        outer.setattr(output, "PART_ROWS", 5)
        for number, read_B in [*kills, (10**9, 500)]:
            outer.setattr(following, "READ_B", read_B)
            with pytest.MonkeyPatch.context() as patch:
                fail_at(patch, number, [])
                with contextlib.suppress(KilledError):
                    follow(ended, out=folder, **WINDOWS).wait()
            table = read_folder(folder)
            assert len(table) >= count
            assert_begins(table, whole)
            count = len(table)
    assert count == len(whole)


def test_programs_that_read_the_folder_meanwhile_find_the_first_windows_without_gaps(tmp_path, small):
    capture = write_capture(tmp_path / "capture", 60)
    whole, tables, is_over = windows(capture, **WINDOWS), [], threading.Event()

    def read():
        while not is_over.is_set():
            tables.append(pd.read_parquet(tmp_path / "out"))

    live = follow(capture, out=tmp_path / "out", **WINDOWS)
    wait_until(lambda: live.parts)
    thread = threading.Thread(target=read)
    thread.start()
    live.wait()
    is_over.set()
    thread.join()
    assert tables
    for table in tables:
        assert_begins(table, whole)
    counts = [len(table) for table in tables]
    assert counts == sorted(counts)
    assert_begins(live.windows(), whole)


# Earlier versions


@pytest.mark.parametrize("was_killed", [False, True])
def test_a_folder_of_an_earlier_version_is_continued(tmp_path, small, was_killed):
    capture, out = write_capture(tmp_path / "capture", 12, is_over=False), tmp_path / "out"
    with follow(capture, out=out, **WINDOWS) as live:
        wait_until(lambda: live.readings > 30)
    state = json.loads((out / STATE).read_text())
    table = live.windows()
    for path in out.glob("part-*"):
        path.unlink()
    # Earlier versions had a part for each batch, without totals; the windows of a batch on Spark were not sorted.
    for number, begin in enumerate(range(0, len(table), 2)):
        part = pa.Table.from_pandas(table.iloc[begin : begin + 2][::-1], SETTINGS.schema, preserve_index=False)
        pq.write_table(part.replace_schema_metadata(None), out / f"part-{number:09d}.parquet")
    part_count = len(list(out.glob("part-*")))
    del state["windows"]
    (out / STATE).write_text(json.dumps(state | {"part": part_count}))
    if was_killed:  # The last part was written, and the state was not.
        state = {"offset": 0, "part": 0, "damaged": 0, "fold": {"newest_us": 0, "open": []}}
        (out / STATE).write_text(json.dumps(state))
    writer = Capture(capture)
    writer.append(readings(20, begin=12))
    writer.end()
    writer.close()
    again = follow(capture, out=out, **WINDOWS)
    again.wait()
    whole = windows(capture, **WINDOWS)
    pd.testing.assert_frame_equal(again.windows(), whole, rtol=1e-12)
    assert (again.readings, again.late) == (100, whole["late"].sum())
    assert TOTALS in pq.read_schema(max(out.glob("part-*"))).metadata


# Memory and late readings


def test_the_memory_of_a_follower_does_not_grow_with_the_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "PART_ROWS", 100)
    monkeypatch.setattr(following, "READ_B", 5000)
    live = follow(write_capture(tmp_path / "capture", 2000), out=tmp_path / "out", **WINDOWS)
    live.wait()
    assert len(live.windows()) == 4000
    rows_in_memory = len(live._output._last_part) + len(live._closed_windows) + len(live._fold.state()["open"])
    assert rows_in_memory < 300
    assert live.parts <= 40


def test_late_readings_are_counted_while_the_follower_runs_and_after_a_restart(tmp_path):
    capture = write_capture(tmp_path / "capture", 30, is_over=False)
    whole = windows(capture, **WINDOWS)
    closed = whole[whole["end_s"] <= 29.8 - 2]
    with follow(capture, **WINDOWS) as live:
        wait_until(lambda: live.readings == closed["count"].sum() + closed["late"].sum())
        assert live.late == closed["late"].sum() > 10
        assert f"{len(closed)} windows of {live.readings} readings, {live.late} late, running" in repr(live)
    with follow(capture, **WINDOWS) as again:
        assert (again.readings, again.late) == (live.readings, live.late)


def test_a_chart_reads_older_windows_only_for_a_key_that_the_newest_windows_lack(tmp_path):
    writer = Capture(tmp_path)
    keys = ["RAIN", *["TEMP"] * 500]
    writer.append(Reading(float(i), 1, key, 20.0, "A") for i, key in enumerate(keys))
    writer.end()
    writer.close()
    live = follow(tmp_path, **WINDOWS)
    live.wait()
    assert "windows of 1 s with 501 readings, 0 of them late; has ended" in live.plot().to_svg()
    assert "mean TEMP" in live.plot().to_svg()
    assert "mean RAIN" in live.plot(key="RAIN").to_svg()
    with pytest.raises(ParameterError, match="it must be one of the keys in the windows: RAIN, TEMP"):
        live.plot(key="WIND")

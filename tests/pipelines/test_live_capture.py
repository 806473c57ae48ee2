"""The capture: written readings are read back, even after its writer was killed, and sources are captured."""

import os
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import workbench as wb
from tests.pipelines.killed import SCENARIO
from tests.repository import REPOSITORY
from tests.until import wait_until
from workbench.errors import DataError, ParameterError, ScenarioError
from workbench.pipelines import Inbox, Reading, captured, stream
from workbench.pipelines.live import capture, sources
from workbench.pipelines.live.capture import Capture

READINGS = [Reading(float(i), i % 3, "TEMP", i / 7, "A1", 0, i, i + 0.5) for i in range(100)]


def write_capture(folder, readings=READINGS, **settings):
    """Write readings into a capture without an end; return the paths of its segments."""
    writer = Capture(folder, **settings)
    writer.append(readings)
    writer.close()
    return sorted(folder.glob("*.jsonl"))


def content(folder):
    """Return all bytes of a capture."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.jsonl")))


def count_kills(program, *folders):
    """Run the ``program`` of tests/pipelines/killed.py; return the number of processes killed before its end."""
    command = [sys.executable, "-m", "tests.pipelines.killed", program, *map(str, folders)]
    process = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    return int(process.stdout)


# Writing and reading


def test_written_readings_are_read_from_any_offset(tmp_path):
    writer = Capture(tmp_path, segment_B=700)
    offsets = []
    for reading in READINGS:
        offsets.append(writer.size_B)
        writer.append([reading])
    writer.close()
    assert len(capture.segments(tmp_path)) > 5
    table = captured(tmp_path)
    assert table.column("sequence").to_pylist() == list(range(100))
    assert table.column("arrived_s").to_pylist() == [i + 0.5 for i in range(100)]
    assert table.column("value").to_pylist() == [i / 7 for i in range(100)]
    for i in (0, 1, 50, 99):
        assert capture.read(tmp_path, offsets[i]).rows[0][7] == i


def test_a_continued_capture_continues_the_newest_time_so_far(tmp_path):
    times = [3.0, 1.0, 5.0, 4.0]
    for time_s in times:
        write_capture(tmp_path, [Reading(time_s, 1, "TEMP", 0.0)])
    assert captured(tmp_path).column("newest_s").to_pylist() == [3.0, 3.0, 5.0, 5.0]


@pytest.mark.parametrize("torn_B", [1, 10, 1000])
def test_an_incomplete_last_line_is_not_read_and_is_removed_by_the_next_writer(tmp_path, torn_B):
    path = write_capture(tmp_path, READINGS[:50])[0]
    with path.open("ab") as file:
        file.write((b'[50.0,50.5,2,0,"A1' + b"x" * 1000)[:torn_B])
    assert len(captured(tmp_path)) == 50
    write_capture(tmp_path, READINGS[50:])
    assert captured(tmp_path).column("sequence").to_pylist() == list(range(100))


def test_an_incomplete_first_line_leaves_an_empty_capture(tmp_path):
    path = write_capture(tmp_path)[0]
    os.truncate(path, 20)
    assert len(captured(tmp_path)) == 0
    write_capture(tmp_path)
    assert len(captured(tmp_path)) == 100


def test_a_damaged_line_is_counted_and_the_others_are_read(tmp_path):
    path = write_capture(tmp_path)[0]
    path.write_bytes(path.read_bytes().replace(b"[7.0,", b"[9.0,"))
    chunk = capture.read(tmp_path, 0)
    assert len(chunk.rows) == 99
    assert chunk.damaged == 1


@given(st.binary(max_size=200))
@example(b",0]\n")
@example(b"7,1330857165]\n[7]\n")
def test_every_line_of_random_bytes_is_a_row_or_damaged(noise):
    rows, damaged = capture.parse_lines(noise)
    assert len(rows) + damaged == noise.count(b"\n")


def test_pieces_end_with_lines_and_cover_the_capture(tmp_path):
    write_capture(tmp_path, segment_B=2000)
    pieces = capture.split_into_pieces(tmp_path, 0, None, 300)
    end = len(content(tmp_path))
    assert [start for start, _ in pieces] == [0, *[end for _, end in pieces[:-1]]]
    assert pieces[-1][1] == end
    rows = [row for start, stop in pieces for row in capture.read(tmp_path, start, stop - start).rows]
    assert [row[7] for row in rows] == list(range(100))
    assert capture.split_into_pieces(tmp_path, 0, 1000, 300)[-1][1] <= 1000


def test_a_capture_without_the_requested_bytes_has_no_pieces(tmp_path):
    writer = Capture(tmp_path)
    writer.append([Reading(1, 1, "TEMP", 20.0)])
    size_B = writer.size_B
    writer.close()
    assert capture.size_B(tmp_path) == size_B
    for offset in (size_B, size_B + 10):
        assert capture.split_into_pieces(tmp_path, offset, None, 100) == []
    for segment in capture.segments(tmp_path):
        segment.path.unlink()
    assert capture.size_B(tmp_path) == 0 and capture.split_into_pieces(tmp_path, 0, None, 100) == []


@pytest.mark.parametrize(("changes", "why"), [
    ({"value": float("nan")}, "value is not a finite number"),
    ({"value": "21"}, "value is not a finite number"),
    ({"value": 10**400}, "value is not a finite number"),
    ({"time_s": -1.0}, "invalid time"),
    ({"time_s": float("inf")}, "invalid time"),
    ({"node": 1.5}, "node, sink or sequence is not an integer"),
    ({"node": True}, "node, sink or sequence is not an integer"),
    ({"key": ""}, "key or region is not a valid text"),
    ({"region": "A" * 1001}, "key or region is not a valid text"),
    ({"region": "house/\udcff"}, "key or region is not a valid text"),
])  # fmt: skip
def test_invalid_readings_are_counted_with_their_reason(tmp_path, changes, why):
    writer = Capture(tmp_path)
    assert writer.append([READINGS[0], READINGS[1]._replace(**changes), READINGS[2]]) == 2
    writer.close()
    assert writer.refused == {why: 1}
    assert captured(tmp_path).column("sequence").to_pylist() == [0, 2]


def test_a_capture_has_one_writer_and_one_source(tmp_path):
    writer = Capture(tmp_path, {"of": "this"})
    with pytest.raises(DataError, match="is in use: process"):
        Capture(tmp_path, {"of": "this"})
    writer.close()
    with pytest.raises(DataError, match="has a capture of another source"):
        Capture(tmp_path, {"of": "that"})
    writer = Capture(tmp_path, {"of": "this"})
    writer.end()
    writer.close()
    with pytest.raises(DataError, match="has a capture that has ended"):
        Capture(tmp_path, {"of": "this"})


def test_invalid_capture_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(DataError, match="has no capture"):
        captured(tmp_path)
    (tmp_path / "capture.json").write_text('{"format": "workbench-capture", "version": 2}')
    with pytest.raises(DataError, match="does not describe a capture of version 1"):
        captured(tmp_path)


# Sources


def test_a_simulation_and_a_replay_of_its_run_are_captured_alike(tmp_path):
    stream(SCENARIO, tmp_path / "simulated").wait()
    run = SCENARIO.run()
    run.stream(tmp_path / "replayed").wait()
    assert content(tmp_path / "simulated") == content(tmp_path / "replayed")
    again = run.stream(tmp_path / "simulated")  # The capture is complete and stays unchanged.
    assert again.wait() and again.rows == 270
    assert content(tmp_path / "simulated") == content(tmp_path / "replayed")
    table = captured(tmp_path / "simulated").to_pandas()
    assert len(table) == run.metrics["delivered"]
    latency_ms = (table["arrived_s"] - table["time_s"]).median() * 1000
    assert latency_ms == pytest.approx(run.metrics["latency_ms_p50"], rel=0.05)
    assert set(zip(table["node"], table["region"], strict=True)) == set(wb.pipelines.regions(SCENARIO.topology).items())
    assert not table.duplicated(["node", "sequence", "key"]).any()


def test_a_bridge_that_is_killed_and_restarted_leaves_neither_gaps_nor_duplicates(tmp_path):
    assert count_kills("bridge", tmp_path / "killed") >= 5
    stream(SCENARIO, tmp_path / "whole").wait()
    assert content(tmp_path / "killed") == content(tmp_path / "whole")


def test_a_stream_at_a_pace_is_stopped_in_the_middle(tmp_path):
    with stream(SCENARIO, tmp_path, pace=10) as running_stream:
        wait_until(lambda: running_stream.rows > 5)
        assert "running" in repr(running_stream)
    assert 5 < running_stream.rows < 9 * 30
    assert len(captured(tmp_path)) == running_stream.rows
    assert running_stream.wait()
    with pytest.raises(DataError, match="has a capture that has ended"):
        stream(SCENARIO, tmp_path)


class Clock:
    """A clock that advances only while a stream waits; it replaces the module `time`."""

    def __init__(self):
        self.now_s = 0.0

    def perf_counter(self):
        return self.now_s

    def sleep(self, seconds):
        self.now_s += seconds


@pytest.mark.parametrize("source", ["scenario", "run"])
def test_a_stream_at_a_pace_that_is_continued_does_not_wait_through_its_history(tmp_path, monkeypatch, source):
    with pytest.raises(DataError, match="has reached its limit"):
        stream(SCENARIO, tmp_path / "paced", most_MB=0.01).wait()
    last_s = captured(tmp_path / "paced").column("arrived_s").to_pylist()[-1]
    assert 10 < last_s < 25
    clock = Clock()
    monkeypatch.setattr(sources, "time", clock)
    stream(SCENARIO if source == "scenario" else SCENARIO.run(), tmp_path / "paced", pace=0.5).wait()
    assert clock.now_s == pytest.approx((30 - last_s) / 0.5, abs=0.3)
    stream(SCENARIO, tmp_path / "whole").wait()
    assert content(tmp_path / "paced") == content(tmp_path / "whole")


def test_the_limit_of_size_ends_a_stream_with_a_sentence_and_it_can_be_continued(tmp_path):
    full = stream(SCENARIO, tmp_path, most_MB=0.002)
    with pytest.raises(DataError, match=r"has reached its limit of 0\.002 MB"):
        full.wait()
    assert 0 < len(captured(tmp_path)) < 9 * 30
    assert "ended early" in repr(full)
    stream(SCENARIO, tmp_path).wait()
    assert len(captured(tmp_path)) == 9 * 30


def test_a_full_inbox_drops_the_oldest_readings_and_counts_them(tmp_path):
    inbox = Inbox(most=10)
    for reading in READINGS:
        inbox.put(reading)
    inbox.close()
    with pytest.raises(DataError, match="the inbox is closed"):
        inbox.put(READINGS[0])
    running_stream = stream(inbox, tmp_path)
    assert running_stream.wait()
    assert running_stream.lost == 90
    assert captured(tmp_path).column("sequence").to_pylist() == list(range(90, 100))
    assert "10 readings, 90 lost, has ended" in repr(running_stream)


def test_regions_are_cells_of_a_grid_or_names_that_the_user_gives(tmp_path):
    grid = wb.topology.grid(2, 4)
    assert wb.pipelines.regions(grid, columns=4, rows=1) == {node: "ABCD"[node % 4] + "1" for node in range(8)}
    assert wb.pipelines.regions(wb.topology.line(1)) == {0: "A1"}
    stream(SCENARIO, tmp_path, regions={0: "here", 1: "there"}).wait()
    named = set(captured(tmp_path).select(["node", "region"]).to_pandas().itertuples(index=False, name=None))
    assert named == {(0, "here"), (1, "there"), *((node, "") for node in range(2, 9))}


@pytest.mark.parametrize(("source", "settings", "sentence"), [
    (7, {}, "7 cannot be streamed; the source must be a scenario"),
    (SCENARIO, {"pace": 0}, "`pace` is 0"),
    (SCENARIO, {"regions": "north"}, "`regions` is 'north'"),
    (SCENARIO, {"regions": (0, 2)}, "columns is 0"),
    (Inbox(), {"pace": 2}, "`pace` and `regions` apply only to scenarios and runs"),
])  # fmt: skip
def test_impossible_sources_and_settings_are_refused_in_a_sentence(tmp_path, source, settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        stream(source, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_a_run_without_a_trace_is_refused_at_once(tmp_path):
    with pytest.raises(ScenarioError, match="this run has no trace"):
        SCENARIO.run(record="metrics").stream(tmp_path / "out")


def test_a_captured_table_has_the_documented_columns(tmp_path):
    write_capture(tmp_path)
    assert captured(tmp_path).schema == pa.schema(capture.SCHEMA)

"""Windows computed line by line equal those of the whole table, with the same late readings, even after kills."""

import base64
import os
import re
from itertools import accumulate

import nbformat
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.jupyter import execute
from tests.pipelines.killed import SCENARIO, WINDOWS
from tests.pipelines.test_live_capture import count_kills
from tests.until import wait_until
from workbench import views
from workbench.errors import DataError, ParameterError
from workbench.pipelines import Inbox, Reading, captured, follow, stream, windows
from workbench.pipelines.live import capture
from workbench.pipelines.live.capture import Capture
from workbench.pipelines.live.readings import to_table
from workbench.pipelines.live.windows import Fold, window_settings

COLUMNS = ["start_s", "end_s", "region", "key", "count", "mean", "min", "max", "late"]


def rows_of(readings):
    """Return rows of a capture from readings (time_s, value) or (time_s, value, region)."""
    completed = [(*reading, "A1")[:3] for reading in readings]
    newest = accumulate((reading[0] for reading in completed), max)
    return [
        [time_s, time_s, 1, 0, region, "TEMP", value, i, newest_s]
        for i, ((time_s, value, region), newest_s) in enumerate(zip(completed, newest, strict=True))
    ]


def windows_in_pieces(rows, cuts=(), merged=False, **wanted):
    """Return the windows of rows that arrive in pieces; for each piece the fold is restored from its state.

    With ``merged``, each piece is computed by a fold of its own, and the folds are merged.
    """
    fold = Fold(window_settings(by=("region", "key"), **wanted))
    closed, begin = [], 0
    for end in [*sorted(cuts), len(rows)]:
        piece_fold = Fold(fold.settings) if merged else fold
        piece_fold.add(rows[begin:end])
        if merged:
            fold.merge(piece_fold.state())
        closed += fold.close()
        state, begin = fold.state(), max(begin, end)
        fold = Fold(fold.settings)
        fold.restore(state)
    closed += fold.close(is_over=True)
    return pd.DataFrame(sorted(closed), columns=COLUMNS).astype({"mean": float, "min": float, "max": float})


# The windows


def test_windows_by_hand():
    rows = rows_of([(0.0, 20.0), (9.999999, 22.0), (10.0, 30.0), (25.0, 1.0), (12.0, 40.0), (8.0, 9.0), (3.0, 9.0)])
    # At 25 s, with 5.1 s for late readings: the window up to 20 s is still open, the window up to 10 s is closed.
    expected = pd.DataFrame(
        [
            (0.0, 10.0, "A1", "TEMP", 2, 21.0, 20.0, 22.0, 0),
            (10.0, 20.0, "A1", "TEMP", 2, 35.0, 30.0, 40.0, 0),
            (20.0, 30.0, "A1", "TEMP", 1, 1.0, 1.0, 1.0, 2),
        ],
        columns=COLUMNS,
    )
    actual = windows(to_table(rows), every_s=10, late_s=5.1)
    pd.testing.assert_frame_equal(actual, expected)
    pd.testing.assert_frame_equal(windows_in_pieces(rows, every_s=10, late_s=5.1), expected)
    # A window that ended exactly late_s ago is closed.
    assert windows(to_table(rows), every_s=10, late_s=5)["late"].tolist() == [0, 0, 3]


@settings(max_examples=20)
@given(
    readings=st.lists(
        st.tuples(
            st.integers(0, 4000).map(lambda n: n / 10) | st.floats(0, 400).map(lambda t: round(t, 6)),
            st.floats(-100, 100),
            st.sampled_from(["A1", "B2", ""]),
        ),
        min_size=1,
        max_size=60,
    ),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    every_s=st.sampled_from([0.1, 7.0, 60.0]),
    late_s=st.sampled_from([0.0, 0.3, 30.0]),
)
def test_windows_line_by_line_equal_those_of_the_whole_table(readings, cuts, every_s, late_s):
    rows = rows_of(readings)
    expected = windows(to_table(rows), every_s=every_s, late_s=late_s)
    in_pieces = windows_in_pieces(rows, cuts, every_s=every_s, late_s=late_s)
    pd.testing.assert_frame_equal(in_pieces, expected, rtol=1e-12, atol=1e-9)
    pd.testing.assert_frame_equal(in_pieces, windows_in_pieces(rows, every_s=every_s, late_s=late_s))
    merged = windows_in_pieces(rows, cuts, merged=True, every_s=every_s, late_s=late_s)
    pd.testing.assert_frame_equal(merged, expected, rtol=1e-12, atol=1e-9)
    assert expected["count"].sum() + expected["late"].sum() == len(rows)


def test_the_newest_time_of_a_frame_follows_the_order_of_arrival():
    frame = pd.DataFrame({"time_s": [1.0, 50.0, 2.0], "arrived_s": [1.5, 52.0, 51.0], "value": 1.0, "key": "TEMP"})
    assert windows(frame, every_s=10, by="key", late_s=5)["late"].sum() == 0
    frame["arrived_s"] = [1.5, 51.0, 52.0]
    assert windows(frame, every_s=10, by="key", late_s=5)["late"].sum() == 1
    assert windows(frame.drop(columns="arrived_s"), every_s=10, by=(), late_s=5)["late"].sum() == 0


def test_missing_values_are_not_counted_in_windows(tmp_path):
    frame = pd.DataFrame({"time_s": [1.0, 2.0, 3.0], "value": [1.0, float("nan"), None], "key": "TEMP"})
    frame.to_parquet(tmp_path / "readings.parquet")
    for table in (frame, tmp_path / "readings.parquet"):
        assert windows(table, by="key")["count"].tolist() == [1]


def test_windows_of_another_column():
    frame = pd.DataFrame({"time_s": [0.0, 5.0, 12.0], "node": [1, 1, 2], "temperature_C": [20.0, 22.0, 30.0]})
    averages = windows(frame, every_s=10, by="node", value="temperature_C")
    assert averages[["start_s", "node", "mean"]].values.tolist() == [[0.0, 1, 21.0], [10.0, 2, 30.0]]
    with pytest.raises(DataError, match="no column 'humidity_pct'"):
        windows(frame, by="node", value="humidity_pct")


@pytest.mark.parametrize(("settings", "error", "sentence"), [
    ({"every_s": 0}, ParameterError, "every_s is 0; it must be a number of seconds"),
    ({"late_s": -1}, ParameterError, "late_s is -1"),
    ({"by": ("region", "color")}, ParameterError, "`by` contains 'color'; it may contain node, sink, region, key"),
    ({"by": ("key", "key")}, ParameterError, "each at most once"),
    ({"by": "sink"}, DataError, "the readings have no column 'sink'"),
])  # fmt: skip
def test_impossible_settings_of_windows_are_refused_in_a_sentence(settings, error, sentence):
    frame = pd.DataFrame({"time_s": [1.0], "value": [1.0], "region": "A1", "key": "TEMP"})
    with pytest.raises(error, match=sentence):
        windows(frame, **settings)


# Following


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of a capture that has ended."""
    folder = tmp_path_factory.mktemp("live") / "capture"
    stream(SCENARIO, folder).wait()
    return folder


def assert_windows_equal_those_of_the_whole(following, whole):
    """Check that each window exists once and equals that of a query over the whole capture."""
    pd.testing.assert_frame_equal(following.windows(), windows(whole, **WINDOWS), rtol=1e-12)


def test_windows_that_follow_a_growing_capture_equal_those_of_the_whole(whole, tmp_path):
    readings = [Reading(**row) for row in captured(whole).select(Reading._fields).to_pylist()]
    inbox = Inbox()
    running_stream = stream(inbox, tmp_path / "capture")
    with follow(running_stream, **WINDOWS) as following:
        for reading in readings[:200]:
            inbox.put(reading)
        wait_until(lambda: following.readings > 0)
        assert following.is_running
        assert "running" in repr(following)
        for reading in readings[200:]:
            inbox.put(reading)
        inbox.close()
        assert following.wait()
    assert_windows_equal_those_of_the_whole(following, tmp_path / "capture")
    assert following.readings == running_stream.rows == 270
    assert pd.read_parquet(following.folder).shape == following.windows().shape


def test_a_follower_that_is_killed_and_restarted_leaves_neither_gaps_nor_duplicates(whole, tmp_path):
    assert count_kills("follower", whole, tmp_path / "killed") >= 10
    again = follow(whole, out=tmp_path / "killed", **WINDOWS)
    again.wait()
    assert not list((tmp_path / "killed").glob(".*"))  # drafts of killed processes
    assert again.parts > 3
    assert_windows_equal_those_of_the_whole(again, whole)
    uninterrupted = follow(whole, out=tmp_path / "never", **WINDOWS)
    uninterrupted.wait()
    pd.testing.assert_frame_equal(again.windows(), uninterrupted.windows())


def test_a_follower_that_was_stopped_continues_with_its_open_windows(tmp_path):
    rows = [Reading(float(i), 1, "TEMP", float(i), "A1") for i in range(40)]
    writer = Capture(tmp_path / "capture")
    for begin in (0, 13, 26):
        writer.append(rows[begin : begin + 13])
        following = follow(tmp_path / "capture", every_s=10, late_s=0)
        wait_until(lambda end=begin + 13, following=following: following.readings >= end // 10 * 10 - 10)
        following.stop()
        assert not following.is_running
    writer.append(rows[39:])
    writer.end()
    writer.close()
    following = follow(tmp_path / "capture", every_s=10, late_s=0)
    assert following.wait()
    assert following.windows()["mean"].tolist() == [4.5, 14.5, 24.5, 34.5]


def test_late_readings_are_counted_in_the_window_of_their_arrival(tmp_path):
    inbox = Inbox()
    for time_s in (1.0, 100.0, 2.0, 3.0, 101.0):
        inbox.put(Reading(time_s, 1, "TEMP", 20.0, "A1"))
    inbox.close()
    following = follow(stream(inbox, tmp_path), every_s=10, late_s=5)
    assert following.wait()
    assert following.late == 2
    assert following.windows()[["start_s", "count", "late"]].values.tolist() == [[0.0, 1, 0], [100.0, 2, 2]]


def test_a_folder_has_one_kind_of_windows_and_one_writer(whole, tmp_path):
    follow(whole, out=tmp_path, **WINDOWS).wait()
    with pytest.raises(DataError, match="has windows of another capture, with other settings"):
        follow(whole, out=tmp_path, every_s=4)
    with pytest.raises(DataError, match="has no capture"):
        follow(tmp_path / "nowhere")
    Capture(tmp_path / "capture").close()
    follow(tmp_path / "capture", every_s=4).stop()  # Without a given folder, other settings use another folder.
    with follow(tmp_path / "capture"), pytest.raises(DataError, match="is in use: process"):
        follow(tmp_path / "capture")


# The chart


def test_the_chart_outside_of_a_notebook_is_a_drawing_of_the_windows_so_far(whole, tmp_path):
    following = follow(whole, out=tmp_path, **WINDOWS)
    following.wait()
    svg = following.plot().to_svg()
    assert "windows of 3 s with 270 readings, 0 of them late; has ended" in svg
    assert "mean TEMP (°C)" in svg
    for region in following.windows()["region"].unique():
        assert f">{region}<" in svg
    with pytest.raises(
        ParameterError, match="the argument `key` is 'RAIN'; it must be one of the keys in the windows: TEMP"
    ):
        following.plot(key="RAIN")


def test_the_chart_in_a_notebook_follows_to_the_end(tmp_path):
    cell = f"""
import workbench as wb
from tests.pipelines.killed import SCENARIO
live = wb.pipelines.follow(wb.pipelines.stream(SCENARIO, {str(tmp_path)!r}, pace=20), every_s=3, late_s=1)
live.plot()
live.wait()
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    execute(notebook, timeout=600, store_widget_state=False)
    chart, waited = notebook.cells[0].outputs
    picture = re.search(r"data:image/svg\+xml;base64,([\w+/=]+)", chart["data"]["text/html"])[1]
    assert "windows of 3 s with 270 readings, 0 of them late; has ended" in base64.b64decode(picture).decode()
    assert waited["data"]["text/plain"] == "True"


def test_an_interval_without_readings_breaks_the_line():
    rows = rows_of([(float(t), 20.0) for t in (*range(30), *range(50, 70))])
    svg = views.windows_chart(windows(to_table(rows), every_s=10)).to_svg()
    assert svg.count("<polyline") == 2


def test_charts_without_windows_and_with_too_many_lines_have_a_note():
    empty = windows(to_table(rows_of([(1.0, 1.0)]))).iloc[:0]
    assert "no window" in views.windows_chart(empty, note="no window").to_svg()
    many = windows(to_table(rows_of([(1.0, 1.0, f"R{i}") for i in range(20)])))
    assert "the first 8 of 20 lines" in views.windows_chart(many).to_svg()


def test_times_of_a_clock_are_displayed_relative_to_the_first():
    rows = rows_of([(1.8e9 + t, 20.0) for t in range(30)])
    assert "time since 2027-01-15 08:00:00 UTC (s)" in views.windows_chart(windows(to_table(rows), every_s=10)).to_svg()


def test_windows_at_a_url_are_those_in_a_folder_and_are_continued(memory_url, tmp_path):
    capture = Capture(tmp_path / "capture")
    capture.append([Reading(float(time_s), 0, "TEMP", 20.0 + time_s, region="A1") for time_s in range(200)])
    with follow(tmp_path / "capture", every_s=10, late_s=5, out=memory_url) as first:
        wait_until(lambda: len(first.windows()) >= 19)
        with pytest.raises(DataError, match=f"{memory_url} is in use: process .* writes windows into it"):
            follow(tmp_path / "capture", every_s=10, late_s=5, out=memory_url)
    capture.end()
    follow(tmp_path / "capture", every_s=10, late_s=5, out=memory_url).wait()
    in_folder = follow(tmp_path / "capture", every_s=10, late_s=5)
    in_folder.wait()
    at_url = follow(tmp_path / "capture", every_s=10, late_s=5, out=memory_url)
    at_url.wait()
    pd.testing.assert_frame_equal(at_url.windows(), in_folder.windows())
    assert len(at_url.windows()) == 20
    with pytest.raises(DataError, match="a URL; Spark stores the state of its windows in a folder"):
        follow(tmp_path / "capture", out=memory_url, spark=object())


def test_a_follower_refuses_a_capture_that_has_lost_readings_since(tmp_path):
    writer = Capture(tmp_path)
    writer.append([Reading(second, 1, "TEMP", 20.0) for second in range(20)])
    live = follow(tmp_path, every_s=2, late_s=1)
    wait_until(lambda: live.readings > 0)
    live.stop()
    writer.close()
    os.truncate(capture.segments(tmp_path)[0].path, 500)  # as after a power failure
    with pytest.raises(
        DataError, match=r"has windows of the first [\d,]+ bytes of the capture, which now has only 500 bytes; use"
    ):
        follow(tmp_path, every_s=2, late_s=1)

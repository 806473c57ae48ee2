"""Charts of readings, averaged in windows of time: static, or updated below a notebook's cell.

The output of an updated chart first contains a picture of the windows completed so far. While the stream continues, the
figure in the page receives new windows, at most twice a second. When the stream ends, the output is replaced by the
final chart. A notebook that is saved afterwards shows this chart without a kernel.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.attributes.keys import key_of
from workbench.errors import AttributeFormatError, ParameterError
from workbench.views.charts.description import Series
from workbench.views.charts.living import ChartView, open_view, running_cell
from workbench.views.charts.static import Chart, line_chart, resizable
from workbench.views.notebook import in_notebook

if TYPE_CHECKING:
    import pandas as pd

EVERY_S = 0.5
MOST_SERIES = 8
MOST_WINDOWS = 200  # the newest windows that are drawn
_MOST_BANDS = 3
_VALUE_COLUMNS = ("start_s", "end_s", "count", "mean", "min", "max", "late")
_LONGEST_S = 1e11  # s, longer than any capture
_UNIX_S = 1e8  # s, longer than any run, so larger times are Unix times


@resizable
def windows_chart(windows: pd.DataFrame, key: str | None = None, note: str = "", width: int = 640) -> Chart:
    """Draw the mean of each window over time, with a line for each region or other group of the windows.

    A line is interrupted where no readings exist. With at most three lines, each has a band from the least to the
    greatest reading. Only the last `MOST_WINDOWS` windows and the first `MOST_SERIES` lines are drawn.

    windows: a data frame as from `wb.pipelines.windows`.
    key: the key of the readings to draw, such as TEMP; None: the key with the most readings.
    note: a line of small text in the chart.
    width: in px.
    Raises ParameterError for an unknown key.
    """
    window_table, name = _select_key(windows, key)
    group_columns = [column for column in window_table.columns if column not in _VALUE_COLUMNS and column != "key"]
    window_table = window_table[
        window_table["start_s"] > window_table["end_s"].max() - MOST_WINDOWS * _window_length_s(window_table) - 1e-9
    ]
    groups = (
        [("", window_table)]
        if not group_columns
        else [(_group_name(values), rows) for values, rows in window_table.groupby(group_columns, sort=True)]
    )
    first_s = float(window_table["start_s"].min()) if len(window_table) else 0.0
    begin_s = first_s if first_s > _UNIX_S else 0.0
    series_list = [
        _mean_series(group, rows, begin_s, len(groups) <= _MOST_BANDS) for group, rows in groups[:MOST_SERIES]
    ]
    if len(groups) > MOST_SERIES:
        note = "; ".join(filter(None, (note, f"the first {MOST_SERIES} of {len(groups)} lines")))
    since_text = f" since {datetime.fromtimestamp(begin_s, UTC):%Y-%m-%d %H:%M:%S} UTC" if begin_s else ""
    return line_chart(series_list, x_label=f"time{since_text} (s)", y_label=_axis_label(name), note=note, width=width)


def _select_key(windows: pd.DataFrame, key: str | None) -> tuple[pd.DataFrame, str]:
    if "key" not in windows.columns:
        return windows, ""
    reading_counts = windows.groupby("key")["count"].sum()
    if key is None:
        key = _most_frequent_key(windows) or ""
    elif key not in reading_counts.index:
        keys_text = ", ".join(reading_counts.index) or "none, because they are empty"
        raise ParameterError(f"the argument `key` is {key!r}; it must be one of the keys in the windows: {keys_text}")
    return windows[windows["key"] == key], key


def _most_frequent_key(windows: pd.DataFrame) -> str | None:
    """Return the key with the most readings, or None if the windows are empty or are not grouped by key."""
    if "key" not in windows.columns or not len(windows):
        return None
    return str(windows.groupby("key")["count"].sum().idxmax())


def _window_length_s(frame: pd.DataFrame) -> float:
    return float((frame["end_s"] - frame["start_s"]).iloc[0]) if len(frame) else 1.0


def _axis_label(key: str) -> str:
    try:
        unit = key_of(key).unit
    except AttributeFormatError:  # for example a topic, or no key
        unit = ""
    return f"mean {key}".strip() + (f" ({unit})" if unit else "")


def _group_name(values: Any) -> str:
    return " ".join(str(value) for value in values) or "elsewhere"


def _mean_series(name: str, frame: pd.DataFrame, begin_s: float, has_band: bool) -> Series:
    """Return the means of readings in windows of time as a `Series` called ``name``.

    Each point is in the middle of its window; the line has a gap where windows are missing.

    frame: the windows, one a row, all of the same length.
    begin_s: the time that is 0 on the x axis.
    has_band: whether the series has a band from the lowest to the highest reading.
    """
    length_s = _window_length_s(frame)
    window_indices = np.round((frame["start_s"] - frame["start_s"].min()) / length_s).astype(int).to_numpy()
    columns = np.full((3, window_indices.max() + 1), np.nan)
    columns[:, window_indices] = frame[["mean", "min", "max"]].to_numpy(float).T
    x = float(frame["start_s"].min()) - begin_s + (np.arange(columns.shape[1]) + 0.5) * length_s
    mean, low, high = columns.tolist()
    return Series(name, x.tolist(), mean, low if has_band else None, high if has_band else None)


# Live charts


def drawing_of(following: Any, key: str | None = None) -> Chart:
    """Draw the means of readings in the newest windows of time that a stream has completed.

    ``following``: the stream, from `wb.pipelines.follow`. ``key``: name of the readings to draw, such as TEMP; None:
    the name with the most readings in these windows.
    """
    windows = _newest_windows(following, key)
    length_s = following.settings.every_us / 1e6
    state_text = "goes on" if following.is_running else "has ended"
    window_note = (
        f"windows of {length_s:g} s with {following.readings:,} readings, {following.late:,} of them late; {state_text}"
    )
    if following.error is not None:
        window_note = f"ended early: {following.error}"
    return windows_chart(
        windows, key, window_note if len(windows) else f"no window of {length_s:g} s is closed; {state_text}"
    )


def _newest_windows(following: Any, key: str | None) -> pd.DataFrame:
    """Return the newest windows of a stream, without reading its whole history.

    The result has at least the last `MOST_WINDOWS` windows, which a chart draws. If ``key`` is given and occurs in none
    of them, older windows are read too.
    """
    last_s = MOST_WINDOWS * following.settings.every_us / 1e6
    windows = following.windows(last_s)
    while key is not None and "key" in windows and not (windows["key"] == key).any() and last_s < _LONGEST_S:
        last_s *= 8
        windows = following.windows(last_s)
    return windows


def chart(following: Any, key: str | None = None) -> Chart | None:
    """Return the chart that `plot` returns. Deprecated: this is the former name of `plot`."""
    warnings.warn("Following: chart is now called plot", DeprecationWarning, stacklevel=3)
    return plot(following, key)


def plot(following: Any, key: str | None = None) -> Chart | None:
    """Draw a stream of readings, averaged in windows of time; in a notebook, update the chart as windows are added.

    ``following``: the stream that `wb.pipelines.follow` returned. ``key``: the key of the readings to draw; None: the
    key with the most readings when windows are first drawn. Returns None in a notebook, where the chart is displayed,
    and otherwise the drawing.
    """
    drawing = drawing_of(following, key)
    if not in_notebook():
        return drawing
    from IPython.display import HTML, display

    cell = running_cell()
    view = open_view(drawing, cell)
    display_handle = display(HTML(view.to_html()), display_id=True)
    # The thread outlives the cell that started it. Its updates find the output by the output's id. A program that
    # executes a notebook without a page accepts only messages of the running cell.
    arguments = (following, key, view, cell, display_handle)
    thread = threading.Thread(target=_update_chart, args=arguments, name="chart", daemon=True)
    thread.start()
    following.charts.append(thread)
    return None


def _update_chart(following: Any, key: str | None, view: ChartView, cell: str, shown: Any) -> None:
    """Redraw the chart whenever windows of time are added; if drawing fails, print the error and stop.

    ``following``: the stream of windows, from `wb.pipelines.follow`. ``key``: name of the readings to draw; None: the
    name with the most readings. ``view``: the chart in the page. ``cell``: the id of its cell. ``shown``: the
    notebook's handle of its output.
    """
    from IPython.display import HTML

    drawn_readings, is_running = -1, True
    while is_running:
        began_s = time.perf_counter()
        is_running, reading_count = following.is_running, following.readings
        if reading_count > drawn_readings or not is_running:
            drawn_readings = reading_count
            try:
                key = key or _most_frequent_key(_newest_windows(following, None))
                drawing = drawing_of(following, key)
                if is_running:
                    view.feed(drawing)
                else:
                    shown.update(HTML(open_view(drawing, cell).to_html()))
                    view.close()
            except Exception as error:
                print(f"the chart is no longer updated: drawing the windows raised {error!r}", file=sys.stderr)
                return
        took_s = time.perf_counter() - began_s
        time.sleep(max(EVERY_S - took_s, took_s) if is_running else 0.0)

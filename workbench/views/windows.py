"""Charts of readings, averaged in windows of time: static, or updated below a notebook's cell.

The output of an updated chart first contains a picture of the windows completed so far. While the stream continues, the
figure in the page receives new windows, at most twice a second. When the stream ends, the output is replaced by the
final chart. A notebook that is saved afterwards shows this chart without a kernel.
"""

from __future__ import annotations

import sys
import threading
import time
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
_UNIX_S = 1e8  # s, longer than any run, so larger times are Unix times


@resizable
def windows_chart(windows: pd.DataFrame, key: str | None = None, note: str = "", width: int = 640) -> Chart:
    """Draw the mean of each window over time, with a line for each region or other group of the windows.

    ``windows``: a data frame as from `wb.pipelines.windows`. ``key``: the key of the readings to draw, such as TEMP;
    None: the key with the most readings. A line is interrupted where no readings exist. If there are at most three
    lines, each has a band from the least to the greatest reading. Raises ParameterError for an unknown key.
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
        key = str(reading_counts.idxmax()) if len(reading_counts) else ""
    elif key not in reading_counts.index:
        keys_text = ", ".join(reading_counts.index) or "none, because they are empty"
        raise ParameterError(f"the argument `key` is {key!r}; it must be one of the keys in the windows: {keys_text}")
    return windows[windows["key"] == key], key


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
    """Return the mean readings in successive windows of time as a `Series` with this name.

    Each point is in the middle of its window; the line has a gap where windows are missing.

    ``begin_s``: the time that is 0 on the x axis. ``has_band``: whether the series has a band from the lowest to the
    highest reading.
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
    """Draw the means of readings in the windows of time that a stream has completed so far.

    ``following``: the stream, from `wb.pipelines.follow`. ``key``: name of the readings to draw, such as TEMP; None:
    the name with the most readings.
    """
    windows = following.windows()
    reading_count, late_count = int(windows["count"].sum() + windows["late"].sum()), int(windows["late"].sum())
    length_s = following.settings.every_us / 1e6
    state_text = "goes on" if following.is_running else "has ended"
    window_note = (
        f"windows of {length_s:g} s with {reading_count:,} readings, {late_count:,} of them late; {state_text}"
    )
    if following.error is not None:
        window_note = f"ended early: {following.error}"
    return windows_chart(
        windows, key, window_note if len(windows) else f"no window of {length_s:g} s is closed; {state_text}"
    )


def chart(following: Any, key: str | None = None) -> Chart | None:
    """Draw a stream of readings, averaged in windows of time; in a notebook, update the chart as windows are added.

    ``following``: the stream that `wb.pipelines.follow` returned. ``key``: the key of the readings to draw; None: the
    key with the most readings. Returns None in a notebook, where the chart is displayed, and otherwise the drawing.
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

    drawn_parts, is_running = -1, True
    while is_running:
        began_s = time.perf_counter()
        is_running, part_count = following.is_running, following.parts
        if part_count > drawn_parts or not is_running:
            drawn_parts = part_count
            try:
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

"""`follow`: followers read a capture, and write its windows as Parquet files, in this process or on Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import DataError, ParameterError
from workbench.extensions import extensible
from workbench.keywords import checked
from workbench.locations import Location, is_url, local_path, location, lock
from workbench.pipelines.live import capture, output
from workbench.pipelines.live.background import Background
from workbench.pipelines.live.capture import READ_B, end_offset, read_description
from workbench.pipelines.live.output import LOCK, STATE, Output
from workbench.pipelines.live.windows import Fold, WindowSettings, window_settings
from workbench.pipelines.queries import is_connect

if TYPE_CHECKING:
    import pandas as pd

POLL_S = 0.1
CHART_S = 5.0  # longest wait for the last drawing of a chart
SAVE_S = 1.0  # between two checkpoints, while no window closes
WRITE_PAUSE = 20.0  # shortest pause after a write, in multiples of its duration: a follower writes 5% of the time


@extensible
class Following(Background):
    """The result of `follow`: a thread that reads a capture, and writes statistics of the readings per time window.

    ``folder`` is the folder of the windows. Following the same capture into this folder again continues the work.
    ``charts`` has the threads that draw the windows.
    """

    engine = ""

    def __init__(self, source: Path, folder: Location, settings: WindowSettings) -> None:
        self.folder: Any = folder
        self.settings = settings
        self.charts: list[threading.Thread] = []
        self._source = source
        self._lock = lock(folder, LOCK, "writes windows into it")
        try:
            description = {"capture": read_description(source)["id"], "engine": self.engine}
            self._output = Output(folder, settings, description, self._lock.check)
            self._prepare()
        except BaseException:
            self._lock.release()
            raise
        super().__init__("windows")
        self._thread.start()

    def _prepare(self) -> None:
        """Restore the state that an earlier follower of the capture may have stored. Runs before the thread starts."""

    def _clean_up(self) -> None:
        self._lock.release()

    def windows(self, last_s: float | None = None) -> pd.DataFrame:
        """Return a pandas table of the closed windows. When the capture has ended, all windows are closed.

        ``last_s`` selects the windows in the last ``last_s`` seconds before the end of the newest closed window; None:
        all windows. The windows are read from the folder at each call, because the follower keeps no closed windows in
        memory. The columns are those of `wb.pipelines.windows`. Raises ParameterError if ``last_s`` is not above 0.
        """
        if last_s is not None and not (isinstance(last_s, (int, float)) and last_s > 0):
            raise ParameterError(f"last_s is {last_s!r:.60}; it must be a number of seconds above 0")
        return self._output.windows(last_s).to_pandas()

    @property
    def readings(self) -> int:
        """The number of readings counted in the closed windows, including late readings."""
        return self._output.totals.readings

    @property
    def late(self) -> int:
        """The number of late readings: they arrived after the window of their own time was closed."""
        return self._output.totals.late

    @property
    def parts(self) -> int:
        """The number of Parquet files with windows. A file has about 30,000 windows; only the last one has fewer."""
        return self._output.parts

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the follower of the capture has ended. Return True, or False after the timeout.

        The follower ends when the capture has ended and all windows are written, or when it is stopped. Raises the
        error that ended the follower. An interrupt (Ctrl-C) stops the follower.
        """
        try:
            return super().wait(timeout_s)
        finally:
            for chart in () if self.is_running else self.charts:
                chart.join(CHART_S)  # A notebook executed without a browser shows no later output.

    def __repr__(self) -> str:
        totals = self._output.totals
        counts = f"{totals.windows:,} windows of {totals.readings:,} readings, {totals.late:,} late"
        return f"<following {str(self._source)!r} {self.engine}: {counts}, {self.state}>"


class LocalFollowing(Following):
    """The result of `follow` without Spark: a thread of this process writes statistics of a capture per time window."""

    engine = "here"

    def _prepare(self) -> None:
        self._fold, self._offset, self.damaged = Fold(self.settings), 0, 0
        self._closed_windows: list[tuple[Any, ...]] = []  # closed and not written yet
        counted_windows, stored_state = 0, self._output.state()
        if stored_state is not None:
            self._fold.restore(stored_state["fold"])
            self._offset, self.damaged = stored_state["offset"], stored_state["damaged"]
            if "windows" in stored_state:
                counted_windows = stored_state["windows"]
            else:  # The state is of an earlier version, which stored the number of the next part.
                counted_windows = self._output.windows_before(stored_state["part"])
        if self._offset > (size_B := capture.size_B(self._source)):  # after a power failure
            raise DataError(
                f"{self.folder} has windows of the first {self._offset:,} bytes of the capture, which now has only "
                f"{size_B:,} bytes; use another folder"
            )
        # The windows that were written after the state was stored; they will be closed again.
        self._windows_to_skip = self._output.totals.windows - counted_windows
        if self._windows_to_skip < 0:
            raise DataError(
                f"{self.folder} lacks {-self._windows_to_skip:,} windows that its file {STATE} counts; use another "
                "folder"
            )

    def _work(self) -> None:
        saved_s, write_due_s, is_over, has_unsaved_lines = time.perf_counter(), 0.0, False, False
        while not is_over:
            # The end is read first, so that no line before it can be missed.
            capture_end = end_offset(self._source)
            offset = self._read_next_lines()
            has_new_lines = offset > self._offset
            has_unsaved_lines, self._offset = has_unsaved_lines or has_new_lines, offset
            is_over = capture_end is not None and self._offset >= capture_end
            self._close_windows(is_over)
            is_stopped, now_s = self._is_stopping.is_set(), time.perf_counter()
            if self._closed_windows:
                is_due = now_s >= write_due_s or len(self._closed_windows) >= output.PART_ROWS
            else:
                is_due = now_s - saved_s >= SAVE_S
            has_news = has_unsaved_lines or self._closed_windows
            if has_news and (is_due or is_over or is_stopped):
                self._save_state()
                saved_s, has_unsaved_lines = time.perf_counter(), False
                write_due_s = saved_s + WRITE_PAUSE * (saved_s - now_s)
            if is_stopped:
                return
            if not has_new_lines:
                self._is_stopping.wait(POLL_S)

    def _read_next_lines(self) -> int:
        """Count the capture's next readings in their windows; return the offset of the first line after them."""
        chunk = capture.read(self._source, self._offset, READ_B)
        self._fold.add(chunk.rows)
        self.damaged += chunk.damaged
        return chunk.offset

    def _close_windows(self, is_over: bool) -> None:
        closed_windows = self._fold.close(is_over)
        skipped_count = min(self._windows_to_skip, len(closed_windows))
        self._windows_to_skip -= skipped_count
        self._closed_windows += closed_windows[skipped_count:]

    def _save_state(self) -> None:
        """Write the closed windows, then the state, and forget these windows."""
        self._output.append_rows(self._closed_windows)
        self._closed_windows = []
        counted_windows = self._output.totals.windows - self._windows_to_skip
        self._output.save_state(
            {"offset": self._offset, "windows": counted_windows, "damaged": self.damaged, "fold": self._fold.state()}
        )


@checked
def follow(
    folder: str | Path,
    every_s: float = 60.0,
    by: Sequence[str] = ("region", "key"),
    late_s: float = 30.0,
    out: str | Path | None = None,
    spark: Any = None,
) -> Following:
    """Follow a capture in the background and write its windows (`wb.pipelines.windows`) as Parquet files.

    folder   the folder of the capture, or the `Stream` that writes it
    every_s  length of a window in seconds
    by       columns of readings: each combination of their values has windows of its own
    late_s   a window is closed when the newest reading is this many seconds later than the window's end
    out      the folder for the windows, or its URL in an object store (not with a classic session of Spark); None: a
             subfolder of the capture's folder, named after the parameters
    spark    a Spark session whose workers can read ``folder`` under the same path. A classic session computes the
             windows by Structured Streaming; with Spark Connect, this process merges windows that the workers compute.
             None: in this process, without Java

    Following the same capture into the same folder again continues where the last follower was stopped or killed: no
    reading is skipped or counted twice. Raises ParameterError for invalid parameters of windows. Raises DataError if
    ``folder`` has no capture, or if ``out`` has windows of another capture or with other parameters. Raises DataError
    also if another process is writing to ``out``. If Spark's workers cannot read ``folder``, `wait` raises DataError.
    """
    source = local_path(getattr(folder, "folder", folder), "folder")
    read_description(source)
    settings = window_settings(every_s, by, late_s)
    if spark is None:
        return LocalFollowing(source, source / settings.name if out is None else location(out), settings)
    if is_connect(spark):
        from workbench.pipelines.live.connect import ConnectFollowing

        connect_folder = source / f"{settings.name}-connect" if out is None else location(out)
        return ConnectFollowing(source, connect_folder, settings, spark=spark)
    if is_url(out):
        raise DataError(
            f"`out` is {out!r:.80}, a URL; Spark stores the state of its windows in a folder, so give a folder, or "
            "leave out `spark`"
        )
    from workbench.pipelines.live.spark import SparkFollowing

    return SparkFollowing(
        source, source / f"{settings.name}-spark" if out is None else Path(out), settings, spark=spark
    )

"""`follow`: followers read a capture, and write its windows as Parquet files, in this process or on Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.errors import DataError
from workbench.extensions import extensible
from workbench.keywords import checked
from workbench.pipelines.live import capture
from workbench.pipelines.live.background import Background
from workbench.pipelines.live.capture import READ_B, Lock, end_offset, read_description
from workbench.pipelines.live.output import LOCK, Output
from workbench.pipelines.live.windows import Fold, WindowSettings, window_settings
from workbench.pipelines.queries import is_connect

if TYPE_CHECKING:
    import pandas as pd

POLL_S = 0.1
CHART_S = 5.0  # longest wait for the last drawing of a chart
SAVE_S = 1.0  # between two checkpoints, while no window closes


@extensible
class Following(Background):
    """The result of `follow`: a thread that reads a capture, and writes statistics of the readings per time window.

    ``folder`` is the folder of the windows. Following the same capture into this folder again continues the work.
    ``charts`` has the threads that draw the windows.
    """

    engine = ""

    def __init__(self, source: Path, folder: Path, settings: WindowSettings) -> None:
        self.folder, self.settings = folder, settings
        self.charts: list[threading.Thread] = []
        self._source = source
        self._lock = Lock(folder, LOCK)
        try:
            description = {"capture": read_description(source)["id"], "engine": self.engine}
            self._output = Output(folder, settings, description)
            self._prepare()
        except BaseException:
            self._lock.release()
            raise
        super().__init__("windows")
        self._thread.start()

    def _prepare(self) -> None:
        """Restore the state that an earlier follower of the capture has stored, if any, before the thread starts."""

    def _clean_up(self) -> None:
        self._lock.release()

    def windows(self) -> pd.DataFrame:
        """Return a pandas table of the closed windows. When the capture has ended, all windows are closed.

        The columns are those of `wb.pipelines.windows`.
        """
        return self._output.windows().to_pandas()

    @property
    def readings(self) -> int:
        """The number of readings counted in the closed windows, including late readings."""
        return self._sum("count") + self.late

    @property
    def late(self) -> int:
        """The number of readings that arrived too late to count in the windows of their own times."""
        return self._sum("late")

    def _sum(self, column: str) -> int:
        return int(pc.sum(self._output.windows().column(column), min_count=0).as_py())

    @property
    def parts(self) -> int:
        """The number of Parquet files with windows."""
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
        counts = f"{self._output.windows().num_rows:,} windows of {self.readings:,} readings, {self.late:,} late"
        return f"<following {str(self._source)!r} {self.engine}: {counts}, {self.state}>"


class LocalFollowing(Following):
    """The result of `follow` without Spark: a thread of this process writes statistics of a capture per time window."""

    engine = "here"

    def _prepare(self) -> None:
        self._fold, self._offset, self._part_number = Fold(self.settings), 0, 0
        self.damaged = 0
        stored_state = self._output.state()
        if stored_state is not None:
            self._fold.restore(stored_state["fold"])
            self._offset, self._part_number, self.damaged = (
                stored_state[name] for name in ("offset", "part", "damaged")
            )
        self._output.remove_parts(self._part_number)

    def _work(self) -> None:
        saved_s, is_over, has_unsaved_lines = time.perf_counter(), False, False
        while not is_over:
            # The end is read first, so that no line before it can be missed.
            capture_end = end_offset(self._source)
            chunk = capture.read(self._source, self._offset, READ_B)
            self._fold.add(chunk.rows)
            has_unsaved_lines = has_unsaved_lines or chunk.offset > self._offset
            self._offset, self.damaged = chunk.offset, self.damaged + chunk.damaged
            is_over = capture_end is not None and self._offset >= capture_end
            closed_windows = self._fold.close(is_over)
            if closed_windows:
                self._output.write_rows(self._part_number, closed_windows)
                self._part_number += 1
            is_stopped = self._is_stopping.is_set()
            if closed_windows or (
                has_unsaved_lines and (is_over or is_stopped or time.perf_counter() - saved_s >= SAVE_S)
            ):
                self._save()
                saved_s, has_unsaved_lines = time.perf_counter(), False
            if is_stopped:
                return
            if not chunk.rows:
                self._is_stopping.wait(POLL_S)

    def _save(self) -> None:
        fold = self._fold.state()
        self._output.save_state(
            {"offset": self._offset, "part": self._part_number, "damaged": self.damaged, "fold": fold}
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
    out      the folder for the windows; None: a folder in that of the capture, named after the parameters
    spark    a Spark session, but not of Spark Connect, to compute the windows by Structured Streaming; None: in this
             process, without Java

    Following the same capture into the same folder again continues where the last follower was stopped or killed: no
    reading is skipped or counted twice. Raises ParameterError for invalid parameters of windows. Raises DataError if
    ``folder`` has no capture, or if ``out`` has windows of another capture or with other parameters. Raises DataError
    also if another process is writing to ``out``, and for a session of Spark Connect.
    """
    source = Path(getattr(folder, "folder", folder))
    read_description(source)
    settings = window_settings(every_s, by, late_s)
    if spark is None:
        return LocalFollowing(source, source / settings.name if out is None else Path(out), settings)
    if is_connect(spark):
        raise DataError(
            "a capture cannot be followed by Spark Connect, because its files are written by this process; "
            'leave out `spark`, or use a session on this machine: wb.pipelines.spark("local[*]")'
        )
    from workbench.pipelines.live.spark import SparkFollowing

    return SparkFollowing(
        source, source / f"{settings.name}-spark" if out is None else Path(out), settings, spark=spark
    )

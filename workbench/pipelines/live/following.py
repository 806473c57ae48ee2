"""Following a capture: windows as it grows, to Parquet, by the engine without Java or by Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from workbench.extensions import extensible
from workbench.keywords import checked
from workbench.pipelines.live import capture
from workbench.pipelines.live.background import Background
from workbench.pipelines.live.capture import READ_B, Lock, about_of, end_of
from workbench.pipelines.live.output import LOCK, Output
from workbench.pipelines.live.windows import Asked, Fold, asked

if TYPE_CHECKING:
    import pandas as pd

POLL_S = 0.1
CHART_S = 5.0  # the longest that a chart's last drawing is waited for
KEEP_S = 1.0  # between two checkpoints, while no window closes


@extensible
class Following(Background):
    """What `follow` returns. ``folder``: of the windows. Following again into that folder goes on there.

    ``charts``: the threads that draw its windows; they end after it.
    """

    engine = ""

    def __init__(self, source: Path, folder: Path, wanted: Asked) -> None:
        self.folder, self.asked = folder, wanted
        self.charts: list[threading.Thread] = []
        self._source = source
        self._lock = Lock(folder, LOCK)
        try:
            about = {"capture": about_of(source)["id"], "engine": self.engine}
            self._output = Output(folder, wanted, about)
            self._begin()
        except BaseException:
            self._lock.release()
            raise
        super().__init__("windows")
        self._thread.start()

    def _begin(self) -> None:
        """Go on from what is there."""

    def _let_go(self) -> None:
        self._lock.release()

    def windows(self) -> pd.DataFrame:
        """The windows that are closed: they do not change any more. Once the capture has ended, these are all.

        Columns as `wb.pipelines.windows` has them.
        """
        return self._output.windows().to_pandas()

    @property
    def readings(self) -> int:
        """How many readings are counted in these windows, the late ones included."""
        return self._sum("count") + self.late

    @property
    def late(self) -> int:
        """How many readings of these came too late for their own windows."""
        return self._sum("late")

    def _sum(self, column: str) -> int:
        return int(pc.sum(self._output.windows().column(column), min_count=0).as_py())

    @property
    def parts(self) -> int:
        """How many files there are of windows: more than before if there are new windows."""
        return self._output.parts

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the capture has ended and all windows are there; returns whether it is so.

        Raises what ended it early. An interrupt (Ctrl-C) stops it.
        """
        try:
            return super().wait(timeout_s)
        finally:
            for chart in () if self.is_running else self.charts:
                chart.join(CHART_S)  # A notebook that is executed without a page takes in nothing later.

    def __repr__(self) -> str:
        found = f"{self._output.windows().num_rows:,} windows of {self.readings:,} readings, {self.late:,} late"
        return f"<following {str(self._source)!r} {self.engine}: {found}, {self.state}>"


class LocalFollowing(Following):
    """The engine without Java: a thread that folds the lines of the capture."""

    engine = "here"

    def _begin(self) -> None:
        self._fold, self._offset, self._part = Fold(self.asked), 0, 0
        self.damaged = 0
        state = self._output.state()
        if state is not None:
            self._fold.restore(state["fold"])
            self._offset, self._part, self.damaged = (state[name] for name in ("offset", "part", "damaged"))
        self._output.forget_parts(self._part)

    def _work(self) -> None:
        kept_s, is_over, is_new = time.perf_counter(), False, False
        while not is_over:
            # Asked for before reading: what was written before the end is read then.
            end = end_of(self._source)
            chunk = capture.read(self._source, self._offset, READ_B)
            self._fold.add(chunk.rows)
            is_new = is_new or chunk.offset > self._offset
            self._offset, self.damaged = chunk.offset, self.damaged + chunk.damaged
            is_over = end is not None and self._offset >= end
            closed = self._fold.close(is_over)
            if closed:
                self._output.write_rows(self._part, closed)
                self._part += 1
            is_stopped = self._is_stopping.is_set()
            if closed or (is_new and (is_over or is_stopped or time.perf_counter() - kept_s >= KEEP_S)):
                self._keep()
                kept_s, is_new = time.perf_counter(), False
            if is_stopped:
                return
            if not chunk.rows:
                self._is_stopping.wait(POLL_S)

    def _keep(self) -> None:
        fold = self._fold.state()
        self._output.keep({"offset": self._offset, "part": self._part, "damaged": self.damaged, "fold": fold})


@checked
def follow(
    folder: str | Path,
    every_s: float = 60.0,
    by: Sequence[str] = ("region", "key"),
    late_s: float = 30.0,
    out: str | Path | None = None,
    spark: Any = None,
) -> Following:
    """Follow a capture in the background: its windows, as `wb.pipelines.windows` has them, as Parquet files.

    folder   of the capture, or the `Stream` that writes it
    out      the folder for the windows; None: one in that of the capture, named by what is asked for
    spark    a session of Spark, to have the windows made by Structured Streaming; None: here, without Java

    Whoever follows the same capture into the same folder again goes on where the other one was stopped or killed: no
    reading is left out, none counts twice. DataError if there is no capture, or ``out`` has other windows or is being
    written; ParameterError for windows that cannot be.
    """
    source = Path(getattr(folder, "folder", folder))
    about_of(source)
    wanted = asked(every_s, by, late_s)
    if spark is None:
        return LocalFollowing(source, source / wanted.name if out is None else Path(out), wanted)
    from workbench.pipelines.live.spark import SparkFollowing

    return SparkFollowing(source, source / f"{wanted.name}-spark" if out is None else Path(out), wanted, spark=spark)

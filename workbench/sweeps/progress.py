"""Progress of a sweep: a bar in a notebook, one line that is overwritten in a terminal, nothing elsewhere.

At the end, a plain line of text replaces the bar, so that a saved or exported notebook can show it.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

SHOWN_S = 0.1  # least time between two updates of the display
PACE_S = 60.0  # time over which the rate of points is computed
_MOST_WORKERS_SHOWN = 4


class Display:
    """A display of progress. This base class shows nothing; it is used if the output goes to a file."""

    def show(self, share: float, text: str) -> None:
        """Show the finished part of the sweep (``share``, 0 to 1) and a line of text."""

    def close(self, summary: str) -> None:
        """End the display: show the text ``summary`` in its place."""


class TerminalLine(Display):
    """A display of progress on one line of stderr, which each update overwrites."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, share: float, text: str) -> None:
        """Overwrite the progress line with ``text``.

        ``share``, the finished part of the sweep (0 to 1), is not shown.
        """
        self._width = max(self._width, len(text))
        print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)

    def close(self, summary: str) -> None:
        """Overwrite the progress line with ``summary``, and begin a new line."""
        self.show(1.0, summary)
        print(file=sys.stderr, flush=True)


class NotebookBar(Display):
    """A progress bar under a notebook's cell, with text and a button that stops the sweep."""

    def __init__(self) -> None:
        import ipywidgets
        from IPython.display import display

        from workbench.sweeps.stop_button import StopButton

        self._bar = ipywidgets.FloatProgress(min=0.0, max=1.0)
        self._text = ipywidgets.Label()
        self._box = ipywidgets.HBox([self._bar, StopButton(), self._text])
        self._shown = display(self._box, display_id=True)

    def show(self, share: float, text: str) -> None:
        """Set the bar to ``share`` (0 to 1), and show the text beside it."""
        self._bar.value = share
        self._text.value = text

    def close(self, summary: str) -> None:
        """Replace the bar by the summary as text, because a saved notebook cannot show the bar."""
        self._shown.update({"text/plain": summary}, raw=True)
        for widget in (*self._box.children, self._box):
            widget.close()


def display_for(wanted: bool | None) -> Display:
    """Return a bar in a notebook, a line in a terminal, and otherwise a `Display` that shows nothing.

    If ``wanted`` is True, a line is shown even without a terminal; if it is False, nothing is shown.
    """
    if wanted is False:
        return Display()
    if _in_notebook():
        try:
            return NotebookBar()
        except ImportError:
            return TerminalLine()
    return TerminalLine() if wanted or sys.stderr.isatty() else Display()


def _in_notebook() -> bool:
    """Return whether this process is a Jupyter kernel, without importing IPython."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class Progress:
    """A counter of finished points that updates a display.

    ``total`` is the number of points of the sweep, ``done`` the number of points that already have a result.
    ``worker_texts`` returns a short text on the work of each worker.
    """

    def __init__(
        self, display: Display, total: int, done: int, worker_texts: Callable[[], Sequence[str]] | None = None
    ) -> None:
        self._display = display
        self._describe_work = worker_texts
        self.total = total
        self.done = done
        self.failed = 0
        self._begin_s = time.perf_counter()
        self._pace = Pace()
        self._shown_s = -math.inf
        self.update(0.0)

    @property
    def elapsed_s(self) -> float:
        """The wall time since the sweep began, in seconds."""
        return time.perf_counter() - self._begin_s

    def advance(self, points: int, failed: int = 0) -> None:
        """Count ``points`` more finished points of the sweep, ``failed`` of which failed; update the display."""
        self.done += points
        self.failed += failed
        self._pace.add(time.perf_counter(), points)
        self.update(0.0)

    def update(self, points: float) -> None:
        """Display the present state, unless the last update was less than `SHOWN_S` seconds ago.

        ``points`` is an estimated number of points that are finished, but whose rows have not arrived (`advance`).
        """
        now_s = time.perf_counter()
        done_points = min(self.done + points, self.total)
        # An update takes longer than a short point, so updates are limited in rate.
        if now_s - self._shown_s >= SHOWN_S or done_points == self.total:
            self._shown_s = now_s
            self._display.show(done_points / self.total, self._describe_progress(now_s, done_points))

    def _describe_progress(self, now: float, done: float) -> str:
        text = f"sweep: {done:.0f} of {self.total} points"
        if self.failed:
            text += f", {self.failed} failed"
        per_second = self._pace.points_per_second(now)
        if per_second and done < self.total:
            text += f", {format_rate(per_second)}, about {format_duration((self.total - done) / per_second)} left"
        return text + _describe_workers(self._describe_work() if self._describe_work else ())

    def close(self, summary: str) -> None:
        """End the display; the text ``summary`` takes its place."""
        self._display.close(summary)


class Pace:
    """A measurement of the rate of finished points over the last `PACE_S` seconds.

    Rows arrive in lists, so points are counted in bursts. The rate is the number of points after the first burst,
    divided by the time from the first burst to the last one. If no burst has come for longer than the mean time between
    bursts, the excess is added to the time, so that the rate falls.
    """

    def __init__(self) -> None:
        self._bursts: deque[tuple[float, int]] = deque()  # time (s), number of points up to this time

    def add(self, now: float, points: int) -> None:
        """Record that ``points`` more points are finished at the time ``now`` (in seconds)."""
        earlier_points = self._bursts[-1][1] if self._bursts else 0
        self._bursts.append((now, earlier_points + points))
        # At least two bursts stay, so that rare bursts still give a rate.
        while len(self._bursts) > 2 and now - self._bursts[1][0] > PACE_S:
            self._bursts.popleft()

    def points_per_second(self, now: float) -> float:
        """Return the rate in points a second at the time ``now`` (in seconds), or 0.0 while it is unknown."""
        if len(self._bursts) < 2:
            return 0.0
        (begin_s, begin_points), (last_s, last_points) = self._bursts[0], self._bursts[-1]
        usual_s = (last_s - begin_s) / (len(self._bursts) - 1)
        seconds = last_s - begin_s + max(0.0, now - last_s - usual_s)
        return (last_points - begin_points) / seconds if seconds > 0 else 0.0


def format_rate(per_second: float) -> str:
    """Format a rate in points a second: "25 a second", "3.5 a minute"."""
    units = (("a second", 1), ("a minute", 60))
    unit, seconds = next((unit for unit in units if per_second * unit[1] >= 1), ("an hour", 3600))
    points = per_second * seconds
    return f"{points:.0f} {unit}" if points >= 10 else f"{points:.2g} {unit}"


def _describe_workers(worker_texts: Sequence[str]) -> str:
    """Join the texts of the first workers, and add the number of further workers: " [point 1 for 3 s; and 9 more]"."""
    if not worker_texts:
        return ""
    first_texts = "; ".join(worker_texts[:_MOST_WORKERS_SHOWN])
    return (
        f" [{first_texts}; and {len(worker_texts) - _MOST_WORKERS_SHOWN} more]"
        if len(worker_texts) > _MOST_WORKERS_SHOWN
        else f" [{first_texts}]"
    )


def format_duration(seconds: float) -> str:
    """Format a duration: "8 s", "3 min", "2 h 10 min"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

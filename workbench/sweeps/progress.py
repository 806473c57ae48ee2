"""How far a sweep is: a bar in a notebook, one line that is written over in a terminal, nothing elsewhere.

In the end the bar goes and a plain line of text stays, which a notebook that is saved or exported can show as well.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

SHOWN_S = 0.1
PACE_S = 60.0
_WORKERS_TOLD = 4


class Display:
    """Where progress is shown. This one shows nothing: output that nobody watches should hold results alone."""

    def show(self, share: float, text: str) -> None:
        """Show the share that is done (0 to 1) and a line of text."""

    def close(self, summary: str) -> None:
        """Take the progress away and leave the summary."""


class TerminalLine(Display):
    """One line on stderr, written over again and again."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, share: float, text: str) -> None:
        """Write over the line."""
        self._width = max(self._width, len(text))
        print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)

    def close(self, summary: str) -> None:
        """Write over the line for the last time."""
        self.show(1.0, summary)
        print(file=sys.stderr, flush=True)


class NotebookBar(Display):
    """A progress bar with text under a notebook's cell."""

    def __init__(self) -> None:
        import ipywidgets
        from IPython.display import display

        self._bar = ipywidgets.FloatProgress(min=0.0, max=1.0)
        self._text = ipywidgets.Label()
        self._box = ipywidgets.HBox([self._bar, self._text])
        self._shown = display(self._box, display_id=True)

    def show(self, share: float, text: str) -> None:
        """Move the bar."""
        self._bar.value = share
        self._text.value = text

    def close(self, summary: str) -> None:
        """Put the text in the bar's place: a saved notebook would only say that the bar's model is gone."""
        self._shown.update({"text/plain": summary}, raw=True)
        self._box.close()


def display_for(asked: bool | None) -> Display:
    """The display that fits where we are; ``asked`` True: even where nobody seems to watch, False: none."""
    if asked is False:
        return Display()
    if _in_notebook():
        try:
            return NotebookBar()
        except ImportError:
            return TerminalLine()
    return TerminalLine() if asked or sys.stderr.isatty() else Display()


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this. IPython is not imported to find out: it would have been already."""
    interactive: Any = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class Progress:
    """Counts points and tells a display in words."""

    def __init__(
        self, display: Display, total: int, kept: int, doing: Callable[[], Sequence[str]] | None = None
    ) -> None:
        self._display = display
        self._doing = doing
        self.total = total
        self.done = kept
        self.failed = 0
        self._begin = time.perf_counter()
        self._pace = Pace()
        self._shown_s = -math.inf
        self.moving(0.0)

    @property
    def elapsed_s(self) -> float:
        """Wall time since the sweep began."""
        return time.perf_counter() - self._begin

    def advance(self, points: int, failed: int = 0) -> None:
        """So many points more are finished, of which some failed."""
        self.done += points
        self.failed += failed
        self._pace.add(time.perf_counter(), points)
        self.moving(0.0)

    def moving(self, points: float) -> None:
        """About so many points are finished beyond those counted."""
        now = time.perf_counter()
        done = min(self.done + points, self.total)
        # A screen is looked at by people: what is shown costs more than a short point.
        if now - self._shown_s >= SHOWN_S or done == self.total:
            self._shown_s = now
            self._display.show(done / self.total, self._text(now, done))

    def _text(self, now: float, done: float) -> str:
        text = f"sweep: {done:.0f} of {self.total} points"
        if self.failed:
            text += f", {self.failed} failed"
        a_second = self._pace.points_a_second(now)
        if a_second and done < self.total:
            text += f", {rate(a_second)}, about {duration((self.total - done) / a_second)} left"
        return text + _crowd(self._doing() if self._doing else ())

    def close(self, summary: str) -> None:
        """End with a summary."""
        self._display.close(summary)


class Pace:
    """How fast points come in: over the last minute, so that a slow beginning is forgotten.

    Rows come in bursts, a task's at once. A burst says how long its points took only together with the time before it,
    so time is counted from one burst to another; the time since the last one counts once it is longer than usual.
    """

    def __init__(self) -> None:
        self._bursts: deque[tuple[float, int]] = deque()  # time (s), points by then

    def add(self, now: float, points: int) -> None:
        """So many points have come in."""
        before = self._bursts[-1][1] if self._bursts else 0
        self._bursts.append((now, before + points))
        # Where bursts are rare, the last two stay, however long ago the first was.
        while len(self._bursts) > 2 and now - self._bursts[1][0] > PACE_S:
            self._bursts.popleft()

    def points_a_second(self, now: float) -> float:
        """The pace, 0.0 if nobody can tell yet."""
        if len(self._bursts) < 2:
            return 0.0
        (begin, before), (last, points) = self._bursts[0], self._bursts[-1]
        usual_s = (last - begin) / (len(self._bursts) - 1)
        seconds = last - begin + max(0.0, now - last - usual_s)
        return (points - before) / seconds if seconds > 0 else 0.0


def rate(a_second: float) -> str:
    """A pace for people: "25 a second", "3.5 a minute"."""
    units = (("a second", 1), ("a minute", 60))
    unit, seconds = next((one for one in units if a_second * one[1] >= 1), ("an hour", 3600))
    points = a_second * seconds
    return f"{points:.0f} {unit}" if points >= 10 else f"{points:.2g} {unit}"


def _crowd(doing: Sequence[str]) -> str:
    """What the workers do, the first of them in words."""
    if not doing:
        return ""
    told = "; ".join(doing[:_WORKERS_TOLD])
    return f" [{told}; and {len(doing) - _WORKERS_TOLD} more]" if len(doing) > _WORKERS_TOLD else f" [{told}]"


def duration(seconds: float) -> str:
    """A time for people: "8 s", "3 min", "2 h 10 min"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

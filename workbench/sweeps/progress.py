"""How far a sweep is: a bar in a notebook, one line that is written over in a terminal, nothing elsewhere.

In the end the bar goes and a plain line of text stays, which a notebook that is saved or exported can show as well.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol


class Display(Protocol):
    """Where progress is shown."""

    def show(self, share: float, text: str) -> None:
        """Show the share that is done (0 to 1) and a line of text."""

    def close(self, summary: str) -> None:
        """Take the progress away and leave the summary."""


class Silence:
    """Shows nothing: output that nobody watches should hold results alone."""

    def show(self, share: float, text: str) -> None:
        """Nothing."""

    def close(self, summary: str) -> None:
        """Nothing."""


class TerminalLine:
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


class NotebookBar:
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
        return Silence()
    if _in_notebook():
        try:
            return NotebookBar()
        except ImportError:
            return TerminalLine()
    return TerminalLine() if asked or sys.stderr.isatty() else Silence()


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this. IPython is not imported to find out: it would have been already."""
    interactive: Any = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class Progress:
    """Counts points and tells a display in words."""

    def __init__(self, display: Display, total: int, kept: int) -> None:
        self._display = display
        self.total = total
        self.done = kept
        self.failed = 0
        self._begin = time.perf_counter()
        # When the first points came in and how many there were then: what went before was starting up.
        self._warm: tuple[float, int] | None = None
        self.moving(0.0)

    @property
    def elapsed_s(self) -> float:
        """Wall time since the sweep began."""
        return time.perf_counter() - self._begin

    def advance(self, points: int, failed: int = 0) -> None:
        """So many points more are finished, of which some failed."""
        self.done += points
        self.failed += failed
        self._warm = self._warm or (time.perf_counter(), self.done)
        self.moving(0.0)

    def moving(self, points: float) -> None:
        """About so many points are finished beyond those counted."""
        done = min(self.done + points, self.total)
        self._display.show(done / self.total, self._text(done))

    def _text(self, done: float) -> str:
        text = f"sweep: {done:.0f} of {self.total} points"
        if self.failed:
            text += f", {self.failed} failed"
        if self._warm and self._warm[1] < done < self.total:
            since, points = self._warm
            left_s = (time.perf_counter() - since) * (self.total - done) / (done - points)
            text += f", about {duration(left_s)} left"
        return text

    def close(self, summary: str) -> None:
        """End with a summary."""
        self._display.close(summary)


def duration(seconds: float) -> str:
    """A time for people: "8 s", "3 min", "2 h 10 min"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

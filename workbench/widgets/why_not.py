"""Why not: why a run delivered little, and where each reading ended that did not arrive."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from workbench.analysis import accounts, explain
from workbench.errors import WorkbenchError
from workbench.widgets.controls import said_html, words
from workbench.widgets.later import Later

SHOWN = 30


class WhyNot(widgets.VBox):
    """``show(run)``: its explanation, and a line for each reading that is missing, the last published first.

    It is made when it is looked at: `show` only notes the run while ``is_seen`` is False. It is made later than the
    picture, in a thread of its own (`Later`); ``wait()`` waits for it.
    """

    def __init__(self) -> None:
        self._text = words()
        self._run: Any = None
        self._is_seen = True
        self._later = Later()
        super().__init__((self._text,))

    @property
    def is_seen(self) -> bool:
        """Whether somebody looks at it."""
        return self._is_seen

    @is_seen.setter
    def is_seen(self, is_seen: bool) -> None:
        self._is_seen = is_seen
        if is_seen and self._run is not None:
            self.show(self._run)

    def show(self, run: Any) -> None:
        """Show why readings of this run did not arrive."""
        self._run = run
        if self._is_seen:
            self._later.want(lambda look: self._draw(run, look))

    def drop(self) -> None:
        """A newer run is under way: what is told of the last one is not made any more."""
        self._later.drop()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until it shows what is to be shown; False if that took too long."""
        return self._later.wait(timeout_s)

    def _draw(self, run: Any, look: Callable[[], None]) -> None:
        try:
            text = _told(run, look)
        except WorkbenchError as error:
            text = said_html(str(error), is_error=True)
        look()
        self._run = None
        self._text.value = text


def _told(run: Any, look: Callable[[], None]) -> str:
    metrics = run.metrics
    missing = int(metrics["expected"] - metrics["delivered"])
    if not missing and metrics["expected"]:
        return "<p>Everything arrived.</p>"
    text = explain.explain(run)._repr_html_()
    look()
    if missing:
        last = reversed(accounts.missing(run, most=SHOWN, look=look))
        lines = "".join(f"<li>{html.escape(explain.sentence(run.scenario, account))}</li>" for account in last)
        more = f"<p>The last {SHOWN} of {missing:,}.</p>" if missing > SHOWN else ""
        text += f"<h4>What did not arrive, the last first</h4><ul class='wb-ends'>{lines}</ul>{more}"
    return text

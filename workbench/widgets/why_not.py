"""Why not: why a run delivered little, and where each reading ended that did not arrive."""

from __future__ import annotations

import html
from typing import Any

import ipywidgets as widgets

from workbench.sim.why_not import ends

SHOWN = 30


class WhyNot(widgets.VBox):
    """``show(run)``: its explanation, and a line for each reading that is missing, the last published first.

    It is made when it is looked at: `show` only notes the run while ``is_seen`` is False.
    """

    def __init__(self) -> None:
        self._text = widgets.HTML()
        self._run: Any = None
        self._is_seen = True
        super().__init__((self._text,))

    @property
    def is_seen(self) -> bool:
        """Whether somebody looks at it."""
        return self._is_seen

    @is_seen.setter
    def is_seen(self, is_seen: bool) -> None:
        self._is_seen = is_seen
        if is_seen and self._run is not None:
            self._draw(self._run)

    def show(self, run: Any) -> None:
        """Show why readings of this run did not arrive."""
        self._run = run
        if self._is_seen:
            self._draw(run)

    def _draw(self, run: Any) -> None:
        self._run = None
        metrics = run.metrics
        missing = int(metrics["expected"] - metrics["delivered"])
        text = run.explain()._repr_html_() if missing or not metrics["expected"] else "<p>Everything arrived.</p>"
        if missing:
            lines = "".join(f"<li>{html.escape(str(end))}</li>" for end in ends(run, SHOWN))
            more = f"<p>The last {SHOWN} of {missing:,}.</p>" if missing > SHOWN else ""
            text += f"<h4>What did not arrive, the last first</h4><ul class='wb-ends'>{lines}</ul>{more}"
        self._text.value = text

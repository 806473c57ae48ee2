"""A panel that explains why readings did not reach their subscribers, and where each missing reading was lost."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from workbench.analysis import accounts, explain
from workbench.errors import WorkbenchError
from workbench.widgets.controls import status_html, words
from workbench.widgets.deferred import Deferred

MOST_SHOWN = 30  # readings that did not arrive


class WhyNot(widgets.VBox):
    """A panel with an explanation of a run's missing readings, and a line about each, the last published first.

    The text is computed in a background thread, only while the panel is visible (``is_seen``). `wait` waits
    until the text is complete.
    """

    def __init__(self) -> None:
        self._text = words()
        self._runs: tuple[Any, ...] = ()
        self._is_seen = True
        self._deferred = Deferred()
        super().__init__((self._text,))

    @property
    def is_seen(self) -> bool:
        """True if the panel is visible."""
        return self._is_seen

    @is_seen.setter
    def is_seen(self, is_seen: bool) -> None:
        self._is_seen = is_seen
        if is_seen and self._runs:
            self.show(*self._runs)

    def show(self, *runs: Any) -> None:
        """Explain why readings of one or more runs did not arrive; several runs are titled with their protocols."""
        self._runs = runs
        if self._is_seen:
            self._deferred.submit(lambda check: self._show_explanation(runs, check))

    def cancel(self) -> None:
        """Stop computing the text, because a newer run is in progress."""
        self._deferred.cancel()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until the explanation is complete; return False on timeout."""
        return self._deferred.wait(timeout_s)

    def _show_explanation(self, runs: tuple[Any, ...], check: Callable[[], None]) -> None:
        try:
            explanations = [_explanation_html(run, check) for run in runs]
            protocol_names = [type(run.scenario.protocol).public_class().__name__ for run in runs]
            titled = (
                f"<h3>{name}</h3>{explanation}" for name, explanation in zip(protocol_names, explanations, strict=True)
            )
            explanation = "".join(titled) if len(runs) > 1 else explanations[0]
        except WorkbenchError as error:
            explanation = status_html(str(error), is_error=True)
        check()
        self._runs = ()
        self._text.value = explanation


def _explanation_html(run: Any, check: Callable[[], None]) -> str:
    metrics = run.metrics
    missing_count = int(metrics["expected"] - metrics["delivered"])
    if not missing_count and metrics["expected"]:
        return "<p>All readings arrived.</p>"
    explanation = explain.explain(run)._repr_html_()
    check()
    if missing_count:
        last_missing = reversed(accounts.missing(run, most=MOST_SHOWN, on_progress=check))
        lines = "".join(f"<li>{html.escape(explain.sentence(run.scenario, account))}</li>" for account in last_missing)
        omission_note = f"<p>The last {MOST_SHOWN} of {missing_count:,}.</p>" if missing_count > MOST_SHOWN else ""
        explanation += (
            f"<h4>Readings that did not arrive, the last first</h4><ul class='wb-ends'>{lines}</ul>{omission_note}"
        )
    return explanation

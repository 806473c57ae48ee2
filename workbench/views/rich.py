"""Displays in notebooks that need no scripts: a run as HTML, and a fallback for widgets."""

import html
import math
from typing import Any

from workbench.analysis.explain import hint
from workbench.sim.metrics.shown import shown_metrics
from workbench.views import caption

_STYLE = "text-align:left;padding:1px 14px 1px 0"


def bundle(run: Any, **_options: Any) -> dict[str, Any]:
    """Return the mimebundle of a run, with text/plain and text/html.

    A run on motes that is still in progress has only text: computing its metrics would block the notebook until the
    end of the run.
    """
    if getattr(run, "is_running", False):
        return {"text/plain": repr(run)}
    advice = hint(run.metrics["delivery_ratio"])
    return {"text/plain": f"{run!r}\n{advice}" if advice else repr(run), "text/html": summary_html(run)}


def summary_html(run: Any) -> str:
    """Return HTML with a run's title, workload, key numbers and metrics, and with Python calls that show more."""
    facts = " · ".join(
        caption_text for caption_text in (caption.workload(run), caption.conditions(run)) if caption_text
    )
    advice = hint(run.metrics["delivery_ratio"]).replace("run.explain()", "<code>run.explain()</code>")
    number_texts = " · ".join(f"{name} {value}" for name, value in caption.key_numbers(run))
    next_steps = (
        "<code>run.show()</code> plays it, <code>run.figure(time_s=…)</code> draws the network at a time"
        if getattr(run, "has_trace", True)
        else "It has no trace; <code>scenario.run()</code> records one."
    )
    return (
        f"<p><strong>{html.escape(caption.title(run))}</strong><br>{html.escape(facts)}<br>{html.escape(number_texts)}"
        f"{advice and '<br>'}{advice}</p>"
        f"{folded_metrics(run)}<p>{next_steps}</p>"
    )


def folded_metrics(run: Any) -> str:
    """Return the table of a run's metrics as HTML. It is collapsed: at first only the number of metrics is visible."""
    return f"<details><summary>{len(shown_metrics(run.metrics))} metrics</summary>{metrics_table(run)}</details>"


def metrics_table(run: Any) -> str:
    """Return the metrics of a run that apply to its protocol, as an HTML table of two columns."""
    rows = [
        f'<tr><th style="{_STYLE};font-weight:normal">{html.escape(name)}</th>'
        f'<td style="text-align:right">{write(float(value))}</td></tr>'
        for name, value in shown_metrics(run.metrics).items()
    ]
    return f"<table>{''.join(rows)}</table>"


def write(value: float) -> str:
    """Format a metric's value: whole numbers without decimals, others with about four digits, "–" if not finite."""
    if not math.isfinite(value):
        return "–"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


class Explorer:
    """A widget with a static fallback: ``still`` is HTML that pages and viewers without a kernel show instead."""

    def __init__(self, widget: Any, still: str) -> None:
        self.widget = widget
        self.still = still

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/html": self.still, **self.widget._repr_mimebundle_(include=None, exclude=None)}

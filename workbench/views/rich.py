"""A run's rich display: tables and a picture that stand without JavaScript, kernel or trust."""

import base64
import html
import math
from typing import Any

from workbench.views import caption

PICTURE_SCALE, COLOURS = 1.5, 128  # notebooks grow by every picture that is looked at
_STYLE = "text-align:left;padding:1px 14px 1px 0"


def bundle(run: Any) -> dict[str, Any]:
    """The mimebundle of a run: text/plain, text/html and, if it has a trace, image/png."""
    made: dict[str, Any] = {"text/plain": repr(run)}
    picture = picture_png(run)
    if picture is not None:
        made["image/png"] = picture
    made["text/html"] = summary_html(run, picture)
    return made


def picture_png(run: Any, scale: float = PICTURE_SCALE) -> bytes | None:
    """The network at the end of the run, or None without a trace."""
    if not getattr(run, "has_trace", True):
        return None
    from workbench.views.figure import network_drawing

    return network_drawing(run).to_png(scale, colours=COLOURS)


def summary_html(run: Any, picture: bytes | None = None) -> str:
    """Title, workload, metrics and picture."""
    image = ""
    if picture is not None:
        encoded = base64.b64encode(picture).decode("ascii")
        image = (
            f'<p><img alt="The network at the end of the run" width="700" src="data:image/png;base64,{encoded}"></p>'
        )
    said = " · ".join(part for part in (caption.workload(run), caption.conditions(run)) if part)
    return (
        f"<p><strong>{html.escape(caption.title(run))}</strong><br>{html.escape(said)}</p>{image}"
        f"<details><summary>{html.escape(_key_line(run))}</summary>{metrics_table(run)}</details>"
    )


def _key_line(run: Any) -> str:
    return " · ".join(f"{name} {number}" for name, number in caption.key_numbers(run)) or "metrics"


def metrics_table(run: Any) -> str:
    """All metrics as a plain HTML table of two columns."""
    rows = [
        f'<tr><th style="{_STYLE};font-weight:normal">{html.escape(name)}</th>'
        f'<td style="text-align:right">{write(float(value))}</td></tr>'
        for name, value in run.metrics.items()
    ]
    return f"<table>{''.join(rows)}</table>"


def write(value: float) -> str:
    """A metric for people: whole numbers whole, others to four digits, and a dash where there is none."""
    if not math.isfinite(value):
        return "–"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"

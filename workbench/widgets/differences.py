"""A table of what two runs differ in, metric by metric; the better of the two is marked."""

from __future__ import annotations

import html
import math
from typing import Any

import ipywidgets as widgets

from workbench.sim.metrics.shown import Shown, shown_as
from workbench.sim.radio import is_ideal
from workbench.widgets.numbers import written

_IDEAL = (
    "<p class='wb-said'>Both ran on an ideal radio: no frame is lost and none collide, so costs and delays look better "
    "than on motes. “Radio and time” has losses, collisions, carrier sense and retries.</p>"
)


class Differences(widgets.HTML):
    """``show(one, other)``: the metrics of two runs side by side, and how many times the first the second has."""

    def __init__(self) -> None:
        super().__init__(
            "<p class='wb-said'>Choose a protocol under “beside it”: both play the same workload on the same clock.</p>"
        )

    def show(self, one: Any, other: Any) -> None:
        """Show what two runs differ in."""
        names = [_name(run) for run in (one, other)]
        if names[0] == names[1]:
            names = [f"{names[0]} A", f"{names[1]} B"]
        index = [*one.metrics.index, *(name for name in other.metrics.index if name not in one.metrics.index)]
        rows = "".join(_row(_shown(name, one, other), _value(one, name), _value(other, name)) for name in index)
        head = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in ("", *names, "second / first"))
        table = f"<table class='wb-differences'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        ideal = all(is_ideal(run.scenario.radio, run.scenario.topology) for run in (one, other))
        self.value = table + (_IDEAL if ideal else "")


def _name(run: Any) -> str:
    return type(run.scenario.protocol).public_class().__name__


def _shown(name: str, one: Any, other: Any) -> Shown:
    return shown_as(name, (one if name in one.metrics.index else other).scenario.protocol)


def _value(run: Any, name: str) -> float:
    return float(run.metrics[name]) if name in run.metrics.index else float("nan")


def _row(shown: Shown, one: float, other: float) -> str:
    if math.isnan(one) and math.isnan(other):
        return ""
    best = _best(shown.is_more_better, one, other)
    cells = "".join(
        f"<td{' class=wb-best' if place == best else ''}>{html.escape(written(shown, value))}</td>"
        for place, value in enumerate((one, other))
    )
    ratio = f"{other / one:.2f}" if one and not math.isnan(one) and not math.isnan(other) else ""
    meaning = html.escape(shown.meaning, quote=True)
    return f"<tr><th scope='row' title='{meaning}'>{html.escape(shown.title)}</th>{cells}<td>{ratio}</td></tr>"


def _best(is_more_better: bool | None, one: float, other: float) -> int | None:
    """Which of two is better, 0 or 1; None where neither is."""
    if is_more_better is None or math.isnan(one) or math.isnan(other) or one == other:
        return None
    return int((other > one) == is_more_better)

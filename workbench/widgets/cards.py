"""Panels for the metrics of a run: cards with the metrics and their changes, and a table that compares two runs."""

from __future__ import annotations

import html
import math
from typing import Any

import ipywidgets as widgets

from workbench.sim.conditions import conditions, shared, warnings
from workbench.sim.metrics.shown import Shown, shown_as

FIRST = ("delivery_ratio", "latency_ms_p50", "latency_ms_p95", "transmissions", "energy_mJ", "stretch", "coverage")
_ALWAYS_LEFT_OUT = ("expected", "delivered", "receptions")
_IF_NONZERO = ("wrong_deliveries", "duplicate_deliveries", "unexpected_deliveries", "lost")
_DETAILS = ("sent_", "lost_", "dropped_", "given_up_")
# Metrics for comparisons: the table has them, but their cards would hide the other cards.
_IN_TABLE = (
    "latency_all_",
    "within_",
    "time_to_",
    "frames_",
    "bytes_",
    "recovery_",
    "usefulness_",
    "sink_error_max",
    "age_s_max",
)


class Cards(widgets.HTML):
    """A card for each metric of a run, with its change since the previous run. The protocol's own metrics come last."""

    def __init__(self) -> None:
        super().__init__()
        self.add_class("wb-cards-box")

    def show(self, run: Any, before: Any = None, second: Any = None) -> None:
        """Show the metrics of a run, their changes since the previous run, and the same metrics of a second run.

        Metrics that are NaN are left out.

        before: metrics of the previous run, a pandas Series {name: value}; None without a previous run.
        second: run of another protocol, with which ``run`` is compared; None without a comparison.
        """
        cards = "".join(_card_html(name, run, before, second) for name in _select_metrics(run.metrics))
        self.value = f"<div class='wb-cards' role='list' aria-label='Metrics' tabindex='0'>{cards}</div>"


def _select_metrics(metrics: Any) -> list[str]:
    other_names = [
        name
        for name in metrics.index
        if name not in (*FIRST, *_ALWAYS_LEFT_OUT) and not name.startswith((*_DETAILS, *_IN_TABLE))
    ]
    shown_names = [name for name in other_names if name not in _IF_NONZERO or metrics[name]]
    return [name for name in (*FIRST, *shown_names) if name in metrics.index and not math.isnan(metrics[name])]


def _card_html(name: str, run: Any, old_metrics: Any, second: Any) -> str:
    metrics = run.metrics
    metric_style, value_now = shown_as(name, run.scenario.protocol), float(metrics[name])
    value_text = written(metric_style, value_now)
    change_text, is_better = (
        change(metric_style, float(old_metrics[name]), value_now)
        if old_metrics is not None and name in old_metrics
        else ("", None)
    )
    css_class = "" if is_better is None else "wb-better" if is_better else "wb-worse"
    extra = ""
    if name == "delivery_ratio":
        extra = f"<small>{metrics['delivered']:,.0f} of {metrics['expected']:,.0f}</small>"
    if second is not None and name in second.metrics:
        second_value = f"{_protocol_name(second)}: {written(metric_style, float(second.metrics[name]))}"
        extra += f"<small class='wb-second'>{html.escape(second_value)}</small>"
    return (
        f"<div class='wb-card' role='listitem' title='{html.escape(metric_style.meaning, quote=True)}'>"
        f"<span>{html.escape(metric_style.title)}</span><b>{html.escape(value_text)}</b>"
        f"<em class='{css_class}'>{html.escape(change_text)}</em>{extra}</div>"
    )


# Format of values and changes

_SHARES = ("%",)


def written(shown: Shown, value: float) -> str:
    """Format the value of a metric: shares in percent, large numbers with separators, "–" for NaN, "∞" for infinity.

    ``shown``: how the metric is displayed, such as its unit.
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    if shown.unit in _SHARES:
        return f"{100 * value:.1f}".removesuffix(".0") + " %"
    if value == int(value) or abs(value) >= 1000:
        number_text = f"{value:,.0f}"
    else:
        number_text = f"{value:.3g}"
    return f"{number_text} {shown.unit}".strip()


def change(shown: Shown, before: float, now: float) -> tuple[str, bool | None]:
    """Return (the change of a metric as text, whether the change is an improvement), such as ("▲ 12 %", True).

    If neither higher nor lower values of the metric are better, the result is (text, None). If the values are equal, or
    one of them is not finite, the result is ("", None). ``shown``: how the metric is displayed.
    """
    if not (math.isfinite(before) and math.isfinite(now)) or now == before:
        return "", None
    is_higher = now > before
    arrow = "▲" if is_higher else "▼"
    if shown.unit in _SHARES:
        amount_text = f"{100 * abs(now - before):.1f}".removesuffix(".0") + " points"
    elif before:
        amount_text = f"{100 * abs(now / before - 1):.0f} %" if abs(now / before) < 10 else f"{now / before:.0f}×"
    else:
        amount_text = ""
    is_more_better = shown.is_more_better
    return f"{arrow} {amount_text}".strip(), None if is_more_better is None else is_higher == is_more_better


# Two runs side by side

_ALONE = (
    "<p class='wb-said'>Choose a protocol under “compare with”: it gets the same workload, and the players show both "
    "runs at the same time.</p>"
)
_LIVE = "<p class='wb-said'>A run on motes is in progress; it is not compared with another run.</p>"
_EQUAL = "<p class='wb-said'>All metrics are equal: in this scenario, both protocols behave the same.</p>"


class Differences(widgets.HTML):
    """A table of the metrics of two runs side by side, with the ratio of the second run to the first."""

    def __init__(self) -> None:
        super().__init__(_ALONE)

    def show_none(self) -> None:
        """Show a hint on how to compare two runs, because the lab has only a single run."""
        self.value = _ALONE

    def show_live(self) -> None:
        """Show a notice instead of the table, because a run on motes cannot be compared with another run."""
        self.value = _LIVE

    def show(self, first: Any, second: Any) -> None:
        """Show the metrics of two runs side by side."""
        protocol_names = [_protocol_name(run) for run in (first, second)]
        if protocol_names[0] == protocol_names[1]:
            protocol_names = [f"{protocol_names[0]} A", f"{protocol_names[1]} B"]
        metric_names = [
            *first.metrics.index,
            *(name for name in second.metrics.index if name not in first.metrics.index),
        ]
        rows_html = "".join(
            _row_html(_describe_metric(name, first, second), _metric_or_nan(first, name), _metric_or_nan(second, name))
            for name in metric_names
        )
        header_cells = "".join(
            f"<th scope='col'>{html.escape(name)}</th>" for name in ("", *protocol_names, "second / first")
        )
        table = (
            f"<table class='wb-differences'><thead><tr>{header_cells}</tr></thead><tbody>{rows_html}</tbody></table>"
        )
        equality_note = _EQUAL if first.metrics.equals(second.metrics) else ""
        self.value = (
            table
            + equality_note
            + _conditions_html(dict(zip(protocol_names, (first.scenario, second.scenario), strict=True)))
        )


def _conditions_html(scenarios: dict[str, Any]) -> str:
    """Return HTML with warnings, and with the conditions under which each protocol ran, such as an ideal radio.

    ``scenarios``: {name of the protocol: its scenario}.
    """
    protocol_conditions = [conditions(scenario, name) for name, scenario in scenarios.items()]
    common_conditions = shared(scenarios)
    advice = " “Radio and time” has losses, collisions, carrier sense and retries." if common_conditions else ""
    condition_lines = [
        *([common_conditions + advice] if common_conditions else []),
        *warnings(protocol_conditions),
        *map(str, protocol_conditions),
    ]
    items_html = "".join(f"<li>{html.escape(line)}</li>" for line in condition_lines)
    return f"<h4>Conditions</h4><ul class='wb-said'>{items_html}</ul>"


def _protocol_name(run: Any) -> str:
    return type(run.scenario.protocol).public_class().__name__


def _describe_metric(name: str, first: Any, second: Any) -> Shown:
    return shown_as(name, (first if name in first.metrics.index else second).scenario.protocol)


def _metric_or_nan(run: Any, name: str) -> float:
    return float(run.metrics[name]) if name in run.metrics.index else float("nan")


def _row_html(shown: Shown, first: float, second: float) -> str:
    if math.isnan(first) and math.isnan(second):
        return ""
    best_index = _better_index(shown.is_more_better, first, second)
    cells_html = "".join(
        f"<td{' class=wb-best' if index == best_index else ''}>{html.escape(written(shown, value))}</td>"
        for index, value in enumerate((first, second))
    )
    ratio = f"{second / first:.2f}" if first and math.isfinite(first) and math.isfinite(second) else ""
    meaning = html.escape(shown.meaning, quote=True)
    return f"<tr><th scope='row' title='{meaning}'>{html.escape(shown.title)}</th>{cells_html}<td>{ratio}</td></tr>"


def _better_index(is_more_better: bool | None, first: float, second: float) -> int | None:
    """Return 0 if ``first`` is the better value of a metric, 1 if ``second`` is, or None if neither is better.

    ``is_more_better``: whether higher values of the metric are better; None: no value is better than another.
    """
    if is_more_better is None or math.isnan(first) or math.isnan(second) or first == second:
        return None
    return int((second > first) == is_more_better)

"""Metrics of a run as cards, with their change against the run before."""

from __future__ import annotations

import html
import math
from typing import Any

import ipywidgets as widgets

from workbench.sim.metrics.shown import shown_as
from workbench.widgets.numbers import change, written

FIRST = ("delivery_ratio", "latency_ms_p50", "latency_ms_p95", "transmissions", "energy_mJ", "stretch", "coverage")
_ALWAYS_LEFT_OUT = ("expected", "delivered", "receptions")
_IF_ANY = ("wrong_deliveries", "duplicate_deliveries", "unexpected_deliveries", "lost")
_DETAILS = ("sent_", "lost_", "dropped_", "given_up_")


class Cards(widgets.HTML):
    """``show(metrics, before, protocol)``: a card for each metric that means something in this run.

    The protocol's own come last; ``protocol``: whose run it is, None for one that has none of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.add_class("wb-cards-box")

    def show(self, metrics: Any, before: Any = None, protocol: Any = None) -> None:
        """Show the metrics (a series) of a run, and what has changed since those of the run before."""
        cards = "".join(_card(name, metrics, before, protocol) for name in _names(metrics))
        self.value = f"<div class='wb-cards' role='list' aria-label='Metrics'>{cards}</div>"


def _names(metrics: Any) -> list[str]:
    rest = [
        name
        for name in metrics.index
        if name not in FIRST and name not in _ALWAYS_LEFT_OUT and not name.startswith(_DETAILS) and name != "bytes_sent"
    ]
    kept = [name for name in rest if name not in _IF_ANY or metrics[name]]
    return [name for name in (*FIRST, *kept) if name in metrics.index and not math.isnan(metrics[name])]


def _card(name: str, metrics: Any, before: Any, protocol: Any) -> str:
    shown, now = shown_as(name, protocol), float(metrics[name])
    value = written(shown, now)
    said, is_better = change(shown, float(before[name]), now) if before is not None and name in before else ("", None)
    kind = "" if is_better is None else "wb-better" if is_better else "wb-worse"
    extra = ""
    if name == "delivery_ratio":
        extra = f"<small>{metrics['delivered']:,.0f} of {metrics['expected']:,.0f}</small>"
    return (
        f"<div class='wb-card' role='listitem' title='{html.escape(shown.meaning, quote=True)}'>"
        f"<span>{html.escape(shown.title)}</span><b>{html.escape(value)}</b>"
        f"<em class='{kind}'>{html.escape(said)}</em>{extra}</div>"
    )

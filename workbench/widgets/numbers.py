"""What the lab says of metrics: their names for readers, which way is better, and how a number is written."""

from __future__ import annotations

import math
from typing import NamedTuple


class Shown(NamedTuple):
    """A metric as it is shown: its title, its unit, whether more is better (None: neither), what it means."""

    title: str
    unit: str
    is_more_better: bool | None
    meaning: str


SHOWN = {
    "delivery_ratio": Shown(
        "delivery", "%", True, "of the samples that were asked for and could arrive, the share that did"
    ),
    "latency_ms_p50": Shown("latency, median", "ms", False, "from publish to delivery, over what was delivered"),
    "latency_ms_p95": Shown("latency, 95 %", "ms", False, "from publish to delivery, over what was delivered"),
    "stretch": Shown("stretch", "×", False, "hops that messages travelled over those of the shortest path, mean"),
    "coverage": Shown("coverage", "%", True, "share of all nodes that came to hold a publication, mean"),
    "interest_coverage": Shown("interests known", "%", True, "share of nodes that hold the interests, mean"),
    "transmissions": Shown("frames sent", "", False, "frames, with those sent again"),
    "bytes_sent": Shown("bytes sent", "B", False, "without the radio's overhead"),
    "energy_mJ": Shown("energy", "mJ", False, "of sending, and of hearing what was received or collided"),
    "lost": Shown("frames lost", "", False, "receptions that failed"),
    "wrong_deliveries": Shown("wrong", "", False, "samples handed to who did not ask, altered, or never published"),
    "duplicate_deliveries": Shown("repeated", "", False, "samples handed to the same subscription again"),
}
_SHARES = ("%",)


def shown_as(name: str) -> Shown:
    """How a metric is shown; one that nobody wrote of is shown by its name."""
    return SHOWN.get(name) or Shown(name.replace("_", " "), "", None, name)


def written(name: str, value: float) -> str:
    """A metric's value as text: shares in percent, changes of them in points, large numbers in groups, "–" for none."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else str(value)
    if shown_as(name).unit in _SHARES:
        return f"{100 * value:.1f}".removesuffix(".0") + " %"
    unit = shown_as(name).unit
    if value == int(value) or abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.3g}"
    return f"{text} {unit}".strip()


def change(name: str, before: float, now: float) -> tuple[str, bool | None]:
    """(the change in words, whether it is for the better; None where it is neither, or there is none)."""
    if not (math.isfinite(before) and math.isfinite(now)) or now == before:
        return "", None
    is_up = now > before
    better = shown_as(name).is_more_better
    arrow = "▲" if is_up else "▼"
    if shown_as(name).unit in _SHARES:
        by = f"{100 * abs(now - before):.1f}".removesuffix(".0") + " points"
    elif before:
        by = f"{100 * abs(now / before - 1):.0f} %" if abs(now / before) < 10 else f"{now / before:.0f}×"
    else:
        by = ""
    return f"{arrow} {by}".strip(), None if better is None else is_up == better

"""How the lab writes the values of metrics, and their changes (what metrics are called: `sim.metrics.shown`)."""

from __future__ import annotations

import math

from workbench.sim.metrics.shown import Shown

_SHARES = ("%",)


def written(shown: Shown, value: float) -> str:
    """A metric's value as text: shares in percent, changes of them in points, large numbers in groups, "–" for none."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else str(value)
    if shown.unit in _SHARES:
        return f"{100 * value:.1f}".removesuffix(".0") + " %"
    if value == int(value) or abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.3g}"
    return f"{text} {shown.unit}".strip()


def change(shown: Shown, before: float, now: float) -> tuple[str, bool | None]:
    """(the change in words, whether it is for the better; None where it is neither, or there is none)."""
    if not (math.isfinite(before) and math.isfinite(now)) or now == before:
        return "", None
    is_up = now > before
    arrow = "▲" if is_up else "▼"
    if shown.unit in _SHARES:
        by = f"{100 * abs(now - before):.1f}".removesuffix(".0") + " points"
    elif before:
        by = f"{100 * abs(now / before - 1):.0f} %" if abs(now / before) < 10 else f"{now / before:.0f}×"
    else:
        by = ""
    better = shown.is_more_better
    return f"{arrow} {by}".strip(), None if better is None else is_up == better

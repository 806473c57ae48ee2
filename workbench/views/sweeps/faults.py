"""The heat map of a fault matrix: delivery before, during and after each fault, and the time to recover."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from workbench.sweeps.faults import NO_FAULT, PERIODS, FaultMatrix
from workbench.views import palette
from workbench.views.carried import carries_sweep
from workbench.views.drawing import Drawing

_CELL, _LEFT, _TOP, _MARGIN = (120, 42), 150, 88, 14
_BLOCK = (_CELL[0] - 8) / len(PERIODS)


def plot(matrix: FaultMatrix) -> Drawing:
    """Draw a heat map: a row for each fault, a column for each protocol.

    A cell has a box for each of the periods before, during and after the fault. A box is white if all readings arrived,
    and the darker the more were lost; its number is the delivery ratio, or "-" if no reading was expected. A text below
    the boxes states the time to recover. Hover over a cell for its values, wrong and duplicate deliveries.
    """
    width = _LEFT + _CELL[0] * len(matrix.protocols) + _MARGIN
    height = _TOP + _CELL[1] * len(matrix.faults) + 2 * _MARGIN
    title = "Delivery before, during and after each fault, and time to recover"
    drawing = Drawing(max(width, 560), height, title=title)
    drawing.text(_MARGIN, 22, title, size=13, bold=True)
    drawing.text(
        _MARGIN,
        41,
        "the share of readings that arrived; the darker, the more were lost",
        size=10.5,
        colour=palette.FAINT_TEXT,
    )
    for column, protocol in enumerate(matrix.protocols):
        center_x = _LEFT + _CELL[0] * (column + 0.5)
        drawing.text(center_x, _TOP - 24, protocol, size=12, anchor="middle", bold=True)
        for part, period in enumerate(PERIODS):
            part_x = _LEFT + _CELL[0] * column + 4 + _BLOCK * (part + 0.5)
            drawing.text(part_x, _TOP - 8, period, size=9, anchor="middle", colour=palette.FAINT_TEXT)
    rows = matrix.table.set_index(["fault", "protocol"])
    for line, fault in enumerate(matrix.faults):
        top = _TOP + _CELL[1] * line
        drawing.text(_LEFT - 8, top + 19, fault, size=11.5, anchor="end")
        for column, protocol in enumerate(matrix.protocols):
            _draw_cell(drawing, _LEFT + _CELL[0] * column, top, rows.loc[(fault, protocol)])
    return carries_sweep(matrix.runs, drawing, *PERIODS)


def _draw_cell(drawing: Drawing, left: float, top: float, row: pd.Series) -> None:
    tooltip = describe_cell(row)
    for part, period in enumerate(PERIODS):
        ratio = float(row[period])
        colour = palette.GRID if math.isnan(ratio) else palette.blend(palette.BACKGROUND, palette.LOST, 1 - ratio)
        part_left = left + 4 + _BLOCK * part
        drawing.rectangle(part_left, top + 4, _BLOCK - 1, 20, fill=colour, stroke=palette.GRID, tooltip=tooltip)
        label = "-" if math.isnan(ratio) else f"{ratio:.2f}"
        drawing.text(part_left + _BLOCK / 2, top + 18, label, size=10.5, anchor="middle", colour=palette.ink_on(colour))
    is_healed = row["verdict"] == "recovers"
    colour = palette.FAINT_TEXT if is_healed else palette.LOST
    label = "" if row.name[0] == NO_FAULT else _describe_recovery(row)
    counts = [f"{row[name]:.0f} {name}" for name in ("wrong", "repeated") if row[name]]
    if counts:
        label = ", ".join([label.removeprefix("recovers "), *counts])
    drawing.text(left + _CELL[0] / 2, top + 35, label, size=9.5, anchor="middle", colour=colour)


def _describe_recovery(row: pd.Series) -> str:
    recovery_s = float(row["recovery_s"])
    if math.isfinite(recovery_s):
        return f"recovers in {recovery_s:.0f} s" if recovery_s >= 1 else "recovers at once"
    return "as without a fault" if row["verdict"] == "recovers" else "does not recover"


def describe_cell(row: pd.Series) -> str:
    """Return a sentence about a row of `FaultMatrix.table`: delivery, recovery, wrong and duplicate deliveries."""
    fault, protocol = row.name if isinstance(row.name, tuple) else (row["fault"], row["protocol"])
    ratios = ", ".join(f"{period} {row[period]:.3f}" for period in PERIODS)
    return (
        f"{protocol}, {fault}: {ratios}; {_describe_recovery(row)}; {row['wrong']:.0f} wrong, "
        f"{row['repeated']:.0f} repeated deliveries"
    )


def bundle(matrix: FaultMatrix, **_options: Any) -> dict[str, Any]:
    """Return the mimebundle with which a notebook displays a fault matrix: the heat map, and the matrix as text."""
    return plot(matrix)._repr_mimebundle_() | {"text/plain": repr(matrix)}
